//! What an archive was told about the treatment of servers holds for its later runs; what widens the reach does not.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::Archive;
use crate::support::answers::{CLOSE, whole};
use crate::support::program::{Finished, start};

/// Requests as they came.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<(Instant, String)>>>);

impl Seen {
    fn serve(&self) -> SocketAddr {
        self.serve_at("127.0.0.1")
    }

    /// Serves three pages at a free port of an address.
    fn serve_at(&self, address: &str) -> SocketAddr {
        let listener = TcpListener::bind((address, 0)).unwrap();
        let (address, seen) = (listener.local_addr().unwrap(), self.clone());
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let head: Vec<String> =
                    lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
                let head = head.join("\n");
                let page =
                    head.starts_with("GET / ") || head.starts_with("GET /1 ") || head.starts_with("GET /2 ");
                seen.0.lock().unwrap().push((Instant::now(), head));
                let status = if page { 200 } else { 404 };
                let fields = format!("Content-Type: text/html\r\n{CLOSE}");
                drop(stream.write_all(&whole(status, &fields, b"<a href=/1>1</a><a href=/2>2</a>")));
            }
        });
        address
    }

    /// Returns the user agents of the requests since the last call, and the shortest time between two.
    fn take(&self) -> (Vec<String>, Duration) {
        let seen = std::mem::take(&mut *self.0.lock().unwrap());
        let agent =
            |head: &str| head.lines().find_map(|line| line.strip_prefix("User-Agent: ")).map(str::to_owned);
        let mut agents: Vec<String> = seen.iter().filter_map(|(_, head)| agent(head)).collect();
        agents.dedup();
        let pauses = seen.windows(2).map(|pair| pair[1].0 - pair[0].0);
        (agents, pauses.min().unwrap_or_default())
    }
}

fn refresh(archive: &Archive, more: &[&str]) -> Finished {
    let usual = [
        "--budget",
        "9",
        "--shortest",
        "0s",
        "--policy",
        "uniform",
        "--address-delay",
        "0s",
        "--patience",
        "0s",
    ];
    start(archive.command("refresh").args(usual).args(more)).wait()
}

#[test]
fn later_runs_come_under_the_same_name_and_at_the_same_pace() {
    const PACE: Duration = Duration::from_millis(300);
    let seen = Seen::default();
    let seeds = [format!("http://{}/ delay=300ms", seen.serve())];
    let archive = Archive::new();
    let private = "--allow-private";
    let options =
        ["--user-agent", "one/1", private, "--delay", "10ms", "--max-depth", "1", "--pages-per-host", "9"];
    start(&mut archive.crawl(&seeds, &options)).wait().succeeded();
    let agents = |number: usize| vec![["one/1", "two/2"][number].to_owned()];
    let (came, pace) = seen.take();
    assert!(came == agents(0) && pace >= PACE, "{came:?} {pace:?}");
    refresh(&archive, &[private]).succeeded();
    let (came, pace) = seen.take();
    assert!(came == agents(0) && pace >= PACE, "{came:?} {pace:?}");
    refresh(&archive, &[private, "--user-agent", "two/2"]).succeeded();
    assert_eq!(seen.take().0, agents(1));
    archive.run::<&str>("rebuild", &[]).succeeded();
    refresh(&archive, &[private]).succeeded();
    let (came, pace) = seen.take();
    assert!(
        came == agents(1) && pace >= PACE,
        "what was said last holds after a rebuild, too: {came:?} {pace:?}"
    );
    let policy = archive.json("why", &[seeds[0].split(' ').next().unwrap()]).remove(0);
    assert_eq!(policy["spent"]["host_budget"], 9, "{policy}");
    // Limits end when they are said to.
    start(&mut archive.crawl(&seeds, &[private, "--pages-per-host", "0"])).wait().succeeded();
    let policy = archive.json("why", &[seeds[0].split(' ').next().unwrap()]).remove(0);
    assert_eq!(policy["spent"]["host_budget"], serde_json::Value::Null, "{policy}");
}

#[test]
fn what_widens_the_reach_is_asked_for_again() {
    let seen = Seen::default();
    let seeds = [format!("http://{}/", seen.serve())];
    let archive = Archive::new();
    start(&mut archive.crawl(&seeds, &["--allow-private", "--delay", "0"])).wait().succeeded();
    seen.take();
    let named = ["had --allow-private", "nothing could be fetched without --allow-private"];
    refresh(&archive, &[]).refused(1, &named);
    assert!(seen.take().0.is_empty(), "nothing was asked for");
    let ended = refresh(&archive, &["--allow-private"]).succeeded();
    assert!(!ended.errors.contains("give it again"), "{}", ended.errors);
    assert!(!seen.take().0.is_empty());
}

#[test]
fn several_archives_are_refreshed_as_each_was_told() {
    let archives = [("127.0.0.1", "one/1"), ("127.0.0.2", "two/2")].map(|(address, agent)| {
        let (seen, archive) = (Seen::default(), Archive::new());
        let seeds = [format!("http://{}/", seen.serve_at(address))];
        let options = ["--user-agent", agent, "--allow-private", "--delay", "10ms"];
        start(&mut archive.crawl(&seeds, &options)).wait().succeeded();
        assert_eq!(seen.take().0, [agent]);
        (seen, archive, agent)
    });
    let [(_, first, _), (_, second, _)] = &archives;
    refresh(first, &["--archive", second.path.to_str().unwrap(), "--allow-private"]).succeeded();
    for (seen, _, agent) in &archives {
        assert_eq!(seen.take().0, [*agent]);
    }
}
