//! The lists of links in a graph, page by page (section 4 of the paper).

use std::io::Read;

use super::bits::{BitError, BitReader};
use super::codes::Code;
use super::properties::Properties;

/// Reads lists in order; each may refer to some of those before it.
pub(super) struct Lists<R> {
    bits: BitReader<R>,
    properties: Properties,
    page: u32,
    /// Number of links that may still follow.
    arcs_left: u64,
    /// The last lists; that of a page is at its number modulo the number of lists.
    last: Vec<Vec<u32>>,
    copied: Vec<u32>,
    /// Links in intervals.
    runs: Vec<u32>,
    residuals: Vec<u32>,
    /// Intervals and residuals together.
    merged: Vec<u32>,
}

impl<R: Read> Lists<R> {
    /// Starts reading lists, with at most `arcs_max` links in total.
    pub(super) fn new(from: R, properties: Properties, arcs_max: u64) -> Self {
        Self {
            bits: BitReader::new(from),
            page: 0,
            arcs_left: arcs_max,
            last: vec![Vec::new(); properties.window as usize + 1],
            copied: Vec::new(),
            runs: Vec::new(),
            residuals: Vec::new(),
            merged: Vec::new(),
            properties,
        }
    }

    /// Returns the page whose list is read next.
    pub(super) fn page(&self) -> u32 {
        self.page
    }

    /// Returns the targets of the next page, ascending; `None` after the last page.
    pub(super) fn next(&mut self) -> Result<Option<&[u32]>, BitError> {
        if self.page == self.properties.pages {
            return Ok(None);
        }
        let place = self.page as usize % self.last.len();
        let mut list = std::mem::take(&mut self.last[place]);
        list.clear();
        let degree = self.number(self.properties.codes.degrees, self.arcs_left)?;
        if degree > 0 {
            self.arcs_left -= degree;
            self.copy(degree)?;
            self.intervals(degree)?;
            self.residuals(degree)?;
            let own = match (self.runs.is_empty(), self.residuals.is_empty()) {
                (_, true) => &self.runs,
                (true, _) => &self.residuals,
                _ => {
                    self.merged.clear();
                    merge(&self.runs, &self.residuals, &mut self.merged)?;
                    &self.merged
                }
            };
            merge(&self.copied, own, &mut list)?;
        }
        self.page += 1;
        self.last[place] = list;
        Ok(Some(&self.last[place]))
    }

    /// Reads a number that is at most `most`.
    #[inline]
    fn number(&mut self, code: Code, most: u64) -> Result<u64, BitError> {
        match code.read(&mut self.bits)? {
            number if number <= most => Ok(number),
            _ => Err(BitError::Damaged("a number is too large")),
        }
    }

    /// Reads which links are copied from an earlier list: every other block of it.
    fn copy(&mut self, degree: u64) -> Result<(), BitError> {
        self.copied.clear();
        if self.properties.window == 0 {
            return Ok(());
        }
        let most = self.page.min(self.properties.window);
        let back = self.number(self.properties.codes.references, most.into())? as u32;
        if back == 0 {
            return Ok(());
        }
        let place = (self.page - back) as usize % self.last.len();
        let from = std::mem::take(&mut self.last[place]);
        let outcome = self.blocks(&from);
        self.last[place] = from;
        outcome?;
        if self.copied.len() as u64 > degree {
            return Err(BitError::Damaged("more links are copied than there are"));
        }
        Ok(())
    }

    fn blocks(&mut self, from: &[u32]) -> Result<(), BitError> {
        let count = self.number(self.properties.codes.block_counts, from.len() as u64 + 1)?;
        let mut rest = from;
        for block in 0..count {
            let most = rest.len() as u64;
            // All blocks but the first have at least one link.
            let length = match block {
                0 => self.number(self.properties.codes.blocks, most)?,
                _ => self.number(self.properties.codes.blocks, most.saturating_sub(1))? + 1,
            };
            let (taken, after) = rest
                .split_at_checked(length as usize)
                .ok_or(BitError::Damaged("a block ends beyond its list"))?;
            if block % 2 == 0 {
                self.copied.extend_from_slice(taken);
            }
            rest = after;
        }
        // The last block is implicit.
        if count % 2 == 0 {
            self.copied.extend_from_slice(rest);
        }
        Ok(())
    }

    /// Reads intervals of consecutive targets.
    fn intervals(&mut self, degree: u64) -> Result<(), BitError> {
        self.runs.clear();
        let mut left = degree - self.copied.len() as u64;
        let (code, shortest) = (self.properties.codes.intervals, u64::from(self.properties.interval_min));
        if left == 0 || shortest == 0 {
            return Ok(());
        }
        let count = self.number(code, left / shortest)?;
        let mut end = None;
        for _ in 0..count {
            let start = self.target(code, end)?;
            let most = left.checked_sub(shortest).ok_or(BitError::Damaged("there are too many intervals"))?;
            let length = self.number(code, most)? + shortest;
            left -= length;
            let after = u64::from(start) + length;
            if after > u64::from(self.properties.pages) {
                return Err(BitError::Damaged("an interval ends beyond the last page"));
            }
            self.runs.extend((u64::from(start)..after).map(|target| target as u32));
            end = Some(after);
        }
        Ok(())
    }

    /// Reads the targets that are neither copied nor in an interval.
    fn residuals(&mut self, degree: u64) -> Result<(), BitError> {
        self.residuals.clear();
        let mut before = None;
        for _ in (self.copied.len() + self.runs.len()) as u64..degree {
            let target = self.target(self.properties.codes.residuals, before)?;
            self.residuals.push(target);
            before = Some(u64::from(target));
        }
        Ok(())
    }

    /// Reads a target: the first as the distance from the page, others as the gap after `before`.
    #[inline]
    fn target(&mut self, code: Code, before: Option<u64>) -> Result<u32, BitError> {
        let number = code.read(&mut self.bits)?;
        let target = match before {
            Some(before) => number.checked_add(before + 1),
            // 0, -1, 1, -2, … are encoded as 0, 1, 2, 3, …
            None if number % 2 == 0 => u64::from(self.page).checked_add(number / 2),
            None => u64::from(self.page).checked_sub(number / 2 + 1),
        };
        let target = target.and_then(|target| u32::try_from(target).ok());
        target
            .filter(|target| *target < self.properties.pages)
            .ok_or(BitError::Damaged("a target is not a page"))
    }
}

/// Merges two ascending lists and appends the result.
fn merge(mut left: &[u32], mut right: &[u32], into: &mut Vec<u32>) -> Result<(), BitError> {
    while let (Some((&a, after_a)), Some((&b, after_b))) = (left.split_first(), right.split_first()) {
        if a == b {
            return Err(BitError::Damaged("a target occurs twice"));
        }
        if a < b {
            into.push(a);
            left = after_a;
        } else {
            into.push(b);
            right = after_b;
        }
    }
    into.extend_from_slice(left);
    into.extend_from_slice(right);
    Ok(())
}
