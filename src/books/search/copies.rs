//! Finds copies of a text and quotations from it, by the phrases that the index has anyway; it costs no bytes.
//!
//! A passage is five words in a row (a shingle: Broder, "On the resemblance and containment of documents",
//! 1997). Comparing the passages of all pages would need a table of them; instead a text is cut into sections, and the
//! index is asked for the passage of each section that is rarest by its rarest word. A page that copies a section whole
//! has that passage. The sample follows the text, not a hash, so no sketch is stored, and its passages are those that
//! chance repeats least.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use archive_storage::UrlId;
use tantivy::Term;
use tantivy::query::Bm25StatisticsProvider as _;
use xxhash_rust::xxh3::xxh3_64;

use super::TextQuery;
use super::error::SearchError;
use super::schema::IndexSchema;
use super::view::IndexView;
use super::words::{positions, words};

/// Number of words of a passage.
const PASSAGE_WORDS: usize = 5;

/// Maximum number of sections of a text, and so of searches; sections of longer texts are longer.
const SECTIONS_MAX: usize = 128;

/// Minimum number of words of a section.
const SECTION_WORDS: usize = 16;

/// Maximum number of pages that have the rarest word of a passage: words of more pages take long to intersect, and
/// passages of such words say little.
const RARE_MAX: u64 = 20_000;

/// Maximum number of pages of one site that share a passage before it counts as part of that site's template.
const TEMPLATE_PAGES: usize = 16;

/// Minimum number of passages that make a copy.
const PASSAGES_MIN: usize = 2;

/// Maximum number of words of a text that are looked at.
const WORDS_MAX: usize = 1 << 17;

impl IndexView<'_> {
    /// Returns, for the rarest passage of each section of a text, the pages that have it.
    ///
    /// # Errors
    /// When an index or a history cannot be read.
    pub fn passages(&self, text: &str) -> Result<Vec<Vec<UrlId>>, SearchError> {
        let chosen = self.guarded(|| self.chosen(text))?;
        let with = |passage: String| self.pages_with(&TextQuery::phrase(passage));
        chosen.into_iter().map(with).collect()
    }

    /// The rarest passage of each section, as a phrase.
    fn chosen(&self, text: &str) -> Result<Vec<String>, SearchError> {
        let error = |source| SearchError::of(self.folder(), source);
        let (whole, (_, fields)) = (self.whole(), IndexSchema::schema(false));
        let mut words = positions(text);
        words.truncate(WORDS_MAX);
        let mut frequencies: HashMap<&str, u64> = HashMap::new();
        for (_, word) in &words {
            if !frequencies.contains_key(word.as_str()) {
                let frequency = whole.doc_freq(&Term::from_field_text(fields.body, word)).map_err(error)?;
                frequencies.insert(word, frequency);
            }
        }
        // The number of pages with the rarest word, unless another page cannot have the passage.
        let rarity = |passage: &[(usize, String)]| {
            let is_whole = passage.first()?.0 + PASSAGE_WORDS == passage.last()?.0 + 1;
            let rarest = passage.iter().filter_map(|(_, word)| frequencies.get(word.as_str())).min()?;
            Some(*rarest).filter(|rarest| is_whole && (2..=RARE_MAX).contains(rarest))
        };
        let mut chosen = Vec::new();
        for section in sections(words.len()) {
            let starts = section.filter_map(|start| {
                let passage = words.get(start..start + PASSAGE_WORDS)?;
                Some((rarity(passage)?, passage))
            });
            if let Some((_, passage)) = starts.min_by_key(|(rarity, _)| *rarity) {
                let words: Vec<&str> = passage.iter().map(|(_, word)| word.as_str()).collect();
                chosen.push(words.join(" "));
            }
        }
        chosen.sort_unstable();
        chosen.dedup();
        Ok(chosen)
    }
}

/// The sections of a text with this number of words.
fn sections(words: usize) -> impl Iterator<Item = Range<usize>> {
    let length = words.div_ceil(SECTIONS_MAX).max(SECTION_WORDS);
    (0..words).step_by(length).map(move |start| start..(start + length).min(words))
}

/// Returns the pages that have some of the passages, given the pages of each passage and the site of a page. A passage that
/// many pages of a site have is no copy there.
///
/// # Errors
/// Any error of `site_of`.
pub fn copying<E>(
    passages: &[Vec<UrlId>],
    mut site_of: impl FnMut(UrlId) -> Result<Option<u32>, E>,
) -> Result<Vec<UrlId>, E> {
    let mut sites: HashMap<UrlId, Option<u32>> = HashMap::new();
    let mut counts: HashMap<UrlId, usize> = HashMap::new();
    for pages in passages {
        let mut by_site: HashMap<u32, Vec<UrlId>> = HashMap::new();
        for page in pages {
            let site = match sites.get(page) {
                Some(site) => *site,
                None => *sites.entry(*page).or_insert(site_of(*page)?),
            };
            site.into_iter().for_each(|site| by_site.entry(site).or_default().push(*page));
        }
        for page in by_site.into_values().filter(|pages| pages.len() <= TEMPLATE_PAGES).flatten() {
            *counts.entry(page).or_default() += 1;
        }
    }
    Ok(counts.into_iter().filter(|(_, count)| *count >= PASSAGES_MIN).map(|(page, _)| page).collect())
}

/// All passages of a text, for exact comparisons.
#[derive(Clone, Debug)]
pub struct Passages(Vec<u64>);

impl Passages {
    /// The hashes of a text's passages, in order.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let mut words = words(text);
        words.truncate(WORDS_MAX);
        Self(words.windows(PASSAGE_WORDS).map(|passage| xxh3_64(passage.join(" ").as_bytes())).collect())
    }

    /// Returns the share of the text's words that stand in passages of the other text, from 0 to 1.
    #[must_use]
    pub fn share_in(&self, other: &Self) -> f64 {
        let other: HashSet<u64> = other.0.iter().copied().collect();
        let (mut covered, mut end) = (0, 0);
        for (start, _) in self.0.iter().enumerate().filter(|(_, passage)| other.contains(passage)) {
            covered += start + PASSAGE_WORDS - end.max(start);
            end = start + PASSAGE_WORDS;
        }
        let words = if self.0.is_empty() { 1 } else { self.0.len() + PASSAGE_WORDS - 1 };
        covered as f64 / words as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotation_is_a_share_of_both_texts() {
        let words = |range: Range<usize>| range.map(|word| format!("w{word} ")).collect::<String>();
        let share = |own: &str, other: &str| Passages::of(own).share_in(&Passages::of(other));
        let original = words(0..40);
        assert_eq!(share(&original, &original), 1.0);
        let quoting = format!("{} {} {}", words(100..130), words(10..20), words(200..260));
        assert_eq!((share(&original, &quoting), share(&quoting, &original)), (0.25, 0.1));
        assert_eq!(share(&original, &words(50..90)), 0.0);
        assert_eq!(share("a few words", ""), 0.0);
        // One word in seven is another: runs of six words, of which each has two passages.
        let word = |word| if word % 7 == 6 { "x ".to_owned() } else { format!("w{word} ") };
        assert_eq!(share(&original, &(0..40).map(word).collect::<String>()), 35.0 / 40.0);
    }

    #[test]
    fn sections_cover_a_text_and_are_bounded() {
        assert_eq!(sections(0).count(), 0);
        assert_eq!(sections(17).collect::<Vec<_>>(), [0..16, 16..17]);
        assert_eq!(sections(1 << 17).count(), SECTIONS_MAX);
        assert_eq!(sections((1 << 17) - 1).last(), Some((1 << 17) - 1024..(1 << 17) - 1));
    }

    #[test]
    fn what_many_pages_of_a_site_have_is_its_template() {
        let pages = |range: Range<u32>| range.map(UrlId).collect::<Vec<_>>();
        let site = |page: UrlId| Ok::<_, ()>(Some(u32::from(page.0 >= 100)));
        let most = TEMPLATE_PAGES as u32;
        assert_eq!(copying(&[pages(0..most), pages(0..1)], site), Ok(vec![UrlId(0)]));
        assert_eq!(copying(&[pages(0..most + 1), pages(0..1)], site), Ok(vec![]));
        let mut both = pages(0..most + 1);
        both.push(UrlId(100));
        assert_eq!(copying(&[both, pages(100..101)], site), Ok(vec![UrlId(100)]));
    }
}
