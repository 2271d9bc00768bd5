//! Windows under change: the papers' figures 4 to 6.
//!
//! A graph is crawled repeatedly. During each round (as many visits as there are pages), a share of its pages has its
//! number of in-links halved or doubled. Which window of the past estimates importance best?

use archive_math::graphs::random::Random;
use archive_math::importance::{Graph, Policy};

use super::LabError;
use super::convergence::{Error, Selection, Simulation, exact};
use super::window::WindowPolicy;

/// Number of parts of a round, between which the graph changes.
const PARTS: usize = 10;

/// Parameters of an experiment.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// How pages are selected.
    pub selection: Selection,
    /// Number of rounds without change, in which histories fill.
    pub warm_up: usize,
    /// Number of rounds with change; the error is the mean over their second half.
    pub rounds: usize,
    /// Random seed.
    pub seed: u64,
}

impl Default for Setting {
    /// Returns the parameters of the paper: greedy, ten crawls.
    fn default() -> Self {
        Self { selection: Selection::Greedy, warm_up: 20, rounds: 10, seed: 1 }
    }
}

/// A window whose length is in rounds, the unit in which operators think ("four months").
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// The whole past.
    All,
    /// This number of last measures.
    Variable(usize),
    /// This number of last rounds.
    Fixed(f64),
    /// This number of last rounds, and at least three measures.
    ImprovedFixed(f64),
    /// Interpolation over this number of last rounds.
    Interpolation(f64),
}

impl Length {
    /// Returns the name for legends.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::All => "all of the past".to_owned(),
            Self::Variable(measures) => format!("variable, {measures} measures"),
            Self::Fixed(rounds) => format!("fixed, {rounds} rounds"),
            Self::ImprovedFixed(rounds) => format!("improved fixed, {rounds}"),
            Self::Interpolation(rounds) => format!("interpolation, {rounds}"),
        }
    }

    fn window(self, turns_a_round: f64) -> WindowPolicy {
        match self {
            Self::All => WindowPolicy::All,
            Self::Variable(measures) => WindowPolicy::Variable { measures },
            Self::Fixed(rounds) => WindowPolicy::Fixed { time: rounds * turns_a_round },
            Self::ImprovedFixed(rounds) => {
                WindowPolicy::ImprovedFixed { time: rounds * turns_a_round, measures: 3 }
            }
            Self::Interpolation(rounds) => WindowPolicy::Interpolation { time: rounds * turns_a_round },
        }
    }
}

/// Result of a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Mean error relative to the exact vector of the graph at the time.
    pub error: Error,
    /// Number of values stored per page.
    pub measures: f64,
}

/// Runs one experiment in which the share `change` of the pages changes in each round.
///
/// # Errors
/// Changes make the graph too large.
pub fn run(graph: &Graph, length: Length, change: f64, setting: &Setting) -> Result<Outcome, LabError> {
    let pages = graph.pages();
    // Turns of G per round: about 2 if greedy, 1 otherwise.
    let mut trial =
        Simulation::new(graph, Policy::neutral(), WindowPolicy::All, setting.selection, setting.seed);
    trial.run(2 * pages);
    let begun = trial.clock();
    trial.run(pages);
    let window = length.window(trial.clock() - begun);
    let mut simulation = Simulation::new(graph, Policy::neutral(), window, setting.selection, setting.seed);
    simulation.run(setting.warm_up * pages);
    let mut random = Random::for_item(setting.seed, 1);
    let mut errors = Vec::new();
    for round in 0..setting.rounds.max(1) {
        for _ in 0..PARTS {
            let expected = change * pages as f64 / PARTS as f64;
            let count = expected as usize + usize::from(random.unit() < expected.fract());
            simulation.change(&random.choose(pages as u32, count));
            simulation.run(pages / PARTS);
        }
        if round >= setting.rounds / 2 {
            errors.push(Error::between(&simulation.estimate(), &exact(&simulation.graph()?, 1)?));
        }
    }
    let mean = |value: fn(&Error) -> f64| errors.iter().map(value).sum::<f64>() / errors.len() as f64;
    let error = Error {
        l1: mean(|error| error.l1),
        relative: mean(|error| error.relative),
        relative_top: mean(|error| error.relative_top),
        l1_top: mean(|error| error.l1_top),
    };
    Ok(Outcome { error, measures: simulation.measures() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use archive_math::graphs;

    fn graph() -> Graph {
        graphs::read(std::path::Path::new("generate:copy:1500:8:1")).unwrap().graph
    }

    /// Figure 6: one number per page does better than eight.
    #[test]
    fn interpolation_beats_larger_windows_under_change() {
        let setting = Setting { warm_up: 8, ..Setting::default() };
        let error = |length| run(&graph(), length, 0.1, &setting).unwrap().error.relative;
        let interpolated = error(Length::Interpolation(4.0));
        for other in [Length::Variable(8), Length::Fixed(8.0), Length::All] {
            let other = (other.name(), error(other));
            assert!(interpolated < 0.95 * other.1, "{interpolated} against {other:?}");
        }
    }

    #[test]
    fn measures_are_counted_as_in_the_papers_table() {
        let setting = Setting { rounds: 2, ..Setting::default() };
        let measures = |length| run(&graph(), length, 0.0, &setting).unwrap().measures;
        assert!((measures(Length::Variable(8)) - 8.0).abs() < 0.5);
        assert_eq!(measures(Length::Interpolation(4.0)), 1.0);
        let (fixed, improved) = (measures(Length::Fixed(8.0)), measures(Length::ImprovedFixed(4.0)));
        assert!((7.0..10.0).contains(&fixed) && (3.0..8.0).contains(&improved), "{fixed} {improved}");
    }
}
