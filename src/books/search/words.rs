//! Splits text into words, the same for pages and for searches.
//!
//! A word is a run of letters and digits of any script, in lower case, without accents on Latin letters, soft hyphens
//! and combining accents. In scripts without spaces between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese) each
//! character is a word; a search for a run of them is a phrase search.
//!
//! Korean writes particles and parts of compounds without spaces. Each two neighbouring syllables are a word, which finds
//! more than whole words do (Lee and Ahn, "Using n-grams for Korean text retrieval", SIGIR 1996); a syllable alone is one,
//! too. In the Arabic script, vowel signs and hamza are left out, letters that writers exchange are one letter, and the
//! article and "and" before a word are left out, as light10 does (Larkey, Ballesteros and Connell, "Light stemming for
//! Arabic information retrieval", 2007). Endings are for [`super::forms`]. Points of Hebrew are left out.
//!
//! This is stable: such words, with spaces in between, are split into the same words.

use tantivy::tokenizer::{AsciiFoldingFilter, TextAnalyzer, Token, TokenStream, Tokenizer};

use super::arabic;

/// Maximum bytes of a word. Longer ones are machine-made (hashes, data), would bloat the dictionary and are left out.
pub(crate) const WORD_BYTES_MAX: usize = 64;

/// Returns the words of `text`, normalized as for searches.
#[must_use]
pub fn words(text: &str) -> Vec<String> {
    positions(text).into_iter().map(|(_, word)| word).collect()
}

/// Returns the words of `text` with their positions; words left out still take up a position.
pub(crate) fn positions(text: &str) -> Vec<(usize, String)> {
    let mut analyzer = analyzer();
    let mut stream = analyzer.token_stream(text);
    let mut words = Vec::new();
    stream.process(&mut |token| words.push((token.position, token.text.clone())));
    words
}

/// Returns the analyzer that the index runs on every text.
pub(crate) fn analyzer() -> TextAnalyzer {
    TextAnalyzer::builder(WordSplitter::default()).filter(AsciiFoldingFilter).build()
}

/// Splits text into lower-case words.
#[derive(Clone, Default)]
pub(crate) struct WordSplitter {
    token: Token,
}

impl Tokenizer for WordSplitter {
    type TokenStream<'a> = WordStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> WordStream<'a> {
        self.token.reset();
        WordStream { rest: text, length: text.len(), token: &mut self.token }
    }
}

/// The words of one text.
pub(crate) struct WordStream<'a> {
    /// The rest of the text.
    rest: &'a str,
    /// Bytes of the whole text.
    length: usize,
    token: &'a mut Token,
}

/// Role of a character in splitting text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CharacterClass {
    /// Part of a word.
    Inside,
    /// A word of its own.
    Alone,
    /// A word together with the next one.
    Paired,
    /// Invisible inside a word.
    Ignored,
    /// Between words.
    Between,
}

impl WordStream<'_> {
    /// Moves to the first character of the next word; false at the end.
    fn skip_between(&mut self) -> bool {
        let bytes = self.rest.as_bytes();
        // Most text is ASCII, and this loop is hot: only other characters are decoded.
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            if byte.is_ascii() {
                if byte.is_ascii_alphanumeric() {
                    break;
                }
                at += 1;
                continue;
            }
            let Some(character) = self.rest[at..].chars().next() else { break };
            if !matches!(class(character), CharacterClass::Ignored | CharacterClass::Between) {
                break;
            }
            at += character.len_utf8();
        }
        self.rest = &self.rest[at..];
        !self.rest.is_empty()
    }

    /// Takes one word from the start of the rest.
    fn take_word(&mut self) {
        self.token.offset_from = self.length - self.rest.len();
        let (taken, end) = match syllable(self.rest) {
            Some(first) => self.take_syllables(first),
            None => self.take_letters(),
        };
        self.token.offset_to = self.token.offset_from + end;
        self.rest = &self.rest[taken..];
    }

    /// Takes a Korean syllable, and for the word also the next one. Returns the bytes to move by, and those of the word.
    fn take_syllables(&mut self, (first, length): (char, usize)) -> (usize, usize) {
        self.token.text.push(first);
        let Some((second, more)) = syllable(&self.rest[length..]) else { return (length, length) };
        self.token.text.push(second);
        let end = length + more;
        let begins_next = syllable(&self.rest[end..]).is_some();
        (if begins_next { length } else { end }, end)
    }

    /// Takes a word of any other script. Returns its bytes, twice.
    fn take_letters(&mut self) -> (usize, usize) {
        let bytes = self.rest.as_bytes();
        let word = &mut self.token.text;
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            if byte.is_ascii() {
                let letters = bytes[at..].iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
                if letters == 0 {
                    break;
                }
                let before = word.len();
                word.push_str(&self.rest[at..at + letters]);
                word[before..].make_ascii_lowercase();
                at += letters;
                continue;
            }
            let Some(character) = self.rest[at..].chars().next() else { break };
            match class(character) {
                CharacterClass::Inside => {
                    let lower = character.to_lowercase().filter(|c| class(*c) != CharacterClass::Ignored);
                    word.extend(lower.map(arabic::one_letter));
                }
                CharacterClass::Ignored => {}
                CharacterClass::Alone if at == 0 => {
                    word.push(character);
                    at += character.len_utf8();
                    break;
                }
                CharacterClass::Alone | CharacterClass::Paired | CharacterClass::Between => break,
            }
            at += character.len_utf8();
        }
        arabic::strip(word);
        (at, at)
    }
}

impl TokenStream for WordStream<'_> {
    fn advance(&mut self) -> bool {
        while self.skip_between() {
            self.token.text.clear();
            self.token.position = self.token.position.wrapping_add(1);
            self.take_word();
            if self.token.text.len() <= WORD_BYTES_MAX {
                return true;
            }
        }
        false
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}

/// What a character stands for in the index.
pub(super) enum Role {
    /// Letters of a word; none for what is invisible.
    Letters(String),
    /// A word of its own.
    Alone(String),
    /// Nothing: it is between words.
    Between,
    /// Whatever its neighbours make of it: Korean syllables and Arabic letters.
    Unsure,
}

/// Returns what a character stands for in the index, whatever is before and after it.
pub(super) fn role(character: char) -> Role {
    if arabic::is_letter(character) {
        return Role::Unsure;
    }
    let word = || words(character.encode_utf8(&mut [0; 4])).concat();
    match class(character) {
        CharacterClass::Inside => Role::Letters(word()),
        CharacterClass::Ignored => Role::Letters(String::new()),
        CharacterClass::Alone => Role::Alone(word()),
        CharacterClass::Between => Role::Between,
        CharacterClass::Paired => Role::Unsure,
    }
}

/// Whether none of the words of `text` is too long for the index.
pub(super) fn are_indexed(text: &str) -> bool {
    let mut splitter = WordSplitter::default();
    let (mut stream, mut count) = (splitter.token_stream(text), 0);
    while stream.advance() {
        count += 1;
    }
    // Those that are too long take up a position.
    stream.token().position.wrapping_add(1) == count
}

/// Returns the Korean syllable that a text begins with, and its bytes; letters that make up a syllable are composed
/// (Unicode, section 3.12).
fn syllable(text: &str) -> Option<(char, usize)> {
    const FIRST: u32 = 0xac00;
    let mut letters = text.chars();
    // Every word comes here, and most are ASCII.
    let first = letters.next().filter(|first| *first >= '\u{1100}')?;
    if class(first) != CharacterClass::Paired {
        return None;
    }
    if !('\u{1100}'..='\u{1112}').contains(&first) {
        return Some((first, first.len_utf8()));
    }
    let middle = letters.next().filter(|middle| ('\u{1161}'..='\u{1175}').contains(middle));
    let Some(middle) = middle else { return Some((first, first.len_utf8())) };
    let last = letters.next().filter(|last| ('\u{11a8}'..='\u{11c2}').contains(last));
    let ending = last.map_or(0, |last| u32::from(last) - 0x11a7);
    let number = ((u32::from(first) - 0x1100) * 21 + u32::from(middle) - 0x1161) * 28 + ending;
    let length = first.len_utf8() + middle.len_utf8() + last.map_or(0, char::len_utf8);
    Some((char::from_u32(FIRST + number)?, length))
}

/// Whether a character occurs in no ASCII word, not even in one that becomes ASCII when accents are removed.
pub(super) fn parts_ascii(character: char) -> bool {
    // Greek to the Vedic signs; Han and its neighbours; Hangul: none is a Latin letter with an accent.
    matches!(character, '\u{370}'..='\u{1cff}' | '\u{2e80}'..='\u{a71f}' | '\u{ac00}'..='\u{d7ff}')
        || matches!(class(character), CharacterClass::Alone | CharacterClass::Between)
}

fn class(character: char) -> CharacterClass {
    match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' => CharacterClass::Inside,
        // Most non-ASCII text, without the slower Unicode tables but with their result: letters of Latin, Greek and
        // Cyrillic; punctuation.
        'À'..='Ö' | 'Ø'..='ö' | 'ø'..='\u{24f}' | '\u{3b1}'..='\u{3c9}' | '\u{410}'..='\u{44f}' => {
            CharacterClass::Inside
        }
        '\u{a0}' | '«' | '»' | '\u{2010}'..='\u{2027}' | '\u{3000}'..='\u{3002}' => CharacterClass::Between,
        // Soft hyphen, combining accents, joiners, variation selectors.
        '\u{ad}' | '\u{300}'..='\u{36f}' | '\u{200c}' | '\u{200d}' | '\u{2060}' | '\u{fe00}'..='\u{fe0f}' => {
            CharacterClass::Ignored
        }
        // Indic scripts: their vowel signs and viramas belong to the word; only dandas end it.
        '\u{964}' | '\u{965}' => CharacterClass::Between,
        '\u{900}'..='\u{dff}' => CharacterClass::Inside,
        // Arabic: tatweel, vowel signs and hamza above and below a letter. Hebrew: points.
        '\u{640}'
        | '\u{610}'..='\u{61a}'
        | '\u{64b}'..='\u{65f}'
        | '\u{670}'
        | '\u{6d6}'..='\u{6dc}'
        | '\u{6df}'..='\u{6e4}'
        | '\u{6e7}'
        | '\u{6e8}'
        | '\u{6ea}'..='\u{6ed}' => CharacterClass::Ignored,
        '\u{591}'..='\u{5bd}' | '\u{5bf}' | '\u{5c1}' | '\u{5c2}' | '\u{5c4}' | '\u{5c5}' | '\u{5c7}' => {
            CharacterClass::Ignored
        }
        // Hangul: syllables, and the letters of which they are composed.
        '\u{ac00}'..='\u{d7a3}' | '\u{1100}'..='\u{11ff}' => CharacterClass::Paired,
        // Thai, Lao, Burmese, Khmer; Hiragana and Katakana, Han; the supplementary Han planes.
        '\u{e01}'..='\u{eff}'
        | '\u{1000}'..='\u{109f}'
        | '\u{1780}'..='\u{17ff}'
        | '\u{3040}'..='\u{30ff}'
        | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}' => CharacterClass::Alone,
        _ if character.is_alphanumeric() => CharacterClass::Inside,
        _ => CharacterClass::Between,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{CharacterClass, WORD_BYTES_MAX, analyzer, class, positions, words};

    #[test]
    fn classes_are_those_of_unicode() {
        for character in '\u{80}'..=char::MAX {
            let has_rule = ('\u{900}'..='\u{dff}').contains(&character);
            match class(character) {
                CharacterClass::Inside => assert!(character.is_alphanumeric() || has_rule, "{character:?}"),
                CharacterClass::Between => assert!(!character.is_alphanumeric() || has_rule, "{character:?}"),
                CharacterClass::Alone | CharacterClass::Paired | CharacterClass::Ignored => {}
            }
        }
    }

    #[test]
    fn splits_texts_of_many_scripts() {
        for (text, expected) in [
            ("", ""),
            (" -- ", ""),
            ("Open Access, 2026!", "open access 2026"),
            ("don't e-mail a_b x.y", "don t e mail a b x y"),
            ("Bibliothèque ÉTÉ Straße", "bibliotheque ete strasse"),
            ("e\u{301}te\u{301} co\u{ad}operate", "ete cooperate"),
            ("ΑΒΓ Привет", "αβγ привет"),
            ("图书馆abc日本", "图 书 馆 abc 日 本"),
            ("हिन्दी भाषा।", "हिन्दी भाषा"),
            ("한국어 도서관에서 책, PDF를 2024년", "한국 국어 도서 서관 관에 에서 책 pdf 를 2024 년"),
            ("\u{1103}\u{1169}\u{1109}\u{1165}관", "도서 서관"),
            ("\u{1103}x\u{1161}가", "\u{1103} x \u{1161}가"),
            ("المكتبة والمكتبة بالمكتبة للمكتبة ومكتبة", "مكتبه مكتبه مكتبه مكتبه مكتبه"),
            ("مَكْتَبَةٌ مكـــتبة إلى أوراق کتابی", "مكتبه مكتبه الي اوراق كتابي"),
            // The name of God, two letters, and a word that begins like an article.
            ("الله والله ولد الحق الالتزام التزام", "الله الله ولد حق تزام تزام"),
            ("שָׁלוֹם", "שלום"),
        ] {
            assert_eq!(words(text).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn leaves_long_words_out_but_keeps_their_place() {
        let fits = "x".repeat(WORD_BYTES_MAX);
        let long = "x".repeat(WORD_BYTES_MAX + 1);
        assert_eq!(words(&fits), [fits.as_str()]);
        assert_eq!(positions(&format!("a {long} b")), [(0, "a".to_owned()), (2, "b".to_owned())]);
    }

    proptest! {
        #[test]
        fn offsets_lie_in_the_text(text in "\\PC{0,80}") {
            let mut analyzer = analyzer();
            let mut stream = analyzer.token_stream(&text);
            let (mut begin, mut end) = (0, 0);
            while stream.advance() {
                let token = stream.token();
                prop_assert!(token.offset_from >= begin && token.offset_to > end);
                prop_assert!(text.get(token.offset_from..token.offset_to).is_some());
                prop_assert!(!token.text.is_empty());
                // Two words of Korean may share a syllable.
                (begin, end) = (token.offset_from + 1, token.offset_to);
            }
        }

        #[test]
        fn words_of_korean_and_arabic_are_their_own_words(text in "[가나책a والبفكلله]{0,40}") {
            let once = words(&text);
            prop_assert_eq!(words(&once.join(" ")), once, "{}", text);
        }

        #[test]
        fn texts_in_a_row_give_words_in_a_row(left in "\\PC{0,40}", right in "\\PC{0,40}") {
            let together = words(&format!("{left} {right}"));
            prop_assert_eq!(together, [words(&left), words(&right)].concat());
        }
    }
}
