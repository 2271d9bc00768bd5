//! A disk small enough to be filled, or one that cannot be written.

use std::path::PathBuf;
use std::process::Command;

use super::skip;

/// A small file system of its own in memory, which is gone with the test.
pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts one; nothing, and a word about it, where a test may not.
    pub(crate) fn mount(path: PathBuf, options: &str) -> Option<Self> {
        std::fs::create_dir_all(&path).unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(&path).output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self(path)),
            Ok(output) => {
                skip(&format!(
                    "a file system cannot be mounted: {}",
                    String::from_utf8_lossy(&output.stderr)
                ));
                None
            }
            Err(error) => {
                skip(&format!("there is no mount: {error}"));
                None
            }
        }
    }

    pub(crate) fn change(&self, options: &str) {
        let options = format!("remount,{options}");
        assert!(Command::new("mount").args(["-o", &options]).arg(&self.0).status().unwrap().success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Detached at once, also if something in it is still open.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
