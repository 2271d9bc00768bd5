use std::path::PathBuf;

use proptest::prelude::*;

use super::bits::{BitReader, BitWriter};
use super::codes::Code;
use super::*;

/// Links of some pages: runs, gaps, similar lists, and empty ones.
fn golden_lists() -> Vec<Vec<u32>> {
    const PAGES: u32 = 96;
    let list = |page: u32| {
        let folder = page / 8 * 8;
        let mut targets: Vec<u32> = (folder..folder + 3 + page % 5).collect();
        targets.extend([0, page * page % PAGES, (page + 1) % PAGES]);
        targets.extend((0..page % 7).map(|link| (page / 3 * 31 + link * 17) % PAGES));
        targets.sort_unstable();
        targets.dedup();
        if page % 11 == 5 { Vec::new() } else { targets }
    };
    (0..PAGES).map(list).collect()
}

fn lists_of(graph: &Graph) -> Vec<Vec<u32>> {
    (0..graph.pages()).map(|page| graph.targets(page).to_vec()).collect()
}

/// Returns the contents of `name` among the files that the crate `webgraph` 0.7 wrote for [`golden_lists`]: `usual`
/// with its defaults, `other` with δ for degrees, γ for references, ζ₂, a window of 3 and intervals from 3 on.
fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("graphs/bv/golden").join(name)
}

#[test]
fn what_others_wrote_is_read() {
    for name in ["usual", "other"] {
        assert_eq!(lists_of(&read(&golden(name)).unwrap()), golden_lists(), "{name}");
    }
}

/// The bits equal those that `webgraph` writes, except for zeros after the end.
#[test]
fn what_is_written_is_as_others_write_it() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("web");
    write(&name, golden_lists().into_iter()).unwrap();
    for ending in ["graph", "offsets"] {
        let ours = std::fs::read(name.with_extension(ending)).unwrap();
        let theirs = std::fs::read(golden("usual").with_extension(ending)).unwrap();
        let (same, zeros) = theirs.split_at(ours.len());
        assert!(ours == same && zeros.len() < 8 && zeros.iter().all(|byte| *byte == 0), "{ending}");
    }
    assert_eq!(lists_of(&read(&name).unwrap()), golden_lists());
}

/// Generates lists, many of which are similar to those before them.
fn arbitrary_lists() -> impl Strategy<Value = Vec<Vec<u32>>> {
    let list = (any::<bool>(), proptest::collection::btree_set(0..60_u32, 0..20));
    proptest::collection::vec(list, 60).prop_map(|lists| {
        let mut before: Vec<u32> = Vec::new();
        let nearly = |(is_alike, mut list): (bool, std::collections::BTreeSet<u32>)| {
            if is_alike {
                list.retain(|target| target % 5 == 0);
                list.extend(before.iter().filter(|target| *target % 7 != 0));
            }
            before = list.into_iter().collect();
            before.clone()
        };
        lists.into_iter().map(nearly).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn graphs_are_read_as_they_were_written(lists in arbitrary_lists()) {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("web");
        write(&name, lists.clone().into_iter()).unwrap();
        prop_assert_eq!(lists_of(&read(&name).unwrap()), lists);
    }

    #[test]
    fn damaged_graphs_are_errors_or_other_graphs(place in 0..2000_usize, bit in 0..8, cut in any::<bool>()) {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("web");
        std::fs::copy(golden("usual.properties"), name.with_extension("properties")).unwrap();
        let mut bytes = std::fs::read(golden("usual.graph")).unwrap();
        let place = place % bytes.len();
        // The last bytes are zeros after the end.
        let is_short = cut && place + 8 < bytes.len();
        bytes[place] ^= 1_u8 << bit;
        bytes.truncate(if cut { place } else { bytes.len() });
        std::fs::write(name.with_extension("graph"), bytes).unwrap();
        let found = read(&name);
        prop_assert!(matches!(found, Ok(_) | Err(ReadError::Content { .. })), "{found:?}");
        prop_assert!(!is_short || found.is_err());
    }

    #[test]
    fn numbers_are_read_as_they_were_written(
        numbers in proptest::collection::vec((0..47_u32, any::<u64>(), 0..9_u32), 0..200)
    ) {
        let numbers: Vec<(Code, u64)> = numbers
            .into_iter()
            .map(|(bits, number, factor)| match factor {
                0 => (Code::Gamma, number >> (63 - bits)),
                8 => (Code::Unary, number % 300),
                _ => (Code::Zeta(factor), number >> (63 - bits)),
            })
            .collect();
        let mut bytes = Vec::new();
        let mut writer = BitWriter::new(&mut bytes);
        for (code, number) in &numbers {
            code.write(*number, &mut writer).unwrap();
        }
        writer.finish().unwrap();
        let length: u64 = numbers.iter().map(|(code, number)| code.length(*number)).sum();
        prop_assert_eq!(bytes.len() as u64, length.div_ceil(8));
        let mut reader = BitReader::new(bytes.as_slice());
        for (code, number) in &numbers {
            prop_assert_eq!(code.read(&mut reader).unwrap(), *number, "{:?}", code);
        }
    }
}

/// The examples of Boldi and Vigna, and of the documentation of `dsi-bitstream`.
#[test]
fn codes_are_the_published_ones() {
    let read = |code: Code, bits: &str| {
        let bytes: Vec<u8> = format!("{bits:0<64}")
            .as_bytes()
            .chunks(8)
            .map(|byte| byte.iter().fold(0, |sum, bit| sum << 1 | (bit - b'0')))
            .collect();
        code.read(&mut BitReader::new(bytes.as_slice())).unwrap()
    };
    for (code, examples) in [
        (Code::Unary, ["1", "01", "001", "0001", "00001"]),
        (Code::Gamma, ["1", "010", "011", "00100", "00101"]),
        (Code::Delta, ["1", "0100", "0101", "01100", "01101"]),
        (Code::Zeta(2), ["10", "110", "111", "01000", "01001"]),
        (Code::Zeta(3), ["100", "1010", "1011", "1100", "1101"]),
        (Code::Nibble, ["1000", "1001", "1010", "1011", "1100"]),
    ] {
        for (number, bits) in (0..).zip(examples) {
            assert_eq!(read(code, bits), number, "{code:?} {bits}");
        }
    }
    assert_eq!(read(Code::Nibble, "00011010"), 10);
}

/// Hostile files that ask for more pages or links than fit into memory, or for endless numbers.
#[test]
fn a_short_file_is_no_large_graph() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("web");
    let refused = |properties: &str, bytes: &[u8]| {
        std::fs::write(name.with_extension("properties"), properties).unwrap();
        std::fs::write(name.with_extension("graph"), bytes).unwrap();
        read(&name).unwrap_err().to_string()
    };
    let error = refused("nodes=4000000000\narcs=4000000000", &[0xff; 100]);
    assert!(error.contains("100 bytes are too few for 4000000000 pages"), "{error}");
    // One list of 2^25 links in a row.
    let mut row = Vec::new();
    let mut bits = BitWriter::new(&mut row);
    for number in [1 << 25, 1, 0, (1 << 25) - 4] {
        Code::Gamma.write(number, &mut bits).unwrap();
    }
    bits.finish().unwrap();
    row.resize(1 << 23, 0xff);
    let error = refused("nodes=33554432\narcs=4000000000\nwindowsize=0", &row[..100]);
    assert!(error.contains("too few for 33554432 pages"), "{error}");
    let error = refused("nodes=99\nwindowsize=0", &row[..100]);
    assert!(error.contains("damaged at page 0: a number is too large"), "{error}");
    let error = refused("nodes=1", &[0; 1 << 17]);
    assert!(error.contains("is cut off: 131072 bytes end before the links of page 0 do"), "{error}");
    for (properties, said) in [
        ("arcs=1", "nodes is missing"),
        ("nodes=-1", "nodes is '-1', not a number"),
        ("nodes=4294967296", "nodes is 4294967296, more than 4294967295"),
        ("nodes=1\nwindowsize=5000", "windowsize is 5000, more than 1024"),
        ("nodes=1\nendianness=little", "the bits begin at the lowest"),
        ("nodes=1\ncompressionflags=BLOCKS_GOLOMB", "the compression flag 'BLOCKS_GOLOMB' is unknown"),
        ("nodes=1\ngraphclass=it.unimi.dsi.webgraph.EFGraph", "not in BV format"),
    ] {
        let error = refused(properties, &[]);
        assert!(error.contains(said), "{error}");
    }
}
