//! Which URLs are robots.txt files: only the URL itself decides, not what redirects to it.
//!
//! A robots.txt may redirect to any URL (RFC 9309 section 2.3.1.2). The answer from there is the file of the
//! redirecting host and says nothing about the page at that URL. So the books keep it under a separate name.

use std::borrow::Cow;

/// Suffix of the name of what was fetched at a URL as another host's robots.txt. No canonical URL has a fragment.
const MARK: &str = "#robots.txt";

/// Whether this is the name of a robots.txt in the books.
pub(super) fn is_robots_txt(name: &str) -> bool {
    name.ends_with(MARK) || is_own_robots_txt(name)
}

/// Whether a canonical URL is the robots.txt of its own host.
#[must_use]
pub fn is_own_robots_txt(url: &str) -> bool {
    let origin = url.strip_suffix("/robots.txt");
    let host = origin.and_then(|origin| origin.strip_prefix("https://").or(origin.strip_prefix("http://")));
    host.is_some_and(|host| !host.is_empty() && !host.contains(['/', '@']))
}

/// Returns the name in the books of what was fetched at a canonical URL as a robots.txt.
#[must_use]
pub fn name_as_robots_txt(url: &str) -> Cow<'_, str> {
    if is_own_robots_txt(url) { Cow::Borrowed(url) } else { Cow::Owned(format!("{url}{MARK}")) }
}

/// Returns the URL that was fetched, given the name of the answer in the books.
#[must_use]
pub fn fetched_url(name: &str) -> &str {
    name.strip_suffix(MARK).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::{fetched_url, is_own_robots_txt, is_robots_txt, name_as_robots_txt};

    #[test]
    fn a_robots_txt_is_at_the_root_of_its_host() {
        for url in ["http://a.test/robots.txt", "https://[::1]:8080/robots.txt"] {
            assert!(is_own_robots_txt(url), "{url}");
            assert_eq!(name_as_robots_txt(url), url);
        }
        for url in [
            "http://a.test/",
            "http://a.test/x/robots.txt",
            "http://a.test/robots.txt?x",
            "http://a.test/?/robots.txt",
            "http://me@a.test/robots.txt",
            "http:///robots.txt",
            "ftp://a.test/robots.txt",
            "http://a.test/robots.txt/",
        ] {
            assert!(!is_own_robots_txt(url) && !is_robots_txt(url), "{url}");
            let name = name_as_robots_txt(url);
            assert!(name != url && is_robots_txt(&name), "{name}");
            assert_eq!(fetched_url(&name), url);
        }
    }
}
