//! The sheet as CSV (RFC 4180) that spreadsheet programs open directly.
//!
//! It starts with a byte order mark, by which they recognise UTF-8. Texts that they would interpret as a formula get a
//! leading apostrophe, because titles come from strangers: see OWASP, "CSV injection". Reading the ratings removes the
//! apostrophe again.

use std::io::{self, Write};

use chrono::{DateTime, Utc};

use super::sheet::{SAMPLES_MAX, SamplePage, Sheet, SiteEntry};

/// The byte order mark by which spreadsheet programs recognise UTF-8.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Columns before those of the sample pages.
const COLUMNS: [&str; 14] = [
    "rank",
    "site",
    "rating",
    "comment",
    "verdict",
    "importance",
    "pages",
    "captures",
    "html",
    "xml",
    "other",
    "first_seen",
    "last_seen",
    "exported",
];

impl Sheet {
    /// Writes the sheet with empty columns `rating` (1 to 4), `comment` and `verdict`.
    ///
    /// # Errors
    /// When writing to `out` fails.
    pub fn write_csv(&self, mut out: impl Write) -> io::Result<()> {
        out.write_all(BYTE_ORDER_MARK)?;
        let mut csv = ::csv::WriterBuilder::new().terminator(::csv::Terminator::CRLF).from_writer(out);
        let mut header: Vec<String> = COLUMNS.map(str::to_owned).to_vec();
        header
            .extend((1..=SAMPLES_MAX).flat_map(|n| [format!("sample_{n}_title"), format!("sample_{n}_url")]));
        csv.write_record(&header)?;
        for (index, entry) in self.entries.iter().enumerate() {
            csv.write_record(record(index + 1, entry, self.made))?;
        }
        csv.flush()
    }
}

fn record(rank: usize, entry: &SiteEntry, made: DateTime<Utc>) -> Vec<String> {
    let SiteEntry { site, samples } = entry;
    let mut record = vec![
        rank.to_string(),
        guarded(&site.name),
        String::new(),
        String::new(),
        String::new(),
        format!("{:.6}", site.importance),
        site.pages.to_string(),
        site.captures.to_string(),
        site.html.to_string(),
        site.xml.to_string(),
        site.other().to_string(),
        time(site.first_seen),
        time(site.last_seen),
        time(Some(made)),
    ];
    for index in 0..SAMPLES_MAX {
        let sample = samples.get(index);
        record.push(guarded(sample.and_then(|sample| sample.title.as_deref()).unwrap_or_default()));
        record.push(guarded(sample.map_or("", |SamplePage { url, .. }| url)));
    }
    record
}

/// Formats a time in the form that spreadsheet programs recognise; UTC.
fn time(time: Option<DateTime<Utc>>) -> String {
    time.map(|time| time.format("%Y-%m-%d %H:%M:%S").to_string()).unwrap_or_default()
}

/// Whether a spreadsheet program would interpret a text that starts like this as a formula.
pub(crate) fn starts_formula(text: &str) -> bool {
    text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'])
}

/// Makes a text harmless in a spreadsheet.
#[must_use]
pub fn guarded(text: &str) -> String {
    if starts_formula(text) { format!("'{text}") } else { text.to_owned() }
}

/// Reverses [`guarded`].
pub(crate) fn unguarded(text: &str) -> &str {
    text.strip_prefix('\'').filter(|rest| starts_formula(rest)).unwrap_or(text)
}
