//! Failed seeds are requested again by the next run, and a crawl that got nothing reports it.

use archive_storage::CaptureKind;
use archive_testweb::Config;

use crate::crawl::everything;
use crate::support::program::{Finished, start};
use crate::support::{Archive, TestWeb, captures, nobody_at};

fn crawl(archive: &Archive, seeds: &[String], options: &[&str]) -> Finished {
    start(&mut archive.crawl(seeds, options)).wait()
}

#[test]
fn the_remedy_that_is_named_works() {
    let served = TestWeb::start(Config::plain(721, 1, 5));
    let archive = Archive::new();
    let seeds = [format!("http://{}/", served.server.address())];
    let refused = crawl(&archive, &seeds, &["--delay", "0"]).refused(
        1,
        &["127.0.0.1 is not a public address; --allow-private permits it", "no seed could be fetched"],
    );
    assert!(refused.errors.contains("no captures"), "{}", refused.errors);
    // The same command again changes nothing; with the named option it succeeds.
    crawl(&archive, &seeds, &["--delay", "0"]).refused(1, &["--allow-private"]);
    let ended = crawl(&archive, &seeds, &["--delay", "0", "--allow-private"]).succeeded();
    assert!(!ended.errors.contains("could not be fetched"), "{}", ended.errors);
    let captured = captures(&archive.path);
    assert_eq!(captured.0[&seeds[0]].last().unwrap().kind, CaptureKind::Response, "{:?}", captured.0);
    archive.verify();
}

#[test]
fn a_name_that_can_be_resolved_again_is_asked_again() {
    let served = TestWeb::start(Config::plain(722, 1, 5));
    let archive = Archive::new();
    let seeds = served.web.seeds(1);
    // The web's names are not in DNS.
    crawl(&archive, &seeds, &["--delay", "0"])
        .refused(1, &["cannot be resolved", "no seed could be fetched"]);
    let ended = start(&mut archive.crawl(&seeds, &everything(&served))).wait().succeeded();
    assert!(!ended.errors.contains("could not be fetched"), "{}", ended.errors);
    assert_eq!(captures(&archive.path).0[&seeds[0]].last().unwrap().status, 200);
}

#[test]
fn a_connection_that_was_refused_is_tried_again() {
    let free = nobody_at(1);
    let archive = Archive::new();
    let seeds = [format!("http://{free}/")];
    let options = ["--delay", "0", "--allow-private", "--patience", "0s"];
    let cause = format!("no connection to {} (connection refused)", free.ip());
    crawl(&archive, &seeds, &options).refused(1, &["the seed http://", &cause, "no seed could be fetched"]);
    let served = TestWeb::start_on(Config::plain(723, 1, 5), &[free]);
    crawl(&archive, &seeds, &options).succeeded();
    assert_ne!(captures(&archive.path).0[&seeds[0]].last().unwrap().status, 0);
    drop(served);
}

#[test]
fn robots_that_could_not_be_had_are_asked_again() {
    let served = TestWeb::start(Config::plain(724, 1, 5));
    let archive = Archive::new();
    let seeds = ["http://robots-503.faults.test/".to_owned()];
    let options: Vec<String> = served.at_once();
    let run = || start(&mut archive.crawl(&seeds, &options)).wait();
    run().refused(
        1,
        &[
            "http://robots-503.faults.test/ could not be fetched",
            "robots.txt of its host could not be fetched",
        ],
    );
    let asked = served.server.requests();
    run().refused(1, &["robots.txt"]);
    assert!(served.server.requests() > asked, "nothing was asked again");
}

#[test]
fn a_crawl_of_which_some_seeds_wait_says_so() {
    let served = TestWeb::start(Config::plain(725, 1, 5));
    let archive = Archive::new();
    let mut seeds = served.web.seeds(1);
    seeds.push("http://robots-503.faults.test/".to_owned());
    let ended = start(&mut archive.crawl(&seeds, &everything(&served))).wait();
    let ended = ended
        .refused(4, &["the seed http://robots-503.faults.test/ could not be fetched", "the answer was 503"]);
    assert!(!ended.errors.contains("no seed could be fetched"), "{}", ended.errors);
}

#[test]
fn a_failure_is_no_capture() {
    let archive = Archive::new();
    let seeds = ["http://nothing.invalid/a".to_owned()];
    crawl(&archive, &seeds, &[]).refused(1, &["no captures"]);
    let stats = &archive.json::<&str>("stats", &[])[0];
    assert_eq!((stats["captures"].as_u64(), stats["failures"].as_u64()), (Some(0), Some(1)), "{stats}");
    let shown = archive.run::<&str>("stats", &[]).succeeded().text();
    assert!(shown.contains("fetches without an answer"), "{shown}");
    let why = archive.run("why", &seeds).succeeded().text();
    assert!(!why.contains("1 capture"), "{why}");
}
