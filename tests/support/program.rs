//! The program, run as a person runs it.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::LazyLock;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

/// No command of a test takes longer, in seconds, unless it hangs; `$ARCHIVE_TEST_PATIENCE` is for archives as large as those
/// of an hour's soak.
const PATIENCE_SECONDS: u64 = 240;

static PATIENCE: LazyLock<Duration> = LazyLock::new(|| {
    let asked = std::env::var("ARCHIVE_TEST_PATIENCE").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(asked.unwrap_or(PATIENCE_SECONDS))
});

/// How often a waiting test looks again.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// A folder with an archive and the lists of seeds that are written for it.
pub(crate) struct Archive {
    folder: tempfile::TempDir,
    pub(crate) path: PathBuf,
}

impl Archive {
    /// A place for an archive; there is none yet.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("web.archive");
        Self { folder, path }
    }

    /// A copy of this archive in its own place.
    pub(crate) fn copy(&self) -> Self {
        let copy = Self::new();
        let status = Command::new("cp").arg("-a").arg(&self.path).arg(&copy.path).status().unwrap();
        assert!(status.success(), "cp -a {}", self.path.display());
        copy
    }

    /// The folder around the archive.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where its WARC files are.
    pub(crate) fn segments(&self) -> PathBuf {
        self.path.join("segments")
    }

    /// Writes a file beside the archive.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, content).unwrap();
        path
    }

    /// A list of seeds.
    pub(crate) fn seeds(&self, urls: &[String]) -> PathBuf {
        self.file("seeds.txt", urls.join("\n"))
    }

    /// A command on this archive, not started.
    pub(crate) fn command(&self, command: &str) -> Command {
        let mut program = Command::new(env!("CARGO_BIN_EXE_archive"));
        // Some commands have subcommands, as `review export`.
        program.args(command.split(' ')).arg("--archive").arg(&self.path).env_remove("ARCHIVE_DIR");
        program
    }

    /// Runs a command to its end.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, command: &str, arguments: &[S]) -> Finished {
        start(self.command(command).args(arguments)).wait()
    }

    /// A crawl from `urls`, not started.
    pub(crate) fn crawl<S: AsRef<OsStr>>(&self, urls: &[String], arguments: &[S]) -> Command {
        let mut command = self.command("crawl");
        command.arg("--seeds").arg(self.seeds(urls)).args(arguments);
        command
    }

    /// The lines of a command that speaks JSON.
    pub(crate) fn json<S: AsRef<OsStr>>(&self, command: &str, arguments: &[S]) -> Vec<Value> {
        start(self.command(command).arg("--json").args(arguments)).wait().succeeded().json()
    }

    /// Proves that every record is as its digests say, and gives the number of captures.
    pub(crate) fn verify(&self) -> u64 {
        let finished = start(self.command("verify").arg("--json")).wait();
        assert_eq!(finished.code, Some(0), "verify: {}{}", finished.text(), finished.errors);
        finished.json().last().and_then(|summary| summary["captures"].as_u64()).unwrap()
    }
}

/// A command under way. What it writes is read as it comes, so that it never waits for its reader.
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

/// The same command under a limit of the operating system, as prlimit(1) names it.
pub(crate) fn within(limit: &str, command: &Command) -> Command {
    let mut limited = Command::new("prlimit");
    limited.arg(limit).arg(command.get_program()).args(command.get_args()).env_remove("ARCHIVE_DIR");
    limited
}

fn collect(mut from: impl std::io::Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What came before the pipe broke is what there is.
        let _ = from.read_to_end(&mut bytes);
        bytes
    })
}

impl Running {
    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits until something is true or the command has ended; whether it became true.
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
    }

    /// Kills it without warning, as a power failure would.
    pub(crate) fn kill(mut self) {
        // It may have ended by itself a moment ago.
        let _ = self.child.kill();
        self.wait();
    }

    /// Waits for its end and watches what it uses.
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

/// What a command has used, as far as was seen shortly before its end.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    pub(crate) elapsed: Duration,
    /// Of all its threads and of the processes that it has begun and waited for, in the system as well.
    pub(crate) cpu_seconds: f64,
    /// Most memory at any time.
    pub(crate) peak_mib: u64,
}

impl Usage {
    /// Reads what Linux says of a process (proc(5)).
    fn look(&mut self, process: &Path) {
        const TICKS_PER_SECOND: f64 = 100.0;
        if let Ok(text) = fs::read_to_string(process.join("stat"))
            && let Some((_, fields)) = text.rsplit_once(") ")
        {
            // The 14th to 17th field of the line; what is left begins with the third.
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
    /// Nothing when a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) status: ExitStatus,
    /// Standard output.
    pub(crate) output: Vec<u8>,
    /// Standard error.
    pub(crate) errors: String,
    pub(crate) elapsed: Duration,
}

impl Finished {
    /// Fails unless it was a success.
    pub(crate) fn succeeded(self) -> Self {
        assert!(self.status.success(), "{}: {}{}", self.status, self.text(), self.errors);
        self
    }

    /// Fails unless it ended with this code and said this on standard error, and nothing that looks like a crash.
    pub(crate) fn refused(self, code: i32, words: &[&str]) -> Self {
        assert_eq!(self.code, Some(code), "{}{}", self.text(), self.errors);
        for word in words {
            assert!(self.errors.contains(word), "'{word}' is not in: {}", self.errors);
        }
        assert!(!self.errors.contains("panicked") && !self.errors.contains("Error {"), "{}", self.errors);
        self
    }

    /// Standard output as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.output).into_owned()
    }

    /// Standard output as lines of JSON.
    pub(crate) fn json(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}
