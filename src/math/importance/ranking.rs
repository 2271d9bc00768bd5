//! All offline methods by name, with timing; `archive rank` runs them.

use std::fmt;
use std::str::FromStr;
use std::time::Instant;

use super::Graph;
use super::rank::{Damping, Dangling, Harmonic, Matrix, PageRank, Power, RankError, Ranking, hits};

/// A method; its name is what the command line takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// PageRank by the fast solver, with a proven error bound.
    PageRank,
    /// The fixed point of OPIC, to which the crawler's estimates converge.
    Opic,
    /// The random walk by plain iteration, as printed in Xyleme.
    Walk,
    /// Xyleme's interest PR': the walk on the inverse graph, starting from the chosen pages.
    Interest,
    /// The second form PR'': the importance of the chosen pages is both personalisation and start vector.
    InterestOfImportant,
    /// Like `Interest`, with the matrix exactly as printed in the paper.
    InterestPrinted,
    /// Importance and interest, both with Xyleme's factor r.
    Combined,
    /// A page is important if important pages link to it; all links count the same.
    Links,
    /// Kleinberg's symmetric matrix.
    Symmetric,
    /// Hubs and authorities.
    Hits,
    /// Harmonic centrality.
    Harmonic,
}

const METHODS: [(&str, Method); 11] = [
    ("pagerank", Method::PageRank),
    ("opic", Method::Opic),
    ("walk", Method::Walk),
    ("interest", Method::Interest),
    ("interest-of-important", Method::InterestOfImportant),
    ("interest-printed", Method::InterestPrinted),
    ("combined", Method::Combined),
    ("links", Method::Links),
    ("symmetric", Method::Symmetric),
    ("hits", Method::Hits),
    ("harmonic", Method::Harmonic),
];

/// The text is not the name of a method.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown method '{0}'; valid methods are {names}", names = METHODS.map(|(name, _)| name).join(", "))]
pub struct UnknownMethod(String);

impl Method {
    /// Whether the method has a damping to choose: `opic` has one for each page, the others jump nowhere.
    #[must_use]
    pub fn has_damping(self) -> bool {
        !matches!(self, Self::Opic | Self::Links | Self::Symmetric | Self::Hits | Self::Harmonic)
    }
}

impl FromStr for Method {
    type Err = UnknownMethod;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = METHODS.iter().find(|(name, _)| *name == text);
        found.map(|&(_, method)| method).ok_or_else(|| UnknownMethod(text.to_owned()))
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = METHODS.iter().find(|(_, method)| method == self).map_or("", |(name, _)| name);
        f.write_str(name)
    }
}

/// The parameters of a computation.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The method.
    pub method: Method,
    /// Damping factor, called d or c in the papers.
    pub damping: f64,
    /// Error tolerance; its meaning depends on the method.
    pub tolerance: f64,
    /// Maximum number of iterations.
    pub iterations_max: u32,
    /// Number of threads.
    pub threads: usize,
    /// A weight for each page: jump targets, or the pages of interest (XML, the result of a query).
    pub chosen: Option<&'a [f64]>,
    /// Whether to restore lost rank by Xyleme's factor r instead of sending it to the jump targets.
    pub renormalise: bool,
    /// Whether to iterate A + I.
    pub add_identity: bool,
    /// For harmonic centrality: number of start pages, if not all.
    pub samples: Option<usize>,
}

/// A column of values, with the time it took.
#[derive(Clone, Debug)]
pub struct Column {
    /// `pagerank`, `interest`, `authority`, …
    pub name: &'static str,
    /// The values and their convergence.
    pub ranking: Ranking,
    /// Time for laying out the graph, before iterating.
    pub prepare_seconds: f64,
    /// Time for iterating.
    pub seconds: f64,
}

/// Why a computation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RankingError {
    /// The method rejects its parameters.
    #[error(transparent)]
    Rank(#[from] RankError),
    /// Interest needs chosen pages.
    #[error("the method {0} needs the pages of interest (--chosen)")]
    NothingChosen(Method),
    /// Threads cannot be started.
    #[error("cannot start threads: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
}

impl Request<'_> {
    /// Computes the columns of the method. It consumes the graph, to hold as few copies in memory as possible.
    ///
    /// # Errors
    /// If parameters do not fit the method.
    pub fn run(&self, graph: Graph) -> Result<Vec<Column>, RankingError> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads.max(1)).build()?;
        pool.install(|| self.columns(graph))
    }

    fn columns(&self, graph: Graph) -> Result<Vec<Column>, RankingError> {
        let chosen = || self.chosen.ok_or(RankingError::NothingChosen(self.method));
        Ok(match self.method {
            Method::PageRank => vec![self.page_rank("pagerank", Damping::Constant(self.damping), graph)?],
            Method::Opic => vec![self.page_rank("opic", Damping::OneMoreLink, graph)?],
            Method::Walk => vec![timed("walk", || self.power(Matrix::Walk).run(&graph))?],
            Method::Links | Method::Symmetric => {
                let links = self.method == Method::Links;
                let (name, matrix) =
                    if links { ("links", Matrix::Links) } else { ("symmetric", Matrix::Symmetric) };
                vec![timed(name, || Power { damping: 1.0, ..self.power(matrix) }.run(&graph))?]
            }
            Method::Interest | Method::InterestPrinted => {
                let printed = self.method == Method::InterestPrinted;
                let matrix = if printed { Matrix::InversePrinted } else { Matrix::Inverse };
                let power = Power { personalisation: Some(chosen()?), ..self.power(matrix) };
                vec![timed("interest", || power.run(&graph))?]
            }
            Method::InterestOfImportant => self.interest_of_important(&graph, chosen()?)?,
            Method::Combined => {
                let power = |matrix| Power { dangling: Dangling::Renormalised, ..self.power(matrix) };
                let interest = Power { personalisation: Some(chosen()?), ..power(Matrix::Inverse) };
                let importance = timed("importance", || power(Matrix::Walk).run(&graph))?;
                vec![importance, timed("interest", || interest.run(&graph))?]
            }
            Method::Hits => {
                let start = Instant::now();
                let (authorities, hubs) = hits(&graph, self.tolerance, self.iterations_max);
                let seconds = start.elapsed().as_secs_f64();
                let column = |name, ranking| Column { name, ranking, prepare_seconds: 0.0, seconds };
                vec![column("authority", authorities), column("hub", hubs)]
            }
            Method::Harmonic => {
                let harmonic = Harmonic { samples: self.samples };
                vec![timed("harmonic", || Ok(harmonic.run(&graph)))?]
            }
        })
    }

    fn page_rank(&self, name: &'static str, damping: Damping, graph: Graph) -> Result<Column, RankError> {
        let options = PageRank {
            damping,
            tolerance: self.tolerance,
            iterations_max: self.iterations_max,
            threads: self.threads,
            personalisation: self.chosen,
        };
        let start = Instant::now();
        let prepared = options.prepare(graph)?;
        let prepare_seconds = start.elapsed().as_secs_f64();
        Ok(Column { prepare_seconds, ..timed(name, || options.solve(&prepared))? })
    }

    fn interest_of_important(&self, graph: &Graph, chosen: &[f64]) -> Result<Vec<Column>, RankError> {
        let importance = timed("importance", || self.power(Matrix::Walk).run(graph))?;
        let values = importance.ranking.values.iter().zip(chosen);
        let important: Vec<f64> =
            values.map(|(&value, &chosen)| if chosen > 0.0 { value } else { 0.0 }).collect();
        let power = Power {
            personalisation: Some(&important),
            start: Some(&important),
            ..self.power(Matrix::Inverse)
        };
        let interest = timed("interest", || power.run(graph))?;
        Ok(vec![importance, interest])
    }

    fn power(&self, matrix: Matrix) -> Power<'_> {
        let stochastic = matches!(matrix, Matrix::Walk | Matrix::Inverse);
        Power {
            matrix,
            damping: self.damping,
            personalisation: if matrix == Matrix::Walk && self.method == Method::Walk {
                self.chosen
            } else {
                None
            },
            start: None,
            dangling: if stochastic && !self.renormalise {
                Dangling::Personalised
            } else {
                Dangling::Renormalised
            },
            add_identity: self.add_identity,
            tolerance: self.tolerance,
            iterations_max: self.iterations_max,
        }
    }
}

/// Returns the column of a method that needs no preparation.
fn timed(name: &'static str, run: impl FnOnce() -> Result<Ranking, RankError>) -> Result<Column, RankError> {
    let start = Instant::now();
    let ranking = run()?;
    Ok(Column { name, ranking, prepare_seconds: 0.0, seconds: start.elapsed().as_secs_f64() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graphs::{self, test_data};

    fn request(method: Method) -> Request<'static> {
        Request {
            method,
            damping: 0.85,
            tolerance: 1e-10,
            iterations_max: 5000,
            threads: 2,
            chosen: None,
            renormalise: false,
            add_identity: false,
            samples: None,
        }
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for (name, method) in METHODS {
            assert_eq!(name.parse::<Method>().unwrap(), method);
            assert_eq!(method.to_string(), name);
        }
        assert!("rank".parse::<Method>().is_err());
    }

    #[test]
    fn every_method_ranks_a_real_crawl() {
        let Some(data) = test_data("graphs/harvard500") else { return };
        let graph = graphs::read(&data).unwrap().graph;
        let chosen: Vec<f64> = (0..graph.pages()).map(|page| f64::from(u8::from(page % 10 == 0))).collect();
        for (_, method) in METHODS {
            let request = Request { chosen: Some(&chosen), ..request(method) };
            let columns = request.run(graph.clone()).unwrap();
            for column in columns {
                assert_eq!(column.ranking.values.len(), 500, "{method}");
                assert!(column.ranking.values.iter().all(|value| (0.0..1e6).contains(value)), "{method}");
                assert!(column.ranking.residual <= 1e-10 || method == Method::Harmonic, "{method}");
            }
        }
        assert!(matches!(request(Method::Interest).run(graph), Err(RankingError::NothingChosen(_))));
    }

    #[test]
    fn two_ways_agree_on_a_real_crawl() {
        let Some(data) = test_data("graphs/wb-cs.stanford") else { return };
        let graph = graphs::read(&data).unwrap().graph;
        let fast = request(Method::PageRank).run(graph.clone()).unwrap();
        let plain = Request { tolerance: 1e-11, ..request(Method::Walk) }.run(graph).unwrap();
        let difference: f64 =
            fast[0].ranking.values.iter().zip(&plain[0].ranking.values).map(|(a, b)| (a - b).abs()).sum();
        assert!(fast[0].ranking.residual <= 1e-10);
        assert!(difference < 2e-10, "{difference:e}");
    }
}
