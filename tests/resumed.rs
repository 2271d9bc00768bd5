//! Downloads that are cut off: the rest is asked for, and the body is stored whole, if it is surely of one version.

use std::sync::{Arc, Mutex};

use crate::support::Archive;
use crate::support::answers::{Answers, CLOSE, field, nothing, plain};
use crate::support::program::start;

const BODY_BYTES: usize = 300_000;

/// Bytes after which each connection is lost.
const CUT_AFTER: usize = 120_000;

fn film() -> Vec<u8> {
    (0..BODY_BYTES as u32).map(|number| (number % 251) as u8).collect()
}

/// What is asked for: path, `Range` and `If-Range`.
type Log = Arc<Mutex<Vec<[String; 3]>>>;

fn server() -> (Answers, Log) {
    let log = Log::default();
    let asked = Arc::clone(&log);
    let answers = Answers::with_heads(move |_, path, head| {
        let mut asked = asked.lock().unwrap();
        asked.push([path.to_owned(), field(head, "Range").to_owned(), field(head, "If-Range").to_owned()]);
        let from = field(head, "Range")
            .strip_prefix("bytes=")
            .and_then(|range| range.strip_suffix('-')?.parse().ok());
        let number = asked.len();
        match path {
            "/robots.txt" => plain(""),
            "/film" => piece(from, "ETag: \"v1\"\r\n", 0),
            "/dated" => {
                let dates =
                    "Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\nDate: Thu, 01 Jan 2026 00:01:00 GMT\r\n";
                piece(from, dates, 0)
            }
            "/weak" => piece(from, "ETag: W/\"v1\"\r\n", 0),
            // Another version each time, also in the place of a part.
            "/changed" => piece(None, &format!("ETag: \"v{number}\"\r\n"), 0),
            "/mixed" => piece(from, &format!("ETag: \"v{number}\"\r\n"), 0),
            "/dripping" => piece_of(1000, from, "ETag: \"v1\"\r\n", 0),
            "/elsewhere" => piece(from, "ETag: \"v1\"\r\n", 1),
            _ => nothing(),
        }
    });
    (answers, log)
}

/// The film from a byte on, cut off; what its head says of the place may be wrong.
fn piece(from: Option<usize>, fields: &str, wrong: usize) -> Vec<u8> {
    piece_of(CUT_AFTER, from, fields, wrong)
}

/// The same, cut off after some bytes.
fn piece_of(most: usize, from: Option<usize>, fields: &str, wrong: usize) -> Vec<u8> {
    let (film, first) = (film(), from.unwrap_or_default());
    let length = BODY_BYTES - first;
    let status = if from.is_some() { 206 } else { 200 };
    let range =
        from.map(|from| format!("Content-Range: bytes {}-{}/{BODY_BYTES}\r\n", from + wrong, BODY_BYTES - 1));
    let head = format!(
        "HTTP/1.1 {status} -\r\nContent-Type: video/mp4\r\n{fields}{}{CLOSE}Content-Length: {length}\r\n\r\n",
        range.unwrap_or_default()
    );
    [head.as_bytes(), &film[first..BODY_BYTES.min(first + most)]].concat()
}

#[test]
fn what_is_cut_off_is_resumed_if_it_is_surely_the_same() {
    let (server, log) = server();
    let archive = Archive::new();
    let url = |path: &str| format!("http://films.test{path}");
    let whole = ["/film", "/dated"];
    let cut = ["/weak", "/changed", "/mixed", "/elsewhere"];
    let seeds: Vec<String> = whole.iter().chain(&cut).chain(&["/dripping"]).map(|path| url(path)).collect();
    // What is cut off waits for the next run.
    start(&mut archive.crawl(&seeds, &server.with_patience("0s"))).wait().refused(4, &["waits"]);
    let log = log.lock().unwrap().clone();
    let ranges = |path: &str| -> Vec<(String, String)> {
        let of_path = log.iter().filter(|[asked, ..]| asked == path);
        of_path.map(|[_, range, condition]| (range.clone(), condition.clone())).collect()
    };
    let pairs = |rest: &[(&str, &str)]| -> Vec<(String, String)> {
        let all = [&[("", "")], rest].concat();
        all.into_iter().map(|(range, condition)| (range.to_owned(), condition.to_owned())).collect()
    };
    assert_eq!(ranges("/film"), pairs(&[("bytes=120000-", "\"v1\""), ("bytes=240000-", "\"v1\"")]));
    let date = "Thu, 01 Jan 2026 00:00:00 GMT";
    assert_eq!(ranges("/dated"), pairs(&[("bytes=120000-", date), ("bytes=240000-", date)]));
    assert_eq!(ranges("/weak"), pairs(&[]));
    for path in ["/changed", "/mixed", "/elsewhere"] {
        assert_eq!(ranges(path).len(), 2, "{path}");
    }
    for path in whole {
        assert!(archive.run("get", &[&url(path)]).succeeded().output == film(), "{path}");
        let fetch = archive.json("why", &[&url(path)]).remove(0)["last_fetch"].take();
        assert!(fetch["truncated"].is_null(), "{fetch}");
        let problems = fetch["problems"].to_string();
        for bytes in ["120000", "240000"] {
            let said = format!("lost after {bytes} bytes of the body; the rest was asked for");
            assert!(problems.contains(&said), "{problems}");
        }
    }
    for path in cut {
        let fetch = archive.json("why", &[&url(path)]).remove(0)["last_fetch"].take();
        assert_eq!(fetch["truncated"], "disconnect", "{path} {fetch}");
        assert!(archive.run("get", &[&url(path)]).succeeded().output == film()[..CUT_AFTER], "{path}");
    }
    // The rest is asked for five times.
    assert_eq!(ranges("/dripping").len(), 6);
    assert!(archive.run("get", &[&url("/dripping")]).succeeded().output == film()[..6000]);
    archive.verify();
}
