//! The small numbers by which the store names its things.
//!
//! Ids are dense, start at 0 and are never reused, so every table indexed by one is a plain array. They are derived
//! data: a rebuild from the segments may number things anew. Only a [`Location`] names bytes on disk.

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
    /// A host (scheme-less authority: name or address, with the port when it is not the scheme's own).
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
    /// One fetch outcome of one URL at one time.
    CaptureId
}

/// Where a record's first byte lies, and how many bytes it takes on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Location {
    /// The file.
    pub segment: SegmentId,
    /// Bytes from the start of the file.
    pub offset: u64,
    /// Compressed bytes.
    pub length: u32,
}

/// A position between two capture groups of a segment.
///
/// The default is the very beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Watermark {
    /// The file.
    pub segment: SegmentId,
    /// Bytes from the start of the file.
    pub offset: u64,
}

/// Up to where every segment is included: several are written at once.
///
/// The default includes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watermarks {
    /// Captures that are included: the first ones in the order of appending.
    pub captures: u64,
    /// Segments from here on are not included.
    pub next: SegmentId,
    /// Segments before that are included up to an offset only, in order; all others before are included whole.
    pub open: Vec<Watermark>,
}

impl Watermarks {
    /// Up to where a segment is included; nothing when it is included whole.
    #[must_use]
    pub fn of(&self, segment: SegmentId) -> Option<u64> {
        if segment >= self.next {
            return Some(0);
        }
        self.open.iter().find(|open| open.segment == segment).map(|open| open.offset)
    }
}

/// Everything before a position where one segment was written after the other.
impl From<Watermark> for Watermarks {
    fn from(end: Watermark) -> Self {
        let is_open = end.offset > 0;
        let next = SegmentId(end.segment.0.saturating_add(u32::from(is_open)));
        Self { captures: 0, next, open: if is_open { vec![end] } else { Vec::new() } }
    }
}
