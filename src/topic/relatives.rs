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
pub(super) struct Rates(HashMap<u64, Rate>);

impl Rates {
    pub(super) fn add(&mut self, key: u64, outcome: f64) {
        self.0.entry(key).or_default().add(outcome);
    }

    pub(super) fn get(&self, key: u64) -> Rate {
        self.0.get(&key).copied().unwrap_or_default()
    }
}

/// The outcomes of a page's children, by their places among its links.
#[derive(Clone, Debug, Default)]
pub(super) struct Children {
    all: Rate,
    places: Vec<(u32, f32)>,
}

/// Places further apart than this have nothing to do with each other.
const REACH: f64 = 6.0;

impl Children {
    pub(super) fn add(&mut self, place: u32, outcome: f64) {
        self.all.add(outcome);
        let at = self.places.partition_point(|entry| entry.0 < place);
        self.places.insert(at, (place, outcome as f32));
    }

    pub(super) fn rate(&self, prior: f64, weight: f64) -> f64 {
        self.all.shrunken(prior, weight)
    }

    /// The rate around a place, where a child counts e^(-distance / `near`), drawn to `prior` as by one outcome more.
    pub(super) fn near(&self, place: u32, prior: f64, near: f64) -> f64 {
        let distance = |at: u32| f64::from(at.abs_diff(place)) / near;
        let from = self.places.partition_point(|entry| entry.0 < place && distance(entry.0) > REACH);
        let (mut sum, mut count) = (prior, 1.0);
        for &(at, outcome) in
            self.places[from..].iter().take_while(|e| e.0 <= place || distance(e.0) <= REACH)
        {
            let weight = (-distance(at)).exp();
            sum += weight * f64::from(outcome);
            count += weight;
        }
        sum / count
    }
}
