//! What an error means to whoever has to react to it, whatever its type: the exit code of a command, the status of an
//! answer.

use std::error::Error;
use std::fmt::{self, Display};
use std::io;
use std::iter::successors;

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
        let is_locked =
            |cause: &(dyn Error + 'static)| matches!(cause.downcast_ref(), Some(StateError::Locked { .. }));
        if chain_of(error).any(is_locked) { Self::Busy } else { Self::Failed }
    }
}

/// Any error, with its kind: of a job or a command, and of what is passed on without being told apart.
#[derive(Debug, thiserror::Error)]
pub struct Failure {
    kind: ErrorKind,
    source: Box<dyn Error + Send + Sync>,
}

impl Failure {
    /// A mistake in what was asked for.
    #[must_use]
    pub fn usage(problem: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Usage, source: Into::<String>::into(problem).into() }
    }

    /// Any other failure: a sentence, or an error that says nothing of its kind.
    #[must_use]
    pub fn failed(problem: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let source = problem.into();
        Self { kind: ErrorKind::of_causes(&*source), source }
    }

    /// The error, after what was being done.
    #[must_use]
    pub fn within(self, what: impl Display) -> Self {
        let Self { kind, source } = self;
        Self { kind, source: Box::new(Within { what: what.to_string(), source }) }
    }

    /// What it means to whoever has to react to it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The error and its causes.
    pub fn causes(&self) -> impl Iterator<Item = &(dyn Error + 'static)> {
        chain_of(&*self.source)
    }
}

/// What went wrong; in the alternate form with the causes, in one line. A cause that the text already ends with is not
/// repeated.
impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.source.to_string();
        for cause in self.causes().skip(1).filter(|_| f.alternate()).map(ToString::to_string) {
            if !text.ends_with(&cause) {
                text = format!("{text}: {cause}");
            }
        }
        f.write_str(&text)
    }
}

impl<E: Classified> From<E> for Failure {
    fn from(error: E) -> Self {
        Self { kind: error.kind(), source: Box::new(error) }
    }
}

/// An error and its causes.
pub(crate) fn chain_of<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    successors(Some(error), |&error| error.source())
}

/// Makes errors known whose kind follows from their causes.
#[macro_export]
macro_rules! classified {
    ($($error:ty),+) => {
        $(impl $crate::error::Classified for $error {})+
    };
}

/// Lets an error pass on others in its variant `Other`: those with a kind, then those of crates that know no kinds.
#[macro_export]
macro_rules! passes_on {
    ($error:ty: $($cause:ty),* $(; $($plain:ty),*)?) => {
        $(impl From<$cause> for $error {
            fn from(cause: $cause) -> Self {
                Self::Other(cause.into())
            }
        })*
        $($(impl From<$plain> for $error {
            fn from(cause: $plain) -> Self {
                Self::Other($crate::error::Failure::failed(cause))
            }
        })*)?
    };
}

/// An error in the course of something.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
struct Within {
    what: String,
    source: Box<dyn Error + Send + Sync>,
}

/// Adds to an error, or to there being nothing, what was being done.
pub trait During<T> {
    /// The value, or the failure after what was being done.
    ///
    /// # Errors
    /// If there is no value.
    fn within(self, what: impl Display) -> Result<T, Failure>;
}

impl<T, E: Into<Failure>> During<T> for Result<T, E> {
    fn within(self, what: impl Display) -> Result<T, Failure> {
        self.map_err(|error| error.into().within(what))
    }
}

impl<T> During<T> for Option<T> {
    fn within(self, what: impl Display) -> Result<T, Failure> {
        self.ok_or_else(|| Failure::failed(what.to_string()))
    }
}

impl Classified for AccountsError {
    fn kind(&self) -> ErrorKind {
        if matches!(self, Self::Wrong(_)) { ErrorKind::Usage } else { ErrorKind::Failed }
    }
}

classified! {
    AccessError, DecisionsError, ErasedError, FileError, RemarksError, RemoteError, SegmentError, StateError,
    StoreError, io::Error, reqwest::Error, serde_json::Error
}

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

    #[test]
    fn a_failure_keeps_its_kind_and_says_each_cause_once() {
        let failed: Result<(), _> = Err(StoreError::State(StateError::Locked {
            path: "a".into(),
            holder: "another program".to_owned(),
        }));
        let failure = failed.within("cannot begin").unwrap_err();
        let cause = failure.causes().last().unwrap().to_string();
        assert_eq!((failure.kind(), failure.to_string().as_str()), (ErrorKind::Busy, "cannot begin"));
        assert_eq!(format!("{failure:#}"), format!("cannot begin: {cause}"));
        assert_eq!(None::<()>.within("nothing there").unwrap_err().kind(), ErrorKind::Failed);
    }
}
