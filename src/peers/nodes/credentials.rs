//! Names and passwords for nodes, from a private file: each line has a URL, a name and a password, separated by spaces.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use archive_base::files;
use url::{Origin, Url};

use super::AskError;

/// Maximum size in bytes; a larger file is refused.
const BYTES_MAX: u64 = 1 << 20;

/// Accounts for nodes.
#[derive(Default)]
pub struct Credentials(Vec<(Origin, String, String)>);

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").field("nodes", &self.0.len()).finish()
    }
}

impl Credentials {
    /// Reads a file.
    ///
    /// # Errors
    /// When the file cannot be read, is accessible to other users, or has a malformed line.
    pub fn read(path: &Path) -> Result<Self, AskError> {
        let wrong = |problem: String| AskError::Wrong(format!("{}: {problem}", path.display()));
        let unreadable = |error: io::Error| wrong(error.to_string());
        let mode = fs::metadata(path).map_err(unreadable)?.permissions().mode() & 0o7777;
        if mode & 0o077 != 0 {
            return Err(wrong(format!(
                "others can read or write it (its mode is {mode:o}); keep it private: chmod 600"
            )));
        }
        let text = String::from_utf8(files::read(path, BYTES_MAX).map_err(unreadable)?)
            .map_err(|_| wrong("it is not UTF-8 text".to_owned()))?;
        let mut all = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let mut parts = line.splitn(3, ' ');
            let url = parts.next().and_then(|url| Url::parse(url).ok()).filter(Url::has_host);
            let (Some(url), Some(name), Some(password)) = (url, parts.next(), parts.next()) else {
                return Err(wrong(format!("line {number} is not a URL, a name and a password")));
            };
            all.push((url.origin(), name.to_owned(), password.to_owned()));
        }
        Ok(Self(all))
    }

    /// Name and password for a node, matched by scheme, host and port.
    pub(super) fn of(&self, url: &Url) -> Option<(String, String)> {
        let found = self.0.iter().find(|(origin, ..)| *origin == url.origin());
        found.map(|(_, name, password)| (name.clone(), password.clone()))
    }
}
