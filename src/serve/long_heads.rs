//! What a browser sees whose cookies are too long for the head of a request: archived pages may have set them, where they
//! share the host name. Without this, nothing would be shown to it until it forgets them.
//!
//! The parser refuses such a head by itself, with an answer without a text, and keeps nothing of it. That answer is
//! exchanged for one that has the browser remove its cookies. The rest of the head is read and dropped first, because a
//! browser that is still sending when the connection closes shows no answer.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::clients::Watched;

/// Maximum length of the rest of a head that is read, in bytes: browsers keep up to 180 cookies of 4 KiB for a host.
const REST_BYTES_MAX: usize = 1 << 20;

/// Time limit for the rest of a head.
const REST_TIME_MAX: Duration = Duration::from_secs(2);

/// Beginning of the parser's answer to a head that is too long.
const REFUSED: &[u8] = b"HTTP/1.1 431 ";

const PAGE: &str = "<!doctype html><html lang=en><meta charset=utf-8><title>Too many cookies</title><h1>Too many cookies</h1>\
<p>This request was too long, probably because a page has set too many cookies for this address. Your browser was told to remove them: \
<a href=\"\">try again</a>, and log in again if you were. If that does not help, remove the cookies of this address yourself.</p></html>\n";

/// A connection that answers requests with heads that are too long.
#[derive(Debug)]
pub(super) struct LongHeads {
    stream: Watched,
    /// What is sent instead of the parser's answer, and how much of it has been.
    instead: Option<(Vec<u8>, usize)>,
    rest: usize,
    until: Option<Pin<Box<Sleep>>>,
}

impl LongHeads {
    pub(super) fn new(stream: Watched) -> Self {
        Self { stream, instead: None, rest: REST_BYTES_MAX, until: None }
    }

    /// Reads and drops what still arrives.
    fn poll_rest(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let until = self.until.get_or_insert_with(|| Box::pin(sleep(REST_TIME_MAX)));
        if until.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let mut bytes = [0; 8 << 10];
        loop {
            let mut buffer = ReadBuf::new(&mut bytes);
            let read = ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer));
            let count = buffer.filled().len();
            self.rest = self.rest.saturating_sub(count);
            if read.is_err() || count == 0 || self.rest == 0 {
                return Poll::Ready(());
            }
        }
    }
}

fn answer() -> Vec<u8> {
    let length = PAGE.len();
    let head = format!(
        "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {length}\r\n\
         Clear-Site-Data: \"cookies\"\r\nContent-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n\
         X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    );
    [head.as_bytes(), PAGE.as_bytes()].concat()
}

impl AsyncRead for LongHeads {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for LongHeads {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if this.instead.is_none() {
            if !bytes.starts_with(REFUSED) {
                return Pin::new(&mut this.stream).poll_write(context, bytes);
            }
            this.instead = Some((answer(), 0));
        }
        while let Some((answer, sent)) = this.instead.as_mut().filter(|(answer, sent)| *sent < answer.len()) {
            *sent += ready!(Pin::new(&mut this.stream).poll_write(context, &answer[*sent..]))?;
        }
        ready!(this.poll_rest(context));
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
