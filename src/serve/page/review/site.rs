//! A site: why to review it, pages to look at, neighbours with their decisions, and its own decisions.

use std::cmp::Reverse;
use std::collections::HashMap;

use archive_ask::query::{Question, Value};
use archive_ask::review::next;
use archive_base::decisions::{Decision, DecisionContent, Subject};
use archive_books::ledger::Credits;
use archive_grammar::Quoted;
use archive_storage::{SiteId, UrlId};
use chrono::Utc;
use maud::{Markup, html};
use serde::Serialize;

use super::super::{ArchiveRequest, PageProblem, Reply};
use super::{ReviewRow, Reviewer, buttons, keys, reviewing, script, site_address};

/// Number of most important pages whose links are followed to neighbours.
const PAGES: usize = 200;

/// Maximum number of neighbours shown.
const NEIGHBOURS: usize = 20;

#[derive(Serialize)]
struct ReviewedSite {
    by: String,
    #[serde(flatten)]
    row: ReviewRow,
    samples: Vec<(String, Option<String>)>,
    neighbours: Vec<Neighbour>,
    log: Vec<DecisionLine>,
}

/// A site that this one links to.
#[derive(Serialize)]
struct Neighbour {
    site: String,
    /// Number of links from the most important pages.
    links: u32,
    /// Decisions on it.
    said: String,
}

#[derive(Serialize)]
struct DecisionLine {
    number: u64,
    #[serde(flatten)]
    decision: Decision,
    undone: bool,
}

/// The page of a site.
pub(in super::super) fn site(asked: &ArchiveRequest<'_>) -> Result<Reply, PageProblem> {
    let reviewer = Reviewer::of(asked, asked.parameter("by"))?;
    let (t, name) = (asked.speech, asked.parameter("name"));
    let opened = asked.opened;
    let missing = || PageProblem::no_site(t, name);
    let id = opened.store.state().find_site(name)?.ok_or_else(missing)?;
    let among = std::iter::once(id).collect();
    let found = next(opened.store, &opened.access, &reviewer.decisions, Some(&among), 1, *t)?.rows.pop();
    let mut samples: Vec<(String, Option<String>)> = Vec::new();
    let mut row = match found {
        Some(found) => {
            samples.extend(found.samples.iter().map(|sample| (sample.url.clone(), sample.title.clone())));
            reviewer.found(found)
        }
        None => reviewer.row(name),
    };
    if samples.is_empty() {
        let query = format!("page site = {} and status = 200 select url, title limit 5", Quoted(name));
        let question = Question::new(opened.store, opened.access.clone(), &query, Utc::now())?;
        samples.extend(question.answer()?.rows.into_iter().filter_map(|row| {
            let mut texts =
                row.into_iter().map(|value| if let Value::Text(text) = value { Some(text) } else { None });
            Some((texts.next().flatten()?, texts.next().flatten()))
        }));
    }
    row.because.dedup();
    let subject = Subject::Site(name.to_owned());
    let hides = reviewer.decisions.on(&subject).is_some_and(|standing| reviewer.hides(standing));
    let is_on_it =
        |decision: &Decision| matches!(&decision.what, DecisionContent::Said(said) if said.on == subject);
    let log = (1..).zip(reviewer.decisions.log()).filter(|(_, decision)| is_on_it(decision));
    let log = log.filter(|(_, decision)| !hides || decision.by == reviewer.name).map(|(number, decision)| {
        DecisionLine { number, decision: decision.clone(), undone: reviewer.decisions.is_undone(number) }
    });
    let neighbours = neighbours(asked, &reviewer, name, id)?;
    let data = ReviewedSite { by: reviewer.name.to_owned(), row, samples, neighbours, log: log.collect() };
    Ok(reviewing(asked, asked.reply(name, &data, || shown(asked, &data))))
}

/// The sites that a site's most important pages link to: sites with decisions first, then by number of links.
fn neighbours(
    asked: &ArchiveRequest<'_>,
    reviewer: &Reviewer<'_>,
    name: &str,
    own: SiteId,
) -> Result<Vec<Neighbour>, PageProblem> {
    let state = asked.opened.store.state();
    let credits = Credits::open(state)?;
    let mut counts: HashMap<SiteId, u32> = HashMap::new();
    for page in most_important(asked, name)? {
        for link in &state.links(page)?.links {
            if let Some(site) = credits.site(state, link.target)?.filter(|site| *site != own) {
                *counts.entry(site).or_default() += 1;
            }
        }
    }
    let mut neighbours = counts
        .into_iter()
        .map(|(site, links)| {
            let site = state.site_name(site)?;
            Ok(Neighbour { said: reviewer.said(&Subject::Site(site.clone())), site, links })
        })
        .collect::<Result<Vec<_>, PageProblem>>()?;
    let order = |of: &Neighbour| (of.said.is_empty(), Reverse(of.links), of.site.clone());
    neighbours.sort_by_cached_key(order);
    neighbours.truncate(NEIGHBOURS);
    Ok(neighbours)
}

/// The most important pages of a site that the person may see.
fn most_important(asked: &ArchiveRequest<'_>, name: &str) -> Result<Vec<UrlId>, PageProblem> {
    let documents = "captures > 0 and status not between 300 and 399";
    let query = format!("page site = {} and {documents} order by importance limit {PAGES}", Quoted(name));
    Ok(Question::new(asked.opened.store, asked.opened.access.clone(), &query, Utc::now())?.pages()?)
}

fn shown(asked: &ArchiveRequest<'_>, data: &ReviewedSite) -> Markup {
    let t = asked.speech;
    let ReviewedSite { by, row, samples, neighbours, log } = data;
    html! {
        (script(t))
        div data-site=(row.site) {
            h1 { (row.site) }
            p { a href=(t.address("/review", &[("by", by)])) { (t.say("All sites waiting for review")) } " · " a href=(t.site_of(&row.site)) { (t.say("What the archive holds of it")) } }
            @if let Some(advice) = row.advice {
                p { strong { (t.say(advice.name())) } ": " (row.because.join("; ")) }
            }
            (buttons(t, &row.site, by, row.seen, "site"))
            p { output { (row.said) } }
            (keys(t))
            form .query method="post" action="/review/decide" {
                (t.kept())
                input type="hidden" name="site" value=(row.site); input type="hidden" name="by" value=(by);
                input type="hidden" name="seen" value=(row.seen); input type="hidden" name="back" value="site";
                label { (t.say("Reason")) " " input name="reason" maxlength="1000"; }
                label { (t.say("Note")) " " input name="note" maxlength="1000"; }
                label { (t.say("Tags")) " " input name="tags" placeholder=(t.say("maps, -music")) maxlength="1000"; }
                button { (t.say("Save")) }
            }
        }
        section {
            h2 { (t.say("Pages to look at")) }
            ul .samples { @for (url, title) in samples {
                li {
                    a href=(asked.replayed(url, None)) target="preview" rel="noreferrer" { (title.as_deref().unwrap_or(url)) }
                    " " a .small href=(t.page_of(url)) { (t.say("history")) } div .url { (url) }
                }
            } }
            @if let Some((url, _)) = samples.first() {
                iframe .preview name="preview" sandbox="" src=(asked.replayed(url, None)) title=(t.say("The page as it was captured")) {}
            }
        }
        section {
            h2 { (t.say("Neighbours")) }
            @if neighbours.is_empty() { p { (t.say("Its pages lead to no other site.")) } } @else {
                div .wide role="region" aria-label=(t.say("Neighbours")) tabindex="0" { table {
                    thead { tr { th scope="col" { (t.say("It links to")) } th .number scope="col" { (t.say("Links")) } th scope="col" { (t.say("Decided")) } } }
                    tbody { @for other in neighbours { tr {
                        th scope="row" { a href=(site_address(t, &other.site, by)) { (other.site) } }
                        td .number { (t.count(other.links.into())) } td .because { (other.said) }
                    } } }
                } }
            }
            p { a href=(t.query_of(&linking(&row.site))) { (t.say("Sites that lead here")) } }
        }
        @if !log.is_empty() {
            section {
                h2 { (t.say("Decisions")) }
                div .wide role="region" aria-label=(t.say("Decisions")) tabindex="0" { table {
                    thead { tr { th scope="col" { (t.say("When")) } th scope="col" { (t.say("Who")) } th scope="col" { (t.say("What")) } } }
                    tbody { @for line in log { tr {
                        td { (t.moment(Some(line.decision.time))) } td { (line.decision.by) }
                        td .because {
                            @if let DecisionContent::Said(said) = &line.decision.what { (said.in_words(*t)) }
                            @if line.undone { " " (t.say("(undone)")) }
                        }
                    } } }
                } }
            }
        }
    }
}

/// A query for the sites that link to a site, with their decisions.
fn linking(site: &str) -> String {
    let site = Quoted(site);
    format!("count pages links to (page site = {site}) and site != {site} group by site, rating, verdict")
}
