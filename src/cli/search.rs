//! `archive search`: finds pages by words.

use std::ffi::OsString;
use std::process::ExitCode;

use archive_ask::find::{
    Hit, IMPORTANCE_WEIGHT, MINUS, ParsedSearch, RESULTS_MAX, Results, SearchOptions, find_in,
};
use archive_ask::query::end_of;
use archive_books::search::Snippet;
use indicatif::HumanCount;
use serde::Serialize;

use super::options::{AskArgs, TimeArgs};
use super::{Result, output, usage};

/// Maximum number of URLs with the same content that are printed with a result.
const ALSO_MAX: usize = 5;

/// Search the text of pages, as in a search box.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive search open access
  archive search '\"open access\" -journal site:example.org after:2025'
  archive search directive KeepAlive --limit 3 --json
  archive search open access --as-of 2025-12-31      # as of that time (needs archive rebuild --index-versions)

  \"…\"                  these words as a phrase
  -word, -\"…\"          not this word or phrase
  author: keywords: description: title:   in what a page says of itself, or in its title
  site: type: language:  of a site or host, of a type such as html or pdf, in a language such as fr
  before: after:         first captured before, last captured after a year, month or day

Pages are found by title, text and URL, by what they say of themselves, and by the text of links to them. Pages with more of the
words come first, above all those that the words name. Pages with the same content are one result.
For other conditions, see `archive query`.")]
pub(crate) struct Args {
    /// Words to search for
    #[arg(required = true, num_args = 1.., value_name = "WORD")]
    words: Vec<String>,
    #[command(flatten)]
    ask: AskArgs,
    #[command(flatten)]
    time: TimeArgs,
    /// Number of results, at most 1000
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: usize,
    /// Only pages that have all words
    #[arg(long)]
    all: bool,
    /// Weight of the importance of pages; 0 to ignore it
    #[arg(long, value_name = "X", default_value_t = IMPORTANCE_WEIGHT)]
    importance: f64,
    /// Search pages as of this time (2026-01-31, which means its end, 2026-01-31T10:00Z, '30 days ago')
    #[arg(long, value_name = "TIME")]
    as_of: Option<String>,
    /// Also count pages by site, year, type and language
    #[arg(long)]
    facets: bool,
    /// One JSON object per result
    #[arg(long)]
    json: bool,
}

/// The arguments of this command with each `-word`, and each `--word` that is none of the `options`, written as `−word`
/// with a minus sign, so that it is not parsed as an option.
pub(crate) fn with_minus_signs(
    arguments: impl Iterator<Item = OsString>,
    options: &[String],
) -> impl Iterator<Item = OsString> {
    let is_option = |long: &str| {
        let name = long.split('=').next().unwrap_or_default();
        name.is_empty() || options.iter().any(|option| option == name)
    };
    arguments.map(move |argument| match argument.to_str().and_then(|text| text.strip_prefix('-')) {
        Some("" | "h") => argument,
        Some(word) if word.strip_prefix('-').is_some_and(is_option) => argument,
        Some(word) => format!("{MINUS}{word}").into(),
        None => argument,
    })
}

/// How a word begins that was written like an option ([`with_minus_signs`]).
const AS_TEXT: &str = "\u{2212}-";

/// A result for programs.
#[derive(Serialize)]
struct ResultRow<'a> {
    url: &'a str,
    /// URLs of pages with the same content.
    also: &'a [String],
    title: &'a str,
    score: f64,
    importance: f64,
    snippet: Option<&'a str>,
    time: Option<String>,
    /// For a search as of a time: when the page changed or disappeared.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    all_words: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if !(1..=RESULTS_MAX).contains(&args.limit) {
        refuse!("--limit is a number from 1 to {RESULTS_MAX}");
    }
    if !(0.0..=f64::MAX).contains(&args.importance) {
        refuse!("--importance is 0 or more");
    }
    let text = args.words.join(" ");
    let typed = ParsedSearch::parse(&text).map_err(|mistake| usage(format!("in the search, {mistake}")))?;
    let limits = args.time.limits();
    let answering = args.ask.open()?;
    let before = args.as_of.as_deref().map(|time| {
        let problem = "is not a time; write it like 2026-01-31, 2026-01-31T10:00Z or '30 days ago'";
        end_of(time).ok_or_else(|| usage(format!("--as-of: '{time}' {problem}")))
    });
    let options = SearchOptions {
        skip: 0,
        limit: args.limit,
        all: args.all,
        importance_weight: args.importance,
        facets: args.facets,
        before: before.transpose()?,
        limits,
        ..SearchOptions::default()
    };
    let search = |text: &str, typed: &ParsedSearch| -> Result<(Results, ExitCode)> {
        Ok(match answering.asked(&args.ask.nodes, limits)? {
            Some(mut asked) => {
                let results = asked.search(text, options)?;
                (results, answering.exit_code_of(&asked))
            }
            None => {
                let results = find_in(answering.archives(), typed, options)?;
                let code = answering.exit_code_without(results.unread.as_ref());
                (results, code)
            }
        })
    };
    for option in args.words.iter().filter_map(|word| word.strip_prefix(AS_TEXT)) {
        note!("--{option} is no option of `archive search`, and is searched for");
    }
    let (mut results, mut code) = search(&text, &typed)?;
    if let Some(literal) = ParsedSearch::literal(&text).filter(|_| results.hits.is_empty())
        && let Ok(typed) = ParsedSearch::parse(&literal)
    {
        let (found, code_of_found) = search(&literal, &typed)?;
        if !found.hits.is_empty() {
            note!("nothing is left without the words after a dash, so they are searched for, too");
            (results, code) = (found, code_of_found);
        }
    }
    for (word, other) in &results.meant {
        note!("no page says {word:?}; did you mean {other:?}?");
    }
    if results.behind > 0 {
        let captures = output::count(results.behind, "capture");
        note!(
            "what {captures} replaced is not in the index yet: the next run, or `archive rebuild`, adds it"
        );
    }
    if args.json {
        json(&results)?;
        return Ok(code);
    }
    if results.hits.is_empty() {
        note!("nothing was found");
        return Ok(code);
    }
    if results.hits.iter().all(|hit| !hit.has_all) {
        note!("no page has all these words; these have most of them");
    }
    for hit in &results.hits {
        print(hit)?;
    }
    for (name, counts) in &results.facets {
        let counts = counts.iter().map(|(value, count)| format!("{value} {}", HumanCount(*count)));
        say!("{name}: {}", counts.collect::<Vec<_>>().join(", "))?;
    }
    Ok(code)
}

fn json(results: &Results) -> Result<()> {
    for hit in &results.hits {
        output::json_line(&ResultRow {
            url: &hit.url,
            also: &hit.also,
            title: &hit.title,
            score: hit.score,
            importance: hit.importance,
            snippet: hit.snippet.as_ref().map(|snippet| snippet.text.as_str()),
            time: hit.time.map(output::utc),
            until: hit.until.map(output::utc),
            all_words: hit.has_all,
        })?;
    }
    for (facet, counts) in &results.facets {
        output::json_line(&object! { facet, counts })?;
    }
    Ok(())
}

/// Prints a result: title and URL, a snippet, and facts.
fn print(hit: &Hit) -> Result<()> {
    const BOLD: u8 = 1;
    let bold = output::has_colours().then_some(BOLD);
    let name = if hit.title.is_empty() { &hit.url } else { &hit.title };
    output::coloured_line(&[(bold, name)])?;
    say!("  {}", hit.url)?;
    if let Some(snippet) = &hit.snippet {
        output::coloured_line(&marked(snippet, bold))?;
    }
    let mut facts = vec![format!("importance {:.2}", hit.importance)];
    facts.extend(hit.time.map(|time| format!("as of {}", output::minute(time))));
    facts.extend(hit.until.map(|time| format!("until {}", output::minute(time))));
    say!("  {}", facts.join(" · "))?;
    for url in hit.also.iter().take(ALSO_MAX) {
        say!("  also {url}")?;
    }
    if let Some(more) = hit.also.len().checked_sub(ALSO_MAX).filter(|more| *more > 0) {
        say!("  also {}", output::count(more as u64, "more URL"))?;
    }
    output::line("")
}

/// A snippet in one line, with the found words in bold.
fn marked(snippet: &Snippet, bold: Option<u8>) -> Vec<(Option<u8>, &str)> {
    let (mut pieces, mut end) = (vec![(None, "  ")], 0);
    for found in &snippet.found {
        pieces.push((None, snippet.text.get(end..found.start).unwrap_or_default()));
        pieces.push((bold, snippet.text.get(found.clone()).unwrap_or_default()));
        end = found.end;
    }
    pieces.push((None, snippet.text.get(end..).unwrap_or_default()));
    pieces
}
