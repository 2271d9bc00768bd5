//! Scripted answers: bytes, pauses, repetition, and how the connection ends.

use std::io;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

/// One step of a script.
#[derive(Clone, Debug)]
pub(super) enum Move {
    /// Sends bytes at once.
    Send(Vec<u8>),
    /// Sends the same bytes many times.
    Repeat(Vec<u8>, u64),
    /// Sends one byte at a time with a pause after each.
    Drip(Vec<u8>, Duration),
    /// Sends the same bytes with a pause after each until the client disconnects.
    Forever(Vec<u8>, Duration),
    /// Sends nothing for a while.
    Wait(Duration),
}

/// What happens to the connection after a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The connection accepts the next request.
    KeepOpen,
    /// The connection is closed in order.
    Close,
    /// The connection is reset (RST).
    Reset,
}

/// An answer as a script.
#[derive(Clone, Debug)]
pub(super) struct Script {
    pub(super) moves: Vec<Move>,
    pub(super) ending: Ending,
}

/// Smallest number of bytes per write when something is repeated without pauses.
const WRITE_BYTES: usize = 64 * 1024;

impl Script {
    /// Sends `bytes` at once.
    pub(super) fn sent(bytes: Vec<u8>, ending: Ending) -> Self {
        Self { moves: vec![Move::Send(bytes)], ending }
    }

    /// Plays the script to a client.
    pub(super) async fn play(self, stream: &mut TcpStream) -> io::Result<Ending> {
        for step in self.moves {
            match step {
                Move::Send(bytes) => stream.write_all(&bytes).await?,
                Move::Repeat(bytes, times) => repeat(stream, &bytes, times).await?,
                Move::Drip(bytes, pause) => {
                    for byte in bytes {
                        stream.write_all(&[byte]).await?;
                        tokio::time::sleep(pause).await;
                    }
                }
                Move::Forever(bytes, pause) if pause.is_zero() => repeat(stream, &bytes, u64::MAX).await?,
                Move::Forever(bytes, pause) => loop {
                    stream.write_all(&bytes).await?;
                    tokio::time::sleep(pause).await;
                },
                Move::Wait(pause) => wait(stream, pause).await?,
            }
        }
        Ok(self.ending)
    }
}

async fn repeat(stream: &mut TcpStream, bytes: &[u8], mut times: u64) -> io::Result<()> {
    let at_once = (WRITE_BYTES / bytes.len().max(1)).max(1);
    let batch = bytes.repeat(at_once);
    while times >= at_once as u64 {
        stream.write_all(&batch).await?;
        times -= at_once as u64;
    }
    stream.write_all(&bytes.repeat(times as usize)).await
}

/// Waits for `pause`, or until the client disconnects.
async fn wait(stream: &TcpStream, pause: Duration) -> io::Result<()> {
    let hung_up = async {
        let mut byte = [0];
        loop {
            match stream.peek(&mut byte).await {
                Ok(0) | Err(_) => return,
                // The client has sent more, which stays unread; look again later.
                Ok(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    };
    tokio::select! {
        () = tokio::time::sleep(pause) => Ok(()),
        () = hung_up => Err(io::ErrorKind::ConnectionReset.into()),
    }
}
