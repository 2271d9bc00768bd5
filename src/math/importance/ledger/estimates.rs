//! Estimates of importance from accounts.

use super::super::cash::Base;
use super::super::interpolation::Credit;
use super::{AGE_MIN, CashAccount, ENDOWMENT, FIRST_PASS, Ledger, in_endowments, received};

impl Ledger {
    /// Returns the history of a read page after pages were visited in turn; see [`Credit::evened`].
    #[must_use]
    pub fn evened(&self, base: Base, credit: Credit) -> Credit {
        let cash = self.cash(&CashAccount { base, credit: Some(credit) });
        credit.evened(in_endowments(cash.units()), self.clock())
    }

    /// Cash that comes in to the page per turn of G, in endowments: the estimate of its importance before
    /// normalisation.
    #[must_use]
    pub fn rate(&self, account: &CashAccount) -> f64 {
        let cash = self.cash(account).units();
        match account.credit {
            Some(credit) => credit.rate(in_endowments(cash), self.clock()),
            None => received(cash) / self.unread_age() + self.withheld(),
        }
    }

    /// Importance of the page, with mean 1 over all known pages: 10 is ten times the average page.
    #[must_use]
    pub fn importance(&self, account: &CashAccount) -> f64 {
        let mean = self.mean_rate();
        if mean > 0.0 { self.rate(account) / mean } else { 1.0 }
    }

    /// The current mean of [`Ledger::rate`] over all known pages.
    #[must_use]
    pub fn mean_rate(&self) -> f64 {
        let pages = self.pages();
        let circulating = in_endowments(self.circulating());
        if pages == 0 {
            0.0
        } else {
            let withheld = self.withheld() * self.numbers.unread.pages as f64;
            self.numbers.calibration * (self.flow_to_pages() * circulating + withheld) / pages as f64
        }
    }

    /// Share of all importance that the read pages have, from 0 to 1. `waiting` of the unread pages are to be read; the
    /// others, which rules or other ledgers keep from being read, count only by what they have received.
    #[must_use]
    pub fn gathered(&self, waiting: u64) -> f64 {
        let unread = self.numbers.unread.pages;
        if self.read_pages() == 0 {
            return 0.0;
        }
        let received = self.numbers.unread_cash.saturating_sub(unread.saturating_mul(ENDOWMENT));
        let (received, each) = (in_endowments(received) / self.unread_age(), self.withheld());
        let all = self.mean_rate() * self.pages() as f64;
        let read = (all - received - each * unread as f64).max(0.0);
        let known = read + received + each * waiting as f64;
        if known > 0.0 { read / known } else { 0.0 }
    }

    /// Share of the moved cash that goes to pages rather than to the virtual page; never 0, so it can be a divisor.
    fn flow_to_pages(&self) -> f64 {
        (1.0 - self.numbers.virtual_rate).max(f64::MIN_POSITIVE)
    }

    /// Makes the mean importance exactly 1, given the sum of the rates of all pages.
    pub(in super::super) fn calibrate(&mut self, rates: f64) {
        self.numbers.calibration = 1.0;
        let expected = self.mean_rate() * self.pages() as f64;
        if expected > 0.0 {
            self.numbers.calibration = rates / expected;
        }
    }

    /// Returns what the virtual page pays a read page per turn of G more than an unread one, in endowments.
    ///
    /// Without the policy's bias an unread page would get as much, and hand it back: it has no links. So the rates of read
    /// pages among themselves are the same with and without the bias.
    fn withheld(&self) -> f64 {
        let (unread, read) = (self.numbers.unread.pages as f64, self.numbers.read.pages as f64);
        let (discovery, refresh) = (f64::from(self.policy.discovery), f64::from(self.policy.refresh));
        let parts = discovery * unread + refresh * read;
        if parts == 0.0 {
            return 0.0;
        }
        let paid = self.numbers.virtual_rate * in_endowments(self.circulating());
        (paid * (refresh - discovery) / parts).max(0.0)
    }

    /// Returns the G-time over which unread pages received what they have; see the documentation of `ledger`.
    pub(super) fn unread_age(&self) -> f64 {
        let endowed = self.numbers.unread.pages.saturating_mul(ENDOWMENT);
        let inflow = self.share(self.numbers.unread_cash.saturating_sub(endowed));
        let (age_min, without_flow) = match self.numbers.is_settled {
            true => (AGE_MIN, FIRST_PASS),
            false => (self.numbers.clock.min(FIRST_PASS), 0.0),
        };
        let age =
            if self.numbers.unread_rate > 0.0 { inflow / self.numbers.unread_rate } else { without_flow };
        age.max(age_min).clamp(AGE_MIN, self.policy.window)
    }
}
