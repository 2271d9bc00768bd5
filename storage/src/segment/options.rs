//! Options for writing segments.

use std::time::Duration;

use super::codec::Codec;
use super::guard::Guard;
use super::statements::Catalogued;
use crate::clock::Clock;
use crate::digest::Algorithm;
use crate::ids::Watermarks;

/// Options for writing segments.
#[derive(Clone, Debug)]
pub struct SegmentOptions {
    /// Compression of new segments. `None` means that of the newest segment, or zstd for a new archive.
    pub codec: Option<Codec>,
    /// Level without a dictionary: 1 to 19 for zstd, 0 to 9 for gzip. `None` means 3 and 6.
    pub level: Option<i32>,
    /// zstd level with a dictionary. Below 7 the match finder's table is too small for a dictionary of megabytes: real
    /// recaptures took 3.60 MB at level 6 (400 MB/s), 3.41 at 7 (300), 3.30 at 8 (265) and 3.27 at 9 (180).
    pub dictionary_level: i32,
    /// zstd level with a dictionary that was trained on a sample of pages captured for the first time. Level 1 takes
    /// half the time of level 3 and a twentieth more space, which suits a crawl.
    pub trained_level: i32,
    /// Initial number of host groups, each with its own segment: a power of two up to 8; other values are adjusted. A
    /// group is split when its pages outgrow a dictionary. Only zstd has groups.
    pub host_groups: usize,
    /// Whether dictionaries are built by threads of their own while writing continues. If not, appending waits for
    /// them: for input that arrives faster than they are built, and for repeatable tests.
    pub builds_beside: bool,
    /// Guard of dictionaries against damage. `None` means that of the newest segment with a dictionary, or parity for a
    /// new archive.
    pub guard: Option<Guard>,
    /// Algorithm of block digests.
    pub algorithm: Algorithm,
    /// First part of file names: who or what crawls.
    pub prefix: String,
    /// Last part of file names: the machine.
    pub host: String,
    /// Fields of every segment's `warcinfo` record: software, operator, http-header-user-agent, robots, …
    pub info: Vec<(String, String)>,
    /// Size in bytes at which a segment should be closed.
    pub bytes_max: u64,
    /// Number of captures at which a segment should be closed: its index is kept in memory until then.
    pub captures_max: u64,
    /// Age at which a segment should be closed. A segment with a dictionary is not closed for its age: the longer it is
    /// in use, the more it saves.
    pub age_max: Duration,
    /// Watermarks up to which the rest of the archive relies on segments. Recovery never cuts off anything within them,
    /// however damaged; it reports the damage.
    pub relied_on: Watermarks,
    /// What the catalogue states about segments, by file name.
    pub catalogue: Catalogued,
    /// Source of the current time.
    pub clock: Clock,
    /// Seed that makes record ids repeatable, for tests.
    pub seed: Option<u64>,
}

impl Default for SegmentOptions {
    fn default() -> Self {
        Self {
            codec: None,
            level: None,
            dictionary_level: 8,
            trained_level: 3,
            host_groups: 1,
            builds_beside: true,
            guard: None,
            algorithm: Algorithm::Sha256,
            prefix: "ARCHIVE".into(),
            host: "localhost".into(),
            info: Vec::new(),
            bytes_max: 1 << 30,
            captures_max: 100_000,
            age_max: Duration::from_hours(24),
            relied_on: Watermarks::default(),
            catalogue: Catalogued::default(),
            clock: Clock::default(),
            seed: None,
        }
    }
}

impl SegmentOptions {
    pub(super) fn plain_level(&self, codec: Codec) -> i32 {
        self.level.unwrap_or(match codec {
            Codec::Zstd => 3,
            Codec::Gzip => 6,
        })
    }
}
