//! The first items of an order, found without sorting all of them.

use std::cmp::Ordering;

/// Keeps the first `limit` of all pushed items, with memory for at most twice as many and in linear time.
///
/// Items are collected up to twice the limit, then the worse half is dropped. From then on, items after the last one
/// kept are rejected immediately.
pub(crate) struct Top<T, F> {
    limit: Option<usize>,
    compare: F,
    items: Vec<T>,
    /// Whether `items[limit - 1]` is the last item that can still count.
    full: bool,
}

impl<T, F: Fn(&T, &T) -> Ordering> Top<T, F> {
    /// Keeps the first `limit` items by `compare`; all if there is no limit.
    pub(crate) fn new(limit: Option<usize>, compare: F) -> Self {
        Self { limit, compare, items: Vec::new(), full: false }
    }

    pub(crate) fn push(&mut self, item: T) {
        let Some(limit) = self.limit else { return self.items.push(item) };
        if self.last().is_some_and(|last| (self.compare)(&item, last) != Ordering::Less) || limit == 0 {
            return;
        }
        self.items.push(item);
        if self.items.len() >= limit.saturating_mul(2) {
            self.items.select_nth_unstable_by(limit - 1, &self.compare);
            self.items.truncate(limit);
            self.full = true;
        }
    }

    /// The item that others must come before in order to count, once known.
    pub(crate) fn last(&self) -> Option<&T> {
        self.limit.filter(|_| self.full).and_then(|limit| self.items.get(limit.checked_sub(1)?))
    }

    /// Number of items kept.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns the items in order and leaves none.
    pub(crate) fn take_sorted(&mut self) -> Vec<T> {
        self.full = false;
        let mut items = std::mem::take(&mut self.items);
        items.sort_by(&self.compare);
        if let Some(limit) = self.limit {
            items.truncate(limit);
        }
        items
    }

    /// Returns the items in order.
    pub(crate) fn into_sorted(mut self) -> Vec<T> {
        self.take_sorted()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Top;

    proptest! {
        #[test]
        fn keeps_what_sorting_would(items in prop::collection::vec(0..50u32, 0..200), limit in prop::option::of(0..20usize)) {
            let mut top = Top::new(limit, u32::cmp);
            for item in &items {
                top.push(*item);
            }
            let mut expected = items;
            expected.sort_unstable();
            expected.truncate(limit.unwrap_or(usize::MAX));
            prop_assert_eq!(top.into_sorted(), expected);
        }
    }
}
