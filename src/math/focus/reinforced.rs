//! Reinforcement learning (Rennie, McCallum 1999): what a link is worth in all pages of the topic beyond it.
//!
//! The worth Q of a link is the sum of the rewards of a crawler that knows the way and follows the link, each discounted
//! by the number of pages fetched before. Among examples the way is known. Classes of worth are recognised by the words
//! of the link, around it and above it, and of the page that has it; the worth of a waiting page is the mean of the
//! classes, weighed by their probabilities, over the links to it.

use std::collections::{HashMap, VecDeque};

use super::knowledge::Teller;
use super::links::url_words;
use super::{FetchedPage, Focus, LabelledPage, Lead};
use crate::importance::order::PageQueue;
use crate::learn::HashedWords;

/// Discount γ of the paper.
const DISCOUNT: f64 = 0.5;

/// Least worth of each class but the first. A page of the topic itself is worth 1 and more.
const BOUNDS: [f64; 3] = [0.1, 0.5, 1.0];

/// Rewards after so many pages, or so many links away, are not worth counting.
const PAGES_MAX: i32 = 7;

/// L2 penalty of weights.
const L2: f64 = 1.0;

/// The parts of a link from which words come.
const ANCHOR: u8 = 0;
const CONTEXT: u8 = 1;
const HEADING: u8 = 2;
const URL: u8 = 3;
const TITLE: u8 = 4;

/// The order; see the module documentation.
#[derive(Clone, Debug)]
pub struct Reinforced {
    classes: Teller,
    /// Mean worth of each class.
    worth: Vec<f64>,
    /// Sum of worths and number of links of each waiting page.
    waiting: HashMap<u32, (f64, f64)>,
}

fn words(title: &str, lead: &Lead<'_>) -> HashedWords {
    let mut words = HashedWords::default();
    words.add_text(ANCHOR, lead.anchor);
    words.add_text(CONTEXT, lead.context);
    words.add_text(HEADING, lead.heading);
    words.add_text(TITLE, title);
    url_words(lead.url, |word| words.add(URL, word));
    words
}

/// Returns what reaching each example is worth: pages of `class` are fetched in the order of their distance, one by one.
fn worths(examples: &[LabelledPage<'_>], class: usize) -> Vec<f64> {
    let mut met = vec![usize::MAX; examples.len()];
    let mut worth_from = |from: usize| {
        let (mut worth, mut next) = (0.0, 0);
        let mut queue = VecDeque::from([(from, 0)]);
        met[from] = from;
        while let Some((page, distance)) = queue.pop_front() {
            if examples[page].class == class {
                next = distance.max(next);
                worth += DISCOUNT.powi(next);
                next += 1;
            }
            if distance.max(next) >= PAGES_MAX {
                break;
            }
            for lead in &examples[page].leads {
                if std::mem::replace(&mut met[lead.target as usize], from) != from {
                    queue.push_back((lead.target as usize, distance + 1));
                }
            }
        }
        worth
    };
    (0..examples.len()).map(&mut worth_from).collect()
}

impl Reinforced {
    /// Learns what links between `examples` are worth for pages of `class`.
    #[must_use]
    pub fn learn(examples: &[LabelledPage<'_>], class: usize) -> Self {
        let worths = worths(examples, class);
        let (mut texts, mut labels) = (Vec::new(), Vec::new());
        let (mut sums, mut counts) = ([0.0, 0.25, 0.75, 1.5], [1.0; BOUNDS.len() + 1]);
        for example in examples {
            for lead in &example.leads {
                let worth = worths[lead.target as usize];
                let label = BOUNDS.iter().filter(|bound| worth >= **bound).count();
                sums[label] += worth;
                counts[label] += 1.0;
                texts.push(words(example.text.title, lead));
                labels.push(label);
            }
        }
        Self {
            classes: Teller::fit(&texts, &labels, BOUNDS.len() + 1, L2),
            worth: sums.iter().zip(counts).map(|(sum, count)| sum / count).collect(),
            waiting: HashMap::new(),
        }
    }

    fn worth(&self, title: &str, lead: &Lead<'_>) -> f64 {
        let classes = self.classes.probabilities(&words(title, lead));
        classes.iter().zip(&self.worth).map(|(chance, worth)| chance * worth).sum()
    }
}

impl Focus for Reinforced {
    fn begin(&mut self, seeds: &[(u32, &str)], queue: &mut dyn PageQueue) {
        seeds.iter().for_each(|seed| queue.put(seed.0, f64::MAX));
    }

    fn fetched(&mut self, page: &FetchedPage<'_>, queue: &mut dyn PageQueue) {
        for lead in page.leads {
            let worth = self.worth(page.text.title, lead);
            let (sum, count) = self.waiting.entry(lead.target).or_default();
            *sum += worth;
            *count += 1.0;
            queue.put(lead.target, *sum / *count);
        }
    }
}
