//! `archive topic`: topics that a crawl can look for, learned from examples.

use std::collections::HashSet;
use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};

use archive::jobs;
use archive_ask::query::Question;
use archive_base::access::Access;
use archive_base::files;
use archive_books::topics::{
    self, About, Judged, LabelledDocument, Leaf, Lesson, TaxonomyError, judge, learn, read_documents,
};
use archive_choose::{CrawlEnd, CrawlPolicy};
use archive_math::focus::Model;
use archive_storage::address::canonical;
use archive_storage::{Store, UrlId};
use chrono::Utc;
use serde::Serialize;
use url::Url;

use super::options::{ArchiveArgs, ReadArgs};
use super::output::{self, Listing};
use super::progress::harvest;
use super::{During, Result, usage};

/// Number of search results that `--words` uses.
const WORDS_PAGES: usize = 50;

/// Number of other pages for each page of the topic, and its bounds, unless `--against` selects them.
const OTHERS_EACH: usize = 4;
const OTHERS_MIN: usize = 200;
const OTHERS_MAX: usize = 4000;

/// Maximum size of a list of URLs in bytes.
const LIST_BYTES_MAX: u64 = 64 << 20;

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
  archive topic learn maps --taxonomy subjects.txt
  archive topic show maps
  archive topic test maps --from others.txt
  archive query 'page topic(maps) > 0.8 order by topic(maps) desc limit 20'
  archive crawl --seeds list.txt --topic maps")]
pub(crate) enum Command {
    Learn(LearnTopic),
    Test(TestTopic),
    /// List all topics
    List(ListTopics),
    Show(ShowTopic),
    /// Remove a topic
    Remove(RemoveTopic),
}

/// Sources of example pages.
#[derive(clap::Args)]
struct Examples {
    /// File with the URLs of pages of the topic, one per line, '-' for standard input; # starts a comment
    #[arg(long, value_name = "FILE", required_unless_present_any = ["where_", "words", "taxonomy"])]
    from: Option<PathBuf>,
    /// Query that selects pages of the topic
    #[arg(long = "where", value_name = "QUERY", conflicts_with = "from")]
    where_: Option<String>,
    /// Words to search for; the first 50 results are pages of the topic
    #[arg(long, value_name = "WORDS", conflicts_with_all = ["from", "where_"])]
    words: Option<String>,
    /// File with a tree of subjects and page URLs: one subject per line, with * before it if it is wanted, and its URLs
    /// and subjects indented below it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from", "where_", "words"])]
    taxonomy: Option<PathBuf>,
    /// Query that selects other pages [default: random pages of the archive]
    #[arg(long, value_name = "QUERY")]
    against: Option<String>,
    #[command(flatten)]
    archive: ReadArgs,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// Learn a topic from pages of the archive; a topic of the same name is replaced.
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
        Command::Remove(args) => Ok(topics::remove(&args.archive.path, &args.name)?),
    }
}

fn run_learn(args: &LearnTopic) -> Result<()> {
    let name = topics::check_name(&args.name).map_err(|error| usage(error.to_string()))?;
    let examples = &args.examples;
    let (store, access) = examples.archive.open()?;
    let lesson = examples.read(&store, access, &HashSet::new())?;
    let topic = learn(&store, name, &examples.origin(), &lesson, args.model, Utc::now())?;
    topic.keep(store.path())?;
    if examples.json { output::json_line(&topic.about) } else { print(&topic.about) }
}

fn run_test(args: &TestTopic) -> Result<()> {
    let examples = &args.examples;
    let topic = topics::get(examples.archive.path(), &args.name)?;
    let (store, access) = examples.archive.open()?;
    let known = topic.about.examples.iter().chain(&topic.about.against);
    let known: HashSet<&str> = known.map(String::as_str).collect();
    let Lesson { positives, negatives, .. } = examples.read(&store, access, &known)?;
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

impl Examples {
    /// Reads pages of the topic and others, except those whose URLs are in `left_out`.
    fn read(&self, store: &Store, access: Access, left_out: &HashSet<&str>) -> Result<Lesson> {
        let mut lesson = Lesson::default();
        let (wanted, unwanted) = match &self.taxonomy {
            Some(file) => classified(store, &access, file, &mut lesson)?,
            None => (self.positives(store, &access)?, Vec::new()),
        };
        let each = topics::EXAMPLES_MAX.min(wanted.len()) * OTHERS_EACH;
        let others = match &self.against {
            Some(query) => query.clone(),
            None => format!("page status = 200 sample {}", each.clamp(OTHERS_MIN, OTHERS_MAX) + wanted.len()),
        };
        let mut others = Question::pages_of(store, access, &others)?;
        let known: HashSet<UrlId> = wanted.iter().chain(&unwanted).copied().collect();
        others.retain(|id| !known.contains(id));
        others.splice(..0, unwanted);
        let read = |ids: &[UrlId]| -> Result<Vec<LabelledDocument>> {
            let mut documents = read_documents(store, ids)?;
            documents.retain(|document| !left_out.contains(document.url.as_str()));
            Ok(documents)
        };
        (lesson.positives, lesson.negatives) = (read(&wanted)?, read(&others)?);
        Ok(lesson)
    }

    fn positives(&self, store: &Store, access: &Access) -> Result<Vec<UrlId>> {
        let query = match (&self.from, &self.where_, &self.words) {
            (Some(file), ..) => return listed(store, access, file),
            (_, Some(query), _) => query.clone(),
            (_, _, words) => {
                let words = words.as_deref().unwrap_or_default().replace(['"', '\\'], " ");
                format!("page text contains \"{words}\" limit {WORDS_PAGES}")
            }
        };
        Ok(Question::pages_of(store, access.clone(), &query)?)
    }

    /// Describes the source of the examples.
    fn origin(&self) -> String {
        let from = match (&self.from, &self.where_, &self.taxonomy, &self.words) {
            (Some(file), ..) => format!("the list {}", file.display()),
            (_, Some(query), ..) => query.clone(),
            (_, _, Some(file), _) => format!("the taxonomy {}", file.display()),
            (.., words) => format!("the words {}", words.as_deref().unwrap_or_default()),
        };
        match &self.against {
            Some(against) => format!("{from}; against {against}"),
            None => from,
        }
    }
}

/// The pages in a list of URLs that are in the archive and may be shown.
fn listed(store: &Store, access: &Access, file: &Path) -> Result<Vec<UrlId>> {
    let text = text(file)?;
    let lines = text.lines().filter_map(|line| line.split_whitespace().next());
    found(store, access, file, lines.filter(|line| !line.starts_with('#')))
}

/// The pages in the wanted branches of a taxonomy, and those in the others, each once.
fn classified(
    store: &Store,
    access: &Access,
    file: &Path,
    lesson: &mut Lesson,
) -> Result<(Vec<UrlId>, Vec<UrlId>)> {
    let wrong = |error: TaxonomyError| usage(format!("{}, {error}", file.display()));
    lesson.branches = topics::branches(&text(file)?).map_err(wrong)?;
    let (mut wanted, mut unwanted) = (Vec::new(), Vec::new());
    for (branch, place) in lesson.branches.iter().zip(0..) {
        for id in found(store, access, file, branch.urls.iter().map(String::as_str))? {
            if let Entry::Vacant(entry) = lesson.branch_of.entry(id) {
                entry.insert(place);
                if branch.is_wanted { &mut wanted } else { &mut unwanted }.push(id);
            }
        }
    }
    Ok((wanted, unwanted))
}

fn text(file: &Path) -> Result<String> {
    if file == Path::new("-") {
        return std::io::read_to_string(std::io::stdin()).within("cannot read the URLs from standard input");
    }
    let bytes = files::read(file, LIST_BYTES_MAX)
        .map_err(|error| usage(format!("cannot read {}: {error}", file.display())))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The pages with these URLs that are in the archive and may be shown.
fn found<'u>(
    store: &Store,
    access: &Access,
    file: &Path,
    urls: impl Iterator<Item = &'u str>,
) -> Result<Vec<UrlId>> {
    let (mut found, mut missing) = (Vec::new(), 0);
    for line in urls {
        let url = Url::parse(line)
            .map_err(|error| usage(format!("{}: '{line}' is not a URL ({error})", file.display())))?;
        match store.state().find(&canonical(&url))? {
            Some(id) if access.history(store.state(), id)?.next().is_some() => found.push(id),
            _ => missing += 1,
        }
    }
    if missing > 0 {
        note!("{} of {} not in the archive", output::count(missing, "page"), file.display());
    }
    Ok(found)
}

fn list(args: &ListTopics) -> Result<()> {
    let archive = &args.archive.path;
    jobs::check_exists(archive)?;
    let headings = ["topic", "learned", "examples", "f1", "auc", "from"];
    let mut listing = Listing::new(args.json, &headings, &[2, 3, 4]);
    let names = topics::names(archive)?;
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
            let f1 = format!("{:.3}", row.quality.f1);
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
    let store = Store::read_only(&args.archive.path)?;
    let ended = CrawlPolicy::of_last_crawl(store.state())?.ended;
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
    row("words against it", words(&about.words_against));
    for (url, name) in about.examples.iter().take(EXAMPLES_SHOWN).zip(["examples", "", "", "", ""]) {
        row(name, url.clone());
    }
    let (slope, constant) = about.calibration;
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
