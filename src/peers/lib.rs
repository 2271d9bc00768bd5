//! Archives together: other machines are asked and answer ([`nodes`]), the partitions of a cluster share what people decided
//! and erased ([`share`]), and the rows of one archive or many become files for other tools ([`export`]).
//!
//! # Invariants
//! * A node that does not answer is named; what the others know is still shown.
//! * What another machine sends is read within limits, and is never believed about captures that it does not have.
//! * An order to a cluster is carried out once by each partition, in the order in which it was published.
//!
//! ```
//! use archive_peers::share::orders::List;
//!
//! assert_eq!(List::EACH.map(List::name), ["decisions", "erasures"]);
//! ```

pub mod export;
pub mod nodes;
pub mod share;
