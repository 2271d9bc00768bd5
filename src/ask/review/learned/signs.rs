//! Features ("signs") of each host as numbers. Those that depend on the chosen hosts are computed without the host's
//! own part of the data.

use std::collections::HashMap;

use archive_math::importance::Graph;
use archive_math::importance::rank::{PageRank, PreparedGraph, RankError};
use rayon::prelude::*;

use super::names::{HostName, TermVectors, rates};
use super::{HostContent, Hosts};

/// Number of parts that the hosts are divided into for cross-fitting: what is learned for a host leaves out its own
/// part, because a chosen host would otherwise find itself among the chosen.
const PARTS: u64 = 5;
/// Weight of the overall share in the smoothed share of an ending, as a number of hosts.
const LEAN: f64 = 20.0;
/// Guaranteed bound on the total error of the ranks.
const TOLERANCE: f64 = 1e-6;
/// Added to a rank before taking its logarithm, so that hosts far from all chosen ones stay finite.
const RANK_MIN: f64 = 1e-7;

/// The signs, in the order of a host's values; those that do not depend on the chosen hosts come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostSign {
    /// PageRank (logarithm).
    PageRank,
    /// Number of hosts that link to it (logarithm).
    LinkedFrom,
    /// Length of its name.
    NameLength,
    /// Number of labels before the ending, at most 4.
    Depth,
    /// 1 if it is the registered domain itself, else 0.
    IsRegistered,
    /// Number of known hosts of its registered domain (logarithm).
    Siblings,
    /// 1 if it is known with `www.`, else 0.
    IsWww,
    /// Number of captured pages (logarithm).
    Pages,
    /// Share of XML pages among them.
    Xml,
    /// Mean page size in bytes (logarithm).
    Size,
    /// Mean expected number of changes of a page per day (logarithm).
    Changes,
    /// Personalised PageRank with jumps to the chosen hosts (logarithm).
    FromChosen,
    /// As `FromChosen`, on the inverse graph.
    ToChosen,
    /// As `FromChosen`, on links in both directions.
    NearChosen,
    /// Number of chosen hosts that link to it (logarithm).
    ChosenLinkToIt,
    /// Number of chosen hosts that it links to (logarithm).
    LinksToChosen,
    /// Links from hosts that also link to chosen ones, with more weight for hosts that have few links (logarithm).
    NamedWithChosen,
    /// Share of chosen hosts with its ending (log-odds).
    Ending,
    /// Share of chosen hosts with its ending and depth (log-odds).
    EndingAndDepth,
    /// Score of the words and n-grams of its name (log-odds).
    Name,
    /// Share of chosen hosts in its language (log-odds).
    Language,
    /// Score of the words in its titles (log-odds).
    Titles,
}

impl HostSign {
    /// All signs, in the order of a host's values.
    pub const EACH: [Self; 22] = [
        Self::PageRank,
        Self::LinkedFrom,
        Self::NameLength,
        Self::Depth,
        Self::IsRegistered,
        Self::Siblings,
        Self::IsWww,
        Self::Pages,
        Self::Xml,
        Self::Size,
        Self::Changes,
        Self::FromChosen,
        Self::ToChosen,
        Self::NearChosen,
        Self::ChosenLinkToIt,
        Self::LinksToChosen,
        Self::NamedWithChosen,
        Self::Ending,
        Self::EndingAndDepth,
        Self::Name,
        Self::Language,
        Self::Titles,
    ];
}

/// The link graph, prepared for PageRank in all three directions.
pub(super) struct SignGraph<'a> {
    pub(super) names: &'a [String],
    pub(super) is_www: &'a [bool],
    pub(super) graph: &'a Graph,
    content: &'a [HostContent],
    inverse: Graph,
    ready: [PreparedGraph; 3],
    rank: PageRank<'static>,
}

impl<'a> SignGraph<'a> {
    pub(super) fn new(hosts: &'a Hosts) -> Result<Self, RankError> {
        let Hosts { names, is_www, graph, content } = hosts;
        let rank = PageRank { tolerance: TOLERANCE, ..PageRank::default() };
        let forward = graph.clone().unweighted();
        let inverse = forward.transposed();
        let both = forward.symmetric();
        let ready = [rank.prepare(forward)?, rank.prepare(inverse.clone())?, rank.prepare(both)?];
        Ok(Self { names, is_www, graph, content, inverse, ready, rank })
    }

    fn ranks(&self, direction: usize, jumps: Option<&[f64]>) -> Result<Vec<f64>, RankError> {
        let rank = PageRank { personalisation: jumps, ..self.rank };
        Ok(rank.solve(&self.ready[direction])?.values)
    }

    /// Signs that do not depend on the chosen hosts: a column per sign.
    pub(super) fn fixed(&self) -> Result<Vec<Vec<f64>>, RankError> {
        let hosts = self.names.len();
        let names: Vec<HostName<'_>> = self.names.iter().map(|name| HostName::of(name)).collect();
        let mut siblings: HashMap<&str, u32> = HashMap::new();
        names.iter().for_each(|name| *siblings.entry(name.site).or_default() += 1);
        let each = |sign: &dyn Fn(usize) -> f64| (0..hosts).map(sign).collect::<Vec<f64>>();
        let logarithms = |ranks: Vec<f64>| ranks.into_iter().map(|rank| (rank + 1e-12).ln()).collect();
        Ok(vec![
            logarithms(self.ranks(0, None)?),
            each(&|host| (self.inverse.targets(host).len() as f64).ln_1p()),
            each(&|host| self.names[host].len() as f64),
            each(&|host| names[host].depth().min(4) as f64),
            each(&|host| f64::from(u8::from(names[host].depth() == 1))),
            each(&|host| f64::from(siblings[names[host].site]).ln_1p()),
            each(&|host| f64::from(u8::from(self.is_www[host]))),
            each(&|host| f64::from(self.content[host].pages).ln_1p()),
            each(&|host| self.content[host].xml),
            each(&|host| self.content[host].bytes.ln_1p()),
            each(&|host| self.content[host].changes.ln_1p()),
        ])
    }

    /// Signs that depend on the chosen hosts: a column per sign. `elsewhere` is the number of chosen hosts outside the
    /// graph, whose names follow those of the graph in `pieces` and `titles`. Hosts for which `counts` is false are not
    /// used as examples.
    pub(super) fn of_chosen(
        &self,
        chosen: &[bool],
        counts: &[bool],
        elsewhere: usize,
        [pieces, titles]: [&TermVectors; 2],
    ) -> Result<Vec<Vec<f64>>, RankError> {
        let hosts = self.names.len();
        let weight: Vec<f64> =
            (0..hosts).map(|host| f64::from(u8::from(chosen[host] && counts[host]))).collect();
        let is_any = weight.iter().any(|&weight| weight > 0.0);
        let jumps = is_any.then_some(weight.as_slice());
        let near = |direction| -> Result<Vec<f64>, RankError> {
            Ok(self.ranks(direction, jumps)?.into_iter().map(|rank| (rank + RANK_MIN).ln()).collect())
        };
        let to = pull(self.graph, &weight);
        let from = pull(&self.inverse, &weight);
        let logarithms = |sums: Vec<f64>| sums.into_iter().map(f64::ln_1p).collect::<Vec<f64>>();
        let few = |host: usize| to[host] / (2.0 + self.graph.targets(host).len() as f64).ln();
        let with = pull(&self.inverse, &(0..hosts).map(few).collect::<Vec<f64>>());
        let rows = || (0..hosts).filter(|&host| counts[host]);
        let seen: Vec<bool> = rows().map(|host| chosen[host]).collect();
        let share = |key: &dyn Fn(usize) -> String| {
            let keys: Vec<String> = (0..hosts).map(key).collect();
            rates(&keys, rows().zip(&seen).map(|(host, &seen)| (host, seen)), LEAN)
        };
        let odds = |texts: &TermVectors| {
            let examples =
                rows().zip(seen.iter().copied()).chain((hosts..hosts + elsewhere).map(|name| (name, true)));
            let mut odds = texts.log_odds(examples);
            odds.truncate(hosts);
            odds
        };
        Ok(vec![
            near(0)?,
            near(1)?,
            near(2)?,
            logarithms(from),
            logarithms(to),
            logarithms(with),
            share(&|host| HostName::of(&self.names[host]).ending.to_owned()),
            share(&|host| {
                let name = HostName::of(&self.names[host]);
                format!("{} {}", name.depth().min(3), name.ending)
            }),
            odds(pieces),
            share(&|host| self.content[host].language.clone()),
            odds(titles),
        ])
    }

    /// The columns of [`Self::of_chosen`], where the values of each host are computed without its own part.
    pub(super) fn of_others(
        &self,
        chosen: &[bool],
        elsewhere: usize,
        texts: [&TermVectors; 2],
        part_of: impl Fn(usize) -> u64 + Sync,
    ) -> Result<Vec<Vec<f64>>, RankError> {
        let hosts = self.names.len();
        let parts: Vec<Vec<Vec<f64>>> = (0..PARTS)
            .into_par_iter()
            .map(|part| {
                let counts: Vec<bool> = (0..hosts).map(|host| part_of(host) % PARTS != part).collect();
                self.of_chosen(chosen, &counts, elsewhere, texts)
            })
            .collect::<Result<_, _>>()?;
        let columns = parts.first().map_or(0, Vec::len);
        let own = |column: usize, host: usize| parts[(part_of(host) % PARTS) as usize][column][host];
        Ok((0..columns).map(|column| (0..hosts).map(|host| own(column, host)).collect()).collect())
    }
}

/// For each host, the sum of `values` over the hosts that it links to.
fn pull(rows: &Graph, values: &[f64]) -> Vec<f64> {
    (0..rows.pages())
        .map(|host| rows.targets(host).iter().map(|&other| values[other as usize]).sum())
        .collect()
}
