//! Reviewing: the sites that wait for a look, one site with what is known and was decided, and what people decide.
//!
//! Decisions go where `archive review set` puts them. A form has the number of the newest decision that the page showed: when somebody
//! else has decided since, that is shown, and nothing is written until it is sent again.

use chrono::{SubsecRound as _, Utc};
use maud::{Markup, html};
use serde::Serialize;

use super::{Asked, Problem, Reply, Review, address, moment, page_of};
use crate::decisions::{Decision, Decisions, DecisionsError, Said, Standing, Subject, Verdict, What};
use crate::query::{Question, Value};
use crate::review::next;
use crate::review::next::{Advice, Row as NextRow};

pub(super) const SCRIPT: &str = include_str!("review.js");

/// Sites on a page.
const SITES: usize = 50;

/// Sites that wait for a second opinion which are looked for.
const SECOND_MAX: usize = 1000;

/// Reasons of a row.
const REASONS: usize = 3;

/// Which sites are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Show {
    /// Where a look gains most.
    Next,
    /// Rated by one other person.
    Second,
    /// Decided by whoever asks, newest first.
    Mine,
}

impl Show {
    const EACH: [(Self, &'static str, &'static str); 3] = [
        (Self::Next, "next", "Where a look gains most"),
        (Self::Second, "second", "Waiting for a second opinion"),
        (Self::Mine, "mine", "Decided by me"),
    ];

    fn of(asked: &Asked<'_>) -> Self {
        let name = asked.parameter("show");
        Self::EACH.iter().find(|(_, known, _)| *known == name).map_or(Self::Next, |(show, ..)| *show)
    }
}

/// A site of the list.
#[derive(Serialize)]
struct Row {
    site: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    importance: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gain: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<Advice>,
    because: Vec<String>,
    /// What holds of it, as far as whoever asks is to see it.
    said: String,
    /// The newest decision that is known to the page.
    seen: u64,
}

#[derive(Serialize)]
struct List {
    by: String,
    sentence: String,
    sites: Vec<Row>,
}

/// Somebody who reviews.
struct Reviewer<'a> {
    name: &'a str,
    review: &'a Review,
    decisions: Decisions,
}

impl<'a> Reviewer<'a> {
    fn of(asked: &'a Asked<'_>, name: &'a str) -> Result<Self, Problem> {
        let review =
            asked.review.ok_or_else(|| Problem::Missing("There is no reviewing here.".to_owned()))?;
        let name = if name.is_empty() { &review.by } else { name };
        Ok(Self { name, review, decisions: Decisions::read(asked.opened.store.path())? })
    }

    /// What may be shown of what was decided on a site.
    fn said(&self, subject: &Subject) -> String {
        let Some(standing) = self.decisions.on(subject) else { return String::new() };
        if self.hides(standing) {
            return "rated by others".to_owned();
        }
        let ratings = standing.ratings.iter().map(|(who, rated)| format!("{who} {}", rated.rating));
        let verdict = standing.verdict.as_ref().map(|(verdict, who, reason)| {
            let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
            format!("{} ({who}{reason})", verdict.name())
        });
        let tags = standing.tags.iter().map(|tag| format!("#{tag}"));
        ratings.chain(verdict).chain(tags).collect::<Vec<_>>().join(", ")
    }

    fn hides(&self, standing: &Standing) -> bool {
        let others = standing.ratings.keys().any(|who| who != self.name);
        self.review.is_blind && others && !standing.ratings.contains_key(self.name)
    }

    fn row(&self, site: &str) -> Row {
        let subject = Subject::Site(site.to_owned());
        Row {
            said: self.said(&subject),
            seen: self.decisions.newest(&subject),
            site: site.to_owned(),
            importance: None,
            gain: None,
            advice: None,
            because: Vec::new(),
        }
    }

    fn found(&self, row: NextRow) -> Row {
        let because = row.reasons.into_iter().take(REASONS).map(|why| why.words).collect();
        let (importance, gain) = (Some(row.importance), Some(row.gain));
        Row { importance, gain, advice: Some(row.advice), because, ..self.row(&row.site) }
    }

    /// Sites that one other person has rated, by name.
    fn waiting_for_a_second(&self) -> Vec<Row> {
        let is_one =
            |standing: &Standing| standing.ratings.len() == 1 && !standing.ratings.contains_key(self.name);
        let sites = self.decisions.subjects().filter(|(_, standing)| is_one(standing));
        let mut names: Vec<&String> = sites
            .filter_map(|(subject, _)| if let Subject::Site(name) = subject { Some(name) } else { None })
            .collect();
        names.sort_unstable();
        names.into_iter().take(SECOND_MAX).map(|name| self.row(name)).collect()
    }

    /// Sites that this person decided on, the newest first.
    fn own(&self) -> Vec<Row> {
        let mut sites: Vec<&str> = Vec::new();
        for (number, decision) in (1..).zip(self.decisions.log()).collect::<Vec<_>>().into_iter().rev() {
            let What::Said(said) = &decision.what else { continue };
            let Subject::Site(name) = &said.on else { continue };
            let counts = decision.by == self.name && !self.decisions.is_undone(number);
            if counts && !sites.contains(&name.as_str()) && sites.len() < SITES {
                sites.push(name);
            }
        }
        sites.into_iter().map(|name| self.row(name)).collect()
    }
}

/// The sites that wait.
pub(super) fn list(asked: &Asked<'_>) -> Result<Reply, Problem> {
    let reviewer = Reviewer::of(asked, asked.parameter("by"))?;
    let show = Show::of(asked);
    let (sentence, mut sites) = match show {
        Show::Next => {
            let opened = asked.opened;
            let next = next(&opened.store, &opened.access, &reviewer.decisions, None, SITES)?;
            (next.sentence(), next.rows.into_iter().map(|row| reviewer.found(row)).collect())
        }
        Show::Second => {
            let sites = reviewer.waiting_for_a_second();
            (format!("{} sites were rated by one other person.", sites.len()), sites)
        }
        Show::Mine => (String::new(), reviewer.own()),
    };
    sites.truncate(SITES);
    let data = List { by: reviewer.name.to_owned(), sentence, sites };
    Ok(reviewing(asked, asked.reply("Review", &data, || {
        html! {
            script src="/review.js" defer {}
            h1 { "Review" }
            (name_form(&data.by))
            nav .tabs aria-label="Which sites" {
                @for (each, name, title) in Show::EACH {
                    a href=(address("/review", &[("show", name), ("by", &data.by)])) aria-current=[(each == show).then_some("page")] { (title) }
                }
            }
            p { (data.sentence) }
            (keys())
            @if data.sites.is_empty() { p { "There is none." } }
            div .wide { table .review {
                thead { tr {
                    th scope="col" { "Site" } th .number scope="col" { "Importance" } th scope="col" { "Because" }
                    th scope="col" { "Decide" }
                } }
                tbody { @for row in &data.sites { (row_of(row, &data.by, show)) } }
            } }
        }
    })))
}

fn row_of(row: &Row, by: &str, show: Show) -> Markup {
    let back = Show::EACH.iter().find(|(each, ..)| *each == show).map_or("next", |(_, name, _)| name);
    html! {
        tr data-site=(row.site) {
            th scope="row" { a href=(site_address(&row.site, by)) { (row.site) } }
            td .number { @if let Some(importance) = row.importance { (format!("{importance:.2}")) } }
            td .because {
                @if let Some(advice) = row.advice { strong { (advice.name()) } ": " }
                (row.because.join("; "))
            }
            td { (buttons(&row.site, by, row.seen, back)) output { (row.said) } }
        }
    }
}

/// Buttons by which somebody decides on a site.
fn buttons(site: &str, by: &str, seen: u64, back: &str) -> Markup {
    html! {
        form .decide method="post" action="/review/decide" {
            input type="hidden" name="site" value=(site);
            input type="hidden" name="by" value=(by);
            input type="hidden" name="seen" value=(seen);
            input type="hidden" name="back" value=(back);
            @for rating in 1..=4_u8 {
                button name="rating" value=(rating) title=(crate::review::Score::new(rating).map_or("", |score| score.meaning())) { (rating) }
            }
            @for verdict in Verdict::EACH { button name="verdict" value=(verdict.name()) { (verdict.name()) } }
            button name="undo" value="1" { "undo" }
        }
    }
}

fn name_form(by: &str) -> Markup {
    html! {
        form .name action="/review" {
            label { "You decide as " input name="by" value=(by) maxlength="100"; }
            button { "Change" }
        }
    }
}

fn keys() -> Markup {
    html! {
        p .small {
            "Keys: " kbd { "1" } "–" kbd { "4" } " rate, " kbd { "k" } "eep, " kbd { "d" } "rop, " kbd { "o" } "ften, "
            kbd { "n" } "ever, " kbd { "i" } "nvestigate, " kbd { "u" } "ndo, arrows move, " kbd { "Enter" } " opens the site."
        }
    }
}

fn site_address(site: &str, by: &str) -> String {
    address("/review/site", &[("name", site), ("by", by)])
}

/// The page with its script, and with a frame for an archived page.
fn reviewing(asked: &Asked<'_>, mut reply: Reply) -> Reply {
    let policy = format!(
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; \
         frame-src {}; base-uri 'none'; frame-ancestors 'none'",
        asked.replay
    );
    reply.headers.push(("Content-Security-Policy".to_owned(), policy));
    // A form says where it comes from only if its page lets it.
    reply.headers.push(("Referrer-Policy".to_owned(), "same-origin".to_owned()));
    reply
}

#[derive(Serialize)]
struct Site {
    by: String,
    #[serde(flatten)]
    row: Row,
    samples: Vec<(String, Option<String>)>,
    log: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    number: u64,
    #[serde(flatten)]
    decision: Decision,
    undone: bool,
}

/// One site.
pub(super) fn site(asked: &Asked<'_>) -> Result<Reply, Problem> {
    let reviewer = Reviewer::of(asked, asked.parameter("by"))?;
    let name = asked.parameter("name");
    let opened = asked.opened;
    let missing = || Problem::Missing(format!("The archive knows no site “{name}”."));
    let id = opened.store.state().find_site(name)?.ok_or_else(missing)?;
    let among = std::iter::once(id).collect();
    let found = next(&opened.store, &opened.access, &reviewer.decisions, Some(&among), 1)?.rows.pop();
    let mut samples: Vec<(String, Option<String>)> = Vec::new();
    let mut row = match found {
        Some(found) => {
            samples.extend(found.samples.iter().map(|sample| (sample.url.clone(), sample.title.clone())));
            reviewer.found(found)
        }
        None => reviewer.row(name),
    };
    if samples.is_empty() && !name.contains(['"', '\\']) {
        let query = format!("page site = \"{name}\" and status = 200 select url, title limit 5");
        let question = Question::new(&opened.store, opened.access.clone(), &query, Utc::now())?;
        samples.extend(question.answer()?.rows.into_iter().filter_map(|row| {
            let mut texts =
                row.into_iter().map(|value| if let Value::Text(text) = value { Some(text) } else { None });
            Some((texts.next().flatten()?, texts.next().flatten()))
        }));
    }
    row.because.dedup();
    let subject = Subject::Site(name.to_owned());
    let hides = reviewer.decisions.on(&subject).is_some_and(|standing| reviewer.hides(standing));
    let is_on_it = |decision: &Decision| matches!(&decision.what, What::Said(said) if said.on == subject);
    let log = (1..).zip(reviewer.decisions.log()).filter(|(_, decision)| is_on_it(decision));
    let log = log.filter(|(_, decision)| !hides || decision.by == reviewer.name).map(|(number, decision)| {
        Line { number, decision: decision.clone(), undone: reviewer.decisions.is_undone(number) }
    });
    let data = Site { by: reviewer.name.to_owned(), row, samples, log: log.collect() };
    Ok(reviewing(asked, asked.reply(name, &data, || shown(asked, &data))))
}

fn shown(asked: &Asked<'_>, data: &Site) -> Markup {
    let Site { by, row, samples, log } = data;
    html! {
        script src="/review.js" defer {}
        div data-site=(row.site) {
            h1 { (row.site) }
            p { a href=(address("/review", &[("by", by)])) { "All sites that wait" } " · " a href=(super::site_of(&row.site)) { "What the archive holds of it" } }
            @if let Some(advice) = row.advice {
                p { strong { (advice.name()) } ": " (row.because.join("; ")) }
            }
            (buttons(&row.site, by, row.seen, "site"))
            p { output { (row.said) } }
            (keys())
            form .query method="post" action="/review/decide" {
                input type="hidden" name="site" value=(row.site); input type="hidden" name="by" value=(by);
                input type="hidden" name="seen" value=(row.seen); input type="hidden" name="back" value="site";
                label { "Reason " input name="reason" maxlength="1000"; }
                label { "Note " input name="note" maxlength="1000"; }
                label { "Tags " input name="tags" placeholder="maps, -music" maxlength="1000"; }
                button { "Write down" }
            }
        }
        section {
            h2 { "Pages to look at" }
            ul { @for (url, title) in samples {
                li {
                    a href=(asked.replayed(url, None)) target="preview" rel="noreferrer" { (title.as_deref().unwrap_or(url)) }
                    " " a .small href=(page_of(url)) { "history" } div .url { (url) }
                }
            } }
            @if let Some((url, _)) = samples.first() {
                iframe .preview name="preview" sandbox="" src=(asked.replayed(url, None)) title="The page as it was captured" {}
            }
        }
        @if !log.is_empty() {
            section {
                h2 { "Decisions" }
                div .wide { table {
                    thead { tr { th scope="col" { "When" } th scope="col" { "Who" } th scope="col" { "What" } } }
                    tbody { @for line in log { tr {
                        td { (moment(Some(line.decision.time))) } td { (line.decision.by) }
                        td .because {
                            @if let What::Said(said) = &line.decision.what { (said.in_words()) }
                            @if line.undone { " (undone)" }
                        }
                    } } }
                } }
            }
        }
    }
}

#[derive(Serialize)]
struct Decided {
    said: String,
    seen: u64,
}

/// Writes down what was sent.
pub(super) fn decide(asked: &Asked<'_>) -> Result<Reply, Problem> {
    let form = asked.form.as_deref().unwrap_or_default();
    let sent =
        |name: &str| form.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.trim());
    let mut reviewer = Reviewer::of(asked, sent("by"))?;
    let name = sent("site");
    let known = asked.opened.store.state().find_site(name)?;
    if known.is_none() {
        return Err(Problem::Missing(format!("The archive knows no site “{name}”.")));
    }
    let subject = Subject::Site(name.to_owned());
    let what = what(&reviewer, &subject, sent)?;
    let decision = Decision { time: Utc::now().trunc_subsecs(0), by: reviewer.name.to_owned(), what };
    let seen = if sent("undo") == "1" { u64::MAX } else { sent("seen").parse().unwrap_or_default() };
    let (by, path) = (reviewer.name, asked.opened.store.path());
    match reviewer.decisions.add_unless(path, vec![decision], |now| since(now, by, &subject, seen)) {
        Ok(Ok(_)) => {}
        Ok(Err(other)) => {
            let newest = reviewer.decisions.newest(&subject);
            return Ok(conflict(asked, &reviewer, name, &other, form, newest));
        }
        Err(DecisionsError::Mistake(what)) => return Err(Problem::Wrong(what)),
        Err(error) => return Err(error.into()),
    }
    if asked.wants_json {
        let decided = Decided { said: reviewer.said(&subject), seen: reviewer.decisions.newest(&subject) };
        return Ok(asked.reply("", &decided, || html! {}));
    }
    let mut reply = Reply::of(303, "text/plain", "");
    let back = match sent("back") {
        "site" => site_address(name, reviewer.name),
        show => address("/review", &[("show", show), ("by", reviewer.name)]),
    };
    reply.headers.push(("Location".to_owned(), back));
    Ok(reply)
}

/// What was decided.
fn what<'f>(
    reviewer: &Reviewer<'_>,
    subject: &Subject,
    sent: impl Fn(&str) -> &'f str,
) -> Result<What, Problem> {
    if sent("undo") == "1" {
        let own = (1..).zip(reviewer.decisions.log()).filter(|(number, decision)| {
            let is_said = matches!(&decision.what, What::Said(said) if said.on == *subject);
            is_said && decision.by == reviewer.name && !reviewer.decisions.is_undone(*number)
        });
        let (number, _) = own
            .last()
            .ok_or_else(|| Problem::Wrong(format!("{} has decided nothing on it.", reviewer.name)))?;
        return Ok(What::Undoes(number));
    }
    let mut said = Said::of(subject.clone());
    if !sent("rating").is_empty() {
        let rating = sent("rating").parse().ok().filter(|rating| (1..=4).contains(rating));
        said.rating = Some(rating.ok_or_else(|| Problem::Wrong("A rating is 1, 2, 3 or 4.".to_owned()))?);
    }
    if !sent("verdict").is_empty() {
        let verdict = Verdict::EACH.into_iter().find(|verdict| verdict.name() == sent("verdict"));
        said.verdict = Some(verdict.ok_or_else(|| Problem::Wrong("There is no such verdict.".to_owned()))?);
    }
    sent("reason").clone_into(&mut said.reason);
    sent("note").clone_into(&mut said.note);
    let tags = sent("tags").split(',').map(str::trim).filter(|tag| !tag.is_empty());
    said.tags = tags.map(str::to_owned).collect();
    Ok(What::Said(Box::new(said)))
}

/// What somebody else has decided on a site after a page was made.
fn since(decisions: &Decisions, by: &str, subject: &Subject, seen: u64) -> Option<Decision> {
    let newest = decisions.newest(subject);
    let decision = decisions.log().get(usize::try_from(newest.checked_sub(1)?).ok()?)?;
    (newest > seen && decision.by != by).then(|| decision.clone())
}

/// Shows what somebody else has decided, and asks again.
fn conflict(
    asked: &Asked<'_>,
    reviewer: &Reviewer<'_>,
    name: &str,
    other: &Decision,
    form: &[(String, String)],
    newest: u64,
) -> Reply {
    let hides = reviewer
        .decisions
        .on(&Subject::Site(name.to_owned()))
        .is_some_and(|standing| reviewer.hides(standing));
    let said = match &other.what {
        What::Said(said) if !hides => format!(": {}", said.in_words()),
        _ => String::new(),
    };
    let what = format!("{} decided on {name} in the meantime{said}", other.by);
    if asked.wants_json {
        return Reply::of(
            409,
            "application/json",
            serde_json::json!({ "error": what, "seen": newest }).to_string(),
        );
    }
    let content = html! {
        h1 { "Decided in the meantime" }
        p { (what) }
        form method="post" action="/review/decide" {
            @for (field, value) in form.iter().filter(|(field, _)| field != "seen") {
                input type="hidden" name=(field) value=(value);
            }
            input type="hidden" name="seen" value=(newest);
            button { "Write mine down as well" }
        }
        p { a href=(site_address(name, reviewer.name)) { "Leave it as it is" } }
    };
    reviewing(asked, Reply::html(409, "Decided in the meantime", "", &content))
}
