//! The start page: totals, the most important sites, the newest changes.

use archive_ask::query::{Question, Value};
use archive_storage::{Host, State, StateError};
use chrono::{DateTime, Utc};
use maud::html;
use serde::Serialize;

use super::{ArchiveRequest, PageProblem, Reply, utc};

/// Maximum number of sites, and of changed pages, listed.
const LISTED: usize = 10;

#[derive(Debug, Serialize)]
pub(in crate::serve) struct StartPage {
    captures: u64,
    urls: u64,
    fetched: u64,
    sites: u64,
    links: u64,
    segment_bytes: u64,
    #[serde(serialize_with = "utc")]
    first: Option<DateTime<Utc>>,
    #[serde(serialize_with = "utc")]
    last: Option<DateTime<Utc>>,
    important_sites: Vec<StartSite>,
    changes: Vec<RecentChange>,
}

#[derive(Debug, Serialize)]
struct StartSite {
    site: String,
    importance: f64,
    pages: u64,
}

#[derive(Debug, Serialize)]
struct RecentChange {
    url: String,
    title: Option<String>,
    #[serde(serialize_with = "utc")]
    changed: Option<DateTime<Utc>>,
    importance: f64,
}

/// Collects the data of the page.
fn held(asked: &ArchiveRequest<'_>) -> Result<StartPage, PageProblem> {
    let state = asked.opened.store.state();
    let totals = state.shown_totals();
    let (first, last) = span(state);
    Ok(StartPage {
        captures: contents(state)?,
        urls: totals.urls,
        fetched: totals.fetched,
        sites: totals.sites,
        links: totals.links,
        segment_bytes: match state.veil() {
            Some(veil) => veil.totals.stored_bytes,
            None => state.segments().map(|(_, segment)| segment.bytes).sum(),
        },
        first,
        last,
        important_sites: sites(asked)?,
        changes: changes(asked)?,
    })
}

pub(super) fn page(asked: &ArchiveRequest<'_>) -> Result<Reply, PageProblem> {
    let data = asked.opened.cache.start.of(asked.opened, (), |_| 0, || held(asked))?;
    let t = asked.speech;
    let others = asked.server.others(asked.host);
    Ok(asked.reply(t.say("Start"), &*data, || {
        html! {
            h1 { (t.say("Web archive")) }
            dl .facts {
                div { dt { (t.say("Captures")) } dd { (t.count(data.captures)) } }
                div { dt { (t.say("URLs fetched")) } dd { (t.count(data.fetched)) } }
                div { dt { (t.say("Sites fetched or linked to")) } dd { (t.count(data.sites)) } }
                div { dt { (t.say("Links")) } dd { (t.count(data.links)) } }
                div { dt { (t.say("Size of WARC files")) } dd { (t.bytes(data.segment_bytes)) } }
                div { dt { (t.say("First capture")) } dd { (t.moment(data.first)) } }
                div { dt { (t.say("Last capture")) } dd { (t.moment(data.last)) } }
            }
            @if data.captures == 0 {
                p { (t.markup("Nothing was captured yet. {} begins.", &[html! { code { "archive crawl --seeds list.txt" } }])) }
            }
            @if !data.important_sites.is_empty() { section {
                h2 { (t.say("Most important sites")) }
                table {
                    thead { tr { th scope="col" { (t.say("Site")) } th .number scope="col" { (t.say("Importance")) } th .number scope="col" { (t.say("Pages")) } } }
                    tbody {
                        @for site in &data.important_sites {
                            tr {
                                th scope="row" { a href=(t.site_of(&site.site)) { (site.site) } }
                                td .number { (t.decimal(site.importance, 2)) }
                                td .number { @if site.pages == 0 { (t.say("only linked to")) } @else { (t.count(site.pages)) } }
                            }
                        }
                    }
                }
            } }
            @if !others.is_empty() {
                section {
                    h2 { (t.say("Other archives")) }
                    ul { @for (name, application) in &others { li { a href=(application) { (name) } } } }
                }
            }
            @if !data.changes.is_empty() {
                section {
                    h2 { (t.say("Newest changes")) }
                    table {
                        thead { tr { th scope="col" { (t.say("Page")) } th scope="col" { (t.say("Changed")) } th .number scope="col" { (t.say("Importance")) } } }
                        tbody {
                            @for change in &data.changes {
                                tr {
                                    th scope="row" {
                                        a href=(t.page_of(&change.url)) { (change.title.as_deref().unwrap_or(&change.url)) }
                                        @if change.title.is_some() { div .url { (change.url) } }
                                    }
                                    td { (t.moment(change.changed)) }
                                    td .number { (t.decimal(change.importance, 2)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }))
}

/// Number of captures with content, except those of robots.txt.
fn contents(state: &State) -> Result<u64, StateError> {
    let of_host = |(_, _, host): (_, _, Host)| u64::from(host.contents);
    state.hosts().map(|host| host.map(of_host)).sum()
}

/// Times of the first and the last capture.
fn span(state: &State) -> (Option<DateTime<Utc>>, Option<DateTime<Utc>>) {
    let times = || state.segments().map(|(_, segment)| segment);
    let first = times().filter_map(|segment| segment.first_time).min();
    let last = times().filter_map(|segment| segment.last_time).max();
    let (first, last) = match state.veil() {
        Some(veil) => veil.span.unzip(),
        None => (first, last),
    };
    (first.and_then(DateTime::from_timestamp_micros), last.and_then(DateTime::from_timestamp_micros))
}

fn sites(asked: &ArchiveRequest<'_>) -> Result<Vec<StartSite>, PageProblem> {
    let text = format!("site limit {LISTED}");
    let question = Question::new(asked.opened.store, asked.opened.access.clone(), &text, Utc::now())?;
    let (sites, _) = question.plan.select_sites(&question.rows)?;
    let site = |site: archive_ask::query::SiteRow| StartSite {
        site: site.name,
        importance: site.importance,
        pages: site.pages,
    };
    Ok(sites.into_iter().map(site).collect())
}

fn changes(asked: &ArchiveRequest<'_>) -> Result<Vec<RecentChange>, PageProblem> {
    let text = format!(
        "page versions > 1 order by changed desc limit {LISTED} select url, title, changed, importance"
    );
    let question = Question::new(asked.opened.store, asked.opened.access.clone(), &text, Utc::now())?;
    let change = |row: Vec<Value>| match row.as_slice() {
        [Value::Text(url), title, changed, importance] => Some(RecentChange {
            url: url.clone(),
            title: if let Value::Text(title) = title { Some(title.clone()) } else { None },
            changed: if let Value::Time(time) = changed { Some(*time) } else { None },
            importance: importance.as_number().unwrap_or_default(),
        }),
        _ => None,
    };
    Ok(question.answer()?.rows.into_iter().filter_map(change).collect())
}

/// Metrics for Prometheus.
pub(super) fn metrics(asked: &ArchiveRequest<'_>) -> Result<Reply, PageProblem> {
    let state = asked.opened.store.state();
    let totals = state.shown_totals();
    let rows = [
        ("captures", "Captures of the archive.", totals.captures),
        ("urls", "URLs that it knows.", totals.urls),
        ("fetched_urls", "URLs that were fetched.", totals.fetched),
        ("links", "Links of the newest versions.", totals.links),
        ("checkpoint", "The number of the checkpoint that is read.", state.checkpoint_number()),
    ];
    let row = |(name, help, value): (&str, &str, u64)| {
        format!("# HELP archive_{name} {help}\n# TYPE archive_{name} gauge\narchive_{name} {value}\n")
    };
    let mut text = rows.map(row).concat();
    if let Some(pings) = &asked.server.pings {
        text += "# HELP archive_notices_total Notices that were sent, by what became of them.\n# TYPE archive_notices_total counter\n";
        for (fate, count) in pings.counts() {
            text += &format!("archive_notices_total{{fate=\"{fate}\"}} {count}\n");
        }
    }
    Ok(Reply::of(200, "text/plain; version=0.0.4", text))
}
