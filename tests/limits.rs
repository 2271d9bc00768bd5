//! Limits for queries: little memory, little time, and interruptible at any moment.

use std::fs;
use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};

use archive_ask::query::{Limits, Question, Running};
use archive_base::access::Access;
use archive_books::prepared::ANSWERS_FILE;
use archive_storage::Store;
use chrono::Utc;

use crate::change::crawled;
use crate::crawl::lively;
use crate::imports::import;
use crate::support::Archive;
use crate::support::program::{start, within};
use crate::support::warc::response;

/// Memory in bytes for a small part of the links of a small web.
const LITTLE: usize = 20_000;

/// The answer is the same for any memory limit; with little memory, part of the data is in files.
#[test]
fn an_answer_does_not_depend_on_its_memory() {
    let (_, archive) = crawled(lively(741, 8, 60));
    let store = Store::read_only(&archive.path).unwrap();
    for query in [
        "link order by target desc, source limit 100000 offset 7 select source, target, kind",
        "link select target, source, count group by target, source",
        "link select source, count(distinct target), min(target), median(source.depth) group by source, target order by source, min(target) desc limit 90",
        "link select count(distinct target), sum(source.importance), avg(target.importance), median(source.importance), count",
    ] {
        let ask = |limits: Limits| {
            let question = Question::new(&store, Access::unlimited(), query, Utc::now()).unwrap();
            let question = question.within(Running::new(limits, true));
            (question.answer().unwrap().rows, question.seen().unwrap().spilled_bytes)
        };
        let (usual, spilled) = ask(Limits::USUAL);
        assert!(!usual.is_empty() && spilled == 0, "{query}: {spilled}");
        let (rows, spilled) = ask(Limits { memory: LITTLE, ..Limits::USUAL });
        assert!(rows == usual, "{query}");
        let is_one_group = !query.contains("group by") && query.contains("count");
        assert!(is_one_group || spilled > LITTLE as u64, "{query}: {spilled}");
    }
}

#[test]
fn limits_are_read_and_kept() {
    let (_, archive) = crawled(lively(742, 4, 100));
    let refused = |command: &str, arguments: &[&str], code: i32, why: &str| {
        let finished = archive.run(command, arguments);
        assert_eq!(finished.code, Some(code), "{command} {arguments:?}: {}", finished.errors);
        assert!(finished.errors.contains(why), "{command} {arguments:?}: {}", finished.errors);
        finished
    };
    refused("query", &["page", "--memory", "999999"], 2, "at least 1MB");
    refused("query", &["page", "--time-limit", "soon"], 2, "not a span of time");
    for arguments in [&["page"] as &[_], &["link", "--json"], &["count captures group by url", "--csv"]] {
        let late = refused("query", &[arguments, &["--time-limit", "0s"]].concat(), 4, "timed out after 0 s");
        assert_eq!(late.errors.lines().count(), 1, "{}", late.errors);
    }
    refused("search", &["a", "--time-limit", "0s"], 4, "timed out after 0 s");
    for (command, asked) in [("query", "page"), ("search", "a")] {
        let is = |limit: &str| archive.run(command, &[asked, "--time-limit", limit]).code;
        assert_eq!(is("1h"), Some(0));
    }
}

/// Starts a query for many rows, whose reader reads some of them and then waits.
fn waiting(archive: &Archive, query: &str, files: &str) -> std::process::Child {
    let mut command = archive.command("query");
    command.args([query, "--json", "--memory", "1MB"]).env("TMPDIR", files);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let read = child.stdout.as_mut().unwrap().read(&mut [0; 16]).unwrap();
    assert!(read > 0);
    child
}

/// Returns an archive of links that take more than a megabyte of memory, and more than a pipe holds.
fn linked() -> Archive {
    let archive = Archive::new();
    let pages = (0..20).map(|page| {
        let links: String = (0..400).map(|link| format!("<a href=/{page}/{link}>{link}</a>")).collect();
        response(
            &format!("urn:test:{page}"),
            &format!("http://a.test/{page}"),
            "2024-01-01T00:00:00Z",
            &links,
        )
    });
    import(&archive, &[("links.warc", pages.collect::<Vec<_>>().concat())]);
    archive
}

#[test]
fn an_interrupted_query_ends_at_once_and_leaves_nothing() {
    let archive = linked();
    let files = archive.folder().join("files");
    fs::create_dir(&files).unwrap();
    let files = files.to_str().unwrap();
    for query in ["link order by target, source select source, target", "link select source, target"] {
        let mut child = waiting(&archive, query, files);
        assert!(child.try_wait().unwrap().is_none(), "its output is longer than a pipe holds");
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        let ended = child.wait().unwrap();
        // Shells report this as 130, as for a crawl that is interrupted twice.
        assert_eq!(ended.signal(), Some(2), "{ended}");
        assert_eq!(fs::read_dir(files).unwrap().count(), 0);
    }
    let finished = start(
        archive
            .command("query")
            .args(["link order by target, source select source, target", "--csv", "--memory", "1MB"])
            .env("TMPDIR", archive.folder().join("nowhere")),
    )
    .wait();
    assert_eq!(finished.code, Some(1));
    assert!(finished.errors.contains("a temporary file in"), "{}", finished.errors);
}

#[test]
fn a_query_is_explained() {
    let (_, archive) = crawled(lively(744, 4, 200));
    let pages = archive.json("query", &["page status = 200 and header(\"content-type\") contains \"html\""]);
    let text = "page status = 200 and header(\"content-type\") contains \"html\"";
    let explained = || archive.json("query", &[text, "--explain"]).remove(0);
    // Noted details of answers are not read from records; without them, the records are read.
    assert_eq!(explained()["records_read"], 0);
    fs::remove_file(archive.path.join(ANSWERS_FILE)).unwrap();
    let seen = explained();
    let steps = seen["steps"].as_array().unwrap();
    let names: Vec<&str> = steps.iter().map(|step| step["step"].as_str().unwrap()).collect();
    assert_eq!(names, ["start", "check", "check", "order"]);
    for (before, step) in steps.iter().zip(&steps[1..]) {
        assert_eq!(before["rows_out"], step["rows_in"], "{seen}");
    }
    assert_eq!(steps[3]["rows_out"], pages.len(), "{seen}");
    assert_eq!(seen["records_read"], steps[2]["rows_in"], "{seen}");
    assert_eq!(steps[1]["what"], "status = 200");

    let table = archive.run("query", &["count pages group by type", "--explain"]).succeeded().text();
    assert!(
        table.contains("rows out") && table.contains("group") && table.contains("0 records read"),
        "{table}"
    );
    let refused = archive.run("query", &["page", "--explain", "--archive", "http://127.0.0.1:9/"]);
    assert_eq!(refused.code, Some(2), "{}", refused.errors);
    assert!(refused.errors.contains("--explain works only for local archives"), "{}", refused.errors);
}

#[test]
fn too_few_descriptors_are_named_and_are_no_damage() {
    let (_, archive) = crawled(lively(743, 1, 20));
    for command in ["stats", "verify", "repair", "rebuild"] {
        let refused = start(&mut within("--nofile=16", &archive.command(command))).wait();
        refused.refused(1, &["Too many open files", "`ulimit -n 4096`"]);
    }
    archive.verify();
}
