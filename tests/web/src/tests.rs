//! Compares what the web says about itself with what its documents say.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;
use url::Url;

use super::random::Key;
use super::*;

fn made(config: Config) -> Web {
    Web::new(config).unwrap()
}

fn all(web: &Web) -> impl Iterator<Item = PageIndex> {
    (0..web.pages()).map(PageIndex)
}

/// Returns a web whose clock stands still `days` after its start.
fn standing(mut config: Config, days: i64) -> (Web, Clock) {
    let clock = Clock::simulated(config.start + TimeDelta::days(days));
    config.clock = clock.clone();
    (made(config), clock)
}

#[test]
fn addresses_lead_back_to_their_pages() {
    let web = made(Config::sized(7, 60, 5000));
    let mut seen = BTreeSet::new();
    for page in all(&web) {
        let url = web.url(page);
        assert_eq!(web.page_of(&url), Some(page), "{url}");
        assert_eq!(Url::parse(&url).unwrap().as_str(), url, "addresses are in normal form");
        assert!(web.pages_of(web.host_of(page)).contains(&page.0));
        assert!(seen.insert(url));
    }
    for host in (0..web.hosts()).map(HostIndex) {
        let name = web.host_name(host);
        assert_eq!(web.host_named(&name.to_uppercase()), Some(host));
        assert!(name.ends_with(&format!(".{}", web.site_name(web.site_of(host)))));
        assert_eq!(web.url(web.home(host)), format!("http://{name}/"));
    }
    for wrong in [
        "http://h0.s0.test",
        "http://h0.s0.test/x",
        "https://h0.s0.test/",
        "http://h00.s0.test/",
        "http://h0.s999.test/",
    ] {
        assert_eq!(web.page_of(wrong), None, "{wrong}");
    }
}

#[test]
fn the_largest_web_is_as_quick_as_a_small_one() {
    let web = made(Config::sized(7, 1_000_000, 100_000_000));
    let mut reader = Reader::default();
    for step in 0..2000u64 {
        let page = PageIndex(step * 49_999 + step);
        let url = web.url(page);
        assert_eq!(web.page_of(&url), Some(page), "{url}");
        assert!(reader.get(&web, &url).unwrap().starts_with(b"HTTP/1.1 200 OK\r\n"), "{url}");
    }
    let largest =
        (0..web.hosts()).map(|host| web.pages_of(HostIndex(host))).map(|pages| pages.end - pages.start).max();
    assert!((500_000..10_000_000).contains(&largest.unwrap()), "{largest:?} pages on the largest host");
}

#[test]
fn the_same_seed_gives_the_same_web() {
    let (first, _) = standing(Config::sized(11, 20, 500), 30);
    let (second, _) = standing(Config::sized(11, 20, 500), 30);
    let (other, _) = standing(Config::sized(12, 20, 500), 30);
    let (mut one, mut two) = (Reader::default(), Reader::default());
    let mut differing = 0;
    for page in all(&first) {
        let url = first.url(page);
        assert_eq!(one.get(&first, &url), two.get(&second, &url));
        differing += u32::from(
            first.url(page) != other.url(page)
                || first.version(page, first.clock().now()) != other.version(page, other.clock().now()),
        );
    }
    assert!(differing > 250, "another seed gives another web, but only {differing} pages differ");
}

/// Returns the resolved navigational links of an HTML document, without fragments, duplicates and links to other things
/// than pages.
fn html_links(body: &[u8], url: &str) -> Vec<String> {
    use lol_html::{HtmlRewriter, Settings, element};
    use std::cell::RefCell;

    let base = RefCell::new(Url::parse(url).unwrap());
    let links = RefCell::new(Vec::new());
    let keep = |address: Option<String>| {
        let Some(mut link) = address.and_then(|address| base.borrow().join(&address).ok()) else { return };
        link.set_fragment(None);
        let link = link.to_string();
        if link.starts_with("http") && !links.borrow().contains(&link) {
            links.borrow_mut().push(link);
        }
    };
    let mut rewriter = HtmlRewriter::new(
        Settings::new()
            .append_element_content_handler(element!("base[href]", |element| {
                let address = element.get_attribute("href").unwrap();
                let joined = base.borrow().join(&address)?;
                base.replace(joined);
                Ok(())
            }))
            .append_element_content_handler(element!("a[href], area[href]", |element| {
                keep(element.get_attribute("href"));
                Ok(())
            }))
            .append_element_content_handler(element!("iframe[src]", |element| {
                keep(element.get_attribute("src"));
                Ok(())
            })),
        |_: &[u8]| {},
    );
    rewriter.write(body).unwrap();
    rewriter.end().unwrap();
    links.into_inner()
}

/// Returns the XLink links of an XML document, ignoring its external entity.
fn xml_links(body: &[u8], url: &str) -> Vec<String> {
    let text = String::from_utf8_lossy(body).replace("&legal;", "");
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..roxmltree::ParsingOptions::default() };
    let document = roxmltree::Document::parse_with_options(&text, options).unwrap();
    let base = Url::parse(url).unwrap();
    let mut links = Vec::new();
    for node in document.descendants() {
        if let Some(address) = node.attribute(("http://www.w3.org/1999/xlink", "href")) {
            let link = base.join(address).unwrap().to_string();
            if !links.contains(&link) {
                links.push(link);
            }
        }
    }
    links
}

#[test]
fn documents_have_the_links_of_the_truth_in_its_order() {
    let config = Config {
        traps: true,
        faults: true,
        link_churn: 0.2,
        birth_share: 0.1,
        legacy_encoding_share: 0.0,
        ..Config::sized(3, 30, 1500)
    };
    let (web, clock) = standing(config, 100);
    let now = clock.now();
    let mut reader = Reader::default();
    let mut kinds = BTreeMap::new();
    for page in all(&web).filter(|page| web.exists(*page, now)) {
        let url = web.url(page);
        let body = reader.body(&web, &url).unwrap();
        let found = if web.form(page) == Form::Html { html_links(body, &url) } else { xml_links(body, &url) };
        let truth = web.link_urls(page, now);
        assert_eq!(found, truth, "{url}");
        for (link, address) in web.links(page, now).iter().zip(&truth) {
            let kind = match link {
                Link::Page(target) => {
                    assert_eq!(web.url(*target), *address);
                    "page"
                }
                Link::Redirect { .. } => "redirect",
                Link::Missing { .. } => "missing",
                Link::Gone { .. } => "gone",
                Link::Elsewhere(_) => "elsewhere",
            };
            *kinds.entry(kind).or_insert(0) += 1;
        }
    }
    assert_eq!(kinds.len(), 5, "{kinds:?}");
    assert!(
        kinds["page"] > 20_000 && kinds["redirect"] > 200 && kinds["missing"] > 50 && kinds["gone"] > 20,
        "{kinds:?}"
    );
}

/// Returns the value of a header of an answer.
fn header<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    let head = answer.split("\r\n\r\n").next().unwrap();
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

#[test]
fn redirects_end_at_their_target_after_their_hops() {
    let web = made(Config { redirect_share: 0.3, ..Config::sized(3, 30, 1500) });
    let now = web.clock().now();
    let mut reader = Reader::default();
    let mut statuses = BTreeSet::new();
    for page in all(&web).take(100) {
        for (link, address) in web.links(page, now).iter().zip(web.link_urls(page, now)) {
            let Link::Redirect { target, status, hops } = *link else { continue };
            statuses.insert(status);
            let mut here = Url::parse(&address).unwrap();
            for _ in 0..hops {
                let answer = String::from_utf8_lossy(reader.get(&web, here.as_str()).unwrap()).into_owned();
                assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
                let refresh = answer.split("; url=").nth(1).and_then(|rest| rest.split('"').next());
                here = here.join(header(&answer, "Location").or(refresh).unwrap()).unwrap();
            }
            assert_eq!(web.page_of(here.as_str()), Some(target));
        }
    }
    assert_eq!(statuses, BTreeSet::from([200, 301, 302, 303, 307, 308]));
}

#[test]
fn duplicates_are_what_they_are_said_to_be() {
    let config = Config {
        duplicate_share: 0.2,
        near_duplicate_share: 0.2,
        noise_share: 0.0,
        ..Config::sized(3, 10, 1000)
    };
    let (web, _clock) = standing(config, 50);
    let (mut reader, mut other) = (Reader::default(), Reader::default());
    let (mut exact, mut near) = (0, 0);
    for page in all(&web) {
        let Some((original, is_exact)) = web.original(page) else { continue };
        assert_eq!(web.host_of(page), web.host_of(original));
        assert_eq!(web.original(original), None, "an original is no copy");
        let copy = String::from_utf8_lossy(reader.body(&web, &web.url(page)).unwrap()).into_owned();
        let first = String::from_utf8_lossy(other.body(&web, &web.url(original)).unwrap()).into_owned();
        if is_exact {
            assert_eq!(copy, first);
            exact += 1;
        } else {
            assert_ne!(copy, first);
            let words: BTreeSet<&str> = first.split_whitespace().collect();
            let shared = copy.split_whitespace().filter(|word| words.contains(word)).count();
            assert!(shared * 10 > copy.split_whitespace().count() * 8, "{} shares too little", web.url(page));
            near += 1;
        }
    }
    assert!(exact > 80 && near > 80, "{exact} and {near}");
}

#[test]
fn documents_change_when_the_truth_says_so() {
    let config = Config {
        changes: ChangeRates { never_share: 0.2, median_per_day: 0.3, spread: 1.0, per_day_max: 5.0 },
        site_edits: SiteEdits { per_day: 0.05, share: 0.5 },
        birth_share: 0.2,
        death_share: 0.2,
        noise_share: 0.1,
        ..Config::sized(5, 5, 100)
    };
    let (web, clock) = standing(config, 0);
    let start = clock.now();
    let mut reader = Reader::default();
    let mut changed = 0;
    let mut bodies: BTreeMap<PageIndex, Vec<u8>> = BTreeMap::new();
    for day in 1..=40 {
        clock.set(start + TimeDelta::days(day));
        let (before, now) = (start + TimeDelta::days(day - 1), clock.now());
        for page in all(&web) {
            let url = web.url(page);
            if !web.exists(page, now) {
                let answer = reader.get(&web, &url).unwrap();
                assert!(answer.starts_with(b"HTTP/1.1 404 ") || answer.starts_with(b"HTTP/1.1 410 "));
                bodies.remove(&page);
                continue;
            }
            let changes = web.changes(page, before, now);
            assert_eq!(web.version(page, now) - web.version(page, before), changes.len() as u64, "{url}");
            if let Some(last) = changes.last() {
                assert_eq!(web.last_modified(page, now), *last);
                changed += 1;
            } else if web.exists(page, before) {
                assert_eq!(web.last_modified(page, now), web.last_modified(page, before));
            }
            let body = reader.body(&web, &url).unwrap().to_vec();
            if let Some(old) = bodies.insert(page, body.clone()) {
                // Births of children change the links of their parents; noise changes all.
                let links_changed = web.links(page, before) != web.links(page, now);
                assert_eq!(
                    old != body,
                    !changes.is_empty() || links_changed || web.noisy(page),
                    "{url} on day {day}"
                );
            }
        }
    }
    assert!(changed > 500, "{changed}");
}

#[test]
fn rates_are_the_rates_of_the_changes() {
    let config = Config { site_edits: SiteEdits { per_day: 0.1, share: 0.5 }, ..Config::sized(5, 20, 2000) };
    let web = made(config);
    let (start, days) = (web.config().start, 500);
    let expected: f64 = all(&web).map(|page| web.rate(page) * f64::from(days)).sum();
    let end = start + TimeDelta::days(days.into());
    let found: usize = all(&web).map(|page| web.changes(page, start, end).len()).sum();
    assert!((found as f64 / expected - 1.0).abs() < 0.05, "{found} changes, {expected} expected");
}

#[test]
fn sitemaps_and_robots_say_what_is_true() {
    let (web, clock) = standing(
        Config { robots_share: 0.5, crawl_delay_share: 0.5, birth_share: 0.1, ..Config::sized(9, 6, 3000) },
        60,
    );
    let now = clock.now();
    let mut reader = Reader::default();
    let mut forbidden = 0;
    for host in (0..web.hosts()).map(HostIndex) {
        let home = web.url(web.home(host));
        let robots =
            String::from_utf8_lossy(reader.body(&web, &format!("{home}robots.txt")).unwrap()).into_owned();
        assert!(robots.contains(&format!("Sitemap: {home}sitemap.xml")));
        let delay = robots.lines().find_map(|line| line.strip_prefix("Crawl-delay: ")?.parse().ok());
        assert_eq!(delay, web.crawl_delay(host));
        let rule = robots.lines().find_map(|line| line.strip_prefix("Disallow: "));
        let mut listed = BTreeMap::new();
        let mut open = vec![format!("{home}sitemap.xml")];
        while let Some(url) = open.pop() {
            let text = String::from_utf8_lossy(reader.body(&web, &url).unwrap()).into_owned();
            let document = roxmltree::Document::parse(&text).unwrap();
            for entry in document.root_element().children().filter(roxmltree::Node::is_element) {
                let field = |name| {
                    entry
                        .children()
                        .find(|child| {
                            child.has_tag_name(("http://www.sitemaps.org/schemas/sitemap/0.9", name))
                        })
                        .and_then(|child| child.text())
                        .map(String::from)
                };
                match entry.tag_name().name() {
                    "sitemap" => open.push(field("loc").unwrap()),
                    _ => assert!(listed.insert(field("loc").unwrap(), field("lastmod").unwrap()).is_none()),
                }
            }
        }
        for page in web.pages_of(host).map(PageIndex) {
            let url = web.url(page);
            let is_forbidden = rule.is_some_and(|rule| url[home.len() - 1..].starts_with(rule));
            assert_eq!(is_forbidden, !web.allowed(page), "{url} under {rule:?}");
            forbidden += u32::from(is_forbidden);
            let lastmod = listed.remove(&url);
            assert_eq!(lastmod.is_some(), web.exists(page, now) && !is_forbidden, "{url}");
            if let Some(lastmod) = lastmod {
                assert!(
                    web.last_modified(page, now)
                        .format("%Y-%m-%dT%H:%M:%SZ")
                        .to_string()
                        .starts_with(&lastmod)
                );
            }
        }
        assert!(listed.is_empty());
    }
    assert!(forbidden > 50);
}

#[test]
fn feeds_are_well_formed_and_newest_first() {
    let (web, clock) = standing(Config::sized(9, 6, 600), 60);
    let now = clock.now();
    let mut reader = Reader::default();
    for host in (0..web.hosts()).map(HostIndex) {
        for (name, entry, link) in [("feed.rss", "item", "link"), ("feed.atom", "entry", "id")] {
            let url = format!("{}{name}", web.url(web.home(host)));
            let text = String::from_utf8_lossy(reader.body(&web, &url).unwrap()).into_owned();
            let document = roxmltree::Document::parse(&text).unwrap();
            let times: Vec<_> = document
                .descendants()
                .filter(|node| node.tag_name().name() == entry)
                .map(|node| {
                    node.children()
                        .find(|child| child.tag_name().name() == link)
                        .and_then(|child| child.text())
                        .unwrap()
                        .to_owned()
                })
                .map(|url| web.last_modified(web.page_of(&url).unwrap(), now).timestamp())
                .collect();
            assert!(times.len() > 5 || web.pages_of(host).count() < 20, "{url}");
            assert!(times.is_sorted_by(|left, right| left >= right), "{url}");
        }
    }
}

#[test]
fn requisites_are_there() {
    let web = made(Config::sized(9, 6, 300));
    let mut reader = Reader::default();
    for page in all(&web) {
        for requisite in web.requisites(page) {
            assert!(reader.get(&web, &requisite).unwrap().starts_with(b"HTTP/1.1 200 OK"), "{requisite}");
        }
        let url = web.url(page);
        let body = String::from_utf8_lossy(reader.body(&web, &url).unwrap()).into_owned();
        let named = web
            .requisites(page)
            .iter()
            .filter(|url| body.contains(url.split_once(".test").unwrap().1))
            .count();
        // The style sheet names three more requisites.
        let hidden = if web.form(page) == Form::Html { 3 } else { 0 };
        assert_eq!(named + hidden, web.requisites(page).len(), "{url}");
    }
    assert!(made(Config::plain(1, 1, 9)).requisites(PageIndex(3)).is_empty());
}

#[test]
fn legacy_encodings_are_declared_somewhere() {
    let web = made(Config { legacy_encoding_share: 1.0, noise_share: 0.0, ..Config::sized(9, 40, 400) });
    let utf8 = made(Config {
        legacy_encoding_share: 0.0,
        noise_share: 0.0,
        clock: Clock::simulated(web.config().start),
        ..Config::sized(9, 40, 400)
    });
    let (mut reader, mut other) = (Reader::default(), Reader::default());
    let mut silent_heads = 0;
    for page in all(&web).step_by(7) {
        let url = web.url(page);
        let head = String::from_utf8_lossy(reader.get(&web, &url).unwrap()).into_owned();
        let body = reader.body(&web, &url).unwrap();
        let label = if body.windows(12).any(|window| window == b"windows-1251") {
            "windows-1251"
        } else {
            "windows-1252"
        };
        silent_heads += u32::from(!header(&head, "Content-Type").unwrap().contains("charset"));
        let (text, _, has_errors) = encoding_rs::Encoding::for_label(label.as_bytes()).unwrap().decode(body);
        assert!(!has_errors);
        let expected = String::from_utf8_lossy(other.body(&utf8, &url).unwrap()).into_owned();
        let title = |text: &str| text.split("title>").nth(1).map(String::from);
        assert_eq!(title(&text), title(&expected), "{url}");
    }
    assert!(silent_heads > 5);
}

#[test]
fn pages_have_a_realistic_size() {
    let web = made(Config::default());
    let mut reader = Reader::default();
    let mut sizes: Vec<usize> = all(&web)
        .step_by(13)
        .filter(|page| web.form(*page) == Form::Html)
        .map(|page| reader.body(&web, &web.url(page)).unwrap().len())
        .collect();
    sizes.sort_unstable();
    let median = sizes[sizes.len() / 2];
    assert!((8_000..15_000).contains(&median), "median {median} bytes");
}

#[test]
fn busy_hosts_say_when_to_come_back() {
    let (web, clock) = standing(Config { busy_share: 0.3, ..Config::sized(9, 10, 100) }, 1);
    let mut reader = Reader::default();
    let (mut busy, mut total) = (0, 0);
    for _ in 0..60 {
        for host in (0..web.hosts()).map(HostIndex) {
            let answer =
                String::from_utf8_lossy(reader.get(&web, &web.url(web.home(host))).unwrap()).into_owned();
            total += 1;
            if answer.starts_with("HTTP/1.1 503 ") || answer.starts_with("HTTP/1.1 429 ") {
                busy += 1;
                assert!(header(&answer, "Retry-After").is_some());
            }
        }
        clock.advance(TimeDelta::minutes(1));
    }
    assert!((0.2..0.4).contains(&(f64::from(busy) / f64::from(total))), "{busy} of {total}");
}

#[test]
fn traps_have_no_end() {
    let web = made(Config::default());
    let mut reader = Reader::default();
    let mut next = Key::new(1).stream();
    for entrance in traps::ENTRANCES {
        let mut url = entrance.to_owned();
        let mut seen = BTreeSet::new();
        for _ in 0..100 {
            let body = reader.body(&web, &url).unwrap().to_vec();
            let links: Vec<String> =
                html_links(&body, &url).into_iter().filter(|link| seen.insert(link.clone())).collect();
            assert!(!links.is_empty(), "{url} leads nowhere new");
            url = links[next.below(links.len() as u64) as usize].clone();
        }
        assert!(reader.get(&web, &format!("{entrance}robots.txt")).unwrap().starts_with(b"HTTP/1.1 404"));
    }
}
