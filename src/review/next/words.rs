//! Words by which titles and addresses give away what a page is instead of what it should be.

/// Titles of pages that hold the place of a site that is gone.
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

/// Titles of pages that stand before the content.
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

/// Titles of pages that say that there is none.
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

/// Parts of paths at which people are asked who they are.
const LOGIN_PATHS: [&str; 9] =
    ["login", "signin", "sign-in", "sign_in", "logon", "auth", "sso", "account/login", "wp-login.php"];

/// Whether a title is that of a parked domain.
pub(super) fn is_parked(title: &str) -> bool {
    has_any(title, &PARKED)
}

/// Whether a title is that of a page for logging in, agreeing to something, or proving to be human.
pub(super) fn is_wall(title: &str) -> bool {
    has_any(title, &WALL)
}

/// Whether a title says that a page is not there.
pub(super) fn is_missing(title: &str) -> bool {
    has_any(title, &MISSING)
}

/// Whether a URL asks who one is.
pub(super) fn is_login(url: &str) -> bool {
    let path = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = path.split(['?', '#']).next().unwrap_or_default().to_lowercase();
    path.split('/').skip(1).any(|part| LOGIN_PATHS.contains(&part))
}

/// Whether a text has one of some phrases, as whole words.
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
