//! Hosts without an end, which a crawler must recognise and leave.
//!
//! | host | trap |
//! |---|---|
//! | `calendar.trap.test` | a page for every day and month, forever, each linking to its neighbours |
//! | `session.trap.test` | ten pages whose links carry a new session id at each fetch |
//! | `soup.trap.test` | relative links that make paths grow: `/a/b/a/b/…` |
//! | `facets.trap.test` | a list that can be sorted and filtered in 10^6 ways |
//! | `soft404.trap.test` | answers 200 to everything with a page that says "not found" |
//! | `*.farm.test` | a link farm with wildcard DNS: every name answers and links to twenty others and to `boss.farm.test` |
//!
//! Every page of a trap is HTML with status 200.

use std::fmt::Display;

use chrono::Datelike;

use super::answer::{Answerer, Request};
use super::dates::{put_day, time_of};
use super::layout::decimal;
use super::random::Key;
use super::text::Append;
use super::web::text;

/// Addresses of the traps that other pages link to.
pub const ENTRANCES: [&str; 6] = [
    "http://calendar.trap.test/",
    "http://session.trap.test/",
    "http://soup.trap.test/",
    "http://facets.trap.test/",
    "http://soft404.trap.test/",
    "http://boss.farm.test/",
];

/// Number of other farm hosts that a farm page links to.
const FARM_LINKS: u64 = 20;
/// Number of names in the farm.
const FARM_NAMES: u64 = 1_000_000_000;
/// Number of pages that carry session ids.
const SESSION_PAGES: u64 = 10;
/// Filters of the list, each with ten values.
const FACETS: [&str; 6] = ["colour", "size", "maker", "price", "year", "sort"];
/// First page of the calendar: 1 January 2025, in days since 1970.
const CALENDAR_START: i64 = 20_089;

/// Answers the request if it is for a trap.
pub(super) fn answer(answerer: &mut Answerer, request: &Request<'_>) -> bool {
    let name = request.host.to_ascii_lowercase();
    let Some(write) = trap_named(&name) else { return false };
    if request.path == b"/robots.txt" {
        answerer.fail(404, "Not found");
        return true;
    }
    answerer.put_type("text/html; charset=utf-8");
    let body = &mut answerer.body;
    body.put("<!DOCTYPE html>\n<html lang=\"en\">\n<head><title>");
    put_escaped(&name, body);
    put_escaped(request.path, body);
    body.put("</title></head>\n<body>\n");
    write(request, &name, body);
    body.put("</body>\n</html>\n");
    true
}

type Writer = fn(&Request<'_>, &[u8], &mut Vec<u8>);

fn trap_named(name: &[u8]) -> Option<Writer> {
    Some(match name {
        b"calendar.trap.test" => put_calendar,
        b"session.trap.test" => put_session,
        b"soup.trap.test" => put_soup,
        b"facets.trap.test" => put_facets,
        b"soft404.trap.test" => put_soft_404,
        _ if name.ends_with(b".farm.test") => put_farm,
        _ => return None,
    })
}

fn put_calendar(request: &Request<'_>, _name: &[u8], out: &mut Vec<u8>) {
    let day = request.path.strip_prefix(b"/day/").and_then(decimal).map_or(CALENDAR_START, u64::cast_signed);
    let day = day.min(10_000_000);
    out.put("<h1>");
    let seconds = day * 86_400;
    put_day(seconds, out);
    out.put("</h1>\n<p>There are no events on this day.</p>\n");
    let month = i64::from(time_of(seconds).day());
    for (name, to) in
        [("yesterday", day - 1), ("tomorrow", day + 1), ("last month", day - month), ("next month", day + 31)]
    {
        put_link(format_args!("/day/{}", to.max(0)), name, out);
    }
}

fn put_session(request: &Request<'_>, _name: &[u8], out: &mut Vec<u8>) {
    out.put("<h1>Shop</h1>\n");
    let session = Key::new(request.number).bits();
    for page in 0..SESSION_PAGES {
        // Three common places for session ids.
        let place = ["?sid=", ";jsessionid=", "?page=1&PHPSESSID="][page as usize % 3];
        put_link(format_args!("/page/{page}{place}{session:016x}"), "an article", out);
    }
}

fn put_soup(request: &Request<'_>, _name: &[u8], out: &mut Vec<u8>) {
    out.put("<h1>Soup</h1>\n");
    let depth = request.path.iter().filter(|byte| **byte == b'/').count();
    for name in ["a/", "b/", if depth.is_multiple_of(2) { "a/b/" } else { "b/a/" }] {
        put_link(name, "deeper", out);
    }
}

fn put_facets(request: &Request<'_>, _name: &[u8], out: &mut Vec<u8>) {
    out.put("<h1>Twelve of many things</h1>\n");
    let query = request.path.strip_prefix(b"/list?").unwrap_or_default();
    for name in FACETS {
        let others = text(|out| {
            for part in query
                .split(|byte| *byte == b'&')
                .filter(|part| !part.is_empty() && !part.starts_with(name.as_bytes()))
            {
                put_escaped(part, out);
                out.put("&amp;");
            }
        });
        for value in 0..10u8 {
            put_link(format_args!("/list?{others}{name}={value}"), name, out);
        }
    }
}

fn put_soft_404(request: &Request<'_>, _name: &[u8], out: &mut Vec<u8>) {
    out.put("<h1>Page not found</h1>\n<p>We are sorry, but ");
    put_escaped(request.path, out);
    out.put(" was not found. Try one of these:</p>\n");
    for index in 0..10 {
        let offer = Key::new(index).at(request.path.len() as u64).at(request.number).bits();
        put_link(format_args!("/offer/{offer:016x}"), "an offer", out);
    }
}

fn put_farm(_request: &Request<'_>, name: &[u8], out: &mut Vec<u8>) {
    out.put("<h1>Best offers</h1>\n");
    put_link("http://boss.farm.test/", "our sponsor", out);
    let key = name.iter().fold(Key::new(0), |key, byte| key.at(u64::from(*byte)));
    for index in 0..FARM_LINKS {
        let number = key.at(index).below(FARM_NAMES);
        put_link(format_args!("http://x{number}.farm.test/"), "best offers", out);
    }
}

fn put_link(address: impl Display, text: &str, out: &mut Vec<u8>) {
    out.put(&format!("<a href=\"{address}\">{text}</a>\n"));
}

/// Appends bytes of the request, escaped as text of the document.
fn put_escaped(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        match byte {
            b'<' => out.put("&lt;"),
            b'&' => out.put("&amp;"),
            b'"' => out.put("&quot;"),
            0x20..=0x7e => out.push(*byte),
            _ => out.push(b'?'),
        }
    }
}
