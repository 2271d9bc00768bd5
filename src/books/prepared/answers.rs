//! Columns about the answers of servers, one row per capture, as codes: Server, charset, other headers, response time,
//! the hops that led there, why nothing answered, and the results of validating documents.
//!
//! All of this is at hand when a capture is recorded, so it is noted in memory then ([`note`]). It is written when the
//! archive is closed, or by a checkpoint once much is noted ([`write_much`]); reading the records again would take
//! minutes. Older captures keep their rows in the existing file: captures keep their numbers as long as the state keeps
//! its identity. What was never noted is unknown, and readers look it up in the record. Names come from untrusted
//! servers, so only a limited number get codes; captures with other names are unknown.

mod heads;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;

use archive_storage::segment::{CaptureBody, CaptureGroup, ReplayedCapture};
use archive_storage::warc::{HttpHead, split};
use archive_storage::{CaptureId, CaptureKind, State, Store};
use archive_web::parse::charset_parameter;
use bytes::Bytes;

use heads::{HEAD_BYTES_MAX, HeadValues, header};

use super::file::{BLOCK_ROWS, Reader, Stamp, TEXTS_BYTES_MAX, Writer};
use super::{Column, Prepared, PreparedError, captures};
use crate::ledger::{FIELD_ERASED, FIELD_ERROR, FIELD_FETCH_MS, FIELD_HOPS};

/// Name of the file in the archive's folder.
pub const ANSWERS_FILE: &str = "state/answers.prepared";

/// Limits of a column's names: how many get a code, the bytes of one, and the bytes of all.
#[derive(Clone, Copy)]
struct Most {
    count: usize,
    bytes: usize,
    all_bytes: usize,
}

impl Most {
    const fn of(count: usize, bytes: usize) -> Self {
        Self { count, bytes, all_bytes: count * bytes }
    }
}

/// Limits for servers, charsets, hop chains, failures, heads, and validation results.
const MOST: [Most; NAMES] = [
    Most::of(1 << 12, 128),
    Most::of(1 << 8, 128),
    Most::of(1 << 10, 128),
    Most::of(1 << 10, 128),
    Most { count: 1 << 15, bytes: HEAD_BYTES_MAX, all_bytes: 6 << 20 },
    Most { count: 1 << 15, bytes: 1 << 12, all_bytes: 1 << 20 },
];
const _: () = {
    let (mut bytes, mut column) = (0, 0);
    while column < NAMES {
        let Most { count, bytes: most, all_bytes } = MOST[column];
        assert!(count < (u16::MAX - FIRST) as usize && most <= u16::MAX as usize);
        bytes += 2 + 2 * count + all_bytes;
        column += 1;
    }
    assert!(bytes <= TEXTS_BYTES_MAX as usize);
};

/// Codes: unknown (never noted, or without a code); known to be absent; and the first name, or 0 milliseconds.
const UNKNOWN: u16 = 0;
const ABSENT: u16 = 1;
const FIRST: u16 = 2;

/// The columns; those of names come first.
const COLUMNS: [Column; 7] = [
    Column::Server,
    Column::Charset,
    Column::Hops,
    Column::Failure,
    Column::Head,
    Column::Checked,
    Column::ResponseTime,
];
const NAMES: usize = 6;
const HEADS: usize = Column::Head as usize - Column::Server as usize;
const CHECKED: usize = Column::Checked as usize - Column::Server as usize;

/// Codes of a capture, one per column.
type CodeRow = [u16; COLUMNS.len()];

/// Returns a field of a capture's metadata; its last line counts.
fn field<'a>(metadata: &'a [(String, String)], name: &str) -> Option<&'a str> {
    metadata.iter().rfind(|(own, _)| own == name).map(|(_, value)| value.as_str())
}

/// Names in the order of their codes.
#[derive(Debug, Default)]
struct CodeNames {
    names: Vec<String>,
    codes: HashMap<String, u16>,
    /// Bytes of all names.
    bytes: usize,
}

impl CodeNames {
    /// Returns the code of a name, assigning one if there is room. An empty name counts as absent.
    fn code(&mut self, name: Option<&str>, most: Most) -> u16 {
        let Some(name) = name.filter(|name| !name.is_empty()) else { return ABSENT };
        if let Some(code) = self.codes.get(name) {
            return *code;
        }
        let bytes = self.bytes + name.len();
        if name.len() > most.bytes || self.names.len() >= most.count || bytes > most.all_bytes {
            return UNKNOWN;
        }
        self.bytes = bytes;
        let code = FIRST + self.names.len() as u16;
        self.names.push(name.to_owned());
        self.codes.insert(name.to_owned(), code);
        code
    }
}

/// A checkpoint writes the noted rows once there are `MUCH_MIN`, and one for every `MUCH_SHARE` captures of the
/// archive: so the file is written only a few times while an archive doubles, and a crash loses little of it.
const MUCH_MIN: u64 = 1 << 10;
const MUCH_SHARE: u64 = 16;

/// What was noted of the captures that were recorded since the archive was opened.
#[derive(Debug, Default)]
struct Noted {
    /// Rows not yet written, in whole blocks by number, so that a row takes no more than its own bytes.
    blocks: BTreeMap<u32, Vec<CodeRow>>,
    /// Number of rows not yet written.
    count: u64,
    names: [CodeNames; NAMES],
    values: HeadValues,
    /// Results of validating documents, by capture; of any captures.
    checked: BTreeMap<u32, u16>,
}

impl Noted {
    fn add(&mut self, id: CaptureId, kind: CaptureKind, head: &HttpHead, metadata: &[(String, String)]) {
        let charset = head.get("content-type").and_then(charset_parameter).map(str::to_lowercase);
        let [hops, failure] = [FIELD_HOPS, FIELD_ERROR].map(|name| field(metadata, name));
        let kept = self.values.kept(head);
        let names = [head.get("server"), charset.as_deref(), hops, failure, kept.as_deref()];
        let mut row = CodeRow::default();
        let codes = self.names.iter_mut().zip(MOST).zip(names);
        for (code, ((known, most), name)) in row.iter_mut().zip(codes) {
            *code = known.code(name, most);
        }
        if let (None, Some(code)) = (kept, row.get_mut(HEADS)) {
            *code = UNKNOWN;
        }
        let [.., time] = &mut row;
        *time = response_ms(kind, metadata).map_or(ABSENT, |ms| {
            ms.checked_add(FIRST.into()).and_then(|code| u16::try_from(code).ok()).unwrap_or(UNKNOWN)
        });
        self.count += 1;
        let nothing = || vec![CodeRow::default(); BLOCK_ROWS as usize];
        let rows = self.blocks.entry(id.0 / BLOCK_ROWS).or_insert_with(nothing);
        rows.get_mut((id.0 % BLOCK_ROWS) as usize).into_iter().for_each(|place| *place = row);
    }

    /// Returns the row of a capture, including its validation result.
    fn row(&self, id: u32) -> CodeRow {
        let block = self.blocks.get(&(id / BLOCK_ROWS));
        let mut row =
            block.and_then(|rows| rows.get((id % BLOCK_ROWS) as usize)).copied().unwrap_or_default();
        self.checked.get(&id).into_iter().for_each(|code| row[CHECKED] = *code);
        row
    }

    fn has_any(&self, ids: &Range<u32>) -> bool {
        let blocks = ids.start / BLOCK_ROWS..ids.end.div_ceil(BLOCK_ROWS);
        self.blocks.range(blocks).next().is_some() || self.checked.range(ids.clone()).next().is_some()
    }
}

/// Notes the answer that was recorded as a capture.
pub fn note(state: &mut State, id: CaptureId, kind: CaptureKind, group: &CaptureGroup) {
    if let (Some(head), Some(noted)) = (head_of(kind, &group.body), state.kept_mut::<Noted>()) {
        noted.add(id, kind, &head, &group.metadata);
    }
}

/// Like [`note`], for a capture whose records were read again.
pub fn note_replayed(state: &mut State, id: CaptureId, capture: &ReplayedCapture) {
    let head = match (capture.kind, &capture.http) {
        // A standalone document has its media type in the record's own header, and other crawlers store the head of a
        // 304 elsewhere.
        (CaptureKind::Resource, _) | (CaptureKind::Identical | CaptureKind::Response, None) => return,
        (CaptureKind::NotModified, _) if !capture.content.is_empty() => return,
        (CaptureKind::Failed, _) | (_, None) => &HttpHead::parse(&[]),
        (_, Some(head)) => head,
    };
    // The record of an erased capture gives the reason of the erasure.
    let is_erased = field(&capture.metadata, FIELD_ERASED).is_some();
    if let Some(noted) = state.kept_mut::<Noted>().filter(|_| !is_erased) {
        noted.add(id, capture.kind, head, &capture.metadata);
    }
}

/// Notes the result of validating a capture's document.
pub fn note_checked(state: &mut State, id: CaptureId, found: &str) {
    if let Some(Noted { names, checked, .. }) = state.kept_mut::<Noted>() {
        checked.insert(id.0, names[CHECKED].code(Some(found), MOST[CHECKED]));
    }
}

/// Returns the HTTP head that a capture's records will have; `None` if that is uncertain.
fn head_of(kind: CaptureKind, body: &CaptureBody) -> Option<HttpHead> {
    let of_message = |message: &Bytes| Some(HttpHead::parse(&split(message).0));
    match (kind, body) {
        (CaptureKind::Failed, CaptureBody::Failed) => Some(HttpHead::parse(&[])),
        (CaptureKind::Response, CaptureBody::Response { http: message, .. })
        | (CaptureKind::Response, CaptureBody::Spooled { head: message, .. })
        | (CaptureKind::Identical, CaptureBody::Identical { head: message, .. }) => of_message(message),
        (CaptureKind::Response | CaptureKind::Identical, CaptureBody::Imported(record))
            if record.is_http() && record.rest.is_none() =>
        {
            of_message(&record.content)
        }
        // Stored as lines of text.
        (CaptureKind::NotModified, CaptureBody::NotModified { head, .. })
        | (CaptureKind::Identical, CaptureBody::SameContent { head, .. }) => {
            let lines = std::str::from_utf8(head).ok()?.lines().filter(|line| !line.is_empty());
            let lines: Vec<String> = lines.map(|line| line.replace('\r', "")).collect();
            Some(HttpHead::parse(lines.join("\r\n").as_bytes()))
        }
        _ => None,
    }
}

fn response_ms(kind: CaptureKind, metadata: &[(String, String)]) -> Option<u64> {
    let stated = field(metadata, FIELD_FETCH_MS).filter(|_| kind != CaptureKind::Failed);
    stated.map(|milliseconds| milliseconds.parse().unwrap_or(0))
}

/// Whether a file is of the same state, and of this checkpoint or an earlier one.
fn is_before(file: Stamp, of: Stamp) -> bool {
    let is_before = file.checkpoint <= of.checkpoint && file.rows <= of.rows;
    is_before && (file.state, file.columns) == (of.state, of.columns)
}

/// Opens the file of an earlier checkpoint of the same state, with its names; `None` if it is missing or damaged.
/// Damage is reported when the file is read.
fn before(path: &Path, stamp: Stamp) -> Option<(Reader, [CodeNames; NAMES])> {
    let reader = Reader::open(path).ok()??;
    if !is_before(reader.stamp(), stamp) {
        return None;
    }
    let mut known = <[CodeNames; NAMES]>::default();
    for ((known, most), names) in known.iter_mut().zip(MOST).zip(names_of(reader.texts())?) {
        let codes = names.iter().map(|name| known.code(Some(name), most));
        if !codes.eq((FIRST..).take(names.len())) {
            return None;
        }
    }
    Some((reader, known))
}

/// Returns the codes of some captures in a file; those in damaged blocks are unknown.
fn codes_at(reader: &Reader, ids: &Range<u32>) -> [Vec<u64>; COLUMNS.len()] {
    let mut columns = COLUMNS.map(|_| vec![u64::from(UNKNOWN); ids.len()]);
    for block in 0..reader.blocks() {
        let rows = reader.rows(block);
        let both = rows.start.max(ids.start)..rows.end.min(ids.end);
        if both.is_empty() {
            continue;
        }
        for (column, values) in (0..).zip(&mut columns) {
            let Ok(read) = reader.map(block, column, |code| code) else { continue };
            let read = read.into_iter().skip((both.start - rows.start) as usize).take(both.len());
            let places = values.iter_mut().skip((both.start - ids.start) as usize);
            places.zip(read).for_each(|(place, code)| *place = code);
        }
    }
    columns
}

/// Writes the noted rows if there are many, right after a checkpoint.
///
/// # Errors
/// As [`super::write()`]; nothing noted is lost.
pub fn write_much(state: &mut State, folder: &Path) -> Result<(), PreparedError> {
    let much = (state.totals().captures / MUCH_SHARE).max(MUCH_MIN);
    if state.kept::<Noted>().is_none_or(|noted| noted.count < much) {
        return Ok(());
    }
    write(state, folder, BLOCK_ROWS)?;
    if let Some(noted) = state.kept_mut::<Noted>() {
        noted.blocks.clear();
        noted.count = 0;
    }
    Ok(())
}

/// Writes the rows of all captures of the last checkpoint: what was noted since, and what the existing file has. Writes
/// nothing if there is neither.
pub(super) fn write(state: &State, folder: &Path, block_rows: u32) -> Result<(), PreparedError> {
    let (path, stamp) = (folder.join(ANSWERS_FILE), of_captures(state));
    let (noted, before) = (state.kept::<Noted>(), before(&path, stamp));
    if noted.is_none() && before.is_none() {
        return Ok(());
    }
    let (old, mut names) = before.map(|(old, names)| (Some(old), names)).unwrap_or_default();
    let mut writer = Writer::begin(&path, stamp, block_rows)?;
    let codes = noted.map(|noted| codes_of(noted, &mut names)).unwrap_or_default();
    for (block, first) in (0..).zip((0..stamp.rows).step_by(block_rows as usize)) {
        let rows = first..stamp.rows.min(first.saturating_add(block_rows));
        let noted = noted.filter(|noted| noted.has_any(&rows));
        if let (None, Some(old)) = (noted, &old)
            && old.is_alike(stamp, block_rows)
            && old.rows(block) == rows
            && writer.keep(old, block)?
        {
            continue;
        }
        let nothing = || COLUMNS.map(|_| vec![u64::from(UNKNOWN); rows.len()]);
        let mut columns = old.as_ref().map_or_else(nothing, |old| codes_at(old, &rows));
        for (place, id) in rows.clone().enumerate() {
            let row = noted.map(|noted| noted.row(id)).unwrap_or_default();
            let known = columns.iter_mut().zip(&row).enumerate().filter(|(_, (_, code))| **code != UNKNOWN);
            for (column, (values, code)) in known {
                let code = codes.get(column).map_or(Some(code), |codes| codes.get(*code as usize));
                let value = code.copied().unwrap_or(UNKNOWN);
                values.get_mut(place).into_iter().for_each(|place| *place = value.into());
            }
        }
        columns.iter().try_for_each(|values| writer.add(values))?;
    }
    writer.finish_with(&texts(&names))
}

/// Writes an archive's file into the folder of a state that replaces its state and keeps its numbers, without the rows
/// of some captures and without names that only they have.
pub fn write_without(
    captures: &HashSet<CaptureId>,
    state: &State,
    (archive, folder): (&Path, &Path),
) -> Result<(), PreparedError> {
    let Some((old, names)) = before(&archive.join(ANSWERS_FILE), of_captures(state)) else { return Ok(()) };
    let mut writer = Writer::begin(&folder.join(ANSWERS_FILE), old.stamp(), BLOCK_ROWS)?;
    let mut left = <[CodeNames; NAMES]>::default();
    let all = old.stamp().rows;
    for first in (0..all).step_by(BLOCK_ROWS as usize) {
        let rows = first..all.min(first.saturating_add(BLOCK_ROWS));
        let mut columns = codes_at(&old, &rows);
        for (place, _) in rows.enumerate().filter(|(_, id)| captures.contains(&CaptureId(*id))) {
            columns
                .iter_mut()
                .filter_map(|codes| codes.get_mut(place))
                .for_each(|code| *code = UNKNOWN.into());
        }
        for (codes, ((left, names), most)) in columns.iter_mut().zip(left.iter_mut().zip(&names).zip(MOST)) {
            for code in codes {
                let name = code.checked_sub(FIRST.into()).and_then(|number| names.names.get(number as usize));
                if let Some(name) = name {
                    *code = left.code(Some(name), most).into();
                }
            }
        }
        columns.iter().try_for_each(|values| writer.add(values))?;
    }
    writer.finish_with(&texts(&left))
}

/// Maps noted codes to codes of the file, for each column of names, adding new names to the file's. Heads lose header
/// values that turned out to vary too much.
fn codes_of(noted: &Noted, names: &mut [CodeNames; NAMES]) -> Vec<Vec<u16>> {
    let all_heads = [&noted.names, &*names].map(|names| names[HEADS].names.iter());
    let values = HeadValues::of(all_heads.into_iter().flatten());
    let of_column = |(place, ((noted, names), most)): (usize, ((&CodeNames, &mut CodeNames), Most))| {
        let code = |name: &String| match place {
            HEADS => names.code(Some(&values.left(name)), most),
            _ => names.code(Some(name), most),
        };
        [UNKNOWN, ABSENT].into_iter().chain(noted.names.iter().map(code)).collect()
    };
    noted.names.iter().zip(names).zip(MOST).enumerate().map(of_column).collect()
}

/// Encodes the names: for each column their count, then the length and the bytes of each.
fn texts(names: &[CodeNames; NAMES]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for CodeNames { names, .. } in names {
        bytes.extend((names.len() as u16).to_le_bytes());
        for name in names {
            bytes.extend((name.len() as u16).to_le_bytes());
            bytes.extend(name.as_bytes());
        }
    }
    bytes
}

/// Decodes the names of each column; `None` if the bytes are invalid.
fn names_of(mut bytes: &[u8]) -> Option<[Vec<String>; NAMES]> {
    let mut names = [const { Vec::new() }; NAMES];
    for (names, most) in names.iter_mut().zip(MOST) {
        let (count, rest) = bytes.split_first_chunk()?;
        bytes = rest;
        let count = usize::from(u16::from_le_bytes(*count));
        for _ in 0..Some(count).filter(|count| *count <= most.count)? {
            let (length, rest) = bytes.split_first_chunk()?;
            let length = usize::from(u16::from_le_bytes(*length));
            let length = Some(length).filter(|length| (1..=most.bytes).contains(length))?;
            let (name, rest) = rest.split_at_checked(length)?;
            bytes = rest;
            names.push(String::from_utf8(name.to_vec()).ok()?);
        }
    }
    bytes.is_empty().then_some(names)
}

fn of_captures(state: &State) -> Stamp {
    Stamp { columns: COLUMNS.len() as u32, ..captures::of_captures(state) }
}

/// What a code means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said<'a> {
    /// Unknown: the record has to be read.
    Unknown,
    /// Known to be absent.
    Nothing,
    /// A server, a charset, hops, a failure, or a header value.
    Name(&'a str),
    /// Response time.
    Milliseconds(u64),
}

/// What answers said, as of the checkpoint being read or an earlier one.
#[derive(Debug)]
pub struct Answers {
    /// Codes: see [`Answers::said`].
    pub columns: Prepared,
    names: [Vec<String>; NAMES],
    /// Codes of whole blocks, once a single capture of them was looked up: one entry per column of each block.
    read: Vec<OnceLock<Vec<u16>>>,
}

impl Answers {
    /// Opens the file of an archive, if it is not newer than the checkpoint that the archive was opened at.
    ///
    /// # Errors
    /// When the file is damaged.
    pub fn open(store: &Store) -> Result<Option<Self>, PreparedError> {
        let file = Reader::open(&store.path().join(ANSWERS_FILE))?;
        let of = of_captures(store.state());
        let Some(file) = file.filter(|file| is_before(file.stamp(), of)) else { return Ok(None) };
        let names = names_of(file.texts()).ok_or_else(|| file.damaged())?;
        let read = (0..file.blocks() as usize * COLUMNS.len()).map(|_| OnceLock::new()).collect();
        Ok(Some(Self { columns: Prepared { file, order: Some(&COLUMNS) }, names, read }))
    }

    /// Returns the code of a capture in a column. Keeps the codes of the whole block in memory, two bytes each.
    ///
    /// # Errors
    /// When the file is damaged.
    pub fn code(&self, capture: CaptureId, column: Column) -> Result<u64, PreparedError> {
        let Some(place) = COLUMNS.iter().position(|own| *own == column) else { return Ok(UNKNOWN.into()) };
        let (block, row) = self.columns.block_of(capture.0);
        let Some(read) = self.read.get(block as usize * COLUMNS.len() + place) else {
            return Ok(UNKNOWN.into());
        };
        let codes = match read.get() {
            Some(codes) => codes,
            None => {
                let codes = self.columns.map(block, column, |code| code as u16)?;
                read.get_or_init(|| codes)
            }
        };
        Ok(codes.get(row as usize).copied().unwrap_or(UNKNOWN).into())
    }

    /// Returns the meaning of a code in a column.
    #[must_use]
    pub fn said(&self, column: Column, code: u64) -> Said<'_> {
        let Some(number) = code.checked_sub(FIRST.into()) else {
            return if code == u64::from(ABSENT) { Said::Nothing } else { Said::Unknown };
        };
        let names = COLUMNS.iter().position(|own| *own == column).and_then(|place| self.names.get(place));
        match names {
            Some(names) => names.get(number as usize).map_or(Said::Unknown, |name| Said::Name(name)),
            None => Said::Milliseconds(number),
        }
    }

    /// Returns the first value of a header, by the code of a head.
    #[must_use]
    pub fn header(&self, code: u64, name: &str) -> Said<'_> {
        match self.said(Column::Head, code) {
            Said::Name(head) => match header(head, name) {
                Some(value) => value.map_or(Said::Unknown, Said::Name),
                None => Said::Nothing,
            },
            other => other,
        }
    }

    /// Returns the greatest code in a column.
    #[must_use]
    pub fn greatest(&self, column: Column) -> u64 {
        let greatest = |block| *self.columns.bounds(block, column).end();
        (0..self.columns.blocks()).map(greatest).max().unwrap_or_default().min(u16::MAX.into())
    }
}
