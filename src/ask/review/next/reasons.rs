//! Reasons to review a site, from the data about the site.

use archive_base::decisions::{CurrentDecisions, DecisionVerdict};
use archive_base::texts::{Language, put};

use super::gather::{Happened, PageTally, SiteTotals};
use super::{MOST, words};

/// Reasons that concern a smaller share of a site than this are not reported.
const SHARE_MIN: f64 = 0.01;

/// Share of a site's requisites that may be missing without a report: there is always one.
const REQUISITES_SHARE_MIN: f64 = 0.05;

/// Minimum share of changed importance for a site to have changed much.
const CHANGED_SHARE_MIN: f64 = 0.5;

/// Minimum difference between ratings that counts as disagreement.
const RATINGS_APART: u8 = 2;

/// Range of probabilities in which the automatic librarian is unsure.
const UNSURE: std::ops::RangeInclusive<f64> = 0.25..=0.75;

/// Sites with more pages are not taken for parked domains, unless most of their pages have the same content.
const PARKED_PAGES_MAX: u32 = 10;

/// Reasons to review a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Reason {
    /// Nobody has decided on it.
    Unrated,
    /// Pages were captured for the first time since the last decision on it.
    New,
    /// Somebody asked for another look.
    Asked,
    /// People rated it differently.
    RatersDiffer,
    /// The automatic librarian is not sure.
    Unsure,
    /// Most of it changed.
    MuchChanged,
    /// Images, style sheets or scripts are missing.
    Incomplete,
    /// Pages are error pages although their status reports success.
    SoftErrors,
    /// Pages have lost most of their content.
    Shrunk,
    /// The content is behind a login or another wall.
    Wall,
    /// Pages that existed are gone.
    Gone,
    /// Pages that worked fail now.
    Failing,
    /// robots.txt forbids pages that it allowed.
    Closed,
    /// Its pages redirect to another site.
    Moved,
    /// It is a parked domain.
    Parked,
    /// It was requested, without any result.
    Empty,
    /// Pages link to it, and nobody requested it.
    Candidate,
}

impl Reason {
    /// Probability that looking at a page with this reason changes the assessment. These are judgements, checked by
    /// `tests/reviewing.rs`: broken pages come before unknown ones, and these before pages that merely changed.
    pub(super) fn doubt(self) -> f64 {
        match self {
            Self::Parked => 0.95,
            Self::SoftErrors | Self::Moved => 0.9,
            Self::Asked | Self::Wall | Self::Gone | Self::Closed => 0.8,
            Self::RatersDiffer | Self::Failing | Self::Shrunk => 0.7,
            Self::Empty => 0.6,
            Self::Incomplete => 0.5,
            Self::Unsure => 0.4,
            Self::New => 0.3,
            Self::Unrated => 0.2,
            Self::MuchChanged => 0.1,
            Self::Candidate => 0.05,
        }
    }

    /// Whether something went wrong, so that it counts even after a decision.
    pub(crate) fn is_trouble(self) -> bool {
        !matches!(self, Self::Unrated | Self::New | Self::Unsure | Self::MuchChanged | Self::Candidate)
    }
}

/// A reason, the share of the site that it concerns, and its description.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WeighedReason {
    pub(super) reason: Reason,
    /// Share of the site's importance, above 0, at most 1.
    pub(super) share: f64,
    pub(super) words: String,
}

impl WeighedReason {
    fn new(reason: Reason, share: f64, words: String) -> Option<Self> {
        (share >= SHARE_MIN).then(|| Self { reason, share: share.min(1.0), words })
    }

    /// Probability that the review is worth it.
    pub(super) fn worth(&self) -> f64 {
        self.reason.doubt() * self.share
    }
}

/// The data about a site.
pub(super) struct SiteFacts<'a> {
    pub(super) pages: &'a SiteTotals,
    pub(super) standing: Option<&'a CurrentDecisions>,
    /// Probability that the automatic librarian would choose it.
    pub(super) likely: Option<f64>,
    /// The title of its most important page.
    pub(super) title: &'a str,
    /// Language of the descriptions.
    pub(super) t: Language,
}

/// All reasons to review a site, strongest first.
pub(super) fn reasons(known: &SiteFacts<'_>) -> Vec<WeighedReason> {
    let of = |what, reason, words| happened(known, what, reason, words);
    let each = [
        unrated(known),
        new(known),
        asked(known),
        raters_differ(known),
        unsure(known),
        much_changed(known),
        incomplete(known),
        soft_errors(known),
        of(
            Happened::Shrunk,
            Reason::Shrunk,
            ["{} has lost most of its content", "{} have lost most of their content"],
        ),
        wall(known),
        of(Happened::Gone, Reason::Gone, ["{} is gone", "{} are gone"]),
        of(Happened::Failing, Reason::Failing, ["{} was there and fails now", "{} were there and fail now"]),
        of(
            Happened::Closed,
            Reason::Closed,
            ["{} is closed by a new robots.txt", "{} are closed by a new robots.txt"],
        ),
        of(Happened::Moved, Reason::Moved, ["{} leads to another site now", "{} lead to another site now"]),
        parked(known),
        empty(known),
        candidate(known),
    ];
    let mut found: Vec<WeighedReason> = each.into_iter().flatten().collect();
    found.sort_by(|a, b| b.worth().total_cmp(&a.worth()));
    found
}

/// Share of a site's captured importance that is on some of its pages.
fn share(known: &SiteFacts<'_>, of: PageTally) -> f64 {
    let all = known.pages.captured;
    if all.importance > 0.0 {
        of.importance / all.importance
    } else {
        f64::from(of.pages) / f64::from(all.pages.max(1))
    }
}

/// A reason about pages to which something happened, described in the singular or the plural.
fn happened(
    known: &SiteFacts<'_>,
    what: Happened,
    reason: Reason,
    words: [&'static str; 2],
) -> Option<WeighedReason> {
    let (tally, [one, many]) = (known.pages.of(what), words);
    let words = put(known.t.plural(tally.pages.into(), one, many), &[&of_pages(tally.pages, known)]);
    WeighedReason::new(reason, share(known, tally), words)
}

fn of_pages(some: u32, known: &SiteFacts<'_>) -> String {
    let (all, t) = (known.pages.captured.pages, known.t);
    match (some, all) {
        (1, 1) => t.say("its only page").to_owned(),
        (some, all) if some >= all => t.fill("all {} pages", &[&all]),
        _ => t.fill("{} of {} pages", &[&some, &all]),
    }
}

fn titled(known: &SiteFacts<'_>) -> String {
    known.t.fill("titled “{}”", &[&known.title])
}

fn is_captured(known: &SiteFacts<'_>) -> bool {
    known.pages.captured.pages > 0
}

fn unrated(known: &SiteFacts<'_>) -> Option<WeighedReason> {
    let is_unrated = is_captured(known) && known.standing.is_none();
    WeighedReason::new(
        Reason::Unrated,
        f64::from(u8::from(is_unrated)),
        known.t.say("nobody has decided on it").to_owned(),
    )
}

fn new(known: &SiteFacts<'_>) -> Option<WeighedReason> {
    known.standing?;
    happened(
        known,
        Happened::New,
        Reason::New,
        ["{} is new since the decision", "{} are new since the decision"],
    )
}

fn asked(known: &SiteFacts<'_>) -> Option<WeighedReason> {
    let (verdict, by, why) = known.standing?.verdict.as_ref()?;
    let because = if why.is_empty() { String::new() } else { format!(": {why}") };
    let is_asked = f64::from(u8::from(*verdict == DecisionVerdict::Investigate));
    WeighedReason::new(Reason::Asked, is_asked, known.t.fill("{} wants it to be looked at", &[by]) + &because)
}

fn raters_differ(known: &SiteFacts<'_>) -> Option<WeighedReason> {
    let standing = known.standing.filter(|standing| standing.verdict.is_none())?;
    let (lowest, of_low) = standing.ratings.iter().map(|(by, rated)| (rated.rating, by)).min()?;
    let (highest, of_high) = standing.ratings.iter().map(|(by, rated)| (rated.rating, by)).max()?;
    let apart = highest - lowest;
    let words = known.t.fill("{} rated it {}, {} {}", &[of_high, &highest, of_low, &lowest]);
    (apart >= RATINGS_APART)
        .then(|| WeighedReason::new(Reason::RatersDiffer, f64::from(apart) / 3.0, words))?
}

fn unsure(known: &SiteFacts<'_>) -> Option<WeighedReason> {
    let likely = known.likely.filter(|likely| known.standing.is_none() && UNSURE.contains(likely))?;
    let words = known.t.fill("the automatic librarian is unsure ({})", &[&known.t.percent(likely, 0)]);
    WeighedReason::new(Reason::Unsure, 4.0 * likely * (1.0 - likely), words)
}

fn much_changed(known: &SiteFacts<'_>) -> Option<WeighedReason> {
    let found = happened(known, Happened::Changed, Reason::MuchChanged, ["{} changed", "{} have changed"])?;
    (found.share >= CHANGED_SHARE_MIN).then_some(found)
}

fn incomplete(known: &SiteFacts<'_>) -> Option<WeighedReason> {
    let SiteTotals { requisites, requisites_missing: missing, .. } = *known.pages;
    let share = f64::from(missing) / f64::from(requisites.max(1));
    let what = "{} of {} pictures, style sheets and scripts are missing";
    let words = known.t.fill(what, &[&missing, &requisites]);
    (share >= REQUISITES_SHARE_MIN).then(|| WeighedReason::new(Reason::Incomplete, share, words))?
}

fn soft_errors(known: &SiteFacts<'_>) -> Option<WeighedReason> {
    let says_so = words::is_missing(known.title).then(|| best_share(known));
    let same = happened(
        known,
        Happened::Same,
        Reason::SoftErrors,
        ["{} has the same content, like error pages", "{} have the same content, like error pages"],
    );
    match (same, says_so) {
        (None, Some(share)) => WeighedReason::new(Reason::SoftErrors, share, titled(known)),
        (same, _) => same,
    }
}

fn wall(known: &SiteFacts<'_>) -> Option<WeighedReason> {
    let login = happened(known, Happened::Login, Reason::Wall, ["{} requires a login", "{} require a login"]);
    if login.is_none() && known.standing.is_none() && words::is_wall(known.title) {
        return WeighedReason::new(Reason::Wall, best_share(known), titled(known));
    }
    login
}

fn parked(known: &SiteFacts<'_>) -> Option<WeighedReason> {
    let is_small = known.pages.captured.pages <= PARKED_PAGES_MAX;
    let says_one_thing = share(known, known.pages.of(Happened::Same)) > MOST;
    let is_parked = (is_small || says_one_thing) && is_captured(known) && words::is_parked(known.title);
    WeighedReason::new(Reason::Parked, f64::from(u8::from(is_parked)), titled(known))
}

fn empty(known: &SiteFacts<'_>) -> Option<WeighedReason> {
    let empty = known.pages.empty;
    let is_empty = !is_captured(known) && empty > 0;
    let (one, many) =
        ("{} page was asked for, and nothing came", "{} pages were asked for, and nothing came");
    let words = known.t.counted(empty.into(), one, many);
    WeighedReason::new(Reason::Empty, f64::from(u8::from(is_empty)), words)
}

fn candidate(known: &SiteFacts<'_>) -> Option<WeighedReason> {
    let pages = known.pages.all.pages;
    let is_asked_for = is_captured(known) || known.pages.in_scope > 0;
    let is_candidate = !is_asked_for && known.standing.is_none() && pages > 0;
    // Sites that are likely to be chosen are worth more.
    let share = if is_candidate { known.likely.map_or(0.5, |likely| likely.max(0.05)) } else { 0.0 };
    let (one, many) = (
        "{} of its pages is linked to, and nobody asked for it",
        "{} of its pages are linked to, and nobody asked for it",
    );
    WeighedReason::new(Reason::Candidate, share, known.t.counted(pages.into(), one, many))
}

/// Share of the most important page.
fn best_share(known: &SiteFacts<'_>) -> f64 {
    let (pages, importance) = known.pages.best.map_or((0, 0.0), |(_, importance)| (1, importance));
    let mut best = PageTally::default();
    (best.pages, best.importance) = (pages, importance);
    share(known, best)
}

#[cfg(test)]
mod tests {
    use chrono::Utc;

    use super::*;
    use archive_base::decisions::Rated;

    fn pages(captured: u32, known: u32) -> SiteTotals {
        let mut pages = SiteTotals::default();
        (pages.captured.pages, pages.captured.importance) = (captured, f64::from(captured));
        (pages.all.pages, pages.all.importance) = (known, f64::from(known));
        pages
    }

    fn rated(ratings: &[(&str, u8)]) -> CurrentDecisions {
        let rated =
            |(by, rating): &(&str, u8)| ((*by).to_owned(), Rated { rating: *rating, time: Utc::now() });
        CurrentDecisions { ratings: ratings.iter().map(rated).collect(), ..CurrentDecisions::default() }
    }

    fn listed(known: &SiteFacts<'_>) -> Vec<(Reason, String)> {
        reasons(known).into_iter().map(|found| (found.reason, found.words)).collect()
    }

    #[test]
    fn people_who_differ_are_heard_until_there_is_a_verdict() {
        let pages = pages(3, 3);
        let mut standing = rated(&[("anna", 4), ("ben", 1), ("eva", 3)]);
        let listed = |standing: &CurrentDecisions| {
            listed(&SiteFacts {
                pages: &pages,
                standing: Some(standing),
                likely: Some(0.5),
                title: "",
                t: Language::English,
            })
        };
        assert_eq!(listed(&standing), [(Reason::RatersDiffer, "anna rated it 4, ben 1".to_owned())]);
        standing.verdict = Some((DecisionVerdict::Keep, "eva".to_owned(), String::new()));
        assert_eq!(listed(&standing), []);
        assert_eq!(listed(&rated(&[("anna", 4), ("ben", 3)])), []);
        standing.verdict =
            Some((DecisionVerdict::Investigate, "eva".to_owned(), "is it mirrored?".to_owned()));
        let words = "eva wants it to be looked at: is it mirrored?";
        assert_eq!(listed(&standing), [(Reason::Asked, words.to_owned())]);
    }

    #[test]
    fn undecided_sites_are_listed_with_what_the_librarian_thinks() {
        let (captured, linked) = (pages(3, 3), pages(0, 2));
        let known =
            |pages, likely, title| SiteFacts { pages, standing: None, likely, title, t: Language::English };
        let unsure = (Reason::Unsure, "the automatic librarian is unsure (40 %)".to_owned());
        let unrated = (Reason::Unrated, "nobody has decided on it".to_owned());
        assert_eq!(listed(&known(&captured, Some(0.4), "")), [unsure, unrated.clone()]);
        assert_eq!(listed(&known(&captured, Some(0.01), "")), [unrated]);
        let candidate = "2 of its pages are linked to, and nobody asked for it";
        assert_eq!(listed(&known(&linked, None, "")), [(Reason::Candidate, candidate.to_owned())]);
        let likelier = |likely| reasons(&known(&linked, Some(likely), ""))[0].worth();
        assert!(likelier(0.9) > likelier(0.1));
        assert_eq!(listed(&known(&captured, None, "Domain for sale"))[0].0, Reason::Parked);
        let mut walled = pages(20, 20);
        walled.best = Some((archive_storage::UrlId(0), 10.0));
        assert_eq!(listed(&known(&walled, None, "Sign in"))[0].0, Reason::Wall);
        assert_eq!(listed(&known(&walled, None, "404 Not found"))[0].0, Reason::SoftErrors);
    }
}
