//! Every mistake is reported in one clear sentence with an exit code, and costs no stored data.

use std::fs;
use std::path::Path;
use std::time::Duration;

use archive_storage::CaptureKind;
use archive_testweb::Config;
use redb::ReadableTable as _;

use crate::crawl::{everything, lively};
use crate::support::captures::assert_same;
use crate::support::program::start;
use crate::support::reach::reach;
use crate::support::small_disk::SmallDisk;
use crate::support::{Archive, TestWeb, captures, ledger_balances};

/// Exit codes as documented in the help text.
const FAILED: i32 = 1;
const USAGE: i32 = 2;
const IN_USE: i32 = 3;

#[test]
fn unreadable_seeds_are_reported_before_anything_is_created() {
    let archive = Archive::new();
    let crawl = |seeds: &Path| start(archive.command("crawl").arg("--seeds").arg(seeds)).wait();

    crawl(Path::new("/nowhere/seeds.txt")).refused(
        USAGE,
        &["cannot read the seeds file /nowhere/seeds.txt", "No such file", "write one URL a line"],
    );
    let bad = archive.file("bad.txt", "http://a.test/\n  ftp://b.test/\n# fine\nhttp://c.test/ dept=3\n");
    crawl(&bad).refused(
        USAGE,
        &[
            "bad.txt, line 2, column 3: 'ftp://b.test/' has the scheme ftp",
            "bad.txt, line 4, column 16",
            "'dept'",
        ],
    );
    let binary = archive.file("binary.txt", b"http://a.test/\n\xff\xfe\n");
    crawl(&binary).refused(USAGE, &["binary.txt is not UTF-8 text (byte 15)", "save it as UTF-8"]);
    let empty = archive.file("empty.txt", "# nothing\n");
    crawl(&empty).refused(USAGE, &["empty.txt", "there is no seed in it"]);
    assert!(!archive.path.exists(), "no archive is made by mistake");
}

#[test]
fn senseless_options_are_reported() {
    let archive = Archive::new();
    let seeds = archive.seeds(&["http://a.test/".to_owned()]);
    let crawl = |more: &[&str]| start(archive.command("crawl").arg("--seeds").arg(&seeds).args(more)).wait();
    crawl(&["--scope", "everything"]).refused(USAGE, &["'everything' is not a scope", "host, site, any"]);
    crawl(&["--scope", "regex:("]).refused(USAGE, &["pattern"]);
    crawl(&["--for", "soon"]).refused(USAGE, &["'soon' is not a span of time", "10m"]);
    crawl(&["--per-host", "4"]).refused(USAGE, &["--per-host above 1 needs --delay 0"]);
    crawl(&["--connect-to", "a:b"]).refused(USAGE, &["HOST:PORT:ADDR:PORT"]);
    let refresh = start(archive.command("refresh").args(["--budget", "x"])).wait();
    refresh.refused(USAGE, &["archive: invalid value 'x' for '--budget <N>': write a whole number"]);
    for workers in ["0", "4097", "1000000000000"] {
        crawl(&["--workers", workers]).refused(USAGE, &["--workers has to be from 1 to 4096"]);
    }
    assert!(!archive.path.exists());
    crawl(&["--workers", "4096"]).refused(FAILED, &["no seed could be fetched"]);
}

#[test]
fn commands_on_an_archive_that_is_not_there_say_so() {
    let archive = Archive::new();
    for command in ["stats", "verify"] {
        archive.run::<&str>(command, &[]).refused(FAILED, &["web.archive holds no archive"]);
    }
    archive.run("history", &["http://a.test/"]).refused(FAILED, &["web.archive holds no archive"]);
    archive.run("query", &["site importance > 1"]).refused(FAILED, &["web.archive holds no archive"]);
    archive
        .run("refresh", &["--budget", "1"])
        .refused(FAILED, &["there is no archive in", "archive crawl --seeds"]);
    assert!(!archive.path.exists());
}

#[test]
fn a_file_in_the_place_of_an_archive_is_refused_by_each_command() {
    let mut archive = Archive::new();
    let seeds = archive.seeds(&["http://a.test/".to_owned()]);
    archive.path = archive.file("some.warc", "");
    let seeds = seeds.to_str().unwrap();
    for (command, arguments) in [
        ("stats", &[][..]),
        ("verify", &[]),
        ("repair", &[]),
        ("serve", &[]),
        ("rank", &[]),
        ("query", &["page"]),
        ("crawl", &["--seeds", seeds]),
        ("import", &[seeds]),
    ] {
        archive.run(command, arguments).refused(USAGE, &["some.warc", "a file, but an archive is a folder"]);
    }
}

#[test]
fn what_is_left_empty_is_named() {
    let (served, archive) = (TestWeb::start(Config::plain(62, 1, 4)), Archive::new());
    start(&mut archive.crawl(&served.web.seeds(1), &everything(&served))).wait().succeeded();
    archive.run("why", &[""]).refused(USAGE, &["no URL is given"]);
    archive.run("search", &["page type:"]).refused(USAGE, &["column 6: nothing follows `type:`"]);
    // Reported before anything is computed.
    for method in ["opic", "links", "symmetric", "hits", "harmonic"] {
        let refused = archive.run("rank", &["--method", method, "--damping", "0.5"]);
        refused.refused(USAGE, &["has no damping to choose; leave out --damping"]);
    }
    let refused = archive.run("rank", &["--save", ""]).refused(USAGE, &["'' is not a name for a column"]);
    assert!(refused.output.is_empty(), "{}", refused.text());
    let same = ["--listen", "127.0.0.1:8070", "--replay-listen", "127.0.0.1:8070"];
    archive.run("serve", &same).refused(USAGE, &["--replay-listen are both 127.0.0.1:8070"]);
}

#[test]
fn an_unwritable_folder_is_reported() {
    let mut archive = Archive::new();
    let folder = archive.folder().join("readonly");
    let Some(_disk) = SmallDisk::mount(folder.clone(), "ro,size=1m") else { return };
    let seeds = archive.seeds(&["http://a.test/".to_owned()]);
    archive.path = folder.join("web.archive");
    let refused = start(archive.command("crawl").arg("--seeds").arg(seeds)).wait();
    let refused = refused.refused(FAILED, &["readonly/web.archive", "Read-only file system"]);
    assert_eq!(refused.errors.matches("Read-only").count(), 1, "said once: {}", refused.errors);
    assert_eq!(refused.errors.lines().count(), 1, "{}", refused.errors);
}

#[test]
fn a_full_disk_ends_a_crawl_which_continues_when_there_is_room() {
    let mut archive = Archive::new();
    let folder = archive.folder().join("small");
    let Some(disk) = SmallDisk::mount(folder.clone(), "size=2500k") else { return };
    archive.path = folder.join("web.archive");
    let served = TestWeb::start(lively(61, 8, 400));
    let seeds = served.web.seeds(2);
    let mut options = everything(&served);
    options.extend(["--disk-min", "0"].map(str::to_owned));
    let crawl = |more: &[&str]| start(archive.crawl(&seeds, &options).args(more)).wait();

    // Some captures are stored and reported before the disk is full.
    crawl(&["--limit", "100"]).succeeded();
    let acknowledged = captures(&archive.path);
    for _ in 0..2 {
        let full = crawl(&[])
            .refused(FAILED, &["No space left on device", "free some space and run the same command again"]);
        let sentences = full.errors.lines().filter(|line| line.contains("No space left")).count();
        assert_eq!(sentences, 1, "{}", full.errors);
    }
    disk.change("size=100m");
    let rest = crawl(&[]).succeeded();
    assert!(rest.errors.contains("nothing left to fetch"), "{}", rest.errors);

    let captured = captures(&archive.path);
    assert_same(&captured.urls(), &reach(&served.web, &seeds), "captured in spite of a full disk");
    captured.are_single_answers();
    for (url, before) in &acknowledged.0 {
        assert_eq!(captured.0[url][0], before[0], "{url} is where it was");
    }
    assert_eq!(archive.verify(), captured.count());
    ledger_balances(&archive.path);

    let tiny = archive.folder().join("tiny");
    let Some(_disk) = SmallDisk::mount(tiny.clone(), "size=8k") else { return };
    for format in ["warc", "wacz", "cdxj", "parquet", "links"] {
        let output = tiny.join(format);
        let full = start(archive.command("export").arg(format).arg("--output").arg(&output)).wait();
        let says = format!("{}: No space left on device", output.display());
        full.refused(FAILED, &[&says, "free some space"]);
        assert!(fs::read_dir(&tiny).unwrap().next().is_none(), "{format} leaves something");
    }
    let store = format!("file://{}", tiny.join("copies").display());
    let full = start(archive.command("copy").args(["--to", &store])).wait();
    full.refused(FAILED, &[&store, "no room is left in the store; free some space"]);
}

#[test]
fn hosts_that_do_not_answer_are_reported_and_recorded() {
    let archive = Archive::new();
    let seeds = ["http://nothing.invalid/a".to_owned(), "http://127.0.0.1:9/".to_owned()];
    let ended =
        start(&mut archive.crawl::<&str>(&seeds, &[])).wait().refused(FAILED, &["no seed could be fetched"]);
    let reasons =
        ["the host name cannot be resolved", "127.0.0.1 is not a public address; --allow-private permits it"];
    for (url, reason) in seeds.iter().zip(reasons) {
        let line = format!("archive: the seed {url} could not be fetched: {reason}");
        assert!(ended.errors.contains(&line), "{line}: {}", ended.errors);
        let history = archive.json("history", &[url]);
        assert_eq!(history.len(), 1, "{history:?}");
        assert_eq!((&history[0]["kind"], &history[0]["error"]), (&"failed".into(), &reason.into()));
        archive.run("get", &[url]).refused(FAILED, &["was never captured: every fetch failed", url]);
    }
    assert_eq!(captures(&archive.path).of_kind(CaptureKind::Failed).len(), 2);
    archive.verify();
}

#[test]
fn an_archive_of_a_newer_format_is_refused() {
    let served = TestWeb::start(Config::plain(62, 1, 3));
    let archive = Archive::new();
    let seeds = served.web.seeds(1);
    start(&mut archive.crawl(&seeds, &everything(&served))).wait().succeeded();

    const NUMBERS: redb::TableDefinition<'_, &str, u64> = redb::TableDefinition::new("numbers");
    let catalogue = redb::Database::open(archive.path.join("state/catalogue.redb")).unwrap();
    let transaction = catalogue.begin_write().unwrap();
    let format = {
        let mut numbers = transaction.open_table(NUMBERS).unwrap();
        let format = numbers.get("format").unwrap().unwrap().value();
        numbers.insert("format", format + 1).unwrap();
        format
    };
    transaction.commit().unwrap();
    drop(catalogue);

    let sentence =
        format!("this archive has format {}, but this release reads formats up to {format}", format + 1);
    let words = [sentence.as_str(), "use a newer release"];
    start(&mut archive.crawl(&seeds, &everything(&served))).wait().refused(FAILED, &words);
    archive.run::<&str>("stats", &[]).refused(FAILED, &words);
    archive.run("query", &["site importance > 1"]).refused(FAILED, &words);
}

#[test]
fn a_second_crawl_leaves_the_first_alone() {
    let served = TestWeb::start(Config { latency: Duration::from_millis(20), ..lively(63, 4, 150) });
    let archive = Archive::new();
    let seeds = served.web.seeds(2);
    let options = everything(&served);
    let mut first = start(&mut archive.crawl(&seeds, &options));
    assert!(first.wait_until(|| served.server.requests() > 5), "the first crawl has begun");
    let process = format!("process {}", first.id());
    let words = ["web.archive is in use by", process.as_str(), "crawl"];
    start(&mut archive.crawl(&seeds, &options)).wait().refused(IN_USE, &words);
    archive.run("refresh", &["--budget", "5"]).refused(IN_USE, &words);
    // Readers see the last checkpoint.
    archive.run::<&str>("stats", &[]).succeeded();
    let ended = first.wait().succeeded();
    assert!(ended.errors.contains("nothing left to fetch"), "{}", ended.errors);
    captures(&archive.path).are_single_answers();
}

#[test]
fn a_mistake_in_a_query_is_shown_where_it_is() {
    let served = TestWeb::start(Config::plain(64, 1, 3));
    let archive = Archive::new();
    start(&mut archive.crawl(&served.web.seeds(1), &everything(&served))).wait().succeeded();
    archive.run("query", &["site importence > 10"]).refused(
        USAGE,
        &[
            "line 1, column 6",
            "no field `importence`",
            "  site importence > 10\n       ^^^^^^^^^^",
            "`importance`",
        ],
    );
    archive
        .run("query", &["site importance > "])
        .refused(USAGE, &["line 1, column 1", "expected a value", "^"]);
    archive.run("get", &["http://[/"]).refused(USAGE, &["'http://[/' is not a URL"]);
    archive
        .run("get", &["http://a.test/", "--at", "yesterday"])
        .refused(USAGE, &["'yesterday' is not a time"]);
    archive.run("get", &["http://a.test/"]).refused(FAILED, &["http://a.test/ is not in ", "web.archive"]);
}
