//! Copies in an S3 service, over a good connection and over bad ones.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::copies::crawled;
use crate::kill_repair::contents;
use crate::support::answers::whole;
use crate::support::program::{Finished, start};
use crate::support::s3::{BUCKET, Fate, Proxy, S3, to};
use crate::support::{Archive, Dice, kills};

/// Number of kills of a copy, unless `ARCHIVE_KILLS` overrides it.
const KILLS: u64 = 3;

/// One request in this many fails on a bad connection.
const WRONG_IN: u64 = 6;

/// Longer than a command waits for an answer (`s3::to`).
const STALL: Duration = Duration::from_secs(2);

/// Size of a file that is sent in parts.
const LONG_BYTES: usize = 20 << 20;

fn url(name: &str) -> String {
    format!("s3://{BUCKET}/some/{name}")
}

fn run(command: &mut Command) -> Finished {
    start(command).wait()
}

fn lengthen(archive: &Archive, dice: &mut Dice) {
    let bytes: Vec<u8> = (0..LONG_BYTES / 8).flat_map(|_| dice.below(u64::MAX).to_le_bytes()).collect();
    std::fs::write(archive.path.join("long"), bytes).unwrap();
}

/// Returns an archive restored from the newest copy.
fn restored(address: SocketAddr, url: &str) -> Archive {
    let twin = Archive::new();
    run(to(address, twin.command("copy").args(["--from", url]))).succeeded();
    twin
}

#[test]
fn a_copy_in_s3_is_made_listed_proved_restored_and_removed() {
    let (archive, _) = crawled();
    let Some(server) = S3::start(archive.folder()) else { return };
    let mut dice = Dice::new("copy to S3");
    lengthen(&archive, &mut dice);
    let (url, address) = (url("whole"), server.address);
    let copy = |more: &[&str]| {
        let mut command = archive.command("copy");
        run(to(address, command.args(["--json", "--to", &url]).args(more))).succeeded().json()
    };
    let first = &copy(&[])[0];
    assert_eq!((first["number"].as_u64(), first["is_new"].as_bool()), (Some(1), Some(true)));
    assert_eq!(copy(&[])[0]["is_new"], false);
    std::fs::write(archive.path.join("access.toml"), "# other\n").unwrap();
    let second = &copy(&[])[0];
    assert_eq!((second["number"].as_u64(), second["sent"].as_u64()), (Some(2), Some(1)), "{second}");
    assert_eq!(copy(&["--list"]).len(), 2);
    assert_eq!(copy(&["--verify"]).pop().unwrap()["findings"], 0);
    let twin = restored(address, &url);
    assert_eq!((twin.verify(), contents(&twin.path)), (archive.verify(), contents(&archive.path)));
    lengthen(&archive, &mut dice);
    let third = &copy(&["--keep", "1"])[0];
    assert_eq!(
        (third["removed_copies"].as_u64(), third["removed"].as_u64().map(|count| count >= 2)),
        (Some(2), Some(true))
    );
    assert_eq!(copy(&["--list"]).len(), 1);
    assert_eq!(copy(&["--verify"]).pop().unwrap()["findings"], 0);
    assert_eq!(restored(address, &url).verify(), archive.verify());
}

/// Starts a proxy to a server on which one request in a few fails.
pub(crate) fn bad_way(server: SocketAddr, dice: Dice) -> Proxy {
    let (dice, wrong) = (Mutex::new(dice), AtomicU64::new(0));
    Proxy::start(server, move |_| {
        if dice.lock().unwrap().below(WRONG_IN) > 0 {
            return Fate::Pass;
        }
        match wrong.fetch_add(1, Ordering::SeqCst) % 6 {
            0 => Fate::Answer(whole(503, "", b"<Error><Code>SlowDown</Code></Error>")),
            1 => Fate::Answer(whole(500, "", b"<Error><Code>InternalError</Code></Error>")),
            2 => Fate::Cut,
            3 => Fate::LoseAnswer,
            4 => Fate::CutAnswer(40),
            _ => Fate::Stall(STALL),
        }
    })
}

#[test]
fn on_a_bad_way_a_copy_arrives_whole_and_once() {
    let (archive, _) = crawled();
    let Some(server) = S3::start(archive.folder()) else { return };
    let mut dice = Dice::new("bad way to S3");
    lengthen(&archive, &mut dice);
    let (url, seed) = (url("bad"), dice.below(u64::MAX));
    let proxy = bad_way(server.address, Dice::of(seed));
    for number in 1..=3 {
        std::fs::write(archive.path.join("access.toml"), format!("# {number}\n")).unwrap();
        let mut command = archive.command("copy");
        let made = run(to(proxy.address, command.args(["--json", "--to", &url]))).succeeded().json();
        assert_eq!(made[0]["number"].as_u64(), Some(number), "each copy has a number of its own");
    }
    let mut verify = archive.command("copy");
    run(to(proxy.address, verify.args(["--verify", "--to", &url]))).succeeded();
    let twin = restored(proxy.address, &url);
    assert_eq!(contents(&twin.path), contents(&archive.path));
    twin.verify();
    println!("{} requests", proxy.asked().len());
}

#[test]
fn a_manifest_whose_answer_is_lost_is_known_to_be_there_and_another_ones_is_not_taken_for_it() {
    let (archive, _) = crawled();
    let Some(server) = S3::start(archive.folder()) else { return };
    let url = url("lost");
    let is_manifest = |line: &str| line.starts_with("PUT ") && line.contains("/manifests/");
    for (number, fate) in (1..).zip([
        Fate::LoseAnswer,
        Fate::Answer(whole(409, "", b"<Error><Code>ConditionalRequestConflict</Code></Error>")),
        Fate::Answer(whole(412, "", b"<Error><Code>PreconditionFailed</Code></Error>")),
        Fate::Cut,
        Fate::Stall(STALL),
    ]) {
        let first = AtomicBool::new(true);
        let said = fate.clone();
        let proxy = Proxy::start(server.address, move |line| {
            let is_meant = is_manifest(line) && first.swap(false, Ordering::SeqCst);
            if is_meant { fate.clone() } else { Fate::Pass }
        });
        std::fs::write(archive.path.join("access.toml"), format!("# {number}\n")).unwrap();
        let mut command = archive.command("copy");
        let made = run(to(proxy.address, command.args(["--json", "--to", &url]))).succeeded().json();
        assert_eq!(made[0]["number"].as_u64(), Some(number), "{said:?}");
    }
    // Another machine is faster, at the last moment.
    let other = archive.copy();
    let (path, server_address, target) = (other.path.clone(), server.address, url.clone());
    let first = AtomicBool::new(true);
    let proxy = Proxy::start(server.address, move |line| {
        if is_manifest(line) && first.swap(false, Ordering::SeqCst) {
            std::fs::write(path.join("access.toml"), "# the other\n").unwrap();
            let mut command = Command::new(env!("CARGO_BIN_EXE_archive"));
            run(to(server_address, command.args(["copy", "--to", &target, "--archive"]).arg(&path)))
                .succeeded();
        }
        Fate::Pass
    });
    std::fs::write(archive.path.join("access.toml"), "# this one\n").unwrap();
    let mut command = archive.command("copy");
    let words = ["another copy was made at the same time and is copy 6 now", "run the command again"];
    // It waits for its answer until the other one is done, however long that takes.
    let patient = to(proxy.address, command.args(["--to", &url])).env("AWS_READ_TIMEOUT", "60s");
    run(patient).refused(3, &words);
    let mut command = archive.command("copy");
    let made = run(to(server.address, command.args(["--json", "--to", &url]))).succeeded().json();
    assert_eq!(made[0]["number"], 7);
    let mut verify = archive.command("copy");
    run(to(server.address, verify.args(["--verify", "--to", &url]))).succeeded();
}

#[test]
fn a_copy_to_s3_killed_again_and_again_is_there_whole_or_not_at_all() {
    let (archive, _) = crawled();
    let Some(server) = S3::start(archive.folder()) else { return };
    let mut dice = Dice::new("kill copy to S3");
    let (url, address) = (url("killed"), server.address);
    lengthen(&archive, &mut dice);
    let mut calm = archive.command("copy");
    let calm = run(to(address, calm.args(["--to", &format!("{url}-calm")]))).succeeded().elapsed;
    for number in 1..=kills(KILLS) {
        std::fs::write(archive.path.join("access.toml"), format!("# {number}\n")).unwrap();
        let mut command = archive.command("copy");
        let running = start(to(address, command.args(["--to", &url, "--keep", "2"])));
        thread::sleep(Duration::from_micros(dice.below(calm.as_micros() as u64)));
        running.kill();
        let mut list = archive.command("copy");
        let copies: Vec<Value> =
            run(to(address, list.args(["--json", "--list", "--to", &url]))).succeeded().json();
        if !copies.is_empty() {
            let mut verify = archive.command("copy");
            run(to(address, verify.args(["--verify", "--to", &url]))).succeeded();
        }
    }
    let mut last = archive.command("copy");
    run(to(address, last.args(["--to", &url]))).succeeded();
    let twin = restored(address, &url);
    assert_eq!(contents(&twin.path), contents(&archive.path));
    twin.verify();
}

#[test]
fn a_service_that_fails_or_lies_is_reported_in_a_sentence() {
    let (archive, _) = crawled();
    let url = url("none");
    let refused = |answer: Vec<u8>, words: &[&str]| {
        let proxy = Proxy::start("127.0.0.1:9".parse().unwrap(), move |_| Fate::Answer(answer.clone()));
        let mut command = archive.command("copy");
        let (finished, usage) = start(to(proxy.address, command.args(["--to", &url]))).measure();
        assert!(usage.peak_mib < 250, "{usage:?}");
        let finished = finished.refused(1, words);
        assert!(finished.errors.lines().count() == 1 && finished.errors.len() < 1500, "{}", finished.errors);
        assert!(!finished.errors.contains("secret-of-the-test"), "{}", finished.errors);
    };
    refused(
        whole(403, "", b"<Error><Code>AccessDenied</Code></Error>"),
        &["the store refuses it", "credentials"],
    );
    refused(whole(404, "", b"<Error><Code>NoSuchBucket</Code></Error>"), &[&url, "not there"]);
    refused(whole(301, "Location: http://127.0.0.1:1/elsewhere\r\n", b""), &[&url, "301"]);
    // An endless answer.
    let endless = whole(200, "Content-Type: application/xml\r\n", &vec![b' '; 40 << 20]);
    refused(endless, &[&url, "limit"]);
    refused(whole(400, "", &vec![b'x'; 40 << 20]), &[&url]);
    refused(
        whole(200, "", b"<ListBucketResult><Contents><Key>../../x</Key></Contents></ListBucketResult>"),
        &[&url],
    );
    // A server that overwrites even when asked not to.
    let list = b"<ListBucketResult><Name>x</Name></ListBucketResult>";
    let proxy = Proxy::start("127.0.0.1:9".parse().unwrap(), |line| {
        Fate::Answer(if line.starts_with("PUT") {
            whole(200, "ETag: \"x\"\r\n", b"")
        } else {
            whole(200, "", list)
        })
    });
    let mut command = archive.command("copy");
    let words = ["overwrites objects although it is asked not to", "use another one"];
    run(to(proxy.address, command.args(["--to", &url]))).refused(1, &words);

    let plain = |endpoint: &str| {
        let mut command = archive.command("copy");
        to(proxy.address, command.args(["--to", &url])).env("AWS_ENDPOINT_URL", endpoint);
        run(&mut command)
    };
    plain("http://192.0.2.1").refused(1, &["without encryption", "AWS_ALLOW_HTTP"]);
    plain("192.0.2.1:9000").refused(1, &["AWS_ENDPOINT_URL", "write it like"]);
    let mut command = archive.command("copy");
    to(proxy.address, command.args(["--to", &url]))
        .env_remove("AWS_ACCESS_KEY_ID")
        .env("HOME", archive.folder());
    run(&mut command).refused(1, &["no credentials for S3", "AWS_ACCESS_KEY_ID", "~/.aws/credentials"]);
}

#[test]
fn a_store_that_keeps_nothing_is_no_copy() {
    let (archive, _) = crawled();
    let Some(server) = S3::start(archive.folder()) else { return };
    let taken = || Fate::Answer(whole(200, "ETag: \"0\"\r\n", b""));
    // Objects that end in an even digit are taken and not kept; then no manifest is.
    let is_lost = |line: &str| {
        line.starts_with("PUT ")
            && line.contains("/objects/")
            && line.ends_with(['0', '2', '4', '6', '8', 'a', 'c', 'e'])
    };
    let proxy = Proxy::start(server.address, move |line| if is_lost(line) { taken() } else { Fate::Pass });
    let url = url("nothing");
    let copy = |address| run(to(address, archive.command("copy").args(["--to", &url])));
    copy(proxy.address)
        .refused(1, &["and does not have them", "objects/00000001/", "the copy was not completed"]);
    let listed = run(to(server.address, archive.command("copy").args(["--json", "--list", "--to", &url])));
    assert!(listed.text().is_empty(), "{}", listed.text());
    let is_manifest = |line: &str| line.starts_with("PUT ") && line.contains("/manifests/");
    let proxy =
        Proxy::start(server.address, move |line| if is_manifest(line) { taken() } else { Fate::Pass });
    let refused = copy(proxy.address);
    assert_eq!(refused.code, Some(1), "{}{}", refused.text(), refused.errors);
    // The next copy sends what was not kept.
    copy(server.address).succeeded();
    run(to(server.address, archive.command("copy").args(["--verify", "--to", &url]))).succeeded();
}

#[test]
fn a_listing_that_goes_round_in_circles_ends() {
    let archive = Archive::new();
    for tokens in [&["t"][..], &["t", "u"]] {
        for contents in [
            "",
            "<Contents><Key>some/x/manifests/00000001.jsonl</Key><Size>9</Size><LastModified>2020-01-01T00:00:00.000Z</LastModified></Contents>",
        ] {
            let pages = AtomicU64::new(0);
            let nobody = crate::support::nobody_at(9);
            let proxy = Proxy::start(nobody, move |_| {
                let token = tokens[pages.fetch_add(1, Ordering::SeqCst) as usize % tokens.len()];
                let page = format!(
                    "<?xml version=\"1.0\"?><ListBucketResult><IsTruncated>true</IsTruncated>\
                     <NextContinuationToken>{token}</NextContinuationToken>{contents}</ListBucketResult>"
                );
                Fate::Answer(whole(200, "Content-Type: application/xml\r\n", page.as_bytes()))
            });
            let mut command = archive.command("copy");
            run(to(proxy.address, command.args(["--list", "--to", &url("round")])))
                .refused(1, &["names the same next page of a listing again and again"]);
        }
    }
}
