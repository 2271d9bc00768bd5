//! Prepared columns: queries give the same answers with and without them, and never use outdated columns.

use std::fs;

use archive_ask::query::{Answer, Question};
use archive_base::access::Access;
use archive_base::control::Control;
use archive_books::ledger::{Credits, capture_flags, page_flags};
use archive_books::prepared::{self, KnownPages, Sampled};
use archive_books::recorder;
use archive_crawl::Purpose;
use archive_math::refresh::rate::RatePrior;
use archive_storage::segment::SegmentOptions;
use archive_storage::{Capture, Clock, Page, Store, Visit};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};

use crate::change;
use crate::crawl::lively;
use crate::support::prepared::prepared;
use crate::support::program::start;
use crate::support::{Archive, Dice, TestWeb, in_full};

/// All kinds of conditions that columns can decide, and some that they cannot.
const CONDITIONS: [&str; 150] = [
    "importance > 1.5",
    "importance <= 0.7",
    "importance between 0.2 and 0.9",
    "status = 200",
    "status != 404",
    "status in (301, 302, 404)",
    "status is empty",
    "captures > 0",
    "captures = 0",
    "captures >= 2",
    "versions < 2",
    "depth = 3",
    "depth not in (1, 2)",
    "type = html",
    "type = xml",
    "type != image",
    "type is empty",
    "language = en",
    "language is empty",
    "language = \"\"",
    "content_type = \"text/html\"",
    "content_type starts with \"image/\"",
    "content_type is not empty",
    "host ~ \"*1*\"",
    "site contains \"s2\"",
    "site = \"S1.test\"",
    "site not in (\"s0.test\", \"s3.test\", \"nowhere.test\")",
    "site = \"\"",
    "host matches \"^h[0-3]\"",
    "first_seen > 2020-01-01",
    "last_seen < 2020-01-01",
    "changed > 2 minutes ago",
    "changed is empty",
    "title contains \"a\"",
    "url contains \"1\"",
    "depth + 1 > captures",
    "refusal is not empty",
    "died is empty",
    "died is not empty or died > 2020-01-01 and depth > 1",
    "size > 2kB",
    "stored < 700",
    "size <= 0",
    "size is empty",
    "stored is not empty",
    "size between 1kB and 3kB",
    "title is empty",
    "title = \"\"",
    "title contains \"Museum\"",
    "title contains any (of, the)",
    "title matches \"[0-9]\"",
    "title != \"nothing\"",
    "url ~ \"*.html\"",
    "url starts with \"http://h\"",
    "url starts with \"http://h1.s1.test/\"",
    "url starts with \"HTTP://h0.s0.test/1\"",
    "url starts with \"http://nowhere.test/\"",
    "url ~ \"http://H1.s2.test/*\"",
    "not url ~ \"http://h1.s1.test/*2*\"",
    "url ends with \"/\"",
    "url matches \"[13]\\\\.html$\"",
    "url is not empty",
    "host = \"h1.s1.test\"",
    "host in (\"h0.s0.test\", \"h1.s2.test\", \"nowhere.test\")",
    "host != \"h1.s1.test\"",
    "site in (\"s1.test\", \"s2.test\") and url contains \"2\"",
    "site = \"s1.test\" and title contains \"e\"",
    "site = \"s2.test\" and (url contains \"2\" or title contains \"o\")",
    "seed = yes",
    "seed = no",
    "refusal is empty",
    "refusal = robots",
    "hop = \"L\"",
    "hop in (\"E\", \"R\")",
    "hop is empty",
    "changed since 2020-01-01",
    "changed since MIDDLE",
    "changed since 2020-01-01 until MIDDLE",
    "change_rate > 0.02",
    "change_rate between 0.004 and 0.04",
    "freshness > 0.5",
    "freshness is empty or not freshness < 0.9",
    "next_visit > 2020-01-01 and depth > 1",
    "next_visit is not empty",
    "next_visit is empty and captures > 0",
    "next_visit < 2100-01-01 and freshness < 0.5 and depth > 1",
    "next_visit - last_seen > 10 days",
    "freshness * importance > 0.3 or status = 404",
    "change_rate > freshness and type = html",
    "year(next_visit) > 2020 and not depth = 2",
    "software starts with \"archive/\"",
    "software = another and status = 200",
    "software is empty or depth = 2",
    "duplicates",
    "links to (page depth = 1)",
    "via contains \"1\"",
    "via is empty",
    "via != \"http://h1.s1.test/\"",
    "not (via ~ \"*2*\" or depth = 1)",
    "site = \"s1.test\" and via contains \"2\"",
    "redirect contains \"1\"",
    "redirect is not empty",
    "redirect is empty",
    "redirect in (\"\", \"http://h1.s1.test/\") and depth > 1",
    "server = \"testweb\" and depth > 1",
    "charset = \"utf-8\"",
    "response_time > 0 seconds or via contains \"3\"",
    "host.urls > 10",
    "header(\"content-type\") contains xml",
    "length(title) > 30",
    "lower(title) contains \"museum\"",
    "length(title) <= 0 or length(url) > 40",
    "lower(url) ends with \".html\" and length(url) < 32",
    "lower(host) = \"h1.s1.test\"",
    "length(language) = 2",
    "length(type) > 3 and not length(content_type) > 9",
    "captures > versions",
    "captures - versions >= 1",
    "year(first_seen) < 2020",
    "date(last_seen) != date(changed)",
    "last_seen - first_seen > 10 days",
    "size > stored * 2",
    "size / captures < 1000 or status / 100 = 4",
    "host.captures > 20",
    "host.pages * 2 > site.pages",
    "site.importance > 1",
    "importance > site.importance",
    "host.site = \"s1.test\" and length(title) > 5",
    "host != host.site",
    "digest = \"DIGEST\"",
    "digest != \"DIGEST\"",
    "digest in (\"\", \"DIGEST\", \"0123\")",
    "digest starts with \"a\"",
    "digest is empty",
    "length(digest) = 32",
    "rating > 2",
    "rating is empty or verdict = drop",
    "tags contains \"law\"",
    "collections != \"one\"",
    "rated_by is not empty and depth > 1",
    "host.rating > 2 or site.verdict = keep",
    "weight > 1",
    "weight is empty or weight * 2 < importance",
    "root = \"article\"",
    "root is not empty and depth < 3",
    "namespace contains \"docbook\" or root = \"rss\"",
    "not doctype is empty",
    "well_formed = yes or status = 404",
    "valid = unknown",
    "root != \"rss\" and type = xml",
    "length(root) > 4 and site = \"s1.test\"",
];

/// Other queries on pages and sites.
const QUESTIONS: [&str; 62] = [
    "site site = \"S1.test\"",
    "site site in (\"s2.test\", \"nowhere.test\", \"s2.test\") and captures >= 0 select site, pages, importance",
    "site site = \"s1.test\" or site = \"s3.test\" order by site",
    "site not site = \"s1.test\" order by site",
    "page order by captures, url limit 5",
    "page order by captures limit 5",
    "page order by size, url limit 5 select url, size, stored",
    "page select sum(size), max(stored), count(size) group by type",
    "page status = 200 order by last_seen asc limit 30 select url, last_seen",
    "page order by status asc limit 200 select url, status",
    "page select sum(captures), avg(depth), max(importance), min(first_seen), count(status) group by type",
    "page select max(changed), min(importance), count group by site, year(first_seen)",
    "page select count group by date(last_seen)",
    "page select count, count(distinct host) limit 1",
    "page select count, count(distinct type), count(distinct year(last_seen)) group by site limit 2",
    "count pages group by content_type",
    "page select sum(importance), count(distinct status) group by type",
    "site importance > 0.5 order by importance",
    "site importance > 0.5 order by importance limit 2",
    "site limit 3 offset 1",
    "site captures > 0 and pages > 1 order by captures asc, html limit 4",
    "site html < 100 and xml >= 0 order by pages asc limit 300 select site, pages",
    "site site contains \"1\" order by importance limit 1",
    "site importance_sum > 1 order by site select site, importance_sum, importance_max",
    "site captures > 0 select site, pages, captures, html, xml, first_seen, last_seen order by site",
    "count pages group by type",
    "count pages group by site, language having count > 1 order by count, site, language",
    "count pages",
    "count pages type = html and status = 200",
    "page limit 20",
    "page type = html select count, count(title), sum(captures) group by type",
    "count pages captures > 0 as of 2020-01-01",
    "page captures > 0 sample 7 seed 3 order by url",
    "page sample 20 seed 5 select url",
    "captures sample 9 seed 2 select url, time",
    "page status = 200 and changed since 2020-01-01 sample 4 select url, changed",
    "count pages not changed since MIDDLE sample 50 group by type",
    "page site.importance > 1 and captures > 0 order by importance, url limit 9 offset 3",
    "page status = 200 order by url select url, host, title, via, changed, content_type limit 40",
    "page order by title limit 9 select url, title",
    "page status = 200 order by title desc limit 7 offset 2 select url, title",
    "page order by lower(title), length(title) limit 20 select url, title",
    "page captures = 0 order by title limit 30 select url",
    "page order by title desc limit 300 select url, title",
    "page order by url limit 5",
    "page status = 404 order by host desc, url limit 15",
    "page order by captures - versions, url asc limit 9",
    "page order by site.importance, importance limit 9",
    "page order by type, title limit 5",
    "page order by rating, url limit 9",
    // Values that change every second must not show in the answer.
    "page order by freshness * 0 + importance, url limit 9",
    "page order by freshness * 0 asc, url limit 400 select url",
    "page status = 200 order by year(next_visit) asc, change_rate, url limit 40 offset 3 select url",
    "page order by change_rate * importance, url limit 9",
    "captures order by size / stored, time limit 9",
    "versions order by host, time asc limit 9 offset 1",
    "link target.status in (301, 404) order by source, target select source, target, target.status",
    "link source.depth < 2 and target.captures = 0 and not nofollow order by target, source",
    "count links source contains \"1\" and target contains \"2\" group by element",
    "count links target.type = html or source.status = 404",
    "link template and target.site = \"s1.test\" sample 9 seed 2 select source, target, nofollow",
    "host urls > 3 order by host select host, urls, pages",
];

/// Columns to group by, some prepared and some not.
const SORTS: [&str; 17] = [
    "type",
    "seed, refusal",
    "hop",
    "site, status",
    "site limit 2",
    "host limit 3 offset 2",
    "host order by count asc limit 3",
    "site having count > 3 order by count, site limit 2",
    "host, depth, type",
    "language, content_type",
    "captures, versions",
    "lower(host)",
    "tld",
    "label(host, 2), type",
    "captures + attempts limit 3",
    "year(first_seen)",
    "status having count > 5 order by status",
];

/// Conditions on captures.
const OF_CAPTURES: [&str; 43] = [
    "status = 200",
    "status is empty",
    "status between 300 and 404",
    "kind = response",
    "kind != identical",
    "kind = failed",
    "change = content",
    "change is empty",
    "change is not empty",
    "size > 2kB",
    "size <= 0",
    "size is empty",
    "size < 100 or size > 5000",
    "stored < 700",
    "content_type = \"text/html\"",
    "content_type is empty",
    "content_type starts with \"image/\"",
    "host ~ \"*1*\"",
    "site = \"s1.test\"",
    "site contains \"s2\"",
    "time > 2020-01-01",
    "time > MIDDLE",
    "year(time) < 2020",
    "digest is not empty",
    "page.depth > 2",
    "page.type = html",
    "url contains \"1\"",
    "url matches \"[2-4]\\\\.html$\"",
    "server is not empty",
    "software = another",
    "software != another and status = 404",
    "page.software contains arch",
    "digest = \"DIGEST\"",
    "digest starts with \"a\" or size > stored * 2",
    "page.captures > 1",
    "page.depth > page.captures",
    "page.title contains \"a\"",
    "length(page.title) > 20 and length(url) > 30",
    "page.status = 200 or page.via contains \"1\"",
    "page.rating > 2",
    "digest = page.digest",
    "page.digest = \"DIGEST\"",
    "site.importance > 1 and host.urls > 10",
];

/// Columns by which captures are grouped.
const CAPTURE_SORTS: [&str; 10] = [
    "status",
    "kind, status",
    "change",
    "host limit 2",
    "site, year(time)",
    "date(time)",
    "content_type, month(time), day(time)",
    "kind having count > 3 order by count, kind limit 2",
    "lower(host)",
    "page.depth",
];

/// Aggregates over captures.
const GATHERED: [&str; 7] = [
    "count",
    "count, sum(size), avg(size), min(size), max(size), count(size)",
    "min(time), max(time), count(time)",
    "max(stored), sum(stored), sum(status), avg(status), count(status)",
    "median(size), count(distinct host)",
    "count(distinct host), count, max(size), count(distinct year(time))",
    "sum(size) / count(size), min(kind)",
];

/// Orderings of captures.
const CAPTURE_ORDERS: [&str; 7] = [
    "time, url",
    "size, url, time",
    "size asc, url, time",
    "stored asc limit 7",
    "size limit 12 offset 2",
    "status asc limit 9",
    "time asc limit 5",
];

pub(crate) fn answers(archive: &Archive, questions: &[String]) -> Vec<Answer> {
    let store = Store::read_only(&archive.path).unwrap();
    let answer = |text: &String| {
        let question = Question::new(&store, Access::unlimited(), text, Utc::now());
        question.unwrap_or_else(|error| panic!("{error}")).answer().unwrap()
    };
    questions.iter().map(answer).collect()
}

/// Combines random conditions.
fn condition(dice: &mut Dice, depth: u64) -> String {
    let mut part = || condition(dice, depth - 1);
    if depth == 0 {
        return CONDITIONS[dice.below(CONDITIONS.len() as u64) as usize].to_owned();
    }
    let parts = [part(), part()];
    match dice.below(4) {
        0 => format!("({} or {})", parts[0], parts[1]),
        1 => format!("not ({})", parts[0]),
        _ => format!("({} and {})", parts[0], parts[1]),
    }
}

fn prepare(archive: &Archive) {
    prepare_in_blocks(archive, prepared::BLOCK_ROWS);
}

pub(crate) fn prepare_in_blocks(archive: &Archive, rows: u32) {
    let store = Store::read_only(&archive.path).unwrap();
    prepared::write_in_blocks(store.state(), store.path(), rows).unwrap();
}

/// Returns the second in the middle of all captures.
fn middle(archive: &Archive) -> String {
    let store = Store::read_only(&archive.path).unwrap();
    let times: Vec<i64> = store.state().captures().map(|capture| capture.unwrap().1.time).collect();
    let middle = DateTime::from_timestamp_micros(times[times.len() / 2]).unwrap();
    middle.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Returns the digest of a page.
fn digest(archive: &Archive) -> String {
    let found = archive.json("query", &["page status = 200 and versions > 1 select digest limit 1"]);
    found[0]["digest"].as_str().unwrap().to_owned()
}

/// Makes decisions on a site, a host, a folder and a page, and writes a column with a number for each page.
fn decide(archive: &Archive) {
    for decision in [
        &["s1.test", "--rating", "3", "--tag", "law"][..],
        &["host:h1.s2.test", "--rating", "1", "--verdict", "drop"],
        &["http://h0.s1.test/", "--tag", "press", "--collection", "one"],
        &["http://h1.s1.test/1.html", "--rating", "4", "--verdict", "keep"],
    ] {
        archive.run("review set", &[decision, &["--by", "anna"]].concat()).succeeded();
    }
    archive.run("rank", &["--save", "weight"]).succeeded();
}

fn web() -> TestWeb {
    TestWeb::start(lively(91, 6, 400))
}

/// Crawls so many pages of the web.
fn crawl(archive: &Archive, served: &TestWeb, limit: &str) {
    let options = [served.at_once(), vec!["--limit".into(), limit.into()]].concat();
    start(&mut archive.crawl(&served.web.seeds(3), &options)).wait().succeeded();
}

fn crawled() -> Archive {
    prepared("crawled", || {
        let archive = Archive::new();
        crawl(&archive, &web(), "300");
        archive
    })
}

/// Number of queries drawn at random in each test; other seeds draw others.
fn drawn() -> u64 {
    in_full(60, 130)
}

/// Returns an archive after two refreshes, another one by another program, and decisions.
fn refreshed() -> Archive {
    let (served, archive) = change::crawled(lively(91, 6, 100));
    for _ in 0..2 {
        served.web.clock().advance(TimeDelta::days(20));
        let mut command = archive.command("refresh");
        command.args(["--budget", "75"]).args(served.at_once()).args(change::clock(&served));
        start(&mut command).wait().succeeded();
    }
    refresh_with_another(&served, &archive);
    decide(&archive);
    archive
}

/// Refreshes some pages with another program.
fn refresh_with_another(served: &TestWeb, archive: &Archive) {
    served.web.clock().advance(TimeDelta::days(20));
    let mut options = served.options();
    options.fetch.clock = Clock::set_to(served.web.clock().now());
    let info = vec![("software".to_owned(), "another".to_owned())];
    let segments = SegmentOptions { info, ..SegmentOptions::default() };
    let mut store = recorder::open(&archive.path, segments).unwrap().store;
    let pages = store.state().visits(0).map(|visit| visit.unwrap().0).take(60).collect();
    archive_crawl::run(&mut store, Purpose::Refresh { pages }, &options, &Control::default(), &mut |_| ())
        .unwrap();
    store.close().unwrap();
    let found = archive.json("query", &["captures software = another select url"]).len();
    let others = archive.json("query", &["captures not software starts with \"archive/\" select url"]).len();
    assert!(found > 30 && found == others, "{found} and {others}");
}

#[test]
fn queries_on_pages_answer_the_same_with_prepared_columns() {
    let mut dice = Dice::new("prepared columns of pages");
    let drawn = (0..drawn()).map(|number| {
        let condition = condition(&mut dice, number % 4);
        match dice.below(4) {
            0 => format!("page {condition} select url, importance limit 9 offset {}", dice.below(3)),
            1 => format!("page {condition} order by importance select url limit 300"),
            2 => {
                format!("count pages {condition} group by {}", SORTS[dice.below(SORTS.len() as u64) as usize])
            }
            _ => format!("page {condition} order by importance, url select url, importance"),
        }
    });
    let fixed = QUESTIONS.iter().chain(&CONDITIONS).map(ToString::to_string);
    answers_stay_the_same(fixed.chain(drawn).collect());
}

#[test]
fn queries_on_captures_answer_the_same_with_prepared_columns() {
    let mut dice = Dice::new("prepared columns of captures");
    let drawn = (0..drawn()).map(|number| {
        let mut one_of = |texts: &[&'static str]| texts[dice.below(texts.len() as u64) as usize];
        let parts = [one_of(&OF_CAPTURES), one_of(&OF_CAPTURES)];
        let condition = match number % 5 {
            0 => parts[0].to_owned(),
            1 => format!("not ({} or {})", parts[0], parts[1]),
            2 => format!("({} or {})", parts[0], parts[1]),
            _ => format!("{} and not ({})", parts[0], parts[1]),
        };
        let what = one_of(&["capture", "version"]);
        match number % 3 {
            0 => format!("{what} {condition} order by {}", one_of(&CAPTURE_ORDERS)),
            1 => format!("{what} {condition} select {}", one_of(&GATHERED)),
            _ => {
                let (gathered, sorts) = (one_of(&GATHERED), one_of(&CAPTURE_SORTS));
                format!("{what} {condition} select {gathered} group by {sorts}")
            }
        }
    });
    let fixed = OF_CAPTURES.iter().map(|condition| format!("captures {condition}"));
    answers_stay_the_same(fixed.chain(drawn).collect());
}

/// Fails unless queries have the same answers from tables and with columns.
fn answers_stay_the_same(questions: Vec<String>) {
    let archive = prepared("refreshed", refreshed);
    let (middle, digest) = (middle(&archive), digest(&archive));
    let named = |text: String| text.replace("MIDDLE", &middle).replace("DIGEST", &digest);
    let questions: Vec<String> = questions.into_iter().map(named).collect();
    let before = answers(&archive, &questions);
    assert!(before.iter().filter(|answer| !answer.rows.is_empty()).count() > questions.len() / 2);
    // All rows in one block; then many blocks, with those by site in several sections.
    for rows in [prepared::BLOCK_ROWS, 7] {
        prepare_in_blocks(&archive, rows);
        for ((question, before), after) in questions.iter().zip(&before).zip(answers(&archive, &questions)) {
            let found = [before.rows.len(), after.rows.len()];
            assert!(*before == after, "{question}: rows {found:?} in blocks of {rows}");
        }
    }
}

#[test]
fn explanations_name_the_columns_that_decide() {
    let archive = crawled();
    prepare(&archive);
    for (condition, columns) in [
        ("url = \"http://h1.s1.test/\" or status = 404", "url, status"),
        ("url = \"http://h1.s1.test/\" or url = \"http://h2.s1.test/\"", "url"),
        ("site = \"s1.test\" or depth = 1", "site, depth"),
        ("host.urls > 10 or length(title) > 30", "host, site, title"),
        ("captures > versions and rating is empty", "host, site, captures, versions"),
    ] {
        let seen = archive.json("query", &[&format!("count pages {condition}"), "--explain"]).remove(0);
        let what = format!("pages by prepared columns, which decide: {columns}");
        assert_eq!(seen["steps"][0]["what"], what, "{condition}: {seen}");
    }
    // An expression that is evaluated once for all rows is a constant.
    let seen = archive.json("query", &["count pages next_visit < today + 7 days", "--explain"]).remove(0);
    assert_eq!(seen["steps"][0]["what"], "all visits: next_visit", "{seen}");
}

/// Search results are counted, grouped and ordered with columns, too.
#[test]
fn searches_answer_the_same_with_prepared_columns() {
    let archive = crawled();
    let conditions = [
        "text contains any (library, archive, a)",
        "not text contains the",
        "text contains the and importance > 0.5",
        "text contains the or status = 404",
        "text contains the and title contains a",
        "links to (page type = html)",
        "//item",
        "//item/title and status = 200",
        "//item or //url",
        "not //link",
    ];
    let questions: Vec<String> = conditions
        .iter()
        .flat_map(|condition| {
            [
                format!("page {condition} limit 7 select url, importance"),
                format!("page {condition} order by importance limit 9 offset 1"),
                format!("page {condition} order by last_seen, url select url limit 300"),
                format!("count pages {condition}"),
                format!("page {condition} select sum(captures), max(importance) group by site"),
            ]
        })
        .chain([
            "page text contains the order by score limit 12 select url, score".to_owned(),
            "page text contains the and text contains library limit 12 select url, score".to_owned(),
            "page text contains the order by score asc limit 12 select url, score".to_owned(),
            "captures url contains \"1\" and links to (page type = html) limit 30".to_owned(),
            "count captures links to (page type = html) group by status".to_owned(),
        ])
        .collect();
    let ask = || -> Vec<Answer> {
        let store = Store::read_only(&archive.path).unwrap();
        let answer = |question: &String| {
            Question::new(&store, Access::unlimited(), question, Utc::now()).unwrap().answer().unwrap()
        };
        questions.iter().map(answer).collect()
    };
    let before = ask();
    assert!(before.iter().filter(|answer| !answer.rows.is_empty()).count() > questions.len() * 2 / 3);
    for rows in [prepared::BLOCK_ROWS, 7] {
        prepare_in_blocks(&archive, rows);
        for ((question, before), after) in questions.iter().zip(&before).zip(ask()) {
            let found = [before.rows.len(), after.rows.len()];
            assert!(before.rows == after.rows, "{question}: rows {found:?} in blocks of {rows}");
            assert_eq!(before.matched, after.matched, "{question}");
        }
    }
}

#[test]
fn the_sample_says_what_the_tables_say() {
    let archive = crawled();
    prepare(&archive);
    let store = Store::read_only(&archive.path).unwrap();
    let credits = Credits::open(store.state()).unwrap();
    let sample = prepared::sample(&store).unwrap().unwrap();
    let visits: Vec<_> = store.state().visits_with_pages(0..).map(Result::unwrap).collect();
    assert_eq!((sample.len(), prepared::sample_step(store.state())), (visits.len(), 1));
    assert!(sample.iter().any(|row| row.alias.is_some()));
    let prior = prepared::archive_prior(&[store.state()]).unwrap();
    assert_ne!(prior, RatePrior::default(), "no page was fetched twice");
    assert_eq!(prepared::prior(&store).unwrap(), Some(prior));
    for (row, (url, page, visit)) in sample.into_iter().zip(visits) {
        let alias = match page.flags.has_any(page_flags::ALIAS) {
            true => credits.importance_of(store.state(), url).unwrap(),
            false => None,
        };
        let page = Page { flags: page.flags, host: page.host, cash: page.cash, ..row.page };
        let visit = Visit {
            last_changed: 0,
            versions: 0,
            last_capture: None,
            last_answer: 0,
            status: 0,
            content_status: 0,
            language: 0,
            title: None,
            links: None,
            signature: 0,
            version: None,
            validators: None,
            ..visit
        };
        assert_eq!(row, Sampled { url, page, visit, alias });
    }
}

#[test]
fn pages_are_weighed_by_columns_as_by_tables() {
    let archive = crawled();
    let known = |store: &Store| KnownPages::read(store.state(), store.path()).unwrap();
    assert!(known(&Store::read_only(&archive.path).unwrap()).is_none(), "small archives have no columns");
    prepare(&archive);
    let mut store = Store::own(&archive.path, SegmentOptions::default()).unwrap();
    let pages = known(&store).unwrap();
    let credits = Credits::open(store.state()).unwrap();
    let visits: Vec<_> = store.state().visits_with_pages(0..).map(Result::unwrap).collect();
    let (mut aliases, mut others) = (0, 0);
    for (url, page, visit) in &visits {
        let own = pages.page(*url).unwrap();
        assert_eq!((own.flags, own.host), (page.flags, page.host));
        let importance = match page.flags.has_any(page_flags::ALIAS) {
            true => credits.importance_of(store.state(), *url).unwrap(),
            false => credits.importance(page, Some(visit)),
        };
        assert_eq!(pages.importance(*url), importance);
        *if page.flags.has_any(page_flags::ALIAS) { &mut aliases } else { &mut others } += 1;
    }
    assert!(aliases > 0 && others > 0, "{aliases} aliases, {others} other pages");
    store.state_mut().update_page(visits[0].0, |page| page.depth += 1).unwrap();
    assert!(known(&store).is_none(), "the columns are of the checkpoint, not of what was changed since");
}

/// Blocks of captures without changes are copied from the previous file; the result equals a new file.
#[test]
fn captures_that_have_not_changed_are_kept() {
    let archive = crawled();
    prepare_in_blocks(&archive, 7);
    let path = archive.path.join(prepared::CAPTURES_FILE);
    let before = fs::read(&path).unwrap();
    let mut damaged = before.clone();
    damaged[40] ^= 1;
    let mut store = recorder::open(&archive.path, SegmentOptions::default()).unwrap().store;
    let checkpoint = store.state().checkpoint_number();
    let (id, capture) = store.state().captures().nth(200).unwrap().unwrap();
    store.state_mut().set_capture_flags(id, capture.flags ^ capture_flags::CONTENT_CHANGED).unwrap();
    store.state_mut().append_capture(&Capture { time: capture.time + 1, ..capture }, None).unwrap();
    store.checkpoint().unwrap();
    let state = store.state();
    assert!(state.are_as_at(checkpoint, 0..7) && !state.are_as_at(checkpoint, 196..203));
    assert!(!state.are_as_at(checkpoint - 1, 0..7));
    let written = |old: Option<&[u8]>| {
        match old {
            Some(old) => fs::write(&path, old).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        prepared::write_in_blocks(state, store.path(), 7).unwrap();
        fs::read(&path).unwrap()
    };
    let anew = written(None);
    assert!(anew != before);
    for old in [&before, &damaged, &anew] {
        assert!(written(Some(old)) == anew);
    }
}

#[test]
fn columns_of_another_checkpoint_do_not_count_and_damage_is_reported_and_repaired() {
    let archive = crawled();
    prepare(&archive);
    let counted = ["count pages captures > 0".to_owned()];
    let before = answers(&archive, &counted);
    crawl(&archive, &web(), "30");
    assert_ne!(answers(&archive, &counted), before, "there is more now");

    prepare(&archive);
    let path = archive.path.join(prepared::FILE);
    let mut bytes = fs::read(&path).unwrap();
    // The first chunk follows the header.
    bytes[40] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let damaged = "pages.prepared: it is damaged";
    archive.run("query", &["count pages group by type"]).refused(1, &[damaged, "delete the file"]);
    let verified = archive.run::<&str>("verify", &[]).refused(1, &[]).text();
    assert!(verified.contains(damaged) && verified.contains("archive repair"), "{verified}");
    archive.run::<&str>("repair", &[]).succeeded();
    assert!(!path.exists());
    archive.run::<&str>("verify", &[]).succeeded();
    archive.run("query", &["count pages group by type"]).succeeded();
}

/// A URL is looked up; a glob without stars scans every page.
#[test]
fn a_page_is_found_by_its_url_as_by_looking_at_all() {
    let archive = crawled();
    let text = |value: &serde_json::Value| value["url"].as_str().unwrap().to_owned();
    let urls: Vec<String> =
        archive.json("query", &["page importance > 0 select url limit 40"]).iter().map(text).collect();
    assert_eq!(urls.len(), 40);
    let mut questions = vec!["page url = \"http://nowhere.test/\" select url".to_owned()];
    for pair in urls.windows(2) {
        let [one, other] = pair else { continue };
        for (looked_up, looked_at) in [
            (format!("url = \"{one}\""), format!("url ~ \"{one}\"")),
            (format!("url = \"{one}\" and status = 200"), format!("url ~ \"{one}\" and status = 200")),
            (
                format!("url in (\"{other}\", \"{one}\", \"{other}\")"),
                format!("(url ~ \"{one}\" or url ~ \"{other}\")"),
            ),
            (format!("not url = \"{one}\" and depth < 2"), format!("not url ~ \"{one}\" and depth < 2")),
        ] {
            questions.push(format!("page {looked_up} select url, importance limit 500"));
            questions.push(format!("page {looked_at} select url, importance limit 500"));
        }
    }
    let found = answers(&archive, &questions);
    assert_eq!(found[0].rows.len(), 0);
    for (questions, answers) in questions[1..].chunks(2).zip(found[1..].chunks(2)) {
        assert_eq!(answers[0], answers[1], "{questions:?}");
        assert!(!answers[0].rows.is_empty() || questions[0].contains("status"), "{questions:?}");
    }
}
