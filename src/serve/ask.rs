//! Answers to programs that query this archive together with others ([`archive_peers::nodes`]). An answer is written before
//! it is sent, as packages are.

use std::io::{BufWriter, Write as _};
use std::time::Duration;

use archive_ask::query::Limits;
use archive_base::error::{Classified, ErrorKind};
use archive_base::remote::causes;
use archive_peers::nodes::{ANSWERS_BYTES_MAX, Ask, AskError, AskedFolder, REQUEST_BYTES_MAX};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper::HeaderMap;
use hyper::body::Incoming;

use super::opener::RoleView;
use super::page::Reply;
use super::spool::{FileRoom, Unsent};

/// Path of the requests.
pub(super) const PATH: &str = "/ask";

/// Time limit for receiving a request.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(30);

/// Time limit for making an answer.
pub(super) const TIME_MAX: Duration = Duration::from_secs(50);

/// Limits for making an answer.
pub(super) fn limits() -> Limits {
    Limits::SERVED.within(TIME_MAX)
}

/// Reads a request. It must be JSON, which browsers do not send from other web pages without a preflight.
///
/// # Errors
/// The reply to an invalid request.
pub(super) async fn read(head: &HeaderMap, body: Incoming) -> Result<Bytes, Reply> {
    let kind = head.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.starts_with("application/json") {
        return Err(Reply::no_data(415, "the request must be JSON (Content-Type: application/json)"));
    }
    match tokio::time::timeout(REQUEST_TIME_MAX, Limited::new(body, REQUEST_BYTES_MAX).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(_)) => Err(Reply::no_data(413, "this request is too long, or was cut off")),
        Err(_) => Err(Reply::no_data(408, "this request took too long")),
    }
}

/// Answers a request to an archive whose application and replay have these origins.
pub(super) fn answer(seen: &RoleView<'_>, origins: [&String; 2], request: &[u8], room: &FileRoom) -> Reply {
    let mut out = Unsent::new(room, ANSWERS_BYTES_MAX, TIME_MAX);
    match write(seen, origins, request, &mut out) {
        Ok(()) => match out.reply("application/x-ndjson") {
            Ok(reply) => reply,
            Err(error) => Reply::no_data(500, &error.to_string()),
        },
        Err(error) if out.is_over() || error.kind() == ErrorKind::Stopped => {
            Reply::no_data(503, "this answer is too long, or takes too long: narrow the request down")
        }
        Err(error) if error.kind() == ErrorKind::Usage => Reply::no_data(400, &error.to_string()),
        Err(error) => Reply::no_data(500, &causes(&error)),
    }
}

fn write(
    seen: &RoleView<'_>,
    origins: [&String; 2],
    request: &[u8],
    out: &mut Unsent,
) -> Result<(), AskError> {
    let mut out = BufWriter::new(out);
    let kept = Some(seen.cache.kept());
    let folder = AskedFolder { store: seen.store, access: &seen.access, limits: limits(), kept };
    Ask::read(request)?.answer(&folder, origins.map(String::clone), &mut |line| {
        out.write_all(line).and_then(|()| out.write_all(b"\n")).map_err(into)
    })?;
    out.flush().map_err(into)
}

fn into(error: impl std::error::Error + Send + Sync + 'static) -> AskError {
    AskError::Taken(error.into())
}
