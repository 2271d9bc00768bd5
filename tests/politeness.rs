//! No host and no address gets two requests within its delay, whatever happens: the web records every arrival.

use std::collections::BTreeMap;
use std::time::Duration;

use archive_testweb::{Arrival, Config, HostIndex};

use crate::crawl::lively;
use crate::support::program::start;
use crate::support::{Archive, TestWeb};

const HOST_DELAY: Duration = Duration::from_millis(250);
const ADDRESS_DELAY: Duration = Duration::from_millis(100);
/// Crawl delay in the robots.txt of some hosts.
const CRAWL_DELAY: Duration = Duration::from_secs(1);
/// `Retry-After` of the pages that recover.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A page that answers 503 with `Retry-After: 1` at first.
const RECOVERS: &str = "/recovers/1";

/// Number of requests after which the first run is killed, and again as many after which the second one is stopped.
const REQUESTS: u64 = 75;

/// Duration of the other runs.
const RUN: Duration = Duration::from_secs(4);

#[test]
fn no_host_and_no_address_is_asked_twice_within_its_delay() {
    let config = Config { crawl_delay_share: 0.3, crawl_delay_seconds: 1, ..lively(71, 9, 400) };
    let addresses = ["127.0.0.1:0", "127.0.0.2:0", "127.0.0.3:0"].map(|address| address.parse().unwrap());
    let served = TestWeb::start_on(config, &addresses);
    served.server.record_arrivals(true);
    let archive = Archive::new();
    let mut seeds = served.web.seeds(served.web.sites());
    seeds.push(format!("http://faults.test{RECOVERS} scope=host depth=0"));
    seeds.push("http://robots-redirect.faults.test/ scope=host depth=0".to_owned());

    let mut options = Vec::new();
    for (number, address) in served.server.addresses().iter().enumerate().rev() {
        let hosts = (0..served.web.hosts()).filter(|host| *host as usize % addresses.len() == number);
        for host in hosts.map(|host| served.web.host_name(HostIndex(host))) {
            options.extend(["--connect-to".to_owned(), format!("{host}::{address}")]);
        }
    }
    options.extend(served.connection());
    let text = |delay: Duration| format!("{}ms", delay.as_millis());
    options.extend([
        "--delay".to_owned(),
        text(HOST_DELAY),
        "--address-delay".to_owned(),
        text(ADDRESS_DELAY),
    ]);

    // One run is killed, one is stopped, one ends by its time limit, and one is a refresh.
    let crawl = || start(archive.crawl(&seeds, &options).args(["--scope", "site"]));
    let mut killed = crawl();
    assert!(killed.wait_until(|| served.server.requests() > REQUESTS));
    killed.kill();
    let mut stopped = crawl();
    assert!(stopped.wait_until(|| served.server.requests() > 2 * REQUESTS));
    stopped.signal("-TERM");
    assert_eq!(stopped.wait().code, Some(4));
    let time = text(RUN);
    start(archive.crawl(&seeds, &options).args(["--scope", "site", "--for", &time])).wait().succeeded();
    let refresh = ["--budget", "1000", "--for", &time, "--shortest", "0s"];
    start(archive.command("refresh").args(refresh).args(&options)).wait().succeeded();

    let arrivals = served.server.take_arrivals();
    let hosts = group(&arrivals, |arrival| arrival.host.clone());
    let addresses = group(&arrivals, |arrival| arrival.local.ip().to_string());
    println!("{} requests to {} hosts at {} addresses", arrivals.len(), hosts.len(), addresses.len());
    assert!(arrivals.len() > 150 && hosts.len() == served.web.hosts() as usize + 2 && addresses.len() == 3);
    for (address, arrivals) in &addresses {
        are_apart(address, arrivals, ADDRESS_DELAY);
    }
    let mut slow_hosts = 0;
    for (host, arrivals) in &hosts {
        let is_slow = served.web.host_named(host).is_some_and(|host| served.web.crawl_delay(host).is_some());
        slow_hosts += u32::from(is_slow);
        are_apart(host, arrivals, if is_slow { CRAWL_DELAY } else { HOST_DELAY });
    }
    assert!(slow_hosts > 0, "some hosts ask for a longer delay");
    let recovering: Vec<_> =
        hosts["faults.test"].iter().skip_while(|arrival| arrival.path != RECOVERS).collect();
    assert!(recovering.len() > 1, "the page that recovers was asked for again");
    let pause = recovering[1].time - recovering[0].time;
    assert!(pause >= RETRY_AFTER, "asked again after {pause:?} although it said {RETRY_AFTER:?}");
}

pub(crate) fn group(
    arrivals: &[Arrival],
    key: impl Fn(&Arrival) -> String,
) -> BTreeMap<String, Vec<Arrival>> {
    let mut groups: BTreeMap<String, Vec<Arrival>> = BTreeMap::new();
    for arrival in arrivals {
        groups.entry(key(arrival)).or_default().push(arrival.clone());
    }
    groups
}

pub(crate) fn are_apart(what: &str, arrivals: &[Arrival], delay: Duration) {
    for pair in arrivals.windows(2) {
        let [first, second] = pair else { continue };
        let apart = second.time - first.time;
        assert!(
            apart >= delay,
            "{what} was asked for {} and {apart:?} later for {}",
            first.path,
            second.path
        );
    }
}
