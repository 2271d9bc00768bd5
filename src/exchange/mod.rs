//! WARC files from and for other tools.
//!
//! What is imported becomes captures like any other: stored in segments, credited by the same function, found by the same
//! queries. What is exported are the records as they are stored, and indexes of them in the forms other tools read.

pub mod copy;
pub mod erase;
pub mod export;
pub mod exports;
pub mod import;
pub mod rebuild;
pub mod repack;
pub mod repair;
pub mod verify;
