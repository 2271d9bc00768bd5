//! The row of a capture.

use archive_books::ledger::DOCUMENT_STATUS;
use archive_storage::address::{registry_suffix, site_of, surt};
use archive_storage::segment::is_not_modified;
use archive_storage::warc::{HttpHead, Record, RecordType, media_type, parse_fields, split};
use archive_web::parse::DocumentKind;
use serde::{Deserialize, Serialize};
use url::Url;

use super::columns::Cell;
use super::languages;
use super::original::Original;
use super::page::Known;

/// Maximum bytes of a charset's name (RFC 2978, section 2.3).
const CHARSET_BYTES_MAX: usize = 40;

/// The values of a capture's row.
#[derive(Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) surt: String,
    pub(super) url: String,
    pub(super) host: HostParts,
    pub(super) protocol: String,
    pub(super) port: Option<i32>,
    pub(super) path: Option<String>,
    pub(super) query: Option<String>,
    /// Milliseconds since 1970.
    pub(super) time: i64,
    /// 0 for captures without HTTP; the status of the original, if any, for captures that were not modified.
    pub(super) status: i32,
    pub(super) redirect: Option<String>,
    pub(super) digest: Option<String>,
    pub(super) mime: Option<String>,
    pub(super) detected: Option<String>,
    pub(super) charset: Option<String>,
    pub(super) languages: Option<String>,
    pub(super) truncated: Option<String>,
    pub(super) file: String,
    pub(super) offset: i32,
    pub(super) length: i32,
    pub(super) segment: String,
    pub(super) crawl: String,
    pub(super) subset: String,
    /// The kind of revisit; absent for captures with a payload of their own.
    pub(super) revisit: Option<String>,
    pub(super) title: Option<String>,
    pub(super) page: Known,
    pub(super) text: Option<String>,
}

/// Facts about a capture that its records don't hold.
pub(super) struct RowContext {
    pub(super) original: Option<Original>,
    pub(super) page: Known,
    /// The text, if texts are requested.
    pub(super) text: Option<String>,
    pub(super) segment: u32,
    pub(super) file: String,
}

impl Row {
    /// Returns the row of a capture. Returns `None` for captures without a response, and for those whose offset exceeds
    /// the 32 bits that Common Crawl's column has; segments are closed long before. A revisit takes missing values from
    /// its original.
    pub(super) fn of(
        records: &[Record],
        RowContext { original, page, text, segment, file }: RowContext,
        crawl: &str,
    ) -> Option<Self> {
        let original = original.as_ref();
        let main = records.first()?;
        if main.header.record_type() == RecordType::Metadata {
            return None;
        }
        let address = main.header.target_uri()?;
        let url = Url::parse(address).ok()?;
        let fields = records.last().map(|last| parse_fields(&last.content)).unwrap_or_default();
        let is_not_modified = main.header.get("WARC-Profile").is_some_and(is_not_modified);
        let field = |name: &str| fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let content_type = main.header.get("Content-Type");
        let is_http = content_type.is_some_and(|kind| kind.trim_start().starts_with("application/http"));
        let head = HttpHead::parse(&if is_http { split(&main.content).0 } else { bytes::Bytes::new() });
        let stated = if is_http { head.get("Content-Type") } else { content_type };
        let is_revisit = main.header.record_type() == RecordType::Revisit;
        let without_head = match (is_not_modified, is_http || is_revisit) {
            (true, _) => 304,
            (false, true) => 0,
            (false, false) => i32::from(DOCUMENT_STATUS),
        };
        let status = match head.status() {
            Some(status) if !is_not_modified => i32::from(status),
            _ => original.map_or(without_head, |it| i32::from(it.status)),
        };
        let mime = stated.and_then(media_type);
        let document = field("document").or_else(|| Some(original?.document?.name()));
        let language = field("language").or_else(|| original?.language.as_deref());
        let title = field("title").or_else(|| original?.title.as_deref());
        let revisit = is_revisit.then_some(if is_not_modified { "not-modified" } else { "identical" });
        let subset = match status {
            _ if url.path() == "/robots.txt" => "robotstxt",
            0 | 200 if !is_revisit => "warc",
            _ => "crawldiagnostics",
        };
        Some(Self {
            surt: surt(address),
            host: HostParts::of(url.host_str().unwrap_or_default()),
            protocol: url.scheme().to_owned(),
            port: url.port().map(i32::from),
            path: Some(url.path().to_owned()),
            query: url.query().map(str::to_owned),
            time: main.header.date()?.timestamp_millis(),
            status,
            redirect: head.get("Location").filter(|_| (300..400).contains(&status)).map(str::to_owned),
            digest: main.header.get("WARC-Payload-Digest").map(str::to_owned),
            mime: mime.or_else(|| original?.mime.clone()),
            detected: document.and_then(detected),
            charset: stated.and_then(charset),
            languages: language.and_then(languages::code),
            truncated: main
                .header
                .get("WARC-Truncated")
                .filter(|_| main.header.record_type() == RecordType::Response)
                .map(str::to_owned),
            file,
            offset: i32::try_from(main.offset).ok()?,
            length: i32::try_from(main.length).ok()?,
            segment: segment.to_string(),
            crawl: crawl.to_owned(),
            subset: subset.to_owned(),
            revisit: revisit.map(str::to_owned),
            title: title.map(str::to_owned),
            page,
            text,
            url: address.to_owned(),
        })
    }
}

/// The name of a host and its parts according to the public suffix list.
#[derive(Serialize, Deserialize)]
pub(super) struct HostParts {
    pub(super) name: String,
    /// Labels, the last one first; empty for an IP address.
    labels: Vec<String>,
    pub(super) registry_suffix: Option<String>,
    pub(super) registered_domain: Option<String>,
    pub(super) private_suffix: Option<String>,
    pub(super) private_domain: Option<String>,
}

impl HostParts {
    fn of(name: &str) -> Self {
        let is_address = name.starts_with('[') || name.parse::<std::net::Ipv4Addr>().is_ok();
        let is_name = !is_address && name.contains('.');
        let labels = if is_address { Vec::new() } else { name.rsplit('.').map(str::to_owned).collect() };
        let registry = registry_suffix(name).filter(|_| is_name);
        let private_domain = Some(site_of(name)).filter(|site| is_name && site.contains('.'));
        Self {
            name: name.to_owned(),
            labels,
            registry_suffix: registry.map(str::to_owned),
            registered_domain: registry.and_then(|suffix| one_more_label(name, suffix)).map(str::to_owned),
            private_suffix: private_domain
                .and_then(|domain| domain.split_once('.'))
                .map(|(_, suffix)| suffix.to_owned()),
            private_domain: private_domain.map(str::to_owned),
        }
    }

    /// Returns the label at a position counted from the end, starting at 1.
    pub(super) fn label(&self, place: usize) -> Cell {
        self.labels.get(place - 1).map_or(Cell::Null, Cell::from)
    }

    /// Returns the labels from the last to the first.
    pub(super) fn reversed(&self) -> Cell {
        if self.labels.is_empty() { Cell::from(&self.name) } else { Cell::Text(self.labels.join(".")) }
    }
}

/// Returns the end of a name that consists of a suffix and the label before it.
fn one_more_label<'a>(name: &'a str, suffix: &str) -> Option<&'a str> {
    let before = name.strip_suffix(suffix)?.strip_suffix('.')?;
    let start = before.rfind('.').map_or(0, |dot| dot + 1);
    name.get(start..)
}

/// Returns the charset of a content type, in upper case as in Common Crawl.
fn charset(content_type: &str) -> Option<String> {
    let parameters = content_type.split(';').skip(1);
    let named = parameters.filter_map(|parameter| parameter.split_once('='));
    let mut values = named.filter(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
    let (_, value) = values.next()?;
    let value = value.trim().trim_matches('"');
    (1..=CHARSET_BYTES_MAX).contains(&value.len()).then(|| value.to_ascii_uppercase())
}

/// Returns the media type of a document kind that the parser found.
fn detected(name: &str) -> Option<String> {
    let kind = DocumentKind::all().find(|kind| kind.name() == name)?;
    let mime = match kind {
        DocumentKind::Html => "text/html",
        DocumentKind::Xml | DocumentKind::Sitemap | DocumentKind::OaiPmh => "application/xml",
        DocumentKind::Feed => "application/rss+xml",
        DocumentKind::Css => "text/css",
        DocumentKind::Text => "text/plain",
        DocumentKind::Pdf => "application/pdf",
        DocumentKind::Script => "text/javascript",
        DocumentKind::Json => "application/json",
        DocumentKind::Mail => "message/rfc822",
        _ => return None,
    };
    Some(mime.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{HostParts, charset};

    #[test]
    fn hosts_are_taken_apart_as_common_crawl_does() {
        let host = HostParts::of("www.a.blogspot.example.co.uk");
        assert_eq!(host.registry_suffix.as_deref(), Some("co.uk"));
        assert_eq!(host.registered_domain.as_deref(), Some("example.co.uk"));
        let host = HostParts::of("user.github.io");
        assert_eq!(
            (host.registry_suffix.as_deref(), host.registered_domain.as_deref()),
            (Some("io"), Some("github.io"))
        );
        assert_eq!(host.private_suffix.as_deref(), Some("github.io"));
        assert_eq!(host.private_domain.as_deref(), Some("user.github.io"));
        let host = HostParts::of("127.0.0.1");
        assert_eq!((host.registry_suffix, host.private_domain, host.labels.len()), (None, None, 0));
    }

    #[test]
    fn charsets_are_read() {
        assert_eq!(charset("text/html; charset=\"utf-8\"; x=1").as_deref(), Some("UTF-8"));
        assert_eq!(charset("text/html"), None);
    }
}
