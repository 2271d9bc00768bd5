//! What a topic is learned from: pages of the archive and, where these are too few, words.

use std::collections::HashSet;
use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};

use archive::jobs;
use archive_ask::find::{FindError, ParsedSearch, SearchOptions, find_in};
use archive_ask::query::Question;
use archive_base::access::Access;
use archive_books::search::FIND_WORDS_MAX;
use archive_books::topics::{self, LabelledDocument, Lesson, TaxonomyError, read_documents};
use archive_grammar::{Check, Condition};
use archive_storage::address::canonical;
use archive_storage::{Store, UrlId};
use chrono::Utc;
use url::Url;

use super::super::options::ReadArgs;
use super::super::{Result, input, output, usage};

/// Number of search results that words are looked for in.
const WORDS_PAGES: usize = 50;

/// Number of other pages for each page of the topic, and its bounds, unless `--against` selects them.
const OTHERS_EACH: usize = 4;
const OTHERS_MIN: usize = 200;
const OTHERS_MAX: usize = 4000;

/// Maximum size of a list of URLs in bytes.
const LIST_BYTES_MAX: u64 = 64 << 20;

/// Maximum size of a description in bytes.
const DESCRIPTION_BYTES_MAX: u64 = 256 << 10;

/// Sources of example pages.
#[derive(clap::Args)]
pub(super) struct Examples {
    /// File with the URLs of pages of the topic, one per line, '-' for standard input; # starts a comment
    #[arg(long, value_name = "FILE", required_unless_present_any = ["where_", "words", "description", "taxonomy"])]
    from: Option<PathBuf>,
    /// Query that selects pages of the topic
    #[arg(long = "where", value_name = "QUERY", conflicts_with = "from")]
    where_: Option<String>,
    /// Words to search for, as for `archive search`: of the first 50 results, those that are about them are pages of the
    /// topic
    #[arg(long, value_name = "WORDS", conflicts_with_all = ["from", "where_"])]
    words: Option<String>,
    /// File with a text that describes the topic, '-' for standard input; its words are searched for
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from", "where_", "words"])]
    description: Option<PathBuf>,
    /// File with a tree of subjects and page URLs: one subject per line, with * before it if it is wanted, and its URLs
    /// and subjects indented below it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from", "where_", "words", "description"])]
    taxonomy: Option<PathBuf>,
    /// Query that selects other pages [default: random pages of the archive]
    #[arg(long, value_name = "QUERY")]
    against: Option<String>,
    #[command(flatten)]
    pub(super) archive: ReadArgs,
    /// One JSON object
    #[arg(long)]
    pub(super) json: bool,
}

/// What a topic is learned from.
#[derive(Default)]
pub(super) struct Source {
    pub(super) lesson: Lesson,
    /// Its words, in case that there are too few pages.
    pub(super) text: String,
}

/// The pages that are asked for, those of other branches of a taxonomy, and words of the topic.
#[derive(Default)]
struct Asked {
    wanted: Vec<UrlId>,
    unwanted: Vec<UrlId>,
    text: String,
    /// Whether the pages were found by the words, and may be about something else.
    is_found: bool,
}

impl Examples {
    /// Opens the archive for reading; `None` if there is none yet.
    pub(super) fn archive_if_any(&self) -> Result<Option<(Store, Access)>> {
        match jobs::check_exists(self.archive.path()) {
            Ok(()) => Ok(Some(self.archive.open()?)),
            Err(error) if self.taxonomy.is_some() => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// Reads pages of the topic and others, except those whose URLs are in `left_out`.
    pub(super) fn read(&self, opened: Option<&(Store, Access)>, left_out: &HashSet<&str>) -> Result<Source> {
        let mut source = Source::default();
        let Some((store, access)) = opened else {
            source.text = self.asked(None, &mut source.lesson)?.text;
            return Ok(source);
        };
        let Asked { wanted, unwanted, text, is_found } =
            self.asked(Some((store, access)), &mut source.lesson)?;
        source.text = text;
        let each = topics::EXAMPLES_MAX.min(wanted.len()) * OTHERS_EACH;
        let others = match &self.against {
            Some(query) => query.clone(),
            None => format!("page status = 200 sample {}", each.clamp(OTHERS_MIN, OTHERS_MAX) + wanted.len()),
        };
        let mut others = Question::pages_of(store, access.clone(), &others)?;
        let known: HashSet<UrlId> = wanted.iter().chain(&unwanted).copied().collect();
        others.retain(|id| !known.contains(id));
        others.splice(..0, unwanted);
        let read = |ids: &[UrlId]| -> Result<Vec<LabelledDocument>> {
            let mut documents = read_documents(store, ids)?;
            documents.retain(|document| !left_out.contains(document.url.as_str()));
            Ok(documents)
        };
        let (mut positives, negatives) = (read(&wanted)?, read(&others)?);
        if is_found {
            let by_words = topics::of_words("words", "", &source.text, &[], &negatives, Utc::now())?;
            let (_, chances) = topics::judge(&by_words, &positives, &[]);
            let mut chances = chances.into_iter();
            positives.retain(|_| chances.next().is_some_and(|chance| chance >= topics::RELEVANT));
        } else if (1..topics::EXAMPLES_MIN).contains(&positives.len()) {
            // Pages say more than their URLs.
            source.text = positives.iter().map(LabelledDocument::text).collect::<Vec<_>>().join(" ");
        }
        (source.lesson.positives, source.lesson.negatives) = (positives, negatives);
        Ok(source)
    }

    fn asked(&self, opened: Option<(&Store, &Access)>, lesson: &mut Lesson) -> Result<Asked> {
        if let (Some(file), Some((store, access))) = (&self.taxonomy, opened) {
            let (wanted, unwanted) = classified(store, access, file, lesson)?;
            return Ok(Asked { wanted, unwanted, ..Asked::default() });
        }
        let mut asked = Asked::default();
        if let Some(file) = &self.from {
            let text = text(file, LIST_BYTES_MAX)?;
            let lines = text.lines().filter_map(|line| line.split_whitespace().next());
            let lines = lines.filter(|line| !line.starts_with('#'));
            asked.text = lines.clone().map(topics::of_url).collect::<Vec<_>>().join(" ");
            asked.wanted = found(opened, file, lines)?;
        } else if let Some(query) = &self.where_ {
            let parsed = archive_grammar::parse(query).map_err(|error| usage(error.to_string()))?;
            parsed.condition.iter().for_each(|condition| add_words(condition, &mut asked.text));
            if let Some((store, access)) = opened {
                asked.wanted = Question::pages_of(store, access.clone(), query)?;
            }
        } else {
            let typed = match &self.description {
                Some(file) => {
                    asked.text = text(file, DESCRIPTION_BYTES_MAX)?;
                    let words = topics::weighted(&asked.text, &[]).into_iter().take(FIND_WORDS_MAX);
                    words.map(|(word, _)| word).collect::<Vec<_>>().join(" ")
                }
                None => self.words.clone().unwrap_or_default(),
            };
            let typed = ParsedSearch::parse(&typed).map_err(|error| usage(error.to_string()))?;
            if asked.text.is_empty() {
                asked.text =
                    [std::slice::from_ref(&typed.find.words), &typed.find.phrases[..]].concat().join(" ");
            }
            asked.is_found = true;
            if let Some((store, access)) = opened {
                asked.wanted = searched(store, access, &typed)?;
            }
        }
        Ok(asked)
    }

    /// Describes the source of the examples.
    pub(super) fn origin(&self) -> String {
        let from = match (&self.from, &self.where_, &self.taxonomy, &self.description, &self.words) {
            (Some(file), ..) => format!("the list {}", file.display()),
            (_, Some(query), ..) => query.clone(),
            (_, _, Some(file), ..) => format!("the taxonomy {}", file.display()),
            (_, _, _, Some(file), _) => format!("the description {}", file.display()),
            (.., words) => format!("the words {}", words.as_deref().unwrap_or_default()),
        };
        match &self.against {
            Some(against) => format!("{from}; against {against}"),
            None => from,
        }
    }
}

/// Adds the texts that pages must contain by a condition.
fn add_words(condition: &Condition, words: &mut String) {
    match condition {
        Condition::Any(parts) | Condition::All(parts) => parts.iter().for_each(|part| add_words(part, words)),
        Condition::Test(test) => {
            if let Check::Contains { negated: false, texts, .. } = &test.check.value {
                texts.iter().for_each(|text| words.extend([" ", &text.value]));
            }
        }
        Condition::Not(_) | Condition::Related(_) => {}
    }
}

/// The pages that a search finds first; none if the archive has no full-text index.
fn searched(store: &Store, access: &Access, typed: &ParsedSearch) -> Result<Vec<UrlId>> {
    let options = SearchOptions { limit: WORDS_PAGES, ..SearchOptions::default() };
    let hits = match find_in(vec![(store, access.clone())], typed, options) {
        Ok(found) => found.hits,
        Err(FindError::NoIndex) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let ids = hits.iter().map(|hit| store.state().find(&hit.url));
    Ok(ids.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// The pages in the wanted branches of a taxonomy, and those in the others, each once.
fn classified(
    store: &Store,
    access: &Access,
    file: &Path,
    lesson: &mut Lesson,
) -> Result<(Vec<UrlId>, Vec<UrlId>)> {
    let wrong = |error: TaxonomyError| usage(format!("{}, {error}", file.display()));
    lesson.branches = topics::branches(&text(file, LIST_BYTES_MAX)?).map_err(wrong)?;
    let (mut wanted, mut unwanted) = (Vec::new(), Vec::new());
    for (branch, place) in lesson.branches.iter().zip(0..) {
        for id in found(Some((store, access)), file, branch.urls.iter().map(String::as_str))? {
            if let Entry::Vacant(entry) = lesson.branch_of.entry(id) {
                entry.insert(place);
                if branch.is_wanted { &mut wanted } else { &mut unwanted }.push(id);
            }
        }
    }
    Ok((wanted, unwanted))
}

fn text(file: &Path, bytes_max: u64) -> Result<String> {
    Ok(String::from_utf8_lossy(&input::read(file, bytes_max)?).into_owned())
}

/// The pages with these URLs that are in the archive, if there is one, and may be shown.
fn found<'u>(
    opened: Option<(&Store, &Access)>,
    file: &Path,
    urls: impl Iterator<Item = &'u str>,
) -> Result<Vec<UrlId>> {
    let (mut found, mut missing) = (Vec::new(), 0);
    for line in urls {
        let url = Url::parse(line)
            .map_err(|error| usage(format!("{}: '{line}' is not a URL ({error})", file.display())))?;
        let Some((store, access)) = opened else { continue };
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
