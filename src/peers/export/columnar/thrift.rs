//! Apache Thrift's compact protocol
//! (<https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>), as far as Parquet's metadata
//! needs it: structures, lists, 32- and 64-bit integers, booleans and strings.

/// Types of fields and elements.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// A structure that is being written. Fields must be added in ascending order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Struct {
    bytes: Vec<u8>,
    last: i16,
}

impl Struct {
    fn field(&mut self, number: i16, kind: u8) {
        // Field numbers are small and close together, so the short form always fits.
        let step = (number - self.last) as u8;
        self.bytes.push(step << 4 | kind);
        self.last = number;
    }

    pub(super) fn i32(mut self, number: i16, value: i32) -> Self {
        self.field(number, I32);
        varint(&mut self.bytes, zigzag(i64::from(value)));
        self
    }

    pub(super) fn i64(mut self, number: i16, value: i64) -> Self {
        self.field(number, I64);
        varint(&mut self.bytes, zigzag(value));
        self
    }

    pub(super) fn bool(mut self, number: i16, value: bool) -> Self {
        self.field(number, if value { TRUE } else { FALSE });
        self
    }

    pub(super) fn text(mut self, number: i16, value: &str) -> Self {
        self.field(number, BINARY);
        push_text(&mut self.bytes, value);
        self
    }

    pub(super) fn structure(mut self, number: i16, value: Self) -> Self {
        self.field(number, STRUCT);
        self.bytes.extend(value.end());
        self
    }

    pub(super) fn structures(mut self, number: i16, values: impl ExactSizeIterator<Item = Self>) -> Self {
        self.list(number, STRUCT, values.len());
        values.for_each(|value| self.bytes.extend(value.end()));
        self
    }

    pub(super) fn numbers(mut self, number: i16, values: &[i32]) -> Self {
        self.list(number, I32, values.len());
        values.iter().for_each(|value| varint(&mut self.bytes, zigzag(i64::from(*value))));
        self
    }

    pub(super) fn texts(mut self, number: i16, values: &[&str]) -> Self {
        self.list(number, BINARY, values.len());
        values.iter().for_each(|value| push_text(&mut self.bytes, value));
        self
    }

    fn list(&mut self, number: i16, kind: u8, length: usize) {
        self.field(number, LIST);
        match u8::try_from(length) {
            Ok(short @ 0..15) => self.bytes.push(short << 4 | kind),
            _ => {
                self.bytes.push(0xf0 | kind);
                varint(&mut self.bytes, length as u64);
            }
        }
    }

    /// Returns the bytes of the structure.
    pub(super) fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

fn push_text(bytes: &mut Vec<u8>, text: &str) {
    varint(bytes, text.len() as u64);
    bytes.extend_from_slice(text.as_bytes());
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// LEB128, which Parquet's run lengths use, too.
pub(super) fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::Struct;

    #[test]
    fn bytes_are_those_of_the_protocol() {
        let inner = Struct::default().bool(1, true).bool(2, false);
        let bytes = Struct::default()
            .i32(1, -1)
            .i64(3, 300)
            .text(4, "ab")
            .structure(5, inner)
            .numbers(6, &[1, 2])
            .texts(8, &["c"])
            .end();
        let expected = [
            0x15, 1, 0x26, 0xd8, 4, 0x18, 2, b'a', b'b', 0x1c, 0x11, 0x12, 0, 0x19, 0x25, 2, 4, 0x29, 0x18,
            1, b'c', 0,
        ];
        assert_eq!(bytes, expected);
    }
}
