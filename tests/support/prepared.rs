//! Archives that several tests begin with: made once for a build of the tests and of the program, and copied for each
//! test.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::UNIX_EPOCH;

use super::Archive;

/// Returns a copy of the archive of this name; the first test that asks for it makes it. It must not depend on that
/// test.
pub(crate) fn prepared(name: &str, make: impl FnOnce() -> Archive) -> Archive {
    let built = |program: &Path| {
        let modified = fs::metadata(program).unwrap().modified().unwrap();
        modified.duration_since(UNIX_EPOCH).unwrap().as_nanos()
    };
    // The tests say what is made, the program makes it.
    let tests = std::env::current_exe().unwrap();
    let build = format!("{}-{}", built(&tests), built(Path::new(env!("CARGO_BIN_EXE_archive"))));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("prepared").join(name);
    let archive = folder.join(build);
    fs::create_dir_all(&folder).unwrap();
    // Each test is a process of its own.
    let lock = File::create(folder.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    if !archive.exists() {
        // Of older builds, or of a test that was killed.
        fs::remove_dir_all(&folder).unwrap();
        fs::create_dir_all(&folder).unwrap();
        let unfinished = folder.join("unfinished");
        copy(&make().path, &unfinished);
        fs::rename(&unfinished, &archive).unwrap();
    }
    let own = Archive::new();
    copy(&archive, &own.path);
    own
}

/// Copies a folder to a place where there is none.
pub(crate) fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(status.success(), "cp -a {}", from.display());
}
