//! Captures are shown as they were, with their own dates; hidden and missing ones are not shown.

use std::fs;

use archive_base::access::Access;
use archive_replay::{PATH_BYTES_MAX, Request};
use archive_storage::Store;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::exchange::foreign;
use crate::imports::import;
use crate::support::program::start;
use crate::support::replay::{BASE, DAYS, Replay, STAMPS, URL, text, versions};
use crate::support::served::{Served, ask};
use crate::support::warc::{answer, record, response};
use crate::support::{Archive, Dice, files_with};

/// Returns a capture with its own head.
fn headed(url: &str, head: &str, body: &[u8]) -> Vec<u8> {
    let block = [format!("HTTP/1.1 {head}\r\n\r\n").as_bytes(), body].concat();
    let fields = [
        "WARC-Type: response".to_owned(),
        "Content-Type: application/http; msgtype=response".to_owned(),
        format!("WARC-Record-ID: <urn:test:{}>", url.len()),
        format!("WARC-Target-URI: {url}"),
        format!("WARC-Date: {}", DAYS[0]),
    ];
    record(&fields.each_ref().map(String::as_str), block)
}

fn path(url: &str) -> String {
    format!("/web/{}/{url}", STAMPS[0])
}

#[test]
fn the_nearest_capture_is_shown_at_its_own_address() {
    let replay = versions();
    for (asked, place) in [
        ("20140103030321", 0),
        ("2013", 0),
        ("1", 0),
        ("2015", 1),
        ("20150118000000", 0),
        ("20150120000000", 1),
        ("2016", 1),
        ("99991231235959", 2),
    ] {
        let exact = format!("/web/{}/{URL}", STAMPS[place]);
        if asked != STAMPS[place] {
            assert_eq!(replay.leads(&format!("/web/{asked}/{URL}")), exact, "{asked}");
            // Requisites are answered in place, with their own date.
            let picture = replay.get(&format!("/web/{asked}im_/{URL}"));
            let date = replay.get(&exact);
            assert_eq!(
                (picture.status, picture.get("Memento-Datetime")),
                (200, date.get("Memento-Datetime"))
            );
        }
        assert!(replay.text(&exact).contains(&format!("version {place}")));
    }
    assert_eq!(replay.leads(&format!("/web/{URL}")), format!("/web/{}/{URL}", STAMPS[2]));
    assert_eq!(replay.leads("/web/2014/https://www.a.org/p/"), format!("/web/{}/{URL}", STAMPS[0]));
    let request = Request {
        path: "/web/*/http://a.org/p?x=1&y=2",
        application: BASE,
        base: BASE,
        ..Request::default()
    };
    let store = Store::read_only(&replay.archive.path).unwrap();
    let answer = archive_replay::answer(&store, &Access::unlimited(), &request).unwrap();
    assert_eq!(
        answer.get("Location"),
        Some(&*format!("{BASE}/page?url=http%3A%2F%2Fa.org%2Fp%3Fx%3D1%26y%3D2"))
    );
}

#[test]
fn captures_of_one_second_do_not_lead_in_circles() {
    let time = |fraction: u32| format!("2014-01-03T03:03:2{}.{}Z", fraction / 10, fraction % 10);
    let pages: Vec<_> = [1, 5, 9, 11, 19]
        .map(|fraction| {
            response(&format!("urn:uuid:{fraction}"), URL, &time(fraction), &format!("<p>{fraction}"))
        })
        .into();
    let replay = Replay::of(&pages);
    for stamp in ["20140103030319", "20140103030320", "20140103030321", "20140103030322"] {
        let mut path = format!("/web/{stamp}/{URL}");
        let mut steps = 0;
        while replay.get(&path).status == 302 {
            path = replay.leads(&path);
            steps += 1;
            assert!(steps < 2, "{stamp}: {path}");
        }
    }
}

fn moved(number: usize, from: &str, to: &str) -> Vec<u8> {
    let block = format!("HTTP/1.1 301 Moved\r\nLocation: {to}\r\n\r\n");
    answer(&format!("urn:uuid:moved{number}"), from, DAYS[0], &[], &block)
}

#[test]
fn a_redirect_to_another_spelling_leads_to_its_captures() {
    let pairs = [
        ("http://a.org/About", "http://a.org/about"),
        ("http://a.org/x?p=77", "http://a.org/x/?p=77"),
        ("http://a.org/l?b=2&a=1", "http://a.org/l?a=1&b=2"),
        ("http://a.org//docs//x", "http://a.org/docs/x"),
        ("http://www2.b.org/", "http://www.b.org/"),
        ("http://a.org/q?A=B", "http://a.org/q?a=b"),
        ("http://a.org/%41%2fb", "http://a.org/a/b"),
        ("http://a.org/dir", "https://www.a.org/Dir/"),
        ("http://a.org/s/", "http://a.org/s"),
    ];
    let mut records = Vec::new();
    for (number, (from, to)) in pairs.iter().enumerate() {
        records.push(moved(number, from, to));
        records.push(response(&format!("urn:uuid:{number}"), to, DAYS[1], &format!("<p>target {number}")));
    }
    // Two steps, each to another spelling.
    records.push(moved(90, "http://a.org/Two", "http://a.org/TWO"));
    records.push(moved(91, "http://a.org/TWO", "http://a.org/two"));
    records.push(response("urn:uuid:92", "http://a.org/two", DAYS[2], "<p>target of two"));
    let replay = Replay::of(&records);
    let shown = |path: &str| {
        let mut path = path.to_owned();
        for _ in 0..3 {
            let response = replay.get(&path);
            match response.get("Location") {
                Some(to) => path = to.trim_start_matches(BASE).to_owned(),
                None => return (response.status, text(&response)),
            }
        }
        panic!("{path} leads on and on");
    };
    for (number, (from, to)) in pairs.iter().enumerate() {
        let to = archive_books::ledger::canonical_of(to);
        for asked in
            [format!("/web/{}/{from}", STAMPS[0]), format!("/web/2020/{from}"), format!("/timegate/{from}")]
        {
            let (status, text) = shown(&asked);
            assert!(status == 200 && text.contains(&format!("target {number}")), "{asked}: {status} {text}");
        }
        let map = replay.text(&format!("/timemap/link/{from}"));
        assert!(map.contains(&format!("/web/{}/{to}>", STAMPS[1])), "{map}");
        let lines = replay
            .lines(&format!("url={}&output=text&fl=status", to.replace('%', "%25").replace('&', "%26")));
        assert_eq!(lines, ["301", "200"], "{from}");
        let picture = replay.get(&format!("/web/{}im_/{from}", STAMPS[0]));
        assert!(text(&picture).contains(&format!("target {number}")), "{from}");
    }
    assert!(shown(&path("http://a.org/Two")).1.contains("target of two"));
}

#[test]
fn each_spelling_has_its_own_captures() {
    let page = |number: usize, url: &str, day: &str| {
        response(
            &format!("urn:uuid:{number}"),
            url,
            day,
            &format!("<p>as {}", url.replace("http://a.org", "")),
        )
    };
    let replay = Replay::of(&[
        page(1, "http://a.org/Page", DAYS[0]),
        page(2, "http://a.org/page", DAYS[1]),
        page(3, "http://a.org/page/", DAYS[2]),
        page(4, "http://a.org/ABC", DAYS[0]),
        moved(5, "http://a.org/lost", "http://a.org/Lost"),
        moved(6, "http://a.org/one", "http://a.org/ONE"),
        moved(7, "http://a.org/ONE", "http://a.org/one"),
    ]);
    for (url, place) in [("Page", 0), ("page", 1), ("page/", 2), ("ABC", 0)] {
        let exact = format!("/web/{}/http://a.org/{url}", STAMPS[place]);
        assert_eq!(replay.leads(&format!("/web/2020/http://a.org/{url}")), exact);
        assert!(replay.text(&exact).contains(&format!("as /{url}")));
    }
    // A spelling without captures of its own has those of the others.
    assert_eq!(replay.leads("/web/2020/http://a.org/abc"), path("http://a.org/ABC"));
    assert_eq!(replay.leads("/web/2013/http://a.org/PAGE"), path("http://a.org/Page"));
    assert_eq!(replay.lines("url=a.org/PAGE&output=text&fl=url").len(), 3);
    for url in ["http://a.org/lost", "http://a.org/one", "http://a.org/ONE"] {
        let missing = replay.get(&path(url));
        assert_eq!(missing.status, 404, "{url}");
        assert!(text(&missing).contains("was captured only as a redirect to"), "{}", text(&missing));
        assert_eq!(replay.get(&format!("/timegate/{url}")).status, 404);
    }
}

#[test]
fn a_redirect_to_another_form_of_the_same_url_is_passed_over() {
    let moved = |id: &str, from: &str, to: &str| {
        answer(id, from, DAYS[0], &[], &format!("HTTP/1.1 301 Moved\r\nLocation: {to}\r\n\r\n"))
    };
    let replay = Replay::of(&[
        moved("urn:uuid:1", "http://a.org/x", "https://a.org/x"),
        response("urn:uuid:2", "https://a.org/x", DAYS[0], "<p>here"),
        moved("urn:uuid:3", "http://a.org/y", "https://a.org/y"),
        moved("urn:uuid:4", "http://a.org/z", "//b.org/z?q=1"),
    ]);
    assert_eq!(replay.leads(&path("http://a.org/x")), path("https://a.org/x"));
    assert!(replay.text(&path("https://a.org/x")).contains("here"));
    assert_eq!(replay.get(&path("http://a.org/y")).status, 404);
    let other = replay.get(&path("http://a.org/z"));
    assert_eq!((other.status, other.get("Location")), (301, Some(&*path("http://b.org/z?q=1"))));
}

#[test]
fn a_revisit_shows_its_original_under_its_own_date() {
    let revisit = |id: &str, profile: &str, day: &str, block: &str| {
        let fields = [
            "WARC-Type: revisit".to_owned(),
            "Content-Type: application/http; msgtype=response".to_owned(),
            format!("WARC-Profile: http://netpreserve.org/warc/1.1/revisit/{profile}"),
            format!("WARC-Record-ID: <urn:uuid:{id}>"),
            format!("WARC-Target-URI: {URL}"),
            format!("WARC-Date: {day}"),
            format!("WARC-Refers-To-Target-URI: {URL}"),
            format!("WARC-Refers-To-Date: {}", DAYS[0]),
        ];
        record(&fields.each_ref().map(String::as_str), block)
    };
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Served: again\r\n\r\n";
    let replay = Replay::of(&[
        response("urn:uuid:1", URL, DAYS[0], "<p>once"),
        revisit("2", "identical-payload-digest", DAYS[1], head),
        revisit("3", "server-not-modified", DAYS[2], "HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n"),
    ]);
    for (stamp, date) in
        [(STAMPS[1], "Wed, 03 Feb 2016 04:05:06 GMT"), (STAMPS[2], "Sun, 04 Mar 2018 05:06:07 GMT")]
    {
        let shown = replay.get(&format!("/web/{stamp}/{URL}"));
        assert_eq!((shown.status, shown.get("Memento-Datetime")), (200, Some(date)));
        assert!(text(&shown).contains("once"), "{stamp}");
        assert_eq!(replay.get(&format!("/web/{stamp}id_/{URL}")).body, "<p>once");
    }
    let again = replay.get(&format!("/web/{}/{URL}", STAMPS[1]));
    assert_eq!(again.get("X-Archive-Orig-X-Served"), Some("again"));
    // A download includes the original of the revisit.
    let download = replay.get(&format!("/warc/{}/{URL}", STAMPS[1]));
    let again = Archive::new();
    let (_, summary) = import(&again, &[("got.warc.gz", download.body.to_vec())]);
    assert_eq!(summary["captures"], 2, "{summary}");
}

#[test]
fn a_record_without_a_type_is_what_it_begins_like() {
    let untyped = |url: &str, block: &[u8]| {
        let fields = [
            "WARC-Type: response".to_owned(),
            format!("WARC-Record-ID: <urn:test:{}>", url.len()),
            format!("WARC-Target-URI: {url}"),
            format!("WARC-Date: {}", DAYS[0]),
        ];
        record(&fields.each_ref().map(String::as_str), block)
    };
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<title>untyped</title>hello";
    let replay = Replay::of(&[
        untyped("http://a.org/", head),
        untyped("http://a.org/moved", b"HTTP/1.0 302 Found\nLocation: /\n\n"),
        untyped("http://a.org/none", b"GET no head"),
    ]);
    let shown = replay.get(&path("http://a.org/"));
    assert_eq!((shown.status, shown.get("Content-Type")), (200, Some("text/html")));
    assert!(text(&shown).contains("<title>untyped</title>hello") && !text(&shown).contains("HTTP/1.1"));
    let moved = replay.get(&path("http://a.org/moved"));
    assert_eq!((moved.status, moved.get("Location")), (302, Some(&*path("http://a.org/"))));
    assert_eq!(replay.get(&path("http://a.org/none")).body, "GET no head");
    let found = replay.archive.json("query", &["page title = untyped select status"]);
    assert_eq!(found[0]["status"], 200, "{found:?}");
}

#[test]
fn a_form_without_fields_keeps_its_question_mark() {
    let replay = Replay::of(&[response("urn:uuid:1", "http://a.org/s", DAYS[0], "<form action='/s?'>")]);
    assert_eq!(replay.leads("/web/2014/http://a.org/s?"), path("http://a.org/s?"));
    assert!(
        replay.text(&path("http://a.org/s?")).contains(&format!("action=\"{}\"", path("http://a.org/s?")))
    );
    assert_eq!(replay.leads("/web/2014/http://a.org/s"), path("http://a.org/s"));
}

#[test]
fn bytes_codings_and_encodings() {
    let page = "<a href='/x'>Съешь</a>";
    let (cyrillic, ..) = encoding_rs::WINDOWS_1251.encode(page);
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    std::io::Write::write_all(&mut packer, &cyrillic).unwrap();
    let packed = packer.finish().unwrap();
    let chunked = [format!("{:x}\r\n", packed.len()).as_bytes(), &packed, b"\r\n0\r\n\r\n"].concat();
    let wide: Vec<u8> = "\u{feff}<p>Съешь <a href=/x>".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let replay = Replay::of(&[
        headed(
            "http://a.org/",
            "200 OK\r\nContent-Type: text/html; charset=windows-1251\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip",
            &chunked,
        ),
        headed("http://a.org/wide", "200 OK\r\nContent-Type: text/html", &wide),
        headed("http://a.org/none", "200 OK", b"<html><p>untyped"),
    ]);
    let raw = replay.get(&format!("/web/{}id_/http://a.org/", STAMPS[0]));
    assert_eq!(raw.body, packed);
    assert_eq!(raw.get("Content-Encoding"), Some("gzip"));
    let shown = replay.get(&path("http://a.org/"));
    assert_eq!(shown.get("Content-Type"), Some("text/html; charset=windows-1251"));
    assert_eq!((shown.get("Content-Encoding"), shown.get("Transfer-Encoding")), (None, None));
    let (decoded, _) = encoding_rs::WINDOWS_1251.decode_without_bom_handling(&shown.body);
    assert!(decoded.contains(&format!("href=\"{}\">Съешь</a>", path("http://a.org/x"))), "{decoded}");
    let wide = replay.get(&path("http://a.org/wide"));
    assert_eq!(wide.get("Content-Type"), Some("text/html; charset=utf-8"));
    assert!(text(&wide).contains("<p>Съешь <a href=\"/web/"), "{}", text(&wide));
    assert_eq!(replay.get(&path("http://a.org/none")).get("Content-Type"), Some("text/html"));
}

#[test]
fn an_encoding_that_nothing_states_is_left_to_the_browser() {
    let text = "<p>Zo\u{eb} Съешь <a href='/x'>x</a>";
    let (cyrillic, ..) = encoding_rs::WINDOWS_1251.encode(text);
    let mixed: &[u8] = b"<p>\xeb \xc3\xab \xff\x81 <a href='/x'>x</a>";
    let stated = "<meta charset=windows-1252>".to_owned() + text;
    let head = "200 OK\r\nContent-Type: Text/HTML; x=y";
    let replay = Replay::of(&[
        headed("http://a.org/", head, text.as_bytes()),
        headed("http://a.org/one", head, &cyrillic),
        headed("http://a.org/mixed", "200 OK\r\nContent-Type: text/html; charset=none-such", mixed),
        headed("http://a.org/stated", head, stated.as_bytes()),
        headed("http://a.org/marked1", head, ("\u{feff}".to_owned() + text).as_bytes()),
    ]);
    for (url, body, media_type) in [
        ("http://a.org/", text.as_bytes(), "Text/HTML; x=y"),
        ("http://a.org/one", &*cyrillic, "Text/HTML; x=y"),
        ("http://a.org/mixed", mixed, "text/html; charset=none-such"),
        ("http://a.org/stated", stated.as_bytes(), "text/html; charset=windows-1252"),
        ("http://a.org/marked1", text.as_bytes(), "text/html; charset=utf-8"),
    ] {
        let shown = replay.get(&path(url));
        assert_eq!(shown.get("Content-Type"), Some(media_type), "{url}");
        // All bytes are present, and added ones are ASCII.
        let is_foreign = |byte: &&u8| !byte.is_ascii();
        let foreign = |bytes: &[u8]| bytes.iter().filter(is_foreign).copied().collect::<Vec<u8>>();
        let mark = if url.ends_with("marked1") { "\u{feff}" } else { "" };
        assert_eq!(foreign(&shown.body), foreign(&[mark.as_bytes(), body].concat()), "{url}");
        let leads = format!("<a href=\"{}\">x</a>", path("http://a.org/x"));
        assert!(String::from_utf8_lossy(&shown.body).contains(&leads), "{url}");
    }
}

#[test]
fn xml_stays_well_formed() {
    let page = "<?xml version='1.0'?><?xml-stylesheet href='/s.xsl'?><html xmlns='http://www.w3.org/1999/xhtml'><head/>\
                <body style='a:url(&lt;&amp;)'><a href='/x?a=1&amp;b=2'>x</a><img src='i.png' alt='&lt;'/></body></html>";
    let replay = Replay::of(&[
        headed("http://a.org/", "200 OK\r\nContent-Type: application/xhtml+xml", page.as_bytes()),
        headed("http://a.org/feed", "200 OK\r\nContent-Type: text/xml", page.as_bytes()),
    ]);
    let shown = replay.text(&path("http://a.org/"));
    let document = roxmltree::Document::parse(&shown).unwrap();
    let link = document.descendants().find_map(|node| node.attribute("href")).unwrap();
    assert_eq!(link, path("http://a.org/x?a=1&b=2"));
    assert!(shown.contains("/static/replay.js"), "{shown}");
    let feed = replay.text(&path("http://a.org/feed"));
    assert_eq!(feed, page.replace("/s.xsl", &format!("/web/{}cs_/http://a.org/s.xsl", STAMPS[0])));
}

#[test]
fn other_spellings_are_found_in_the_file_of_keys_and_after_it() {
    let page = |number: usize| {
        let url = format!("http://a.org/Page{number}");
        response(&format!("urn:uuid:{number}"), &url, DAYS[0], &format!("<p>number {number}"))
    };
    let replay = Replay::of(&(0..600).map(page).collect::<Vec<_>>());
    assert!(replay.archive.path.join("state/keys.find").is_file());
    for number in [0, 17, 599] {
        assert_eq!(
            replay.leads(&format!("/web/http://a.org/page{number}")),
            path(&format!("http://a.org/Page{number}"))
        );
    }
    assert_eq!(replay.get("/web/http://a.org/page600").status, 404);
    import(&replay.archive, &[("more.warc", page(600))]);
    assert_eq!(replay.leads("/web/http://a.org/page600"), path("http://a.org/Page600"));
    assert_eq!(replay.leads("/web/http://a.org/page17"), path("http://a.org/Page17"));
}

fn ranged(replay: &Replay, url: &str, modifier: &str, range: Option<&str>) -> archive_replay::Response {
    let path = &format!("/web/{}{modifier}/{url}", STAMPS[1]);
    replay.request(&Request { path, range, base: BASE, ..Request::default() })
}

/// A record of an answer with a part of a film.
fn part_of(
    film: &[u8],
    id: &str,
    url: &str,
    day: &str,
    (first, last): (usize, usize),
    more: &str,
) -> Vec<u8> {
    let length = film.len();
    let head = format!(
        "HTTP/1.1 206 Partial Content\r\nContent-Type: video/mp4\r\nContent-Range: bytes {first}-{last}/{length}\r\n{more}\r\n"
    );
    answered(id, url, day, &[], [head.as_bytes(), &film[first..=last]].concat())
}

/// A record of an answer, with further fields.
fn answered(id: &str, url: &str, day: &str, more: &[&str], block: Vec<u8>) -> Vec<u8> {
    let stated =
        [format!("WARC-Record-ID: <{id}>"), format!("WARC-Target-URI: {url}"), format!("WARC-Date: {day}")];
    let mut fields = vec!["WARC-Type: response", "Content-Type: application/http; msgtype=response"];
    fields.extend(stated.iter().map(String::as_str).chain(more.iter().copied()));
    record(&fields, block)
}

#[test]
fn a_captured_part_is_shown_as_one() {
    let film: Vec<u8> = (0..=255).collect();
    let part = |id: &str, url: &str, day: &str, first: usize, last: usize, more: &str| {
        part_of(&film, id, url, day, (first, last), more)
    };
    let (one, two, all) = ("http://a.org/one", "http://a.org/two", "http://a.org/all");
    let whole = headed(two, "200 OK\r\nContent-Type: video/mp4", &film);
    let replay = Replay::of(&[
        part("urn:uuid:1", one, DAYS[1], 16, 31, ""),
        part("urn:uuid:2", one, DAYS[2], 32, 63, ""),
        whole,
        part("urn:uuid:3", two, DAYS[1], 16, 31, ""),
        part("urn:uuid:4", all, DAYS[1], 0, 255, ""),
    ]);
    let get = |url: &str, range: Option<&str>| ranged(&replay, url, "oe_", range);
    for (range, status, content_range, bytes) in [
        (Some("bytes=16-"), 206, Some("bytes 16-31/256"), &film[16..32]),
        (Some("bytes=20-23"), 206, Some("bytes 20-23/256"), &film[20..24]),
        (Some("bytes=40-99"), 206, Some("bytes 40-63/256"), &film[40..64]),
    ] {
        let shown = get(one, range);
        assert_eq!(
            (shown.status, shown.get("Content-Range"), &shown.body[..]),
            (status, content_range, bytes)
        );
    }
    let missing = get(one, None);
    assert_eq!(missing.status, 404);
    assert!(text(&missing).contains("Only bytes 16 to 31 of it were captured."), "{}", text(&missing));
    for range in ["bytes=0-", "bytes=64-", "bytes=-3", "bytes=400-"] {
        let refused = get(one, Some(range));
        assert_eq!((refused.status, refused.get("Content-Range")), (416, Some("bytes */256")), "{range}");
        assert!(text(&refused).contains("Only bytes"), "{range}");
    }
    // As received, with what the server said.
    let raw = ranged(&replay, one, "id_", None);
    assert_eq!(
        (raw.status, raw.get("Content-Range"), &raw.body[..]),
        (206, Some("bytes 16-31/256"), &film[16..32])
    );
    // A whole capture of another day is better than a part that has not what is asked for.
    assert_eq!((get(two, None).status, &get(two, None).body[..]), (200, &film[..]));
    assert_eq!(&get(two, Some("bytes=0-9")).body[..], &film[..10]);
    let near = get(two, Some("bytes=16-"));
    assert_eq!(
        (near.get("Content-Range"), near.get("Memento-Datetime")),
        (Some("bytes 16-31/256"), Some("Wed, 03 Feb 2016 04:05:06 GMT"))
    );
    assert_eq!((get(all, None).status, get(all, None).body.len()), (200, 256));
    assert_eq!(get(all, Some("bytes=250-")).get("Content-Range"), Some("bytes 250-255/256"));
    let printed = replay.archive.run("get", &[two]);
    assert_eq!(printed.output, film);
}

#[test]
fn pieces_of_one_version_are_joined() {
    let film: Vec<u8> = (0..=255).collect();
    let (played, cut, other) = ("http://a.org/played", "http://a.org/cut", "http://a.org/other");
    let (tag, newer) = ("ETag: \"v1\"\r\n", "ETag: \"v2\"\r\n");
    let part = |id: &str, url: &str, day: usize, range: (usize, usize), tag: &str| {
        part_of(&film, id, url, DAYS[day], range, tag)
    };
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: 256\r\n{tag}\r\n");
    let broken = [head.as_bytes(), &film[..100]].concat();
    let replay = Replay::of(&[
        part("urn:uuid:1", played, 1, (0, 99), tag),
        part("urn:uuid:2", played, 1, (180, 255), tag),
        part("urn:uuid:3", played, 2, (90, 199), tag),
        part("urn:uuid:4", played, 2, (0, 200), newer),
        answered("urn:uuid:5", cut, DAYS[1], &["WARC-Truncated: disconnect"], broken),
        part("urn:uuid:6", cut, 2, (100, 255), tag),
        part("urn:uuid:7", other, 1, (0, 99), tag),
        part("urn:uuid:8", other, 1, (100, 255), ""),
        part("urn:uuid:9", other, 1, (100, 255), newer),
    ]);
    for url in [played, cut] {
        let whole = ranged(&replay, url, "oe_", None);
        assert_eq!((whole.status, &whole.body[..]), (200, &film[..]), "{url}");
        for (range, first, last) in [("bytes=50-220", 50, 220), ("bytes=-250", 6, 255), ("bytes=0-", 0, 255)]
        {
            let some = ranged(&replay, url, "oe_", Some(range));
            let content_range = some.get("Content-Range").unwrap().to_owned();
            let end = content_range.split(['-', '/']).nth(1).unwrap().parse::<usize>().unwrap();
            // A part that begins with what is asked for is an answer, too.
            assert!(
                content_range.starts_with(&format!("bytes {first}-")) && end <= last,
                "{url} {content_range}"
            );
            assert_eq!((some.status, &some.body[..]), (206, &film[first..=end]), "{url} {range}");
        }
    }
    let rest = ranged(&replay, cut, "oe_", Some("bytes=60-150"));
    assert_eq!((rest.get("Content-Range"), &rest.body[..]), (Some("bytes 60-150/256"), &film[60..=150]));
    // Neither without a validator nor with another one.
    assert_eq!(ranged(&replay, other, "oe_", None).status, 404);
    let raw = ranged(&replay, played, "id_", None);
    assert!(raw.status == 206 && raw.body.len() < 256);
}

/// The bytes of a response, of which a long one is read while it is sent.
fn sent(response: archive_replay::Response) -> Vec<u8> {
    match response.long {
        Some(long) => long.flat_map(|piece| piece.unwrap()).collect(),
        None => response.body.to_vec(),
    }
}

#[test]
fn joined_pieces_may_be_long() {
    let film: Vec<u8> = (0..18_u32 << 20).map(|number| (number % 251) as u8).collect();
    let (url, half) = ("http://a.org/long", 9 << 20);
    let tag = "ETag: \"v1\"\r\n";
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: {}\r\n{tag}\r\n", film.len());
    let broken = [head.as_bytes(), &film[..half + 10]].concat();
    let replay = Replay::of(&[
        answered("urn:uuid:1", url, DAYS[1], &["WARC-Truncated: disconnect"], broken),
        part_of(&film, "urn:uuid:2", url, DAYS[1], (half, film.len() - 1), tag),
    ]);
    let whole = ranged(&replay, url, "oe_", None);
    assert_eq!(whole.status, 200);
    assert!(sent(whole) == film);
    for first in [100, half - 100] {
        let range = format!("bytes={first}-{}", film.len() - 2);
        let across = ranged(&replay, url, "oe_", Some(&range));
        assert_eq!(across.status, 206);
        assert!(sent(across) == film[first..film.len() - 1], "{first}");
    }
}

#[test]
fn media_are_given_in_ranges() {
    let film: Vec<u8> = (0..=255).collect();
    let replay = Replay::of(&[headed("http://a.org/film", "200 OK\r\nContent-Type: video/mp4", &film)]);
    let part = |range| {
        let path = &format!("/web/{}oe_/http://a.org/film", STAMPS[0]);
        replay.request(&Request { path, range: Some(range), base: BASE, ..Request::default() })
    };
    let some = part("bytes=16-31");
    assert_eq!((some.status, &some.body[..]), (206, &film[16..32]));
    assert_eq!(some.get("Content-Range"), Some("bytes 16-31/256"));
    assert_eq!(part("bytes=256-").status, 416);
    assert_eq!(part("bytes=0-1,5-6").body, film);
}

#[test]
fn what_is_too_long_is_sent_as_it_came() {
    const REWRITTEN_BYTES_MAX: usize = 16 << 20;
    let sheet = |length: usize| {
        let mut sheet = "a{b:url(/x)}".to_owned();
        sheet.extend(std::iter::repeat_n(' ', length - sheet.len()));
        sheet
    };
    let head = "200 OK\r\nContent-Type: text/css";
    let replay = Replay::of(&[
        headed("http://a.org/fits", head, sheet(REWRITTEN_BYTES_MAX).as_bytes()),
        headed("http://a.org/does-not", head, sheet(REWRITTEN_BYTES_MAX + 1).as_bytes()),
    ]);
    assert!(replay.get(&path("http://a.org/fits")).body.starts_with(b"a{b:url(/web/"));
    assert_eq!(replay.get(&path("http://a.org/does-not")).body, sheet(REWRITTEN_BYTES_MAX + 1));
}

#[test]
fn no_address_and_no_field_is_too_odd() {
    let replay = versions();
    let mut dice = Dice::new("no_address_and_no_field_is_too_odd");
    const PARTS: [&str; 28] = [
        "/web/",
        "/timegate/",
        "/timemap/",
        "/cdx?",
        "/warc/",
        "/",
        "2014",
        "20140103030321",
        "im_",
        "id_",
        "*",
        "link",
        "http://a.org/p",
        "http:",
        "//",
        "a.org",
        "url=",
        "&",
        "filter=",
        "~(",
        "=",
        "%FF",
        "é",
        "\u{0}",
        "closest=",
        "page=",
        "9999999999999999999999",
        "-",
    ];
    for _ in 0..3000 {
        let mut text = || -> String { (0..dice.below(7)).map(|_| PARTS[dice.below(28) as usize]).collect() };
        let (path, range, referer, date) = (format!("/{}", text()), text(), text(), text());
        let path = if path.starts_with("//") { &path[1..] } else { &path };
        let answer = replay.request(&Request {
            path,
            range: Some(&format!("bytes={range}")),
            referer: Some(&format!("{BASE}{referer}")),
            accept_datetime: Some(&date).filter(|date| date.len() > 9).map(String::as_str),
            base: BASE,
            ..Request::default()
        });
        assert!((200..500).contains(&answer.status), "{path}");
    }
}

#[test]
fn stored_heads_inject_nothing() {
    let head = "302 Found\r\nLocation: /x\r\n y\rSet-Cookie: a=b\r\nSet-Cookie: c=d\r\nX-Frame-Options: DENY\r\nX: a\0b\r\n: z";
    let replay = Replay::of(&[headed("http://a.org/", head, b"")]);
    let shown = replay.get(&path("http://a.org/"));
    assert_eq!(shown.status, 302);
    assert_eq!(shown.get("X-Archive-Orig-X-Frame-Options"), Some("DENY"));
    assert_eq!(shown.get("X-Frame-Options"), None);
}

#[test]
fn no_address_leads_away() {
    let replay = versions();
    for path in [
        "//evil.org/",
        "/\\evil.org",
        "/web//evil.org/",
        "/web/https://evil.org/",
        "/web/2014/https:/evil.org",
        "/web/2014/javascript:alert(1)",
        "/web/2014/data:text/html,<script>alert(1)</script>",
        "/web/99999999999999999/http://a.org/p",
        "/web/",
        "/web/2014",
        "/timegate/",
        "/timemap/",
        "/timemap/link/99999999999999999999/http://a.org/p",
        "/timemap/xml/http://a.org/p",
        "/warc/",
        "/warc/99999999999",
        "/nothing",
        "/static/../Cargo.toml",
        "/web/2014/http://a.org/\u{0}\r\nX: y",
    ] {
        let answer = replay.get(path);
        assert!(answer.status >= 400, "{path}: {}", answer.status);
        assert!(!text(&answer).contains("<script>alert"), "{path}");
    }
    let long = |count| replay.get(&format!("/web/2014/http://a.org/{}", "x".repeat(count))).status;
    assert_eq!(long(PATH_BYTES_MAX - "/web/2014/http://a.org/".len()), 404);
    assert_eq!(long(PATH_BYTES_MAX), 414);
    // Only root-relative requests of a replayed page are looked up under its host.
    let from = |referer, path| {
        let destination = Some("image");
        replay.request(&Request {
            path,
            referer: Some(referer),
            base: BASE,
            destination,
            ..Request::default()
        })
    };
    let page = format!("{BASE}/web/{}/{URL}", STAMPS[0]);
    assert_eq!(from(&page, "/p?x").get("Location"), Some("/web/20140103030321mp_/http://a.org/p?x"));
    assert_eq!(from(&page, "//evil.org/p").get("Location"), Some("/web/20140103030321mp_/http://evil.org/p"));
    assert_eq!(from("http://evil.org/web/2014/http://a.org/", "/p").status, 404);
    assert_eq!(from(&format!("{BASE}.evil.org/web/2014/http://a.org/"), "/p").status, 404);
    // No page may leave a service worker running.
    let path = &format!("/web/{}js_/{URL}", STAMPS[0]);
    let worker = Request { path, base: BASE, destination: Some("serviceworker"), ..Request::default() };
    assert_eq!(replay.request(&worker).status, 404);
}

#[test]
fn what_is_missing_says_what_is_nearest() {
    let replay = Replay::of(&[response("urn:uuid:1", "http://a.org/docs/", DAYS[0], "<p>docs")]);
    let missing = replay.get("/web/2015/http://a.org/docs/a/b?c=<d>");
    assert_eq!(missing.status, 404);
    assert!(text(&missing).contains(&path("http://a.org/docs/")), "{}", text(&missing));
    assert!(!text(&replay.get("/web/2015im_/http://a.org/docs/a")).contains("docs/"));
}

#[test]
fn what_is_hidden_is_not_there() {
    let replay = versions();
    let asked = |replay: &Replay| -> Vec<(u16, String)> {
        let paths = [
            format!("/web/{}/{URL}", STAMPS[1]),
            format!("/web/{}id_/{URL}", STAMPS[1]),
            format!("/warc/{}/{URL}", STAMPS[1]),
            format!("/timemap/link/{URL}"),
            format!("/timegate/{URL}"),
            format!("/cdx?url={URL}"),
            "/cdx?url=a.org&matchType=domain".to_owned(),
            "/warc/1".to_owned(),
        ];
        paths.iter().map(|path| replay.get(path)).map(|answer| (answer.status, text(&answer))).collect()
    };
    fs::write(
        replay.archive.path.join("access.toml"),
        "[[rule]]\nprefix = \"org,a)/p\"\nfrom = 2016-01-01\nto = 2016-12-31\n",
    )
    .unwrap();
    for (status, text) in asked(&replay) {
        assert!(!text.contains("version 1") && !text.contains("20160203040506"), "{status} {text}");
    }
    assert_eq!(replay.leads(&format!("/web/{}/{URL}", STAMPS[1])), format!("/web/{}/{URL}", STAMPS[2]));
    assert_eq!(replay.lines(&format!("url={URL}")).len(), 2);
    fs::write(replay.archive.path.join("access.toml"), "[[rule]]\nprefix = \"\"\n").unwrap();
    let none = Replay::of(&[response("urn:uuid:9", "http://b.org/", DAYS[0], "x")]);
    for (hidden, missing) in asked(&replay).into_iter().zip(asked(&none)) {
        assert_eq!(hidden, missing);
    }
}

/// Every capture in files of other tools is shown, and unmodified on request.
#[test]
fn captures_of_other_tools_are_shown() {
    let Some(data) = foreign() else { return };
    let archive = Archive::new();
    let tools = fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let files: Vec<_> =
        tools.flat_map(|tool| files_with(&tool, &[".warc", ".warc.gz", ".warc.zst"])).collect();
    // Some are broken on purpose.
    let imported = start(archive.command("import").args(files)).wait();
    assert!(matches!(imported.code, Some(0 | 1)), "{}", imported.errors);
    let replay = Replay { archive };
    let store = Store::read_only(&replay.archive.path).unwrap();
    let (mut shown, mut rewritten) = (0, 0);
    for capture in store.state().captures() {
        let (id, capture) = capture.unwrap();
        let url = store.state().url(capture.url).unwrap();
        let Some(payload) = store.payload(&capture).unwrap() else { continue };
        if !url.starts_with("http") {
            continue;
        }
        let stamp = chrono::DateTime::from_timestamp_micros(capture.time).unwrap().format("%Y%m%d%H%M%S");
        let raw = replay.get(&format!("/web/{stamp}id_/{url}"));
        if raw.get("X-Archive-Capture") == Some(&id.to_string()) {
            assert_eq!(raw.body, payload, "{url}");
            shown += 1;
        }
        let page = replay.get(&format!("/web/{stamp}mp_/{url}"));
        assert_eq!(page.get("Memento-Datetime"), raw.get("Memento-Datetime"), "{url}");
        rewritten += usize::from(text(&page).contains(&format!("/web/{stamp}")));
    }
    assert!(shown > 400 && rewritten > 50, "{shown} shown, {rewritten} rewritten");
}

/// The program answers like the library, with the security headers that a server of hostile pages needs.
#[test]
fn the_program_serves_the_replay() {
    let replay = versions();
    let served = Served::of(&replay.archive);
    let get = |path: &str, fields: &[&str]| ask(&served.replay, "GET", path, fields);
    let page = format!("/web/{}/{URL}", STAMPS[1]);
    let shown = get(&page, &[]);
    assert_eq!((shown.status, shown.get("memento-datetime")), (200, Some("Wed, 03 Feb 2016 04:05:06 GMT")));
    let text = String::from_utf8_lossy(&shown.body);
    assert!(text.contains("version 1") && text.contains("/static/replay.js"), "{text}");
    let policy = shown.get("content-security-policy").unwrap();
    assert!(policy.contains(&format!("frame-ancestors 'self' http://{};", served.application)), "{policy}");
    assert_eq!(shown.get("x-frame-options"), None);
    // A page without a type is shown as browsers showed it at the time.
    assert_eq!(shown.get("x-content-type-options"), None);
    let head = ask(&served.replay, "HEAD", &page, &[]);
    assert_eq!((head.status, head.body.len(), head.get("link")), (200, 0, shown.get("link")));
    assert_eq!(ask(&served.replay, "POST", &page, &["Content-Length: 0"]).status, 404);
    assert_eq!(ask(&served.replay, "POST", "/cdx?url=a.org", &["Content-Length: 0"]).status, 405);
    let gate = get(&format!("/timegate/{URL}"), &["Accept-Datetime: Fri, 03 Jan 2014 00:00:00 GMT"]);
    assert_eq!(gate.get("location"), Some(&*format!("http://{}/web/{}/{URL}", served.replay, STAMPS[0])));
    let part = get(&format!("/web/{}id_/{URL}", STAMPS[0]), &["Range: bytes=3-9"]);
    assert_eq!((part.status, &part.body[..]), (206, &b"version"[..]));
    let asked = get("/q?x", &[&format!("Referer: http://{}{page}", served.replay), "Sec-Fetch-Dest: image"]);
    assert_eq!(asked.get("location"), Some("/web/20160203040506mp_/http://a.org/q?x"));
    assert_eq!(get(&page, &["Sec-Fetch-Dest: serviceworker"]).status, 404);
    assert_eq!(get("/static/worker.js", &[]).get("service-worker-allowed"), Some("/web/"));
    let list = get(&format!("/web/*/{URL}"), &[]);
    let leads = list.get("location").unwrap();
    assert!(leads.starts_with(&format!("http://{}/page?url=", served.application)), "{leads}");
    assert_eq!(get(&page, &["Host: evil.test"]).status, 421);
    // The application serves no archived page, and the replay none of the application's pages.
    assert_eq!(ask(&served.application, "GET", &page, &[]).status, 404);
    assert_eq!(get("/search?q=x", &[]).status, 404);
    fs::write(replay.archive.path.join("access.toml"), "[[rule]]\nprefix = \"org,a\"\n").unwrap();
    let is_gone = (0..2000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        get(&page, &[]).status == 404
    });
    assert!(is_gone, "access rules do not hold");
}

#[test]
fn scripts_of_pages_are_given_the_address_of_the_page() {
    let script = "location.href='\u{e9} location'";
    let page = format!("<script>{script}</script>");
    let long = |length: usize| script.to_owned() + &" ".repeat(length - script.len());
    const REWRITTEN_BYTES_MAX: usize = 16 << 20;
    let replay = Replay::of(&[
        headed("http://a.org/s.js", "200 OK\r\nContent-Type: text/javascript", script.as_bytes()),
        headed("http://a.org/page.html", "200 OK\r\nContent-Type: text/html", page.as_bytes()),
        headed("http://a.org/fits-in", "200 OK", long(REWRITTEN_BYTES_MAX).as_bytes()),
        headed("http://a.org/does-not-fit", "200 OK", long(REWRITTEN_BYTES_MAX + 1).as_bytes()),
    ]);
    let new = format!("_archive_{script}");
    let asked = |modifier: &str, destination| {
        let path = &format!("/web/{}{modifier}/http://a.org/s.js", STAMPS[0]);
        text(&replay.request(&Request { path, destination, base: BASE, ..Request::default() }))
    };
    for destination in [None, Some("script"), Some("empty")] {
        assert_eq!(asked("js_", destination), new);
    }
    // Workers get nothing of ours, and data and styles are not scripts.
    for destination in ["worker", "sharedworker", "audioworklet", "json", "style"] {
        assert_eq!(asked("js_", Some(destination)), script);
    }
    for modifier in ["id_", "mp_", "if_", "oe_"] {
        assert_eq!(asked(modifier, Some("script")), script);
    }
    let replayed = replay.text(&path("http://a.org/page.html"));
    assert!(replayed.contains(&format!("<script>{new}</script>")), "{replayed}");
    let long = |name: &str| replay.get(&format!("/web/{}js_/http://a.org/{name}", STAMPS[0])).body;
    assert!(long("fits-in").starts_with(b"_archive_location"));
    assert!(long("does-not-fit").starts_with(b"location"));
}

#[test]
fn relative_links_stay_at_the_exact_address_alone() {
    let url = "http://a.org/b/c.html";
    let replay = Replay::of(&[response("urn:uuid:1", url, DAYS[0], "<a href=d.html>d</a>")]);
    let (stamp, left) = (STAMPS[0], "<a href=d.html>d</a>");
    for place in
        [format!("{stamp}/{url}"), format!("{stamp}if_/{url}"), format!("{stamp}mp_/{url}?utm_source=e/f")]
    {
        assert!(replay.text(&format!("/web/{place}")).contains(left), "{place}");
    }
    for place in [format!("2014mp_/{url}"), format!("{stamp}mp_/https://www.a.org/b/c.html")] {
        let written = format!("<a href=\"/web/{stamp}mp_/http://a.org/b/d.html\">");
        assert!(replay.text(&format!("/web/{place}")).contains(&written), "{place}");
    }
}

/// Returns an answer and the request that it answers.
pub(crate) fn exchanged(number: usize, url: &str, day: &str, request: &str, block: &str) -> Vec<u8> {
    let id = format!("urn:uuid:{number}");
    let fields = [
        "WARC-Type: request".to_owned(),
        "Content-Type: application/http; msgtype=request".to_owned(),
        format!("WARC-Record-ID: <urn:uuid:request{number}>"),
        format!("WARC-Target-URI: {url}"),
        format!("WARC-Date: {day}"),
        format!("WARC-Concurrent-To: <{id}>"),
    ];
    let request = record(&fields.each_ref().map(String::as_str), request);
    [answer(&id, url, day, &[], block), request].concat()
}

const FORM: &str = "application/x-www-form-urlencoded";

#[test]
fn only_what_get_gave_is_the_page() {
    let page = "http://a.org/p";
    let html = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
    let post = |sent: &str| {
        format!("POST /p HTTP/1.1\r\nContent-Type: {FORM}\r\nContent-Length: {}\r\n\r\n{sent}", sent.len())
    };
    let replay = Replay::of(&[
        exchanged(
            1,
            page,
            DAYS[0],
            "GET /p HTTP/1.1\r\n\r\n",
            &format!("{html}<title>the page</title>itself"),
        ),
        exchanged(2, page, DAYS[1], "HEAD /p HTTP/1.1\r\n\r\n", html),
        exchanged(3, page, DAYS[1], "OPTIONS /p HTTP/1.1\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n"),
        exchanged(4, page, DAYS[1], &post("a=1&b=x+y"), &format!("{html}<a href=q>first</a>")),
        exchanged(5, page, DAYS[2], &post("a=2"), &format!("{html}itself second")),
    ]);
    assert!(replay.text(&path(page)).contains("itself"));
    assert_eq!(replay.leads(&format!("/web/{page}")), path(page));
    assert_eq!(replay.lines("url=a.org/p&output=text&fl=timestamp,method"), [format!("{} -", STAMPS[0])]);
    let lines = replay.lines("url=a.org/p*&output=text&fl=url,method&filter=method:POST");
    assert_eq!(lines, [format!("{page} POST"), format!("{page} POST")]);
    assert!(
        replay.lines("url=a.org/p*&output=cdxj").iter().any(|line| line.contains("\"method\": \"HEAD\""))
    );
    let sent = |method: &str, content_type: &str, body: &str| {
        let sent = archive_storage::warc::SentRequest {
            method,
            content_type: Some(content_type),
            body: body.as_bytes(),
        };
        let path = &format!("/web/2020mp_/{page}");
        let response = replay.request(&Request { path, sent, base: BASE, ..Request::default() });
        (response.status, text(&response))
    };
    let first = sent("POST", FORM, "b=x%20y&a=1");
    assert!(
        first.0 == 200 && first.1.contains(&format!("href=\"/web/{}mp_/http://a.org/q\"", STAMPS[1])),
        "{first:?}"
    );
    assert!(sent("POST", FORM, "a=2").1.contains("second"));
    assert_eq!(sent("POST", FORM, "a=3").0, 404);
    assert_eq!(sent("PUT", FORM, "a=1").0, 404);
    assert_eq!(sent("OPTIONS", "", "").0, 204);

    let archive = &replay.archive;
    assert!(archive.run("get", &[page]).text().contains("the page"));
    assert!(archive.run("get", &[page, "--method", "post"]).text().contains("second"));
    let check = |archive: &Archive| {
        let found = archive.json("query", &["capture select url, method order by time"]);
        let methods: Vec<_> = found.iter().map(|row| row["method"].as_str().unwrap().to_owned()).collect();
        let sorted = |mut methods: Vec<String>| {
            methods.sort();
            methods
        };
        assert_eq!(sorted(methods), ["GET", "HEAD", "OPTIONS", "POST", "POST"]);
        let found = archive.json("search", &["itself"]);
        let urls: Vec<_> = found.iter().filter_map(|row| row["url"].as_str()).collect();
        assert_eq!(urls, [page]);
    };
    check(archive);
    assert_eq!(archive.verify(), 5);
    archive.run::<&str>("rebuild", &[]).succeeded();
    let found = archive.json("query", &["capture method = POST select url"]);
    assert_eq!(found.len(), 2, "{found:?}");

    let served = Served::of(archive);
    let asked = format!("/web/{}/{page}", STAMPS[0]);
    let fields = [format!("Content-Type: {FORM}"), "Content-Length: 3\r\n\r\na=2".to_owned()];
    let given = ask(&served.replay, "POST", &asked, &fields.each_ref().map(String::as_str));
    assert!(given.status == 200 && String::from_utf8_lossy(&given.body).contains("second"), "{given:?}");
    let long = ask(&served.replay, "POST", &asked, &["Content-Length: 1048577"]);
    assert_eq!(long.status, 413);
    let head = ask(&served.replay, "HEAD", &asked, &[]);
    assert_eq!((head.status, head.get("memento-datetime")), (200, Some("Fri, 03 Jan 2014 03:03:21 GMT")));
}

#[test]
fn numbers_against_caches_and_callbacks_do_not_matter() {
    let (old, new) = (1_577_836_800_001_u64, 1_700_000_000_001_u64);
    let pairs = [
        ("a.json".to_owned(), format!("a.json?_={new}")),
        (format!("b.json?_={old}"), "b.json".to_owned()),
        (format!("c.json?id=7&_={old}"), format!("c.json?id=7&_={new}")),
        (format!("d.js?callback=jQuery34_{old}&_={old}"), format!("d.js?callback=jQuery35_{new}&_={new}")),
        ("e.js?v=1577836800".to_owned(), "e.js?v=2".to_owned()),
        ("f?utm_source=a".to_owned(), "f?utm_source=b".to_owned()),
        ("g.png".to_owned(), format!("g.png?{new}")),
        (format!("h?rand=0.{old}&x=1"), format!("h?x=1&rand=0.{new}")),
        ("i.css?theme=1".to_owned(), "i.css".to_owned()),
        (format!("j?nocache={old}"), "j".to_owned()),
    ];
    let records: Vec<_> = pairs
        .iter()
        .enumerate()
        .map(|(number, (captured, _))| {
            let url = format!("http://a.org/{captured}");
            let body = format!("jQuery34_{old}({{\"number\":{number}}});");
            let block = format!("HTTP/1.1 200 OK\r\nContent-Type: application/javascript\r\n\r\n{body}");
            answer(&format!("urn:uuid:{number}"), &url, DAYS[0], &[], &block)
        })
        .collect();
    let replay = Replay::of(&records);
    for (number, (captured, asked)) in pairs.iter().enumerate() {
        let shown = replay.get(&format!("/web/{}js_/http://a.org/{asked}", STAMPS[1]));
        assert!(
            shown.status == 200 && text(&shown).contains(&format!("\"number\":{number}}}")),
            "{asked}: {}",
            text(&shown)
        );
        let exact = replay.get(&format!("/web/{}js_/http://a.org/{captured}", STAMPS[1]));
        assert!(text(&exact).starts_with(&format!("jQuery34_{old}(")), "{captured}");
        // A page is not replaced, but named.
        let missing = replay.get(&format!("/web/{}/http://a.org/{asked}", STAMPS[1]));
        if captured.contains("nocache") {
            assert_eq!(missing.status, 404, "{asked}");
            assert!(
                text(&missing).contains(&format!("/web/{}/http://a.org/{captured}", STAMPS[0])),
                "{}",
                text(&missing)
            );
        }
    }
    let renamed = replay.get(&format!("/web/{}js_/http://a.org/{}", STAMPS[1], pairs[3].1));
    assert!(text(&renamed).starts_with(&format!("jQuery35_{new}({{")), "{}", text(&renamed));
    assert_eq!(replay.get(&format!("/web/{}mp_/http://a.org/c.json?id=8&_={new}", STAMPS[1])).status, 404);
}

#[test]
fn pages_that_embed_pdfs_are_in_no_sandbox() {
    let pdf = |url: &str, head: &str| headed(url, head, b"%PDF-1.4");
    let replay = Replay::of(&[
        response("urn:uuid:1", "http://a.org/", DAYS[0], "<embed src=x.pdf>"),
        pdf("http://a.org/x.pdf", "200 OK\r\nContent-Type: application/pdf"),
        pdf("http://a.org/untyped", "200 OK"),
    ]);
    let is_sandboxed = |url: &str, destination: Option<&str>, referer: Option<&str>| {
        let path = &path(url);
        let response =
            replay.request(&Request { path, destination, referer, base: BASE, ..Request::default() });
        response.get("Content-Security-Policy").unwrap().contains("sandbox")
    };
    let page = "http://a.org/";
    let own = format!("{BASE}{}", path(page));
    for (destination, referer, expected) in [
        (None, None, true),
        (Some("document"), None, false),
        (Some("iframe"), None, true),
        (Some("iframe"), Some("http://other.test/web/2014/http://a.org/"), true),
        (Some("iframe"), Some(own.as_str()), false),
    ] {
        assert_eq!(is_sandboxed(page, destination, referer), expected, "{destination:?} {referer:?}");
    }
    for url in ["http://a.org/x.pdf", "http://a.org/untyped"] {
        assert!(!is_sandboxed(url, Some("embed"), None), "{url}");
    }
}

#[test]
fn only_what_begins_with_our_script_runs_any() {
    const PAGE: &str = "<html xmlns=\"http://www.w3.org/1999/xhtml\"><script>x()</script></html>";
    let long = format!("{PAGE}{}", " ".repeat(16 << 20));
    let wide: Vec<u8> = PAGE.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let documents = [
        ("html", "Content-Type: text/html", PAGE.as_bytes(), true),
        ("untyped", "X: y", PAGE.as_bytes(), true),
        ("xhtml", "Content-Type: application/xhtml+xml", PAGE.as_bytes(), true),
        ("file.js", "Content-Type: text/javascript; charset=utf-8", b"x()", true),
        ("old.js", "Content-Type: application/x-javascript", b"x()", true),
        ("two", "Content-Type: text/html, image/svg+xml", PAGE.as_bytes(), false),
        ("two.js", "Content-Type: text/javascript;a, text/html", PAGE.as_bytes(), false),
        ("xml.js", "Content-Type: text/javascript+xml", PAGE.as_bytes(), false),
        ("xml", "Content-Type: text/xml", PAGE.as_bytes(), false),
        ("svg", "Content-Type: image/svg+xml", PAGE.as_bytes(), false),
        ("other", "Content-Type: application/x-y", PAGE.as_bytes(), false),
        ("text", "Content-Type: text/plain", PAGE.as_bytes(), false),
        ("long", "Content-Type: text/html", long.as_bytes(), false),
        ("wide", "Content-Type: text/html", &wide, true),
        ("none", "Content-Type: text/html", b"<!-- no tag -->", false),
    ];
    let record = |(url, head, body, _): &(&str, &str, &[u8], bool)| {
        headed(&format!("http://a.org/{url}"), &format!("200 OK\r\n{head}"), body)
    };
    let replay = Replay::of(&documents.iter().map(record).collect::<Vec<_>>());
    let runs = |modifier: &str, url: &str, destination: Option<&str>| {
        let path = &format!("/web/{}{modifier}/http://a.org/{url}", STAMPS[0]);
        let response = replay.request(&Request { path, destination, base: BASE, ..Request::default() });
        assert_eq!(response.status, 200, "{path}");
        let connections = response.get("Connection-Allowlist").unwrap();
        assert!(
            connections.starts_with("(response-origin") && !connections.contains("://*"),
            "{connections}"
        );
        let policy = response.get("Content-Security-Policy").unwrap();
        assert!(!policy.contains("http: "), "{policy}");
        let runs = !policy.contains("script-src") && policy.contains("'unsafe-inline'");
        (runs, runs && text(&response).contains("/static/replay.js\""))
    };
    for (url, _, _, expected) in documents {
        let is_page = expected && !url.contains(".js");
        for destination in [None, Some("document"), Some("iframe"), Some("embed"), Some("navigated")] {
            assert_eq!(runs("", url, destination), (expected, is_page), "{url} {destination:?}");
            assert_eq!(runs("mp_", url, destination), (expected, is_page), "{url} {destination:?}");
            assert_eq!(
                runs("id_", url, destination),
                (url.contains("e.js") || url.contains("d.js"), false),
                "{url}"
            );
        }
        assert!(!runs("mp_", url, Some("empty")).1, "what scripts fetch has none of ours: {url}");
    }
}
