//! Accounts: who is admitted, what each role sees, and how sessions resist misuse by others.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::{Value, json};

use crate::imports::import;
use crate::support::browser::Browser;
use crate::support::program::start;
use crate::support::served::{Answer, Served, ask};
use crate::support::warc::response;
use crate::support::{Archive, judges};

const DAY: &str = "2026-01-02T03:04:05Z";
const PEOPLE: [(&str, &str); 3] = [("rita", "reader"), ("anna", "reviewer"), ("olga", "operator")];

/// Returns an archive of two sites, one of them for reviewers only, with three accounts.
fn archive() -> (Archive, PathBuf) {
    let archive = Archive::new();
    let pages = [("1", "http://open.test/", "open words"), ("2", "http://closed.test/", "closed words")];
    let pages =
        pages.map(|(id, url, text)| response(id, url, DAY, &format!("<title>{text}</title><p>{text}")));
    import(&archive, &[("sites.warc", pages.concat())]);
    let file = archive.folder().join("people");
    for (name, role) in PEOPLE {
        account(&archive, name, role, &password(name));
    }
    (archive, file)
}

pub(crate) fn password(name: &str) -> String {
    format!("the password of {name}")
}

fn command(archive: &Archive, command: &str, more: &[&str]) -> std::process::Command {
    let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_archive"));
    program.args(["account", command]).args(more).arg("--file").arg(archive.folder().join("people"));
    program
}

/// Gives somebody an account in the file `people` of the archive's folder.
pub(crate) fn account(archive: &Archive, name: &str, role: &str, password: &str) {
    let typed = archive.file("typed", format!("{password}\n"));
    let mut program = command(archive, "set", &[name, "--role", role]);
    let said = program.stdin(Stdio::from(fs::File::open(typed).unwrap())).output().unwrap();
    assert!(said.status.success(), "{said:?}");
}

fn served(archive: &Archive, file: &Path, more: &[&str]) -> Served {
    Served::with(archive, &[&["--password-file", file.to_str().unwrap()], more].concat())
}

fn post(address: &str, path: &str, fields: &[&str], body: &str) -> Answer {
    let length = format!("Content-Length: {}", body.len());
    ask(address, "POST", path, &[&[length.as_str()], fields, &["", body]].concat())
}

/// Tries to log in; returns the field `Cookie` on success.
fn log_in(served: &Served, name: &str, password: &str) -> Result<String, u16> {
    let own = format!("Origin: http://{}", served.application);
    let sent: String = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs([("name", name), ("password", password), ("to", "/search?q=words")])
        .finish();
    let answer = post(&served.application, "/login", &[&own], &sent);
    let Some(cookie) = answer.get("set-cookie") else { return Err(answer.status) };
    assert_eq!(answer.get("location"), Some(&*format!("http://{}/search?q=words", served.application)));
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{cookie}");
    Ok(format!("Cookie: x=y; {}", cookie.split(';').next().unwrap()))
}

fn enter(served: &Served, name: &str) -> String {
    log_in(served, name, &password(name)).unwrap()
}

fn get(address: &str, path: &str, fields: &[&str]) -> Answer {
    ask(address, "GET", path, fields)
}

fn text(answer: &Answer) -> &str {
    std::str::from_utf8(&answer.body).unwrap()
}

pub(crate) fn basic(name: &str, password: &str) -> String {
    format!("Authorization: Basic {}", base64::prelude::BASE64_STANDARD.encode(format!("{name}:{password}")))
}

/// Returns the replay's cookie for a user who is logged in at the application.
fn passed(served: &Served, cookie: &str, path: &str) -> String {
    let to: String = url::form_urlencoded::byte_serialize(path.as_bytes()).collect();
    let lead = get(&served.application, &format!("/pass?to={to}"), &[cookie]);
    let ticket = lead.get("location").unwrap().strip_prefix(&format!("http://{}", served.replay)).unwrap();
    let there = get(&served.replay, ticket, &[]);
    assert_eq!(there.get("location"), Some(&*format!("http://{}{path}", served.replay)));
    let given = there.get("set-cookie").unwrap().to_owned();
    assert!(given.ends_with("; Path=/; HttpOnly; SameSite=Lax"), "{given}");
    let again = get(&served.replay, ticket, &[]);
    assert_eq!((again.status, again.get("set-cookie")), (403, None), "a ticket is good once");
    format!("Cookie: {}", given.split(';').next().unwrap())
}

fn audit(archive: &Archive) -> Vec<Value> {
    let log = fs::read_to_string(archive.path.join("audit.jsonl")).unwrap();
    log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn accounts_are_kept_in_a_private_file() {
    let (archive, file) = archive();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(fs::read_to_string(&file).unwrap().starts_with("rita:reader:$argon2id$v=19$m=19456,t=2,p=1$"));
    let listed = start(command(&archive, "list", &[]).arg("--json")).wait().succeeded().json();
    assert_eq!(listed, PEOPLE.map(|(name, role)| json!({ "name": name, "role": role })));
    start(&mut command(&archive, "remove", &["rita"])).wait().succeeded();
    assert_eq!(start(&mut command(&archive, "remove", &["rita"])).wait().code, Some(1));
    let serve = |more: &[&str]| archive.run("serve", more);
    let options = ["--password-file", file.to_str().unwrap(), "--listen", "127.0.0.1:0"];
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(serve(&options).errors.contains("can be read or written by others (its mode is 640)"));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&file, fs::read_to_string(&file).unwrap() + "ben:king:x\n").unwrap();
    assert!(serve(&options).errors.contains("people, line 3: a role is reader, reviewer or operator"));
    let public = ["--listen", "0.0.0.0:0", "--replay-listen", "127.0.0.1:0"];
    assert!(serve(&public).errors.contains("--password-file"), "other machines do not come in unasked");
    assert_eq!(serve(&[&options[..], &["--user-header", "X-User"]].concat()).code, Some(2));
}

#[test]
fn nobody_comes_in_without_a_password() {
    let (archive, file) = archive();
    let served = served(&archive, &file, &["--review"]);
    let html = "Accept: text/html";
    for (address, path) in [
        (&served.application, "/"),
        (&served.application, "/search?q=words"),
        (&served.application, "/metrics"),
        (&served.application, "/runs/current"),
        (&served.application, "/wacz?site=open.test"),
        (&served.application, "/review"),
        (&served.application, "/logout"),
        (&served.application, "/pass?to=/"),
        (&served.replay, "/"),
        (&served.replay, "/web/2026/http://open.test/"),
        (&served.replay, "/cdx?url=open.test"),
        (&served.replay, "/timemap/link/http://open.test/"),
        (&served.replay, "/static/worker.js"),
        (&served.replay, "/static/pass?ticket=AAAA"),
    ] {
        for fields in [
            &["Cookie: archive=AAAA; archive-pages=AAAA"][..],
            &["Accept: application/json"],
            &["Accept: text/event-stream"],
        ] {
            let answer = get(address, path, fields);
            assert!(matches!(answer.status, 401 | 403), "{path}: {}", answer.status);
            assert!(!text(&answer).contains("open.test"), "{path}");
        }
        let answer = get(address, path, &[html]);
        assert!(matches!(answer.status, 303 | 403), "{path}: {}", answer.status);
    }
    assert_eq!(get(&served.application, "/health", &[]).status, 200);
    let asked = get(&served.application, "/search?q=a%26b", &[html]);
    let login = format!("http://{}/login?to=%2Fsearch%3Fq%3Da%2526b", served.application);
    assert_eq!(asked.get("location"), Some(&*login));
    let page = get(&served.application, "/login?to=%2Fsearch%3Fq%3Da%2526b", &["Accept-Language: fr"]);
    assert!(text(&page).contains("value=\"/search?q=a%26b\"") && text(&page).contains("Se connecter"));
    // A link from another site sends no cookie; the page reloads itself with it.
    let linked =
        get(&served.application, "/", &[html, "Sec-Fetch-Mode: navigate", "Sec-Fetch-Site: cross-site"]);
    assert_eq!((linked.status, linked.get("refresh")), (200, Some("0")));
    // A form of another page, a request without a form, and a redirect to another server.
    let sent = format!("name=rita&password={}&to=https://evil.test/", password("rita").replace(' ', "+"));
    for origin in [
        format!("Origin: http://{}", served.replay),
        "Origin: http://evil.test".to_owned(),
        "X: y".to_owned(),
    ] {
        assert_eq!(post(&served.application, "/login", &[&origin], &sent).status, 403, "{origin}");
    }
    let own = format!("Origin: http://{}", served.application);
    for to in [
        "https://evil.test/",
        "//evil.test/",
        "\\\\evil.test",
        "javascript:1",
        "@evil.test",
        "",
        "/a%0d%0aX:y",
    ] {
        let answer = post(&served.application, "/login", &[&own], &sent.replace("https://evil.test/", to));
        let aim = if to == "//evil.test/" { to } else { "/" };
        assert_eq!(answer.get("location"), Some(&*format!("http://{}{aim}", served.application)), "{to}");
    }
    assert_eq!(post(&served.replay, "/login", &[&own], &sent).status, 405);
    let log = archive.folder().join("audit").to_str().unwrap().to_owned();
    let reading = self::served(&archive, &file, &["--audit-log", &log]);
    let own = format!("Origin: http://{}", reading.application);
    assert_eq!(post(&reading.application, "/review/decide", &[&own], "site=open.test&rating=4").status, 405);
}

#[test]
fn each_role_sees_what_is_for_it() {
    let (archive, file) = archive();
    fs::write(
        archive.path.join("access.toml"),
        "[[rule]]\nprefix = \"test,closed\"\nshown_to = \"reviewer\"\n",
    )
    .unwrap();
    let served = served(&archive, &file, &["--review"]);
    let own = format!("Origin: http://{}", served.application);
    for (number, (name, role)) in PEOPLE.into_iter().enumerate() {
        let cookie = enter(&served, name);
        for (path, least) in
            [("/", 0), ("/pictures", 0), ("/review", 1), ("/review.js", 1), ("/runs", 2), ("/metrics", 2)]
        {
            let status = if number >= least { 200 } else { 403 };
            assert_eq!(get(&served.application, path, &[&cookie]).status, status, "{role} {path}");
        }
        let live = get(&served.application, "/runs/current", &[&cookie, "Accept: text/event-stream"]).status;
        assert_eq!(live, if number == 2 { 404 } else { 403 }, "{role}");
        // What the rules hide from readers.
        let pages = passed(&served, &cookie, "/web/2026/http://closed.test/?a=b&c");
        let is_shown = number > 0;
        for (address, path) in [
            (&served.application, "/search?q=words&format=json"),
            (&served.application, "/query?q=page+captures+%3E+0+select+title"),
            (&served.application, "/page?url=closed.test"),
            (&served.application, "/wacz?site=closed.test"),
            (&served.replay, "/web/20260102030405id_/http://closed.test/"),
            (&served.replay, "/cdx?url=closed.test"),
            (&served.replay, "/timemap/link/http://closed.test/"),
        ] {
            let field = if *address == served.application { &cookie } else { &pages };
            let answer = get(address, path, &[field]);
            let is_there = answer.status == 200
                && (path.starts_with("/wacz") || String::from_utf8_lossy(&answer.body).contains("closed"));
            assert_eq!(is_there, is_shown, "{role} {path}: {}", answer.status);
        }
        // Programs do the same with their password, at both origins.
        let field = basic(name, &password(name));
        let found = get(&served.replay, "/cdx?url=closed.test", &[&field]);
        assert_eq!(!found.body.is_empty() && found.status == 200, is_shown, "{role}");
        assert_eq!(
            get(&served.application, "/metrics", &[&field]).status,
            if number == 2 { 200 } else { 403 }
        );
        assert_eq!(get(&served.application, "/", &[&basic(name, "x")]).status, 401);
        // The logged-in user is the one who decides.
        let sent = post(
            &served.application,
            "/review/decide",
            &[&own, &cookie],
            "site=open.test&rating=4&by=zoe&seen=9",
        );
        assert_eq!(sent.status, if number > 0 { 303 } else { 403 }, "{role}");
        // The cookie for archived pages opens only these, and the other cookie opens none of them.
        for stolen in [pages.clone(), pages.replace("archive-pages=", "archive=")] {
            assert_eq!(get(&served.application, "/", &[&stolen]).status, 401, "{role}");
        }
        let other = cookie.replace("archive=", "archive-pages=");
        assert_eq!(get(&served.replay, "/cdx?url=open.test", &[&other]).status, 401, "{role}");
        assert_eq!(get(&served.replay, "/cdx?url=open.test", &[&pages]).status, 200, "{role}");
        // Logging out ends both sessions.
        assert_eq!(
            post(&served.application, "/logout", &["Origin: http://evil.test", &cookie], "").status,
            403
        );
        assert_eq!(post(&served.application, "/logout", &[&own, &cookie], "").status, 303);
        assert_eq!(get(&served.application, "/", &[&cookie]).status, 401, "{role}");
        assert_eq!(get(&served.replay, "/cdx?url=open.test", &[&pages]).status, 401, "{role}");
    }
    let decided = archive.json("review log", &[""; 0]);
    let names: Vec<&Value> = decided.iter().map(|line| &line["by"]).collect();
    assert_eq!(names, ["anna", "olga"]);
    let log = audit(&archive);
    let count = |event: &str, name: &str| {
        log.iter().filter(|line| line["event"] == event && line["name"] == name).count()
    };
    let events = ["login", "failure", "logout", "refused", "decision"];
    assert_eq!(events.map(|event| count(event, "rita")), [2, 1, 1, 7, 0]);
    assert_eq!(events.map(|event| count(event, "olga")), [2, 1, 1, 0, 1]);
    let all = fs::read_to_string(archive.path.join("audit.jsonl")).unwrap();
    assert!(
        !all.contains("password")
            && !all.contains("closed.test")
            && all.contains("\"path\":\"/runs/current\"")
    );
}

#[test]
fn a_changed_or_removed_person_is_logged_out() {
    let (archive, file) = archive();
    let served = served(&archive, &file, &[]);
    let [rita, anna, olga] = PEOPLE.map(|(name, _)| enter(&served, name));
    let pages = passed(&served, &anna, "/");
    let program = basic("rita", &password("rita"));
    assert_eq!(get(&served.application, "/", &[&program]).status, 200);
    start(&mut command(&archive, "remove", &["rita"])).wait().succeeded();
    account(&archive, "anna", "reader", &password("anna"));
    let gone = |address: &str, field: &str| {
        let begun = Instant::now();
        while get(address, "/", &[field]).status != 401 {
            assert!(begun.elapsed() < Duration::from_secs(60), "{field}");
        }
    };
    for field in [&rita, &program, &anna] {
        gone(&served.application, field);
    }
    gone(&served.replay, &pages);
    assert_eq!(get(&served.application, "/", &[&olga]).status, 200);
    assert_eq!(log_in(&served, "rita", &password("rita")), Err(403));
    // A malformed file admits nobody, and a corrected one admits people again.
    let good = fs::read_to_string(&file).unwrap();
    fs::write(&file, "olga").unwrap();
    gone(&served.application, &olga);
    assert_eq!(log_in(&served, "olga", &password("olga")), Err(503));
    fs::write(&file, good).unwrap();
    let begun = Instant::now();
    while log_in(&served, "olga", &password("olga")).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(60));
    }
}

#[test]
fn guessing_ends_after_some_wrong_passwords() {
    let (archive, file) = archive();
    let public = ["--origin", "https://archive.example.org", "--replay-origin", "https://replay.example.org"];
    let served = served(&archive, &file, &public);
    let head = ["Host: archive.example.org", "Origin: https://archive.example.org"];
    let attempt = |from: &str, name: &str, password: &str| {
        let from = format!("X-Forwarded-For: 192.0.2.1, {from}");
        let sent = format!("name={name}&password={}", password.replace(' ', "+"));
        post(&served.application, "/login", &[&head[..], &[from.as_str()]].concat(), &sent)
    };
    // Unknown names get the same answers as known ones.
    let unknown = attempt("198.51.100.1", "nobody", "x");
    let known = attempt("198.51.100.1", "anna", "x");
    assert_eq!((unknown.status, text(&unknown)), (403, text(&known)));
    for _ in 2..20 {
        assert_eq!(attempt("198.51.100.1", "anna", "x").status, 403);
    }
    let refused = attempt("198.51.100.1", "olga", &password("olga"));
    assert_eq!((refused.status, refused.get("retry-after")), (429, Some("900")), "the right one, too");
    assert_eq!(attempt("198.51.100.1", "nobody", "x").status, 429);
    let let_in = attempt("198.51.100.2", "anna", &password("anna"));
    let cookie = let_in.get("set-cookie").unwrap();
    assert!(
        cookie.starts_with("__Host-archive=") && cookie.ends_with("; HttpOnly; SameSite=Strict; Secure"),
        "{cookie}"
    );
    let log = audit(&archive);
    let limited: Vec<_> = log.iter().filter(|line| line["event"] == "limited").collect();
    assert_eq!((limited.len(), &limited[0]["address"]), (1, &"198.51.100.1".into()), "it is logged once");
    assert_eq!(
        (&log[0]["event"], &log[0]["name"]),
        (&"failure".into(), &Value::Null),
        "it may be a password"
    );
}

#[test]
fn other_web_pages_do_not_ask_for_what_is_dear() {
    let (archive, _) = archive();
    let served = Served::of(&archive);
    for path in ["/wacz?site=open.test", "/query?q=page", "/pictures", "/compare?url=http://open.test/"] {
        let status = |site: &str, more: &[&str]| {
            let site = format!("Sec-Fetch-Site: {site}");
            get(&served.application, path, &[&[site.as_str()], more].concat()).status
        };
        let own = status("same-origin", &[]);
        assert_ne!(own, 403, "{path}");
        let link = ["Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document", "Sec-Fetch-User: ?1"];
        assert_eq!(status("none", &[]), own, "{path}");
        assert_eq!(status("cross-site", &link), own, "who follows a link comes in: {path}");
        for other in ["cross-site", "same-site"] {
            assert_eq!(status(other, &["Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image"]), 403, "{path}");
            assert_eq!(status(other, &link[..2]), 403, "nobody followed a link: {path}");
            assert_eq!(status(other, &["Sec-Fetch-Dest: iframe", link[2]]), 403, "{path}");
        }
    }
    let other = ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"];
    assert_eq!(get(&served.application, "/search?q=words", &other).status, 200);
}

#[test]
fn beyond_this_machine_somebody_vouches_for_each() {
    let (archive, file) = archive();
    let listen = ["--listen", "0.0.0.0:0", "--replay-listen", "0.0.0.0:0"];
    let spawn = |more: &[&str]| {
        let served = Served::spawn(archive.command("serve").args(listen).args(more), 1);
        let local = |address: &str| address.replace("0.0.0.0", "127.0.0.1");
        (local(&served.application), local(&served.replay), served)
    };
    let (application, replay, _served) = spawn(&["--user-header", "X-User"]);
    for address in [&application, &replay] {
        assert_eq!(get(address, "/", &[]).status, 403);
        assert_eq!(get(address, "/", &["X-User:  "]).status, 403);
        assert_eq!(get(address, "/", &["X-User: anna"]).status, 200);
    }
    let (application, replay, _served) = spawn(&["--password-file", file.to_str().unwrap()]);
    for address in [&application, &replay] {
        assert_eq!(get(address, "/", &["X-User: anna"]).status, 401);
        assert_eq!(get(address, "/", &[&basic("rita", &password("rita"))]).status, 200);
    }
}

/// Waits until the name field has the focus.
fn wait_for_focus(browser: &Browser) {
    let begun = Instant::now();
    while browser.run("return document.activeElement.id", &json!([])) != "name" {
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", browser.source());
    }
}

#[test]
fn somebody_logs_in_reviews_reads_and_leaves_in_a_browser() {
    let script = "<title>t</title><p id=said>nothing</p><script>\
                  document.cookie = 'archive-pages=evil; path=/web/'; document.cookie = 'archive=evil; path=/review';\
                  document.getElementById('said').textContent = 'cookies: ' + document.cookie;</script>";
    let (archive, file) = archive();
    import(&archive, &[("evil.warc", response("3", "http://evil.test/", DAY, script))]);
    let served = served(&archive, &file, &["--review"]);
    let (application, replay) =
        (format!("http://{}", served.application), format!("http://{}", served.replay));
    let site = format!("{application}/review/site?name=open.test");
    for has_scripts in [true, false] {
        let Some(browser) = Browser::start(has_scripts) else { return };
        // By keyboard only, to the requested archived page, or to a page that shows one.
        let asked = if has_scripts { format!("{replay}/web/2026/http://evil.test/") } else { site.clone() };
        browser.go(&asked);
        wait_for_focus(&browser);
        browser.press("anna\u{e004}wrong\u{e007}");
        browser.wait_for("Name or password is wrong.");
        wait_for_focus(&browser);
        if has_scripts {
            let axe = judges::axe().unwrap();
            browser.run(&axe, &json!([]));
            let found = browser.run_later(crate::people::JUDGE, &json!([]));
            assert_eq!(found, json!([]));
        }
        browser.press(&format!("anna\u{e004}{}\u{e007}", password("anna")));
        if has_scripts {
            browser.wait_for("cookies: ");
            let said = browser.run("return document.getElementById('said').textContent", &json!([]));
            assert_eq!(said, "cookies: archive-pages=evil", "scripts see what is theirs alone");
        }
        // The frame of the archived page has its own cookie; cookies set by a page interfere with neither session.
        browser.go(&site);
        let begun = Instant::now();
        while !browser.devtools("Network.getAllCookies", &json!({})).to_string().contains("\"archive-pages\"")
        {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "the frame shows nothing: {}",
                browser.source()
            );
        }
        browser.wait_for("name=\"by\" value=\"anna\"");
        browser.click("button[value='4']");
        browser.wait_for("anna 4");
        browser.go(&format!("{replay}/web/2026/http://open.test/"));
        browser.wait_for("open words");
        browser.go(&format!("{application}/runs"));
        browser.wait_for("Your account may not see this.");
        browser.go(&application);
        browser.click("a[href='/logout']");
        browser.wait_for("You are logged in as");
        browser.click("main button");
        browser.wait_for("id=\"password\"");
        browser.go(&format!("{replay}/web/2026/http://open.test/"));
        browser.wait_for("id=\"password\"");
    }
}

#[test]
fn a_cookie_that_a_page_has_put_there_is_nobodys() {
    let (archive, file) = archive();
    let served = served(&archive, &file, &[]);
    let [rita, anna] = ["rita", "anna"].map(|name| enter(&served, name).replace("Cookie: x=y; ", ""));
    let status = |cookies: &str, more: &[&str]| {
        let field = format!("Cookie: {cookies}");
        get(&served.application, "/search?q=words", &[&[field.as_str()], more].concat()).status
    };
    assert_eq!(status(&anna, &[]), 200);
    assert_eq!(status(&format!("{rita}; {anna}"), &[]), 401, "one of two people has not logged in here");
    assert_eq!(status(&format!("{anna}; {rita}"), &[]), 401);
    assert_eq!(status(&anna, &["User-Agent: of another browser"]), 401);
    // However many others stand before it.
    let junk =
        ["archive=AAAA; ", &format!("archive={}; ", "A".repeat(43))].map(|one| one.repeat(250)).concat();
    assert_eq!(status(&format!("{junk}{anna}"), &[]), 200);
}

#[test]
fn cookies_that_are_too_long_are_removed() {
    let (archive, file) = archive();
    let served = served(&archive, &file, &[]);
    for (address, path) in [(&served.application, "/health"), (&served.replay, "/")] {
        for (length, is_short) in [(31 << 10, true), (64 << 10, false), (180 << 12, false)] {
            let answer = get(address, path, &[&format!("Cookie: x={}", "y".repeat(length))]);
            let clears = answer.get("clear-site-data");
            assert_eq!((answer.status != 431, clears.is_none()), (is_short, is_short), "{path} {length}");
            assert!(is_short || text(&answer).contains("Too many cookies") && clears == Some("\"cookies\""));
        }
    }
    let Some(browser) = Browser::start(true) else { return };
    let url = format!("http://{}/login", served.application);
    for number in 0..100 {
        let cookie = json!({ "name": format!("c{number}"), "value": "x".repeat(4000), "url": url });
        browser.devtools("Network.setCookie", &cookie);
    }
    browser.go(&url);
    browser.wait_for("Too many cookies");
    browser.go(&url);
    browser.wait_for("id=\"password\"");
}

#[test]
fn archived_pages_have_a_host_of_their_own() {
    let (archive, file) = archive();
    let served = served(&archive, &file, &[]);
    let port = |address: &str| address.rsplit_once(':').unwrap().1.to_owned();
    let (application, replay) = (port(&served.application), port(&served.replay));
    assert_eq!(
        (served.application.as_str(), served.replay.as_str()),
        (&*format!("127.0.0.1:{application}"), &*format!("localhost:{replay}"))
    );
    // Programs find both under any name; browsers are redirected to the one that is meant.
    let navigates = "Sec-Fetch-Mode: navigate";
    for (place, wrong, own) in [
        (&application, "localhost", "127.0.0.1"),
        (&replay, "127.0.0.1", "localhost"),
        (&replay, "127.0.0.2", "localhost"),
    ] {
        let host = format!("Host: {wrong}:{place}");
        let there = get(&format!("127.0.0.1:{place}"), "/web/2026/http://open.test/?a", &[&host, navigates]);
        assert_eq!(
            (there.status, there.get("location")),
            (307, Some(&*format!("http://{own}:{place}/web/2026/http://open.test/?a")))
        );
        let field = basic("rita", &password("rita"));
        assert_eq!(get(&format!("127.0.0.1:{place}"), "/", &[&host, &field]).status, 200, "{host}");
    }

    let Some(browser) = Browser::start(true) else { return };
    browser.go(&format!("http://{}/", served.application));
    wait_for_focus(&browser);
    browser.press(&format!("anna\u{e004}{}\u{e007}", password("anna")));
    browser.wait_for("href=\"/logout\"");
    browser.go(&format!("http://127.0.0.1:{replay}/web/2026/http://open.test/"));
    browser.wait_for("open words");
    assert_eq!(browser.run("return window.origin.length && document.domain", &json!([])), "open.test");
    // What scripts there set stays there, however much it is.
    let set = "for (let number = 0; number < 400; number++) document.cookie = `c${number}=${'x'.repeat(arguments[0])}; path=/`;
               return document.cookie.length";
    assert!(browser.run(set, &json!([100])).as_u64().unwrap() > 40_000);
    let of_host = |browser: &Browser| {
        browser.devtools("Network.getAllCookies", &json!({}))["cookies"].as_array().unwrap().len()
    };
    assert_eq!(of_host(&browser), 2, "cookies stay with the page");
    for number in 0..400 {
        let cookie = json!({ "name": format!("c{number}"), "value": "x", "url": format!("http://{}/", served.replay) });
        browser.devtools("Network.setCookie", &cookie);
    }
    let stolen = enter(&served, "rita").replace("Cookie: x=y; archive=", "");
    let cookie = json!({ "name": "archive", "value": stolen, "url": format!("http://{}/", served.replay) });
    browser.devtools("Network.setCookie", &cookie);
    browser.go(&format!("http://{}/logout", served.application));
    browser.wait_for("<strong>anna</strong>");
}

#[test]
fn a_host_that_both_addresses_share_is_named() {
    let (archive, _) = archive();
    let said = |options: &[&str]| {
        let (notes, mut command) = (archive.folder().join("notes"), archive.command("serve"));
        command.args(options).stderr(fs::File::create(&notes).unwrap());
        drop(Served::spawn(&mut command, 1));
        fs::read_to_string(notes).unwrap()
    };
    let shared = "have the same host, so cookies of archived pages reach the application";
    let ports = ["--listen", "127.0.0.1:0", "--replay-listen", "127.0.0.1:0"];
    let named = |replay: &'static str| {
        [&ports[..], &["--origin", "https://a.test", "--replay-origin", replay]].concat()
    };
    assert!(!said(&ports).contains(shared));
    assert!(said(&named("https://a.test:8443")).contains(shared));
    assert!(!said(&named("https://b.test")).contains(shared));
    assert!(said(&["--listen", "127.0.0.3:0", "--replay-listen", "127.0.0.3:0"]).contains(shared));
    assert!(!said(&["--listen", "127.0.0.3:0", "--replay-listen", "127.0.0.4:0"]).contains(shared));
}
