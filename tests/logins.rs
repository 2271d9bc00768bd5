//! Log-ins: a web with a door of each kind, crawled whole, of which nothing secret is left anywhere.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use archive_storage::digest::hex;
use archive_testweb::tls::{AUTHORITY, Certificate, serve_with_tls};

use md5::{Digest as _, Md5};

use crate::sessions::exported;
use crate::support::Archive;
use crate::support::answers::{Answers, field, html, nothing, plain, whole};
use crate::support::program::{Finished, start};
use crate::support::served::Served;

/// All that nobody may find: passwords, values and cookies, as they are given and as they are sent.
const SECRETS: [&str; 7] = [
    "d1gest-s3cret",
    "b4sic-s3cret",
    "YW5uYTpiNHNpYy1zM2NyZXQ=",
    "f1eld-s3cret",
    "c00kie-s3cret",
    "r3newed-s3cret",
    "O7Hr+yf0FRo7E/qHcmI4T6YaTKmhRANCAATiFwAaHHV34eZHK18Qtuqmk1r8EGtE",
];

/// Hosts with a door each, below `faults.test`.
const DOORS: [&str; 6] = ["cookies", "basic", "digest", "field", "certificate", "referer"];

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
            "field" => field(head, "X-Api-Key") == "f1eld-s3cret",
            "referer" => path == "/" || field(head, "Referer").contains(host),
            // Nobody else gets through to here.
            _ => true,
        };
        seen.lock().unwrap().push((format!("{host}{path}"), is_open));
        match path {
            "/robots.txt" if cookies.is_empty() && head.find("Authorization").is_none() => {
                plain("User-agent: *\nAllow: /")
            }
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
fn has_proof(field: &str, path: &str) -> bool {
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
    let scheme = if door == "referer" { "http" } else { "https" };
    format!("{scheme}://{door}.faults.test/")
}

/// Adds a log-in, with a secret on standard input.
fn add(archive: &Archive, arguments: &[&str], secret: &str) -> Finished {
    let command = archive.command("login add");
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$0\" \"$@\" < \"$SECRET\""]).env("SECRET", archive.file("secret", secret));
    start(shell.arg(command.get_program()).args(command.get_args()).args(arguments)).wait()
}

/// Files below a folder, but for those of the secrets.
fn files_below(folder: &Path) -> Vec<PathBuf> {
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
fn a_web_with_doors_is_crawled_whole_and_nothing_secret_is_left_anywhere() {
    let (server, log) = doors();
    let archive = Archive::new();
    let open = serve_with_tls(server.address, false).unwrap();
    let guarded = serve_with_tls(server.address, true).unwrap();
    let authority = archive.file("authority.pem", AUTHORITY).display().to_string();
    let (port_80, port_443) = (format!(":80:{}", server.address), format!(":443:{open}"));
    let certificate = format!("certificate.faults.test:443:{guarded}");
    let log_file = archive.folder().join("run.log").display().to_string();
    let options = [
        "--cacert",
        &authority,
        "--connect-to",
        &certificate,
        "--connect-to",
        &port_80,
        "--connect-to",
        &port_443,
    ];
    let crawl =
        [&options[..], &["--delay", "0", "--patience", "2s", "--log", &log_file, "--cookies", "kept"]]
            .concat();
    let seeds = DOORS.map(url);
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
    ] {
        let said = add(&archive, &[&format!("{door}.faults.test"), way, value], secret).succeeded().errors;
        assert!(
            hidden.iter().all(|words| said.contains(words)) && find_secret(said.as_bytes()).is_none(),
            "{said}"
        );
    }
    let file = archive.path.join("secrets/logins.json");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let listed = archive.json::<&str>("login list", &[]);
    let kinds: Vec<&str> = listed.iter().map(|login| login["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["cookies", "basic", "digest", "field", "certificate"]);
    assert_eq!([&listed[0]["name"], &listed[1]["name"]], ["sid", "anna"]);

    let crawl = start(&mut archive.crawl(&seeds, &crawl)).wait().succeeded();
    assert!(crawl.errors.contains("a log-in (basic) is shown at basic.faults.test"), "{}", crawl.errors);
    assert_eq!(find_secret(crawl.errors.as_bytes()), None);
    let asked = std::mem::take(&mut *log.lock().unwrap());
    for door in DOORS {
        for path in ["", "room"] {
            let page = format!("{door}.faults.test/{path}");
            assert!(asked.contains(&(page.clone(), true)), "{page} {asked:?}");
            // A server has to ask for a proof once.
            let is_first = door == "digest" && path.is_empty();
            assert_eq!(asked.contains(&(page.clone(), false)), is_first, "{page} {asked:?}");
        }
    }
    let ends = |url: &str| url.contains("logout") || url.contains("sign-out");
    assert!(!asked.iter().any(|(url, _)| ends(url) && !url.starts_with("referer")), "{asked:?}");
    let why = archive.json("why", &["https://basic.faults.test/logout", "--as-archivist"]).remove(0);
    assert_eq!(why["refusal"], "ignored", "{why}");

    // Marked, and shown to reviewers only.
    let query = "pages url contains 'room' select url, session";
    let rooms = archive.json("query", &[query, "--as-archivist"]);
    let sessions: Vec<_> =
        rooms.iter().map(|row| (row["url"].as_str().unwrap(), row["session"].as_str())).collect();
    for door in DOORS {
        let session = (door != "referer").then_some("login");
        assert!(sessions.contains(&(&format!("{}room", url(door)), session)), "{sessions:?}");
    }
    let shown = archive.json("query", &[query]);
    assert_eq!(shown.len(), 1, "{shown:?}");

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

#[test]
fn log_ins_are_kept_private_and_forgotten() {
    let archive = Archive::new();
    let server = Answers::start(|_, path| match path {
        "/" => html("<title>a</title><a href=/1>1</a><a href=/2>2</a>"),
        "/1" | "/2" => whole(401, "WWW-Authenticate: Basic realm=x\r\n", b"closed"),
        _ => nothing(),
    });
    let crawl = || start(&mut archive.crawl(&["http://a.test/".to_owned()], &server.at_once())).wait();
    add(&archive, &["https://a.test", "--basic", "anna"], "x").refused(2, &["it has to be a host"]);
    add(&archive, &["a.test", "--basic", "anna"], "").refused(2, &["the password is empty"]);
    add(&archive, &["a.test"], "x").refused(2, &["--basic <NAME>"]);
    add(&archive, &["a.test", "--field", "Host"], "x").refused(2, &["the program sets this field itself"]);
    add(&archive, &["http://a.test", "--basic", "anna", "--shown"], "x").succeeded();
    assert!(!archive.path.join("access.toml").exists());
    let said = crawl().succeeded().errors;
    let shown = "a log-in (basic) is shown at http://a.test; access.toml shows everybody what it opens";
    assert!(said.contains(shown), "{said}");
    assert_eq!(said.matches("a.test refuses its log-in (status 401)").count(), 1, "{said}");
    let file = archive.path.join("secrets/logins.json");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o604)).unwrap();
    crawl().refused(1, &["secrets/logins.json", "its mode is 604", "chmod 600"]);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    archive.run("login remove", &["b.test"]).refused(2, &["there is no log-in for b.test"]);
    archive.run("login remove", &["http://a.test"]).succeeded();
    assert!(!crawl().succeeded().errors.contains("log-in"));
    assert!(archive.json::<&str>("login list", &[]).is_empty());
}
