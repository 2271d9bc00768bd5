//! Parsed parameters of a query.

use archive_storage::address::surt;
use archive_storage::{Capture, CaptureKind};
use url::form_urlencoded;

use super::field::CdxField;
use super::filter::CdxFilter;
use super::{ANSWER_MAX, PAGE_ROWS};
use crate::address::{stamp, time_of};

/// Maximum number of filters, and of collapsed fields, in a query.
pub(super) const FILTERS_MAX: usize = 32;

/// The match type that selects the captures of one URL.
const EXACT: &str = "exact";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CdxOrder {
    /// By key, then by time.
    Key,
    Reverse,
    /// By the distance to a time, in seconds since 1970.
    Closest(i64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CdxOutput {
    Text,
    Json,
    Cdxj,
}

/// The keys that a query selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    /// The key of this URL.
    Exact(String),
    /// From one key (inclusive) to another (exclusive).
    Range(String, String),
}

pub(super) struct CdxQuery {
    pub keys: Keys,
    /// A text that every selected host name contains; may be empty.
    pub host: String,
    /// Timestamps, compared as strings.
    pub from: Option<String>,
    pub to: Option<String>,
    pub filters: Vec<CdxFilter>,
    pub collapses: Vec<(CdxField, usize)>,
    pub fields: Option<Vec<CdxField>>,
    pub order: CdxOrder,
    pub output: CdxOutput,
    pub limit: usize,
    pub page: Option<usize>,
    pub page_rows: usize,
    pub counts_pages: bool,
}

impl CdxQuery {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let parameters = parameters(text);
        let get = |name: &str| first(&parameters, name);
        let all = |name: &'static str| {
            parameters.iter().filter(move |(found, _)| found == name).map(|(_, value)| value)
        };
        let url = get("url").ok_or("a query needs url=")?;
        let (keys, host) = keys(url, get("matchType"))?;
        let number = |name: &str| match get(name).map(str::parse::<usize>) {
            None => Ok(None),
            Some(Ok(number)) => Ok(Some(number)),
            Some(Err(_)) => Err(format!("{name}= wants a number")),
        };
        let time = |name: &str, filling| match get(name).map(digits) {
            Some(stamp) if stamp.is_empty() => {
                Err(format!("{name}= wants a timestamp, such as 2026 or 20260131100000"))
            }
            stamp => Ok(stamp.map(|stamp| padded(stamp, filling))),
        };
        let is_on =
            |name: &str| get(name).is_some_and(|value| !matches!(value, "0" | "false" | "no" | "off"));
        let closest = get("closest").map(|stamp| time_of(&digits(stamp)).timestamp());
        let order = match (closest, get("sort")) {
            (Some(time), _) => CdxOrder::Closest(time),
            (None, Some("closest")) => return Err("sort=closest needs closest=".to_owned()),
            (None, Some("reverse")) => CdxOrder::Reverse,
            (None, None | Some("default")) if !is_on("reverse") => CdxOrder::Key,
            (None, None | Some("default")) => CdxOrder::Reverse,
            (None, Some(other)) => return Err(format!("sort={other} is none of reverse, closest")),
        };
        let output = match get("output") {
            Some("json") => CdxOutput::Json,
            Some("text") => CdxOutput::Text,
            Some("cdxj") | None => CdxOutput::Cdxj,
            Some(other) => return Err(format!("output={other} is none of cdxj, json, text")),
        };
        let mut filters = Vec::new();
        for filter in all("filter").take(FILTERS_MAX + 1) {
            filters.push(CdxFilter::parse(filter)?);
        }
        let mut collapses: Vec<(CdxField, usize)> =
            all("collapse").take(FILTERS_MAX + 1).map(|text| collapse(text)).collect();
        if let Some(length) = number("collapseTime")? {
            collapses.extend([(CdxField::Timestamp, length), (CdxField::Status, usize::MAX)]);
        }
        if filters.len() > FILTERS_MAX || collapses.len() > FILTERS_MAX {
            return Err(format!("there are more than {FILTERS_MAX} filters"));
        }
        let fields = get("fl").or(get("fields")).map(|list| list.split(',').map(CdxField::named).collect());
        Ok(Self {
            keys,
            host,
            from: time(if get("from").is_some() { "from" } else { "from_ts" }, "10000101000000")?,
            to: time("to", "29991231235959")?,
            filters,
            collapses,
            fields,
            order,
            output,
            limit: number("limit")?.unwrap_or(ANSWER_MAX),
            page: number("page")?,
            page_rows: number("pageSize")?.unwrap_or(PAGE_ROWS).clamp(1, ANSWER_MAX),
            counts_pages: is_on("showNumPages"),
        })
    }

    /// How many of the first rows are sufficient for the answer; `None` if it needs all.
    pub(super) fn rows_wanted(&self) -> Option<usize> {
        let in_order = self.order == CdxOrder::Key && self.collapses.is_empty() && !self.counts_pages;
        in_order.then_some(if self.page.is_none() { self.limit.min(ANSWER_MAX) } else { self.limit })
    }

    /// Whether a capture is within the query's time range and has content.
    pub(super) fn takes(&self, capture: &Capture) -> bool {
        let is_early = self.from.as_ref().is_some_and(|from| stamp(capture.time) < *from);
        let is_late = self.to.as_ref().is_some_and(|to| stamp(capture.time) > *to);
        capture.kind != CaptureKind::Failed && !is_early && !is_late
    }
}

fn digits(stamp: &str) -> String {
    stamp.chars().filter(char::is_ascii_digit).collect()
}

/// Pads a timestamp to fourteen digits, even if the result is not a valid date.
fn padded(stamp: String, filling: &str) -> String {
    let rest = filling.get(stamp.len()..).unwrap_or_default();
    stamp + rest
}

/// `field` or `field:characters`
fn collapse(text: &str) -> (CdxField, usize) {
    let (field, length) = text.split_once(':').unwrap_or((text, ""));
    (CdxField::named(field), length.parse().unwrap_or(usize::MAX))
}

/// Whether a query, as it stands in an address, selects the captures of more than one URL, or may not be answered.
#[must_use]
pub fn asks_for_many(text: &str) -> bool {
    let parameters = parameters(text);
    let url = first(&parameters, "url").unwrap_or_default();
    matched(url, first(&parameters, "matchType")).1 != EXACT
}

fn parameters(text: &str) -> Vec<(String, String)> {
    form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

/// The first value of a parameter that is not empty.
fn first<'a>(parameters: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let mut values = parameters.iter().filter(|(found, value)| found == name && !value.is_empty());
    values.next().map(|(_, value)| value.as_str())
}

/// What a URL with a star, or a match type, selects by: a URL, and the match type.
fn matched<'a>(url: &'a str, match_type: Option<&'a str>) -> (&'a str, &'a str) {
    match (match_type, url.strip_prefix("*."), url.strip_suffix('*')) {
        (Some(match_type), ..) => (url, match_type),
        (None, Some(domain), _) => (domain, "domain"),
        (None, None, Some(prefix)) => (prefix, "prefix"),
        (None, None, None) => (url, EXACT),
    }
}

/// The keys selected by a URL and a match type, and the host in them.
fn keys(url: &str, match_type: Option<&str>) -> Result<(Keys, String), String> {
    let (url, match_type) = matched(url, match_type);
    let mut key = surt(url);
    let host_key = key.split(")/").next().unwrap_or_default().to_owned();
    // Names such as `urn:…` or `dns:…` have no host.
    let (name, port) = host_key.split_once(':').unwrap_or((&host_key, ""));
    let has_host = key.contains(")/") && port.bytes().all(|byte| byte.is_ascii_digit());
    let host = if has_host { name.split(',').rev().collect::<Vec<_>>().join(".") } else { String::new() };
    let keys = match match_type {
        EXACT => Keys::Exact(url.to_owned()),
        "prefix" => {
            for end in ['/', '?'] {
                if url.ends_with(end) && !key.ends_with(end) {
                    key.push(end);
                }
            }
            let end = after(&key);
            Keys::Range(key, end)
        }
        "host" => Keys::Range(format!("{host_key})/"), format!("{host_key}*")),
        "domain" => {
            let first = if host_key.contains(',') { ")/" } else { "," };
            Keys::Range(format!("{host_key}{first}"), format!("{host_key}-"))
        }
        other => return Err(format!("matchType={other} is none of exact, prefix, host, domain")),
    };
    Ok((keys, host))
}

/// The first string greater than all strings with this prefix. SURTs are ASCII.
fn after(key: &str) -> String {
    let mut end = key.to_owned();
    let last = end.pop().and_then(|last| char::from_u32(u32::from(last) + 1));
    end.extend(last);
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_as_pywb_has_them() {
        let range = |first: &str, end: &str| Keys::Range(first.to_owned(), end.to_owned());
        for (url, match_type, expected) in [
            (
                "http://example.com/path/file.html",
                Some("prefix"),
                range("com,example)/path/file.html", "com,example)/path/file.htmm"),
            ),
            ("http://example.com/path/", Some("prefix"), range("com,example)/path/", "com,example)/path0")),
            ("http://example.com/path?", Some("prefix"), range("com,example)/path?", "com,example)/path@")),
            ("http://example.com/path*", None, range("com,example)/path", "com,example)/pati")),
            ("http://example.com/path/file.html", Some("host"), range("com,example)/", "com,example*")),
            ("*.example.com", None, range("com,example)/", "com,example-")),
            ("com", Some("domain"), range("com,", "com-")),
        ] {
            assert_eq!(keys(url, match_type).map(|(keys, _)| keys), Ok(expected), "{url}");
        }
        assert_eq!(
            keys("http://www.a.example.com:8080/", Some("host")).map(|(_, host)| host).as_deref(),
            Ok("a.example.com")
        );
        for url in ["urn:pageinfo:https://a.org/", "dns:a.org"] {
            assert_eq!(keys(url, Some("prefix")).map(|(_, host)| host).as_deref(), Ok(""), "{url}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (query, problem) in [
            ("", "url="),
            ("url=a&matchType=none", "matchType"),
            ("url=a&limit=x", "limit"),
            ("url=a&sort=up", "sort"),
            ("url=a&sort=closest", "closest"),
            ("url=a&output=xml", "output"),
            ("url=a&filter=~status:(", "regular"),
        ] {
            let mistake = CdxQuery::parse(query).err().unwrap();
            assert!(mistake.contains(problem), "{query}: {mistake}");
        }
        let filters = |count: usize| format!("url=a{}", "&filter=status:2".repeat(count));
        assert!(CdxQuery::parse(&filters(FILTERS_MAX)).is_ok());
        assert!(CdxQuery::parse(&filters(FILTERS_MAX + 1)).is_err());
    }
}
