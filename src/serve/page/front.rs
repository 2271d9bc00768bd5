//! Pages of several archives as one: combined searches and queries, and redirects to the archive that has a page.

use std::sync::Arc;

use archive_ask::find::{ParsedSearch, SearchOptions};
use archive_base::error::{Classified, ErrorKind};
use archive_peers::nodes::{AskError, Missing};
use archive_storage::address::{host_key, site_of};
use chrono::Utc;
use maud::{Markup, html};
use serde::Serialize;
use url::Url;

use super::{PageProblem, PageRequest, Reply, Speech, query, search};
use crate::serve::cache::SearchRange;
use crate::serve::front::Front;

#[derive(Serialize)]
struct FrontStart<'a> {
    archives: Vec<FrontRow<'a>>,
    missing: Vec<Missing>,
}

#[derive(Serialize)]
struct FrontRow<'a> {
    name: &'a str,
    /// Origin for browsers.
    application: Option<String>,
}

/// Answers a request.
pub(super) fn page(front: &Front, asked: &PageRequest<'_>) -> Option<Result<Reply, PageProblem>> {
    let role = asked.who.role;
    let site = match asked.path {
        "/" => return Some(start(front, asked)),
        "/search" => {
            let find =
                |wanted: SearchRange, _: &ParsedSearch| -> Result<search::PartialResults, PageProblem> {
                    let (limit, before) = (wanted.limit, wanted.before);
                    let options = SearchOptions { limit, before, facets: true, ..SearchOptions::default() };
                    let found = front.ask(role, |all| all.search(&wanted.words, options));
                    let (mut found, missing) = found.map_err(problem)?;
                    found.hits.drain(..wanted.skip.min(found.hits.len()));
                    Ok((Arc::new(found), missing))
                };
            let times = || Ok(front.known(role).map_err(problem)?.times().unwrap_or_default().to_vec());
            return Some(search::search(asked, find, times));
        }
        "/query" => {
            return Some(query::query(asked, |text, rows| {
                let asking = front.ask(role, |all| all.query(text, Utc::now(), Some(query::ROWS)));
                match asking {
                    Ok(((answer, _), missing)) => {
                        rows.begin(&answer.headings)?;
                        answer.rows.into_iter().try_for_each(|row| rows.take(row))?;
                        Ok(Ok((answer.matched, missing)))
                    }
                    Err(error) if error.kind() == ErrorKind::Usage => Ok(Err(error.to_string())),
                    Err(error) => Err(problem(error)),
                }
            }));
        }
        "/page" | "/compare" | "/read" => site_of_url(asked.parameter("url")),
        "/site" => Some(asked.parameter("name").to_owned()),
        "/wacz" => Some(asked.parameter("site").to_owned()),
        _ => return None,
    };
    let t = asked.speech;
    let site = site.ok_or_else(|| PageProblem::no_url(t, asked.parameter("url")));
    Some(site.and_then(|site| lead(front, asked, &site, 0)))
}

/// Redirects a request for the replay to the archive that has captured pages of the site. A capture query that no
/// single archive can answer is sent to all of them.
pub(in crate::serve) fn led(front: &Front, asked: &PageRequest<'_>) -> Reply {
    let (t, role) = (asked.speech, asked.who.role);
    let missing = || PageProblem::Missing(t.say("There is nothing at this address.").to_owned());
    let answer = || {
        let (site, range) = archive_replay::site_asked(asked.whole).map_err(PageProblem::Mistake)?;
        let site = site.ok_or_else(missing)?;
        match range {
            Some(query) if front.known(role).map_err(problem)?.answering(&site).is_none() => {
                let (found, missing) = front.ask(role, |all| all.captures(query)).map_err(problem)?;
                Ok(Reply::replayed(found).without(&missing))
            }
            _ => lead(front, asked, &site, 1),
        }
    };
    answer().unwrap_or_else(|problem: PageProblem| problem.reply(asked))
}

/// Redirects to the same address at the archive that answers for a site.
fn lead(front: &Front, asked: &PageRequest<'_>, site: &str, origin: usize) -> Result<Reply, PageProblem> {
    let t = asked.speech;
    let known = front.known(asked.who.role).map_err(problem)?;
    let origins = known.answering(site).and_then(|place| front.origins(&known, place, asked.host));
    match origins {
        Some(origins) => Ok(Reply::led_to(&format!("{}{}", origins[origin], asked.whole))),
        None if front.missing(&known).is_empty() => Err(PageProblem::no_site(t, site)),
        None => Err(PageProblem::Absent(
            t.fill("No archive that answers now knows the site “{}”, but some do not answer.", &[&site]),
        )),
    }
}

fn start(front: &Front, asked: &PageRequest<'_>) -> Result<Reply, PageProblem> {
    let known = front.known(asked.who.role).map_err(problem)?;
    let archives = front.names().enumerate().map(|(place, name)| FrontRow {
        name,
        application: front.origins(&known, place, asked.host).map(|[application, _]| application),
    });
    let data = FrontStart { archives: archives.collect(), missing: front.missing(&known) };
    let t = asked.speech;
    Ok(asked.reply(t.say("Start"), &data, || {
        html! {
            h1 { (t.say("Web archives, asked as one")) }
            (missing(t, &data.missing))
            p { (t.say("Searches and queries here are answered by all of these archives together. Each also has its own pages:")) }
            ul {
                @for FrontRow { name, application } in &data.archives {
                    li { @match application { Some(application) => a href=(application) { (name) }, None => (name) } }
                }
            }
        }
    }))
}

/// Lists archives that are missing from an answer.
pub(super) fn missing(t: Speech, missing: &[Missing]) -> Markup {
    html! {
        @for Missing { name, why } in missing {
            p role="alert" { (t.markup("{} is missing from this answer: {}", &[html! { (name) }, html! { span lang="en" { (why) } }])) }
        }
    }
}

fn problem(error: AskError) -> PageProblem {
    match error {
        error if error.kind() == ErrorKind::Usage => PageProblem::Mistake(error.to_string()),
        error @ AskError::Nobody(_) => PageProblem::Absent(error.to_string()),
        error => PageProblem::Failed(error.to_string()),
    }
}

fn site_of_url(text: &str) -> Option<String> {
    let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    Some(site_of(&host_key(&Url::parse(&with_scheme).ok()?)).to_owned())
}
