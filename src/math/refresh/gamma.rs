//! The Gamma distribution, used for change rates.

/// Range of the shape of a learned distribution. With a lower one, pages without changes would be given up; with a
/// higher one, a page's own visits would hardly count.
pub(super) const SHAPES: (f64, f64) = (0.05, 20.0);

/// Returns the mean of ln λ under a Gamma distribution.
pub(super) fn mean_log(shape: f64, mean: f64) -> f64 {
    digamma(shape) - (shape / mean).ln()
}

/// The digamma function ψ for positive arguments (Abramowitz and Stegun, 6.3.5 and 6.3.18).
pub(super) fn digamma(x: f64) -> f64 {
    let (mut x, mut sum) = (x, 0.0);
    while x < 8.0 {
        sum -= x.recip();
        x += 1.0;
    }
    let square = (x * x).recip();
    sum + x.ln() - 0.5 / x - square * (1.0 / 12.0 - square * (1.0 / 120.0 - square / 252.0))
}

#[cfg(test)]
mod tests {
    use super::digamma;

    #[test]
    fn digamma_has_its_known_values() {
        assert!((digamma(1.0) + 0.577_215_664_9).abs() < 1e-9);
        assert!((digamma(0.5) + 1.963_510_026).abs() < 1e-8);
        assert!((digamma(10.0) - 2.251_752_589).abs() < 1e-7);
    }
}
