//! The default policy of the archive on a recorded world.

use super::super::replay::Visit;
use super::super::world::Known;
use super::Policy;
use crate::refresh::outlook::{Outlook, Page, Sighting, relations};

pub(super) struct Default {
    outlook: Outlook,
    /// At most so many pages are fetched at one moment.
    best: usize,
    /// Pages that are still to appear, the first last.
    coming: Vec<(f64, usize)>,
}

impl Default {
    pub(super) fn new(known: &Known) -> Self {
        let page = |page: usize| {
            let path = known.name[page].split_once(':').map_or("", |(_, path)| path);
            Page {
                importance: known.importance[page],
                site: known.site[page],
                directory: known.directory[page],
                relations: relations(known.site[page], path),
            }
        };
        let pages: Vec<Page> = (0..known.importance.len()).map(page).collect();
        let mut coming: Vec<(f64, usize)> =
            known.found.iter().enumerate().map(|(page, &at)| (at, page)).collect();
        coming.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| b.1.cmp(&a.1)));
        let best = (known.budget * known.tick) as usize + 1;
        Self { best, outlook: Outlook::new(&pages, known.sites, known.directories, known.budget), coming }
    }
}

impl Policy for Default {
    fn values(&mut self, now: f64, pages: &[usize], ages: &[f64], values: &mut [f64]) {
        while let Some((at, page)) = self.coming.pop_if(|(at, _)| *at <= now) {
            self.outlook.found(page, at);
        }
        self.outlook.values(now, pages, ages, self.best, values);
    }

    fn seen(&mut self, now: f64, visits: &[Visit]) {
        let sighting = |visit: &Visit| Sighting { page: visit.page, age: visit.age, changed: visit.changed };
        let sightings: Vec<Sighting> = visits.iter().map(sighting).collect();
        self.outlook.seen(now, &sightings);
    }

    fn gone(&mut self, _now: f64, pages: &[usize]) {
        pages.iter().for_each(|&page| self.outlook.gone(page));
    }
}
