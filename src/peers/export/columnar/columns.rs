//! The columns, Common Crawl's in its order and then our own, with their types and the sources of their values.

use super::row::Row;

/// A value of a row.
#[derive(Debug)]
pub(super) enum Cell {
    /// UTF-8.
    Text(String),
    /// A 32-bit number.
    Int(i32),
    /// A 64-bit floating-point number.
    Double(f64),
    /// Milliseconds since 1970.
    Time(i64),
    /// Unknown.
    Null,
}

impl From<&String> for Cell {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

impl From<Option<f64>> for Cell {
    fn from(number: Option<f64>) -> Self {
        number.map_or(Self::Null, Self::Double)
    }
}

impl From<&Option<String>> for Cell {
    fn from(value: &Option<String>) -> Self {
        value.as_ref().map_or(Self::Null, Self::from)
    }
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnType {
    /// UTF-8.
    Text,
    /// 32 bits.
    Int,
    /// 16 bits, stored in 32.
    Small,
    /// 64 bits, floating point.
    Double,
    /// Milliseconds since 1970, 64 bits, in UTC. As in Common Crawl's files, the column is not marked as UTC, so that
    /// queries do not convert it to a time zone.
    Time,
}

impl ColumnType {
    /// The format's number of the physical type.
    pub(super) fn physical(self) -> i32 {
        match self {
            Self::Int | Self::Small => 1,
            Self::Time => 2,
            Self::Double => 5,
            Self::Text => 6,
        }
    }

    /// The format's number of the converted type, if there is one.
    pub(super) fn converted(self) -> Option<i32> {
        match self {
            Self::Text => Some(0),
            Self::Small => Some(16),
            Self::Int | Self::Double | Self::Time => None,
        }
    }
}

/// A column.
pub(super) struct Column {
    /// Name of the column.
    pub(super) name: &'static str,
    /// Type of the column.
    pub(super) kind: ColumnType,
    /// Whether every row has a value.
    pub(super) is_required: bool,
    /// Returns the value of a row.
    pub(super) get: fn(&Row) -> Cell,
}

const fn required(name: &'static str, kind: ColumnType, get: fn(&Row) -> Cell) -> Column {
    Column { name, kind, is_required: true, get }
}

const fn optional(name: &'static str, kind: ColumnType, get: fn(&Row) -> Cell) -> Column {
    Column { name, kind, is_required: false, get }
}

/// Returns the columns, with or without the text of pages.
pub(super) fn columns(with_text: bool) -> &'static [Column] {
    let count = COLUMNS.len() - usize::from(!with_text);
    COLUMNS.get(..count).unwrap_or_default()
}

/// All columns; the text of pages comes last.
static COLUMNS: [Column; 38] = [
    required("url_surtkey", ColumnType::Text, |row| Cell::from(&row.surt)),
    required("url", ColumnType::Text, |row| Cell::from(&row.url)),
    required("url_host_name", ColumnType::Text, |row| Cell::from(&row.host.name)),
    optional("url_host_tld", ColumnType::Text, |row| row.host.label(1)),
    optional("url_host_2nd_last_part", ColumnType::Text, |row| row.host.label(2)),
    optional("url_host_3rd_last_part", ColumnType::Text, |row| row.host.label(3)),
    optional("url_host_4th_last_part", ColumnType::Text, |row| row.host.label(4)),
    optional("url_host_5th_last_part", ColumnType::Text, |row| row.host.label(5)),
    optional("url_host_registry_suffix", ColumnType::Text, |row| Cell::from(&row.host.registry_suffix)),
    optional("url_host_registered_domain", ColumnType::Text, |row| Cell::from(&row.host.registered_domain)),
    optional("url_host_private_suffix", ColumnType::Text, |row| Cell::from(&row.host.private_suffix)),
    optional("url_host_private_domain", ColumnType::Text, |row| Cell::from(&row.host.private_domain)),
    optional("url_host_name_reversed", ColumnType::Text, |row| row.host.reversed()),
    required("url_protocol", ColumnType::Text, |row| Cell::from(&row.protocol)),
    optional("url_port", ColumnType::Int, |row| row.port.map_or(Cell::Null, Cell::Int)),
    optional("url_path", ColumnType::Text, |row| Cell::from(&row.path)),
    optional("url_query", ColumnType::Text, |row| Cell::from(&row.query)),
    required("fetch_time", ColumnType::Time, |row| Cell::Time(row.time)),
    required("fetch_status", ColumnType::Small, |row| Cell::Int(row.status)),
    optional("fetch_redirect", ColumnType::Text, |row| Cell::from(&row.redirect)),
    optional("content_digest", ColumnType::Text, |row| Cell::from(&row.digest)),
    optional("content_mime_type", ColumnType::Text, |row| Cell::from(&row.mime)),
    optional("content_mime_detected", ColumnType::Text, |row| Cell::from(&row.detected)),
    optional("content_charset", ColumnType::Text, |row| Cell::from(&row.charset)),
    optional("content_languages", ColumnType::Text, |row| Cell::from(&row.languages)),
    optional("content_truncated", ColumnType::Text, |row| Cell::from(&row.truncated)),
    required("warc_filename", ColumnType::Text, |row| Cell::from(&row.file)),
    required("warc_record_offset", ColumnType::Int, |row| Cell::Int(row.offset)),
    required("warc_record_length", ColumnType::Int, |row| Cell::Int(row.length)),
    required("warc_segment", ColumnType::Text, |row| Cell::from(&row.segment)),
    required("crawl", ColumnType::Text, |row| Cell::from(&row.crawl)),
    required("subset", ColumnType::Text, |row| Cell::from(&row.subset)),
    optional("revisit", ColumnType::Text, |row| Cell::from(&row.revisit)),
    optional("title", ColumnType::Text, |row| Cell::from(&row.title)),
    optional("importance", ColumnType::Double, |row| Cell::from(row.page.importance)),
    optional("site_importance", ColumnType::Double, |row| Cell::from(row.page.site_importance)),
    optional("rating", ColumnType::Double, |row| Cell::from(row.page.rating)),
    optional("text", ColumnType::Text, |row| Cell::from(&row.text)),
];
