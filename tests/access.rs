//! Access rules hide captures from every command that shows captures, but not from commands that maintain the archive.

use std::fs;
use std::io::Read as _;

use archive_testweb::Config;

use crate::support::program::start;
use crate::support::{Archive, TestWeb};

/// Crawls a small site; returns its archive, its home page, and another captured page.
fn crawled() -> (TestWeb, Archive, String, String) {
    let served = TestWeb::start(Config::plain(92, 1, 12));
    let archive = Archive::new();
    let home = served.web.seeds(1).remove(0);
    start(&mut archive.crawl(&[format!("{home} scope=host")], &served.at_once())).wait().succeeded();
    let pages = archive.json("query", &["page type = html and captures > 0 select url"]);
    let page = pages.iter().filter_map(|page| page["url"].as_str()).find(|url| *url != home);
    let page = page.unwrap().to_owned();
    (served, archive, home, page)
}

fn rules(archive: &Archive, text: &str) {
    fs::write(archive.path.join("access.toml"), text).unwrap();
}

/// Returns the URLs of captured HTML pages, as `query` lists them.
pub(crate) fn queried(archive: &Archive, more: &[&str]) -> Vec<String> {
    let query = [&["page type = html select url"], more].concat();
    archive.json("query", &query).iter().map(|page| page["url"].as_str().unwrap().to_owned()).collect()
}

/// Returns the content of every kind of export as one text.
fn exported(archive: &Archive, more: &[&str]) -> String {
    let mut all = String::new();
    for format in ["warc", "cdxj", "links", "wacz", "parquet"] {
        let mut command = archive.command("export");
        let file = archive.folder().join(format!("out.{format}"));
        start(command.arg(format).arg("--output").arg(&file).args(more)).wait().succeeded();
        let bytes = fs::read(&file).unwrap();
        if format == "links" {
            // Other pages may link to a hidden page, as the pages themselves do.
            let text = String::from_utf8(bytes).unwrap();
            all.extend(
                text.lines().filter_map(|line| line.split('\t').next()).map(|page| format!("{page}\n")),
            );
        } else if format == "warc" {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            all.extend(
                text.lines()
                    .filter(|line| line.starts_with("WARC-Target-URI: "))
                    .map(|line| format!("{line}\n")),
            );
        } else {
            all.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
    all
}

#[test]
fn hidden_captures_are_shown_only_to_the_archivist() {
    let (_served, archive, home, page) = crawled();
    let surt = archive_storage::address::surt(&page);
    let before = queried(&archive, &[]);
    rules(&archive, &format!("[[rule]]\nprefix = \"{surt}\"\n"));
    assert_eq!(queried(&archive, &[]).len(), before.len() - 1);
    assert_eq!(queried(&archive, &["--as-archivist"]), before);
    for command in ["get", "history", "diff", "why"] {
        let refused = archive.run(command, &[&page]);
        assert_eq!(refused.code, Some(1), "{command}");
        assert!(refused.errors.contains("rule 1 hides it"), "{command}: {}", refused.errors);
        archive.run(command, &[page.as_str(), "--as-archivist"]).succeeded();
        archive.run(command, &[&home]).succeeded();
    }
    let all = exported(&archive, &["--as-archivist"]);
    let shown = exported(&archive, &[]);
    let target = format!("WARC-Target-URI: {page}\n");
    assert!(all.contains(&target) && all.contains(&format!("\n{page}\n")));
    assert!(!shown.contains(&target) && !shown.contains(&format!("\n{page}\n")));
    assert!(shown.contains(&format!("WARC-Target-URI: {home}\n")));
    assert!(
        all.contains(&format!("{surt} 2")) && !shown.contains(&format!("{surt} 2")),
        "the index hides it too"
    );

    let captures = archive.verify();
    let rebuilt = start(archive.command("rebuild").arg("--json")).wait().succeeded().json().remove(0);
    assert_eq!(rebuilt["captures"], captures, "a rebuild sees everything");
    assert_eq!(queried(&archive, &[]).len(), before.len() - 1);
}

#[test]
fn graphs_rankings_and_queries_of_freshness_leave_out_what_is_hidden() {
    let (_served, archive, home, page) = crawled();
    rules(&archive, &format!("[[rule]]\nprefix = \"{}\"\n", archive_storage::address::surt(&page)));
    let graph = archive.folder().join("graph").to_str().unwrap().to_owned();
    let mut fresh = Vec::new();
    for (more, is_shown) in [(&[][..], false), (&["--as-archivist"][..], true)] {
        archive.run("export", &[&["graph", "--output", &graph], more].concat()).succeeded();
        let mut urls = String::new();
        let packed = fs::File::open(format!("{graph}.urls.gz")).unwrap();
        flate2::read::GzDecoder::new(packed).read_to_string(&mut urls).unwrap();
        let has = |url: &str| urls.lines().any(|line| line == url);
        assert_eq!((has(&home), has(&page)), (true, is_shown), "{urls}");

        let best = archive.json("rank", &[&["--top", "1000"], more].concat());
        let has = |url: &str| best.iter().any(|line| line["name"] == url);
        assert_eq!((has(&home), has(&page)), (true, is_shown), "{best:?}");

        let report = archive.json("freshness", &[&["type = html"], more].concat()).remove(0);
        fresh.push(report["expected"]["pages"].as_u64().unwrap());
        archive.run("plan", &[&["--budget", "5", "--days", "3", "type = html"], more].concat()).succeeded();
    }
    assert_eq!(fresh[1], fresh[0] + 1);
}

#[test]
fn an_embargo_ends_and_dates_bound_a_rule() {
    let (_served, archive, home, _) = crawled();
    for (rule, is_shown) in [
        ("until = 2999-01-01", false),
        ("until = 2020-01-01", true),
        ("for = \"1d\"", false),
        ("for = \"1ms\"", true),
        ("to = 2020-01-01", true),
        ("from = 2020-01-01", false),
    ] {
        rules(&archive, &format!("[[rule]]\nprefix = \"\"\n{rule}\n"));
        assert_eq!(archive.run("get", &[&home]).code == Some(0), is_shown, "{rule}");
        assert_eq!(!queried(&archive, &[]).is_empty(), is_shown, "{rule}");
        let shown = archive.json("access", &[&home]);
        assert_eq!((shown.len(), &shown[0]["shown"]), (1, &is_shown.into()), "{rule}");
    }
    rules(&archive, "[[rule]]\nprefix = \"org,example\"\nfor = \"90d\"\n");
    let listed = archive.json("access", &[""; 0]);
    assert_eq!((&listed[0]["prefix"], &listed[0]["for_seconds"]), (&"org,example".into(), &7_776_000.into()));
    let text = archive.run("access", &[""; 0]).succeeded().text();
    assert!(text.contains("org,example") && text.contains("90.0 days after each capture"), "{text}");
}

#[test]
fn a_mistake_in_the_rules_shows_nothing_and_says_where() {
    let (_served, archive, home, _) = crawled();
    rules(&archive, "[[rule]]\nprefix = \"org,example\"\nfor = \"90 years\"\n");
    for command in [&["query", "page"][..], &["get", &home], &["history", &home], &["access"]] {
        let refused = archive.run(command[0], &command[1..]);
        assert_eq!(refused.code, Some(1), "{command:?}");
        assert!(
            refused.errors.contains("access.toml, line 3, column 7: '90 years' is not a span of time"),
            "{}",
            refused.errors
        );
        assert_eq!(refused.errors.trim().lines().count(), 1, "{}", refused.errors);
    }
    let mut export = archive.command("export");
    let out = archive.folder().join("out.warc");
    assert_eq!(start(export.arg("warc").arg("--output").arg(&out)).wait().code, Some(1));
    assert!(!out.exists());
    let verified = archive.run::<&str>("verify", &[]);
    assert!(
        verified.code == Some(1) && verified.text().contains("access.toml, line 3"),
        "{}",
        verified.text()
    );
    // A symbolic link would lead out of the archive.
    fs::remove_file(archive.path.join("access.toml")).unwrap();
    let elsewhere = archive.file("elsewhere.toml", "[[rule]]\nprefix = \"\"\n");
    std::os::unix::fs::symlink(elsewhere, archive.path.join("access.toml")).unwrap();
    assert_eq!(archive.run("get", &[&home]).code, Some(1));
}

#[test]
fn a_rule_for_www_hides_that_host_and_one_that_fits_nothing_says_so() {
    let archive = Archive::new();
    let pages = ["http://www.a.test/p", "http://a.test/", "http://b.a.test/", "http://other.test/"];
    let records = (1..).zip(pages).map(|(number, url)| {
        crate::support::warc::response(&format!("urn:test:{number}"), url, "2026-01-03T10:00:00Z", "<p>x")
    });
    crate::imports::import(&archive, &[("a.warc", records.collect::<Vec<_>>().concat())]);
    let shown = |rule: &str| {
        rules(&archive, &format!("[[rule]]\nprefix = \"{rule}\"\n"));
        pages.map(|url| archive.run("get", &[url]).code == Some(0))
    };
    // SURTs drop `www`: the host is meant, but none below it.
    assert_eq!(shown("test,a,www"), [false, false, true, true]);
    assert_eq!(shown("test,a,www)/p"), [false, true, true, true]);
    assert_eq!(shown("test,a"), [false, false, false, true]);
    let listed = |rule: &str| {
        rules(&archive, &format!("[[rule]]\nprefix = \"{rule}\"\n"));
        let json = archive.json("access", &[""; 0]).remove(0);
        (json["matches"].as_bool().unwrap(), archive.run("access", &[""; 0]).succeeded().text())
    };
    let (matches, text) = listed("test,a,www)/p");
    assert!(matches && !text.contains("but no URL"), "{text}");
    for rule in ["test,c", "test,a)/q", "www,a,test"] {
        let (matches, text) = listed(rule);
        assert!(!matches && text.contains("but no URL of the archive has this prefix"), "{rule}: {text}");
    }
}
