//! A state file with any content, even with valid checksums, is read to its end or refused.
#![no_main]

use archive_fuzz::state::{DISK, change, files, use_state};
use archive_storage::StateMode;
use archive_storage::backend::replace_file;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some(([file, how, low, high], content)) = data.split_first_chunk() else { return };
    let (disk, files) = (DISK.copy(), files());
    let path = &files[usize::from(*file) % files.len()];
    if how & 2 == 0 {
        replace_file(&disk, path, content).expect("a healthy disk");
    } else {
        change(&disk, path, usize::from(u16::from_le_bytes([*low, *high])), content);
    }
    use_state(&disk, if how & 1 == 0 { StateMode::Own } else { StateMode::Read });
});
