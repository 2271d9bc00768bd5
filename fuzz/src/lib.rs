//! Helpers shared by the fuzz targets: for documents here, for the state in [`state`].

pub mod state;

use archive_web::parse::{FetchedDocument, ParseLimits, ParsedDocument, facts, parse};
use url::Url;

/// Reads a document as the crawler does and checks the invariants that hold for every document.
///
/// # Panics
/// If a limit or another guarantee of [`archive_web::parse`] is violated.
pub fn read_document(content_type: &str, body: &[u8]) -> ParsedDocument {
    let url = Url::parse("https://www.example.org/a/b.html").expect("this is a URL");
    let limits = ParseLimits::default();
    let headers = [("Content-Type", content_type.as_bytes())];
    let source =
        FetchedDocument { url: &url, status: 200, content_type: Some(content_type), headers: &headers, body };
    let parsed = parse(&source, &limits);
    assert_eq!(facts(&source, &limits).text, parsed.text);
    assert!(parsed.text.len() <= limits.text_bytes_max);
    assert!(parsed.links.len() <= limits.sitemap_links_max);
    for link in &parsed.links {
        assert!(link.url.len() <= limits.url_bytes_max, "too long a link");
        let again = Url::parse(&link.url).expect("links are URLs");
        assert_eq!(archive_storage::address::canonical(&again), link.url, "links are canonical");
    }
    assert!(parsed.entries.iter().all(|entry| (entry.link as usize) < parsed.links.len()));
    for part in &parsed.surroundings {
        assert!(part.start <= part.end, "a part of the text");
    }
    let _ = parsed.own_lines();
    parsed
}
