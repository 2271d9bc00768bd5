//! Ranges of bodies: what a range request asks for, what was captured of a body, and the answer (RFC 9110, section 14).

use archive_storage::warc::HttpHead;
use archive_storage::{Capture, CaptureKind, Store, StoreError};
use archive_web::parse::headers::content_range;
use bytes::Bytes;

use super::address::Modifier;
use super::{ReplayError, ReplayRequest, Response};

/// A single range of bytes that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RangeAsked {
    /// From a byte on, to another one if it is given.
    From(u64, Option<u64>),
    /// As many bytes at the end.
    Last(u64),
}

impl RangeAsked {
    /// Reads a `Range` field. `None` for several ranges and for anything else that may be ignored: the answer is then the
    /// whole body.
    pub(super) fn parse(field: &str) -> Option<Self> {
        let (first, last) = field.trim().strip_prefix("bytes=")?.split_once('-')?;
        match (first.trim(), last.trim()) {
            ("", count) => Some(Self::Last(count.parse().ok()?)),
            (first, "") => Some(Self::From(first.parse().ok()?, None)),
            (first, last) => {
                let (first, last) = (first.parse().ok()?, last.parse().ok()?);
                (first <= last).then_some(Self::From(first, Some(last)))
            }
        }
    }

    /// The first and the last byte in a body of this length; `None` if it has none of them.
    pub(super) fn within(self, length: u64) -> Option<(u64, u64)> {
        let end = length.checked_sub(1)?;
        match self {
            Self::From(first, last) => {
                (first <= end).then(|| (first, last.map_or(end, |last| last.min(end))))
            }
            Self::Last(count) => (count > 0).then(|| (length.saturating_sub(count), end)),
        }
    }
}

/// What a captured partial answer (status 206) has of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartialBody {
    /// Everything, or the server did not say which part.
    Whole,
    /// Several parts in one body, which are not taken apart.
    Several,
    /// A range, up to and including the last byte; the length of the body may be unknown.
    Range { first: u64, last: u64, length: Option<u64> },
}

impl PartialBody {
    /// Reads the head of a partial answer.
    pub(super) fn of_head(head: &HttpHead) -> Self {
        if head.media_type().is_some_and(|media_type| media_type == "multipart/byteranges") {
            return Self::Several;
        }
        match head.get("Content-Range").and_then(content_range) {
            None => Self::Whole,
            Some((0, last, Some(length))) if last + 1 == length => Self::Whole,
            Some((first, last, length)) => Self::Range { first, last, length },
        }
    }

    /// What a capture of a partial answer has.
    pub(super) fn of(store: &Store, capture: &Capture) -> Result<Self, StoreError> {
        let own = store.http_head(capture.location)?;
        match store.original(capture)? {
            Some(original) if capture.kind != CaptureKind::Response && own.status() != Some(206) => {
                Ok(Self::of_head(&store.http_head(original.location)?))
            }
            _ => Ok(Self::of_head(&own)),
        }
    }

    /// Whether it answers a request for a range, or for everything: then it is worth showing.
    pub(super) fn answers(self, asked: Option<RangeAsked>) -> bool {
        self == Self::Whole || asked.is_some_and(|asked| self.has(asked).is_some())
    }

    /// The first and the last of the bytes that a request asks for, as far as the part has them from the first on.
    pub(super) fn has(self, asked: RangeAsked) -> Option<(u64, u64)> {
        let Self::Range { first, last, length } = self else { return None };
        let (from, to) = match (asked, length) {
            (_, Some(length)) => asked.within(length)?,
            (RangeAsked::From(from, to), None) => (from, to.unwrap_or(last)),
            (RangeAsked::Last(_), None) => return None,
        };
        (first..=last).contains(&from).then(|| (from, to.min(last)))
    }
}

impl ReplayRequest<'_> {
    /// The requested range of a captured part, whose bytes are counted from where it begins. As it was received, the part
    /// is shown without a request for a range as well.
    pub(super) fn part(
        &self,
        mut response: Response,
        part: PartialBody,
        range: Option<RangeAsked>,
        modifier: Modifier,
    ) -> Result<Response, ReplayError> {
        let found = match (part, range) {
            (PartialBody::Range { first, last, .. }, None) if modifier == Modifier::Identity => {
                Some((first, last))
            }
            (PartialBody::Several, None) if modifier == Modifier::Identity => return Ok(response),
            (_, range) => range.and_then(|range| part.has(range)),
        };
        let (Some((from, to)), PartialBody::Range { first, length, .. }) = (found, part) else {
            return Ok(self.only_part(part));
        };
        // A body that was cut off has less than its head says.
        let end = (to - first + 1).min(response.length().unwrap_or(0));
        if from - first >= end {
            return Ok(self.only_part(part));
        }
        let length = length.map_or_else(|| "*".to_owned(), |length| length.to_string());
        response.set("Content-Range", &format!("bytes {from}-{}/{length}", first + end - 1));
        response.cut(from - first, end - (from - first))?;
        Ok(response)
    }
}

/// Applies a range request with a single range; several ranges get the complete response.
pub(super) fn ranged(mut response: Response, range: Option<RangeAsked>) -> Result<Response, ReplayError> {
    let asked = range.filter(|_| response.status == 200).zip(response.length());
    let Some((range, length)) = asked else { return Ok(response) };
    match range.within(length) {
        Some((first, last)) => {
            response.status = 206;
            response.set("Content-Range", &format!("bytes {first}-{last}/{length}"));
            response.cut(first, last - first + 1)?;
        }
        None => {
            response.status = 416;
            response.set("Content-Range", &format!("bytes */{length}"));
            (response.body, response.long) = (Bytes::new(), None);
        }
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_the_body_is_cut_out() {
        let whole = || Response::text(200, "text/plain", &b"0123456789"[..]);
        let part = |range| ranged(whole(), RangeAsked::parse(range)).unwrap();
        let cut = part("bytes=2-4");
        assert_eq!(
            (cut.status, &cut.body[..], cut.get("Content-Range")),
            (206, &b"234"[..], Some("bytes 2-4/10"))
        );
        let none = part("bytes=10-");
        assert_eq!((none.status, none.body.len(), none.get("Content-Range")), (416, 0, Some("bytes */10")));
        assert_eq!((part("bytes=0-1,4-5").status, part("").body.len()), (200, 10));
    }

    #[test]
    fn ranges_of_all_forms() {
        for (field, within) in [
            ("bytes=0-3", Some((0, 3))),
            ("bytes=4-", Some((4, 9))),
            ("bytes=-2", Some((8, 9))),
            ("bytes=8-99", Some((8, 9))),
            ("bytes=-99", Some((0, 9))),
            ("bytes=10-", None),
            ("bytes=-0", None),
        ] {
            assert_eq!(RangeAsked::parse(field).unwrap().within(10), within, "{field}");
        }
        assert_eq!(RangeAsked::parse("bytes=0-").unwrap().within(0), None);
        for field in ["bytes=3-1", "bytes=0-1,4-5", "lines=0-1", "bytes=99999999999999999999-", "bytes=-", ""]
        {
            assert_eq!(RangeAsked::parse(field), None, "{field}");
        }
    }

    #[test]
    fn a_part_has_what_its_server_said() {
        let part = |field: &str| {
            PartialBody::of_head(&HttpHead::parse(format!("HTTP/1.1 206 X\r\n{field}\r\n\r\n").as_bytes()))
        };
        let some = part("Content-Range: bytes 100-199/1000");
        for (asked, has) in [
            ("bytes=100-", Some((100, 199))),
            ("bytes=150-160", Some((150, 160))),
            ("bytes=199-2000", Some((199, 199))),
            ("bytes=-850", Some((150, 199))),
            ("bytes=0-", None),
            ("bytes=200-", None),
            ("bytes=-10", None),
            ("bytes=1000-", None),
        ] {
            assert_eq!(some.has(RangeAsked::parse(asked).unwrap()), has, "{asked}");
        }
        assert!(!some.answers(None));
        let open = part("Content-Range: bytes 100-199/*");
        assert_eq!(open.has(RangeAsked::From(120, None)), Some((120, 199)));
        assert_eq!(open.has(RangeAsked::Last(1)), None);
        assert_eq!(part("Content-Range: bytes 0-9/10"), PartialBody::Whole);
        assert_eq!(part("Content-Type: multipart/byteranges; boundary=x"), PartialBody::Several);
        for odd in [
            "X: y",
            "Content-Range: bytes 5-1/10",
            "Content-Range: bytes 0-10/10",
            "Content-Range: items 0-1/2",
        ] {
            assert_eq!(part(odd), PartialBody::Whole, "{odd}");
        }
    }
}
