//! Bodies of answers: those in memory, which have a share of it until they are sent, and those that are made while they
//! are sent.

use std::io::{self, Read};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Frame};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::spool::UnsentFile;

/// Bytes of all answers that are kept until their clients have taken them, except the short ones; and how long an answer
/// waits for its share before it is refused. With short ones for all connections, that is half a gibibyte.
const KEPT_BYTES_MAX: usize = 384 << 20;
const KEEPING_WAIT_MAX: Duration = Duration::from_secs(10);

/// Bytes of a short answer: it needs no share, and no file.
pub(super) const SHORT_BYTES_MAX: usize = 256 << 10;

/// Bytes of an answer in pieces that are in memory at once: a frame of a record.
const PIECE_BYTES: usize = 4 << 20;

/// Maximum number of pieces that are made concurrently; others wait.
const PIECES_MAX: usize = 4;

/// Bytes of a file that are sent at a time.
const FILE_PIECE_BYTES: usize = 256 << 10;

/// Unit of the shares.
const UNIT_BYTES: usize = 1 << 10;

/// The body of an answer.
pub(super) type SentBody = UnsyncBoxBody<Bytes, io::Error>;

/// A body that is made piece by piece.
pub(super) type BodyPieces = Box<dyn Iterator<Item = io::Result<Bytes>> + Send>;

/// What an answer has a share of until it is sent.
pub(super) type Shares = Vec<OwnedSemaphorePermit>;

/// Limits of all answers that are being sent.
#[derive(Debug)]
pub(super) struct Sending {
    kept: Arc<Semaphore>,
    making: Arc<Semaphore>,
}

impl Sending {
    pub(super) fn new() -> Self {
        let kept = Arc::new(Semaphore::new(KEPT_BYTES_MAX / UNIT_BYTES));
        Self { kept, making: Arc::new(Semaphore::new(PIECES_MAX)) }
    }

    /// Waits for an answer's share of the memory.
    async fn share(&self, bytes: usize) -> Option<Option<OwnedSemaphorePermit>> {
        if bytes <= SHORT_BYTES_MAX {
            return Some(None);
        }
        let units = bytes.min(KEPT_BYTES_MAX).div_ceil(UNIT_BYTES) as u32;
        let share = Arc::clone(&self.kept).acquire_many_owned(units);
        timeout(KEEPING_WAIT_MAX, share).await.ok()?.ok().map(Some)
    }

    /// A body that is in memory; `None` if there is no room for it.
    pub(super) async fn whole(&self, body: Bytes) -> Option<SentBody> {
        let share = self.share(body.len()).await?;
        Some(full(match share {
            Some(share) => kept(body, Arc::new(vec![share])),
            None => body,
        }))
    }

    /// A body that is made while it is sent; `None` if there is no room for its pieces.
    pub(super) async fn in_pieces(&self, pieces: BodyPieces) -> Option<SentBody> {
        let share = self.share(PIECE_BYTES).await?;
        Some(self.making(pieces, share.into_iter().collect()))
    }

    /// A file, from its current position to its end.
    pub(super) fn file(&self, unsent: UnsentFile, shares: Shares) -> SentBody {
        let pieces = std::iter::from_fn(move || {
            let mut piece = Vec::with_capacity(FILE_PIECE_BYTES);
            let read = (&unsent.file).take(FILE_PIECE_BYTES as u64).read_to_end(&mut piece);
            read.map(|read| (read > 0).then(|| Bytes::from(piece))).transpose()
        });
        self.making(Box::new(pieces), shares)
    }

    fn making(&self, pieces: BodyPieces, shares: Shares) -> SentBody {
        let making = Arc::clone(&self.making);
        InPieces { next: NextPiece::Waiting(pieces), making, shares: Arc::new(shares) }.boxed_unsync()
    }
}

/// A body that needs no share.
pub(super) fn full(body: Bytes) -> SentBody {
    Full::new(body).map_err(|never| match never {}).boxed_unsync()
}

/// Bytes that hold shares until they are sent.
struct ShareHolder {
    bytes: Bytes,
    _shares: Arc<Shares>,
}

impl AsRef<[u8]> for ShareHolder {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

fn kept(bytes: Bytes, shares: Arc<Shares>) -> Bytes {
    Bytes::from_owner(ShareHolder { bytes, _shares: shares })
}

/// A body of which each piece is made when the one before it is sent.
struct InPieces {
    next: NextPiece,
    making: Arc<Semaphore>,
    shares: Arc<Shares>,
}

/// The pieces to come, and the next one.
type MadePieces = (BodyPieces, Option<io::Result<Bytes>>);

enum NextPiece {
    Waiting(BodyPieces),
    Making(Pin<Box<dyn Future<Output = io::Result<MadePieces>> + Send>>),
    Over,
}

/// Makes the next piece.
async fn make(mut pieces: BodyPieces, making: Arc<Semaphore>) -> io::Result<MadePieces> {
    let _turn = making.acquire_owned().await.map_err(io::Error::other)?;
    let made = tokio::task::spawn_blocking(move || {
        let piece = pieces.next();
        (pieces, piece)
    });
    made.await.map_err(io::Error::other)
}

impl Body for InPieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = self.get_mut();
        loop {
            match std::mem::replace(&mut this.next, NextPiece::Over) {
                NextPiece::Over => return Poll::Ready(None),
                NextPiece::Waiting(pieces) => {
                    this.next = NextPiece::Making(Box::pin(make(pieces, Arc::clone(&this.making))));
                }
                NextPiece::Making(mut making) => {
                    let Poll::Ready(made) = making.as_mut().poll(context) else {
                        this.next = NextPiece::Making(making);
                        return Poll::Pending;
                    };
                    let (pieces, piece) = made?;
                    // After an error the connection is cut off, so the client notices.
                    let Some(piece) = piece.transpose()? else { return Poll::Ready(None) };
                    this.next = NextPiece::Waiting(pieces);
                    return Poll::Ready(Some(Ok(Frame::data(kept(piece, Arc::clone(&this.shares))))));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(bytes: usize) -> Bytes {
        vec![0; bytes].into()
    }

    /// Whether there is room for the pieces of one more answer.
    async fn has_room(sending: &Sending) -> bool {
        let body = sending.in_pieces(Box::new(std::iter::empty()));
        timeout(Duration::from_millis(50), body).await.is_ok()
    }

    #[tokio::test]
    async fn long_answers_share_the_memory_until_they_are_sent() {
        let sending = Sending::new();
        let body = sending.whole(piece(KEPT_BYTES_MAX - PIECE_BYTES + 1)).await.unwrap();
        assert!(!has_room(&sending).await);
        assert!(sending.whole(piece(SHORT_BYTES_MAX + 1)).await.is_some());
        assert!(sending.whole(piece(SHORT_BYTES_MAX)).await.is_some(), "short ones need none");
        let bytes = body.collect().await.unwrap().to_bytes();
        assert!(!has_room(&sending).await, "it may not be sent yet");
        drop(bytes);
        assert!(has_room(&sending).await);
        // What is longer than all of it is sent alone.
        assert!(sending.whole(piece(KEPT_BYTES_MAX + 1)).await.is_some());
    }

    #[tokio::test]
    async fn pieces_are_sent_in_their_order_and_an_error_is_one() {
        let sending = Sending::new();
        let pieces = (0..3_u8).map(|number| Ok(Bytes::from(vec![number; 2])));
        let body = sending.in_pieces(Box::new(pieces)).await.unwrap().collect().await.unwrap();
        assert_eq!(body.to_bytes(), [0, 0, 1, 1, 2, 2][..]);
        let broken = [Ok(piece(1)), Err(io::ErrorKind::InvalidData.into())].into_iter();
        assert!(sending.in_pieces(Box::new(broken)).await.unwrap().collect().await.is_err());
    }
}
