//! Numeric ids of the things in the store.
//!
//! Ids are dense, start at 0 and are never reused, so every table indexed by one is a plain array. They are derived
//! data: a rebuild from the segments may assign different ones. Only a [`Location`] identifies bytes on disk.

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The id as an array index.
            #[must_use]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// A URL that the archive knows, fetched or not.
    UrlId
}
id! {
    /// A host (scheme-less authority: name or address, with the port unless it is the scheme's default).
    HostId
}
id! {
    /// A site: a group of hosts, by default one registrable domain.
    SiteId
}
id! {
    /// An append-only WARC file.
    SegmentId
}
id! {
    /// One outcome of fetching one URL at one time.
    CaptureId
}

/// Where a record starts, and how many bytes it takes on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Location {
    /// The segment that holds the record.
    pub segment: SegmentId,
    /// Offset from the start of the file, in bytes.
    pub offset: u64,
    /// Compressed length in bytes.
    pub length: u32,
}

/// A position between two capture groups of a segment.
///
/// The default is the start of the first segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Watermark {
    /// The segment.
    pub segment: SegmentId,
    /// Offset from the start of the file, in bytes.
    pub offset: u64,
}

/// How far each segment is included; several segments are written concurrently.
///
/// The default includes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watermarks {
    /// Number of included captures: the first ones in the order of appending.
    pub captures: u64,
    /// Segments from this one on are not included.
    pub next: SegmentId,
    /// Earlier segments that are included only up to an offset, in order; all other earlier ones are included in full.
    pub open: Vec<Watermark>,
}

impl Watermarks {
    /// Returns the offset up to which a segment is included; `None` if it is included in full.
    #[must_use]
    pub fn of(&self, segment: SegmentId) -> Option<u64> {
        if segment >= self.next {
            return Some(0);
        }
        self.open.iter().find(|open| open.segment == segment).map(|open| open.offset)
    }
}

/// Includes everything before a position, for segments that were written one after the other.
impl From<Watermark> for Watermarks {
    fn from(end: Watermark) -> Self {
        let is_open = end.offset > 0;
        let next = SegmentId(end.segment.0.saturating_add(u32::from(is_open)));
        Self { captures: 0, next, open: if is_open { vec![end] } else { Vec::new() } }
    }
}
