//! Questions of librarians, engineers and researchers to an archive, written down before the query language existed:
//! each in their own words, as a query, and with the known answer, because the web is made for it.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::support::Archive;
use crate::support::program::start;

const JANUARY: &str = "2026-01-10T12:00:00Z";
const FEBRUARY: &str = "2026-02-20T12:00:00Z";

/// A page at one time: status line, additional header lines, body.
#[derive(Clone)]
pub(crate) struct Answer {
    status: &'static str,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

/// The pages at one time by host and path.
pub(crate) type Pages = HashMap<(&'static str, &'static str), Answer>;

/// A web whose pages are others at each of several times. The host `gone.test` only serves its robots.txt.
pub(crate) struct StagedWeb {
    pub(crate) address: SocketAddr,
    /// The number of the current time.
    pub(crate) stage: Arc<AtomicUsize>,
}

pub(crate) fn answer(status: &'static str, head: &str, body: impl Into<Vec<u8>>) -> Answer {
    Answer { status, head: head.to_owned(), body: body.into() }
}

pub(crate) fn html(server: &str, language: &str, title: &str, body: &str) -> Answer {
    let head = format!("Server: {server}\r\nContent-Type: text/html; charset=utf-8\r\n");
    let title = if title.is_empty() { String::new() } else { format!("<title>{title}</title>") };
    answer("200 OK", &head, format!("<html lang={language}>{title}{body}</html>"))
}

/// A web of three sites. No host has a sitemap at `/sitemap.xml`, where it is looked for; so each of two hosts has one more
/// missing page.
fn pages(is_february: bool) -> Pages {
    let pdf = |server: &str, bytes: usize| {
        let head = format!("Server: {server}\r\nContent-Type: application/pdf\r\nETag: \"{bytes}\"\r\n");
        answer("200 OK", &head, [b"%PDF-1.4\n".to_vec(), vec![b'x'; bytes - 9]].concat())
    };
    let hours = match is_february {
        false => "<h1>Opening hours</h1><p>The reading room is open on weekdays from nine to five.",
        true => "<h1>Opening hours</h1><p>The reading room stays closed until the roof has been mended.",
    };
    let title = if is_february { "Hours (changed)" } else { "Hours" };
    let hours = html("nginx", "en", title, hours);
    let mut start = html(
        "nginx",
        "en",
        "Library",
        "<p>Welcome to the library. <a href=/hours>Hours</a> <a href=/hours.html>Hours</a> \
         <a href=/catalogue.xml>Catalogue</a> <a href=/old>Old hours</a> <a href=/missing>Missing</a> \
         <a href=/news>News</a> <a href=/fr>français</a> <a href=/private/x>Private</a> \
         <a href='/list?sid=42'>List</a> <a href=http://media.lib.test/plan.pdf>Plan</a> \
         <a href=http://uni.test/>University</a> <img src=/logo.png>",
    );
    start.head.push_str("ETag: \"start\"\r\n");
    let mut french = html("nginx", "fr", "Horaires", "<p>La salle de lecture est ouverte tous les jours.");
    french.head = "Server: nginx\r\nContent-Type: text/html\r\n".to_owned();
    let university = html(
        "Apache",
        "en",
        "University of Test",
        "<p>Papers: <a href=/papers/1.pdf>one</a> <a href=/papers/2.pdf>two</a> <a rel=nofollow \
         href=http://www.lib.test/>Library</a> <a href=http://www.lib.test/hours>hours</a>",
    );
    let news = match is_february {
        false => html("nginx", "en", "News", "<p>A roof fell in, and nobody was hurt."),
        true => answer("404 Not Found", "Server: nginx\r\nContent-Type: text/plain\r\n", "gone"),
    };
    let robots = answer("200 OK", "Content-Type: text/plain\r\n", "User-agent: *\nDisallow: /private/\n");
    let catalogue = "<?xml version='1.0'?><books><book><author>Eco</author><title>The Name of the Rose</title></book>\
                     <book><author>Calvino</author><title>Invisible Cities</title></book></books>";
    HashMap::from([
        (("www.lib.test", "/robots.txt"), robots),
        (("www.lib.test", "/"), start),
        (("www.lib.test", "/hours"), hours.clone()),
        (("www.lib.test", "/hours.html"), hours),
        (
            ("www.lib.test", "/catalogue.xml"),
            answer("200 OK", "Content-Type: application/xml\r\n", catalogue),
        ),
        (("www.lib.test", "/old"), answer("301 Moved Permanently", "Location: /hours\r\n", "")),
        (("www.lib.test", "/news"), news),
        (("www.lib.test", "/fr"), french),
        // The crawl also asks for the page without the parameter, which might be a session, and there is none.
        (("www.lib.test", "/list?sid=42"), html("nginx", "en", "", "<p>A list without any name at all.")),
        (("www.lib.test", "/logo.png"), answer("200 OK", "Content-Type: image/png\r\n", "png")),
        (("media.lib.test", "/plan.pdf"), pdf("nginx", 2_000_000)),
        (("uni.test", "/"), university),
        (("uni.test", "/papers/1.pdf"), pdf("Apache", 1000)),
        (("uni.test", "/papers/2.pdf"), pdf("Apache", 3000)),
    ])
}

impl StagedWeb {
    pub(crate) fn start(times: Vec<Pages>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stage = Arc::new(AtomicUsize::new(0));
        let (times, now) = (Arc::new(times), Arc::clone(&stage));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (times, now) = (Arc::clone(&times), Arc::clone(&now));
                // Clients may disconnect at any time.
                thread::spawn(move || {
                    drop(serve(stream, &times[now.load(Ordering::Relaxed)]));
                });
            }
        });
        Self { address, stage }
    }
}

fn serve(mut stream: TcpStream, pages: &Pages) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let (mut host, mut known) = (String::new(), String::new());
    while let Some(line) = lines.next().transpose()?.filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(": ").unwrap_or_default();
        match name.to_lowercase().as_str() {
            "host" => host = value.to_owned(),
            "if-none-match" => known = format!("ETag: {value}\r\n"),
            _ => {}
        }
    }
    // This host has a robots.txt, and otherwise accepts connections and sends nothing.
    if host == "gone.test" && path != "/robots.txt" {
        return Ok(());
    }
    let missing = answer("404 Not Found", "Server: nginx\r\nContent-Type: text/plain\r\n", "missing");
    let found = pages.iter().find(|((of, at), _)| *of == host && *at == path);
    let found = found.map_or(&missing, |(_, answer)| answer);
    let (status, body) = match !known.is_empty() && found.head.contains(&known) {
        true => ("304 Not Modified", &b""[..]),
        false => (found.status, &found.body[..]),
    };
    let length =
        if status.starts_with("304") { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    write!(stream, "HTTP/1.1 {status}\r\n{}{length}Connection: close\r\n\r\n", found.head)?;
    stream.write_all(body)
}

/// Returns an archive of the web, crawled in January and refreshed in February.
fn library() -> Archive {
    let web = StagedWeb::start(vec![pages(false), pages(true)]);
    let archive = Archive::new();
    let connect = format!("::{}", web.address);
    // One seed never answers, and is not waited for.
    let options = ["--delay", "0", "--patience", "2s", "--connect-to", connect.as_str()];
    let seeds = ["http://www.lib.test/ scope=site", "http://uni.test/ scope=host", "http://gone.test/"]
        .map(str::to_owned);
    let mut crawl = archive.crawl(&seeds, &options);
    start(crawl.args(["--clock", JANUARY])).wait().refused(4, &["gone.test"]);
    web.stage.store(1, Ordering::Relaxed);
    let refresh = ["--budget", "1000", "--clock", FEBRUARY];
    start(archive.command("refresh").args(options).args(refresh)).wait().succeeded();
    archive
}

/// Who asks, the question, its query, and the values of the answer's rows. `None` if it cannot be asked.
type Question = (&'static str, &'static str, Option<&'static str>, Value);

const L: &str = "librarian";
const E: &str = "engineer";
const R: &str = "researcher";

fn of_a_librarian() -> Vec<Question> {
    let lib = |path: &str| format!("http://www.lib.test{path}");
    vec![
        (
            L,
            "Which sites have we collected?",
            Some("site captures > 0 order by site select site"),
            json!([["lib.test"], ["uni.test"]]),
        ),
        (
            L,
            "How many pages do we hold of each site?",
            Some("site pages > 2 order by site select site, pages"),
            json!([["lib.test", 10], ["uni.test", 3]]),
        ),
        (
            L,
            "How many PDFs do we hold, and from which hosts?",
            Some("count pages type = pdf group by host"),
            json!([["uni.test", 2], ["media.lib.test", 1]]),
        ),
        (
            L,
            "Which pages are gone that we have?",
            Some("page status in (404, 410) and versions > 0 select url"),
            json!([[lib("/news")]]),
        ),
        (
            L,
            "What has changed since February?",
            Some("page changed since 2026-02-01 order by url select url"),
            json!([[lib("/hours")], [lib("/hours.html")]]),
        ),
        (
            L,
            "How many pages did the archive have at the end of January?",
            Some("count pages captures > 0 as of 2026-01-31"),
            json!([[13]]),
        ),
        (L, "Which French pages do we have?", Some("page language = fr select title"), json!([["Horaires"]])),
        (
            L,
            "Which pages link to the university?",
            Some("page links to \"http://uni.test/\" select url"),
            json!([[lib("/")]]),
        ),
        (
            L,
            "Which links are broken, and on which pages?",
            Some("link target.status >= 400 order by target select source, target"),
            json!([[lib("/"), lib("/missing")], [lib("/"), lib("/news")]]),
        ),
        (
            L,
            "Which pages have the same content under several addresses?",
            Some("page duplicates order by url select url"),
            json!([[lib("/hours")], [lib("/hours.html")]]),
        ),
        (
            L,
            "What did we leave out because robots.txt forbids it?",
            Some("page refusal = robots select url"),
            json!([[lib("/private/x")]]),
        ),
        (
            L,
            "Which are our largest files?",
            Some("page size > 1MB order by size select url, size"),
            json!([["http://media.lib.test/plan.pdf", 2_000_000]]),
        ),
        (
            L,
            "Which pages have no title?",
            Some("page type = html and status = 200 and title is empty select url"),
            json!([[lib("/list?sid=42")]]),
        ),
        (
            L,
            "Which books by Eco are in the catalogue, by its XML?",
            Some("page //book[author contains Eco] select //book[author contains Eco]/title"),
            json!([["The Name of the Rose"]]),
        ),
    ]
}

fn of_an_engineer() -> Vec<Question> {
    let lib = |path: &str| format!("http://www.lib.test{path}");
    vec![
        (
            E,
            "How many fetches got no answer at all?",
            Some("count captures kind = failed and failure is not empty and time < 2026-02"),
            json!([[2]]),
        ),
        (
            E,
            "What statuses did we get, how often each?",
            Some("count captures time < 2026-02 and status is not empty group by status order by status asc"),
            json!([[200, 12], [301, 1], [404, 5]]),
        ),
        (
            E,
            "Which software answers?",
            Some("count pages status = 200 and server is not empty group by server order by server"),
            json!([["Apache", 3], ["nginx", 6]]),
        ),
        (
            E,
            "Which HTML pages come without a charset?",
            Some("page type = html and status = 200 and charset is empty select url"),
            json!([[lib("/fr")]]),
        ),
        (
            E,
            "How many bytes did we receive in January?",
            Some(
                "capture time < 2026-02 and host = \"uni.test\" and status = 200 and url ends with \".pdf\" select sum(size), max(size), avg(size)",
            ),
            json!([[4000, 3000, 2000]]),
        ),
        (
            E,
            "Where do redirects lead?",
            Some("page redirect is not empty select url, redirect"),
            json!([[lib("/old"), lib("/hours")]]),
        ),
        (E, "How often was the answer 304?", Some("count captures kind = not-modified"), json!([[4]])),
        (
            E,
            "Which pages send an ETag?",
            Some("page header(\"ETag\") is not empty and site = lib.test order by url select url"),
            json!([["http://media.lib.test/plan.pdf"], [lib("/")]]),
        ),
        (E, "Which hosts fail?", Some("host failures > 0 select host"), json!([["gone.test"]])),
        (
            E,
            "Which URLs have session ids?",
            Some("page url matches \"[?&]sid=\\d+\" select url"),
            json!([[lib("/list?sid=42")]]),
        ),
        (
            E,
            "What was fetched twice for nothing?",
            Some("page captures > 1 and versions = 1 and type = pdf order by url select url"),
            json!([
                ["http://media.lib.test/plan.pdf"],
                ["http://uni.test/papers/1.pdf"],
                ["http://uni.test/papers/2.pdf"]
            ]),
        ),
        (
            E,
            "Which answers took longer than a minute?",
            Some("capture response time > 1 minute select url"),
            json!([]),
        ),
        (E, "Draw two captures at random, to look at.", Some("count captures sample 2 seed 7"), json!([[2]])),
    ]
}

fn of_a_researcher() -> Vec<Question> {
    let lib = |path: &str| format!("http://www.lib.test{path}");
    vec![
        (
            R,
            "How many links lead from one site to another?",
            Some(
                "count links source.site != target.site group by source.site, target.site order by source.site",
            ),
            json!([["lib.test", "uni.test", 1], ["uni.test", "lib.test", 2]]),
        ),
        (
            R,
            "Which pages do most others point to?",
            Some(
                "link select target, count(distinct source) as pages group by target having pages > 1 order by pages desc, target",
            ),
            json!([[lib("/hours"), 3]]),
        ),
        (
            R,
            "How large is a PDF usually, by year?",
            Some(
                "capture content type = \"application/pdf\" and kind = response select year(time), median(size) group by year(time)",
            ),
            json!([[2026, 3000]]),
        ),
        (R, "How many links ask not to be followed?", Some("count links nofollow = yes"), json!([[1]])),
        (
            R,
            "In which languages are the pages?",
            Some("count pages language is not empty group by language order by count desc"),
            json!([["en", 6], ["fr", 1]]),
        ),
        (
            R,
            "Which XML documents are there?",
            Some("page type = xml select url"),
            json!([[lib("/catalogue.xml")]]),
        ),
        (
            R,
            "Which pages did we see for more than a month?",
            Some("page last seen - first seen > 1 month and type = xml select url"),
            json!([[lib("/catalogue.xml")]]),
        ),
        (
            R,
            "What was captured in January?",
            Some("count captures time between 2026-01-01 and 2026-01-31"),
            json!([[20]]),
        ),
        (
            R,
            "Which pages got a new version in February?",
            Some("version time since 2026-02-01 order by url select url"),
            json!([[lib("/hours")], [lib("/hours.html")]]),
        ),
        (
            R,
            "What was the page called in January?",
            Some("page url = \"http://www.lib.test/hours\" select title as of 2026-01-31"),
            json!([["Hours"]]),
        ),
        (
            R,
            "Which of the pages that the university links to are pages of the library?",
            Some("page linked from (page host = \"uni.test\") and site = lib.test order by url select url"),
            json!([[lib("/")], [lib("/hours")]]),
        ),
        (
            R,
            "Which titles are longer than twelve letters?",
            Some("page length(title) > 12 order by title select lower(title) as title"),
            json!([
                ["hours (changed)"],
                ["hours (changed)"],
                ["the name of the rose"],
                ["university of test"]
            ]),
        ),
        (R, "Which words stood on a page in January and are gone?", None, json!([])),
    ]
}

#[test]
fn forty_questions_can_be_asked() {
    let archive = library();
    the_reference_speaks_the_language(&archive);
    pages_are_selected_by_what_has_pages(&archive);
    let questions = [of_a_librarian(), of_an_engineer(), of_a_researcher()].concat();
    assert_eq!(questions.len(), 40);
    let mut wrong = Vec::new();
    for (who, question, query, expected) in &questions {
        let Some(query) = query else { continue };
        let finished = archive.run("query", &["--csv", query]);
        let answer = format!("{}{}", finished.text(), finished.errors);
        let rows: Vec<&str> = answer.lines().skip(1).collect();
        let value = |value: &Value| value.as_str().map_or(value.to_string(), str::to_owned);
        let row = |row: &Value| row.as_array().unwrap().iter().map(value).collect::<Vec<_>>().join(",");
        let expected: Vec<String> = expected.as_array().unwrap().iter().map(row).collect();
        if finished.code != Some(0) || rows != expected {
            wrong.push(format!("{who}: {question}\n  {query}\n{answer}expected\n{}", expected.join("\n")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(questions.iter().filter(|(_, _, query, _)| query.is_some()).count() >= 38);
}

/// A selection of pages accepts no aggregates, but accepts the pages of hosts and captures.
fn pages_are_selected_by_what_has_pages(archive: &Archive) {
    let output = archive.folder().join("selected.tsv");
    let export = |query: &str| {
        archive.run("export", &["links", "--where", query, "--output", output.to_str().unwrap()])
    };
    for query in ["count pages", "link nofollow = yes"] {
        let refused = export(query);
        assert_eq!(refused.code, Some(2), "{query}: {}", refused.errors);
        assert!(refused.errors.contains("pages are needed here"), "{}", refused.errors);
    }
    for query in ["host host = \"uni.test\"", "capture url = \"http://uni.test/\"", "site site = uni.test"] {
        export(query).succeeded();
        let links = std::fs::read_to_string(&output).unwrap();
        // The first line contains the column names.
        let sources: Vec<&str> = links.lines().skip(1).collect();
        assert_eq!(sources.len(), 4, "{links}");
        assert!(sources.iter().all(|line| line.starts_with("http://uni.test/\t")), "{links}");
    }
}

/// Every example of the reference is a query that gets an answer.
fn the_reference_speaks_the_language(archive: &Archive) {
    let reference = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/query.md")).unwrap();
    let blocks = reference.split("```query\n").skip(1).filter_map(|block| block.split("```").next());
    let examples: Vec<&str> = blocks.flat_map(str::lines).collect();
    assert!(examples.len() > 20);
    for example in examples {
        let finished = archive.run("query", &[example]);
        assert_eq!(finished.code, Some(0), "{example}\n{}", finished.errors);
    }
}
