//! Patterns in the text of pages: the full-text index names the pages that need not be read, and the answer is the same
//! without it.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chrono::{SecondsFormat, TimeDelta, Utc};
use serde_json::Value;

use crate::support::Archive;
use crate::support::answers::{Answers, html, nothing, plain, redirect, whole};
use crate::support::program::start;

/// Number of pages.
const PAGES: usize = 60;

fn xml(body: &str) -> Vec<u8> {
    whole(200, "Content-Type: application/xml\r\n", body.as_bytes())
}

/// Returns an answer of one of three rounds.
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
    let mail = format!("Write to <b>Reader-{number}@museum.example</b>, please.");
    let text = format!("The {number}th room shows Résumés, 图书馆 and e-mail. Call 030 12{number:02}34.");
    match (number + round) % 10 {
        0 => html(&format!("<title>Mail {number}</title>{mail}")),
        1 => xml(&format!("<a><b>{text}</b></a>")),
        2 => xml(&format!("<!DOCTYPE a [<!ENTITY m \"x@museum.example\">]><a>&m;{number}</a>")),
        3 => html(&format!("{text} {}", "x".repeat(70))),
        4 => html(&format!("{text} {}@museum.example", "y".repeat(70))),
        5 => redirect("/0"),
        6 => whole(203, "Content-Type: text/html\r\n", mail.as_bytes()),
        7 => whole(404, "Content-Type: text/html\r\n", mail.as_bytes()),
        8 => plain(&format!("{mail} {text}")),
        _ => html(&text),
    }
}

const PATTERNS: [&str; 12] = [
    r#"matches "[\w.-]+@museum\.example""#,
    r#"matches "[\w.-]+@""#,
    r#"~ "*@museum.example*""#,
    r#"matches "Reader-\d+@""#,
    r#"matches "résumés""#,
    r#"matches "(?-i:Résum)""#,
    r#"matches "书馆""#,
    r#"matches "\b030 12\d{4}\b""#,
    r#"matches "12(?-u:\d)434""#,
    r#"matches "x@museum|th room|y{69}""#,
    r#"matches "nowhere""#,
    r#"matches ".*""#,
];

fn questions() -> Vec<String> {
    let each = |pattern: &&str| {
        [
            format!("page text {pattern} order by url select url"),
            format!("page text not {pattern} and status = 200 order by url select url")
                .replace("not ~", "!~"),
            format!("count pages type = html and (text {pattern} or title contains \"mail\")"),
            format!("page url = \"http://site.test/7\" and text {pattern} select url"),
            format!("page text {pattern} as of now order by url select url"),
        ]
    };
    PATTERNS.iter().flat_map(each).collect()
}

/// Fails unless answers with the index are those without it, and returns how many payloads each pattern reads.
fn read_for(archive: &Archive) -> Vec<u64> {
    let (index, away) = (archive.path.join("state/fulltext"), archive.folder().join("away"));
    let read = |pattern: &&str| {
        let seen: Value = archive.json("query", &[&format!("page text {pattern}"), "--explain"]).remove(0);
        seen["records_read"].as_u64().unwrap()
    };
    let answers =
        || questions().iter().map(|question| archive.json("query", &[question])).collect::<Vec<_>>();
    let (with, read_with) = (answers(), PATTERNS.iter().map(read).collect::<Vec<_>>());
    fs::rename(&index, &away).unwrap();
    let (without, read_without) = (answers(), read(&PATTERNS[0]));
    fs::rename(&away, &index).unwrap();
    for ((question, with), without) in questions().iter().zip(&with).zip(&without) {
        assert_eq!(with, without, "{question}");
    }
    assert_eq!(read_with.last(), Some(&read_without), "any text may fit");
    read_with
}

#[test]
fn pages_that_lack_a_word_or_sign_are_not_read() {
    let round = Arc::new(AtomicUsize::new(0));
    let now = Arc::clone(&round);
    let served = Answers::start(move |_, path| answer(path, now.load(Ordering::Relaxed)));
    let archive = Archive::new();
    let options = |is_indexed: bool| {
        let options = served.with_patience("2s").into_iter();
        options.filter(|option| !is_indexed || option != "--no-full-text").collect::<Vec<_>>()
    };
    start(&mut archive.crawl(&["http://site.test/".to_owned()], &options(true))).wait().succeeded();
    let read = read_for(&archive);
    // Six kinds of pages have a text that is found with status 200, of which those with a long word or entities are read.
    let (mails, long, entities, gone) = (12, 12, 6, 6);
    let all = *read.last().unwrap();
    assert_eq!(read[0], mails + long + entities + gone, "{read:?}");
    assert!(read[1] == read[0] && read[2] == read[0] && read[10] < read[0] && read[0] < all, "{read:?}");

    for (is_indexed, after) in [(true, 20), (false, 40)] {
        round.fetch_add(1, Ordering::Relaxed);
        let clock = (Utc::now() + TimeDelta::days(after)).to_rfc3339_opts(SecondsFormat::Micros, true);
        let mut refresh = archive.command("refresh");
        start(refresh.args(["--budget", "1000", "--clock", &clock]).args(options(is_indexed)))
            .wait()
            .succeeded();
        let read = read_for(&archive);
        let is_some_left_out = read[0] < *read.last().unwrap();
        // What was captured since the index was written is read.
        assert_eq!(is_some_left_out, is_indexed, "{read:?}");
    }
}
