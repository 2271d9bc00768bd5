//! A web with a wall of each kind, crawled whole in one run, of which nothing secret is left anywhere.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use archive_storage::digest::hex;
use archive_testweb::proxy::{Proxy, Speech};
use archive_testweb::tls::{AUTHORITY, Certificate, serve_protocols_with_tls, serve_with_tls};

use md5::{Digest as _, Md5};

use crate::http2::Http2Server;
use crate::logins::add;
use crate::sessions::exported;
use crate::support::Archive;
use crate::support::answers::{Answers, field, html, nothing, plain, whole};
use crate::support::program::start;
use crate::support::served::Served;

/// All that nobody may find: passwords, values and cookies, as they are given and as they are sent.
const SECRETS: [&str; 12] = [
    "d1gest-s3cret",
    "b4sic-s3cret",
    "YW5uYTpiNHNpYy1zM2NyZXQ=",
    "f1eld-s3cret",
    "c00kie-s3cret",
    "r3newed-s3cret",
    "pr0xy-s3cret",
    "YW5uYTpwcjB4eS1zM2NyZXQ=",
    "s0cks-s3cret",
    "f0rm-s3cret",
    "m3mber-s3cret",
    "O7Hr+yf0FRo7E/qHcmI4T6YaTKmhRANCAATiFwAaHHV34eZHK18Qtuqmk1r8EGtE",
];

/// Hosts with a wall each, below `faults.test`: first those that a log-in opens. A further one has its name here, what it
/// answers in `doors`, and what opens it in the test.
const WALLS: [&str; 12] = [
    "cookies",
    "basic",
    "digest",
    "field",
    "certificate",
    "form",
    "referer",
    "wall",
    "slow",
    "limited",
    "proxy",
    "socks",
];

/// A page of a server that speaks HTTP/2 alone.
const TWO: &str = "https://two.faults.test/";

/// How many of them a log-in opens.
const LOG_INS: usize = 6;

/// How long the slow host thinks.
const SLOW: Duration = Duration::from_millis(400);

/// Returns all that the test web is asked for behind its doors: URL and whether the door was opened.
type Log = Arc<Mutex<Vec<(String, bool)>>>;

fn doors() -> (Answers, Log) {
    let log = Log::default();
    let seen = Arc::clone(&log);
    let server = Answers::with_heads(move |host, path, head| {
        let door = host.split('.').next().unwrap_or_default();
        let cookies = field(head, "Cookie");
        let is_open = match door {
            "cookies" => cookies.contains("sid=c00kie-s3cret") || cookies.contains("sid=r3newed-s3cret"),
            "basic" => field(head, "Authorization") == "Basic YW5uYTpiNHNpYy1zM2NyZXQ=",
            "digest" => has_proof(field(head, "Authorization"), path),
            "form" => cookies.contains("member=m3mber-s3cret"),
            "field" => field(head, "X-Api-Key") == "f1eld-s3cret",
            "referer" => path == "/" || field(head, "Referer").contains(host),
            "wall" => cookies.contains("seen=1"),
            // It answers every other request.
            "limited" => {
                path == "/robots.txt" || {
                    let mut seen = seen.lock().unwrap();
                    let is_first = !seen.iter().any(|(url, _)| *url == format!("{host}{path}"));
                    seen.push((format!("{host}{path}"), !is_first));
                    !is_first
                }
            }
            "slow" => {
                thread::sleep(SLOW);
                true
            }
            // Nobody else gets through to here.
            _ => true,
        };
        if door != "limited" {
            seen.lock().unwrap().push((format!("{host}{path}"), is_open));
        }
        match path {
            "/robots.txt" if cookies.is_empty() && head.find("Authorization").is_none() => {
                plain("User-agent: *\nAllow: /")
            }
            "/login" => html(
                "<form action=/session method=post><input name=user><input type=password name=word></form>",
            ),
            "/session" if head.ends_with("user=anna&word=f0rm-s3cret") => {
                whole(303, "Location: /\r\nSet-Cookie: member=m3mber-s3cret; Path=/\r\n", b"")
            }
            _ if !is_open && door == "wall" => {
                whole(302, &format!("Location: {path}\r\nSet-Cookie: seen=1; Path=/\r\n"), b"")
            }
            _ if !is_open && door == "limited" => whole(429, "Retry-After: 1\r\n", b"later"),
            _ if !is_open && door == "digest" => {
                whole(401, "WWW-Authenticate: Digest realm=\"x\", nonce=\"n\", qop=\"auth\"\r\n", b"closed")
            }
            _ if !is_open => whole(401, "WWW-Authenticate: Basic realm=x\r\n", b"closed"),
            "/" => {
                let page = format!(
                    "<title>hall of {door}</title><a href=/room>r</a><a href='/logout'>out</a><a href='/?do=sign-out'>out</a>"
                );
                let renewed = "Set-Cookie: sid=r3newed-s3cret; Path=/\r\nContent-Type: text/html\r\n";
                if door == "cookies" { whole(200, renewed, page.as_bytes()) } else { html(&page) }
            }
            "/room" => html(&format!("<title>room of {door}</title>")),
            _ => nothing(),
        }
    });
    (server, log)
}

/// Whether a field `Authorization` proves the password for a path (RFC 7616).
pub(crate) fn has_proof(field: &str, path: &str) -> bool {
    let hash = |text: &str| hex(Md5::digest(text.as_bytes()).as_slice());
    let get = |name: &str| {
        let value = field.split(", ").find_map(|part| part.trim_start_matches("Digest ").strip_prefix(name));
        value.unwrap_or_default().trim_matches('"').to_owned()
    };
    let secret = hash("anna:x:d1gest-s3cret");
    let proof = [&secret, "n", &get("nc="), &get("cnonce="), "auth", &hash(&format!("GET:{path}"))].join(":");
    get("response=") == hash(&proof)
}

fn url(door: &str) -> String {
    let has_log_in = WALLS.iter().take(LOG_INS).any(|wall| *wall == door);
    let scheme = if has_log_in { "https" } else { "http" };
    format!("{scheme}://{door}.faults.test/")
}

/// Files below a folder, but for those of the secrets.
pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let below = |path: PathBuf| match path.is_dir() {
        true if path.ends_with("secrets") => Vec::new(),
        true => files_below(&path),
        false => vec![path],
    };
    entries.flat_map(below).collect()
}

fn find_secret(bytes: &[u8]) -> Option<&'static str> {
    SECRETS.into_iter().find(|secret| memchr::memmem::find(bytes, secret.as_bytes()).is_some())
}

#[test]
fn a_web_of_walls_is_crawled_whole_and_nothing_secret_is_left_anywhere() {
    let (server, log) = doors();
    let archive = Archive::new();
    let open = serve_with_tls(server.address, false).unwrap();
    let guarded = serve_with_tls(server.address, true).unwrap();
    let authority = archive.file("authority.pem", AUTHORITY).display().to_string();
    let (plain, port_443) = (server.address, format!(":443:{open}"));
    let certificate = format!("certificate.faults.test:443:{guarded}");
    // The others are known to their proxies only.
    let reached = ["referer", "wall", "slow", "limited"].map(|wall| format!("{wall}.faults.test:80:{plain}"));
    let behind = |name: &'static str| move |host: &str, _| host.starts_with(name).then_some(plain);
    let http = Proxy::start(Speech::Http, Some(("anna", "pr0xy-s3cret")), behind("proxy")).unwrap();
    let socks = Proxy::start(Speech::Socks, Some(("anna", "s0cks-s3cret")), behind("socks")).unwrap();
    let (http_at, socks_at) = (http.address.to_string(), socks.address.to_string());
    let ways =
        [format!("proxy.faults.test=http://{http_at}"), format!("socks.faults.test=socks5h://{socks_at}")];
    let two = Http2Server::start(b"HTTP/1.1 505 HTTP Version Not Supported\r\nContent-Length: 0\r\n\r\n");
    let two_at = format!("two.faults.test:443:{}", serve_protocols_with_tls(two.address, &["h2"]).unwrap());
    let log_file = archive.folder().join("run.log").display().to_string();
    let options = [
        "--cacert",
        &authority,
        "--connect-to",
        &certificate,
        "--connect-to",
        &two_at,
        "--connect-to",
        &port_443,
        "--proxy",
        &ways[0],
        "--proxy",
        &ways[1],
    ];
    let reached: Vec<&str> = reached.iter().flat_map(|rule| ["--connect-to", rule]).collect();
    let options = [&options[..], &reached].concat();
    let crawl =
        [&options[..], &["--delay", "0", "--patience", "9s", "--log", &log_file, "--cookies", "kept"]]
            .concat();
    let seeds = [&WALLS.map(url)[..], &[TWO.to_owned()]].concat();
    let jar = "# Netscape HTTP Cookie File\ncookies.faults.test\tFALSE\t/\tTRUE\t0\tsid\tc00kie-s3cret\n\
               elsewhere.test\tFALSE\t/\tTRUE\t0\tother\tc00kie-s3cret\n";
    let jar = archive.file("cookies.txt", jar).display().to_string();
    let key = archive.file("client.pem", Certificate::Right.with_key()).display().to_string();
    let hidden = ["reviewers only"];
    for (door, way, value, secret) in [
        ("cookies", "--cookies", jar.as_str(), ""),
        ("basic", "--basic", "anna", "b4sic-s3cret\n"),
        ("digest", "--digest", "anna", "d1gest-s3cret\n"),
        ("field", "--field", "X-Api-Key", "f1eld-s3cret"),
        ("certificate", "--certificate", &key, ""),
        ("form", "--name=anna", "--form=https://form.faults.test/login", "f0rm-s3cret"),
    ] {
        let said = add(&archive, &[&format!("{door}.faults.test"), way, value], secret).succeeded().errors;
        assert!(
            hidden.iter().all(|words| said.contains(words)) && find_secret(said.as_bytes()).is_none(),
            "{said}"
        );
    }
    for (at, secret) in [(&http_at, "pr0xy-s3cret"), (&socks_at, "s0cks-s3cret")] {
        let said = add(&archive, &[at, "--proxy", "anna"], secret).succeeded().errors;
        assert!(!said.contains("reviewers") && find_secret(said.as_bytes()).is_none(), "{said}");
    }
    let file = archive.path.join("secrets/logins.json");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let listed = archive.json::<&str>("login list", &[]);
    let kinds: Vec<&str> = listed.iter().map(|login| login["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["cookies", "basic", "digest", "field", "certificate", "form", "proxy", "proxy"]);
    assert_eq!([&listed[0]["name"], &listed[1]["name"]], ["sid", "anna"]);

    let crawl = start(&mut archive.crawl(&seeds, &crawl)).wait().succeeded();
    assert!(crawl.errors.contains("a log-in (basic) is shown at basic.faults.test"), "{}", crawl.errors);
    assert_eq!(find_secret(crawl.errors.as_bytes()), None);
    let asked = std::mem::take(&mut *log.lock().unwrap());
    for door in WALLS {
        for path in ["", "room"] {
            let page = format!("{door}.faults.test/{path}");
            assert!(asked.contains(&(page.clone(), true)), "{page} {asked:?}");
            // A server has to ask for a proof once.
            let is_first = match door {
                "digest" | "wall" => path.is_empty(),
                door => door == "limited",
            };
            assert_eq!(asked.contains(&(page.clone(), false)), is_first, "{page} {asked:?}");
        }
    }
    let ends = |url: &str| url.contains("logout") || url.contains("sign-out");
    let has_log_in = |url: &str| WALLS.iter().take(LOG_INS).any(|wall| url.starts_with(wall));
    assert!(!asked.iter().any(|(url, _)| ends(url) && has_log_in(url)), "{asked:?}");
    for (proxy, host) in [(&http, "proxy.faults.test:80"), (&socks, "socks.faults.test:80")] {
        let seen = proxy.take_seen();
        assert!(!seen.is_empty() && seen.iter().all(|seen| seen == host), "{seen:?}");
    }
    let why = archive.json("why", &["https://basic.faults.test/logout", "--as-archivist"]).remove(0);
    assert_eq!(why["refusal"], "ignored", "{why}");

    // Marked, and shown to reviewers only.
    let query = "pages url contains 'room' select url, session";
    let rooms = archive.json("query", &[query, "--as-archivist"]);
    let sessions: Vec<_> =
        rooms.iter().map(|row| (row["url"].as_str().unwrap(), row["session"].as_str())).collect();
    for door in WALLS {
        let session = match door {
            "wall" => Some("cookies"),
            door => has_log_in(door).then_some("login"),
        };
        assert!(sessions.contains(&(&format!("{}room", url(door)), session)), "{sessions:?}");
    }
    let shown = archive.json("query", &[query]);
    assert_eq!(shown.len(), WALLS.len() - LOG_INS, "{shown:?}");
    let spoken = archive.json("query", &[&format!("page url = '{TWO}' and status = 200")]);
    assert_eq!(spoken.len(), 1, "{}", crawl.errors);

    // No byte of what was given is anywhere but in the folder of secrets.
    let copy = archive.folder().join("copy");
    archive.run("copy", &["--to", &format!("file://{}", copy.display())]).succeeded();
    let records = exported(&archive);
    for kept in [
        "Authorization: redacted\r\n",
        "X-Api-Key: redacted\r\n",
        "Cookie: sid=redacted\r\n",
        "Set-Cookie: sid=redacted; Path=/\r\n",
    ] {
        assert!(records.contains(kept), "{kept}");
    }
    assert_eq!(find_secret(records.as_bytes()), None);
    let package = archive.folder().join("all.wacz");
    archive.run("export", &["wacz", "--output", package.to_str().unwrap(), "--as-archivist"]).succeeded();
    let given = ["secret", "cookies.txt", "client.pem"].map(|name| archive.folder().join(name));
    let all = files_below(archive.folder()).into_iter().filter(|file| !given.contains(file));
    let mut count = 0;
    for file in all {
        assert_eq!(find_secret(&fs::read(&file).unwrap()), None, "{}", file.display());
        count += 1;
    }
    assert!(count > 20, "{count} files");
    let served = Served::of(&archive);
    for path in ["/", "/runs", "/search?q=room"] {
        let page = crate::support::served::ask(&served.application, "GET", path, &[]);
        assert_eq!(find_secret(&page.content()), None, "{path}");
    }
    archive.verify();
}
