//! Copies of the archive during its crawl, one after each checkpoint; reports to other nodes wait for a copy.
//!
//! A lost disk then costs only what was captured since the last copy, and nothing that others rely on. What a
//! checkpoint reports to them (its batches, and which received batches may be removed) waits until this copy or a later
//! one is made. So no other node ever sees a state that only the lost disk had: a node that continues from the copy
//! sends the same bytes under the same numbers, and what it has not received is still in the object store.

use std::path::Path;
use std::sync::Arc;
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use archive_base::control::Control;
use archive_books::cluster::NodeCommit;
use archive_vault::copy::{self, CopyError, Remote};
use crossbeam::channel::{Receiver, Sender, bounded};

use super::super::options::CopyTo;
use super::{CrawlError, EngineRun};

/// Delay before retrying a failed copy.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(10);

/// Outcome of a copy: why it failed, or, on success, why older ones could not be removed.
type CopyOutcome = Result<Option<CopyError>, CopyError>;

/// Copies during a crawl.
pub(super) struct CrawlCopies {
    asked: Sender<()>,
    made: Receiver<CopyOutcome>,
    control: Arc<Control>,
    /// Reports to send once the copy in progress is made; `None` if no copy is in progress.
    covered: Option<Vec<NodeCommit>>,
    /// Reports that wait for the next copy.
    held: Vec<NodeCommit>,
    /// Whether there was a checkpoint since the last copy began.
    is_due: bool,
    try_again: Option<Instant>,
    trouble: Option<String>,
}

impl CrawlCopies {
    fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        archive: &Path,
        to: &CopyTo,
        may_copy: impl Fn() -> Result<(), CopyError> + Send + 'scope,
    ) -> Result<Self, CrawlError> {
        let remote = Remote::open(&to.url).map_err(CrawlError::Copy)?;
        let (archive, keep) = (archive.to_owned(), to.keep);
        let ((asked, orders), (results, made)) = (bounded::<()>(1), bounded(1));
        let control = Arc::new(Control::default());
        let stop = Arc::clone(&control);
        let work = move || {
            for () in orders {
                let prune = |newest| {
                    // Captures are erased only between runs.
                    let keep = copy::keep_after_erase(&remote, &archive, keep)?;
                    copy::prune(&remote, newest, keep)
                };
                let copied = copy::send(&archive, &remote, false, &stop, &|_, _| {}, &may_copy);
                let made = copied.map(|copied| prune(copied.number).err());
                if results.send(made).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new()
            .name("copies".to_owned())
            .spawn_scoped(scope, work)
            .map_err(CrawlError::Start)?;
        let (covered, held) = (None, Vec::new());
        Ok(Self { asked, made, control, covered, held, is_due: false, try_again: None, trouble: None })
    }

    /// Holds a report until a copy covers its checkpoint.
    pub(super) fn hold(&mut self, commit: NodeCommit) {
        self.held.push(commit);
    }

    /// Bytes for others that wait for copies, and why copies fail, if so.
    pub(super) fn waiting(&self) -> (usize, Option<&str>) {
        let commits = self.covered.iter().flatten().chain(&self.held);
        let bytes = commits.flat_map(|commit| &commit.outbox).map(|(_, _, bytes)| bytes.len()).sum();
        (bytes, self.trouble.as_deref())
    }

    /// Starts a copy of what is durable now, unless one is in progress.
    fn begin(&mut self) -> Result<(), CrawlError> {
        if self.covered.is_none() {
            (self.is_due, self.try_again) = (false, None);
            self.covered = Some(std::mem::take(&mut self.held));
            self.asked.send(()).map_err(|_| CrawlError::ThreadEnded)?;
        }
        Ok(())
    }

    /// Handles the outcome of a copy: returns the reports to send, and a notice for the user.
    fn ended(&mut self, made: CopyOutcome) -> Result<(Vec<NodeCommit>, Option<String>), CopyError> {
        let mut covered = self.covered.take().unwrap_or_default();
        match made {
            Ok(left) => {
                let had_trouble = self.trouble.take().is_some();
                let left = left.map(|error| format!("older copies could not be removed: {error}"));
                Ok((covered, left.or(had_trouble.then(|| "copies succeed again".to_owned()))))
            }
            Err(error) if error.is_passing() => {
                covered.append(&mut self.held);
                self.held = covered;
                self.try_again = Some(Instant::now() + TRY_AGAIN_AFTER);
                let text = format!("the archive could not be copied: {error}; the copy is tried again");
                let is_news = self.trouble.as_ref() != Some(&text);
                self.trouble = Some(text.clone());
                Ok((Vec::new(), is_news.then_some(text)))
            }
            Err(error) => Err(error),
        }
    }
}

impl Drop for CrawlCopies {
    fn drop(&mut self) {
        // A failed run does not wait for a copy.
        self.control.stop();
    }
}

impl EngineRun<'_> {
    /// Starts the thread that copies the archive, if copies are wanted.
    pub(super) fn start_copies<'scope>(
        &mut self,
        scope: &'scope Scope<'scope, '_>,
    ) -> Result<(), CrawlError> {
        let Some(to) = &self.options.copies else { return Ok(()) };
        let own = self.options.cluster.clone().zip(self.peers.as_ref().map(super::peers::Peers::epoch));
        let may_copy = move || match &own {
            Some((member, epoch)) => Ok(member.check_epoch(*epoch)?),
            None => Ok(()),
        };
        self.copies = Some(CrawlCopies::start(scope, self.recorder.store().path(), to, may_copy)?);
        Ok(())
    }

    /// Requests a copy of the checkpoint that was just made.
    pub(super) fn checkpoint_is_made(&mut self) -> Result<(), CrawlError> {
        let Some(copies) = &mut self.copies else { return Ok(()) };
        copies.is_due = true;
        copies.begin()
    }

    /// Handles a copy that has ended, and starts the next one if it is due.
    pub(super) fn look_at_copies(&mut self, now: Instant) -> Result<(), CrawlError> {
        let Some(copies) = &mut self.copies else { return Ok(()) };
        match copies.made.try_recv() {
            Ok(made) => self.take_copy(made),
            Err(_) if copies.covered.is_some() => Ok(()),
            Err(_) => {
                let is_time = copies.try_again.map_or(copies.is_due, |at| now >= at);
                if is_time { copies.begin() } else { Ok(()) }
            }
        }
    }

    fn take_copy(&mut self, made: CopyOutcome) -> Result<(), CrawlError> {
        let Some(copies) = &mut self.copies else { return Ok(()) };
        let (released, news) = copies.ended(made).map_err(CrawlError::Copy)?;
        if let Some(news) = news {
            self.warn(news);
        }
        released.into_iter().try_for_each(|commit| self.pass_on(commit))
    }

    /// Copies the archive in its final state, and sends all reports before it returns.
    pub(super) fn end_copies(&mut self) -> Result<(), CrawlError> {
        loop {
            let Some(copies) = &mut self.copies else { return Ok(()) };
            let is_last = copies.covered.is_none();
            copies.begin()?;
            let made = copies.made.recv().map_err(|_| CrawlError::ThreadEnded)?;
            match made {
                Err(error) if is_last => return Err(CrawlError::Copy(error)),
                made => self.take_copy(made)?,
            }
            if is_last {
                self.copies = None;
            }
        }
    }
}
