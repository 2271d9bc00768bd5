//! Context graphs (Diligenti, Coetzee, Lawrence, Giles, Gori 2000): the distance of a page from the topic, in links.

use super::knowledge::{PAGE_L2, Teller};
use super::simple::BestScores;
use super::{FetchedPage, Focus, LabelledPage};
use crate::importance::order::PageQueue;
use crate::learn::HashedWords;

/// Number of layers by distance; pages further away are in one more.
const LAYERS: usize = 3;

/// One queue per layer: links on pages nearest to the topic come first.
#[derive(Clone, Debug)]
pub struct ContextGraph {
    layers: Teller,
    best: BestScores,
}

impl ContextGraph {
    /// Learns from `examples` what pages of `class` look like, pages that link to them, pages that link to those, and
    /// all others.
    #[must_use]
    pub fn learn(examples: &[LabelledPage<'_>], class: usize) -> Self {
        let mut layer: Vec<usize> =
            examples.iter().map(|example| if example.class == class { 0 } else { LAYERS }).collect();
        for next in 1..LAYERS {
            for (page, example) in examples.iter().enumerate() {
                let leads_on = example.leads.iter().any(|lead| layer[lead.target as usize] == next - 1);
                if layer[page] == LAYERS && leads_on {
                    layer[page] = next;
                }
            }
        }
        let texts: Vec<HashedWords> = examples.iter().map(|example| example.text.words()).collect();
        Self { layers: Teller::fit(&texts, &layer, LAYERS + 1, PAGE_L2), best: BestScores::default() }
    }
}

impl Focus for ContextGraph {
    fn begin(&mut self, seeds: &[(u32, &str)], queue: &mut dyn PageQueue) {
        self.best.begin(seeds, queue);
    }

    fn fetched(&mut self, page: &FetchedPage<'_>, queue: &mut dyn PageQueue) {
        let layers = self.layers.probabilities(&page.text.words());
        let (layer, chance) =
            layers.iter().copied().enumerate().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((LAYERS, 0.0));
        let score = (LAYERS - layer) as f64 + chance;
        page.leads.iter().for_each(|lead| self.best.raise(lead.target, score, queue));
    }
}
