//! Conditions on the structure of XML documents, evaluated without building rows: the index has the structure by page.
//! Documents that are not indexed, and those that have to be validated, are read.

use std::time::Instant;

use archive_books::prepared::{self, Column as Stored};
use archive_books::search::Structures;
use archive_storage::{CaptureId, MimeId};
use archive_web::parse::{DocumentKind, Structure, Validity};
use rayon::prelude::*;

use crate::query::columns::archive::ArchiveRows;
use crate::query::elements::{can_be_xml, known_value};
use crate::query::language::{Column, FieldPath, Filter, Found, Given, Value};
use crate::query::rows::Hits;

/// Whether a condition holds for a structure: without validity, then with each validity. `None` where the document has
/// to be read.
type DecidedStructure = [Option<bool>; 1 + Validity::EACH.len()];

/// Evaluates a condition on structure fields for each distinct structure.
fn decided(filter: &Filter, fields: &[FieldPath], structures: &Structures) -> Found<Vec<DecidedStructure>> {
    let holds = |structure: &Structure, validity: Option<Validity>| {
        let known = |column| match (known_value(structure, column), validity) {
            (None, Some(validity)) => Some(validity.name().into()),
            (known, _) => known,
        };
        if fields.iter().any(|path| known(path.column).is_none()) {
            return Ok(None);
        }
        filter.holds(&Given(|path: FieldPath| known(path.column).unwrap_or(Value::Empty))).map(Some)
    };
    let of_each = |structure| {
        let mut of_each = DecidedStructure::default();
        let validities = std::iter::once(None).chain(Validity::EACH.into_iter().map(Some));
        for (place, validity) in of_each.iter_mut().zip(validities) {
            *place = holds(structure, validity)?;
        }
        Ok(of_each)
    };
    structures.different().iter().map(of_each).collect()
}

impl ArchiveRows<'_> {
    /// For each page, whether a condition on structure fields alone holds or may hold, and whether the result is exact;
    /// `None` without columns.
    pub(crate) fn pages_structured(
        &self,
        filter: &Filter,
        hits: &Hits<'_>,
    ) -> Found<Option<(Vec<bool>, bool)>> {
        let fields = filter.fields().unwrap_or_default();
        let is_one = !fields.is_empty()
            && fields.iter().all(|path| path.via.is_none() && path.column.is_of_structure());
        let Some(prepared) = self.prepared.as_ref().filter(|_| is_one) else { return Ok(None) };
        let (began, running) = (Instant::now(), &self.running);
        let for_none = filter.holds(&Given(|_| Value::Empty))?;
        let decided = decided(filter, &fields, &hits.structures)?;
        let mut of_page = vec![None; self.state.url_count() as usize];
        for (page, structure) in hits.structures.each() {
            of_page.get_mut(page.index()).into_iter().for_each(|of_page| *of_page = Some(structure as u32));
        }
        let kinds = (0..prepared::KINDS_END).map(|value| prepared::kind(value).map(DocumentKind::from_code));
        let kinds: Vec<Option<DocumentKind>> = kinds.collect();
        let can_be_xml = |kind: u64, mime: u64| {
            let mime = MimeId(u16::try_from(mime).unwrap_or_default());
            can_be_xml(self.state.mime(mime), kinds.get(kind as usize).copied().flatten())
        };
        let checks = match fields.iter().any(|path| path.column == Column::Valid) {
            true => self.checks()?,
            false => None,
        };
        // The result for a structure, given what checking the newest capture found.
        let with_check = |each: &DecidedStructure, newest: u64| -> Found<Option<bool>> {
            let (None, Some((answers, checks)), Some(newest)) = (each[0], checks, newest.checked_sub(1))
            else {
                return Ok(each[0]);
            };
            let found = checks.found(answers, self.state, CaptureId(newest as u32))?;
            Ok(found.and_then(|found| each.get(1 + found as usize).copied().flatten()))
        };
        let of_block = |block: u32| -> Found<(Vec<bool>, bool)> {
            running.check()?;
            let newest = if checks.is_some() { prepared.values(block, Stored::Newest)? } else { Vec::new() };
            let values = |column| prepared.values(block, column);
            let statuses = values(Stored::ContentStatus)?.into_iter().zip(values(Stored::Captures)?);
            let types = values(Stored::Kind)?.into_iter().zip(values(Stored::Mime)?);
            let mut are_known = true;
            let pages = prepared.ids(block).zip(statuses).zip(types).enumerate();
            let each = pages.map(|(place, ((page, (status, captures)), (kind, mime)))| {
                let structure = of_page.get(page as usize).copied().flatten().filter(|_| status == 200);
                let newest =
                    newest.get(place).filter(|_| can_be_xml(kind, mime)).copied().unwrap_or_default();
                let each = structure.and_then(|structure| decided.get(structure as usize));
                let known = each.map(|each| with_check(each, newest)).transpose()?;
                Ok(match known {
                    _ if status != 200 && status != 0 => for_none,
                    Some(Some(holds)) => holds,
                    _ if captures == 0 || !can_be_xml(kind, mime) => for_none,
                    _ => {
                        are_known = false;
                        true
                    }
                })
            });
            Ok((each.collect::<Found<_>>()?, are_known))
        };
        let blocks = (0..prepared.blocks()).into_par_iter().map(of_block).collect::<Found<Vec<_>>>()?;
        let are_known = blocks.iter().all(|(_, are_known)| *are_known);
        let each: Vec<bool> = blocks.into_iter().flat_map(|(each, _)| each).collect();
        let found = each.iter().filter(|holds| **holds).count() as u64;
        running.note(|seen| seen.passed("all documents: structure", found, began.elapsed()));
        Ok(Some((each, are_known)))
    }
}
