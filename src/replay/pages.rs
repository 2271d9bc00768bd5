//! Pages of the replay itself, and what it adds to archived pages.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::address::{Target, uri};
use super::mementos::{Memento, Mementos};
use super::{Asked, Error, Response};
use crate::texts::Language;
use url::Url;

/// Maximum number of parent folders of a missing URL that are tried.
const FOLDERS_MAX: usize = 16;

const STYLE: &str = ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:3rem auto;\
padding:0 1rem}td,th{text-align:left;padding:.1rem 1rem .1rem 0}code{overflow-wrap:anywhere}";

const BANNER_STYLE: &str = ":host{all:initial}p{position:fixed;right:8px;bottom:8px;z-index:2147483647;margin:0;\
padding:4px 10px;border-radius:4px;background:#222d;color:#fff;font:13px/1.5 system-ui,sans-serif}\
a{color:#9cf}@media print{p{display:none}}";

/// URL of a page at another archive's TimeGate.
fn other(timegate: &str, url: &str) -> String {
    format!("{timegate}{}", uri(url))
}

fn host_of(timegate: &str) -> &str {
    timegate.split("://").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or(timegate)
}

impl Asked<'_> {
    fn page(&self, status: u16, title: &'static str, content: &Markup) -> Response {
        let t = self.request.language;
        let whole = html! {
            (DOCTYPE)
            html lang=(t.tag()) {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width";
                    title { (t.say(title)) }
                    style { (PreEscaped(STYLE)) }
                }
                body { main { h1 { (t.say(title)) } (content) } }
            }
        };
        Response::text(status, "text/html; charset=utf-8", whole.into_string())
    }

    /// An error page with one sentence.
    pub(super) fn problem(&self, status: u16, sentence: &'static str) -> Response {
        let title = match status {
            400 => "This cannot be asked",
            404 => "Not in the archive",
            _ => "Not possible",
        };
        self.page(status, title, &html! { p { (self.request.language.say(sentence)) } })
    }

    /// The start page.
    pub(super) fn start(&self) -> Response {
        let ways = ["/web/<timestamp>/<url>", "/web/*/<url>"].map(|way| html! { code { (way) } });
        let what = "This address replays archived pages: {}, or {} for all captures of one.";
        self.page(200, "Replay", &html! { p { (self.request.language.markup(what, &ways)) } })
    }

    /// The page for a missing capture; it links to the nearest folder that was captured.
    pub(super) fn missing(&self, target: &Target) -> Result<Response, Error> {
        if !target.modifier.is_document() {
            let problem = self.problem(404, "There is no capture of this URL.");
            return Ok(self.elsewhere(problem, &target.url));
        }
        if target.url.bytes().all(|byte| byte.is_ascii_digit() || byte == b'/') {
            // The address has no URL, or only a timestamp.
            return Ok(Response { status: 404, ..self.start() });
        }
        let t = self.request.language;
        let nearest = self.folder_above(target)?;
        let content = html! {
            p { (t.markup("There is no capture of {}.", &[html! { code { (target.url) } }])) }
            @if let Some((path, url, date)) = nearest {
                p { (t.markup("The nearest that there is: {}, captured {}.", &[html! { a href=(path) { (url) } }, html! { (date) }])) }
            }
            @if !self.request.timegates.is_empty() {
                p { (t.say("Other archives may have it:")) }
                ul {
                    @for timegate in self.request.timegates {
                        li { a href=(other(timegate, &target.url)) rel="noreferrer" { (host_of(timegate)) } }
                    }
                }
            }
        };
        Ok(self.elsewhere(self.page(404, "Not in the archive", &content), &target.url))
    }

    /// Adds a `Link` header with the TimeGates of other archives.
    pub(super) fn elsewhere(&self, mut response: Response, url: &str) -> Response {
        let gates = self.request.timegates.iter();
        let links: Vec<String> =
            gates.map(|timegate| format!("<{}>; rel=\"timegate\"", other(timegate, url))).collect();
        if !links.is_empty() {
            response.set("Link", &links.join(", "));
        }
        response
    }

    /// The nearest parent folder of a URL that has a capture.
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
                return Ok(Some((
                    path,
                    found.url(memento).to_owned(),
                    Mementos::date(memento, self.request.language),
                )));
            }
        }
        Ok(None)
    }

    /// The banner at the end of a page: the capture time, and a link to the other captures.
    pub(super) fn banner(&self, found: &Mementos, memento: &Memento) -> String {
        let all = format!("/web/*/{}", uri(found.url(memento)));
        let t = self.request.language;
        // The script fills this in if parts of the page were captured on other days.
        let apart = t.say("parts of it up to {} days apart");
        let banner = html! {
            archive-banner {
                template shadowrootmode="open" {
                    style { (PreEscaped(BANNER_STYLE)) }
                    p role="note" lang=(t.tag()) {
                        (t.fill("Archived {}", &[&Mementos::date(memento, t)])) " \u{b7} "
                        a href=(all) target="_top" { (captures(t, found)) } span data-apart=(apart) {}
                    }
                }
            }
        };
        // Non-ASCII characters are escaped, because the page may have any encoding.
        let ascii = |c: char| if c.is_ascii() { c.to_string() } else { format!("&#{};", u32::from(c)) };
        banner.into_string().chars().map(ascii).collect()
    }
}

fn captures(t: Language, found: &Mementos) -> String {
    t.counted(found.list.len() as u64, "{} capture", "{} captures")
}
