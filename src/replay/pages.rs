//! The replay's own few pages, and what it adds to those of others.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::address::{Target, uri};
use super::mementos::{Memento, Mementos};
use super::{Asked, Error, Response};
use url::Url;

/// Captures that a list shows, the newest ones.
const LISTED_MAX: usize = 1000;

/// Folders above a missing URL that are looked for.
const FOLDERS_MAX: usize = 16;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:3rem auto;padding:0 1rem;\
color-scheme:light dark}td,th{text-align:left;padding:.1rem 1rem .1rem 0}code{overflow-wrap:anywhere}";

const BANNER_STYLE: &str = ":host{all:initial}p{position:fixed;right:8px;bottom:8px;z-index:2147483647;margin:0;\
padding:4px 10px;border-radius:4px;background:#222d;color:#fff;font:13px/1.5 system-ui,sans-serif}\
a{color:#9cf}@media print{p{display:none}}";

fn page(title: &str, content: &Markup) -> String {
    let whole = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { h1 { (title) } (content) }
        }
    };
    whole.into_string()
}

fn response(status: u16, title: &str, content: &Markup) -> Response {
    Response::text(status, "text/html; charset=utf-8", page(title, content))
}

/// What went wrong, in a sentence.
pub(super) fn problem(status: u16, sentence: &str) -> Response {
    let title = match status {
        400 => "This cannot be asked",
        404 => "Not in the archive",
        _ => "Not possible",
    };
    response(status, title, &html! { p { (sentence) } })
}

/// What is here.
pub(super) fn start() -> Response {
    let content = html! {
        p { "This address replays archived pages: " code { "/web/<timestamp>/<url>" } ", or " code { "/web/*/<url>" } " for all captures of one." }
    };
    response(200, "Replay", &content)
}

/// All captures of a URL.
pub(super) fn list(found: &Mementos, url: &str) -> Response {
    if found.list.is_empty() {
        return problem(404, "There is no capture of this URL.");
    }
    let shown = found.list.iter().rev().take(LISTED_MAX);
    let content = html! {
        p { (captures(found.list.len())) " of " code { (url) }
            @if found.list.len() > LISTED_MAX { "; the newest " (LISTED_MAX) " are listed" } }
        table {
            tr { th { "Captured" } th { "Status" } th { "URL" } th { "Records" } }
            @for memento in shown {
                tr {
                    td { a href=(found.path(memento, "")) { (Mementos::date(memento)) } }
                    td { (memento.capture.status) }
                    td { code { (found.url(memento)) } }
                    td { a href={ "/warc/" (memento.id) } { "WARC" } }
                }
            }
        }
    };
    response(200, "Captures", &content)
}

fn captures(count: usize) -> String {
    if count == 1 { "1 capture".to_owned() } else { format!("{count} captures") }
}

impl Asked<'_> {
    /// What is not there, with the nearest that is.
    pub(super) fn missing(&self, target: &Target) -> Result<Response, Error> {
        if !target.modifier.is_document() {
            return Ok(problem(404, "There is no capture of this URL."));
        }
        let nearest = self.folder_above(target)?;
        let content = html! {
            p { "There is no capture of " code { (target.url) } "." }
            @if let Some((path, url, date)) = nearest {
                p { "The nearest that there is: " a href=(path) { (url) } ", captured " (date) "." }
            }
        };
        Ok(response(404, "Not in the archive", &content))
    }

    /// The folder nearest above a URL of which there is a capture.
    fn folder_above(&self, target: &Target) -> Result<Option<(String, String, String)>, Error> {
        let Ok(mut url) = Url::parse(&target.url) else { return Ok(None) };
        for _ in 0..FOLDERS_MAX {
            url.set_query(None);
            let above = match url.path().trim_end_matches('/').rfind('/') {
                Some(slash) => url.path()[..=slash].to_owned(),
                None => break,
            };
            url.set_path(&above);
            let found = Mementos::of(self.store, self.access, &super::address::requested_url(url.as_str()))?;
            if let Some(place) = found.choose(self.store, target.when)? {
                let memento = &found.list[place];
                let path = found.path(memento, target.modifier.as_str());
                return Ok(Some((path, found.url(memento).to_owned(), Mementos::date(memento))));
            }
        }
        Ok(None)
    }

    /// What is put at the end of a page: when it was captured, and the way to its other captures.
    pub(super) fn banner(&self, found: &Mementos, memento: &Memento) -> String {
        let all = format!("/web/*/{}", uri(found.url(memento)));
        let banner = html! {
            archive-banner {
                template shadowrootmode="open" {
                    style { (PreEscaped(BANNER_STYLE)) }
                    p role="note" { "Archived " (Mementos::date(memento)) " \u{b7} " a href=(all) target="_top" { (captures(found.list.len())) } span {} }
                }
            }
        };
        // The page may be in any encoding.
        banner.into_string().replace('\u{b7}', "&#183;")
    }
}
