//! Changes that pages of a site make together, as a measure of time: days in which nothing happened count for less than
//! a day, moments in which many pages changed for many.
//!
//! A site's pages share one random measure, a generalised gamma process (Brix, "Generalized gamma measures and shot-noise Cox
//! processes", 1999): a page of rate λ that was away for a measure of M changed λ M times on average. Each last-modified time
//! that was seen is an event with a jump of its own, learned from the visits that could have met it; between events the
//! measure runs the slower the more visits found nothing there. Directories have their own share in each event, shrunk
//! to the site's.

/// How much less an event counts than the visits that met it say: the discount of a generalised gamma process.
const DISCOUNT: f64 = 0.3;
/// Changes that the pages would have made on their own before a jump is believed.
const CAUTION: f64 = 0.2;
/// Changes before a directory's share in an event is believed to differ from the site's.
const DIRECTORY_CAUTION: f64 = 0.1;
/// Last-modified times this close are one event, in days.
pub(super) const SAME_DAYS: f64 = 0.05;
/// Events kept for a site.
const EVENTS_MAX: usize = 64;
/// Stretches of time of which it is kept how well they were observed, for a site.
const SPANS_MAX: usize = 48;

#[derive(Clone, Copy, Debug)]
struct Event {
    at: f64,
    id: u32,
    hits: f64,
    /// Σ λ over the visits that could have met it.
    exposure: f64,
}

impl Event {
    /// What the event adds to the measure, in days.
    fn jump(&self) -> f64 {
        (self.hits - DISCOUNT).max(0.0) / (CAUTION + self.exposure)
    }
}

/// A stretch of time up to the next one's beginning, and Σ λ over the visits that looked back on it.
#[derive(Clone, Copy, Debug)]
struct Span {
    from: f64,
    exposure: f64,
}

impl Span {
    /// How fast the measure runs outside of events.
    fn pace(&self) -> f64 {
        (CAUTION / (CAUTION + self.exposure)).powf(1.0 - DISCOUNT)
    }
}

#[derive(Clone, Debug)]
struct Site {
    events: Vec<Event>,
    spans: Vec<Span>,
    /// The measure outside of events up to each span's beginning.
    quiet: Vec<f64>,
    /// Counts the moments at which anything of it changed.
    version: u32,
}

#[derive(Clone, Debug)]
struct Directory {
    site: usize,
    /// Its own part in events, by their order in time.
    own: Vec<Event>,
    /// The sum of the jumps of the site's events from each on, as this directory has them.
    later: Vec<f64>,
    /// The site's version of which `later` is.
    version: u32,
}

/// The measures of all sites and directories.
#[derive(Clone, Debug)]
pub(super) struct Timelines {
    sites: Vec<Site>,
    directories: Vec<Directory>,
    next_id: u32,
}

impl Timelines {
    /// For directories with the site of each.
    pub(super) fn new(directories: &[usize], sites: usize) -> Self {
        let site = Site {
            events: Vec::new(),
            spans: vec![Span { from: 0.0, exposure: 0.0 }],
            quiet: vec![0.0],
            version: 0,
        };
        let directory = |&site: &usize| Directory { site, own: Vec::new(), later: vec![0.0], version: 0 };
        Self {
            sites: vec![site; sites],
            directories: directories.iter().map(directory).collect(),
            next_id: 0,
        }
    }

    /// Sums a directory up, so that [`between`](Self::between) need not do it at each call.
    pub(super) fn sum(&mut self, directory: usize) {
        let directory = &mut self.directories[directory];
        let site = &self.sites[directory.site];
        if directory.version != site.version {
            directory.sum(site);
        }
    }

    /// Sums all directories up.
    pub(super) fn sum_all(&mut self) {
        (0..self.directories.len()).for_each(|directory| self.sum(directory));
    }

    /// The measure in days of what lies between `from` and `now` for a page of `directory`.
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

    /// A visit of a page of `directory` with `rate`, free of changes since `from` but for the one at `changed`.
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
            // Who looked back on this time before did not meet the event.
            let span = site.spans.partition_point(|span| span.from <= at).max(1) - 1;
            let event = Event { at, id: self.next_id, hits: 1.0, exposure: site.spans[span].exposure + rate };
            self.next_id = self.next_id.wrapping_add(1);
            site.events.insert(site.events.partition_point(|other| other.at <= at), event);
            directory.count(&event, 1.0, rate);
        }
        for span in site.spans.iter_mut().rev().take_while(|span| span.from >= from - 1e-9) {
            span.exposure += rate;
        }
    }

    /// Ends the moment `now` for a site of whose pages some were booked: bounds its memory, sums its measure again.
    pub(super) fn close(&mut self, site: usize, now: f64) {
        let site = &mut self.sites[site];
        site.spans.push(Span { from: now, exposure: 0.0 });
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

impl Site {
    fn quiet_at(&self, time: f64) -> f64 {
        let span = self.spans.partition_point(|span| span.from <= time).max(1) - 1;
        self.quiet[span] + (time - self.spans[span].from) * self.spans[span].pace()
    }

    /// Joins the two neighbouring spans that are shortest for their age.
    fn merge_spans(&mut self, now: f64) {
        let length = |k: usize| self.spans[k + 1].from - self.spans[k - 1].from;
        let score = |k: usize| length(k) / (now - self.spans[k].from + 1e-3);
        let best = (1..self.spans.len() - 1).min_by(|&a, &b| score(a).total_cmp(&score(b))).unwrap_or(1);
        let (before, here, end) = (self.spans[best - 1], self.spans[best], self.spans[best + 1].from);
        let sum = before.exposure * (here.from - before.from) + here.exposure * (end - here.from);
        self.spans[best - 1].exposure = sum / (end - before.from);
        self.spans.remove(best);
    }

    /// Drops the event that matters least, small ones and old ones first.
    fn forget_event(&mut self, now: f64) {
        let worth = |event: &Event| event.jump() * (1.0 + 3.0 / (1.0 + now - event.at).sqrt());
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

impl Directory {
    fn count(&mut self, event: &Event, hits: f64, exposure: f64) {
        match self.own.iter_mut().rfind(|own| own.id == event.id) {
            Some(own) => {
                own.hits += hits;
                own.exposure += exposure;
            }
            None => {
                let place = self.own.partition_point(|own| own.at <= event.at);
                self.own.insert(place, Event { hits, exposure, ..*event });
            }
        }
    }

    fn sum(&mut self, site: &Site) {
        self.version = site.version;
        // What the site has forgotten.
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

    /// The sum of jumps from each of the site's events on.
    fn sums(&self, site: &Site) -> Vec<f64> {
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
