//! Any bytes are split into head and body, and removing the chunked coding never makes a body longer.
#![no_main]

use archive_storage::warc::{HttpHead, dechunk, split};
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let message = Bytes::copy_from_slice(data);
    let (head, body) = split(&message);
    assert_eq!(head.len() + body.len(), message.len());
    let parsed = HttpHead::parse(&head);
    let _ = (parsed.status(), parsed.media_type(), parsed.is_chunked());
    assert!(dechunk(&body).len() <= body.len());
});
