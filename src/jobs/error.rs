//! Why a job cannot be done.

use std::error::Error;

use archive_base::error::{Classified, ErrorKind};

/// Why a job cannot be done.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
pub struct JobError {
    kind: ErrorKind,
    source: Box<dyn Error + Send + Sync>,
}

impl JobError {
    /// A mistake in what was asked for.
    #[must_use]
    pub fn usage(problem: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Usage, source: Into::<String>::into(problem).into() }
    }

    /// Any other failure.
    pub(super) fn failed(problem: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Failed, source: Into::<String>::into(problem).into() }
    }

    /// The error, after what was being done.
    pub(super) fn within(self, what: &str) -> Self {
        let Self { kind, source } = self;
        Self { kind, source: Box::new(Within { what: what.to_owned(), source }) }
    }

    /// What it means to the caller.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl<E: Classified> From<E> for JobError {
    fn from(error: E) -> Self {
        Self { kind: error.kind(), source: Box::new(error) }
    }
}

/// An error in the course of something.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
struct Within {
    what: String,
    source: Box<dyn Error + Send + Sync>,
}
