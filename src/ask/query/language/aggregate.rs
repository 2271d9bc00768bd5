//! Aggregates of groups.

use crate::query::language::expr::PlannedExpr;

/// An aggregate function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gather {
    /// Number of rows.
    Count,
    /// Number of rows with a known value.
    Known,
    /// Number of distinct values.
    Distinct,
    Sum,
    Avg,
    Min,
    Max,
    Median,
}

impl Gather {
    pub(crate) const NAMES: [(&'static str, &'static str); 6] = [
        ("count", "rows; count(x) those that have an x; count(distinct x) the different ones"),
        ("sum", "the sum"),
        ("avg", "the mean"),
        ("min", "the smallest, earliest or first by the alphabet"),
        ("max", "the largest, latest or last"),
        ("median", "the one in the middle"),
    ];

    /// The aggregate function with this name.
    pub(crate) fn named(name: &str, distinct: bool, has_argument: bool) -> Option<Self> {
        Some(match (name, distinct, has_argument) {
            ("count", false, false) => Self::Count,
            ("count", false, true) => Self::Known,
            ("count", true, true) => Self::Distinct,
            ("sum", false, true) => Self::Sum,
            ("avg" | "mean" | "average", false, true) => Self::Avg,
            ("min", false, true) => Self::Min,
            ("max", false, true) => Self::Max,
            ("median", false, true) => Self::Median,
            _ => return None,
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Count | Self::Known | Self::Distinct => "count",
            Self::Sum => "sum",
            Self::Avg => "avg",
            Self::Min => "min",
            Self::Max => "max",
            Self::Median => "median",
        }
    }

    pub(crate) fn needs_numbers(self) -> bool {
        matches!(self, Self::Sum | Self::Avg | Self::Median)
    }
}

/// An aggregate of each group.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Aggregate {
    pub(crate) gather: Gather,
    /// The aggregated expression; `None` for rows themselves.
    pub(crate) of: Option<PlannedExpr>,
}
