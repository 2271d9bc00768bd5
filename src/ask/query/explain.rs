//! How a query was answered: the chosen steps, and how many rows each one read and left.
//!
//! Counting, and timing each condition on each row, only happens if the query is explained.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use archive_books::prepared::Column as Stored;
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

/// A step of answering a query.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// Nesting level: 0 for the query, 1 for a query inside it, and so on.
    pub level: usize,
    /// `search`, `start`, `check`, `sample`, `group`, `having` or `order`.
    pub step: &'static str,
    /// What the step does.
    pub what: String,
    /// Number of rows read; `None` if the step found them itself.
    pub rows_in: Option<u64>,
    /// Number of rows or groups left.
    pub rows_out: u64,
    /// Duration in seconds.
    pub seconds: f64,
}

/// Execution statistics of a query.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Seen {
    /// The steps in order of completion.
    pub steps: Vec<Step>,
    /// Number of records read for conditions, columns and keys.
    pub records_read: u64,
    /// Number of XML documents parsed for these.
    pub documents_parsed: u64,
    /// Bytes written to temporary files.
    pub spilled_bytes: u64,
    #[serde(skip)]
    level: usize,
    /// Where the store says that the rows come from; `all` is how many rows there are.
    #[serde(skip)]
    sources: Vec<String>,
    #[serde(skip)]
    all: u64,
    /// Number of rows that the store selected, if it left some out.
    #[serde(skip)]
    selected: Option<u64>,
    /// Time spent on grouping or sorting while rows are streamed.
    #[serde(skip)]
    taking: Duration,
}

impl Seen {
    /// Notes where the next rows come from, and how many there are to select from.
    pub(super) fn source(&mut self, what: String, all: u64) {
        self.all += all;
        if !self.sources.contains(&what) {
            self.sources.push(what);
        }
    }

    /// Notes how many rows the store selected itself.
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

    /// Notes a pass over other data that found pages.
    pub(super) fn passed(&mut self, over: &str, found: u64, time: Duration) {
        self.add("search", over.to_owned(), (None, found), time);
    }

    /// Notes a step that consumes the output of the step before.
    fn gather(&mut self, step: &'static str, what: String, rows: u64, time: Duration) {
        let before = self.steps.last().filter(|last| last.level == self.level).map(|last| last.rows_out);
        let taking = std::mem::take(&mut self.taking);
        self.add(step, what, (before, rows), taking + time);
    }

    /// Notes the start step; `usual` describes it unless the store has noted sources.
    fn start(&mut self, usual: String, all: Option<u64>, rows: u64, time: Duration) {
        let what = if self.sources.is_empty() { usual } else { self.sources.join("; ") };
        let all = all.or(Some(self.all).filter(|all| *all > 0));
        (self.sources, self.all) = (Vec::new(), 0);
        let rows = self.selected.take().unwrap_or(rows);
        self.add("start", what, (all, rows), time);
    }
}

/// Describes where rows come from; `columns` is `None` without prepared columns, and an entry is `None` for URLs, which
/// are stored elsewhere.
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

/// Parts of a query as written, for explanations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said {
    /// The conjuncts in evaluation order.
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

/// Counters while rows are tested.
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

/// Whether a filter holds; counts and times each conjunct.
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
    /// Passes every matching row to a function, and notes statistics.
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
        let Tally { rows: looked_at, checks } = world.tally.as_ref().map(RefCell::take).unwrap_or_default();
        let checking: Duration = checks.iter().map(|check| check.time).sum();
        world.running.note(|seen| {
            let left = if checks.is_empty() { rows } else { looked_at };
            seen.start(usual, found, left, time.saturating_sub(checking));
            for (check, what) in checks.iter().zip(&self.said.checks) {
                seen.add("check", what.clone(), (Some(check.rows_in), check.rows_out), check.time);
            }
            self.drawn_seen(seen, rows);
            seen.taking = taking;
        });
        Ok(())
    }

    fn drawn_seen(&self, seen: &mut Seen, rows: u64) {
        if let Some((wanted, seed)) = self.sample {
            let before = seen.steps.last().map(|step| step.rows_out);
            let what = format!("{wanted} random row{}, seed {seed}", if wanted == 1 { "" } else { "s" });
            seen.add("sample", what, (before, rows), Duration::ZERO);
        }
    }

    /// Notes rows or groups that the store selected itself, since `began`.
    pub(super) fn chosen_seen(&self, world: &World<'_>, rows: u64, began: Instant) {
        let time = began.elapsed();
        world.running.note(|seen| seen.start(format!("all {}", plural(self.target)), None, rows, time));
    }

    /// Notes how many groups there are, and how many of these pass `having`.
    pub(super) fn grouped_seen(&self, running: &Running, (all, counting): (u64, u64), time: Duration) {
        let what = if self.said.groups.is_empty() { "all rows as one" } else { &self.said.groups };
        running.note(|seen| {
            seen.gather("group", what.to_owned(), all, time);
            if let Some(having) = &self.said.having {
                seen.gather("having", having.clone(), counting, Duration::ZERO);
            }
        });
    }

    /// Notes how rows were ordered, and how many were returned.
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

/// Runs a search and notes what it found.
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
