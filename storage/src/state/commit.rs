//! Checkpoints; [`crate::checkpoint`] explains the steps and why they are safe.

use super::open::{LOGS, TABLES, blocks_of, count_of, sum_of};
use super::{State, small};
use crate::catalogue::{CatalogueContents, FORMAT, FORMAT_VERSION, NUMBER};
use crate::checkpoint::{Result, StateError, lock};
use crate::ids::Watermarks;

/// The outcome of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checkpointed {
    /// The checkpoint is durable.
    Done,
    /// Readers held the lock too long: nothing happened, try again later.
    Deferred,
}

impl State {
    /// Makes all changes durable atomically, together with the watermarks of the segments that they reflect.
    ///
    /// The segments must already be durable up to the watermarks.
    ///
    /// # Errors
    /// If the disk is full ([`StateError::is_disk_full`]), everything in memory stays unchanged and the checkpoint may
    /// be retried. After any other error the state is unusable: open it again.
    pub fn checkpoint(&mut self, watermarks: impl Into<Watermarks>) -> Result<Checkpointed> {
        self.checkpoint_then(watermarks, &mut || ())
    }

    /// As [`State::checkpoint`], and calls `then` right after the commit, before any reader sees it.
    pub(crate) fn checkpoint_then(
        &mut self,
        watermarks: impl Into<Watermarks>,
        then: &mut dyn FnMut(),
    ) -> Result<Checkpointed> {
        self.writable()?;
        let outcome = self.try_checkpoint(&watermarks.into(), then);
        match outcome {
            Err(error) if !error.is_disk_full() => self.finish(Err(error)),
            outcome => outcome,
        }
    }

    fn try_checkpoint(&mut self, watermarks: &Watermarks, then: &mut dyn FnMut()) -> Result<Checkpointed> {
        let number = self.checkpoint_number() + 1;
        self.write_appended()?;
        self.write_journal(number)?;
        self.sync_files()?;
        let path = self.lock_path();
        let lock = self.checkpoint_lock.clone();
        if !lock::exclude_readers(lock.as_ref(), &path, self.options.reader_wait)? {
            return Ok(Checkpointed::Deferred);
        }
        let outcome = self.commit_and_apply(number, watermarks);
        if self.committed.number(NUMBER) == number {
            then();
        }
        let unlocked = lock.unlock().map_err(|error| StateError::io(&path, error));
        outcome?;
        unlocked?;
        Ok(Checkpointed::Done)
    }

    fn commit_and_apply(&mut self, number: u64, watermarks: &Watermarks) -> Result<()> {
        let after = self.contents_to_commit(number, watermarks);
        if let Err(error) = self.catalogue.commit(&self.committed, &after) {
            // A transaction that failed late may nevertheless be in the file.
            if !error.is_disk_full() || self.catalogue.load()?.number(NUMBER) != number {
                return Err(error);
            }
            self.catalogue.settle()?;
        }
        self.contents.clone_from(&after);
        self.committed = after;
        let outcome = self.apply();
        self.finish(outcome)
    }

    fn write_appended(&mut self) -> Result<()> {
        for names in [&mut self.urls, &mut self.host_names, &mut self.site_names] {
            names.log_mut().write()?;
        }
        for records in [&mut self.titles, &mut self.validators] {
            records.log_mut().write()?;
        }
        self.links.log_mut().write()?;
        self.pages.write_new()?;
        self.visits.write_new()?;
        self.captures.write_new()?;
        self.hosts.write_new()?;
        self.sites.write_new()
    }

    fn write_journal(&mut self, number: u64) -> Result<()> {
        let mut journal = self.journal.begin();
        self.pages.journal(&mut journal)?;
        self.visits.journal(&mut journal)?;
        self.captures.journal(&mut journal)?;
        self.hosts.journal(&mut journal)?;
        self.sites.journal(&mut journal)?;
        journal.finish(number)
    }

    fn sync_files(&mut self) -> Result<()> {
        for names in [&mut self.urls, &mut self.host_names, &mut self.site_names] {
            names.log_mut().sync()?;
        }
        for records in [&mut self.titles, &mut self.validators] {
            records.log_mut().sync()?;
        }
        self.links.log_mut().sync()?;
        self.pages.sync()?;
        self.visits.sync()?;
        self.captures.sync()?;
        self.hosts.sync()?;
        self.sites.sync()
    }

    fn apply(&mut self) -> Result<()> {
        self.fit_cache();
        self.pages.apply()?;
        self.visits.apply()?;
        self.captures.apply()?;
        self.hosts.apply()?;
        self.sites.apply()?;
        self.journal.clear()
    }

    fn contents_to_commit(&self, number: u64, watermarks: &Watermarks) -> CatalogueContents {
        let mut contents = self.contents.clone();
        let numbers = &mut contents.numbers;
        numbers.insert(FORMAT.to_owned(), FORMAT_VERSION);
        numbers.insert(NUMBER.to_owned(), number);
        small::set_watermarks(numbers, watermarks);
        let counts =
            [self.pages.len(), self.visits.len(), self.captures.len(), self.hosts.len(), self.sites.len()];
        for (table, count) in TABLES.iter().zip(counts) {
            numbers.insert(count_of(table), u64::from(count));
        }
        let [titles, validators] =
            [&self.titles, &self.validators].map(|records| (records.log(), records.open_block().to_vec()));
        let links = (self.links.log(), self.links.open_block().to_vec());
        let names =
            [&self.urls, &self.host_names, &self.site_names].map(|names| (names.log(), names.open_block()));
        for (log, (frames, open)) in LOGS.iter().zip(names.into_iter().chain([titles, validators, links])) {
            numbers.insert(blocks_of(log), frames.len());
            numbers.insert(sum_of(log), frames.sum());
            contents.blocks.insert((*log).to_owned(), open);
        }
        contents
    }
}
