use super::*;
use crate::repeated::mean;

fn settings() -> Settings {
    Settings { sites: 150, pages: 600, prefer: 4.0, noise: vec![0.0, 0.3, 0.6], raters: 4 }
}

/// Returns the scores, and their expectations, of each position over repetitions.
fn repeated(settings: &Settings, repeat: u64) -> Vec<(Score, Vec<f64>, Vec<f64>)> {
    let runs: Vec<Vec<Score>> = (0..repeat).map(|rng| run(settings, rng).unwrap()).collect();
    let of = |place: usize, number: fn(&Score) -> f64| runs.iter().map(|run| number(&run[place])).collect();
    (0..runs[0].len())
        .map(|place| (runs[0][place].clone(), of(place, |it| it.score), of(place, |it| it.expected)))
        .collect()
}

/// The mean of 12 shares of 150 has a standard deviation of about .01; halves are not independent of each other.
#[test]
fn scores_are_what_the_truth_says() {
    let all = repeated(&settings(), 12);
    // Three raters, reference, alpha, commonest and seven kinds; three panels of identical raters; pages with two
    // kinds.
    assert_eq!(all.len(), 13 + 3 * 11 + 8);
    for (score, scores, expected) in &all {
        let apart = mean(scores) - mean(expected);
        assert!(apart.abs() < 0.04, "{score:?}: {} and {}", mean(scores), mean(expected));
        if score.noise == Some(0.0) && score.panel == Some(0.0) {
            assert_eq!(mean(scores), 1.0);
        }
    }
    let like_truth = |score: &Score| score.like_truth.unwrap();
    assert!(all.iter().filter(|row| row.0.judged == Judged::Alpha).all(|row| row.0.like_truth.is_none()));
    let raters: Vec<&Score> = all[..3].iter().map(|row| &row.0).collect();
    assert!((like_truth(raters[1]) - 0.7).abs() < 0.15 && like_truth(raters[0]) == 1.0);
}

#[test]
fn importance_knows_quality_as_far_as_links_prefer_it() {
    let best = |prefer: f64| {
        let settings = Settings { prefer, noise: vec![0.0], ..settings() };
        let all = repeated(&settings, 4);
        let alike = all.iter().filter(|row| row.0.panel == Some(0.0) && row.0.noise.is_none());
        let kinds = alike.filter(|row| matches!(row.0.judged, Judged::Importance(_)));
        kinds.map(|row| mean(&row.1)).fold(0.0, f64::max)
    };
    let (not_at_all, much) = (best(0.0), best(8.0));
    assert!(not_at_all < 0.4 && much > not_at_all + 0.1, "{not_at_all} {much}");
}

#[test]
fn the_same_number_makes_the_same_web() {
    assert_eq!(run(&settings(), 5).unwrap(), run(&settings(), 5).unwrap());
    let few = Settings { pages: 10, ..settings() };
    assert!(run(&few, 1).unwrap_err().to_string().starts_with("pages is 10"));
}
