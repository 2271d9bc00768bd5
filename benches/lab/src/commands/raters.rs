//! `archive-lab raters`: raters and importance, judged against a known truth.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use archive_lab::plot::{Axis, Chart, Series};
use archive_lab::raters::{self, Judged, Of, Score, Settings};
use archive_lab::repeated;
use rayon::prelude::*;
use serde::Serialize;

use crate::output;

/// Evaluate importance against raters, as the OPIC paper did, on a web with known truth
///
/// The web has sites with a quality of 1 to 4; a page has the quality of its site, or, with a probability of 1/4,
/// the next one. Links between sites lead to a page as often as on the test web, times (quality of the page / 4) to the
/// power of --prefer. A rater gives the true rating, or, with the probability of their noise, one of the three other
/// ratings. The reference is the mean of all ratings; a score is the share of sites rated like it. Raters are excluded
/// from the reference that judges them; importance is turned into ratings by thresholds fitted on one half of the sites
/// and tested on the other.
///
/// First come raters of every noise together; then panels of --raters with equal noise. expected: the score expected
/// from the known truth. truth: share rated like the truth, which for the reference is also its score. ±: half the 95 %
/// interval of the mean over repetitions.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive-lab raters
  archive-lab raters --sites 300 --prefer 8 --noise 0.1,0.2,0.3 --svg raters.svg
  archive-lab raters --repeat 50 --rng 7 --json")]
pub(crate) struct Args {
    /// Number of sites
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(8..=100_000), value_name = "N")]
    sites: u32,
    /// Number of pages of all sites
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(16..=10_000_000), value_name = "N")]
    pages: u64,
    /// Preference of links for quality; 0 for none
    #[arg(long, default_value_t = 4.0, value_name = "POWER")]
    prefer: f64,
    /// Probabilities of a wrong rating
    #[arg(long, value_delimiter = ',', default_value = "0.05,0.1,0.2,0.3,0.4,0.5,0.6", value_name = "SHARE")]
    noise: Vec<f64>,
    /// Number of raters of a panel with equal noise
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=100), value_name = "N")]
    raters: u32,
    /// Number of repetitions, each with another web and other raters
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..), value_name = "N")]
    repeat: u64,
    /// Random seed
    #[arg(long, default_value_t = 1, value_name = "N")]
    rng: u64,
    /// File for a plot of the scores against noise
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// JSON lines, one per score
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Line {
    of: Of,
    /// Noise of all raters of a panel; `None` if they differ.
    panel: Option<f64>,
    judged: String,
    noise: Option<f64>,
    score: f64,
    interval: Option<f64>,
    expected: f64,
    truth: Option<f64>,
    repeat: usize,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    ensure!(
        (2..=100).contains(&args.noise.len()),
        "--noise needs 2 to 100 numbers: raters are judged by others"
    );
    ensure!(args.noise.iter().all(|noise| (0.0..=1.0).contains(noise)), "--noise must be between 0 and 1");
    ensure!((0.0..=64.0).contains(&args.prefer), "--prefer must be between 0 and 64");
    let mut noise = args.noise.clone();
    noise.sort_by(f64::total_cmp);
    let settings = Settings {
        sites: args.sites,
        pages: args.pages,
        prefer: args.prefer,
        noise,
        raters: args.raters as usize,
    };
    let run = |number: u64| raters::run(&settings, args.rng.wrapping_add(number));
    let runs: Vec<Vec<Score>> = (0..args.repeat).into_par_iter().map(run).collect::<Result<_, _>>()?;
    let lines: Vec<Line> = (0..runs[0].len()).map(|place| line(&runs, place)).collect();
    if let Some(path) = &args.svg {
        std::fs::write(path, chart(&lines).svg())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    if args.json {
        lines.iter().try_for_each(output::json_line)?;
        return Ok(ExitCode::SUCCESS);
    }
    print_mixed(&lines)?;
    output::line("\nScores on sites by the noise of all raters of a panel:")?;
    print_alike(&lines)?;
    Ok(ExitCode::SUCCESS)
}

fn line(runs: &[Vec<Score>], place: usize) -> Line {
    let of = |number: fn(&Score) -> f64| runs.iter().map(|run| number(&run[place])).collect::<Vec<f64>>();
    let first = &runs[0][place];
    Line {
        of: first.of,
        panel: first.panel,
        judged: match &first.judged {
            Judged::Rater => "rater".to_owned(),
            Judged::Reference => "reference".to_owned(),
            Judged::Alpha => "alpha".to_owned(),
            Judged::Importance(kind) => kind.clone(),
        },
        noise: first.noise,
        score: repeated::mean(&of(|score| score.score)),
        interval: repeated::half_width(&of(|score| score.score)),
        expected: repeated::mean(&of(|score| score.expected)),
        truth: first.like_truth.map(|_| repeated::mean(&of(|score| score.like_truth.unwrap_or_default()))),
        repeat: runs.len(),
    }
}

/// Prints the paper's table: raters with different noise, and importance.
fn print_mixed(lines: &[Line]) -> anyhow::Result<()> {
    let mut table = output::table(&["of", "judged", "noise", "score", "± 95 %", "expected", "truth"]);
    let share = |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |share| format!("{share:.3}"));
    for line in lines.iter().filter(|line| line.panel.is_none()) {
        table.add_row([
            match line.of {
                Of::Sites => "sites".to_owned(),
                Of::Pages => "pages".to_owned(),
            },
            line.judged.replace('_', " "),
            line.noise.map_or_else(String::new, |noise| noise.to_string()),
            share(Some(line.score)),
            share(line.interval),
            share(Some(line.expected)),
            share(line.truth),
        ]);
    }
    output::print(table, &[2, 3, 4, 5, 6])
}

/// Prints a table with one column per noise.
fn print_alike(lines: &[Line]) -> anyhow::Result<()> {
    let series = by_noise(lines);
    let noises = series.first().map(|(_, points)| points.as_slice()).unwrap_or_default();
    let mut headings = vec!["judged".to_owned()];
    headings.extend(noises.iter().map(|(noise, _)| noise.to_string()));
    let mut table = output::table(&headings.iter().map(String::as_str).collect::<Vec<_>>());
    for (name, points) in &series {
        let mut row = vec![name.replace('_', " ")];
        row.extend(points.iter().map(|(_, score)| format!("{score:.3}")));
        table.add_row(row);
    }
    output::print(table, &(1..headings.len()).collect::<Vec<_>>())
}

/// Returns, for everything that is judged, its scores in the panels of identical raters, by noise.
fn by_noise(lines: &[Line]) -> Vec<(String, Vec<(f64, f64)>)> {
    let mut series: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    for (line, noise) in lines.iter().filter_map(|line| Some((line, line.panel?))) {
        match series.iter_mut().find(|(name, _)| *name == line.judged) {
            Some((_, points)) => points.push((noise, line.score)),
            None => series.push((line.judged.clone(), vec![(noise, line.score)])),
        }
    }
    series
}

fn chart(lines: &[Line]) -> Chart {
    let mixed = lines.iter().filter(|line| line.panel.is_none() && line.of == Of::Sites);
    let own: Vec<(f64, f64)> = mixed.filter_map(|line| Some((line.noise?, line.score))).collect();
    let mut series = vec![Series { name: "rater among all".to_owned(), points: own }];
    let alike = by_noise(lines).into_iter().filter(|(name, _)| name != "alpha" && name != "reference");
    series.extend(alike.map(|(name, points)| Series {
        name: if name == "rater" { "rater among their like".to_owned() } else { name.replace('_', " ") },
        points,
    }));
    Chart {
        name: "raters".to_owned(),
        title: "Share of sites rated like the reference".to_owned(),
        x: Axis::linear("noise: probability of a wrong rating (of the rater, or of all who judge)"),
        y: Axis::linear("score"),
        series,
    }
}
