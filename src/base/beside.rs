//! The files beside the state that nothing but a copy can bring back: which of them there have to be.
//!
//! People edit some of them, and no segment tells that one existed. An archive whose access rules or whose list of
//! erased URLs is lost would show or fetch what it must not. So each checkpoint notes in the state which of these files
//! there are, and the program never removes one.

use std::path::Path;

use archive_storage::{State, StateError};

use crate::{access, decisions, erased, files, remarks};

/// The list of exports.
pub const EXPORTS: &str = "exports.jsonl";

/// What an archive took over from its cluster (`share`).
pub const SHARED: &str = "shared.json";

/// The setting with the names of the files, one a line.
pub const SETTING: &str = "beside";

/// The files, and whether each ends with its checksum ([`files::is_checked`]).
const KNOWN: [(&str, bool); 5] = [
    (access::FILE, false),
    (decisions::FILE, false),
    (erased::FILE, true),
    (EXPORTS, true),
    (remarks::FILE, false),
];

/// Notes the files that are there, from the next checkpoint on.
///
/// # Errors
/// When the state cannot be changed.
pub fn note(state: &mut State, archive: &Path) -> Result<(), StateError> {
    let mut names = noted(state);
    names.extend(KNOWN.iter().filter(|file| is_there(archive, file)).map(|(name, _)| *name));
    names.sort_unstable();
    names.dedup();
    let text = names.join("\n");
    if text.as_bytes() == state.setting(SETTING).unwrap_or_default() {
        return Ok(());
    }
    state.set_setting(SETTING, Some(text.as_bytes()))
}

/// The files that were there and are missing, or have lost their end.
#[must_use]
pub fn missing(state: &State, archive: &Path) -> Vec<&'static str> {
    let mut noted = noted(state);
    // A cluster may take its rules back.
    noted.retain(|name| *name != access::FILE || !archive.join(SHARED).exists());
    let lost = KNOWN.iter().filter(|file| noted.contains(&file.0) && !is_there(archive, file));
    lost.map(|(name, _)| *name).collect()
}

fn noted(state: &State) -> Vec<&'static str> {
    let text = state.setting(SETTING).unwrap_or_default();
    let names: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    KNOWN.iter().map(|(name, _)| *name).filter(|name| names.contains(&name.as_bytes())).collect()
}

fn is_there(archive: &Path, (name, is_checked): &(&str, bool)) -> bool {
    let path = archive.join(name);
    match path.symlink_metadata() {
        // Whoever has no copy of the list of exports may begin an empty one.
        Ok(found) => !is_checked || files::is_checked(&path) || (*name == EXPORTS && found.len() == 0),
        Err(_) => false,
    }
}
