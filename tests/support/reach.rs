//! What a correct crawler finds on a test web, derived from the web's ground truth rather than from its pages.

use std::collections::BTreeSet;

use archive_testweb::{PageIndex, Web};

/// Number of a host's sections, whose pages link to its feeds as its home page does.
const SECTIONS: u64 = 8;

/// Number of a host's pages in one sitemap.
const SITEMAP_PAGES: u64 = 500;

/// Returns every URL that a crawl of the whole web from `seeds` captures: pages that robots.txt allows, their
/// requisites, redirects and the pages after them, feeds, sitemaps, addresses of missing pages, and robots.txt.
pub(crate) fn reach(web: &Web, seeds: &[String]) -> BTreeSet<String> {
    reach_within(web, seeds, |_| true)
}

/// Returns the same for a crawl that captures only the URLs that are `wanted`.
pub(crate) fn reach_within(web: &Web, seeds: &[String], wanted: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let time = web.clock().now();
    let mut found = BTreeSet::new();
    let mut open: Vec<String> = seeds.to_vec();
    while let Some(url) = open.pop() {
        let page = web.page_of(&url);
        let is_forbidden = page.is_some_and(|page| !web.allowed(page));
        if is_forbidden || !wanted(&url) || !found.insert(url.clone()) {
            continue;
        }
        if let Some((root, host)) = root_of(&url)
            && found.insert(format!("{root}/robots.txt"))
            && web.config().feeds
        {
            let pages = web.host_named(host).map_or(0, |host| count(web.pages_of(host)));
            open.push(format!("{root}/sitemap.xml"));
            if pages > SITEMAP_PAGES {
                let files = pages.div_ceil(SITEMAP_PAGES);
                open.extend((0..files).map(|number| format!("{root}/sitemap-{number}.xml")));
            }
            open.extend(listed(web, host));
        }
        match page {
            Some(page) if web.exists(page, time) => {
                open.extend(web.link_urls(page, time));
                open.extend(web.requisites(page));
                if web.config().feeds && local(web, page) <= SECTIONS {
                    let root = root_of(&url).map(|(root, _)| root).unwrap_or_default();
                    open.extend(["rss", "atom"].map(|form| format!("{root}/feed.{form}")));
                }
            }
            Some(_) => {}
            None => open.extend(redirect_target(web, &url)),
        }
    }
    found
}

/// Returns scheme and host of a URL, and the host alone.
fn root_of(url: &str) -> Option<(&str, &str)> {
    let host = url.strip_prefix("http://")?.split('/').next()?;
    Some((&url[.."http://".len() + host.len()], host))
}

fn count(range: std::ops::Range<u64>) -> u64 {
    range.end - range.start
}

/// Returns a page's number on its host.
fn local(web: &Web, page: PageIndex) -> u64 {
    page.0 - web.pages_of(web.host_of(page)).start
}

/// Returns the pages in a host's sitemaps.
fn listed(web: &Web, host: &str) -> Vec<String> {
    let Some(host) = web.host_named(host) else { return Vec::new() };
    let pages = web.pages_of(host).map(PageIndex);
    pages.filter(|page| web.exists(*page, web.clock().now())).map(|page| web.url(page)).collect()
}

/// Returns the target of `/go/HOPS-STATUS/PAGE`: the next hop, or the page.
fn redirect_target(web: &Web, url: &str) -> Option<String> {
    let (root, host) = root_of(url)?;
    let (hops, rest) = url.strip_prefix(root)?.strip_prefix("/go/")?.split_once('-')?;
    let hops: u32 = hops.parse().ok()?;
    if hops > 1 {
        return Some(format!("{root}/go/{}-{rest}", hops - 1));
    }
    let page: u64 = rest.split_once('/')?.1.parse().ok()?;
    Some(web.url(PageIndex(web.pages_of(web.host_named(host)?).start + page)))
}
