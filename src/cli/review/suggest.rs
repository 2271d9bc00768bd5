//! `archive review suggest`: what the automatic librarian would choose.

use std::collections::{HashMap, HashSet};

use archive::decisions::{Decisions, Standing, Subject, Verdict};
use archive::graphs::SiteGraph;
use archive::ledger::Credits;
use archive::review::learned::{Hosts, Learned, without_www};
use archive_storage::Store;
use comfy_table::CellAlignment;
use serde::Serialize;

use super::super::options::ArchiveArgs;
use super::super::output;

/// From this mean rating on a site is one that people chose.
const CHOSEN_FROM: f64 = 3.0;

/// Reasons that are told.
const REASONS_MAX: usize = 3;

/// Learn from the sites that people chose, and suggest others by how likely they would be chosen.
///
/// Chosen are sites with a mean rating of 3 or more, or with the verdict keep or often. The model looks at links from and to
/// them, importance, domain endings and names; all other sites count as not chosen. Sites that the archive only knows by
/// links are suggested too.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive review suggest
  archive review suggest --limit 100 --json")]
pub(crate) struct Args {
    /// Sites to suggest, at most
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Share of what people would choose that is chosen already: by it probabilities are scaled
    #[arg(long, value_name = "SHARE", default_value_t = 0.5)]
    share: f64,
    #[command(flatten)]
    archive: ArchiveArgs,
    /// One JSON object a site
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Suggestion {
    site: String,
    probability: f64,
    importance: f64,
    captured_pages: u32,
    reasons: Vec<String>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if !(args.share > 0.0 && args.share < 1.0) {
        return Err(super::UsageError("--share has to be between 0 and 1".to_owned()).into());
    }
    let store = Store::read_only(&args.archive.path)?;
    let state = store.state();
    let decisions = Decisions::read(&args.archive.path)?;
    let (mut names, mut sites) = (Vec::new(), HashMap::new());
    for site in state.sites() {
        let (_, name, site) = site?;
        sites.entry(without_www(&name)).or_insert(site);
        names.push(name);
    }
    let (mut chosen, mut decided) = (HashSet::new(), HashSet::new());
    for (subject, standing) in decisions.subjects() {
        if let Subject::Site(name) = subject {
            decided.insert(without_www(name));
            if is_chosen(standing) {
                chosen.insert(without_www(name));
            }
        }
    }
    let hosts = Hosts::new(&names, &SiteGraph::read(state)?.graph)?;
    let learned = Learned::fit(&hosts, &chosen)?;
    let mut order: Vec<usize> =
        (0..hosts.names().len()).filter(|&host| !decided.contains(&hosts.names()[host])).collect();
    order.sort_by(|&a, &b| learned.log_odds(b).total_cmp(&learned.log_odds(a)));
    order.truncate(args.limit);
    let credits = Credits::open(state)?;
    let mut table = output::table(&["site", "likely", "importance", "pages", "because"]);
    output::align(&mut table, &[1, 2, 3], CellAlignment::Right);
    for host in order {
        let name = &hosts.names()[host];
        let site = sites.get(name);
        let suggestion = Suggestion {
            site: name.clone(),
            probability: learned.probability(host, args.share),
            importance: site.map_or(0.0, |site| credits.site_importance(site)),
            captured_pages: site.map_or(0, |site| site.fetched),
            reasons: learned.reasons_in_words(&hosts, host, REASONS_MAX),
        };
        if args.json {
            output::json_line(&suggestion)?;
            continue;
        }
        table.add_row([
            suggestion.site,
            format!("{:.1} %", 100.0 * suggestion.probability),
            format!("{:.2}", suggestion.importance),
            suggestion.captured_pages.to_string(),
            suggestion.reasons.join("; "),
        ]);
    }
    if args.json { Ok(()) } else { output::print(&table) }
}

fn is_chosen(standing: &Standing) -> bool {
    let is_kept = matches!(standing.verdict, Some((Verdict::Keep | Verdict::Often, ..)));
    is_kept || standing.rating().is_some_and(|rating| rating >= CHOSEN_FROM)
}
