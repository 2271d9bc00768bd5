//! Uses idle processors during a run: records are compressed better, and closed segments are repacked.

use archive_base::spare::Gauge;
use archive_vault::repack::{Beside, PollResult};
use indicatif::HumanBytes;

use super::{CrawlError, EngineRun};

/// Measures idle processor time and uses it for repacking.
#[derive(Debug)]
pub(super) struct SpareTime {
    gauge: Gauge,
    repacking: Option<Beside>,
}

impl SpareTime {
    pub(super) fn new(known: Option<bool>) -> Self {
        Self { gauge: Gauge::new(known), repacking: None }
    }
}

impl EngineRun<'_> {
    /// Checks the processors and the current repack; `free` bytes are free on the disk.
    pub(super) fn use_spare_time(&mut self, free: u64) -> Result<(), CrawlError> {
        self.spare_time.gauge.look();
        let spare = self.spare_time.gauge.spare();
        let store = self.recorder.store_mut();
        store.encoder()?.take_time(spare.is_there());
        let Some(options) = &self.options.repack else { return Ok(()) };
        let repacking = self.spare_time.repacking.get_or_insert_with(|| Beside::new(options.clone(), spare));
        // The space that a repack takes must not make the crawl pause.
        let turn = repacking.look(store, free.saturating_sub(self.options.disk_min))?;
        self.report_repack(turn);
        Ok(())
    }

    /// Ends the current repack; the next checkpoint installs what is ready.
    pub(super) fn end_spare_time(&mut self) -> Result<(), CrawlError> {
        if let Some(repacking) = &mut self.spare_time.repacking {
            let turn = repacking.end(self.recorder.store_mut())?;
            self.report_repack(turn);
        }
        Ok(())
    }

    fn report_repack(&mut self, turn: Option<PollResult>) {
        match turn {
            None => {}
            Some(PollResult::Repacked(done)) => {
                self.status.repacked.get_or_insert_default().add(&done);
                let ((before, after), (old, new)) = (done.bytes, done.segments);
                let share = after as f64 / before.max(1) as f64;
                let (before, after) = (HumanBytes(before), HumanBytes(after));
                self.notice(format!(
                    "repacked: segments {old} of {before} became {new} of {after} ({share:.2} of it)"
                ));
            }
            Some(PollResult::GaveUp(error)) => self.warn(format!("repacking has stopped: {error}")),
        }
    }
}
