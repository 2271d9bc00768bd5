//! Copies of pages from several archives, possibly on other machines, to plan what a budget would buy: one sample of
//! all archives.

use archive_ask::query::Plan;
use archive_choose::RefreshRules;
use archive_choose::freshness::{Belief, CopyModel, PageModel, PartModel, copies_of};
use archive_choose::plan::{ForecastSample, SAMPLE_MAX};
use archive_storage::UrlId;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::ask::{AskedFolder, EndOf, LeafAnswer, PageCopies, Take, instant};
use super::root::Root;
use super::{AskError, NodeError};

/// An archive's copies, as they are sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct EncodedCopies {
    rules: RefreshRules,
    count: u64,
    /// The numbers of each copy, as the bits of `f64` except for the page's number.
    copies: Vec<[u64; COLUMNS]>,
    /// The parts of all its copies, if any were wanted.
    #[serde(default)]
    parts: Vec<PartModel>,
}

/// Number of values per copy.
const COLUMNS: usize = 7;

/// Copies of pages: all, or a sample.
#[derive(Debug)]
pub struct CopySample {
    /// Refresh rules of each archive.
    pub rules: Vec<RefreshRules>,
    /// Total number of copies.
    pub count: usize,
    /// The copies that [`ForecastSample::of`] would use.
    pub sampled: Vec<PageModel>,
    /// The parts of the copies.
    pub parts: Vec<PartModel>,
}

impl LeafAnswer for PageCopies {
    fn answer(self, folder: &AskedFolder<'_>, _: Take<'_, Self>) -> EndOf<Self> {
        let state = folder.store.state();
        let pages = self.chosen.map(|chosen| chosen.pages(folder)).transpose()?;
        let all = copies_of(folder.store, pages.as_ref(), instant(self.now)?)?;
        let chosen = self.every.map(|(left_out, step)| all.iter().skip(left_out).step_by(step.max(1)));
        let copies = chosen.into_iter().flatten().take(SAMPLE_MAX).map(encoded).collect();
        let rules = RefreshRules::kept(state)?;
        let parts = match self.every {
            Some(_) => PartModel::of(state, &all, rules.shortest_days())?,
            None => Vec::new(),
        };
        Ok(EncodedCopies { rules, count: all.len() as u64, copies, parts })
    }
}

fn encoded(copy: &PageModel) -> [u64; COLUMNS] {
    let PageModel { id, importance, weight, copy: CopyModel { belief, age, announced } } = *copy;
    let numbers = [importance, weight, belief.per_day, belief.shape, age, announced].map(f64::to_bits);
    let [a, b, c, d, e, f] = numbers;
    [u64::from(id.0), a, b, c, d, e, f]
}

/// Decodes a copy, if its values are valid.
fn checked([id, numbers @ ..]: [u64; COLUMNS]) -> Option<PageModel> {
    let numbers = numbers.map(f64::from_bits);
    let [importance, weight, per_day, shape, age, announced] = numbers;
    let is_sound = numbers.iter().all(|number| number.is_finite() && *number >= 0.0);
    let is_copy = is_sound && per_day > 0.0 && shape > 0.0 && announced < 1.0;
    let id = UrlId(u32::try_from(id).ok()?);
    let copy = CopyModel { belief: Belief { per_day, shape }, age, announced };
    is_copy.then_some(PageModel { id, importance, weight, copy })
}

impl Root<'_> {
    /// The copies of all pages, or of those that a query finds, as if one archive had them all.
    ///
    /// # Errors
    /// As [`Root::choose`], and when the query does not ask for pages.
    pub fn copies(&mut self, query: Option<&str>, now: DateTime<Utc>) -> Result<CopySample, AskError> {
        if let Some(query) = query {
            Plan::of_several(query, now)?.expect_pages()?;
        }
        let chosen = self.choose(query, Utc::now())?;
        let now = now.timestamp_micros();
        self.retry(|root| {
            let of = |every: &(dyn Fn(usize) -> Option<(usize, usize)> + Sync)| {
                root.each(|place, archive| {
                    let kind = PageCopies { chosen: chosen.clone(), now, every: every(place) };
                    let EncodedCopies { rules, count, copies, parts } = archive.end(kind)?;
                    let senseless = || NodeError::senseless("these are no copies");
                    let copies: Option<Vec<PageModel>> = copies.into_iter().map(checked).collect();
                    let count = usize::try_from(count).ok().filter(|count| *count <= u32::MAX as usize);
                    let copies = copies.filter(|_| parts.iter().all(PartModel::is_sound));
                    Ok((rules, count.ok_or_else(senseless)?, copies.ok_or_else(senseless)?, parts))
                })
            };
            let counts: Vec<usize> = of(&|_| None)?.into_iter().map(|(_, count, ..)| count).collect();
            let count = counts.iter().sum();
            let step = ForecastSample::step(count);
            // Every `step`-th copy of the concatenation of all archives.
            let left_out = |place: usize| {
                let before: usize = counts.iter().take(place).sum();
                (step - before % step) % step
            };
            let mut all = CopySample { rules: Vec::new(), count, sampled: Vec::new(), parts: Vec::new() };
            for (rules, _, copies, parts) in of(&|place| Some((left_out(place), step)))? {
                all.rules.push(rules);
                all.sampled.extend(copies);
                all.parts.extend(parts);
            }
            Ok(all)
        })
    }
}
