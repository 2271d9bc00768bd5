//! A tunnel through a proxy: `CONNECT` (RFC 9110, section 9.3.6) or SOCKS 5 (RFC 1928, RFC 1929).
//!
//! Also what is asked without TLS goes through a tunnel: a proxy that sees a request may change it and its answer, and
//! the archive keeps what the server said.

use std::io;
use std::net::IpAddr;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::error::Unreached;
use super::framing::{HeadState, read_head};
use super::ways::{Proxy, ProxyKind};

/// Maximum bytes of the head of a proxy's answer.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Maximum bytes of a name, and of a password, in SOCKS.
const SOCKS_TEXT_BYTES_MAX: usize = 255;

/// Bytes to a server, by whatever way.
pub(super) trait ByteStream: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> ByteStream for T {}

/// An open stream.
pub(super) type Wire = Box<dyn ByteStream>;

/// Why there is no connection through a proxy.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProxyFault {
    /// Its name has no address.
    #[error("its name cannot be resolved")]
    Unresolved,
    /// None of its addresses accepted a connection.
    #[error("no connection to {0}")]
    Unreached(Unreached),
    /// It did not answer in time.
    #[error("no answer within {0} seconds")]
    Silent(u64),
    /// It closed or broke the connection.
    #[error("it closed the connection")]
    Closed,
    /// The TLS handshake failed.
    #[error("no secure connection: {0}")]
    Tls(String),
    /// It speaks something else.
    #[error("it does not answer as such a proxy does")]
    NoProxy,
    /// It wants to know who asks, or does not know who does.
    #[error("it wants a name and a password (`archive login add HOST:PORT --proxy NAME`), or others")]
    Login,
    /// It does not work.
    #[error("it fails ({0})")]
    Fails(String),
    /// It does not reach the server, or is not allowed to.
    #[error("it has no connection to the server ({0})")]
    NoServer(String),
}

impl ProxyFault {
    /// Whether the proxy itself is out of order, which says nothing of any server.
    #[must_use]
    pub fn is_of_proxy(&self) -> bool {
        !matches!(self, Self::NoServer(_))
    }
}

impl From<io::Error> for ProxyFault {
    fn from(_: io::Error) -> Self {
        Self::Closed
    }
}

/// Asks a proxy for a tunnel to a server, by its name or address and its port.
pub(super) async fn open_tunnel(
    stream: &mut Wire,
    proxy: &Proxy,
    login: Option<(&str, &str)>,
    target: (&str, u16),
) -> Result<(), ProxyFault> {
    match proxy.kind {
        ProxyKind::Http | ProxyKind::Https => connect(stream, login, target).await,
        ProxyKind::Socks5 | ProxyKind::Socks5h => {
            greet(stream, login).await?;
            ask_for(stream, target).await
        }
    }
}

/// Sends `CONNECT`.
async fn connect(
    stream: &mut Wire,
    login: Option<(&str, &str)>,
    (name, port): (&str, u16),
) -> Result<(), ProxyFault> {
    let server = if name.contains(':') { format!("[{name}]:{port}") } else { format!("{name}:{port}") };
    let proof = login.map_or_else(String::new, |(name, password)| {
        format!("Proxy-Authorization: Basic {}\r\n", BASE64_STANDARD.encode(format!("{name}:{password}")))
    });
    let request = format!("CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n{proof}\r\n");
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
    let mut head = BytesMut::with_capacity(1024);
    loop {
        match read_head(&head) {
            // No server speaks first: further bytes would be the proxy's own.
            HeadState::Whole(found) if found.length < head.len() && (200..300).contains(&found.status) => {
                return Err(ProxyFault::NoProxy);
            }
            HeadState::Whole(found) => return judge(found.status),
            HeadState::Partial if head.len() <= HEAD_BYTES_MAX => {}
            HeadState::Partial | HeadState::NotHttp | HeadState::Contradictory => {
                return Err(ProxyFault::NoProxy);
            }
        }
        if stream.read_buf(&mut head).await? == 0 {
            return Err(ProxyFault::Closed);
        }
    }
}

/// What the status of an answer to `CONNECT` means.
fn judge(status: u16) -> Result<(), ProxyFault> {
    match status {
        200..=299 => Ok(()),
        401 | 407 => Err(ProxyFault::Login),
        403..=405 | 502..=504 => Err(ProxyFault::NoServer(format!("status {status}"))),
        _ => Err(ProxyFault::Fails(format!("status {status}"))),
    }
}

/// Begins to speak SOCKS, and says who asks.
async fn greet(stream: &mut Wire, login: Option<(&str, &str)>) -> Result<(), ProxyFault> {
    let methods: &[u8] = if login.is_some() { &[5, 2, 0, 2] } else { &[5, 1, 0] };
    stream.write_all(methods).await?;
    stream.flush().await?;
    let mut chosen = [0; 2];
    stream.read_exact(&mut chosen).await?;
    match (chosen, login) {
        ([5, 0], _) => Ok(()),
        ([5, 2], Some((name, password))) => {
            let is_long = |text: &str| text.len() > SOCKS_TEXT_BYTES_MAX;
            if is_long(name) || is_long(password) {
                return Err(ProxyFault::Login);
            }
            let mut proof = vec![1, name.len() as u8];
            proof.extend_from_slice(name.as_bytes());
            proof.push(password.len() as u8);
            proof.extend_from_slice(password.as_bytes());
            stream.write_all(&proof).await?;
            stream.flush().await?;
            stream.read_exact(&mut chosen).await?;
            if chosen[1] == 0 { Ok(()) } else { Err(ProxyFault::Login) }
        }
        ([5, _], _) => Err(ProxyFault::Login),
        _ => Err(ProxyFault::NoProxy),
    }
}

/// Asks for a connection.
async fn ask_for(stream: &mut Wire, (name, port): (&str, u16)) -> Result<(), ProxyFault> {
    let mut request = vec![5, 1, 0];
    match name.parse() {
        Ok(IpAddr::V4(address)) => {
            request.push(1);
            request.extend(address.octets());
        }
        Ok(IpAddr::V6(address)) => {
            request.push(4);
            request.extend(address.octets());
        }
        Err(_) if name.len() > SOCKS_TEXT_BYTES_MAX => {
            return Err(ProxyFault::NoServer("its name is too long for SOCKS".to_owned()));
        }
        Err(_) => {
            request.extend([3, name.len() as u8]);
            request.extend_from_slice(name.as_bytes());
        }
    }
    request.extend(port.to_be_bytes());
    stream.write_all(&request).await?;
    stream.flush().await?;
    let mut answer = [0; 4];
    stream.read_exact(&mut answer).await?;
    let [5, reply, _, kind] = answer else { return Err(ProxyFault::NoProxy) };
    reply_of(reply)?;
    // The proxy's own end of its connection, which nobody needs.
    let bytes = match kind {
        1 => 4,
        4 => 16,
        3 => usize::from(stream.read_u8().await?),
        _ => return Err(ProxyFault::NoProxy),
    };
    let mut rest = [0; SOCKS_TEXT_BYTES_MAX + 2];
    stream.read_exact(&mut rest[..bytes + 2]).await?;
    Ok(())
}

/// What a reply means (RFC 1928, section 6).
fn reply_of(reply: u8) -> Result<(), ProxyFault> {
    let no_server = |why: &str| Err(ProxyFault::NoServer(why.to_owned()));
    match reply {
        0 => Ok(()),
        1 => no_server("general failure"),
        2 => no_server("its rules do not allow it"),
        3 => no_server("the network is unreachable"),
        4 => no_server("the host is unreachable"),
        5 => no_server("connection refused"),
        6 => no_server("the way is too long"),
        8 => no_server("addresses of this kind are not supported"),
        _ => Err(ProxyFault::Fails(format!("reply {reply}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Speaks to a proxy that gives these bytes, a piece at a time, and then closes.
    fn spoken(
        proxy: &str,
        login: Option<(&str, &str)>,
        answers: &[&[u8]],
    ) -> (Vec<u8>, Result<(), ProxyFault>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (own, mut other) = tokio::io::duplex(1 << 20);
        let proxy: Proxy = proxy.parse().unwrap();
        runtime.block_on(async {
            for answer in answers {
                other.write_all(answer).await.unwrap();
            }
            other.shutdown().await.unwrap();
            let mut wire: Wire = Box::new(own);
            let opened = open_tunnel(&mut wire, &proxy, login, ("a.test", 80)).await;
            drop(wire);
            let mut said = Vec::new();
            other.read_to_end(&mut said).await.unwrap();
            (said, opened)
        })
    }

    #[test]
    fn http_proxies_are_asked_for_a_tunnel() {
        let (said, opened) =
            spoken("http://p:1", Some(("anna", "x:y")), &[b"HTTP/1.1 200 Here\r\n", b"Via: p\r\n\r\n"]);
        let expected = "CONNECT a.test:80 HTTP/1.1\r\nHost: a.test:80\r\nProxy-Authorization: Basic YW5uYTp4Onk=\r\n\r\n";
        assert_eq!((String::from_utf8(said).unwrap().as_str(), opened), (expected, Ok(())));
        let long = [&b"HTTP/1.1 200 Here\r\nX: "[..], &[b'x'; HEAD_BYTES_MAX + 4096]].concat();
        for (answer, fault) in [
            (&b"HTTP/1.1 407 Who\r\n\r\n"[..], ProxyFault::Login),
            (b"HTTP/1.1 502 No\r\n\r\n<html>", ProxyFault::NoServer("status 502".to_owned())),
            (b"HTTP/1.1 500 No\r\n\r\n", ProxyFault::Fails("status 500".to_owned())),
            (b"HTTP/1.1 200 Here\r\n\r\nHTTP/1.1 200 forged", ProxyFault::NoProxy),
            (b"SSH-2.0\r\n", ProxyFault::NoProxy),
            (b"HTTP/1.1 200 He", ProxyFault::Closed),
            (b"", ProxyFault::Closed),
            (&long, ProxyFault::NoProxy),
        ] {
            assert_eq!(spoken("http://p:1", None, &[answer]).1, Err(fault));
        }
    }

    #[test]
    fn socks_proxies_are_asked_by_name_or_address() {
        let accepted: &[&[u8]] = &[&[5, 0], &[5, 0, 0, 1], &[0; 6]];
        let (said, opened) = spoken("socks5h://p:1", None, accepted);
        assert_eq!((&said[..], opened), (&b"\x05\x01\0\x05\x01\0\x03\x06a.test\0\x50"[..], Ok(())));
        let named: &[&[u8]] = &[&[5, 2], &[1, 0], &[5, 0, 0, 3, 2], b"xy\0\0"];
        let (said, opened) = spoken("socks5h://p:1", Some(("anna", "x")), named);
        assert_eq!((&said[4..12], opened), (&b"\x01\x04anna\x01x"[..], Ok(())));
        let long = "x".repeat(SOCKS_TEXT_BYTES_MAX + 1);
        for (login, answer, fault) in [
            (None, &[5, 0xff][..], ProxyFault::Login),
            (None, &[5, 2], ProxyFault::Login),
            (Some(("anna", "x")), &[5, 2, 1, 1], ProxyFault::Login),
            (Some(("anna", &*long)), &[5, 2, 1, 0], ProxyFault::Login),
            (None, &[5, 0, 5, 4, 0, 1], ProxyFault::NoServer("the host is unreachable".to_owned())),
            (None, &[5, 0, 5, 7, 0, 1], ProxyFault::Fails("reply 7".to_owned())),
            (None, &[5, 0, 5, 0, 0, 9], ProxyFault::NoProxy),
            (None, &[5, 0, 5, 0, 0, 3, 255, 1], ProxyFault::Closed),
            (None, &[4, 0], ProxyFault::NoProxy),
            (None, b"HTTP/1.1 400", ProxyFault::NoProxy),
            (None, &[5], ProxyFault::Closed),
        ] {
            assert_eq!(spoken("socks5h://p:1", login, &[answer]).1, Err(fault), "{answer:?}");
        }
    }
}
