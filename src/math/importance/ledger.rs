//! Adaptive OPIC as a ledger: a few global numbers, two small values per page, every operation in O(1).
//!
//! The caller keeps the [`CashAccount`] of each page (the crawler in its store, the lab in vectors). The ledger keeps what
//! all pages share: the virtual page, the clock, and the amount given to each group of pages. After **every** call
//!
//! ```text
//! reserve + cash of the virtual page + sum over accounts of their cash = total     (exactly)
//! ```
//!
//! provided that each account is replaced by what the ledger returned for it. [`CashAudit`](super::CashAudit) proves it. The
//! total is always [`Cash::WHOLE`], unless the ledger is one of several that pass cash to each other (`transfer`).
//!
//! Decisions where the papers leave the details open:
//!
//! * **Start.** In the paper every page has 1/n of the cash at the start, but a crawl does not know n. Each page gets
//!   an equal [`ENDOWMENT`] from a reserve when it is discovered. So at any time the known pages stand as if the
//!   algorithm had started with exactly them, and the first pages of a crawl are no richer than the last. Cash that has
//!   left the reserve is *circulating*; the clock G and all shares refer to it. With all cash on the seeds instead, one
//!   pass over a web of 20,000 pages ended with an L1 error of 1.05 instead of 0.64, and four passes with 0.65 instead
//!   of 0.30.
//! * **The virtual page** hands out all its cash in equal parts whenever it holds more than a fixed share of all cash
//!   ([`Policy::virtual_share_max`], 1/64). That is cheap (one offset), advances the clock like a visit, and keeps new
//!   pages from waiting for cash.
//! * **Unread and read pages are two groups** with separate offsets, so the virtual page can favour discovery or
//!   refresh. By default it gives to read pages only. An unread page then holds its endowment and what other pages gave
//!   it for links, and most cash first is the best crawl order (`order::Fractional`). With a share for all, pages that
//!   have waited long would come before better ones. Estimates of unread pages include what the virtual page would have
//!   paid.
//! * **Default history**: what an unread page received beyond its endowment is assumed to have come in over the mean
//!   time that such cash has lain on unread pages (Little's law: the amount there divided by the flow per turn of G).
//!   Until the first pass is over ([`Ledger::settle`]), the time is at least that of a first pass. So a new page has
//!   the importance of recently introduced pages, as the paper demands, while one that got more than others starts
//!   higher. Within a first pass, where every neighbour has linked at most once, pages are compared by what they
//!   received and not by when they were found.
//! * **A seed** is endowed like ten pages ([`SEED_ENDOWMENT`]): somebody recommends it. So the pages around the seeds come
//!   first, as in fractional PageRank.
//! * **Importance** is the rate of a page divided by the mean rate of all known pages. All cash handed on arrives
//!   somewhere, so the rates of all pages and of the virtual page add up to 1, and the mean is known in O(1). Each
//!   audit corrects it to exactly 1.

use serde::{Deserialize, Serialize};

use super::cash::{Base, Cash};
use super::interpolation::Credit;
use super::weight::Weight;

mod estimates;
mod payout;
mod transfer;

pub use payout::Payout;

/// Units that a page is given when it is discovered. 2^32 pages, as many as there are ids, exhaust the reserve.
pub const ENDOWMENT: u64 = 1 << 28;

/// Minimum G-time that cash is assumed to have lain on a page.
const AGE_MIN: f64 = 1e-9;

/// Units that a seed is given. On twelve graphs, fetched from 10 and from 100 seeds, 5 and 20 endowments are as good as
/// these 10; 1 and 100 gather less importance early.
pub const SEED_ENDOWMENT: u64 = 10 * ENDOWMENT;

/// Maximum number of turns of G for a first pass over the known pages: greedy passes pay about two endowments per page.
const FIRST_PASS: f64 = 4.0;

/// Number of turns of G over which the flows to unread pages and to the virtual page are averaged.
const FLOW_WINDOW: f64 = 1.0;

/// The behaviour of a ledger; it may change from run to run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    /// Length of the window T in turns of G. Longer is more precise, shorter follows changes faster.
    pub window: f64,
    /// What a visited page gives to the virtual page.
    pub small_edge: SmallEdge,
    /// Maximum share of the circulating cash on the virtual page before it hands out its cash.
    pub virtual_share_max: f64,
    /// Weight of an unread page when the virtual page hands out cash, relative to `refresh`; 0 for nothing.
    pub discovery: u16,
    /// Weight of a read page when the virtual page hands out cash, relative to `discovery`; 0 for nothing.
    pub refresh: u16,
}

impl Policy {
    /// The default, with PageRank's damping: the probability of following a link.
    #[must_use]
    pub fn damped(damping: f64) -> Self {
        Self { small_edge: SmallEdge::Share(1.0 - damping), ..Self::default() }
    }

    /// The default, except that the virtual page treats all pages alike, as in the paper.
    #[must_use]
    pub fn neutral() -> Self {
        Self { discovery: 1, ..Self::default() }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            window: 16.0,
            small_edge: SmallEdge::Link,
            virtual_share_max: 1.0 / 64.0,
            discovery: 0,
            refresh: 1,
        }
    }
}

/// The link from every page to the virtual page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SmallEdge {
    /// As heavy as an ordinary link (the OPIC paper).
    Link,
    /// A fixed share of the page's cash: 0.15 gives PageRank with damping 0.85.
    Share(f64),
}

/// The account of a page or a site.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CashAccount {
    /// Its cash minus the offset of its group.
    pub base: Base,
    /// Its history; `None` until the page is first read.
    pub credit: Option<Credit>,
}

/// The state of a ledger when a measurement begins.
#[derive(Clone, Copy, Debug)]
pub struct LedgerMark {
    clock: f64,
    /// What the virtual page had given to each read page.
    offset: i64,
}

/// Data shared by all read pages, or by all unread ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct AccountGroup {
    pages: u64,
    offset: i64,
}

/// The numbers of a ledger, to be saved at a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LedgerNumbers {
    /// Units of all cash in this ledger.
    #[serde(default = "whole")]
    total: u64,
    /// Units not yet given to any page.
    reserve: u64,
    virtual_cash: u64,
    /// The clock G.
    clock: f64,
    unread: AccountGroup,
    read: AccountGroup,
    /// Units on unread pages.
    unread_cash: u64,
    /// Shares of the moved cash that go to unread pages and to the virtual page.
    unread_rate: f64,
    virtual_rate: f64,
    /// Factor that the last audit applied to the mean rate.
    calibration: f64,
    /// Whether cash has circulated long enough for its flows to represent all known pages.
    #[serde(default)]
    is_settled: bool,
    /// Value of the clock when the ledger was last settled.
    #[serde(default)]
    settled_at: f64,
}

fn whole() -> u64 {
    Cash::WHOLE.units()
}

/// The data that all pages share. See the module documentation.
#[derive(Clone, Debug)]
pub struct Ledger {
    numbers: LedgerNumbers,
    policy: Policy,
}

impl Ledger {
    /// Creates an empty ledger: no pages, all cash in the reserve.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self::with_total(policy, Cash::WHOLE)
    }

    /// Creates an empty ledger with part of the cash; other ledgers have the rest.
    #[must_use]
    pub fn with_total(policy: Policy, total: Cash) -> Self {
        let numbers = LedgerNumbers {
            total: total.units(),
            reserve: total.units(),
            virtual_cash: 0,
            clock: 0.0,
            unread: AccountGroup::default(),
            read: AccountGroup::default(),
            unread_cash: 0,
            unread_rate: 0.0,
            virtual_rate: 0.0,
            calibration: 1.0,
            is_settled: false,
            settled_at: 0.0,
        };
        Self { numbers, policy }
    }

    /// Continues from saved `numbers`.
    #[must_use]
    pub fn resume(numbers: LedgerNumbers, policy: Policy) -> Self {
        Self { numbers, policy }
    }

    /// Returns the numbers to save.
    #[must_use]
    pub fn numbers(&self) -> LedgerNumbers {
        self.numbers
    }

    /// Returns the policy in force.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The clock G: how often the circulating cash has been handed on.
    #[must_use]
    pub fn clock(&self) -> f64 {
        self.numbers.clock
    }

    /// Cash not yet given to any page.
    #[must_use]
    pub fn reserve(&self) -> Cash {
        Cash::from_units(self.numbers.reserve)
    }

    /// All cash in this ledger.
    #[must_use]
    pub fn total(&self) -> Cash {
        Cash::from_units(self.numbers.total)
    }

    fn circulating(&self) -> u64 {
        self.numbers.total - self.numbers.reserve
    }

    /// Returns `units` as a share of the circulating cash.
    fn share(&self, units: u64) -> f64 {
        let circulating = self.circulating();
        if circulating == 0 { 0.0 } else { units as f64 / circulating as f64 }
    }

    /// Number of known pages, which are the open accounts.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.numbers.unread.pages + self.numbers.read.pages
    }

    /// Number of pages that were read.
    #[must_use]
    pub fn read_pages(&self) -> u64 {
        self.numbers.read.pages
    }

    /// Number of known pages that were never read.
    pub(crate) fn unread_pages(&self) -> u64 {
        self.numbers.unread.pages
    }

    /// Cash of the virtual page.
    #[must_use]
    pub fn virtual_cash(&self) -> Cash {
        Cash::from_units(self.numbers.virtual_cash)
    }

    /// Cash of all unread pages.
    #[must_use]
    pub fn unread_cash(&self) -> Cash {
        Cash::from_units(self.numbers.unread_cash)
    }

    /// Cash of an account.
    #[must_use]
    pub fn cash(&self, account: &CashAccount) -> Cash {
        Cash::from_units(account.base.units(self.group(account.credit.is_some()).offset))
    }

    /// Opens the account of a newly discovered page: unread, with the endowment.
    pub fn discover(&mut self) -> CashAccount {
        self.open(ENDOWMENT)
    }

    /// Opens the account of a seed, with [`SEED_ENDOWMENT`].
    pub fn discover_seed(&mut self) -> CashAccount {
        self.open(SEED_ENDOWMENT)
    }

    fn open(&mut self, endowment: u64) -> CashAccount {
        let endowment = endowment.min(self.numbers.reserve);
        self.numbers.reserve -= endowment;
        self.numbers.unread.pages += 1;
        self.numbers.unread_cash += endowment;
        CashAccount { base: Base::with(endowment, self.numbers.unread.offset), credit: None }
    }

    /// Books a visit: the cash of `account` goes into its history and is then paid out to its links.
    ///
    /// `weights` is the sum of the weights of all links to be paid. `account` is updated at once; store it before
    /// paying, so that a link from the page to itself is added on top. Whatever the [`Payout`] does not pay stays with
    /// the virtual page, which is everything if the page has no links.
    pub fn visit(&mut self, account: &mut CashAccount, weights: u64) -> Payout<'_> {
        let cash = self.cash(account);
        let read = account.credit.is_some();
        let age = self.unread_age();
        let moved = self.share(cash.units());
        self.numbers.clock += moved;
        let clock = self.numbers.clock;
        let credit = match account.credit {
            Some(credit) => credit.measured(in_endowments(cash.units()), clock, self.policy.window),
            None => Credit::first(received(cash.units()), age + moved, clock),
        };
        if !read {
            self.leave_unread(cash.units());
            self.numbers.read.pages += 1;
        }
        *account = CashAccount { base: Base::with(0, self.numbers.read.offset), credit: Some(credit) };
        self.numbers.virtual_cash += cash.units();
        let (unit, left) = self.split(cash.units(), weights);
        Payout { ledger: self, cash: cash.units(), unit, left, unread: 0, paid: 0, bonus: 0 }
    }

    /// Closes the account of a page that is gone for good or turned out to be an alias.
    ///
    /// Its endowment returns to the reserve and the rest of its cash goes to the virtual page. The page no longer
    /// counts, and links to it must not be paid any more (their share stays with the virtual page).
    pub fn close(&mut self, account: &CashAccount) {
        let cash = self.cash(account).units();
        if account.credit.is_some() {
            self.numbers.read.pages = self.numbers.read.pages.saturating_sub(1);
        } else {
            self.leave_unread(cash);
        }
        let endowment = ENDOWMENT.min(cash);
        self.numbers.virtual_cash += cash - endowment;
        self.numbers.reserve += endowment;
    }

    /// Merges the account of `alias` (a redirect or a duplicate) into `target`, and closes `alias`.
    ///
    /// From now on links to the alias must be paid to the target.
    pub fn merge(&mut self, alias: &CashAccount, target: &mut CashAccount) {
        let cash = self.cash(alias).units();
        self.close(alias);
        // The alias was not a separate page, so its endowment is no evidence for the target.
        let cash = cash - ENDOWMENT.min(cash);
        self.numbers.virtual_cash -= cash;
        target.base = target.base.plus(cash);
        if target.credit.is_none() {
            self.numbers.unread_cash += cash;
        }
    }

    /// Marks the beginning of a measurement that ends with [`Self::settle`].
    #[must_use]
    pub fn mark(&self) -> LedgerMark {
        LedgerMark { clock: self.numbers.clock, offset: self.numbers.read.offset }
    }

    /// Turns of G since a mark.
    #[must_use]
    pub fn turns_since(&self, mark: LedgerMark) -> f64 {
        self.numbers.clock - mark.clock
    }

    /// Marks the first pass as over: cash has circulated enough to know its flows. Since `begun` the virtual page gave
    /// what it gave, and unread pages received `to_unread` units.
    pub fn settle(&mut self, begun: LedgerMark, to_unread: u64) {
        let turns = self.turns_since(begun);
        if turns > 0.0 {
            let to_each = self.numbers.read.offset.wrapping_sub(begun.offset).max(0) as u64;
            self.numbers.unread_rate = self.share(to_unread) / turns;
            self.numbers.virtual_rate = self.share(to_each.saturating_mul(self.numbers.read.pages)) / turns;
        }
        self.numbers.is_settled = true;
        self.numbers.settled_at = self.numbers.clock;
    }

    /// Turns of G since [`Self::settle`] was last called; infinite if it never was.
    #[must_use]
    pub fn moved_since_settled(&self) -> f64 {
        if self.numbers.is_settled { self.numbers.clock - self.numbers.settled_at } else { f64::INFINITY }
    }

    /// Returns a share of what an unread page has received to the virtual page, as a page without links would; returns the
    /// new base.
    ///
    /// The page may never be fetched. If all unread pages are treated alike, their order stays.
    #[must_use = "the account has to be replaced"]
    pub fn call_in(&mut self, base: Base, share: f64) -> Base {
        let units = base.units(self.numbers.unread.offset);
        let received = units.saturating_sub(ENDOWMENT);
        let taken = ((received as f64 * share.clamp(0.0, 1.0)) as u64).min(received);
        self.numbers.unread_cash -= taken;
        self.numbers.virtual_cash += taken;
        self.numbers.clock += self.share(taken);
        self.observe(taken, 0, taken);
        Base::with(units - taken, self.numbers.unread.offset)
    }

    /// Hands out the cash of the virtual page in O(1), divided between unread and read pages by the policy.
    ///
    /// Happens automatically after payouts. Does nothing without receivers. The remainder of the division stays with
    /// the virtual page.
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
        self.numbers.clock += self.share(given);
        self.observe(given, to_unread, 0);
    }

    /// Returns what the stored bases of all accounts must add up to; wraps around as they do.
    pub(super) fn sum_of_bases(&self) -> i64 {
        let LedgerNumbers { total, reserve, virtual_cash, unread, read, .. } = self.numbers;
        let held = (total - reserve - virtual_cash) as i64;
        let given = |group: AccountGroup| (group.pages as i64).wrapping_mul(group.offset);
        held.wrapping_sub(given(unread)).wrapping_sub(given(read))
    }

    fn group(&self, read: bool) -> &AccountGroup {
        if read { &self.numbers.read } else { &self.numbers.unread }
    }

    /// Removes a page with `units` of cash from the unread pages, together with its part of the flow to them.
    fn leave_unread(&mut self, units: u64) {
        let all = self.numbers.unread_cash;
        if all > 0 {
            self.numbers.unread_rate *= 1.0 - units as f64 / all as f64;
        }
        self.numbers.unread_cash = all - units.min(all);
        self.numbers.unread.pages = self.numbers.unread.pages.saturating_sub(1);
    }

    /// Divides `cash` by the weights of the links and the small edge; returns the cash per unit of weight and the total
    /// for the links.
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

    /// Updates the average flows after `moved` units were moved, some of them to unread pages and the virtual page.
    fn observe(&mut self, moved: u64, to_unread: u64, to_virtual: u64) {
        let (moved, to_unread, to_virtual) =
            (self.share(moved), self.share(to_unread), self.share(to_virtual));
        // The cash at the start counts as one turn of G before clock 0: the paper's (H + C) / (G + 1).
        let time = (self.clock() + 1.0).min(FLOW_WINDOW + moved);
        self.numbers.unread_rate += (to_unread - self.numbers.unread_rate * moved) / time;
        self.numbers.virtual_rate += (to_virtual - self.numbers.virtual_rate * moved) / time;
    }
}

/// The part of an unread page's cash that other pages gave it, in endowments.
fn received(units: u64) -> f64 {
    in_endowments(units.saturating_sub(ENDOWMENT))
}

/// Converts units of cash to endowments.
fn in_endowments(units: u64) -> f64 {
    units as f64 / ENDOWMENT as f64
}

#[cfg(test)]
mod tests;
