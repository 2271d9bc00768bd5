//! Bodies that were cut off: the rest is asked for, from the byte on at which the connection was lost, as long as the
//! server still has what it began to send (`If-Range`, RFC 9110, section 13.1.5).
//!
//! What is stored is the head of the first response and the whole body, every byte as received; the heads of the responses
//! with the rest are not.

use archive_storage::segment::Truncated;
use archive_storage::warc::HttpHead;

use super::service::FetchClient;
use super::{Endpoint, Exchange, FetchError, FetchRequest};
use crate::parse::headers::content_range;
use crate::parse::http_date;

/// Maximum number of times that the rest of a body is asked for.
const RESUMES_MAX: usize = 5;

/// The rest of a body, and what names the version that it has to be of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyRest {
    /// Its first byte.
    pub(super) from: u64,
    /// A strong validator: an entity tag or a date.
    pub(super) validator: String,
    /// Length of the whole body.
    length: u64,
    /// Its content coding.
    coding: String,
}

impl BodyRest {
    /// The rest that a response lacks, if it is known what that is.
    fn of(exchange: &Exchange) -> Option<Self> {
        let is_cut = matches!(exchange.truncated, Some(Truncated::Disconnect | Truncated::Time));
        if !is_cut || exchange.status != 200 {
            return None;
        }
        let (head, from) = (exchange.http.head(), exchange.http.body_length());
        let length: u64 = head.get("Content-Length")?.trim().parse().ok()?;
        let is_plain = head.get("Transfer-Encoding").is_none()
            && head.get("Accept-Ranges").map(str::trim) != Some("none");
        let validator = validator(&head)?;
        let coding = head.list("Content-Encoding");
        (is_plain && from < length).then_some(Self { from, validator, length, coding })
    }

    /// Whether a response has what comes next.
    fn is_in(&self, exchange: &Exchange) -> bool {
        let head = exchange.http.head();
        let range = head.get("Content-Range").and_then(content_range);
        let is_next =
            range.is_some_and(|(first, _, length)| first == self.from && length == Some(self.length));
        // A server that ignores the condition may have sent another version.
        let is_other = head
            .get("ETag")
            .is_some_and(|tag| self.validator.starts_with('"') && tag.trim() != self.validator);
        exchange.status == 206
            && is_next
            && !is_other
            && head.list("Content-Encoding") == self.coding
            && !head.is_chunked()
    }
}

/// A validator by which a version is told from all others (RFC 9110, section 8.8.1).
fn validator(head: &HttpHead) -> Option<String> {
    if let Some(tag) = head.get("ETag") {
        return Some(tag.trim().to_owned()).filter(|tag| tag.starts_with('"'));
    }
    let modified = head.get("Last-Modified")?.trim();
    // A page may change twice in a second.
    let is_strong = http_date(modified)? < http_date(head.get("Date")?)?;
    is_strong.then(|| modified.to_owned())
}

impl FetchClient {
    /// Asks for the rest of a body that was cut off, as often as that brings more of it.
    pub(super) async fn resume(
        &self,
        endpoint: &Endpoint,
        request: &FetchRequest,
        mut exchange: Exchange,
    ) -> Result<Exchange, FetchError> {
        let is_resumable =
            request.form.is_none() && request.body_bytes_max.is_none() && !exchange.is_unloaded;
        if exchange.truncated.is_none() || !is_resumable {
            return Ok(exchange);
        }
        for _ in 0..RESUMES_MAX {
            let Some(rest) = BodyRest::of(&exchange) else { break };
            if exchange.elapsed >= self.settings.limits.total {
                break;
            }
            let again = FetchRequest {
                if_none_match: None,
                if_modified_since: None,
                rest: Some(rest.clone()),
                ..request.clone()
            };
            let Ok(part) = self.ask(endpoint.clone(), &again).await else { break };
            if !rest.is_in(&part) || part.http.body_length() == 0 {
                break;
            }
            let joined = std::mem::take(&mut exchange.http).followed_by(&part.http, &self.memory);
            (exchange.http, exchange.held) = joined.map_err(|error| FetchError::Spool(error.kind()))?;
            exchange.resumed.push(rest.from);
            exchange.truncated = part.truncated;
            exchange.elapsed += part.elapsed;
        }
        Ok(exchange)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(fields: &str) -> HttpHead {
        HttpHead::parse(format!("HTTP/1.1 200 OK\r\n{fields}\r\n").as_bytes())
    }

    #[test]
    fn only_strong_validators_count() {
        let date = "Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n";
        for (fields, found) in [
            ("ETag: \"a\"\r\n".to_owned(), Some("\"a\"")),
            ("ETag: W/\"a\"\r\n".to_owned(), None),
            (format!("ETag: W/\"a\"\r\n{date}"), None),
            (date.to_owned(), None),
            (format!("{date}Date: Thu, 01 Jan 2026 00:00:00 GMT\r\n"), None),
            (format!("{date}Date: Thu, 01 Jan 2026 00:00:01 GMT\r\n"), Some("Thu, 01 Jan 2026 00:00:00 GMT")),
            (String::new(), None),
        ] {
            assert_eq!(validator(&head(&fields)).as_deref(), found, "{fields}");
        }
    }
}
