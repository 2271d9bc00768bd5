use proptest::prelude::*;
use url::Url;

use super::{
    RULES, canonical, host_key, is_suspect, parameters, site_of, surt, was_dropped, without_parameters,
};

fn canonical_of(text: &str) -> String {
    canonical(&Url::parse(text).unwrap())
}

#[test]
fn each_rule_does_what_its_example_says() {
    for rule in RULES {
        assert_eq!(canonical_of(rule.before), rule.after, "{}", rule.name);
        assert_eq!(canonical_of(rule.after), rule.after, "{} leaves its result alone", rule.name);
    }
}

#[test]
fn what_a_server_may_distinguish_stays() {
    for url in [
        "http://www.example.org/Path/?b=2&a=1",
        "http://a.example/b?sid=3",
        "http://a.example/b?session=summer",
        "http://a.example/b;v=1.1",
        "http://a.example/?a&&b=",
        "http://a.example//b",
        "http://a.example/b/",
        "http://a.example/%2F%25",
        "http://a.example/100%",
        "http://a.example/%2%35",
        "http://a.example:8080/",
        "http://[::1]:81/",
        "http://a.example/(b)/c",
        "mailto:me@a.example",
    ] {
        assert_eq!(canonical_of(url), url);
    }
}

#[test]
fn nothing_of_a_url_is_dropped_for_its_name() {
    for url in [
        "http://a.example/talk?session=2024-opening-keynote",
        "http://a.example/shop?sid=d41d8cd98f00b204e9800998ecf8427e&utm_source=b",
        "http://a.example/b;jsessionid=1;c=2/d",
        "http://a.example/(S(lit3py55t21z5v55vlm25s55))/b.aspx",
    ] {
        assert_eq!(canonical_of(url), url);
    }
}

#[test]
fn parameters_go_without_a_trace() {
    for (url, expected) in [
        ("http://a.example/?utm_source=b", "http://a.example/"),
        ("http://a.example/?UTM_Source=b&c", "http://a.example/?c"),
        ("http://a.example/?a=1&gclid=x&b=2", "http://a.example/?a=1&b=2"),
        ("http://a.example/?a=1&sid=d41d8cd98f00b204e9800998ecf8427e", "http://a.example/?a=1"),
        ("http://a.example/?%75tm_id=1", "http://a.example/"),
        ("http://a.example/b;jsessionid=1;c=2/d", "http://a.example/b;c=2/d"),
        ("http://a.example/b;jsessionid=1A2B?c", "http://a.example/b?c"),
        ("http://a.example/(S(lit3py55t21z5v55vlm25s55))", "http://a.example/"),
        ("http://a.example/(S(lit3py55t21z5v55vlm25s55))/b.aspx", "http://a.example/b.aspx"),
        ("http://a.example/((S(lit3py55t21z5v55vlm25s55)", "http://a.example/((S(lit3py55t21z5v55vlm25s55)"),
        ("http://a.example/b;v=1.1?sid=3&session=summer", "http://a.example/b;v=1.1?sid=3&session=summer"),
    ] {
        let url = canonical_of(url);
        let without = without_parameters(&url, was_dropped);
        assert_eq!(without.unwrap_or(url), expected);
    }
    let suspects = |url: &'static str| -> Vec<&str> {
        parameters(url).filter(is_suspect).map(|parameter| parameter.name).collect()
    };
    assert_eq!(suspects("http://a.example/x;sid=1?a=2&SID=3&x=d41d8cd98f00b204e980"), ["sid", "SID", "x"]);
    assert_eq!(suspects("http://a.example/(S(lit3py55t21z5v55vlm25s55))/"), ["(S(...))"]);
    assert_eq!(suspects("http://sid=1/a?b=12345678901234567"), ["b"]);
}

#[test]
fn hosts_and_sites() {
    let key = |text: &str| host_key(&Url::parse(text).unwrap());
    assert_eq!(key("http://User@A.Example:80/b"), "a.example");
    assert_eq!(key("https://a.example:8443/"), "a.example:8443");
    assert_eq!(key("http://a.example./"), "a.example");
    assert_eq!(key("http://[::1]:8080/"), "[::1]:8080");
    assert_eq!(key("mailto:a@b.example"), "");

    assert_eq!(site_of("a.b.example.co.uk"), "example.co.uk");
    assert_eq!(site_of("a.b.example:8080"), "b.example");
    assert_eq!(site_of("someone.github.io"), "someone.github.io");
    assert_eq!(site_of("1.2.3.4"), "1.2.3.4");
    assert_eq!(site_of("1.2.3.4:80"), "1.2.3.4");
    assert_eq!(site_of("[::1]:8080"), "[::1]");
    assert_eq!(site_of("localhost"), "localhost");
    assert_eq!(site_of("co.uk"), "co.uk");
    assert_eq!(site_of(""), "");
}

#[test]
fn surt_keeps_odd_texts_apart() {
    assert_eq!(surt(""), "-");
    assert_eq!(surt("filedesc:a.arc"), "filedesc:a.arc");
    assert_eq!(surt("example.org/A"), "org,example)/a");
    assert_eq!(surt("mailto:a@b.example"), "mailto:a@b.example");
    assert_eq!(surt("http://a.example/?cfid=1&cftoken=2&b"), "example,a)/?b");
    assert_eq!(surt("http://https://a.example:443/"), "example,a)/");
    assert_eq!(surt("http://1234567/"), "135,214,18,0)/");
    assert_eq!(surt("filedesc:a b"), "filedesc:a%20b");
}

/// Results of the Python package `surt` 0.3.1: a text without a scheme is read as `http://`, and a host before a colon
/// is taken for the scheme if it looks like one.
#[test]
fn hosts_without_a_scheme_have_ports_and_users_as_others_do() {
    for (url, expected) in [
        ("192.168.0.1:8080/", "1,0,168,192:8080)/"),
        ("192.168.0.1:80/", "1,0,168,192)/"),
        ("1.2.3:80/%61/B", "3,0,2,1)/a/b"),
        ("exa%6dple.org:81/%61", "org,example:81)/a"),
        ("x%2Fy.org:80?", "org,x/y)/"),
        ("user@a.example:81/", "example,a:81)/"),
        ("example%3a80.org", "org,example:80)/"),
        ("[::1]:81/", "::1:81)/"),
        ("a b.example/", "example,a%20b)/"),
        ("//www2.a.example:8080?", "example:8080,a)/"),
        ("http:///b\u{fc}cher.example:8080", "example:8080,xn--bcher-kva)/"),
        ("example.org:8080/a", "example.org:8080/a"),
        ("localhost:8080/", "localhost:8080"),
        ("a.example:?b=2&a=1", "a.example:/?a=1&b=2"),
        ("http://0000xa/", "0000xa)/"),
        ("0000xa/", "0000xa)/"),
    ] {
        assert_eq!(surt(url), expected, "{url}");
    }
}

/// Names whose last label only looks like a number (WHATWG URL, "ends in a number checker").
#[test]
fn odd_numbers_at_the_end_of_a_host() {
    for (url, expected) in [
        ("http://0000xa/", "http://0000xa/"),
        ("http://0000xa./", "http://0000xa/"),
        ("http://a.00x1../", "http://a.00x1/"),
        ("http://a.2nd./", "http://a.2nd/"),
        ("http://0xa/", "http://0.0.0.10/"),
        ("http://0xa./", "http://0.0.0.10/"),
        ("http://0x/", "http://0.0.0.0/"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://017700000001/", "http://127.0.0.1/"),
        ("http://1../", "http://1../"),
        ("http://0xa../", "http://0xa../"),
    ] {
        assert_eq!(canonical_of(url), expected, "{url}");
    }
    for url in ["http://08/", "http://a.09/", "http://256.1/", "http://4294967296/", "http://a.0x1/"] {
        assert!(Url::parse(url).is_err(), "{url}");
    }
    let key = |text: &str| host_key(&Url::parse(text).unwrap());
    assert_eq!(key("http://0000xa./"), "0000xa");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn canonical_is_stable(
        path in "[a-z0-9%;=()/.~A-F]{0,30}", query in "[a-z0-9%&=_;S]{0,30}", host in "[a-z0-9.]{1,12}|(0|0x|[0-9a-fx]|\\.){1,8}"
    ) {
        if let Ok(url) = Url::parse(&format!("http://{host}/{path}?{query}")) {
            let once = canonical(&url);
            let again = Url::parse(&once).unwrap();
            prop_assert_eq!(canonical(&again), once);
        }
    }

    #[test]
    fn sessions_leave_stable_urls(
        before in "(/|/\\.\\.|/a|/%2e|/\\(S\\([a-z0-9]{24}\\)\\)){0,4}", parameter in "(;jsessionid=[A-F0-9]{0,4}|;a)?",
        after in "(/|/\\.\\.|/a|/\\(S\\([a-z0-9]{24}\\)\\)){0,3}", query in "(utm_[a-z]=1|&|a=1|sid=[a-f0-9]{16}){0,5}"
    ) {
        let url = Url::parse(&format!("http://h.example/{before}{parameter}{after}?{query}")).unwrap();
        let url = canonical(&url);
        let once = without_parameters(&url, was_dropped).unwrap_or(url);
        prop_assert_eq!(canonical(&Url::parse(&once).unwrap()), once.as_str());
        prop_assert_eq!(without_parameters(&once, was_dropped), None);
    }

    #[test]
    fn any_text_has_a_surt(text in "\\PC{0,60}|https?://[\\PC]{0,20}[/?][%a-fA-F0-9&=./]{0,30}") {
        prop_assert!(surt(&text).bytes().all(|byte| byte.is_ascii_graphic()));
    }
}

#[test]
fn urls_and_hosts_have_limits() {
    let host = "x".repeat(super::HOST_BYTES_MAX);
    for (url, expected) in [
        (format!("http://{host}/"), true),
        (format!("https://u:{host}@{host}:8080/{host}?{host}"), true),
        (format!("http://{host}x/"), false),
        (format!("http://{host}x:80"), false),
        (format!("http://[::1]:80/{host}{host}"), true),
        (format!("http://a/{}", "y".repeat(1991)), true),
        (format!("http://a/{}", "y".repeat(1992)), false),
    ] {
        assert_eq!(super::is_url_in_bounds(&url, 2000), expected, "{url}");
    }
}
