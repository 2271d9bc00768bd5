//! Sets of rows within a block of columns.

use std::ops::{Not, Range};

use archive_books::prepared::{Column as Stored, FEW, Prepared, PreparedError};
use archive_storage::UrlId;

/// The rows of a block that pass a test.
pub(crate) enum RowSet {
    All,
    None,
    /// Fewer than one in [`FEW`] rows, sorted, and the total number of rows.
    Few(Vec<u32>, usize),
    Some(Vec<bool>),
}

impl RowSet {
    pub(crate) fn of(rows: Vec<bool>) -> Self {
        // Without any row, other columns of the block need not be read.
        if rows.contains(&true) { Self::Some(rows) } else { Self::None }
    }

    fn of_few(rows: Vec<u32>, all: usize) -> Self {
        if rows.is_empty() { Self::None } else { Self::Few(rows, all) }
    }

    /// The rows of a block with these page ids that were found; `found` is sorted by id.
    pub(crate) fn of_found(ids: Range<u32>, found: &[UrlId]) -> Self {
        let place = |end: u32| found.partition_point(|found| found.0 < end);
        let found = found.get(place(ids.start)..place(ids.end)).unwrap_or_default();
        let rows = found.iter().map(|found| found.0 - ids.start);
        if found.len() < ids.len() / FEW || found.is_empty() {
            let mut rows: Vec<u32> = rows.collect();
            rows.dedup();
            return Self::of_few(rows, ids.len());
        }
        Self::Some(flags(rows, ids.len()))
    }

    /// The rows whose value in a column passes a test; the result is unspecified for rows outside `among`.
    pub(crate) fn passing(
        (prepared, block): (&Prepared, u32),
        column: Stored,
        among: &Self,
        passes: impl Fn(u64) -> bool,
    ) -> Result<Self, PreparedError> {
        let Self::Few(rows, all) = among else { return Ok(Self::of(prepared.map(block, column, passes)?)) };
        let values = prepared.pick(block, column, rows)?;
        let passing = rows.iter().zip(values).filter(|(_, value)| passes(*value));
        Ok(Self::of_few(passing.map(|(row, _)| *row).collect(), *all))
    }

    /// The rows, if they are few.
    pub(crate) fn few(&self) -> Option<&[u32]> {
        if let Self::Few(rows, _) = self { Some(rows) } else { None }
    }

    /// The values of a column in these rows if they are few, otherwise in all rows of the block.
    pub(crate) fn values(
        &self,
        prepared: &Prepared,
        block: u32,
        column: Stored,
    ) -> Result<Vec<u64>, PreparedError> {
        match self.few() {
            Some(few) => prepared.pick(block, column, few),
            None => prepared.values(block, column),
        }
    }

    /// The row at each position that `values` returns; `None` for rows outside the set.
    pub(crate) fn places(&self, all: usize) -> impl Iterator<Item = Option<u32>> + '_ {
        let few = self.few();
        (0..few.map_or(all, <[_]>::len)).map(move |place| match few {
            Some(few) => few.get(place).copied(),
            None => self.has(place).then_some(place as u32),
        })
    }

    /// The position of a row among `places`, if it is in the set.
    pub(crate) fn place(&self, row: u32) -> Option<usize> {
        match self {
            Self::Few(rows, _) => rows.binary_search(&row).ok(),
            rows => rows.has(row as usize).then_some(row as usize),
        }
    }

    /// Number of rows in the set, given the number of rows in the block.
    pub(crate) fn count(&self, all: usize) -> u64 {
        match self {
            Self::All => all as u64,
            Self::None => 0,
            Self::Few(rows, _) => rows.len() as u64,
            Self::Some(rows) => rows.iter().filter(|is_in| **is_in).count() as u64,
        }
    }

    /// Whether the set contains a row.
    pub(crate) fn has(&self, row: usize) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::Few(rows, _) => rows.binary_search(&(row as u32)).is_ok(),
            Self::Some(rows) => rows.get(row).copied().unwrap_or_default(),
        }
    }

    /// Whether the set contains a row of a range.
    pub(crate) fn has_any(&self, mut range: Range<u32>) -> bool {
        match self {
            Self::Few(rows, _) => {
                rows.get(rows.partition_point(|row| *row < range.start)).is_some_and(|row| *row < range.end)
            }
            rows => range.any(|row| rows.has(row as usize)),
        }
    }

    /// The ids in the set, given the ids of the block's rows.
    pub(crate) fn of_ids(self, ids: Range<u32>) -> Vec<u32> {
        match self {
            Self::All => ids.collect(),
            Self::None => Vec::new(),
            Self::Few(rows, _) => rows.into_iter().map(|row| ids.start + row).collect(),
            Self::Some(rows) => ids.zip(rows).filter_map(|(id, is)| is.then_some(id)).collect(),
        }
    }

    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::None, _) | (_, Self::None) => Self::None,
            (Self::All, rows) | (rows, Self::All) => rows,
            (Self::Few(mut rows, all), Self::Few(others, _)) => {
                let mut others = others.into_iter().peekable();
                rows.retain(|row| {
                    while others.next_if(|other| other < row).is_some() {}
                    others.next_if_eq(row).is_some()
                });
                Self::of_few(rows, all)
            }
            (Self::Few(mut rows, all), other) | (other, Self::Few(mut rows, all)) => {
                rows.retain(|row| other.has(*row as usize));
                Self::of_few(rows, all)
            }
            (Self::Some(mut rows), Self::Some(others)) => {
                rows.iter_mut().zip(others).for_each(|(row, other)| *row &= other);
                Self::of(rows)
            }
        }
    }

    pub(crate) fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::All, _) | (_, Self::All) => Self::All,
            (Self::None, rows) | (rows, Self::None) => rows,
            (Self::Some(mut rows), Self::Some(others)) => {
                rows.iter_mut().zip(others).for_each(|(row, other)| *row |= other);
                Self::Some(rows)
            }
            (Self::Few(few, _), Self::Some(mut rows)) | (Self::Some(mut rows), Self::Few(few, _)) => {
                set(&mut rows, few);
                Self::Some(rows)
            }
            (Self::Few(mut rows, all), Self::Few(others, _)) => {
                rows.extend(others);
                rows.sort();
                rows.dedup();
                if rows.len() < all / FEW { Self::Few(rows, all) } else { Self::Some(flags(rows, all)) }
            }
        }
    }
}

/// Turns row numbers into a flag for each row.
pub(crate) fn flags(rows: impl IntoIterator<Item = u32>, all: usize) -> Vec<bool> {
    let mut flags = vec![false; all];
    set(&mut flags, rows);
    flags
}

fn set(flags: &mut [bool], rows: impl IntoIterator<Item = u32>) {
    for row in rows {
        flags.get_mut(row as usize).into_iter().for_each(|flag| *flag = true);
    }
}

impl Not for RowSet {
    type Output = Self;

    fn not(self) -> Self {
        match self {
            Self::All => Self::None,
            Self::None => Self::All,
            Self::Few(rows, all) => !Self::Some(flags(rows, all)),
            Self::Some(mut rows) => {
                rows.iter_mut().for_each(|row| *row = !*row);
                Self::Some(rows)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: usize = 40;

    /// Sets of rows of different density.
    fn rows() -> impl Strategy<Value = Vec<u32>> {
        prop_oneof![
            prop::collection::btree_set(0..ALL as u32, 0..ALL),
            prop::collection::btree_set(0..ALL as u32, 0..ALL / FEW),
        ]
        .prop_map(|rows| rows.into_iter().collect())
    }

    fn forms(rows: &[u32]) -> Vec<RowSet> {
        let all = (rows.len() == ALL).then_some(RowSet::All);
        let few = (rows.len() < ALL / FEW).then(|| RowSet::of_few(rows.to_vec(), ALL));
        let found: Vec<UrlId> = rows.iter().copied().map(UrlId).collect();
        let some = RowSet::of(flags(rows.iter().copied(), ALL));
        all.into_iter().chain(few).chain([some, RowSet::of_found(0..ALL as u32, &found)]).collect()
    }

    proptest! {
        #[test]
        fn rows_are_combined_whatever_their_form(left in rows(), right in rows()) {
            let ids = |rows: RowSet| rows.of_ids(0..ALL as u32);
            let (is_left, is_right) = (|row: &u32| left.contains(row), |row: &u32| right.contains(row));
            let those = |is_in: &dyn Fn(&u32) -> bool| (0..ALL as u32).filter(is_in).collect::<Vec<_>>();
            for form in forms(&left) {
                prop_assert_eq!(form.count(ALL), left.len() as u64);
                let places: Vec<u32> = form.places(ALL).flatten().collect();
                prop_assert_eq!(&places, &left);
                for (place, row) in form.places(ALL).enumerate().filter_map(|(place, row)| Some((place, row?))) {
                    prop_assert_eq!(form.place(row), Some(place));
                }
                for first in 0..ALL as u32 {
                    prop_assert_eq!(form.has(first as usize), is_left(&first));
                    prop_assert_eq!(form.has_any(first..first + 3), (first..first + 3).any(|row| is_left(&row)));
                }
                prop_assert_eq!(ids(!form), those(&|row| !is_left(row)));
            }
            for place in 0..forms(&left).len() {
                for other in 0..forms(&right).len() {
                    let pair = || (forms(&left).swap_remove(place), forms(&right).swap_remove(other));
                    let (one, two) = pair();
                    prop_assert_eq!(ids(one.and(two)), those(&|row| is_left(row) && is_right(row)));
                    let (one, two) = pair();
                    prop_assert_eq!(ids(one.or(two)), those(&|row| is_left(row) || is_right(row)));
                }
            }
        }
    }
}
