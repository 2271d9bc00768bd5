//! Any bytes are read as a PDF file, an office file and an e-mail without a panic, as far as they are not the fault of libraries, which
//! have a process of their own.
#![no_main]

use archive_web::parse::{DocumentKind, OFFICE_TEXT_BYTES_MAX, read_office};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    for kind in [DocumentKind::Pdf, DocumentKind::Office, DocumentKind::Mail] {
        let document = read_office(kind, data.to_vec());
        assert!(document.text.len() <= OFFICE_TEXT_BYTES_MAX);
    }
});
