//! The frontier under a simulated clock.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use archive_books::ledger::{LEVEL_REQUISITE, Refusal};
use archive_storage::{HostId, SiteId, UrlId};
use archive_web::fetch::Place;

use super::{Frontier, Pick, Politeness};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn polite(host: u64, address: u64) -> Politeness {
    Politeness {
        host_delay: Duration::from_secs(host),
        address_delay: Duration::from_secs(address),
        answer_factor: 1.0,
        per_host: 1,
        per_address: 1,
    }
}

fn address(last: u8) -> Place {
    Place::Address(IpAddr::from([10, 0, 0, last]))
}

/// Resolves a host and sets its robots rules, so that its pages come next.
fn open(frontier: &mut Frontier, host: HostId, at: Place, now: Instant) {
    assert!(frontier.resolved(host, Some(at), now).is_empty());
    frontier.robots_known(host, now, DAY);
}

#[test]
fn a_host_is_resolved_then_its_robots_read_then_its_pages_by_level() {
    let now = Instant::now();
    let mut frontier = Frontier::new(polite(0, 0));
    let host = HostId(0);
    frontier.push(UrlId(1), host, 3, now).unwrap();
    frontier.push(UrlId(2), host, 9, now).unwrap();
    frontier.push(UrlId(3), host, LEVEL_REQUISITE, now).unwrap();
    assert_eq!(frontier.next(now), Some(Pick::Resolve(host)));
    assert_eq!(frontier.next(now), None);
    frontier.resolved(host, Some(address(1)), now);
    assert_eq!(frontier.next(now), Some(Pick::Robots(host, address(1))));
    assert_eq!(frontier.next(now), None);
    frontier.completed(host, now, Duration::ZERO, None);
    frontier.robots_known(host, now, DAY);
    for expected in [3, 2, 1] {
        assert_eq!(frontier.next(now), Some(Pick::Page(host, UrlId(expected), address(1))));
        frontier.completed(host, now, Duration::ZERO, None);
    }
    assert_eq!((frontier.next(now), frontier.queued(), frontier.active()), (None, 0, 0));
}

#[test]
fn a_page_that_falls_is_fetched_once_and_late() {
    let now = Instant::now();
    let mut frontier = Frontier::new(polite(0, 0));
    for (url, level) in [(0, 9), (1, 7), (2, 8), (3, LEVEL_REQUISITE)] {
        frontier.push(UrlId(url), HostId(0), level, now).unwrap();
    }
    assert!(frontier.reorder(UrlId(0), HostId(0), 2, now) && frontier.reorder(UrlId(1), HostId(0), 9, now));
    // Requisites keep their level, and what does not wait is not queued.
    assert!(!frontier.reorder(UrlId(3), HostId(0), 1, now) && !frontier.reorder(UrlId(4), HostId(0), 9, now));
    assert_eq!(frontier.queued(), 4);
    assert_eq!(frontier.next(now), Some(Pick::Resolve(HostId(0))));
    open(&mut frontier, HostId(0), address(1), now);
    for expected in [3, 1, 2, 0] {
        assert_eq!(frontier.next(now), Some(Pick::Page(HostId(0), UrlId(expected), address(1))));
        assert!(!frontier.reorder(UrlId(expected), HostId(0), 5, now));
        frontier.completed(HostId(0), now, Duration::ZERO, None);
    }
    assert_eq!((frontier.next(now), frontier.queued()), (None, 0));
}

#[test]
fn a_page_that_rises_is_fetched_once_and_early() {
    let now = Instant::now();
    let mut frontier = Frontier::new(polite(0, 0));
    for url in 0..4 {
        frontier.push(UrlId(url), HostId(0), 5, now).unwrap();
    }
    frontier.push(UrlId(3), HostId(0), 8, now).unwrap();
    frontier.push(UrlId(3), HostId(0), 2, now).unwrap();
    assert_eq!((frontier.queued(), frontier.next(now)), (4, Some(Pick::Resolve(HostId(0)))));
    open(&mut frontier, HostId(0), address(1), now);
    let mut seen = Vec::new();
    while let Some(Pick::Page(host, url, _)) = frontier.next(now) {
        seen.push(url.0);
        frontier.push(url, host, 200, now).unwrap();
        frontier.completed(host, now, Duration::ZERO, None);
    }
    assert_eq!(seen, [3, 0, 1, 2]);
    frontier.push_again(UrlId(1), HostId(0), 1, now).unwrap();
    assert_eq!(frontier.next(now), Some(Pick::Page(HostId(0), UrlId(1), address(1))));
}

#[test]
fn the_best_host_goes_first() {
    let now = Instant::now();
    let mut frontier = Frontier::new(polite(0, 0));
    for (host, level) in [(0, 4), (1, 7), (2, 5)] {
        frontier.push(UrlId(host), HostId(host), level, now).unwrap();
    }
    let resolutions: Vec<_> = (0..3).map(|_| frontier.next(now)).collect();
    assert_eq!(resolutions, [1, 2, 0].map(|host| Some(Pick::Resolve(HostId(host)))));
    for host in 0..3 {
        open(&mut frontier, HostId(host), address(host as u8), now);
    }
    let order = (0..3).map(|_| frontier.next(now)).collect::<Vec<_>>();
    assert_eq!(order, [1, 2, 0].map(|n| Some(Pick::Page(HostId(n), UrlId(n), address(n as u8)))));
}

/// Simulates a crawl of `hosts` hosts on `addresses` addresses and checks every delay.
fn check_pauses(politeness: Politeness, hosts: u32, addresses: u8, answer: Duration) {
    let start = Instant::now();
    let (host_delay, address_delay) = (politeness.host_delay, politeness.address_delay);
    let mut frontier = Frontier::new(politeness);
    for url in 0..hosts * 3 {
        frontier.push(UrlId(url), HostId(url % hosts), (url % 7) as u8 + 1, start).unwrap();
    }
    let mut now = start;
    let mut last_host = vec![None; hosts as usize];
    let mut last_address = vec![None; usize::from(addresses)];
    let mut under_way: Vec<(Instant, HostId)> = Vec::new();
    let mut pages = 0;
    loop {
        while let Some(pick) = frontier.next(now) {
            let (host, at) = match pick {
                Pick::Resolve(host) => {
                    if !frontier.may_resolve(host, SiteId(host.0 % 2)) {
                        continue;
                    }
                    // Host names move between addresses.
                    let hours = ((now - start).as_secs() / 3600) as u32;
                    let at = address(((host.0 + hours) % u32::from(addresses)) as u8);
                    frontier.resolved(host, Some(at), now);
                    continue;
                }
                Pick::Robots(host, at) | Pick::Page(host, _, at) => (host, at),
            };
            pages += u32::from(matches!(pick, Pick::Page(..)));
            let Place::Address(ip) = at else { unreachable!() };
            let place = usize::from(ip.to_string().rsplit('.').next().unwrap().parse::<u8>().unwrap());
            let fits = |last: Option<Instant>, delay| last.is_none_or(|l| now >= l + delay);
            assert!(fits(last_host[host.index()], host_delay) && fits(last_address[place], address_delay));
            last_host[host.index()] = Some(now);
            last_address[place] = Some(now);
            under_way.push((now + answer, host));
        }
        under_way.sort_by_key(|(time, host)| (std::cmp::Reverse(*time), host.0));
        match (under_way.pop(), frontier.next_wake()) {
            (Some((time, host)), wake) if wake.is_none_or(|w| time <= w) => {
                now = now.max(time);
                frontier.completed(host, now, answer, None);
                frontier.robots_known(host, now, DAY);
            }
            (kept, Some(wake)) => {
                under_way.extend(kept);
                now = now.max(wake);
            }
            (_, None) => break,
        }
    }
    assert_eq!((pages, frontier.queued()), (hosts * 3, 0));
}

#[test]
fn no_host_and_no_address_is_asked_within_its_delay() {
    check_pauses(polite(2, 0), 5, 5, Duration::from_millis(300));
    check_pauses(polite(2, 1), 20, 3, Duration::from_millis(10));
    check_pauses(polite(1, 5), 10, 2, Duration::from_secs(3));
    check_pauses(Politeness { per_address: 4, ..polite(3, 0) }, 30, 2, Duration::from_secs(1));
    check_pauses(polite(1500, 700), 9, 3, Duration::from_secs(900));
    check_pauses(polite(2, 1), 300, 7, Duration::from_millis(300));
}

#[test]
fn a_site_with_a_host_for_every_page_is_resolved_as_it_is_asked() {
    const FARM: u32 = 10_000;
    const OTHERS: u32 = 2_000;
    const SECONDS: u64 = 30;
    let start = Instant::now();
    let mut frontier = Frontier::new(polite(2, 1));
    for host in 0..FARM + OTHERS {
        // The farm gives itself more importance than all others.
        frontier.push(UrlId(host), HostId(host), if host < FARM { 9 } else { 5 }, start).unwrap();
    }
    let (mut resolved, mut asked, mut others) = (0, 0, 0);
    let mut now = start;
    while now - start < Duration::from_secs(SECONDS) {
        while let Some(pick) = frontier.next(now) {
            match pick {
                Pick::Resolve(host) if host.0 < FARM => {
                    if frontier.may_resolve(host, SiteId(0)) {
                        frontier.resolved(host, Some(address(1)), now);
                        resolved += 1;
                    }
                }
                Pick::Resolve(host) => {
                    assert!(frontier.may_resolve(host, SiteId(host.0)));
                    let at = Place::Address(IpAddr::from(host.0.to_be_bytes()));
                    frontier.resolved(host, Some(at), now);
                }
                Pick::Robots(host, at) => {
                    // Half of the files are already in the archive, so nothing is requested for them.
                    if host.0 % 2 == 0 {
                        frontier.cancelled(host, now);
                    } else {
                        asked += u64::from(at == address(1));
                        frontier.completed(host, now, Duration::ZERO, None);
                    }
                    frontier.robots_known(host, now, DAY);
                }
                Pick::Page(host, _, at) => {
                    asked += u64::from(at == address(1));
                    others += u32::from(host.0 >= FARM);
                    frontier.completed(host, now, Duration::ZERO, None);
                }
            }
        }
        now = frontier.next_wake().unwrap();
    }
    assert_eq!((asked, others), (SECONDS, OTHERS));
    assert!((1..=SECONDS + 16).contains(&resolved), "{resolved} hosts of the farm were resolved");
}

#[test]
fn hosts_that_would_not_be_next_are_not_resolved() {
    let now = Instant::now();
    let mut frontier =
        Frontier::new(Politeness { per_host: u32::MAX, per_address: u32::MAX, ..polite(0, 0) });
    frontier.push(UrlId(0), HostId(0), 9, now).unwrap();
    assert_eq!(frontier.next(now), Some(Pick::Resolve(HostId(0))));
    open(&mut frontier, HostId(0), address(0), now);
    for url in 1..2_000 {
        let (host, level) = if url < 1_000 { (0, 9) } else { (url, 3) };
        frontier.push(UrlId(url), HostId(host), level, now).unwrap();
    }
    frontier.push(UrlId(2_000), HostId(2_000), 12, now).unwrap();
    let resolve = |frontier: &mut Frontier| {
        let mut hosts = Vec::new();
        loop {
            match frontier.next(now) {
                Some(Pick::Resolve(host)) => {
                    frontier.resolved(host, Some(address(host.0 as u8)), now);
                    hosts.push(host);
                }
                _ => return hosts,
            }
        }
    };
    // The stock, including the first host, and then one more for each host that gets its first request.
    let first = resolve(&mut frontier);
    assert_eq!((first[0], first.len()), (HostId(2_000), 63));
    let later: Vec<_> = (0..900).flat_map(|_| resolve(&mut frontier)).collect();
    assert_eq!(later.len(), 2);
}

#[test]
fn a_delay_that_robots_asks_for_counts_from_the_request_for_robots() {
    let start = Instant::now();
    let at = |milliseconds| start + Duration::from_millis(milliseconds);
    let mut frontier = Frontier::new(polite(1, 0));
    let host = HostId(0);
    frontier.push(UrlId(1), host, 3, start).unwrap();
    frontier.next(start);
    frontier.resolved(host, Some(address(1)), start);
    assert_eq!(frontier.next(start), Some(Pick::Robots(host, address(1))));
    frontier.completed(host, at(100), Duration::ZERO, None);
    frontier.set_delay(host, Some(Duration::from_secs(3)));
    frontier.robots_known(host, at(100), DAY);
    assert_eq!(frontier.next(at(3099)), None);
    assert_eq!(frontier.next(at(3100)), Some(Pick::Page(host, UrlId(1), address(1))));
}

#[test]
fn a_continued_run_lets_servers_rest_first() {
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    let mut frontier = Frontier::new(polite(4, 2));
    frontier.resume(start);
    for number in 0..2 {
        frontier.push(UrlId(number), HostId(number), 3, start).unwrap();
        frontier.next(start);
        frontier.resolved(HostId(number), Some(address(1)), start);
    }
    // The rules of one host are in the archive, with a delay of its own.
    frontier.set_delay(HostId(0), Some(Duration::from_secs(9)));
    frontier.robots_known(HostId(0), start, DAY);
    assert_eq!(frontier.next(at(3)), None);
    assert_eq!(frontier.next(at(4)), Some(Pick::Robots(HostId(1), address(1))));
    frontier.completed(HostId(1), at(4), Duration::ZERO, None);
    assert_eq!(frontier.next(at(8)), None);
    assert_eq!(frontier.next(at(9)), Some(Pick::Page(HostId(0), UrlId(0), address(1))));
}

#[test]
fn a_host_without_an_address_gives_its_urls_back() {
    let now = Instant::now();
    let mut frontier = Frontier::new(polite(0, 0));
    frontier.push(UrlId(7), HostId(0), 3, now).unwrap();
    frontier.push(UrlId(7), HostId(0), 4, now).unwrap();
    assert_eq!(frontier.next(now), Some(Pick::Resolve(HostId(0))));
    assert_eq!(frontier.resolved(HostId(0), None, now), [UrlId(7)]);
    assert_eq!(frontier.push(UrlId(8), HostId(0), 3, now), Err(Refusal::Unresolved));
    assert_eq!((frontier.queued(), frontier.active(), frontier.next(now)), (0, 0, None));
}

#[test]
fn below_the_floor_only_parts_of_pages_are_picked() {
    let now = Instant::now();
    let mut frontier = Frontier::new(polite(0, 0));
    for url in 0..6 {
        let level = if url % 2 == 0 { LEVEL_REQUISITE } else { 9 };
        frontier.push(UrlId(url), HostId(url / 3), level, now).unwrap();
    }
    for host in [HostId(0), HostId(1)] {
        assert!(matches!(frontier.next(now), Some(Pick::Resolve(_))));
        open(&mut frontier, host, address(host.0 as u8), now);
    }
    frontier.set_floor(LEVEL_REQUISITE);
    let mut seen = Vec::new();
    while let Some(Pick::Page(host, url, _)) = frontier.next(now) {
        frontier.completed(host, now, Duration::ZERO, None);
        seen.push(url.0);
    }
    seen.sort_unstable();
    assert_eq!((seen, frontier.requisites(), frontier.queued()), (vec![0, 2, 4], 0, 3));
    frontier.set_floor(0);
    assert!(matches!(frontier.next(now), Some(Pick::Page(..))));
}

#[test]
fn an_address_holds_for_an_hour_and_delays_hold_after_it() {
    let start = Instant::now();
    let later = |minutes: u64| start + Duration::from_secs(60 * minutes);
    let mut frontier = Frontier::new(polite(300, 120));
    for url in 0..8 {
        frontier.push(UrlId(url), HostId(url % 2), 5, start).unwrap();
    }
    for host in 0..2 {
        assert_eq!(frontier.next(start), Some(Pick::Resolve(HostId(host))));
        open(&mut frontier, HostId(host), address(host as u8), start);
    }
    let done =
        |frontier: &mut Frontier, host, now| frontier.completed(HostId(host), now, Duration::ZERO, None);
    assert_eq!(frontier.next(later(59)), Some(Pick::Page(HostId(0), UrlId(0), address(0))));
    done(&mut frontier, 0, later(59));
    assert_eq!(frontier.next(later(59)), Some(Pick::Page(HostId(1), UrlId(1), address(1))));
    done(&mut frontier, 1, later(59));

    // Both names are looked up again, once each; the delay of neither is over.
    for host in 0..2 {
        assert_eq!(frontier.next(later(64)), Some(Pick::Resolve(HostId(host))));
        assert!(frontier.may_resolve(HostId(host), SiteId(0)));
    }
    assert_eq!((frontier.next(later(64)), frontier.active()), (None, 2));
    for host in 0..2 {
        assert!(frontier.resolved(HostId(host), Some(address(7)), later(64)).is_empty());
    }
    // The rules are still known; the address is now the same, and has a delay of its own.
    assert_eq!(frontier.next(later(64)), Some(Pick::Page(HostId(0), UrlId(2), address(7))));
    done(&mut frontier, 0, later(65));
    assert_eq!(frontier.next(later(66)), None);
    assert_eq!(frontier.next(later(67)), Some(Pick::Page(HostId(1), UrlId(3), address(7))));
    done(&mut frontier, 1, later(67));

    // An address that cannot be looked up again is kept for a while; one that may no longer be asked is not.
    for host in 0..2 {
        assert_eq!(frontier.next(later(125)), Some(Pick::Resolve(HostId(host))));
        assert!(frontier.keep_address(HostId(host), later(125)));
    }
    assert_eq!(frontier.next(later(125)), Some(Pick::Page(HostId(0), UrlId(4), address(7))));
    done(&mut frontier, 0, later(125));
    assert_eq!(frontier.next(later(131)), Some(Pick::Resolve(HostId(1))));
    assert_eq!(frontier.next(later(131)), Some(Pick::Resolve(HostId(0))));
    assert!(!frontier.keep_address(HostId(2), later(131)));
    assert_eq!(frontier.resolved(HostId(0), None, later(131)), [UrlId(6)]);
    assert_eq!(frontier.push(UrlId(8), HostId(0), 5, later(131)), Err(Refusal::Unresolved));
}

#[test]
fn a_host_is_not_moved_while_it_is_asked() {
    let start = Instant::now();
    let mut frontier = Frontier::new(Politeness { per_host: 2, per_address: 2, ..polite(0, 0) });
    for url in 0..3 {
        frontier.push(UrlId(url), HostId(0), 5, start).unwrap();
    }
    assert_eq!(frontier.next(start), Some(Pick::Resolve(HostId(0))));
    open(&mut frontier, HostId(0), address(1), start);
    assert_eq!(frontier.next(start), Some(Pick::Page(HostId(0), UrlId(0), address(1))));
    let later = start + Duration::from_secs(3600);
    assert_eq!(frontier.next(later), None);
    frontier.completed(HostId(0), later, Duration::ZERO, None);
    assert_eq!(frontier.next(later), Some(Pick::Resolve(HostId(0))));
    // A host given up in the meantime stays so.
    frontier.give_up(HostId(0), Refusal::RobotsUnreachable);
    frontier.resolved(HostId(0), Some(address(2)), later);
    assert_eq!((frontier.next(later), frontier.active()), (None, 0));
}

#[test]
fn names_that_move_on_take_no_memory() {
    let start = Instant::now();
    let mut frontier = Frontier::new(polite(0, 1));
    for url in 0..100 {
        frontier.push(UrlId(url), HostId(0), 5, start).unwrap();
    }
    for hour in 0..100 {
        let now = start + Duration::from_secs(3600 * u64::from(hour));
        assert_eq!(frontier.next(now), Some(Pick::Resolve(HostId(0))));
        open(&mut frontier, HostId(0), address(hour), now);
        assert_eq!(frontier.next(now), Some(Pick::Page(HostId(0), UrlId(u32::from(hour)), address(hour))));
        frontier.completed(HostId(0), now, Duration::ZERO, None);
    }
    assert_eq!((frontier.address_numbers.len(), frontier.addresses.len()), (1, 2));
}

#[test]
fn rules_are_asked_for_again_when_they_no_longer_hold() {
    let start = Instant::now();
    let mut frontier = Frontier::new(polite(0, 0));
    let host = HostId(0);
    for url in 0..4 {
        frontier.push(UrlId(url), host, 5, start).unwrap();
    }
    assert_eq!(frontier.next(start), Some(Pick::Resolve(host)));
    open(&mut frontier, host, address(1), start);
    // Its address is valid for an hour.
    let renewed = start + DAY - Duration::from_secs(60);
    assert_eq!(frontier.next(renewed), Some(Pick::Resolve(host)));
    assert!(frontier.resolved(host, Some(address(1)), renewed).is_empty());
    let before = start + DAY - Duration::from_secs(1);
    assert!(frontier.knows_robots(host, before) && !frontier.knows_robots(host, start + DAY));
    assert_eq!(frontier.next(before), Some(Pick::Page(host, UrlId(0), address(1))));
    frontier.completed(host, before, Duration::ZERO, None);

    let now = start + DAY;
    assert_eq!(frontier.next(now), Some(Pick::Robots(host, address(1))));
    frontier.completed(host, now, Duration::ZERO, None);
    assert_eq!(frontier.next(now), None, "no page before the new rules are known");
    frontier.robots_known(host, now, Duration::from_secs(1));
    assert_eq!(frontier.next(now), Some(Pick::Page(host, UrlId(1), address(1))));
    frontier.completed(host, now, Duration::ZERO, None);
    assert_eq!(frontier.next(now + Duration::from_secs(1)), Some(Pick::Robots(host, address(1))));
}

#[test]
fn hosts_behind_a_proxy_have_delays_of_their_own() {
    let start = Instant::now();
    let later = |minutes: u64| start + Duration::from_secs(60 * minutes);
    let mut frontier = Frontier::new(polite(60, 30));
    for host in 0..2 {
        for url in 0..3 {
            frontier.push(UrlId(2 * url + host), HostId(host), 9, start).unwrap();
        }
        open(&mut frontier, HostId(host), Place::BehindProxy, start);
    }
    for minute in [1, 2] {
        let asked: Vec<_> = std::iter::from_fn(|| frontier.next(later(minute))).collect();
        assert!(matches!(asked[..], [Pick::Page(HostId(0), ..), Pick::Page(HostId(1), ..)]), "{asked:?}");
        assert_eq!(frontier.next(later(minute)), None);
        (0..2).for_each(|host| frontier.completed(HostId(host), later(minute), Duration::ZERO, None));
    }
    // An hour later, nothing is known anew, and the delay holds.
    assert_eq!(frontier.next(later(62)), Some(Pick::Resolve(HostId(0))));
    frontier.resolved(HostId(0), Some(Place::BehindProxy), later(62));
    assert_eq!(frontier.address_numbers.len(), 2);
    assert!(matches!(frontier.next(later(62)), Some(Pick::Resolve(HostId(1)) | Pick::Page(HostId(0), ..))));
}
