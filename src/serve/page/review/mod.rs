//! Reviewing: the sites that wait for review, a page per site with its data and decisions, and forms to decide.
//!
//! Decisions are stored as by `archive review set`. A form contains the number of the newest decision that its page
//! showed. If somebody else has decided since, that is shown, and nothing is stored until the form is sent again.

mod decide;
mod scores;
mod site;

pub(super) use decide::decide;
pub(super) use scores::scores;
pub(super) use site::site;

use archive_ask::review::next;
use archive_ask::review::next::{Advice, SiteToReview as NextRow};
use archive_base::decisions::{CurrentDecisions, DecisionContent, DecisionVerdict, Decisions, Subject};
use archive_base::texts::put;
use maud::{Markup, html};
use serde::Serialize;

use super::{ArchiveRequest, PageProblem, Reply, ReviewOptions, Speech};

pub(super) const SCRIPT: &str = include_str!("keys.js");

/// Maximum number of sites on a page.
const SITES: usize = 50;

/// Maximum number of sites searched for those that wait for a second opinion, or for one person.
const SITES_MAX: usize = 1000;

/// Maximum number of reasons per row.
const REASONS: usize = 3;

/// Which sites are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Show {
    /// Sites where a review gains most.
    Next,
    /// Sites tagged with the person's name that they have not decided on yet.
    Assigned,
    /// Sites rated by one other person.
    Second,
    /// Sites that the person has decided on, newest first.
    Mine,
}

impl Show {
    const EACH: [(Self, &'static str, &'static str); 4] = [
        (Self::Next, "next", "Worth a look first"),
        (Self::Assigned, "assigned", "Assigned to me"),
        (Self::Second, "second", "Waiting for a second opinion"),
        (Self::Mine, "mine", "Decided by me"),
    ];

    fn of(asked: &ArchiveRequest<'_>) -> Self {
        let name = asked.parameter("show");
        Self::EACH.iter().find(|(_, known, _)| *known == name).map_or(Self::Next, |(show, ..)| *show)
    }
}

/// A site in the list.
#[derive(Serialize)]
struct ReviewRow {
    site: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    importance: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gain: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<Advice>,
    because: Vec<String>,
    /// Its current decisions, as far as the person may see them.
    said: String,
    /// Number of the newest decision that the page shows.
    seen: u64,
}

#[derive(Serialize)]
struct ReviewList {
    by: String,
    sentence: String,
    sites: Vec<ReviewRow>,
}

/// A person who reviews.
struct Reviewer<'a> {
    t: Speech,
    name: &'a str,
    review: &'a ReviewOptions,
    decisions: Decisions,
}

impl<'a> Reviewer<'a> {
    fn of(asked: &'a ArchiveRequest<'_>, name: &'a str) -> Result<Self, PageProblem> {
        let t = asked.speech;
        let missing = || PageProblem::Missing(t.say("There is no reviewing here.").to_owned());
        let review = asked.server.review.as_ref().ok_or_else(missing)?;
        let name = match (&asked.server.user_header, asked.who.name.as_deref()) {
            (_, Some(user)) => user,
            (Some(header), None) => {
                let what = "The web server before this one does not say who you are: it has to set {}.";
                return Err(PageProblem::Refused(t.fill(what, &[header])));
            }
            (None, _) if name.is_empty() => &review.by,
            (None, _) => name,
        };
        Ok(Self { t, name, review, decisions: Decisions::read(asked.opened.store.path())? })
    }

    /// Describes the decisions on a site, as far as they may be shown.
    fn said(&self, subject: &Subject) -> String {
        let Some(standing) = self.decisions.on(subject) else { return String::new() };
        if self.hides(standing) {
            return self.t.say("rated by others").to_owned();
        }
        let ratings = standing.ratings.iter().map(|(who, rated)| format!("{who} {}", rated.rating));
        let verdict = standing.verdict.as_ref().map(|(verdict, who, reason)| {
            let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
            format!("{} ({who}{reason})", self.t.say(verdict.name()))
        });
        let tags = standing.tags.iter().map(|tag| format!("#{tag}"));
        ratings.chain(verdict).chain(tags).collect::<Vec<_>>().join(", ")
    }

    fn hides(&self, standing: &CurrentDecisions) -> bool {
        let others = standing.ratings.keys().any(|who| who != self.name);
        self.review.is_blind && others && !standing.ratings.contains_key(self.name)
    }

    fn row(&self, site: &str) -> ReviewRow {
        let subject = Subject::Site(site.to_owned());
        ReviewRow {
            said: self.said(&subject),
            seen: self.decisions.newest_word(&subject),
            site: site.to_owned(),
            importance: None,
            gain: None,
            advice: None,
            because: Vec::new(),
        }
    }

    fn found(&self, row: NextRow) -> ReviewRow {
        let because = row.reasons.into_iter().take(REASONS).map(|why| why.words).collect();
        let (importance, gain) = (Some(row.importance), Some(row.gain));
        ReviewRow { importance, gain, advice: Some(row.advice), because, ..self.row(&row.site) }
    }

    /// Sites whose current decisions satisfy a condition, by name.
    fn sites(&self, is_meant: impl Fn(&CurrentDecisions) -> bool) -> Vec<ReviewRow> {
        let sites = self.decisions.subjects().filter(|(_, standing)| is_meant(standing));
        let mut names: Vec<&String> = sites
            .filter_map(|(subject, _)| if let Subject::Site(name) = subject { Some(name) } else { None })
            .collect();
        names.sort_unstable();
        names.into_iter().take(SITES_MAX).map(|name| self.row(name)).collect()
    }

    /// Sites rated by one other person only.
    fn waiting_for_a_second(&self) -> Vec<ReviewRow> {
        self.sites(|standing| standing.ratings.len() == 1 && !standing.ratings.contains_key(self.name))
    }

    /// Sites tagged with this person's name that they have not decided on.
    fn assigned(&self) -> Vec<ReviewRow> {
        let is_own = |tag: &String| tag.strip_prefix('@') == Some(self.name);
        self.sites(|standing| {
            let has_decided = standing.ratings.contains_key(self.name)
                || standing.verdict.as_ref().is_some_and(|(_, by, _)| by == self.name);
            !has_decided && standing.tags.iter().any(is_own)
        })
    }

    /// Sites that this person decided on, newest first.
    fn own(&self) -> Vec<ReviewRow> {
        let mut sites: Vec<&str> = Vec::new();
        for (number, decision) in (1..).zip(self.decisions.log()).collect::<Vec<_>>().into_iter().rev() {
            let DecisionContent::Said(said) = &decision.what else { continue };
            let Subject::Site(name) = &said.on else { continue };
            let counts = decision.by == self.name && !self.decisions.is_undone(number);
            if counts && !sites.contains(&name.as_str()) && sites.len() < SITES {
                sites.push(name);
            }
        }
        sites.into_iter().map(|name| self.row(name)).collect()
    }
}

/// Lists the sites that wait for review.
pub(super) fn list(asked: &ArchiveRequest<'_>) -> Result<Reply, PageProblem> {
    let reviewer = Reviewer::of(asked, asked.parameter("by"))?;
    let (t, show) = (asked.speech, Show::of(asked));
    let (sentence, mut sites) = match show {
        Show::Next => {
            let opened = asked.opened;
            let next = next(opened.store, &opened.access, &reviewer.decisions, None, SITES, *t)?;
            (next.sentence(*t), next.rows.into_iter().map(|row| reviewer.found(row)).collect())
        }
        Show::Second => {
            let sites = reviewer.waiting_for_a_second();
            let (one, many) =
                ("{} site was rated by one other person.", "{} sites were rated by one other person.");
            (t.counted(sites.len() as u64, one, many), sites)
        }
        Show::Assigned => {
            let sites = reviewer.assigned();
            let (one, many) = (
                "{} site waits for you: it has the tag @{}.",
                "{} sites wait for you: they have the tag @{}.",
            );
            let count = sites.len() as u64;
            (put(t.plural(count, one, many), &[&t.count(count), &reviewer.name]), sites)
        }
        Show::Mine => (String::new(), reviewer.own()),
    };
    sites.truncate(SITES);
    let data = ReviewList { by: reviewer.name.to_owned(), sentence, sites };
    Ok(reviewing(asked, asked.reply(t.say("Review"), &data, || {
        html! {
            (script(t))
            h1 { (t.say("Review")) }
            (who(asked, &data.by))
            nav .tabs aria-label=(t.say("Which sites")) {
                @for (each, name, title) in Show::EACH {
                    a href=(t.address("/review", &[("show", name), ("by", &data.by)])) aria-current=[(each == show).then_some("page")] { (t.say(title)) }
                }
                a href=(t.address("/review/scores", &[])) { (t.say("Scores")) }
            }
            p { (data.sentence) }
            (keys(t))
            @if data.sites.is_empty() { p { (t.say("There is none.")) } }
            div .wide role="region" aria-label=(t.say("Sites")) tabindex="0" { table .review {
                thead { tr {
                    th scope="col" { (t.say("Site")) } th .number scope="col" { (t.say("Importance")) } th scope="col" { (t.say("Because")) }
                    th scope="col" { (t.say("Decide")) }
                } }
                tbody { @for row in &data.sites { (row_of(t, row, &data.by, show)) } }
            } }
        }
    })))
}

fn row_of(t: Speech, row: &ReviewRow, by: &str, show: Show) -> Markup {
    let back = Show::EACH.iter().find(|(each, ..)| *each == show).map_or("next", |(_, name, _)| name);
    html! {
        tr data-site=(row.site) {
            th scope="row" { a href=(site_address(t, &row.site, by)) { (row.site) } }
            td .number { @if let Some(importance) = row.importance { (t.decimal(importance, 2)) } }
            td .because {
                @if let Some(advice) = row.advice { strong { (t.say(advice.name())) } ": " }
                (row.because.join("; "))
            }
            td { (buttons(t, &row.site, by, row.seen, back)) output { (row.said) } }
        }
    }
}

/// Buttons to decide on a site.
fn buttons(t: Speech, site: &str, by: &str, seen: u64, back: &str) -> Markup {
    html! {
        form .decide method="post" action="/review/decide" {
            (t.kept())
            input type="hidden" name="site" value=(site);
            input type="hidden" name="by" value=(by);
            input type="hidden" name="seen" value=(seen);
            input type="hidden" name="back" value=(back);
            @for rating in 1..=4_u8 {
                button name="rating" value=(rating) title=(archive_ask::review::Score::new(rating).map_or("", |score| t.say(score.meaning()))) { (rating) }
            }
            @for verdict in DecisionVerdict::EACH { button name="verdict" value=(verdict.name()) { (t.say(verdict.name())) } }
            button name="undo" value="1" { (t.say("undo")) }
        }
    }
}

/// The deciding person: an editable name, unless it is authenticated.
fn who(asked: &ArchiveRequest<'_>, by: &str) -> Markup {
    let t = asked.speech;
    html! {
        @if asked.who.name.is_some() { p { (t.markup("You decide as {}.", &[html! { strong { (by) } }])) } } @else {
            form .name action="/review" {
                (t.kept())
                label { (t.say("You decide as")) " " input name="by" value=(by) maxlength="100"; }
                button { (t.say("Change")) }
            }
        }
    }
}

fn script(t: Speech) -> Markup {
    html! { script src="/review.js" defer data-silent=(t.say("The server does not answer.")) {} }
}

fn keys(t: Speech) -> Markup {
    let letters =
        DecisionVerdict::EACH.map(|verdict| (verdict.name().get(..1).unwrap_or_default(), verdict.name()));
    html! {
        p .small .keys {
            label { input #keys type="checkbox" checked; " " (t.say("Keys:")) } " "
            kbd { "1" } "–" kbd { "4" } " " (t.say("rate"))
            @for (letter, verdict) in letters { ", " kbd { (letter) } " " (t.say(verdict)) }
            ", " kbd { "u" } " " (t.say("undo")) ", " kbd { "↑" } kbd { "↓" } " " (t.say("move")) ", "
            kbd { "Enter" } " " (t.say("opens the site"))
        }
    }
}

fn site_address(t: Speech, site: &str, by: &str) -> String {
    t.address("/review/site", &[("name", site), ("by", by)])
}

/// Adds the headers for a page with a script, and with a frame for archived pages.
fn reviewing(asked: &ArchiveRequest<'_>, reply: Reply) -> Reply {
    // Browsers send the origin of a form only if its page allows it.
    reply.with_script(Some(&format!("'self' {}", asked.replay))).with("Referrer-Policy", "same-origin")
}
