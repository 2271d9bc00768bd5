//! Whether a page has changed, and whether two pages are nearly the same.
//!
//! The signature is a hash of a page's own text in normal form. It leaves out everything that changes without anybody
//! editing it: navigation, the site's header and footer, asides, buttons, advertisements and cookie notices (a site's
//! menu changes on all its pages at once, and says nothing about any of them), dates and times, session tokens, and the
//! numbers in short lines (counters, prices of the day, "3 comments"). If hardly anything is left of a page, such as a
//! front page made of links, the signature covers all its text; without any text, its links.
//!
//! The similarity is the simhash (Charikar, STOC 2002; Manku, Jain, Das Sarma, WWW 2007) of word trigrams of the same
//! normal form, in 48 bits, and a hash of the page's own numbers and pictures in 16 bits: the pages of a gallery, or of
//! tables, have one text, and are not alike.

mod simhash;
mod word;

use std::ops::Range;

use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

use self::simhash::Simhash;
use self::simhash::with_details;
pub use self::simhash::{is_alike, is_near};
use self::word::WordClass;

/// Maximum number of words of a short line; numbers in it are ignored.
const SHORT_LINE_WORDS_MAX: usize = 8;

/// Minimum bytes of a page's own text; with less, all its text is signed.
const OWN_BYTES_MIN: usize = 64;

/// The two signatures of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signatures {
    /// None if nothing is left to sign.
    pub(crate) exact: Option<u64>,
    pub(crate) near: u64,
}

/// Returns the signature of bytes that are not text.
pub(crate) fn of_bytes(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// Returns the signatures of a text, without the ranges that are not its own (in the order of their ends); `pictures` is
/// a hash of the page's pictures, 0 for none.
pub(crate) fn of_text(title: &str, text: &str, surroundings: &[Range<usize>], pictures: u64) -> Signatures {
    let mut signer = TextSigner::new();
    signer.line(title);
    for range in complement(text.len(), surroundings) {
        signer.lines(&text[range]);
    }
    if signer.own_bytes < OWN_BYTES_MIN && !surroundings.is_empty() {
        signer = TextSigner::new();
        signer.line(title);
        signer.lines(text);
    }
    signer.finish(pictures)
}

/// Returns the parts of a text that its signature covers.
pub(crate) fn own_parts(text: &str, surroundings: &[Range<usize>]) -> Vec<Range<usize>> {
    let own = complement(text.len(), surroundings);
    let bytes: usize =
        own.iter().filter_map(|part| text.get(part.clone())).map(|part| part.trim().len()).sum();
    if bytes < OWN_BYTES_MIN && !surroundings.is_empty() { complement(text.len(), &[]) } else { own }
}

/// Returns the rest of `0..length` without these ranges, which may be nested.
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

struct TextSigner {
    hash: Xxh3Default,
    near: Simhash,
    /// Words of the current line.
    words: Vec<Word>,
    own_bytes: usize,
    /// Sum of the hashes of numbers that are not part of dates and times.
    numbers: u64,
}

/// Range and class of a word in a line.
#[derive(Clone, Copy)]
struct Word {
    start: usize,
    end: usize,
    class: WordClass,
}

impl TextSigner {
    fn new() -> Self {
        Self { hash: Xxh3Default::new(), near: Simhash::new(), words: Vec::new(), own_bytes: 0, numbers: 0 }
    }

    fn lines(&mut self, text: &str) {
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', text.as_bytes()) {
            self.line(&text[start..=end]);
            start = end + 1;
        }
        self.line(&text[start..]);
    }

    /// Signs a line, with or without its line break. Most lines are in normal form already and are hashed as they are.
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

    /// Signs a line word by word, skipping words that do not count.
    fn line_in_pieces(&mut self, line: &[u8]) {
        let mut is_first = true;
        let has_unit = self.words.iter().any(|word| word.class == WordClass::Unit);
        for index in 0..self.words.len() {
            let number = &line[self.words[index].start..self.words[index].end];
            if !has_unit
                && self.words[index].class == WordClass::Number
                && !self.is_of_date(index)
                && is_numeric(number)
            {
                self.numbers = self.numbers.wrapping_add(xxh3_64(number));
            }
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

    /// Whether a word changes without anybody editing it, judged by its class and by its neighbours.
    fn changes_by_itself(&self, index: usize) -> bool {
        let is_short = self.words.len() <= SHORT_LINE_WORDS_MAX;
        match self.words[index].class {
            WordClass::Date | WordClass::Token => true,
            WordClass::Number => is_short || self.is_of_date(index),
            WordClass::Month => {
                let is_beside = |place| self.class(place) == Some(WordClass::Number);
                is_short || is_beside(index.checked_sub(1)) || is_beside(index.checked_add(1))
            }
            WordClass::Unit => is_short,
            WordClass::Word => false,
        }
    }

    fn class(&self, index: Option<usize>) -> Option<WordClass> {
        index.and_then(|index| self.words.get(index)).map(|word| word.class)
    }

    /// Whether a number belongs to a date that is written in words.
    fn is_of_date(&self, index: usize) -> bool {
        let (before, after) = (self.class(index.checked_sub(1)), self.class(index.checked_add(1)));
        before == Some(WordClass::Month) || after == Some(WordClass::Month) || {
            // The year in "November 21, 2026".
            before == Some(WordClass::Number) && self.class(index.checked_sub(2)) == Some(WordClass::Month)
        }
    }

    /// Finds the words of a line; returns whether the line is in normal form: every word counts, and single spaces
    /// separate the words.
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
                // Leading, trailing or repeated space.
                is_normal = false;
            } else {
                let class = WordClass::of(&line[start..at], has_digit);
                self.words.push(Word { start, end: at, class });
                let is_parted_normally = at == line.len() || (line[at] == b' ' && at + 1 < line.len());
                is_normal &= is_parted_normally && class == WordClass::Word;
            }
            at += 1;
        }
        is_normal
    }

    fn finish(self, pictures: u64) -> Signatures {
        let exact = (self.own_bytes > 0).then(|| self.hash.digest());
        let details = self.numbers.wrapping_add(pictures);
        Signatures { exact, near: with_details(self.near.finish(), details) }
    }
}

/// Whether a word with digits has nothing but digits, signs and punctuation.
fn is_numeric(word: &[u8]) -> bool {
    !word.iter().any(u8::is_ascii_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(text: &str) -> Option<u64> {
        of_text("", text, &[], 0).exact
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
            of_text("", &text, &[0..menu.len(), 1..2], 0).exact
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
        let near = |text: &str| of_text("", text, &[], 0).near;
        assert!(is_near(near(&text), near(&changed)), "{:x} {:x}", near(&text), near(&changed));
        assert!(!is_near(near(&text), near(&other)));
        assert!(!is_near(near(""), near("")));
        assert_ne!(near("one"), near("two"));
    }

    #[test]
    fn numbers_and_pictures_tell_pages_apart() {
        let near = |text: &str, pictures| of_text("Of the collection", text, &[], pictures).near;
        let alike = |one: &str, other: &str| is_alike(near(one, 7), near(other, 7));
        assert!(!alike("It weighs\n17,5\nkilograms", "It weighs\n18,5\nkilograms"));
        assert!(alike("Of 21 November 2026\n12:30", "Of 22 December 2027\n13:45"));
        assert!(alike("3 minutes ago", "14 minutes ago"));
        let text = "A picture of the house, seen from the garden in the morning.";
        assert!(is_alike(near(text, 1), near(text, 1)) && !is_alike(near(text, 1), near(text, 2)));
        assert!(is_near(near(text, 1), near(text, 2)), "it is one text");
    }
}
