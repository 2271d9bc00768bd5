//! Log-ins by a form: a press with subscribers, whose sessions end, crawled whole, of whose log-ins nothing is left.

use std::collections::HashMap;
use std::fs;
use std::sync::{Arc, Mutex};

use url::form_urlencoded::parse;

use crate::logins::add;
use crate::sessions::exported;
use crate::support::Archive;
use crate::support::answers::{Answers, field, html, nothing, plain, redirect, whole};
use crate::support::program::{Finished, start};
use crate::walls::files_below;

const HOST: &str = "http://press.test";
const FORM: &str = "http://press.test/login?of=readers";

/// All of a log-in that nobody may find.
const SECRETS: [&str; 4] = ["f0rm-s3cret", "t0ken-", "s3ssion-", "anna"];

/// A press that knows its subscribers.
struct Press {
    /// Pages that a session opens.
    pages: u32,
    /// Sessions that are given; further ones open nothing.
    sessions: u32,
    password: &'static str,
    tokens: u32,
    given: u32,
    /// Pages left of each session.
    open: HashMap<String, u32>,
}

impl Press {
    fn start(pages: u32, sessions: u32) -> (Answers, Arc<Mutex<Self>>) {
        let (tokens, given, open) = (0, 0, HashMap::new());
        let press = Self { pages, sessions, password: "f0rm-s3cret", tokens, given, open };
        let press = Arc::new(Mutex::new(press));
        let own = Arc::clone(&press);
        (Answers::with_heads(move |host, path, head| own.lock().unwrap().answer(host, path, head)), press)
    }

    fn answer(&mut self, host: &str, path: &str, head: &str) -> Vec<u8> {
        let cookies: HashMap<&str, &str> =
            field(head, "Cookie").split("; ").filter_map(|pair| pair.split_once('=')).collect();
        match path {
            "/robots.txt" => plain("User-agent: *\nDisallow: /login"),
            _ if host != "press.test" => html("<title>open</title>"),
            // Who is logged in is shown no form.
            "/login?of=readers" if cookies.get("sid").is_some_and(|sid| self.open.contains_key(*sid)) => {
                redirect("/")
            }
            "/login?of=readers" => {
                self.tokens += 1;
                let set =
                    format!("Content-Type: text/html\r\nSet-Cookie: pre=t0ken-{}; Path=/\r\n", self.tokens);
                whole(200, &set, self.form().as_bytes())
            }
            "/session" => self.log_in(&cookies, head),
            "/loop" => redirect("/loop"),
            _ if path.starts_with("/welcome") && cookies.contains_key("sid") => {
                html("Welcome. <a href=/logout>Log out</a>")
            }
            _ => match cookies.get("sid").and_then(|sid| self.open.get_mut(*sid)).filter(|left| **left > 0) {
                None if path.len().is_multiple_of(2) => redirect(&format!("/login?next={path}&of=readers")),
                None => html(&self.form()),
                Some(left) => {
                    *left -= 1;
                    page(path)
                }
            },
        }
    }

    fn form(&self) -> String {
        format!(
            "<form action='/session' method=post><input type=hidden name=csrf value=t0ken-{}>\
             <input name=user><input type=password name=pass></form>",
            self.tokens
        )
    }

    fn log_in(&mut self, cookies: &HashMap<&str, &str>, head: &str) -> Vec<u8> {
        let sent: HashMap<_, _> =
            parse(head.rsplit("\r\n").next().unwrap_or_default().as_bytes()).into_owned().collect();
        let get = |name: &str| sent.get(name).map(String::as_str).unwrap_or_default();
        let token = format!("t0ken-{}", self.tokens);
        let is_right = [get("csrf"), get("user"), get("pass")] == [&token, "anna", self.password]
            && cookies.get("pre") == Some(&token.as_str());
        if !is_right {
            return html(&format!("wrong {}", self.form()));
        }
        self.given += 1;
        let sid = format!("s3ssion-{}", self.given);
        self.open.insert(sid.clone(), if self.given > self.sessions { 0 } else { self.pages });
        whole(302, &format!("Location: /welcome?key={token}\r\nSet-Cookie: sid={sid}; Path=/\r\n"), b"")
    }
}

fn page(path: &str) -> Vec<u8> {
    match path {
        "/" => html(
            "<title>front</title><a href=/1>1</a><a href=/22>2</a><a href=/3>3</a><a href=/44>4</a><a href=/5>5</a>\
             <a href=/66>6</a><a href='/logout'>out</a>",
        ),
        "/1" | "/22" | "/3" | "/44" | "/5" | "/66" => html(&format!("<title>story of {path}</title>")),
        _ => nothing(),
    }
}

/// An archive that logs in at the press.
fn subscriber(secret: &str, more: &[&str]) -> Archive {
    let archive = Archive::new();
    subscribe(&archive, secret, more);
    archive
}

fn subscribe(archive: &Archive, secret: &str, more: &[&str]) {
    let form = [HOST, "--form", FORM, "--name", "anna"];
    add(archive, &[&form[..], more].concat(), secret).succeeded();
}

fn crawl(archive: &Archive, server: &Answers, per_host: &str) -> Finished {
    let seeds = [format!("{HOST}/"), "http://open.test/".to_owned()];
    let log = archive.folder().join("run.log").display().to_string();
    let more = ["--log", &log, "--per-host", per_host].map(str::to_owned);
    start(&mut archive.crawl(&seeds, &[&server.at_once()[..], &more].concat())).wait()
}

/// Titles of the press's pages, in order.
fn stories(archive: &Archive) -> Vec<String> {
    let rows = archive.json(
        "query",
        &["captures host = 'press.test' and status = 200 select title, session", "--as-archivist"],
    );
    let rows = rows.iter().filter(|row| row["session"] == "login");
    let mut titles: Vec<String> =
        rows.map(|row| row["title"].as_str().unwrap_or_default().to_owned()).collect();
    titles.sort();
    titles
}

fn all_stories() -> Vec<String> {
    ["front"]
        .map(str::to_owned)
        .into_iter()
        .chain(["1", "22", "3", "44", "5", "66"].map(|path| format!("story of /{path}")))
        .collect()
}

fn assert_no_secret(archive: &Archive) {
    let mut count = 0;
    for file in files_below(archive.folder()).into_iter().filter(|file| !file.ends_with("secret")) {
        let bytes = fs::read(&file).unwrap();
        for secret in SECRETS {
            assert!(
                memchr::memmem::find(&bytes, secret.as_bytes()).is_none(),
                "{secret} in {}",
                file.display()
            );
        }
        count += 1;
    }
    assert!(count > 10, "{count} files");
}

#[test]
fn a_press_is_read_whole_though_its_sessions_end_and_nothing_is_left_of_the_log_in() {
    let (server, press) = Press::start(3, 100);
    let archive = subscriber("f0rm-s3cret", &["--check-cookie", "sid", "--check-text", "Log out"]);
    // Several requests may be under way when a session ends.
    let run = crawl(&archive, &server, "8").succeeded();
    assert!(run.errors.contains("a log-in (form) is shown at http://press.test"), "{}", run.errors);
    assert_eq!(stories(&archive), all_stories());
    // Seven pages, of which a session opens three.
    assert_eq!(press.lock().unwrap().given, 3);
    let asked = server.take_asked();
    assert_eq!(asked.first().map(|_| asked.iter().any(|url| url.ends_with("/logout"))), Some(false));
    let copy = archive.folder().join("copy");
    archive.run("copy", &["--to", &format!("file://{}", copy.display())]).succeeded();
    let records = exported(&archive);
    assert!(
        records.contains("Cookie: pre=redacted; sid=redacted\r\n") && !records.contains("/session"),
        "{records}"
    );
    assert_no_secret(&archive);
    archive.verify();
}

#[test]
fn without_its_log_in_a_host_waits_and_the_rest_is_crawled() {
    let (server, press) = Press::start(100, 100);
    let archive = subscriber("wrong", &[]);
    let said = crawl(&archive, &server, "1").refused(4, &[
        "the log-in at http://press.test does not work: it led to http://press.test/session (status 200), which shows the form again",
        "its pages wait for the next run, and `archive login test` tries it",
        "all that is left waits for its servers",
    ]);
    drop(said);
    let asked = server.take_asked();
    let of_press: Vec<_> = asked.iter().filter(|url| url.starts_with("press.test/")).collect();
    assert_eq!(of_press, ["press.test/robots.txt", "press.test/login?of=readers", "press.test/session"]);
    assert!(asked.contains(&"open.test/".to_owned()));
    assert!(stories(&archive).is_empty());
    assert_no_secret(&archive);

    subscribe(&archive, "f0rm-s3cret", &[]);
    crawl(&archive, &server, "1").succeeded();
    assert_eq!(stories(&archive), all_stories());
    assert_eq!(press.lock().unwrap().given, 1);

    // A session that is kept from an earlier run does not keep the next one from its own.
    let options =
        [&server.at_once()[..], &["--cookies", "kept", "--budget", "100"].map(str::to_owned)].concat();
    for (given, clock) in [(2, "2040-01-01T00:00:00Z"), (3, "2041-01-01T00:00:00Z")] {
        let options: Vec<&str> = options.iter().map(String::as_str).chain(["--clock", clock]).collect();
        archive.run("refresh", &options).succeeded();
        assert_eq!(press.lock().unwrap().given, given);
    }
}

#[test]
fn a_host_that_logs_out_for_good_is_paused_and_its_pages_wait() {
    let (server, press) = Press::start(3, 1);
    let archive = subscriber("f0rm-s3cret", &[]);
    crawl(&archive, &server, "1").refused(
        4,
        &[
            "the log-in at http://press.test does not work: a new session opens no page any more: ",
            "all that is left waits for its servers",
        ],
    );
    // The first session and one more for each of three pages; no page was taken for another.
    assert_eq!(press.lock().unwrap().given, 4);
    let before = stories(&archive);
    assert!(before.len() < 4 && before.iter().all(|title| all_stories().contains(title)), "{before:?}");
    press.lock().unwrap().sessions = 100;
    press.lock().unwrap().pages = 100;
    crawl(&archive, &server, "1").succeeded();
    assert_eq!(stories(&archive), all_stories());
    assert_no_secret(&archive);
}

#[test]
fn a_log_in_is_tried_and_says_what_it_saw() {
    let (server, press) = Press::start(100, 100);
    let archive = Archive::new();
    let connection = server.connection();
    let test = || {
        let options = [&[HOST], &connection.each_ref().map(String::as_str)[..]].concat();
        archive.run("login test", &options)
    };
    test().refused(2, &["there is no log-in for http://press.test"]);
    subscribe(&archive, "f0rm-s3cret", &["--check-text", "no such", "--check-status", "200"]);
    let wrong = test().refused(
        1,
        &["it led to http://press.test/welcome (status 200), which lacks the text of --check-text"],
    );
    drop(wrong);
    subscribe(&archive, "f0rm-s3cret", &["--check-cookie", "other", "--check-status", "200"]);
    test().refused(1, &["gave no cookie of the name of --check-cookie"]);
    subscribe(&archive, "f0rm-s3cret", &["--secret", "word", "--check-status", "200"]);
    test().refused(1, &["the form has no field of the name that --secret gives"]);
    subscribe(&archive, "f0rm-s3cret", &["--secret", "pass", "--check-status", "200"]);
    let tried = test().succeeded();
    let steps = [
        "http://press.test/login: status 200",
        "a form with csrf, user, pass is sent to http://press.test/session",
        "http://press.test/session: status 302",
        "http://press.test/welcome: status 200",
    ];
    assert_eq!(tried.text().lines().collect::<Vec<_>>(), steps);
    assert!(tried.errors.contains("the log-in (form) at http://press.test works"), "{}", tried.errors);
    assert_eq!(press.lock().unwrap().given, 3);
    for secret in SECRETS {
        assert!(!tried.text().contains(secret) && !tried.errors.contains(secret), "{secret}");
    }
    add(&archive, &[HOST, "--form", "http://press.test/loop"], "x").succeeded();
    test().refused(1, &["more than 10 redirects"]);
    let listed = archive.json::<&str>("login list", &[]).remove(0);
    assert_eq!((listed["kind"].as_str(), listed["name"].as_str()), (Some("form"), Some("")));
    for (arguments, problem) in [
        (&["a.test", "--form", "http://a.test/login"][..], "has to begin with https://"),
        (&["a.test", "--form", "login"][..], "has to be a URL"),
        (&["a.test", "--basic", "x", "--check-text", "y"][..], "need --form"),
        (&["a.test", "--form", "https://a.test/", "--fields", "x"][..], "a field and its value"),
    ] {
        add(&archive, arguments, "x").refused(2, &[problem]);
    }
}
