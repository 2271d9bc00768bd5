//! What a store acknowledges, and what it does while readers are in the way.

use std::path::Path;
use std::sync::Arc;

use archive_storage::backend::{Disk, SimulatedDisk};
use archive_storage::segment::{CaptureBody, CaptureGroup, Codec, SegmentOptions};
use archive_storage::{Checkpointed, Digest, SYNC_BYTES_MAX, State, StateMode, Store, StoreError};
use chrono::DateTime;

const ARCHIVE: &str = "/archive";

fn own(disk: &SimulatedDisk) -> Store {
    // Stored and not compressed, so that bytes are those of the bodies.
    let options = SegmentOptions { codec: Some(Codec::Gzip), level: Some(0), ..SegmentOptions::default() };
    Store::own_on(Arc::new(disk.clone()), Path::new(ARCHIVE), options).expect("an archive")
}

fn append(store: &mut Store, number: u64, length: usize) {
    let body = vec![number as u8; length];
    let group = CaptureGroup {
        url: format!("http://a/{number}"),
        time: DateTime::UNIX_EPOCH,
        address: None,
        request: None,
        payload_digest: Some(Digest::sha256(&body)),
        body: CaptureBody::Resource { content_type: "text/plain".into(), body: body.into() },
        protocols: Vec::new(),
        metadata: Vec::new(),
    };
    let encoded = store.encoder().expect("an owner").encode(group).expect("memory");
    store.append(&encoded).expect("room");
}

fn replayed(store: &mut Store) -> u64 {
    let mut count = 0;
    let outcome: Result<_, StoreError> = store.replay(|_, _| {
        count += 1;
        Ok(())
    });
    assert!(outcome.expect("a readable disk").is_empty());
    count
}

fn disk() -> SimulatedDisk {
    let disk = SimulatedDisk::new(1);
    disk.create_dir_all(Path::new(ARCHIVE)).expect("an empty disk takes a folder");
    disk
}

#[test]
fn no_more_than_the_bound_waits_for_a_sync() {
    let disk = disk();
    let mut store = own(&disk);
    const LENGTH: usize = 4 << 20;
    let fits = SYNC_BYTES_MAX / (LENGTH as u64 + 1000);
    for number in 0..fits {
        append(&mut store, number, LENGTH);
        assert_eq!(store.acknowledged(), 0);
    }
    append(&mut store, fits, LENGTH);
    append(&mut store, fits + 1, LENGTH);
    assert!((fits..=fits + 1).contains(&store.acknowledged()), "{}", store.acknowledged());
    let acknowledged = store.acknowledged();
    drop(store);
    assert!(replayed(&mut own(&disk.crash())) >= acknowledged);
}

#[test]
fn what_is_synced_is_acknowledged() {
    let disk = disk();
    let mut store = own(&disk);
    append(&mut store, 1, 100);
    assert_eq!(store.acknowledged(), 0);
    store.sync().expect("a good disk");
    assert_eq!(store.acknowledged(), 1);
    append(&mut store, 2, 100);
    assert_eq!(store.checkpoint().expect("a good disk"), Checkpointed::Done);
    assert_eq!(store.acknowledged(), 2);
}

#[test]
fn a_reader_defers_the_state_but_not_the_records() {
    let disk = disk();
    let mut store = own(&disk);
    assert_eq!(store.checkpoint().expect("a good disk"), Checkpointed::Done);
    let reader = State::open(Arc::new(disk.clone()), Path::new(ARCHIVE), StateMode::Read).expect("a reader");
    append(&mut store, 1, 100);
    assert_eq!(store.checkpoint().expect("a good disk"), Checkpointed::Deferred);
    assert_eq!(store.acknowledged(), 1);
    let number = store.state().checkpoint_number();
    drop(reader);
    store.checkpoint_waiting().expect("nobody in the way");
    assert_eq!(store.state().checkpoint_number(), number + 1);
}
