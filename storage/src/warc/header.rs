//! A WARC record's head: the version line and the named fields, in order and with repeats.

use std::fmt;

use chrono::{DateTime, NaiveDateTime, Utc};
use nom::branch::alt;
use nom::bytes::complete::{tag, tag_no_case, take_till, take_while, take_while1};
use nom::character::complete::{char, one_of};
use nom::combinator::{recognize, verify};
use nom::multi::many0;
use nom::sequence::{preceded, terminated};
use nom::{IResult, Parser};

/// Type of a record (WARC/1.1 section 6).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RecordType {
    /// Describes the records that follow.
    Warcinfo,
    /// A complete response of a scheme's protocol.
    Response,
    /// Bytes without protocol information.
    Resource,
    /// The request.
    Request,
    /// Information about another record.
    Metadata,
    /// A repeated visit with the same content as an earlier one.
    Revisit,
    /// Another form of an earlier record's content.
    Conversion,
    /// The next segment of a record that was too long for one file.
    Continuation,
    /// A type that is not in the standard.
    Other(String),
}

impl RecordType {
    /// Returns the value of `WARC-Type`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Warcinfo => "warcinfo",
            Self::Response => "response",
            Self::Resource => "resource",
            Self::Request => "request",
            Self::Metadata => "metadata",
            Self::Revisit => "revisit",
            Self::Conversion => "conversion",
            Self::Continuation => "continuation",
            Self::Other(name) => name,
        }
    }
}

impl From<&str> for RecordType {
    fn from(name: &str) -> Self {
        match name.to_ascii_lowercase().as_str() {
            "warcinfo" => Self::Warcinfo,
            "response" => Self::Response,
            "resource" => Self::Resource,
            "request" => Self::Request,
            "metadata" => Self::Metadata,
            "revisit" => Self::Revisit,
            "conversion" => Self::Conversion,
            "continuation" => Self::Continuation,
            _ => Self::Other(name.to_owned()),
        }
    }
}

impl fmt::Display for RecordType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A record's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// The version after `WARC/`, such as `1.1`.
    pub version: String,
    /// Names and values in file order. Values that are not UTF-8 are read as Latin-1, which is lossless.
    pub fields: Vec<(String, String)>,
}

/// Why bytes are not a record head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The first line does not start with `WARC/`.
    #[error("no WARC version line")]
    Version,
    /// No empty line ends the head.
    #[error("the record head has no end")]
    Unfinished,
}

impl RecordHeader {
    /// Reads a head and returns its length, including the empty line.
    ///
    /// Lines may end with LF alone. A line without a colon is skipped, and one that starts with a blank continues the
    /// previous value (WARC/1.1 section 4).
    ///
    /// # Errors
    /// When there is no version line or no end.
    pub fn parse(input: &[u8]) -> Result<(Self, usize), HeaderError> {
        let (rest, version) = version(input).map_err(|_| HeaderError::Version)?;
        let (rest, lines) = many0(logical_line).parse(rest).map_err(|_| HeaderError::Unfinished)?;
        let (rest, _) = line_end(rest).map_err(|_| HeaderError::Unfinished)?;
        let fields = lines.into_iter().filter_map(field).collect();
        Ok((Self { version: text(version), fields }, input.len() - rest.len()))
    }

    /// Returns the first value of a field; names are compared case-insensitively.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Returns all values of a field in file order.
    pub fn get_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.fields
            .iter()
            .filter(move |(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Returns the type from `WARC-Type`; that of a record without one is `Other("")`.
    #[must_use]
    pub fn record_type(&self) -> RecordType {
        RecordType::from(self.get("WARC-Type").unwrap_or_default())
    }

    /// Returns `Content-Length` in bytes.
    #[must_use]
    pub fn content_length(&self) -> Option<u64> {
        self.get("Content-Length")?.trim().parse().ok()
    }

    /// Returns `WARC-Record-ID` without the angle brackets.
    #[must_use]
    pub fn record_id(&self) -> Option<&str> {
        self.get("WARC-Record-ID").map(without_brackets)
    }

    /// Returns `WARC-Target-URI` without the angle brackets that WARC/1.0's grammar required.
    #[must_use]
    pub fn target_uri(&self) -> Option<&str> {
        self.get("WARC-Target-URI").map(without_brackets)
    }

    /// Returns URL and time of the capture that a revisit refers to; the time may be missing.
    #[must_use]
    pub fn refers_to(&self) -> Option<(&str, Option<DateTime<Utc>>)> {
        let url = self.get("WARC-Refers-To-Target-URI").map(without_brackets)?;
        Some((url, self.get("WARC-Refers-To-Date").and_then(parse_date)))
    }

    /// Returns `WARC-Date`; for a date without seconds, the beginning of its period.
    #[must_use]
    pub fn date(&self) -> Option<DateTime<Utc>> {
        parse_date(self.get("WARC-Date")?)
    }
}

impl fmt::Display for RecordHeader {
    /// Formats the head as in a file, including the empty line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WARC/{}\r\n", self.version)?;
        for (name, value) in &self.fields {
            write!(f, "{name}: {value}\r\n")?;
        }
        f.write_str("\r\n")
    }
}

/// A date as stated in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    /// The time, or the beginning of the period: `2014-01` begins with the year.
    pub time: DateTime<Utc>,
    /// Whether seconds or more are left out.
    pub is_partial: bool,
    /// Whether it has a form of WARC/1.1 (section 5.4 after W3C, "Date and Time Formats": in UTC, with a `Z` after a
    /// time of day), or just the hour of a day in the same style.
    pub is_standard: bool,
}

impl Date {
    /// Parses the forms found in WARC files: those of the standard, RFC 3339 with any offset and fraction, and the bare
    /// digits that some tools wrote.
    #[must_use]
    pub fn parse(value: &str) -> Option<Self> {
        let value = value.trim();
        let is_utc = value.ends_with('Z');
        let with_offset = DateTime::parse_from_rfc3339(value)
            .or_else(|_| DateTime::parse_from_str(value, "%Y-%m-%dT%H:%M:%S%.f%z"));
        if let Ok(date) = with_offset {
            let is_standard = is_utc && value.get(10..11) == Some("T");
            return Some(Self { time: date.to_utc(), is_partial: false, is_standard });
        }
        let stated = value.strip_suffix(['Z', 'z']).unwrap_or(value);
        let (stated, fraction) = stated.split_once('.').unwrap_or((stated, ""));
        let marks_of = |pattern: &str| stated.bytes().zip(pattern.bytes()).all(fits);
        let lowest = match stated.len() {
            4 | 7 | 10 | 13 | 16 | 19 if marks_of("0000-00-00T00:00:00") => "0000-01-01T00:00:00",
            4 | 6 | 8 | 10 | 12 | 14.. if stated.bytes().all(|byte| byte.is_ascii_digit()) => {
                "00000101000000"
            }
            _ => return None,
        };
        let is_dashed = lowest.contains('-');
        let rest = lowest.get(stated.len().min(lowest.len())..)?;
        let digits: String =
            stated.chars().take(lowest.len()).chain(rest.chars()).filter(char::is_ascii_digit).collect();
        let time = NaiveDateTime::parse_from_str(&digits, "%Y%m%d%H%M%S").ok()?.and_utc();
        let is_standard = fraction.is_empty()
            && is_utc == (stated.len() > 10)
            && stated.len() < lowest.len()
            && (is_dashed && !stated.contains(['t', ' ']) || stated.len() == 4);
        Some(Self { time, is_partial: !rest.is_empty(), is_standard })
    }
}

/// Whether a character fits the pattern's character at its position.
fn fits((found, pattern): (u8, u8)) -> bool {
    match pattern {
        b'0' => found.is_ascii_digit(),
        b'T' => matches!(found, b'T' | b't' | b' '),
        mark => found == mark,
    }
}

/// Returns the time of a date in any form, or the beginning of its period.
pub(crate) fn parse_date(value: &str) -> Option<DateTime<Utc>> {
    Date::parse(value).map(|date| date.time)
}

fn without_brackets(value: &str) -> &str {
    value.strip_prefix('<').and_then(|value| value.strip_suffix('>')).unwrap_or(value)
}

/// Decodes bytes as UTF-8 if they are valid, otherwise as Latin-1.
pub(crate) fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().copied().map(char::from).collect(),
    }
}

/// Parses the fields of an `application/warc-fields` block; they stay in order, and names may repeat.
#[must_use]
pub fn parse_fields(content: &[u8]) -> Vec<(String, String)> {
    fields(content).collect()
}

/// Like [`parse_fields`], but lazily: a line of two bytes becomes a field of fifty in memory.
pub fn fields(content: &[u8]) -> impl Iterator<Item = (String, String)> {
    let lines = content.split(|byte| *byte == b'\n');
    lines.filter_map(|line| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let colon = memchr::memchr(b':', line)?;
        let (name, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        Some((text(name), text(value)))
    })
}

fn line_end(input: &[u8]) -> IResult<&[u8], &[u8]> {
    alt((tag(&b"\r\n"[..]), tag(&b"\n"[..]))).parse(input)
}

fn version(input: &[u8]) -> IResult<&[u8], &[u8]> {
    let digits = take_while1(|byte: u8| byte.is_ascii_digit() || byte == b'.');
    let rest_of_line = (take_till(|byte| byte == b'\n'), char('\n'));
    terminated(preceded(tag_no_case(&b"WARC/"[..]), digits), rest_of_line).parse(input)
}

/// Parses a line that is not empty, with its continuation lines.
fn logical_line(input: &[u8]) -> IResult<&[u8], &[u8]> {
    let text = |input| take_while(|byte| byte != b'\n').parse(input);
    let first = verify(text, |line: &[u8]| !line.is_empty() && line != b"\r");
    let continuation = (one_of(" \t"), text, char('\n'));
    recognize((first, char('\n'), many0(continuation))).parse(input)
}

fn field(line: &[u8]) -> Option<(String, String)> {
    let colon = memchr::memchr(b':', line)?;
    let (name, value) = line.split_at(colon);
    let value = value.strip_prefix(b":").unwrap_or(value).trim_ascii();
    let value = if memchr::memchr(b'\n', value).is_some() { text(&unfold(value)) } else { text(value) };
    Some((text(name.trim_ascii()), value))
}

/// Unfolds a value onto one line: every line end with the blanks around it becomes one blank.
fn unfold(value: &[u8]) -> Vec<u8> {
    let mut lines = value.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let mut unfolded = lines.next().unwrap_or_default().to_vec();
    for line in lines {
        unfolded.push(b' ');
        unfolded.extend_from_slice(line);
    }
    unfolded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(input: &str) -> RecordHeader {
        let (header, length) = RecordHeader::parse(input.as_bytes()).expect("a head");
        assert_eq!(length, input.len());
        header
    }

    #[test]
    fn keeps_order_and_repeats_and_ignores_case() {
        let text = "WARC/1.1\r\nWARC-Type: response\r\nX: 1\r\nx: 2\r\nContent-Length: 12\r\n\r\n";
        let header = parse(text);
        assert_eq!(header.record_type(), RecordType::Response);
        assert_eq!(header.get_all("X").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(header.content_length(), Some(12));
        assert_eq!(header.to_string(), text);
    }

    #[test]
    fn takes_bare_newlines_folds_and_lines_without_colon() {
        let header = parse("warc/1.0\nA: one\n  two\r\n\tthree\nnonsense\nB:\n\n");
        assert_eq!(header.version, "1.0");
        assert_eq!(header.fields, [("A".into(), "one two three".into()), ("B".into(), String::new())]);
    }

    #[test]
    fn reads_latin_1_and_brackets() {
        let (header, _) =
            RecordHeader::parse(b"WARC/1.0\r\nWARC-Target-URI: <http://a/\xe9>\r\n\r\n").expect("a head");
        assert_eq!(header.target_uri(), Some("http://a/é"));
    }

    #[test]
    fn refuses_what_is_not_a_head() {
        assert_eq!(RecordHeader::parse(b"HTTP/1.1 200 OK\r\n\r\n"), Err(HeaderError::Version));
        assert_eq!(RecordHeader::parse(b"WARC/1.1\r\nA: b\r\n"), Err(HeaderError::Unfinished));
        assert_eq!(RecordHeader::parse(b"WARC/1.1\r\nA: b"), Err(HeaderError::Unfinished));
        assert_eq!(RecordHeader::parse(b""), Err(HeaderError::Version));
    }

    #[test]
    fn reads_dates_of_all_kinds() {
        let seconds = |text| parse_date(text).map(|date| date.timestamp());
        assert_eq!(seconds("2014-01-03T03:03:21Z"), Some(1_388_718_201));
        assert_eq!(seconds("2014-01-03T03:03:21.123456789Z"), Some(1_388_718_201));
        assert_eq!(seconds("20140103030321"), Some(1_388_718_201));
        assert_eq!(seconds("2014-01-03"), Some(1_388_707_200));
        assert_eq!(seconds("2014"), Some(1_388_534_400));
        assert_eq!(seconds("soon"), None);
        assert_eq!(seconds("2014-13-77T99:99:99Z"), None);
        assert_eq!(seconds("2014-01-03T03:03:21-0100"), Some(1_388_721_801));
        assert_eq!(seconds("20140103030321123"), Some(1_388_718_201));
        for text in ["2014-1-1", "20140", "03 Jan 2010 10:00:00", "2014-01-", "2014-01-01T0", "2014/01/01"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    #[test]
    fn says_how_much_of_a_date_is_stated() {
        for (text, time, is_partial, is_standard) in [
            ("2014", "2014-01-01T00:00:00", true, true),
            ("2014-02", "2014-02-01T00:00:00", true, true),
            ("2014-02-03", "2014-02-03T00:00:00", true, true),
            ("2014-02-03T04Z", "2014-02-03T04:00:00", true, true),
            ("2014-02-03T04:05Z", "2014-02-03T04:05:00", true, true),
            ("2014-02-03T04:05:06Z", "2014-02-03T04:05:06", false, true),
            ("2014-02-03T04:05:06.000000007Z", "2014-02-03T04:05:06.000000007", false, true),
            ("2014-02-03T04:05:06+00:00", "2014-02-03T04:05:06", false, false),
            ("2014-02-03 04:05:06Z", "2014-02-03T04:05:06", false, false),
            ("2014-02-03T04:05", "2014-02-03T04:05:00", true, false),
            ("2014-02-03T04:05:06", "2014-02-03T04:05:06", false, false),
            ("201402", "2014-02-01T00:00:00", true, false),
            ("20140203040506", "2014-02-03T04:05:06", false, false),
        ] {
            let date = Date::parse(text).expect(text);
            assert_eq!(date.time.naive_utc().format("%FT%T%.f").to_string(), time, "{text}");
            assert_eq!((date.is_partial, date.is_standard), (is_partial, is_standard), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn never_panics(bytes: Vec<u8>) {
            let _ = RecordHeader::parse(&bytes);
            let _ = parse_date(&text(&bytes));
        }
    }
}
