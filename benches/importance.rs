//! Cost of importance: transfers of cash, PageRank, crawl orders, a scan of slices.
//!
//! Reads real graphs from the folder that `ARCHIVE_TEST_DATA` names (default `../shared/data`), or generates graphs if
//! it is missing. For timings against other programs use `archive rank --json` and `archive-lab … --json`.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use archive_lab::orders::{OrderKind, Seeds};
use archive_lab::transfers;
use archive_math::graphs::slices::{BUFFER_BYTES, SliceBuilder, Sliced, SlicedMethod};
use archive_math::graphs::{self, HostWeb, LinkSource, Recorded};
use archive_math::importance::rank::PageRank;
use divan::Bencher;
use divan::counter::ItemsCount;

fn main() {
    divan::main();
}

/// A real crawl of 325 557 pages, or a generated web of about that size.
static CRAWL: LazyLock<Recorded> = LazyLock::new(|| {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let data: PathBuf = std::env::var_os("ARCHIVE_TEST_DATA").map_or_else(default, Into::into);
    graphs::read(&data.join("graphs/cnr-2000"))
        .or_else(|_| graphs::read(Path::new("generate:web:325557:10")))
        .expect("a generated web can always be made")
});

#[divan::bench(args = [1, 2], sample_count = 5, sample_size = 1)]
fn pagerank(bencher: Bencher, threads: usize) {
    let options = PageRank { threads, ..PageRank::default() };
    let prepared = options.prepare(CRAWL.graph.clone()).expect("the default damping is right");
    let operations = options.solve(&prepared).expect("there is no personalisation").operations;
    bencher
        .counter(ItemsCount::new(operations))
        .bench(|| options.solve(&prepared).expect("there is no personalisation"));
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn transfers_of_cash(bencher: Bencher) {
    let web = HostWeb::new(500_000, 20.0, 1);
    let links = transfers::run(&web, web.pages() as u64);
    bencher.counter(ItemsCount::new(links)).bench(|| transfers::run(&web, web.pages() as u64));
}

#[divan::bench(args = ["breadth", "opic", "fpr", "fpr@100", "endowed", "rankmass@5"], sample_count = 3, sample_size = 1)]
fn order(bencher: Bencher, name: &str) {
    let kind: OrderKind = name.parse().expect("these are orders");
    let seeds = Seeds::Random.choose(100, 1, &vec![0.0; CRAWL.graph.pages()]);
    bencher
        .counter(ItemsCount::new(CRAWL.graph.arcs()))
        .bench(|| kind.crawl(&*CRAWL, (1, &[]), &seeds, usize::MAX).downloads.len());
}

#[divan::bench(args = [1, 2], sample_count = 3, sample_size = 1)]
fn scan_of_slices(bencher: Bencher, threads: usize) {
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let memory = threads * (5 * BUFFER_BYTES);
    let graph = &CRAWL.graph;
    let mut builder =
        SliceBuilder::new(folder.path(), graph.pages(), memory, 1, threads).expect("the memory is enough");
    for page in 0..graph.pages() {
        builder.push(graph.targets(page)).expect("targets ascend");
    }
    let matrix = builder.finish().expect("all pages are there");
    let options = Sliced {
        which: SlicedMethod::Direct,
        damping: 0.85,
        tolerance: 0.0,
        iterations_max: 1,
        threads,
        gauss_seidel: true,
    };
    bencher
        .counter(ItemsCount::new(graph.arcs()))
        .bench(|| options.run(&matrix, folder.path(), None).expect("the slices are whole").iterations);
}
