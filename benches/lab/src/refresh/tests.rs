//! Compares the replay with results computed by hand and with published results on real histories.

use archive_math::refresh::policies::Sighting;

use super::history::{Event, History};
use super::policies::{RefreshPolicy, ReplayPolicy};
use super::replay::{Outcome, replay};
use super::settings;
use super::words::{WORDS, Words};
use super::world::{Page, Window, World};
use crate::refresh::draws::Draws;
use crate::test_data;

fn history(name: &str, pages: &[(&str, &[i64])]) -> History {
    let events = |days: &[i64]| {
        days.iter().map(|day| Event { seconds: day.abs() * 86_400, deleted: *day < 0 }).collect::<Vec<_>>()
    };
    let pages = pages.iter().map(|(path, days)| ((*path).to_owned(), events(days))).collect();
    History { name: name.to_owned(), pages, importance: None }
}

fn world(pages: &[(&str, &[i64])]) -> World {
    let window = Window { start: 0, end: 100 * 86_400, tick: 1.0 };
    World::new(&[(&history("pages", pages), 10)], window).unwrap()
}

#[test]
fn a_window_keeps_what_lives_in_it() {
    let world = world(&[
        ("a/one", &[-1, 10, 20, 150]),
        ("a/two", &[5, 30, -60]),
        ("late", &[80, 90]),
        ("gone", &[1, -1]),
    ]);
    let page = |name: &str| world.pages.iter().find(|page| page.name == name).unwrap();
    assert_eq!(world.pages.len(), 2, "{:?}", world.pages);
    let (one, two): (&Page, &Page) = (page("pages:a/one"), page("pages:a/two"));
    assert_eq!((one.birth, one.death, one.changes.as_slice()), (1.0, 100.0, [10.0, 20.0].as_slice()));
    assert_eq!((two.birth, two.death, two.changes.as_slice()), (5.0, 60.0, [30.0].as_slice()));
    assert_eq!((one.site, one.directory), (two.site, two.directory));
}

/// Fetches one page on given days and records the results.
struct Scripted {
    days: Vec<f64>,
    seen: Vec<(f64, Sighting)>,
    gone: Vec<f64>,
}

impl RefreshPolicy for Scripted {
    fn values(&mut self, now: f64, _pages: &[usize], _ages: &[f64], values: &mut [f64]) {
        values.fill(if self.days.contains(&now) { 1.0 } else { -1.0 });
    }
    fn seen(&mut self, now: f64, visits: &[Sighting]) {
        self.seen.extend(visits.iter().map(|visit| (now, *visit)));
    }
    fn gone(&mut self, now: f64, _pages: &[usize]) {
        self.gone.push(now);
    }
}

#[test]
fn one_page_is_measured_as_by_hand() {
    // Changes on days 10, 40, 50 and 95; measured from day 25 on; fetched on days 30 and 60.
    let world = world(&[("page", &[0, 10, 40, 50, 95])]);
    let mut policy = Scripted { days: vec![30.0, 60.0], seen: Vec::new(), gone: Vec::new() };
    let outcome = replay(&world, &mut policy, 1.0, &mut Draws::new(1));
    let visit = |age, at| Sighting { page: 0, age, changed: Some(at) };
    assert_eq!(policy.seen, [(30.0, visit(30.0, 10.0)), (60.0, visit(30.0, 50.0))]);
    // Stale from 25 to 30, 40 to 60 and 95 to 100.
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "{a} is not {b}");
    near(outcome.freshness, 1.0 - 30.0 / 75.0);
    // Stale for longer than a week: the whole first interval, 13 days of the second, none of the third.
    near(outcome.currency[1], 1.0 - 18.0 / 75.0);
    near(outcome.age, (17.5 * 5.0 + 10.0 * 20.0 + 2.5 * 5.0) / 75.0);
    near(outcome.obsolescence, (5.0 + 20.0 + 10.0 + 5.0) / 75.0);
    // Each visit captured one version; of the three measured changes, that of day 40 was never seen.
    near(outcome.captured, 2.0 / 3.0);
    assert_eq!((outcome.fetches, outcome.hits), (2, 1.0));
}

#[test]
fn a_page_that_died_is_asked_once() {
    let world = world(&[("page", &[0, 10, -50])]);
    let mut policy = Scripted { days: vec![55.0, 70.0], seen: Vec::new(), gone: Vec::new() };
    let outcome = replay(&world, &mut policy, 1.0, &mut Draws::new(1));
    assert_eq!((policy.gone.as_slice(), outcome.fetches), ([55.0].as_slice(), 1));
    // Stale from day 25, when measuring begins, until its death.
    assert!(outcome.freshness.abs() < 1e-9, "{outcome:?}");
}

#[test]
fn names_mean_policies_or_nothing() {
    for name in [
        "uniform",
        "xyleme",
        "chogm",
        "lambda_mles",
        "evh_hindex_h365",
        "nutch_tuned0.3",
        "azar_poisson_true",
    ] {
        assert_eq!(name.parse::<ReplayPolicy>().unwrap().to_string(), name);
    }
    for name in ["", "fresh", "xyleme_", "index_h365", "nutch_tuned", "evh_hindex_h0", "evh_hindex_hot"] {
        assert!(name.parse::<ReplayPolicy>().is_err(), "{name}");
    }
}

fn outcome(world: &World, policy: &str, beta: f64) -> Outcome {
    let budget = world.budget(beta);
    let policy: ReplayPolicy = policy.parse().unwrap();
    let mut draws = Draws::new(1);
    replay(world, policy.build(world, None, budget, &mut draws).as_mut(), budget, &mut draws)
}

/// Results of the reference simulator, reproduced to within 0.01.
#[test]
fn results_are_those_of_the_reference() {
    let Some(folder) = test_data("histories") else { return };
    let world = settings::find("jquery").unwrap().world(&folder).unwrap();
    let expected = [
        ("uniform", [0.452, 0.801]),
        ("nutch_fifo", [0.492, 0.805]),
        ("storm_fifo", [0.493, 0.803]),
        ("xyleme_mles", [0.614, 0.869]),
        ("xyleme_lm", [0.610, 0.878]),
        ("index_lm", [0.618, 0.847]),
        ("hindex_naive", [0.631, 0.867]),
        ("evh_hindex", [0.652, 0.881]),
        ("chogm_true", [0.616, 0.871]),
        ("index_true", [0.619, 0.872]),
        ("clairvoyant", [0.844, 0.969]),
    ];
    for (policy, freshness) in expected {
        for (beta, expected) in [0.25, 1.0].into_iter().zip(freshness) {
            let found = outcome(&world, policy, beta).freshness;
            assert!((found - expected).abs() < 0.01, "{policy} at {beta}: {found}, not {expected}");
        }
    }
}

/// The default is at least as good as shared events, the best on-line policy of the tables for these pages.
#[test]
fn the_default_keeps_up_with_the_best() {
    let Some(folder) = test_data("histories") else { return };
    let world = settings::find("jquery").unwrap().world(&folder).unwrap();
    let (default, best) = (outcome(&world, "default", 0.25), outcome(&world, "evh_hindex", 0.25));
    assert!(default.freshness > best.freshness - 0.005, "{default:?} against {best:?}");
}

/// Words are the nearest to the true rates, or any, and a replay learns from them.
#[test]
fn words_are_true_or_made_up() {
    let days: Vec<i64> = (1..100).collect();
    let world = world(&[("daily", &days), ("monthly", &[1, 30, 61, 90]), ("never", &[1])]);
    let rates = |share| Words::draw(&world, share, 1).rates();
    let of = |words: [&str; 3]| {
        words.map(|word| WORDS.iter().find(|(known, _)| *known == word).unwrap().1).to_vec()
    };
    let named: Vec<&str> = world.pages.iter().map(|page| page.name.split_once(':').unwrap().1).collect();
    assert_eq!(rates(1.0), of([named[0], named[1], named[2]]));
    assert!((0..5).any(|seed| Words::draw(&world, 0.0, seed).rates() != rates(1.0)));
    let freshness = |words: Option<&Words>| {
        let (mut draws, policy) = (Draws::new(1), "default".parse::<ReplayPolicy>().unwrap());
        replay(&world, policy.build(&world, words, 0.5, &mut draws).as_mut(), 0.5, &mut draws)
    };
    let (without, with) = (freshness(None), freshness(Some(&Words::draw(&world, 1.0, 1))));
    assert!((0.0..=1.0).contains(&with.freshness) && (0.0..=1.0).contains(&with.first), "{with:?}");
    // No page appears after the burn-in.
    assert!(with.young.is_nan() && without.young.is_nan());
}
