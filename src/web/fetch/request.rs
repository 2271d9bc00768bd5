//! The request as sent over the wire, and as archived.

use std::borrow::Cow;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use url::{Position, Url};

use super::resume::BodyRest;
use super::{CookieContext, FetchSettings};

/// Which content codings servers are asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// None: compression would hide from the store what two versions have in common.
    #[default]
    Off,
    /// Those that other tools for web archives read, too.
    On,
}

archive_base::names! { Compression: Off "off", On "on" }

/// Value of `Accept-Encoding`. warcio and pywb do not read zstd.
const CODINGS: &str = "gzip, br";

/// What servers append to the opaque part of an `ETag` for a compressed answer (Apache and Tomcat, Jetty, mod_brotli).
const CODING_SUFFIXES: [&str; 3] = ["--gzip\"", "-gzip\"", "-br\""];

/// A request to a server.
#[derive(Debug, Clone)]
pub struct FetchRequest {
    /// The URL, without fragment.
    pub url: Url,
    /// Validator of the stored version; the server may answer 304 (RFC 9110, section 13.1.2).
    pub if_none_match: Option<String>,
    /// Date of the stored version (RFC 9110, section 13.1.3).
    pub if_modified_since: Option<String>,
    /// The page that needs or links what is requested, as far as the server may know it.
    pub referer: Option<String>,
    /// On whose behalf it is requested, as far as cookies go.
    pub cookies: CookieContext,
    /// Maximum bytes of the body as received, if less than [`super::ResponseLimits::body_bytes`].
    pub body_bytes_max: Option<u64>,
    /// The rest of a body that is asked for, if the server still has its version.
    pub rest: Option<BodyRest>,
    /// Encoded fields of a form to send by POST (`application/x-www-form-urlencoded`).
    pub form: Option<Box<str>>,
}

impl FetchRequest {
    /// Creates an unconditional request.
    #[must_use]
    pub fn new(url: Url) -> Self {
        Self {
            url,
            if_none_match: None,
            if_modified_since: None,
            referer: None,
            cookies: CookieContext::None,
            body_bytes_max: None,
            rest: None,
            form: None,
        }
    }

    /// Names the page that needs or links what is requested, as browsers do: in full to its own origin, to others only its
    /// origin, and nothing of a secure page without TLS (`strict-origin-when-cross-origin`). Some servers give pictures
    /// to their own pages only, and pages to those who come from others.
    pub fn set_referer(&mut self, page: &Url) {
        let is_downgrade = page.scheme() == "https" && self.url.scheme() != "https";
        self.referer = (!is_downgrade).then(|| {
            let origin = page.origin().ascii_serialization();
            let path = &page[Position::BeforePath..Position::AfterQuery];
            if page.origin() == self.url.origin() { origin + path } else { origin + "/" }
        });
    }

    /// Returns the bytes to send, with these fields beside its own.
    pub(super) fn to_bytes(&self, settings: &FetchSettings, more: &[(String, String)]) -> Bytes {
        let mut out = Vec::with_capacity(256);
        let target = &self.url[Position::BeforePath..Position::AfterQuery];
        let host = &self.url[Position::BeforeHost..Position::AfterPort];
        let mut put = |parts: &[&str]| parts.iter().for_each(|part| out.extend_from_slice(part.as_bytes()));
        let method = if self.form.is_some() { "POST " } else { "GET " };
        put(&[method, if target.is_empty() { "/" } else { target }, " HTTP/1.1\r\nHost: ", host]);
        put(&["\r\nUser-Agent: ", &settings.user_agent]);
        put(&["\r\nAccept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n"]);
        if settings.compression == Compression::On {
            put(&["Accept-Encoding: ", CODINGS, "\r\n"]);
        }
        if let Some(page) = &self.referer {
            put(&["Referer: ", page, "\r\n"]);
        }
        for (name, value) in more {
            put(&[name, ": ", value, "\r\n"]);
        }
        if let Some(tag) = &self.if_none_match {
            put(&["If-None-Match: ", &any_coding(tag), "\r\n"]);
        }
        if let Some(date) = &self.if_modified_since {
            put(&["If-Modified-Since: ", date, "\r\n"]);
        }
        if let Some(BodyRest { from, validator, .. }) = &self.rest {
            put(&["Range: bytes=", &from.to_string(), "-\r\nIf-Range: ", validator, "\r\n"]);
        }
        if let Some(form) = &self.form {
            let length = form.len().to_string();
            put(&["Content-Type: application/x-www-form-urlencoded\r\nContent-Length: ", &length, "\r\n"]);
        }
        put(&["\r\n", self.form.as_deref().unwrap_or_default()]);
        out.into()
    }
}

/// Returns the list of tags that stand for a version however it is compressed: Apache marks the tags of compressed answers,
/// and knows a marked tag no more when it is asked whether the version is current.
fn any_coding(tag: &str) -> Cow<'_, str> {
    let plain = CODING_SUFFIXES.into_iter().find_map(|suffix| tag.strip_suffix(suffix));
    plain.map_or(Cow::Borrowed(tag), |plain| format!("{tag}, {plain}\"").into())
}

#[cfg(test)]
mod tests {
    use super::{Compression, FetchRequest, FetchSettings};

    #[test]
    fn a_request_names_host_and_target_only() {
        let mut request = FetchRequest::new("http://user:pass@Example.org:8080/a?b=c#d".parse().unwrap());
        request.if_none_match = Some("\"x\"".to_owned());
        let mut settings = FetchSettings { user_agent: "test/1".to_owned(), ..FetchSettings::default() };
        let bytes = request.to_bytes(&settings, &[]);
        let text = std::str::from_utf8(&bytes).unwrap();
        assert!(
            text.starts_with("GET /a?b=c HTTP/1.1\r\nHost: example.org:8080\r\nUser-Agent: test/1\r\n"),
            "{text}"
        );
        assert!(text.ends_with("If-None-Match: \"x\"\r\n\r\n"), "{text}");
        for (page, target, referer) in [
            ("https://u:p@a.test/x?y#z", "https://a.test/1.png", Some("https://a.test/x?y")),
            ("https://a.test/x?y", "https://b.test/1.png", Some("https://a.test/")),
            ("http://a.test:81/x", "https://a.test/1.png", Some("http://a.test:81/")),
            ("https://a.test/x", "http://a.test/1.png", None),
        ] {
            let mut request = FetchRequest::new(target.parse().unwrap());
            request.set_referer(&page.parse().unwrap());
            assert_eq!(request.referer.as_deref(), referer, "{page} {target}");
            let sent = String::from_utf8(request.to_bytes(&settings, &[]).to_vec()).unwrap();
            assert_eq!(sent.lines().find_map(|line| line.strip_prefix("Referer: ")), referer);
        }
        let form = Some("a=1&b=%C3%A9".into());
        let bytes = FetchRequest { form, ..FetchRequest::new("http://hub.test".parse().unwrap()) }
            .to_bytes(&settings, &[("Cookie".to_owned(), "n=v".to_owned())]);
        let text = std::str::from_utf8(&bytes).unwrap();
        assert!(text.starts_with("POST / HTTP/1.1\r\n"), "{text}");
        assert!(text.contains("\r\nCookie: n=v\r\n"), "{text}");
        assert!(text.ends_with("Content-Length: 12\r\n\r\na=1&b=%C3%A9"), "{text}");
        assert!(!text.contains("Accept-Encoding"), "{text}");
        settings.compression = Compression::On;
        let request = FetchRequest::new("http://a.test/".parse().unwrap());
        let sent = String::from_utf8(request.to_bytes(&settings, &[]).to_vec()).unwrap();
        assert!(sent.contains("\r\nAccept-Encoding: gzip, br\r\n"), "{sent}");
    }

    #[test]
    fn a_tag_of_a_compressed_answer_stands_for_the_plain_one_too() {
        for (tag, list) in [
            ("\"1-2\"", "\"1-2\""),
            ("\"1-2-gzip\"", "\"1-2-gzip\", \"1-2\""),
            ("W/\"1-2--gzip\"", "W/\"1-2--gzip\", W/\"1-2\""),
            ("\"1-2-br\"", "\"1-2-br\", \"1-2\""),
            ("1-2-gzip", "1-2-gzip"),
        ] {
            assert_eq!(super::any_coding(tag), list);
        }
    }
}
