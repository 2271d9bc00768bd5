//! The web graphs of Cooper and Frieze ("A general model of web graphs", Random Structures and Algorithms 22, 2003), in
//! their directed form: pages come one by one, old pages get new links, and links prefer what is linked already.

use super::super::ReadError;
use super::super::random::Random;
use super::distinct;
use crate::importance::{Graph, GraphBuilder};

/// The parameters of the model; each is a probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CooperFrieze {
    /// Share of steps that add links to an old page; the others add a page with links.
    alpha: f64,
    /// Of the links of a new page, the share that lead to any page; the others lead to one by its in-degree.
    beta: f64,
    /// The same of links that an old page gets.
    gamma: f64,
    /// Share of old steps whose page is any page; the others take one by its out-degree.
    delta: f64,
}

impl Default for CooperFrieze {
    /// Degrees as on the web (Broder and others, "Graph structure in the Web", 2000): exponents of 2.1 for links to pages
    /// and of 2.7 for links from them.
    fn default() -> Self {
        Self { alpha: 0.7, beta: 1.0 / 11.0, gamma: 1.0 / 11.0, delta: 0.16 }
    }
}

impl CooperFrieze {
    /// Reads the four parameters, as in `.7,.1,.1,.2`; `None` if they are no probabilities, or no page would ever come.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let numbers: Vec<f64> = text.split(',').map(|number| number.parse().ok()).collect::<Option<_>>()?;
        let &[alpha, beta, gamma, delta] = &numbers[..] else { return None };
        let are_shares = numbers.iter().all(|share| (0.0..=1.0).contains(share));
        (are_shares && alpha < 1.0).then_some(Self { alpha, beta, gamma, delta })
    }

    /// Generates a graph with `links` links a page on average; a link to the page itself and a second link to the same
    /// page, which the model allows, are left out.
    pub(super) fn graph(self, pages: u32, links: f64, seed: u64) -> Result<Graph, ReadError> {
        let mut rows: Vec<Vec<u32>> = vec![Vec::new(); pages as usize];
        for (from, to) in self.arcs(pages, links, seed) {
            if from != to {
                rows[from as usize].push(to);
            }
        }
        let mut builder = GraphBuilder::new(pages as usize, false);
        for (page, row) in (0..).zip(&mut rows) {
            distinct(row);
            builder.push_row(page, row)?;
        }
        Ok(builder.finish())
    }

    /// Runs the model until there are this many pages, which begin with one page without links. Each step adds as many
    /// links on average, whether its page is new or old: `links` for each page that comes.
    fn arcs(self, pages: u32, links: f64, seed: u64) -> Vec<(u32, u32)> {
        let mut random = Random::new(seed);
        let mean = links * (1.0 - self.alpha);
        let mut arcs: Vec<(u32, u32)> = Vec::with_capacity((f64::from(pages) * links) as usize);
        let mut known = 1;
        while known < pages {
            let is_old = random.unit() < self.alpha;
            let count = link_count(&mut random, mean);
            let from = match is_old {
                true => chosen(&mut random, known, self.delta, &arcs, |arc| arc.0),
                false => known,
            };
            let any = if is_old { self.gamma } else { self.beta };
            // The links of a step are chosen by the degrees before it.
            let before = arcs.len();
            for _ in 0..count {
                let to = chosen(&mut random, known, any, &arcs[..before], |arc| arc.1);
                arcs.push((from, to));
            }
            known += u32::from(!is_old);
        }
        arcs
    }
}

/// Chooses a page: any of the first `known` with probability `any`, otherwise by its number of links, as the end of a
/// random link.
fn chosen(
    random: &mut Random,
    known: u32,
    any: f64,
    arcs: &[(u32, u32)],
    end: impl Fn((u32, u32)) -> u32,
) -> u32 {
    if arcs.is_empty() || random.unit() < any {
        return random.below(known);
    }
    end(arcs[random.below(u32::try_from(arcs.len()).unwrap_or(u32::MAX)) as usize])
}

/// Draws a number of links with this mean: at least 1, and geometrically distributed from there, or 0 and 1 if the mean
/// is below 1.
fn link_count(random: &mut Random, mean: f64) -> u32 {
    if mean <= 1.0 {
        return u32::from(random.unit() < mean);
    }
    1 + ((1.0 - random.unit()).ln() / (1.0 - 1.0 / mean).ln()) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Links a page gets in a step t, if it has k: (A + B k) / t.
    fn rates(of: CooperFrieze) -> (f64, f64) {
        // New and old steps add as many links here, so the means of the paper cancel out.
        let CooperFrieze { alpha, beta, gamma, .. } = of;
        ((1.0 - alpha) * beta + alpha * gamma, (1.0 - alpha) * (1.0 - beta) + alpha * (1.0 - gamma))
    }

    /// The shares of pages with 0, 1, 2, … links that the model tends to: they solve
    /// d_k = (A' + B (k - 1)) d_{k-1} - (A' + B k) d_k + [k = 0], from which d_k falls as k^-(1 + 1/B).
    fn shares(of: CooperFrieze, links: f64, count: usize) -> Vec<f64> {
        let (a, b) = rates(of);
        let a = a * links;
        let mut shares = vec![1.0 / (1.0 + a)];
        for k in 1..count {
            let before = shares[k - 1];
            shares.push(before * (a + b * (k - 1) as f64) / (1.0 + a + b * k as f64));
        }
        shares
    }

    fn degrees(of: CooperFrieze, pages: u32, links: f64, end: impl Fn((u32, u32)) -> u32) -> Vec<usize> {
        let mut degrees = vec![0; pages as usize];
        of.arcs(pages, links, 7).into_iter().for_each(|arc| degrees[end(arc) as usize] += 1);
        degrees
    }

    /// The exponent of a power law with these values from `least` on (Clauset, Shalizi, Newman 2009, equation 3.7).
    fn exponent(values: &[usize], least: usize) -> f64 {
        let tail = values.iter().filter(|value| **value >= least);
        let (count, sum) = tail.fold((0.0, 0.0), |(count, sum): (f64, f64), value| {
            (count + 1.0, sum + (*value as f64 / (least as f64 - 0.5)).ln())
        });
        1.0 + count / sum
    }

    #[test]
    fn links_to_pages_follow_the_power_law_of_the_model() {
        let steep = CooperFrieze { alpha: 0.4, beta: 0.2, gamma: 0.6, delta: 0.5 };
        for (of, predicted) in [(CooperFrieze::default(), 2.1), (steep, 1.0 + 1.0 / 0.64)] {
            let (_, b) = rates(of);
            assert!((1.0 + 1.0 / b - predicted).abs() < 1e-9);
            let (pages, links) = (200_000, 10.0);
            let found = degrees(of, pages, links, |arc| arc.1);
            let mean = found.iter().sum::<usize>() as f64 / f64::from(pages);
            assert!((mean / links - 1.0).abs() < 0.02, "{mean}");
            // Pages with at least so many links, as the recursion says.
            let shares = shares(of, links, 1001);
            for least in [1, 3, 10, 30, 100, 300, 1000] {
                let expected = 1.0 - shares[..least].iter().sum::<f64>();
                let share = found.iter().filter(|links| **links >= least).count() as f64 / f64::from(pages);
                let pages_expected = expected * f64::from(pages);
                let noise = 4.0 / pages_expected.sqrt();
                assert!((share / expected - 1.0).abs() < 0.05 + noise, "{least}: {share} for {expected}");
            }
            let measured = exponent(&found, 100);
            assert!((measured - predicted).abs() < 0.12, "{measured} for {predicted}");
        }
        // Links to any page fall off faster than any power.
        let even = CooperFrieze { beta: 1.0, gamma: 1.0, ..CooperFrieze::default() };
        assert!(degrees(even, 20_000, 10.0, |arc| arc.1).into_iter().max().unwrap() < 200);
    }

    #[test]
    fn links_from_pages_are_as_uneven_as_the_parameters_say() {
        // A page is chosen by its links in a share of .588 of steps: an exponent of about 2.7.
        let measured = exponent(&degrees(CooperFrieze::default(), 200_000, 10.0, |arc| arc.0), 100);
        assert!((2.4..3.0).contains(&measured), "{measured}");
        let few = CooperFrieze { delta: 1.0, ..CooperFrieze::default() };
        assert!(degrees(few, 20_000, 10.0, |arc| arc.0).into_iter().max().unwrap() < 500);
    }

    #[test]
    fn parameters_are_probabilities() {
        let of = CooperFrieze { alpha: 0.5, beta: 0.1, gamma: 0.2, delta: 1.0 };
        assert_eq!(CooperFrieze::parse(".5,.1,.2,1"), Some(of));
        for wrong in [
            "",
            ".5",
            ".5,.1,.2",
            ".5,.1,.2,1.1",
            "1,.1,.2,.3",
            ".5,-.1,.2,.3",
            ".5,.1,.2,NaN",
            ".5,.1,.2,.3,.4",
        ] {
            assert_eq!(CooperFrieze::parse(wrong), None, "{wrong}");
        }
        assert_eq!(of.graph(1, 10.0, 1).unwrap().arcs(), 0);
    }
}
