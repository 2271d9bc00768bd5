//! How a query was answered: the chosen steps, and how many rows each one read and left.
//!
//! Counting, and timing each condition on each row, only happens if the query is explained.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use archive_grammar::Relation;
use archive_storage::UrlId;

use crate::query::language::{Error, Filter, Plan, RowsError, Search, Subject, plural};
use crate::query::rows::{CheckTally, Row, Running, SearchResult, Seen, Tally, World};

/// Whether a filter holds; counts and times each conjunct.
pub(crate) fn holds(tally: &RefCell<Tally>, filter: &Filter, row: &dyn Subject) -> Result<bool, RowsError> {
    let parts = filter.parts();
    let mut tally = tally.borrow_mut();
    tally.rows += 1;
    tally.checks.resize(parts.len(), CheckTally::default());
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
    pub(crate) fn scan_seen(
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
            for (check, what) in checks.iter().zip(&self.written.checks) {
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
    pub(crate) fn chosen_seen(&self, world: &World<'_>, rows: u64, began: Instant) {
        let time = began.elapsed();
        world.running.note(|seen| seen.start(format!("all {}", plural(self.target)), None, rows, time));
    }

    /// Notes how many groups there are, and how many of these pass `having`.
    pub(crate) fn grouped_seen(&self, running: &Running, (all, counting): (u64, u64), time: Duration) {
        let what = if self.written.groups.is_empty() { "all rows as one" } else { &self.written.groups };
        running.note(|seen| {
            seen.gather("group", what.to_owned(), all, time);
            if let Some(having) = &self.written.having {
                seen.gather("having", having.clone(), counting, Duration::ZERO);
            }
        });
    }

    /// Notes how rows were ordered, and how many were returned.
    pub(crate) fn ordered_seen(&self, running: &Running, rows: u64, time: Duration) {
        let mut what =
            if self.written.order.is_empty() { "as usual".to_owned() } else { self.written.order.clone() };
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
pub(crate) fn searched(
    running: &Running,
    search: &Search,
    run: impl FnOnce() -> Result<Option<SearchResult>, Error>,
) -> Result<Option<SearchResult>, Error> {
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
                Relation::Near => ("text index", "near"),
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
            Self::Lacking(_) => "text index: pages that lack a word or sign of the pattern".to_owned(),
        }
    }
}
