//! Append-only page and history store in standard WARC segments.

pub mod address;
mod ids;

pub use ids::{CaptureId, HostId, Location, SegmentId, SiteId, UrlId};
