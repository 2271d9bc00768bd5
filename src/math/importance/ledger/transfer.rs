//! Transfers of cash between ledgers that share the web, each with its own pages.
//!
//! A page of another ledger has an account here too, which collects the payments for links to it. What it received
//! beyond its endowment is sent on from time to time in round numbers. The endowment stays, and less than a hundredth
//! of the rest until more has come, so the account looks like that of an unread page that has received next to nothing.
//! The totals of both ledgers change by the amount handed over, so that all totals plus the cash in transit always add
//! up to the same sum.

use super::super::cash::{Base, Cash};
use super::{ENDOWMENT, Ledger};

/// Significant digits of an amount that is sent; the others are zero. The digits of cash are random, so each further
/// digit would add 3 % to the bytes sent.
const DIGITS_SENT: u32 = 3;

impl Ledger {
    /// Takes what an unread page has received out of this ledger; returns its new base and the units.
    #[must_use = "the account has to be replaced, and the cash sent"]
    pub fn send(&mut self, base: Base) -> (Base, u64) {
        let offset = self.numbers.unread.offset;
        let units = base.units(offset);
        let sent = rounded(units.saturating_sub(ENDOWMENT));
        let all = self.numbers.unread_cash;
        if all > 0 {
            // The flow to the page continues elsewhere; it no longer goes to unread pages here.
            self.numbers.unread_rate *= 1.0 - sent as f64 / all as f64;
        }
        self.numbers.unread_cash = all - sent;
        self.numbers.total -= sent;
        (Base::with(units - sent, offset), sent)
    }

    /// Whether this many units may come in: all ledgers together have at most [`Cash::WHOLE`].
    #[must_use]
    pub fn may_receive(&self, units: u64) -> bool {
        units <= Cash::WHOLE.units() - self.numbers.total
    }

    /// Pays units from another ledger to a page, after a check by [`Ledger::may_receive`]; returns the new base.
    #[must_use = "the account has to be replaced"]
    pub fn receive(&mut self, base: Base, is_read: bool, units: u64) -> Base {
        self.numbers.total += units;
        if !is_read {
            self.numbers.unread_cash += units;
            self.observe(0, units, 0);
        }
        base.plus(units)
    }

    /// The same for a page without an account: the virtual page gets the units.
    pub fn receive_for_nobody(&mut self, units: u64) {
        self.numbers.total += units;
        self.numbers.virtual_cash += units;
    }
}

/// Rounds an amount down to [`DIGITS_SENT`] digits.
fn rounded(units: u64) -> u64 {
    let zeros = units.checked_ilog10().unwrap_or(0).saturating_sub(DIGITS_SENT - 1);
    units - units % 10u64.pow(zeros)
}

#[cfg(test)]
mod tests {
    use super::super::super::audit::CashAudit;
    use super::super::super::weight::Weight;
    use super::super::{CashAccount, Policy};
    use super::*;

    fn audit(ledger: &mut Ledger, accounts: &[CashAccount]) {
        let mut audit = CashAudit::default();
        for account in accounts {
            audit.add(ledger, account);
        }
        audit.finish(ledger).unwrap();
    }

    #[test]
    fn amounts_are_sent_in_round_numbers() {
        for (units, sent) in
            [(0, 0), (7, 7), (999, 999), (1009, 1000), (u64::MAX, 18_400_000_000_000_000_000)]
        {
            assert_eq!(rounded(units), sent);
        }
    }

    #[test]
    fn what_one_ledger_sends_another_receives() {
        let half = Cash::from_units(Cash::WHOLE.units() / 2);
        let mut ledgers = [(); 2].map(|()| Ledger::with_total(Policy::default(), half));
        let [from, to] = &mut ledgers;
        let (mut pages, mut abroad) = (Vec::new(), from.discover());
        let (mut own, mut read) = (to.discover(), to.discover());
        to.visit(&mut read, 0).finish();
        for _ in 0..10 {
            let mut page = from.discover();
            let mut payout = from.visit(&mut page, u64::from(Weight::LINK.parts()));
            abroad.base = payout.pay(abroad.base, false, Weight::LINK);
            payout.finish();
            let sent;
            (abroad.base, sent) = from.send(abroad.base);
            let left = from.cash(&abroad).units() - ENDOWMENT;
            assert!(sent > 0 && left < sent / 100, "{sent} {left}");
            assert!(to.may_receive(sent));
            own.base = to.receive(own.base, false, sent / 2);
            read.base = to.receive(read.base, true, sent - sent / 2 - 1);
            to.receive_for_nobody(1);
            pages.push(page);
            audit(from, &[pages.as_slice(), &[abroad]].concat());
            audit(to, &[own, read]);
            assert_eq!(from.total().units() + to.total().units(), Cash::WHOLE.units());
        }
        let room = Cash::WHOLE.units() - to.total().units();
        assert!(to.may_receive(room) && !to.may_receive(room + 1) && !to.may_receive(u64::MAX));
    }
}
