//! Asks again for the parts of pages that were captured before (see `choose/requisites`).
//!
//! New parts come as candidates of the capture that names them. The others are looked up in the stored links of each
//! capture, each at most once in a run, however many pages share it.

use std::collections::HashSet;
use std::time::Instant;

use archive_books::ledger::{Candidate, LEVEL_REQUISITE};
use archive_choose::{PartTurn, RefreshRules, Requisite, parts_of};
use archive_storage::{CaptureId, UrlId};

use super::super::options::Purpose;
use super::{CrawlError, EngineRun};

/// Maximum number of parts remembered as judged; beyond it they are judged again, to the same end.
const JUDGED_MAX: usize = 1 << 20;

/// What a run has asked of the parts of its pages.
#[derive(Default)]
pub(super) struct PageParts {
    rules: RefreshRules,
    /// Number of pages that are planned.
    pages: u64,
    judged: HashSet<UrlId>,
}

impl PageParts {
    pub(super) fn new(rules: RefreshRules, plan: &Purpose) -> Self {
        let pages = if let Purpose::Refresh { pages } = plan { pages.len() as u64 } else { 0 };
        Self { rules, pages, judged: HashSet::new() }
    }
}

impl EngineRun<'_> {
    /// Queues those parts of a page captured just now, and of its parts, whose turn has come.
    pub(super) fn ask_parts(&mut self, page: UrlId, now: Instant) -> Result<(), CrawlError> {
        // In a new archive all parts are as new as their pages.
        if self.first_capture == CaptureId(0) || self.parts.rules.parts == 0 {
            return Ok(());
        }
        let time = self.options.fetch.clock.now().timestamp();
        if self.parts.judged.len() > JUDGED_MAX {
            self.parts.judged.clear();
        }
        let most = self.parts.rules.parts_max(self.parts.pages.max(self.status.pages));
        for Requisite { id, page, visit } in parts_of(self.recorder.state(), page, &mut self.parts.judged)? {
            let is_new = visit.last_capture.is_some_and(|newest| newest >= self.first_capture);
            let turn = PartTurn::of(&visit);
            if is_new || !turn.has_come(&self.parts.rules, time - i64::from(visit.last_attempt)) {
                continue;
            }
            if self.status.parts >= most {
                self.status.parts_left += 1;
                continue;
            }
            self.status.parts += 1;
            self.enqueue(Candidate { url: id, host: page.host, level: LEVEL_REQUISITE }, now)?;
        }
        Ok(())
    }
}
