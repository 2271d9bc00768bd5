//! The flags in the page state of a URL.

use archive_storage::PageFlags;

/// It is a page in the link graph: it has an account.
pub const ACCOUNT: PageFlags = PageFlags(1);
/// Its account was read: its cash has been passed on at least once.
pub(crate) const READ: PageFlags = PageFlags(1 << 1);
/// It belongs to the crawl's scope.
pub const IN_SCOPE: PageFlags = PageFlags(1 << 2);
/// It stands for another page, whose account it shares: a redirect or a duplicate.
pub const ALIAS: PageFlags = PageFlags(1 << 3);
/// It is a seed.
pub const SEED: PageFlags = PageFlags(1 << 4);
/// It is a robots.txt, judging by its URL.
pub const ROBOTS: PageFlags = PageFlags(1 << 5);
/// It was announced and has not answered since.
pub const PUBLISHED: PageFlags = PageFlags(1 << 6);
/// It had an account until a server said that it does not exist.
pub const VANISHED: PageFlags = PageFlags(1 << 7);
/// It was fetched, with any result.
pub const FETCHED: PageFlags = PageFlags(1 << 10);
/// Lowest bit of the number of consecutive requisite links that led here (3 bits).
const REQUISITE_DEPTH_SHIFT: u16 = 11;
const REQUISITE_DEPTH_MASK: u16 = 0b111;
/// Any of these bits: it is a requisite of a captured page (image, style sheet, script, frame) and is captured with it.
pub const REQUISITE: PageFlags = PageFlags(REQUISITE_DEPTH_MASK << REQUISITE_DEPTH_SHIFT);
/// Any of these bits: it has or had an account, or shares one.
pub const PAGE: PageFlags = ACCOUNT.or(ALIAS).or(VANISHED);

/// Whether a URL counts as a page: it has or had an account, or shares one, and is no requisite.
#[must_use]
pub const fn is_page(flags: PageFlags) -> bool {
    flags.has_any(PAGE) && !flags.has_any(REQUISITE)
}

/// Bits of the refusal code: the two low bits here, the two high bits at the upper end of the flags.
const REFUSAL_LOW_SHIFT: u16 = 8;
const REFUSAL_HIGH_SHIFT: u16 = 14;
const REFUSAL_MASK: u16 = 0b11;

/// Greatest refusal code.
pub const REFUSAL_MAX: u16 = 15;

/// Returns the code of the [`super::Refusal`] for which the URL is not fetched; 0 for none.
#[must_use]
pub fn refusal_code(PageFlags(flags): PageFlags) -> u16 {
    let low = (flags >> REFUSAL_LOW_SHIFT) & REFUSAL_MASK;
    low | (((flags >> REFUSAL_HIGH_SHIFT) & REFUSAL_MASK) << 2)
}

/// Returns `flags` with another refusal code (at most [`REFUSAL_MAX`]).
pub(crate) fn with_refusal_code(PageFlags(flags): PageFlags, code: u16) -> PageFlags {
    let cleared = flags & !((REFUSAL_MASK << REFUSAL_LOW_SHIFT) | (REFUSAL_MASK << REFUSAL_HIGH_SHIFT));
    let (low, high) = (code & REFUSAL_MASK, (code >> 2) & REFUSAL_MASK);
    PageFlags(cleared | (low << REFUSAL_LOW_SHIFT) | (high << REFUSAL_HIGH_SHIFT))
}

/// Number of consecutive requisite links that led here.
pub(crate) fn requisite_depth(PageFlags(flags): PageFlags) -> u16 {
    (flags >> REQUISITE_DEPTH_SHIFT) & REQUISITE_DEPTH_MASK
}

/// Returns `flags` with another requisite depth (at most 7).
pub(crate) fn with_requisite_depth(PageFlags(flags): PageFlags, depth: u16) -> PageFlags {
    let cleared = flags & !(REQUISITE_DEPTH_MASK << REQUISITE_DEPTH_SHIFT);
    PageFlags(cleared | (depth.min(REQUISITE_DEPTH_MASK) << REQUISITE_DEPTH_SHIFT))
}

#[cfg(test)]
mod tests {
    use archive_storage::PageFlags;

    use super::{IN_SCOPE, requisite_depth, with_requisite_depth};

    #[test]
    fn no_two_flags_share_a_bit() {
        let refusal = super::with_refusal_code(PageFlags(0), super::REFUSAL_MAX);
        let flags = [
            super::ACCOUNT,
            super::READ,
            IN_SCOPE,
            super::ALIAS,
            super::SEED,
            super::ROBOTS,
            super::PUBLISHED,
            super::VANISHED,
            super::FETCHED,
            super::REQUISITE,
            refusal,
        ];
        for (place, flag) in flags.iter().enumerate() {
            assert!(flags[..place].iter().all(|other| !other.has_any(*flag)), "{flag:?}");
        }
    }

    #[test]
    fn the_requisite_depth_does_not_touch_other_flags() {
        let flags = with_requisite_depth(IN_SCOPE, 2);
        assert_eq!((requisite_depth(flags), flags.has_any(IN_SCOPE)), (2, true));
        assert_eq!(requisite_depth(with_requisite_depth(flags, 9)), 7);
        assert_eq!(with_requisite_depth(flags, 0), IN_SCOPE);
    }
}
