//! Submitted decisions, undone decisions, and conflicts with decisions by others.

use archive_base::decisions::{
    Decision, DecisionContent, DecisionVerdict, Decisions, DecisionsError, Statement, Subject,
};
use chrono::{SubsecRound as _, Utc};
use maud::html;
use serde::Serialize;

use super::super::{ArchiveRequest, PageProblem, Reply};
use super::{Reviewer, reviewing, site_address};

#[derive(Serialize)]
struct DecisionForm {
    said: String,
    seen: u64,
}

/// Records a submitted decision.
pub(in super::super) fn decide(asked: &ArchiveRequest<'_>) -> Result<Reply, PageProblem> {
    let form = asked.form.as_deref().unwrap_or_default();
    let sent =
        |name: &str| form.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.trim());
    let t = asked.speech;
    let mut reviewer = Reviewer::of(asked, sent("by"))?;
    let name = sent("site");
    let known = asked.opened.store.state().find_site(name)?;
    if known.is_none() {
        return Err(PageProblem::no_site(t, name));
    }
    let subject = Subject::Site(name.to_owned());
    let what = what(&reviewer, &subject, sent)?;
    let decision = Decision { time: Utc::now().trunc_subsecs(0), by: reviewer.name.to_owned(), what };
    let seen = if sent("undo") == "1" { u64::MAX } else { sent("seen").parse().unwrap_or_default() };
    let (by, path) = (reviewer.name, asked.opened.store.path());
    match reviewer.decisions.add_unless(path, vec![decision], |now| since(now, by, &subject, seen)) {
        Ok(Ok(_)) => {}
        Ok(Err(other)) => {
            let newest = reviewer.decisions.newest_word(&subject);
            return Ok(conflict(asked, &reviewer, name, &other, form, newest));
        }
        Err(DecisionsError::Mistake(what)) => return Err(PageProblem::Mistake(what)),
        Err(error) => return Err(error.into()),
    }
    if asked.wants_json {
        let decided =
            DecisionForm { said: reviewer.said(&subject), seen: reviewer.decisions.newest_word(&subject) };
        return Ok(asked.reply("", &decided, || html! {}));
    }
    let back = match sent("back") {
        "site" => site_address(t, name, reviewer.name),
        show => t.address("/review", &[("show", show), ("by", reviewer.name)]),
    };
    Ok(Reply::of(303, "text/plain", "").with("Location", back))
}

/// Reads the decision from the form.
fn what<'f>(
    reviewer: &Reviewer<'_>,
    subject: &Subject,
    sent: impl Fn(&str) -> &'f str,
) -> Result<DecisionContent, PageProblem> {
    let t = reviewer.t;
    let wrong = |what: &'static str| PageProblem::Wrong(t.say(what).to_owned());
    if sent("undo") == "1" {
        let own = (1..).zip(reviewer.decisions.log()).filter(|(number, decision)| {
            let is_said = matches!(&decision.what, DecisionContent::Said(said) if said.on == *subject);
            is_said && decision.by == reviewer.name && !reviewer.decisions.is_undone(*number)
        });
        let nothing = || PageProblem::Wrong(t.fill("{} has decided nothing on it.", &[&reviewer.name]));
        let (number, _) = own.last().ok_or_else(nothing)?;
        return Ok(DecisionContent::Undoes(number));
    }
    let mut said = Statement::of(subject.clone());
    if !sent("rating").is_empty() {
        let rating = sent("rating").parse().ok().filter(|rating| (1..=4).contains(rating));
        said.rating = Some(rating.ok_or_else(|| wrong("A rating is 1, 2, 3 or 4."))?);
    }
    if !sent("verdict").is_empty() {
        let verdict = DecisionVerdict::EACH.into_iter().find(|verdict| verdict.name() == sent("verdict"));
        said.verdict = Some(verdict.ok_or_else(|| wrong("There is no such verdict."))?);
    }
    sent("reason").clone_into(&mut said.reason);
    sent("note").clone_into(&mut said.note);
    let tags = sent("tags").split(',').map(str::trim).filter(|tag| !tag.is_empty());
    said.tags = tags.map(str::to_owned).collect();
    Ok(DecisionContent::Said(Box::new(said)))
}

/// The newest decision on a site, if it was made by somebody else after the page was made.
fn since(decisions: &Decisions, by: &str, subject: &Subject, seen: u64) -> Option<Decision> {
    let newest = decisions.newest_word(subject);
    let decision = decisions.at(newest)?;
    (newest > seen && decision.by != by).then(|| decision.clone())
}

/// Shows a decision by somebody else, and asks for confirmation.
fn conflict(
    asked: &ArchiveRequest<'_>,
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
    let (t, by) = (asked.speech, &other.by);
    let what = match &other.what {
        DecisionContent::Undoes(_) => t.fill("{} took a decision on {} back in the meantime", &[by, &name]),
        DecisionContent::Said(said) if !hides => {
            t.fill("{} decided on {} in the meantime: {}", &[by, &name, &said.in_words(*t)])
        }
        DecisionContent::Said(_) => t.fill("{} decided on {} in the meantime", &[by, &name]),
    };
    if asked.wants_json {
        return Reply::of(
            409,
            "application/json",
            serde_json::json!({ "error": what, "seen": newest }).to_string(),
        );
    }
    let title = t.say("Decided in the meantime");
    let content = html! {
        h1 { (title) }
        p { (what) }
        form method="post" action="/review/decide" {
            @for (field, value) in form.iter().filter(|(field, _)| field != "seen") {
                input type="hidden" name=(field) value=(value);
            }
            input type="hidden" name="seen" value=(newest);
            button { (t.say("Write mine down as well")) }
        }
        p { a href=(site_address(t, name, reviewer.name)) { (t.say("Leave it as it is")) } }
    };
    reviewing(asked, Reply::html(409, t, title, Some(&asked.request), &content))
}
