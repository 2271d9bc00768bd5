//! The levels of queued URLs: page requisites, then what goes before all pages, then seeds, then pages by the
//! logarithm of the cash they received.

use archive_math::importance::{ENDOWMENT, SEED_ENDOWMENT};

/// Level of page requisites, the highest one: they belong to a page that was just captured.
pub const LEVEL_REQUISITE: u8 = u8::MAX - 1;

/// Level of pages that were announced, and of pages on whose test others wait.
pub const LEVEL_FIRST: u8 = LEVEL_REQUISITE - 1;

/// Level of a seed that was never fetched: above all ordinary pages, except in the order of cash.
pub const LEVEL_SEED: u8 = LEVEL_FIRST - 1;

/// Highest level of an ordinary page.
pub const LEVEL_PAGE_MAX: u8 = LEVEL_SEED - 1;

/// Level of such a seed in the order of cash: that of its endowment.
pub const LEVEL_SEED_CASH: u8 = level_of(SEED_ENDOWMENT);

/// Lowest level by cash: below are pages that wait for all others.
const LEVEL_CASH_MIN: u8 = 2;

/// Levels per doubling of what a page received: .8 % of the importance that a crawl can gather early are lost with four
/// levels per doubling of all its cash, nearly nothing with these.
const LEVELS_PER_DOUBLING: u32 = 8;

/// The least received units that count are a 256th of an endowment.
const BITS_MIN: u32 = ENDOWMENT.ilog2() + 1 - 8;

/// Returns the level of a page with `units` of cash: eight levels per doubling of what it received beyond its endowment.
#[must_use]
pub const fn level_of(units: u64) -> u8 {
    let received = units.saturating_sub(ENDOWMENT);
    let bits = u64::BITS - received.leading_zeros();
    if bits < BITS_MIN {
        return LEVEL_CASH_MIN;
    }
    let fraction = (received >> (bits - 4)) as u32 & (LEVELS_PER_DOUBLING - 1);
    let level = LEVEL_CASH_MIN as u32 + 1 + (bits - BITS_MIN) * LEVELS_PER_DOUBLING + fraction;
    if level > LEVEL_PAGE_MAX as u32 { LEVEL_PAGE_MAX } else { level as u8 }
}

/// Returns the least cash of a page on a level, in units: the inverse of `level_of`.
#[must_use]
pub const fn units_of(level: u8) -> u64 {
    if level < LEVEL_CASH_MIN || level > LEVEL_PAGE_MAX {
        return 0;
    }
    if level == LEVEL_CASH_MIN {
        return ENDOWMENT;
    }
    let steps = level as u32 - LEVEL_CASH_MIN as u32 - 1;
    let leading = (LEVELS_PER_DOUBLING + steps % LEVELS_PER_DOUBLING) as u64;
    ENDOWMENT + (leading << (BITS_MIN + steps / LEVELS_PER_DOUBLING - 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_rise_with_what_a_page_received() {
        let mut last = 0;
        for received in
            [0, 1 << 20, (1 << 20) + (1 << 17), 1 << 21, 1 << 28, (1 << 28) + (1 << 25), 1 << 40, 1 << 50]
        {
            let level = level_of(ENDOWMENT + received);
            assert!(level > last && level <= LEVEL_PAGE_MAX, "{received}: {level} after {last}");
            last = level;
        }
        assert_eq!(
            [level_of(0), level_of(ENDOWMENT), level_of(ENDOWMENT + (1 << 20) - 1)],
            [LEVEL_CASH_MIN; 3]
        );
        assert_eq!(level_of(ENDOWMENT + (1 << 40)) + 8, level_of(ENDOWMENT + (1 << 41)));
        assert_eq!([level_of(1 << 60), level_of(u64::MAX)], [LEVEL_PAGE_MAX; 2]);
        for level in LEVEL_CASH_MIN + 1..=LEVEL_PAGE_MAX {
            let units = units_of(level);
            assert_eq!((level_of(units), level_of(units - 1)), (level, level - 1));
        }
        assert_eq!([0, 1, LEVEL_SEED, u8::MAX].map(units_of), [0; 4]);
    }
}
