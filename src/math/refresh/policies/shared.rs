//! The default policy of an archive: the model of all pages together.

use super::{RefreshPolicy, RefreshProblem, Sighting};
use crate::refresh::change_model::{ChangeModel, ModelledPage};

/// A [`ChangeModel`] that learns from visits.
pub(super) struct SharedModel {
    model: ChangeModel,
    /// Maximum number of pages fetched in a run.
    best: usize,
    /// Pages that have not appeared yet, in reverse order of time.
    coming: Vec<(f64, usize)>,
    found_at_birth: bool,
}

impl SharedModel {
    /// Creates a model that has seen no visits.
    pub(super) fn new(known: &RefreshProblem) -> Self {
        let page = |page: usize| ModelledPage {
            importance: known.importance[page],
            site: known.site[page],
            directory: known.directory[page],
            relations: known.relations[page],
            promised: known.promised.get(page).copied(),
        };
        let pages = (0..known.importance.len()).map(page);
        let mut coming: Vec<(f64, usize)> =
            known.found.iter().enumerate().map(|(page, &at)| (at, page)).collect();
        coming.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| b.1.cmp(&a.1)));
        let best = (known.budget * known.tick) as usize + 1;
        let model = ChangeModel::new(pages, known.sites, known.directories, known.budget, known.mean_rate);
        Self { best, model, coming, found_at_birth: known.found_at_birth }
    }

    fn meet(&mut self, now: f64) {
        while let Some((at, page)) = self.coming.pop_if(|(at, _)| *at <= now) {
            self.model.found(page, at, self.found_at_birth && at > 0.0);
        }
    }
}

impl RefreshPolicy for SharedModel {
    fn values(&mut self, now: f64, pages: &[usize], ages: &[f64], values: &mut [f64]) {
        self.meet(now);
        self.model.values(now, pages, ages, self.best, values);
    }

    fn seen(&mut self, now: f64, sightings: &[Sighting]) {
        self.meet(now);
        self.model.seen(now, sightings);
    }

    fn gone(&mut self, _now: f64, pages: &[usize]) {
        pages.iter().for_each(|&page| self.model.gone(page));
    }

    fn announced(&mut self, page: usize, changes: f64) {
        self.model.announced(page, changes);
    }
}
