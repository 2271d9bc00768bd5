//! Phrases in titles and URLs that reveal placeholders, walls and error pages.

/// Phrases in titles of placeholder pages of sites that are gone.
const PARKED: [&str; 8] = [
    "domain for sale",
    "domain is for sale",
    "buy this domain",
    "domain parking",
    "parked domain",
    "parked at",
    "parked page",
    "website coming soon",
];

/// Phrases in titles of pages that block access to the content.
const WALL: [&str; 14] = [
    "log in",
    "login",
    "sign in",
    "signin",
    "anmelden",
    "einloggen",
    "se connecter",
    "iniciar sesión",
    "before you continue",
    "cookie consent",
    "access denied",
    "just a moment",
    "are you a robot",
    "attention required",
];

/// Phrases in titles of error pages for missing pages.
const MISSING: [&str; 8] = [
    "not found",
    "404",
    "page cannot be found",
    "page doesn't exist",
    "page does not exist",
    "seite nicht gefunden",
    "page introuvable",
    "página no encontrada",
];

/// Path segments of login pages.
const LOGIN_PATHS: [&str; 9] =
    ["login", "signin", "sign-in", "sign_in", "logon", "auth", "sso", "account/login", "wp-login.php"];

/// Whether the title is that of a parked domain.
pub(super) fn is_parked(title: &str) -> bool {
    has_any(title, &PARKED)
}

/// Whether the title is that of a page for logging in, giving consent, or proving to be human.
pub(super) fn is_wall(title: &str) -> bool {
    has_any(title, &WALL)
}

/// Whether the title says that the page does not exist.
pub(super) fn is_missing(title: &str) -> bool {
    has_any(title, &MISSING)
}

/// Whether the URL is that of a login page.
pub(super) fn is_login(url: &str) -> bool {
    let path = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = path.split(['?', '#']).next().unwrap_or_default().to_lowercase();
    path.split('/').skip(1).any(|part| LOGIN_PATHS.contains(&part))
}

/// Whether a text contains one of the phrases, as whole words.
fn has_any(text: &str, phrases: &[&str]) -> bool {
    let words = |text: &str| {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        format!(" {} ", words.collect::<Vec<_>>().join(" ").to_lowercase())
    };
    let text = words(text);
    phrases.iter().any(|phrase| text.contains(&words(phrase)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_and_addresses_are_understood() {
        assert!(is_parked("Example.org - Domain for sale!") && !is_parked("Public domain films"));
        assert!(is_wall("Sign In | Example") && is_wall("Just a moment...") && !is_wall("Blogin design"));
        assert!(is_missing("404 - Page Not Found") && !is_missing("Lost and found"));
        assert!(is_login("https://a.test/en/login?next=/x") && is_login("http://a.test/wp-login.php"));
        assert!(!is_login("http://login.test/blogins") && !is_login("http://a.test/?login"));
    }
}
