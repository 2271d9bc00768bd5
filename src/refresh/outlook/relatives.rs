//! What lately visited relatives of a page say of it: pages of its site, its directory, its kind, with a name like its.
//!
//! Of each group the last visits are kept. For every page two sums over those that came after its own last visit are
//! kept up to date: how many found a change since that visit, and how many would have by their own rates.

use std::collections::{HashMap, VecDeque};

/// Groups that a page belongs to, from its URL.
pub const RELATIONS: usize = 12;
/// Visits kept of a site, and of any smaller group.
const SITE_VISITS_MAX: usize = 64;
const VISITS_MAX: usize = 16;

/// Names of the groups of a page of `site` with this path.
pub fn relations(site: usize, path: &str) -> [String; RELATIONS] {
    let (directory, file) = path.rsplit_once('/').unwrap_or(("", path));
    let folders = |count: usize| {
        let mut parts = directory.split('/');
        parts.by_ref().take(count).collect::<Vec<_>>().join("/")
    };
    let last_folder = directory.rsplit('/').next().unwrap_or_default();
    let extension = file.rsplit('.').next().unwrap_or_default();
    let stem = file.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
    let name: Vec<char> = file.rsplit_once('.').map_or(file, |(name, _)| name).chars().collect();
    let beginning = |count: usize| name.iter().take(count).collect::<String>();
    [
        format!("{site}"),
        format!("{site}/{}", folders(1)),
        format!("{site}/{}", folders(2)),
        format!("{site}/{directory}"),
        format!("{site}:{last_folder}"),
        format!("{site}:{extension}"),
        format!("{site}:{directory}:{stem}"),
        format!("{site}:{file}"),
        format!("{site}:{directory}:<{}", beginning(name.len().saturating_sub(1).max(1))),
        format!("{site}:{directory}:<{}", beginning(name.len().saturating_sub(2).max(1))),
        format!("{site}:{directory}:1{}", beginning(1)),
        format!("{site}:{directory}:3{}", beginning(3)),
    ]
}

/// A visit of a page of a group.
#[derive(Clone, Copy, Debug)]
struct Past {
    at: f64,
    /// When the page last changed as this visit knew it.
    changed: f64,
    rate: f64,
}

impl Past {
    /// The chance by its own rate that the page changed since.
    fn expected(&self, since: f64) -> f32 {
        -(-self.rate * (self.at - since)).exp_m1() as f32
    }
}

#[derive(Clone, Debug, Default)]
struct Group {
    members: Vec<u32>,
    visits: VecDeque<Past>,
}

/// Sums over the visits of one group since a page's own last one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Evidence {
    /// Visits.
    pub(super) visits: u16,
    /// That found a change since.
    pub(super) hits: u16,
    /// That would have by their own rates.
    pub(super) expected: f32,
}

/// Bytes of the state of a page: its groups, its place in each, what they say.
#[cfg(test)]
pub(super) const PAGE_BYTES: usize = RELATIONS * (2 * size_of::<u32>() + size_of::<Evidence>());

/// All groups of all pages.
#[derive(Clone, Debug)]
pub(super) struct Relatives {
    groups: Vec<Group>,
    of_page: Vec<[u32; RELATIONS]>,
    evidence: Vec<[Evidence; RELATIONS]>,
}

impl Relatives {
    /// Groups by the names that [`relations`] gave.
    pub(super) fn new<'a>(pages: impl Iterator<Item = &'a [String; RELATIONS]>) -> Self {
        let mut numbers: HashMap<(usize, &'a str), u32> = HashMap::new();
        let mut groups: Vec<Group> = Vec::new();
        let mut of_page = Vec::new();
        for (page, names) in pages.enumerate() {
            of_page.push(std::array::from_fn(|relation| {
                let number = *numbers.entry((relation, &names[relation])).or_insert_with(|| {
                    groups.push(Group::default());
                    groups.len() as u32 - 1
                });
                groups[number as usize].members.push(page as u32);
                number
            }));
        }
        let evidence = vec![[Evidence::default(); RELATIONS]; of_page.len()];
        Self { groups, of_page, evidence }
    }

    /// What the groups say of `page`.
    pub(super) fn evidence(&self, page: usize) -> &[Evidence; RELATIONS] {
        &self.evidence[page]
    }

    /// The number of the group of `page` under `relation`.
    pub(super) fn group(&self, page: usize, relation: usize) -> usize {
        self.of_page[page][relation] as usize
    }

    /// How many groups there are.
    pub(super) fn len(&self) -> usize {
        self.groups.len()
    }

    /// Books a visit of `page`, which by its `rate` was expected to change and last changed at `changed`. `last` is when each
    /// page was visited before this.
    pub(super) fn visited(&mut self, page: usize, now: f64, changed: f64, rate: f64, last: &[f64]) {
        let past = Past { at: now, changed, rate };
        for relation in 0..RELATIONS {
            let group = &mut self.groups[self.of_page[page][relation] as usize];
            // Nobody learns from himself.
            if group.members.len() < 2 {
                continue;
            }
            group.visits.push_back(past);
            let visits_max = if relation == 0 { SITE_VISITS_MAX } else { VISITS_MAX };
            let old = if group.visits.len() > visits_max { group.visits.pop_front() } else { None };
            for &member in &group.members {
                let (evidence, last) = (&mut self.evidence[member as usize][relation], last[member as usize]);
                // Before the old visit leaves: no sum is ever negative.
                evidence.add(past, last);
                if let Some(old) = old.filter(|old| old.at > last) {
                    evidence.remove(old, last);
                }
            }
        }
    }

    /// Lets what was learned since their last visit go for pages that were visited at the present moment.
    pub(super) fn settle(&mut self, page: usize) {
        self.evidence[page] = Default::default();
    }
}

impl Evidence {
    fn add(&mut self, past: Past, since: f64) {
        self.visits += 1;
        self.hits += u16::from(past.changed > since);
        self.expected += past.expected(since);
    }

    fn remove(&mut self, past: Past, since: f64) {
        self.visits = self.visits.saturating_sub(1);
        self.hits = self.hits.saturating_sub(u16::from(past.changed > since));
        self.expected -= past.expected(since);
    }
}
