//! Append-only page and history store in standard WARC segments.
//!
//! An archive is a folder. Its [`segments`](segment) are WARC files that hold every capture as it was received. Its
//! [`State`] records which URLs, pages, versions and links exist, and can be rebuilt from the segments at any time. A
//! [`Store`] owns both. `FORMAT.md` specifies every byte of the files; nothing else is relied on.
//!
//! ```
//! use archive_storage::address::url_hash;
//! use archive_storage::segment::{CaptureBody, CaptureGroup, SegmentOptions};
//! use archive_storage::{Capture, CaptureKind, Digest, Store, StoreError};
//! use chrono::DateTime;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let mut store = Store::own(folder.path(), SegmentOptions::default())?;
//! // What a crash kept out of the state comes first: an owner credits it as it credits what it appends.
//! store.replay(|_state, capture| {
//!     println!("{} of {}", capture.url, capture.time);
//!     Ok::<_, StoreError>(())
//! })?;
//!
//! // The records of a capture, as one write.
//! let (url, time, body) = ("https://example.org/", DateTime::UNIX_EPOCH, "Hello");
//! let digest = Digest::sha256(body.as_bytes());
//! let group = CaptureGroup {
//!     url: url.to_owned(),
//!     time,
//!     address: None,
//!     request: None,
//!     body: CaptureBody::Response { http: format!("HTTP/1.1 200 OK\r\n\r\n{body}").into(), truncated: None },
//!     payload_digest: Some(digest),
//!     protocols: vec!["http/1.1".to_owned()],
//!     metadata: Vec::new(),
//! };
//! let records = store.encoder()?.encode(group)?;
//! let location = store.append(&records)?;
//!
//! // What the state knows of it.
//! let (page, _is_new) = store.state_mut().intern(url, url_hash(url))?;
//! let mime = store.state_mut().intern_mime("text/plain")?;
//! let capture = Capture {
//!     url: page,
//!     time: time.timestamp_micros(),
//!     location,
//!     digest: digest.prefix(),
//!     status: 200,
//!     mime,
//!     kind: CaptureKind::Response,
//!     length: body.len() as u32,
//!     flags: 0,
//!     original: None,
//! };
//! store.state_mut().append_capture(&capture, None)?;
//! store.close()?; // durable, and readable by every WARC tool
//!
//! let store = Store::read_only(folder.path())?;
//! let page = store.state().find(url)?.ok_or("it was stored")?;
//! for capture in store.state().history(page)? {
//!     let (_id, capture) = capture?;
//!     assert_eq!(store.payload(&capture)?.as_deref(), Some(body.as_bytes()));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Invariants
//! * A capture counts once its records are synced: see [`Store::acknowledged`]. The state never gets ahead of the
//!   segments.
//! * Captures are numbered in the order of appending. After a crash, the archive holds exactly the captures up to some
//!   number.
//! * There is one owner at a time; concurrent readers see the last checkpoint in full.
//! * No byte sequence in any file causes a panic; damage is an error that gives its location, and [`verify()`] lists
//!   all of it.
//!
//! # Modules
//! [`address`] canonical URLs, SURT, hosts; [`warc`] records of any tool; [`segment`] writing and reading the archive's
//! own files; [`digest`]; [`backend`] the few file operations that all I/O goes through, and an in-memory disk that
//! fails on request.

pub mod address;
pub mod backend;
mod capture_kind;
mod catalogue;
mod checkpoint;
mod clock;
pub mod digest;
mod files;
mod history;
mod ids;
mod index;
mod links;
mod pages;
mod quietly;
mod rebuild;
pub mod segment;
mod state;
mod store;
mod urls;
mod validators;
mod veil;
mod verify;
pub mod warc;

pub use capture_kind::CaptureKind;
pub use catalogue::{SegmentEntry, SegmentState};
pub use checkpoint::{Owner, StateError};
pub use clock::Clock;
pub use digest::Digest;
pub use files::{CheckpointFile, CheckpointFiles, FileChange};
pub use history::{Capture, History, MimeId};
pub use ids::{CaptureId, HostId, Location, SegmentId, SiteId, UrlId, Watermark, Watermarks};
pub use links::{LINKS_PER_PAGE_MAX, LinkCursor, LinkKinds, LinkList, LinkScan, LinkTarget};
pub use pages::{
    Host, LinksPosition, Page, PageFlags, Site, TextPosition, ValidatorsPosition, Visit, VisitId,
};
pub use quietly::quietly;
pub use rebuild::{Rebuild, catalogued};
pub use state::{
    CashWritten, Checkpointed, Inconsistency, PAGES_TOGETHER, ROWS_TOGETHER, SETTING_BYTES_MAX, Scrub, State,
    StateMode, StateOptions, TITLE_BYTES_MAX, TextCache, TitleCursor, Totals, UrlCursor,
};
pub use store::{PendingSync, SYNC_BYTES_MAX, Store, StoreError};
pub use urls::NAME_BYTES_MAX;
pub use validators::{VALIDATOR_BYTES_MAX, Validators};
pub use veil::Veil;
pub use verify::{FINDINGS_MAX, Finding, Verified, verify};
