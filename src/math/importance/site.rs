//! Importance of sites while crawling: OPIC on the site graph, where only links between sites count.
//!
//! Links inside a site are controlled by its owner, and link farms win by them; here they are worth nothing (`W_aa =
//! 0`). A second [`Ledger`] has the sites as accounts. A visit of a page is a visit of its site: the cash of the site
//! goes to the sites that the page links to. Greedy crawling visits pages in proportion to their importance, so the
//! weights of the site graph become `W_ab ~ sum over pages i of a: x_i * links(i -> b) / links(i)`, although the graph
//! is never stored.

use super::ledger::{CashAccount, Ledger, Payout};

/// The stored account of a site.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SiteAccount {
    /// Cash and history of the site.
    pub account: CashAccount,
    /// Whether any page of the site has linked to another site.
    pub linking: bool,
}

impl SiteAccount {
    /// Opens the account of a new site.
    pub fn discover(sites: &mut Ledger) -> Self {
        Self { account: sites.discover(), linking: false }
    }

    /// Books a visit of a page of this site, where `outside` is the total weight of its links to other sites.
    ///
    /// Returns the payout for these links. A page without links to other sites says nothing about the site graph, so
    /// there is nothing to pay. Only a site that never linked to another gives its cash to the virtual page, like a
    /// page without links.
    pub fn visit<'a>(&mut self, sites: &'a mut Ledger, outside: u64) -> Option<Payout<'a>> {
        if outside > 0 {
            self.linking = true;
            return Some(sites.visit(&mut self.account, outside));
        }
        if !self.linking {
            sites.visit(&mut self.account, 0).finish();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::ledger::Policy;
    use super::super::weight::Weight;
    use super::*;

    /// Sites 0 and 1 link to 2, which links to 0; site 3 is a farm of pages that link to each other.
    #[test]
    fn links_inside_a_site_are_worth_nothing() {
        let mut ledger = Ledger::new(Policy { window: 64.0, ..Policy::default() });
        let mut sites: Vec<SiteAccount> = (0..4).map(|_| SiteAccount::discover(&mut ledger)).collect();
        ledger.hand_out();
        for round in 0..400 {
            for (site, target) in [(0, Some(2)), (1, Some(2)), (2, Some(0)), (3, None)] {
                // Every other page of the linking sites has internal links only.
                let target = if round % 2 == 0 { target } else { None };
                let mut visited = sites[site];
                let outside = if target.is_some() { u64::from(Weight::LINK.parts()) } else { 0 };
                let payout = visited.visit(&mut ledger, outside);
                sites[site] = visited;
                if let (Some(mut payout), Some(target)) = (payout, target) {
                    let paid = sites[target].account;
                    sites[target].account.base = payout.pay(paid.base, paid.credit.is_some(), Weight::LINK);
                    payout.finish();
                }
            }
        }
        // By hand: each page keeps half for the virtual page v, and the farm gives it everything. With t = v / 4 for
        // each site, x1 = x3 = t, x0 = t + x2 / 2, x2 = t + (x0 + x1) / 2, so x2 = 8/3 t and x0 = 7/3 t; the mean is
        // 7/4 t.
        let importance: Vec<f64> = sites.iter().map(|site| ledger.importance(&site.account)).collect();
        for (found, expected) in importance.iter().zip([4.0 / 3.0, 4.0 / 7.0, 32.0 / 21.0, 4.0 / 7.0]) {
            assert!((found / expected - 1.0).abs() < 0.06, "{importance:?}");
        }
    }
}
