//! The part of a link graph that a PageRank solver has to iterate over, laid out for speed.
//!
//! Only pages with links to others ("inner" pages) matter for the iteration: a page without links gives nothing to
//! anybody (see `pagerank` for why), so its own value is computed once at the end. Inner pages are renumbered, either
//! as they come (crawls in URL order: neighbours link to neighbours) or, when links go anywhere, by falling number of
//! links, so that the values most often read share few cache lines. For each page the sources of its links lie together.
//! Links from a page to itself are taken out: they are solved exactly instead of by iteration.

use super::super::graph::Graph;
use super::Damping;

/// A graph counts as local when at least this share of its arcs spans less than 1/64 of the pages.
const LOCAL_SHARE_MIN: f64 = 0.25;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Core {
    /// Inner pages first, then those without links: their old numbers.
    pub(super) order: Vec<u32>,
    /// How many inner pages there are.
    pub(super) inner: usize,
    /// Where the sources of each page's links begin; one more at the end.
    pub(super) offsets: Vec<u32>,
    /// Sources, as inner page numbers.
    pub(super) sources: Vec<u32>,
    /// Weights of these links; empty when all weigh 1.
    pub(super) weights: Vec<f32>,
    /// For each inner page, its damping divided by the weight of its links.
    pub(super) share: Vec<f64>,
    /// The largest damping of any page.
    pub(super) damping_max: f64,
    /// Inner pages that link to themselves, ascending, with the weight of that link.
    pub(super) selfish: Vec<(u32, f32)>,
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
        let mut offsets = vec![0u32; order.len() + 1];
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
                    offsets[number[target as usize] as usize + 1] += 1;
                }
            }
        }
        let mut arcs = 0;
        for offset in &mut offsets {
            arcs += *offset;
            *offset = arcs;
        }
        let mut next = offsets.clone();
        let mut sources = vec![0u32; arcs as usize];
        let mut weights = vec![0f32; if graph.is_weighted() { arcs as usize } else { 0 }];
        for (new, &old) in order[..inner].iter().enumerate() {
            let old = old as usize;
            for (place, &target) in graph.targets(old).iter().enumerate() {
                if target as usize == old {
                    continue;
                }
                let free = &mut next[number[target as usize] as usize];
                sources[*free as usize] = new as u32;
                if let Some(given) = graph.weights(old) {
                    weights[*free as usize] = given[place];
                }
                *free += 1;
            }
        }
        drop(graph);
        Self { order, inner, offsets, sources, weights, share, damping_max, selfish }
    }

    /// Arcs that one sweep reads.
    pub(super) fn inner_arcs(&self) -> usize {
        self.offsets[self.inner] as usize
    }

    /// Cuts the inner pages into at most `count` runs with about equally many arcs; returns the bounds.
    pub(super) fn runs(&self, count: usize) -> Vec<usize> {
        let per_run = self.inner_arcs() / count + 1;
        let mut bounds = vec![0];
        for page in 0..self.inner {
            if self.offsets[page + 1] as usize >= per_run * bounds.len() && bounds.len() < count {
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
    let degree = |page: u32| graph.targets(page as usize).len();
    let has_links = |&page: &u32| graph.out_weight(page as usize) > 0.0;
    let (mut order, dangling): (Vec<u32>, Vec<u32>) = (0..graph.pages() as u32).partition(has_links);
    if !is_local(graph) {
        order.sort_by_key(|&page| std::cmp::Reverse(degree(page)));
    }
    let inner = order.len();
    order.extend(dangling);
    (order, inner)
}

fn is_local(graph: &Graph) -> bool {
    let near = graph.pages() as u32 / 64;
    let short: usize = (0..graph.pages())
        .map(|page| graph.targets(page).iter().filter(|&&target| target.abs_diff(page as u32) < near).count())
        .sum();
    short as f64 >= LOCAL_SHARE_MIN * graph.arcs() as f64
}
