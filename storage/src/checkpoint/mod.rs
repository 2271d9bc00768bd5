//! State that is changed in memory and becomes durable atomically.
//!
//! Everything here is derived from the segments; thanks to checkpoints, opening replays only the segments' tail.
//! Checkpoint number `n` proceeds as follows:
//!
//! 1. append-only files ([`BlockLog`]), and blocks of tables that no checkpoint counts yet, are written;
//! 2. the blocks of tables ([`RecordTable`]) that would change in place are written to the redo journal ([`Journal`]) with
//!    `n`;
//! 3. all these files are synced;
//! 4. one transaction in the catalogue commits `n`, the lengths of all files, the open blocks and the numbers. This is
//!    the commit point: before it the old state is valid, after it the new one;
//! 5. the journalled blocks are written in place and synced.
//!
//! Opening applies the journal again if its number is the catalogue's (applying it twice is harmless), ignores it
//! otherwise, and truncates files to the committed lengths. Steps 4 and 5 happen under the exclusive [`lock`] that
//! readers share, so a reader always sees one complete checkpoint.

mod error;
mod fields;
mod journal;
pub(crate) mod lock;
mod log;
mod records;
mod table;

pub(crate) use error::Result;
pub use error::StateError;
pub(crate) use fields::{
    FieldReader, FieldWriter, TableRecord, length_of_varints, push_varint, take_varint, take_varints,
    unzigzag, zigzag,
};
pub(crate) use journal::Journal;
pub use lock::Owner;
pub(crate) use log::BlockLog;
pub(crate) use records::{Position, RecordCursor, RecordLog};
pub(crate) use table::{BLOCK_BYTES, RecordTable, TableCursor, write_block};
