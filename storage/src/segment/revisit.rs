//! How a revisit refers to the original capture, and why.

use chrono::{DateTime, Utc};

use crate::warc::HeadWriter;

/// `WARC-Profile` of a revisit with the payload of an earlier capture (WARC/1.1 section 6.7.2).
pub const PROFILE_IDENTICAL: &str = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";
/// `WARC-Profile` of a revisit for a "not modified" response (WARC/1.1 section 6.7.3).
pub(crate) const PROFILE_NOT_MODIFIED: &str = "http://netpreserve.org/warc/1.1/revisit/server-not-modified";
/// `WARC-Profile` of a revisit whose payload is that of an earlier capture once content codings are removed, but not as
/// received. It has no block, because the payload that it refers to has the codings that the original's head states.
pub(super) const PROFILE_SAME_CONTENT: &str = "urn:archive:revisit:identical-content";

/// Whether a `WARC-Profile` of either version of the standard means "not modified".
#[must_use]
pub fn is_not_modified(profile: &str) -> bool {
    profile.trim_end_matches('/').ends_with("/revisit/server-not-modified")
}

/// Writes a reference to the original, by its URL and time, into the head of a revisit (WARC/1.1 sections 5.11 and
/// 5.12).
pub(super) fn refer(head: &mut HeadWriter, profile: &str, original_url: &str, original_time: DateTime<Utc>) {
    head.field("WARC-Profile", profile);
    head.field("WARC-Refers-To-Target-URI", original_url);
    head.date_field("WARC-Refers-To-Date", original_time);
}
