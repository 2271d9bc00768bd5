//! What responses say about themselves, by the codes of prepared columns. Conditions are evaluated once per code. For
//! captures without a code, the record is read.

use std::cell::Cell;

use archive_books::prepared::{Answers, Column as Stored, Prepared, Said};
use archive_grammar::QueryRows;
use archive_storage::{CaptureId, Store};
use rayon::prelude::*;

use crate::query::columns::captures::record_of;
use crate::query::columns::context::FilterContext;
use crate::query::columns::row_set::RowSet;
use crate::query::language::{FieldPath, Filter, Found, Given, Subject, Value};
use crate::query::rows::{ResponseField, Running, seconds};

/// The column that holds the codes; `None` if nothing is noted of a field.
fn stored(asked: ResponseField<'_>) -> Option<Stored> {
    Some(match asked {
        ResponseField::Server => Stored::Server,
        ResponseField::Charset => Stored::Charset,
        ResponseField::Hops => Stored::Hops,
        ResponseField::Failure => Stored::Failure,
        ResponseField::ResponseTime => Stored::ResponseTime,
        ResponseField::Header(_) => Stored::Head,
        ResponseField::Session | ResponseField::Robots => return None,
    })
}

/// The column whose codes decide a condition, if there is one.
pub(crate) fn column(filter: &Filter) -> Option<Stored> {
    if filter.is_of_headers() {
        return Some(Stored::Head);
    }
    let fields = filter.fields()?;
    let [FieldPath { via: None, column }] = fields.as_slice() else { return None };
    ResponseField::of(*column).and_then(stored)
}

/// Answers from what was noted of a capture's response; `None` if the record has to be read.
pub(crate) fn noted(answers: &Answers, capture: CaptureId, asked: ResponseField<'_>) -> Found<Option<Value>> {
    let Some(stored) = stored(asked) else { return Ok(None) };
    let code = answers.code(capture, stored)?;
    Ok(meant(match asked {
        ResponseField::Header(name) => answers.header(code, name),
        _ => answers.said(stored, code),
    }))
}

/// The value of a code; `None` if the record has to be read.
fn meant(said: Said<'_>) -> Option<Value> {
    match said {
        Said::Unknown => None,
        Said::Nothing => Some(Value::Empty),
        Said::Name(name) => Some(name.into()),
        Said::Milliseconds(milliseconds) => Some(seconds(milliseconds)),
    }
}

/// The fields of a response by its code.
struct OfCode<'a> {
    answers: &'a Answers,
    stored: Stored,
    code: u64,
    /// Whether the record has to be read for some field.
    is_unknown: Cell<bool>,
}

impl OfCode<'_> {
    fn value(&self, said: Said<'_>) -> Value {
        meant(said).unwrap_or_else(|| {
            self.is_unknown.set(true);
            Value::Empty
        })
    }
}

impl Subject for OfCode<'_> {
    fn field(&self, _: FieldPath) -> Found<Value> {
        Ok(self.value(self.answers.said(self.stored, self.code)))
    }

    fn header(&self, name: &str) -> Found<Value> {
        Ok(self.value(self.answers.header(self.code, name)))
    }
}

/// A condition on one such field alone, or on headers alone.
#[derive(Debug)]
pub(crate) struct AnswerFilter<'a> {
    store: &'a Store,
    running: &'a Running,
    filter: Filter,
    stored: Stored,
    /// Whether rows are pages: then the newest capture that is not a 304 counts.
    of_pages: bool,
    /// For each capture, whether the condition holds, if known without its record.
    decided: Vec<Option<bool>>,
    /// Whether the condition holds for a page without a capture.
    for_none: bool,
}

impl<'a> AnswerFilter<'a> {
    /// The test equivalent to a condition that a column decides; `None` if nothing was noted.
    pub(crate) fn of(
        filter: &Filter,
        stored: Stored,
        known: FilterContext<'a, '_, '_>,
    ) -> Found<Option<Self>> {
        let store = known.archive.store;
        let running: &Running = &known.archive.running;
        let Some(answers) = Answers::open(store)? else { return Ok(None) };
        let of_code = |code| {
            let said = OfCode { answers: &answers, stored, code, is_unknown: Cell::new(false) };
            let holds = filter.holds(&said)?;
            Ok(Some(holds).filter(|_| !said.is_unknown.get()))
        };
        let of_codes = (0..=answers.greatest(stored)).map(of_code).collect::<Found<Vec<_>>>()?;
        let of_block = |block| {
            running.check()?;
            let decided = |code: u64| of_codes.get(code as usize).copied().flatten();
            Ok(answers.columns.map(block, stored, decided)?)
        };
        let blocks = (0..answers.columns.blocks()).into_par_iter().map(of_block);
        Ok(Some(Self {
            store,
            running,
            filter: filter.clone(),
            stored,
            of_pages: known.target == QueryRows::Pages,
            decided: blocks.collect::<Found<Vec<_>>>()?.concat(),
            for_none: filter.holds(&Given(|_| Value::Empty))?,
        }))
    }

    /// The columns that the test reads.
    pub(crate) fn columns(&self) -> impl Iterator<Item = Stored> + use<> {
        self.of_pages.then_some(Stored::Newest).into_iter().chain([self.stored])
    }

    /// The rows of a block that pass the test; the result is unspecified for rows outside `among`.
    pub(crate) fn rows(&self, prepared: &Prepared, block: u32, among: &RowSet) -> Found<RowSet> {
        let ids = prepared.ids(block);
        let newest = if self.of_pages { among.values(prepared, block, Stored::Newest)? } else { Vec::new() };
        let (mut holding, mut unknown) = (vec![false; ids.len()], Vec::new());
        for (place, row) in among.places(ids.len()).enumerate() {
            let Some(row) = row else { continue };
            // Pages store the capture id plus 1.
            let capture = match newest.get(place) {
                Some(newest) => newest.checked_sub(1),
                None => Some(u64::from(ids.start + row)),
            };
            let holds = match capture {
                Some(capture) => self.decided.get(capture as usize).copied().flatten(),
                None => Some(self.for_none),
            };
            match (holds, capture) {
                (None, Some(capture)) => unknown.push((row, CaptureId(capture as u32))),
                _ => {
                    let holds = holds.unwrap_or_default();
                    holding.get_mut(row as usize).into_iter().for_each(|place| *place = holds);
                }
            }
        }
        self.running.note(|seen| seen.records_read += unknown.len() as u64);
        let read = |(row, capture): (u32, CaptureId)| -> Found<(u32, bool)> {
            self.running.check()?;
            let holds = record_of(self.store, capture).and_then(|record| self.filter.holds(&record));
            Ok((row, self.running.unless_unreadable(holds)?))
        };
        for (row, holds) in unknown.into_par_iter().map(read).collect::<Found<Vec<_>>>()? {
            holding.get_mut(row as usize).into_iter().for_each(|place| *place = holds);
        }
        Ok(RowSet::of(holding))
    }
}
