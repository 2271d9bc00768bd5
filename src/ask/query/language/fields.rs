//! What the language knows of fields beside their table: how they are reached, words that they have as values, and where
//! their values come from.

use archive_base::decisions::DecisionVerdict;
use archive_grammar::QueryRows;
use archive_web::parse::{PAGE_TYPES, Validity};

pub use super::table::ColumnKind;
use super::table::FieldEntry;
pub(crate) use super::table::{ALIASES, Column, Cost, KNOWN};

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

/// The value of [`Column::Robots`].
pub(crate) const ROBOTS_IGNORED: &str = "ignored";

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
            Self::Robots => vec![ROBOTS_IGNORED],
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

    /// Whether the field follows from what kind of link a link is.
    pub(crate) fn is_of_link_kind(self) -> bool {
        matches!(self, Self::LinkKind | Self::Element | Self::Nofollow | Self::Template)
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
                    | Self::Pronom
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
