//! Stored results of validating an XML document against its definition. A result is valid as long as the archive has
//! the same definition for the document.

use archive_base::access::Access;
use archive_storage::{Capture, CaptureId, MimeId, State, StateError, Store};
use archive_web::parse::Validity;

use super::compare::{VersionError, definition_part, is_version, validated};
use crate::prepared::{Answers, Column, Said};

/// Maximum number of captures of a part of a definition that are compared; with more, documents are checked again.
const CAPTURES_MAX: usize = 64;

/// A part of a definition that was looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DefinitionPart {
    /// This capture has it.
    Captured(CaptureId),
    /// The archive had nothing at this URL.
    Missing(String),
}

/// Result of checking a document, with the parts of its definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedDocument {
    /// Result of the validation.
    validity: Validity,
    parts: Vec<DefinitionPart>,
}

/// The capture times of documents for which a result is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Holds {
    /// For each part whose captures differ: their times in microseconds since 1970, newest first, and whether each has
    /// the content that was used.
    differing: Vec<Vec<(i64, bool)>>,
}

impl Holds {
    /// Whether the result is valid for documents of any time.
    fn always(&self) -> bool {
        self.differing.is_empty()
    }

    /// Whether the result is valid for a document captured at this time, in microseconds since 1970.
    fn at(&self, time: i64) -> bool {
        // On a tie the newer capture counts, as in [`super::version_near`].
        let nearest = |part: &Vec<(i64, bool)>| {
            part.iter().min_by_key(|(captured, _)| captured.abs_diff(time)).is_some_and(|(_, same)| *same)
        };
        self.differing.iter().all(nearest)
    }
}

impl CheckedDocument {
    /// Checks the XML document of a capture; `None` for other documents, as in [`super::validate`].
    ///
    /// # Errors
    /// If records cannot be read.
    pub(crate) fn of(
        store: &Store,
        access: &Access,
        capture: &Capture,
    ) -> Result<Option<Self>, VersionError> {
        let found = validated(store, access, capture)?;
        Ok(found.map(|(validation, parts)| Self { validity: validation.validity(), parts }))
    }

    /// Whether parts of the document or its definition were found in the archive.
    pub(crate) fn has_parts(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, DefinitionPart::Captured(_)))
    }

    /// Encodes the result: the validity, then the numbers of captures and the URLs of missing parts.
    pub(crate) fn to_text(&self) -> String {
        let parts = self.parts.iter().map(|part| match part {
            DefinitionPart::Captured(id) => format!(" {}", id.0),
            DefinitionPart::Missing(url) => format!(" {url}"),
        });
        std::iter::once(self.validity.name().to_owned()).chain(parts).collect()
    }

    /// Decodes a result; `None` if the text is invalid.
    fn from_text(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let name = words.next()?;
        let validity = Validity::EACH.into_iter().find(|validity| validity.name() == name)?;
        let part = |word: &str| match word.parse() {
            Ok(id) => DefinitionPart::Captured(CaptureId(id)),
            Err(_) => DefinitionPart::Missing(word.to_owned()),
        };
        Some(Self { validity, parts: words.map(part).collect() })
    }

    /// Determines for which documents the result is valid, given the visible part of the archive; `None` if for none.
    ///
    /// # Errors
    /// If the state cannot be read.
    fn holds(&self, store: &Store, access: &Access) -> Result<Option<Holds>, StateError> {
        let mut differing = Vec::new();
        for part in &self.parts {
            let (url, checked) = match part {
                DefinitionPart::Captured(id) => {
                    let capture = store.state().capture(*id)?;
                    (Some(capture.url), Some((capture.digest, capture.mime)))
                }
                DefinitionPart::Missing(url) => (store.state().find(url)?, None),
            };
            let Some(url) = url else { continue };
            let history = access.history(store.state(), url)?.map(|found| found.map(|(_, capture)| capture));
            match compared(history, checked)? {
                Some(captures) if captures.is_empty() => {}
                Some(captures) => differing.push(captures),
                None => return Ok(None),
            }
        }
        Ok(Some(Holds { differing }))
    }
}

/// Content of a part of a definition, apart from its text encoding.
type PartContent = ([u8; 16], MimeId);

/// Returns the capture times of a part, newest first, and whether each has the content that was used. The list is empty
/// if all have it. `None` if no capture has it, or there are too many.
fn compared(
    history: impl Iterator<Item = Result<Capture, StateError>>,
    checked: Option<PartContent>,
) -> Result<Option<Vec<(i64, bool)>>, StateError> {
    let mut captures = Vec::new();
    for (count, capture) in history.enumerate() {
        let capture = capture?;
        if count == CAPTURES_MAX {
            return Ok(None);
        }
        if is_version(&capture) {
            let found = definition_part(&capture).then_some((capture.digest, capture.mime));
            captures.push((capture.time, found == checked));
        }
    }
    let same = captures.iter().filter(|(_, is_same)| *is_same).count();
    Ok(match same {
        _ if same == captures.len() && (same > 0 || checked.is_none()) => Some(Vec::new()),
        0 => None,
        _ => Some(captures),
    })
}

/// Results of checking the documents of an archive, as far as they are valid.
#[derive(Debug)]
pub struct Checks(Vec<Option<(Validity, Holds)>>);

impl Checks {
    /// Collects the results in `answers` that are valid for the visible part of the archive.
    ///
    /// # Errors
    /// If the state cannot be read.
    pub fn of(answers: &Answers, store: &Store, access: &Access) -> Result<Self, StateError> {
        let of_code = |code| {
            let checked = match answers.said(Column::Checked, code) {
                Said::Name(text) => CheckedDocument::from_text(text),
                _ => None,
            };
            let Some(checked) = checked else { return Ok(None) };
            Ok(checked.holds(store, access)?.map(|holds| (checked.validity, holds)))
        };
        (0..=answers.greatest(Column::Checked)).map(of_code).collect::<Result<_, _>>().map(Self)
    }

    /// Returns the result of checking the document of a capture; `None` if it has to be checked.
    ///
    /// # Errors
    /// If the columns or the state cannot be read.
    pub fn found(
        &self,
        answers: &Answers,
        state: &State,
        id: CaptureId,
    ) -> Result<Option<Validity>, VersionError> {
        let code = answers.code(id, Column::Checked)?;
        let Some((validity, holds)) = self.0.get(code as usize).and_then(Option::as_ref) else {
            return Ok(None);
        };
        let counts = holds.always() || holds.at(state.capture(id)?.time);
        Ok(counts.then_some(*validity))
    }
}

#[cfg(test)]
mod tests {
    use archive_storage::{CaptureKind, Location, SegmentId, UrlId};

    use super::*;

    #[test]
    fn what_is_kept_is_read_back() {
        for validity in Validity::EACH {
            for parts in [
                Vec::new(),
                vec![
                    DefinitionPart::Captured(CaptureId(7)),
                    DefinitionPart::Missing("http://h/a.dtd".into()),
                ],
            ] {
                let checked = CheckedDocument { validity, parts };
                assert_eq!(CheckedDocument::from_text(&checked.to_text()), Some(checked));
            }
        }
        for text in ["", "maybe", " 1"] {
            assert_eq!(CheckedDocument::from_text(text), None);
        }
    }

    /// Compares captures with these statuses and digests, newest first, a second apart.
    fn found(captures: &[(u16, u8)], checked: Option<u8>) -> Option<Vec<(i64, bool)>> {
        let capture = |(before, (status, digest)): (usize, &(u16, u8))| {
            Ok(Capture {
                url: UrlId(0),
                time: -(before as i64),
                location: Location { segment: SegmentId(0), offset: 0, length: 0 },
                digest: [*digest; 16],
                status: *status,
                mime: MimeId(0),
                kind: CaptureKind::Response,
                length: 0,
                flags: 0,
                original: None,
            })
        };
        let checked = checked.map(|digest| ([digest; 16], MimeId(0)));
        compared(captures.iter().enumerate().map(capture), checked).unwrap()
    }

    #[test]
    fn what_was_checked_against_has_to_be_there_still() {
        assert_eq!(found(&[(200, 1), (404, 0), (200, 1)], Some(1)), Some(Vec::new()));
        assert_eq!(
            found(&[(200, 2), (200, 1), (302, 1)], Some(1)),
            Some(vec![(0, false), (-1, true), (-2, false)])
        );
        assert_eq!(
            [found(&[(200, 2)], Some(1)), found(&[], Some(1)), found(&[(200, 1)], None)],
            [None, None, None]
        );
        assert_eq!(
            [found(&[], None), found(&[(404, 0), (302, 0)], None)],
            [Some(Vec::new()), Some(Vec::new())]
        );
        let many = [(200, 1); CAPTURES_MAX + 1];
        assert_eq!([found(&many[1..], Some(1)), found(&many, Some(1))], [Some(Vec::new()), None]);
    }

    #[test]
    fn the_nearest_capture_of_each_part_counts() {
        let holds = Holds { differing: vec![vec![(30, true), (10, false)], vec![(40, false), (0, true)]] };
        assert_eq!([0, 19, 20, 21].map(|time| holds.at(time)), [false, false, false, false]);
        let holds = Holds { differing: vec![vec![(30, true), (10, false)]] };
        assert_eq!([0, 19, 20, 21, 99].map(|time| holds.at(time)), [false, false, true, true, true]);
    }
}
