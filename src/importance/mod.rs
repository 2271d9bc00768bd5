//! The papers' mathematics of importance: numbers in, numbers out, no I/O.
//!
//! **While crawling**: [`Ledger`] is adaptive OPIC (Abiteboul, Preda, Cobena, WWW 2003) over accounts that the caller
//! keeps; [`SiteAccount`] the same among sites; [`Audit`] the proof that no cash is lost; [`LinkWeights`] says what a
//! link is worth. [`Window`] has the paper's other window policies for the lab.
//!
//! **Orders**, in which to download what is known: see [`order`]. **Off line**, over a whole [`Graph`]: see [`rank`].

mod audit;
mod cash;
mod graph;
mod interpolated;
mod ledger;
pub mod order;
pub mod rank;
pub mod ranking;
mod site;
mod weight;
mod window;

pub use audit::{Audit, Imbalance, Tally};
pub use cash::{Base, Cash};
pub use graph::{Graph, GraphBuilder, GraphError};
pub use interpolated::Credit;
pub use ledger::{Account, ENDOWMENT, Ledger, Numbers, Payout, Policy, SmallEdge};
pub use site::SiteAccount;
pub use weight::{LinkTraits, LinkWeights, Weight};
pub use window::{History, Window};
