//! How segments are written.

use std::time::Duration;

use super::codec::Codec;
use super::guard::Guard;
use super::stated::Catalogued;
use crate::clock::Clock;
use crate::digest::Algorithm;
use crate::ids::Watermarks;

/// How segments are written.
#[derive(Clone, Debug)]
pub struct SegmentOptions {
    /// The compression of new segments. `None` is that of the newest segment, and zstd for a new archive.
    pub codec: Option<Codec>,
    /// The level without a dictionary: 1 to 19 for zstd, 0 to 9 for gzip. `None` is 3 and 6.
    pub level: Option<i32>,
    /// The zstd level with a dictionary. Below 7 the match finder's table has no room for a dictionary of megabytes: real
    /// recaptures took 3.60 MB at level 6 (400 MB/s), 3.41 at 7 (300), 3.30 at 8 (265) and 3.27 at 9 (180).
    pub dictionary_level: i32,
    /// The zstd level with a dictionary that was trained on a sample of pages captured for the first time. Level 1 takes half
    /// the time of 3 and a twentieth more room: what a crawl wants.
    pub trained_level: i32,
    /// Groups of hosts to begin with, each of which has its own segment: a power of two up to 8, others are brought into
    /// range. There will be more when the pages of a group outgrow a dictionary. Only zstd has groups.
    pub host_groups: usize,
    /// Whether dictionaries are built by threads of their own while writing continues; if not, appending waits for them: for
    /// who reads faster than they are built, and for tests that must be repeatable.
    pub builds_beside: bool,
    /// How dictionaries are guarded against damage. `None` is as in the newest segment that has one, and by parity in a new
    /// archive.
    pub guard: Option<Guard>,
    /// The algorithm of block digests.
    pub algorithm: Algorithm,
    /// First part of file names: who or what crawls.
    pub prefix: String,
    /// Last part of file names: the machine.
    pub host: String,
    /// Fields of every segment's `warcinfo` record: software, operator, http-header-user-agent, robots, …
    pub info: Vec<(String, String)>,
    /// Bytes at which a segment should be closed.
    pub bytes_max: u64,
    /// Captures at which a segment should be closed: its index is kept in memory until then.
    pub captures_max: u64,
    /// The age at which a segment should be closed. One with a dictionary is not closed for its age: the longer it serves, the
    /// more it saves.
    pub age_max: Duration,
    /// The watermarks up to which the rest of the archive relies on segments. Recovery never cuts off what they
    /// include, however damaged; it reports it.
    pub relied_on: Watermarks,
    /// What the catalogue says of segments, by their file names.
    pub catalogue: Catalogued,
    /// What time it is.
    pub clock: Clock,
    /// Makes record ids repeatable, for tests.
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
