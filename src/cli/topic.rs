//! `archive topic`: topics that a crawl can look for, learned from examples.

mod examples;

use std::collections::HashSet;
use std::path::PathBuf;

use archive::jobs;
use archive_base::files::{self, WholeFile};
use archive_books::topics::{self, About, Judged, LabelledDocument, Leaf, Lesson, judge, learn};
use archive_choose::{CrawlEnd, CrawlPolicy};
use archive_math::focus::Model;
use archive_storage::Store;
use chrono::Utc;
use serde::Serialize;

use self::examples::{Examples, Source};
use super::options::ArchiveArgs;
use super::output::{self, Listing};
use super::progress::harvest;
use super::{During, Result, input, usage};

/// Maximum number of examples shown.
const EXAMPLES_SHOWN: usize = 5;

/// Maximum number of wrongly classified pages shown of each kind.
const WRONG_SHOWN: usize = 10;

/// Manage topics learned from examples; `archive crawl --topic NAME` fetches their pages first.
///
/// A topic gives each page a probability of belonging to it: topic(NAME) in queries.
#[derive(clap::Subcommand)]
#[command(after_help = "Examples:
  archive topic learn maps --from urls.txt
  archive topic learn maps --where 'page rating >= 3 and collections = \"maps\"' --against 'page rating < 2'
  archive topic learn maps --words 'old maps'
  archive topic learn maps --description maps.txt          # works before anything is archived
  archive topic learn maps --taxonomy subjects.txt
  archive topic show maps
  archive topic test maps --from others.txt
  archive topic export maps > maps.topic
  archive topic import maps.topic --name old-maps
  archive query 'page topic(maps) > 0.8 order by topic(maps) desc limit 20'
  archive crawl --seeds list.txt --topic maps")]
pub(crate) enum Command {
    Learn(LearnTopic),
    Test(TestTopic),
    /// List all topics
    List(ListTopics),
    Show(ShowTopic),
    Export(ExportTopic),
    Import(ImportTopic),
    /// Remove a topic
    Remove(RemoveTopic),
}

/// Learn a topic from pages of the archive; a topic of the same name is replaced.
///
/// As long as the archive has fewer than five such pages, or five others, the topic is made of words alone: those of
/// --words and --description, of the URLs of --from, of the texts that --where looks for, and of the pages found. It can
/// be crawled for at once; learn it again when pages are there.
#[derive(clap::Args)]
pub(crate) struct LearnTopic {
    /// Name of the topic: lower-case letters, digits and -
    name: String,
    /// Classifier: logistic (regression) or bayes (naive)
    #[arg(long, default_value = "logistic", value_name = "MODEL")]
    model: Model,
    #[command(flatten)]
    examples: Examples,
}

/// Report how well a topic recognises pages that it was not learned from.
#[derive(clap::Args)]
pub(crate) struct TestTopic {
    /// Name of the topic
    name: String,
    #[command(flatten)]
    examples: Examples,
}

#[derive(clap::Args)]
pub(crate) struct ListTopics {
    #[command(flatten)]
    archive: ArchiveArgs,
    /// One JSON object per topic
    #[arg(long)]
    json: bool,
}

/// Show a topic: its strongest words, its examples, and how well it recognises them (cross-validated).
#[derive(clap::Args)]
pub(crate) struct ShowTopic {
    /// Name of the topic
    name: String,
    #[command(flatten)]
    archive: ArchiveArgs,
    /// One JSON object, with all examples
    #[arg(long)]
    json: bool,
}

/// Write a topic to a file that another archive can import. It names the topic's examples and its strongest words.
#[derive(clap::Args)]
pub(crate) struct ExportTopic {
    /// Name of the topic
    name: String,
    /// File to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    archive: ArchiveArgs,
}

/// Take over a topic from a file of `archive topic export`; a topic of the same name is replaced.
#[derive(clap::Args)]
pub(crate) struct ImportTopic {
    /// File of the topic, '-' for standard input
    file: PathBuf,
    /// New name of the topic [default: the name that it had]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    archive: ArchiveArgs,
}

#[derive(clap::Args)]
pub(crate) struct RemoveTopic {
    /// Name of the topic
    name: String,
    #[command(flatten)]
    archive: ArchiveArgs,
}

pub(crate) fn run(command: &Command) -> Result<()> {
    match command {
        Command::Learn(args) => run_learn(args),
        Command::Test(args) => run_test(args),
        Command::List(args) => list(args),
        Command::Show(args) => show(args),
        Command::Export(args) => export(args),
        Command::Import(args) => import(args),
        Command::Remove(args) => Ok(topics::remove(&args.archive.path, &args.name)?),
    }
}

fn run_learn(args: &LearnTopic) -> Result<()> {
    let name = topics::check_name(&args.name).map_err(|error| usage(error.to_string()))?;
    let examples = &args.examples;
    let opened = examples.archive_if_any()?;
    let Source { lesson, text } = examples.read(opened.as_ref(), &HashSet::new())?;
    let (origin, now) = (examples.origin(), Utc::now());
    let topic = match &opened {
        Some((store, _)) if !lesson.is_too_short() || !lesson.branches.is_empty() => {
            learn(store, name, &origin, &lesson, args.model, now)?
        }
        _ => {
            let Lesson { positives, negatives, .. } = &lesson;
            note!(
                "{} of the topic and {} in the archive: too few to learn from, so the topic is made of words alone; learn it \
                 again when more are archived",
                output::count(positives.len() as u64, "page"),
                output::count(negatives.len() as u64, "other page"),
            );
            topics::of_words(name, &origin, &text, positives, negatives, now)?
        }
    };
    topic.keep(examples.archive.path())?;
    if examples.json { output::json_line(&topic.about) } else { print(&topic.about) }
}

/// Maximum bytes of a topic's file.
const TOPIC_BYTES_MAX: u64 = topics::FILE_BYTES_MAX;

fn export(args: &ExportTopic) -> Result<()> {
    // The file as it is, once it has been checked.
    topics::get(&args.archive.path, &args.name)?;
    let path = topics::file(&args.archive.path, &args.name)?;
    let bytes = files::read(&path, TOPIC_BYTES_MAX).within(format!("cannot read {}", path.display()))?;
    match &args.output {
        Some(file) => {
            WholeFile::replace(file, &bytes).within(format!("cannot write {}", file.display()))?;
            Ok(())
        }
        None => output::content(&bytes),
    }
}

fn import(args: &ImportTopic) -> Result<()> {
    let bytes = input::read(&args.file, TOPIC_BYTES_MAX)?;
    let topic = topics::import(&args.archive.path, &args.file, &bytes, args.name.as_deref())?;
    print(&topic.about)
}

fn run_test(args: &TestTopic) -> Result<()> {
    let examples = &args.examples;
    let topic = topics::get(examples.archive.path(), &args.name)?;
    let opened = examples.archive.open()?;
    let known = topic.about.examples.iter().chain(&topic.about.against);
    let known: HashSet<&str> = known.map(String::as_str).collect();
    let Lesson { positives, negatives, .. } = examples.read(Some(&opened), &known)?.lesson;
    if positives.is_empty() && negatives.is_empty() {
        fail!("all of these pages are examples that {} was learned from", args.name);
    }
    let (judged, probabilities) = judge(&topic, &positives, &negatives);
    let (of_topic, of_others) = probabilities.split_at(positives.len());
    let mut missed = wrong(&positives, of_topic, |p| p < topics::RELEVANT);
    missed.sort_by(|a, b| a.probability.total_cmp(&b.probability));
    let mut taken = wrong(&negatives, of_others, |p| p >= topics::RELEVANT);
    taken.sort_by(|a, b| b.probability.total_cmp(&a.probability));
    [&mut missed, &mut taken].into_iter().for_each(|wrong| wrong.truncate(WRONG_SHOWN));
    if examples.json {
        return output::json_line(&object! {
            topic: &args.name,
            #[serde(flatten)] judged: &judged,
            missed,
            taken,
        });
    }
    output::print(&quality(&judged))?;
    for (wrong, heading) in [
        (missed, "pages of the topic that it takes for others"),
        (taken, "others that it takes for pages of the topic"),
    ] {
        if wrong.is_empty() {
            continue;
        }
        output::line("")?;
        let mut table = output::table(&["p", heading], &[]);
        wrong
            .iter()
            .for_each(|page| table.add_row([format!("{:.2}", page.probability), page.url.to_owned()]));
        output::print(&table)?;
    }
    Ok(())
}

/// A wrongly classified page.
#[derive(Serialize)]
struct Wrong<'a> {
    url: &'a str,
    probability: f64,
}

fn wrong<'a>(
    documents: &'a [LabelledDocument],
    probabilities: &[f64],
    is_wrong: impl Fn(f64) -> bool,
) -> Vec<Wrong<'a>> {
    let wrong = documents.iter().zip(probabilities).filter(|(_, p)| is_wrong(**p));
    wrong.map(|(document, &probability)| Wrong { url: &document.url, probability }).collect()
}

fn list(args: &ListTopics) -> Result<()> {
    let archive = &args.archive.path;
    let names = topics::names(archive)?;
    if names.is_empty() {
        jobs::check_exists(archive)?;
    }
    let headings = ["topic", "learned", "examples", "f1", "auc", "from"];
    let mut listing = Listing::new(args.json, &headings, &[2, 3, 4]);
    for name in &names {
        let About { learned, from, examples, quality, .. } = &topics::get(archive, name)?.about;
        let (learned, examples) = (*learned, examples.len());
        let row = object! {
            topic: name,
            learned: output::utc(learned),
            examples,
            from,
            #[serde(flatten)] quality,
        };
        listing.add(row, |row| {
            let auc = row.quality.auc.map_or("-".to_owned(), |auc| format!("{auc:.3}"));
            let f1 = if quality.positives > 0 { format!("{:.3}", quality.f1) } else { "-".to_owned() };
            [name.clone(), output::local(learned), examples.to_string(), f1, auc, from.clone()]
        })?;
    }
    if names.is_empty() && !args.json {
        note!("no topics; `archive topic learn` makes one");
        return Ok(());
    }
    listing.end()
}

fn show(args: &ShowTopic) -> Result<()> {
    let topic = topics::get(&args.archive.path, &args.name)?;
    let ended = match jobs::check_exists(&args.archive.path) {
        Ok(()) => CrawlPolicy::of_last_crawl(Store::read_only(&args.archive.path)?.state())?.ended,
        // A topic may be there before the first crawl.
        Err(_) => None,
    };
    let last_crawl = ended.filter(|ended| ended.topic.as_ref().is_some_and(|found| found.name == args.name));
    if args.json {
        return output::json_line(&object! {
            #[serde(flatten)] about: &topic.about,
            /// How the last crawl ended, if it looked for this topic.
            last_crawl,
        });
    }
    print(&topic.about)?;
    if let Some(CrawlEnd { reason, topic: Some(found) }) = last_crawl {
        output::line("")?;
        say!("The last crawl for it ended ({reason}): {}", harvest(&found))?;
    }
    Ok(())
}

fn print(about: &About) -> Result<()> {
    let mut table = output::table(&["", ""], &[]);
    let words = |words: &[(String, f64)]| {
        words.iter().map(|(word, says)| format!("{word} {says:+.1}")).collect::<Vec<_>>().join(", ")
    };
    let mut row = |name: &str, text: String| table.add_row([name.to_owned(), text]);
    row("topic", about.name.clone());
    row("learned", output::local(about.learned));
    row("from", about.from.clone());
    row("words for it", words(&about.words_for));
    if !about.words_against.is_empty() {
        row("words against it", words(&about.words_against));
    }
    for (url, name) in about.examples.iter().take(EXAMPLES_SHOWN).zip(["examples", "", "", "", ""]) {
        row(name, url.clone());
    }
    let (slope, constant) = about.calibration;
    if about.quality.positives == 0 {
        row("model", "words alone".to_owned());
        return output::print(&table);
    }
    row("calibration", format!("log-odds · {slope:.2} {constant:+.2}"));
    row("model", about.model.to_string());
    output::print(&table)?;
    output::line("")?;
    output::line("Each fifth of the examples, classified by the other four:")?;
    output::print(&quality(&about.quality))?;
    if about.leaves.is_empty() {
        return Ok(());
    }
    output::line("")?;
    let mut table = output::table(&["branch", "wanted", "examples", "f1"], &[2, 3]);
    for Leaf { path, is_wanted, examples, f1 } in &about.leaves {
        let path = if path.is_empty() { "(none of them)" } else { path };
        let wanted = if *is_wanted { "yes" } else { "" };
        table.add_row([path.to_owned(), wanted.to_owned(), examples.to_string(), format!("{f1:.3}")]);
    }
    output::print(&table)
}

fn quality(judged: &Judged) -> output::Table {
    let mut table = output::table(
        &["", "taken for it", "not", "precision", "recall", "f1", "auc", "calibration error"],
        &[1, 2, 3, 4, 5, 6, 7],
    );
    let number = |number: Option<f64>| number.map_or("-".to_owned(), |number| format!("{number:.3}"));
    let of = |name: &str, taken: u64, all: u64, rest: [Option<f64>; 5]| {
        let mut cells = vec![name.to_owned(), taken.to_string(), (all - taken).to_string()];
        cells.extend(rest.map(number));
        cells
    };
    let Judged { positives, negatives, hits, false_alarms, .. } = *judged;
    let rest =
        [Some(judged.precision), Some(judged.recall), Some(judged.f1), judged.auc, judged.calibration_error];
    table.add_row(of("pages of the topic", hits, positives, rest));
    let mut others = of("other pages", false_alarms, negatives, [None; 5]);
    others.iter_mut().skip(3).for_each(String::clear);
    table.add_row(others);
    table
}
