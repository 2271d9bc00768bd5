//! Lists of captures that other tools keep beside their files or hand out: CDX, CDXJ, and the JSON of CDX servers.
//!
//! | form | a line |
//! |---|---|
//! | CDX with a legend | ` CDX N b a m s k r M S V g`, then as many words as letters |
//! | CDX without | 11, 10, 9 or 7 words (Wayback, Heritrix, CDX servers) |
//! | CDXJ | `KEY YYYYMMDDhhmmss {"url": …}` (pywb, OpenWayback) |
//! | JSON | `[["urlkey", "timestamp", …], …]` (Wayback), or an object a line (pywb) |

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use chrono::{DateTime, NaiveDateTime, Utc};
use flate2::bufread::MultiGzDecoder;
use serde_json::{Map, Value};

use crate::digest::Digest;

/// Maximum bytes of a line, or of a row of JSON; a longer one is reported.
pub const LIST_LINE_BYTES_MAX: usize = 64 << 10;

/// Bytes at the beginning of a file that tell whether it is a list.
const BEGINNING_BYTES: usize = 4096;

/// Digits of a time.
const STAMP_DIGITS: usize = 14;

/// A capture that a list names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedCapture {
    /// The URL, as the list writes it.
    pub url: String,
    /// When it was captured, to the second.
    pub time: DateTime<Utc>,
    /// HTTP status; none of a record without one.
    pub status: Option<u16>,
    /// Digest of the payload, if it is stated and of a kind that can be checked.
    pub digest: Option<Digest>,
    /// File that holds the record.
    pub file: Option<String>,
}

/// Why an entry cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// The list cannot be read on.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// A line is not an entry.
    #[error("line {line}: {what}")]
    Line {
        /// Number of the line, or of the row of JSON, from 1.
        line: u64,
        /// What is wrong with it.
        what: &'static str,
    },
}

/// A field of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListField {
    Url,
    Time,
    Status,
    Digest,
    File,
    /// One that is not used.
    Other,
}

impl ListField {
    /// Fields of lines without a legend, by their number.
    const BY_COUNT: [(usize, &str); 4] = [
        (11, "N b a m s k r M S V g"),
        (10, "N b a m s k r M V g"),
        (9, "N b a m s k r V g"),
        // What CDX servers answer with unless they are asked for other fields.
        (7, "N b a m s k S"),
    ];

    /// By the letter of a legend.
    fn of_letter(letter: &str) -> Self {
        match letter {
            "a" => Self::Url,
            "b" => Self::Time,
            "s" => Self::Status,
            "k" => Self::Digest,
            "g" => Self::File,
            _ => Self::Other,
        }
    }

    /// By the names that Wayback, pywb and OpenWayback use.
    fn of_name(name: &str) -> Self {
        match name {
            "url" | "original" | "uri" => Self::Url,
            "timestamp" => Self::Time,
            "status" | "statuscode" | "hsc" => Self::Status,
            "digest" | "sha" => Self::Digest,
            "filename" => Self::File,
            _ => Self::Other,
        }
    }

    fn of_legend(legend: &str) -> Vec<Self> {
        legend.split_ascii_whitespace().map(Self::of_letter).collect()
    }
}

/// Values of an entry.
#[derive(Default)]
struct ListedFields {
    url: String,
    time: String,
    status: String,
    digest: String,
    file: String,
}

impl ListedFields {
    fn set(&mut self, field: ListField, value: &str) {
        let place = match field {
            ListField::Url => &mut self.url,
            ListField::Time => &mut self.time,
            ListField::Status => &mut self.status,
            ListField::Digest => &mut self.digest,
            ListField::File => &mut self.file,
            ListField::Other => return,
        };
        if value != "-" {
            value.clone_into(place);
        }
    }

    fn of(fields: &[ListField], values: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let mut own = Self::default();
        fields.iter().zip(values).for_each(|(field, value)| own.set(*field, value.as_ref()));
        own
    }

    fn of_object(object: &Map<String, Value>) -> Self {
        let mut own = Self::default();
        for (name, value) in object {
            match value {
                Value::String(text) => own.set(ListField::of_name(name), text),
                Value::Number(number) => own.set(ListField::of_name(name), &number.to_string()),
                _ => {}
            }
        }
        own
    }

    fn capture(self) -> Result<ListedCapture, &'static str> {
        let Self { url, time, status, digest, file } = self;
        if url.is_empty() {
            return Err("it names no URL");
        }
        let time = stamp(&time).ok_or("it has no time of 14 digits")?;
        let stated = digest.parse().or_else(|_| format!("sha1:{digest}").parse());
        let file = Some(file).filter(|file| !file.is_empty());
        Ok(ListedCapture { url, time, status: status.parse().ok(), digest: stated.ok(), file })
    }
}

fn stamp(text: &str) -> Option<DateTime<Utc>> {
    let digits =
        text.get(..STAMP_DIGITS).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    NaiveDateTime::parse_from_str(digits, "%Y%m%d%H%M%S").ok().map(|time| time.and_utc())
}

/// How the entries of a list are written.
enum ListForm {
    /// Words, one entry a line.
    Words(Vec<ListField>),
    /// Words whose number tells what they are, CDXJ, or objects, one entry a line.
    Lines,
    /// One list of lists, whose first one names the fields.
    Rows(Option<Vec<ListField>>),
}

/// Reads the entries of a list. Lines that are no entries are errors, and reading continues after them.
pub struct CaptureList<R> {
    source: R,
    form: ListForm,
    line: u64,
    has_failed: bool,
}

impl CaptureList<Box<dyn BufRead + Send>> {
    /// Opens a file, plain or gzip; none if it is not a list, or is a pipe, which can be read but once.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        if !path.metadata()?.is_file() {
            return Ok(None);
        }
        let mut file = BufReader::new(File::open(path)?);
        let is_packed = file.fill_buf()?.starts_with(&[0x1F, 0x8B]);
        let mut source: Box<dyn BufRead + Send> =
            if is_packed { Box::new(BufReader::new(MultiGzDecoder::new(file))) } else { Box::new(file) };
        // A packed file that is damaged is no list, whatever else it is.
        let begins = source.fill_buf().is_ok_and(is_list);
        Ok(begins.then(|| Self::new(source)))
    }
}

/// Whether bytes are the beginning of a list.
#[must_use]
pub fn is_list(beginning: &[u8]) -> bool {
    let beginning = beginning.get(..BEGINNING_BYTES).unwrap_or(beginning);
    let first = beginning.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let first = String::from_utf8_lossy(first);
    let text = first.trim();
    let is_entry = || {
        let mut words = text.split_ascii_whitespace();
        let is_time = words.nth(1).is_some_and(|word| word.len() == STAMP_DIGITS && stamp(word).is_some());
        is_time && words.next().is_some()
    };
    let is_json = (text.starts_with("[[") || text.starts_with('{')) && text.contains("\"timestamp\"");
    text.starts_with("CDX ") || text.starts_with("!OpenWayback-CDXJ") || is_json || is_entry()
}

impl<R: BufRead> CaptureList<R> {
    /// Reads a list whose beginning [`is_list`].
    pub fn new(mut source: R) -> Self {
        let is_rows = source.fill_buf().is_ok_and(|begins| begins.trim_ascii_start().starts_with(b"["));
        let form = if is_rows { ListForm::Rows(None) } else { ListForm::Lines };
        Self { source, form, line: 0, has_failed: false }
    }

    /// Returns the next line without its end; `Err` with a reason if it is too long.
    fn next_line(&mut self) -> io::Result<Option<Result<String, &'static str>>> {
        let mut bytes = Vec::new();
        let limit = LIST_LINE_BYTES_MAX as u64 + 1;
        if self.source.by_ref().take(limit).read_until(b'\n', &mut bytes)? == 0 {
            return Ok(None);
        }
        self.line += 1;
        if bytes.len() > LIST_LINE_BYTES_MAX && bytes.last() != Some(&b'\n') {
            self.source.skip_until(b'\n')?;
            return Ok(Some(Err("it is too long")));
        }
        Ok(Some(Ok(String::from_utf8_lossy(&bytes).trim().to_owned())))
    }

    /// Returns the next list of the outer list; `Err` with a reason if it is too long.
    fn next_row(&mut self) -> io::Result<Option<Result<String, &'static str>>> {
        let (mut row, mut is_long) = (Vec::new(), false);
        let (mut is_text, mut is_escaped) = (false, false);
        loop {
            let Some(byte) = self.source.fill_buf()?.first().copied() else { return Ok(None) };
            self.source.consume(1);
            match byte {
                // The outer list, and what is between two rows.
                _ if row.is_empty() && byte != b'[' => continue,
                b'[' if !is_text => row.clear(),
                b'"' if !is_escaped => is_text = !is_text,
                _ => {}
            }
            is_escaped = is_text && byte == b'\\' && !is_escaped;
            is_long |= row.len() == LIST_LINE_BYTES_MAX;
            if !is_long {
                row.push(byte);
            }
            if byte == b']' && !is_text {
                self.line += 1;
                let row = String::from_utf8_lossy(&row).into_owned();
                return Ok(Some(if is_long { Err("it is too long") } else { Ok(row) }));
            }
        }
    }

    /// Reads an entry; none for a line that names fields or tells about the list.
    fn entry(&mut self, text: &str) -> Result<Option<ListedCapture>, &'static str> {
        if let ListForm::Rows(fields) = &mut self.form {
            let row: Vec<Option<String>> =
                serde_json::from_str(text).map_err(|_| "it is not a list of texts")?;
            let row = row.iter().map(|value| value.as_deref().unwrap_or_default());
            let Some(fields) = fields else {
                *fields = Some(row.map(ListField::of_name).collect());
                return Ok(None);
            };
            return ListedFields::of(fields, row).capture().map(Some);
        }
        if text.is_empty() || text.starts_with(['!', '@', '#']) {
            return Ok(None);
        }
        if let Some(legend) = text.strip_prefix("CDX ") {
            self.form = ListForm::Words(ListField::of_legend(legend));
            return Ok(None);
        }
        let object = text.find('{').filter(|at| *at == 0 || text.as_bytes().get(at - 1) == Some(&b' '));
        if let Some((key, object)) = object.map(|at| text.split_at(at))
            && let Ok(object) = serde_json::from_str(object)
        {
            let mut fields = ListedFields::of_object(&object);
            if let Some(time) = key.split_ascii_whitespace().nth(1) {
                fields.set(ListField::Time, time);
            }
            return fields.capture().map(Some);
        }
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let by_count = || ListField::BY_COUNT.iter().find(|(count, _)| *count == words.len());
        let fields = match &self.form {
            ListForm::Words(fields) if fields.len() == words.len() => ListedFields::of(fields, words),
            ListForm::Words(_) => return Err("it has another number of words than the first line says"),
            _ => {
                let (_, legend) = by_count().ok_or("it has neither 11, 10, 9 or 7 words nor JSON")?;
                ListedFields::of(&ListField::of_legend(legend), words)
            }
        };
        fields.capture().map(Some)
    }
}

impl<R: BufRead> Iterator for CaptureList<R> {
    type Item = Result<ListedCapture, ListError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.has_failed {
            let read =
                if matches!(self.form, ListForm::Rows(_)) { self.next_row() } else { self.next_line() };
            let entry = match read {
                Ok(read) => read?.and_then(|text| self.entry(&text)),
                Err(error) => {
                    self.has_failed = true;
                    return Some(Err(error.into()));
                }
            };
            let line = self.line;
            if let Some(found) = entry.map_err(|what| ListError::Line { line, what }).transpose() {
                return Some(found);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHA1: &str = "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ";

    fn read(list: &str) -> Vec<Result<ListedCapture, String>> {
        assert!(is_list(list.as_bytes()), "{list}");
        CaptureList::new(list.as_bytes()).map(|entry| entry.map_err(|error| error.to_string())).collect()
    }

    #[test]
    fn lists_of_all_tools_say_the_same() {
        let stamp = "20140103030321";
        let words = format!("com,a)/ {stamp} http://a.com/ text/html 200 {SHA1}");
        let json = format!(
            r#"{{"url": "http://a.com/", "status": 200, "digest": "sha1:{SHA1}", "filename": "f.gz"}}"#
        );
        let rows = format!(
            "[[\"urlkey\",\"timestamp\",\"original\",\"mimetype\",\"statuscode\",\"digest\",\"filename\"],\n[\"com,a)/\",\"{stamp}\",\
             \"http://a.com/\",\"text/html\",\"200\",\"{SHA1}\",\"f.gz\"]]"
        );
        for list in [
            format!(" CDX N b a m s k r M S V g\n{words} - - 1043 333 f.gz\n"),
            format!(" CDX g a b s k\nf.gz http://a.com/ {stamp} 200 {SHA1}\n"),
            format!("{words} - - 1043 333 f.gz\r\n\r\n"),
            format!("{words} - - 333 f.gz"),
            format!("{words} - 333 f.gz\n"),
            format!("com,a)/ {stamp} {json}\n"),
            format!("!OpenWayback-CDXJ 1.0\n(com,a,)/ {stamp} response {}\n", json.replace("url", "uri")),
            format!("{}\n", json.replace("\"url\"", &format!("\"timestamp\": \"{stamp}\", \"url\""))),
            rows.clone(),
            rows.replace('\n', " "),
        ] {
            let expected = ListedCapture {
                url: "http://a.com/".to_owned(),
                time: "2014-01-03T03:03:21Z".parse().unwrap(),
                status: Some(200),
                digest: format!("sha1:{SHA1}").parse().ok(),
                file: Some("f.gz".to_owned()),
            };
            assert_eq!(read(&list), [Ok(expected)], "{list}");
        }
        let served = read(&format!("{words} 1043"));
        assert_eq!((served.len(), served[0].as_ref().unwrap().file.as_deref()), (1, None));
        let revisit = read(&format!("com,a)/ {stamp} http://a.com/ warc/revisit - - 1043"));
        assert_eq!((revisit[0].as_ref().unwrap().status, revisit[0].as_ref().unwrap().digest), (None, None));
    }

    #[test]
    fn what_is_no_entry_is_reported_with_its_place() {
        let list =
            "a 20140103030321 x\na 20140103030321 http://a.com/ - - - 1\nb 2014 http://b.com/ - - - 1\n";
        let found = read(list);
        assert_eq!(found[0], Err("line 1: it has neither 11, 10, 9 or 7 words nor JSON".to_owned()));
        assert!(found[1].is_ok());
        assert_eq!(found[2], Err("line 3: it has no time of 14 digits".to_owned()));
        let legend = read(" CDX a b\nhttp://a.com/ 20140103030321\nhttp://a.com/\n");
        assert_eq!(
            legend[1],
            Err("line 3: it has another number of words than the first line says".to_owned())
        );
        let rows = read(
            "[[\"timestamp\", \"url\"], [\"20140103030321\", \"http://a.com/[x]\\\"\"], [1], [\"2014\", null]",
        );
        assert_eq!(rows[0].as_ref().unwrap().url, "http://a.com/[x]\"");
        assert_eq!(rows[1], Err("line 3: it is not a list of texts".to_owned()));
        assert_eq!(rows[2], Err("line 4: it names no URL".to_owned()));
    }

    #[test]
    fn a_line_is_as_long_as_the_limit_and_no_longer() {
        let line = |bytes: usize| {
            let line = "a 20140103030321 http://a.com/ - - - ";
            line.to_owned() + &"1".repeat(bytes - line.len())
        };
        let list = [line(LIST_LINE_BYTES_MAX), line(LIST_LINE_BYTES_MAX + 1), line(99)].join("\n");
        let found = read(&list);
        assert_eq!((found.len(), found[1].clone()), (3, Err("line 2: it is too long".to_owned())));
        assert!(found[0].is_ok() && found[2].is_ok());
        let row = |bytes: usize| {
            let row = "[\"20140103030321\", \"\"]";
            row.replace("\"\"", &format!("\"{}\"", "1".repeat(bytes - row.len())))
        };
        let rows = [row(LIST_LINE_BYTES_MAX), row(LIST_LINE_BYTES_MAX + 1)].join(",");
        let found = read(&format!("[[\"timestamp\", \"url\"],{rows}]"));
        assert!(found[0].is_ok());
        assert_eq!(found[1], Err("line 3: it is too long".to_owned()));
    }

    #[test]
    fn other_files_are_no_lists() {
        for other in [
            "",
            "WARC/1.1\r\nWARC-Type: response",
            "filedesc://a.arc 0.0.0.0 20140103030321 text/plain 76\n1 0 Archive",
            "https://a.test/ depth=3",
            "<!doctype html>",
            "{\"a\": 1}",
            "[1, 2]",
            "PK\u{3}\u{4}",
        ] {
            assert!(!is_list(other.as_bytes()), "{other}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_to_their_end(bytes: Vec<u8>, is_rows: bool) {
            let mut list = if is_rows { b"[[\"timestamp\"]".to_vec() } else { b" CDX a b\n".to_vec() };
            list.extend(bytes);
            let _ = CaptureList::new(&list[..]).count();
        }
    }
}
