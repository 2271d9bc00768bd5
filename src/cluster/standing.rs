//! Where a crawl stands with the other nodes: what was reported to them, and whether it may end.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::status::{Activity, Progress};
use super::{Commit, Marks};

/// Where a crawl stands with the others.
#[derive(Clone, Debug)]
pub struct ExchangeState {
    activity: Activity,
    /// The last batch for each partition that was handed over to be sent.
    handed: BTreeMap<u16, u64>,
    /// Whether something was received that no checkpoint has made durable.
    has_taken: bool,
    /// What was sent and received when nothing waited anywhere.
    quiet: Option<Marks>,
}

/// What is to be done when nothing waits in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// A checkpoint has to report it to the others.
    Report,
    /// Others have something to do, or something is on its way.
    Wait,
    /// Nothing waits anywhere: the crawl is over.
    Over,
}

impl Default for ExchangeState {
    fn default() -> Self {
        Self { activity: Activity::Running, handed: BTreeMap::new(), has_taken: false, quiet: None }
    }
}

impl ExchangeState {
    /// Something waits or is under way.
    pub fn is_busy(&mut self) {
        self.activity = Activity::Running;
    }

    /// A batch was received; `is_taken` if it was the next one.
    pub fn received(&mut self, is_taken: bool) {
        self.has_taken |= is_taken;
        self.activity = Activity::Running;
        self.quiet = None;
    }

    /// Nothing waits anywhere while these are what was sent and received.
    pub fn is_quiet(&mut self, marks: Marks) {
        self.quiet = Some(marks);
    }

    /// The run is over.
    pub fn ends(&mut self, activity: Activity) {
        self.activity = activity;
    }

    /// What a checkpoint reports to the others: `outbox` has all batches that are not known to have been sent, in order.
    pub fn commit<'a>(
        &mut self,
        outbox: impl Iterator<Item = (u16, u64, &'a [u8])>,
        total: u64,
        marks: Marks,
        progress: Progress,
    ) -> Commit {
        let mut fresh = Vec::new();
        for (to, number, bytes) in outbox {
            let handed = self.handed.entry(to).or_insert(0);
            if number > *handed {
                *handed = number;
                fresh.push((to, number, Bytes::copy_from_slice(bytes)));
            }
        }
        self.has_taken = false;
        Commit { outbox: fresh, activity: self.activity.clone(), total, marks, progress }
    }

    /// What is to be done now that nothing waits here; `has_leaving` if something has yet to be sent to others.
    pub fn rest(&mut self, marks: &Marks, has_leaving: bool) -> Rest {
        if !self.activity.is_quiet() || self.has_taken || has_leaving {
            self.activity = Activity::Idle;
            return Rest::Report;
        }
        if self.quiet.as_ref() == Some(marks) { Rest::Over } else { Rest::Wait }
    }
}
