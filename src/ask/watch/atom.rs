//! The changes of a watch as an Atom feed (RFC 4287): an entry per page and report, with the difference as HTML.

use std::fmt::Write as _;

use archive_base::program;
use archive_base::texts::Language;
use archive_books::change::{LineMark, VersionComparison, lines};
use archive_storage::Digest;

use super::report::{ElementNews, PageNews, WatchReport};
use super::{Watch, WatchError, data_time};

/// Maximum number of entries in a feed.
const ENTRIES_MAX: usize = 100;

/// Maximum number of lines of a page's difference in its entry.
const LINES_PER_PAGE_MAX: usize = 200;

/// Renders the feed of a watch from its reports, newest first.
pub(super) fn feed(
    watch: &Watch,
    reports: impl Iterator<Item = Result<WatchReport, WatchError>>,
) -> Result<String, WatchError> {
    let mut entries = String::new();
    let mut updated = None;
    let mut count = 0;
    for report in reports {
        let report = report?;
        updated.get_or_insert(report.until);
        for page in report.news.iter().take(ENTRIES_MAX - count) {
            count += 1;
            put_entry(watch, &report, page, &mut entries);
        }
        if count >= ENTRIES_MAX {
            break;
        }
    }
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n");
    out.push_str("<feed xmlns=\"http://www.w3.org/2005/Atom\">\n");
    put_element("title", &format!("Changes: {}", watch.name), &mut out);
    put_element("subtitle", &watch.query, &mut out);
    put_element("id", &identifier(watch), &mut out);
    put_element("updated", &data_time(updated.unwrap_or(watch.since)), &mut out);
    out.push_str("<author><name>archive</name></author>\n");
    out.push_str(&format!("<generator version=\"{}\">archive</generator>\n", program::VERSION));
    out.push_str(&entries);
    out.push_str("</feed>\n");
    Ok(out)
}

/// Atom identifier of a watch. The query distinguishes watches with the same name in different archives.
fn identifier(watch: &Watch) -> String {
    format!("urn:archive:watch:{}:{}", watch.name, Digest::sha256(watch.query.as_bytes()).short_hex())
}

fn put_entry(watch: &Watch, report: &WatchReport, page: &PageNews, out: &mut String) {
    out.push_str("<entry>\n");
    let title = page.title.as_deref().filter(|title| !title.is_empty()).unwrap_or(&page.url);
    put_element("title", &format!("{}: {title}", page.news.name()), out);
    let page_id = Digest::sha256(page.url.as_bytes()).short_hex();
    let id = format!("{}:{}:{page_id}", identifier(watch), report.until.timestamp());
    put_element("id", &id, out);
    put_element("updated", &data_time(page.seen), out);
    out.push_str("<link rel=\"alternate\" href=\"");
    put_escaped(&page.url, out);
    out.push_str("\"/>\n<content type=\"html\">");
    put_escaped(&html(page), out);
    out.push_str("</content>\n</entry>\n");
}

fn html(page: &PageNews) -> String {
    let difference = page.difference.as_ref().map(html_of_difference).unwrap_or_default();
    let mut out = String::from("<p>");
    out.push_str(page.news.name());
    out.push_str(": <a href=\"");
    put_escaped(&page.url, &mut out);
    out.push_str("\">");
    put_escaped(&page.url, &mut out);
    out.push_str("</a></p>");
    for (value, is_new) in page.values.iter().flat_map(ElementNews::each) {
        let tag = if is_new { "ins" } else { "del" };
        let _ = write!(out, "<p><{tag}>");
        put_escaped(value, &mut out);
        let _ = write!(out, "</{tag}></p>");
    }
    out + &difference
}

fn html_of_difference(difference: &VersionComparison) -> String {
    let mut out = String::new();
    let lines = lines(difference, true, Language::English);
    for line in lines.iter().filter(|line| !line.is_empty()).take(LINES_PER_PAGE_MAX) {
        out.push_str("<p>");
        for (mark, text) in line {
            let tag = match mark {
                LineMark::Gone => "del",
                LineMark::Fresh => "ins",
                LineMark::Plain | LineMark::Moved => "span",
            };
            let _ = write!(out, "<{tag}>");
            put_escaped(text, &mut out);
            let _ = write!(out, "</{tag}>");
        }
        out.push_str("</p>");
    }
    if lines.len() > LINES_PER_PAGE_MAX {
        let _ = write!(out, "<p>… {} more lines</p>", lines.len() - LINES_PER_PAGE_MAX);
    }
    out
}

fn put_element(name: &str, text: &str, out: &mut String) {
    let _ = write!(out, "<{name}>");
    put_escaped(text, out);
    let _ = writeln!(out, "</{name}>");
}

/// Escapes text for XML, and drops characters that XML 1.0 does not allow.
fn put_escaped(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' => out.push(c),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => {}
            c => out.push(c),
        }
    }
}
