//! Reads from the postings of an index what its documents say of the words of a search.

use std::collections::HashMap;

use archive_storage::UrlId;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::{Postings, SegmentPostings};
use tantivy::query::Bm25Weight;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, DocSet, SegmentReader, TERMINATED, Term};

use super::error::SearchError;
use super::find::{FORM_SHARE, FORM_WEIGHT, Fit, PageEvidence, QueryWord, share};
use super::forms::{DocumentLanguages, Languages};
use super::labels::Label;
use super::schema::{IndexSchema, VERSION};
use super::view::IndexView;

/// Iterates over the documents of a segment that have one word in one field.
struct PostingsCursor {
    postings: SegmentPostings,
    word: usize,
    /// Its weight, and the lengths of the field, unless all that counts is whether the word is there.
    weight: Option<(Bm25Weight, Option<FieldNormReader>)>,
    /// If they have another form of it: in which languages that is one.
    form_in: Option<Languages>,
}

impl IndexView<'_> {
    /// Reads the texts of links in a segment, only from documents that count, and adds them to their targets.
    pub(super) fn read_links(
        &self,
        segment: &SegmentReader,
        fields: IndexSchema,
        wanted: &[QueryWord],
        linked: &mut HashMap<UrlId, Fit>,
    ) -> Result<(), SearchError> {
        let error = |source| SearchError::of(self.folder(), source);
        let mut cursors = Vec::new();
        for (word, one) in wanted.iter().enumerate() {
            one.open(segment, fields.links, word, &mut cursors).map_err(error)?;
        }
        let mut languages = DocumentLanguages::of(segment, fields).map_err(error)?;
        let columns = segment.fast_fields();
        let (pages, targets) = (columns.u64("page").map_err(error)?, columns.u64("targets").map_err(error)?);
        let versions = columns.column_opt::<u64>(VERSION).map_err(error)?;
        let mut positions = Vec::new();
        while let Some(document) = first(&cursors) {
            let is_alive = segment.alive_bitset().is_none_or(|alive| alive.is_alive(document));
            let found = labels_of(&mut cursors, document, &mut languages, &mut positions);
            let page = pages.first(document).filter(|_| is_alive).and_then(|page| u32::try_from(page).ok());
            let version = versions.as_ref().and_then(|column| column.first(document));
            if page.map_or(Ok(false), |page| self.counts(UrlId(page), version))? {
                let of_document: Vec<u64> = targets.values_for_doc(document).collect();
                each_label(found, wanted, |line, fit| {
                    let target =
                        of_document.get(line as usize).and_then(|target| u32::try_from(*target).ok());
                    if let Some(target) = target {
                        linked.entry(UrlId(target)).or_default().take(fit);
                    }
                });
            }
        }
        Ok(())
    }
}

impl QueryWord {
    /// Opens the documents that have the word or another form of it in a field.
    fn open(
        &self,
        segment: &SegmentReader,
        field: Field,
        word: usize,
        cursors: &mut Vec<PostingsCursor>,
    ) -> tantivy::Result<()> {
        let index = segment.inverted_index(field)?;
        let forms = self.forms.iter().map(|form| (&form.word, Some(form.languages)));
        for (text, form_in) in std::iter::once((&self.word, None)).chain(forms) {
            let term = Term::from_field_text(field, text);
            let postings = index.read_postings(&term, IndexRecordOption::WithFreqsAndPositions)?;
            cursors.extend(postings.map(|postings| PostingsCursor { postings, word, weight: None, form_in }));
        }
        Ok(())
    }
}

impl PostingsCursor {
    /// Whether its word counts in a document.
    fn counts(&self, document: DocId, languages: &mut DocumentLanguages) -> bool {
        self.form_in.is_none_or(|form_in| form_in & languages.of_document(document) > 0)
    }
}

/// Returns the first document of any cursor.
fn first(cursors: &[PostingsCursor]) -> Option<DocId> {
    cursors.iter().map(|cursor| cursor.postings.doc()).min().filter(|document| *document != TERMINATED)
}

/// Reads the evidence that the documents of a segment have for themselves.
pub(super) fn read_pages(
    segment: &SegmentReader,
    fields: IndexSchema,
    wanted: &[QueryWord],
    pages: &mut Vec<(UrlId, Option<u64>, PageEvidence)>,
) -> tantivy::Result<()> {
    let (mut texts, mut labels) = (Vec::new(), Vec::new());
    for (word, one) in wanted.iter().enumerate() {
        for (field, weight) in &one.weights {
            let first = texts.len();
            one.open(segment, *field, word, &mut texts)?;
            for cursor in texts.iter_mut().skip(first) {
                let factor = if cursor.form_in.is_some() { FORM_WEIGHT } else { 1.0 };
                let has_norms = segment.schema().get_field_entry(*field).has_fieldnorms();
                let norms = has_norms.then(|| segment.get_fieldnorms_reader(*field)).transpose()?;
                cursor.weight = Some((weight.boost_by(factor), norms));
            }
        }
        one.open(segment, fields.labels, word, &mut labels)?;
    }
    let mut languages = DocumentLanguages::of(segment, fields)?;
    let numbers = segment.fast_fields().u64("page")?;
    let versions = segment.fast_fields().column_opt::<u64>(VERSION)?;
    let mut positions = Vec::new();
    // BM25 of the other forms of each word, in one document.
    let mut of_forms = vec![0.0; wanted.len()];
    // A word of a label is also in the title or the body.
    while let Some(document) = first(&texts) {
        let mut evidence = PageEvidence::default();
        of_forms.fill(0.0);
        for cursor in texts.iter_mut().filter(|cursor| cursor.postings.doc() == document) {
            let counts = cursor.counts(document, &mut languages);
            if let Some((weight, norms)) = cursor.weight.as_ref().filter(|_| counts) {
                let score = match norms {
                    Some(norms) => weight.score(norms.fieldnorm_id(document), cursor.postings.term_freq()),
                    None => weight.max_score(),
                };
                if cursor.form_in.is_none() {
                    evidence.bm25 += score;
                    evidence.words |= 1 << cursor.word;
                } else if let Some(of_word) = of_forms.get_mut(cursor.word) {
                    *of_word += score;
                    evidence.forms |= 1 << cursor.word;
                }
            }
            cursor.postings.advance();
        }
        let lacking = of_forms.iter().enumerate().filter(|(word, _)| evidence.words >> word & 1 == 0);
        evidence.bm25 += lacking.map(|(_, score)| score).sum::<f32>();
        // All that it has are forms in another language.
        if evidence.words | evidence.forms == 0 {
            continue;
        }
        let found = labels_of(&mut labels, document, &mut languages, &mut positions);
        each_label(found, wanted, |_, fit| evidence.headings.take(fit));
        let is_alive = segment.alive_bitset().is_none_or(|alive| alive.is_alive(document));
        if let Some(page) =
            numbers.first(document).filter(|_| is_alive).and_then(|page| u32::try_from(page).ok())
        {
            let version = versions.as_ref().and_then(|column| column.first(document));
            pages.push((UrlId(page), version, evidence));
        }
    }
    Ok(())
}

/// Returns the words that a document has in its labels, sorted by label; moves the cursors past it.
fn labels_of<'a>(
    cursors: &mut [PostingsCursor],
    document: DocId,
    languages: &mut DocumentLanguages,
    positions: &'a mut Vec<(Label, usize, bool)>,
) -> &'a [(Label, usize, bool)] {
    positions.clear();
    let mut places = Vec::new();
    for cursor in cursors {
        if cursor.postings.doc() < document {
            cursor.postings.seek(document);
        }
        if cursor.postings.doc() == document {
            if cursor.counts(document, languages) {
                cursor.postings.positions(&mut places);
                let (word, is_form) = (cursor.word, cursor.form_in.is_some());
                positions.extend(places.iter().map(|place| (Label::at(*place), word, is_form)));
            }
            cursor.postings.advance();
        }
    }
    positions.sort_unstable();
    positions
}

/// Calls `take` with the line and the fit of each label that has a word.
fn each_label(found: &[(Label, usize, bool)], wanted: &[QueryWord], mut take: impl FnMut(u32, Fit)) {
    for label in found.chunk_by(|(left, ..), (right, ..)| left == right) {
        let Some((Label { line, words: length }, ..)) = label.first().copied() else { continue };
        let words_of = |form| {
            let own = label.iter().filter(|(.., is_form)| *is_form == form);
            own.fold(0, |words, (_, word, _)| words | 1 << word)
        };
        let (words, forms): (u32, u32) = (words_of(false), words_of(true));
        let covered = share(words, wanted) + FORM_SHARE * share(forms & !words, wanted);
        let own = label.len() as f32 / length.max(1) as f32;
        let is_exact = words.count_ones() as usize == wanted.len() && label.len() as u32 == length;
        take(line, Fit { best: covered * own.min(1.0), is_exact, words });
    }
}
