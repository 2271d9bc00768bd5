//! Fetches input of the crawler that is not archived, through reqwest.

use archive_base::program;

use super::{During, Failure, Result};

/// Maximum size of a list of seeds.
const TEXT_BYTES_MAX: u64 = 64 << 20;

/// Fetches a text over HTTP.
pub(crate) fn text(url: &str) -> Result<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(fetch(url)).within(format_args!("cannot fetch {url}"))
}

async fn fetch(url: &str) -> Result<String> {
    // reqwest is built without a crypto provider of its own; use the crawler's for the whole process.
    drop(rustls::crypto::ring::default_provider().install_default());
    let client = reqwest::Client::builder().user_agent(program::PRODUCT).build()?;
    let mut response = client.get(url).send().await?.error_for_status()?;
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() as u64 > TEXT_BYTES_MAX {
            fail!("it is longer than {} MiB", TEXT_BYTES_MAX >> 20);
        }
    }
    String::from_utf8(bytes).map_err(Failure::failed).within("it is not UTF-8 text")
}
