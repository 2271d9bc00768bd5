//! The rules for dividing cash, as chosen by people. They are stored in the archive, so that a replay after a crash and
//! the next run divide cash as the last run did.

use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use archive_math::importance::order::DAMPING;
use archive_math::importance::{LinkWeights, Policy};
use archive_storage::address::site_of;
use archive_web::parse::LinkKind;
use serde::{Deserialize, Serialize};

use super::authority::{authority, host_name};
use crate::search::Phrase;

/// Maximum bonus of a favoured page, as a multiple of what a link pays it.
const BONUS_MAX: f64 = 100.0;

/// Default bonus: a favoured page gets three times what others get.
const BONUS_DEFAULT: f64 = 2.0;

/// See the module's documentation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CashRules {
    /// Weights of links.
    pub weights: LinkWeights,
    /// What an unread page receives from the virtual page, relative to `refresh`.
    pub discovery: u16,
    /// What a read page receives from the virtual page, relative to `discovery`.
    pub refresh: u16,
    /// Probability of following a link, between 0 and 1, as in PageRank.
    #[serde(default = "damping")]
    pub damping: f64,
    /// The past that counts.
    #[serde(default)]
    pub window: CreditWindow,
    /// What gets a bonus from the virtual page's cash.
    pub favours: Vec<Favour>,
    /// What a site is.
    pub sites: SiteRule,
}

fn damping() -> f64 {
    DAMPING
}

/// The past over which the cash of a page is counted, in turns of all cash.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CreditWindow {
    /// The whole past (basic OPIC).
    All,
    /// So many turns, by interpolation (adaptive OPIC).
    Interpolated(f64),
}

/// Shortest and longest window, in turns.
const WINDOW_TURNS: RangeInclusive<f64> = 1.0..=10_000.0;

impl CreditWindow {
    /// Its length in turns.
    fn turns(self) -> f64 {
        match self {
            Self::All => f64::INFINITY,
            Self::Interpolated(turns) => turns,
        }
    }
}

impl Default for CreditWindow {
    fn default() -> Self {
        Self::Interpolated(Policy::default().window)
    }
}

impl fmt::Display for CreditWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Interpolated(turns) => write!(f, "interpolated@{turns}"),
        }
    }
}

impl FromStr for CreditWindow {
    type Err = String;

    /// Parses `all` or `interpolated[@TURNS]`.
    fn from_str(text: &str) -> Result<Self, String> {
        let window = match text.split_once('@') {
            None if text == "all" => Some(Self::All),
            None if text == "interpolated" => Some(Self::default()),
            Some(("interpolated", turns)) => {
                let turns = turns.parse().ok().filter(|turns| WINDOW_TURNS.contains(turns));
                turns.map(Self::Interpolated)
            }
            _ => None,
        };
        window.ok_or_else(|| {
            format!(
                "'{text}' is not a window; write all, or interpolated@N with N from {} to {} turns of all cash",
                WINDOW_TURNS.start(),
                WINDOW_TURNS.end()
            )
        })
    }
}

impl Default for CashRules {
    fn default() -> Self {
        let Policy { discovery, refresh, .. } = Policy::default();
        Self {
            weights: LinkWeights::default(),
            discovery,
            refresh,
            damping: DAMPING,
            window: CreditWindow::default(),
            favours: Vec::new(),
            sites: SiteRule::default(),
        }
    }
}

impl CashRules {
    /// Returns the policy of the page ledger.
    #[must_use]
    pub fn policy(&self) -> Policy {
        Policy {
            discovery: self.discovery,
            refresh: self.refresh,
            window: self.window.turns(),
            ..Policy::damped(self.damping)
        }
    }

    /// Whether any rule depends on people's opinion of sites.
    #[must_use]
    pub fn favours_sites(&self) -> bool {
        self.favours.iter().any(|favour| matches!(favour.topic, UrlTopic::Rated | UrlTopic::Likely))
    }

    /// Returns the bonus of a link to this URL, as a multiple of what the link pays.
    #[must_use]
    pub fn bonus(&self, url: &str, kind: Option<LinkKind>) -> f64 {
        let favours = self.favours.iter().filter(|favour| favour.topic.is_of(url, kind));
        favours.map(|favour| favour.bonus).fold(0.0, f64::max)
    }
}

/// Pages that get a bonus on top of what their links pay them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Favour {
    /// Which pages.
    pub topic: UrlTopic,
    /// Bonus as a multiple of what the link pays, 0 to 100.
    pub bonus: f64,
}

/// What a page is about, judged by its URL before it is read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UrlTopic {
    /// The URL contains this word, such as `news` in `https://example.org/news/7`.
    Word(String),
    /// The URL looks like XML, or is linked from a sitemap or feed.
    Xml,
    /// The results of a query. Only the command line knows the query; the books get the pages.
    Query(String),
    /// A text of the link has these words in a row. The books see texts only while a page is crawled.
    LinkText(String),
    /// Sites that people rated well. The books get the sites, not the ratings.
    Rated,
    /// Sites that people would probably choose.
    Likely,
}

impl UrlTopic {
    fn is_of(&self, url: &str, kind: Option<LinkKind>) -> bool {
        const XML_ENDINGS: [&str; 4] = [".xml", ".rss", ".atom", ".rdf"];
        match self {
            Self::Word(word) => {
                url.split(|c: char| !c.is_alphanumeric()).any(|part| part.eq_ignore_ascii_case(word))
            }
            Self::Xml => {
                let path = url.split(['?', '#']).next().unwrap_or(url);
                XML_ENDINGS.iter().any(|ending| path.ends_with(ending))
                    || matches!(kind, Some(LinkKind::Sitemap | LinkKind::FeedPage))
            }
            Self::Query(_) | Self::LinkText(_) | Self::Rated | Self::Likely => false,
        }
    }
}

impl FromStr for Favour {
    type Err = String;

    /// Parses `TOPIC` or `TOPIC*BONUS`; a topic is `xml`, `rated`, `likely`, a word, or a query in parentheses, of which
    /// `(link text contains WORDS)` is judged while pages are crawled.
    fn from_str(text: &str) -> Result<Self, String> {
        let (topic, bonus) = match text.rsplit_once('*') {
            Some((topic, bonus)) if !bonus.contains(')') => (topic.trim(), Some(bonus.trim())),
            _ => (text.trim(), None),
        };
        let bonus = match bonus {
            Some(bonus) => bonus.parse().ok().filter(|bonus| (0.0..=BONUS_MAX).contains(bonus)),
            None => Some(BONUS_DEFAULT),
        };
        let bonus =
            bonus.ok_or_else(|| format!("the bonus in '{text}' has to be a number from 0 to {BONUS_MAX}"))?;
        let query = topic.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
        let is_word = !topic.is_empty() && topic.chars().all(char::is_alphanumeric);
        let topic = match (topic, query) {
            (_, Some(query)) => match words_of_links(query) {
                Some(words) => UrlTopic::LinkText(words.to_owned()),
                None => UrlTopic::Query(query.trim().to_owned()),
            },
            ("xml", _) => UrlTopic::Xml,
            ("rated", _) => UrlTopic::Rated,
            ("likely", _) => UrlTopic::Likely,
            (word, _) if is_word => UrlTopic::Word(word.to_lowercase()),
            _ if topic.contains(char::is_whitespace) => {
                return Err(format!("a query has to be in brackets: ({topic})"));
            }
            _ => {
                return Err(format!(
                    "'{topic}' is not a topic: write xml, rated, likely, a word of URLs, or (a query)"
                ));
            }
        };
        Ok(Self { topic, bonus })
    }
}

/// The words of a query `link text contains WORDS`, with or without quotes.
fn words_of_links(query: &str) -> Option<&str> {
    let mut rest = query.trim();
    for word in ["link", "text", "contains"] {
        let (first, others) = rest.split_once(char::is_whitespace)?;
        rest = Some(others.trim_start()).filter(|_| first.eq_ignore_ascii_case(word))?;
    }
    let quoted =
        |sign: char| rest.strip_prefix(sign)?.strip_suffix(sign).filter(|words| !words.contains(sign));
    let is_word = || Some(rest).filter(|rest| rest.chars().all(char::is_alphanumeric));
    quoted('"').or_else(|| quoted('\'')).or_else(is_word).filter(|words| Phrase::of(words).is_some())
}

/// What a site is: pages of one owner, judged by their URLs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SiteRule {
    /// All hosts under a registrable domain, by the public suffix list.
    #[default]
    Domain,
    /// A host.
    Host,
    /// A host and up to this many folders: `example.org/~ann` for 1.
    Path(u8),
}

impl SiteRule {
    /// Returns the name of the site that a canonical URL belongs to.
    #[must_use]
    pub fn site(self, url: &str) -> Cow<'_, str> {
        let host = host_name(authority(url));
        match self {
            Self::Domain => Cow::Borrowed(site_of(host)),
            Self::Host => Cow::Borrowed(host),
            Self::Path(depth) => {
                let path = url.split_once("://").map_or(url, |(_, rest)| rest);
                let path = path.split(['?', '#']).next().unwrap_or(path);
                let mut parts = path.split('/').skip(1).peekable();
                let mut name = host.to_owned();
                for _ in 0..depth {
                    let Some(part) = parts.next() else { break };
                    // The last part is a file, unless it is a home directory.
                    if part.is_empty() || (parts.peek().is_none() && !part.starts_with('~')) {
                        break;
                    }
                    name.push('/');
                    name.push_str(part);
                }
                Cow::Owned(name)
            }
        }
    }
}

impl FromStr for SiteRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "domain" => Ok(Self::Domain),
            None if text == "host" => Ok(Self::Host),
            Some(("path", depth)) => depth
                .parse()
                .ok()
                .filter(|depth| *depth > 0)
                .map(Self::Path)
                .ok_or_else(|| format!("'{depth}' is not a number of folders; write path:1")),
            _ => Err(format!("'{text}' is not a kind of site; there are domain, host and path:FOLDERS")),
        }
    }
}

impl fmt::Display for SiteRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Domain => f.write_str("domain"),
            Self::Host => f.write_str("host"),
            Self::Path(depth) => write!(f, "path:{depth}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_read_as_they_are_written_and_rules_of_earlier_archives_have_the_default() {
        for text in ["all", "interpolated@16", "interpolated@1", "interpolated@10000", "interpolated@2.5"] {
            let window: CreditWindow = text.parse().unwrap();
            assert_eq!(window.to_string(), text);
            let rules = CashRules { window, damping: 0.7, ..CashRules::default() };
            let stored = serde_json::to_string(&rules).unwrap();
            assert_eq!(serde_json::from_str::<CashRules>(&stored).unwrap(), rules);
        }
        assert_eq!("interpolated".parse(), Ok(CreditWindow::default()));
        for text in ["", "all@3", "fixed@4", "interpolated@0.9", "interpolated@10001", "interpolated@x"] {
            assert!(
                text.parse::<CreditWindow>().unwrap_err().contains("write all, or interpolated@N"),
                "{text}"
            );
        }
        let mut earlier = serde_json::to_value(CashRules::default()).unwrap();
        earlier.as_object_mut().unwrap().retain(|name, _| name != "damping" && name != "window");
        assert_eq!(serde_json::from_value::<CashRules>(earlier).unwrap(), CashRules::default());
    }

    #[test]
    fn sites_are_named_by_the_rule() {
        let url = "https://www.lib.example.co.uk:8080/~ann/cv/index.html?x=/y/";
        for (rule, name) in [
            ("domain", "example.co.uk"),
            ("host", "www.lib.example.co.uk"),
            ("path:1", "www.lib.example.co.uk/~ann"),
            ("path:2", "www.lib.example.co.uk/~ann/cv"),
            ("path:9", "www.lib.example.co.uk/~ann/cv"),
        ] {
            let parsed: SiteRule = rule.parse().unwrap();
            assert_eq!((parsed.site(url).as_ref(), parsed.to_string().as_str()), (name, rule));
        }
        let by_path = SiteRule::Path(1);
        assert_eq!(by_path.site("http://a.test/index.html"), "a.test");
        assert_eq!(by_path.site("http://a.test/"), "a.test");
        assert_eq!(by_path.site("http://a.test/~bob"), "a.test/~bob");
        for wrong in ["", "page", "path:", "path:0", "path:300"] {
            assert!(wrong.parse::<SiteRule>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn favours_are_read_and_found_in_urls() {
        let favour = |text: &str| text.parse::<Favour>().unwrap();
        assert_eq!(favour("news"), Favour { topic: UrlTopic::Word("news".to_owned()), bonus: BONUS_DEFAULT });
        assert_eq!(favour("xml*0.5"), Favour { topic: UrlTopic::Xml, bonus: 0.5 });
        assert_eq!(favour("rated*5"), Favour { topic: UrlTopic::Rated, bonus: 5.0 });
        assert_eq!(favour("likely").topic, UrlTopic::Likely);
        let said = favour("(link text contains \"annual report\")*4");
        assert_eq!(said, Favour { topic: UrlTopic::LinkText("annual report".to_owned()), bonus: 4.0 });
        assert_eq!(favour("(Link  text contains maps)").topic, UrlTopic::LinkText("maps".to_owned()));
        let other = "link text contains a or depth > 2";
        assert_eq!(favour(&format!("({other})")).topic, UrlTopic::Query(other.to_owned()));
        assert_eq!(favour("(depth < 3)*4").topic, UrlTopic::Query("depth < 3".to_owned()));
        assert_eq!(favour("(page text contains 'a*b')").bonus, BONUS_DEFAULT);
        for wrong in ["", "*2", "news*-1", "news*x", "news*101", "two words"] {
            assert!(wrong.parse::<Favour>().is_err(), "{wrong}");
        }
        let rules = CashRules { favours: vec![favour("news*3"), favour("xml")], ..CashRules::default() };
        for (url, bonus) in [
            ("http://a.test/News/1", 3.0),
            ("http://news.test/", 3.0),
            ("http://a.test/newspaper", 0.0),
            ("http://a.test/feed.xml?page=2", 2.0),
            ("http://a.test/news/feed.rss", 3.0),
        ] {
            assert_eq!(rules.bonus(url, None), bonus, "{url}");
        }
        assert_eq!(rules.bonus("http://a.test/map", Some(LinkKind::Sitemap)), 2.0);
    }
}
