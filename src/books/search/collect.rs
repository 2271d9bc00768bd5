//! Collects all pages that a query finds, on all processors.

use archive_storage::UrlId;
use rayon::prelude::*;
use tantivy::columnar::Column;
use tantivy::query::Weight;
use tantivy::schema::IndexRecordOption;
use tantivy::{COLLECT_BLOCK_BUFFER_LEN, DocId, DocSet, Searcher, SegmentReader, TERMINATED, Term};

/// Minimum number of documents per part when a segment is split between processors.
const PART_DOCUMENTS_MIN: u64 = if cfg!(test) { 2 } else { 1 << 17 };
const PARTS_PER_PROCESSOR: u64 = 2;

/// A page and its score.
pub(super) type PageScore = (UrlId, f32);

/// Returns every page that a query finds, with its score.
pub(super) fn scored(searcher: &Searcher, weight: &dyn Weight) -> tantivy::Result<Vec<PageScore>> {
    let of_part = |(segment, start, end): DocRange<'_>| {
        let mut found = FoundInSegment::new(segment, 0)?;
        let mut documents = from(start, weight.scorer(segment, 1.0)?);
        while documents.doc() < end {
            found.add(documents.doc(), documents.score());
            documents.advance();
        }
        Ok(found.into_pages())
    };
    in_parts(searcher, of_part)
}

/// The same without scores, which is cheaper.
pub(super) fn pages_with(searcher: &Searcher, weight: &dyn Weight) -> tantivy::Result<Vec<UrlId>> {
    let of_part = |(segment, start, end): DocRange<'_>| {
        let mut documents = from(start, weight.scorer(segment, 1.0)?);
        let mut found = FoundInSegment::new(segment, documents.size_hint().min(end - start) as usize)?;
        let mut buffer = [0; COLLECT_BLOCK_BUFFER_LEN];
        while documents.doc() < end {
            let filled = documents.fill_buffer(&mut buffer);
            let filled = buffer.get(..filled).unwrap_or_default();
            let own = filled.partition_point(|document| *document < end);
            filled.iter().take(own).for_each(|document| found.add(*document, ()));
        }
        Ok(found.into_pages())
    };
    Ok(without_notes(in_parts(searcher, of_part)?))
}

/// A segment, and the first document and the end of a range in it.
type DocRange<'a> = (&'a SegmentReader, DocId, DocId);

/// Processes parts of segments in parallel.
fn in_parts<T: Clone + Send>(
    searcher: &Searcher,
    of_part: impl Fn(DocRange<'_>) -> tantivy::Result<Vec<T>> + Send + Sync,
) -> tantivy::Result<Vec<T>> {
    let all: u64 = searcher.segment_readers().iter().map(|segment| u64::from(segment.max_doc())).sum();
    let own = (all / PARTS_PER_PROCESSOR / rayon::current_num_threads() as u64).max(PART_DOCUMENTS_MIN);
    let parts = searcher.segment_readers().iter().flat_map(|segment| {
        let end = segment.max_doc();
        let starts = (0..end).step_by(usize::try_from(own).unwrap_or(usize::MAX));
        starts
            .map(move |start| (segment, start, u64::from(start).saturating_add(own).min(end.into()) as DocId))
    });
    let parts: Vec<_> = parts.collect();
    let found: Vec<_> = parts.into_par_iter().map(of_part).collect::<tantivy::Result<_>>()?;
    Ok(found.concat())
}

fn from<D: DocSet>(start: DocId, mut documents: D) -> D {
    if documents.doc() < start {
        documents.seek(start);
    }
    documents
}

fn without_notes(found: Vec<(UrlId, ())>) -> Vec<UrlId> {
    found.into_iter().map(|(page, ())| page).collect()
}

/// Returns every page that a query without scores finds. Segments are not split: a query for many terms reads all of
/// them first.
pub(super) fn pages(searcher: &Searcher, weight: &dyn Weight) -> tantivy::Result<Vec<UrlId>> {
    let of_segment = |segment: &SegmentReader| {
        let mut found = FoundInSegment::new(segment, 0)?;
        weight.for_each_no_score(segment, &mut |documents| {
            documents.iter().for_each(|document| found.add(*document, ()));
        })?;
        Ok(without_notes(found.into_pages()))
    };
    let segments = searcher.segment_readers().par_iter().map(of_segment);
    Ok(segments.collect::<tantivy::Result<Vec<Vec<_>>>>()?.concat())
}

/// Returns the score of the page identified by a term; 0 if the query does not find it.
pub(super) fn score(searcher: &Searcher, weight: &dyn Weight, page: &Term) -> tantivy::Result<f32> {
    for segment in searcher.segment_readers() {
        let index = segment.inverted_index(page.field())?;
        let Some(mut named) = index.read_postings(page, IndexRecordOption::Basic)? else { continue };
        let mut documents = weight.scorer(segment, 1.0)?;
        while named.doc() != TERMINATED {
            let document = named.doc();
            let is_alive = segment.alive_bitset().is_none_or(|alive| alive.is_alive(document));
            let is_found = is_alive && documents.doc() <= document && documents.seek(document) == document;
            if is_found {
                return Ok(documents.score());
            }
            named.advance();
        }
    }
    Ok(0.0)
}

/// Documents found in a segment, with a note for each. Their pages are read a block at a time.
struct FoundInSegment<'a, T> {
    segment: &'a SegmentReader,
    page: Column<u64>,
    documents: Vec<DocId>,
    notes: Vec<T>,
    pages: Vec<(UrlId, T)>,
}

impl<'a, T> FoundInSegment<'a, T> {
    fn new(segment: &'a SegmentReader, expected: usize) -> tantivy::Result<Self> {
        let page = segment.fast_fields().u64("page")?;
        let (documents, notes, pages) = (Vec::new(), Vec::new(), Vec::with_capacity(expected));
        Ok(Self { segment, page, documents, notes, pages })
    }

    fn add(&mut self, document: DocId, note: T) {
        if self.segment.alive_bitset().is_none_or(|alive| alive.is_alive(document)) {
            self.documents.push(document);
            self.notes.push(note);
            if self.documents.len() == COLLECT_BLOCK_BUFFER_LEN {
                self.read_pages();
            }
        }
    }

    fn read_pages(&mut self) {
        let mut pages = [None; COLLECT_BLOCK_BUFFER_LEN];
        self.page.first_vals(&self.documents, &mut pages[..self.documents.len()]);
        let pages = pages.iter().zip(self.notes.drain(..));
        self.pages
            .extend(pages.filter_map(|(page, note)| Some((UrlId(u32::try_from((*page)?).ok()?), note))));
        self.documents.clear();
    }

    fn into_pages(mut self) -> Vec<(UrlId, T)> {
        self.read_pages();
        self.pages
    }
}
