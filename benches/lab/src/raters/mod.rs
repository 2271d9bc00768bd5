//! The OPIC paper's comparison of importance with librarians (section 5), with a known truth.
//!
//! Sites of a test web have a quality of 1 to 4, and links between sites prefer good pages. Simulated raters give the
//! truth or, with a known noise, another rating. The raters and several kinds of importance are scored as in an archive
//! ([`archive_ask::review::score`]); each score comes with its expected value.

mod expected;
mod panel;
mod world;

use archive_math::graphs::random::Random;
use serde::Serialize;

use panel::Panel;
use world::World;

use crate::LabError;

/// Parameters of the simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Number of sites of the web.
    pub sites: u32,
    /// Number of pages of all sites together.
    pub pages: u64,
    /// How much links prefer quality: weight (quality / 4)^prefer; 0 means no preference.
    pub prefer: f64,
    /// Probability of a wrong rating, for each rater of the mixed panel and for each panel of identical raters.
    pub noise: Vec<f64>,
    /// Number of raters in a panel of identical raters.
    pub raters: usize,
}

/// The things that are rated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Of {
    /// Sites.
    Sites,
    /// As many pages as there are sites, drawn at random.
    Pages,
}

/// Who or what is judged, and by which standard.
#[derive(Clone, Debug, PartialEq)]
pub enum Judged {
    /// A rater, or the mean of identical raters; judged by the other raters.
    Rater,
    /// The reference, the mean of all ratings; judged by the truth.
    Reference,
    /// A kind of importance, judged by the reference; `commonest` gives everything the same rating.
    Importance(String),
    /// Krippendorff's alpha for interval data.
    Alpha,
}

/// A score in one repetition.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// What was rated.
    pub of: Of,
    /// Noise of all raters of the panel; `None` for the mixed panel.
    pub panel: Option<f64>,
    /// Who or what has the score.
    pub judged: Judged,
    /// Noise of a single rater.
    pub noise: Option<f64>,
    /// The score: a share of the rated things (or alpha).
    pub score: f64,
    /// Expected value of the score, computed from the known truth.
    pub expected: f64,
    /// Share of things rated like the truth; `None` for alpha.
    pub like_truth: Option<f64>,
}

/// Simulates one web and its raters; the scores have the same order for all `rng`.
///
/// # Errors
/// The settings allow no such web.
pub fn run(settings: &Settings, rng: u64) -> Result<Vec<Score>, LabError> {
    let world = World::new(settings, rng)?;
    let pages = world.pages()?;
    let mut random = Random::for_item(rng, 1);
    let mut scores = Vec::new();
    let sites = world.sites(&pages)?;
    let mixed = Panel::new(Of::Sites, None, settings.noise.clone(), &world.site_quality, &mut random);
    scores.extend(mixed.scores(&sites, &mut random));
    for noise in &settings.noise {
        let raters = vec![*noise; settings.raters];
        let alike = Panel::new(Of::Sites, Some(*noise), raters, &world.site_quality, &mut random);
        scores.extend(alike.scores(&sites, &mut random));
    }
    let drawn = random.choose(world.page_quality.len() as u32, settings.sites as usize);
    let drawn: Vec<usize> = drawn.into_iter().map(|page| page as usize).collect();
    let truth: Vec<u8> = drawn.iter().map(|&page| world.page_quality[page]).collect();
    let of_drawn = |(name, values): &(&str, Vec<f64>)| {
        ((*name).to_owned(), drawn.iter().map(|&page| values[page]).collect())
    };
    let kinds: Vec<(String, Vec<f64>)> = pages.iter().map(of_drawn).collect();
    let mixed = Panel::new(Of::Pages, None, settings.noise.clone(), &truth, &mut random);
    scores.extend(mixed.scores(&kinds, &mut random));
    Ok(scores)
}

#[cfg(test)]
mod tests;
