//! Any items of an RSS or Atom feed are read within the limits, and their entries refer to links.
#![no_main]

use libfuzzer_sys::fuzz_target;

const RSS: &str =
    r#"<?xml version="1.0"?><rss version="2.0" xmlns:media="http://search.yahoo.com/mrss/"><channel>"#;
const ATOM: &str = r#"<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom" xml:base="/b/">"#;

fuzz_target!(|data: &[u8]| {
    let Some((kind, items)) = data.split_first() else { return };
    let (start, end) = if kind & 1 == 0 { (RSS, "</channel></rss>") } else { (ATOM, "</feed>") };
    let feed = [start.as_bytes(), items, end.as_bytes()].concat();
    archive_fuzz::read_document("application/xml", &feed);
});
