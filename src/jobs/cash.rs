//! The rules by which a crawl divides cash, as a run changes them.

use std::ops::RangeInclusive;
use std::path::Path;

use archive_ask::query::{self, Context, Plan, Question, Zone};
use archive_ask::review::favoured_sites;
use archive_base::access::Access;
use archive_base::decisions::Decisions;
use archive_books::ledger::{CashRules, CreditWindow, Credits, Favour, SiteRule, UrlTopic};
use archive_storage::{Store, UrlId};
use chrono::Utc;

use super::Failure;

/// The option named in error messages about a query.
const OPTION: &str = "--favour";

/// Highest weight of a link to another host.
const BETWEEN_HOSTS_MAX: f64 = 1000.0;

/// Least and highest damping: near 1, rounds over the links would no longer settle.
const DAMPING: RangeInclusive<f64> = 0.1..=0.99;

/// What a run changes of an archive's rules; `None` keeps what the archive has.
#[derive(Clone, Debug, Default)]
pub struct CashChange {
    /// Weight of a link to another host, relative to a link within a host.
    pub between_hosts: Option<f64>,
    /// Weight of a nofollow link, as a share of an ordinary one.
    pub nofollow: Option<f64>,
    /// Weight of a link in navigation, header, footer or aside, as a share of an ordinary one.
    pub template: Option<f64>,
    /// Weights of payments to unread and to read pages.
    pub balance: Option<(u16, u16)>,
    /// Probability of following a link.
    pub damping: Option<f64>,
    /// The past over which cash is counted.
    pub window: Option<CreditWindow>,
    /// Targets whose links are paid more.
    pub favours: Option<Vec<Favour>>,
    /// What a site is; only a new archive can choose.
    pub sites: Option<SiteRule>,
}

impl CashChange {
    /// Stores it in the archive's rules. Decisions affect which sites are favoured only if they are obeyed.
    pub(super) fn apply(&self, store: &mut Store, obey_decisions: bool) -> Result<(), Failure> {
        let mut credits = Credits::open(store.state())?;
        let rules = self.over(credits.rules())?;
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

    /// Checks the queries of a new archive in advance: a mistake must not leave an archive behind.
    pub(super) fn check(&self, archive: &Path) -> Result<(), Failure> {
        if archive.join("state").is_dir() {
            return Ok(());
        }
        for (text, _) in self.queries() {
            let plan = Plan::parse(text, &Context::bare(Utc::now(), Zone::Local)).map_err(query::Error::from);
            plan.and_then(|plan| plan.expect_pages()).map_err(of_option)?;
        }
        Ok(())
    }

    /// The pages favoured by queries, and the highest bonus.
    fn favoured(&self, store: &Store) -> Result<(Vec<UrlId>, f64), Failure> {
        let (mut pages, mut highest) = (Vec::new(), 0.0);
        for (text, bonus) in self.queries() {
            highest = f64::max(highest, bonus);
            // A new archive has no pages, and no text to search.
            if store.state().url_count() > 0 {
                let found = Question::pages_of(store, Access::read(store.path())?, text);
                pages.extend(found.map_err(of_option)?);
            }
        }
        Ok((pages, highest))
    }

    fn queries(&self) -> impl Iterator<Item = (&str, f64)> {
        self.favours.iter().flatten().filter_map(|favour| match &favour.topic {
            UrlTopic::Query(text) => Some((text.as_str(), favour.bonus)),
            _ => None,
        })
    }

    /// The rules before, as changed.
    fn over(&self, before: &CashRules) -> Result<CashRules, Failure> {
        let mut rules = before.clone();
        let weights = &mut rules.weights;
        for (option, given, own, most) in [
            ("--inter-host", self.between_hosts, &mut weights.between_hosts, BETWEEN_HOSTS_MAX),
            ("--nofollow", self.nofollow, &mut weights.nofollow, 1.0),
            ("--template", self.template, &mut weights.template, 1.0),
        ] {
            match given {
                Some(value) if (0.0..=most).contains(&value) => *own = value,
                Some(_) => {
                    let problem = format!("{option} has to be a number from 0 to {most}");
                    return Err(Failure::usage(problem));
                }
                None => {}
            }
        }
        if let Some((discovery, refresh)) = self.balance {
            (rules.discovery, rules.refresh) = (discovery, refresh);
        }
        if let Some(damping) = self.damping {
            if !DAMPING.contains(&damping) {
                let (least, most) = (DAMPING.start(), DAMPING.end());
                return Err(Failure::usage(format!("--damping has to be a number from {least} to {most}")));
            }
            rules.damping = damping;
        }
        rules.window = self.window.unwrap_or(rules.window);
        if let Some(favours) = &self.favours {
            rules.favours.clone_from(favours);
        }
        rules.sites = self.sites.unwrap_or(rules.sites);
        Ok(rules)
    }
}

fn of_option(error: query::Error) -> Failure {
    Failure::from(error).within(OPTION)
}
