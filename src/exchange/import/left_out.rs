//! Records that are not imported, by their types.

use archive_storage::warc::RecordType;

/// How many records of each type were left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Descriptions of files: `warcinfo`.
    pub descriptions: u64,
    /// Other forms of what was captured: `conversion`.
    pub conversions: u64,
    /// Further pieces of long records: `continuation`.
    pub continuations: u64,
    /// `metadata` of no capture, or in no form that is understood.
    pub metadata: u64,
    /// `request` that is too long to be kept.
    pub requests: u64,
    /// Types that the standard does not know.
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

    /// Types of which there are some, with their numbers.
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

    /// All together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.types().map(|(_, count)| count).sum()
    }

    /// In words; nothing when there are none but descriptions, which every file has.
    pub(super) fn words(&self) -> Option<String> {
        let types: Vec<String> = Self { descriptions: 0, ..*self }
            .types()
            .map(|(name, count)| format!("{count} {name}"))
            .collect();
        (!types.is_empty())
            .then(|| format!("records that hold no capture were left out: {}", types.join(", ")))
    }
}
