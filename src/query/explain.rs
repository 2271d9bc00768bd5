//! How a query was answered: the steps that were chosen, and the rows that were seen at each.
//!
//! Only a query that is explained counts, and looks at the clock for each condition of each row.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use archive_grammar::{Query, Relation};
use archive_storage::UrlId;
use serde::Serialize;

use super::Error;
use super::columns::plural;
use super::expr::Subject;
use super::filter::Filter;
use super::hits::Found;
use super::plan::{Plan, Search};
use super::rows::{Row, RowsError};
use super::running::Running;
use super::subject::World;
use crate::prepared::Column as Stored;

/// A step of an answer.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// 0 for the query, 1 for one inside it, and so on.
    pub level: usize,
    /// `search`, `start`, `check`, `sample`, `group`, `having` or `order`.
    pub step: &'static str,
    /// What it does.
    pub what: String,
    /// Rows that it looked at; none where it found them itself.
    pub rows_in: Option<u64>,
    /// Rows, or groups, that it left.
    pub rows_out: u64,
    /// How long it took.
    pub seconds: f64,
}

/// What was seen of a query.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Seen {
    /// The steps as they ended.
    pub steps: Vec<Step>,
    /// Records that conditions, columns and keys read.
    pub records_read: u64,
    /// XML documents that they parsed.
    pub documents_parsed: u64,
    /// Bytes of temporary files.
    pub spilled_bytes: u64,
    #[serde(skip)]
    level: usize,
    /// What the store said of where rows came from, and how many it has.
    #[serde(skip)]
    sources: Vec<String>,
    #[serde(skip)]
    all: u64,
    /// How many rows the store selected, if it left some of them out.
    #[serde(skip)]
    selected: Option<u64>,
    /// What grouping or ordering took while rows came.
    #[serde(skip)]
    taking: Duration,
}

impl Seen {
    /// Where the rows of the next start come from, and how many there are to choose from.
    pub(super) fn source(&mut self, what: String, all: u64) {
        self.all += all;
        if !self.sources.contains(&what) {
            self.sources.push(what);
        }
    }

    /// How many rows the store selected itself.
    pub(super) fn selected(&mut self, rows: u64) {
        self.selected = Some(rows);
    }

    fn add(&mut self, step: &'static str, what: String, rows: (Option<u64>, u64), time: Duration) {
        let (rows_in, rows_out) = rows;
        self.steps.push(Step {
            level: self.level,
            step,
            what,
            rows_in,
            rows_out,
            seconds: time.as_secs_f64(),
        });
    }

    /// A pass over something else that found pages.
    pub(super) fn passed(&mut self, over: &str, found: u64, time: Duration) {
        self.add("search", over.to_owned(), (None, found), time);
    }

    /// A step that takes what the one before it left.
    fn gather(&mut self, step: &'static str, what: String, rows: u64, time: Duration) {
        let before = self.steps.last().filter(|last| last.level == self.level).map(|last| last.rows_out);
        let taking = std::mem::take(&mut self.taking);
        self.add(step, what, (before, rows), taking + time);
    }

    /// The start of rows; `usual` unless the store said where they came from.
    fn start(&mut self, usual: String, all: Option<u64>, rows: u64, time: Duration) {
        let what = if self.sources.is_empty() { usual } else { self.sources.join("; ") };
        let all = all.or(Some(self.all).filter(|all| *all > 0));
        (self.sources, self.all) = (Vec::new(), 0);
        let rows = self.selected.take().unwrap_or(rows);
        self.add("start", what, (all, rows), time);
    }
}

/// Where rows come from, for explanations; `columns` are none for URLs, which lie elsewhere.
pub(super) fn source(rows: &str, columns: Option<Vec<Option<Stored>>>, are_selected: bool) -> String {
    let Some(mut columns) = columns else { return format!("all {rows}, from the tables of the state") };
    columns.sort_unstable_by_key(|column| column.map(|column| column as u32));
    columns.dedup();
    let name = |column: &Option<_>| {
        column.map_or("url".to_owned(), |column: Stored| format!("{column:?}").to_lowercase())
    };
    let names: Vec<String> = columns.iter().map(name).collect();
    match (names.is_empty(), are_selected) {
        (true, _) => format!("all {rows}, from prepared columns"),
        (false, true) => format!("{rows} by prepared columns, which decide: {}", names.join(", ")),
        (false, false) => format!("{rows} by prepared columns: {}", names.join(", ")),
    }
}

/// Parts of a query as they were written, for explanations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said {
    /// The conditions that all have to hold, in the order in which they are looked at.
    pub(super) checks: Vec<String>,
    groups: String,
    having: Option<String>,
    order: String,
}

impl Said {
    pub(super) fn new(query: &Query, checks: Vec<String>) -> Self {
        let listed = |each: &mut dyn Iterator<Item = String>| each.collect::<Vec<_>>().join(", ");
        Self {
            checks,
            groups: listed(&mut query.group.iter().map(|key| key.value.to_string())),
            having: query.having.as_ref().map(ToString::to_string),
            order: listed(&mut query.order.iter().map(ToString::to_string)),
        }
    }
}

/// What is counted while rows are looked at.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    rows: u64,
    checks: Vec<Check>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Check {
    rows_in: u64,
    rows_out: u64,
    time: Duration,
}

/// Whether a filter holds, condition by condition.
pub(super) fn holds(tally: &RefCell<Tally>, filter: &Filter, row: &dyn Subject) -> Result<bool, RowsError> {
    let parts = filter.parts();
    let mut tally = tally.borrow_mut();
    tally.rows += 1;
    tally.checks.resize(parts.len(), Check::default());
    for (part, check) in parts.iter().zip(&mut tally.checks) {
        let began = Instant::now();
        let holds = part.holds(row)?;
        check.time += began.elapsed();
        check.rows_in += 1;
        check.rows_out += u64::from(holds);
        if !holds {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Plan {
    /// Passes every row that matches to a function, and notes what was seen of them.
    pub(super) fn scan_seen(
        &self,
        world: &World<'_>,
        candidates: Option<Vec<UrlId>>,
        take: &mut dyn FnMut(Row) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (began, mut rows, mut taking) = (Instant::now(), 0, Duration::ZERO);
        let found = candidates.as_ref().map(|candidates| candidates.len() as u64);
        self.draw(world, candidates, &mut |row| {
            let began = Instant::now();
            rows += 1;
            let taken = take(row);
            taking += began.elapsed();
            taken
        })?;
        let time = began.elapsed().saturating_sub(taking);
        let usual = match found {
            Some(_) => "the pages that searches or URLs name, one by one".to_owned(),
            None => format!("all {}", plural(self.target)),
        };
        self.scanned_seen(world, usual, found, (rows, time));
        world.running.note(|seen| seen.taking = taking);
        Ok(())
    }

    /// Notes where rows came from, how many of `found` ones were looked at, and how many matched in which time.
    pub(super) fn scanned_seen(
        &self,
        world: &World<'_>,
        usual: String,
        found: Option<u64>,
        (rows, time): (u64, Duration),
    ) {
        let Tally { rows: looked_at, checks } = world.tally.as_ref().map(RefCell::take).unwrap_or_default();
        let checking: Duration = checks.iter().map(|check| check.time).sum();
        world.running.note(|seen| {
            let left = if checks.is_empty() { rows } else { looked_at };
            seen.start(usual, found, left, time.saturating_sub(checking));
            for (check, what) in checks.iter().zip(&self.said.checks) {
                seen.add("check", what.clone(), (Some(check.rows_in), check.rows_out), check.time);
            }
            self.drawn_seen(seen, rows);
        });
    }

    fn drawn_seen(&self, seen: &mut Seen, rows: u64) {
        if let Some((wanted, seed)) = self.sample {
            let before = seen.steps.last().map(|step| step.rows_out);
            seen.add("sample", format!("{wanted} by lot, seed {seed}"), (before, rows), Duration::ZERO);
        }
    }

    /// Notes rows, or groups, that the store chose itself, since `began`.
    pub(super) fn chosen_seen(&self, world: &World<'_>, rows: u64, began: Instant) {
        let time = began.elapsed();
        world.running.note(|seen| seen.start(format!("all {}", plural(self.target)), None, rows, time));
    }

    /// Notes how many groups were made of rows, and how many of them count.
    pub(super) fn grouped_seen(&self, running: &Running, (all, counting): (u64, u64), time: Duration) {
        let what = if self.said.groups.is_empty() { "all rows as one" } else { &self.said.groups };
        running.note(|seen| {
            seen.gather("group", what.to_owned(), all, time);
            if let Some(having) = &self.said.having {
                seen.gather("having", having.clone(), counting, Duration::ZERO);
            }
        });
    }

    /// Notes how rows were ordered, and how many were given away.
    pub(super) fn ordered_seen(&self, running: &Running, rows: u64, time: Duration) {
        let mut what =
            if self.said.order.is_empty() { "as usual".to_owned() } else { self.said.order.clone() };
        if let Some(limit) = self.limit {
            what.push_str(&format!(", the first {limit}"));
        }
        if self.offset > 0 {
            what.push_str(&format!(" after {}", self.offset));
        }
        running.note(|seen| seen.gather("order", what, rows, time));
    }
}

/// Runs a search, and notes what it found.
pub(super) fn searched(
    running: &Running,
    search: &Search,
    run: impl FnOnce() -> Result<Option<Found>, Error>,
) -> Result<Option<Found>, Error> {
    let began = Instant::now();
    running.note(|seen| seen.level += 1);
    let found = run();
    running.note(|seen| {
        seen.level -= 1;
        if let Ok(Some(found)) = &found {
            seen.add("search", search.described(), (None, found.len() as u64), began.elapsed());
        }
    });
    found
}

impl Search {
    fn described(&self) -> String {
        let related = |relation: Relation, others: &str| {
            let (from, what) = match relation {
                Relation::LinksTo => ("all links", "links to"),
                Relation::LinkedFrom => ("links", "linked from"),
                Relation::RedirectsTo => ("all links", "redirects to"),
                Relation::SameContentAs => ("contents of all pages", "same content as"),
            };
            format!("{from}: {what} {others}")
        };
        match self {
            Self::Text { query, .. } => format!("text index: {}", query.texts.join(", ")),
            Self::Url(relation, url) => related(*relation, url),
            Self::Pages(relation, _) => related(*relation, "the pages of the query inside"),
            Self::Urls(Some(relation), urls) => related(*relation, &format!("{} URLs", urls.len())),
            Self::Urls(None, urls) => format!("{} URLs", urls.len()),
            Self::Duplicates => "contents of all pages: duplicates".to_owned(),
            Self::Read => "documents that were read".to_owned(),
            Self::Elements { .. } => "index of XML elements".to_owned(),
        }
    }
}
