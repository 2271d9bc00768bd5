//! Owner and readers read what was committed.

use std::path::Path;
use std::sync::Arc;

use super::{
    Catalogue, CatalogueContents, FILE, FILE_BYTES_MAX, FORMAT, FORMAT_VERSION, SegmentEntry, SegmentState,
};
use crate::backend::RealDisk;
use crate::checkpoint::StateError;
use crate::ids::SegmentId;

fn catalogue(folder: &Path) -> Catalogue {
    Catalogue::new(Arc::new(RealDisk), folder)
}

fn contents() -> CatalogueContents {
    let segment = SegmentEntry {
        file: "a.warc.zst".into(),
        state: SegmentState::Closed,
        captures: 1,
        records: 12,
        bytes: 3456,
        first_time: Some(-1),
        last_time: None,
        sha256: Some("00ff".into()),
    };
    CatalogueContents {
        numbers: [("one".to_owned(), 1), ("large".to_owned(), u64::MAX)].into(),
        blocks: [("urls".to_owned(), vec![1, 2, 3])].into(),
        mimes: vec![String::new(), "text/html".into()],
        segments: [(SegmentId(7), segment)].into(),
        settings: [("name".to_owned(), b"value".to_vec())].into(),
    }
}

fn assert_same(left: &CatalogueContents, right: &CatalogueContents) {
    assert_eq!(left.numbers, right.numbers);
    assert_eq!(left.blocks, right.blocks);
    assert_eq!(left.mimes, right.mimes);
    assert_eq!(left.segments, right.segments);
    assert_eq!(left.settings, right.settings);
}

#[test]
fn commits_are_read_back_and_only_differences_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let catalogue = catalogue(folder.path());
    assert!(!catalogue.exists().unwrap());
    assert_same(&catalogue.load().unwrap(), &CatalogueContents::default());
    let first = contents();
    catalogue.commit(&CatalogueContents::default(), &first).unwrap();
    assert_same(&catalogue.load().unwrap(), &first);
    let mut second = first.clone();
    second.settings.clear();
    second.settings.insert("other".into(), Vec::new());
    second.segments.insert(SegmentId(8), first.segments[&SegmentId(7)].clone());
    second.segments.remove(&SegmentId(7));
    second.numbers.insert("one".into(), 2);
    second.numbers.remove("large");
    second.mimes.pop();
    catalogue.commit(&first, &second).unwrap();
    assert_same(&catalogue.load().unwrap(), &second);
    catalogue.settle().unwrap();
    assert_same(&catalogue.load().unwrap(), &second);
}

#[test]
fn a_newer_format_is_refused_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let catalogue = catalogue(folder.path());
    let mut newer = contents();
    newer.numbers.insert(FORMAT.into(), FORMAT_VERSION + 1);
    catalogue.commit(&CatalogueContents::default(), &newer).unwrap();
    let error = catalogue.load().unwrap_err();
    assert!(matches!(error, StateError::NewerFormat { found: 5, supported: 4 }));
    assert_eq!(
        error.to_string(),
        "this archive has format 5, but this release reads formats up to 4: use a newer release"
    );
}

/// The file is sparse: only reading it would fill memory.
#[test]
fn a_file_of_a_stranger_does_not_fill_memory() {
    let folder = tempfile::tempdir().unwrap();
    let file = std::fs::File::create(folder.path().join(FILE)).unwrap();
    file.set_len(FILE_BYTES_MAX + 1).unwrap();
    let error = catalogue(folder.path()).load().unwrap_err();
    assert!(error.to_string().contains(FILE), "{error}");
}
