//! What is known of pages that wait, in few bytes each: features are quantised, and only links that count are remembered.

use std::collections::HashMap;

use super::relatives::table_bytes;

/// Links that lead to a waiting page and are remembered: the first.
const LINKS_MAX: u8 = 4;

/// Steps of a [`Small`] and of a [`Tiny`] between two whole numbers.
const STEPS: f64 = 2048.0;
const TINY_STEPS: f64 = 16.0;

/// Places where a topic can be named, a bit each; depths up to 31 have the others.
const NAMES: u8 = 3;

/// Ends a chain.
const NONE: u32 = u32::MAX;

/// A logarithm within ±16, in steps of 1/2048.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Small(i16);

impl Small {
    pub(super) const LEAST: Self = Self(i16::MIN);

    /// The nearest; what is beyond ends at ±16.
    pub(super) fn of(value: f64) -> Self {
        Self((value * STEPS).round() as i16)
    }

    pub(super) fn get(self) -> f64 {
        f64::from(self.0) / STEPS
    }

    /// Takes a value into the mean of what are `count` with it.
    fn take(&mut self, value: f64, count: f64) {
        *self = Self::of(self.get() + (value - self.get()) / count);
    }
}

/// The greatest depth that is distinguished.
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

/// What the texts of a link say of the page it leads to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said {
    pub(super) anchor: f32,
    pub(super) naming: f32,
    pub(super) named: [bool; NAMES as usize],
}

/// What a page says of those that it links to, of all alike.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parent {
    /// Its log-odds to be of the topic.
    pub(super) odds: f64,
    pub(super) lead_rate: f64,
    /// ln(1 + its links) - 3.
    pub(super) links: f64,
    /// How many links what it links to is away from the seeds.
    pub(super) depth: u8,
}

/// What is known of a page that waits.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    /// Its number; [`NONE`] where nothing waits.
    page: u32,
    /// The newest of its links that are remembered; where nothing waits, the next such place.
    link: u32,
    /// What it shares: a place among the rates of folders, and the key of a rate.
    pub(super) folder: u32,
    pub(super) pattern: u32,
    /// Evidence of the URL; means over the links of evidence of anchors, of parents' log-odds and rates; the best ones.
    pub(super) url: Small,
    pub(super) anchor: Small,
    pub(super) anchor_best: Small,
    pub(super) naming: Small,
    pub(super) parent: Small,
    pub(super) parent_best: Small,
    pub(super) lead_rate: Tiny,
    pub(super) parent_links: Tiny,
    /// How many links lead to it, as far as one byte counts.
    pub(super) links: u8,
    /// Where the topic was named, and the depth.
    named_and_depth: u8,
}

const _: () = assert!(size_of::<Waiting>() == 32);

impl Waiting {
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

    /// Takes what one more link says.
    fn hear(&mut self, said: &Said, parent: &Parent) {
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

    /// 1 if the topic was named in this of the places, 0 elsewhere.
    pub(super) fn is_named(&self, place: u8) -> f64 {
        f64::from(self.named_and_depth >> place & 1)
    }

    /// Links that it is away from the seeds, 31 at most.
    pub(super) fn depth(&self) -> u8 {
        self.named_and_depth >> NAMES
    }
}

/// The pages that wait, and the links of fetched pages to them.
#[derive(Clone, Debug, Default)]
pub(super) struct Pages {
    places: HashMap<u32, u32>,
    pages: Vec<Waiting>,
    /// The first place where nothing waits.
    vacant: Option<u32>,
    /// Where the links of each fetched page begin, in the order of fetching.
    starts: Vec<u32>,
    /// Of each link: its target, its place on the page, and the link to the same target before it.
    targets: Vec<u32>,
    on_page: Vec<u16>,
    before: Vec<u32>,
}

impl Pages {
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn contains(&self, page: u32) -> bool {
        self.places.contains_key(&page)
    }

    pub(super) fn get(&self, page: u32) -> Option<&Waiting> {
        self.pages.get(*self.places.get(&page)? as usize)
    }

    /// All, each with its number.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Waiting)> {
        self.pages.iter().filter(|page| page.page != NONE).map(|page| (page.page, page))
    }

    /// The links that follow, in the order of their places, are of the next fetched page.
    pub(super) fn next_page(&mut self) {
        self.starts.push(self.targets.len() as u32);
    }

    /// Lets a page wait that does not yet.
    pub(super) fn insert(&mut self, page: u32, url: f64, shared: [u32; 2]) {
        let new = Waiting::new(page, NONE, url, shared);
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

    /// Takes a link to a waiting page, at this place of the last fetched page.
    pub(super) fn hear(&mut self, page: u32, place: u32, said: &Said, parent: &Parent) {
        let Some(waiting) = self.places.get(&page).map(|&at| &mut self.pages[at as usize]) else { return };
        waiting.hear(said, parent);
        if waiting.links <= LINKS_MAX {
            let before = std::mem::replace(&mut waiting.link, self.targets.len() as u32);
            push(&mut self.before, before);
            push(&mut self.targets, page);
            push(&mut self.on_page, place_of(place));
        }
    }

    /// The page waits no more.
    pub(super) fn remove(&mut self, page: u32) -> Option<Waiting> {
        let place = self.places.remove(&page)?;
        let left = Waiting::new(NONE, self.vacant.unwrap_or(NONE), 0.0, [0; 2]);
        self.vacant = Some(place);
        Some(std::mem::replace(&mut self.pages[place as usize], left))
    }

    /// The links that lead to a page, the newest first.
    pub(super) fn links(&self, page: &Waiting) -> impl Iterator<Item = Link> {
        let mut next = page.link;
        std::iter::from_fn(move || {
            let at = next as usize;
            next = *self.before.get(at)?;
            let parent = self.starts.partition_point(|start| *start as usize <= at) - 1;
            Some(Link { at, parent, place: self.on_page[at] })
        })
    }

    /// The targets of the links before and after a link on its page, so many each way.
    pub(super) fn beside(&self, link: &Link, reach: usize) -> &[u32] {
        let first = self.starts[link.parent] as usize;
        let end = self.starts.get(link.parent + 1).map_or(self.targets.len(), |end| *end as usize);
        &self.targets[link.at.saturating_sub(reach).max(first)..(link.at + reach + 1).min(end)]
    }

    /// Memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        table_bytes::<u32, u32>(self.places.capacity())
            + self.pages.capacity() * size_of::<Waiting>()
            + (self.starts.capacity() + self.targets.capacity() + self.before.capacity()) * size_of::<u32>()
            + self.on_page.capacity() * size_of::<u16>()
    }
}

/// Adds to a list that grows by an eighth, not to the double, when it is full.
fn push<T>(list: &mut Vec<T>, value: T) {
    if list.len() == list.capacity() {
        list.reserve_exact(list.len() / 8 + 16);
    }
    list.push(value);
}

/// The place of a link among those of its page, as it is remembered.
pub(super) fn place_of(place: u32) -> u16 {
    place.min(u16::MAX.into()) as u16
}

/// A link that is remembered: the page that has it, by the order of fetching, and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    at: usize,
    pub(super) parent: usize,
    pub(super) place: u16,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(anchor: f32) -> Said {
        Said { anchor, naming: anchor, named: [anchor > 0.0, false, true] }
    }

    fn of_page(odds: f64, depth: u8) -> Parent {
        Parent { odds, lead_rate: 0.5, links: 0.5, depth }
    }

    #[test]
    fn links_are_found_from_both_ends() {
        let mut pages = Pages::default();
        for parent in 0..3 {
            pages.next_page();
            for page in 0..20 {
                if parent == 0 {
                    pages.insert(page, 0.0, [1, 2]);
                }
                pages.hear(page, 2 * page, &said(0.0), &of_page(0.0, 31));
            }
        }
        let links: Vec<Link> = pages.links(pages.get(7).unwrap()).collect();
        assert_eq!(
            links.iter().map(|link| (link.parent, link.place)).collect::<Vec<_>>(),
            [(2, 14), (1, 14), (0, 14)]
        );
        assert_eq!(pages.beside(&links[1], 2), [5, 6, 7, 8, 9]);
        // A page ends where the next begins.
        let first = pages.links(pages.get(0).unwrap()).nth(1).unwrap();
        assert_eq!(pages.beside(&first, 2), [0, 1, 2]);
        let last = pages.links(pages.get(19).unwrap()).next().unwrap();
        assert_eq!(pages.beside(&last, 2), [17, 18, 19]);
        // The place of what waits no more is taken again.
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
        let mut pages = Pages::default();
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
        // Numbers end where they have no room.
        assert_eq!((Small::of(100.0).get(), Small::of(-100.0)), (f64::from(i16::MAX) / STEPS, Small::LEAST));
        assert_eq!(place_of(1 << 20), u16::MAX);
        // Of many links the first are remembered, and all of them counted.
        (0..300).for_each(|_| pages.hear(1, 0, &said(1.0), &of_page(1.0, 2)));
        let page = pages.get(1).unwrap();
        assert_eq!(
            (page.links, page.depth(), pages.links(page).count()),
            (u8::MAX, 2, usize::from(LINKS_MAX))
        );
        assert_eq!([0, 1, 2].map(|place| page.is_named(place)), [1.0, 0.0, 1.0]);
    }
}
