//! Any file is imported, as a WACZ package, as a saved page and as a cache of HTTrack: its readable parts are stored, and the
//! rest is reported.
#![no_main]

use std::fs;
use std::time::Duration;

use archive_base::control::Control;
use archive_books::recorder::{self, Memory};
use archive_storage::segment::SegmentOptions;
use archive_vault::import::{self, ImportForm, ImportOptions};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("package.wacz");
    fs::write(&file, data).expect("an empty disk takes a file");
    let segments =
        SegmentOptions { seed: Some(1), level: Some(1), builds_beside: false, ..SegmentOptions::default() };
    let mut store = recorder::open(&folder.path().join("a"), segments).expect("a healthy disk").store;
    let cache = folder.path().join("hts-cache");
    fs::create_dir(&cache).expect("an empty disk takes a folder");
    fs::write(cache.join("new.zip"), data).expect("an empty disk takes a file");
    for (form, file) in [
        (ImportForm::Records, file.clone()),
        (ImportForm::Mhtml, file),
        (ImportForm::Httrack, folder.path().to_owned()),
    ] {
        let options = ImportOptions {
            files: vec![file],
            form,
            threads: 1,
            full_text: false,
            checkpoint_every: Duration::from_secs(60),
            memory: Memory::default(),
            keep_cut: true,
            accept_wrong_signatures: true,
        };
        let (is_whole, _) = import::run(&mut store, &options, &Control::default(), &mut |_| {})
            .expect("no file ends an import");
        assert!(is_whole);
    }
});
