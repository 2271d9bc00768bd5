//! The name table against a plain map.

use std::collections::HashMap;
use std::path::Path;

use proptest::prelude::*;

use super::{ALIKE_MAX, Finder, NAME_BYTES_MAX, NameCache, NameCursor, NameTable};
use crate::backend::{OpenMode, RealDisk};
use crate::checkpoint::StateError;

fn table(folder: &Path) -> NameTable {
    NameTable::open(&RealDisk, &folder.join("urls"), 0, &[], OpenMode::Create).unwrap()
}

fn intern(table: &mut NameTable, name: &str) -> Result<(u32, bool), StateError> {
    match table.known(name, (table.hash)(name.as_bytes()))? {
        Some(id) => Ok((id, false)),
        None => {
            NameTable::check(name)?;
            Ok((table.push(name, (table.hash)(name.as_bytes()))?, true))
        }
    }
}

fn reopen(mut table: NameTable, folder: &Path, mode: OpenMode) -> NameTable {
    table.log_mut().write().unwrap();
    NameTable::open(&RealDisk, &folder.join("urls"), table.len(), &table.open_block(), mode).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn names_keep_their_ids(names in prop::collection::vec("[a-c]{0,3}/[a-zäß]{0,2}", 0..700), cut in 0usize..700) {
        let folder = tempfile::tempdir().unwrap();
        let mut table = table(folder.path());
        let mut model: HashMap<String, u32> = HashMap::new();
        for (position, name) in names.iter().enumerate() {
            if position == cut {
                table = reopen(table, folder.path(), OpenMode::Write);
            }
            let next = model.len() as u32;
            let new = !model.contains_key(name);
            let id = *model.entry(name.clone()).or_insert(next);
            prop_assert_eq!(intern(&mut table, name).unwrap(), (id, new));
        }
        let table = reopen(table, folder.path(), OpenMode::Read);
        prop_assert_eq!(table.len() as usize, model.len());
        let mut cursor = NameCursor::new(&table);
        for (name, &id) in &model {
            prop_assert_eq!(table.get(id).unwrap(), Some(name.clone()));
            prop_assert_eq!(cursor.get(id).unwrap(), Some(name.as_str()));
            prop_assert_eq!(table.find(name).unwrap(), Some(id));
        }
        let (from, to) = ((cut / 3) as u32, cut as u32);
        let mut scanned = Vec::new();
        table.scan(from..to, |id, name| { scanned.push((id, name.to_owned())); Ok(()) }).unwrap();
        let mut expected: Vec<(u32, String)> = model.into_iter().map(|(name, id)| (id, name)).collect();
        expected.retain(|(id, _)| (from..to).contains(id));
        expected.sort_unstable();
        prop_assert_eq!(scanned, expected);
    }
}

#[test]
fn names_that_share_a_fingerprint_under_a_new_key_are_distinguished() {
    let folder = tempfile::tempdir().unwrap();
    let mut table = table(folder.path());
    let names: Vec<String> = (0..500).map(|number| format!("https://example.org/{number}")).collect();
    for name in &names[..300] {
        intern(&mut table, name).unwrap();
    }
    // With the next key, three successive names share a fingerprint.
    let hash = |name: &[u8]| {
        let number = std::str::from_utf8(name).unwrap().rsplit('/').next().unwrap();
        number.parse().map_or(u64::MAX, |number: u64| (number / 3) << 32)
    };
    let mut reader = reopen(table, folder.path(), OpenMode::Read);
    reader.hash = hash;
    for (name, id) in names[..300].iter().zip(0..) {
        assert_eq!(reader.find(name).unwrap(), Some(id), "{name}");
        assert_eq!(intern(&mut reader, name).unwrap(), (id, false), "{name}");
    }
    assert_eq!(reader.find("y").unwrap(), None);
    // A later reader uses this index.
    let mut table = reopen(reader, folder.path(), OpenMode::Write);
    for name in &names[300..] {
        intern(&mut table, name).unwrap();
    }
    table.log_mut().write().unwrap();
    let path = folder.path().join("urls");
    let mut earlier = NameTable::open(&RealDisk, &path, 256, &[], OpenMode::Read).unwrap();
    earlier.hash = hash;
    assert_eq!(earlier.find(&names[255]).unwrap(), Some(255));
    let mut later = reopen(table, folder.path(), OpenMode::Read);
    later.hash = hash;
    later.adopt_index(&mut earlier).unwrap();
    for (name, id) in names.iter().zip(0..) {
        assert_eq!(later.find(name).unwrap(), Some(id), "{name}");
    }
}

#[test]
fn a_name_may_be_as_long_as_the_limit_and_no_longer() {
    let folder = tempfile::tempdir().unwrap();
    let mut table = table(folder.path());
    let longest = "x".repeat(NAME_BYTES_MAX);
    let longer = "x".repeat(NAME_BYTES_MAX + 1);
    assert_eq!(intern(&mut table, &longest).unwrap(), (0, true));
    assert!(matches!(intern(&mut table, &longer), Err(StateError::TooLong { .. })));
    assert!(matches!(intern(&mut table, "two\nlines"), Err(StateError::LineFeed)));
    assert_eq!(table.len(), 1);
    assert_eq!(table.find(&longest).unwrap(), Some(0));
    assert_eq!(table.find("y").unwrap(), None);
    assert_eq!(table.get(1).unwrap(), None);
}

#[test]
fn a_damaged_block_is_reported_not_returned() {
    let folder = tempfile::tempdir().unwrap();
    let mut table = table(folder.path());
    for number in 0..300 {
        let name = format!("https://example.org/{number}");
        intern(&mut table, &name).unwrap();
    }
    table.log_mut().write().unwrap();
    let path = folder.path().join("urls.zst");
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 4;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let table = reopen(table, folder.path(), OpenMode::Read);
    assert!(matches!(table.get(5), Err(StateError::Corrupted { .. })));
    assert_eq!(table.get(200).unwrap().as_deref(), Some("https://example.org/200"));
}

#[test]
fn names_are_found_by_the_file_and_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("urls.find");
    let mut table = table(folder.path());
    let name = |number: u32| format!("http://www.test/{}/{number}", number % 7);
    for number in 0..5000 {
        intern(&mut table, &name(number)).unwrap();
    }
    assert!(Finder::open(&RealDisk, &path, 7).unwrap().is_none());
    Finder::write(&RealDisk, &path, &table, 7).unwrap();
    for number in 5000..5100 {
        intern(&mut table, &name(number)).unwrap();
    }
    let finder = Finder::open(&RealDisk, &path, 7).unwrap().unwrap();
    assert!(finder.has_nearly(table.len()) && finder.has_nearly(5512));
    assert!(!finder.has_nearly(5513) && !finder.has_nearly(4999));
    for number in 0..5100 {
        assert_eq!(finder.find(&table, &name(number)).unwrap(), Some(number));
    }
    assert_eq!(finder.find(&table, &name(5100)).unwrap(), None);

    assert!(
        matches!(Finder::open(&RealDisk, &path, 8), Err(StateError::Corrupted { .. })),
        "another state's"
    );
    let mut bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, bytes.split_at(bytes.len() - 4096).0).unwrap();
    assert!(matches!(Finder::open(&RealDisk, &path, 7), Err(StateError::Corrupted { .. })), "cut short");
    bytes[4096 + 100] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let mut damage = 0;
    Finder::open(&RealDisk, &path, 7).unwrap().unwrap().check(&mut |_| damage += 1);
    assert_eq!(damage, 1);
}

#[test]
fn a_block_holds_some_ids_of_every_hash() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.find");
    for (hashes, each, kept) in [(1, ALIKE_MAX + 1, ALIKE_MAX), (10, 60, 32), (500, 2, 1), (5, 3, 3)] {
        let entries = |take: &mut dyn FnMut(u64, u32)| {
            (0..hashes * each).for_each(|id| take((id % hashes) as u64, id as u32));
            Ok(())
        };
        Finder::write_entries(&RealDisk, &path, 7, 300, ALIKE_MAX, &entries).unwrap();
        let finder = Finder::open(&RealDisk, &path, 7).unwrap().unwrap();
        for hash in 0..hashes {
            let ids = finder.under(hash as u64).unwrap();
            assert_eq!(ids.len(), kept, "{hashes} {each}");
            assert!(ids.iter().all(|id| *id as usize % hashes == hash));
        }
    }
}

#[test]
fn kept_names_are_those_of_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let mut table = table(folder.path());
    let name = |number: u32| format!("http://www.test/{}", number * number);
    for number in 0..1000 {
        intern(&mut table, &name(number)).unwrap();
    }
    let mut cache = NameCache::new(&table, 300);
    for step in 0..3000 {
        let number = step * 617 % 1000;
        assert_eq!(cache.get(number).unwrap(), Some(name(number).as_str()));
    }
    assert_eq!(cache.get(1000).unwrap(), None);
}
