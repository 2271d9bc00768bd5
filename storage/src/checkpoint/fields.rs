//! Fixed-size records as bytes: every field little-endian, one after the other, no padding.
//!
//! A record's length is a constant next to its fields, so the slices handed in here are always long enough.

/// A value that a [`super::Table`] holds in `BYTES` bytes.
pub(crate) trait Record: Copy {
    /// Bytes that [`Record::encode`] writes and [`Record::decode`] reads, exactly.
    const BYTES: usize;

    fn encode(&self, fields: &mut FieldWriter<'_>);
    fn decode(fields: &mut FieldReader<'_>) -> Self;
}

pub(crate) struct FieldWriter<'a>(pub(crate) &'a mut [u8]);

impl FieldWriter<'_> {
    #[inline]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        let (head, tail) = std::mem::take(&mut self.0).split_at_mut(bytes.len());
        head.copy_from_slice(bytes);
        self.0 = tail;
        self
    }

    #[inline]
    pub(crate) fn u8(&mut self, value: u8) -> &mut Self {
        self.bytes(&[value])
    }

    #[inline]
    pub(crate) fn u16(&mut self, value: u16) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    #[inline]
    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    /// The lower six bytes.
    #[inline]
    pub(crate) fn u48(&mut self, value: u64) -> &mut Self {
        let [a, b, c, d, e, f, ..] = value.to_le_bytes();
        self.bytes(&[a, b, c, d, e, f])
    }

    #[inline]
    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    #[inline]
    pub(crate) fn i64(&mut self, value: i64) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    /// An id that may be missing: stored one higher, 0 for none.
    #[inline]
    pub(crate) fn id(&mut self, id: Option<u32>) -> &mut Self {
        self.u32(id.map_or(0, |id| id.wrapping_add(1)))
    }
}

pub(crate) struct FieldReader<'a>(pub(crate) &'a [u8]);

impl FieldReader<'_> {
    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> [u8; N] {
        let (head, tail) = self.0.split_at(N);
        self.0 = tail;
        let mut array = [0; N];
        array.copy_from_slice(head);
        array
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> u8 {
        let [value] = self.array();
        value
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    #[inline]
    pub(crate) fn u48(&mut self) -> u64 {
        let [a, b, c, d, e, f] = self.array();
        u64::from_le_bytes([a, b, c, d, e, f, 0, 0])
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    #[inline]
    pub(crate) fn i64(&mut self) -> i64 {
        i64::from_le_bytes(self.array())
    }

    #[inline]
    pub(crate) fn id(&mut self) -> Option<u32> {
        self.u32().checked_sub(1)
    }
}

/// Appends a number in as many groups of seven bits as it needs, lowest first (LEB128).
pub(crate) fn push_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Takes a number off the front; `None` when the bytes end or the number is longer than 64 bits.
#[inline]
pub(crate) fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    // Most are short, and lists of links are millions of them: the groups of eight bytes are put together in three steps.
    if let Some(eight) = bytes.first_chunk() {
        let word = u64::from_le_bytes(*eight);
        let length = (!word & 0x8080_8080_8080_8080).trailing_zeros() / 8 + 1;
        if length <= 8 {
            let groups = word & (0x7f7f_7f7f_7f7f_7f7f >> (64 - 8 * length));
            let groups = groups & 0x007f_007f_007f_007f | (groups & 0x7f00_7f00_7f00_7f00) >> 1;
            let groups = groups & 0x0000_3fff_0000_3fff | (groups & 0x3fff_0000_3fff_0000) >> 2;
            *bytes = &bytes[length as usize..];
            return Some(groups & 0x0fff_ffff | groups >> 32 << 28);
        }
    }
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Bytes of the first `count` varints; nothing if there are fewer.
pub(crate) fn length_of_varints(bytes: &[u8], mut count: usize) -> Option<usize> {
    let (words, rest) = bytes.as_chunks::<8>();
    for (place, word) in words.iter().enumerate() {
        // Each varint ends with a byte below 128.
        let mut ends = !u64::from_le_bytes(*word) & 0x8080_8080_8080_8080;
        let ending = ends.count_ones() as usize;
        if count <= ending {
            if count == 0 {
                return Some(8 * place);
            }
            for _ in 1..count {
                ends &= ends - 1;
            }
            return Some(8 * place + ends.trailing_zeros() as usize / 8 + 1);
        }
        count -= ending;
    }
    let mut length = 8 * words.len();
    let mut rest = rest.iter();
    while count > 0 {
        count -= usize::from(*rest.next()? < 0x80);
        length += 1;
    }
    Some(length)
}

/// Small differences of either sign as small numbers.
#[inline]
pub(crate) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The inverse of [`zigzag`].
#[inline]
pub(crate) fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::{push_varint, take_varint};

    #[test]
    fn numbers_come_back_whatever_follows() {
        let numbers = (0..64).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, u64::MAX << bit, !0 >> bit]);
        for number in numbers {
            for following in 0..9 {
                let mut bytes = Vec::new();
                push_varint(&mut bytes, number);
                let length = bytes.len();
                bytes.resize(length + following, 0xff);
                let mut rest = bytes.as_slice();
                assert_eq!(take_varint(&mut rest), Some(number));
                assert_eq!(rest.len(), following);
                assert_eq!(take_varint(&mut &bytes[..length - 1]), None);
            }
        }
    }

    #[test]
    fn a_number_that_does_not_end_is_none() {
        assert_eq!(take_varint(&mut [0xff; 32].as_slice()), None);
    }
}
