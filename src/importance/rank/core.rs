//! The part of a link graph that a PageRank solver has to iterate over, laid out for speed.
//!
//! Only pages with links ("inner" pages) matter for the iteration: a page without links gives nothing to anybody (see
//! `pagerank` for why), so its own value is computed once at the end. Links from a page to itself are taken out: they are
//! solved exactly instead of by iteration.
//!
//! What a sweep waits for is values of pages all over the memory. Adding up numbers at random places, one core of the
//! machine this was measured on reads 5.3 thousand million a second from 16 KiB, 1.7 from 48 KiB (its nearest cache), 1.3
//! from 256 KiB to 1 MiB, 1.1 from 4 MiB and .3 from 100 MiB. Only with most reads from the nearest cache can a core
//! follow two thousand million links a second. Pages are numbered so that they are near each other:
//! * A crawl keeps neighbours together by itself; the graph's own order stays.
//! * Elsewhere most links come from few pages, and those with most links are numbered first.
//!
//! Either way pages are cut into [`Chunk`]s, within which they are ordered by the number of their links (see `rows`), and
//! where many links lead from one block of pages to a chunk these have a [`Panel`] of their own: they are added up while
//! the block's values lie in the nearest cache. Links within a chunk have no panel, so that every link is followed with
//! the newest value of its source.

use std::ops::Range;

use rayon::prelude::*;

use super::super::graph::Graph;
use super::Damping;
use super::rows::Rows;

/// Pages of a chunk, and of the block that a panel's links come from, at most: their short values fill two thirds of the
/// nearest cache of today's processors.
const BLOCK_PAGES: usize = 8192;

/// Chunks have about so many links each: as many as make this number of chunks.
const CHUNKS: usize = 64;

/// Links shorter than this, in pages and in parts of the graph, are near.
const NEAR: u32 = 1 << 15;
const NEAR_PARTS: u32 = 8;

/// With fewer pages all values fit into the nearest cache anyway, in any order. With more the order matters to threads too:
/// sweeps from the pages with most links on need hardly more with two threads than with one (on a Kronecker graph of 65 536
/// pages 28 for 25, and 34 for 25 in another order).
const PAGES_ORDERED_MIN: usize = 1 << 13;

/// A panel is worth its while from so many links on, and from so many for each page it leads to.
const PANEL_ARCS_MIN: u32 = 512;
const PANEL_ARCS_PER_PAGE_MIN: u32 = 2;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Core {
    /// Inner pages first, then those without links: their old numbers.
    pub(super) order: Vec<u32>,
    /// How many inner pages there are.
    pub(super) inner: usize,
    /// Links between inner pages.
    pub(super) inner_arcs: usize,
    /// The inner pages in order.
    pub(super) chunks: Vec<Chunk>,
    /// The links to pages without links.
    pub(super) outer: Incoming,
    /// For each inner page, its damping divided by the weight of its links.
    pub(super) share: Vec<f64>,
    /// The largest damping of any page.
    pub(super) damping_max: f64,
    /// Inner pages that link to themselves, ascending, with the weight of that link.
    pub(super) selfish: Vec<(u32, f32)>,
}

/// Consecutive inner pages with the links to them.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) pages: Range<usize>,
    pub(super) panels: Vec<Panel>,
    /// The links that are in no panel, a row for each page.
    pub(super) rest: Rows<u32>,
}

impl Chunk {
    /// What a sweep over the chunk costs, in links.
    pub(super) fn work(&self) -> usize {
        let panels = self.panels.iter().map(|panel| panel.rows.arcs() / 2);
        self.rest.arcs() + panels.sum::<usize>() + self.pages.len()
    }
}

/// Links from one block of pages to one chunk.
#[derive(Debug)]
pub(super) struct Panel {
    pub(super) block: Range<usize>,
    /// Which page of the chunk each row is.
    pub(super) targets: Vec<u16>,
    /// Sources by their place in the block.
    pub(super) rows: Rows<u16>,
}

/// Links by the page they lead to.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) offsets: Vec<u32>,
    pub(super) sources: Vec<u32>,
    /// Empty when all weigh 1.
    pub(super) weights: Vec<f32>,
}

impl Incoming {
    fn row(&self, page: usize) -> Range<usize> {
        self.offsets[page] as usize..self.offsets[page + 1] as usize
    }
}

impl Core {
    /// Takes the graph apart. It is dropped on the way, so that memory holds its arcs at most twice.
    pub(super) fn new(graph: Graph, damping: Damping) -> Self {
        let (order, inner) = arrange(&graph);
        let mut core = Self {
            inner,
            inner_arcs: 0,
            chunks: Vec::new(),
            outer: Incoming { offsets: Vec::new(), sources: Vec::new(), weights: Vec::new() },
            share: Vec::new(),
            damping_max: 0.0,
            selfish: Vec::new(),
            order,
        };
        let mut incoming = core.turn_around(&graph);
        core.share_out(&graph, damping);
        drop(graph);
        core.inner_arcs = incoming.offsets[inner] as usize;
        core.split_outer(&mut incoming);
        core.lay_out(incoming);
        core
    }

    /// Computes shares and finds links of pages to themselves.
    fn share_out(&mut self, graph: &Graph, damping: Damping) {
        self.share.reserve_exact(self.inner);
        for (new, &old) in self.order[..self.inner].iter().enumerate() {
            let weight = graph.out_weight(old as usize);
            let share = match damping {
                Damping::Constant(damping) => damping / weight,
                Damping::OneMoreLink => 1.0 / (weight + 1.0),
            };
            self.share.push(share);
            self.damping_max = self.damping_max.max(weight * share);
            if let Ok(place) = graph.targets(old as usize).binary_search(&old) {
                self.selfish
                    .push((new as u32, graph.weights(old as usize).map_or(1.0, |weights| weights[place])));
            }
        }
    }

    /// All links but those of pages to themselves, by their targets in order.
    fn turn_around(&self, graph: &Graph) -> Incoming {
        let mut number = vec![0u32; self.order.len()];
        for (new, &old) in self.order.iter().enumerate() {
            number[old as usize] = new as u32;
        }
        let links = |old: u32| {
            let targets = graph.targets(old as usize).iter().enumerate();
            targets
                .filter(move |&(_, &target)| target != old)
                .map(|(place, &target)| (place, target as usize))
        };
        // Counts two places late become offsets one place late, which move on to their own place as rows are filled.
        let mut offsets = vec![0u32; self.order.len() + 2];
        for &old in &self.order[..self.inner] {
            links(old).for_each(|(_, target)| offsets[number[target] as usize + 2] += 1);
        }
        let mut sum = 0;
        for offset in &mut offsets {
            sum += *offset;
            *offset = sum;
        }
        let arcs = sum as usize;
        let mut sources = vec![0; arcs];
        let mut weights = vec![0.0; if graph.is_weighted() { arcs } else { 0 }];
        for (new, &old) in self.order[..self.inner].iter().enumerate() {
            let own_weights = graph.weights(old as usize);
            for (place, target) in links(old) {
                let free = &mut offsets[number[target] as usize + 1];
                sources[*free as usize] = new as u32;
                if let Some(own_weights) = own_weights {
                    weights[*free as usize] = own_weights[place];
                }
                *free += 1;
            }
        }
        offsets.pop();
        Incoming { offsets, sources, weights }
    }

    /// Takes the links to pages without links away.
    fn split_outer(&mut self, incoming: &mut Incoming) {
        let first = self.inner_arcs;
        self.outer.offsets =
            incoming.offsets[self.inner..].iter().map(|offset| offset - first as u32).collect();
        incoming.offsets.truncate(self.inner + 1);
        self.outer.sources = incoming.sources.split_off(first);
        if !incoming.weights.is_empty() {
            self.outer.weights = incoming.weights.split_off(first);
        }
    }

    /// Cuts the inner pages into chunks and gives everything its last number.
    fn lay_out(&mut self, incoming: Incoming) {
        let chunks = cut(&incoming.offsets);
        let blocks = Blocks::of(&chunks, self.inner);
        let plans: Vec<Layout> =
            chunks.into_par_iter().map(|pages| Layout::new(&incoming, &blocks, pages)).collect();
        let mut number = vec![0u32; self.inner];
        for plan in &plans {
            for (place, &page) in plan.order.iter().enumerate() {
                number[page as usize] = (plan.pages.start + place) as u32;
            }
        }
        self.chunks = plans.into_par_iter().map(|plan| plan.carry_out(&incoming, &blocks, &number)).collect();
        drop(incoming);
        let now = |page: usize| number[page] as usize;
        let (order, share) = (self.order[..self.inner].to_vec(), std::mem::take(&mut self.share));
        self.share = vec![0.0; self.inner];
        for (page, (old, share)) in order.into_iter().zip(share).enumerate() {
            self.order[now(page)] = old;
            self.share[now(page)] = share;
        }
        self.selfish.iter_mut().for_each(|(page, _)| *page = number[*page as usize]);
        self.selfish.sort_unstable_by_key(|&(page, _)| page);
        self.outer.sources.iter_mut().for_each(|source| *source = number[*source as usize]);
    }
}

/// The new order of pages, and how many have links to follow.
fn arrange(graph: &Graph) -> (Vec<u32>, usize) {
    let has_links = |&page: &u32| graph.out_weight(page as usize) > 0.0;
    let (mut order, dangling): (Vec<u32>, Vec<u32>) = (0..graph.pages() as u32).partition(has_links);
    let inner = order.len();
    if inner >= PAGES_ORDERED_MIN && !is_local(graph) {
        let mut links: Vec<u32> = (0..graph.pages()).map(|page| graph.targets(page).len() as u32).collect();
        for page in 0..graph.pages() {
            graph.targets(page).iter().for_each(|&target| links[target as usize] += 1);
        }
        order.sort_by_key(|&page| std::cmp::Reverse(links[page as usize]));
    }
    order.extend(dangling);
    (order, inner)
}

/// Whether most links lead to pages with a similar number, as in a crawl.
fn is_local(graph: &Graph) -> bool {
    let length_max = NEAR.min(graph.pages() as u32 / NEAR_PARTS);
    let near = |page: usize| {
        let targets = graph.targets(page).iter();
        targets.filter(|target| target.abs_diff(page as u32) < length_max).count()
    };
    2 * (0..graph.pages()).map(near).sum::<usize>() > graph.arcs()
}

/// Cuts inner pages into chunks with about equally much work.
fn cut(offsets: &[u32]) -> Vec<Range<usize>> {
    let pages = offsets.len() - 1;
    let work = |page: usize| offsets[page] as usize + page;
    let work_max = work(pages) / CHUNKS + 1;
    let mut chunks = Vec::new();
    let mut begin = 0;
    for page in 0..pages {
        let is_full = page + 1 - begin >= BLOCK_PAGES || work(page + 1) - work(begin) >= work_max;
        if is_full || page + 1 == pages {
            chunks.push(begin..page + 1);
            begin = page + 1;
        }
    }
    chunks
}

/// Chunks put together to blocks.
struct Blocks {
    bounds: Vec<Range<usize>>,
    /// The block of each page.
    of: Vec<u16>,
}

impl Blocks {
    fn of(chunks: &[Range<usize>], pages: usize) -> Self {
        let mut bounds: Vec<Range<usize>> = Vec::new();
        for chunk in chunks {
            match bounds.last_mut().filter(|block| chunk.end - block.start <= BLOCK_PAGES) {
                Some(block) => block.end = chunk.end,
                None => bounds.push(chunk.clone()),
            }
        }
        let mut of = Vec::with_capacity(pages);
        for (number, block) in bounds.iter().enumerate() {
            // Later blocks than can be named share the last name, and have no panels.
            of.resize(block.end, u16::try_from(number).unwrap_or(u16::MAX));
        }
        bounds.truncate(usize::from(u16::MAX));
        Self { bounds, of }
    }

    /// The block of a page, or the number of blocks if it has no name.
    #[inline]
    fn place_of(&self, page: u32) -> usize {
        usize::from(self.of[page as usize]).min(self.bounds.len())
    }
}

/// How a chunk will be laid out.
struct Layout {
    pages: Range<usize>,
    /// Blocks with a panel.
    panels: Vec<u16>,
    /// The panel of each block; empty when there is none at all.
    panel_of: Vec<u16>,
    /// The pages in their final order.
    order: Vec<u32>,
}

/// The panel of a block without one.
const NO_PANEL: u16 = u16::MAX;

impl Layout {
    fn new(incoming: &Incoming, blocks: &Blocks, pages: Range<usize>) -> Self {
        let panels =
            if incoming.weights.is_empty() { worth_a_panel(incoming, blocks, &pages) } else { Vec::new() };
        let mut panel_of = Vec::new();
        if !panels.is_empty() {
            panel_of.resize(blocks.bounds.len() + 1, NO_PANEL);
            for (panel, &block) in panels.iter().enumerate() {
                panel_of[usize::from(block)] = panel as u16;
            }
        }
        let mut plan = Self { pages, panels, panel_of, order: Vec::new() };
        let rest = |page: usize| {
            let sources = &incoming.sources[incoming.row(page)];
            if plan.panels.is_empty() {
                sources.len()
            } else {
                sources.iter().filter(|&&source| plan.panel_of(blocks, source).is_none()).count()
            }
        };
        let mut order: Vec<(usize, u32)> = plan.pages.clone().map(|page| (rest(page), page as u32)).collect();
        order.sort_by_key(|&(rest, _)| std::cmp::Reverse(rest));
        plan.order = order.into_iter().map(|(_, page)| page).collect();
        plan
    }

    /// Which panel has the links from `source`, if any.
    #[inline]
    fn panel_of(&self, blocks: &Blocks, source: u32) -> Option<usize> {
        if self.panels.is_empty() || self.pages.contains(&(source as usize)) {
            return None;
        }
        let panel = self.panel_of[blocks.place_of(source)];
        (panel != NO_PANEL).then_some(usize::from(panel))
    }

    fn carry_out(&self, incoming: &Incoming, blocks: &Blocks, number: &[u32]) -> Chunk {
        // What each panel has of each page: the page's place in the chunk and where in the row.
        let mut parts: Vec<Vec<(u16, Range<u32>)>> = vec![Vec::new(); self.panels.len()];
        let rows = self.order.iter().map(|&page| incoming.row(page as usize));
        let arcs = if self.panels.is_empty() { rows.clone().map(|row| row.len()).sum() } else { 0 };
        let mut rest = Rows::with_capacity(arcs, !incoming.weights.is_empty());
        for (place, row) in rows.enumerate() {
            let mut length = 0;
            for arc in row {
                let source = incoming.sources[arc];
                let Some(panel) = self.panel_of(blocks, source) else {
                    rest.push(number[source as usize], incoming.weights.get(arc).copied());
                    length += 1;
                    continue;
                };
                let (place, arc) = (place as u16, arc as u32);
                match parts[panel].last_mut() {
                    Some((last, arcs)) if *last == place && arcs.end == arc => arcs.end += 1,
                    _ => parts[panel].push((place, arc..arc + 1)),
                }
            }
            rest.end_row(length);
        }
        rest.shrink();
        let panel = |(&block, mut parts): (&u16, Vec<(u16, Range<u32>)>)| {
            let block = blocks.bounds[usize::from(block)].clone();
            parts.sort_by_key(|(_, arcs)| std::cmp::Reverse(arcs.len()));
            let mut rows = Rows::with_capacity(parts.iter().map(|(_, arcs)| arcs.len()).sum(), false);
            for (_, arcs) in &parts {
                for &source in &incoming.sources[arcs.start as usize..arcs.end as usize] {
                    rows.push((number[source as usize] as usize - block.start) as u16, None);
                }
                rows.end_row(arcs.len());
            }
            Panel { block, targets: parts.into_iter().map(|(place, _)| place).collect(), rows }
        };
        let panels = self.panels.iter().zip(parts).map(panel).collect();
        Chunk { pages: self.pages.clone(), panels, rest }
    }
}

/// The blocks from which enough links lead to these pages.
fn worth_a_panel(incoming: &Incoming, blocks: &Blocks, pages: &Range<usize>) -> Vec<u16> {
    let mut arcs = vec![0u32; blocks.bounds.len() + 1];
    let mut rows = vec![0u32; blocks.bounds.len() + 1];
    for page in pages.clone() {
        let mut last = usize::MAX;
        for &source in &incoming.sources[incoming.row(page)] {
            if !pages.contains(&(source as usize)) {
                let block = blocks.place_of(source);
                arcs[block] += 1;
                rows[block] += u32::from(block != last);
                last = block;
            }
        }
    }
    let is_worth = |&block: &u16| {
        let (arcs, rows) = (arcs[usize::from(block)], rows[usize::from(block)]);
        arcs >= PANEL_ARCS_MIN && arcs >= PANEL_ARCS_PER_PAGE_MIN * rows
    };
    (0..blocks.bounds.len() as u16).filter(is_worth).collect()
}
