//! Counts records that are not imported, by type.

use archive_storage::warc::RecordType;

/// Number of records of each type that were left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Descriptions of files: `warcinfo`.
    pub descriptions: u64,
    /// Other forms of captured content: `conversion`.
    pub conversions: u64,
    /// Further parts of long records: `continuation`.
    pub continuations: u64,
    /// `metadata` that belongs to no capture, or whose format is unknown.
    pub metadata: u64,
    /// `request` that is too long to keep.
    pub requests: u64,
    /// Types that are not in the standard.
    pub others: u64,
}

impl LeftOut {
    /// Counts a record.
    pub(super) fn add(&mut self, record_type: &RecordType, records: u64) {
        let count = match record_type {
            RecordType::Warcinfo => &mut self.descriptions,
            RecordType::Conversion => &mut self.conversions,
            RecordType::Continuation => &mut self.continuations,
            RecordType::Metadata => &mut self.metadata,
            RecordType::Request => &mut self.requests,
            _ => &mut self.others,
        };
        *count += records;
    }

    /// Returns the types with at least one record, and their counts.
    pub fn types(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let types = [
            ("warcinfo", self.descriptions),
            ("conversion", self.conversions),
            ("continuation", self.continuations),
            ("metadata", self.metadata),
            ("request", self.requests),
            ("of other types", self.others),
        ];
        types.into_iter().filter(|(_, count)| *count > 0)
    }

    /// Total number of records.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.types().map(|(_, count)| count).sum()
    }

    /// Returns a message; `None` if only descriptions were left out, which every file has.
    pub(super) fn words(&self) -> Option<String> {
        let types: Vec<String> = Self { descriptions: 0, ..*self }
            .types()
            .map(|(name, count)| format!("{count} {name}"))
            .collect();
        (!types.is_empty())
            .then(|| format!("records that hold no capture were left out: {}", types.join(", ")))
    }
}
