//! Codes for integers from 0 on: small numbers take few bits.

use std::io::{self, Read, Write};

use super::bits::{BitError, BitReader, BitWriter};

/// A code, named as in `compressionflags`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    Unary,
    /// Elias' γ.
    Gamma,
    /// Elias' δ.
    Delta,
    /// Three bits at a time, each group preceded by a one if it is the last.
    Nibble,
    /// ζ with this shrinking factor, at least 1 (Boldi and Vigna, "Codes for the World Wide Web", 2005).
    Zeta(u32),
}

impl Code {
    /// Maximum shrinking factor. More than 7 is useless.
    const ZETA_MAX: u32 = 16;

    /// Returns the code of this name; `ZETA` without a number has the factor `zeta`.
    pub(super) fn by_name(name: &str, zeta: u32) -> Option<Self> {
        Some(match name {
            "UNARY" => Self::Unary,
            "GAMMA" => Self::Gamma,
            "DELTA" => Self::Delta,
            "NIBBLE" => Self::Nibble,
            "ZETA" => Self::zeta(zeta)?,
            _ => Self::zeta(name.strip_prefix("ZETA")?.parse().ok()?)?,
        })
    }

    fn zeta(factor: u32) -> Option<Self> {
        (1..=Self::ZETA_MAX).contains(&factor).then_some(Self::Zeta(factor))
    }

    /// Reads the next number.
    #[inline]
    pub(super) fn read(self, bits: &mut BitReader<impl Read>) -> Result<u64, BitError> {
        match self {
            Self::Unary => bits.unary(),
            Self::Gamma => bits.gamma(),
            Self::Delta => {
                let length = bits.gamma()?;
                bits.rest(length)
            }
            Self::Nibble => nibble(bits),
            Self::Zeta(factor) => zeta(factor, bits),
        }
    }

    /// Writes a number below 2^48 in one of the codes used for writing graphs.
    pub(super) fn write(self, value: u64, bits: &mut BitWriter<impl Write>) -> io::Result<()> {
        let next = value + 1;
        let log = next.ilog2();
        match self {
            Self::Zeta(factor) => {
                let rows = log / factor;
                let low = 1 << (rows * factor);
                bits.unary(rows.into())?;
                if next < 2 * low {
                    bits.bits(next - low, (rows + 1) * factor - 1)
                } else {
                    bits.bits(next, (rows + 1) * factor)
                }
            }
            Self::Gamma => {
                bits.unary(log.into())?;
                bits.bits(next - (1 << log), log)
            }
            _ => bits.unary(value),
        }
    }

    /// Number of bits that [`Self::write`] writes.
    pub(super) fn length(self, value: u64) -> u64 {
        let next = value + 1;
        let log = next.ilog2();
        match self {
            Self::Zeta(factor) => {
                let rows = log / factor;
                let is_short = next < 2 << (rows * factor);
                u64::from((rows + 1) * (factor + 1)) - u64::from(is_short)
            }
            Self::Gamma => u64::from(2 * log + 1),
            _ => next,
        }
    }
}

fn nibble(bits: &mut BitReader<impl Read>) -> Result<u64, BitError> {
    let mut value: u64 = 0;
    loop {
        let part = bits.bits(4)?;
        if value >> 61 != 0 {
            return Err(BitError::Damaged("a number has more than 64 bits"));
        }
        value = value << 3 | part & 7;
        if part >> 3 == 1 {
            return Ok(value);
        }
    }
}

#[inline]
fn zeta(factor: u32, bits: &mut BitReader<impl Read>) -> Result<u64, BitError> {
    let rows = bits.unary()?;
    if rows.saturating_add(1).saturating_mul(factor.into()) > 64 {
        return Err(BitError::Damaged("a number has more than 64 bits"));
    }
    let rows = rows as u32;
    let low = 1_u64 << (rows * factor);
    let value = bits.bits((rows + 1) * factor - 1)?;
    if value < low { Ok(value + low - 1) } else { Ok((value << 1 | bits.bits(1)?) - 1) }
}
