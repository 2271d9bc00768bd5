//! Conditions on calculations, on several fields, and on fields of related rows, evaluated without building rows: each
//! value comes from a column, from a table of what a column's numbers stand for, or from a pass over texts.

use std::sync::OnceLock;

use archive_books::prepared::{Column as Stored, Prepared};
use archive_grammar::Target;
use archive_storage::UrlId;

use super::answered::{self, Answered};
use super::archive::ArchiveRows;
use super::block_rows::Rows;
use super::coded::coded;
use super::columnar::compared;
use super::columns::{Column, Path, Via};
use super::expr::Subject;
use super::filter::Filter;
use super::numbers::Number;
use super::prefilter::{Known, Test};
use super::rows::Found;
use super::text_tests::{OnText, Titles, Urls};
use super::value::Value;
use super::visit_tests::ExpectedValues;

/// A column, and the value that each of its numbers stands for; the value of any other number is unknown.
pub(super) type Table = (Stored, Vec<Value>);

/// Pages sorted by id, and those of them that meet a condition.
pub(super) type Apart = (Vec<UrlId>, Vec<UrlId>);

/// Where the values of a field come from.
#[derive(Debug)]
enum Source {
    Number(Number),
    Table(Table),
    /// The estimates from a pass over all visits, once it was made.
    Expected(Column, OnceLock<ExpectedValues>),
}

impl Source {
    fn of(path: Path, known: Known<'_, '_, '_>) -> Found<Option<Self>> {
        let Path { via: None, column } = path else {
            return Ok(known.archive.table(path)?.map(Self::Table));
        };
        if let Some(number) = compared(column, known.target) {
            return Ok(Some(Self::Number(number)));
        }
        if column.is_expected() && known.target == Target::Pages {
            let bytes = known.archive.state.url_count() as usize * size_of::<u64>();
            let fits = bytes <= known.archive.running.limits.memory;
            return Ok(fits.then(|| Self::Expected(column, OnceLock::new())));
        }
        if column.is_decided() && known.target == Target::Pages {
            // Decisions on pages themselves are left to the caller.
            let of_host = Path { via: Some(Via::Host), column };
            return Ok(known.archive.table(of_host)?.map(Self::Table));
        }
        Ok(coded(column, known, |name| Value::from(name))?.map(Self::Table))
    }

    fn column(&self) -> Option<Stored> {
        match self {
            Self::Number(number) => Some(number.column),
            Self::Table((column, _)) => Some(*column),
            Self::Expected(..) => None,
        }
    }

    /// The stored values of some rows of a block.
    fn stored(&self, prepared: &Prepared, block: u32, rows: &Rows) -> Found<Vec<u64>> {
        let ids = prepared.ids(block);
        let Some(column) = self.column() else {
            let Self::Expected(_, values) = self else { return Ok(Vec::new()) };
            let of = |row: u32| values.get().map_or(f64::NAN, |values| values.of(UrlId(ids.start + row)));
            return Ok(rows.places(ids.len()).map(|row| row.map_or(f64::NAN, of).to_bits()).collect());
        };
        Ok(rows.values(prepared, block, column)?)
    }

    /// Converts a stored value.
    fn value(&self, stored: u64) -> Value {
        match self {
            Self::Number(number) if number.zero_is_unknown && stored == 0 => Value::Empty,
            Self::Number(number) => number.shown(stored),
            Self::Table((_, values)) => values.get(stored as usize).cloned().unwrap_or(Value::Empty),
            Self::Expected(_, values) => {
                values.get().map_or(Value::Empty, |values| values.shown(f64::from_bits(stored)))
            }
        }
    }
}

/// Where the values of several fields come from.
#[derive(Debug)]
pub(super) struct Sources(Vec<(Path, Source)>);

impl Sources {
    /// The sources of some fields, if columns and tables have them all.
    pub(super) fn of(fields: &[Path], known: Known<'_, '_, '_>) -> Found<Option<Self>> {
        let source = |path: &Path| Ok(Source::of(*path, known)?.map(|source| (*path, source)));
        Ok(fields.iter().map(source).collect::<Found<Option<_>>>()?.map(Self))
    }

    /// Makes the passes that the sources need.
    pub(super) fn prepare(&self, archive: &ArchiveRows<'_>) -> Found<()> {
        for (_, source) in &self.0 {
            if let Source::Expected(column, values) = source
                && values.get().is_none()
            {
                let found = archive.all_expected(*column)?;
                values.get_or_init(|| found);
            }
        }
        Ok(())
    }

    pub(super) fn columns(&self) -> impl Iterator<Item = Stored> + '_ {
        self.0.iter().filter_map(|(_, source)| source.column())
    }

    /// Reads the values of some rows of a block.
    pub(super) fn read(&self, prepared: &Prepared, block: u32, rows: &Rows) -> Found<BlockValues<'_>> {
        let mut values = Vec::with_capacity(self.0.len());
        for (path, source) in &self.0 {
            values.push((*path, source, source.stored(prepared, block, rows)?));
        }
        Ok(BlockValues(values))
    }

    /// The only column that all fields depend on, through tables, and the number of entries of its table.
    fn table(&self) -> Option<(Stored, usize)> {
        let (_, Source::Table((column, values))) = self.0.first()? else { return None };
        let is_alike =
            |(_, source): &(Path, Source)| matches!(source, Source::Table((own, _)) if own == column);
        self.0.iter().all(is_alike).then_some((*column, values.len()))
    }
}

/// The values of fields in a block.
pub(super) struct BlockValues<'a>(Vec<(Path, &'a Source, Vec<u64>)>);

impl BlockValues<'_> {
    /// The value of a field for the row at this position.
    pub(super) fn of(&self, place: usize, path: Path) -> Value {
        let found = self.0.iter().find(|(own, ..)| *own == path);
        let value =
            found.and_then(|(_, source, values)| values.get(place).map(|stored| source.value(*stored)));
        value.unwrap_or(Value::Empty)
    }
}

/// A condition that column values decide row by row.
#[derive(Debug)]
pub(super) struct Calculated {
    filter: Filter,
    sources: Sources,
}

/// The test equivalent to a condition, if columns, tables and passes provide all values that it depends on.
pub(super) fn test<'a>(filter: &Filter, known: Known<'a, '_, '_>) -> Found<Option<Test<'a>>> {
    if let Some(stored) = answered::column(filter) {
        if known.target == Target::Pages && stored == Stored::Failure {
            // It is of the newest attempt, not of the newest content, whose number columns have.
            return Ok(None);
        }
        return Ok(Answered::of(filter, stored, known)?.map(Test::Answered));
    }
    let Some(fields) = filter.fields() else { return Ok(None) };
    let (state, of_pages) = (known.archive.state, known.target == Target::Pages);
    let is_only = |column| fields == [Path::from(column)];
    if of_pages && is_only(Column::Title) {
        return Ok(Some(Test::Titles(Titles::new(state, OnText(filter.clone())))));
    }
    if of_pages && is_only(Column::Url) {
        return Ok(Some(Test::Urls(Urls { state, test: OnText(filter.clone()) })));
    }
    if of_pages && let Some((each, true)) = known.archive.pages_structured(filter, known.hits)? {
        return Ok(Some(Test::Each(each)));
    }
    if is_only(Column::Digest) {
        let test = OnText(filter.clone());
        return if of_pages {
            known.archive.pages_with_digests(&test)
        } else {
            Ok(Some(Test::Digests(state, test)))
        };
    }
    if of_pages && let [Path { via: None, column: Column::Named(index) }] = fields.as_slice() {
        return Ok(Some(Test::Each(known.archive.pages_numbered(*index, filter)?)));
    }
    let is_of_page = |path: &Path| path.via == Some(Via::Page) || *path == Path::from(Column::Url);
    if !of_pages && fields.iter().all(is_of_page) {
        let of_page = filter.with_fields(|path| Path::from(path.column));
        return Ok(known.archive.pages_that(&of_page)?.map(|are| Test::OfPages(state, are)));
    }
    let Some(test) = by_columns(filter, &fields, known)? else { return Ok(None) };
    if !of_pages || !fields.iter().any(|path| path.via.is_none() && path.column.is_decided()) {
        return Ok(Some(test));
    }
    let Some((apart, holding)) = known.archive.decided_apart(filter)? else { return Ok(None) };
    if apart.is_empty() {
        return Ok(Some(test));
    }
    let others = Test::Not(Box::new(Test::Passed(apart)));
    Ok(Some(Test::Any(vec![Test::All(vec![test, others]), Test::Passed(holding)])))
}

fn by_columns<'a>(filter: &Filter, fields: &[Path], known: Known<'a, '_, '_>) -> Found<Option<Test<'a>>> {
    let Some(sources) = Sources::of(fields, known)? else { return Ok(None) };
    let Some((column, all)) = sources.table() else {
        sources.prepare(known.archive)?;
        return Ok(Some(Test::Calculated(Calculated { filter: filter.clone(), sources })));
    };
    // Evaluated once per host, for example.
    let holds = |number: u64| {
        let value = |path| {
            let source = sources.0.iter().find(|(own, _)| *own == path);
            source.map_or(Value::Empty, |(_, source)| source.value(number))
        };
        filter.holds(&Given(value))
    };
    let are = (0..all as u64).map(holds).collect::<Found<_>>()?;
    Test::of_numbers(column, are, holds(u64::MAX)?, known).map(Some)
}

impl Calculated {
    pub(super) fn columns(&self) -> impl Iterator<Item = Stored> + '_ {
        self.sources.columns()
    }

    /// The rows of a block that meet the condition; the result is unspecified for rows outside `among`.
    pub(super) fn rows(&self, prepared: &Prepared, block: u32, among: &Rows) -> Found<Rows> {
        let (all, values) = (prepared.ids(block).len(), self.sources.read(prepared, block, among)?);
        let mut holding = vec![false; all];
        for (place, row) in among.places(all).enumerate() {
            let Some(row) = row else { continue };
            let holds = self.filter.holds(&Given(|path| values.of(place, path)))?;
            holding.get_mut(row as usize).into_iter().for_each(|row| *row = holds);
        }
        Ok(Rows::of(holding))
    }
}

/// A row whose fields a function gives.
pub(super) struct Given<F>(pub(super) F);

impl<F: Fn(Path) -> Value> Subject for Given<F> {
    fn field(&self, path: Path) -> Found<Value> {
        Ok(self.0(path))
    }
}
