//! A disk small enough to be filled, or one that cannot be written to.

use std::path::PathBuf;
use std::process::Command;

use super::skip;

/// A small in-memory file system that is removed with the test.
pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts one; prints a message and returns `None` if the test lacks the permission.
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
        // Detached at once, even if a file in it is still open.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
