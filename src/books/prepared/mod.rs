//! Prepared columns: what queries need of pages and captures, collected from the tables of the state and stored by
//! page.
//!
//! A page, its visit and its newest capture are in three tables, and its importance needs the books. A query over all
//! pages reads this file instead, and of each page only the columns that its conditions need. Queries over captures,
//! which are far more numerous, work the same way. The files are written when an archive is closed and are valid only
//! for that checkpoint. If one is older or missing, queries read the tables, with the same results.

mod answers;
mod by_site;
mod captures;
mod facts;
mod file;
mod known;
mod prior;
mod redirects;
mod sample;
mod sites;

use std::ops::{Range, RangeInclusive};
use std::path::Path;

use archive_math::refresh::rate::ChangeObservations;
use archive_storage::{
    Capture, CaptureId, CaptureKind, PAGES_TOGETHER, Page, State, StateError, Store, StoreError, UrlId,
    Visit, VisitId,
};
use rayon::prelude::*;

pub use answers::{ANSWERS_FILE, Answers, Said};
pub use answers::{note, note_checked, note_replayed, write_much, write_without};
use by_site::SiteWriter;
pub use by_site::{BY_SITE_FILE, BySite};
pub use captures::{capture_kind, size};
pub use facts::{Facts, KINDS_END, Pages, is_page, kind, seen};
pub use file::{BLOCK_ROWS, PreparedError};
use file::{Packed, Reader, Stamp, Writer};
pub use known::KnownPages;
pub use prior::{PRIOR_FILE, archive_prior, is_signal, prior, rates_of_others};
use redirects::Redirects;
pub use redirects::each_list;
pub use sample::{SAMPLE_FILE, Sampled, sample, sample_step};
pub use sites::SiteSums;

#[cfg(doc)]
use crate::ledger::Refusal;
use crate::ledger::capture_flags::is_erased;
use crate::ledger::{CreditError, SiteRule, is_content, page_flags};

/// File of the pages in the archive's folder; it belongs to the state.
pub const FILE: &str = "state/pages.prepared";
/// File of the captures.
pub const CAPTURES_FILE: &str = "state/captures.prepared";
/// File of the sites.
pub const SITES_FILE: &str = "state/sites.prepared";

/// Archives with fewer URLs and fewer captures have no files: their tables are read within milliseconds.
pub const ROWS_MIN: u32 = 1 << 14;

/// Why columns cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The archive cannot be written or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The state cannot be read.
    #[error(transparent)]
    State(#[from] StateError),
    /// The books cannot be read.
    #[error(transparent)]
    Credit(#[from] CreditError),
    /// The file cannot be written or read.
    #[error(transparent)]
    File(#[from] PreparedError),
    /// A file beside the state cannot be written or read.
    #[error(transparent)]
    Beside(#[from] archive_base::files::FileError),
}

impl archive_base::error::Classified for Error {}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[expect(missing_docs, reason = "as in `Facts`, and as of `Capture`")]
pub enum Column {
    /// Whether the row is a page, and its kind of document; robots.txt files have no [`Facts`]. For captures see
    /// [`capture_kind`].
    Kind,
    Host,
    Site,
    Status,
    ContentStatus,
    /// Bits of a non-negative float, which sort in the order of the floats.
    Importance,
    Captures,
    Attempts,
    Versions,
    FirstSeen,
    LastSeen,
    LastAnswer,
    LastAttempt,
    FailingSince,
    Changed,
    Depth,
    Language,
    // Columns up to here are the facts of a page.
    Mime,
    /// Bytes of the payload plus 1; 0 if nothing answered. For a page, those of its newest content that is not a 304, or
    /// of its newest attempt without one; so are the next, and the media type.
    Size,
    /// Bytes of the record; for a page plus 1, and 0 without a capture.
    Stored,
    /// Position of the title plus 1; 0 without one.
    Title,
    /// Whether it is a seed.
    Seed,
    /// The code of a [`Refusal`]; 0 for none.
    Refusal,
    /// Letter of the kind of link that led to the page; 0 for none.
    Hop,
    /// The [`short_digest`] of that capture; 0 without one.
    Digest,
    /// Number of that capture plus 1; 0 without one.
    Newest,
    /// Number of the URL that a page redirects to plus 1; 0 if it does not redirect.
    Redirect,
    // The next two are for captures only, which also have kind, host, site, status, media type, size and stored bytes.
    /// Microseconds since 1970.
    Time,
    /// `CONTENT_CHANGED` and `BYTES_CHANGED` of its flags.
    Change,
    // The last ones are for captures, in a separate file: see [`Answers::said`].
    Server,
    Charset,
    Hops,
    Failure,
    /// See [`Answers::header`].
    Head,
    /// Whether a document is valid: the result of validating it.
    Checked,
    ResponseTime,
    // And these for sites, which also have captures, times and importance: see [`SiteSums`].
    Pages,
    Html,
    Xml,
    ImportanceMax,
    /// Importance from links between sites.
    ByLinks,
}

/// Number of columns of pages, up to the last one that they have.
const COLUMNS: usize = Column::Redirect as usize + 1;

/// Number of columns of [`Facts`].
const FACTS: usize = Column::Language as usize + 1;

/// Statuses of pages whose content counts: many pages may share one error message.
pub const FOUND: Range<u16> = 200..300;

/// Values of [`Column::Kind`]: no page, a page without a capture to show, and the offset of the codes of document
/// kinds.
const NO_PAGE: u64 = 0;
const NO_CAPTURE: u64 = 1;
const KINDS: u64 = 2;

/// Closes an archive that was written to, and writes its columns.
///
/// # Errors
/// When the disk refuses, or the archive cannot be read.
pub fn close(store: &mut Store) -> Result<(), Error> {
    store.conclude()?;
    prepare(store.state(), store.path())
}

/// Writes the columns of the last checkpoint, in the archive's folder or a replacement for it, if there are enough
/// pages or captures. The columns of answers are written in any case: only the process that recorded the captures has
/// their contents in memory.
///
/// # Errors
/// As [`write()`].
pub fn prepare(state: &State, folder: &Path) -> Result<(), Error> {
    let rows = u64::from(state.url_count()).max(state.totals().captures);
    if rows < u64::from(ROWS_MIN) {
        return Ok(answers::write(state, folder, BLOCK_ROWS)?);
    }
    write(state, folder)
}

/// Writes the columns of the last checkpoint.
///
/// # Errors
/// When the disk refuses, or the archive cannot be read.
pub fn write(state: &State, folder: &Path) -> Result<(), Error> {
    write_in_blocks(state, folder, BLOCK_ROWS)
}

/// Like [`write()`], in blocks of `block_rows` rows, from 1 to [`BLOCK_ROWS`]. Readers take the number from the files.
///
/// # Errors
/// As [`write()`].
pub fn write_in_blocks(state: &State, folder: &Path, block_rows: u32) -> Result<(), Error> {
    let block_rows = block_rows.clamp(1, BLOCK_ROWS);
    let pages = Pages::open(state)?;
    pages.expect_all()?;
    let redirects = redirects::all(state)?;
    let mut sites = vec![SiteSums::default(); state.site_count() as usize];
    let mut writer = Writer::begin(&folder.join(FILE), of_pages(state), block_rows)?;
    let mut by_site = SiteWriter::begin(state, folder, block_rows)?;
    let (mut sampled, mut observed) = (Vec::new(), Vec::new());
    // A whole number of blocks; with everything derived from them, they take some 100 MB.
    let together = PAGES_TOGETHER as u32 / block_rows * block_rows;
    for first in (0..state.url_count()).step_by(together as usize) {
        let ids = first..first.saturating_add(together).min(state.url_count());
        let rows = PageTables::read(state, &ids.map(UrlId).collect::<Vec<_>>())?;
        let blocks = rows
            .par_chunks(block_rows as usize)
            .map(|rows| PageBlock::of((&pages, &redirects), &writer, rows));
        for mut block in blocks.collect::<Result<Vec<_>, _>>()? {
            block.packed.iter().try_for_each(|packed| writer.push(packed))?;
            by_site.add(&block.sites)?;
            for facts in &block.facts {
                sites.get_mut(facts.site.index()).into_iter().for_each(|site| site.add(facts));
            }
            sampled.append(&mut block.sampled);
            observed.append(&mut block.observed);
        }
    }
    writer.finish()?;
    by_site.finish()?;
    sample::write(state, folder, sampled)?;
    prior::write(state, folder, observed)?;
    pages.weigh(&mut sites)?;
    let mut writer = Writer::begin(&folder.join(SITES_FILE), of_sites(state), block_rows)?;
    for block in sites.chunks(block_rows as usize) {
        let values: Vec<_> = block.iter().map(SiteSums::values).collect();
        for column in 0..sites::COLUMNS.len() {
            writer.add(&values.iter().map(|values| values[column]).collect::<Vec<_>>())?;
        }
    }
    writer.finish()?;
    write_captures(&pages, folder, block_rows)?;
    Ok(answers::write(state, folder, block_rows)?)
}

/// Writes the columns of captures; keeps the blocks of the existing file in which nothing has changed.
fn write_captures(pages: &Pages<'_>, folder: &Path, block_rows: u32) -> Result<(), Error> {
    let path = folder.join(CAPTURES_FILE);
    let stamp = captures::of_captures(pages.state());
    // With sites by path, a site may get its number after captures of its pages are stored.
    let may_keep = !matches!(pages.credits().rules().sites, SiteRule::Path(_));
    // A damaged file is of no use here; the damage is reported when the file is read.
    let old = Reader::open(&path).ok().flatten().filter(|old| may_keep && old.is_alike(stamp, block_rows));
    let mut writer = Writer::begin(&path, stamp, block_rows)?;
    for (block, first) in (0..).zip((0..stamp.rows).step_by(block_rows as usize)) {
        let rows = first..stamp.rows.min(first.saturating_add(block_rows));
        let old = old.as_ref().filter(|old| {
            old.rows(block) == rows && pages.state().are_as_at(old.stamp().checkpoint, rows.clone())
        });
        if let Some(old) = old
            && writer.keep(old, block)?
        {
            continue;
        }
        // The unfinished file is removed; files of an older checkpoint are ignored.
        let Some(columns) = captures::columns_of(pages, rows)? else { return Ok(()) };
        columns.iter().try_for_each(|values| writer.add(values))?;
    }
    Ok(writer.finish()?)
}

/// What is written for the pages of a block.
struct PageBlock {
    packed: Vec<Packed>,
    /// Values of the site column.
    sites: Vec<u64>,
    facts: Vec<Facts>,
    sampled: Vec<(VisitId, Sampled)>,
    observed: Vec<(VisitId, ChangeObservations)>,
}

impl PageBlock {
    fn of(
        (pages, redirects): (&Pages<'_>, &Redirects),
        writer: &Writer,
        rows: &[PageTables],
    ) -> Result<Self, Error> {
        let (mut columns, facts) = columns_of((pages, redirects), rows)?;
        let packed = columns.iter().map(|values| writer.packed(values)).collect::<Result<_, _>>()?;
        let sites = columns.swap_remove(Column::Site as usize);
        let sampled = sample::sampled(pages, rows).collect::<Result<_, _>>()?;
        let observed = prior::observed(pages.state(), rows).collect();
        Ok(Self { packed, sites, facts, sampled, observed })
    }
}

/// What the tables hold of a page.
struct PageTables {
    id: UrlId,
    page: Page,
    visit: Option<Visit>,
    /// The newest capture that tells the content, or what came instead if none does.
    content: Option<(CaptureId, Capture)>,
}

impl PageTables {
    /// Reads the rows of some pages.
    fn read(state: &State, ids: &[UrlId]) -> Result<Vec<Self>, StateError> {
        let known = state.known_of(ids)?.into_iter();
        let mut rows: Vec<_> =
            known.map(|(id, page, visit)| Self { id, page, visit, content: None }).collect();
        let with_capture = rows.iter_mut().filter_map(|row| Some((row.visit.as_ref()?.last_capture?, row)));
        let (ids, with_capture): (Vec<CaptureId>, Vec<&mut Self>) = with_capture.unzip();
        let captures: Vec<_> = ids.iter().copied().zip(state.captures_of(&ids)?).collect();
        let is_meant = |capture: &Capture| capture.kind != CaptureKind::NotModified && is_content(capture);
        let mut contents = state.contents_of(&captures, is_meant)?;
        for ((newest, capture), content) in captures.iter().zip(&mut contents) {
            if content.is_none() {
                *content = instead(state, *newest, capture)?;
            }
        }
        with_capture.into_iter().zip(contents).for_each(|(row, content)| row.content = content);
        Ok(rows)
    }
}

/// Returns the newest capture of a page without content. An erased 304 counts as erased.
fn instead(
    state: &State,
    newest: CaptureId,
    capture: &Capture,
) -> Result<Option<(CaptureId, Capture)>, StateError> {
    let is_meant = |capture: &Capture| capture.kind != CaptureKind::NotModified || is_erased(capture);
    if is_meant(capture) {
        return Ok(Some((newest, *capture)));
    }
    let mut history = state.history_from(newest);
    history.find(|found| found.as_ref().map_or(true, |(_, capture)| is_meant(capture))).transpose()
}

/// Returns the newest capture that tells the content, of each of some pages that have one.
pub fn newest_contents(state: &State, pages: &[UrlId]) -> Result<Vec<(CaptureId, Capture)>, StateError> {
    Ok(PageTables::read(state, pages)?.into_iter().filter_map(|row| row.content).collect())
}

/// Returns the columns of some URLs, and the facts of those that are pages.
fn columns_of(
    (pages, redirects): (&Pages<'_>, &Redirects),
    rows: &[PageTables],
) -> Result<(Vec<Vec<u64>>, Vec<Facts>), StateError> {
    let mut all_facts = Vec::with_capacity(rows.len());
    let mut columns = [const { Vec::new() }; COLUMNS];
    columns.iter_mut().for_each(|column| column.reserve(rows.len()));
    for PageTables { id, page, visit, content } in rows {
        let facts = pages.facts(*id, page, visit.as_ref())?;
        let mut values = [NO_PAGE; COLUMNS];
        if let Some(facts) = facts {
            values = facts.values();
            let mut set = |column: Column, value: u64| values[column as usize] = value;
            if let Some((number, content)) = content.filter(|_| facts.attempts > 0) {
                set(Column::Mime, content.mime.0.into());
                set(Column::Digest, short_digest(&content.digest).into());
                set(Column::Newest, u64::from(number.0) + 1);
                set(Column::Size, size(&content).map_or(0, |bytes| u64::from(bytes) + 1));
                set(Column::Stored, u64::from(content.location.length) + 1);
            }
            let title = visit.as_ref().and_then(|visit| visit.title);
            set(Column::Title, title.map_or(0, |position| position.0 + 1));
            set(Column::Seed, page.flags.has_any(page_flags::SEED).into());
            set(Column::Refusal, page_flags::refusal_code(page.flags).into());
            set(Column::Hop, page.via.map_or(0, |_| page.hop.into()));
            let target = redirects.get(id).filter(|_| facts.attempts > 0);
            set(Column::Redirect, target.map_or(0, |target| u64::from(target.0) + 1));
            all_facts.push(facts);
        }
        for (column, value) in columns.iter_mut().zip(values) {
            column.push(value);
        }
    }
    Ok((columns.into(), all_facts))
}

/// Returns 32 bits of a digest. Equal digests have equal values; different ones rarely do, so a match must be
/// confirmed. Only an empty digest gives 0.
#[must_use]
pub fn short_digest(digest: &[u8; 16]) -> u32 {
    let [a, b, c, d, ..] = *digest;
    if digest == &[0; 16] { 0 } else { u32::from_le_bytes([a, b, c, d]).max(1) }
}

fn of_pages(state: &State) -> Stamp {
    stamp(state, state.url_count(), COLUMNS)
}

fn of_sites(state: &State) -> Stamp {
    stamp(state, state.site_count(), sites::COLUMNS.len())
}

fn stamp(state: &State, rows: u32, columns: usize) -> Stamp {
    Stamp { state: state.identity(), checkpoint: state.checkpoint_number(), rows, columns: columns as u32 }
}

/// Opens a file of an archive, if it is of the checkpoint being read.
fn open(store: &Store, file: &str, of: Stamp) -> Result<Option<Reader>, PreparedError> {
    open_in(store.state(), store.path(), file, of)
}

fn open_in(state: &State, archive: &Path, file: &str, of: Stamp) -> Result<Option<Reader>, PreparedError> {
    // Columns have what a veil hides.
    if state.veil().is_some() {
        return Ok(None);
    }
    let reader = Reader::open(&archive.join(file))?;
    Ok(reader.filter(|reader| reader.stamp() == of))
}

/// Returns the names of an archive's damaged files, each with a description of the problem.
#[must_use]
pub fn damage(store: &Store) -> Vec<(&'static str, String)> {
    let check = |file| {
        let Some(reader) = Reader::open(&store.path().join(file))? else { return Ok(()) };
        for block in 0..reader.blocks() {
            for column in 0..reader.stamp().columns {
                reader.map(block, column, |_| ())?;
            }
        }
        Ok::<_, PreparedError>(())
    };
    let found = |file| Some((file, format!("{file}: {}", check(file).err()?.reason())));
    [FILE, BY_SITE_FILE, CAPTURES_FILE, ANSWERS_FILE, SITES_FILE, SAMPLE_FILE, PRIOR_FILE]
        .into_iter()
        .filter_map(found)
        .collect()
}

/// Columns of all pages, of all captures or of all sites, as of the checkpoint being read.
#[derive(Debug)]
pub struct Prepared {
    file: Reader,
    /// Order of the columns of captures or sites; `None` for pages, whose columns have the order of [`Column`].
    order: Option<&'static [Column]>,
}

impl Prepared {
    /// Opens the columns of an archive's pages, if they are of the checkpoint that the archive was opened at.
    ///
    /// # Errors
    /// When the file is damaged.
    pub fn open(store: &Store) -> Result<Option<Self>, PreparedError> {
        Self::open_of(store.state(), store.path())
    }

    /// Like [`Prepared::open`], for the archive in a folder and its state.
    fn open_of(state: &State, archive: &Path) -> Result<Option<Self>, PreparedError> {
        Ok(open_in(state, archive, FILE, of_pages(state))?.map(|file| Self { file, order: None }))
    }

    /// Opens the columns of an archive's captures.
    ///
    /// # Errors
    /// As [`Prepared::open`].
    pub fn captures(store: &Store) -> Result<Option<Self>, PreparedError> {
        let file = open(store, CAPTURES_FILE, captures::of_captures(store.state()))?;
        Ok(file.map(|file| Self { file, order: Some(&captures::COLUMNS) }))
    }

    /// Returns the position of a column. One that the file lacks gets an invalid position, so reading it fails as in a
    /// damaged file.
    fn place(&self, column: Column) -> u32 {
        let place = |order: &[Column]| order.iter().position(|own| *own == column);
        self.order.map_or(column as u32, |order| place(order).map_or(u32::MAX, |place| place as u32))
    }

    /// Whether the file has a column.
    #[must_use]
    pub fn has(&self, column: Column) -> bool {
        self.order.map_or((column as usize) < COLUMNS, |order| order.contains(&column))
    }

    /// Number of blocks of rows.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.file.blocks()
    }

    /// Returns the block of a URL, capture or site, and its row in the block.
    #[must_use]
    pub fn block_of(&self, id: u32) -> (u32, u32) {
        self.file.place(id)
    }

    /// Returns the numbers of the URLs, captures or sites in a block.
    #[must_use]
    pub fn ids(&self, block: u32) -> Range<u32> {
        self.file.rows(block)
    }

    /// Returns the range of the values of a column in a block.
    #[must_use]
    pub fn bounds(&self, block: u32, column: Column) -> RangeInclusive<u64> {
        self.file.bounds(block, self.place(column))
    }

    /// Returns the values of a column in a block, one per row.
    ///
    /// # Errors
    /// When the file is damaged.
    pub fn values(&self, block: u32, column: Column) -> Result<Vec<u64>, PreparedError> {
        self.map(block, column, |value| value)
    }

    /// Applies a function to the values of a column in a block.
    ///
    /// # Errors
    /// When the file is damaged.
    pub fn map<T: Clone>(
        &self,
        block: u32,
        column: Column,
        of: impl Fn(u64) -> T,
    ) -> Result<Vec<T>, PreparedError> {
        self.file.map(block, self.place(column), of)
    }

    /// Returns the values of a column in some rows of a block.
    ///
    /// # Errors
    /// When the file is damaged.
    pub fn pick(&self, block: u32, column: Column, rows: &[u32]) -> Result<Vec<u64>, PreparedError> {
        self.file.pick(block, self.place(column), rows)
    }

    /// Returns the facts of some URLs of a block of pages; URLs that are not pages are left out.
    ///
    /// # Errors
    /// When the file is damaged.
    pub fn facts(&self, block: u32, urls: &[UrlId]) -> Result<Vec<(UrlId, Facts)>, PreparedError> {
        let ids = self.ids(block);
        let rows: Vec<u32> = urls.iter().map(|url| url.0.wrapping_sub(ids.start)).collect();
        let are_few = rows.len() < ids.len() / FEW;
        let column = |column: u32| {
            if are_few {
                return self.file.pick(block, column, &rows);
            }
            let values = self.file.map(block, column, |value| value)?;
            Ok(rows.iter().map(|row| values.get(*row as usize).copied().unwrap_or(NO_PAGE)).collect())
        };
        let columns = (0..FACTS as u32).map(column).collect::<Result<Vec<_>, _>>()?;
        let facts = |(place, url): (usize, &UrlId)| {
            let mut values = [NO_PAGE; FACTS];
            for (value, column) in values.iter_mut().zip(&columns) {
                *value = *column.get(place)?;
            }
            Some((*url, Facts::of_values(&values)?))
        };
        Ok(urls.iter().enumerate().filter_map(facts).collect())
    }
}

/// Returns the captured pages with at least this importance, with their numbers. Redirects, which have the importance of
/// their targets, are left out. If there are columns they have to be of the last checkpoint.
pub(crate) fn captured_importance(
    pages: &Pages<'_>,
    archive: &Path,
    least: f64,
) -> Result<Vec<(f64, u32)>, Error> {
    let state = pages.state();
    let is_meant = |importance: f64, captures: u64, status: u64| {
        importance >= least && captures > 0 && !(300..400).contains(&status)
    };
    let mut found = Vec::new();
    if let Some(prepared) = Prepared::open_of(state, archive)? {
        for block in 0..prepared.blocks() {
            if f64::from_bits(*prepared.bounds(block, Column::Importance).end()) < least {
                continue;
            }
            let values = |column| prepared.values(block, column);
            let (captures, statuses) = (values(Column::Captures)?, values(Column::Status)?);
            let importance = prepared.map(block, Column::Importance, f64::from_bits)?;
            let rows = prepared.ids(block).zip(importance).zip(captures.into_iter().zip(statuses));
            let rows = rows
                .filter(|((_, importance), (captures, status))| is_meant(*importance, *captures, *status));
            found.extend(rows.map(|((id, importance), _)| (importance, id)));
        }
        return Ok(found);
    }
    pages.expect_all()?;
    let all: Vec<_> = (0..state.url_count()).map(UrlId).collect();
    for ids in all.chunks(PAGES_TOGETHER) {
        for (id, page, visit) in state.known_of(ids)? {
            if let Some(facts) = pages.facts(id, &page, visit.as_ref())?
                && is_meant(facts.importance, facts.captures.into(), facts.status.into())
            {
                found.push((facts.importance, id.0));
            }
        }
    }
    Ok(found)
}

/// Rows are read one by one if they are less than one in this many of a block.
pub const FEW: usize = 8;
