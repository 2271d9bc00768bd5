//! HTTP/2 in the form of HTTP/1.1, for servers that speak nothing else: a request is sent as a stream, and what the stream
//! brings is read as the lines of a head, then a body without transfer coding. So one exchange, with one set of limits,
//! serves both.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use archive_storage::warc::{HttpHead, split};
use bytes::{Bytes, BytesMut};
use h2::RecvStream;
use h2::client::{Builder, Connection, ResponseFuture, SendRequest};
use http::{Request, Uri, Version, response};
use tokio::io::{AsyncRead, AsyncWrite};

/// Maximum bytes of bodies that a server sends before they are read (RFC 9113, section 5.2).
const WINDOW_BYTES: u32 = 256 * 1024;

/// A connection, and the one stream at a time that is open on it.
pub(super) struct Http2<S> {
    sender: SendRequest<Bytes>,
    connection: Connection<S, Bytes>,
    has_ended: bool,
    stream: Stream,
}

/// Progress of an exchange.
enum Stream {
    /// There is none, or it has failed.
    None,
    /// The server must permit a stream first.
    Asked(Box<Request<()>>, Bytes),
    Sent(ResponseFuture),
    Body(RecvStream),
}

impl<S: AsyncRead + AsyncWrite + Unpin> Http2<S> {
    /// Begins to speak HTTP/2. A list of fields may have twice as many bytes as a head: each field counts 32 more (RFC 9113,
    /// section 6.5.2).
    pub(super) async fn begin(stream: S, head_bytes_max: usize) -> io::Result<Self> {
        let (sender, connection) = Builder::new()
            .enable_push(false)
            .initial_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES)
            .max_header_list_size(u32::try_from(2 * head_bytes_max).unwrap_or(u32::MAX))
            .handshake(stream)
            .await
            .map_err(io::Error::other)?;
        Ok(Self { sender, connection, has_ended: false, stream: Stream::None })
    }

    /// Takes a request in the form of HTTP/1.1. It is sent by the first [`Http2::read`]; what is left of the stream before is
    /// refused.
    pub(super) fn send(&mut self, request: &[u8]) -> io::Result<()> {
        self.stream = Stream::None;
        let (head, body) = split(&Bytes::copy_from_slice(request));
        self.stream = Stream::Asked(Box::new(of_http1(&HttpHead::parse(&head))?), body);
        Ok(())
    }

    /// Appends to a buffer what the server sends next: its whole head, or some bytes of its body. Returns their number, 0
    /// at the end.
    pub(super) async fn read(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        let before = buffer.len();
        poll_fn(|context| {
            // All frames of the connection pass while something is awaited, and only then.
            self.has_ended = self.has_ended || Pin::new(&mut self.connection).poll(context).is_ready();
            match self.advance(context, buffer) {
                Poll::Pending if self.has_ended => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
                polled => polled,
            }
        })
        .await?;
        Ok(buffer.len() - before)
    }

    fn advance(&mut self, context: &mut Context<'_>, buffer: &mut BytesMut) -> Poll<io::Result<()>> {
        loop {
            match &mut self.stream {
                Stream::None => return Poll::Ready(Ok(())),
                Stream::Asked(request, body) => {
                    ready!(self.sender.poll_ready(context)).map_err(io::Error::other)?;
                    let (request, body) = (std::mem::take(&mut **request), std::mem::take(body));
                    let sent = self.sender.send_request(request, body.is_empty());
                    let (answer, mut rest) = sent.map_err(io::Error::other)?;
                    if !body.is_empty() {
                        rest.send_data(body, true).map_err(io::Error::other)?;
                    }
                    self.stream = Stream::Sent(answer);
                }
                Stream::Sent(answer) => {
                    let (head, body) =
                        ready!(Pin::new(answer).poll(context)).map_err(io::Error::other)?.into_parts();
                    put_head(&head, buffer);
                    self.stream = Stream::Body(body);
                    return Poll::Ready(Ok(()));
                }
                Stream::Body(body) => match ready!(body.poll_data(context)) {
                    // An empty frame is no sign of progress.
                    Some(Ok(data)) if data.is_empty() => {}
                    Some(Ok(data)) => {
                        buffer.extend_from_slice(&data);
                        let released = body.flow_control().release_capacity(data.len());
                        return Poll::Ready(released.map_err(io::Error::other));
                    }
                    Some(Err(error)) => return Poll::Ready(Err(io::Error::other(error))),
                    None => return Poll::Ready(Ok(())),
                },
            }
        }
    }
}

/// Returns the request that a head of HTTP/1.1 describes, its fields in their order.
fn of_http1(head: &HttpHead) -> io::Result<Request<()>> {
    let mut words = head.first_line.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let host = head.get("Host").unwrap_or_default();
    let url = Uri::builder().scheme("https").authority(host).path_and_query(target).build();
    let request =
        Request::builder().version(Version::HTTP_2).method(method).uri(url.map_err(io::Error::other)?);
    let fields = head.fields.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("Host"));
    let request = fields.fold(request, |request, (name, value)| request.header(name, value));
    request.body(()).map_err(io::Error::other)
}

/// Appends a head in the form of HTTP/1.1. There is no reason phrase in HTTP/2, but the blank before it stays.
fn put_head(head: &response::Parts, buffer: &mut BytesMut) {
    let mut put = |parts: &[&[u8]]| parts.iter().for_each(|part| buffer.extend_from_slice(part));
    put(&[b"HTTP/1.1 ", head.status.as_str().as_bytes(), b" \r\n"]);
    for (name, value) in &head.headers {
        put(&[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"]);
    }
    put(&[b"\r\n"]);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::BytesMut;
    use proptest::prelude::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::Http2;

    const REQUEST: &[u8] = b"GET /a?b HTTP/1.1\r\nHost: a.test\r\nUser-Agent: test/1\r\nAccept: */*\r\n\r\n";

    /// What is read in the form of HTTP/1.1 if a server sends these bytes and leaves.
    fn read(sent: &[u8]) -> std::io::Result<BytesMut> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (ours, mut theirs) = tokio::io::duplex(1 << 16);
            let serve = async {
                theirs.read_exact(&mut [0; 24]).await?;
                let mut head = [0; 9];
                while head[3] != 1 {
                    theirs.read_exact(&mut head).await?;
                    theirs.read_exact(&mut vec![0; usize::from(head[2])]).await?;
                }
                theirs.write_all(sent).await?;
                theirs.shutdown().await?;
                theirs.read_to_end(&mut Vec::new()).await
            };
            let ask = async {
                let mut streams = Http2::begin(ours, 1 << 16).await?;
                streams.send(REQUEST)?;
                let mut buffer = BytesMut::new();
                while streams.read(&mut buffer).await? > 0 {}
                Ok(buffer)
            };
            let both = async { tokio::join!(serve, ask).1 };
            tokio::time::timeout(Duration::from_secs(60), both).await.expect("it ends")
        })
    }

    fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
        let length = (payload.len() as u32).to_be_bytes();
        [&length[1..], &[kind, flags, 0, 0, 0, stream], payload].concat()
    }

    #[test]
    fn an_answer_is_read_in_the_form_of_http1() {
        let fields = b"\x88\x00\x06x-name\x02\xE9!\x00\x01y\x011\x00\x06x-name\x012";
        let sent = [
            frame(4, 0, 0, &[]),
            frame(1, 4, 1, b"\x08\x03103"),
            frame(1, 4, 1, fields),
            frame(0, 0, 1, b"hel"),
            frame(0, 0, 1, b""),
            frame(0, 0, 1, b"lo"),
            // A trailer.
            frame(1, 5, 1, b"\x00\x06x-last\x01y"),
        ];
        assert_eq!(
            &read(&sent.concat()).unwrap()[..],
            b"HTTP/1.1 200 \r\nx-name: \xE9!\r\nx-name: 2\r\ny: 1\r\n\r\nhello"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn no_bytes_and_no_frames_do_harm(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            frames in prop::collection::vec((0..11_u8, any::<u8>(), 0..4_u8, prop::collection::vec(any::<u8>(), 0..64)), 0..20),
        ) {
            let _ = read(&bytes);
            let frames = frames.iter().flat_map(|(kind, flags, stream, payload)| frame(*kind, *flags, *stream, payload));
            let _ = read(&[frame(4, 0, 0, &[]), frames.collect()].concat());
        }
    }
}
