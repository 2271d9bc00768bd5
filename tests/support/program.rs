//! Runs the program as a user runs it.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::LazyLock;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use archive_ask::watch;
use archive_base::error::Failure;
use archive_storage::Verified;
use archive_vault::verify;
use serde_json::Value;

/// Timeout of a test's command in seconds, after which it counts as hanging. `$ARCHIVE_TEST_PATIENCE` overrides it for
/// archives as large as those of an hour's soak.
const PATIENCE_SECONDS: u64 = 240;

static PATIENCE: LazyLock<Duration> = LazyLock::new(|| {
    let asked = std::env::var("ARCHIVE_TEST_PATIENCE").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(asked.unwrap_or(PATIENCE_SECONDS))
});

/// Polling interval of waiting tests.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// A folder with an archive and the seed lists written for it.
pub(crate) struct Archive {
    folder: tempfile::TempDir,
    pub(crate) path: PathBuf,
}

impl Archive {
    /// Returns a place for an archive, which does not exist yet.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("web.archive");
        Self { folder, path }
    }

    /// Copies this archive to a place of its own.
    pub(crate) fn copy(&self) -> Self {
        let copy = Self::new();
        super::prepared::copy(&self.path, &copy.path);
        copy
    }

    /// Returns the folder that contains the archive.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the folder of its WARC files.
    pub(crate) fn segments(&self) -> PathBuf {
        self.path.join("segments")
    }

    /// Writes a file next to the archive.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, content).unwrap();
        path
    }

    /// Writes a list of seeds.
    pub(crate) fn seeds(&self, urls: &[String]) -> PathBuf {
        self.file("seeds.txt", urls.join("\n"))
    }

    /// Returns a command on this archive, not started.
    pub(crate) fn command(&self, command: &str) -> Command {
        let mut program = Command::new(env!("CARGO_BIN_EXE_archive"));
        // Some commands have subcommands, such as `review export`.
        program.args(command.split(' ')).arg("--archive").arg(&self.path).env_remove("ARCHIVE_DIR");
        program
    }

    /// Runs a command to its end.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, command: &str, arguments: &[S]) -> Finished {
        start(self.command(command).args(arguments)).wait()
    }

    /// Returns a crawl from `urls`, not started.
    pub(crate) fn crawl<S: AsRef<OsStr>>(&self, urls: &[String], arguments: &[S]) -> Command {
        let mut command = self.command("crawl");
        command.arg("--seeds").arg(self.seeds(urls)).args(arguments);
        command
    }

    /// Runs a command with `--json` and returns its lines.
    pub(crate) fn json<S: AsRef<OsStr>>(&self, command: &str, arguments: &[S]) -> Vec<Value> {
        start(self.command(command).arg("--json").args(arguments)).wait().succeeded().json()
    }

    /// Verifies every record against its digests, as `archive verify` does, and returns the number of captures.
    pub(crate) fn verify(&self) -> u64 {
        let verified = self.verified().unwrap();
        assert!(verified.findings.is_empty(), "verify: {verified:?}");
        verified.captures
    }

    /// Returns what a verification finds.
    pub(crate) fn verified(&self) -> Result<Verified, Failure> {
        let watches: verify::FileCheck = |path| watch::check(path).err().map(|error| error.to_string());
        verify::run(&self.path, 1, &[watches], &mut |_| {})
    }
}

/// A running command. Its output is read continuously, so that it never blocks.
pub(crate) struct Running {
    child: Child,
    output: JoinHandle<Vec<u8>>,
    errors: JoinHandle<Vec<u8>>,
    started: Instant,
}

/// Starts a command.
pub(crate) fn start(command: &mut Command) -> Running {
    let started = Instant::now();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let output = collect(child.stdout.take().unwrap());
    let errors = collect(child.stderr.take().unwrap());
    Running { child, output, errors, started }
}

/// Returns the same command under a limit of the operating system, named as in prlimit(1).
pub(crate) fn within(limit: &str, command: &Command) -> Command {
    let mut limited = Command::new("prlimit");
    limited.arg(limit).arg(command.get_program()).args(command.get_args()).env_remove("ARCHIVE_DIR");
    limited
}

fn collect(mut from: impl std::io::Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What arrived before the pipe broke is all there is.
        let _ = from.read_to_end(&mut bytes);
        bytes
    })
}

impl Running {
    /// Returns its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits until a condition is true or the command has ended; returns whether it became true.
    pub(crate) fn wait_until(&mut self, mut is_true: impl FnMut() -> bool) -> bool {
        while !is_true() {
            if self.has_ended() {
                return false;
            }
            assert!(self.started.elapsed() < *PATIENCE, "waited too long for something that should happen");
            std::thread::sleep(LOOK_EVERY);
        }
        true
    }

    /// Sends a signal such as `-INT`.
    pub(crate) fn signal(&self, signal: &str) {
        let status = Command::new("kill").arg(signal).arg(self.id().to_string()).status().unwrap();
        assert!(status.success(), "kill {signal}");
        // It stops once the kernel has come to each of its threads.
        while signal == "-STOP" && !self.is_stopped() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Whether all its threads are stopped by a signal, or it has ended.
    fn is_stopped(&self) -> bool {
        let Ok(threads) = fs::read_dir(format!("/proc/{}/task", self.id())) else { return true };
        threads.flatten().all(|thread| {
            let state = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            state.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with(['T', 'Z', 'X']))
        })
    }

    /// Kills it without warning, as a power failure would.
    pub(crate) fn kill(mut self) {
        // It may have ended by itself a moment ago.
        let _ = self.child.kill();
        self.wait();
    }

    /// Waits for its end and records its resource usage.
    pub(crate) fn measure(mut self) -> (Finished, Usage) {
        let mut usage = Usage::default();
        let process = PathBuf::from(format!("/proc/{}", self.id()));
        self.wait_until(|| {
            usage.look(&process);
            false
        });
        usage.elapsed = self.started.elapsed();
        (self.wait(), usage)
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self) -> Finished {
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if self.started.elapsed() > *PATIENCE {
                self.child.kill().unwrap();
                let output = Output {
                    status: self.child.wait().unwrap(),
                    stdout: self.output.join().unwrap(),
                    stderr: self.errors.join().unwrap(),
                };
                panic!("a command did not end within {:?}: {output:?}", *PATIENCE);
            }
            std::thread::sleep(LOOK_EVERY);
        };
        let elapsed = self.started.elapsed();
        let errors = String::from_utf8_lossy(&self.errors.join().unwrap()).into_owned();
        Finished { code: status.code(), status, output: self.output.join().unwrap(), errors, elapsed }
    }
}

/// Resource usage of a command, as last seen shortly before its end.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    pub(crate) elapsed: Duration,
    /// Of all its threads and of the processes that it has started and waited for, including system time.
    pub(crate) cpu_seconds: f64,
    /// Peak memory.
    pub(crate) peak_mib: u64,
}

impl Usage {
    /// Reads a process's usage (Linux, proc(5)).
    fn look(&mut self, process: &Path) {
        const TICKS_PER_SECOND: f64 = 100.0;
        if let Ok(text) = fs::read_to_string(process.join("stat"))
            && let Some((_, fields)) = text.rsplit_once(") ")
        {
            // Fields 14 to 17 of the line; the remaining text starts with field 3.
            let ticks: u64 =
                fields.split(' ').skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum();
            self.cpu_seconds = self.cpu_seconds.max(ticks as f64 / TICKS_PER_SECOND);
        }
        let status = fs::read_to_string(process.join("status")).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
        self.peak_mib = self.peak_mib.max(peak.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0) / 1024);
    }
}

/// A command that has ended.
#[derive(Debug)]
pub(crate) struct Finished {
    /// `None` if a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) status: ExitStatus,
    /// Standard output.
    pub(crate) output: Vec<u8>,
    /// Standard error.
    pub(crate) errors: String,
    pub(crate) elapsed: Duration,
}

impl Finished {
    /// Fails unless the command succeeded.
    pub(crate) fn succeeded(self) -> Self {
        assert!(self.status.success(), "{}: {}{}", self.status, self.text(), self.errors);
        self
    }

    /// Fails unless it exited with this code and printed these words on standard error, and nothing that looks like a
    /// crash.
    pub(crate) fn refused(self, code: i32, words: &[&str]) -> Self {
        assert_eq!(self.code, Some(code), "{}{}", self.text(), self.errors);
        for word in words {
            assert!(self.errors.contains(word), "'{word}' is not in: {}", self.errors);
        }
        assert!(!self.errors.contains("panicked") && !self.errors.contains("Error {"), "{}", self.errors);
        self
    }

    /// Returns standard output as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.output).into_owned()
    }

    /// Returns standard output as JSON lines.
    pub(crate) fn json(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}
