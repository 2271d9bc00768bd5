//! FORMAT.md is true: the programs in it, which know nothing of this crate, read a state that this crate wrote.
//!
//! Needs `python3` and the `zstd` command.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use archive_storage::address::url_hash;
use archive_storage::backend::RealDisk;
use archive_storage::{State, StateMode, UrlId, Watermarks};

/// URLs in seven full blocks of 128, and some more.
const URLS: usize = 1000;
const IN_FULL_BLOCKS: usize = URLS / 128 * 128;

fn url(number: usize) -> String {
    format!("https://example.org/{}/straße-{number}", number / 50)
}

/// The programs of a language in FORMAT.md, in order.
fn programs(language: &str) -> Vec<String> {
    let format = include_str!("../FORMAT.md");
    let fence = format!("```{language}\n");
    format.split(&fence).skip(1).filter_map(|rest| rest.split("```").next()).map(str::to_owned).collect()
}

/// What a program prints when it runs in a folder; `None` when its tools are missing.
fn run(program: &str, folder: &Path) -> Option<String> {
    let python = "python3";
    let has = |command: &str| Command::new(command).arg("--version").output().is_ok();
    if !has(python) || !has("zstd") {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "no {python} or no zstd");
        println!("skipped: no {python} or no zstd");
        return None;
    }
    let output =
        Command::new(python).args(["-c", program]).env("PYTHONUTF8", "1").current_dir(folder).output();
    let output = output.expect("the interpreter starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).expect("text"))
}

#[test]
fn the_programs_in_the_document_read_a_state() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut state = State::open(Arc::new(RealDisk), folder.path(), StateMode::Own).expect("an archive");
    for number in 0..URLS {
        let (id, _) = state.intern(&url(number), url_hash(&url(number))).expect("a URL");
        state.update_page(id, |page| page.cash = 7 - number.cast_signed() as i64).expect("a page");
    }
    state.checkpoint(Watermarks::default()).expect("a checkpoint");
    // Some blocks changed in place, too.
    for id in 0..100 {
        state.update_page(UrlId(id), |page| page.cash += 1 << 40).expect("a page");
    }
    state.checkpoint(Watermarks::default()).expect("a checkpoint");
    let programs = programs("python");
    let [urls, cash] = programs.as_slice() else { panic!("{} programs", programs.len()) };
    if let Some(printed) = run(urls, folder.path()) {
        assert!(printed.lines().eq((0..IN_FULL_BLOCKS).map(url)));
    }
    if let Some(printed) = run(cash, folder.path()) {
        let expected: i64 = (0..URLS as i64).map(|number| 7 - number).sum::<i64>() + (100 << 40);
        assert_eq!(printed.trim(), expected.to_string());
    }
}
