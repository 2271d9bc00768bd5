//! What a visited page pays to those that it links to.

use super::super::cash::Base;
use super::super::interpolated::Credit;
use super::super::weight::Weight;
use super::{Account, Ledger};

/// The payment of one visited page's cash to its links.
///
/// All the cash is with the virtual page from the start and every payment takes from there, so the books balance at any
/// moment. Call [`Payout::finish`] when all links are paid.
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
    /// Opens the account of a page that this visit discovered.
    pub fn discover(&mut self) -> Account {
        self.ledger.discover()
    }

    /// Pays one link of `weight` to the page at `base`; returns its new base. `read` says whether it was ever read.
    ///
    /// Links beyond the announced sum of weights get what is left, at last nothing.
    #[must_use = "the account has to be replaced"]
    pub fn pay(&mut self, base: Base, read: bool, weight: Weight) -> Base {
        let amount = (self.unit * u64::from(weight.parts())).min(self.left);
        self.left -= amount;
        self.paid += amount;
        self.give(base, read, amount)
    }

    /// Pays like [`Payout::pay`] and adds `bonus` times as much out of the virtual page's own cash, as far as it goes.
    ///
    /// This is how a crawl is biased towards a topic, `news` or XML: the total stays the same.
    #[must_use = "the account has to be replaced"]
    pub fn pay_with_bonus(&mut self, base: Base, read: bool, weight: Weight, bonus: f64) -> Base {
        let base = self.pay(base, read, weight);
        let own = self.ledger.numbers.virtual_cash - self.left;
        let wanted = (self.unit as f64 * f64::from(weight.parts()) * bonus.max(0.0)) as u64;
        let amount = wanted.min(own);
        self.bonus += amount;
        self.give(base, read, amount)
    }

    /// The history of a page of which nothing before this visit is to count.
    #[must_use]
    pub fn begin_history(&self) -> Credit {
        Credit { history: 0.0, span: 0.0, clock: self.ledger.clock() }
    }

    /// Ends the visit: the flows are noted, and the virtual page hands out if it holds too much.
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
