//! Versions side by side, and feeds, sitemaps and XML as people read them, always as text, whatever they contain.

use std::fs;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::imports::import;
use crate::support::Archive;
use crate::support::browser::Browser;
use crate::support::served::{Served, ask};
use crate::support::warc::answer;

const DAYS: [&str; 2] = ["2026-01-03T03:03:21Z", "2026-02-03T03:03:21Z"];

/// Returns an archive of pages with one version per day.
fn archive(pages: &[(&str, &str, [&str; 2])]) -> Archive {
    let mut file = Vec::new();
    for (page, (url, kind, versions)) in pages.iter().enumerate() {
        for (version, (day, body)) in DAYS.iter().zip(versions).enumerate() {
            let block = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n{body}");
            file.extend(answer(&format!("urn:test:{page}:{version}"), url, day, &[], &block));
        }
    }
    let archive = Archive::new();
    import(&archive, &[("versions.warc", file)]);
    archive
}

fn get(served: &Served, path: &str, accept: &str) -> (u16, String) {
    let answer = ask(&served.application, "GET", path, &[&format!("Accept: {accept}")]);
    (answer.status, String::from_utf8(answer.body).unwrap())
}

fn html(served: &Served, path: &str) -> String {
    let (status, text) = get(served, path, "text/html");
    assert_eq!(status, 200, "{path}: {text}");
    text
}

fn json(served: &Served, path: &str) -> Value {
    let (status, text) = get(served, path, "application/json");
    assert_eq!(status, 200, "{path}: {text}");
    serde_json::from_str(&text).unwrap()
}

fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

const HOURS: [&str; 2] = [
    "<title>Hours</title><p>The library opens at nine every day.</p><p>Ask &lt;script&gt;alert(1)&lt;/script&gt; there.</p>",
    "<title>Hours</title><p>The library opens at ten every day.</p><p>Ask &lt;script&gt;alert(2)&lt;/script&gt; there.</p>",
];
const BOOKS: [&str; 2] = [
    "<books><book><title>One &lt;img src=x onerror=alert(1)&gt;</title></book></books>",
    "<books><book><title>Two &lt;img src=x onerror=alert(1)&gt;</title></book><book><title>New</title></book></books>",
];

#[test]
fn two_versions_are_compared_by_words_and_by_elements() {
    let archive = archive(&[
        ("http://a.test/", "text/html", HOURS),
        ("http://a.test/books.xml", "application/xml", BOOKS),
        ("http://a.test/once", "text/plain", ["the same", "the same"]),
    ]);
    let served = Served::of(&archive);
    let page = html(&served, "/page?url=http://a.test/");
    assert!(page.contains("action=\"/compare\"") && page.matches("type=\"radio\"").count() == 4, "{page}");
    let words = html(&served, "/compare?url=http://a.test/");
    assert!(words.contains("<del>nine</del>") && words.contains("<ins>ten</ins>"), "{words}");
    assert!(words.contains("&lt;script&gt;alert(2)") && !words.contains("<script"), "{words}");
    let elements = html(&served, "/compare?url=http://a.test/books.xml");
    assert!(elements.contains("/books/book[2]") && elements.contains("<ins>"), "{elements}");
    assert!(!elements.contains("<img"), "{elements}");
    // The command reports the same.
    for url in ["http://a.test/", "http://a.test/books.xml", "http://a.test/once"] {
        let data = json(&served, &format!("/compare?url={url}"));
        let mut said = archive.json("diff", &[url]).remove(0);
        for name in ["from", "to"] {
            // Seconds there, microseconds here.
            assert_eq!(said[name].as_str().unwrap().replace(".000000", ""), data[name].as_str().unwrap());
            said[name] = data[name].clone();
        }
        assert_eq!(data, said);
    }
    let once = json(&served, "/compare?url=http://a.test/once");
    assert_eq!((&once["kind"], &once["from"]), (&"none".into(), &once["to"]));
    // The older version always comes first; a version may be compared with itself.
    let [old, new] = DAYS.map(encoded);
    let turned = json(&served, &format!("/compare?url=http://a.test/&from={new}&to={old}"));
    assert_eq!(turned["to"], DAYS[1]);
    let same = json(&served, &format!("/compare?url=http://a.test/&from={new}&to={new}"));
    assert_eq!((&same["kind"], &same["from"]), (&"none".into(), &DAYS[1].into()));
    for (path, status) in [
        ("/compare?url=http://a.test/&from=yesterday", 400),
        ("/compare?url=http://nowhere.test/", 404),
        ("/compare", 400),
        ("/page", 400),
        ("/read?url=http://a.test/books.xml&at=x", 400),
    ] {
        assert_eq!(get(&served, path, "*/*").0, status, "{path}");
    }
    fs::write(archive.path.join("access.toml"), "[[rule]]\nprefix = \"test,a\"\nfrom = 2026-02-01\n")
        .unwrap();
    thread::sleep(Duration::from_millis(600));
    let seen = json(&served, "/compare?url=http://a.test/");
    assert_eq!(
        (&seen["to"], &seen["kind"]),
        (&DAYS[0].into(), &"none".into()),
        "the hidden version is not there"
    );
    fs::write(archive.path.join("access.toml"), "[[rule]]\nprefix = \"\"\n").unwrap();
    thread::sleep(Duration::from_millis(600));
    for path in ["/compare?url=http://a.test/", "/read?url=http://a.test/books.xml"] {
        assert_eq!(get(&served, path, "*/*").0, 404, "{path}");
    }
}

#[test]
fn a_comparison_says_where_it_stops() {
    // Too large for a tree, but its text is compared at once.
    let same: String = (0..4300).map(|number| format!("<b>{number} {}</b>", "x".repeat(1000))).collect();
    let large = |word: &str| format!("<a><b>{word}</b>{same}</a>");
    let many =
        |word: &str| (0..3000).map(|number| format!("<p>Line {number} says {word}.</p>")).collect::<String>();
    let versions = [["one", "two"].map(large), ["one", "two"].map(many)];
    let [xml, html_pages] = versions.each_ref().map(|both| [both[0].as_str(), both[1].as_str()]);
    let archive = archive(&[
        ("http://a.test/large.xml", "text/xml", xml),
        ("http://a.test/many", "text/html", html_pages),
    ]);
    let served = Served::of(&archive);
    assert_eq!(json(&served, "/compare?url=http://a.test/large.xml")["cut"], "no-tree");
    assert!(html(&served, "/compare?url=http://a.test/large.xml").contains("to be compared as XML"));
    let many = html(&served, "/compare?url=http://a.test/many");
    assert!(many.contains("These are the first 1,000 of "), "it has {} bytes", many.len());
}

#[test]
fn feeds_sitemaps_and_xml_are_read_as_text() {
    let feed = "<rss><channel><title>News &lt;b&gt;of&lt;/b&gt; <![CDATA[<script>alert(1)</script>]]>all</title>\
                <item><title>One</title><link>/one</link><description>&lt;p onclick=x()&gt;Said&lt;/p&gt;</description></item>\
                <item><title>&amp;lt;script&amp;gt;</title><link>javascript:alert(1)</link></item></channel></rss>";
    let map = "<urlset><url><loc>http://a.test/one</loc><lastmod>2026-01-01</lastmod></url>\
               <url><loc>http://a.test/\"onmouseover=alert(1) x=\"</loc></url></urlset>";
    let tree = "<data made='\"&gt;&lt;script&gt;'><?pi x?><!-- <b>no</b> --><item>&lt;script&gt;alert(1)&lt;/script&gt;</item>\
                <group><item a='1'>deep</item></group></data>";
    let archive = archive(&[
        ("http://a.test/feed", "application/rss+xml", [feed, feed]),
        ("http://a.test/map.xml", "application/xml", [map, map]),
        ("http://a.test/data.xml", "application/xml", [tree, tree]),
        ("http://a.test/one", "text/html", ["<title>One</title>", "<title>One</title>"]),
    ]);
    let served = Served::of(&archive);
    for (name, how) in [("feed", "list"), ("map.xml", "table"), ("data.xml", "tree")] {
        let url = encoded(&format!("http://a.test/{name}"));
        let page = html(&served, &format!("/page?url={url}"));
        assert!(page.contains(&format!("/read?url={url}")) && page.contains(how), "{page}");
        let read = html(&served, &format!("/read?url={url}"));
        for markup in ["<script", "<b>", "onclick", "href=\"javascript", " onmouseover"] {
            assert!(!read.contains(markup), "{name}: {markup}: {read}");
        }
    }
    assert!(!html(&served, "/page?url=http://a.test/one").contains("/read?"));
    let data = json(&served, "/read?url=http://a.test/feed");
    assert_eq!((&data["kind"], &data["items"][0]["text"]), (&"feed".into(), &"Said".into()));
    let read = html(&served, "/read?url=http://a.test/feed");
    let one = encoded("http://a.test/one");
    assert!(read.contains(&format!("<a href=\"/page?url={one}\">/one</a>")), "{read}");
    assert!(html(&served, "/read?url=http://a.test/map.xml").contains("2026-01-01"));
    let tree = html(&served, "/read?url=http://a.test/data.xml");
    assert!(tree.contains("<details open>") && tree.contains("&lt;script&gt;alert(1)"), "{tree}");
    let (status, text) = get(&served, "/read?url=http://a.test/one", "text/html");
    assert!(status == 404 && text.contains("It is not an XML document."), "{text}");
}

#[test]
fn versions_are_chosen_and_trees_opened_in_a_browser_without_script() {
    let archive = archive(&[
        ("http://a.test/", "text/html", HOURS),
        ("http://a.test/books.xml", "application/xml", BOOKS),
    ]);
    let served = Served::of(&archive);
    let Some(browser) = Browser::start(false) else { return };
    browser.go(&format!("http://{}/page?url=http://a.test/", served.application));
    browser.click("input[name=from][value^='2026-01']");
    browser.click("input[name=to][value^='2026-02']");
    browser.click("form[action='/compare'] button");
    browser.wait_for("<ins>ten</ins>");
    browser.go(&format!("http://{}/read?url=http://a.test/books.xml", served.application));
    browser.wait_for("<details open=\"\">");
    browser.click("summary");
    browser.wait_for("<details><summary><code>books");
}

#[test]
fn pictures_show_the_numbers_of_the_archive() {
    let empty = Archive::new();
    import(&empty, &[("empty.warc", Vec::new())]);
    let archive = archive(&[
        ("http://a.test/", "text/html", HOURS),
        ("http://a.test/books.xml", "application/xml", BOOKS),
    ]);
    let served = Served::of(&archive);
    let data = json(&served, "/pictures");
    assert_eq!(data["growth"].as_array().unwrap().last().unwrap()["captures"], 4);
    for bars in ["importance", "intervals"] {
        let bars = data[bars].as_array().unwrap().iter();
        assert_eq!(bars.map(|bar| bar["pages"].as_u64().unwrap()).sum::<u64>(), 2);
    }
    let plan = archive.json("plan", &["--budget", "2", "--days", "30"]);
    let all = plan.iter().find(|row| row["budget"] == 2).unwrap()["freshness"].as_f64().unwrap();
    let shown = data["freshness"].as_array().unwrap().last().unwrap()["freshness"].as_f64().unwrap();
    assert!((all - shown).abs() < 1e-3, "{all} and {shown}");
    let page = html(&served, "/pictures");
    assert_eq!(page.matches("<svg").count(), 5, "{page}");
    assert!(html(&Served::of(&empty), "/pictures").contains("Nothing was captured yet."));
}
