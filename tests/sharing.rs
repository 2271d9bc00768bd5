//! Access rules, topics and watches of a cluster apply in all archives that take them over; an archive's own ones stay.

use std::fs;
use std::process::Command;

use archive_base::access;
use archive_books::cluster::FILES_MAX;
use archive_peers::share::WATCH_BYTES_MAX;
use serde_json::Value;

use crate::access::queried;
use crate::cluster::{Nodes, still};
use crate::support::program::{Finished, start};
use crate::support::{Archive, TestWeb};

const EVERYTHING: &str = "[[rule]]\nprefix = \"\"\n";

pub(crate) fn crawled(served: &TestWeb) -> Nodes<'_> {
    let nodes = Nodes::brisk(served, 2);
    nodes.run();
    nodes
}

pub(crate) fn share(nodes: &Nodes, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_archive"));
    command.args(["cluster", "share", "--cluster", &nodes.url()]).args(more);
    nodes.reach(&mut command);
    command
}

pub(crate) fn ask(nodes: &Nodes, more: &[&str]) -> Finished {
    start(&mut share(nodes, more)).wait()
}

pub(crate) fn folder(archive: &Archive) -> &str {
    archive.path.to_str().unwrap()
}

pub(crate) fn take_over(nodes: &Nodes) -> Finished {
    let [one, other] = [0, 1].map(|node| folder(&nodes.archives[node]));
    ask(nodes, &["--archive", one, "--archive", other])
}

/// Publishes a file under this name.
fn publish(nodes: &Nodes, name: &str, content: &[u8]) -> Finished {
    let file = nodes.archives[0].file(name, content);
    ask(nodes, &["--set", file.to_str().unwrap()])
}

/// Publishes files of the first archive.
fn publish_own(nodes: &Nodes, files: &[&str]) -> String {
    let paths = files.iter().map(|file| nodes.archives[0].path.join(file).to_str().unwrap().to_owned());
    let options: Vec<String> = std::iter::once("--set".to_owned()).chain(paths).collect();
    ask(nodes, &options.iter().map(String::as_str).collect::<Vec<_>>()).succeeded().text()
}

/// Teaches an archive a topic from some of its pages.
fn learn(archive: &Archive, name: &str, examples: usize) -> Vec<String> {
    let pages = archive.json("query", &["page type = html and captures > 0 and status = 200 select url"]);
    let pages = pages.iter().take(examples).map(|page| page["url"].as_str().unwrap().to_owned());
    let pages: Vec<String> = pages.collect();
    let list = archive.file("examples.txt", pages.join("\n"));
    archive.run("topic learn", &[name, "--from", list.to_str().unwrap()]).succeeded();
    pages
}

fn topics(archive: &Archive) -> Vec<Value> {
    archive.json("topic list", &[""; 0]).iter().map(|topic| topic["examples"].clone()).collect()
}

fn watch_again(archive: &Archive, query: &str, every: &str) {
    archive.run("watch remove", &["pages"]);
    archive.run("watch", &[query, "--name", "pages", "--every", every]).succeeded();
}

fn watches(archive: &Archive) -> Vec<Value> {
    archive.json("watch list", &[""; 0])
}

#[test]
fn rules_of_a_cluster_hold_in_all_archives_that_take_them_over() {
    let served = TestWeb::start(still(93, 40, 0));
    let nodes = crawled(&served);
    let folders = [0, 1].map(|node| folder(&nodes.archives[node]));
    let shown = || nodes.archives.iter().map(|archive| queried(archive, &[]).len()).collect::<Vec<_>>();
    let rules = |text: &str| publish(&nodes, access::FILE, text.as_bytes());
    let all = shown();
    assert!(all.iter().all(|pages| *pages > 0));
    for nothing in [take_over(&nodes), ask(&nodes, &[])] {
        assert!(nothing.succeeded().errors.contains("nothing is published"));
    }
    rules("[[rule]]\nprefx = \"\"\n").refused(2, &["access.toml, line 2", "prefx", "nothing was published"]);
    publish(&nodes, "rules.toml", b"")
        .refused(2, &["'rules.toml' cannot be published; only access.toml, NAME.topic"]);
    let most = access::BYTES_MAX as usize;
    rules(&"#".repeat(most + 1)).refused(2, &["access.toml", &format!("longer than {most} bytes")]);

    assert_eq!(rules(EVERYTHING).succeeded().text(), "access.toml: version 1 is published\n");
    assert_eq!(take_over(&nodes).succeeded().text().matches("access.toml: version 1\n").count(), 2);
    assert_eq!(shown(), [0, 0]);
    assert_eq!(take_over(&nodes).succeeded().text(), "", "they have them");

    let watching = ["--archive", folders[0], "--archive", folders[1], "--every", "50ms"];
    let mut watching = start(&mut share(&nodes, &watching));
    rules(&"#".repeat(most)).succeeded();
    assert!(watching.wait_until(|| shown() == all));
    rules(EVERYTHING).succeeded();
    assert!(watching.wait_until(|| shown() == [0, 0]));
    ask(&nodes, &["--remove", access::FILE]).succeeded();
    assert!(watching.wait_until(|| shown() == all));
    watching.signal("-TERM");
    assert_eq!(watching.wait().code, Some(4));
    assert_eq!(ask(&nodes, &[]).succeeded().text(), "access.toml: version 4 (removed)\n");
    ask(&nodes, &["--remove", access::FILE]).refused(2, &["no file 'access.toml' is published"]);

    // Rules that a user wrote into an archive are not lost, nor are changes to rules from the cluster.
    let own = nodes.archives[1].path.join(access::FILE);
    fs::write(&own, "# my own\n").unwrap();
    rules(EVERYTHING).succeeded();
    for text in ["# my own\n", "# changed\n"] {
        fs::write(&own, text).unwrap();
        take_over(&nodes)
            .refused(1, &[folders[1], "access.toml differs from the cluster's version", "--set"]);
        assert_eq!(shown(), [0, all[1]]);
        assert_eq!(fs::read_to_string(&own).unwrap(), text);
    }
    fs::write(&own, EVERYTHING).unwrap();
    assert_eq!(take_over(&nodes).succeeded().text(), "", "what is the same is the cluster's");

    // Nothing is taken over that would hide everything by mistake.
    fs::write(nodes.store.path().join("files/access.toml/0000000006"), "[[rule]]\nprefx = 1\n").unwrap();
    take_over(&nodes).refused(1, &["version 6 of access.toml is damaged", "line 2"]);
    assert_eq!(shown(), [0, 0]);
}

#[test]
fn topics_and_watches_of_a_cluster_hold_in_all_archives_that_take_them_over() {
    let served = TestWeb::start(still(94, 200, 0));
    let nodes = crawled(&served);
    let [one, other] = [&nodes.archives[0], &nodes.archives[1]];
    learn(one, "pies", 6);
    watch_again(one, "page type = html and topic(pies) >= 0", "day");
    let published = publish_own(&nodes, &["topics/pies.topic", "watches/pages.json"]);
    assert_eq!(published, "pies.topic: version 1 is published\npages.json: version 1 is published\n");
    let taken = take_over(&nodes).succeeded().text();
    let expected = ["pies.topic", "pages.json"].map(|file| format!("{}: {file}: version 1\n", folder(other)));
    assert_eq!(taken, expected.concat(), "the first archive has them already");
    assert_eq!(topics(other), topics(one));
    other.run("query", &["page topic(pies) >= 0.5 select url"]).succeeded();

    // A new version of a watch changes its query and its period; its next report begins where the last one ended.
    let later = ["--clock", "2030-01-01T00:00:00Z"].map(str::to_owned).into_iter().chain(served.at_once());
    let now = ["pages", "--now"].map(str::to_owned).into_iter().chain(later).collect::<Vec<_>>();
    other.run("watch report", &now).succeeded();
    let before = watches(other).remove(0);
    assert!(before["since"].as_str().unwrap().starts_with("2030-01-01T00:00:"), "{before}");
    watch_again(one, "page status = 200", "week");
    publish_own(&nodes, &["watches/pages.json"]);
    take_over(&nodes).succeeded();
    let after = watches(other).remove(0);
    assert_eq!((&after["query"], &after["every_seconds"]), (&"page status = 200".into(), &604_800.into()));
    assert_eq!((&after["since"], &after["reported"]), (&before["since"], &before["reported"]));
    assert_eq!(take_over(&nodes).succeeded().text(), "", "a report is no change");

    // An archive's own files stay, even if the cluster's are removed; so do files that were changed there.
    learn(other, "pies", 7);
    watch_again(other, "page status = 404", "day");
    publish_own(&nodes, &["topics/pies.topic", "watches/pages.json"]);
    let refused = take_over(&nodes).refused(1, &["pies.topic differs from", "pages.json differs from"]);
    assert!(!refused.errors.contains(folder(one)), "{}", refused.errors);
    assert_ne!(topics(other), topics(one));
    ask(&nodes, &["--remove", "pies.topic"]).succeeded();
    ask(&nodes, &["--remove", "pages.json"]).succeeded();
    let removed = take_over(&nodes).succeeded().text();
    assert!(
        removed.contains("pies.topic: version 3 (removed)\n") && !removed.contains(folder(other)),
        "{removed}"
    );
    assert_eq!((topics(one).len(), topics(other).len()), (0, 1));
    assert_eq!((watches(one).len(), watches(other).len()), (0, 1));

    // Damaged files are reported, and do not prevent others from being taken over.
    publish(&nodes, access::FILE, EVERYTHING.as_bytes()).succeeded();
    fs::write(nodes.store.path().join("files/pies.topic/0000000004"), "archtop1").unwrap();
    fs::write(nodes.store.path().join("files/pages.json/0000000005"), "{}").unwrap();
    fs::create_dir(nodes.store.path().join("files/..json")).unwrap();
    fs::write(nodes.store.path().join("files/..json/0000000001"), "{}").unwrap();
    take_over(&nodes)
        .refused(1, &["version 4 of pies.topic is damaged", "version 5 of pages.json is damaged"]);
    assert_eq!((queried(one, &[]).len(), queried(other, &[]).len()), (0, 0));
}

#[test]
fn a_topic_that_names_what_was_erased_does_not_come_back() {
    let served = TestWeb::start(still(95, 100, 0));
    let nodes = crawled(&served);
    let one = &nodes.archives[0];
    let erased = learn(one, "pies", 6).remove(0);
    publish_own(&nodes, &["topics/pies.topic"]);
    take_over(&nodes).succeeded();
    let list = one.file("erased.txt", &erased);
    one.run("erase", &["--urls", list.to_str().unwrap(), "--reason", "a test", "--yes"]).succeeded();
    take_over(&nodes).refused(1, &[folder(one), &format!("it names {erased}, which was erased")]);
    assert_eq!((topics(one).len(), topics(&nodes.archives[1]).len()), (0, 1));
}

#[test]
fn what_is_shared_has_limits() {
    let served = TestWeb::start(still(96, 40, 0));
    let nodes = crawled(&served);
    // A watch with a mistake in its query is not published; an archive that cannot answer it keeps the previous
    // version.
    let watch = |query: &str, every: u64| {
        format!(r#"{{"name":"w","query":"{query}","every_seconds":{every},"since":"2026-01-01T00:00:00Z"}}"#)
    };
    publish(&nodes, "w.json", watch("page status =", 3600).as_bytes()).refused(2, &["in the query"]);
    publish(&nodes, "w.json", watch("page", 59).as_bytes()).refused(2, &["a period is from a minute"]);
    publish(&nodes, "v.json", watch("page", 60).as_bytes()).refused(2, &["is not that of the file"]);
    let most = WATCH_BYTES_MAX as usize;
    let long = |bytes: usize| [watch("page", 60).into_bytes(), vec![b' '; bytes]].concat()[..bytes].to_vec();
    publish(&nodes, "w.json", &long(most + 1)).refused(2, &[&format!("longer than {most} bytes")]);
    publish(&nodes, "w.json", &long(most)).succeeded();
    take_over(&nodes).succeeded();
    assert_eq!(watches(&nodes.archives[0])[0]["output"], Value::Null);
    publish(&nodes, "w.json", watch("page topic(none) > 0.5", 60).as_bytes()).succeeded();
    take_over(&nodes).refused(1, &["w.json was not applied", "no topic `none`"]);
    assert_eq!(watches(&nodes.archives[0])[0]["query"], "page");
    publish(&nodes, "w.json", watch("page status = 200", 60).as_bytes()).succeeded();
    assert_eq!(take_over(&nodes).succeeded().text().matches("w.json: version 3").count(), 2);

    let name = |number: usize| nodes.store.path().join(format!("files/x{number}.json"));
    let add = |number: usize| {
        fs::create_dir(name(number)).unwrap();
        fs::write(name(number).join("0000000001"), "").unwrap();
    };
    (2..FILES_MAX).for_each(add);
    publish(&nodes, access::FILE, EVERYTHING.as_bytes()).succeeded();
    let too_many = format!("at most {FILES_MAX} files");
    publish(&nodes, "x1.json", watch("page", 60).replace("\"w\"", "\"x1\"").as_bytes())
        .refused(1, &[&too_many]);
    publish(&nodes, access::FILE, b"").succeeded();
    take_over(&nodes).succeeded();
    let record = nodes.archives[0].path.join("shared.json");
    fs::write(&record, " ".repeat((1 << 20) + 1)).unwrap();
    take_over(&nodes).refused(1, &["shared.json", "longer than"]);
    add(FILES_MAX);
    take_over(&nodes).refused(1, &[&too_many]);
}
