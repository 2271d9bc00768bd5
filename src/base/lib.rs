//! What every floor builds on: files that are whole or not there ([`files`]), spans and points in time, who may see what
//! ([`access`], [`accounts`]), what people decided ([`decisions`]), what was erased and announced, the log of runs, texts in
//! other languages, object stores, and memory.
//!
//! Nothing here knows of pages or links. Of an archive it needs only what [`archive_storage`] keeps.
//!
//! # Invariants
//! * A file that people or other programs rely on is written whole, synced and renamed; after a crash the old one is there.
//! * A file from a stranger is read up to a limit, and is refused if it is a pipe or a device.
//! * Errors name the file, what is wrong with it, and what to do. Each room has its own.
//!
//! ```
//! use archive_base::duration::read_duration;
//!
//! assert_eq!(read_duration("1h30m")?.as_secs(), 5400);
//! assert!(read_duration("soon").unwrap_err().contains("write it like 30s"));
//! # Ok::<(), String>(())
//! ```

pub mod access;
pub mod accounts;
pub mod as_text;
pub mod beside;
pub mod control;
pub mod decisions;
pub mod duration;
pub mod erased;
pub mod error;
pub mod files;
pub mod instant;
pub mod memory;
pub mod names;
pub mod program;
pub mod remarks;
pub mod remote;
pub mod runs;
pub mod secrets;
pub mod spare;
pub mod texts;
