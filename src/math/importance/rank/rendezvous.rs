//! A barrier for a few busy threads that synchronise thousands of times a second.

use std::sync::atomic::{AtomicU32, Ordering};

/// Number of spins before a thread yields its processor; a sweep takes about as long as a few of them.
const SPINS_MAX: u32 = 4096;

/// A barrier that spins for a moment before it yields: sleeping would take longer than the wait.
#[derive(Debug)]
pub(super) struct Rendezvous {
    threads: u32,
    arrived: AtomicU32,
    round: AtomicU32,
}

impl Rendezvous {
    pub(super) fn new(threads: usize) -> Self {
        Self { threads: threads as u32, arrived: AtomicU32::new(0), round: AtomicU32::new(0) }
    }

    /// Returns when all threads have called it. What a thread wrote before is visible to all afterwards.
    pub(super) fn wait(&self) {
        let round = self.round.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            self.round.store(round.wrapping_add(1), Ordering::Release);
            return;
        }
        let mut spins = 0;
        while self.round.load(Ordering::Acquire) == round {
            if spins < SPINS_MAX {
                spins += 1;
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
    }
}
