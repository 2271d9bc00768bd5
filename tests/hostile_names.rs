//! Servers that invent names: data that every command keeps in memory stays small.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread;

use archive_storage::Store;

use crate::support::Archive;
use crate::support::program::start;

/// Number of pages, each with its own media type.
const PAGES: usize = 800;

/// Number of letters in each media type.
const TYPE_LETTERS: usize = 60_000;

/// Limit for the memory of a command that reads the archive (RLIMIT_DATA), in bytes. Without these names, it needs less
/// than half.
const DATA_BYTES_MAX: u64 = 100 << 20;

/// Limit for the state's catalogue of all pages, in bytes.
const CATALOGUE_BYTES_MAX: u64 = 4 << 20;

/// Answers every request with an unknown media type.
fn serve(stream: &TcpStream) -> std::io::Result<()> {
    let (mut lines, mut out) = (BufReader::new(stream).lines(), stream);
    while let Some(request) = lines.next() {
        let request = request?;
        for line in &mut lines {
            if line?.is_empty() {
                break;
            }
        }
        let path = request.split(' ').nth(1).unwrap_or_default();
        let page = path.trim_start_matches('/');
        let answer = match page.parse::<usize>() {
            Ok(_) => {
                let (name, body) = ("x".repeat(TYPE_LETTERS), format!("<p>page {page}"));
                let length = body.len();
                format!(
                    "200 OK\r\nContent-Type: text/{page}-{name}\r\nContent-Length: {length}\r\n\r\n{body}"
                )
            }
            Err(_) => "404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
        };
        write!(out, "HTTP/1.1 {answer}")?;
        out.flush()?;
    }
    Ok(())
}

#[test]
fn invented_media_types_cost_no_command_its_memory() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A crawler that disconnects ends only its own connection.
            thread::spawn(move || drop(serve(&stream)));
        }
    });
    let archive = Archive::new();
    let urls: Vec<String> = (0..PAGES).map(|page| format!("http://{address}/{page}")).collect();
    let options = ["--delay", "0", "--allow-private", "--no-full-text"];
    start(&mut archive.crawl(&urls, &options)).wait().succeeded();

    let catalogue = archive.path.join("state/catalogue.redb").metadata().unwrap().len();
    println!("the catalogue has {catalogue} bytes");
    assert!(catalogue < CATALOGUE_BYTES_MAX, "{catalogue} bytes");
    for command in [&["stats"][..], &["query", "status = 200"], &["history", &urls[7]], &["verify"]] {
        let (name, arguments) = command.split_first().unwrap();
        let mut limited = Command::new("prlimit");
        limited.arg(format!("--data={DATA_BYTES_MAX}")).arg(env!("CARGO_BIN_EXE_archive")).arg(name);
        limited.arg("--archive").arg(&archive.path).args(arguments).env_remove("ARCHIVE_DIR");
        start(&mut limited).wait().succeeded();
    }
    let export = archive.folder().join("all.cdxj");
    let arguments = ["cdxj".as_ref(), "--output".as_ref(), export.as_os_str()];
    archive.run("export", &arguments).succeeded();
    assert!(std::fs::read_to_string(export).unwrap().lines().all(|line| line.len() < 1000));

    // The records keep the original types.
    let store = Store::read_only(&archive.path).unwrap();
    let id = store.state().find(&urls[7]).unwrap().unwrap();
    let (_, capture) = store.state().history(id).unwrap().next().unwrap().unwrap();
    assert_eq!(store.state().mime(capture.mime), "");
    assert!(store.record(capture.location).unwrap().content.len() > TYPE_LETTERS);
}

/// Returns a WARC response record of 2020.
fn response(number: u32, url: &str) -> String {
    let body = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>page {number}");
    let id = format!("<urn:uuid:00000000-0000-0000-0000-{number:012}>");
    let length = body.len();
    format!(
        "WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: {id}\r\nWARC-Target-URI: {url}\r\n\
         WARC-Date: 2020-01-01T00:00:00Z\r\nContent-Type: application/http;msgtype=response\r\n\
         Content-Length: {length}\r\n\r\n{body}\r\n\r\n"
    )
}

/// Returns a revisit with a link found by another tool.
fn revisit(number: u32, url: &str, link: &str) -> String {
    let id = format!("<urn:uuid:00000000-0000-0000-0000-{number:012}>");
    let profile = archive_storage::segment::PROFILE_IDENTICAL;
    let links = format!("outlink: {link} L a/@href\r\noutlink: http://b.test/ L a/@href\r\n");
    let length = links.len();
    format!(
        "WARC/1.1\r\nWARC-Type: revisit\r\nWARC-Record-ID: {id}\r\nWARC-Target-URI: {url}\r\n\
         WARC-Date: 2020-01-02T00:00:00Z\r\nWARC-Profile: {profile}\r\nContent-Length: 0\r\n\r\n\r\n\r\n\
         WARC/1.1\r\nWARC-Type: metadata\r\nWARC-Record-ID: <urn:uuid:1{number:07}-0000-0000-0000-000000000000>\r\n\
         WARC-Concurrent-To: {id}\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2020-01-02T00:00:00Z\r\n\
         Content-Type: application/warc-fields\r\nContent-Length: {length}\r\n\r\n{links}\r\n\r\n"
    )
}

#[test]
fn urls_that_no_table_takes_do_not_stop_an_import() {
    let archive = Archive::new();
    let long = format!("http://a.test/{}", "x".repeat(20_000));
    let records = [
        response(1, "http://a.test/1"),
        response(2, &long),
        response(3, &format!("http://{}.test/", "h".repeat(300))),
        revisit(4, "http://a.test/4", &long),
        response(5, "http://a.test/5"),
    ];
    let file = archive.file("long.warc", records.concat());
    archive.run("import", &[file]).refused(1, &["offset 291: its URL has more than 16384 bytes"]);
    archive.verify();
    let store = Store::read_only(&archive.path).unwrap();
    for url in ["http://a.test/1", "http://a.test/4", "http://a.test/5", "http://b.test/"] {
        assert!(store.state().find(url).unwrap().is_some(), "{url}");
    }
    assert_eq!(store.state().url_count(), 4);
}
