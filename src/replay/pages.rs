//! Pages of the replay itself, and what it adds to archived pages.

use archive_base::texts::Language;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use url::Url;

use super::address::{ReplayTarget, uri};
use super::mementos::{Memento, Mementos};
use super::ranges::PartialBody;
use super::{ReplayError, ReplayRequest, Response};

/// Maximum number of parent folders of a missing URL that are tried.
const FOLDERS_MAX: usize = 16;

const STYLE: &str = ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:3rem auto;\
padding:0 1rem}td,th{text-align:left;padding:.1rem 1rem .1rem 0}code{overflow-wrap:anywhere}";

const BANNER_STYLE: &str = ":host{all:initial}p{position:fixed;right:8px;bottom:8px;z-index:2147483647;margin:0;\
padding:4px 10px;border-radius:4px;background:#222d;color:#fff;font:13px/1.5 system-ui,sans-serif}\
a{color:#9cf}@media print{p{display:none}}";

/// Path, URL and date of a capture that a page links to.
type Nearest = (String, String, String);

/// URL of a page at another archive's TimeGate.
fn other(timegate: &str, url: &str) -> String {
    format!("{timegate}{}", uri(url))
}

fn host_of(timegate: &str) -> &str {
    timegate.split("://").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or(timegate)
}

impl ReplayRequest<'_> {
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

    /// The page for a request of which only other bytes were captured.
    pub(super) fn only_part(&self, part: PartialBody) -> Response {
        let t = self.request.language;
        let (status, title) = match self.request.range {
            Some(_) => (416, "Not possible"),
            None => (404, "Not in the archive"),
        };
        let PartialBody::Range { first, last, length } = part else {
            return self.problem(status, "Only several parts of it were captured, in one answer.");
        };
        let bytes = [first, last].map(|byte| html! { (byte) });
        let content = html! { p { (t.markup("Only bytes {} to {} of it were captured.", &bytes)) } };
        let mut response = self.page(status, title, &content);
        if let (416, Some(length)) = (status, length) {
            response.set("Content-Range", &format!("bytes */{length}"));
        }
        response
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

    /// The response for a missing capture in one sentence.
    pub(super) fn none(&self, found: &Mementos) -> Response {
        match found.own_redirect() {
            Some(_) => self.problem(404, "All captures of this URL redirect to another spelling of it."),
            None => self.problem(404, "There is no capture of this URL."),
        }
    }

    /// The page for a missing capture; it links to what was captured of a URL that differs only in what varies from request
    /// to request, or to the nearest folder that was captured. `found` has nothing to show.
    pub(super) fn missing(
        &self,
        target: &ReplayTarget,
        mut found: Mementos,
    ) -> Result<Response, ReplayError> {
        if !target.modifier.is_document() {
            return Ok(self.elsewhere(self.none(&found), &target.url));
        }
        if target.url.bytes().all(|byte| byte.is_ascii_digit() || byte == b'/') {
            // The address has no URL, or only a timestamp.
            return Ok(Response { status: 404, ..self.start() });
        }
        let t = self.request.language;
        found.widen_to_like(self.store, self.access)?;
        let nearest = match self.nearest(&mut found, target)? {
            Some(nearest) => Some(nearest),
            None => self.folder_above(target)?,
        };
        let content = html! {
            @if let Some(other) = found.own_redirect() {
                p { (t.markup("{} was captured only as a redirect to {}, which was not captured.", &[html! { code { (target.url) } }, html! { code { (other) } }])) }
            } @else {
                p { (t.markup("There is no capture of {}.", &[html! { code { (target.url) } }])) }
            }
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

    /// Path, URL and date of the memento nearest to the requested time.
    fn nearest(&self, found: &mut Mementos, target: &ReplayTarget) -> Result<Option<Nearest>, ReplayError> {
        let place = found.choose(self.store, self.access, target.when, None)?;
        Ok(place.map(|place| {
            let memento = &found.list[place];
            let path = found.path(memento, target.modifier.as_str());
            (path, found.url(memento).to_owned(), Mementos::date(memento, self.request.language))
        }))
    }

    /// The nearest parent folder of a URL that has a capture.
    fn folder_above(&self, target: &ReplayTarget) -> Result<Option<Nearest>, ReplayError> {
        let Ok(mut url) = Url::parse(&target.url) else { return Ok(None) };
        for _ in 0..FOLDERS_MAX {
            url.set_query(None);
            let above = match url.path().trim_end_matches('/').rfind('/') {
                Some(slash) => url.path()[..=slash].to_owned(),
                None => break,
            };
            url.set_path(&above);
            let mut found =
                Mementos::of(self.store, self.access, &super::address::requested_url(url.as_str()))?;
            if let Some(nearest) = self.nearest(&mut found, target)? {
                return Ok(Some(nearest));
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
