//! How well a page answers a text search.

/// The score of a page with `bm25` for the text and `importance` (mean 1) for the page:
///
/// ```text
/// score = bm25 * (1 + ln(1 + importance))
/// ```
///
/// A page of no importance keeps its BM25; an average one gets 1.7 times as much, one ten times as important 3.4 times,
/// one a thousand times as important 7.9 times. The logarithm follows Craswell, Robertson, Zaragoza and Taylor,
/// "Relevance weighting for query independent evidence" (SIGIR 2005, section 4), who find that link evidence helps best
/// on a logarithmic or saturating scale. It is multiplied rather than added, so that it needs no constant fitted to the
/// scale of BM25 in a collection, and so that a page that hardly matches does not rank high by importance alone.
#[must_use]
pub fn combined(bm25: f64, importance: f64) -> f64 {
    bm25 * (1.0 + importance.max(0.0).ln_1p())
}

#[cfg(test)]
mod tests {
    use super::combined;

    #[test]
    fn importance_helps_less_and_less() {
        assert_eq!(combined(2.0, 0.0), 2.0);
        assert_eq!(combined(0.0, 1e6), 0.0);
        assert_eq!(combined(2.0, -1.0), 2.0);
        assert!((combined(1.0, 1.0) - 1.693).abs() < 1e-3);
        assert!((combined(1.0, 1000.0) - 7.909).abs() < 1e-3);
        assert!(combined(1.0, f64::INFINITY).is_infinite());
    }
}
