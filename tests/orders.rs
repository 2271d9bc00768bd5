//! Every crawl order fetches the same pages, each in its own order, also across a restart.

use std::collections::BTreeSet;

use archive_storage::{Store, UrlId};
use archive_testweb::{Clock, Config};

use crate::support::answers::{Answers, html, plain};
use crate::support::program::start;
use crate::support::{Archive, TestWeb, captures, ledger_balances};

/// Crawls by `order` with one request at a time, in two runs.
fn crawl(served: &TestWeb, order: &str, extra: &[&str]) -> Archive {
    let archive = Archive::new();
    let mut options = served.at_once();
    options.extend(["--scope", "any", "--workers", "1", "--order", order].map(str::to_owned));
    options.extend(extra.iter().map(|&option| option.to_owned()));
    let seeds = served.web.seeds(1);
    start(archive.crawl(&seeds, &options).args(["--limit", "60"])).wait().succeeded();
    start(&mut archive.crawl(&seeds, &options)).wait().succeeded();
    archive
}

/// Returns the pages of an archive in fetch order, with their distance from the seed.
fn fetched(archive: &Archive) -> Vec<(UrlId, u8)> {
    let store = Store::read_only(&archive.path).unwrap();
    let state = store.state();
    let pages = state.captures().map(|capture| {
        let (_, capture) = capture.unwrap();
        (capture.url, state.page(capture.url).unwrap())
    });
    let is_page = |page: &archive_storage::Page| archive_books::ledger::page_flags::is_page(page.flags);
    pages.filter(|(_, page)| is_page(page)).map(|(id, page)| (id, page.depth)).collect()
}

#[test]
fn orders_are_kept_and_lead_to_the_same_pages() {
    let config = Config::plain(93, 1, 250);
    let clock = Clock::simulated(config.start);
    let served = TestWeb::start(Config { clock, ..config });
    let mut reached: Option<BTreeSet<String>> = None;
    let mut sequences = BTreeSet::new();
    for order in [
        "cash",
        "endowed",
        "fpr@1",
        "pagerank@20",
        "rankmass@20",
        "cycle",
        "breadth",
        "depth",
        "backlinks",
        "random",
    ] {
        let archive = crawl(&served, order, &[]);
        let captured = captures(&archive.path);
        captured.are_single();
        ledger_balances(&archive.path);
        let urls = captured.urls();
        assert_eq!(reached.get_or_insert_with(|| urls.clone()), &urls, "{order}");
        let pages = fetched(&archive);
        assert!(pages.len() > 200, "{order}: {} pages", pages.len());
        if matches!(order, "cycle" | "breadth" | "depth") {
            assert!(pages.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{order}: {pages:?}");
        }
        let store = Store::read_only(&archive.path).unwrap();
        let sequence: Vec<String> = pages.iter().map(|(id, _)| store.state().url(*id).unwrap()).collect();
        sequences.insert(sequence);
        let why = archive.json("why", &[&served.web.seeds(1)[0]]).remove(0);
        assert!(why["order"].as_str().unwrap().starts_with(order), "{why}");
    }
    assert!(sequences.len() >= 7, "orders differ: {} of them", sequences.len());
}

#[test]
fn an_order_that_does_not_exist_is_explained() {
    let archive = Archive::new();
    let seeds = ["http://a.test/".to_owned()];
    let wrong = start(&mut archive.crawl(&seeds, &["--order", "best"])).wait();
    wrong.refused(2, &["'best' is not an order", "cash, endowed[@M], fpr[@M], pagerank[@N]"]);
}

/// The settings of importance stay with the archive, and change what importance says.
#[test]
fn damping_and_window_are_kept() {
    let config = Config::plain(93, 1, 60);
    let clock = Clock::simulated(config.start);
    let served = TestWeb::start(Config { clock, ..config });
    let archive = crawl(&served, "cash", &["--damping", "0.5", "--window", "all"]);
    let settings = || {
        let stats = archive.json::<&str>("stats", &[]).remove(0);
        (stats["damping"].as_f64().unwrap(), stats["window"].as_str().unwrap().to_owned())
    };
    assert_eq!(settings(), (0.5, "all".to_owned()));
    let mut again = archive.crawl(&served.web.seeds(1), &served.at_once());
    start(again.args(["--window", "interpolated@8"])).wait().succeeded();
    assert_eq!(settings(), (0.5, "interpolated@8".to_owned()));
    ledger_balances(&archive.path);
    let best = |archive: &Archive| {
        let row = archive.json("query", &["page order by importance limit 1 select importance"]).remove(0);
        row["importance"].as_f64().unwrap()
    };
    let steeper = crawl(&served, "cash", &[]);
    assert!(best(&steeper) > 1.2 * best(&archive), "{} {}", best(&steeper), best(&archive));
    for (option, value) in
        [("--damping", "1"), ("--damping", "0"), ("--window", "fixed@8"), ("--window", "interpolated@0")]
    {
        let wrong = start(&mut archive.crawl(&served.web.seeds(1), &[option, value])).wait();
        wrong.refused(
            2,
            &[if option == "--damping" { "0.1 to 0.99" } else { "write all, or interpolated@N" }],
        );
    }
}

#[test]
fn links_are_favoured_by_what_their_texts_say() {
    let served = Answers::start(|host, path| match (host, path) {
        // The virtual page pays for favours: as much as it got of the cash of this page, of many pages.
        ("b.test", "/") => html(
            &(0..600).map(|number| format!("<p><a href=http://c.test/{number}>c</a>")).collect::<String>(),
        ),
        (_, "/") => {
            let text = |number| if number % 4 == 3 { "the <b>Annual</b> report" } else { "report, annual" };
            html(
                &(0..40)
                    .map(|number| format!("<p><a href=/{number}>{}</a>", text(number)))
                    .collect::<String>(),
            )
        }
        (_, "/robots.txt") => plain(""),
        _ => html("<p>A page."),
    });
    let archive = Archive::new();
    let favour = "(link text contains \"annual report\")*0.5";
    let mut options = served.at_once();
    let crawl = ["--workers", "1", "--limit", "12", "--order", "cash", "--favour", favour];
    options.extend(crawl.map(str::to_owned));
    let seeds = ["http://b.test/", "http://a.test/"].map(str::to_owned);
    start(&mut archive.crawl(&seeds, &options)).wait().succeeded();
    ledger_balances(&archive.path);
    let asked: BTreeSet<String> = served.take_asked().into_iter().collect();
    let favoured = (3..40).step_by(4).map(|number| format!("a.test/{number}"));
    let others = ["a.test/", "a.test/robots.txt", "b.test/", "b.test/robots.txt"].map(str::to_owned);
    let favoured: BTreeSet<String> = favoured.chain(others).collect();
    assert!(asked.is_superset(&favoured) && asked.len() <= favoured.len() + 2, "{asked:?}");
}
