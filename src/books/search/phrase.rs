//! Whether a text has a phrase, by the same words as in the index, for texts that are in no index.

use tantivy::tokenizer::TokenStream as _;

use super::terms::ends_in_prefix;
use super::words::{analyzer, positions};

/// Words in a row; a last word that ends in `*` is a prefix.
#[derive(Clone, Debug)]
pub struct Phrase {
    /// Each word with its distance from the first.
    words: Vec<(usize, String)>,
    ends_in_prefix: bool,
}

impl Phrase {
    /// Returns the phrase of a text's words; none if the text has no words.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        let mut words = positions(text);
        let first = words.first()?.0;
        words.iter_mut().for_each(|(place, _)| *place -= first);
        Some(Self { words, ends_in_prefix: ends_in_prefix(text) })
    }

    /// Whether a text has the phrase.
    #[must_use]
    pub fn is_in(&self, text: &str) -> bool {
        let (mut analyzer, mut is_found) = (analyzer(), false);
        // Where the phrase may have begun, and how many of its words have matched since.
        let mut begun: Vec<(usize, usize)> = Vec::new();
        let mut words = analyzer.token_stream(text);
        while !is_found && words.advance() {
            let (place, word) = (words.token().position, words.token().text.as_str());
            begun.push((place, 0));
            begun.retain_mut(|(start, found)| match self.words.get(*found) {
                // A word that is too long for the index is in between.
                Some((distance, _)) if *start + distance > place => true,
                Some((distance, wanted)) if *start + distance == place && self.fits(*found, wanted, word) => {
                    *found += 1;
                    is_found |= *found == self.words.len();
                    true
                }
                _ => false,
            });
        }
        is_found
    }

    fn fits(&self, number: usize, wanted: &str, word: &str) -> bool {
        let is_prefix = self.ends_in_prefix && number + 1 == self.words.len();
        if is_prefix { word.starts_with(wanted) } else { word == wanted }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::words;
    use super::*;

    #[test]
    fn phrases_are_found_as_the_index_finds_them() {
        let long = "x".repeat(super::super::WORD_BYTES_MAX + 1);
        for (phrase, text, is_in) in [
            ("open access", "Is it OPEN, Access?", true),
            ("open access", "open and access", false),
            ("access open", "open access", false),
            ("open acc*", "open accession", true),
            ("open acc", "open accession", false),
            ("op* access", "open access", false),
            ("a a b", "a a a b", true),
            ("été", "Ete", true),
            (&format!("a {long} b"), &format!("a {} b", "y".repeat(99)), true),
            (&format!("a {long} b"), "a b", false),
            ("café", "", false),
        ] {
            assert_eq!(
                Phrase::of(phrase).is_some_and(|phrase| phrase.is_in(text)),
                is_in,
                "{phrase}: {text}"
            );
        }
        assert!(Phrase::of("…").is_none());
    }

    proptest! {
        #[test]
        fn a_phrase_is_a_run_of_words(phrase in "[ab]( [ab]){0,3}", text in "[abc ]{0,20}") {
            let (wanted, all) = (words(&phrase), words(&text));
            let is_run = all.windows(wanted.len()).any(|run| run == wanted);
            prop_assert_eq!(Phrase::of(&phrase).is_some_and(|phrase| phrase.is_in(&text)), is_run);
        }
    }
}
