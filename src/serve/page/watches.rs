//! Watches: a list, the newest report of each, and their feeds.

use archive_ask::watch::{self, WatchError};
use chrono::{DateTime, Utc};
use maud::html;
use serde::Serialize;

use super::{ArchiveRequest, PageProblem, Reply, utc};

/// Maximum number of pages of a report listed.
const NEWS_MAX: usize = 200;

#[derive(Serialize)]
struct WatchListRow {
    name: String,
    query: String,
    every_seconds: u64,
    /// Time up to which its reports cover changes.
    #[serde(serialize_with = "utc")]
    since: Option<DateTime<Utc>>,
    #[serde(serialize_with = "utc")]
    due: Option<DateTime<Utc>>,
}

impl From<watch::Watch> for WatchListRow {
    fn from(watch: watch::Watch) -> Self {
        let (since, due) = (Some(watch.since), Some(watch.due_at()));
        Self { name: watch.name, query: watch.query, every_seconds: watch.every_seconds, since, due }
    }
}

pub(super) fn list(asked: &ArchiveRequest<'_>) -> Result<Reply, PageProblem> {
    let t = asked.speech;
    let rows: Vec<WatchListRow> =
        watch::list(asked.opened.store.path())?.into_iter().map(WatchListRow::from).collect();
    Ok(asked.reply(t.say("Watches"), &rows, || {
        html! {
            h1 { (t.say("Watches")) }
            @if rows.is_empty() { p { (t.markup("Nothing is watched yet. {} starts watching.", &[html! { code { "archive watch" } }])) } } @else {
                div .wide role="region" aria-label=(t.say("Watches")) tabindex="0" { table {
                    thead { tr {
                        th scope="col" { (t.say("Watch")) } th scope="col" { (t.say("Query")) } th scope="col" { (t.say("Every")) }
                        th scope="col" { (t.say("Reported until")) } th scope="col" { (t.say("Next due")) } th scope="col" { (t.say("Feed")) }
                    } }
                    tbody { @for row in &rows { tr {
                        th scope="row" { a href=(t.address(&format!("/watches/{}", row.name), &[])) { (row.name) } }
                        td { a href=(t.query_of(&row.query)) { code { (row.query) } } }
                        td { (t.span(row.every_seconds as f64)) }
                        td { (t.moment(row.since)) }
                        td { (t.moment(row.due)) }
                        td { a href=(format!("/watches/{}.atom", row.name)) aria-label=(t.fill("Feed of {}", &[&row.name])) { "Atom" } }
                    } } }
                } }
            }
        }
    }))
}

pub(super) fn one(asked: &ArchiveRequest<'_>) -> Result<Reply, PageProblem> {
    let (t, archive, access) = (asked.speech, asked.opened.store.path(), &asked.opened.access);
    let name = asked.path.trim_start_matches("/watches/");
    let (name, is_feed) = name.strip_suffix(".atom").map_or((name, false), |name| (name, true));
    let found = watch::get(archive, name).map_err(|error| match error {
        WatchError::Name(_) | WatchError::Missing(_) => {
            PageProblem::Missing(t.fill("There is no watch “{}”.", &[&name]))
        }
        error => PageProblem::from(error),
    })?;
    if is_feed {
        return Ok(Reply::of(200, "application/atom+xml", watch::shown_feed(archive, &found, access)?));
    }
    let report = watch::shown(archive, &found, access)?.next().transpose()?;
    let query = found.query.clone();
    Ok(asked.reply(name, &report, || {
        html! {
            h1 { (name) }
            p { a href=(t.query_of(&query)) { code { (query) } } @if let Some(element) = &found.element { " · " code { (element) } } " · " a href=(format!("/watches/{name}.atom")) { (t.say("Feed")) } }
            @match &report {
                None => { p { (t.markup("No report was made yet; the next is due {}.", &[t.moment(Some(found.due_at()))])) } }
                Some(report) => {
                    p { (t.markup("From {} to {}:", &[t.moment(Some(report.since)), t.moment(Some(report.until))])) " " (t.counted(report.news.len() as u64, "{} page has news", "{} pages have news")) }
                    ul { @for page in report.news.iter().take(NEWS_MAX) { li {
                        (t.say(page.news.name())) ": "
                        a href=(t.page_of(&page.url)) { (page.title.as_deref().filter(|title| !title.is_empty()).unwrap_or(&page.url)) }
                        @if page.difference.is_some() { " · " a href=(t.address("/compare", &[("url", &page.url)])) { (t.say("What changed")) } }
                        @for (value, is_new) in page.values.iter().flat_map(watch::ElementNews::each) { " " @if is_new { ins { (value) } } @else { del { (value) } } }
                    } } }
                }
            }
        }
    }))
}
