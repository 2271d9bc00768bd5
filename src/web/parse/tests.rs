use std::io::Write;

use archive_storage::address::{canonical, url_hash};
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use url::Url;

use super::*;

fn read(content_type: &str, status: u16, body: &[u8]) -> ParsedDocument {
    let url = Url::parse("http://a.example/b/c").unwrap();
    let headers = [("Location", &b"/moved"[..]), ("Link", b"</n>; rel=next")];
    let source =
        FetchedDocument { url: &url, status, content_type: Some(content_type), headers: &headers, body };
    let parsed = parse(&source, &ParseLimits::default());
    assert_eq!(text(&source, &ParseLimits::default()), parsed.text);
    parsed
}

fn urls(parsed: &ParsedDocument) -> Vec<&str> {
    parsed.links.iter().map(|link| link.url.strip_prefix("http://a.example").unwrap_or(&link.url)).collect()
}

#[test]
fn the_status_says_what_is_read() {
    let html = b"<title>T</title><a href=x>text";
    let found = read("text/html", 200, html);
    assert_eq!((urls(&found), found.title.as_str(), found.text.as_str()), (vec!["/n", "/b/x"], "T", "text"));
    let moved = read("text/html", 301, html);
    assert_eq!((urls(&moved), moved.text.as_str()), (vec!["/moved", "/n"], ""));
    assert_eq!(moved.links[0].kind, LinkKind::Redirect);
    let missing = read("text/html", 404, html);
    assert_eq!((urls(&missing), missing.text.as_str()), (vec![], "text"));
}

#[test]
fn a_base_leaves_the_links_of_the_head_alone() {
    let parsed = read("text/html", 200, b"<link rel=icon href=i><base href=/d/><a href=x>");
    assert_eq!(urls(&parsed), ["/n", "/d/i", "/d/x"]);
}

#[test]
fn encodings() {
    let russian = "<title>\u{41f}\u{440}\u{438}\u{432}\u{435}\u{442}</title><a href='?\u{44f}'>";
    let (bytes, ..) = encoding_rs::WINDOWS_1251.encode(russian);
    let parsed = read("text/html; charset=windows-1251", 200, &bytes);
    assert_eq!(
        (parsed.title.as_str(), parsed.encoding),
        ("\u{41f}\u{440}\u{438}\u{432}\u{435}\u{442}", Some("windows-1251"))
    );
    assert_eq!(urls(&parsed)[1], "/b/c?%FF");
    let wide: Vec<u8> =
        [0xFF, 0xFE].into_iter().chain(russian.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let parsed = read("text/html", 200, &wide);
    assert_eq!(
        (parsed.title.as_str(), parsed.encoding),
        ("\u{41f}\u{440}\u{438}\u{432}\u{435}\u{442}", Some("UTF-16LE"))
    );
    assert_eq!(urls(&parsed)[1], "/b/c?%D1%8F");
    let broken = read("text/html; charset=utf-8", 200, b"<p>a\xFFb");
    assert_eq!(
        (broken.text.as_str(), &broken.problems[..]),
        ("a\u{fffd}b", &[ParseProblem::Encoding { encoding: "UTF-8" }][..])
    );
}

#[test]
fn style_sheets_lists_and_other_kinds() {
    let css = read("text/css", 200, b"@import 'x'; a{b:url(y)}");
    assert_eq!((css.kind, urls(&css)), (DocumentKind::Css, vec!["/n", "/b/x", "/b/y"]));
    let list = read("text/plain", 200, b"\xEF\xBB\xBFhttp://a.example/1\r\n\r\nhttps://a.example/2\r\n");
    assert_eq!((list.kind, urls(&list)), (DocumentKind::Sitemap, vec!["/n", "/1", "https://a.example/2"]));
    let text = read("text/plain", 200, b"http://a.example/1\nand words");
    assert_eq!((text.kind, text.text.as_str()), (DocumentKind::Text, "http://a.example/1\nand words"));
    let image = read("image/png", 200, b"\x89PNG");
    assert_eq!((image.kind, image.encoding, image.similarity), (DocumentKind::Image, None, 0));
    assert_ne!(image.signature, read("image/png", 200, b"\x89PNH").signature);
}

#[test]
fn a_compressed_file_may_be_a_sitemap() {
    let gzip = |text: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    };
    let sitemap = read(
        "application/x-gzip",
        200,
        &gzip(b"<?xml version='1.0'?><urlset><url><loc>/1</loc></url></urlset>"),
    );
    assert_eq!((sitemap.kind, urls(&sitemap)), (DocumentKind::Sitemap, vec!["/n", "/1"]));
    let other = read("application/x-gzip", 200, &gzip(b"<html><a href=x>"));
    assert_eq!((other.kind, urls(&other)), (DocumentKind::Archive, vec!["/n"]));
}

#[test]
fn limits_cut_and_say_so() {
    let url = Url::parse("http://a.example/").unwrap();
    let body = format!("<p>{}<a href=x>", "é ".repeat(100));
    let limits = ParseLimits { text_bytes_max: 10, body_bytes_max: body.len() - 1, ..ParseLimits::default() };
    let source = FetchedDocument {
        url: &url,
        status: 200,
        content_type: Some("text/html"),
        headers: &[],
        body: body.as_bytes(),
    };
    let parsed = parse(&source, &limits);
    assert_eq!(parsed.text, "é é é ");
    assert!(parsed.links.is_empty());
    assert_eq!(
        parsed.problems,
        [ParseProblem::BodyCut { at: body.len() - 1 }, ParseProblem::TextCut { at: 9 }]
    );
}

#[test]
fn language_is_declared_or_guessed() {
    let german =
        "Wer ein Buch sucht, fragt am besten die Leute, die dort arbeiten, denn sie kennen sich aus. \
                  Die Bibliothek sammelt und bewahrt alles, was im Land erschienen ist. "
            .repeat(20);
    assert_eq!(read("text/html", 200, german.as_bytes()).language.as_deref(), Some("de"));
    let declared = format!("<html lang=EN-gb>{german}");
    assert_eq!(read("text/html", 200, declared.as_bytes()).language.as_deref(), Some("en-gb"));
}

/// The links are the same whatever a page's advertisements, dates and counters are.
#[test]
fn a_signature_outlasts_what_changes_at_every_fetch() {
    let page = |ad: &str, date: &str, token: &str, text: &str| {
        let html = format!(
            "<title>T</title><nav>{ad}</nav><div class=ad>{ad}</div><iframe src='{ad}'></iframe><script>{token}</script>
             <p>{date}<p>{token}<p>{text} and enough of it that a page can be judged by this one text alone.<footer>{date}</footer>"
        );
        read("text/html", 200, html.as_bytes()).signature
    };
    let first = page("buy this", "21 Nov 2026 05:17", "sess-0a1b2c3d4e5f60718293", "A text");
    assert_eq!(first, page("buy that", "22 Dec 2026 06:18", "sess-9f8e7d6c5b4a39281706", "A text"));
    assert_ne!(first, page("buy this", "21 Nov 2026 05:17", "sess-0a1b2c3d4e5f60718293", "Another text"));
}

/// What holds for every document, whatever its bytes.
fn check_invariants(parsed: &ParsedDocument, limits: &ParseLimits) {
    let mut hashes: Vec<u64> = parsed.links.iter().map(|link| link.hash).collect();
    for link in &parsed.links {
        let url = Url::parse(&link.url).unwrap();
        assert!(matches!(url.scheme(), "http" | "https"), "{}", link.url);
        assert_eq!(canonical(&url), link.url);
        assert_eq!(url_hash(&link.url), link.hash);
        assert!(link.url.len() <= limits.url_bytes_max);
    }
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), parsed.links.len(), "each URL once");
    assert!(parsed.entries.iter().all(|entry| (entry.link as usize) < parsed.links.len()));
    assert!(parsed.text.len() <= limits.text_bytes_max && !parsed.title.contains('\n'));
}

fn read_anything(content_type: &str, status: u16, headers: &[(&str, &[u8])], body: &[u8]) {
    let url = Url::parse("http://a.example/b/c?d").unwrap();
    let limits = ParseLimits {
        url_bytes_max: 80,
        links_max: 8,
        sitemap_links_max: 9,
        text_bytes_max: 100,
        ..ParseLimits::default()
    };
    let source = FetchedDocument { url: &url, status, content_type: Some(content_type), headers, body };
    let parsed = parse(&source, &limits);
    check_invariants(&parsed, &limits);
    assert_eq!(parsed, parse(&source, &limits), "the same bytes give the same answer");
}

const CONTENT_TYPES: [&str; 8] = [
    "text/html",
    "text/html; charset=utf-8",
    "text/html; charset=gb18030",
    "application/xml",
    "text/css",
    "text/plain",
    "application/gzip",
    "",
];

/// Fragments of documents, concatenated at random: they reach more code than random bytes.
const PIECES: [&str; 46] = [
    "<a href=",
    "<a href='/x?a=1&amp;b=2#c'>",
    "'",
    "\"",
    ">",
    "/>",
    "</a>",
    "<base href='//o.example/p/'>",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<script>",
    "</script>",
    "<style>@import 'x';",
    "</style>",
    "url(",
    ")",
    "<title>",
    "</title>",
    "<nav>",
    "</nav>",
    "<svg>",
    "</svg>",
    "<template>",
    "<noscript>",
    "</noscript>",
    "<img srcset='a 1x, b 2x' src=c>",
    "<meta http-equiv=refresh content='0;url=r'>",
    "<?xml version='1.0'?>",
    "<!DOCTYPE a SYSTEM 'd' [<!ENTITY e 'f&amp;'>]>",
    "&e;",
    "&nbsp;",
    "&",
    "<rss><channel><item><link>/l</link>",
    "</link></item></channel></rss>",
    "<feed xml:base='x/'><entry><link href='y'/>",
    "<urlset><url><loc>",
    "</loc></url></urlset>",
    "<p xmlns:x='http://www.w3.org/1999/xlink' x:href='z'>",
    "<OAI-PMH><ListRecords><resumptionToken>t</resumptionToken>",
    "é\u{a0}\u{2028}",
    "12:30 21 Nov 2026",
    "http://a.example/1",
    "\n",
    "\0",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn any_bytes_are_a_document(
        content_type in prop::sample::select(CONTENT_TYPES.as_slice()),
        status in prop::sample::select([200_u16, 301, 404].as_slice()),
        body in prop::collection::vec(any::<u8>(), 0..300),
        header in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let headers = [("link", &header[..]), ("refresh", &header), ("location", &header), ("x-robots-tag", &header), ("content-language", &header)];
        read_anything(content_type, status, &headers, &body);
    }

    #[test]
    fn any_pieces_are_a_document(
        content_type in prop::sample::select(CONTENT_TYPES.as_slice()),
        pieces in prop::collection::vec(prop::sample::select(PIECES.as_slice()), 0..40),
        cut in 0_usize..20,
    ) {
        let body = pieces.concat();
        read_anything(content_type, 200, &[], &body.as_bytes()[..body.len().saturating_sub(cut)]);
    }

    #[test]
    fn any_bytes_are_a_body(
        coding in "(gzip|deflate|br|zstd|, ?){0,5}", body in prop::collection::vec(any::<u8>(), 0..200), magic in 0_usize..4
    ) {
        let starts: [&[u8]; 4] = [b"", &[0x1F, 0x8B, 8, 0], &[0x28, 0xB5, 0x2F, 0xFD], &[0x78, 0x9C]];
        let body = [starts[magic], &body].concat();
        prop_assert!(decode_content(&body, &coding, 1000).body.len() <= body.len().max(1000));
    }
}
