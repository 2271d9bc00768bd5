//! Helpers shared by the tests of the program: the test web, the program itself, and a reader of the archives it
//! creates.
//!
//! Every test has its own web on a free port and its own folder, so that all tests can run at the same time.

pub(crate) mod answers;
pub(crate) mod browser;
pub(crate) mod captures;
pub(crate) mod fake_node;
pub(crate) mod judges;
pub(crate) mod pages;
pub(crate) mod prepared;
pub(crate) mod program;
pub(crate) mod reach;
pub(crate) mod replay;
pub(crate) mod s3;
pub(crate) mod served;
pub(crate) mod site;
pub(crate) mod small_disk;
pub(crate) mod terminal;
pub(crate) mod warc;

use std::env;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use archive_crawl::{CrawlOptions, Politeness};
use archive_testweb::{Config, Server, Web};
use archive_web::fetch;

pub(crate) use captures::{Captured, captures, ledger_balances};
pub(crate) use program::Archive;

/// A served test web.
pub(crate) struct TestWeb {
    pub(crate) web: Arc<Web>,
    pub(crate) server: Server,
}

impl TestWeb {
    /// Serves a web on a free local port.
    pub(crate) fn start(config: Config) -> Self {
        Self::start_on(config, &["127.0.0.1:0".parse().unwrap()])
    }

    /// Serves a web at several addresses.
    pub(crate) fn start_on(config: Config, addresses: &[SocketAddr]) -> Self {
        let web = Arc::new(Web::new(config).unwrap());
        let server = Server::start_on(Arc::clone(&web), addresses, 2).unwrap();
        Self { web, server }
    }

    /// Returns the options that direct the program to this web, without delay and with little patience.
    pub(crate) fn at_once(&self) -> Vec<String> {
        self.with_patience("2s")
    }

    /// The same, with a patience that is too short to ask anything again if it is shorter than two seconds.
    pub(crate) fn with_patience(&self, patience: &str) -> Vec<String> {
        let mut options = ["--delay", "0", "--patience", patience].map(str::to_owned).to_vec();
        options.extend(self.connection());
        options
    }

    /// Returns the equivalent options of the library: full speed, no full-text index.
    pub(crate) fn options(&self) -> CrawlOptions {
        CrawlOptions {
            workers: 16,
            threads: 2,
            front_max: 1000,
            patience: Some(Duration::from_secs(2)),
            politeness: Politeness::at_once(8, 16),
            fetch: fetch::FetchSettings {
                user_agent: "archive-test".to_owned(),
                connect_to: vec![format!("*:*:{}", self.server.address()).parse().unwrap()],
                allow_private: true,
                ..fetch::FetchSettings::default()
            },
            full_text: false,
            disk_min: 0,
            ..CrawlOptions::default()
        }
    }

    /// Returns the options that direct every host to this web.
    pub(crate) fn connection(&self) -> [String; 2] {
        ["--connect-to".to_owned(), format!("::{}", self.server.address())]
    }
}

/// Seed of a run that asks for no other: the same choices in every run, so that a failure is one of a change.
const SEED: u64 = 1;

/// Pseudo-random numbers from a seed, which the test prints so that the run can be repeated. `tests/seeds` finds the
/// tests that create them with `new`, and tries other seeds.
pub(crate) struct Dice(fastrand::Rng);

impl Dice {
    /// Creates dice seeded from `$ARCHIVE_TEST_SEED`, or with [`SEED`].
    pub(crate) fn new(test: &str) -> Self {
        let seed = env::var("ARCHIVE_TEST_SEED").map_or(SEED, |seed| seed.parse().expect("a number"));
        println!("{test}: ARCHIVE_TEST_SEED={seed} repeats this run's choices");
        Self::of(seed)
    }

    /// Creates dice with a fixed seed.
    pub(crate) fn of(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// Returns a number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0.u64(..end.max(1))
    }
}

/// Prints that a test cannot run on this machine; fails in continuous integration.
pub(crate) fn skip(reason: &str) {
    assert!(env::var("CI").as_deref() != Ok("true"), "not skipped where CI=true: {reason}");
    println!("skipped: {reason}");
}

/// Returns the path of a program; `None` if it is not installed.
pub(crate) fn installed(program: &str) -> Option<std::path::PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.exists());
    if found.is_none() {
        skip(&format!("there is no {program}"));
    }
    found
}

/// Returns an address on which nobody listens: no other test takes ports of this one's last byte.
pub(crate) fn nobody_at(last: u8) -> SocketAddr {
    TcpListener::bind((Ipv4Addr::new(127, 0, 7, last), 0)).unwrap().local_addr().unwrap()
}

/// Returns how often a test kills its command: `$ARCHIVE_KILLS` times, or `usual` times.
pub(crate) fn kills(usual: u64) -> u64 {
    env::var("ARCHIVE_KILLS").map_or(usual, |kills| kills.parse().expect("a number"))
}

/// Returns how much of something a test tries: `usual`, or `all` of it if `$ARCHIVE_TEST_WHOLE` is set.
pub(crate) fn in_full<T>(usual: T, all: T) -> T {
    if env::var_os("ARCHIVE_TEST_WHOLE").is_some() { all } else { usual }
}

/// Returns the files of a folder whose names end in one of these.
pub(crate) fn files_with(folder: &Path, endings: &[&str]) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            endings.iter().any(|ending| name.ends_with(ending))
        })
        .collect();
    files.sort();
    files
}
