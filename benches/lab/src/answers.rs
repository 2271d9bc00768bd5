//! Known answers: what every method must find on graphs whose importance is computed by hand, and how the estimates of
//! a crawl must behave if nothing changes, or if a part of the web disappears.

use archive_math::graphs::slices::{BUFFER_BYTES, Builder, Sliced, Which};
use archive_math::importance::rank::{Dangling, Harmonic, Matrix, PageRank, Power, combined, hits};
use archive_math::importance::{Account, Graph, Ledger, Policy, SmallEdge, Weight, Window};
use serde::Serialize;

use super::LabError;
use super::agreement::{tau, top};
use super::convergence::{Selection, Simulation, exact};

/// Number of pages in the comparison of the most important ones.
const TOP: usize = 100;

/// Turns of G before measuring starts.
const WARM_UP: usize = 40;

/// Length of the windows, in turns of G.
const WINDOW: f64 = 8.0;

/// The result of one method on one graph.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// The known answer and its reason.
    pub known: &'static str,
    /// Name of the method.
    pub method: &'static str,
    /// Sum of absolute differences to the known vector.
    pub l1: f64,
}

/// PageRank of `0 -> 1, 1 -> 0, 2 -> 0, 2 -> 1`, d = .85: with y = 1 for a page without in-links, y0 = y1 = 1.425 / .15
/// = 9.5.
const PAGE_RANK: &str = "0 and 1 link to each other, 2 to both: PageRank is (9.5, 9.5, 1) / 20";

/// The star 0 - 1, 0 - 2 has the eigenvector (sqrt 2, 1, 1) as a matrix, and (2, 1, 1) as a walk.
const STAR: &str = "a star of two rays, links both ways: the eigenvector is (sqrt 2, 1, 1)";
const STAR_WALK: &str = "the same star as a walk without jumps: (2, 1, 1) / 4";
/// With damping out / (out + 1): y0 = 1 + y1 / 2, y1 = y2 = 1 + y0 / 3.
const OPIC: &str = "0 and 1 link to each other, 0 to 2: OPIC's fixed point is (9, 8, 8) / 25";
/// Hubs 0 and 1 link to 2, 1 also to 3: authorities are the eigenvector of ((2, 1), (1, 1)).
const HUBS: &str = "0 and 1 link to 2, 1 also to 3: authorities are in the golden ratio";
const DISTANCES: &str = "0 -> 1 -> 2 and 3 -> 2: harmonic centrality is (0, 1, 2.5, 0)";

/// Runs all methods on graphs with answers known by hand.
///
/// # Errors
/// A temporary folder cannot be used.
pub fn by_hand() -> Result<Vec<Answer>, LabError> {
    let mut answers = page_rank()?;
    let mut add = |known, method, found: &[f64], expected: &[f64]| {
        answers.push(Answer { known, method, l1: difference(found, expected) });
    };
    let star = Graph::from_arcs(3, &[(0, 1), (1, 0), (0, 2), (2, 0)])?;
    let root = 2f64.sqrt();
    let expected = [root, 1.0, 1.0].map(|value| value / (root + 2.0));
    let power = Power { damping: 1.0, add_identity: true, tolerance: 1e-13, ..Power::default() };
    for (method, matrix) in [("links, A + I", Matrix::Links), ("symmetric, A + I", Matrix::Symmetric)] {
        add(STAR, method, &Power { matrix, ..power.clone() }.run(&star)?.values, &expected);
    }
    add(STAR_WALK, "walk, A + I", &power.run(&star)?.values, &[0.5, 0.25, 0.25]);
    let small = Graph::from_arcs(3, &[(0, 1), (1, 0), (0, 2)])?;
    let expected = [0.36, 0.32, 0.32];
    let options = PageRank {
        damping: archive_math::importance::rank::Damping::OneMoreLink,
        tolerance: 1e-11,
        ..PageRank::default()
    };
    add(OPIC, "opic, off line", &options.run(small.clone())?.values, &expected);
    add(OPIC, "opic, on line", &on_line(&small, SmallEdge::Link), &expected);
    let golden = (1.0 + 5f64.sqrt()) / 2.0;
    let hubs = Graph::from_arcs(4, &[(0, 2), (1, 2), (1, 3)])?;
    let expected = [0.0, 0.0, golden / (golden + 1.0), 1.0 / (golden + 1.0)];
    add(HUBS, "hits", &hits(&hubs, 1e-13, 1000).0.values, &expected);
    let path = Graph::from_arcs(4, &[(0, 1), (1, 2), (3, 2)])?;
    add(DISTANCES, "harmonic", &Harmonic::default().run(&path).values, &[0.0, 1.0, 2.5, 0.0]);
    Ok(answers)
}

/// Runs all implementations of PageRank.
fn page_rank() -> Result<Vec<Answer>, LabError> {
    let graph = Graph::from_arcs(3, &[(0, 1), (1, 0), (2, 0), (2, 1)])?;
    let expected = [9.5, 9.5, 1.0].map(|value| value / 20.0);
    let mut answers = Vec::new();
    let mut add = |method, found: &[f64]| {
        answers.push(Answer { known: PAGE_RANK, method, l1: difference(found, &expected) });
    };
    let exactly = PageRank { tolerance: 1e-11, ..PageRank::default() };
    add("pagerank", &exactly.run(graph.clone())?.values);
    let power = Power { tolerance: 1e-13, ..Power::default() };
    add("walk, renormalised", &power.run(&graph)?.values);
    let personalised = Power { dangling: Dangling::Personalised, ..power.clone() };
    add("walk, personalised", &personalised.run(&graph)?.values);
    add("walk, A + I", &Power { add_identity: true, ..power.clone() }.run(&graph)?.values);
    let turned = graph.transposed();
    add("interest of the turned graph", &Power { matrix: Matrix::Inverse, ..power }.run(&turned)?.values);
    let everywhere = [1.0; 3];
    let (importance, _) = combined(&graph, 0.85, &everywhere, 1e-13, 1000)?;
    add("combined, importance", &importance.values);
    let (_, interest) = combined(&turned, 0.85, &everywhere, 1e-13, 1000)?;
    add("combined, interest of the turned graph", &interest.values);
    for (method, gauss_seidel) in [("slices, Gauss-Seidel", true), ("slices, plain", false)] {
        let folder = tempfile::tempdir()?;
        let which = Which::Direct;
        let mut slices = Builder::new(folder.path(), graph.pages(), 8 * BUFFER_BYTES, which.vectors(), 1)?;
        (0..graph.pages()).try_for_each(|page| slices.push(graph.targets(page)))?;
        let options =
            Sliced { which, damping: 0.85, tolerance: 1e-11, iterations_max: 1000, threads: 1, gauss_seidel };
        let outcome = options.run(&slices.finish()?, folder.path(), None)?;
        add(method, &outcome.importance()?.unwrap_or_default());
    }
    add("opic, on line, small edge .15", &on_line(&graph, SmallEdge::Share(0.15)));
    Ok(answers)
}

/// Returns the importance that the crawler's own ledger finds if all pages are visited in turn until the found cash no
/// longer changes.
///
/// Cash is in whole units, 2^28 for each page that was ever found. Before the few pages of the graph, many others
/// vanish and leave their cash to them, so that a unit is smaller than the compared digits.
fn on_line(graph: &Graph, small_edge: SmallEdge) -> Vec<f64> {
    const ROUNDS: usize = 500;
    const VANISHED: usize = 1 << 16;
    let policy = Policy { small_edge, virtual_share_max: 0.0, ..Policy::neutral() };
    let mut ledger = Ledger::new(Policy { virtual_share_max: 1.0, ..policy });
    for _ in 0..VANISHED {
        let mut account = ledger.discover();
        ledger.visit(&mut account, 0).finish();
        ledger.close(&account);
    }
    let mut ledger = Ledger::resume(ledger.numbers(), policy);
    let mut accounts: Vec<Account> = (0..graph.pages()).map(|_| ledger.discover()).collect();
    let mut found = vec![0.0; graph.pages()];
    for _ in 0..ROUNDS {
        for page in 0..graph.pages() {
            let targets = graph.targets(page);
            let mut own = accounts[page];
            found[page] = ledger.cash(&own).share();
            let mut payout = ledger.visit(&mut own, targets.len() as u64 * u64::from(Weight::LINK.parts()));
            accounts[page] = own;
            for &target in targets {
                let paid = &mut accounts[target as usize];
                paid.base = payout.pay(paid.base, paid.credit.is_some(), Weight::LINK);
            }
            payout.finish();
        }
    }
    let sum: f64 = found.iter().sum();
    found.iter_mut().for_each(|value| *value /= sum);
    found
}

fn difference(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum()
}

/// Ranks after another crawl of an unchanged graph, compared with those before the first of these crawls.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Recrawl {
    /// Number of crawls since.
    pub crawls: usize,
    /// Sum of absolute differences to the exact vector.
    pub l1: f64,
    /// Sum of absolute differences to the earlier estimates.
    pub moved: f64,
    /// Kendall's tau with the earlier ranks.
    pub tau: f64,
    /// Number of the 100 best pages that are unchanged.
    pub top_100: usize,
}

/// Crawls an unchanged graph repeatedly, all pages in turn.
///
/// # Errors
/// None for a graph in memory.
pub fn recrawls(graph: &Graph, crawls: usize) -> Result<Vec<Recrawl>, LabError> {
    let exact = exact(graph, 1)?;
    let window = Window::Interpolation { time: WINDOW };
    let mut simulation = Simulation::new(graph, Policy::neutral(), window, Selection::Cycle, 1);
    simulation.run(WARM_UP * graph.pages());
    let before = simulation.estimate();
    let after = (1..=crawls).map(|crawls| {
        simulation.run(graph.pages());
        let now = simulation.estimate();
        Recrawl {
            crawls,
            l1: difference(&now, &exact),
            moved: difference(&now, &before),
            tau: tau(&now, &before),
            top_100: top(&now, &before, TOP),
        }
    });
    Ok(after.collect())
}

/// Remaining importance of pages that lost all their links.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fading {
    /// Name of the window.
    pub window: &'static str,
    /// Time since the loss, in windows.
    pub windows: f64,
    /// Remaining part of the importance that the pages must lose: 1 at first, 0 when the estimate is correct.
    pub left: f64,
}

/// Removes all links to and from the most important page and the pages it links to, and crawls for three more windows.
///
/// An interpolated window never forgets completely. It is about as exact as a fixed one of twice its length
/// (`archive-lab windows`), so the comparison includes an interpolated window of half the length.
///
/// # Errors
/// None for a graph in memory.
pub fn fading(graph: &Graph) -> Result<Vec<Fading>, LabError> {
    let before = exact(graph, 1)?;
    let first = (0..graph.pages()).max_by(|&a, &b| before[a].total_cmp(&before[b])).unwrap_or(0);
    let mut removed = graph.targets(first).to_vec();
    removed.push(first as u32);
    removed.sort_unstable();
    removed.dedup();
    let of = |values: &[f64]| removed.iter().map(|&page| values[page as usize]).sum::<f64>();
    let windows = [
        ("fixed", Window::Fixed { time: WINDOW }),
        ("interpolation", Window::Interpolation { time: WINDOW }),
        ("interpolation, half as long", Window::Interpolation { time: WINDOW / 2.0 }),
        ("all of the past", Window::All),
    ];
    let mut fading = Vec::new();
    for (name, window) in windows {
        let mut simulation = Simulation::new(graph, Policy::neutral(), window, Selection::Cycle, 1);
        simulation.run(WARM_UP * graph.pages());
        simulation.unlink(&removed);
        let after = exact(&simulation.graph()?, 1)?;
        let begun = simulation.clock();
        let had = of(&simulation.estimate());
        for half in 0..=6 {
            let windows = f64::from(half) / 2.0;
            while simulation.clock() < begun + windows * WINDOW {
                simulation.run(graph.pages() / 8 + 1);
            }
            let left = (of(&simulation.estimate()) - of(&after)) / (had - of(&after));
            fading.push(Fading { window: name, windows, left });
        }
    }
    Ok(fading)
}

#[cfg(test)]
mod tests {
    use super::*;
    use archive_math::graphs;

    fn graph() -> Graph {
        graphs::read(std::path::Path::new("generate:copy:1500:8:1")).unwrap().graph
    }

    #[test]
    fn all_methods_find_what_is_known_by_hand() {
        let answers = by_hand().unwrap();
        assert_eq!(answers.iter().filter(|answer| answer.known == PAGE_RANK).count(), 10);
        for answer in answers {
            assert!(answer.l1 < 1e-9, "{answer:?}");
        }
    }

    #[test]
    fn twenty_crawls_of_an_unchanged_graph_leave_the_ranks() {
        let crawls = recrawls(&graph(), 20).unwrap();
        let last = crawls.last().unwrap();
        assert_eq!(last.crawls, 20);
        assert!(last.moved < 0.01 && last.l1 < 0.05 && last.top_100 >= 98, "{last:?}");
        assert!(last.tau > 0.97, "{last:?}");
    }

    #[test]
    fn a_removed_part_fades_within_a_window() {
        let fading = fading(&graph()).unwrap();
        let left = |window: &str, windows: f64| {
            fading.iter().find(|f| f.window == window && f.windows == windows).unwrap().left
        };
        assert_eq!(left("fixed", 0.0), 1.0);
        // The window may include one more visit.
        assert!(left("fixed", 1.0).abs() < 0.2 && left("fixed", 1.5).abs() < 0.05, "{fading:?}");
        assert!(left("interpolation", 1.0) < 0.5 && left("interpolation", 3.0) < 0.1, "{fading:?}");
        assert!(left("interpolation, half as long", 1.0) < 0.2, "{fading:?}");
        assert!(left("all of the past", 3.0) > 0.5, "{fading:?}");
    }
}
