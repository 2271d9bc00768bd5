//! Where the values of fields come from without building rows: a column, a table of what a column's numbers stand for,
//! or a pass over other data.

use std::sync::OnceLock;

use archive_books::columns::SavedColumn;
use archive_books::prepared::{Column as Stored, Prepared};
use archive_grammar::QueryRows;
use archive_storage::UrlId;

use crate::query::columns::archive::ArchiveRows;
use crate::query::columns::codes::coded;
use crate::query::columns::context::FilterContext;
use crate::query::columns::numbers::{Number, compared};
use crate::query::columns::row_set::RowSet;
use crate::query::columns::visits::{ExpectedValues, shown};
use crate::query::language::{Column, FieldPath, Filter, Found, Given, Value, Via};

/// A column, and the value that each of its numbers stands for; the value of any other number is unknown.
pub(crate) type CodeTable = (Stored, Vec<Value>);

/// Where the values of a field come from.
#[derive(Debug)]
enum FieldSource<'a> {
    Number(Number),
    Table(CodeTable),
    /// The estimates from a pass over all visits, once it was made.
    Expected(Column, OnceLock<ExpectedValues>),
    /// A column computed offline, or by one pass.
    Named(&'a SavedColumn),
}

impl<'a> FieldSource<'a> {
    fn of(path: FieldPath, known: FilterContext<'a, '_, '_>) -> Found<Option<Self>> {
        let FieldPath { via: None, column } = path else {
            return Ok(known.archive.table(path)?.map(Self::Table));
        };
        if let Some(number) = compared(column, known.target) {
            return Ok(Some(Self::Number(number)));
        }
        Ok(match known.target {
            // The name of a site is in no column.
            QueryRows::Sites => None,
            QueryRows::Pages if column.is_expected() => {
                let bytes = known.archive.state.url_count() as usize * size_of::<u64>();
                let fits = bytes <= known.archive.running.limits.memory;
                fits.then(|| Self::Expected(column, OnceLock::new()))
            }
            QueryRows::Pages if column.is_decided() => {
                // Decisions on pages themselves are left to the caller.
                let of_host = FieldPath { via: Some(Via::Host), column };
                known.archive.table(of_host)?.map(Self::Table)
            }
            _ => match column {
                Column::Named(index) => Some(Self::Named(known.archive.page_column(index)?)),
                column => coded(column, known, |name| Value::from(name))?.map(Self::Table),
            },
        })
    }

    fn column(&self) -> Option<Stored> {
        match self {
            Self::Number(number) => Some(number.column),
            Self::Table((column, _)) => Some(*column),
            Self::Expected(..) | Self::Named(..) => None,
        }
    }

    /// The stored values of some rows of a block.
    fn stored(&self, prepared: &Prepared, block: u32, rows: &RowSet) -> Found<Vec<u64>> {
        if let Some(column) = self.column() {
            return Ok(rows.values(prepared, block, column)?);
        }
        let ids = prepared.ids(block);
        let number = |row: u32| {
            let page = UrlId(ids.start + row);
            match self {
                Self::Expected(_, values) => values.get().map(|values| values.of(page)),
                Self::Named(column) => column.get(page.index()),
                Self::Number(_) | Self::Table(_) => None,
            }
        };
        let numbers = rows.places(ids.len()).map(|row| row.and_then(number).unwrap_or(f64::NAN));
        Ok(numbers.map(f64::to_bits).collect())
    }

    /// Converts a stored value.
    fn value(&self, stored: u64) -> Value {
        match self {
            Self::Number(number) if number.zero_is_unknown && stored == 0 => Value::Empty,
            Self::Number(number) => number.shown(stored),
            Self::Table((_, values)) => values.get(stored as usize).cloned().unwrap_or(Value::Empty),
            Self::Expected(column, _) => shown(*column, f64::from_bits(stored)),
            Self::Named(..) => f64::from_bits(stored).into(),
        }
    }
}

/// Where the values of several fields come from.
#[derive(Debug)]
pub(crate) struct Sources<'a>(Vec<(FieldPath, FieldSource<'a>)>);

impl<'a> Sources<'a> {
    /// The sources of some fields, if columns and tables have them all.
    pub(crate) fn of(fields: &[FieldPath], known: FilterContext<'a, '_, '_>) -> Found<Option<Self>> {
        let source = |path: &FieldPath| Ok(FieldSource::of(*path, known)?.map(|source| (*path, source)));
        Ok(fields.iter().map(source).collect::<Found<Option<_>>>()?.map(Self))
    }

    /// Makes the passes that the sources need.
    pub(crate) fn prepare(&self, archive: &ArchiveRows<'_>) -> Found<()> {
        for (_, source) in &self.0 {
            if let FieldSource::Expected(column, values) = source
                && values.get().is_none()
            {
                let found = archive.all_expected(*column)?;
                values.get_or_init(|| found);
            }
        }
        Ok(())
    }

    pub(crate) fn columns(&self) -> impl Iterator<Item = Stored> + '_ {
        self.0.iter().filter_map(|(_, source)| source.column())
    }

    /// Reads the values of some rows of a block.
    pub(crate) fn read(&self, prepared: &Prepared, block: u32, rows: &RowSet) -> Found<BlockValues<'_>> {
        let mut values = Vec::with_capacity(self.0.len());
        for (path, source) in &self.0 {
            values.push((*path, source, source.stored(prepared, block, rows)?));
        }
        Ok(BlockValues(values))
    }

    /// The only column that all fields depend on, through tables, and the number of entries of its table.
    pub(crate) fn table(&self) -> Option<(Stored, usize)> {
        let (_, FieldSource::Table((column, values))) = self.0.first()? else { return None };
        let is_alike = |(_, source): &(FieldPath, FieldSource<'_>)| matches!(source, FieldSource::Table((own, _)) if own == column);
        self.0.iter().all(is_alike).then_some((*column, values.len()))
    }

    /// The value of a field for a number of that column.
    pub(crate) fn of_code(&self, path: FieldPath, number: u64) -> Value {
        let source = self.0.iter().find(|(own, _)| *own == path);
        source.map_or(Value::Empty, |(_, source)| source.value(number))
    }
}

/// The values of fields in a block.
pub(crate) struct BlockValues<'a>(Vec<(FieldPath, &'a FieldSource<'a>, Vec<u64>)>);

impl BlockValues<'_> {
    /// The value of a field for the row at this position.
    pub(crate) fn of(&self, place: usize, path: FieldPath) -> Value {
        let found = self.0.iter().find(|(own, ..)| *own == path);
        let value =
            found.and_then(|(_, source, values)| values.get(place).map(|stored| source.value(*stored)));
        value.unwrap_or(Value::Empty)
    }
}

/// A condition that column values decide row by row.
#[derive(Debug)]
pub(crate) struct Calculated<'a> {
    pub(crate) filter: Filter,
    pub(crate) sources: Sources<'a>,
}

impl Calculated<'_> {
    pub(crate) fn columns(&self) -> impl Iterator<Item = Stored> + '_ {
        self.sources.columns()
    }

    /// The rows of a block that meet the condition; the result is unspecified for rows outside `among`.
    pub(crate) fn rows(&self, prepared: &Prepared, block: u32, among: &RowSet) -> Found<RowSet> {
        let (all, values) = (prepared.ids(block).len(), self.sources.read(prepared, block, among)?);
        let mut holding = vec![false; all];
        for (place, row) in among.places(all).enumerate() {
            let Some(row) = row else { continue };
            let holds = self.filter.holds(&Given(|path| values.of(place, path)))?;
            holding.get_mut(row as usize).into_iter().for_each(|row| *row = holds);
        }
        Ok(RowSet::of(holding))
    }
}
