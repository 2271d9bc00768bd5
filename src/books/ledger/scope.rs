//! The scope of a crawl: the seeds' hosts, their sites, everything, or what a pattern matches.

use std::collections::{HashMap, HashSet};
use std::str::FromStr;

use archive_storage::address::{canonical, host_key, site_of};
use regex::Regex;
use serde::{Deserialize, Serialize};
use url::Url;

/// How far from a seed a crawl may go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScopeKind {
    /// The seed's own host.
    Host,
    /// Every host of the seed's registrable domain.
    Site,
    /// Every URL.
    Any,
    /// URLs that a regular expression matches.
    Regex(String),
}

impl FromStr for ScopeKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let pattern = match text {
            "host" => return Ok(Self::Host),
            "site" => return Ok(Self::Site),
            "any" => return Ok(Self::Any),
            _ => text.strip_prefix("regex:").or_else(|| text.starts_with('^').then_some(text)),
        };
        let Some(pattern) = pattern else {
            return Err(format!("'{text}' is not a scope; it is host, site, any, or regex:PATTERN"));
        };
        Regex::new(pattern).map_err(|error| format!("the scope's pattern cannot be used: {error}"))?;
        Ok(Self::Regex(pattern.to_owned()))
    }
}

/// One rule of a crawl's scope, as stored in the archive's settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScopeRule {
    /// Kind of rule.
    pub kind: ScopeKind,
    /// Seed that it came from.
    pub seed: String,
    /// Maximum number of links from a seed.
    pub max_depth: u8,
    /// For the place that a seed has moved to: the seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<String>,
}

/// All rules of a crawl, prepared for lookups.
#[derive(Debug, Default)]
pub struct CrawlScope {
    rules: Vec<ScopeRule>,
    hosts: HashMap<String, u8>,
    sites: HashMap<String, u8>,
    /// Compiled patterns and their depths: thousands of seeds mostly share one pattern.
    patterns: HashMap<String, (Regex, u8)>,
    any: Option<u8>,
}

impl ScopeRule {
    /// The rule without these canonical URLs. Of a seed its origin stays, which has the same host and site; a pattern that
    /// names one of the URLs is dropped, and the rule with it.
    pub(super) fn without(self, urls: &HashSet<String>) -> Option<Self> {
        if let ScopeKind::Regex(pattern) = &self.kind {
            let plain = pattern.replace('\\', "");
            let names =
                |url: &String| plain.contains(url.split_once("://").map_or(url.as_str(), |(_, rest)| rest));
            if urls.iter().any(names) {
                return None;
            }
        }
        let origin = |seed: String| match Url::parse(&seed) {
            Ok(url) if urls.contains(&canonical(&url)) => url.origin().ascii_serialization(),
            _ => seed,
        };
        Some(Self { seed: origin(self.seed), moved_from: self.moved_from.map(origin), ..self })
    }
}

impl CrawlScope {
    /// Builds the scope of stored rules.
    #[must_use]
    pub fn from_rules(rules: Vec<ScopeRule>) -> Self {
        let mut scope = Self::default();
        for rule in &rules {
            scope.add(rule);
        }
        scope.rules = rules;
        scope
    }

    fn add(&mut self, rule: &ScopeRule) {
        let raise = |depth: &mut u8| *depth = rule.max_depth.max(*depth);
        let seed = Url::parse(&rule.seed).ok();
        match &rule.kind {
            ScopeKind::Any => raise(self.any.get_or_insert(0)),
            ScopeKind::Host => {
                if let Some(host) = seed.as_ref().map(host_key) {
                    raise(self.hosts.entry(host).or_insert(0));
                }
            }
            ScopeKind::Site => {
                if let Some(host) = seed.as_ref().and_then(Url::host_str) {
                    raise(self.sites.entry(site_of(host).to_owned()).or_insert(0));
                }
            }
            ScopeKind::Regex(pattern) => {
                if let Some((_, depth)) = self.patterns.get_mut(pattern) {
                    raise(depth);
                } else if let Ok(regex) = Regex::new(pattern) {
                    // Patterns were checked when they were entered; one that only an older version accepts is left out.
                    self.patterns.insert(pattern.clone(), (regex, rule.max_depth));
                }
            }
        }
    }

    /// Returns the rules, to be stored.
    #[must_use]
    pub fn rules(&self) -> &[ScopeRule] {
        &self.rules
    }

    /// Whether a page on `host` of `site`, found `depth` links from a seed, belongs to the crawl.
    #[must_use]
    pub fn contains(&self, url: &str, host: &str, site: &str, depth: u8) -> bool {
        self.verdict(url, host, site, depth) == ScopeVerdict::Inside
    }

    /// Like [`CrawlScope::contains`], with the reason if not.
    #[must_use]
    pub fn verdict(&self, url: &str, host: &str, site: &str, depth: u8) -> ScopeVerdict {
        let fixed = [self.any.as_ref(), self.hosts.get(host), self.sites.get(site)];
        let fixed = fixed.into_iter().flatten().copied().max();
        if fixed.is_some_and(|max| depth <= max) {
            return ScopeVerdict::Inside;
        }
        let matching = self.patterns.values().filter(|(regex, _)| regex.is_match(url)).map(|(_, max)| *max);
        match fixed.into_iter().chain(matching).max() {
            Some(max) if depth <= max => ScopeVerdict::Inside,
            Some(max) => ScopeVerdict::TooDeep { max },
            None => ScopeVerdict::Outside,
        }
    }
}

/// Whether a page belongs to a crawl.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScopeVerdict {
    /// It does.
    Inside,
    /// It would, if fewer links led to it.
    TooDeep {
        /// Maximum number of links from a seed.
        max: u8,
    },
    /// No rule covers it.
    Outside,
}

#[cfg(test)]
mod tests {
    use super::{CrawlScope, ScopeKind, ScopeRule, ScopeVerdict};

    #[test]
    fn a_url_belongs_if_any_rule_holds_it() {
        let rule = |kind, seed: &str, max_depth| ScopeRule {
            kind,
            seed: seed.to_owned(),
            max_depth,
            moved_from: None,
        };
        let scope = CrawlScope::from_rules(vec![
            rule(ScopeKind::Host, "http://www.a.example.org/", 2),
            rule(ScopeKind::Site, "http://b.example.net/", 9),
            rule("regex:^http://c\\.test/x".parse().unwrap(), "http://c.test/", 9),
        ]);
        let holds = |url: &str, host: &str, site: &str, depth| scope.contains(url, host, site, depth);
        assert!(holds("http://www.a.example.org/x", "www.a.example.org", "example.org", 2));
        assert!(!holds("http://www.a.example.org/x", "www.a.example.org", "example.org", 3));
        assert!(!holds("http://example.org/", "example.org", "example.org", 0));
        assert!(holds("http://z.example.net/", "z.example.net", "example.net", 9));
        assert!(holds("http://c.test/x1", "c.test", "c.test", 1));
        assert!(!holds("http://c.test/y", "c.test", "c.test", 1));
        let verdict = |url: &str, depth| scope.verdict(url, "www.a.example.org", "example.org", depth);
        assert_eq!(verdict("http://www.a.example.org/", 3), ScopeVerdict::TooDeep { max: 2 });
        assert_eq!(scope.verdict("http://d.test/", "d.test", "d.test", 0), ScopeVerdict::Outside);
    }

    #[test]
    fn what_is_forgotten_leaves_the_rules_and_the_scope_stays() {
        let urls = ["http://a.test:8080/x?y".to_owned(), "http://b.test/z".to_owned()].into();
        let rule = |kind: &str, seed: &str, from: Option<&str>| ScopeRule {
            kind: kind.parse().unwrap(),
            seed: seed.to_owned(),
            max_depth: 3,
            moved_from: from.map(str::to_owned),
        };
        let (host, bare) = (rule("host", "http://a.test:8080/x?y", None), "http://a.test:8080");
        assert_eq!(host.without(&urls), Some(rule("host", bare, None)));
        let moved = rule("site", "http://c.test/", Some("http://b.test/z#part"));
        assert_eq!(moved.without(&urls), Some(rule("site", "http://c.test/", Some("http://b.test"))));
        let kept = rule("^http://b\\.test/", "http://b.test/zz", None);
        assert_eq!(kept.clone().without(&urls), Some(kept));
        assert_eq!(rule("^https?://b\\.test/z", "http://b.test/z", None).without(&urls), None);
    }

    #[test]
    fn a_bad_scope_is_explained() {
        assert!("hosts".parse::<ScopeKind>().unwrap_err().contains("host, site, any"));
        assert!("regex:(".parse::<ScopeKind>().unwrap_err().contains("pattern"));
        assert_eq!("any".parse(), Ok(ScopeKind::Any));
    }
}
