//! Payouts of a visited page to its link targets.

use super::super::cash::Base;
use super::super::interpolation::Credit;
use super::super::weight::Weight;
use super::{CashAccount, Ledger};

/// The payment of the cash of a visited page to its links.
///
/// All the cash is with the virtual page from the start and every payment comes from there, so the ledger balances at
/// any moment. Call [`Payout::finish`] when all links are paid.
#[derive(Debug)]
#[must_use = "the links have to be paid"]
pub struct Payout<'a> {
    pub(super) ledger: &'a mut Ledger,
    pub(super) cash: u64,
    pub(super) unit: u64,
    pub(super) left: u64,
    pub(super) unread: u64,
    pub(super) paid: u64,
    pub(super) bonus: u64,
}

impl Payout<'_> {
    /// Opens the account of a page discovered by this visit.
    pub fn discover(&mut self) -> CashAccount {
        self.ledger.discover()
    }

    /// Pays for a link of `weight` to the page at `base`; returns its new base. `read` says whether the target was ever
    /// read.
    ///
    /// Links beyond the announced sum of weights get what is left, finally nothing.
    #[must_use = "the account has to be replaced"]
    pub fn pay(&mut self, base: Base, read: bool, weight: Weight) -> Base {
        let amount = (self.unit * u64::from(weight.parts())).min(self.left);
        self.left -= amount;
        self.paid += amount;
        self.give(base, read, amount)
    }

    /// Pays like [`Payout::pay`] and adds `bonus` times that amount from the virtual page's own cash, as far as it
    /// goes.
    ///
    /// This biases a crawl towards a topic, `news` or XML without changing the total.
    #[must_use = "the account has to be replaced"]
    pub fn pay_with_bonus(&mut self, base: Base, read: bool, weight: Weight, bonus: f64) -> Base {
        let base = self.pay(base, read, weight);
        let own = self.ledger.numbers.virtual_cash - self.left;
        let wanted = (self.unit as f64 * f64::from(weight.parts()) * bonus.max(0.0)) as u64;
        let amount = wanted.min(own);
        self.bonus += amount;
        self.give(base, read, amount)
    }

    /// Returns an empty history, for a page whose past must not count.
    #[must_use]
    pub fn begin_history(&self) -> Credit {
        Credit { history: 0.0, span: 0.0, clock: self.ledger.clock() }
    }

    /// Ends the visit: records the flows, and hands out the cash of the virtual page if it holds too much.
    pub fn finish(self) {
        let Self { ledger, cash, unread, paid, bonus, .. } = self;
        ledger.numbers.clock += ledger.share(bonus);
        ledger.observe(cash + bonus, unread, cash - paid);
        if ledger.share(ledger.numbers.virtual_cash) > ledger.policy.virtual_share_max {
            ledger.hand_out();
        }
    }

    fn give(&mut self, base: Base, read: bool, amount: u64) -> Base {
        self.ledger.numbers.virtual_cash -= amount;
        if !read {
            self.unread += amount;
            self.ledger.numbers.unread_cash += amount;
        }
        base.plus(amount)
    }
}
