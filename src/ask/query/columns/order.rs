//! The first rows in the order of calculations or texts, found without building rows: keys are computed in parallel
//! from columns, tables, or a pass over URLs or titles.

use std::cmp::Ordering;

use archive_books::prepared::Column as Stored;
use archive_grammar::{Direction, QueryRows};
use archive_storage::State;
use rayon::prelude::*;

use crate::query::columns::archive::ArchiveRows;
use crate::query::columns::context::FilterContext;
use crate::query::columns::first::{Columnar, FirstRows, first_of, merged, wanted};
use crate::query::columns::row_set::RowSet;
use crate::query::columns::sources::Sources;
use crate::query::columns::texts::{BLOCKS_TOGETHER, split};
use crate::query::language::{
    Column, FieldPath, Filter, Found, Given, Plan, PlannedExpr, Subject, Value, by_texts,
};
use crate::query::rows::Top;

/// The sort keys of a row, and its id.
type KeyedId = (Vec<Value>, u32);

type ByKeys<'a> = Box<dyn Fn(&KeyedId, &KeyedId) -> Ordering + Send + 'a>;

/// The first rows in the order of a plan's keys.
pub(crate) struct KeyOrder<'p, 'a> {
    plan: &'p Plan,
    limit: usize,
    state: &'a State,
    values: KeySources<'a>,
}

enum KeySources<'a> {
    Columns(Sources<'a>),
    /// URLs, in addition to columns; titles cannot be combined with others.
    Urls(Sources<'a>),
    Titles,
}

impl<'p, 'a> KeyOrder<'p, 'a> {
    /// The first rows that a plan wants, if columns, tables or a pass provide everything that its order needs.
    pub(crate) fn of(plan: &'p Plan, known: FilterContext<'a, '_, '_>) -> Found<Option<Self>> {
        let is_of_columns = !matches!(plan.target, QueryRows::Hosts | QueryRows::Links);
        let Some(limit) = wanted(plan).filter(|_| is_of_columns) else { return Ok(None) };
        let Some(mut fields) = PlannedExpr::fields(plan.order.iter().map(|(expr, _)| expr)) else {
            return Ok(None);
        };
        let of_pages = known.target == QueryRows::Pages;
        if of_pages && fields.iter().any(|path| path.via.is_none() && path.column.is_decided()) {
            let apart = known.archive.decided_apart(&Filter::All(Vec::new()))?;
            if apart.is_none_or(|(pages, _)| !pages.is_empty()) {
                return Ok(None);
            }
        }
        let url = FieldPath::from(Column::Url);
        let values = if of_pages && fields.iter().all(|field| *field == FieldPath::from(Column::Title)) {
            KeySources::Titles
        } else {
            let all = fields.len();
            fields.retain(|field| !of_pages || *field != url);
            match Sources::of(&fields, known)? {
                Some(sources) if fields.len() < all => KeySources::Urls(sources),
                Some(sources) => KeySources::Columns(sources),
                None => return Ok(None),
            }
        };
        Ok(Some(Self { plan, limit, state: known.archive.state, values }))
    }

    /// The columns that are read in addition to those of conditions.
    pub(crate) fn columns(&self) -> Vec<Stored> {
        match &self.values {
            KeySources::Columns(sources) | KeySources::Urls(sources) => sources.columns().collect(),
            KeySources::Titles => vec![Stored::Title],
        }
    }

    /// Returns the ids of the first rows, and the number of matching rows; `None` if titles need more than the query's
    /// memory.
    pub(crate) fn first(
        &self,
        columnar: &Columnar<'_>,
        archive: &ArchiveRows<'_>,
    ) -> Found<Option<(Vec<u32>, u64)>> {
        let found = match &self.values {
            KeySources::Titles => self.by_titles(columnar)?,
            KeySources::Columns(sources) | KeySources::Urls(sources) => {
                sources.prepare(archive)?;
                let add = |first, block| self.add(first, columnar, block);
                Some(first_of(0..columnar.prepared.blocks(), || self.none(), add)?)
            }
        };
        Ok(found.map(|(top, count)| (top.into_sorted().into_iter().map(|(_, id)| id).collect(), count)))
    }

    fn none(&self) -> FirstRows<KeyedId, ByKeys<'_>> {
        let order =
            |left: &KeyedId, right: &KeyedId| self.plan.by_keys(&left.0, &right.0).then(left.1.cmp(&right.1));
        (Top::new(Some(self.limit), Box::new(order)), 0)
    }

    /// Adds the rows of a block.
    fn add<'s>(
        &'s self,
        (mut top, count): FirstRows<KeyedId, ByKeys<'s>>,
        columnar: &Columnar<'_>,
        block: u32,
    ) -> Found<FirstRows<KeyedId, ByKeys<'s>>> {
        let (rows, ids) = (columnar.rows(block)?, columnar.prepared.ids(block));
        let (KeySources::Columns(sources) | KeySources::Urls(sources)) = &self.values else {
            return Ok((top, count));
        };
        if matches!(rows, RowSet::None) {
            return Ok((top, count));
        }
        let values = sources.read(columnar.prepared, block, &rows)?;
        let mut push = |place: usize, row: u32, url: Option<&str>| {
            if url.is_some_and(|url| self.is_late(&top, Column::Url, url)) {
                return Ok(());
            }
            let value = |path: FieldPath| match url {
                Some(url) if path == FieldPath::from(Column::Url) => url.into(),
                _ => values.of(place, path),
            };
            self.push(&mut top, &Given(value), ids.start + row)
        };
        if matches!(self.values, KeySources::Urls(_)) {
            let mut pushed = Ok(());
            self.state.scan_urls(ids.clone(), |id, url| {
                let row = id.0 - ids.start;
                if let Some(place) = rows.place(row).filter(|_| pushed.is_ok()) {
                    pushed = push(place, row, Some(url));
                }
                Ok(())
            })?;
            pushed?;
        } else {
            for (place, row) in rows.places(ids.len()).enumerate() {
                row.map_or(Ok(()), |row| push(place, row, None))?;
            }
        }
        Ok((top, count + rows.count(ids.len())))
    }

    /// Adds a row, unless its first key shows that it comes too late.
    fn push(&self, top: &mut Top<KeyedId, ByKeys<'_>>, row: &dyn Subject, id: u32) -> Found<()> {
        let mut exprs = self.plan.order.iter().map(|(expr, _)| expr);
        let mut keys = Vec::with_capacity(exprs.len());
        keys.extend(exprs.next().map(|expr| expr.value(row)).transpose()?);
        if top.last().is_some_and(|last| self.plan.by_keys(&keys, &last.0).is_gt()) {
            return Ok(());
        }
        for expr in exprs {
            keys.push(expr.value(row)?);
        }
        top.push((keys, id));
        Ok(())
    }

    /// Whether a text shows that its row comes too late, without copying the text.
    fn is_late(&self, top: &Top<KeyedId, ByKeys<'_>>, column: Column, text: &str) -> bool {
        let Some((PlannedExpr::Field(FieldPath { via: None, column: first }), direction)) =
            self.plan.order.first()
        else {
            return false;
        };
        let last = top.last().and_then(|(keys, _)| keys.first());
        let Some(Value::Text(last)) = last.filter(|_| *first == column) else { return false };
        match direction {
            Direction::Ascending => by_texts(text, last).is_gt(),
            Direction::Descending => by_texts(text, last).is_lt(),
        }
    }

    fn by_titles(&self, columnar: &Columnar<'_>) -> Found<Option<FirstRows<KeyedId, ByKeys<'_>>>> {
        let of_block = |block: u32| -> Found<Vec<(u64, u32)>> {
            let (rows, ids) = (columnar.rows(block)?, columnar.prepared.ids(block));
            if matches!(rows, RowSet::None) {
                return Ok(Vec::new());
            }
            let titles = rows.places(ids.len()).zip(columnar.values(block, Stored::Title, &rows)?);
            Ok(titles.filter_map(|(row, title)| Some((title, ids.start + row?))).collect())
        };
        let blocks = (0..columnar.prepared.blocks()).into_par_iter().map(of_block);
        let mut pages = blocks.collect::<Found<Vec<_>>>()?.concat();
        if size_of_val(pages.as_slice()) > columnar.running.limits.memory {
            return Ok(None);
        }
        // In the order of titles.
        pages.par_sort_unstable();
        let (untitled, titled) = pages.split_at(pages.partition_point(|(title, _)| *title == 0));
        let push =
            |(top, count): &mut FirstRows<KeyedId, ByKeys<'_>>, title: Option<&str>, id: u32| -> Found<()> {
                *count += 1;
                if title.is_some_and(|title| self.is_late(top, Column::Title, title)) {
                    return Ok(());
                }
                self.push(top, &Given(|_| title.into()), id)
            };
        let mut first = self.none();
        untitled.iter().try_for_each(|(_, id)| push(&mut first, None, *id))?;
        let blocks = self.state.title_blocks();
        let part = |mut first, part: u64| -> Found<FirstRows<KeyedId, ByKeys<'_>>> {
            columnar.running.check()?;
            let part = part * BLOCKS_TOGETHER..blocks.min((part + 1) * BLOCKS_TOGETHER);
            let place = |block: u64| titled.partition_point(|(title, _)| split(title - 1).0 < block);
            let mut own = titled.get(place(part.start)..place(part.end)).unwrap_or_default();
            let mut pushed = Ok(());
            self.state.scan_titles(part, |position, title| {
                while let Some(((wanted, id), rest)) = own.split_first()
                    && *wanted == position.0 + 1
                {
                    own = rest;
                    if pushed.is_ok() {
                        pushed = push(&mut first, Some(title), *id);
                    }
                }
            })?;
            pushed?;
            // Each position must be the start of a title.
            own.is_empty().then_some(first).ok_or_else(|| "a page has no title where its visit says".into())
        };
        let titled = first_of(0..blocks.div_ceil(BLOCKS_TOGETHER), || self.none(), part)?;
        Ok(Some(merged(first, titled)))
    }
}
