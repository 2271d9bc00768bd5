//! The captures of a URL that can be shown, regardless of scheme and `www.`: most sites have moved from one form to
//! another, and all forms are treated as one, as in SURTs.

use std::cmp::Reverse;

use archive_storage::address::surt;
use archive_storage::{Capture, CaptureId, CaptureKind, State, StateError, Store, StoreError, UrlId};
use url::Url;

use super::address::{When, half_a_second, moment, stamp};
use crate::access::Access;
use crate::ledger::canonical_of;
use crate::texts::Language;

/// Maximum number of captures of a URL that are considered, newest first.
pub(super) const MEMENTOS_MAX: usize = 100_000;

/// Maximum number of mementos that are tried to find one that is not a redirect of its URL to itself.
const SELF_REDIRECTS_MAX: usize = 16;

/// Characters that some programs escape in URLs and others do not.
const ESCAPED_OR_NOT: [(&str, &str); 5] =
    [("|", "%7C"), (",", "%2C"), (":", "%3A"), ("[", "%5B"), ("]", "%5D")];

/// Maximum number of spellings of a URL that are looked up.
const SPELLINGS_MAX: usize = 32;

/// Cache-busting parameters that scripts add, and the minimum number of digits of their values, which are times.
const AGAINST_CACHES: [&str; 7] = ["_", "cb", "t", "ts", "time", "timestamp", "nocache"];
const TIME_DIGITS: usize = 10;

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
    urls: Vec<String>,
    pub list: Vec<Memento>,
}

/// The URLs that readers consider the same page, starting with the requested one.
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

/// All spellings of a URL with the characters of [`ESCAPED_OR_NOT`] in its path and query escaped or not, each
/// consistently. The first has none escaped.
fn spellings(url: &str) -> Vec<String> {
    let path = url.match_indices('/').nth(2).map_or(url.len(), |(at, _)| at);
    let (origin, rest) = url.split_at(path);
    let mut all = vec![rest.to_owned()];
    for (plain, escape) in ESCAPED_OR_NOT {
        if (rest.contains(plain) || rest.contains(escape)) && 2 * all.len() <= SPELLINGS_MAX {
            let escaped: Vec<_> = all.iter().map(|rest| rest.replace(plain, escape)).collect();
            all.iter_mut().for_each(|rest| *rest = rest.replace(escape, plain));
            all.extend(escaped);
        }
    }
    all.into_iter().map(|rest| format!("{origin}{rest}")).collect()
}

/// Spellings of a URL as programs assemble them: special characters are escaped in names and values of the query, maybe
/// in the path, and maybe `!*'()` as well. Needed because `MemGator` removes all escapes from a URL.
fn put_together(url: &str) -> Vec<String> {
    let escape = |text: &str, escaped: &str, too: &str| -> String {
        let escape = |c: char| match escaped.contains(c) || too.contains(c) {
            true => format!("%{:02X}", u32::from(c)),
            false => c.to_string(),
        };
        text.chars().map(escape).collect()
    };
    let path = url.match_indices('/').nth(2).map_or(url.len(), |(at, _)| at);
    let (origin, rest) = url.split_at(path);
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut all = Vec::new();
    for too in ["", "!*'()"] {
        let pair = |pair: &str| {
            let (name, value) =
                pair.split_once('=').map_or((pair, None), |(name, value)| (name, Some(value)));
            let value = value.map(|value| format!("={}", escape(value, "$@;:,=/?|[]", too)));
            escape(name, "$@;:,/?|[]", too) + &value.unwrap_or_default()
        };
        let query = query.split('&').map(pair).collect::<Vec<_>>().join("&");
        let query = if rest.contains('?') { format!("?{query}") } else { query };
        for escaped in ["", "$@;:,=&|[]"] {
            all.push(format!("{origin}{}{query}", escape(path, escaped, too)));
        }
    }
    all
}

/// Removes a cache-busting parameter (`_=1700000000000`) from a URL; `None` if it has none.
pub(super) fn without_number(url: &str) -> Option<String> {
    let (rest, query) = url.split_once('?')?;
    let is_number = |pair: &&str| {
        pair.split_once('=').is_some_and(|(name, value)| {
            let is_time = value.len() >= TIME_DIGITS && value.bytes().all(|byte| byte.is_ascii_digit());
            is_time && AGAINST_CACHES.contains(&name)
        })
    };
    let kept: Vec<&str> = query.split('&').filter(|pair| !is_number(pair)).collect();
    let query = if kept.is_empty() { String::new() } else { format!("?{}", kept.join("&")) };
    Some(format!("{rest}{query}")).filter(|without| without.len() < url.len())
}

/// Whether two URLs differ at most in what is escaped.
pub(super) fn is_spelled_alike(one: &str, other: &str) -> bool {
    one == other || spellings(one).first() == spellings(other).first()
}

/// Those of the URLs from [`same`] that the archive knows. If none of them was captured, other spellings are included.
pub(super) fn known(state: &State, url: &str) -> Result<Vec<(UrlId, String)>, StateError> {
    let find = |urls: &[String]| {
        let ids = urls.iter().map(|url| Ok(state.find(url)?.map(|id| (id, url.clone()))));
        ids.filter_map(Result::transpose).collect::<Result<Vec<_>, StateError>>()
    };
    let mut urls = same(url);
    let found = find(&urls)?;
    for (id, _) in &found {
        if state.history(*id)?.next().is_some() {
            return Ok(found);
        }
    }
    let (count, key) = (urls.len(), surt(url));
    for other in
        spellings(url).iter().chain(&put_together(url)).flat_map(|spelled| same(&canonical_of(spelled)))
    {
        if surt(&other) == key && !urls.contains(&other) {
            urls.push(other);
        }
    }
    let others = find(&urls[count..])?;
    Ok(found.into_iter().chain(others).collect())
}

impl Mementos {
    /// Looks up a URL.
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

    /// The canonical URL of a memento.
    pub(super) fn url(&self, memento: &Memento) -> &str {
        self.urls.get(memento.url).map_or("", String::as_str)
    }

    /// The index of the memento to show for a requested time. Redirects of a URL to another form of itself are skipped;
    /// `None` if there is nothing else among the [`SELF_REDIRECTS_MAX`] nearest.
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
        let head = record.http_head();
        let target = head.get("Location").and_then(|to| Url::parse(url).ok()?.join(to).ok());
        Ok(target.is_some_and(|target| surt(target.as_str()) == surt(url)))
    }

    /// The first and the last memento.
    pub(super) fn ends(&self) -> Option<(&Memento, &Memento)> {
        self.list.first().zip(self.list.last())
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
    use super::{SPELLINGS_MAX, is_spelled_alike, put_together, same, spellings, without_number};

    #[test]
    fn spellings_of_one_url() {
        assert_eq!(spellings("http://a.org:80"), ["http://a.org:80"]);
        assert_eq!(spellings("dns:a.org"), ["dns:a.org"]);
        let two = ["http://a.org:81/b:c", "http://a.org:81/b%3Ac"];
        assert_eq!(
            (spellings(two[0]), spellings(two[1])),
            (two.map(str::to_owned).to_vec(), two.map(str::to_owned).to_vec())
        );
        let all = spellings("http://a.org/|?b=%2C,&c[d]=%3A");
        assert_eq!(all.len(), SPELLINGS_MAX);
        assert_eq!(all[0], "http://a.org/|?b=,,&c[d]=:");
        assert_eq!(all[SPELLINGS_MAX - 1], "http://a.org/%7C?b=%2C%2C&c%5Bd%5D=%3A");
        assert!(is_spelled_alike(&all[3], &all[30]) && !is_spelled_alike(&all[3], "http://a.org/"));
    }

    #[test]
    fn urls_as_they_are_put_together() {
        let all = put_together("http://a.org/b(c)=d?e=f:@/g&h[0]");
        let query = "?e=f%3A%40%2Fg&h%5B0%5D";
        let paths = ["b(c)=d", "b(c)%3Dd", "b%28c%29=d", "b%28c%29%3Dd"];
        assert_eq!(all, paths.map(|path| format!("http://a.org/{path}{query}")));
        assert_eq!(put_together("http://a.org")[0], "http://a.org");
    }

    #[test]
    fn numbers_against_caches_are_taken_off() {
        for (url, without) in [
            ("http://a.org/b?_=1700000000000", Some("http://a.org/b")),
            ("http://a.org/b?c=d&_=1700000000&e", Some("http://a.org/b?c=d&e")),
            ("http://a.org/b?ts=170000000", None),
            ("http://a.org/b?id=1700000000000", None),
            ("http://a.org/b?", None),
            ("http://a.org/b", None),
        ] {
            assert_eq!(without_number(url).as_deref(), without, "{url}");
        }
    }

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
