//! The properties file of a graph, which describes its bit stream.

use super::codes::Code;

/// Parameters and size of a graph.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Properties {
    pub(super) pages: u32,
    pub(super) arcs: Option<u64>,
    /// A list may be copied from one of this many before it.
    pub(super) window: u32,
    /// Minimum length of an interval of targets; with 0 there are no intervals.
    pub(super) interval_min: u32,
    pub(super) codes: Codes,
}

/// The code of each kind of number.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Codes {
    pub(super) degrees: Code,
    pub(super) references: Code,
    pub(super) block_counts: Code,
    pub(super) blocks: Code,
    pub(super) intervals: Code,
    pub(super) residuals: Code,
}

/// The default codes.
pub(super) const USUAL_CODES: Codes = Codes {
    degrees: Code::Gamma,
    references: Code::Unary,
    block_counts: Code::Gamma,
    blocks: Code::Gamma,
    intervals: Code::Gamma,
    residuals: Code::Zeta(3),
};

/// Maximum width of the window. Graphs for random access have 7, those for archiving 70.
const WINDOW_MAX: u32 = 1024;

impl Properties {
    /// Parses the text of a properties file; the error says what is wrong.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let value = |name: &str| {
            let lines = text.lines().filter_map(|line| line.split_once('='));
            lines.filter(|(found, _)| found.trim() == name).map(|(_, value)| value.trim()).next_back()
        };
        let number = |name: &str, usual: Option<u64>| match value(name) {
            Some(text) => text.parse().map_err(|_| format!("{name} is '{text}', not a number")),
            None => usual.ok_or_else(|| format!("{name} is missing")),
        };
        let small = |name, usual, most: u32| {
            let found = number(name, usual)?;
            u32::try_from(found)
                .ok()
                .filter(|found| *found <= most)
                .ok_or_else(|| format!("{name} is {found}, more than {most}"))
        };
        if value("graphclass").is_some_and(|class| !class.ends_with("BVGraph")) {
            return Err("the graph is not in BV format".to_owned());
        }
        if value("endianness").is_some_and(|order| order != "big") {
            return Err(
                "the bits begin at the lowest; only graphs that begin at the highest can be read".to_owned()
            );
        }
        let zeta = small("zetak", Some(3), u32::MAX)?;
        Ok(Self {
            pages: small("nodes", None, u32::MAX)?,
            arcs: value("arcs").map(|_| number("arcs", None)).transpose()?,
            window: small("windowsize", Some(7), WINDOW_MAX)?,
            interval_min: small("minintervallength", Some(4), u32::MAX)?,
            codes: codes(value("compressionflags").unwrap_or_default(), zeta)?,
        })
    }
}

fn codes(flags: &str, zeta: u32) -> Result<Codes, String> {
    let mut codes = USUAL_CODES;
    for flag in flags.split('|').map(str::trim).filter(|flag| !flag.is_empty()) {
        let unknown = || format!("the compression flag '{flag}' is unknown");
        let (part, code) = flag.rsplit_once('_').ok_or_else(unknown)?;
        let place = match part {
            "OUTDEGREES" => &mut codes.degrees,
            "REFERENCES" => &mut codes.references,
            "BLOCK_COUNT" => &mut codes.block_counts,
            "BLOCKS" => &mut codes.blocks,
            "INTERVALS" => &mut codes.intervals,
            "RESIDUALS" => &mut codes.residuals,
            // Offsets are not read.
            "OFFSETS" => continue,
            _ => return Err(unknown()),
        };
        *place = Code::by_name(code, zeta).ok_or_else(unknown)?;
    }
    Ok(codes)
}
