//! Filters on the columns of a block, for all of its rows at once.

use std::ops::{Bound, Range};
use std::sync::Arc;

use archive_books::prepared::{Column as Stored, Prepared};
use archive_storage::{Capture, CaptureId, State, UrlId};

use crate::query::columns::answers::AnswerFilter;
use crate::query::columns::numbers::Number;
use crate::query::columns::row_set::{RowSet, flags};
use crate::query::columns::sources::Calculated;
use crate::query::columns::texts::{OnText, Titles, Urls};
use crate::query::columns::visits::Changes;
use crate::query::language::{Found, RowsError};
use crate::query::rows::hexadecimal;

/// Pages are read one by one if they are at most one in `FEW_SHARE` of all, or at most `FEW_MIN`.
const FEW_SHARE: usize = 16;
const FEW_MIN: usize = 1 << 12;

/// A condition on stored values.
#[derive(Debug)]
pub(crate) enum ColumnFilter<'a> {
    All(Vec<ColumnFilter<'a>>),
    Any(Vec<ColumnFilter<'a>>),
    Not(Box<ColumnFilter<'a>>),
    /// A number within ranges.
    Between(Number, Vec<(Bound<f64>, Bound<f64>)>),
    /// A value stored as a number.
    Coded(Coded),
    /// One of these rows, sorted by id, and where they are from.
    Ids(Arc<Vec<UrlId>>, FoundBy),
    /// For each row, whether the filter holds; found by a pass over all rows.
    Each(Vec<bool>),
    /// A condition on the digests of captures.
    Digests(&'a State, OnText),
    /// For each page, whether the filter holds for its captures.
    OfPages(&'a State, Vec<bool>),
    Changes(Changes<'a>),
    Calculated(Calculated<'a>),
    Answers(AnswerFilter<'a>),
    Urls(Urls<'a>),
    Titles(Titles<'a>),
}

/// How ids were found, before any column is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FoundBy {
    /// By a search of the plan.
    Search,
    /// As the pages of some sites.
    Sites,
    /// By their names.
    Names,
    /// By a pass over all pages.
    Pass,
}

/// For each number of a column whether a filter holds, and whether it holds for numbers beyond these.
#[derive(Debug)]
pub(crate) struct Coded {
    column: Stored,
    are: Vec<bool>,
    otherwise: bool,
    /// The only number for which the filter holds: comparing with it is faster, and most blocks do not have it.
    only: Option<u64>,
}

impl Coded {
    pub(crate) fn new(column: Stored, are: Vec<bool>, otherwise: bool) -> Self {
        let mut wanted = (0..).zip(&are).filter(|(_, is)| **is).map(|(number, _)| number);
        let only = wanted.next().filter(|_| !otherwise && wanted.next().is_none());
        Self { column, are, otherwise, only }
    }

    fn rows(&self, prepared: &Prepared, block: u32, among: &RowSet) -> Found<RowSet> {
        let is = |value: u64| self.are.get(value as usize).copied().unwrap_or(self.otherwise);
        let bounds = prepared.bounds(block, self.column);
        Ok(match self.only {
            _ if bounds.start() == bounds.end() => {
                if is(*bounds.start()) {
                    RowSet::All
                } else {
                    RowSet::None
                }
            }
            Some(only) if !bounds.contains(&only) => RowSet::None,
            Some(only) => RowSet::passing((prepared, block), self.column, among, |value| value == only)?,
            None => RowSet::passing((prepared, block), self.column, among, is)?,
        })
    }
}

impl ColumnFilter<'_> {
    /// Evaluation order within a conjunction: filters that leave few rows come first, so that most blocks are skipped;
    /// texts are read last, only for the rows left.
    pub(crate) fn turn(&self) -> u8 {
        match self {
            Self::Ids(..) => 0,
            Self::All(filters) => filters.first().map_or(1, Self::turn),
            Self::Any(_) | Self::Not(_) | Self::Between(..) | Self::Coded(_) | Self::Each(_) => 1,
            Self::Changes(_) | Self::Titles(_) | Self::Calculated(_) => 2,
            Self::OfPages(..) | Self::Digests(..) | Self::Answers(_) => 2,
            Self::Urls(_) => 3,
        }
    }

    /// Reads the titles that the filter needs for all pages, unless other filters leave only a few of these.
    pub(crate) fn prepare(&mut self) -> Found<()> {
        match self {
            Self::All(filters) if filters.first().is_some_and(|filter| filter.turn() == 0) => Ok(()),
            Self::All(filters) | Self::Any(filters) => filters.iter_mut().try_for_each(Self::prepare),
            Self::Not(filter) => filter.prepare(),
            Self::Titles(titles) => Ok(titles.read_all()?),
            _ => Ok(()),
        }
    }

    /// The columns that the filter reads; `None` for names, which are stored elsewhere.
    pub(crate) fn columns(&self) -> Vec<Option<Stored>> {
        match self {
            Self::All(filters) | Self::Any(filters) => filters.iter().flat_map(Self::columns).collect(),
            Self::Not(filter) => filter.columns(),
            Self::Between(Number { column, .. }, _) | Self::Coded(Coded { column, .. }) => {
                vec![Some(*column)]
            }
            Self::Ids(_, FoundBy::Sites) => vec![Some(Stored::Site)],
            Self::Titles(_) => vec![Some(Stored::Title)],
            Self::Ids(_, FoundBy::Names) | Self::Urls(_) => vec![None],
            Self::Calculated(calculated) => calculated.columns().map(Some).collect(),
            Self::Answers(answers) => answers.columns().map(Some).collect(),
            Self::Ids(..) | Self::Each(_) | Self::Changes(_) => Vec::new(),
            Self::OfPages(..) | Self::Digests(..) => Vec::new(),
        }
    }

    /// Upper bound on the number of matching pages, if searches limit it.
    pub(crate) fn most(&self) -> Option<usize> {
        match self {
            Self::All(filters) => filters.iter().filter_map(Self::most).min(),
            Self::Any(filters) => filters.iter().map(Self::most).sum(),
            Self::Ids(ids, FoundBy::Search) => Some(ids.len()),
            _ => None,
        }
    }

    /// Whether the filter is known to hold for at most `few` rows, without reading columns.
    pub(crate) fn leaves(&self, few: usize) -> bool {
        match self {
            Self::All(filters) => filters.iter().any(|filter| filter.leaves(few)),
            Self::Any(filters) => filters.iter().all(|filter| filter.leaves(few)),
            Self::Ids(ids, _) => ids.len() <= few,
            _ => false,
        }
    }

    /// How many pages count as few, compared to all pages.
    pub(crate) fn few(state: &State) -> usize {
        (state.url_count() as usize / FEW_SHARE).max(FEW_MIN)
    }

    /// The rows of a block that pass the filter.
    pub(crate) fn rows(&self, prepared: &Prepared, block: u32) -> Found<RowSet> {
        self.rows_among(prepared, block, &RowSet::All)
    }

    /// Like `rows`; the result is unspecified for rows outside `among`.
    pub(crate) fn rows_among(&self, prepared: &Prepared, block: u32, among: &RowSet) -> Found<RowSet> {
        Ok(match self {
            Self::All(filters) => filters.iter().try_fold(RowSet::All, |rows, filter| {
                let rest = if matches!(rows, RowSet::Some(_) | RowSet::Few(..)) { &rows } else { among };
                Ok::<_, RowsError>(match &rows {
                    RowSet::None => RowSet::None,
                    _ => {
                        let others = filter.rows_among(prepared, block, rest)?;
                        rows.and(others)
                    }
                })
            })?,
            Self::Any(filters) => filters.iter().try_fold(RowSet::None, |rows, filter| {
                Ok::<_, RowsError>(match &rows {
                    RowSet::All => RowSet::All,
                    _ => rows.or(filter.rows_among(prepared, block, among)?),
                })
            })?,
            Self::Not(filter) => !filter.rows_among(prepared, block, among)?,
            Self::Between(number, ranges) => number.between(ranges, (prepared, block), among)?,
            Self::Coded(coded) => coded.rows(prepared, block, among)?,
            Self::Ids(ids, _) => RowSet::of_found(prepared.ids(block), ids),
            Self::Each(are) => {
                let ids = prepared.ids(block);
                RowSet::of(are.get(ids.start as usize..ids.end as usize).unwrap_or_default().to_vec())
            }
            Self::OfPages(state, are) => {
                let holds = |capture: &Capture| are.get(capture.url.index()).copied().unwrap_or_default();
                captures_that(state, prepared.ids(block), among, holds)?
            }
            Self::Digests(state, test) => {
                let test = test.clone();
                let holds = |capture: &Capture| test.holds(Some(&hexadecimal(&capture.digest)));
                captures_that(state, prepared.ids(block), among, holds)?
            }
            Self::Changes(changes) => changes.rows(prepared.ids(block), among)?,
            Self::Calculated(calculated) => calculated.rows(prepared, block, among)?,
            Self::Answers(answers) => answers.rows(prepared, block, among)?,
            Self::Urls(urls) => urls.rows(prepared.ids(block), among)?,
            Self::Titles(titles) => titles.rows(prepared, block, among)?,
        })
    }
}

/// The captures of a block for which `holds` is true; the result is unspecified for rows outside `among`.
fn captures_that(
    state: &State,
    ids: Range<u32>,
    among: &RowSet,
    holds: impl Fn(&Capture) -> bool,
) -> Found<RowSet> {
    let Some(rows) = among.few() else {
        let captures = state.captures_from(CaptureId(ids.start)).take(ids.len());
        let each = captures.map(|found| found.map(|(_, capture)| holds(&capture)));
        return Ok(RowSet::of(each.collect::<Result<_, _>>()?));
    };
    let captures: Vec<CaptureId> = rows.iter().map(|row| CaptureId(ids.start + row)).collect();
    let captures = state.captures_of(&captures)?;
    let holding = rows.iter().zip(&captures).filter(|(_, capture)| holds(capture));
    Ok(RowSet::of(flags(holding.map(|(row, _)| *row), ids.len())))
}
