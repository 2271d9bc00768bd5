//! An import that is killed again and again ends with the result of an undisturbed import.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use archive_storage::{CaptureKind, Store};

use crate::support::program::start;
use crate::support::warc::{answer, member, record, response};
use crate::support::{Archive, Dice, files_with, kills, ledger_balances};

/// Number of kills of an import, unless `ARCHIVE_KILLS` overrides it.
const KILLS: u64 = 10;

/// Number of pages in the imported files.
const PAGES: usize = 400;

/// Captures of each URL: time, kind, digest and status.
type Known = BTreeMap<String, Vec<(i64, CaptureKind, [u8; 16], u16)>>;

fn known(archive: &Archive) -> Known {
    let store = Store::read_only(&archive.path).unwrap();
    let mut known = Known::new();
    for capture in store.state().captures() {
        let (_, capture) = capture.unwrap();
        let of_url = known.entry(store.state().url(capture.url).unwrap()).or_default();
        of_url.push((capture.time, capture.kind, capture.digest, capture.status));
    }
    known
        .values_mut()
        .for_each(|captures| captures.sort_unstable_by_key(|capture| (capture.0, capture.2, capture.3)));
    known
}

/// Returns two files: pages, some of them twice; then revisits, records that share an identifier, and requests without
/// responses.
fn files(archive: &Archive) -> [PathBuf; 2] {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for number in 0..PAGES {
        let url = format!("http://h{}.example/{number}", number % 9);
        let links: String = (0..20).map(|to| format!("<a href=/{}>l</a>", (number + to) % PAGES)).collect();
        let body = format!("<title>{number}</title>{links}{}", "text ".repeat(number));
        let id = format!("urn:page:{number}");
        first.extend(member(&response(&id, &url, "2014-01-01T00:00:00Z", &body)));
        if number % 5 == 0 {
            first.extend(member(&response(&id, &url, "2014-01-01T00:00:00Z", &body)));
        }
        second.extend(member(&match number % 3 {
            0 => answer(&id, &url, "2014-01", &[], &format!("HTTP/1.1 404 Gone\r\n\r\n{number}")),
            1 => {
                let digest =
                    format!("WARC-Payload-Digest: {}", archive_storage::Digest::sha1(body.as_bytes()));
                let fields = [
                    "WARC-Type: revisit",
                    "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest",
                    "WARC-Date: 2015-01-01T00:00:00Z",
                    &format!("WARC-Target-URI: {url}"),
                    &format!("WARC-Record-ID: <urn:revisit:{number}>"),
                    &digest,
                ];
                record(&fields, "")
            }
            _ => record(
                &[
                    "WARC-Type: request",
                    "WARC-Date: 2015-01-01T00:00:00Z",
                    &format!("WARC-Target-URI: {url}"),
                    &format!("WARC-Record-ID: <urn:request:{number}>"),
                    "Content-Type: application/http",
                ],
                format!("GET /{number} HTTP/1.1\r\n\r\n"),
            ),
        }));
    }
    [archive.file("first.warc.gz", first), archive.file("second.warc.gz", second)]
}

#[test]
fn an_import_killed_again_and_again_has_every_capture_once() {
    let kills = kills(KILLS);
    let mut dice = Dice::new("kill-import");
    let calm = Archive::new();
    let files = files(&calm);
    let finished = start(calm.command("import").args(&files)).wait().succeeded();
    let mut time = finished.elapsed;
    let expected = known(&calm);
    // A request without an answer is no capture.
    let lone = (0..PAGES).filter(|number| number % 3 == 2).count();
    assert_eq!(expected.values().map(Vec::len).sum::<usize>(), 2 * PAGES - lone);

    let mut archive = Archive::new();
    let (mut in_time, mut archives) = (0, 1);
    for _ in 0..kills {
        let mut running = start(archive.command("import").args(&files));
        let wait = Duration::from_micros(dice.below(u64::try_from(time.as_micros()).unwrap()));
        std::thread::sleep(wait);
        if !running.has_ended() {
            in_time += 1;
            running.kill();
            continue;
        }
        // The machine may have been busier at first.
        time = (time + running.wait().succeeded().elapsed) / 2;
        is_whole(&archive, &expected);
        archive = Archive::new();
        archives += 1;
    }
    start(archive.command("import").args(&files)).wait().succeeded();
    is_whole(&archive, &expected);
    println!("{in_time} of {kills} kills came in time, of {archives} archives");
    assert!(in_time > kills / 3, "{in_time} kills of {kills} came in time");
}

fn is_whole(archive: &Archive, expected: &Known) {
    let found = known(archive);
    for (url, captures) in expected {
        assert_eq!(found.get(url), Some(captures), "{url}");
    }
    assert_eq!(found.len(), expected.len());
    assert_eq!(archive.verify(), expected.values().map(|captures| captures.len() as u64).sum::<u64>());
    ledger_balances(&archive.path);
    assert!(files_with(&archive.segments(), &[".open"]).is_empty(), "no segment is left open");
}

#[test]
fn an_import_killed_before_its_first_checkpoint_leaves_an_archive() {
    let archive = Archive::new();
    let files = files(&archive);
    // A pipe that stays open: the import has recorded pages and waits for more.
    let pipe = archive.folder().join("more.warc");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let _open = std::fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
    let mut import = start(archive.command("import").arg(&files[0]).arg(&pipe));
    let is_begun = || {
        let segments = archive.segments();
        segments.is_dir()
            && files_with(&segments, &[".open"]).iter().any(|file| file.metadata().unwrap().len() > 1000)
    };
    assert!(import.wait_until(is_begun));
    import.kill();
    archive.run::<&str>("stats", &[]).succeeded();
    let again = start(archive.command("import").arg(&files[0])).wait().succeeded();
    println!("{}", again.errors);
    archive.verify();
    // An archive that an earlier version left so.
    std::fs::remove_dir_all(archive.path.join("state")).unwrap();
    archive.run::<&str>("stats", &[]).refused(1, &["has segments but no state", "`archive repair`"]);
    archive.run::<&str>("repair", &[]);
    archive.verify();
}
