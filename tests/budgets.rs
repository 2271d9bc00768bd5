//! Budgets: of pages in all, and of bytes of a body, a host, a site and a run.

use serde_json::{Value, json};

use crate::support::Archive;
use crate::support::answers::{Answers, CLOSE, html, nothing, whole};
use crate::support::program::start;

/// Length of each page, and of a film.
const PAGE_BYTES: usize = 20_000;
const FILM_BYTES: usize = 400_000;

/// Two hosts of a site, each with a page that links to eight others and shows two films: of the second, the head does not
/// say how long it is.
fn served() -> Answers {
    Answers::start(|host, path| {
        let page = |text: &str| html(&format!("{text}<p>{host}{path}</p><!--{}-->", "x".repeat(PAGE_BYTES)));
        match path {
            "/" => {
                let links: String = (0..8).map(|number| format!("<a href=/{number}>{number}</a>")).collect();
                page(&format!("{links}<video src=/known.mp4></video><video src=/unknown.mp4></video>"))
            }
            "/known.mp4" => whole(200, "Content-Type: video/mp4\r\n", &[7; FILM_BYTES]),
            "/unknown.mp4" => {
                let head = format!("HTTP/1.1 200 OK\r\nContent-Type: Video/MP4; x=y\r\n{CLOSE}\r\n");
                [head.as_bytes(), &[8; FILM_BYTES]].concat()
            }
            _ if path.trim_start_matches('/').parse::<u32>().is_ok() => page(""),
            _ => nothing(),
        }
    })
}

/// Runs a command that fetches, and returns its summary.
fn run(archive: &Archive, command: &str, served: &Answers, more: &[&str]) -> Value {
    let mut command = match command {
        "crawl" => archive.crawl(&["http://www.s.test/".to_owned(), "http://m.s.test/".to_owned()], more),
        other => {
            let mut command = archive.command(other);
            command.args(more);
            command
        }
    };
    command.arg("--json").args(served.at_once());
    start(&mut command).wait().succeeded().json().pop().unwrap()
}

fn found(archive: &Archive, query: &str) -> Vec<Value> {
    archive.json("query", &[query])
}

#[test]
fn pages_of_a_spent_budget_are_refreshed() {
    let (served, archive) = (served(), Archive::new());
    run(&archive, "crawl", &served, &["--pages-per-host", "5"]);
    // One of the five is the sitemap that is not there.
    let pages = "count pages type = html and captures = ";
    assert_eq!(found(&archive, &format!("{pages}1"))[0]["count"], 8);
    let refreshed =
        run(&archive, "refresh", &served, &["--budget", "100", "--shortest", "0s", "--policy", "uniform"]);
    assert_eq!(refreshed["refused"], 0, "{refreshed}");
    assert_eq!(found(&archive, &format!("{pages}2"))[0]["count"], 8);
}

#[test]
fn a_body_is_refused_by_its_head_or_cut() {
    let (served, archive) = (served(), Archive::new());
    let summary = run(&archive, "crawl", &served, &["--max-body-of", "video=100KB", "--limit", "2"]);
    // One of each host.
    assert_eq!(summary["unloaded"], 2, "{summary}");
    let films = found(&archive, "page url ends with \".mp4\" select url, size order by url");
    let sizes: Vec<_> = films.iter().map(|film| &film["size"]).collect();
    assert_eq!(sizes, [&json!(0), &json!(100_000), &json!(0), &json!(100_000)], "{films:?}");
    for (film, said) in
        [("known", "longer than allowed and was not received"), ("unknown", "the body is cut (length)")]
    {
        let why = archive.json("why", &[format!("http://www.s.test/{film}.mp4")]).remove(0).to_string();
        assert!(why.contains(said), "{why}");
    }
    assert!(summary["bytes"].as_u64().unwrap() < 3 * 100_000 + FILM_BYTES as u64, "{summary}");
    // A type with its subtype goes before one without, and what was said holds for a refresh.
    let both = ["--max-body-of", "video=100KB", "--max-body-of", "video/mp4=1MB", "--limit", "2"];
    let other = Archive::new();
    assert_eq!(run(&other, "crawl", &served, &both)["unloaded"], 0);
    let sizes = found(&other, "page url ends with \".mp4\" select size order by size");
    assert!(sizes.iter().all(|film| film["size"] == FILM_BYTES), "{sizes:?}");
    archive.verify();
}

#[test]
fn bytes_of_a_host_a_site_and_a_run_are_limited() {
    let served = served();
    let captured = |options: &[&str]| {
        let archive = Archive::new();
        let options = [&["--max-body-of", "video=0", "--per-host", "1"], options].concat();
        let summary = run(&archive, "crawl", &served, &options);
        let count = found(&archive, "count pages type = html and captures > 0 group by host order by host");
        let counts: Vec<u64> = count.iter().map(|row| row["count"].as_u64().unwrap()).collect();
        (summary, counts, archive)
    };
    let (all, counts, _) = captured(&[]);
    assert_eq!((counts, &all["refused"]), (vec![9, 9], &json!(0)), "{all}");
    let (summary, counts, archive) = captured(&["--bytes-per-host", "50KB"]);
    assert_eq!(counts, [3, 3], "{summary}");
    let why = found(&archive, "count pages refusal = pages-per-host");
    assert!(why[0]["count"].as_u64() >= Some(12), "{why:?}");
    // What is left is for the next run.
    run(&archive, "crawl", &served, &["--per-host", "1"]);
    assert_eq!(found(&archive, "count pages type = html and captures > 0")[0]["count"], 12);
    let (summary, counts, _) = captured(&["--bytes-per-site", "90KB"]);
    assert!((5..=6).contains(&counts.iter().sum::<u64>()), "{counts:?} {summary}");
    let (summary, counts, _) = captured(&["--limit-bytes", "90KB"]);
    assert_eq!(summary["end"], "limit", "{summary}");
    assert!((5..=7).contains(&counts.iter().sum::<u64>()), "{counts:?} {summary}");
}

#[test]
fn a_seed_may_have_a_budget_of_bytes() {
    let (served, archive) = (served(), Archive::new());
    let seeds = ["http://www.s.test/ bytes=50KB", "http://m.s.test/"].map(str::to_owned);
    let crawl = || {
        let mut command = archive.crawl(&seeds, &["--per-host", "1", "--max-body-of", "video=0"]);
        start(command.args(served.at_once())).wait().succeeded();
        let query = "count pages type = html and captures > 0 and host = \"www.s.test\"";
        found(&archive, query)[0]["count"].clone()
    };
    assert_eq!(crawl(), 3);
    assert_eq!(
        found(&archive, "count pages type = html and host = \"m.s.test\" and captures > 0")[0]["count"],
        9
    );
}
