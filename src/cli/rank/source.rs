//! Where a graph comes from, what its pages are called, and where values go.

use std::path::Path;

use archive::access::Access;
use archive::columns::{self, Kind};
use archive::graphs::{self, PageGraph, SiteGraph};
use archive::importance::Graph;
use archive::importance::ranking::Column;
use archive::query;
use archive_storage::{SiteId, Store, UrlId};

use super::{Args, read_chosen};

/// See the module's documentation.
pub(super) enum Source {
    /// A recorded or generated graph, perhaps with URLs.
    Graph(Option<Vec<String>>),
    /// The pages of an archive, and which of them may be shown.
    Pages(Box<Store>, Vec<UrlId>, Access),
    /// The sites of an archive.
    Sites(Box<Store>),
}

impl Source {
    pub(super) fn read(args: &Args) -> anyhow::Result<(Graph, Self)> {
        if let Some(path) = &args.graph {
            let recorded = graphs::read(path)?;
            return Ok((recorded.graph, Self::Graph(recorded.urls)));
        }
        let store = Box::new(Store::read_only(&args.archive.path)?);
        if args.sites {
            let graph = SiteGraph::read(store.state())?.graph;
            return Ok((graph, Self::Sites(store)));
        }
        let PageGraph { graph, urls } = PageGraph::read(store.state())?;
        let access = args.reader.access(&args.archive.path)?;
        Ok((graph, Self::Pages(store, urls, access)))
    }

    /// The chosen pages' weights, by file or query.
    pub(super) fn chosen(&self, args: &Args, pages: usize) -> anyhow::Result<Option<Vec<f64>>> {
        if let Some(path) = &args.chosen {
            let find = |name: &str| match self {
                Self::Graph(urls) => urls.as_ref()?.iter().position(|url| url == name),
                Self::Pages(store, urls, _) => urls.binary_search(&store.state().find(name).ok()??).ok(),
                Self::Sites(store) => Some(store.state().find_site(name).ok()??.index()),
            };
            return read_chosen(path, pages, find).map(Some);
        }
        match (&args.chosen_query, self) {
            (Some(text), Self::Pages(store, urls, access)) => by_query(text, store, urls, access).map(Some),
            _ => Ok(None),
        }
    }

    /// What a page or site is called.
    pub(super) fn name(&self, page: usize) -> anyhow::Result<Option<String>> {
        Ok(match self {
            Self::Graph(urls) => urls.as_ref().and_then(|urls| urls.get(page).cloned()),
            Self::Pages(store, urls, _) => urls.get(page).map(|&url| store.state().url(url)).transpose()?,
            Self::Sites(store) => Some(store.state().site_name(SiteId(page as u32))?),
        })
    }

    /// Whether a page or site may be named: a page as queries do, sites always.
    pub(super) fn shows(&self, page: usize) -> anyhow::Result<bool> {
        let Self::Pages(store, urls, access) = self else { return Ok(true) };
        let Some(&url) = urls.get(page).filter(|_| !access.is_unlimited()) else { return Ok(true) };
        Ok(access.shows_page(store.state(), store.state().visit(url)?.as_ref())?)
    }

    /// Keeps the values, made to have mean 1, as columns for queries. No other state takes the place of this one meanwhile:
    /// that waits for all who read it.
    pub(super) fn save(&self, archive: &Path, name: &str, found: &[Column]) -> anyhow::Result<()> {
        let _lock = columns::lock(archive)?;
        for (number, column) in found.iter().enumerate() {
            let name = if number == 0 { name.to_owned() } else { format!("{name}_{}", column.name) };
            let values = &column.ranking.values;
            let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
            let value = |value: f64| if mean > 0.0 { value / mean } else { 0.0 };
            match self {
                Self::Graph(_) => {}
                Self::Pages(store, urls, _) => {
                    let mut of_urls = vec![None; store.state().url_count() as usize];
                    for (url, &found) in urls.iter().zip(values) {
                        of_urls[url.index()] = Some(value(found));
                    }
                    columns::write(store.path(), Kind::Page, &name, &of_urls, store.state().identity())?;
                }
                Self::Sites(store) => {
                    let of_sites: Vec<Option<f64>> = values.iter().map(|&found| Some(value(found))).collect();
                    columns::write(store.path(), Kind::Site, &name, &of_sites, store.state().identity())?;
                }
            }
        }
        Ok(())
    }
}

/// Weight 1 for each page that a query finds.
fn by_query(text: &str, store: &Store, urls: &[UrlId], access: &Access) -> anyhow::Result<Vec<f64>> {
    let mut weights = vec![0.0; urls.len()];
    for id in query::select(store, access.clone(), text)? {
        if let Ok(page) = urls.binary_search(&id) {
            weights[page] = 1.0;
        }
    }
    Ok(weights)
}
