//! Whether a page has changed, and whether two pages are nearly the same.
//!
//! The signature is a hash of a page's own text in a normal form. Left out is what changes without anybody having written
//! something: navigation, footers, asides, advertisements and questions about cookies (a site's menu changes on all its
//! pages at once, and says nothing about any of them), dates and times, session tokens, and the numbers in short lines
//! (counters, prices of the day, "3 comments"). A page of which nothing is left, as a front page made of links, is judged
//! by all its text; without any text, by its links.
//!
//! The similarity is the simhash (Charikar, STOC 2002; Manku, Jain, Das Sarma, WWW 2007) of three words in a row of the
//! same normal form: near-duplicates differ in at most [`NEAR_BITS_MAX`] of 64 bits.

use std::ops::Range;

use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

/// Signatures of near-duplicates differ in at most this many bits (Manku et al., section 4).
pub const NEAR_BITS_MAX: u32 = 3;

/// Whether two similarities are those of near-duplicates. What has no text is near to nothing.
#[must_use]
pub fn is_near(one: u64, other: u64) -> bool {
    one != 0 && other != 0 && (one ^ other).count_ones() <= NEAR_BITS_MAX
}

/// A line of at most this many words is short: its numbers don't count.
const SHORT_LINE_WORDS_MAX: usize = 8;

/// Words of this length with letters and digits mixed are tokens, in bytes.
const TOKEN_BYTES_MIN: usize = 16;

/// Own text of at least this many bytes is enough to judge a page by.
const OWN_BYTES_MIN: usize = 64;

/// The two signatures of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signatures {
    /// None when nothing is left to sign.
    pub(crate) exact: Option<u64>,
    pub(crate) near: u64,
}

/// The signature of bytes that are no text.
pub(crate) fn of_bytes(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// The signatures of a text of lines, without the ranges that are not its own (in the order of their ends).
pub(crate) fn of_text(title: &str, text: &str, surroundings: &[Range<usize>]) -> Signatures {
    let mut signer = Signer::new();
    signer.line(title);
    for range in complement(text.len(), surroundings) {
        signer.lines(&text[range]);
    }
    if signer.own_bytes < OWN_BYTES_MIN && !surroundings.is_empty() {
        signer = Signer::new();
        signer.line(title);
        signer.lines(text);
    }
    signer.finish()
}

/// What is left of `0..length` without these ranges, which may lie inside one another.
fn complement(length: usize, ranges: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut sorted: Vec<_> = ranges.iter().filter(|range| range.end <= length).cloned().collect();
    sorted.sort_by_key(|range| range.start);
    let mut left = Vec::with_capacity(sorted.len() + 1);
    let mut at = 0;
    for range in sorted {
        if range.start > at {
            left.push(at..range.start);
        }
        at = at.max(range.end);
    }
    left.push(at..length);
    left
}

struct Signer {
    hash: Xxh3Default,
    near: Simhash,
    /// The normal form of the line at hand.
    line: String,
    own_bytes: usize,
}

impl Signer {
    fn new() -> Self {
        Self { hash: Xxh3Default::new(), near: Simhash::new(), line: String::new(), own_bytes: 0 }
    }

    fn lines(&mut self, text: &str) {
        for line in text.split('\n') {
            self.line(line);
        }
    }

    fn line(&mut self, line: &str) {
        let is_short = line.split_whitespace().nth(SHORT_LINE_WORDS_MAX).is_none();
        self.line.clear();
        let mut words = line.split_whitespace().peekable();
        let mut after_date = false;
        while let Some(word) = words.next() {
            let next_is_number = words.peek().is_some_and(|next| starts_with_digit(next));
            let class = Class::of(word);
            let is_date = match class {
                Class::Date | Class::Token => true,
                Class::Month => next_is_number || after_date || is_short,
                Class::Number => {
                    is_short || after_date || words.peek().is_some_and(|next| Class::of(next) == Class::Month)
                }
                Class::Unit => is_short,
                Class::Word => false,
            };
            after_date = is_date && class != Class::Token;
            if !is_date {
                self.near.word(word);
                self.line.push_str(word);
                self.line.push(' ');
            }
        }
        if !self.line.is_empty() {
            self.own_bytes += self.line.len();
            self.line.push('\n');
            self.hash.update(self.line.as_bytes());
        }
    }

    fn finish(self) -> Signatures {
        let exact = (self.own_bytes > 0).then(|| self.hash.digest());
        Signatures { exact, near: self.near.finish() }
    }
}

fn starts_with_digit(word: &str) -> bool {
    word.as_bytes().first().is_some_and(u8::is_ascii_digit)
}

/// What a word is, as far as change is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Word,
    /// Something with digits in it.
    Number,
    /// A date or time in itself: `2026-11-21`, `21.11.26`, `12:30`.
    Date,
    /// A month or day of the week.
    Month,
    /// A unit of time, or a word that stands for a time.
    Unit,
    /// What no person has written.
    Token,
}

impl Class {
    fn of(word: &str) -> Self {
        let bare = word.trim_matches(|c: char| c.is_ascii_punctuation());
        let bytes = bare.as_bytes();
        let digits = bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return Self::of_name(bare);
        }
        if is_date(bytes) {
            return Self::Date;
        }
        let is_token = bytes.len() >= TOKEN_BYTES_MIN
            && bytes
                .iter()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'=' | b'+' | b'/'))
            && digits >= 2
            && digits * 10 < bytes.len() * 9;
        if is_token { Self::Token } else { Self::Number }
    }

    fn of_name(word: &str) -> Self {
        /// Longest first: what begins with one of these is a month or day.
        const MONTHS: [&str; 19] = [
            "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", "mon", "tue",
            "wed", "thu", "fri", "sat", "sun",
        ];
        const MONTH_NAMES: [&str; 19] = [
            "january",
            "february",
            "march",
            "april",
            "may",
            "june",
            "july",
            "august",
            "september",
            "october",
            "november",
            "december",
            "monday",
            "tuesday",
            "wednesday",
            "thursday",
            "friday",
            "saturday",
            "sunday",
        ];
        const UNITS: [&str; 23] = [
            "second",
            "seconds",
            "sec",
            "minute",
            "minutes",
            "min",
            "mins",
            "hour",
            "hours",
            "day",
            "days",
            "week",
            "weeks",
            "month",
            "months",
            "year",
            "years",
            "ago",
            "today",
            "yesterday",
            "am",
            "pm",
            "utc",
        ];
        const NAME_BYTES_MAX: usize = 9;
        if !(2..=NAME_BYTES_MAX).contains(&word.len()) || !word.is_ascii() {
            return Self::Word;
        }
        let among = |names: &[&str]| names.iter().any(|listed| word.eq_ignore_ascii_case(listed));
        let may_be_month = word.as_bytes().first().is_some_and(u8::is_ascii_uppercase);
        if may_be_month && (among(&MONTHS) || among(&MONTH_NAMES)) {
            return Self::Month;
        }
        if among(&UNITS) { Self::Unit } else { Self::Word }
    }
}

/// A date in numbers or a time of day: `2026-11-21`, `11/21/26`, `21.11.2026`, `12:30`, each perhaps with a time or zone
/// behind. `2.5.8` is a version and `1.5` a number.
fn is_date(word: &[u8]) -> bool {
    let Some((first, after)) = number(word) else { return false };
    let Some((&separator, rest)) = after.split_first() else { return false };
    let Some((second, after)) = number(rest) else { return false };
    if separator == b':' {
        return first.value < 25 && second.digits == 2 && is_end_of_time(after);
    }
    let Some(third) = after.strip_prefix(&[separator]).and_then(number) else { return false };
    let (third, after) = third;
    let is_year_first = first.digits == 4 && second.value <= 12 && third.value <= 31;
    let is_year_last = matches!(third.digits, 2 | 4) && first.value <= 31 && second.value <= 31;
    let separates = match separator {
        b'-' | b'/' => is_year_first || is_year_last,
        b'.' => is_year_first || is_year_last && second.value <= 12,
        _ => false,
    };
    separates && (after.is_empty() || after[0] == b'T' || after[0] == b't')
}

/// Seconds, a zone, `am` or `pm`.
fn is_end_of_time(rest: &[u8]) -> bool {
    let rest = rest.strip_suffix(b"am").or_else(|| rest.strip_suffix(b"pm")).unwrap_or(rest);
    rest.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.' | b'+' | b'-' | b'Z' | b'h'))
}

#[derive(Clone, Copy)]
struct Digits {
    value: u32,
    digits: usize,
}

/// A number of at most four digits, and what follows it.
fn number(text: &[u8]) -> Option<(Digits, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 || digits > 4 {
        return None;
    }
    let value = text[..digits].iter().fold(0, |value, digit| value * 10 + u32::from(digit - b'0'));
    Some((Digits { value, digits }, &text[digits..]))
}

/// Sums up hashes bit by bit: a bit of the result says whether more of them have it than not.
///
/// Eight counters of a byte lie in one word, so one addition counts eight bits; they are emptied before they can overflow.
struct Simhash {
    lanes: [u64; 8],
    pending: u32,
    counts: [u32; 64],
    total: u32,
    last: [u64; 2],
    words: u32,
}

/// The bits of a byte, each in a byte of its own.
const SPREAD: [u64; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 0;
        while bit < 8 {
            table[byte] |= ((byte as u64 >> bit) & 1) << (8 * bit);
            bit += 1;
        }
        byte += 1;
    }
    table
};

impl Simhash {
    fn new() -> Self {
        Self { lanes: [0; 8], pending: 0, counts: [0; 64], total: 0, last: [0; 2], words: 0 }
    }

    /// Adds a word, and with it the row of three that it ends.
    fn word(&mut self, word: &str) {
        let hash = xxh3_64(word.as_bytes());
        self.words = self.words.saturating_add(1);
        let row = mix(mix(self.last[0], self.last[1]), hash);
        self.last = [self.last[1], hash];
        // The first two words stand for themselves, so that the shortest text has a similarity.
        self.add(row);
    }

    fn add(&mut self, hash: u64) {
        for (lane, byte) in self.lanes.iter_mut().zip(hash.to_le_bytes()) {
            *lane += SPREAD[usize::from(byte)];
        }
        self.pending += 1;
        if self.pending == u32::from(u8::MAX) {
            self.empty();
        }
    }

    fn empty(&mut self) {
        for (lane, counts) in self.lanes.iter_mut().zip(self.counts.chunks_exact_mut(8)) {
            for (count, byte) in counts.iter_mut().zip(lane.to_le_bytes()) {
                *count = count.saturating_add(u32::from(byte));
            }
            *lane = 0;
        }
        self.total = self.total.saturating_add(self.pending);
        self.pending = 0;
    }

    fn finish(mut self) -> u64 {
        self.empty();
        if self.words == 0 {
            return 0;
        }
        let bits = self.counts.iter().enumerate();
        let hash = bits.fold(0, |hash, (bit, &count)| hash | (u64::from(count > self.total / 2) << bit));
        // 0 means no text.
        hash.max(1)
    }
}

/// The mixing step of MurmurHash3's finaliser over a pair, which tells the order of the two.
fn mix(one: u64, other: u64) -> u64 {
    let mut mixed = one.rotate_left(23) ^ other;
    mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    mixed ^ (mixed >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(text: &str) -> Option<u64> {
        of_text("", text, &[]).exact
    }

    #[test]
    fn what_changes_at_every_fetch_does_not_count() {
        for (one, other) in [
            ("News\nUpdated 12 Nov 2026 12:30", "News\nUpdated 1 Dec 2026 09:15"),
            ("News\n2026-11-21T10:00:00Z", "News\n2026-11-22T11:30:05+01:00"),
            ("News\n3 comments", "News\n14 comments"),
            ("News\n59 minutes ago", "News\n1 hour ago"),
            ("Home\nVisitors: 1,234", "Home\nVisitors: 1,235"),
            ("Page\nreq-9f8a7b6c5d4e3f2a1b0c", "Page\nreq-1a2b3c4d5e6f7a8b9c0d"),
            ("a  b\n\nc", "a b\nc"),
            (
                "This policy takes effect on November 21, 2026 for all of our users everywhere.",
                "This policy takes effect on January 3, 2027 for all of our users everywhere.",
            ),
        ] {
            assert_eq!(exact(one), exact(other), "{one} / {other}");
        }
    }

    #[test]
    fn what_somebody_has_written_counts() {
        for (one, other) in [
            ("one", "two"),
            ("a b", "ab"),
            ("a\nb", "a b"),
            (
                "It costs 5 euros a day to anybody who wants it here.",
                "It costs 6 euros a day to anybody who wants it here.",
            ),
            ("You may come in.", "You May come in."),
        ] {
            assert_ne!(exact(one), exact(other), "{one} / {other}");
        }
        assert_eq!(exact(""), None);
        assert_eq!(exact("12:30"), None);
    }

    #[test]
    fn surroundings_count_only_where_nothing_else_is() {
        let own = "A sentence of the page itself that is long enough to be judged by, all alone.";
        let page = |menu: &str, own: &str| {
            let text = format!("{menu}\n{own}");
            of_text("", &text, &[0..menu.len(), 1..2]).exact
        };
        assert_eq!(page("Home News", own), page("Home News Sports", own));
        assert_ne!(page("Home News", ""), page("Home News Sports", ""));
    }

    #[test]
    fn near_duplicates_are_near() {
        let words: Vec<String> =
            (0..2000_u32).map(|n| format!("w{:x}", n.wrapping_mul(2_654_435_761))).collect();
        let text = words.join(" ");
        let changed = text.replacen(&words[700], "another", 1);
        let other = words.iter().rev().cloned().collect::<Vec<_>>().join(" ");
        let near = |text: &str| of_text("", text, &[]).near;
        assert!(is_near(near(&text), near(&changed)), "{:x} {:x}", near(&text), near(&changed));
        assert!(!is_near(near(&text), near(&other)));
        assert!(!is_near(near(""), near("")));
        assert_ne!(near("one"), near("two"));
    }

    #[test]
    fn lanes_do_not_overflow() {
        let mut simhash = Simhash::new();
        for _ in 0..1000 {
            simhash.add(u64::MAX);
        }
        simhash.words = 1;
        assert_eq!(simhash.finish(), u64::MAX);
    }

    #[test]
    fn classes() {
        for (word, class) in [
            ("2026-11-21", Class::Date),
            ("21.11.26,", Class::Date),
            ("12:30", Class::Date),
            ("12:30pm", Class::Date),
            ("(11/21/2026)", Class::Date),
            ("1.5", Class::Number),
            ("2.5.8", Class::Number),
            ("4.11.20", Class::Date),
            ("1-2", Class::Number),
            ("1,234", Class::Number),
            ("3rd", Class::Number),
            ("Nov.", Class::Month),
            ("Sunday", Class::Month),
            ("march", Class::Word),
            ("hours", Class::Unit),
            ("d41d8cd98f00b204e9800998ecf8427e", Class::Token),
            ("12345678901234567890", Class::Number),
            ("word", Class::Word),
        ] {
            assert_eq!(Class::of(word), class, "{word}");
        }
    }
}
