//! Append-only page and history store in standard WARC segments.

pub mod backend;
pub mod digest;
mod ids;
pub mod segment;
pub mod warc;

pub use digest::Digest;
pub use ids::{CaptureId, HostId, Location, SegmentId, SiteId, UrlId, Watermark};
