//! Captures of requests with other methods than `GET`. They say nothing of the page that their URL names, so they have a
//! page of their own: its URL is theirs with method and body in the query, as indexers of web archives write it.

/// Parameter of the method.
const METHOD: &str = "__wb_method=";

/// Returns the URL of what was requested from `url` with a method and, as parameters, a body; not canonical.
pub(crate) fn requested_with(url: &str, method: &str, body: &str) -> String {
    let before = if url.contains('?') { '&' } else { '?' };
    let between = if body.is_empty() { "" } else { "&" };
    format!("{url}{before}{METHOD}{method}{between}{body}")
}

/// Returns the method that a page's URL names; `None` for `GET`.
#[must_use]
pub fn method_of(url: &str) -> Option<&str> {
    let method = url[start(url)? + 1 + METHOD.len()..].split('&').next()?;
    (!method.is_empty()).then_some(method)
}

/// Returns the URL that was requested, given the URL of the page.
#[must_use]
pub fn without_request(url: &str) -> &str {
    start(url).map_or(url, |start| &url[..start])
}

/// Position of the character before the parameter of the method.
fn start(url: &str) -> Option<usize> {
    let start = url.find(METHOD)?.checked_sub(1)?;
    let is_parameter = matches!(url.as_bytes().get(start), Some(b'?' | b'&')) && url[..=start].contains('?');
    is_parameter.then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_a_request_names_it() {
        for (url, method, body, page) in [
            ("http://a.org/b", "POST", "c=1", "http://a.org/b?__wb_method=POST&c=1"),
            ("http://a.org/b?d", "HEAD", "", "http://a.org/b?d&__wb_method=HEAD"),
        ] {
            assert_eq!(requested_with(url, method, body), page);
            assert_eq!((method_of(page), without_request(page)), (Some(method), url));
        }
        for url in [
            "http://a.org/__wb_method=POST",
            "http://a.org/?x__wb_method=POST",
            "__wb_method=",
            "http://a.org/&__wb_method=X",
        ] {
            assert_eq!((method_of(url), without_request(url)), (None, url));
        }
    }
}
