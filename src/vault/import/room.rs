//! Limits the memory and disk space of captures between reading and storing.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A limit in memory, and on disk for contents that are too long for memory.
#[derive(Debug)]
pub(super) struct Room {
    most: Bytes,
    taken: Mutex<Bytes>,
    freed: Condvar,
}

/// Memory and disk space of a capture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Bytes {
    pub(super) memory: u64,
    pub(super) disk: u64,
}

/// Room that a capture occupies until this is dropped.
#[derive(Debug)]
pub(super) struct RoomLease {
    room: Arc<Room>,
    bytes: Bytes,
}

impl Room {
    pub(super) fn new(most: Bytes) -> Arc<Self> {
        Arc::new(Self { most, taken: Mutex::default(), freed: Condvar::new() })
    }

    /// Waits until there is room. A request that exceeds the limit waits until everything is free.
    pub(super) fn take(self: &Arc<Self>, bytes: Bytes) -> RoomLease {
        let is_over = |taken: u64, more: u64, most: u64| taken > 0 && more > 0 && taken + more > most;
        let is_full = |taken: &mut Bytes| {
            is_over(taken.memory, bytes.memory, self.most.memory)
                || is_over(taken.disk, bytes.disk, self.most.disk)
        };
        let taken = self.freed.wait_while(self.taken(), is_full);
        let mut taken = taken.unwrap_or_else(PoisonError::into_inner);
        taken.memory += bytes.memory;
        taken.disk += bytes.disk;
        RoomLease { room: Arc::clone(self), bytes }
    }

    fn taken(&self) -> MutexGuard<'_, Bytes> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RoomLease {
    /// Takes more memory even if the limit is exceeded, because the holder of a place must not wait for others.
    pub(super) fn grow(&mut self, memory: u64) {
        self.room.taken().memory += memory;
        self.bytes.memory += memory;
    }
}

impl Drop for RoomLease {
    fn drop(&mut self) {
        let mut taken = self.room.taken();
        taken.memory -= self.bytes.memory;
        taken.disk -= self.bytes.disk;
        self.room.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn who_finds_no_room_waits_for_it() {
        let room = Room::new(Bytes { memory: 10, disk: 10 });
        let memory = |memory| Bytes { memory, disk: 0 };
        let mut first = room.take(memory(6));
        let second = room.take(memory(4));
        first.grow(100);
        let came = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let place = room.take(memory(11));
                came.store(true, Ordering::SeqCst);
                drop(place);
            });
            drop(second);
            thread::sleep(Duration::from_millis(50));
            assert!(!came.load(Ordering::SeqCst), "more than there is waits until all is free");
            drop(first);
        });
        assert!(came.load(Ordering::SeqCst));
        assert_eq!(*room.taken(), Bytes::default());
        let spooled = room.take(Bytes { memory: 1, disk: 30 });
        let short = room.take(memory(1));
        drop((spooled, short));
    }
}
