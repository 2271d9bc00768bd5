//! An archive on disk.
//!
//! A plan's conditions become a filter on prepared columns (`compile`, `filter`), which is evaluated for a block of rows at
//! once: most parts read a column or a list of ids, the others get the values of fields from `sources`. The rows that are
//! left give the first rows of an order (`first`, `order`), samples, or counts and sums (`aggregate`). Where columns do not
//! decide everything, they leave rows for `run`; without columns, the tables of the state have all rows.

pub(crate) mod aggregate;
pub(crate) mod answers;
pub(crate) mod archive;
pub(crate) mod archive_rows;
pub(crate) mod captures;
pub(crate) mod codes;
pub(crate) mod compile;
pub(crate) mod context;
pub(crate) mod documents;
pub(crate) mod filter;
pub(crate) mod first;
pub(crate) mod links;
pub(crate) mod numbers;
pub(crate) mod order;
pub(crate) mod page_batch;
pub(crate) mod pages;
pub(crate) mod passes;
pub(crate) mod relations;
pub(crate) mod row_set;
pub(crate) mod sites;
pub(crate) mod software;
pub(crate) mod sources;
pub(crate) mod structures;
pub(crate) mod texts;
pub(crate) mod topics;
pub(crate) mod visits;

pub(crate) use archive::{ArchiveRows, ArchiveRowsError};
