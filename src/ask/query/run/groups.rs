//! Groups of rows: their keys and aggregates.
//!
//! Rows are streamed; a group keeps its key and a few numbers. Only `median` and `count(distinct …)` keep values, and
//! only `median` keeps duplicates. All memory is counted in bytes; groups that exceed the query's memory are moved to
//! `group_runs`.

use std::collections::{HashMap, HashSet};

use crate::query::language::{
    Aggregate, Error, Found, Gather, PERIODS_MAX, Period, PlannedExpr, Subject, Value, expr,
};
use crate::query::rows::{Bucket, Running, Sum};
use crate::query::run::group_runs::GroupRuns;

/// Memory per group in addition to its key and aggregates: in the table, and while it is spilled.
const GROUP_BYTES: usize = 320;

/// Memory overhead of a distinct value, and of an aggregate of a group.
const OVERHEAD_BYTES: usize = 64;

/// Intermediate state of an aggregate.
#[derive(Clone, Debug)]
pub(crate) enum Gathered {
    Count(u64),
    Distinct(HashSet<Vec<u8>>),
    /// `low` accumulates the rounding errors of `sum`.
    Sum {
        sum: f64,
        low: f64,
        count: u64,
    },
    Best(Value),
    All(Vec<f64>),
}

/// A group.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) keys: Vec<Value>,
    pub(crate) gathered: Vec<Gathered>,
    pub(crate) aggregates: Vec<Value>,
}

/// The groups of a running query.
pub(crate) struct Groups<'a> {
    keys: &'a [PlannedExpr],
    aggregates: &'a [Aggregate],
    found: HashMap<Vec<u8>, Group>,
    bytes: usize,
    running: &'a Running,
    runs: GroupRuns<'a>,
}

impl<'a> Groups<'a> {
    pub(crate) fn new(keys: &'a [PlannedExpr], aggregates: &'a [Aggregate], running: &'a Running) -> Self {
        let runs = GroupRuns::new(running);
        let mut groups = Self { keys, aggregates, found: HashMap::new(), bytes: 0, running, runs };
        if keys.is_empty() {
            // Without rows there is still a count of zero.
            groups.found.insert(Vec::new(), Group::new(Vec::new(), aggregates));
        }
        groups
    }

    /// Adds a row to its group.
    pub(crate) fn add(&mut self, subject: &dyn Subject) -> Result<(), Error> {
        let of = |aggregate: &Aggregate| aggregate.of.as_ref().map(|of| of.value(subject)).transpose();
        let values = self.aggregates.iter().map(of).collect::<Found<Vec<_>>>()?;
        self.gather(subject, |gathered, gather, place| {
            gathered.add(gather, values.get(place).cloned().flatten())
        })
    }

    /// Adds rows of one group, given one of them and their aggregates.
    pub(crate) fn add_all(&mut self, subject: &dyn Subject, bucket: &Bucket) -> Result<(), Error> {
        let of = |aggregate: &Aggregate| match (aggregate.gather, &aggregate.of) {
            (Gather::Distinct, Some(of)) => of.value(subject).map(Some),
            _ => Ok(None),
        };
        let mut values = self.aggregates.iter().map(of).collect::<Found<Vec<_>>>()?;
        self.gather(subject, |gathered, gather, place| match values.get_mut(place).and_then(Option::take) {
            Some(value) => gathered.add(gather, Some(value)),
            None => {
                gathered.add_all(gather, bucket.count, bucket.sums.get(place).and_then(Option::as_ref));
                0
            }
        })
    }

    /// Merges a group's aggregate states from elsewhere; the aggregates must be the same.
    pub(crate) fn merge(&mut self, keys: Vec<Value>, others: Vec<Gathered>) -> Result<(), Error> {
        let mut others = others.into_iter();
        self.gather_of(keys, |gathered, gather, _| {
            others.next().map_or(0, |other| gathered.merge(gather, other))
        })
    }

    /// Whether the groups exceed the query's memory.
    pub(crate) fn are_too_many(&self) -> bool {
        self.bytes > self.running.limits.memory
    }

    /// Moves the groups to a temporary file if they exceed the query's memory.
    pub(crate) fn make_room(&mut self) -> Result<(), Error> {
        if self.are_too_many() { self.move_all() } else { Ok(()) }
    }

    fn move_all(&mut self) -> Result<(), Error> {
        self.bytes = 0;
        self.runs.add(self.found.drain().collect())
    }

    /// The groups with their intermediate states, in no order.
    pub(crate) fn into_found(self) -> impl Iterator<Item = Group> {
        self.found.into_values()
    }

    /// Calls a function on each aggregate state of a row's group; the function returns the bytes it added.
    fn gather(
        &mut self,
        subject: &dyn Subject,
        add: impl FnMut(&mut Gathered, Gather, usize) -> usize,
    ) -> Result<(), Error> {
        let keys = self.keys.iter().map(|key| key.value(subject)).collect::<Found<Vec<_>>>()?;
        self.gather_of(keys, add)
    }

    /// Like `gather` for the group that has these keys.
    fn gather_of(
        &mut self,
        keys: Vec<Value>,
        mut add: impl FnMut(&mut Gathered, Gather, usize) -> usize,
    ) -> Result<(), Error> {
        let mut key = Vec::new();
        keys.iter().for_each(|value| value.push_key(&mut key));
        let bytes = &mut self.bytes;
        let group = match self.found.get_mut(&key) {
            Some(group) => group,
            None => {
                let values: usize = keys.iter().map(Value::bytes).sum();
                *bytes += GROUP_BYTES + key.len() + values + OVERHEAD_BYTES * self.aggregates.len();
                self.found.entry(key).or_insert_with(|| Group::new(keys, self.aggregates))
            }
        };
        for (place, (aggregate, gathered)) in self.aggregates.iter().zip(&mut group.gathered).enumerate() {
            *bytes += add(gathered, aggregate.gather, place);
        }
        Ok(())
    }

    /// Adds the periods between the first and the last of all groups that have no rows, for each combination of the other
    /// keys.
    pub(crate) fn fill(&mut self, period: Period) -> Result<(), Error> {
        let too_long = || Error::LongSeries { periods_max: PERIODS_MAX };
        if !self.runs.is_empty() {
            return Err(too_long());
        }
        let (mut times, mut others): (Vec<String>, HashMap<Vec<u8>, Vec<Value>>) = Default::default();
        for group in self.found.values() {
            // A row without the time is in no period.
            let Some((Value::Text(time), rest)) = group.keys.split_first() else { continue };
            let mut key = Vec::new();
            rest.iter().for_each(|value| value.push_key(&mut key));
            times.push(time.clone());
            others.insert(key, rest.to_vec());
        }
        let (Some(first), Some(last)) = (times.iter().min(), times.iter().max()) else { return Ok(()) };
        for time in period.each(first, last).ok_or_else(too_long)? {
            for rest in others.values() {
                let keys = std::iter::once(Value::Text(time.clone())).chain(rest.iter().cloned());
                self.gather_of(keys.collect(), |_, _, _| 0)?;
            }
            if self.are_too_many() {
                return Err(too_long());
            }
        }
        Ok(())
    }

    /// Returns the finished groups, in no order.
    pub(crate) fn finish(&mut self) -> Result<Box<dyn Iterator<Item = Result<Group, Error>> + '_>, Error> {
        if !self.runs.is_empty() {
            self.move_all()?;
            return Ok(Box::new(self.runs.groups(self.aggregates)?));
        }
        let aggregates = self.aggregates;
        Ok(Box::new(std::mem::take(&mut self.found).into_values().map(move |mut group| {
            let gathered = std::mem::take(&mut group.gathered);
            let values = aggregates.iter().zip(gathered);
            group.aggregates =
                values.map(|(aggregate, gathered)| gathered.finish(aggregate.gather)).collect();
            Ok(group)
        })))
    }
}

impl Group {
    fn new(keys: Vec<Value>, aggregates: &[Aggregate]) -> Self {
        let gathered = aggregates.iter().map(|aggregate| match aggregate.gather {
            Gather::Count | Gather::Known => Gathered::Count(0),
            Gather::Distinct => Gathered::Distinct(HashSet::new()),
            Gather::Sum | Gather::Avg => Gathered::Sum { sum: 0.0, low: 0.0, count: 0 },
            Gather::Min | Gather::Max => Gathered::Best(Value::Empty),
            Gather::Median => Gathered::All(Vec::new()),
        });
        Self { keys, gathered: gathered.collect(), aggregates: Vec::new() }
    }
}

impl Gathered {
    /// Adds a row's value, and returns how many bytes it takes.
    fn add(&mut self, gather: Gather, value: Option<Value>) -> usize {
        let Some(value) = value else {
            if let Self::Count(count) = self {
                *count += 1;
            }
            return 0;
        };
        if !value.is_known() {
            return 0;
        }
        match self {
            Self::Count(count) => *count += 1,
            Self::Distinct(values) => {
                let mut key = Vec::new();
                value.push_key(&mut key);
                let bytes = key.len() + OVERHEAD_BYTES;
                return if values.insert(key) { bytes } else { 0 };
            }
            Self::Sum { sum, low, count } => {
                add_number(sum, low, value.as_number().unwrap_or_default());
                *count += 1;
            }
            Self::Best(best) => keep_best(best, gather, value),
            Self::All(values) => {
                values.extend(value.as_number());
                return size_of::<f64>();
            }
        }
        0
    }

    /// Adds the aggregates of some rows.
    fn add_all(&mut self, gather: Gather, rows: u64, of: Option<&Sum>) {
        match (self, of) {
            (Self::Count(count), None) => *count += rows,
            (Self::Count(count), Some(of)) => *count += of.known,
            (Self::Sum { sum, low, count }, Some(of)) => {
                add_number(sum, low, of.sum);
                *count += of.known;
            }
            (Self::Best(best), Some(of)) if of.known > 0 => {
                let value = if gather == Gather::Min { &of.least } else { &of.most };
                keep_best(best, gather, value.clone());
            }
            // Medians are computed row by row.
            _ => {}
        }
    }

    /// Merges another state of the same aggregate, and returns how many bytes it takes.
    pub(crate) fn merge(&mut self, gather: Gather, other: Self) -> usize {
        match (self, other) {
            (Self::Count(count), Self::Count(more)) => *count = count.saturating_add(more),
            (Self::Distinct(values), Self::Distinct(more)) => {
                let new = more.into_iter().filter_map(|key| {
                    let bytes = key.len() + OVERHEAD_BYTES;
                    values.insert(key).then_some(bytes)
                });
                return new.sum();
            }
            (Self::Sum { sum, low, count }, Self::Sum { sum: more, low: rest, count: of }) => {
                add_number(sum, low, more);
                (*low, *count) = (*low + rest, count.saturating_add(of));
            }
            (Self::Best(best), Self::Best(value)) if value.is_known() => keep_best(best, gather, value),
            (Self::All(values), Self::All(more)) => {
                let bytes = more.len() * size_of::<f64>();
                values.extend(more);
                return bytes;
            }
            _ => {}
        }
        0
    }

    pub(crate) fn finish(self, gather: Gather) -> Value {
        match self {
            Self::Count(count) => Value::Integer(count),
            Self::Distinct(values) => Value::Integer(values.len() as u64),
            Self::Sum { count: 0, .. } => Value::Empty,
            Self::Sum { sum, low, count } if gather == Gather::Avg => {
                expr::number((sum + low) / count as f64)
            }
            Self::Sum { sum, low, .. } => expr::number(sum + low),
            Self::Best(best) => best,
            Self::All(mut values) => {
                values.sort_unstable_by(f64::total_cmp);
                let at = |place: usize| values.get(place).copied();
                let both = at(values.len().saturating_sub(1) / 2).zip(at(values.len() / 2));
                both.map_or(Value::Empty, |(before, at)| middle(before, at))
            }
        }
    }
}

/// The median, given the two middle values.
pub(crate) fn middle(before: f64, at: f64) -> Value {
    expr::number(f64::midpoint(before, at))
}

/// Adds a number to a sum and keeps the rounding error, so that the sum does not depend on the order of its numbers.
fn add_number(sum: &mut f64, low: &mut f64, number: f64) {
    let rounded = *sum + number;
    let part = rounded - *sum;
    *low += (*sum - (rounded - part)) + (number - part);
    *sum = rounded;
}

/// Keeps the smaller or greater value.
fn keep_best(best: &mut Value, gather: Gather, value: Value) {
    let order = value.compare(best);
    if !best.is_known() || if gather == Gather::Min { order.is_lt() } else { order.is_gt() } {
        *best = value;
    }
}

impl Subject for Group {
    fn key(&self, index: usize) -> Value {
        self.keys.get(index).cloned().unwrap_or(Value::Empty)
    }

    fn aggregate(&self, index: usize) -> Value {
        self.aggregates.get(index).cloned().unwrap_or(Value::Empty)
    }
}
