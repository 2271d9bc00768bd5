//! A sample of the records of pages captured for the first time, for training a dictionary while a site is crawled
//! once.
//!
//! Pages of one site share their templates, and every record shares parts of its head with all others. A hundred
//! kilobytes selected by `zstd`'s training (FASTCOVER) contain nearly all of that: on nine documentation sites, 32 000
//! captures once each, records at level 3 took 0.70 of the bytes of gzip, and less time than at level 3 without a
//! dictionary (1.05). Eight megabytes of whole pages took 0.64 at level 8, but ten times as long: they are for pages
//! that are captured again.

use zstd::zstd_safe::zstd_sys::{
    ZDICT_fastCover_params_t, ZDICT_isError, ZDICT_params_t, ZDICT_trainFromBuffer_fastCover,
};

use super::group::{CaptureGroup, RecordBlock, RecordContent, blocks};
use super::host_group::{HostGroup, host_hash};
use crate::digest::Algorithm;
use crate::warc::RecordIds;

/// Maximum number of captures in a sample.
const CAPTURES_MAX: usize = 128;
/// Maximum bytes of each record in the sample.
const RECORD_BYTES_MAX: usize = 16 << 10;
/// Minimum number of captures for training.
const CAPTURES_MIN: usize = 64;

/// Parameters of FASTCOVER (`k`, `d` and `f`): bytes of a piece, bytes of the strings that are counted, log2 of the
/// size of the count table. By default `zstd` tries five piece lengths and evaluates them on a quarter of the sample:
/// that takes five times as long, and pages of three sites took 0.993, 1.07 and 1.11 times as many bytes with it.
const PIECE_BYTES: u32 = 1024;
const STRING_BYTES: u32 = 8;
const TABLE_BITS: u32 = 18;

/// The records of a capture, each truncated.
#[derive(Clone, Debug)]
struct RecordSample {
    host: u32,
    records: Vec<Vec<u8>>,
}

/// A uniform sample of the captures offered (Vitter, "Random Sampling with a Reservoir", 1985, algorithm R).
#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    offered: u64,
    kept: Vec<RecordSample>,
}

impl Samples {
    /// Offers a capture.
    pub(super) fn offer(&mut self, group: &CaptureGroup) {
        self.offered += 1;
        let place = if self.kept.len() < CAPTURES_MAX {
            self.kept.len()
        } else {
            // The choice is the same in every run: the random numbers depend only on the count.
            let random = xxhash_rust::xxh3::xxh3_64(&self.offered.to_le_bytes());
            usize::try_from(random % self.offered).unwrap_or(usize::MAX)
        };
        if place >= CAPTURES_MAX {
            return;
        }
        let Ok(blocks) = blocks(group, &RecordIds::seeded(self.offered), Algorithm::Sha256) else { return };
        let sample = RecordSample { host: host_hash(&group.url), records: blocks.iter().map(cut).collect() };
        match self.kept.get_mut(place) {
            Some(before) => *before = sample,
            None => self.kept.push(sample),
        }
    }

    /// Whether there are enough captures for training.
    pub(super) fn are_enough(&self) -> bool {
        self.kept.len() >= CAPTURES_MIN
    }

    /// Returns the samples of some hosts, or all samples if those are too few.
    pub(super) fn of(&self, hosts: HostGroup) -> Self {
        let kept: Vec<RecordSample> =
            self.kept.iter().filter(|sample| hosts.holds(sample.host)).cloned().collect();
        let part = Self { offered: self.offered, kept };
        if part.are_enough() { part } else { self.clone() }
    }

    /// Trains a dictionary in the format of RFC 8878, section 5, of at most `bytes_max` bytes; `None` if there are too
    /// few samples.
    pub(super) fn train(&self, bytes_max: usize) -> Option<Vec<u8>> {
        if !self.are_enough() {
            return None;
        }
        learned(self.kept.iter().flat_map(|sample| &sample.records).map(Vec::as_slice), bytes_max)
    }
}

/// Trains a dictionary of at most `bytes_max` bytes on the beginnings of records.
pub(super) fn learned<'a>(records: impl Iterator<Item = &'a [u8]>, bytes_max: usize) -> Option<Vec<u8>> {
    let (mut bytes, mut sizes) = (Vec::new(), Vec::new());
    for record in records {
        let beginning = record.get(..record.len().min(RECORD_BYTES_MAX)).unwrap_or_default();
        bytes.extend_from_slice(beginning);
        sizes.push(beginning.len());
    }
    chosen(&bytes, &sizes, bytes_max)
}

/// Like `learned`, for concatenated records and their lengths, whose sum must be the total length.
#[expect(unsafe_code, reason = "the safe function chooses the length of pieces itself, see PIECE_BYTES")]
fn chosen(bytes: &[u8], sizes: &[usize], bytes_max: usize) -> Option<Vec<u8>> {
    let count = u32::try_from(sizes.len()).ok().filter(|_| sizes.iter().sum::<usize>() == bytes.len())?;
    let how = ZDICT_fastCover_params_t {
        k: PIECE_BYTES,
        d: STRING_BYTES,
        f: TABLE_BITS,
        accel: 1,
        steps: 0,
        nbThreads: 0,
        splitPoint: 0.0,
        shrinkDict: 0,
        shrinkDictMaxRegression: 0,
        zParams: ZDICT_params_t { compressionLevel: 0, notificationLevel: 0, dictID: 0 },
    };
    let mut dictionary = vec![0; bytes_max];
    let (to, from) = (dictionary.as_mut_ptr().cast(), bytes.as_ptr().cast());
    // SAFETY: at most `bytes_max` bytes are written to the dictionary, which has that length. As many lengths are read
    // as `sizes` has, and as many bytes as they add up to, which is the length of `bytes`. No pointer is kept.
    let (length, is_error) = unsafe {
        let length = ZDICT_trainFromBuffer_fastCover(to, bytes_max, from, sizes.as_ptr(), count, how);
        (length, ZDICT_isError(length) != 0)
    };
    dictionary.truncate(length);
    (!is_error).then_some(dictionary)
}

/// Returns the beginning of a record.
fn cut(block: &RecordBlock<'_>) -> Vec<u8> {
    let mut record = block.head.clone().into_bytes();
    if let RecordContent::Bytes(content) = &block.content {
        let room = RECORD_BYTES_MAX.saturating_sub(record.len()).min(content.len());
        record.extend_from_slice(content.get(..room).unwrap_or_default());
    }
    record
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use chrono::DateTime;

    use super::*;
    use crate::segment::CaptureBody;

    fn group(number: u32) -> CaptureGroup {
        let words: String =
            (0..200_u32).map(|word| format!("w{} ", word.wrapping_mul(number) % 887)).collect();
        let http = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html><body class=frame>{words}</body></html>"
        );
        CaptureGroup {
            url: format!("http://host{}.org/{number}", number % 2),
            time: DateTime::UNIX_EPOCH,
            address: None,
            request: None,
            body: CaptureBody::Response { http: Bytes::from(http), truncated: None },
            payload_digest: None,
            protocols: Vec::new(),
            metadata: Vec::new(),
        }
    }

    #[test]
    fn a_sample_stays_small_and_has_early_and_late_captures() {
        let mut samples = Samples::default();
        (0..63).for_each(|number| samples.offer(&group(number)));
        assert!(samples.train(1 << 14).is_none());
        (63..4000).for_each(|number| samples.offer(&group(number)));
        assert_eq!(samples.kept.len(), CAPTURES_MAX);
        let half = HostGroup::ALL.split().map(|hosts| samples.of(hosts).kept.len());
        assert!(half.iter().all(|count| *count >= CAPTURES_MIN), "{half:?}");
        let is_of = |sample: &RecordSample, numbers: std::ops::Range<u32>| {
            let text = String::from_utf8_lossy(&sample.records[0]).into_owned();
            numbers.into_iter().any(|number| text.contains(&format!(".org/{number}\r\n")))
        };
        let late = samples.kept.iter().filter(|sample| is_of(sample, 2000..4000)).count();
        assert!((CAPTURES_MAX / 3..CAPTURES_MAX * 2 / 3).contains(&late), "{late}");
        let dictionary = samples.train(1 << 14).expect("enough to learn from");
        assert!(dictionary.len() <= 1 << 14);
        let has = |text: &[u8]| memchr::memmem::find(&dictionary, text).is_some();
        assert!(has(b"class=frame") && has(b"WARC-Block-Digest: sha256:"));
    }
}
