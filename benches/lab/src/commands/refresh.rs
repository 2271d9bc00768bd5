//! `archive-lab refresh`: how fresh refresh policies would have kept real pages.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use archive_lab::refresh::draws::Draws;
use archive_lab::refresh::history::{self, History};
use archive_lab::refresh::policies::ReplayPolicy;
use archive_lab::refresh::replay::{Outcome, replay};
use archive_lab::refresh::settings::{self, SETTINGS};
use archive_lab::refresh::words::Words;
use archive_lab::refresh::world::{Window, World};
use chrono::{NaiveDate, NaiveTime};
use rayon::prelude::*;
use serde::Serialize;

use crate::output;

/// Replay recorded changes of real pages under refresh policies
///
/// Each policy spends the same budget of fetches on the same pages and is measured over the last three quarters of the
/// time, weighted by importance. F is the share of time in which the copy was equal to the live page; C1, C7 and C30
/// allow it to be outdated for that many days. first is F before that time, while all pages are new to the policy,
/// young F over the first 90 days of pages that appear later. age is in days, obsolescence in missed changes. captured
/// is the share of versions that were fetched, hit the share of fetches that found a change.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive-lab refresh --history curl-www.tsv.gz --start 2014-01-01 --end 2026-08-01 --dt 0.5 --beta 0.25,1,4
  archive-lab refresh --history histories/ --setting all --policy default,evh_hindex,clairvoyant --json
  archive-lab refresh --history histories/ --setting jquery,curl --policy default --words 0.5

A policy is default (the archive's own), uniform, RULE_ESTIMATE (xyleme, prop, chogm, azar, lambda, index, hindex with mle, mles, naive, lln, lm, eb,
ebmean, true), evd_index, evh_hindex, gf_hindex_naive, nutch_fifo, heritrix_fifo, storm_strict, nutch_tuned1 or
clairvoyant; _true knows the rates in hindsight; _h365 after a name makes visits decay with that half-life in days.")]
pub(crate) struct Args {
    /// File of changes (NAME.tsv.gz); several for one crawl over all of them; or a folder, whose files are replayed one
    /// by one
    #[arg(long, value_name = "PATH|DIR", required = true)]
    history: Vec<PathBuf>,
    /// File with the importance of the pages [default: NAME.importance.tsv.gz beside the history, else drawn from a
    /// Pareto distribution]
    #[arg(long, value_name = "PATH")]
    importance: Option<PathBuf>,
    /// First day
    #[arg(long, value_name = "DATE", required_unless_present = "setting")]
    start: Option<NaiveDate>,
    /// Day after the last
    #[arg(long, value_name = "DATE", required_unless_present = "setting")]
    end: Option<NaiveDate>,
    /// Days from one time of fetching to the next
    #[arg(long, value_name = "DAYS", default_value_t = 0.25)]
    dt: f64,
    /// Named windows of the histories in the folder: php, curl, mix3, …; "all" for the ten of the published tables
    #[arg(long, value_name = "NAME", value_delimiter = ',', conflicts_with_all = ["start", "end", "importance"])]
    setting: Vec<String>,
    /// Fetches per change
    #[arg(long, value_name = "B", value_delimiter = ',', default_value = "0.25,1,4")]
    beta: Vec<f64>,
    /// Names of the policies
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "default,uniform,nutch,xyleme,chogm,lambdacrawl,hindex,evh_hindex,clairvoyant"
    )]
    policy: Vec<ReplayPolicy>,
    /// Maximum number of pages of each history
    #[arg(long, value_name = "N", default_value_t = 4000)]
    pages: usize,
    /// Give each page a word for how often it changes, as in sitemaps (always to never): the true one with this
    /// probability, else any; the default policy learns what they are worth
    #[arg(long, value_name = "SHARE")]
    words: Option<f64>,
    /// Random seed of tie-breaks and words
    #[arg(long, value_name = "N", default_value_t = 1)]
    rng: u64,
    /// JSON lines
    #[arg(long)]
    json: bool,
}

/// Number of settings in the means of the published tables.
const TABULATED: usize = 10;

#[derive(Serialize)]
struct Line {
    history: String,
    pages: usize,
    changes: usize,
    days: f64,
    beta: f64,
    budget_per_day: f64,
    policy: String,
    #[serde(rename = "F")]
    freshness: f64,
    #[serde(rename = "F_first")]
    first: f64,
    #[serde(rename = "F_young")]
    young: f64,
    #[serde(rename = "C1")]
    current_1: f64,
    #[serde(rename = "C7")]
    current_7: f64,
    #[serde(rename = "C30")]
    current_30: f64,
    age: f64,
    obsolescence: f64,
    captured: f64,
    hit: f64,
    fetches: usize,
    seconds: f64,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    ensure!(args.dt > 0.0 && args.dt.is_finite(), "--dt must be a positive number of days");
    let is_share = args.words.is_none_or(|share| (0.0..=1.0).contains(&share));
    ensure!(is_share, "--words must be a share from 0 to 1");
    ensure!(args.beta.iter().all(|beta| *beta > 0.0 && beta.is_finite()), "--beta must be positive");
    let mut lines = Vec::new();
    let mut each = |name: &str, world: &World| -> anyhow::Result<()> {
        for line in replay_all(args, name, world) {
            if args.json {
                output::json_line(&line)?;
            }
            lines.push(line);
        }
        Ok(())
    };
    if args.setting.is_empty() {
        for (name, world) in windows(args)? {
            each(&name, &world?)?;
        }
    } else {
        for (name, world) in named(args)? {
            each(name, &world?)?;
        }
    }
    if !args.json {
        print_lines(&lines)?;
    }
    Ok(ExitCode::SUCCESS)
}

type Lazily<'a, N> = Box<dyn Iterator<Item = (N, anyhow::Result<World>)> + 'a>;

/// Reads the named settings one after the other.
fn named(args: &Args) -> anyhow::Result<Lazily<'_, &'static str>> {
    let [folder] = args.history.as_slice() else {
        bail!("--setting needs one --history, the folder of histories")
    };
    let mut chosen = Vec::new();
    for name in &args.setting {
        match settings::find(name) {
            Some(setting) => chosen.push(setting),
            None if name == "all" => chosen.extend(SETTINGS.iter().take(TABULATED)),
            None => bail!(
                "there is no setting {name:?}; known are {}",
                SETTINGS.map(|setting| setting.name).join(", ")
            ),
        }
    }
    Ok(Box::new(chosen.into_iter().map(|setting| (setting.name, setting.world(folder).map_err(Into::into)))))
}

/// Reads the histories of a folder one by one, or the given ones as one crawl.
fn windows(args: &Args) -> anyhow::Result<Lazily<'_, String>> {
    let (Some(start), Some(end)) = (args.start, args.end) else { bail!("--start and --end are needed") };
    ensure!(start < end, "--end must be after --start");
    let midnight = |date: NaiveDate| date.and_time(NaiveTime::MIN).and_utc().timestamp();
    let window = Window { start: midnight(start), end: midnight(end), tick: args.dt };
    let world = move |paths: &[PathBuf]| -> anyhow::Result<World> {
        let histories = paths
            .iter()
            .map(|path| Ok(History::read(path, args.importance.as_deref())?))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let parts: Vec<(&History, usize)> = histories.iter().map(|history| (history, args.pages)).collect();
        Ok(World::new(&parts, window)?)
    };
    match args.history.as_slice() {
        [folder] if folder.is_dir() => {
            let found = history::find(folder)?;
            Ok(Box::new(found.into_iter().map(move |path| (label(&path), world(&[path])))))
        }
        paths => {
            let name = paths.iter().map(|path| label(path)).collect::<Vec<_>>().join("+");
            let world = world(paths).with_context(|| format!("while reading {name}"));
            Ok(Box::new(std::iter::once((name, world))))
        }
    }
}

fn label(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.strip_suffix(".tsv.gz").unwrap_or(&name).to_owned()
}

/// Replays every budget and policy on `world`, in parallel; returns the results in the requested order.
fn replay_all(args: &Args, name: &str, world: &World) -> Vec<Line> {
    let asked: Vec<(f64, &ReplayPolicy)> =
        args.beta.iter().flat_map(|&beta| args.policy.iter().map(move |policy| (beta, policy))).collect();
    asked
        .par_iter()
        .with_max_len(1)
        .map(|&(beta, policy)| {
            let started = Instant::now();
            let budget = world.budget(beta);
            let mut draws = Draws::new(args.rng);
            let words = args.words.map(|share| Words::draw(world, share, args.rng));
            let mut built = policy.build(world, words.as_ref(), budget, &mut draws);
            let outcome = replay(world, built.as_mut(), budget, &mut draws);
            line(name, world, beta, policy, &outcome, started.elapsed().as_secs_f64())
        })
        .collect()
}

fn line(
    name: &str,
    world: &World,
    beta: f64,
    policy: &ReplayPolicy,
    outcome: &Outcome,
    seconds: f64,
) -> Line {
    let [current_1, current_7, current_30] = outcome.currency;
    Line {
        history: name.to_owned(),
        pages: world.pages.len(),
        changes: world.changes(),
        days: world.days,
        beta,
        budget_per_day: world.budget(beta),
        policy: policy.to_string(),
        freshness: outcome.freshness,
        first: outcome.first,
        young: outcome.young,
        current_1,
        current_7,
        current_30,
        age: outcome.age,
        obsolescence: outcome.obsolescence,
        captured: outcome.captured,
        hit: outcome.hits,
        fetches: outcome.fetches,
        seconds,
    }
}

fn print_lines(lines: &[Line]) -> anyhow::Result<()> {
    let mut table = output::table(&[
        "history",
        "beta",
        "policy",
        "F",
        "first",
        "young",
        "C1",
        "C7",
        "C30",
        "age",
        "obsolescence",
        "captured",
        "hit",
        "fetches",
        "seconds",
    ]);
    for line in lines {
        table.add_row([
            line.history.clone(),
            line.beta.to_string(),
            line.policy.clone(),
            format!("{:.4}", line.freshness),
            format!("{:.4}", line.first),
            format!("{:.4}", line.young),
            format!("{:.4}", line.current_1),
            format!("{:.4}", line.current_7),
            format!("{:.4}", line.current_30),
            format!("{:.2}", line.age),
            format!("{:.3}", line.obsolescence),
            format!("{:.4}", line.captured),
            format!("{:.3}", line.hit),
            line.fetches.to_string(),
            format!("{:.1}", line.seconds),
        ]);
    }
    output::print(table, &[1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14])
}
