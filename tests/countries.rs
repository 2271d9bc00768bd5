//! Nodes that divide the web by country: the sites of a country's domain are in one partition, those of other domains in
//! any, and each page is fetched once, by the node of its partition.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use archive_books::cluster::{Division, Mode, Partition};
use archive_storage::address::site_of;
use url::Url;

use crate::cluster::union;
use crate::ordered::pages;
use crate::support::answers::{Answers, html, nothing, plain};
use crate::support::program::{Finished, start};
use crate::support::{Archive, captures, ledger_balances};

/// Hosts of four countries, one of them in a domain of another script, and of two other domains.
const HOSTS: [&str; 14] = [
    "a.de",
    "www.b.de",
    "c.de",
    "a.fr",
    "www.b.fr",
    "a.co.uk",
    "b.org.uk",
    "a.xn--p1ai",
    "a.org",
    "b.org",
    "c.org",
    "a.test",
    "b.test",
    "c.test",
];

/// Number of pages of a host, besides the first.
const PAGES: usize = 5;

/// Serves hosts whose first pages link to each other and whose other pages follow each other.
fn web() -> Answers {
    Answers::start(|host, path| match path.strip_prefix("/p").map(str::parse::<usize>) {
        _ if path == "/robots.txt" => plain(""),
        _ if !HOSTS.contains(&host) => nothing(),
        Some(Ok(page)) if page < PAGES => {
            let other = HOSTS[(page * 5 + host.len()) % HOSTS.len()];
            html(&format!(
                "{host} {page} <a href=/p{}>next</a> <a href=http://{other}/p{page}>there</a>",
                page + 1
            ))
        }
        None if path == "/" => {
            let links: String =
                HOSTS.iter().map(|host| format!("<a href=http://{host}/>{host}</a> ")).collect();
            html(&format!("{host} <a href=/p0>pages</a> {links}"))
        }
        _ => nothing(),
    })
}

fn options(web: &Answers, cluster: &Path) -> Vec<String> {
    let mut options = web.at_once();
    let cluster = format!("file://{}", cluster.display());
    options.extend(["--scope", "any", "--cluster", &cluster].map(str::to_owned));
    options
}

fn seeds() -> Vec<String> {
    vec!["http://a.de/".to_owned(), "http://a.org/".to_owned()]
}

/// Fails unless these archives, of partitions from 1 on, have all pages, each once and where it belongs.
fn assert_divided(web: &Answers, archives: &[&Path], by: &str) {
    let (found, overlap) = union(archives.iter().copied());
    assert_eq!(overlap, 0);
    for host in HOSTS {
        assert!(found.contains_key(&format!("http://{host}/")), "{host}");
        (0..PAGES)
            .for_each(|page| assert!(found.contains_key(&format!("http://{host}/p{page}")), "{host} {page}"));
    }
    let mut asked: BTreeMap<String, u32> = BTreeMap::new();
    web.take_asked().into_iter().for_each(|one| *asked.entry(one).or_default() += 1);
    let twice: Vec<_> = asked.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
    let count = u16::try_from(archives.len()).unwrap();
    let by: Division = by.parse().unwrap();
    let any = Partition { cluster: String::new(), number: 1, count, mode: Mode::Exchange, by };
    let mut of_domains: BTreeMap<String, Vec<u16>> = BTreeMap::new();
    for (number, archive) in (1..).zip(archives) {
        ledger_balances(archive);
        for url in captures(archive).0.keys() {
            let host = Url::parse(url).unwrap().host_str().unwrap().to_owned();
            assert_eq!(any.of_site(site_of(&host)), number, "{url}");
            let domain = host.rsplit('.').next().unwrap().to_owned();
            of_domains.entry(domain).or_default().push(number);
        }
    }
    of_domains.values_mut().for_each(Vec::dedup);
    for domain in ["de", "fr", "uk"] {
        assert_eq!(of_domains[domain].len(), 1, "{domain}: {of_domains:?}");
    }
    assert_eq!(of_domains["test"].len(), 2, "{of_domains:?}");
}

#[test]
fn each_country_is_crawled_by_one_node_and_each_page_once() {
    let (web, store) = (web(), tempfile::tempdir().unwrap());
    let archives = [Archive::new(), Archive::new()];
    let by = "country:de=2,xn--p1ai=2,uk=1";
    let crawl = |node: usize, more: &[&str]| {
        let mut options = options(&web, store.path());
        options.extend(["--partition".to_owned(), format!("{}/2", node + 1)]);
        options.extend(more.iter().map(|option| (*option).to_owned()));
        start(&mut archives[node].crawl(&seeds(), &options))
    };
    crawl(0, &["--partition-by", "country:de=3"])
        .wait()
        .refused(1, &["--partition-by gives de to a partition that does not exist; there are 2"]);
    // Whoever begins the cluster says it; the other takes it from there.
    let mut first = crawl(0, &["--partition-by", by]);
    assert!(first.wait_until(|| store.path().join("cluster.json").exists()));
    let running = [first, crawl(1, &[])];
    running.into_iter().for_each(|node| drop(node.wait().succeeded()));
    let paths = [archives[0].path.as_path(), archives[1].path.as_path()];
    assert_divided(&web, &paths, by);
    assert!(captures(paths[1]).0.contains_key("http://a.xn--p1ai/p3"));
    crawl(1, &["--partition-by", "site"])
        .wait()
        .refused(1, &["this cluster divides sites by country:de=2,uk=1,xn--p1ai=2, not by site"]);

    // Erasures reach the partition of the page, too, and so does a state that is made again.
    let cluster = format!("file://{}", store.path().display());
    let run = |words: &[&str]| -> Finished {
        let mut command = Command::new(env!("CARGO_BIN_EXE_archive"));
        start(command.args(words).args(["--cluster", &cluster])).wait()
    };
    let status = run(&["cluster", "status", "--json"]).succeeded().json().remove(0);
    assert_eq!((&status["by"], &status["is_exact"]), (&"country:de=2,uk=1,xn--p1ai=2".into(), &true.into()));
    assert!(run(&["cluster", "status"]).text().contains("sites divided by country:de=2,uk=1,xn--p1ai=2"));
    let list = archives[0].file("list.txt", "http://a.co.uk/p2\nhttp://c.de/p3\n");
    run(&["erase", "--urls", list.to_str().unwrap(), "--reason", "court order", "--yes"]).succeeded();
    for archive in &archives {
        archive.run::<&str>("rebuild", &[]).succeeded();
        run(&["cluster", "share", "--archive", archive.path.to_str().unwrap()]).succeeded();
    }
    for (archive, gone) in archives.iter().zip(["http://a.co.uk/p2", "http://c.de/p3"]) {
        assert!(!pages(archive).contains(&gone.to_owned()), "{gone}");
    }
    [crawl(0, &[]), crawl(1, &[])].into_iter().for_each(|node| drop(node.wait().succeeded()));
    let asked = web.take_asked();
    assert!(asked.is_empty(), "{asked:?}");
}

#[test]
fn the_partitions_of_a_machine_are_countries_too() {
    let (web, store, folder) = (web(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let place = Archive::new();
    let list = place.file("seeds.txt", seeds().join("\n"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_archive"));
    command.args(["node", "--partitions", "2", "--partition-by", "country:de=1,fr=2", "--archives"]);
    command.arg(folder.path()).args(["--cluster", &format!("file://{}", store.path().display())]);
    command.args(["--", "--scope", "any", "--seeds"]).arg(list).args(web.at_once());
    start(&mut command).wait().succeeded();
    let archives: Vec<PathBuf> =
        (1..=2).map(|number| folder.path().join(format!("{number}.archive"))).collect();
    let paths: Vec<&Path> = archives.iter().map(PathBuf::as_path).collect();
    assert_divided(&web, &paths, "country:de=1,fr=2");
}
