//! Context graphs (Diligenti, Coetzee, Lawrence, Giles, Gori 2000): the distance of a page from the topic, in links.
//!
//! The paper takes the links of the nearest layer first. Here a page is in all layers, each with its probability, and a
//! layer is worth what its links were worth among the examples: pages of the topic are at distance 0, but often lead to
//! it less than the lists in the next layer, and a page that surely leads nowhere comes after one that may.

use super::knowledge::{PAGE_L2, Teller};
use super::simple::BestScores;
use super::{FetchedPage, Focus, LabelledPage};
use crate::importance::order::PageQueue;
use crate::learn::HashedWords;

/// Number of layers by distance; pages further away are in one more.
const LAYERS: usize = 3;

/// Worth of a link to a page of the topic that is one link further away.
const DECAY: f64 = 0.5;

/// Worth of the links of each layer before any is seen, and the number of links that this counts as.
const WORTH: [f64; LAYERS + 1] = [0.3, 0.3, 0.15, 0.05];
const WORTH_WEIGHT: f64 = 20.0;

/// Layers of pages around the topic, and what their links are worth.
#[derive(Clone, Debug)]
pub struct ContextGraph {
    layers: Teller,
    worth: [f64; LAYERS + 1],
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
        let (mut sums, mut counts) = (WORTH.map(|worth| worth * WORTH_WEIGHT), [WORTH_WEIGHT; LAYERS + 1]);
        for (example, &from) in examples.iter().zip(&layer) {
            for lead in &example.leads {
                let to = layer[lead.target as usize];
                sums[from] += if to < LAYERS { DECAY.powi(to as i32) } else { 0.0 };
                counts[from] += 1.0;
            }
        }
        let texts: Vec<HashedWords> = examples.iter().map(|example| example.text.words()).collect();
        Self {
            layers: Teller::fit(&texts, &layer, LAYERS + 1, PAGE_L2),
            worth: std::array::from_fn(|layer| sums[layer] / counts[layer]),
            best: BestScores::default(),
        }
    }
}

impl Focus for ContextGraph {
    fn begin(&mut self, seeds: &[(u32, &str)], queue: &mut dyn PageQueue) {
        self.best.begin(seeds, queue);
    }

    fn fetched(&mut self, page: &FetchedPage<'_>, queue: &mut dyn PageQueue) {
        let layers = self.layers.probabilities(&page.text.words());
        let score = layers.iter().zip(&self.worth).map(|(chance, worth)| chance * worth).sum();
        page.leads.iter().for_each(|lead| self.best.raise(lead.target, score, queue));
    }
}
