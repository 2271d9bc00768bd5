//! The graph of what archives have: pages and sites of one archive, or of several that rank together.

mod books;
mod one;
mod outline;
mod several;

pub use books::{Books, Entry, Folder};
pub use one::{PageGraph, site_graph};
pub use outline::{Outline, OutlineError, OutlineRows, send as send_outline};
pub use several::{How, JoinError, Joined};
