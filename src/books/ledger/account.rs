//! Accounts of pages and sites, as the ledgers use them and as records store them.

use archive_math::importance::{Base, CashAccount, Credit, SiteAccount};
use archive_storage::{Page, Site, Visit};

use super::page_flags as flags;

/// Flags of a site: its account was read; one of its pages links to another site.
const SITE_READ: u16 = 1;
const SITE_LINKING: u16 = 1 << 1;

/// Returns the account of a page in the form that the ledger uses.
pub(super) fn account(page: &Page, visit: Option<&Visit>) -> CashAccount {
    let read = page.flags.has_any(flags::READ);
    let credit = visit.filter(|_| read).map(|visit| Credit::from_bytes(visit.credit));
    CashAccount { base: Base::from_stored(page.cash), credit: credit.or(read.then(Credit::default)) }
}

/// Returns the account of a site in the form that the ledger uses.
pub(super) fn site_account(site: &Site) -> SiteAccount {
    let credit = (site.flags & SITE_READ != 0).then(|| Credit::from_bytes(site.credit));
    SiteAccount {
        account: CashAccount { base: Base::from_stored(site.cash), credit },
        linking: site.flags & SITE_LINKING != 0,
    }
}

/// Writes a site's account into its record.
pub(super) fn store_site_account(site: &mut Site, books: &SiteAccount) {
    site.cash = books.account.base.to_stored();
    site.credit = books.account.credit.unwrap_or_default().to_bytes();
    site.flags = if books.account.credit.is_some() { SITE_READ } else { 0 };
    site.flags |= if books.linking { SITE_LINKING } else { 0 };
}
