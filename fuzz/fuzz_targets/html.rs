//! Any bytes served as HTML are read within the limits and yield canonical links.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    archive_fuzz::read_document("text/html; charset=utf-8", data);
});
