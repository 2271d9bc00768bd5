//! Rows of hosts, captures and links, and details of pages and captures that are only looked up when needed.

use archive_storage::{CaptureId, HostId, SiteId, UrlId};
use chrono::{DateTime, Utc};

use super::columns::RESOURCE;
use crate::parse::charset_parameter;

/// A host: a name, with its port if that is not the usual one.
#[derive(Clone, Debug, PartialEq)]
pub struct HostRow {
    /// Its number.
    pub id: HostId,
    /// Its site.
    pub site: SiteId,
    /// Its name.
    pub name: String,
    /// Known URLs.
    pub urls: u32,
    /// Captured pages.
    pub pages: u32,
    /// Captures of them.
    pub captures: u32,
    /// Fetches that nothing answered.
    pub failures: u32,
    /// Bytes of all payloads.
    pub bytes: u64,
}

/// A capture: what one fetch of a page left.
#[derive(Clone, Debug, PartialEq)]
pub struct CaptureRow {
    /// Its number.
    pub id: CaptureId,
    /// Its page.
    pub page: UrlId,
    /// When.
    pub time: DateTime<Utc>,
    /// `response`, `identical`, `not-modified`, `resource`, `failed` or `erased`.
    pub kind: &'static str,
    /// HTTP status; none when nothing answered.
    pub status: Option<u16>,
    /// Media type; empty when unknown.
    pub content_type: String,
    /// Bytes of the payload; none when nothing answered.
    pub size: Option<u32>,
    /// Bytes of the compressed main record.
    pub stored: u32,
    /// First half of the payload's digest; zeros when there is none.
    pub digest: [u8; 16],
    /// Whether its meaningful content differs from that of the version before; so it does at the first version.
    pub content_changed: bool,
    /// Whether its bytes do.
    pub bytes_changed: bool,
}

impl CaptureRow {
    /// Whether it brought a document: an answer that is not an error, or a `resource`, which has no status.
    #[must_use]
    pub fn has_document(&self) -> bool {
        self.status == Some(200) || self.kind == RESOURCE
    }
}

/// A link of the newest version of a page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkRow {
    /// Its number in the order of the archive.
    pub id: u64,
    /// The page with the link.
    pub source: UrlId,
    /// Where it leads.
    pub target: UrlId,
    /// Its role, a letter as Heritrix has it.
    pub hop: char,
    /// Where it stands, for example `a/@href`.
    pub context: &'static str,
    /// Whether its author asks not to follow it.
    pub nofollow: bool,
    /// Whether it is in the page's template.
    pub template: bool,
}

/// What may be asked about the answer of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked<'a> {
    /// The header Server.
    Server,
    /// See [`Record::charset`].
    Charset,
    /// See [`Record::hops`].
    Hops,
    /// See [`Record::failure`].
    Failure,
    /// See [`Record::response_ms`]; in seconds.
    ResponseTime,
    /// The first header of this name.
    Header(&'a str),
}

/// What the records of a capture say besides its row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// Headers of the answer, as they came.
    pub headers: Vec<(String, String)>,
    /// From the request to the last byte, milliseconds; none if that was not noted.
    pub response_ms: Option<u64>,
    /// Why nothing answered.
    pub failure: Option<String>,
    /// The kinds of links from a seed, a letter each.
    pub hops: String,
    /// Title.
    pub title: Option<String>,
    /// Language: the primary subtag of its BCP 47 tag.
    pub language: Option<String>,
}

impl Record {
    /// The first header of this name, large and small letters alike.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The charset that `Content-Type` names.
    #[must_use]
    pub fn charset(&self) -> Option<String> {
        charset_parameter(self.header("content-type")?).map(str::to_lowercase)
    }
}

/// Details of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageDetail {
    /// The letter of the link that led here.
    Hop,
    /// The URL of the page that led here.
    Via,
    /// `yes` or `no`.
    Seed,
    /// The name of the reason for which it is not fetched.
    Refusal,
    /// The URL to which it redirects.
    Redirect,
    /// Expected changes a day.
    ChangeRate,
    /// How probably the copy is unchanged.
    Freshness,
    /// When a refresh is due.
    NextVisit,
}
