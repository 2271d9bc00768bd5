//! The test cases of Google's robots.txt parser, and unusual real files.

use std::time::Duration;

use archive_web::fetch::robots::Robots;
use serde_json::Value;
use url::Url;

use super::{Tally, data};

#[test]
fn cases() {
    let Some(json) = data("robots/cases.json") else { return };
    let cases: Vec<Value> = serde_json::from_slice(&json).unwrap();
    let mut tally = Tally::default();
    for (number, case) in cases.iter().enumerate() {
        let [file, agent, url] = ["robots", "agent", "url"].map(|name| case[name].as_str().unwrap());
        let expected = case["allowed"].as_bool().unwrap();
        let robots = Robots::parse(file.as_bytes(), agent);
        // URLs are matched as given, not as normalized by a parser.
        let path = url.find("//").and_then(|at| url[at + 2..].find('/').map(|slash| &url[at + 2 + slash..]));
        if robots.check_path(path.unwrap_or_default()).allowed == expected {
            tally.held();
        } else {
            tally.missed(&format!("{number} {} {url}", case["group"]), reason(file, url));
        }
    }
    tally.finish("robots.txt cases", 119);
}

/// Reasons for misses: where Google's parser deviates from RFC 9309, the crawler follows the RFC.
fn reason(file: &str, url: &str) -> Option<&'static str> {
    if !url.is_ascii() {
        return Some(
            "RFC 9309, 2.2.2: octets outside of ASCII are escaped on both sides; Google's takes escaped URLs only",
        );
    }
    let is_decoded = file.contains("%62%61%7A") && url.ends_with("baz");
    is_decoded.then_some("RFC 9309, 2.2.2, table 1: %62 is compared as b; Google's doesn't decode")
}

#[test]
fn odd_files() {
    let read = |name: &str, robot: &str| Some(Robots::parse(&data(&format!("robots/{name}"))?, robot));
    let allowed = |name: &str, robot: &str, path: &str| Some(read(name, robot)?.check_path(path).allowed);
    let delay = |name: &str, robot: &str| Some(read(name, robot)?.crawl_delay());
    let Some(sitemaps) = read("sitemap-robots.txt", "x") else { return };

    assert_eq!(
        sitemaps.sitemaps(),
        ["http://domain.com/sitemap.xml", "http://domain.com/dir/MixedCased-sitemap.xml"]
    );
    assert_eq!(read("relative-sitemap-robots.txt", "x").unwrap().sitemaps(), ["/sitemap.xml"]);

    assert_eq!(delay("dos-line-endings.txt", "x"), Some(Some(Duration::from_secs(1))));
    assert_eq!(delay("astore.amazon.com-robots.txt", "x"), Some(Some(Duration::from_secs(5))));
    assert_eq!(delay("extended-standard-robots.txt", "bot1"), Some(Some(Duration::from_secs(2))));
    for (robot, seconds) in [("mybot", Some(10)), ("yourbot", None), ("other", Some(30))] {
        assert_eq!(
            delay("crawl-delay-group-merging.txt", robot),
            Some(seconds.map(Duration::from_secs)),
            "{robot}"
        );
    }

    for (name, robot, path, expected) in [
        ("crawl-delay-group-merging.txt", "mybot", "/private/", false),
        ("crawl-delay-group-merging.txt", "yourbot", "/private/", false),
        ("crawl-delay-group-merging.txt", "yourbot", "/login/", false),
        ("crawl-delay-group-merging.txt", "other", "/login/", true),
        ("merge-rules.txt", "wget", "/foo/bar/x", true),
        ("merge-rules.txt", "wget", "/tmp/bar", false),
        ("merge-rules.txt", "other", "/foo/bar", false),
        ("merge-rules.txt", "curl", "/", false),
        ("precedence-of-rules.txt", "wget", "/index.html", true),
        ("precedence-of-rules.txt", "wget", "/other", false),
        ("precedence-of-rules.txt", "testy", "/foo/bar", true),
        ("precedence-of-rules.txt", "testy", "/foo/bxr", false),
        ("rfc9309-example-longest-match-robots.txt", "foobot", "/example/page/disallowed.gif", false),
        ("rfc9309-example-longest-match-robots.txt", "foobot", "/example/page/x.gif", true),
        ("rfc9309-example-rule-group-merging.txt", "ExampleBot", "/foo", false),
        ("rfc9309-example-rule-group-merging.txt", "ExampleBot", "/baz", false),
        ("rfc9309-example-rule-group-merging.txt", "BazBot", "/foo", true),
        ("rfc9309-example-simple-robots.txt", "foobot", "/example/page.html", true),
        ("rfc9309-example-simple-robots.txt", "foobot", "/x", false),
        ("rfc9309-example-simple-robots.txt", "bazbot", "/example/page.html", false),
        ("rfc9309-example-simple-robots.txt", "quxbot", "/example/page.html", true),
        ("rfc9309-example-simple-robots.txt", "other", "/a/b.gif", false),
        ("rfc9309-example-simple-robots.txt", "other", "/a/b.gif?c", true),
        ("directive-typos-robots.txt", "bot1", "/dissalow/x", false),
        ("directive-typos-robots.txt", "bot1", "/desallow/x", true),
        ("directive-typos-robots.txt", "bot2", "/useragent/", false),
        ("format-errors-robots.txt", "bot1", "/whitespace-before-colon/", false),
        ("format-errors-robots.txt", "bot1", "/no-colon/", false),
        ("format-errors-robots.txt", "bot2", "/no-colon-useragent/", false),
        ("format-errors-robots.txt", "bot3", "/whitespace-before-colon", true),
        ("malformed-path.txt", "x", "/wiki/Wikipedia_talk:Mediation_Committee/", false),
        ("malformed-path.txt", "x", "/wiki/Wikipedia_talk%3Mediation_Committee/", false),
        ("malformed-path.txt", "x", "/wiki/Other", true),
        ("wildcards.txt", "x", "/gp/cart/view.html", false),
        ("wildcards.txt", "x", "/other", true),
        ("many-user-agents.txt", "wget", "/", false),
    ] {
        assert_eq!(allowed(name, robot, path), Some(expected), "{name} {robot} {path}");
    }
    let marks =
        ["utf8", "utf16le", "utf16be"].map(|mark| read(&format!("robots-with-{mark}-bom.txt"), "x").unwrap());
    assert!(marks[0].rule_count() > 0 && marks.iter().all(|robots| *robots == marks[0]));
    let url = Url::parse("http://a.example/").unwrap();
    assert!(marks[0].check(&url).allowed);
}
