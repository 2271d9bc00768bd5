//! Removes the chunked coding from a body that is not completely in memory.

use super::http::CHUNK_LINE_BYTES_MAX;

/// Decodes a chunked body that arrives in pieces (RFC 9112 section 7.1), like [`dechunk`](super::dechunk) for a body in
/// memory that begins with a chunk. The body ends where the chunks break the rules.
#[derive(Debug, Default)]
pub struct Dechunker {
    /// A line that is still incomplete.
    line: Vec<u8>,
    state: UnchunkState,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum UnchunkState {
    #[default]
    SizeLine,
    /// Bytes left of the chunk.
    Data(u64),
    DataEnd,
    Over,
}

impl Dechunker {
    /// Processes the next piece of the body and passes its data to `take`.
    pub fn feed(&mut self, mut piece: &[u8], mut take: impl FnMut(&[u8])) {
        while !piece.is_empty() && self.state != UnchunkState::Over {
            if let UnchunkState::Data(left) = self.state {
                let count = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
                let (data, rest) = piece.split_at(count);
                take(data);
                piece = rest;
                let left = left - count as u64;
                self.state = if left == 0 { UnchunkState::DataEnd } else { UnchunkState::Data(left) };
                continue;
            }
            let end = memchr::memchr(b'\n', piece).map_or(piece.len(), |end| end + 1);
            let (line, rest) = piece.split_at(end);
            piece = rest;
            self.line.extend_from_slice(line);
            if self.line.len() > CHUNK_LINE_BYTES_MAX {
                self.state = UnchunkState::Over;
            } else if line.last() == Some(&b'\n') {
                self.state = self.after_line();
                self.line.clear();
            }
        }
    }

    fn after_line(&self) -> UnchunkState {
        if self.state == UnchunkState::DataEnd && matches!(self.line.as_slice(), b"\r\n" | b"\n") {
            return UnchunkState::SizeLine;
        }
        let digits = self.line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        // The number parser would also accept a sign.
        let digits = Some(digits).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let size = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u64::from_str_radix(digits, 16).ok());
        match size {
            Some(1..) => UnchunkState::Data(size.unwrap_or(0)),
            Some(0) | None => UnchunkState::Over,
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::super::dechunk;
    use super::*;

    proptest! {
        #[test]
        fn chunks_come_off_in_pieces_as_at_once(
            rest in "([0-9a-f]{1,2}(;x)?\r?\n|[a-c]{0,9}|\r?\n|\\+1\n|0\r\n| ){0,12}", pieces in prop::collection::vec(1..9_usize, 40)
        ) {
            let body = Bytes::from(format!("1\r\na{rest}"));
            let (mut chunks, mut found, mut left) = (Dechunker::default(), Vec::new(), &body[..]);
            for length in pieces.into_iter().chain([usize::MAX]) {
                let (piece, after) = left.split_at(length.min(left.len()));
                chunks.feed(piece, |data| found.extend_from_slice(data));
                left = after;
            }
            prop_assert_eq!(found, dechunk(&body));
        }
    }
}
