//! What is done with a whole archive: WARC files of other tools are imported, what was stored is copied, packed again,
//! erased, repaired, rebuilt and verified.
//!
//! Imported records become ordinary captures: they are stored in segments, credited by the same function and found by
//! the same queries. `exports` lists what was exported, for erasures.

pub mod copy;
pub mod erase;
pub mod exports;
pub mod import;
pub mod rebuild;
pub mod repack;
pub mod repair;
pub mod verify;
