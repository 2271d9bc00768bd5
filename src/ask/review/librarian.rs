//! The automatic librarian of an archive: what it learned from the decisions, for each of the archive's sites.

use std::collections::{HashMap, HashSet};

use archive_base::decisions::{CurrentDecisions, DecisionVerdict, Decisions, Subject};
use archive_base::error::Failure;
use archive_books::columns::{self, LIKELY, RowKind};
use archive_books::ledger::{CashRules, UrlTopic};
use archive_books::stored_graph::site_graph;
use archive_storage::{SiteId, Store};

use super::content;
use super::learned::{Hosts, Learned, without_www};

/// Mean rating from which on a site counts as chosen.
const CHOSEN_FROM: f64 = 3.0;

/// Rating above which a site is favoured, and the rating that gets the full bonus.
const FAVOURED_FROM: f64 = 2.5;
const FAVOURED_WHOLLY: f64 = 4.0;

/// What was learned from the decisions on an archive's sites.
#[derive(Debug)]
pub struct Librarian {
    /// The sites; those with and without `www.` are merged.
    pub hosts: Hosts,
    /// The trained model.
    pub learned: Learned,
    /// Sites by their host number in [`Self::hosts`].
    pub sites: HashMap<usize, Vec<SiteId>>,
    /// Sites that people chose, without `www.`.
    pub chosen: HashSet<String>,
    decided: HashSet<String>,
}

impl Librarian {
    /// Learns from the decisions on the sites of an archive.
    ///
    /// # Errors
    /// When there is too little to learn from, or the archive cannot be read.
    pub fn learn(store: &Store, decisions: &Decisions) -> Result<Self, Failure> {
        let state = store.state();
        let names = state.sites().map(|site| site.map(|(_, name, _)| name)).collect::<Result<Vec<_>, _>>()?;
        let (mut chosen, mut decided) = (HashSet::new(), HashSet::new());
        for (subject, standing) in decisions.subjects() {
            if let Subject::Site(name) = subject {
                decided.insert(without_www(name));
                if is_chosen(standing) {
                    chosen.insert(without_www(name));
                }
            }
        }
        let mut hosts = Hosts::new(&names, &site_graph(state)?)?;
        let numbers: HashMap<String, usize> =
            hosts.names().iter().enumerate().map(|(number, name)| (name.clone(), number)).collect();
        content::gather(store, &numbers, hosts.content_mut())?;
        let learned = Learned::fit(&hosts, &chosen)?;
        let mut sites: HashMap<usize, Vec<SiteId>> = HashMap::new();
        for (id, name) in (0..).map(SiteId).zip(&names) {
            if let Some(&number) = numbers.get(without_www(name).as_str()) {
                sites.entry(number).or_default().push(id);
            }
        }
        Ok(Self { hosts, learned, sites, chosen, decided })
    }

    /// Numbers of the sites that nobody has decided on, most likely first.
    #[must_use]
    pub fn undecided(&self) -> Vec<usize> {
        let names = self.hosts.names();
        let mut order: Vec<usize> =
            (0..names.len()).filter(|&host| !self.decided.contains(&names[host])).collect();
        order.sort_by(|&a, &b| self.learned.log_odds(b).total_cmp(&self.learned.log_odds(a)));
        order
    }

    /// Stores the probability that people would choose each undecided site, as the column [`LIKELY`]; `share` as for
    /// [`Learned::probability`]. Returns the number of such sites.
    ///
    /// # Errors
    /// When writing to the disk fails.
    pub fn keep(&self, store: &Store, share: f64) -> Result<usize, Failure> {
        let state = store.state();
        let mut likely = vec![None; state.site_count() as usize];
        for host in self.undecided() {
            for site in self.sites.get(&host).into_iter().flatten() {
                if let Some(likely) = likely.get_mut(site.index()) {
                    *likely = Some(self.learned.probability(host, share));
                }
            }
        }
        let _lock = columns::lock(store.path())?;
        columns::write(store.path(), RowKind::Site, LIKELY, &likely, state.identity())?;
        Ok(likely.iter().flatten().count())
    }
}

fn is_chosen(standing: &CurrentDecisions) -> bool {
    let is_kept = matches!(standing.verdict, Some((DecisionVerdict::Keep | DecisionVerdict::Often, ..)));
    is_kept || standing.rating().is_some_and(|rating| rating >= CHOSEN_FROM)
}

/// The sites to which links earn a bonus by `--favour rated` and `--favour likely`, with their bonus. For ratings above
/// 2.5 it grows linearly up to the full bonus at 4; the verdicts `keep` and `often` get the full bonus; undecided sites
/// get it in proportion to their probability. Empty unless the rules favour either.
///
/// # Errors
/// When the archive or the column cannot be read.
pub fn favoured_sites(
    store: &Store,
    decisions: &Decisions,
    rules: &CashRules,
) -> Result<Vec<(SiteId, f64)>, Failure> {
    let bonus = |topic: &UrlTopic| {
        let favours = rules.favours.iter().filter(|favour| favour.topic == *topic);
        favours.map(|favour| favour.bonus).fold(0.0, f64::max)
    };
    let (rated, likely) = (bonus(&UrlTopic::Rated), bonus(&UrlTopic::Likely));
    let mut sites = Vec::new();
    for (subject, standing) in decisions.subjects().filter(|_| rated > 0.0) {
        if let Subject::Site(name) = subject
            && let Some(site) = store.state().find_site(name)?
        {
            sites.push((site, rated * esteem(standing)));
        }
    }
    if likely > 0.0 {
        let columns = columns::read_all(store.path(), RowKind::Site)?;
        let column = columns.iter().find(|column| column.name == LIKELY);
        let known = |site| Some((SiteId(site), likely * column?.get(site as usize)?));
        sites.extend((0..store.state().site_count()).filter_map(known));
    }
    sites.retain(|(_, bonus)| *bonus > 0.0);
    sites.sort_by_key(|(site, _)| *site);
    // Decisions take precedence over the probability from an older training.
    sites.dedup_by_key(|(site, _)| *site);
    Ok(sites)
}

/// Esteem of a site according to its decisions, 0 to 1.
fn esteem(standing: &CurrentDecisions) -> f64 {
    match standing.verdict {
        Some((DecisionVerdict::Keep | DecisionVerdict::Often, ..)) => 1.0,
        Some((verdict, ..)) if verdict.ends_fetching() => 0.0,
        _ => standing.rating().map_or(0.0, |rating| {
            ((rating - FAVOURED_FROM) / (FAVOURED_WHOLLY - FAVOURED_FROM)).clamp(0.0, 1.0)
        }),
    }
}
