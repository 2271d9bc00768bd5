//! A search of several archives, some on other machines: the share of each archive, and merging the results.
//!
//! There are four rounds: word statistics of each index; the fit of link texts for pages whose site another archive has
//! captured, sent to that archive; the best pages of each archive by the statistics of all; the details of those pages
//! that are among the best of all.

use std::collections::HashMap;

use archive_base::access::Access;
use archive_books::search::{self, Fit, Snippet, Statistics};
use archive_storage::{Store, UrlId};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::counts::{FacetCounts, counted};
use super::{
    FindError, Hit, PageTextCache, ParsedSearch, RANKED_PER_RESULT, RESULTS_MAX, Ranked, Results,
    RunningSearch, SearchOptions,
};
use crate::query::{AsOf, Limits, PageText, Plan, Question, Rows, RowsError, Running};

/// A search, as sent to archives.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchRequest {
    /// The text typed.
    pub typed: String,
    /// [`SearchOptions::limit`].
    pub limit: usize,
    /// [`SearchOptions::all`].
    pub all: bool,
    /// Bits of [`SearchOptions::importance_weight`].
    pub importance_weight: u64,
    /// [`SearchOptions::facets`].
    pub facets: bool,
    /// [`SearchOptions::before`] in microseconds since 1970.
    pub before: Option<i64>,
    /// Limits for an archive on this machine; each machine has its own.
    #[serde(skip)]
    pub limits: Limits,
}

/// Words that resemble a given one, with their frequencies.
type Like = Vec<(String, u64)>;

/// Word statistics of an index for one search.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WordStatistics {
    statistics: Statistics,
    /// For each word that no page has, the words that resemble it, with their frequencies; none for other words.
    like: Vec<(String, Option<Like>)>,
    behind: u64,
}

/// Fit of one archive's link texts for a page of another archive.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Linked {
    /// Site of the page.
    pub site: String,
    /// URL of the page.
    pub url: String,
    /// How well the links' texts fit.
    pub fit: Fit,
}

/// A page that may be among the best of all archives.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchCandidate {
    page: u32,
    url: String,
    /// Bits of the points for its words.
    text: u32,
    /// Bits of its score.
    score: u64,
    digest: Option<[u8; 16]>,
    has_all: bool,
}

/// The details of a result, as sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shown {
    title: String,
    importance: u64,
    snippet: Option<(String, Vec<(usize, usize)>)>,
    /// Microseconds since 1970.
    time: Option<i64>,
    until: Option<i64>,
}

/// The best pages of an archive, and the facet counts of all matching pages.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BestPages {
    candidates: Vec<SearchCandidate>,
    counts: [Vec<(String, u64)>; 4],
}

/// A page among the best of all: the index of its archive, and its number there.
#[derive(Clone, Debug)]
pub struct ChosenPage {
    /// The archive.
    pub archive: usize,
    /// The page.
    pub page: u32,
    url: String,
    also: Vec<String>,
    score: f64,
    has_all: bool,
}

impl SearchRequest {
    /// Returns the same search with other limits.
    #[must_use]
    pub fn within(&self, limits: Limits) -> Self {
        Self { limits, ..self.clone() }
    }

    /// Builds the search for a typed text.
    #[must_use]
    pub fn new(typed: &str, options: SearchOptions<'_>) -> Self {
        Self {
            typed: typed.to_owned(),
            limit: options.limit.min(RESULTS_MAX),
            all: options.all,
            importance_weight: options.importance_weight.to_bits(),
            facets: options.facets,
            before: options.before.map(|before| before.timestamp_micros()),
            limits: options.limits,
        }
    }

    fn options(&self) -> Result<SearchOptions<'static>, FindError> {
        let before = self.before.map(|micros| DateTime::from_timestamp_micros(micros).ok_or(NO_TIME));
        Ok(SearchOptions {
            limit: self.limit.min(RESULTS_MAX),
            // Only the machine that merges the results knows which pages come first.
            skip: 0,
            all: self.all,
            importance_weight: f64::from_bits(self.importance_weight),
            facets: self.facets,
            before: before.transpose().map_err(RowsError::from)?,
            limits: self.limits,
            kept: None,
        })
    }

    /// Runs `work` on an archive's share of the search.
    fn of<T>(
        &self,
        store: &Store,
        access: &Access,
        (of_all, kept): (Option<&Statistics>, Option<&PageTextCache>),
        work: impl FnOnce(&RunningSearch<'_>, &ParsedSearch, &Plan, Option<&AsOf<'_>>) -> Result<T, FindError>,
    ) -> Result<T, FindError> {
        let typed =
            ParsedSearch::parse(&self.typed).map_err(|mistake| RowsError::from(mistake.to_string()))?;
        let before = self.options()?.before;
        let plan = Plan::of_several(&typed.query(), Utc::now())?;
        let question = Question::part(store, access.clone(), plan, 0)?;
        let question = question.within(Running::new(self.limits, false));
        let past = before.map(|before| AsOf { rows: &question.rows, before });
        let rows: &dyn Rows = past.as_ref().map_or(&question.rows, |past| past);
        let mut views = question.rows.views(before, kept.map(|kept| &kept.indexes))?;
        for (view, of_all) in views.iter_mut().zip(of_all) {
            view.join_all(of_all.clone());
        }
        let search = RunningSearch { today: &question.rows, rows, past: past.as_ref(), views, kept };
        work(&search, &typed, &question.plan, past.as_ref())
    }

    /// Returns the word statistics of the archive's index.
    ///
    /// # Errors
    /// When there is no index, or it cannot be read.
    pub fn words(
        &self,
        store: &Store,
        access: &Access,
        kept: Option<&PageTextCache>,
    ) -> Result<WordStatistics, FindError> {
        self.of(store, access, (None, kept), |search, typed, _, _| {
            let mut words = WordStatistics::default();
            for view in &search.views {
                let texts = super::shown_by(typed, view)?;
                words.statistics.add(view.statistics([&texts].into_iter(), Some(&typed.find))?);
                words.behind += view.behind();
                for word in super::typed_words(typed) {
                    let like = view.like(&word)?.map(|like| like.into_iter().collect());
                    words.like.push((word, like));
                }
            }
            Ok(words)
        })
    }

    /// Returns the fit of link texts for pages whose site the archive has not captured, by the statistics of all.
    ///
    /// # Errors
    /// As [`SearchRequest::words`].
    pub fn linked(
        &self,
        store: &Store,
        access: &Access,
        of_all: &Statistics,
        is_captured: &[bool],
        kept: Option<&PageTextCache>,
    ) -> Result<Vec<Linked>, FindError> {
        self.of(store, access, (Some(of_all), kept), |search, typed, _, _| {
            let mut found = Vec::new();
            for (page, fit) in search.evidence(typed)?.into_iter().flat_map(search::Evidences::into_linked) {
                let Some(row) = search.today.page(page)?.filter(|row| !has(is_captured, row.site)) else {
                    continue;
                };
                let text = |text| {
                    Ok::<_, RowsError>(search.today.text(&row, text)?.unwrap_or_default().into_owned())
                };
                found.push(Linked { site: text(PageText::Site)?, url: text(PageText::Url)?, fit });
            }
            Ok(found)
        })
    }

    /// Returns the best pages of the archive by the statistics of all and by the links from other archives.
    ///
    /// # Errors
    /// As [`SearchRequest::words`].
    pub fn best(
        &self,
        store: &Store,
        access: &Access,
        of_all: &Statistics,
        linked: &[(String, Fit)],
        kept: Option<&PageTextCache>,
    ) -> Result<BestPages, FindError> {
        let options = self.options()?;
        self.of(store, access, (Some(of_all), kept), |search, typed, plan, past| {
            let mut evidence = search.evidence(typed)?;
            for (url, fit) in linked {
                if let Some((page, evidence)) = search.today.find(url)?.zip(evidence.as_mut()) {
                    evidence.add_linked(page, *fit);
                }
            }
            let mut found = evidence.map(search::Evidences::judge).unwrap_or_default();
            found.retain(|found| found.has_all || !options.all);
            let counts = match options.facets {
                true => counted(search.today, past, plan, &mut found)?,
                false => FacetCounts::default(),
            };
            let mut best = BestPages {
                counts: counts.by.map(|counts| counts.into_iter().collect()),
                ..BestPages::default()
            };
            for (text, ranked) in search.ranked(plan, found, &options)? {
                let Ranked { row, capture, score, has_all, .. } = ranked;
                best.candidates.push(SearchCandidate {
                    page: row.id.0,
                    url: search.url(row.id)?,
                    text: text.to_bits(),
                    score: score.to_bits(),
                    digest: capture.map(|capture| capture.digest),
                    has_all,
                });
            }
            Ok(best)
        })
    }

    /// Returns the details that results show of pages of the archive.
    ///
    /// # Errors
    /// As [`SearchRequest::words`].
    pub fn shown(
        &self,
        store: &Store,
        access: &Access,
        of_all: &Statistics,
        pages: &[u32],
        kept: Option<&PageTextCache>,
    ) -> Result<Vec<Shown>, FindError> {
        self.of(store, access, (Some(of_all), kept), |search, typed, _, _| {
            let (mut shown, marked) = (Vec::new(), search.marked(typed)?);
            let pages: Vec<UrlId> = pages.iter().take(RESULTS_MAX).map(|page| UrlId(*page)).collect();
            // The client names only pages that existed; a crawl may have continued since.
            let row_of = |page: &UrlId| {
                search.rows.page(*page)?.ok_or_else(|| RowsError::from("a page no longer exists"))
            };
            let rows = pages.iter().map(row_of).collect::<Result<Vec<_>, _>>()?;
            for (row, capture) in rows.into_iter().zip(search.captures(&pages)?) {
                let ranked = Ranked { row, capture, has_all: false, score: 0.0, also: Vec::new() };
                let hit = search.hit(&marked, ranked)?;
                let ranges =
                    |found: &[std::ops::Range<usize>]| found.iter().map(|one| (one.start, one.end)).collect();
                shown.push(Shown {
                    title: hit.title,
                    importance: hit.importance.to_bits(),
                    snippet: hit.snippet.map(|snippet| (snippet.text, ranges(&snippet.found))),
                    time: hit.time.map(|time| time.timestamp_micros()),
                    until: hit.until.map(|time| time.timestamp_micros()),
                });
            }
            Ok(shown)
        })
    }
}

impl BestPages {
    /// Returns the same, if an archive may answer this to a search with such a limit.
    ///
    /// # Errors
    /// A description of what is wrong.
    pub fn checked(self, limit: usize) -> Result<Self, &'static str> {
        let is_finite = |one: &SearchCandidate| {
            f32::from_bits(one.text).is_finite() && f64::from_bits(one.score).is_finite()
        };
        if self.candidates.len() > limit * RANKED_PER_RESULT {
            return Err("there are more pages than were asked for");
        }
        if self.candidates.iter().all(is_finite) { Ok(self) } else { Err("a number is not finite") }
    }
}

impl Shown {
    /// Returns the same, if an archive may answer this.
    ///
    /// # Errors
    /// A description of what is wrong.
    pub fn checked(self) -> Result<Self, &'static str> {
        if [self.time, self.until]
            .into_iter()
            .flatten()
            .any(|time| DateTime::from_timestamp_micros(time).is_none())
        {
            return Err(NO_TIME);
        }
        let is_finite = f64::from_bits(self.importance).is_finite();
        if is_finite { Ok(self) } else { Err("a number is not finite") }
    }
}

pub(super) const NO_TIME: &str = "a timestamp is out of range";

fn has(is_captured: &[bool], site: archive_storage::SiteId) -> bool {
    is_captured.get(site.index()).is_some_and(|is_captured| *is_captured)
}

/// Results of all archives while they are merged.
#[derive(Debug, Default)]
pub struct MergedResults {
    /// Word statistics of all archives.
    pub statistics: Statistics,
    results: Results,
    like: Vec<(String, Option<HashMap<String, u64>>)>,
    counts: FacetCounts,
    candidates: Vec<(usize, SearchCandidate)>,
}

impl MergedResults {
    /// Starts with an empty answer to a search.
    #[must_use]
    pub fn new(typed: &ParsedSearch) -> Self {
        let like = super::typed_words(typed).map(|word| (word, Some(HashMap::new()))).collect();
        Self { like, ..Self::default() }
    }

    /// Adds the word statistics of an archive.
    pub fn add_words(&mut self, words: WordStatistics) {
        self.statistics.add(words.statistics);
        self.results.behind = self.results.behind.saturating_add(words.behind);
        for (word, own) in words.like {
            let Some((_, all)) = self.like.iter_mut().find(|(known, _)| *known == word) else { continue };
            match (all.as_mut(), own) {
                (Some(all), Some(own)) => own.into_iter().for_each(|(word, count)| {
                    let sum: &mut u64 = all.entry(word).or_default();
                    *sum = sum.saturating_add(count);
                }),
                // Some page has the word.
                _ => *all = None,
            }
        }
    }

    /// Adds the best pages of an archive.
    pub fn add_best(&mut self, archive: usize, best: BestPages) {
        self.candidates.extend(best.candidates.into_iter().map(|candidate| (archive, candidate)));
        for (counts, own) in self.counts.by.iter_mut().zip(best.counts) {
            for (value, count) in own {
                let sum = counts.entry(value).or_default();
                *sum = sum.saturating_add(count);
            }
        }
    }

    /// Returns the best pages of all archives, best first.
    pub fn choose(&mut self, limit: usize) -> Vec<ChosenPage> {
        let text = |candidate: &SearchCandidate| f32::from_bits(candidate.text);
        let mut all = std::mem::take(&mut self.candidates);
        all.sort_by(|(one, left), (other, right)| {
            text(right).total_cmp(&text(left)).then((one, left.page).cmp(&(other, right.page)))
        });
        all.truncate(limit * RANKED_PER_RESULT);
        all.sort_by(|(_, left), (_, right)| {
            f64::from_bits(right.score).total_cmp(&f64::from_bits(left.score))
        });
        let mut places: HashMap<[u8; 16], usize> = HashMap::new();
        let mut best: Vec<ChosenPage> = Vec::new();
        for (archive, SearchCandidate { page, url, score, digest, has_all, .. }) in all {
            let place = digest.and_then(|digest| places.get(&digest)).and_then(|place| best.get_mut(*place));
            if let Some(first) = place {
                first.also.push(url);
                continue;
            }
            places.extend(digest.map(|digest| (digest, best.len())));
            best.push(ChosenPage {
                archive,
                page,
                url,
                also: Vec::new(),
                score: f64::from_bits(score),
                has_all,
            });
        }
        self.results.more = best.len() > limit;
        best.truncate(limit);
        best
    }

    /// Adds the details of a chosen page.
    pub fn add_shown(&mut self, chosen: ChosenPage, shown: Shown) {
        let time = |micros: Option<i64>| micros.and_then(DateTime::from_timestamp_micros);
        self.results.hits.push(Hit {
            url: chosen.url,
            also: chosen.also,
            title: shown.title,
            score: chosen.score,
            importance: f64::from_bits(shown.importance),
            snippet: shown.snippet.map(|(text, found)| Snippet {
                text,
                found: found.into_iter().map(|(start, end)| start..end).collect(),
            }),
            time: time(shown.time),
            until: time(shown.until),
            has_all: chosen.has_all,
        });
    }

    /// Returns the results.
    #[must_use]
    pub fn finish(self) -> Results {
        let meant = self.like.into_iter().filter_map(|(word, like)| Some((word, search::most_like(like?)?)));
        Results { facets: self.counts.facets(), meant: meant.collect(), ..self.results }
    }
}
