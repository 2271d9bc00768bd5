//! The levels of queued URLs: page requisites, then seeds, then pages by the logarithm of their cash.

/// Level of page requisites, the highest one: they belong to a page that was just captured.
pub const LEVEL_REQUISITE: u8 = u8::MAX - 1;

/// Level of a seed that was never fetched: above all ordinary pages.
pub const LEVEL_SEED: u8 = LEVEL_REQUISITE - 1;

/// Highest level of an ordinary page.
pub const LEVEL_PAGE_MAX: u8 = LEVEL_SEED - 1;

/// Returns the level of a page with `units` of cash: four levels per doubling.
pub(super) fn level_of(units: u64) -> u8 {
    let bits = 64 - units.leading_zeros();
    if bits < 3 {
        return bits as u8 + 1;
    }
    let fraction = (units >> (bits - 3)) & 0b11;
    (bits * 4 + fraction as u32 - 8).min(u32::from(LEVEL_PAGE_MAX)) as u8
}

/// Returns the least cash of a page on a level, in units: the inverse of `level_of`.
#[must_use]
pub const fn units_of(level: u8) -> u64 {
    let quarters = level as u32 + 8;
    if level < 4 || level > LEVEL_PAGE_MAX {
        return 0;
    }
    match (4 + quarters as u64 % 4).checked_shl(quarters / 4 - 3) {
        Some(units) if quarters / 4 <= 64 => units,
        _ => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::{LEVEL_PAGE_MAX, level_of, units_of};

    #[test]
    fn levels_rise_with_cash() {
        let mut last = 0;
        for units in [0, 1, 2, 4, 5, 6, 7, 8, 100, 1000, 1 << 40, (1 << 40) + (1 << 38), 1 << 60] {
            let level = level_of(units);
            assert!(level > last && level <= LEVEL_PAGE_MAX, "{units}: {level} after {last}");
            last = level;
        }
        assert_eq!(level_of(1 << 40) + 4, level_of(1 << 41));
        for level in 4..=level_of(u64::MAX) {
            let units = units_of(level);
            assert_eq!((level_of(units), level_of(units - 1)), (level, level - 1));
        }
    }
}
