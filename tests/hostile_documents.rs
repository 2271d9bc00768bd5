//! Documents designed to hurt their readers: the crawl stores each of them within limits on memory and processor time
//! set by the operating system, and ends when it should.

use std::process::Command;
use std::time::Duration;

use crate::support::pages::{PageServer, Pages};
use crate::support::program::start;
use crate::support::{Archive, captures, files_with};

/// Limit for the memory that the program may allocate, in bytes.
const DATA_BYTES: u64 = 1 << 30;

/// Limit for the total processor time in seconds, on a slow machine and without optimization.
const PROCESSOR_SECONDS: u32 = 100;

/// Returns an entity of a megabyte, used in thousands of attributes. `mark` precedes its name.
fn bomb(declarations: &str, mark: &str) -> String {
    let inner = "x".repeat(4000);
    let outer = "&e0;".repeat(250);
    let elements = "<b c='&e1;'/>".repeat(6000);
    format!(
        "<!DOCTYPE a [{declarations}<!ENTITY {mark}e0 '{inner}'><!ENTITY {mark}e1 '{outer}'>]><a>{elements}</a>"
    )
}

/// Returns the answer of a repository, with a record's metadata.
fn records(doctype: &str, metadata: &str) -> String {
    format!(
        "{doctype}<OAI-PMH><List><record><header/><metadata>{metadata}</metadata></record></List></OAI-PMH>"
    )
}

fn attributes(count: usize, name: &str) -> String {
    (0..count).map(|n| format!(" {name}{n}='{n}'")).collect()
}

/// Returns attacks that once bypassed the limits, each in its own way.
fn attacks() -> [(&'static str, String); 9] {
    let quote = "<!DOCTYPE a [<!ELEMENT a '>]>";
    let nest = |depth: usize, inside: &str| {
        format!("{}{inside}{}", "<source>x".repeat(depth), "</source>".repeat(depth))
    };
    let base = format!(" xmlns:p='{}'", "n".repeat(1_000_000));
    [
        // Parameter entities that a parser mistakes for general ones.
        ("percent", bomb("", "% ")),
        // A quote that confuses a reader of declarations.
        ("quote", bomb("<!ELEMENT a '>", "")),
        ("nested", records(&format!("<!DOCTYPE a [<!ENTITY e '{}'>]>", nest(100_000, "")), "&e;")),
        ("deep", records("", &nest(990, &"<i/>".repeat(1_500_000)))),
        (
            "namespaces",
            format!("{quote}<a{}>{}</a>", attributes(20_000, "xmlns:n"), "<b xmlns:z='1'/>".repeat(150_000)),
        ),
        ("attributes", format!("{quote}<a{}/>", attributes(300_000, "b"))),
        // A name that occurs once but counts for every element.
        ("names", format!("<a{base}>{}</a>", "<p:b/>".repeat(500_000))),
        // A base that occurs once but counts for every link.
        (
            "bases",
            format!(
                "<feed>{}{}{}</feed>",
                "<entry xml:base='/bbbbbbbb/'><content>".repeat(100),
                "<a href='x'/>".repeat(500_000),
                "</content></entry>".repeat(100)
            ),
        ),
        ("equals", format!("<a>{}</a>", "=".repeat(15_000_000))),
    ]
}

/// Returns a command under limits enforced by the operating system.
fn limited(command: &Command) -> Command {
    let mut limited = Command::new("prlimit");
    limited.arg(format!("--cpu={PROCESSOR_SECONDS}")).arg(format!("--data={DATA_BYTES}"));
    limited.arg(command.get_program()).args(command.get_args()).env_remove("ARCHIVE_DIR");
    limited
}

fn served(documents: impl IntoIterator<Item = (&'static str, String)>, media_type: &'static str) -> Pages {
    let page = |(name, text): (&str, String)| (format!("/{name}"), (media_type, text.into_bytes()));
    documents.into_iter().map(page).collect()
}

/// Returns seeds whose links are not followed.
fn seeds<'a>(paths: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    paths.into_iter().map(|path| format!("http://h.test/{path} scope=host depth=0")).collect()
}

#[test]
fn xml_that_is_made_to_hurt_is_stored_and_costs_little() {
    let names: Vec<&str> = attacks().iter().map(|(name, _)| *name).collect();
    let server = PageServer::start(served(attacks(), "application/xml"));
    let archive = Archive::new();
    let crawl = archive.crawl(&seeds(names.iter().copied()), &server.options());
    let ended = start(&mut limited(&crawl)).wait().succeeded();
    assert!(ended.errors.contains("nothing left to fetch"), "{}", ended.errors);
    for name in names {
        let why = archive.json("why", &[format!("http://h.test/{name}")]).remove(0);
        let problems = why["last_fetch"]["problems"].to_string();
        println!("{name}: {problems}");
        assert_eq!(why["last_fetch"]["status"], 200, "{name}: {why}");
        assert!(problems.contains("XML") || name == "bases", "{name}: {problems}");
    }
    archive.verify();
}

/// HTML has no entities and no tree; text of one attribute that applies to all links is limited, too.
#[test]
fn html_that_is_made_to_hurt_is_stored_and_costs_little() {
    /// Empty members of a compressed file.
    const EMPTY: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0";
    let base = format!("<base href='/{}/'>", "b".repeat(8_000_000));
    let links: String = (0..400_000).map(|n| format!("<a href={n}>")).collect();
    let frames = (0..12).fold("<a href=x>".to_owned(), |inside, _| {
        format!("<iframe srcdoc=\"{}\">", inside.replace('&', "&amp;").replace('"', "&quot;"))
    });
    let documents = [
        ("base", format!("{base}{links}")),
        ("frames", frames.repeat(20)),
        ("comments", "<!--[if IE]>".repeat(1_000_000)),
        ("data", format!("<script type='application/ld+json'>{}", "[".repeat(15_000_000))),
        ("scripts", format!("<script>{}</script>", "location='".repeat(1_000_000))),
        ("objects", "<object codebase=/a/ archive='a b c d e f g h'>".repeat(200_000)),
        (
            "codebase",
            format!("<object codebase='/{}/' archive='{}'>", "b".repeat(4_000_000), "a ".repeat(2_000_000)),
        ),
        (
            "hosts",
            "<a href='//xn--".to_owned() + &format!("{}/'><a href='//xn--", "z9".repeat(900)).repeat(8000),
        ),
    ];
    let mut names: Vec<&str> = documents.iter().map(|(name, _)| *name).collect();
    let mut pages = served(documents, "text/html");
    pages.insert("/members.gz".to_owned(), ("application/gzip", EMPTY.repeat(700_000)));
    names.push("members.gz");
    let server = PageServer::start(pages);
    let archive = Archive::new();
    let crawl = archive.crawl(&seeds(names.iter().copied()), &server.options());
    start(&mut limited(&crawl)).wait().succeeded();
    let captured = captures(&archive.path).urls();
    assert!(names.iter().all(|name| captured.contains(&format!("http://h.test/{name}"))), "{captured:?}");
    archive.verify();
}

/// Returns the most expensive document that is still read, with two errors at its end, so that it is read three times.
fn dear() -> String {
    let scope = attributes(250, "xmlns:n");
    format!("<a{scope}>{}&x;", "<n249:b n248:c='d'/>".repeat(390_000))
}

/// The end of a run waits for no document: `timeout` kills the program if it takes three times as long, and reports it.
#[test]
fn a_run_ends_in_its_time_and_when_asked_whatever_it_reads() {
    let names: Vec<String> = (0..40).map(|number| format!("dear{number}")).collect();
    let names: Vec<&'static str> = names.into_iter().map(|name| &*name.leak()).collect();
    let body = dear();
    let server = PageServer::start(served(names.iter().map(|name| (*name, body.clone())), "application/xml"));
    for (option, signal) in [("--for", None), ("--workers", Some("-TERM"))] {
        let archive = Archive::new();
        let crawl = archive.crawl(&seeds(names.iter().copied()), &server.options());
        let mut bounded = Command::new("timeout");
        bounded.args(["45", "env", "-u", "ARCHIVE_DIR"]).arg(crawl.get_program()).args(crawl.get_args());
        bounded.args([option, if signal.is_some() { "8" } else { "5s" }]);
        let mut running = start(&mut bounded);
        if let Some(signal) = signal {
            let before = server.asked().len();
            assert!(running.wait_until(|| server.asked().len() > before + 2));
            running.signal(signal);
        }
        let ended = running.wait();
        assert!(matches!(ended.code, Some(0 | 4)), "{option}: {ended:?}");
        archive.verify();
    }
}

/// A document that was read for long when the program died is stored unread by the next run, and not parsed again.
#[test]
fn a_document_that_ended_the_program_is_stored_unread() {
    let server = PageServer::start(served([("dear", dear())], "application/xml"));
    let archive = Archive::new();
    let crawl = || archive.crawl(&seeds(["dear"]), &server.options());
    let notes = archive.path.join("state/reading");
    let mut running = start(&mut crawl());
    // An entry has 24 bytes: the 17th tells whether a document is being read, the 18th whether for long.
    let is_noted =
        |at| std::fs::read(&notes).is_ok_and(|notes| notes.iter().skip(at).step_by(24).any(|mark| *mark > 0));
    assert!(running.wait_until(|| is_noted(16)), "the document is read faster than anybody can look");
    // Stopping the program makes reading take long on any machine.
    running.signal("-STOP");
    std::thread::sleep(Duration::from_millis(1500));
    running.signal("-CONT");
    assert!(running.wait_until(|| is_noted(17)), "the document is read faster than anybody can look");
    running.kill();
    assert!(captures(&archive.path).urls().iter().all(|url| !url.ends_with("/dear")));

    start(&mut crawl()).wait().succeeded();
    let why = archive.json("why", &["http://h.test/dear"]).remove(0);
    let problems = why["last_fetch"]["problems"].to_string();
    assert!(problems.contains("not read: the program ended while it was being read"), "{why}");
    let asked = server.asked().len();
    start(&mut crawl()).wait().succeeded();
    assert!(!server.asked()[asked..].contains(&"/dear".to_owned()));
    archive.verify();

    // An import reads the same document, which is recognised by its content.
    let other = Archive::new();
    std::fs::create_dir_all(other.path.join("state")).unwrap();
    std::fs::copy(&notes, other.path.join("state/reading")).unwrap();
    other.run("import", &files_with(&archive.segments(), &[".warc.zst"])).succeeded();
    let why = other.json("why", &["http://h.test/dear"]).remove(0);
    assert!(why["last_fetch"]["problems"].to_string().contains("not read"), "{why}");
}

/// The usual place of a sitemap is tried if robots.txt names none.
#[test]
fn the_usual_sitemap_is_found() {
    let map = "<urlset><url><loc>http://h.test/page</loc></url></urlset>".to_owned();
    let pages = |robots: Option<&str>| {
        let mut pages = served([("sitemap.xml", map.clone())], "application/xml");
        pages.extend(served([("", "x".to_owned()), ("page", "x".to_owned())], "text/html"));
        pages.extend(robots.map(|robots| ("/robots.txt".to_owned(), ("text/plain", robots.into()))));
        pages
    };
    for (robots, is_found) in
        [(None, true), (Some("User-agent: *\n"), true), (Some("Sitemap: http://h.test/other.xml"), false)]
    {
        let server = PageServer::start(pages(robots));
        let archive = Archive::new();
        let seeds = ["http://h.test/ scope=host".to_owned()];
        start(&mut archive.crawl(&seeds, &server.options())).wait().succeeded();
        assert_eq!(server.asked().contains(&"/page".to_owned()), is_found, "{robots:?}");
    }
}
