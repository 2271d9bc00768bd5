//! Fields of a CDX line.

/// A field. Names are those of pywb; those of OpenWayback are accepted, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CdxField {
    UrlKey,
    Timestamp,
    Url,
    Mime,
    Status,
    Digest,
    Redirect,
    RobotFlags,
    Length,
    Offset,
    FileName,
    /// The method of the request, unless it is `GET`.
    Method,
    /// An unknown field, which never has a value.
    Unknown,
}

impl CdxField {
    /// The eleven fields of the CDX format, in their order.
    pub(super) const CDX: [Self; 11] = [
        Self::UrlKey,
        Self::Timestamp,
        Self::Url,
        Self::Mime,
        Self::Status,
        Self::Digest,
        Self::Redirect,
        Self::RobotFlags,
        Self::Length,
        Self::Offset,
        Self::FileName,
    ];

    /// The fields of a JSON object, those without a value left out.
    pub(super) const JSON: [Self; 12] = {
        let mut fields = [Self::Method; 12];
        let (mut place, cdx) = (0, Self::CDX);
        while place < cdx.len() {
            fields[place] = cdx[place];
            place += 1;
        }
        fields
    };

    pub(super) fn named(name: &str) -> Self {
        match name {
            "urlkey" | "k" => Self::UrlKey,
            "timestamp" | "t" => Self::Timestamp,
            "url" | "original" | "u" => Self::Url,
            "mime" | "mimetype" | "m" => Self::Mime,
            "status" | "statuscode" => Self::Status,
            "digest" | "d" => Self::Digest,
            "redirect" => Self::Redirect,
            "robotflags" => Self::RobotFlags,
            "length" | "l" | "s" => Self::Length,
            "offset" | "o" => Self::Offset,
            "filename" | "f" => Self::FileName,
            "method" => Self::Method,
            _ => Self::Unknown,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::UrlKey => "urlkey",
            Self::Timestamp => "timestamp",
            Self::Url => "url",
            Self::Mime => "mime",
            Self::Status => "status",
            Self::Digest => "digest",
            Self::Redirect => "redirect",
            Self::RobotFlags => "robotflags",
            Self::Length => "length",
            Self::Offset => "offset",
            Self::FileName => "filename",
            Self::Method => "method",
            Self::Unknown => "",
        }
    }
}
