//! Statistics of repeated measurements.

/// Student's t at 97.5 % for 1, 2, … degrees of freedom; the normal distribution is used beyond.
const STUDENT: [f64; 9] = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26];

/// Returns the mean; NaN for no values.
#[must_use]
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns half the width of the 95 % interval of the mean; `None` for fewer than two values.
#[must_use]
pub fn half_width(values: &[f64]) -> Option<f64> {
    let freedom = values.len().checked_sub(2)?;
    let middle = mean(values);
    let squares: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
    let deviation = (squares / (freedom + 1) as f64 / values.len() as f64).sqrt();
    Some(STUDENT.get(freedom).unwrap_or(&1.96) * deviation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_as_by_hand() {
        assert_eq!(half_width(&[3.0]), None);
        // Standard deviation 1, five values: 2.78 / √5.
        let values = [1.0, 2.0, 2.0, 2.0, 3.0].map(|value: f64| 2.0 + (value - 2.0) * 2f64.sqrt());
        assert!((half_width(&values).unwrap() - 2.78 / 5f64.sqrt()).abs() < 1e-9);
        assert!((mean(&values) - 2.0).abs() < 1e-12);
    }
}
