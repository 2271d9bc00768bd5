//! Compressed answers: stored as received, told apart by what they contain, and read by everybody.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use archive_storage::digest::Digest;
use archive_storage::warc::{HttpHead, split};
use archive_storage::{Capture, CaptureKind, MimeId, Store, UrlId};
use chrono::DateTime;
use flate2::{Compression, GzBuilder};

use crate::sessions::exported;
use crate::support::answers::{Answers, field, nothing, plain, whole};
use crate::support::program::start;
use crate::support::{Archive, captures, files_with, judges};

const HOME: &str = "http://a.test/";
const COPY: &str = "http://b.test/copy";
const CHUNKED: &str = "http://a.test/chunked";
const TAGGED: &str = "http://a.test/tagged";
const BOMB: &str = "http://a.test/bomb";
const PLAIN: &str = "http://a.test/plain";

fn page(title: &str) -> String {
    format!(
        "<title>{title}</title><a href=/chunked>1</a><a href=/tagged>2</a><a href=/bomb>3</a><a href=/plain>4</a>\
         {}",
        (0..1000_u32).map(|n| format!("<p>{}", n * 7919 % 10_007)).collect::<String>()
    )
}

/// Returns the same content in other bytes each time, as servers do that write the time into it.
fn gzip(content: &[u8], turn: u32) -> Vec<u8> {
    let mut encoder = GzBuilder::new().mtime(turn).write(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn chunked(body: &[u8], size: usize) -> Vec<u8> {
    let chunks =
        body.chunks(size).map(|chunk| [format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat());
    [chunks.collect::<Vec<_>>().concat(), b"0\r\n\r\n".to_vec()].concat()
}

/// A web whose answers are compressed anew each time for those who accept it.
fn web() -> Answers {
    let turns = Arc::new(AtomicU32::new(1));
    Answers::with_heads(move |_, path, head| {
        let turn = turns.fetch_add(1, Ordering::Relaxed);
        let is_accepted = field(head, "Accept-Encoding") == "gzip, br";
        let text = "Content-Type: text/html\r\nVary: Accept-Encoding\r\n";
        let coded = format!("{text}Content-Encoding: gzip\r\n");
        let tags = field(head, "If-None-Match");
        match path {
            "/robots.txt" if is_accepted => whole(
                200,
                &coded.replace("html", "plain"),
                &gzip(b"User-agent: *\nDisallow: /closed\n", turn),
            ),
            "/robots.txt" => plain("User-agent: *\nDisallow: /closed\n"),
            "/" | "/copy" if is_accepted => whole(200, &coded, &gzip(page("home").as_bytes(), turn)),
            "/" | "/copy" => whole(200, text, page("home").as_bytes()),
            "/chunked" if is_accepted => {
                let body = chunked(&gzip(page("in pieces").as_bytes(), 0), 10 + turn as usize);
                [format!("HTTP/1.1 200 OK\r\n{coded}Transfer-Encoding: chunked\r\n\r\n").as_bytes(), &body]
                    .concat()
            }
            "/chunked" => whole(200, text, page("in pieces").as_bytes()),
            // As Apache does: the tag of a compressed answer is known to nobody.
            "/tagged" if tags.split(", ").any(|tag| tag == "\"1\"") => {
                b"HTTP/1.1 304 Not Modified\r\nETag: \"1-gzip\"\r\n\r\n".to_vec()
            }
            "/tagged" if is_accepted => {
                let coded = format!("{coded}ETag: \"1-gzip\"\r\n");
                whole(200, &coded, &gzip(page("tagged").as_bytes(), turn))
            }
            "/bomb" if is_accepted => whole(200, &coded, &gzip(&vec![b'x'; 65 << 20], 0)),
            "/plain" => whole(200, text, page("plain").as_bytes()),
            _ => nothing(),
        }
    })
}

/// Crawls a page and what it links to, then a copy on another host, as asked before.
fn crawled(server: &Answers, options: &[&str]) -> Archive {
    let archive = Archive::new();
    for (seed, more) in [(HOME.to_owned(), options), (format!("{COPY} depth=0"), &[])] {
        let options = server.at_once().into_iter().chain(more.iter().map(|option| (*option).to_owned()));
        start(&mut archive.crawl(&[seed], &options.collect::<Vec<_>>())).wait().succeeded();
    }
    archive
}

fn refresh(archive: &Archive, server: &Answers, options: &[&str]) {
    let usual =
        ["--policy", "uniform", "--budget", "20", "--shortest", "0s", "--delay", "0", "--patience", "0s"];
    start(archive.command("refresh").args(usual).args(options).args(server.connection())).wait().succeeded();
}

/// Head and body of the record of a URL's first capture.
fn stored(archive: &Archive, url: &str) -> (HttpHead, Vec<u8>, Digest) {
    let store = Store::read_only(&archive.path).unwrap();
    let record = store.record(captures(&archive.path).0[url][0].location).unwrap();
    let (head, body) = split(&record.content);
    let digest = record.header.get("WARC-Payload-Digest").unwrap().parse().unwrap();
    (HttpHead::parse(&head), body.to_vec(), digest)
}

fn history(archive: &Archive, url: &str) -> Vec<(CaptureKind, u32)> {
    captures(&archive.path).0[url].iter().map(|capture| (capture.kind, capture.length)).collect()
}

#[test]
fn compressed_answers_are_stored_as_received_and_known_by_their_content() {
    let server = web();
    let archive = crawled(&server, &["--compression", "on"]);
    let (head, body, digest) = stored(&archive, HOME);
    assert_eq!(head.get("Content-Encoding"), Some("gzip"));
    assert!(body.starts_with(&[0x1F, 0x8B]) && body.len() < page("home").len());
    assert_eq!(digest, Digest::sha256(&body), "of the payload with its coding");
    let rows = archive.json("query", &["captures > 0 select url, title, status order by url"]);
    let titles: Vec<_> = rows.iter().filter_map(|row| row["title"].as_str()).collect();
    assert_eq!(titles, ["home", "in pieces", "plain", "tagged", "home"]);
    let (_, bomb, _) = stored(&archive, BOMB);
    assert!(bomb.len() < 1 << 20, "{} bytes", bomb.len());
    let why = archive.json("why", &[BOMB]).remove(0);
    assert!(why.to_string().contains("more than 67108864 bytes when decoded"), "{why}");
    // The same content in other bytes, on another host.
    assert_eq!(captures(&archive.path).0[COPY][0].kind, CaptureKind::Identical);

    // Later runs ask as this one did, and store nothing again.
    refresh(&archive, &server, &[]);
    for url in [HOME, CHUNKED] {
        let [(first, length), again] = history(&archive, url)[..] else { panic!("{url}") };
        assert_eq!((first, again), (CaptureKind::Response, (CaptureKind::Identical, length)), "{url}");
    }
    assert_eq!(history(&archive, TAGGED)[1].0, CaptureKind::NotModified);
    let records = exported(&archive);
    assert!(records.contains("If-None-Match: \"1-gzip\", \"1\"\r\n"));
    assert!(records.contains("WARC-Profile: urn:archive:revisit:identical-content\r\n"));
    // Neither do those who ask for no compression.
    refresh(&archive, &server, &["--compression", "off"]);
    assert_eq!(history(&archive, HOME)[2].0, CaptureKind::Identical);
    assert_eq!(history(&archive, PLAIN)[2].0, CaptureKind::Identical);
    let query = ["captures > 0 select url, versions order by url"];
    for row in archive.json("query", &query).iter().filter(|row| row["url"] != BOMB) {
        assert_eq!(row["versions"], 1, "{row}");
    }
    let answers =
        ["captures url = 'http://a.test/' order by time asc select header(\"content-encoding\"), status"];
    let answers = archive.json("query", &answers);
    let codings: Vec<_> = answers.iter().map(|row| row["header(\"content-encoding\")"].as_str()).collect();
    assert_eq!(codings, [Some("gzip"), Some("gzip"), None], "{answers:?}");

    archive.verify();
    let before = captures(&archive.path).0;
    archive.run("rebuild", &[] as &[&str]).succeeded();
    // URLs and types have other numbers.
    let told = |captures: &[Capture]| {
        let each = captures.iter();
        each.map(|capture| Capture { url: UrlId(0), mime: MimeId(0), ..*capture }).collect::<Vec<_>>()
    };
    for (url, captures) in captures(&archive.path).0 {
        assert_eq!(told(&captures), told(&before[&url]), "{url}");
    }
    archive.verify();
}

#[test]
fn other_tools_read_compressed_captures_and_their_revisits() {
    let Some(judges) = judges::find() else { return };
    let server = web();
    let archive = crawled(&server, &["--compression", "on", "--codec", "gzip"]);
    refresh(&archive, &server, &[]);
    refresh(&archive, &server, &["--compression", "off"]);
    let records = judges.check(&archive.segments());
    assert_eq!(records.captures(), archive.verify());
    let mut asked = Vec::new();
    for (url, title) in [(HOME, "home"), (COPY, "home"), (CHUNKED, "in pieces"), (TAGGED, "tagged")] {
        for capture in &captures(&archive.path).0[url] {
            let time = DateTime::from_timestamp_micros(capture.time).unwrap();
            asked.push((url.to_owned(), time, Digest::sha256(page(title).as_bytes())));
        }
    }
    // pywb tells captures of one second apart by nothing.
    asked.dedup_by_key(|(url, time, _)| (url.clone(), time.timestamp()));
    judges.replay(&archive.folder().join("pywb"), &files_with(&archive.segments(), &[".warc.gz"]), &asked);
}

#[test]
fn a_copy_of_compressed_content_outlives_its_erased_original() {
    let server = web();
    let archive = crawled(&server, &["--compression", "on"]);
    let title = |url: &str| archive.run("get", &[url]).succeeded().text();
    let before = title(COPY);
    assert!(before.contains("<title>home"), "{before}");
    archive
        .run("erase", &["url = 'http://a.test/'", "--reason", "asked", "--keep-copies", "--yes"])
        .succeeded();
    assert_eq!(title(COPY), before);
    archive.verify();
    let before = captures(&archive.path).0;
    archive.run("rebuild", &[] as &[&str]).succeeded();
    assert_eq!(captures(&archive.path).0[COPY][0].digest, before[COPY][0].digest);
}
