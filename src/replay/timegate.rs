//! Memento's datetime negotiation (RFC 7089).

use archive_web::parse::http_date as read_http_date;

use super::address::{When, http_date};
use super::mementos::{Memento, Mementos};
use super::{ReplayError, ReplayRequest, Response};

impl ReplayRequest<'_> {
    /// `/timegate/<url>`: redirects to the capture nearest to `Accept-Datetime`, or to the newest if there is none.
    pub(super) fn timegate(&self, url: &str) -> Result<Response, ReplayError> {
        let when = match self.request.accept_datetime.map(|text| read_http_date(text).ok_or(text)) {
            None => When::Newest,
            Some(Ok(time)) => When::Second(time.timestamp_micros()),
            Some(Err(_)) => {
                let problem =
                    "Accept-Datetime is not an HTTP date; write it like Thu, 31 May 2007 20:35:00 GMT.";
                return Ok(vary(self.problem(400, problem)));
            }
        };
        let mut found = Mementos::of(self.store, self.access, url)?;
        let Some(place) = found.choose(self.store, self.access, when, None)? else {
            return Ok(vary(self.elsewhere(self.none(&found), url)));
        };
        let memento = &found.list[place];
        let mut response = Response::redirect(&format!("{}{}", self.request.base, found.path(memento, "")));
        response.set("Link", &self.memento_links(&found, Some(place)).join(", "));
        Ok(vary(response))
    }

    /// The links that RFC 7089 requires: original, timegate, timemap, and the mementos before and after this one.
    pub(super) fn memento_links(&self, found: &Mementos, place: Option<usize>) -> Vec<String> {
        let base = self.request.base;
        let memento = place.map(|place| &found.list[place]);
        let url = super::address::uri(memento.map_or("", |memento| found.url(memento)));
        let mut links = vec![
            format!("<{url}>; rel=\"original\""),
            format!("<{base}/timegate/{url}>; rel=\"timegate\""),
            format!("<{base}/timemap/link/{url}>; rel=\"timemap\"; type=\"application/link-format\""),
        ];
        let around = |offset: isize| found.list.get(place?.checked_add_signed(offset)?);
        let ends = found.ends();
        let named = [
            (ends.map(|(first, _)| first), "first"),
            (around(-1), "prev"),
            (memento, ""),
            (around(1), "next"),
            (ends.map(|(_, last)| last), "last"),
        ];
        let mut listed: Vec<(&Memento, Vec<&str>)> = Vec::new();
        for (memento, rel) in named {
            let Some(memento) = memento else { continue };
            match listed.iter_mut().find(|(known, _)| known.id == memento.id) {
                Some((_, rels)) => rels.push(rel),
                None => listed.push((memento, vec![rel])),
            }
        }
        links.extend(listed.into_iter().map(|(memento, rels)| {
            let rels: Vec<&str> = rels.into_iter().filter(|rel| !rel.is_empty()).chain(["memento"]).collect();
            self.memento_link(found, memento, &rels.join(" "))
        }));
        links
    }

    /// The link to a memento.
    pub(super) fn memento_link(&self, found: &Mementos, memento: &Memento, rel: &str) -> String {
        let (path, date) = (found.path(memento, ""), http_date(memento.capture.time));
        format!("<{}{path}>; rel=\"{rel}\"; datetime=\"{date}\"", self.request.base)
    }
}

fn vary(mut response: Response) -> Response {
    response.set("Vary", "accept-datetime");
    response
}
