//! Proxies for tests: HTTP `CONNECT` and SOCKS 5. Each leads names where it is told, and remembers what it was asked for.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// What a proxy speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speech {
    /// HTTP.
    Http,
    /// SOCKS 5.
    Socks,
}

/// Where a proxy leads a host and port; `None` to say that there is no such server.
pub type Route = dyn Fn(&str, u16) -> Option<SocketAddr> + Send + Sync;

/// A proxy that runs until the process ends.
#[derive(Debug)]
pub struct Proxy {
    /// Where it listens.
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

/// What all connections of a proxy share.
struct Shared {
    speech: Speech,
    /// Name and password that it wants.
    login: Option<(String, String)>,
    route: Box<Route>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    /// Starts a proxy at a free local port; with a log-in, it serves nobody else.
    ///
    /// # Errors
    /// When there is no port.
    pub fn start(
        speech: Speech,
        login: Option<(&str, &str)>,
        route: impl Fn(&str, u16) -> Option<SocketAddr> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let (address, seen) = (listener.local_addr()?, Arc::default());
        let login = login.map(|(name, password)| (name.to_owned(), password.to_owned()));
        let shared = Arc::new(Shared { speech, login, route: Box::new(route), seen: Arc::clone(&seen) });
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                // A client that disconnects ends only its own connection.
                thread::spawn(move || drop(shared.serve(stream)));
            }
        });
        Ok(Self { address, seen })
    }

    /// Returns what it was asked for since the last call, as `host:port`, in order.
    #[must_use]
    pub fn take_seen(&self) -> Vec<String> {
        std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Shared {
    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        match self.speech {
            Speech::Http => {
                let head = read_head(&mut stream)?;
                let target = head.split(' ').nth(1).unwrap_or_default();
                let (host, port) = target.rsplit_once(':').unwrap_or((target, "0"));
                let proof = head.lines().find_map(|line| line.strip_prefix("Proxy-Authorization: Basic "));
                let is_known = self.login.as_ref().is_none_or(|(name, password)| {
                    proof.is_some_and(|proof| proof == base64(format!("{name}:{password}").as_bytes()))
                });
                if !head.starts_with("CONNECT ") {
                    return stream.write_all(b"HTTP/1.1 405 Tunnels only\r\n\r\n");
                }
                if !is_known {
                    return stream
                        .write_all(b"HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic realm=x\r\n\r\n");
                }
                match self.reach(host.trim_matches(['[', ']']), port.parse().unwrap_or(0)) {
                    Some(inner) => {
                        stream.write_all(b"HTTP/1.1 200 Here\r\n\r\n")?;
                        pump(stream, inner)
                    }
                    None => stream.write_all(b"HTTP/1.1 502 No such server\r\n\r\n"),
                }
            }
            Speech::Socks => {
                let methods = read::<2>(&mut stream)?[1];
                let mut offered = vec![0; usize::from(methods)];
                stream.read_exact(&mut offered)?;
                let wanted = if self.login.is_some() { 2 } else { 0 };
                if !offered.contains(&wanted) {
                    return stream.write_all(&[5, 0xff]);
                }
                stream.write_all(&[5, wanted])?;
                if let Some((name, password)) = &self.login {
                    read::<1>(&mut stream)?;
                    let (own_name, own_password) = (read_text(&mut stream)?, read_text(&mut stream)?);
                    let is_known = own_name == *name && own_password == *password;
                    stream.write_all(&[1, u8::from(!is_known)])?;
                    if !is_known {
                        return Ok(());
                    }
                }
                let host = match read::<4>(&mut stream)?[3] {
                    1 => Ipv4Addr::from(read::<4>(&mut stream)?).to_string(),
                    4 => std::net::Ipv6Addr::from(read::<16>(&mut stream)?).to_string(),
                    _ => read_text(&mut stream)?,
                };
                let port = u16::from_be_bytes(read::<2>(&mut stream)?);
                match self.reach(&host, port) {
                    Some(inner) => {
                        stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0])?;
                        pump(stream, inner)
                    }
                    None => stream.write_all(&[5, 4, 0, 1, 0, 0, 0, 0, 0, 0]),
                }
            }
        }
    }

    fn reach(&self, host: &str, port: u16) -> Option<TcpStream> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{host}:{port}"));
        TcpStream::connect((self.route)(host, port)?).ok()
    }
}

fn read<const N: usize>(stream: &mut TcpStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Reads a length and as many bytes of text.
fn read_text(stream: &mut TcpStream) -> io::Result<String> {
    let mut bytes = vec![0; usize::from(read::<1>(stream)?[0])];
    stream.read_exact(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn read_head(stream: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.extend(read::<1>(stream)?);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// Copies both ways until both ends are done.
fn pump(mut outside: TcpStream, mut inside: TcpStream) -> io::Result<()> {
    let (mut from, mut to) = (inside.try_clone()?, outside.try_clone()?);
    let back = thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Both);
    });
    let _ = io::copy(&mut outside, &mut inside);
    let _ = inside.shutdown(Shutdown::Write);
    back.join().map_err(|_| io::Error::other("a thread has failed"))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |three: &[u8]| {
        let number = (0..3).fold(0_u32, |number, at| number << 8 | u32::from(*three.get(at).unwrap_or(&0)));
        let digit = |at: usize| match at <= three.len() {
            true => char::from(DIGITS[(number >> (18 - 6 * at)) as usize & 63]),
            false => '=',
        };
        [0, 1, 2, 3].map(digit)
    };
    bytes.chunks(3).flat_map(group).collect()
}
