//! Hosts that attack their readers: answers that are small or few but expensive to process.
//!
//! | host | attack |
//! |---|---|
//! | `xml.attack.test` | XML that grows or nests: entities, attributes, namespaces, depth; the pages take turns |
//! | `types.attack.test` | a different media type of 15 kB at every page |
//! | `*.rules.attack.test` | 500 kB of robots.txt rules at every name |
//! | `*.chain.attack.test` | a robots.txt that redirects to the one of the next name |
//!
//! Every page links to ten others, so a crawl meets new attacks for as long as it runs.

use super::answer::{Answerer, Request};
use super::layout::decimal;
use super::text::Append;

/// Addresses of the attackers that other pages link to.
pub const ENTRANCES: [&str; 4] = [
    "http://xml.attack.test/0",
    "http://types.attack.test/0",
    "http://x0.rules.attack.test/",
    "http://x0.chain.attack.test/",
];

/// Number of pages or hosts that each page links to.
const LINKS: u64 = 10;
/// Length of a media type in bytes. Other readers of WARC files accept heads of 32 KiB.
const TYPE_BYTES: usize = 15_000;
/// Size of a robots.txt in bytes: the minimum that RFC 9309 requires parsers to read.
const RULES_BYTES: usize = 500 * 1024;
/// Number of elements, attributes or entities in a document.
const XML_PARTS: usize = 20_000;
/// Depth of nested elements.
const XML_DEPTH: usize = 990;

/// Answers the request if it is for an attacker.
pub(super) fn answer(answerer: &mut Answerer, request: &Request<'_>) -> bool {
    let name = request.host.to_ascii_lowercase();
    let Some(name) = name.strip_suffix(b".attack.test") else { return false };
    let wants_robots = request.path == b"/robots.txt";
    let page = request.path.strip_prefix(b"/").and_then(decimal).unwrap_or(0);
    match name {
        b"xml" | b"types" if wants_robots => answerer.fail(404, "Not found"),
        b"xml" => {
            answerer.put_type("application/xml");
            put_xml(page, &mut answerer.body);
        }
        b"types" => {
            let filler = "x".repeat(TYPE_BYTES);
            answerer.put_type(&format!("application/{page}-{filler}"));
            put_pages(page, &mut answerer.body);
        }
        _ => {
            let (number, kind) = numbered(name);
            if !wants_robots {
                answerer.put_type("text/html");
                put_hosts(number, kind, &mut answerer.body);
            } else if kind == "chain" {
                answerer.fail(301, "Moved");
                let next = number.wrapping_add(1);
                answerer.head.put(&format!("Location: http://x{next}.chain.attack.test/robots.txt\r\n"));
            } else {
                answerer.put_type("text/plain");
                put_rules(&mut answerer.body);
            }
        }
    }
    true
}

/// Parses the number and the kind from a name such as `x12.rules`.
fn numbered(name: &[u8]) -> (u64, &'static str) {
    let dot = name.iter().position(|byte| *byte == b'.').unwrap_or(name.len());
    let number = name.get(1..dot).and_then(decimal).unwrap_or(0);
    (number, if name.ends_with(b".chain") { "chain" } else { "rules" })
}

fn put_pages(page: u64, out: &mut Vec<u8>) {
    for next in 1..=LINKS {
        out.put(&format!("<a href=\"/{}\">more</a>\n", page.wrapping_mul(LINKS).wrapping_add(next)));
    }
}

fn put_hosts(number: u64, kind: &str, out: &mut Vec<u8>) {
    for next in 1..=LINKS {
        let next = number.wrapping_mul(LINKS).wrapping_add(next);
        out.put(&format!("<a href=\"http://x{next}.{kind}.attack.test/\">more</a>\n"));
    }
}

fn put_rules(out: &mut Vec<u8>) {
    out.put("User-agent: *\n");
    let mut number = 0;
    while out.len() < RULES_BYTES {
        out.put(&format!("Disallow: /{number}*x*y*z$\n"));
        number += 1;
    }
}

/// Appends a document that grows through its entities, attributes, namespaces or depth, with links to more of them.
fn put_xml(page: u64, out: &mut Vec<u8>) {
    let many = |part: &dyn Fn(usize) -> String| (0..XML_PARTS).map(part).collect::<String>();
    let (doctype, attributes, content) = match page % 5 {
        0 => {
            let doubled = |n: usize| format!("<!ENTITY e{} \"&e{n};&e{n};&e{n};&e{n};\">", n + 1);
            let entities: String = (0..30).map(doubled).collect();
            (format!("<!DOCTYPE r [<!ENTITY e0 \"<x/>\">{entities}]>"), String::new(), "&e30;".to_owned())
        }
        1 => {
            let nested = |n: usize| format!("<!ENTITY e{} \"<x>&e{n};&e{n};</x>\">", n + 1);
            let entities: String = (0..40).map(nested).collect();
            let desynchronised = "<!ELEMENT r ANY '><!ENTITY % e0 \"<y/>\"><!ENTITY e0 \"<y/>\">";
            (format!("<!DOCTYPE r [{desynchronised}{entities}]>"), String::new(), "&e40;".to_owned())
        }
        2 => (String::new(), many(&|n| format!(" a{n}='{n}'")), String::new()),
        3 => (String::new(), many(&|n| format!(" xmlns:n{n}='urn:{n}'")), many(&|n| format!("<n{n}:x/>"))),
        _ => {
            let start = "<OAI-PMH xmlns='http://www.openarchives.org/OAI/2.0/'>";
            let (open, close) = ("<metadata>".repeat(XML_DEPTH), "</metadata>".repeat(XML_DEPTH));
            (String::new(), String::new(), format!("{start}{open}x{close}</OAI-PMH>"))
        }
    };
    out.put(&format!("<?xml version=\"1.0\"?>{doctype}<r{attributes}>{content}"));
    for next in 1..=LINKS {
        let next = page.wrapping_mul(LINKS).wrapping_add(next);
        out.put(&format!("<l xmlns:x='http://www.w3.org/1999/xlink' x:href='/{next}'/>"));
    }
    out.put("</r>\n");
}
