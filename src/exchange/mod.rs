//! WARC files from and for other tools.
//!
//! Imported records become ordinary captures: they are stored in segments, credited by the same function and found by
//! the same queries. Exports contain the stored records, and indexes of them in formats that other tools read.

pub mod copy;
pub mod erase;
pub mod export;
pub mod exports;
pub mod import;
pub mod rebuild;
pub mod repack;
pub mod repair;
pub mod verify;
