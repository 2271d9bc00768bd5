//! A site: what the archive has of it, and its most important pages.

use archive_ask::query::{Question, Value};
use archive_grammar::Quoted;
use chrono::{DateTime, Utc};
use maud::html;
use serde::Serialize;

use super::trend::{ImportanceAt, noted, section};
use super::{ArchiveRequest, PageProblem, Reply, utc};

/// Maximum number of pages listed, without redirects: a redirect has the importance of its target, and both would be
/// listed.
const PAGES: usize = 50;

#[derive(Debug, Serialize)]
pub(in crate::serve) struct SiteView {
    site: String,
    importance: f64,
    /// Its importance over time, as noted at the ends of runs.
    importance_noted: Vec<ImportanceAt>,
    pages: u64,
    captures: u64,
    html: u64,
    xml: u64,
    other: u64,
    #[serde(serialize_with = "utc")]
    first_seen: Option<DateTime<Utc>>,
    #[serde(serialize_with = "utc")]
    last_seen: Option<DateTime<Utc>>,
    /// Number of pages by status.
    statuses: Vec<(u64, u64)>,
    most_important: Vec<SitePage>,
}

#[derive(Debug, Serialize)]
struct SitePage {
    url: String,
    title: Option<String>,
    status: Option<u64>,
    importance: f64,
    #[serde(serialize_with = "utc")]
    last_seen: Option<DateTime<Utc>>,
}

/// Collects the data about a site.
fn held(asked: &ArchiveRequest<'_>, name: &str) -> Result<SiteView, PageProblem> {
    let t = asked.speech;
    let quoted = Quoted(name);
    let ask =
        |text: String| Question::new(asked.opened.store, asked.opened.access.clone(), &text, Utc::now());
    let question = ask(format!("site site = {quoted}"))?;
    let (sites, _) = question.plan.select_sites(&question.rows)?;
    let Some(site) = sites.into_iter().next() else {
        return Err(PageProblem::no_site(t, name));
    };
    let statuses =
        ask(format!("count pages site = {quoted} and status is not empty group by status"))?.answer()?;
    let statuses = statuses.rows.iter().filter_map(|row| match row.as_slice() {
        [status, pages] => Some((status.as_number()? as u64, pages.as_number()? as u64)),
        _ => None,
    });
    let pages = ask(format!(
        "page site = {quoted} and captures > 0 and status not between 300 and 399 order by importance desc limit {PAGES} select url, title, status, importance, last_seen"
    ))?;
    Ok(SiteView {
        other: site.other(),
        importance_noted: noted(asked.opened, |trends| trends.sites.get(&site.name))?,
        site: site.name,
        importance: site.importance,
        pages: site.pages,
        captures: site.captures,
        html: site.html,
        xml: site.xml,
        first_seen: site.first_seen,
        last_seen: site.last_seen,
        statuses: statuses.collect(),
        most_important: pages.answer()?.rows.iter().filter_map(|row| found(row)).collect(),
    })
}

pub(super) fn page(asked: &ArchiveRequest<'_>) -> Result<Reply, PageProblem> {
    let (t, name) = (asked.speech, asked.parameter("name"));
    let bytes = |site: &SiteView| {
        let page = |page: &SitePage| page.url.len() + page.title.as_ref().map_or(0, String::len);
        site.most_important.iter().map(page).sum()
    };
    let data = asked.opened.cache.sites.of(asked.opened, name.to_owned(), bytes, || held(asked, name))?;
    let all = t.query_of(&format!("page site = {} order by importance limit 1000", Quoted(name)));
    let package = t.address("/wacz", &[("site", &data.site)]);
    Ok(asked.reply(&data.site, &*data, || {
        html! {
            h1 { (data.site) }
            dl .facts {
                div { dt { (t.say("Importance")) } dd { (t.decimal(data.importance, 2)) } }
                div { dt { (t.say("Pages")) } dd { (t.count(data.pages)) } }
                div { dt { (t.say("Captures")) } dd { (t.count(data.captures)) } }
                div { dt { (t.say("HTML")) } dd { (t.count(data.html)) } }
                div { dt { (t.say("XML")) } dd { (t.count(data.xml)) } }
                div { dt { (t.say("Other")) } dd { (t.count(data.other)) } }
                div { dt { (t.say("First capture")) } dd { (t.moment(data.first_seen)) } }
                div { dt { (t.say("Last capture")) } dd { (t.moment(data.last_seen)) } }
                @for (status, pages) in &data.statuses { div { dt { (t.fill("Status {}", &[status])) } dd { (t.count(*pages)) } } }
            }
            (section(t, &data.importance_noted))
            section {
                h2 { (t.say("Most important pages")) }
                table {
                    thead { tr {
                        th scope="col" { (t.say("Page")) } th scope="col" { (t.say("Status")) } th scope="col" { (t.say("Last capture")) }
                        th .number scope="col" { (t.say("Importance")) }
                    } }
                    tbody {
                        @for page in &data.most_important {
                            tr {
                                th scope="row" {
                                    a href=(t.page_of(&page.url)) { (page.title.as_deref().unwrap_or(&page.url)) }
                                    @if page.title.is_some() { div .url { (page.url) } }
                                }
                                td { @if let Some(status) = page.status { (status) } @else { "–" } }
                                td { (t.moment(page.last_seen)) }
                                td .number { (t.decimal(page.importance, 2)) }
                            }
                        }
                    }
                }
                p { a href=(all) { (t.say("All of its pages")) } " · " a href=(package) { (t.say("Its captures as WACZ")) } }
            }
        }
    }))
}

fn found(row: &[Value]) -> Option<SitePage> {
    let [Value::Text(url), title, status, importance, last_seen] = row else { return None };
    Some(SitePage {
        url: url.clone(),
        title: if let Value::Text(title) = title { Some(title.clone()) } else { None },
        status: status.as_number().map(|status| status as u64),
        importance: importance.as_number().unwrap_or_default(),
        last_seen: if let Value::Time(time) = last_seen { Some(*time) } else { None },
    })
}
