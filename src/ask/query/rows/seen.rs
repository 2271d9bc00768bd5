//! Execution statistics of a query.

use std::time::Duration;

use archive_books::prepared::Column as Stored;
use serde::Serialize;

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
    pub(crate) level: usize,
    /// Where the store says that the rows come from; `all` is how many rows there are.
    #[serde(skip)]
    pub(crate) sources: Vec<String>,
    #[serde(skip)]
    pub(crate) all: u64,
    /// Number of rows that the store selected, if it left some out.
    #[serde(skip)]
    pub(crate) selected: Option<u64>,
    /// Time spent on grouping or sorting while rows are streamed.
    #[serde(skip)]
    pub(crate) taking: Duration,
}

impl Seen {
    /// Notes where the next rows come from, and how many there are to select from.
    pub(crate) fn source(&mut self, what: String, all: u64) {
        self.all += all;
        if !self.sources.contains(&what) {
            self.sources.push(what);
        }
    }

    /// Notes how many rows the store selected itself.
    pub(crate) fn selected(&mut self, rows: u64) {
        self.selected = Some(rows);
    }

    pub(crate) fn add(&mut self, step: &'static str, what: String, rows: (Option<u64>, u64), time: Duration) {
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
    pub(crate) fn passed(&mut self, over: &str, found: u64, time: Duration) {
        self.add("search", over.to_owned(), (None, found), time);
    }

    /// Notes a step that consumes the output of the step before.
    pub(crate) fn gather(&mut self, step: &'static str, what: String, rows: u64, time: Duration) {
        let before = self.steps.last().filter(|last| last.level == self.level).map(|last| last.rows_out);
        let taking = std::mem::take(&mut self.taking);
        self.add(step, what, (before, rows), taking + time);
    }

    /// Notes the start step; `usual` describes it unless the store has noted sources.
    pub(crate) fn start(&mut self, usual: String, all: Option<u64>, rows: u64, time: Duration) {
        let what = if self.sources.is_empty() { usual } else { self.sources.join("; ") };
        let all = all.or(Some(self.all).filter(|all| *all > 0));
        (self.sources, self.all) = (Vec::new(), 0);
        let rows = self.selected.take().unwrap_or(rows);
        self.add("start", what, (all, rows), time);
    }
}

/// Describes where rows come from; `columns` is `None` without prepared columns, and an entry is `None` for URLs, which
/// are stored elsewhere.
pub(crate) fn source(rows: &str, columns: Option<Vec<Option<Stored>>>, are_selected: bool) -> String {
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

/// Counters while rows are tested.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) rows: u64,
    pub(crate) checks: Vec<CheckTally>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CheckTally {
    pub(crate) rows_in: u64,
    pub(crate) rows_out: u64,
    pub(crate) time: Duration,
}
