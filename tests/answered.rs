//! Details of answers are noted when they are recorded; queries on them agree with the records, whatever the answers
//! were.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use archive_books::prepared::{self, ANSWERS_FILE, Answers as Noted, Column, Said};
use archive_storage::{CaptureKind, Store};
use chrono::{SecondsFormat, TimeDelta, Utc};
use serde_json::Value;

use crate::prepared::{answers, prepare_in_blocks};
use crate::support::Archive;
use crate::support::answers::{Answers, html, nothing, plain, redirect, whole};
use crate::support::prepared::prepared;
use crate::support::program::start;

/// Number of pages of the web.
const PAGES: usize = 40;

/// Returns header lines with the server, some of them odd: missing, empty, two lines, Latin-1, given twice, and too
/// long to be noted.
fn server(page: usize, round: usize) -> Vec<u8> {
    match (page + round) % 11 {
        0 | 1 => b"Server: nginx/1.18.0\r\n".to_vec(),
        2 => b"server: Apache/2.4 (Unix)\r\n".to_vec(),
        3 => Vec::new(),
        4 => b"Server:\r\n".to_vec(),
        5 => b"Server: one\r\n two\r\n".to_vec(),
        6 => b"Server: s\xf6me\r\n".to_vec(),
        7 => b"Server: first\r\nSERVER: second\r\n".to_vec(),
        8 => format!("Server: {}\r\n", "x".repeat(129)).into_bytes(),
        9 => "Server: größer\r\n".into(),
        _ => format!("Server: only{page}.\r\n").into_bytes(),
    }
}

fn content_type(number: usize) -> &'static [u8] {
    match number % 7 {
        0 | 1 => b"Content-Type: text/html; charset=utf-8\r\n",
        2 => b"content-type: text/html;charset=\"ISO-8859-1\"; x=y\r\n",
        3 => b"Content-Type: text/html\r\n",
        4 => b"",
        5 => b"Content-Type: text/html; charset=\r\n",
        _ => b"Content-Type: text/html; charset = Klingon\r\nContent-Type: a/b; charset=other\r\n",
    }
}

/// Returns an answer of one of three rounds, in which pages stay the same, are not modified, change, disappear or do
/// not answer.
fn answer(path: &str, round: usize) -> Vec<u8> {
    let number: usize = match path {
        "/robots.txt" => return plain("User-agent: *\nAllow: /\n"),
        "/" => {
            let link = |number| format!("<a href=/{number}>{number}</a> ");
            return html(&(0..PAGES).map(link).collect::<String>());
        }
        path => match path[1..].parse() {
            Ok(number) => number,
            Err(_) => return nothing(),
        },
    };
    let own = match number % 3 {
        0 => format!("X-Round: {round}\r\nX-Number: n{number}\r\nX-Again: n{}\r\n", number % 2),
        _ => String::new(),
    };
    let line = [server(number, round), content_type(number + round).to_vec(), own.into()].concat();
    let head = |status: &str| [format!("HTTP/1.1 {status} -\r\nETag: \"a\"\r\n").as_bytes(), &line].concat();
    let body =
        format!("<title>{number}</title> a page of some length that stays as it is {}", number % 5).repeat(9);
    let whole_with = |status: &str, body: &str| {
        [head(status), format!("Content-Length: {}\r\n\r\n{body}", body.len()).into()].concat()
    };
    // Vary the response times.
    thread::sleep(Duration::from_millis(number as u64 % 4));
    match (number + 5 * round) % 12 {
        1 if round > 0 => [head("304"), b"\r\n".to_vec()].concat(),
        2 | 3 if round > 0 => whole_with("200", &format!("{body} {round}")),
        4 => whole_with("404", ""),
        5 => b"220 mail.test ESMTP\r\n\r\n".to_vec(),
        6 => redirect("/0"),
        7 => whole(500, "", b"no"),
        _ => whole_with("200", &body),
    }
}

/// Serves such answers; returns the server and its round.
fn served() -> (Answers, Arc<AtomicUsize>) {
    let round = Arc::new(AtomicUsize::new(0));
    let now = Arc::clone(&round);
    (Answers::start(move |_, path| answer(path, now.load(Ordering::Relaxed))), round)
}

fn crawl(archive: &Archive, served: &Answers) {
    let seeds = ["http://site.test/".to_owned()];
    let crawled = start(&mut archive.crawl(&seeds, &served.with_patience("0s"))).wait();
    crawled.refused(4, &["put off by their servers until the next run"]);
}

fn refresh(archive: &Archive, served: &Answers, round: &AtomicUsize) {
    let days = 20 * (round.fetch_add(1, Ordering::Relaxed) + 1);
    let clock = (Utc::now() + TimeDelta::days(days as i64)).to_rfc3339_opts(SecondsFormat::Micros, true);
    let mut command = archive.command("refresh");
    start(command.args(["--budget", "1000", "--clock", &clock]).args(served.with_patience("0s")))
        .wait()
        .succeeded();
}

/// Returns the archive of a crawl and two more rounds.
fn three_rounds() -> Archive {
    prepared("answered", || {
        let (archive, (served, round)) = (Archive::new(), served());
        crawl(&archive, &served);
        refresh(&archive, &served, &round);
        refresh(&archive, &served, &round);
        archive
    })
}

/// Conditions on details of answers, alone and combined.
const CONDITIONS: [&str; 52] = [
    "server = \"nginx/1.18.0\"",
    "server = \"NGINX/1.18.0\"",
    "server != \"nginx/1.18.0\"",
    "server ~ \"nginx*\"",
    "server contains \"apache\"",
    "server contains any (nginx, apache)",
    "server starts with \"one\"",
    "server ends with \"two\"",
    "server matches \"only[0-9]+\"",
    "server in (\"first\", \"second\", \"söme\", \"größer\")",
    "server = \"\"",
    "server is empty",
    "server is not empty",
    "not server contains \"x\"",
    "server > \"m\"",
    "length(server) > 100",
    "lower(server) = \"größer\"",
    "charset = utf-8",
    "charset = \"ISO-8859-1\"",
    "charset != utf-8",
    "charset is empty",
    "charset in (klingon, other)",
    "charset starts with \"iso\"",
    "server = charset",
    "response_time >= 0 seconds",
    "response_time > 0 seconds",
    "not response_time < 1 seconds",
    "response_time * 1000 between 1 seconds and 2 seconds",
    "response_time is empty",
    "response_time * 1000 > 2 seconds",
    "server contains \"x\" and status = 404",
    "server is empty or charset is empty",
    "(server ~ \"nginx*\" or status = 404) and not charset = utf-8",
    "header(\"server\") contains \"apache\" and charset = utf-8",
    "header(\"server\") = \"nginx/1.18.0\"",
    "header(\"Content-Type\") starts with \"text/\"",
    "header(\"ETag\") is not empty",
    "header(\"x-round\") is empty",
    "not header(\"X-Round\") = \"1\"",
    "header(\"x-round\") in (\"0\", \"2\") or charset is empty",
    "header(\"x-number\") > \"n3\"",
    "header(\"x-number\") = header(\"x-again\")",
    "length(header(\"server\")) > 100",
    "header(\"location\") ends with \"0\"",
    "header(\"content-length\") contains \"4\" and not header(\"x-round\") is empty",
    "hops contains \"L\"",
    "hops = \"L\" and not server is empty",
    "hops is empty",
    "length(hops) < 1 or hops ends with \"R\"",
    "failure is not empty",
    "failure contains \"http\"",
    "failure is empty and status is empty",
];

/// Returns all kinds of queries on pages and captures.
fn questions() -> Vec<String> {
    let each = |condition: &&str| {
        [
            format!("page {condition} order by url select url, server, charset, response_time"),
            format!("count pages {condition} group by type, status"),
            format!("page {condition} limit 3 select url, importance"),
            format!("page url contains \"1\" and {condition} order by url select url"),
            format!("capture {condition} order by time, url select url, time, kind, server, charset"),
            format!("count versions {condition} group by kind"),
            format!("count captures not ({condition}) and kind != failed"),
            format!("page {condition} as of now order by url select url"),
        ]
    };
    let of_pages =
        ["page.server ~ \"nginx*\"", "page.charset is empty", "page.response_time * 1000 > 2 seconds"];
    let of_pages = of_pages.iter().map(|condition| format!("capture {condition} order by time, url"));
    let others = [
        "count captures group by server, charset, kind",
        "count pages group by header(\"x-round\"), hops",
        "captures select count, avg(response_time) group by failure",
        "count pages where header(\"content-length\") is empty or server ~ \"n*\" group by header(\"etag\")",
        "page order by server, url select url, header(\"x-number\"), header(\"date\"), failure",
    ];
    CONDITIONS.iter().flat_map(each).chain(of_pages).chain(others.map(str::to_owned)).collect()
}

/// Of so many questions one is asked where another test asks all of them of such an archive. It shares no factor with the
/// number of kinds, so that each condition is asked in some kinds and each kind has some conditions.
const ASKED_EVERY: usize = 5;

/// Fails unless some of the answers are the same from records, from noted details and with columns.
fn answers_stay_the_same(archive: &Archive) {
    answers_to(archive, &questions().into_iter().step_by(ASKED_EVERY).collect::<Vec<_>>());
}

/// Fails unless answers are the same from records, from noted details and with columns, with some of them empty and
/// some not.
fn answers_to(archive: &Archive, questions: &[String]) {
    let file = archive.path.join(ANSWERS_FILE);
    let noted = fs::read(&file).ok();
    noted.iter().for_each(|_| fs::remove_file(&file).unwrap());
    let before = answers(archive, questions);
    noted.iter().for_each(|noted| fs::write(&file, noted).unwrap());
    assert!(before.iter().filter(|answer| !answer.rows.is_empty()).count() > questions.len() / 2);
    for rows in [None, Some(prepared::BLOCK_ROWS), Some(7)] {
        rows.into_iter().for_each(|rows| prepare_in_blocks(archive, rows));
        for ((question, before), after) in questions.iter().zip(&before).zip(answers(archive, questions)) {
            let found = [before.rows.len(), after.rows.len()];
            assert!(before.rows == after.rows, "{question}: rows {found:?} in blocks of {rows:?}");
        }
    }
}

/// Returns the noted details of each capture: a text per column; `None` where the record must be read.
fn noted(archive: &Path) -> Vec<[Option<String>; 6]> {
    let store = Store::read_only(archive).unwrap();
    let Some(noted) = Noted::open(&store).unwrap() else { return Vec::new() };
    let said = |column, code| match noted.said(column, code) {
        Said::Unknown => None,
        Said::Nothing => Some(String::new()),
        Said::Name(name) => Some(name.to_owned()),
        Said::Milliseconds(milliseconds) => Some(milliseconds.to_string()),
    };
    let columns =
        [Column::Server, Column::Charset, Column::Hops, Column::Failure, Column::ResponseTime, Column::Head];
    let columns = columns.map(|column| {
        let codes =
            (0..noted.columns.blocks()).flat_map(|block| noted.columns.values(block, column).unwrap());
        codes.map(|code| said(column, code)).collect::<Vec<_>>()
    });
    (0..columns[0].len()).map(|capture| columns.each_ref().map(|said| said[capture].clone())).collect()
}

/// Returns the number of captures of each kind.
fn kinds(archive: &Archive) -> [usize; 4] {
    let store = Store::read_only(&archive.path).unwrap();
    let kinds: Vec<_> = store.state().captures().map(|capture| capture.unwrap().1.kind).collect();
    [CaptureKind::Response, CaptureKind::Identical, CaptureKind::NotModified, CaptureKind::Failed]
        .map(|kind| kinds.iter().filter(|found| **found == kind).count())
}

/// Returns how a query was answered according to `--explain`, and how many records it read.
fn explained(archive: &Archive, question: &str) -> (String, u64) {
    let seen: Value = archive.json("query", &[question, "--explain"]).remove(0);
    (seen["steps"][0]["what"].as_str().unwrap().to_owned(), seen["records_read"].as_u64().unwrap())
}

#[test]
fn conditions_hold_by_what_was_noted_where_they_hold_by_the_records() {
    let archive = three_rounds();
    let kinds = kinds(&archive);
    assert!(kinds.iter().all(|count| *count > 3), "{kinds:?}");
    let all = noted(&archive.path);
    assert_eq!(all.len(), kinds.iter().sum::<usize>());
    let unknown = all.iter().filter(|[server, ..]| server.is_none()).count();
    assert!((1..all.len() / 8).contains(&unknown), "only names that are too long: {all:?}");
    // The head of a 304 is stored as text, so a head in Latin-1 is left to the record.
    let odd: Vec<_> = all.iter().filter(|[_, said @ ..]| said.contains(&None)).collect();
    assert!(odd.len() < 3 && odd.iter().all(|said| said.iter().all(Option::is_none)), "{odd:?}");
    answers_to(&archive, &questions());
    // Records are read only for captures without noted details.
    for (question, columns, read) in [
        ("count pages charset = utf-8 and depth < 3", "pages, depth, newest, charset", 0),
        ("count captures response_time * 1000 > 1 seconds", "captures, responsetime", odd.len()),
        ("count captures server = \"one two\"", "captures, server", unknown),
        ("count captures header(\"x-round\") = \"1\"", "captures, head", odd.len()),
        ("count captures server = \"one two\" and status = 500", "captures, status, server", 0),
    ] {
        let what = columns.replacen(", ", " by prepared columns, which decide: ", 1);
        assert_eq!(explained(&archive, question), (what, read as u64), "{question}");
    }
    let grouped = |question| explained(&archive, question).1;
    assert_eq!(grouped("count captures group by server"), unknown as u64);
    assert_eq!(grouped("count captures group by header(\"x-round\")"), odd.len() as u64);
}

#[test]
fn a_later_run_keeps_what_was_noted_before_and_a_rebuild_notes_it_anew() {
    let (archive, (served, round)) = (Archive::new(), served());
    crawl(&archive, &served);
    let first = noted(&archive.path);
    assert!(first.len() > PAGES);
    refresh(&archive, &served, &round);
    let second = noted(&archive.path);
    assert!(second.len() > first.len() && second[..first.len()] == first[..]);
    // An archive of an older program has no such file: new captures are noted, and records are read for the old ones.
    let path = archive.path.join(ANSWERS_FILE);
    fs::remove_file(&path).unwrap();
    refresh(&archive, &served, &round);
    let third = noted(&archive.path);
    assert!(third.len() > second.len() && third[..second.len()].iter().flatten().all(Option::is_none));
    assert!(third[second.len()..].iter().filter(|said| said.iter().all(Option::is_some)).count() > 10);
    let other = archive.copy();
    answers_stay_the_same(&other);

    archive.run::<&str>("rebuild", &[]).succeeded();
    let rebuilt = noted(&archive.path);
    assert_eq!(rebuilt.len(), third.len());
    let count = |all: &[[Option<String>; 6]]| all.iter().flatten().filter(|said| said.is_none()).count();
    assert_eq!(count(&rebuilt[..second.len()]), count(&second), "{rebuilt:?}");
    answers_stay_the_same(&archive);
    // Repacked records give the same details.
    let before = noted(&archive.path);
    archive.run("repack", &["--again"]).succeeded();
    assert_eq!(noted(&archive.path), before);
}

/// A killed crawl has written most of what it noted, and readers see it while the crawl runs.
#[test]
fn a_killed_run_loses_little_of_what_it_noted() {
    let pages = 1100;
    let served = Answers::start(move |_, path| match path {
        "/robots.txt" => plain("User-agent: *\nAllow: /\n"),
        "/" => {
            html(&(0..2 * pages).map(|number| format!("<a href=/{number}>{number}</a> ")).collect::<String>())
        }
        path => {
            if path[1..].parse().is_ok_and(|number: usize| number > pages) {
                thread::sleep(Duration::from_millis(50));
            }
            html(path)
        }
    });
    let archive = Archive::new();
    let crawl = || {
        let mut command = archive.crawl(&["http://site.test/".to_owned()], &served.at_once());
        command.args(["--checkpoint-every", "200ms"]);
        start(&mut command)
    };
    let (mut running, file) = (crawl(), archive.path.join(ANSWERS_FILE));
    assert!(running.wait_until(|| file.exists()));
    let known = || noted(&archive.path).iter().filter(|said| said.iter().all(Option::is_some)).count();
    let meanwhile = known();
    assert!(meanwhile > 1000, "{meanwhile}");
    running.kill();
    assert_eq!(known(), meanwhile);
    let read = |question| explained(&archive, question).1;
    assert!(read("count captures group by server") < meanwhile as u64);
    crawl().wait().succeeded();
    let (all, captures) = (known(), noted(&archive.path).len());
    assert!(captures > 2 * pages + 1 && all > captures - 300, "{all} of {captures}");
}

#[test]
fn what_an_import_brings_is_noted_as_far_as_it_is_certain() {
    let (archive, imported) = (three_rounds(), Archive::new());
    let files = fs::read_dir(archive.segments()).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = files.filter(|path| path.extension().is_some_and(|it| it == "zst")).collect();
    imported.run("import", &files).succeeded();
    let all = noted(&imported.path);
    assert!(all.iter().filter(|said| said.iter().all(Option::is_some)).count() > PAGES, "{all:?}");
    answers_stay_the_same(&imported);
}

#[test]
fn what_an_erased_page_s_server_said_is_forgotten() {
    let archive = three_rounds();
    let page = "url = \"http://site.test/10\"";
    let path = archive.path.join(ANSWERS_FILE);
    let has_name = || fs::read(&path).unwrap().windows(7).any(|bytes| bytes == b"only10.");
    assert!(has_name());
    let before = noted(&archive.path);
    archive.run("erase", &[page, "--reason", "asked", "--yes"]).succeeded();
    assert!(!has_name());
    let after = noted(&archive.path);
    assert_eq!(after.len(), before.len());
    let differ: Vec<_> = before.iter().zip(&after).filter(|(before, after)| before != after).collect();
    assert!((1..=6).contains(&differ.len()), "{differ:?}");
    assert!(differ.iter().all(|(_, after)| after.iter().all(Option::is_none)));
    answers_stay_the_same(&archive);
}

#[test]
fn a_damaged_file_is_reported_and_repaired() {
    let archive = three_rounds();
    prepare_in_blocks(&archive, prepared::BLOCK_ROWS);
    let path = archive.path.join(ANSWERS_FILE);
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(5).position(|bytes| bytes == b"nginx").unwrap();
    bytes[at] ^= 1;
    fs::write(&path, bytes).unwrap();
    let damaged = "answers.prepared: it is damaged";
    archive.run("query", &["count pages server ~ \"nginx*\""]).refused(1, &[damaged, "delete the file"]);
    let verified = archive.run::<&str>("verify", &[]).refused(1, &[]).text();
    assert!(verified.contains(damaged), "{verified}");
    archive.run::<&str>("repair", &[]).succeeded();
    assert!(!path.exists());
    archive.run::<&str>("verify", &[]).succeeded();
    answers_stay_the_same(&archive);
}
