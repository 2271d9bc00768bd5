//! The table of all fields: names, types, meanings. Help, messages, the reference and plans are all based on it.

use archive_base::decisions::DecisionVerdict;
use archive_grammar::QueryRows;
use archive_web::parse::{PAGE_TYPES, Validity};

/// A field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Column {
    Url,
    Host,
    Site,
    Type,
    ContentType,
    Status,
    ContentStatus,
    Title,
    Language,
    Tld,
    Importance,
    Score,
    Pages,
    Urls,
    Captures,
    Attempts,
    Failures,
    Versions,
    Html,
    Xml,
    Other,
    FirstSeen,
    LastSeen,
    LastAnswer,
    LastAttempt,
    FailingSince,
    Died,
    Recaptured,
    Changed,
    Depth,
    Hop,
    Via,
    Seed,
    Refusal,
    Redirect,
    ChangeRate,
    Freshness,
    NextVisit,
    Parts,
    PartsAge,
    PartsRight,
    Rating,
    Verdict,
    Tags,
    Collections,
    RatedBy,
    Time,
    Content,
    Kind,
    Change,
    Size,
    Stored,
    Digest,
    Server,
    Charset,
    Software,
    ResponseTime,
    Failure,
    Session,
    Path,
    Root,
    Namespace,
    Doctype,
    WellFormed,
    Valid,
    VersionTitle,
    Text,
    TextLength,
    DeclaredLanguage,
    DetectedLanguage,
    DeclaredCharset,
    DetectedCharset,
    Description,
    Keywords,
    Author,
    Licence,
    Headline,
    Published,
    Revised,
    Alt,
    Pictures,
    PicturesWithoutAlt,
    Width,
    Height,
    Format,
    LostTitle,
    LostText,
    LostPictures,
    Source,
    Target,
    LinkKind,
    LinkText,
    LinkContext,
    LinkHeading,
    Element,
    Nofollow,
    Template,
    Method,
    /// Whether the row was captured. Only used for ordering; has no name in queries.
    Captured,
    /// An additional number from the store, by its index in `Rows::page_columns` or `Rows::site_columns`.
    Named(usize),
}

/// The type of a field's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Text; case is ignored, except in URLs.
    Text,
    /// One of a few fixed words.
    Choice,
    /// A count or measure.
    Number,
    /// A duration in seconds.
    Span,
    /// A point in time.
    Time,
}

/// Where a field's value comes from, cheapest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cost {
    /// The row itself.
    Row,
    /// A table or log of the state.
    Look,
    /// The records of a capture, which are read and decompressed; document structure is also in the index.
    Record,
}

/// An entry of the table.
pub(crate) struct FieldEntry {
    pub(crate) column: Column,
    pub(crate) name: &'static str,
    /// The kinds of rows that have the field.
    pub(crate) of: &'static [QueryRows],
    pub(crate) kind: ColumnKind,
    pub(crate) cost: Cost,
    pub(crate) meaning: &'static str,
}

const P: &[QueryRows] = &[QueryRows::Pages];
const S: &[QueryRows] = &[QueryRows::Sites];
const H: &[QueryRows] = &[QueryRows::Hosts];
const L: &[QueryRows] = &[QueryRows::Links];
const C: &[QueryRows] = &[QueryRows::Captures, QueryRows::Versions];
const PS: &[QueryRows] = &[QueryRows::Pages, QueryRows::Sites];
const PH: &[QueryRows] = &[QueryRows::Pages, QueryRows::Hosts];
const SH: &[QueryRows] = &[QueryRows::Sites, QueryRows::Hosts];
const PSH: &[QueryRows] = &[QueryRows::Pages, QueryRows::Sites, QueryRows::Hosts];
const PC: &[QueryRows] = &[QueryRows::Pages, QueryRows::Captures, QueryRows::Versions];
const PHC: &[QueryRows] = &[QueryRows::Pages, QueryRows::Hosts, QueryRows::Captures, QueryRows::Versions];
const PSHC: &[QueryRows] =
    &[QueryRows::Pages, QueryRows::Sites, QueryRows::Hosts, QueryRows::Captures, QueryRows::Versions];

const fn known(
    column: Column,
    name: &'static str,
    of: &'static [QueryRows],
    kind: ColumnKind,
    cost: Cost,
    meaning: &'static str,
) -> FieldEntry {
    FieldEntry { column, name, of, kind, cost, meaning }
}

/// All fields except `Column::Named`.
pub(crate) const KNOWN: [FieldEntry; 98] = {
    use Column as C;
    use ColumnKind::{Choice, Number, Span, Text, Time};
    use Cost::{Look, Record, Row};
    [
        known(C::Importance, "importance", PS, Number, Row, "mean 1 over all known pages, or sites"),
        known(C::Score, "score", P, Number, Row, "how well a page answers `text contains`"),
        known(C::Url, "url", PC, Text, Look, "the URL"),
        known(C::Method, "method", PC, Text, Look, "the method of the request: GET, or what an import has"),
        known(C::Host, "host", PHC, Text, Look, "the host, with its port if that is not the usual one"),
        known(C::Site, "site", PSHC, Text, Look, "the site: a group of hosts, mostly a domain"),
        known(
            C::Tld,
            "tld",
            PSHC,
            Text,
            Look,
            "the top-level domain: the last label of the host, as in `org`",
        ),
        known(C::Title, "title", P, Text, Look, "the title of the newest content"),
        known(C::VersionTitle, "title", C, Text, Record, "the title"),
        known(
            C::Type,
            "type",
            P,
            Choice,
            Row,
            "what its newest content is: html, xml (feeds and sitemaps too), feed, sitemap, style, script, image, text, pdf, other",
        ),
        known(C::ContentType, "content_type", PC, Text, Look, "the media type, of a page's newest content"),
        known(C::Language, "language", P, Text, Look, "of the newest content, as in `en`"),
        known(C::Status, "status", PC, Number, Row, "the HTTP status, of a page's newest answer"),
        known(C::ContentStatus, "content_status", P, Number, Row, "the HTTP status of the newest content"),
        known(C::Depth, "depth", P, Number, Row, "links from the nearest seed"),
        known(C::Pages, "pages", SH, Number, Row, "captured pages"),
        known(C::Urls, "urls", H, Number, Look, "known URLs, captured or not"),
        known(C::Captures, "captures", PSH, Number, Row, "captures with content"),
        known(C::Attempts, "attempts", PH, Number, Row, "how often it was asked for, whatever came of it"),
        known(C::Failures, "failures", H, Number, Row, "attempts that nothing answered"),
        known(
            C::Versions,
            "versions",
            P,
            Number,
            Row,
            "captures with content whose bytes are other than before",
        ),
        known(C::Html, "html", S, Number, Row, "captured HTML pages"),
        known(C::Xml, "xml", S, Number, Row, "captured XML pages, feeds and sitemaps too"),
        known(C::Other, "other", S, Number, Row, "other captured pages"),
        known(C::FirstSeen, "first_seen", PS, Time, Row, "the first capture with content"),
        known(C::LastSeen, "last_seen", PS, Time, Row, "the newest capture with content"),
        known(C::LastAnswer, "last_answer", P, Time, Row, "the newest answer, an error too"),
        known(C::LastAttempt, "last_attempt", P, Time, Row, "the newest attempt, answered or not"),
        known(
            C::FailingSince,
            "failing_since",
            P,
            Time,
            Row,
            "the first attempt since the newest content; empty while that is there",
        ),
        known(
            C::Died,
            "died",
            P,
            Time,
            Row,
            "since when its newest content is gone, if the newest attempt failed or found 404 or 410",
        ),
        known(
            C::Recaptured,
            "recaptured",
            PC,
            Span,
            Look,
            "the shortest time between two captures with content; of a capture, the time since the one before",
        ),
        known(C::Changed, "changed", P, Time, Row, "the first capture of the newest version"),
        known(C::Hop, "hop", P, Text, Look, "the link that led here: L link, E embedded, R redirect, M map"),
        known(C::Via, "via", P, Text, Look, "the URL of the page that led here"),
        known(C::Seed, "seed", P, Choice, Look, "whether it is a seed"),
        known(C::Refusal, "refusal", P, Choice, Look, "why it is not fetched"),
        known(C::Redirect, "redirect", P, Text, Look, "the URL to which it redirects"),
        known(C::ChangeRate, "change_rate", P, Number, Look, "expected changes a day"),
        known(
            C::Freshness,
            "freshness",
            P,
            Number,
            Look,
            "how probably its page has not changed since, from 0 to 1",
        ),
        known(
            C::NextVisit,
            "next_visit",
            P,
            Time,
            Look,
            "when a refresh is due, if as much is fetched a day as so far",
        ),
        known(
            C::Parts,
            "parts",
            PC,
            Number,
            Look,
            "its parts (style sheets, pictures and so on), by its newest links",
        ),
        known(
            C::PartsAge,
            "parts_age",
            PC,
            Span,
            Look,
            "the longest time between it and the nearest capture of a part",
        ),
        known(
            C::PartsRight,
            "parts_right",
            PC,
            Number,
            Look,
            "the share of its parts that are probably what the server gave then, from 0 to 1",
        ),
        known(C::Rating, "rating", PSH, Number, Look, "the mean of people's ratings, 1 to 4"),
        known(C::Verdict, "verdict", PSH, Choice, Look, "what people decided on it"),
        known(C::Tags, "tags", PSH, Text, Look, "its tags, in order, as in `law, open data`"),
        known(C::Collections, "collections", PSH, Text, Look, "the collections it is in, in order"),
        known(C::RatedBy, "rated_by", PSH, Text, Look, "who rated it, in order"),
        known(C::Time, "time", C, Time, Row, "when"),
        known(C::Content, "content", C, Choice, Row, "whether it shows what stood at the URL"),
        known(
            C::Kind,
            "kind",
            C,
            Choice,
            Row,
            "what was stored; not-modified is a 304, resource came without HTTP",
        ),
        known(C::Change, "change", C, Choice, Row, "what differs from the version before"),
        known(C::Size, "size", PHC, Number, Look, "bytes of the payload; of a host, of all of them"),
        known(C::Stored, "stored", PC, Number, Look, "bytes of the compressed main record"),
        known(C::Digest, "digest", PC, Text, Look, "the first half of the payload's digest, hexadecimal"),
        known(C::Server, "server", PC, Text, Record, "the header Server"),
        known(C::Charset, "charset", PC, Text, Record, "the charset that the header Content-Type names"),
        known(C::Software, "software", PC, Text, Look, "the program that wrote the WARC file it is in"),
        known(C::ResponseTime, "response_time", PC, Span, Record, "from the request to the last byte"),
        known(C::Failure, "failure", PC, Text, Record, "why nothing answered the newest attempt"),
        known(
            C::Session,
            "session",
            PC,
            Choice,
            Record,
            "what the server knew of its visitor; wall if there was only a redirect without cookies",
        ),
        known(C::Path, "hops", PC, Text, Record, "the kinds of links from a seed, a letter each"),
        known(C::Root, "root", PC, Text, Record, "the name of an XML document's root element"),
        known(C::Namespace, "namespace", PC, Text, Record, "the namespace of that element"),
        known(C::Doctype, "doctype", PC, Text, Record, "an XML document's type: name and public identifier"),
        known(
            C::WellFormed,
            "well_formed",
            PC,
            Choice,
            Record,
            "whether an XML document was well-formed when it was captured",
        ),
        known(
            C::Valid,
            "valid",
            PC,
            Choice,
            Record,
            "whether an XML document is as its document type declares",
        ),
        known(C::Text, "text", PC, Text, Record, "its title and visible text; `contains` is by whole words"),
        known(C::TextLength, "text_length", PC, Number, Record, "the characters of its visible text"),
        known(
            C::DeclaredLanguage,
            "declared_language",
            PC,
            Text,
            Record,
            "the language that it or its server declares, as in `en-gb`",
        ),
        known(
            C::DetectedLanguage,
            "detected_language",
            PC,
            Text,
            Record,
            "the language that its text is in, a guess",
        ),
        known(
            C::DeclaredCharset,
            "declared_charset",
            PC,
            Text,
            Record,
            "the charset that its server or itself declares, as in `windows-1252`",
        ),
        known(
            C::DetectedCharset,
            "detected_charset",
            PC,
            Text,
            Record,
            "the charset that its bytes are in; a guess where they are not valid UTF-8",
        ),
        known(
            C::Description,
            "description",
            PC,
            Text,
            Record,
            "what it says that it is about (meta, Dublin Core, Open Graph, JSON-LD, feeds)",
        ),
        known(
            C::Keywords,
            "keywords",
            PC,
            Text,
            Record,
            "its keywords (meta, Dublin Core, JSON-LD, categories of feeds)",
        ),
        known(C::Author, "author", PC, Text, Record, "who it says has written it"),
        known(C::Licence, "licence", PC, Text, Record, "the URL or text of the licence that it names"),
        known(C::Headline, "headline", PC, Text, Record, "its headline (JSON-LD, Open Graph, Dublin Core)"),
        known(C::Published, "published", PC, Time, Record, "when it says that it was published"),
        known(C::Revised, "revised", PC, Time, Record, "when it says that it was last changed"),
        known(C::Alt, "alt", PC, Text, Record, "the alternative texts of its pictures, a bar between them"),
        known(C::Pictures, "pictures", PC, Number, Record, "pictures in an HTML page"),
        known(
            C::PicturesWithoutAlt,
            "pictures_without_alt",
            PC,
            Number,
            Record,
            "those that have no alternative text, not even an empty one",
        ),
        known(C::Width, "width", PC, Number, Record, "the width of a picture file in pixels"),
        known(C::Height, "height", PC, Number, Record, "its height"),
        known(
            C::Format,
            "format",
            PC,
            Text,
            Record,
            "what its bytes are, whatever the server says, as in `png`, `zip` or `pdf 1.4`",
        ),
        known(
            C::LostTitle,
            "lost_title",
            PC,
            Choice,
            Record,
            "whether the version before had a title, and it has none",
        ),
        known(
            C::LostText,
            "lost_text",
            PC,
            Choice,
            Record,
            "whether less than a tenth is left of the text of the version before",
        ),
        known(
            C::LostPictures,
            "lost_pictures",
            PC,
            Choice,
            Record,
            "whether less than a tenth is left of the pictures of the version before",
        ),
        known(C::Source, "source", L, Text, Look, "the URL of the page with the link"),
        known(C::Target, "target", L, Text, Look, "the URL it leads to"),
        known(C::LinkKind, "kind", L, Choice, Row, "its role"),
        known(
            C::LinkText,
            "text",
            L,
            Text,
            Record,
            "its texts, in the newest version of the page with the link",
        ),
        known(
            C::LinkContext,
            "context",
            L,
            Text,
            Record,
            "the sentence or item of a list around its first text",
        ),
        known(C::LinkHeading, "heading", L, Text, Record, "the heading above that"),
        known(C::Element, "element", L, Text, Row, "where it stands, as in \"a/@href\""),
        known(C::Nofollow, "nofollow", L, Choice, Row, "whether its author asks not to follow it"),
        known(C::Template, "template", L, Choice, Row, "whether it is in navigation, header or footer"),
    ]
};

/// Aliases of fields; a field's own name takes precedence.
pub(crate) const ALIASES: [(&str, &str); 21] = [
    ("license", "licence"),
    ("rights", "licence"),
    ("creator", "author"),
    ("top_level_domain", "tld"),
    ("tag", "tags"),
    ("collection", "collections"),
    ("last_changed", "changed"),
    ("domain", "site"),
    ("mime", "content_type"),
    ("mime_type", "content_type"),
    ("lang", "language"),
    ("uri", "url"),
    ("kind", "type"),
    ("rank", "importance"),
    ("bytes", "size"),
    ("length", "size"),
    ("date", "time"),
    ("error", "failure"),
    ("reason", "failure"),
    ("last_capture", "last_seen"),
    ("duration", "response_time"),
];

/// The field that is searched by words in the index.
pub(crate) const TEXT: &str = "text";

/// The ending of a field's name in queries as of another time, where the field is not known as of then: what it is today.
pub(crate) const TODAY: &str = "_today";

/// The name of `importance` in queries as of another time.
pub const IMPORTANCE_TODAY: &str = "importance_today";

/// Values of yes/no fields: `seed`, `nofollow`, `template`, `well_formed`.
pub(crate) const YES_NO: [&str; 2] = ["yes", "no"];

/// The value of a yes/no field.
pub(crate) fn yes_no(is_so: bool) -> &'static str {
    let [yes, no] = YES_NO;
    if is_so { yes } else { no }
}

/// The `kind` of a 304 response.
pub(crate) const NOT_MODIFIED: &str = "not-modified";

/// The `kind` of attempts that nothing answered, and of what was erased.
pub(crate) const FAILED: &str = "failed";
pub(crate) const ERASED: &str = "erased";

/// The `kind` of documents that other tools stored without an HTTP response.
pub(crate) const RESOURCE: &str = "resource";

/// Values of a capture's `kind`, in the order of [`archive_books::prepared::capture_kind`].
pub(crate) const CAPTURE_KINDS: [&str; 6] = ["response", "identical", NOT_MODIFIED, RESOURCE, FAILED, ERASED];

/// Values of a capture's `change`.
pub(crate) const CHANGES: [&str; 2] = ["content", "bytes"];

/// Values of a link's `kind`, with their Heritrix hop letters.
pub(crate) const LINK_KINDS: [(&str, char); 6] = [
    ("link", 'L'),
    ("embed", 'E'),
    ("redirect", 'R'),
    ("sitemap", 'M'),
    ("prerequisite", 'P'),
    ("guess", 'X'),
];

/// A related row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Via {
    Site,
    Host,
    Page,
    Source,
    Target,
}

impl Via {
    pub(crate) const EACH: [(Self, &'static str); 5] = [
        (Self::Site, "site"),
        (Self::Host, "host"),
        (Self::Page, "page"),
        (Self::Source, "source"),
        (Self::Target, "target"),
    ];

    /// The kind of the related row, seen from a row of `target`; `None` if there is no such relation.
    pub(crate) fn of(self, target: QueryRows) -> Option<QueryRows> {
        let pages = matches!(target, QueryRows::Captures | QueryRows::Versions);
        match self {
            Self::Site => {
                (pages || matches!(target, QueryRows::Pages | QueryRows::Hosts)).then_some(QueryRows::Sites)
            }
            Self::Host => (pages || target == QueryRows::Pages).then_some(QueryRows::Hosts),
            Self::Page => pages.then_some(QueryRows::Pages),
            Self::Source | Self::Target => (target == QueryRows::Links).then_some(QueryRows::Pages),
        }
    }
}

/// A field of a row, or of a related row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FieldPath {
    pub(crate) via: Option<Via>,
    pub(crate) column: Column,
}

impl From<Column> for FieldPath {
    fn from(column: Column) -> Self {
        Self { via: None, column }
    }
}

impl Column {
    fn known(self) -> Option<&'static FieldEntry> {
        KNOWN.iter().find(|known| known.column == self)
    }

    pub(crate) fn kind(self) -> ColumnKind {
        self.known().map_or(ColumnKind::Number, |known| known.kind)
    }

    pub(crate) fn cost(self) -> Cost {
        self.known().map_or(Cost::Row, |known| known.cost)
    }

    /// Whether the field's value is in a capture's records.
    pub(crate) fn is_of_record(self) -> bool {
        matches!(self, Self::Server | Self::Charset | Self::Failure | Self::Path | Self::ResponseTime)
    }

    /// The possible values of a [`ColumnKind::Choice`] field.
    pub(crate) fn choices(self) -> Vec<&'static str> {
        match self {
            Self::Type => PAGE_TYPES.to_vec(),
            Self::Content
            | Self::Seed
            | Self::Nofollow
            | Self::Template
            | Self::WellFormed
            | Self::LostTitle
            | Self::LostText
            | Self::LostPictures => YES_NO.to_vec(),
            Self::Valid => Validity::EACH.map(Validity::name).to_vec(),
            Self::Kind => CAPTURE_KINDS.to_vec(),
            Self::Session => {
                archive_books::ledger::Session::EACH.map(archive_books::ledger::Session::name).to_vec()
            }
            Self::Change => CHANGES.to_vec(),
            Self::LinkKind => LINK_KINDS.map(|(name, _)| name).to_vec(),
            Self::Verdict => DecisionVerdict::EACH.map(DecisionVerdict::name).to_vec(),
            Self::Refusal => {
                archive_books::ledger::Refusal::ALL.map(archive_books::ledger::Refusal::name).to_vec()
            }
            _ => Vec::new(),
        }
    }

    /// Whether the field ignores case; the path of a URL does not.
    pub(crate) fn folds_case(self) -> bool {
        !matches!(
            self,
            Self::Url
                | Self::Via
                | Self::Redirect
                | Self::Source
                | Self::Target
                | Self::Path
                | Self::Hop
                | Self::Namespace
        )
    }

    /// Whether the field describes a whole XML document.
    pub(crate) fn is_of_structure(self) -> bool {
        matches!(self, Self::Root | Self::Namespace | Self::Doctype | Self::WellFormed | Self::Valid)
    }

    /// Whether the field is read from the payload of a capture.
    pub(crate) fn is_of_payload(self) -> bool {
        self.is_lost()
            || matches!(
                self,
                Self::VersionTitle
                    | Self::Text
                    | Self::TextLength
                    | Self::DeclaredLanguage
                    | Self::DetectedLanguage
                    | Self::DeclaredCharset
                    | Self::DetectedCharset
                    | Self::Description
                    | Self::Keywords
                    | Self::Author
                    | Self::Licence
                    | Self::Headline
                    | Self::Published
                    | Self::Revised
                    | Self::Alt
                    | Self::Pictures
                    | Self::PicturesWithoutAlt
                    | Self::Width
                    | Self::Height
                    | Self::Format
            )
    }

    /// Whether the field compares a version with the one before.
    pub(crate) fn is_lost(self) -> bool {
        matches!(self, Self::LostTitle | Self::LostText | Self::LostPictures)
    }

    /// Whether the field is an estimate, based on the fetches of this and other pages.
    pub(crate) fn is_expected(self) -> bool {
        matches!(self, Self::ChangeRate | Self::Freshness | Self::NextVisit)
    }

    /// Whether the field compares a capture with the captures of its parts.
    pub(crate) fn is_of_parts(self) -> bool {
        matches!(self, Self::Parts | Self::PartsAge | Self::PartsRight)
    }

    /// Whether people decide the field.
    pub(crate) fn is_decided(self) -> bool {
        matches!(self, Self::Rating | Self::Verdict | Self::Tags | Self::Collections | Self::RatedBy)
    }

    /// Whether archives that are queried together may each have a different value for the same page: decisions made
    /// there, and estimates based on its other pages.
    pub(crate) fn is_of_one_archive(self) -> bool {
        self.is_decided() || self.is_expected() || self.is_of_parts()
    }

    /// Whether only the current value is known, so that the field is not available `as of` another time.
    pub(crate) fn is_of_today(self) -> bool {
        let is_computed = matches!(self, Self::Importance | Self::Named(_));
        let is_of_finding = matches!(self, Self::Depth | Self::Hop | Self::Via | Self::Seed);
        is_computed
            || is_of_finding
            || self.is_of_one_archive()
            || matches!(self, Self::Refusal | Self::Redirect)
    }
}

impl FieldPath {
    /// Whether only the current value is known: see [`Column::is_of_today`]. What hosts are is known as of now alone.
    pub(crate) fn is_of_today(self) -> bool {
        let is_name = matches!(self.column, Column::Host | Column::Site | Column::Tld);
        self.column.is_of_today() || self.via == Some(Via::Host) && !is_name
    }
}

/// A field's name as written in queries.
pub(crate) fn shown(name: &str) -> String {
    archive_grammar::FieldName::new(name).to_string()
}

/// The plural of a target's name.
pub(crate) fn plural(target: QueryRows) -> &'static str {
    match target {
        QueryRows::Pages => "pages",
        QueryRows::Sites => "sites",
        QueryRows::Hosts => "hosts",
        QueryRows::Captures => "captures",
        QueryRows::Versions => "versions",
        QueryRows::Links => "links",
    }
}
