//! Kinds of captures, in records and in the state.

/// The kind of a capture, which decides the type of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum CaptureKind {
    /// A complete response.
    Response = 0,
    /// The same payload as an earlier capture, of this URL or another (`revisit`, identical-payload-digest).
    Identical = 1,
    /// The server reported that nothing changed (`revisit`, server-not-modified).
    NotModified = 2,
    /// Something other than an HTTP response, for example DNS (`resource`).
    Resource = 3,
    /// There was no response; only metadata was kept.
    Failed = 4,
}

impl CaptureKind {
    /// Whether the record holds the payload itself.
    #[must_use]
    pub fn has_payload(self) -> bool {
        matches!(self, Self::Response | Self::Resource)
    }

    pub(crate) fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Response,
            1 => Self::Identical,
            2 => Self::NotModified,
            3 => Self::Resource,
            _ => Self::Failed,
        }
    }
}
