//! Any files of a BV graph give a graph or an error.
#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((cut, data)) = data.split_first_chunk::<2>() else { return };
    let cut = usize::from(u16::from_le_bytes(*cut)).min(data.len());
    let (properties, graph) = data.split_at(cut);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let name = folder.path().join("g");
    fs::write(name.with_extension("properties"), properties).expect("an empty disk takes a file");
    fs::write(name.with_extension("graph"), graph).expect("an empty disk takes a file");
    let _ = archive_math::graphs::read(&name);
});
