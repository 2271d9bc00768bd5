//! Pages of a large archive in folders by the time unit in which they will be worth a fetch, kept beside the state.
//!
//! A pass over all visits writes them; the runs of the days that follow open the folders that have come due and look at these
//! pages alone, and at those that were captured since. The choice is the one that a pass would make, as long as what is
//! found reaches the value down to which folders were filled; if it does not, or when the rules or the assumed rate have
//! changed or the time is over, there is a pass again. The file is derived: losing it costs a pass.

use std::collections::HashSet;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::ops::Range;
use std::path::Path;

use archive_storage::backend::{OpenMode, open_regular};
use archive_storage::{Capture, CaptureId, UrlId};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{Best, Candidate, RefreshRules, SECONDS_PER_DAY, Survey};
use crate::files::WholeFile;
use crate::ledger::CreditError;
use crate::prepared::is_signal;
use crate::refresh::budget::Rule;

/// Days that folders reach ahead.
const DAYS: f64 = 7.0;

/// Folders hold pages down to this part of the lowest value that was fetched, so that a run with a larger budget, or in a
/// quieter time, finds enough in them.
const SLACK: f64 = 0.5;

/// Of all pages that were fetched, captures since the pass may be so many parts; with more of them there is a new pass.
const CAPTURED_DIVISOR: u64 = 8;

/// The mean rate that is assumed of pages may be other than at the pass by this share; it is another one at once where other
/// archives are chosen from as well.
const RATE_SHARE: f64 = 0.1;

/// A head longer than this is none, in bytes.
const HEAD_MAX: u64 = 1 << 20;

/// What the first line of the file says; after it come the pages' ids as 32-bit numbers, folder by folder.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    version: u32,
    rules: RefreshRules,
    /// Decisions of people that pages were weighed by.
    decisions: u64,
    /// By what a column's values were multiplied.
    scale: f64,
    /// The mean rate that was assumed of pages which were not yet fetched twice.
    mean_rate: f64,
    /// Captures that the archive had.
    captures: u64,
    /// When the pass was made, seconds since 1970.
    made: i64,
    /// The lowest value of a page in its folder's time unit.
    lowest: f64,
    /// Pages of each folder, from the time unit of the pass on.
    counts: Vec<u32>,
}

const VERSION: u32 = 3;

impl Survey<'_> {
    /// The best by a rule from the folders in this file; nothing when a pass over all pages is needed.
    pub(super) fn best_of_folders(
        &self,
        path: &Path,
        rule: Rule,
        room: usize,
    ) -> Result<Option<Best>, CreditError> {
        let Some((head, due)) = self.open(path) else { return Ok(None) };
        let mut pages: HashSet<UrlId> = due.into_iter().map(UrlId).collect();
        let captures = self.state.totals().captures;
        let Some(newer) = numbers(head.captures..captures) else { return Ok(None) };
        for Capture { url: page, .. } in self.state.captures_of(&newer)? {
            if pages.insert(page) && self.state.visit(page)?.is_some_and(|visit| is_signal(&visit)) {
                // It may have announced changes.
                pages.extend(self.state.links(page)?.links.iter().map(|link| link.target));
            }
        }
        if pages.iter().any(|page| page.0 >= self.state.url_count()) {
            return Ok(None);
        }
        let mut pages: Vec<UrlId> = pages.into_iter().collect();
        pages.sort_unstable();
        let candidates = self.each_of(&pages, |page, record, visit| {
            if self.is_ripe(visit) { self.candidate(page, record, visit) } else { Ok(None) }
        })?;
        let mut best = Best::new(room);
        candidates.iter().for_each(|candidate| best.offer(candidate.value(rule), candidate.page));
        Ok(best.lowest().is_some_and(|lowest| lowest >= head.lowest).then_some(best))
    }

    /// The head of a file that fits, and the pages that are due.
    fn open(&self, path: &Path) -> Option<(Head, Vec<u32>)> {
        let mut file = BufReader::new(open_regular(path, OpenMode::Read).ok()?);
        let mut line = Vec::new();
        file.by_ref().take(HEAD_MAX).read_until(b'\n', &mut line).ok()?;
        let head: Head = serde_json::from_slice(&line).ok()?;
        let totals = self.state.totals();
        let since = totals.captures.checked_sub(head.captures)?;
        let seconds = self.now.timestamp() - head.made;
        let fits = head.version == VERSION
            && head.rules == self.choice.rules
            && head.decisions == self.choice.weights.decisions()
            && head.scale == self.choice.weights.scale()
            && (head.mean_rate / self.prior.mean() - 1.0).abs() <= RATE_SHARE
            && since <= totals.fetched / CAPTURED_DIVISOR
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

    fn unit(&self) -> i64 {
        (self.choice.rules.unit.as_secs() as i64).max(1)
    }

    /// Puts all pages into folders which will be worth as much as the lowest of `best`, nearly: with a pass, unless they are given.
    pub(super) fn fill_folders(
        &self,
        path: &Path,
        rule: Rule,
        best: &mut Best,
        all: Option<Vec<Candidate>>,
    ) -> Result<(), CreditError> {
        let Some(lowest) = best.lowest().map(|value| value * SLACK).filter(|value| *value > 0.0) else {
            return Ok(());
        };
        let unit_days = self.unit() as f64 / SECONDS_PER_DAY;
        let shortest = self.choice.rules.shortest_days();
        let place = |candidate: &Candidate| {
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
        let head = Head {
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
        // Without the file the next run makes a pass: no reason to fail.
        if let Err(error) = save(path, &head, &folders) {
            tracing::warn!(%error, path = %path.display(), "due folders are not kept");
        }
        Ok(())
    }
}

impl Candidate {
    /// Days until its value by a rule reaches `lowest`, 0 when it already has; none if it has not when folders end.
    fn days_until(&self, rule: Rule, lowest: f64, shortest: f64) -> Option<f64> {
        let value_in = |days: f64| Self { age: self.age + days, ..*self }.value(rule);
        // Values rise with the age, and finding an age takes many of them.
        if value_in(DAYS) < lowest {
            return None;
        }
        let age = match value_in(0.0) >= lowest {
            true => self.age,
            false => self.rule(rule).interval(self.weight, self.rate, lowest) - self.announced / self.rate,
        };
        Some((age.max(shortest) - self.age).max(0.0))
    }
}

/// The ids of captures in a range of numbers, if all of these are ids.
pub(super) fn numbers(range: Range<u64>) -> Option<Vec<CaptureId>> {
    range.map(|number| u32::try_from(number).ok().map(CaptureId)).collect()
}

fn save(path: &Path, head: &Head, folders: &[(u32, u32)]) -> io::Result<()> {
    let mut out = BufWriter::new(WholeFile::begin(path)?);
    serde_json::to_writer(&mut out, head)?;
    out.write_all(b"\n")?;
    for (_, page) in folders {
        out.write_all(&page.to_le_bytes())?;
    }
    out.into_inner().map_err(io::IntoInnerError::into_error)?.commit()
}
