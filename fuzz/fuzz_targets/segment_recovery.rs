//! An archive with any bytes in its open segment opens, and opening it again finds the same.
#![no_main]

use std::path::Path;
use std::sync::Arc;

use archive_storage::Watermark;
use archive_storage::backend::{Disk, SimulatedDisk, replace_file};
use archive_storage::segment::{SegmentOptions, Segments};
use libfuzzer_sys::fuzz_target;

fn captures(disk: &SimulatedDisk) -> Vec<(String, u64)> {
    let options = SegmentOptions { seed: Some(1), ..SegmentOptions::default() };
    let (segments, _) =
        Segments::open(Arc::new(disk.clone()), Path::new("/a"), options).expect("a healthy disk");
    let mut captures = Vec::new();
    segments
        .replay(Watermark::default(), &mut |capture| captures.push((capture.url, capture.main.offset)))
        .expect("a healthy disk");
    captures
}

fuzz_target!(|data: &[u8]| {
    let Some((kind, data)) = data.split_first() else { return };
    let extension = if kind & 1 == 0 { "zst" } else { "gz" };
    let suffix = if kind & 2 == 0 { ".open" } else { "" };
    let disk = SimulatedDisk::new(1);
    disk.create_dir_all(Path::new("/a/segments")).expect("an empty disk takes a folder");
    let path = format!("/a/segments/A-20260101000000000-00000-h.warc.{extension}{suffix}");
    replace_file(&disk, Path::new(&path), data).expect("an empty disk takes a file");
    let first = captures(&disk);
    let files = disk.files();
    assert_eq!(captures(&disk), first);
    assert!(disk.files() == files, "opening again changed a file");
});
