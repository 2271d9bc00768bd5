//! Rows of a block of columns.

use std::ops::{Not, Range};

/// The rows of a block for which a test holds.
pub(super) enum Rows {
    All,
    None,
    Some(Vec<bool>),
}

impl Rows {
    pub(super) fn of(rows: Vec<bool>) -> Self {
        // Other columns of the block need not be read then.
        if rows.contains(&true) { Self::Some(rows) } else { Self::None }
    }

    /// The rows with these numbers, of which some may be found; they are given by rising number.
    pub(super) fn of_found<T>(ids: Range<u32>, found: &[T], number: impl Fn(&T) -> u32) -> Self {
        let place = |end: u32| found.partition_point(|found| number(found) < end);
        let found = found.get(place(ids.start)..place(ids.end)).unwrap_or_default();
        if found.is_empty() {
            return Self::None;
        }
        let mut rows = vec![false; ids.len()];
        for found in found {
            rows.get_mut((number(found) - ids.start) as usize).into_iter().for_each(|row| *row = true);
        }
        Self::Some(rows)
    }

    /// How many of all rows they are.
    pub(super) fn count(&self, all: usize) -> u64 {
        match self {
            Self::All => all as u64,
            Self::None => 0,
            Self::Some(rows) => rows.iter().filter(|is_in| **is_in).count() as u64,
        }
    }

    /// Whether it has a row.
    pub(super) fn has(&self, row: usize) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::Some(rows) => rows.get(row).copied().unwrap_or_default(),
        }
    }

    /// Those of these numbers, a row each, that it has.
    pub(super) fn of_ids(self, ids: Range<u32>) -> Vec<u32> {
        match self {
            Self::All => ids.collect(),
            Self::None => Vec::new(),
            Self::Some(rows) => ids.zip(rows).filter_map(|(id, is)| is.then_some(id)).collect(),
        }
    }

    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::None, _) | (_, Self::None) => Self::None,
            (Self::All, rows) | (rows, Self::All) => rows,
            (Self::Some(mut rows), Self::Some(others)) => {
                rows.iter_mut().zip(others).for_each(|(row, other)| *row &= other);
                Self::of(rows)
            }
        }
    }
}

impl Not for Rows {
    type Output = Self;

    fn not(self) -> Self {
        match self {
            Self::All => Self::None,
            Self::None => Self::All,
            Self::Some(mut rows) => {
                rows.iter_mut().for_each(|row| *row = !*row);
                Self::Some(rows)
            }
        }
    }
}
