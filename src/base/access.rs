//! Access rules: which captures may be shown, to whom, and from when.
//!
//! They live in `access.toml` in the archive's folder, and every command that shows captures consults them. They
//! restrict what the program shows, not who can read the files. Commands that maintain the archive (verify, repair,
//! rebuild, crawl, refresh) see everything.
//!
//! ```toml
//! [[rule]]
//! prefix = "org,example)/private"  # of the SURT; without a `)`, whole labels of the host name: "org,example"
//! from = 2020-01-01                # captures of this time and later: a date (UTC, its whole day) or a time
//! to = 2021-12-31                  # captures up to this time, its day included
//!
//! [[rule]]
//! prefix = "com,example,news"
//! until = 2030-01-01               # hidden until then
//!
//! [[rule]]
//! prefix = ""                      # every URL
//! for = "90d"                      # each capture is hidden for so long after it was made
//!
//! [[rule]]
//! prefix = "fr,example"
//! shown_to = "reviewer"            # hidden from all but reviewers and operators who are logged in (`archive serve`)
//! ```
//!
//! A rule hides captures permanently unless it has `until` or `for`. No rule can reveal what another rule hides. A
//! revisit is hidden whenever the capture that holds its payload is.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use archive_storage::address::surt;
use archive_storage::{Capture, CaptureId, State, StateError, UrlId, Visit};
use chrono::{DateTime, Days, NaiveDate, SecondsFormat, Utc};
use serde::{Deserialize, Deserializer, Serialize, de};
use toml::Spanned;
use toml::value::Datetime;

use crate::duration::read_duration;
use crate::files::{self, FileError, WholeFile};

/// Name of the file in the archive's folder.
pub const FILE: &str = "access.toml";

/// Maximum size in bytes; a larger file is refused.
pub const BYTES_MAX: u64 = 4 << 20;

/// Maximum number of rules in a file: each shown capture is checked against every rule.
pub(crate) const RULES_MAX: usize = 1000;

/// Why nothing can be shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AccessError {
    /// The file cannot be read.
    #[error("nothing is shown until the access rules can be read: {0}")]
    Unreadable(#[from] FileError),
    /// The file has a mistake.
    #[error("{}, line {line}, column {column}: {problem}; nothing is shown until it is fixed", path.display())]
    Mistake {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// In characters, counted from 1.
        column: usize,
        /// What is wrong.
        problem: String,
    },
}

/// What a person with an account may do. Each role includes the rights of the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Sees what the rules allow.
    Reader,
    /// Decides on sites.
    Reviewer,
    /// Sees the status of crawls and of the server.
    Operator,
}

crate::names! { Role: Reader "reader", Reviewer "reviewer", Operator "operator" }

/// An access rule.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessRule {
    /// Prefix of the SURTs to which the rule applies.
    pub prefix: String,
    /// Applies to captures from this time on.
    #[serde(default, deserialize_with = "start")]
    pub from: Option<DateTime<Utc>>,
    /// Applies to captures before this time.
    #[serde(default, rename = "to", deserialize_with = "end")]
    pub before: Option<DateTime<Utc>>,
    /// Captures are hidden until this time.
    #[serde(default, deserialize_with = "start")]
    pub until: Option<DateTime<Utc>>,
    /// Each capture is hidden for this long after it was made.
    #[serde(default, rename = "for", deserialize_with = "span")]
    pub span: Option<Duration>,
    /// People with this role or a higher one see the captures anyway.
    #[serde(default)]
    pub shown_to: Option<Role>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AccessRules {
    #[serde(default)]
    rule: Vec<Spanned<AccessRule>>,
}

/// What may be shown of an archive.
#[derive(Debug, Clone)]
pub struct Access {
    rules: Arc<[AccessRule]>,
    now: DateTime<Utc>,
    role: Option<Role>,
}

impl Access {
    /// Access to everything: for the archive's owner, and for internal uses that show nothing to anybody.
    #[must_use]
    pub fn unlimited() -> Self {
        Self { rules: Arc::default(), now: Utc::now(), role: None }
    }

    /// Same access rules for a person with this role, or for an unknown person (`None`).
    #[must_use]
    pub fn to(&self, role: Option<Role>) -> Self {
        Self { role, ..self.clone() }
    }

    /// Whether it grants the rights of `role`. Without accounts, everybody has all rights.
    #[must_use]
    pub fn is_for(&self, role: Role) -> bool {
        self.role.is_none_or(|own| own >= role)
    }

    /// Reads the rules of the archive in `path`, evaluated as of now. Without a file, everything is allowed.
    ///
    /// # Errors
    /// When the file cannot be read or has a mistake.
    pub fn read(path: &Path) -> Result<Self, AccessError> {
        let path = path.join(FILE);
        let Some(bytes) = files::read_if_there(&path, BYTES_MAX).map_err(FileError::at(&path))? else {
            return Ok(Self::unlimited());
        };
        let text = String::from_utf8(bytes).map_err(io::Error::other).map_err(FileError::at(&path))?;
        Self::of_text(&path, &text)
    }

    /// Parses rules from the text of a file; `path` is only named in errors.
    ///
    /// # Errors
    /// When the rules have a mistake.
    pub fn of_text(path: &Path, text: &str) -> Result<Self, AccessError> {
        let rules = parse(text).map_err(|(at, problem)| {
            let (line, column) = files::place(text, at);
            AccessError::Mistake { path: path.to_owned(), line, column, problem }
        })?;
        Ok(Self { rules: rules.into(), now: Utc::now(), role: None })
    }

    /// Adds a rule that shows captures of this time and later, of URLs whose SURTs begin with `prefix`, to reviewers
    /// only; returns whether there was none.
    ///
    /// # Errors
    /// When the file has a mistake, or cannot be read or written.
    pub fn show_to_reviewers(archive: &Path, prefix: &str, from: DateTime<Utc>) -> Result<bool, AccessError> {
        let path = archive.join(FILE);
        let before =
            files::read_if_there(&path, BYTES_MAX).map_err(FileError::at(&path))?.unwrap_or_default();
        let text = String::from_utf8(before).map_err(io::Error::other).map_err(FileError::at(&path))?;
        let known = Self::of_text(&path, &text)?;
        let is_known = |rule: &AccessRule| {
            let ends = rule.before.is_some() || rule.until.is_some() || rule.span.is_some();
            rule.prefix == prefix && !ends && rule.from.is_none_or(|start| start <= from)
        };
        if known.rules().iter().any(is_known) {
            return Ok(false);
        }
        let start = from.to_rfc3339_opts(SecondsFormat::Secs, true);
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        let rule = format!("[[rule]]\nprefix = \"{prefix}\"\nfrom = {start}\nshown_to = \"reviewer\"\n");
        let text = format!("{text}{gap}# a log-in opened it (archive login)\n{rule}");
        Self::of_text(&path, &text)?;
        WholeFile::replace(&path, text.as_bytes()).map_err(FileError::at(&path))?;
        Ok(true)
    }

    /// The rules, in file order.
    #[must_use]
    pub fn rules(&self) -> &[AccessRule] {
        &self.rules
    }

    /// Indices of the rules that apply to none of the URLs that an archive knows.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn idle_rules(&self, state: &State) -> Result<Vec<usize>, StateError> {
        let mut idle: Vec<usize> =
            (0..self.rules.len()).filter(|rule| !self.rules[*rule].prefix.is_empty()).collect();
        for id in 0..state.url_count() {
            if idle.is_empty() {
                break;
            }
            let key = surt(&state.url(UrlId(id))?);
            idle.retain(|rule| !self.rules[*rule].covers(&key));
        }
        Ok(idle)
    }

    /// Whether there are no rules.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        self.rules.is_empty()
    }

    /// Index of the first rule that hides a capture of `url` made at `time` (microseconds since 1970).
    #[must_use]
    pub fn hiding(&self, url: &str, time: i64) -> Option<usize> {
        if self.rules.is_empty() {
            return None;
        }
        let (key, time) = (surt(url), DateTime::from_timestamp_micros(time)?);
        self.rules
            .iter()
            .position(|rule| !self.is_shown_by(rule) && rule.covers(&key) && rule.hides(time, self.now))
    }

    /// Indices of the rules that can hide captures of URLs with this SURT.
    #[must_use]
    pub fn covering(&self, surt: &str) -> Vec<usize> {
        let is_meant = |rule: &AccessRule| !self.is_shown_by(rule) && rule.covers(surt);
        (0..self.rules.len()).filter(|rule| is_meant(&self.rules[*rule])).collect()
    }

    /// Whether some of these rules hide a capture made at `time` (microseconds since 1970, as all times here), and when
    /// the first of them ends, if one does.
    #[must_use]
    pub fn hiding_until(&self, rules: &[usize], time: i64) -> (bool, Option<i64>) {
        let Some(time) = DateTime::from_timestamp_micros(time) else { return (false, None) };
        let hiding = rules.iter().filter_map(|rule| self.rules.get(*rule));
        let mut hiding = hiding.filter(|rule| rule.hides(time, self.now)).peekable();
        let is_hidden = hiding.peek().is_some();
        (is_hidden, hiding.filter_map(|rule| rule.ends(time)).map(|ends| ends.timestamp_micros()).min())
    }

    fn is_shown_by(&self, rule: &AccessRule) -> bool {
        rule.shown_to.is_some_and(|least| self.role >= Some(least))
    }

    /// Whether a capture may be shown. Behind a veil, what is hidden is not even found.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn shows(&self, state: &State, capture: &Capture) -> Result<bool, StateError> {
        if self.is_unlimited() || state.veil().is_some() {
            return Ok(true);
        }
        let shown = |capture: &Capture| -> Result<bool, StateError> {
            Ok(self.hiding(&state.url(capture.url)?, capture.time).is_none())
        };
        let original = capture.original.map(|id| state.capture(id)).transpose()?;
        Ok(shown(capture)? && original.map_or(Ok(true), |original| shown(&original))?)
    }

    /// Whether the facts from a page's newest capture may be shown: title, text, status, links.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn shows_page(&self, state: &State, visit: Option<&Visit>) -> Result<bool, StateError> {
        match visit
            .and_then(|visit| visit.last_capture)
            .filter(|_| !self.is_unlimited() && state.veil().is_none())
        {
            Some(newest) => self.shows(state, &state.capture(newest)?),
            None => Ok(true),
        }
    }

    /// The captures of a URL that may be shown, newest first.
    ///
    /// # Errors
    /// When the state cannot be read; each item can fail, too.
    pub fn history<'a>(
        &'a self,
        state: &'a State,
        url: UrlId,
    ) -> Result<impl Iterator<Item = Result<(CaptureId, Capture), StateError>> + 'a, StateError> {
        let shown = |found: Result<(CaptureId, Capture), StateError>| match found {
            Ok((id, capture)) => match self.shows(state, &capture) {
                Ok(shown) => shown.then_some(Ok((id, capture))),
                Err(error) => Some(Err(error)),
            },
            Err(error) => Some(Err(error)),
        };
        Ok(state.history(url)?.filter_map(shown))
    }
}

impl AccessRule {
    /// Whether the rule applies to URLs with this SURT.
    #[must_use]
    pub fn covers(&self, surt: &str) -> bool {
        let Some(rest) = surt.strip_prefix(self.prefix.as_str()) else { return false };
        let is_whole = self.prefix.is_empty() || self.prefix.contains(')') || self.prefix.ends_with(',');
        is_whole || rest.starts_with([',', ')', ':'])
    }

    fn hides(&self, time: DateTime<Utc>, now: DateTime<Utc>) -> bool {
        let is_meant =
            self.from.is_none_or(|from| time >= from) && self.before.is_none_or(|before| time < before);
        is_meant && self.ends(time).is_none_or(|ends| now < ends)
    }

    /// When a capture made at `time` is no longer hidden; `None` if always.
    fn ends(&self, time: DateTime<Utc>) -> Option<DateTime<Utc>> {
        match self.span {
            Some(span) => time.checked_add_signed(chrono::TimeDelta::from_std(span).ok()?),
            None => self.until,
        }
    }
}

/// Parses a file's rules, or returns the byte offset of the first mistake and what is wrong.
fn parse(text: &str) -> Result<Vec<AccessRule>, (usize, String)> {
    let rules: AccessRules = toml::from_str(text).map_err(|error: toml::de::Error| {
        (error.span().map_or(0, |span| span.start), error.message().replace('\n', "; "))
    })?;
    for (number, rule) in rules.rule.iter().enumerate() {
        check(rule.get_ref(), number).map_err(|problem| (rule.span().start, problem))?;
    }
    let meant =
        |rule: AccessRule| AccessRule { prefix: without_www(&rule.prefix).unwrap_or(rule.prefix), ..rule };
    Ok(rules.rule.into_iter().map(Spanned::into_inner).map(meant).collect())
}

/// The prefix of SURTs that is meant by one of a host whose name begins with `www`, which SURTs drop: that host, not
/// those below it.
fn without_www(prefix: &str) -> Option<String> {
    let (host, rest) = prefix.split_at(prefix.find([')', ':']).unwrap_or(prefix.len()));
    let (domain, label) = host.strip_suffix(',').unwrap_or(host).rsplit_once(',')?;
    let is_www = label.strip_prefix("www").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
    is_www.then(|| format!("{domain}{}", if rest.is_empty() { ")" } else { rest }))
}

fn check(rule: &AccessRule, number: usize) -> Result<(), String> {
    if number >= RULES_MAX {
        return Err(format!("there are more than {RULES_MAX} rules"));
    }
    if rule.prefix.contains("://") {
        return Err(format!("'{}' is a URL; its SURT is '{}'", rule.prefix, surt(&rule.prefix)));
    }
    if rule.prefix.bytes().any(|byte| byte.is_ascii_uppercase() || !byte.is_ascii_graphic()) {
        return Err(format!(
            "no SURT begins with '{}': SURTs have no capital letters and no spaces",
            rule.prefix
        ));
    }
    if rule.until.is_some() && rule.span.is_some() {
        return Err("a rule can have `until` or `for`, but not both".to_owned());
    }
    if rule.from.zip(rule.before).is_some_and(|(from, before)| from >= before) {
        return Err("`from` is later than `to`".to_owned());
    }
    Ok(())
}

fn start<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<DateTime<Utc>>, D::Error> {
    Ok(Some(time(deserializer)?.0))
}

fn end<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<DateTime<Utc>>, D::Error> {
    Ok(Some(time(deserializer)?.1))
}

fn span<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    read_duration(&text).map(Some).map_err(de::Error::custom)
}

/// The start and the exclusive end of a date (a whole day) or a time (a microsecond).
fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(DateTime<Utc>, DateTime<Utc>), D::Error> {
    let text = Datetime::deserialize(deserializer)?.to_string();
    let day = || {
        let day = NaiveDate::parse_from_str(&text, "%Y-%m-%d").ok()?;
        let next = day.checked_add_days(Days::new(1))?;
        Some((day.and_hms_opt(0, 0, 0)?.and_utc(), next.and_hms_opt(0, 0, 0)?.and_utc()))
    };
    let moment = || {
        let time = DateTime::parse_from_rfc3339(&text).ok()?.to_utc();
        Some((time, time.checked_add_signed(chrono::TimeDelta::microseconds(1))?))
    };
    day().or_else(moment).ok_or_else(|| {
        de::Error::custom(format!(
            "'{text}' is neither a date nor a time with its zone; write it like 2026-01-31 or 2026-01-31T10:00:00Z"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::{Access, RULES_MAX, Role, Utc, parse, surt};
    use chrono::TimeDelta;

    fn access(text: &str) -> Access {
        Access { rules: parse(text).unwrap().into(), now: Utc::now(), role: None }
    }

    #[test]
    fn prefixes_end_where_labels_do() {
        let hides = |prefix: &str, url: &str| {
            access(&format!("[[rule]]\nprefix = \"{prefix}\"")).rules[0].covers(&surt(url))
        };
        for url in ["http://example.org/", "https://a.example.org:8080/x", "http://example.org:81/"] {
            assert!(hides("org,example", url), "{url}");
            assert!(hides("", url), "{url}");
        }
        assert!(!hides("org,example", "http://exampleshop.org/"));
        assert!(!hides("org,example,", "http://example.org/"));
        assert!(hides("org,example,", "http://a.example.org/"));
        assert!(hides("org,example)/a", "http://www.example.org/abc"));
        assert!(!hides("org,example)/a", "http://example.org/b"));
    }

    #[test]
    fn dates_are_whole_days_and_embargoes_end() {
        let access = access(
            "[[rule]]\nprefix = \"org,a\"\nfrom = 2020-01-01\nto = 2020-12-31\n\
             [[rule]]\nprefix = \"org,b\"\nuntil = 2021-01-01\n\
             [[rule]]\nprefix = \"org,c\"\nfor = \"90d\"\n\
             [[rule]]\nprefix = \"org,d\"\nuntil = 2999-01-01T00:00:00Z\n",
        );
        let hidden = |url: &str, time: &str| {
            access.hiding(url, time.parse::<chrono::DateTime<Utc>>().unwrap().timestamp_micros())
        };
        assert_eq!(hidden("http://a.org/", "2019-12-31T23:59:59.999999Z"), None);
        assert_eq!(hidden("http://a.org/", "2020-01-01T00:00:00Z"), Some(0));
        assert_eq!(hidden("http://a.org/", "2020-12-31T23:59:59.999999Z"), Some(0));
        assert_eq!(hidden("http://a.org/", "2021-01-01T00:00:00Z"), None);
        assert_eq!(hidden("http://b.org/", "2020-06-01T00:00:00Z"), None);
        assert_eq!(hidden("http://d.org/", "2020-06-01T00:00:00Z"), Some(3));
        let days_ago = |days| (access.now - TimeDelta::days(days)).timestamp_micros();
        assert_eq!(access.hiding("http://c.org/", days_ago(89)), Some(2));
        assert_eq!(access.hiding("http://c.org/", days_ago(91)), None);
    }

    #[test]
    fn a_rule_hides_nothing_from_those_whom_it_names() {
        let access = access(
            "[[rule]]\nprefix = \"org,a\"\nshown_to = \"reviewer\"\n[[rule]]\nprefix = \"org,a)/b\"\n",
        );
        let hiding = |role, url: &str| access.to(role).hiding(url, 0);
        for (role, found) in [
            (None, Some(0)),
            (Some(Role::Reader), Some(0)),
            (Some(Role::Reviewer), None),
            (Some(Role::Operator), None),
        ] {
            assert_eq!(hiding(role, "http://a.org/"), found, "{role:?}");
        }
        assert_eq!(
            hiding(Some(Role::Operator), "http://a.org/b"),
            Some(1),
            "another rule hides it from everybody"
        );
    }

    #[test]
    fn mistakes_are_reported_with_their_place() {
        for (text, at, problem) in [
            ("[[rule]]\nprefx = \"a\"\n", 9, "unknown field"),
            ("[[rule]]\nfrom = 2020-01-01\n", 0, "missing field `prefix`"),
            ("[[rule]]\nprefix = \"http://a.org/B\"\n", 0, "its SURT is 'org,a)/b'"),
            ("\n[[rule]]\nprefix = \"org,A\"\n", 1, "no capital letters"),
            ("[[rule]]\nprefix = \"\"\nuntil = 2030-01-01\nfor = \"1d\"\n", 0, "not both"),
            ("[[rule]]\nprefix = \"\"\nfrom = 2021-01-01\nto = 2020-01-01\n", 0, "later than"),
            ("[[rule]]\nprefix = \"\"\nfor = \"a while\"\n", 27, "is not a span of time"),
            ("[[rule]]\nprefix = \"\"\nuntil = 2030-01-01T00:00:00\n", 29, "with its zone"),
            ("[[rule]]\nprefix = \"\"\nshown_to = \"boss\"\n", 32, "`reader`, `reviewer`, `operator`"),
        ] {
            let (found, message) = parse(text).unwrap_err();
            assert!(message.contains(problem), "{text}: {message}");
            assert_eq!(found, at, "{text}: {message}");
        }
        let many = "[[rule]]\nprefix = \"\"\n".repeat(RULES_MAX);
        assert_eq!(parse(&many).unwrap().len(), RULES_MAX);
        assert!(parse(&(many + "[[rule]]\nprefix = \"\"\n")).unwrap_err().1.contains("more than"));
    }
}
