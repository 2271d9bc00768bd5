//! Detects hosts that serve the same page under ever new URLs.
//!
//! Servers that answer "not found" with status 200, calendars, and generated offers have one thing in common: after a
//! while their pages have nothing new, however many there are. So each host counts its most frequent contents by
//! similarity, in the few bytes that its record has for it, with the frequent-items method of Misra and Gries ("Finding
//! repeated elements", Science of Computer Programming, 1982). A content that makes up more than a fifth of a host's
//! pages is found, and so is a text with other numbers and pictures each time that makes up more than half of them. No
//! count is ever too high.

use archive_web::parse::{is_alike, is_near};

/// Number of contents counted for a host; the last one is a text, whatever numbers and pictures are with it.
const CONTENTS: usize = 5;

/// Number of pages with one text, but other numbers or pictures, that count as much as one page with the same ones: a
/// gallery has hundreds, a counter in a trap has no end.
const PAGES_OF_A_TEXT: u32 = 10;

/// Bytes of a content and its count.
const CONTENT_BYTES: usize = 12;

/// Bytes reserved in the store.
const BYTES: usize = 64;

/// The most frequent contents of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NearDuplicates {
    /// Similarity and count; an unused slot has the count 0.
    contents: [(u64, u32); CONTENTS],
}

impl NearDuplicates {
    /// Decodes the result of [`NearDuplicates::to_bytes`].
    #[must_use]
    pub fn from_bytes(bytes: &[u8; BYTES]) -> Self {
        let mut contents = [(0, 0); CONTENTS];
        for (content, bytes) in contents.iter_mut().zip(bytes.chunks_exact(CONTENT_BYTES)) {
            let (similarity, count) = bytes.split_at(8);
            let similarity = similarity.try_into().map_or(0, u64::from_le_bytes);
            *content = (similarity, count.try_into().map_or(0, u32::from_le_bytes));
        }
        Self { contents }
    }

    /// Encodes it for the host's record.
    #[must_use]
    pub fn to_bytes(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        for ((similarity, count), bytes) in self.contents.iter().zip(bytes.chunks_exact_mut(CONTENT_BYTES)) {
            let (first, second) = bytes.split_at_mut(8);
            first.copy_from_slice(&similarity.to_le_bytes());
            second.copy_from_slice(&count.to_le_bytes());
        }
        bytes
    }

    /// Returns the count of the host's pages known to be like one with this similarity hash.
    #[must_use]
    pub fn count(&self, similarity: u64) -> u32 {
        let [alike @ .., text] = &self.contents;
        let like = alike.iter().find(|(known, count)| *count > 0 && is_alike(*known, similarity));
        let of_text = if is_near(text.0, similarity) { text.1 / PAGES_OF_A_TEXT } else { 0 };
        like.map_or(0, |(_, count)| *count).max(of_text)
    }

    /// Counts a page with this similarity hash.
    pub fn note(&mut self, similarity: u64) {
        let [contents @ .., text] = &mut self.contents;
        note_among(contents, similarity, is_alike);
        note_among(std::slice::from_mut(text), similarity, is_near);
    }
}

fn note_among(contents: &mut [(u64, u32)], similarity: u64, is_like: fn(u64, u64) -> bool) {
    let like = contents.iter().position(|(known, count)| *count > 0 && is_like(*known, similarity));
    match like.or_else(|| contents.iter().position(|(_, count)| *count == 0)) {
        Some(place) if like.is_some() => contents[place].1 = contents[place].1.saturating_add(1),
        Some(place) => contents[place] = (similarity, 1),
        None => contents.iter_mut().for_each(|(_, count)| *count -= 1),
    }
}

#[cfg(test)]
mod tests {
    use super::NearDuplicates;

    /// Returns numbers whose bits differ in many positions.
    fn unlike(number: u64) -> u64 {
        (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    #[test]
    fn a_content_that_returns_is_found_among_pages_that_differ() {
        let mut host = NearDuplicates::default();
        for number in 0..1000 {
            host.note(unlike(number));
            if number % 2 == 0 {
                // Near-duplicates differ in a few bits.
                host.note(0xABCD_EF01_2345_6789 ^ (1 << (16 + number % 48)));
            }
            host = NearDuplicates::from_bytes(&host.to_bytes());
        }
        let count = host.count(0xABCD_EF01_2345_6789);
        assert!((250..=500).contains(&count), "{count}");
        assert!((0..1000).all(|number| host.count(unlike(number)) < 100));
    }

    #[test]
    fn a_text_counts_less_where_numbers_and_pictures_differ() {
        let mut host = NearDuplicates::default();
        (0..1300).for_each(|number| host.note(0xABCD_EF01_2345_0000 | number));
        assert_eq!(host.count(0xABCD_EF01_2345_FFFF), 130);
        (0..200).for_each(|_| host.note(0xABCD_EF01_2345_0000));
        assert!(host.count(0xABCD_EF01_2345_0000) >= 150);
    }

    #[test]
    fn what_has_no_text_is_like_nothing() {
        let mut host = NearDuplicates::default();
        for _ in 0..100 {
            host.note(0);
        }
        assert_eq!(host.count(0), 0);
    }
}
