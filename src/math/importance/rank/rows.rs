//! Rows of a sparse matrix, laid out so that summing them costs little more than reading the values.
//!
//! A loop with an unpredictable number of iterations costs more than the few links that most pages have. So rows are
//! stored in runs of equal length, and short lengths have specialised loops.

use std::ops::{Add, Mul, Range};

/// Numbers that a row can sum.
pub(super) trait RowNumber:
    Copy + Default + Add<Output = Self> + Mul<Output = Self> + From<f32>
{
}

impl RowNumber for f32 {}
impl RowNumber for f64 {}

/// Number of partial sums, so that an addition need not wait for the previous one.
const LANES: usize = 4;

/// Consecutive rows of equal length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RowRun {
    rows: u32,
    length: u32,
}

/// Rows in descending order of length; `I` is the type of a source.
#[derive(Debug)]
pub(super) struct RunRows<I> {
    runs: Vec<RowRun>,
    sources: Vec<I>,
    /// Empty if all weights are 1.
    weights: Vec<f32>,
}

impl<I> Default for RunRows<I> {
    fn default() -> Self {
        Self { runs: Vec::new(), sources: Vec::new(), weights: Vec::new() }
    }
}

impl<I: Copy + Into<u32>> RunRows<I> {
    pub(super) fn with_capacity(sources: usize, is_weighted: bool) -> Self {
        let weights = if is_weighted { sources } else { 0 };
        Self { runs: Vec::new(), sources: Vec::with_capacity(sources), weights: Vec::with_capacity(weights) }
    }

    /// Adds a source to the row that the next [`Self::end_row`] ends.
    #[inline]
    pub(super) fn push(&mut self, source: I, weight: Option<f32>) {
        self.sources.push(source);
        self.weights.extend(weight);
    }

    /// Ends a row of this many sources.
    pub(super) fn end_row(&mut self, length: usize) {
        let length = length as u32;
        match self.runs.last_mut().filter(|run| run.length == length) {
            Some(run) => run.rows += 1,
            None => self.runs.push(RowRun { rows: 1, length }),
        }
    }

    /// Releases unused capacity.
    pub(super) fn shrink(&mut self) {
        self.sources.shrink_to_fit();
        self.weights.shrink_to_fit();
    }

    /// Number of arcs in these rows.
    pub(super) fn arcs(&self) -> usize {
        self.sources.len()
    }

    /// Calls `row` with the number of each row and the sum of `read` over its sources, in order.
    #[inline]
    pub(super) fn each<V: RowNumber>(&self, read: impl Fn(usize) -> V + Copy, mut row: impl FnMut(usize, V)) {
        let (mut first, mut begin) = (0, 0);
        for run in &self.runs {
            let (count, length) = (run.rows as usize, run.length as usize);
            let arcs = begin..begin + count * length;
            begin = arcs.end;
            let numbers = first..first + count;
            first = numbers.end;
            if length == 0 {
                numbers.for_each(|number| row(number, V::default()));
            } else if !self.weights.is_empty() {
                self.weighted(arcs, length, numbers, read, &mut row);
            } else {
                let sources = &self.sources[arcs];
                match length {
                    1 => fixed::<1, I, V>(sources, numbers, read, &mut row),
                    2 => fixed::<2, I, V>(sources, numbers, read, &mut row),
                    3 => fixed::<3, I, V>(sources, numbers, read, &mut row),
                    4 => fixed::<4, I, V>(sources, numbers, read, &mut row),
                    5 => fixed::<5, I, V>(sources, numbers, read, &mut row),
                    6 => fixed::<6, I, V>(sources, numbers, read, &mut row),
                    7 => fixed::<7, I, V>(sources, numbers, read, &mut row),
                    8 => fixed::<8, I, V>(sources, numbers, read, &mut row),
                    _ => numbers
                        .zip(sources.chunks_exact(length))
                        .for_each(|(number, sources)| row(number, sum(sources, read))),
                }
            }
        }
    }

    fn weighted<V: RowNumber>(
        &self,
        arcs: Range<usize>,
        length: usize,
        numbers: Range<usize>,
        read: impl Fn(usize) -> V,
        row: &mut impl FnMut(usize, V),
    ) {
        let rows =
            self.sources[arcs.clone()].chunks_exact(length).zip(self.weights[arcs].chunks_exact(length));
        for (number, (sources, weights)) in numbers.zip(rows) {
            let mut sums = [V::default(); LANES];
            for (place, (&source, &weight)) in sources.iter().zip(weights).enumerate() {
                let lane = &mut sums[place % LANES];
                *lane = *lane + read(source.into() as usize) * V::from(weight);
            }
            row(number, together(sums));
        }
    }
}

/// Sums rows of a length known at compile time.
#[inline]
fn fixed<const LENGTH: usize, I: Copy + Into<u32>, V: RowNumber>(
    sources: &[I],
    numbers: Range<usize>,
    read: impl Fn(usize) -> V + Copy,
    row: &mut impl FnMut(usize, V),
) {
    for (number, sources) in numbers.zip(sources.as_chunks::<LENGTH>().0) {
        row(number, sum(sources, read));
    }
}

#[inline]
fn sum<I: Copy + Into<u32>, V: RowNumber>(sources: &[I], read: impl Fn(usize) -> V) -> V {
    let (groups, rest) = sources.as_chunks::<LANES>();
    let mut sums = [V::default(); LANES];
    for group in groups {
        for (sum, &source) in sums.iter_mut().zip(group) {
            *sum = *sum + read(source.into() as usize);
        }
    }
    for (sum, &source) in sums.iter_mut().zip(rest) {
        *sum = *sum + read(source.into() as usize);
    }
    together(sums)
}

#[inline]
fn together<V: RowNumber>([a, b, c, d]: [V; LANES]) -> V {
    (a + b) + (c + d)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_every_length_are_added_up() {
        for is_weighted in [false, true] {
            let mut rows: RunRows<u16> = RunRows::default();
            let lengths = [23usize, 9, 9, 8, 7, 7, 6, 5, 4, 3, 2, 1, 1, 0, 0];
            let mut expected = Vec::new();
            for (number, length) in lengths.into_iter().enumerate() {
                let sources = (0..length).map(|place| (number * 31 + place * 7) as u16 % 100);
                let weight = |source: u16| if is_weighted { f32::from(source % 3) } else { 1.0 };
                sources.clone().for_each(|source| rows.push(source, is_weighted.then(|| weight(source))));
                rows.end_row(length);
                expected
                    .push(sources.map(|source| f64::from(source) * f64::from(weight(source))).sum::<f64>());
            }
            let mut found = Vec::new();
            rows.each(|source| source as f64, |number, sum| found.push((number, sum)));
            assert_eq!(found, expected.into_iter().enumerate().collect::<Vec<_>>());
        }
    }
}
