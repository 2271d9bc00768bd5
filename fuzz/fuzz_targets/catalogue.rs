//! A state with any catalogue rows is read completely or refused.
#![no_main]

use archive_fuzz::state::{change_rows, use_state};
use archive_storage::StateMode;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((how, rows)) = data.split_first() else { return };
    let Some(disk) = change_rows(rows) else { return };
    use_state(&disk, if how & 1 == 0 { StateMode::Own } else { StateMode::Read });
});
