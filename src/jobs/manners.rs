//! How servers are treated: what a run is told now completes what the archive was told before, and becomes settings.

use std::path::Path;
use std::time::Duration;

use archive_choose::{Budgets, CrawlPolicy};
use archive_crawl::{CrawlOptions, Manners, Politeness, WORKERS_MAX};
use archive_storage::Store;
use archive_web::fetch::{self, AcceptedCertificate, ResponseLimits};

use super::{Failure, Hear, JobEvent};

/// The delay of an address is shorter than a host's by this factor: it may serve many hosts.
const ADDRESS_DELAY_DIVISOR: u32 = 4;

/// Maximum number of connections to one host when there is no delay.
const PER_HOST_WITHOUT_DELAY: u32 = 32;

/// Maximum of [`Manners::delay_factor`].
const DELAY_FACTOR_MAX: f64 = 1000.0;

/// Options that widen the reach of the program, or say how this machine reaches others: not taken from an archive.
const REACH: [&str; 8] = [
    "--allow-private",
    "--cacert",
    "--accept-certificate",
    "--accept-invalid-certificates",
    "--connect-to",
    "--proxy",
    "--bind",
    "--ipv4 or --ipv6",
];

/// Completes `said` by what the archive in a folder was told before, and sets the options of a run accordingly. Returns
/// the options that earlier runs had and this one has not, of those that are not taken over.
///
/// # Errors
/// If what was said is out of range or does not go together.
pub(super) fn settle(
    archive: &Path,
    mut said: Manners,
    options: &mut CrawlOptions,
    hear: &mut Hear<'_>,
) -> Result<Vec<&'static str>, Failure> {
    // What is wrong with an archive, opening it for writing will say.
    let store = Store::read_only(archive).ok();
    let kept = store.map_or(Ok(Manners::default()), |store| Manners::of(store.state()))?;
    let fetch = &options.fetch;
    let reach = [
        fetch.allow_private,
        !fetch.authorities.is_empty(),
        fetch.accepted.iter().any(|accepted| *accepted != AcceptedCertificate::any()),
        fetch.accepted.contains(&AcceptedCertificate::any()),
        !fetch.connect_to.is_empty(),
        !fetch.ways.proxies.is_empty(),
        !fetch.ways.own.is_empty(),
        fetch.ways.version.is_some(),
    ];
    let given = |name: &&str| REACH.iter().zip(reach).any(|(option, given)| option == name && given);
    let lacking = REACH.into_iter().filter(|name| kept.reach.iter().any(|kept| kept == name) && !given(name));
    let lacking: Vec<&str> = lacking.collect();
    if !lacking.is_empty() {
        hear(JobEvent::Notice(format!(
            "earlier runs of {} had {}, which this run does not take from a folder that others may have \
             written; if it still holds, give it again",
            archive.display(),
            lacking.join(" ")
        )));
    }
    said.reach = REACH.into_iter().filter(given).map(str::to_owned).collect();
    apply(said.over(kept), options)?;
    Ok(lacking)
}

/// Validates what an archive was told, and sets the options of a run accordingly.
fn apply(told: Manners, options: &mut CrawlOptions) -> Result<(), Failure> {
    let usual = CrawlOptions::default();
    let delay = told.delay.unwrap_or(usual.politeness.host_delay);
    let per_host = told.per_host.unwrap_or(if delay.is_zero() { PER_HOST_WITHOUT_DELAY } else { 1 });
    let answer_factor = told.delay_factor.unwrap_or(usual.politeness.answer_factor);
    let user_agent = told.user_agent.clone().unwrap_or(usual.fetch.user_agent);
    check(options.workers, delay, per_host, answer_factor, &user_agent)?;
    let workers = u32::try_from(options.workers).unwrap_or(u32::MAX);
    let address_delay = told.address_delay.unwrap_or(delay / ADDRESS_DELAY_DIVISOR);
    options.politeness = Politeness {
        host_delay: delay,
        address_delay,
        answer_factor,
        per_host,
        per_address: if address_delay.is_zero() { workers } else { 1 },
    };
    options.cookies = told.cookies.unwrap_or_default();
    let most = |pages: Option<u32>| pages.filter(|pages| *pages > 0);
    options.policy = CrawlPolicy {
        robots_name: robots_name(&user_agent),
        obey_noarchive: told.obey_noarchive.unwrap_or_default(),
        obey_nofollow: told.obey_nofollow.unwrap_or_default(),
        budgets: Budgets {
            pages_per_host: most(told.pages_per_host),
            pages_per_site: most(told.pages_per_site),
            bytes_per_host: told.bytes_per_host.filter(|bytes| *bytes > 0),
            bytes_per_site: told.bytes_per_site.filter(|bytes| *bytes > 0),
        },
        query_variations: told.query_variations.unwrap_or(usual.policy.query_variations),
        same_content: told.same_content.unwrap_or(usual.policy.same_content),
        dropped_parameters: told.drop_parameters.clone().unwrap_or_default(),
        leave_moved_seeds: told.leave_moved_seeds.unwrap_or_default(),
        order: options.policy.order,
        focus: options.policy.focus.take(),
        ..CrawlPolicy::default()
    };
    let limits = ResponseLimits::default();
    let timeout = told.timeout.unwrap_or(limits.head);
    let limits = ResponseLimits {
        connect: timeout.min(limits.connect),
        head: timeout,
        idle: timeout,
        total: told.max_time.unwrap_or(limits.total),
        body_bytes: told.max_body.map_or(limits.body_bytes, |mebibytes| mebibytes.saturating_mul(1 << 20)),
        of_types: told.max_body_of.clone().unwrap_or_default(),
        ..limits
    };
    let compression = told.compression.unwrap_or_default();
    options.fetch = fetch::FetchSettings { user_agent, limits, compression, ..options.fetch.clone() };
    options.manners = Some(told);
    Ok(())
}

fn check(
    workers: usize,
    delay: Duration,
    per_host: u32,
    answer_factor: f64,
    user_agent: &str,
) -> Result<(), Failure> {
    let problem = if per_host == 0 {
        "--per-host has to be at least 1".to_owned()
    } else if !(1..=WORKERS_MAX).contains(&workers) {
        format!("--workers has to be from 1 to {WORKERS_MAX}")
    } else if per_host > 1 && !delay.is_zero() {
        "--per-host above 1 needs --delay 0: with a delay a host gets one request at a time".to_owned()
    } else if user_agent.bytes().any(|byte| !(b' '..=b'~').contains(&byte)) {
        "--user-agent may only have printable ASCII characters".to_owned()
    } else if !(0.0..=DELAY_FACTOR_MAX).contains(&answer_factor) {
        format!("--delay-factor has to be from 0 to {DELAY_FACTOR_MAX}")
    } else {
        return Ok(());
    };
    Err(Failure::usage(problem))
}

/// Returns the product token of a user agent, which robots.txt refers to (RFC 9309 section 2.2.1).
fn robots_name(user_agent: &str) -> String {
    let compatible = user_agent.split_once("(compatible;").map(|(_, rest)| rest.trim_start());
    let product = compatible.unwrap_or(user_agent);
    product.chars().take_while(|c| c.is_ascii_alphabetic() || matches!(c, '-' | '_')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_said_is_what_a_run_does_by_itself() {
        let mut options = CrawlOptions::default();
        settle(Path::new("/nonexistent.archive"), Manners::default(), &mut options, &mut |_| {}).unwrap();
        let usual = CrawlOptions { manners: Some(Manners::default()), ..CrawlOptions::default() };
        assert_eq!(format!("{options:?}"), format!("{usual:?}"));
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        let settled = |said: Manners, workers: usize| {
            let mut options = CrawlOptions { workers, ..CrawlOptions::default() };
            settle(Path::new("/nonexistent.archive"), said, &mut options, &mut |_| {}).is_ok()
        };
        assert!(settled(Manners::default(), 1) && settled(Manners::default(), WORKERS_MAX));
        assert!(!settled(Manners::default(), 0) && !settled(Manners::default(), WORKERS_MAX + 1));
        let per_host = |delay: u64, per_host: u32| Manners {
            delay: Some(Duration::from_secs(delay)),
            per_host: Some(per_host),
            ..Manners::default()
        };
        assert!(settled(per_host(0, 2), 8) && settled(per_host(1, 1), 8));
        assert!(!settled(per_host(1, 2), 8) && !settled(per_host(0, 0), 8));
        let factor = |delay_factor: f64| Manners { delay_factor: Some(delay_factor), ..Manners::default() };
        assert!(settled(factor(DELAY_FACTOR_MAX), 8) && !settled(factor(DELAY_FACTOR_MAX + 1.0), 8));
    }
}
