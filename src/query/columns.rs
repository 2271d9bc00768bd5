//! The fields of pages and sites: names, types, and which of them a query sees when it does not choose.

use archive_grammar::{Target, nearest};

use super::rows::PageText;

/// A field of a page or site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Column {
    Url,
    Host,
    Site,
    Type,
    ContentType,
    Status,
    Title,
    Language,
    Importance,
    Score,
    Pages,
    Captures,
    Versions,
    Html,
    Xml,
    Other,
    FirstSeen,
    LastSeen,
    Changed,
    Depth,
    /// Whether it was captured: orders rows, and has no name in queries.
    Captured,
    /// A further number of the store, by its index in `Rows::page_columns` or `Rows::site_columns`.
    Named(usize),
}

/// What sort of values a field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Text; large and small letters are alike, except in URLs.
    Text,
    /// One of the types of page.
    Type,
    /// A count or measure.
    Number,
    /// An instant.
    Time,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum On {
    Pages,
    Sites,
    Both,
}

/// Every field but the named ones: its name in queries, what it belongs to, its sort.
const COLUMNS: [(Column, &str, On, ColumnKind); 20] = [
    (Column::Importance, "importance", On::Both, ColumnKind::Number),
    (Column::Score, "score", On::Pages, ColumnKind::Number),
    (Column::Url, "url", On::Pages, ColumnKind::Text),
    (Column::Host, "host", On::Pages, ColumnKind::Text),
    (Column::Site, "site", On::Both, ColumnKind::Text),
    (Column::Title, "title", On::Pages, ColumnKind::Text),
    (Column::Type, "type", On::Pages, ColumnKind::Type),
    (Column::ContentType, "content_type", On::Pages, ColumnKind::Text),
    (Column::Language, "language", On::Pages, ColumnKind::Text),
    (Column::Status, "status", On::Pages, ColumnKind::Number),
    (Column::Depth, "depth", On::Pages, ColumnKind::Number),
    (Column::Pages, "pages", On::Sites, ColumnKind::Number),
    (Column::Captures, "captures", On::Both, ColumnKind::Number),
    (Column::Versions, "versions", On::Pages, ColumnKind::Number),
    (Column::Html, "html", On::Sites, ColumnKind::Number),
    (Column::Xml, "xml", On::Sites, ColumnKind::Number),
    (Column::Other, "other", On::Sites, ColumnKind::Number),
    (Column::FirstSeen, "first_seen", On::Both, ColumnKind::Time),
    (Column::LastSeen, "last_seen", On::Both, ColumnKind::Time),
    (Column::Changed, "changed", On::Pages, ColumnKind::Time),
];

/// Other names by which people call fields.
const ALIASES: [(&str, &str); 8] = [
    ("last_changed", "changed"),
    ("domain", "site"),
    ("mime", "content_type"),
    ("mime_type", "content_type"),
    ("lang", "language"),
    ("uri", "url"),
    ("kind", "type"),
    ("rank", "importance"),
];

/// The field that is searched but never shown.
pub(crate) const TEXT: &str = "text";

/// Why a name is no field.
pub(crate) struct Unknown {
    pub(crate) message: String,
    pub(crate) suggestion: Option<String>,
}

/// The fields of one target.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'a> {
    pub(crate) target: Target,
    /// Names of the store's further numbers.
    pub(crate) named: &'a [String],
}

impl Columns<'_> {
    /// The field called `name` (normal form).
    pub(crate) fn find(&self, name: &str) -> Result<Column, Unknown> {
        let proper = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, proper)| proper);
        if let Some((column, _, on, _)) = COLUMNS.iter().find(|(_, known, _, _)| *known == proper) {
            return if self.has(*on) { Ok(*column) } else { Err(self.elsewhere(name, *on)) };
        }
        if let Some(index) = self.named.iter().position(|known| known == name) {
            return Ok(Column::Named(index));
        }
        if name == TEXT && self.target == Target::Sites {
            return Err(self.elsewhere(name, On::Pages));
        }
        let aliases = ALIASES.iter().map(|(alias, _)| *alias);
        let meant = nearest(name, self.names().chain([TEXT]).chain(aliases));
        Err(Unknown {
            message: format!("there is no field `{}`", shown(name)),
            suggestion: Some(match meant {
                Some(meant) => format!("did you mean `{}`?", shown(meant)),
                None => format!("the fields are {}", self.names().map(shown).collect::<Vec<_>>().join(", ")),
            }),
        })
    }

    fn has(&self, on: On) -> bool {
        match on {
            On::Both => true,
            On::Pages => self.target == Target::Pages,
            On::Sites => self.target == Target::Sites,
        }
    }

    fn elsewhere(&self, name: &str, on: On) -> Unknown {
        let (here, there, ask) = match on {
            On::Sites => ("pages", "sites", "site"),
            On::Pages | On::Both => ("sites", "pages", "page"),
        };
        let name = shown(name);
        Unknown {
            message: format!("{here} have no field `{name}`, only {there} have"),
            suggestion: Some(format!("ask for {there}: `{ask} {name} …`")),
        }
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let own = COLUMNS.iter().filter(|(_, _, on, _)| self.has(*on)).map(|(_, name, _, _)| *name);
        own.chain(self.named.iter().map(String::as_str))
    }

    /// The name of a field in its normal form, for data.
    pub(crate) fn name(&self, column: Column) -> &str {
        match column {
            Column::Named(index) => self.named.get(index).map_or("", String::as_str),
            _ => COLUMNS.iter().find(|(known, ..)| *known == column).map_or("", |(_, name, _, _)| name),
        }
    }

    /// What is shown when a query chooses no columns.
    pub(crate) fn usual(&self, scored: bool) -> Vec<Column> {
        let columns: &[Column] = match self.target {
            Target::Pages => &[
                Column::Importance,
                Column::Url,
                Column::Title,
                Column::Type,
                Column::Captures,
                Column::LastSeen,
            ],
            Target::Sites => &[
                Column::Importance,
                Column::Site,
                Column::Pages,
                Column::Captures,
                Column::Html,
                Column::Xml,
                Column::Other,
                Column::LastSeen,
            ],
        };
        scored.then_some(Column::Score).into_iter().chain(columns.iter().copied()).collect()
    }
}

impl Column {
    pub(crate) fn kind(self) -> ColumnKind {
        COLUMNS.iter().find(|(known, ..)| *known == self).map_or(ColumnKind::Number, |(_, _, _, kind)| *kind)
    }

    /// The text of a page that this field is.
    pub(crate) fn page_text(self) -> Option<PageText> {
        Some(match self {
            Self::Url => PageText::Url,
            Self::Host => PageText::Host,
            Self::Site => PageText::Site,
            Self::Title => PageText::Title,
            Self::Language => PageText::Language,
            Self::ContentType => PageText::ContentType,
            _ => return None,
        })
    }

    /// Whether large and small letters are alike in this field; in a URL's path they are not.
    pub(crate) fn folds_case(self) -> bool {
        self != Self::Url
    }
}

/// A field's name as people write it.
pub(crate) fn shown(name: &str) -> String {
    archive_grammar::Field::new(name).to_string()
}
