//! Exports from several archives, possibly on other machines: the selection of pages, and the rows that nodes send,
//! piece by piece ([`crate::export`]).

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::sync::atomic::AtomicU64;

use archive_ask::query::{Limits, Plan};
use chrono::{DateTime, Utc};

use super::ask::{AskedFolder, EndOf, ExportPieces, LeafAnswer, RowBytes, Take};
use super::node::{Http, Node};
use super::query::{QueryInput, QueryText};
use super::root::{LeafArchive, Root};
use super::{AskError, NodeError};
use crate::export::{self, ExportError, ExportPart, ExportPlace, ExportRows, RowSender, Selection};

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

impl LeafAnswer for ExportPieces {
    fn answer(self, folder: &AskedFolder<'_>, take: Take<'_, Self>) -> EndOf<Self> {
        let Self { rows, chosen, from, room } = self;
        let selection = selection(folder, chosen)?;
        Ok(export::send(folder.store, &selection, (rows, from, room.min(ROOM_MAX)), &mut |piece| {
            take(RowBytes(piece.to_vec())).map_err(io::Error::other)
        })?)
    }
}

/// The captures that were chosen in an archive, or all.
fn selection(folder: &AskedFolder<'_>, chosen: Option<QueryInput>) -> Result<Selection, AskError> {
    let AskedFolder { store, access, .. } = *folder;
    let Some(chosen) = chosen else { return Ok(Selection::all(store, access).map_err(ExportError::from)?) };
    let query = chosen.query().to_owned();
    Ok(Selection::of_pages(store, access, chosen.pages(folder)?, query).map_err(ExportError::from)?)
}

/// A node that sends rows.
#[derive(Debug)]
struct NodeSender<'a> {
    node: &'a Node,
    http: &'a Http,
    chosen: Option<QueryInput>,
}

impl Root<'_> {
    /// Prepares the selection of pages by a query, if there is one. Days and hours without a time zone are in UTC.
    ///
    /// # Errors
    /// When the query is wrong or not suitable for complete exports, no archive answers, or a folder cannot be read.
    pub fn choose(
        &mut self,
        query: Option<&str>,
        now: DateTime<Utc>,
    ) -> Result<Option<QueryInput>, AskError> {
        let Some(query) = query else {
            self.look()?;
            return Ok(None);
        };
        let plan = Plan::of_several(query, now)?;
        plan.expect_whole()?;
        Ok(Some(self.retry(|root| root.input(&plan, &QueryText::new(query, now)))?))
    }

    /// The archives that answer, in their order, restricted to what was chosen of them.
    ///
    /// # Errors
    /// When a folder cannot be read.
    pub fn parts(&self, chosen: Option<&QueryInput>) -> Result<Vec<ExportPart<'_>>, AskError> {
        let parts = self.leaves.iter().map(|(_, leaf)| {
            Ok(match leaf {
                LeafArchive::Folder(store, access) => {
                    let folder = AskedFolder { store, access, limits: Limits::USUAL, kept: None };
                    ExportPart::Folder(store, selection(&folder, chosen.cloned())?)
                }
                LeafArchive::Node(node) => {
                    let sender = NodeSender { node, http: &self.http, chosen: chosen.cloned() };
                    ExportPart::Node(Box::new(sender))
                }
            })
        });
        parts.collect()
    }
}

impl RowSender for NodeSender<'_> {
    fn name(&self) -> &str {
        self.node.name()
    }

    fn query(&self) -> Option<&str> {
        Some(self.chosen.as_ref()?.query())
    }

    fn send(
        &self,
        rows: ExportRows,
        take: &mut dyn FnMut(File) -> Result<(), ExportError>,
    ) -> Result<Option<u64>, ExportError> {
        let (mut from, mut state, mut sum) = (None, None, Allowance { left: bytes_max(rows) });
        loop {
            let ReceivedRows { file, bytes, state: known, next } =
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

impl NodeSender<'_> {
    fn lost(&self, error: NodeError) -> ExportError {
        ExportError::Remote(AskError::Lost { name: self.node.name().to_owned(), error }.into())
    }

    fn piece(&self, rows: ExportRows, from: Option<ExportPlace>) -> Result<ReceivedRows, NodeError> {
        let failed = |error: io::Error| NodeError::Failed(format!("its rows cannot be kept: {error}"));
        let mut file = tempfile::tempfile().map_err(failed)?;
        let kind = ExportPieces { rows, chosen: self.chosen.clone(), from, room: ROOM_MAX };
        let (mut bytes, left) = (0, AtomicU64::new(self.http.bytes_max));
        let (head, next) = self.node.ask(self.http, kind, (&left, None), &mut |RowBytes(piece)| {
            bytes += piece.len() as u64;
            file.write_all(&piece).map_err(failed)
        })?;
        file.rewind().map_err(failed)?;
        Ok(ReceivedRows { file, bytes, state: head.state, next })
    }
}

/// The order of positions.
fn key(place: ExportPlace) -> (u32, u64) {
    (place.segment, place.offset)
}

/// The rows of one answer.
struct ReceivedRows {
    file: File,
    bytes: u64,
    state: Option<u64>,
    next: Option<ExportPlace>,
}

/// Number of bytes that a node may still send.
struct Allowance {
    left: u64,
}

impl Allowance {
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
            let mut sum = Allowance { left: bytes_max(rows) };
            sum.take(bytes_max(rows) - ANSWER_BYTES_MIN).unwrap();
            // Empty answers count as well: they must not continue for ever.
            sum.take(0).unwrap();
            assert!(sum.take(0).unwrap_err().to_string().contains("more rows than"));
        }
    }
}
