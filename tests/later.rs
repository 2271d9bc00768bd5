//! Servers that say "later", or break off: pages are asked for again within the run and by the next one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use archive_storage::CaptureKind;

use crate::support::answers::{Answers, CLOSE, html, nothing, whole};
use crate::support::program::{Finished, start};
use crate::support::{Archive, captures};

const BUSY: [&str; 7] = ["/429", "/500", "/502", "/503", "/504", "/closed", "/cut"];

/// Serves a page with links to pages that cannot be had until the site is open.
fn site() -> (Answers, Arc<AtomicBool>) {
    let open = Arc::new(AtomicBool::new(false));
    let is_open = Arc::clone(&open);
    let served = Answers::start(move |_, path| match path {
        "/" => html(&BUSY.iter().map(|path| format!("<a href={path}>x</a>")).collect::<String>()),
        _ if !BUSY.contains(&path) => nothing(),
        _ if is_open.load(Ordering::Relaxed) => html(&format!("<title>{path}</title>")),
        "/closed" => Vec::new(),
        "/cut" => {
            format!("HTTP/1.1 200 -\r\n{CLOSE}Content-Length: 99\r\n\r\n<title>cut</title>").into_bytes()
        }
        _ => whole(path[1..].parse().unwrap(), "", b"not now"),
    });
    (served, open)
}

/// Newest status of each path; 0 for a failure.
fn statuses(archive: &Archive) -> BTreeMap<String, u16> {
    let found = captures(&archive.path).0;
    let newest = |captures: &Vec<archive_storage::Capture>| captures.last().unwrap().status;
    found.iter().map(|(url, captures)| (url["http://a.test".len()..].to_owned(), newest(captures))).collect()
}

fn crawl(archive: &Archive, served: &Answers, more: &[&str]) -> Finished {
    let mut options = served.at_once();
    options.retain(|option| option != "--patience" && option != "2s");
    options.extend(more.iter().map(|&option| option.to_owned()));
    start(&mut archive.crawl(&["http://a.test/".to_owned()], &options)).wait()
}

fn waiting(archive: &Archive) -> u64 {
    archive.json::<&str>("stats", &[])[0]["waiting"].as_u64().unwrap()
}

#[test]
fn the_same_command_asks_again_for_what_servers_put_off() {
    let (served, open) = site();
    let archive = Archive::new();
    let ended = crawl(&archive, &served, &["--patience", "0s"]).refused(4, &["waits for its servers"]);
    assert!(ended.errors.contains("7 put off by their servers until the next run"), "{}", ended.errors);
    let found = statuses(&archive);
    assert!(BUSY[..5].iter().all(|path| found[*path].to_string() == path[1..]), "{found:?}");
    assert_eq!((found["/closed"], found["/cut"], waiting(&archive)), (0, 200, 7));
    captures(&archive.path).are_single();

    open.store(true, Ordering::Relaxed);
    let ended = crawl(&archive, &served, &[]).succeeded();
    assert!(ended.errors.contains("nothing left to fetch"), "{}", ended.errors);
    let found = statuses(&archive);
    assert!(BUSY.iter().all(|path| found[*path] == 200), "{found:?}");
    assert_eq!(waiting(&archive), 0);
    archive.verify();
    served.take_asked();
    crawl(&archive, &served, &[]).succeeded();
    assert!(served.take_asked().is_empty(), "all is there");
}

#[test]
fn a_refresh_asks_again_for_what_servers_put_off() {
    let (served, open) = site();
    let archive = Archive::new();
    crawl(&archive, &served, &["--patience", "0s"]).refused(4, &[]);
    served.take_asked();
    let options = served.at_once();
    let refresh =
        |budget| start(archive.command("refresh").args(["--json", "--budget", budget]).args(&options)).wait();
    let ended = refresh("20").refused(4, &["put off by their servers"]);
    assert_eq!(ended.json().last().unwrap()["waiting"], 7, "{}", ended.text());
    // The rest of the budget is for others, and the failures are asked for a last time.
    open.store(true, Ordering::Relaxed);
    refresh("20").succeeded();
    let found = statuses(&archive);
    assert!(BUSY.iter().all(|path| found[*path] == 200), "{found:?}");
    assert_eq!(waiting(&archive), 0);
}

#[test]
fn a_page_that_is_never_had_is_left_to_the_rules_of_refreshing_in_the_end() {
    let served = Answers::start(|_, path| match path {
        "/" => html("<a href=/broken>x</a>"),
        "/broken" => whole(500, "", b""),
        _ => nothing(),
    });
    let archive = Archive::new();
    for run in 0..5 {
        let ended = crawl(&archive, &served, &["--patience", "0s"]);
        let asked = served.take_asked().iter().filter(|asked| asked.ends_with("/broken")).count();
        assert_eq!((ended.code, asked), if run < 3 { (Some(4), 1) } else { (Some(0), 0) }, "run {run}");
    }
}

/// A busy host is asked rarely, a broken page does not hold up others, and a robots.txt that comes late is waited for.
#[test]
fn hosts_are_left_alone_longer_and_longer_and_others_go_on() {
    let robots = AtomicUsize::new(0);
    let served = Answers::start(move |host, path| match (host, path) {
        ("late.test", "/robots.txt") if robots.fetch_add(1, Ordering::Relaxed) == 0 => whole(503, "", b""),
        ("busy.test", "/robots.txt") | ("late.test", "/robots.txt") => nothing(),
        ("busy.test", _) => whole(503, "", b""),
        ("a.test", "/") => {
            let pages =
                (0..30).map(|page| format!("<a href=/{page}>x</a><a href=http://busy.test/{page}>x</a>"));
            html(&format!(
                "<a href=/broken>x</a><a href=http://late.test/>x</a>{}",
                pages.collect::<String>()
            ))
        }
        ("a.test", "/broken") => whole(500, "", b""),
        _ => html(&format!("<title>{host}{path}</title>")),
    });
    let archive = Archive::new();
    let options = ["--patience", "3s", "--scope", "any", "--per-host", "1"];
    crawl(&archive, &served, &options).refused(4, &["put off by their servers"]);
    let asked = served.take_asked();
    let places = |what: &str| -> Vec<usize> {
        asked
            .iter()
            .enumerate()
            .filter(|(_, asked)| asked.starts_with(what))
            .map(|(place, _)| place)
            .collect()
    };
    let busy = asked.iter().filter(|asked| asked.starts_with("busy.test") && !asked.ends_with("robots.txt"));
    assert!((2..=4).contains(&busy.count()), "{asked:?}");
    let others = (0..30).map(|page| places(&format!("a.test/{page}"))[0]).max().unwrap();
    let broken = places("a.test/broken");
    assert!(broken.len() >= 2 && broken[1] > others, "{asked:?}");
    assert_eq!((places("late.test/robots.txt").len(), asked.contains(&"late.test/".to_owned())), (2, true));
}

#[test]
fn a_pause_that_a_server_asks_for_holds_for_the_next_runs() {
    let refused = AtomicBool::new(false);
    let served = Answers::start(move |_, path| match path {
        "/" => html("<a href=/1>x</a><a href=/2>x</a>"),
        "/1" if !refused.swap(true, Ordering::Relaxed) => whole(503, "Retry-After: 3600\r\n", b""),
        "/1" | "/2" => html(&format!("<title>{path}</title>")),
        _ => nothing(),
    });
    let archive = Archive::new();
    let at = |time: &str| {
        let ended = crawl(&archive, &served, &["--per-host", "1", "--clock", time]);
        let asked = served.take_asked();
        (ended.code, asked.into_iter().filter(|asked| ["a.test/1", "a.test/2"].contains(&&**asked)).count())
    };
    assert_eq!(at("2026-01-01T10:00:00Z"), (Some(4), 1));
    assert_eq!(at("2026-01-01T10:30:00Z"), (Some(4), 0));
    assert_eq!(at("2026-01-01T11:00:01Z"), (Some(0), 2));
    assert!(captures(&archive.path).of_kind(CaptureKind::Failed).is_empty());
}

#[test]
fn a_kill_loses_nothing_that_waits() {
    let (served, open) = site();
    let archive = Archive::new();
    let options: Vec<String> =
        served.at_once().into_iter().chain(["--for", "10m"].map(str::to_owned)).collect();
    let options: Vec<String> =
        options.into_iter().filter(|option| option != "--patience" && option != "2s").collect();
    let mut running = start(&mut archive.crawl(&["http://a.test/".to_owned()], &options));
    let asked = AtomicUsize::new(0);
    assert!(running.wait_until(|| asked.fetch_add(served.take_asked().len(), Ordering::Relaxed) > 9));
    running.kill();
    open.store(true, Ordering::Relaxed);
    crawl(&archive, &served, &[]).succeeded();
    let found = statuses(&archive);
    assert!(BUSY.iter().all(|path| found[*path] == 200), "{found:?}");
    archive.verify();
}
