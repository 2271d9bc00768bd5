//! Review lists from several archives, possibly on other machines: sites where a review gains most, and sheets of sites
//! to rate.
//!
//! The archive that answers for a site has the decisions on it and the history of its pages. So each archive ranks its
//! own sites and sends their scores; the best of all archives are then described by their own archives.

use std::collections::{HashMap, HashSet};

use archive_ask::query::{self, IMPORTANCE_TODAY, Plan, Question, Running, SiteRow, Together, Value};
use archive_ask::review::next::{self, NextSites, SiteToReview};
use archive_ask::review::{SamplePage, Sheet, SiteEntry, samples_of};
use archive_base::access::{Access, Role};
use archive_base::decisions::Decisions;
use archive_base::texts::Language;
use archive_grammar::{Expr, FieldName, Query, QueryRows, ResultColumn, Spanned};
use archive_storage::{SiteId, Store};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::ask::{
    AskedFolder, EndOf, LeafAnswer, SiteReviews, SiteSamples, Take, URLS_MAX, WaitingSites, expect_few,
    instant,
};
use super::query::QueryText;
use super::root::{LeafArchive, Root, RoundFailure};
use super::{AskError, NodeError};

/// Columns of a site on a sheet, appended to those of the query.
const COLUMNS: [&str; 8] =
    ["site", IMPORTANCE_TODAY, "pages", "captures", "html", "xml", "first_seen", "last_seen"];

/// A site that waits for review, with the bits of its importance and of its gain.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct EncodedRank(String, u64, u64);

/// A description of a site that waits for review, with the bits of its numbers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct EncodedRow {
    row: SiteToReview,
    bits: Vec<u64>,
}

impl EncodedRow {
    fn of(mut row: SiteToReview) -> Self {
        let bits = numbers(&mut row).map(|number| number.to_bits()).collect();
        Self { row, bits }
    }

    fn row(mut self) -> Result<SiteToReview, NodeError> {
        if numbers(&mut self.row).count() != self.bits.len() {
            return Err(NodeError::senseless("a site for review has other numbers than reasons"));
        }
        for (number, bits) in numbers(&mut self.row).zip(self.bits) {
            *number = sound(bits)?;
        }
        Ok(self.row)
    }
}

fn numbers(row: &mut SiteToReview) -> impl Iterator<Item = &mut f64> {
    [&mut row.importance, &mut row.gain].into_iter().chain(row.reasons.iter_mut().map(|why| &mut why.share))
}

fn sound(bits: u64) -> Result<f64, NodeError> {
    let number = Some(f64::from_bits(bits)).filter(|number| number.is_finite());
    number.ok_or_else(|| NodeError::senseless("a number is not finite"))
}

/// Refuses people who may not see the decisions of others, as the review pages do.
fn expect_reviewer(access: &Access) -> Result<(), AskError> {
    match access.is_for(Role::Reviewer) {
        true => Ok(()),
        false => Err(AskError::Wrong("only reviewers may get lists of sites to review".to_owned())),
    }
}

impl LeafAnswer for WaitingSites {
    fn answer(self, folder: &AskedFolder<'_>, take: Take<'_, Self>) -> EndOf<Self> {
        let AskedFolder { store, access, limits, .. } = *folder;
        expect_reviewer(access)?;
        let found = self.query.map(|query| {
            let question = Question::of_each(store, access.clone(), &query, instant(self.now)?)?;
            expect_sites(question.plan.asks_for_sites())?;
            let question = question.within(Running::new(limits, false));
            let (sites, _) = question.plan.select_sites(&question.rows)?;
            Ok::<_, AskError>(sites.into_iter().map(|site| site.id).collect::<HashSet<_>>())
        });
        let decisions = Decisions::read(store.path())?;
        let places = next::places(store, access, &decisions, found.transpose()?.as_ref())?;
        places.into_iter().try_for_each(|place| {
            take(EncodedRank(place.site, place.importance.to_bits(), place.gain.to_bits()))
        })
    }
}

impl LeafAnswer for SiteReviews {
    fn answer(self, folder: &AskedFolder<'_>, take: Take<'_, Self>) -> EndOf<Self> {
        expect_few(&self.sites, "sites cannot be described")?;
        let AskedFolder { store, access, .. } = *folder;
        expect_reviewer(access)?;
        let among = found(store, &self.sites)?.into_iter().map(|(site, _)| site).collect();
        let decisions = Decisions::read(store.path())?;
        let next = next::next(store, access, &decisions, Some(&among), self.sites.len(), Language::English)?;
        next.rows.into_iter().map(EncodedRow::of).try_for_each(take)
    }
}

impl LeafAnswer for SiteSamples {
    fn answer(self, folder: &AskedFolder<'_>, take: Take<'_, Self>) -> EndOf<Self> {
        expect_few(&self.sites, "sites cannot be described")?;
        let mut rows = Together::part(folder.store, folder.access.clone(), 0)?;
        rows.run_within(Running::new(folder.limits, false));
        let found = found(folder.store, &self.sites)?;
        let mut samples = samples_of(&rows, found.iter().map(|(site, _)| *site))?;
        found
            .into_iter()
            .try_for_each(|(site, name)| take((name.to_owned(), samples.remove(&site).unwrap_or_default())))
    }
}

/// Those of the sites that an archive knows.
fn found<'a>(store: &Store, sites: &'a [String]) -> Result<Vec<(SiteId, &'a str)>, AskError> {
    let found = sites.iter().map(|name| Ok(store.state().find_site(name)?.map(|site| (site, name.as_str()))));
    found.filter_map(Result::transpose).collect()
}

fn expect_sites(are_asked_for: bool) -> Result<(), AskError> {
    let wrong = "the query has to ask for sites: 'site tags contains \"maps\"'";
    if are_asked_for { Ok(()) } else { Err(AskError::Wrong(wrong.to_owned())) }
}

/// An archive's share of the combined list.
#[derive(Default)]
struct ReviewShare {
    /// Its first sites, at most `limit`: enough to fill the list alone.
    first: Vec<(f64, String)>,
    waiting: usize,
    importance: f64,
}

impl Root<'_> {
    /// At most `limit` sites with the highest gain by a review, from all archives or from the sites that a query finds
    /// in each.
    ///
    /// # Errors
    /// When the query is wrong or cannot be answered by each archive separately, no archive answers, or a folder cannot
    /// be read.
    pub fn next(
        &mut self,
        query: Option<&str>,
        now: DateTime<Utc>,
        limit: usize,
    ) -> Result<NextSites, AskError> {
        if let Some(query) = query {
            // Fields that only some archives have are checked by each archive.
            let query = archive_grammar::parse(query).map_err(query::Error::from)?;
            expect_sites(query.target == QueryRows::Sites)?;
            if query.limit.is_some() || query.offset.is_some() || query.sample.is_some() {
                return Err(query::Error::NotOfEach.into());
            }
        }
        let waiting = WaitingSites { query: query.map(str::to_owned), now: now.timestamp_micros() };
        self.retry(|root| {
            let shares = root.places(&waiting, limit)?;
            let mut first: Vec<(f64, &String, usize)> = Vec::new();
            for (archive, share) in shares.iter().enumerate() {
                first.extend(share.first.iter().map(|(gain, site)| (*gain, site, archive)));
            }
            first.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
            first.truncate(limit);
            let mut chosen = vec![Vec::new(); shares.len()];
            first.into_iter().for_each(|(_, site, archive)| chosen[archive].push(site.clone()));
            let rows = root.of_sites(
                &chosen,
                |sites| SiteReviews { sites },
                |row: EncodedRow| row.row().map(|row| (row.site.clone(), row)),
            )?;
            let each = shares.into_iter().zip(rows).map(|(ReviewShare { waiting, importance, .. }, rows)| {
                NextSites { rows: rows.into_iter().map(|(_, row)| row).collect(), waiting, importance }
            });
            Ok(NextSites::together(each.collect(), limit))
        })
    }

    /// Each archive's share of the combined list, from the sites that it answers for.
    fn places(&self, waiting: &WaitingSites, limit: usize) -> Result<Vec<ReviewShare>, RoundFailure> {
        self.each(|place, archive| {
            let (mut share, mut last) = (ReviewShare::default(), f64::INFINITY);
            archive.ask(waiting.clone(), &mut |EncodedRank(site, importance, gain)| {
                let (importance, gain) = (sound(importance)?, sound(gain)?);
                if gain > std::mem::replace(&mut last, gain) {
                    return Err(NodeError::senseless("its sites are not in order"));
                }
                // A site that has only just become known belongs to this archive.
                if self.answering(&site).is_none_or(|owner| owner == place) {
                    share.waiting += 1;
                    share.importance += importance;
                    share.first.extend((share.first.len() < limit).then_some((gain, site)));
                }
                Ok(())
            })?;
            Ok(share)
        })
    }

    /// What each archive reports about some of its sites, by name; sites about which it reports nothing any more are
    /// left out.
    fn of_sites<K: LeafAnswer, T: Send>(
        &self,
        sites: &[Vec<String>],
        ask: impl Fn(Vec<String>) -> K + Sync,
        read: impl Fn(K::Row) -> Result<(String, T), NodeError> + Sync,
    ) -> Result<Vec<Vec<(String, T)>>, RoundFailure> {
        self.each(|place, archive| {
            let mut found = Vec::new();
            for sites in sites[place].chunks(URLS_MAX) {
                let mut left: HashSet<&String> = sites.iter().collect();
                archive.ask(ask(sites.to_vec()), &mut |row| {
                    let (site, row) = read(row)?;
                    if !left.remove(&site) {
                        return Err(NodeError::senseless("it describes other sites than were asked for"));
                    }
                    found.push((site, row));
                    Ok(())
                })?;
            }
            Ok(found)
        })
    }

    /// Makes a sheet of the sites of all archives that a query finds, with at most `limit` of them if the query has no
    /// limit. `called` returns the name of an archive that is a local folder.
    ///
    /// # Errors
    /// As [`Root::query`], and when the query does not ask for sites.
    pub fn sheet(
        &mut self,
        selection: &str,
        made: DateTime<Utc>,
        limit: usize,
        called: impl Fn(&Store) -> String,
    ) -> Result<Sheet, AskError> {
        expect_sites(Plan::of_several(selection, made)?.asks_for_sites())?;
        let query = archive_grammar::parse(selection).map_err(query::Error::from)?;
        let (select, order) = (vec![field("count")], Vec::new());
        let count = Query { select, order, limit: None, offset: None, ..query.clone() }.to_string();
        let counted = Plan::of_several(&count, made)?;
        let mut of_sites = query;
        of_sites.select.extend(COLUMNS.map(field));
        let of_sites = of_sites.to_string();
        let mut plan = Plan::of_several(&of_sites, made)?;
        plan.limit_if_unlimited(limit);
        let text = |query: &str| QueryText::new(query, made);
        self.retry(|root| {
            let query::Answer { rows, matched, .. } =
                root.query_once(&plan, &text(&of_sites), Some(limit))?;
            let matched = match matched {
                Some(matched) => matched,
                None => {
                    let counted = root.query_once(&counted, &text(&count), None)?;
                    counted.rows.iter().flatten().next().map_or(0, whole)
                }
            };
            let sites =
                (0..).zip(rows).map(|(number, row)| site(number, row)).collect::<Option<Vec<SiteRow>>>();
            let nameless = || NodeError::Failed("an archive sent a site without a name".to_owned());
            let sites = sites.ok_or_else(|| AskError::from(nameless()))?;
            let mut samples = root.samples(&sites)?;
            let entries = sites.into_iter().map(|site| {
                let samples = samples.remove(&site.name).unwrap_or_default();
                SiteEntry { site, samples }
            });
            let entries = entries.collect();
            let names = root.leaves.iter().map(|(_, leaf)| match leaf {
                LeafArchive::Folder(store, _) => called(store),
                LeafArchive::Node(node) => node.name().to_owned(),
            });
            let archive = names.collect::<Vec<_>>().join(", ");
            Ok(Sheet { archive, made, selection: selection.to_owned(), matched, entries })
        })
    }

    /// Sample pages by which to judge sites, by site name.
    fn samples(&self, sites: &[SiteRow]) -> Result<HashMap<String, Vec<SamplePage>>, RoundFailure> {
        let mut wanted = vec![Vec::new(); self.leaves.len()];
        // A node may have named a site of another archive as well.
        let names: HashSet<&String> = sites.iter().map(|site| &site.name).collect();
        for name in names {
            self.answering(name).into_iter().for_each(|owner| wanted[owner].push(name.clone()));
        }
        let samples = self.of_sites(&wanted, |sites| SiteSamples { sites }, Ok)?;
        Ok(samples.into_iter().flatten().collect())
    }
}

fn field(name: &str) -> ResultColumn {
    ResultColumn { expr: Spanned::from(Expr::Field(FieldName::new(name))), name: None }
}

fn whole(value: &Value) -> u64 {
    value.as_number().map_or(0, |number| number as u64)
}

/// Converts a row that ends with [`COLUMNS`].
fn site(number: u32, mut row: Vec<Value>) -> Option<SiteRow> {
    let own = row.split_off(row.len().checked_sub(COLUMNS.len())?);
    let [Value::Text(name), importance, pages, captures, html, xml, first_seen, last_seen] =
        <[Value; COLUMNS.len()]>::try_from(own).ok()?
    else {
        return None;
    };
    let time = |value| if let Value::Time(time) = value { Some(time) } else { None };
    Some(SiteRow {
        id: SiteId(number),
        name,
        importance: importance.as_number().unwrap_or_default(),
        pages: whole(&pages),
        captures: whole(&captures),
        html: whole(&html),
        xml: whole(&xml),
        first_seen: time(first_seen),
        last_seen: time(last_seen),
    })
}
