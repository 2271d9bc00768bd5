//! Torn tails, flipped bytes, full disks and failed syncs.

use super::*;

/// Three groups in a segment that was never closed: its name, its bytes, and the ends of the groups.
fn open_segment(codec: Codec) -> (String, Vec<u8>, Vec<u64>) {
    let archive = MemoryArchive::new(codec);
    let (mut segments, _) = archive.open();
    let appended = append(&mut segments, (0..3).map(|number| response(number, &page(number, 60))));
    let name = format!("{}.open", segments.list()[0].name);
    (name.clone(), archive.read(&name), appended.into_iter().map(|appended| appended.end.offset).collect())
}

#[test]
fn a_torn_tail_is_cut_at_the_last_whole_group() {
    for codec in [Codec::Zstd, Codec::Gzip] {
        let (name, whole, ends) = open_segment(codec);
        assert_eq!(ends[2], whole.len() as u64);
        for length in ends[1]..=ends[2] {
            let archive = MemoryArchive::new(codec);
            archive.write(&name, &whole[..length as usize]);
            let (mut segments, recovered) = archive.open();
            let expected = if length == ends[2] { 3 } else { 2 };
            let [recovered] = &recovered[..] else { panic!("{recovered:?}") };
            assert_eq!((recovered.captures, &recovered.kept_as), (expected, &None));
            assert_eq!(recovered.cut_bytes, length - ends[expected as usize - 1]);
            assert_eq!(replayed(&segments, Watermark::default()).len() as u64, expected);
            let appended = append(&mut segments, [response(7, b"new")]);
            assert_eq!(appended[0].main.segment, SegmentId(1), "writing continues in a new segment");
            assert_eq!(replayed(&segments, Watermark::default()).len() as u64, expected + 1);
        }
    }
}

#[test]
fn a_flipped_byte_in_the_tail_costs_the_last_group_only() {
    for codec in [Codec::Zstd, Codec::Gzip] {
        let (name, whole, ends) = open_segment(codec);
        for place in ends[1]..ends[2] {
            let archive = MemoryArchive::new(codec);
            let mut bytes = whole.clone();
            bytes[place as usize] ^= 0x20;
            archive.write(&name, &bytes);
            let (segments, recovered) = archive.open();
            let captures = replayed(&segments, Watermark::default());
            // Not every bit affects the content; then the checksum still holds.
            assert!((2..=3).contains(&captures.len()), "byte {place}");
            for (number, capture) in (0..).zip(&captures) {
                assert_eq!(capture.payload(), page(number, 60), "byte {place}");
            }
            assert_eq!(recovered[0].captures, captures.len() as u64, "{codec:?} byte {place} of {ends:?}");
        }
    }
}

#[test]
fn what_is_cut_off_is_kept_when_whole_captures_are_in_it() {
    for codec in [Codec::Zstd, Codec::Gzip] {
        let (name, mut bytes, ends) = open_segment(codec);
        bytes[ends[0] as usize + 40] ^= 1;
        let archive = MemoryArchive::new(codec);
        archive.write(&name, &bytes);
        let (segments, recovered) = archive.open();
        assert_eq!(replayed(&segments, Watermark::default()).len(), 1);
        let kept = archive.read(recovered[0].kept_as.as_deref().expect("a file"));
        assert_eq!(kept, bytes[ends[0] as usize..]);
    }
}

#[test]
fn damage_before_what_is_relied_on_is_reported_and_left_alone() {
    for codec in [Codec::Zstd, Codec::Gzip] {
        let (name, mut bytes, ends) = open_segment(codec);
        bytes[ends[0] as usize + 40] ^= 1;
        let mut archive = MemoryArchive::new(codec);
        archive.options.relied_on = Watermark { segment: SegmentId(0), offset: ends[2] }.into();
        archive.write(&name, &bytes);
        let (segments, recovered) = archive.open();
        let [recovered] = &recovered[..] else { panic!("{recovered:?}") };
        assert_eq!(recovered.damage.iter().map(|damage| damage.offset).collect::<Vec<_>>(), [ends[0]]);
        assert_eq!((recovered.cut_bytes, recovered.captures), (0, 2));
        assert_eq!(archive.read(&recovered.name), bytes);
        let mut urls = Vec::new();
        let broken =
            segments.replay(Watermark::default(), &mut |capture| urls.push(capture.url)).expect("replay");
        assert_eq!(urls, ["http://example.org/page/0", "http://example.org/page/2"]);
        assert_eq!(broken.len(), 1);
    }
}

#[test]
fn a_full_disk_takes_nothing_and_later_takes_it() {
    let archive = MemoryArchive::new(Codec::Zstd);
    let (mut segments, _) = archive.open();
    append(&mut segments, [response(1, b"one")]);
    let encoded = segments.encoder().encode(response(2, &page(2, 500))).expect("encode");
    let before = segments.watermarks();
    archive.disk.set_faults(Faults { capacity: Some(before.open[0].offset + 100), ..Faults::default() });
    let error = segments.append(&encoded).expect_err("no room");
    assert!(error.is_disk_full(), "{error}");
    assert_eq!(segments.watermarks(), before);
    archive.disk.set_faults(Faults::default());
    let appended = segments.append(&encoded).expect("room again");
    assert_eq!(segments.sync().expect("sync").open, [appended.end]);
    assert_eq!(replayed(&segments, Watermark::default()).len(), 2);
}

#[test]
fn a_failed_sync_ends_all_writing() {
    let archive = MemoryArchive::new(Codec::Zstd);
    let (mut segments, _) = archive.open();
    append(&mut segments, [response(1, b"one")]);
    archive.disk.set_faults(Faults { failing_sync_one_in: 1, ..Faults::default() });
    assert!(matches!(segments.sync(), Err(SegmentError::Io { .. })));
    archive.disk.set_faults(Faults::default());
    let encoded = segments.encoder().encode(response(2, b"two")).expect("encode");
    assert!(matches!(segments.sync(), Err(SegmentError::Poisoned)));
    assert!(matches!(segments.append(&encoded), Err(SegmentError::Poisoned)));
    assert!(matches!(segments.rotate(None), Err(SegmentError::Poisoned)));
}

#[test]
fn what_was_appended_after_a_lost_capture_is_not_kept() {
    let mut archive = MemoryArchive::new(Codec::Zstd);
    archive.options.host_groups = 2;
    let (mut segments, _) = archive.open();
    let appended = append(&mut segments, (0..20).map(|number| hosted(number % 7, number, 40)));
    drop(segments);
    // One byte of the twelfth group changes: that group and all later ones were never synced.
    let lost = appended[11].main;
    let entries = archive.files();
    let file = entries.iter().find(|name| name.contains(&format!("-{:05}-", lost.segment.0)));
    let file = MemoryArchive::path(file.expect("the segment"));
    assert!(archive.disk.flip(&file, lost.offset as usize + 30, 1));
    let (segments, recovered) = archive.open();
    assert!(recovered.iter().all(|recovered| recovered.kept_as.is_some()), "{recovered:?}");
    assert_eq!(replayed(&segments, Watermarks::default()).len(), 11);
    drop(segments);
    let (mut segments, recovered) = archive.open();
    assert_eq!(recovered, []);
    append(&mut segments, [hosted(1, 100, 40)]);
    let captures = replayed(&segments, Watermarks::default());
    assert_eq!(captures.last().map(|capture| capture.url.as_str()), Some("http://host1.org/100"));
}

#[test]
fn damage_is_never_read_as_a_record() {
    for codec in [Codec::Zstd, Codec::Gzip] {
        let archive = MemoryArchive::new(codec);
        let (mut segments, _) = archive.open();
        let encoded = segments.encoder().encode(response(1, &page(1, 50))).expect("encode");
        let appended = segments.append(&encoded).expect("append");
        let right = segments.read(appended.main).expect("read");
        let path = MemoryArchive::path(&format!("{}.open", segments.list()[0].name));
        let start = appended.main.offset as usize;
        for place in start..start + appended.main.length as usize {
            archive.disk.flip(&path, place, 0x10);
            // A gzip head has bytes that do not affect the content.
            match segments.read(appended.main) {
                Ok(record) => assert_eq!(record, right, "byte {place}"),
                Err(SegmentError::Corrupted { segment: SegmentId(0), .. }) => {}
                Err(error) => panic!("{error}"),
            }
            archive.disk.flip(&path, place, 0x10);
        }
    }
}

#[test]
fn opening_does_not_put_what_a_segment_is_in_the_place_of_what_it_was() {
    let archive = MemoryArchive::new(Codec::Gzip);
    let (mut segments, _) = archive.open();
    append(&mut segments, (0..5).map(|number| response(number, &page(number, 60))));
    segments.rotate(None).expect("close");
    let info = segments.list()[0].clone();
    segments.close().expect("close");
    let manifest = archive.read("manifest.sha256");
    // One byte of a gzip head does not affect the content.
    let mut damaged = archive.read(&info.name);
    damaged[4] ^= 1;
    archive.write(&info.name, &damaged);
    let index = format!("{}.cdxj", info.name);
    for lost in [
        &["segments.jsonl"][..],
        &["manifest.sha256"],
        &[index.as_str()],
        &[index.as_str(), "segments.jsonl"],
    ] {
        for file in lost {
            archive.disk.remove(&MemoryArchive::path(file)).expect("remove");
        }
        let (segments, _) = archive.open();
        let found = segments.list()[0].clone();
        assert_eq!((found.sha256, found.index), (info.sha256, info.index), "without {lost:?}");
        assert_eq!(archive.read("manifest.sha256"), manifest, "without {lost:?}");
    }
    // A wrong bit in the manifest does not affect a sound segment, whatever opens the archive.
    archive.write(&info.name, &{
        damaged[4] ^= 1;
        damaged
    });
    let mut wrong = manifest.clone();
    wrong[3] = if wrong[3] == b'0' { b'1' } else { b'0' };
    archive.write("manifest.sha256", &wrong);
    archive.open();
    assert_eq!(archive.read("manifest.sha256"), manifest);
}

#[test]
fn a_missing_segment_is_not_forgotten_and_its_number_not_given_again() {
    let archive = MemoryArchive::new(Codec::Zstd);
    let (mut segments, _) = archive.open();
    append(&mut segments, (0..5).map(|number| response(number, &page(number, 60))));
    segments.close().expect("close");
    let (manifest, summaries) = (archive.read("manifest.sha256"), archive.read("segments.jsonl"));
    let name = archive.files().into_iter().find(|file| file.ends_with(".warc.zst")).expect("a segment");
    archive.disk.remove(&MemoryArchive::path(&name)).expect("remove");
    let (mut segments, _) = archive.open();
    assert_eq!(
        segments.missing().iter().map(|info| (info.captures, info.name.clone())).collect::<Vec<_>>(),
        [(5, name)]
    );
    let appended = append(&mut segments, [response(9, b"new")]);
    assert_eq!(appended[0].main.segment, SegmentId(1));
    segments.close().expect("close");
    assert!(archive.read("manifest.sha256").starts_with(&manifest));
    assert!(archive.read("segments.jsonl").starts_with(&summaries));
    let (segments, _) = archive.open();
    assert_eq!((segments.missing().len(), segments.list().len()), (1, 1));
    assert_eq!(segments.watermarks().captures, 6);
}
