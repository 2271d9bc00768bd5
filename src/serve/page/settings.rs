//! The current settings: what is crawled, how politely and how far, what is kept, and who may do what here.

use std::io::ErrorKind;

use archive_base::files;
use archive_base::runs::{self, RunHistory};
use archive_books::ledger::{Credits, ScopeKind, ScopeRule};
use archive_books::search;
use archive_choose::{CrawlPolicy, RefreshRules};
use archive_crawl::SETTINGS_FILE;
use archive_crawl::publish::{self, HOST_NOTICES_MAX, NOTICES_MAX};
use maud::{Markup, html};
use serde::Serialize;

use super::{ArchiveRequest, PageProblem, Reply, Speech};

/// Maximum number of scope rules shown.
const SCOPE_MAX: usize = 100;

/// Maximum size of a `crawl.toml` that is shown, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 10;

#[derive(Serialize)]
struct PageSettings {
    /// The first rules of the scope.
    scope: Vec<ScopeRule>,
    /// Total number of scope rules.
    scope_rules: usize,
    /// Policy of the last crawl.
    crawl: CrawlPolicy,
    /// Content of `crawl.toml`, which overrides the command line.
    crawl_toml: Option<String>,
    /// Limits and politeness of the newest run.
    newest_run: Option<runs::RunLimits>,
    refresh: Refresh,
    access_rules: usize,
    full_text: bool,
    /// Whether people must log in.
    has_accounts: bool,
    review: Option<ReviewRights>,
    notices: Option<Notices>,
    timegates: Vec<String>,
}

#[derive(Serialize)]
struct Refresh {
    policy: String,
    weight: String,
    discovery: String,
    shortest_seconds: u64,
}

/// Who may decide on sites.
#[derive(Serialize)]
struct ReviewRights {
    by: String,
    user_header: Option<String>,
    is_blind: bool,
}

/// What strangers may announce, and the outcome of notices since the server started.
#[derive(Serialize)]
struct Notices {
    waiting: usize,
    most: usize,
    most_of_a_host: usize,
    fates: Vec<(&'static str, u64)>,
}

pub(super) fn page(asked: &ArchiveRequest<'_>) -> Result<Reply, PageProblem> {
    let (store, t) = (asked.opened.store, asked.speech);
    let state = store.state();
    let mut scope = Credits::open(state)?.scope().rules().to_vec();
    let scope_rules = scope.len();
    scope.truncate(SCOPE_MAX);
    let rules = RefreshRules::kept(state)?;
    let runs = RunHistory::of(store.path())?;
    let newest = runs.ids().last().and_then(|id| runs.get(*id));
    let review = asked.server.review.as_ref().map(|review| ReviewRights {
        by: review.by.clone(),
        user_header: asked.server.user_header.as_ref().map(ToString::to_string),
        is_blind: review.is_blind,
    });
    let notices = match &asked.server.pings {
        Some(pings) => Some(Notices {
            waiting: publish::waiting_notices(store.path())?,
            most: NOTICES_MAX,
            most_of_a_host: HOST_NOTICES_MAX,
            fates: pings.counts().collect(),
        }),
        None => None,
    };
    let data = PageSettings {
        scope,
        scope_rules,
        crawl: CrawlPolicy::of_last_crawl(state)?,
        crawl_toml: crawl_toml(asked)?,
        newest_run: newest.map(|(run, _)| run.limits),
        refresh: Refresh {
            policy: rules.policy.to_string(),
            weight: rules.weight.clone().into(),
            discovery: rules.discovery.to_string(),
            shortest_seconds: rules.shortest.as_secs(),
        },
        access_rules: asked.opened.rules,
        full_text: store.path().join(search::FOLDER).exists(),
        has_accounts: asked.server.people.is_some(),
        review,
        notices,
        timegates: asked.server.timegates.clone(),
    };
    Ok(asked.reply(t.say("Settings"), &data, || shown(t, &data)))
}

/// Content of `crawl.toml`, if it exists.
fn crawl_toml(asked: &ArchiveRequest<'_>) -> Result<Option<String>, PageProblem> {
    match files::read(&asked.opened.store.path().join(SETTINGS_FILE), FILE_BYTES_MAX) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(PageProblem::Failed(format!("{SETTINGS_FILE}: {error}"))),
    }
}

fn shown(t: Speech, data: &PageSettings) -> Markup {
    let row =
        |name: &'static str, value: Markup| html! { tr { th scope="row" { (t.say(name)) } td { (value) } } };
    let yes = |is: bool| html! { (t.say(if is { "yes" } else { "no" })) };
    let most = |number: Option<u64>| match number {
        Some(number) => html! { (t.count(number)) },
        None => html! { (t.say("no limit")) },
    };
    let crawl = &data.crawl;
    html! {
        h1 { (t.say("Settings")) }
        p { (t.say("They are changed on the command line and in files of the archive’s folder, not here.")) }
        section { h2 { (t.say("Scope")) }
            @if data.scope.is_empty() { p { (t.say("Nothing was crawled here yet.")) } } @else {
                ul { @for rule in &data.scope { li { (scope_of(t, rule)) } } }
                @if data.scope_rules > data.scope.len() { p { (t.fill("{} rules in all; these are the first.", &[&t.count(data.scope_rules as u64)])) } }
            }
        }
        section { h2 { (t.say("Crawl")) } table .reasons.settings { tbody {
            (row("Order", html! { (t.say(crawl.order.sentence())) " (" code { (crawl.order) } ")" }))
            (row("Name for robots.txt", html! { code { (crawl.robots_name) } }))
            @if let Some(limits) = &data.newest_run {
                @if let Some([host, address]) = limits.delay_seconds {
                    (row("Pause between requests to a host", html! { (t.span(host)) }))
                    (row("Pause between requests to an address", html! { (t.span(address)) }))
                }
                @if let Some(workers) = limits.workers { (row("Requests at once", html! { (t.count(workers as u64)) })) }
                (row("Pages of the newest run", most(limits.pages)))
                (row("Time of the newest run", match limits.seconds { Some(seconds) => html! { (t.span(seconds)) }, None => most(None) }))
            }
            (row("Pages of a host", most(crawl.budgets.pages_per_host.map(u64::from))))
            (row("Pages of a site", most(crawl.budgets.pages_per_site.map(u64::from))))
            @for (name, most) in [("Bytes of a host in a run", crawl.budgets.bytes_per_host), ("Bytes of a site in a run", crawl.budgets.bytes_per_site)] {
                @if let Some(bytes) = most { (row(name, html! { (t.bytes(bytes)) })) }
            }
            (row("Variations of one query", most(Some(crawl.query_variations.into()).filter(|most| *most > 0))))
            (row("Pages with the same content", most(Some(crawl.same_content.into()).filter(|most| *most > 0))))
            (row("Obeys nofollow", yes(crawl.obey_nofollow)))
            (row("Obeys noarchive", yes(crawl.obey_noarchive)))
        } }
            @if let Some(text) = &data.crawl_toml {
                p { (t.markup("{} overrides the command line:", &[html! { code { (SETTINGS_FILE) } }])) }
                pre tabindex="0" { (text) }
            }
        }
        section { h2 { (t.say("Refresh")) } table .reasons.settings { tbody {
            (row("Policy", html! { code { (data.refresh.policy) } }))
            (row("Weight of a page", html! { code { (data.refresh.weight) } }))
            (row("Share for discovery", html! { code { (data.refresh.discovery) } }))
            (row("Shortest interval", html! { (t.span(data.refresh.shortest_seconds as f64)) }))
        } } }
        section { h2 { (t.say("Kept and shown")) } table .reasons.settings { tbody {
            (row("Full-text index", yes(data.full_text)))
            (row("Access rules", html! { (t.count(data.access_rules as u64)) }))
            (row("Other archives that are linked to", html! { @if data.timegates.is_empty() { "–" } @for gate in &data.timegates { div .url { (gate) } } }))
        } } }
        section { h2 { (t.say("Who may do what")) } table .reasons.settings { tbody {
            (row("Read", html! { (t.say(if data.has_accounts {
                "people with an account, but for what access rules hide from their role"
            } else {
                "everybody who can reach this server, except for what access rules hide"
            })) }))
            (row("Decide on sites", match &data.review {
                None => html! { (t.say("nobody here (--review)")) },
                Some(_) if data.has_accounts => html! { (t.say("reviewers and operators with an account, under its name")) },
                Some(ReviewRights { user_header: Some(field), .. }) => html! { (t.markup("the person whom the field {} names, under that name", &[html! { code { (field) } }])) },
                Some(ReviewRights { by, .. }) => html! { (t.fill("everybody who can reach this server, as {} or under another name", &[by])) },
            }))
            (row("Announce changes", match &data.notices {
                None => html! { (t.say("nobody here (--pings)")) },
                Some(notices) => html! {
                    (t.say("anybody, of hosts that the archive holds, once their key was found")) "; "
                    (t.counted(notices.waiting as u64, "{} notice waits", "{} notices wait"))
                },
            }))
            (row("Change all else", html! { (t.say("nobody here: the command line")) }))
        } } }
    }
}

fn scope_of(t: Speech, rule: &ScopeRule) -> Markup {
    let (what, pattern) = match &rule.kind {
        ScopeKind::Host => ("the host of {}", &rule.seed),
        ScopeKind::Site => ("the site of {}", &rule.seed),
        ScopeKind::Any => ("everything, from {}", &rule.seed),
        ScopeKind::Regex(pattern) => ("URLs that match {}", pattern),
    };
    html! {
        (t.markup(what, &[html! { code .url { (pattern) } }]))
        @if rule.max_depth < u8::MAX { ", " (t.counted(rule.max_depth.into(), "{} link from a seed at most", "{} links from a seed at most")) }
    }
}
