//! `archive-lab subjects`: how accurately a site's subject is predicted from its title and URL.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use archive_lab::repeated;
use archive_lab::subjects::{self, Collection, Constants, Model, Run};
use serde::Serialize;

use crate::output;

/// Largest number of confusions listed for a model.
const CONFUSIONS_MAX: usize = 10;

/// Predict the subjects of sites from titles and URLs, evaluated by the choices of librarians
///
/// Each run learns from a random half of the sites and tests on the other; with --judge, it learns from all of
/// --selected and tests on the sites of --judge that are not among them. URLs of sites are compared without `www.` and
/// the final slash. Constants are chosen by cross-validation on the training sites.
///
/// right: share of sites for which the most probable subject is one of the librarians'. macro F1: mean over subjects.
/// ece: expected calibration error of the probability of being right, in 20 groups. seconds: time to learn and to test
/// on one thread. ±: half the 95 % interval of the mean over runs.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive-lab subjects --selected ukwa-selected.tsv.gz
  archive-lab subjects --selected ukwa-selected.tsv.gz --repeat 10 --rng 7 --json
  archive-lab subjects --selected known.tsv.gz --judge others.tsv.gz")]
pub(crate) struct Args {
    /// File of sites: a heading with primary, title and url, then tab-separated lines; may be gzipped
    #[arg(long, value_name = "FILE")]
    selected: PathBuf,
    /// File of sites to test on, in the same form
    #[arg(long, value_name = "FILE", conflicts_with_all = ["repeat", "rng"])]
    judge: Option<PathBuf>,
    /// Number of runs, each with a new draw
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    repeat: u64,
    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    rng: u64,
    /// JSON lines, one per model
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Line {
    model: &'static str,
    subjects: usize,
    learned: usize,
    judged: usize,
    repeat: usize,
    right: f64,
    right_interval: Option<f64>,
    macro_f1: f64,
    macro_f1_interval: Option<f64>,
    ece: f64,
    seconds: f64,
    seconds_to_choose: f64,
    /// The constants of each run.
    constants: Vec<Constants>,
    confusions: Vec<Confusion>,
}

#[derive(Serialize)]
struct Confusion {
    is: String,
    taken_for: String,
    /// Share of the judged sites.
    share: f64,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut collection = Collection::default();
    let learned = add(&mut collection, &args.selected)?;
    let draws: Vec<(Vec<usize>, Vec<usize>)> = match &args.judge {
        Some(path) => vec![(learned.collect(), add(&mut collection, path)?.collect())],
        None => (0..args.repeat).map(|number| collection.halves(args.rng.wrapping_add(number))).collect(),
    };
    let mut runs: Vec<Vec<Run>> = Vec::new();
    for (learned, judged) in &draws {
        runs.push(subjects::run(&collection, learned, judged)?);
    }
    let sizes = (draws[0].0.len(), draws[0].1.len());
    let of = |place: usize| runs.iter().map(|run| &run[place]).collect::<Vec<&Run>>();
    let lines: Vec<Line> = (0..Model::ALL.len()).map(|place| line(&collection, &of(place), sizes)).collect();
    if args.json {
        lines.iter().try_for_each(output::json_line)?;
    } else {
        print(&lines)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn add(collection: &mut Collection, path: &Path) -> anyhow::Result<Range<usize>> {
    collection.add(path).with_context(|| path.display().to_string())
}

fn line(collection: &Collection, runs: &[&Run], (learned, judged): (usize, usize)) -> Line {
    let of = |measure: fn(&Run) -> f64| runs.iter().map(|run| measure(run)).collect::<Vec<f64>>();
    let mean = |measure: fn(&Run) -> f64| repeated::mean(&of(measure));
    let mut confusions: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for (pair, count) in runs.iter().flat_map(|run| &run.confusions) {
        *confusions.entry(*pair).or_default() += count;
    }
    let mut confusions: Vec<_> = confusions.into_iter().collect();
    confusions.sort_by_key(|(pair, count)| (std::cmp::Reverse(*count), *pair));
    let all = (judged * runs.len()) as f64;
    let confusion = |((is, taken_for), count): ((usize, usize), usize)| Confusion {
        is: collection.subjects[is].clone(),
        taken_for: collection.subjects[taken_for].clone(),
        share: count as f64 / all,
    };
    Line {
        model: runs[0].model.name(),
        subjects: collection.subjects.len(),
        learned,
        judged,
        repeat: runs.len(),
        right: mean(|run| run.right),
        right_interval: repeated::half_width(&of(|run| run.right)),
        macro_f1: mean(|run| run.macro_f1),
        macro_f1_interval: repeated::half_width(&of(|run| run.macro_f1)),
        ece: mean(|run| run.ece),
        seconds: mean(|run| run.seconds),
        seconds_to_choose: mean(|run| run.seconds_to_choose),
        constants: runs.iter().map(|run| run.constants).collect(),
        confusions: confusions.into_iter().take(CONFUSIONS_MAX).map(confusion).collect(),
    }
}

fn print(lines: &[Line]) -> anyhow::Result<()> {
    let mut table = output::table(&["model", "right", "± 95 %", "macro F1", "± 95 %", "ece", "seconds"]);
    let half = |half: Option<f64>| half.map_or_else(|| "-".to_owned(), |half| format!("{half:.3}"));
    for line in lines {
        table.add_row([
            line.model.replace('_', " "),
            format!("{:.3}", line.right),
            half(line.right_interval),
            format!("{:.3}", line.macro_f1),
            half(line.macro_f1_interval),
            format!("{:.3}", line.ece),
            format!("{:.2}", line.seconds),
        ]);
    }
    output::print(table, &[1, 2, 3, 4, 5, 6])?;
    let Some(last) = lines.last() else { return Ok(()) };
    output::line(&format!("\nMost often confused by `{}`, of 1,000 sites:", last.model))?;
    let mut table = output::table(&["is", "taken for", "sites"]);
    for confusion in &last.confusions {
        table.add_row([&confusion.is, &confusion.taken_for, &format!("{:.1}", 1000.0 * confusion.share)]);
    }
    output::print(table, &[2])
}
