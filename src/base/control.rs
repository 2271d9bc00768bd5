//! Stops, pauses and resumes whatever takes long: a crawl, an import, a copy, a server.

use std::sync::atomic::{AtomicBool, Ordering};

/// Shared between an operation and its signal handler.
#[derive(Debug, Default)]
pub struct Control {
    stop: AtomicBool,
    pause: AtomicBool,
}

impl Control {
    /// Requests a clean stop.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    /// Starts nothing new until [`Control::resume`]; work in progress is still stored.
    pub fn pause(&self) {
        self.pause.store(true, Ordering::SeqCst);
    }

    /// Ends a pause.
    pub fn resume(&self) {
        self.pause.store(false, Ordering::SeqCst);
    }

    /// Whether a stop was requested.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Whether a pause was requested.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.pause.load(Ordering::SeqCst)
    }
}
