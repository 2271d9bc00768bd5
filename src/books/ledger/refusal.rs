//! Why a known URL is not fetched.
//!
//! What a crawl may not or will not fetch is as much a part of the archive's account as what it has: `archive why`
//! reports it. The reason is in the flags of the page state, and is cleared once the page is fetched after all.

/// Why a URL is not fetched. The codes are stored in page states and are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u16)]
#[non_exhaustive]
pub enum Refusal {
    /// A rule in robots.txt forbids it.
    Robots = 1,
    /// robots.txt cannot be fetched (no answer, status 429 or 5xx), which forbids everything (RFC 9309, section
    /// 2.3.1.4).
    RobotsUnreachable = 2,
    /// The host name has no address, or no public one.
    Unresolved = 3,
    /// Its host has used up its budget, of pages or, in this run, of bytes.
    PagesPerHost = 4,
    /// Its site has used up its budget, of pages or, in this run, of bytes.
    PagesPerSite = 5,
    /// Its path repeats itself, as paths do that grow through relative links.
    RepeatingPath = 6,
    /// Its path is deeper or longer than people make them.
    LongPath = 7,
    /// It is one of too many query variations of a page.
    QueryVariations = 8,
    /// All links to it are on pages that are copies of each other, such as "not found" pages with status 200.
    SameContent = 9,
    /// All links to it have `nofollow`, and the crawl obeys that.
    NoFollow = 10,
    /// A rule in the settings file excludes it.
    Ignored = 11,
    /// It cannot be requested over HTTP.
    Unfetchable = 12,
    /// Its captures were erased, and it must not be fetched again.
    Erased = 13,
    /// People decided against it.
    Decided = 14,
    /// No page close enough to the topic of the crawl links to it.
    OffTopic = 15,
    /// It belongs to another partition of the cluster. This follows from its host and is not stored in page states.
    OtherPartition = 16,
    /// The log-in of its host does not work in this run. It waits, and this is not stored in page states.
    LoggedOut = 17,
}

impl Refusal {
    /// All reasons that page states store.
    pub const ALL: [Self; 15] = [
        Self::Robots,
        Self::RobotsUnreachable,
        Self::Unresolved,
        Self::PagesPerHost,
        Self::PagesPerSite,
        Self::RepeatingPath,
        Self::LongPath,
        Self::QueryVariations,
        Self::SameContent,
        Self::NoFollow,
        Self::Ignored,
        Self::Unfetchable,
        Self::Erased,
        Self::Decided,
        Self::OffTopic,
    ];

    /// Code in page states, 1 to 15; greater for reasons that are not stored.
    #[must_use]
    pub const fn code(self) -> u16 {
        self as u16
    }

    /// Returns the reason with this code; `None` for 0 and for codes of newer versions.
    #[must_use]
    pub fn from_code(code: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.code() == code)
    }

    /// Name in queries and data.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Robots => "robots",
            Self::RobotsUnreachable => "robots-unreachable",
            Self::Unresolved => "unresolved",
            Self::PagesPerHost => "pages-per-host",
            Self::PagesPerSite => "pages-per-site",
            Self::RepeatingPath => "repeating-path",
            Self::LongPath => "long-path",
            Self::QueryVariations => "query-variations",
            Self::SameContent => "same-content",
            Self::NoFollow => "no-follow",
            Self::Ignored => "ignored",
            Self::Unfetchable => "unfetchable",
            Self::Erased => "erased",
            Self::Decided => "decided",
            Self::OffTopic => "off-topic",
            Self::OtherPartition => "other-partition",
            Self::LoggedOut => "logged-out",
        }
    }

    /// The option of a crawl that sets the limit, if the reason is one.
    #[must_use]
    pub const fn option(self) -> Option<&'static str> {
        match self {
            Self::PagesPerHost => Some("--pages-per-host or --bytes-per-host"),
            Self::PagesPerSite => Some("--pages-per-site or --bytes-per-site"),
            Self::QueryVariations => Some("--query-variations"),
            Self::SameContent => Some("--same-content"),
            _ => None,
        }
    }

    /// Returns the reason with this name, if page states store it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.name() == name)
    }

    /// The reason as a sentence without its full stop.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Robots => "robots.txt forbids it",
            Self::RobotsUnreachable => {
                "robots.txt of its host could not be fetched, which forbids everything"
            }
            Self::Unresolved => "its host name has no address that may be contacted",
            Self::PagesPerHost => "its host has used up its budget (--pages-per-host, --bytes-per-host)",
            Self::PagesPerSite => "its site has used up its budget (--pages-per-site, --bytes-per-site)",
            Self::RepeatingPath => "its path repeats itself, as in a trap",
            Self::LongPath => "its path is too deep or too long, as in a trap",
            Self::QueryVariations => "the same page was fetched with too many queries (--query-variations)",
            Self::SameContent => {
                "it was found on a page like too many others of its host, as in a trap (--same-content)"
            }
            Self::NoFollow => "all links to it are nofollow (--obey-nofollow)",
            Self::Ignored => "an ignore rule of the settings file leaves it out",
            Self::Unfetchable => "it cannot be requested over HTTP",
            Self::OffTopic => "no page that is near enough to the topic leads to it (--topic-mode)",
            Self::Decided => "people decided against it (`archive review log`)",
            Self::LoggedOut => "the log-in of its host did not work (`archive login test`)",
            Self::OtherPartition => "it belongs to another partition of the cluster, whose node fetches it",
            Self::Erased => "it was erased, and is not to be fetched again (`archive erase --lift`)",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Refusal;
    use crate::ledger::page_flags::{IN_SCOPE, REFUSAL_MAX, refusal_code, with_refusal_code};

    #[test]
    fn every_reason_fits_into_the_flags_of_a_page() {
        for reason in Refusal::ALL {
            assert!(reason.code() <= REFUSAL_MAX);
            let flags = with_refusal_code(IN_SCOPE, reason.code());
            assert_eq!(Refusal::from_code(refusal_code(flags)), Some(reason));
            assert_eq!(with_refusal_code(flags, 0), IN_SCOPE);
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.name());
        }
        assert_eq!(Refusal::from_code(0), None);
    }
}
