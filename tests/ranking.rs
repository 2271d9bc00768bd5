//! Several archives rank like one archive that has everything.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use crate::imports::import;
use crate::nodes::url;
use crate::nodes_asked::post;
use crate::support::fake_node::{END, Fake, HEAD};
use crate::support::program::start;
use crate::support::served::Served;
use crate::support::warc::answer;
use crate::support::{Archive, Dice, nobody_at};

const SITES: u64 = 8;
const PAGES: u64 = 40;

/// Returns a page with links to all sites and to pages that no archive has. Some pages are missing, some have no links,
/// and some redirect, also to other sites and in chains. How an archive treats a page that is gone or redirects, or a
/// page that leads to it, depends on whether a link to it was known before; the first page of each site links to all of
/// these.
fn page(dice: &mut Dice, site: u64, number: u64) -> Vec<u8> {
    let url = format!("http://s{site}.test/{number}");
    let id = format!("urn:test:{site}-{number}");
    let date = format!("2026-03-0{}T10:00:00Z", 1 + number % 9);
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
    let block = match number % 10 {
        7 => "HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n\r\n<p>There is no such page".to_owned(),
        8 => {
            let (to, number) = (dice.below(SITES + 2), dice.below(9));
            let number = if number == 7 || number == 8 && to <= site { 1 } else { number };
            format!("HTTP/1.1 302 Found\r\nLocation: http://s{to}.test/{number}\r\n\r\n")
        }
        9 => format!("{head}<p>Nothing leads on from {url}"),
        _ => (0..30).fold(format!("{head}<p>Page {url}"), |mut body, _| {
            let (to, number) = (dice.below(SITES + 2), dice.below(PAGES + 5));
            write!(body, " <a href=http://s{to}.test/{number}>there</a>").unwrap();
            body
        }),
    };
    let own = (0..PAGES).filter(|number| number % 10 > 6).map(|number| (site, number));
    let first = own.chain((0..SITES + 2).flat_map(|site| (0..9).map(move |number| (site, number))));
    let links = first.map(|(site, number)| format!(" <a href=http://s{site}.test/{number}>first</a>"));
    let block = if number == 0 { block + &links.collect::<String>() } else { block };
    answer(&id, &url, &date, &[], &block)
}

/// Returns archives that share the sites among them.
pub(crate) fn archives(sites: &[Vec<u8>], count: usize) -> Vec<Archive> {
    let of = |part: usize| {
        let archive = Archive::new();
        let own = (part..sites.len()).step_by(count);
        let names: Vec<(String, Vec<u8>)> =
            own.map(|site| (format!("s{site}.warc"), sites[site].clone())).collect();
        let files: Vec<(&str, Vec<u8>)> =
            names.iter().map(|(name, file)| (name.as_str(), file.clone())).collect();
        import(&archive, &files);
        archive
    };
    (0..count).map(of).collect()
}

/// Generates all sites from a seed.
pub(crate) fn web(seed: u64) -> Vec<Vec<u8>> {
    let mut dice = Dice::of(seed);
    (0..SITES).map(|site| (0..PAGES).flat_map(|number| page(&mut dice, site, number)).collect()).collect()
}

fn rank(archives: &[Archive], options: &[&str]) -> Command {
    rank_places(&folders(archives), options)
}

fn folders(archives: &[Archive]) -> Vec<String> {
    archives.iter().map(|archive| archive.path.to_str().unwrap().to_owned()).collect()
}

/// Returns the same command for folders and nodes.
fn rank_places(places: &[String], options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_archive"));
    command.arg("rank").env_remove("ARCHIVE_DIR");
    for place in places {
        command.args(["--archive", place]);
    }
    command.args(["--json", "--tolerance", "1e-11", "--top", "100000"]).args(options);
    command
}

/// Returns the values of all pages or sites by name, and the summary of the ranking.
fn ranked(archives: &[Archive], options: &[&str]) -> (BTreeMap<String, f64>, Value) {
    values(start(&mut rank(archives, options)).wait().succeeded().json())
}

fn values(mut lines: Vec<Value>) -> (BTreeMap<String, f64>, Value) {
    let first = lines.remove(0);
    let named = |line: &Value| Some((line["name"].as_str()?.to_owned(), line["value"].as_f64()?));
    let values: BTreeMap<String, f64> = lines.iter().filter_map(named).collect();
    assert_eq!(values.len() as u64, first["pages"].as_u64().unwrap(), "every page has a name of its own");
    (values, first)
}

/// Returns the L1 distance of two rankings of the same pages.
fn apart(found: &BTreeMap<String, f64>, expected: &BTreeMap<String, f64>) -> f64 {
    assert!(found.keys().eq(expected.keys()), "other pages are ranked");
    found.iter().map(|(name, value)| (value - expected[name]).abs()).sum()
}

#[test]
fn several_archives_rank_as_one_that_has_everything() {
    let sites = web(31);
    let one = archives(&sites, 1);
    for options in [&[][..], &["--sites"], &["--method", "opic"], &["--sites", "--unweighted"]] {
        let (expected, summary) = ranked(&one, options);
        assert!(expected.len() >= SITES as usize);
        for count in [2, 4] {
            let parts = archives(&sites, count);
            // With so little memory, the links of an archive are read in several passes.
            for more in [&[][..], &["--memory", "80KB"]] {
                let (found, line) = ranked(&parts, &[options, more].concat());
                let error = apart(&found, &expected);
                println!("{options:?}, {count} archives: {error:.1e}, {line}");
                assert!(error < 1e-9, "{options:?}, {count} archives: {error}");
                assert_eq!(line["arcs"], summary["arcs"], "{options:?}: each link is counted once");
            }
        }
    }
}

#[test]
fn what_several_archives_are_ranked_by_is_kept_in_each_of_them() {
    let sites = web(32);
    let parts = archives(&sites, 2);
    let (values, _) = ranked(&parts, &["--save", "everywhere"]);
    let mean = values.values().sum::<f64>() / values.len() as f64;
    let mut kept = 0;
    for archive in &parts {
        let rows = archive.json("query", &["page everywhere > 0 select url, everywhere limit 100000"]);
        kept += rows.len();
        for row in rows {
            let (url, value) = (row["url"].as_str().unwrap(), row["everywhere"].as_f64().unwrap());
            assert!((value / (values[url] / mean) - 1.0).abs() < 1e-6, "{url}: {value}");
        }
    }
    assert_eq!(kept, values.len(), "each page has its value in one archive");

    let refused = |archives: &[Archive], options: &[&str], says: &str| {
        let finished = start(&mut rank(archives, options)).wait();
        assert!(finished.code != Some(0) && finished.errors.contains(says), "{options:?}: {finished:?}");
    };
    refused(&parts, &["--method", "hits"], "--method hits works only for a single archive");
    refused(&parts, &["--chosen-query", "type = xml"], "choose pages of one archive");
    refused(&parts, &["--memory", "1KB"], "bytes of memory are too few");
    refused(&parts[..1], &["--memory", "1MB"], "--memory needs --graph, or several --archive");
    import(&parts[0], &[("again.warc", sites[1].clone())]);
    refused(&parts, &[], "have both captured pages of s1.test");
}

#[test]
fn nodes_rank_as_one_archive_that_has_everything() {
    let sites = web(33);
    let [one, two, three] = [1, 2, 3].map(|count| archives(&sites, count));
    let served = [&two, &three].map(|all| all.iter().map(Served::of).collect::<Vec<_>>());
    let nodes = |served: &[Served]| served.iter().map(url).collect::<Vec<_>>();
    let mut beside = nodes(&served[1]);
    beside[1] = folders(&three)[1].clone();
    for options in [&[][..], &["--sites"], &["--method", "opic"], &["--sites", "--unweighted"]] {
        let (expected, summary) = ranked(&one, options);
        for places in [nodes(&served[0]), nodes(&served[1]), beside.clone()] {
            for more in [&[][..], &["--memory", "80KB"]] {
                let mut command = rank_places(&places, &[options, more].concat());
                let (found, line) = values(start(&mut command).wait().succeeded().json());
                let error = apart(&found, &expected);
                println!("{options:?}, {places:?}: {error:.1e}");
                assert!(error < 1e-9, "{options:?}, {places:?}: {error}");
                assert_eq!(line["arcs"], summary["arcs"], "{options:?}: each link is counted once");
            }
        }
    }
    let too_little = start(&mut rank_places(&nodes(&served[0]), &["--memory", "1KB"])).wait();
    too_little.refused(1, &["1000 bytes of memory are too few", "take at least"]);
    // The values of a folder's pages are stored in it, as if all archives were folders.
    let kept = |places: &[String]| {
        start(&mut rank_places(places, &["--save", "everywhere"])).wait().succeeded();
        three[1].json("query", &["page everywhere > 0 select url, everywhere order by url limit 100000"])
    };
    let from_nodes = kept(&beside);
    assert!(from_nodes.len() > PAGES as usize && kept(&folders(&three)) == from_nodes);
}

#[test]
fn nodes_that_are_missing_are_named_and_the_others_ranked_without_them() {
    let sites = web(34);
    let two = archives(&sites, 2);
    let (expected, _) = ranked(&two[..1], &[]);
    let served = Served::of(&two[0]);
    let missing = |node: &str, why: &str| {
        let finished = start(&mut rank_places(&[url(&served), node.to_owned()], &["--wait", "20s"])).wait();
        assert_eq!(finished.code, Some(4), "{why}: {finished:?}");
        let named = format!("{node} is missing from this answer: ");
        assert!(
            finished.errors.contains(&named) && finished.errors.contains(why),
            "{why}: {}",
            finished.errors
        );
        assert!(apart(&values(finished.json()).0, &expected) < 1e-9, "{why}");
    };
    let nobody = nobody_at(2);
    missing(&format!("http://{nobody}/"), ": Connection refused");
    // A URL has 28 bytes: three numbers and 16 bytes of its key.
    let url_of = |site: u32, key: u8| {
        [site.to_le_bytes(), site.to_le_bytes(), [1, 0, 0, 0]].concat().into_iter().chain([key; 16])
    };
    let urls = |count: u8| (0..count).flat_map(|key| url_of(0, key)).collect::<Vec<u8>>();
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let piece_before =
        |bytes: &[u8], end: &str| format!("{HEAD}{{\"row\":\"{}\"}}\n{end}", BASE64_STANDARD.encode(bytes));
    let piece = |bytes: &[u8]| piece_before(bytes, END);
    let node = |of_urls: String, of_pages: String| {
        Fake::new(vec![
            ("\"sites\"", format!("{HEAD}{{\"row\":[\"fake.test\",true]}}\n{END}").into_bytes()),
            ("\"rows\":\"urls\"", of_urls.into_bytes()),
            ("\"rows\":\"pages\"", of_pages.into_bytes()),
        ])
    };
    let empty = || format!("{HEAD}{END}");
    let of_state_1 = |bytes: &[u8]| piece(bytes).replacen("null}", "null,\"state\":1}", 1);
    let of_pages = |list: &[u32]| node(piece(&urls(2)), piece(&words(list)));
    for (fake, why) in [
        (node(piece(&urls(2)[1..]), empty()), "a piece is cut off"),
        (node(piece(&urls(2)[4..]), empty()), "a URL is cut off"),
        (node(piece_before(&urls(2), "{\"end\":0}\n"), empty()), "it makes no progress"),
        (node(piece_before(&urls(2), "{\"end\":3}\n"), empty()), "it left out URLs"),
        (node(format!("{HEAD}{{\"row\":\"?\"}}\n{END}"), empty()), "is invalid"),
        (node(format!("{HEAD}{{\"row\":1}}\n{END}"), empty()), "is invalid"),
        (node(of_state_1(&urls(2)), empty()), "it was rebuilt"),
        // It fails at the last request, after all its links have arrived.
        (node(of_state_1(&urls(2)), of_state_1(&[])), "it was rebuilt"),
        (of_pages(&[0, 0, u32::MAX]), "a page is cut off"),
        (of_pages(&[0, 0, u32::MAX, 2, 1]), "the links of a page are cut off"),
        (of_pages(&[0, 0, u32::MAX, u32::MAX, 1]), "the links of a page are cut off"),
    ] {
        missing(&fake.url(), why);
    }
    // Numbers that belong to nothing are ignored: the node's two pages have one link.
    let list = [0, 0, 7, 3, 1, 2, u32::MAX, 9, 1, 1, 0, 1, 0, 0, 0];
    let fake = of_pages(&list);
    let mut command = rank_places(&[url(&served), fake.url()], &["--sites"]);
    let (sites, _) = values(start(&mut command).wait().succeeded().json());
    assert!(sites["fake.test"] > 0.0);
    let finished = start(&mut rank_places(&[url(&served), fake.url()], &["--wait", "2s"])).wait();
    finished.refused(1, &["does not answer any more", "did not answer within 2 seconds"]);
}

#[test]
fn an_outline_in_many_pieces_is_the_one_in_a_single_piece() {
    let archive = archives(&web(35)[..2], 1).remove(0);
    let served = Served::of(&archive);
    let rows = |rows: &str, room: u64| {
        let (mut found, mut from, mut answers) = (Vec::new(), Some(0), 0);
        while let Some(begin) = from {
            let ask = format!(
                "{{\"version\":2,\"ask\":{{\"outline\":{{\"rows\":\"{rows}\",\"from\":{begin},\"room\":{room}}}}}}}"
            );
            let answer = post(&served, &["Content-Type: application/json"], &ask);
            assert_eq!(answer.status, 200);
            let lines = String::from_utf8(answer.content()).unwrap();
            let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert!(lines[0]["state"].is_u64());
            let pieces = lines.iter().filter_map(|line| line["row"].as_str());
            found.extend(pieces.flat_map(|piece| BASE64_STANDARD.decode(piece).unwrap()));
            from = lines.iter().find_map(|line| line["end"].as_u64());
            answers += 1;
        }
        (found, answers)
    };
    for (name, least) in [("urls", 50), ("pages", 50)] {
        let (whole, once) = rows(name, u64::MAX);
        let (found, answers) = rows(name, 0);
        assert!(once == 1 && answers >= least && !whole.is_empty(), "{name}: {once}, {answers}");
        assert_eq!(found, whole, "{name}");
    }
    let too_many = format!("{{\"version\":2,\"ask\":{{\"urls\":{{\"pages\":[{}0]}}}}}}", "0,".repeat(50_000));
    let answer = post(&served, &["Content-Type: application/json"], &too_many);
    assert_eq!(answer.status, 400, "{}", String::from_utf8_lossy(&answer.body));
    let most = too_many.replacen("0,", "", 1);
    assert_eq!(post(&served, &["Content-Type: application/json"], &most).status, 200);
}

#[test]
fn links_of_pages_that_a_node_hides_do_not_count() {
    let two = archives(&web(36), 2);
    let (expected, _) = ranked(&two, &[]);
    std::fs::write(two[1].path.join("access.toml"), "[[rule]]\nprefix = \"test,s1\"\n").unwrap();
    let served: Vec<Served> = two.iter().map(Served::of).collect();
    let places: Vec<String> = served.iter().map(url).collect();
    let lines = start(&mut rank_places(&places, &[])).wait().succeeded().json();
    let shown: Vec<&str> = lines.iter().filter_map(|line| line["name"].as_str()).collect();
    assert!(shown.len() > expected.len() / 2);
    // URLs to which shown pages link are not hidden, but links of hidden pages do not count.
    assert!(lines.iter().skip(1).any(|line| {
        (line["value"].as_f64().unwrap() - expected[line["name"].as_str().unwrap()]).abs() > 1e-3
    }));
}
