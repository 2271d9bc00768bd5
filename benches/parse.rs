//! Speed of extracting links, text and signatures from pages: `cargo bench --bench parse`.
//!
//! Reads real pages from `$ARCHIVE_TEST_DATA/pages` (default `../shared/data`). Without them, one synthetic page is
//! repeated, which is hardly representative.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use archive_web::parse::{FetchedDocument, ParseLimits, parse};
use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use flate2::read::MultiGzDecoder;
use url::Url;

fn main() {
    divan::main();
}

/// Returns the HTML pages of the archive of captures, each once.
fn pages() -> Vec<(Url, Vec<u8>)> {
    let root = std::env::var_os("ARCHIVE_TEST_DATA")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/data"), PathBuf::from);
    let Ok(file) = std::fs::File::open(root.join("pages/ota-demo-daily.warc.gz")) else {
        let page = "<title>T</title>".to_owned() + &"<p>Some words and <a href='/x'>a link</a>.".repeat(1000);
        return vec![(Url::parse("http://a.example/").expect("a constant that parses"), page.into_bytes())];
    };
    let mut reader = BufReader::new(MultiGzDecoder::new(file));
    let mut pages = Vec::new();
    while let Some((fields, body)) = record(&mut reader) {
        let field =
            |name: &str| fields.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str());
        let is_html = field("content-type").is_some_and(|value| value.contains("html"));
        if let Some(url) = field("warc-target-uri").filter(|_| is_html).and_then(|url| Url::parse(url).ok()) {
            pages.push((url, body));
        }
    }
    pages
}

type Fields = Vec<(String, String)>;

/// Reads the fields and body of the next WARC record.
fn record(reader: &mut impl BufRead) -> Option<(Fields, Vec<u8>)> {
    let mut fields = Vec::new();
    let mut line = String::new();
    while reader.read_line(&mut line).ok()? > 0 {
        match line.trim_end().split_once(':') {
            Some((name, value)) => fields.push((name.to_ascii_lowercase(), value.trim().to_owned())),
            None if line.trim_end().is_empty() && !fields.is_empty() => break,
            None => {}
        }
        line.clear();
    }
    let length = fields.iter().find(|(name, _)| name == "content-length")?.1.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((fields, body))
}

#[divan::bench(sample_count = 10)]
fn html(bencher: Bencher<'_, '_>) {
    let pages = pages();
    let limits = ParseLimits::default();
    let bytes: usize = pages.iter().map(|(_, body)| body.len()).sum();
    bencher.counter(BytesCount::new(bytes)).bench_local(|| {
        for (url, body) in &pages {
            let source = FetchedDocument {
                url,
                status: 200,
                content_type: Some("text/html; charset=utf-8"),
                headers: &[],
                body,
            };
            black_box(parse(&source, &limits));
        }
    });
}

#[divan::bench(sample_count = 10)]
fn sitemap(bencher: Bencher<'_, '_>) {
    let url = Url::parse("http://a.example/sitemap.xml").expect("a constant that parses");
    let entry = |n: u32| format!("<url><loc>http://a.example/{n}</loc><lastmod>2026-11-21</lastmod></url>\n");
    let body = format!("<urlset>{}</urlset>", (0..50_000).map(entry).collect::<String>()).into_bytes();
    let limits = ParseLimits::default();
    bencher.counter(BytesCount::new(body.len())).bench_local(|| {
        let source = FetchedDocument {
            url: &url,
            status: 200,
            content_type: Some("text/xml"),
            headers: &[],
            body: &body,
        };
        black_box(parse(&source, &limits))
    });
}
