//! Shared change times of the pages of a site, as a measure of time: quiet days count for less than a day, and moments
//! in which many pages changed for many days.
//!
//! The pages of a site share one random measure, a generalised gamma process (Brix, "Generalized gamma measures and
//! shot-noise Cox processes", 1999): a page of rate λ changes λ M times on average during a measure of M. Each observed
//! last-modified time is an event with its own jump, learned from the visits that could have seen it. Between events
//! the measure runs the slower, the more visits found nothing there. Each directory has its own share in an event,
//! shrunk towards the share of the site.

/// Discount of a generalised gamma process: how much less an event counts than its hits suggest.
const DISCOUNT: f64 = 0.3;
/// Prior exposure of an event or a span, in expected changes.
const CAUTION: f64 = 0.2;
/// Prior strength, in changes, with which the share of a directory in an event equals that of the site.
const DIRECTORY_CAUTION: f64 = 0.1;
/// Last-modified times within this many days are one event.
pub(super) const SAME_DAYS: f64 = 0.05;
/// Maximum number of events kept per site.
const EVENTS_MAX: usize = 64;
/// Maximum number of spans per site whose exposure is recorded.
const SPANS_MAX: usize = 48;

#[derive(Clone, Copy, Debug)]
struct ChangeEvent {
    at: f64,
    id: u32,
    hits: f64,
    /// Σ λ over the visits that could have seen it.
    exposure: f64,
}

impl ChangeEvent {
    /// Contribution of the event to the measure, in days.
    fn jump(&self) -> f64 {
        (self.hits - DISCOUNT).max(0.0) / (CAUTION + self.exposure)
    }
}

/// A span of time up to the beginning of the next one, with Σ λ over the visits that cover it.
#[derive(Clone, Copy, Debug)]
struct QuietSpan {
    from: f64,
    exposure: f64,
}

impl QuietSpan {
    /// Pace of the measure outside of events.
    fn pace(&self) -> f64 {
        (CAUTION / (CAUTION + self.exposure)).powf(1.0 - DISCOUNT)
    }
}

#[derive(Clone, Debug)]
struct SiteTimeline {
    events: Vec<ChangeEvent>,
    spans: Vec<QuietSpan>,
    /// Measure outside of events up to the beginning of each span.
    quiet: Vec<f64>,
    /// Incremented whenever the site changes.
    version: u32,
}

#[derive(Clone, Debug)]
struct DirectoryTimeline {
    site: usize,
    /// The directory's own counts of events, in order of time.
    own: Vec<ChangeEvent>,
    /// For each event of the site, the sum of the jumps from it on, as seen by this directory.
    later: Vec<f64>,
    /// Version of the site for which `later` was computed.
    version: u32,
}

/// Measures of all sites and directories.
#[derive(Clone, Debug)]
pub(super) struct Timelines {
    sites: Vec<SiteTimeline>,
    directories: Vec<DirectoryTimeline>,
    next_id: u32,
}

impl Timelines {
    /// Creates timelines, given the site of each directory.
    pub(super) fn new(directories: &[usize], sites: usize) -> Self {
        let site = SiteTimeline {
            events: Vec::new(),
            spans: vec![QuietSpan { from: 0.0, exposure: 0.0 }],
            quiet: vec![0.0],
            version: 0,
        };
        let directory =
            |&site: &usize| DirectoryTimeline { site, own: Vec::new(), later: vec![0.0], version: 0 };
        Self {
            sites: vec![site; sites],
            directories: directories.iter().map(directory).collect(),
            next_id: 0,
        }
    }

    /// Updates the sums of a directory, so that [`between`](Self::between) need not compute them at each call.
    pub(super) fn sum(&mut self, directory: usize) {
        let directory = &mut self.directories[directory];
        let site = &self.sites[directory.site];
        if directory.version != site.version {
            directory.sum(site);
        }
    }

    /// Updates the sums of all directories.
    pub(super) fn sum_all(&mut self) {
        (0..self.directories.len()).for_each(|directory| self.sum(directory));
    }

    /// Returns the measure, in days, between `from` and `now` for a page of `directory`.
    pub(super) fn between(&self, directory: usize, from: f64, now: f64) -> f64 {
        let directory = &self.directories[directory];
        let site = &self.sites[directory.site];
        let next = site.events.partition_point(|event| event.at <= from);
        let later = if directory.version == site.version {
            directory.later[next]
        } else {
            directory.sums(site).get(next).copied().unwrap_or(0.0)
        };
        later + site.quiet_at(now) - site.quiet_at(from)
    }

    /// Records a visit of a page of `directory` with `rate`, without changes since `from` except the one at `changed`.
    pub(super) fn book(&mut self, directory: usize, from: f64, changed: Option<f64>, rate: f64) {
        let directory = &mut self.directories[directory];
        let site = &mut self.sites[directory.site];
        let mut met = false;
        for event in site.events.iter_mut().rev().take_while(|event| event.at >= from - SAME_DAYS) {
            let hit = !met && changed.is_some_and(|at| (event.at - at).abs() <= SAME_DAYS);
            met |= hit;
            if hit || event.at > from {
                let hits = f64::from(u8::from(hit));
                event.hits += hits;
                event.exposure += rate;
                directory.count(event, hits, rate);
            }
        }
        if let (Some(at), false) = (changed, met) {
            // Earlier visits that cover this time did not see the event.
            let span = site.spans.partition_point(|span| span.from <= at).max(1) - 1;
            let event =
                ChangeEvent { at, id: self.next_id, hits: 1.0, exposure: site.spans[span].exposure + rate };
            self.next_id = self.next_id.wrapping_add(1);
            site.events.insert(site.events.partition_point(|other| other.at <= at), event);
            directory.count(&event, 1.0, rate);
        }
        for span in site.spans.iter_mut().rev().take_while(|span| span.from >= from - 1e-9) {
            span.exposure += rate;
        }
    }

    /// Ends the recording of visits of a site at `now`: bounds its memory and updates its measure.
    pub(super) fn close(&mut self, site: usize, now: f64) {
        let site = &mut self.sites[site];
        site.spans.push(QuietSpan { from: now, exposure: 0.0 });
        while site.spans.len() > SPANS_MAX {
            site.merge_spans(now);
        }
        while site.events.len() > EVENTS_MAX {
            site.forget_event(now);
        }
        site.sum();
        site.version = site.version.wrapping_add(1);
    }
}

impl SiteTimeline {
    fn quiet_at(&self, time: f64) -> f64 {
        let span = self.spans.partition_point(|span| span.from <= time).max(1) - 1;
        self.quiet[span] + (time - self.spans[span].from) * self.spans[span].pace()
    }

    /// Merges the two neighbouring spans that are shortest relative to their age.
    fn merge_spans(&mut self, now: f64) {
        let length = |k: usize| self.spans[k + 1].from - self.spans[k - 1].from;
        let score = |k: usize| length(k) / (now - self.spans[k].from + 1e-3);
        let best = (1..self.spans.len() - 1).min_by(|&a, &b| score(a).total_cmp(&score(b))).unwrap_or(1);
        let (before, here, end) = (self.spans[best - 1], self.spans[best], self.spans[best + 1].from);
        let sum = before.exposure * (here.from - before.from) + here.exposure * (end - here.from);
        self.spans[best - 1].exposure = sum / (end - before.from);
        self.spans.remove(best);
    }

    /// Drops the least significant event, preferring small and old ones.
    fn forget_event(&mut self, now: f64) {
        let worth = |event: &ChangeEvent| event.jump() * (1.0 + 3.0 / (1.0 + now - event.at).sqrt());
        let least = (0..self.events.len())
            .min_by(|&a, &b| worth(&self.events[a]).total_cmp(&worth(&self.events[b])))
            .unwrap_or(0);
        self.events.remove(least);
    }

    fn sum(&mut self) {
        let mut sum = 0.0;
        self.quiet.clear();
        for (k, span) in self.spans.iter().enumerate() {
            self.quiet.push(sum);
            if let Some(next) = self.spans.get(k + 1) {
                sum += (next.from - span.from) * span.pace();
            }
        }
    }
}

impl DirectoryTimeline {
    fn count(&mut self, event: &ChangeEvent, hits: f64, exposure: f64) {
        match self.own.iter_mut().rfind(|own| own.id == event.id) {
            Some(own) => {
                own.hits += hits;
                own.exposure += exposure;
            }
            None => {
                let place = self.own.partition_point(|own| own.at <= event.at);
                self.own.insert(place, ChangeEvent { hits, exposure, ..*event });
            }
        }
    }

    fn sum(&mut self, site: &SiteTimeline) {
        self.version = site.version;
        // Drop the events that the site no longer has.
        if self.own.len() > EVENTS_MAX {
            self.own.retain(|own| {
                let place = site.events.partition_point(|event| event.at < own.at);
                site.events[place..]
                    .iter()
                    .take_while(|event| event.at == own.at)
                    .any(|event| event.id == own.id)
            });
        }
        self.later = self.sums(site);
    }

    /// For each event of the site, returns the sum of jumps from it on.
    fn sums(&self, site: &SiteTimeline) -> Vec<f64> {
        let mut later = vec![0.0; site.events.len() + 1];
        let mut own = self.own.iter().rev().peekable();
        let mut sum = 0.0;
        for (k, event) in site.events.iter().enumerate().rev() {
            while own.next_if(|own| (own.at, own.id) > (event.at, event.id)).is_some() {}
            let jump = event.jump();
            sum += match own.peek().filter(|own| own.id == event.id) {
                Some(own) => {
                    jump * (own.hits + DIRECTORY_CAUTION) / (own.exposure * jump + DIRECTORY_CAUTION)
                }
                None => jump,
            };
            later[k] = sum;
        }
        later
    }
}
