//! Texts as sparse vectors: words hashed into buckets, weighted by sublinear tf-idf.

use std::iter;
use std::ops::RangeInclusive;

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Number of buckets; two words collide with a probability of 1 / `BUCKETS`.
const BUCKETS: u32 = 1 << 18;

/// Maximum weight of a word. Rarities of a million texts are below 15.
const WEIGHT_MAX: f32 = 64.0;

/// The words of a text, hashed and counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HashedWords(Vec<u32>);

impl HashedWords {
    /// Adds a word; the same word in different parts of the text counts as different words.
    pub fn add(&mut self, part: u8, word: &str) {
        let hash = xxh3_64_with_seed(word.as_bytes(), u64::from(part));
        self.0.push((hash % u64::from(BUCKETS)) as u32);
    }

    /// Adds the words of `text` in lower case. Words are separated by characters that are neither letters nor digits.
    /// Of a number, only its count of digits matters.
    pub fn add_text(&mut self, part: u8, text: &str) {
        let mut lower = String::new();
        for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            lower.clear();
            if word.bytes().all(|byte| byte.is_ascii_digit()) {
                lower.extend(iter::repeat_n('#', word.len().min(9)));
            } else if word.is_ascii() {
                lower.push_str(word);
                lower.make_ascii_lowercase();
            } else {
                lower.extend(word.chars().flat_map(char::to_lowercase));
            }
            self.add(part, &lower);
        }
    }

    /// Adds all substrings of a word with this many letters; `<` and `>` mark its beginning and end.
    pub fn add_pieces(&mut self, part: u8, word: &str, letters: RangeInclusive<usize>) {
        let bounded: Vec<char> = iter::once('<').chain(word.chars()).chain(iter::once('>')).collect();
        for letters in letters {
            for piece in bounded.windows(letters) {
                self.add(part, &String::from_iter(piece));
            }
        }
    }

    /// Returns each bucket with its count, in order.
    fn counts(&self) -> Sparse {
        runs(self.0.clone())
    }
}

/// Returns each number with its count, in order.
fn runs(mut numbers: Vec<u32>) -> Sparse {
    numbers.sort_unstable();
    numbers.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as f32)).collect()
}

/// A sparse vector: the non-zero entries in the order of their indices.
pub type Sparse = Vec<(u32, f32)>;

/// Converts words to vectors: (1 + ln count) · idf, normalised to length 1, with idf = 1 + ln((1 + n) / (1 +
/// documents)) over the n documents it was made from (as in scikit-learn with `sublinear_tf`).
#[derive(Clone, Debug)]
pub struct TfIdf {
    /// Index in the vectors of each bucket, plus 1; 0 for a bucket that is left out.
    places: Vec<u32>,
    weights: Vec<f32>,
    /// Weight of all words that are left out, which then count for the length of a vector; 0 if they do not. It is the
    /// last of `weights` too.
    others: f32,
}

impl TfIdf {
    /// Weights words by how many of `texts` contain them; words in fewer than `texts_min` are left out.
    #[must_use]
    pub fn of(texts: &[HashedWords], texts_min: u32) -> Self {
        let mut found = vec![0_u32; BUCKETS as usize];
        for text in texts {
            text.counts().iter().for_each(|(bucket, _)| found[*bucket as usize] += 1);
        }
        let mut weights = Vec::new();
        for found in &mut found {
            if *found < texts_min.max(1) {
                *found = 0;
                continue;
            }
            let rarity = (1.0 + texts.len() as f64) / (1.0 + f64::from(*found));
            weights.push((1.0 + rarity.ln()) as f32);
            *found = weights.len() as u32;
        }
        Self { places: found, weights, others: 0.0 }
    }

    /// Gives each word of `texts` the weight 1, and all other words too: the vector of a text then has the cosines with
    /// each of these words.
    pub(crate) fn of_few(texts: &[HashedWords]) -> Self {
        let mut few = Self::of(texts, 1);
        few.weights.fill(1.0);
        few.weights.push(1.0);
        few.others = 1.0;
        few
    }

    /// Returns the buckets that count with their weights, in order; at the end, if all other words count for the length
    /// of a vector, 2^18 with their weight.
    pub fn entries(&self) -> impl Iterator<Item = (u32, f32)> {
        let places = self.places.iter().zip(0..);
        let others = (self.others > 0.0).then_some((BUCKETS, self.others));
        places
            .filter_map(|(place, bucket)| Some((bucket, *self.weights.get(place.checked_sub(1)? as usize)?)))
            .chain(others)
    }

    /// Restores the result of [`TfIdf::entries`]; `None` if entries are unsorted or invalid.
    pub(crate) fn from_entries(entries: &[(u32, f32)]) -> Option<Self> {
        let is_weight = |weight: f32| weight > 0.0 && weight <= WEIGHT_MAX;
        if !entries.is_sorted_by(|a, b| a.0 < b.0) || !entries.iter().all(|entry| is_weight(entry.1)) {
            return None;
        }
        let others = entries.last().filter(|last| last.0 == BUCKETS).map(|last| last.1);
        let mut places = vec![0; BUCKETS as usize];
        for ((bucket, _), place) in entries[..entries.len() - usize::from(others.is_some())].iter().zip(1..) {
            *places.get_mut(*bucket as usize)? = place;
        }
        let weights = entries.iter().map(|entry| entry.1).collect();
        Some(Self { places, weights, others: others.unwrap_or_default() })
    }

    /// Number of entries of a vector.
    #[must_use]
    pub fn width(&self) -> usize {
        self.weights.len()
    }

    /// Returns the idf weight of an index.
    #[must_use]
    pub fn weight(&self, place: u32) -> f32 {
        self.weights[place as usize]
    }

    /// Returns the count of each known word.
    #[must_use]
    pub fn counts(&self, text: &HashedWords) -> Sparse {
        // Indices follow the order of buckets, so only the known words must be sorted.
        runs(text.0.iter().filter_map(|bucket| self.places[*bucket as usize].checked_sub(1)).collect())
    }

    /// Returns the vector of a text; it has length 1, or is empty without known words.
    #[must_use]
    pub fn vector(&self, text: &HashedWords) -> Sparse {
        let mut vector = self.counts(text);
        for (place, value) in &mut vector {
            *value = (1.0 + value.ln()) * self.weights[*place as usize];
        }
        let mut length = vector.iter().map(|(_, value)| value * value).sum::<f32>();
        if self.others > 0.0 {
            let others = text.0.iter().filter(|bucket| self.places[**bucket as usize] == 0);
            let others = runs(others.copied().collect());
            length += others.iter().map(|(_, count)| ((1.0 + count.ln()) * self.others).powi(2)).sum::<f32>();
        }
        let length = length.sqrt();
        vector.iter_mut().for_each(|(_, value)| *value /= length);
        vector
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_as_by_hand() {
        let texts = ["One one two", "one 1997 2026", "tree"].map(|text| {
            let mut words = HashedWords::default();
            words.add_text(0, text);
            words
        });
        let weights = TfIdf::of(&texts, 1);
        assert_eq!(weights.width(), 4);
        let vector = weights.vector(&texts[0]);
        let (one, two) = ((1.0 + 2f32.ln()) * (1.0 + (4f32 / 3.0).ln()), 1.0 + 2f32.ln());
        let length = one.hypot(two);
        let place = |part, word| {
            let mut one = HashedWords::default();
            one.add(part, word);
            weights.counts(&one).first().map(|entry| entry.0)
        };
        let value = |word| vector.iter().find(|entry| Some(entry.0) == place(0, word)).unwrap().1;
        assert!((value("one") - one / length).abs() < 1e-6);
        assert!((value("two") - two / length).abs() < 1e-6);
        // Two numbers of four digits are the same word; a word in another part is a different one.
        assert_eq!(weights.counts(&texts[1]).iter().map(|entry| entry.1).sum::<f32>(), 3.0);
        assert_eq!(place(1, "one"), None);
        assert_eq!(TfIdf::of(&texts, 2).width(), 1);
        let entries: Vec<(u32, f32)> = weights.entries().collect();
        assert_eq!(TfIdf::from_entries(&entries).unwrap().vector(&texts[0]), vector);
        assert!(TfIdf::from_entries(&[(3, 1.0), (3, 1.0)]).is_none());
        assert!(TfIdf::from_entries(&[(BUCKETS + 1, 1.0)]).is_none());
        for weight in [0.0, -1.0, f32::NAN, f32::INFINITY, WEIGHT_MAX * 1.01] {
            assert!(TfIdf::from_entries(&[(3, weight)]).is_none(), "{weight}");
        }
        assert!(TfIdf::from_entries(&[(3, WEIGHT_MAX)]).is_some() && TfIdf::from_entries(&[]).is_some());
        assert!(TfIdf::of(&texts, 2).vector(&texts[2]).is_empty());
    }

    #[test]
    fn the_other_words_of_a_text_count_where_few_are_known() {
        let [known, text, none] = ["old maps", "maps of the world, maps of the sea", "ships"].map(|text| {
            let mut words = HashedWords::default();
            words.add_text(0, text);
            words
        });
        let few = TfIdf::of_few(std::slice::from_ref(&known));
        // "maps", "of" and "the" twice, "world" and "sea" once.
        let twice = 1.0 + 2f32.ln();
        let length = (3.0 * twice * twice + 2.0).sqrt();
        let vector = few.vector(&text);
        assert!(vector.len() == 1 && (vector[0].1 - twice / length).abs() < 1e-6, "{vector:?}");
        assert!(few.vector(&none).is_empty());
        let entries: Vec<(u32, f32)> = few.entries().collect();
        assert_eq!((entries.len(), entries[2].0, few.width()), (3, BUCKETS, 3));
        assert_eq!(TfIdf::from_entries(&entries).unwrap().vector(&text), vector);
    }
}
