//! Readable views of captures: a feed as a list, a sitemap as a table, other XML as a tree.

use archive_books::change::{readable, versions_meant};
use archive_storage::address::canonical;
use archive_web::parse::{FeedItem, Readable, ReadableElement, SitemapUrl};
use chrono::{DateTime, Utc};
use maud::{Markup, html};
use serde::Serialize;
use url::Url;

use super::compare::{time, time_of};
use super::{ArchiveRequest, PageProblem, Reply, Speech, captures, utc};

/// Depth down to which elements of a tree are initially open.
const OPEN_DEPTH: usize = 2;

#[derive(Serialize)]
struct Read {
    url: String,
    #[serde(serialize_with = "utc")]
    time: Option<DateTime<Utc>>,
    #[serde(flatten)]
    content: Readable,
}

pub(super) fn page(asked: &ArchiveRequest<'_>) -> Result<Reply, PageProblem> {
    let (store, access) = (asked.opened.store, &asked.opened.access);
    let t = asked.speech;
    let id = captures::find(asked)?;
    let url = store.state().url(id)?;
    let versions = versions_meant(store, access, id, (None, time(t, asked.parameter("at"))?))?;
    let (_, capture) =
        versions.ok_or_else(|| PageProblem::Missing(t.fill("The archive has no version of {}.", &[&url])))?;
    let content = readable(store, access, &capture)?
        .map_err(|why| PageProblem::Missing(t.say(why.sentence()).to_owned()))?;
    let data = Read { url, time: time_of(&capture), content };
    let title = match &data.content {
        Readable::Feed { title, .. } if !title.is_empty() => title.clone(),
        _ => data.url.clone(),
    };
    Ok(asked.reply(&title, &data, || {
        html! {
            h1 { (title) }
            p .url { a href=(t.page_of(&data.url)) { (data.url) } }
            p { (t.markup("As of {}", &[t.moment(data.time)])) " · " a href=(asked.replayed(&data.url, data.time)) { (t.say("See it as it was")) } }
            (content_of(asked, &data))
        }
    }))
}

fn content_of(asked: &ArchiveRequest<'_>, data: &Read) -> Markup {
    let t = asked.speech;
    let linked = |written: &str| linked(asked, &data.url, written);
    match &data.content {
        Readable::Feed { about, items, count, .. } => html! {
            @if !about.is_empty() { p { (about) } }
            (first(t, items.len(), *count, ["{} item", "{} items", "The first {} of {} items"]))
            ol .feed { @for FeedItem { title, link, date, text } in items { li {
                h2 { @if title.is_empty() { (t.say("Without a title")) } @else { (title) } }
                @if !date.is_empty() { div .small { (date) } }
                @if !link.is_empty() { div .url { (linked(link)) } }
                @if !text.is_empty() { p { (text) } }
            } } }
        },
        Readable::Sitemap { urls, count } => html! {
            (first(t, urls.len(), *count, ["{} URL", "{} URLs", "The first {} of {} URLs"]))
            div .wide role="region" aria-label=(t.say("URLs")) tabindex="0" { table {
                thead { tr { th scope="col" { (t.say("URL")) } th scope="col" { (t.say("Changed")) } th scope="col" { (t.say("How often")) } th .number scope="col" { (t.say("Priority")) } } }
                tbody { @for SitemapUrl { url, modified, changes, priority } in urls { tr {
                    td .url { (linked(url)) } td { (modified) } td { (changes) } td .number { (priority) }
                } } }
            } }
        },
        Readable::Tree { root, shown, count } => html! {
            (first(t, *shown, *count, ["{} element", "{} elements", "The first {} of {} elements"]))
            div .tree { (element(t, root, 0)) }
        },
    }
}

/// States how many there are, and whether not all are shown.
fn first(t: Speech, shown: usize, all: usize, [one, many, some]: [&'static str; 3]) -> Markup {
    let (shown, all) = (shown as u64, all as u64);
    html! { p { @if shown < all { (t.fill(some, &[&t.count(shown), &t.count(all)])) } @else { (t.counted(all, one, many)) } } }
}

/// A URL as written in the document, linked to its page if the archive knows it.
fn linked(asked: &ArchiveRequest<'_>, base: &str, written: &str) -> Markup {
    let url = Url::parse(base).and_then(|base| base.join(written)).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https")).map(|url| canonical(&url));
    let is_known = |url: &String| matches!(asked.opened.store.state().find(url), Ok(Some(_)));
    let t = asked.speech;
    html! { @if let Some(url) = url.filter(is_known) { a href=(t.page_of(&url)) { (written) } } @else { (written) } }
}

/// An element with its content; the depth is limited when the document is parsed.
fn element(t: Speech, shown: &ReadableElement, depth: usize) -> Markup {
    let head = html! {
        code { (shown.name) }
        @for (name, value) in &shown.attributes { " " span .small { (name) "=" } (value) }
    };
    html! {
        @if shown.children.is_empty() && shown.left_out == 0 {
            div .leaf { (head) @if !shown.text.is_empty() { ": " (shown.text) } }
        } @else {
            details open[depth < OPEN_DEPTH] {
                summary { (head) " " span .small { (t.count(shown.children.len() as u64)) } }
                @if !shown.text.is_empty() { div .leaf { (shown.text) } }
                @for child in &shown.children { (element(t, child, depth + 1)) }
                @if shown.left_out > 0 { div .leaf .small { (t.counted(shown.left_out as u64, "{} more is not shown", "{} more are not shown")) } }
            }
        }
    }
}
