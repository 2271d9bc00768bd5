//! Runs in the browser: the report of a run, and how it is served while the run continues.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::crawl::lively;
use crate::support::answers::{self, Answers, whole};
use crate::support::browser::Browser;
use crate::support::program::{Running, start};
use crate::support::served::{Served, ask};
use crate::support::{Archive, TestWeb};

/// Timeout for awaited events.
const PATIENCE: Duration = Duration::from_secs(60);

/// Largest number of clients that may listen to runs at once.
const LISTENERS_MAX: usize = 16;

fn json(served: &Served, path: &str) -> Value {
    let answer = ask(&served.application, "GET", path, &["Accept: application/json"]);
    assert_eq!(answer.status, 200, "{path}: {}", String::from_utf8_lossy(&answer.body));
    serde_json::from_slice(&answer.body).unwrap()
}

fn html(served: &Served, path: &str) -> String {
    let answer = ask(&served.application, "GET", path, &[]);
    assert_eq!(answer.status, 200, "{path}");
    String::from_utf8(answer.body).unwrap()
}

/// Starts a crawl that takes a while.
pub(crate) fn slow(web: &TestWeb, archive: &Archive) -> Running {
    let options =
        [web.connection().to_vec(), ["--allow-private", "--delay", "300ms"].map(String::from).to_vec()];
    let mut crawl = start(&mut archive.crawl(&web.web.seeds(2), &options.concat()));
    // From then on, there is an archive to serve.
    assert!(crawl.wait_until(|| {
        let report = fs::read(archive.path.join("runs/1.json")).unwrap_or_default();
        let run: Value = serde_json::from_slice(&report).unwrap_or_default();
        run["progress"]["pages"].as_u64() > Some(0)
    }));
    crawl
}

/// Subscribes to a run; returns the status and the stream of events.
fn listen(served: &Served, path: &str) -> (u16, BufReader<TcpStream>) {
    let mut stream = TcpStream::connect(&served.application).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head =
        format!("GET {path} HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\n\r\n", served.application);
    stream.write_all(head.as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    (line.split(' ').nth(1).unwrap().parse().unwrap(), reader)
}

/// Returns the data of the next events with this name.
fn events(reader: &mut BufReader<TcpStream>, name: &str, count: usize) -> Vec<String> {
    let (mut found, mut is_meant) = (Vec::new(), false);
    while found.len() < count {
        let mut line = String::new();
        assert_ne!(reader.read_line(&mut line).unwrap(), 0, "it ended after {found:?}");
        if let Some(event) = line.strip_prefix("event: ") {
            is_meant = event.trim() == name;
        }
        found.extend(line.strip_prefix("data: ").filter(|_| is_meant).map(str::to_owned));
    }
    found
}

#[test]
fn a_run_leaves_an_account_of_itself() {
    let web = TestWeb::start(lively(311, 4, 200));
    let archive = Archive::new();
    let options = [web.at_once(), ["--limit", "60", "--pages-per-host", "10"].map(String::from).to_vec()];
    start(&mut archive.crawl(&web.web.seeds(4), &options.concat())).wait().succeeded();
    // A refresh that comes too soon has nothing to do and does not count as a run.
    thread::sleep(Duration::from_secs(2));
    start(archive.command("refresh").args(web.at_once()).args([
        "--budget",
        "5",
        "--shortest",
        "1s",
        "--time-unit",
        "1s",
    ]))
    .wait()
    .succeeded();
    let served = Served::of(&archive);
    let list = json(&served, "/runs");
    assert_eq!(
        (&list[0]["id"], &list[0]["command"], &list[0]["stage"]),
        (&2.into(), &"refresh".into(), &"ended".into())
    );
    let run = json(&served, "/runs/1");
    assert_eq!((&run["command"], &run["limits"]["pages"]), (&"crawl".into(), &60.into()));
    let stored = archive.json::<&str>("stats", &[])[0]["captures"].as_u64().unwrap();
    let captures = |run: &Value| run["progress"]["captures"].as_u64().unwrap();
    assert_eq!(captures(&run) + captures(&json(&served, "/runs/2")), stored);
    let sum = |tallies: &Value| {
        tallies.as_array().unwrap().iter().map(|tally| tally["count"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(sum(&run["errors"]), run["progress"]["errors"].as_u64().unwrap());
    assert_eq!(sum(&run["refused"]), run["progress"]["refused"].as_u64().unwrap());
    let over =
        run["refused"].as_array().unwrap().iter().find(|tally| tally["reason"] == "pages-per-host").unwrap();
    let url = over["examples"][0]["url"].as_str().unwrap();
    assert!(html(&served, "/runs/1").contains(url) && html(&served, "/runs").contains("refresh"));
    assert_eq!(json(&served, "/runs/current")["id"], 2);
    // Pagination, and missing runs.
    assert_eq!(json(&served, "/runs?before=2").as_array().unwrap().len(), 1);
    assert_eq!(listen(&served, "/runs/3").0, 404);
    for (path, status) in [("/runs/3", 404), ("/runs/x", 404), ("/runs?before=x", 400), ("/runs/1/2", 404)] {
        assert_eq!(ask(&served.application, "GET", path, &[]).status, status, "{path}");
    }
    // Hidden URLs are not shown as examples, to nobody.
    fs::write(archive.path.join("access.toml"), "[[rule]]\nprefix = \"\"\n").unwrap();
    thread::sleep(Duration::from_millis(600));
    let hidden = json(&served, "/runs/1");
    assert_eq!(sum(&hidden["refused"]), sum(&run["refused"]), "how many there are is no secret");
    assert!(!hidden.to_string().contains("http://") && !html(&served, "/runs/1").contains(url));
    let (_, mut stream) = listen(&served, "/runs/1");
    assert!(!events(&mut stream, "last", 1)[0].contains(url));
    drop(served);
    // Erased URLs are not shown as examples any more, but are still counted.
    fs::remove_file(archive.path.join("access.toml")).unwrap();
    let file = archive.path.join("runs/1.json");
    let pages = archive.json("query", &["page type = html and captures > 0 limit 1 select url"]);
    let gone = pages[0]["url"].as_str().unwrap();
    let mut named: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    named["refused"][0]["examples"][0]["url"] = gone.into();
    fs::write(&file, named.to_string()).unwrap();
    let query = format!("url = \"{gone}\"");
    archive.run("erase", &[query.as_str(), "--reason", "asked for", "--yes"]).succeeded();
    let left: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert!(
        !left.to_string().contains(&format!("\"{gone}\"")) && sum(&left["refused"]) == sum(&run["refused"])
    );
}

#[test]
fn what_a_file_of_a_run_says_stays_text() {
    let archive = Archive::new();
    start(archive.command("demo").args(["--pages", "60", "--hosts", "4"])).wait().succeeded();
    let file = archive.path.join("runs/1.json");
    let mut run: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let evil = "<script>alert(1)</script>\n\nevent: last\ndata: \"'&";
    run["command"] = evil.into();
    run["error"] = evil.into();
    let tally = serde_json::json!([{ "reason": evil, "count": 1, "examples": [{ "url": evil, "time": run["told"] }] }]);
    (run["errors"], run["refused"]) = (tally.clone(), tally);
    run["moments"] = serde_json::json!([{ "seconds": 0, "pages": 0, "queued": 0 }, { "seconds": 1e300, "pages": 3, "queued": 0 }]);
    fs::write(&file, run.to_string()).unwrap();
    let served = Served::of(&archive);
    let (_, mut stream) = listen(&served, "/runs/1");
    let data = events(&mut stream, "last", 3).concat();
    for text in [html(&served, "/runs/1"), html(&served, "/runs"), data] {
        assert!(text.contains("&lt;script&gt;alert(1)") && !text.contains("<script>alert"), "{text}");
    }
    fs::write(&file, "no file of ours").unwrap();
    assert_eq!(ask(&served.application, "GET", "/runs/1", &[]).status, 404);
    assert!(!html(&served, "/runs").contains("/runs/1\""), "unreadable files are skipped");
}

#[test]
fn a_run_is_reported_live() {
    let web = TestWeb::start(lively(312, 4, 300));
    let archive = Archive::new();
    let crawl = slow(&web, &archive);
    let served = Served::of(&archive);
    let (status, mut stream) = listen(&served, "/runs/current");
    let two = events(&mut stream, "run", 2);
    assert_eq!(status, 200);
    assert!(two[0] != two[1] && two[1].contains("Under way"), "{two:?}");
    for fact in ["Pages a second", "URLs waiting", "Hosts left alone for politeness", "Budgets"] {
        assert!(two[1].contains(fact), "{fact}");
    }
    // However many clients listen, the others still get events, and pages are served.
    let more: Vec<_> = (0..LISTENERS_MAX + 3).map(|_| listen(&served, "/runs/1")).collect();
    assert_eq!(more.iter().filter(|(status, _)| *status == 200).count(), LISTENERS_MAX - 1);
    assert!(more.iter().all(|(status, _)| matches!(status, 200 | 503)));
    assert_eq!(json(&served, "/runs/1")["stage"], "under-way");
    drop(more);
    let begun = Instant::now();
    let mut again = loop {
        let (status, again) = listen(&served, "/runs/1");
        if status == 200 {
            break again;
        }
        assert!(begun.elapsed() < PATIENCE, "who has left makes room");
        thread::sleep(Duration::from_millis(200));
    };
    crawl.signal("-INT");
    crawl.wait();
    let last = events(&mut again, "last", 1);
    assert!(last[0].contains("Stopped by somebody"), "{last:?}");
    assert_eq!(json(&served, "/runs/1")["end"], "stopped");
    assert!(events(&mut stream, "run", 1)[0].contains("Run 1"), "the newest run stays the newest");
}

#[test]
fn a_killed_run_is_reported_as_broken_off_and_listeners_keep_no_server() {
    let web = TestWeb::start(lively(313, 4, 300));
    let archive = Archive::new();
    slow(&web, &archive).kill();
    let mut served = Served::of(&archive);
    assert_eq!(json(&served, "/runs")[0]["stage"], "broken-off");
    assert!(html(&served, "/runs/1").contains("its program ended before it did"));
    // A listener to the newest run would stay for ten minutes.
    let (_, mut stream) = listen(&served, "/runs/current");
    events(&mut stream, "run", 1);
    let begun = Instant::now();
    assert!(served.stop().success());
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
}

#[test]
fn a_browser_shows_a_run_live_and_without_script_as_it_was() {
    let web = TestWeb::start(lively(314, 4, 300));
    let archive = Archive::new();
    let crawl = slow(&web, &archive);
    let served = Served::of(&archive);
    let (Some(lively), Some(plain)) = (Browser::start(true), Browser::start(false)) else { return };
    let address = format!("http://{}/runs/1", served.application);
    plain.go(&address);
    assert!(plain.source().contains("Under way") && plain.source().contains("Read the numbers again"));
    lively.go(&address);
    let first = lively.source();
    let begun = Instant::now();
    while lively.source() == first {
        assert!(begun.elapsed() < PATIENCE, "nothing moves");
        thread::sleep(Duration::from_millis(100));
    }
    assert!(lively.source().contains("Under way"));
    crawl.signal("-INT");
    crawl.wait();
    lively.wait_for("Stopped by somebody");
    assert!(plain.source().contains("Under way"), "nothing moves without script");
}

#[test]
fn parts_come_when_the_budget_of_pages_is_spent() {
    let served = Answers::start(|_, path| match path {
        "/" => answers::html(
            "<a href=/a.png><img src=/a.png></a><link rel=stylesheet href=/a.css><a href=/a.css>a</a><a href=/b>b</a><a href=/c>c</a>",
        ),
        "/a.png" => whole(200, "Content-Type: image/png\r\n", b"\x89PNG\r\n\x1a\n"),
        "/a.css" => whole(200, "Content-Type: text/css\r\n", b"a{}"),
        "/b" | "/c" => answers::html("<p>page"),
        _ => whole(404, "", b""),
    });
    for pages in [1, 2, 3] {
        let archive = Archive::new();
        let options = [served.at_once(), vec!["--pages-per-host".to_owned(), pages.to_string()]].concat();
        start(&mut archive.crawl(&["http://a.test/".to_owned()], &options)).wait().succeeded();
        let asked = served.take_asked();
        let count =
            |paths: &[&str]| asked.iter().filter(|asked| paths.contains(&&asked["a.test".len()..])).count();
        let pages_asked = count(&["/b", "/c", "/sitemap.xml"]);
        assert_eq!((count(&["/a.png", "/a.css"]), pages_asked), (2, pages - 1), "{asked:?}");
    }
}
