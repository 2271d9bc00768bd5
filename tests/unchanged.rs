//! An unchanged web stays the same for the archive, however often it is fetched: the importance of its pages, which
//! pages have their own account, their kind and language. The same holds after a rebuild.

use std::collections::BTreeMap;

use archive_books::ledger::account_of;
use archive_storage::Store;
use serde_json::Value;

use crate::support::judges;
use crate::support::program::start;
use crate::support::site::{Manner, Site};
use crate::support::{Archive, in_full, ledger_balances};

/// Largest drift of importance in a refresh of an unchanged web or in a rebuild: summed over all pages, as a share of
/// the total.
const DRIFT_MAX: f64 = 0.002;

/// What people see of a page, except its importance.
type Page = BTreeMap<String, Value>;

/// An archive and its contents after the first crawl.
struct Kept {
    archive: Archive,
    site: Site,
    importance: BTreeMap<String, f64>,
    pages: Vec<Page>,
    accounts: BTreeMap<String, Option<String>>,
}

impl Kept {
    /// Crawls the site.
    fn crawled() -> Self {
        let (archive, site) = (Archive::new(), Site::start());
        start(&mut archive.crawl(&[site.url("/")], &["--delay", "0", "--allow-private"])).wait().succeeded();
        let mut kept =
            Self { archive, site, importance: BTreeMap::new(), pages: Vec::new(), accounts: BTreeMap::new() };
        (kept.importance, kept.pages, kept.accounts) = (kept.importance(), kept.pages(), kept.accounts());
        assert!(kept.pages.len() > 80, "{} pages", kept.pages.len());
        kept
    }

    fn refresh(&self, budget: &str) {
        let mut command = self.archive.command("refresh");
        command.args(["--budget", budget, "--shortest", "0s", "--delay", "0", "--allow-private"]);
        let finished = start(command.args(["--patience", "2s"])).wait();
        // A site that is out of order puts everything off.
        assert!(matches!(finished.code, Some(0 | 4)), "{}", finished.errors);
        assert!(!finished.errors.contains("nothing was due"), "{}", finished.errors);
    }

    fn importance(&self) -> BTreeMap<String, f64> {
        importance(&self.archive)
    }

    fn pages(&self) -> Vec<Page> {
        let query =
            "captures > 0 select url, title, type, content_type, language, status, versions order by url";
        let rows = self.archive.json("query", &[query]);
        rows.into_iter().map(|row| serde_json::from_value(row).unwrap()).collect()
    }

    /// Returns the URL whose account each URL uses.
    fn accounts(&self) -> BTreeMap<String, Option<String>> {
        let store = Store::read_only(&self.archive.path).unwrap();
        let state = store.state();
        let ids = state.visits(0).map(|visit| visit.unwrap().0);
        ids.map(|id| {
            let account = account_of(state, id).unwrap().map(|account| state.url(account).unwrap());
            (state.url(id).unwrap(), account)
        })
        .collect()
    }

    /// Fails unless the archive is as it was after the first crawl.
    fn is_as_it_was(&self, when: &str) {
        for (url, account) in self.accounts() {
            assert_eq!(account, self.accounts[&url], "{when}: whose account {url} uses");
        }
        for (now, before) in self.pages().iter().zip(&self.pages) {
            assert_eq!(now, before, "{when}");
        }
        is_unmoved(&self.importance, &self.importance(), when);
        ledger_balances(&self.archive.path);
    }
}

/// Returns the importance of all pages.
pub(crate) fn importance(archive: &Archive) -> BTreeMap<String, f64> {
    let rows = archive.json("query", &["page importance >= 0 select url, importance"]);
    let row = |row: &Value| (row["url"].as_str().unwrap().to_owned(), row["importance"].as_f64().unwrap());
    rows.iter().map(row).collect()
}

/// Fails unless importance is unchanged, within the tolerance for estimates.
pub(crate) fn is_unmoved(before: &BTreeMap<String, f64>, after: &BTreeMap<String, f64>, when: &str) {
    assert!(before.keys().eq(after.keys()), "{when}");
    for (url, importance) in before {
        assert_eq!(
            after[url] == 0.0,
            *importance == 0.0,
            "{when}: {url} had {importance}, has {}",
            after[url]
        );
    }
    let moved: f64 = before.iter().map(|(url, importance)| (after[url] - importance).abs()).sum();
    let drift = moved / before.values().sum::<f64>();
    println!("{when}: importance has moved by {drift:.5}");
    assert!(drift < DRIFT_MAX, "{when}: importance has moved by {drift}");
}

#[test]
fn a_refresh_of_an_unchanged_site_leaves_importance_as_it_was() {
    let kept = Kept::crawled();
    for (page, copy) in kept.site.pairs() {
        let (page, copy) = (kept.site.url(&page), kept.site.url(&copy));
        let account = kept.accounts[&page].clone().unwrap();
        assert_eq!(kept.accounts[&copy], Some(account), "{copy} is {page}");
        assert_eq!(kept.importance[&copy], kept.importance[&page]);
    }
    for run in 1..=3 {
        kept.refresh("20");
        kept.is_as_it_was(&format!("after {run} refreshes of 20 pages"));
    }
    for manner in [Manner::Validators, Manner::Whole] {
        kept.site.answer(manner);
        for run in 1..=in_full(7, 20) {
            kept.refresh("1000");
            kept.is_as_it_was(&format!("after refresh {run} of everything, {manner:?}"));
        }
    }
    kept.archive.run::<&str>("rebuild", &[]).succeeded();
    kept.is_as_it_was("after a rebuild");
    kept.archive.verify();
}

#[test]
fn a_rebuild_of_a_crawl_gives_its_importance() {
    let kept = Kept::crawled();
    kept.archive.run::<&str>("rebuild", &[]).succeeded();
    kept.is_as_it_was("after a rebuild");
}

/// A server that is out of order for an hour says nothing about its pages.
#[test]
fn a_site_that_is_out_of_order_keeps_its_importance() {
    let kept = Kept::crawled();
    for manner in [Manner::OutOfOrder, Manner::NoHttp] {
        kept.site.answer(manner);
        kept.refresh("1000");
        assert_eq!(kept.accounts(), kept.accounts, "{manner:?}");
        is_unmoved(&kept.importance, &kept.importance(), &format!("{manner:?}"));
        ledger_balances(&kept.archive.path);
    }
    kept.site.answer(Manner::Validators);
    kept.refresh("1000");
    kept.is_as_it_was("after the server works again");
    kept.archive.run::<&str>("rebuild", &[]).succeeded();
    kept.is_as_it_was("after a rebuild");
}

/// Pages that return answer 304: they are what they were before they vanished.
#[test]
fn a_site_that_comes_back_has_its_importance_again() {
    let kept = Kept::crawled();
    kept.site.answer(Manner::Gone);
    kept.refresh("1000");
    assert_eq!(kept.importance().values().filter(|importance| **importance > 0.0).count(), 0);
    kept.site.answer(Manner::Validators);
    let found: Vec<&str> = kept
        .pages
        .iter()
        .filter(|page| page["status"] != 404)
        .map(|page| page["url"].as_str().unwrap())
        .collect();
    // An announcement counts from the second after the last fetch.
    std::thread::sleep(std::time::Duration::from_secs(1));
    kept.archive.run("publish", &found).succeeded();
    kept.refresh("1000");
    // A copy that returns before its original is its own page until it is checked again.
    kept.refresh("1000");
    kept.refresh("1000");
    kept.is_as_it_was("after the pages are there again");
    kept.archive.run::<&str>("rebuild", &[]).succeeded();
    kept.is_as_it_was("after a rebuild");
}

#[test]
fn copies_have_the_language_of_what_they_are_copies_of() {
    let kept = Kept::crawled();
    let field = |path: &str, field: &str| {
        let rows =
            kept.archive.json("query", &[&format!("url = \"{}\" select {field}", kept.site.url(path))]);
        rows[0][field].as_str().unwrap_or_default().to_owned()
    };
    let pairs = kept.site.pairs();
    for manner in [Manner::Validators, Manner::Whole] {
        for path in pairs.iter().flat_map(|(page, copy)| [page, copy]) {
            assert_eq!(field(path, "language"), "en", "{path}");
            assert_eq!(field(path, "type"), "html", "{path}");
            assert_eq!(field(path, "content_type"), "text/html", "{path}");
        }
        assert_eq!(field("/de/c1.html", "language"), "de");
        kept.site.answer(manner);
        kept.refresh("1000");
    }
    let query = "language = \"en\" and type = html and status = 200 select url";
    let found = kept.archive.json("query", &[query]).len();
    kept.archive.run::<&str>("rebuild", &[]).succeeded();
    assert_eq!(kept.archive.json("query", &[query]).len(), found);
    assert_eq!(found, 2 + 40 + 20 + 2, "home, chapters, German ones that fall back, small pages");
}

#[test]
fn a_table_of_captures_says_what_revisits_stand_for() {
    let Some(judges) = judges::find() else { return };
    let kept = Kept::crawled();
    for manner in [Manner::Validators, Manner::Whole] {
        kept.site.answer(manner);
        kept.refresh("1000");
    }
    let path = kept.archive.folder().join("index.parquet");
    start(kept.archive.command("export").args(["parquet", "--text", "--output"]).arg(&path))
        .wait()
        .succeeded();
    let script = "import duckdb, json, sys
print(json.dumps(duckdb.sql(f\"select fetch_status, content_mime_type, content_mime_detected, content_languages, \\
    subset, revisit, count(title), count(text), count(*) from '{sys.argv[1]}' where url like '%/c_.html' or url like '%/index.html' \\
    group by all order by all\").fetchall()))";
    let output = judges::succeed(judges.program("python").args(["-c", script]).arg(&path), "");
    let rows: Value = serde_json::from_str(&output).unwrap();
    let html = ["text/html", "text/html"];
    let row = |language: &str, revisit: Option<&str>, texts: u64, count: u64| {
        let subset = if revisit.is_some() { "crawldiagnostics" } else { "warc" };
        serde_json::json!([200, html[0], html[1], language, subset, revisit, count, texts, count])
    };
    // Ten chapters and the home page: once new, once not modified, once identical; five of the German chapters are the
    // English ones.
    let expected = Value::Array(vec![
        row("deu", Some("identical"), 0, 5),
        row("deu", Some("not-modified"), 0, 5),
        row("deu", None, 5, 5),
        row("eng", Some("identical"), 0, 22),
        row("eng", Some("not-modified"), 0, 16),
        row("eng", None, 10, 10),
    ]);
    assert_eq!(rows, expected);
}
