//! The pages of each site, without reading the site column, which has a value for every page.
//!
//! Rows are in sections of [`SECTION_BLOCKS`] blocks, each sorted by site. So the pages of a site are in one or two
//! blocks of each section, found by the bounds of their values, and new pages leave the sorted sections unchanged.

use std::ops::Range;
use std::path::Path;

use archive_storage::{SiteId, State, Store, UrlId};

use super::file::{Reader, Stamp, Writer};
use super::{PreparedError, open, stamp};

/// Name of the file in the archive's folder.
pub const BY_SITE_FILE: &str = "state/by-site.prepared";

/// Number of blocks that are sorted together.
const SECTION_BLOCKS: u32 = 32;

/// Columns of the file: a site, and the number of one of its pages.
const SITE: u32 = 0;
const PAGE: u32 = 1;
const COLUMNS: usize = 2;

fn of_pages(state: &State) -> Stamp {
    stamp(state, state.url_count(), COLUMNS)
}

/// The file being written.
pub(super) struct SiteWriter {
    writer: Writer,
    block_rows: usize,
    /// First page of the current section; `sites` has the sites of the section's pages.
    first: u64,
    sites: Vec<u64>,
}

impl SiteWriter {
    pub(super) fn begin(state: &State, folder: &Path, block_rows: u32) -> Result<Self, PreparedError> {
        let writer = Writer::begin(&folder.join(BY_SITE_FILE), of_pages(state), block_rows)?;
        Ok(Self { writer, block_rows: block_rows as usize, first: 0, sites: Vec::new() })
    }

    /// Adds the sites of the next block of pages.
    pub(super) fn add(&mut self, sites: &[u64]) -> Result<(), PreparedError> {
        self.sites.extend_from_slice(sites);
        if self.sites.len() < self.block_rows * SECTION_BLOCKS as usize { Ok(()) } else { self.section() }
    }

    fn section(&mut self) -> Result<(), PreparedError> {
        let mut rows: Vec<(u64, u64)> = self.sites.iter().copied().zip(self.first..).collect();
        rows.sort_unstable();
        for block in rows.chunks(self.block_rows) {
            let (sites, pages): (Vec<_>, Vec<_>) = block.iter().copied().unzip();
            self.writer.add(&sites)?;
            self.writer.add(&pages)?;
        }
        self.first += self.sites.len() as u64;
        self.sites.clear();
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<(), PreparedError> {
        self.section()?;
        self.writer.finish()
    }
}

/// The pages of each site, as of the checkpoint being read.
#[derive(Debug)]
pub struct BySite(Reader);

impl BySite {
    /// Opens the file of an archive, if it is of the checkpoint that the archive was opened at.
    ///
    /// # Errors
    /// When the file is damaged.
    pub fn open(store: &Store) -> Result<Option<Self>, PreparedError> {
        Ok(open(store, BY_SITE_FILE, of_pages(store.state()))?.map(Self))
    }

    /// Returns the URLs of a site in ascending order, including robots.txt files; `None` if there are more than `most`.
    ///
    /// # Errors
    /// When the file is damaged.
    pub fn pages(&self, site: SiteId, most: usize) -> Result<Option<Vec<UrlId>>, PreparedError> {
        let (reader, site) = (&self.0, u64::from(site.0));
        let mut pages = Vec::new();
        for block in (0..reader.blocks()).filter(|block| reader.bounds(*block, SITE).contains(&site)) {
            let rows = self.rows(block, site)?;
            if pages.len() + rows.len() > most {
                return Ok(None);
            }
            let found = reader.map(block, PAGE, |page| UrlId(page as u32))?;
            pages.extend_from_slice(found.get(rows).unwrap_or_default());
        }
        Ok(Some(pages))
    }

    /// Returns the rows of a site in a block.
    fn rows(&self, block: u32, site: u64) -> Result<Range<usize>, PreparedError> {
        let bounds = self.0.bounds(block, SITE);
        if bounds.start() == bounds.end() {
            return Ok(0..self.0.rows(block).len());
        }
        let sites = self.0.map(block, SITE, |site| site)?;
        Ok(sites.partition_point(|other| *other < site)..sites.partition_point(|other| *other <= site))
    }
}
