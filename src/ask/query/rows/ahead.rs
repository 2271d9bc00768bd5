//! What was read ahead for captures.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::Hash;

use crate::query::language::Found;
use crate::query::rows::limits::Unreadable;

/// What was read together; nothing if something cannot be read.
pub(crate) fn known<T>(read: Found<Vec<T>>) -> Found<Vec<T>> {
    if read.as_ref().is_err_and(|error| error.is::<Unreadable>()) { Ok(Vec::new()) } else { read }
}

/// What was read ahead, for captures mostly.
pub(crate) struct Ahead<K, T> {
    read: RefCell<HashMap<K, T>>,
    /// What was requested so far, while requests are being collected.
    asked: RefCell<Option<Vec<K>>>,
}

impl<K, T> Default for Ahead<K, T> {
    fn default() -> Self {
        Self { read: RefCell::default(), asked: RefCell::default() }
    }
}

impl<K: Clone + Eq + Hash, T: Clone + Default> Ahead<K, T> {
    /// Returns what was read for a capture, if it was. While requests are being collected, notes the capture and
    /// returns a default.
    pub(crate) fn get(&self, capture: &K) -> Option<T> {
        if let Some(asked) = self.asked.borrow_mut().as_mut() {
            asked.push(capture.clone());
            return Some(T::default());
        }
        self.read.borrow().get(capture).cloned()
    }

    /// Starts to collect requests.
    pub(crate) fn ask(&self) {
        *self.asked.borrow_mut() = Some(Vec::new());
    }

    /// Ends collecting, and returns the requested captures.
    pub(crate) fn asked(&self) -> Vec<K> {
        self.asked.take().unwrap_or_default()
    }

    /// Replaces what was read before.
    pub(crate) fn keep(&self, captures: Vec<K>, read: impl IntoIterator<Item = T>) {
        *self.read.borrow_mut() = captures.into_iter().zip(read).collect();
    }
}
