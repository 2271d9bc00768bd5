//! Programs of other people that read WARC files (warcio, FastWARC, pywb), and axe-core, which looks at pages.
//!
//! They live in a Python environment whose folder of programs `$ARCHIVE_TEST_JUDGES` names; `tests/run` makes one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::{files_with, skip};

/// The environment with the judges.
pub(crate) struct Judges {
    programs: PathBuf,
}

/// How many records of each type there are.
pub(crate) type Counts = BTreeMap<String, u64>;

/// What the judges read in a folder of WARC files.
#[derive(Debug, Deserialize)]
pub(crate) struct Records {
    /// By FastWARC.
    pub(crate) fastwarc: Counts,
    /// By warcio, which does not know zstd.
    pub(crate) warcio: Counts,
    /// Responses and revisits of each URL.
    pub(crate) targets: Counts,
    /// Records that do not have their digests.
    wrong: Vec<String>,
}

impl Records {
    /// Responses and revisits.
    pub(crate) fn captures(&self) -> u64 {
        self.targets.values().sum()
    }
}

/// The judges, if there are any on this machine.
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

/// The script of axe-core, which judges whether pages can be used by everybody, if it is on this machine.
pub(crate) fn axe() -> Option<String> {
    let Judges { programs } = find()?;
    let script = programs.join("../node_modules/axe-core/axe.min.js");
    Some(std::fs::read_to_string(&script).unwrap_or_else(|error| panic!("{}: {error}", script.display())))
}

impl Judges {
    /// Whether one of the programs is there: a folder from before it was needed does not have it.
    pub(crate) fn have(&self, name: &str) -> bool {
        let found = self.programs.join(name).exists();
        if !found {
            skip(&format!("there is no {name} among the judges; tests/run installs it"));
        }
        found
    }

    /// One of the programs.
    pub(crate) fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }

    /// Lets all of them read every segment in a folder; fails if one finds anything wrong.
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
}

/// Runs a command with an input and gives what it printed.
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
