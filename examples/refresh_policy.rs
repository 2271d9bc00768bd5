//! Compares a custom refresh policy with the built-in default on simulated pages: how much of the time, weighted by
//! importance, are the copies fresh?
//!
//!     cargo run --release --example refresh_policy

use archive_math::refresh::change_model::Relations;
use archive_math::refresh::policies::{PolicyName, RefreshPolicy, RefreshProblem, Sighting};

const PAGES: usize = 200;
const DAYS: usize = 120;
/// Fetches per day: a tenth of the pages.
const BUDGET: usize = 20;

/// Puts the most important page with an old copy first, regardless of how often pages change.
struct ImportanceTimesAge(Vec<f64>);

impl RefreshPolicy for ImportanceTimesAge {
    fn values(&mut self, _now: f64, pages: &[usize], ages: &[f64], values: &mut [f64]) {
        for ((value, &page), &age) in values.iter_mut().zip(pages).zip(ages) {
            *value = self.0[page] * age;
        }
    }
}

/// Whether page `n` changes on a day: every `1 + n % 40` days.
const fn changes_on(page: usize, day: usize) -> bool {
    day.is_multiple_of(1 + page % 40)
}

/// Returns the share of time, weighted by importance, in which the copies are fresh.
fn freshness(policy: &mut dyn RefreshPolicy, importance: &[f64]) -> f64 {
    let pages: Vec<usize> = (0..PAGES).collect();
    let (mut fetched, mut changed) = (vec![0; PAGES], vec![0; PAGES]);
    let mut fresh = 0.0;
    for day in 1..=DAYS {
        for page in pages.iter().copied().filter(|page| changes_on(*page, day)) {
            changed[page] = day;
        }
        let ages: Vec<f64> = fetched.iter().map(|last| (day - last) as f64).collect();
        let mut values = vec![0.0; PAGES];
        policy.values(day as f64, &pages, &ages, &mut values);
        let mut order = pages.clone();
        order.sort_by(|a, b| values[*b].total_cmp(&values[*a]));
        let visits: Vec<Sighting> = order[..BUDGET]
            .iter()
            .map(|&page| {
                let found = (changed[page] > fetched[page]).then_some(changed[page] as f64);
                fetched[page] = day;
                Sighting { page, age: ages[page], changed: found }
            })
            .collect();
        policy.seen(day as f64, &visits);
        fresh += pages
            .iter()
            .filter(|page| changed[**page] <= fetched[**page])
            .map(|page| importance[*page])
            .sum::<f64>();
    }
    fresh / (DAYS as f64 * importance.iter().sum::<f64>())
}

fn main() {
    let importance: Vec<f64> = (0..PAGES).map(|page| 10.0 / (1 + page % 17) as f64).collect();
    let known = RefreshProblem {
        importance: importance.clone(),
        site: vec![0; PAGES],
        directory: vec![0; PAGES],
        relations: vec![Relations::default(); PAGES],
        sites: 1,
        directories: 1,
        found: vec![0.0; PAGES],
        budget: BUDGET as f64,
        days: DAYS as f64,
        tick: 1.0,
        ..RefreshProblem::default()
    };
    let mut default = PolicyName::default().build(&known, &mut || 0.5);
    println!("built-in default:     {:.3}", freshness(default.as_mut(), &importance));
    println!(
        "importance times age: {:.3}",
        freshness(&mut ImportanceTimesAge(importance.clone()), &importance)
    );
}
