//! Machines that come and go share the partitions of a cluster, and each crawls its partitions one after the other.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use archive_testweb::Config;
use serde_json::Value;

use crate::cluster::{Nodes, alone, assert_union, still, union};
use crate::crawl::everything;
use crate::support::program::{Finished, Running, start};
use crate::support::{TestWeb, judges, ledger_balances, skip};

/// Folder of the examples.
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/cluster");

/// Duration of an answer where simultaneous requests are counted.
const LATENCY: Duration = Duration::from_millis(50);

/// Machines of one cluster; each has a folder for its archives, and all copy them to one place.
struct Machines<'a> {
    nodes: Nodes<'a>,
    copies: tempfile::TempDir,
    folders: Vec<tempfile::TempDir>,
    seeds: PathBuf,
}

impl<'a> Machines<'a> {
    fn new(served: &'a TestWeb, partitions: usize) -> Self {
        let nodes = Nodes::brisk(served, partitions);
        let seeds = nodes.archives[0].seeds(&nodes.seeds);
        let folders = (0..2).map(|_| tempfile::tempdir().unwrap()).collect();
        Self { nodes, copies: tempfile::tempdir().unwrap(), folders, seeds }
    }

    /// Starts a machine, numbered from 0, with its own options and those of its crawls.
    fn begin(&self, machine: usize, options: &[&str], of_crawls: &[&str]) -> Running {
        let mut command = Command::new(env!("CARGO_BIN_EXE_archive"));
        let partitions = self.nodes.archives.len().to_string();
        command.args(["node", "--cluster", &self.nodes.url(), "--partitions", &partitions, "--archives"]);
        command.arg(self.folders[machine].path()).args(["--node", &format!("machine {machine}")]);
        command.args(["--copies", &format!("file://{}", self.copies.path().display())]).args(options);
        command.args(["--", "--seeds"]).arg(&self.seeds).args(everything(self.nodes.served));
        start(command.args(of_crawls))
    }

    fn archive(&self, machine: usize, number: usize) -> PathBuf {
        self.folders[machine].path().join(format!("{number}.archive"))
    }

    /// Returns the machine that last reported an activity for each partition.
    fn owners(&self) -> Vec<String> {
        let status = self.nodes.status();
        let told = status["told"].as_array().unwrap();
        told.iter().map(|one| one["node"].as_str().unwrap_or_default().to_owned()).collect()
    }

    fn cluster(&self, command: &str, options: &[&str]) -> Finished {
        let mut program = Command::new(env!("CARGO_BIN_EXE_archive"));
        start(program.args(["cluster", command, "--cluster", &self.nodes.url()]).args(options)).wait()
    }

    /// Fails unless these archives of all partitions together have everything once, and all cash.
    fn are_whole(&self, archives: &[PathBuf], expected: &std::collections::BTreeMap<String, [u8; 16]>) {
        assert_union(&union(archives.iter().map(PathBuf::as_path)), expected);
        let status = self.nodes.status();
        assert_eq!((&status["is_exact"], &status["found"]), (&true.into(), &status["expected"]), "{status}");
        archives.iter().for_each(|path| ledger_balances(path));
    }
}

#[test]
fn machines_share_partitions_and_continue_those_of_one_that_leaves() {
    let served = TestWeb::start(still(416, 500, 20));
    let expected = alone(&served);
    let machines = Machines::new(&served, 3);
    // A crawl that was killed at its start leaves a folder without an archive.
    (1..=3).for_each(|number| std::fs::create_dir_all(machines.archive(0, number).join("state")).unwrap());
    let from = served.server.requests();
    // If two machines start at once, one may lose all partitions to the other.
    let mut second = machines.begin(1, &["--workers", "4", "--partitions-max", "2"], &[]);
    let has_begun = || (1..=3).any(|number| machines.archive(1, number).join("state").exists());
    assert!(second.wait_until(has_begun));
    let first = machines.begin(0, &["--workers", "4"], &[]);
    assert!(second.wait_until(|| served.server.requests() > from + 300));
    second.signal("-TERM");
    let second = second.wait();
    assert_eq!(second.code, Some(4), "{}", second.errors);
    assert!(second.errors.contains("left to another node"), "{}", second.errors);
    let first = first.wait().succeeded();
    println!("{}", first.errors);
    let all: Vec<PathBuf> = (1..=3).map(|number| machines.archive(0, number)).collect();
    machines.are_whole(&all, &expected);
}

#[test]
fn machines_that_begin_together_take_nothing_from_each_other() {
    let served = TestWeb::start(still(420, 600, 5));
    let machines = Machines::new(&served, 8);
    let both = [0, 1].map(|machine| machines.begin(machine, &["--partitions-max", "4"], &[]));
    for machine in both {
        let errors = machine.wait().succeeded().errors;
        let has = |what: &str| errors.contains(what);
        assert!(!has("nothing more is written here") && !has("another node had this partition"), "{errors}");
    }
    let status = machines.nodes.status();
    assert_eq!((&status["is_exact"], &status["found"]), (&true.into(), &status["expected"]), "{status}");
}

#[test]
fn a_machine_that_is_added_gets_its_share_of_what_waits() {
    let served = TestWeb::start(Config { sites: 32, ..still(417, 500, 20) });
    let expected = alone(&served);
    let machines = Machines::new(&served, 6);
    let from = served.server.requests();
    let options = ["--checkpoint-every", "2s"];
    let mut first = machines.begin(0, &["--workers", "2"], &options);
    let all_begun = || machines.owners().iter().all(|owner| owner == "machine 0");
    assert!(first.wait_until(|| served.server.requests() > from + 200 && all_begun()));
    let second = machines.begin(1, &["--workers", "2"], &options);
    // What waits where changes all the time, and a few partitions may have nearly all of it for a while.
    let is_level = || {
        let plan: Value = machines
            .cluster("balance", &["--node", "machine 1", "--dry-run", "--json"])
            .succeeded()
            .json()
            .remove(0);
        let moved = plan["moves"].as_array().unwrap().len();
        let share = |of: &str| {
            let units = |machine: &str| plan[of][machine].as_f64().unwrap();
            units("machine 1") / (units("machine 0") + units("machine 1"))
        };
        assert!(moved < 6 && share("before") == 0.0, "{plan}");
        moved > 0 && (0.1..0.9).contains(&share("after"))
    };
    assert!(first.wait_until(is_level), "no plan gives the second machine a share");
    assert!(machines.owners().iter().all(|owner| owner == "machine 0"), "nothing has moved yet");
    println!("{}", machines.cluster("balance", &["--node", "machine 1"]).succeeded().text());
    // A machine owns a partition for some time before it first reports an activity for it.
    let has_some = || machines.owners().iter().any(|owner| owner == "machine 1");
    assert!(first.wait_until(has_some) || has_some());
    assert!(machines.owners().iter().any(|owner| owner == "machine 0"));
    first.wait().succeeded();
    second.wait().succeeded();
    let newest = |number: usize, owner: &String| machines.archive(usize::from(owner == "machine 1"), number);
    let all: Vec<PathBuf> =
        (1..).zip(&machines.owners()).map(|(number, owner)| newest(number, owner)).collect();
    machines.are_whole(&all, &expected);
}

#[test]
fn a_machine_has_no_more_requests_under_way_than_it_may_and_its_crawls_end_with_it() {
    let served = TestWeb::start(still(418, 1500, 50));
    served.server.record_arrivals(true);
    let machines = Machines::new(&served, 4);
    let mut only = machines.begin(0, &["--workers", "3"], &[]);
    let all_begun = || (1..=4).all(|number| is_begun(&machines.archive(0, number)));
    assert!(only.wait_until(|| all_begun() && served.server.requests() > 200));
    // Each answer takes 50 ms; requests that are closer together are in flight at the same time.
    let arrivals = served.server.take_arrivals();
    let close =
        |at: usize| arrivals[at..].iter().take_while(|one| one.time - arrivals[at].time < LATENCY).count();
    let most = (0..arrivals.len()).map(close).max().unwrap_or(0);
    assert!((2..=3).contains(&most), "{most} requests at the same time");
    // A killed machine cannot notify its crawls; they end because their grants run out.
    only.kill();
    let has_ended = || {
        let status = machines.nodes.status();
        let told = status["told"].as_array().unwrap();
        told.iter().all(|one| one["activity"]["ended"] == "stopped")
    };
    let begun = std::time::Instant::now();
    while !has_ended() {
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "{}", machines.nodes.status());
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

#[test]
fn options_that_no_crawl_understands_end_a_machine() {
    let served = TestWeb::start(still(420, 60, 0));
    let only = Machines::new(&served, 2).begin(0, &[], &["--memory", "1KiB"]).wait();
    only.refused(1, &["it has to be at least", "the crawl of partition", "rejects the options after --"]);
}

fn is_begun(archive: &Path) -> bool {
    archive.join("state").exists()
}

/// Runs command lines of an example in parallel until nothing is left to fetch, with folders instead of its stores, on
/// the test web.
fn runs_to_the_end(lines: &[String]) {
    let served = TestWeb::start(still(419, 60, 0));
    let place = tempfile::tempdir().unwrap();
    let seeds = place.path().join("seeds.txt");
    std::fs::write(&seeds, served.web.seeds(2).join("\n")).unwrap();
    let url = format!("file://{}/", place.path().display());
    let running = lines.iter().zip(1..).map(|(line, number)| {
        // Paths that each machine has for itself.
        let own = place.path().join(number.to_string());
        let words = line.split_ascii_whitespace().skip(1).map(|word| match word {
            "/archives" | "/srv/archives" => own.display().to_string(),
            "/seeds.txt" | "/etc/archive/seeds.txt" => seeds.display().to_string(),
            word => word.trim_matches('\'').replace("s3://crawl/", &url),
        });
        let mut command = Command::new(env!("CARGO_BIN_EXE_archive"));
        start(command.args(words).args(served.at_once()))
    });
    for finished in running.collect::<Vec<_>>().into_iter().map(Running::wait) {
        assert!(finished.succeeded().errors.contains("nothing left to fetch"));
    }
    let mut status = Command::new(env!("CARGO_BIN_EXE_archive"));
    let status = start(status.args(["cluster", "status", "--cluster", &format!("{url}cluster")])).wait();
    assert!(status.succeeded().text().contains("all cash is there"));
}

/// Returns a command without the name of its robot, which contains spaces.
fn without_robot(line: &str) -> String {
    line.split_once(" --user-agent").unwrap().0.to_owned()
}

#[test]
fn the_unit_of_a_machine_is_one_and_its_command_crawls() {
    let unit = std::fs::read_to_string(Path::new(EXAMPLES).join("archive-node.service")).unwrap();
    let command = unit.replace("\\\n", " ");
    let line = command.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    // A single machine cannot take all of the 64 partitions.
    runs_to_the_end(&[without_robot(line).replace("--partitions 64", "--partitions 3")]);
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        return skip("no systemd-analyze");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("archive-node.service");
    std::fs::write(&file, unit.replace("/usr/local/bin/archive", env!("CARGO_BIN_EXE_archive"))).unwrap();
    let judged = Command::new("systemd-analyze").arg("verify").arg(&file).output().unwrap();
    let said = String::from_utf8_lossy(&judged.stderr);
    assert!(judged.status.success() && !said.contains("archive-node"), "{said}");
}

#[test]
fn the_machines_of_the_compose_file_crawl_together() {
    let Some(judges) = judges::find() else { return };
    let script = "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))";
    let file = Path::new(EXAMPLES).join("compose.yaml");
    let read = judges.program("python").args(["-c", script]).arg(file).output().unwrap();
    let compose: Value = serde_json::from_slice(&read.stdout).unwrap_or_else(|_| panic!("{read:?}"));
    let service = |name: &str| &compose["services"][name];
    let command = |name: &str| service(name)["command"].as_str().unwrap().to_owned();
    let machines = ["first", "second"];
    assert!(machines.iter().all(|name| service(name)["depends_on"][0] == "store"), "{compose}");
    assert!(
        compose["services"]["store"].is_object() && command("status").starts_with("archive cluster status ")
    );
    runs_to_the_end(&machines.map(|name| without_robot(&command(name))));
}
