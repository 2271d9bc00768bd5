//! Feeds: relative references and `xml:base`, from the library feedparser.
//!
//! Each file states in a comment what is expected. Every URL in it must be among the links, or be a prefix of one if it
//! is a base.

use archive_storage::address::canonical;
use archive_web::parse::ParsedDocument;
use url::Url;

use super::archives::untar;
use super::{Tally, data, read};

#[test]
fn references_titles_and_texts() {
    let Some(archive) = data("feeds/feeds-wellformed-base-rss.tar.gz") else { return };
    let mut tally = Tally::default();
    let mut read_only = 0;
    for (name, body) in untar(&archive).into_iter().filter(|(name, _)| name.ends_with(".xml")) {
        let text = String::from_utf8_lossy(&body).into_owned();
        let expected = line_of(&text, "Expect:").expect("every file says what is expected");
        // The files use this field as the base, as in RFC 2616; here, the caller passes the base.
        let base = line_of(&text, "Content-Location:");
        let own = format!("http://127.0.0.1:8097/tests/wellformed/{name}");
        let parsed = read(base.unwrap_or(&own), "application/xml", &body);
        match holds(&parsed, expected) {
            Some(true) => tally.held(),
            Some(false) => {
                let links: Vec<_> = parsed.links.iter().map(|link| &link.url).collect();
                let case = format!("{name}: {expected} {:?} {:?} {links:?}", parsed.title, parsed.text);
                tally.missed(&case, reason(&text, expected));
            }
            None => read_only += 1,
        }
    }
    println!("feeds: {read_only} more are about persons, dates and the like, and were read");
    tally.finish("feeds", 173);
}

/// Whether an expectation is met; `None` if it concerns something that a crawler has no use for.
fn holds(parsed: &ParsedDocument, expected: &str) -> Option<bool> {
    let (what, value) = expected.split_once("==")?;
    let value = value.trim().trim_start_matches('u').trim_matches(['\'', '"']);
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    if value.contains("http://") {
        let url = url_in(value);
        let url = url
            .replace("\\u00c0", "%C3%80")
            .replace("www.\\u8a79\\u59c6\\u65af.com", "www.xn--8ws00zhy3a.com");
        let url = Url::parse(&url).map_or(url, |url| canonical(&url));
        let is_base = what.contains("['base']");
        return Some(
            parsed.links.iter().any(|link| link.url == url || (is_base && link.url.starts_with(&url))),
        );
    }
    let what = what.trim_start_matches("not bozo and ").trim();
    if what == "feed['title']" {
        return Some(parsed.title == words(value));
    }
    let names = ["title", "description", "summary", "tagline"];
    let is_text = names
        .iter()
        .any(|name| ["feed", "entries[0]"].iter().any(|place| what == format!("{place}['{name}']")));
    // Only the visible part of the markup counts as text.
    let value = value.split("' and ").next().unwrap_or_default();
    let seen = read("http://a.example/", "text/html", value.as_bytes()).text;
    is_text.then(|| words(&parsed.text).contains(&words(&seen)))
}

fn line_of<'t>(text: &'t str, field: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.split_once(field)).map(|(_, value)| value.trim())
}

fn url_in(text: &str) -> &str {
    let start = text.find("http").unwrap_or(text.len());
    let end = text[start..].find(['\'', '"']).map_or(text.len(), |length| start + length);
    &text[start..end]
}

fn reason(text: &str, expected: &str) -> Option<&'static str> {
    if expected.contains("['id']") || expected.contains("['guid']") {
        return Some("an id names, and is not to be fetched (RFC 4287, 4.2.6)");
    }
    if expected.contains("&lt;!'") {
        return Some("HTML takes it for a comment");
    }
    if text.contains("<CHANNEL") {
        return Some("CDF, the format of a browser of 1997, is read as any XML");
    }
    if text.contains("href=\"\"") {
        return Some("an empty reference leads to the document itself");
    }
    if expected.contains("['base']") {
        return Some("no reference stands under the base");
    }
    None
}
