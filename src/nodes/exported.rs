//! Exports from several archives, possibly on other machines: the selection of pages, and the rows that nodes send,
//! piece by piece. `exchange/export` defines the rows.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::sync::atomic::AtomicU64;

use archive_storage::{Store, UrlId};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::answer::instant;
use super::asked::{Asked, Asking, Source, unasked};
use super::node::{Http, Node};
use super::wire::{Ask, Line};
use super::{AskError, NodeError};
use crate::access::Access;
use crate::query::{Limits, Plan, Question, Running};
use crate::search::Statistics;

/// Maximum size of the rows in one answer, in bytes, unless a single row is longer.
const ROOM_MAX: u64 = 64 << 20;

/// Maximum size of all rows of one node, in bytes. For records it is more than a machine's disks hold; for rows that
/// are kept or numbered here, more than the node's segments can have.
const RECORDS_BYTES_MAX: u64 = 64 << 40;
const ROWS_BYTES_MAX: u64 = 1 << 40;
const PAGES_BYTES_MAX: u64 = 64 << 30;

/// Minimum number of bytes that an answer counts for, which also limits the number of answers.
const ANSWER_BYTES_MIN: u64 = 1 << 20;

/// Kind of rows to export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExportRows {
    /// WARC records.
    Records,
    /// Index lines (CDXJ).
    Index,
    /// Links.
    Links,
    /// Rows of a table of captures.
    Captures,
    /// Rows of a table of captures, with their texts.
    Texts,
    /// Pages: numbers and URLs.
    Pages,
}

impl ExportRows {
    /// Maximum size of all rows that one node may send, in bytes.
    fn bytes_max(self) -> u64 {
        match self {
            Self::Records | Self::Texts => RECORDS_BYTES_MAX,
            Self::Index | Self::Links | Self::Captures => ROWS_BYTES_MAX,
            Self::Pages => PAGES_BYTES_MAX,
        }
    }
}

/// Position at which the next answer continues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportPlace {
    /// Segment number; 0 for links.
    pub segment: u32,
    /// Offset within the segment, in the unit of the rows.
    pub offset: u64,
    /// Digest of the names of the segments up to this one and of the state's generation. If it differs, positions from
    /// earlier answers are no longer valid.
    pub names: u64,
}

impl ExportPlace {
    fn key(self) -> (u32, u64) {
        (self.segment, self.offset)
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

impl Wanted {
    /// Size limit of the answer in bytes; the row that exceeds it is still included.
    #[must_use]
    pub fn room(&self) -> u64 {
        self.room.min(ROOM_MAX)
    }
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
    ///
    /// # Errors
    /// When the query is wrong, or the archive cannot be read.
    pub fn pages(&self, store: &Store, access: &Access, limits: Limits) -> Result<HashSet<UrlId>, AskError> {
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

/// One of several archives to export.
#[derive(Debug)]
pub enum Exported<'a> {
    /// A local folder, restricted by access rules.
    Folder(&'a Store, Access),
    /// An archive served by another machine.
    Node(Sender<'a>),
}

/// A node that sends rows.
#[derive(Debug)]
pub struct Sender<'a> {
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

    /// The archives that answer, in their order, ready for export.
    #[must_use]
    pub fn exported(&self, chosen: Option<&Chosen>) -> Vec<Exported<'_>> {
        let exported = self.sources.iter().map(|(_, source)| match source {
            Source::Folder(store, access) => Exported::Folder(store, access.clone()),
            Source::Node(node) => Exported::Node(Sender { node, http: &self.http, chosen: chosen.cloned() }),
        });
        exported.collect()
    }
}

impl Sender<'_> {
    /// The query that selects the node's pages.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        Some(&self.chosen.as_ref()?.query)
    }

    /// Name of the node, as given by the user.
    #[must_use]
    pub fn name(&self) -> &str {
        self.node.name()
    }

    /// Passes the node's rows to `take`, piece by piece, each in an unnamed temporary file positioned at its beginning.
    ///
    /// Returns the identity of the state that page numbers refer to.
    ///
    /// # Errors
    /// [`AskError::Lost`], and the errors of `take`.
    pub fn send<E: From<AskError>>(
        &self,
        rows: ExportRows,
        take: &mut dyn FnMut(File) -> Result<(), E>,
    ) -> Result<Option<u64>, E> {
        let (mut from, mut state, mut sum) = (None, None, Sum { left: rows.bytes_max() });
        loop {
            let Piece { file, bytes, state: known, next } =
                self.piece(rows, from).map_err(|error| self.lost(error))?;
            if *state.get_or_insert(known) != known {
                return Err(self.lost(NodeError::Failed("it was rebuilt meanwhile".to_owned())).into());
            }
            sum.take(bytes).map_err(|error| self.lost(error))?;
            take(file)?;
            match next {
                Some(next) if from.is_some_and(|from: ExportPlace| next.key() <= from.key()) => {
                    return Err(self.senseless("its rows do not go on").into());
                }
                Some(next) => from = Some(next),
                None => return Ok(known),
            }
        }
    }

    /// The error for rows that are invalid.
    #[must_use]
    pub fn senseless(&self, what: &str) -> AskError {
        self.lost(NodeError::senseless(what))
    }

    fn lost(&self, error: NodeError) -> AskError {
        AskError::Lost { name: self.node.name().to_owned(), error }
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
            let mut sum = Sum { left: rows.bytes_max() };
            sum.take(rows.bytes_max() - ANSWER_BYTES_MIN).unwrap();
            // Empty answers count as well: they must not continue for ever.
            sum.take(0).unwrap();
            assert!(sum.take(0).unwrap_err().to_string().contains("more rows than"));
        }
    }
}
