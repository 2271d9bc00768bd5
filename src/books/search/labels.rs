//! Labels: short texts that name something, one per line. Each word's position identifies the label that it belongs to.
//!
//! All words of a label share one position, `line * 32 + words of the label`. A search needs to know which of its words
//! a label has, and how many words the label has in all, but not their order.

use tantivy::tokenizer::{TextAnalyzer, Token, TokenStream, Tokenizer};

use super::words;

/// Maximum number of words of a label that are counted exactly.
const WORDS_MAX: usize = (1 << LENGTH_BITS) - 1;

const LENGTH_BITS: u32 = 5;

/// A label, as encoded in the position of its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Label {
    /// Line of the label.
    pub(crate) line: u32,
    /// Number of words; [`WORDS_MAX`] means that many or more.
    pub(crate) words: u32,
}

impl Label {
    pub(crate) fn at(position: u32) -> Self {
        Self { line: position >> LENGTH_BITS, words: position & WORDS_MAX as u32 }
    }
}

/// Splits lines of labels into words.
#[derive(Clone)]
pub(crate) struct Labels {
    words: TextAnalyzer,
    token: Token,
    /// All words of a text, concatenated; for each, its position and its end.
    text: String,
    ends: Vec<(usize, usize)>,
}

impl Default for Labels {
    fn default() -> Self {
        Self { words: words::analyzer(), token: Token::default(), text: String::new(), ends: Vec::new() }
    }
}

/// The words of all labels.
pub(crate) struct LabelStream<'a> {
    text: &'a str,
    ends: std::slice::Iter<'a, (usize, usize)>,
    /// Start of the next word.
    start: usize,
    token: &'a mut Token,
}

impl Tokenizer for Labels {
    type TokenStream<'a> = LabelStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> LabelStream<'a> {
        let Self { words, token, text: all, ends } = self;
        all.clear();
        ends.clear();
        for (line, label) in text.lines().enumerate() {
            let first = ends.len();
            words.token_stream(label).process(&mut |token| {
                all.push_str(&token.text);
                ends.push((line << LENGTH_BITS, all.len()));
            });
            let length = (ends.len() - first).min(WORDS_MAX);
            ends[first..].iter_mut().for_each(|(position, _)| *position += length);
        }
        token.reset();
        LabelStream { text: all, ends: ends.iter(), start: 0, token }
    }
}

impl TokenStream for LabelStream<'_> {
    fn advance(&mut self) -> bool {
        let Some(&(position, end)) = self.ends.next() else { return false };
        self.token.position = position;
        self.token.text.clear();
        self.token.text.push_str(&self.text[self.start..end]);
        self.start = end;
        true
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_know_their_label_and_its_length() {
        let text = format!("Open access\n\nAccess\n{}", "word ".repeat(40));
        let mut labels = Labels::default();
        let mut stream = labels.token_stream(&text);
        let mut words = Vec::new();
        while stream.advance() {
            let Label { line, words: length } = Label::at(stream.token().position as u32);
            words.push((line, length, stream.token().text.clone()));
        }
        assert_eq!(words[0], (0, 2, "open".to_owned()));
        assert_eq!(words[1], (0, 2, "access".to_owned()));
        assert_eq!(words[2], (2, 1, "access".to_owned()));
        assert_eq!(words[3], (3, 31, "word".to_owned()));
        assert_eq!(words.len(), 43);
    }
}
