//! Data about waiting pages in few bytes per page: features are quantised, and only the first links are kept.

use std::collections::HashMap;

use super::relatives::table_bytes;

/// Maximum number of links kept per waiting page, the first ones.
const LINKS_MAX: u8 = 4;

/// Steps per unit of a [`Small`] and of a [`Tiny`].
const STEPS: f64 = 2048.0;
const TINY_STEPS: f64 = 16.0;

/// Number of places where a topic can be named, one bit each; the other bits are for depths up to 31.
const NAMES: u8 = 3;

/// End of a chain.
const NONE: u32 = u32::MAX;

/// A log value within ±16, in steps of 1/2048.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Small(i16);

impl Small {
    pub(super) const LEAST: Self = Self(i16::MIN);

    /// Rounds to the nearest step; values beyond ±16 saturate.
    pub(super) fn of(value: f64) -> Self {
        Self((value * STEPS).round() as i16)
    }

    pub(super) fn get(self) -> f64 {
        f64::from(self.0) / STEPS
    }

    /// Updates the mean with one more value; `count` includes it.
    fn take(&mut self, value: f64, count: f64) {
        *self = Self::of(self.get() + (value - self.get()) / count);
    }
}

/// Maximum depth that is distinguished.
pub(super) const DEPTH_MAX: u8 = u8::MAX >> NAMES;

/// A number within ±8, in steps of 1/16.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tiny(i8);

impl Tiny {
    pub(super) fn get(self) -> f64 {
        f64::from(self.0) / TINY_STEPS
    }

    fn take(&mut self, value: f64, count: f64) {
        let mean = self.get() + (value - self.get()) / count;
        *self = Self((mean * TINY_STEPS).round() as i8);
    }
}

/// Evidence of the texts of a link about its target.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkEvidence {
    pub(super) anchor: f32,
    pub(super) naming: f32,
    pub(super) named: [bool; NAMES as usize],
}

/// Evidence of a page about all its link targets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parent {
    /// Log-odds that the page is of the topic.
    pub(super) odds: f64,
    pub(super) lead_rate: f64,
    /// ln(1 + number of its links) - 3.
    pub(super) links: f64,
    /// Depth of its link targets: the number of links from the seeds.
    pub(super) depth: u8,
}

/// Data about a waiting page.
#[derive(Clone, Debug)]
pub(super) struct WaitingPage {
    /// Number of the page; [`NONE`] in a free slot.
    page: u32,
    /// The newest kept link to it; in a free slot, the next free slot.
    link: u32,
    /// Keys of shared rates: the number of its folder, and the key of its pattern.
    pub(super) folder: u32,
    pub(super) pattern: u32,
    /// Evidence of the URL; means over the links of anchor evidence, parents' log-odds and rates; and the best values.
    pub(super) url: Small,
    pub(super) anchor: Small,
    pub(super) anchor_best: Small,
    pub(super) naming: Small,
    pub(super) parent: Small,
    pub(super) parent_best: Small,
    pub(super) lead_rate: Tiny,
    pub(super) parent_links: Tiny,
    /// Number of links to it, saturating at 255.
    pub(super) links: u8,
    /// Where the topic was named (low bits), and the depth.
    named_and_depth: u8,
}

const _: () = assert!(size_of::<WaitingPage>() == 32);

impl WaitingPage {
    fn new(page: u32, link: u32, url: f64, [folder, pattern]: [u32; 2]) -> Self {
        Self {
            page,
            link,
            folder,
            pattern,
            url: Small::of(url),
            anchor: Small::default(),
            anchor_best: Small::LEAST,
            naming: Small::LEAST,
            parent: Small::default(),
            parent_best: Small::LEAST,
            lead_rate: Tiny::default(),
            parent_links: Tiny::default(),
            links: 0,
            named_and_depth: u8::MAX << NAMES,
        }
    }

    /// Adds the evidence of one more link.
    fn hear(&mut self, said: &LinkEvidence, parent: &Parent) {
        self.links = self.links.saturating_add(1);
        let count = f64::from(self.links);
        let (anchor, naming) = (said.anchor.into(), said.naming.into());
        self.anchor.take(anchor, count);
        self.parent.take(parent.odds, count);
        self.lead_rate.take(parent.lead_rate, count);
        self.anchor_best = self.anchor_best.max(Small::of(anchor));
        self.naming = self.naming.max(Small::of(naming));
        self.parent_best = self.parent_best.max(Small::of(parent.odds));
        self.parent_links.take(parent.links, count);
        let depth = self.depth().min(parent.depth);
        self.named_and_depth = depth << NAMES | self.named_and_depth & !(u8::MAX << NAMES);
        said.named
            .iter()
            .zip(0..NAMES)
            .for_each(|(named, bit)| self.named_and_depth |= u8::from(*named) << bit);
    }

    /// Returns 1 if the topic was named in this place, otherwise 0.
    pub(super) fn is_named(&self, place: u8) -> f64 {
        f64::from(self.named_and_depth >> place & 1)
    }

    /// Number of links from the seeds, at most 31.
    pub(super) fn depth(&self) -> u8 {
        self.named_and_depth >> NAMES
    }
}

/// The waiting pages, and the links of fetched pages to them.
#[derive(Clone, Debug, Default)]
pub(super) struct WaitingPages {
    places: HashMap<u32, u32>,
    pages: Vec<WaitingPage>,
    /// The first free slot.
    vacant: Option<u32>,
    /// Index of the first link of each fetched page, in order of fetching.
    starts: Vec<u32>,
    /// For each link: its target, its position on the page, and the previous link to the same target.
    targets: Vec<u32>,
    on_page: Vec<u16>,
    before: Vec<u32>,
}

impl WaitingPages {
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn contains(&self, page: u32) -> bool {
        self.places.contains_key(&page)
    }

    pub(super) fn get(&self, page: u32) -> Option<&WaitingPage> {
        self.pages.get(*self.places.get(&page)? as usize)
    }

    /// All waiting pages with their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &WaitingPage)> {
        self.pages.iter().filter(|page| page.page != NONE).map(|page| (page.page, page))
    }

    /// Starts the next fetched page; the links that follow are on it, in order of position.
    pub(super) fn next_page(&mut self) {
        self.starts.push(self.targets.len() as u32);
    }

    /// Adds a new waiting page.
    pub(super) fn insert(&mut self, page: u32, url: f64, shared: [u32; 2]) {
        let new = WaitingPage::new(page, NONE, url, shared);
        let place = if let Some(place) = self.vacant {
            let left = std::mem::replace(&mut self.pages[place as usize], new);
            self.vacant = Some(left.link).filter(|next| *next != NONE);
            place
        } else {
            push(&mut self.pages, new);
            self.pages.len() as u32 - 1
        };
        self.places.insert(page, place);
    }

    /// Adds a link to a waiting page, at this position on the last fetched page.
    pub(super) fn hear(&mut self, page: u32, place: u32, said: &LinkEvidence, parent: &Parent) {
        let Some(waiting) = self.places.get(&page).map(|&at| &mut self.pages[at as usize]) else { return };
        waiting.hear(said, parent);
        if waiting.links <= LINKS_MAX {
            let before = std::mem::replace(&mut waiting.link, self.targets.len() as u32);
            push(&mut self.before, before);
            push(&mut self.targets, page);
            push(&mut self.on_page, place_of(place));
        }
    }

    /// Removes a page that no longer waits.
    pub(super) fn remove(&mut self, page: u32) -> Option<WaitingPage> {
        let place = self.places.remove(&page)?;
        let left = WaitingPage::new(NONE, self.vacant.unwrap_or(NONE), 0.0, [0; 2]);
        self.vacant = Some(place);
        Some(std::mem::replace(&mut self.pages[place as usize], left))
    }

    /// Returns the kept links to a page, the newest first.
    pub(super) fn links(&self, page: &WaitingPage) -> impl Iterator<Item = KeptLink> {
        let mut next = page.link;
        std::iter::from_fn(move || {
            let at = next as usize;
            next = *self.before.get(at)?;
            let parent = self.starts.partition_point(|start| *start as usize <= at) - 1;
            Some(KeptLink { at, parent, place: self.on_page[at] })
        })
    }

    /// Returns the targets of the links near a link on its page, up to `reach` on each side.
    pub(super) fn beside(&self, link: &KeptLink, reach: usize) -> &[u32] {
        let first = self.starts[link.parent] as usize;
        let end = self.starts.get(link.parent + 1).map_or(self.targets.len(), |end| *end as usize);
        &self.targets[link.at.saturating_sub(reach).max(first)..(link.at + reach + 1).min(end)]
    }

    /// Bytes of memory used.
    pub(super) fn bytes(&self) -> usize {
        table_bytes::<u32, u32>(self.places.capacity())
            + self.pages.capacity() * size_of::<WaitingPage>()
            + (self.starts.capacity() + self.targets.capacity() + self.before.capacity()) * size_of::<u32>()
            + self.on_page.capacity() * size_of::<u16>()
    }
}

/// Appends to a list that grows by an eighth instead of doubling.
fn push<T>(list: &mut Vec<T>, value: T) {
    if list.len() == list.capacity() {
        list.reserve_exact(list.len() / 8 + 16);
    }
    list.push(value);
}

/// Position of a link as it is stored, saturating.
pub(super) fn place_of(place: u32) -> u16 {
    place.min(u16::MAX.into()) as u16
}

/// A kept link: the page that has it, in order of fetching, and its position there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeptLink {
    at: usize,
    pub(super) parent: usize,
    pub(super) place: u16,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(anchor: f32) -> LinkEvidence {
        LinkEvidence { anchor, naming: anchor, named: [anchor > 0.0, false, true] }
    }

    fn of_page(odds: f64, depth: u8) -> Parent {
        Parent { odds, lead_rate: 0.5, links: 0.5, depth }
    }

    #[test]
    fn links_are_found_from_both_ends() {
        let mut pages = WaitingPages::default();
        for parent in 0..3 {
            pages.next_page();
            for page in 0..20 {
                if parent == 0 {
                    pages.insert(page, 0.0, [1, 2]);
                }
                pages.hear(page, 2 * page, &said(0.0), &of_page(0.0, 31));
            }
        }
        let links: Vec<KeptLink> = pages.links(pages.get(7).unwrap()).collect();
        assert_eq!(
            links.iter().map(|link| (link.parent, link.place)).collect::<Vec<_>>(),
            [(2, 14), (1, 14), (0, 14)]
        );
        assert_eq!(pages.beside(&links[1], 2), [5, 6, 7, 8, 9]);
        // A page ends where the next one begins.
        let first = pages.links(pages.get(0).unwrap()).nth(1).unwrap();
        assert_eq!(pages.beside(&first, 2), [0, 1, 2]);
        let last = pages.links(pages.get(19).unwrap()).next().unwrap();
        assert_eq!(pages.beside(&last, 2), [17, 18, 19]);
        // The slot of a removed page is reused.
        let removed = pages.remove(7).unwrap();
        assert_eq!((removed.links, removed.folder, pages.get(7).is_none(), pages.len()), (3, 1, true, 19));
        assert!(pages.remove(7).is_none());
        pages.remove(3);
        pages.insert(30, 1.0, [5, 6]);
        pages.insert(31, 1.0, [5, 6]);
        pages.insert(32, 1.0, [5, 6]);
        assert_eq!((pages.pages.len(), pages.len(), pages.iter().count()), (21, 21, 21));
        assert_eq!(pages.links(pages.get(30).unwrap()).count(), 0);
    }

    #[test]
    fn means_and_best_ones_are_those_of_the_links() {
        let mut pages = WaitingPages::default();
        pages.next_page();
        pages.insert(1, -0.3, [0, 0]);
        for anchor in [1.0, -2.0, 4.0] {
            pages.hear(1, 9, &said(anchor), &of_page((-anchor).into(), 31));
        }
        let page = pages.get(1).unwrap();
        assert!((page.url.get() + 0.3).abs() < 1e-3 && (page.anchor.get() - 1.0).abs() < 2e-3, "{page:?}");
        assert_eq!(
            (page.anchor_best.get(), page.parent_best.get(), page.parent_links.get()),
            (4.0, 2.0, 0.5)
        );
        assert_eq!([0, 1, 2].map(|place| page.is_named(place)), [1.0, 0.0, 1.0]);
        assert_eq!((page.depth(), page.links, page.lead_rate.get()), (31, 3, 0.5));
        // Numbers saturate.
        assert_eq!((Small::of(100.0).get(), Small::of(-100.0)), (f64::from(i16::MAX) / STEPS, Small::LEAST));
        assert_eq!(place_of(1 << 20), u16::MAX);
        // Of many links the first are kept, and all are counted.
        (0..300).for_each(|_| pages.hear(1, 0, &said(1.0), &of_page(1.0, 2)));
        let page = pages.get(1).unwrap();
        assert_eq!(
            (page.links, page.depth(), pages.links(page).count()),
            (u8::MAX, 2, usize::from(LINKS_MAX))
        );
        assert_eq!([0, 1, 2].map(|place| page.is_named(place)), [1.0, 0.0, 1.0]);
    }
}
