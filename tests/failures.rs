//! What a failure is: an event, neither a capture nor an end. Pages that vanish, fail and come back, asked year by year;
//! what a rebuild keeps of refusals; and records that cannot be read.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use archive_storage::Store;
use serde_json::Value;

use crate::imports::import;
use crate::support::Archive;
use crate::support::answers::{Answers, html, nothing, plain, redirect, whole};
use crate::support::program::start;
use crate::support::served::{Served, ask};
use crate::support::warc::{answer, response};

/// A web whose answers depend on how far its story has gone.
struct Story {
    web: Answers,
    step: Arc<AtomicUsize>,
    archive: Archive,
}

impl Story {
    fn begin(answer: impl Fn(usize, &str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let step = Arc::new(AtomicUsize::new(0));
        let now = Arc::clone(&step);
        let web =
            Answers::start(move |host, path| answer(now.load(Ordering::Relaxed), &format!("{host}{path}")));
        Self { web, step, archive: Archive::new() }
    }

    fn run(&self, command: &mut Command, time: &str) -> Vec<String> {
        command.args(["--delay", "0", "--clock", time]).args(self.web.connection());
        start(command).wait().succeeded();
        self.web.take_asked()
    }

    fn crawl(&self, seeds: &[&str], time: &str) -> Vec<String> {
        let seeds: Vec<String> = seeds.iter().map(|seed| (*seed).to_owned()).collect();
        self.run(&mut self.archive.crawl::<&str>(&seeds, &[]), time)
    }

    /// Goes on to a step and refreshes everything that is due; returns what was asked.
    fn refresh(&self, step: usize, time: &str) -> Vec<String> {
        self.step.store(step, Ordering::Relaxed);
        self.run(self.archive.command("refresh").args(["--budget", "1000"]), time)
    }

    fn row(&self, query: &str) -> Value {
        self.archive.json("query", &[query]).remove(0)
    }
}

fn page(title: &str, text: &str) -> Vec<u8> {
    html(&format!(
        "<!DOCTYPE html><html lang=en>{title}<p>{text} at the lending desk of the library</p></html>"
    ))
}

const YEARS: [&str; 7] = ["2018", "2019", "2020", "2021", "2022", "2023", "2024"];

fn noon(year: &str) -> String {
    // More than a year apart, in leap years too.
    let day = year.parse::<u32>().unwrap() - 2017;
    format!("{year}-03-{:02}T12:00:00Z", 2 * day)
}

/// A page with three versions that is then gone, forbidden, not HTTP, and gone; one that loses its title; one that moves.
fn years() -> Story {
    let story = Story::begin(|step, url| match (url.strip_prefix("a.test").unwrap_or_default(), step) {
        ("/", _) => html(
            "<title>Home</title><a href=/hours>h</a><a href=/name>n</a><a href=/moves>m</a><a href=/shaky>s</a>",
        ),
        ("/shaky", 0..=3) => page("<title>Shaky</title>", "shaky"),
        ("/shaky", _) => whole(403, "Content-Type: text/html\r\n", b"<title>Forbidden</title>"),
        ("/hours", 0..=2) => page("<title>Opening hours</title>", YEARS[step]),
        ("/hours", 4) => whole(403, "Content-Type: text/plain\r\n", b"forbidden"),
        ("/hours", 5) => b"this is no HTTP\r\n\r\n".to_vec(),
        ("/hours", _) => whole(404, "Content-Type: text/plain\r\n", b"Not found"),
        ("/name", 0) => page("<title>Old name</title>", "named"),
        ("/name", 1 | 2) => page("", "nameless"),
        ("/name", _) => whole(404, "Content-Type: text/html\r\n", b"<title>Not Found</title>"),
        ("/moves", 0) => page("<title>Here</title>", "still here"),
        ("/moves", _) => {
            whole(301, "Location: /hours\r\nContent-Type: text/html\r\n", b"<title>Moved</title>")
        }
        _ => nothing(),
    });
    story.crawl(&["http://a.test/"], &noon(YEARS[0]));
    for (step, year) in YEARS.iter().enumerate().skip(1) {
        story.refresh(step, &noon(year));
    }
    story
}

#[test]
fn a_failure_is_no_capture() {
    let story = years();
    let fields = "captures, attempts, versions, status, content_status, type, content_type, title, first_seen, \
                  last_seen, last_answer, last_attempt, failing_since";
    let row = story.row(&format!("page url = \"http://a.test/hours\" select {fields}"));
    let numbers =
        ["captures", "attempts", "versions", "status", "content_status"].map(|name| row[name].as_u64());
    assert_eq!(numbers, [3, 7, 3, 404, 200].map(Some), "{row}");
    assert_eq!((&row["type"], &row["content_type"]), (&"html".into(), &"text/html".into()));
    assert_eq!(row["title"], "Opening hours");
    let times = ["first_seen", "last_seen", "failing_since", "last_answer", "last_attempt"];
    let years = times.map(|name| row[name].as_str().unwrap()[..4].to_owned());
    assert_eq!(years, ["2018", "2020", "2021", "2024", "2024"], "{row}");
    let captures = |condition: &str| {
        let query = format!("count captures page.url = \"http://a.test/hours\" and {condition}");
        story.row(&query)["count"].as_u64().unwrap()
    };
    assert_eq!((captures("content = yes"), captures("content = no"), captures("kind = failed")), (3, 4, 1));
    let then =
        story.row("page url = \"http://a.test/hours\" select captures, attempts, status as of 2022-12-31");
    assert_eq!(["captures", "attempts", "status"].map(|name| then[name].as_u64()), [3, 5, 403].map(Some));
    let of_attempt = story.row("page url = \"http://a.test/hours\" select failure, size");
    assert_eq!(of_attempt["failure"], Value::Null, "the newest attempt was answered");
    assert!(of_attempt["size"].as_u64().unwrap() > 50, "of the content: {of_attempt}");

    // The page of the URL, its calendar, TimeMap and CDX.
    let served = Served::of(&story.archive);
    let body = |address: &str, path: &str| {
        let answer = ask(address, "GET", path, &[]);
        (answer.status, String::from_utf8(answer.body).unwrap())
    };
    let json = |path: &str| serde_json::from_str::<Value>(&body(&served.application, path).1).unwrap();
    let shown = json("/page?url=http%3A%2F%2Fa.test%2Fhours&format=json");
    assert_eq!(
        (&shown["captured"], &shown["attempts"], &shown["title"]),
        (&3.into(), &7.into(), &row["title"])
    );
    let months = shown["months"].as_array().unwrap();
    assert_eq!(months.iter().map(|year| year[0].as_u64().unwrap()).collect::<Vec<_>>(), [2018, 2019, 2020]);
    let (_, map) = body(&served.replay, "/timemap/link/http://a.test/hours");
    assert_eq!(map.matches("memento\"").count(), 3, "{map}");
    let (_, lines) = body(&served.replay, "/cdx?url=a.test/hours&output=json");
    assert_eq!(lines.lines().count(), 6, "attempts that nothing answered have no line: {lines}");
    // A reader sees what stood there: a page that was gone is gone, an error hides nothing.
    let at = |stamp: &str| {
        let mut answer = ask(&served.replay, "GET", &format!("/web/{stamp}id_/http://a.test/hours"), &[]);
        while let Some(to) = answer.get("location").map(str::to_owned) {
            answer = ask(&served.replay, "GET", &to, &[]);
        }
        (answer.status, answer.get("memento-datetime").unwrap_or_default().to_owned())
    };
    let (status, time) = at("20220601");
    assert!(status == 404 && time.contains("2021"), "the 403 of 2022 says nothing: {status} {time}");
    assert!(at("20200601").0 == 200);

    // Search finds what stood there, unless it is gone: an error hides nothing.
    let hits = story.archive.json("search", &["lending"]);
    let urls: Vec<&str> = hits.iter().map(|hit| hit["url"].as_str().unwrap()).collect();
    assert_eq!(urls, ["http://a.test/shaky"]);
    assert!(hits[0]["snippet"].as_str().unwrap().contains("lending desk"), "{hits:?}");
    assert_eq!(hits[0]["title"], "Shaky");
    let stats = story.archive.json::<&str>("stats", &[]).remove(0);
    let all = story.row("count captures content = yes");
    assert_eq!(stats["captures"], all["count"], "{stats}");
    assert_eq!(json("/?format=json")["captures"], stats["captures"]);
}

#[test]
fn what_is_said_of_a_page_is_of_its_newest_content() {
    let story = years();
    let title = |url: &str, then: &str| {
        let query = format!("page url = \"http://a.test/{url}\" select title, language{then}");
        let row = story.row(&query);
        (row["title"].clone(), row["language"].clone())
    };
    assert_eq!(title("name", ""), (Value::Null, "en".into()), "neither the old name nor that of the error");
    assert_eq!(title("name", " as of 2018-12-31"), ("Old name".into(), "en".into()));
    assert_eq!(title("name", " as of 2019-12-31").0, Value::Null);
    assert_eq!(title("moves", "").0, Value::Null, "a redirect has no title of its own");
    assert_eq!(title("moves", " as of 2019-12-31").0, Value::Null);
    let links = story.archive.json("query", &["link source = \"http://a.test/moves\" select target, kind"]);
    assert_eq!(links.len(), 1, "{links:?}");
}

#[test]
fn content_that_arrives_after_a_failure_is_the_page() {
    let archive = Archive::new();
    let url = "http://a.test/p";
    let lost = "HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n\r\n<title>Not Found</title>";
    let of = |id: &str, year: &str, title: &str| {
        response(
            id,
            url,
            &format!("{year}-01-02T03:04:05Z"),
            &format!("<title>{title}</title><a href=/{title}>"),
        )
    };
    // Newest first: each file brings what is older.
    import(&archive, &[("a.warc", answer("urn:a", url, "2024-01-02T03:04:05Z", &[], lost))]);
    import(&archive, &[("b.warc", of("urn:b", "2020", "new"))]);
    import(&archive, &[("c.warc", of("urn:c", "2019", "old"))]);
    let fields =
        "captures, attempts, title, type, status, content_status, first_seen, last_seen, failing_since";
    let row = archive.json("query", &[format!("page url = \"{url}\" select {fields}")]).remove(0);
    let numbers = ["captures", "attempts", "status", "content_status"].map(|name| row[name].as_u64());
    assert_eq!(numbers, [2, 3, 404, 200].map(Some), "{row}");
    assert_eq!((&row["title"], &row["type"]), (&"new".into(), &"html".into()));
    let years =
        ["first_seen", "last_seen", "failing_since"].map(|name| row[name].as_str().unwrap()[..4].to_owned());
    assert_eq!(years, ["2019", "2020", "2024"]);
    let links = archive.json("query", &["link source = \"http://a.test/p\" select target"]);
    assert_eq!(links, [serde_json::json!({ "target": "http://a.test/new" })]);
}

#[test]
fn an_end_is_asked_again_with_growing_pauses_until_it_passes() {
    let story = Story::begin(|step, url| match (url.strip_prefix("a.test").unwrap_or_default(), step) {
        ("/", _) => html("<title>Home</title><a href=/hours>h</a><a href=/never>n</a>"),
        ("/hours", 0 | 2) => page("<title>Hours</title>", "open"),
        ("/never", 2) => page("<title>Never</title>", "at last"),
        _ => nothing(),
    });
    let day = |day: u32| format!("2026-{:02}-{:02}T12:00:00Z", 1 + day / 28, 1 + day % 28);
    story.crawl(&["http://a.test/"], &day(0));
    story.refresh(0, &day(1));
    let mut asked: Vec<u32> = Vec::new();
    for at in 2..22 {
        let requests = story.refresh(1, &day(at));
        assert!(requests.iter().any(|url| url == "a.test/"), "{requests:?}");
        asked.extend(requests.iter().filter(|url| *url == "a.test/hours").map(|_| at));
    }
    let pauses: Vec<u32> = asked.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(asked[0] == 2 && (3..9).contains(&asked.len()) && pauses.is_sorted(), "{asked:?}");
    assert!(*pauses.last().unwrap() >= 3, "{asked:?}");
    // It is announced when it will be asked again.
    let why = story.archive.json("why", &["http://a.test/hours"]).remove(0);
    assert!(why["next_visit"]["failing_since"].as_str().unwrap().starts_with("2026-01-03"), "{why}");
    assert!(why["next_visit"]["interval_days"].as_f64().unwrap() > 2.0, "{why}");
    let plan =
        story.archive.run("plan", &["--budget", "10", "--days", "10", "--every", "1d", "--clock", &day(22)]);
    assert!(plan.succeeded().errors.contains("3 pages bring nothing now"));
    // Both come back, and are asked every day again.
    let mut back = Vec::new();
    for at in (25..75).step_by(10) {
        back.extend(story.refresh(2, &day(at)));
    }
    assert!(
        ["a.test/hours", "a.test/never"].iter().all(|url| back.iter().any(|asked| asked == url)),
        "{back:?}"
    );
    for at in 76..79 {
        let requests = story.refresh(2, &day(at));
        for url in ["a.test/hours", "a.test/never"] {
            assert!(requests.iter().any(|asked| asked == url), "{url} on day {at}: {requests:?}");
        }
    }
    let row = story.row("page url = \"http://a.test/hours\" select failing_since, status");
    assert_eq!((&row["failing_since"], &row["status"]), (&Value::Null, &200.into()));
}

#[test]
fn a_rebuild_forgets_no_refusal_and_no_seed() {
    let story = Story::begin(|_, url| match url {
        "a.test/robots.txt" => plain("User-agent: *\nDisallow: /private/\n"),
        "closed.test/robots.txt" => plain("User-agent: *\nDisallow: /\n"),
        "a.test/" => html(
            "<title>Home</title><a href=/private/1>1</a><a href=/private/2>2</a><a href=/page>p</a>\
             <a href=/old>o</a><a href=/gone>g</a><a href=/x/x/x/x/x/x/x/>x</a><img src=/picture.png>",
        ),
        "a.test/page" => page("<title>Page</title>", "open"),
        "a.test/picture.png" => whole(200, "Content-Type: image/png\r\n", b"\x89PNG\r\n\x1a\n"),
        "a.test/old" => redirect("/page"),
        _ => nothing(),
    });
    let time = "2026-02-01T12:00:00Z";
    let seeds = ["http://a.test/", "http://closed.test/", "http://a.test/page"].map(str::to_owned);
    story.run(&mut story.archive.crawl(&seeds, &["--sites", "host"]), time);
    let all = "page select url, site, host, title, type, content_type, language, status, content_status, depth, captures, \
               attempts, versions, first_seen, last_seen, last_answer, last_attempt, failing_since, changed, hop, via, \
               seed, refusal, redirect, size, digest, server, failure, hops order by url limit 100";
    let ask = || {
        let hosts = "host select host, site, pages, urls, captures, attempts, failures, size order by host";
        (story.archive.json("query", &[all]), story.archive.json("query", &[hosts]))
    };
    let before = ask();
    let refused = before.0.iter().filter(|row| row["refusal"] == "robots").count();
    assert_eq!(refused, 4, "two pages, a seed and the guess of its sitemap: {before:#?}");
    story.archive.run::<&str>("rebuild", &[]).succeeded();
    assert_eq!(ask(), before);
    // Without the state, too.
    std::fs::remove_dir_all(story.archive.path.join("state")).unwrap();
    story.archive.run::<&str>("rebuild", &[]).succeeded();
    let again = ask();
    let marks = |rows: &[Value]| {
        let mark = |row: &Value| (row["url"].clone(), row["seed"].clone(), row["refusal"].clone());
        rows.iter().map(mark).collect::<Vec<_>>()
    };
    assert_eq!(marks(&again.0), marks(&before.0));
    story.archive.verify();
}

/// Destroys the record of a page's newest capture.
fn destroy(archive: &Archive, url: &str) {
    let store = Store::read_only(&archive.path).unwrap();
    let page = store.state().find(url).unwrap().unwrap();
    let (_, capture) = store.state().history(page).unwrap().next().unwrap().unwrap();
    let entry = store.state().segment(capture.location.segment).unwrap();
    let path = archive.segments().join(&entry.file);
    drop(store);
    let file = OpenOptions::new().write(true).open(path).unwrap();
    let middle = capture.location.offset + u64::from(capture.location.length) / 2;
    file.write_all_at(&[0xff; 16], middle).unwrap();
}

#[test]
fn one_record_that_cannot_be_read_ends_no_list() {
    let story = Story::begin(|_, url| {
        let xml = |name: &str| {
            let body = format!("<catalogue><title>{name}</title><p>books of the library</p></catalogue>");
            whole(200, "Content-Type: text/xml\r\n", body.as_bytes())
        };
        match url {
            "a.test/" => {
                html("<title>Home</title><a href=/1.xml>1</a><a href=/2.xml>2</a><a href=/3.xml>3</a>")
            }
            "a.test/1.xml" => xml("one"),
            "a.test/2.xml" => xml("two"),
            "a.test/3.xml" => xml("three"),
            _ => nothing(),
        }
    });
    story.crawl(&["http://a.test/"], "2026-02-01T12:00:00Z");
    destroy(&story.archive, "http://a.test/2.xml");
    let left_out = |command: &str, arguments: &[&str]| {
        story.archive.run(command, arguments).refused(4, &["could not be read", "a.test/2.xml"])
    };
    for query in [
        "version //p contains library select url, //title order by url",
        "version url ends with \".xml\" select url, //title",
        "version //p contains library select count",
    ] {
        let rows = left_out("query", &[query, "--json"]).json();
        let count = rows[0]["count"].as_u64().unwrap_or(rows.len() as u64);
        assert_eq!(count, 2, "{query}: {rows:?}");
    }
    // It is found by the index, but its text cannot be shown.
    let hits = left_out("search", &["books", "--json"]).json();
    assert_eq!(hits.len(), 3, "{hits:?}");
    let out = story.archive.folder().join("all.warc.gz");
    story.archive.run("export warc", &["--output", out.to_str().unwrap()]).refused(4, &["could not be read"]);
    let copy = Archive::new();
    copy.run("import", &[out.to_str().unwrap()]).succeeded();
    let urls = copy.json("query", &["page captures > 0 select url order by url"]);
    assert_eq!(
        urls.iter().filter(|row| row["url"].as_str().unwrap().ends_with(".xml")).count(),
        2,
        "{urls:?}"
    );
    // Lists of captures go on.
    assert_eq!(story.archive.json("history", &["http://a.test/2.xml"]).len(), 1);
    let served = Served::of(&story.archive);
    let get = |path: &str| String::from_utf8(ask(&served.replay, "GET", path, &[]).body).unwrap();
    assert_eq!(get("/cdx?url=a.test/*&filter=mime:xml&output=json").lines().count(), 3);
    assert!(get("/timemap/link/http://a.test/2.xml").contains("memento\""));
}
