//! Metadata of captures is the same, whichever way it is found.

use super::*;
use crate::segment::metadata::AFTER_MAIN_BYTES;

#[test]
fn what_was_noted_is_found_after_main_records_and_from_the_start() {
    for codec in [Codec::Zstd, Codec::Gzip] {
        let archive = MemoryArchive::new(codec);
        let (mut segments, _) = archive.open();
        if codec == Codec::Zstd {
            segments.rotate(dictionary(0..3)).expect("rotate");
        }
        let outlinks = (0..AFTER_MAIN_BYTES).map(|number| Digest::sha256(&number.to_le_bytes()).to_string());
        let long = outlinks.map(|digest| ("outlink".into(), digest)).collect();
        let mut groups = every_kind();
        groups.push(groups[5].clone());
        groups.push(CaptureGroup { request: None, ..groups[5].clone() });
        groups.push(CaptureGroup { metadata: long, ..response(7, b"x") });
        groups.push(response(8, b"y"));
        let appended = append(&mut segments, groups.clone());
        segments.sync().expect("sync");
        let reader = segments.reader();
        for (group, appended) in groups.iter().zip(&appended) {
            let found = reader.metadata(appended.main).expect("read");
            assert_eq!(found, reader.metadata_from_start(appended.main).expect("read"));
            let own = |name: &str| group.metadata.iter().filter(|(own, _)| own == name).count();
            assert_eq!(found.iter().filter(|(name, _)| name == "outlink").count(), own("outlink"));
            let is_short =
                group.metadata.len() < AFTER_MAIN_BYTES && !matches!(group.body, CaptureBody::Failed);
            if codec == Codec::Zstd {
                assert_eq!(
                    reader.metadata_after(appended.main).expect("read").is_some(),
                    is_short,
                    "{}",
                    group.url
                );
            }
        }
    }
}

#[test]
fn a_value_of_several_lines_is_a_field_for_each() {
    let archive = MemoryArchive::new(Codec::Zstd);
    let (mut segments, _) = archive.open();
    let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let metadata = vec![field("via", ""), field("outlink", "a\nb\r\nvia: c\n"), field("hopsFromSeed", "L")];
    let appended = append(&mut segments, vec![CaptureGroup { metadata, ..response(1, b"x") }]);
    segments.sync().expect("sync");
    let found = segments.reader().metadata(appended[0].main).expect("read");
    let expected =
        [("via", ""), ("outlink", "a"), ("outlink", "b"), ("outlink", "via: c"), ("hopsFromSeed", "L")];
    assert_eq!(found, expected.map(|(name, value)| field(name, value)));
}
