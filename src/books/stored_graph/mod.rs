//! The graph of what archives have: pages and sites of one archive, or of several that rank together.

mod books;
mod joined;
mod outline;
mod stored;

pub use books::{Books, Entry, Folder};
pub use joined::{How, JoinError, Joined};
pub use outline::{Outline, OutlineError, OutlineRows, send as send_outline};
pub use stored::{PageGraph, site_graph};
