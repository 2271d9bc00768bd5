//! The captures of a URL that can be shown, whatever its scheme and `www.`: most sites moved from one to another and are meant
//! as one, as SURTs say.

use std::cmp::Reverse;

use archive_storage::address::surt;
use archive_storage::warc::{HttpHead, split};
use archive_storage::{Capture, CaptureId, CaptureKind, State, StateError, Store, StoreError, UrlId};
use url::Url;

use super::address::{When, half_a_second, moment, stamp};
use crate::access::Access;
use crate::ledger::canonical_of;
use crate::texts::Language;

/// Captures of a URL that are looked at, the newest ones.
pub(super) const MEMENTOS_MAX: usize = 100_000;

/// Redirects of a URL to itself that are passed over before one is shown as it is.
const SELF_REDIRECTS_MAX: usize = 16;

/// A capture that has, or stands for, content.
#[derive(Clone, Debug)]
pub(super) struct Memento {
    pub id: CaptureId,
    pub capture: Capture,
    /// Its URL's place in [`Mementos::urls`].
    url: usize,
}

/// All captures of a URL that may be shown, from the oldest to the newest.
#[derive(Debug, Default)]
pub(super) struct Mementos {
    urls: Vec<String>,
    pub list: Vec<Memento>,
}

/// The URLs that are the same to whoever reads: the first is the one asked for.
pub(super) fn same(url: &str) -> Vec<String> {
    let mut all = vec![url.to_owned()];
    let Some((scheme, rest)) =
        url.split_once("://").filter(|(scheme, _)| matches!(*scheme, "http" | "https"))
    else {
        return all;
    };
    let bare = rest.strip_prefix("www.").unwrap_or(rest);
    let key = surt(url);
    for scheme in [scheme, if scheme == "http" { "https" } else { "http" }] {
        for host in ["", "www."] {
            let other = format!("{scheme}://{host}{bare}");
            let slashed = match other.strip_suffix('/') {
                Some(without) => without.to_owned(),
                None => format!("{other}/"),
            };
            for candidate in [canonical_of(&other), canonical_of(&slashed)] {
                if !all.contains(&candidate) && surt(&candidate) == key {
                    all.push(candidate);
                }
            }
        }
    }
    all
}

/// Those of [`same`] that the archive knows.
pub(super) fn known(state: &State, url: &str) -> Result<Vec<(UrlId, String)>, StateError> {
    let mut found = Vec::new();
    for url in same(url) {
        if let Some(id) = state.find(&url)? {
            found.push((id, url));
        }
    }
    Ok(found)
}

impl Mementos {
    /// Looks a URL up.
    pub(super) fn of(store: &Store, access: &Access, url: &str) -> Result<Self, StateError> {
        let mut found = Self::default();
        for (number, (id, url)) in known(store.state(), url)?.into_iter().enumerate() {
            for capture in access.history(store.state(), id)?.take(MEMENTOS_MAX) {
                let (id, capture) = capture?;
                let has_content = capture.kind.has_payload() || capture.original.is_some();
                if capture.kind != CaptureKind::Failed && has_content {
                    found.list.push(Memento { id, capture, url: number });
                }
            }
            found.urls.push(url);
        }
        found.list.sort_by_key(|memento| (memento.capture.time, memento.id));
        Ok(found)
    }

    /// The URL of a memento, canonical.
    pub(super) fn url(&self, memento: &Memento) -> &str {
        self.urls.get(memento.url).map_or("", String::as_str)
    }

    /// The place in the list of what is meant by a time. A redirect of a URL to another form of itself is not meant, while
    /// there is anything else.
    pub(super) fn choose(&self, store: &Store, when: When) -> Result<Option<usize>, StoreError> {
        let time = match when {
            When::Newest | When::All => i64::MAX,
            When::Second(time) => time.saturating_add(half_a_second()),
            When::Near(time) => time,
        };
        let rank = |place: &usize| {
            let memento = &self.list[*place];
            let distance = memento.capture.time.abs_diff(time);
            let is_elsewhere = !matches!(when, When::Second(_)) || distance > half_a_second().unsigned_abs();
            (is_elsewhere, !is_elsewhere && memento.url > 0, distance, Reverse(*place))
        };
        let mut places: Vec<usize> = (0..self.list.len()).collect();
        places.sort_by_cached_key(rank);
        for place in places.iter().take(SELF_REDIRECTS_MAX) {
            if !self.leads_to_itself(store, &self.list[*place])? {
                return Ok(Some(*place));
            }
        }
        Ok(None)
    }

    fn leads_to_itself(&self, store: &Store, memento: &Memento) -> Result<bool, StoreError> {
        if !(300..400).contains(&memento.capture.status) || memento.capture.kind == CaptureKind::NotModified {
            return Ok(false);
        }
        let (record, url) = (store.record(memento.capture.location)?, self.url(memento));
        let head = HttpHead::parse(&split(&record.content).0);
        let target = head.get("Location").and_then(|to| Url::parse(url).ok()?.join(to).ok());
        Ok(target.is_some_and(|target| surt(target.as_str()) == surt(url)))
    }

    /// The first and the last.
    pub(super) fn ends(&self) -> Option<(&Memento, &Memento)> {
        self.list.first().zip(self.list.last())
    }

    /// Where a memento is replayed, from the root of the origin.
    pub(super) fn path(&self, memento: &Memento, modifier: &str) -> String {
        format!("/web/{}{modifier}/{}", stamp(memento.capture.time), super::address::uri(self.url(memento)))
    }

    /// The date of a memento for people.
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
    use super::same;

    #[test]
    fn forms_of_one_url() {
        let all = same("https://www.a.org/b");
        assert_eq!(all[0], "https://www.a.org/b");
        for other in ["http://a.org/b", "http://www.a.org/b", "https://a.org/b/"] {
            assert!(all.iter().any(|url| url == other), "{other}: {all:?}");
        }
        assert!(!all.iter().any(|url| url.contains("/c")));
        assert_eq!(same("dns:a.org"), ["dns:a.org"]);
    }
}
