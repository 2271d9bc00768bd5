//! A topic file with any bytes is read or refused; a topic that was read is written unchanged, and classifies any page.
#![no_main]

use archive_math::focus::{Knowledge, TopicText};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some(knowledge) = Knowledge::from_bytes(bytes) else { return };
    assert_eq!(knowledge.to_bytes(), bytes);
    let page = TopicText { url: "http://a.test/x", title: "a", headings: Vec::new(), text: "b c" };
    assert_eq!(knowledge.page(&page).len(), knowledge.classes());
});
