//! The archive in a browser: the same results as from the commands, and nothing that a page or a request injects.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::crawl::lively;
use crate::imports::import;
use crate::support::program::start;
use crate::support::warc::{member, response};
use crate::support::{Archive, TestWeb};

/// Timeout of a request.
const PATIENCE: Duration = Duration::from_secs(60);

/// The program, serving an archive.
struct Serving {
    program: Child,
    _output: BufReader<ChildStdout>,
    /// Addresses of the application and of the replay, such as `127.0.0.1:8070`.
    application: String,
    replay: String,
}

impl Serving {
    fn start(archive: &Archive) -> Self {
        let mut command = archive.command("serve");
        command.args(["--listen", "127.0.0.1:0", "--replay-listen", "127.0.0.1:0"]);
        let mut program = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut output = BufReader::new(program.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let mut addresses =
            line.split("http://").skip(1).map(|rest| rest.split('/').next().unwrap().to_owned());
        let [application, replay] = [addresses.next().unwrap(), addresses.next().unwrap()];
        Self { program, _output: output, application, replay }
    }

    fn get(&self, path: &str) -> Answer {
        ask(&self.application, &format!("GET {path} HTTP/1.1\r\nHost: {}\r\n", self.application))
    }

    fn json(&self, path: &str) -> Value {
        let answer = ask(
            &self.application,
            &format!("GET {path} HTTP/1.1\r\nHost: {}\r\nAccept: application/json\r\n", self.application),
        );
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        serde_json::from_str(&answer.body).unwrap()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

fn ask(address: &str, head: &str) -> Answer {
    let mut connection = TcpStream::connect(address).unwrap();
    connection.set_read_timeout(Some(PATIENCE)).unwrap();
    connection.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes()).unwrap();
    let mut bytes = Vec::new();
    // The answer before the connection was cut counts.
    let _ = connection.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text.as_str(), ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
}

fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

fn crawled(limit: &str) -> (TestWeb, Archive) {
    let served = TestWeb::start(lively(93, 4, 200));
    let archive = Archive::new();
    let options = [served.at_once(), vec!["--limit".into(), limit.into()]].concat();
    start(&mut archive.crawl(&served.web.seeds(2), &options)).wait().succeeded();
    (served, archive)
}

#[test]
fn pages_say_what_the_commands_say() {
    let (_served, archive) = crawled("120");
    let serving = Serving::start(&archive);

    let (said, stats) = (serving.json("/"), archive.json::<&str>("stats", &[]).remove(0));
    for counted in ["captures", "urls", "links", "sites"] {
        assert_eq!(said[counted], stats[counted], "{counted}");
    }
    assert_eq!(said["important_sites"][0]["site"], stats["top_sites"][0]["site"]);

    let query =
        "page captures > 0 order by importance, url limit 30 select url, importance, status, last_seen";
    let rows = archive.json("query", &[query]);
    assert_eq!(serving.json(&format!("/query?q={}", encoded(query))), Value::from(rows.clone()));
    let csv = serving.get(&format!("/query?q={}&format=csv", encoded(query)));
    assert_eq!(csv.body.lines().count(), rows.len() + 1);
    assert_eq!(csv.body.lines().next(), Some("url,importance,status,last_seen"));

    let url = rows[0]["url"].as_str().unwrap();
    let (page, history) =
        (serving.json(&format!("/page?url={}", encoded(url))), archive.json("history", &[url]));
    assert_eq!(page["captured"], history.len());
    assert_eq!(page["captures"][0]["digest"], history[0]["digest"]);
    assert_eq!(page["why"]["importance"], archive.json("why", &[url])[0]["importance"]);
    let shown = serving.get(&format!("/page?url={}", encoded(url)));
    assert!(
        shown.body.contains("importance from links since their last fetch come first (<code>cash</code>)")
    );
    assert!(shown.body.contains(url) && shown.head.contains("text/html"), "{}", shown.head);

    let site = page["why"]["spent"]["site"].as_str().unwrap();
    let rows = archive.json("query", &[&format!("site site = \"{site}\" select pages, captures")]);
    let said = serving.json(&format!("/site?name={site}"));
    assert_eq!((&said["pages"], &said["captures"]), (&rows[0]["pages"], &rows[0]["captures"]));

    let title = page["title"].as_str().unwrap().to_owned();
    let word = title.split(|c: char| !c.is_alphabetic()).find(|word| word.len() > 4).unwrap();
    let urls = |results: &[Value]| results.iter().map(|hit| hit["url"].to_string()).collect::<Vec<_>>();
    let found = archive.json("search", &[word, "--limit", "10"]);
    let said = serving.json(&format!("/search?q={}", encoded(word)));
    assert!(!found.is_empty());
    assert_eq!(said["more"], archive.json("search", &[word, "--limit", "11"]).len() > 10, "{word}");
    assert_eq!(urls(said["results"].as_array().unwrap()), urls(&found));
    // Each count links to what it counts.
    let shown = serving.get(&format!("/search?q={}", encoded(word)));
    for facet in said["facets"].as_array().unwrap().iter().filter(|facet| facet[0] != "year") {
        let (name, value) = (facet[0].as_str().unwrap(), &facet[1][0]);
        let query = encoded(&format!("{word} {name}:{}", value[0].as_str().unwrap()));
        assert!(shown.body.contains(&format!("\"/search?q={query}&amp;from=0\"")), "{query}: {}", shown.body);
        let narrowed = serving.json(&format!("/search?q={query}"));
        let narrowed = narrowed["facets"].as_array().unwrap().iter().find(|other| other[0] == name).unwrap();
        assert_eq!(narrowed[1], serde_json::json!([value]), "{query}");
    }

    // Unmodified, at its own origin.
    let replayed = page["captures"][0]["replay"].as_str().unwrap();
    let path = replayed.strip_prefix(&format!("http://{}", serving.replay)).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n", serving.replay);
    let replayed = ask(&serving.replay, &head);
    assert_eq!(replayed.status, 200);
    assert!(
        replayed.head.contains("memento-datetime: ") && replayed.body.contains(word),
        "{}",
        replayed.head
    );
}

#[test]
fn what_is_wrong_or_missing_is_said() {
    let (_served, archive) = crawled("20");
    let serving = Serving::start(&archive);
    let mistake = serving.get("/query?q=page+tpye+%3D+xml");
    assert_eq!(mistake.status, 400);
    assert!(mistake.body.contains("did you mean") && mistake.body.contains("^^^^"), "{}", mistake.body);
    for (path, status) in [
        ("/nothing", 404),
        ("/site?name=none.test", 404),
        ("/site?name=%22%20or%20pages%20%3E%200%20or%20site%20%3D%20%22", 404),
        ("/page?url=http://none.test/", 404),
        ("/page?url=http%3A%2F%2F%5B", 400),
        ("/site?name=", 400),
        ("/search?q=%22", 400),
        ("/web/2026/http://none.test/", 404),
    ] {
        let answer = serving.get(path);
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
        let answer = serving.get(&format!("{path}{}format=json", if path.contains('?') { '&' } else { '?' }));
        assert!(answer.body.starts_with("{\"error\":"), "{path}: {}", answer.body);
    }
}

#[test]
fn nothing_of_the_web_gets_out_of_its_text() {
    const EVIL: &str = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>";
    let archive = Archive::new();
    let url = "http://evil.test/a?b=\"><script>alert(3)</script>";
    let body = format!("<title>{}</title><p>words {}", EVIL.replace('<', "&lt;"), EVIL.replace('<', "&lt;"));
    import(&archive, &[("evil.warc", response("urn:test:1", url, "2020-01-02T03:04:05Z", &body))]);
    let serving = Serving::start(&archive);
    let stored =
        archive.json("query", &["page captures > 0 select url"])[0]["url"].as_str().unwrap().to_owned();
    for path in [
        "/".to_owned(),
        "/search?q=words".to_owned(),
        format!("/search?q=words+{}", encoded("<script>")),
        format!("/page?url={}", encoded(&stored)),
        format!("/page?url={}", encoded(&format!("http://none.test/{EVIL}"))),
        format!("/query?q={}", encoded("page captures > 0")),
        format!("/query?q={}", encoded(&format!("page title = {EVIL}"))),
        format!("/site?name={}", encoded(EVIL)),
        "/site?name=evil.test".to_owned(),
    ] {
        let answer = serving.get(&path);
        assert!(
            answer.status > 0 && answer.head.contains("content-security-policy: default-src 'none'"),
            "{path}"
        );
        let body = answer.body.replace("<script src=\"/query.js\" defer></script>", "");
        for out in ["<script", "<img", "onerror=alert(2)>"] {
            assert!(!body.contains(out), "{path}: {body}");
        }
    }
    let redirect = serving.get(&format!("/search?q={}", encoded("http://x.test/\r\nSet-Cookie: a=b")));
    assert_eq!(redirect.status, 302);
    assert!(!redirect.head.contains("\nset-cookie"), "{}", redirect.head);
}

#[test]
fn other_origins_and_other_machines_have_no_way_in() {
    let (_served, archive) = crawled("20");
    let serving = Serving::start(&archive);
    for host in ["evil.test", "evil.test:8070", "127.0.0.1.evil.test", ""] {
        let answer = ask(&serving.application, &format!("GET / HTTP/1.1\r\nHost: {host}\r\n"));
        assert!(matches!(answer.status, 400 | 421), "{host}: {}", answer.status);
    }
    let own = format!("Host: {}\r\n", serving.application);
    assert_eq!(
        ask(&serving.application, &format!("POST / HTTP/1.1\r\n{own}Content-Length: 0\r\n")).status,
        405
    );
    let start = serving.get("/");
    for field in ["x-content-type-options: nosniff", "x-frame-options: deny", "referrer-policy: no-referrer"]
    {
        assert!(start.head.contains(field), "{}", start.head);
    }
    // The origin of archived pages serves none of the application's pages.
    for path in ["/", "/query", "/search?q=a", "/style.css"] {
        let head = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n", serving.replay);
        let answer = ask(&serving.replay, &head);
        assert!(!answer.body.contains("Most important sites"), "{path}");
        assert!(answer.status == 404 || path == "/", "{path}: {}", answer.status);
    }
    let serve = |options: &[&str]| archive.run("serve", options);
    serve(&["--listen", "0.0.0.0:0"]).refused(1, &["0.0.0.0:0 can be reached from other machines"]);
    serve(&["--listen", &serving.application]).refused(1, &["cannot listen at", "in use"]);
}

#[test]
fn what_access_rules_hide_is_gone_within_a_second() {
    let (_served, archive) = crawled("60");
    let serving = Serving::start(&archive);
    let page = archive
        .json("query", &["page type = html and status = 200 order by importance limit 1 select url, title"]);
    let url = page[0]["url"].as_str().unwrap();
    let path = format!("/page?url={}", encoded(url));
    assert_eq!(serving.get(&path).status, 200);
    fs::write(archive.path.join("access.toml"), "[[rule]]\nprefix = \"\"\n").unwrap();
    thread::sleep(Duration::from_secs(1));
    assert_eq!(serving.get(&path).status, 404);
    let head = format!("GET /web/2026/{url} HTTP/1.1\r\nHost: {}\r\n", serving.replay);
    assert_eq!(ask(&serving.replay, &head).status, 404);
    assert_eq!(
        serving.json(&format!("/query?q={}", encoded("page captures > 0"))),
        Value::from(Vec::<Value>::new())
    );
    fs::write(archive.path.join("access.toml"), "[[rule]\n").unwrap();
    thread::sleep(Duration::from_secs(1));
    assert_eq!(serving.get(&path).status, 503, "rules that cannot be read hide all");
}

#[test]
fn a_crawl_continues_beside_it_and_its_finds_are_shown() {
    let (served, archive) = crawled("20");
    let serving = Serving::start(&archive);
    let before = serving.json("/")["captures"].as_u64().unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            // Without a pause; a checkpoint must succeed nevertheless.
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    assert_eq!(serving.get("/").status, 200);
                }
            });
        }
        let options = [served.at_once(), vec!["--limit".into(), "150".into()]].concat();
        let crawl = start(&mut archive.crawl(&served.web.seeds(2), &options)).wait();
        is_over.store(true, Ordering::Relaxed);
        crawl.succeeded();
    });
    thread::sleep(Duration::from_millis(500));
    let after = serving.json("/")["captures"].as_u64().unwrap();
    assert!(after > before + 50, "{before} before, {after} after");
    assert_eq!(after, archive.json::<&str>("stats", &[])[0]["captures"].as_u64().unwrap());
}

#[test]
fn requests_have_limits_and_a_stop_lets_them_end() {
    let (_served, archive) = crawled("20");
    let mut serving = Serving::start(&archive);
    let long = serving.get(&format!("/search?q={}", "a".repeat(17 << 10)));
    assert_eq!(long.status, 414);
    assert!(matches!(serving.get(&format!("/{}", "a".repeat(64 << 10))).status, 0 | 400 | 414 | 431));
    let many: String = (0..200).map(|number| format!("X-{number}: a\r\n")).collect();
    let answer =
        ask(&serving.application, &format!("GET / HTTP/1.1\r\nHost: {}\r\n{many}", serving.application));
    assert!(matches!(answer.status, 0 | 400 | 431), "{}", answer.status);
    // Clients that send nothing more do not delay anybody.
    let _slow: Vec<TcpStream> = (0..50)
        .map(|_| {
            let mut client = TcpStream::connect(&serving.application).unwrap();
            client.write_all(b"GET / HT").unwrap();
            client
        })
        .collect();
    assert_eq!(serving.get("/health").body, "ok\n");
    let status = Command::new("kill").args(["-TERM", &serving.program.id().to_string()]).status().unwrap();
    assert!(status.success());
    assert!(serving.program.wait().unwrap().success());
}

#[test]
fn months_and_years_are_those_of_the_captures() {
    let archive = Archive::new();
    // More captures than a sample has, most of them in one month.
    let dates = (1..=28).flat_map(|day| (0..9).map(move |hour| format!("2026-02-{day:02}T1{hour}:00:00Z")));
    let dates = dates.chain(["2024-05-03T10:00:00Z", "2026-04-03T10:00:00Z"].map(str::to_owned));
    let records = (0..).zip(dates).map(|(number, date)| {
        response(&format!("urn:test:{number}"), "http://a.test/", &date, &format!("<p>words {number}"))
    });
    let file = archive.file("a.warc", records.collect::<Vec<_>>().concat());
    archive.run("import", &[file.to_str().unwrap(), "--index-versions"]).succeeded();
    let serving = Serving::start(&archive);
    let times = serving.json("/search?q=words")["times"].clone();
    let step = |month: &str, captures: u64| serde_json::json!({ "as_of": month, "captures": captures });
    assert_eq!(times, Value::from(vec![step("2024-05", 1), step("2026-02", 252), step("2026-04", 1)]));
    let page = serving.get("/query?q=count+captures+group+by+year(time)+order+by+year(time)").body;
    assert!(page.contains(">2026<") && !page.contains("2,026"), "{page}");
}

#[test]
fn an_erased_page_offers_nothing_of_it() {
    let archive = Archive::new();
    let record = |number: u32, url: &str| {
        response(
            &format!("urn:test:{number}"),
            url,
            &format!("2026-0{number}-03T10:00:00Z"),
            &format!("<p>{number}"),
        )
    };
    let records = [record(1, "http://a.test/"), record(2, "http://a.test/"), record(3, "http://b.test/")];
    import(&archive, &[("a.warc", records.concat())]);
    let erase = ["url = \"http://a.test/\"", "--reason", "asked", "--yes", "--by", "anna"];
    archive.run("erase", &erase).succeeded();
    let serving = Serving::start(&archive);
    let page = serving.get("/page?url=http%3A%2F%2Fa.test%2F").body;
    assert!(page.contains("erased"), "{page}");
    for offer in ["See it as it was", "/web/20", "/timemap/", "Captures by month"] {
        assert!(!page.contains(offer), "{offer}: {page}");
    }
    let data = serving.json("/page?url=http%3A%2F%2Fa.test%2F");
    assert!(data["captures"].as_array().unwrap().iter().all(|row| row["replay"].is_null()), "{data}");
    assert!(serving.get("/page?url=http%3A%2F%2Fb.test%2F").body.contains("See it as it was"));
    // Who erased it stands in the list, and with the reason.
    assert_eq!(archive.json("erase", &["--list"])[0]["by"], "anna");
    let history = archive.run("history", &["http://a.test/"]).succeeded().text();
    let why = archive.run("why", &["http://a.test/"]).succeeded().text();
    assert!(archive.run("erase", &["--list"]).succeeded().text().contains("anna"));
    assert!(format!("{history}{why}").contains("by anna: asked"), "{history}{why}");
}

#[test]
fn formulas_are_texts_in_a_spreadsheet() {
    let archive = Archive::new();
    let titles = ["=1+1", "+1", "-1", "@SUM(1)", "\u{ff1d}1", "x=1"];
    let page = |(number, title): (usize, &&str)| {
        let url = format!("http://a.test/{number}");
        member(&response(&url, &url, "2020-01-01T00:00:00Z", &format!("<title>{title}</title>x")))
    };
    let file = archive.file("titles.warc.gz", titles.iter().enumerate().flat_map(page).collect::<Vec<u8>>());
    start(archive.command("import").arg(file)).wait().succeeded();
    let query = "page title != \"\" order by url select title, captures";
    let expected: String = titles
        .map(|title| match title {
            "x=1" => format!("{title},1\n"),
            title => format!("'{title},1\n"),
        })
        .concat();
    let printed = archive.run("query", &[query, "--csv"]).succeeded().text();
    assert_eq!(printed, format!("title,captures\n{expected}"));
    let serving = Serving::start(&archive);
    let served = serving.get(&format!("/query?q={}&format=csv", encoded(query)));
    assert_eq!(served.body.replace("\r\n", "\n"), printed);
}
