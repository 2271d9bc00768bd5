//! The proof that no cash was lost: a sum that is followed as accounts are written, compared at every checkpoint, and a
//! pass over all accounts, done now and then.

use super::ledger::{Account, Ledger};

/// Sums over accounts, compared with the ledger at the end.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    cash: u128,
    unread_cash: u128,
    unread: u64,
    read: u64,
    rates: f64,
}

/// The books do not balance: the store lost or repeated something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Imbalance {
    /// The cash of all pages, of the virtual page and of the reserve is not all there is.
    #[error("the ledger holds {found} units of cash instead of {expected}")]
    Total {
        /// [`Ledger::total`] in units.
        expected: u64,
        /// Units found.
        found: u128,
    },
    /// The cash of unread pages is not what the ledger noted.
    #[error("unread pages hold {found} units of cash, the ledger says {expected}")]
    Unread {
        /// Units by the ledger.
        expected: u64,
        /// Units found.
        found: u128,
    },
    /// What was written into accounts does not add up to what the ledger moved.
    #[error("accounts were given {by} units of cash more than the ledger moved")]
    Written {
        /// Units too many; negative when some are missing.
        by: i64,
    },
    /// Accounts are missing or too many.
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

/// What all accounts hold according to those who write them, followed without reading them.
///
/// The caller adds up by how much every write changes an account's stored base;
/// the ledger knows what all bases have to add up to. The two know nothing of each other.
#[derive(Clone, Copy, Debug)]
pub struct Tally {
    /// The sum of all bases less what was written, as of when the books balanced.
    begun: i64,
}

impl Tally {
    /// Begins where the books balance: at a checkpoint. `written` is what was written so far.
    #[must_use]
    pub fn begin(ledger: &Ledger, written: i64) -> Self {
        Self { begun: ledger.sum_of_bases().wrapping_sub(written) }
    }

    /// Compares with the ledger.
    ///
    /// # Errors
    /// [`Imbalance::Written`].
    pub fn check(&self, ledger: &Ledger, written: i64) -> Result<(), Imbalance> {
        match self.begun.wrapping_add(written).wrapping_sub(ledger.sum_of_bases()) {
            0 => Ok(()),
            by => Err(Imbalance::Written { by }),
        }
    }
}

impl Audit {
    /// Counts one open account; returns the page's rate, for sums over a site.
    pub fn add(&mut self, ledger: &Ledger, account: &Account) -> f64 {
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

    /// Compares with the ledger and, when all is right, sets its mean importance to exactly 1.
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
