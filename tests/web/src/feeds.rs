//! Lists of pages that a host publishes: RSS, Atom, sitemaps.
//!
//! Feeds show the newest of the pages near the home page. Sitemaps list every page that robots.txt allows, with the
//! time of its last change, up to [`SITEMAP_PAGES`] pages per file.

use super::Web;
use super::answer::Answerer;
use super::dates::{put_day, put_http_date, put_instant};
use super::layout::{BRANCHES, Host, decimal};
use super::links::{Target, Way};
use super::pages::Existence;
use super::random::Subject;
use super::text::{Append, vocabulary_of};

/// Largest number of pages in a sitemap.
const SITEMAP_PAGES: u32 = 500;
/// Number of pages, from the home page on, that feeds choose from.
const FEED_CANDIDATES: u32 = 8 * BRANCHES;
/// Largest number of entries in a feed.
const FEED_ENTRIES: usize = 15;

/// A page as listed in feeds and sitemaps.
struct Entry {
    local: u32,
    /// Time of its last change, in seconds since 1970.
    changed: i64,
}

/// Answers the request if the path is that of a feed or sitemap.
pub(super) fn answer(answerer: &mut Answerer, web: &Web, host: &Host, path: &[u8], now: i64) -> bool {
    let sitemaps = host.pages.div_ceil(SITEMAP_PAGES);
    match path {
        b"/feed.rss" => {
            answerer.put_type("application/rss+xml");
            put_rss(web, host, now, &mut answerer.body);
        }
        b"/feed.atom" => {
            answerer.put_type("application/atom+xml");
            put_atom(web, host, now, &mut answerer.body);
        }
        b"/sitemap.xml" if sitemaps > 1 => {
            answerer.put_type("application/xml");
            put_sitemap_index(host, sitemaps, &mut answerer.body);
        }
        b"/sitemap.xml" => {
            answerer.put_type("application/xml");
            put_sitemap(web, host, 0, now, &mut answerer.body);
        }
        _ => {
            let number =
                path.strip_prefix(b"/sitemap-").and_then(|rest| decimal(rest.strip_suffix(b".xml")?));
            let Some(number) = number.filter(|number| *number < u64::from(sitemaps)) else { return false };
            answerer.put_type("application/xml");
            put_sitemap(web, host, number as u32, now, &mut answerer.body);
        }
    }
    true
}

/// Returns the newest pages near the home page, newest first.
fn newest(web: &Web, host: &Host, now: i64) -> Vec<Entry> {
    let mut entries: Vec<Entry> =
        (1..host.pages.min(FEED_CANDIDATES)).filter_map(|local| entry(web, host, local, now)).collect();
    entries.sort_by_key(|entry| (std::cmp::Reverse(entry.changed), entry.local));
    entries.truncate(FEED_ENTRIES);
    entries
}

fn entry(web: &Web, host: &Host, local: u32, now: i64) -> Option<Entry> {
    let is_shown = web.existence(host, local, now) == Existence::Here && web.is_allowed(host, local);
    is_shown.then(|| Entry { local, changed: web.version_of(host, local, now).since.div_euclid(1_000_000) })
}

fn put_address(web: &Web, host: &Host, local: u32, out: &mut Vec<u8>) {
    Target { host: *host, local, way: Way::Direct }.put_address(web, None, out);
}

fn put_title(host: &Host, local: u32, out: &mut Vec<u8>) {
    out.put(vocabulary_of(host.key).noun(host.page_key(local).of(Subject::Topic)));
    out.push(b' ');
    out.put_number(u64::from(local));
}

fn put_rss(web: &Web, host: &Host, now: i64, out: &mut Vec<u8>) {
    out.put("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<rss version=\"2.0\">\n<channel>\n<title>");
    host.put_name(out);
    out.put("</title>\n<link>");
    put_address(web, host, 0, out);
    out.put("</link>\n<description>What is new</description>\n");
    for entry in newest(web, host, now) {
        out.put("<item><title>");
        put_title(host, entry.local, out);
        out.put("</title><link>");
        put_address(web, host, entry.local, out);
        out.put("</link><guid isPermaLink=\"true\">");
        put_address(web, host, entry.local, out);
        out.put("</guid><pubDate>");
        put_http_date(entry.changed, out);
        out.put("</pubDate></item>\n");
    }
    out.put("</channel>\n</rss>\n");
}

fn put_atom(web: &Web, host: &Host, now: i64, out: &mut Vec<u8>) {
    let entries = newest(web, host, now);
    out.put(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\">\n<title>",
    );
    host.put_name(out);
    out.put("</title>\n<id>");
    put_address(web, host, 0, out);
    out.put("</id>\n<link rel=\"self\" href=\"/feed.atom\"/>\n<updated>");
    let updated = entries.first().map_or_else(|| web.config.start.timestamp(), |entry| entry.changed);
    put_instant(updated, out);
    out.put("</updated>\n");
    for entry in entries {
        out.put("<entry><title>");
        put_title(host, entry.local, out);
        out.put("</title><link rel=\"alternate\" href=\"");
        put_address(web, host, entry.local, out);
        out.put("\"/><id>");
        put_address(web, host, entry.local, out);
        out.put("</id><updated>");
        put_instant(entry.changed, out);
        out.put("</updated></entry>\n");
    }
    out.put("</feed>\n");
}

fn put_sitemap_index(host: &Host, sitemaps: u32, out: &mut Vec<u8>) {
    out.put("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n");
    out.put("<sitemapindex xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n");
    for number in 0..sitemaps {
        out.put("<sitemap><loc>http://");
        host.put_name(out);
        out.put("/sitemap-");
        out.put_number(u64::from(number));
        out.put(".xml</loc></sitemap>\n");
    }
    out.put("</sitemapindex>\n");
}

fn put_sitemap(web: &Web, host: &Host, number: u32, now: i64, out: &mut Vec<u8>) {
    out.put("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n");
    out.put("<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n");
    let first = number * SITEMAP_PAGES;
    for entry in
        (first..host.pages.min(first + SITEMAP_PAGES)).filter_map(|local| entry(web, host, local, now))
    {
        out.put("<url><loc>");
        put_address(web, host, entry.local, out);
        out.put("</loc><lastmod>");
        // Half of the hosts give only the day.
        if host.key.of(Subject::Created).below(2) == 0 {
            put_day(entry.changed, out);
        } else {
            put_instant(entry.changed, out);
        }
        out.put("</lastmod></url>\n");
    }
    out.put("</urlset>\n");
}
