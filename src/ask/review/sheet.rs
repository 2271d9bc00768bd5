//! The sites to review, each with its most important pages.

use std::cmp::Ordering;
use std::collections::HashMap;

use archive_storage::{SiteId, UrlId};
use archive_web::parse::DocumentKind;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::query::{Error, PageRow, PageText, Plan, Rows, SiteRow};

/// Maximum number of sample pages per site.
pub const SAMPLES_MAX: usize = 5;

/// Sites to review, in the order to review them.
#[derive(Clone, Debug, PartialEq)]
pub struct Sheet {
    /// The archive's name.
    pub archive: String,
    /// When the sheet was made.
    pub made: DateTime<Utc>,
    /// The query that selected the sites.
    pub selection: String,
    /// Number of sites that the query found; the sheet may have fewer.
    pub matched: u64,
    /// The sites.
    pub entries: Vec<SiteEntry>,
}

/// A site to review.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteEntry {
    /// The archive's data on the site.
    pub site: SiteRow,
    /// Its most important captured documents, at most [`SAMPLES_MAX`], most important first.
    pub samples: Vec<SamplePage>,
}

/// A sample page by which to judge a site.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SamplePage {
    /// Its URL.
    pub url: String,
    /// The title of its newest version, if it has one.
    pub title: Option<String>,
}

impl Sheet {
    /// Collects the sites that `plan` selects, and reads all pages once for their samples.
    ///
    /// # Errors
    /// When `rows` cannot be read.
    pub fn collect(
        plan: &Plan,
        rows: &dyn Rows,
        archive: String,
        selection: String,
        made: DateTime<Utc>,
    ) -> Result<Self, Error> {
        let (sites, matched) = plan.select_sites(rows)?;
        let mut samples = samples_of(rows, sites.iter().map(|site| site.id))?;
        let entries = sites.into_iter().map(|site| {
            let samples = samples.remove(&site.id).unwrap_or_default();
            SiteEntry { site, samples }
        });
        let entries = entries.collect();
        Ok(Self { archive, made, selection, matched, entries })
    }
}

/// The most important captured documents of sites, at most [`SAMPLES_MAX`] of each, most important first.
///
/// # Errors
/// When `rows` cannot be read.
pub fn samples_of(
    rows: &dyn Rows,
    sites: impl Iterator<Item = SiteId>,
) -> Result<HashMap<SiteId, Vec<SamplePage>>, Error> {
    let mut best: HashMap<SiteId, Vec<PageRow>> = sites.map(|site| (site, Vec::new())).collect();
    for page in rows.pages() {
        let page = page?;
        if let Some(pages) = best.get_mut(&page.site).filter(|_| is_document(&page)) {
            keep_best(pages, page);
        }
    }
    let samples = best.into_iter().map(|(site, pages)| {
        let samples = pages.iter().map(|page| sample(rows, page)).collect::<Result<_, Error>>()?;
        Ok((site, samples))
    });
    samples.collect()
}

/// Whether a page is representative of its site: captured successfully, and readable.
fn is_document(page: &PageRow) -> bool {
    use DocumentKind::{Css, Image, Script, Sitemap};
    let readable = page.kind.is_some_and(|kind| !matches!(kind, Sitemap | Css | Script | Image));
    page.captures > 0 && readable && page.content_status.is_some_and(|status| (200..300).contains(&status))
}

fn keep_best(pages: &mut Vec<PageRow>, page: PageRow) {
    let position = pages.partition_point(|kept| by_importance(kept, &page).is_lt());
    if position < SAMPLES_MAX {
        pages.insert(position, page);
        pages.truncate(SAMPLES_MAX);
    }
}

fn by_importance(left: &PageRow, right: &PageRow) -> Ordering {
    let key = |page: &PageRow| -> (f64, UrlId) { (page.importance, page.id) };
    let ((left, left_id), (right, right_id)) = (key(left), key(right));
    right.total_cmp(&left).then_with(|| left_id.cmp(&right_id))
}

fn sample(rows: &dyn Rows, page: &PageRow) -> Result<SamplePage, Error> {
    let text = |text| rows.text(page, text);
    Ok(SamplePage {
        url: text(PageText::Url)?.unwrap_or_default().into_owned(),
        title: text(PageText::Title)?.map(|title| one_line(&title)).filter(|title| !title.is_empty()),
    })
}

pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
