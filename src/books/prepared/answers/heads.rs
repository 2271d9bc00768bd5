//! Heads of answers without the values that vary from answer to answer, so that many captures share one head: one line
//! per header, with its name in lower case and its first value, or only the name. Which values vary too much is learned
//! by counting.

use std::collections::{HashMap, HashSet};

use archive_storage::warc::HttpHead;
use xxhash_rust::xxh3::xxh3_64;

/// Maximum number of values kept of a header. Of one with more, such as `Date`, only the presence is kept.
pub(super) const VALUES_MAX: usize = 1 << 8;
/// Maximum number of headers whose values are kept.
const HEADERS_MAX: usize = 1 << 10;
/// Maximum bytes of a head.
pub(super) const HEAD_BYTES_MAX: usize = 1 << 10;

/// Values seen of each header, as hashes; `None` for headers with too many.
#[derive(Debug, Default)]
pub(super) struct HeadValues(HashMap<String, Option<HashSet<u64>>>);

impl HeadValues {
    /// Collects the values of some heads.
    pub(super) fn of<'a>(heads: impl Iterator<Item = &'a String>) -> Self {
        let mut values = Self::default();
        for (name, value) in heads.flat_map(|head| lines(head)) {
            match value {
                Some(value) => _ = values.keeps(name, value),
                None => _ = values.0.insert(name.to_owned(), None),
            }
        }
        values
    }

    /// Counts a value; returns whether it is kept.
    fn keeps(&mut self, name: &str, value: &str) -> bool {
        let is_full = self.0.len() >= HEADERS_MAX;
        let seen = match self.0.get_mut(name) {
            Some(seen) => seen,
            None if is_full => return false,
            None => self.0.entry(name.to_owned()).or_insert_with(|| Some(HashSet::new())),
        };
        if let Some(values) = seen {
            values.insert(xxh3_64(value.as_bytes()));
            if values.len() > VALUES_MAX {
                *seen = None;
            }
        }
        seen.is_some()
    }

    /// Returns what is kept of a received head; `None` if that is too long.
    pub(super) fn kept(&mut self, head: &HttpHead) -> Option<String> {
        let mut kept = String::new();
        for (name, value) in &head.fields {
            let name = name.to_ascii_lowercase();
            if lines(&kept).any(|(known, _)| known == name) {
                continue;
            }
            let is_kept = value.len() <= HEAD_BYTES_MAX && self.keeps(&name, value);
            add(&mut kept, &name, Some(value.as_str()).filter(|_| is_kept));
            if kept.len() > HEAD_BYTES_MAX {
                return None;
            }
        }
        Some(kept)
    }

    /// Returns a head without the values that are no longer kept.
    pub(super) fn left(&self, head: &str) -> String {
        let mut left = String::new();
        for (name, value) in lines(head) {
            let is_kept = self.0.get(name).is_some_and(Option::is_some);
            add(&mut left, name, value.filter(|_| is_kept));
        }
        left
    }
}

fn add(head: &mut String, name: &str, value: Option<&str>) {
    head.push_str(name);
    if let Some(value) = value {
        head.push(':');
        head.push_str(value);
    }
    head.push('\n');
}

/// Returns names and values; `None` for values that are not kept.
fn lines(head: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let line = |line| match str::split_once(line, ':') {
        Some((name, value)) => (name, Some(value)),
        None => (line, None),
    };
    head.split_terminator('\n').map(line)
}

/// Looks up a header in a head: `None` if it is absent, `Some(None)` if its value is not kept.
pub(super) fn header<'a>(head: &'a str, name: &str) -> Option<Option<&'a str>> {
    lines(head).find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}
