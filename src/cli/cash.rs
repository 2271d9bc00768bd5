//! How a crawl divides cash: options that become the archive's rules.

use std::path::Path;

use anyhow::Context as _;
use archive::access::Access;
use archive::ledger::{CashRules, Credits, Favour, SiteRule, Topic};
use archive::query::{Context, Plan, Value, Zone};
use archive_storage::{Store, UrlId};
use chrono::Utc;

use super::{UsageError, query};

/// The mistake of favouring sites.
const SITES_FAVOURED: &str = "--favour needs a query for pages that selects their url, not one for sites";

/// What is not said stays as the archive has it.
#[derive(clap::Args)]
#[command(next_help_heading = "Importance (kept with the archive)")]
pub(crate) struct CashArgs {
    /// How many links inside a host a link to another host is worth [default: 1]
    #[arg(long, value_name = "M")]
    inter_host: Option<f64>,
    /// What a link marked nofollow is worth, as a part of an ordinary one [default: 0.1]
    #[arg(long, value_name = "SHARE")]
    nofollow: Option<f64>,
    /// What a link in navigation, header, footer or aside is worth, as a part of an ordinary one [default: 1]
    #[arg(long, value_name = "SHARE")]
    template: Option<f64>,
    /// What pages receive that were not read yet and those that were: 1:0 for discovery, 1:1 for all alike [default: 0:1]
    #[arg(long, value_name = "DISCOVERY:REFRESH", value_parser = balance)]
    balance: Option<(u16, u16)>,
    /// Pay more for links to: xml, a word of URLs (news), or (a query); TOPIC*BONUS adds BONUS times the link's pay
    /// [default bonus: 2]; may be repeated
    #[arg(long, value_name = "TOPIC")]
    favour: Vec<Favour>,
    /// Favour nothing any more
    #[arg(long, conflicts_with = "favour")]
    no_favour: bool,
    /// What a site is: domain (registrable), host, or path:FOLDERS; can only be chosen when an archive begins
    #[arg(long, value_name = "KIND")]
    sites: Option<SiteRule>,
}

impl CashArgs {
    /// The pages that queries favour, in an archive that is there already, and the bonus.
    pub(crate) fn favoured(&self, archive: &Path) -> anyhow::Result<(Vec<String>, f64)> {
        let (mut urls, mut highest) = (Vec::new(), 0.0);
        for Favour { topic, bonus } in &self.favour {
            let Topic::Query(text) = topic else { continue };
            highest = f64::max(highest, *bonus);
            if !archive.join("state").is_dir() {
                check(text)?;
                continue;
            }
            let (answer, _) = query::ask(archive, Access::read(archive)?, text, None)?;
            let column = answer.headings.iter().position(|heading| heading.name == "url");
            let column = column.ok_or_else(|| UsageError(SITES_FAVOURED.to_owned()))?;
            urls.extend(answer.rows.iter().filter_map(|row| match row.get(column) {
                Some(Value::Text(url)) => Some(url.clone()),
                _ => None,
            }));
        }
        Ok((urls, highest))
    }

    /// Makes the options the archive's rules, if any was given.
    pub(crate) fn apply(&self, store: &mut Store, favoured: &(Vec<String>, f64)) -> anyhow::Result<()> {
        let mut credits = Credits::open(store.state())?;
        let rules = self.rules(credits.rules())?;
        if rules == *credits.rules() && favoured.0.is_empty() {
            return Ok(());
        }
        let ids: Vec<UrlId> = favoured
            .0
            .iter()
            .filter_map(|url| store.state().find(url).transpose())
            .collect::<Result<_, _>>()
            .context("looking up favoured pages")?;
        Ok(credits.set_rules(store.state_mut(), rules, &ids, favoured.1)?)
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

/// Checks a query before there is an archive to ask.
fn check(text: &str) -> Result<(), UsageError> {
    let context = Context { now: Utc::now(), zone: Zone::Local, page_columns: &[], site_columns: &[] };
    let plan = Plan::parse(text, &context)
        .map_err(|mistake| UsageError(format!("in the query of --favour, {mistake}")))?;
    if plan.asks_for_sites() {
        return Err(UsageError(SITES_FAVOURED.to_owned()));
    }
    Ok(())
}

/// Two parts like `1:3`, not both 0.
fn balance(text: &str) -> Result<(u16, u16), String> {
    let parts = text.split_once(':').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    parts.filter(|parts| *parts != (0, 0)).ok_or_else(|| format!("'{text}' is not like 1:3"))
}
