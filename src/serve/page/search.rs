//! The search page, equivalent to `archive search`.

use std::sync::Arc;

use archive_ask::find::{self, CaptureTimes, FindError, ParsedSearch, Results};
use archive_ask::query::end_of;
use archive_books::search::Snippet;
use archive_peers::nodes::Missing;
use chrono::{DateTime, Utc};
use maud::{Markup, PreEscaped, html};
use serde::Serialize;

use super::times::{self, CalendarStep};
use super::{ArchiveRequest, PageProblem, PageRequest, Reply, Speech, front, utc};
use crate::serve::cache::SearchRange;

/// Number of results per page. Most of the time of a search is spent on the texts of its results.
const RESULTS: usize = 10;
/// Maximum number of results that can be paged through.
const RESULTS_MAX: usize = 200;

/// Script for the time slider.
pub(super) const SCRIPT: &str = include_str!("search.js");

/// OpenSearch description, which lets browsers search here.
pub(super) fn description(t: Speech) -> String {
    let xml = html! {
        (PreEscaped("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"))
        OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/" {
            ShortName { "archive" }
            Description { (t.say("Search the web archive")) }
            Url type="text/html" template=(t.address("/search", &[("q", "")]).replace("q=", "q={searchTerms}")) {}
        }
    };
    xml.into_string()
}

/// Search syntax besides words, with its meaning.
const TYPED: [(&str, &str); 6] = [
    ("\"open access\"", "these words in a row"),
    ("-music", "not this word"),
    ("site:example.org", "pages of this site"),
    ("type:pdf", "documents of this type"),
    ("language:fr", "pages in this language"),
    ("after:2020 before:2025", "captured in this time"),
];

#[derive(Serialize, Default)]
struct SearchForm<'a> {
    words: &'a str,
    /// The time whose versions are searched; empty for the newest.
    as_of: &'a str,
    /// The parsed time.
    #[serde(skip)]
    before: Option<DateTime<Utc>>,
    /// Possible values, if older versions can be searched.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    times: Vec<CalendarStep>,
    /// Number of results before the first one shown.
    from: usize,
    results: Vec<HitView>,
    /// Whether there are more results.
    more: bool,
    facets: Vec<(&'static str, Vec<(String, u64)>)>,
    /// Whether words after a dash were searched for, because nothing was found without them.
    literal: bool,
    /// Words that no page has, with suggestions.
    meant: Vec<(String, String)>,
    /// Number of captures whose replaced versions are not indexed yet.
    behind: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<Missing>,
}

#[derive(Serialize)]
struct HitView {
    url: String,
    also: Vec<String>,
    title: String,
    score: f64,
    importance: f64,
    /// An excerpt of the text; `marks` are byte ranges in it.
    snippet: Option<String>,
    marks: Vec<(usize, usize)>,
    #[serde(serialize_with = "utc")]
    time: Option<DateTime<Utc>>,
    /// In a search as of a time: when the page changed or disappeared after that.
    #[serde(serialize_with = "utc", skip_serializing_if = "Option::is_none")]
    until: Option<DateTime<Utc>>,
    all_words: bool,
}

pub(super) fn page(asked: &ArchiveRequest<'_>) -> Result<Reply, PageProblem> {
    let t = asked.speech;
    let find = |wanted: SearchRange, typed: &ParsedSearch| match asked.opened.cache.find(
        asked.opened,
        wanted,
        typed,
    ) {
        Err(FindError::NoIndex) => {
            let what = "This archive has no full-text index; `archive crawl` builds one unless --no-full-text is given.";
            Err(PageProblem::Missing(t.say(what).to_owned()))
        }
        Err(FindError::NoVersions(_)) => {
            let what = "This archive’s index has the newest versions only; `archive rebuild --index-versions` makes older ones searchable.";
            Err(PageProblem::Missing(t.say(what).to_owned()))
        }
        found => {
            let found = found?;
            let missing = Missing::rows(found.unread.clone());
            Ok((found, missing))
        }
    };
    let opened = asked.opened;
    let times = || {
        let count = || CaptureTimes::searched(opened.store, opened.access.clone());
        Ok(opened.cache.times.of(opened, (), |_| 0, count)?.iter().cloned().collect())
    };
    search(asked, find, times)
}

/// Results, and archives that are missing from them.
pub(super) type PartialResults = (Arc<Results>, Vec<Missing>);

/// The page for a search by `find`. Older versions can be searched if there are `times`.
pub(super) fn search(
    asked: &PageRequest<'_>,
    find: impl Fn(SearchRange, &ParsedSearch) -> Result<PartialResults, PageProblem>,
    times: impl FnOnce() -> Result<Vec<CaptureTimes>, PageProblem>,
) -> Result<Reply, PageProblem> {
    let (t, words) = (asked.speech, asked.parameter("q"));
    if words.starts_with("http://") || words.starts_with("https://") {
        return Ok(Reply::led_to(&t.page_of(words)));
    }
    let mut data = SearchForm { words, as_of: asked.parameter("as-of"), ..SearchForm::default() };
    if !words.is_empty() {
        let mistaken = |mistake| PageProblem::Mistake(format!("In the search, {mistake}."));
        let typed = ParsedSearch::parse(words).map_err(mistaken)?;
        data.from = asked.parameter("from").parse().unwrap_or(0).min(RESULTS_MAX - RESULTS);
        let wrong = || {
            let what = "“{}” is not a time; write it like 2026-01-31T10:00:00Z.";
            PageProblem::Wrong(t.fill(what, &[&data.as_of]))
        };
        let before = Some(data.as_of).filter(|time| !time.is_empty());
        data.before = before.map(|time| end_of(time).ok_or_else(wrong)).transpose()?;
        let (before, skip, limit) = (data.before, data.from, data.from + RESULTS);
        let wanted = |words: String| SearchRange { words, before, skip, limit };
        let mut found;
        (found, data.missing) = find(wanted(words.to_owned()), &typed)?;
        if let Some(literal) = ParsedSearch::literal(words).filter(|_| found.hits.is_empty())
            && let Ok(typed) = ParsedSearch::parse(&literal)
        {
            (found, data.missing) = find(wanted(literal), &typed)?;
            data.literal = !found.hits.is_empty();
        }
        data.more = found.more && data.from + RESULTS < RESULTS_MAX;
        data.results = found.hits.iter().cloned().map(hit).collect();
        (data.facets, data.meant, data.behind) = (found.facets.clone(), found.meant.clone(), found.behind);
        data.times = times::steps(&times()?);
    }
    let title = if words.is_empty() { t.say("Search") } else { words };
    let reply = asked.reply(title, &data, || shown(asked, &data)).without(&data.missing);
    Ok(if data.times.is_empty() { reply } else { reply.with_script(None) })
}

fn hit(hit: find::Hit) -> HitView {
    let (snippet, marks) = match hit.snippet {
        Some(Snippet { text, found }) => {
            (Some(text), found.into_iter().map(|mark| (mark.start, mark.end)).collect())
        }
        None => (None, Vec::new()),
    };
    HitView {
        url: hit.url,
        also: hit.also,
        title: hit.title,
        score: hit.score,
        importance: hit.importance,
        snippet,
        marks,
        time: hit.time,
        until: hit.until,
        all_words: hit.has_all,
    }
}

fn shown(asked: &PageRequest<'_>, data: &SearchForm<'_>) -> Markup {
    let t = asked.speech;
    let address = |words: &str, from: usize, as_of: &str| {
        let from = from.to_string();
        let mut parameters = vec![("q", words), ("from", from.as_str())];
        parameters.extend((!as_of.is_empty()).then_some(("as-of", as_of)));
        t.address("/search", &parameters)
    };
    let at = |from: usize| address(data.words, from, data.as_of);
    html! {
        h1 { @if data.words.is_empty() { (t.say("Search")) } @else { (t.fill("Search: {}", &[&data.words])) } }
        @if !data.times.is_empty() {
            form .times action="/search" {
                (t.kept())
                input type="hidden" name="q" value=(data.words);
                (times::choice(asked, &data.times, data.before, &|as_of| address(data.words, 0, as_of)))
            }
        }
        (front::missing(t, &data.missing))
        @if data.behind > 0 {
            p { (t.counted(data.behind, "The version replaced by {} capture is not searchable yet.", "The versions replaced by {} captures are not searchable yet.")) }
        }
        @if data.literal {
            p { (t.say("Nothing was found without the words after a dash; these pages have them.")) }
        }
        @for (word, other) in &data.meant {
            @let meant = html! { a href=(address(&data.words.replace(word, other), 0, data.as_of)) { (other) } };
            p { (t.markup("No page says “{}”. Did you mean {}?", &[html! { (word) }, meant])) }
        }
        @if data.words.is_empty() {
            p { (t.say("Words, or a URL of which you want to see the history. What can be typed beside words:")) }
            dl .typed { @for (typed, meaning) in TYPED { dt { code { (typed) } } dd { (t.say(meaning)) } } }
        } @else if data.results.is_empty() {
            p { (t.say("Nothing was found.")) }
        } @else if data.results.iter().all(|hit| !hit.all_words) {
            p { (t.say("No page has all these words; these have most of them.")) }
        }
        div .columns {
            ol .results start=(data.from + 1) {
                @for hit in &data.results {
                    li {
                        a .title href=(t.page_of(&hit.url)) { @if hit.title.is_empty() { (hit.url) } @else { (hit.title) } }
                        div .url { (hit.url) }
                        @if let Some(text) = &hit.snippet { p { (marked(text, &hit.marks)) } }
                        p .small {
                            @if hit.time.is_some() {
                                a href=(asked.replayed(&hit.url, hit.time)) { (t.say("As it was")) }
                                " · " (t.markup("since {}", &[t.moment(hit.time)]))
                            } @else { (t.say("It was never captured.")) }
                            @if hit.until.is_some() { " · " (t.markup("until {}", &[t.moment(hit.until)])) }
                            " · " (t.fill("importance {}", &[&t.decimal(hit.importance, 2)]))
                            @for url in &hit.also { br; (t.markup("also {}", &[html! { a href=(t.page_of(url)) { (url) } }])) }
                        }
                    }
                }
            }
            @if !data.facets.is_empty() {
                aside aria-label=(t.say("Counts")) {
                    @for (name, counts) in &data.facets {
                        @if !counts.is_empty() {
                            h2 { (t.say(name)) }
                            ul {
                                @for (value, pages) in counts { li {
                                    @let term = format!("{name}:{value}");
                                    // Years are those of the last captures, for which there is no search term.
                                    @if *name == "year" || data.words.contains(&term) { span translate="no" { (value) } } @else {
                                        a translate="no" href=(address(&format!("{} {term}", data.words), 0, data.as_of)) { (value) }
                                    }
                                    " " span .small { (t.count(*pages)) }
                                } }
                            }
                        }
                    }
                }
            }
        }
        nav aria-label=(t.say("Pages of results")) {
            @if data.from > 0 { a rel="prev" href=(at(data.from.saturating_sub(RESULTS))) { (t.say("Previous")) } " " }
            @if data.more { a rel="next" href=(at(data.from + RESULTS)) { (t.say("Next")) } }
        }
    }
}

/// A text with its marks highlighted.
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
