//! Cookies as other programs save them: the `cookies.txt` of Netscape, which curl, wget and extensions of browsers write,
//! and JSON as extensions of Chrome and Firefox and Playwright's storage state have it.

use serde::Deserialize;
use url::Url;

use super::cookies::KeptCookie;

/// What begins a line of a cookie that scripts do not see.
const HTTP_ONLY: &str = "#HttpOnly_";

/// A cookie of a JSON file; extensions and Playwright name some members differently.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Saved {
    domain: String,
    name: String,
    value: String,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    secure: bool,
    #[serde(default)]
    host_only: Option<bool>,
    #[serde(default, alias = "expirationDate")]
    expires: Option<f64>,
    #[serde(default)]
    same_site: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum SavedFile {
    List(Vec<Saved>),
    State { cookies: Vec<Saved> },
}

/// Reads the cookies of a file.
///
/// # Errors
/// What is wrong, and where, without anything from the file.
pub fn read(text: &str) -> Result<Vec<KeptCookie>, String> {
    let is_json = text.trim_start().starts_with(['[', '{']);
    let cookies = if is_json { of_json(text)? } else { of_lines(text)? };
    if cookies.is_empty() {
        return Err("it has no cookies".to_owned());
    }
    Ok(cookies)
}

fn of_json(text: &str) -> Result<Vec<KeptCookie>, String> {
    // The message of the parser may quote a value.
    let saved = match serde_json::from_str(text).map_err(|_| "it is no JSON list of cookies".to_owned())? {
        SavedFile::List(saved) | SavedFile::State { cookies: saved } => saved,
    };
    let kept = |(number, saved): (usize, Saved)| {
        let host_only = saved.host_only.unwrap_or(!saved.domain.starts_with('.'));
        Ok(KeptCookie {
            domain: domain(&saved.domain).ok_or_else(|| format!("cookie {number} has no domain"))?,
            host_only,
            path: saved.path.as_deref().unwrap_or("/").into(),
            name: saved.name.into(),
            value: saved.value.into(),
            secure: saved.secure,
            same_site: match saved.same_site.unwrap_or_default().to_ascii_lowercase().as_str() {
                "none" | "no_restriction" => Some("none".into()),
                "strict" => Some("strict".into()),
                "lax" => Some("lax".into()),
                _ => None,
            },
            expires: saved.expires.filter(|end| *end > 0.0).map(|end| end as i64),
        })
    };
    (1..).zip(saved).map(kept).collect()
}

fn of_lines(text: &str) -> Result<Vec<KeptCookie>, String> {
    let mut cookies = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.strip_prefix(HTTP_ONLY).unwrap_or(line);
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = || format!("line {number} is not a cookie: seven fields with tabs between them");
        let [host, is_below, path, secure, expires, name, value] =
            line.split('\t').collect::<Vec<_>>().try_into().map_err(|_| wrong())?;
        let expires: i64 = expires.trim().parse().map_err(|_| wrong())?;
        cookies.push(KeptCookie {
            domain: domain(host).ok_or_else(wrong)?,
            host_only: !is_below.eq_ignore_ascii_case("true"),
            path: path.into(),
            name: name.into(),
            value: value.into(),
            secure: secure.eq_ignore_ascii_case("true"),
            same_site: None,
            expires: Some(expires).filter(|end| *end > 0),
        });
    }
    Ok(cookies)
}

/// A domain in the form that URLs have.
fn domain(text: &str) -> Option<Box<str>> {
    let url = Url::parse(&format!("http://{}/", text.trim_start_matches('.'))).ok()?;
    url.host_str().map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_all_programs_have_the_same_cookie() {
        let kept = KeptCookie {
            domain: "a.test".into(),
            host_only: false,
            path: "/x".into(),
            name: "n".into(),
            value: "v=w".into(),
            secure: true,
            same_site: None,
            expires: Some(1_900_000_000),
        };
        let lines = "# Netscape HTTP Cookie File\n\n#HttpOnly_.A.test\tTRUE\t/x\tTRUE\t1900000000\tn\tv=w\n";
        assert_eq!(read(lines), Ok(vec![kept.clone()]));
        let extension = r#"[{"domain":".a.test","hostOnly":false,"path":"/x","name":"n","value":"v=w","secure":true,
            "session":false,"sameSite":"unspecified","expirationDate":1900000000.5,"storeId":"0"}]"#;
        assert_eq!(read(extension), Ok(vec![kept.clone()]));
        let state = r#"{"cookies":[{"domain":"a.test","path":"/x","name":"n","value":"v=w","secure":true,"expires":-1,
            "httpOnly":true,"sameSite":"Lax"}],"origins":[]}"#;
        let session = KeptCookie { host_only: true, same_site: Some("lax".into()), expires: None, ..kept };
        assert_eq!(read(state), Ok(vec![session]));
        for wrong in
            ["", "# nothing", "a\tb", "[]", "{\"s3cr3t\":1}", "a.test\tTRUE\t/\tTRUE\tsoon\tn\ts3cr3t"]
        {
            assert!(!read(wrong).unwrap_err().contains("s3cr3t"), "{wrong}");
        }
    }
}
