//! Writes record heads and generates record ids.

use std::fmt::{self, Write as _};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use chrono::{DateTime, Datelike, Timelike, Utc};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Hexadecimal digits of ids.
const HEX: &[u8; 16] = b"0123456789abcdef";

/// Builds a record's head. A line break within a value becomes a blank, so that no value can start a new field.
#[derive(Debug)]
pub(crate) struct HeadWriter {
    text: String,
}

impl HeadWriter {
    /// Starts a WARC/1.1 head with the mandatory fields except `Content-Length`.
    pub(crate) fn new(record_type: &str, id: &str, date: impl fmt::Display) -> Self {
        let mut head = Self { text: String::with_capacity(768) };
        head.text.push_str("WARC/1.1\r\n");
        head.field("WARC-Type", record_type);
        head.field("WARC-Record-ID", format_args!("<{id}>"));
        head.field("WARC-Date", date);
        head
    }

    /// Adds a field.
    pub(crate) fn field(&mut self, name: &str, value: impl fmt::Display) {
        self.text.push_str(name);
        self.text.push_str(": ");
        let start = self.text.len();
        let _ = write!(self.text, "{value}"); // writing to a String cannot fail
        if memchr::memchr2(b'\r', b'\n', self.text.as_bytes().get(start..).unwrap_or_default()).is_some() {
            let value = self.text.split_off(start).replace(['\r', '\n'], " ");
            self.text.push_str(&value);
        }
        self.text.push_str("\r\n");
    }

    /// Adds a field with a date.
    pub(crate) fn date_field(&mut self, name: &str, date: DateTime<Utc>) {
        self.field(name, WarcDate(date));
    }

    /// Ends the head, for a block of this many bytes.
    pub(crate) fn finish(mut self, content_length: u64) -> String {
        self.field("Content-Length", content_length);
        self.text.push_str("\r\n");
        self.text
    }
}

/// A date in the format of WARC/1.1: UTC, with microseconds unless they are 0.
pub(crate) struct WarcDate(pub(crate) DateTime<Utc>);

impl fmt::Display for WarcDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (time, microseconds) = (&self.0, self.0.nanosecond() / 1000);
        if !(0..=9999).contains(&time.year()) || microseconds >= 1_000_000 {
            // Years of other lengths and leap seconds: use the formatter of the crate.
            let format = if microseconds == 0 { "%Y-%m-%dT%H:%M:%SZ" } else { "%Y-%m-%dT%H:%M:%S%.6fZ" };
            return time.format(format).fmt(f);
        }
        // Each capture has three records with dates, and interpreting a format takes longer than the rest of a head.
        let mut text = *b"0000-00-00T00:00:00.000000Z";
        let year = time.year().unsigned_abs();
        put(&mut text[..4], year);
        for (place, value) in
            [(5, time.month()), (8, time.day()), (11, time.hour()), (14, time.minute()), (17, time.second())]
        {
            put(&mut text[place..place + 2], value);
        }
        if microseconds == 0 {
            text[19] = b'Z';
            return f.write_str(ascii(&text[..20]));
        }
        put(&mut text[20..26], microseconds);
        f.write_str(ascii(&text))
    }
}

/// Writes a number in decimal digits that fill `place`.
fn put(place: &mut [u8], mut value: u32) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

/// Converts ASCII bytes to text.
fn ascii(text: &[u8]) -> &str {
    std::str::from_utf8(text).unwrap_or_default()
}

/// Generates `urn:uuid` ids of version 4 (RFC 9562 section 5.4).
///
/// The bits are SipHash, with keys from the operating system, of a counter. Two records of one process share an id only
/// with the probability of two random ids.
#[derive(Debug)]
pub(crate) struct RecordIds {
    keys: [u64; 2],
    random: Option<[RandomState; 2]>,
    counter: AtomicU64,
}

impl RecordIds {
    /// Creates a generator of ids that never repeat.
    pub(crate) fn random() -> Self {
        Self {
            keys: [0; 2],
            random: Some([RandomState::new(), RandomState::new()]),
            counter: AtomicU64::new(0),
        }
    }

    /// Creates a generator with the same ids for the same seed, for repeatable tests.
    pub(crate) fn seeded(seed: u64) -> Self {
        Self { keys: [seed, !seed], random: None, counter: AtomicU64::new(0) }
    }

    /// Returns the next id.
    pub(crate) fn next(&self) -> String {
        let count = self.counter.fetch_add(1, Ordering::Relaxed);
        let [high, low] = match &self.random {
            Some([first, second]) => [first.hash_one(count), second.hash_one(count)],
            None => self.keys.map(|key| xxh3_64_with_seed(&count.to_le_bytes(), key)),
        };
        let high = (high & 0xffff_ffff_ffff_0fff) | 0x4000;
        let low = (low & 0x3fff_ffff_ffff_ffff) | 0x8000_0000_0000_0000;
        let mut text = *b"urn:uuid:00000000-0000-0000-0000-000000000000";
        let mut bits = u128::from(high) << 64 | u128::from(low);
        for place in text.iter_mut().skip("urn:uuid:".len()).rev().filter(|place| **place != b'-') {
            *place = HEX[(bits & 0xf) as usize];
            bits >>= 4;
        }
        ascii(&text).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::warc::RecordHeader;

    #[test]
    fn a_value_cannot_start_a_field() {
        let mut head = HeadWriter::new("metadata", "urn:x", WarcDate(DateTime::UNIX_EPOCH));
        head.field("WARC-Target-URI", "http://a/\r\nWARC-Type: response\n\nbody");
        let text = head.finish(7);
        let (header, length) = RecordHeader::parse(text.as_bytes()).expect("a head");
        assert_eq!(length, text.len());
        assert_eq!(header.get_all("WARC-Type").collect::<Vec<_>>(), ["metadata"]);
        assert_eq!(header.content_length(), Some(7));
        assert_eq!(header.date(), Some(DateTime::UNIX_EPOCH));
    }

    #[test]
    fn dates_show_microseconds_only_when_there_are_some() {
        let date = |seconds, nanoseconds| {
            WarcDate(DateTime::from_timestamp(seconds, nanoseconds).expect("a date")).to_string()
        };
        assert_eq!(date(0, 0), "1970-01-01T00:00:00Z");
        assert_eq!(date(0, 120_000_999), "1970-01-01T00:00:00.120000Z");
        assert_eq!(date(1_795_262_468, 999), "2026-11-21T12:01:08Z");
        assert_eq!(date(253_402_300_800, 1000), "+10000-01-01T00:00:00.000001Z");
        assert_eq!(date(1_483_228_799, 1_500_000_000), "2016-12-31T23:59:60.500000Z");
    }

    #[test]
    fn ids_are_distinct_and_of_version_4() {
        for ids in [RecordIds::random(), RecordIds::seeded(7)] {
            let all: HashSet<String> = (0..1000).map(|_| ids.next()).collect();
            assert_eq!(all.len(), 1000);
            for id in all {
                let bytes = id.strip_prefix("urn:uuid:").expect("a URN").as_bytes();
                assert_eq!((bytes.len(), bytes[14]), (36, b'4'));
                assert!(b"89ab".contains(&bytes[19]), "{id}");
            }
        }
        assert_eq!(RecordIds::seeded(1).next(), RecordIds::seeded(1).next());
    }
}
