//! Where the time of a page goes: each stage of the pipeline alone, on pages of the test web, with bytes a second.
//!
//!     cargo bench --bench pipeline
//!
//! The stages of one page add up to what one core can crawl at best; network and disk come on top.

use archive::crawl::{Frontier, Pick, Politeness};
use archive::importance::{Ledger, Policy, Weight};
use archive::parse::{Limits, Source, parse};
use archive::testweb::{Config, PageIndex, Reader, Web};
use archive_storage::segment::{CaptureBody, CaptureGroup, Codec, SegmentOptions};
use archive_storage::{Digest, HostId, Store, UrlId};
use bytes::Bytes;
use chrono::DateTime;
use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use std::time::{Duration, Instant};
use url::Url;

/// Pages in one sample.
const PAGES: u64 = 200;

fn main() {
    divan::main();
}

struct Page {
    url: Url,
    http: Bytes,
    body: Vec<u8>,
}

fn pages() -> Vec<Page> {
    let web = Web::new(Config::sized(1, 50, 5000)).expect("the numbers are in range");
    let mut reader = Reader::default();
    let mut pages = Vec::new();
    for page in (0..5000).step_by((5000 / PAGES) as usize) {
        let url = web.url(PageIndex(page));
        let Some(http) = reader.get(&web, &url).map(Bytes::copy_from_slice) else { continue };
        let body = reader.body(&web, &url).map(<[u8]>::to_vec).unwrap_or_default();
        let url = Url::parse(&url).expect("the test web has proper URLs");
        pages.push(Page { url, http, body });
    }
    pages
}

fn bytes_of(pages: &[Page]) -> BytesCount {
    BytesCount::new(pages.iter().map(|page| page.body.len()).sum::<usize>())
}

#[divan::bench]
fn digest(bencher: Bencher<'_, '_>) {
    let pages = pages();
    bencher.counter(bytes_of(&pages)).counter(ItemsCount::new(pages.len())).bench(|| {
        for page in &pages {
            divan::black_box(Digest::sha256(&page.body));
        }
    });
}

#[divan::bench]
fn parse_pages(bencher: Bencher<'_, '_>) {
    let pages = pages();
    let limits = Limits::default();
    bencher.counter(bytes_of(&pages)).counter(ItemsCount::new(pages.len())).bench(|| {
        for page in &pages {
            let source =
                Source { url: &page.url, status: 200, content_type: None, headers: &[], body: &page.body };
            divan::black_box(parse(&source, &limits));
        }
    });
}

#[divan::bench(args = [Codec::Zstd, Codec::Gzip])]
#[expect(clippy::field_reassign_with_default, reason = "the options may get more fields")]
fn encode(bencher: Bencher<'_, '_>, codec: Codec) {
    let pages = pages();
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let mut options = SegmentOptions::default();
    options.codec = Some(codec);
    let store = Store::own(folder.path(), options).expect("the folder is ours");
    let encoder = store.encoder().expect("the store is ours");
    bencher.counter(bytes_of(&pages)).counter(ItemsCount::new(pages.len())).bench(|| {
        for page in &pages {
            let group = CaptureGroup {
                url: page.url.to_string(),
                time: DateTime::UNIX_EPOCH,
                address: None,
                request: None,
                body: CaptureBody::Response { http: page.http.clone(), truncated: None },
                payload_digest: Some(Digest::sha256(&page.body)),
                protocols: Vec::new(),
                metadata: Vec::new(),
            };
            divan::black_box(encoder.encode(group).expect("pages of the test web are small"));
        }
    });
}

/// Transfers of cash along 30 links a page.
#[divan::bench]
fn transfers(bencher: Bencher<'_, '_>) {
    const LINKS: u64 = 30;
    let mut ledger = Ledger::new(Policy::default());
    let mut accounts: Vec<_> = (0..100_000).map(|_| ledger.discover()).collect();
    let mut page = 0_usize;
    bencher.counter(ItemsCount::new(PAGES * LINKS)).bench_local(|| {
        for _ in 0..PAGES {
            page = (page * 31 + 7) % accounts.len();
            let mut account = accounts[page];
            let mut payout = ledger.visit(&mut account, LINKS * u64::from(Weight::LINK.parts()));
            accounts[page] = account;
            for link in 0..LINKS as usize {
                let target = (page * 17 + link * 101) % accounts.len();
                let paid = accounts[target];
                accounts[target].base = payout.pay(paid.base, paid.credit.is_some(), Weight::LINK);
            }
            payout.finish();
        }
    });
}

/// URLs pushed to and picked from a frontier of 1000 hosts.
#[divan::bench]
fn frontier(bencher: Bencher<'_, '_>) {
    const URLS: u32 = 20_000;
    const HOSTS: u32 = 1000;
    let politeness = Politeness {
        host_delay: Duration::ZERO,
        address_delay: Duration::ZERO,
        per_host: 8,
        per_address: u32::MAX,
    };
    bencher.counter(ItemsCount::new(URLS)).bench(|| {
        let now = Instant::now();
        let mut frontier = Frontier::new(politeness.clone());
        for url in 0..URLS {
            let pushed = frontier.push(UrlId(url), HostId(url % HOSTS), (url % 200) as u8, now);
            pushed.expect("no host was given up");
        }
        let address = ([127, 0, 0, 1], 80).into();
        let mut picked = 0;
        while let Some(pick) = frontier.next(now) {
            match pick {
                Pick::Resolve(host) => drop(frontier.resolved(host, Some(address), now)),
                Pick::Robots(host, _) => {
                    frontier.completed(host, now, Duration::ZERO, None);
                    frontier.robots_known(host, now);
                }
                Pick::Page(host, ..) => {
                    picked += 1;
                    frontier.completed(host, now, Duration::ZERO, None);
                }
            }
        }
        assert_eq!(picked, URLS);
    });
}
