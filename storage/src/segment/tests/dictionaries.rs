//! Dictionaries: what they save, when they are renewed, and how damage to them is repaired.

use super::*;

/// Text that compresses badly.
fn noise(number: u64, length: u64) -> Vec<u8> {
    (0..length).map(|place| (place.wrapping_mul(place + number * 7919) >> 7) as u8).collect()
}

#[test]
fn versions_beside_their_base_cost_little_and_stand_alone() {
    let archive = MemoryArchive::new(Codec::Zstd);
    let (mut segments, _) = archive.open();
    append(&mut segments, [response(0, &page(0, 300))]);
    let early = segments.encoder().encode(response(3, &page(3, 300))).expect("encode");
    segments.rotate(dictionary(0..6)).expect("rotate");
    // Encoded for the previous segment, appended to this one.
    let again = segments.append(&early).expect("append");
    assert!(
        u64::from(again.main.length) * 2 < early.packed_length(),
        "{} of {}",
        again.main.length,
        early.packed_length()
    );
    let record = segments.read(again.main).expect("read");
    assert_eq!(record.payload(), page(3, 300));
    let captures = replayed(&segments, Watermark::default());
    assert_eq!(captures.len(), 2);
    assert_eq!(captures[1].payload(), page(3, 300));
    assert_eq!(replayed(&segments, Watermark { segment: SegmentId(1), offset: 0 }).len(), 1);
}

#[test]
fn a_damaged_dictionary_is_made_good() {
    for guard in [Guard::Copy, Guard::Parity] {
        damage_dictionary(guard);
    }
}

#[test]
fn a_dictionary_beyond_repair_does_not_keep_the_archive_closed() {
    for suffix in ["", ".open"] {
        let archive = MemoryArchive::new(Codec::Zstd);
        // A dictionary frame that is longer than its file, as fuzzing found it.
        let name = format!("A-20260101000000000-00000-h.warc.zst{suffix}");
        archive.write(&name, b"\x5d\x2a\x4d\x18\x1f\x8b\x08\x00\x00\x0d\x1f");
        let (mut segments, _) = archive.open();
        let mut count = 0;
        segments
            .replay(Watermarks::default(), &mut |_| count += 1)
            .expect("damage is reported, not an error");
        assert_eq!(count, 0);
        append(&mut segments, [response(1, b"one")]);
        assert_eq!(segments.list().iter().map(|info| info.captures).sum::<u64>(), 1);
    }
}

#[test]
fn the_guard_asked_for_once_stays() {
    let mut archive = MemoryArchive::new(Codec::Zstd);
    let mut guards = Vec::new();
    // Requested; not requested; the same with lost summaries; another one.
    for (asked, is_known) in
        [(Some(Guard::Copy), true), (None, true), (None, false), (Some(Guard::Parity), true)]
    {
        archive.options.guard = asked;
        if !is_known {
            archive.write("segments.jsonl", b"");
        }
        let (mut segments, _) = archive.open();
        segments.rotate(dictionary(0..6)).expect("rotate");
        append(&mut segments, [response(0, &page(0, 310))]);
        segments.rotate(None).expect("rotate");
        guards.extend(segments.list().last().and_then(|info| info.guard));
        let name = segments.list().last().map(|info| info.name.clone()).unwrap_or_default();
        let bytes = archive.read(&name);
        let frame = u32::from_le_bytes(bytes[4..8].try_into().expect("four bytes")) as usize + 8;
        assert!(bytes.ends_with(&guards[guards.len() - 1].frame(&bytes[..frame])));
    }
    assert_eq!(guards, [Guard::Copy, Guard::Copy, Guard::Copy, Guard::Parity]);
}

fn damage_dictionary(guard: Guard) {
    let mut archive = MemoryArchive::new(Codec::Zstd);
    archive.options.guard = Some(guard);
    let (mut segments, _) = archive.open();
    segments.rotate(dictionary(0..6)).expect("rotate");
    let appended = append(&mut segments, (0..6).map(|number| response(number, &page(number, 310))));
    segments.rotate(None).expect("rotate");
    let name = segments.list()[0].name.clone();
    let length = archive.read(&name).len();
    let frame = u32::from_le_bytes(archive.read(&name)[4..8].try_into().expect("four bytes")) as usize + 8;
    let last = guard.frame(&archive.read(&name)[..frame]).len();
    for place in [0, 1, 4, 6, 8, 9, 30, frame - 1, length - last, length - last + 5, length - 1] {
        let damaged = archive.disk.copy();
        assert!(damaged.flip(&MemoryArchive::path(&name), place, 0x40));
        let options = archive.options.clone();
        let (segments, _) =
            Segments::open(Arc::new(damaged), &PathBuf::from("/archive"), options).expect("open");
        for (number, appended) in (0..).zip(&appended) {
            let record = segments.read(appended.main).unwrap_or_else(|error| panic!("byte {place}: {error}"));
            assert_eq!(record.payload(), page(number, 310));
        }
        let mut count = 0;
        segments.replay(Watermark::default(), &mut |_| count += 1).expect("replay");
        assert_eq!(count, 6, "byte {place}");
    }
}

#[test]
fn a_segment_gives_way_when_a_dictionary_pays() {
    let archive = MemoryArchive::new(Codec::Zstd);
    let (mut segments, _) = archive.open();
    // Text that compresses badly, so that a recapture without a base costs much.
    let pages: Vec<Vec<u8>> = (0..8u64).map(|number| noise(number, 30_000)).collect();
    let mut rounds = 0;
    let mut reason = None;
    while reason.is_none() {
        append(&mut segments, (0..).zip(&pages).map(|(number, page)| response(number, page)));
        reason = segments.rotate_due().expect("a good disk");
        rounds += 1;
    }
    assert_eq!(reason, Some(RotationReason::DictionaryPays));
    assert!((2..5).contains(&rounds), "{rounds}");
    for _ in 0..20 {
        let appended = append(&mut segments, (0..).zip(&pages).map(|(number, page)| response(number, page)));
        assert!(appended.iter().all(|appended| appended.main.length < 1000), "{appended:?}");
        assert_eq!(segments.rotate_due().expect("a good disk"), None);
    }
    // Another process recalls the versions: it needs no more rounds than the first had.
    segments.close().expect("close");
    let (mut segments, _) = archive.open();
    for _ in 0..rounds {
        append(&mut segments, (0..).zip(&pages).map(|(number, page)| response(number, page)));
        segments.rotate_due().expect("a good disk");
    }
    let appended = append(&mut segments, [response(3, &pages[3])]);
    assert!(appended[0].main.length < 1000, "{appended:?}");
}

#[test]
fn a_full_segment_hands_its_trained_dictionary_on_while_it_serves() {
    let mut archive = MemoryArchive::new(Codec::Zstd);
    archive.options.captures_max = 500;
    let (mut segments, _) = archive.open();
    // Pages of a site that share their template, each captured once; then those of a site with another template.
    let body = |number: u32, frame: u64| {
        [noise(frame, 10_000), b"text of its own ".repeat(800), number.to_le_bytes().to_vec()].concat()
    };
    let mut closed = |numbers: std::ops::Range<u32>, frame: u64| -> Vec<RotationReason> {
        let rotated = numbers.filter_map(|number| {
            append(&mut segments, [response(number, &body(number, frame))]);
            segments.rotate_due().expect("a good disk")
        });
        rotated.collect()
    };
    let reasons = closed(0..2000, 1);
    assert_eq!(reasons[0], RotationReason::DictionaryPays);
    assert_eq!(reasons[1..], [RotationReason::Full; 3]);
    assert!(closed(2000..2900, 2).contains(&RotationReason::DictionaryPays));
    segments.rotate(None).expect("rotate");
    let dictionaries: Vec<Vec<u8>> = segments
        .list()
        .iter()
        .filter(|info| info.dictionary.is_some())
        .map(|info| {
            let bytes = archive.read(&info.name);
            let frame = u32::from_le_bytes(bytes[4..8].try_into().expect("four bytes")) as usize + 8;
            bytes[..frame].to_vec()
        })
        .collect();
    assert!(dictionaries[1..4].iter().all(|dictionary| *dictionary == dictionaries[0]));
    assert_ne!(dictionaries.last(), dictionaries.first());
    assert_eq!(replayed(&segments, Watermarks::default()).len(), 2900);
}

#[test]
fn a_group_is_split_when_it_outgrows_its_dictionary() {
    let archive = MemoryArchive::new(Codec::Zstd);
    let (mut segments, _) = archive.open();
    let body = |number: u64, length: u64| -> Vec<u8> {
        (0..length).map(|place| (place.wrapping_mul(place + number * 7919) >> 9) as u8).collect()
    };
    let group = |number: u32| {
        let url = format!("http://host{}.org/{number}", number % 21);
        CaptureGroup { url, ..response(number, &body(u64::from(number), 400_000)) }
    };
    let mut number = 0;
    while segments.list().iter().filter(|info| info.is_open).count() < 2 {
        append(&mut segments, [group(number % 21)]);
        segments.rotate_due().expect("a good disk");
        number += 1;
        assert!(number < 200, "8.4 MB of pages were never split");
    }
    // Every page now has its base, in one segment or the other.
    let appended = append(&mut segments, (0..21).map(group));
    assert!(appended.iter().all(|appended| appended.main.length < 20_000), "{appended:?}");
    assert_eq!(replayed(&segments, Watermarks::default()).len(), number as usize + 21);
}

#[test]
fn a_dictionary_that_no_guard_can_save_is_made_again_of_earlier_segments() {
    let archive = MemoryArchive::new(Codec::Zstd);
    let (mut segments, _) = archive.open();
    let pages: Vec<Vec<u8>> = (0..8u64).map(|number| noise(number, 30_000)).collect();
    let round = |segments: &mut Segments| {
        append(segments, (0..).zip(&pages).map(|(number, page)| response(number, page)))
    };
    while segments.rotate_due().expect("a good disk").is_none() {
        round(&mut segments);
    }
    let appended = round(&mut segments);
    segments.rotate(None).expect("rotate");
    let info = segments.list().pop().expect("a segment with a dictionary");
    assert!(info.dictionary.is_some());
    let path = MemoryArchive::path(&info.name);
    let bytes = archive.read(&info.name);
    let first = u32::from_le_bytes(bytes[4..8].try_into().expect("four bytes")) as usize + 8;
    let parity = memchr::memmem::rfind(&bytes, &guard::SKIPPABLE_PARITY.to_le_bytes()).expect("a guard");
    // The whole dictionary is lost, and part of its parity.
    let wreck = |disk: &SimulatedDisk| {
        let mut wrecked = bytes.clone();
        wrecked[..first].fill(0x5a);
        wrecked[parity + 50..parity + 90].fill(0x5a);
        replace_file(disk, &path, &wrecked).expect("write");
    };
    wreck(&archive.disk);
    let reader = SegmentReader::new(Arc::new(archive.disk.clone()), &PathBuf::from("/archive"));
    for (appended, page) in appended.iter().zip(&pages) {
        assert_eq!(reader.read(appended.main).expect("made again").payload(), page);
        assert_eq!(reader.metadata(appended.main).expect("made again").len(), 3);
    }
    // Without the earlier segment it cannot be rebuilt.
    let earlier = segments.list().into_iter().next().expect("the first segment");
    archive.disk.remove(&MemoryArchive::path(&earlier.name)).expect("remove");
    let reader = SegmentReader::new(Arc::new(archive.disk.clone()), &PathBuf::from("/archive"));
    assert!(matches!(reader.read(appended[0].main), Err(SegmentError::Corrupted { .. })));
}
