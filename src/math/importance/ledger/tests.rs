use proptest::prelude::*;

use super::super::audit::{CashAudit, Imbalance};
use super::*;

/// A small web: open accounts, the links of each page, and the ledger over them.
struct AccountWeb {
    ledger: Ledger,
    accounts: Vec<Option<CashAccount>>,
    links: Vec<Vec<usize>>,
}

impl AccountWeb {
    fn new(links: Vec<Vec<usize>>, policy: Policy) -> Self {
        let mut ledger = Ledger::new(policy);
        let accounts = links.iter().map(|_| Some(ledger.discover())).collect();
        ledger.hand_out();
        Self { ledger, accounts, links }
    }

    fn visit(&mut self, page: usize, bonus: f64) {
        let Some(mut account) = self.accounts[page] else { return };
        let targets: Vec<usize> =
            self.links[page].iter().copied().filter(|&target| self.accounts[target].is_some()).collect();
        let weights = targets.len() as u64 * u64::from(Weight::LINK.parts());
        let mut payout = self.ledger.visit(&mut account, weights);
        self.accounts[page] = Some(account);
        for target in targets {
            if let Some(paid) = self.accounts[target].as_mut() {
                paid.base = payout.pay_with_bonus(paid.base, paid.credit.is_some(), Weight::LINK, bonus);
            }
        }
        payout.finish();
    }

    fn audit(&mut self) -> Result<(), Imbalance> {
        let mut audit = CashAudit::default();
        for account in self.accounts.iter().flatten() {
            audit.add(&self.ledger, account);
        }
        audit.finish(&mut self.ledger)
    }

    fn importance(&self) -> Vec<f64> {
        self.accounts.iter().flatten().map(|account| self.ledger.importance(account)).collect()
    }

    fn richest(&self) -> usize {
        let cash = |page: &usize| self.accounts[*page].map(|account| self.ledger.cash(&account));
        (0..self.accounts.len()).max_by_key(cash).unwrap()
    }
}

/// The fixed point of x = x L by iteration; the virtual page comes last, and importance has mean 1 over the pages.
fn exact(links: &[Vec<usize>]) -> Vec<f64> {
    let pages = links.len();
    let mut x = vec![1.0 / (pages + 1) as f64; pages + 1];
    for _ in 0..20_000 {
        let mut next = vec![x[pages] / pages as f64; pages + 1];
        next[pages] = 0.0;
        for (page, targets) in links.iter().enumerate() {
            let share = x[page] / (targets.len() + 1) as f64;
            next[pages] += share;
            targets.iter().for_each(|&target| next[target] += share);
        }
        // Half a step, because the graph may be periodic.
        x.iter_mut().zip(&next).for_each(|(old, new)| *old = 0.5 * (*old + new));
    }
    let mean = x[..pages].iter().sum::<f64>() / pages as f64;
    x[..pages].iter().map(|rate| rate / mean).collect()
}

/// A web with a hub, an authority, a cycle, a self-link and a page without links.
fn small_web() -> Vec<Vec<usize>> {
    vec![vec![1, 2, 3, 4, 5], vec![0, 2], vec![3], vec![4], vec![2, 4], vec![], vec![0, 5, 1], vec![5]]
}

fn mean_error(found: &[f64], expected: &[f64]) -> f64 {
    found.iter().zip(expected).map(|(a, b)| (a - b).abs()).sum::<f64>() / expected.len() as f64
}

#[test]
fn importance_converges_to_the_eigenvector_in_any_fair_order() {
    let links = small_web();
    let expected = exact(&links);
    let policy = Policy { window: 400.0, ..Policy::neutral() };
    let mut cycle = AccountWeb::new(links.clone(), policy);
    let mut greedy = AccountWeb::new(links, policy);
    for visit in 0..8_000 {
        cycle.visit(visit % 8, 0.0);
        greedy.visit(greedy.richest(), 0.0);
    }
    for mut web in [cycle, greedy] {
        web.audit().unwrap();
        let found = web.importance();
        assert!(mean_error(&found, &expected) < 0.01, "{found:?} instead of {expected:?}");
    }
}

#[test]
fn a_page_rank_share_gives_page_rank() {
    // Two pages that link to each other, and one that links to both: by hand, d = 0.85, no dangling pages.
    // p2 = t, p0 = p1 = t + 0.85 p0 + 0.425 t, so p0 = 1.425 t / 0.15 = 9.5 t; the mean is 20 t / 3.
    let policy = Policy { small_edge: SmallEdge::Share(0.15), window: 400.0, ..Policy::default() };
    let mut web = AccountWeb::new(vec![vec![1], vec![0], vec![0, 1]], policy);
    for visit in 0..6_000 {
        web.visit(visit % 3, 0.0);
    }
    web.audit().unwrap();
    for (found, expected) in web.importance().iter().zip([1.425, 1.425, 0.15]) {
        assert!((found - expected).abs() < 0.01, "{found} instead of {expected}");
    }
}

#[test]
fn twenty_recrawls_of_an_unchanged_web_leave_the_ranks() {
    let links = small_web();
    let mut web = AccountWeb::new(links, Policy::default());
    let ranks = |web: &AccountWeb| {
        let importance = web.importance();
        let mut order: Vec<usize> = (0..importance.len()).collect();
        order.sort_by(|&a, &b| importance[b].total_cmp(&importance[a]));
        order
    };
    for visit in 0..80 * 8 {
        web.visit(visit % 8, 0.0);
    }
    let (before, level) = (ranks(&web), web.importance()[4]);
    for visit in 0..20 * 8 {
        web.visit(visit % 8, 0.0);
        web.audit().unwrap();
        assert_eq!(ranks(&web), before);
    }
    assert!((web.importance()[4] / level - 1.0).abs() < 0.02);
}

#[test]
fn a_removed_page_fades_and_its_cash_stays_in_the_web() {
    let mut web = AccountWeb::new(small_web(), Policy { window: 8.0, ..Policy::default() });
    for visit in 0..400 {
        web.visit(visit % 8, 0.0);
    }
    let before = web.importance()[2];
    let gone = web.accounts[4].take().unwrap();
    web.ledger.close(&gone);
    web.audit().unwrap();
    let mut links = small_web();
    links[3] = vec![];
    links[0] = vec![1, 2, 3, 5];
    links[4] = vec![];
    links.remove(4);
    let renumbered: Vec<Vec<usize>> = links
        .iter()
        .map(|targets| targets.iter().map(|&target| if target > 4 { target - 1 } else { target }).collect())
        .collect();
    for visit in 0..400 {
        web.visit(visit % 8, 0.0);
    }
    web.audit().unwrap();
    let found = web.importance();
    assert!(mean_error(&found, &exact(&renumbered)) < 0.05, "{found:?}");
    assert!(found[2] < 0.9 * before);
}

#[test]
fn a_redirect_and_its_target_are_one_account() {
    // Pages 0 and 3 are the same; 1 and 2 link to one of them each.
    let policy = Policy { window: 100.0, ..Policy::default() };
    let mut web = AccountWeb::new(vec![vec![1, 2], vec![0], vec![3], vec![]], policy);
    web.visit(2, 0.0);
    let alias = web.accounts[3].take().unwrap();
    let mut target = web.accounts[0].unwrap();
    let both = web.ledger.cash(&alias).units() + web.ledger.cash(&target).units();
    web.ledger.merge(&alias, &mut target);
    web.accounts[0] = Some(target);
    assert_eq!(web.ledger.cash(&target).units(), both - ENDOWMENT, "an alias has no endowment of its own");
    web.audit().unwrap();
    web.links[2] = vec![0];
    for visit in 0..600 {
        web.visit(visit % 3, 0.0);
    }
    web.audit().unwrap();
    assert!(mean_error(&web.importance(), &exact(&[vec![1, 2], vec![0], vec![0]])) < 0.02);
}

#[test]
fn discovery_and_refresh_are_balanced_by_cash() {
    let fresh = |discovery, refresh| {
        let policy = Policy { discovery, refresh, ..Policy::default() };
        let mut ledger = Ledger::new(policy);
        let mut read = ledger.discover();
        let unread = ledger.discover();
        ledger.visit(&mut read, 0).finish();
        (ledger.cash(&read).units(), ledger.cash(&unread).units() - ENDOWMENT)
    };
    let (read, unread) = fresh(1, 1);
    assert!(read > 0 && read == unread);
    let (read, unread) = fresh(9, 1);
    assert_eq!(unread, read * 9);
    assert_eq!(fresh(1, 0).0, 0);
    assert_eq!(fresh(0, 1).1, 0);
}

#[test]
fn a_bonus_is_paid_by_the_virtual_page() {
    let policy = Policy { virtual_share_max: 1.0, ..Policy::default() };
    let mut plain = AccountWeb::new(vec![vec![1], vec![0], vec![]], policy);
    let mut favoured = AccountWeb::new(vec![vec![1], vec![0], vec![]], policy);
    for web in [&mut plain, &mut favoured] {
        web.visit(2, 0.0);
    }
    plain.visit(0, 0.0);
    favoured.visit(0, 0.5);
    // Page 0 gives half of its endowment to its link, and the virtual page adds half as much.
    let cash = |web: &AccountWeb| web.ledger.cash(&web.accounts[1].unwrap()).units();
    assert_eq!(cash(&favoured) - cash(&plain), ENDOWMENT / 4);
    favoured.audit().unwrap();
}

#[test]
fn numbers_survive_being_saved() {
    let mut web = AccountWeb::new(small_web(), Policy::default());
    for visit in 0..300 {
        web.visit(visit % 8, 0.1);
    }
    let saved = serde_json::to_string(&web.ledger.numbers()).unwrap();
    let numbers: LedgerNumbers = serde_json::from_str(&saved).unwrap();
    let mut resumed = AccountWeb {
        ledger: Ledger::resume(numbers, *web.ledger.policy()),
        accounts: web.accounts.clone(),
        links: web.links.clone(),
    };
    for visit in 0..100 {
        web.visit(visit % 8, 0.0);
        resumed.visit(visit % 8, 0.0);
    }
    assert_eq!(web.accounts, resumed.accounts);
    assert_eq!(web.ledger.numbers(), resumed.ledger.numbers());
}

#[derive(Clone, Debug)]
enum LedgerStep {
    Discover,
    Visit { page: usize, bonus: f64 },
    Link { from: usize, to: usize },
    Vanish(usize),
    Merge { alias: usize, target: usize },
    HandOut,
    Reload,
}

fn steps() -> impl Strategy<Value = Vec<LedgerStep>> {
    let page = 0..40usize;
    let step = prop_oneof![
        3 => Just(LedgerStep::Discover),
        8 => (page.clone(), prop_oneof![Just(0.0), 0.0..3.0f64]).prop_map(|(page, bonus)| LedgerStep::Visit { page, bonus }),
        8 => (page.clone(), page.clone()).prop_map(|(from, to)| LedgerStep::Link { from, to }),
        1 => page.clone().prop_map(LedgerStep::Vanish),
        1 => (page.clone(), page).prop_map(|(alias, target)| LedgerStep::Merge { alias, target }),
        1 => Just(LedgerStep::HandOut),
        1 => Just(LedgerStep::Reload),
    ];
    prop::collection::vec(step, 1..250)
}

proptest! {
    #[test]
    fn total_cash_is_constant_after_any_step(
        steps in steps(),
        share in prop_oneof![Just(None), (0.0..1.0f64).prop_map(Some)],
        discovery in 0..4u16,
        refresh in 0..4u16,
    ) {
        let small_edge = share.map_or(SmallEdge::Link, SmallEdge::Share);
        let policy = Policy { small_edge, discovery, refresh, ..Policy::default() };
        let mut web = AccountWeb::new(vec![vec![]], policy);
        for step in steps {
            let known = web.accounts.len();
            match step {
                LedgerStep::Discover => {
                    let account = web.ledger.discover();
                    web.accounts.push(Some(account));
                    web.links.push(vec![]);
                }
                LedgerStep::Visit { page, bonus } => web.visit(page % known, bonus),
                LedgerStep::Link { from, to } => web.links[from % known].push(to % known),
                LedgerStep::Vanish(page) => {
                    if let Some(account) = web.accounts[page % known].take() {
                        web.ledger.close(&account);
                    }
                }
                LedgerStep::Merge { alias, target } => {
                    let (alias, target) = (alias % known, target % known);
                    if alias != target && let (Some(from), Some(mut to)) = (web.accounts[alias], web.accounts[target]) {
                        web.ledger.merge(&from, &mut to);
                        web.accounts[alias] = None;
                        web.accounts[target] = Some(to);
                    }
                }
                LedgerStep::HandOut => web.ledger.hand_out(),
                LedgerStep::Reload => web.ledger = Ledger::resume(web.ledger.numbers(), policy),
            }
            prop_assert_eq!(web.audit(), Ok(()));
            let open = web.accounts.iter().flatten().count() as f64;
            let sum: f64 = web.importance().iter().sum();
            // The sum is 0 only while no page has received anything.
            prop_assert!(sum == 0.0 || (sum / open - 1.0).abs() < 1e-6, "{} of {}", sum, open);
        }
    }
}

#[test]
fn an_audit_finds_what_is_missing() {
    let mut web = AccountWeb::new(small_web(), Policy::default());
    web.visit(0, 0.0);
    let lost = web.accounts[3].take();
    assert!(matches!(web.audit(), Err(Imbalance::Total { .. })));
    web.accounts[3] = lost;
    web.audit().unwrap();
    if let Some(account) = web.accounts[0].as_mut() {
        account.credit = None;
    }
    assert!(web.audit().is_err());
}

#[test]
fn importance_moves_no_more_than_cash_was_handed_on() {
    let mut web = AccountWeb::new(small_web(), Policy::default());
    (0..80 * 8).for_each(|visit| web.visit(visit % 8, 0.0));
    web.ledger.settle(web.ledger.mark(), 0);
    web.audit().unwrap();
    assert_eq!(web.ledger.moved_since_settled(), 0.0);
    let before = web.importance();
    for page in [0, 3, 3, 5, 1, 7, 2] {
        let moved = web.ledger.moved_since_settled();
        web.visit(page, 0.0);
        web.ledger = Ledger::resume(web.ledger.numbers(), Policy::default());
        assert!(web.ledger.moved_since_settled() > moved);
        let change = mean_error(&web.importance(), &before);
        assert!(change <= 2.0 * web.ledger.moved_since_settled() / 4.0, "{change} after {page}");
    }
}

/// Pages that are never read count as pages without links, though the virtual page gives them nothing.
#[test]
fn calling_in_cash_makes_estimates_of_unread_pages_exact() {
    // Two pages that are read again and again, and five that are never read.
    let links = vec![vec![1, 2, 3, 4, 5, 6], vec![0, 2], vec![], vec![], vec![], vec![], vec![]];
    let exact = exact(&links);
    let mut web = AccountWeb::new(links, Policy { window: 40.0, ..Policy::default() });
    let (mut begun, mut to_unread) = (web.ledger.mark(), 0);
    for round in 0..200 {
        if round == 100 {
            (begun, to_unread) = (web.ledger.mark(), 0);
        }
        let before = web.ledger.unread_cash().units();
        web.visit(0, 0.0);
        web.visit(1, 0.0);
        to_unread += web.ledger.unread_cash().units().saturating_sub(before);
        for account in web.accounts.iter_mut().flatten().filter(|account| account.credit.is_none()) {
            account.base = web.ledger.call_in(account.base, 0.5);
        }
        web.ledger.hand_out();
    }
    web.ledger.settle(begun, to_unread);
    web.audit().unwrap();
    for (found, exact) in web.importance().into_iter().zip(exact) {
        assert!((found / exact - 1.0).abs() < 0.02, "{found}, not {exact}");
    }
}

#[test]
fn a_seed_holds_ten_endowments() {
    let mut ledger = Ledger::new(Policy::default());
    let (page, seed) = (ledger.discover(), ledger.discover_seed());
    assert_eq!(ledger.cash(&seed).units(), 10 * ledger.cash(&page).units());
    ledger.close(&seed);
    ledger.close(&page);
    let audit = CashAudit::default();
    audit.finish(&mut ledger).unwrap();
}

#[test]
fn the_share_of_read_pages_is_the_sum_of_their_importance() {
    let mut web = AccountWeb::new(small_web(), Policy::neutral());
    assert_eq!(web.ledger.gathered(8), 0.0);
    for (round, page) in [0, 5, 1, 0, 3, 1, 4, 2, 6, 7, 0, 3].into_iter().enumerate() {
        web.visit(page, 0.0);
        web.audit().unwrap();
        let each = web.accounts.iter().flatten().zip(web.importance());
        let read: f64 = each.filter(|(account, _)| account.credit.is_some()).map(|(_, one)| one).sum();
        let found = web.ledger.gathered(web.ledger.unread_pages());
        assert!((found - read / 8.0).abs() < 1e-9, "{round}: {found} {read}");
        assert!(web.ledger.gathered(0) >= found);
    }
    assert_eq!(web.ledger.gathered(0), 1.0);
}
