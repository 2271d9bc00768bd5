//! Hostile input: each kind is read in bounded time and memory, and truncation is reported.
//!
//! Times are not asserted; if a parser is quadratic somewhere, these tests take minutes instead of seconds.

use archive_web::parse::{ParseLimits, ParseProblem, ParsedDocument};

use super::read;

fn html(body: &str) -> ParsedDocument {
    read("http://a.example/", "text/html; charset=utf-8", body.as_bytes())
}

fn xml(body: &str) -> ParsedDocument {
    read("http://a.example/", "application/xml", body.as_bytes())
}

#[test]
fn a_hundred_thousand_links() {
    let body: String = (0..100_000).map(|n| format!("<a href='/{n}'>{n}</a>")).collect();
    let parsed = html(&body);
    let kept = ParseLimits::default().links_max;
    assert_eq!(parsed.links.len(), kept);
    assert_eq!(parsed.problems, [ParseProblem::TooManyLinks { dropped: 100_000 - kept }]);

    let repeated = "<a href='/x'>x</a>".repeat(100_000);
    assert_eq!(html(&repeated).links.len(), 1);
}

#[test]
fn deep_nesting() {
    let deep = format!("{}<a href=x>", "<div class=ad><nav>".repeat(200_000));
    assert_eq!(html(&deep).links.len(), 1);
    let closing = format!("{}<a href=x>", "</div></nav>".repeat(200_000));
    assert_eq!(html(&closing).links.len(), 1);
    let formatting = format!("{}<a href=x>", "<b><i><p>".repeat(200_000));
    assert_eq!(html(&formatting).links.len(), 1);
    assert_eq!(xml(&"<a>".repeat(1_000_000)).problems, [ParseProblem::XmlLimit("deep")]);
}

#[test]
fn what_never_ends() {
    for start in [
        "<!--",
        "<a href='",
        "<a ",
        "<",
        "<script>",
        "<style>",
        "<title>",
        "<![CDATA[",
        "<a b=\"",
        "<textarea>",
    ] {
        let parsed = html(&format!("<a href=x>{start}{}", " y=z".repeat(1_000_000)));
        assert_eq!(parsed.links.len(), 1, "{start}");
        assert!(parsed.title.len() <= 1024, "{start}");
    }
    for repeated in ["<!--", "<a href='", "<", "<!", "&", "&#", "<a ", "--", "<title>", "<svg><![CDATA["] {
        html(&repeated.repeat(500_000));
        xml(&format!("<a>{}", repeated.repeat(500_000)));
    }
}

#[test]
fn a_tag_with_a_million_attributes() {
    let attributes: String = (0..1_000_000).map(|n| format!(" a{n}=x")).collect();
    assert_eq!(html(&format!("<a{attributes} href=x>")).links.len(), 1);
    let attributes: String = (0..1_000_000).map(|n| format!(" a{n}=''")).collect();
    assert_eq!(xml(&format!("<a{attributes}/>")).problems, [ParseProblem::XmlLimit("many attributes")]);
}

#[test]
fn long_values() {
    let long = "x".repeat(4_000_000);
    let parsed =
        html(&format!("<a href='{long}'><img src='data:{long}'><img srcset='{long}z 1x, y'><title>{long}"));
    assert_eq!(parsed.links.len(), 1);
    assert_eq!(parsed.problems, [ParseProblem::LongUrls { dropped: 2 }]);
    let list: String = (0..200_000).map(|n| format!("{n}.png {n}w,")).collect();
    assert_eq!(html(&format!("<img srcset='{list}'>")).links.len(), ParseLimits::default().links_max);
    let style = format!("<p style='{}'>", "a:url(x);".repeat(300_000));
    assert_eq!(html(&style).links.len(), 1);
}

#[test]
fn entities_that_grow() {
    let mut laughs = "<!DOCTYPE a [<!ENTITY e0 'lol'>".to_owned();
    for level in 1..100 {
        laughs += &format!("<!ENTITY e{level} '{}'>", format!("&e{};", level - 1).repeat(10));
    }
    assert_eq!(xml(&format!("{laughs}]><a>&e99;</a>")).problems, [ParseProblem::XmlLimit("deep entities")]);
    assert_eq!(xml(&format!("{laughs}]><a>&e9;</a>")).problems, [ParseProblem::XmlLimit("large entities")]);

    let long = "x".repeat(1_000_000);
    let quadratic = format!("<!DOCTYPE a [<!ENTITY e '{long}'>]><a>{}</a>", "&e;".repeat(100_000));
    assert_eq!(xml(&quadratic).problems, [ParseProblem::XmlLimit("large entities")]);

    let attribute = format!("<!DOCTYPE a [<!ENTITY e '{long}'>]><a b='{}'/>", "&e;".repeat(100_000));
    assert_eq!(xml(&attribute).problems, [ParseProblem::XmlLimit("large entities")]);

    let many: String = (0..100_000).map(|n| format!("<!ENTITY e{n} ''>")).collect();
    let looked_up = format!("<!DOCTYPE a [{many}]><a>{}</a>", "&e99999;".repeat(100_000));
    assert_eq!(xml(&looked_up).problems, []);

    let itself = "&e;".repeat(100_000);
    for circular in [format!("<!ENTITY e '{itself}'>"), format!("<!ENTITY e '&f;'><!ENTITY f '{itself}'>")] {
        let parsed = xml(&format!("<!DOCTYPE a [{circular}]><a>&e;</a>"));
        assert_eq!(parsed.problems, [ParseProblem::XmlLimit("deep entities")]);
    }
    let chain: String = (0..100_000).map(|n| format!("<!ENTITY e{n} '&e{};'>", n + 1)).collect();
    assert_eq!(
        xml(&format!("<!DOCTYPE a [{chain}]><a>&e0;</a>")).problems,
        [ParseProblem::XmlLimit("deep entities")]
    );
}

#[test]
fn namespaces_that_grow() {
    let nested: String = (0..5_000).map(|n| format!("<a xmlns:n{n}='n{n}'>")).collect();
    assert!(matches!(xml(&nested).problems[..], [ParseProblem::XmlLimit(_)]));
    let one: String = (0..20_000).map(|n| format!(" xmlns:n{n}='n{n}'")).collect();
    assert!(matches!(xml(&format!("<a{one}/>")).problems[..], [ParseProblem::XmlLimit(_)]));
}

#[test]
fn records_within_records() {
    let open = "<record><header><datestamp>2026</datestamp></header><metadata>".repeat(300);
    let inside = "<dc><identifier>http://a.example/1</identifier></dc>".repeat(100_000);
    let close = "</metadata></record>".repeat(300);
    let parsed = xml(&format!("<OAI-PMH><ListRecords>{open}{inside}{close}</ListRecords></OAI-PMH>"));
    assert_eq!(parsed.links.len(), 1);
}

#[test]
fn bases_that_change() {
    let siblings: String = (0..50_000).map(|n| format!("<a xml:base='/{n}/' href='x'/>")).collect();
    assert_eq!(xml(&format!("<a>{siblings}</a>")).links.len(), ParseLimits::default().links_max);
}

#[test]
fn bases_that_grow() {
    let nested: String =
        (0..900).map(|n| format!("<a xml:base='{n}aaaaaaaaaaaaaaaa/' href='x{n}'>")).collect();
    let parsed = xml(&format!("{nested}{}", "</a>".repeat(900)));
    assert!(parsed.links.iter().all(|link| link.url.len() <= ParseLimits::default().url_bytes_max));
}

#[test]
fn invalid_bytes_everywhere() {
    let bytes: Vec<u8> = (0..=255).cycle().take(1_000_000).collect();
    for content_type in ["text/html", "application/xml", "text/css", "text/plain", "application/gzip", ""] {
        for charset in
            ["utf-8", "utf-16le", "shift_jis", "gb18030", "iso-2022-jp", "x-user-defined", "replacement"]
        {
            read("http://a.example/", &format!("{content_type};charset={charset}"), &bytes);
        }
    }
    let page = b"<title>\xFFt</title><a href='\xFE/\xC0\x80'>\xED\xA0\x80</a><img src=\xFF><p lang=\xFF>\xF8";
    let parsed = read("http://a.example/", "text/html; charset=utf-8", page);
    assert_eq!(parsed.title, "\u{fffd}t");
    assert_eq!(parsed.links.len(), 2);
    assert_eq!(parsed.problems, [ParseProblem::Encoding { encoding: "UTF-8" }]);
}
