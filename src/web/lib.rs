//! Reads the web: answers are fetched byte for byte ([`fetch`]), documents of any kind become text and links ([`parse`]), and
//! what parsers need of a page is prepared for them ([`reading`]).
//!
//! # Invariants
//! * No byte from the network makes a parser panic, or take more than its limits of bytes, depth, count and time: the limits
//!   are constants, and the parsers are fuzzed.
//! * Parsing never fails. What a document lost to a limit or a mistake is said beside what was read of it.
//! * What is fetched is kept as received. Private addresses are refused unless the reader of an archive permitted them.
//!
//! ```
//! use archive_web::parse::{ParseLimits, FetchedDocument, text};
//!
//! let url = "https://example.org/".parse()?;
//! let body = b"<title>Maps</title><p>Old maps of <b>Paris</b>";
//! let source = FetchedDocument { url: &url, status: 200, content_type: Some("text/html"), headers: &[], body };
//! assert!(text(&source, &ParseLimits::default()).contains("Old maps of Paris"));
//! # Ok::<(), url::ParseError>(())
//! ```

pub mod fetch;
pub mod parse;
pub mod reading;
