//! The link graph of an archive.

use archive_base::error::Failure;
use archive_math::importance::Graph;
use archive_storage::{State, StateError, UrlId};

use crate::ledger::{Credits, LinkCode, aliases, page_flags as flags};

/// Pages of an archive, numbered densely, and the links of their newest captures that carry importance.
#[derive(Debug)]
pub struct PageGraph {
    /// The links.
    pub graph: Graph,
    /// URL of each page, ascending.
    pub urls: Vec<UrlId>,
}

impl PageGraph {
    /// Reads the link log.
    ///
    /// # Errors
    /// When the store cannot be read, or there are too many links.
    pub fn read(state: &State) -> Result<Self, Failure> {
        Self::among(state, |_| true)
    }

    /// Reads only some of the pages, and the links among them.
    ///
    /// # Errors
    /// When the store cannot be read, or there are too many links.
    pub fn among(state: &State, chosen: impl Fn(UrlId) -> bool) -> Result<Self, Failure> {
        let mut urls = Vec::new();
        let mut numbers = vec![u32::MAX; state.url_count() as usize];
        for page in state.pages(UrlId(0)) {
            let (id, page) = page?;
            if page.flags.has_any(flags::ACCOUNT) && chosen(id) {
                numbers[id.index()] = urls.len() as u32;
                urls.push(id);
            }
        }
        for (page, alias) in aliases(state)? {
            numbers[alias.index()] = numbers[page.index()];
        }
        let number = |id: UrlId| numbers.get(id.index()).copied().filter(|&number| number != u32::MAX);
        let mut arcs = Vec::new();
        state.newest_links(|(source, ..), links| {
            if let Some(from) = number(source) {
                let carrying = links.iter().filter(|link| LinkCode::from_byte(link.kind).carries_cash());
                arcs.extend(carrying.filter_map(|link| Some((from, number(link.target)?))));
            }
            Ok::<_, StateError>(())
        })?;
        let graph = Graph::from_arcs(urls.len(), &arcs).map_err(Failure::failed)?;
        Ok(Self { graph, urls })
    }
}

/// Reads the links between the sites of an archive. Nodes are numbered by `SiteId`; the weight of an arc is the number
/// of links from pages of one site to pages of the other.
///
/// # Errors
/// When the store cannot be read, or there are too many links.
pub fn site_graph(state: &State) -> Result<Graph, Failure> {
    let credits = Credits::open(state)?;
    let mut sites = vec![u32::MAX; state.url_count() as usize];
    let counted = flags::ACCOUNT | flags::ALIAS;
    for page in state.pages(UrlId(0)) {
        let (id, page) = page?;
        if page.flags.has_any(counted) {
            sites[id.index()] = credits.site(state, id)?.map_or(u32::MAX, |site| site.0);
        }
    }
    let site = |id: UrlId| sites.get(id.index()).copied().filter(|&site| site != u32::MAX);
    let mut arcs = Vec::new();
    state.newest_links(|(source, ..), links| {
        if let Some(from) = site(source) {
            let outside = links.iter().filter(|link| LinkCode::from_byte(link.kind).carries_cash());
            let outside = outside.filter_map(|link| site(link.target)).filter(|&to| to != from);
            arcs.extend(outside.map(|to| (from, to, 1.0)));
        }
        Ok::<_, StateError>(())
    })?;
    Graph::from_weighted_arcs(state.site_count() as usize, &arcs).map_err(Failure::failed)
}
