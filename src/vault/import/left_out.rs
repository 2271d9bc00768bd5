//! Counts records that are not imported, by type.

use std::collections::BTreeMap;

use archive_storage::warc::RecordType;
use serde::ser::{Serialize, SerializeStruct, Serializer};

/// The types of records that may be left out.
const TYPES: [&str; 6] = [
    // Descriptions of files.
    "warcinfo",
    // Other forms of content whose capture is in the archive.
    "conversion",
    // Further parts of long records.
    "continuation",
    // It belongs to no capture, or its format is unknown.
    "metadata",
    // It is too long to keep, or there is no answer to it.
    "request",
    // Types that are not in the standard.
    "of other types",
];

/// Number of records of each type that were left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftOut([u64; TYPES.len()]);

/// The total, and the count of each type.
impl Serialize for LeftOut {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("LeftOut", 2)?;
        fields.serialize_field("left_out", &self.total())?;
        fields.serialize_field("left_out_types", &self.types().collect::<BTreeMap<_, _>>())?;
        fields.end()
    }
}

impl LeftOut {
    /// Counts a record.
    pub(super) fn add(&mut self, record_type: &RecordType, records: u64) {
        let place = TYPES.iter().position(|name| *name == record_type.as_str());
        self.0[place.unwrap_or(TYPES.len() - 1)] += records;
    }

    /// Returns the types with at least one record, and their counts.
    pub fn types(&self) -> impl Iterator<Item = (&'static str, u64)> {
        TYPES.into_iter().zip(self.0).filter(|(_, count)| *count > 0)
    }

    /// Total number of records.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns a message; `None` if only descriptions were left out, which every file has.
    pub(super) fn words(&self) -> Option<String> {
        let types = self.types().filter(|(name, _)| *name != TYPES[0]);
        let types: Vec<String> = types.map(|(name, count)| format!("{count} {name}")).collect();
        (!types.is_empty())
            .then(|| format!("records that hold no capture were left out: {}", types.join(", ")))
    }
}
