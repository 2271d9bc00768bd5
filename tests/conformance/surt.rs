//! SURT compared with the Internet Archive's canonicalizer (the Python package `surt`).

use archive_storage::address::surt;

use super::{Tally, text};

#[test]
fn pairs() {
    let Some(pairs) = text("url/surt.tsv") else { return };
    let mut tally = Tally::default();
    for line in pairs.split('\n').filter(|line| !line.is_empty()) {
        let (url, expected) = line.rsplit_once('\t').unwrap();
        let found = surt(url);
        if found == expected {
            tally.held();
        } else {
            tally.missed(&format!("{url:?} gives {found:?}, not {expected:?}"), None);
        }
    }
    tally.finish("SURT pairs", 332);
}
