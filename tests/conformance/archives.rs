//! Minimal readers of the archives in which suites are distributed: ZIP and gzipped tar.

use std::io::Read;

use flate2::read::{DeflateDecoder, GzDecoder};

/// Returns the names and contents of the files of a ZIP archive without encryption or ZIP64.
pub(super) fn unzip(archive: &[u8]) -> Vec<(String, Vec<u8>)> {
    let u16_at = |at: usize| usize::from(u16::from_le_bytes(archive[at..at + 2].try_into().unwrap()));
    let u32_at = |at: usize| u32::from_le_bytes(archive[at..at + 4].try_into().unwrap()) as usize;
    let end = archive.windows(4).rposition(|window| window == b"PK\x05\x06").unwrap();
    let mut at = u32_at(end + 16);
    let mut files = Vec::new();
    for _ in 0..u16_at(end + 10) {
        assert_eq!(&archive[at..at + 4], b"PK\x01\x02");
        let (method, packed, local) = (u16_at(at + 10), u32_at(at + 20), u32_at(at + 42));
        let name = String::from_utf8(archive[at + 46..at + 46 + u16_at(at + 28)].to_vec()).unwrap();
        let start = local + 30 + u16_at(local + 26) + u16_at(local + 28);
        let mut content = archive[start..start + packed].to_vec();
        if method == 8 {
            content = Vec::new();
            DeflateDecoder::new(&archive[start..start + packed]).read_to_end(&mut content).unwrap();
        }
        files.push((name, content));
        at += 46 + u16_at(at + 28) + u16_at(at + 30) + u16_at(at + 32);
    }
    files
}

/// Returns the names and contents of the regular files of a gzipped tar archive.
pub(super) fn untar(archive: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut tar = Vec::new();
    GzDecoder::new(archive).read_to_end(&mut tar).unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_matches(['\0', ' ']).to_owned();
    let mut files = Vec::new();
    let mut at = 0;
    while tar.get(at).is_some_and(|&byte| byte != 0) {
        let head = &tar[at..at + 512];
        let size = usize::from_str_radix(&text(&head[124..136]), 8).unwrap();
        if matches!(head[156], b'0' | 0) {
            files.push((text(&head[..100]), tar[at + 512..at + 512 + size].to_vec()));
        }
        at += 512 + size.next_multiple_of(512);
    }
    files
}
