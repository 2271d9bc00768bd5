//! Rows of hosts, captures and links, and details of pages and captures that are looked up only when needed.

use archive_storage::{CaptureId, HostId, SiteId, UrlId};
use archive_web::parse::charset_parameter;
use chrono::{DateTime, Utc};

use crate::query::language::{Column, FieldPath, Found, RESOURCE, Subject, Value, expr};

/// A host: a name, with its port unless that is the default.
#[derive(Clone, Debug, PartialEq)]
pub struct HostRow {
    /// The host's id.
    pub id: HostId,
    /// The host's site.
    pub site: SiteId,
    /// The host's name.
    pub name: String,
    /// Number of captured pages.
    pub pages: u32,
    /// Number of captures of these pages with content.
    pub captures: u32,
    /// Number of attempts, whatever came of them.
    pub attempts: u32,
    /// Number of fetches without a response.
    pub failures: u32,
    /// Bytes of all payloads.
    pub bytes: u64,
}

/// A capture: the result of one fetch of a page.
#[derive(Clone, Debug, PartialEq)]
pub struct CaptureRow {
    /// The capture's id.
    pub id: CaptureId,
    /// The captured page.
    pub page: UrlId,
    /// Time of the capture.
    pub time: DateTime<Utc>,
    /// Whether it shows what stood at its URL.
    pub is_content: bool,
    /// `response`, `identical`, `not-modified`, `resource`, `failed` or `erased`.
    pub kind: &'static str,
    /// HTTP status; `None` if there was no response.
    pub status: Option<u16>,
    /// Media type; empty when unknown.
    pub content_type: String,
    /// Bytes of the payload; `None` if there was no response.
    pub size: Option<u32>,
    /// Bytes of the compressed main record.
    pub stored: u32,
    /// First half of the payload's digest; zeros if there is none.
    pub digest: [u8; 16],
    /// Whether the meaningful content differs from that of the version before; true for the first version.
    pub content_changed: bool,
    /// Whether the bytes differ from those of the version before.
    pub bytes_changed: bool,
}

impl CaptureRow {
    /// Whether the capture has a document: the status is 200, or it is a `resource`, which has no status.
    #[must_use]
    pub fn has_document(&self) -> bool {
        self.status == Some(200) || self.kind == RESOURCE
    }
}

/// A link of the newest version of a page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkRow {
    /// Position among all links of the archive.
    pub id: u64,
    /// The page with the link.
    pub source: UrlId,
    /// The linked page.
    pub target: UrlId,
    /// The role of the link: a Heritrix hop letter.
    pub hop: char,
    /// Where the link is found, for example `a/@href`.
    pub context: &'static str,
    /// Whether the link is marked `nofollow`.
    pub nofollow: bool,
    /// Whether the link belongs to the page's template.
    pub template: bool,
}

/// What a query may ask about a capture's response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseField<'a> {
    /// The `Server` header.
    Server,
    /// See [`Record::charset`].
    Charset,
    /// See [`Record::hops`].
    Hops,
    /// See [`Record::failure`].
    Failure,
    /// See [`Record::session`].
    Session,
    /// See [`Record::robots`].
    Robots,
    /// See [`Record::response_ms`], but in seconds.
    ResponseTime,
    /// The first header of this name.
    Header(&'a str),
}

/// What the records of a capture say in addition to its row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// Response headers as received.
    pub headers: Vec<(String, String)>,
    /// Milliseconds from the request to the last byte; `None` if not recorded.
    pub response_ms: Option<u64>,
    /// Why there was no response.
    pub failure: Option<String>,
    /// Hop letters of the links from a seed.
    pub hops: String,
    /// What the server knew of its visitor.
    pub session: Option<&'static str>,
    /// `ignored` if it was fetched although robots.txt forbade it.
    pub robots: Option<&'static str>,
    /// The title.
    pub title: Option<String>,
    /// The language: the primary subtag of its BCP 47 tag.
    pub language: Option<String>,
}

impl Record {
    /// The first header of this name, ignoring ASCII case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The charset in the `Content-Type` header.
    #[must_use]
    pub fn charset(&self) -> Option<String> {
        charset_parameter(self.header("content-type")?).map(str::to_lowercase)
    }

    /// Answers from a self.
    pub(crate) fn answer(&self, asked: ResponseField<'_>) -> Value {
        match asked {
            ResponseField::Server => self.header("server").into(),
            ResponseField::Charset => self.charset().into(),
            ResponseField::Hops => self.hops.as_str().into(),
            ResponseField::Failure => self.failure.clone().into(),
            ResponseField::Session => self.session.into(),
            ResponseField::Robots => self.robots.into(),
            ResponseField::ResponseTime => self.response_ms.map_or(Value::Empty, seconds),
            ResponseField::Header(name) => self.header(name).into(),
        }
    }
}

/// A detail of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageDetail {
    /// The hop letter of the link through which the page was found.
    Hop,
    /// The URL of the page through which the page was found.
    Via,
    /// Whether the page is a seed: `yes` or `no`.
    Seed,
    /// The name of the reason why the page is not fetched.
    Refusal,
    /// The URL that the page redirects to.
    Redirect,
    /// Expected changes per day.
    ChangeRate,
    /// Probability that the copy is unchanged.
    Freshness,
    /// When the next refresh is due.
    NextVisit,
    /// The number of its parts. This and the following are as of a capture at this time in microseconds since 1970, or
    /// of the newest one that found the page.
    Parts(Option<i64>),
    /// The longest time between it and the nearest capture of a part, in seconds.
    PartsAge(Option<i64>),
    /// The expected share of parts that are what the server gave then.
    PartsRight(Option<i64>),
}

impl ResponseField<'static> {
    /// What a field asks about a response, if it does.
    pub(crate) fn of(field: Column) -> Option<Self> {
        match field {
            Column::Server => Some(ResponseField::Server),
            Column::Charset => Some(ResponseField::Charset),
            Column::Path => Some(ResponseField::Hops),
            Column::Failure => Some(ResponseField::Failure),
            Column::Session => Some(ResponseField::Session),
            Column::Robots => Some(ResponseField::Robots),
            Column::ResponseTime => Some(ResponseField::ResponseTime),
            _ => None,
        }
    }
}

/// A duration in seconds.
pub(crate) fn seconds(milliseconds: u64) -> Value {
    expr::number(milliseconds as f64 / 1000.0)
}

impl Subject for Record {
    fn field(&self, path: FieldPath) -> Found<Value> {
        Ok(ResponseField::of(path.column).map_or(Value::Empty, |asked| self.answer(asked)))
    }

    fn header(&self, name: &str) -> Found<Value> {
        Ok(self.header(name).into())
    }
}
