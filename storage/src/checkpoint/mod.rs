//! State that is changed in memory and becomes durable all at once.
//!
//! Everything here is derived from the segments; what a checkpoint buys is that opening replays only the segments' tail.
//! A checkpoint with number `n` goes:
//!
//! 1. append-only files ([`BlockLog`]) and blocks of tables that no checkpoint counts yet are written;
//! 2. the blocks of tables ([`Table`]) that would change in place go to the redo journal ([`Journal`]) with `n`;
//! 3. all these files are synced;
//! 4. one transaction in the catalogue commits `n`, the lengths of all files, the open blocks and the numbers. This is
//!    the commit point: before it the old state stands, after it the new one;
//! 5. the journalled blocks are written in place and synced.
//!
//! Opening applies the journal again if its number is the catalogue's (doing it twice changes nothing), ignores it
//! otherwise, and cuts files to the committed lengths. Steps 4 and 5 happen under the exclusive
//! [`lock`] that readers share, so a reader sees one checkpoint whole.

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
    FieldReader, FieldWriter, Record, length_of_varints, push_varint, take_varint, take_varints, unzigzag,
    zigzag,
};
pub(crate) use journal::Journal;
pub use lock::Owner;
pub(crate) use log::BlockLog;
pub(crate) use records::{Position, RecordCursor, RecordLog};
pub(crate) use table::{BLOCK_BYTES, Cursor, Table, write_block};
