//! Append-only page and history store in standard WARC segments.

pub mod address;
pub mod backend;
mod capture_kind;
mod catalogue;
mod checkpoint;
mod clock;
pub mod digest;
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
mod verify;
pub mod warc;

pub use capture_kind::CaptureKind;
pub use catalogue::{SegmentEntry, SegmentState};
pub use checkpoint::{Owner, StateError};
pub use clock::Clock;
pub use digest::Digest;
pub use history::{Capture, History, MimeId};
pub use ids::{CaptureId, HostId, Location, SegmentId, SiteId, UrlId, Watermark, Watermarks};
pub use links::{LINKS_PER_PAGE_MAX, LinkCursor, LinkList, LinkScan, LinkTarget};
pub use pages::{Host, LinksPosition, Page, PageFlags, Site, TextPosition, Visit, VisitId};
pub use quietly::quietly;
pub use rebuild::{Rebuild, catalogued};
pub use state::{
    CashWritten, Checkpointed, Inconsistency, Ledger, Mode, SETTING_BYTES_MAX, Scrub, State, StateOptions,
    TITLE_BYTES_MAX, TitleCursor, Totals, UrlCursor,
};
pub use store::{PendingSync, SYNC_BYTES_MAX, Store, StoreError};
pub use urls::NAME_BYTES_MAX;
pub use verify::{FINDINGS_MAX, Finding, Verified, verify};
