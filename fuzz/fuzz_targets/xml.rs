//! Any bytes served as XML are read within the limits of entities, depth, attributes and namespaces, and are validated,
//! with the same bytes as the text of their external DTD and entities.
#![no_main]

use archive_web::parse::{ParseLimits, external_text, validate};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    archive_fuzz::read_document("application/xml", data);
    let mut itself = |_: Option<&str>, system: &str| {
        Some((system.to_owned(), external_text(data, None))).filter(|_| system.len() < 8)
    };
    let _ = validate(data, Some("application/xml"), &ParseLimits::default(), &mut itself);
});
