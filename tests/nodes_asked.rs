//! Answers of `archive serve` to programs at /ask, and who may ask.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use crate::imports::import;
use crate::nodes::{query, url};
use crate::support::Archive;
use crate::support::served::{Answer, Served, ask};
use crate::support::warc::response;

pub(crate) fn post(served: &Served, fields: &[&str], body: &str) -> Answer {
    let length = format!("Content-Length: {}", body.len());
    ask(&served.application, "POST", "/ask", &[&[length.as_str()], fields, &["", body]].concat())
}

#[test]
fn nodes_are_asked_by_programs_that_say_who_they_are() {
    let archive = Archive::new();
    let day = "2026-01-02T03:04:05Z";
    let pages = ["http://open.test/", "http://closed.test/"];
    let records: Vec<Vec<u8>> = pages.iter().map(|url| response(url, url, day, "<p>words")).collect();
    import(&archive, &[("sites.warc", records.concat())]);
    fs::write(
        archive.path.join("access.toml"),
        "[[rule]]\nprefix = \"test,closed\"\nshown_to = \"reviewer\"\n",
    )
    .unwrap();
    let people = archive.folder().join("people");
    for (name, role) in [("rita", "reader"), ("anna", "reviewer")] {
        let typed = archive.file("typed", format!("the password of {name}\n"));
        let mut program = Command::new(env!("CARGO_BIN_EXE_archive"));
        program.args(["account", "set", name, "--role", role, "--file"]).arg(&people);
        assert!(
            program.stdin(Stdio::from(fs::File::open(typed).unwrap())).output().unwrap().status.success()
        );
    }
    let served = Served::with(&archive, &["--password-file", people.to_str().unwrap()]);
    let there = url(&served);
    let nobody = query(&[&there, &there], &["count pages"]);
    nobody.refused(1, &["none of these archives can be read", "--credentials"]);
    let credentials = |name: &str, url: &str| {
        let file = archive.file("credentials", format!("# nodes\n{url} {name} the password of {name}\n"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        file.to_str().unwrap().to_owned()
    };
    for (name, count) in [("rita", 1), ("anna", 2)] {
        let file = credentials(name, &there);
        let found = query(&[&there], &["--json", "--credentials", &file, "count pages"]).succeeded().json();
        assert_eq!(found[0]["count"], count, "{name}");
    }
    let elsewhere = credentials("anna", "http://127.0.0.1:1/");
    query(&[&there], &["--credentials", &elsewhere, "count pages"]).refused(1, &["none of these archives"]);
    fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o640)).unwrap();
    query(&[&there], &["--credentials", &elsewhere, "count pages"]).refused(2, &["mode is 640", "chmod 600"]);

    let open = Served::of(&archive);
    let json = "Content-Type: application/json";
    let sites = "{\"version\":2,\"ask\":{\"sites\":{}}}";
    let answer = post(&open, &[json], sites);
    assert_eq!(answer.status, 200);
    assert!(String::from_utf8_lossy(&answer.body).contains("{\"end\":null}"));
    assert_eq!(post(&served, &[json], sites).status, 401, "an account is needed");
    assert_eq!(
        post(&open, &["Content-Type: text/plain"], sites).status,
        415,
        "a form of a web page is not a request"
    );
    assert_eq!(post(&open, &[json, "Sec-Fetch-Site: cross-site"], sites).status, 403);
    assert_eq!(ask(&open.application, "GET", "/ask", &[]).status, 404);
    let too_many =
        format!("{{\"version\":2,\"ask\":{{\"known\":{{\"urls\":[{}\"\"]}}}}}}", "\"\",".repeat(50_000));
    let too_many_sources = too_many.replacen("known", "targets", 1);
    for (body, what) in [
        (&*too_many_sources, "more than 50000 URLs"),
        (
            "{\"version\":2,\"ask\":{\"portions\":{\"input\":{\"of\":{\"query\":\"page links to (page)\",\"now\":0},\"words\":null},\"limit\":null,\"place\":0}}}",
            "relations",
        ),
        (
            "{\"version\":2,\"ask\":{\"words\":{\"of\":{\"query\":\"page\",\"now\":0,\"inner\":[0]}}}}",
            "no such inner query",
        ),
        ("{\"version\":3,\"ask\":{\"new\":{}}}", "version 3"),
        ("{\"version\":2,\"ask\":{\"new\":{}}}", "not a request"),
        (
            "{\"version\":2,\"ask\":{\"portions\":{\"input\":{\"of\":{\"query\":\"page stat = 2\",\"now\":0},\"words\":null},\"limit\":null,\"place\":0}}}",
            "in the query",
        ),
        (
            "{\"version\":2,\"ask\":{\"portions\":{\"input\":{\"of\":{\"query\":\"page\",\"now\":9223372036854775807},\"words\":null},\"limit\":null,\"place\":0}}}",
            "not a valid time",
        ),
        (&*too_many, "more than 50000 URLs"),
        ("{\"version\":2,\"ask\":{\"find_best\":{}}}", "missing field"),
    ] {
        let answer = post(&open, &[json], body);
        assert_eq!(answer.status, 400, "{}", String::from_utf8_lossy(&answer.body));
        assert!(
            String::from_utf8_lossy(&answer.body).contains(what),
            "{}",
            String::from_utf8_lossy(&answer.body)
        );
    }
    assert_eq!(post(&open, &[json], &too_many.replacen("\"\",", "", 1)).status, 200, "as many as the limit");
    let length = format!("Content-Length: {}", (16 << 20) + 1);
    let mut stream = TcpStream::connect(&open.application).unwrap();
    let head = format!("POST /ask HTTP/1.1\r\nHost: {}\r\n{json}\r\n{length}\r\n\r\n", open.application);
    stream.write_all(head.as_bytes()).unwrap();
    // The server may close the connection before it has read all of it.
    let _ = stream.write_all(&vec![b' '; (16 << 20) + 1]);
    let mut status = [0; 12];
    stream.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 413");
}
