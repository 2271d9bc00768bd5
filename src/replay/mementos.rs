//! The captures of a URL that can be shown: as it is spelled, whatever its scheme and `www.`, because most sites have moved
//! from one of these forms to another. If there are none, captures of other spellings with the same SURT are taken.

use std::cmp::Reverse;

use archive_base::access::Access;
use archive_base::texts::Language;
use archive_books::ledger::{CreditError, Credits, canonical_of, is_content, tells};
use archive_storage::address::{canonical, loose_key, surt};
use archive_storage::{Capture, CaptureId, CaptureKind, State, StateError, Store, StoreError, UrlId};
use url::Url;

use super::address::{When, half_a_second, moment, stamp};
use super::ranges::{PartialBody, RangeAsked};

/// Maximum number of captures of a URL that are considered, newest first.
pub(super) const MEMENTOS_MAX: usize = 100_000;

/// Maximum number of redirects that are read to find out which lead to another spelling of their URL.
const SELF_REDIRECTS_MAX: usize = 16;

/// Maximum number of captured parts of a URL that are read to find the one that a request asks for.
const PARTS_MAX: usize = 64;

/// A capture that has content, or refers to it.
#[derive(Clone, Debug)]
pub(super) struct Memento {
    pub id: CaptureId,
    pub capture: Capture,
    /// Index of its URL in [`Mementos::urls`].
    url: usize,
}

/// All captures of a URL that may be shown, oldest first.
#[derive(Debug, Default)]
pub(super) struct Mementos {
    /// The requested URL.
    url: String,
    urls: Vec<String>,
    nearness: Nearness,
    /// See [`Mementos::own_redirect`].
    own_redirect: Option<String>,
    pub list: Vec<Memento>,
}

impl Memento {
    /// The status of its content.
    pub(super) fn status(&self, store: &Store) -> Result<u16, StateError> {
        match (self.capture.status, self.capture.original) {
            (0 | 304, Some(original)) => Ok(store.state().capture(original)?.status),
            (status, _) => Ok(status),
        }
    }
}

/// The forms of a URL with `http` and `https`, with and without `www.`, starting with the requested one.
fn forms(url: &str) -> Vec<String> {
    let mut all = vec![url.to_owned()];
    let web = url.split_once("://").filter(|(scheme, _)| matches!(*scheme, "http" | "https"));
    let Some((scheme, rest)) = web else { return all };
    let (bare, key) = (rest.strip_prefix("www.").unwrap_or(rest), surt(url));
    for scheme in [scheme, if scheme == "http" { "https" } else { "http" }] {
        for host in ["", "www."] {
            let other = canonical_of(&format!("{scheme}://{host}{bare}"));
            if !all.contains(&other) && surt(&other) == key {
                all.push(other);
            }
        }
    }
    all
}

/// Whether two URLs differ at most in what is escaped.
pub(super) fn is_spelled_alike(one: &str, other: &str) -> bool {
    fn bare(url: &str) -> String {
        let mut pieces = url.split('%');
        let mut bare = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let byte = piece.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
            match byte.filter(u8::is_ascii) {
                Some(byte) => bare.extend([char::from(byte).to_string().as_str(), &piece[2..]]),
                None => bare.extend(["%", piece]),
            }
        }
        bare
    }
    one == other || bare(one) == bare(other)
}

/// All captured URLs with the SURT of this one, starting with those of its forms.
pub(super) fn known(state: &State, url: &str) -> Result<Vec<(UrlId, String)>, StateError> {
    let mut found = Vec::new();
    for url in forms(url) {
        found.extend(state.find(&url)?.map(|id| (id, url)));
    }
    let stand_in = match Credits::known_as(state, url) {
        Err(CreditError::State(error)) => return Err(error),
        // Who writes the archive is told that a setting is damaged.
        known => known.ok().flatten(),
    };
    if let Some(id) = stand_in.filter(|id| found.iter().all(|(known, _)| known != id)) {
        found.push((id, state.url(id)?));
    }
    let key = surt(url);
    for (id, other) in state.alike(url)? {
        if found.iter().all(|(known, _)| *known != id) && surt(&other) == key {
            found.push((id, other));
        }
    }
    Ok(found)
}

/// How a requested URL and that of its captures are related.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Nearness {
    /// They are forms of each other, or one redirects to the other.
    #[default]
    Form,
    /// They have the same SURT.
    Spelling,
    /// They differ in what keeps caches away or names a callback.
    Loose,
    /// They name the same file, with other queries.
    File,
}

impl Mementos {
    /// Looks up a URL.
    pub(super) fn of(store: &Store, access: &Access, url: &str) -> Result<Self, StateError> {
        let mut found = Self { url: url.to_owned(), ..Self::default() };
        found.add_forms(store, access, url)?;
        if found.list.is_empty() {
            found.widen(store, access, Nearness::Spelling)?;
        }
        Ok(found)
    }

    fn add_forms(&mut self, store: &Store, access: &Access, url: &str) -> Result<(), StateError> {
        for url in forms(url) {
            if let Some(id) = store.state().find(&url)? {
                self.add(store, access, id, url)?;
            }
        }
        self.list.sort_by_key(|memento| (memento.capture.time, memento.id));
        Ok(())
    }

    fn add(&mut self, store: &Store, access: &Access, id: UrlId, url: String) -> Result<(), StateError> {
        if self.urls.contains(&url) {
            return Ok(());
        }
        let number = self.urls.len();
        self.urls.push(url);
        for capture in access.history(store.state(), id)?.take(MEMENTOS_MAX) {
            let (id, capture) = capture?;
            let has_content = capture.kind.has_payload() || capture.original.is_some();
            if capture.kind != CaptureKind::Failed && has_content {
                self.list.push(Memento { id, capture, url: number });
            }
        }
        Ok(())
    }

    /// Adds the captures of URLs that are as near as this to the requested one.
    fn widen(&mut self, store: &Store, access: &Access, nearness: Nearness) -> Result<(), StateError> {
        self.nearness = nearness;
        let key = |url: &str| match nearness {
            Nearness::Form | Nearness::Spelling => surt(url),
            Nearness::Loose => loose_key(url),
            Nearness::File => String::new(),
        };
        let wanted = key(&self.url);
        for (id, url) in store.state().alike(&self.url)? {
            if key(&url) == wanted {
                self.add(store, access, id, url)?;
            }
        }
        self.list.sort_by_key(|memento| (memento.capture.time, memento.id));
        Ok(())
    }

    /// Adds captures of URLs that differ from the requested one in what differs from request to request, if nothing
    /// else was found.
    pub(super) fn widen_to_like(&mut self, store: &Store, access: &Access) -> Result<(), StateError> {
        for nearness in [Nearness::Loose, Nearness::File] {
            if self.list.is_empty() {
                self.widen(store, access, nearness)?;
            }
        }
        Ok(())
    }

    /// The canonical URL of a memento.
    pub(super) fn url(&self, memento: &Memento) -> &str {
        self.urls.get(memento.url).map_or("", String::as_str)
    }

    /// The index of the memento to show for a requested time. Redirects of a URL to another spelling of itself are
    /// replaced by the captures of that spelling; if it has none, by those of all other spellings. `None` if there is
    /// nothing else among the [`SELF_REDIRECTS_MAX`] nearest.
    ///
    /// A part of a body is shown only if it has the requested range, or if nothing else would answer the request.
    pub(super) fn choose(
        &mut self,
        store: &Store,
        access: &Access,
        when: When,
        range: Option<RangeAsked>,
    ) -> Result<Option<usize>, StoreError> {
        let mut places = self.ranked(when);
        let (mut next, mut reads) = (0, 0);
        let place = loop {
            let Some(place) = places.get(next).copied().filter(|_| reads < SELF_REDIRECTS_MAX) else {
                if self.nearness >= Nearness::Spelling {
                    return Ok(None);
                }
                let before = self.list.len();
                self.widen(store, access, Nearness::Spelling)?;
                if self.list.len() == before {
                    return Ok(None);
                }
                (places, next, reads) = (self.ranked(when), 0, 0);
                continue;
            };
            let Some(target) = self.own_target(store, &self.list[place])? else { break place };
            reads += 1;
            next += 1;
            self.own_redirect.get_or_insert_with(|| target.clone());
            let before = self.list.len();
            self.add_forms(store, access, &target)?;
            if self.list.len() > before {
                (places, next) = (self.ranked(when), 0);
            }
        };
        if !self.is_part(store, place)? || PartialBody::of(store, &self.list[place].capture)?.answers(range) {
            return Ok(Some(place));
        }
        let mut read = 0;
        for other in places {
            if self.is_part(store, other)? {
                read += 1;
                if read <= PARTS_MAX && PartialBody::of(store, &self.list[other].capture)?.answers(range) {
                    return Ok(Some(other));
                }
            } else if self.list[other].status(store)? == 200 {
                return Ok(Some(other));
            }
        }
        Ok(Some(place))
    }

    /// The places of all mementos, the best for a requested time first.
    fn ranked(&self, when: When) -> Vec<usize> {
        let time = match when {
            When::Newest | When::All => i64::MAX,
            When::Second(time) => time.saturating_add(half_a_second()),
            When::Near(time) => time,
        };
        let rank = |place: &usize| {
            let memento = &self.list[*place];
            let distance = memento.capture.time.abs_diff(time);
            let is_elsewhere = !matches!(when, When::Second(_)) || distance > half_a_second().unsigned_abs();
            // An error says nothing of the page: it is shown at its own time, or where there is nothing else.
            let is_error = is_elsewhere && !tells(&memento.capture);
            (is_elsewhere, is_error, !is_elsewhere && memento.url > 0, distance, Reverse(*place))
        };
        let mut places: Vec<usize> = (0..self.list.len()).collect();
        places.sort_by_cached_key(rank);
        places
    }

    fn is_part(&self, store: &Store, place: usize) -> Result<bool, StateError> {
        Ok(self.list[place].status(store)? == 206)
    }

    /// The URL with the same SURT that a memento redirects to, as it is spelled there.
    fn own_target(&self, store: &Store, memento: &Memento) -> Result<Option<String>, StoreError> {
        if !(300..400).contains(&memento.status(store)?) {
            return Ok(None);
        }
        // What cannot be read does not hide the others.
        let Ok(mut head) = store.http_head(memento.capture.location) else { return Ok(None) };
        let url = self.url(memento);
        // A revisit may have no head of its own.
        if head.get("Location").is_none()
            && let Ok(Some(original)) = store.original(&memento.capture)
            && let Ok(other) = store.http_head(original.location)
        {
            head = other;
        }
        let target = head.get("Location").and_then(|to| Url::parse(url).ok()?.join(to).ok());
        Ok(target.map(|target| canonical(&target)).filter(|target| surt(target) == surt(url)))
    }

    /// The other spelling of the requested URL to which a redirect of it leads.
    pub(super) fn own_redirect(&self) -> Option<&str> {
        self.own_redirect.as_deref()
    }

    /// The requested URL.
    pub(super) fn requested(&self) -> &str {
        &self.url
    }

    /// The same without errors: what stood at the URL.
    pub(super) fn with_content(mut self) -> Self {
        self.list.retain(|memento| is_content(&memento.capture));
        self
    }

    /// The first and the last memento that show what stood at the URL, or of all if none does.
    pub(super) fn ends(&self) -> Option<(&Memento, &Memento)> {
        let mut shown = self.list.iter().filter(|memento| is_content(&memento.capture));
        match (shown.next(), shown.next_back()) {
            (Some(first), last) => Some((first, last.unwrap_or(first))),
            _ => self.list.first().zip(self.list.last()),
        }
    }

    /// Path at which a memento is replayed.
    pub(super) fn path(&self, memento: &Memento, modifier: &str) -> String {
        format!("/web/{}{modifier}/{}", stamp(memento.capture.time), super::address::uri(self.url(memento)))
    }

    /// The date of a memento for readers.
    pub(super) fn date(memento: &Memento, t: Language) -> String {
        let format = match t {
            Language::English => "%Y-%m-%d %H:%M:%S UTC",
            Language::French => "%d/%m/%Y %H:%M:%S UTC",
        };
        moment(memento.capture.time).format(format).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::{forms, is_spelled_alike};

    #[test]
    fn spellings_of_one_url() {
        for (one, other) in [
            ("http://a.org/|?b=%2C,", "http://a.org/%7C?b=,%2c"),
            ("http://a.org/%41%", "http://a.org/A%"),
            ("http://a.org/%C3%A9%2F", "http://a.org/%C3%A9/"),
        ] {
            assert!(is_spelled_alike(one, other), "{one}");
        }
        for other in
            ["http://a.org/", "http://a.org/B", "http://a.org/b/", "http://a.org/%é", "http://a.org/%2"]
        {
            assert!(!is_spelled_alike("http://a.org/b", other), "{other}");
        }
    }

    #[test]
    fn forms_of_one_url() {
        let all = forms("https://www.a.org/b?C");
        let expected =
            ["https://www.a.org/b?C", "https://a.org/b?C", "http://a.org/b?C", "http://www.a.org/b?C"];
        assert_eq!(all, expected);
        assert_eq!(forms("dns:a.org"), ["dns:a.org"]);
    }
}
