//! The cookies of a crawl: RFC 6265bis, with the public suffix list.
//!
//! A jar is consulted when a request is made and updated when the head of an answer has arrived. It is bounded in every
//! direction; what is oldest makes room. Values of cookies are in no message, and in no record but those of the answers
//! that set them.

use std::cmp::Reverse;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archive_base::files::FileError;
use archive_base::secrets;
use archive_storage::address::site_of;
use cookie::{Cookie, SameSite};
use lru::LruCache;
use serde::{Deserialize, Serialize};
use url::Url;

/// Maximum bytes of a cookie: its name, value, domain and path (RFC 6265bis, section 5.6, has the first two).
pub const COOKIE_BYTES_MAX: usize = 4096;

/// Maximum number of cookies of a domain, and their bytes; the oldest make room. More would not fit into the head of a
/// request to most servers.
pub const DOMAIN_COOKIES_MAX: usize = 50;
const DOMAIN_BYTES_MAX: usize = 16 << 10;

/// Maximum number of domains with cookies, and of bytes of all cookies with what keeping them costs; the domain that was
/// asked longest ago makes room.
pub const DOMAINS_MAX: usize = 65_536;
const JAR_BYTES_MAX: usize = 32 << 20;

/// Bytes of memory that a cookie takes beside its texts.
const COOKIE_COST: usize = 160;

/// What stands in records in the place of a secret.
pub const REDACTED: &str = "redacted";

/// Maximum seconds that a cookie lives (RFC 6265bis, section 5.5: 400 days).
const LIFETIME_MAX: i64 = 400 * 24 * 60 * 60;

/// Maximum bytes of the file with the cookies that are kept.
const FILE_BYTES_MAX: u64 = 4 * JAR_BYTES_MAX as u64;

/// Name of that file among an archive's secrets: JSON lines, a [`KeptCookie`] each, the domain asked longest ago first.
pub const FILE: &str = "cookies.jsonl";

/// On whose behalf a URL is asked for, which decides the cookies that are sent and taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CookieContext {
    /// No person's browser would ask for it: no cookies.
    #[default]
    None,
    /// As if its address was typed, or for a page of the same site.
    SameSite,
    /// A link on a page of another site is followed: no cookies that are `SameSite=Strict`.
    Link,
    /// A part of a page of another site: only cookies that are `SameSite=None`.
    Part,
}

impl CookieContext {
    /// The context of a request on behalf of a page; a part is what the page shows, as a picture is.
    #[must_use]
    pub fn of(url: &Url, page: Option<&Url>, is_part: bool) -> Self {
        match page {
            Some(page) if !is_same_site(url, page) => {
                if is_part {
                    Self::Part
                } else {
                    Self::Link
                }
            }
            _ => Self::SameSite,
        }
    }

    fn allows(self, same_site: Option<SameSite>) -> bool {
        match self {
            Self::None => false,
            Self::SameSite => true,
            Self::Link => same_site != Some(SameSite::Strict),
            Self::Part => same_site == Some(SameSite::None),
        }
    }
}

/// A cookie as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptCookie {
    /// The domain to which it is sent, in lower case.
    pub domain: Box<str>,
    /// Whether only the host of that very name gets it.
    pub host_only: bool,
    /// Path below which it is sent.
    pub path: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Its value.
    pub value: Box<str>,
    /// Whether it is only sent over TLS.
    pub secure: bool,
    /// `strict`, `lax` or `none`, if the server says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_site: Option<Box<str>>,
    /// When it ends, in seconds since 1970; `None` with the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<i64>,
}

impl KeptCookie {
    fn cost(&self) -> usize {
        self.bytes() + COOKIE_COST
    }

    fn bytes(&self) -> usize {
        self.name.len() + self.value.len() + self.path.len() + self.domain.len()
    }

    fn same_site(&self) -> Option<SameSite> {
        match self.same_site.as_deref()? {
            "strict" => Some(SameSite::Strict),
            "none" => Some(SameSite::None),
            _ => Some(SameSite::Lax),
        }
    }

    /// Whether it is the cookie that a later one of the same name, domain and path replaces.
    fn is_same(&self, other: &Self) -> bool {
        self.name == other.name && self.path == other.path && self.host_only == other.host_only
    }

    fn is_for(&self, host: &str, url: &Url, context: CookieContext, now: i64) -> bool {
        (!self.host_only || *self.domain == *host)
            && (!self.secure || is_secure(url))
            && path_matches(url.path(), &self.path)
            && self.expires.is_none_or(|end| now < end)
            && context.allows(self.same_site())
    }

    /// Reads a field `Set-Cookie` of an answer to a request for `url`; `None` if it is not to be taken.
    fn of_field(url: &Url, field: &str, context: CookieContext, now: i64) -> Option<Self> {
        let host = host_of(url)?;
        let cookie = Cookie::parse(field).ok()?;
        let (name, value) = cookie.name_value();
        let domain = cookie.domain().filter(|domain| !domain.is_empty()).map(str::to_ascii_lowercase);
        // A public suffix is shorter than the sites below it. An address is its own site.
        let is_above = |domain: &str| {
            let rest = host.strip_suffix(domain).filter(|rest| rest.ends_with('.'));
            rest.is_some() && domain.len() >= site_of(host).len()
        };
        let (domain, host_only) = match domain {
            Some(domain) if is_above(&domain) => (domain, false),
            Some(domain) if domain != host => return None,
            named => (host.to_owned(), named.is_none()),
        };
        let path = cookie.path().filter(|path| path.starts_with('/')).unwrap_or(default_path(url.path()));
        let secure = cookie.secure().unwrap_or_default();
        let is_prefixed =
            |prefix: &str| name.get(..prefix.len()).is_some_and(|own| own.eq_ignore_ascii_case(prefix));
        if (secure && !is_secure(url))
            || (is_prefixed("__Secure-") && !secure)
            || (is_prefixed("__Host-") && !(secure && cookie.domain().is_none() && path == "/"))
            || (context == CookieContext::Part && cookie.same_site() != Some(SameSite::None))
        {
            return None;
        }
        let age = cookie.max_age().map(|age| now.saturating_add(age.whole_seconds()));
        let expires = age.or_else(|| Some(cookie.expires()?.datetime()?.unix_timestamp()));
        let kept = Self {
            host_only,
            path: path.into(),
            name: name.into(),
            value: value.into(),
            secure,
            same_site: cookie.same_site().map(|same_site| match same_site {
                SameSite::Strict => "strict".into(),
                SameSite::Lax => "lax".into(),
                SameSite::None => "none".into(),
            }),
            expires: expires.map(|end| end.min(now.saturating_add(LIFETIME_MAX))),
            domain: domain.into(),
        };
        Some(kept)
    }
}

/// All cookies of a crawl.
pub struct CookieJar {
    /// By domain, each in the order in which they were set.
    domains: LruCache<Box<str>, Vec<KeptCookie>>,
    /// What they cost.
    bytes: usize,
    is_changed: bool,
}

impl Default for CookieJar {
    fn default() -> Self {
        Self { domains: LruCache::unbounded(), bytes: 0, is_changed: false }
    }
}

impl CookieJar {
    /// Returns the field `Cookie` of a request, if it has any: longer paths first, then what was set first (RFC 6265bis,
    /// section 5.7.3).
    pub fn field(&mut self, url: &Url, context: CookieContext, now: i64) -> Option<String> {
        if self.domains.is_empty() || context == CookieContext::None {
            return None;
        }
        let host = host_of(url)?;
        let mut found = Vec::new();
        let mut domain = host;
        loop {
            if let Some(cookies) = self.domains.get(domain) {
                let wanted = cookies.iter().filter(|cookie| cookie.is_for(host, url, context, now));
                found.extend(
                    wanted.map(|cookie| (cookie.path.len(), format!("{}={}", cookie.name, cookie.value))),
                );
            }
            let Some((_, above)) = domain.split_once('.').filter(|_| domain.len() > site_of(host).len())
            else {
                break;
            };
            domain = above;
        }
        found.sort_by_key(|(length, _)| Reverse(*length));
        let pairs: Vec<String> = found.into_iter().map(|(_, pair)| pair).collect();
        (!pairs.is_empty()).then(|| pairs.join("; "))
    }

    /// Takes a field `Set-Cookie` of an answer to a request for `url`.
    pub fn take(&mut self, url: &Url, field: &str, context: CookieContext, now: i64) {
        if context == CookieContext::None {
            return;
        }
        if let Some(cookie) = KeptCookie::of_field(url, field, context, now) {
            self.put(cookie, is_secure(url), now);
        }
    }

    /// Keeps a cookie, in the place of the one that it replaces. One that has ended removes that one; one that is too long,
    /// or would be more than a line of a head, is not kept.
    fn put(&mut self, cookie: KeptCookie, is_secure: bool, now: i64) {
        let texts = [&cookie.name, &cookie.value, &cookie.path];
        if cookie.bytes() > COOKIE_BYTES_MAX || texts.iter().any(|text| text.contains(char::is_control)) {
            return;
        }
        let domain = cookie.domain.clone();
        let cookies = self.domains.get_or_insert_mut(domain.clone(), Vec::new);
        // What came without TLS does not replace what came with it.
        if !is_secure && cookies.iter().any(|other| other.secure && other.name == cookie.name) {
            return;
        }
        let place = cookies.iter().position(|other| other.is_same(&cookie));
        if place.and_then(|place| cookies.get(place)) == Some(&cookie) {
            return;
        }
        self.is_changed = true;
        let replaced = place.map(|place| cookies.remove(place));
        self.bytes -= replaced.as_ref().map_or(0, KeptCookie::cost);
        if cookie.expires.is_none_or(|end| end > now) {
            self.bytes += cookie.cost();
            // It keeps the place of the one that it replaces.
            cookies.insert(place.unwrap_or(cookies.len()), cookie);
        }
        while cookies.len() > DOMAIN_COOKIES_MAX
            || cookies.iter().map(KeptCookie::bytes).sum::<usize>() > DOMAIN_BYTES_MAX
        {
            self.bytes -= cookies.remove(0).cost();
        }
        if cookies.is_empty() {
            self.domains.pop(&domain);
        }
        while self.bytes > JAR_BYTES_MAX || self.domains.len() > DOMAINS_MAX {
            let Some((_, dropped)) = self.domains.pop_lru() else { break };
            self.bytes -= dropped.iter().map(KeptCookie::cost).sum::<usize>();
        }
    }

    fn drop_of(&mut self, is_meant: impl Fn(&str) -> bool) {
        let meant: Vec<Box<str>> =
            self.domains.iter().map(|(domain, _)| domain.clone()).filter(|domain| is_meant(domain)).collect();
        for domain in meant {
            let dropped = self.domains.pop(&domain).unwrap_or_default();
            self.bytes -= dropped.iter().map(KeptCookie::cost).sum::<usize>();
            self.is_changed = true;
        }
    }

    /// All cookies that have not ended, from the domain that was asked longest ago.
    fn all(&self, now: i64) -> impl Iterator<Item = &KeptCookie> {
        let all = self.domains.iter().rev().flat_map(|(_, cookies)| cookies);
        all.filter(move |cookie| cookie.expires.is_none_or(|end| now < end))
    }
}

/// The jar of a crawl, shared between its threads.
#[derive(Clone, Default)]
pub struct Cookies(Arc<Mutex<CookieJar>>);

impl fmt::Debug for Cookies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cookies").finish_non_exhaustive()
    }
}

impl Cookies {
    /// The jar. Whoever panicked with it left it whole.
    pub(super) fn jar(&self) -> MutexGuard<'_, CookieJar> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a URL of its own site is asked for with cookies.
    #[must_use]
    pub fn has_for(&self, url: &Url, now: i64) -> bool {
        self.jar().field(url, CookieContext::SameSite, now).is_some()
    }

    /// Whether a cookie of this name is sent to a URL of its own site.
    pub(super) fn has_named(&self, url: &Url, name: &str, now: i64) -> bool {
        let field = self.jar().field(url, CookieContext::SameSite, now).unwrap_or_default();
        field.split("; ").any(|pair| pair.split_once('=').is_some_and(|(own, _)| own == name))
    }

    /// Drops the cookies of some domains.
    pub(super) fn drop_of(&self, is_meant: impl Fn(&str) -> bool) {
        self.jar().drop_of(is_meant);
    }

    /// Reads the cookies that an archive keeps; none if there is no file.
    ///
    /// # Errors
    /// When the file cannot be read, is not private, or is not what this program writes.
    pub fn read(archive: &Path, now: i64) -> Result<Self, FileError> {
        let mut jar = CookieJar::default();
        for line in
            secrets::read(archive, FILE, FILE_BYTES_MAX)?.unwrap_or_default().split(|byte| *byte == b'\n')
        {
            if !line.is_empty() {
                let cookie: KeptCookie = serde_json::from_slice(line)
                    .map_err(|error| FileError::at(&secrets::path(archive, FILE))(error.into()))?;
                jar.put(cookie, true, now);
            }
        }
        jar.is_changed = false;
        Ok(Self(Arc::new(Mutex::new(jar))))
    }

    /// Takes cookies that no server has set just now.
    pub fn add<'c>(&self, cookies: impl Iterator<Item = &'c KeptCookie>, now: i64) {
        let mut jar = self.jar();
        cookies.for_each(|cookie| jar.put(cookie.clone(), true, now));
    }

    /// Removes the kept cookies of some domains.
    ///
    /// # Errors
    /// As [`Cookies::read`] and [`Cookies::write`].
    pub fn forget(archive: &Path, now: i64, is_meant: impl Fn(&str) -> bool) -> Result<(), FileError> {
        let cookies = Self::read(archive, now)?;
        cookies.drop_of(is_meant);
        cookies.write(archive, now)
    }

    /// Keeps the cookies that have not ended for later runs, if any has changed.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, archive: &Path, now: i64) -> Result<(), FileError> {
        let mut jar = self.jar();
        if !std::mem::take(&mut jar.is_changed) {
            return Ok(());
        }
        let mut lines = Vec::new();
        for cookie in jar.all(now) {
            let line = serde_json::to_vec(cookie);
            lines.extend(line.map_err(|error| FileError::at(&secrets::path(archive, FILE))(error.into()))?);
            lines.push(b'\n');
        }
        secrets::write(archive, FILE, &lines)
    }
}

/// Returns a field `Cookie` without its values.
#[must_use]
pub fn without_values(field: &str) -> String {
    let names = field.split("; ").map(|pair| pair.split_once('=').map_or(pair, |(name, _)| name));
    names.map(|name| format!("{name}={REDACTED}")).collect::<Vec<_>>().join("; ")
}

fn host_of(url: &Url) -> Option<&str> {
    url.host_str().filter(|_| matches!(url.scheme(), "http" | "https"))
}

fn is_secure(url: &Url) -> bool {
    url.scheme() == "https"
}

/// Whether two URLs belong to one site with one scheme (RFC 6265bis, section 5.2).
fn is_same_site(one: &Url, other: &Url) -> bool {
    let site = |url: &Url| url.host_str().map(|host| site_of(host).to_owned());
    one.scheme() == other.scheme() && site(one) == site(other)
}

/// Whether the path of a request is that of a cookie or below it (RFC 6265bis, section 5.1.4).
fn path_matches(path: &str, below: &str) -> bool {
    path.strip_prefix(below)
        .is_some_and(|rest| rest.is_empty() || below.ends_with('/') || rest.starts_with('/'))
}

/// The path of a cookie that names none: that of the request up to its last slash.
fn default_path(path: &str) -> &str {
    match path.rfind('/') {
        None | Some(0) => "/",
        Some(slash) => &path[..slash],
    }
}

#[cfg(test)]
mod tests;
