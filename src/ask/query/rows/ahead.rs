//! What was read ahead for captures.

use std::cell::RefCell;
use std::collections::HashMap;

use archive_storage::CaptureId;

/// What was read ahead for captures.
pub(crate) struct Ahead<T> {
    read: RefCell<HashMap<CaptureId, T>>,
    /// The captures requested so far, while requests are being collected.
    asked: RefCell<Option<Vec<CaptureId>>>,
}

impl<T> Default for Ahead<T> {
    fn default() -> Self {
        Self { read: RefCell::default(), asked: RefCell::default() }
    }
}

impl<T: Clone + Default> Ahead<T> {
    /// Returns what was read for a capture, if it was. While requests are being collected, notes the capture and
    /// returns a default.
    pub(crate) fn get(&self, capture: CaptureId) -> Option<T> {
        if let Some(asked) = self.asked.borrow_mut().as_mut() {
            asked.push(capture);
            return Some(T::default());
        }
        self.read.borrow().get(&capture).cloned()
    }

    /// Starts to collect requests.
    pub(crate) fn ask(&self) {
        *self.asked.borrow_mut() = Some(Vec::new());
    }

    /// Ends collecting, and returns the requested captures.
    pub(crate) fn asked(&self) -> Vec<CaptureId> {
        self.asked.take().unwrap_or_default()
    }

    /// Replaces what was read before.
    pub(crate) fn keep(&self, captures: Vec<CaptureId>, read: impl IntoIterator<Item = T>) {
        *self.read.borrow_mut() = captures.into_iter().zip(read).collect();
    }
}
