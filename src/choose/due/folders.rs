//! Due folders: the pages of a large archive, grouped by the time unit in which they become worth a fetch.
//!
//! A pass over all visits writes them next to the state. Runs of the following days open only the folders that have
//! come due, and read those pages and the ones captured since. The choice equals that of a full pass as long as the
//! values found reach the value down to which the folders were filled. There is a new pass if they do not, if the rules
//! or the assumed rate have changed, or after [`DAYS`]. The file is derived; losing it costs one pass.

use std::collections::HashSet;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::ops::Range;
use std::path::Path;

use archive_base::files::WholeFile;
use archive_books::ledger::CreditError;
use archive_books::prepared::is_signal;
use archive_math::refresh::budget::BudgetRule;
use archive_storage::backend::{OpenMode, open_regular};
use archive_storage::{Capture, CaptureId, UrlId};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{DueCandidate, DueSurvey, Picks, RefreshRules, SECONDS_PER_DAY, TopScores};

/// Number of days that folders cover.
const DAYS: f64 = 7.0;

/// Folders hold pages down to this share of the lowest value in the chosen set, so that they suffice for a run with a
/// larger budget or in a quieter time.
const SLACK: f64 = 0.5;

/// Divisor of the number of fetched pages that gives the maximum number of captures since the pass; beyond it there is
/// a new pass.
const CAPTURED_DIVISOR: u64 = 8;

/// Maximum relative difference of the assumed mean rate from that of the pass. The rate changes at once when further
/// archives are included.
const RATE_SHARE: f64 = 0.1;

/// Maximum length of the header in bytes; a longer one is invalid.
const HEAD_MAX: u64 = 1 << 20;

/// The first line of the file. The page ids follow as 32-bit numbers, folder by folder.
#[derive(Debug, Serialize, Deserialize)]
struct FoldersHead {
    version: u32,
    rules: RefreshRules,
    /// Number of decisions that were in force.
    decisions: u64,
    /// Factor for the values of the weight column.
    scale: f64,
    /// Mean rate assumed for pages fetched only once.
    mean_rate: f64,
    /// Number of captures of the archive.
    captures: u64,
    /// Time of the pass, in seconds since 1970.
    made: i64,
    /// Value that a page reaches in the time unit of its folder.
    lowest: f64,
    /// Number of pages in each folder, starting with the time unit of the pass.
    counts: Vec<u32>,
}

const VERSION: u32 = 4;

impl DueSurvey<'_> {
    /// Returns the best pages by a rule from the folders in this file; `None` if a pass over all pages is needed.
    pub(super) fn best_of_folders(
        &self,
        path: &Path,
        rule: BudgetRule,
        room: usize,
    ) -> Result<Option<Picks>, CreditError> {
        let Some((head, due)) = self.open(path) else { return Ok(None) };
        let mut pages: HashSet<UrlId> = due.into_iter().map(UrlId).collect();
        let captures = self.state.totals().captures;
        let Some(newer) = numbers(head.captures..captures) else { return Ok(None) };
        for Capture { url: page, .. } in self.state.captures_of(&newer)? {
            if pages.insert(page) && self.state.visit(page)?.is_some_and(|visit| is_signal(&visit)) {
                // A sitemap or feed may have announced changes of these pages.
                pages.extend(self.state.links(page)?.links.iter().map(|link| link.target));
            }
        }
        if pages.iter().any(|page| page.0 >= self.state.url_count()) {
            return Ok(None);
        }
        let mut pages: Vec<UrlId> = pages.into_iter().collect();
        pages.sort_unstable();
        let candidates = self.each_of(&pages, |page, record, visit| {
            let candidate =
                if self.is_ripe(page, visit) { self.candidate(page, record, visit)? } else { None };
            Ok(candidate.filter(|candidate| self.may_be_fetched(candidate, visit)))
        })?;
        let mut best = Picks::new(room);
        candidates.iter().for_each(|candidate| best.offer(candidate.value(rule), candidate));
        Ok(best.there.lowest().is_some_and(|lowest| lowest >= head.lowest).then_some(best))
    }

    /// Reads the header, if it fits the current rules and state, and the ids of the due pages.
    fn open(&self, path: &Path) -> Option<(FoldersHead, Vec<u32>)> {
        let mut file = BufReader::new(open_regular(path, OpenMode::Read).ok()?);
        let mut line = Vec::new();
        file.by_ref().take(HEAD_MAX).read_until(b'\n', &mut line).ok()?;
        let head: FoldersHead = serde_json::from_slice(&line).ok()?;
        let totals = self.state.totals();
        let since = totals.captures.checked_sub(head.captures)?;
        let seconds = self.now.timestamp() - head.made;
        let fits = head.version == VERSION
            && head.rules == self.choice.rules
            && head.decisions == self.choice.weights.decisions()
            && head.scale == self.choice.weights.scale()
            && (head.mean_rate / self.prior.mean() - 1.0).abs() <= RATE_SHARE
            && self.of_pages(since, totals.fetched / CAPTURED_DIVISOR)
            && (0..(DAYS * SECONDS_PER_DAY) as i64).contains(&seconds);
        if !fits {
            return None;
        }
        let folders = (seconds / self.unit()) as usize + 1;
        let due: u64 = head.counts.iter().take(folders).map(|count| u64::from(*count)).sum();
        let mut bytes = Vec::new();
        file.take(4 * due).read_to_end(&mut bytes).ok()?;
        let (ids, rest) = bytes.as_chunks::<4>();
        let pages: Vec<u32> = ids.iter().map(|&id| u32::from_le_bytes(id)).collect();
        (pages.len() as u64 == due && rest.is_empty()).then_some((head, pages))
    }

    /// Whether at most this many of the last captures were of pages.
    fn of_pages(&self, captures: u64, most: u64) -> bool {
        captures <= most || self.share_of_pages().is_ok_and(|share| captures as f64 * share <= most as f64)
    }

    fn unit(&self) -> i64 {
        (self.choice.rules.unit.as_secs() as i64).max(1)
    }

    /// Puts every page that will reach a value close to the lowest of `best` into a folder. Makes a pass unless `all`
    /// has the candidates.
    pub(super) fn fill_folders(
        &self,
        path: &Path,
        rule: BudgetRule,
        best: &mut TopScores,
        all: Option<Vec<DueCandidate>>,
    ) -> Result<(), CreditError> {
        let Some(lowest) = best.lowest().map(|value| value * SLACK).filter(|value| *value > 0.0) else {
            return Ok(());
        };
        let unit_days = self.unit() as f64 / SECONDS_PER_DAY;
        let shortest = self.choice.rules.shortest_days();
        let place = |candidate: &DueCandidate| {
            let days = candidate.days_until(rule, lowest, shortest).filter(|days| *days < DAYS)?;
            Some(((days / unit_days) as u32, candidate.page.0))
        };
        let mut folders: Vec<(u32, u32)> = Vec::new();
        match all {
            Some(all) => folders.par_extend(all.par_iter().filter_map(place)),
            None => self.all(|candidate, _| place(&candidate), |place| folders.push(place))?,
        }
        folders.par_sort_unstable();
        let mut counts = vec![0; (DAYS / unit_days) as usize + 1];
        folders.iter().for_each(|(folder, _)| counts[*folder as usize] += 1);
        let head = FoldersHead {
            version: VERSION,
            rules: self.choice.rules.clone(),
            decisions: self.choice.weights.decisions(),
            scale: self.choice.weights.scale(),
            mean_rate: self.prior.mean(),
            captures: self.state.totals().captures,
            made: self.now.timestamp(),
            lowest,
            counts,
        };
        // Without the file the next run makes a pass, so this is no reason to fail.
        if let Err(error) = save(path, &head, &folders) {
            tracing::warn!(%error, path = %path.display(), "due folders are not kept");
        }
        Ok(())
    }
}

impl DueCandidate {
    /// Returns the days until the value by a rule reaches `lowest`, 0 if it already has; `None` if it does not within
    /// [`DAYS`].
    fn days_until(&self, rule: BudgetRule, lowest: f64, shortest: f64) -> Option<f64> {
        if self.retry > 0.0 {
            return Some((self.retry.max(shortest) - self.age).max(0.0)).filter(|days| *days < DAYS);
        }
        let value_in = |days: f64| Self { age: self.age + days, ..*self }.value(rule);
        // Values rise with age. Check the last day first: inverting the value takes many evaluations.
        if value_in(DAYS) < lowest {
            return None;
        }
        let age = match value_in(0.0) >= lowest {
            true => self.age,
            false => self.interval(rule, lowest) - self.announced / self.rate,
        };
        Some((age.max(shortest) - self.age).max(0.0))
    }
}

/// Returns the capture ids of a range of numbers; `None` if any number is too large for an id.
pub(super) fn numbers(range: Range<u64>) -> Option<Vec<CaptureId>> {
    range.map(|number| u32::try_from(number).ok().map(CaptureId)).collect()
}

fn save(path: &Path, head: &FoldersHead, folders: &[(u32, u32)]) -> io::Result<()> {
    let mut out = BufWriter::new(WholeFile::begin(path)?);
    serde_json::to_writer(&mut out, head)?;
    out.write_all(b"\n")?;
    for (_, page) in folders {
        out.write_all(&page.to_le_bytes())?;
    }
    out.into_inner().map_err(io::IntoInnerError::into_error)?.commit()
}

#[cfg(test)]
mod tests {
    use archive_storage::UrlId;

    use super::DueCandidate;
    use archive_math::refresh::budget::BudgetRule;

    #[test]
    fn nothing_is_due_before_the_shortest_interval() {
        for rule in BudgetRule::ALL {
            for (age, expected) in [(0.0, 0.5), (0.125, 0.375), (0.5, 0.0), (2.0, 0.0)] {
                let page = DueCandidate {
                    page: UrlId(0),
                    weight: 1.0,
                    rate: 1.0,
                    age,
                    announced: 0.0,
                    signals: false,
                    retry: 0.0,
                };
                assert_eq!(page.days_until(rule, 1e-6, 0.5), Some(expected), "{rule:?} at age {age}");
            }
        }
    }
}
