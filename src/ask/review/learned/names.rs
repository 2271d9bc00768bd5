//! Features of a host's name: its registry suffix, its depth, its words, and letter n-grams of the words.

use std::collections::HashMap;

use archive_math::learn::{HashedWords, NaiveBayes, Sparse, TfIdf, log_odds};
use archive_storage::address::{registry_suffix, site_of};

/// Lengths of the letter n-grams that are compared.
const PIECE_LETTERS: std::ops::RangeInclusive<usize> = 3..=5;
/// Minimum number of names with a term for the term to count.
const NAMES_MIN: u32 = 2;
/// Additive smoothing of term counts.
const SMOOTHING: f64 = 0.5;
/// Part numbers in [`HashedWords`].
const ENDING: u8 = 0;
const WORD: u8 = 1;
const PIECE: u8 = 2;

/// A name in lower case without a leading `www.`: the form in which hosts are compared.
#[must_use]
pub fn without_www(name: &str) -> String {
    let name = name.trim().to_ascii_lowercase();
    name.strip_prefix("www.").map_or_else(|| name.clone(), str::to_owned)
}

/// The parts of a host's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HostName<'a> {
    /// Registry suffix, such as `ac.uk`; a name without a known suffix is its own ending.
    pub(super) ending: &'a str,
    /// Labels before the ending, such as `www2.example`; may be empty.
    pub(super) own: &'a str,
    /// The registered domain, such as `example.ac.uk`.
    pub(super) site: &'a str,
}

impl<'a> HostName<'a> {
    pub(super) fn of(name: &'a str) -> Self {
        let ending = registry_suffix(name).unwrap_or(name);
        let own = name.strip_suffix(ending).unwrap_or_default();
        Self { ending, own: own.strip_suffix('.').unwrap_or(own), site: site_of(name) }
    }

    /// Number of labels before the ending.
    pub(super) fn depth(&self) -> usize {
        if self.own.is_empty() { 0 } else { 1 + self.own.matches('.').count() }
    }

    /// The words of the name, split at non-letters.
    pub(super) fn words(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.own.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty())
    }

    fn pieces(&self) -> HashedWords {
        let mut words = HashedWords::default();
        words.add(ENDING, self.ending);
        words.add(ENDING, &format!("{} {}", self.depth(), self.ending));
        for word in self.words() {
            words.add(WORD, word);
            words.add_pieces(PIECE, word, PIECE_LETTERS);
        }
        words
    }
}

/// Names, or other texts of hosts, as term vectors.
pub(super) struct TermVectors {
    rows: Vec<Sparse>,
    width: usize,
}

impl TermVectors {
    /// Vectorises names; only terms shared by several names count.
    pub(super) fn of<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        Self::of_pieces(&names.map(|name| HostName::of(name).pieces()).collect::<Vec<_>>())
    }

    /// As [`TermVectors::of`], from terms that are already extracted.
    pub(super) fn of_pieces(pieces: &[HashedWords]) -> Self {
        let terms = TfIdf::of(pieces, NAMES_MIN);
        Self { rows: pieces.iter().map(|pieces| terms.counts(pieces)).collect(), width: terms.width() }
    }

    /// Log-odds of being chosen for each name, learned from `examples`: pairs of a name's number and whether it was
    /// chosen.
    pub(super) fn log_odds(&self, examples: impl Iterator<Item = (usize, bool)>) -> Vec<f64> {
        let (rows, labels): (Vec<Sparse>, Vec<usize>) =
            examples.map(|(name, is_chosen)| (self.rows[name].clone(), usize::from(is_chosen))).unzip();
        let model = NaiveBayes::fit(&rows, &labels, 2, self.width, SMOOTHING);
        self.rows.iter().map(|row| log_odds(model.probabilities(row)[1])).collect()
    }
}

/// For each key, the share of chosen ones among the `examples` (index and whether it was chosen) with the same key,
/// smoothed towards the overall share as if that had been seen `lean` times; as log-odds.
pub(super) fn rates(keys: &[String], examples: impl Iterator<Item = (usize, bool)>, lean: f64) -> Vec<f64> {
    let mut counts: HashMap<&str, (f64, f64)> = HashMap::new();
    let mut all = (0.0, 0.0);
    for (place, is_chosen) in examples {
        let chosen = f64::from(u8::from(is_chosen));
        let count = counts.entry(&keys[place]).or_default();
        *count = (count.0 + chosen, count.1 + 1.0);
        all = (all.0 + chosen, all.1 + 1.0);
    }
    let usual = all.0 / f64::max(all.1, 1.0);
    let rate = |key: &String| {
        let (chosen, names) = counts.get(key.as_str()).copied().unwrap_or_default();
        log_odds((chosen + lean * usual) / (names + lean))
    };
    keys.iter().map(rate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_an_ending_words_and_a_depth() {
        let name = HostName::of("royal-mint2.shop.example.co.uk");
        assert_eq!((name.ending, name.depth(), name.site), ("co.uk", 3, "example.co.uk"));
        assert_eq!(name.words().collect::<Vec<_>>(), ["royal", "mint", "shop", "example"]);
        let bare = HostName::of("localhost");
        assert_eq!((bare.ending, bare.own, bare.depth()), ("localhost", "", 0));
        assert_eq!(without_www(" WWW.Example.org\n"), "example.org");
    }

    #[test]
    fn rates_lean_to_the_usual() {
        let keys = ["a", "a", "b", "c"].map(str::to_owned);
        let rates = rates(&keys, [true, true, false, false].into_iter().enumerate(), 2.0);
        assert!((rates[0] - log_odds(0.75)).abs() < 1e-9, "{rates:?}");
        assert!(rates[2] < 0.0 && rates[2] == rates[3]);
    }

    #[test]
    fn names_alike_are_chosen_alike() {
        let names =
            ["council.leeds.gov.uk", "york.gov.uk", "hull.gov.uk", "fun1.com", "fun2.com", "fun3.com"];
        let odds = TermVectors::of(names.into_iter())
            .log_odds([(0, true), (1, true), (3, false), (4, false)].into_iter());
        assert!(odds[2] > odds[5] + 0.5, "{odds:?}");
    }
}
