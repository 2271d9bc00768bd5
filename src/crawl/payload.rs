//! The parts of a response: its head, the digests of its body, and the beginning of the payload.
//!
//! A body in a file is read once from end to end for its digests; only its beginning is loaded into memory.

use std::io;

use archive_storage::Digest;
use archive_storage::backend::Spool;
use archive_storage::warc::{Dechunker, HttpHead, dechunk, split};
use archive_web::fetch::HttpMessage;
use bytes::Bytes;
use sha2::{Digest as _, Sha256};

/// The parts of a response.
pub(super) struct ResponseParts {
    pub(super) head_bytes: Bytes,
    pub(super) head: HttpHead,
    /// Digest of the body as received: validators of WARC files check this one.
    pub(super) received_digest: Digest,
    /// Digest of the body without transfer coding.
    pub(super) digest: Digest,
    /// Body without transfer coding, or the beginning of a long one.
    pub(super) beginning: Bytes,
    /// Length in bytes of the body without transfer coding.
    pub(super) length: u64,
}

impl ResponseParts {
    /// Splits a response; at most `bytes_max` bytes of a body in a file are loaded into memory.
    pub(super) fn of(http: &HttpMessage, bytes_max: usize) -> io::Result<Self> {
        match http {
            HttpMessage::Whole(http) => {
                let (head_bytes, body) = split(http);
                Ok(Self::in_memory(head_bytes, body))
            }
            HttpMessage::Spooled { head, body } => Self::in_file(head.clone(), body, bytes_max),
        }
    }

    fn in_memory(head_bytes: Bytes, body: Bytes) -> Self {
        let head = HttpHead::parse(&head_bytes);
        let received_digest = Digest::sha256(&body);
        let is_chunked = head.is_chunked();
        let beginning = if is_chunked { dechunk(&body) } else { body };
        let digest = if is_chunked { Digest::sha256(&beginning) } else { received_digest };
        let length = beginning.len() as u64;
        Self { head_bytes, head, received_digest, digest, beginning, length }
    }

    fn in_file(head_bytes: Bytes, body: &Spool, bytes_max: usize) -> io::Result<Self> {
        let head = HttpHead::parse(&head_bytes);
        let (mut received, mut entity) = (Sha256::new(), Sha256::new());
        let (mut beginning, mut length) = (Vec::new(), 0_u64);
        let mut chunks = head.is_chunked().then(Dechunker::default);
        body.each_piece(|piece| {
            received.update(piece);
            let mut take = |data: &[u8]| {
                length += data.len() as u64;
                let room = data.len().min(bytes_max - beginning.len());
                beginning.extend_from_slice(&data[..room]);
            };
            match &mut chunks {
                Some(chunks) => chunks.feed(piece, |data| {
                    entity.update(data);
                    take(data);
                }),
                None => take(piece),
            }
            io::Result::Ok(())
        })?;
        let received_digest = Digest::from_sha256(received.finalize().into());
        let digest = match chunks {
            Some(_) => Digest::from_sha256(entity.finalize().into()),
            None => received_digest,
        };
        Ok(Self { head_bytes, head, received_digest, digest, beginning: beginning.into(), length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archive_storage::backend::RealDisk;

    /// The same response in memory and in a file.
    fn both(head: &str, body: &[u8], bytes_max: usize) -> [ResponseParts; 2] {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::create(&RealDisk, folder.path()).unwrap();
        spool.append(body).unwrap();
        let whole = HttpMessage::Whole([head.as_bytes(), body].concat().into());
        let spooled = HttpMessage::Spooled { head: head.to_owned().into(), body: spool.into() };
        [ResponseParts::of(&whole, bytes_max).unwrap(), ResponseParts::of(&spooled, bytes_max).unwrap()]
    }

    #[test]
    fn a_body_in_a_file_is_what_it_would_be_in_memory() {
        let long =
            [b"5;x=y\r\nhello\r\n3000000\r\n".to_vec(), vec![b'x'; 0x30_00000], b"\r\n0\r\n\r\n".to_vec()];
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        for (head, body) in [
            ("HTTP/1.1 200 OK\r\n\r\n", vec![b'y'; 3_000_001]),
            (chunked, long.concat()),
            (chunked, b"5\r\nhello\r\n5\r\nwor".to_vec()),
            (chunked, b"5\r\nhello\r\n0\r\nTrailer: x\r\n\r\n".to_vec()),
            (chunked, b"5\r\nhello world\r\n".to_vec()),
        ] {
            let [whole, spooled] = both(head, &body, 100);
            assert_eq!(whole.received_digest, spooled.received_digest);
            assert_eq!(whole.digest, spooled.digest);
            assert_eq!(whole.length, spooled.length);
            assert_eq!(whole.head_bytes, spooled.head_bytes);
            assert_eq!(whole.beginning[..whole.beginning.len().min(100)], spooled.beginning[..]);
        }
    }
}
