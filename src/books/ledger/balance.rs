//! That cash is neither made nor lost.

use archive_math::importance::CashAudit;
use archive_storage::State;

use super::account::{account, site_account};
use super::credit::Credits;
use super::error::CreditError;
use super::page_flags as flags;

impl Credits {
    /// Checks that no cash was lost or created since the books were opened: everything written into accounts must add
    /// up to what the ledgers moved. This is cheap enough for every checkpoint.
    ///
    /// # Errors
    /// When the books do not balance.
    pub fn balance(&self, state: &State) -> Result<(), CreditError> {
        let written = state.cash_written();
        self.tallies.0.check(&self.pages, written.pages)?;
        Ok(self.tallies.1.check(&self.sites, written.sites)?)
    }

    /// Checks the sum over all accounts, whenever they were written, and makes the mean importance exactly 1.
    ///
    /// # Errors
    /// When the books do not balance.
    pub fn audit(&mut self, state: &State) -> Result<(), CreditError> {
        self.balance(state)?;
        let mut audit = CashAudit::default();
        for known in state.pages_with_visits() {
            let (_, page, visit) = known?;
            if page.flags.has_any(flags::ACCOUNT) {
                audit.add(&self.pages, &account(&page, visit.as_ref()));
            }
        }
        audit.finish(&mut self.pages)?;
        let mut audit = CashAudit::default();
        for site in state.sites() {
            let (_, _, site) = site?;
            audit.add(&self.sites, &site_account(&site).account);
        }
        Ok(audit.finish(&mut self.sites)?)
    }
}
