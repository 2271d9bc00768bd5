//! Outcomes of a page's relatives: the other children of its parents, and the pages of its folders and of its URL
//! pattern.

use std::collections::HashMap;

use super::links::{FOLDERS_MAX, folders};

/// Fixed-point value of an outcome of 1.
const WHOLE: f64 = 32768.0;

/// Maximum number of outcomes; beyond it, the older ones count half. Their sum could hold twice as many.
const OUTCOMES_MAX: u32 = 1 << 16;

/// Outcomes between 0 and 1: their sum in units of 1 / [`WHOLE`], and their number.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OutcomeRate {
    sum: u32,
    count: u32,
}

impl OutcomeRate {
    pub(super) fn add(&mut self, outcome: f64) {
        if self.count == OUTCOMES_MAX {
            self.sum /= 2;
            self.count /= 2;
        }
        self.sum += (outcome * WHOLE).round() as u32;
        self.count += 1;
    }

    /// Returns the rate, shrunk towards `prior` with the weight of `weight` outcomes.
    pub(super) fn shrunken(&self, prior: f64, weight: f64) -> f64 {
        (f64::from(self.sum) / WHOLE + weight * prior) / (self.count() + weight)
    }

    pub(super) fn count(&self) -> f64 {
        self.count.into()
    }
}

/// Rates by shared features of fetched pages. Keys are 32 bits of a hash: of a hundred thousand, about two share a
/// rate.
#[derive(Clone, Debug, Default)]
pub(super) struct Rates(HashMap<u32, OutcomeRate>);

impl Rates {
    pub(super) fn add(&mut self, key: u32, outcome: f64) {
        self.0.entry(key).or_default().add(outcome);
    }

    pub(super) fn get(&self, key: u32) -> OutcomeRate {
        self.0.get(&key).copied().unwrap_or_default()
    }

    /// Bytes of memory used.
    pub(super) fn bytes(&self) -> usize {
        table_bytes::<u32, OutcomeRate>(self.0.capacity())
    }
}

/// Rates of folders and of their parents.
#[derive(Clone, Debug, Default)]
pub(super) struct Folders {
    places: HashMap<u32, u32>,
    /// Parent folder and rate of each folder; a host is its own parent.
    folders: Vec<(u32, OutcomeRate)>,
}

impl Folders {
    /// Returns the number of the innermost folder of a URL.
    pub(super) fn place(&mut self, url: &str) -> u32 {
        let mut inside = None;
        for hash in folders(url) {
            let new = self.folders.len() as u32;
            let place = *self.places.entry(hash as u32).or_insert(new);
            if place == new {
                self.folders.push((inside.unwrap_or(place), OutcomeRate::default()));
            }
            inside = Some(place);
        }
        inside.unwrap_or_default()
    }

    /// Returns this folder and its ancestors, the host last.
    fn outwards(&self, place: u32) -> impl DoubleEndedIterator<Item = u32> + use<> {
        let mut chain = [place; FOLDERS_MAX];
        let mut length = 1;
        let around = |folder: u32| self.folders[folder as usize].0;
        while length < FOLDERS_MAX && around(chain[length - 1]) != chain[length - 1] {
            chain[length] = around(chain[length - 1]);
            length += 1;
        }
        chain.into_iter().take(length)
    }

    pub(super) fn add(&mut self, place: u32, outcome: f64) {
        self.outwards(place).for_each(|folder| self.folders[folder as usize].1.add(outcome));
    }

    /// Returns the rate of a folder, shrunk towards that of its parent, and so on up to `prior`, each with the weight
    /// of `weight` outcomes; and the number of outcomes of the folder.
    pub(super) fn rate(&self, place: u32, prior: f64, weight: f64) -> (f64, f64) {
        let inwards = self.outwards(place).rev();
        let of = |folder: u32| self.folders[folder as usize].1;
        (inwards.fold(prior, |prior, folder| of(folder).shrunken(prior, weight)), of(place).count())
    }

    /// Bytes of memory used.
    pub(super) fn bytes(&self) -> usize {
        table_bytes::<u32, u32>(self.places.capacity())
            + self.folders.capacity() * size_of::<(u32, OutcomeRate)>()
    }
}

/// Bytes of memory of a hash table with this capacity: one more byte per entry, and a load of at most seven eighths.
pub(super) const fn table_bytes<K, V>(capacity: usize) -> usize {
    (capacity * 8 / 7).next_power_of_two() * (size_of::<(K, V)>() + 1)
}

/// Outcomes of the children of a page, by position among its links.
#[derive(Clone, Debug, Default)]
pub(super) struct Children {
    all: OutcomeRate,
    /// Position and outcome of each child, outcomes in units of 1 / [`WHOLE`].
    places: Vec<(u16, u16)>,
}

impl Children {
    pub(super) fn add(&mut self, place: u16, outcome: f64) {
        self.all.add(outcome);
        let at = self.places.partition_point(|entry| entry.0 < place);
        self.places.insert(at, (place, (outcome * WHOLE).round() as u16));
    }

    pub(super) fn rate(&self, prior: f64, weight: f64) -> f64 {
        self.all.shrunken(prior, weight)
    }

    /// Returns the rate near a position, where the weight of a child is `decay` of its distance (0 beyond), shrunk
    /// towards `prior` with the weight of one outcome.
    pub(super) fn near(&self, place: u16, prior: f64, decay: &[f64]) -> f64 {
        let from =
            self.places.partition_point(|entry| usize::from(entry.0) + decay.len() <= usize::from(place));
        let (mut sum, mut count) = (prior, 1.0);
        for &(at, outcome) in &self.places[from..] {
            let Some(weight) = decay.get(usize::from(at.abs_diff(place))) else { break };
            sum += weight * f64::from(outcome) / WHOLE;
            count += weight;
        }
        sum / count
    }

    /// Bytes of memory used on the heap.
    pub(super) fn bytes(&self) -> usize {
        self.places.capacity() * size_of::<(u16, u16)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_count_by_their_distance() {
        let mut children = Children::default();
        [(9, 1.0), (2, 0.0), (5, 1.0), (4, 0.0)]
            .into_iter()
            .for_each(|(place, outcome)| children.add(place, outcome));
        assert_eq!(children.rate(0.0, 0.0), 0.5);
        // Around 5: the child itself counts 1, its neighbour 4 counts a half, 2 and 9 do not count.
        assert_eq!(children.near(5, 0.2, &[1.0, 0.5]), (0.2 + 1.0) / 2.5);
        assert_eq!(children.near(100, 0.2, &[1.0, 0.5]), 0.2);
        assert_eq!(Children::default().rate(0.3, 2.0), 0.3);
    }

    #[test]
    fn folders_are_drawn_to_what_is_around_them() {
        let mut folders = Folders::default();
        let [inner, outer, other] = ["http://a.edu/x/y/1.html", "http://a.edu/x/2.html", "http://b.edu/"]
            .map(|url| folders.place(url));
        assert_eq!(folders.place("http://a.edu/x/y/3.html"), inner);
        folders.add(inner, 1.0);
        folders.add(outer, 0.0);
        // The host has one of two, the outer folder one of two, the inner one of one.
        let host: f64 = (1.0 + 0.2) / 3.0;
        let around = (1.0 + host) / 3.0;
        let (rate, count) = folders.rate(inner, 0.2, 1.0);
        assert!((rate - (1.0 + around) / 2.0).abs() < 1e-12 && count == 1.0, "{rate}");
        assert_eq!(folders.rate(other, 0.2, 1.0), (0.2, 0.0));
        let deep = folders.place(&format!("http://a.edu/{}", "x/".repeat(50)));
        assert_eq!(folders.outwards(deep).count(), FOLDERS_MAX);
    }

    #[test]
    fn rates_are_kept_by_what_pages_share() {
        let mut rates = Rates::default();
        rates.add(77, 1.0);
        assert_eq!((rates.get(77).shrunken(0.0, 1.0), rates.get(78).count()), (0.5, 0.0));
        // The sum never overflows.
        (0..200_000).for_each(|_| rates.add(78, 1.0));
        let rate = rates.get(78);
        assert!(rate.count() <= f64::from(OUTCOMES_MAX) && rate.shrunken(0.0, 0.0) == 1.0, "{rate:?}");
    }
}
