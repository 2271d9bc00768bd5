//! Reading any file, as WARC and as WARC or ARC, terminates and takes no more memory than its limit allows.
#![no_main]

use archive_storage::warc::{ReadLimits, RecordError, RecordReader};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    read(data, |records| records);
    read(data, RecordReader::with_arc);
});

fn read<'d>(data: &'d [u8], as_format: fn(RecordReader<&'d [u8]>) -> RecordReader<&'d [u8]>) {
    let mut limits = ReadLimits::default();
    limits.content_bytes_max = 1 << 16;
    let (mut records, mut broken) = (0_usize, 0_usize);
    for record in as_format(RecordReader::new(data)).with_limits(limits) {
        match record {
            Ok(record) => {
                assert!(record.content.len() <= 1 << 16);
                assert!(record.offset + record.length <= data.len() as u64);
                let _ = record.payload();
                records += 1;
            }
            Err(RecordError::Broken(_)) => broken += 1,
            Err(error) => panic!("memory can always be read: {error}"),
        }
        // A compressed file can hold more records than bytes, but not more broken places than members and lines.
        assert!(broken <= data.len() + records + 1);
    }
}
