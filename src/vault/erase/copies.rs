//! Revisits that depended on erased payloads. Those that stay get the payload, and pages that lost some captures get a
//! new summary.

use archive_books::ledger::{CrawlerFacts, Credits, LinkCode, shown};
use archive_storage::{CaptureKind, LinkTarget, Store, UrlId};

use super::author::CaptureFate;
use super::{Done, EraseError, EraseIntent, rewrite};

/// Gives erased payloads to the first revisit of each kept page.
pub(super) fn keep(
    store: &mut Store,
    intent: &EraseIntent,
    done: &mut Done,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), EraseError> {
    let mut fates = Vec::new();
    for &(copy, holder) in &intent.kept {
        let capture = store.state().capture(copy)?;
        if copy == holder && capture.kind != CaptureKind::Response {
            fates.push((copy, capture.location, CaptureFate::Own));
        } else if copy != holder && capture.original != Some(holder) {
            fates.push((copy, capture.location, CaptureFate::Refer(holder)));
        }
    }
    rewrite(store, intent, &fates, &[], done, progress)
}

/// Summarises a page that lost some of its captures from its newest version.
pub(super) fn recompute(store: &mut Store, page: UrlId) -> Result<(), EraseError> {
    let Some((newest, capture)) = shown(store.state(), page)? else { return Ok(()) };
    let holder = store.original(&capture)?.unwrap_or(capture);
    let facts = CrawlerFacts::from_fields(&store.metadata(&holder)?);
    let mut links = Vec::new();
    for link in facts.links.iter().filter(|_| holder.url == page) {
        if let Some(target) = store.state().find(&link.url)? {
            let kind = LinkCode::new(link.kind, link.nofollow, link.template).to_byte();
            links.push(LinkTarget { target, kind });
        }
    }
    let state = store.state_mut();
    if !links.is_empty() {
        state.append_links(page, &links)?;
    }
    Credits::summarise(state, page, newest, &facts)?;
    Ok(())
}
