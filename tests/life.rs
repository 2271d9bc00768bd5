//! A life as a test: a town of eight hosts is looked at on eight days of nine years, and the archive is asked what stood
//! there. What it answers is compared with what the town knows (`life/town.txt`), and printed as a table of shares.

mod asked;
mod table;
mod truth;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::process::Command;

use archive_testweb::{Clock, Config, Says, Town};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use self::asked::Asked;
use self::table::Table;
use self::truth::{Seen, Truth, between, date, end_of};
use crate::support::browser::Browser;
use crate::support::program::start;
use crate::support::{Archive, TestWeb};

const TOWN: &str = include_str!("life/town.txt");
/// Number of pages of the gallery that differ in their pictures alone, and the number from which a trap is suspected.
const PICTURES: usize = 30;
const SAME_CONTENT: &str = "10";
/// The years of visits, on 1 June at ten in the morning.
const YEARS: [i32; 8] = [2018, 2019, 2020, 2021, 2022, 2023, 2024, 2026];
/// Years in which a host says later until noon, so that the archive looks again in the afternoon.
const TWICE: [i32; 2] = [2019, 2023];
/// The year in which a copy of the archive is rebuilt: one page is refused then.
const REBUILT: i32 = 2022;
/// The page that a browser opens as of each day, and pages of which it opens one a day.
const SHOWN: &str = "http://museum.test/";
const ALSO_SHOWN: [&str; 4] = [
    "http://gazette.test/flood",
    "http://library.test/hours",
    "http://council.test/About",
    "http://forum.test/dogs",
];
/// Of so many URLs `archive get` prints one a day.
const GOT_EVERY: usize = 6;

/// Of so many days one is asked for again at the end.
const AGAIN_EVERY: usize = 4;

/// Shares that are not 1. All others must be: this town changes at known times and is looked at often enough, so of its parts
/// not 95 % are right, but all. How many are where parts change at random, and what bytes that costs, is measured by
/// `page_parts::parts_are_right_within_their_pages_interval_at_little_cost`.
/// - That a session makes no difference is learned by three tests. The town has one link with a session, and two sessions in
///   all these years, so both spellings stay.
/// - An export has records, and not what else an archive knew: a page that a refresh had put off waits for none after an import.
const BOUNDS: &[(&str, f64)] = &[("a session is no page", 0.0), ("after an export and an import", 0.99)];

/// The town, and the archive that looks at it.
struct Life {
    served: TestWeb,
    archive: Archive,
    truth: Truth,
    table: Table,
}

impl Life {
    fn begin() -> Self {
        let link = |number| format!("<a href=/p/{number}>{number}</a> ");
        let pictures: String = (1..=PICTURES).map(link).collect();
        let town = Town::read(&TOWN.replace("{pictures}", &pictures)).unwrap();
        let clock = Clock::simulated(morning(YEARS[0]));
        let served = TestWeb::start(Config { town: town.clone(), clock, ..Config::plain(1, 1, 1) });
        served.server.record_arrivals(true);
        let truth = Truth { town, days: Vec::new() };
        Self { served, archive: Archive::new(), truth, table: Table::default() }
    }

    /// Looks at the town: first by a crawl, in later years by a refresh and by the crawl, which goes on.
    fn look(&mut self, year: i32) {
        self.served.web.clock().set(morning(year));
        if year != YEARS[0] {
            self.run(self.refresh());
        }
        self.run(self.crawl());
        if TWICE.contains(&year) {
            self.served.web.clock().advance(TimeDelta::hours(3));
            self.run(if year == TWICE[0] { self.crawl() } else { self.refresh() });
        }
        self.truth.days.push(morning(year));
    }

    fn crawl(&self) -> Command {
        let seeds =
            self.truth.town.urls().into_iter().filter(|url| {
                url.matches('/').count() == 3 && url.ends_with('/') && !url.contains("-online")
            });
        let options = ["--same-content", SAME_CONTENT, "--index-versions"];
        self.archive.crawl(&seeds.collect::<Vec<_>>(), &options)
    }

    fn refresh(&self) -> Command {
        let mut command = self.archive.command("refresh");
        command.args(["--budget", "1000"]);
        command
    }

    /// Runs a command at the town's time; no URL may be requested twice.
    fn run(&mut self, mut command: Command) {
        let now = self.served.web.clock().now();
        command.args(["--for", "20s", "--clock", &now.to_rfc3339()]).args(self.served.with_patience("0s"));
        let finished = start(&mut command).wait();
        println!("{now}: {:?} in {:?}: {}", finished.code, finished.elapsed, finished.errors.trim_end());
        let mut requests = BTreeMap::<String, usize>::new();
        for arrival in self.served.server.take_arrivals() {
            *requests.entry(format!("http://{}{}", arrival.host, arrival.path)).or_default() += 1;
        }
        for (url, number) in requests {
            let says = self.truth.town.says(&url, now);
            if !matches!(says, Some(Says::Reset | Says::Later { .. })) {
                self.table.compare("requests of a run", &format!("{now} {url}"), number, 1);
            }
        }
    }
}

fn morning(year: i32) -> DateTime<Utc> {
    format!("{year}-06-01T10:00:00Z").parse().unwrap()
}

#[test]
fn the_archive_tells_a_life_as_it_was() {
    let mut life = Life::begin();
    for year in YEARS {
        life.look(year);
        let Life { truth, archive, table, .. } = &mut life;
        refusals("refusals", truth, archive, morning(year), table);
        as_of(truth, &Asked::of(archive), morning(year), "then", table);
        if year == REBUILT {
            let copy = archive.copy();
            copy.run::<&str>("rebuild", &[]).succeeded();
            refusals("refusals after a rebuild", truth, &copy, morning(year), table);
        }
    }
    let Life { truth, archive, mut table, .. } = life;
    archive.verify();
    in_a_browser(&truth, &Asked::of(&archive), &mut table);
    let before = everything(&truth, &archive);
    for command in ["rebuild", "repack"] {
        archive.run::<&str>(command, &[]).succeeded();
    }
    table.compare_answers("after a rebuild and a repack", &before, &everything(&truth, &archive));
    let (file, other) = (archive.folder().join("life.warc.gz"), Archive::new());
    archive.run("export warc", &[OsStr::new("--output"), file.as_os_str()]).succeeded();
    other.run("import", &[file.as_os_str(), OsStr::new("--index-versions")]).succeeded();
    table.compare_answers("after an export and an import", &before, &everything(&truth, &other));
    table.add(before);
    table.holds(BOUNDS);
}

/// Asks an archive for everything, as of some of the days.
fn everything(truth: &Truth, archive: &Archive) -> Table {
    let (asked, mut table) = (Asked::of(archive), Table::default());
    for day in truth.days.iter().step_by(AGAIN_EVERY) {
        as_of(truth, &asked, *day, "later", &mut table);
    }
    histories(truth, &asked, &mut table);
    table
}

/// Asks which pages are refused by robots.txt.
fn refusals(subject: &'static str, truth: &Truth, archive: &Archive, day: DateTime<Utc>, table: &mut Table) {
    let rows = archive.json("query", &["page refusal = robots select url order by url"]);
    let got: Vec<String> = rows.iter().map(|row| row["url"].as_str().unwrap().to_owned()).collect();
    let expected = truth.urls().filter(|url| truth.is_refused(url, day)).collect();
    table.compare(subject, &date(day), got, expected);
}

/// Asks what stood at each address on a day.
fn as_of(truth: &Truth, asked: &Asked<'_>, day: DateTime<Utc>, when: &str, table: &mut Table) {
    let time = end_of(day);
    let next = (day + TimeDelta::days(1)).format("%Y-%m-%dT00:00:00Z");
    let fields = "url, title, status, captures, first seen, last seen";
    let rows = asked.archive.json("query", &[format!("page attempts > 0 select {fields} as of {next}")]);
    let mut marks = BTreeMap::<String, BTreeSet<String>>::new();
    for (index, url) in truth.urls().enumerate() {
        let Some(nearest) = truth.nearest(&url, day) else { continue };
        let question = format!("{} {when} {url}", date(day));
        table.compare(
            subject(&nearest),
            &question,
            asked.replayed(&url, time),
            shown(&truth.shown(&url, day)),
        );
        table.compare("TimeGate", &question, asked.negotiated(&url, time), Some(date(nearest.time)));
        if index % GOT_EVERY == truth.days.len() % GOT_EVERY
            && let Says::File { body, .. } = &nearest.says
        {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            table.compare("archive get --at", &question, text(&asked.got(&url, time)), text(body));
        }
        let Some(newest) = truth.by(&url, day) else { continue };
        let row = rows.iter().find(|row| row["url"] == *url).cloned().unwrap_or_default();
        let seen: Vec<Seen> = truth.seen(&url).into_iter().filter(|seen| seen.time <= time).collect();
        let day_of = |field: &str| row[field].as_str().and_then(|time| time.get(..10)).map(str::to_owned);
        if let Some(title) = newest.title() {
            let got = row["title"].as_str().map(str::to_owned);
            table.compare(
                "query: title",
                &question,
                got.or(row["url"].as_str().map(|_| String::new())),
                Some(title.to_owned()),
            );
        }
        table.compare("query: status", &question, row["status"].as_u64(), Some(newest.status().into()));
        let content: Vec<String> = seen.iter().filter(|it| it.is_content()).map(|it| date(it.time)).collect();
        table.compare("query: first seen", &question, day_of("first_seen"), content.first().cloned());
        table.compare("query: last seen", &question, day_of("last_seen"), content.last().cloned());
        // On a day with a second look there may be two captures.
        let captures = row["captures"].as_u64().unwrap_or_default();
        let twice = TWICE.iter().filter(|year| morning(**year) <= day).count();
        let is_right = (content.len()..=content.len() + twice).contains(&(captures as usize));
        table.compare("query: captures", &question, (captures, is_right), (captures, true));
        for mark in newest.marks() {
            marks.entry(mark).or_default().insert(url.clone());
        }
    }
    let all = truth.urls().flat_map(|url| truth.seen(&url)).flat_map(|seen| seen.marks());
    for mark in all.collect::<BTreeSet<_>>() {
        let expected = marks.get(&mark).cloned().unwrap_or_default();
        let subject = if expected.is_empty() { "search: what was not there" } else { "search" };
        table.compare(subject, &format!("{} {when} {mark}", date(day)), asked.found(&mark, time), expected);
    }
}

fn subject(seen: &Seen) -> &'static str {
    match &seen.says {
        Says::File { .. } if seen.page().is_none() => "replay: part",
        Says::Moved { .. } => "replay: redirect",
        Says::Status(_) => "replay: error",
        _ => "replay: page",
    }
}

/// Returns what a reader should see: the status, whether it is a capture, and the text.
fn shown(seen: &Option<Seen>) -> (u16, bool, String) {
    match seen {
        Some(Seen { says: Says::File { body, .. }, .. }) => {
            (200, true, String::from_utf8_lossy(body).into_owned())
        }
        Some(seen) => (seen.status(), true, String::new()),
        None => (404, false, String::new()),
    }
}

/// Asks for the whole history of each address.
fn histories(truth: &Truth, asked: &Asked<'_>, table: &mut Table) {
    for url in truth.urls() {
        let seen = truth.seen(&url);
        let days: Vec<String> = seen.iter().filter(|it| it.is_content()).map(|it| date(it.time)).collect();
        table.compare("TimeMap", &url, asked.mapped(&url), days.clone());
        let lines = seen.iter().map(|seen| (date(seen.time), seen.status().to_string())).collect();
        table.compare("CDX", &url, asked.listed(&url), lines);
        let months = asked.page(&url)["months"].as_array().cloned().unwrap_or_default();
        let years = months.iter().map(|month| month[0].to_string()).collect();
        table.compare(
            "calendar",
            &url,
            years,
            days.iter().map(|day| day[..4].to_owned()).collect::<Vec<_>>(),
        );
    }
    let (url, spelled) = ("http://council.test/about", "https://www.council.test/about");
    let body = truth.seen(url).last().and_then(|seen| seen.page().map(str::to_owned)).unwrap();
    let got = asked.archive.run("get", &[spelled]).succeeded().text();
    table.compare("archive get in another spelling", spelled, got, body);
    for (subject, like, expected) in [
        ("pages that differ in pictures", "http://gallery.test/p/*", PICTURES),
        ("a session is no page", "http://council.test/form*", 1),
    ] {
        let rows = asked.archive.json("query", &[format!("count pages url ~ \"{like}\" and status = 200")]);
        table.compare(subject, like, rows[0]["count"].clone(), Value::from(expected));
    }
}

/// What a browser shows of the page whose parts change.
const LOOK: &str = r#"const style = getComputedStyle(document.querySelector("h1"));
return { text: document.querySelector("h1").textContent, colour: style.color, size: style.fontSize,
  said: said.textContent, front: front.naturalWidth, late: late.naturalWidth };"#;

/// Opens pages in a browser as of each day: one whose parts change, and one of the others.
fn in_a_browser(truth: &Truth, asked: &Asked<'_>, table: &mut Table) {
    let Some(browser) = Browser::start(true) else { return };
    let address = |url: &str, day| {
        format!("http://{}/web/{}/{url}", asked.served.replay, end_of(day).format("%Y%m%d%H%M%S"))
    };
    browser.go(&address(SHOWN, truth.days[0]));
    // The first page loads twice.
    browser.run_later("navigator.serviceWorker.ready.then(arguments[0])", &json!([]));
    for (day, also) in truth.days.iter().zip(ALSO_SHOWN.iter().cycle()) {
        browser.go(&address(SHOWN, *day));
        browser.wait_for("hello of");
        let got = browser.run(LOOK, &json!([]));
        let says = |path: &str| match truth.nearest(&format!("{SHOWN}{path}"), *day).unwrap().says {
            Says::File { body, .. } => body,
            _ => Vec::new(),
        };
        let inner = |path: &str, before: &str, after: &str| {
            between(std::str::from_utf8(&says(path)).unwrap(), before, after).map(str::to_owned)
        };
        // The width of a bitmap.
        let width = |path: &str| says(path).get(18).copied().unwrap_or(0);
        let expected = json!({
            "text": inner("", "<h1>", "<"), "colour": inner("colours", "color: ", " }"),
            "size": inner("style", "font-size: ", " }"), "said": inner("hello", "= \"", "\""),
            "front": width("front"), "late": width("late"),
        });
        for (name, expected) in expected.as_object().unwrap() {
            table.compare("in a browser", &format!("{} {name}", date(*day)), &got[name], expected);
        }
        browser.go(&address(also, *day));
        let got = browser.run("return document.querySelector('h1')?.textContent", &json!([]));
        let shown = truth.shown(also, *day).unwrap();
        let expected = match shown.page() {
            Some(page) => between(page, "<h1>", "<").unwrap(),
            None => "There is nothing here",
        };
        table.compare("in a browser", &format!("{} {also}", date(*day)), got, json!(expected));
    }
}
