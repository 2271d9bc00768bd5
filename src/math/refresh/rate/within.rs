//! The expected time of a change between two visits.

/// Returns the expected number of days until the first change in an interval of `length` days with at least one change,
/// at a rate of `per_day`. The last change is as far from the end on average.
#[must_use]
pub fn days_before_change(per_day: f64, length: f64) -> f64 {
    let x = per_day * length;
    if x < 1e-6 {
        return length / 2.0;
    }
    (per_day.recip() - length / x.exp_m1()).clamp(0.0, length)
}

#[cfg(test)]
mod tests {
    use super::days_before_change;

    #[test]
    fn a_change_is_put_where_it_is_on_average() {
        assert!((days_before_change(1e-9, 10.0) - 5.0).abs() < 1e-6);
        assert!((days_before_change(100.0, 10.0) - 0.01).abs() < 1e-6);
        // By simulation: the first change of a Poisson process, if within the interval.
        let (mut sum, mut count) = (0.0, 0.0);
        for step in 0..100_000 {
            let first = -(1.0 - (f64::from(step) + 0.5) / 100_000.0).ln() / 0.3;
            if first < 4.0 {
                (sum, count) = (sum + first, count + 1.0);
            }
        }
        assert!((days_before_change(0.3, 4.0) - sum / count).abs() < 1e-3);
    }
}
