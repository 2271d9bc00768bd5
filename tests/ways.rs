//! Ways out: through proxies of each kind, from an address of choice, by one version of IP, to addresses that are given.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use archive_storage::CaptureKind;
use archive_testweb::Config;
use archive_testweb::proxy::{Proxy, Speech};
use archive_testweb::tls::serve_with_tls;

use crate::crawl::lively;
use crate::politeness::{are_apart, group};
use crate::sessions::exported;
use crate::support::answers::{Answers, html, nothing, plain};
use crate::support::program::{Finished, start};
use crate::support::{Archive, TestWeb, captures, nobody_at};

/// Without delay, with little patience.
const AT_ONCE: [&str; 5] = ["--delay", "0", "--patience", "2s", "--no-full-text"];

/// A server with two pages a host, and all that it was asked for.
fn two_pages() -> Answers {
    Answers::start(|host, path| match path {
        "/robots.txt" => plain("User-agent: *\nAllow: /"),
        "/" => html(&format!("<title>{host}</title><a href=/more>m</a>")),
        "/more" => html(&format!("<title>more of {host}</title>")),
        _ => nothing(),
    })
}

fn proxy(speech: Speech, to: SocketAddr) -> Proxy {
    Proxy::start(speech, None, move |_, _| Some(to)).unwrap()
}

fn url(scheme: &str, proxy: SocketAddr) -> String {
    format!("{scheme}://{proxy}")
}

fn crawl(archive: &Archive, hosts: &[&str], more: &[&str]) -> Finished {
    let seeds: Vec<String> = hosts.iter().map(|host| format!("http://{host}/")).collect();
    start(&mut archive.crawl(&seeds, &[&AT_ONCE, more].concat())).wait()
}

fn refresh_with(archive: &Archive, more: &[&str]) -> Finished {
    let all = ["--budget", "10", "--shortest", "0s"];
    start(archive.command("refresh").args(all).args(AT_ONCE).args(more)).wait()
}

#[test]
fn each_host_goes_the_way_that_is_named_for_it() {
    let server = two_pages();
    let (http, socks) = (proxy(Speech::Http, server.address), proxy(Speech::Socks, server.address));
    let inner = proxy(Speech::Http, server.address);
    let https = serve_with_tls(inner.address, false).unwrap();
    let archive = Archive::new();
    let rules = [
        url("http", http.address),
        format!("b.test={}", url("socks5h", socks.address)),
        format!("*.c.test={}", url("https", https)),
        format!("d.test={}", url("socks5", socks.address)),
        "e.test=direct".to_owned(),
    ];
    let to = |name: &str| format!("{name}:80:{}", server.address);
    let (d, e) = (to("d.test"), to("e.test"));
    let mut more = vec!["--accept-certificate", "127.0.0.1", "--connect-to", &d, "--connect-to", &e];
    rules.iter().for_each(|rule| more.extend(["--proxy", rule]));
    let hosts = ["a.test", "b.test", "x.c.test", "d.test", "e.test"];
    let said = crawl(&archive, &hosts, &more).succeeded();
    assert!(!said.errors.contains("no connection"), "{}", said.errors);

    let once = |proxy: &Proxy| proxy.take_seen().into_iter().collect::<BTreeSet<_>>();
    assert_eq!(once(&http), ["a.test:80".to_owned()].into());
    // Of the name that was resolved here, the proxy gets the address.
    assert_eq!(once(&socks), ["b.test:80".to_owned(), server.address.to_string()].into());
    assert_eq!(once(&inner), ["x.c.test:80".to_owned()].into());
    let asked: BTreeSet<String> = server.take_asked().into_iter().collect();
    for host in hosts {
        for path in ["/robots.txt", "/", "/more"] {
            assert!(asked.contains(&format!("{host}{path}")), "{host}{path} {asked:?}");
        }
    }
    // The records say which way, and an address only where it is known.
    let records = exported(&archive);
    let of = |host: &str, kind: &str| {
        let mut all = records.split("WARC/1.1\r\n");
        let is_it = |record: &&str| {
            record.contains(&format!("WARC-Type: {kind}\r\n"))
                && record.contains(&format!("WARC-Target-URI: http://{host}/more\r\n"))
        };
        all.find(is_it).unwrap_or_else(|| panic!("{kind} of {host}")).to_owned()
    };
    for (host, way) in [
        ("a.test", Some(url("http", http.address))),
        ("b.test", Some(url("socks5h", socks.address))),
        ("x.c.test", Some(url("https", https))),
        ("d.test", Some(url("socks5", socks.address))),
        ("e.test", None),
    ] {
        let (metadata, response) = (of(host, "metadata"), of(host, "response"));
        let noted = metadata.lines().find_map(|line| line.strip_prefix("proxy: "));
        assert_eq!(noted, way.as_deref(), "{metadata}");
        let is_known = response.contains("WARC-IP-Address: 127.0.0.1\r\n");
        assert_eq!(is_known, matches!(host, "d.test" | "e.test"), "{response}");
    }
    archive.verify();
    // Nothing of it is taken from the archive; who refreshes without it is told.
    let said = archive.run("refresh", &["--budget", "10", "--shortest", "0s", "--patience", "0s"]).errors;
    assert!(said.contains("had --accept-certificate --connect-to --proxy, which"), "{said}");
}

#[test]
fn hosts_are_spread_over_proxies_and_keep_theirs() {
    let server = two_pages();
    let proxies = [(); 3].map(|()| proxy(Speech::Http, server.address));
    let archive = Archive::new();
    let names: Vec<String> = (0..12).map(|number| format!("h{number}.test")).collect();
    let hosts: Vec<&str> = names.iter().map(String::as_str).collect();
    let urls = proxies.each_ref().map(|proxy| url("http", proxy.address));
    let rules: Vec<&str> = urls.iter().flat_map(|url| ["--proxy", url]).collect();
    crawl(&archive, &hosts, &rules).succeeded();
    let mut ways: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    for (number, proxy) in proxies.iter().enumerate() {
        for host in proxy.take_seen() {
            ways.entry(host).or_default().insert(number);
        }
    }
    assert_eq!(ways.len(), 12);
    assert!(ways.values().all(|ways| ways.len() == 1), "{ways:?}");
    assert_eq!(ways.values().flatten().collect::<BTreeSet<_>>().len(), 3, "{ways:?}");
}

#[test]
fn a_proxy_that_is_down_is_said_and_lets_no_page_die() {
    let server = two_pages();
    let archive = Archive::new();
    let dead = url("http", nobody_at(41));
    let said = crawl(&archive, &["a.test"], &["--proxy", &dead]);
    let down =
        format!("no connection through the proxy {dead}: no connection to 127.0.7.41 (connection refused)");
    assert_eq!(said.errors.matches(&down).count(), 1, "{}", said.errors);
    assert_ne!(said.code, Some(0));
    assert!(captures(&archive.path).of_kind(CaptureKind::Failed).is_empty());

    let alive = proxy(Speech::Http, server.address);
    let way = url("http", alive.address);
    crawl(&archive, &["a.test"], &["--proxy", &way]).succeeded();
    let pages = captures(&archive.path);
    assert!(pages.urls().contains("http://a.test/more") && pages.of_kind(CaptureKind::Failed).is_empty());
    let refresh = |way: &str| refresh_with(&archive, &["--proxy", way]);
    let said = refresh(&dead);
    assert!(said.errors.contains(&down), "{}", said.errors);
    assert_eq!(said.code, Some(4), "{}", said.errors);
    assert!(captures(&archive.path).of_kind(CaptureKind::Failed).is_empty());
    let known = server.take_asked().len();
    assert!(known > 2);
    let said = refresh(&way).succeeded();
    assert!(server.take_asked().contains(&"a.test/more".to_owned()), "{}", said.errors);

    // One that says nothing is down, too.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let way = url("socks5h", silent.local_addr().unwrap());
    let said = refresh_with(&archive, &["--proxy", &way, "--timeout", "1s"]).errors;
    assert!(
        said.contains(&format!("through the proxy {way}: no answer within 1 seconds; hosts behind it wait")),
        "{said}"
    );

    // A server that the proxy does not reach is another matter.
    let blind = Proxy::start(Speech::Socks, None, |_, _| None).unwrap();
    let other = Archive::new();
    let way = url("socks5h", blind.address);
    crawl(&other, &["a.test"], &["--proxy", &way]);
    let why = other.json("why", &["http://a.test/robots.txt"]).remove(0);
    let error = why["last_fetch"]["error"].as_str().unwrap();
    assert_eq!(
        error,
        format!(
            "no connection through the proxy {way}: it has no connection to the server (the host is unreachable)"
        )
    );
}

#[test]
fn the_guard_holds_through_proxies() {
    let server = two_pages();
    for (scheme, speech) in [("http", Speech::Http), ("socks5h", Speech::Socks), ("socks5", Speech::Socks)] {
        let proxy = proxy(speech, server.address);
        let archive = Archive::new();
        let way = url(scheme, proxy.address);
        let hosts = ["127.0.0.1", "[::1]", "localhost", "10.1.2.3", "192.168.7.7:8080"];
        let hosts =
            if scheme == "socks5" { &hosts[..] } else { &[&hosts[..], &["printer", "a.internal"]].concat() };
        let said = crawl(&archive, hosts, &["--proxy", &way]).refused(1, &["could not be fetched"]).errors;
        assert_eq!(said.matches("--allow-private permits it").count(), hosts.len(), "{said}");
        assert!(proxy.take_seen().is_empty());
        assert!(server.take_asked().is_empty());
    }
}

#[test]
fn onions_go_through_tor_or_nowhere() {
    let server = two_pages();
    let tor = proxy(Speech::Socks, server.address);
    let archive = Archive::new();
    for more in [&[][..], &["--proxy", &url("socks5", tor.address)], &["--proxy", &url("http", tor.address)]]
    {
        crawl(&archive, &["abc.onion"], more).refused(1, &["names of .onion are reached through Tor alone"]);
    }
    assert!(tor.take_seen().is_empty());
    let way = format!("*.onion={}", url("socks5h", tor.address));
    crawl(&archive, &["abc.onion"], &["--proxy", &way]).succeeded();
    assert!(tor.take_seen().contains(&"abc.onion:80".to_owned()));
    assert!(captures(&archive.path).urls().contains("http://abc.onion/more"));
}

#[test]
fn delays_hold_through_proxies() {
    const DELAY: Duration = Duration::from_millis(200);
    for (scheme, speech) in [("http", Speech::Http), ("socks5h", Speech::Socks)] {
        let served = TestWeb::start(lively(78, 3, 60));
        served.server.record_arrivals(true);
        let proxy = proxy(speech, served.server.address());
        let archive = Archive::new();
        let way = url(scheme, proxy.address);
        let seeds = served.web.seeds(served.web.sites());
        let options = ["--delay", "200ms", "--limit", "12", "--proxy", &way, "--no-full-text"];
        start(&mut archive.crawl(&seeds, &options)).wait().succeeded();
        let arrivals = served.server.take_arrivals();
        let hosts = group(&arrivals, |arrival| arrival.host.clone());
        assert!(hosts.len() > 1 && arrivals.len() > 12, "{} of {}", arrivals.len(), hosts.len());
        hosts.iter().for_each(|(host, arrivals)| are_apart(host, arrivals, DELAY));
    }
}

#[test]
fn connections_come_from_the_named_addresses() {
    let served = TestWeb::start(Config::plain(79, 8, 60));
    served.server.record_arrivals(true);
    let archive = Archive::new();
    let own = ["--bind", "127.0.0.2", "--bind", "127.0.0.3", "--ipv4"].map(str::to_owned);
    let options = [served.at_once(), own.to_vec()].concat();
    start(&mut archive.crawl(&served.web.seeds(served.web.sites()), &options)).wait().succeeded();
    let mut own: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for arrival in served.server.take_arrivals() {
        own.entry(arrival.host).or_default().insert(arrival.peer.ip().to_string());
    }
    assert!(own.len() > 3 && own.values().all(|own| own.len() == 1), "{own:?}");
    let used: BTreeSet<&str> = own.values().flatten().map(String::as_str).collect();
    assert_eq!(used, ["127.0.0.2", "127.0.0.3"].into());
}

#[test]
fn a_name_is_led_to_the_address_that_is_given() {
    let server = two_pages();
    let host = format!("a.test:{}", server.address.port());
    let resolve = format!("{host}:127.0.0.1");
    let archive = Archive::new();
    crawl(&archive, &[&host], &["--resolve", &resolve, "--ipv4"]).succeeded();
    assert!(server.take_asked().contains(&format!("{host}/more")));
    let new = Archive::new();
    crawl(&new, &[&host], &["--resolve", &resolve, "--ipv6"]).refused(1, &["no address of the kind"]);
    crawl(&new, &[&host], &["--resolve", &resolve, "--bind", "::1"]).refused(1, &["no address of the kind"]);
    assert!(server.take_asked().is_empty());
    let wrong = "--bind 192.0.2.1 is no address of this machine";
    crawl(&new, &[&host], &["--bind", "192.0.2.1"]).refused(2, &[wrong]);
    crawl(&new, &[&host], &["--ipv4", "--ipv6"]).refused(2, &["cannot be used with"]);
    crawl(&new, &[&host], &["--resolve", "a.test:b.test"])
        .refused(2, &["does not have the form HOST:PORT:ADDR"]);
    crawl(&new, &[&host], &["--proxy", "p.test:1"]).refused(2, &["a proxy is http://HOST:PORT"]);
    let secret = crawl(&new, &[&host], &["--proxy", "http://anna:s3cret@p.test:1"]);
    let secret = secret.refused(2, &["are secrets", "archive login add HOST:PORT --proxy NAME"]);
    assert!(!secret.errors.contains("s3cret"), "{}", secret.errors);
}
