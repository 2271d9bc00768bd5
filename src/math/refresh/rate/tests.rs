use proptest::prelude::*;

use super::*;

fn exponential(random: &mut fastrand::Rng) -> f64 {
    -(1.0 - random.f64()).ln()
}

/// Visits a Poisson page of `rate` at irregular intervals (mean 1 day).
fn visit(random: &mut fastrand::Rng, rate: f64, visits: usize, dated: bool) -> ChangeObservations {
    let mut page = ChangeObservations::new();
    let (mut now, mut last_visit) = (0.0, 0.0);
    let (mut last_change, mut next_change) = (-1.0, exponential(random) / rate);
    for _ in 0..visits {
        now += 0.25 + 1.5 * random.f64();
        while next_change <= now {
            last_change = next_change;
            next_change += exponential(random) / rate;
        }
        let changed = last_change > last_visit;
        let last_modified = dated.then_some(now - last_change);
        page.observe(&Observation { interval: now - last_visit, changed, last_modified });
        last_visit = now;
    }
    page
}

#[test]
fn equal_intervals_have_the_closed_form() {
    let mut page = ChangeObservations::new();
    for i in 0..100 {
        page.observe(&Observation { interval: 2.0, changed: i % 4 == 0, last_modified: None });
    }
    let weak = RatePrior { shape: 1e-6, days: 1e-6 };
    // 1 - e^(-2x) = 1/4
    let exact = -(0.75_f64).ln() / 2.0;
    let rate = page.rate(&weak);
    assert!((rate.per_day / exact - 1.0).abs() < 0.05, "{rate:?} instead of {exact}");
}

#[test]
fn extremes_stay_finite() {
    let prior = RatePrior::default();
    for changed in [false, true] {
        let mut page = ChangeObservations::new();
        for _ in 0..100_000 {
            page.observe(&Observation { interval: 1.0, changed, last_modified: None });
        }
        let rate = page.rate(&prior);
        assert!(rate.per_day.is_finite() && rate.per_day > 0.0, "{rate:?}");
        assert_eq!(rate.per_day > 2.0, changed, "{rate:?}");
    }
}

#[test]
fn wrong_dates_are_found_out() {
    let mut page = ChangeObservations::new();
    for _ in 0..10 {
        // The server reports the time of delivery as that of modification.
        page.observe(&Observation { interval: 1.0, changed: false, last_modified: Some(0.0) });
    }
    assert!(!page.dates_reliable());
    assert!(page.rate(&RatePrior::default()).per_day < 0.1);
}

/// Returns the relative root mean square error.
fn study(rate: f64, dated: bool) -> f64 {
    let mut random = fastrand::Rng::with_seed(7);
    let mut square = 0.0;
    let pages = 4000;
    let prior = RatePrior::broad(rate);
    for _ in 0..pages {
        let page = visit(&mut random, rate, 20, dated);
        square += (page.rate(&prior).per_day / rate - 1.0).powi(2);
    }
    (square / f64::from(pages)).sqrt()
}

#[test]
fn rates_are_found() {
    for (rate, dated, error_max) in
        [(0.1, false, 0.75), (0.5, false, 0.40), (2.0, false, 0.45), (0.1, true, 0.75), (2.0, true, 0.30)]
    {
        let error = study(rate, dated);
        assert!(error < error_max, "rate {rate}, dated {dated}: error {error}");
    }
}

proptest! {
    #[test]
    fn bytes_round_trip(visits in prop::collection::vec((1e-3..1e3_f64, any::<bool>(), prop::option::of(0.0..10.0_f64)), 0..200)) {
        let mut page = ChangeObservations::new();
        for (interval, changed, last_modified) in visits {
            page.observe(&Observation { interval, changed, last_modified });
        }
        prop_assert_eq!(ChangeObservations::from_bytes(&page.to_bytes()), page);
    }

    #[test]
    fn foreign_bytes_give_a_usable_rate(bytes in any::<[u8; 24]>(), more in any::<[u8; 24]>()) {
        let mut all = [0; OBSERVATION_BYTES];
        all[..24].copy_from_slice(&bytes);
        all[24..].copy_from_slice(&more);
        let mut page = ChangeObservations::from_bytes(&all);
        page.observe(&Observation { interval: 1.0, changed: true, last_modified: Some(0.5) });
        let rate = page.rate(&RatePrior::default());
        prop_assert!(rate.per_day.is_finite() && rate.shape > 0.0);
    }
}
