//! Orders that only experiments use: one that ignores the topic, and one that others outdo.

use std::collections::HashMap;

use archive_math::focus::{FetchedPage, Focus};
use archive_math::importance::order::{DownloadOrder, OrderLink, PageQueue};

/// An order that ignores the topic.
#[derive(Debug)]
pub(super) struct Unfocused<O>(pub(super) O);

impl<O: DownloadOrder> Focus for Unfocused<O> {
    fn begin(&mut self, seeds: &[(u32, &str)], queue: &mut dyn PageQueue) {
        let seeds: Vec<u32> = seeds.iter().map(|seed| seed.0).collect();
        self.0.begin(&seeds, queue);
    }

    fn fetched(&mut self, page: &FetchedPage<'_>, queue: &mut dyn PageQueue) {
        let links: Vec<OrderLink> =
            page.leads.iter().map(|lead| OrderLink { target: lead.target, between_hosts: false }).collect();
        self.0.downloaded(page.page, &links, queue);
    }
}

/// Relevance that is passed back along links (LASER; Boyan, Freitag, Joachims 1996): a page k links before a relevant
/// one counts γ^k of its relevance, shared among the links of each page on the way. A waiting page has the score of its
/// best parent.
#[derive(Clone, Debug, Default)]
pub(super) struct Laser {
    class: usize,
    /// Fetched pages: relevance with what was passed back, number of links, parents, and links.
    pages: HashMap<u32, LaserPage>,
    parents: HashMap<u32, Vec<u32>>,
}

#[derive(Clone, Debug)]
struct LaserPage {
    relevance: f64,
    links: Vec<u32>,
}

/// Decay γ along a link, and exponent ν of the number of links among which relevance is shared.
const LASER_DECAY: f64 = 0.5;
const LASER_SHARE: f64 = 0.5;
/// Least relevance that is passed on.
const LASER_LEAST: f64 = 1e-3;

impl Laser {
    /// Looks for pages of `class`.
    pub(super) fn new(class: usize) -> Self {
        Self { class, ..Self::default() }
    }
}

impl Focus for Laser {
    fn begin(&mut self, seeds: &[(u32, &str)], queue: &mut dyn PageQueue) {
        seeds.iter().for_each(|seed| queue.put(seed.0, f64::MAX));
    }

    fn fetched(&mut self, page: &FetchedPage<'_>, queue: &mut dyn PageQueue) {
        let links: Vec<u32> = page.leads.iter().map(|lead| lead.target).collect();
        links.iter().for_each(|link| self.parents.entry(*link).or_default().push(page.page));
        let share = LASER_DECAY / (links.len().max(1) as f64).powf(LASER_SHARE);
        let known: f64 =
            links.iter().filter_map(|link| self.pages.get(link)).map(|page| page.relevance).sum();
        self.pages.insert(page.page, LaserPage { relevance: 0.0, links });
        let mut more = vec![(page.page, page.classes[self.class] + share * known)];
        while let Some((number, added)) = more.pop() {
            let Some(own) = self.pages.get_mut(&number) else { continue };
            own.relevance += added;
            for link in own.links.clone().iter().filter(|link| !self.pages.contains_key(link)) {
                let parents = self.parents[link].iter().filter_map(|parent| self.pages.get(parent));
                queue.put(*link, parents.map(|parent| parent.relevance).fold(0.0, f64::max));
            }
            for parent in self.parents.get(&number).into_iter().flatten() {
                let Some(links) = self.pages.get(parent).map(|parent| parent.links.len()) else { continue };
                let passed = added * LASER_DECAY / (links as f64).powf(LASER_SHARE);
                if passed >= LASER_LEAST {
                    more.push((*parent, passed));
                }
            }
        }
    }
}
