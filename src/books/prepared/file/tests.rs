//! What was written is read back, and damage is detected.

use std::fs;

use super::*;

const STAMP: Stamp = Stamp { state: 7, checkpoint: 9, rows: BLOCK_ROWS + 3, columns: 3 };

fn written(path: &Path) -> [Vec<u64>; 3] {
    let columns = [1_u64, u64::from(u32::MAX), 1 << 9];
    let columns =
        columns.map(|factor| (0..u64::from(STAMP.rows)).map(|row| row % 300 * factor).collect::<Vec<_>>());
    let mut writer = Writer::begin(path, STAMP, BLOCK_ROWS).unwrap();
    for rows in [0..BLOCK_ROWS as usize, BLOCK_ROWS as usize..STAMP.rows as usize] {
        columns.iter().for_each(|column| writer.add(&column[rows.clone()]).unwrap());
    }
    writer.finish().unwrap();
    columns
}

#[test]
fn values_are_read_as_they_were_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("columns");
    assert!(Reader::open(&path).unwrap().is_none());
    let columns = written(&path);
    let reader = Reader::open(&path).unwrap().unwrap();
    assert_eq!((reader.stamp(), reader.blocks(), reader.rows(1)), (STAMP, 2, BLOCK_ROWS..BLOCK_ROWS + 3));
    for (column, values) in (0..).zip(columns) {
        let read = (0..2).flat_map(|block| reader.map(block, column, |value| value).unwrap());
        assert_eq!(read.collect::<Vec<_>>(), values);
        assert_eq!(reader.pick(0, column, &[299, 7]).unwrap(), [values[299], values[7]]);
    }
    assert_eq!((reader.bounds(0, 0), reader.bounds(1, 0)), (0..=299, 68..=70));
    assert!([(2, 0), (0, 3), (1, 3)].iter().all(|at| reader.map(at.0, at.1, |value| value).is_err()));
    assert!(reader.pick(1, 0, &[2]).is_ok() && reader.pick(1, 0, &[3]).is_err());
}

#[test]
fn blocks_are_kept_unless_they_are_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let [old, new] = ["old", "new"].map(|name| folder.path().join(name));
    let columns = written(&old);
    let stamp = Stamp { checkpoint: 10, rows: BLOCK_ROWS + 1, ..STAMP };
    let keep = || {
        let reader = Reader::open(&old).unwrap().unwrap();
        assert!(reader.is_alike(stamp, BLOCK_ROWS) && !reader.is_alike(stamp, 7));
        assert!(!reader.is_alike(Stamp { state: 8, ..stamp }, BLOCK_ROWS));
        let mut writer = Writer::begin(&new, stamp, BLOCK_ROWS).unwrap();
        let is_kept = writer.keep(&reader, 0).unwrap();
        (0..3).for_each(|value| writer.add(&[value]).unwrap());
        if is_kept {
            writer.finish().unwrap();
        }
        is_kept
    };
    assert!(keep());
    let reader = Reader::open(&new).unwrap().unwrap();
    for (column, values) in (0..).zip(columns) {
        assert_eq!(reader.map(0, column, |value| value).unwrap(), values[..BLOCK_ROWS as usize]);
        assert_eq!(reader.map(1, column, |value| value).unwrap(), [u64::from(column)]);
        assert_eq!(reader.bounds(0, column), Reader::open(&old).unwrap().unwrap().bounds(0, column));
    }
    let mut bytes = fs::read(&old).unwrap();
    bytes[HEADER_BYTES] ^= 1;
    fs::write(&old, bytes).unwrap();
    assert!(!keep());
}

#[test]
fn damage_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("columns");
    written(&path);
    let good = fs::read(&path).unwrap();
    let is_whole = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let Ok(reader) = Reader::open(&path) else { return false };
        let reader = reader.unwrap();
        (0..2).all(|block| (0..3).all(|column| reader.map(block, column, |_| ()).is_ok()))
    };
    assert!(is_whole(&good));
    for at in (0..good.len()).step_by(good.len() / 500) {
        let mut bad = good.clone();
        bad[at] ^= 4;
        assert!(!is_whole(&bad), "byte {at}");
    }
    for length in [0, 7, HEADER_BYTES, good.len() / 2, good.len() - 1] {
        assert!(!is_whole(&good[..length]), "{length} bytes");
    }
    let block_rows = HEADER_BYTES - 4;
    for rows in [0, BLOCK_ROWS + 1] {
        let mut bad = good.clone();
        bad[block_rows..HEADER_BYTES].copy_from_slice(&rows.to_le_bytes());
        assert!(!is_whole(&bad), "blocks of {rows} rows");
    }
    // Files by older versions count as missing.
    let mut older = good;
    older[..8].copy_from_slice(&OLDER_MAGIC[1]);
    fs::write(&path, &older).unwrap();
    assert!(Reader::open(&path).unwrap().is_none());
}

#[test]
fn texts_are_read_as_they_were_written_up_to_their_limit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("columns");
    let stamp = Stamp { rows: 1, columns: 1, ..STAMP };
    for (bytes, is_read) in [(0, true), (TEXTS_BYTES_MAX, true), (TEXTS_BYTES_MAX + 1, false)] {
        let mut writer = Writer::begin(&path, stamp, BLOCK_ROWS).unwrap();
        writer.add(&[7]).unwrap();
        writer.finish_with(&vec![b'x'; bytes as usize]).unwrap();
        match Reader::open(&path) {
            Ok(reader) => assert!(is_read && reader.unwrap().texts().len() as u64 == bytes),
            Err(_) => assert!(!is_read),
        }
    }
}
