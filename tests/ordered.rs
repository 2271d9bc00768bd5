//! Decisions and erasures are ordered for a whole cluster, and each archive carries out those of its sites, once,
//! whatever happens.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use archive_books::cluster::{Division, Mode, ORDERS_MAX, Partition};
use archive_peers::share::orders::ORDER_BYTES_MAX;
use archive_storage::Store;
use archive_storage::address::site_of;
use serde_json::Value;

use crate::cluster::{Nodes, still};
use crate::decisions::sites;
use crate::sharing::{ask, crawled, folder, share, take_over};
use crate::support::program::{Finished, start};
use crate::support::{Archive, Dice, TestWeb, captures, kills};

/// Number of kills of the execution of an erase, unless `ARCHIVE_KILLS` overrides it.
const KILLS: u64 = 6;

/// Publishes an order to a cluster.
pub(crate) fn order(nodes: &Nodes, command: &str, more: &[&str]) -> Finished {
    let mut order = Command::new(env!("CARGO_BIN_EXE_archive"));
    order.args(command.split(' ')).args(more).args(["--cluster", &nodes.url()]);
    start(nodes.reach(&mut order)).wait()
}

fn import(nodes: &Nodes, sheet: &str, more: &[&str]) -> Finished {
    let file = nodes.archives[0].file("sheet.csv", sheet);
    order(nodes, "review import", &[&[file.to_str().unwrap(), "--by", "anna"], more].concat())
}

pub(crate) fn erase(nodes: &Nodes, urls: &[&str], more: &[&str]) -> Finished {
    let list = nodes.archives[0].file("list.txt", urls.join("\n"));
    let list = ["--urls", list.to_str().unwrap(), "--reason", "court order", "--yes"];
    order(nodes, "erase", &[&list, more].concat())
}

pub(crate) fn carry_out(nodes: &Nodes, archive: &Archive) -> Finished {
    ask(nodes, &["--archive", folder(archive)])
}

pub(crate) fn listed(nodes: &Nodes) -> String {
    ask(nodes, &[]).succeeded().text()
}

pub(crate) fn log(archive: &Archive) -> Vec<Value> {
    archive.json("review log", &[""; 0])
}

/// Returns the subject of a decision.
pub(crate) fn subject(decision: &Value) -> String {
    let on = decision["what"]["said"]["on"].as_object().unwrap();
    on.values().next().unwrap().as_str().unwrap().to_owned()
}

/// Returns the pages with a capture that has content.
pub(crate) fn pages(archive: &Archive) -> Vec<String> {
    let rows = archive.json("query", &["page type = html and status = 200 select url order by url"]);
    rows.iter().map(|row| row["url"].as_str().unwrap().to_owned()).collect()
}

pub(crate) fn forbidden(archive: &Archive) -> BTreeSet<String> {
    let name = |row: &Value| match row["url"].as_str() {
        Some(url) => url.to_owned(),
        None => format!("urn:sha256:{}", row["sha256"].as_str().unwrap()),
    };
    archive.json("erase", &["--list"]).iter().map(name).collect()
}

/// Returns a URL that was never seen, on a site of this node's partition.
fn elsewhere(nodes: &Nodes, node: usize) -> String {
    let known = sites(&nodes.archives[node]);
    format!("http://{}/never/seen", known[0])
}

/// Returns the objects of copies that contain `needle`.
fn objects_with(folder: &std::path::Path, needle: &str) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if fs::read(&path).unwrap().windows(needle.len()).any(|part| part == needle.as_bytes()) {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn decisions_reach_the_archives_of_their_sites_once() {
    let served = TestWeb::start(still(97, 60, 0));
    let nodes = crawled(&served);
    let [one, other] = [&nodes.archives[0], &nodes.archives[1]];
    let own = [sites(one), sites(other)];
    let all: Vec<&String> = own.iter().flatten().collect();
    let before = one.copy();
    let rows: String = all.iter().map(|site| format!("{site},4,,,2020-01-01 00:00:00\n")).collect();
    let sheet = format!("site,rating,comment,verdict,exported\n{rows}");
    import(&nodes, "site,rating\na.test,9\n", &[]).refused(2, &["expected 1, 2, 3 or 4"]);
    import(&nodes, "site,rating\na.test/b,1\n", &[]).refused(2, &["is neither a site"]);
    order(&nodes, "review set", &["a.test", "--by", "anna"])
        .refused(2, &["it says nothing", "nothing was published"]);
    order(&nodes, "review undo", &["1", "--by", "anna"])
        .refused(2, &["order 1 of the list decisions decides nothing"]);
    assert_eq!(listed(&nodes), "");
    assert_eq!(
        import(&nodes, &sheet, &[]).succeeded().text(),
        "decisions: order 1 is published, for all partitions\n"
    );
    assert_eq!(
        listed(&nodes),
        "decisions: 1 order, carried out by 0 of 2 partitions, not yet by partitions 1, 2\n"
    );

    // The second node is down and returns later.
    let text = carry_out(&nodes, one).succeeded().text();
    assert_eq!(text, format!("{}: decisions: order 1: {} decisions taken in\n", folder(one), own[0].len()));
    assert_eq!(
        listed(&nodes),
        "decisions: 1 order, carried out by 1 of 2 partitions, not yet by partition 2\n"
    );
    assert_eq!((log(one).len(), log(other).len()), (own[0].len(), 0));
    take_over(&nodes).succeeded();
    assert_eq!(listed(&nodes), "decisions: 1 order, carried out by all partitions\n");
    for (archive, sites) in [one, other].into_iter().zip(&own) {
        let decisions = log(archive);
        assert_eq!(decisions.iter().map(subject).collect::<BTreeSet<_>>(), sites.iter().cloned().collect());
        assert!(decisions.iter().all(|decision| decision["by"] == "anna"), "{decisions:?}");
    }

    // The same order again, without the note (as after a crash before it was written), and as a second order, changes
    // nothing.
    let decided = || [log(one), log(other)];
    let expected = decided();
    assert_eq!(take_over(&nodes).succeeded().text(), "");
    fs::remove_file(one.path.join("orders.json")).unwrap();
    import(&nodes, &sheet, &[]).succeeded();
    take_over(&nodes).succeeded();
    assert_eq!(decided(), expected);
    assert_eq!(listed(&nodes), "decisions: 2 orders, carried out by all partitions\n");

    // An archive restored from an older copy makes the decisions, too.
    carry_out(&nodes, &before).succeeded();
    assert_eq!(log(&before), expected[0]);

    // A decision made in an archive after the export of the sheet is kept and reported.
    let site = own[1][0].as_str();
    other.run("review set", &[site, "--by", "ben", "--verdict", "never"]).succeeded();
    let old = format!("site,rating,verdict,exported\n{site},,keep,2020-01-01 00:00:00\n");
    assert_eq!(
        import(&nodes, &old, &[]).succeeded().text(),
        "decisions: order 3 is published, for partition 2\n"
    );
    take_over(&nodes).refused(1, &[&format!("order 3: {site} is left alone: ben has decided")]);
    assert!(listed(&nodes).ends_with("  order 3: 1 decision in conflict, left out\n"), "{}", listed(&nodes));
    let verdict =
        || other.json("query", &[&format!("site site = \"{site}\" select verdict")])[0]["verdict"].clone();
    assert_eq!(verdict(), "never");
    import(&nodes, &old, &["--overwrite"]).succeeded();
    take_over(&nodes).succeeded();
    assert_eq!(verdict(), "keep");

    // An order is undone completely, and decisions on pages and hosts reach them, too.
    order(&nodes, "review undo", &["4", "--by", "anna"]).succeeded();
    let page = pages(other)[0].clone();
    order(&nodes, "review set", &[&page, "--tag", "maps", "--by", "anna"]).succeeded();
    take_over(&nodes).succeeded();
    assert_eq!(verdict(), "never");
    assert_eq!(subject(log(other).last().unwrap()), page);
    assert_eq!(log(one), expected[0]);
}

#[test]
fn what_is_to_be_erased_goes_wherever_it_is_and_does_not_come_back() {
    let served = TestWeb::start(still(98, 120, 0));
    let nodes = crawled(&served);
    let [one, other] = [&nodes.archives[0], &nodes.archives[1]];
    let (before, copied) = (other.copy(), tempfile::tempdir().unwrap());
    let copies = format!("file://{}", copied.path().display());
    start(other.command("copy").args(["--to", &copies])).wait().succeeded();
    let known = [pages(one), pages(other)];
    let (gone, kept) = (known[1][0].as_str(), known[0].as_slice());
    let unseen = elsewhere(&nodes, 0);
    order(&nodes, "erase", &["--urls", "list.txt", "--dry-run"])
        .refused(2, &["--dry-run does not work with --cluster"]);
    order(&nodes, "erase", &["--list"]).refused(2, &["give QUERY, --urls FILE or --lift URL"]);
    erase(&nodes, &[], &[]).refused(2, &["it names no page"]);
    let erased = erase(&nodes, &[gone, &unseen], &[]).succeeded().text();
    assert_eq!(erased, "erasures: order 1 is published, for all partitions\n");

    // While a crawl owns the archive, the order waits.
    let held = archive_storage::Owner::of(&other.path).unwrap();
    take_over(&nodes).refused(1, &[folder(other), "erasures: order 1 waits", "process"]);
    assert_eq!(
        listed(&nodes),
        "erasures: 1 order, carried out by 1 of 2 partitions, not yet by partition 2\n  order 1: 0 pages erased so far\n"
    );
    drop(held);
    let text = take_over(&nodes).succeeded();
    assert!(text.text().contains("erasures: order 1: 1 page erased"), "{text:?}");
    assert!(text.errors.contains(&format!("copies in {copies} still hold it")), "{}", text.errors);
    assert_eq!(
        listed(&nodes),
        "erasures: 1 order, carried out by all partitions\n  order 1: 1 page erased\n"
    );
    assert!(!pages(other).contains(&gone.to_owned()));
    assert_eq!(pages(one), kept);
    // Each partition lists the erased pages of its sites, including those it has never fetched.
    assert_eq!((forbidden(one), forbidden(other)), ([unseen.clone()].into(), [gone.to_owned()].into()));
    assert_eq!(take_over(&nodes).succeeded().text(), "");

    // Erasing twice has the same effect, and it is reported if no partition has a page.
    erase(&nodes, &[gone], &[]).succeeded();
    erase(&nodes, &[&unseen], &[]).succeeded();
    take_over(&nodes).succeeded();
    assert!(
        listed(&nodes).ends_with("order 2: 1 page erased\n  order 3: no partition has any of its pages\n"),
        "{}",
        listed(&nodes)
    );

    // A crawl that continues with an older copy of the archive erases first, and fetches none of the erased pages; its
    // next copy is the only one.
    let mut again = nodes.crawl_in(&before, 1);
    let again = start(again.args(["--copy-to", &copies, "--checkpoint-every", "1s"])).wait();
    assert!(again.errors.contains("erasures: order 1: 1 page erased"), "{again:?}");
    assert!(!pages(&before).contains(&gone.to_owned()));
    assert!(forbidden(&before).contains(gone));

    // Once the order is lifted, the page is fetched again.
    order(&nodes, "erase", &["--lift", gone]).succeeded();
    take_over(&nodes).succeeded();
    assert_eq!(forbidden(other), BTreeSet::new());
    other.verify();
}

#[test]
fn copies_of_a_crawl_lose_what_an_order_has_erased() {
    let served = TestWeb::start(still(99, 120, 0));
    let nodes = crawled(&served);
    let own = &nodes.archives[1];
    let copied = tempfile::tempdir().unwrap();
    let copies = format!("file://{}", copied.path().display());
    let crawl = || {
        let mut crawl = nodes.crawl(1);
        start(crawl.args(["--copy-to", &copies])).wait().succeeded()
    };
    crawl();
    let gone = pages(own)[0].clone();
    let of_segments = || -> BTreeSet<String> {
        let list = own.run("copy", &["--list", "--json", "--to", &copies]).json();
        list.iter().map(|copy| copy["number"].to_string()).collect()
    };
    let before = of_segments();
    assert!(!objects_with(copied.path(), &gone).is_empty());
    erase(&nodes, &[&gone], &["--forget-url"]).succeeded();
    assert!(
        objects_with(nodes.store.path(), &gone).is_empty(),
        "orders name what is to be forgotten by its digest"
    );
    let crawled = crawl();
    assert!(crawled.errors.contains("erasures: order 1: 1 page erased"), "{crawled:?}");
    let after = of_segments();
    assert!(!after.is_empty() && after.is_disjoint(&before), "{before:?}, {after:?}");
    let restored = Archive::new();
    restored.run("copy", &["--from", &copies]).succeeded();
    assert_eq!(pages(&restored), pages(own));
    assert!(!pages(own).contains(&gone));
    assert!(forbidden(own).iter().all(|name| name.starts_with("urn:sha256:")));
    own.run("copy", &["--verify", "--to", &copies]).succeeded();
}

#[test]
fn a_partition_that_begins_later_begins_with_its_orders() {
    let served = TestWeb::start(still(102, 120, 0));
    let nodes = Nodes { seeds: served.web.seeds(16), ..Nodes::new(&served, 2) };
    start(nodes.crawl(0).args(["--limit", "5"])).wait().succeeded();
    let any =
        Partition { cluster: String::new(), number: 1, count: 2, mode: Mode::default(), by: Division::Site };
    let host = |url: &str| url::Url::parse(url).unwrap().host_str().unwrap().to_owned();
    let is_other = |url: &&String| any.of_site(site_of(&host(url))) == 2;
    let gone = nodes.seeds.iter().find(is_other).unwrap();
    erase(&nodes, &[gone], &["--keep-copies"]).succeeded();
    order(&nodes, "review set", &[gone, "--verdict", "never", "--by", "anna"]).succeeded();
    let begun = start(nodes.crawl(1).args(["--limit", "20"])).wait().succeeded();
    assert!(begun.errors.contains("decisions: order 1: 1 decision taken in"), "{}", begun.errors);
    let own = &nodes.archives[1];
    assert_eq!((forbidden(own), log(own).len()), ([gone.clone()].into(), 1));
    assert!(!captures(&own.path).urls().contains(gone));
    assert!(
        listed(&nodes)
            .contains("decisions: 1 order, carried out by 1 of 2 partitions, not yet by partition 1\n"),
        "{}",
        listed(&nodes)
    );
}

#[test]
fn an_erase_that_is_killed_is_carried_out_in_the_end() {
    let served = TestWeb::start(still(100, 200, 0));
    let nodes = crawled(&served);
    let (own, mut dice) = (&nodes.archives[0], Dice::new("ordered"));
    let known = pages(own);
    let kills = kills(KILLS);
    for number in 1..=kills {
        let gone = known[number as usize].as_str();
        erase(&nodes, &[gone], &[]).succeeded();
        let running = start(&mut share(&nodes, &["--archive", folder(own)]));
        std::thread::sleep(Duration::from_micros(dice.below(400_000)));
        running.kill();
        let last = carry_out(&nodes, own).succeeded();
        assert!(!pages(own).contains(&gone.to_owned()), "{last:?}");
        let report = listed(&nodes);
        assert!(report.ends_with(&format!("order {number}: 1 page erased so far\n")), "{report}");
    }
    own.verify();
    assert_eq!(pages(own).len() + usize::try_from(kills).unwrap(), known.len());
    let store = Store::read_only(&own.path).unwrap();
    assert!(captures(&own.path).count() > 0 && store.missing().is_empty());
}

#[test]
fn orders_have_limits_and_foreign_ones_are_refused() {
    let served = TestWeb::start(still(101, 40, 0));
    let nodes = crawled(&served);
    let [one, other] = [&nodes.archives[0], &nodes.archives[1]];
    let put = |list: &str, number: u64, bytes: &[u8]| {
        let folder = nodes.store.path().join("files").join(list);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{number:010}")), bytes).unwrap();
    };
    // An order of the largest allowed size is carried out; a larger one is not published.
    let most = ORDER_BYTES_MAX as usize;
    let long = |bytes: usize| {
        let head = r#"{"time":"2026-01-01T00:00:00Z","urls":["http://a.test/"],"erase":null"#;
        format!("{head}{}}}", " ".repeat(bytes - head.len() - 1)).into_bytes()
    };
    put("erasures", 1, &long(most));
    take_over(&nodes).succeeded();
    put("erasures", 2, &long(most + 1));
    take_over(&nodes).refused(1, &["files/erasures/0000000002", "longer than"]);
    let url = |number: usize| format!("http://a.test/{number:0>1000}");
    let urls: Vec<String> = (0..most / 1000).map(url).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    erase(&nodes, &urls, &[]).refused(2, &["longer than", "publish it in parts"]);
    put("erasures", 2, b"");

    // An order that makes no sense blocks the archives, and a crawl that would begin, until it is removed.
    let decided = |by: &str, on: &str| {
        let rows = format!(r#"[{{"said":{{"on":{on},"rating":4}}}}]"#);
        format!(
            r#"{{"import":{{"time":"2026-01-01T00:00:00Z","by":"{by}","overwrite":true,"rows":{rows}}}}}"#
        )
    };
    let wrong = [
        ("decisions", "{}".to_owned(), "expected"),
        ("decisions", decided("", r#"{"site":"a.test"}"#), "the name of the person"),
        ("decisions", decided("anna", r#"{"page":"a.test"}"#), "is no site, host, folder or page"),
        (
            "decisions",
            r#"{"undo":{"order":1,"time":"2026-01-01T00:00:00Z","by":" "}}"#.to_owned(),
            "the name of the person",
        ),
        (
            "erasures",
            r#"{"time":"2026-01-01T00:00:00Z","urls":["HTTP://a.test"],"erase":null}"#.to_owned(),
            "is not a URL as archives write it",
        ),
        (
            "erasures",
            r#"{"time":"2026-01-01T00:00:00Z","urls":["urn:sha256:00"],"erase":null}"#.to_owned(),
            "is not a URL as archives write it",
        ),
    ];
    let mut numbers = [("decisions", 0), ("erasures", 2)];
    for (list, bytes, problem) in wrong {
        let number = numbers
            .iter_mut()
            .find(|(name, _)| *name == list)
            .map(|(_, number)| {
                *number += 1;
                *number
            })
            .unwrap();
        put(list, number, bytes.as_bytes());
        let name = format!("files/{list}/{number:010} is damaged");
        take_over(&nodes).refused(1, &[&name, problem, "empty object in its place"]);
        start(&mut nodes.crawl(0)).wait().refused(1, &[&name, problem]);
        put(list, number, b"");
        take_over(&nodes).succeeded();
    }
    // The number of an order that was carried out is not reused, even if the order is removed.
    fs::remove_file(nodes.store.path().join("files/decisions/0000000004")).unwrap();
    let set = ["a.test", "--rating", "4", "--by", "anna"];
    assert!(
        order(&nodes, "review set", &set).succeeded().text().starts_with("decisions: order 5 is published")
    );
    put("decisions", ORDERS_MAX, b"");
    order(&nodes, "review set", &set).refused(1, &["decisions: at most 10000 can be published"]);
    put("decisions", u64::MAX, b"");
    take_over(&nodes).refused(1, &["decisions: at most 10000"]);
    let remove =
        |number: u64| fs::remove_file(nodes.store.path().join(format!("files/decisions/{number:010}")));
    [ORDERS_MAX, u64::MAX].into_iter().for_each(|number| remove(number).unwrap());

    // Only partitions of the cluster take orders, and reports of archives are not trusted.
    ask(&nodes, &["--remove", "decisions"]).refused(2, &["the orders in 'decisions' cannot be removed"]);
    let alone = Archive::new();
    start(&mut alone.crawl(&served.web.seeds(1), &served.at_once())).wait().succeeded();
    carry_out(&nodes, &alone).refused(1, &["is not a partition of this cluster"]);
    fs::write(one.path.join("orders.json"), " ".repeat((1 << 20) + 1)).unwrap();
    carry_out(&nodes, one).refused(1, &["orders.json", "longer than"]);
    fs::remove_file(one.path.join("orders.json")).unwrap();
    let reports = nodes.store.path().join("reports/2");
    fs::write(reports.join("9999999999"), "[]").unwrap();
    carry_out(&nodes, other).refused(1, &["reports/2/9999999999 is damaged"]);
}
