//! The OPIC paper's comparison of importance with librarians (section 5), where the truth is known.
//!
//! Sites of a test web have a quality of 1 to 4, and links between sites prefer pages that are good. Simulated raters say the truth, or
//! with a known noise something else. They, and kinds of importance, are scored as people and importance are in an
//! archive ([`archive::review::score`]); beside each score stands what it must be on average.

mod expected;
mod panel;
mod world;

use archive::graphs::random::Random;
use archive::importance::GraphError;
use archive::importance::rank::RankError;
use serde::Serialize;

use panel::Panel;
use world::World;

/// What is simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Sites of the web.
    pub sites: u32,
    /// Pages of all sites.
    pub pages: u64,
    /// How much links prefer quality: (quality / 4) to the power of this. 0: not at all.
    pub prefer: f64,
    /// For each rater of the mixed panel, and for each panel of raters that are alike, the probability of a wrong rating.
    pub noise: Vec<f64>,
    /// Raters of a panel whose raters are alike.
    pub raters: usize,
}

/// Why nothing can be simulated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RatersError {
    /// No such web.
    #[error(transparent)]
    Web(#[from] archive_testweb::ConfigError),
    /// No such graph.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// Never, with these options.
    #[error(transparent)]
    Rank(#[from] RankError),
}

/// What is rated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Of {
    /// Sites.
    Sites,
    /// As many pages as there are sites, drawn at random.
    Pages,
}

/// Who or what is judged.
#[derive(Clone, Debug, PartialEq)]
pub enum Judged {
    /// A rater, or the mean of raters that are alike; by others.
    Rater,
    /// The reference, the mean of all ratings; by the truth.
    Reference,
    /// A kind of importance, by the reference; `commonest` says the same of everything.
    Importance(String),
    /// Krippendorff's alpha by differences.
    Alpha,
}

/// A score in one repetition.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// Of what.
    pub of: Of,
    /// The noise of all raters of the panel; none in the mixed one.
    pub panel: Option<f64>,
    /// Whose.
    pub judged: Judged,
    /// The noise of a single rater.
    pub noise: Option<f64>,
    /// The score: a share of what was rated (or alpha).
    pub score: f64,
    /// Its expectation by the known truth.
    pub expected: f64,
    /// The share that was rated like the truth; alpha has none.
    pub like_truth: Option<f64>,
}

/// Simulates one web and its raters; scores come in the same order for all `rng`.
///
/// # Errors
/// When there can be no such web.
pub fn run(settings: &Settings, rng: u64) -> Result<Vec<Score>, RatersError> {
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
