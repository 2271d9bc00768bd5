//! Histories against a sorted list.

use proptest::prelude::*;

use super::{Capture, CaptureKind, CaptureRecord, History, MimeId, append, nearest};
use crate::backend::{OpenMode, RealDisk};
use crate::checkpoint::{FieldReader, FieldWriter, RecordTable, TableRecord};
use crate::ids::{CaptureId, Location, SegmentId, UrlId};

fn capture(time: i64) -> Capture {
    Capture {
        url: UrlId(3),
        time,
        location: Location { segment: SegmentId(1), offset: 0x0102_0304_0506, length: 9 },
        digest: [7; 16],
        status: 200,
        mime: MimeId(2),
        kind: CaptureKind::Response,
        length: 1234,
        flags: 5,
        original: None,
    }
}

fn table(folder: &std::path::Path) -> RecordTable<CaptureRecord> {
    RecordTable::open(&RealDisk, folder.join("captures.table"), 2, 0, OpenMode::Create, 7).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn captures_are_in_order_of_time_however_they_arrive(
        times in prop::collection::vec(0i64..60, 1..80), questions in prop::collection::vec(-5i64..70, 10),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut captures = table(folder.path());
        let mut newest = None;
        // The model: (time, order of arrival), sorted.
        let mut model: Vec<(i64, u32)> = Vec::new();
        for (&time, count) in times.iter().zip(0..) {
            let (id, is_newest) = append(&mut captures, &capture(time), newest, count).unwrap();
            prop_assert_eq!(id, CaptureId(count));
            if is_newest {
                newest = Some(id);
            }
            model.push((time, count));
        }
        model.sort_unstable();
        let listed: Vec<(i64, u32)> = History::new(&captures, newest)
            .map(|capture| capture.map(|(id, capture)| (capture.time, id.0)).unwrap())
            .collect();
        prop_assert!(listed.iter().rev().eq(&model));
        for question in questions {
            let found = nearest(&captures, newest.unwrap(), question).unwrap().unwrap().1.time;
            let expected = model.iter().map(|(time, _)| *time).min_by_key(|time| (time.abs_diff(question), *time)).unwrap();
            prop_assert_eq!(found, expected);
        }
    }
}

#[test]
fn a_history_that_leads_back_to_itself_ends_with_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut captures = table(folder.path());
    let mut newest = None;
    for count in 0..4 {
        newest = Some(append(&mut captures, &capture(i64::from(count) * 10), newest, count).unwrap().0);
    }
    let list = |captures: &RecordTable<CaptureRecord>| {
        History::new(captures, newest).map(|found| found.is_ok()).collect()
    };
    for back in [1, 2, 3] {
        captures.update(1, |record| record.previous = Some(back)).unwrap();
        let listed: Vec<bool> = list(&captures);
        assert_eq!(listed, [true, true, true, false], "{back}");
    }
    captures.update(1, |record| (record.previous, record.jump) = (Some(0), Some(3))).unwrap();
    captures.update(2, |record| record.jump = Some(3)).unwrap();
    assert!(nearest(&captures, newest.unwrap(), 3).is_err());
    captures.update(0, |record| record.capture.url = UrlId(4)).unwrap();
    let listed: Vec<bool> = list(&captures);
    assert_eq!(listed, [true, true, true, false], "a capture of another URL");
}

#[test]
fn a_long_history_is_searched_in_few_steps() {
    let folder = tempfile::tempdir().unwrap();
    let mut captures = table(folder.path());
    let mut newest = None;
    for count in 0..100_000 {
        newest = Some(append(&mut captures, &capture(i64::from(count) * 10), newest, count).unwrap().0);
    }
    let mut steps = 0;
    let mut at = newest.unwrap().0;
    while at > 5 {
        let record = captures.get(at).unwrap().unwrap();
        at = record.jump.filter(|&jump| jump >= 5).or(record.previous).unwrap();
        steps += 1;
    }
    assert!(steps <= 17 * 17, "{steps} steps");
    for time in [0, 4, 6, 499_994, 499_996, 999_989, 999_990, 2_000_000] {
        let (id, _) = nearest(&captures, newest.unwrap(), time).unwrap().unwrap();
        assert_eq!(i64::from(id.0), ((time + 4) / 10).min(99_999), "nearest to {time}");
    }
}

#[test]
fn a_capture_has_the_documented_bytes() {
    let mut capture = capture(-1);
    capture.original = Some(CaptureId(10));
    let record = CaptureRecord { capture, previous: Some(8), jump: None };
    let mut bytes = [0xff; CaptureRecord::BYTES];
    record.encode(&mut FieldWriter(&mut bytes));
    let mut expected = vec![0xff; 8];
    expected.extend([7; 16]);
    expected.extend([3, 0, 0, 0, 1, 0, 0, 0, 6, 5, 4, 3, 2, 1, 2, 0, 9, 0, 0, 0, 0xd2, 4, 0, 0]);
    expected.extend([9, 0, 0, 0, 0, 0, 0, 0, 11, 0, 0, 0, 200, 0, 0, 5]);
    assert_eq!(bytes.as_slice(), expected);
    let copy = CaptureRecord::decode(&mut FieldReader(&bytes));
    assert_eq!((copy.capture, copy.previous, copy.jump), (capture, Some(8), None));
}

#[test]
fn only_full_records_have_a_payload() {
    use CaptureKind::{Failed, Identical, NotModified, Resource, Response};
    for kind in [Response, Identical, NotModified, Resource, Failed] {
        assert_eq!(CaptureKind::from_code(kind as u8), kind);
        assert_eq!(kind.has_payload(), matches!(kind, Response | Resource));
    }
}

/// Number of steps from the newest capture to the oldest one after a time, as [`around`](super::around) takes them.
fn steps_to(captures: &RecordTable<CaptureRecord>, newest: CaptureId, time: i64) -> usize {
    let record = |number: u32| captures.get(number).unwrap().unwrap();
    let is_after = |number: &u32| record(*number).capture.time > time;
    let (mut at, mut steps) = (newest.0, 0);
    while let Some(next) = record(at).jump.filter(is_after).or(record(at).previous.filter(is_after)) {
        at = next;
        steps += 1;
    }
    steps
}

#[test]
fn histories_that_come_backwards_or_in_disorder_are_searched_in_few_steps() {
    const CAPTURES: u32 = 20_011;
    let backwards: fn(u32) -> u32 = |count| CAPTURES - count;
    // A stride that is coprime to the number of captures.
    let disorder: fn(u32) -> u32 = |count| (u64::from(count) * 37_991 % u64::from(CAPTURES)) as u32;
    for order in [backwards, disorder] {
        let folder = tempfile::tempdir().unwrap();
        let mut captures = table(folder.path());
        let mut newest = None;
        for count in 0..CAPTURES {
            let time = i64::from(order(count));
            let (id, is_newest) = append(&mut captures, &capture(time), newest, count).unwrap();
            if is_newest {
                newest = Some(id);
            }
        }
        let most = (0..40).map(|part| steps_to(&captures, newest.unwrap(), part * 500)).max().unwrap();
        assert!(most < 4 * super::STEPS_MAX, "{most} steps");
        let listed = History::new(&captures, newest).map(|capture| capture.unwrap().1.time);
        assert!(listed.is_sorted_by(|newer, older| newer > older));
    }
}
