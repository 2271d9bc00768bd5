//! Why a URL that is known is not fetched.
//!
//! What a crawl may not or will not fetch is as much a part of the archive's account as what it has: `archive why`
//! says it. The reason is in the flags of the page's state and is cleared once the page is fetched after all.

/// Why a URL is not fetched. The codes are stored in page states: they are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u16)]
#[non_exhaustive]
pub enum Refusal {
    /// A rule of robots.txt forbids it.
    Robots = 1,
    /// robots.txt cannot be had (no answer, status 429 or 5xx), which forbids everything (RFC 9309, section 2.3.1.4).
    RobotsUnreachable = 2,
    /// The host's name has no address, or none that is public.
    Unresolved = 3,
    /// Its host has had its budget of pages.
    PagesPerHost = 4,
    /// Its site has had its budget of pages.
    PagesPerSite = 5,
    /// Its path repeats itself, as paths do that relative links make grow.
    RepeatingPath = 6,
    /// Its path is deeper or longer than any that people make.
    LongPath = 7,
    /// One more of too many variations of one page by its query.
    QueryVariations = 8,
    /// It was only linked to from pages that are copies of each other, as answers are that say "not found" with status 200.
    SameContent = 9,
    /// Only links with `nofollow` lead to it, and the crawl obeys them.
    NoFollow = 10,
    /// A rule in the settings file leaves it out.
    Ignored = 11,
    /// It cannot be asked for over HTTP.
    Unfetchable = 12,
    /// What was captured of it was erased, and it is not to be fetched again.
    Erased = 13,
    /// People decided against it.
    Decided = 14,
    /// No page that is near enough to the topic of the crawl leads to it.
    OffTopic = 15,
    /// It belongs to another partition of the cluster. That follows from its host, and is in no page state.
    OtherPartition = 16,
}

impl Refusal {
    /// Every reason that page states store.
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

    /// The number in page states, 1 to 15; beyond for reasons that are not stored.
    #[must_use]
    pub const fn code(self) -> u16 {
        self as u16
    }

    /// The reason with this number; none for 0 and for what a newer version has written.
    #[must_use]
    pub fn from_code(code: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.code() == code)
    }

    /// Its name in queries and data.
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
        }
    }

    /// The reason as a sentence without its full stop.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Robots => "robots.txt forbids it",
            Self::RobotsUnreachable => "robots.txt of its host could not be had, which forbids everything",
            Self::Unresolved => "the name of its host has no address that may be asked",
            Self::PagesPerHost => "its host has had its budget of pages (--pages-per-host)",
            Self::PagesPerSite => "its site has had its budget of pages (--pages-per-site)",
            Self::RepeatingPath => "its path repeats itself, as in a trap",
            Self::LongPath => "its path is too deep or too long, as in a trap",
            Self::QueryVariations => "the same page was fetched with too many queries (--query-variations)",
            Self::SameContent => {
                "it was found on a page like too many others of its host, as in a trap (--same-content)"
            }
            Self::NoFollow => "only links that are not to be followed lead to it (--obey-nofollow)",
            Self::Ignored => "an ignore rule of the settings file leaves it out",
            Self::Unfetchable => "it cannot be asked for over HTTP",
            Self::OffTopic => "no page that is near enough to the topic leads to it (--topic-mode)",
            Self::Decided => "people decided against it (`archive review log`)",
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
