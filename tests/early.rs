//! How early crawls found the importance of pages, and how its estimates converged, as `/pictures` and the pages of runs
//! show it.

use std::collections::HashMap;

use archive_books::order_plot::{OrderPlot, TABLE_PAGES_MAX};
use archive_books::prepared;
use archive_storage::Store;
use serde_json::Value;

use crate::cluster::still;
use crate::crawl::everything;
use crate::support::program::start;
use crate::support::served::{Served, ask};
use crate::support::{Archive, TestWeb};

/// Returns an archive of two crawls, five days apart; the first one stops early.
fn crawled_twice(web: &TestWeb) -> Archive {
    let archive = Archive::new();
    for (clock, more) in [("2026-01-01T00:00:00Z", &["--limit", "150"][..]), ("2026-01-06T00:00:00Z", &[])] {
        let mut crawl = archive.crawl(&web.web.seeds(2), &everything(web));
        start(crawl.args(["--clock", clock]).args(more)).wait().succeeded();
    }
    archive
}

fn json(served: &Served, path: &str) -> Value {
    let answer = ask(&served.application, "GET", path, &["Accept: application/json"]);
    assert_eq!(answer.status, 200, "{path}: {}", String::from_utf8_lossy(&answer.body));
    serde_json::from_slice(&answer.body).unwrap()
}

fn html(served: &Served, path: &str) -> String {
    String::from_utf8(ask(&served.application, "GET", path, &[]).body).unwrap()
}

fn number(value: &Value, name: &str) -> f64 {
    value[name].as_f64().unwrap_or_else(|| panic!("{name}: {value}"))
}

/// Returns the importance of the pages, in the order in which they were fetched first.
fn in_order(archive: &Archive) -> Vec<f64> {
    let asked = "page captures > 0 and (status < 300 or status >= 400) select url, importance";
    let rows = archive.json("query", &[asked]);
    let of: HashMap<&str, f64> =
        rows.iter().map(|row| (row["url"].as_str().unwrap(), number(row, "importance"))).collect();
    let store = Store::read_only(&archive.path).unwrap();
    let visits =
        store.state().visits_with_pages(0..).map(|visit| store.state().url(visit.unwrap().0).unwrap());
    let found: Vec<f64> = visits.filter_map(|url| of.get(&*url).copied()).collect();
    assert_eq!(found.len(), of.len());
    found
}

/// Returns the mean share of importance that the pages so far had.
fn mean(importance: &[f64]) -> f64 {
    let whole: f64 = importance.iter().sum();
    let sums = importance.iter().scan(0.0, |sum, one| {
        *sum += one;
        Some(*sum / whole)
    });
    sums.sum::<f64>() / importance.len() as f64
}

#[test]
fn pictures_show_how_early_importance_was_found() {
    let web = TestWeb::start(still(611, 400, 0));
    let archive = crawled_twice(&web);
    let (found, served) = (in_order(&archive), Served::of(&archive));
    let order = &json(&served, "/pictures")["order"];
    assert_eq!((&order["pages"], &order["each_page_of"]), (&found.len().into(), &1.into()));
    let mut best = found.clone();
    best.sort_by(|one, other| other.total_cmp(one));
    for (name, expected) in [("mean_importance", mean(&found)), ("best_mean_importance", mean(&best))] {
        assert!((number(order, name) - expected).abs() < 1e-5, "{name}: {order} instead of {expected}");
    }
    let points = order["points"].as_array().unwrap();
    assert!(
        points.iter().all(|at| number(at, "importance") <= number(at, "best_importance") + 1e-6),
        "{order}"
    );
    assert!((number(points.last().unwrap(), "importance") - 1.0).abs() < 1e-6 && mean(&found) > 0.5);

    // Each run has the pages that it was the first to fetch.
    let runs = ["/runs/1", "/runs/2"].map(|path| json(&served, path)["order"].clone());
    assert_eq!(runs.iter().map(|run| number(run, "pages")).sum::<f64>(), found.len() as f64);
    let first = number(&runs[0], "pages") as usize;
    assert!((100..found.len()).contains(&first), "{first} of {}", found.len());
    for (run, pages) in runs.iter().zip([&found[..first], &found[first..]]) {
        assert!((number(run, "mean_importance") - mean(pages)).abs() < 1e-5, "{run}");
    }
    assert!(html(&served, "/runs/1").contains("<h2>Order of the pages</h2>"));
    let french = html(&served, "/pictures?lang=fr");
    assert!(french.contains("<h2>Ordre des pages</h2>") && french.contains("Convergence de l’importance"));

    // Prepared columns have the same, but for who came first within a second.
    let store = Store::read_only(&archive.path).unwrap();
    let of_tables = OrderPlot::of(&store, None).unwrap();
    prepared::write_in_blocks(store.state(), store.path(), 64).unwrap();
    let of_columns = OrderPlot::of(&store, None).unwrap();
    assert_eq!(of_columns.pages, of_tables.pages);
    assert!((of_columns.best_mean_importance - of_tables.best_mean_importance).abs() < 1e-5);
    let day = 1_767_225_600;
    let of_day = |day: u32| OrderPlot::of(&store, Some(&(day..=day + 86_399))).unwrap();
    assert_eq!([of_day(day), of_day(day + 86_400)].map(|plot| plot.pages), [first as u64, 0]);
    assert!(of_tables.pages < TABLE_PAGES_MAX);

    // A sample is a share of all pages, and finds their importance about as early.
    let looked_at = |most: u64| OrderPlot::of_at_most(&store, None, [most, most]).unwrap();
    let known = u64::from(store.state().url_count());
    assert_eq!([known, known - 1].map(|most| looked_at(most).each_page_of), [1, 2]);
    let check = |whole: &OrderPlot| {
        let some = looked_at(known / 4);
        assert!(some.each_page_of >= 4 && some.pages.abs_diff(whole.pages) < whole.pages / 4, "{some:?}");
        assert!((some.mean_importance - whole.mean_importance).abs() < 0.15, "{some:?}");
    };
    check(&of_columns);
    std::fs::remove_file(archive.path.join(prepared::FILE)).unwrap();
    check(&of_tables);
}

#[test]
fn pictures_show_how_estimates_converged() {
    let web = TestWeb::start(still(612, 400, 0));
    let archive = crawled_twice(&web);
    let served = Served::of(&archive);
    let data = json(&served, "/pictures");
    let convergence = data["convergence"].as_array().unwrap();
    assert_eq!(convergence.len(), 2, "{data}");
    let [first, last] = [&convergence[0], &convergence[1]];
    assert!(
        number(first, "error") > 0.0 && number(first, "error") < 1.0 && number(last, "error") == 0.0,
        "{data}"
    );
    assert!(
        number(first, "captures") >= 100.0 && number(first, "captures") < number(last, "captures"),
        "{data}"
    );
    let clocks: Vec<[f64; 2]> = serde_json::from_value(data["clocks"].clone()).unwrap();
    assert!(
        clocks.len() > 1 && clocks.is_sorted_by(|one, next| one[0] <= next[0] && one[1] <= next[1]),
        "{data}"
    );
    // G goes on in the second run, whose own page begins where the first one ended.
    let moments = |path: &str| json(&served, path)["moments"].as_array().unwrap().clone();
    let [one, two] = ["/runs/1", "/runs/2"].map(moments);
    assert!(number(&two[0], "clock") >= number(one.last().unwrap(), "clock"));
    assert_eq!(clocks.last().unwrap()[1], number(two.last().unwrap(), "clock"));
    let page = html(&served, "/pictures");
    assert_eq!(page.matches("<svg").count(), 9, "{page}");
    assert!(page.contains("of the importance in other places at most"), "{page}");
    assert!(html(&served, "/runs/2").contains("<h2>Convergence of importance</h2>"));
}
