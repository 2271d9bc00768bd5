//! What a simulated disk keeps and loses.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::{Faults, SimulatedDisk};
use crate::backend::{Disk, DiskFile, Lock, OpenMode, read_file, replace_file};

fn written(disk: &SimulatedDisk, bytes: &[u8]) -> Arc<dyn DiskFile> {
    let file = disk.open(Path::new("/f"), OpenMode::Create).expect("create");
    disk.sync_dir(Path::new("/")).expect("sync");
    file.write_at(bytes, 0).expect("write");
    file
}

#[test]
fn synced_bytes_survive_and_unsynced_ones_may_not() {
    let mut outcomes = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let disk = SimulatedDisk::new(seed);
        let file = written(&disk, &[1; 600]);
        file.sync().expect("sync");
        file.write_at(&[2; 1000], 600).expect("write");
        let after = read_file(&disk.crash(), Path::new("/f")).expect("the name is durable");
        assert_eq!(after[..600], [1; 600]);
        outcomes.insert(after[600..].iter().map(|byte| u32::from(*byte)).sum::<u32>());
    }
    assert!(outcomes.contains(&0) && outcomes.contains(&2000) && outcomes.len() > 4, "{outcomes:?}");
}

#[test]
fn a_name_without_a_synced_folder_may_be_lost() {
    let found = (0..100).filter(|seed| {
        let disk = SimulatedDisk::new(*seed);
        let file = disk.open(Path::new("/f"), OpenMode::Create).expect("create");
        file.sync().expect("sync");
        disk.crash().exists(Path::new("/f")).expect("exists")
    });
    assert!((1..100).contains(&found.count()));
}

#[test]
fn bytes_of_a_failed_sync_never_arrive() {
    let disk = SimulatedDisk::new(1);
    let file = written(&disk, b"bytes");
    disk.set_faults(Faults { failing_sync_one_in: 1, ..Faults::default() });
    assert!(file.sync().is_err());
    disk.set_faults(Faults::default());
    file.sync().expect("the next one succeeds");
    assert_eq!(read_file(&disk, Path::new("/f")).expect("read"), b"bytes");
    assert_eq!(read_file(&disk.crash(), Path::new("/f")).expect("read"), b"");
}

#[test]
fn a_full_disk_takes_a_part() {
    let disk = SimulatedDisk::new(1);
    let file = written(&disk, b"1234");
    disk.set_faults(Faults { capacity: Some(10), ..Faults::default() });
    let error = file.write_at(b"0123456789", 4).expect_err("no room");
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert_eq!(read_file(&disk, Path::new("/f")).expect("read"), b"1234012345");
    file.write_at(b"xx", 0).expect("no growth");
}

#[test]
fn nothing_works_after_the_power_failed() {
    let disk = SimulatedDisk::new(3);
    let file = written(&disk, b"a");
    disk.fail_power_at(disk.operations());
    assert!(file.write_at(b"b", 0).is_err());
    assert!(file.write_at(b"c", 0).is_err());
    assert!(file.sync().is_err() && disk.list(Path::new("/")).is_err());
    let after = read_file(&disk.crash(), Path::new("/f")).expect("read");
    assert!([&b""[..], b"a", b"b"].contains(&&after[..]), "{after:?}");
}

#[test]
fn replacing_a_file_leaves_the_old_or_the_new_one() {
    for seed in 0..300 {
        let disk = SimulatedDisk::new(seed);
        replace_file(&disk, Path::new("/f"), &[1; 2000]).expect("replace");
        disk.fail_power_at(disk.operations() + seed % 6);
        let outcome = replace_file(&disk, Path::new("/f"), &[2; 3000]);
        let after = read_file(&disk.crash(), Path::new("/f")).expect("one of them");
        assert!(after == [1; 2000] && outcome.is_err() || after == [2; 3000], "seed {seed}");
    }
}

#[test]
fn locks_exclude_each_other() {
    let disk = SimulatedDisk::new(1);
    let open = || disk.open(Path::new("/f"), OpenMode::Create).expect("open");
    let (first, second) = (open(), open());
    assert!(first.try_lock(Lock::Shared).expect("lock") && second.try_lock(Lock::Shared).expect("lock"));
    assert!(!first.try_lock(Lock::Exclusive).expect("lock"));
    drop(second);
    assert!(first.try_lock(Lock::Exclusive).expect("lock"));
    assert!(!open().try_lock(Lock::Shared).expect("lock"));
    first.unlock().expect("unlock");
    assert!(open().try_lock(Lock::Exclusive).expect("lock"));
}
