//! Content codings that are wrong or that decompress to far more than was sent.

use std::io::Write as _;
use std::sync::LazyLock;

use flate2::{Compress, Compression, Crc, FlushCompress};

use super::{HTML, Listed, SMALL_PAGE, sent, whole};
use crate::script::Script;

pub(super) static LISTED: &[Listed] = &[
    Listed { path: "/bomb", what: "1 MiB of gzip that unpacks to 1 GiB", script: |_| coded("gzip", &BOMB) },
    Listed {
        path: "/bomb-twice",
        what: "gzip in gzip: a few kB that unpack to 1 GiB",
        script: |_| coded("gzip, gzip", &gzip(&BOMB)),
    },
    Listed {
        path: "/bomb-deep",
        what: "a page coded with gzip ten times",
        script: |_| {
            let body = (0..10).fold(SMALL_PAGE.as_bytes().to_vec(), |body, _| gzip(&body));
            coded(&["gzip"; 10].join(", "), &body)
        },
    },
    Listed {
        path: "/gzip",
        what: "right gzip, asked for or not",
        script: |_| coded("gzip", &gzip(SMALL_PAGE.as_bytes())),
    },
    Listed {
        path: "/gzip-members",
        what: "right gzip in two members",
        script: |_| coded("gzip", &[gzip(SMALL_PAGE.as_bytes()), gzip(SMALL_PAGE.as_bytes())].concat()),
    },
    Listed {
        path: "/gzip-cut",
        what: "gzip that ends in the middle",
        script: |_| {
            let body = gzip(SMALL_PAGE.repeat(20).as_bytes());
            coded("gzip", &body[..body.len() / 2])
        },
    },
    Listed {
        path: "/gzip-checksum",
        what: "gzip with a wrong checksum",
        script: |_| {
            let mut body = gzip(SMALL_PAGE.as_bytes());
            let checksum = body.len() - 8;
            body[checksum] ^= 0xff;
            coded("gzip", &body)
        },
    },
    Listed {
        path: "/gzip-trailing",
        what: "gzip with other bytes after it",
        script: |_| {
            coded("gzip", &[gzip(SMALL_PAGE.as_bytes()), b"<!-- added by a proxy -->".to_vec()].concat())
        },
    },
    Listed {
        path: "/gzip-not",
        what: "plain HTML called gzip",
        script: |_| coded("gzip", SMALL_PAGE.as_bytes()),
    },
    Listed {
        path: "/deflate-raw",
        what: "raw deflate called deflate",
        script: |_| coded("deflate", &deflate(SMALL_PAGE.as_bytes())),
    },
    Listed {
        path: "/brotli-not",
        what: "plain HTML called br",
        script: |_| coded("br", SMALL_PAGE.as_bytes()),
    },
    Listed {
        path: "/unknown-coding",
        what: "a content coding that nobody knows",
        script: |_| coded("shannon-fano", SMALL_PAGE.as_bytes()),
    },
];

/// Decompressed bytes of one block of the bomb.
const BLOCK_BYTES: usize = 1 << 20;
/// Number of blocks of the bomb.
const BLOCKS: u32 = 1024;

/// One gzip member that decompresses to 1 GiB of zeros. Deflate starts afresh after a full flush, so the block of 1 MiB
/// can be repeated, and the checksums of the blocks can be combined. Building it takes milliseconds.
static BOMB: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let zeros = vec![0; BLOCK_BYTES];
    let mut block = Vec::with_capacity(64 * 1024);
    let flushed =
        Compress::new(Compression::best(), false).compress_vec(&zeros, &mut block, FlushCompress::Full);
    debug_assert!(flushed.is_ok());
    let mut block_checksum = Crc::new();
    block_checksum.update(&zeros);
    let mut checksum = Crc::new();
    let mut bomb = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    for _ in 0..BLOCKS {
        bomb.extend_from_slice(&block);
        checksum.combine(&block_checksum);
    }
    // An empty final block ends the stream.
    bomb.extend_from_slice(&[0x03, 0x00]);
    bomb.extend_from_slice(&checksum.sum().to_le_bytes());
    bomb.extend_from_slice(&(BLOCK_BYTES as u32 * BLOCKS).to_le_bytes());
    bomb
});

fn coded(coding: &str, body: &[u8]) -> Script {
    sent(whole(200, &format!("{HTML}Content-Encoding: {coding}\r\n"), body))
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Compression::best());
    // Writing to memory does not fail; if it did, the body would be empty.
    encoder.write_all(body).and_then(|()| encoder.finish()).unwrap_or_default()
}

fn deflate(body: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(body).and_then(|()| encoder.finish()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn the_bomb_unpacks_to_the_end() {
        let mut decoder = flate2::read::GzDecoder::new(BOMB.as_slice());
        let mut buffer = vec![0; 1 << 16];
        let mut total = 0u64;
        loop {
            match decoder.read(&mut buffer).unwrap() {
                0 => break,
                read => total += read as u64,
            }
        }
        assert_eq!(total, 1 << 30);
        assert!(BOMB.len() < 2 << 20, "{} bytes", BOMB.len());
        assert!(gzip(&BOMB).len() < 20_000);
    }
}
