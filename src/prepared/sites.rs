//! What the pages of a site come to.

use super::Facts;
use crate::parse::DocumentKind;

/// Columns of the file.
pub(super) const COLUMNS: usize = 9;

/// What the pages of a site come to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SiteSums {
    /// Its pages that were captured at least once.
    pub pages: u64,
    /// Captures of all its pages.
    pub captures: u64,
    /// Its captured HTML pages.
    pub html: u64,
    /// Its captured XML pages, feeds and sitemaps included.
    pub xml: u64,
    /// The first capture of any of its pages, seconds since 1970; 0 for none.
    pub first_seen: u32,
    /// The newest capture of any of its pages; 0 for none.
    pub last_seen: u32,
    /// The importance of its pages together, captured or not.
    pub importance: f64,
    /// That of the most important one.
    pub importance_max: f64,
    /// The importance that links between sites give it.
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
        if self.first_seen == 0 || page.first_seen < self.first_seen {
            self.first_seen = page.first_seen;
        }
        self.last_seen = self.last_seen.max(page.last_seen);
    }

    pub(super) fn values(&self) -> [u64; COLUMNS] {
        let Self { pages, captures, html, xml, first_seen, last_seen, importance, importance_max, by_links } =
            *self;
        let [sum, max, by_links] = [importance, importance_max, by_links].map(f64::to_bits);
        [pages, captures, html, xml, first_seen.into(), last_seen.into(), sum, max, by_links]
    }

    pub(super) fn of_values(values: [u64; COLUMNS]) -> Self {
        let [pages, captures, html, xml, first_seen, last_seen, sum, max, by_links] = values;
        let [importance, importance_max, by_links] = [sum, max, by_links].map(f64::from_bits);
        let [first_seen, last_seen] = [first_seen, last_seen].map(|seconds| seconds as u32);
        Self { pages, captures, html, xml, first_seen, last_seen, importance, importance_max, by_links }
    }
}
