//! The part of a link graph over which a PageRank solver iterates, laid out for speed.
//!
//! Only pages with links ("inner" pages) matter for the iteration. A page without links gives nothing to other pages
//! (`pagerank` explains why), so its value is computed once at the end. Links from a page to itself are removed and
//! solved exactly.
//!
//! Sweeps are limited by random reads of page values. Adding numbers at random places, one core of the test machine
//! reads 5.3 billion a second from 16 KiB, 1.7 from 48 KiB (its L1 cache), 1.3 from 256 KiB to 1 MiB, 1.1 from 4 MiB
//! and 0.3 from 100 MiB. A core can follow two billion links a second only if most reads hit the L1 cache. Pages are
//! numbered to be near each other:
//! * The numbering of a crawl already keeps neighbours together, so it stays.
//! * In other graphs most links come from few pages, so the pages with the most links are numbered first.
//!
//! Either way pages are cut into [`PageChunk`]s, within which they are ordered by the number of their links (see `rows`).
//! Where many links lead from one block of pages to a chunk, these links form a separate [`LinkPanel`]: they are summed
//! while the values of the block are in the L1 cache. Links within a chunk have no panel, so that each of them uses the
//! newest value of its source.

use std::ops::Range;

use rayon::prelude::*;

use super::super::graph::Graph;
use super::Damping;
use super::rows::RunRows;

/// Maximum number of pages of a chunk, and of the block that the links of a panel come from. Their short values fill
/// two thirds of the L1 cache of current processors.
const BLOCK_PAGES: usize = 8192;

/// Approximate number of chunks; they have about equally many links.
const CHUNKS: usize = 64;

/// Links are near if they are shorter than `NEAR` pages and than 1 / `NEAR_PARTS` of the graph.
const NEAR: u32 = 1 << 15;
const NEAR_PARTS: u32 = 8;

/// Minimum number of pages for reordering. With fewer, all values fit into the L1 cache in any order. With more, the
/// order also matters to threads: sweeps that start at the pages with the most links need hardly more iterations with
/// two threads than with one (28 instead of 25 on a Kronecker graph of 65,536 pages; 34 instead of 25 in another
/// order).
const PAGES_ORDERED_MIN: usize = 1 << 13;

/// Minimum number of links of a panel, in total and per target page.
const PANEL_ARCS_MIN: u32 = 512;
const PANEL_ARCS_PER_PAGE_MIN: u32 = 2;

/// See the module documentation.
#[derive(Debug)]
pub(super) struct Core {
    /// Original numbers of the pages: inner pages first, then those without links.
    pub(super) order: Vec<u32>,
    /// Number of inner pages.
    pub(super) inner: usize,
    /// Number of links between inner pages.
    pub(super) inner_arcs: usize,
    /// The inner pages in order.
    pub(super) chunks: Vec<PageChunk>,
    /// The links to pages without links.
    pub(super) outer: IncomingLinks,
    /// For each inner page, its damping divided by the total weight of its links.
    pub(super) share: Vec<f64>,
    /// The largest damping of any page.
    pub(super) damping_max: f64,
    /// Inner pages that link to themselves, in ascending order, with the weights of these links.
    pub(super) selfish: Vec<(u32, f32)>,
}

/// Consecutive inner pages with their incoming links.
#[derive(Debug)]
pub(super) struct PageChunk {
    pub(super) pages: Range<usize>,
    pub(super) panels: Vec<LinkPanel>,
    /// The links outside panels, one row per page.
    pub(super) rest: RunRows<u32>,
}

impl PageChunk {
    /// Cost of a sweep over the chunk, in links.
    pub(super) fn work(&self) -> usize {
        let panels = self.panels.iter().map(|panel| panel.rows.arcs() / 2);
        self.rest.arcs() + panels.sum::<usize>() + self.pages.len()
    }
}

/// Links from a block of pages to a chunk.
#[derive(Debug)]
pub(super) struct LinkPanel {
    pub(super) block: Range<usize>,
    /// Index in the chunk of the page of each row.
    pub(super) targets: Vec<u16>,
    /// Sources as indices in the block.
    pub(super) rows: RunRows<u16>,
}

/// Links grouped by target.
#[derive(Debug)]
pub(super) struct IncomingLinks {
    pub(super) offsets: Vec<u32>,
    pub(super) sources: Vec<u32>,
    /// Empty if all weights are 1.
    pub(super) weights: Vec<f32>,
}

impl IncomingLinks {
    fn row(&self, page: usize) -> Range<usize> {
        self.offsets[page] as usize..self.offsets[page + 1] as usize
    }
}

impl Core {
    /// Builds the layout and drops the graph on the way, so that arcs are in memory at most twice.
    pub(super) fn new(graph: Graph, damping: Damping) -> Self {
        let (order, inner) = arrange(&graph);
        let mut core = Self {
            inner,
            inner_arcs: 0,
            chunks: Vec::new(),
            outer: IncomingLinks { offsets: Vec::new(), sources: Vec::new(), weights: Vec::new() },
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

    /// Computes shares and finds links from pages to themselves.
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

    /// Returns all links except those from pages to themselves, grouped by target.
    fn turn_around(&self, graph: &Graph) -> IncomingLinks {
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
        // Counts shifted by two places become offsets shifted by one, which move to their final place as rows are
        // filled.
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
        IncomingLinks { offsets, sources, weights }
    }

    /// Splits off the links to pages without links.
    fn split_outer(&mut self, incoming: &mut IncomingLinks) {
        let first = self.inner_arcs;
        self.outer.offsets =
            incoming.offsets[self.inner..].iter().map(|offset| offset - first as u32).collect();
        incoming.offsets.truncate(self.inner + 1);
        self.outer.sources = incoming.sources.split_off(first);
        if !incoming.weights.is_empty() {
            self.outer.weights = incoming.weights.split_off(first);
        }
    }

    /// Cuts the inner pages into chunks and assigns final numbers.
    fn lay_out(&mut self, incoming: IncomingLinks) {
        let chunks = cut(&incoming.offsets);
        let blocks = Blocks::of(&chunks, self.inner);
        let plans: Vec<ChunkLayout> =
            chunks.into_par_iter().map(|pages| ChunkLayout::new(&incoming, &blocks, pages)).collect();
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

/// Returns the new order of pages, and the number of pages with links.
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

/// Whether most links lead to pages with similar numbers, as in a crawl.
fn is_local(graph: &Graph) -> bool {
    let length_max = NEAR.min(graph.pages() as u32 / NEAR_PARTS);
    let near = |page: usize| {
        let targets = graph.targets(page).iter();
        targets.filter(|target| target.abs_diff(page as u32) < length_max).count()
    };
    2 * (0..graph.pages()).map(near).sum::<usize>() > graph.arcs()
}

/// Cuts inner pages into chunks of similar work.
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

/// Blocks of consecutive chunks.
struct Blocks {
    bounds: Vec<Range<usize>>,
    /// Number of the block of each page.
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
            // Blocks whose number does not fit share the last one, and have no panels.
            of.resize(block.end, u16::try_from(number).unwrap_or(u16::MAX));
        }
        bounds.truncate(usize::from(u16::MAX));
        Self { bounds, of }
    }

    /// Returns the block of a page, or the number of blocks if its block is not numbered.
    #[inline]
    fn place_of(&self, page: u32) -> usize {
        usize::from(self.of[page as usize]).min(self.bounds.len())
    }
}

/// The planned layout of a chunk.
struct ChunkLayout {
    pages: Range<usize>,
    /// Blocks with a panel.
    panels: Vec<u16>,
    /// The panel of each block; empty if there are no panels.
    panel_of: Vec<u16>,
    /// The pages in their final order.
    order: Vec<u32>,
}

/// Marks a block without a panel.
const NO_PANEL: u16 = u16::MAX;

impl ChunkLayout {
    fn new(incoming: &IncomingLinks, blocks: &Blocks, pages: Range<usize>) -> Self {
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

    /// Returns the panel for links from `source`, if any.
    #[inline]
    fn panel_of(&self, blocks: &Blocks, source: u32) -> Option<usize> {
        if self.panels.is_empty() || self.pages.contains(&(source as usize)) {
            return None;
        }
        let panel = self.panel_of[blocks.place_of(source)];
        (panel != NO_PANEL).then_some(usize::from(panel))
    }

    fn carry_out(&self, incoming: &IncomingLinks, blocks: &Blocks, number: &[u32]) -> PageChunk {
        // For each panel, the parts of rows that belong to it: index of the page in the chunk, and range of arcs.
        let mut parts: Vec<Vec<(u16, Range<u32>)>> = vec![Vec::new(); self.panels.len()];
        let rows = self.order.iter().map(|&page| incoming.row(page as usize));
        let arcs = if self.panels.is_empty() { rows.clone().map(|row| row.len()).sum() } else { 0 };
        let mut rest = RunRows::with_capacity(arcs, !incoming.weights.is_empty());
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
            let mut rows = RunRows::with_capacity(parts.iter().map(|(_, arcs)| arcs.len()).sum(), false);
            for (_, arcs) in &parts {
                for &source in &incoming.sources[arcs.start as usize..arcs.end as usize] {
                    rows.push((number[source as usize] as usize - block.start) as u16, None);
                }
                rows.end_row(arcs.len());
            }
            LinkPanel { block, targets: parts.into_iter().map(|(place, _)| place).collect(), rows }
        };
        let panels = self.panels.iter().zip(parts).map(panel).collect();
        PageChunk { pages: self.pages.clone(), panels, rest }
    }
}

/// Returns the blocks that have enough links to these pages.
fn worth_a_panel(incoming: &IncomingLinks, blocks: &Blocks, pages: &Range<usize>) -> Vec<u16> {
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
