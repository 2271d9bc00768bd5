//! The programs that wrote the segments of captures.

use std::collections::HashMap;
use std::time::Instant;

use archive_grammar::QueryRows;
use archive_storage::SegmentId;

use crate::query::columns::archive::ArchiveRows;
use crate::query::columns::filter::ColumnFilter;
use crate::query::language::{Column, Found, TextTest};

/// The field of a segment's `warcinfo` record that names the program. It is repeated if the segment was rewritten from
/// segments of several programs.
const FIELD_SOFTWARE: &str = "software";

impl ArchiveRows<'_> {
    /// Returns the program that wrote a segment, if known.
    pub(crate) fn software_of(&self, segment: SegmentId) -> Found<Option<String>> {
        if let Some(known) = self.software.borrow().get(&segment) {
            return Ok(known.clone());
        }
        let fields = self.store.information(segment)?;
        let programs = fields.iter().filter(|(name, _)| name == FIELD_SOFTWARE);
        let programs: Vec<&str> = programs.map(|(_, program)| program.as_str()).collect();
        let software = Some(programs.join(", ")).filter(|programs| !programs.is_empty());
        self.software.borrow_mut().insert(segment, software.clone());
        Ok(software)
    }

    /// The row test equivalent to a condition on the program, which is evaluated once per segment; `None` without
    /// columns.
    pub(crate) fn rows_written_by(
        &self,
        target: QueryRows,
        test: &TextTest,
    ) -> Found<Option<ColumnFilter<'static>>> {
        let Some(prepared) = &self.prepared else { return Ok(None) };
        let (began, for_none) = (Instant::now(), test.holds_of(None, None));
        let holds = |segment| -> Found<bool> {
            Ok(test.holds_of(self.software_of(segment)?.as_deref(), Some(Column::Software)))
        };
        let segments = self.state.segments().map(|(segment, _)| Ok((segment, holds(segment)?)));
        let segments = segments.collect::<Found<HashMap<_, _>>>()?;
        let mut are = self.each_capture(|| {
            |capture| segments.get(&capture.location.segment).copied().unwrap_or(for_none)
        })?;
        if target == QueryRows::Pages {
            are = self.pages_with_newest(prepared, for_none, &are)?;
        }
        let found = are.iter().filter(|holds| **holds).count() as u64;
        self.running.note(|seen| seen.passed("all captures: software", found, began.elapsed()));
        Ok(Some(ColumnFilter::Each(are)))
    }
}
