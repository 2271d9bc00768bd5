//! The credit history of a page by interpolation: how much cash came in, over which time.
//!
//! Time is the clock G, which advances by one when the cash of the whole web has been handed on once. A history is one
//! number: the cash that came in during a span of G-time that ends at the last visit. So a page takes 16 bytes however
//! often it is read. The formula is from the paper ("Adaptive on-line page importance computation", section 3,
//! interpolation), extended to pages younger than the window: their span grows until it reaches the window, so that the
//! default history of a new page does not outweigh what was actually observed.

use serde::{Deserialize, Serialize};

/// Credit history of a page as of its last visit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Credit {
    /// Cash that came in during `span`, in the unit of the caller (endowments in [`Ledger`](super::Ledger)).
    pub history: f32,
    /// The G-time that `history` covers, at most the window.
    pub span: f32,
    /// The clock at the last visit.
    pub clock: f64,
}

impl Credit {
    /// Creates the history of a page first visited at `clock`, with `cash` that came in during `age`.
    #[must_use]
    pub fn first(cash: f64, age: f64, clock: f64) -> Self {
        Self { history: cash as f32, span: age as f32, clock }
    }

    /// Returns the history after a visit at `clock` that found `cash`, for a window of `window` turns of G.
    ///
    /// Assumes that cash came in evenly since the last visit. With D the time since then, T the window and S the span:
    /// `S' = min(T, S + D)`, `H' = H (S' - D) / S + c`; or `H' = c T / D` if D reaches the window.
    #[must_use]
    pub fn measured(self, cash: f64, clock: f64, window: f64) -> Self {
        let elapsed = (clock - self.clock).max(0.0);
        if elapsed >= window {
            return Self::first(cash * window / elapsed, window, clock);
        }
        let before = f64::from(self.span);
        let span = window.min(before + elapsed);
        let kept = if before > 0.0 { f64::from(self.history) * (span - elapsed) / before } else { 0.0 };
        Self { history: (kept + cash) as f32, span: span as f32, clock }
    }

    /// Returns the cash that comes in per turn of G, as estimated at `clock` when the page holds `cash`.
    ///
    /// This is the paper's `(H + C) / (G + 1)` over the span: cash not yet handed on is evidence too.
    #[must_use]
    pub fn rate(self, cash: f64, clock: f64) -> f64 {
        let time = f64::from(self.span) + (clock - self.clock).max(0.0);
        if time > 0.0 { (f64::from(self.history) + cash) / time } else { 0.0 }
    }

    /// Returns the history of a page that, with the `cash` it holds at `clock`, earns what it earned up to its last
    /// visit.
    ///
    /// If pages are visited in turn, that is what came in over whole turns. What came in since depends on which pages
    /// were visited last.
    #[must_use]
    pub fn evened(self, cash: f64, clock: f64) -> Self {
        let earned = self.rate(0.0, self.clock) * (f64::from(self.span) + (clock - self.clock).max(0.0));
        Self { history: (earned - cash).max(0.0) as f32, ..self }
    }

    /// Encodes the history in 16 bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&self.history.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.span.to_le_bytes());
        bytes[8..].copy_from_slice(&self.clock.to_le_bytes());
        bytes
    }

    /// Decodes a history; invalid numbers (negative or not finite) become 0.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        let [a, b, c, d, e, f, g, h, clock @ ..] = bytes;
        let sane = |number: f32| if number.is_finite() && number > 0.0 { number } else { 0.0 };
        let clock = f64::from_le_bytes(clock);
        Self {
            history: sane(f32::from_le_bytes([a, b, c, d])),
            span: sane(f32::from_le_bytes([e, f, g, h])),
            clock: if clock.is_finite() { clock } else { 0.0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_constant_rate_is_the_fixed_point_for_any_spacing(
            rate in 1e-6..1.0f64,
            steps in prop::collection::vec(1e-3..5.0f64, 1..60),
            window in 1.0..40.0f64,
        ) {
            let mut credit = Credit::first(rate, 1.0, 0.0);
            let mut clock = 0.0;
            for step in steps {
                clock += step;
                credit = credit.measured(rate * step, clock, window);
                prop_assert!(f64::from(credit.span) <= window + 1e-5);
                prop_assert!((credit.rate(0.0, clock) / rate - 1.0).abs() < 1e-4);
                prop_assert!((credit.rate(rate * 0.5, clock + 0.5) / rate - 1.0).abs() < 1e-4);
            }
        }

        #[test]
        fn an_even_history_has_the_rate_up_to_the_last_visit(
            rate in 1e-3..1.0f64, span in 1.0..16.0f64, elapsed in 0.0..1.0f64, share in 0.0..1.0f64,
        ) {
            let credit = Credit { history: (rate * span) as f32, span: span as f32, clock: 5.0 };
            let cash = share * rate * span;
            let even = credit.evened(cash, 5.0 + elapsed);
            prop_assert!((even.rate(cash, 5.0 + elapsed) / rate - 1.0).abs() < 1e-4);
        }

        #[test]
        fn bytes_keep_the_history(history in 0.0..1e9f32, span in 0.0..1e3f32, clock in 0.0..1e9f64) {
            let credit = Credit { history, span, clock };
            prop_assert_eq!(Credit::from_bytes(credit.to_bytes()), credit);
        }

        #[test]
        fn any_bytes_give_usable_numbers(bytes in prop::array::uniform16(any::<u8>())) {
            let credit = Credit::from_bytes(bytes);
            prop_assert!(credit.history >= 0.0 && credit.span >= 0.0 && credit.clock.is_finite());
        }
    }

    #[test]
    fn a_change_is_forgotten_after_the_window() {
        let window = 4.0;
        let mut credit = Credit::first(10.0, 1.0, 0.0);
        for step in 1..=40 {
            credit = credit.measured(0.5, f64::from(step), window);
        }
        assert!((credit.rate(0.0, 40.0) - 0.5).abs() < 0.01);
        let long_gone = credit.measured(30.0, 100.0, window);
        assert!((long_gone.rate(0.0, 100.0) - 0.5).abs() < 1e-6);
    }
}
