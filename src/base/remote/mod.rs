//! Object stores by URL: `s3://bucket/prefix` at any S3-compatible service, `file:///folder` on a disk.
//!
//! The content of a store is not trusted: answers have a size limit, timeouts end stalled requests, redirects are not
//! followed, and in a folder only regular files are read, without following links. A reader of an object limits its
//! length ([`read`]). Objects that must be written only once go through [`create`], which detects its own success if
//! the answer is lost.

mod folder;
mod http;
mod objects;
mod profile;
mod s3;
mod time;

use std::error::Error;
use std::io;
use std::sync::Arc;

use crate::error::chain_of;
use object_store::ObjectStore;
use object_store::path::Path as ObjectPath;
use object_store::prefix::PrefixStore;
use tokio::runtime::Runtime;
use url::Url;

pub use objects::{LIST_MAX, check_creation, create, list, read};
pub use time::{MachineTime, Time, within};

/// Maximum characters of an error message from another machine.
const PROBLEM_CHARACTERS_MAX: usize = 500;

/// Phrases that the library uses for a refused request.
const REFUSALS: [&str; 2] = ["401 Unauthorized", "403 Forbidden"];

/// Phrase that a service uses for a missing bucket.
const NO_BUCKET: &str = "<Code>NoSuchBucket</Code>";

/// Number of threads that serve the sockets of a store.
const SOCKET_THREADS: usize = 2;

/// Why an object store cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The URL does not name a store.
    #[error("'{url}' names no object store: {problem}; write it like s3://bucket/prefix or file:///folder")]
    Url {
        /// The URL as given.
        url: String,
        /// The problem.
        problem: String,
    },
    /// The environment or a credentials file has invalid or incomplete settings.
    #[error("{0}")]
    Settings(String),
    /// The object does not exist.
    #[error("{0} is not there")]
    Missing(String),
    /// The object already exists with other content.
    #[error("{0} is there already")]
    Exists(String),
    /// The store denies access.
    #[error("{what}: the store refuses it; look at the credentials and what they may do there ({problem})")]
    Denied {
        /// The object.
        what: String,
        /// The answer of the store.
        problem: String,
    },
    /// An answer exceeds its limit.
    #[error("{what} is longer than {bytes_max} bytes")]
    TooLong {
        /// The object, or the list of objects.
        what: String,
        /// The limit.
        bytes_max: u64,
    },
    /// There are more objects than can be listed.
    #[error("{0} holds more than {LIST_MAX} objects")]
    TooMany(String),
    /// The store, or the connection to it, failed despite all retries.
    #[error("{what}: {problem}")]
    Failed {
        /// The object.
        what: String,
        /// The problem.
        problem: String,
    },
    /// The disk of the store has no room for the object.
    #[error("{0}: no room is left in the store")]
    Full(String),
    /// The store overwrites objects even when asked not to.
    #[error(
        "the store overwrites objects although it is asked not to (If-None-Match), so that two programs at once could undo each \
         other's work; use another one"
    )]
    Unconditional,
    /// The threads for the store's sockets cannot be started.
    #[error("cannot start what talks to object stores: {0}")]
    Runtime(#[source] io::Error),
}

impl RemoteError {
    /// Converts an error of the library about an object.
    #[must_use]
    pub fn of(what: &str, error: object_store::Error) -> Self {
        use object_store::Error as Of;
        let what = what.to_owned();
        match error {
            Of::NotFound { .. } => Self::Missing(what),
            Of::AlreadyExists { .. } | Of::Precondition { .. } => Self::Exists(what),
            Of::PermissionDenied { source, .. } | Of::Unauthenticated { source, .. } => {
                Self::Denied { what, problem: causes(&*source) }
            }
            Of::Generic { source, .. } if is_full(&*source) => Self::Full(what),
            Of::Generic { source, .. } => {
                let problem = causes(&*source);
                // The library has variants for errors of objects, but not of listings.
                let is_any = |answers: &[&str]| answers.iter().any(|answer| problem.contains(answer));
                if is_any(&REFUSALS) {
                    Self::Denied { what, problem }
                } else if is_any(&[NO_BUCKET]) {
                    Self::Missing("the bucket".to_owned())
                } else {
                    Self::Failed { what, problem }
                }
            }
            error => Self::Failed { what, problem: causes(&error) },
        }
    }

    /// Whether a retry may succeed.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Failed { .. } | Self::Full(_))
    }
}

/// Returns an error and its causes in one line of bounded length.
pub fn causes(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    for cause in chain_of(error).map(ToString::to_string) {
        if !text.contains(&cause) {
            text.push_str(if text.is_empty() { "" } else { ": " });
            text.push_str(&cause);
        }
    }
    one_line(&text)
}

/// Returns the root cause of an error in one line of bounded length.
pub fn first_cause(error: &(dyn Error + 'static)) -> String {
    one_line(&chain_of(error).last().unwrap_or(error).to_string())
}

fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(PROBLEM_CHARACTERS_MAX).collect()
}

/// Whether a disk was full, here or at a store.
#[must_use]
pub fn is_full(error: &(dyn Error + 'static)) -> bool {
    let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
    chain_of(error).any(|cause| {
        cause.downcast_ref().is_some_and(|error: &io::Error| full.contains(&error.kind()))
            || matches!(cause.downcast_ref(), Some(RemoteError::Full(_)))
    })
}

/// Opens a store without contacting it. The folder of a `file://` URL is created by the first operation that writes.
///
/// Its operations need a runtime: see [`runtime`].
///
/// # Errors
/// If the URL names no store, or there are no credentials for it.
pub fn open(url: &str) -> Result<Arc<dyn ObjectStore>, RemoteError> {
    let wrong = |problem: &str| RemoteError::Url { url: url.to_owned(), problem: problem.to_owned() };
    let parsed = Url::parse(url).map_err(|error| wrong(&error.to_string()))?;
    if parsed.query().is_some() || parsed.fragment().is_some() || !parsed.username().is_empty() {
        return Err(wrong("it has more than a place and a path"));
    }
    match parsed.scheme() {
        "file" => {
            let path = parsed.to_file_path().map_err(|()| wrong("it is not a path of this machine"))?;
            Ok(Arc::new(folder::FolderStore::new(path)))
        }
        "s3" => {
            let bucket = parsed.host_str().filter(|bucket| !bucket.is_empty());
            let bucket = bucket.ok_or_else(|| wrong("it has no bucket"))?;
            let prefix =
                ObjectPath::from_url_path(parsed.path()).map_err(|error| wrong(&error.to_string()))?;
            let store = s3::open(bucket)?;
            if prefix.is_root() {
                return Ok(Arc::new(store));
            }
            Ok(Arc::new(PrefixStore::new(store, prefix)))
        }
        scheme => Err(wrong(&format!("{scheme} is not known"))),
    }
}

/// Returns a runtime for the operations of a store.
///
/// # Errors
/// If the system provides no threads.
pub fn runtime() -> Result<Runtime, RemoteError> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(SOCKET_THREADS).thread_name("remote").enable_all();
    builder.build().map_err(RemoteError::Runtime)
}

#[cfg(test)]
mod tests {
    use super::{RemoteError, open};

    #[test]
    fn urls_that_name_no_store_are_refused_with_an_example() {
        for (url, problem) in [
            ("/backup", "relative URL"),
            ("ftp://host/x", "ftp is not known"),
            ("s3:///x", "it has no bucket"),
            ("s3://name@bucket/x", "more than a place"),
            ("s3://bucket/x?y", "more than a place"),
            ("file://elsewhere/x", "not a path of this machine"),
        ] {
            match open(url) {
                Err(error @ RemoteError::Url { .. }) => {
                    assert!(error.to_string().contains(problem), "{error}");
                    assert!(error.to_string().contains("write it like s3://bucket/prefix"), "{error}");
                }
                other => panic!("{url}: {other:?}"),
            }
        }
    }
}
