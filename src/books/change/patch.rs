//! Applies a delta that somebody has kept to a document that somebody has kept. Both may come from anybody.

use archive_web::reading;

use super::Difference;
use super::compare::{tree_of, unpacked};
use super::xml::{Delta, Misfit};

/// Maximum size in bytes of what a delta is read from.
pub const DELTA_BYTES_MAX: u64 = 64 << 20;

/// Why a document cannot be patched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PatchError {
    /// The delta cannot be read.
    #[error("the delta is not what `archive diff --json` prints: {0}")]
    Delta(#[from] serde_json::Error),
    /// The difference was not one of trees.
    #[error("the delta is not one of XML documents: these versions were compared by their text or bytes")]
    NotXml,
    /// The document cannot be read as a tree.
    #[error("the document is not XML, or too large to be compared as XML")]
    Document,
    /// The delta does not belong to the document.
    #[error(transparent)]
    Misfit(#[from] Misfit),
    /// The result is no document.
    #[error("the delta makes a document that is not well-formed, or too large to be compared as XML")]
    Result,
    /// Reading takes too long.
    #[error("the document or the delta takes too long to read")]
    TooLong,
}

/// Reads a delta from the JSON of a comparison.
///
/// # Errors
/// If it is not one, or not one of XML documents.
pub fn read_delta(json: &[u8]) -> Result<Delta, PatchError> {
    match serde_json::from_slice(json)? {
        Difference::Xml(delta) => Ok(delta),
        Difference::None => Ok(Delta::default()),
        Difference::Text { .. } | Difference::Bytes => Err(PatchError::NotXml),
    }
}

/// Applies a delta to the bytes of an XML document, or its inverse, and returns the other version as XML. Versions of
/// which [`super::compare`] makes a delta are read in the same way here, whatever their encoding.
///
/// # Errors
/// If the delta does not fit the document, or a bound is exceeded.
pub fn patch(document: Vec<u8>, delta: Delta, is_inverse: bool) -> Result<String, PatchError> {
    reading::in_time(move || {
        let tree = tree_of(&unpacked(document.into()), None).ok_or(PatchError::Document)?;
        let delta = if is_inverse { delta.inverted()? } else { delta };
        let made = delta.apply(&tree)?;
        let xml = made.to_xml();
        // Names and values of a delta may be anything: only what reads back as the same tree is a document.
        if tree_of(xml.as_bytes(), None).as_ref() == Some(&made) { Ok(xml) } else { Err(PatchError::Result) }
    })
    .unwrap_or(Err(PatchError::TooLong))
}
