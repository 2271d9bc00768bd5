//! Per-URL sums over captures, from one pass over the table of captures.

use archive_books::ledger::capture_flags::is_erased;
use archive_storage::{Capture, CaptureKind, State, StateError, UrlId};

/// Sums over the captures of a URL: 16 bytes, because there is one for every known URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CaptureSums {
    /// Time of the newest capture, seconds since 1970; 0 if there is none.
    newest: u32,
    /// Time of the first of the newest captures that all failed, seconds since 1970; 0 if the newest capture is good.
    pub(super) failing_since: u32,
    /// Size of the newest good version in bytes; 0 if there was never one with a payload.
    pub(super) bytes: u32,
    /// Size of the longest good version before it, in bytes.
    pub(super) bytes_before: u32,
}

impl CaptureSums {
    /// Sums for every URL, by its number.
    pub(super) fn of_all(state: &State) -> Result<Vec<Self>, StateError> {
        let mut all = vec![Self::default(); state.url_count() as usize];
        for capture in state.captures() {
            let (_, capture) = capture?;
            if let Some(past) = all.get_mut(capture.url.index()).filter(|_| !is_erased(&capture)) {
                past.see(&capture);
            }
        }
        Ok(all)
    }

    pub(super) fn of(all: &[Self], url: UrlId) -> Self {
        all.get(url.index()).copied().unwrap_or_default()
    }

    /// Whether there ever was a good capture.
    pub(super) fn was_good(self) -> bool {
        self.bytes > 0
    }

    /// Size of the newest version relative to the longest one before; 1 if there is nothing to compare.
    pub(super) fn kept(self) -> f64 {
        if self.bytes_before == 0 { 1.0 } else { f64::from(self.bytes) / f64::from(self.bytes_before) }
    }

    fn see(&mut self, capture: &Capture) {
        let time = u32::try_from(capture.time / 1_000_000).unwrap_or(0);
        let is_good = capture.kind == CaptureKind::NotModified || (200..300).contains(&capture.status);
        if time < self.newest {
            // Imported after newer captures.
            if is_good {
                self.bytes_before = self.bytes_before.max(capture.length);
            }
            return;
        }
        self.newest = time;
        if !is_good {
            self.failing_since = if self.failing_since == 0 { time } else { self.failing_since };
            return;
        }
        self.failing_since = 0;
        if capture.kind != CaptureKind::NotModified && capture.length > 0 {
            self.bytes_before = self.bytes_before.max(self.bytes);
            self.bytes = capture.length;
        }
    }
}

#[cfg(test)]
mod tests {
    use archive_storage::{Location, MimeId};

    use super::*;

    fn past(captures: &[(i64, u16, u32)]) -> CaptureSums {
        let mut past = CaptureSums::default();
        for &(seconds, status, length) in captures {
            let kind = if status == 304 { CaptureKind::NotModified } else { CaptureKind::Response };
            past.see(&Capture {
                url: UrlId(0),
                time: seconds * 1_000_000,
                location: Location::default(),
                digest: [0; 16],
                status,
                mime: MimeId::default(),
                kind,
                length,
                flags: 0,
                original: None,
            });
        }
        past
    }

    #[test]
    fn failures_and_lengths_are_read_from_the_captures() {
        let fails = past(&[(1, 200, 9000), (2, 503, 20), (3, 404, 30)]);
        assert_eq!((fails.failing_since, fails.was_good(), fails.kept()), (2, true, 1.0));
        let recovered = past(&[(1, 200, 9000), (2, 503, 20), (3, 304, 0)]);
        assert_eq!((recovered.failing_since, recovered.bytes), (0, 9000));
        let shrunk = past(&[(1, 200, 500), (2, 200, 8000), (3, 200, 800)]);
        assert_eq!(shrunk.kept(), 0.1);
        assert!(!past(&[(1, 404, 700)]).was_good());
        // An older capture that arrives late only serves for comparison.
        let late = past(&[(5, 200, 800), (2, 200, 8000), (3, 500, 10)]);
        assert_eq!((late.failing_since, late.bytes, late.bytes_before), (0, 800, 8000));
    }
}
