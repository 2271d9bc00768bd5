//! `archive review suggest`: lists what the automatic librarian would choose.

use archive_ask::review::Librarian;
use archive_base::decisions::Decisions;
use archive_books::columns::{self, LIKELY, RowKind};
use archive_books::ledger::Credits;
use archive_storage::Store;
use chrono::Utc;

use super::super::options::ArchiveArgs;
use super::super::output::{self, Listing};
use crate::cli::{Result, usage};

/// Maximum number of reasons listed.
const REASONS_MAX: usize = 3;

/// Suggest sites that people would probably choose, learned from those that they chose.
///
/// Chosen sites are those with a mean rating of 3 or more, or with the verdict keep or often; all others count as not
/// chosen. The model uses links from and to chosen sites, importance, domain endings and names, and, of archived pages,
/// titles, language, types, sizes and changes. Sites that the archive knows only by links are suggested, too.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive review suggest
  archive review suggest --limit 100 --json")]
pub(crate) struct Args {
    /// Maximum number of sites to suggest
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Share of the sites that people would choose that they have chosen already; scales the probabilities
    #[arg(long, value_name = "SHARE", default_value_t = 0.5)]
    share: f64,
    #[command(flatten)]
    archive: ArchiveArgs,
    /// One JSON object per site
    #[arg(long)]
    json: bool,
}

/// Store the probability that people would choose each site, as the field `likely` of queries.
///
/// Sites with a decision have none. The stored values stay until they are learned again; `archive review suggest`
/// always learns again.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive review learn
  archive query 'site likely > 0.5 order by likely desc'
  archive crawl --seeds list.txt --favour likely")]
pub(crate) struct LearnArgs {
    /// Share of the sites that people would choose that they have chosen already; scales the probabilities
    #[arg(long, value_name = "SHARE", default_value_t = 0.5)]
    share: f64,
    #[command(flatten)]
    archive: ArchiveArgs,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn learn(args: &LearnArgs) -> Result<()> {
    check(args.share)?;
    let store = Store::read_only(&args.archive.path)?;
    let librarian = Librarian::learn(&store, &Decisions::read(&args.archive.path)?)?;
    let sites = librarian.keep(&store, args.share)?;
    let time = output::utc(Utc::now());
    let kept = object! { chosen: librarian.chosen.len(), sites, time };
    output::summary(args.json, &kept, || {
        format!(
            "learned from {} that people chose; `likely` is known of {} that nobody has decided on",
            output::count(kept.chosen as u64, "site"),
            output::count(kept.sites as u64, "site")
        )
    })
}

fn check(share: f64) -> Result<()> {
    let is_share = share > 0.0 && share < 1.0;
    if is_share { Ok(()) } else { Err(usage("--share has to be between 0 and 1")) }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    check(args.share)?;
    let store = Store::read_only(&args.archive.path)?;
    let state = store.state();
    let librarian = Librarian::learn(&store, &Decisions::read(&args.archive.path)?)?;
    let Librarian { hosts, learned, sites, .. } = &librarian;
    let credits = Credits::open(state)?;
    let headings = ["site", "likely", "importance", "pages", "because"];
    let mut listing = Listing::new(args.json, &headings, &[1, 2, 3]);
    for host in librarian.undecided().into_iter().take(args.limit) {
        let name = &hosts.names()[host];
        let site =
            sites.get(&host).and_then(|sites| sites.first()).map(|site| state.site(*site)).transpose()?;
        let suggestion = object! {
            site: name.clone(),
            probability: learned.probability(host, args.share),
            importance: site.map_or(0.0, |site| credits.site_importance(&site)),
            captured_pages: site.map_or(0, |site| site.fetched),
            reasons: learned.reasons_in_words(hosts, host, REASONS_MAX),
        };
        listing.add(suggestion, |suggestion| {
            [
                suggestion.site,
                format!("{:.1} %", 100.0 * suggestion.probability),
                format!("{:.2}", suggestion.importance),
                suggestion.captured_pages.to_string(),
                suggestion.reasons.join("; "),
            ]
        })?;
    }
    listing.end()?;
    if args.json {
        return Ok(());
    }
    if let Some(time) = columns::computed(&args.archive.path, RowKind::Site, LIKELY) {
        note!("`likely` in queries is of {}; `archive review learn` computes it again", output::minute(time));
    }
    Ok(())
}
