//! What is done with a whole archive: WARC files of other tools are imported, what was stored is copied, packed again,
//! erased, repaired, rebuilt and verified.
//!
//! Imported records become ordinary captures: they are stored in segments, credited by the same function and found by
//! the same queries. `exports` lists what was exported, for erasures.
//!
//! # Invariants
//! * Each of these may be killed at any moment: the archive is then as before or as after, or the next command finishes it.
//! * What was erased stays erased: no import, repair or copy brings it back.
//! * What cannot be read is named and left out; the rest is kept.
//!
//! ```
//! use archive_storage::Store;
//! use archive_storage::segment::SegmentOptions;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! Store::own(folder.path(), SegmentOptions::default())?.close()?;
//! let verified = archive_vault::verify::run(folder.path(), 1, &[], &mut |_| ())?;
//! assert_eq!((verified.captures, verified.findings.len()), (0, 0));
//! # Ok(())
//! # }
//! ```

pub mod copy;
pub mod erase;
pub mod exports;
pub mod import;
pub mod rebuild;
pub mod repack;
pub mod repair;
pub mod verify;

archive_base::classified! { erase::EraseError, rebuild::RebuildError, repair::RepairError }
