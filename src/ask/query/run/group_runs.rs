//! Groups in sorted runs: one record for the numbers of a group, and one for each value that `median` and
//! `count(distinct …)` keep.
//!
//! When runs are merged, all records of a group follow one another: first the numbers, then the values of each
//! aggregate in order. So groups are assembled one at a time, and however many values a group has, only one or two are
//! in memory.

use std::cmp::Ordering;
use std::iter::{Peekable, once};

use crate::query::language::{Aggregate, Error, Gather, Value};
use crate::query::rows::Running;
use crate::query::run::groups::{Gathered, Group, middle};
use crate::query::run::spill::{Merged, Runs, Spilled, unreadable};

/// A record of a group.
pub(crate) struct GroupRecord {
    /// The key of the group.
    key: Vec<u8>,
    /// 0 for the numbers; for a value, the index of its aggregate plus 1.
    place: u32,
    content: Vec<u8>,
}

type CompareRecords = fn(&GroupRecord, &GroupRecord) -> Ordering;

/// The sorted runs of a query's groups.
pub(crate) struct GroupRuns<'a>(Runs<'a, CompareRecords>);

impl<'a> GroupRuns<'a> {
    pub(crate) fn new(running: &'a Running) -> Self {
        let compare: CompareRecords = compare;
        Self(Runs::new(running, compare))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Writes groups as one run.
    pub(crate) fn add(&mut self, mut groups: Vec<(Vec<u8>, Group)>) -> Result<(), Error> {
        groups.sort_unstable_by(|(left, _), (right, _)| left.cmp(right));
        self.0.add(groups.into_iter().flat_map(|(key, group)| records(key, group)).map(Ok))
    }

    /// Merges the runs into finished groups.
    pub(crate) fn groups<'r>(&'r self, aggregates: &'r [Aggregate]) -> Result<SpilledGroups<'r>, Error> {
        Ok(SpilledGroups { records: self.0.merged()?.peekable(), aggregates })
    }
}

fn compare(left: &GroupRecord, right: &GroupRecord) -> Ordering {
    let order = (&left.key, left.place).cmp(&(&right.key, right.place));
    // The numbers of a group keep the order in which they were gathered.
    order.then_with(|| if left.place == 0 { Ordering::Equal } else { left.content.cmp(&right.content) })
}

/// The sorted records of a group.
fn records(key: Vec<u8>, group: Group) -> impl Iterator<Item = GroupRecord> {
    let mut numbers = Vec::new();
    group.keys.write(&mut numbers);
    group.gathered.iter().for_each(|gathered| gathered.write(&mut numbers));
    let values = (1..).zip(group.gathered).flat_map(|(place, gathered)| {
        let values: Box<dyn Iterator<Item = Vec<u8>>> = match gathered {
            Gathered::Distinct(values) => {
                let mut values: Vec<_> = values.into_iter().collect();
                values.sort_unstable();
                Box::new(values.into_iter())
            }
            Gathered::All(mut values) => {
                values.sort_unstable_by(f64::total_cmp);
                Box::new(values.into_iter().map(|number| ordered(number).to_vec()))
            }
            _ => Box::new(std::iter::empty()),
        };
        values.map(move |value| (place, value))
    });
    once((0, numbers)).chain(values).map(move |(place, content)| GroupRecord {
        key: key.clone(),
        place,
        content,
    })
}

/// Encodes a number as bytes with the same order.
fn ordered(number: f64) -> [u8; 8] {
    let bits = number.to_bits();
    (if number.is_sign_negative() { !bits } else { bits | 1 << 63 }).to_be_bytes()
}

fn number(ordered: &[u8]) -> Option<f64> {
    let bits = u64::from_be_bytes(ordered.try_into().ok()?);
    Some(f64::from_bits(if bits >> 63 == 0 { !bits } else { bits ^ 1 << 63 }))
}

impl Spilled for GroupRecord {
    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend((self.key.len() as u32).to_le_bytes());
        bytes.extend(&self.key);
        bytes.extend(self.place.to_le_bytes());
        bytes.extend(&self.content);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let length = u32::from_le_bytes(*bytes.split_off(..4)?.first_chunk()?);
        let key = bytes.split_off(..length as usize)?.to_vec();
        let place = u32::from_le_bytes(*bytes.split_off(..4)?.first_chunk()?);
        Some(Self { key, place, content: std::mem::take(bytes).to_vec() })
    }
}

/// Serializes the state of an aggregate, without the values that have records of their own.
impl Gathered {
    fn write(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Count(count) => bytes.extend(count.to_le_bytes()),
            Self::Sum { sum, low, count } => {
                [sum.to_bits(), low.to_bits(), *count]
                    .iter()
                    .for_each(|part| bytes.extend(part.to_le_bytes()));
            }
            Self::Best(best) => best.write(bytes),
            Self::Distinct(_) => {}
            Self::All(values) => bytes.extend((values.len() as u64).to_le_bytes()),
        }
    }

    /// Reads the state, and how many values it has.
    fn read(gather: Gather, bytes: &mut &[u8]) -> Option<(Self, u64)> {
        let mut next = || Some(u64::from_le_bytes(*bytes.split_off(..8)?.first_chunk()?));
        let gathered = match gather {
            Gather::Count | Gather::Known => Self::Count(next()?),
            Gather::Sum | Gather::Avg => {
                Self::Sum { sum: f64::from_bits(next()?), low: f64::from_bits(next()?), count: next()? }
            }
            Gather::Min | Gather::Max => Self::Best(Value::read(bytes)?),
            Gather::Distinct => Self::Count(0),
            Gather::Median => return Some((Self::All(Vec::new()), next()?)),
        };
        Some((gathered, 0))
    }
}

/// Iterates over groups in key order, assembling each from its records.
pub(crate) struct SpilledGroups<'r> {
    records: Peekable<Merged<'r, GroupRecord, CompareRecords>>,
    aggregates: &'r [Aggregate],
}

/// The state of one aggregate of the current group.
struct AggregateParts {
    gather: Gather,
    gathered: Gathered,
    /// Number of values, number of values read so far, and the last one.
    all: u64,
    read: u64,
    last: Option<Vec<u8>>,
    middle: (Option<f64>, Option<f64>),
}

impl AggregateParts {
    /// Adds the next value.
    fn take(&mut self, value: Vec<u8>) -> Result<(), Error> {
        match &mut self.gathered {
            Gathered::Count(count) if self.gather == Gather::Distinct => {
                if self.last.as_ref() != Some(&value) {
                    *count += 1;
                    self.last = Some(value);
                }
            }
            _ => {
                let (before, at) = (self.all.saturating_sub(1) / 2, self.all / 2);
                let number = number(&value).ok_or_else(unreadable)?;
                if self.read == before {
                    self.middle.0 = Some(number);
                }
                if self.read == at {
                    self.middle.1 = Some(number);
                }
                self.read += 1;
            }
        }
        Ok(())
    }

    fn finish(self) -> Value {
        match (self.gather, self.middle) {
            (Gather::Median, (Some(before), Some(at))) => middle(before, at),
            (Gather::Median, _) => Value::Empty,
            (Gather::Distinct, _) => self.gathered.finish(Gather::Count),
            (gather, _) => self.gathered.finish(gather),
        }
    }
}

impl SpilledGroups<'_> {
    /// Assembles the group that starts with this record.
    fn group(&mut self, first: GroupRecord) -> Result<Group, Error> {
        let mut parts: Vec<AggregateParts> = Vec::new();
        let mut keys = None;
        let mut next = Some(Ok(first));
        while let Some(record) = next {
            let GroupRecord { key, place, content } = record?;
            match place.checked_sub(1) {
                None => self.numbers(&content, &mut keys, &mut parts)?,
                Some(place) => parts.get_mut(place as usize).ok_or_else(unreadable)?.take(content)?,
            }
            next = self.records.next_if(|next| next.as_ref().map_or(true, |next| next.key == key));
        }
        let aggregates = parts.into_iter().map(AggregateParts::finish).collect();
        Ok(Group { keys: keys.unwrap_or_default(), gathered: Vec::new(), aggregates })
    }

    /// Adds the numbers of a group from one run.
    fn numbers(
        &self,
        mut bytes: &[u8],
        keys: &mut Option<Vec<Value>>,
        parts: &mut Vec<AggregateParts>,
    ) -> Result<(), Error> {
        let own = Vec::<Value>::read(&mut bytes).ok_or_else(unreadable)?;
        let is_first = keys.is_none();
        keys.get_or_insert(own);
        for (place, Aggregate { gather, .. }) in self.aggregates.iter().enumerate() {
            let gather = *gather;
            let (gathered, all) = Gathered::read(gather, &mut bytes).ok_or_else(unreadable)?;
            if is_first {
                parts.push(AggregateParts {
                    gather,
                    gathered,
                    all,
                    read: 0,
                    last: None,
                    middle: (None, None),
                });
            } else if let Some(part) = parts.get_mut(place) {
                part.all += all;
                part.gathered.merge(gather, gathered);
            }
        }
        Ok(())
    }
}

impl Iterator for SpilledGroups<'_> {
    type Item = Result<Group, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let first = self.records.next()?;
        Some(first.and_then(|first| self.group(first)))
    }
}
