//! Finds the filter on columns that is equivalent to a condition, or weaker.

use std::ops::Bound;
use std::sync::Arc;

use archive_books::ledger::{SiteRule, capture_flags};
use archive_books::prepared::Column as Stored;
use archive_grammar::QueryRows;
use archive_storage::{HostId, SiteId, UrlId};

use crate::query::columns::answers;
use crate::query::columns::answers::AnswerFilter;
use crate::query::columns::codes::{CHANGE_END, coded};
use crate::query::columns::context::FilterContext;
use crate::query::columns::filter::{Coded, ColumnFilter, FoundBy};
use crate::query::columns::numbers::{compared, number, times};
use crate::query::columns::sources::{Calculated, Sources};
use crate::query::columns::texts::{OnText, Titles, Urls};
use crate::query::columns::visits::Changes;
use crate::query::language::{
    Column, FieldPath, Filter, Found, Given, Instant, PlannedExpr, Ranges, TextTest, TextTestKind, Via,
};

/// Maximum number of sites whose pages are looked up in `BySite`; with more, the site column is scanned.
const SITES_MAX: usize = 64;

impl<'a> ColumnFilter<'a> {
    /// The filter that a condition implies, or some of its conjuncts do, and whether it is equivalent to the condition;
    /// `None` if columns say nothing about it.
    pub(crate) fn of(filter: &Filter, known: FilterContext<'a, '_, '_>) -> Found<(Option<Self>, bool)> {
        let Filter::All(parts) = filter else {
            let of_pages = known.target == QueryRows::Pages;
            if of_pages && let Some((each, is_exact)) = known.archive.pages_structured(filter, known.hits)? {
                return Ok((Some(Self::Each(each)), is_exact));
            }
            let test = Self::exact(filter, known)?;
            let is_exact = test.is_some();
            return Ok((test, is_exact));
        };
        // A pass over all pages is wasted if other filters leave only a few, so the most expensive come last.
        let mut parts: Vec<(u8, &Filter)> =
            parts.iter().map(|part| (pass(part, known.target), part)).collect();
        parts.sort_by_key(|(pass, _)| *pass);
        let few = Self::few(known.archive.state);
        let (mut filters, mut is_exact) = (Vec::new(), true);
        for (pass, part) in parts {
            if pass > 0 && filters.iter().any(|filter: &Self| filter.leaves(few)) {
                is_exact = false;
                break;
            }
            let (filter, is_exact_of_part) = Self::of(part, known)?;
            match filter {
                Some(Self::All(parts)) => filters.extend(parts),
                filter => filters.extend(filter),
            }
            is_exact &= is_exact_of_part;
        }
        filters.sort_by_key(Self::turn);
        is_exact |= filters.iter().any(|filter| filter.leaves(0));
        Ok((Some(filters).filter(|filters| !filters.is_empty()).map(Self::All), is_exact))
    }

    /// The filter equivalent to a condition, if there is one.
    fn exact(filter: &Filter, known: FilterContext<'a, '_, '_>) -> Found<Option<Self>> {
        let each = |parts: &[Filter]| -> Found<Option<Vec<Self>>> {
            parts.iter().map(|part| Self::exact(part, known)).collect()
        };
        let direct = match filter {
            Filter::All(_) => match Self::of(filter, known)? {
                (test, true) => Some(test.unwrap_or(Self::All(Vec::new()))),
                _ => None,
            },
            Filter::Any(parts) => each(parts)?.map(Self::Any),
            Filter::Not(part) => Self::exact(part, known)?.map(|part| Self::Not(Box::new(part))),
            Filter::Number(expr, ranges) => expr
                .own_field()
                .and_then(|column| number(column, known.target))
                .map(|number| Self::Between(number, ranges.0.clone())),
            Filter::Time(expr, Ranges(ranges)) => expr.own_field().and_then(times).map(|times| {
                let ranges = ranges.iter().map(|(from, to)| (times.start(*from), times.end(*to)));
                Self::Between(times.0, ranges.collect())
            }),
            Filter::Text(expr, test) => match expr.own_field() {
                Some(column) => Self::text(column, test, known)?,
                None => None,
            },
            Filter::Known(expr) => match expr.own_field() {
                Some(column) => Self::is_known(column, known)?,
                None => None,
            },
            Filter::Hit(search) if known.target == QueryRows::Pages => {
                known.hits.found(*search).map(|found| Self::Ids(Arc::clone(found), FoundBy::Search))
            }
            Filter::Changed(from, until) if known.target == QueryRows::Pages => {
                let changes = Changes { state: known.archive.state, from: *from, until: *until };
                changed_since(*from)
                    .map(|[versions, changed]| Self::All(vec![versions, changed, Self::Changes(changes)]))
            }
            Filter::Compare { .. } | Filter::Hit(_) | Filter::Some(..) | Filter::Changed(..) => None,
        };
        if direct.is_some() { Ok(direct) } else { Self::calculated(filter, known) }
    }

    /// The rows that have a value in a field.
    fn is_known(column: Column, known: FilterContext<'a, '_, '_>) -> Found<Option<Self>> {
        if let Some(number) = compared(column, known.target) {
            let unknown = Self::Coded(Coded::new(number.column, vec![true], false));
            return Ok(Some(match number.zero_is_unknown {
                true => Self::Not(Box::new(unknown)),
                false => Self::All(Vec::new()),
            }));
        }
        // An empty text counts as unknown.
        let is_empty = TextTest { kind: TextTestKind::Is(vec![String::new()]), folds_case: false };
        Ok(Self::text(column, &is_empty, known)?.map(|is_empty| Self::Not(Box::new(is_empty))))
    }

    pub(crate) fn text(
        column: Column,
        test: &TextTest,
        known: FilterContext<'a, '_, '_>,
    ) -> Found<Option<Self>> {
        let (state, target) = (known.archive.state, known.target);
        match column {
            Column::Via | Column::Redirect if target == QueryRows::Pages => {
                return Ok(known.archive.pages_led(column, test)?.map(Self::Each));
            }
            Column::Software => return known.archive.rows_written_by(target, test),
            Column::Url if target == QueryRows::Pages => {
                let urls = Urls { state, test: OnText::new(column, test.clone()) };
                if let Some(named) = urls.named()? {
                    return Ok(Some(Self::Ids(Arc::new(named), FoundBy::Names)));
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
        if target == QueryRows::Sites {
            return Ok(Some(Self::Each(are)));
        }
        Self::of_numbers(stored, are, holds(None), known).map(Some)
    }

    /// A filter on a value stored as a number: for each number whether it holds, and whether it holds for others.
    fn of_numbers(
        stored: Stored,
        are: Vec<bool>,
        otherwise: bool,
        known: FilterContext<'a, '_, '_>,
    ) -> Found<Self> {
        let among = match known.target {
            QueryRows::Pages if !otherwise => Self::of_sites(stored, &are, known)?,
            _ => None,
        };
        let coded = Self::Coded(Coded::new(stored, are, otherwise));
        Ok(match among {
            Some(among) if stored == Stored::Site => among,
            Some(among) => Self::All(vec![among, coded]),
            None => coded,
        })
    }

    /// The pages of some sites, or of the sites of some hosts, if there are few of them and `BySite` has their rows.
    fn of_sites(stored: Stored, are: &[bool], known: FilterContext<'a, '_, '_>) -> Found<Option<Self>> {
        let (state, rules) = (known.archive.state, known.archive.pages.credits().rules());
        let is_site_of_host = !matches!(rules.sites, SiteRule::Path(_));
        let Some(by_site) = known.by_site else { return Ok(None) };
        let wanted = (0_u32..).zip(are).filter(|(_, is)| **is).map(|(number, _)| number);
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
        Ok(Some(Self::Ids(Arc::new(among), FoundBy::Sites)))
    }

    /// The filter equivalent to a condition on calculations or several fields, if columns, tables and passes provide all
    /// values that it depends on.
    fn calculated(filter: &Filter, known: FilterContext<'a, '_, '_>) -> Found<Option<Self>> {
        if let Some(stored) = answers::column(filter) {
            if known.target == QueryRows::Pages && stored == Stored::Failure {
                // It is of the newest attempt, not of the newest content, whose number columns have.
                return Ok(None);
            }
            return Ok(AnswerFilter::of(filter, stored, known)?.map(Self::Answers));
        }
        let Some(fields) = filter.fields() else { return Ok(None) };
        let (archive, state) = (known.archive, known.archive.state);
        if known.target != QueryRows::Pages {
            let is_of_page =
                |path: &FieldPath| path.via == Some(Via::Page) || *path == FieldPath::from(Column::Url);
            return match fields.as_slice() {
                [FieldPath { via: None, column: Column::Digest }] => {
                    Ok(Some(Self::Digests(state, OnText(filter.clone()))))
                }
                fields if fields.iter().all(is_of_page) => {
                    let of_page = filter.with_fields(|path| FieldPath::from(path.column));
                    Ok(archive.pages_that(&of_page)?.map(|are| Self::OfPages(state, are)))
                }
                fields => Self::by_columns(filter, fields, known),
            };
        }
        if let [FieldPath { via: None, column }] = fields.as_slice() {
            let test = || OnText(filter.clone());
            match column {
                Column::Title => return Ok(Some(Self::Titles(Titles::new(state, test())))),
                Column::Url => return Ok(Some(Self::Urls(Urls { state, test: test() }))),
                Column::Digest => return archive.pages_with_digests(&test()),
                column if column.is_expected() => {
                    return Ok(Some(Self::Ids(
                        Arc::new(archive.pages_expected(*column, filter)?),
                        FoundBy::Pass,
                    )));
                }
                _ => {}
            }
        }
        if let Some((each, true)) = archive.pages_structured(filter, known.hits)? {
            return Ok(Some(Self::Each(each)));
        }
        let Some(test) = Self::by_columns(filter, &fields, known)? else { return Ok(None) };
        if !fields.iter().any(|path| path.via.is_none() && path.column.is_decided()) {
            return Ok(Some(test));
        }
        let Some((apart, holding)) = archive.decided_apart(filter)? else { return Ok(None) };
        if apart.is_empty() {
            return Ok(Some(test));
        }
        let ids = |pages: Vec<UrlId>| Self::Ids(Arc::new(pages), FoundBy::Pass);
        let others = Self::Not(Box::new(ids(apart)));
        Ok(Some(Self::Any(vec![Self::All(vec![test, others]), ids(holding)])))
    }

    fn by_columns(
        filter: &Filter,
        fields: &[FieldPath],
        known: FilterContext<'a, '_, '_>,
    ) -> Found<Option<Self>> {
        let Some(sources) = Sources::of(fields, known)? else { return Ok(None) };
        let Some((column, all)) = sources.table() else {
            sources.prepare(known.archive)?;
            return Ok(Some(Self::Calculated(Calculated { filter: filter.clone(), sources })));
        };
        // Evaluated once per host, for example.
        let holds = |number: u64| filter.holds(&Given(|path| sources.of_code(path, number)));
        let are = (0..all as u64).map(holds).collect::<Found<_>>()?;
        Self::of_numbers(column, are, holds(u64::MAX)?, known).map(Some)
    }
}

/// The captures that are versions.
pub(crate) fn is_version() -> ColumnFilter<'static> {
    let bytes = u64::from(capture_flags::BYTES_CHANGED);
    let are = (0..CHANGE_END).map(|flags| flags & bytes != 0).collect();
    ColumnFilter::Coded(Coded::new(Stored::Change, are, false))
}

/// Filters for the pages that have changed, and did so at this time or later.
fn changed_since<'a>(from: Option<Instant>) -> Option<[ColumnFilter<'a>; 2]> {
    let versions = number(Column::Versions, QueryRows::Pages)?;
    let changed = times(Column::Changed)?;
    // Times are stored in seconds.
    let from = from.map_or(Bound::Unbounded, |from| Bound::Included(from.timestamp() as f64));
    Some([
        ColumnFilter::Between(versions, vec![(Bound::Included(2.0), Bound::Unbounded)]),
        ColumnFilter::Between(changed.0, vec![(from, Bound::Unbounded)]),
    ])
}

/// Relative cost of the pass over all pages that a condition needs; 0 if it needs none.
fn pass(filter: &Filter, target: QueryRows) -> u8 {
    match filter.fields().as_deref() {
        Some([FieldPath { via: None, column: Column::NextVisit }]) if target == QueryRows::Pages => 3,
        Some([FieldPath { via: None, column }]) if target == QueryRows::Pages && column.is_expected() => 1,
        _ if filter.has(needs_pass) => 2,
        _ => 0,
    }
}

/// Whether a condition on this expression needs a pass over all pages.
fn needs_pass(expr: &PlannedExpr) -> bool {
    match expr {
        PlannedExpr::Field(FieldPath { via: Some(via), .. }) => *via == Via::Page,
        PlannedExpr::Field(FieldPath { via: None, column }) => {
            matches!(column, Column::Via | Column::Redirect | Column::Digest | Column::Software)
                || column.is_of_structure()
                || column.is_expected()
        }
        _ => false,
    }
}
