//! Evidence from recent visits of related pages: pages of the same site, directory or type, or with a similar name.
//!
//! The last visits of each group are kept. Those after a page's own last visit are evidence for or against a change:
//! how many of them found a change since that visit, and how many would be expected to by their own rates.

use std::collections::VecDeque;

use rayon::prelude::*;

/// Number of groups that a page belongs to, by its URL.
pub(crate) const RELATIONS: usize = 12;
/// Hashed names of the groups of a page.
pub type Relations = [u64; RELATIONS];
/// The relation of pages of the same site.
pub(super) const SITE: usize = 0;
/// The relation of pages of the same directory.
pub const DIRECTORY: usize = 3;
/// Maximum number of visits kept per site, and per smaller group.
const SITE_VISITS_MAX: usize = 64;
const VISITS_MAX: usize = 16;
/// Group number of a page without relatives.
const ALONE: u32 = u32::MAX;

/// Returns the names of the groups of a page, given the number of its site and its path.
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
    // No text contains this byte, so it marks the end of a part.
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

/// Continues an FNV-1a hash with further bytes. The result does not depend on the platform.
fn hash(before: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(before, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

const HASH_OF_NOTHING: u64 = 0xcbf2_9ce4_8422_2325;

/// A visit of a member of a group.
#[derive(Clone, Copy, Debug)]
struct RelatedVisit {
    at: f64,
    /// Last known change of the page at this visit.
    changed: f64,
    rate: f64,
}

/// Sums over the visits of a group since the page's own last visit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GroupEvidence {
    /// Number of visits.
    pub(super) visits: f64,
    /// Number of visits that found a change since.
    pub(super) hits: f64,
    /// Expected number of such visits by their own rates.
    pub(super) expected: f64,
}

/// Bytes of state per page: its groups.
#[cfg(test)]
pub(super) const PAGE_BYTES: usize = RELATIONS * size_of::<u32>();

/// The groups of all pages.
#[derive(Clone, Debug)]
pub(super) struct Relatives {
    /// The last visits of each group, in order of time.
    groups: Vec<VecDeque<RelatedVisit>>,
    of_page: Vec<[u32; RELATIONS]>,
}

/// Returns the group of each page by a relation, and the number of groups.
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
    /// Forms groups by the names from [`relations`].
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

    /// Returns the evidence of each group of `page`, last visited at `since`.
    pub(super) fn evidence(&self, page: usize, since: f64) -> [GroupEvidence; RELATIONS] {
        self.of_page[page].map(|group| {
            let Some(visits) = self.groups.get(group as usize) else { return GroupEvidence::default() };
            let later = visits.iter().rev().take_while(|past| past.at > since);
            later.fold(GroupEvidence::default(), |sum, past| GroupEvidence {
                visits: sum.visits + 1.0,
                hits: sum.hits + f64::from(u8::from(past.changed > since)),
                expected: sum.expected - (-past.rate * (past.at - since)).exp_m1(),
            })
        })
    }

    /// Records a visit of `page` with its expected change `rate` and the time of its last change.
    pub(super) fn visited(&mut self, page: usize, now: f64, changed: f64, rate: f64) {
        for (relation, &group) in self.of_page[page].iter().enumerate() {
            // Groups of a single page are skipped.
            let Some(visits) = self.groups.get_mut(group as usize) else { continue };
            if visits.len() == if relation == SITE { SITE_VISITS_MAX } else { VISITS_MAX } {
                visits.pop_front();
            }
            visits.push_back(RelatedVisit { at: now, changed, rate });
        }
    }
}
