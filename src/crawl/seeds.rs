//! The seeds file: where a crawl starts, and how far it may go from there.
//!
//! Each line has one URL, then options as `name=value`; `#` starts a comment. The whole file is read before anything is
//! fetched, so that a mistake in its last line costs nothing. A list of captures (CDX, CDXJ) is one of seeds, too: the pages
//! that another archive has.

use std::collections::HashSet;
use std::time::Duration;

use archive_base::duration::read_duration;
use archive_base::memory::parse_bytes;
use archive_books::ledger::{CrawlScope, ScopeKind, ScopeRule};
use archive_storage::address::canonical;
use archive_storage::warc::{CaptureList, ListError, ListedCapture, is_list};
use url::Url;

/// A line of the seeds file.
#[derive(Debug, Clone)]
pub struct Seed {
    /// Where to start.
    pub url: Url,
    /// Scope of this seed, if it differs from the crawl's scope.
    pub scope: Option<ScopeKind>,
    /// Maximum number of links from the seed.
    pub max_depth: Option<u8>,
    /// Delay between two requests to the seed's host.
    pub delay: Option<Duration>,
    /// Maximum number of bytes that a run receives from the seed's host.
    pub bytes: Option<u64>,
}

/// An invalid line.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("line {line}, column {column}: {problem}")]
pub struct SeedError {
    /// Line number, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong, and how to fix it.
    pub problem: String,
}

/// Reads a whole seeds file, or a list of captures.
///
/// # Errors
/// All invalid lines; a file without seeds is one error, too.
pub fn read_seeds(text: &str) -> Result<Vec<Seed>, Vec<SeedError>> {
    if is_list(text.as_bytes()) {
        return listed_seeds(CaptureList::new(text.as_bytes()));
    }
    let mut seeds = Vec::new();
    let mut errors = Vec::new();
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        match read_line(line) {
            Ok(seed) => seeds.extend(seed),
            Err((column, problem)) => errors.push(SeedError { line: index + 1, column, problem }),
        }
    }
    if seeds.is_empty() && errors.is_empty() {
        let problem = "there is no seed in it; write one URL a line".to_owned();
        errors.push(SeedError { line: 1, column: 1, problem });
    }
    if errors.is_empty() { Ok(seeds) } else { Err(errors) }
}

/// Returns each URL of the web of which a list names a capture that was no error. Lines that are no entries are logged, and
/// the others read.
///
/// # Errors
/// When the list cannot be read, or names no such capture.
pub fn listed_seeds(
    list: impl Iterator<Item = Result<ListedCapture, ListError>>,
) -> Result<Vec<Seed>, Vec<SeedError>> {
    let error = |line: u64, problem| vec![SeedError { line: line as usize, column: 1, problem }];
    let (mut seeds, mut known) = (Vec::new(), HashSet::new());
    for entry in list {
        let entry = match entry {
            Ok(entry) => entry,
            Err(ListError::Line { line, what }) => {
                tracing::warn!(line, what, "a line of the list of seeds is no capture");
                continue;
            }
            Err(ListError::Io(source)) => return Err(error(1, format!("the list cannot be read: {source}"))),
        };
        let is_page = entry.status.is_none_or(|status| (200..400).contains(&status));
        if let Some(url) = Some(&entry.url).filter(|_| is_page).and_then(|url| seed_url(url).ok())
            && known.insert(canonical(&url))
        {
            seeds.push(Seed { url, scope: None, max_depth: None, delay: None, bytes: None });
        }
    }
    if seeds.is_empty() {
        return Err(error(1, "the list names no capture of a page that was there".to_owned()));
    }
    Ok(seeds)
}

/// Returns the scope of `seeds`: their own options, or else those of the crawl.
#[must_use]
pub fn scope_of(seeds: &[Seed], kind: &ScopeKind, max_depth: u8) -> CrawlScope {
    let rules = seeds.iter().map(|seed| ScopeRule {
        kind: seed.scope.clone().unwrap_or_else(|| kind.clone()),
        seed: seed.url.to_string(),
        max_depth: seed.max_depth.unwrap_or(max_depth),
        moved_from: None,
    });
    CrawlScope::from_rules(rules.collect())
}

type LineError = (usize, String);

fn read_line(line: &str) -> Result<Option<Seed>, LineError> {
    let mut words = words(line);
    let Some((column, first)) = words.next() else { return Ok(None) };
    let url = seed_url(first).map_err(|p| (column, p))?;
    let mut seed = Seed { url, scope: None, max_depth: None, delay: None, bytes: None };
    for (column, word) in words {
        set_option(&mut seed, word).map_err(|problem| (column, problem))?;
    }
    Ok(Some(seed))
}

/// Returns the words of a line with their columns, up to a comment. A `#` inside a word is part of a URL.
fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = line;
    let mut column = 1;
    std::iter::from_fn(move || {
        let trimmed = rest.trim_start();
        column += rest[..rest.len() - trimmed.len()].chars().count();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            return None;
        }
        let end = trimmed.find(char::is_whitespace).unwrap_or(trimmed.len());
        let found = (column, &trimmed[..end]);
        column += trimmed[..end].chars().count();
        rest = &trimmed[end..];
        Some(found)
    })
}

fn seed_url(word: &str) -> Result<Url, String> {
    let text = if word.contains("://") { word.to_owned() } else { format!("http://{word}") };
    let url = Url::parse(&text)
        .map_err(|error| format!("'{word}' is not a URL ({error}); write it like https://example.org/"))?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        scheme => Err(format!("'{word}' has the scheme {scheme}; only http and https can be crawled")),
    }
}

fn set_option(seed: &mut Seed, word: &str) -> Result<(), String> {
    let Some((name, value)) = word.split_once('=') else {
        return Err(format!(
            "'{word}' is not an option; options are scope=, depth=, delay= and bytes=, one URL a line"
        ));
    };
    match name {
        "scope" => seed.scope = Some(value.parse()?),
        "depth" => {
            let depth =
                value.parse().map_err(|_| format!("depth '{value}' is not a number from 0 to 255"))?;
            seed.max_depth = Some(depth);
        }
        "delay" => seed.delay = Some(read_duration(value)?),
        "bytes" => seed.bytes = Some(parse_bytes(value)? as u64),
        _ => {
            return Err(format!(
                "there is no option '{name}'; the options are scope=, depth=, delay= and bytes="
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::read_seeds;
    use std::time::Duration;

    #[test]
    fn a_list_of_captures_is_one_of_seeds() {
        let list = " CDX N b a m s k r M S V g\n\
            a 20140103030321 http://a.com/ text/html 200 X - - 1 2 f\n\
            a 20150103030321 http://A.com:80/ warc/revisit - X - - 1 2 f\n\
            b 20140103030321 http://a.com/gone text/html 404 X - - 1 2 f\n\
            broken\n\
            c 20140103030321 dns:a.com text/dns - X - - 1 2 f\n\
            d 20140103030321 https://b.com/d text/html 301 X - - 1 2 f\n";
        let seeds = read_seeds(list).unwrap();
        let urls: Vec<_> = seeds.iter().map(|seed| seed.url.as_str()).collect();
        assert_eq!(urls, ["http://a.com/", "https://b.com/d"]);
        let nothing = read_seeds("b 20140103030321 http://a.com/ text/html 404 X 1\n").unwrap_err();
        assert_eq!(nothing[0].problem, "the list names no capture of a page that was there");
    }

    #[test]
    fn seeds_have_comments_and_options() {
        let text = "\u{feff}# our seeds\n\nhttps://example.org/a#b   scope=host depth=3 delay=2s bytes=5MB # why\nexample.com\r\n";
        let seeds = read_seeds(text).unwrap();
        assert_eq!(seeds.len(), 2);
        assert_eq!(seeds[0].url.as_str(), "https://example.org/a#b");
        assert_eq!((seeds[0].max_depth, seeds[0].delay), (Some(3), Some(Duration::from_secs(2))));
        assert_eq!((seeds[0].bytes, seeds[1].bytes), (Some(5_000_000), None));
        assert_eq!(seeds[1].url.as_str(), "http://example.com/");
    }

    #[test]
    fn every_bad_line_is_reported_with_its_place() {
        let errors =
            read_seeds("http://a.test/\n  ftp://b.test/\nhttp://c.test/ dept=3\nhttp://[\n").unwrap_err();
        let places: Vec<_> = errors.iter().map(|e| (e.line, e.column)).collect();
        assert_eq!(places, [(2, 3), (3, 16), (4, 1)]);
        assert_eq!(
            errors[1].to_string(),
            "line 3, column 16: there is no option 'dept'; the options are scope=, depth=, delay= and bytes="
        );
        assert_eq!(read_seeds("# nothing\n").unwrap_err().len(), 1);
    }
}
