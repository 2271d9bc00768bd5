//! `archive access`: shows what the access rules hide.

use archive::jobs;
use archive_base::access::{Access, AccessRule, FILE, Role};
use archive_storage::Store;
use archive_storage::address::surt;
use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;

use super::options::ArchiveArgs;
use super::output::Listing;
use super::{Result, find_url, output};

/// Check and show the access rules, or list the captures of a URL that they hide.
///
/// The rules are in `access.toml` in the archive's folder. They decide what query, history, get, diff, why, review,
/// export, watches and `rank --top` show, and which pages plan, freshness and rank select by a query. A rule hides
/// captures permanently, until a date, or for a period after each was made. While the file contains a mistake, these
/// commands show nothing. Verify, repair, rebuild, crawls and refreshes see everything. The rules do not encrypt:
/// anyone who can read the archive's files can read all captures, and --as-archivist makes these commands show
/// everything.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive access
  archive access https://www.example.org/private/

The file access.toml:
  [[rule]]
  prefix = \"org,example)/private\"   # of the SURT, which has no www; without a ) it matches whole host labels: \"org,example\"
  from = 2020-01-01                 # only captures from this day (UTC) or time on
  to = 2021-12-31                   # only captures up to this day or time
  [[rule]]
  prefix = \"com,example,news\"
  until = 2030-01-01                # hidden until then
  [[rule]]
  prefix = \"\"                       # every URL
  for = \"90d\"                       # hides each capture for this long after it was made
  shown_to = \"reviewer\"             # but shown to reviewers and operators who log in to archive serve

Commands that select pages omit a page while its newest capture, the one that they show, is hidden.
Totals of hosts, sites and the whole archive count everything.")]
pub(crate) struct Args {
    /// URL whose hidden captures are listed
    url: Option<String>,
    #[command(flatten)]
    archive: ArchiveArgs,
    /// One JSON object per rule or capture
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct RuleRow {
    rule: usize,
    prefix: String,
    /// Whether the archive knows a URL to which it applies.
    matches: bool,
    from: Option<String>,
    before: Option<String>,
    until: Option<String>,
    for_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shown_to: Option<Role>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    jobs::check_exists(&args.archive.path)?;
    let access = Access::read(&args.archive.path)?;
    match &args.url {
        Some(url) => test(args, &access, url)?,
        None => show(args, &access)?,
    }
    Ok(())
}

fn show(args: &Args, access: &Access) -> Result<()> {
    if access.is_unlimited() {
        note!("no rules: {} hides nothing", args.archive.path.join(FILE).display());
    }
    let idle = match access.is_unlimited() {
        true => Vec::new(),
        false => access.idle_rules(Store::read_only(&args.archive.path)?.state())?,
    };
    let mut listing = Listing::new(args.json, &["rule", "prefix", "from", "before", "hidden"], &[]);
    for (number, rule) in access.rules().iter().enumerate() {
        let matches = !idle.contains(&number);
        listing.add(RuleRow { matches, ..RuleRow::of(number + 1, rule) }, |_| {
            let hidden = match (rule.span, rule.until) {
                (Some(span), _) => format!("{:.1} days after each capture", span.as_secs_f64() / 86_400.0),
                (None, Some(until)) => format!("until {}", output::local(until)),
                (None, None) => "for good".to_owned(),
            };
            let to = rule.shown_to.map_or_else(String::new, |role| format!(", shown to {}s", role.name()));
            let but = if matches { "" } else { ", but no URL of the archive has this prefix" };
            let prefix = if rule.prefix.is_empty() { "every URL" } else { &rule.prefix };
            [
                (number + 1).to_string(),
                prefix.to_owned(),
                output::local_or_none(rule.from),
                output::local_or_none(rule.before),
                hidden + &to + but,
            ]
        })?;
    }
    if access.is_unlimited() { Ok(()) } else { listing.end() }
}

/// Lists for each capture of a URL whether it is shown.
fn test(args: &Args, access: &Access, url: &str) -> Result<()> {
    let store = Store::read_only(&args.archive.path)?;
    let state = store.state();
    let id = find_url(&store, url)?;
    let url = state.url(id)?;
    let key = surt(&url);
    let mut listing = Listing::new(args.json, &["captured", "shown", "why"], &[]);
    for capture in state.history(id)? {
        let (_, capture) = capture?;
        let Some(time) = DateTime::from_timestamp_micros(capture.time) else { continue };
        let (shown, rule) = (access.shows(state, &capture)?, access.hiding(&url, capture.time));
        let rule = rule.map(|rule| rule + 1);
        listing.add(
            object! {
                time: output::utc_micros(time),
                surt: &key,
                shown,
                /// The rule that hides the capture itself, counted from 1.
                rule,
            },
            |_| {
                let why = match rule {
                    Some(rule) => format!("rule {rule} hides it"),
                    None if shown => "no rule hides it".to_owned(),
                    None => "the capture that has its content is hidden".to_owned(),
                };
                [output::local(time), if shown { "yes" } else { "no" }.to_owned(), why]
            },
        )?;
    }
    if !args.json {
        say!("{url} has the SURT {key}")?;
        output::line("")?;
    }
    listing.end()
}

impl RuleRow {
    fn of(number: usize, rule: &AccessRule) -> Self {
        let data = |time: Option<DateTime<Utc>>| Some(time?.to_rfc3339_opts(SecondsFormat::AutoSi, true));
        Self {
            rule: number,
            prefix: rule.prefix.clone(),
            matches: true,
            from: data(rule.from),
            before: data(rule.before),
            until: data(rule.until),
            for_seconds: rule.span.map(|span| span.as_secs()),
            shown_to: rule.shown_to,
        }
    }
}
