//! `archive review next`: the sites that gain most by a look.

use std::collections::HashSet;

use archive::access::Access;
use archive::decisions::Decisions;
use archive::query::Question;
use archive::review;
use archive::texts::Language;
use archive_storage::{SiteId, Store};
use chrono::Utc;
use comfy_table::CellAlignment;

use super::super::options::{ArchiveArgs, ReaderArgs};
use super::super::{UsageError, output};

/// Reasons that a table lists.
const REASONS_MAX: usize = 2;

/// List the sites that need a look most, with what is unsure or wrong and what to do.
///
/// Sites are ordered by the importance of their pages times what is unsure or wrong with them: new, unrated, rated differently,
/// much changed, incomplete, shrunk, failing, gone, moved, behind a login, closed by robots.txt, parked, error pages with status
/// 200, and sites that pages link to but nobody asked for. A site with a decision comes back if something went wrong since.
///
/// Advice: archive (keep it, or begin to), investigate (find out more), reject (it does not belong here), delist (there is
/// nothing left to fetch).
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive review next
  archive review next --limit 100 --json
  archive review next --query 'site tags contains \"anna\"'    # what she was asked to look at")]
pub(crate) struct Args {
    /// Sites to list, at most
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Only sites that this finds, as for `archive query`
    #[arg(long)]
    query: Option<String>,
    #[command(flatten)]
    archive: ArchiveArgs,
    #[command(flatten)]
    reader: ReaderArgs,
    /// One JSON object a site
    #[arg(long)]
    json: bool,
}

/// The sites that a query finds.
fn among(store: &Store, access: Access, query: &str) -> anyhow::Result<HashSet<SiteId>> {
    let question = Question::new(store, access, query, Utc::now())?;
    if !question.plan.asks_for_sites() {
        return Err(
            UsageError("--query has to ask for sites: 'site tags contains \"maps\"'".to_owned()).into()
        );
    }
    let (sites, _) = question.plan.select_sites(&question.rows)?;
    Ok(sites.into_iter().map(|site| site.id).collect())
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let access = args.reader.access(&args.archive.path)?;
    let store = Store::read_only(&args.archive.path)?;
    let among = args.query.as_deref().map(|query| among(&store, access.clone(), query)).transpose()?;
    let decisions = Decisions::read(&args.archive.path)?;
    let next = review::next(&store, &access, &decisions, among.as_ref(), args.limit, Language::English)?;
    if args.json {
        return next.rows.iter().try_for_each(output::json_line);
    }
    let mut table = output::table(&["site", "importance", "gain", "advice", "because"]);
    output::align(&mut table, &[1, 2], CellAlignment::Right);
    for row in &next.rows {
        let reasons: Vec<&str> = row.reasons.iter().take(REASONS_MAX).map(|why| why.words.as_str()).collect();
        table.add_row([
            row.site.clone(),
            format!("{:.2}", row.importance),
            format!("{:.2}", row.gain),
            row.advice.name().to_owned(),
            reasons.join("; "),
        ]);
    }
    output::print(&table)?;
    output::note(format_args!("{}", next.sentence(Language::English)));
    Ok(())
}
