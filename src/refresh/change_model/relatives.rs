//! What lately visited relatives of a page say of it: pages of its site, its directory, its kind, with a name like its.
//!
//! Of each group the last visits are kept. Those that came after a page's own last visit speak for it or against it: how many
//! found a change since that visit, and how many would have by their own rates.

use std::collections::VecDeque;

use rayon::prelude::*;

/// Groups that a page belongs to, from its URL.
pub const RELATIONS: usize = 12;
/// Names of the groups of a page, as hashes.
pub type Relations = [u64; RELATIONS];
/// The relation that is a page's site.
pub(super) const SITE: usize = 0;
/// The relation that is a page's directory.
pub const DIRECTORY: usize = 3;
/// Visits kept of a site, and of any smaller group.
const SITE_VISITS_MAX: usize = 64;
const VISITS_MAX: usize = 16;
/// The group of a page that is alone in it.
const ALONE: u32 = u32::MAX;

/// Names of the groups of a page of the site of this number, with this path.
#[must_use]
pub fn relations(site: u64, path: &str) -> Relations {
    let (directory, file) = path.rsplit_once('/').unwrap_or(("", path));
    let folders = |count: usize| {
        let end = directory.match_indices('/').nth(count - 1).map_or(directory.len(), |(at, _)| at);
        &directory[..end]
    };
    let last_folder = directory.rsplit('/').next().unwrap_or_default();
    let extension = file.rsplit('.').next().unwrap_or_default();
    let stem = file.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
    let name = file.rsplit_once('.').map_or(file, |(name, _)| name);
    let letters = name.chars().count();
    let beginning = |count: usize| {
        let end = name.char_indices().nth(count).map_or(name.len(), |(at, _)| at);
        &name[..end]
    };
    let of_site = hash(HASH_OF_NOTHING, &site.to_le_bytes());
    // No text has this byte: it marks where a part ends.
    let of = |before: u64, part: &str| hash(hash(before, part.as_bytes()), &[0xFF]);
    let of_directory = of(of_site, directory);
    let names = [
        of_site,
        of(of_site, folders(1)),
        of(of_site, folders(2)),
        of_directory,
        of(of_site, last_folder),
        of(of_site, extension),
        of(of_directory, stem),
        of(of_site, file),
        of(of_directory, beginning(letters.saturating_sub(1).max(1))),
        of(of_directory, beginning(letters.saturating_sub(2).max(1))),
        of(of_directory, beginning(1)),
        of(of_directory, beginning(3)),
    ];
    std::array::from_fn(|relation| hash(names[relation], &[relation as u8]))
}

/// FNV-1a, which is the same everywhere, of something that begins as what another hash is of.
fn hash(before: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(before, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

const HASH_OF_NOTHING: u64 = 0xcbf2_9ce4_8422_2325;

/// A visit of a page of a group.
#[derive(Clone, Copy, Debug)]
struct Past {
    at: f64,
    /// When the page last changed as this visit knew it.
    changed: f64,
    rate: f64,
}

/// Sums over the visits of one group since a page's own last one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Evidence {
    /// Visits.
    pub(super) visits: f64,
    /// That found a change since.
    pub(super) hits: f64,
    /// That would have by their own rates.
    pub(super) expected: f64,
}

/// Bytes of the state of a page: its groups.
#[cfg(test)]
pub(super) const PAGE_BYTES: usize = RELATIONS * size_of::<u32>();

/// All groups of all pages.
#[derive(Clone, Debug)]
pub(super) struct Relatives {
    /// The last visits of each group, in the order of their times.
    groups: Vec<VecDeque<Past>>,
    of_page: Vec<[u32; RELATIONS]>,
}

/// The group of each page by a relation, and how many groups there are.
fn groups_of(pages: &[Relations], relation: usize) -> (Vec<u32>, u32) {
    let mut named: Vec<(u64, u32)> = pages.iter().map(|names| names[relation]).zip(0..).collect();
    named.sort_unstable();
    let (mut of_pages, mut groups) = (vec![ALONE; pages.len()], 0);
    for group in named.chunk_by(|one, other| one.0 == other.0).filter(|group| group.len() > 1) {
        for (_, page) in group {
            of_pages[*page as usize] = groups;
        }
        groups += 1;
    }
    (of_pages, groups)
}

impl Relatives {
    /// Groups by the names that [`relations`] gave.
    pub(super) fn new(pages: &[Relations]) -> Self {
        let of_relations: Vec<(Vec<u32>, u32)> =
            (0..RELATIONS).into_par_iter().map(|relation| groups_of(pages, relation)).collect();
        let mut of_page = vec![[ALONE; RELATIONS]; pages.len()];
        let mut groups = 0;
        for (relation, (of_pages, count)) in of_relations.iter().enumerate() {
            for (page, group) in of_page.iter_mut().zip(of_pages).filter(|(_, group)| **group != ALONE) {
                page[relation] = groups + group;
            }
            groups += count;
        }
        Self { groups: vec![VecDeque::new(); groups as usize], of_page }
    }

    /// What the groups say of `page`, last visited at `since`.
    pub(super) fn evidence(&self, page: usize, since: f64) -> [Evidence; RELATIONS] {
        self.of_page[page].map(|group| {
            let Some(visits) = self.groups.get(group as usize) else { return Evidence::default() };
            let later = visits.iter().rev().take_while(|past| past.at > since);
            later.fold(Evidence::default(), |sum, past| Evidence {
                visits: sum.visits + 1.0,
                hits: sum.hits + f64::from(u8::from(past.changed > since)),
                expected: sum.expected - (-past.rate * (past.at - since)).exp_m1(),
            })
        })
    }

    /// Books a visit of `page`, which by its `rate` was expected to change and last changed at `changed`.
    pub(super) fn visited(&mut self, page: usize, now: f64, changed: f64, rate: f64) {
        for (relation, &group) in self.of_page[page].iter().enumerate() {
            // A page does not learn from itself.
            let Some(visits) = self.groups.get_mut(group as usize) else { continue };
            if visits.len() == if relation == SITE { SITE_VISITS_MAX } else { VISITS_MAX } {
                visits.pop_front();
            }
            visits.push_back(Past { at: now, changed, rate });
        }
    }
}
