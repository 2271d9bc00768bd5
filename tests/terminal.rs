//! Output at terminals: untrusted text does not control the terminal, and tables fit it.

use std::path::PathBuf;

use archive_testweb::Config;

use crate::crawl::everything;
use crate::support::program::{Finished, start};
use crate::support::terminal::{At, at_terminal};
use crate::support::{Archive, TestWeb};

/// Text that controls terminals: a window title, a colour in 8-bit form, a change of text direction, a DEL.
const EVIL: &str = "a\u{1b}]0;owned\u{7}b\u{9b}31mc\u{202e}d\u{7f}e\u{2066}f";

/// Fails if `text` contains characters that control a terminal.
fn is_harmless(text: &str, what: &str) {
    let steers = |c: &char| {
        c.is_control() && !matches!(c, '\n' | '\r' | '\t')
            || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let found: Vec<char> = text.chars().filter(steers).collect();
    assert!(found.is_empty(), "{what} wrote {found:?}: {text:?}");
}

/// Returns a WARC file of a page with these HTTP fields and this body, and of a broken record.
fn warc(fields: &str, body: &str) -> String {
    let http = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n{body}");
    format!(
        "WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: http://evil.test/\r\nWARC-Date: 2026-01-01T00:00:00Z\r\n\
         WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000001>\r\nWARC-Payload-Digest: {EVIL}:{EVIL}\r\n\
         Content-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n{http}\r\n\r\n\
         WARC/1.1\r\nWARC-Type: {EVIL}\r\nContent-Length: {EVIL}\r\n\r\n",
        http.len()
    )
}

/// Returns an archive in which all text is untrusted, and the file that it came from.
fn imported() -> (Archive, PathBuf) {
    let archive = Archive::new();
    let body = format!("<html lang=en><title>{EVIL}</title><p>first {EVIL}</p></html>");
    let first = warc(&format!("Content-Type: text/html\r\nX-Evil: {EVIL}"), &body);
    let file = archive.file(&format!("first{EVIL}.warc"), first);
    start(archive.command("import").arg(&file)).wait();
    let second = warc("Content-Type: text/html", &body.replace("first", "second"))
        .replace("2026-01-01", "2026-02-01")
        .replace("000000000001>", "000000000002>");
    start(archive.command("import").arg(archive.file("second.warc", second))).wait();
    (archive, file)
}

#[test]
fn nothing_of_a_stranger_steers_a_terminal() {
    let (archive, file) = imported();
    let name = file.to_str().unwrap().to_owned();
    let ratings = archive.file("ratings.csv", format!("site,rating\n{EVIL},9\nevil.test,2\n"));
    let ratings = ratings.to_str().unwrap().to_owned();
    let announced = archive.file("urls.txt", format!("http://evil.test/{EVIL}\nno url {EVIL}\n"));
    let announced = announced.to_str().unwrap().to_owned();
    let url = "http://evil.test/".to_owned();
    let text = |text: &str| text.to_owned();
    let watched = format!("page title contains \"{}\"", &EVIL[..1]);
    let commands: Vec<(&str, Vec<String>)> = vec![
        ("import", vec![name.clone()]),
        ("query", vec![text("page select url, title, content_type")]),
        ("query", vec![text("page select url, title"), text("--json")]),
        ("query", vec![text("page select url, title"), text("--csv")]),
        ("query", vec![format!("page title = \"{EVIL}\" and no = 1")]),
        ("history", vec![url.clone()]),
        ("history", vec![url.clone(), text("--json")]),
        ("history", vec![format!("http://evil.test/{EVIL}")]),
        ("why", vec![url.clone()]),
        ("get", vec![url.clone()]),
        ("get", vec![url.clone(), text("--headers")]),
        ("get", vec![url.clone(), text("--at"), text(EVIL)]),
        ("diff", vec![url.clone()]),
        ("stats", vec![]),
        ("verify", vec![]),
        ("publish", vec![text("--file"), announced]),
        ("publish", vec![url.clone(), text("--forget-cluster"), text(EVIL)]),
        ("review check", vec![ratings]),
        ("review export", vec![text("--format"), text("csv")]),
        ("watch", vec![watched, text("--every"), text("1m")]),
        ("watch list", vec![]),
        ("export", vec![text("warc"), text("--output"), format!("/nowhere/{EVIL}/x.warc")]),
        ("export", vec![text("cdxj"), text("--output"), text("-")]),
        ("rebuild", vec![]),
        ("repair", vec![]),
    ];
    for (command, arguments) in commands {
        let what = format!("{command} {arguments:?}");
        let seen =
            at_terminal(archive.command(command).args(arguments).env("NO_COLOR", "1"), At::Output, 200);
        is_harmless(&seen.text(), &what);
        is_harmless(&seen.errors, &what);
    }
}

#[test]
fn data_is_unchanged_without_a_terminal() {
    let (archive, _) = imported();
    let title = archive.json("query", &["page select title"])[0]["title"].as_str().unwrap().to_owned();
    let table = archive.run("query", &["page select title", "--csv"]).succeeded().text();
    assert_eq!(table, format!("title\n{title}\n"));
    assert!(title.contains('\u{202e}'), "{title:?}");
    let page = archive.run("get", &["http://evil.test/"]).succeeded();
    assert!(page.text().contains(EVIL));
    // It is recognisable, and escaped.
    let seen = at_terminal(archive.command("get").arg("http://evil.test/"), At::Output, 80).succeeded();
    assert!(seen.text().contains("\\u{1b}]0;owned\\u{7}b\\u{9b}31mc\\u{202e}d"), "{}", seen.text());
}

#[test]
fn binary_content_is_not_written_to_a_terminal() {
    let archive = Archive::new();
    let picture = "\u{89}PNG\r\n\u{1a}\n\0\0\0\rIHDR";
    let file = archive.file("picture.warc", warc("Content-Type: image/png", picture));
    start(archive.command("import").arg(file)).wait();
    let seen = at_terminal(archive.command("get").arg("http://evil.test/"), At::Output, 80);
    assert_eq!((seen.code, seen.text().as_str()), (Some(1), ""));
    assert!(seen.errors.contains("binary") && seen.errors.contains("> FILE"), "{}", seen.errors);
    let page = archive.run("get", &["http://evil.test/"]).succeeded();
    assert_eq!(page.output, picture.as_bytes());
}

#[test]
fn tables_cut_urls_at_a_terminal_and_keep_them_whole_in_a_pipe() {
    let served = TestWeb::start(Config::plain(701, 2, 12));
    let archive = Archive::new();
    start(&mut archive.crawl(&served.web.seeds(1), &everything(&served))).wait().succeeded();
    let long = format!("http://www.example.org/{}/end.html", "folder/".repeat(20));
    start(archive.command("publish").arg(&long)).wait().succeeded();
    let query = ["page order by url asc limit 50 select url, last seen"];
    let piped = archive.run("query", &query).succeeded().text();
    assert!(piped.contains(&long), "{piped}");
    for columns in [60, 78, 100] {
        let seen = at_terminal(archive.command("query").args(query), At::Output, columns).succeeded().text();
        let lines: Vec<&str> = seen.lines().collect();
        for line in &lines {
            assert!(line.chars().count() <= usize::from(columns), "{columns}: {line}");
        }
        let cut = lines.iter().find(|line| line.contains("http://www.e")).unwrap_or_else(|| panic!("{seen}"));
        assert!(cut.contains('…') && cut.contains("end.html"), "{cut}");
        assert!(!lines.iter().any(|line| line.contains("folder/") && !line.contains("http:")), "{seen}");
        assert!(cut.contains("only linked to"), "{cut}");
        let usual = at_terminal(archive.command("query").arg("page"), At::Output, columns).succeeded().text();
        assert!(usual.lines().all(|line| line.chars().count() <= usize::from(columns)), "{usual}");
    }
}

#[test]
fn long_work_shows_progress() {
    let seen = |arguments: &[&str]| -> Finished {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_archive"));
        at_terminal(command.args(arguments), At::Errors, 80).succeeded()
    };
    // A list of arcs that is a pipe, to which nothing is written at first.
    let folder = tempfile::tempdir().unwrap();
    let arcs = folder.path().join("arcs.tsv.gz");
    assert!(std::process::Command::new("mkfifo").arg(&arcs).status().unwrap().success());
    let graph = folder.path().to_str().unwrap();
    let text = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_secs(4));
            let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            std::io::Write::write_all(&mut packed, b"0\t1\n1\t0\n").unwrap();
            std::fs::write(&arcs, packed.finish().unwrap()).unwrap();
        });
        seen(&["rank", "--graph", graph]).text()
    });
    assert!(text.contains("working for"), "{text:?}");
    // A command that ends at once shows no progress.
    assert_eq!(seen(&["completions", "bash"]).text(), "");
}
