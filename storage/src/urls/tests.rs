//! The name table against a plain map.

use std::collections::HashMap;
use std::path::Path;

use proptest::prelude::*;

use super::{NAME_BYTES_MAX, NameCursor, NameTable};
use crate::address::url_hash;
use crate::backend::{OpenMode, RealDisk};
use crate::checkpoint::StateError;

fn table(folder: &Path) -> NameTable {
    NameTable::open(&RealDisk, &folder.join("urls"), 0, &[], OpenMode::Create).unwrap()
}

fn intern(table: &mut NameTable, name: &str) -> Result<(u32, bool), StateError> {
    match table.find_hash(url_hash(name))? {
        Some(id) => Ok((id, false)),
        None => {
            NameTable::check(name)?;
            Ok((table.push(name, url_hash(name))?, true))
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
