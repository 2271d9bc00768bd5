//! Encoding of fixed-size records: little-endian fields, one after the other, without padding.
//!
//! A record's length is a constant next to its fields, so the slices passed in here are always long enough.

/// A value that a [`super::RecordTable`] stores in `BYTES` bytes.
pub(crate) trait TableRecord: Copy {
    /// Exact number of bytes that [`TableRecord::encode`] writes and [`TableRecord::decode`] reads.
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

    /// Writes the lower six bytes.
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

    /// Writes an optional id as the id plus one, 0 for `None`.
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

/// Appends a number as groups of seven bits, lowest first, as many as it needs (LEB128).
pub(crate) fn push_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// The highest bit of each byte, which is set in all bytes of a varint but the last.
const GOES_ON: u64 = 0x8080_8080_8080_8080;

/// Decodes two varints of at most four bytes each, which are the halves of a word.
#[inline]
fn join_halves(word: u64) -> u64 {
    let groups = word & 0x007f_007f_007f_007f | (word & 0x7f00_7f00_7f00_7f00) >> 1;
    groups & 0x0000_3fff_0000_3fff | (groups & 0x3fff_0000_3fff_0000) >> 2
}

/// The bits up to and including the lowest set bit.
#[inline]
fn up_to_lowest(bits: u64) -> u64 {
    bits ^ bits.wrapping_sub(1)
}

/// Removes a number from the front; `None` if the bytes end too early or the number exceeds 64 bits.
#[inline]
pub(crate) fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    // Most numbers are short, and lists of links contain millions of them.
    if let Some(eight) = bytes.first_chunk() {
        let word = u64::from_le_bytes(*eight);
        let ends = !word & GOES_ON;
        if ends != 0 {
            *bytes = &bytes[ends.trailing_zeros() as usize / 8 + 1..];
            let halves = join_halves(word & up_to_lowest(ends));
            return Some(halves & 0x0fff_ffff | halves >> 32 << 28);
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

/// Removes `count` numbers from the front and calls `visit` with each; `None` as for [`take_varint`].
#[inline]
pub(crate) fn take_varints(bytes: &mut &[u8], count: usize, mut visit: impl FnMut(u64)) -> Option<()> {
    let mut left = count;
    while left > 0 {
        // Most numbers have at most four bytes; two of them are decoded at once.
        if let Some(eight) = bytes.first_chunk().filter(|_| left > 1) {
            let word = u64::from_le_bytes(*eight);
            let ends = !word & GOES_ON;
            let second_end = ends & ends.wrapping_sub(1);
            let first_bits = ends.trailing_zeros() + 1;
            let second = (word & up_to_lowest(second_end)).wrapping_shr(first_bits);
            if second_end != 0 && first_bits <= 32 && second <= u64::from(u32::MAX) {
                let halves = join_halves(word & up_to_lowest(ends) | second << 32);
                visit(halves & 0x0fff_ffff);
                visit(halves >> 32);
                *bytes = &bytes[second_end.trailing_zeros() as usize / 8 + 1..];
                left -= 2;
                continue;
            }
        }
        visit(take_varint(bytes)?);
        left -= 1;
    }
    Some(())
}

/// Length in bytes of the first `count` varints; `None` if there are fewer.
pub(crate) fn length_of_varints(bytes: &[u8], mut count: usize) -> Option<usize> {
    let (words, rest) = bytes.as_chunks::<8>();
    for (place, word) in words.iter().enumerate() {
        // Each varint ends with a byte below 128.
        let mut ends = !u64::from_le_bytes(*word) & GOES_ON;
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

/// Maps differences of small magnitude, positive or negative, to small numbers.
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
    use super::{push_varint, take_varint, take_varints};

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
    fn numbers_in_a_row_are_those_taken_one_by_one() {
        let numbers: Vec<u64> = (0..64).flat_map(|bit| [1 << bit, 5, (1_u64 << bit) - 1]).collect();
        for count in 0..numbers.len() {
            for from in 0..=3 {
                let numbers = &numbers[from.min(count)..count];
                let mut bytes = Vec::new();
                numbers.iter().for_each(|number| push_varint(&mut bytes, *number));
                bytes.push(7);
                let (mut rest, mut taken) = (bytes.as_slice(), Vec::new());
                assert_eq!(take_varints(&mut rest, numbers.len(), |number| taken.push(number)), Some(()));
                assert_eq!((taken.as_slice(), rest), (numbers, &[7][..]));
                assert_eq!(take_varints(&mut bytes.as_slice(), numbers.len() + 2, |_| {}), None);
            }
        }
    }

    #[test]
    fn a_number_that_does_not_end_is_none() {
        assert_eq!(take_varint(&mut [0xff; 32].as_slice()), None);
    }
}
