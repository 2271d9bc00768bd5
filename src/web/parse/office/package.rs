//! The parts of a ZIP file.
//!
//! Only parts that are asked for are unpacked, and what they come to is limited, so that a bomb costs what a document may cost.

use std::borrow::Cow;
use std::io::{Cursor, Read};

use zip::ZipArchive;

use super::document::OfficeProblem;
use crate::parse::charset;

/// Maximum number of parts of a package.
pub(super) const PARTS_MAX: usize = 10_000;

/// Maximum bytes that the parts of a package that are read unpack to.
pub(super) const UNPACKED_BYTES_MAX: u64 = 128 << 20;

/// A ZIP file.
pub(super) struct Package<'b> {
    zip: ZipArchive<Cursor<&'b [u8]>>,
    /// Bytes that may still be unpacked.
    left: u64,
}

impl<'b> Package<'b> {
    pub(super) fn open(file: &'b [u8]) -> Result<Self, OfficeProblem> {
        let zip = ZipArchive::new(Cursor::new(file)).map_err(|_| OfficeProblem::Damaged)?;
        if zip.len() > PARTS_MAX {
            return Err(OfficeProblem::TooManyParts);
        }
        Ok(Self { zip, left: UNPACKED_BYTES_MAX })
    }

    /// Whether there is a part of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.zip.index_for_name(name).is_some()
    }

    /// Names of the parts whose names begin and end like this, with a number between, by that number.
    pub(super) fn numbered(&self, beginning: &str, end: &str) -> Vec<String> {
        let number = |name: &str| name.strip_prefix(beginning)?.strip_suffix(end)?.parse::<u32>().ok();
        let names = self.zip.file_names().filter_map(|name| name.ok().map(Cow::into_owned));
        let mut found: Vec<(u32, String)> = names.filter_map(|name| Some((number(&name)?, name))).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, name)| name).collect()
    }

    /// Returns a part that is XML as text; none if there is no such part.
    pub(super) fn xml(&mut self, name: &str) -> Result<Option<String>, OfficeProblem> {
        if !self.has(name) {
            return Ok(None);
        }
        let mut part = self.zip.by_name(name).map_err(|_| OfficeProblem::PartDamaged)?;
        let mut bytes = Vec::new();
        let read = part.by_ref().take(self.left + 1).read_to_end(&mut bytes);
        self.left = self.left.checked_sub(bytes.len() as u64).ok_or(OfficeProblem::TooLarge)?;
        read.map_err(|_| OfficeProblem::PartDamaged)?;
        let text = charset::decode(&bytes, &charset::detect(&bytes, None, true)).0;
        // What is encrypted is no markup.
        if !text.trim_start_matches('\u{FEFF}').trim_start().starts_with('<') {
            return Err(OfficeProblem::PartDamaged);
        }
        Ok(Some(text.into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    fn zipped(parts: impl IntoIterator<Item = (String, usize)>) -> Vec<u8> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        let mebibyte = vec![b'<'; 1 << 20];
        for (name, mebibytes) in parts {
            zip.start_file(name, SimpleFileOptions::default()).unwrap();
            (0..mebibytes).for_each(|_| zip.write_all(&mebibyte).unwrap());
        }
        zip.finish().unwrap().into_inner()
    }

    #[test]
    fn a_package_has_so_many_parts_at_most() {
        let parts = |count: usize| zipped((0..count).map(|number| (number.to_string(), 0)));
        assert!(Package::open(&parts(PARTS_MAX)).is_ok());
        assert_eq!(Package::open(&parts(PARTS_MAX + 1)).err(), Some(OfficeProblem::TooManyParts));
        assert_eq!(Package::open(b"PK\x03\x04").err(), Some(OfficeProblem::Damaged));
    }

    #[test]
    fn parts_unpack_to_so_many_bytes_at_most() {
        let half = (UNPACKED_BYTES_MAX >> 21) as usize;
        let file = zipped([("a1.xml".to_owned(), half), ("a2.xml".to_owned(), half), ("b".to_owned(), 1)]);
        let mut package = Package::open(&file).unwrap();
        assert_eq!(package.numbered("a", ".xml"), ["a1.xml", "a2.xml"]);
        assert_eq!(package.xml("a1.xml").map(|part| part.map(|part| part.len())), Ok(Some(half << 20)));
        assert!(package.xml("a2.xml").is_ok_and(|part| part.is_some()));
        assert_eq!(package.xml("b"), Err(OfficeProblem::TooLarge));
        assert_eq!(package.xml("c"), Ok(None));
    }
}
