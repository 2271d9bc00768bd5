//! A request and its response, kept byte for byte.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use archive_storage::segment::Truncated;
use bytes::{Bytes, BytesMut};
use chrono::{DateTime, Utc};
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::body::{BodyMemory, ChargedBytes, HttpMessage, Incoming};
use super::connect::{Connection, HttpVersion};
use super::framing::{ChunkProgress, Chunks, Framing, HeadState, ResponseHead, blank_bytes, read_head};
use super::service::ResponseLimits;
use super::{FetchError, TlsFacts};

/// Bytes of buffer reserved before each read when the length of the body is unknown.
const READ_BYTES: usize = 16 * 1024;

/// Maximum bytes of buffer reserved before a read when the length is known.
const READ_BYTES_MAX: usize = 256 * 1024;

/// Maximum number of interim (1xx) responses before the final one; more are treated as an attack.
const INTERIM_RESPONSES_MAX: usize = 8;

/// A request and its response.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// The request as sent, but for the values of its secrets; in the form of HTTP/1.1.
    pub request: Bytes,
    /// Whether it had cookies.
    pub sends_cookies: bool,
    /// Whether it was shown a log-in. Then the response lacks the values of cookies that it sets.
    pub has_login: bool,
    /// Where the answer redirects to, if what it sets changes the cookies that are sent there.
    pub opens: Option<Url>,
    /// The response as received: head and body with all codings, without interim (1xx) responses. One of HTTP/2 is in the
    /// form of HTTP/1.1.
    pub http: HttpMessage,
    /// The memory that the body occupies; drop it together with the body.
    pub held: ChargedBytes,
    /// The status code.
    pub status: u16,
    /// Why the body is incomplete, if it is.
    pub truncated: Option<Truncated>,
    /// Bytes of the body after which the connection was lost, and its rest was asked for.
    pub resumed: Vec<u64>,
    /// Whether none of the body was received, because its head says that it is too long.
    pub is_unloaded: bool,
    /// Address of the server, if it is known: where a proxy resolves names, it is not.
    pub address: Option<IpAddr>,
    /// The proxy that it went through, as a URL.
    pub proxy: Option<Arc<str>>,
    /// Whether it is another address of the host than the one that was to be asked.
    pub is_other_address: bool,
    /// Facts of the connection, if it was secure.
    pub tls: Option<Arc<TlsFacts>>,
    /// Values of the field `WARC-Protocol`.
    pub protocols: Vec<String>,
    /// When the request was sent.
    pub started: DateTime<Utc>,
    /// Time from the request to the last byte.
    pub elapsed: Duration,
}

/// A response, and whether the connection can be reused.
pub(super) struct ReceivedResponse {
    pub(super) http: HttpMessage,
    pub(super) held: ChargedBytes,
    pub(super) head: ResponseHead,
    pub(super) truncated: Option<Truncated>,
    pub(super) is_unloaded: bool,
    pub(super) reusable: bool,
}

/// Why there is no response.
pub(super) enum Failed {
    /// The server closed the connection before the first byte, as is usual for a reused idle connection.
    Closed,
    Error(FetchError),
}

/// Sends `request` and reads one response. Of a body longer than `cut_at` the rest is left; a body that is longer than
/// `limits` allow is not received at all if its head says so. `see` gets the head as
/// soon as it has arrived.
pub(super) async fn exchange(
    connection: &mut Connection,
    request: &[u8],
    limits: &ResponseLimits,
    cut_at: Option<u64>,
    memory: &BodyMemory,
    mut see: impl FnMut(&ResponseHead),
) -> Result<ReceivedResponse, Failed> {
    let deadline = Instant::now() + limits.total;
    match timeout_at(deadline, connection.send(request)).await {
        Ok(Ok(())) => {}
        Ok(Err(_)) => return Err(Failed::Closed),
        Err(_) => return Err(Failed::Error(FetchError::HeadTimeout(limits.total.as_secs()))),
    }
    let mut buffer = BytesMut::new();
    let head = receive_head(connection, &mut buffer, limits, deadline).await?;
    see(&head);
    let body_max = limits.of_body(&buffer[..head.length]);
    let is_unloaded =
        cut_at.is_none() && matches!(head.framing, Framing::Length(length) if length > body_max);
    let body_max = if is_unloaded { 0 } else { cut_at.map_or(body_max, |cut_at| cut_at.min(body_max)) };
    let mut incoming = Incoming::new(memory, head.length, buffer);
    let received = receive_body(connection, &mut incoming, &head, body_max, limits.idle, deadline).await;
    let (body_bytes, truncated) = received.map_err(|error| on_disk(&error))?;
    // Bytes after the end of the message belong to no response; a connection that sends any is not reused.
    let stays = head.keep_alive || connection.version() == HttpVersion::Http2;
    let reusable = truncated.is_none() && stays && incoming.body_length() == body_bytes;
    let (http, held) = incoming.finish(body_bytes).map_err(|error| on_disk(&error))?;
    Ok(ReceivedResponse { http, held, head, truncated, is_unloaded, reusable })
}

fn on_disk(error: &io::Error) -> Failed {
    Failed::Error(FetchError::Spool(error.kind()))
}

async fn receive_head(
    connection: &mut Connection,
    buffer: &mut BytesMut,
    limits: &ResponseLimits,
    deadline: Instant,
) -> Result<ResponseHead, Failed> {
    let mut interim = 0;
    let head_deadline = deadline.min(Instant::now() + limits.head);
    loop {
        let _ = buffer.split_to(blank_bytes(buffer));
        match read_head(buffer) {
            HeadState::Whole(head) if (100..200).contains(&head.status) && head.status != 101 => {
                interim += 1;
                if interim > INTERIM_RESPONSES_MAX {
                    return Err(Failed::Error(FetchError::NotHttp));
                }
                let _ = buffer.split_to(head.length);
                continue;
            }
            HeadState::Whole(head) if head.length <= limits.head_bytes => return Ok(head),
            HeadState::Partial if buffer.len() <= limits.head_bytes => {}
            HeadState::Whole(_) | HeadState::Partial => {
                return Err(Failed::Error(FetchError::HeadTooLong(limits.head_bytes)));
            }
            HeadState::NotHttp => return Err(Failed::Error(FetchError::NotHttp)),
            HeadState::Contradictory => return Err(Failed::Error(FetchError::Lengths)),
        }
        buffer.reserve(READ_BYTES);
        match timeout_at(head_deadline, connection.read(buffer)).await {
            Ok(Ok(1..)) => {}
            Ok(Ok(0) | Err(_)) if buffer.is_empty() => return Err(Failed::Closed),
            Ok(Ok(0) | Err(_)) => return Err(Failed::Error(FetchError::NoHead)),
            Err(_) => return Err(Failed::Error(FetchError::HeadTimeout(limits.head.as_secs()))),
        }
    }
}

/// Reads until the body is complete or is cut; returns its length and the reason for the cut.
async fn receive_body(
    connection: &mut Connection,
    incoming: &mut Incoming<'_>,
    head: &ResponseHead,
    body_max: u64,
    idle: Duration,
    deadline: Instant,
) -> io::Result<(u64, Option<Truncated>)> {
    let mut chunks = Chunks::default();
    loop {
        let body = incoming.body_length();
        let room = match head.framing {
            Framing::Length(length) if body >= length.min(body_max) => {
                return Ok((length.min(body_max), (length > body_max).then_some(Truncated::Length)));
            }
            Framing::Length(length) => {
                let missing = length.min(body_max) - body;
                usize::try_from(missing).unwrap_or(usize::MAX).min(READ_BYTES_MAX)
            }
            Framing::Chunked => match chunks.advance(incoming.tail()) {
                ChunkProgress::End(end) => return Ok((incoming.spooled() + end as u64, None)),
                ChunkProgress::Broken => return Ok((body.min(body_max), Some(Truncated::Unspecified))),
                ChunkProgress::More => READ_BYTES,
            },
            Framing::UntilClose => READ_BYTES,
        };
        if body >= body_max {
            return Ok((body_max, Some(Truncated::Length)));
        }
        let settled =
            if head.framing == Framing::Chunked { chunks.position() } else { incoming.tail().len() };
        chunks.forget(incoming.settle(settled)?);
        incoming.buffer().reserve(room);
        let idle_deadline = deadline.min(Instant::now() + idle);
        match timeout_at(idle_deadline, connection.read(incoming.buffer())).await {
            Ok(Ok(1..)) => {}
            Ok(Ok(0)) if head.framing == Framing::UntilClose => return Ok((body, None)),
            Ok(Ok(0)) | Err(_)
                if head.framing == Framing::Chunked && chunks.has_all_data(incoming.tail()) =>
            {
                return Ok((body, None));
            }
            Ok(Ok(0) | Err(_)) => return Ok((body, Some(Truncated::Disconnect))),
            Err(_) => return Ok((body, Some(Truncated::Time))),
        }
    }
}
