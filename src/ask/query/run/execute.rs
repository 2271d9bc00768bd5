//! Runs plans: filters, samples, groups, sorts and limits rows, and computes the selected columns.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashSet};
use std::time::{Duration, Instant};

use archive_grammar::{Direction, QueryRows};
use archive_storage::{HostId, SiteId, UrlId};

use crate::query::language::{
    Error, Found, GroupPlan, Heading, Plan, PlannedExpr, RowsError, Subject, Value,
};
use crate::query::rows::{
    AsOf, CaptureRow, Chosen, FullText, Hits, PageRow, Row, Rows, Running, SiteRow, Top, World, lot,
};
use crate::query::run::explain;
use crate::query::run::groups::{Group, Groups};
use crate::query::run::order::{Candidate, MakeRow, Ordered, TakeRow};

/// The answer to a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The headings, one per column.
    pub headings: Vec<Heading>,
    /// The rows in order, each with one value per column.
    pub rows: Vec<Vec<Value>>,
    /// Number of rows that matched before offset and limit; `None` if one of several archives has not counted all of its
    /// own.
    pub matched: Option<u64>,
}

impl Plan {
    /// Runs the plan over `rows`, and over `full_text` if the plan searches text.
    ///
    /// # Errors
    /// [`Error::NoIndex`] if the plan needs an index that does not exist, [`Error::TooMuch`] if there are too many
    /// groups, [`Error::Late`] if it times out; otherwise what `rows` and `full_text` report.
    pub(crate) fn run(&self, rows: &dyn Rows, full_text: Option<&dyn FullText>) -> Result<Answer, Error> {
        let mut found = Vec::new();
        let matched = self.run_each(rows, full_text, &mut |row| {
            found.push(row);
            Ok(())
        })?;
        Ok(Answer { headings: self.headings.clone(), rows: found, matched: Some(matched) })
    }

    /// Like [`Plan::run`], but passes each row of the answer to `take` as soon as it is known, and returns how many
    /// matched ([`Answer::matched`]).
    ///
    /// # Errors
    /// As [`Plan::run`], and what `take` reports.
    pub(crate) fn run_each(
        &self,
        rows: &dyn Rows,
        full_text: Option<&dyn FullText>,
        take: &mut TakeRow<'_>,
    ) -> Result<u64, Error> {
        self.at(rows, &mut |rows| {
            let hits = self.hits(rows, full_text)?;
            let world = World::new(rows, &hits);
            match &self.groups {
                Some(plan) => self.grouped(&world, plan, take),
                None if self.order.is_empty() && self.sample.is_none() => self.as_they_come(&world, take),
                None => self.in_order(&world, take),
            }
        })
    }

    /// Returns the pages that the query selects, in its order and within its limits; for sites or hosts, all their
    /// pages; for captures, their pages.
    ///
    /// # Errors
    /// As [`Plan::run`], and [`Error::NotPages`] for a query that groups rows or selects links.
    pub(crate) fn pages_found(
        &self,
        rows: &dyn Rows,
        full_text: Option<&dyn FullText>,
    ) -> Result<Vec<UrlId>, Error> {
        if let Some(what) = self.other_than_pages() {
            return Err(Error::NotPages { what });
        }
        self.at(rows, &mut |rows| {
            let hits = self.hits(rows, full_text)?;
            let world = World::new(rows, &hits);
            let found = self.found(&world, None)?;
            let rows_found = found.into_sorted().collect();
            pages_of(rows, rows_found)
        })
    }

    /// Whether a page meets the conditions of a query for pages that searches no text.
    ///
    /// # Errors
    /// When a text of the page cannot be read.
    pub fn selects(&self, rows: &dyn Rows, row: PageRow) -> Result<bool, Error> {
        let hits = Hits::default();
        Ok(self.holds(&World::new(rows, &hits), &Row::Page(row))?)
    }

    /// Returns the sites that a query for sites selects, in its order and within its limits, and how many there were
    /// before offset and limit. A query for anything else selects none.
    ///
    /// # Errors
    /// When `rows` cannot be read.
    pub fn select_sites(&self, rows: &dyn Rows) -> Result<(Vec<SiteRow>, u64), Error> {
        if !self.asks_for_sites() {
            return Ok((Vec::new(), 0));
        }
        self.at(rows, &mut |rows| {
            let hits = Hits::default();
            let world = World::new(rows, &hits);
            let found = self.found(&world, None)?;
            let matched = found.matched;
            let of_site = |row| if let Row::Site(site) = row { Some(site) } else { None };
            Ok((found.into_sorted().filter_map(of_site).collect(), matched))
        })
    }

    /// Calls a function with the rows as of the requested time.
    pub(crate) fn at<T>(
        &self,
        rows: &dyn Rows,
        ask: &mut dyn FnMut(&dyn Rows) -> Result<T, Error>,
    ) -> Result<T, Error> {
        match self.as_of {
            Some(before) => ask(&AsOf { rows, before }),
            None => ask(rows),
        }
    }

    /// Streams rows that need no sorting; nothing is kept.
    fn as_they_come(&self, world: &World<'_>, take: &mut TakeRow<'_>) -> Result<u64, Error> {
        let (first, last) = (self.offset as u64, self.last_row().map_or(u64::MAX, |last| last as u64));
        let mut matched = 0;
        self.scan(world, self.candidates(world)?, &mut |row| {
            matched += 1;
            if matched <= first || matched > last {
                return Ok(());
            }
            take(self.values(&world.subject(&row))?)
        })?;
        self.ordered_seen(world.running, matched.min(last).saturating_sub(first), Duration::ZERO);
        Ok(matched)
    }

    fn in_order(&self, world: &World<'_>, take: &mut TakeRow<'_>) -> Result<u64, Error> {
        // A text that rows are ordered by has been read: rows of one order are all over the archive.
        let key = |shown: &PlannedExpr| {
            let path = shown.path()?;
            self.order.iter().position(|(key, _)| key.path() == Some(path))
        };
        let keys: Vec<Option<usize>> = self.select.iter().map(key).collect();
        let columns = |row: &Candidate<Row>| -> Result<_, Error> {
            let subject = world.subject(&row.of);
            let values = self.select.iter().zip(&keys).map(|(expr, key)| match key {
                Some(key) => Ok(row.keys[*key].clone()),
                None => expr.value(&subject),
            });
            Ok(values.collect::<Found<_>>()?)
        };
        let found = self.found(world, Some(&columns))?;
        let (began, matched) = (Instant::now(), found.matched);
        let rows = found.each(take)?;
        self.ordered_seen(world.running, rows, began.elapsed());
        Ok(matched)
    }

    /// Returns the matching rows. Without `columns` they stay in memory.
    fn found<'a>(
        &'a self,
        world: &'a World<'_>,
        columns: Option<&'a MakeRow<'a, Row>>,
    ) -> Result<Ordered<'a, Row>, Error> {
        let mut found = Ordered::new(self, world.running, columns);
        let began = Instant::now();
        let mut offer = |row: Row| {
            let keys = self.keys(&world.subject(&row))?;
            found.offer(Candidate { keys, id: row.id(), of: row })
        };
        if let Some((rows, matched)) = world.rows.best_for(self, world.hits)? {
            self.chosen_seen(world, matched, began);
            rows.into_iter().try_for_each(offer)?;
            found.matched = matched;
            return Ok(found);
        }
        self.scan(world, self.candidates(world)?, &mut offer)?;
        Ok(found)
    }

    /// Passes the selected columns of each group to `take`.
    fn grouped(&self, world: &World<'_>, plan: &GroupPlan, take: &mut TakeRow<'_>) -> Result<u64, Error> {
        let mut groups = Groups::new(&plan.keys, &plan.aggregates, world.running);
        let (mut left_out, began) = (0, Instant::now());
        match world.rows.buckets_for(self, world.hits)? {
            Some((buckets, others)) => {
                left_out = others;
                self.chosen_seen(world, buckets.iter().map(|bucket| bucket.count).sum(), began);
                for bucket in &buckets {
                    groups.add_all(&world.subject(&bucket.row), bucket)?;
                    groups.make_room()?;
                }
            }
            None => self.scan(world, self.candidates(world)?, &mut |row| {
                groups.add(&world.subject(&row))?;
                groups.make_room()
            })?,
        }
        self.of_groups(groups, plan, (left_out, world.running), take)
    }

    /// Passes the selected columns of finished groups to `take`, and returns how many groups match, including
    /// `left_out` others that are not among `groups`.
    pub(crate) fn of_groups(
        &self,
        mut groups: Groups<'_>,
        plan: &GroupPlan,
        (left_out, running): (u64, &Running),
        take: &mut TakeRow<'_>,
    ) -> Result<u64, Error> {
        let columns = |group: &Candidate<Group>| -> Result<_, Error> { Ok(self.values(&group.of)?) };
        let mut found = Ordered::new(self, running, Some(&columns));
        let (mut began, mut all) = (Instant::now(), left_out);
        if let Some(period) = plan.series {
            groups.fill(period)?;
        }
        for group in groups.finish()? {
            running.check_row()?;
            let group = group?;
            all += 1;
            if plan.having.as_ref().map_or(Ok(true), |having| having.holds(&group))? {
                found.offer(Candidate { keys: self.keys(&group)?, id: 0, of: group })?;
            }
        }
        let matched = found.matched + left_out;
        self.grouped_seen(running, (all, matched), began.elapsed());
        began = Instant::now();
        let rows = found.each(take)?;
        self.ordered_seen(running, rows, began.elapsed());
        Ok(matched)
    }

    /// The only pages that can match, if searches or URLs narrow them down.
    pub(crate) fn candidates(&self, world: &World<'_>) -> Found<Option<Vec<UrlId>>> {
        let of_pages = matches!(self.target, QueryRows::Pages | QueryRows::Captures | QueryRows::Versions);
        let Some(filter) = self.filter.as_ref().filter(|_| of_pages) else { return Ok(None) };
        if let Some(found) = world.hits.candidates(filter) {
            return Ok(Some(found));
        }
        let Some(urls) = filter.urls() else { return Ok(None) };
        let mut found = BTreeSet::new();
        for url in urls {
            found.extend(world.rows.find(url)?);
        }
        Ok(Some(found.into_iter().collect()))
    }

    /// Passes every matching row, or the sample drawn from these, to a function; records statistics if the query is
    /// explained.
    pub(crate) fn scan(
        &self,
        world: &World<'_>,
        candidates: Option<Vec<UrlId>>,
        take: &mut dyn FnMut(Row) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if world.tally.is_some() {
            self.scan_seen(world, candidates, take)
        } else {
            self.draw(world, candidates, take)
        }
    }

    /// Like `scan`, without recording statistics.
    pub(crate) fn draw(
        &self,
        world: &World<'_>,
        candidates: Option<Vec<UrlId>>,
        take: &mut dyn FnMut(Row) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Some((rows, seed)) = self.sample else { return self.each(world, candidates, take) };
        if let Some(drawn) = world.rows.drawn_for(self, world.hits)? {
            return drawn.into_iter().try_for_each(take);
        }
        let mut drawn = Top::new(Some(rows), |left: &(u64, Row), right: &(u64, Row)| {
            (left.0, left.1.id()).cmp(&(right.0, right.1.id()))
        });
        self.each(world, candidates, &mut |row| {
            drawn.push((lot(seed, world.rows.own_number(&row)), row));
            Ok(())
        })?;
        drawn.into_sorted().into_iter().try_for_each(|(_, row)| take(row))
    }

    /// Passes every matching row to a function.
    pub(crate) fn each(
        &self,
        world: &World<'_>,
        candidates: Option<Vec<UrlId>>,
        take: &mut dyn FnMut(Row) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let rows = world.rows;
        let mut look = |row: Row, is_selected: bool| {
            world.running.check_row()?;
            if !is_selected && !world.running.unless_unreadable(self.holds(world, &row))? {
                return Ok(());
            }
            world.running.readable(take(row)).map(|_| ())
        };
        match (self.target, candidates) {
            (QueryRows::Pages, Some(candidates)) => {
                let pages = candidates.into_iter().filter_map(|id| rows.page(id).transpose());
                let pages = Chosen { rows: Box::new(pages), are_selected: false };
                self.each_chosen(world, pages, Row::Page, &mut look)
            }
            (QueryRows::Pages, None) => {
                self.each_chosen(world, rows.pages_for(self, world.hits)?, Row::Page, &mut look)
            }
            (QueryRows::Sites, _) => self.each_chosen(world, rows.sites_for(self)?, Row::Site, &mut look),
            (QueryRows::Hosts, _) => rows.hosts().try_for_each(|row| look(Row::Host(row?), false)),
            (QueryRows::Captures | QueryRows::Versions, Some(candidates)) => {
                for id in candidates {
                    let is_shown = rows.page(id)?.is_some();
                    let mut history = rows.history(id)?.filter(|row| self.is_asked_for(row));
                    if is_shown {
                        history.try_for_each(|row| look(Row::Capture(row?), false))?;
                    }
                }
                Ok(())
            }
            (QueryRows::Captures | QueryRows::Versions, None) => {
                let Chosen { rows: captures, are_selected } = rows.captures_for(self)?;
                let captures = Box::new(captures.filter(|row| self.is_asked_for(row)));
                let captures = Chosen { rows: captures, are_selected };
                self.each_chosen(world, captures, Row::Capture, &mut look)
            }
            (QueryRows::Links, _) => {
                let mut failed = None;
                let ended = rows.links_for(self, &mut |link, is_selected| {
                    look(Row::Link(link), is_selected).map_err(|error| {
                        failed = Some(error);
                        RowsError::from("a row was refused")
                    })
                });
                failed.map_or(Ok(()), Err)?;
                Ok(ended?)
            }
        }
    }

    /// Passes the rows that a store has chosen to a function, and whether they are known to match.
    fn each_chosen<T>(
        &self,
        world: &World<'_>,
        Chosen { rows, are_selected }: Chosen<'_, T>,
        of: fn(T) -> Row,
        look: &mut dyn FnMut(Row, bool) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut rows = rows.map(|row| row.map(of));
        match are_selected {
            true => rows.try_for_each(|row| look(row?, true)),
            false => self.with_records(world, rows, &mut |row| look(row, false)),
        }
    }

    /// Whether the target includes a capture, conditions aside: a version has other bytes than the one before.
    fn is_asked_for(&self, row: &Found<CaptureRow>) -> bool {
        self.target != QueryRows::Versions || row.as_ref().map_or(true, |row| row.bytes_changed)
    }

    /// Number of rows up to the last one wanted: offset plus limit.
    pub(crate) fn last_row(&self) -> Option<usize> {
        self.limit.map(|limit| limit.saturating_add(self.offset))
    }

    pub(crate) fn holds(&self, world: &World<'_>, row: &Row) -> Found<bool> {
        match (&self.filter, &world.tally) {
            (None, _) => Ok(true),
            (Some(filter), None) => filter.holds(&world.subject(row)),
            (Some(filter), Some(tally)) => explain::holds(tally, filter, &world.subject(row)),
        }
    }

    pub(crate) fn values(&self, subject: &dyn Subject) -> Found<Vec<Value>> {
        self.select.iter().map(|expr| expr.value(subject)).collect()
    }

    pub(crate) fn keys(&self, subject: &dyn Subject) -> Found<Vec<Value>> {
        self.order.iter().map(|(expr, _)| expr.value(subject)).collect()
    }

    pub(crate) fn before<T>(&self, left: &Candidate<T>, right: &Candidate<T>) -> Ordering {
        self.by_keys(&left.keys, &right.keys).then_with(|| left.id.cmp(&right.id))
    }

    /// Compares two rows by their sort keys; empty values come last in either direction.
    pub(crate) fn by_keys(&self, left: &[Value], right: &[Value]) -> Ordering {
        let pairs = left.iter().zip(right).zip(&self.order);
        let mut orders = pairs.map(|((left, right), (_, direction))| match (left, right) {
            (Value::Empty, Value::Empty) => Ordering::Equal,
            (Value::Empty, _) => Ordering::Greater,
            (_, Value::Empty) => Ordering::Less,
            _ if *direction == Direction::Descending => right.compare(left),
            _ => left.compare(right),
        });
        orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }
}

/// The pages of rows of any kind but links: the page itself, or the pages of a site, host or capture.
fn pages_of(rows: &dyn Rows, found: Vec<Row>) -> Result<Vec<UrlId>, Error> {
    let (mut pages, mut captured) = (Vec::new(), HashSet::new());
    let (mut sites, mut hosts): (HashSet<SiteId>, HashSet<HostId>) = (HashSet::new(), HashSet::new());
    for row in found {
        match row {
            Row::Page(page) => pages.push(page.id),
            Row::Capture(capture) if captured.insert(capture.page) => pages.push(capture.page),
            Row::Capture(_) | Row::Link(_) => {}
            Row::Site(site) => {
                sites.insert(site.id);
            }
            Row::Host(host) => {
                hosts.insert(host.id);
            }
        }
    }
    if !sites.is_empty() || !hosts.is_empty() {
        for page in rows.pages() {
            let page = page?;
            if sites.contains(&page.site) || hosts.contains(&page.host) {
                pages.push(page.id);
            }
        }
    }
    Ok(pages)
}
