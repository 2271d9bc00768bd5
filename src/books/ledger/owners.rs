//! Which of several archives is responsible for each site.

use std::collections::HashMap;

use archive_storage::{SiteId, State, StateError};

/// Why sites cannot be assigned to archives.
#[derive(Debug, thiserror::Error)]
pub enum AnsweringError {
    /// A state cannot be read.
    #[error(transparent)]
    State(#[from] StateError),
    /// Two archives, given by their positions, have captured pages of the same site.
    #[error("archives {} and {} have both captured pages of {site}", archives[0], archives[1])]
    Overlap {
        /// The site.
        site: String,
        /// The archives.
        archives: [usize; 2],
    },
}

/// Which of several archives is responsible for each known site.
#[derive(Debug, Default)]
pub struct ResponsibleArchives(HashMap<String, (usize, bool)>);

impl ResponsibleArchives {
    /// Adds a site that an archive knows, and whether it has captured pages of it. Archives are added in order. For a hidden
    /// site, which has no name, nobody answers.
    ///
    /// # Errors
    /// When another archive has captured pages of it, too.
    pub fn add(&mut self, archive: usize, site: &str, has_pages: bool) -> Result<(), AnsweringError> {
        match self.0.get_mut(site) {
            _ if site.is_empty() => {}
            Some((other, true)) if has_pages && *other != archive => {
                let archives = [*other, archive];
                return Err(AnsweringError::Overlap { site: site.to_owned(), archives });
            }
            Some(first) if has_pages => *first = (archive, true),
            Some(_) => {}
            None => {
                self.0.insert(site.to_owned(), (archive, has_pages));
            }
        }
        Ok(())
    }

    /// Returns the position of the archive responsible for a site: the one that has captured pages of it, or else the
    /// first that knows it.
    #[must_use]
    pub fn of(&self, site: &str) -> Option<usize> {
        self.0.get(site).map(|(archive, _)| *archive)
    }

    /// Like [`ResponsibleArchives::of`], but `None` unless that archive has captured pages of the site.
    #[must_use]
    pub fn captured(&self, site: &str) -> Option<usize> {
        self.0.get(site).filter(|(_, has_pages)| *has_pages).map(|(archive, _)| *archive)
    }
}

/// Returns, by site number, whether an archive has captured pages of the site.
///
/// # Errors
/// When the state cannot be read.
pub fn captured_sites(state: &State) -> Result<Vec<bool>, StateError> {
    let mut has_pages = vec![false; state.site_count() as usize];
    for host in state.hosts() {
        let (_, _, host) = host?;
        if let Some(has_pages) = has_pages.get_mut(host.site.index()) {
            *has_pages |= host.fetched > 0;
        }
    }
    Ok(has_pages)
}

/// Returns the sites of an archive, by number, and whether it has captured pages of them; a hidden site has no name.
///
/// # Errors
/// When the state cannot be read.
pub fn known_sites(state: &State) -> Result<Vec<(String, bool)>, StateError> {
    let named = |(site, has_pages)| {
        let site = SiteId(site);
        Ok((if state.shows_site(site) { state.site_name(site)? } else { String::new() }, has_pages))
    };
    (0..).zip(captured_sites(state)?).map(named).collect()
}

/// Returns, for each archive and its sites by number, the position of the responsible archive; see [`ResponsibleArchives::of`].
///
/// # Errors
/// When a state cannot be read, or two archives have captured pages of one site.
pub fn answering(states: &[&State]) -> Result<Vec<Vec<usize>>, AnsweringError> {
    let sites: Vec<_> = states.iter().map(|state| known_sites(state)).collect::<Result<_, _>>()?;
    answering_of(&sites)
}

/// Like [`answering`], given the sites of each archive.
pub(crate) fn answering_of(sites: &[Vec<(String, bool)>]) -> Result<Vec<Vec<usize>>, AnsweringError> {
    let mut all = ResponsibleArchives::default();
    for (archive, sites) in sites.iter().enumerate() {
        sites.iter().try_for_each(|(name, has_pages)| all.add(archive, name, *has_pages))?;
    }
    // A hidden site is its archive's own.
    let owners = |(archive, sites): (usize, &Vec<(String, bool)>)| {
        sites.iter().map(|(name, _)| all.of(name).unwrap_or(archive)).collect()
    };
    Ok(sites.iter().enumerate().map(owners).collect())
}
