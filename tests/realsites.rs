//! Documentation sites of other projects, served by nginx, compared with wget.
//!
//! By default, parts of two of four sites are served; `ARCHIVE_TEST_REAL=full` crawls all of all. `tests/run` installs the
//! requirements.

use std::collections::BTreeSet;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use archive_storage::address::canonical;

use crate::support::program::{Usage, start};
use crate::support::{Archive, captures, judges, ledger_balances, skip};
use crate::unchanged::{importance, is_unmoved};

/// Debian packages, the folders of their pages, and with what the paths begin that are there in an ordinary run: some hundred
/// pages with style sheets, scripts and pictures. Each has its own loopback address: 127.0.2.1, 127.0.2.2 and so on.
const SITES: [(&str, &str, &str); 4] = [
    ("sqlite3-doc", "/usr/share/doc/sqlite3", "$|index|sqlite|docs|fa|[hijk]|c3ref/[a-i]|images"),
    ("python3.11-doc", "/usr/share/doc/python3.11/html", "$|index|howto|tutorial|_static|_images"),
    ("postgresql-doc-15", "/usr/share/doc/postgresql-doc-15/html", ""),
    ("apache2-doc", "/usr/share/doc/apache2-doc/manual", ""),
];

/// Number of sites in an ordinary run.
const SITES_USUAL: usize = 2;

/// Fewer captures than any run has.
const CAPTURES_MIN: u64 = 300;

/// Timeout for the start of nginx.
const START: Duration = Duration::from_secs(20);

/// A running nginx that serves the first sites.
struct Sites {
    nginx: Child,
    urls: Vec<String>,
}

impl Sites {
    fn serve(folder: &Path, count: usize, is_full: bool) -> Self {
        let port = TcpListener::bind("127.0.2.1:0").unwrap().local_addr().unwrap().port();
        let path = |name: &str| folder.join(name).display().to_string();
        let mut config = format!(
            "worker_processes 1;\ndaemon off;\npid {};\nerror_log {};\nevents {{ worker_connections 1024; }}\nhttp {{\n\
             include /etc/nginx/mime.types;\naccess_log off;\nkeepalive_requests 1000000;\ngzip off;\n",
            path("nginx.pid"),
            path("nginx.log")
        );
        for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
            config += &format!("{kind}_temp_path {};\n", path(kind));
        }
        let addresses: Vec<SocketAddr> =
            (1..=count as u8).map(|number| (Ipv4Addr::new(127, 0, 2, number), port).into()).collect();
        for (address, (_, root, part)) in addresses.iter().zip(SITES) {
            let part = if is_full { "" } else { part };
            config += &format!(
                "server {{ listen {address}; root {root}; index index.html; autoindex on;\n\
                 location ~ ^/(?!{part}) {{ return 404; }}\n\
                 location = /robots.txt {{ return 200 'User-agent: *\\nDisallow:\\n'; }} }}\n"
            );
        }
        let file = folder.join("nginx.conf");
        fs::write(&file, config + "}\n").unwrap();
        let nginx = Command::new("nginx").arg("-c").arg(&file).stderr(Stdio::null()).spawn().unwrap();
        let sites =
            Self { nginx, urls: addresses.iter().map(|address| format!("http://{address}/")).collect() };
        let begun = Instant::now();
        while !addresses.iter().all(|address| TcpStream::connect(address).is_ok()) {
            let log = || fs::read_to_string(folder.join("nginx.log")).unwrap_or_default();
            assert!(begun.elapsed() < START, "nginx does not start: {}", log());
            std::thread::sleep(Duration::from_millis(10));
        }
        sites
    }
}

impl Drop for Sites {
    fn drop(&mut self) {
        // Its workers end with it only if it gets a signal.
        let _ = Command::new("kill").arg("-TERM").arg(self.nginx.id().to_string()).status();
        let _ = self.nginx.wait();
    }
}

/// Returns what this machine lacks for the test.
fn missing(count: usize) -> Option<String> {
    let on_path = |program: &str| Command::new(program).arg("-V").output().is_ok();
    let programs = ["nginx", "wget"].into_iter().filter(|program| !on_path(program));
    let packages =
        SITES[..count].iter().filter(|(_, root, _)| !Path::new(root).exists()).map(|(package, ..)| *package);
    let names: Vec<&str> = programs.chain(packages).collect();
    (!names.is_empty()).then(|| format!("{} not installed; tests/run installs it", names.join(", ")))
}

/// Returns every URL of a CDX file written by wget: the first field of each line.
fn urls_of_cdx(file: &Path) -> BTreeSet<String> {
    let text = String::from_utf8_lossy(&fs::read(file).unwrap()).into_owned();
    let lines = text.lines().filter(|line| !line.starts_with(" CDX"));
    lines
        .filter_map(|line| line.split(' ').next())
        .filter(|url| url.starts_with("http"))
        .map(str::to_owned)
        .collect()
}

/// Returns why a URL requested by wget is not among ours.
fn explanation(url: &str) -> Option<&'static str> {
    if url.contains("%5C") {
        return Some("a backslash in a link is a slash (WHATWG URL standard), wget takes it for a name");
    }
    if url.ends_with("/pgsql-docs@lists.postgresql.org") {
        return Some("<link rev=made> names the author's address, which wget takes for a page");
    }
    None
}

#[test]
fn whatever_wget_fetches_of_real_sites_is_captured() {
    let is_full = std::env::var("ARCHIVE_TEST_REAL").as_deref() == Ok("full");
    let count = if is_full { SITES.len() } else { SITES_USUAL };
    if let Some(reason) = missing(count) {
        return skip(&reason);
    }
    let archive = Archive::new();
    let sites = Sites::serve(archive.folder(), count, is_full);

    let (wget, wget_usage, warc) = wget(archive.folder(), &sites.urls);
    let (finished, usage) =
        start(&mut archive.crawl(&sites.urls, &["--delay", "0", "--allow-private"])).measure();
    let finished = finished.succeeded();
    assert!(finished.errors.contains("nothing left to fetch"), "{}", finished.errors);

    let captured = captures(&archive.path);
    captured.are_single_answers();
    let ours = captured.urls();
    let mut unexplained = Vec::new();
    for url in &wget {
        if !ours.contains(&canonical(&url.parse().unwrap())) {
            match explanation(url) {
                Some(reason) => println!("not captured: {url}: {reason}"),
                None => unexplained.push(url),
            }
        }
    }
    assert!(unexplained.is_empty(), "wget fetched these, we did not: {unexplained:#?}");
    println!("{} URLs by wget, {} captures of ours", wget.len(), captured.count());
    assert!(captured.count() > CAPTURES_MIN, "{}", captured.count());
    assert_eq!(archive.verify(), captured.count());
    ledger_balances(&archive.path);
    if let Some(judges) = judges::find() {
        assert_eq!(judges.check(&archive.segments()).captures(), captured.count());
    }
    compare(&wget_usage, &usage, warc, folder_bytes(&archive.segments()));

    // Nothing has changed: importance stays the same, whatever is fetched again.
    let before = importance(&archive);
    for budget in ["20", "100000"] {
        let mut refresh = archive.command("refresh");
        refresh.args(["--budget", budget, "--shortest", "0s", "--delay", "0", "--allow-private"]);
        start(&mut refresh).wait().succeeded();
        is_unmoved(&before, &importance(&archive), &format!("after a refresh of {budget} pages"));
    }
    drop(sites);
    archive.run::<&str>("rebuild", &[]).succeeded();
    is_unmoved(&before, &importance(&archive), "after a rebuild");
}

/// Crawls with wget; returns its URLs, its resource usage, and the size of its WARC file.
fn wget(folder: &Path, urls: &[String]) -> (BTreeSet<String>, Usage, u64) {
    let scratch = folder.join("wget");
    fs::create_dir(&scratch).unwrap();
    let hosts: Vec<&str> = urls.iter().filter_map(|url| url.split(['/', ':']).nth(3)).collect();
    let mut command = Command::new("wget");
    command.current_dir(&scratch).args([
        "-q",
        "-r",
        "-l",
        "inf",
        "-e",
        "robots=on",
        "-H",
        "-D",
        &hosts.join(","),
    ]);
    command.args(["--delete-after", "--warc-file=all", "--warc-cdx"]).args(urls);
    let (finished, usage) = start(&mut command).measure();
    // Exit code 8 means that some pages were not found.
    assert!(matches!(finished.code, Some(0 | 8)), "wget: {}{}", finished.text(), finished.errors);
    let file = |name: &str| -> PathBuf { scratch.join(name) };
    (urls_of_cdx(&file("all.cdx")), usage, fs::metadata(file("all.warc.gz")).unwrap().len())
}

fn folder_bytes(folder: &Path) -> u64 {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

/// Prints a comparison of the two; speed is not asserted, as it depends on the build.
fn compare(wget: &Usage, ours: &Usage, wget_bytes: u64, our_bytes: u64) {
    let build = if cfg!(debug_assertions) { "a debug build" } else { "a release build" };
    println!("                     wget   archive   wget / archive ({build})");
    let row = |what: &str, wget: f64, ours: f64| {
        println!("{what:<14} {wget:>10.2} {ours:>9.2} {:>10.2}", wget / ours.max(1e-9));
    };
    row("wall seconds", wget.elapsed.as_secs_f64(), ours.elapsed.as_secs_f64());
    row("CPU seconds", wget.cpu_seconds, ours.cpu_seconds);
    row("stored MiB", wget_bytes as f64 / 1_048_576.0, our_bytes as f64 / 1_048_576.0);
    row("peak MiB", wget.peak_mib as f64, ours.peak_mib as f64);
}
