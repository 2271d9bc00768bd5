//! Answers in portions: what each of several archives contributes to an answer, and how portions are merged.
//!
//! A portion is either a row that is among the first of its archive, with its sort keys, or the aggregates of a group.
//! Large groups are split into several portions. If an archive has captured nothing of a site, only all archives
//! together know whether its pages, the site itself and its hosts count: each such row is sent separately, with what
//! settles the question ([`Doubt`]).

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::query::language::{
    Column, ColumnKind, Error, FieldPath, Found, GroupPlan, Plan, RowsError, Subject as _, Value,
};
use crate::query::rows::{FullText, Limits, Row, Rows, Running, Top, World, lot};
use crate::query::run::{Answer, Candidate, Gathered, Groups};
use crate::query::several::wire::{Partial, Sent};

/// Maximum number of an archive's rows in doubt: only other archives can decide whether these count.
pub const DOUBTFUL_MAX: usize = 1_000_000;

/// What settles whether a row counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Doubt {
    /// The row's site: the archive responsible for it decides.
    pub site: String,
    /// The page's URL, if the row is a page.
    pub url: Option<String>,
}

/// A portion of an answer, in the form that is sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Portion {
    /// A row's id in its archive.
    id: u64,
    /// Position in the draw, if there is a sample.
    #[serde(default)]
    lot: Option<u64>,
    /// Sort keys of a row, or keys of a group.
    keys: Vec<Sent>,
    has: Has<Vec<Sent>, Vec<Partial>>,
    doubt: Option<Doubt>,
}

/// The column values of a row, or the aggregates of a group.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Has<V, G> {
    Values(V),
    Gathered(G),
}

/// A portion that was checked against its plan.
#[derive(Clone, Debug)]
pub struct Taken {
    id: u64,
    lot: Option<u64>,
    keys: Vec<Value>,
    has: Has<Vec<Value>, Vec<Gathered>>,
    /// What settles whether the row counts; `None` if it is known to count.
    pub doubt: Option<Doubt>,
}

/// Receives portions as they are produced.
type TakePortion<'a> = dyn FnMut(Portion) -> Result<(), Error> + 'a;

impl Plan {
    /// Passes one archive's portions of the answer to `take`. Returns how many of its rows match, not counting rows in
    /// doubt; `None` if some rows in doubt were left out because enough rows of this archive come before them in any
    /// case. `is_captured` says for each site, by id, whether the archive has captured pages of it.
    ///
    /// # Errors
    /// As [`Question::answer`](crate::query::Question::answer), [`Error::TooManyDoubtful`], and what `take` reports.
    pub fn portions(
        &self,
        rows: &dyn Rows,
        full_text: Option<&dyn FullText>,
        is_captured: &[bool],
        take: &mut TakePortion<'_>,
    ) -> Result<Option<u64>, Error> {
        self.at(rows, &mut |rows| {
            let hits = self.hits(rows, full_text)?;
            let part = PortionSource { plan: self, world: World::new(rows, &hits), is_captured };
            match (&self.groups, self.sample) {
                (_, Some(sample)) => part.drawn(sample, take),
                (Some(groups), None) => part.groups(groups, take),
                (None, None) => part.rows(take),
            }
        })
    }

    /// Checks a received portion against this plan.
    ///
    /// # Errors
    /// What is wrong with the portion.
    pub fn take(&self, sent: Portion) -> Result<Taken, &'static str> {
        let keys = sent.keys.into_iter().map(Sent::value).collect::<Result<Vec<_>, _>>()?;
        let has = match (sent.has, &self.groups) {
            (Has::Values(values), None) if keys.len() == self.order.len() => {
                let values = values.into_iter().map(Sent::value).collect::<Result<Vec<_>, _>>()?;
                let fit = self.headings.iter().zip(&values).all(|(heading, value)| fits(heading.kind, value));
                if !fit || values.len() != self.select.len() {
                    return Err("a row has other columns than were asked for");
                }
                Has::Values(values)
            }
            (Has::Gathered(partials), Some(groups))
                if keys.len() == groups.keys.len() && partials.len() == groups.aggregates.len() =>
            {
                let pairs = groups.aggregates.iter().zip(partials);
                Has::Gathered(
                    pairs.map(|(aggregate, partial)| partial.of(aggregate)).collect::<Result<_, _>>()?,
                )
            }
            _ => return Err("a row has other columns than were asked for"),
        };
        if sent.lot.is_some() != self.sample.is_some() {
            return Err("a row was drawn that should not be, or was not");
        }
        Ok(Taken { id: sent.id, lot: sent.lot, keys, has, doubt: sent.doubt })
    }

    /// Merges the portions that count, each with the index of its archive, into the answer. `matched` is the number of
    /// matching rows, not counting those that were in doubt.
    ///
    /// # Errors
    /// [`Error::TooMuch`].
    pub fn whole(
        &self,
        portions: impl Iterator<Item = (usize, Taken)>,
        matched: Option<u64>,
        limits: Limits,
    ) -> Result<Answer, Error> {
        let running = Running::new(limits, false);
        let Some((rows, _)) = self.sample else { return self.put_together(portions, matched, &running) };
        let mut drawn: Vec<(usize, Taken)> = portions.collect();
        drawn.sort_by_key(|(archive, row)| (row.lot, *archive, row.id));
        drawn.truncate(rows);
        let matched = drawn.iter().filter(|(_, row)| row.doubt.is_none()).count() as u64;
        self.put_together(drawn.into_iter(), Some(matched), &running)
    }

    fn put_together(
        &self,
        portions: impl Iterator<Item = (usize, Taken)>,
        mut matched: Option<u64>,
        running: &Running,
    ) -> Result<Answer, Error> {
        let headings = self.headings.clone();
        if let Some(plan) = &self.groups {
            let mut groups = Groups::new(&plan.keys, &plan.aggregates, running);
            for (_, Taken { keys, has, .. }) in portions {
                if let Has::Gathered(gathered) = has {
                    groups.merge(keys, gathered)?;
                    groups.make_room()?;
                }
            }
            let mut rows = Vec::new();
            let matched = self.of_groups(groups, plan, (0, running), &mut |row| {
                rows.push(row);
                Ok(())
            })?;
            return Ok(Answer { headings, rows, matched: Some(matched) });
        }
        let place = |(archive, row): &(usize, Taken)| (*archive, row.id);
        let mut top = Top::new(self.last_row(), |left: &(usize, Taken), right: &(usize, Taken)| {
            self.by_keys(&left.1.keys, &right.1.keys).then_with(|| place(left).cmp(&place(right)))
        });
        for (archive, row) in portions {
            matched = matched.map(|matched| matched.saturating_add(row.doubt.is_some().into()));
            top.push((archive, row));
        }
        let rows = top.into_sorted().into_iter().skip(self.offset);
        let rows = rows.filter_map(|(_, row)| match row.has {
            Has::Values(values) => Some(values),
            Has::Gathered(_) => None,
        });
        Ok(Answer { headings, rows: rows.collect(), matched })
    }
}

/// A plan and one of the archives that it runs over.
struct PortionSource<'a> {
    plan: &'a Plan,
    world: World<'a>,
    is_captured: &'a [bool],
}

impl PortionSource<'_> {
    /// What settles whether a row counts, if the archive does not know.
    fn doubt(&self, row: &Row) -> Found<Option<Doubt>> {
        let (site, is_page) = match row {
            Row::Page(page) => (page.site, true),
            Row::Site(site) => (site.id, false),
            Row::Host(host) => (host.site, false),
            Row::Capture(_) | Row::Link(_) => return Ok(None),
        };
        if self.is_captured.get(site.index()).is_some_and(|is_captured| *is_captured) {
            return Ok(None);
        }
        let text = |column: Column| match self.world.subject(row).field(FieldPath::from(column))? {
            Value::Text(text) => Ok::<_, RowsError>(text),
            _ => Ok(String::new()),
        };
        let url = is_page.then(|| text(Column::Url)).transpose()?;
        Ok(Some(Doubt { site: text(Column::Site)?, url }))
    }

    fn rows(&self, take: &mut TakePortion<'_>) -> Result<Option<u64>, Error> {
        let plan = self.plan;
        let mut own = Top::new(plan.last_row(), |left: &Candidate<Row>, right: &Candidate<Row>| {
            plan.before(left, right)
        });
        let mut doubtful: Vec<(Candidate<Row>, Doubt)> = Vec::new();
        let mut matched = Some(0);
        let candidates = plan.candidates(&self.world)?;
        plan.scan(&self.world, candidates, &mut |row| {
            let doubt = self.doubt(&row)?;
            let row = Candidate { keys: plan.keys(&self.world.subject(&row))?, id: row.id(), of: row };
            let is_after_last = own.last().is_some_and(|last| plan.before(&row, last) == Ordering::Greater);
            match doubt {
                None => {
                    matched = matched.map(|matched: u64| matched + 1);
                    own.push(row);
                }
                Some(_) if is_after_last => matched = None,
                Some(_) if doubtful.len() >= DOUBTFUL_MAX => {
                    return Err(Error::TooManyDoubtful { most: DOUBTFUL_MAX });
                }
                Some(doubt) => doubtful.push((row, doubt)),
            }
            Ok(())
        })?;
        let own = own.into_sorted();
        let last = own.last().filter(|_| Some(own.len()) == plan.last_row());
        let all = doubtful.len();
        doubtful.retain(|(row, _)| last.is_none_or(|last| plan.before(row, last) != Ordering::Greater));
        if doubtful.len() < all {
            matched = None;
        }
        let own = own.into_iter().map(|row| (row, None));
        for (Candidate { keys, of: row, .. }, doubt) in
            own.chain(doubtful.into_iter().map(|(row, doubt)| (row, Some(doubt))))
        {
            self.row(&row, &keys, (None, doubt), take)?;
        }
        Ok(matched)
    }

    fn row(
        &self,
        row: &Row,
        keys: &[Value],
        (lot, doubt): (Option<u64>, Option<Doubt>),
        take: &mut TakePortion<'_>,
    ) -> Result<(), Error> {
        let values = self.plan.values(&self.world.subject(row))?;
        let has = Has::Values(values.iter().map(Sent::from).collect());
        take(Portion { id: row.id(), lot, keys: keys.iter().map(Sent::from).collect(), has, doubt })
    }

    /// Sends the rows that may be in the sample drawn from all archives, each separately, even if they are grouped.
    fn drawn(&self, (rows, seed): (usize, u64), take: &mut TakePortion<'_>) -> Result<Option<u64>, Error> {
        type Drawn = (u64, Row, Option<Doubt>);
        let before = |left: &Drawn, right: &Drawn| (left.0, left.1.id()).cmp(&(right.0, right.1.id()));
        let mut own = Top::new(Some(rows), before);
        let mut doubtful: Vec<Drawn> = Vec::new();
        self.plan.each(&self.world, self.plan.candidates(&self.world)?, &mut |row| {
            let doubt = self.doubt(&row)?;
            let drawn = (lot(seed, self.world.rows.own_number(&row)), row, doubt);
            match drawn.2 {
                None => own.push(drawn),
                Some(_) if own.last().is_some_and(|last| before(&drawn, last) == Ordering::Greater) => {}
                Some(_) if doubtful.len() >= DOUBTFUL_MAX => {
                    return Err(Error::TooManyDoubtful { most: DOUBTFUL_MAX });
                }
                Some(_) => doubtful.push(drawn),
            }
            Ok(())
        })?;
        for (lot, row, doubt) in own.into_sorted().into_iter().chain(doubtful) {
            let subject = self.world.subject(&row);
            match &self.plan.groups {
                None => self.row(&row, &self.plan.keys(&subject)?, (Some(lot), doubt), take)?,
                Some(of) => {
                    let mut alone = self.no_groups(of);
                    alone.add(&subject)?;
                    send(alone, (row.id(), Some(lot)), doubt.as_ref(), take)?;
                }
            }
        }
        Ok(None)
    }

    fn no_groups<'a>(&'a self, of: &'a GroupPlan) -> Groups<'a> {
        Groups::new(&of.keys, &of.aggregates, self.world.running)
    }

    fn groups(&self, of: &GroupPlan, take: &mut TakePortion<'_>) -> Result<Option<u64>, Error> {
        let mut groups = self.no_groups(of);
        let (mut matched, mut doubtful) = (0, 0);
        let candidates = self.plan.candidates(&self.world)?;
        self.plan.scan(&self.world, candidates, &mut |row| {
            let Some(doubt) = self.doubt(&row)? else {
                matched += 1;
                groups.add(&self.world.subject(&row))?;
                // The receiver merges portions of the same group.
                return match groups.are_too_many() {
                    true => send(std::mem::replace(&mut groups, self.no_groups(of)), (0, None), None, take),
                    false => Ok(()),
                };
            };
            doubtful += 1;
            if doubtful > DOUBTFUL_MAX {
                return Err(Error::TooManyDoubtful { most: DOUBTFUL_MAX });
            }
            let mut alone = self.no_groups(of);
            alone.add(&self.world.subject(&row))?;
            send(alone, (0, None), Some(&doubt), take)
        })?;
        send(groups, (0, None), None, take)?;
        Ok(Some(matched))
    }
}

/// Sends groups, each in as many portions as it needs.
fn send(
    groups: Groups<'_>,
    (id, lot): (u64, Option<u64>),
    doubt: Option<&Doubt>,
    take: &mut TakePortion<'_>,
) -> Result<(), Error> {
    for group in groups.into_found() {
        let keys: Vec<Sent> = group.keys.iter().map(Sent::from).collect();
        let mut gathered: Vec<Partial> = group.gathered.into_iter().map(Partial::from).collect();
        loop {
            let has = Has::Gathered(gathered.iter_mut().map(Partial::piece).collect());
            take(Portion { id, lot, keys: keys.clone(), has, doubt: doubt.cloned() })?;
            if gathered.iter().all(Partial::is_sent) {
                break;
            }
        }
    }
    Ok(())
}

/// Whether a value fits a column's type.
fn fits(kind: ColumnKind, value: &Value) -> bool {
    match value {
        Value::Empty => true,
        Value::Integer(_) | Value::Number(_) => matches!(kind, ColumnKind::Number | ColumnKind::Span),
        Value::Text(_) => matches!(kind, ColumnKind::Text | ColumnKind::Choice),
        Value::Time(_) => kind == ColumnKind::Time,
    }
}
