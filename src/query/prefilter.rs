//! Conditions that prepared columns can decide: they choose the pages for which rows are made at all.
//!
//! A test holds for every page for which its filter holds, and mostly for no other.

use std::ops::Bound;
use std::sync::Arc;

use archive_grammar::Target;
use archive_storage::{Capture, CaptureId, HostId, MimeId, SiteId, State, UrlId};

use super::Instant;
use super::archive_pages::page_type;
use super::block_rows::Rows;
use super::columns::{CAPTURE_KINDS, CHANGES, Column, Path, yes_no};
use super::expr::Expr;
use super::filter::{Filter, Ranges, TextTest, TextTestKind};
use super::hits::Hits;
use super::numbers::{Number, number, times};
use super::rows::{PageType, RowsError};
use super::text_tests::{Titles, Urls};
use super::visit_tests::Changes;
use crate::ledger::{Refusal, SiteRule, capture_flags, language, page_flags};
use crate::prepared::{self, BySite, Column as Stored, Pages, Prepared};

/// What tests are made from, besides a plan's conditions.
#[derive(Clone, Copy)]
pub(super) struct Known<'a, 'h> {
    pub(super) target: Target,
    pub(super) pages: &'a Pages<'a>,
    pub(super) hits: &'h Hits<'h>,
    /// The pages of each site, if that is known.
    pub(super) by_site: Option<&'a BySite>,
    /// The pages whose change rates are in some ranges, by rising number.
    pub(super) rated: &'h PagesRated<'h>,
    /// Whether a condition on a field that is a URL of a page holds for each page, if that is known.
    pub(super) led: &'h PagesLed<'h>,
}

type PagesRated<'a> = dyn Fn(&Ranges<f64>) -> Result<Vec<UrlId>, RowsError> + 'a;

type PagesLed<'a> = dyn Fn(Column, &TextTest) -> Result<Option<Vec<bool>>, RowsError> + 'a;

/// The pages of a site are looked up if they are at most one in so many of all, or at most so many.
const BY_SITE_SHARE: usize = 16;
const BY_SITE_MIN: usize = 1 << 12;
/// Sites whose pages are looked up; those of more are found by the column of sites.
const SITES_MAX: usize = 64;

/// A condition on stored values.
#[derive(Debug)]
pub(super) enum Test<'a> {
    All(Vec<Test<'a>>),
    Any(Vec<Test<'a>>),
    Not(Box<Test<'a>>),
    /// A number between bounds.
    Between(Number, Vec<(Bound<f64>, Bound<f64>)>),
    /// A text that is stored by its number: the numbers for which it holds, and whether it holds if no text is known.
    Of(Stored, Vec<bool>, bool),
    /// The same for a single number, which is faster.
    Is(Stored, u64),
    /// One of these pages, by rising number, which searches found.
    Found(Arc<Vec<UrlId>>),
    /// One of these pages, by rising number, which are those of some sites, or, without a column, have some URLs.
    Among(Vec<UrlId>, Option<Stored>),
    /// One of these pages, by rising number, whose change rates were worked out.
    Rated(Vec<UrlId>),
    /// Whether it holds for each page, which took a pass over all of them.
    Each(Vec<bool>),
    /// Whether it holds for captures of each page.
    OfPages(&'a State, Vec<bool>),
    Changes(Changes<'a>),
    Urls(Urls<'a>),
    Titles(Titles<'a>),
}

impl<'a> Test<'a> {
    /// The test of a filter, or of those of its parts that must all hold, and whether it is equivalent to the filter; none if
    /// columns say nothing about it.
    pub(super) fn of(filter: &Filter, known: Known<'a, '_>) -> Result<(Option<Self>, bool), RowsError> {
        let Filter::All(parts) = filter else {
            let test = Self::exact(filter, known)?;
            let is_exact = test.is_some();
            return Ok((test, is_exact));
        };
        // A pass over all pages is for nothing where others leave only a few.
        let (late, soon): (Vec<&Filter>, Vec<&Filter>) = parts.iter().partition(|part| part.has(needs_pass));
        let mut tests = soon.iter().map(|part| Self::of(part, known)).collect::<Result<Vec<_>, _>>()?;
        let are_few = tests.iter().flat_map(|(test, _)| test).any(|test| test.turn() == 0);
        if !are_few {
            tests.extend(late.iter().map(|part| Self::of(part, known)).collect::<Result<Vec<_>, _>>()?);
        }
        let is_exact = tests.iter().all(|(_, is_exact)| *is_exact) && tests.len() == parts.len();
        let mut tests: Vec<_> = tests.into_iter().filter_map(|(test, _)| test).collect();
        tests.sort_by_key(Self::turn);
        let holds_for_none = tests.first().is_some_and(Self::holds_for_none);
        Ok((Some(tests).filter(|tests| !tests.is_empty()).map(Self::All), is_exact || holds_for_none))
    }

    /// Its turn among tests that must all hold: after those of a few pages nothing else is read of most blocks, and texts are read
    /// of what the others leave.
    fn turn(&self) -> u8 {
        match self {
            Self::Found(_) | Self::Among(..) | Self::Rated(_) => 0,
            Self::All(tests) => tests.first().map_or(1, Self::turn),
            Self::Any(_) | Self::Not(_) | Self::Between(..) | Self::Of(..) | Self::Is(..) | Self::Each(_) => {
                1
            }
            Self::Changes(_) | Self::Titles(_) | Self::OfPages(..) => 2,
            Self::Urls(_) => 3,
        }
    }

    /// Reads the texts that it needs of all pages, unless other tests leave only a few of these.
    pub(super) fn prepare(&mut self) -> Result<(), RowsError> {
        match self {
            Self::All(tests) if tests.first().is_some_and(|test| test.turn() == 0) => Ok(()),
            Self::All(tests) | Self::Any(tests) => tests.iter_mut().try_for_each(Self::prepare),
            Self::Not(test) => test.prepare(),
            Self::Titles(titles) => Ok(titles.read_all()?),
            _ => Ok(()),
        }
    }

    fn holds_for_none(&self) -> bool {
        match self {
            Self::Found(pages) => pages.is_empty(),
            Self::Among(pages, _) | Self::Rated(pages) => pages.is_empty(),
            _ => false,
        }
    }

    /// The columns that it reads; none for URLs.
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
            Self::Found(_) | Self::Rated(_) | Self::Each(_) | Self::OfPages(..) => Vec::new(),
        }
    }

    /// For how many pages at most it holds, if searches limit that.
    pub(super) fn most(&self) -> Option<usize> {
        match self {
            Self::All(tests) => tests.iter().filter_map(Self::most).min(),
            Self::Any(tests) => tests.iter().map(Self::most).sum(),
            Self::Found(pages) => Some(pages.len()),
            _ => None,
        }
    }

    /// The test that is equivalent to a filter.
    fn exact(filter: &Filter, known: Known<'a, '_>) -> Result<Option<Self>, RowsError> {
        let each = |parts: &[Filter]| -> Result<Option<Vec<Self>>, RowsError> {
            parts.iter().map(|part| Self::exact(part, known)).collect()
        };
        Ok(match filter {
            Filter::All(_) => match Self::of(filter, known)? {
                (test, true) => Some(test.unwrap_or(Self::All(Vec::new()))),
                _ => None,
            },
            Filter::Any(parts) => each(parts)?.map(Self::Any),
            Filter::Not(part) => Self::exact(part, known)?.map(|test| Self::Not(Box::new(test))),
            Filter::Number(expr, ranges)
                if known.target == Target::Pages && plain(expr) == Some(Column::ChangeRate) =>
            {
                Some(Self::Rated((known.rated)(ranges)?))
            }
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
                    let (state, candidates) = (known.pages.state(), Box::new(candidates));
                    Self::Changes(Changes { state, candidates, from: *from, until: *until })
                })
            }
            Filter::Compare { .. } | Filter::Hit(_) | Filter::Some(..) | Filter::Changed(..) => None,
        })
    }

    /// A test of pages that have changed, if they have, at this time or later.
    fn changed_since(from: Option<Instant>) -> Option<Self> {
        let versions = number(Column::Versions, Target::Pages)?;
        let versions = Self::Between(versions, vec![(Bound::Included(2.0), Bound::Unbounded)]);
        let changed = times(Column::Changed)?;
        // Seconds are stored.
        let from = from.map_or(Bound::Unbounded, |from| Bound::Included(from.timestamp() as f64));
        Some(Self::All(vec![versions, Self::Between(changed.0, vec![(from, Bound::Unbounded)])]))
    }

    /// Whether anything is known of a field.
    fn is_known(column: Column, known: Known<'a, '_>) -> Result<Option<Self>, RowsError> {
        let number = number(column, known.target).or_else(|| times(column).map(|times| times.0));
        if let Some(number) = number {
            let unknown = number.zero_is_unknown.then_some(Self::Is(number.column, 0));
            return Ok(Some(unknown.map_or(Self::All(Vec::new()), |unknown| Self::Not(Box::new(unknown)))));
        }
        // An empty text is the same as none.
        let is_empty = TextTest { kind: TextTestKind::Is(vec![String::new()]), folds_case: false };
        Ok(Self::text(column, &is_empty, known)?.map(|is_empty| Self::Not(Box::new(is_empty))))
    }

    fn text(column: Column, test: &TextTest, known: Known<'a, '_>) -> Result<Option<Self>, RowsError> {
        let (pages, of_pages) = (known.pages, known.target == Target::Pages);
        let state = pages.state();
        let holds = |text: Option<&str>| test.holds_of(text, Some(column));
        let (stored, are) = match column {
            Column::Via | Column::Redirect if of_pages => {
                return Ok((known.led)(column, test)?.map(Self::Each));
            }
            Column::Url if !of_pages => {
                return Ok((known.led)(column, test)?.map(|are| Self::OfPages(state, are)));
            }
            Column::Url => {
                let urls = Urls { state, test: test.clone() };
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
            Column::Title => return Ok(Some(Self::Titles(Titles::new(state, test.clone())))),
            Column::Seed => (Stored::Seed, [false, true].map(|is| holds(Some(yes_no(is)))).to_vec()),
            Column::Refusal => {
                let name = |code| Refusal::from_code(code).map(Refusal::name);
                (Stored::Refusal, (0..=page_flags::REFUSAL_MAX).map(|code| holds(name(code))).collect())
            }
            Column::Hop => {
                let name = |letter: u8| (letter > 0).then(|| char::from(letter).to_string());
                (Stored::Hop, (0..=u8::MAX).map(|letter| holds(name(letter).as_deref())).collect())
            }
            Column::Host => {
                let hosts = state.hosts().map(|host| host.map(|(_, name, _)| holds(Some(&name))));
                (Stored::Host, hosts.collect::<Result<_, _>>()?)
            }
            // Names of hosts and domains have small letters alone, as what is wanted has.
            Column::Site
                if let TextTestKind::Is(wanted) = &test.kind
                    && !matches!(pages.credits().rules().sites, SiteRule::Path(_)) =>
            {
                let mut are = vec![false; state.site_count() as usize];
                for name in wanted {
                    let site = state.find_site(name)?.and_then(|site| are.get_mut(site.index()));
                    site.into_iter().for_each(|is| *is = true);
                }
                (Stored::Site, are)
            }
            Column::Site => {
                let sites = state.sites().map(|site| site.map(|(_, name, _)| holds(Some(&name))));
                (Stored::Site, sites.collect::<Result<_, _>>()?)
            }
            Column::Type => {
                let name = |value| prepared::kind(value).map(page_type).map(PageType::name);
                (Stored::Kind, (0..prepared::KINDS_END).map(|value| holds(name(value))).collect())
            }
            Column::Kind => {
                let name = |value: u64| CAPTURE_KINDS.get((value as usize).checked_sub(1)?).copied();
                (Stored::Kind, (0..=CAPTURE_KINDS.len() as u64).map(|value| holds(name(value))).collect())
            }
            Column::Change => (Stored::Change, (0..CHANGE_END).map(|flags| holds(change(flags))).collect()),
            Column::Language => {
                let name = |number| language(state, number);
                (Stored::Language, (0..=u8::MAX).map(|number| holds(name(number).as_deref())).collect())
            }
            Column::ContentType => {
                // The first number is that of no type.
                let types = (1..).map(|id| state.mime(MimeId(id))).take_while(|mime| !mime.is_empty());
                let are = types.map(|mime| holds(Some(mime)));
                (Stored::Mime, std::iter::once(holds(None)).chain(are).collect())
            }
            _ => return Ok(None),
        };
        let unknown = holds(None);
        let wanted = || (0_u32..).zip(&are).filter(|(_, is)| **is).map(|(number, _)| number);
        let among = if of_pages && !unknown { Self::of_sites(stored, wanted(), known)? } else { None };
        let test = match (wanted().next(), wanted().nth(1)) {
            (Some(only), None) if !unknown => Self::Is(stored, only.into()),
            _ => Self::Of(stored, are, unknown),
        };
        Ok(Some(match among {
            Some(among) if stored == Stored::Site => among,
            Some(among) => Self::All(vec![among, test]),
            None => test,
        }))
    }

    /// The pages of some sites, or of the sites of some hosts, if they are few beside all others and it is known where they lie.
    fn of_sites(
        stored: Stored,
        wanted: impl Iterator<Item = u32>,
        known: Known<'a, '_>,
    ) -> Result<Option<Self>, RowsError> {
        let (state, rules) = (known.pages.state(), known.pages.credits().rules());
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
        let most = (state.url_count() as usize / BY_SITE_SHARE).max(BY_SITE_MIN);
        let mut among = Vec::new();
        for site in sites {
            let Some(mut pages) = by_site.pages(site, most - among.len())? else { return Ok(None) };
            among.append(&mut pages);
        }
        among.sort_unstable();
        Ok(Some(Self::Among(among, Some(Stored::Site))))
    }

    /// The rows of a block for which it holds.
    pub(super) fn rows(&self, prepared: &Prepared, block: u32) -> Result<Rows, RowsError> {
        self.rows_among(prepared, block, &Rows::All)
    }

    /// The same; what it says of rows that are not among some may be wrong.
    pub(super) fn rows_among(
        &self,
        prepared: &Prepared,
        block: u32,
        among: &Rows,
    ) -> Result<Rows, RowsError> {
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
            Self::Among(pages, _) | Self::Rated(pages) => Rows::of_found(prepared.ids(block), pages),
            Self::Each(are) => {
                let ids = prepared.ids(block);
                Rows::of(are.get(ids.start as usize..ids.end as usize).unwrap_or_default().to_vec())
            }
            Self::OfPages(state, are) => {
                let ids: Vec<CaptureId> = prepared.ids(block).map(CaptureId).collect();
                let captures = state.captures_of(&ids)?;
                let holds = |capture: &Capture| are.get(capture.url.index()).copied().unwrap_or_default();
                Rows::of(captures.iter().map(holds).collect())
            }
            Self::Changes(changes) => changes.rows(prepared, block, among)?,
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

/// Whether a condition on it takes a pass over all pages.
fn needs_pass(expr: &Expr) -> bool {
    matches!(plain(expr), Some(Column::Via | Column::Redirect))
}

/// The field of the row itself that a calculation is.
pub(super) fn plain(expr: &Expr) -> Option<Column> {
    match expr {
        Expr::Field(Path { via: None, column }) => Some(*column),
        _ => None,
    }
}

/// Values of [`Stored::Change`] are below this.
pub(super) const CHANGE_END: u64 = 4;

/// What such a value means.
fn change(flags: u64) -> Option<&'static str> {
    let [content, bytes] = CHANGES;
    let has = |flag: u8| flags & u64::from(flag) != 0;
    match has(capture_flags::CONTENT_CHANGED) {
        true => Some(content),
        false => has(capture_flags::BYTES_CHANGED).then_some(bytes),
    }
}

/// The test of captures that are versions.
pub(super) fn is_version() -> Test<'static> {
    let bytes = u64::from(capture_flags::BYTES_CHANGED);
    Test::Of(Stored::Change, (0..CHANGE_END).map(|flags| flags & bytes != 0).collect(), false)
}
