//! `archive review next`: lists the sites that most need a review.

use std::collections::HashSet;
use std::process::ExitCode;

use archive_ask::query::{self, Limits, Question};
use archive_ask::review;
use archive_ask::review::next::NextSites;
use archive_base::access::Access;
use archive_base::decisions::Decisions;
use archive_base::texts::Language;
use archive_storage::{SiteId, Store};
use chrono::Utc;

use super::super::options::AskArgs;
use super::super::output::Listing;
use crate::cli::Result;

/// Maximum number of reasons in a table row.
const REASONS_MAX: usize = 2;

/// List the sites that most need a look, with their doubts and problems, and advice.
///
/// Sites are ordered by the importance of their pages times the weight of their doubts and problems: new, unrated,
/// rated differently, much changed, incomplete, shrunk, failing, gone, moved, behind a login, closed by robots.txt,
/// parked, error pages with status 200, or linked to but never requested. A site with a decision comes back if
/// something has gone wrong since.
///
/// Advice: archive (keep it, or start to), investigate (find out more), reject (it does not belong here), delist
/// (nothing is left to fetch).
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive review next
  archive review next --limit 100 --json
  archive review next --query 'site tags contains \"anna\"'    # sites tagged for Anna
  archive review next --archive A1 --archive A2                 # partitions of a cluster in one list
  archive review next --archive A1 --archive http://node2:8070/")]
pub(crate) struct Args {
    /// Maximum number of sites to list
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Query that selects the sites, as for `archive query`
    #[arg(long)]
    query: Option<String>,
    #[command(flatten)]
    ask: AskArgs,
    /// One JSON object per site
    #[arg(long)]
    json: bool,
}

/// The sites that a query finds in an archive, which may be one of several.
fn among(store: &Store, access: &Access, query: &str, are_several: bool) -> Result<HashSet<SiteId>> {
    let question = Question::new(store, access.clone(), query, Utc::now())?;
    if !question.plan.asks_for_sites() {
        refuse!("--query has to ask for sites: 'site tags contains \"maps\"'");
    }
    if are_several {
        question.plan.expect_of_each()?;
    }
    let (sites, _) = question.plan.select_sites(&question.rows)?;
    Ok(sites.into_iter().map(|site| site.id).collect())
}

/// The next sites of all archives, each of which answers for its own sites.
fn next(archives: &[(&Store, Access)], args: &Args) -> Result<NextSites> {
    let are_several = archives.len() > 1;
    let owners = if are_several { query::answering(archives)? } else { Vec::new() };
    let mut each = Vec::new();
    for (place, (store, access)) in archives.iter().enumerate() {
        let found = args.query.as_deref().map(|query| among(store, access, query, are_several));
        let mut found = found.transpose()?;
        if let Some(owners) = owners.get(place) {
            let sites = (0..).map(SiteId).zip(owners).filter(|(_, owner)| **owner == place);
            let own = sites
                .map(|(site, _)| site)
                .filter(|site| found.as_ref().is_none_or(|found| found.contains(site)));
            found = Some(own.collect());
        }
        let decisions = Decisions::read(store.path())?;
        each.push(review::next(store, access, &decisions, found.as_ref(), args.limit, Language::English)?);
    }
    Ok(NextSites::together(each, args.limit))
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let answering = args.ask.open()?;
    let (next, code) = match answering.asked(&args.ask.nodes, Limits::USUAL)? {
        Some(mut asked) => {
            let next = asked.next(args.query.as_deref(), Utc::now(), args.limit)?;
            (next, answering.exit_code_of(&asked))
        }
        None => (next(&answering.archives(), args)?, answering.exit_code()),
    };
    let headings = ["site", "importance", "gain", "advice", "because"];
    let mut listing = Listing::new(args.json, &headings, &[1, 2]);
    for row in &next.rows {
        listing.add(row, |row| {
            let reasons = row.reasons.iter().take(REASONS_MAX).map(|why| why.words.as_str());
            [
                row.site.clone(),
                format!("{:.2}", row.importance),
                format!("{:.2}", row.gain),
                row.advice.name().to_owned(),
                reasons.collect::<Vec<_>>().join("; "),
            ]
        })?;
    }
    listing.end()?;
    if !args.json {
        note!("{}", next.sentence(Language::English));
    }
    Ok(code)
}
