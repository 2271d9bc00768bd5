//! Finds other forms of the words of a search: `library` also finds `libraries`.
//!
//! Two words are forms of each other if they have the same stem in the language of the document (Snowball). The index
//! holds words as `words` splits them; a search looks up the forms of its words in the dictionary. A term of each document names its
//! language. A document without such a term, because its language is unknown, counts as written in every language.

use std::borrow::Cow;
use std::sync::PoisonError;

use rust_stemmers::{Algorithm, Stemmer};
use tantivy::postings::SegmentPostings;
use tantivy::query::Bm25StatisticsProvider as _;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, SegmentReader, Term};

use super::arabic;
use super::error::SearchError;
use super::find::{FIND_WORDS_MAX, Find};
use super::schema::IndexSchema;
use super::view::{IndexView, Searchers, shown_with};
use super::words::words;

/// Maximum number of forms searched per word, the most frequent ones.
const FORMS_MAX: usize = 8;

/// The same for a syllable alone, which has more of them.
const SYLLABLE_FORMS_MAX: usize = 64;

/// Maximum number of dictionary words compared with one word of a search, per segment.
const COMPARED_MAX: usize = 1 << 16;

/// Minimum number of letters that all forms of a word have in common at the start.
const COMMON_LETTERS_MIN: usize = 3;

/// Maximum number of bytes by which a form may be longer than the word.
const ENDING_BYTES_MAX: usize = 8;

/// Marks the language of a document among the terms of its elements.
const LANGUAGE: char = '\u{1A}';

/// Stands for every language without a stemmer.
const OTHER: &str = "-";

/// The languages whose words have forms, by primary subtag, with their stemmers. In Korean, the forms of a syllable are the
/// words that begin with it.
const STEMMED: [(&str, Option<Algorithm>); 21] = [
    ("ar", Some(Algorithm::Arabic)),
    ("da", Some(Algorithm::Danish)),
    ("de", Some(Algorithm::German)),
    ("el", Some(Algorithm::Greek)),
    ("en", Some(Algorithm::English)),
    ("es", Some(Algorithm::Spanish)),
    ("fi", Some(Algorithm::Finnish)),
    ("fr", Some(Algorithm::French)),
    ("hu", Some(Algorithm::Hungarian)),
    ("it", Some(Algorithm::Italian)),
    ("ko", None),
    ("nb", Some(Algorithm::Norwegian)),
    ("nl", Some(Algorithm::Dutch)),
    ("nn", Some(Algorithm::Norwegian)),
    ("no", Some(Algorithm::Norwegian)),
    ("pt", Some(Algorithm::Portuguese)),
    ("ro", Some(Algorithm::Romanian)),
    ("ru", Some(Algorithm::Russian)),
    ("sv", Some(Algorithm::Swedish)),
    ("ta", Some(Algorithm::Tamil)),
    ("tr", Some(Algorithm::Turkish)),
];

/// Returns the term that names a document's language, from its language tag.
pub(crate) fn language_term(tag: &str) -> String {
    let primary = tag.split('-').next().unwrap_or_default();
    let known = STEMMED.iter().map(|(code, _)| *code).find(|code| code.eq_ignore_ascii_case(primary));
    format!("{LANGUAGE}{}", known.unwrap_or(OTHER))
}

fn term(fields: IndexSchema, code: &str) -> Term {
    Term::from_field_text(fields.elements, &format!("{LANGUAGE}{code}"))
}

/// A set of languages, one bit for each of [`STEMMED`].
pub(super) type Languages = u32;

/// Another form of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WordForm {
    pub(super) word: String,
    /// The languages in which it is a form of that word.
    pub(super) languages: Languages,
}

/// Recognises the forms of a word in one language.
struct Stemmed {
    /// None for a language whose words are pairs of syllables.
    stemmer: Option<Stemmer>,
    is_arabic: bool,
    stem: String,
    /// The beginning of every form, after what may be joined to it.
    start: String,
    language: Languages,
}

impl Stemmed {
    /// Returns `None` if the word and its stem have too few letters in common.
    fn of(word: &str, number: usize) -> Option<Self> {
        let (code, algorithm) = STEMMED.get(number)?;
        let stemmer = algorithm.map(Stemmer::create);
        let mut found = Self {
            is_arabic: *code == "ar",
            stem: String::new(),
            start: word.to_owned(),
            // The script of a syllable tells its language.
            language: if stemmer.is_some() { 1 << number } else { Languages::MAX },
            stemmer,
        };
        if found.stemmer.is_none() {
            return is_syllable(word).then_some(found);
        }
        found.stem = found.stem_of(word).into_owned();
        let both = word.chars().zip(found.stem.chars());
        let common = both.take_while(|(left, right)| left == right).count();
        // The last letter of a stem may differ from that of a form: `librari`, `library`.
        let letters = common.saturating_sub(1).max(COMMON_LETTERS_MIN);
        found.start = word.chars().take(letters).collect();
        (common >= COMMON_LETTERS_MIN).then_some(found)
    }

    fn stem_of<'w>(&self, word: &'w str) -> Cow<'w, str> {
        let stem = self.stemmer.as_ref().map_or(Cow::Borrowed(""), |stemmer| stemmer.stem(word));
        if self.is_arabic { arabic::without_alef(stem) } else { stem }
    }

    fn has(&self, word: &str) -> bool {
        let is_form = |bare: &str| bare.starts_with(&self.start) && self.stem_of(bare) == self.stem;
        self.joined().iter().any(|joined| word.strip_prefix(joined).is_some_and(is_form))
    }

    fn joined(&self) -> &'static [&'static str] {
        if self.is_arabic { &arabic::JOINED } else { &[""] }
    }

    /// Returns the beginnings of all its forms.
    fn starts(&self) -> impl Iterator<Item = String> {
        self.joined().iter().map(|joined| format!("{joined}{}", self.start))
    }
}

impl IndexView<'_> {
    /// Returns the other forms of the typed words, except of those in phrases.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn forms(&self, find: &Find) -> Result<Vec<String>, SearchError> {
        let forms = || self.forms_of(find).map_err(|source| SearchError::of(self.folder(), source));
        Ok(self.guarded(forms)?.into_iter().flat_map(|(_, forms)| forms).map(|form| form.word).collect())
    }

    /// Returns each word with its forms in the languages of the indexed documents.
    pub(super) fn forms_of(&self, find: &Find) -> tantivy::Result<Vec<(String, Vec<WordForm>)>> {
        let (_, fields) = IndexSchema::schema(false);
        let searchers = self.searchers();
        let mut languages = Vec::new();
        for (number, (code, algorithm)) in STEMMED.iter().enumerate() {
            let term = term(fields, code);
            if algorithm.is_none() || searchers.doc_freq(&term)? > 0 {
                languages.push(number);
            }
        }
        let mut words = words(&find.words);
        words.truncate(FIND_WORDS_MAX);
        words.sort_unstable();
        words.dedup();
        let mut known = self.forms.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = Vec::new();
        for word in words {
            if !known.contains_key(&word) {
                known.insert(word.clone(), forms(&searchers, fields, &word, &languages)?);
            }
            let forms = known.get(&word).cloned().unwrap_or_default();
            all.push((word, forms));
        }
        Ok(all)
    }
}

/// Returns the forms of a word in some languages, most frequent first.
fn forms(
    searchers: &Searchers<'_>,
    fields: IndexSchema,
    word: &str,
    languages: &[usize],
) -> tantivy::Result<Vec<WordForm>> {
    let stemmed: Vec<Stemmed> = languages.iter().filter_map(|number| Stemmed::of(word, *number)).collect();
    let mut starts: Vec<String> = stemmed.iter().flat_map(Stemmed::starts).collect();
    starts.sort_unstable();
    starts.dedup_by(|longer, shorter| longer.starts_with(shorter.as_str()));
    let mut forms: Vec<(u64, WordForm)> = Vec::new();
    for ((segment, veil), start) in
        searchers.segments().flat_map(|segment| starts.iter().map(move |start| (segment, start)))
    {
        let index = segment.inverted_index(fields.body)?;
        let mut known = index.terms().range().ge(start).into_stream()?;
        for _ in 0..COMPARED_MAX {
            let Some((other, found)) = known.next() else { break };
            let Ok(other) = std::str::from_utf8(other) else { continue };
            if !other.starts_with(start) {
                break;
            }
            // Stems take longer than the rest of a search, and most candidates are names.
            let is_candidate = other != word
                && other.len() <= word.len() + ENDING_BYTES_MAX
                && other.chars().all(char::is_alphabetic);
            let of = stemmed.iter().filter(|stemmed| is_candidate && stemmed.has(other));
            let languages = of.fold(0, |languages, stemmed| languages | stemmed.language);
            if languages == 0 {
                continue;
            }
            let term = Term::from_field_text(fields.body, other);
            let count = shown_with(segment, veil, &term, u64::from(found.doc_freq))?;
            if count == 0 {
                continue;
            }
            match forms.iter_mut().find(|(_, form)| form.word == other) {
                Some((sum, _)) => *sum += count,
                None => forms.push((count, WordForm { word: other.to_owned(), languages })),
            }
        }
    }
    forms.sort_by(|(left, one), (right, other)| right.cmp(left).then_with(|| one.word.cmp(&other.word)));
    let most = if is_syllable(word) { SYLLABLE_FORMS_MAX } else { FORMS_MAX };
    Ok(forms.into_iter().take(most).map(|(_, form)| form).collect())
}

/// Whether a word is a Korean syllable alone.
fn is_syllable(word: &str) -> bool {
    let mut letters = word.chars();
    letters.next().is_some_and(|first| ('\u{ac00}'..='\u{d7a3}').contains(&first)) && letters.next().is_none()
}

/// The languages of a segment's documents.
pub(super) struct DocumentLanguages(Vec<(Languages, SegmentPostings)>);

impl DocumentLanguages {
    pub(super) fn of(segment: &SegmentReader, fields: IndexSchema) -> tantivy::Result<Self> {
        let index = segment.inverted_index(fields.elements)?;
        let mut all = Vec::new();
        let stemmed = STEMMED.iter().enumerate().map(|(number, (code, _))| (1 << number, *code));
        for (language, code) in stemmed.chain([(0, OTHER)]) {
            let documents = index.read_postings(&term(fields, code), IndexRecordOption::Basic)?;
            all.extend(documents.map(|documents| (language, documents)));
        }
        Ok(Self(all))
    }

    /// Returns the languages that a document may be written in. Documents must be passed in ascending order.
    pub(super) fn of_document(&mut self, document: DocId) -> Languages {
        for (language, documents) in &mut self.0 {
            if documents.doc() < document {
                documents.seek(document);
            }
            if documents.doc() == document {
                return *language;
            }
        }
        Languages::MAX
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_stemmer_takes_every_word(word in "\\PC{0,24}", letters in "[a-zà-ÿα-ωа-яا-يஅ-ஹ']{0,24}") {
            for number in 0..STEMMED.len() {
                for word in [&word, &letters] {
                    let _ = Stemmed::of(word, number);
                }
            }
        }
    }

    #[test]
    fn words_of_one_stem_begin_alike() {
        let number = |language: &str| STEMMED.iter().position(|(code, _)| *code == language).unwrap();
        for (language, word, others) in [
            ("en", "library", &["libraries"][..]),
            ("en", "libraries", &["library"]),
            ("en", "archiving", &["archive", "archived", "archives"]),
            ("en", "files", &["file", "filing"]),
            ("fr", "archives", &["archive", "archiver"]),
            ("de", "sammlung", &["sammlungen"]),
            ("ru", "библиотека", &["библиотеки", "библиотек"]),
            ("ar", "مكتبه", &["مكتبات", "بمكتبه", "لمكتبات", "مكتبتها"]),
            ("ko", "책", &["책을", "책이"]),
        ] {
            let stemmed = Stemmed::of(word, number(language)).unwrap();
            others.iter().for_each(|other| assert!(stemmed.has(other), "{language}: {word}, {other}"));
            assert!(!stemmed.has("liberty"), "{word}");
        }
        assert!(Stemmed::of("go", number("en")).is_none());
        assert_eq!([language_term("de-at"), language_term("pl")], ["\u{1A}de", "\u{1A}-"]);
    }
}
