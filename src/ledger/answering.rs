//! Which of several archives answers for each site.

use std::collections::HashMap;

use archive_storage::{SiteId, State, StateError};

/// Why archives cannot be told apart by their sites.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnsweringError {
    /// A state cannot be read.
    #[error(transparent)]
    State(#[from] StateError),
    /// Two archives, by their places, have captured pages of the same site.
    #[error("archives {} and {} have both captured pages of {site}", archives[0], archives[1])]
    Overlap {
        /// The site.
        site: String,
        /// The archives.
        archives: [usize; 2],
    },
}

/// For each archive, by its numbers of sites, the place of the archive that answers for the site: that which has captured pages of it,
/// otherwise the first that knows it.
///
/// # Errors
/// When a state cannot be read, or two archives have captured pages of one site.
pub fn answering(states: &[&State]) -> Result<Vec<Vec<usize>>, AnsweringError> {
    let mut known: HashMap<String, (usize, bool)> = HashMap::new();
    let mut names = Vec::new();
    for (index, state) in states.iter().enumerate() {
        let mut has_pages = vec![false; state.site_count() as usize];
        for host in state.hosts() {
            let (_, _, host) = host?;
            if let Some(has_pages) = has_pages.get_mut(host.site.index()) {
                *has_pages |= host.fetched > 0;
            }
        }
        let mut of_archive = Vec::with_capacity(has_pages.len());
        for (site, has_pages) in (0..).zip(has_pages) {
            let name = state.site_name(SiteId(site))?;
            match known.get_mut(&name) {
                Some((other, true)) if has_pages => {
                    return Err(AnsweringError::Overlap { site: name, archives: [*other, index] });
                }
                Some(first) if has_pages => *first = (index, true),
                Some(_) => {}
                None => {
                    known.insert(name.clone(), (index, has_pages));
                }
            }
            of_archive.push(name);
        }
        names.push(of_archive);
    }
    let owner = |name: &String| known.get(name).map_or(0, |(index, _)| *index);
    Ok(names.iter().map(|names| names.iter().map(owner).collect()).collect())
}
