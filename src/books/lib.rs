//! What an archive knows beside its captures: accounts of pages, sites and links ([`ledger`]), which every capture enters by
//! one path ([`recorder`]), the full-text index ([`search`]), columns for queries ([`prepared`], [`columns`]), topics
//! ([`topics`]), differences of versions ([`change`]), what nodes exchange ([`cluster`]), and the state as a role may see it
//! ([`veil`]).
//!
//! # Invariants
//! * All of it is derived from the captures, and can be made again from them; what cannot is written where a rebuild keeps it.
//! * A capture counts once, whether it is live, imported or replayed after a crash.
//! * Readers in other processes see the last checkpoint, never half of one.
//!
//! ```
//! use archive_books::change::text::passages;
//!
//! let (places, is_rough) = passages(&["Open on Monday. Free."], &["Open on Sunday. Free."]);
//! assert_eq!((places.len(), is_rough), (1, false));
//! assert_eq!(places[0].new, ["Open on Sunday."]);
//! ```

pub mod change;
pub mod cluster;
pub mod columns;
pub mod ledger;
pub mod order_plot;
pub mod originals;
pub mod prepared;
pub mod recorder;
pub mod search;
pub mod stored_graph;
pub mod topics;
pub mod trends;
pub mod veil;

archive_base::classified! {
    change::VersionError, cluster::ClusterError, columns::ColumnError, ledger::CreditError,
    recorder::RecorderError, search::SearchError, stored_graph::JoinError, stored_graph::OutlineError,
    topics::TopicError
}
