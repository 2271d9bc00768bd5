//! Conditions that prepared columns can decide. They select pages before any row is built.
//!
//! A test holds for every page that matches its filter, and mostly for no other.

use std::ops::{Bound, Range};
use std::sync::Arc;

use archive_books::ledger::{SiteRule, capture_flags};
use archive_books::prepared::{BySite, Column as Stored, Prepared};
use archive_grammar::Target;
use archive_storage::{Capture, CaptureId, HostId, SiteId, State, UrlId};

use super::Instant;
use super::answered::Answered;
use super::archive::ArchiveRows;
use super::block_rows::{Rows, flags};
use super::calculated::{self, Calculated};
use super::coded::{CHANGE_END, coded};
use super::columns::{Column, Path, Via};
use super::digests::hexadecimal;
use super::expr::Expr;
use super::filter::{Filter, Ranges, TextTest, TextTestKind};
use super::hits::Hits;
use super::numbers::{Number, number, times};
use super::rows::{Found, RowsError};
use super::text_tests::{OnText, Titles, Urls};
use super::visit_tests::{Changes, Expected};

/// The context from which tests are built, besides a plan's conditions.
#[derive(Clone, Copy)]
pub(super) struct Known<'a, 'r, 'h> {
    pub(super) target: Target,
    pub(super) archive: &'a ArchiveRows<'r>,
    pub(super) hits: &'h Hits<'h>,
    /// The pages of each site, if available.
    pub(super) by_site: Option<&'a BySite>,
}

/// Pages are read one by one if they are at most one in `FEW_SHARE` of all, or at most `FEW_MIN`.
const FEW_SHARE: usize = 16;
const FEW_MIN: usize = 1 << 12;
/// Maximum number of sites whose pages are looked up in `BySite`; with more, the site column is scanned.
const SITES_MAX: usize = 64;

/// A condition on stored values.
#[derive(Debug)]
pub(super) enum Test<'a> {
    All(Vec<Test<'a>>),
    Any(Vec<Test<'a>>),
    Not(Box<Test<'a>>),
    /// A number within ranges.
    Between(Number, Vec<(Bound<f64>, Bound<f64>)>),
    /// A text stored as a number: for each number whether the test holds, and whether it holds for numbers beyond
    /// these.
    Of(Stored, Vec<bool>, bool),
    /// Like `Of` for a single number, but faster.
    Is(Stored, u64),
    /// One of these pages, sorted by id, which searches found.
    Found(Arc<Vec<UrlId>>),
    /// One of these pages, sorted by id: the pages of some sites (with their column), or the pages at some URLs
    /// (without).
    Among(Vec<UrlId>, Option<Stored>),
    /// One of these pages, sorted by id, which a pass over all pages found.
    Passed(Vec<UrlId>),
    /// For each row, whether the test holds; found by a pass over all pages.
    Each(Vec<bool>),
    /// A condition on the digests of captures.
    Digests(&'a State, OnText),
    /// For each page, whether the test holds for its captures.
    OfPages(&'a State, Vec<bool>),
    Changes(Changes<'a>),
    Calculated(Calculated),
    Answered(Answered<'a>),
    Urls(Urls<'a>),
    Titles(Titles<'a>),
}

impl<'a> Test<'a> {
    /// The test of a filter, or of some of its conjuncts, and whether it is equivalent to the filter; `None` if columns
    /// say nothing about it.
    pub(super) fn of(filter: &Filter, known: Known<'a, '_, '_>) -> Found<(Option<Self>, bool)> {
        let Filter::All(parts) = filter else {
            let of_pages = known.target == Target::Pages;
            if of_pages && let Some((each, is_exact)) = known.archive.pages_structured(filter, known.hits)? {
                return Ok((Some(Self::Each(each)), is_exact));
            }
            let test = Self::exact(filter, known)?;
            let is_exact = test.is_some();
            return Ok((test, is_exact));
        };
        // A pass over all pages is wasted if other tests leave only a few, so the most expensive come last.
        let mut parts: Vec<(u8, &Filter)> =
            parts.iter().map(|part| (pass(part, known.target), part)).collect();
        parts.sort_by_key(|(pass, _)| *pass);
        let few = Self::few(known.archive.state);
        let (mut tests, mut is_exact) = (Vec::new(), true);
        for (pass, part) in parts {
            if pass > 0 && tests.iter().any(|test: &Self| test.leaves(few)) {
                is_exact = false;
                break;
            }
            let (test, is_exact_of_part) = Self::of(part, known)?;
            tests.extend(test);
            is_exact &= is_exact_of_part;
        }
        tests.sort_by_key(Self::turn);
        is_exact |= tests.iter().any(|test| test.leaves(0));
        Ok((Some(tests).filter(|tests| !tests.is_empty()).map(Self::All), is_exact))
    }

    /// Evaluation order within a conjunction: tests that leave few pages come first, so that most blocks are skipped;
    /// texts are read last, only for the rows left.
    fn turn(&self) -> u8 {
        match self {
            Self::Found(_) | Self::Among(..) | Self::Passed(_) => 0,
            Self::All(tests) => tests.first().map_or(1, Self::turn),
            Self::Any(_) | Self::Not(_) | Self::Between(..) | Self::Of(..) | Self::Is(..) | Self::Each(_) => {
                1
            }
            Self::Changes(_) | Self::Titles(_) | Self::Calculated(_) => 2,
            Self::OfPages(..) | Self::Digests(..) | Self::Answered(_) => 2,
            Self::Urls(_) => 3,
        }
    }

    /// Reads the titles that the test needs for all pages, unless other tests leave only a few of these.
    pub(super) fn prepare(&mut self) -> Found<()> {
        match self {
            Self::All(tests) if tests.first().is_some_and(|test| test.turn() == 0) => Ok(()),
            Self::All(tests) | Self::Any(tests) => tests.iter_mut().try_for_each(Self::prepare),
            Self::Not(test) => test.prepare(),
            Self::Titles(titles) => Ok(titles.read_all()?),
            _ => Ok(()),
        }
    }

    /// The columns that the test reads; `None` for URLs.
    pub(super) fn columns(&self) -> Vec<Option<Stored>> {
        match self {
            Self::All(tests) | Self::Any(tests) => tests.iter().flat_map(Self::columns).collect(),
            Self::Not(test) => test.columns(),
            Self::Between(Number { column, .. }, _) | Self::Of(column, ..) | Self::Is(column, _) => {
                vec![Some(*column)]
            }
            Self::Among(_, column) => vec![*column],
            Self::Titles(_) => vec![Some(Stored::Title)],
            Self::Urls(_) => vec![None],
            Self::Changes(changes) => changes.candidates.columns(),
            Self::Calculated(calculated) => calculated.columns().map(Some).collect(),
            Self::Answered(answered) => answered.columns().map(Some).collect(),
            Self::Found(_) | Self::Passed(_) | Self::Each(_) => Vec::new(),
            Self::OfPages(..) | Self::Digests(..) => Vec::new(),
        }
    }

    /// Upper bound on the number of matching pages, if searches limit it.
    pub(super) fn most(&self) -> Option<usize> {
        match self {
            Self::All(tests) => tests.iter().filter_map(Self::most).min(),
            Self::Any(tests) => tests.iter().map(Self::most).sum(),
            Self::Found(pages) => Some(pages.len()),
            _ => None,
        }
    }

    /// Whether the test is known to hold for at most `few` pages, without reading columns.
    fn leaves(&self, few: usize) -> bool {
        match self {
            Self::All(tests) => tests.iter().any(|test| test.leaves(few)),
            Self::Any(tests) => tests.iter().all(|test| test.leaves(few)),
            Self::Found(pages) => pages.len() <= few,
            Self::Among(pages, _) | Self::Passed(pages) => pages.len() <= few,
            _ => false,
        }
    }

    /// How many pages count as few, compared to all pages.
    fn few(state: &State) -> usize {
        (state.url_count() as usize / FEW_SHARE).max(FEW_MIN)
    }

    /// The test equivalent to a filter, if there is one.
    fn exact(filter: &Filter, known: Known<'a, '_, '_>) -> Found<Option<Self>> {
        if known.target == Target::Pages
            && let Some(test) = Expected::of(filter)
        {
            return Ok(Some(Self::Passed(known.archive.pages_expected(test)?)));
        }
        let each = |parts: &[Filter]| -> Found<Option<Vec<Self>>> {
            parts.iter().map(|part| Self::exact(part, known)).collect()
        };
        let direct = match filter {
            Filter::All(_) => match Self::of(filter, known)? {
                (test, true) => Some(test.unwrap_or(Self::All(Vec::new()))),
                _ => None,
            },
            Filter::Any(parts) => each(parts)?.map(Self::Any),
            Filter::Not(part) => Self::exact(part, known)?.map(|test| Self::Not(Box::new(test))),
            Filter::Number(expr, ranges) => plain(expr)
                .and_then(|column| number(column, known.target))
                .map(|number| Self::Between(number, ranges.0.clone())),
            Filter::Time(expr, Ranges(ranges)) => plain(expr).and_then(times).map(|times| {
                let ranges = ranges.iter().map(|(from, to)| (times.start(*from), times.end(*to)));
                Self::Between(times.0, ranges.collect())
            }),
            Filter::Text(expr, test) => match plain(expr) {
                Some(column) => Self::text(column, test, known)?,
                None => None,
            },
            Filter::Known(expr) => match plain(expr) {
                Some(column) => Self::is_known(column, known)?,
                None => None,
            },
            Filter::Hit(search) if known.target == Target::Pages => {
                known.hits.found(*search).map(|found| Self::Found(Arc::clone(found)))
            }
            Filter::Changed(from, until) if known.target == Target::Pages => {
                Self::changed_since(*from).map(|candidates| {
                    let (state, candidates) = (known.archive.state, Box::new(candidates));
                    Self::Changes(Changes { state, candidates, from: *from, until: *until })
                })
            }
            Filter::Compare { .. } | Filter::Hit(_) | Filter::Some(..) | Filter::Changed(..) => None,
        };
        if direct.is_some() { Ok(direct) } else { calculated::test(filter, known) }
    }

    /// A test for pages that have changed, and did so at this time or later.
    fn changed_since(from: Option<Instant>) -> Option<Self> {
        let versions = number(Column::Versions, Target::Pages)?;
        let versions = Self::Between(versions, vec![(Bound::Included(2.0), Bound::Unbounded)]);
        let changed = times(Column::Changed)?;
        // Times are stored in seconds.
        let from = from.map_or(Bound::Unbounded, |from| Bound::Included(from.timestamp() as f64));
        Some(Self::All(vec![versions, Self::Between(changed.0, vec![(from, Bound::Unbounded)])]))
    }

    /// A test for rows that have a value in a field.
    fn is_known(column: Column, known: Known<'a, '_, '_>) -> Found<Option<Self>> {
        let number = number(column, known.target).or_else(|| times(column).map(|times| times.0));
        if let Some(number) = number {
            let unknown = number.zero_is_unknown.then_some(Self::Is(number.column, 0));
            return Ok(Some(unknown.map_or(Self::All(Vec::new()), |unknown| Self::Not(Box::new(unknown)))));
        }
        // An empty text counts as unknown.
        let is_empty = TextTest { kind: TextTestKind::Is(vec![String::new()]), folds_case: false };
        Ok(Self::text(column, &is_empty, known)?.map(|is_empty| Self::Not(Box::new(is_empty))))
    }

    pub(super) fn text(column: Column, test: &TextTest, known: Known<'a, '_, '_>) -> Found<Option<Self>> {
        let (state, of_pages) = (known.archive.state, known.target == Target::Pages);
        match column {
            Column::Via | Column::Redirect if of_pages => {
                return Ok(known.archive.pages_led(column, test)?.map(Self::Each));
            }
            Column::Software => return known.archive.rows_written_by(known.target, test),
            Column::Url if !of_pages => {
                return Ok(known.archive.pages_led(column, test)?.map(|are| Self::OfPages(state, are)));
            }
            Column::Url => {
                let urls = Urls { state, test: OnText::new(column, test.clone()) };
                if let Some(named) = urls.named()? {
                    return Ok(Some(Self::Among(named, None)));
                }
                let host = test.host().map(|host| TextTestKind::Is(vec![host]));
                let host = host.map(|kind| TextTest { kind, folds_case: true });
                let of_host = host.map(|host| Self::text(Column::Host, &host, known)).transpose()?.flatten();
                return Ok(Some(match of_host {
                    Some(of_host) => Self::All(vec![of_host, Self::Urls(urls)]),
                    None => Self::Urls(urls),
                }));
            }
            Column::Title => {
                return Ok(Some(Self::Titles(Titles::new(state, OnText::new(column, test.clone())))));
            }
            _ => {}
        }
        let holds = |text: Option<&str>| test.holds_of(text, Some(column));
        // Names of hosts and domains are in lower case, and so are the wanted texts.
        let (stored, are) = if column == Column::Site
            && let TextTestKind::Is(wanted) = &test.kind
            && !matches!(known.archive.pages.credits().rules().sites, SiteRule::Path(_))
        {
            let mut are = vec![false; state.site_count() as usize];
            for name in wanted {
                let site = state.find_site(name)?.and_then(|site| are.get_mut(site.index()));
                site.into_iter().for_each(|is| *is = true);
            }
            (Stored::Site, are)
        } else {
            let Some(coded) = coded(column, known, holds)? else { return Ok(None) };
            coded
        };
        Self::of_numbers(stored, are, holds(None), known).map(Some)
    }

    /// A test of a value stored as a number: for each number whether the test holds, and whether it holds for other
    /// numbers.
    pub(super) fn of_numbers(
        stored: Stored,
        are: Vec<bool>,
        unknown: bool,
        known: Known<'a, '_, '_>,
    ) -> Found<Self> {
        let wanted = || (0_u32..).zip(&are).filter(|(_, is)| **is).map(|(number, _)| number);
        let of_pages = known.target == Target::Pages;
        let among = if of_pages && !unknown { Self::of_sites(stored, wanted(), known)? } else { None };
        let test = match (wanted().next(), wanted().nth(1)) {
            (Some(only), None) if !unknown => Self::Is(stored, only.into()),
            _ => Self::Of(stored, are, unknown),
        };
        Ok(match among {
            Some(among) if stored == Stored::Site => among,
            Some(among) => Self::All(vec![among, test]),
            None => test,
        })
    }

    /// The pages of some sites, or of the sites of some hosts, if there are few of them and `BySite` has their rows.
    fn of_sites(
        stored: Stored,
        wanted: impl Iterator<Item = u32>,
        known: Known<'a, '_, '_>,
    ) -> Found<Option<Self>> {
        let (state, rules) = (known.archive.state, known.archive.pages.credits().rules());
        let is_site_of_host = !matches!(rules.sites, SiteRule::Path(_));
        let Some(by_site) = known.by_site else { return Ok(None) };
        let wanted: Vec<u32> = wanted.take(SITES_MAX + 1).collect();
        let mut sites: Vec<SiteId> = match stored {
            _ if wanted.len() > SITES_MAX => return Ok(None),
            Stored::Site => wanted.into_iter().map(SiteId).collect(),
            Stored::Host if is_site_of_host => {
                let sites = wanted.into_iter().map(|host| state.host(HostId(host)).map(|host| host.site));
                sites.collect::<Result<_, _>>()?
            }
            _ => return Ok(None),
        };
        sites.sort_unstable();
        sites.dedup();
        let most = Self::few(state);
        let mut among = Vec::new();
        for site in sites {
            let Some(mut pages) = by_site.pages(site, most - among.len())? else { return Ok(None) };
            among.append(&mut pages);
        }
        among.sort_unstable();
        Ok(Some(Self::Among(among, Some(Stored::Site))))
    }

    /// The rows of a block that pass the test.
    pub(super) fn rows(&self, prepared: &Prepared, block: u32) -> Found<Rows> {
        self.rows_among(prepared, block, &Rows::All)
    }

    /// Like `rows`; the result is unspecified for rows outside `among`.
    pub(super) fn rows_among(&self, prepared: &Prepared, block: u32, among: &Rows) -> Found<Rows> {
        Ok(match self {
            Self::All(tests) => tests.iter().try_fold(Rows::All, |rows, test| {
                let rest = if matches!(rows, Rows::Some(_) | Rows::Few(..)) { &rows } else { among };
                Ok::<_, RowsError>(match &rows {
                    Rows::None => Rows::None,
                    _ => {
                        let others = test.rows_among(prepared, block, rest)?;
                        rows.and(others)
                    }
                })
            })?,
            Self::Any(tests) => tests.iter().try_fold(Rows::None, |rows, test| {
                Ok::<_, RowsError>(match &rows {
                    Rows::All => Rows::All,
                    _ => rows.or(test.rows_among(prepared, block, among)?),
                })
            })?,
            Self::Not(test) => !test.rows_among(prepared, block, among)?,
            Self::Between(number, ranges) => number.between(ranges, (prepared, block), among)?,
            Self::Is(column, wanted) => {
                let bounds = prepared.bounds(block, *column);
                match bounds.contains(wanted) {
                    false => Rows::None,
                    true if bounds.start() == bounds.end() => Rows::All,
                    true => Rows::passing((prepared, block), *column, among, |value| value == *wanted)?,
                }
            }
            Self::Found(pages) => Rows::of_found(prepared.ids(block), pages),
            Self::Among(pages, _) | Self::Passed(pages) => Rows::of_found(prepared.ids(block), pages),
            Self::Each(are) => {
                let ids = prepared.ids(block);
                Rows::of(are.get(ids.start as usize..ids.end as usize).unwrap_or_default().to_vec())
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
            Self::Changes(changes) => changes.rows(prepared, block, among)?,
            Self::Calculated(calculated) => calculated.rows(prepared, block, among)?,
            Self::Answered(answered) => answered.rows(prepared, block, among)?,
            Self::Urls(urls) => urls.rows(prepared.ids(block), among)?,
            Self::Titles(titles) => titles.rows(prepared, block, among)?,
            Self::Of(column, are, otherwise) => {
                let is = |value: u64| are.get(value as usize).copied().unwrap_or(*otherwise);
                let bounds = prepared.bounds(block, *column);
                if bounds.start() == bounds.end() {
                    if is(*bounds.start()) { Rows::All } else { Rows::None }
                } else {
                    Rows::passing((prepared, block), *column, among, is)?
                }
            }
        })
    }
}

/// The captures of a block for which `holds` is true; the result is unspecified for rows outside `among`.
fn captures_that(
    state: &State,
    ids: Range<u32>,
    among: &Rows,
    holds: impl Fn(&Capture) -> bool,
) -> Found<Rows> {
    let Some(rows) = among.few() else {
        let captures = state.captures_from(CaptureId(ids.start)).take(ids.len());
        let each = captures.map(|found| found.map(|(_, capture)| holds(&capture)));
        return Ok(Rows::of(each.collect::<Result<_, _>>()?));
    };
    let captures: Vec<CaptureId> = rows.iter().map(|row| CaptureId(ids.start + row)).collect();
    let captures = state.captures_of(&captures)?;
    let holding = rows.iter().zip(&captures).filter(|(_, capture)| holds(capture));
    Ok(Rows::of(flags(holding.map(|(row, _)| *row), ids.len())))
}

/// Relative cost of the pass over all pages that a condition needs; 0 if it needs none.
fn pass(filter: &Filter, target: Target) -> u8 {
    match Expected::of(filter).filter(|_| target == Target::Pages) {
        Some(Expected::Rate(_) | Expected::Freshness(_)) => 1,
        Some(Expected::Due(_) | Expected::EverDue) => 3,
        None if filter.has(needs_pass) => 2,
        None => 0,
    }
}

/// Whether a condition on this expression needs a pass over all pages.
fn needs_pass(expr: &Expr) -> bool {
    match expr {
        Expr::Field(Path { via: Some(via), .. }) => *via == Via::Page,
        Expr::Field(Path { via: None, column }) => {
            matches!(column, Column::Via | Column::Redirect | Column::Digest | Column::Software)
                || column.is_of_structure()
                || column.is_expected()
        }
        _ => false,
    }
}

/// The row's own field, if the expression is nothing else.
pub(super) fn plain(expr: &Expr) -> Option<Column> {
    match expr {
        Expr::Field(Path { via: None, column }) => Some(*column),
        _ => None,
    }
}

/// The test for captures that are versions.
pub(super) fn is_version() -> Test<'static> {
    let bytes = u64::from(capture_flags::BYTES_CHANGED);
    Test::Of(Stored::Change, (0..CHANGE_END).map(|flags| flags & bytes != 0).collect(), false)
}
