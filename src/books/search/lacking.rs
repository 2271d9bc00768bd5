//! Pages whose text, as the index has it, cannot fit a regular expression.
//!
//! Only of documents whose words and signs are all in the index; all others may fit.

use archive_storage::UrlId;
use rayon::prelude::*;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocSet, InvertedIndexReader, Searcher, SegmentReader, TERMINATED, Term};

use super::needs::{Need, Needs, SIGN, WordTest};
use super::schema::IndexSchema;

/// Maximum number of words of a segment's field that a test reads, and of those that may fit; beyond it, any document may
/// have one that fits.
const WORDS_READ_MAX: usize = 1 << 24;
const WORDS_FITTING_MAX: usize = if cfg!(test) { 1 << 8 } else { 1 << 16 };

/// For each document whether it meets a condition; `None` if that is not known.
type Documents = Option<Vec<bool>>;

/// Returns the pages that lack what is needed, in no order.
pub(super) fn lacking(
    searcher: &Searcher,
    fields: IndexSchema,
    needs: &Needs,
) -> tantivy::Result<Vec<UrlId>> {
    let mut pages = Vec::new();
    for segment in searcher.segment_readers() {
        let tests = needs.tests.par_iter().map(|test| with_word(segment, fields, test));
        let tests = tests.collect::<tantivy::Result<Vec<_>>>()?;
        let with_sign = |sign: &str| with_term(segment, fields.elements, &format!("{SIGN}{sign}"));
        let (whole, Some(meeting)) = (with_sign("")?, meeting(&needs.need, &tests, &with_sign)?) else {
            continue;
        };
        let numbers = segment.fast_fields().u64("page")?;
        for document in segment.doc_ids_alive() {
            let place = document as usize;
            if whole.get(place) == Some(&true) && meeting.get(place) == Some(&false) {
                let page = numbers.first(document).and_then(|page| u32::try_from(page).ok());
                pages.extend(page.map(UrlId));
            }
        }
    }
    Ok(pages)
}

fn meeting(
    need: &Need,
    tests: &[Documents],
    with_sign: &dyn Fn(&str) -> tantivy::Result<Vec<bool>>,
) -> tantivy::Result<Documents> {
    let each = |parts: &[Need]| -> tantivy::Result<Vec<Documents>> {
        parts.iter().map(|part| meeting(part, tests, with_sign)).collect()
    };
    let joined = |left: Vec<bool>, right: Vec<bool>, is_both: bool| {
        left.into_iter()
            .zip(right)
            .map(|(left, right)| if is_both { left && right } else { left || right })
            .collect()
    };
    Ok(match need {
        Need::Sign(sign) => Some(with_sign(sign.encode_utf8(&mut [0; 4]))?),
        Need::Word(test) => tests.get(*test).cloned().flatten(),
        Need::All(parts) => {
            each(parts)?.into_iter().flatten().reduce(|left, right| joined(left, right, true))
        }
        Need::Any(parts) => {
            let parts = each(parts)?.into_iter().collect::<Option<Vec<_>>>();
            parts.and_then(|parts| parts.into_iter().reduce(|left, right| joined(left, right, false)))
        }
    })
}

/// The documents that have a word in title or text that fits.
fn with_word(segment: &SegmentReader, fields: IndexSchema, test: &WordTest) -> tantivy::Result<Documents> {
    let mut having = vec![false; segment.max_doc() as usize];
    for field in [fields.title, fields.body] {
        let index = segment.inverted_index(field)?;
        let mut words = index.terms().range().ge(test.prefix.as_bytes()).into_stream()?;
        let (mut read, mut fitting) = (0, 0);
        while words.advance() {
            if !words.key().starts_with(test.prefix.as_bytes()) {
                break;
            }
            read += 1;
            if std::str::from_utf8(words.key()).is_ok_and(|word| test.fits.is_match(word)) {
                fitting += 1;
                note(&index, words.value(), &mut having)?;
            }
            if read > WORDS_READ_MAX || fitting > WORDS_FITTING_MAX {
                return Ok(None);
            }
        }
    }
    Ok(Some(having))
}

fn with_term(segment: &SegmentReader, field: Field, text: &str) -> tantivy::Result<Vec<bool>> {
    let mut having = vec![false; segment.max_doc() as usize];
    let index = segment.inverted_index(field)?;
    if let Some(info) = index.get_term_info(&Term::from_field_text(field, text))? {
        note(&index, &info, &mut having)?;
    }
    Ok(having)
}

/// Notes the documents of a term.
fn note(
    index: &InvertedIndexReader,
    info: &tantivy::postings::TermInfo,
    having: &mut [bool],
) -> tantivy::Result<()> {
    let mut postings = index.read_postings_from_terminfo(info, IndexRecordOption::Basic)?;
    while postings.doc() != TERMINATED {
        if let Some(has) = having.get_mut(postings.doc() as usize) {
            *has = true;
        }
        postings.advance();
    }
    Ok(())
}
