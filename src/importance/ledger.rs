//! Adaptive OPIC as a ledger: few numbers for the whole web, two small values a page, every operation in O(1).
//!
//! The caller keeps a page's [`Account`] (the crawler in its store, the lab in vectors) and the ledger keeps what is
//! common to all: the virtual page, the clock, how much each group of pages was given. After **every** call
//!
//! ```text
//! cash of the virtual page + sum over accounts of their cash = Cash::WHOLE     (exactly)
//! ```
//!
//! as long as each account is replaced by what the ledger returned for it. [`Audit`](super::Audit) proves it.
//!
//! What the papers leave open, decided here:
//!
//! * **The virtual page** hands out everything it holds, in equal parts, whenever it holds more than a fixed share of
//!   all cash ([`Policy::virtual_share_max`], 1/64). That costs nothing (one offset), counts on the clock like a visit,
//!   and keeps new pages from waiting for cash.
//! * **Unread and read pages are two groups** with an offset each, so the virtual page can favour discovery or refresh.
//! * **Default history**: a page read for the first time has `cash` and no history. Its span is the mean time that cash
//!   has lain on unread pages: their cash divided by the cash that flows to them per turn of G (Little's law). The mean
//!   importance of pages read for the first time is then that of recently introduced pages, as the paper asks, while
//!   a page that got more than others starts with more.
//! * **Importance** is the rate of a page divided by the mean rate of all known pages. All cash handed on arrives
//!   somewhere, so the rates of all pages and of the virtual page add up to 1, and the mean is known in O(1); each
//!   audit corrects it to exactly 1.

use serde::{Deserialize, Serialize};

use super::cash::{Base, Cash};
use super::credit::Credit;
use super::weight::Weight;

/// Turns of G over which the flow to unread pages and to the virtual page is averaged.
const FLOW_WINDOW: f64 = 1.0;

/// How a ledger behaves; may differ from one run to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    /// Length of the window T in turns of G: longer is more precise, shorter follows changes faster.
    pub window: f64,
    /// What a visited page gives to the virtual page.
    pub small_edge: SmallEdge,
    /// The virtual page hands out its cash when it holds more than this.
    pub virtual_share_max: Cash,
    /// What an unread page receives from the virtual page, relative to `refresh`; 0 for nothing.
    pub discovery: u16,
    /// What a read page receives from the virtual page, relative to `discovery`; 0 for nothing.
    pub refresh: u16,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            window: 16.0,
            small_edge: SmallEdge::Link,
            virtual_share_max: Cash::from_units(Cash::WHOLE.units() / 64),
            discovery: 1,
            refresh: 1,
        }
    }
}

/// The link from every page to the virtual page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SmallEdge {
    /// Weighs as much as one ordinary link (the OPIC paper).
    Link,
    /// A fixed share of the page's cash: 0.15 gives PageRank with damping 0.85.
    Share(f64),
}

/// One page's (or site's) account.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Account {
    /// Its cash, relative to the offset of its group.
    pub base: Base,
    /// Its history; `None` until the page is read for the first time.
    pub credit: Option<Credit>,
}

/// What is common to all pages that were (or were not) read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Group {
    pages: u64,
    offset: i64,
}

/// The ledger's numbers: what has to be saved at a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Numbers {
    virtual_cash: u64,
    /// Units handed on since the start: the clock G is this divided by [`Cash::WHOLE`].
    moved: u128,
    unread: Group,
    read: Group,
    /// Units that lie on unread pages.
    unread_cash: u64,
    /// Share of the moved cash that goes to unread pages, and to the virtual page.
    unread_rate: f64,
    virtual_rate: f64,
    /// What the last audit multiplied the mean rate by.
    calibration: f64,
}

/// The common books of all pages. See the module's documentation.
#[derive(Clone, Debug)]
pub struct Ledger {
    numbers: Numbers,
    policy: Policy,
}

impl Ledger {
    /// An empty ledger: no page, all cash with the virtual page.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        let numbers = Numbers {
            virtual_cash: Cash::WHOLE.units(),
            moved: 0,
            unread: Group::default(),
            read: Group::default(),
            unread_cash: 0,
            unread_rate: 0.0,
            virtual_rate: 1.0,
            calibration: 1.0,
        };
        Self { numbers, policy }
    }

    /// A ledger that goes on where saved `numbers` stopped.
    #[must_use]
    pub fn resume(numbers: Numbers, policy: Policy) -> Self {
        Self { numbers, policy }
    }

    /// What to save.
    #[must_use]
    pub fn numbers(&self) -> Numbers {
        self.numbers
    }

    /// The policy in force.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The clock G: how often the whole web's cash has been handed on.
    #[must_use]
    pub fn clock(&self) -> f64 {
        self.numbers.moved as f64 / Cash::WHOLE.units() as f64
    }

    /// Known pages: accounts that are open.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.numbers.unread.pages + self.numbers.read.pages
    }

    /// Known pages that were never read.
    #[must_use]
    pub fn unread_pages(&self) -> u64 {
        self.numbers.unread.pages
    }

    /// What the virtual page holds.
    #[must_use]
    pub fn virtual_cash(&self) -> Cash {
        Cash::from_units(self.numbers.virtual_cash)
    }

    /// What all unread pages hold together.
    #[must_use]
    pub fn unread_cash(&self) -> Cash {
        Cash::from_units(self.numbers.unread_cash)
    }

    /// The cash on `account`.
    #[must_use]
    pub fn cash(&self, account: &Account) -> Cash {
        Cash::from_units(account.base.units(self.group(account.credit.is_some()).offset))
    }

    /// Opens the account of a page seen for the first time: unread, without cash.
    pub fn discover(&mut self) -> Account {
        self.numbers.unread.pages += 1;
        Account { base: Base::with(0, self.numbers.unread.offset), credit: None }
    }

    /// Books a visit: the cash of `account` goes into its history and is then paid out to its links.
    ///
    /// `weights` is the sum of the weights of all links that will be paid. `account` is updated at once (store it before
    /// paying, so that a link from the page to itself is paid on top). Whatever the [`Payout`] does not pay stays with
    /// the virtual page: all of it when the page has no links.
    pub fn visit(&mut self, account: &mut Account, weights: u64) -> Payout<'_> {
        let cash = self.cash(account);
        let read = account.credit.is_some();
        let before = self.clock();
        let age = self.unread_age();
        self.numbers.moved += u128::from(cash.units());
        let clock = self.clock();
        let credit = match account.credit {
            Some(credit) => credit.measured(cash.share(), clock, self.policy.window),
            None => Credit::first(cash.share(), age + (clock - before), clock),
        };
        if !read {
            self.leave_unread(cash.units());
            self.numbers.read.pages += 1;
        }
        *account = Account { base: Base::with(0, self.numbers.read.offset), credit: Some(credit) };
        self.numbers.virtual_cash += cash.units();
        let (unit, left) = self.split(cash.units(), weights);
        Payout { ledger: self, cash: cash.units(), unit, left, unread: 0, paid: 0, bonus: 0 }
    }

    /// Closes the account of a page that is gone for good, or that turned out to be another page's alias.
    ///
    /// Its cash goes back to the virtual page. The page is no longer counted; links to it must not be paid any more
    /// (what is not paid stays with the virtual page).
    pub fn close(&mut self, account: &Account) {
        let cash = self.cash(account).units();
        if account.credit.is_some() {
            self.numbers.read.pages = self.numbers.read.pages.saturating_sub(1);
        } else {
            self.leave_unread(cash);
        }
        self.numbers.virtual_cash += cash;
    }

    /// Makes `alias` and `target` one account (a redirect, a duplicate): `target` gets the cash and `alias` is closed.
    ///
    /// From now on links to the alias must be paid to the target.
    pub fn merge(&mut self, alias: &Account, target: &mut Account) {
        let cash = self.cash(alias).units();
        self.close(alias);
        self.numbers.virtual_cash -= cash;
        target.base = target.base.plus(cash);
        if target.credit.is_none() {
            self.numbers.unread_cash += cash;
        }
    }

    /// Hands out what the virtual page holds, in O(1), as the policy divides it between unread and read pages.
    ///
    /// Happens by itself after payouts; call it once when the first seeds are known. Does nothing when there is nobody
    /// to give to. The rest of the division stays with the virtual page.
    pub fn hand_out(&mut self) {
        let (discovery, refresh) = (u64::from(self.policy.discovery), u64::from(self.policy.refresh));
        let (unread, read) = (self.numbers.unread.pages, self.numbers.read.pages);
        let parts = discovery * unread + refresh * read;
        if parts == 0 {
            return;
        }
        let unit = self.numbers.virtual_cash / parts;
        let given = unit * parts;
        let to_unread = unit * discovery * unread;
        self.numbers.unread.offset = self.numbers.unread.offset.wrapping_add((unit * discovery) as i64);
        self.numbers.read.offset = self.numbers.read.offset.wrapping_add((unit * refresh) as i64);
        self.numbers.unread_cash += to_unread;
        self.numbers.virtual_cash -= given;
        self.numbers.moved += u128::from(given);
        self.observe(given, to_unread, 0);
    }

    /// Cash that comes in to the page per turn of G: the estimate of its importance before it is made relative.
    #[must_use]
    pub fn rate(&self, account: &Account) -> f64 {
        let cash = self.cash(account).share();
        match account.credit {
            Some(credit) => credit.rate(cash, self.clock()),
            None => cash / self.unread_age(),
        }
    }

    /// Importance of the page, mean 1 over all known pages: 10 is ten times the average page.
    #[must_use]
    pub fn importance(&self, account: &Account) -> f64 {
        let mean = self.mean_rate();
        if mean > 0.0 { self.rate(account) / mean } else { 1.0 }
    }

    /// The mean of [`Ledger::rate`] over all known pages, as of now.
    #[must_use]
    pub fn mean_rate(&self) -> f64 {
        let pages = self.pages();
        if pages == 0 { 0.0 } else { self.numbers.calibration * self.flow_to_pages() / pages as f64 }
    }

    /// Share of the moved cash that goes to pages, not to the virtual page; never 0, so that it can divide.
    pub(super) fn flow_to_pages(&self) -> f64 {
        (1.0 - self.numbers.virtual_rate).max(f64::MIN_POSITIVE)
    }

    pub(super) fn read_pages(&self) -> u64 {
        self.numbers.read.pages
    }

    pub(super) fn calibrate(&mut self, factor: f64) {
        self.numbers.calibration = factor;
    }

    /// Mean G-time that the cash of unread pages has been with them (Little's law), within the window.
    fn unread_age(&self) -> f64 {
        let cash = Cash::from_units(self.numbers.unread_cash).share();
        let shortest = 1.0 / Cash::WHOLE.units() as f64;
        if self.numbers.unread_rate > 0.0 {
            (cash / self.numbers.unread_rate).clamp(shortest, self.policy.window)
        } else {
            self.policy.window
        }
    }

    fn group(&self, read: bool) -> &Group {
        if read { &self.numbers.read } else { &self.numbers.unread }
    }

    /// A page with `units` of cash leaves the unread pages, and with it its part of the flow to them.
    fn leave_unread(&mut self, units: u64) {
        let all = self.numbers.unread_cash;
        if all > 0 {
            self.numbers.unread_rate *= 1.0 - units as f64 / all as f64;
        }
        self.numbers.unread_cash = all - units.min(all);
        self.numbers.unread.pages = self.numbers.unread.pages.saturating_sub(1);
    }

    /// Divides `cash` by the weights of the links and of the small edge: cash a unit of weight, and all for the links.
    fn split(&self, cash: u64, weights: u64) -> (u64, u64) {
        if weights == 0 {
            return (0, 0);
        }
        match self.policy.small_edge {
            SmallEdge::Link => {
                let unit = cash / (weights + u64::from(Weight::LINK.parts()));
                (unit, unit * weights)
            }
            SmallEdge::Share(share) => {
                let unit = ((1.0 - share.clamp(0.0, 1.0)) * cash as f64) as u64 / weights;
                (unit, (unit * weights).min(cash))
            }
        }
    }

    /// Averages the flows over a movement of `moved` units, of which some went to unread pages and the virtual page.
    fn observe(&mut self, moved: u64, to_unread: u64, to_virtual: u64) {
        let (moved, to_unread, to_virtual) = (
            Cash::from_units(moved).share(),
            Cash::from_units(to_unread).share(),
            Cash::from_units(to_virtual).share(),
        );
        // The cash everybody starts with counts as one turn of G before the clock's 0: the paper's (H + C) / (G + 1).
        let time = (self.clock() + 1.0).min(FLOW_WINDOW + moved);
        self.numbers.unread_rate += (to_unread - self.numbers.unread_rate * moved) / time;
        self.numbers.virtual_rate += (to_virtual - self.numbers.virtual_rate * moved) / time;
    }
}

/// The payment of one visited page's cash to its links.
///
/// All the cash is with the virtual page from the start and every payment takes from there, so the books balance at any
/// moment. Call [`Payout::finish`] when all links are paid.
#[derive(Debug)]
#[must_use = "the links have to be paid"]
pub struct Payout<'a> {
    ledger: &'a mut Ledger,
    cash: u64,
    unit: u64,
    left: u64,
    unread: u64,
    paid: u64,
    bonus: u64,
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

    /// Ends the visit: the flows are noted, and the virtual page hands out if it holds too much.
    pub fn finish(self) {
        let Self { ledger, cash, unread, paid, bonus, .. } = self;
        ledger.numbers.moved += u128::from(bonus);
        ledger.observe(cash + bonus, unread, cash - paid);
        if ledger.numbers.virtual_cash > ledger.policy.virtual_share_max.units() {
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

#[cfg(test)]
mod tests;
