//! Exports from several archives, possibly on other machines: the selection of pages, and the rows that nodes send,
//! piece by piece ([`crate::export`]).

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::sync::atomic::AtomicU64;

use archive_ask::query::{Limits, Plan, Question, Running};
use archive_base::access::Access;
use archive_books::search::Statistics;
use archive_storage::{Store, UrlId};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::answer::{Take, instant};
use super::asked::{Asked, Asking, Source, unasked};
use super::node::{Http, Node};
use super::wire::{Ask, Line};
use super::{AskError, NodeError};
use crate::export::{self, ExportError, ExportPlace, ExportRows, Part, RowSender, Selection};

/// Maximum size of the rows in one answer, in bytes, unless a single row is longer.
const ROOM_MAX: u64 = 64 << 20;

/// Maximum size of all rows of one node, in bytes. For records it is more than a machine's disks hold; for rows that
/// are kept or numbered here, more than the node's segments can have.
const RECORDS_BYTES_MAX: u64 = 64 << 40;
const ROWS_BYTES_MAX: u64 = 1 << 40;
const PAGES_BYTES_MAX: u64 = 64 << 30;

/// Minimum number of bytes that an answer counts for, which also limits the number of answers.
const ANSWER_BYTES_MIN: u64 = 1 << 20;

/// Maximum size of all rows that one node may send, in bytes.
fn bytes_max(rows: ExportRows) -> u64 {
    match rows {
        ExportRows::Records | ExportRows::Texts => RECORDS_BYTES_MAX,
        ExportRows::Index | ExportRows::Links | ExportRows::Captures => ROWS_BYTES_MAX,
        ExportRows::Pages => PAGES_BYTES_MAX,
    }
}

/// Request for rows of an export.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Wanted {
    /// Kind of rows.
    pub rows: ExportRows,
    /// Pages to export; `None` for all.
    pub chosen: Option<Chosen>,
    /// Position of the first row; `None` to start at the beginning.
    pub from: Option<ExportPlace>,
    /// Maximum size of the rows in bytes; the answer ends with the row that exceeds it.
    pub room: u64,
}

/// The pages that a query selects from several archives, with the input that it needed from all of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Chosen {
    /// The query.
    pub query: String,
    now: i64,
    words: Option<Statistics>,
    related: Vec<Vec<String>>,
}

impl Chosen {
    /// The selected pages of one archive.
    pub(super) fn pages(
        &self,
        store: &Store,
        access: &Access,
        limits: Limits,
    ) -> Result<HashSet<UrlId>, AskError> {
        let plan = Plan::of_several(&self.query, instant(self.now)?)?;
        plan.expect_whole()?;
        let plan = plan.with_related(self.related.clone()).ok_or_else(|| {
            AskError::Wrong("the pages of the query's relations are not those that it has".to_owned())
        })?;
        let question = Question::part(store, access.clone(), plan, 0)?.within(Running::new(limits, false));
        let question = question.with_statistics(self.words.clone());
        Ok(question.pages()?.into_iter().map(|page| question.rows.origin(page).2).collect())
    }
}

/// The captures that were chosen in an archive, or all.
fn selection(
    store: &Store,
    access: &Access,
    chosen: Option<&Chosen>,
    limits: Limits,
) -> Result<Selection, AskError> {
    let Some(chosen) = chosen else { return Ok(Selection::all(store, access).map_err(ExportError::from)?) };
    let pages = chosen.pages(store, access, limits)?;
    Ok(Selection::of_pages(store, access, pages, chosen.query.clone()).map_err(ExportError::from)?)
}

/// Sends the requested rows of an archive that `access` shows, and the position at which the next answer continues.
pub(super) fn answer(
    store: &Store,
    access: &Access,
    Wanted { rows, chosen, from, room }: &Wanted,
    limits: Limits,
    take: &mut Take<'_>,
) -> Result<(), AskError> {
    let selection = selection(store, access, chosen.as_ref(), limits)?;
    let wanted = (*rows, *from, (*room).min(ROOM_MAX));
    let next = export::send(store, &selection, wanted, &mut |piece| {
        take(Line::Rows(BASE64_STANDARD.encode(piece))).map_err(io::Error::other)
    })?;
    next.map_or(Ok(()), |next| take(Line::Place(next)))
}

/// A node that sends rows.
#[derive(Debug)]
struct Sender<'a> {
    node: &'a Node,
    http: &'a Http,
    chosen: Option<Chosen>,
}

impl Asked<'_> {
    /// Prepares the selection of pages by a query, if there is one. Days and hours without a time zone are in UTC.
    ///
    /// # Errors
    /// When the query is wrong or not suitable for complete exports, no archive answers, or a folder cannot be read.
    pub fn choose(&mut self, query: Option<&str>, now: DateTime<Utc>) -> Result<Option<Chosen>, AskError> {
        let Some(query) = query else {
            self.look()?;
            return Ok(None);
        };
        let plan = Plan::of_several(query, now)?;
        plan.expect_whole()?;
        let now = now.timestamp_micros();
        let asking = Asking { query, now, limit: None };
        let (words, related) = self.insist(|asked| {
            let words = plan.reads_texts().then(|| asked.words(asking, &[])).transpose()?;
            Ok((words, asked.related(&plan, asking, &[])?))
        })?;
        Ok(Some(Chosen { query: query.to_owned(), now, words, related }))
    }

    /// The archives that answer, in their order, restricted to what was chosen of them.
    ///
    /// # Errors
    /// When a folder cannot be read.
    pub fn parts(&self, chosen: Option<&Chosen>) -> Result<Vec<Part<'_>>, AskError> {
        let parts = self.sources.iter().map(|(_, source)| {
            Ok(match source {
                Source::Folder(store, access) => {
                    Part::Folder(store, selection(store, access, chosen, Limits::USUAL)?)
                }
                Source::Node(node) => {
                    Part::Node(Box::new(Sender { node, http: &self.http, chosen: chosen.cloned() }))
                }
            })
        });
        parts.collect()
    }
}

impl RowSender for Sender<'_> {
    fn name(&self) -> &str {
        self.node.name()
    }

    fn query(&self) -> Option<&str> {
        Some(&self.chosen.as_ref()?.query)
    }

    fn send(
        &self,
        rows: ExportRows,
        take: &mut dyn FnMut(File) -> Result<(), ExportError>,
    ) -> Result<Option<u64>, ExportError> {
        let (mut from, mut state, mut sum) = (None, None, Sum { left: bytes_max(rows) });
        loop {
            let Piece { file, bytes, state: known, next } =
                self.piece(rows, from).map_err(|error| self.lost(error))?;
            if *state.get_or_insert(known) != known {
                return Err(self.lost(NodeError::Failed("it was rebuilt meanwhile".to_owned())));
            }
            sum.take(bytes).map_err(|error| self.lost(error))?;
            take(file)?;
            match next {
                Some(next) if from.is_some_and(|from| key(next) <= key(from)) => {
                    return Err(self.senseless("its rows do not go on"));
                }
                Some(next) => from = Some(next),
                None => return Ok(known),
            }
        }
    }

    fn senseless(&self, what: &str) -> ExportError {
        self.lost(NodeError::senseless(what))
    }
}

impl Sender<'_> {
    fn lost(&self, error: NodeError) -> ExportError {
        ExportError::Remote(AskError::Lost { name: self.node.name().to_owned(), error }.into())
    }

    fn piece(&self, rows: ExportRows, from: Option<ExportPlace>) -> Result<Piece, NodeError> {
        let failed = |error: io::Error| NodeError::Failed(format!("its rows cannot be kept: {error}"));
        let mut file = tempfile::tempfile().map_err(failed)?;
        let (mut next, mut sent) = (None, 0);
        let ask = Ask::Export(Wanted { rows, chosen: self.chosen.clone(), from, room: ROOM_MAX });
        let left = AtomicU64::new(self.http.bytes_max);
        let head = self.node.ask(self.http, &ask, (&left, None), &mut |line| {
            match line {
                Line::Rows(piece) => {
                    let bytes = BASE64_STANDARD.decode(piece);
                    let bytes = bytes.map_err(|error| NodeError::Senseless(error.to_string()))?;
                    sent += bytes.len() as u64;
                    file.write_all(&bytes).map_err(failed)?;
                }
                Line::Place(place) => next = Some(place),
                Line::End { .. } => {}
                _ => return Err(unasked()),
            }
            Ok(())
        })?;
        file.rewind().map_err(failed)?;
        Ok(Piece { file, bytes: sent, state: head.state, next })
    }
}

/// The order of positions.
fn key(place: ExportPlace) -> (u32, u64) {
    (place.segment, place.offset)
}

/// The rows of one answer.
struct Piece {
    file: File,
    bytes: u64,
    state: Option<u64>,
    next: Option<ExportPlace>,
}

/// Number of bytes that a node may still send.
struct Sum {
    left: u64,
}

impl Sum {
    fn take(&mut self, bytes: u64) -> Result<(), NodeError> {
        let problem = || NodeError::senseless("it has more rows than an archive can have");
        self.left = self.left.checked_sub(bytes.max(ANSWER_BYTES_MIN)).ok_or_else(problem)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_sends_as_many_rows_as_the_limit_and_no_more() {
        for rows in [ExportRows::Records, ExportRows::Index] {
            let mut sum = Sum { left: bytes_max(rows) };
            sum.take(bytes_max(rows) - ANSWER_BYTES_MIN).unwrap();
            // Empty answers count as well: they must not continue for ever.
            sum.take(0).unwrap();
            assert!(sum.take(0).unwrap_err().to_string().contains("more rows than"));
        }
    }
}
