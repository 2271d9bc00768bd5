//! Assembles the records of a foreign file into captures.
//!
//! Other tools write request, response and metadata in any order, and interleave concurrent captures. Records of one
//! capture refer to each other in `WARC-Concurrent-To`. Old tools omit this field; a request or metadata record then
//! belongs to a capture of the same URL and date. A tool that makes a revisit of a response gives it another name, but
//! its request still refers to the response; it then belongs to the capture of the same URL at about the same time. A
//! few captures stay open, so that late records find theirs.

use std::collections::{HashSet, VecDeque};

use archive_storage::warc::{Record, RecordType};
use chrono::{DateTime, Utc};

use super::room::Bytes;

/// Maximum number of open captures.
const OPEN_MAX: usize = 16;

/// Seconds between a request and a capture of its URL within which they are of one fetch, if neither has another part.
const FETCH_SECONDS_MAX: u64 = 60;

/// Bytes that a header field or an identifier takes in addition to its text.
const FIELD_BYTES: usize = 96;

/// Bytes that a record takes in addition to its fields and its content.
const RECORD_BYTES: usize = 1024;

/// The records of a capture.
#[derive(Debug, Clone, Default)]
pub(super) struct CaptureRecords {
    /// Response, revisit, resource or conversion; `None` if there was no response.
    pub(super) main: Option<Record>,
    /// The request.
    pub(super) request: Option<Record>,
    /// What the crawler recorded about the capture.
    pub(super) metadata: Vec<Record>,
    /// Identifiers of the group's records.
    ids: HashSet<String>,
    /// Identifiers that the group's records refer to.
    refers: HashSet<String>,
    /// Memory and disk space of the group's records.
    pub(super) bytes: Bytes,
}

impl CaptureRecords {
    fn records(&self) -> impl Iterator<Item = &Record> {
        self.main.iter().chain(&self.request).chain(&self.metadata)
    }

    /// Number of records in the group.
    pub(super) fn count(&self) -> u64 {
        self.records().count() as u64
    }

    /// Whether a record with this identifier and these references belongs to the group.
    fn relates(&self, id: Option<&str>, refers: &[String]) -> bool {
        refers.iter().any(|other| self.ids.contains(other)) || id.is_some_and(|id| self.refers.contains(id))
    }

    /// Whether a record has the URL and date of the group, and hence belongs to the same fetch.
    fn is_of(&self, record: &Record) -> bool {
        let of = |record: &Record| {
            (record.header.target_uri().map(str::to_owned), record.header.get("WARC-Date").map(str::to_owned))
        };
        self.records().next().is_some_and(|first| of(first) == of(record))
    }

    /// Whether one of two groups has a request and the other the answer to it, by their URLs and times.
    fn completes(&self, other: &Self) -> bool {
        let (request, main) = match (self, other) {
            (
                Self { main: None, request: Some(request), .. },
                Self { main: Some(main), request: None, .. },
            )
            | (
                Self { main: Some(main), request: None, .. },
                Self { main: None, request: Some(request), .. },
            ) => (&request.header, main),
            _ => return false,
        };
        let is_near = |(one, other): (DateTime<Utc>, DateTime<Utc>)| {
            (one - other).num_seconds().unsigned_abs() <= FETCH_SECONDS_MAX
        };
        is_fetched(main)
            && request.target_uri() == main.header.target_uri()
            && request.date().zip(main.header.date()).is_some_and(is_near)
    }

    /// Takes over the records of another group.
    fn join(&mut self, other: Self) {
        self.main = self.main.take().or(other.main);
        self.request = self.request.take().or(other.request);
        self.metadata.extend(other.metadata);
        self.ids.extend(other.ids);
        self.refers.extend(other.refers);
        self.bytes.memory += other.bytes.memory;
        self.bytes.disk += other.bytes.disk;
    }

    fn add(&mut self, record: Record, refers: Vec<String>) {
        let fields = record.header.fields.iter().map(|(name, value)| name.len() + value.len() + FIELD_BYTES);
        let refers_bytes: usize = refers.iter().map(|id| id.len() + FIELD_BYTES).sum();
        let memory = fields.sum::<usize>() + refers_bytes + record.content.len() + RECORD_BYTES;
        self.bytes.memory += memory as u64;
        self.bytes.disk += record.rest.as_ref().map_or(0, |rest| rest.len());
        self.ids.extend(record.header.record_id().map(str::to_owned));
        self.refers.extend(refers);
        match record.header.record_type() {
            RecordType::Request => self.request = Some(record),
            RecordType::Metadata => self.metadata.push(record),
            _ => self.main = Some(record),
        }
    }
}

/// Something that the records of a file yield.
pub(super) enum ImportYield {
    /// A capture.
    Group(Box<CaptureRecords>),
    /// A record that belongs to no capture.
    LeftOut(RecordType),
}

/// The open captures of one file.
#[derive(Debug)]
pub(super) struct Gatherer {
    open: VecDeque<CaptureRecords>,
    /// Bytes in memory beyond which the oldest capture is emitted.
    bytes_max: u64,
}

impl Gatherer {
    pub(super) fn new(bytes_max: u64) -> Self {
        Self { open: VecDeque::new(), bytes_max }
    }

    /// Takes the next record, and emits captures to stay within the limits.
    pub(super) fn take(&mut self, record: Record, out: &mut Vec<ImportYield>) {
        let record_type = record.header.record_type();
        let is_main = match record_type {
            RecordType::Response | RecordType::Revisit | RecordType::Resource | RecordType::Conversion => {
                true
            }
            RecordType::Request | RecordType::Metadata => false,
            _ => {
                out.push(ImportYield::LeftOut(record_type));
                return;
            }
        };
        let header = &record.header;
        let mut refers: Vec<String> = header.get_all("WARC-Concurrent-To").map(bare).collect();
        if record_type == RecordType::Metadata {
            refers.extend(header.get("WARC-Refers-To").map(bare));
        }
        let id = header.record_id();
        let has_room = |group: &CaptureRecords| match record_type {
            RecordType::Request => group.request.is_none(),
            RecordType::Metadata => true,
            _ => group.main.is_none(),
        };
        let place = self.open.iter().position(|group| has_room(group) && group.relates(id, &refers));
        let place = place.or_else(|| {
            let is_alone = refers.is_empty();
            let is_its = |group: &CaptureRecords| {
                let answer = group.main.as_ref().map(is_fetched);
                let is_part = if is_main { is_fetched(&record) } else { answer == Some(true) };
                is_alone && has_room(group) && group.is_of(&record) && is_part
            };
            self.open.iter().rposition(is_its)
        });
        match place.and_then(|place| self.open.get_mut(place)) {
            Some(group) => group.add(record, refers),
            None => {
                let mut group = CaptureRecords::default();
                group.add(record, refers);
                self.open.push_back(group);
            }
        }
        let held = |open: &VecDeque<CaptureRecords>| open.iter().map(|group| group.bytes.memory).sum::<u64>();
        while self.open.len() > OPEN_MAX || held(&self.open) > self.bytes_max {
            self.give_out(out);
        }
    }

    /// Emits all open captures at the end of a file.
    pub(super) fn finish(&mut self, out: &mut Vec<ImportYield>) {
        while !self.open.is_empty() {
            self.give_out(out);
        }
    }

    fn give_out(&mut self, out: &mut Vec<ImportYield>) {
        let Some(mut group) = self.open.pop_front() else { return };
        if let Some(place) = self.open.iter().position(|other| group.completes(other)) {
            group.join(self.open.remove(place).unwrap_or_default());
        }
        out.push(ImportYield::Group(Box::new(group)));
    }
}

/// Whether a main record was made by a fetch; a conversion is made from another record.
fn is_fetched(main: &Record) -> bool {
    main.header.record_type() != RecordType::Conversion
}

/// Returns an identifier without its brackets.
pub(super) fn bare(id: &str) -> String {
    id.trim().trim_start_matches('<').trim_end_matches('>').to_owned()
}

#[cfg(test)]
mod tests {
    use archive_storage::warc::RecordReader;

    use super::{CaptureRecords, Gatherer, ImportYield};

    /// `TYPE ID [CONCURRENT]`, one record each. The URL is the id without its first letter, up to a blank; the second is
    /// what follows the blank.
    fn gather(records: &[(&str, &str, &str)]) -> Vec<CaptureRecords> {
        let mut file = String::new();
        for (kind, id, concurrent) in records {
            let concurrent = match *concurrent {
                "" => String::new(),
                other => format!("WARC-Concurrent-To: <{other}>\r\n"),
            };
            let (url, second) = id.split_at(1).1.split_once(' ').unwrap_or((id.split_at(1).1, "00"));
            file.push_str(&format!(
                "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <{id}>\r\nWARC-Target-URI: http://a/{url}\r\n\
                 WARC-Date: 2020-01-01T00:00:{second}Z\r\n{concurrent}Content-Length: 0\r\n\r\n\r\n\r\n"
            ));
        }
        let (mut gatherer, mut out) = (Gatherer::new(u64::MAX), Vec::new());
        for record in RecordReader::new(file.as_bytes()) {
            gatherer.take(record.unwrap(), &mut out);
        }
        gatherer.finish(&mut out);
        let groups = out.into_iter().filter_map(|gathered| match gathered {
            ImportYield::Group(group) => Some(*group),
            ImportYield::LeftOut(_) => None,
        });
        groups.collect()
    }

    #[test]
    fn every_order_of_every_tool_is_understood() {
        let orders: [&[(&str, &str, &str)]; 5] = [
            // Heritrix and warcio; wget, where the response refers to its request; two interleaved captures; old tools.
            &[("response", "a1", ""), ("request", "b1", "a1"), ("metadata", "c1", "a1")],
            &[("request", "b1", ""), ("response", "a1", "b1"), ("metadata", "c1", "a1")],
            &[
                ("response", "a1", ""),
                ("response", "a2", ""),
                ("request", "b2", "a2"),
                ("request", "b1", "a1"),
                ("metadata", "c1", "b1"),
                ("metadata", "c2", "a2"),
            ],
            &[("request", "b1", ""), ("response", "a1", ""), ("metadata", "c1", "")],
            &[("response", "a1", ""), ("request", "b1", ""), ("metadata", "c1", "")],
        ];
        for order in orders {
            let groups = gather(order);
            assert_eq!(groups.len(), order.iter().filter(|record| record.0 == "response").count());
            for group in groups {
                let id =
                    |record: &archive_storage::warc::Record| record.header.record_id().unwrap().to_owned();
                let main = id(group.main.as_ref().unwrap());
                let number = main.split_at(1).1;
                assert_eq!(id(group.request.as_ref().unwrap()), format!("b{number}"), "{order:?}");
                assert_eq!(id(&group.metadata[0]), format!("c{number}"), "{order:?}");
            }
        }
    }

    #[test]
    fn the_request_of_a_response_that_became_a_revisit_is_found() {
        for order in [
            [("revisit", "a1 01", ""), ("request", "b1 00", "r1")],
            [("request", "b1 00", "r1"), ("revisit", "a1 59", "")],
        ] {
            let groups = gather(&order);
            assert_eq!(groups.len(), 1, "{order:?}");
            assert!(groups[0].main.is_some() && groups[0].request.is_some());
        }
        for order in [
            [("revisit", "a1", ""), ("request", "b2", "r1")],
            [("conversion", "a1", ""), ("request", "b1", "")],
            [("request", "b1", ""), ("request", "b1 01", "")],
        ] {
            assert_eq!(gather(&order).len(), 2, "{order:?}");
        }
    }

    #[test]
    fn strangers_stay_apart() {
        let groups = gather(&[
            ("warcinfo", "w0", ""),
            ("request", "b1", ""),
            ("resource", "a2", ""),
            ("metadata", "c3", ""),
            ("response", "a1", "b9"),
            ("request", "b4", "a9"),
            ("conversion", "d1", "a1"),
        ]);
        let shapes: Vec<_> =
            groups.iter().map(|group| (group.main.is_some(), group.request.is_some())).collect();
        // A request and an answer of one URL and time that each refer to something else belong together.
        let both = (true, true);
        assert_eq!(shapes, [both, (true, false), (false, false), (false, true), (true, false)]);
    }
}
