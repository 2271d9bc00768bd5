//! Conclusions of the model from visits, and the correctness of its shortcuts.

use super::*;

/// Four directories of 25 pages on two sites.
fn pages() -> Vec<ModelledPage> {
    let page = |number: usize| {
        let (site, directory) = (number / 50, number / 25);
        let path = format!("d{directory}/page{}.html", number % 25);
        ModelledPage {
            importance: 0.5 + (number as f64 * 0.618).fract(),
            site,
            directory,
            relations: relations(site as u64, &path),
            promised: None,
        }
    };
    (0..100).map(page).collect()
}

fn model() -> ChangeModel {
    let mut model = ChangeModel::new(pages().into_iter(), 2, 4, 5.0, None);
    (0..100).for_each(|page| model.found(page, 0.0, false));
    model
}

/// A history of random visits: directories change together now and then, and single pages change too.
fn lived(seed: u64, days: usize) -> (ChangeModel, Vec<f64>) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut model = model();
    let mut last = vec![0.0; 100];
    let mut changed = vec![0.0; 100];
    for day in 1..=days {
        let now = day as f64;
        let busy = random.usize(..40);
        for page in (0..100).filter(|page| page / 25 == busy || random.u32(..60) == 0) {
            changed[page] = now - 0.5;
        }
        let visit = |page: u32| {
            let page = page as usize;
            Sighting {
                page,
                age: now - last[page],
                changed: Some(changed[page]).filter(|at| *at > last[page]),
            }
        };
        let sightings: Vec<Sighting> = random.choose_multiple(0..100_u32, 5).into_iter().map(visit).collect();
        model.seen(now, &sightings);
        sightings.iter().for_each(|seen| last[seen.page] = now);
    }
    (model, last)
}

#[test]
fn the_best_values_are_exact() {
    for seed in 1..6 {
        let (mut model, last) = lived(seed, 400);
        let pages: Vec<usize> = (0..100).collect();
        let now = 400.5;
        let ages: Vec<f64> = last.iter().map(|last| now - last).collect();
        let exact: Vec<f64> = pages.iter().map(|&page| model.value(page, now, ages[page])).collect();
        let mut order = pages.clone();
        order.sort_by(|&a, &b| exact[b].total_cmp(&exact[a]));
        for best in [1, 7, 40, 100, 1000] {
            let mut values = vec![0.0; 100];
            model.values(now, &pages, &ages, best, &mut values);
            let (top, rest) = order.split_at(best.min(100));
            assert!(top.iter().all(|&page| values[page] == exact[page]), "seed {seed}, best {best}");
            let bar = exact[*top.last().unwrap()];
            assert!(rest.iter().all(|&page| values[page] <= bar), "seed {seed}, best {best}");
        }
    }
}

#[test]
fn what_was_learned_is_finite_and_repeatable() {
    let (first, last) = lived(3, 600);
    let (second, _) = lived(3, 600);
    for (page, last) in last.iter().enumerate() {
        for age in [0.0, 1e-6, 1.0, 1e4] {
            let value = first.value(page, last + age, age);
            assert!(value.is_finite() && value >= 0.0, "{value}");
            assert_eq!(value, second.value(page, last + age, age));
        }
    }
}

/// Ten pages of a directory changed in the same hour: their siblings probably did, pages of other sites did not.
#[test]
fn siblings_of_changed_pages_are_suspected() {
    let mut model = model();
    let sightings = |changed: Option<f64>| {
        (0..10).map(move |page| Sighting { page, age: 50.0, changed }).collect::<Vec<_>>()
    };
    let mut quiet = model.clone();
    model.seen(50.0, &sightings(Some(40.0)));
    quiet.seen(50.0, &sightings(None));
    // The probability that a copy differs from the live page.
    let stale_at = |model: &ChangeModel, page: usize, now: f64, age: f64| {
        -(-model.expected_changes(&model.evidence(page, now - age, now))).exp_m1()
    };
    let stale = |model: &ChangeModel, page| stale_at(model, page, 50.0, 50.0);
    assert!(stale(&model, 11) > 2.0 * stale(&quiet, 11));
    assert!(stale(&model, 11) > stale(&model, 90));
    // Once the page was seen unchanged, the event no longer counts.
    model.seen(50.0, &[Sighting { page: 11, age: 50.0, changed: None }]);
    assert!(stale_at(&model, 11, 51.0, 1.0) < stale(&model, 12) / 4.0);
}

/// A directory whose pages keep vanishing is worth fewer fetches.
#[test]
fn pages_that_vanish_lose_value() {
    let (mut model, last) = lived(1, 200);
    let before = model.value(0, 210.0, 210.0 - last[0]);
    (1..20).for_each(|page| model.gone(page));
    assert!(model.value(0, 210.0, 210.0 - last[0]) < before);
}

/// The state of a page has a fixed size; groups, events and spans are bounded for each site and group.
#[test]
fn a_page_takes_few_bytes() {
    let state = size_of::<KeptPage>() + population::PAGE_BYTES + relatives::PAGE_BYTES + cohort::PAGE_BYTES;
    let times = births::PAGE_BYTES + size_of::<f64>();
    assert_eq!(state + times, PAGE_BYTES);
}

/// The pages of one site change every forty days, those of the other ten times a day, each page at different times.
#[test]
fn rates_are_by_the_calendar() {
    let mut random = fastrand::Rng::with_seed(5);
    let mut model = model();
    let mut last = vec![0.0; 100];
    let period = |page: usize| if page < 50 { 40.0 } else { 0.1 };
    let phase: Vec<f64> = (0..100).map(|page| period(page) * random.f64()).collect();
    for day in 1..=400 {
        let now = f64::from(day);
        let visit = |page: u32| {
            let page = page as usize;
            let since = (now - phase[page]).rem_euclid(period(page));
            let changed = Some(now - since).filter(|at| *at > last[page]);
            Sighting { page, age: now - last[page], changed }
        };
        let sightings: Vec<Sighting> = random.choose_multiple(0..100_u32, 5).into_iter().map(visit).collect();
        model.seen(now, &sightings);
        sightings.iter().for_each(|seen| last[seen.page] = now);
    }
    for site in [0..50, 50..100] {
        let truth = f64::ln(1.0 / period(site.start));
        let mean = site.map(|page| (model.population.rate(page) * model.pace(page)).ln()).sum::<f64>() / 50.0;
        assert!((mean - truth).abs() < f64::ln(1.7), "{:.4} for {:.4}", mean.exp(), truth.exp());
    }
}
