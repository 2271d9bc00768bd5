//! Any bytes called XML are read within the limits: entities, depth, attributes, namespaces.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    archive_fuzz::read_document("application/xml", data);
});
