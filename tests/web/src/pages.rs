//! The true state of a page at a time: whether it exists, what it repeats, how often it changes, its current version.

use super::Web;
use super::changes::{Past, Process};
use super::layout::{BRANCHES, Host, section};
use super::random::Subject;

const DAY_MICROS: f64 = 86_400e6;
/// Births and deaths of pages are spread over this many days from the start.
const LIFE_DAYS: f64 = 730.0;
/// Pages that exist from the start are up to this many days older than it.
const AGE_DAYS: f64 = 1000.0;
/// Number of pages tried as the original of a duplicate.
const ORIGINAL_TRIES: u64 = 6;
/// Largest distance, in pages, from a duplicate back to its original.
const ORIGINAL_DISTANCE_MAX: u64 = 7;

/// Whether a page can be fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Existence {
    NotYet,
    Here,
    Vanished,
}

/// The page that another page repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Original {
    /// Its number on the host.
    pub(super) local: u32,
    /// Whether the copy is identical byte for byte.
    pub(super) exact: bool,
}

/// The pages that a document is generated from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Face {
    /// Page that the document presents itself as: the original for an exact copy.
    pub(super) local: u32,
    /// Page that the text and free links come from: the original for a near duplicate, too.
    pub(super) source: u32,
}

/// A version of a page's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    /// 0 at first, one more with each change.
    pub(super) number: u64,
    /// Start of the version, in microseconds since 1970.
    pub(super) since: i64,
}

impl Web {
    fn start(&self) -> i64 {
        self.config.start.timestamp_micros()
    }

    /// Returns the time at which a page is born; `None` if it exists from the start.
    fn birth(&self, host: &Host, local: u32) -> Option<i64> {
        if self.config.birth_share == 0.0 || local == 0 || !host.is_leaf(local) {
            return None;
        }
        let key = host.page_key(local).of(Subject::Birth);
        key.chance(self.config.birth_share).then(|| self.start() + days(key.at(1).unit() * LIFE_DAYS))
    }

    fn death(&self, host: &Host, local: u32) -> Option<i64> {
        if self.config.death_share == 0.0 || local == 0 || !host.is_leaf(local) {
            return None;
        }
        let key = host.page_key(local).of(Subject::Death);
        if !key.chance(self.config.death_share) {
            return None;
        }
        let from = self.birth(host, local).unwrap_or_else(|| self.start());
        Some(from + days(key.at(1).unit() * LIFE_DAYS))
    }

    /// Returns whether a page exists at `now`.
    pub(super) fn existence(&self, host: &Host, local: u32, now: i64) -> Existence {
        if !self.is_born(host, local, now) {
            Existence::NotYet
        } else if self.death(host, local).is_some_and(|death| death <= now) {
            Existence::Vanished
        } else {
            Existence::Here
        }
    }

    /// Whether a page has been born by `now`.
    pub(super) fn is_born(&self, host: &Host, local: u32, now: i64) -> bool {
        self.birth(host, local).is_none_or(|birth| birth <= now)
    }

    /// Returns the page of the same host whose content this page repeats.
    pub(super) fn original_of(&self, host: &Host, local: u32) -> Option<Original> {
        let (exact, near) = (self.config.duplicate_share, self.config.near_duplicate_share);
        let repeats = |local: u32| {
            let draw = host.page_key(local).of(Subject::Duplicate).unit();
            local > BRANCHES && host.is_leaf(local) && draw < exact + near
        };
        if exact + near == 0.0 || !repeats(local) {
            return None;
        }
        let key = host.page_key(local).of(Subject::Duplicate);
        let form = self.layout.form(host, local);
        // Relative links resolve alike in the original and in the copy only if both are in the same section.
        (1..=ORIGINAL_TRIES)
            .map(|attempt| {
                local - 1 - key.at(attempt).below(ORIGINAL_DISTANCE_MAX.min(u64::from(local) - 1)) as u32
            })
            .filter(|other| section(*other) == section(local) && self.layout.form(host, *other) == form)
            .find(|other| !repeats(*other))
            .map(|other| Original { local: other, exact: key.unit() < exact })
    }

    /// Returns the pages that the document of a page is generated from.
    pub(super) fn face_of(&self, host: &Host, local: u32) -> Face {
        match self.original_of(host, local) {
            None => Face { local, source: local },
            Some(original) if original.exact => Face { local: original.local, source: original.local },
            Some(original) => Face { local, source: original.local },
        }
    }

    /// Returns the rate of a page's own changes per day.
    pub(super) fn rate_of(&self, host: &Host, local: u32) -> f64 {
        let rates = &self.config.changes;
        let mut stream = host.page_key(local).of(Subject::Rate).stream();
        if stream.unit() < rates.never_share {
            return 0.0;
        }
        (rates.median_per_day * (rates.spread * stream.normal()).exp()).min(rates.per_day_max)
    }

    /// Returns the version of a page's own content at `now` (a duplicate changes with its original).
    pub(super) fn version_of(&self, host: &Host, local: u32, now: i64) -> Version {
        let local = self.original_of(host, local).map_or(local, |original| original.local);
        let birth = self.birth(host, local);
        let before = birth.map_or(0, |birth| self.past_of(host, local, birth).count);
        let past = self.past_of(host, local, now);
        let since = past.last.filter(|_| past.count > before).map(|last| last + self.start());
        Version {
            number: past.count.saturating_sub(before),
            since: since.or(birth).unwrap_or_else(|| self.first_seen(host, local)),
        }
    }

    /// Returns the creation time of a page that exists from the start: some time before the start.
    fn first_seen(&self, host: &Host, local: u32) -> i64 {
        self.start() - days(host.page_key(local).of(Subject::Created).unit() * AGE_DAYS)
    }

    /// Returns the changes of a page up to `now`, its own and those through edits of its site.
    fn past_of(&self, host: &Host, local: u32, now: i64) -> Past {
        let elapsed = now - self.start();
        let own = self.own_changes(host, local).past(elapsed);
        if self.config.site_edits.per_day == 0.0 {
            return own;
        }
        let edits = self.site_changes(host, local, -1, elapsed);
        Past { count: own.count + edits.len() as u64, last: own.last.max(edits.last().copied()) }
    }

    fn own_changes(&self, host: &Host, local: u32) -> Process {
        Process::new(host.page_key(local), self.rate_of(host, local))
    }

    /// Returns the times of the site's edits, after `from` up to and including `to`, that affect the page.
    fn site_changes(&self, host: &Host, local: u32, from: i64, to: i64) -> Vec<i64> {
        let key = self.root.of(Subject::SiteChanges).at(u64::from(host.site));
        let page = host.page_key(local).of(Subject::TakesPart);
        let mut times = Process::new(key, self.config.site_edits.per_day).times(from, to);
        times.retain(|time| page.at(time.cast_unsigned()).chance(self.config.site_edits.share));
        times
    }

    /// Returns the times, in microseconds since 1970, at which a page changed after `from` up to and including `to`.
    pub(super) fn changes_of(&self, host: &Host, local: u32, from: i64, to: i64) -> Vec<i64> {
        let local = self.original_of(host, local).map_or(local, |original| original.local);
        let start = self.start();
        let from = self.birth(host, local).map_or(from, |birth| birth.max(from)) - start;
        let mut times = self.own_changes(host, local).times(from, to - start);
        if self.config.site_edits.per_day > 0.0 {
            times.extend(self.site_changes(host, local, from, to - start));
            times.sort_unstable();
        }
        for time in &mut times {
            *time += start;
        }
        times
    }

    /// Whether a page shows something different at each fetch.
    pub(super) fn is_noisy(&self, host: &Host, local: u32) -> bool {
        host.page_key(local).of(Subject::Noise).chance(self.config.noise_share)
    }

    /// Whether a page sends validators; noisy pages send none.
    pub(super) fn has_validators(&self, host: &Host, local: u32) -> bool {
        host.page_key(local).of(Subject::Validators).chance(self.config.validator_share)
            && !self.is_noisy(host, local)
    }

    /// Returns the section that the robots.txt of a host disallows.
    pub(super) fn forbidden_section(&self, host: &Host) -> Option<u32> {
        let key = host.key.of(Subject::Robots);
        let sections = u64::from(host.pages.min(9)) - 1;
        (sections > 0 && key.chance(self.config.robots_share)).then(|| 1 + key.at(1).below(sections) as u32)
    }

    /// Whether the robots.txt of a host asks for a crawl delay.
    pub(super) fn has_crawl_delay(&self, host: &Host) -> bool {
        host.key.of(Subject::Robots).at(2).chance(self.config.crawl_delay_share)
    }

    /// Whether robots.txt allows a page.
    pub(super) fn is_allowed(&self, host: &Host, local: u32) -> bool {
        local == 0 || self.forbidden_section(host) != Some(section(local))
    }
}

fn days(days: f64) -> i64 {
    (days * DAY_MICROS) as i64
}
