//! Log-ins by forms that do not work: what is behind them is left to the next run.

use std::collections::HashSet;
use std::sync::Arc;

use archive_books::ledger::Refusal;
use archive_storage::UrlId;
use archive_web::fetch::FetchError;

use super::super::process::FetchTag;
use super::{CrawlError, EngineRun};

/// What a run leaves behind closed doors.
#[derive(Debug, Default)]
pub(super) struct ClosedDoors {
    /// Why, as far as it was said.
    said: HashSet<Arc<str>>,
    /// Number of pages that never were captured.
    new: u64,
    is_any_left: bool,
}

impl ClosedDoors {
    /// Number of pages left that never were captured.
    pub(super) fn new_pages(&self) -> u64 {
        self.new
    }

    /// Whether anything is left.
    pub(super) fn is_any_left(&self) -> bool {
        self.is_any_left
    }
}

impl EngineRun<'_> {
    /// Leaves a page to the next run that no session opened, or all pages of its host if no session is to be had. Returns
    /// whether it is such a page.
    pub(super) fn is_behind_door(&mut self, tag: &FetchTag, error: &FetchError) -> Result<bool, CrawlError> {
        let mut left = match error {
            FetchError::LogIn(why) => {
                if self.doors.said.insert(Arc::clone(why)) {
                    self.warn(format!(
                        "{why}; its pages wait for the next run, and `archive login test` tries it"
                    ));
                }
                self.frontier.give_up(tag.host, Refusal::LoggedOut)
            }
            FetchError::LoggedOut(_) => Vec::new(),
            _ => return Ok(false),
        };
        left.push(tag.id);
        self.later.forget(tag.id);
        self.leave_behind_door(&left)?;
        Ok(true)
    }

    /// Leaves pages to the next run.
    pub(super) fn leave_behind_door(&mut self, pages: &[UrlId]) -> Result<(), CrawlError> {
        let unasked = self.put_off.unasked();
        self.put_off.note_unasked(self.recorder.state(), pages)?;
        self.doors.new += (pages.len() as u64).saturating_sub(self.put_off.unasked() - unasked);
        self.doors.is_any_left = true;
        self.count_refused(Refusal::LoggedOut, pages);
        Ok(())
    }
}
