//! Reads ratings back from CSV, whatever program wrote it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::{self, Display, Formatter};

use archive_base::decisions::DecisionVerdict;
use chrono::{DateTime, NaiveDateTime, Utc};
use encoding_rs::{Encoding, WINDOWS_1252};

use super::csv::unguarded;
use super::workbook;

/// Maximum size of a file of ratings in bytes.
pub const RATINGS_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Maximum number of mistakes reported per file; further ones are only counted.
const MISTAKES_MAX: usize = 20;

/// How well a site fits the collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Score(u8);

impl Score {
    /// All scores, best first.
    pub const EACH: [Self; 4] = [Self(4), Self(3), Self(2), Self(1)];

    /// The score with this number, 1 to 4.
    #[must_use]
    pub fn new(number: u8) -> Option<Self> {
        (1..=4).contains(&number).then_some(Self(number))
    }

    /// The number of the score, 1 to 4.
    #[must_use]
    pub fn number(self) -> u8 {
        self.0
    }

    /// The meaning of the score.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self.0 {
            4 => "essential",
            3 => "valuable",
            2 => "marginal",
            _ => "out of scope",
        }
    }
}

/// A person's rating of a site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rating {
    /// Line where the record starts, counted from 1.
    pub line: u64,
    /// The site's name.
    pub site: String,
    /// The score; `None` if there is only a comment or a verdict.
    pub score: Option<Score>,
    /// The comment; may be empty.
    pub comment: String,
    /// What is to happen to the site.
    pub verdict: Option<DecisionVerdict>,
    /// When the filled-in sheet was exported, if known.
    pub exported: Option<DateTime<Utc>>,
}

/// A mistake in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RatingMistake {
    /// Line where the record starts, counted from 1.
    pub line: u64,
    /// What is wrong.
    pub what: String,
}

/// All mistakes in a file of ratings; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistakes {
    /// The first mistakes.
    pub first: Vec<RatingMistake>,
    /// Number of further mistakes.
    pub more: usize,
}

impl Mistakes {
    fn one(line: u64, what: impl Into<String>) -> Self {
        Self { first: vec![RatingMistake { line, what: what.into() }], more: 0 }
    }
}

impl Display for Mistakes {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, RatingMistake { line, what }) in self.first.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "line {line}: {what}")?;
        }
        match self.more {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

impl std::error::Error for Mistakes {}

/// Reads ratings from a CSV file, or from the first sheet of an XLSX or ODS workbook, with the columns `site`, `rating`
/// and optionally `comment`, `verdict` and `exported`, in any order and among any other columns. The separator may be a
/// comma, semicolon or tab; the encoding may be UTF-8, UTF-16 with a byte order mark, or Windows-1252. Records with
/// neither rating nor comment nor verdict are skipped.
///
/// # Errors
/// All mistakes in the file, so that they can be corrected at once: missing columns, a rating that is not 1 to 4, a
/// record without a site, a duplicate site. A file with mistakes yields no ratings.
pub fn read_ratings(file: &[u8]) -> Result<Vec<Rating>, Mistakes> {
    if file.len() > RATINGS_BYTES_MAX {
        return Err(Mistakes::one(1, format!("the file is larger than {RATINGS_BYTES_MAX} bytes")));
    }
    if let Some(rows) = workbook::rows(file) {
        return from_rows(&rows.map_err(|what| Mistakes::one(1, what))?);
    }
    let text = decoded(file);
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(separator(&text))
        .has_headers(false)
        .flexible(true)
        .from_reader(text.as_bytes());
    let mut found = RatingColumns::default();
    let mut columns = None;
    let mut lines = LineCounter { text: &text, line: 1, counted: 0 };
    for record in reader.records() {
        let record = record.map_err(|error| Mistakes::one(1, format!("this is not CSV: {error}")))?;
        let line = lines.at(record.position().map_or(0, csv::Position::byte));
        match &columns {
            None => columns = Some(Columns::of(&record).map_err(|what| Mistakes::one(line, what))?),
            Some(columns) => found.add(line, columns, &record),
        }
    }
    match columns {
        None => Err(Mistakes::one(1, "the file is empty: expected the columns site and rating")),
        Some(_) => found.finish(),
    }
}

/// Reads ratings from the rows of a workbook.
fn from_rows(rows: &[workbook::SheetRow]) -> Result<Vec<Rating>, Mistakes> {
    let Some(((line, header), rows)) = rows.split_first() else {
        return Err(Mistakes::one(1, "the sheet is empty: expected the columns site and rating"));
    };
    let record = |row: &Vec<String>| csv::StringRecord::from(row.as_slice());
    let columns = Columns::of(&record(header)).map_err(|what| Mistakes::one(*line, what))?;
    let mut found = RatingColumns::default();
    for (line, row) in rows {
        found.add(*line, &columns, &record(row));
    }
    found.finish()
}

/// Counts lines up to increasing offsets. The reader's own count is one too low if lines end in CR LF.
struct LineCounter<'a> {
    text: &'a str,
    line: u64,
    counted: usize,
}

impl LineCounter<'_> {
    /// Line of the record that starts at `byte`, after any line ends there.
    fn at(&mut self, byte: u64) -> u64 {
        let bytes = self.text.as_bytes();
        let mut start = usize::try_from(byte).unwrap_or(usize::MAX).min(bytes.len());
        while matches!(bytes.get(start), Some(b'\r' | b'\n')) {
            start += 1;
        }
        let passed = bytes.get(self.counted..start).unwrap_or_default();
        self.line += passed.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.counted = start.max(self.counted);
        self.line
    }
}

/// Indices of the columns.
struct Columns {
    site: usize,
    rating: usize,
    comment: Option<usize>,
    verdict: Option<usize>,
    exported: Option<usize>,
}

impl Columns {
    fn of(header: &csv::StringRecord) -> Result<Self, String> {
        let find = |wanted: &str| header.iter().position(|name| name.trim().eq_ignore_ascii_case(wanted));
        match (find("site"), find("rating")) {
            (Some(site), Some(rating)) => Ok(Self {
                site,
                rating,
                comment: find("comment"),
                verdict: find("verdict"),
                exported: find("exported"),
            }),
            (site, _) => {
                let missing = if site.is_none() { "site" } else { "rating" };
                let there = header.iter().map(str::trim).collect::<Vec<_>>().join(", ");
                let there = there.chars().take(200).collect::<String>();
                Err(format!(
                    "there is no column {missing}: expected the columns site and rating, found {there}"
                ))
            }
        }
    }
}

#[derive(Default)]
struct RatingColumns {
    ratings: Vec<Rating>,
    lines: HashMap<String, u64>,
    mistakes: Vec<RatingMistake>,
    more: usize,
}

impl RatingColumns {
    fn add(&mut self, line: u64, columns: &Columns, record: &csv::StringRecord) {
        let cell = |index: usize| unguarded(record.get(index).unwrap_or_default().trim());
        let (site, rating) = (cell(columns.site), cell(columns.rating));
        let comment = columns.comment.map_or("", cell);
        let verdict = columns.verdict.map_or("", cell);
        if rating.is_empty() && comment.is_empty() && verdict.is_empty() {
            return;
        }
        if site.is_empty() {
            return self.mistake(line, "there is a rating, comment or verdict, but no site".to_owned());
        }
        let score = match (rating, score(rating)) {
            ("", _) => None,
            (_, Some(score)) => Some(score),
            (_, None) => {
                let shown: String = rating.chars().take(20).collect();
                return self
                    .mistake(line, format!("the rating of {site} is `{shown}`: expected 1, 2, 3 or 4"));
            }
        };
        let verdict = match (verdict, read_verdict(verdict)) {
            ("", _) => None,
            (_, Some(verdict)) => Some(verdict),
            (_, None) => {
                let shown: String = verdict.chars().take(20).collect();
                let names = DecisionVerdict::EACH.map(DecisionVerdict::name).join(", ");
                return self
                    .mistake(line, format!("the verdict on {site} is `{shown}`: expected one of {names}"));
            }
        };
        let exported = columns.exported.map_or("", cell);
        let Some(exported) = (if exported.is_empty() { Some(None) } else { moment(exported).map(Some) })
        else {
            let shown: String = exported.chars().take(30).collect();
            return self.mistake(line, format!("`{shown}` is not a time when the sheet was exported"));
        };
        let site = site.to_lowercase();
        if let Some(first) = self.lines.insert(site.clone(), line) {
            self.mistake(line, format!("{site} was already rated in line {first}"));
        }
        self.ratings.push(Rating { line, site, score, comment: comment.to_owned(), verdict, exported });
    }

    fn mistake(&mut self, line: u64, what: String) {
        if self.mistakes.len() < MISTAKES_MAX {
            self.mistakes.push(RatingMistake { line, what });
        } else {
            self.more += 1;
        }
    }

    fn finish(self) -> Result<Vec<Rating>, Mistakes> {
        if self.mistakes.is_empty() {
            Ok(self.ratings)
        } else {
            Err(Mistakes { first: self.mistakes, more: self.more })
        }
    }
}

/// Parses `3`, and variants written by spreadsheet programs: `3.0`, `3,00`.
fn score(text: &str) -> Option<Score> {
    let (whole, fraction) = text.split_once(['.', ',']).unwrap_or((text, ""));
    let is_whole = fraction.bytes().all(|digit| digit == b'0');
    whole.parse().ok().filter(|_| is_whole).and_then(Score::new)
}

fn read_verdict(text: &str) -> Option<DecisionVerdict> {
    DecisionVerdict::EACH.into_iter().find(|verdict| verdict.name().eq_ignore_ascii_case(text))
}

/// Parses a time in UTC as the sheet writes it, or in a form that spreadsheet programs write.
fn moment(text: &str) -> Option<DateTime<Utc>> {
    let forms = [
        "%Y-%m-%d %H:%M:%S",
        "%Y-%m-%dT%H:%M:%SZ",
        "%Y-%m-%d %H:%M",
        "%d.%m.%Y %H:%M",
        "%m/%d/%Y %H:%M",
        "%d/%m/%Y %H:%M",
    ];
    forms.iter().find_map(|form| NaiveDateTime::parse_from_str(text, form).ok()).map(|time| time.and_utc())
}

fn decoded(file: &[u8]) -> Cow<'_, str> {
    match Encoding::for_bom(file) {
        Some((encoding, mark_bytes)) => encoding.decode_without_bom_handling(&file[mark_bytes..]).0,
        None => match std::str::from_utf8(file) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => WINDOWS_1252.decode_without_bom_handling(file).0,
        },
    }
}

/// The separator that occurs most often in the header.
fn separator(text: &str) -> u8 {
    let header = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let count = |separator: &u8| header.bytes().filter(|byte| byte == separator).count();
    // Of equal counts `max_by_key` takes the last, so the comma wins.
    [b'\t', b';', b','].into_iter().max_by_key(count).unwrap_or(b',')
}
