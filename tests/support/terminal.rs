//! A terminal that records what a program writes to it, provided by `script` (util-linux, part of every Debian).

use std::fs;
use std::process::Command;

use super::program::{Finished, start};

/// The stream of a program that is a terminal; the other one is a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    Output,
    Errors,
}

/// Runs a command with one stream at a terminal of this many columns. `output` is what it wrote to the terminal,
/// `errors` what it wrote to the other stream.
pub(crate) fn at_terminal(command: &Command, stream: At, columns: u16) -> Finished {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other");
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<String> = words.map(|word| quoted(word.to_str().unwrap())).collect();
    let redirected = if stream == At::Output { "2" } else { "1" };
    let line = format!(
        "stty cols {columns} rows 50; exec {} {redirected}>{}",
        words.join(" "),
        quoted(other.to_str().unwrap())
    );
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    // The usual shell of a user speaks up about a language that is not installed.
    script.env("SHELL", "/bin/sh");
    script.env_remove("ARCHIVE_DIR").env_remove("COLUMNS").env_remove("NO_COLOR").env("TERM", "xterm");
    script.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let finished = start(&mut script).wait();
    Finished { errors: fs::read_to_string(other).unwrap(), ..finished }
}

/// Quotes a word for the shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}
