//! TimeMaps: all captures of a URL, in the formats that Memento clients know: `application/link-format` (RFC 7089,
//! section 5), and JSON and CDXJ as written by MemGator.

use serde_json::json;

use super::address::{When, http_date, moment, requested_url, stamp, uri};
use super::mementos::{Memento, Mementos};
use super::{ReplayError, ReplayRequest, Response};

/// Maximum number of captures on a page of a TimeMap.
pub(super) const ENTRIES_MAX: usize = 10_000;

/// A page of a TimeMap.
struct TimeMapPage<'a> {
    form: &'a str,
    url: String,
    number: usize,
    last: usize,
    entries: &'a [Memento],
}

/// Format, page number and URL of a TimeMap request.
pub(super) fn named(rest: &str) -> (&str, usize, &str) {
    let (form, rest) = rest.split_once('/').unwrap_or((rest, ""));
    match rest.split_once('/') {
        Some((number, url)) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => {
            (form, number.parse().unwrap_or(usize::MAX), url)
        }
        _ => (form, 1, rest),
    }
}

impl ReplayRequest<'_> {
    /// `/timemap/<form>/[page/]<url>`
    pub(super) fn timemap(&self, rest: &str) -> Result<Response, ReplayError> {
        let (form, number, url) = named(rest);
        let write = match form {
            "link" => Self::link_format,
            "json" => Self::json_map,
            "cdxj" => Self::cdxj_map,
            _ => return Ok(self.problem(404, "TimeMaps are in link, json and cdxj.")),
        };
        let url = requested_url(url);
        let mut found = Mementos::of(self.store, self.access, &url)?;
        // It lists what the TimeGate chooses from: also the captures of the spelling that a redirect leads to.
        found.choose(self.store, self.access, When::Newest, None)?;
        let found = found.with_content();
        let Some((last, entries)) = part(&found.list, number) else {
            return Ok(self.problem(404, "There is no capture of this URL on this page of the TimeMap."));
        };
        let page = TimeMapPage { form, url: uri(&url), number, last, entries };
        Ok(write(self, &found, &page))
    }

    /// URL of a page of the same TimeMap.
    fn map(&self, page: &TimeMapPage<'_>, form: &str, number: usize) -> String {
        let part = if number == 1 { String::new() } else { format!("{number}/") };
        format!("{}/timemap/{form}/{part}{}", self.request.base, page.url)
    }

    fn link_format(&self, found: &Mementos, page: &TimeMapPage<'_>) -> Response {
        let base = self.request.base;
        let range =
            page.entries.first().zip(page.entries.last()).map_or_else(String::new, |(first, last)| {
                let (from, until) = (http_date(first.capture.time), http_date(last.capture.time));
                format!("; from=\"{from}\"; until=\"{until}\"")
            });
        let mut lines = vec![
            format!("<{}>; rel=\"original\"", page.url),
            format!(
                "<{}>; rel=\"self\"; type=\"application/link-format\"{range}",
                self.map(page, page.form, page.number)
            ),
            format!("<{base}/timegate/{}>; rel=\"timegate\"", page.url),
        ];
        for number in (1..=page.last).filter(|number| *number != page.number) {
            let address = self.map(page, page.form, number);
            lines.push(format!("<{address}>; rel=\"timemap\"; type=\"application/link-format\""));
        }
        lines.extend(
            page.entries.iter().map(|memento| self.memento_link(found, memento, &rel(found, memento))),
        );
        Response::text(200, "application/link-format", lines.join(",\n") + "\n")
    }

    fn json_map(&self, found: &Mementos, page: &TimeMapPage<'_>) -> Response {
        let entry = |memento: &Memento| {
            let datetime = moment(memento.capture.time).format("%Y-%m-%dT%H:%M:%SZ").to_string();
            json!({ "datetime": datetime, "uri": format!("{}{}", self.request.base, found.path(memento, "")) })
        };
        let ends = found.ends();
        let other = |number: usize| (1..=page.last).contains(&number).then(|| self.map(page, "json", number));
        let map = json!({
            "original_uri": page.url,
            "self": self.map(page, "json", page.number),
            "mementos": {
                "list": page.entries.iter().map(entry).collect::<Vec<_>>(),
                "first": ends.map(|(first, _)| entry(first)),
                "last": ends.map(|(_, last)| entry(last)),
            },
            "timemap_uri": {
                "link_format": self.map(page, "link", 1),
                "json_format": self.map(page, "json", 1),
                "cdxj_format": self.map(page, "cdxj", 1),
            },
            "pages": { "next": other(page.number + 1), "prev": other(page.number - 1) },
            "timegate_uri": format!("{}/timegate/{}", self.request.base, page.url),
        });
        Response::text(200, "application/json", map.to_string() + "\n")
    }

    fn cdxj_map(&self, found: &Mementos, page: &TimeMapPage<'_>) -> Response {
        let maps = json!({
            "link_format": self.map(page, "link", 1),
            "json_format": self.map(page, "json", 1),
            "cdxj_format": self.map(page, "cdxj", 1),
        });
        let mut lines = vec![
            "!context [\"http://tools.ietf.org/html/rfc7089\"]".to_owned(),
            format!("!id {}", json!({ "uri": self.map(page, page.form, page.number) })),
            "!keys [\"memento_datetime_YYYYMMDDhhmmss\"]".to_owned(),
            format!("!meta {}", json!({ "original_uri": page.url })),
            format!(
                "!meta {}",
                json!({ "timegate_uri": format!("{}/timegate/{}", self.request.base, page.url) })
            ),
            format!("!meta {}", json!({ "timemap_uri": maps })),
        ];
        lines.extend(page.entries.iter().map(|memento| {
            let fields = json!({
                "uri": format!("{}{}", self.request.base, found.path(memento, "")),
                "rel": rel(found, memento),
                "datetime": http_date(memento.capture.time),
            });
            format!("{} {fields}", stamp(memento.capture.time))
        }));
        Response::text(200, "application/cdxj+ors", lines.join("\n") + "\n")
    }
}

/// Link relations of a memento.
fn rel(found: &Mementos, memento: &Memento) -> String {
    let Some((first, last)) = found.ends() else { return "memento".to_owned() };
    let mut words = Vec::new();
    if first.id == memento.id {
        words.push("first");
    }
    if last.id == memento.id {
        words.push("last");
    }
    words.push("memento");
    words.join(" ")
}

/// The number of pages of a list, and the page with this number, from 1; `None` if there is no such page.
fn part<T>(list: &[T], number: usize) -> Option<(usize, &[T])> {
    let last = list.len().div_ceil(ENTRIES_MAX);
    let start = number.checked_sub(1).filter(|_| number <= last)? * ENTRIES_MAX;
    Some((last, &list[start..list.len().min(start + ENTRIES_MAX)]))
}

#[cfg(test)]
mod tests {
    use super::{ENTRIES_MAX, part};

    #[test]
    fn pages_end_at_the_limit() {
        let list = vec![0; ENTRIES_MAX + 1];
        let length =
            |count: usize, number| part(&list[..count], number).map(|(last, page)| (last, page.len()));
        assert_eq!(length(ENTRIES_MAX, 1), Some((1, ENTRIES_MAX)));
        assert_eq!(length(ENTRIES_MAX, 2), None);
        assert_eq!(length(ENTRIES_MAX + 1, 1), Some((2, ENTRIES_MAX)));
        assert_eq!(length(ENTRIES_MAX + 1, 2), Some((2, 1)));
        assert_eq!((length(0, 1), length(1, 0), length(1, usize::MAX)), (None, None, None));
    }
}
