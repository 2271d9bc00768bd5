//! A budget for several archives is spent as if they were one archive.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use archive_ask::query;
use archive_base::access::Access;
use archive_books::columns::{self, RowKind};
use archive_books::ledger::Credits;
use archive_choose::{DueArchive, RefreshChoice, RefreshRules, Weighing, Weights, agenda};
use archive_storage::address::url_hash;
use archive_storage::{Store, UrlId};
use archive_testweb::Config;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use crate::change::{clock, visits};
use crate::crawl::{everything, lively};
use crate::imports::import;
use crate::support::program::{Finished, start};
use crate::support::warc::response;
use crate::support::{Archive, Dice, TestWeb};

const SITES: u64 = 6;
const PAGES: u64 = 20;
const WEEKS: u64 = 6;

fn begin() -> DateTime<Utc> {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

/// Returns all captures of a site; pages change more often the higher the site's number is. Some pages were captured
/// only once, so that only the rates of other pages tell anything about them.
fn site(dice: &mut Dice, site: u64) -> Vec<u8> {
    let mut records = Vec::new();
    for page in 0..PAGES {
        let (url, mut version) = (format!("http://s{site}.test/{page}"), 0);
        let weeks = if page % 4 == 3 { 1 } else { WEEKS };
        for week in 0..weeks {
            // No two captures have the same second.
            let seconds = (week * PAGES + page) * SITES + site;
            let at = begin()
                + TimeDelta::days((7 * week).cast_signed())
                + TimeDelta::seconds(seconds.cast_signed());
            version += u64::from(dice.below(SITES + 2) <= site);
            let body = format!(
                "<html lang=en><title>Page {page} of {site}</title><p>This is version {version} of page {page} of site {site}"
            );
            let date = at.format("%Y-%m-%dT%H:%M:%SZ").to_string();
            records.extend(response(&format!("urn:test:{site}-{page}-{week}"), &url, &date, &body));
        }
    }
    records
}

/// Returns archives that share the sites among them, the first one with the first sites.
fn archives(sites: &[Vec<u8>], count: usize) -> Vec<Archive> {
    let of = |sites: &[Vec<u8>]| {
        let archive = Archive::new();
        import(&archive, &[("sites.warc", sites.concat())]);
        let store = Store::read_only(&archive.path).unwrap();
        let state = store.state();
        // The weight of a page is the same in each archive.
        let weight = |url: u32| 100 + url_hash(&state.url(UrlId(url)).unwrap()) % 100;
        let weights: Vec<_> = (0..state.url_count()).map(|url| Some(weight(url) as f64)).collect();
        columns::write(&archive.path, RowKind::Page, "worth", &weights, state.identity()).unwrap();
        archive
    };
    sites.chunks(sites.len().div_ceil(count)).map(of).collect()
}

/// Returns the chosen pages by archive.
fn chosen(archives: &[Archive], rules: &RefreshRules, budget: usize, folders: bool) -> Vec<BTreeSet<String>> {
    let stores: Vec<Store> =
        archives.iter().map(|archive| Store::read_only(&archive.path).unwrap()).collect();
    let credits: Vec<Credits> = stores.iter().map(|store| Credits::open(store.state()).unwrap()).collect();
    let mut weights: Vec<Weights> =
        archives.iter().map(|archive| Weights::read(&archive.path, &rules.weight).unwrap()).collect();
    Weights::put_on_one_scale(&mut weights);
    let choice = |(archive, weights): (&Archive, Weights)| {
        let choice = RefreshChoice::new(rules.clone(), weights);
        if folders { choice.with_folders(&archive.path, 0) } else { choice }
    };
    let choices: Vec<RefreshChoice> = archives.iter().zip(weights).map(choice).collect();
    let open: Vec<_> = stores.iter().map(|store| (store, Access::unlimited())).collect();
    let answering = query::answering(&open).unwrap();
    let source = |place: usize| DueArchive {
        answering: &answering[place],
        ..DueArchive::alone(stores[place].state(), &credits[place], &choices[place], &[])
    };
    let sources: Vec<DueArchive<'_>> = (0..stores.len()).map(source).collect();
    let shares = agenda(&sources, budget, begin() + TimeDelta::days(50)).unwrap();
    let urls = |(store, pages): (&Store, Vec<UrlId>)| {
        pages.into_iter().map(|page| store.state().url(page).unwrap()).collect()
    };
    stores.iter().zip(shares).map(urls).collect()
}

/// The same pages are chosen from several archives as from one that has everything.
#[test]
fn several_archives_are_chosen_from_as_one() {
    let mut dice = Dice::of(2020);
    let sites: Vec<Vec<u8>> = (0..SITES).map(|number| site(&mut dice, number)).collect();
    let (one, two, three) = (archives(&sites, 1), archives(&sites, 2), archives(&sites, 3));
    for policy in ["default", "uniform", "xyleme", "index", "hindex", "lambda", "evh_hindex", "xyleme_lm"] {
        let rules = RefreshRules {
            policy: policy.parse().unwrap(),
            weight: Weighing::from("worth".to_owned()),
            ..RefreshRules::default()
        };
        let mut uneven = false;
        for budget in [10, 45, 90] {
            let expected = chosen(&one, &rules, budget, false).remove(0);
            assert_eq!(expected.len(), budget, "{policy}");
            for (several, folders) in [(&two, false), (&three, false), (&two, true), (&two, true)] {
                let shares = chosen(several, &rules, budget, folders);
                let sizes = || shares.iter().map(BTreeSet::len);
                uneven |= sizes().max().unwrap() > 2 + sizes().min().unwrap();
                let together: BTreeSet<String> = shares.into_iter().flatten().collect();
                assert_eq!(together, expected, "{policy}, {budget} pages of {} archives", several.len());
            }
        }
        assert!(uneven, "{policy} gives each archive as much");
    }
}

#[test]
fn folders_that_an_archive_filled_alone_are_not_those_of_several() {
    let mut dice = Dice::of(2021);
    let sites: Vec<Vec<u8>> = (0..SITES).map(|number| site(&mut dice, number)).collect();
    let mut two = archives(&sites, 2);
    let rules = RefreshRules { policy: "xyleme".parse().unwrap(), ..RefreshRules::default() };
    let expected = chosen(&two, &rules, 30, false);
    let (mut first, second) = (two.drain(..1).collect::<Vec<_>>(), two);
    let alone = chosen(&first, &rules, 30, true);
    let filled = fs::read(first[0].path.join("state/due")).unwrap();
    first.extend(second);
    assert_ne!(alone[0], expected[0]);
    assert_eq!(chosen(&first, &rules, 30, true), expected);
    assert_ne!(fs::read(first[0].path.join("state/due")).unwrap(), filled);
}

fn command(name: &str, archives: &[&Archive]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_archive"));
    command.arg(name).env_remove("ARCHIVE_DIR");
    for archive in archives {
        command.arg("--archive").arg(&archive.path);
    }
    command
}

fn refresh(served: &TestWeb, archives: &[&Archive], arguments: &[&str]) -> Finished {
    let mut command = command("refresh", archives);
    command.args(["--no-full-text", "--json"]).args(arguments).args(served.at_once()).args(clock(served));
    start(&mut command).wait()
}

/// Serves a web and crawls it into two archives: all hosts but the first, and the first.
fn shared(config: Config, more: &[&str]) -> (TestWeb, [Archive; 2]) {
    let served = TestWeb::start(config);
    let hosts = served.web.seeds(served.web.sites());
    let archives = [Archive::new(), Archive::new()];
    for (archive, seeds) in archives.iter().zip([&hosts[1..], &hosts[..1]]) {
        let mut options = everything(&served);
        // The scope is the sites of the seeds.
        options.truncate(options.len() - 2);
        options.push("--no-full-text".to_owned());
        start(archive.crawl(seeds, &options).args(more).args(clock(&served))).wait().succeeded();
    }
    (served, archives)
}

/// Returns the URLs that were captured more than once.
fn again(archive: &Archive) -> BTreeSet<String> {
    let visits = visits(&archive.path).into_iter();
    visits.filter(|(_, (_, visit))| visit.captures > 1).map(|(url, _)| url).collect()
}

#[test]
fn one_run_refreshes_several_archives() {
    let (served, [first, second]) = shared(lively(430, 4, 160), &[]);
    let both = [&first, &second];
    // Nothing is due immediately after the crawl.
    let idle = refresh(&served, &both, &["--budget", "40"]).succeeded();
    assert!(idle.errors.contains("nothing is due; next at"), "{}", idle.errors);
    assert_eq!((idle.json()[0]["captures"].as_u64(), idle.json().len()), (Some(0), 1));
    served.web.clock().advance(TimeDelta::days(9));
    let run = refresh(&served, &both, &["--budget", "40", "--for", "2m", "--shortest", "2h"]).succeeded();
    let summary = run.json().remove(0);
    let shares: Vec<&Value> = summary["archives"].as_array().unwrap().iter().collect();
    let sum = |field: &str| shares.iter().map(|share| share[field].as_u64().unwrap()).sum::<u64>();
    assert_eq!((summary["budget"].as_u64(), sum("budget")), (Some(40), 40), "{summary}");
    for (share, archive) in shares.iter().zip(both) {
        assert_eq!(share["archive"], archive.path.to_str().unwrap());
        let (budget, parts) = (share["budget"].as_u64().unwrap(), share["parts"].as_u64().unwrap());
        let found = again(archive).len() as u64 - parts;
        // The target of a redirect is fetched as well.
        assert!(budget > 3 && (budget - 2..budget + 9).contains(&found), "{share}, {found} pages");
    }
    for field in ["captures", "identical", "parts", "errors", "refused", "bytes", "reports"] {
        assert_eq!(summary[field].as_u64(), Some(sum(field)), "{field}");
    }
    assert_eq!(summary["end"], "complete");
    let lines: Vec<&str> = run.errors.lines().collect();
    assert!(lines.last().unwrap().starts_with("archive: budget of 40 spent: "), "{}", run.errors);
    assert_eq!(lines.iter().filter(|line| line.contains("share of ")).count(), 2, "{}", run.errors);
    // Both archives remember the rules, and nothing was fetched that is not due.
    served.web.clock().advance(TimeDelta::minutes(70));
    let (before, others) = (again(&first), again(&second));
    refresh(&served, &both, &["--budget", "40"]).succeeded();
    let fetched_twice =
        |archive: &Archive| visits(&archive.path).values().filter(|(_, visit)| visit.captures > 2).count();
    assert!(again(&first).is_superset(&before) && again(&second).is_superset(&others));
    assert_eq!((fetched_twice(&first), fetched_twice(&second)), (0, 0));
    for archive in both {
        archive.verify();
    }
    // The output for a single archive is as before.
    served.web.clock().advance(TimeDelta::days(9));
    let alone = refresh(&served, &both[..1], &["--budget", "5"]).succeeded();
    assert!(alone.json()[0].get("archives").is_none() && alone.json()[0].get("archive").is_none());
    assert!(
        alone.errors.trim_end().ends_with(&format!("stored in {}", first.path.display())),
        "{}",
        alone.errors
    );
}

#[test]
fn a_share_of_the_common_budget_discovers() {
    let (served, [first, second]) = shared(Config::plain(433, 4, 160), &["--limit", "20"]);
    let both = [&first, &second];
    let known = || both.map(|archive| visits(&archive.path).len()).iter().sum::<usize>();
    let before = known();
    served.web.clock().advance(TimeDelta::days(9));
    refresh(&served, &both, &["--budget", "20"]).succeeded();
    assert_eq!(known(), before);
    served.web.clock().advance(TimeDelta::days(9));
    refresh(&served, &both, &["--budget", "20", "--discovery", "25%"]).succeeded();
    assert_eq!(known(), before + 5);
    served.web.clock().advance(TimeDelta::days(9));
    refresh(&served, &both, &["--budget", "20", "--discovery", "auto"]).succeeded();
    assert!((before + 6..=before + 15).contains(&known()), "{} after {before}", known());
}

#[test]
fn a_time_that_is_over_and_a_signal_end_all() {
    let (served, [first, second]) = shared(lively(431, 4, 160), &[]);
    served.web.clock().advance(TimeDelta::days(9));
    let run = refresh(&served, &[&first, &second], &["--budget", "1000", "--for", "1ms"]).succeeded();
    let summary = run.json().remove(0);
    assert_eq!((&summary["end"], &summary["captures"]), (&"time".into(), &0.into()), "{summary}");
    let mut command = command("refresh", &[&first, &second]);
    // One second between two requests to a host.
    command
        .args(["--budget", "1000", "--json", "--delay", "1s"])
        .args(served.connection())
        .args(clock(&served));
    let requests = served.server.requests();
    let mut running = start(&mut command);
    assert!(running.wait_until(|| served.server.requests() > requests + 3), "it has begun");
    running.signal("-INT");
    let stopped = running.wait();
    assert_eq!(stopped.code, Some(4), "{}", stopped.errors);
    let summary = stopped.json().remove(0);
    let ends: Vec<&Value> =
        summary["archives"].as_array().unwrap().iter().map(|share| &share["end"]).collect();
    assert_eq!((&summary["end"], ends), (&"stopped".into(), vec![&"stopped".into(), &"stopped".into()]));
    for archive in [&first, &second] {
        archive.verify();
    }
}

#[test]
fn archives_that_cannot_share_a_budget_are_refused() {
    let (served, [first, second]) = shared(lively(432, 4, 160), &[]);
    let both = [&first, &second];
    let nine = ["--budget", "9"];
    refresh(&served, &[&first, &second, &first], &nine).refused(2, &["named twice"]);
    let missing = Archive::new();
    refresh(&served, &[&first, &missing], &nine).refused(1, &["there is no archive in", "archive crawl"]);
    start(command("refresh", &both).args(["--archive", "http://127.0.0.1:8070/"]).args(nine))
        .wait()
        .refused(2, &["http://127.0.0.1:8070/", "name local folders"]);
    let copy = first.copy();
    refresh(&served, &[&first, &copy], &nine).refused(1, &["have both captured pages of"]);
    // Only one of them has the column.
    let store = Store::read_only(&first.path).unwrap();
    let values = vec![Some(1.0); store.state().url_count() as usize];
    columns::write(&first.path, RowKind::Page, "hub", &values, store.state().identity()).unwrap();
    drop(store);
    refresh(&served, &both, &["--budget", "9", "--weight", "hub"])
        .refused(2, &["no column 'hub'", second.path.to_str().unwrap()]);
    // Rules that one archive remembers do not apply to the other one.
    refresh(&served, &[&first], &["--budget", "0", "--policy", "xyleme"]).succeeded();
    refresh(&served, &both, &nine).refused(2, &["different rules", "--policy", "refresh each by itself"]);
    refresh(&served, &both, &["--budget", "9", "--policy", "index"]).succeeded();
    refresh(&served, &both, &nine).succeeded();
    assert_eq!((again(&first).len(), again(&second).len()), (0, 0), "nothing was due");
}
