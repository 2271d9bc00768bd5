//! Requests with other methods than `GET`: method and body as the parameters by which their captures are found, in the
//! form of other tools for web archives (pywb, cdxj-indexer). Whoever sends the same again gets the same parameters,
//! though the boundaries of a form's parts are others.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::Value;
use url::Url;
use url::form_urlencoded::Serializer;

use super::{HttpHead, dechunk, split};
use crate::address::{canonical, requested_with};
use crate::digest::Digest;

/// Maximum bytes of the parameters of a body; of longer ones, only a digest is kept.
const QUERY_BYTES_MAX: usize = 4096;

/// Maximum number of parts of a form, or of values of a JSON document, that are read.
const PARTS_MAX: usize = 4096;

/// Maximum length of a method in bytes.
const METHOD_BYTES_MAX: usize = 32;

/// Parameter of a body that has none.
const DATA: &str = "__wb_post_data";

/// A request as far as it decides which capture answers it.
#[derive(Clone, Copy, Debug, Default)]
pub struct SentRequest<'a> {
    /// Method.
    pub method: &'a str,
    /// `Content-Type` of the body.
    pub content_type: Option<&'a str>,
    /// Body, without transfer coding.
    pub body: &'a [u8],
}

impl SentRequest<'_> {
    /// Whether the answer is that of the page itself.
    #[must_use]
    pub fn is_get(&self) -> bool {
        self.method.is_empty() || self.method.eq_ignore_ascii_case("GET")
    }

    /// Returns the canonical URL of the page that has the captures of such requests of `url`.
    #[must_use]
    pub fn page(&self, url: &str) -> String {
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        let is_method = self.method.len() <= METHOD_BYTES_MAX && self.method.bytes().all(is_token);
        if self.is_get() || !is_method {
            return url.to_owned();
        }
        let page = requested_with(url, &self.method.to_ascii_uppercase(), &self.query());
        Url::parse(&page).map_or(page, |page| canonical(&page))
    }

    /// The body as parameters.
    fn query(&self) -> String {
        if self.body.is_empty() {
            return String::new();
        }
        let stated = self.content_type.unwrap_or_default().trim();
        let is = |name: &str| stated.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        let text = std::str::from_utf8(self.body).ok();
        let query = if is("application/x-www-form-urlencoded") {
            text.map(|text| text.trim().replace('+', "%20"))
        } else if is("multipart/") {
            parts(stated, self.body)
        } else if is("application/json") || is("text/plain") {
            text.and_then(values)
        } else {
            None
        };
        let query = query.unwrap_or_else(|| named(DATA, &STANDARD.encode(self.body)));
        if query.len() > QUERY_BYTES_MAX {
            return named(DATA, &Digest::sha256(query.as_bytes()).to_string());
        }
        query
    }
}

/// Returns the canonical URL of the page that a recorded request belongs to, if it is not `url` itself.
#[must_use]
pub fn page_of_request(url: &str, request: &Bytes) -> Option<String> {
    if request.starts_with(b"GET ") {
        return None;
    }
    let (head, body) = split(request);
    let head = HttpHead::parse(&head);
    let method = head.first_line.split_ascii_whitespace().next()?;
    let body = if head.is_chunked() { dechunk(&body) } else { body };
    let sent = SentRequest { method, content_type: head.get("Content-Type"), body: &body };
    Some(sent.page(url)).filter(|page| page != url)
}

fn named(name: &str, value: &str) -> String {
    Serializer::new(String::new()).append_pair(name, value).finish()
}

/// The fields of a form in parts (RFC 7578); a file is its bytes.
fn parts(content_type: &str, body: &[u8]) -> Option<String> {
    let boundary = content_type.split_once("boundary=")?.1.split(';').next()?.trim().trim_matches('"');
    let delimiter = format!("--{boundary}");
    let mut starts = memchr::memmem::find_iter(body, delimiter.as_bytes()).filter(|_| !boundary.is_empty());
    let mut query = Serializer::new(String::new());
    let mut from = starts.next()? + delimiter.len();
    for next in starts.take(PARTS_MAX) {
        let part = body.get(from..next)?;
        from = next + delimiter.len();
        let part = Bytes::copy_from_slice(part.strip_prefix(b"\r\n").or(part.strip_prefix(b"\n"))?);
        let (head, content) = split(&part);
        let disposition = HttpHead::parse(&[b"\n", &head[..]].concat());
        let name = field_name(disposition.get("Content-Disposition")?)?;
        let content = content.strip_suffix(b"\r\n").or(content.strip_suffix(b"\n")).unwrap_or(&content);
        query.append_pair(&name, &String::from_utf8_lossy(content));
    }
    Some(query.finish())
}

fn field_name(disposition: &str) -> Option<String> {
    let named = disposition.split(';').find_map(|part| part.trim().strip_prefix("name="))?;
    Some(named.trim_matches('"').to_owned())
}

/// The values of a JSON document with the names nearest to them; repeated names are numbered.
fn values(text: &str) -> Option<String> {
    let mut found = Vec::new();
    let whole: Result<Value, _> = serde_json::from_str(text);
    match whole {
        Ok(value) => collect(&value, "", &mut found),
        Err(_) => {
            for line in text.lines().filter(|line| !line.trim().is_empty()) {
                collect(&serde_json::from_str(line).ok()?, "", &mut found);
            }
        }
    }
    if found.is_empty() {
        return None;
    }
    let mut counts = HashMap::new();
    let mut query = Serializer::new(String::new());
    for (name, value) in &found {
        let count = counts.entry(name).or_insert(0_u32);
        *count += 1;
        match *count {
            1 => query.append_pair(name, value),
            count => query.append_pair(&format!("{name}.{count}_"), value),
        };
    }
    Some(query.finish())
}

/// Collects the leaves of a value, `PARTS_MAX` at most. The reader of JSON bounds its depth.
fn collect(value: &Value, name: &str, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(members) => members.iter().for_each(|(name, value)| collect(value, name, found)),
        Value::Array(items) => items.iter().for_each(|value| collect(value, name, found)),
        _ if name.is_empty() || found.len() >= PARTS_MAX => {}
        Value::String(text) => found.push((name.to_owned(), text.clone())),
        // A number is written as scripts write it.
        Value::Number(number) => {
            let whole = number.as_f64().filter(|value| value.fract() == 0.0 && number.is_f64());
            let text = whole.map_or_else(|| number.to_string(), |value| value.to_string());
            found.push((name.to_owned(), text));
        }
        Value::Bool(_) | Value::Null => found.push((name.to_owned(), value.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(method: &str, content_type: &str, body: &str) -> String {
        let sent = SentRequest { method, content_type: Some(content_type), body: body.as_bytes() };
        sent.page("http://a.org/b").trim_start_matches("http://a.org/b").to_owned()
    }

    #[test]
    fn bodies_become_parameters() {
        let form = "multipart/form-data; boundary=";
        let multipart = |boundary: &str| {
            format!(
                "--{boundary}\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1 2\r\n--{boundary}\r\n\
                 Content-Disposition: form-data; name=\"f\"; filename=\"x.txt\"\r\nContent-Type: text/plain\r\n\r\n\
                 x\r\ny\r\n--{boundary}--\r\n"
            )
        };
        for (method, content_type, body, expected) in [
            ("GET", "", "", ""),
            ("get", "text/plain", "x", ""),
            ("HEAD", "", "", "?__wb_method=HEAD"),
            ("post", "application/x-www-form-urlencoded", "a=1&b=x+y%2B", "?__wb_method=POST&a=1&b=x%20y%2B"),
            ("POST", &format!("{form}XX"), &multipart("XX"), "?__wb_method=POST&a=1+2&f=x%0D%0Ay"),
            ("POST", &format!("{form}\"--9\""), &multipart("--9"), "?__wb_method=POST&a=1+2&f=x%0D%0Ay"),
            (
                "PUT",
                "application/json; charset=utf-8",
                r#"{"a":{"b":[1,2.0,true,null,"c d"]},"e":-1.5}"#,
                "?__wb_method=PUT&b=1&b.2_=2&b.3_=true&b.4_=null&b.5_=c+d&e=-1.5",
            ),
            ("POST", "text/plain", "{\"a\":1}\n{\"a\":2}\n", "?__wb_method=POST&a=1&a.2_=2"),
            ("POST", "text/plain", "no JSON", "?__wb_method=POST&__wb_post_data=bm8gSlNPTg%3D%3D"),
            ("POST", "application/json", "{", "?__wb_method=POST&__wb_post_data=ew%3D%3D"),
            ("POST", "multipart/form-data", "x", "?__wb_method=POST&__wb_post_data=eA%3D%3D"),
            ("A B", "", "", ""),
        ] {
            assert_eq!(page(method, content_type, body), expected, "{method} {content_type}");
        }
    }

    #[test]
    fn a_long_body_is_known_by_its_digest() {
        let form = "application/x-www-form-urlencoded";
        let longest = "a".repeat(QUERY_BYTES_MAX);
        assert!(page("POST", form, &longest).ends_with(&longest));
        let one = page("POST", form, &(longest.clone() + "b"));
        assert!(one.starts_with("?__wb_method=POST&__wb_post_data=sha256%3A") && one.len() < 128, "{one}");
        assert_ne!(one, page("POST", form, &(longest + "c")));
    }

    #[test]
    fn a_recorded_request_says_which_page_it_asked_for() {
        let page = |request: &'static str| page_of_request("http://a.org/b?c", &Bytes::from(request));
        assert_eq!(page("GET /b?c HTTP/1.1\r\nHost: a.org\r\n\r\n"), None);
        assert_eq!(page(""), None);
        let chunked = "POST /b?c HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\n\
                       Transfer-Encoding: chunked\r\n\r\n3\r\nd=1\r\n0\r\n\r\n";
        assert_eq!(page(chunked).as_deref(), Some("http://a.org/b?c&__wb_method=POST&d=1"));
    }
}
