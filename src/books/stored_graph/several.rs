//! The link graphs of several archives as one graph; the pages of each archive are a part of it.
//!
//! A page is one page however many archives know it. It belongs to the archive that is responsible for its site: the
//! one that has captured pages of it, or else the first that knows it. If that archive does not know the page, it
//! belongs to the first archive that does. What the page is (a page of its own, an alias, or gone) is decided there,
//! and an alias may lead on to a third archive.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use archive_base::error::Failure;
use archive_math::graphs::parts::{GraphPart, PAGE_BYTES, PartError, PartLink, merge};
use archive_math::importance::rank::Damping;
use archive_math::importance::{Graph, GraphError};
use archive_storage::{StateError, UrlId};

use super::books::{Books, Entry};
use super::outline::OutlineError;
use crate::ledger::{ALIASES_MAX, AnsweringError, CreditError, answering_of, page_flags as flags};

/// Why the graphs of archives cannot be joined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// Two archives have captured pages of the same site.
    #[error(
        "{} and {} have both captured pages of {site}: archives can only be ranked together if no site is in more than one of them; rank each by itself",
        paths[0].display(),
        paths[1].display()
    )]
    Overlap {
        /// The site.
        site: String,
        /// The archives.
        paths: [PathBuf; 2],
    },
    /// There are more archives or pages than numbers.
    #[error("together these archives have too many pages; rank fewer of them")]
    TooMany,
    /// The values do not fit into memory.
    #[error(
        "{given} bytes of memory are too few for the values of these archives, which take at least {least}"
    )]
    Memory {
        /// The limit in bytes.
        given: usize,
        /// The lowest limit that may suffice, as far as known, in bytes.
        least: usize,
    },
    /// Anything else.
    #[error(transparent)]
    Other(#[from] Failure),
}

archive_base::passes_on! { JoinError: StateError, CreditError, OutlineError; PartError, GraphError }

/// A list of links, which grows by doubling, takes at most two of these shares of the memory.
const MEMORY_SHARE: usize = 4;

/// How parts are built.
#[derive(Clone, Copy, Debug)]
pub struct How<'a> {
    /// Share of a page's rank that follows its links.
    pub damping: Damping,
    /// Whether all links from one site to another count as one.
    pub unweighted: bool,
    /// If links are stored on disk: their folder, and the bytes of memory for links while they are read, and for
    /// everything else while ranking.
    pub stored: Option<(&'a Path, usize)>,
}

/// Pages or sites of several archives.
#[derive(Debug)]
pub struct Joined {
    /// One part per archive; the parts are connected.
    pub parts: Vec<GraphPart>,
    /// Number in its archive of each page or site of each part: a `UrlId` or `SiteId`.
    pub ids: Vec<Vec<u32>>,
}

/// Position of a page or site: its part, and its number there; `None` if it does not count.
type Place = Option<(u16, u32)>;

/// Archives being made into parts.
struct JoinedWeb<'a, B> {
    archives: &'a [B],
    /// For each archive, the names of its sites by number; then the responsible archive of each.
    names: Vec<Vec<(String, bool)>>,
    sites: Vec<Vec<usize>>,
    /// What aliases stand for.
    aliases: Vec<HashMap<UrlId, UrlId>>,
    /// For each archive, the positions of its URLs by number.
    places: Vec<Vec<Place>>,
    /// For each archive, whether it has links of pages that belong to other parts.
    has_strays: Vec<bool>,
    ids: Vec<Vec<u32>>,
}

impl Joined {
    /// Joins their pages, and the links of their newest captures that carry importance.
    ///
    /// # Errors
    /// When an archive cannot be read, or two of them have captured pages of the same site.
    pub fn pages<B: Books>(archives: &[B], how: &How<'_>) -> Result<Self, JoinError> {
        JoinedWeb::of_pages(archives)?.into_parts(how, false)
    }

    /// Joins their pages as one graph in memory, in which the pages of one archive follow those of the previous one.
    /// Also returns the number of each page in its archive.
    ///
    /// # Errors
    /// As [`Self::pages`], and when there are too many links.
    pub fn graph<B: Books>(archives: &[B]) -> Result<(Graph, Vec<Vec<u32>>), JoinError> {
        let web = JoinedWeb::of_pages(archives)?;
        let (mut firsts, mut pages) = (Vec::new(), 0_u32);
        for ids in &web.ids {
            firsts.push(pages);
            let next = u64::from(pages) + ids.len() as u64;
            pages = u32::try_from(next).map_err(|_| JoinError::TooMany)?;
        }
        let mut arcs = Vec::new();
        for (books, places) in archives.iter().zip(&web.places) {
            let number = |id: UrlId| {
                let (part, number) = (*places.get(id.index())?)?;
                Some(firsts[usize::from(part)] + number)
            };
            books.links(&mut |source, targets| {
                if let Some(from) = number(source) {
                    arcs.extend(targets.iter().filter_map(|target| Some((from, number(*target)?))));
                }
            })?;
        }
        Ok((Graph::from_arcs(pages as usize, &arcs)?, web.ids))
    }

    /// Joins their sites. The weight of an arc is the number of links from pages of one site to pages of the other.
    ///
    /// # Errors
    /// As [`Self::pages`].
    pub fn sites<B: Books>(archives: &[B], how: &How<'_>) -> Result<Self, JoinError> {
        let mut web = JoinedWeb::new(archives)?;
        let of_sites = web.add_sites();
        for ((archive, books), of_sites) in archives.iter().enumerate().zip(&of_sites) {
            for entry in books.entries() {
                let (id, entry) = entry?;
                if entry.flags.has_any(flags::ACCOUNT | flags::ALIAS)
                    && (web.owner(archive, &entry) == archive || web.counts(archive, id)?)
                {
                    let site = books.site_by_rule(id)?;
                    let place = site.and_then(|site| of_sites.get(site.index()).copied().flatten());
                    web.put(archive, id, &entry, place);
                }
            }
        }
        web.into_parts(how, true)
    }
}

impl<'a, B: Books> JoinedWeb<'a, B> {
    fn new(archives: &'a [B]) -> Result<Self, JoinError> {
        if u16::try_from(archives.len()).is_err() {
            return Err(JoinError::TooMany);
        }
        let names: Vec<_> = archives.iter().map(Books::sites).collect::<Result<_, _>>()?;
        let sites = answering_of(&names).map_err(|error| match error {
            AnsweringError::Overlap { site, archives: both } => {
                JoinError::Overlap { site, paths: both.map(|one| archives[one].called()) }
            }
            AnsweringError::State(error) => error.into(),
        })?;
        Ok(Self {
            aliases: vec![HashMap::new(); archives.len()],
            places: archives.iter().map(|books| vec![None; books.url_count() as usize]).collect(),
            has_strays: vec![false; archives.len()],
            ids: vec![Vec::new(); archives.len()],
            archives,
            names,
            sites,
        })
    }

    /// Computes the positions of all pages.
    fn of_pages(archives: &'a [B]) -> Result<Self, JoinError> {
        let mut web = Self::new(archives)?;
        for (archive, books) in archives.iter().enumerate() {
            web.aliases[archive] = books.aliases()?;
            for entry in books.entries() {
                let (id, entry) = entry?;
                if entry.flags.has_any(flags::ACCOUNT) && web.owner(archive, &entry) == archive {
                    web.add(archive, id)?;
                }
            }
        }
        for (archive, books) in archives.iter().enumerate() {
            for entry in books.entries() {
                let (id, entry) = entry?;
                if web.places[archive][id.index()].is_none()
                    && entry.flags.has_any(flags::ACCOUNT | flags::ALIAS)
                {
                    let place = web.resolve(archive, id)?;
                    web.put(archive, id, &entry, place);
                }
            }
        }
        Ok(web)
    }

    /// Returns the archive responsible for the site of a page.
    fn owner(&self, archive: usize, entry: &Entry) -> usize {
        let owner = entry.site.and_then(|site| self.sites[archive].get(site.index()));
        owner.copied().unwrap_or(archive)
    }

    /// Numbers each site in its responsible archive; returns the positions of the sites of each archive.
    fn add_sites(&mut self) -> Vec<Vec<Place>> {
        let mut numbers: HashMap<&String, (u16, u32)> = HashMap::new();
        for (archive, (names, sites)) in (0u16..).zip(self.names.iter().zip(&self.sites)) {
            let ids = &mut self.ids[usize::from(archive)];
            let own = |(_, owner): &(_, &usize)| **owner == usize::from(archive);
            for ((site, (name, _)), _) in (0..).zip(names).zip(sites).filter(own) {
                numbers.insert(name, (archive, ids.len() as u32));
                ids.push(site);
            }
        }
        let place = |(name, _): &(String, bool)| numbers.get(name).copied();
        self.names.iter().map(|names| names.iter().map(place).collect()).collect()
    }

    /// Makes a URL of an archive a page of its part.
    fn add(&mut self, archive: usize, id: UrlId) -> Result<Place, JoinError> {
        let number = u32::try_from(self.ids[archive].len()).map_err(|_| JoinError::TooMany)?;
        self.ids[archive].push(id.0);
        let place = Some((archive as u16, number));
        self.places[archive][id.index()] = place;
        Ok(place)
    }

    /// Stores the position of a URL.
    fn put(&mut self, archive: usize, id: UrlId, entry: &Entry, place: Place) {
        let is_elsewhere = place.is_some_and(|(part, _)| usize::from(part) != archive);
        self.has_strays[archive] |= is_elsewhere && entry.is_visited;
        self.places[archive][id.index()] = place;
    }

    /// Returns the page that a URL stands for, after all aliases.
    fn resolve(&mut self, archive: usize, id: UrlId) -> Result<Place, JoinError> {
        let (mut archive, mut id, mut is_named_elsewhere) = (archive, id, false);
        for _ in 0..=2 * ALIASES_MAX {
            if let Some(place) = self.places[archive][id.index()] {
                return Ok(Some(place));
            }
            if let Some(page) = self.aliases[archive].get(&id) {
                id = *page;
                continue;
            }
            let home = self.home(archive, id)?;
            if home == (archive, id) {
                let books = &self.archives[archive];
                let known = books.entry(id)?.flags;
                let is_page = is_named_elsewhere || known.has_any(flags::ACCOUNT);
                let counts = is_page && !known.has_any(flags::ALIAS) && !books.is_gone(id)?;
                return if counts { self.add(archive, id) } else { Ok(None) };
            }
            (archive, id) = home;
            is_named_elsewhere = true;
        }
        Ok(None)
    }

    /// Returns the archive that a URL belongs to, and its number there.
    fn home(&self, archive: usize, id: UrlId) -> Result<(usize, UrlId), JoinError> {
        let books = &self.archives[archive];
        let owner = self.owner(archive, &books.entry(id)?);
        if owner == archive {
            return Ok((archive, id));
        }
        let url = books.url(id)?;
        for other in std::iter::once(owner).chain(0..archive) {
            if let Some(found) = self.archives[other].find(&url)? {
                return Ok((other, found));
            }
        }
        Ok((archive, id))
    }

    /// Whether links to a URL count, as decided by the archive that it belongs to.
    fn counts(&self, archive: usize, id: UrlId) -> Result<bool, JoinError> {
        let (home, id) = self.home(archive, id)?;
        let books = &self.archives[home];
        Ok(books.entry(id)?.flags.has_any(flags::ACCOUNT | flags::ALIAS) || !books.is_gone(id)?)
    }

    /// Collects the links of one part that are in an archive.
    fn read(
        &self,
        archive: usize,
        part: usize,
        are_sites: bool,
        links: &mut JoinedLinks,
    ) -> Result<(), JoinError> {
        let places = &self.places[archive];
        let place = |id: UrlId| places.get(id.index()).copied().flatten();
        self.archives[archive].links(&mut |source, targets| {
            if let Some((_, from)) = place(source).filter(|(of, _)| usize::from(*of) == part) {
                let to = targets.iter().filter_map(|target| place(*target));
                let to = to.filter(|(of, to)| !are_sites || (usize::from(*of), *to) != (part, from));
                links.extend(to.map(|(part, to)| PartLink { from, part, to, weight: 1.0 }));
            }
        })
    }

    fn into_parts(self, how: &How<'_>, are_sites: bool) -> Result<Joined, JoinError> {
        let (folder, is_weighted) = (how.stored.map(|(folder, _)| folder), are_sites && !how.unweighted);
        let most = how.stored.map_or(usize::MAX, |(_, given)| given / (MEMORY_SHARE * size_of::<PartLink>()));
        has_room(how, self.ids.iter().map(|ids| PAGE_BYTES * ids.len()).sum())?;
        let mut parts = Vec::new();
        for number in 0..self.archives.len() {
            let mut part = GraphPart::new(number, self.ids[number].len(), is_weighted, how.damping, folder)?;
            let mut rest = Some((0, 0));
            while let Some(begin) = rest {
                let mut links = JoinedLinks { links: Vec::new(), begin, end: None, most, is_weighted };
                for archive in (0..self.archives.len()).filter(|&one| one == number || self.has_strays[one]) {
                    self.read(archive, number, are_sites, &mut links)?;
                }
                rest = links.end;
                part.add(links.links).map_err(PartError::from)?;
            }
            parts.push(part);
        }
        has_room(how, parts.iter().map(GraphPart::vector_bytes).sum())?;
        GraphPart::connect(&mut parts);
        Ok(Joined { parts, ids: self.ids })
    }
}

/// Returns an error if the memory is less than `least`.
fn has_room(how: &How<'_>, least: usize) -> Result<(), JoinError> {
    match how.stored {
        Some((_, given)) if given < least => Err(JoinError::Memory { given, least }),
        _ => Ok(()),
    }
}

/// Links to the pages from `begin` to before `end`, which is lowered until they fit.
struct JoinedLinks {
    links: Vec<PartLink>,
    begin: (u16, u32),
    end: Option<(u16, u32)>,
    most: usize,
    is_weighted: bool,
}

impl JoinedLinks {
    fn extend(&mut self, links: impl Iterator<Item = PartLink>) {
        let (begin, end) = (self.begin, self.end);
        let is_wanted = |link: &PartLink| begin <= link.target() && end.is_none_or(|end| link.target() < end);
        self.links.extend(links.filter(is_wanted));
        if self.links.len() <= self.most {
            return;
        }
        merge(&mut self.links, self.is_weighted);
        if self.links.len() <= self.most / 2 {
            return;
        }
        let middle = self.links[self.links.len() / 2].target();
        if middle > begin {
            self.end = Some(middle);
            self.links.truncate(self.links.partition_point(|link| link.target() < middle));
        } else {
            // Half of them lead to one page, and are needed all at once.
            self.most *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{JoinedLinks, PartLink, merge};

    #[test]
    fn links_that_do_not_fit_are_gathered_one_after_the_other() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut link = || PartLink {
            from: random.u32(0..50),
            part: random.u16(0..3),
            to: random.u32(0..40),
            weight: 1.0,
        };
        let lists: Vec<Vec<PartLink>> = (0..400).map(|_| (0..5).map(|_| link()).collect()).collect();
        let mut all = lists.concat();
        merge(&mut all, true);
        for (most, least_goes) in [(usize::MAX, 1), (4000, 1), (200, 9), (1, 100)] {
            let (mut found, mut rest, mut goes) = (Vec::new(), Some((0, 0)), 0);
            while let Some(begin) = rest {
                let mut links = JoinedLinks { links: Vec::new(), begin, end: None, most, is_weighted: true };
                lists.iter().for_each(|list| links.extend(list.iter().copied()));
                assert!(most == 1 || links.links.len() <= most);
                merge(&mut links.links, true);
                (rest, goes) = (links.end, goes + 1);
                found.extend(links.links);
            }
            assert!(found == all && goes >= least_goes, "{} of {}, {goes} goes", found.len(), all.len());
        }
    }
}
