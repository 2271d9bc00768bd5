//! The options that determine how a crawl divides cash; they are stored as the archive's rules.

use super::Result;
use archive::jobs::CashChange;
use archive_books::ledger::{CreditWindow, Favour, SiteRule};

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
    /// Probability of following a link rather than jumping to any page, as in PageRank [default: 0.85]
    #[arg(long, value_name = "D")]
    damping: Option<f64>,
    /// The past that importance is computed from: all, or interpolated@N for the last N turns of all cash
    /// [default: interpolated@16]
    #[arg(long, value_name = "WINDOW")]
    window: Option<CreditWindow>,
    /// Target whose links are paid more: xml, a word of URLs (news), (a query), '(link text contains "annual report")'
    /// (judged while pages are crawled), rated (sites rated above 2.5 or marked
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
    pub(crate) fn change(&self) -> CashChange {
        let changes_favours = self.no_favour || !self.favour.is_empty();
        CashChange {
            between_hosts: self.inter_host,
            nofollow: self.nofollow,
            template: self.template,
            balance: self.balance,
            damping: self.damping,
            window: self.window,
            favours: changes_favours.then(|| self.favour.clone()),
            sites: self.sites,
        }
    }
}

/// Parses two parts such as `1:3`, not both 0.
fn balance(text: &str) -> Result<(u16, u16), String> {
    let parts = text.split_once(':').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    parts
        .filter(|parts| *parts != (0, 0))
        .ok_or_else(|| format!("'{text}' is not a ratio; write it like 1:3"))
}
