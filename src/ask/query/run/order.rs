//! Rows or groups in the order of a plan and within its limits. Rows that exceed the query's memory are moved to sorted
//! runs, as rows of the answer.

use std::cmp::Ordering;

use crate::query::language::{Error, Plan, Value};
use crate::query::rows::{Row, Running, Top};
use crate::query::run::groups::Group;
use crate::query::run::spill::{Runs, Spilled};

/// A row or a group that matched.
pub(crate) struct Candidate<T> {
    /// The sort keys.
    pub(crate) keys: Vec<Value>,
    /// Tie-break for equal keys.
    pub(crate) id: u64,
    pub(crate) of: T,
}

/// Receives the rows of an answer as they are found.
pub(crate) type TakeRow<'a> = dyn FnMut(Vec<Value>) -> Result<(), Error> + 'a;

/// Computes the row of the answer.
pub(crate) type MakeRow<'a, T> = dyn Fn(&Candidate<T>) -> Result<Vec<Value>, Error> + 'a;

type CompareKeys<'a, T> = Box<dyn Fn(&Candidate<T>, &Candidate<T>) -> Ordering + 'a>;

/// The rows found so far, sorted by need.
pub(crate) struct Ordered<'a, T> {
    plan: &'a Plan,
    running: &'a Running,
    top: Top<Candidate<T>, CompareKeys<'a, T>>,
    runs: Runs<'a, CompareKeys<'a, Vec<Value>>>,
    /// `None` if all rows have to stay in memory.
    columns: Option<&'a MakeRow<'a, T>>,
    pub(crate) matched: u64,
    /// Bytes of all rows that matched.
    bytes: u64,
}

/// A type with a known memory size.
pub(crate) trait Weighed {
    /// Bytes used in addition to the value's own size.
    fn bytes(&self) -> usize;
}

impl<'a, T: Weighed + 'a> Ordered<'a, T> {
    /// Without rows yet.
    pub(crate) fn new(plan: &'a Plan, running: &'a Running, columns: Option<&'a MakeRow<'a, T>>) -> Self {
        let compare: CompareKeys<'a, T> = Box::new(move |left, right| plan.before(left, right));
        let runs: CompareKeys<'a, Vec<Value>> = Box::new(move |left, right| plan.before(left, right));
        Self {
            plan,
            running,
            top: Top::new(plan.last_row(), compare),
            runs: Runs::new(running, runs),
            columns,
            matched: 0,
            bytes: 0,
        }
    }

    pub(crate) fn offer(&mut self, candidate: Candidate<T>) -> Result<(), Error> {
        self.matched += 1;
        let keys: usize = candidate.keys.iter().map(Value::bytes).sum();
        self.bytes += (size_of::<Candidate<T>>() + keys + candidate.of.bytes()) as u64;
        self.top.push(candidate);
        // Some rows may have been dropped: the kept ones are assumed to have the same average size.
        let kept = u128::from(self.bytes) * self.top.len() as u128;
        if kept > self.running.limits.memory as u128 * u128::from(self.matched) {
            self.make_room()?;
        }
        Ok(())
    }

    /// Moves all rows to a temporary file.
    fn make_room(&mut self) -> Result<(), Error> {
        let (Some(columns), running) = (self.columns, self.running) else { return Ok(()) };
        let sorted = self.top.take_sorted().into_iter();
        self.runs.add(sorted.filter_map(|candidate| {
            let row = running.readable(columns(&candidate)).transpose()?;
            Some(row.map(|of| Candidate { keys: candidate.keys, id: candidate.id, of }))
        }))
    }

    /// The wanted rows, in order.
    pub(crate) fn into_sorted(mut self) -> impl Iterator<Item = T> {
        self.top.take_sorted().into_iter().skip(self.plan.offset).map(|candidate| candidate.of)
    }

    /// Passes the rows of the answer to a function, in order, and returns how many there are.
    pub(crate) fn each(mut self, take: &mut TakeRow<'_>) -> Result<u64, Error> {
        let mut rows = 0;
        let (first, last) = (self.plan.offset, self.plan.last_row().unwrap_or(usize::MAX));
        if let (Some(columns), true) = (self.columns, self.runs.is_empty()) {
            for candidate in self.top.take_sorted().into_iter().skip(first) {
                self.running.check_row()?;
                if let Some(row) = self.running.readable(columns(&candidate))? {
                    rows += 1;
                    take(row)?;
                }
            }
            return Ok(rows);
        }
        self.make_room()?;
        for (place, candidate) in self.runs.merged::<Candidate<Vec<Value>>>()?.enumerate().take(last) {
            let row = candidate?;
            self.running.check_row()?;
            if place >= first {
                rows += 1;
                take(row.of)?;
            }
        }
        Ok(rows)
    }
}

impl Spilled for Candidate<Vec<Value>> {
    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.id.to_le_bytes());
        self.keys.write(bytes);
        self.of.write(bytes);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let id = u64::from_le_bytes(*bytes.split_off(..8)?.first_chunk()?);
        Some(Self { id, keys: Vec::read(bytes)?, of: Vec::read(bytes)? })
    }
}

impl Weighed for Row {
    fn bytes(&self) -> usize {
        match self {
            Self::Site(site) => site.name.len(),
            Self::Host(host) => host.name.len(),
            Self::Capture(capture) => capture.content_type.len(),
            Self::Page(_) | Self::Link(_) => 0,
        }
    }
}

impl Weighed for Group {
    fn bytes(&self) -> usize {
        self.keys.iter().chain(&self.aggregates).map(Value::bytes).sum()
    }
}
