//! Any bytes called a style sheet are read within the limits, to canonical links.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    archive_fuzz::read_document("text/css", data);
});
