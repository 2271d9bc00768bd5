//! The canonical form of a URL, as a table of rules.
//!
//! [`RULES`] is complete: each line names a rule, shows it with an example that a test checks, and has the function
//! that applies it. To add a rule, write a function over [`UrlParts`] and add a line. Rules run from top to bottom; those
//! without a function are applied by the URL parser (WHATWG), and listed for completeness.

use std::borrow::Cow;
use std::fmt::Write as _;

use url::Url;

/// The parts of a URL that rules work on. The only rule for host and port drops the root dot.
#[derive(Debug)]
pub struct UrlParts<'a> {
    scheme: &'a str,
    host: &'a str,
    port: Option<u16>,
    path: Cow<'a, str>,
    query: Option<Cow<'a, str>>,
}

/// One rule of the canonical form.
#[derive(Debug)]
pub struct CanonicalRule {
    /// Short description of the rule.
    pub name: &'static str,
    /// A URL that the rule changes.
    pub before: &'static str,
    /// The URL after the rule.
    pub after: &'static str,
    /// The function that applies it; `None` if the URL parser has already done so.
    apply: Option<fn(&mut UrlParts<'_>)>,
}

const fn by_parser(name: &'static str, before: &'static str, after: &'static str) -> CanonicalRule {
    CanonicalRule { name, before, after, apply: None }
}

const fn rule(
    name: &'static str,
    before: &'static str,
    after: &'static str,
    apply: fn(&mut UrlParts<'_>),
) -> CanonicalRule {
    CanonicalRule { name, before, after, apply: Some(apply) }
}

/// All rules, in the order in which they are applied.
#[rustfmt::skip]
pub const RULES: &[CanonicalRule] = &[
    by_parser("scheme and host in lower case", "HTTP://A.Example/B", "http://a.example/B"),
    by_parser("default port dropped", "https://a.example:443/b", "https://a.example/b"),
    by_parser("international names in ASCII", "http://bücher.example/", "http://xn--bcher-kva.example/"),
    by_parser("addresses in one form", "http://0x7f.1/", "http://127.0.0.1/"),
    by_parser("dot segments resolved", "http://a.example/b/../c/./d", "http://a.example/c/d"),
    by_parser("backslashes are slashes", "http://a.example\\b", "http://a.example/b"),
    by_parser("an empty path is a slash", "http://a.example", "http://a.example/"),
    rule("fragment dropped", "http://a.example/b#c", "http://a.example/b", nothing_to_do),
    rule("name and password dropped", "http://me:secret@a.example/", "http://a.example/", nothing_to_do),
    rule("root dot of the host dropped", "http://a.example./b", "http://a.example/b", drop_root_dot),
    rule("escapes in upper case", "http://a.example/%c3%a9?q=%c3%a9", "http://a.example/%C3%A9?q=%C3%A9", normalise_escapes),
    rule("no escapes of unreserved characters", "http://a.example/%7Eb?q=%41", "http://a.example/~b?q=A", normalise_escapes),
    rule("empty query dropped", "http://a.example/b?", "http://a.example/b", drop_empty_query),
];

/// Returns the canonical form of a URL: the one that the seen-set holds and the crawler fetches. See [`RULES`].
///
/// Only `http`, `https` and `ftp` URLs change beyond what the parser did; others just lose their fragment.
#[must_use]
pub fn canonical(url: &Url) -> String {
    let text = url.as_str();
    if !matches!(url.scheme(), "http" | "https" | "ftp") {
        return text.split('#').next().unwrap_or_default().to_owned();
    }
    if nothing_applies(url) {
        return text.to_owned();
    }
    let mut parts = UrlParts {
        scheme: url.scheme(),
        host: url.host_str().unwrap_or_default(),
        port: url.port(),
        path: Cow::Borrowed(url.path()),
        query: url.query().map(Cow::Borrowed),
    };
    for rule in RULES {
        if let Some(apply) = rule.apply {
            apply(&mut parts);
        }
    }
    parts.join()
}

impl UrlParts<'_> {
    fn join(self) -> String {
        let mut text = String::with_capacity(self.scheme.len() + self.host.len() + self.path.len() + 32);
        text.push_str(self.scheme);
        text.push_str("://");
        text.push_str(self.host);
        if let Some(port) = self.port {
            let _ = write!(text, ":{port}");
        }
        text.push_str(&self.path);
        if let Some(query) = &self.query {
            text.push('?');
            text.push_str(query);
        }
        text
    }
}

/// Whether one look at its bytes shows that no rule would change the URL. So no rule has to run for most links.
fn nothing_applies(url: &Url) -> bool {
    let path_is_clean = !url.path().contains('%');
    path_is_clean
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none()
        && !url.host_str().unwrap_or_default().ends_with('.')
        && url.query().is_none_or(|query| !query.is_empty() && !query.contains('%'))
}

/// Fragment, name and password are already left out of the parts.
fn nothing_to_do(_: &mut UrlParts<'_>) {}

fn drop_root_dot(parts: &mut UrlParts<'_>) {
    parts.host = without_root_dot(parts.host);
}

/// Drops the dots at the end of a name, unless the rest would be parsed as an address (`a.1..`).
pub(super) fn without_root_dot(host: &str) -> &str {
    let name = host.trim_end_matches('.');
    let last_label = name.rsplit('.').next().unwrap_or_default();
    if last_label.is_empty() || is_number(last_label) { host } else { name }
}

/// Whether a last label makes a name an address (WHATWG URL, "ends in a number checker"). `0000xa` does not:
/// hexadecimal numbers must start with `0x`.
fn is_number(label: &str) -> bool {
    match label.strip_prefix("0x").or_else(|| label.strip_prefix("0X")) {
        Some(hex) => hex.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => label.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

fn normalise_escapes(parts: &mut UrlParts<'_>) {
    if let Some(path) = with_normal_escapes(&parts.path) {
        parts.path = Cow::Owned(path);
    }
    if let Some(query) = parts.query.as_deref().and_then(with_normal_escapes) {
        parts.query = Some(Cow::Owned(query));
    }
}

/// Normalizes escapes by RFC 3986, sections 6.2.2.1 and 6.2.2.2. Returns `None` if nothing changes.
///
/// A text with a `%` that starts no escape is left unchanged: decoding `%35` in `%2%35` would create a new escape.
fn with_normal_escapes(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut escapes = memchr::memchr_iter(b'%', bytes).peekable();
    escapes.peek()?;
    if !escapes.all(|at| bytes.get(at + 1..at + 3).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit))) {
        return None;
    }
    let mut normal = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'%', rest.as_bytes()) {
        normal.push_str(&rest[..at]);
        let hex = &rest[at + 1..at + 3];
        match u8::from_str_radix(hex, 16) {
            Ok(byte) if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') => {
                normal.push(char::from(byte));
            }
            _ => {
                normal.push('%');
                normal.extend(hex.chars().map(|digit| digit.to_ascii_uppercase()));
            }
        }
        rest = &rest[at + 3..];
    }
    normal.push_str(rest);
    (normal != text).then_some(normal)
}

fn drop_empty_query(parts: &mut UrlParts<'_>) {
    if parts.query.as_deref() == Some("") {
        parts.query = None;
    }
}
