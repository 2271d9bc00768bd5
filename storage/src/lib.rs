//! Append-only page and history store in standard WARC segments.

pub mod address;
pub mod backend;
pub mod digest;
mod ids;

pub use digest::Digest;
pub use ids::{CaptureId, HostId, Location, SegmentId, SiteId, UrlId, Watermark};
