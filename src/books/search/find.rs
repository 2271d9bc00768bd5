//! Free-text search: ranks the pages that have the typed words; pages that the words name come first.
//!
//! ```text
//! score = BM25 + 16 c + 4 [c = 1] + 20 l + 8 h + 8 [l exact] + 5 [h exact] + 8 [phrase]
//! ```
//!
//! BM25 (k1 = 1.2, b = 0.75) is summed over words and over title, body and URL (half weight), and over keywords, where
//! a word counts half of what it can count at most, however often it is there. c is the share of the
//! words that the page has anywhere, weighted by rarity (inverse document frequency). A label is a text that names
//! something: a link text is a label of the link's target, a title or heading a label of its own page. A label scores
//! the weighted share of the words that it has times the share of its own words that these are; l is the best score
//! among link texts, h that among headings. A label is exact if it has all words and no other. A phrase is all words in
//! a row in the body. Where a page or a label has another form of a word (see `forms`), half of the word's share counts,
//! and a fifth of the form's BM25 unless the page has the word as typed, too. The weights were chosen by known-item
//! searches on five documentation sites (`docs/search.md`).
//! Each label is scored by itself, as Ogilvie and Callan do with document representations ("Combining document
//! representations for known-item search", SIGIR 2003).

use std::collections::{HashMap, HashSet};

use archive_storage::UrlId;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tantivy::Term;
use tantivy::query::{Bm25StatisticsProvider, Bm25Weight, FuzzyTermQuery};
use tantivy::schema::Field;

use super::error::SearchError;
use super::evidence::read_pages;
use super::forms::WordForm;
use super::schema::IndexSchema;
use super::view::{IndexView, shown_with};
use super::words::words;
use super::{TextField, TextQuery};

/// Maximum number of words of a search; further words are ignored.
pub const FIND_WORDS_MAX: usize = 32;

/// Minimum number of letters of a word in which two may differ.
const LONG_WORD: usize = 6;

const URL_WEIGHT: f32 = 0.5;
const KEYWORDS_WEIGHT: f32 = 0.5;
/// Descriptions say what the text says, and whoever looks for an author names the field: their words count in the share alone.
const DESCRIPTION_WEIGHT: f32 = 0.0;
const AUTHOR_WEIGHT: f32 = 0.0;
const COVERAGE_WEIGHT: f32 = 16.0;
const ALL_WEIGHT: f32 = 4.0;
const LINK_WEIGHT: f32 = 20.0;
const HEADING_WEIGHT: f32 = 8.0;
const EXACT_LINK_WEIGHT: f32 = 8.0;
const EXACT_HEADING_WEIGHT: f32 = 5.0;
const PHRASE_WEIGHT: f32 = 8.0;
/// Another form of a word counts for half of the word as typed, and its BM25, in a page without that word, for a fifth.
pub(super) const FORM_SHARE: f32 = 0.5;
pub(super) const FORM_WEIGHT: f32 = 0.2;

/// A free-text search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Find {
    /// Words in the order typed.
    pub words: String,
    /// Phrases that a page must have.
    pub phrases: Vec<String>,
    /// Words and phrases that a page must not have.
    pub without: Vec<String>,
    /// Phrases that a page must or must not have in a field.
    pub within: Vec<FieldPhrase>,
}

/// A phrase in a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPhrase {
    /// The field.
    pub field: TextField,
    /// The phrase.
    pub text: String,
    /// Whether a page must not have it.
    pub is_unwanted: bool,
}

impl Find {
    /// Returns all words that a page should have, at most [`FIND_WORDS_MAX`].
    #[must_use]
    pub fn typed(&self) -> Vec<String> {
        let within = self.within.iter().filter(|phrase| !phrase.is_unwanted).map(|phrase| &phrase.text);
        let texts = [&self.words].into_iter().chain(&self.phrases).chain(within);
        texts.flat_map(|text| words(text)).take(FIND_WORDS_MAX).collect()
    }
}

/// A page that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FoundPage {
    /// The page.
    pub page: UrlId,
    /// Score; higher is better.
    pub score: f32,
    /// Whether the page has all words.
    pub has_all: bool,
}

/// A word of the search.
pub(super) struct QueryWord {
    pub(super) word: String,
    /// Share of all words' rarity; the shares sum to 1.
    share: f32,
    /// BM25 weight in each text field.
    pub(super) weights: Vec<(Field, Bm25Weight)>,
    /// Its other forms.
    pub(super) forms: Vec<WordForm>,
}

/// How well the labels of a page fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fit {
    /// Score of the best label. It is serialized as its bits.
    #[serde(serialize_with = "to_bits", deserialize_with = "from_bits")]
    pub(super) best: f32,
    pub(super) is_exact: bool,
    /// Bit set of the words that any label has.
    pub(super) words: u32,
}

fn to_bits<S: Serializer>(number: &f32, serializer: S) -> Result<S::Ok, S::Error> {
    number.to_bits().serialize(serializer)
}

/// Reads a share; bits from another machine may not be one.
fn from_bits<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f32, D::Error> {
    let share = f32::from_bits(u32::deserialize(deserializer)?);
    // Rounding may yield slightly more than 1.
    if (0.0..=2.0).contains(&share) { Ok(share) } else { Err(D::Error::custom("not a share")) }
}

impl Fit {
    /// Merges the fit of another label of the same page.
    pub fn take(&mut self, other: Self) {
        self.best = self.best.max(other.best);
        self.is_exact |= other.is_exact;
        self.words |= other.words;
    }
}

/// Evidence from the index for one page.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PageEvidence {
    pub(super) bm25: f32,
    pub(super) words: u32,
    /// Words of which it has another form.
    pub(super) forms: u32,
    pub(super) headings: Fit,
    links: Fit,
}

/// Evidence from indexes for all pages of a search.
pub struct Evidences {
    wanted: Vec<QueryWord>,
    pages: Vec<(UrlId, PageEvidence)>,
    linked: HashMap<UrlId, Fit>,
    in_a_row: HashSet<UrlId>,
    /// Pages with all phrases, if the search has phrases.
    with: Option<HashSet<UrlId>>,
    without: HashSet<UrlId>,
}

impl Evidences {
    /// Replaces each page's number by its number among several indexes; drops pages that have none.
    ///
    /// # Errors
    /// Any error of `number`.
    pub fn renumber<E>(
        mut self,
        mut number: impl FnMut(UrlId) -> Result<Option<UrlId>, E>,
    ) -> Result<Self, E> {
        let mut pages = Vec::new();
        for (page, evidence) in self.pages {
            pages.extend(number(page)?.map(|page| (page, evidence)));
        }
        self.pages = pages;
        for (page, fit) in std::mem::take(&mut self.linked) {
            if let Some(page) = number(page)? {
                self.linked.entry(page).or_default().take(fit);
            }
        }
        for pages in
            [Some(&mut self.in_a_row), self.with.as_mut(), Some(&mut self.without)].into_iter().flatten()
        {
            *pages = pages.iter().filter_map(|page| number(*page).transpose()).collect::<Result<_, E>>()?;
        }
        Ok(self)
    }

    /// Returns the fit of link texts, by the page that they lead to.
    pub fn into_linked(self) -> impl Iterator<Item = (UrlId, Fit)> {
        self.linked.into_iter()
    }

    /// Adds the fit of another archive's links to a page. Words that are not in the search do not count.
    pub fn add_linked(&mut self, page: UrlId, fit: Fit) {
        let known = u32::MAX.checked_shl(self.wanted.len() as u32).map_or(u32::MAX, |others| !others);
        self.linked.entry(page).or_default().take(Fit { words: fit.words & known, ..fit });
    }

    /// Adds the evidence of another index.
    pub fn add(&mut self, other: Self) {
        self.pages.extend(other.pages);
        other.linked.into_iter().for_each(|(page, fit)| self.linked.entry(page).or_default().take(fit));
        self.in_a_row.extend(other.in_a_row);
        self.with.iter_mut().for_each(|with| with.extend(other.with.iter().flatten()));
        self.without.extend(other.without);
    }

    /// Returns every page that has one of the words and all phrases and nothing unwanted, in no order. This includes
    /// pages known only from links to them.
    #[must_use]
    pub fn judge(self) -> Vec<FoundPage> {
        let Self { wanted, mut pages, mut linked, in_a_row, with, without } = self;
        for (page, evidence) in &mut pages {
            evidence.links = linked.remove(page).unwrap_or_default();
        }
        pages.extend(
            linked.into_iter().map(|(page, links)| (page, PageEvidence { links, ..PageEvidence::default() })),
        );
        pages.retain(|(page, _)| {
            with.as_ref().is_none_or(|with| with.contains(page)) && !without.contains(page)
        });
        let found = pages.into_iter();
        found.map(|(page, evidence)| judge(page, evidence, &wanted, in_a_row.contains(&page))).collect()
    }
}

impl IndexView<'_> {
    /// Collects the evidence of these indexes for a search.
    ///
    /// # Errors
    /// When an index or a history cannot be read.
    pub fn find(&self, find: &Find) -> Result<Evidences, SearchError> {
        self.guarded(|| self.find_unguarded(find))
    }

    fn find_unguarded(&self, find: &Find) -> Result<Evidences, SearchError> {
        let error = |source| SearchError::of(self.folder(), source);
        let (searchers, (_, fields)) = (self.searchers(), IndexSchema::schema(false));
        let (typed, whole) = (find.typed(), self.whole());
        let mut wanted = wanted(&whole, whole.alive(), fields, &typed).map_err(error)?;
        for (word, forms) in self.forms_of(find).map_err(error)? {
            if let Some(own) = wanted.iter_mut().find(|wanted| wanted.word == word) {
                // A word that was typed itself is not another form of its neighbour.
                own.forms = forms.into_iter().filter(|form| !typed.contains(&form.word)).collect();
            }
        }
        let mut pages = Vec::new();
        let mut linked: HashMap<UrlId, Fit> = HashMap::new();
        for (segment, _) in searchers.segments() {
            let mut found = Vec::new();
            read_pages(segment, fields, &wanted, &mut found).map_err(error)?;
            for (page, version, evidence) in found {
                if self.counts(page, version)? {
                    pages.push((page, evidence));
                }
            }
            self.read_links(segment, fields, &wanted, &mut linked)?;
        }
        let in_a_row =
            if typed.len() > 1 { self.set_of(vec![typed.join(" ")], true)? } else { HashSet::new() };
        let has_phrases = !find.phrases.is_empty();
        let mut with = has_phrases.then(|| self.set_of(find.phrases.clone(), true)).transpose()?;
        let mut without =
            if find.without.is_empty() { HashSet::new() } else { self.set_of(find.without.clone(), false)? };
        for FieldPhrase { field, text, is_unwanted } in &find.within {
            let query = TextQuery { field: Some(*field), ..TextQuery::phrase(text) };
            let found: HashSet<_> = self.pages_with(&query)?.into_iter().collect();
            if *is_unwanted {
                without.extend(found);
            } else {
                with = Some(with.map_or_else(|| found.clone(), |with| &with & &found));
            }
        }
        Ok(Evidences { wanted, pages, linked, in_a_row, with, without })
    }

    /// Returns the most frequent word that resembles one that no page has: one letter differs, or two in a long word.
    /// Returns nothing for a word that some page has.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn similar(&self, word: &str) -> Result<Option<String>, SearchError> {
        Ok(self.like(word)?.and_then(most_like))
    }

    /// Returns the words that resemble one that no page has, with their frequencies; nothing for a word that some page
    /// has.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn like(&self, word: &str) -> Result<Option<HashMap<String, u64>>, SearchError> {
        self.guarded(|| self.like_unguarded(word).map_err(|source| SearchError::of(self.folder(), source)))
    }

    fn like_unguarded(&self, word: &str) -> tantivy::Result<Option<HashMap<String, u64>>> {
        let (whole, (_, fields)) = (self.whole(), IndexSchema::schema(false));
        for field in [
            fields.body,
            fields.title,
            fields.labels,
            fields.links,
            fields.description,
            fields.keywords,
            fields.author,
        ] {
            if whole.doc_freq(&Term::from_field_text(field, word))? > 0 {
                return Ok(None);
            }
        }
        let mut frequencies: HashMap<String, u64> = HashMap::new();
        let Some(first) = word.chars().next() else { return Ok(Some(frequencies)) };
        let distance_max = if word.chars().count() < LONG_WORD { 1 } else { 2 };
        let near = FuzzyTermQuery::new(Term::from_field_text(fields.body, word), distance_max, true);
        let near = near.automaton()?;
        for (segment, veil) in whole.segments() {
            let index = segment.inverted_index(fields.body)?;
            let mut words = index.terms().search(&near).ge(first.to_string()).into_stream()?;
            while words.advance() {
                let Ok(other) = std::str::from_utf8(words.key()) else { continue };
                if !other.starts_with(first) {
                    break;
                }
                let term = Term::from_field_text(fields.body, other);
                let shown = shown_with(segment, veil, &term, u64::from(words.value().doc_freq))?;
                if shown > 0 {
                    *frequencies.entry(other.to_owned()).or_default() += shown;
                }
            }
        }
        Ok(Some(frequencies))
    }

    fn set_of(&self, texts: Vec<String>, all: bool) -> Result<HashSet<UrlId>, SearchError> {
        Ok(self.pages_with(&TextQuery { field: None, all, texts })?.into_iter().collect())
    }
}

/// Returns the most frequent of some words.
#[must_use]
pub fn most_like(frequencies: HashMap<String, u64>) -> Option<String> {
    let best = frequencies.into_iter().max_by(|left, right| left.1.cmp(&right.1).then(right.0.cmp(&left.0)));
    best.map(|(word, _)| word)
}

/// Returns each word once, with its share.
pub(super) fn wanted(
    whole: &dyn Bm25StatisticsProvider,
    alive: u64,
    fields: IndexSchema,
    typed: &[String],
) -> tantivy::Result<Vec<QueryWord>> {
    let documents = alive as f32;
    let mut wanted: Vec<QueryWord> = Vec::new();
    for word in typed {
        if wanted.iter().any(|known| known.word == *word) {
            continue;
        }
        let mut frequency = 0;
        let texts = [fields.title, fields.body, fields.url, fields.labels, fields.links];
        for field in texts.into_iter().chain([fields.description, fields.keywords, fields.author]) {
            frequency = frequency.max(whole.doc_freq(&Term::from_field_text(field, word))?);
        }
        let frequency = frequency as f32;
        let rarity = ((documents - frequency).max(0.0) + 0.5) / (frequency + 0.5);
        let mut weights = Vec::new();
        for (field, weight) in [
            (fields.title, 1.0),
            (fields.body, 1.0),
            (fields.url, URL_WEIGHT),
            (fields.description, DESCRIPTION_WEIGHT),
            (fields.keywords, KEYWORDS_WEIGHT),
            (fields.author, AUTHOR_WEIGHT),
        ] {
            let bm25 = Bm25Weight::for_terms(whole, &[Term::from_field_text(field, word)])?;
            weights.push((field, bm25.boost_by(weight)));
        }
        wanted.push(QueryWord { word: word.clone(), share: rarity.ln_1p(), weights, forms: Vec::new() });
    }
    let sum: f32 = wanted.iter().map(|wanted| wanted.share).sum();
    wanted.iter_mut().for_each(|wanted| wanted.share /= sum.max(f32::MIN_POSITIVE));
    Ok(wanted)
}

fn judge(page: UrlId, evidence: PageEvidence, wanted: &[QueryWord], in_a_row: bool) -> FoundPage {
    let PageEvidence { bm25, words, forms, headings, links } = evidence;
    let has = words | headings.words | links.words;
    let has_form = forms & !has;
    let coverage = share(has, wanted) + FORM_SHARE * share(has_form, wanted);
    let is_all = |words: u32| words.count_ones() as usize == wanted.len();
    let has_all = is_all(has | has_form);
    let mut score =
        bm25 + COVERAGE_WEIGHT * coverage + LINK_WEIGHT * links.best + HEADING_WEIGHT * headings.best;
    for (is_so, weight) in [
        (is_all(has), ALL_WEIGHT),
        (links.is_exact, EXACT_LINK_WEIGHT),
        (headings.is_exact, EXACT_HEADING_WEIGHT),
        (in_a_row, PHRASE_WEIGHT),
    ] {
        score += if is_so { weight } else { 0.0 };
    }
    FoundPage { page, score, has_all }
}

/// Returns the words of a bit set.
fn of(set: u32, wanted: &[QueryWord]) -> impl Iterator<Item = &QueryWord> {
    wanted.iter().enumerate().filter(move |(word, _)| set >> word & 1 == 1).map(|(_, wanted)| wanted)
}

/// Sums the shares of a set of words.
pub(super) fn share(set: u32, wanted: &[QueryWord]) -> f32 {
    of(set, wanted).map(|wanted| wanted.share).sum()
}
