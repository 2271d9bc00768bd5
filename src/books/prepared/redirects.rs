//! Finds where pages redirect to, in a pass over all links.

use std::collections::HashMap;

use archive_storage::{LinkKinds, State, StateError, UrlId};
use archive_web::parse::LinkKind;
use rayon::prelude::*;

use crate::ledger::LinkCode;

/// Blocks of links that are read sequentially.
const BLOCKS: u64 = 256;
/// Number of such parts whose lists are in memory at once: some 10 MB.
const PARTS: usize = 64;

/// Calls `visit` for each list of links, in order of arrival, with its page and the target of its first link of the
/// given `kinds` for which `counts` holds. Uses all processors. A page's last list is its newest.
///
/// # Errors
/// When the links cannot be read, and the errors of `check`, which is called now and then.
pub fn each_list<E: From<StateError> + Send>(
    state: &State,
    kinds: &LinkKinds,
    counts: impl Fn(UrlId) -> bool + Sync,
    check: impl Fn() -> Result<(), E> + Sync,
    mut visit: impl FnMut(UrlId, Option<UrlId>),
) -> Result<(), E> {
    let of_part = |first: &u64| -> Result<Vec<(UrlId, Option<UrlId>)>, E> {
        check()?;
        let mut lists = Vec::new();
        let blocks = *first..first + BLOCKS;
        state.search_links(blocks, kinds, &counts, |source, _, target| lists.push((source, target)))?;
        Ok(lists)
    };
    let parts: Vec<u64> = (0..state.link_blocks()).step_by(BLOCKS as usize).collect();
    for parts in parts.chunks(PARTS) {
        let lists = parts.par_iter().map(of_part).collect::<Result<Vec<_>, _>>()?;
        lists.into_iter().flatten().for_each(|(source, target)| visit(source, target));
    }
    Ok(())
}

/// Maps each redirecting page to the URL that it redirects to.
pub(super) type Redirects = HashMap<UrlId, UrlId>;

/// Collects the redirects of all pages: the first redirect among the newest links of each.
pub(super) fn all(state: &State) -> Result<Redirects, StateError> {
    let kinds = LinkKinds::new(|kind| LinkCode::from_byte(kind).kind() == Some(LinkKind::Redirect));
    let mut redirects = Redirects::new();
    each_list(
        state,
        &kinds,
        |_| true,
        || Ok::<_, StateError>(()),
        |source, target| match target {
            Some(target) => _ = redirects.insert(source, target),
            None => _ = redirects.remove(&source),
        },
    )?;
    Ok(redirects)
}
