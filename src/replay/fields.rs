//! HTTP header fields of a replayed response. Those that a browser needs are kept with rewritten addresses; the others
//! are preserved under names that browsers ignore.

use archive_storage::warc::HttpHead;
use archive_web::parse::headers::{parameter, split_link};
use archive_web::parse::html::kind_of_relation;

use super::address::uri;
use super::rewrite::LinkRewriter;
use super::rewrite::html::refreshed;
use super::{PATH_BYTES_MAX, Response};

/// Prefix for the names of an original's fields.
const PREFIX: &str = "X-Archive-Orig-";

/// Maximum number of an original's fields to repeat, and maximum length of a value in bytes; addresses are never cut.
/// Clients reject more than about a hundred fields.
pub(super) const ORIGINAL_FIELDS_MAX: usize = 64;
pub(super) const VALUE_BYTES_MAX: usize = 4096;

/// Maximum number of links from an original's `Link` fields.
const LINKS_MAX: usize = 32;

/// Link relations about the capture rather than the page.
const OF_MEMENTOS: [&str; 9] =
    ["original", "timegate", "timemap", "memento", "first", "last", "prev", "next", "predecessor-version"];

/// Adds the fields of an original, except `Content-Type` and lengths, which depend on the body. Returns the original's
/// own links, which share a field with those of the capture.
pub(super) fn add(response: &mut Response, head: &HttpHead, links: &LinkRewriter) -> Vec<String> {
    let (mut own_links, mut repeated) = (Vec::new(), 0);
    for (name, value) in &head.fields {
        let lower = name.to_ascii_lowercase();
        let rewritten = match lower.as_str() {
            // An address that is cut would be another address.
            "location" | "content-location" => links.address(&without_controls(value), links.page()),
            "refresh" => refreshed(&without_controls(value), links),
            "content-language" | "content-disposition" => Some(clean(value)),
            "link" if own_links.len() < LINKS_MAX => {
                own_links.extend(linked(&clean(value), links));
                None
            }
            _ => None,
        };
        match rewritten.filter(|rewritten| rewritten.len() <= PATH_BYTES_MAX) {
            // Of several, clients take the first.
            Some(rewritten) if response.get(name_of(&lower)).is_none() => {
                response.set(name_of(&lower), &rewritten);
            }
            Some(_) => {}
            None if is_token(name) && repeated < ORIGINAL_FIELDS_MAX => {
                response.add(&format!("{PREFIX}{name}"), &clean(value));
                repeated += 1;
            }
            None => {}
        }
    }
    own_links.truncate(LINKS_MAX);
    own_links
}

fn name_of(lower: &str) -> &'static str {
    match lower {
        "location" => "Location",
        "content-location" => "Content-Location",
        "refresh" => "Refresh",
        "content-language" => "Content-Language",
        _ => "Content-Disposition",
    }
}

/// Rewrites the links of a `Link` field (RFC 8288).
fn linked(value: &str, links: &LinkRewriter) -> Vec<String> {
    let (mut all, mut rest) = (Vec::new(), value);
    while let Some((target, parameters, next)) = split_link(rest) {
        rest = next;
        let rel = parameter(parameters, "rel").unwrap_or_default();
        let is_of_mementos = rel
            .split_ascii_whitespace()
            .any(|word| OF_MEMENTOS.iter().any(|one| word.eq_ignore_ascii_case(one)));
        let kind = kind_of_relation(rel, parameter(parameters, "type"));
        if let (Some(kind), false) = (kind, is_of_mementos)
            && let Some(address) = links.of_kind(target, kind)
        {
            all.push(format!("<{}>{parameters}", uri(&address)));
        }
    }
    all
}

/// Removes from a value what could end the field, and limits its length.
pub(super) fn clean(value: &str) -> String {
    let mut end = value.len().min(VALUE_BYTES_MAX);
    while !value.is_char_boundary(end) {
        end -= 1;
    }
    without_controls(&value[..end])
}

fn without_controls(value: &str) -> String {
    value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().trim().to_owned()
}

/// Whether a text is a valid field name (RFC 9110, section 5.6.2).
fn is_token(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 128
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;
    use crate::address::Modifier;

    fn links() -> LinkRewriter {
        LinkRewriter::new(Url::parse("http://a.org/b/c").ok(), "20200101000000".to_owned(), Modifier::Page)
    }

    #[test]
    fn fields_are_mapped_kept_aside_or_cut() {
        let long = "x".repeat(VALUE_BYTES_MAX + 1);
        let head = format!(
            "HTTP/1.1 302 Found\r\nLocation: https://b.org/?x=1\r\nSet-Cookie: a=b\r\nRefresh: 5; url=/d\r\n\
             Evil: a\u{0}b\rSet-Cookie: c=d\r\nbad name: x\r\nLink: </s.css>; rel=stylesheet, </n>; rel=next\r\n\
             Content-Security-Policy: default-src *\r\nLong: {long}\r\n\r\n"
        );
        let mut response = Response::new(302);
        let own = add(&mut response, &HttpHead::parse(head.as_bytes()), &links());
        let get = |name: &str| response.get(name).map(str::to_owned);
        assert_eq!(get("Location").as_deref(), Some("/web/20200101000000/https://b.org/?x=1"));
        assert_eq!(get("Refresh").as_deref(), Some("5; url=/web/20200101000000/http://a.org/d"));
        assert_eq!(get("Set-Cookie"), None);
        assert_eq!(get("Content-Security-Policy"), None);
        assert_eq!(get("X-Archive-Orig-Set-Cookie").as_deref(), Some("a=b"));
        assert_eq!(get("X-Archive-Orig-Evil").as_deref(), Some("a b Set-Cookie: c=d"));
        assert_eq!(get("X-Archive-Orig-Long").map(|value| value.len()), Some(VALUE_BYTES_MAX));
        assert!(response.headers.iter().all(|(name, _)| !name.contains(' ')));
        assert_eq!(own, ["</web/20200101000000cs_/http://a.org/s.css>; rel=stylesheet"]);
    }

    #[test]
    fn a_redirect_to_no_page_leads_nowhere() {
        for to in ["javascript:alert(1)", "data:text/html,x", "//", "file:///etc/passwd"] {
            let mut response = Response::new(302);
            let head = HttpHead::parse(format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\n\r\n").as_bytes());
            add(&mut response, &head, &links());
            assert_eq!(response.get("Location"), None, "{to}");
        }
    }

    #[test]
    fn no_more_fields_than_the_limit() {
        let field = |number: usize| format!("F{number}: x\r\n");
        let fields: String = (0..=ORIGINAL_FIELDS_MAX).map(field).collect();
        let mut response = Response::new(200);
        add(&mut response, &HttpHead::parse(format!("HTTP/1.1 200 OK\r\n{fields}\r\n").as_bytes()), &links());
        assert_eq!(response.headers.len(), ORIGINAL_FIELDS_MAX);
    }

    #[test]
    fn fields_that_count_are_found_among_a_thousand() {
        let many = "Set-Cookie: x\r\n".repeat(1000);
        let long = format!("http://b.org/{}", "x".repeat(2 * VALUE_BYTES_MAX));
        let head = format!(
            "HTTP/1.1 302 Found\r\n{many}Location: {long}\r\nContent-Disposition: inline\r\n\
             Location: http://c.org/\r\n\r\n"
        );
        let mut response = Response::new(302);
        add(&mut response, &HttpHead::parse(head.as_bytes()), &links());
        assert_eq!(response.get("Location"), Some(&*format!("/web/20200101000000/{long}")));
        assert_eq!(response.get("Content-Disposition"), Some("inline"));
        assert_eq!(response.headers.len(), ORIGINAL_FIELDS_MAX + 2);
        let long = format!("HTTP/1.1 302 Found\r\nLocation: /{}\r\n\r\n", "x".repeat(PATH_BYTES_MAX));
        let mut response = Response::new(302);
        add(&mut response, &HttpHead::parse(long.as_bytes()), &links());
        assert_eq!(response.get("Location"), None, "no request can name it");
    }
}
