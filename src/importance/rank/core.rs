//! The part of a link graph that a PageRank solver has to iterate over, laid out for speed.
//!
//! Only pages with links ("inner" pages) matter for the iteration: a page without links gives nothing to anybody (see
//! `pagerank` for why), so its own value is computed once at the end. Inner pages are numbered first, in the graph's own
//! order, which for a crawl keeps neighbours together. For each page the sources of its links lie together, in groups of
//! [`LANES`] that are filled up with a source that gives nothing: most pages have few links, and a loop whose number of
//! turns is hard to predict costs more than the links. Links from a page to itself are taken out: they are solved exactly
//! instead of by iteration.

use super::super::graph::Graph;
use super::Damping;

/// Sources that are added up side by side, so that additions need not wait for each other.
pub(super) const LANES: usize = 4;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Core {
    /// Inner pages first, then those without links: their old numbers.
    pub(super) order: Vec<u32>,
    /// How many inner pages there are; as a source, this number stands for nobody.
    pub(super) inner: usize,
    /// Links between inner pages.
    pub(super) inner_arcs: usize,
    /// Which groups hold the sources of each inner page; one more at the end.
    pub(super) groups: Vec<u32>,
    /// Sources of inner pages, as inner page numbers.
    pub(super) sources: Vec<[u32; LANES]>,
    /// Weights of these links; empty when all weigh 1.
    pub(super) weights: Vec<[f32; LANES]>,
    /// The links to pages without links.
    pub(super) outer: Outer,
    /// For each inner page, its damping divided by the weight of its links.
    pub(super) share: Vec<f64>,
    /// The largest damping of any page.
    pub(super) damping_max: f64,
    /// Inner pages that link to themselves, ascending, with the weight of that link.
    pub(super) selfish: Vec<(u32, f32)>,
}

/// Links to pages without links, by page.
#[derive(Debug)]
pub(super) struct Outer {
    pub(super) offsets: Vec<u32>,
    pub(super) sources: Vec<u32>,
    /// Empty when all weigh 1.
    pub(super) weights: Vec<f32>,
}

impl Core {
    /// Takes the graph apart. It is dropped on the way, so that memory holds its arcs at most twice.
    pub(super) fn new(graph: Graph, damping: Damping) -> Self {
        let (order, inner) = arrange(&graph);
        let mut number = vec![0u32; order.len()];
        for (new, &old) in order.iter().enumerate() {
            number[old as usize] = new as u32;
        }
        let mut damping_max = 0f64;
        let mut selfish = Vec::new();
        let mut share = Vec::with_capacity(inner);
        let mut counts = vec![0u32; order.len()];
        for (new, &old) in order[..inner].iter().enumerate() {
            let old = old as usize;
            let weight = graph.out_weight(old);
            share.push(match damping {
                Damping::Constant(damping) => damping / weight,
                Damping::OneMoreLink => 1.0 / (weight + 1.0),
            });
            damping_max = damping_max.max(weight * share[new]);
            for (place, &target) in graph.targets(old).iter().enumerate() {
                if target as usize == old {
                    selfish.push((new as u32, graph.weights(old).map_or(1.0, |weights| weights[place])));
                } else {
                    counts[number[target as usize] as usize] += 1;
                }
            }
        }
        let (to_inner, to_outer) = counts.split_at(inner);
        let inner_arcs = to_inner.iter().map(|&count| count as usize).sum();
        let groups = sums(to_inner.iter().map(|&count| count.div_ceil(LANES as u32)));
        let offsets = sums(to_outer.iter().copied());
        let grouped = groups[inner] as usize;
        let lone = offsets[to_outer.len()] as usize;
        let (of_groups, of_lone) = if graph.is_weighted() { (grouped, lone) } else { (0, 0) };
        let mut core = Self {
            inner,
            inner_arcs,
            sources: vec![[inner as u32; LANES]; grouped],
            weights: vec![[0.0; LANES]; of_groups],
            outer: Outer { offsets, sources: vec![0; lone], weights: vec![0.0; of_lone] },
            order,
            groups,
            share,
            damping_max,
            selfish,
        };
        counts.fill(0);
        core.fill(&graph, &number, &mut counts);
        drop(graph);
        core
    }

    /// Puts every link in its place; `counts` says how many of a page's links are there.
    fn fill(&mut self, graph: &Graph, number: &[u32], counts: &mut [u32]) {
        for new in 0..self.inner {
            let old = self.order[new] as usize;
            let weights = graph.weights(old);
            for (place, &target) in graph.targets(old).iter().enumerate() {
                if target as usize == old {
                    continue;
                }
                let target = number[target as usize] as usize;
                let count = counts[target] as usize;
                counts[target] += 1;
                if let Some(outer) = target.checked_sub(self.inner) {
                    let free = self.outer.offsets[outer] as usize + count;
                    self.outer.sources[free] = new as u32;
                    if let Some(weights) = weights {
                        self.outer.weights[free] = weights[place];
                    }
                } else {
                    let group = self.groups[target] as usize + count / LANES;
                    self.sources[group][count % LANES] = new as u32;
                    if let Some(weights) = weights {
                        self.weights[group][count % LANES] = weights[place];
                    }
                }
            }
        }
    }

    /// Cuts the inner pages into at most `count` runs with about equally many arcs; returns the bounds.
    pub(super) fn runs(&self, count: usize) -> Vec<usize> {
        let per_run = self.sources.len() / count + 1;
        let mut bounds = vec![0];
        for page in 0..self.inner {
            if self.groups[page + 1] as usize >= per_run * bounds.len() && bounds.len() < count {
                bounds.push(page + 1);
            }
        }
        bounds.push(self.inner);
        bounds.dedup();
        bounds
    }
}

/// The new order of pages, and how many have links to follow.
fn arrange(graph: &Graph) -> (Vec<u32>, usize) {
    let has_links = |&page: &u32| graph.out_weight(page as usize) > 0.0;
    let (mut order, dangling): (Vec<u32>, Vec<u32>) = (0..graph.pages() as u32).partition(has_links);
    let inner = order.len();
    order.extend(dangling);
    (order, inner)
}

/// What comes before each count, and the sum of all at the end.
fn sums(counts: impl ExactSizeIterator<Item = u32>) -> Vec<u32> {
    let mut sums = Vec::with_capacity(counts.len() + 1);
    let mut sum = 0;
    sums.push(0);
    for count in counts {
        sum += count;
        sums.push(sum);
    }
    sums
}
