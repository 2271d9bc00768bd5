//! A point where a few busy threads wait for each other, thousands of times a second.

use std::sync::atomic::{AtomicU32, Ordering};

/// Turns of waiting before a thread gives its processor away; a sweep takes about as long as a few of them.
const SPINS_MAX: u32 = 4096;

/// A barrier that waits awake for a moment before it yields: sleeping would cost more than what is waited for.
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

    /// Returns when all threads have called it. What they wrote before is seen by all afterwards.
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
