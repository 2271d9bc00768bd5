//! Lists the captures of a URL, newest first, and prints the first bytes of its newest version.
//!
//!     cargo run --release --example page_history -- web.archive https://www.example.org/

use anyhow::{Context as _, bail};
use archive_storage::Store;
use archive_storage::address::canonical;
use chrono::{DateTime, Utc};

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, url] = arguments.as_slice() else { bail!("usage: page_history ARCHIVE URL") };
    let store = Store::read_only(folder.as_ref()).with_context(|| format!("cannot open {folder}"))?;
    let state = store.state();
    let url = canonical(&url.parse().with_context(|| format!("{url} is not a URL"))?);
    let page = state.find(&url)?.with_context(|| format!("{url} is not in the archive"))?;

    for capture in state.history(page)? {
        let (_, capture) = capture?;
        let time = DateTime::<Utc>::from_timestamp_micros(capture.time).unwrap_or_default();
        println!("{time}  {:?}  status {}  {} bytes", capture.kind, capture.status, capture.length);
    }
    // A revisit has no content of its own; the newest version is the capture that has it.
    if let Some((_, version)) = state.newest_version(page)?
        && let Some(content) = store.payload(&version)?
    {
        println!("{}", String::from_utf8_lossy(&content[..content.len().min(200)]).escape_debug());
    }
    Ok(())
}
