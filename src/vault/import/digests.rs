//! Checks the digests that a foreign record states, and computes those that it lacks.

use std::io;

use archive_storage::Digest;
use archive_storage::backend::Spool;
use archive_storage::digest::{Algorithm, decode};
use archive_storage::warc::{
    self, Dechunker, HttpHead, Record, RecordType, begins_with_chunk, dechunk, split,
};
use bytes::Bytes;
use md5::Md5;
use sha1::Sha1;
use sha2::digest::DynDigest;
use sha2::{Digest as _, Sha256, Sha384, Sha512};

use super::NoteKind;

/// Metadata fields for stated digests that the stored record does not state, because they are wrong or of a kind that
/// the archive does not use.
const STATED: [(&str, &str); 2] =
    [("WARC-Block-Digest", "statedBlockDigest"), ("WARC-Payload-Digest", "statedPayloadDigest")];

/// Maximum number of characters kept of a stated digest.
const STATED_CHARACTERS_MAX: usize = 200;

/// Content whose end may be in a file.
struct Body<'a> {
    beginning: Bytes,
    rest: Option<&'a Spool>,
    /// Whether a chunked transfer coding has to be removed.
    is_chunked: bool,
}

impl Body<'_> {
    fn each(&self, take: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        let mut chunks = self.is_chunked.then(Dechunker::default);
        let mut feed = |piece: &[u8]| match &mut chunks {
            Some(chunks) => chunks.feed(piece, &mut *take),
            None => take(piece),
        };
        feed(&self.beginning);
        match self.rest {
            Some(rest) => rest.each_piece(|piece| {
                feed(piece);
                Ok(())
            }),
            None => Ok(()),
        }
    }

    fn has(&self, stated: &StatedDigest) -> io::Result<bool> {
        let mut hasher = (stated.kind.hasher)();
        self.each(&mut |piece| hasher.update(piece))?;
        Ok(*hasher.finalize() == *stated.value)
    }

    fn sha256(&self) -> io::Result<Digest> {
        let mut hasher = Sha256::new();
        self.each(&mut |piece| sha2::Digest::update(&mut hasher, piece))?;
        Ok(Digest::from_sha256(sha2::Digest::finalize(hasher).into()))
    }
}

/// The parts of a record. For a record without HTTP, the head is derived from its `Content-Type`.
pub(super) struct RecordParts {
    pub(super) head: HttpHead,
    /// The payload without transfer coding, or the beginning of a long one.
    pub(super) beginning: Bytes,
    /// Number of bytes of the payload.
    pub(super) length: u64,
    /// Digest of the payload.
    pub(super) entity: Digest,
    /// The payload digest that the stored record states: correct, and of a kind that the archive uses.
    pub(super) payload: Option<Digest>,
}

impl RecordParts {
    /// Splits a record; at most `bytes_max` bytes of a payload in a file are read into memory.
    pub(super) fn of(main: &Record, digests: &Digests, bytes_max: usize) -> io::Result<Self> {
        let (head, received) = received(main);
        let is_http = is_http(main);
        let coded = if is_http { head.is_chunked() } else { false };
        // Without transfer coding there is only one payload, and its digest may have been stated and verified.
        let known =
            digests.payload.filter(|digest| !coded && is_http && digest.algorithm() == Algorithm::Sha256);
        let entity = unchunked(&received, coded);
        let (beginning, length) = match entity.rest {
            None => (entity.beginning.clone(), entity.beginning.len() as u64),
            Some(_) => {
                let (mut beginning, mut length) = (Vec::new(), 0);
                entity.each(&mut |piece| {
                    length += piece.len() as u64;
                    let room = piece.len().min(bytes_max - beginning.len());
                    beginning.extend_from_slice(piece.split_at(room).0);
                })?;
                (Bytes::from(beginning), length)
            }
        };
        let entity = known.map_or_else(|| entity.sha256(), Ok)?;
        // Outside HTTP, only the tool that wrote the record can say what its payload is.
        let payload = match digests.payload {
            None if coded => Some(received.sha256()?),
            None if is_http => Some(entity),
            stated => stated,
        };
        Ok(Self { head, beginning, length, entity, payload })
    }
}

/// Whether a record holds an HTTP response.
pub(super) fn is_http(main: &Record) -> bool {
    main.header.record_type() == RecordType::Response
        && warc::is_http(main.header.get("Content-Type"), &main.content)
}

/// Returns the head of a record, and its body as it was received.
fn received(main: &Record) -> (HttpHead, Body<'_>) {
    let body = |beginning| Body { beginning, rest: main.rest.as_deref(), is_chunked: false };
    if is_http(main) {
        let (head, beginning) = split(&main.content);
        return (HttpHead::parse(&head), body(beginning));
    }
    let kind = main.header.get("Content-Type").map(|kind| ("Content-Type".to_owned(), kind.to_owned()));
    (HttpHead { first_line: String::new(), fields: kind.into_iter().collect() }, body(main.content.clone()))
}

/// Returns a body without its transfer coding.
fn unchunked<'a>(received: &Body<'a>, is_coded: bool) -> Body<'a> {
    let Body { beginning, rest, .. } = received;
    match rest {
        None if is_coded => Body { beginning: dechunk(beginning), rest: None, is_chunked: false },
        _ => {
            let is_chunked = is_coded && begins_with_chunk(beginning);
            Body { beginning: beginning.clone(), rest: *rest, is_chunked }
        }
    }
}

/// A kind of digest.
struct DigestKind {
    names: [&'static str; 2],
    length: usize,
    hasher: fn() -> Box<dyn DynDigest>,
}

/// The kinds that are checked.
const KINDS: [DigestKind; 5] = [
    DigestKind { names: ["sha1", "sha-1"], length: 20, hasher: || Box::new(Sha1::new()) },
    DigestKind { names: ["sha256", "sha-256"], length: 32, hasher: || Box::new(Sha256::new()) },
    DigestKind { names: ["md5", "md-5"], length: 16, hasher: || Box::new(Md5::new()) },
    DigestKind { names: ["sha384", "sha-384"], length: 48, hasher: || Box::new(Sha384::new()) },
    DigestKind { names: ["sha512", "sha-512"], length: 64, hasher: || Box::new(Sha512::new()) },
];

/// A digest that a record states.
struct StatedDigest {
    kind: &'static DigestKind,
    value: Vec<u8>,
}

impl StatedDigest {
    /// Parses a stated digest, or returns why it cannot be checked.
    fn read(text: &str) -> Result<Self, &'static str> {
        let (label, value) = text.trim().split_once(':').ok_or("does not name its algorithm")?;
        let is_its = |kind: &&DigestKind| kind.names.iter().any(|name| name.eq_ignore_ascii_case(label));
        let kind = KINDS.iter().find(is_its).ok_or("has an unknown algorithm")?;
        let value = decode(value, kind.length).ok_or("is malformed")?;
        Ok(Self { kind, value })
    }
}

/// The verified and computed digests of a record.
pub(super) struct Digests {
    /// Digest of the block, as stated or computed.
    pub(super) block: Digest,
    /// The payload digest as stated, correct or not.
    pub(super) stated: Option<Digest>,
    pub(super) payload: Option<Digest>,
    /// Messages about digests that are wrong or were not checked.
    pub(super) notes: Vec<(NoteKind, String)>,
    /// Metadata fields for stated digests that the stored record will not state.
    pub(super) fields: Vec<(String, String)>,
}

impl Digests {
    /// Checks the stated digests of a record, and computes the digest of its block if necessary.
    pub(super) fn of(main: &Record, algorithm: Algorithm) -> io::Result<Self> {
        let (mut notes, mut fields) = (Vec::new(), Vec::new());
        let is_revisit = main.header.record_type() == RecordType::Revisit;
        let body = Body { beginning: main.content.clone(), rest: main.rest.as_deref(), is_chunked: false };
        let mut check = |names, of, has: &dyn Fn(&StatedDigest) -> io::Result<bool>| {
            check(main, names, of, has, &mut notes, &mut fields)
        };
        let block = check(STATED[0], "block", &|stated| body.has(stated))?;
        let stated = main.header.get(STATED[1].0).and_then(|text| text.parse().ok());
        let payload = check(STATED[1], "payload", &|stated| {
            let (head, received) = received(main);
            // The standard defines the payload without transfer coding, but most tools hash it with the coding. The
            // payload digest of a revisit is that of its original.
            Ok(is_revisit
                || received.has(stated)?
                || head.is_chunked() && unchunked(&received, true).has(stated)?)
        })?;
        let block = match (block, &main.rest) {
            (Some(block), _) => block,
            (None, Some(rest)) => Digest::of_spooled(algorithm, &main.content, rest)?,
            (None, None) => Digest::of(algorithm, &main.content),
        };
        Ok(Self { block, stated, payload, notes, fields })
    }
}

/// Checks a digest that a record states. Returns it if it is correct and of a kind that the archive uses.
fn check(
    main: &Record,
    (name, field): (&str, &str),
    of: &str,
    has: &dyn Fn(&StatedDigest) -> io::Result<bool>,
    notes: &mut Vec<(NoteKind, String)>,
    fields: &mut Vec<(String, String)>,
) -> io::Result<Option<Digest>> {
    let Some(text) = main.header.get(name) else { return Ok(None) };
    let shown: String = text.chars().take(STATED_CHARACTERS_MAX).collect();
    let note = match StatedDigest::read(text) {
        Ok(stated) => match (has(&stated)?, text.parse().ok()) {
            (true, Some(digest)) => return Ok(Some(digest)),
            // It is correct, but of a kind that the archive does not use.
            (true, None) => None,
            (false, _) => {
                Some((NoteKind::Digest, format!("the {of} does not have the stated digest {shown}")))
            }
        },
        Err(why) => Some((
            NoteKind::UncheckedDigest,
            format!("the stated digest {shown} of the {of} was not checked: it {why}"),
        )),
    };
    notes.extend(note);
    fields.push((field.to_owned(), shown));
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use archive_storage::backend::RealDisk;
    use archive_storage::warc::RecordReader;
    use proptest::prelude::*;

    use super::*;

    fn record(fields: &str, block: &[u8]) -> Record {
        let head =
            format!("WARC/1.1\r\nWARC-Type: response\r\n{fields}Content-Length: {}\r\n\r\n", block.len());
        let file = [head.as_bytes(), block, b"\r\n\r\n"].concat();
        RecordReader::new(&file[..]).next().unwrap().unwrap()
    }

    #[test]
    fn every_kind_of_digest_is_checked_or_named() {
        let block = b"HTTP/1.1 200 OK\r\n\r\nabc";
        for (stated, note) in [
            ("md5:900150983cd24fb0d6963f7d28e17f72", None),
            ("MD5:kAFQmDzST7DWlj99KOF/cg==", None),
            ("sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5", None),
            ("sha1:qZk+NkcGgWq6PiVxeFDCbJzQ2J0=", None),
            ("sha1:qZk-NkcGgWq6PiVxeFDCbJzQ2J0", None),
            ("sha-256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", None),
            (
                "sha384:cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7",
                None,
            ),
            (
                "sha512:3a81oZNherrMQXNJriBBMRLm+k6JqX6iCp7u5ktV05ohkpkqJ0/BqDa6PCOj/uu9RU1EI2Q86A4qmslPpUyknw==",
                None,
            ),
            ("md5:900150983cd24fb0d6963f7d28e17f73", Some(NoteKind::Digest)),
            ("sha512:3a81", Some(NoteKind::UncheckedDigest)),
            ("sha1:not a digest", Some(NoteKind::UncheckedDigest)),
            ("crc32:352441c2", Some(NoteKind::UncheckedDigest)),
            ("900150983cd24fb0d6963f7d28e17f72", Some(NoteKind::UncheckedDigest)),
        ] {
            let fields = format!("Content-Type: application/http\r\nWARC-Payload-Digest: {stated}\r\n");
            let record = record(&fields, block);
            let digests = Digests::of(&record, Algorithm::Sha256).unwrap();
            let notes: Vec<_> = digests.notes.iter().map(|(kind, _)| *kind).collect();
            assert_eq!(notes, Vec::from_iter(note), "{stated}: {:?}", digests.notes);
            let is_kept = digests.fields == [("statedPayloadDigest".to_owned(), stated.to_owned())];
            assert_eq!(
                is_kept,
                digests.payload.is_none(),
                "{stated}: what is not stated by the record is in the metadata"
            );
            let payload = RecordParts::of(&record, &digests, 0).unwrap();
            assert_eq!(payload.entity, Digest::sha256(b"abc"));
            assert!(payload.payload.unwrap().matches(b"abc"));
        }
    }

    proptest! {
        /// Content in a file gives the same result as in memory.
        #[test]
        fn a_long_content_is_as_a_short_one(
            is_coded: bool, body in prop_oneof!["[a-z]{0,40}", "1\r\na(\r\n[1-4]\r\n[a-z]{2,4}){0,9}\r\n(0\r\n)?"]
        ) {
            let coding = if is_coded { "Transfer-Encoding: chunked\r\n" } else { "" };
            let block = format!("HTTP/1.1 200 OK\r\n{coding}\r\n{body}").into_bytes();
            let entity = if is_coded { dechunk(&Bytes::from(body.clone())) } else { body.clone().into() };
            for stated in [Digest::sha1(body.as_bytes()), Digest::sha256(&entity), Digest::sha256(b"else")] {
                let block_digest = Digest::sha256(&block);
                let fields = format!(
                    "Content-Type: application/http\r\nWARC-Payload-Digest: {stated}\r\nWARC-Block-Digest: {block_digest}\r\n"
                );
                let short = record(&fields, &block);
                let mut rest = Spool::create(&RealDisk, &std::env::temp_dir()).unwrap();
                let cut = block.len() - body.len() / 2;
                rest.append(&block[cut..]).unwrap();
                let long = Record { content: short.content.slice(..cut), rest: Some(Arc::new(rest)), ..short.clone() };
                // The beginning of a long content is examined in its first MiB.
                if is_coded && begins_with_chunk(body.as_bytes()) != begins_with_chunk(&body.as_bytes()[..cut - (block.len() - body.len())]) {
                    continue;
                }
                let found = [&short, &long].map(|record| {
                    let digests = Digests::of(record, Algorithm::Sha256).unwrap();
                    let payload = RecordParts::of(record, &digests, usize::MAX).unwrap();
                    (digests.block, digests.payload, digests.notes, payload.entity, payload.payload, payload.beginning, payload.length)
                });
                prop_assert_eq!(found[0].0, block_digest);
                prop_assert_eq!(&found[0], &found[1]);
                prop_assert_eq!(&found[0].5, &entity);
            }
        }
    }
}
