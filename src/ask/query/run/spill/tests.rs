//! Items and groups that wait in files are those that were given.

use std::cmp::Ordering;

use archive_storage::{HostId, SiteId, UrlId};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{READ_BYTES, RUNS_MERGED, Runs, Spilled};
use crate::query::language::{Aggregate, Column, Error, FieldPath, Gather, PlannedExpr, RowsError};
use crate::query::rows::{Hits, PageRow, Row, World, limits};
use crate::query::run::groups::Groups;
use crate::query::{Limits, PageText, Rows, Running, SiteRow, Value};

/// A key, and the place at which it came; long ones have more bytes than are read at once.
#[derive(Clone, Debug, PartialEq)]
struct Item(u8, u32, usize);

impl Spilled for Item {
    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.push(self.0);
        bytes.extend(self.1.to_le_bytes());
        bytes.resize(bytes.len() + self.2, 7);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let key = *bytes.split_off_first()?;
        let place = u32::from_le_bytes(*bytes.split_off(..4)?.first_chunk()?);
        bytes.iter().all(|byte| *byte == 7).then_some(Self(key, place, bytes.len()))
    }
}

fn by_key(left: &Item, right: &Item) -> Ordering {
    left.0.cmp(&right.0)
}

/// What runs of these items are when they are merged, and how many bytes are on the disk.
fn merged(runs: &[Vec<Item>], running: &Running) -> Result<Vec<Item>, Error> {
    let mut all = Runs::new(running, by_key);
    for run in runs {
        let mut run = run.clone();
        run.sort_by(by_key);
        all.add(run.into_iter().map(Ok))?;
    }
    all.merged()?.collect()
}

proptest! {
    #[test]
    fn runs_are_merged_in_order(keys in vec(vec(0..9u8, 0..4), 0..100), long in 0..100usize) {
        let mut place = 0;
        let mut item = |key: &u8| {
            place += 1;
            Item(*key, place, if place as usize == long { 3 * READ_BYTES } else { 0 })
        };
        let runs: Vec<Vec<Item>> = keys.iter().map(|run| run.iter().map(&mut item).collect()).collect();
        let mut expected = runs.concat();
        expected.sort_by(by_key);
        prop_assert_eq!(merged(&runs, &Running::default()).unwrap(), expected);
    }

    /// Sums do not depend on when groups were written, nor do medians and different values.
    #[test]
    fn groups_are_the_same(
        numbers in vec((0..4u32, prop_oneof![-1e9..1e9f64, Just(0.1), Just(-0.1), Just(-0.0), Just(0.0)]), 0..60),
        memory in 0..6000usize,
    ) {
        prop_assert_eq!(groups(&numbers, memory), groups(&numbers, usize::MAX));
    }
}

#[test]
fn many_runs_are_merged_more_than_once() {
    let runs: Vec<Vec<Item>> =
        (0..RUNS_MERGED as u32 * (RUNS_MERGED as u32 + 2)).map(|run| vec![Item(run as u8, run, 1)]).collect();
    let mut expected = runs.concat();
    expected.sort_by(by_key);
    let running = Running::new(Limits::USUAL, true);
    assert_eq!(merged(&runs, &running).unwrap(), expected);
    // Each was written three times, some four bytes of length, and its own six.
    let written = running.seen().unwrap().spilled_bytes;
    assert!((25..=30).contains(&(written / expected.len() as u64)), "{written}");

    // Of what was merged nothing remains: less than twice the room is needed.
    let limited = |disk| merged(&runs, &Running::new(Limits { disk, ..Limits::USUAL }, false));
    let bytes = 10 * expected.len() as u64;
    assert_eq!(limited(2 * bytes).unwrap(), expected);
    assert!(matches!(limited(bytes - 1), Err(Error::TooMuch { .. })));
}

/// Nothing but pages that a test makes.
struct Nothing;

impl Rows for Nothing {
    fn pages(&self) -> Box<dyn Iterator<Item = Result<PageRow, RowsError>> + '_> {
        Box::new(std::iter::empty())
    }

    fn page(&self, _: UrlId) -> Result<Option<PageRow>, RowsError> {
        Ok(None)
    }

    fn text(&self, _: &PageRow, _: PageText) -> Result<Option<std::borrow::Cow<'_, str>>, RowsError> {
        Ok(None)
    }

    fn sites(&self) -> Box<dyn Iterator<Item = Result<SiteRow, RowsError>> + '_> {
        Box::new(std::iter::empty())
    }

    fn running(&self) -> &Running {
        &limits::USUAL
    }
}

/// Everything that is gathered of numbers by their groups, as text: so -0 is not 0.
fn groups(numbers: &[(u32, f64)], memory: usize) -> Vec<String> {
    let column = |column| PlannedExpr::Field(FieldPath::from(column));
    let keys = [column(Column::Depth)];
    let of_each =
        [Gather::Known, Gather::Distinct, Gather::Sum, Gather::Avg, Gather::Min, Gather::Max, Gather::Median];
    let of = Some(column(Column::Importance));
    let mut aggregates: Vec<_> =
        of_each.into_iter().map(|gather| Aggregate { gather, of: of.clone() }).collect();
    aggregates.push(Aggregate { gather: Gather::Count, of: None });
    let running = Running::new(Limits { memory, ..Limits::USUAL }, true);
    let hits = Hits::default();
    let world = World::new(&Nothing, &hits);
    let mut groups = Groups::new(&keys, &aggregates, &running);
    for (group, importance) in numbers {
        let row = Row::Page(PageRow {
            id: UrlId(0),
            host: HostId(0),
            site: SiteId(0),
            kind: None,
            status: None,
            content_status: None,
            importance: *importance,
            captures: 0,
            attempts: 0,
            versions: 0,
            first_seen: None,
            last_seen: None,
            last_answer: None,
            last_attempt: None,
            failing_since: None,
            changed: None,
            depth: Some(*group),
        });
        groups.add(&world.subject(&row)).unwrap();
        groups.make_room().unwrap();
    }
    let shown = |group: Result<crate::query::run::groups::Group, Error>| {
        let group = group.unwrap();
        let aggregates: Vec<Value> = (0..aggregates.len())
            .map(|index| crate::query::language::expr::Subject::aggregate(&group, index))
            .collect();
        format!("{:?} {aggregates:?}", group.keys)
    };
    let mut found: Vec<String> = groups.finish().unwrap().map(shown).collect();
    found.sort();
    assert!(memory > 0 || numbers.is_empty() || running.seen().unwrap().spilled_bytes > 0);
    found
}
