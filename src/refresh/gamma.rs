//! The Gamma law, which rates of change are taken to have.

/// The shapes a learned law may have: below, a page without changes would be given up; above, its own visits would not be
/// heard.
pub(super) const SHAPES: (f64, f64) = (0.05, 20.0);

/// The mean of ln λ under a Gamma law.
pub(super) fn mean_log(shape: f64, mean: f64) -> f64 {
    digamma(shape) - (shape / mean).ln()
}

/// The digamma function ψ for positive numbers (Abramowitz and Stegun, 6.3.5 and 6.3.18).
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
