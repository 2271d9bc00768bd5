//! Fast generation of text in a language: phrases are built once from the word lists, and pages are sequences of
//! phrases.

use std::sync::LazyLock;

use super::random::{Key, Stream, Subject, Zipf};
use super::words::{LANGUAGES, Language};

/// Number of phrases per language. A power of two, so that a few bits of a random number select a phrase.
const PHRASES: usize = 8192;
/// Length in bytes that nearly all phrases stay below.
const PHRASE_BYTES_USUAL: usize = 48;
/// Largest number of words in a phrase.
const PHRASE_WORDS_MAX: u64 = 5;

/// Appends text and numbers to a page being written.
pub(super) trait Append {
    /// Appends a string.
    fn put(&mut self, text: &str);
    /// Appends a decimal number.
    fn put_number(&mut self, number: u64);
    /// Appends a number as 16 hexadecimal digits.
    fn put_hex(&mut self, number: u64);
}

impl Append for Vec<u8> {
    fn put(&mut self, text: &str) {
        self.extend_from_slice(text.as_bytes());
    }

    fn put_number(&mut self, mut number: u64) {
        let mut digits = [0u8; 20];
        let mut start = digits.len();
        loop {
            start -= 1;
            digits[start] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        self.extend_from_slice(&digits[start..]);
    }

    fn put_hex(&mut self, number: u64) {
        let digit = |shift: u32| b"0123456789abcdef"[(number >> shift) as usize & 15];
        self.extend_from_slice(&std::array::from_fn::<u8, 16, _>(|index| digit(60 - 4 * index as u32)));
    }
}

/// The phrases and nouns of one language.
#[derive(Debug)]
pub(super) struct Vocabulary {
    /// The language.
    pub(super) language: &'static Language,
    nouns: Vec<&'static str>,
    phrases: Vec<u8>,
    /// Offset of each phrase, and the end of the last one.
    starts: Vec<u32>,
    /// Each phrase again with a capital letter, for the beginning of a sentence.
    openings: Vec<u8>,
    opening_starts: Vec<u32>,
}

static VOCABULARIES: LazyLock<Vec<Vocabulary>> = LazyLock::new(|| {
    LANGUAGES.iter().enumerate().map(|(index, language)| Vocabulary::new(index, language)).collect()
});

/// Returns the vocabulary of a host; half of the hosts use the first language.
pub(super) fn vocabulary_of(host: Key) -> &'static Vocabulary {
    let all = VOCABULARIES.as_slice();
    let draw = host.of(Subject::Language).below(2 * (all.len() as u64 - 1)) as usize;
    &all[(draw + 1).saturating_sub(all.len() - 1)]
}

impl Vocabulary {
    fn new(index: usize, language: &'static Language) -> Self {
        let words: Vec<&str> = language.common.split_whitespace().collect();
        let nouns: Vec<&str> = language.nouns.split_whitespace().collect();
        let law = Zipf::new(words.len() as u64, 0.8);
        let mut stream = Key::new(index as u64).of(Subject::Text).stream();
        let (mut phrases, mut openings) = (Vec::new(), Vec::new());
        let (mut starts, mut opening_starts) = (vec![0], vec![0]);
        for _ in 0..PHRASES {
            let phrase = phrase(&mut stream, &law, &words, &nouns);
            phrases.put(&phrase);
            starts.push(phrases.len() as u32);
            let mut letters = phrase.chars();
            openings.put(&letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default());
            openings.put(letters.as_str());
            opening_starts.push(openings.len() as u32);
        }
        Self { language, nouns, phrases, starts, openings, opening_starts }
    }

    /// Returns a noun chosen by `key`.
    pub(super) fn noun(&self, key: Key) -> &'static str {
        self.nouns[key.below(self.nouns.len() as u64) as usize]
    }

    /// Appends one sentence with its full stop and a space.
    pub(super) fn sentence(&self, stream: &mut Stream, out: &mut Vec<u8>) {
        let mut bits = stream.bits();
        let phrases = 2 + (bits & 3);
        bits >>= 2;
        put_phrase(&self.openings, &self.opening_starts, bits, out);
        for index in 1..phrases {
            bits = if index == 4 { stream.bits() } else { bits >> 13 };
            out.push(b' ');
            put_phrase(&self.phrases, &self.starts, bits, out);
        }
        out.extend_from_slice(b". ");
    }
}

/// Appends the phrase that the low bits select.
fn put_phrase(phrases: &[u8], starts: &[u32], bits: u64, out: &mut Vec<u8>) {
    let index = bits as usize % PHRASES;
    let (start, end) = (starts[index] as usize, starts[index + 1] as usize);
    match phrases[start..].first_chunk::<PHRASE_BYTES_USUAL>() {
        // Copying a fixed number of bytes and truncating is twice as fast as copying just the phrase, and generating a
        // page spends most of its time here.
        Some(chunk) if end - start <= PHRASE_BYTES_USUAL => {
            let length = out.len() + end - start;
            out.extend_from_slice(chunk);
            out.truncate(length);
        }
        _ => out.extend_from_slice(&phrases[start..end]),
    }
}

fn phrase(stream: &mut Stream, law: &Zipf, words: &[&str], nouns: &[&str]) -> String {
    let count = 2 + stream.below(PHRASE_WORDS_MAX - 1);
    let mut phrase = String::new();
    for index in 0..count {
        let word = if index + 1 == count && stream.below(2) == 0 {
            nouns[stream.below(nouns.len() as u64) as usize]
        } else {
            words[law.rank(stream.unit()) as usize]
        };
        if index > 0 {
            phrase.push(' ');
        }
        phrase.push_str(word);
    }
    phrase
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_out() {
        let mut out = Vec::new();
        for number in [0, 9, 10, 12_345, u64::MAX] {
            out.put_number(number);
            out.push(b' ');
        }
        out.put_hex(0xdead_beef);
        assert_eq!(out, b"0 9 10 12345 18446744073709551615 00000000deadbeef");
    }

    #[test]
    fn sentences_are_text_in_every_language() {
        for vocabulary in VOCABULARIES.iter() {
            let mut out = Vec::new();
            let mut stream = Key::new(1).stream();
            for _ in 0..100 {
                vocabulary.sentence(&mut stream, &mut out);
            }
            let text = String::from_utf8(out).unwrap();
            assert_eq!(text.matches(". ").count(), 100);
            assert!(text.chars().next().unwrap().is_uppercase());
            assert!(text.split_whitespace().count() > 800);
            let (_, encoding, unmappable) =
                encoding_rs::Encoding::for_label(vocabulary.language.legacy_encoding.as_bytes())
                    .unwrap()
                    .encode(&text);
            assert!(!unmappable, "{} cannot be written in {}", vocabulary.language.tag, encoding.name());
        }
    }

    #[test]
    fn hosts_spread_over_the_languages() {
        let mut counts = std::collections::BTreeMap::new();
        for host in 0..1000 {
            *counts.entry(vocabulary_of(Key::new(1).at(host)).language.tag).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), LANGUAGES.len());
        assert!((400..600).contains(&counts["en"]), "{counts:?}");
    }
}
