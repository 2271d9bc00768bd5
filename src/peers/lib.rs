//! Archives together: other machines are asked and answer ([`nodes`]), the partitions of a cluster share what people decided
//! and erased ([`share`]), the rows of one archive or many become files for other tools ([`export`]), and one machine crawls
//! several partitions ([`supervisor`]).
//!
//! # Words
//! * A *node* is an archive on another machine that answers questions ([`nodes`]).
//! * A *cluster* is the partitions of one crawl, and what they exchange through an object store
//!   ([`archive_books::cluster`]); each is crawled by a *cluster node*, and a machine has one or more.
//! * What is *shared* holds for all archives of a cluster.
//!
//! # Invariants
//! * A node that does not answer is named; what the others know is still shown.
//! * What another machine sends is read within limits, and is never believed about captures that it does not have.
//! * An order to a cluster is carried out once by each partition, in the order in which it was published.
//!
//! ```
//! use archive_peers::share::orders::OrderList;
//!
//! assert_eq!(OrderList::EACH.map(OrderList::name), ["decisions", "erasures"]);
//! ```

pub mod export;
pub mod nodes;
pub mod share;
pub mod supervisor;

archive_base::classified! { export::ExportError, share::ShareError, supervisor::SupervisorError }
