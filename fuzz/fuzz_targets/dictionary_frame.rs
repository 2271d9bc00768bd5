//! A file with any bytes in its dictionary frame is read to its end.
#![no_main]

use archive_storage::warc::{ReadLimits, RecordReader, SKIPPABLE_DICTIONARY};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((cut, data)) = data.split_first_chunk::<2>() else { return };
    let cut = usize::from(u16::from_le_bytes(*cut)).min(data.len());
    let (dictionary, rest) = data.split_at(cut);
    let mut file = SKIPPABLE_DICTIONARY.to_le_bytes().to_vec();
    file.extend_from_slice(&(dictionary.len() as u32).to_le_bytes());
    file.extend_from_slice(dictionary);
    file.extend_from_slice(rest);
    let mut limits = ReadLimits::default();
    limits.content_bytes_max = 1 << 16;
    for record in RecordReader::new(&file[..]).with_limits(limits).flatten() {
        assert!(record.offset + record.length <= file.len() as u64);
    }
});
