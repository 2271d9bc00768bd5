//! Third-party test suites and hostile input: robots.txt, URLs, SURT, sitemaps, feeds, XML.
//!
//! Every test prints the number of cases that hold, and each that does not with the reason. Counts may only rise: a
//! test fails if fewer cases hold than it states, or if a miss has no reason. The data is not part of the project.
//! Without it, a test prints that it is skipped, or fails if `CI=true`.

mod archives;
mod feeds;
mod hostile;
mod links;
mod robots;
mod sitemaps;
mod surt;
mod urls;
mod xml;
mod xpath;

use std::path::PathBuf;

use archive_web::parse::{FetchedDocument, ParseLimits, ParsedDocument, parse};
use url::Url;

/// Returns the bytes of a file of test data; prints a message and returns `None` if it is missing.
fn data(path: &str) -> Option<Vec<u8>> {
    let root = std::env::var_os("ARCHIVE_TEST_DATA")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/data"), PathBuf::from);
    match std::fs::read(root.join("conformance").join(path)) {
        Ok(bytes) => Some(bytes),
        Err(error) => {
            assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "{path}: {error}");
            println!("skipped: {path}: {error}");
            None
        }
    }
}

/// Returns the text of a file of test data.
fn text(path: &str) -> Option<String> {
    data(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Counts the cases of a suite, and lists those that do not hold.
#[derive(Default)]
struct Tally {
    held: usize,
    missed: usize,
    without_reason: usize,
}

impl Tally {
    fn held(&mut self) {
        self.held += 1;
    }

    fn missed(&mut self, case: &str, reason: Option<&str>) {
        self.missed += 1;
        self.without_reason += usize::from(reason.is_none());
        println!("  missed: {case}: {}", reason.unwrap_or("NO REASON KNOWN"));
    }

    /// Prints the counts; fails if fewer cases hold than before or if a miss has no reason.
    fn finish(self, suite: &str, held_min: usize) {
        println!("{suite}: {} of {} hold", self.held, self.held + self.missed);
        assert_eq!(self.without_reason, 0, "{suite}: misses without a reason");
        assert!(self.held >= held_min, "{suite}: {} hold, {held_min} did before", self.held);
    }
}

/// Reads a document as the crawler would.
fn read(url: &str, content_type: &str, body: &[u8]) -> ParsedDocument {
    let url = Url::parse(url).unwrap();
    let source =
        FetchedDocument { url: &url, status: 200, content_type: Some(content_type), headers: &[], body };
    parse(&source, &ParseLimits::default())
}
