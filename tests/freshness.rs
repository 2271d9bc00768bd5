//! Refresh runs keep the promises of the plan.

use std::collections::HashMap;

use archive_books::ledger::Credits;
use archive_storage::Store;
use archive_testweb::{ChangeRates, Clock, Config, PageIndex, Web};
use chrono::{DateTime, TimeDelta, Utc};

use crate::change::clock;
use crate::crawl::everything;
use crate::support::program::start;
use crate::support::{Archive, TestWeb};

/// Number of pages that a run fetches.
const BUDGET: usize = 15;

/// A page of the web with its importance and the time of its newest copy.
struct Copy {
    page: PageIndex,
    importance: f64,
    time: DateTime<Utc>,
}

fn copies(archive: &Archive, web: &Web) -> Vec<Copy> {
    let store = Store::read_only(&archive.path).unwrap();
    let state = store.state();
    let credits = Credits::open(state).unwrap();
    let mut copies = Vec::new();
    for visit in state.visits(0) {
        let (id, visit) = visit.unwrap();
        let Some(page) = web.page_of(&state.url(id).unwrap()) else { continue };
        let capture = state.capture(visit.last_capture.unwrap()).unwrap();
        copies.push(Copy {
            page,
            importance: credits.importance(&state.page(id).unwrap(), Some(&visit)).unwrap(),
            time: DateTime::from_timestamp_micros(capture.time).unwrap(),
        });
    }
    copies
}

/// Returns the share of copies, weighted by `importance`, that are unchanged at `now`.
fn freshness(web: &Web, copies: &[Copy], importance: &HashMap<PageIndex, f64>, now: DateTime<Utc>) -> f64 {
    let weight = |copy: &Copy| importance.get(&copy.page).copied().unwrap_or(0.0);
    let is_fresh = |copy: &&Copy| web.changes(copy.page, copy.time, now).is_empty();
    let fresh: f64 = copies.iter().filter(is_fresh).map(weight).sum();
    fresh / copies.iter().map(weight).sum::<f64>()
}

fn refresh(served: &TestWeb, archive: &Archive) {
    let budget = BUDGET.to_string();
    let mut command = archive.command("refresh");
    command.args(["--budget", &budget, "--for", "1m", "--no-full-text"]);
    start(command.args(served.at_once()).args(clock(served))).wait().succeeded();
}

/// Runs a refresh daily for `days` after a warm-up that teaches the rates; returns the promised and the observed
/// freshness.
fn promised_and_observed(seed: u64, warm_up: i64, days: i64) -> (f64, f64) {
    let changes = ChangeRates { never_share: 0.2, median_per_day: 0.05, spread: 1.2, per_day_max: 3.0 };
    let config = Config { changes, ..Config::plain(seed, 4, 150) };
    let clock_of_web = Clock::simulated(config.start + TimeDelta::days(100));
    let served = TestWeb::start(Config { clock: clock_of_web, ..config });
    let archive = Archive::new();
    let seeds = served.web.seeds(served.web.sites());
    let mut options = everything(&served);
    options.push("--no-full-text".to_owned());
    start(archive.crawl(&seeds, &options).args(clock(&served))).wait().succeeded();
    for _ in 0..warm_up {
        served.web.clock().advance(TimeDelta::days(3));
        refresh(&served, &archive);
    }

    served.web.clock().advance(TimeDelta::days(1));
    let [budget, days_text] = [BUDGET.to_string(), days.to_string()];
    let plan = ["--budget", &budget, "--days", &days_text];
    let mut command = archive.command("plan");
    let rows = start(command.arg("--json").args(plan).args(clock(&served))).wait().succeeded().json();
    let asked = rows.iter().find(|row| row["asked"] == true).unwrap();
    let promised = asked["freshness"].as_f64().unwrap();

    let importance = copies(&archive, &served.web).iter().map(|copy| (copy.page, copy.importance)).collect();
    let (mut sum, mut count) = (0.0, 0.0);
    for _ in 0..days {
        refresh(&served, &archive);
        let copies = copies(&archive, &served.web);
        // The time between two runs is sampled at regular intervals.
        for part in 0..8 {
            let now = served.web.clock().now() + TimeDelta::hours(3 * part) + TimeDelta::minutes(90);
            sum += freshness(&served.web, &copies, &importance, now);
            count += 1.0;
        }
        served.web.clock().advance(TimeDelta::days(1));
    }
    (promised, sum / count)
}

#[test]
fn sixty_days_of_refresh_runs_keep_what_the_plan_promises() {
    // A web of 150 pages hangs on a few of them: one alone is off by .02, and the order of answers moves that by .01.
    let webs = [201, 203].map(|seed| promised_and_observed(seed, 12, 60));
    let [promised, observed] =
        [webs.map(|web| web.0), webs.map(|web| web.1)].map(|each| (each[0] + each[1]) / 2.0);
    println!("promised {promised:.4}, observed {observed:.4}: {webs:.4?}");
    assert!((promised - observed).abs() < 0.03, "promised {promised:.4}, observed {observed:.4}: {webs:.4?}");
    assert!((0.3..0.97).contains(&observed), "a web on which nothing depends on the budget shows nothing");
}

/// The warm-up visits as many pages as the web has: after fewer visits the rates are less well known (after 180 of 600
/// pages, two webs of fifteen were off by four and five points).
#[test]
#[ignore = "takes a minute and more: several webs"]
fn plans_are_kept_on_other_webs_too() {
    for seed in [202, 203, 204, 205] {
        let (promised, observed) = promised_and_observed(seed, 40, 60);
        println!("web {seed}: promised {promised:.4}, observed {observed:.4}");
        assert!(
            (promised - observed).abs() < 0.03,
            "web {seed}: promised {promised:.4}, observed {observed:.4}"
        );
    }
}

#[test]
fn freshness_is_reported_for_the_archive_and_for_a_query() {
    let config = Config::plain(206, 4, 120);
    let clock_of_web = Clock::simulated(config.start + TimeDelta::days(100));
    let served = TestWeb::start(Config { clock: clock_of_web, ..config });
    let archive = Archive::new();
    let seeds = served.web.seeds(served.web.sites());
    start(archive.crawl(&seeds, &everything(&served)).args(clock(&served))).wait().succeeded();
    for _ in 0..3 {
        served.web.clock().advance(TimeDelta::days(10));
        refresh(&served, &archive);
    }
    let at = clock(&served);
    let freshness = |query: &[&str]| {
        let mut command = archive.command("freshness");
        start(command.arg("--json").args(query).args(&at)).wait().succeeded().json().remove(0)
    };
    let all = freshness(&[]);
    let number = |report: &serde_json::Value, part: &str, field: &str| report[part][field].as_f64().unwrap();
    assert!(number(&all, "expected", "pages") > 100.0);
    for part in ["expected", "observed"] {
        assert!((0.05..0.999).contains(&number(&all, part, "freshness")), "{all}");
        assert!(number(&all, part, "age_days") > 0.0, "{all}");
    }
    // One fetch was of a page that is gone.
    assert_eq!(number(&all, "observed", "checks") as usize, 3 * BUDGET - 1);
    let shares: Vec<f64> = all["expected"]["currency"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["share"].as_f64().unwrap())
        .collect();
    assert!(shares.len() == 5 && shares.is_sorted(), "a longer grace forgives more: {shares:?}");
    assert!((shares[0] - number(&all, "expected", "freshness")).abs() < 1e-9);

    // Pages fetched recently are fresher than the others.
    let fetched = freshness(&["page captures > 1"]);
    let others = freshness(&["page captures = 1"]);
    assert!(number(&fetched, "expected", "freshness") > number(&others, "expected", "freshness"));
    assert_eq!(others["observed"], serde_json::Value::Null);
    assert_eq!(
        number(&fetched, "expected", "pages") + number(&others, "expected", "pages"),
        number(&all, "expected", "pages")
    );
    // The former name of the command still works.
    start(archive.command("currency").arg("site importance > 1")).wait().refused(2, &["select their pages"]);

    // A plan reports the same for a target as for the budget that reaches it.
    let plan = |arguments: &[&str]| {
        let mut command = archive.command("plan");
        start(command.args(["--json", "--days", "20"]).args(arguments).args(&at)).wait().succeeded().json()
    };
    let rows = plan(&["--budget", "10", "--target", "80%"]);
    let freshness: Vec<f64> = rows.iter().map(|row| row["freshness"].as_f64().unwrap()).collect();
    assert!(freshness.is_sorted(), "{rows:?}");
    let least = rows.iter().find(|row| row["target"].is_number()).unwrap();
    assert!(least["freshness"].as_f64().unwrap() >= 0.8);
    let budget = least["budget"].as_u64().unwrap();
    let below = plan(&["--budget", &(budget - 1).to_string()]);
    let below = below.iter().find(|row| row["asked"] == true).unwrap();
    assert!(below["freshness"].as_f64().unwrap() < 0.8, "{below}");

    // What is forgiven for a day takes less, and the promise is kept by the budget that is named.
    let kept = |grace: &str| plan(&["--budget", "10", "--current", "80%", "--grace", grace]);
    let least = |rows: &[serde_json::Value]| {
        let row = rows.iter().find(|row| {
            row["budget"].is_number() && row["asked"].is_boolean() && !row["guarantee"].is_null()
        });
        let row = row.unwrap_or_else(|| panic!("{rows:?}"));
        assert!(
            row["current"].as_f64().unwrap() >= 0.8 && row["current"].as_f64() >= row["freshness"].as_f64(),
            "{row}"
        );
        row["budget"].as_u64().unwrap()
    };
    let (days, hours) = (kept("3d"), kept("1h"));
    assert!(least(&days) < least(&hours) && least(&hours) <= budget);
    let periods: Vec<&serde_json::Value> = days.iter().filter(|row| row["pages"].is_number()).collect();
    let period = |row: &serde_json::Value| row["period_days"].as_f64().unwrap_or(f64::INFINITY);
    let (all, classes) = periods.split_last().unwrap();
    assert!(
        classes.iter().map(|row| period(row)).is_sorted() && all["changes_every_days"].is_null(),
        "{periods:?}"
    );
    assert_eq!(
        classes.iter().map(|row| row["pages"].as_u64().unwrap()).sum::<u64>(),
        all["pages"].as_u64().unwrap()
    );
    assert!(period(all) > 3.0, "without a missed change in the grace period nothing is lost: {all}");
}

#[test]
fn lives_are_counted_by_type_and_over_time() {
    let config = Config::plain(208, 3, 60);
    let clock_of_web = Clock::simulated(config.start + TimeDelta::days(100));
    let served = TestWeb::start(Config { clock: clock_of_web, ..config });
    let archive = Archive::new();
    let seeds = served.web.seeds(served.web.sites());
    start(archive.crawl(&seeds, &everything(&served)).args(clock(&served))).wait().succeeded();
    for _ in 0..4 {
        served.web.clock().advance(TimeDelta::days(10));
        refresh(&served, &archive);
    }
    let freshness = |arguments: &[&str]| {
        let mut command = archive.command("freshness");
        start(command.args(arguments).args(clock(&served))).wait().succeeded()
    };
    let report = |by: &str| freshness(&["--json", "--by", by]).json().remove(0);
    let by_type = report("type");
    let lives = &by_type["lives"];
    let pages = lives["all"]["pages"].as_u64().unwrap();
    assert!(pages > 50, "{lives}");
    let count = |spread: &serde_json::Value| {
        let classes = spread["classes"].as_array().unwrap().iter().map(|count| count.as_u64().unwrap());
        assert_eq!(classes.sum::<u64>(), spread["count"].as_u64().unwrap(), "{spread}");
        spread["count"].as_u64().unwrap()
    };
    assert_eq!(count(&lives["all"]["age_days"]), pages);
    assert_eq!(count(&lives["all"]["life_days"]), lives["all"]["gone"].as_u64().unwrap());
    assert!(count(&by_type["observed"]["change_days"]) < by_type["observed"]["changed"].as_u64().unwrap());
    // All was found on one day, and what is gone since was there before.
    let growth = lives["growth"].as_array().unwrap();
    let sum = |field: &str| growth.iter().map(|part| part[field].as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum("new") - sum("gone"), growth.last().unwrap()["pages"].as_u64().unwrap());
    assert_eq!(growth.last().unwrap()["pages"].as_u64().unwrap(), pages);
    for by in ["type", "site", "domain"] {
        let groups = report(by)["lives"]["groups"].as_array().unwrap().clone();
        let names: Vec<&str> = groups.iter().map(|group| group["group"].as_str().unwrap()).collect();
        let all: u64 = groups.iter().map(|group| group["pages"].as_u64().unwrap()).sum();
        assert_eq!(all, pages, "{by}: {names:?}");
        match by {
            "type" => assert!(names.contains(&"html"), "{names:?}"),
            "site" => assert_eq!(names, ["s0.test"]),
            _ => assert_eq!(names, ["test"]),
        }
    }
    // Each run notes at its end how fresh the copies are; the newest note is what is reported right after it.
    let now = report("type");
    let curve = now["curve"].as_array().unwrap();
    assert_eq!(curve.len(), 5, "{curve:?}");
    let (last, expected) = (curve.last().unwrap(), &now["expected"]["freshness"]);
    assert_eq!(last["pages"].as_u64().unwrap(), pages);
    assert!(
        (last["freshness"].as_f64().unwrap() - expected.as_f64().unwrap()).abs() < 0.01,
        "{last} {expected}"
    );
    let table = freshness(&["--by", "domain"]).text();
    for part in ["since their last change", "new pages", "end of a run", "time between changes"] {
        assert!(table.contains(part), "{part}: {table}");
    }
}
