//! Files that others wrote, some of them broken: the records and digests that we find are those that FastWARC and warcio
//! find (FastWARC 2.0.1 and warcio 1.8.1 gave the table's numbers, where they agree; see the notes).
//!
//! Reads `$ARCHIVE_TEST_DATA/warc`, by default `../../shared/data/warc`.

use std::fs::File;
use std::path::{Path, PathBuf};

use archive_storage::Digest;
use archive_storage::warc::{RecordError, RecordReader, RecordType};

/// What a file holds.
struct Expected {
    name: &'static str,
    records: usize,
    /// Block digests that are right, and wrong.
    blocks: [usize; 2],
    /// The same of the payload digests of responses.
    payloads: [usize; 2],
    /// Where records are broken.
    broken: &'static [u64],
}

const fn file(
    name: &'static str,
    records: usize,
    blocks: [usize; 2],
    payloads: [usize; 2],
    broken: &'static [u64],
) -> Expected {
    Expected { name, records, blocks, payloads, broken }
}

/// Where the two disagree: warcio stops at gzip members with several records (the five `gowarc` files and
/// `bad-non-chunked`) and at a record in the wrong place (`wrong-chunks`); both give out the cut-off record of
/// `clipped`, which we report as broken; of `trunc` FastWARC leaves out the record before the broken one. The offsets of
/// the two `corrupted` files are those at which their authors say they must be cut.
const FILES: &[Expected] = &[
    file("chatnoir-eu__chatnoir-resiliparse/block-sized-records.warc", 3, [0, 0], [0, 0], &[]),
    file("chatnoir-eu__chatnoir-resiliparse/block-sized-records.warc.gz", 3, [0, 0], [0, 0], &[]),
    file("chatnoir-eu__chatnoir-resiliparse/clipped.warc.gz", 0, [0, 0], [0, 0], &[0]),
    file("chatnoir-eu__chatnoir-resiliparse/clueweb-quirk.warc.gz", 30, [29, 0], [0, 29], &[]),
    file("chatnoir-eu__chatnoir-resiliparse/warcfile.warc", 50, [16, 0], [16, 0], &[]),
    file("chatnoir-eu__chatnoir-resiliparse/warcfile.warc.gz", 50, [16, 0], [16, 0], &[]),
    file("iipc__warc-specifications/20130729-heritrix-original.warc.gz", 1, [0, 0], [1, 0], &[]),
    file(
        "iipc__warc-specifications/20130729-heritrix-revisit-with-http-headers.warc.gz",
        1,
        [0, 0],
        [0, 0],
        &[],
    ),
    file("iipc__warc-specifications/20141124-heritrix-server-not-modified.warc.gz", 1, [0, 0], [0, 0], &[]),
    file("iipc__warc-specifications/20141129-heritrix-original.warc.gz", 1, [0, 0], [1, 0], &[]),
    file(
        "iipc__warc-specifications/20141129-heritrix-revisit-with-http-headers-and-new-warc-headers.warc.gz",
        1,
        [0, 0],
        [0, 0],
        &[],
    ),
    file("iipc__warc-specifications/hello-world.warc", 6, [6, 0], [1, 0], &[]),
    file("iipc__warc-specifications/hello-world.warc.gz", 6, [6, 0], [1, 0], &[]),
    file("internetarchive__gowarc/corrupted-mid-record.warc.gz.open", 12, [12, 0], [0, 0], &[1219]),
    file("internetarchive__gowarc/corrupted-trailing-bytes.warc.gz.open", 30, [30, 0], [0, 0], &[2362]),
    file("internetarchive__gowarc/empty.warc.gz.open", 0, [0, 0], [0, 0], &[]),
    file("internetarchive__gowarc/good.warc.gz.open", 50, [50, 0], [0, 0], &[]),
    file("internetarchive__gowarc/single-record.warc.gz.open", 1, [1, 0], [0, 0], &[]),
    file("internetarchive__gowarc/skip-non-open.warc.gz", 10, [10, 0], [0, 0], &[]),
    file("internetarchive__gowarc/test.warc.gz", 3, [3, 0], [0, 0], &[]),
    file("openzim__warc2zim/bad-redirections.warc.gz", 91, [89, 0], [42, 0], &[]),
    file("openzim__warc2zim/content-resource-types.warc.gz", 28, [26, 0], [12, 0], &[]),
    file("openzim__warc2zim/example-response.warc", 3, [2, 0], [1, 0], &[]),
    file("openzim__warc2zim/example-revisit.warc.gz", 16, [8, 0], [3, 0], &[]),
    file("openzim__warc2zim/example-utf8.warc", 8, [8, 0], [4, 0], &[]),
    file("openzim__warc2zim/example-with-timestamp.warc", 2, [1, 1], [1, 0], &[]),
    file("openzim__warc2zim/http-return-codes.warc.gz", 98, [97, 0], [31, 0], &[]),
    file("openzim__warc2zim/kiwix-with-redirects.warc.gz", 105, [105, 0], [51, 0], &[]),
    file("openzim__warc2zim/main-entry-403.warc.gz", 27, [25, 0], [12, 0], &[]),
    file("openzim__warc2zim/qsl.net-encoding-alias.warc.gz", 7, [5, 0], [2, 0], &[]),
    file("openzim__warc2zim/self-redirect.warc", 4, [4, 0], [2, 0], &[]),
    file("openzim__warc2zim/single-page-test.warc", 108, [106, 0], [52, 0], &[]),
    file("openzim__warc2zim/solidaritenum.warc.gz", 190, [189, 0], [94, 0], &[]),
    file(
        "ukwa__webarchive-discovery/BL-20140325121225068-00000-32090~opera~8443.warc.gz",
        190,
        [0, 0],
        [62, 0],
        &[],
    ),
    file(
        "ukwa__webarchive-discovery/BL-20140325122341434-00000-32090~opera~8443.warc.gz",
        190,
        [0, 0],
        [7, 0],
        &[],
    ),
    file("ukwa__webarchive-discovery/IAH-urls-wget.warc.gz", 36, [36, 0], [16, 0], &[]),
    file("ukwa__webarchive-discovery/flashfrozen-jwat-recompressed.warc.gz", 82, [82, 0], [39, 0], &[]),
    file("ukwa__webarchive-discovery/ip-host-testcase.warc.gz", 6, [6, 0], [1, 0], &[]),
    file("ukwa__webarchive-discovery/truncated_datetime.warc", 5, [5, 0], [1, 0], &[]),
    file("webrecorder__warcio/example-bad-non-chunked.warc.gz", 6, [1, 1], [1, 0], &[]),
    file("webrecorder__warcio/example-digest.warc", 4, [4, 0], [0, 0], &[]),
    file("webrecorder__warcio/example-iana.org-chunked.warc", 3, [2, 0], [1, 0], &[]),
    file("webrecorder__warcio/example-resource.warc.gz", 3, [1, 0], [0, 0], &[]),
    file("webrecorder__warcio/example-space-in-target-uri.warc.gz", 2, [1, 0], [0, 0], &[]),
    file("webrecorder__warcio/example-space-in-url.arc", 0, [0, 0], [0, 0], &[0]),
    file("webrecorder__warcio/example-trunc.warc", 4, [0, 1], [0, 1], &[2560]),
    file("webrecorder__warcio/example-wget-bad-target-uri.warc.gz", 6, [6, 0], [1, 0], &[]),
    file("webrecorder__warcio/example-wrong-chunks.warc.gz", 2, [1, 1], [1, 0], &[]),
    file("webrecorder__warcio/example.warc", 6, [2, 0], [1, 0], &[]),
    file("webrecorder__warcio/example.warc.gz", 6, [4, 0], [1, 0], &[]),
];

fn data() -> Option<PathBuf> {
    let data = std::env::var_os("ARCHIVE_TEST_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data"), PathBuf::from);
    if data.is_dir() {
        return Some(data.join("warc"));
    }
    assert!(std::env::var("CI").as_deref() != Ok("true"), "there is no {}", data.display());
    println!("skipped: there is no {}", data.display());
    None
}

/// Counts a digest as right or wrong; one that is missing or of an unknown algorithm as neither.
fn count(claimed: Option<&str>, data: &[u8], counts: &mut [usize; 2]) {
    if let Some(Ok(digest)) = claimed.map(str::parse::<Digest>) {
        counts[usize::from(!digest.matches(data))] += 1;
    }
}

#[test]
fn foreign_files_hold_what_other_readers_find() {
    let Some(data) = data() else { return };
    for expected in FILES {
        let source = File::open(data.join(expected.name)).expect(expected.name);
        let (mut records, mut blocks, mut payloads, mut broken) = (0, [0; 2], [0; 2], Vec::new());
        for record in RecordReader::new(source) {
            let record = match record {
                Ok(record) => record,
                Err(RecordError::Broken(place)) => {
                    broken.push(place.offset);
                    continue;
                }
                Err(error) => panic!("{}: {error}", expected.name),
            };
            records += 1;
            count(record.header.get("WARC-Block-Digest"), &record.content, &mut blocks);
            if record.header.record_type() == RecordType::Response {
                count(record.header.get("WARC-Payload-Digest"), &record.body(), &mut payloads);
            }
        }
        let found = (records, blocks, payloads, &broken[..]);
        assert_eq!(
            found,
            (expected.records, expected.blocks, expected.payloads, expected.broken),
            "{}",
            expected.name
        );
    }
}

/// A record that says where it lies can be read from there alone.
#[test]
fn every_record_can_be_read_by_its_offset_and_length() {
    let Some(data) = data() else { return };
    for expected in FILES {
        let bytes = std::fs::read(data.join(expected.name)).expect(expected.name);
        for record in RecordReader::new(&bytes[..]).flatten().filter(|record| record.length > 0) {
            let end = (record.offset + record.length) as usize;
            let piece = &bytes[record.offset as usize..end];
            let alone = RecordReader::new(piece).next().expect(expected.name).expect(expected.name);
            assert_eq!(
                (&alone.header, &alone.content),
                (&record.header, &record.content),
                "{}",
                expected.name
            );
        }
    }
}

/// However a file is cut off, reading ends, and finds no more than the whole file has.
#[test]
fn files_cut_anywhere_are_read_to_their_end() {
    let Some(data) = data() else { return };
    for expected in FILES.iter().filter(|expected| expected.broken.is_empty()) {
        let bytes = std::fs::read(data.join(expected.name)).expect(expected.name);
        if bytes.len() > 40_000 {
            continue;
        }
        for length in (0..bytes.len()).step_by(bytes.len() / 150 + 1) {
            let found = RecordReader::new(&bytes[..length]).flatten().count();
            assert!(found <= expected.records, "{} cut at {length}", expected.name);
        }
    }
}
