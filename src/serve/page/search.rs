//! Searching, as `archive search` does it.

use chrono::{DateTime, Utc};
use maud::{Markup, html};
use serde::Serialize;

use super::{Asked, Problem, Reply, address, moment, page_of, utc};
use crate::find::{self, FindError, Options, Typed};
use crate::search::Snippet;

/// Results of a page.
const RESULTS: usize = 20;
/// Results that can be paged to.
const RESULTS_MAX: usize = 200;

/// How browsers search here.
pub(super) const DESCRIPTION: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">
<ShortName>archive</ShortName>
<Description>Search the web archive</Description>
<Url type="text/html" template="/search?q={searchTerms}"/>
</OpenSearchDescription>
"#;

#[derive(Serialize, Default)]
struct Search<'a> {
    words: &'a str,
    /// Results before the first one.
    from: usize,
    results: Vec<Hit>,
    /// Whether there are more.
    more: bool,
    facets: Vec<(&'static str, Vec<(String, u64)>)>,
    /// Words that no page has, and what may have been meant.
    meant: Vec<(String, String)>,
}

#[derive(Serialize)]
struct Hit {
    url: String,
    also: Vec<String>,
    title: String,
    score: f64,
    importance: f64,
    /// A piece of the text; `marks` are byte ranges in it.
    snippet: Option<String>,
    marks: Vec<(usize, usize)>,
    #[serde(serialize_with = "utc")]
    time: Option<DateTime<Utc>>,
    all_words: bool,
}

pub(super) fn page(asked: &Asked<'_>) -> Result<Reply, Problem> {
    let words = asked.parameter("q");
    if words.starts_with("http://") || words.starts_with("https://") {
        let mut reply = Reply::of(302, "text/plain", "");
        reply.headers.push(("Location".to_owned(), page_of(words)));
        return Ok(reply);
    }
    let mut data = Search { words, ..Search::default() };
    if !words.is_empty() {
        let typed =
            Typed::parse(words).map_err(|mistake| Problem::Wrong(format!("In the search, {mistake}.")))?;
        data.from = asked.parameter("from").parse().unwrap_or(0).min(RESULTS_MAX - RESULTS);
        let options = Options { limit: data.from + RESULTS + 1, facets: true, ..Options::default() };
        let found = match find::find(&asked.opened.store, asked.opened.access.clone(), &typed, options) {
            Err(error @ FindError::NoIndex) => return Err(Problem::Missing(format!("{error}."))),
            found => found?,
        };
        data.more = found.hits.len() > data.from + RESULTS && data.from + RESULTS < RESULTS_MAX;
        data.results = found.hits.into_iter().skip(data.from).take(RESULTS).map(hit).collect();
        (data.facets, data.meant) = (found.facets, found.meant);
    }
    let title = if words.is_empty() { "Search" } else { words };
    Ok(asked.reply(title, &data, || shown(asked, &data)))
}

fn hit(hit: find::Hit) -> Hit {
    let (snippet, marks) = match hit.snippet {
        Some(Snippet { text, found }) => {
            (Some(text), found.into_iter().map(|mark| (mark.start, mark.end)).collect())
        }
        None => (None, Vec::new()),
    };
    Hit {
        url: hit.url,
        also: hit.also,
        title: hit.title,
        score: hit.score,
        importance: hit.importance,
        snippet,
        marks,
        time: hit.time,
        all_words: hit.has_all,
    }
}

fn shown(asked: &Asked<'_>, data: &Search<'_>) -> Markup {
    let at = |from: usize| address("/search", &[("q", data.words), ("from", &from.to_string())]);
    html! {
        h1 { @if data.words.is_empty() { "Search" } @else { "Search: " (data.words) } }
        @for (word, other) in &data.meant {
            p {
                "No page says “" (word) "”. Did you mean "
                a href=(address("/search", &[("q", &data.words.replace(word, other))])) { (other) } "?"
            }
        }
        @if data.words.is_empty() {
            p { "Words, \"words in a row\", -not, site:example.org, type:pdf, language:fr, before:2025, after:2020." }
        } @else if data.results.is_empty() {
            p { "Nothing was found." }
        } @else if data.results.iter().all(|hit| !hit.all_words) {
            p { "No page has all these words; these have most of them." }
        }
        div .columns {
            ol .results start=(data.from + 1) {
                @for hit in &data.results {
                    li {
                        a .title href=(page_of(&hit.url)) { @if hit.title.is_empty() { (hit.url) } @else { (hit.title) } }
                        div .url { (hit.url) }
                        @if let Some(text) = &hit.snippet { p { (marked(text, &hit.marks)) } }
                        p .small {
                            a href=(asked.replayed(&hit.url, hit.time)) { "As it was" }
                            " · since " (moment(hit.time)) " · importance " (format!("{:.2}", hit.importance))
                            @for url in &hit.also { br; "also " a href=(page_of(url)) { (url) } }
                        }
                    }
                }
            }
            @if !data.facets.is_empty() {
                aside aria-label="Counts" {
                    @for (name, counts) in &data.facets {
                        @if !counts.is_empty() {
                            h2 { (name) }
                            ul {
                                @for (value, pages) in counts { li { (value) " " span .small { (pages) } } }
                            }
                        }
                    }
                }
            }
        }
        nav aria-label="Pages of results" {
            @if data.from > 0 { a rel="prev" href=(at(data.from.saturating_sub(RESULTS))) { "Previous" } " " }
            @if data.more { a rel="next" href=(at(data.from + RESULTS)) { "Next" } }
        }
    }
}

/// A text with its marks.
fn marked(text: &str, marks: &[(usize, usize)]) -> Markup {
    let mut at = 0;
    html! {
        @for (start, end) in marks {
            @if let (Some(before), Some(word)) = (text.get(at..*start), text.get(*start..*end)) {
                (before) mark { (word) }
                ({ at = *end; "" })
            }
        }
        (text.get(at..).unwrap_or_default())
    }
}
