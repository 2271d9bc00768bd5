//! Any record head is parsed or refused, and a parsed head survives a round trip.
#![no_main]

use archive_storage::warc::RecordHeader;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok((header, length)) = RecordHeader::parse(data) else { return };
    assert!(length <= data.len());
    let _ = (header.record_type(), header.content_length(), header.date(), header.target_uri());
    let text = header.to_string();
    let (again, length) = RecordHeader::parse(text.as_bytes()).expect("what we write is a head");
    assert_eq!(length, text.len());
    assert_eq!(again.fields.len(), header.fields.len());
});
