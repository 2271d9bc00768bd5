//! Asks hubs of subscriptions. At addresses that other nodes of the cluster ask, too, this node waits for its turns.

use std::thread;
use std::time::{Duration, Instant};

use super::super::options::EndReason;
use super::{CrawlError, EngineRun};
use crate::publish::hubs::Asking;

/// Interval between checks whose turn it is.
const LOOK_EVERY: Duration = Duration::from_millis(50);

impl EngineRun<'_> {
    /// Asks the hubs that are due, until none is left or the run has to end.
    pub(super) fn ask_hubs(&mut self, callback: &str) -> Result<EndReason, CrawlError> {
        let archive = self.recorder.store().path().to_owned();
        let (options, mut end) = (self.options, EndReason::Complete);
        let mut asking = Asking::begin(&archive, callback, &options.fetch)?;
        while !asking.is_over() {
            self.hear_peers(Instant::now())?;
            if let Some(why) = self.should_end() {
                end = why;
                break;
            }
            let (delay, waits) = (options.politeness.address_delay, self.peers_pause().is_some());
            let turns = &mut self.frontier.turns;
            let is_asked = asking.next(|address| {
                let wait = turns.as_mut().filter(|_| !delay.is_zero());
                !waits && wait.is_none_or(|turns| turns.wait(address, delay, Instant::now()).is_none())
            })?;
            thread::sleep(if is_asked { options.politeness.host_delay } else { LOOK_EVERY });
        }
        self.status.hubs = asking.end();
        Ok(end)
    }
}
