//! A page: its captures, why it is in the archive and when it is due, its links.

use std::collections::BTreeMap;

use archive_ask::query::{ArchiveRows, CaptureRow, Rows};
use archive_books::change::is_version;
use archive_choose::{UrlStory, Weights};
use archive_grammar::Quoted;
use archive_storage::address::canonical;
use archive_storage::digest::hex;
use archive_storage::{LinkList, UrlId};
use archive_web::parse::DocumentKind;
use chrono::{DateTime, Datelike, Local, Utc};
use maud::{Markup, html};
use serde::Serialize;
use url::Url;

use super::compare::name_of;
use super::trend::{ImportanceAt, noted, section};
use super::{ArchiveRequest, PageProblem, Reply, Speech, utc};

/// Maximum number of captures listed.
const CAPTURES_MAX: usize = 500;
/// Maximum number of links listed.
const LINKS_MAX: usize = 100;

/// Kind of a capture that was erased.
const ERASED: &str = "erased";

#[derive(Serialize)]
struct CapturedPage {
    url: String,
    title: Option<String>,
    /// Newest first, starting at the position given in the address.
    captures: Vec<CaptureListRow>,
    /// Position from which older ones are listed.
    older: Option<u64>,
    /// Total number of captures with content.
    captured: u64,
    /// Total number of attempts, including those not listed.
    attempts: u64,
    /// Captures with content by year and month, oldest first.
    months: Vec<(i32, [u64; 12])>,
    /// Type of its newest version; `None` if there is none.
    #[serde(rename = "type")]
    kind: Option<&'static str>,
    why: UrlStory,
    /// Its importance over time, as noted at the ends of runs.
    importance_noted: Vec<ImportanceAt>,
    /// URLs that its newest version links to.
    links: Vec<String>,
    /// Total number of links.
    linked: u64,
}

#[derive(Serialize)]
struct CaptureListRow {
    #[serde(serialize_with = "utc")]
    time: Option<DateTime<Utc>>,
    status: Option<u16>,
    kind: &'static str,
    changed: Option<&'static str>,
    content_type: String,
    bytes: Option<u32>,
    digest: String,
    segment: u32,
    /// Name of its WARC file.
    file: String,
    offset: u64,
    /// Where it is shown as it was; `None` once it is erased.
    replay: Option<String>,
    /// Whether it shows what stood at the URL.
    content: bool,
    /// Whether it is a version of the page, which can be compared with others.
    is_version: bool,
}

pub(super) fn page(asked: &ArchiveRequest<'_>) -> Result<Reply, PageProblem> {
    let (store, access) = (asked.opened.store, &asked.opened.access);
    let state = store.state();
    let id = find(asked)?;
    let url = state.url(id)?;
    let rows = ArchiveRows::new(store, access.clone())?;
    let from: u64 = asked.parameter("from").parse().unwrap_or(0);
    let (mut captures, mut captured, mut attempts) = (Vec::new(), 0, 0);
    let mut months = BTreeMap::<i32, [u64; 12]>::new();
    for capture in rows.history(id).map_err(|error| PageProblem::of(&error))? {
        let capture = capture.map_err(|error| PageProblem::of(&error))?;
        attempts += 1;
        captured += u64::from(capture.is_content);
        let local = capture.time.with_timezone(&Local);
        if capture.is_content
            && let Some(month) = months.entry(local.year()).or_default().get_mut(local.month0() as usize)
        {
            *month += 1;
        }
        if attempts > from && captures.len() < CAPTURES_MAX {
            captures.push(row(asked, &url, capture)?);
        }
    }
    let (links, linked) = links(asked, id)?;
    let visit = state.visit(id)?;
    let data = CapturedPage {
        title: visit.and_then(|visit| visit.title).map(|title| state.title(title)).transpose()?,
        older: Some(from.saturating_add(captures.len() as u64)).filter(|next| *next < attempts),
        captures,
        captured,
        attempts,
        months: months.into_iter().collect(),
        kind: rows
            .page(id)
            .map_err(|error| PageProblem::of(&error))?
            .and_then(|page| page.kind)
            .map(DocumentKind::page_type),
        why: archive_choose::why(store, access, id, Weights::kept(store)?, None, Utc::now(), *asked.speech)?,
        importance_noted: noted(asked.opened, |trends| trends.pages.get(&url))?,
        links,
        linked,
        url,
    };
    let title = data.title.clone().unwrap_or_else(|| data.url.clone());
    Ok(asked.reply(&title, &data, || shown(asked, &data)))
}

/// The requested URL, if the archive knows it.
pub(super) fn find(asked: &ArchiveRequest<'_>) -> Result<UrlId, PageProblem> {
    let (text, state) = (asked.parameter("url"), asked.opened.store.state());
    let t = asked.speech;
    let missing = || PageProblem::Missing(t.fill("{} is not in the archive.", &[&text]));
    let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let url = Url::parse(&with_scheme).map_err(|_| PageProblem::no_url(t, text))?;
    state.find(&canonical(&url))?.ok_or_else(missing)
}

fn row(asked: &ArchiveRequest<'_>, url: &str, capture: CaptureRow) -> Result<CaptureListRow, PageProblem> {
    let state = asked.opened.store.state();
    let stored = state.capture(capture.id)?;
    let segment = stored.location.segment;
    Ok(CaptureListRow {
        content: capture.is_content,
        is_version: is_version(&stored),
        replay: (capture.kind != ERASED).then(|| asked.replayed(url, Some(capture.time))),
        time: Some(capture.time),
        status: capture.status,
        kind: capture.kind,
        changed: match (capture.content_changed, capture.bytes_changed) {
            (true, _) => Some("content"),
            (false, true) => Some("bytes"),
            (false, false) => None,
        },
        content_type: capture.content_type,
        bytes: capture.size,
        digest: hex(&capture.digest),
        segment: segment.0,
        file: state.segment(segment).map(|entry| entry.file.clone()).unwrap_or_default(),
        offset: stored.location.offset,
    })
}

/// The first of the URLs that the newest version links to, and the total number.
fn links(asked: &ArchiveRequest<'_>, id: UrlId) -> Result<(Vec<String>, u64), PageProblem> {
    let state = asked.opened.store.state();
    let LinkList { links, .. } = state.links(id)?;
    let urls = links.iter().take(LINKS_MAX).map(|link| state.url(link.target));
    Ok((urls.collect::<Result<_, _>>()?, links.len() as u64))
}

fn shown(asked: &ArchiveRequest<'_>, data: &CapturedPage) -> Markup {
    let (t, why) = (asked.speech, &data.why);
    let newest = data.captures.iter().find(|row| row.content).or(data.captures.first());
    let replayed = newest.and_then(|newest| Some((newest, newest.replay.as_ref()?)));
    html! {
        h1 { (data.title.as_deref().unwrap_or(&data.url)) }
        p .url { (data.url) }
        @if let Some((newest, replay)) = replayed { p {
            a .button href=(replay) { (t.say("See it as it was")) } " "
            @if let Some(how) = readable(data) { a .button href=(t.address("/read", &[("url", &data.url)])) { (t.say(how)) } " " }
            (t.moment(newest.time))
        } }
        dl .facts {
            div { dt { (t.say("Captures")) } dd { (t.count(data.captured)) } }
            @if data.attempts > data.captured { div { dt { (t.say("Attempts")) } dd { (t.count(data.attempts)) } } }
            @if let Some(importance) = why.importance { div { dt { (t.say("Importance")) } dd { (t.decimal(importance, 2)) } } }
            @if let Some(next_visit) = &why.next_visit {
                div { dt { (t.say("Expected changes a day")) } dd { (t.decimal(next_visit.changes_per_day, 3)) } }
                div { dt { (t.say("Next due")) } dd { (t.moment(next_visit.due)) } }
            }
            div { dt { (t.say("Site")) } dd { a href=(t.site_of(&why.spent.site)) { (why.spent.site) } } }
        }
        (section(t, &data.importance_noted))
        @if !data.months.is_empty() { section { h2 { (t.say("Captures by month")) } (calendar(t, data)) } }
        section {
            h2 { (t.say("History")) }
            @if data.attempts == 0 { p { (t.say("It was never captured.")) } } @else { (history(t, data)) }
            @if let Some(from) = data.older { p { a href=(t.address("/page", &[("url", &data.url), ("from", &from.to_string())])) { (t.say("Older captures")) } } }
        }
        section { h2 { (t.say("Why")) } (reasons(t, why)) }
        section {
            h2 { (t.say("Links")) }
            p { a href=(t.query_of(&format!("page links to {} order by importance", Quoted(&data.url)))) { (t.say("Pages that link here")) } }
            @if data.kind.is_some() {
                @let url = Quoted(&data.url);
                p { a href=(t.query_of(&format!("page near {url} order by shared({url}) select url, title, shared({url}) as share, first seen"))) { (t.say("Copies of its text, and pages that quote it")) } }
            }
            @if data.linked > 0 {
                p {
                    @if data.links.len() as u64 == data.linked { (t.counted(data.linked, "It links to {} URL:", "It links to {} URLs:")) }
                    @else { (t.fill("It links to {} URLs, of which these are the first:", &[&t.count(data.linked)])) }
                }
                ul .url { @for url in &data.links { li { a href=(t.page_of(url)) { (url) } } } }
            }
        }
        @if data.captures.iter().any(|row| row.replay.is_some()) {
            p .small { a href=(asked.replayed(&data.url, None).replace("/web/2/", "/timemap/link/")) { "TimeMap" } }
        }
    }
}

/// How a version can be read here, if it can.
fn readable(data: &CapturedPage) -> Option<&'static str> {
    match data.kind? {
        "feed" => Some("Read it as a list"),
        "sitemap" => Some("Read it as a table"),
        "xml" => Some("Read it as a tree"),
        _ => None,
    }
}

/// The captures, with a choice of two to compare.
fn history(t: Speech, data: &CapturedPage) -> Markup {
    let [from, to] = chosen(&data.captures);
    let can_compare = from.is_some();
    let choice = |name: &str, label: &'static str, row: &CaptureListRow, checked: bool| {
        let label = t.fill(label, &[&row.time.map(|time| t.minute(time)).unwrap_or_default()]);
        html! { td { @if row.is_version { input type="radio" name=(name) value=[row.time.map(name_of)] checked[checked] aria-label=(label); } } }
    };
    html! {
        form action="/compare" {
            (t.kept())
            input type="hidden" name="url" value=(data.url);
            @if can_compare { p { button { (t.say("Compare the two that are chosen")) } } }
            div .wide role="region" aria-label=(t.say("Captures")) tabindex="0" { table {
                thead { tr {
                    @if can_compare { th scope="col" { (t.say("From")) } th scope="col" { (t.say("To")) } }
                    th scope="col" { (t.say("Captured")) } th scope="col" { (t.say("Status")) } th scope="col" { (t.say("What")) } th scope="col" { (t.say("Changed")) }
                    th scope="col" { (t.say("Type")) } th .number scope="col" { (t.say("Bytes")) } th scope="col" { (t.say("Digest")) } th scope="col" { (t.say("WARC file")) }
                    @if readable(data).is_some() { th scope="col" { (t.say("Read")) } }
                } }
                tbody {
                    @for (place, row) in data.captures.iter().enumerate() {
                        tr {
                            @if can_compare { (choice("from", "Compare from {}", row, from == Some(place))) (choice("to", "Compare to {}", row, to == Some(place))) }
                            th scope="row" {
                                @if let Some(replay) = &row.replay { a href=(replay) { (t.moment(row.time)) } }
                                @else { (t.moment(row.time)) }
                            }
                            td { @if let Some(status) = row.status { (status) } @else { "–" } }
                            td { (t.say(shown_kind(row.kind))) }
                            td { @if let Some(changed) = row.changed { (t.say(changed)) } @else { "–" } }
                            td { (row.content_type) }
                            td .number { @if let Some(bytes) = row.bytes { (t.count(bytes.into())) } @else { "–" } }
                            td { @if row.bytes.is_some() { code { (row.digest.get(..12).unwrap_or_default()) } } @else { "–" } }
                            td .small { (t.fill("{} at byte {}", &[&row.file, &t.count(row.offset)])) }
                            @if readable(data).is_some() { td { @if let Some(time) = row.time.filter(|_| row.is_version) {
                                a href=(t.address("/read", &[("url", &data.url), ("at", &name_of(time))])) { (t.say("Read")) }
                            } } }
                        }
                    }
                }
            } }
        }
    }
}

/// Display name of a capture's kind: one "identical" to a much earlier capture may still be a change.
fn shown_kind(kind: &'static str) -> &'static str {
    if kind == "identical" { "seen before" } else { kind }
}

/// The default pair of captures to compare: the one before the newest change, and the newest. The first is `None` if
/// there is only one version.
fn chosen(captures: &[CaptureListRow]) -> [Option<usize>; 2] {
    let mut versions = captures.iter().enumerate().filter(|(_, row)| row.is_version);
    let newest = versions.clone().next().map(|(place, _)| place);
    let second = versions.clone().nth(1).map(|(place, _)| place);
    let before = versions.by_ref().find(|(_, row)| row.changed.is_some()).and_then(|_| versions.next());
    [before.map(|(place, _)| place).or(second), newest]
}

/// A table of years and months with the number of captures.
fn calendar(t: Speech, data: &CapturedPage) -> Markup {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let most = data.months.iter().flat_map(|(_, months)| months).copied().max().unwrap_or(1).max(1);
    html! {
        div .wide role="region" aria-label=(t.say("Captures by month")) tabindex="0" { table .calendar {
            thead { tr { th scope="col" { (t.say("Year")) } @for month in MONTHS { th scope="col" { (t.say(month)) } } } }
            tbody {
                @for (year, months) in &data.months {
                    tr {
                        th scope="row" { (year) }
                        @for captures in months {
                            // Four shades, by number of captures.
                            td class=(format!("shade{}", (captures * 4).div_ceil(most))) { @if *captures > 0 { (t.count(*captures)) } }
                        }
                    }
                }
            }
        } }
    }
}

fn reasons(t: Speech, why: &UrlStory) -> Markup {
    let (found, spent) = (&why.found, &why.spent);
    let depth = u64::from(found.depth);
    html! {
        p { (t.fill("The URL {}.", &[&why.verdict])) }
        table .reasons {
            tbody {
                tr { th scope="row" { (t.say("Found")) } td {
                    @if found.seed { (t.say("a seed")) }
                    @else { (t.counted(depth, "by a link, {} link from the nearest seed", "by a link, {} links from the nearest seed")) }
                    @for page in &found.via { br; a .url href=(t.page_of(page)) { (page) } }
                } }
                tr { th scope="row" { (t.say("Scope")) } td { (why.scope) } }
                @if let Some(decided) = &why.decided { tr { th scope="row" { (t.say("Decided")) } td { (decided) } } }
                @if !why.missing_entities.is_empty() {
                    tr { th scope="row" { (t.say("Missing entities")) } td .url { (why.missing_entities.join(", ")) } }
                }
                @if let Some(announced) = &why.announced { tr { th scope="row" { (t.say("Announced")) } td { (announced) } } }
                tr { th scope="row" { (t.say("Host")) } td {
                    (spent.host) " · " (t.counted(spent.host_pages.into(), "{} page fetched", "{} pages fetched"))
                } }
                tr { th scope="row" { (t.say("Site")) } td {
                    (spent.site) " · " (t.counted(spent.site_pages.into(), "{} page fetched", "{} pages fetched"))
                    " · " (t.fill("importance {}", &[&t.decimal(spent.site_importance, 2)]))
                } }
                tr { th scope="row" { (t.say("Order")) } td { (t.say(why.order.sentence())) " (" code { (why.order) } ")" } }
                @if let Some(next_visit) = &why.next_visit {
                    tr { th scope="row" { (t.say("Refresh")) } td {
                        code { (next_visit.policy) }
                        @if let Some(days) = next_visit.interval_days { " · " (t.fill("at intervals of {}", &[&t.span(days * 86_400.0)])) }
                        @if let Some(part) = &next_visit.part { " · " (t.fill("as a part of {}", &[&part.page])) }
                        " · " (t.fill("{} of {} pages before it", &[&t.count(next_visit.before), &t.count(next_visit.of)]))
                        @if next_visit.estimated { " " (t.say("(estimated)")) }
                        @if let Some(since) = next_visit.failing_since { " · " (t.fill("it has brought nothing since {}", &[&t.minute(since)])) }
                    } }
                }
            }
        }
    }
}
