//! Notices from outside: they wait, trigger no immediate fetch, and count once their key is found. Also settings, and
//! the size of pages with thousands of captures.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use archive_books::cluster::{Division, Mode, Partition};
use serde_json::{Value, json};

use crate::cluster::begin_brisk;
use crate::imports::import;
use crate::support::captures::ledger_balances;
use crate::support::program::start;
use crate::support::served::{Answer, Served, ask};
use crate::support::warc::response;
use crate::support::{Archive, Dice, in_full, kills};

const KEY: &str = "0123abcd-key";

/// A site whose files a test changes, which records the requested paths.
#[derive(Clone, Default)]
pub(crate) struct Site {
    files: Arc<Mutex<BTreeMap<String, String>>>,
    asked: Arc<Mutex<Vec<String>>>,
    address: String,
}

impl Site {
    pub(crate) fn start(pages: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let site = Self { address: listener.local_addr().unwrap().to_string(), ..Self::default() };
        let links: String = (0..pages).map(|number| format!("<a href=/p{number}>p{number}</a>")).collect();
        site.put("/", &links);
        (0..pages).for_each(|number| site.put(&format!("/p{number}"), "words of a page"));
        let serving = site.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let site = serving.clone();
                // A crawler that disconnects ends only its own connection.
                thread::spawn(move || drop(site.answer(&stream)));
            }
        });
        site
    }

    pub(crate) fn put(&self, path: &str, body: &str) {
        self.files.lock().unwrap().insert(path.to_owned(), body.to_owned());
    }

    fn requests(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    fn answer(&self, mut stream: &TcpStream) -> std::io::Result<()> {
        let mut lines = BufReader::new(stream);
        let (mut line, mut path) = (String::new(), String::new());
        while lines.read_line(&mut line)? > 0 {
            if line == "\r\n" {
                let body = self.files.lock().unwrap().get(&path).cloned();
                let (status, body) = body.map_or(("404 Not Found", String::new()), |body| ("200 OK", body));
                self.asked.lock().unwrap().push(path.clone());
                write!(
                    stream,
                    "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                )?;
            } else if let Some(rest) = line.strip_prefix("GET ") {
                path = rest.split(' ').next().unwrap_or_default().to_owned();
            }
            line.clear();
        }
        Ok(())
    }

    pub(crate) fn options(&self) -> [String; 4] {
        ["--delay".into(), "0".into(), "--connect-to".into(), format!("::{}", self.address)]
    }

    /// Returns an archive of the site from a time before all notices.
    pub(crate) fn crawled(&self) -> Archive {
        let archive = Archive::new();
        let mut command = archive.crawl(&["http://a.test/".to_owned()], &self.options());
        start(command.args(["--scope", "host", "--clock", "2026-01-01T00:00:00Z"])).wait().succeeded();
        archive
    }
}

fn post(address: &str, path: &str, body: &str) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    // A refused request is not read to its end.
    let _ = stream.write_all((head + body).as_bytes());
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Answer { status, fields: Vec::new(), body: answer.into_bytes() }
}

pub(crate) fn get(address: &str, path: &str) -> Answer {
    ask(address, "GET", path, &[])
}

pub(crate) fn text(answer: &Answer) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}

pub(crate) fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

fn indexnow(url: &str, key: &str) -> String {
    format!("/indexnow?url={}&key={key}", encoded(url))
}

pub(crate) fn waiting(archive: &Archive) -> Vec<PathBuf> {
    let folder = archive.path.join("pings");
    let entries = fs::read_dir(folder).map(|entries| entries.map(|entry| entry.unwrap().path()).collect());
    let mut all: Vec<PathBuf> = entries.unwrap_or_default();
    all.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
    all
}

pub(crate) fn captures(archive: &Archive, path: &str) -> u64 {
    let query = format!("page url = \"http://a.test{path}\" select captures");
    archive.json("query", &[query]).first().map_or(0, |row| row["captures"].as_u64().unwrap())
}

#[test]
fn a_notice_waits_and_counts_once_its_key_is_found_on_its_host() {
    let site = Site::start(6);
    let archive = site.crawled();
    let silent = Served::of(&archive);
    assert_eq!(get(&silent.application, &indexnow("http://a.test/p1", KEY)).status, 404, "off by default");
    assert_eq!(post(&silent.application, "/indexnow", "{}").status, 405);
    drop(silent);

    let served = Served::with(&archive, &["--pings"]);
    let address = &served.application;
    let before = site.requests();
    let list =
        |urls: &[&str], key: &str| json!({ "host": "a.test", "key": key, "urlList": urls }).to_string();
    for (answer, status) in [
        (get(address, &indexnow("http://a.test/p1", KEY)), 202),
        // A repeated notice does not count twice.
        (get(address, &indexnow("http://a.test/p1", KEY)), 202),
        (post(address, "/indexnow", &list(&["http://a.test/p2", "http://a.test/new"], "not-the-key")), 202),
        // Pages that the archive does not have get the same answer.
        (get(address, &indexnow("http://b.test/", KEY)), 202),
        (get(address, "/ping?sitemap=http%3A%2F%2Fa.test%2Fnone.xml"), 202),
        (get(address, "/ping?sitemap=http%3A%2F%2Fa.test%2F"), 202),
        (get(address, "/ping?sitemap=file%3A%2F%2F%2Fetc"), 400),
        (get(address, "/ping"), 400),
        (get(address, "/indexnow?url=http%3A%2F%2Fa.test%2F"), 400),
        (get(address, &indexnow("http://a.test/", "short")), 422),
        (post(address, "/indexnow", &list(&["http://b.test/"], KEY)), 422),
        (post(address, "/indexnow", "{"), 400),
        (post(address, "/indexnow", &list(&vec!["http://a.test/p1"; 10_001], KEY)), 400),
        (post(address, "/indexnow", &" ".repeat((4 << 20) + 1)), 413),
        (post(address, "/ping?sitemap=http%3A%2F%2Fa.test%2F", ""), 405),
    ] {
        assert_eq!(answer.status, status, "{answer:?}");
    }
    assert_eq!(get(&served.replay, &indexnow("http://a.test/p1", KEY)).status, 404);
    let metrics = text(&get(address, "/metrics"));
    for (fate, count) in [("queued", 3), ("waiting", 1), ("dropped", 2), ("wrong", 7), ("refused", 0)] {
        assert!(
            metrics.contains(&format!("archive_notices_total{{fate=\"{fate}\"}} {count}\n")),
            "{metrics}"
        );
    }
    assert_eq!((site.requests(), waiting(&archive).len()), (before, 3), "nothing is fetched for a notice");

    // Two key files, the proven page, and the page that a ping named.
    site.put(&format!("/{KEY}.txt"), &format!("{KEY}\n"));
    site.put("/not-the-key.txt", "something else");
    let mut command = archive.command("refresh");
    let run = start(command.args(["--budget", "4"]).args(site.options())).wait().succeeded();
    assert!(
        run.errors.contains("2 pages to be fetched first; 1 rejected (invalid or too old)"),
        "{}",
        run.errors
    );
    assert_eq!(["/p1", "/", "/p2", "/new"].map(|path| captures(&archive, path)), [2, 2, 1, 0]);
    assert_eq!((captures(&archive, &format!("/{KEY}.txt")), waiting(&archive).len()), (1, 0));
    let accounts: Value = serde_json::from_str(&text(&get(address, "/runs/current?format=json"))).unwrap();
    let noticed = accounts["noticed"].as_array().unwrap();
    let is_noticed = |reason: &str, url: &str| {
        noticed.iter().any(|tally| {
            tally["reason"] == reason && tally["count"] == 1 && tally["examples"][0]["url"] == url
        })
    };
    assert!(
        is_noticed("IndexNow", "http://a.test/p1") && is_noticed("sitemap ping", "http://a.test/"),
        "{noticed:?}"
    );
    let why = archive.json("why", &["http://a.test/p1"]).remove(0);
    assert_eq!(why["announced"], "1 change was announced, 0 of these was found");
    ledger_balances(&archive.path);

    // A key file that gave no answer is requested again; a crawl checks it, too.
    assert_eq!(get(address, &indexnow("http://a.test/fresh", KEY)).status, 202);
    let unreachable = ["--connect-to", "::127.0.0.1:1", "--delay", "0", "--budget", "4", "--patience", "0s"];
    let failed = start(archive.command("refresh").args(unreachable)).wait();
    assert!(failed.errors.contains("1 not yet checked"), "{}", failed.errors);
    site.put("/fresh", "fresh");
    let mut command = archive.crawl(&["http://a.test/".to_owned()], &site.options());
    start(command.args(["--scope", "host"])).wait().succeeded();
    assert_eq!((captures(&archive, "/fresh"), waiting(&archive).len()), (1, 0));
    // No notice names an erased page.
    assert_eq!(get(address, &indexnow("http://a.test/p3", KEY)).status, 202);
    assert_eq!(waiting(&archive).len(), 1);
    let list = archive.file("erase.txt", "http://a.test/p3\n");
    archive.run("erase", &["--urls", list.to_str().unwrap(), "--reason", "a test", "--yes"]).succeeded();
    assert_eq!(waiting(&archive).len(), 0);
}

#[test]
fn a_crawl_takes_turns_for_the_key_files_that_it_fetches_first() {
    let site = Site::start(3);
    let (archive, store) = (Archive::new(), tempfile::tempdir().unwrap());
    let any =
        Partition { cluster: String::new(), number: 1, count: 2, mode: Mode::default(), by: Division::Site };
    let number = any.of_site("a.test");
    begin_brisk(store.path(), 2);
    let (url, partition) = (format!("file://{}", store.path().display()), format!("{number}/2"));
    let crawl = |more: &[&str]| {
        let mut command = archive.crawl(&["http://a.test/".to_owned()], &site.options()[2..]);
        command.args(["--scope", "host", "--cluster", &url, "--partition", &partition]).args(more);
        start(&mut command)
    };
    crawl(&["--delay", "0", "--limit", "3"]).wait().succeeded();
    site.put(&format!("/{KEY}.txt"), KEY);
    site.put("/fresh", "fresh");
    let served = Served::with(&archive, &["--pings"]);
    assert_eq!(get(&served.application, &indexnow("http://a.test/fresh", KEY)).status, 202);

    let (begun, before) = (Instant::now(), site.requests());
    let mut running = crawl(&["--delay", "200ms", "--address-delay", "200ms", "--for", "60s"]);
    assert!(running.wait_until(|| site.requests() > before));
    // As long as another node may not yet know that the address is requested here, too.
    assert!(begun.elapsed() > Duration::from_secs(4), "{:?}", begun.elapsed());
    let status = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_archive"));
        let told = start(command.args(["cluster", "status", "--json", "--cluster", &url])).wait().json();
        told[0]["told"][usize::from(number) - 1].clone()
    };
    assert_eq!(status()["activity"], "running");
    assert!(running.wait_until(|| site.asked.lock().unwrap().contains(&"/fresh".to_owned())));
    running.signal("-TERM");
    let finished = running.wait();
    assert_eq!(finished.code, Some(4), "it was stopped");
    assert!(finished.errors.contains("1 page to be fetched first"), "{}", finished.errors);
    assert!(finished.errors.contains("partition ") && finished.errors.contains("epoch 3"), "{finished:?}");
    assert_eq!((captures(&archive, "/fresh"), waiting(&archive).len()), (1, 0));
    assert_eq!(status()["epoch"], 3);
}

#[test]
fn clients_are_limited_each_by_itself() {
    let archive = Archive::new();
    import(
        &archive,
        &[("a.warc", response("urn:test:1", "http://a.test/", "2020-01-02T03:04:05Z", "words"))],
    );
    let served = Served::with(&archive, &["--pings", "--client-header", "X-Real-IP"]);
    let from =
        |client: &str| ask(&served.application, "GET", "/ping?sitemap=x", &[&format!("X-Real-IP: {client}")]);
    for _ in 0..100 {
        assert_eq!(from("198.51.100.1").status, 400);
    }
    let refused = from("198.51.100.1");
    assert_eq!((refused.status, refused.get("retry-after")), (429, Some("3600")));
    assert_eq!(from("198.51.100.2").status, 400);
}

#[test]
fn a_run_that_is_killed_loses_no_notice() {
    let mut dice = Dice::new("pings");
    let site = Site::start(3);
    let archive = site.crawled();
    site.put(&format!("/{KEY}.txt"), KEY);
    let served = Served::with(&archive, &["--pings"]);
    for round in 0..kills(4) {
        let path = format!("/round{round}");
        site.put(&path, "new");
        let url = format!("http://a.test{path}");
        assert_eq!(get(&served.application, &indexnow(&url, KEY)).status, 202);
        let refresh = || {
            let mut command = archive.command("refresh");
            start(command.args(["--budget", "6"]).args(site.options()))
        };
        let run = refresh();
        thread::sleep(Duration::from_millis(dice.below(400)));
        run.kill();
        refresh().wait().succeeded();
        assert_eq!((captures(&archive, &path), waiting(&archive).len()), (1, 0), "round {round}");
    }
    ledger_balances(&archive.path);
}

#[test]
fn settings_are_shown_as_they_stand() {
    let site = Site::start(2);
    let archive = site.crawled();
    fs::write(archive.path.join("crawl.toml"), "delay = \"7s\" # <script>\n").unwrap();
    fs::write(archive.path.join("access.toml"), "[[rule]]\nprefix = \"test,b)/\"\n").unwrap();
    let served =
        Served::with(&archive, &["--pings", "--review", "--by", "anna", "--timegate", "https://c.test/"]);
    let said: Value =
        serde_json::from_str(&text(&get(&served.application, "/settings?format=json"))).unwrap();
    assert_eq!(said["scope"], json!([{ "kind": "host", "seed": "http://a.test/", "max_depth": 255 }]));
    assert_eq!(said["newest_run"]["delay_seconds"], json!([0.0, 0.0]));
    assert_eq!((&said["access_rules"], &said["full_text"]), (&json!(1), &json!(true)));
    assert_eq!((&said["review"]["by"], &said["timegates"]), (&json!("anna"), &json!(["https://c.test/"])));
    assert_eq!((&said["notices"]["most"], &said["notices"]["waiting"]), (&json!(1000), &json!(0)));
    assert_eq!(said["crawl_toml"], "delay = \"7s\" # <script>\n");
    let page = text(&get(&served.application, "/settings?lang=fr"));
    assert!(page.contains("<h1>Réglages</h1>") && page.contains("# &lt;script&gt;"), "{page}");
}

#[test]
fn a_page_with_thousands_of_captures_is_shown_in_pieces() {
    let count = in_full(2_000, 10_000);
    let archive = Archive::new();
    let mut warc = Vec::new();
    for number in 0..count {
        let (hour, minute) = (number / 60 % 24, number % 60);
        let (month, day) = (number / 1440 / 28 + 1, number / 1440 % 28 + 1);
        let date = format!("2020-{month:02}-{day:02}T{hour:02}:{minute:02}:00Z");
        let body = format!("<title>Counter</title><p>It is at {number} now, of {count} in all.</p>");
        warc.extend(response(&format!("urn:test:{number}"), "http://a.test/", &date, &body));
    }
    import(&archive, &[("many.warc", warc)]);
    let served = Served::of(&archive);
    let json =
        |path: &str| -> Value { serde_json::from_str(&text(&get(&served.application, path))).unwrap() };
    let (mut path, mut seen, mut pages) = ("/page?url=http://a.test/&format=json".to_owned(), 0, 0);
    loop {
        let said = json(&path);
        assert_eq!(said["captured"], count);
        seen += said["captures"].as_array().unwrap().len();
        pages += 1;
        let Some(from) = said["older"].as_u64() else { break };
        path = format!("/page?url=http://a.test/&format=json&from={from}");
    }
    assert_eq!((seen, pages), (count, count / 500));
    let page = get(&served.application, "/page?url=http://a.test/");
    assert!(page.status == 200 && page.body.len() < 1 << 20, "{} bytes", page.body.len());
    assert!(text(&page).contains("Older captures"));
    let map = text(&get(&served.replay, "/timemap/link/http://a.test/"));
    assert_eq!(map.matches("memento\"").count(), count);
}
