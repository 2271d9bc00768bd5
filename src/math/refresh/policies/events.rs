//! Shared events: pages of a site with the same last-modified time changed together, so others may have changed too.
//!
//! Each observed time is an event. The share q of visited pages that took part is estimated for the group. In the
//! layered form it is also estimated for each directory, shrunk towards that of the site. A page not visited since gets
//! -ln(1-q) added to λτ.

use std::collections::HashMap;

use super::estimates::Estimates;
use super::ranked::Ageing;
use super::{RefreshProblem, Sighting};

/// Which pages share events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sharing {
    /// Pages of a directory.
    Directory,
    /// Pages of a site, with shares by directory.
    Layered,
}

/// Times within this many days are one event.
const SAME_DAYS: f64 = 0.05;
/// Maximum share.
const SHARE_MAX: f64 = 0.97;

impl Sharing {
    /// Events are forgotten after this share of the experiment.
    fn memory(self) -> f64 {
        if self == Self::Directory { 0.1 } else { 0.15 }
    }

    fn events_max(self) -> usize {
        if self == Self::Directory { 12 } else { 16 }
    }
}

struct SharedEvent {
    at: f64,
    hits: f64,
    exposed: f64,
    /// Number of hits and of exposed visits by directory.
    directories: HashMap<usize, (f64, f64)>,
}

pub(super) struct SharedEvents {
    sharing: Sharing,
    group: Vec<usize>,
    directory: Vec<usize>,
    members: Vec<Vec<usize>>,
    events: Vec<Vec<SharedEvent>>,
    /// What the events add to the λτ of each page.
    added: Vec<f64>,
    last: Vec<f64>,
    memory: f64,
    shares: Vec<f64>,
}

impl SharedEvents {
    pub(super) fn new(sharing: Sharing, known: &RefreshProblem) -> Self {
        let (group, groups) = match sharing {
            Sharing::Directory => (known.directory.clone(), known.directories),
            Sharing::Layered => (known.site.clone(), known.sites),
        };
        let mut members = vec![Vec::new(); groups];
        group.iter().enumerate().for_each(|(page, &group)| members[group].push(page));
        Self {
            sharing,
            group,
            directory: known.directory.clone(),
            members,
            events: std::iter::repeat_with(Vec::new).take(groups).collect(),
            added: vec![0.0; known.importance.len()],
            last: known.found.clone(),
            memory: sharing.memory() * known.days,
            shares: vec![f64::NAN; known.directories],
        }
    }

    fn book(&mut self, now: f64, visit: &Sighting, touched: &mut Vec<usize>) {
        let (page, before) = (visit.page, now - visit.age);
        let (group, directory) = (self.group[page], self.directory[page]);
        for event in self.events[group].iter_mut().filter(|event| event.at > before) {
            let masked = visit.changed.is_some_and(|at| at > event.at + SAME_DAYS);
            if masked {
                continue;
            }
            let hit = visit.changed.is_some_and(|at| (at - event.at).abs() <= SAME_DAYS);
            let hit = f64::from(u8::from(hit));
            event.hits += hit;
            event.exposed += 1.0;
            let shares = event.directories.entry(directory).or_default();
            *shares = (shares.0 + hit, shares.1 + 1.0);
            touched.push(group);
        }
        if let Some(at) = visit.changed
            && !self.events[group].iter().any(|event| (event.at - at).abs() <= SAME_DAYS)
        {
            let first = if self.sharing == Sharing::Directory { 1.0 } else { 0.0 };
            let event = SharedEvent { at, hits: first, exposed: first, directories: HashMap::new() };
            self.events[group].push(event);
            touched.push(group);
        }
        self.last[page] = now;
        self.added[page] = 0.0;
    }

    fn forget(&mut self, group: usize, now: f64) {
        let (memory, events_max, sharing) = (self.memory, self.sharing.events_max(), self.sharing);
        let events = &mut self.events[group];
        events.retain(|event| now - event.at < memory);
        if events.len() > events_max {
            let worth = |event: &SharedEvent| match sharing {
                Sharing::Directory => event.hits / event.exposed * event.hits.min(5.0),
                Sharing::Layered => event.share(sharing) * (1.0 + event.exposed.min(3.0)),
            };
            events.sort_by(|a, b| worth(b).total_cmp(&worth(a)));
            events.truncate(events_max);
        }
    }

    fn add(&mut self, group: usize) {
        let members = &self.members[group];
        members.iter().for_each(|&page| self.added[page] = 0.0);
        for event in &self.events[group] {
            let share = event.share(self.sharing);
            let local = self.sharing == Sharing::Layered;
            let known_somewhere = local && event.directories.values().any(|(hits, _)| *hits > 0.0);
            if share < if local { 0.03 } else { 0.02 } && !known_somewhere {
                continue;
            }
            let narrowed = |(&directory, &(hits, exposed)): (&usize, &(f64, f64))| {
                (directory, (hits + 2.0 * share) / (exposed + 2.0))
            };
            if local {
                event.directories.iter().map(narrowed).for_each(|(at, share)| self.shares[at] = share);
            }
            for &page in members.iter().filter(|&&page| self.last[page] < event.at) {
                let narrow = self.shares[self.directory[page]];
                let share = if narrow.is_nan() { share } else { narrow };
                self.added[page] -= (-share.clamp(0.0, SHARE_MAX)).ln_1p();
            }
            event.directories.keys().for_each(|&directory| self.shares[directory] = f64::NAN);
        }
    }
}

impl SharedEvent {
    fn share(&self, sharing: Sharing) -> f64 {
        match sharing {
            Sharing::Directory => ((self.hits - 0.98) / (self.exposed + 1.0)).clamp(0.0, SHARE_MAX),
            Sharing::Layered => (self.hits + 0.02) / (self.exposed + 2.0),
        }
    }
}

impl Ageing for SharedEvents {
    fn age(&self, page: usize, rate: f64, age: f64) -> f64 {
        age + self.added[page] / rate
    }

    fn seen(&mut self, now: f64, visits: &[Sighting], _estimates: &Estimates) {
        let mut touched = Vec::new();
        visits.iter().for_each(|visit| self.book(now, visit, &mut touched));
        touched.sort_unstable();
        touched.dedup();
        for group in touched {
            self.forget(group, now);
            self.add(group);
        }
    }
}
