//! A page is its parts: style sheets and pictures are asked again with their pages, each as often as it changes.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex};
use std::thread;

use archive_storage::{Capture, CaptureKind, Digest};
use chrono::{DateTime, SecondsFormat, SubsecRound, TimeDelta, Utc};
use serde_json::Value;

use crate::support::answers::{Answers, nothing, whole};
use crate::support::program::start;
use crate::support::{Archive, Captured, Dice, captures};

const PAGES: &str = "http://www.pages.test";
const SHARED: &str = "http://cdn.shared.test";

/// Something that a server has: what it is, and when it changes, in days. Before day 0 of `since` it is not there.
struct Thing {
    kind: &'static str,
    /// What the content begins with; `VERSION` becomes the number of the version.
    head: String,
    bytes: usize,
    since: f64,
    changes: Vec<f64>,
    has_tag: bool,
}

impl Thing {
    fn new(kind: &'static str, head: &str, changes: &[f64]) -> Self {
        Self { kind, head: head.to_owned(), bytes: 0, since: 0.0, changes: changes.to_vec(), has_tag: true }
    }

    /// The content on a day; `None` if it is not there.
    fn at(&self, day: f64) -> Option<Vec<u8>> {
        let version = self.changes.iter().filter(|change| **change <= day).count();
        let mut content = self.head.replace("VERSION", &version.to_string());
        while content.len() < self.bytes {
            content += &format!(" <!-- {:x} of {version} -->", content.len() * 7919 % 65_521);
        }
        (day >= self.since).then(|| content.into_bytes())
    }
}

/// A web on two hosts with a time of its own.
struct World {
    things: Arc<BTreeMap<String, Thing>>,
    day: Arc<Mutex<f64>>,
    server: Answers,
    archive: Archive,
}

impl World {
    fn new(things: Vec<(String, Thing)>) -> Self {
        let things: Arc<BTreeMap<String, Thing>> = Arc::new(things.into_iter().collect());
        let day = Arc::new(Mutex::new(0.0));
        let (known, now) = (Arc::clone(&things), Arc::clone(&day));
        let server = Answers::with_tags(move |host, path, tag| {
            let thing = known.get(&format!("http://{host}{path}"));
            let content = thing.and_then(|thing| Some((thing, thing.at(*now.lock().unwrap())?)));
            let Some((Thing { kind, has_tag, .. }, body)) = content else { return nothing() };
            let own = format!("\"{}\"", &Digest::sha256(&body).to_string()[7..23]);
            let about = "Server: nginx\r\nCache-Control: max-age=600\r\nVary: Accept-Encoding\r\nAge: 0\r\n";
            match has_tag {
                true if own == tag => {
                    format!("HTTP/1.1 304 Not Modified\r\n{about}ETag: {own}\r\n\r\n").into_bytes()
                }
                true => whole(200, &format!("Content-Type: {kind}\r\n{about}ETag: {own}\r\n"), &body),
                false => whole(200, &format!("Content-Type: {kind}\r\n{about}"), &body),
            }
        });
        Self { things, day, server, archive: Archive::new() }
    }

    fn go_to(&self, day: f64) {
        *self.day.lock().unwrap() = day;
    }

    fn time(&self) -> DateTime<Utc> {
        let microseconds = (*self.day.lock().unwrap() * 86_400e6).round() as i64;
        *BEGINNING + TimeDelta::microseconds(microseconds)
    }

    fn clock(&self) -> [String; 2] {
        ["--clock".to_owned(), self.time().to_rfc3339_opts(SecondsFormat::Micros, true)]
    }

    /// Crawls from this page, and returns what was asked.
    fn crawl(&self, path: &str) -> Vec<String> {
        let seeds = [format!("{PAGES}{path} scope=host")];
        start(self.archive.crawl(&seeds, &self.server.at_once()).args(self.clock())).wait().succeeded();
        self.take_asked()
    }

    /// Refreshes with these arguments, and returns the summary and what was asked, without robots.txt.
    fn refresh(&self, arguments: &[&str]) -> (Value, Vec<String>) {
        let mut command = self.archive.command("refresh");
        command.arg("--json").args(arguments).args(self.server.at_once()).args(self.clock());
        let summary = start(&mut command).wait().succeeded().json().pop().unwrap();
        (summary, self.take_asked())
    }

    fn take_asked(&self) -> Vec<String> {
        let asked = self.server.take_asked().into_iter().map(|asked| format!("http://{asked}"));
        asked.filter(|url| !url.ends_with("/robots.txt") && !url.ends_with("/sitemap.xml")).collect()
    }

    fn query(&self, query: &str) -> Vec<Value> {
        self.archive.json("query", &[query])
    }
}

/// Day 0. Due times assume that fetches went on until now, so it is not long ago.
static BEGINNING: LazyLock<DateTime<Utc>> =
    LazyLock::new(|| Utc::now().trunc_subsecs(0) - TimeDelta::days(30));

/// Returns the day of a capture.
fn day(capture: &Capture) -> f64 {
    (capture.time - BEGINNING.timestamp_micros()) as f64 / 86_400e6
}

/// Returns the captures of a URL by kind and status, in order of time.
fn history(found: &Captured, url: &str) -> Vec<(CaptureKind, u16)> {
    found.0.get(url).into_iter().flatten().map(|capture| (capture.kind, capture.status)).collect()
}

/// A site with two pages that share a style sheet on another host; the sheet imports another one with a picture.
fn small() -> World {
    let page = |text: &str| {
        format!(
            "<title>{text}</title><link rel=stylesheet href={SHARED}/a.css><p>{text} VERSION</p>\
             <a href=/>home</a> <a href=/two>two</a><img src=/late.png><img src=/still.png>"
        )
    };
    World::new(vec![
        (format!("{PAGES}/"), Thing::new("text/html", &page("home"), &[2.5, 3.5])),
        (format!("{PAGES}/two"), Thing::new("text/html", &page("two"), &[])),
        (
            format!("{PAGES}/three"),
            Thing::new("text/html", &format!("<link rel=stylesheet href={SHARED}/a.css>"), &[]),
        ),
        (format!("{SHARED}/a.css"), Thing::new("text/css", "@import 'b.css'; p { margin: 1px }", &[])),
        (
            format!("{SHARED}/b.css"),
            Thing::new("text/css", "p { width: VERSIONpx; background: url(back.png) }", &[1.5]),
        ),
        (format!("{SHARED}/back.png"), Thing::new("image/png", "back VERSION", &[2.5])),
        (format!("{PAGES}/still.png"), Thing::new("image/png", "still", &[])),
        (format!("{PAGES}/late.png"), Thing { since: 2.5, ..Thing::new("image/png", "late", &[]) }),
    ])
}

#[test]
fn parts_of_a_refreshed_page_are_asked_once_and_conditionally() {
    let world = small();
    world.crawl("/");
    let all = ["a.css", "b.css", "back.png"].map(|name| format!("{SHARED}/{name}"));
    let all: Vec<String> = all
        .into_iter()
        .chain(["/", "/late.png", "/still.png", "/two"].map(|path| format!("{PAGES}{path}")))
        .collect();
    for number in 1..=4 {
        world.go_to(f64::from(number));
        let (summary, mut asked) = world.refresh(&["--budget", "2"]);
        asked.sort();
        // Missing since the crawl, the late picture is asked on the first, second and fourth day.
        let expected: Vec<String> =
            all.iter().filter(|url| number != 3 || !url.contains("late")).cloned().collect();
        assert_eq!(asked, expected, "both pages share their parts, which are asked once");
        assert_eq!(summary["parts"], expected.len() - 2, "{summary}");
    }
    let (response, same) = ((CaptureKind::Response, 200), (CaptureKind::NotModified, 304));
    let gone = (CaptureKind::Response, 404);
    let found = captures(&world.archive.path);
    assert_eq!(history(&found, &all[0]), [response, same, same, same, same]);
    assert_eq!(history(&found, &all[1]), [response, same, response, same, same]);
    assert_eq!(history(&found, &all[2]), [response, same, same, response, same]);
    let late = history(&found, &format!("{PAGES}/late.png"));
    assert_eq!(late, [gone, gone, gone, response], "a missing part is asked again: {late:?}");
    let (summary, asked) = world.refresh(&["--budget", "2"]);
    assert_eq!((summary["parts"].as_u64(), asked.len()), (Some(0), 0), "nothing is due at once: {asked:?}");
    world.go_to(5.0);
    let asked = world.crawl("/three");
    assert_eq!(asked.len(), 4, "the old parts of a new page: {asked:?}");
    assert!(asked[0].ends_with("/three") && all[..3].iter().all(|part| asked.contains(part)), "{asked:?}");
    let (_, asked) = world.refresh(&["--budget", "2", "--parts", "0"]);
    assert_eq!(asked.len(), 2, "{asked:?}");
}

#[test]
fn why_and_queries_say_when_parts_are_asked_and_how_they_agree_with_their_page() {
    let world = small();
    world.crawl("/");
    world.go_to(1.0);
    world.refresh(&["--budget", "2"]);
    let sheet = format!("{SHARED}/b.css");
    let why = world.archive.json("why", &[&sheet]).remove(0);
    let next = &why["next_visit"];
    assert_eq!(next["part"]["page"], format!("{PAGES}/"), "{why}");
    assert_eq!(next["part"]["missing"], false, "{why}");
    assert!(next["due"].is_string() && next["part"]["shortest_days"].as_f64() > Some(0.01), "{why}");
    let late = world.archive.json("why", &[&format!("{PAGES}/late.png")]).remove(0);
    assert_eq!(late["next_visit"]["part"]["missing"], true, "{late}");
    let days = late["next_visit"]["part"]["shortest_days"].as_f64().unwrap();
    assert!((days - 1.0).abs() < 0.01, "it was missing for a day: {late}");
    let text = world.archive.run("why", &[&sheet]).succeeded().text();
    assert!(text.contains("a part: asked again with the pages that have it"), "{text}");
    let rows = world.query(&format!("page url = \"{sheet}\" select next visit"));
    let time = |value: &Value| DateTime::parse_from_rfc3339(value.as_str().unwrap()).unwrap();
    let apart = time(&rows[0]["next_visit"]) - time(&next["due"]);
    assert!(apart.num_seconds().abs() < 60, "{rows:?} {why}");
    assert_eq!(world.query("count pages next visit is empty and status = 200")[0]["count"], 0);

    // The parts of both pages as of the second day: the sheet changes later.
    world.go_to(9.0);
    world.refresh(&["--budget", "2", "--parts", "0"]);
    let query = "capture page.type = html select url, time, parts, parts age, parts right order by time asc";
    let rows = world.query(query);
    assert_eq!(rows.len(), 6, "{rows:?}");
    for (row, apart) in rows.iter().zip([0.0, 0.0, 0.0, 0.0, 8.0, 8.0]) {
        assert_eq!(row["parts"], 5, "{row}");
        let days = row["parts_age"].as_f64().unwrap() / 86_400.0;
        let right = row["parts_right"].as_f64().unwrap();
        assert!((days - apart).abs() < 0.01 && (right > 0.999) == (apart < 1.0), "{row}");
    }
    let rows = world.query("page type = html select parts, parts age, parts right");
    assert!(
        rows.iter().all(|row| row["parts"] == 5 && row["parts_right"].as_f64() < Some(0.999)),
        "{rows:?}"
    );
    let clock = world.clock();
    let report = world.archive.json("freshness", &clock).remove(0);
    assert_eq!(report["parts"]["parts"], 10, "{report}");
    assert!((report["parts"]["age_days"].as_f64().unwrap() - 8.0).abs() < 0.01, "{report}");
    let text = world.archive.run("freshness", &clock).succeeded().text();
    assert!(text.contains("as the server gave them with their page"), "{text}");
    world.refresh(&["--budget", "0", "--parts", "20"]);
    let plan = [&["--budget", "2", "--days", "10"].map(str::to_owned)[..], &clock[..]].concat();
    let rows = world.archive.json("plan", &plan);
    let asked = rows.iter().find(|row| row["asked"] == true).unwrap();
    let (fetches, requests) = (asked["fetches"].as_u64().unwrap(), asked["requests"].as_u64().unwrap());
    assert!(requests > fetches + 5 && requests < 6 * fetches, "{asked}");
}

#[test]
fn as_many_parts_are_asked_as_the_limits_allow() {
    let pictures: Vec<String> = (0..=1000).map(|number| format!("{PAGES}/{number}.png")).collect();
    let images: String = pictures.iter().map(|url| format!("<img src={url}>")).collect();
    let page = Thing::new("text/html", &format!("<title>many</title>{images}"), &[]);
    let mut things = vec![(format!("{PAGES}/"), page)];
    let picture = |url: &String| (url.clone(), Thing::new("image/png", &format!("picture {url}"), &[]));
    things.extend(pictures.iter().map(picture));
    let world = World::new(things);
    world.crawl("/");
    assert_eq!(world.query("page type = html select parts")[0]["parts"], 1000);
    world.go_to(1.0);
    let (summary, _) = world.refresh(&["--budget", "1", "--parts", "1"]);
    assert_eq!((&summary["parts"], &summary["parts_left"]), (&100.into(), &900.into()), "{summary}");
    world.go_to(2.0);
    let (summary, asked) = world.refresh(&["--budget", "1", "--parts", "2000"]);
    assert_eq!((&summary["parts"], asked.len()), (&1000.into(), 1001), "{summary}");
}

/// Days on which something changes at random about `rate` times a day.
fn changes(dice: &mut Dice, rate: f64, days: f64) -> Vec<f64> {
    let (mut day, mut changes) = (0.0, Vec::new());
    while rate > 0.0 && day < days {
        // An exponential time from a uniform number.
        day -= ((dice.below(1 << 20) + 1) as f64 / f64::from(1 << 20)).ln() / rate;
        changes.push(day);
    }
    changes
}

/// Pages of the web of the next test, and the days of its refreshes.
const COUNT: usize = 40;
const DAYS: u32 = 18;

/// A web of pages that change daily, each with three pictures, which all share four files of another host.
fn lively() -> World {
    let mut dice = Dice::of(51);
    let mut things = Vec::new();
    let sheet = "@import 'base.css'; p { color: #VERSION }";
    for (name, kind, head, rate) in [
        ("site.css", "text/css", sheet, 0.05),
        ("base.css", "text/css", "p { background: url(back.png) } /* VERSION */", 0.02),
        ("back.png", "image/png", "back VERSION", 0.02),
        ("site.js", "text/javascript", "var version = VERSION;", 0.1),
    ] {
        let thing = Thing::new(kind, head, &changes(&mut dice, rate, DAYS.into()));
        things.push((format!("{SHARED}/{name}"), Thing { bytes: 4_000, ..thing }));
    }
    for page in 0..COUNT {
        let mut head = format!(
            "<title>page {page}</title><link rel=stylesheet href={SHARED}/site.css><script src={SHARED}/site.js></script>\
             <p>What page {page} says on day VERSION.</p><a href=/{}>next</a><a href=/>home</a>",
            page + 1
        );
        for (number, rate) in [0.0, 0.005, if page % 10 == 0 { 0.3 } else { 0.0 }].into_iter().enumerate() {
            let url = format!("{PAGES}/{page}-{number}.png");
            head += &format!("<img src={url}>");
            let thing =
                Thing::new("image/png", &format!("{url} VERSION"), &changes(&mut dice, rate, DAYS.into()));
            things.push((url, Thing { bytes: 10_000, ..thing }));
        }
        let days: Vec<f64> = (0..DAYS).map(|day| f64::from(day) + 0.5).collect();
        let url = if page == 0 { format!("{PAGES}/") } else { format!("{PAGES}/{page}") };
        let thing = Thing::new("text/html", &head, &days);
        things.push((url, Thing { bytes: 20_000, has_tag: false, ..thing }));
    }
    World::new(things)
}

/// Refreshes a web daily; returns the bytes received and the parts asked.
fn live(world: &World, arguments: &[&str]) -> (u64, Vec<u64>) {
    world.crawl("/");
    let (mut bytes, mut parts) = (0, Vec::new());
    for number in 1..DAYS {
        world.go_to(number.into());
        let (summary, _) = world.refresh(&[&["--budget", "40"], arguments].concat());
        bytes += summary["bytes"].as_u64().unwrap();
        parts.push(summary["parts"].as_u64().unwrap());
    }
    (bytes, parts)
}

/// Returns the share of parts that are what the server gave on the day of their page's capture, and the share of those
/// that are so within the page's own interval, as a replay shows them: the capture nearest to the page's.
fn right(world: &World) -> (f64, f64) {
    let found = captures(&world.archive.path);
    let (mut all, mut exact, mut near) = (0, 0, 0);
    let is_page = |url: &str| world.things.get(url).is_some_and(|thing| thing.kind == "text/html");
    for (url, history) in found.0.iter().filter(|(url, _)| is_page(url)) {
        let own = url.rsplit('/').next().filter(|page| !page.is_empty()).unwrap_or("0");
        for (place, capture) in history.iter().enumerate() {
            let at = day(capture);
            let before = place.checked_sub(1).map_or(at, |place| day(&history[place]));
            let after = history.get(place + 1).map_or(at + (at - before), day);
            let own = format!("{PAGES}/{own}-");
            let parts = world.things.keys().filter(|url| url.starts_with(SHARED) || url.starts_with(&own));
            for part in parts {
                let shown =
                    found.0[part].iter().min_by(|a, b| (day(a) - at).abs().total_cmp(&(day(b) - at).abs()));
                let shown = shown.unwrap();
                let changes = &world.things[part].changes;
                let version = |day: f64| changes.iter().filter(|change| **change <= day).count();
                all += 1;
                exact += u32::from(version(day(shown)) == version(at));
                near += u32::from((version(before)..=version(after)).contains(&version(day(shown))));
            }
        }
    }
    (f64::from(exact) / f64::from(all), f64::from(near) / f64::from(all))
}

#[test]
fn parts_are_right_within_their_pages_interval_at_little_cost() {
    let (with, without) = (lively(), lively());
    let [(bytes, parts), (bytes_without, none)] = thread::scope(|scope| {
        let lives = [scope.spawn(|| live(&with, &[])), scope.spawn(|| live(&without, &["--parts", "0"]))];
        lives.map(|life| life.join().unwrap())
    });
    assert!(none.iter().all(|parts| *parts == 0));
    let ((exact, near), (exact_without, near_without)) = (right(&with), right(&without));
    let more = bytes as f64 / bytes_without as f64 - 1.0;
    println!(
        "right: {exact:.4} (without parts {exact_without:.4}), within the interval {near:.4} ({near_without:.4}); \
         {:.1} % more bytes; parts asked: {parts:?}",
        100.0 * more
    );
    assert!(near >= 0.95 && exact >= 0.95, "{near} {exact}");
    assert!(near_without < 0.9, "a web whose parts hardly change shows nothing: {near_without}");
    assert!(more <= 0.15, "{more}");
    let sum = |parts: &[u64]| parts.iter().sum::<u64>();
    assert!(sum(&parts[10..]) < sum(&parts[..7]), "parts seen often without change are asked more rarely");
}

#[test]
fn a_missing_part_is_asked_at_growing_intervals() {
    let page = format!("<title>one</title><img src=/missing.png><img src={SHARED}/other.png><p>VERSION");
    let days: Vec<f64> = (0..12).map(|day| f64::from(day) + 0.5).collect();
    let world = World::new(vec![(format!("{PAGES}/"), Thing::new("text/html", &page, &days))]);
    world.crawl("/");
    let mut asked = Vec::new();
    for number in 1..=10 {
        // The pause is as long as the part was missing, and the clock goes on while a run lasts: each comes later than twice
        // the time of the one before by minutes.
        let day = f64::from(number);
        world.go_to(day + 0.001 * day * day);
        let (_, urls) = world.refresh(&["--budget", "1"]);
        asked.extend(urls.iter().filter(|url| url.ends_with("missing.png")).map(|_| number));
    }
    assert_eq!(asked, [1, 2, 4, 8]);
}
