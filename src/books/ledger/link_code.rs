//! What the link log stores of a link besides its target: one byte.
//!
//! Below 128 it is the code of the [`LinkKind`]. With the highest bit set, the next two bits are traits that affect the
//! link's weight, given by its author or its position, and the low five bits are the code. These suffice for the kinds
//! that carry cash, and only those have a weight. So a pass over stored links weighs them as their capture did.

use archive_math::importance::LinkTraits;
use archive_web::parse::LinkKind;

/// There are trait bits.
const TRAITS: u8 = 1 << 7;
/// The link is in the page's template: navigation, header, footer.
const TEMPLATE: u8 = 1 << 6;
/// The author asks not to follow the link.
const NOFOLLOW: u8 = 1 << 5;
/// The bits of the kind, if there are trait bits.
const KIND: u8 = NOFOLLOW - 1;

/// Kind and traits of a link; see the module's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkCode(u8);

impl LinkCode {
    /// Encodes a link; the traits of a kind that carries no cash are dropped.
    #[must_use]
    pub fn new(kind: LinkKind, nofollow: bool, template: bool) -> Self {
        let traits = if nofollow { NOFOLLOW } else { 0 } | if template { TEMPLATE } else { 0 };
        if traits == 0 || kind.code() > KIND || !kind.carries_cash() {
            return Self(kind.code());
        }
        Self(kind.code() | traits | TRAITS)
    }

    /// Decodes a stored code.
    #[must_use]
    pub fn from_byte(byte: u8) -> Self {
        Self(byte)
    }

    /// Returns the byte to store.
    #[must_use]
    pub fn to_byte(self) -> u8 {
        self.0
    }

    /// Returns the kind of link; `None` if a newer version wrote it.
    #[must_use]
    pub fn kind(self) -> Option<LinkKind> {
        LinkKind::from_code(if self.0 & TRAITS == 0 { self.0 } else { self.0 & KIND })
    }

    /// Whether the author asks not to follow it.
    #[must_use]
    pub fn nofollow(self) -> bool {
        self.0 & (TRAITS | NOFOLLOW) == TRAITS | NOFOLLOW
    }

    /// Whether it is in the page's template.
    #[must_use]
    pub fn template(self) -> bool {
        self.0 & (TRAITS | TEMPLATE) == TRAITS | TEMPLATE
    }

    /// Whether it pays cash to its target.
    #[must_use]
    pub fn carries_cash(self) -> bool {
        self.kind().is_some_and(LinkKind::carries_cash)
    }

    /// Returns the traits that determine its weight.
    pub(crate) fn traits(self, between_hosts: bool) -> LinkTraits {
        LinkTraits { between_hosts, nofollow: self.nofollow(), template: self.template() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_keeps_kind_and_traits() {
        for kind in LinkKind::all() {
            for (nofollow, template) in [(false, false), (true, false), (false, true), (true, true)] {
                let code = LinkCode::from_byte(LinkCode::new(kind, nofollow, template).to_byte());
                assert_eq!(code.kind(), Some(kind));
                let worth = kind.carries_cash();
                assert_eq!((code.nofollow(), code.template()), (nofollow && worth, template && worth));
                assert_eq!(code.carries_cash(), worth);
            }
        }
        assert_eq!(LinkCode::from_byte(0).kind(), None);
    }
}
