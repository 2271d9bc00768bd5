//! Finds the part of a text that best answers a search.

use std::collections::BTreeMap;
use std::ops::Range;

use encoding_rs::Encoding;
use tantivy::query::Bm25StatisticsProvider as _;
use tantivy::tokenizer::{TextAnalyzer, TokenStream as _};

use super::schema::IndexSchema;
use super::view::IndexView;
use super::words::{analyzer, parts_ascii};
use super::{SearchError, TextQuery, WORD_BYTES_MAX, terms};

/// Maximum number of characters of a snippet.
pub const SNIPPET_CHARACTERS_MAX: usize = 200;

/// Maximum number of ASCII letters and digits that one non-ASCII character is folded to.
const ASCII_OF_ONE_MAX: usize = 4;

/// The part of a text that best answers a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snippet {
    /// The part, at most [`SNIPPET_CHARACTERS_MAX`] characters.
    pub text: String,
    /// Byte ranges in `text` of the words searched for.
    pub found: Vec<Range<usize>>,
}

/// Words to mark in texts, in normalized form, each with its weight.
#[derive(Clone, Debug)]
pub struct Marked(Vec<(String, f32)>);

impl IndexView<'_> {
    /// Returns the words to mark in texts that `query` finds. The index has no texts: they come from the archive.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn marked(&self, query: &TextQuery) -> Result<Marked, SearchError> {
        let (_, fields) = IndexSchema::schema(false);
        let (whole, query) = (self.whole(), terms::compile(query, fields));
        let mut terms = Vec::new();
        query.query_terms(&mut |term, _| terms.extend((term.field() == fields.body).then_some(term)));
        let mut weights = BTreeMap::new();
        for term in terms {
            let frequency = whole.doc_freq(term).map_err(|source| SearchError::of(self.folder(), source))?;
            let word = term.value().as_str().filter(|_| frequency > 0).map(str::to_owned);
            weights.extend(word.map(|word| (word, 1.0 / (1.0 + frequency as f32))));
        }
        Ok(Marked(weights.into_iter().collect()))
    }
}

/// A stretch of a text.
#[derive(Default)]
struct TextStretch {
    start: usize,
    worth: f32,
    found: Vec<Range<usize>>,
}

impl Marked {
    /// Returns the part of a text that best answers a search, the first if several do; none if it has no marked word.
    ///
    /// A text is cut into stretches from its beginning, each with as many words as fit. Unmarked words are examined
    /// only where a stretch ends: examining each of them would cost more than everything else a search does with a
    /// text.
    #[must_use]
    pub fn snippet(&self, text: &str) -> Option<Snippet> {
        let (mut best, mut stretch, mut words) =
            (TextStretch::default(), TextStretch::default(), TextWords::of(text));
        let mut next = words.ending_after(SNIPPET_CHARACTERS_MAX);
        for (place, worth) in self.places(text) {
            while let Some(first) = next.take_if(|first| first.start <= place.start) {
                let begun = TextStretch { start: first.start, ..TextStretch::default() };
                best = better(best, std::mem::replace(&mut stretch, begun));
                next = words.ending_after(first.start + SNIPPET_CHARACTERS_MAX);
            }
            stretch.worth += worth;
            stretch.found.push(place);
        }
        let TextStretch { start, found, .. } = better(best, stretch);
        let mut end = found.last()?.end;
        while let Some(word) = words.ending_after(end)
            && word.end <= start + SNIPPET_CHARACTERS_MAX
        {
            end = word.end;
        }
        Some(Snippet {
            text: text.get(start..end).unwrap_or_default().to_owned(),
            found: apart(found.into_iter().map(|word| word.start - start..word.end - start)),
        })
    }

    /// Returns the ranges of marked words in a text, in order, each with its weight.
    fn places(&self, text: &str) -> Vec<(Range<usize>, f32)> {
        let (lower, mut places) = (text.to_ascii_lowercase(), Vec::new());
        let parts = |byte: Option<&u8>| byte.is_none_or(|byte| !may_be_inside(*byte));
        for (word, worth) in self.0.iter().filter(|(word, _)| word.is_ascii()) {
            for start in memchr::memmem::find_iter(lower.as_bytes(), word) {
                let end = start + word.len();
                let before = start.checked_sub(1).and_then(|before| text.as_bytes().get(before));
                if parts(before) && parts(text.as_bytes().get(end)) {
                    places.push((start..end, *worth));
                }
            }
        }
        let (mut at, mut analyzer, letters) = (0, analyzer(), self.letters());
        while let Some(rest) = text.as_bytes().get(at..).filter(|rest| !rest.is_empty()) {
            let run = run_after(text, at + Encoding::ascii_valid_up_to(rest));
            at = run.end;
            if letters.as_ref().is_some_and(|letters| !may_have(letters, &text[run.clone()])) {
                continue;
            }
            each_word(&mut analyzer, text, &run, |place, word| {
                let marked = self.0.iter().find(|(marked, _)| marked == word);
                places.extend(marked.map(|(_, worth)| (place, *worth)));
            });
        }
        places.sort_unstable_by_key(|(place, _)| place.start);
        places
    }

    /// Returns the letters of each marked word and its length; none if one of the words is not ASCII.
    fn letters(&self) -> Option<Vec<(u32, usize)>> {
        let letters =
            |word: &String| (word.bytes().fold(0, |letters, byte| letters | letter(byte)), word.len());
        self.0.iter().map(|(word, _)| word.is_ascii().then(|| letters(word))).collect()
    }
}

/// Bit of an ASCII letter, in either case. A digit shares the bit of a letter.
fn letter(byte: u8) -> u32 {
    1 << (byte & 31)
}

/// Whether a run may have a word that is folded to one with these letters and this length: it has no other ASCII
/// letters, and its other characters can yield the rest. This rules out most words with accents without an analyzer.
fn may_have(marked: &[(u32, usize)], run: &str) -> bool {
    let may_be = |letters: u32, longest: usize| {
        longest > 0 && marked.iter().any(|(all, length)| letters & !all == 0 && *length <= longest)
    };
    let (mut letters, mut longest) = (0, 0);
    for character in run.chars() {
        match u8::try_from(character) {
            Ok(byte) if byte.is_ascii() => (letters, longest) = (letters | letter(byte), longest + 1),
            _ if parts_ascii(character) => {
                if may_be(letters, longest) {
                    return true;
                }
                (letters, longest) = (0, 0);
            }
            _ => longest += ASCII_OF_ONE_MAX,
        }
    }
    may_be(letters, longest)
}

fn better(best: TextStretch, other: TextStretch) -> TextStretch {
    if other.worth > best.worth { other } else { best }
}

/// Joins ranges that overlap: two words of Korean share a syllable.
fn apart(found: impl Iterator<Item = Range<usize>>) -> Vec<Range<usize>> {
    let mut apart: Vec<Range<usize>> = Vec::new();
    for word in found {
        match apart.last_mut().filter(|last| word.start < last.end) {
            Some(last) => last.end = last.end.max(word.end),
            None => apart.push(word),
        }
    }
    apart
}

/// Whether a word may have this byte: ASCII other than letters and digits separates words.
fn may_be_inside(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || !byte.is_ascii()
}

/// Returns the first run of bytes that words may have that ends after a position; empty if there is none.
fn run_after(text: &str, at: usize) -> Range<usize> {
    let (before, after) = text.as_bytes().split_at(at.min(text.len()));
    let begins = after.iter().position(|byte| may_be_inside(*byte));
    let back = before.iter().rev().take_while(|byte| may_be_inside(**byte)).count();
    let inside = after.iter().skip(begins.unwrap_or(after.len())).take_while(|byte| may_be_inside(**byte));
    let end = before.len() + begins.unwrap_or(after.len()) + inside.count();
    match begins {
        Some(0) => before.len() - back..end,
        Some(between) => before.len() + between..end,
        None => end..end,
    }
}

/// Calls `found` for each word of a run, with its range in the text.
fn each_word(
    analyzer: &mut TextAnalyzer,
    text: &str,
    run: &Range<usize>,
    mut found: impl FnMut(Range<usize>, &str),
) {
    analyzer.token_stream(text.get(run.clone()).unwrap_or_default()).process(&mut |token| {
        // Words made mostly of soft hyphens are not marked.
        if token.offset_to - token.offset_from <= SNIPPET_CHARACTERS_MAX {
            found(run.start + token.offset_from..run.start + token.offset_to, &token.text);
        }
    });
}

/// The words of a text, located on demand.
struct TextWords<'t> {
    text: &'t str,
    analyzer: TextAnalyzer,
    /// The run analyzed last, and the words in it.
    run: Range<usize>,
    places: Vec<Range<usize>>,
}

impl<'t> TextWords<'t> {
    fn of(text: &'t str) -> Self {
        Self { text, analyzer: analyzer(), run: 0..0, places: Vec::new() }
    }

    /// Returns the first word that ends after a position.
    fn ending_after(&mut self, mut at: usize) -> Option<Range<usize>> {
        loop {
            if !self.run.contains(&at) {
                let run = run_after(self.text, at);
                if self.text.get(run.clone())?.is_ascii() {
                    if run.is_empty() || run.len() <= WORD_BYTES_MAX {
                        return Some(run).filter(|run| !run.is_empty());
                    }
                    at = run.end;
                    continue;
                }
                self.places.clear();
                each_word(&mut self.analyzer, self.text, &run, |place, _| self.places.push(place));
                self.run = run;
            }
            let next = self.places.partition_point(|place| place.end <= at);
            if let Some(place) = self.places.get(next) {
                return Some(place.clone());
            }
            at = self.run.end;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reference implementation that examines every word.
    fn snippet(marked: &Marked, text: &str) -> Option<Snippet> {
        type Found = Vec<(Range<usize>, f32)>;
        let mut stretches: Vec<(usize, usize, Found)> = vec![(0, 0, Vec::new())];
        each_word(&mut analyzer(), text, &(0..text.len()), |place, word| {
            if place.end - stretches.last().unwrap().0 > SNIPPET_CHARACTERS_MAX {
                stretches.push((place.start, 0, Vec::new()));
            }
            let (_, end, found) = stretches.last_mut().unwrap();
            *end = place.end;
            found.extend(marked.0.iter().find(|(one, _)| one == word).map(|(_, worth)| (place, *worth)));
        });
        let worth = |found: &Found| found.iter().fold(0.0, |sum, (_, worth)| sum + worth);
        let best =
            stretches.into_iter().rev().max_by(|left, right| worth(&left.2).total_cmp(&worth(&right.2)));
        let (start, end, found) = best.filter(|(_, _, found)| !found.is_empty())?;
        let found = found.into_iter().map(|(place, _)| place.start - start..place.end - start);
        Some(Snippet { text: text[start..end].to_owned(), found: apart(found) })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn a_snippet_is_the_best_of_all_stretches(
            pieces in proptest::collection::vec(proptest::sample::select(PIECES.as_slice()), 0..200),
            gap in 0..300_usize,
            words in 3..=7_usize
        ) {
            let text = pieces.concat() + &" ".repeat(gap) + "open" + &pieces.concat();
            let marked = [("open", 0.25), ("access", 0.5), ("elan", 0.25), ("図", 0.125), ("привет", 0.125), ("서관", 0.125), ("도서", 0.125)];
            let marked = Marked(marked.iter().take(words).map(|(word, worth)| ((*word).to_owned(), *worth)).collect());
            prop_assert_eq!(marked.snippet(&text), snippet(&marked, &text), "{}", text);
        }
    }

    #[test]
    fn no_character_becomes_more_of_ascii_than_is_said() {
        for character in ('\u{80}'..=char::MAX).filter(|character| !parts_ascii(*character)) {
            each_word(&mut analyzer(), &character.to_string(), &(0..character.len_utf8()), |_, word| {
                assert!(!word.is_ascii() || word.len() <= ASCII_OF_ONE_MAX, "{character} {word}");
            });
        }
        for character in ('\u{80}'..=char::MAX).filter(|character| parts_ascii(*character)) {
            each_word(&mut analyzer(), &character.to_string(), &(0..character.len_utf8()), |_, word| {
                assert!(!word.is_ascii(), "{character} {word}");
            });
        }
    }

    #[test]
    fn words_of_korean_and_arabic_are_marked_as_they_are_written() {
        for (words, text, marked) in [
            ("도서관", "국립도서관에서 책을 읽는다.", &["도서관"][..]),
            ("مكتبة", "في المكتبة، ومَكتبةٌ أخرى", &["المكتبة", "ومَكتبةٌ"]),
        ] {
            let words = Marked(super::super::words(words).into_iter().map(|word| (word, 1.0)).collect());
            let Snippet { text, found } = words.snippet(text).unwrap();
            let found: Vec<_> = found.into_iter().map(|range| &text[range]).collect();
            assert_eq!(found, marked);
        }
    }

    const PIECES: [&str; 31] = [
        "ｏｐｅｎ",
        "ａ",
        "ﬃ",
        "Приветopen",
        "日本open、",
        " ",
        ". ",
        "open",
        "OPEN ",
        " Access, ",
        "access\u{ad}",
        "élan",
        " Elan ",
        "e\u{301}lan ",
        "図",
        "도서관에서",
        " 서관 ",
        "図書館の開放時間、",
        " привет ",
        "Привет,",
        "é ",
        "“quoted” ",
        "word ",
        " a b c ",
        "between them ",
        "\u{ad}",
        "a\u{ad}\u{ad}\u{ad}\u{ad}\u{ad}\u{ad}\u{ad}\u{ad}\u{ad}\u{ad}\u{ad}\u{ad}\u{ad}\u{ad}\u{ad}\u{ad}b",
        "\u{a0}",
        "0123456789012345678901234567890123456789012345678901234567890123456789",
        "x01234567890123456789012345678901234567890123456789012345678901",
        "\n",
    ];
}
