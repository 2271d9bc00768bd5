//! Hubs (WebSub): runs subscribe to them, taking turns if there are several nodes; signed notifications are fetched
//! first.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use archive_books::cluster::{Division, Mode, Partition};

use crate::cluster::begin_brisk;
use crate::pings::{Site, captures, encoded, get, text, waiting};
use crate::support::Archive;
use crate::support::program::{Finished, Running, start};
use crate::support::served::Served;

/// Number of feeds per node, each with a subscription, and the delay of the address that all share.
const FEEDS: usize = 6;
const DELAY: Duration = Duration::from_millis(100);

/// A hub that records its requests, and verifies subscriptions when the test asks for it.
struct Hub {
    address: String,
    asked: Arc<Mutex<Vec<BTreeMap<String, String>>>>,
    /// Time of each request.
    times: Arc<Mutex<Vec<Instant>>>,
}

impl Hub {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let hub = Self { address, asked: Arc::default(), times: Arc::default() };
        let (asked, times) = (Arc::clone(&hub.asked), Arc::clone(&hub.times));
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                times.lock().unwrap().push(Instant::now());
                let (mut lines, mut line, mut length) =
                    (BufReader::new(stream.try_clone().unwrap()), String::new(), 0);
                while lines.read_line(&mut line).unwrap_or(0) > 2 {
                    if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap();
                    }
                    line.clear();
                }
                let mut body = vec![0; length];
                lines.read_exact(&mut body).unwrap();
                asked.lock().unwrap().push(url::form_urlencoded::parse(&body).into_owned().collect());
                let _ = stream.write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
            }
        });
        hub
    }

    fn asked(&self) -> Vec<BTreeMap<String, String>> {
        self.asked.lock().unwrap().clone()
    }
}

#[test]
fn a_hub_is_subscribed_to_and_what_it_signs_is_fetched_first() {
    let (site, hub) = (Site::start(3), Hub::start());
    let feed = feed(&hub.address, "http://a.test/p1");
    site.put("/p1", &feed);
    let archive = site.crawled();
    let served = Served::with(&archive, &["--pings"]);
    archive.run("watch", &["page url = \"http://a.test/p1\"", "--every", "1d", "--name", "feed"]).succeeded();
    let connect = format!("hub.test:80:{}", hub.address);
    site.put("/p1", &feed.replace(&hub.address, "hub.test"));
    let refresh = |budget: &str| {
        let mut command = archive.command("refresh");
        command.args([
            "--budget",
            budget,
            "--shortest",
            "1s",
            "--callback",
            &format!("http://{}/", served.application),
        ]);
        start(command.args(["--connect-to", &connect]).args(site.options())).wait().succeeded()
    };
    let run = refresh("9");
    assert!(run.errors.contains("subscriptions: requested from 1 hub, 0 failed"), "{}", run.errors);
    let asked = hub.asked();
    assert_eq!(asked.len(), 1);
    let field = |name: &str| asked[0][name].clone();
    assert_eq!([field("hub.mode"), field("hub.topic")], ["subscribe", "http://a.test/p1"]);
    let callback =
        field("hub.callback").strip_prefix(&format!("http://{}", served.application)).unwrap().to_owned();
    assert_eq!(callback.len(), "/websub/".len() + 32);

    // The hub verifies: only what was requested is confirmed, and only once.
    let address = &served.application;
    let question = |topic: &str, challenge: &str| {
        let topic = encoded(topic);
        get(
            address,
            &format!(
                "{callback}?hub.mode=subscribe&hub.topic={topic}&hub.challenge={challenge}&hub.lease_seconds=864000"
            ),
        )
    };
    let send = |path: &str, body: &str, signature: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        let fields = format!("Host: {address}\r\nConnection: close\r\nX-Hub-Signature: {signature}");
        let head = format!("POST {path} HTTP/1.1\r\n{fields}\r\nContent-Length: {}\r\n\r\n", body.len());
        let _ = stream.write_all((head + body).as_bytes());
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer.split(' ').nth(1).unwrap().parse::<u16>().unwrap()
    };
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, field("hub.secret").as_bytes());
    let signature = |body: &str| {
        let tag = ring::hmac::sign(&key, body.as_bytes());
        tag.as_ref().iter().fold("sha256=".to_owned(), |text, byte| text + &format!("{byte:02x}"))
    };
    assert_eq!(
        (send(&callback, "new", &signature("new")), waiting(&archive).len()),
        (202, 0),
        "before the lease"
    );
    assert_eq!(question("http://a.test/p2", "abc").status, 404);
    let answer = question("http://a.test/p1", "abc");
    assert_eq!((answer.status, text(&answer)), (200, "abc".to_owned()));
    assert_eq!(question("http://a.test/p1", "def").status, 404);

    // Unsigned notifications are accepted and dropped; a repeated one waits only once.
    let nobody = format!("/websub/{}", "0".repeat(32));
    for (path, body, tag, status, count) in [
        (&callback, "new", signature("old"), 202, 0),
        (&callback, "new", String::new(), 202, 0),
        (&nobody, "new", signature("new"), 410, 0),
        (&callback, " ".repeat((4 << 20) + 1).as_str(), signature("new"), 413, 0),
        (&callback, "new", signature("new"), 202, 1),
        (&callback, "new", signature("new"), 202, 1),
    ] {
        assert_eq!((send(path, body, &tag), waiting(&archive).len()), (status, count), "{path} {tag}");
    }
    let before = captures(&archive, "/p1");
    let run = refresh("1");
    assert!(run.errors.contains("1 page to be fetched first"), "{}", run.errors);
    assert_eq!((captures(&archive, "/p1"), waiting(&archive).len()), (before + 1, 0));
    assert_eq!(hub.asked().len(), 1, "the lease lasts");
    // Without the watch, the subscription ends.
    archive.run("watch remove", &["feed"]).succeeded();
    refresh("1");
    assert_eq!(send(&callback, "new", &signature("new")), 410);
}

fn feed(hub: &str, own: &str) -> String {
    format!(
        "<feed xmlns='http://www.w3.org/2005/Atom'><title>f</title><link rel='hub' href='http://{hub}/hub'/>\
         <link rel='self' href='{own}'/></feed>"
    )
}

/// A node whose feeds name a hub.
struct Node {
    archive: Archive,
    connections: [String; 4],
}

impl Node {
    /// Crawls the node's partition and adds a watch for all of it.
    fn crawled(number: u16, cluster: &str, hub: &Hub) -> Self {
        let any =
            Partition { cluster: String::new(), number, count: 2, mode: Mode::default(), by: Division::Site };
        let host =
            (0..).map(|site| format!("s{site}.test")).find(|site| any.of_site(site) == number).unwrap();
        let site = Site::start(FEEDS);
        for number in 0..FEEDS {
            let path = format!("/p{number}");
            site.put(&path, &feed("hub.test", &format!("http://{host}{path}")));
        }
        let [_, _, connect, to_site] = site.options();
        let connections = [connect.clone(), format!("hub.test:80:{}", hub.address), connect, to_site];
        let node = Self { archive: Archive::new(), connections };
        let mut crawl = node.archive.crawl(&[format!("http://{host}/")], &node.connections);
        crawl.args(["--scope", "host", "--delay", "0", "--for", "8s"]);
        start(crawl.args(["--cluster", cluster, "--partition", &format!("{number}/2")])).wait().succeeded();
        node.archive.run("watch", &["page captures > 0", "--every", "1d", "--name", "all"]).succeeded();
        node
    }

    fn refresh(&self, more: &[&str]) -> Running {
        let mut command = self.archive.command("refresh");
        command.args(["--shortest", "0s", "--allow-private", "--callback", "http://archive.test"]);
        start(command.args(&self.connections).args(more))
    }
}

#[test]
fn nodes_take_turns_at_the_address_of_a_hub() {
    let (hub, store) = (Hub::start(), tempfile::tempdir().unwrap());
    begin_brisk(store.path(), 2);
    let cluster = format!("file://{}", store.path().display());
    let nodes = thread::scope(|scope| {
        let (cluster, hub) = (&cluster, &hub);
        let crawled = [1, 2].map(|number| scope.spawn(move || Node::crawled(number, cluster, hub)));
        crawled.map(|node| node.join().unwrap())
    });
    let all_asked = |run: Finished| {
        assert!(
            run.errors.contains(&format!("subscriptions: requested from {FEEDS} hubs, 0 failed")),
            "{}",
            run.errors
        );
    };
    for node in &nodes {
        all_asked(node.refresh(&["--budget", "20", "--delay", "0"]).wait().succeeded());
    }
    hub.times.lock().unwrap().clear();

    // A hub that did not verify is asked again after a day: by one node after it has fetched something, by the other at
    // once.
    let delay = format!("{}ms", DELAY.as_millis());
    let polite = ["--delay", &delay, "--address-delay", &delay, "--cluster", &cluster];
    let refresh = |node: usize, clock, more: &[&str]| {
        nodes[node].refresh(&[&polite, more, &["--clock", clock]].concat())
    };
    let running = [
        refresh(0, "2030-01-01T00:00:00Z", &["--budget", "0"]),
        refresh(1, "2030-01-01T00:00:00Z", &["--budget", "3"]),
    ];
    running.into_iter().for_each(|node| all_asked(node.wait().succeeded()));
    let times = std::mem::take(&mut *hub.times.lock().unwrap());
    assert_eq!(times.len(), 2 * FEEDS);
    for pair in times.windows(2) {
        assert!(pair[1] - pair[0] >= DELAY, "the hub was asked again after {:?}", pair[1] - pair[0]);
    }

    // A node that gets no turn in time reports it, and the next run asks, here without turns.
    let late = refresh(0, "2031-01-01T00:00:00Z", &["--budget", "0", "--for", "2s"]).wait().succeeded();
    assert!(
        late.errors.contains(&format!("{FEEDS} hubs were not asked in time, and wait")),
        "{}",
        late.errors
    );
    assert!(hub.times.lock().unwrap().is_empty());
    let next = ["--budget", "0", "--delay", "0", "--clock", "2031-01-01T00:00:00Z"];
    all_asked(nodes[0].refresh(&next).wait().succeeded());
}
