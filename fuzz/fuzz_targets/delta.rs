//! Any delta is applied to any document, there or back, or refused. Of two documents the delta leads there and back.
//!
//! The input is a document, a zero byte, and a delta as JSON or another document.
#![no_main]

use archive_books::change::{
    patch, read_delta,
    xml::{Delta, Tree},
};
use archive_web::parse::{ParseLimits, with_xml_tree};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some(middle) = data.iter().position(|byte| *byte == 0) else { return };
    let (document, delta) = (&data[..middle], &data[middle + 1..]);
    if let Ok(delta) = read_delta(delta) {
        let _ = patch(document.to_vec(), delta.clone(), false);
        let _ = patch(document.to_vec(), delta, true);
    }
    let tree = |xml: &[u8]| with_xml_tree(xml, None, &ParseLimits::default(), Tree::of);
    if let (Some(old), Some(new)) = (tree(document), tree(delta)) {
        let delta = Delta::between(&old, &new);
        assert_eq!(delta.apply(&old).as_ref(), Ok(&new));
        assert_eq!(delta.inverted().expect("it leads back").apply(&new).as_ref(), Ok(&old));
    }
});
