//! Conditions on XML documents as a whole, without rows: the index has their structure by page. Documents that it does not know, and
//! those that have to be checked, are read.

use std::time::Instant;

use archive_storage::MimeId;
use rayon::prelude::*;

use super::archive::ArchiveRows;
use super::archive_pages::page_type;
use super::calculated::Given;
use super::columns::{Column, Path, yes_no};
use super::filter::Filter;
use super::hits::Hits;
use super::rows::{PageType, RowsError};
use super::value::Value;
use crate::parse::{Structure, Validity};
use crate::prepared::{self, Column as Stored};
use crate::search::Structures;

type Found<T> = Result<T, RowsError>;

/// A field of an XML document's structure.
pub(super) fn value(structure: &Structure, column: Column) -> Value {
    let text = |text: &str| Some(text).filter(|text| !text.is_empty()).into();
    match column {
        Column::Root => text(&structure.root),
        Column::Namespace => text(&structure.namespace),
        Column::Doctype => text(&structure.doctype),
        Column::WellFormed => structure.is_well_formed.map(yes_no).into(),
        _ => Value::Empty,
    }
}

/// The same, and whether it is valid; none if the document has to be read for that.
pub(super) fn known_value(structure: &Structure, column: Column) -> Option<Value> {
    if column != Column::Valid {
        return Some(value(structure, column));
    }
    // Nothing is declared, so nothing can be checked.
    let is_unknown = structure.doctype.is_empty() && structure.is_well_formed == Some(true);
    is_unknown.then(|| Validity::Unknown.name().into())
}

/// Whether a document can be XML by its content type or its kind.
pub(super) fn can_be_xml(content_type: &str, kind: Option<PageType>) -> bool {
    content_type.ends_with("xml") || kind.is_some_and(|kind| kind.is(PageType::Xml))
}

/// Whether a condition on such fields holds for each structure that differs; none where documents have to be read for that.
fn decided(filter: &Filter, fields: &[Path], structures: &Structures) -> Found<Vec<Option<bool>>> {
    let holds = |structure: &Structure| {
        if fields.iter().any(|path| known_value(structure, path.column).is_none()) {
            return Ok(None);
        }
        let value = |path: Path| known_value(structure, path.column).unwrap_or(Value::Empty);
        filter.holds(&Given(value)).map(Some)
    };
    structures.different().iter().map(holds).collect()
}

impl ArchiveRows<'_> {
    /// Whether a condition on such fields alone holds or may hold for each page, and whether all of them are known; none without
    /// columns.
    pub(super) fn pages_structured(
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
        let kinds = (0..prepared::KINDS_END).map(|value| prepared::kind(value).map(page_type));
        let kinds: Vec<bool> = kinds.map(|kind| can_be_xml("", kind)).collect();
        let can_be_xml = |kind: u64, mime: u64| {
            let mime = MimeId(u16::try_from(mime).unwrap_or_default());
            kinds.get(kind as usize) == Some(&true) || can_be_xml(self.state.mime(mime), None)
        };
        let of_block = |block: u32| -> Found<(Vec<bool>, bool)> {
            running.check()?;
            let values = |column| prepared.values(block, column);
            let statuses = values(Stored::Status)?.into_iter().zip(values(Stored::Captures)?);
            let types = values(Stored::Kind)?.into_iter().zip(values(Stored::Mime)?);
            let mut are_known = true;
            let pages = prepared.ids(block).zip(statuses).zip(types);
            let each = pages.map(|((page, (status, captures)), (kind, mime))| {
                let structure = of_page.get(page as usize).copied().flatten().filter(|_| status == 200);
                let known = structure.map(|structure| decided.get(structure as usize).copied().flatten());
                match known {
                    _ if status != 200 && status != 0 => for_none,
                    Some(Some(holds)) => holds,
                    None if captures == 0 || !can_be_xml(kind, mime) => for_none,
                    _ => {
                        are_known = false;
                        true
                    }
                }
            });
            Ok((each.collect(), are_known))
        };
        let blocks = (0..prepared.blocks()).into_par_iter().map(of_block).collect::<Found<Vec<_>>>()?;
        let are_known = blocks.iter().all(|(_, are_known)| *are_known);
        let each: Vec<bool> = blocks.into_iter().flat_map(|(each, _)| each).collect();
        let found = each.iter().filter(|holds| **holds).count() as u64;
        running.note(|seen| seen.passed("all documents: structure", found, began.elapsed()));
        Ok(Some((each, are_known)))
    }
}
