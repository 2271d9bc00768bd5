//! The first rows of an order, without sorting all.

use std::cmp::Ordering;

/// Keeps the `limit` first of all items pushed, in at most twice that memory and linear time.
///
/// Items are gathered to twice the limit, then the worse half is thrown away. From then on, items after the last one
/// kept are refused at once.
pub(crate) struct Top<T, F> {
    limit: Option<usize>,
    compare: F,
    items: Vec<T>,
    /// Whether `items[limit - 1]` is the last item that can still count.
    full: bool,
}

impl<T, F: Fn(&T, &T) -> Ordering> Top<T, F> {
    /// The first `limit` items by `compare`; all when there is no limit.
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

    /// An item that everything has to come before to count, once it is known.
    pub(crate) fn last(&self) -> Option<&T> {
        self.limit.filter(|_| self.full).and_then(|limit| self.items.get(limit.checked_sub(1)?))
    }

    /// How many items are kept.
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// The items in order; none are left.
    pub(super) fn take_sorted(&mut self) -> Vec<T> {
        self.full = false;
        let mut items = std::mem::take(&mut self.items);
        items.sort_by(&self.compare);
        if let Some(limit) = self.limit {
            items.truncate(limit);
        }
        items
    }

    /// The items in order.
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
