//! The options that determine how a crawl divides cash; they are stored as the archive's rules.

use std::path::Path;

use anyhow::Context as _;
use archive_ask::query::{self, Context, Plan, Zone};
use archive_ask::review::favoured_sites;
use archive_base::access::Access;
use archive_base::decisions::Decisions;
use archive_books::ledger::{CashRules, Credits, Favour, SiteRule, Topic};
use archive_storage::{Store, UrlId};
use chrono::Utc;

use super::UsageError;

/// The option named in error messages about a query.
const OPTION: &str = "--favour";

/// Options of importance; an omitted one keeps the value stored with the archive.
#[derive(clap::Args)]
#[command(next_help_heading = "Importance (stored with the archive)")]
pub(crate) struct CashArgs {
    /// Weight of a link to another host, relative to a link within a host [default: 1]
    #[arg(long, value_name = "M")]
    inter_host: Option<f64>,
    /// Weight of a nofollow link, as a share of an ordinary one [default: 0.1]
    #[arg(long, value_name = "SHARE")]
    nofollow: Option<f64>,
    /// Weight of a link in navigation, header, footer or aside, as a share of an ordinary one [default: 1]
    #[arg(long, value_name = "SHARE")]
    template: Option<f64>,
    /// Weights of payments to unread and to read pages: 1:0 for discovery only, 1:1 for equal weights [default: 0:1]
    #[arg(long, value_name = "DISCOVERY:REFRESH", value_parser = balance)]
    balance: Option<(u16, u16)>,
    /// Target whose links are paid more: xml, a word of URLs (news), (a query), rated (sites rated above 2.5 or marked
    /// keep or often by people), or likely (sites that people would choose according to `archive review learn`);
    /// TOPIC*BONUS adds BONUS times the link's pay [default bonus: 2]; may be repeated
    #[arg(long, value_name = "TOPIC")]
    favour: Vec<Favour>,
    /// Stop favouring any links
    #[arg(long, conflicts_with = "favour")]
    no_favour: bool,
    /// Definition of a site: domain (registrable), host, or path:FOLDERS; can only be chosen for a new archive
    #[arg(long, value_name = "KIND")]
    sites: Option<SiteRule>,
}

impl CashArgs {
    /// Stores the given options in the archive's rules. Decisions affect which sites are favoured only if they are
    /// obeyed.
    pub(crate) fn apply(&self, store: &mut Store, obey_decisions: bool) -> anyhow::Result<()> {
        let mut credits = Credits::open(store.state())?;
        let rules = self.rules(credits.rules())?;
        let (favoured, bonus) = self.favoured(store)?;
        let favours_sites = rules.favours_sites() || credits.rules().favours_sites();
        // Decisions may have changed since the last crawl.
        let decisions = if obey_decisions { Decisions::read(store.path())? } else { Decisions::default() };
        let sites = favoured_sites(store, &decisions, &rules)?;
        if rules != *credits.rules() || !favoured.is_empty() {
            credits.set_rules(store.state_mut(), rules, &favoured, bonus)?;
        }
        if favours_sites {
            credits.favour_sites(store.state_mut(), sites)?;
        }
        Ok(())
    }

    /// The pages favoured by queries, and the highest bonus.
    fn favoured(&self, store: &Store) -> anyhow::Result<(Vec<UrlId>, f64)> {
        let (mut pages, mut highest) = (Vec::new(), 0.0);
        for (text, bonus) in self.queries() {
            highest = f64::max(highest, bonus);
            // A new archive has no pages, and no text to search.
            if store.state().url_count() > 0 {
                pages.extend(query::select(store, Access::read(store.path())?, text).context(OPTION)?);
            }
        }
        Ok((pages, highest))
    }

    fn queries(&self) -> impl Iterator<Item = (&str, f64)> {
        self.favour.iter().filter_map(|favour| match &favour.topic {
            Topic::Query(text) => Some((text.as_str(), favour.bonus)),
            _ => None,
        })
    }

    /// Checks the queries of a new archive in advance: a mistake must not leave an archive behind.
    pub(crate) fn check(&self, archive: &Path) -> anyhow::Result<()> {
        if archive.join("state").is_dir() {
            return Ok(());
        }
        let context = Context {
            now: Utc::now(),
            zone: Zone::Local,
            page_columns: &[],
            site_columns: &[],
            topics: &[],
            of_several: false,
            elsewhere: false,
        };
        for (text, _) in self.queries() {
            let plan = Plan::parse(text, &context).map_err(query::Error::from).context(OPTION)?;
            plan.expect_pages().context(OPTION)?;
        }
        Ok(())
    }

    fn rules(&self, before: &CashRules) -> anyhow::Result<CashRules> {
        let mut rules = before.clone();
        let choose = |option: &str, given: Option<f64>, own: &mut f64, most: f64| {
            match given {
                Some(value) if (0.0..=most).contains(&value) => *own = value,
                Some(_) => return Err(UsageError(format!("{option} has to be a number from 0 to {most}"))),
                None => {}
            }
            Ok(())
        };
        choose("--inter-host", self.inter_host, &mut rules.weights.between_hosts, 1000.0)?;
        choose("--nofollow", self.nofollow, &mut rules.weights.nofollow, 1.0)?;
        choose("--template", self.template, &mut rules.weights.template, 1.0)?;
        if let Some((discovery, refresh)) = self.balance {
            (rules.discovery, rules.refresh) = (discovery, refresh);
        }
        if self.no_favour || !self.favour.is_empty() {
            rules.favours.clone_from(&self.favour);
        }
        rules.sites = self.sites.unwrap_or(rules.sites);
        Ok(rules)
    }
}

/// Parses two parts such as `1:3`, not both 0.
fn balance(text: &str) -> Result<(u16, u16), String> {
    let parts = text.split_once(':').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    parts
        .filter(|parts| *parts != (0, 0))
        .ok_or_else(|| format!("'{text}' is not a ratio; write it like 1:3"))
}
