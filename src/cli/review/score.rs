//! `archive review score`: measures how far raters agree, and which numbers match their ratings.

use archive_ask::review::score::{
    Agreement, Disagreement, MEASURES, MeasureScore, RaterScore, Ratings, ReviewScores, ScoreError,
};
use archive_base::decisions::Decisions;

use super::super::options::ReadArgs;
use crate::cli::{Result, output};

/// Maximum number of sites listed on which raters differ.
const DISAGREEMENTS_MAX: usize = 10;

/// Report how well raters agree, and how well numbers such as importance match their ratings.
///
/// A rater's score is the share of sites that they rate like the mean of the others. Three thresholds turn a number
/// into ratings; they are fitted on one half of the rated sites and tested on the other. The mean and its interval are
/// over many such splits.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive review score
  archive review score --by importance --by 'captures / pages' --by html
  archive review score --json")]
pub(crate) struct Args {
    /// Number to judge: an expression on sites, as in a query; may be repeated
    #[arg(long, value_name = "EXPRESSION")]
    by: Vec<String>,
    /// Number of random splits
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    repeat: u32,
    /// Random seed of the splits
    #[arg(long, value_name = "N", default_value_t = 1)]
    rng: u64,
    #[command(flatten)]
    archive: ReadArgs,
    /// One JSON object per rater, per measure, and per site on which raters differ, and one for their agreement
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let decisions = Decisions::read(args.archive.path())?;
    if Ratings::of_sites(&decisions).sites().next().is_none() {
        refuse!("nobody has rated a site yet: `archive review set SITE --rating 4`");
    }
    let measures = if args.by.is_empty() { MEASURES.map(str::to_owned).to_vec() } else { args.by.clone() };
    let (store, access) = args.archive.open()?;
    let scores = ReviewScores::of(&store, &access, &decisions, &measures, args.repeat as usize, args.rng);
    let scores = match scores {
        Err(ScoreError::Several(measure)) => {
            refuse!("'{measure}' is more than one calculation: give --by once for each");
        }
        scores => scores?,
    };
    if args.json {
        scores.raters.iter().try_for_each(output::json_line)?;
        output::json_line(&scores.agreement)?;
        scores.measures.iter().try_for_each(output::json_line)?;
        return scores.disagreements.iter().try_for_each(output::json_line);
    }
    print_raters(scores.raters)?;
    print_agreement(&scores.agreement)?;
    print_measures(scores.measures)?;
    print_disagreements(scores.disagreements)
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

fn print_raters(raters: Vec<RaterScore>) -> Result<()> {
    let mut table = output::table(
        &["rater", "sites rated", "by others too", "like the others", "95 %", "points higher"],
        &[1, 2, 3, 4, 5],
    );
    for score in raters {
        table.add_row([
            score.rater,
            score.rated.to_string(),
            score.judged.to_string(),
            score.like_others.map_or("-".to_owned(), percent),
            score
                .interval
                .map_or("-".to_owned(), |(low, high)| format!("{} - {}", percent(low), percent(high))),
            score.higher.map_or("-".to_owned(), |points| format!("{points:+.2}")),
        ]);
    }
    output::print(&table)
}

fn print_agreement(agreement: &Agreement) -> Result<()> {
    output::line("")?;
    let Agreement { alpha_ordinal: Some(ordinal), alpha_interval: Some(interval), confusion } = agreement
    else {
        return output::line(
            "Nobody could differ: no two people have rated the same sites, or all ratings are alike.",
        );
    };
    say!("Krippendorff's alpha: {ordinal:.2} by order, {interval:.2} by distance (1: all agree)")?;
    let mut table = output::table(&["rated", "1 by another", "2", "3", "4"], &[0, 1, 2, 3, 4]);
    for (rating, row) in confusion.iter().enumerate() {
        table.add_row([(rating + 1).to_string()].into_iter().chain(row.iter().map(u64::to_string)));
    }
    output::print(&table)
}

fn print_measures(scores: Vec<MeasureScore>) -> Result<()> {
    output::line("")?;
    let mut table = output::table(
        &["measure", "sites", "like the reference", "95 % of halves", "commonest rating"],
        &[1, 2, 3, 4],
    );
    for score in scores {
        table.add_row([
            score.measure,
            score.sites.to_string(),
            percent(score.like_reference),
            format!("{} - {}", percent(score.interval.0), percent(score.interval.1)),
            percent(score.commonest),
        ]);
    }
    output::print(&table)
}

fn print_disagreements(apart: Vec<Disagreement>) -> Result<()> {
    if apart.is_empty() {
        return Ok(());
    }
    output::line("")?;
    let mut table = output::table(&["rated differently", "by"], &[]);
    for site in apart.into_iter().take(DISAGREEMENTS_MAX) {
        let by: Vec<String> = site.ratings.iter().map(|(who, rating)| format!("{who} {rating}")).collect();
        table.add_row([site.site, by.join(", ")]);
    }
    output::print(&table)
}
