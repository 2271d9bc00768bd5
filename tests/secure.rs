//! The rules for HTTP also hold over TLS: robots.txt, politeness, and that nothing is requested from a server that
//! cannot prove its identity.

use std::net::TcpListener;
use std::time::Duration;

use archive_storage::CaptureKind;
use archive_testweb::tls::{AUTHORITY, Certificate};
use archive_testweb::{Arrival, Config};

use crate::crawl::lively;
use crate::politeness::{are_apart, group};
use crate::support::answers::{Answers, redirect};
use crate::support::program::start;
use crate::support::{Archive, TestWeb, captures};

const HOST_DELAY: Duration = Duration::from_millis(250);
const ADDRESS_DELAY: Duration = Duration::from_millis(100);

/// A web that is served with and without TLS, and the options that direct crawls to it.
struct SecureWeb {
    served: TestWeb,
    options: Vec<String>,
}

impl SecureWeb {
    fn start(archive: &Archive, config: Config, certificate: Certificate) -> Self {
        let served = TestWeb::start(config);
        served.server.record_arrivals(true);
        let secure = served.server.add_tls("127.0.0.1:0".parse().unwrap(), certificate).unwrap();
        let authority = archive.file("authority.pem", AUTHORITY);
        let mut options = vec!["--cacert".to_owned(), authority.display().to_string()];
        for (port, address) in [(80, served.server.address()), (443, secure)] {
            options.extend(["--connect-to".to_owned(), format!(":{port}:{address}")]);
        }
        Self { served, options }
    }

    fn with(&self, more: &[&str]) -> Vec<String> {
        self.options.iter().cloned().chain(more.iter().map(|option| (*option).to_owned())).collect()
    }

    fn arrivals(&self) -> Vec<Arrival> {
        self.served.server.take_arrivals()
    }
}

/// Returns the same address with TLS.
fn secure(url: &str) -> String {
    url.replacen("http:", "https:", 1)
}

#[test]
fn robots_and_delays_hold_over_both_schemes_together() {
    let archive = Archive::new();
    let web = SecureWeb::start(&archive, lively(72, 4, 200), Certificate::Right);
    let seeds =
        web.served.web.seeds(web.served.web.sites()).iter().map(|url| secure(url)).collect::<Vec<_>>();
    let text = |delay: Duration| format!("{}ms", delay.as_millis());
    let delays = ["--delay", &text(HOST_DELAY), "--address-delay", &text(ADDRESS_DELAY), "--limit", "20"];
    start(&mut archive.crawl(&seeds, &web.with(&delays))).wait().succeeded();

    let arrivals = web.arrivals();
    are_apart("127.0.0.1", &arrivals, ADDRESS_DELAY);
    for (host, arrivals) in group(&arrivals, |arrival| arrival.host.clone()) {
        are_apart(&host, &arrivals, HOST_DELAY);
        assert_eq!(arrivals[0].path, "/robots.txt", "{host}");
    }
    let forbidden = arrivals.iter().find(|arrival| {
        let page = web.served.web.page_of(&format!("http://{}{}", arrival.host, arrival.path));
        page.is_some_and(|page| !web.served.web.allowed(page))
    });
    assert!(forbidden.is_none(), "{forbidden:?}");
    let urls = captures(&archive.path).urls();
    let secure = urls.iter().filter(|url| url.starts_with("https:")).count();
    println!("{} URLs, {secure} of them over TLS", urls.len());
    assert!(secure > 4 && urls.len() > secure, "{urls:?}");
    archive.verify();
}

#[test]
fn rules_are_read_where_a_redirect_to_https_leads() {
    let archive = Archive::new();
    let web = SecureWeb::start(&archive, Config::plain(73, 1, 1), Certificate::Right);
    let urls = ["http://robots-secure.faults.test/private/", "http://robots-secure.faults.test/open"];
    start(&mut archive.crawl(&urls.map(str::to_owned), &web.with(&["--delay", "0"]))).wait().succeeded();
    let mut paths: Vec<_> = web.arrivals().into_iter().map(|arrival| arrival.path).collect();
    // Without a delay, the order of the last two is random.
    paths[2..].sort_unstable();
    assert_eq!(paths, ["/robots.txt", "/robots.txt?secure", "/open", "/sitemap.xml"]);
    let why = archive.json("why", &[urls[0]]).remove(0);
    assert_eq!((&why["refusal"], &why["robots"]["line"]), (&"robots".into(), &2.into()), "{why}");
}

#[test]
fn a_certificate_that_is_refused_makes_robots_unreachable() {
    let faults = [
        (Certificate::Expired, "it has expired"),
        (Certificate::WrongName, "it is for another host"),
        (Certificate::SelfSigned, "it is not signed by a trusted authority"),
    ];
    for (certificate, reason) in faults {
        let archive = Archive::new();
        let web = SecureWeb::start(&archive, Config::plain(74, 1, 1), certificate);
        let redirected = "http://robots-secure.faults.test/open";
        // This host's file also exists over http: the rules of http apply, and nothing is requested over TLS.
        let open = "http://robots-delay.faults.test/open";
        let insecure = "https://robots-delay.faults.test/";
        let seeds = [redirected, open, insecure].map(str::to_owned);
        start(&mut archive.crawl(&seeds, &web.with(&["--delay", "0"]))).wait().succeeded();
        let mut asked: Vec<_> = web
            .arrivals()
            .into_iter()
            .map(|arrival| format!("http://{}{}", arrival.host, arrival.path))
            .collect();
        asked.sort();
        let robots = ["delay", "secure"].map(|host| format!("http://robots-{host}.faults.test/robots.txt"));
        let sitemap = "http://robots-delay.faults.test/sitemap.xml";
        assert_eq!(asked, [open, &robots[0], sitemap, &robots[1]]);

        let why = archive.json("why", &[redirected]).remove(0);
        assert_eq!(why["refusal"], "robots-unreachable", "{why}");
        for url in ["https://robots-secure.faults.test/robots.txt?secure", insecure] {
            let why = archive.json("why", &[url]).remove(0);
            let error = why["last_fetch"]["error"].as_str().unwrap();
            assert!(error.starts_with("no secure connection: ") && error.contains(reason), "{error}");
        }
    }
}

#[test]
fn a_certificate_that_is_named_is_taken_and_no_other() {
    let home = ["https://robots-delay.faults.test/".to_owned()];
    for (certificate, fault) in
        [(Certificate::Expired, "it has expired"), (Certificate::SelfSigned, "it is not signed by a trusted")]
    {
        let archive = Archive::new();
        let web = SecureWeb::start(&archive, Config::plain(77, 1, 1), certificate);
        let crawl = |more: &[&str]| {
            let options = web.with(&[&["--delay", "0", "--patience", "0s"], more].concat());
            start(&mut archive.crawl(&home, &options)).wait()
        };
        let refused = ["the certificate of robots-delay.faults.test is refused", fault];
        let errors = crawl(&[]).refused(1, &refused).errors;
        let named = errors.split("--accept-certificate ").nth(1).unwrap().split(' ').next().unwrap();
        let (host, digest) = named.split_once('=').unwrap();
        assert_eq!((host, digest.len()), ("robots-delay.faults.test", 64));
        let other = format!("{host}={}", "0".repeat(64));
        crawl(&["--accept-certificate", &other]).refused(1, &refused);
        crawl(&["--accept-certificate", "another.test"]).refused(1, &refused);
        assert!(web.arrivals().iter().all(|arrival| arrival.path != "/"));
        crawl(&["--accept-certificate", named]).succeeded();
        let taken = archive.json("why", &[&home[0]]).remove(0)["last_fetch"]["problems"].to_string();
        assert!(taken.contains(fault) && taken.contains(digest), "{taken}");
        assert_eq!(web.arrivals().iter().filter(|arrival| arrival.path == "/").count(), 1);
        let again = crawl(&["--allow-private"]).errors;
        assert!(again.contains("had --accept-certificate"), "{again}");
        crawl(&["--accept-invalid-certificates"]).succeeded();
    }
}

#[test]
fn a_host_that_fails_over_both_schemes_is_asked_once_over_each() {
    let archive = Archive::new();
    let web = SecureWeb::start(&archive, Config::plain(75, 1, 1), Certificate::Expired);
    let home = "http://robots-delay.faults.test/";
    let options =
        [["--connect-to", ":80:127.0.0.1:1"].map(str::to_owned).to_vec(), web.with(&["--delay", "0"])];
    start(&mut archive.crawl(&[home.to_owned()], &options.concat())).wait();
    let captured = captures(&archive.path);
    captured.are_single();
    let files = ["http", "https"].map(|scheme| format!("{scheme}://robots-delay.faults.test/robots.txt"));
    assert_eq!(captured.of_kind(CaptureKind::Failed), files);
    assert_eq!(captured.urls(), files.into());
    let why = archive.json("why", &[home]).remove(0);
    assert_eq!(why["refusal"], "robots-unreachable", "{why}");
}

/// A redirect to the other scheme of the same host, whose first connection breaks.
#[test]
fn where_a_redirect_led_the_other_scheme_is_not_tried() {
    let archive = Archive::new();
    let plain = Answers::start(|host, _| redirect(&format!("https://{host}/robots.txt")));
    let served = TestWeb::start(Config::plain(76, 1, 1));
    let broken = TcpListener::bind("127.0.0.1:0").unwrap();
    let secure = broken.local_addr().unwrap();
    let authority = archive.file("authority.pem", AUTHORITY);
    let mut options = vec!["--delay".to_owned(), "0".to_owned()];
    options.extend(["--cacert".to_owned(), authority.display().to_string()]);
    for (port, address) in [(80, plain.address), (443, secure)] {
        options.extend(["--connect-to".to_owned(), format!(":{port}:{address}")]);
    }
    let url = "http://robots-delay.faults.test/private/";
    let crawl = start(&mut archive.crawl(&[url.to_owned()], &options));
    drop(broken.accept().unwrap());
    drop(broken);
    served.server.add_tls(secure, Certificate::Right).unwrap();
    crawl.wait();
    // It is tried again where it is, and read.
    let why = archive.json("why", &[url]).remove(0);
    let file = "https://robots-delay.faults.test/robots.txt";
    assert_eq!((&why["refusal"], &why["robots"]["url"]), (&"robots".into(), &file.into()), "{why}");
    assert_eq!(plain.take_asked(), ["robots-delay.faults.test/robots.txt"]);
}

#[test]
fn a_file_without_certificates_is_refused() {
    let archive = Archive::new();
    let file = archive.file("authority.pem", "none");
    let options = ["--cacert", file.to_str().unwrap()];
    let ended = start(&mut archive.crawl(&["http://a.test/".to_owned()], &options)).wait();
    ended.refused(2, &["--cacert", "authority.pem cannot be used: it has no certificate"]);
}
