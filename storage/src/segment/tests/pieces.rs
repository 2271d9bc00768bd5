//! A record read piece by piece has the bytes of one read whole.

use super::*;
use crate::segment::codec::FRAME_BYTES_MAX;

/// Groups with a body of several frames, as it is and in chunks, and short ones.
fn groups() -> Vec<CaptureGroup> {
    let body: Vec<u8> = (0..2 * FRAME_BYTES_MAX as u32 / 4 + 5).flat_map(u32::to_be_bytes).collect();
    let mut chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for chunk in body.chunks(1_000_003) {
        chunked.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        chunked.extend_from_slice(chunk);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    let with = |number, http: Vec<u8>| CaptureGroup {
        body: CaptureBody::Response { http: http.into(), truncated: None },
        payload_digest: None,
        ..response(number, b"")
    };
    let headless = b"HTTP/1.1 200 OK\r\nA: b".to_vec();
    let mut all = every_kind();
    all.extend([response(7, &body), with(8, chunked), with(9, headless), response(10, b"")]);
    all
}

#[test]
fn pieces_skips_and_heads_agree_with_what_is_read_whole() {
    for codec in [Codec::Zstd, Codec::Gzip] {
        let archive = MemoryArchive::new(codec);
        let (mut segments, _) = archive.open();
        let appended = append(&mut segments, groups());
        segments.sync().expect("sync");
        let reader = segments.reader();
        for location in appended.iter().map(|appended| appended.main) {
            let whole = reader.read(location).expect("read");
            let open = || reader.pieces(location).expect("open");
            let joined = |pieces: &mut dyn Iterator<Item = Result<Bytes, SegmentError>>| {
                pieces.map(|piece| piece.expect("a piece")).collect::<Vec<_>>().concat()
            };
            assert_eq!((open().header(), open().remaining()), (&whole.header, whole.content.len() as u64));
            assert_eq!(joined(&mut open()), whole.content);
            assert_eq!(open().beginning(usize::MAX).expect("read"), whole);
            let beginning = open().beginning(100).expect("read").content;
            assert!(beginning.len() >= whole.content.len().min(100) && whole.content.starts_with(&beginning));
            let end = location.offset + u64::from(location.length);
            assert_eq!(open().following().expect("read"), end);
            let payload = || open().payload().expect("a head");
            assert_eq!(*payload().head(), whole.http_head());
            let expected = whole.payload();
            assert!(payload().length().is_none_or(|length| length == expected.len() as u64));
            for count in [0, 1, 5, 4 << 20, (4 << 20) + 1, 9 << 20, expected.len(), expected.len() + 9] {
                let mut pieces = payload();
                pieces.skip_bytes(count as u64).expect("skip");
                assert_eq!(joined(&mut pieces), expected[count.min(expected.len())..], "{count}");
            }
        }
    }
}

#[test]
fn a_record_that_ends_early_or_is_damaged_is_an_error() {
    for codec in [Codec::Zstd, Codec::Gzip] {
        let archive = MemoryArchive::new(codec);
        let (mut segments, _) = archive.open();
        let location = append(&mut segments, groups())[6].main;
        segments.sync().expect("sync");
        let reader = segments.reader();
        for length in [0, 1, 100, location.length / 2, location.length - 1] {
            let read = reader.pieces(Location { length, ..location }).map(|mut pieces| {
                let read = pieces.try_for_each(|piece| piece.map(drop));
                read.and_then(|()| pieces.following())
            });
            // The last byte of a member is part of its checksum; the content before it is complete.
            assert!(!matches!(read, Ok(Ok(_))), "{codec:?} {length}");
        }
    }
}
