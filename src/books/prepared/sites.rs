//! Sums over the pages of each site.

use archive_storage::{SiteId, Store};
use archive_web::parse::DocumentKind;

use super::{Column, Facts, Prepared, PreparedError, SITES_FILE, of_sites, open};

/// Columns of the file.
pub(super) const COLUMNS: [Column; 9] = [
    Column::Pages,
    Column::Captures,
    Column::Html,
    Column::Xml,
    Column::FirstSeen,
    Column::LastSeen,
    Column::Importance,
    Column::ImportanceMax,
    Column::ByLinks,
];

impl Prepared {
    /// Opens the columns of an archive's sites.
    ///
    /// # Errors
    /// As [`Prepared::open`].
    pub fn sites(store: &Store) -> Result<Option<Self>, PreparedError> {
        let file = open(store, SITES_FILE, of_sites(store.state()))?;
        Ok(file.map(|file| Self { file, order: Some(&COLUMNS) }))
    }

    /// Returns the sums of all sites, by number.
    ///
    /// # Errors
    /// When the file is damaged, or not that of sites.
    pub fn all_sums(&self) -> Result<Vec<SiteSums>, PreparedError> {
        Ok(self.file.all_rows()?.into_iter().map(SiteSums::of_values).collect())
    }

    /// Returns the sums of some sites.
    ///
    /// # Errors
    /// As [`Prepared::all_sums`].
    pub fn sums(&self, sites: &[SiteId]) -> Result<Vec<SiteSums>, PreparedError> {
        let mut found = vec![[0; COLUMNS.len()]; sites.len()];
        for block in 0..self.blocks() {
            let all = self.ids(block);
            let are_in = sites.iter().enumerate().filter(|(_, site)| all.contains(&site.0));
            let (places, rows): (Vec<_>, Vec<_>) =
                are_in.map(|(place, site)| (place, site.0 - all.start)).unzip();
            for column in (0..COLUMNS.len()).filter(|_| !rows.is_empty()) {
                let values = self.file.pick(block, column as u32, &rows)?;
                places.iter().zip(values).for_each(|(place, value)| found[*place][column] = value);
            }
        }
        Ok(found.into_iter().map(SiteSums::of_values).collect())
    }
}

/// Sums over the pages of a site.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SiteSums {
    /// Number of pages captured at least once.
    pub pages: u64,
    /// Number of captures of all pages.
    pub captures: u64,
    /// Number of captured HTML pages.
    pub html: u64,
    /// Number of captured XML pages, feeds and sitemaps included.
    pub xml: u64,
    /// First capture of any page, seconds since 1970; 0 for none.
    pub first_seen: u32,
    /// Newest capture of any page; 0 for none.
    pub last_seen: u32,
    /// Sum of the importance of all pages, captured or not.
    pub importance: f64,
    /// Importance of the most important page.
    pub importance_max: f64,
    /// Importance of the site from links between sites.
    pub by_links: f64,
}

impl SiteSums {
    /// Adds a page of the site.
    pub fn add(&mut self, page: &Facts) {
        self.importance += page.importance;
        self.importance_max = self.importance_max.max(page.importance);
        let Some(kind) = page.kind.map(DocumentKind::from_code) else { return };
        self.pages += 1;
        self.captures += u64::from(page.captures);
        self.html += u64::from(kind == DocumentKind::Html);
        self.xml += u64::from(kind.is_xml());
        if self.first_seen == 0 || (1..self.first_seen).contains(&page.first_seen) {
            self.first_seen = page.first_seen;
        }
        self.last_seen = self.last_seen.max(page.last_seen);
    }

    pub(super) fn values(&self) -> [u64; COLUMNS.len()] {
        let Self { pages, captures, html, xml, first_seen, last_seen, importance, importance_max, by_links } =
            *self;
        let [sum, max, by_links] = [importance, importance_max, by_links].map(f64::to_bits);
        [pages, captures, html, xml, first_seen.into(), last_seen.into(), sum, max, by_links]
    }

    pub(super) fn of_values(values: [u64; COLUMNS.len()]) -> Self {
        let [pages, captures, html, xml, first_seen, last_seen, sum, max, by_links] = values;
        let [importance, importance_max, by_links] = [sum, max, by_links].map(f64::from_bits);
        let [first_seen, last_seen] = [first_seen, last_seen].map(|seconds| seconds as u32);
        Self { pages, captures, html, xml, first_seen, last_seen, importance, importance_max, by_links }
    }
}
