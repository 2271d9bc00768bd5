//! Sitemaps of all formats, from the library crawler-commons.

use archive_web::parse::{DocumentKind, LinkKind, ParsedDocument};

use super::{Tally, data, read};

fn count(parsed: &ParsedDocument, kind: LinkKind) -> usize {
    parsed.links.iter().filter(|link| link.kind == kind).count()
}

#[test]
fn files() {
    let mut tally = Tally::default();
    let sitemap = (DocumentKind::Sitemap, LinkKind::SitemapEntry);
    let feed = (DocumentKind::Feed, LinkKind::FeedEntry);
    for (name, content_type, (kind, entry), entries, dated, enclosures) in [
        ("atom.xml", "application/atom+xml", feed, 2, 1, 0),
        ("feed.rss", "application/rss+xml", feed, 3, 1, 0),
        ("hebdenbridgetimes-articles-sitemap.xml", "text/xml", sitemap, 74, 74, 85),
        ("sitemap-images.xml", "text/xml", sitemap, 1, 0, 2),
        ("sitemap-news.xml", "text/xml", sitemap, 2, 0, 0),
        ("sitemap-videos.xml", "text/xml", sitemap, 3, 0, 8),
        ("sitemap-with-bom.txt", "text/plain", sitemap, 2, 0, 0),
        ("sitemap.badns.xml", "text/xml", sitemap, 2, 0, 0),
        ("sitemap.index.xml", "text/xml", (DocumentKind::Sitemap, LinkKind::Sitemap), 15, 0, 0),
        ("sitemap.ns.xml", "text/xml", sitemap, 2, 0, 0),
        ("sitemap.txt", "text/plain", sitemap, 2, 0, 0),
        ("sitemap.txt.gz", "application/x-gzip", sitemap, 5, 0, 0),
        ("xmlRss_pubDate.xml", "text/xml", feed, 7, 5, 0),
        ("xmlSitemap.gz", "application/gzip", sitemap, 5, 4, 0),
    ] {
        let Some(body) = data(&format!("sitemaps/{name}")) else { return };
        let parsed = read("http://www.example.com/", content_type, &body);
        let found = (
            parsed.kind,
            count(&parsed, entry),
            parsed.entries.len(),
            count(&parsed, LinkKind::Enclosure),
            parsed.problems.len(),
        );
        if found == (kind, entries, dated, enclosures, 0) {
            tally.held();
        } else {
            tally.missed(&format!("{name}: {found:?} {:?}", parsed.problems), None);
        }
    }
    tally.finish("sitemaps", 14);
}
