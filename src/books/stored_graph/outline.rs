//! What a ranking needs of an archive on another machine: its link graph as 32-bit words, in pieces, without URLs.
//!
//! First come all known URLs, in order: the site of the host, the site by the archive's rule, marks, and the XXH3-128
//! of the URL, by which archives recognise the same page. Then come the fetched pages: whether the page is gone, the
//! URL it stands for, and the links of its newest capture that carry importance. Pieces are requested one by one, so
//! each is of another moment; numbers of URLs and sites stay the same as long as the state does.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use archive_math::graphs::parts::PAGE_BYTES;
use archive_storage::{LINKS_PER_PAGE_MAX, LinkList, PageFlags, SiteId, StateError, Store, UrlId};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use super::books::{Books, Entry, Folder, See};
use super::several::JoinError;
use crate::ledger::{LinkCode, ends, leads_to, page_flags as flags};

/// Maximum number of URLs of one archive: each takes 29 bytes of memory.
const URLS_MAX: usize = 1 << 29;

/// Maximum bytes of an archive's links, which are in a file.
const LISTS_BYTES_MAX: u64 = 64 << 30;

/// Bytes of a piece; its last row may exceed it.
const PIECE_BYTES: usize = 1 << 20;

/// Number of rows between checks of the clock.
const ROWS_PER_LOOK: usize = 1 << 10;

/// 32-bit words of a URL.
const URL_WORDS: usize = 7;

/// 32-bit words of a page before its links: its URL, whether it is gone, the URL it stands for, and the number of its
/// links.
const LIST_WORDS: usize = 4;

/// Stands for a missing number.
const NONE: u32 = u32::MAX;

/// Marks of a URL.
const ACCOUNT: u8 = 1;
const ALIAS: u8 = 2;
const VISITED: u8 = 4;
const GONE: u8 = 8;

/// Kind of rows that are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutlineRows {
    /// URLs, by number.
    Urls,
    /// Fetched pages, in the order of first fetches.
    Pages,
}

/// Why a received outline is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutlineError {
    /// The links cannot be written to a file.
    #[error("the links of another archive: {0}")]
    Io(#[from] io::Error),
    /// The outline is invalid.
    #[error("{0}")]
    Senseless(&'static str),
    /// The outline is too large.
    #[error("it has more than {URLS_MAX} URLs, or {} GiB of links", LISTS_BYTES_MAX >> 30)]
    TooMuch,
}

/// Passes pieces of an archive's rows to `take`, from row `from` on, until they exceed `room` bytes or the instant
/// `until` has come. Returns the row to continue from; `None` at the end.
///
/// # Errors
/// When the archive cannot be read, and any error of `take`.
pub fn send<E: From<JoinError>>(
    store: &Store,
    (rows, from): (OutlineRows, u32),
    (room, until): (u64, Option<Instant>),
    take: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<Option<u32>, E> {
    let folder = Folder::of(store)?;
    let out = Pieces { piece: Vec::new(), rows: 0, room, until, take };
    match rows {
        OutlineRows::Urls => send_urls(&folder, from, out),
        OutlineRows::Pages => send_pages(&folder, from, out),
    }
}

fn send_urls<E: From<JoinError>, F: FnMut(&[u8]) -> Result<(), E>>(
    folder: &Folder<'_>,
    from: u32,
    mut out: Pieces<F>,
) -> Result<Option<u32>, E> {
    let mut urls = folder.state().url_cursor();
    for page in folder.state().pages(UrlId(from)) {
        let (id, page) = page.map_err(JoinError::from)?;
        if !out.begin_row() {
            return out.end(Some(id.0));
        }
        let entry = folder.entry_of(&page);
        let marks = [(flags::ACCOUNT, ACCOUNT), (flags::ALIAS, ALIAS)];
        let marks = marks.iter().filter(|(flag, _)| page.flags.has_any(*flag));
        let visited = if entry.is_visited { VISITED } else { 0 };
        let marks = marks.fold(visited, |all, (_, mark)| all | mark);
        // Of a URL that is not shown, others get a number in place of the key.
        let key = match folder.state().knows(id) {
            true => xxh3_128(urls.get(id).map_err(JoinError::from)?.as_bytes()),
            false => xxh3_128(&id.0.to_le_bytes()),
        };
        let site = |site: Option<SiteId>| site.map_or(NONE, |site| site.0);
        let head = [site(entry.site), site(folder.site_by_rule(id)?), u32::from(marks)];
        out.add(head.into_iter().chain(key_words(key)))?;
    }
    out.end(None)
}

fn key_words(key: u128) -> [u32; 4] {
    [0, 32, 64, 96].map(|bits| (key >> bits) as u32)
}

fn send_pages<E: From<JoinError>, F: FnMut(&[u8]) -> Result<(), E>>(
    folder: &Folder<'_>,
    from: u32,
    mut out: Pieces<F>,
) -> Result<Option<u32>, E> {
    let state = folder.state();
    let (mut links, mut hops, mut list) = (state.link_cursor(), state.link_cursor(), LinkList::default());
    for visit in state.visits_with_pages(from..) {
        let (id, page, visit) = visit.map_err(JoinError::from)?;
        if !out.begin_row() {
            return out.end(page.visit.map(|number| number.0));
        }
        let has_account = page.flags.has_any(flags::ACCOUNT);
        let is_gone = !has_account && folder.is_gone(id)?;
        let leads = if page.flags.has_any(flags::ALIAS) && !has_account {
            leads_to(state, id, &visit, &mut hops).map_err(JoinError::from)?
        } else {
            None
        };
        list.links.clear();
        if let Some(position) = visit.links {
            links.get(position, &mut list).map_err(JoinError::from)?;
        }
        list.links.retain(|link| LinkCode::from_byte(link.kind).carries_cash());
        if is_gone || leads.is_some() || !list.links.is_empty() {
            let head =
                [id.0, u32::from(is_gone), leads.map_or(NONE, |leads| leads.0), list.links.len() as u32];
            out.add(head.into_iter().chain(list.links.iter().map(|link| link.target.0)))?;
        }
    }
    out.end(None)
}

/// Collects rows into pieces and passes them on.
struct Pieces<F> {
    piece: Vec<u8>,
    rows: usize,
    room: u64,
    until: Option<Instant>,
    take: F,
}

impl<E, F: FnMut(&[u8]) -> Result<(), E>> Pieces<F> {
    /// Begins a row, or returns false if no further one is wanted. At least one row is always sent.
    fn begin_row(&mut self) -> bool {
        self.rows += 1;
        let is_late = || self.until.is_some_and(|until| Instant::now() >= until);
        self.rows == 1 || (self.room > 0 && !(self.rows.is_multiple_of(ROWS_PER_LOOK) && is_late()))
    }

    fn add(&mut self, words: impl Iterator<Item = u32>) -> Result<(), E> {
        let before = self.piece.len();
        words.for_each(|word| self.piece.extend(word.to_le_bytes()));
        self.room = self.room.saturating_sub((self.piece.len() - before) as u64);
        if self.piece.len() < PIECE_BYTES { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> Result<(), E> {
        let piece = std::mem::take(&mut self.piece);
        if piece.is_empty() { Ok(()) } else { (self.take)(&piece) }
    }

    fn end(mut self, next: Option<u32>) -> Result<Option<u32>, E> {
        self.flush()?;
        Ok(next)
    }
}

/// An archive on another machine, as far as a ranking needs it.
#[derive(Debug)]
pub struct Outline {
    called: PathBuf,
    /// Identity of the state that the numbers belong to.
    state: Option<u64>,
    wanted: Option<(OutlineRows, u32)>,
    sites: Vec<(String, bool)>,
    /// By URL: site of the host and site by the rule; then marks and keys.
    of_urls: Vec<[u32; 2]>,
    marks: Vec<u8>,
    keys: Vec<[u32; 4]>,
    /// URLs sorted by key.
    by_key: Vec<u32>,
    hops: HashMap<UrlId, UrlId>,
    lists: BufWriter<File>,
    lists_bytes: u64,
    most: (usize, u64),
}

impl Outline {
    /// Creates an empty outline of an archive; its links will be in a file in `folder`.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn new(called: &str, folder: Option<&Path>) -> Result<Self, OutlineError> {
        let lists = folder.map_or_else(tempfile::tempfile, tempfile::tempfile_in)?;
        Ok(Self {
            called: called.into(),
            state: None,
            wanted: Some((OutlineRows::Urls, 0)),
            sites: Vec::new(),
            of_urls: Vec::new(),
            marks: Vec::new(),
            keys: Vec::new(),
            by_key: Vec::new(),
            hops: HashMap::new(),
            lists: BufWriter::new(lists),
            lists_bytes: 0,
            most: (URLS_MAX, LISTS_BYTES_MAX),
        })
    }

    /// Returns the kind of rows to request next, and the first row; `None` if all are there.
    #[must_use]
    pub fn wanted(&self) -> Option<(OutlineRows, u32)> {
        self.wanted
    }

    /// Minimum bytes of the values of its pages: those of the pages that it has fetched, which no other archive has.
    #[must_use]
    pub fn least_bytes(&self) -> usize {
        let is_fetched = |marks: &&u8| **marks & (ACCOUNT | VISITED) == ACCOUNT | VISITED;
        PAGE_BYTES * self.marks.iter().filter(is_fetched).count()
    }

    /// Adds a piece of the rows requested.
    ///
    /// # Errors
    /// When the piece is invalid or too large, or cannot be stored.
    pub fn take(&mut self, piece: &[u8]) -> Result<(), OutlineError> {
        let (bytes, rest) = piece.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(OutlineError::Senseless("a piece is cut off"));
        }
        let words: Vec<u32> = bytes.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
        match self.wanted {
            Some((OutlineRows::Urls, _)) => self.take_urls(&words),
            Some((OutlineRows::Pages, _)) => self.take_pages(&words, piece),
            None => Err(OutlineError::Senseless("it continues after its end")),
        }
    }

    fn take_urls(&mut self, words: &[u32]) -> Result<(), OutlineError> {
        let (rows, rest) = words.as_chunks::<URL_WORDS>();
        if !rest.is_empty() {
            return Err(OutlineError::Senseless("a URL is cut off"));
        }
        if self.marks.len() + rows.len() > self.most.0 {
            return Err(OutlineError::TooMuch);
        }
        for &[of_host, by_rule, marks, a, b, c, d] in rows {
            self.of_urls.push([of_host, by_rule]);
            self.marks.push(marks as u8 & (ACCOUNT | ALIAS | VISITED));
            self.keys.push([a, b, c, d]);
        }
        Ok(())
    }

    fn take_pages(&mut self, words: &[u32], piece: &[u8]) -> Result<(), OutlineError> {
        self.lists_bytes += piece.len() as u64;
        if self.lists_bytes > self.most.1 {
            return Err(OutlineError::TooMuch);
        }
        let mut rest = words;
        while !rest.is_empty() {
            let (&[id, is_gone, leads, count], targets) =
                rest.split_first_chunk::<LIST_WORDS>().ok_or(OutlineError::Senseless("a page is cut off"))?;
            let fits = (count as usize) <= LINKS_PER_PAGE_MAX && (count as usize) <= targets.len();
            if !fits {
                return Err(OutlineError::Senseless("the links of a page are cut off"));
            }
            rest = targets.split_at(count as usize).1;
            // A page found after the URLs were sent has no number here, and no links.
            let Some(marks) = self.marks.get_mut(id as usize) else { continue };
            *marks |= if is_gone == 1 { GONE } else { 0 };
            if leads != NONE && *marks & (ALIAS | ACCOUNT) == ALIAS {
                self.hops.insert(UrlId(id), UrlId(leads));
            }
        }
        Ok(self.lists.write_all(piece)?)
    }

    /// Ends an answer: `state` is the state it was read from, and `next` where the next answer continues.
    ///
    /// # Errors
    /// When the state has changed, or the answer is not the one requested.
    pub fn end(&mut self, state: Option<u64>, next: Option<u32>) -> Result<(), OutlineError> {
        self.state.get_or_insert(state.unwrap_or_default());
        self.check(state)?;
        let Some((rows, from)) = self.wanted else { return Ok(()) };
        if next.is_some_and(|next| next <= from) {
            return Err(OutlineError::Senseless("it makes no progress"));
        }
        if rows == OutlineRows::Urls && next.is_some_and(|next| next as usize != self.marks.len()) {
            return Err(OutlineError::Senseless("it left out URLs"));
        }
        self.wanted = match (rows, next) {
            (rows, Some(next)) => Some((rows, next)),
            (OutlineRows::Urls, None) => Some((OutlineRows::Pages, 0)),
            (OutlineRows::Pages, None) => {
                self.lists.flush()?;
                None
            }
        };
        Ok(())
    }

    /// Adds all sites, in order, which completes the outline.
    ///
    /// # Errors
    /// As [`Self::end`].
    pub fn complete(&mut self, state: Option<u64>, sites: Vec<(String, bool)>) -> Result<(), OutlineError> {
        self.end(state, None)?;
        self.sites = sites;
        self.by_key = (0..self.keys.len() as u32).collect();
        let keys = &self.keys;
        self.by_key.sort_unstable_by_key(|id| keys[*id as usize]);
        Ok(())
    }

    /// Returns the name of a site.
    #[must_use]
    pub fn site(&self, number: u32) -> Option<&str> {
        self.sites.get(number as usize).map(|(name, _)| name.as_str())
    }

    /// Fails if a state is not the one that the numbers belong to.
    ///
    /// # Errors
    /// [`OutlineError::Senseless`].
    pub fn check(&self, state: Option<u64>) -> Result<(), OutlineError> {
        if self.state == Some(state.unwrap_or_default()) {
            return Ok(());
        }
        Err(OutlineError::Senseless("it was rebuilt while it was read; rank again"))
    }

    /// Whether this is the number of a URL.
    #[must_use]
    pub fn has_url(&self, id: u32, url: &str) -> bool {
        let key = xxh3_128(url.as_bytes());
        self.keys.get(id as usize).is_some_and(|words| *words == key_words(key))
    }

    fn site_of(&self, id: UrlId, which: usize) -> Option<SiteId> {
        let site = self.of_urls.get(id.index())?[which];
        ((site as usize) < self.sites.len()).then_some(SiteId(site))
    }

    fn unknown(id: UrlId) -> JoinError {
        StateError::Unknown { what: "URL", id: u64::from(id.0) }.into()
    }
}

impl Books for Outline {
    type Name = [u32; 4];

    fn called(&self) -> PathBuf {
        self.called.clone()
    }

    fn sites(&self) -> Result<Vec<(String, bool)>, JoinError> {
        Ok(self.sites.clone())
    }

    fn url_count(&self) -> u32 {
        self.marks.len() as u32
    }

    fn entry(&self, id: UrlId) -> Result<Entry, JoinError> {
        let marks = *self.marks.get(id.index()).ok_or_else(|| Self::unknown(id))?;
        let mut known = PageFlags::default();
        known.set(flags::ACCOUNT, marks & ACCOUNT != 0);
        known.set(flags::ALIAS, marks & ALIAS != 0);
        Ok(Entry { site: self.site_of(id, 0), flags: known, is_visited: marks & VISITED != 0 })
    }

    fn entries(&self) -> Box<dyn Iterator<Item = Result<(UrlId, Entry), JoinError>> + '_> {
        Box::new((0..self.url_count()).map(|id| Ok((UrlId(id), self.entry(UrlId(id))?))))
    }

    fn site_by_rule(&self, id: UrlId) -> Result<Option<SiteId>, JoinError> {
        Ok(self.site_of(id, 1))
    }

    fn is_gone(&self, id: UrlId) -> Result<bool, JoinError> {
        Ok(self.marks.get(id.index()).is_some_and(|marks| marks & GONE != 0))
    }

    fn aliases(&self) -> Result<HashMap<UrlId, UrlId>, JoinError> {
        let known = |(page, alias): (UrlId, UrlId)| (page.0 < self.url_count()).then_some((alias, page));
        Ok(ends(&self.hops).into_iter().filter_map(known).collect())
    }

    fn links(&self, see: &mut See<'_>) -> Result<(), JoinError> {
        let mut file = self.lists.get_ref();
        file.rewind().map_err(OutlineError::from)?;
        let mut file = BufReader::with_capacity(PIECE_BYTES, file);
        let mut targets = Vec::new();
        let mut left = self.lists_bytes;
        while left > 0 {
            let mut head = [0; 4 * LIST_WORDS];
            file.read_exact(&mut head).map_err(OutlineError::from)?;
            let word = |place: usize| u32::from_le_bytes(head.as_chunks().0[place]);
            let count = word(3) as usize;
            let mut bytes = vec![0; 4 * count];
            file.read_exact(&mut bytes).map_err(OutlineError::from)?;
            left = left.saturating_sub((head.len() + bytes.len()) as u64);
            targets.clear();
            targets.extend(bytes.as_chunks().0.iter().map(|word| UrlId(u32::from_le_bytes(*word))));
            see(UrlId(word(0)), &targets);
        }
        Ok(())
    }

    fn url(&self, id: UrlId) -> Result<[u32; 4], JoinError> {
        self.keys.get(id.index()).copied().ok_or_else(|| Self::unknown(id))
    }

    fn find(&self, name: &[u32; 4]) -> Result<Option<UrlId>, JoinError> {
        let found = self.by_key.binary_search_by_key(name, |id| self.keys[*id as usize]);
        Ok(found.ok().map(|place| UrlId(self.by_key[place])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outline_is_as_large_as_the_limits_and_no_larger() {
        let mut outline = Outline::new("x", None).unwrap();
        outline.most = (2, 40);
        let url = [0; 4 * URL_WORDS];
        outline.take(&[url, url].concat()).unwrap();
        assert!(matches!(outline.take(&url), Err(OutlineError::TooMuch)));
        outline.end(Some(7), None).unwrap();
        let page: Vec<u8> = [0, 0, NONE, 1, 1].iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
        outline.take(&page).unwrap();
        outline.take(&page).unwrap();
        assert!(matches!(outline.take(&page), Err(OutlineError::TooMuch)));
        assert!(outline.end(Some(8), None).is_err(), "of another state");
        outline.end(Some(7), None).unwrap();
        assert!(outline.wanted().is_none() && outline.take(&page).is_err());
    }
}
