//! Whether a page has changed, and whether two pages are nearly the same.
//!
//! The signature is a hash of a page's own text in a normal form. Left out is what changes without anybody having written
//! something: navigation, the site's header and footer, asides, buttons, advertisements and questions about cookies (a site's
//! menu changes on all its pages at once, and says nothing about any of them), dates and times, session tokens, and the numbers in short lines
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
    /// The words of the line at hand.
    words: Vec<Word>,
    own_bytes: usize,
}

/// A word of a line, by its place.
#[derive(Clone, Copy)]
struct Word {
    start: usize,
    end: usize,
    class: Class,
}

impl Signer {
    fn new() -> Self {
        Self { hash: Xxh3Default::new(), near: Simhash::new(), words: Vec::new(), own_bytes: 0 }
    }

    fn lines(&mut self, text: &str) {
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', text.as_bytes()) {
            self.line(&text[start..=end]);
            start = end + 1;
        }
        self.line(&text[start..]);
    }

    /// Signs a line, with or without the break at its end. Most lines are in normal form already, and then they are hashed
    /// as they are.
    fn line(&mut self, line: &str) {
        let bytes = line.as_bytes();
        if !self.split(bytes) {
            return self.line_in_pieces(bytes);
        }
        for word in &self.words {
            self.near.word(&bytes[word.start..word.end]);
        }
        if !self.words.is_empty() {
            self.own_bytes += bytes.len();
            self.hash.update(bytes);
            if bytes.last() != Some(&b'\n') {
                self.hash.update(b"\n");
            }
        }
    }

    /// Signs a line word by word, leaving out what doesn't count.
    fn line_in_pieces(&mut self, line: &[u8]) {
        let mut is_first = true;
        for index in 0..self.words.len() {
            if self.changes_by_itself(index) {
                continue;
            }
            let word = self.words[index];
            let bytes = &line[word.start..word.end];
            self.near.word(bytes);
            if !is_first {
                self.hash.update(b" ");
            }
            is_first = false;
            self.own_bytes += bytes.len() + 1;
            self.hash.update(bytes);
        }
        if !is_first {
            self.hash.update(b"\n");
        }
    }

    /// Whether a word is one that nobody has written: by what it is, and by the words beside it.
    fn changes_by_itself(&self, index: usize) -> bool {
        let is_short = self.words.len() <= SHORT_LINE_WORDS_MAX;
        let class =
            |index: Option<usize>| index.and_then(|index| self.words.get(index)).map(|word| word.class);
        let (before, after) = (class(index.checked_sub(1)), class(index.checked_add(1)));
        match self.words[index].class {
            Class::Date | Class::Token => true,
            Class::Number => {
                is_short || before == Some(Class::Month) || after == Some(Class::Month) || {
                    // The year in "November 21, 2026".
                    before == Some(Class::Number) && class(index.checked_sub(2)) == Some(Class::Month)
                }
            }
            Class::Month => is_short || before == Some(Class::Number) || after == Some(Class::Number),
            Class::Unit => is_short,
            Class::Word => false,
        }
    }

    /// Finds the words of a line, and says whether it is in normal form: every word counts, and they are parted by single
    /// spaces.
    fn split(&mut self, line: &[u8]) -> bool {
        self.words.clear();
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let mut is_normal = true;
        let mut at = 0;
        while at < line.len() {
            let start = at;
            let mut has_digit = false;
            while at < line.len() && line[at] > b' ' {
                has_digit |= line[at].is_ascii_digit();
                at += 1;
            }
            if at == start {
                // Space at the beginning or end, or twice.
                is_normal = false;
            } else {
                let class = Class::of(&line[start..at], has_digit);
                self.words.push(Word { start, end: at, class });
                let is_parted_normally = at == line.len() || (line[at] == b' ' && at + 1 < line.len());
                is_normal &= is_parted_normally && class == Class::Word;
            }
            at += 1;
        }
        is_normal
    }

    fn finish(self) -> Signatures {
        let exact = (self.own_bytes > 0).then(|| self.hash.digest());
        Signatures { exact, near: self.near.finish() }
    }
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

/// The longest name below, in bytes.
const NAME_BYTES_MAX: usize = 9;

/// Months and days, and units of time, in lower case.
const MONTHS: [&str; 38] = [
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
    "mon",
    "tue",
    "wed",
    "thu",
    "fri",
    "sat",
    "sun",
    "january",
    "february",
    "march",
    "april",
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
    "sept",
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

/// For each first letter and length of the names above, their last letters, as bits: nearly no other word passes.
const LAST_LETTERS: [[u32; NAME_BYTES_MAX + 1]; 26] = {
    const fn add(
        mut table: [[u32; NAME_BYTES_MAX + 1]; 26],
        names: &[&str],
    ) -> [[u32; NAME_BYTES_MAX + 1]; 26] {
        let mut index = 0;
        while index < names.len() {
            let name = names[index].as_bytes();
            table[(name[0] - b'a') as usize][name.len()] |= 1 << (name[name.len() - 1] - b'a');
            index += 1;
        }
        table
    }
    add(add([[0; NAME_BYTES_MAX + 1]; 26], &MONTHS), &UNITS)
};

/// The place of a letter in the alphabet, in any case.
fn letter(byte: u8) -> Option<usize> {
    let place = (byte | 0x20).wrapping_sub(b'a');
    (place < 26).then_some(usize::from(place))
}

impl Class {
    fn of(word: &[u8], has_digit: bool) -> Self {
        if !has_digit {
            return Self::of_name(word);
        }
        let bare = without_punctuation(word);
        if is_date(bare) {
            return Self::Date;
        }
        let digits = bare.iter().filter(|byte| byte.is_ascii_digit()).count();
        let is_of_token =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'=' | b'+' | b'/');
        let is_token = bare.len() >= TOKEN_BYTES_MIN
            && bare.iter().all(is_of_token)
            && digits >= 2
            && digits * 10 < bare.len() * 9;
        if is_token { Self::Token } else { Self::Number }
    }

    #[inline]
    fn of_name(word: &[u8]) -> Self {
        let is_bare = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphabetic);
        let bare =
            if is_bare(word.first()) && is_bare(word.last()) { word } else { without_punctuation(word) };
        let (Some(&first), Some(&last)) = (bare.first(), bare.last()) else { return Self::Word };
        let (Some(first), Some(last)) = (letter(first), letter(last)) else { return Self::Word };
        if bare.len() > NAME_BYTES_MAX || LAST_LETTERS[first][bare.len()] >> last & 1 == 0 {
            return Self::Word;
        }
        Self::of_likely_name(bare)
    }

    #[inline(never)]
    fn of_likely_name(word: &[u8]) -> Self {
        let among = |names: &[&str]| names.iter().any(|listed| word.eq_ignore_ascii_case(listed.as_bytes()));
        // A month is written with a capital: "may" and "march" are verbs.
        if word[0].is_ascii_uppercase() && among(&MONTHS) {
            return Self::Month;
        }
        if among(&UNITS) { Self::Unit } else { Self::Word }
    }
}

fn without_punctuation(mut word: &[u8]) -> &[u8] {
    while let Some((_, rest)) = word.split_first().filter(|(first, _)| first.is_ascii_punctuation()) {
        word = rest;
    }
    while let Some((_, rest)) = word.split_last().filter(|(last, _)| last.is_ascii_punctuation()) {
        word = rest;
    }
    word
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

    /// Adds a word, and with it the row of three that it ends. The first two words stand for rows of their own, so that the
    /// shortest text has a similarity.
    #[inline]
    fn word(&mut self, word: &[u8]) {
        let hash = hash_of_word(word);
        self.words = self.words.saturating_add(1);
        self.add(hash_of_row(self.last[0], self.last[1], hash));
        self.last = [self.last[1], hash];
    }

    #[inline]
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

/// Odd constants with bits set at random: the fractional parts of the square roots of 2, 3 and 5.
const FACTORS: [u64; 3] = [0x6a09_e667_f3bc_c909, 0xbb67_ae85_84ca_a73b, 0x3c6e_f372_fe94_f82b];

/// A hash that is quick on short words, of which a text is made: the first and last bytes, which overlap, and the length.
#[inline]
fn hash_of_word(word: &[u8]) -> u64 {
    let (first, last) = if let (Some(first), Some(last), ..=16) =
        (word.first_chunk::<8>(), word.last_chunk::<8>(), word.len())
    {
        (u64::from_le_bytes(*first), u64::from_le_bytes(*last))
    } else if let (Some(first), Some(last), ..=8) =
        (word.first_chunk::<4>(), word.last_chunk::<4>(), word.len())
    {
        (u64::from(u32::from_le_bytes(*first)), u64::from(u32::from_le_bytes(*last)))
    } else if let (Some(first), Some(last), ..=3) = (word.first(), word.last(), word.len()) {
        (u64::from(*first) | u64::from(word[word.len() / 2]) << 8, u64::from(*last))
    } else {
        (xxh3_64(word), 0)
    };
    let mixed =
        (first ^ word.len() as u64).wrapping_mul(FACTORS[0]) ^ last.wrapping_mul(FACTORS[1]).rotate_left(32);
    mixed ^ (mixed >> 29)
}

/// A hash of three words in their order, all of whose bits depend on all of theirs.
#[inline]
fn hash_of_row(first: u64, second: u64, third: u64) -> u64 {
    let mut mixed = first.wrapping_mul(FACTORS[1]) ^ second.wrapping_mul(FACTORS[2]).rotate_left(21) ^ third;
    mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xff51_afd7_ed55_8ccd);
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
            let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
            assert_eq!(Class::of(word.as_bytes(), has_digit), class, "{word}");
        }
    }
}
