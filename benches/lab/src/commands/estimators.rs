//! `archive-lab estimators`: how accurately change rates are estimated.

use std::process::ExitCode;

use anyhow::ensure;
use archive_lab::estimators::{RateEstimator, Setting, Spacing, study};
use serde::Serialize;

use crate::output;

/// Compare estimators of change rates on simulated pages
///
/// Pages change as Poisson processes of known rate and are visited one day apart on average. Bias is the mean estimate
/// divided by the true rate, minus 1; error is the root mean square of the same; coverage is the share of true rates
/// within the stated interval, nominally 90 %.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive-lab estimators
  archive-lab estimators --rate 0.1,0.5,2 --visits 100 --json")]
pub(crate) struct Args {
    /// True rates, in changes per day; all are equally frequent
    #[arg(long, value_name = "RATE", value_delimiter = ',', default_value = "0.02,0.1,0.5,2,5")]
    rate: Vec<f64>,
    /// Number of pages of each rate
    #[arg(long, value_name = "N", default_value_t = 2000)]
    pages: usize,
    /// Number of visits of each page
    #[arg(long, value_name = "N", default_value_t = 20)]
    visits: usize,
    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    rng: u64,
    /// JSON lines
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Line {
    visits: &'static str,
    estimator: &'static str,
    rate: f64,
    bias: f64,
    error: f64,
    coverage: Option<f64>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    ensure!(args.rate.iter().all(|rate| *rate > 0.0 && rate.is_finite()), "--rate must be positive");
    ensure!(args.pages > 0 && args.visits > 0, "--pages and --visits must be positive");
    let setting = Setting { pages: args.pages, visits: args.visits, seed: args.rng };
    let mut table = output::table(&["visits", "estimator", "rate", "bias", "error", "coverage"]);
    for spacing in [Spacing::Regular, Spacing::Irregular] {
        for result in study(&RateEstimator::ALL, &setting, spacing, &args.rate) {
            let line = Line {
                visits: spacing.name(),
                estimator: result.estimator.name(),
                rate: result.rate,
                bias: result.bias,
                error: result.error,
                coverage: result.coverage,
            };
            if args.json {
                output::json_line(&line)?;
            }
            table.add_row([
                line.visits.to_owned(),
                line.estimator.to_owned(),
                line.rate.to_string(),
                format!("{:+.3}", line.bias),
                format!("{:.3}", line.error),
                line.coverage.map_or_else(String::new, |coverage| format!("{coverage:.3}")),
            ]);
        }
    }
    if !args.json {
        output::print(table, &[2, 3, 4, 5])?;
    }
    Ok(ExitCode::SUCCESS)
}
