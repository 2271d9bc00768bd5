//! Proof that no cash was lost: a running sum over account writes, compared at every checkpoint, and an occasional pass
//! over all accounts.

use super::ledger::{CashAccount, Ledger};

/// Sums over all accounts, compared with the ledger at the end.
#[derive(Clone, Debug, Default)]
pub struct CashAudit {
    cash: u128,
    unread_cash: u128,
    unread: u64,
    read: u64,
    rates: f64,
}

/// The ledger does not balance: the store lost or repeated a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Imbalance {
    /// The cash of all pages, the virtual page and the reserve does not add up to the total.
    #[error("the ledger holds {found} units of cash instead of {expected}")]
    Total {
        /// [`Ledger::total`] in units.
        expected: u64,
        /// Units found.
        found: u128,
    },
    /// The cash of unread pages differs from the ledger.
    #[error("unread pages hold {found} units of cash, the ledger says {expected}")]
    Unread {
        /// Units by the ledger.
        expected: u64,
        /// Units found.
        found: u128,
    },
    /// The changes written to accounts do not add up to the cash that the ledger moved.
    #[error("accounts were given {by} units of cash more than the ledger moved")]
    Written {
        /// Units in excess; negative if some are missing.
        by: i64,
    },
    /// The number of accounts is wrong.
    #[error(
        "there are {unread} accounts of unread and {read} of read pages, the ledger says {unread_expected} and {read_expected}"
    )]
    Pages {
        /// Accounts without history found.
        unread: u64,
        /// Accounts with history found.
        read: u64,
        /// Accounts without history by the ledger.
        unread_expected: u64,
        /// Accounts with history by the ledger.
        read_expected: u64,
    },
}

/// The sum of all accounts, followed as they are written, without reading them.
///
/// The caller adds up the changes of stored bases; the ledger knows what all bases have to add up to. The two are
/// independent.
#[derive(Clone, Copy, Debug)]
pub struct CashTally {
    /// Sum of all bases minus `written`, at a time when the ledger balanced.
    begun: i64,
}

impl CashTally {
    /// Begins at a checkpoint, when the ledger balances. `written` is the sum of changes so far.
    #[must_use]
    pub fn begin(ledger: &Ledger, written: i64) -> Self {
        Self { begun: ledger.sum_of_bases().wrapping_sub(written) }
    }

    /// Compares `written` with the ledger.
    ///
    /// # Errors
    /// [`Imbalance::Written`] if they differ.
    pub fn check(&self, ledger: &Ledger, written: i64) -> Result<(), Imbalance> {
        match self.begun.wrapping_add(written).wrapping_sub(ledger.sum_of_bases()) {
            0 => Ok(()),
            by => Err(Imbalance::Written { by }),
        }
    }
}

impl CashAudit {
    /// Adds an open account; returns the rate of the page, for sums over a site.
    pub fn add(&mut self, ledger: &Ledger, account: &CashAccount) -> f64 {
        let cash = u128::from(ledger.cash(account).units());
        self.cash += cash;
        if account.credit.is_some() {
            self.read += 1;
        } else {
            self.unread += 1;
            self.unread_cash += cash;
        }
        let rate = ledger.rate(account);
        self.rates += rate;
        rate
    }

    /// Compares the sums with the ledger. If all agree, calibrates the ledger so that the mean importance is exactly 1.
    ///
    /// # Errors
    /// The first sum that differs.
    pub fn finish(self, ledger: &mut Ledger) -> Result<(), Imbalance> {
        let found =
            self.cash + u128::from(ledger.virtual_cash().units()) + u128::from(ledger.reserve().units());
        let total = ledger.total().units();
        if found != u128::from(total) {
            return Err(Imbalance::Total { expected: total, found });
        }
        let expected = ledger.unread_cash().units();
        if self.unread_cash != u128::from(expected) {
            return Err(Imbalance::Unread { expected, found: self.unread_cash });
        }
        if (self.unread, self.read) != (ledger.unread_pages(), ledger.read_pages()) {
            return Err(Imbalance::Pages {
                unread: self.unread,
                read: self.read,
                unread_expected: ledger.unread_pages(),
                read_expected: ledger.read_pages(),
            });
        }
        if self.rates > 0.0 && self.rates.is_finite() {
            ledger.calibrate(self.rates);
        }
        Ok(())
    }
}
