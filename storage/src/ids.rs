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

/// A position between two capture groups in the sequence of all segments: everything before it is included.
///
/// The default is the very beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Watermark {
    /// The file.
    pub segment: SegmentId,
    /// Bytes from the start of the file.
    pub offset: u64,
}
