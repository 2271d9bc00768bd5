//! The same URLs in redb: a table from hashes to ids, a table of pages, a table of URLs.

use std::path::Path;
use std::time::Duration;

use archive_storage::address::url_hash;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

use super::web::{LINKS_PER_PAGE, Web};
use super::{Outcome, PAGES, TRANSACTION_URLS, per_url, rate, report, timed};

const IDS: TableDefinition<'_, u64, u32> = TableDefinition::new("ids");
const PAGE_ROWS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("pages");
const URLS: TableDefinition<'_, u32, &str> = TableDefinition::new("urls");
const PAGE_BYTES: usize = 19;
const CACHE_BYTES: usize = 1 << 30;
/// Parts of the insertions after each of which the rate is printed.
const TENTHS: u64 = 10;

pub(crate) fn measure(folder: &Path, size: u64) -> Outcome<()> {
    println!("the same load of {size} URLs in redb, {TRANSACTION_URLS} a transaction, 1 GiB of cache");
    let path = folder.join("plain.redb");
    let database = redb::Builder::new().set_cache_size(CACHE_BYTES).create(&path)?;
    let mut web = Web::new();
    let (mut inserting, mut last, mut next) = (Duration::ZERO, Duration::ZERO, 0);
    let mut reported = 0;
    while u64::from(next) < size {
        let batch: Vec<String> = web.discover(TRANSACTION_URLS).collect();
        let ((), time) = timed(|| insert(&database, &batch, &mut next))?;
        inserting += time;
        last = time;
        // It takes long: how fast it is so far, at every tenth.
        if u64::from(next) * TENTHS / size > reported {
            reported = u64::from(next) * TENTHS / size;
            report(&format!("  after {next}"), rate(u64::from(next), inserting));
        }
    }
    report(
        "insertions",
        format!("{} (last batch {})", rate(u64::from(next), inserting), rate(TRANSACTION_URLS as u64, last)),
    );
    report("disk", per_url(path.metadata()?.len(), size));
    let (mut looking, mut found, mut count) = (Duration::ZERO, 0, 0);
    for _ in 0..PAGES * LINKS_PER_PAGE / TRANSACTION_URLS {
        let batch: Vec<u64> =
            web.pages(TRANSACTION_URLS / LINKS_PER_PAGE).iter().map(|url| url_hash(url)).collect();
        count += batch.len() as u64;
        let transaction = database.begin_read()?;
        let ids = transaction.open_table(IDS)?;
        let (hits, time) = timed(|| {
            let mut hits = 0;
            for hash in &batch {
                hits += u64::from(ids.get(hash)?.is_some());
            }
            Ok(hits)
        })?;
        looking += time;
        found += hits;
    }
    report("look-ups of a crawl", format!("{} ({found} found)", rate(count, looking)));
    Ok(())
}

fn insert(database: &Database, batch: &[String], next: &mut u32) -> Outcome<()> {
    let transaction = database.begin_write()?;
    {
        let mut ids = transaction.open_table(IDS)?;
        let mut pages = transaction.open_table(PAGE_ROWS)?;
        let mut urls = transaction.open_table(URLS)?;
        for url in batch {
            let hash = url_hash(url);
            if ids.get(hash)?.is_none() {
                ids.insert(hash, *next)?;
                pages.insert(*next, [0; PAGE_BYTES].as_slice())?;
                urls.insert(*next, url.as_str())?;
                *next += 1;
            }
        }
    }
    transaction.commit()?;
    Ok(())
}
