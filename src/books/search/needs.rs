//! What a text must have for a regular expression to fit anywhere in it, in terms of the index: words, or parts of words,
//! and signs.
//!
//! Invariant: the condition is necessary. Each character stands in the index for letters of a word (none, for a soft
//! hyphen), for a word of its own, or for the end of a word. So what fits between two ends of words is a word, and what
//! fits beside anything unknown is a part of one; a regular expression for it is matched with the words of the index.

use regex::Regex;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind, Look, Repetition};

use super::words::{Role, WORD_BYTES_MAX, are_indexed, role};

/// Before a sign that a document has: see [`terms`].
pub(super) const SIGN: char = '!';

/// Maximum number of characters of a class whose words are looked at one by one; of larger ones nothing is needed.
const CLASS_CHARACTERS_MAX: u32 = 1024;

/// Maximum number of words that an expression needs; further ones are not looked for.
pub(super) const TESTS_MAX: usize = 32;

/// Bytes of letters that are no more than [`WORD_BYTES_MAX`] when they are small, which takes twice as many at most.
const SURE_BYTES_MAX: usize = WORD_BYTES_MAX / 2;

/// Returns the terms for the signs of a title and a text, each after a space. [`SIGN`] alone says that the index has
/// each of their words and signs.
pub(crate) fn terms(title: &str, text: &str) -> String {
    let mut seen = [false; 256];
    let mut is_whole = true;
    for part in [title, text] {
        note_bytes(part.as_bytes(), &mut seen);
        let has_all = |run: &str| run.len() <= SURE_BYTES_MAX || are_indexed(run);
        is_whole &= !has_long_run(part.as_bytes()) || part.split(is_end).all(has_all);
    }
    let signs = ('\0'..).zip(seen).filter(|(sign, has)| *has && sign.is_ascii_punctuation());
    let signs = signs.map(|(sign, _)| format!(" {SIGN}{sign}"));
    signs.chain(is_whole.then(|| format!(" {SIGN}"))).collect()
}

/// Whether an ASCII character ends a word.
const fn is_end(character: char) -> bool {
    character.is_ascii() && !character.is_ascii_alphanumeric()
}

/// Notes which bytes a text has. Every text of a crawl comes here: with one set, each write would wait for the one before.
fn note_bytes(text: &[u8], seen: &mut [bool; 256]) {
    let mut sets = [[false; 256]; 4];
    let mut parts = text.chunks_exact(sets.len());
    for part in &mut parts {
        for (set, byte) in sets.iter_mut().zip(part) {
            set[usize::from(*byte)] = true;
        }
    }
    parts.remainder().iter().for_each(|byte| seen[usize::from(*byte)] = true);
    for set in &sets {
        seen.iter_mut().zip(set).for_each(|(seen, own)| *seen |= own);
    }
}

/// Whether a text has more than [`SURE_BYTES_MAX`] bytes in a row without an ASCII character that ends a word.
fn has_long_run(text: &[u8]) -> bool {
    const IS_END: [bool; 256] = {
        let (mut is_end, mut byte) = ([false; 256], 0);
        while byte < is_end.len() {
            is_end[byte] = self::is_end(byte as u8 as char);
            byte += 1;
        }
        is_end
    };
    let mut start = 0;
    // From the end of each stretch: all before the last end of a word in it is too short.
    while let Some(stretch) = text.get(start..=start + SURE_BYTES_MAX) {
        match stretch.iter().rposition(|byte| IS_END[usize::from(*byte)]) {
            Some(end) => start += end + 1,
            None => return true,
        }
    }
    false
}

/// A condition on the words and signs of a text.
#[derive(Clone, Debug)]
pub(super) enum Need {
    All(Vec<Need>),
    Any(Vec<Need>),
    /// This ASCII sign.
    Sign(char),
    /// A word that passes the test with this number.
    Word(usize),
}

impl Need {
    fn nothing() -> Self {
        Self::All(Vec::new())
    }

    fn is_nothing(&self) -> bool {
        match self {
            Self::All(parts) => parts.iter().all(Self::is_nothing),
            Self::Any(parts) => parts.iter().any(Self::is_nothing),
            Self::Sign(_) | Self::Word(_) => false,
        }
    }
}

/// A test of words as they are in the index.
#[derive(Clone, Debug)]
pub(super) struct WordTest {
    pub(super) fits: Regex,
    /// Beginning of every word that fits.
    pub(super) prefix: String,
}

/// What a text must have for a regular expression to fit in it.
#[derive(Clone, Debug)]
pub struct Needs {
    pub(super) need: Need,
    pub(super) tests: Vec<WordTest>,
}

impl Needs {
    /// Returns what `expression` needs, with the flags that it is compiled with; `None` if that is nothing.
    #[must_use]
    pub fn of(expression: &str, folds_case: bool, dot_is_any: bool) -> Option<Self> {
        let mut parser =
            ParserBuilder::new().case_insensitive(folds_case).dot_matches_new_line(dot_is_any).build();
        let hir = parser.parse(expression).ok()?;
        let mut reader = Reader::default();
        let plain = reader.need(&hir);
        // Digits of any script: the text has one that is a word of its own, or all of them are letters of words.
        reader.is_split = true;
        let split = reader.need(&hir);
        let mut alone = std::mem::take(&mut reader.alone);
        alone.sort_unstable();
        alone.dedup();
        let need = match alone.is_empty() {
            true => plain,
            false => {
                let alone = Solid { expression: one_of(alone), is_filled: true, ..Solid::default() };
                let alone = reader.word(&alone, (true, true));
                Need::All(vec![plain, Need::Any(vec![alone, split])])
            }
        };
        (!need.is_nothing()).then_some(Self { need, tests: reader.tests })
    }
}

/// Letters of one word.
#[derive(Clone, Default)]
struct Solid {
    /// Expression for these letters as the index has them.
    expression: String,
    /// The letters that come first in any case.
    first: String,
    /// Whether they are no more than `first`.
    is_literal: bool,
    /// Whether there is at least one letter.
    is_filled: bool,
}

impl Solid {
    fn empty() -> Self {
        Self { is_literal: true, ..Self::default() }
    }

    fn literal(letters: &str) -> Self {
        let (expression, first) = (regex::escape(letters), letters.to_owned());
        Self { expression, first, is_literal: true, is_filled: !letters.is_empty() }
    }

    fn push(&mut self, next: &Self) {
        self.expression.push_str(&next.expression);
        if self.is_literal {
            self.first.push_str(&next.first);
        }
        self.is_literal &= next.is_literal;
        self.is_filled |= next.is_filled;
    }
}

/// What a part of an expression fits.
enum Part {
    Solid(Solid),
    /// Between words: signs and spaces, or a place where a word begins or ends.
    Break(Need),
    /// Anything that has what is needed.
    Unknown(Need),
}

/// Reads an expression.
#[derive(Default)]
struct Reader {
    tests: Vec<WordTest>,
    /// Whether characters that are words of their own are noted in `alone`, and left out of classes that have others, too.
    is_split: bool,
    alone: Vec<String>,
}

impl Reader {
    fn need(&mut self, hir: &Hir) -> Need {
        let parts = self.parts(hir);
        self.need_of(&parts)
    }

    fn need_of(&mut self, parts: &[Part]) -> Need {
        let is_break = |part: Option<&Part>| matches!(part, Some(Part::Break(_)));
        let mut all = Vec::new();
        for (place, part) in parts.iter().enumerate() {
            let before = place.checked_sub(1).and_then(|place| parts.get(place));
            match part {
                Part::Solid(solid) if solid.is_filled => {
                    all.push(self.word(solid, (is_break(before), is_break(parts.get(place + 1)))));
                }
                Part::Solid(_) => {}
                Part::Break(need) | Part::Unknown(need) => all.push(need.clone()),
            }
        }
        all.retain(|need| !need.is_nothing());
        Need::All(all)
    }

    /// A word that has these letters, and begins or ends with them.
    fn word(&mut self, solid: &Solid, (begins, ends): (bool, bool)) -> Need {
        let (begin, end) = (if begins { r"\A" } else { "" }, if ends { r"\z" } else { "" });
        let Ok(fits) = Regex::new(&format!("{begin}(?:{}){end}", solid.expression)) else {
            return Need::nothing();
        };
        if let Some(known) = self.tests.iter().position(|test| test.fits.as_str() == fits.as_str()) {
            return Need::Word(known);
        }
        if self.tests.len() == TESTS_MAX {
            return Need::nothing();
        }
        let prefix = if begins { solid.first.clone() } else { String::new() };
        self.tests.push(WordTest { fits, prefix });
        Need::Word(self.tests.len() - 1)
    }

    /// The parts of an expression in order; letters of one word are one part.
    fn parts(&mut self, hir: &Hir) -> Vec<Part> {
        let mut parts = Vec::new();
        self.add(hir, &mut parts);
        parts
    }

    fn add(&mut self, hir: &Hir, parts: &mut Vec<Part>) {
        match hir.kind() {
            HirKind::Empty => {}
            HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
                Ok(text) => text.chars().for_each(|character| add_character(character, parts)),
                Err(_) => parts.push(Part::Unknown(Need::nothing())),
            },
            HirKind::Class(class) => {
                let class = self.class(class);
                push(parts, class);
            }
            HirKind::Look(look) => {
                let is_end = matches!(
                    look,
                    Look::Start | Look::End | Look::StartLF | Look::EndLF | Look::StartCRLF | Look::EndCRLF
                );
                // Limits of words are other ones in regular expressions: nothing follows from them.
                parts.extend(is_end.then(|| Part::Break(Need::nothing())));
            }
            HirKind::Capture(capture) => self.add(&capture.sub, parts),
            HirKind::Concat(all) => all.iter().for_each(|part| self.add(part, parts)),
            HirKind::Repetition(repetition) => {
                let repeated = self.repeated(repetition);
                push(parts, repeated);
            }
            HirKind::Alternation(branches) => {
                let branches: Vec<_> = branches.iter().map(|branch| self.parts(branch)).collect();
                let either = self.either(&branches);
                push(parts, either);
            }
        }
    }

    fn repeated(&mut self, Repetition { min, max, sub, .. }: &Repetition) -> Part {
        let parts = self.parts(sub);
        match only(&parts) {
            Some(Part::Solid(solid)) => {
                let most = max.map_or_else(String::new, |max| max.to_string());
                let expression = format!("(?:{}){{{min},{most}}}", solid.expression);
                let first = if *min > 0 { solid.first.clone() } else { String::new() };
                let is_filled = solid.is_filled && *min > 0;
                Part::Solid(Solid { expression, first, is_literal: false, is_filled })
            }
            Some(Part::Break(need)) if *min > 0 => Part::Break(need.clone()),
            _ if *min > 0 => Part::Unknown(self.need_of(&parts)),
            _ if parts.is_empty() => Part::Solid(Solid::empty()),
            _ => Part::Unknown(Need::nothing()),
        }
    }

    fn either(&mut self, branches: &[Vec<Part>]) -> Part {
        let mut solids = Vec::new();
        for branch in branches {
            match only(branch) {
                Some(Part::Solid(solid)) => solids.push(solid.clone()),
                None if branch.is_empty() => solids.push(Solid::empty()),
                _ => {}
            }
        }
        if solids.len() == branches.len() {
            let is_filled = solids.iter().all(|solid| solid.is_filled);
            let each: Vec<_> = solids.into_iter().map(|solid| solid.expression).collect();
            return Part::Solid(Solid {
                expression: format!("(?:{})", each.join("|")),
                is_filled,
                ..Solid::default()
            });
        }
        let are_breaks = branches.iter().all(|branch| matches!(only(branch), Some(Part::Break(_))));
        let need = Need::Any(branches.iter().map(|branch| self.need_of(branch)).collect());
        if are_breaks { Part::Break(need) } else { Part::Unknown(need) }
    }

    fn class(&mut self, class: &Class) -> Part {
        let unknown = || Part::Unknown(Need::nothing());
        let ranges: Option<Vec<(char, char)>> = match class {
            Class::Unicode(class) => {
                Some(class.ranges().iter().map(|range| (range.start(), range.end())).collect())
            }
            Class::Bytes(class) => class.is_ascii().then(|| {
                class.ranges().iter().map(|range| (range.start().into(), range.end().into())).collect()
            }),
        };
        let Some(ranges) = ranges else { return unknown() };
        let count: u32 = ranges.iter().map(|(start, end)| *end as u32 - *start as u32 + 1).sum();
        if count == 0 || count > CLASS_CHARACTERS_MAX {
            return unknown();
        }
        let (mut letters, mut alone, mut signs) = (Vec::new(), Vec::new(), Vec::new());
        for character in ranges.into_iter().flat_map(|(start, end)| start..=end) {
            match role(character) {
                Role::Letters(letter) => letters.push(letter),
                Role::Alone(word) => alone.push(word),
                Role::Between => signs.push(character),
                Role::Unsure => return unknown(),
            }
        }
        match (letters.is_empty(), alone.is_empty(), signs.is_empty()) {
            (true, true, _) => Part::Break(match signs.iter().all(char::is_ascii_punctuation) {
                true => Need::Any(signs.into_iter().map(Need::Sign).collect()),
                false => Need::nothing(),
            }),
            (false, is_plain, true) if is_plain || self.is_split => {
                self.alone.append(&mut alone);
                letters.sort_unstable();
                letters.dedup();
                let is_filled = !letters.contains(&String::new());
                match letters.as_slice() {
                    [only] => Part::Solid(Solid::literal(only)),
                    _ => Part::Solid(Solid { expression: one_of(letters), is_filled, ..Solid::default() }),
                }
            }
            _ => unknown(),
        }
    }
}

/// The only part, if there is one.
fn only(parts: &[Part]) -> Option<&Part> {
    if let [only] = parts { Some(only) } else { None }
}

/// Adds a part; letters join those before them.
fn push(parts: &mut Vec<Part>, part: Part) {
    match (parts.last_mut(), part) {
        (Some(Part::Solid(before)), Part::Solid(next)) => before.push(&next),
        (_, part) => parts.push(part),
    }
}

fn add_character(character: char, parts: &mut Vec<Part>) {
    let nothing = || Part::Break(Need::nothing());
    match role(character) {
        Role::Letters(letters) => push(parts, Part::Solid(Solid::literal(&letters))),
        Role::Alone(word) => {
            parts.extend([nothing(), Part::Solid(Solid::literal(&word)), nothing()]);
        }
        Role::Between if character.is_ascii_punctuation() => parts.push(Part::Break(Need::Sign(character))),
        Role::Between => parts.push(nothing()),
        Role::Unsure => parts.push(Part::Unknown(Need::nothing())),
    }
}

/// An expression for any of some texts.
fn one_of(texts: Vec<String>) -> String {
    let (single, long): (Vec<_>, Vec<_>) =
        texts.into_iter().partition(|text| text.chars().nth(1).is_none() && !text.is_empty());
    let single: String = single.iter().map(|letter| regex::escape(letter)).collect();
    let mut each: Vec<_> = long.iter().map(|text| regex::escape(text)).collect();
    if !single.is_empty() {
        each.push(format!("[{single}]"));
    }
    format!("(?:{})", each.join("|"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A condition, with the expressions of its words.
    fn said(needs: &Needs, need: &Need) -> String {
        let each = |parts: &[Need], sign: &str| {
            let parts: Vec<_> = parts.iter().map(|part| said(needs, part)).collect();
            if parts.len() == 1 { parts[0].clone() } else { format!("({})", parts.join(sign)) }
        };
        match need {
            Need::All(parts) => each(parts, " "),
            Need::Any(parts) => each(parts, " or "),
            Need::Sign(sign) => sign.to_string(),
            Need::Word(test) => {
                let word = needs.tests[*test].fits.as_str();
                word.replace(r"\A", "<").replace(r"\z", ">").replace("(?:", "").replace(')', "")
            }
        }
    }

    #[test]
    fn words_and_signs_are_needed() {
        for (expression, expected) in [
            (r"[\w.+-]+@museum\.example", "(@ <museum> . <example)"),
            (r"[A-Z]+@", "([abcdefghijklmnopqrstuvwxyz]{1,}> @)"),
            ("Résumé", "resume"),
            ("straße", "strasse"),
            ("e\u{301}te\u{301}", "ete"),
            ("图书", "(<图> <书>)"),
            ("(?m)^foo bar$", "(<foo> <bar>)"),
            ("(mr|mrs) smith", "(mr|s> <smith)"),
            ("foo (bar baz|x@)", "(foo> ((bar> <baz) or (x> @)))"),
            ("(?:foo@)+", "(foo> @)"),
            (r"(?-u:\d){2}-x", "([0123456789]{2,2}> - <x)"),
            ("[@#]x", "((# or @) <x)"),
            ("a?b", "a{0,1}b"),
            (r"foo\b", "foo"),
            ("관x المكتبة-", "(x> -)"),
            ("foo.bar", "(foo bar)"),
        ] {
            let needs = Needs::of(expression, true, true).unwrap();
            assert_eq!(said(&needs, &needs.need), expected, "{expression}");
        }
        for expression in [".*", "", r"\s+", "(foo|.*)", "foo?bar|x*", r"\w+", r"(foo\b)?", "(?s).", "\u{ad}"]
        {
            assert!(Needs::of(expression, true, true).is_none(), "{expression}");
        }
    }

    #[test]
    fn a_digit_is_a_letter_or_a_word() {
        let needs = Needs::of(r"x\d{3}y", false, false).unwrap();
        let said = said(&needs, &needs.need);
        assert!(said.starts_with("((x y) (<[๐๑") && said.contains("or x[0123456789"), "{said}");
        assert!(needs.tests.iter().any(|test| test.fits.is_match("ax123yz")));
    }

    #[test]
    fn a_text_says_its_signs_and_whether_all_words_are_in_the_index() {
        let long = |bytes: usize| "x".repeat(bytes);
        assert_eq!(terms("a@b", "c, d!"), " !! !, !@ !");
        assert_eq!(terms("", ""), " !");
        assert_eq!(terms("", &long(WORD_BYTES_MAX)), " !");
        assert_eq!(terms("", &long(WORD_BYTES_MAX + 1)), "");
        assert_eq!(terms(&long(WORD_BYTES_MAX + 1), "a-b"), " !-");
        // Ten letters that take more bytes when they are small.
        assert_eq!(terms("", &"Ⱥ".repeat(22)), "");
        assert_eq!(terms("", &"图".repeat(100)), " !");
    }

    #[test]
    fn so_many_words_are_looked_for() {
        let words = |count: usize| (0..count).map(|word| format!("w{word} ")).collect::<String>();
        let tests = |count| Needs::of(&words(count), false, false).unwrap().tests.len();
        assert_eq!((tests(TESTS_MAX), tests(TESTS_MAX + 1)), (TESTS_MAX, TESTS_MAX));
    }
}
