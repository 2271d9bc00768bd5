//! The state of a crawl's exchange with other nodes: what it has reported, and whether it may end.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::status::{NodeActivity, NodeProgress};
use super::{Marks, NodeCommit};

/// The state of a crawl's exchange with other nodes.
#[derive(Clone, Debug, Default)]
pub struct ExchangeState {
    activity: NodeActivity,
    /// The last batch for each partition that was passed on to be sent.
    handed: BTreeMap<u16, u64>,
    /// Whether something was received that no checkpoint has made durable.
    has_taken: bool,
    /// The marks with which nothing was waiting anywhere.
    quiet: Option<Marks>,
}

/// What to do when nothing is waiting in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// A checkpoint must report this to the others.
    Report,
    /// Others have work, or something is in flight.
    Wait,
    /// Nothing is waiting anywhere: the crawl is over.
    Over,
}

impl ExchangeState {
    /// Records that pages are waiting or being fetched.
    pub fn set_busy(&mut self) {
        self.activity = NodeActivity::Running;
    }

    /// Records that a batch was received; `is_taken` if it was the expected one.
    pub fn add_received(&mut self, is_taken: bool) {
        self.has_taken |= is_taken;
        self.activity = NodeActivity::Running;
        self.quiet = None;
    }

    /// Records that nothing is waiting anywhere while these are the marks.
    pub fn set_quiet(&mut self, marks: Marks) {
        self.quiet = Some(marks);
    }

    /// Records that the run is over.
    pub fn set_end(&mut self, activity: NodeActivity) {
        self.activity = activity;
    }

    /// Returns what a checkpoint reports to the others; `outbox` has all batches that are not known to have been sent,
    /// in order.
    pub fn commit<'a>(
        &mut self,
        outbox: impl Iterator<Item = (u16, u64, &'a [u8])>,
        total: u64,
        marks: Marks,
        progress: NodeProgress,
    ) -> NodeCommit {
        let mut fresh = Vec::new();
        for (to, number, bytes) in outbox {
            let handed = self.handed.entry(to).or_insert(0);
            if number > *handed {
                *handed = number;
                fresh.push((to, number, Bytes::copy_from_slice(bytes)));
            }
        }
        self.has_taken = false;
        NodeCommit { outbox: fresh, activity: self.activity.clone(), total, marks, progress }
    }

    /// Returns what to do when nothing is waiting here; `has_leaving` if something has yet to be sent to others.
    pub fn rest(&mut self, marks: &Marks, has_leaving: bool) -> NextStep {
        if !self.activity.is_quiet() || self.has_taken || has_leaving {
            self.activity = NodeActivity::Idle;
            return NextStep::Report;
        }
        if self.quiet.as_ref() == Some(marks) { NextStep::Over } else { NextStep::Wait }
    }
}
