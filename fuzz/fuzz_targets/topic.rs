//! The file of a topic, whatever its bytes, is read or refused; what was read is written as it was, and judges any page.
#![no_main]

use archive::topic::{Knowledge, PageText};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some(knowledge) = Knowledge::from_bytes(bytes) else { return };
    assert_eq!(knowledge.to_bytes(), bytes);
    let page = PageText { url: "http://a.test/x", title: "a", headings: Vec::new(), text: "b c" };
    assert_eq!(knowledge.page(&page).len(), knowledge.classes());
});
