//! Sources of a graph, which also provide the names of its pages and store the computed values.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use archive_ask::query::Question;
use archive_base::access::Access;
use archive_books::columns::{self, RowKind};
use archive_books::stored_graph::{Outline, PageGraph, site_graph};
use archive_math::graphs;
use archive_math::importance::Graph;
use archive_math::importance::ranking::Column;
use archive_peers::nodes::Root;
use archive_storage::{SiteId, Store, UrlId};

use super::{Args, read_chosen, unread};
use crate::cli::Result;
use crate::cli::options::Answering;

/// See the module documentation.
pub(super) enum RankSource<'a> {
    /// A recorded or generated graph, optionally with URLs.
    Graph(Option<Vec<String>>),
    /// The pages of an archive, and access rules that determine which may be shown.
    Pages(Box<Store>, Vec<UrlId>, Access),
    /// The sites of an archive.
    Sites(Box<Store>),
    /// The pages or sites of several archives, by their ids there.
    Together(&'a Answering, RowKind, Vec<Vec<u32>>),
    /// As [`RankSource::Together`], if some archives are on other machines.
    Asked {
        answering: &'a Answering,
        asked: Root<'a>,
        outlines: Vec<Outline>,
        are_sites: bool,
        ids: Vec<Vec<u32>>,
    },
}

impl RankSource<'_> {
    pub(super) fn read(args: &Args) -> Result<(Graph, Self)> {
        if let Some(path) = &args.graph {
            let recorded = graphs::read(path).map_err(unread)?;
            return Ok((recorded.graph, Self::Graph(recorded.urls)));
        }
        let path = args.ask.paths().first().map_or(Path::new(""), PathBuf::as_path);
        let store = Box::new(Store::read_only(path)?);
        if args.sites {
            let graph = site_graph(store.state())?;
            return Ok((graph, Self::Sites(store)));
        }
        let PageGraph { graph, urls } = PageGraph::read(store.state())?;
        let access = args.ask.reader.access(path)?;
        Ok((graph, Self::Pages(store, urls, access)))
    }

    /// The weights of the chosen pages, from a file or query.
    pub(super) fn chosen(&self, args: &Args, pages: usize) -> Result<Option<Vec<f64>>> {
        if let Some(path) = &args.chosen {
            let find = |name: &str| match self {
                Self::Graph(urls) => urls.as_ref()?.iter().position(|url| url == name),
                Self::Pages(store, urls, _) => urls.binary_search(&store.state().find(name).ok()??).ok(),
                Self::Sites(store) => Some(store.state().find_site(name).ok()??.index()),
                Self::Together(..) | Self::Asked { .. } => None,
            };
            return read_chosen(path, pages, find).map(Some);
        }
        match (&args.chosen_query, self) {
            (Some(text), Self::Pages(store, urls, access)) => by_query(text, store, urls, access).map(Some),
            _ => Ok(None),
        }
    }

    /// The names of pages or sites, without those that may not be shown; pages are checked as in queries. Empty if
    /// there are no names.
    pub(super) fn names(&self, pages: &[usize]) -> Result<Vec<Option<String>>> {
        let Self::Asked { asked, outlines, are_sites, ids, .. } = self else {
            let name = |&page: &usize| {
                let is_shown = self.shows(page)?;
                Ok(if is_shown { Some(self.name(page)?.unwrap_or_default()) } else { None })
            };
            return pages.iter().map(name).collect();
        };
        let places: Vec<(usize, u32)> = pages.iter().filter_map(|page| place(ids, *page)).collect();
        if *are_sites {
            let site = |(archive, id): &(usize, u32)| outlines[*archive].site(*id).map(str::to_owned);
            return Ok(places.iter().map(site).collect());
        }
        let mut wanted = vec![Vec::new(); outlines.len()];
        places.iter().for_each(|(archive, id)| wanted[*archive].push(*id));
        let mut urls = asked.urls(outlines, &wanted)?;
        Ok(places.iter().map(|(archive, id)| urls[*archive].remove(id)).collect())
    }

    /// The name of a page or site.
    fn name(&self, page: usize) -> Result<Option<String>> {
        Ok(match self {
            Self::Graph(urls) => urls.as_ref().and_then(|urls| urls.get(page).cloned()),
            Self::Pages(store, urls, _) => urls.get(page).map(|&url| store.state().url(url)).transpose()?,
            Self::Sites(store) => Some(store.state().site_name(SiteId(page as u32))?),
            Self::Asked { .. } => None,
            Self::Together(answering, kind, ids) => {
                let Some((archive, id)) = place(ids, page) else { return Ok(None) };
                let state = answering.of(archive).0.state();
                Some(if *kind == RowKind::Page {
                    state.url(UrlId(id))?
                } else {
                    state.site_name(SiteId(id))?
                })
            }
        })
    }

    /// Whether a page or site may be shown: pages as in queries, sites always.
    fn shows(&self, page: usize) -> Result<bool> {
        let (store, access, url) = match self {
            Self::Pages(store, urls, access) => (&**store, access, urls.get(page).copied()),
            Self::Together(answering, RowKind::Page, ids) => {
                let Some((archive, id)) = place(ids, page) else { return Ok(true) };
                let (store, access) = answering.of(archive);
                (store, access, Some(UrlId(id)))
            }
            _ => return Ok(true),
        };
        let Some(url) = url.filter(|_| !access.is_unlimited()) else { return Ok(true) };
        Ok(access.shows_page(store.state(), store.state().visit(url)?.as_ref())?)
    }

    /// Stores the values, scaled to mean 1, as columns for queries. Meanwhile the state cannot be replaced by another,
    /// because that waits for all readers.
    pub(super) fn save(&self, name: &str, found: &[Column]) -> Result<()> {
        for (number, column) in found.iter().enumerate() {
            let name = if number == 0 { name.to_owned() } else { format!("{name}_{}", column.name) };
            let values = &column.ranking.values;
            let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
            let values = values.iter().map(|value| if mean > 0.0 { value / mean } else { 0.0 });
            match self {
                Self::Graph(_) => {}
                Self::Pages(store, urls, _) => {
                    write(store, RowKind::Page, &name, urls.iter().map(|url| url.index()).zip(values))?;
                }
                Self::Sites(store) => write(store, RowKind::Site, &name, values.enumerate())?,
                Self::Together(answering, kind, ids) => {
                    let mut values = values;
                    for (archive, ids) in ids.iter().enumerate() {
                        let own = ids.iter().map(|id| *id as usize).zip(&mut values);
                        write(&answering.of(archive).0, *kind, &name, own)?;
                    }
                }
                Self::Asked { asked, are_sites, ids, .. } => {
                    let kind = if *are_sites { RowKind::Site } else { RowKind::Page };
                    let mut values = values;
                    for (folder, ids) in asked.folders().zip(ids) {
                        let own = ids.iter().map(|id| *id as usize).zip(values.by_ref().take(ids.len()));
                        match folder {
                            Some(store) => write(store, kind, &name, own)?,
                            None => own.for_each(drop),
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// The exit code of a command that has shown this source.
    pub(super) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Together(answering, ..) => answering.exit_code(),
            Self::Asked { answering, asked, .. } => answering.exit_code_of(asked),
            _ => ExitCode::SUCCESS,
        }
    }
}

/// The archive of a page or site among several, and its id there.
fn place(ids: &[Vec<u32>], page: usize) -> Option<(usize, u32)> {
    let mut place = page;
    for (archive, ids) in ids.iter().enumerate() {
        match ids.get(place) {
            Some(&id) => return Some((archive, id)),
            None => place -= ids.len(),
        }
    }
    None
}

/// Writes one column of an archive.
fn write(store: &Store, kind: RowKind, name: &str, values: impl Iterator<Item = (usize, f64)>) -> Result<()> {
    let state = store.state();
    let rows = if kind == RowKind::Page { state.url_count() } else { state.site_count() };
    let mut column = vec![None; rows as usize];
    values.for_each(|(id, value)| column[id] = Some(value));
    let _lock = columns::lock(store.path())?;
    Ok(columns::write(store.path(), kind, name, &column, state.identity())?)
}

/// Weight 1 for each page that matches a query.
fn by_query(text: &str, store: &Store, urls: &[UrlId], access: &Access) -> Result<Vec<f64>> {
    let mut weights = vec![0.0; urls.len()];
    for id in Question::pages_of(store, access.clone(), text)? {
        if let Ok(page) = urls.binary_search(&id) {
            weights[page] = 1.0;
        }
    }
    Ok(weights)
}
