//! Words by which a site announces how often its pages change, as in sitemaps: true ones, or made up.

use fastrand::Rng;

use super::world::World;

/// The words of sitemaps, and changes a day that each stands for. `always` is twice an hour here, `never` once in ten
/// years.
pub const WORDS: [(&str, f64); 7] = [
    ("always", 48.0),
    ("hourly", 24.0),
    ("daily", 1.0),
    ("weekly", 1.0 / 7.0),
    ("monthly", 1.0 / 30.0),
    ("yearly", 1.0 / 365.0),
    ("never", 1.0 / 3650.0),
];

/// The word of each page.
#[derive(Clone, Debug)]
pub struct Words(Vec<usize>);

impl Words {
    /// Draws the words of a world: of a share of the pages the one that is nearest to its rate, of others any.
    pub fn draw(world: &World, true_share: f64, seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let word = |rate: f64| match rng.f64() < true_share {
            true => nearest(rate),
            false => rng.usize(..WORDS.len()),
        };
        Self(world.pages.iter().map(super::world::Page::rate).map(word).collect())
    }

    /// Changes a day that the word of each page stands for.
    pub fn rates(&self) -> Vec<f64> {
        self.0.iter().map(|word| WORDS[*word].1).collect()
    }
}

fn nearest(rate: f64) -> usize {
    let far = |word: &usize| (WORDS[*word].1.ln() - rate.max(1e-9).ln()).abs();
    (0..WORDS.len()).min_by(|a, b| far(a).total_cmp(&far(b))).unwrap_or_default()
}
