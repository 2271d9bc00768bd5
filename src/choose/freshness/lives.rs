//! How long pages live and how long they stay the same: distributions over the pages of an archive, of its sites, domains
//! and types, and how many pages appear and disappear.
//!
//! The age of a page is the time since its last known change, its lifetime the mean time between two changes by its
//! change rate (Brewington and Cybenko, "How dynamic is the web?", WWW 2000). A page is there while fetches bring
//! content; it is gone from its first fetch that brought none. All pages count alike.

use std::collections::HashMap;
use std::str::FromStr;

use archive_base::error::Failure;
use archive_books::ledger::{CreditError, page_flags};
use archive_math::refresh::rate::ChangeObservations;
use archive_storage::{Page, SiteId, State, Visit};
use archive_web::parse::DocumentKind;
use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;

use super::{PageModel, SECONDS_PER_DAY};

/// Maximum number of sites, domains or types: those with most pages.
pub const GROUPS_MAX: usize = 50;

/// Number of parts into which the past is divided to count new and gone pages.
const PARTS: i32 = 12;

/// Bounds in days between classes of times: an hour, a day, a week, a month, four months, a year.
const BOUNDS: [f64; 6] = [1.0 / 24.0, 1.0, 7.0, 30.0, 120.0, 365.0];

/// A class of times in days.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DaysClass {
    /// Lower bound (inclusive).
    pub from: f64,
    /// Upper bound (exclusive); `None` for the last class.
    pub below: Option<f64>,
}

impl DaysClass {
    /// All classes, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        let from = std::iter::once(0.0).chain(BOUNDS);
        from.zip(BOUNDS.into_iter().map(Some).chain([None])).map(|(from, below)| Self { from, below })
    }

    /// Whether a time in days is in the class.
    #[must_use]
    pub fn contains(self, days: f64) -> bool {
        days >= self.from && self.below.is_none_or(|below| days < below)
    }
}

/// A distribution of times in days.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DaysSpread {
    /// Number of times.
    pub count: u64,
    /// Mean; 0 if there are none, as are the quartiles.
    pub mean: f64,
    /// First quartile, median, third quartile.
    pub quartiles: [f64; 3],
    /// Number of times in each class of [`DaysClass::all`].
    pub classes: Vec<u64>,
}

impl DaysSpread {
    pub(super) fn of(mut days: Vec<f32>) -> Self {
        days.sort_unstable_by(f32::total_cmp);
        let mut classes = vec![0; BOUNDS.len() + 1];
        for days in &days {
            classes[BOUNDS.partition_point(|bound| f64::from(*days) >= *bound)] += 1;
        }
        let quartile = |part: usize| days.get(days.len().saturating_sub(1) * part / 4).copied();
        Self {
            count: days.len() as u64,
            mean: days.iter().copied().map(f64::from).sum::<f64>() / days.len().max(1) as f64,
            quartiles: [1, 2, 3].map(|part| quartile(part).map_or(0.0, f64::from)),
            classes,
        }
    }
}

/// What pages are grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// Their site.
    Site,
    /// The domain below which their site is registered, as in `org` and `co.uk`.
    Domain,
    /// Their type.
    Type,
}

impl FromStr for Grouping {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "site" => Ok(Self::Site),
            "domain" => Ok(Self::Domain),
            "type" => Ok(Self::Type),
            _ => Err("pages are grouped by site, domain or type"),
        }
    }
}

/// The lives of some pages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupLives {
    /// Name of the site, domain or type; `None` for all pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Number of pages that are there.
    pub pages: u64,
    /// Number of pages that are gone.
    pub gone: u64,
    /// Expected share of fresh copies, of pages that are there and whose change rates are known.
    pub freshness: f64,
    /// Times since the last known change of pages that are there.
    pub age_days: DaysSpread,
    /// Mean times between changes of pages that are there.
    pub lifetime_days: DaysSpread,
    /// Times for which pages were there that are gone.
    pub life_days: DaysSpread,
}

/// Pages that appeared and disappeared in a part of the past.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Growth {
    /// When it begins.
    pub from: DateTime<Utc>,
    /// Its length in days.
    pub days: f64,
    /// Number of pages captured for the first time.
    pub new: u64,
    /// Number of pages that were gone from then on.
    pub gone: u64,
    /// Number of pages that were there at its end.
    pub pages: u64,
}

/// The lives of the pages of an archive.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lives {
    /// All pages.
    pub all: GroupLives,
    /// The pages of each site, domain or type: the [`GROUPS_MAX`] with most pages, these first.
    pub groups: Vec<GroupLives>,
    /// Number of groups that are not listed.
    pub groups_left_out: usize,
    /// New and gone pages over time, oldest first.
    pub growth: Vec<Growth>,
}

/// Whether a page is there or gone; `None` if there never was a page.
pub(super) fn is_there(page: &Page, visit: &Visit) -> Option<bool> {
    let is_page = visit.contents > 0 && page.flags.has_any(page_flags::ACCOUNT | page_flags::VANISHED);
    is_page.then_some(visit.failing_since == 0)
}

#[derive(Default)]
struct Group {
    gone: u64,
    fresh: f64,
    ages: Vec<f32>,
    lifetimes: Vec<f32>,
    lives: Vec<f32>,
}

/// Collects the lives of pages.
pub(super) struct LivesCount {
    now: DateTime<Utc>,
    by: Option<Grouping>,
    /// The site of each host, if pages are grouped by it.
    sites: Vec<SiteId>,
    groups: HashMap<u32, Group>,
    /// When pages appeared, and when they were gone; seconds since 1970.
    born: Vec<u32>,
    gone: Vec<u32>,
}

impl LivesCount {
    pub(super) fn new(state: &State, by: Option<Grouping>, now: DateTime<Utc>) -> Result<Self, CreditError> {
        let by_site = matches!(by, Some(Grouping::Site | Grouping::Domain));
        let sites = if by_site { state.sites_of_hosts()? } else { Vec::new() };
        Ok(Self { now, by, sites, groups: HashMap::new(), born: Vec::new(), gone: Vec::new() })
    }

    /// Adds a page, with its copy if its rate is known.
    pub(super) fn add(&mut self, page: &Page, visit: &Visit, copy: Option<&PageModel>) {
        let Some(is_there) = is_there(page, visit) else { return };
        let days = |from: u32, to: i64| ((to - i64::from(from)).max(0) as f64 / SECONDS_PER_DAY) as f32;
        let key = match self.by {
            None => 0,
            Some(Grouping::Type) => u32::from(visit.kind),
            Some(_) => self.sites.get(page.host.index()).map_or(u32::MAX, |site| site.0),
        };
        let group = self.groups.entry(key).or_default();
        self.born.push(visit.first_seen);
        if !is_there {
            self.gone.push(visit.failing_since);
            group.gone += 1;
            group.lives.push(days(visit.first_seen, i64::from(visit.failing_since)));
            return;
        }
        let changed = ChangeObservations::from_bytes(&visit.extension).last_change();
        let changed = changed.unwrap_or_else(|| visit.last_changed.max(visit.first_seen));
        group.ages.push(days(changed, self.now.timestamp()));
        if let Some(PageModel { copy, .. }) = copy {
            group.fresh += copy.fresh();
            group.lifetimes.push(copy.belief.per_day.recip() as f32);
        }
    }

    /// Returns what was collected, and the growth from `from` until now.
    pub(super) fn lives(mut self, state: &State, from: DateTime<Utc>) -> Result<Lives, Failure> {
        let mut groups: HashMap<String, Group> = HashMap::new();
        let mut all = Group::default();
        for (key, group) in std::mem::take(&mut self.groups) {
            all.add(&group);
            if self.by.is_some() {
                groups.entry(self.name(state, key)?).or_default().add(&group);
            }
        }
        let mut groups: Vec<GroupLives> =
            groups.into_iter().map(|(name, group)| group.lives(Some(name))).collect();
        groups
            .sort_by(|a, b| (b.pages + b.gone).cmp(&(a.pages + a.gone)).then_with(|| a.group.cmp(&b.group)));
        let groups_left_out = groups.len().saturating_sub(GROUPS_MAX);
        groups.truncate(GROUPS_MAX);
        Ok(Lives { all: all.lives(None), groups, groups_left_out, growth: self.growth(from) })
    }

    fn name(&self, state: &State, key: u32) -> Result<String, CreditError> {
        if self.by == Some(Grouping::Type) {
            let kind = DocumentKind::from_code(u8::try_from(key).unwrap_or_default());
            return Ok(kind.page_type().to_owned());
        }
        let site = state.site_name(SiteId(key))?;
        let is_domain = self.by == Some(Grouping::Domain);
        let domain = site.split_once('.').filter(|_| is_domain && site.parse::<std::net::IpAddr>().is_err());
        Ok(domain.map_or(site.as_str(), |(_, domain)| domain).to_owned())
    }

    fn growth(mut self, from: DateTime<Utc>) -> Vec<Growth> {
        self.born.sort_unstable();
        self.gone.sort_unstable();
        let Some(first) = self.born.first().and_then(|first| DateTime::from_timestamp(i64::from(*first), 0))
        else {
            return Vec::new();
        };
        let from = from.max(first);
        let part = (self.now - from).max(TimeDelta::seconds(1)) / PARTS;
        let before = |times: &[u32], end: DateTime<Utc>| {
            times.partition_point(|time| i64::from(*time) < end.timestamp()) as u64
        };
        let grown = |number: i32| {
            let begin = from + part * number;
            // The last part ends now, with what was captured at this moment.
            let end = if number + 1 == PARTS { self.now + TimeDelta::seconds(1) } else { begin + part };
            let [new, gone] =
                [&self.born, &self.gone].map(|times| [before(times, begin), before(times, end)]);
            Growth {
                from: begin,
                days: part.as_seconds_f64() / SECONDS_PER_DAY,
                new: new[1] - new[0],
                gone: gone[1] - gone[0],
                pages: new[1] - gone[1],
            }
        };
        (0..PARTS).map(grown).collect()
    }
}

impl Group {
    fn add(&mut self, other: &Self) {
        self.gone += other.gone;
        self.fresh += other.fresh;
        self.ages.extend(&other.ages);
        self.lifetimes.extend(&other.lifetimes);
        self.lives.extend(&other.lives);
    }

    fn lives(self, group: Option<String>) -> GroupLives {
        GroupLives {
            group,
            pages: self.ages.len() as u64,
            gone: self.gone,
            freshness: self.fresh / self.lifetimes.len().max(1) as f64,
            age_days: DaysSpread::of(self.ages),
            lifetime_days: DaysSpread::of(self.lifetimes),
            life_days: DaysSpread::of(self.lives),
        }
    }
}

#[cfg(test)]
mod tests {
    use archive_storage::HostId;

    use super::*;

    #[test]
    fn each_time_is_in_one_class() {
        let classes: Vec<DaysClass> = DaysClass::all().collect();
        for days in [0.0, 0.04, 1.0, 6.9, 7.0, 364.9, 365.0, 1e6] {
            assert_eq!(classes.iter().filter(|class| class.contains(days)).count(), 1, "{days}");
        }
        let spread = DaysSpread::of(vec![400.0, 0.5, 1.0, 2.0, 8.0]);
        assert_eq!((spread.count, spread.quartiles), (5, [1.0, 2.0, 8.0]));
        assert_eq!(spread.classes, [0, 1, 2, 1, 0, 0, 1]);
        assert!((spread.mean - 82.3).abs() < 1e-3);
        let none = DaysSpread::of(Vec::new());
        assert_eq!((none.mean, none.quartiles, none.classes), (0.0, [0.0; 3], vec![0; 7]));
    }

    #[test]
    fn pages_come_and_go() {
        const DAY: u32 = 86_400;
        let now = DateTime::from_timestamp(i64::from(120 * DAY), 0).unwrap();
        let mut count = LivesCount {
            now,
            by: None,
            sites: Vec::new(),
            groups: HashMap::new(),
            born: Vec::new(),
            gone: Vec::new(),
        };
        let page = Page {
            cash: 0,
            host: HostId(0),
            via: None,
            depth: 0,
            hop: 0,
            flags: page_flags::ACCOUNT,
            visit: None,
        };
        // A page a day, each of which is there for twenty days.
        for day in 1..=120 {
            let end = day + 20;
            let failing_since = if end < 120 { end * DAY } else { 0 };
            let visit = Visit { contents: 1, first_seen: day * DAY, failing_since, ..Visit::default() };
            count.add(&page, &visit, None);
        }
        // Without content it is no page.
        count.add(&page, &Visit { first_seen: DAY, ..Visit::default() }, None);
        let growth = count.growth(DateTime::from_timestamp(0, 0).unwrap());
        assert_eq!(growth.iter().map(|part| part.new).sum::<u64>(), 120);
        assert_eq!(growth.iter().map(|part| part.gone).sum::<u64>(), 99);
        assert_eq!(growth.last().unwrap().pages, 21);
        assert!(
            growth[4..].iter().all(|part| part.new.abs_diff(10) <= 1 && part.pages.abs_diff(20) <= 1),
            "{growth:?}"
        );
    }
}
