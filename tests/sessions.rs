//! What servers know of their visitor: cookies, and the page that a visitor comes from.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use flate2::read::MultiGzDecoder;

use crate::support::Archive;
use crate::support::answers::{Answers, field, html, nothing, plain, redirect, whole};
use crate::support::program::start;

/// Requests by `host/path`, each with its field of one name.
type Log = Arc<Mutex<Vec<(String, String)>>>;

fn take(log: &Log) -> Vec<(String, String)> {
    std::mem::take(&mut *log.lock().unwrap())
}

/// Servers with all kinds of walls, and what they were sent as `Cookie`.
fn walled() -> (Answers, Log) {
    let log = Log::default();
    let (seen, mut visits) = (Arc::clone(&log), 0_u32);
    let visits = Mutex::new(move || {
        visits += 1;
        visits
    });
    let server = Answers::with_heads(move |host, path, head| {
        let cookies = field(head, "Cookie");
        seen.lock().unwrap().push((format!("{host}{path}"), cookies.to_owned()));
        let set =
            |to: &str, cookie: &str| whole(302, &format!("Location: {to}\r\nSet-Cookie: {cookie}\r\n"), b"");
        match (host, path) {
            ("wall.test", "/robots.txt") => plain("Sitemap: http://wall.test/map.xml\n"),
            (_, "/robots.txt") => nothing(),
            ("wall.test", "/map.xml") if cookies.contains("seen=") => plain("http://wall.test/mapped"),
            ("wall.test", _) if cookies.contains("seen=s3cr3t") => match path {
                "/" => html("<title>behind</title><a href=/more>m</a><img src=/i.png>"),
                "/more" | "/i.png" => html("<title>more</title>"),
                _ => nothing(),
            },
            ("wall.test", path) => set(path, "seen=s3cr3t; Path=/"),
            ("both.test", "/a" | "/b") if cookies.is_empty() => {
                thread::sleep(Duration::from_millis(500));
                set(path, "both=1; Path=/")
            }
            ("both.test", "/a" | "/b") => html("<title>both</title>"),
            ("bounce.test", "/item?try=1") => set("/item", "ok=1; Path=/"),
            ("bounce.test", "/item") if cookies.contains("ok=1") => html("<title>the article</title>text"),
            ("bounce.test", "/item") => redirect("/item?try=1"),
            ("endless.test", "/") => set(path, &format!("n={}; Path=/", visits.lock().unwrap()())),
            _ => nothing(),
        }
    });
    (server, log)
}

const SEEDS: [&str; 5] = [
    "http://wall.test/",
    "http://both.test/a",
    "http://both.test/b",
    "http://bounce.test/item",
    "http://endless.test/",
];

fn crawl(archive: &Archive, server: &Answers, more: &[&str]) {
    let seeds = SEEDS.map(str::to_owned);
    let options = server.at_once().into_iter().chain(more.iter().map(|option| (*option).to_owned()));
    start(&mut archive.crawl(&seeds, &options.collect::<Vec<_>>())).wait().succeeded();
}

/// Status and session of all captures of a URL, oldest first.
fn captured(archive: &Archive, url: &str) -> Vec<(u64, String)> {
    let query = format!("captures url = '{url}' order by time asc select status, session");
    let rows = archive.json("query", &[query.as_str()]);
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    rows.iter().map(|row| (row["status"].as_u64().unwrap_or_default(), text(&row["session"]))).collect()
}

/// All records, as text.
pub(crate) fn exported(archive: &Archive) -> String {
    let file = archive.folder().join("all.warc.gz");
    archive.run("export", &["warc", "--as-archivist", "--output", file.to_str().unwrap()]).succeeded();
    let mut bytes = Vec::new();
    MultiGzDecoder::new(File::open(file).unwrap()).read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn said(pairs: &[(u64, &str)]) -> Vec<(u64, String)> {
    pairs.iter().map(|(status, session)| (*status, (*session).to_owned())).collect()
}

#[test]
fn what_is_captured_is_the_page_behind_a_cookie_wall() {
    let (server, log) = walled();
    let archive = Archive::new();
    crawl(&archive, &server, &[]);
    assert_eq!(captured(&archive, "http://wall.test/"), said(&[(200, "wall")]));
    for page in ["http://both.test/a", "http://both.test/b"] {
        assert_eq!(captured(&archive, page), said(&[(200, "wall")]), "both had left when the cookie came");
    }
    assert_eq!(captured(&archive, "http://wall.test/more"), said(&[(200, "cookies")]));
    assert_eq!(captured(&archive, "http://wall.test/i.png"), said(&[(200, "cookies")]));
    assert_eq!(captured(&archive, "http://bounce.test/item"), said(&[(302, ""), (200, "wall")]));
    assert_eq!(captured(&archive, "http://endless.test/"), said(&[(302, "wall")]));
    let mut asked = BTreeMap::<String, Vec<String>>::new();
    take(&log).into_iter().for_each(|(url, cookies)| asked.entry(url).or_default().push(cookies));
    assert_eq!(asked["wall.test/"], ["", "seen=s3cr3t"]);
    assert_eq!(asked["endless.test/"], ["", "n=1", "n=2", "n=3", "n=4"], "a few turns");
    for host in ["wall", "bounce", "endless"] {
        assert_eq!(asked[&format!("{host}.test/robots.txt")], [""], "robots.txt is for all");
    }
    assert_eq!(asked["wall.test/mapped"], ["seen=s3cr3t"], "its sitemap was read");
    let records = exported(&archive);
    assert!(records.contains("Cookie: seen=redacted\r\n") && !records.contains("Cookie: seen=s3cr3t\r\n"));
    // Those who begin anew meet the wall again, and it is no other version of the page.
    let options =
        ["--policy", "uniform", "--budget", "9", "--shortest", "0s", "--delay", "0", "--patience", "0s"];
    start(archive.command("refresh").args(options).args(server.connection())).wait().succeeded();
    let asked = take(&log);
    assert!(asked.contains(&("bounce.test/item".to_owned(), "ok=1".to_owned())), "{asked:?}");
    assert_eq!(captured(&archive, "http://wall.test/"), said(&[(200, "wall"); 2]));
    assert_eq!(
        captured(&archive, "http://bounce.test/item"),
        said(&[(302, ""), (200, "wall"), (200, "wall")])
    );
    archive.verify();
}

#[test]
fn cookies_are_for_this_run_or_kept_or_none() {
    let (server, log) = walled();
    let none = Archive::new();
    crawl(&none, &server, &["--cookies", "off"]);
    assert!(take(&log).iter().all(|(_, cookies)| cookies.is_empty()));
    assert_eq!(captured(&none, "http://wall.test/"), said(&[(302, "")]));

    let kept = Archive::new();
    crawl(&kept, &server, &["--cookies", "kept"]);
    let file = kept.path.join("secrets/cookies.jsonl");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    take(&log);
    let options =
        ["--policy", "uniform", "--budget", "9", "--shortest", "0s", "--delay", "0", "--patience", "0s"];
    let refresh = || start(kept.command("refresh").args(options).args(server.connection())).wait();
    refresh().succeeded();
    let asked = take(&log);
    assert!(asked.contains(&("wall.test/".to_owned(), "seen=s3cr3t".to_owned())), "{asked:?}");
    assert!(
        !asked.contains(&("wall.test/".to_owned(), String::new())),
        "a later run comes with them: {asked:?}"
    );
    // A copy is the archive without its secrets.
    let copy = format!("file://{}", kept.folder().join("copy").display());
    kept.run("copy", &["--to", &copy]).succeeded();
    let restored = Archive::new();
    restored.run("copy", &["--from", &copy]).succeeded();
    assert!(restored.segments().exists() && !restored.path.join("secrets").exists());
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    refresh().refused(1, &["secrets/cookies.jsonl", "others can read or write it", "chmod 600"]);
}

#[test]
fn links_and_parts_are_asked_for_on_behalf_of_their_page() {
    let log = Log::default();
    let seen = Arc::clone(&log);
    let server = Answers::with_heads(move |host, path, head| {
        let referer = field(head, "Referer");
        seen.lock().unwrap().push((format!("{host}{path}"), referer.to_owned()));
        match (host, path) {
            (_, "/robots.txt") => nothing(),
            ("gallery.test", "/x?y") => html(
                "<title>g</title><link rel=stylesheet href=/s.css><img src=/1.jpg><img src=http://img.host.test/2.jpg>\
                 <a href=/room>r</a><a href=/moved>m</a>",
            ),
            ("gallery.test", "/moved") => redirect("/there"),
            _ if referer.contains("gallery.test") => html("<title>shown</title>"),
            _ => whole(403, "", b"no hotlinks"),
        }
    });
    let archive = Archive::new();
    start(&mut archive.crawl(&["http://gallery.test/x?y".to_owned()], &server.at_once())).wait().succeeded();
    let asked: BTreeMap<String, String> = take(&log).into_iter().collect();
    for (url, referer) in [
        ("gallery.test/robots.txt", ""),
        ("gallery.test/x?y", ""),
        ("gallery.test/s.css", "http://gallery.test/x?y"),
        ("gallery.test/1.jpg", "http://gallery.test/x?y"),
        ("img.host.test/2.jpg", "http://gallery.test/"),
        ("gallery.test/room", "http://gallery.test/x?y"),
        ("gallery.test/there", "http://gallery.test/x?y"),
    ] {
        assert_eq!(asked.get(url).map(String::as_str), Some(referer), "{url}");
    }
}
