//! The audit log, one JSON object per line: logins, failed logins, logouts, refused requests, decisions.
//!
//! Each line is on disk before the recorded action proceeds. A full file is rotated; a fixed number of old files is
//! kept.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek, SeekFrom, Write};
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use archive_storage::backend::{OpenMode, open_regular};
use chrono::{SecondsFormat, Utc};
use serde::Serialize;

/// Maximum size of a file in bytes before it is rotated. Copies of an archive include files up to this size unchanged.
const BYTES_MAX: u64 = 1 << 20;

/// Maximum number of rotated files; `.1` is the newest.
const ASIDE_MAX: u32 = 8;

/// Kind of event.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::serve) enum AuditKind {
    Login,
    Failure,
    Limited,
    Logout,
    Refused,
    Decision,
}

/// An event. Of the user's input it contains only names of existing accounts.
#[derive(Clone, Debug, Serialize)]
pub(in crate::serve) struct Event<'a> {
    pub(in crate::serve) event: AuditKind,
    /// The account; `None` if the given name is unknown.
    pub(in crate::serve) name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::serve) address: Option<IpAddr>,
    /// The path that was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::serve) path: Option<&'a str>,
}

impl<'a> Event<'a> {
    pub(in crate::serve) fn of(event: AuditKind, name: Option<&'a str>) -> Self {
        Self { event, name, address: None, path: None }
    }
}

#[derive(Serialize)]
struct AuditLine<'a> {
    time: String,
    #[serde(flatten)]
    event: &'a Event<'a>,
}

#[derive(Debug)]
pub(super) struct Audit {
    path: PathBuf,
    file: File,
    length: u64,
}

impl Audit {
    pub(super) fn open(path: PathBuf) -> io::Result<Self> {
        let mut file = open_regular(&path, OpenMode::Create)?;
        if file.try_lock().is_err() {
            return Err(io::Error::other("another server writes it"));
        }
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
        let length = file.seek(SeekFrom::End(0))?;
        let mut last = [b'\n'];
        if length > 0 {
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
        }
        let mut audit = Self { path, file, length };
        if last != [b'\n'] {
            // A line that a crash cut off remains a separate line.
            audit.append(b"\n")?;
        }
        Ok(audit)
    }

    pub(super) fn write(&mut self, event: &Event<'_>) -> io::Result<()> {
        let time = Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true);
        let mut line = serde_json::to_vec(&AuditLine { time, event })?;
        line.push(b'\n');
        if self.length + line.len() as u64 > BYTES_MAX {
            self.put_aside()?;
        }
        self.append(&line)
    }

    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        self.file.write_all(line)?;
        self.file.sync_data()?;
        self.length += line.len() as u64;
        Ok(())
    }

    fn put_aside(&mut self) -> io::Result<()> {
        let aside = |number: u32| {
            let mut name = self.path.as_os_str().to_owned();
            name.push(format!(".{number}"));
            PathBuf::from(name)
        };
        for number in (1..ASIDE_MAX).rev().filter(|number| aside(*number).exists()) {
            fs::rename(aside(number), aside(number + 1))?;
        }
        fs::rename(&self.path, aside(1))?;
        *self = Self::open(self.path.clone())?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_bounded_private_and_a_line_an_event() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let mut audit = Audit::open(path.clone()).unwrap();
        audit
            .write(&Event { path: Some("/runs"), ..Event::of(AuditKind::Refused, Some("an\u{85}na\n")) })
            .unwrap();
        fs::write(&path, [&fs::read(&path).unwrap(), &b"{\"cut"[..]].concat()).unwrap();
        assert!(Audit::open(path.clone()).unwrap_err().to_string().contains("another server"));
        drop(audit);
        let mut audit = Audit::open(path.clone()).unwrap();
        audit.write(&Event::of(AuditKind::Failure, None)).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        let line: serde_json::Value = serde_json::from_str(lines[0]).unwrap();
        assert_eq!((&line["event"], &line["path"]), (&"refused".into(), &"/runs".into()));
        assert!(lines[2].ends_with("\"event\":\"failure\",\"name\":null}"), "{text}");
        for _ in 0..ASIDE_MAX + 2 {
            audit.length = BYTES_MAX;
            audit.write(&Event::of(AuditKind::Login, Some("anna"))).unwrap();
        }
        let mut names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap()).collect();
        names.sort_by_key(fs::DirEntry::file_name);
        assert_eq!(names.len(), 1 + ASIDE_MAX as usize);
        assert!(names.iter().all(|entry| entry.metadata().unwrap().permissions().mode() & 0o077 == 0));
    }
}
