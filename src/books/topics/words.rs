//! Topics of words alone, for archives that have no examples yet: the words of a phrase, of a description, of URLs or of
//! a few pages, weighted by how often they are said there and how rarely on other pages.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use archive_math::focus::{Knowledge, Model};
use chrono::{DateTime, Utc};
use url::Url;

use super::learn::WORDS_SHOWN;
use super::{About, Judged, LabelledDocument, Topic, TopicError, check_name};

/// Maximum number of words of a topic without examples, the weightiest ones.
pub const WORDS_MAX: usize = 200;

/// Maximum number of bytes of a word; longer ones are data.
const WORD_BYTES_MAX: usize = 64;

/// Weight of a word's other number: of `map` where a text says `maps`.
const FORM_WEIGHT: f64 = 0.5;

/// Minimum number of letters of a word that has an other number.
const FORM_LETTERS_MIN: usize = 3;

/// Words of every text in English, French, German and Spanish. They tell nothing; where an archive has other pages, their
/// frequency there says so too.
const COMMON: [&str; 123] = [
    "the", "of", "and", "to", "is", "in", "that", "this", "these", "those", "with", "from", "are", "be",
    "by", "it", "its", "which", "who", "will", "for", "if", "not", "or", "an", "as", "at", "on", "when",
    "has", "have", "had", "can", "other", "was", "were", "been", "their", "they", "them", "there", "about",
    "also", "all", "any", "each", "how", "what", "where", "more", "most", "such", "than", "into", "our",
    "your", "you", "we", "he", "she", "his", "her", "but", "no", "so", "would", "should", "may", "de", "la",
    "le", "les", "des", "du", "et", "un", "une", "est", "en", "que", "qui", "dans", "pour", "sur", "par",
    "avec", "au", "aux", "ou", "ne", "pas", "ce", "der", "die", "das", "und", "den", "dem", "ein", "eine",
    "einer", "ist", "von", "zu", "mit", "sich", "nicht", "auch", "auf", "el", "los", "las", "del", "una",
    "por", "con", "para", "como", "se", "al", "lo", "su", "es",
];

/// Returns the words of `text` with their weights, the weightiest first: (1 + ln count), times how rare the word is on
/// `others` (as in [`archive_math::learn::TfIdf`]). Another number of a word (`maps`, `map`) counts half.
#[must_use]
pub fn weighted(text: &str, others: &[LabelledDocument]) -> Vec<(String, f64)> {
    let rarity = Rarity::on(others);
    let mut counts: HashMap<String, f64> = HashMap::new();
    for word in split(text).filter(|word| !COMMON.contains(&word.as_str())) {
        *counts.entry(word).or_default() += 1.0;
    }
    let mut words: Vec<(String, f64)> = counts
        .into_iter()
        .map(|(word, count)| ((1.0 + count.ln()) * rarity.of(&word), word))
        .map(|(w, word)| (word, w))
        .collect();
    words.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    words.truncate(WORDS_MAX);
    let known: HashSet<String> = words.iter().map(|(word, _)| word.clone()).collect();
    let forms: Vec<(String, f64)> = words
        .iter()
        .filter_map(|(word, weight)| Some((other_number(word)?, weight * FORM_WEIGHT)))
        .filter(|(word, _)| !known.contains(word))
        .collect();
    words.extend(forms);
    words
}

/// The words of a text as topics know them, in lower case, without numbers and single letters.
fn split(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let tells = |word: &&str| {
        word.len() <= WORD_BYTES_MAX && word.chars().any(char::is_alphabetic) && word.chars().nth(1).is_some()
    };
    words.filter(tells).map(str::to_lowercase)
}

/// Returns the plural of a word, or the singular of one that looks like a plural.
fn other_number(word: &str) -> Option<String> {
    let (last, letters) = (word.chars().last()?, word.chars().count());
    match word.strip_suffix('s') {
        Some(singular) if letters > FORM_LETTERS_MIN && !singular.ends_with(['s', 'u', 'i']) => {
            Some(singular.to_owned())
        }
        None if letters >= FORM_LETTERS_MIN && last.is_ascii_lowercase() => Some(format!("{word}s")),
        _ => None,
    }
}

/// How rare words are on some pages.
struct Rarity {
    pages: f64,
    found: HashMap<String, f64>,
}

impl Rarity {
    fn on(pages: &[LabelledDocument]) -> Self {
        let mut found: HashMap<String, f64> = HashMap::new();
        for page in pages {
            for word in split(page.text()).collect::<HashSet<String>>() {
                *found.entry(word).or_default() += 1.0;
            }
        }
        Self { pages: pages.len() as f64, found }
    }

    fn of(&self, word: &str) -> f64 {
        let found = self.found.get(word).copied().unwrap_or_default();
        1.0 + ((1.0 + self.pages) / (1.0 + found)).ln()
    }
}

/// Returns the words of a URL that may name a subject, separated by spaces: of its host without the last part, and of
/// its path without the ending.
#[must_use]
pub fn of_url(url: &str) -> String {
    let Ok(url) = Url::parse(url) else { return String::new() };
    let host = url.host_str().and_then(|host| host.rsplit_once('.')).map_or("", |(host, _)| host);
    let (path, name) = url.path().rsplit_once('/').unwrap_or(("", url.path()));
    let name = name.rsplit_once('.').map_or(name, |(name, _)| name);
    format!("{} {path} {name}", host.strip_prefix("www.").unwrap_or(host))
}

/// Makes a topic of the words of `text`; `from` describes their source. `examples` are the few pages that the text was
/// taken from, and `others` show how rare words are elsewhere.
///
/// # Errors
/// If the text has no word.
pub fn of_words(
    name: &str,
    from: &str,
    text: &str,
    examples: &[LabelledDocument],
    others: &[LabelledDocument],
    now: DateTime<Utc>,
) -> Result<Topic, TopicError> {
    let name = check_name(name)?.to_owned();
    let words = weighted(text, others);
    if words.is_empty() {
        return Err(TopicError::NoWords);
    }
    let knowledge = Arc::new(Knowledge::of_words(&words));
    let about = About {
        name,
        learned: now,
        from: from.to_owned(),
        model: Model::default(),
        leaves: Vec::new(),
        examples: examples.iter().map(|document| document.url.clone()).collect(),
        against: Vec::new(),
        words_for: words.into_iter().take(WORDS_SHOWN).collect(),
        words_against: Vec::new(),
        quality: Judged::default(),
        calibration: (1.0, 0.0),
    };
    Ok(Topic { about, knowledge, is_hard: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use archive_math::focus::TopicText;

    fn words(text: &str) -> Vec<String> {
        weighted(text, &[]).into_iter().map(|(word, _)| word).collect()
    }

    #[test]
    fn a_text_is_its_words_in_both_numbers() {
        assert_eq!(
            words("The maps of an Old map-seller in 1900"),
            ["map", "maps", "old", "seller", "olds", "sellers"]
        );
        assert_eq!(words("atlas, status, glass"), ["atlas", "glass", "status", "atla"]);
        assert_eq!(words("of the 12 a"), [""; 0]);
        // What is said often counts more.
        assert_eq!(words("old maps, maps")[0], "maps");
        let long: String = (0..2 * WORDS_MAX).map(|word| format!("wörd{word}ß ")).collect();
        assert_eq!(words(&format!("{long} {}", "x".repeat(WORD_BYTES_MAX + 1))).len(), WORDS_MAX);
    }

    #[test]
    fn urls_name_subjects() {
        for (url, words) in [
            ("http://www.old-maps.example.org/london/map-1.html", "old-maps.example /london map-1"),
            ("http://a.test/", "a  "),
            ("maps", ""),
        ] {
            assert_eq!(of_url(url), words);
        }
    }

    #[test]
    fn a_topic_of_words_recognises_pages_at_once() {
        let topic = of_words("maps", "a test", "old maps", &[], &[], DateTime::UNIX_EPOCH).unwrap();
        let chance = |text: &str| {
            topic.probability(&TopicText { url: "http://a.test/", title: "", headings: Vec::new(), text })
        };
        assert!(
            chance("an old map of London, and other maps") > 0.5
                && chance("an old house") > chance("a new one")
        );
        assert_eq!((topic.about.examples.len(), topic.about.words_for.len()), (0, 4));
        let nothing = of_words("maps", "a test", "of the", &[], &[], DateTime::UNIX_EPOCH);
        assert!(matches!(nothing, Err(TopicError::NoWords)));
    }
}
