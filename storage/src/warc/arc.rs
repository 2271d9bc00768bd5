//! Lines before the documents of ARC files (Internet Archive, "Arc File Format", 1996), read as heads of WARC records.
//!
//! Version 1 has `URL IP-address Archive-date Content-type Archive-length`; version 2 has `Result-code Checksum Location
//! Offset Filename` before the length. URLs and media types may have blanks, so fields are counted from both ends and from
//! the date. A line says less than a WARC head: what it does not say, the head does not say either.

use std::net::IpAddr;

use nom::bytes::complete::{take_while, take_while1};
use nom::character::complete::{char, satisfy};
use nom::combinator::recognize;
use nom::{IResult, Parser};

use super::header::{Date, RecordHeader, text};

/// Maximum bytes of the line before a document.
pub(super) const LINE_BYTES_MAX: usize = 64 << 10;

/// Maximum bytes of a scheme, with its colon.
const SCHEME_BYTES_MAX: usize = 32;

/// Scheme of the first record, which describes the file.
const VERSION_BLOCK: &str = "filedesc";

/// Numbers of fields of the two versions.
const FIELDS: [usize; 2] = [5, 10];

/// Number of digits of a date as the format demands, and of what is understood of a shorter or a wrong one.
const DATE_DIGITS: [usize; 6] = [14, 12, 10, 8, 6, 4];

/// Years before the Web are no dates of captures.
const FIRST_YEAR: &str = "1990";

/// Field of a record with the line as it was.
const LINE: &str = "ARC-Header";

/// Whether a line may begin here, by what there is of it; `None` if that cannot be said yet.
pub(super) fn may_begin(bytes: &[u8]) -> Option<bool> {
    let start = bytes.get(..SCHEME_BYTES_MAX).unwrap_or(bytes);
    match scheme(start) {
        Ok(_) => Some(true),
        Err(_) if start.len() == SCHEME_BYTES_MAX => Some(false),
        Err(_) => start.iter().any(|byte| !is_of_scheme(*byte)).then_some(false),
    }
}

fn scheme(input: &[u8]) -> IResult<&[u8], &[u8]> {
    let first = satisfy(|letter| letter.is_ascii_alphabetic());
    let (rest, (scheme, _)) = (recognize((first, take_while(is_of_scheme))), char(':')).parse(input)?;
    Ok((rest, scheme))
}

fn is_of_scheme(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}

/// Reads a line without its end. `block` is the beginning of the document that follows. Returns `None` if it is no line of an ARC
/// file.
pub(super) fn header(line: &[u8], block: &[u8]) -> Option<RecordHeader> {
    let (_, scheme) = scheme(line).ok()?;
    let is_description = scheme.eq_ignore_ascii_case(VERSION_BLOCK.as_bytes());
    let line = text(line.strip_suffix(b"\r").unwrap_or(line));
    let parts: Vec<&str> = line.trim_end_matches(' ').split(' ').collect();
    let (length, parts) = parts.split_last()?;
    let length: u64 = length.parse().ok()?;
    let date = place_of_date(parts)?;
    let (before, after) = parts.split_at_checked(date)?;
    let (address, url) = before.split_last()?;
    let (stated, after) = after.split_first()?;
    let is_second = after.len() + 4 == FIELDS[1];
    let kind =
        if is_second { after.first().copied().unwrap_or_default().to_owned() } else { after.join(" ") };
    let is_http = block.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"HTTP/"));
    let record_type = match (is_description, is_http) {
        (true, _) => "warcinfo",
        (false, true) => "response",
        // Of a document without a head, nothing is known of the protocol.
        (false, false) => "resource",
    };
    let kind = if is_http { Some("application/http; msgtype=response") } else { media_type(&kind) };
    let address = address.parse().ok().filter(|address: &IpAddr| !address.is_unspecified());
    let mut fields = vec![("WARC-Type", record_type.to_owned()), ("WARC-Target-URI", url.join(" "))];
    fields.extend(known_date(stated).map(|date| ("WARC-Date", date)));
    fields.extend(address.map(|address| ("WARC-IP-Address", address.to_string())));
    fields.extend(kind.map(|kind| ("Content-Type", kind.to_owned())));
    fields.extend([("Content-Length", length.to_string()), (LINE, line.clone())]);
    let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Some(RecordHeader { version: "1.1".to_owned(), fields })
}

/// Returns which part of a line, without the length, is the date: the one after an address or, if there is none, that of digits
/// where a version has it. The URL and the address come before it.
fn place_of_date(parts: &[&str]) -> Option<usize> {
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_after_address =
        |place: &usize| parts.get(place - 1).is_some_and(|part| part.parse::<IpAddr>().is_ok());
    let by_count = || {
        let stated = FIELDS.iter().rev().filter_map(|fields| (parts.len() + 1).checked_sub(fields - 2));
        let mut stated = stated.filter(|place| *place >= 2);
        stated.find(|place| parts.get(*place).is_some_and(|part| is_digits(part)))
    };
    (2..parts.len()).find(is_after_address).or_else(by_count)
}

/// Returns a date in the form of WARC/1.1, as far as it makes sense: `20010231` is in 2001, in February.
fn known_date(stated: &str) -> Option<String> {
    let possible = DATE_DIGITS.iter().filter_map(|digits| stated.get(..*digits));
    let mut dates = possible.filter(|digits| *digits >= FIRST_YEAR).map(|digits| {
        let marks = ["", "-", "-", "T", ":", ":"];
        let parts = [0..4, 4..6, 6..8, 8..10, 10..12, 12..14].map(|part| digits.get(part));
        let date = marks.iter().zip(parts).filter_map(|(mark, part)| Some(format!("{mark}{}", part?)));
        let end = if digits.len() > 8 { "Z" } else { "" };
        date.collect::<String>() + end
    });
    dates.find(|date| Date::parse(date).is_some())
}

/// Returns a media type, if a field has one: some tools wrote `no-type`.
fn media_type(field: &str) -> Option<&str> {
    fn is_name(byte: u8) -> bool {
        byte.is_ascii_graphic() && !matches!(byte, b'/' | b';' | b',' | b'<' | b'>')
    }
    let mut named = (take_while1(is_name), char('/'), take_while1(is_name));
    let found: IResult<&[u8], _> = named.parse(field.as_bytes());
    found.is_ok().then_some(field)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(line: &str, block: &str) -> Option<String> {
        let header = header(line.as_bytes(), block.as_bytes())?;
        let field = |name| header.get(name).unwrap_or("-").to_owned();
        let names = [
            "WARC-Type",
            "WARC-Target-URI",
            "WARC-Date",
            "WARC-IP-Address",
            "Content-Type",
            "Content-Length",
        ];
        assert_eq!(field(LINE), line.trim_end_matches('\r'));
        Some(names.map(field).join("|"))
    }

    #[test]
    fn lines_of_all_versions_and_habits_are_read() {
        let http = "HTTP/1.0 200 OK";
        for (line, block, expected) in [
            (
                "http://a.org/ 1.2.3.4 19970102030405 text/html 20",
                http,
                "response|http://a.org/|1997-01-02T03:04:05Z|1.2.3.4|application/http; msgtype=response|20",
            ),
            (
                "http://a.org/x y 0.0.0.0 199701020304 text/html; charset=x 7\r",
                "<html>",
                "resource|http://a.org/x y|1997-01-02T03:04Z|-|text/html; charset=x|7",
            ),
            (
                "http://a.org/ 1.2.3.4 19970102030405 text/html 200 afb1 - 117 a.arc 20",
                http,
                "response|http://a.org/|1997-01-02T03:04:05Z|1.2.3.4|application/http; msgtype=response|20",
            ),
            (
                "http://a.org/ - 19970102030405 text/html 302 - http://b.org/ 117 a.arc 20",
                "",
                "resource|http://a.org/|1997-01-02T03:04:05Z|-|text/html|20",
            ),
            (
                "dns:a.org 8.8.8.8 20040506070809123 text/dns 5",
                "20040",
                "resource|dns:a.org|2004-05-06T07:08:09Z|8.8.8.8|text/dns|5",
            ),
            (
                "filedesc://a.arc 0.0.0.0 19970102030405 text/plain 74",
                "1 0 x",
                "warcinfo|filedesc://a.arc|1997-01-02T03:04:05Z|-|text/plain|74",
            ),
            (
                "http://a.org/ 1.2.3.4 19971399030405 no-type 1",
                "x",
                "resource|http://a.org/|1997|1.2.3.4|-|1",
            ),
            ("http://a.org/ ::1 19970231 a/b 1", "x", "resource|http://a.org/|1997-02|::1|a/b|1"),
            ("http://a.org/ 1.2.3.4 yesterday a/b 1", "x", "resource|http://a.org/|-|1.2.3.4|a/b|1"),
            ("http://a.org/ 1.2.3.4 00000000000000  1", "x", "resource|http://a.org/|-|1.2.3.4|-|1"),
        ] {
            assert_eq!(read(line, block).as_deref(), Some(expected), "{line}");
        }
        for line in [
            "",
            "http://a.org/",
            "http://a.org/ 1.2.3.4 19970102030405 text/html -1",
            "http://a.org/ 1.2.3.4 19970102030405 text/html",
            "http://a.org/ says that in 1997 it had 20",
            "/a 1.2.3.4 19970102030405 text/html 20",
            "1.2.3.4 19970102030405 text/html 20",
        ] {
            assert_eq!(read(line, ""), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_read_or_refused(line in proptest::collection::vec(any::<u8>(), 0..80), words in "a:[0-9 :a.]{0,40} 5") {
            for line in [&line[..], words.as_bytes()] {
                let _ = (header(line, b""), may_begin(line));
            }
        }
    }
}
