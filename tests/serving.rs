//! The server in its environment: several archives, sockets of a supervisor, TimeGates of other archives, packages for
//! download.

use std::fs;
use std::io::{Cursor, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use zip::ZipArchive;

use crate::imports::import;
use crate::support::program::start;
use crate::support::served::{Answer, Served, ask};
use crate::support::warc::response;
use crate::support::{Archive, Dice, nobody_at, skip};

const DAY: &str = "2020-01-02T03:04:05Z";

/// Folder of the examples.
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/serve");

/// Returns an archive of some pages.
fn holding(pages: &[(&str, &str)]) -> Archive {
    let archive = Archive::new();
    let record = |(number, (url, body)): (usize, &(&str, &str))| {
        response(&format!("urn:test:{number}"), url, DAY, body)
    };
    let records: Vec<u8> = pages.iter().enumerate().flat_map(record).collect();
    import(&archive, &[("pages.warc", records)]);
    archive
}

fn get(address: &str, path: &str) -> Answer {
    ask(address, "GET", path, &[])
}

fn text(answer: &Answer) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}

#[test]
fn several_archives_have_addresses_of_their_own() {
    let (news, law) = (holding(&[("http://news.test/", "news")]), holding(&[("http://law.test/", "law")]));
    let mut command = news.command("serve");
    command.arg("--archive").arg(&law.path);
    let served =
        Served::spawn(command.args(["--listen", "127.0.0.1:0", "--replay-listen", "127.0.0.1:0"]), 2);
    let (application, replay) = &served.further[0];
    for (application, replay, own, other) in
        [(&served.application, &served.replay, "news", "law"), (application, replay, "law", "news")]
    {
        let page = |name: &str| get(application, &format!("/page?url=http://{name}.test/")).status;
        let shown = |name: &str| get(replay, &format!("/web/20200102030405/http://{name}.test/")).status;
        assert_eq!((page(own), page(other), shown(own), shown(other)), (200, 404, 200, 404), "{own}");
    }
    let start = text(&get(&served.application, "/"));
    assert!(start.contains(&format!("<a href=\"http://{application}\">")), "{start}");
    let start = text(&get(application, "/"));
    assert!(start.contains(&format!("<a href=\"http://{}\">", served.application)), "{start}");
    let mut command = news.command("serve");
    command.arg("--archive").arg(&law.path);
    command.args(["--origin", "https://a.test", "--replay-origin", "https://b.test"]);
    start_refused(&mut command, "give an origin and a replay origin for each of the 2 archives");
}

fn start_refused(command: &mut Command, why: &str) {
    let refused = start(command).wait();
    assert!(refused.code == Some(1) && refused.errors.contains(why), "{}", refused.errors);
}

/// A process that is killed when this is dropped.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn it_serves_on_sockets_that_it_is_given() {
    if Command::new("systemd-socket-activate").arg("--version").output().is_err() {
        return skip("no systemd-socket-activate");
    }
    let archive = holding(&[("http://a.test/", "words")]);
    let unit = fs::read_to_string(Path::new(EXAMPLES).join("archive-serve.service")).unwrap();
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let line = line.replace("/usr/local/bin/archive", env!("CARGO_BIN_EXE_archive"));
    let line = line.replace("/srv/web.archive", archive.path.to_str().unwrap());
    let activated = |addresses: &[&str]| {
        let mut command = Command::new("systemd-socket-activate");
        command.args(addresses.iter().flat_map(|address| ["-l", address])).args(line.split(' '));
        command
    };
    let (application, replay) = (nobody_at(3).to_string(), nobody_at(4).to_string());
    let mut command = activated(&[&application, &replay]);
    let mut server = Guard(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    // The sockets exist before the server does.
    while TcpStream::connect(&application).is_err() {
        assert!(server.0.try_wait().unwrap().is_none());
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(text(&get(&application, "/health")), "ok\n");
    assert!(text(&get(&replay, "/web/20200102030405/http://a.test/")).contains("words"));
    drop(server);

    let alone = nobody_at(3).to_string();
    let running = start(&mut activated(&[&alone]));
    while TcpStream::connect(&alone).is_err() {
        thread::sleep(Duration::from_millis(10));
    }
    let refused = running.wait();
    assert!(refused.errors.contains("1 sockets were passed for 1 archives"), "{}", refused.errors);
}

#[test]
fn systemd_accepts_the_units_of_the_server() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        return skip("no systemd-analyze");
    }
    let archive = Archive::new();
    let units = ["archive-serve.service", "archive-serve.socket"].map(|name| {
        let unit = fs::read_to_string(Path::new(EXAMPLES).join(name)).unwrap();
        archive.file(name, unit.replace("/usr/local/bin/archive", env!("CARGO_BIN_EXE_archive")))
    });
    let judged = Command::new("systemd-analyze").arg("verify").args(&units).output().unwrap();
    let said = String::from_utf8_lossy(&judged.stderr);
    let ours: Vec<&str> = said.lines().filter(|line| line.contains("archive-serve")).collect();
    assert!(judged.status.success() && ours.is_empty(), "{said}");
}

#[test]
fn what_is_missing_is_linked_to_other_archives() {
    let archive = holding(&[("http://a.test/", "words")]);
    let gates = ["--timegate", "https://one.test/timegate", "--timegate", "https://two.test/?gate="];
    let served = Served::with(&archive, &gates);
    let missing = get(&served.replay, "/web/2020/http://b.test/x?a=%22%3E&b=c");
    let page = text(&missing);
    assert_eq!(missing.status, 404);
    for link in [
        "href=\"https://one.test/timegate/http://b.test/x?a=%22%3E&amp;b=c\"",
        "href=\"https://two.test/?gate=http://b.test/x?a=%22%3E&amp;b=c\"",
    ] {
        assert!(page.contains(link), "{page}");
    }
    let expected = "<https://one.test/timegate/http://b.test/>; rel=\"timegate\", \
                    <https://two.test/?gate=http://b.test/>; rel=\"timegate\"";
    for path in ["/timegate/http://b.test/", "/web/2020im_/http://b.test/", "/web/http://b.test/"] {
        assert_eq!(get(&served.replay, path).get("link"), Some(expected), "{path}");
    }
    let there = get(&served.replay, "/web/20200102030405/http://a.test/");
    assert!(there.status == 200 && !there.get("link").unwrap().contains("one.test"));
    let refused = archive.run("serve", &["--timegate", "file:///etc"]);
    assert!(refused.code == Some(2) && refused.errors.contains("https://example.org/timegate/"));
}

#[test]
fn packages_hold_what_is_asked_for_and_may_be_shown() {
    let pages = [("http://a.test/", "one"), ("http://a.test/hidden", "two"), ("http://b.test/", "three")];
    let archive = holding(&pages);
    fs::write(archive.path.join("access.toml"), "[[rule]]\nprefix = \"test,a)/hidden\"\n").unwrap();
    let served = Served::of(&archive);
    let package = get(&served.application, "/wacz?site=a.test");
    assert_eq!((package.status, package.get("content-type")), (200, Some("application/wacz")));
    assert_eq!(package.get("content-length"), Some(&*package.body.len().to_string()));
    let mut zip = ZipArchive::new(Cursor::new(package.body.clone())).unwrap();
    let mut description = String::new();
    zip.by_name("datapackage.json").unwrap().read_to_string(&mut description).unwrap();
    let description: Value = serde_json::from_str(&description).unwrap();
    assert_eq!(description["description"], "page site = \"a.test\" and captures > 0");

    let again = Archive::new();
    import(&again, &[("a.wacz", package.body)]);
    let urls = again.json("query", &["page captures > 0 select url"]);
    assert_eq!(urls.iter().map(|row| row["url"].as_str().unwrap()).collect::<Vec<_>>(), ["http://a.test/"]);

    for (path, status) in [
        ("/wacz?query=page+url+%3D+%22http://b.test/%22", 200),
        ("/wacz?query=page+tpye+%3D+xml", 400),
        ("/wacz?query=page+status+%3D+500", 404),
        ("/wacz?site=none.test", 404),
        ("/wacz?site=%22+or+captures+%3E+0+or+site+%3D+%22", 404),
        ("/wacz?site=a.test&query=page", 400),
        ("/wacz", 400),
    ] {
        assert_eq!(get(&served.application, path).status, status, "{path}");
    }
    // The other origin creates no packages, so an image in an archived page cannot request one.
    assert_eq!(get(&served.replay, "/wacz?site=a.test").status, 404);
}

#[test]
fn two_packages_are_made_at_once_and_who_does_not_read_is_given_up() {
    let mut dice = Dice::new("packages");
    let noise: String = (0..(24 << 20)).map(|_| char::from(b'!' + dice.below(90) as u8)).collect();
    let archive = holding(&[("http://a.test/", &noise)]);
    let served = Served::of(&archive);
    let ask = |_| {
        let mut client = TcpStream::connect(&served.application).unwrap();
        let head = format!("GET /wacz?site=a.test HTTP/1.1\r\nHost: {}\r\n\r\n", served.application);
        client.write_all(head.as_bytes()).unwrap();
        client
    };
    let mut silent = [0, 1].map(ask);
    silent.iter_mut().for_each(|client| client.read_exact(&mut [0; 15]).unwrap());
    let refused = get(&served.application, "/wacz?site=a.test");
    assert_eq!(refused.status, 503, "{}", text(&refused));
    while get(&served.application, "/wacz?site=a.test").status == 503 {
        thread::sleep(Duration::from_millis(200));
    }
    drop(silent);
}
