//! What checking an XML document against its definition found, in a form that is kept: it counts as long as the archive has the
//! same definition for the document.

use archive_storage::{Capture, CaptureId, MimeId, State, StateError, Store};

use super::compare::{VersionError, definition_part, is_version, validated};
use crate::access::Access;
use crate::parse::Validity;
use crate::prepared::{Answers, Column, Said};

/// Captures of a part of a definition that are looked at to see whether it is the same; with more, documents are checked anew.
const CAPTURES_MAX: usize = 64;

/// A part of a definition that was looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// It is what this capture has.
    Captured(CaptureId),
    /// The archive has nothing at this URL.
    Missing(String),
}

/// What checking a document found, and the parts of its definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Checked {
    /// Whether it is valid.
    validity: Validity,
    parts: Vec<Part>,
}

/// For documents of which times something counts that was found by checking.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Holds {
    /// Of each part whose captures differ: their times in microseconds since 1970, newest first, and whether they have what was
    /// checked against.
    differing: Vec<Vec<(i64, bool)>>,
}

impl Holds {
    /// Whether it counts for documents of all times.
    fn always(&self) -> bool {
        self.differing.is_empty()
    }

    /// Whether it counts for a document of a time in microseconds since 1970.
    fn at(&self, time: i64) -> bool {
        // Of two that are equally near the newer one counts, as in [`super::version_near`].
        let nearest = |part: &Vec<(i64, bool)>| {
            part.iter().min_by_key(|(captured, _)| captured.abs_diff(time)).is_some_and(|(_, same)| *same)
        };
        self.differing.iter().all(nearest)
    }
}

impl Checked {
    /// Checks the XML document of a capture; none of other documents, as [`super::validate`].
    ///
    /// # Errors
    /// When records cannot be read.
    pub(crate) fn of(
        store: &Store,
        access: &Access,
        capture: &Capture,
    ) -> Result<Option<Self>, VersionError> {
        let found = validated(store, access, capture)?;
        Ok(found.map(|(validation, parts)| Self { validity: validation.validity(), parts }))
    }

    /// As it is kept: what was found, then the numbers of captures, and URLs of which there were none.
    pub(crate) fn to_text(&self) -> String {
        let parts = self.parts.iter().map(|part| match part {
            Part::Captured(id) => format!(" {}", id.0),
            Part::Missing(url) => format!(" {url}"),
        });
        std::iter::once(self.validity.name().to_owned()).chain(parts).collect()
    }

    /// The same read back; none if that is not what the text is.
    fn from_text(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let name = words.next()?;
        let validity = Validity::EACH.into_iter().find(|validity| validity.name() == name)?;
        let part = |word: &str| match word.parse() {
            Ok(id) => Part::Captured(CaptureId(id)),
            Err(_) => Part::Missing(word.to_owned()),
        };
        Some(Self { validity, parts: words.map(part).collect() })
    }

    /// For which documents it counts, by what is shown of the archive; none if for none.
    ///
    /// # Errors
    /// When the state cannot be read.
    fn holds(&self, store: &Store, access: &Access) -> Result<Option<Holds>, StateError> {
        let mut differing = Vec::new();
        for part in &self.parts {
            let (url, checked) = match part {
                Part::Captured(id) => {
                    let capture = store.state().capture(*id)?;
                    (Some(capture.url), Some((capture.digest, capture.mime)))
                }
                Part::Missing(url) => (store.state().find(url)?, None),
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

/// What a part of a definition is made of, besides how its text is encoded.
type Content = ([u8; 16], MimeId);

/// The times of the captures of a part, newest first, and whether they have what was checked against; no captures if all have, none
/// if no capture has, or there are too many.
fn compared(
    history: impl Iterator<Item = Result<Capture, StateError>>,
    checked: Option<Content>,
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

/// What checking found of the documents of an archive, as far as it counts.
#[derive(Debug)]
pub(crate) struct Checks(Vec<Option<(Validity, Holds)>>);

impl Checks {
    /// That of what answers said, by what is shown of the archive.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub(crate) fn of(answers: &Answers, store: &Store, access: &Access) -> Result<Self, StateError> {
        let of_code = |code| {
            let checked = match answers.said(Column::Checked, code) {
                Said::Name(text) => Checked::from_text(text),
                _ => None,
            };
            let Some(checked) = checked else { return Ok(None) };
            Ok(checked.holds(store, access)?.map(|holds| (checked.validity, holds)))
        };
        (0..=answers.greatest(Column::Checked)).map(of_code).collect::<Result<_, _>>().map(Self)
    }

    /// What checking the document of a capture found; none if it has to be checked.
    ///
    /// # Errors
    /// When the columns or the state cannot be read.
    pub(crate) fn found(
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
            for parts in
                [Vec::new(), vec![Part::Captured(CaptureId(7)), Part::Missing("http://h/a.dtd".into())]]
            {
                let checked = Checked { validity, parts };
                assert_eq!(Checked::from_text(&checked.to_text()), Some(checked));
            }
        }
        for text in ["", "maybe", " 1"] {
            assert_eq!(Checked::from_text(text), None);
        }
    }

    /// Captures with these statuses and digests, newest first, a second apart.
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
