//! Third-party programs that read WARC files (warcio, FastWARC, pywb), and axe-core, which checks the accessibility of
//! pages.
//!
//! They are installed in a Python environment whose program folder is `$ARCHIVE_TEST_JUDGES`; `tests/run` creates one.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use archive_storage::Digest;
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;

use super::{files_with, skip};

/// The environment with the judges.
pub(crate) struct Judges {
    programs: PathBuf,
}

/// Number of records by type.
pub(crate) type Counts = BTreeMap<String, u64>;

/// The records that the judges read in a folder of WARC files.
#[derive(Debug, Deserialize)]
pub(crate) struct Records {
    /// Counts by FastWARC.
    pub(crate) fastwarc: Counts,
    /// Counts by warcio, which cannot read zstd.
    pub(crate) warcio: Counts,
    /// Number of responses and revisits of each URL.
    pub(crate) targets: Counts,
    /// Records with wrong digests.
    wrong: Vec<String>,
}

impl Records {
    /// Returns the number of responses and revisits.
    pub(crate) fn captures(&self) -> u64 {
        self.targets.values().sum()
    }
}

/// Returns the judges; `None` if they are not installed.
pub(crate) fn find() -> Option<Judges> {
    let Some(programs) = std::env::var_os("ARCHIVE_TEST_JUDGES") else {
        skip(
            "ARCHIVE_TEST_JUDGES does not name a folder with warcio, fastwarc and pywb; tests/run makes one",
        );
        return None;
    };
    let programs = PathBuf::from(programs);
    assert!(
        programs.join("python").exists(),
        "ARCHIVE_TEST_JUDGES: there is no python in {}",
        programs.display()
    );
    Some(Judges { programs })
}

/// Returns the script of axe-core, which checks accessibility; `None` if it is not installed.
pub(crate) fn axe() -> Option<String> {
    let Judges { programs } = find()?;
    let script = programs.join("../node_modules/axe-core/axe.min.js");
    Some(std::fs::read_to_string(&script).unwrap_or_else(|error| panic!("{}: {error}", script.display())))
}

impl Judges {
    /// Whether one of the programs is installed; an environment created before it was needed lacks it.
    pub(crate) fn have(&self, name: &str) -> bool {
        let found = self.programs.join(name).exists();
        if !found {
            skip(&format!("there is no {name} among the judges; tests/run installs it"));
        }
        found
    }

    /// Returns a command for one of the programs.
    pub(crate) fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }

    /// Lets all judges read every segment in a folder; fails if one of them reports an error.
    pub(crate) fn check(&self, segments: &Path) -> Records {
        for file in files_with(segments, &[".warc.gz"]) {
            let checked = self.program("warcio").args(["check", "-v"]).arg(&file).output().unwrap();
            let text = String::from_utf8_lossy(&checked.stdout);
            assert!(
                checked.status.success() && !text.contains("fail"),
                "warcio check {}: {text}",
                file.display()
            );
            assert!(text.contains("digest pass"), "warcio check {}: {text}", file.display());
        }
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/read_segments.py");
        let read = self.program("python").arg(script).arg(segments).output().unwrap();
        assert!(
            read.status.success(),
            "reading {}: {}",
            segments.display(),
            String::from_utf8_lossy(&read.stderr)
        );
        let records: Records = serde_json::from_slice(&read.stdout).unwrap();
        assert!(records.wrong.is_empty(), "{:#?}", records.wrong);
        records
    }

    /// Lets pywb replay captures from files, in a new folder; fails if one of them has another time or content.
    pub(crate) fn replay<S: AsRef<OsStr>>(
        &self,
        folder: &Path,
        files: &[S],
        captures: &[(String, DateTime<Utc>, Digest)],
    ) {
        std::fs::create_dir(folder).unwrap();
        let asked = captures.iter().map(|(url, time, _)| format!("{} {url}\n", time.format("%Y%m%d%H%M%S")));
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/replay.py");
        let mut command = self.program("python");
        let output =
            succeed(command.arg(script).arg(folder).args(files), &asked.collect::<Vec<_>>().concat());
        let replayed: Vec<Value> = output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(replayed.len(), captures.len());
        for ((url, time, digest), replayed) in captures.iter().zip(&replayed) {
            let second = time.format("%a, %d %b %Y %H:%M:%S GMT").to_string();
            assert_eq!(replayed["time"], second, "{url}");
            let theirs = format!("sha256:{}", replayed["sha256"].as_str().unwrap());
            assert_eq!(digest.to_string(), theirs, "{url} at {time}");
        }
    }
}

/// Runs a command with an input and returns its output.
pub(crate) fn succeed(command: &mut Command, input: &str) -> String {
    use std::io::Write as _;
    use std::process::Stdio;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
