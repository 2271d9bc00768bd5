//! The automatic librarian: learns from the hosts that people chose how likely they are to choose each other host.
//!
//! The model uses the [`HostSign`]s of a host: its rank, ranks and links from and to chosen hosts, its name. They are
//! weighted by logistic regression over all hosts; hosts that nobody chose count as not chosen. While the weights are
//! learned, the signs that are computed from chosen hosts leave out a fifth of the hosts, including the host itself
//! (cross-fitting): a chosen host must not be recognised by its own label.

mod names;
mod signs;

pub use names::without_www;
pub use signs::HostSign;

use std::collections::{HashMap, HashSet};

use archive_math::importance::rank::RankError;
use archive_math::importance::{Graph, GraphError};
use archive_math::learn::{Binary, HashedWords};
use names::{HostName, TermVectors};
use signs::SignGraph;

/// Minimum number of chosen hosts to learn from.
pub const CHOSEN_MIN: usize = 5;

/// Strength of the L2 regularisation (a normal prior with variance 1/10 over standardised features).
const BOUND: f64 = 10.0;

/// Reasons that add less than this to the log-odds are not listed.
const REASON_MIN: f64 = 0.1;

/// Why nothing can be learned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LearnError {
    /// There are too few examples.
    #[error("too few of the chosen hosts are in the graph: {found}, and at least {CHOSEN_MIN} are needed")]
    TooFew {
        /// Number of chosen hosts in the graph.
        found: usize,
    },
    /// The numbers of names and hosts differ.
    #[error("there are {names} names for {hosts} hosts")]
    Names {
        /// Number of names.
        names: usize,
        /// Number of hosts in the graph.
        hosts: usize,
    },
    /// The graph cannot be ranked.
    #[error(transparent)]
    Rank(#[from] RankError),
    /// The graph is too large.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

/// Hosts and the links between them. A host with and without `www.` is one host.
#[derive(Clone, Debug)]
pub struct Hosts {
    names: Vec<String>,
    is_www: Vec<bool>,
    graph: Graph,
    content: Vec<HostContent>,
}

/// What an archive has of a host; empty if the host is known by links only.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostContent {
    /// Number of captured pages.
    pub pages: u32,
    /// Share of XML pages among them, 0 to 1.
    pub xml: f64,
    /// Their mean size in bytes.
    pub bytes: f64,
    /// Their mean expected number of changes per day.
    pub changes: f64,
    /// The most common language, as in `en`; empty if unknown.
    pub language: String,
    /// Words in the titles of its most important pages.
    pub titles: HashedWords,
}

impl Hosts {
    /// Merges hosts with the same name [`without_www`]. Links within a host are dropped.
    ///
    /// # Errors
    /// When the graph and the names have different numbers of hosts.
    pub fn new(names: &[String], graph: &Graph) -> Result<Self, LearnError> {
        if names.len() != graph.pages() {
            return Err(LearnError::Names { names: names.len(), hosts: graph.pages() });
        }
        let mut numbers = HashMap::new();
        let mut merged = Self {
            names: Vec::new(),
            is_www: Vec::new(),
            graph: Graph::from_arcs(0, &[])?,
            content: Vec::new(),
        };
        let mut number_of = Vec::with_capacity(names.len());
        for name in names {
            let bare = without_www(name);
            let is_www = bare.len() != name.trim().len();
            let number = *numbers.entry(bare.clone()).or_insert(merged.names.len() as u32);
            if number as usize == merged.names.len() {
                merged.names.push(bare);
                merged.is_www.push(false);
            }
            merged.is_www[number as usize] |= is_www;
            number_of.push(number);
        }
        let arcs: Vec<(u32, u32, f32)> = (0..names.len())
            .flat_map(|host| {
                let weights = graph.weights(host);
                let number_of = &number_of;
                graph.targets(host).iter().enumerate().map(move |(place, &target)| {
                    let weight = weights.map_or(1.0, |weights| weights[place]);
                    (number_of[host], number_of[target as usize], weight)
                })
            })
            .filter(|(from, to, _)| from != to)
            .collect();
        merged.graph = Graph::from_weighted_arcs(merged.names.len(), &arcs)?;
        merged.content = vec![HostContent::default(); merged.names.len()];
        Ok(merged)
    }

    /// The content of each host, by host number.
    pub(crate) fn content_mut(&mut self) -> &mut [HostContent] {
        &mut self.content
    }

    /// Names of the hosts, without `www.`.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Weighted links between the hosts.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }
}

/// The trained model with the signs of each host.
#[derive(Clone, Debug)]
pub struct Learned {
    model: Binary,
    /// Sign values, one row per host.
    rows: Vec<Vec<f64>>,
    means: Vec<f64>,
}

impl Learned {
    /// Learns from `chosen` hosts, named without `www.`; those outside the graph contribute only their names. The
    /// result is deterministic.
    ///
    /// # Errors
    /// When fewer than [`CHOSEN_MIN`] of them are in the graph.
    pub fn fit(hosts: &Hosts, chosen: &HashSet<String>) -> Result<Self, LearnError> {
        let is_chosen: Vec<bool> = hosts.names.iter().map(|name| chosen.contains(name)).collect();
        let found = is_chosen.iter().filter(|chosen| **chosen).count();
        if found < CHOSEN_MIN {
            return Err(LearnError::TooFew { found });
        }
        let known: HashSet<&str> = hosts.names.iter().map(String::as_str).collect();
        let mut elsewhere: Vec<&str> =
            chosen.iter().map(String::as_str).filter(|name| !known.contains(name)).collect();
        elsewhere.sort_unstable();
        let pieces = TermVectors::of(hosts.names.iter().map(String::as_str).chain(elsewhere.iter().copied()));
        let mut titles: Vec<HashedWords> =
            hosts.content.iter().map(|content| content.titles.clone()).collect();
        titles.resize_with(hosts.names.len() + elsewhere.len(), HashedWords::default);
        let titles = TermVectors::of_pieces(&titles);
        let web = SignGraph::new(hosts)?;
        let part_of = |host: usize| xxhash_rust::xxh3::xxh3_64(hosts.names[host].as_bytes());
        let fixed = web.fixed()?;
        let others = web.of_others(&is_chosen, elsewhere.len(), [&pieces, &titles], part_of)?;
        let model = Binary::fit(&rows(&[&fixed, &others]), &is_chosen, BOUND);
        let everything = vec![true; hosts.names.len()];
        let all = web.of_chosen(&is_chosen, &everything, elsewhere.len(), [&pieces, &titles])?;
        let mean = |column: &Vec<f64>| column.iter().sum::<f64>() / column.len() as f64;
        let means = fixed.iter().chain(&all).map(mean).collect();
        Ok(Self { model, rows: rows(&[&fixed, &all]), means })
    }

    /// Probability that people would choose a host that they have not chosen yet, if `share` (above 0, at most 1) of
    /// the hosts that they would choose are chosen already: (1 - share) / share · odds, where the odds are those of
    /// being among the chosen (Elkan, Noto, "Learning classifiers from only positive and unlabeled data", 2008, section
    /// 2).
    #[must_use]
    pub fn probability(&self, host: usize, share: f64) -> f64 {
        (self.log_odds(host).exp() * (1.0 - share) / share).min(1.0)
    }

    /// Log-odds that a host is among the chosen, according to its signs.
    #[must_use]
    pub fn log_odds(&self, host: usize) -> f64 {
        self.model.log_odds(&self.rows[host])
    }

    /// Value of a sign of a host.
    #[must_use]
    pub fn sign(&self, host: usize, sign: HostSign) -> f64 {
        let place = HostSign::EACH.iter().position(|known| *known == sign);
        place.and_then(|place| self.rows[host].get(place)).copied().unwrap_or_default()
    }

    /// The strongest reasons for a host, at most `count`, in words.
    #[must_use]
    pub fn reasons_in_words(&self, hosts: &Hosts, host: usize, count: usize) -> Vec<String> {
        let counted = |sign| self.sign(host, sign).exp_m1().round() as u64;
        let mut words = Vec::new();
        for (sign, _) in self.reasons(host).into_iter().filter(|(_, part)| *part > REASON_MIN) {
            let reason = match sign {
                HostSign::PageRank => "it is important".to_owned(),
                HostSign::LinkedFrom => format!("linked from {}", sites(counted(sign))),
                HostSign::ChosenLinkToIt => format!("linked from {} you chose", sites(counted(sign))),
                HostSign::LinksToChosen => format!("links to {} you chose", sites(counted(sign))),
                HostSign::NamedWithChosen => "named beside sites you chose".to_owned(),
                HostSign::FromChosen | HostSign::ToChosen | HostSign::NearChosen => {
                    "near sites you chose".to_owned()
                }
                HostSign::Ending | HostSign::EndingAndDepth => {
                    format!(".{}", HostName::of(&hosts.names[host]).ending)
                }
                HostSign::Name => "its name".to_owned(),
                HostSign::Depth | HostSign::IsRegistered | HostSign::NameLength => {
                    "a short address".to_owned()
                }
                HostSign::Siblings => "a large domain".to_owned(),
                HostSign::IsWww => "a www address".to_owned(),
                HostSign::Pages => pages(hosts.content[host].pages),
                HostSign::Xml => format!("{:.0} % XML", 100.0 * hosts.content[host].xml),
                HostSign::Size => "the size of its pages".to_owned(),
                HostSign::Changes => "how often its pages change".to_owned(),
                HostSign::Language => match hosts.content[host].language.as_str() {
                    "" => "of unknown language".to_owned(),
                    language => format!("in the language {language}"),
                },
                HostSign::Titles => "words of its titles".to_owned(),
            };
            if !words.contains(&reason) && words.len() < count {
                words.push(reason);
            }
        }
        words
    }

    /// The signs of a host, strongest first, with what each adds to the log-odds of an average host: positive values
    /// speak for the host, negative ones against it.
    #[must_use]
    pub fn reasons(&self, host: usize) -> Vec<(HostSign, f64)> {
        let (weights, _) = self.model.weights();
        let row = self.rows[host].iter().zip(&self.means).zip(weights);
        let mut reasons: Vec<(HostSign, f64)> = HostSign::EACH
            .into_iter()
            .zip(row.map(|((value, mean), weight)| weight * (value - mean)))
            .collect();
        reasons.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
        reasons
    }
}

fn pages(count: u32) -> String {
    match count {
        0 => "nothing is held of it".to_owned(),
        1 => "1 page is held".to_owned(),
        _ => format!("{count} pages are held"),
    }
}

fn sites(count: u64) -> String {
    if count == 1 { "1 site".to_owned() } else { format!("{count} sites") }
}

/// Transposes columns into one row per host.
fn rows(parts: &[&Vec<Vec<f64>>]) -> Vec<Vec<f64>> {
    let columns: Vec<&Vec<f64>> = parts.iter().flat_map(|part| part.iter()).collect();
    let hosts = columns.first().map_or(0, |column| column.len());
    (0..hosts).map(|host| columns.iter().map(|column| column[host]).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 40 hosts: those of `.ac.uk` link to each other, and so do those of `.com`; people choose the first kind.
    fn two_communities() -> (Hosts, HashSet<String>) {
        let mut random = fastrand::Rng::with_seed(5);
        let name =
            |host: u32| format!("www.host{host}.{}", if host.is_multiple_of(2) { "ac.uk" } else { "com" });
        let names: Vec<String> = (0..40).map(name).collect();
        let arcs: Vec<(u32, u32)> = (0..200)
            .map(|_| (random.u32(0..40), random.u32(0..20)))
            .map(|(a, b)| (a, 2 * b + a % 2))
            .collect();
        let chosen = (0..10).map(|host| without_www(&names[2 * host])).collect();
        (Hosts::new(&names, &Graph::from_arcs(40, &arcs).unwrap()).unwrap(), chosen)
    }

    #[test]
    fn hosts_like_the_chosen_ones_are_likely() {
        let (hosts, chosen) = two_communities();
        let learned = Learned::fit(&hosts, &chosen).unwrap();
        let unlike = (0..20).map(|host| learned.log_odds(2 * host + 1)).fold(f64::MIN, f64::max);
        for host in (0..40).step_by(2) {
            assert!(learned.log_odds(host) > unlike, "{}", hosts.names()[host]);
            assert!((0.0..=1.0).contains(&learned.probability(host, 0.5)));
        }
        assert_eq!(learned.reasons(0).len(), HostSign::EACH.len());
        let all: f64 = learned.reasons(30).iter().map(|(_, part)| part).sum();
        let other: f64 = learned.reasons(31).iter().map(|(_, part)| part).sum();
        assert!((learned.log_odds(30) - learned.log_odds(31) - (all - other)).abs() < 1e-9);
    }

    #[test]
    fn too_few_examples_are_refused() {
        let (hosts, _) = two_communities();
        let chosen = HashSet::from(["host0.ac.uk".to_owned(), "elsewhere.org".to_owned()]);
        let error = Learned::fit(&hosts, &chosen).unwrap_err().to_string();
        assert_eq!(error, "too few of the chosen hosts are in the graph: 1, and at least 5 are needed");
    }

    #[test]
    fn names_with_and_without_www_are_one_host() {
        let names = ["www.a.org", "b.org", "a.org"].map(str::to_owned);
        let graph = Graph::from_weighted_arcs(3, &[(0, 1, 2.0), (2, 1, 3.0), (0, 2, 1.0)]).unwrap();
        let hosts = Hosts::new(&names, &graph).unwrap();
        assert_eq!(hosts.names(), ["a.org", "b.org"]);
        assert_eq!((hosts.graph().targets(0), hosts.graph().weights(0)), (&[1][..], Some(&[5.0][..])));
        assert!(matches!(Hosts::new(&names[..2], &graph), Err(LearnError::Names { names: 2, hosts: 3 })));
    }
}
