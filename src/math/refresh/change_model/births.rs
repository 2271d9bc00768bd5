//! When pages appeared, by site and by directory: where new pages appear, old ones are often edited.

use std::collections::HashMap;

use super::relatives::Relations;

/// Bytes of state per page.
#[cfg(test)]
pub(super) const PAGE_BYTES: usize = size_of::<[u32; 2]>();

/// Births by two groups of each page.
#[derive(Clone, Debug)]
pub(super) struct Births {
    of_page: Vec<[u32; 2]>,
    /// Sorted by time.
    times: Vec<Vec<f64>>,
}

impl Births {
    /// Starts without births, to be counted by two relations.
    pub(super) fn new(pages: &[Relations], counted: [usize; 2]) -> Self {
        let mut numbers: HashMap<u64, u32> = HashMap::new();
        let mut number = |name: u64| {
            let next = numbers.len() as u32;
            *numbers.entry(name).or_insert(next)
        };
        let of_page = pages.iter().map(|names| counted.map(|relation| number(names[relation]))).collect();
        Self { of_page, times: vec![Vec::new(); numbers.len()] }
    }

    /// Records a new page; births must come in order of time.
    pub(super) fn add(&mut self, page: usize, at: f64) {
        self.of_page[page].iter().for_each(|&group| self.times[group as usize].push(at));
    }

    /// Returns, for each group of a page, the number of births after `since` and the total number.
    pub(super) fn since(&self, page: usize, since: f64) -> [(f64, f64); 2] {
        self.of_page[page].map(|group| {
            let times = &self.times[group as usize];
            ((times.len() - times.partition_point(|at| *at <= since)) as f64, times.len() as f64)
        })
    }
}
