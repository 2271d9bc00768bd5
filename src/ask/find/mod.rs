//! Searches as in a search box: words in, pages with snippets of their text out.
//!
//! [`ParsedSearch`] parses what was typed. The index ranks pages by it ([`archive_books::search::IndexView::find`]); its conditions are
//! those of the query language. Importance reorders the best pages, and pages with the same content are merged into one
//! result. A search as of a time covers the versions current then. [`archive_books::change::said`] reads all versions of a page and needs no
//! index.

mod counts;
mod kept;
mod parse;
mod parts;
mod times;

use std::collections::HashMap;

use archive_base::access::Access;
use archive_base::error::{Classified, ErrorKind};
use archive_books::change::{self, VersionError};
use archive_books::search::{self, Evidences, FoundPage, IndexView, Marked, Snippet, TextQuery, is_searched};
use archive_storage::{Capture, CaptureId, StateError, Store, UrlId};
use chrono::{DateTime, Utc};

use self::counts::{FacetCounts, counted};
pub use self::kept::PageTextCache;
pub use self::parse::{MINUS, ParsedSearch, TypedError};
pub use self::parts::{BestPages, ChosenPage, Linked, MergedResults, SearchRequest, Shown, WordStatistics};
pub use self::times::CaptureTimes;
use crate::query::{
    self, AsOf, Late, Limits, PageRow, PageText, Plan, Question, Rows, RowsError, Running, Together,
    UnreadRows, unreadable,
};

/// Maximum number of results of one search.
pub const RESULTS_MAX: usize = 1000;

/// Pages ranked per requested result; importance reorders only these.
const RANKED_PER_RESULT: usize = 10;

/// Options of a search.
#[derive(Clone, Copy, Debug)]
pub struct SearchOptions<'a> {
    /// Maximum number of results, at most [`RESULTS_MAX`].
    pub limit: usize,
    /// Number of the best of these to skip: those on earlier pages of results.
    pub skip: usize,
    /// Whether a page must have all of the words. Otherwise pages with more of them come first.
    pub all: bool,
    /// Weight of importance, see [`scored`]; 0 to ignore it.
    pub importance_weight: f64,
    /// Whether to count pages by site, year, type and language. This reads each page found.
    pub facets: bool,
    /// Only captures before this time count; none for the newest versions.
    pub before: Option<DateTime<Utc>>,
    /// Limits on time and memory.
    pub limits: Limits,
    /// Cache shared between searches.
    pub kept: Option<&'a PageTextCache>,
}

impl Default for SearchOptions<'_> {
    fn default() -> Self {
        Self {
            limit: 10,
            skip: 0,
            all: false,
            importance_weight: IMPORTANCE_WEIGHT,
            facets: false,
            before: None,
            limits: Limits::USUAL,
            kept: None,
        }
    }
}

/// Default weight of importance.
pub const IMPORTANCE_WEIGHT: f64 = 0.05;

/// Returns the score of a page with `text` points for its words and this importance (mean 1):
///
/// ```text
/// score = text * (1 + weight * ln(1 + importance))
/// ```
///
/// The logarithm follows Craswell, Robertson, Zaragoza and Taylor, "Relevance weighting for query independent evidence"
/// (SIGIR 2005, section 4).
#[must_use]
pub fn scored(text: f64, importance: f64, weight: f64) -> f64 {
    text * (1.0 + weight * importance.max(0.0).ln_1p())
}

/// A search result.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// URL of the page.
    pub url: String,
    /// URLs of other pages found that have the same content.
    pub also: Vec<String>,
    /// Title; empty if the page has none.
    pub title: String,
    /// See [`scored`].
    pub score: f64,
    /// Importance, mean 1.
    pub importance: f64,
    /// The part of the page's text that answers best, if it has text.
    pub snippet: Option<Snippet>,
    /// Time of the first capture of its version.
    pub time: Option<DateTime<Utc>>,
    /// In a search as of a time: when a capture first showed that the page had changed or was gone.
    pub until: Option<DateTime<Utc>>,
    /// Whether the page has all words.
    pub has_all: bool,
}

/// Results of a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// The results, best first.
    pub hits: Vec<Hit>,
    /// Counts of pages by facet (`site`, `year`, `type`, `language`), most frequent values first.
    pub facets: Vec<(&'static str, Vec<(String, u64)>)>,
    /// Words that no page has, each with one that may have been meant.
    pub meant: Vec<(String, String)>,
    /// In a search as of a time: number of captures that the index of older versions does not reflect yet.
    pub behind: u64,
    /// Whether there are more results than requested.
    pub more: bool,
    /// Pages that are left out, or have no snippet, because their records cannot be read.
    pub unread: Option<UnreadRows>,
}

/// Why a search failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FindError {
    /// The archive has no index of older versions.
    #[error(transparent)]
    NoVersions(search::SearchError),
    /// The archive has no index.
    #[error("this archive has no full-text index; `archive crawl` builds one unless --no-full-text is given")]
    NoIndex,
    /// The index cannot be read.
    #[error(transparent)]
    Index(search::SearchError),
    /// The archive cannot be read.
    #[error(transparent)]
    State(#[from] StateError),
    /// The archive cannot be read.
    #[error(transparent)]
    Query(#[from] query::Error),
    /// The text of a result cannot be read.
    #[error(transparent)]
    Version(#[from] VersionError),
}

impl From<RowsError> for FindError {
    fn from(error: RowsError) -> Self {
        Self::Query(error.into())
    }
}

impl From<Late> for FindError {
    fn from(late: Late) -> Self {
        Self::Query(late.into())
    }
}

impl Classified for FindError {
    fn kind(&self) -> ErrorKind {
        if let Self::Query(error) = self { error.kind() } else { ErrorKind::of_causes(self) }
    }
}

impl From<search::SearchError> for FindError {
    fn from(error: search::SearchError) -> Self {
        match error {
            search::SearchError::Missing { .. } => Self::NoIndex,
            search::SearchError::NoVersions => Self::NoVersions(error),
            error => Self::Index(error),
        }
    }
}

/// A matching page, before its details for results are read.
struct Ranked {
    row: PageRow,
    /// The capture that identifies the page's version.
    capture: Option<Capture>,
    has_all: bool,
    score: f64,
    also: Vec<UrlId>,
}

/// The archives and indexes of one search.
struct RunningSearch<'a> {
    today: &'a Together<'a>,
    /// The rows as of the requested time.
    rows: &'a dyn Rows,
    /// One per archive; each has the statistics of all.
    views: Vec<IndexView<'a>>,
    past: Option<&'a AsOf<'a>>,
    kept: Option<&'a PageTextCache>,
}

/// Searches archives as one, as of their last checkpoint or an earlier time, without pages that access rules hide.
///
/// # Errors
/// When there is no index, an archive cannot be read, or two archives have captured pages of the same site.
pub fn find_in(
    archives: Vec<(&Store, Access)>,
    typed: &ParsedSearch,
    options: SearchOptions<'_>,
) -> Result<Results, FindError> {
    let question = Question::of(archives, &typed.query(), Utc::now())?;
    let Question { rows: today, plan, .. } = question.within(Running::new(options.limits, false));
    let past = options.before.map(|before| AsOf { rows: &today, before });
    let rows: &dyn Rows = past.as_ref().map_or(&today, |past| past);
    let kept = options.kept;
    let views = today.views(options.before, kept.map(|kept| &kept.indexes))?;
    let search = RunningSearch { today: &today, rows, past: past.as_ref(), views, kept };
    let limit = options.limit.min(RESULTS_MAX);
    let mut found = search.evidence(typed)?.map(Evidences::judge).unwrap_or_default();
    options.limits.check()?;
    found.retain(|found| found.has_all || !options.all);
    let counts = match options.facets {
        true => counted(&today, past.as_ref(), &plan, &mut found)?,
        false => FacetCounts::default(),
    };
    let ranked = search.ranked(&plan, found, &options)?;
    let mut ranked: Vec<Ranked> = ranked.into_iter().map(|(_, ranked)| ranked).collect();
    ranked.sort_by(|left, right| right.score.total_cmp(&left.score));
    let mut best = without_copies(ranked);
    let more = best.len() > limit;
    best.truncate(limit);
    let marked = search.marked(typed)?;
    let hits = best
        .into_iter()
        .skip(options.skip)
        .map(|ranked| {
            options.limits.check()?;
            search.hit(&marked, ranked)
        })
        .collect::<Result<_, _>>()?;
    // Each view has the words of all archives.
    let meant = search.views.first().map_or(Ok(Vec::new()), |view| meant(view, typed))?;
    let behind = search.views.iter().map(IndexView::behind).sum();
    let unread = today.running().unread();
    Ok(Results { hits, facets: counts.facets(), meant, behind, more, unread })
}

/// The pages found, sorted lazily: usually only the first few of some hundred thousand are needed.
struct BestFirst {
    /// Worst first; those from `sorted` on are the best of all, in order.
    found: Vec<FoundPage>,
    sorted: usize,
    /// Number of pages to sort next.
    next: usize,
}

impl BestFirst {
    fn of(found: Vec<FoundPage>, expected: usize) -> Self {
        Self { sorted: found.len(), found, next: expected.max(1) }
    }
}

impl Iterator for BestFirst {
    type Item = FoundPage;

    fn next(&mut self) -> Option<FoundPage> {
        if self.sorted == self.found.len() {
            let worse = |left: &FoundPage, right: &FoundPage| {
                left.score.total_cmp(&right.score).then(right.page.cmp(&left.page))
            };
            self.sorted = self.sorted.saturating_sub(self.next);
            self.next *= 2;
            if self.sorted > 0 {
                self.found.select_nth_unstable_by(self.sorted, worse);
            }
            self.found.get_mut(self.sorted..)?.sort_unstable_by(worse);
        }
        self.found.pop()
    }
}

/// Returns the words that no page has, each with one that may have been meant.
fn meant(view: &IndexView<'_>, typed: &ParsedSearch) -> Result<Vec<(String, String)>, FindError> {
    let mut meant = Vec::new();
    for word in typed_words(typed) {
        meant.extend(view.similar(&word)?.map(|other| (word, other)));
    }
    Ok(meant)
}

/// Returns the typed words.
fn typed_words(typed: &ParsedSearch) -> impl Iterator<Item = String> {
    typed.find.typed().into_iter()
}

/// Returns the query whose words are marked in the texts of an archive's results.
fn shown_by(typed: &ParsedSearch, view: &IndexView<'_>) -> Result<TextQuery, FindError> {
    let mut texts = search::words(&typed.find.words);
    texts.extend(typed.find.phrases.iter().cloned());
    texts.extend(view.forms(&typed.find)?);
    Ok(TextQuery { field: None, all: false, texts })
}

/// Merges pages with the same content into the best of them.
fn without_copies(ranked: Vec<Ranked>) -> Vec<Ranked> {
    let mut places: HashMap<[u8; 16], usize> = HashMap::new();
    let mut best: Vec<Ranked> = Vec::new();
    for page in ranked {
        let digest = page.capture.map(|capture| capture.digest);
        let place = digest.and_then(|digest| places.get(&digest)).and_then(|place| best.get_mut(*place));
        if let Some(first) = place {
            first.also.push(page.row.id);
            continue;
        }
        places.extend(digest.map(|digest| (digest, best.len())));
        best.push(page);
    }
    best
}

impl RunningSearch<'_> {
    /// Collects the evidence of all indexes, by the numbers of all rows.
    fn evidence(&self, typed: &ParsedSearch) -> Result<Option<Evidences>, FindError> {
        let mut all: Option<Evidences> = None;
        for (archive, view) in self.views.iter().enumerate() {
            let mut found = view.find(&typed.find)?;
            if self.today.are_several() {
                found = found.renumber(|page| self.today.row_of(archive, page))?;
            }
            match &mut all {
                Some(all) => all.add(found),
                None => all = Some(found),
            }
        }
        Ok(all)
    }

    /// Returns the best matching pages by the points for their words, as many as importance may reorder, each with its
    /// points.
    fn ranked(
        &self,
        plan: &Plan,
        found: Vec<FoundPage>,
        options: &SearchOptions<'_>,
    ) -> Result<Vec<(f32, Ranked)>, FindError> {
        let wanted = options.limit.min(RESULTS_MAX) * RANKED_PER_RESULT;
        let (mut ranked, mut best) = (Vec::new(), BestFirst::of(found, wanted));
        loop {
            let next: Vec<FoundPage> = best.by_ref().take(wanted - ranked.len()).collect();
            if next.is_empty() {
                return Ok(ranked);
            }
            let rows = self.rows_of(&next)?;
            let mut selected = Vec::new();
            for found in next {
                options.limits.check()?;
                let Some(row) = rows.get(&found.page).copied() else { continue };
                if plan.selects(self.rows, row)? {
                    selected.push((found, row));
                }
            }
            let pages: Vec<UrlId> = selected.iter().map(|(found, _)| found.page).collect();
            for ((found, row), capture) in selected.into_iter().zip(self.captures(&pages)?) {
                let FoundPage { score: text, has_all, .. } = found;
                let score = scored(f64::from(text), row.importance, options.importance_weight);
                ranked.push((text, Ranked { row, capture, has_all, score, also: Vec::new() }));
            }
        }
    }

    /// Returns the rows of pages found, by page number.
    fn rows_of(&self, found: &[FoundPage]) -> Result<HashMap<UrlId, PageRow>, FindError> {
        let mut rows = HashMap::new();
        for row in self.today.pages_of(found.iter().map(|found| found.page).collect()) {
            let row = match self.past {
                // What was gone then said nothing, as what is gone today is not in today's index.
                Some(past) => past.row(row?)?.filter(|row| !matches!(row.status, Some(404 | 410))),
                None => Some(row?),
            };
            rows.extend(row.map(|row| (row.id, row)));
        }
        Ok(rows)
    }

    /// Returns the captures that identify the versions of pages, in the order of `pages`. Pages of the same archive are
    /// read together.
    fn captures(&self, pages: &[UrlId]) -> Result<Vec<Option<Capture>>, StateError> {
        let mut captures = vec![None; pages.len()];
        let mut places: Vec<usize> = (0..pages.len()).collect();
        let origin = |place: &usize| self.today.origin(pages[*place]);
        places.sort_by_key(|place| origin(place).1);
        for places in places.chunk_by(|left, right| origin(left).1 == origin(right).1) {
            let Some((store, archive, _)) = places.first().map(origin) else { continue };
            let own: Vec<UrlId> = places.iter().map(|place| origin(place).2).collect();
            if let Some(standing) = self.views.get(archive).and_then(IndexView::standing) {
                for (place, own) in places.iter().zip(own) {
                    captures[*place] = standing.capture(own)?;
                }
                continue;
            }
            // What is in the index is the newest version, whatever came later.
            let known = places.iter().zip(store.state().known_of(&own)?);
            let newest = known.filter_map(|(place, (.., visit))| Some((*place, visit?.last_capture?)));
            let (captured, ids): (Vec<usize>, Vec<CaptureId>) = newest.unzip();
            let newest = ids.iter().copied().zip(store.state().captures_of(&ids)?).collect::<Vec<_>>();
            for (place, found) in captured.into_iter().zip(store.state().contents_of(&newest, is_searched)?) {
                captures[place] = found.map(|(_, capture)| capture);
            }
        }
        Ok(captures)
    }

    fn url(&self, page: UrlId) -> Result<String, StateError> {
        let (store, _, own) = self.today.origin(page);
        store.state().url(own)
    }

    /// Returns the words to mark in the texts of results, per archive.
    fn marked(&self, typed: &ParsedSearch) -> Result<Vec<Marked>, FindError> {
        self.views.iter().map(|view| Ok(view.marked(&shown_by(typed, view)?)?)).collect()
    }

    /// Reads a page's details for results.
    fn hit(&self, marked: &[Marked], ranked: Ranked) -> Result<Hit, FindError> {
        let Ranked { row, capture, has_all, score, also } = ranked;
        let (store, archive, _) = self.today.origin(row.id);
        let view = self.views.get(archive);
        // A page whose record cannot be read is found nevertheless, without a snippet.
        let text = capture.map(|capture| {
            let access = self.today.access(archive);
            let text = match self.kept {
                Some(kept) => kept.text(store, access, &capture),
                None => change::text_of(store, access, &capture).map(|(text, _)| text),
            };
            text.map_err(|error| unreadable(store, &capture, &error))
        });
        let text = self.today.running().unless_unreadable(text.unwrap_or_else(|| Ok(String::new())))?;
        let mut snippet = marked.get(archive).and_then(|marked| marked.snippet(&text));
        if let Some(snippet) = &mut snippet {
            // Puts the snippet on one line; marked ranges stay valid.
            snippet.text = snippet.text.replace('\n', " ");
        }
        let standing = view.and_then(IndexView::standing);
        let until = standing.zip(capture).map(|(standing, capture)| standing.until(&capture));
        Ok(Hit {
            url: self.url(row.id)?,
            also: also.into_iter().map(|id| self.url(id)).collect::<Result<_, _>>()?,
            title: self.rows.text(&row, PageText::Title)?.unwrap_or_default().into_owned(),
            score,
            importance: row.importance,
            snippet,
            time: row.changed,
            until: until.transpose()?.flatten(),
            has_all,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::scored;

    #[test]
    fn importance_helps_less_and_less() {
        assert_eq!(scored(2.0, 0.0, 1.0), 2.0);
        assert_eq!(scored(2.0, 1e9, 0.0), 2.0);
        assert_eq!(scored(0.0, 1e9, 1.0), 0.0);
        let gain = |from: f64| scored(1.0, from + 1.0, 0.1) - scored(1.0, from, 0.1);
        assert!(gain(0.0) > gain(1.0) && gain(1.0) > gain(10.0));
    }
}
