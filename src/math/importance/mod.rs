//! The mathematics of importance from the papers; pure computation without I/O.
//!
//! **While crawling**: [`Ledger`] is adaptive OPIC (Abiteboul, Preda, Cobena, WWW 2003) over accounts that the caller
//! keeps. [`SiteAccount`] does the same among sites. [`CashAudit`] proves that no cash is lost. [`LinkWeights`] defines the
//! weights of links.
//!
//! **Orders** for downloading known pages: see [`order`]. **Offline**, over a whole [`Graph`]: see [`rank`].

mod audit;
mod cash;
mod graph;
mod interpolation;
mod ledger;
pub mod order;
pub mod rank;
pub mod ranking;
mod site;
mod weight;

pub use audit::{CashAudit, CashTally, Imbalance};
pub use cash::{Base, Cash};
pub use graph::{Graph, GraphBuilder, GraphError};
pub use interpolation::Credit;
pub use ledger::{
    CashAccount, ENDOWMENT, Ledger, LedgerMark, LedgerNumbers, Payout, Policy, SEED_ENDOWMENT, SmallEdge,
};
pub use site::SiteAccount;
pub use weight::{LinkTraits, LinkWeights, Weight};
