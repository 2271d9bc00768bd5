//! Archives of other machines, queried over HTTP, answer like one archive that has everything.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::program::{Finished, start};
use crate::support::served::Served;
use crate::support::{Archive, in_full};
use crate::together::{QUERIES, SEARCHES, archives, searched, sites};

/// Queries with rows that are sent tentatively and settled later: pages, sites and hosts that several archives know
/// from links.
pub(crate) const MORE: [&str; 20] = [
    "page links to (page site = \"s5.test\" order by url limit 20) select url, status order by url",
    "count pages not links to \"http://s5.test/7\" group by status",
    "page select url order by url",
    "page select url, captures order by captures, url limit 9 offset 3",
    "page captures = 0 select url order by url desc limit 7",
    "count pages",
    "count pages group by site",
    "count pages group by host order by count, host limit 5",
    "page select site, count, min(url), max(url), count(distinct host) group by site having count > 1",
    "site select site, pages order by site",
    "count sites group by pages",
    "host select host, captures, size order by captures desc, host",
    "version select url, time, digest order by time, url limit 20",
    "page links to (page linked from \"http://s0.test/1\") select url order by url",
    "page linked from (page site = \"s0.test\" and text contains archive) select url, captures order by url",
    "page linked from (page links to (page status = 404) order by url limit 9) select url order by url limit 30",
    "count pages not linked from (page site = \"s1.test\") group by site order by count, site",
    "capture links to (page status = 404) and size > 300 select url, time order by url, time",
    "link target.site = \"s5.test\" select source, target, source.title order by source, target",
    "count links group by target.host order by count, target.host",
];

/// Samples that differ from those of a single archive, but are the same for folders and nodes.
const SAMPLES: [&str; 7] = [
    "page sample 20 seed 7 select url, status",
    "page captures = 0 sample 9 select url order by url",
    "page sample 400 select url order by url",
    "count pages sample 50 seed 3 group by site",
    "page sample 30 select site, count, median(size), count(distinct url) group by site having count > 1",
    "link sample 5 select source, target",
    "capture sample 30 select url, time order by url, time limit 7 offset 2",
];

/// Whether a query cannot be sent to nodes.
pub(crate) fn is_refused(query: &str) -> bool {
    ["duplicates", "target.status"].iter().any(|what| query.contains(what))
}

pub(crate) fn url(served: &Served) -> String {
    format!("http://{}/", served.application)
}

pub(crate) fn query(places: &[&str], arguments: &[&str]) -> Finished {
    let mut command = Command::new(env!("CARGO_BIN_EXE_archive"));
    command.arg("query").env_remove("ARCHIVE_DIR").env("TZ", "UTC");
    for place in places {
        command.args(["--archive", place]);
    }
    start(command.args(arguments)).wait()
}

pub(crate) fn rows(places: &[&str], text: &str) -> Vec<Value> {
    query(places, &["--json", text]).succeeded().json()
}

#[test]
fn queries_over_nodes_and_folders_are_answered_as_by_one_archive() {
    let sites = sites();
    let [one, two, four] = [1, 2, 4].map(|count| archives(&sites, count));
    let served = [&one, &two, &four].map(|all| all.iter().map(Served::of).collect::<Vec<_>>());
    let of = |served: &[Served]| served.iter().map(url).collect::<Vec<_>>();
    let folder = |archive: &Archive| archive.path.to_str().unwrap().to_owned();
    let mut beside = of(&served[2]);
    beside[0] = folder(&four[0]);
    beside[2] = folder(&four[2]);
    let [alone, pair, all] = [of(&served[0]), of(&served[1]), of(&served[2])];
    let mut equal = 0;
    // All four nodes answer each query, and others one in three: fewer nodes, and nodes beside folders.
    let others = [&alone, &pair, &beside];
    for (number, text) in QUERIES.iter().chain(&MORE).filter(|text| !is_refused(text)).enumerate() {
        let expected = rows(&[&folder(&one[0])], text);
        assert!(!expected.is_empty(), "{text} finds something");
        equal += expected.len();
        for places in in_full(&[&all, others[number % 3]][..], &[&all, &alone, &pair, &beside]) {
            let places: Vec<&str> = places.iter().map(String::as_str).collect();
            assert_eq!(rows(&places, text), expected, "{text}, {places:?}");
        }
    }
    // Importance, and so the score, differs by archive; folders of the same sites have the same.
    let folders = four.iter().map(folder).collect::<Vec<_>>();
    let places = |places: &[String]| places.iter().map(String::as_str).map(str::to_owned).collect::<Vec<_>>();
    let scored = [
        "page text contains \"open access\" select url, score limit 20",
        "page text contains any (walnut, \"library page\", \"lan*\") and status = 200 select url, score limit 50 offset 2",
        "page text contains orchid and not text contains zephyr select url, score, site.pages",
        "count pages text contains archive group by site order by count, site",
        "page text contains library and links to (page text contains archive) select url, score",
    ];
    for text in scored.iter().chain(&SAMPLES) {
        let of = |all: &[String]| rows(&places(all).iter().map(String::as_str).collect::<Vec<_>>(), text);
        let expected = of(&folders);
        assert!(!expected.is_empty(), "{text} finds something");
        equal += expected.len();
        assert_eq!(of(&all), expected, "{text}");
        assert_eq!(of(&beside), expected, "{text}");
    }
    println!("{equal} rows are equal");
    // A table states how many more rows there are.
    let more = query(&[&all[0], &all[1], &all[2], &all[3]], &["page captures > 0"]).succeeded();
    let expected = query(&[&folder(&one[0])], &["page captures > 0"]).succeeded();
    assert!(expected.errors.contains("100 of "), "{}", expected.errors);
    assert_eq!(more.errors, expected.errors);
    let some = [all[0].as_str(), &all[1]];
    let count = rows(&some, "count pages")[0]["count"].to_string();
    let cut = query(&some, &["page"]).succeeded().errors;
    assert!(cut.contains(&format!("100 of {count} rows")), "{count}: {cut}");
}

#[test]
fn searches_of_nodes_and_folders_find_what_one_archive_finds() {
    let sites = sites();
    let [one, two, four] = [1, 2, 4].map(|count| archives(&sites, count));
    let served: Vec<Served> = four.iter().map(Served::of).collect();
    let fewer = [&one, &two].map(|all| all.iter().map(Served::of).collect::<Vec<_>>());
    let fewer = fewer.each_ref().map(|all| all.iter().map(url).collect::<Vec<_>>());
    let fewer = fewer.each_ref().map(|few| few.iter().map(Path::new).collect::<Vec<_>>());
    let all: Vec<String> = served.iter().map(url).collect();
    let mut beside: Vec<&Path> = all.iter().map(Path::new).collect();
    let nodes = beside.clone();
    beside[1] = &four[1].path;
    let folders: Vec<&Path> = four.iter().map(|archive| archive.path.as_path()).collect();
    let mut hits = 0;
    // All four nodes answer each search, and others one in three.
    let others = [&beside, &fewer[0], &fewer[1]];
    for (number, words) in SEARCHES.iter().enumerate() {
        let expected = searched(&[&one[0].path], words);
        hits += expected.len();
        for places in in_full(&[&nodes, others[number % 3]][..], &[&nodes, &beside, &fewer[0], &fewer[1]]) {
            assert_eq!(searched(places, words), expected, "{words:?}, {places:?}");
        }
    }
    println!("{hits} results and facets are equal");
    let search = |places: &[&Path], arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_archive"));
        command.arg("search").env_remove("ARCHIVE_DIR").env("TZ", "UTC");
        for place in places {
            command.arg("--archive").arg(place);
        }
        start(command.args(arguments)).wait().succeeded()
    };
    // With importance, which differs by archive, and as people see it.
    for arguments in
        [&["open", "access", "book"][..], &["lantern", "--limit", "3"], &["archive", "--importance", "9"]]
    {
        let expected = search(&folders, arguments);
        assert_eq!(search(&nodes, arguments).text(), expected.text(), "{arguments:?}");
        assert_eq!(search(&beside, arguments).text(), expected.text(), "{arguments:?}");
    }
    let meant = |places: &[&Path]| search(places, &["orchidd"]).errors;
    assert!(meant(&nodes).contains("did you mean \"orchid\"?"), "{}", meant(&nodes));
    assert_eq!(meant(&nodes), meant(&folders));
}

#[test]
fn what_nodes_cannot_be_asked_is_refused_in_one_sentence() {
    let two = archives(&sites(), 2);
    let many: Vec<String> = (0..257).map(|number| format!("http://127.0.0.1:1/{number}")).collect();
    let places = |count: usize| many[..count].iter().map(String::as_str).collect::<Vec<_>>();
    query(&places(257), &["page"]).refused(2, &["write it like http://node:8070/"]);
    let at_most = |count| query(&vec!["http://127.0.0.1:1/"; count], &["--wait", "9s", "page"]);
    at_most(257).refused(1, &["at most 256 archives can be queried together"]);
    at_most(256).refused(1, &["none of these archives can be read"]);
    let served: Vec<Served> = two.iter().map(Served::of).collect();
    let urls: Vec<String> = served.iter().map(url).collect();
    let both: Vec<&str> = urls.iter().map(String::as_str).collect();
    for (text, what) in [
        ("page links to (site site = \"s0.test\")", "relations to sites, hosts and captures"),
        ("page links to (page duplicates)", "pages of equal content"),
        ("page duplicates", "pages of equal content"),
        ("link target.status = 404", "the archive that has the link does not know"),
        ("page links to (page rating > 2)", "differs between archives"),
        ("page rating > 2", "differs between archives"),
        ("page stat = 2", "in the query"),
    ] {
        query(&both, &[text]).refused(2, &[what]);
    }
    let folder = two[0].path.to_str().unwrap();
    query(&[folder, both[0]], &["count pages"])
        .refused(1, &["have both captured pages of s", "query each by itself"]);
    let password = format!("http://anna:secret@{}/", served[0].application);
    let refused = query(&[&password], &["count pages"]);
    assert!(!refused.errors.contains("secret"), "{}", refused.errors);
    refused.refused(2, &["--credentials"]);
    query(&[folder, both[1]], &["--as-archivist", "count pages"]).refused(2, &["decide themselves"]);
    let mut refresh = Command::new(env!("CARGO_BIN_EXE_archive"));
    let refresh = refresh.args(["refresh", "--budget", "5", "--archive", folder, "--archive", both[1]]);
    start(refresh.env_remove("ARCHIVE_DIR")).wait().refused(2, &["name local folders here"]);
}
