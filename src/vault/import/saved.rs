//! Pages that were saved in one file: MHTML (RFC 2557), and HTML with a comment that says where it is from.

use std::io::{self, Read};

use archive_storage::warc::HttpHead;
use archive_web::parse::http_date;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};

use super::made::MadeHead;

/// Maximum bytes of an MHTML file: it is read into memory.
const MHTML_BYTES_MAX: u64 = 256 << 20;

/// Maximum number of parts of an MHTML file.
const PARTS_MAX: usize = 100_000;

/// Bytes at the beginning of a file that are read for its kind.
pub(super) const BEGINNING_BYTES: u64 = 64 << 10;

/// The kind of a file that a page was saved in.
pub(super) enum SavedPage {
    /// Its parts are encoded; when it was saved, if that is known.
    Mhtml(Option<DateTime<Utc>>),
    /// It is a document, from a URL; when it was saved, if that is known.
    Html(String, Option<DateTime<Utc>>),
}

/// Recognises a saved page by its beginning.
pub(super) fn recognise(beginning: &[u8]) -> Option<SavedPage> {
    let head = mime_head(beginning);
    if head.get("Content-Type").is_some_and(|kind| kind.to_ascii_lowercase().starts_with("multipart/")) {
        return Some(SavedPage::Mhtml(head.get("Date").and_then(http_date)));
    }
    let text = String::from_utf8_lossy(beginning);
    let line = |name: &str| {
        let (_, rest) = text.split_once(name)?;
        Some(rest.lines().next().unwrap_or_default().trim().to_owned())
    };
    if text.contains("Page saved with SingleFile") {
        let date = line("saved date:").and_then(|date| {
            let date = date.split(" (").next().unwrap_or_default();
            DateTime::parse_from_str(date, "%a %b %d %Y %H:%M:%S GMT%z").ok().map(|date| date.to_utc())
        });
        return Some(SavedPage::Html(line("url:")?, date));
    }
    // Browsers count the letters of the URL: `saved from url=(0021)https://example.org/ -->`.
    let from = line("saved from url=(")?;
    let url = from.split_once(')')?.1.split("-->").next().unwrap_or_default().trim().to_owned();
    Some(SavedPage::Html(url, None))
}

/// Reads the head of a message or of a part.
fn mime_head(bytes: &[u8]) -> HttpHead {
    HttpHead::parse(
        &[b"MIME\n", bytes.get(..bytes.len().min(BEGINNING_BYTES as usize)).unwrap_or_default()].concat(),
    )
}

/// Returns the parts of an MHTML file as a file of records, each of the time when it was saved. Parts without an address of the
/// web, such as style sheets of a frame, are left out.
///
/// # Errors
/// If the file cannot be read, is too long or names no boundary.
pub(super) fn records(file: impl Read, saved: DateTime<Utc>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MHTML_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MHTML_BYTES_MAX {
        return Err(io::Error::other(format!("it is longer than {} MiB", MHTML_BYTES_MAX >> 20)));
    }
    let head = mime_head(&bytes);
    let boundary = head
        .get("Content-Type")
        .and_then(boundary)
        .ok_or_else(|| io::Error::other("it names no boundary"))?;
    let mut records = Vec::new();
    for (number, (of_part, body)) in parts(&bytes, &boundary).take(PARTS_MAX).enumerate() {
        let page = head.get("Snapshot-Content-Location").filter(|_| number == 0);
        let url = of_part.get("Content-Location").or(page);
        let Some(url) = url.filter(|url| url.starts_with("http://") || url.starts_with("https://")) else {
            continue;
        };
        let body = decoded(body, of_part.get("Content-Transfer-Encoding").unwrap_or_default());
        let made = MadeHead::resource(url, saved, of_part.get("Content-Type"));
        records.extend_from_slice(&made.before(body.len() as u64));
        records.extend_from_slice(&body);
        records.extend_from_slice(b"\r\n\r\n");
    }
    Ok(records)
}

fn boundary(kind: &str) -> Option<String> {
    let at = kind.to_ascii_lowercase().find("boundary=")?;
    let value = kind.get(at + "boundary=".len()..)?.trim();
    let value = match value.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => value.split([';', ' ']).next(),
    };
    value.filter(|value| !value.is_empty()).map(str::to_owned)
}

/// Returns head and body of each part.
fn parts<'b>(bytes: &'b [u8], boundary: &str) -> impl Iterator<Item = (HttpHead, &'b [u8])> {
    let line = format!("\n--{boundary}");
    let mut starts: Vec<usize> = memchr::memmem::find_iter(bytes, line.as_bytes()).collect();
    let length = line.len();
    starts.push(bytes.len());
    let ranges: Vec<_> = starts.windows(2).map(|pair| pair[0] + length..pair[1]).collect();
    ranges.into_iter().filter_map(move |range| {
        let part = bytes.get(range)?;
        // The rest of the line; the last one ends with `--`.
        let (line, part) = part.split_at(memchr::memchr(b'\n', part)? + 1);
        if line.starts_with(b"--") {
            return None;
        }
        let ends = [&b"\r\n\r\n"[..], b"\n\n"].into_iter();
        let end = ends.filter_map(|end| Some(memchr::memmem::find(part, end)? + end.len())).min()?;
        let (head, body) = part.split_at(end);
        Some((mime_head(head), body.strip_suffix(b"\r").unwrap_or(body)))
    })
}

/// Removes a transfer encoding (RFC 2045, section 6). What is wrong stays as it is.
fn decoded(body: &[u8], encoding: &str) -> Vec<u8> {
    if encoding.eq_ignore_ascii_case("base64") {
        let letters: Vec<u8> = body.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
        return STANDARD.decode(letters).unwrap_or_else(|_| body.to_owned());
    }
    if !encoding.eq_ignore_ascii_case("quoted-printable") {
        return body.to_owned();
    }
    let (mut plain, mut rest) = (Vec::with_capacity(body.len()), body);
    while let Some(at) = memchr::memchr(b'=', rest) {
        let (before, after) = rest.split_at(at);
        plain.extend_from_slice(before);
        let digit = |place: usize| char::from(*after.get(place)?).to_digit(16);
        match (after, digit(1).zip(digit(2))) {
            ([b'=', b'\r', b'\n', next @ ..] | [b'=', b'\n', next @ ..], _) => rest = next,
            (_, Some((high, low))) => {
                plain.push((high * 16 + low) as u8);
                rest = after.get(3..).unwrap_or_default();
            }
            _ => {
                plain.push(b'=');
                rest = after.get(1..).unwrap_or_default();
            }
        }
    }
    plain.extend_from_slice(rest);
    plain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn encodings_are_removed() {
        for (encoding, body, plain) in [
            ("quoted-printable", "a=3D=C3=A9=\r\nb=\nc=zz=", "a=ébc=zz="),
            ("base64", "YW\r\nJj", "abc"),
            ("base64", "no!", "no!"),
            ("binary", "a=3D", "a=3D"),
        ] {
            assert_eq!(decoded(body.as_bytes(), encoding), plain.as_bytes(), "{body}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..300), parts in "(\n--b(--)?|\r?\n|=[0-9A-F]{0,2}|Content-Location: http://a/|x){0,40}") {
            for text in [&bytes[..], parts.as_bytes()] {
                let file = [b"Content-Type: multipart/related; boundary=b\r\n", text].concat();
                prop_assert!(records(&file[..], DateTime::UNIX_EPOCH).is_ok());
                let _ = recognise(text);
            }
        }
    }
}
