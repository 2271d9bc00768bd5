//! What an error means to whoever has to react to it, whatever its type: the exit code of a command, the status of an
//! answer.

use std::error::Error;
use std::io;

use archive_storage::segment::SegmentError;
use archive_storage::{StateError, StoreError};

use crate::access::AccessError;
use crate::accounts::AccountsError;
use crate::decisions::DecisionsError;
use crate::erased::ErasedError;
use crate::files::FileError;
use crate::remarks::RemarksError;
use crate::remote::RemoteError;

/// What an error means to whoever has to react to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request is wrong: an option, a query, a file that somebody wrote. The same request fails again.
    Usage,
    /// Another program uses the archive: the same request may succeed later.
    Busy,
    /// The time was up, or a stop was requested: what was done so far stays.
    Stopped,
    /// Anything else, such as damage, a full disk, or a server that does not answer.
    Failed,
}

/// An error that knows its kind.
pub trait Classified: Error + Send + Sync + 'static {
    /// What it means to whoever has to react to it.
    fn kind(&self) -> ErrorKind
    where
        Self: Sized,
    {
        ErrorKind::of_causes(self)
    }
}

impl ErrorKind {
    /// The kind of an error that says nothing of its own: the store's, if that is its cause.
    pub fn of_causes(error: &(dyn Error + 'static)) -> Self {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if matches!(error.downcast_ref(), Some(StateError::Locked { .. })) {
                return Self::Busy;
            }
            cause = error.source();
        }
        Self::Failed
    }
}

impl Classified for AccountsError {
    fn kind(&self) -> ErrorKind {
        if matches!(self, Self::Wrong(_)) { ErrorKind::Usage } else { ErrorKind::Failed }
    }
}

impl Classified for AccessError {}
impl Classified for DecisionsError {}
impl Classified for ErasedError {}
impl Classified for FileError {}
impl Classified for RemarksError {}
impl Classified for RemoteError {}
impl Classified for SegmentError {}
impl Classified for StateError {}
impl Classified for StoreError {}
impl Classified for io::Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_in_use_is_told_through_whatever_wraps_it() {
        let locked = || StateError::Locked { path: "a".into(), holder: "another program".to_owned() };
        assert_eq!(locked().kind(), ErrorKind::Busy);
        assert_eq!(StoreError::State(locked()).kind(), ErrorKind::Busy);
        assert_eq!(Classified::kind(&io::Error::other(StoreError::State(locked()))), ErrorKind::Busy);
        assert_eq!(StoreError::State(StateError::ReadOnly).kind(), ErrorKind::Failed);
        assert_eq!(AccountsError::Wrong("a".to_owned()).kind(), ErrorKind::Usage);
    }
}
