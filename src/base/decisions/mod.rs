//! Decisions by people: ratings, verdicts, tags and collections of sites, hosts, folders and pages.
//!
//! `decisions.jsonl` in the archive's folder has a line for each decision, in the order they were made. Lines are never
//! changed; a mistaken decision is undone by a further line. Like the watches, it is a file outside the state, because
//! the state can be rebuilt and decisions cannot. The current decisions follow from all lines ([`Decisions`]): each
//! person's newest rating counts, and for everything else the newest statement.

mod current;
mod effect;
mod import;
mod log;

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use archive_storage::address::{canonical, host_key};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::texts::Language;

pub use current::{CurrentDecisions, Rated, RobotsDecided};
pub use import::{ComparedImport, DecisionImport, ImportRow};
pub use log::{Decisions, DecisionsError, FILE, check_name};

/// Maximum length of a name, tag or collection in bytes.
pub const NAME_BYTES_MAX: usize = 200;
/// Maximum length of a reason or note in bytes.
pub const TEXT_BYTES_MAX: usize = 4000;
/// Maximum number of tags, or collections, in a decision.
pub const NAMES_MAX: usize = 100;

/// The subject of a decision.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Subject {
    /// A site, by its name: includes all its hosts.
    Site(String),
    /// A host, with its port unless that is the default one.
    Host(String),
    /// All URLs that begin with this one, which ends with `/`.
    Folder(String),
    /// One page, by its canonical URL.
    Page(String),
}

/// What is to happen to a site or page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DecisionVerdict {
    /// It belongs in the archive: exempt from budgets and trap detection.
    Keep,
    /// Nothing more is fetched; existing captures stay.
    Drop,
    /// It is refreshed more often.
    Often,
    /// It does not belong in the archive: it is removed from the scope.
    Never,
    /// Somebody must look at it again.
    Investigate,
}

/// What becomes of the robots.txt of a site or host. It is fetched and archived in any case, and its delay holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RobotsDecision {
    /// What it forbids is not fetched.
    #[default]
    Obey,
    /// Parts of pages (pictures, style sheets, scripts) are fetched all the same.
    Parts,
    /// Everything is fetched all the same.
    Ignore,
}

/// A decision as stored in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// Time of the decision, to the second.
    #[serde(with = "crate::instant")]
    pub time: DateTime<Utc>,
    /// Name of the person.
    pub by: String,
    /// What was decided.
    pub what: DecisionContent,
}

/// Content of a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DecisionContent {
    /// Undoes the earlier decision with this number, from 1.
    Undoes(u64),
    /// States something new.
    Said(Box<Statement>),
}

/// A statement about a subject; omitted parts remain unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// The subject.
    pub on: Subject,
    /// Rating, 1 to 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rating: Option<u8>,
    /// What is to happen to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<DecisionVerdict>,
    /// What becomes of its robots.txt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub robots: Option<RobotsDecision>,
    /// Reason for the verdict, and for what becomes of robots.txt.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Free-form note.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Tags to add; a leading `-` removes the tag.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Collections to add it to; a leading `-` removes it from the collection.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collections: Vec<String>,
}

impl Statement {
    /// An empty statement about this subject.
    #[must_use]
    pub fn of(on: Subject) -> Self {
        let (reason, note) = (String::new(), String::new());
        let (tags, collections) = (Vec::new(), Vec::new());
        Self { on, rating: None, verdict: None, robots: None, reason, note, tags, collections }
    }

    /// Describes the statement in one line.
    #[must_use]
    pub fn in_words(&self, t: Language) -> String {
        let listed = |what: &'static str, names: &[String]| {
            (!names.is_empty()).then(|| format!("{} {}", t.say(what), names.join(", ")))
        };
        let parts = [
            self.rating.map(|rating| t.fill("rated {}", &[&rating])),
            self.verdict.map(|verdict| t.say(verdict.name()).to_owned()),
            self.robots.map(|robots| t.say(robots.sentence()).to_owned()),
            listed("tags", &self.tags),
            listed("collections", &self.collections),
            Some(self.reason.clone()).filter(|reason| !reason.is_empty()),
            Some(self.note.clone()).filter(|note| !note.is_empty()),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    /// Why the statement is invalid, if it is.
    pub(crate) fn mistake(&self) -> Option<String> {
        let is_long = |names: &[String]| {
            names.len() > NAMES_MAX
                || names
                    .iter()
                    .any(|name| name.len() > NAME_BYTES_MAX || name.trim_start_matches('-').is_empty())
        };
        if self.rating.is_some_and(|rating| !(1..=4).contains(&rating)) {
            return Some("a rating is 1, 2, 3 or 4".to_owned());
        }
        if self.reason.len() > TEXT_BYTES_MAX || self.note.len() > TEXT_BYTES_MAX {
            return Some(format!("a reason or note has at most {TEXT_BYTES_MAX} bytes"));
        }
        if is_long(&self.tags) || is_long(&self.collections) {
            return Some(format!(
                "there are at most {NAMES_MAX} tags or collections, each with 1 to {NAME_BYTES_MAX} bytes"
            ));
        }
        let Self { rating, verdict, robots, reason, note, tags, collections, .. } = self;
        let is_empty = rating.is_none()
            && verdict.is_none()
            && robots.is_none()
            && reason.is_empty()
            && note.is_empty()
            && tags.is_empty()
            && collections.is_empty();
        is_empty.then(|| "it says nothing: give a rating, a verdict, tags, collections or a note".to_owned())
    }
}

crate::names! {
    DecisionVerdict: Keep "keep", Drop "drop", Often "often", Never "never", Investigate "investigate"
}

crate::names! { RobotsDecision: Obey "obey", Parts "parts", Ignore "ignore" }

impl RobotsDecision {
    /// Whether what robots.txt forbids is fetched all the same.
    #[must_use]
    pub fn ignores(self, is_part: bool) -> bool {
        self == Self::Ignore || self == Self::Parts && is_part
    }

    /// What becomes of robots.txt, as part of a sentence.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Obey => "robots.txt obeyed",
            Self::Parts => "robots.txt ignored for parts of pages",
            Self::Ignore => "robots.txt ignored",
        }
    }
}

impl DecisionVerdict {
    /// Whether it stops fetching.
    #[must_use]
    pub fn ends_fetching(self) -> bool {
        matches!(self, Self::Drop | Self::Never)
    }
}

/// A URL that ends with `/` is a folder, any other URL a page, `host:NAME` a host, and any other name a site.
impl FromStr for Subject {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.contains("://") {
            let url = Url::parse(text).map_err(|error| format!("'{text}' is not a URL: {error}"))?;
            let url = canonical(&url);
            let folder = url.ends_with('/');
            return Ok(if folder { Self::Folder(url) } else { Self::Page(url) });
        }
        let name = text.to_lowercase();
        let subject = match name.strip_prefix("host:") {
            Some(host) => host_name(host).map(Self::Host),
            None => {
                host_name(&name).filter(|name| name.ends_with(']') || !name.contains(':')).map(Self::Site)
            }
        };
        subject.ok_or_else(|| {
            format!(
                "'{text}' is neither a site (example.org), a host (host:www.example.org), a folder \
                 (https://example.org/news/) nor a page (https://example.org/about)"
            )
        })
    }
}

/// Normalizes a host name, with its port unless that is the default one; `None` if it is not a valid name.
fn host_name(text: &str) -> Option<String> {
    let is_other = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '/' | '\\' | '@' | '?' | '#');
    let url = Url::parse(&format!("http://{text}/")).ok().filter(|_| !text.contains(is_other))?;
    let name = host_key(&url);
    (name.len() <= NAME_BYTES_MAX && name.split('.').all(|label| !label.is_empty())).then_some(name)
}

impl Display for Subject {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Site(name) | Self::Folder(name) | Self::Page(name) => f.write_str(name),
            Self::Host(name) => write!(f, "host:{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_read_as_people_write_them() {
        let read = |text: &str| text.parse::<Subject>();
        assert_eq!(read(" Example.org"), Ok(Subject::Site("example.org".to_owned())));
        assert_eq!(read("host:WWW.a.test:8080"), Ok(Subject::Host("www.a.test:8080".to_owned())));
        assert_eq!(read("HTTP://A.test/b/"), Ok(Subject::Folder("http://a.test/b/".to_owned())));
        assert_eq!(read("http://a.test/b#c"), Ok(Subject::Page("http://a.test/b".to_owned())));
        assert_eq!(read("Bücher.test"), Ok(Subject::Site("xn--bcher-kva.test".to_owned())));
        assert_eq!(read("host:[::1]:8080"), Ok(Subject::Host("[::1]:8080".to_owned())));
        let longest = format!("{}.test", "a".repeat(NAME_BYTES_MAX - 5));
        for site in ["localhost", "127.0.0.1", "[::1]", "a_b.test", &longest] {
            assert_eq!(read(site), Ok(Subject::Site(site.to_owned())));
        }
        let wrong = "host: a.test/b http:// nonsense… a..test .test a.test:8080 a.test:x a%zz a<b> b@a.test a.test?b a\\b [::1";
        let longer = format!("a{longest}");
        for wrong in wrong.split(' ').chain(["", "a b", "a\tb", &longer]) {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        for text in ["example.org", "host:a.test", "http://a.test/b/", "http://a.test/b"] {
            assert_eq!(read(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn senseless_decisions_are_reported() {
        let said = |change: fn(&mut Statement)| {
            let mut said = Statement::of(Subject::Site("a.test".to_owned()));
            change(&mut said);
            said.mistake()
        };
        assert!(said(|_| ()).unwrap().contains("says nothing"));
        assert!(said(|said| said.rating = Some(5)).unwrap().contains("1, 2, 3 or 4"));
        assert!(said(|said| said.note = "x".repeat(TEXT_BYTES_MAX + 1)).unwrap().contains("at most"));
        assert!(said(|said| said.tags = vec!["-".to_owned()]).unwrap().contains("tags"));
        assert_eq!(said(|said| said.note = "x".repeat(TEXT_BYTES_MAX)), None);
    }
}
