//! `archive-lab focus`: which order finds the pages of a topic early.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use archive_books::topics::{CLASS, weighted};
use archive_lab::focus::{self, FocusOrder, Measures, Replay, Web};
use archive_lab::repeated;
use archive_math::focus::{Knowledge, Model};
use rayon::prelude::*;
use serde::Serialize;

use crate::output;

/// Replay focused crawls over an archive whose pages have labels
///
/// The archive serves as the web: a URL that is not in it is a dead end. Page classes are learned from the groups of
/// --train; then each group of --crawl is crawled separately, once per order, topic and repetition. The output has
/// means over groups and repetitions: recall averaged over the crawl of all reachable pages (auc), the share of them
/// fetched when 50 and 90 % of the topic's pages were, and recall after 10 %.
///
/// Orders: learned, soft, hard, tunnel:N, context, reinforced, fish, shark, parent-anchor, ucb, laser, opic, backlinks,
/// breadth, random, and clairvoyant, which knows the labels.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folder of the archive
    #[arg(long, value_name = "DIR")]
    archive: PathBuf,
    /// File of labels: a heading, then lines of URL, class and group, tab-separated
    #[arg(long, value_name = "FILE")]
    labels: PathBuf,
    /// Groups to learn from
    #[arg(long, value_delimiter = ',', required = true, value_name = "GROUP")]
    train: Vec<String>,
    /// Groups to crawl
    #[arg(long, value_delimiter = ',', required = true, value_name = "GROUP")]
    crawl: Vec<String>,
    /// Classes to look for
    #[arg(long, value_delimiter = ',', required = true, value_name = "CLASS")]
    topic: Vec<String>,
    /// Crawl orders [default: all]
    #[arg(long, value_delimiter = ',', value_name = "ORDER")]
    order: Vec<FocusOrder>,
    /// File of words: lines of a class and a text, tab-separated; topics are made of these words alone, and of the
    /// examples only the orders context and reinforced learn
    #[arg(long, value_name = "FILE")]
    words: Option<PathBuf>,
    /// Classifier: logistic or bayes
    #[arg(long, default_value = "logistic", value_name = "MODEL")]
    model: Model,
    /// Class of the pages from which crawls start
    #[arg(long, default_value = "department", value_name = "CLASS")]
    seeds: String,
    /// Number of repetitions with rng, rng + 1, …; the mean is printed
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..), value_name = "N")]
    repeat: u64,
    /// Random seed of tie-breaks
    #[arg(long, default_value_t = 1, value_name = "N")]
    rng: u64,
    /// Also print a line for each crawled group
    #[arg(long)]
    by_group: bool,
    /// JSON lines
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Line<'a> {
    order: String,
    topic: &'a str,
    group: Option<&'a str>,
    train: &'a [String],
    repeat: u64,
    auc: f64,
    /// Half the width of the 95 % interval of auc: over groups, or over the repetitions of one. `None` for a single
    /// crawl.
    auc_interval: Option<f64>,
    share_50: f64,
    share_90: f64,
    recall_10: f64,
    pages: f64,
    targets: f64,
    microseconds_a_link: f64,
    /// Bytes that the order stores per waiting page, at the maximum of waiting pages; `None` if the order does not
    /// count them.
    bytes_a_page: Option<f64>,
}

/// A group to crawl.
struct Crawled {
    group: usize,
    seeds: Vec<u32>,
    reachable: Vec<u32>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let web = focus::read(&args.archive, &args.labels)
        .with_context(|| format!("cannot read the web of {}", args.archive.display()))?;
    let groups = places("group", &web.groups, &args.train)?;
    let topics = places("class", &web.classes, &args.topic)?;
    let seeds = places("class", &web.classes, std::slice::from_ref(&args.seeds))?;
    let crawled = places("group", &web.groups, &args.crawl)?
        .into_iter()
        .map(|group| crawled(&web, group, &seeds))
        .collect::<anyhow::Result<Vec<_>>>()?;
    if let Some(both) = crawled.iter().find(|crawled| groups.contains(&crawled.group)) {
        bail!("{} is in --train and --crawl: what was learned from cannot be judged", web.groups[both.group]);
    }
    let examples = web.examples(&groups);
    let classes = |knowledge: &Knowledge| -> Vec<Vec<f64>> {
        web.pages.par_iter().map(|page| knowledge.page(&page.said())).collect()
    };
    // One model knows all classes, unless each topic is words of its own.
    let models: Vec<(Arc<Knowledge>, Vec<Vec<f64>>, usize)> = match &args.words {
        Some(file) => {
            let model = |&class: &usize| -> anyhow::Result<_> {
                let model = of_words(file, &web.classes[class])?;
                let classes = classes(&model);
                Ok((Arc::new(model), classes, CLASS))
            };
            topics.iter().map(model).collect::<Result<_, _>>()?
        }
        None => {
            let knowledge = Arc::new(Knowledge::learn(&examples, web.classes.len(), args.model));
            let classes = classes(&knowledge);
            topics.iter().map(|&class| (Arc::clone(&knowledge), classes.clone(), class)).collect()
        }
    };
    let kinds = if args.order.is_empty() { FocusOrder::all() } else { args.order.clone() };
    let mut table = output::table(&HEADINGS);
    for kind in kinds {
        for (&class, (knowledge, classes, known_as)) in topics.iter().zip(&models) {
            let measured: Vec<(usize, Measures)> = crawled
                .par_iter()
                .enumerate()
                .flat_map(|(at, crawled)| {
                    let replay = Replay {
                        web: &web,
                        knowledge,
                        examples: &examples,
                        classes,
                        reachable: &crawled.reachable,
                        seeds: &crawled.seeds,
                        class,
                        known_as: *known_as,
                    };
                    let rngs = args.rng..args.rng.saturating_add(args.repeat);
                    rngs.filter_map(|rng| Some((at, replay.run(kind, rng)?))).collect::<Vec<_>>()
                })
                .collect();
            let mut lines = vec![line(args, kind, &web.classes[class], None, &measured)?];
            for (at, crawled) in crawled.iter().enumerate().filter(|_| args.by_group) {
                let own: Vec<_> = measured.iter().copied().filter(|(group, _)| *group == at).collect();
                lines.push(line(args, kind, &web.classes[class], Some(&web.groups[crawled.group]), &own)?);
            }
            for line in lines {
                if args.json {
                    output::json_line(&line)?;
                } else {
                    table.add_row(row(&line));
                }
            }
        }
    }
    if !args.json {
        output::print(table, &[3, 4, 5, 6, 7, 8, 9, 10, 11])?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the model of a topic that is known by its words in a file.
fn of_words(file: &Path, topic: &str) -> anyhow::Result<Knowledge> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let mut lines = text.lines().filter_map(|line| line.split_once('\t'));
    let (_, words) = lines.find(|(class, _)| *class == topic).with_context(|| {
        format!("{} has no line of the class {topic}, a tab and its words", file.display())
    })?;
    Ok(Knowledge::of_words(&weighted(words, &[])))
}

/// Returns the indices of `names` among the names in the labels.
fn places(what: &str, known: &[String], names: &[String]) -> anyhow::Result<Vec<usize>> {
    let place = |name: &String| {
        let place = known.iter().position(|known| known == name);
        place
            .with_context(|| format!("no page has the {what} `{name}`: the labels have {}", known.join(", ")))
    };
    names.iter().map(place).collect()
}

fn crawled(web: &Web, group: usize, seeds: &[usize]) -> anyhow::Result<Crawled> {
    let is_seed = |page: &&u32| {
        web.pages[**page as usize].label.is_some_and(|label| label.1 == group && seeds.contains(&label.0))
    };
    let pages: Vec<u32> = (0..web.pages.len() as u32).collect();
    let seeds: Vec<u32> = pages.iter().filter(is_seed).copied().collect();
    if seeds.is_empty() {
        bail!("{} has no page to begin with: name the class of such pages with --seeds", web.groups[group]);
    }
    let reachable = web.reachable(group, &seeds);
    Ok(Crawled { group, seeds, reachable })
}

fn line<'a>(
    args: &'a Args,
    kind: FocusOrder,
    topic: &'a str,
    group: Option<&'a str>,
    measured: &[(usize, Measures)],
) -> anyhow::Result<Line<'a>> {
    if measured.is_empty() {
        bail!("no page of {topic} can be reached in {}", group.unwrap_or("any group of --crawl"));
    }
    let count = measured.len() as f64;
    let mean =
        |of: fn(&Measures) -> f64| measured.iter().map(|(_, measures)| of(measures)).sum::<f64>() / count;
    let auc = mean(|measures| measures.auc);
    Ok(Line {
        order: kind.to_string(),
        topic,
        group,
        train: &args.train,
        repeat: args.repeat,
        auc,
        auc_interval: interval(measured),
        share_50: mean(|measures| measures.share_50),
        share_90: mean(|measures| measures.share_90),
        recall_10: mean(|measures| measures.recall_10),
        pages: mean(|measures| measures.pages as f64),
        targets: mean(|measures| measures.targets as f64),
        microseconds_a_link: 1e6 * mean(|measures| measures.seconds)
            / mean(|measures| measures.links as f64).max(1.0),
        bytes_a_page: measured[0]
            .1
            .bytes_a_page
            .map(|_| mean(|measures| measures.bytes_a_page.unwrap_or_default())),
    })
}

/// Repetitions in one group are not independent samples: with several groups, the means of the groups count.
fn interval(measured: &[(usize, Measures)]) -> Option<f64> {
    let aucs = |of: &[(usize, Measures)]| of.iter().map(|(_, measures)| measures.auc).collect::<Vec<f64>>();
    let mut values: Vec<f64> =
        measured.chunk_by(|a, b| a.0 == b.0).map(|group| repeated::mean(&aucs(group))).collect();
    if values.len() == 1 {
        values = aucs(measured);
    }
    repeated::half_width(&values)
}

const HEADINGS: [&str; 12] = [
    "order",
    "topic",
    "group",
    "auc",
    "± 95 %",
    "50 %",
    "90 %",
    "at 10 %",
    "pages",
    "targets",
    "µs a link",
    "bytes a page",
];

fn row(line: &Line<'_>) -> Vec<String> {
    let mut row = vec![line.order.clone(), line.topic.to_owned(), line.group.unwrap_or("all").to_owned()];
    row.push(format!("{:.3}", line.auc));
    row.push(line.auc_interval.map_or_else(|| "-".to_owned(), |half| format!("{half:.3}")));
    row.extend([line.share_50, line.share_90, line.recall_10].map(|share| format!("{share:.3}")));
    row.extend([line.pages, line.targets, line.microseconds_a_link].map(|number| format!("{number:.1}")));
    row.push(line.bytes_a_page.map_or_else(|| "-".to_owned(), |bytes| format!("{bytes:.0}")));
    row
}
