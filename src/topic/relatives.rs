//! How a page's relatives turned out: the other children of its parents, the pages of its folders and of its pattern.

use std::collections::HashMap;

/// Outcomes between 0 and 1: their sum and how many.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rate {
    sum: f64,
    pub(super) count: f64,
}

impl Rate {
    pub(super) fn add(&mut self, outcome: f64) {
        self.sum += outcome;
        self.count += 1.0;
    }

    /// The rate, drawn to `prior` as by `weight` more outcomes.
    pub(super) fn shrunken(&self, prior: f64, weight: f64) -> f64 {
        (self.sum + weight * prior) / (self.count + weight)
    }
}

/// Rates by what pages have in common.
#[derive(Clone, Debug, Default)]
pub(super) struct Rates {
    places: HashMap<u64, u32>,
    rates: Vec<Rate>,
}

impl Rates {
    /// The place of what pages have in common, given by its hash.
    pub(super) fn place(&mut self, key: u64) -> u32 {
        let new = self.rates.len() as u32;
        let place = *self.places.entry(key).or_insert(new);
        if place == new {
            self.rates.push(Rate::default());
        }
        place
    }

    pub(super) fn add(&mut self, place: u32, outcome: f64) {
        self.rates[place as usize].add(outcome);
    }

    pub(super) fn get(&self, place: u32) -> Rate {
        self.rates[place as usize]
    }
}

/// The outcomes of a page's children, by their places among its links.
#[derive(Clone, Debug, Default)]
pub(super) struct Children {
    all: Rate,
    places: Vec<(u32, f32)>,
}

impl Children {
    pub(super) fn add(&mut self, place: u32, outcome: f64) {
        self.all.add(outcome);
        let at = self.places.partition_point(|entry| entry.0 < place);
        self.places.insert(at, (place, outcome as f32));
    }

    pub(super) fn rate(&self, prior: f64, weight: f64) -> f64 {
        self.all.shrunken(prior, weight)
    }

    /// The rate around a place, where a child counts as `decay` has it for its distance (0 beyond), drawn to `prior` as by one
    /// outcome more.
    pub(super) fn near(&self, place: u32, prior: f64, decay: &[f64]) -> f64 {
        let from = self.places.partition_point(|entry| entry.0 as usize + decay.len() <= place as usize);
        let (mut sum, mut count) = (prior, 1.0);
        for &(at, outcome) in &self.places[from..] {
            let Some(weight) = decay.get(at.abs_diff(place) as usize) else { break };
            sum += weight * f64::from(outcome);
            count += weight;
        }
        sum / count
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
        // Around 5: itself counts 1, its neighbour 4 a half, 2 and 9 nothing.
        assert_eq!(children.near(5, 0.2, &[1.0, 0.5]), (0.2 + 1.0) / 2.5);
        assert_eq!(children.near(100, 0.2, &[1.0, 0.5]), 0.2);
        assert_eq!(Children::default().rate(0.3, 2.0), 0.3);
    }

    #[test]
    fn rates_are_kept_by_what_pages_share() {
        let mut rates = Rates::default();
        let (a, b) = (rates.place(77), rates.place(78));
        rates.add(a, 1.0);
        assert_eq!((rates.place(77), rates.get(a).shrunken(0.0, 1.0), rates.get(b).count), (a, 0.5, 0.0));
    }
}
