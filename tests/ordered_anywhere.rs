//! Orders reach all archives that they concern: in S3, in crossover, and if a query selects the pages.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cluster::{Nodes, still};
use crate::copies_s3::bad_way;
use crate::decisions::sites;
use crate::ordered::{carry_out, erase, forbidden, listed, log, order, pages, subject};
use crate::sharing::{ask, crawled, folder, share, take_over};
use crate::support::program::{Running, start};
use crate::support::s3::S3;
use crate::support::{Archive, Dice, TestWeb, kills};

/// Number of kills while the query of an order is answered, unless `ARCHIVE_KILLS` overrides it.
const KILLS: u64 = 4;

/// Decides on a site, erases a page of it, and checks that this has reached all archives that have the page; returns
/// their number.
fn reaches_all(nodes: &Nodes) -> usize {
    nodes.run();
    let [one, other] = [&nodes.archives[0], &nodes.archives[1]];
    let (gone, site) = (pages(other)[0].clone(), sites(other)[0].clone());
    let having = |page: &String| [one, other].map(|archive| pages(archive).contains(page));
    let before = having(&gone);
    order(nodes, "review set", &[&site, "--verdict", "never", "--by", "anna"]).succeeded();
    erase(nodes, &[&gone], &[]).succeeded();
    let status = |orders: &Value| json!({ "list": "erasures", "orders": 1, "carried_out_by": 2 - orders.as_object().unwrap().len(), "waiting": orders, "set_aside": {} });
    carry_out(nodes, one).succeeded();
    assert_eq!(nodes.status()["orders"][1], status(&json!({ "2": 1 })));
    take_over(nodes).succeeded();
    assert_eq!(nodes.status()["orders"][1], status(&json!({})));
    assert_eq!(having(&gone), [false; 2]);
    // Archives that had the page, or may fetch it, do not fetch it again; archives that have the site know the
    // decision.
    assert_eq!([one, other].map(|archive| forbidden(archive).contains(&gone)), before);
    let decided = [one, other].map(|archive| log(archive).iter().any(|decision| subject(decision) == site));
    assert_eq!(decided, [one, other].map(|archive| sites(archive).contains(&site)));
    let erased = before.iter().filter(|had| **had).count();
    let expected = format!("  order 1: {}\n", if erased == 1 { "1 page erased" } else { "2 pages erased" });
    assert!(listed(nodes).ends_with(&expected), "{}", listed(nodes));
    nodes.run();
    assert_eq!(having(&gone), [false; 2]);
    erased
}

#[test]
fn orders_in_s3_reach_the_archives_of_their_sites() {
    let served = TestWeb::start(still(103, 80, 0));
    let mut nodes = Nodes::new(&served, 2);
    let Some(server) = S3::start(nodes.store.path()) else { return };
    nodes.s3 = Some((server.address, bad_way(server.address, Dice::new("orders in S3"))));
    assert_eq!(reaches_all(&nodes), 1);
}

#[test]
fn orders_in_crossover_reach_all_archives_that_have_a_page() {
    let served = TestWeb::start(still(104, 80, 0));
    assert_eq!(reaches_all(&Nodes { mode: "crossover", ..Nodes::new(&served, 2) }), 2);
}

fn erase_matching(nodes: &Nodes, query: &str) -> String {
    order(nodes, "erase", &[query, "--reason", "court order", "--yes"]).succeeded().text()
}

#[test]
fn what_matches_a_query_is_erased_in_all_archives_once() {
    let served = TestWeb::start(still(105, 120, 0));
    let nodes = crawled(&served);
    let [one, other] = [&nodes.archives[0], &nodes.archives[1]];
    let restored = other.copy();
    let title = |archive: &Archive| {
        let rows = archive
            .json("query", &["page type = html and status = 200 and title != \"\" select title limit 1"]);
        rows[0]["title"].as_str().unwrap().to_owned()
    };
    let query = format!("captures > 0 and (title = \"{}\" or title = \"{}\")", title(one), title(other));
    let found = |archive: &Archive| -> BTreeSet<String> {
        let rows = archive.json("query", &[&format!("page {query} select url")]);
        rows.iter().map(|row| row["url"].as_str().unwrap().to_owned()).collect()
    };
    let meant = [found(one), found(other)];
    assert!(meant.iter().all(|meant| !meant.is_empty()));

    for (wrong, problem) in [
        ("page colour = red", "colour"),
        ("count pages", "selects numbers"),
        ("page status = 200 limit 1", "so limit, offset, sample"),
        ("page verdict = never", "differs between archives"),
        ("page links to (page status = 404)", "so limit, offset, sample"),
    ] {
        order(&nodes, "erase", &[wrong, "--reason", "x", "--yes"])
            .refused(2, &[problem, "nothing was published"]);
    }
    let forgetting = [&query, "--reason", "x", "--yes", "--forget-url"];
    order(&nodes, "erase", &forgetting).refused(2, &["an erasure by query names no URLs and forgets none"]);
    assert_eq!(listed(&nodes), "");

    assert_eq!(erase_matching(&nodes, &query), "erasures: order 1 is published, for all partitions\n");
    let held = archive_storage::Owner::of(&other.path).unwrap();
    take_over(&nodes).refused(1, &[folder(other), "erasures: order 1 waits"]);
    drop(held);
    take_over(&nodes).succeeded();
    take_over(&nodes).succeeded();
    assert_eq!([one, other].map(|archive| found(archive).len()), [0, 0]);
    assert_eq!([one, other].map(forbidden), meant);
    let expected = format!(
        "erasures: 3 orders, carried out by all partitions\n  order 1: {} pages that match its query are named by further orders\n",
        meant[0].len() + meant[1].len()
    );
    assert!(listed(&nodes).starts_with(&expected), "{}", listed(&nodes));
    let rows = ask(&nodes, &["--json"]).succeeded().json();
    assert_eq!(
        rows[1],
        json!({ "list": "erasures", "order": 2, "taken": meant[0].len(), "left": 0, "named": 0, "waits_for": [], "set_aside_by": [] })
    );

    // A page whose erasure was lifted since is not erased again if an older copy of an archive carries out all orders
    // once more.
    let lifted = meant[1].first().unwrap();
    order(&nodes, "erase", &["--lift", lifted]).succeeded();
    let rest: BTreeSet<String> = meant[1].iter().skip(1).cloned().collect();
    for archive in [other, &restored] {
        carry_out(&nodes, archive).succeeded();
        assert_eq!(forbidden(archive), rest);
    }
    assert!(listed(&nodes).starts_with("erasures: 4 orders"), "{}", listed(&nodes));
    assert_eq!(found(&restored).len(), 0);
    fs::remove_file(other.path.join("orders.json")).unwrap();
    take_over(&nodes).succeeded();
    assert_eq!(listed(&nodes).matches("named by").count(), 1);
    assert_eq!(forbidden(other), rest);

    // A crawl carries out orders with queries before it fetches anything.
    let left = pages(other)[0].clone();
    erase_matching(&nodes, &format!("url = \"{left}\""));
    let crawl = start(nodes.crawl(1).args(["--for", "4s"])).wait();
    assert!(
        crawl.errors.contains("order 5: ") && crawl.errors.contains("order 6: 1 page erased"),
        "{crawl:?}"
    );
    assert!(forbidden(other).contains(&left));
    other.verify();
}

#[test]
fn an_order_whose_query_an_archive_can_never_answer_holds_up_nothing() {
    let served = TestWeb::start(still(108, 120, 0));
    let nodes = Nodes::brisk(&served, 2);
    let crawl = |node: usize| match node {
        0 => start(&mut nodes.crawl(0)),
        _ => start(nodes.crawl(1).arg("--no-full-text")),
    };
    for node in [crawl(0), crawl(1)] {
        node.wait().succeeded();
    }
    let [one, other] = [&nodes.archives[0], &nodes.archives[1]];
    // Orders of a later program version have more fields.
    let folder = nodes.store.path().join("files/erasures");
    fs::create_dir_all(&folder).unwrap();
    let erase_as = json!({ "reason": "x", "keep_copies": false, "forget_url": false });
    let newer = json!({ "time": "2026-01-01T00:00:00Z", "urls": [], "query": "page colour = red", "erase": erase_as });
    fs::write(folder.join("0000000001"), newer.to_string()).unwrap();
    let words = "page type = html and status = 200 and title != \"\" select url, title order by url limit 1";
    let found = one.json("query", &[words]).remove(0);
    let word = found["title"].as_str().unwrap().split(' ').next().unwrap();
    let url = found["url"].as_str().unwrap();
    let text = format!("page text contains \"{word}\" and url = \"{url}\" order by url");
    assert_eq!(erase_matching(&nodes, &text), "erasures: order 2 is published, for all partitions\n");
    let gone = pages(other)[0].clone();
    erase(&nodes, &[&gone], &[]).succeeded();

    let errors = take_over(&nodes).refused(1, &["order 1 is set aside", "colour"]).errors;
    let aside = |archive: &Archive, order: u64| {
        errors.contains(&format!("{}: erasures: order {order} is set aside", archive.path.display()))
    };
    assert_eq!(
        [one, other].map(|archive| [1, 2].map(|order| aside(archive, order))),
        [[true, false], [true, true]]
    );
    assert!(errors.contains("has no full-text index"), "{errors}");
    assert!(!pages(other).contains(&gone) && !pages(one).iter().any(|url| *url == found["url"]));
    take_over(&nodes).succeeded();
    let expected = [
        "erasures: 4 orders, carried out by all partitions\n",
        "  order 1: set aside by partitions 1, 2, which cannot answer its query",
        "  order 2: set aside by partition 2, which cannot answer its query",
        "  order 2: 1 page that match its query are named",
        "  order 3: 1 page erased\n",
    ];
    for line in expected {
        assert!(listed(&nodes).contains(line), "{line}: {}", listed(&nodes));
    }
    assert_eq!(nodes.status()["orders"][1]["set_aside"], json!({ "1": [1, 2], "2": [2] }));
    let rows = ask(&nodes, &["--json"]).succeeded().json();
    assert_eq!([&rows[1]["set_aside_by"], &rows[2]["set_aside_by"]], [&json!([2]), &json!([])]);

    // A crawl begins nevertheless, and reports it.
    erase_matching(&nodes, &text);
    let errors = crawl(1).wait().succeeded().errors;
    assert!(errors.contains("order 5 is set aside"), "{errors}");
    other.verify();
}

#[test]
fn a_query_whose_answer_is_killed_leads_to_one_order_in_the_end() {
    let served = TestWeb::start(still(106, 120, 0));
    let nodes = crawled(&served);
    let (own, mut dice) = (&nodes.archives[0], Dice::new("ordered by query"));
    let (known, kills) = (pages(own), kills(KILLS));
    for gone in known.iter().take(kills as usize) {
        erase_matching(&nodes, &format!("url = \"{gone}\""));
        let running = start(&mut share(&nodes, &["--archive", folder(own)]));
        thread::sleep(Duration::from_micros(dice.below(300_000)));
        running.kill();
        carry_out(&nodes, own).succeeded();
        assert!(!pages(own).contains(gone) && forbidden(own).contains(gone), "{gone}");
    }
    assert_eq!(ask(&nodes, &["--json"]).succeeded().json().len() as u64, 2 * kills);
    own.verify();
}

#[test]
fn orders_that_are_given_at_the_same_moment_get_numbers_of_their_own() {
    let served = TestWeb::start(still(107, 40, 0));
    let nodes = crawled(&served);
    let give = |person: u64| -> Running {
        let mut command = Command::new(env!("CARGO_BIN_EXE_archive"));
        command.args(["review", "set", "a.test", "--rating", "4", "--cluster", &nodes.url()]);
        start(command.args(["--by", &format!("person {person}")]))
    };
    let running: Vec<Running> = (0..8).map(give).collect();
    let texts: BTreeSet<String> = running.into_iter().map(|one| one.wait().succeeded().text()).collect();
    assert_eq!(texts.len(), 8, "{texts:?}");
    assert!(listed(&nodes).starts_with("decisions: 8 orders, "), "{}", listed(&nodes));
}
