//! Cash in whole units, and accounts stored relative to a shared offset.
//!
//! The cash of the whole web is [`Cash::WHOLE`], 2^60 units, and never changes. Integer sums are exact in any order, so
//! a constant total can be checked to the last unit, even after a crash. A page starts with 2^28 units, so rounding is
//! far below every error of the method.

use serde::{Deserialize, Serialize};

/// An amount of cash, in units of 2^-60 of the whole web's cash; at most [`Cash::WHOLE`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cash(u64);

impl Cash {
    /// No cash.
    pub const ZERO: Self = Self(0);
    /// All cash of the web.
    pub const WHOLE: Self = Self(1 << 60);

    /// An amount of `units`, capped at [`Cash::WHOLE`].
    #[must_use]
    pub const fn from_units(units: u64) -> Self {
        if units > Self::WHOLE.0 { Self::WHOLE } else { Self(units) }
    }

    /// Returns the number of units.
    #[must_use]
    pub const fn units(self) -> u64 {
        self.0
    }

    /// Returns the share of the whole, from 0 to 1.
    #[must_use]
    pub fn share(self) -> f64 {
        self.0 as f64 / Self::WHOLE.0 as f64
    }
}

/// The account of a page as stored: its cash minus what the virtual page has given to every page of its group so far.
///
/// The virtual page pays all pages in O(1) by raising one offset: `cash = base + offset`. The offset grows without
/// limit, so both wrap around at 2^64. The cash lies between 0 and 2^60 and is therefore never ambiguous.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Base(i64);

impl Base {
    /// Creates the base from the stored number.
    #[must_use]
    pub const fn from_stored(stored: i64) -> Self {
        Self(stored)
    }

    /// Returns the number to store.
    #[must_use]
    pub const fn to_stored(self) -> i64 {
        self.0
    }

    pub(super) const fn with(units: u64, offset: i64) -> Self {
        Self((units as i64).wrapping_sub(offset))
    }

    pub(super) const fn units(self, offset: i64) -> u64 {
        self.0.wrapping_add(offset) as u64
    }

    pub(super) const fn plus(self, units: u64) -> Self {
        Self(self.0.wrapping_add(units as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_units_agree() {
        assert_eq!(Cash::from_units(u64::MAX), Cash::WHOLE);
        assert!((Cash::from_units(1 << 58).share() - 0.25).abs() < 1e-15);
    }

    #[test]
    fn an_account_survives_an_offset_that_wraps_around() {
        let offset = i64::MAX - 5;
        let poor = Base::with(3, offset);
        let rich = Base::with(1 << 60, offset);
        let later = offset.wrapping_add(40);
        assert_eq!(poor.units(later), 43);
        assert_eq!(rich.units(later), (1 << 60) + 40);
    }
}
