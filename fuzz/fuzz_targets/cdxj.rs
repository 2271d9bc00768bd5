//! With any content in the index of a closed segment, the archive opens, accepts captures and builds dictionaries.
#![no_main]

use std::path::Path;
use std::sync::{Arc, LazyLock};

use archive_storage::backend::{Disk, SimulatedDisk, replace_file};
use archive_storage::segment::{CaptureBody, CaptureGroup, SegmentOptions, Segments};
use libfuzzer_sys::fuzz_target;

fn options() -> SegmentOptions {
    SegmentOptions { seed: Some(1), level: Some(1), builds_beside: false, ..SegmentOptions::default() }
}

fn open(disk: &SimulatedDisk) -> Segments {
    let opened = Segments::open(Arc::new(disk.clone()), Path::new("/a"), options());
    opened.expect("a healthy disk").0
}

fn append(segments: &mut Segments, number: u64) {
    // Bytes that hardly compress, so that a dictionary soon pays off.
    let body: Vec<u8> =
        (0..40_000_u64).map(|place| (place.wrapping_mul(place + number) >> 7) as u8).collect();
    let group = CaptureGroup {
        url: format!("http://a/{number}"),
        time: chrono::DateTime::UNIX_EPOCH,
        address: None,
        request: None,
        payload_digest: None,
        body: CaptureBody::Resource { content_type: "text/plain".into(), body: body.into() },
        protocols: Vec::new(),
        metadata: Vec::new(),
    };
    let encoded = segments.encoder().encode(group).expect("memory");
    segments.append(&encoded).expect("a healthy disk");
}

/// An archive with a closed segment, and the name of its index.
static ARCHIVE: LazyLock<(SimulatedDisk, String)> = LazyLock::new(|| {
    let disk = SimulatedDisk::new(1);
    disk.create_dir_all(Path::new("/a")).expect("an empty disk takes a folder");
    let mut segments = open(&disk);
    append(&mut segments, 0);
    let name = segments.list().first().map(|info| info.name.clone()).unwrap_or_default();
    segments.close().expect("a healthy disk");
    (disk, format!("/a/segments/{name}.cdxj"))
});

fuzz_target!(|data: &[u8]| {
    let (disk, index) = &*ARCHIVE;
    let disk = disk.copy();
    replace_file(&disk, Path::new(index), data).expect("an empty disk takes a file");
    let mut segments = open(&disk);
    for number in 1..4 {
        append(&mut segments, number);
        segments.rotate_due().expect("damage in an index is not an error");
    }
    segments.close().expect("a healthy disk");
});
