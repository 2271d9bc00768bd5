//! The automatic librarian of the OPIC paper (section 5), judged by the selections of real librarians.
//!
//! A random share of the hosts that librarians selected is known. Each ranking method orders all other hosts and is
//! judged by the positions of the remaining selected hosts.

use std::collections::HashSet;
use std::io::Read;
use std::path::Path;

use archive_ask::review::learned::{Hosts, LearnError, Learned, without_www};
use archive_math::graphs::host_of;
use archive_math::graphs::random::Random;
use archive_math::importance::rank::{Harmonic, PageRank, hits};
use archive_math::learn::{Platt, measures};
use flate2::read::MultiGzDecoder;

use super::agreement::best_first;

/// Number of hosts at the top of an order that a librarian would look at.
pub const FIRST: usize = 1000;
/// Number of equally large groups of hosts in which predicted probabilities are compared with outcomes.
const BINS: usize = 20;
/// Largest decompressed size of a file of selected hosts, in bytes.
const SELECTED_BYTES_MAX: u64 = 256 << 20;
/// Tolerance of the rank computation.
const TOLERANCE: f64 = 1e-9;

/// Reads hosts or URLs, one per line, optionally in gzip, and strips `www.`.
///
/// # Errors
/// The file cannot be read, or is too large.
pub fn selected(path: &Path) -> std::io::Result<HashSet<String>> {
    let text = text(path)?;
    let host = |line: &str| {
        let host = host_of(line.trim());
        without_www(host.split(':').next().unwrap_or_default())
    };
    Ok(text.lines().map(host).filter(|host| !host.is_empty()).collect())
}

/// Reads the text of a file, optionally in gzip.
///
/// # Errors
/// The file cannot be read, or is too large.
pub(super) fn text(path: &Path) -> std::io::Result<String> {
    let file = std::fs::read(path)?;
    let mut text = String::new();
    let is_gzip = file.starts_with(&[0x1f, 0x8b]);
    let reader: Box<dyn Read> =
        if is_gzip { Box::new(MultiGzDecoder::new(&*file)) } else { Box::new(&*file) };
    let read = reader.take(SELECTED_BYTES_MAX).read_to_string(&mut text)?;
    if read as u64 == SELECTED_BYTES_MAX {
        let what = format!("has more than {SELECTED_BYTES_MAX} bytes");
        return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, what));
    }
    Ok(text)
}

/// A kind of importance by which hosts are ranked.
#[derive(Clone, Debug)]
pub struct FactKind {
    /// Its name.
    pub name: &'static str,
    /// One value per host; higher is better.
    pub values: Vec<f64>,
}

/// Returns every kind of importance of hosts that needs only the links.
///
/// # Errors
/// The graph cannot be ranked.
pub fn kinds(hosts: &Hosts) -> Result<Vec<FactKind>, LearnError> {
    let weighted = hosts.graph();
    let graph = weighted.clone().unweighted();
    let rank = PageRank { tolerance: TOLERANCE, ..PageRank::default() };
    let opic = PageRank { damping: archive_math::importance::rank::Damping::OneMoreLink, ..rank.clone() };
    let mut in_degree = vec![0.0; graph.pages()];
    for host in 0..graph.pages() {
        graph.targets(host).iter().for_each(|&target| in_degree[target as usize] += 1.0);
    }
    let kind = |name, values| FactKind { name, values };
    Ok(vec![
        kind("pagerank", rank.run(graph.clone())?.values),
        kind("pagerank_weighted", rank.run(weighted.clone())?.values),
        kind("opic", opic.run(graph.clone())?.values),
        kind("harmonic", Harmonic::default().run(&graph).values),
        kind("in_degree", in_degree),
        kind("hits", hits(&graph, TOLERANCE, 1000).0.values),
    ])
}

/// Quality of an order of the unknown hosts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// Area under the ROC curve.
    pub auc: f64,
    /// Expected calibration error.
    pub ece: f64,
    /// Share of the unknown selected hosts among the first [`FIRST`].
    pub first_1000: f64,
}

/// A run: the draw of known hosts and the scores of the methods on the others.
#[derive(Clone, Debug)]
pub struct Run {
    /// Number of known selected hosts in the graph.
    pub known: usize,
    /// Number of selected hosts in the graph that had to be found.
    pub unknown: usize,
    /// Scores of each kind of importance and, at the end, of `librarian`, the learned order.
    pub scores: Vec<(&'static str, Score)>,
}

/// Draws a share of the selected hosts as known (in the graph or not) and judges each order by the others.
///
/// # Errors
/// There is too little to learn from, or nothing left to find.
pub fn run(
    hosts: &Hosts,
    kinds: &[FactKind],
    selected: &HashSet<String>,
    share: f64,
    rng: u64,
) -> Result<Option<Run>, LearnError> {
    let mut order: Vec<&String> = selected.iter().collect();
    order.sort_unstable();
    let mut random = Random::new(rng);
    let mut known = HashSet::new();
    let wanted = (order.len() as f64 * share).round() as usize;
    for _ in 0..wanted.min(order.len()) {
        let drawn = random.below(order.len() as u32) as usize;
        known.insert(order.swap_remove(drawn).clone());
    }
    let names = hosts.names();
    let others: Vec<usize> = (0..names.len()).filter(|&host| !known.contains(&names[host])).collect();
    let labels: Vec<bool> = others.iter().map(|&host| selected.contains(&names[host])).collect();
    let is_known: Vec<bool> = names.iter().map(|name| known.contains(name)).collect();
    // Expected number of unknown selected hosts for each known one that looks the same.
    let more = (1.0 - share) / share;
    let mut scores = Vec::new();
    for kind in kinds {
        let logarithms: Vec<f64> = kind.values.iter().map(|value| (value + 1e-12).ln()).collect();
        let platt = Platt::fit(&logarithms, &is_known);
        let odds = |host: &usize| archive_math::learn::log_odds(platt.probability(logarithms[*host])).exp();
        let probabilities: Vec<f64> = others.iter().map(|host| (odds(host) * more).min(1.0)).collect();
        let values: Vec<f64> = others.iter().map(|&host| kind.values[host]).collect();
        scores.extend(score(&values, &probabilities, &labels).map(|score| (kind.name, score)));
    }
    let learned = Learned::fit(hosts, &known)?;
    let values: Vec<f64> = others.iter().map(|&host| learned.log_odds(host)).collect();
    let probabilities: Vec<f64> = others.iter().map(|&host| learned.probability(host, share)).collect();
    let Some(librarian) = score(&values, &probabilities, &labels) else { return Ok(None) };
    scores.push(("librarian", librarian));
    Ok(Some(Run {
        known: is_known.iter().filter(|known| **known).count(),
        unknown: labels.iter().filter(|label| **label).count(),
        scores,
    }))
}

/// Returns the score; `None` if only selected or only unselected hosts are left.
fn score(values: &[f64], probabilities: &[f64], labels: &[bool]) -> Option<Score> {
    let order = best_first(values);
    let hits = |hosts: &[usize]| hosts.iter().filter(|&&host| labels[host]).count() as f64;
    Some(Score {
        auc: measures::auc(values, labels)?,
        ece: measures::calibration_error(probabilities, labels, BINS)?,
        first_1000: hits(&order[..FIRST.min(order.len())]) / hits(&order),
    })
}
