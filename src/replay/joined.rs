//! Bodies of which only pieces were captured: parts (status 206) and bodies that were cut off. Pieces of one version, by
//! its validator and its length, are joined as far as they follow each other.

use std::collections::VecDeque;

use archive_storage::segment::{PayloadPieces, SegmentError, SegmentReader};
use archive_storage::warc::HttpHead;
use archive_storage::{CaptureKind, Location};
use bytes::Bytes;

use super::long::Long;
use super::mementos::{Memento, Mementos};
use super::ranges::{PartialBody, RangeAsked};
use super::show::{RecordedResponse, WHOLE_BYTES_MAX};
use super::{ReplayError, ReplayRequest};

/// Maximum number of captures of a URL that are read for pieces of a body, the nearest in time first.
pub(super) const PIECES_MAX: usize = 512;

/// What all pieces of a body have in common.
#[derive(Debug, PartialEq, Eq)]
struct BodyVersion {
    /// Strong entity tag, or date of change.
    validator: String,
    length: u64,
    codings: String,
}

/// A piece of a body: its first byte, and how many there are.
#[derive(Clone, Copy, Debug)]
struct BodyPiece {
    location: Location,
    first: u64,
    count: u64,
}

/// Bytes of a record's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PieceShare {
    location: Location,
    skip: u64,
    count: u64,
}

/// Joined pieces that are read while they are sent.
pub(super) struct JoinedPieces {
    reader: SegmentReader,
    shares: VecDeque<PieceShare>,
    open: Option<(PayloadPieces, u64)>,
}

impl ReplayRequest<'_> {
    /// The body that a capture has a piece of, whole or from the byte on that is asked for, and which part of it that is;
    /// `None` if the pieces do not give it.
    pub(super) fn joined(
        &self,
        found: &Mementos,
        place: usize,
        range: Option<RangeAsked>,
    ) -> Result<Option<(RecordedResponse, PartialBody)>, ReplayError> {
        let base = &found.list[place];
        let Some((head, version, own)) = self.piece(base)? else { return Ok(None) };
        let (from, to) = match range {
            Some(range) => match range.within(version.length) {
                Some(asked) => asked,
                None => return Ok(None),
            },
            None => (0, version.length - 1),
        };
        let mut others: Vec<&Memento> = found.list.iter().filter(|other| other.id != base.id).collect();
        others.sort_by_key(|other| other.capture.time.abs_diff(base.capture.time));
        let mut pieces = vec![own];
        for other in others.into_iter().take(PIECES_MAX - 1) {
            // What cannot be read has no piece.
            if let Ok(Some((_, of, piece))) = self.piece(other)
                && of == version
            {
                pieces.push(piece);
            }
        }
        let shares = cover(pieces, from, to);
        let count: u64 = shares.iter().map(|share| share.count).sum();
        let is_whole = from == 0 && count == version.length;
        if count == 0 || range.is_none() && !is_whole {
            return Ok(None);
        }
        let part = match is_whole {
            true => PartialBody::Whole,
            false => PartialBody::Range { first: from, last: from + count - 1, length: Some(version.length) },
        };
        Ok(Some((self.read_joined(head, &shares, count, is_whole)?, part)))
    }

    fn read_joined(
        &self,
        mut head: HttpHead,
        shares: &[PieceShare],
        count: u64,
        is_whole: bool,
    ) -> Result<RecordedResponse, ReplayError> {
        let of_part =
            |name: &str| ["Content-Range", "Content-Length"].iter().any(|own| own.eq_ignore_ascii_case(name));
        head.fields.retain(|(name, _)| !of_part(name));
        let status = if is_whole { 200 } else { 206 };
        let read = || JoinedPieces {
            reader: self.store.reader(),
            shares: shares.iter().copied().collect(),
            open: None,
        };
        if count > WHOLE_BYTES_MAX {
            let beginning = read().next().transpose()?.unwrap_or_default();
            let long = Some(Long::of_joined(read(), count));
            return Ok(RecordedResponse { head, status, body: beginning, long, is_cut: false });
        }
        let mut body = Vec::with_capacity(usize::try_from(count).unwrap_or_default());
        for piece in read() {
            body.extend_from_slice(&piece?);
        }
        Ok(RecordedResponse { head, status, body: body.into(), long: None, is_cut: false })
    }

    /// What a capture has of a body, if it is a piece of a version that can be told from others.
    fn piece(&self, memento: &Memento) -> Result<Option<(HttpHead, BodyVersion, BodyPiece)>, ReplayError> {
        let Some(original) = self.store.original(&memento.capture)? else { return Ok(None) };
        let record = self.store.reader().pieces(original.location)?;
        let is_cut = record.header().get("WARC-Truncated").is_some();
        let payload = record.payload()?;
        let mut head = payload.head().clone();
        if memento.capture.kind == CaptureKind::Identical {
            let own = self.store.http_head(memento.capture.location)?;
            head = if own.status().is_some() { own } else { head };
        }
        let (first, said, length) = match (head.status(), PartialBody::of_head(&head)) {
            (Some(206), PartialBody::Range { first, last, length: Some(length) }) => {
                (first, last - first + 1, length)
            }
            (Some(200), _) if is_cut => {
                match head.get("Content-Length").and_then(|length| length.trim().parse().ok()) {
                    Some(length @ 1..) => (0, length, length),
                    _ => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        let tag = head.get("ETag").map(str::trim);
        let validator = match tag {
            Some(tag) => Some(tag).filter(|tag| tag.starts_with('"')),
            None => head.get("Last-Modified").map(str::trim),
        };
        let Some(validator) = validator else { return Ok(None) };
        let version =
            BodyVersion { validator: validator.to_owned(), length, codings: head.list("Content-Encoding") };
        // Chunks tell their length only when they are read: a whole record has what it says.
        let count = match payload.length() {
            Some(count) => count.min(said),
            None if is_cut => return Ok(None),
            None => said,
        };
        Ok(Some((head, version, BodyPiece { location: original.location, first, count })))
    }
}

/// Chooses pieces that follow each other from a byte on, up to and including another one, as far as there are any.
fn cover(mut pieces: Vec<BodyPiece>, from: u64, to: u64) -> Vec<PieceShare> {
    pieces.sort_by_key(|piece| piece.first);
    let end = |piece: &BodyPiece| piece.first.saturating_add(piece.count);
    let (mut shares, mut next, mut at) = (Vec::new(), 0, from);
    let mut best: Option<BodyPiece> = None;
    while at <= to {
        while let Some(piece) = pieces.get(next).filter(|piece| piece.first <= at) {
            if best.is_none_or(|best| end(&best) < end(piece)) {
                best = Some(*piece);
            }
            next += 1;
        }
        let Some(piece) = best.filter(|best| end(best) > at) else { break };
        let count = end(&piece).min(to.saturating_add(1)) - at;
        shares.push(PieceShare { location: piece.location, skip: at - piece.first, count });
        at += count;
    }
    shares
}

impl std::fmt::Debug for JoinedPieces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JoinedPieces").field("shares", &self.shares).finish_non_exhaustive()
    }
}

impl JoinedPieces {
    /// Leaves out bytes at the beginning.
    pub(super) fn skip_bytes(&mut self, mut count: u64) {
        while let Some(share) = self.shares.front_mut() {
            let here = count.min(share.count);
            (share.skip, share.count, count) = (share.skip + here, share.count - here, count - here);
            if share.count > 0 {
                return;
            }
            self.shares.pop_front();
        }
    }

    fn read_next(&mut self) -> Result<Option<Bytes>, SegmentError> {
        loop {
            if let Some((payload, left)) = &mut self.open {
                let piece = if *left > 0 { payload.next().transpose()? } else { None };
                if let Some(mut piece) = piece {
                    piece.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= piece.len() as u64;
                    return Ok(Some(piece));
                }
                self.open = None;
            }
            let Some(share) = self.shares.pop_front() else { return Ok(None) };
            let mut payload = self.reader.pieces(share.location)?.payload()?;
            payload.skip_bytes(share.skip)?;
            self.open = Some((payload, share.count));
        }
    }
}

impl Iterator for JoinedPieces {
    type Item = Result<Bytes, SegmentError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read_next().transpose()
    }
}

#[cfg(test)]
mod tests {
    use archive_storage::SegmentId;

    use super::*;

    fn piece(number: u32, first: u64, count: u64) -> BodyPiece {
        BodyPiece { location: Location { segment: SegmentId(number), offset: 0, length: 0 }, first, count }
    }

    fn covered(pieces: &[BodyPiece], from: u64, to: u64) -> Vec<(u32, u64, u64)> {
        let shares = cover(pieces.to_vec(), from, to);
        shares.iter().map(|share| (share.location.segment.0, share.skip, share.count)).collect()
    }

    #[test]
    fn pieces_cover_a_body_as_far_as_they_follow_each_other() {
        let pieces = [piece(1, 0, 10), piece(2, 5, 20), piece(3, 8, 4), piece(4, 25, 5), piece(5, 40, 5)];
        assert_eq!(covered(&pieces, 0, 99), [(1, 0, 10), (2, 5, 15), (4, 0, 5)]);
        assert_eq!(covered(&pieces, 7, 11), [(2, 2, 5)]);
        assert_eq!(covered(&pieces, 42, 43), [(5, 2, 2)]);
        assert!(covered(&pieces, 30, 99).is_empty());
        assert!(covered(&[piece(1, 0, 0)], 0, 9).is_empty());
    }
}
