//! Verifies copies.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use archive_base::control::Control;
use serde::Serialize;

use super::{CopiedFile, CopyError, CopyProgress, Remote, transfer};

/// A problem with copies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CopyFinding {
    /// The object, or the manifest.
    pub object: String,
    /// The archive's file in the object, if any.
    pub path: Option<String>,
    /// What is wrong.
    pub what: String,
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyCheck {
    /// Number of copies.
    pub copies: u64,
    /// Number of objects that the copies refer to.
    pub objects: u64,
    /// Bytes of the objects.
    pub bytes: u64,
    /// The problems found.
    pub findings: Vec<CopyFinding>,
}

/// Reads every byte of one copy, or of all copies, and compares it with the manifests.
///
/// # Errors
/// If the store fails, or there is no copy.
pub fn check(
    remote: &Remote,
    number: Option<u64>,
    control: &Control,
    progress: CopyProgress<'_>,
) -> Result<CopyCheck, CopyError> {
    let numbers = remote.numbers()?;
    let wanted: Vec<u64> =
        numbers.iter().copied().filter(|found| number.is_none_or(|wanted| wanted == *found)).collect();
    if wanted.is_empty() {
        return Err(CopyError::NoCopy { url: remote.url.clone(), number });
    }
    let mut checked = CopyCheck { copies: wanted.len() as u64, ..CopyCheck::default() };
    let mut objects: BTreeMap<String, CopiedFile> = BTreeMap::new();
    for number in &wanted {
        match remote.manifest(*number) {
            Ok(manifest) => {
                objects.extend(manifest.files.into_iter().map(|file| (file.object().to_string(), file)));
            }
            Err(CopyError::Manifest { problem, .. }) => {
                checked.find(super::manifest::manifest(*number).to_string(), None, problem);
            }
            Err(error) => return Err(error),
        }
    }
    for (before, after) in
        numbers.iter().zip(numbers.iter().skip(1)).filter(|(before, after)| **before + 1 != **after)
    {
        let what = format!("copies {} to {} are not there, although older ones are", before + 1, after - 1);
        checked.find(super::manifest::manifest(before + 1).to_string(), None, what);
    }
    let files: Vec<CopiedFile> = objects.into_values().collect();
    let (total, done) = (files.iter().map(|file| file.bytes).sum(), AtomicU64::new(0));
    let outcomes = transfer::each(&files, control, |file| {
        let problem = transfer::again(|| transfer::download(remote, file, control, &mut |_| Ok(())))?;
        progress(done.fetch_add(file.bytes, Ordering::Relaxed) + file.bytes, total);
        Ok(problem)
    })?;
    (checked.objects, checked.bytes) = (files.len() as u64, total);
    for (file, problem) in files.iter().zip(outcomes) {
        if let Some(problem) = problem {
            checked.find(file.object().to_string(), Some(file.path.clone()), problem);
        }
    }
    Ok(checked)
}

impl CopyCheck {
    fn find(&mut self, object: String, path: Option<String>, what: String) {
        self.findings.push(CopyFinding { object, path, what });
    }
}
