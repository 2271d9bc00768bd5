use proptest::prelude::*;

use super::*;

fn allowed(file: &str, path: &str) -> bool {
    Robots::parse(file.as_bytes(), "archive").check_path(path).allowed
}

#[test]
fn the_most_specific_rule_decides_and_says_so() {
    let robots =
        Robots::parse(b"# x\r\nUser-agent: *\rAllow: /a\nDisallow: /a/b # c\nAllow: /a/*c$\n", "archive");
    assert_eq!(robots.check_path("/a/x"), RobotsVerdict { allowed: true, rule: Some((3, "/a")) });
    assert_eq!(robots.check_path("/a/bx"), RobotsVerdict { allowed: false, rule: Some((4, "/a/b")) });
    assert_eq!(robots.check_path("/a/bc"), RobotsVerdict { allowed: true, rule: Some((5, "/a/*c$")) });
    assert_eq!(robots.check_path("/x"), RobotsVerdict { allowed: true, rule: None });
    let url = Url::parse("http://a.example/a/b?d#c").unwrap();
    assert!(!robots.check(&url).allowed);
}

#[test]
fn groups_are_found_and_put_together() {
    let file = "User-agent: other\nUser-agent: Archive/2.0 (+http://x)\nDisallow: /1\n
                User-agent: *\nDisallow: /\n\nuser-agent: ARCHIVE\nDisallow: /2";
    assert!(!allowed(file, "/1") && !allowed(file, "/2") && allowed(file, "/3"));
    assert!(!Robots::parse(file.as_bytes(), "third").check_path("/3").allowed);
    assert!(Robots::parse(file.as_bytes(), "other").check_path("/2").allowed);
    assert!(allowed("User-agent: archive\nUser-agent: x\n\nUser-agent: *\nAllow: /", "/"));
    assert!(
        allowed("User-agent: archive\nDisallow:\nUser-agent: *\nDisallow: /", "/"),
        "an empty rule forbids nothing"
    );
    assert!(allowed("User-agent: archiver\nDisallow: /", "/"), "a longer name is another robot");
    assert!(allowed("Disallow: /", "/"), "a rule without a group is nobody's");
}

#[test]
fn escapes_are_compared_in_normal_form() {
    let forbids = |pattern: &str, path: &str| !allowed(&format!("User-agent: *\nDisallow: {pattern}"), path);
    assert!(forbids("/a%3cd", "/a%3Cd"));
    assert!(forbids("/%62%61%7A", "/baz"));
    assert!(forbids("/baz", "/%62%61%7a"));
    assert!(forbids("/\u{30c4}", "/%E3%83%84"));
    assert!(!forbids("/a%2Fb", "/a/b"));
    assert!(forbids("/a-%2A.html", "/a-*.html"));
    assert!(forbids("/a-%24", "/a-$"));
    assert!(forbids("/a$b", "/a$bc"));
    assert!(forbids("/100%", "/100%"));
}

#[test]
fn a_closed_host_still_gives_its_robots_txt() {
    let closed = Robots::parse(b"User-agent: *\nDisallow: /", "archive");
    assert!(!closed.check_path("/").allowed && !closed.check_path("/a?b").allowed);
    assert_eq!(closed.check_path("/robots.txt"), RobotsVerdict { allowed: true, rule: None });
}

#[test]
fn delays_and_sitemaps() {
    let file = "Sitemap: /s.xml\nUser-agent: archive\nCrawl-delay: 2.5\nUser-agent: other\nDisallow: /x\n
                User-agent: *\nRequest-rate: 30/1m 0200-2259\nSITEMAP : http://A.example/S2.xml # x\nSitemap:";
    let robots = Robots::parse(file.as_bytes(), "archive");
    assert_eq!(robots.crawl_delay(), Some(Duration::from_millis(2500)));
    assert_eq!(robots.sitemaps(), ["/s.xml", "http://A.example/S2.xml"]);
    assert!(!robots.check_path("/x").allowed, "a delay doesn't end the names of a group");
    assert_eq!(Robots::parse(file.as_bytes(), "other").crawl_delay(), None);
    assert_eq!(Robots::parse(file.as_bytes(), "third").crawl_delay(), Some(Duration::from_secs(2)));
    for (value, expected) in
        [("-1", None), ("nan", None), ("x", None), ("1e99", None), ("99999999", Some(DELAY_MAX))]
    {
        let robots = Robots::parse(format!("User-agent: *\nCrawl-delay: {value}").as_bytes(), "archive");
        assert_eq!(robots.crawl_delay(), expected, "{value}");
    }
}

#[test]
fn what_lies_beyond_the_limit_is_not_read() {
    let rule = "User-agent: *\nDisallow: /";
    let file = |spaces: usize| format!("{}{rule}", "\n".repeat(spaces));
    assert!(!allowed(&file(ROBOTS_BYTES_MAX - rule.len()), "/"));
    assert!(allowed(&file(ROBOTS_BYTES_MAX - rule.len() + 1), "/"));
}

/// A rule and URL on which a backtracking matcher takes minutes.
#[test]
fn patterns_full_of_stars_take_no_time() {
    let pattern = format!("/{}x", "*a".repeat(300));
    let path = format!("/{}", "a".repeat(3000));
    let file = format!("User-agent: *\n{}", format!("Disallow: {pattern}\n").repeat(500));
    assert!(allowed(&file, &path));
    assert!(!allowed(&file, &format!("{path}x")));
}

/// Reference implementation: tries every length for every `*`.
fn matches_by_trying(pattern: &[u8], path: &[u8], is_anchored: bool) -> bool {
    match pattern.split_first() {
        None => !is_anchored || path.is_empty(),
        Some((b'*', rest)) => {
            (0..=path.len()).any(|skip| matches_by_trying(rest, &path[skip..], is_anchored))
        }
        Some((first, rest)) => {
            path.first() == Some(first) && matches_by_trying(rest, &path[1..], is_anchored)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn patterns_match_what_they_mean(pattern in "[ab*/]{0,10}", path in "[ab/]{0,14}", is_anchored in any::<bool>()) {
        prop_assert_eq!(
            matches_literals(&pattern, &path, is_anchored),
            matches_by_trying(pattern.as_bytes(), path.as_bytes(), is_anchored)
        );
    }

    #[test]
    fn any_bytes_are_a_file(body in prop::collection::vec(any::<u8>(), 0..400), path in "/[a-z%*$]{0,20}") {
        let _ = Robots::parse(&body, "archive").check_path(&path);
    }

    #[test]
    fn any_lines_are_a_file(
        body in "((user-agent|allow|disallow|crawl-delay|request-rate|sitemap)[: ]{0,2}[a-z0-9*/$%. ]{0,10}[\r\n]{1,2}){0,12}",
        path in "/[a-z%*$]{0,20}",
    ) {
        let _ = Robots::parse(body.as_bytes(), "a").check_path(&path);
    }
}
