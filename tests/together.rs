//! Several archives that are queried as one answer like one archive that has everything.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use archive_books::prepared;
use archive_storage::Store;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::imports::import;
use crate::support::program::{Finished, start};
use crate::support::warc::answer;
use crate::support::{Archive, Dice};

const SITES: u64 = 8;
const PAGES: u64 = 40;

/// Words of all pages, most frequent first; no word contains another.
const WORDS: [&str; 24] = [
    "archive",
    "library",
    "page",
    "reader",
    "book",
    "shelf",
    "open",
    "access",
    "record",
    "crawl",
    "link",
    "harvest",
    "catalogue",
    "index",
    "journal",
    "memory",
    "ledger",
    "harbour",
    "meadow",
    "lantern",
    "quarry",
    "orchid",
    "zephyr",
    "walnut",
];

/// Searches for words that pages contain; only the first word of the last search occurs in no page.
pub(crate) const SEARCHES: [&[&str]; 10] = [
    &["archive"],
    &["open", "access"],
    &["\"open access\""],
    &["walnut", "zephyr", "library"],
    &["harbour", "-archive"],
    &["catalogue", "site:s3.test"],
    &["lantern", "language:fr"],
    &["page", "quarry", "after:2026-02"],
    &["meadow", "orchid", "--all"],
    &["orchidd", "archive"],
];

/// Queries whose results show their order.
pub(crate) const QUERIES: [&str; 14] = [
    "page status = 404 select url, status, last seen order by url",
    "page text contains \"open access\" select url, title order by url limit 50 offset 5",
    "count pages group by type",
    "count pages captures > 0 as of 2026-02-15",
    "page captures > 0 select language, count, sum(size), avg(size), min(size), max(last seen), median(size), count(distinct title) group by language having count > 2",
    "capture select month(time), count, sum(size), median(size), count(distinct digest) group by month(time)",
    "page links to (page status = 404) select url order by url",
    "page linked from \"http://s0.test/1\" select url, status order by url",
    "page duplicates select url, title order by title, url limit 30",
    "link target.status = 404 or target.site = \"s5.test\" select source, target, target.title order by source, target",
    "host pages > 0 select host, site, captures, size order by size desc, host limit 3 offset 1",
    "site captures > 0 select site, pages, captures, html order by site",
    "page captures = 0 select url order by url",
    "capture page.status = 200 and size > 300 select url, time, size order by size desc, url limit 40",
];

/// Returns a page's record: some pages have the same content, some are missing, and links lead to all sites and to
/// pages that no archive has.
fn page(dice: &mut Dice, site: u64, number: u64) -> Vec<u8> {
    let url = format!("http://s{site}.test/{number}");
    let date = format!("2026-0{}-1{}T10:00:00Z", 1 + number % 3, site);
    let id = format!("urn:test:{site}-{number}");
    let word = |dice: &mut Dice| WORDS[(dice.below(24) * dice.below(24) / 24) as usize];
    let words = |dice: &mut Dice, count: u64| (0..count).map(|_| word(dice)).collect::<Vec<_>>().join(" ");
    if number % 13 == 12 {
        let gone = "HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n\r\n<p>There is no such page";
        return answer(&id, &url, &date, &[], gone);
    }
    let mut body = if number % 10 == 9 {
        "<html lang=en><title>About this library</title><p>Equal on each site, open access".to_owned()
    } else {
        let (title, count) = (words(dice, 2), 10 + dice.below(60));
        let language = if dice.below(3) == 0 { "fr" } else { "en" };
        format!(
            "<html lang={language}><title>{title}</title><h1>{}</h1><p>{}",
            words(dice, 3),
            words(dice, count)
        )
    };
    if number % 10 != 9 {
        for _ in 0..4 {
            let (to, text) = (dice.below(SITES + 2), words(dice, 2));
            write!(body, " <a href=http://s{to}.test/{}>{text}</a>", dice.below(PAGES + 5)).unwrap();
        }
    }
    answer(&id, &url, &date, &[], &format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{body}"))
}

/// Returns archives that share the sites among them.
pub(crate) fn archives(sites: &[Vec<u8>], count: usize) -> Vec<Archive> {
    let of = |part: usize| {
        let files: Vec<(String, Vec<u8>)> = (part..sites.len())
            .step_by(count)
            .map(|site| (format!("s{site}.warc"), sites[site].clone()))
            .collect();
        let files: Vec<(&str, Vec<u8>)> =
            files.iter().map(|(name, file)| (name.as_str(), file.clone())).collect();
        let content = files
            .iter()
            .flat_map(|(name, file)| [name.as_bytes(), file.as_slice()])
            .collect::<Vec<_>>()
            .concat();
        crate::support::prepared::prepared(&format!("imported-{:016x}", xxh3_64(&content)), || {
            let archive = Archive::new();
            import(&archive, &files);
            archive
        })
    };
    (0..count).map(of).collect()
}

pub(crate) fn sites() -> Vec<Vec<u8>> {
    let mut dice = Dice::of(20);
    (0..SITES).map(|site| (0..PAGES).flat_map(|number| page(&mut dice, site, number)).collect()).collect()
}

fn command(name: &str, archives: &[&Path]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_archive"));
    command.arg(name).env_remove("ARCHIVE_DIR");
    for archive in archives {
        command.arg("--archive").arg(archive);
    }
    command
}

fn paths(archives: &[Archive]) -> Vec<&Path> {
    archives.iter().map(|archive| archive.path.as_path()).collect()
}

fn ask(name: &str, paths: &[&Path], arguments: &[&str]) -> Vec<Value> {
    start(command(name, paths).arg("--json").args(arguments)).wait().succeeded().json()
}

/// Returns results and facets of a search in comparable form: equal pages are one result under the name of any of them,
/// and of results with the same score some may be cut off.
pub(crate) fn searched(archives: &[&Path], words: &[&str]) -> Vec<Value> {
    let options = ["--limit", "100", "--importance", "0", "--facets"];
    let mut lines = ask("search", archives, &[words, &options].concat());
    let facets =
        lines.split_off(lines.iter().position(|line| line["facet"].is_string()).unwrap_or(lines.len()));
    for hit in &mut lines {
        let mut urls: Vec<String> = serde_json::from_value(hit["also"].take()).unwrap();
        urls.push(serde_json::from_value(hit["url"].take()).unwrap());
        urls.sort_unstable();
        if urls.len() > 1 {
            hit["time"].take();
        }
        hit["also"] = urls.into();
        // Each archive has its own mean.
        hit["importance"].take();
    }
    let score = |hit: &Value| hit["score"].as_f64().unwrap();
    assert!(lines.is_sorted_by(|left, right| score(left) >= score(right)));
    lines.sort_by(|left, right| {
        score(right)
            .total_cmp(&score(left))
            .then_with(|| left["also"].to_string().cmp(&right["also"].to_string()))
    });
    if lines.len() == 100 {
        let last = score(&lines[99]);
        lines.retain(|hit| score(hit) > last);
    }
    lines.extend(facets);
    lines
}

#[test]
fn searches_and_queries_over_two_and_four_archives_are_answered_as_by_one() {
    let sites = sites();
    let [one, two, four] = [1, 2, 4].map(|count| archives(&sites, count));
    let mut rows = 0;
    for query in QUERIES {
        let expected = ask("query", &paths(&one), &[query]);
        assert!(!expected.is_empty(), "{query} finds something");
        rows += expected.len();
        for several in [&two, &four] {
            assert_eq!(
                ask("query", &paths(several), &[query]),
                expected,
                "{query}, {} archives",
                several.len()
            );
        }
    }
    let mut hits = 0;
    for words in SEARCHES {
        let expected = searched(&paths(&one), words);
        assert!(!expected.is_empty(), "{words:?} finds something");
        hits += expected.len();
        for several in [&two, &four] {
            assert_eq!(searched(&paths(several), words), expected, "{words:?}, {} archives", several.len());
        }
    }
    println!("{rows} rows and {hits} results and facets are equal");
    // A word that one archive lacks may be in another; then no other word is suggested.
    let meant = |archives: &[Archive]| {
        let paths: Vec<&Path> = archives.iter().map(|archive| archive.path.as_path()).collect();
        start(command("search", &paths).arg("orchidd")).wait().succeeded().errors
    };
    assert!(meant(&four).contains("did you mean \"orchid\"?"), "{}", meant(&four));
    assert_eq!(meant(&four), meant(&one));
}

/// An archive's own totals of a site differ from those of the archive that answers for the site.
#[test]
fn several_archives_answer_the_same_with_prepared_columns() {
    let four = archives(&sites(), 4);
    let queries = [
        "page site.pages = 0 select url order by url",
        "page host.pages > 30 and length(title) > 5 select url order by url",
        "capture site.pages > 30 and page.status = 200 select url, time order by url, time",
        "page status = 200 order by title, url select url limit 9",
    ];
    let answers = || {
        let all = QUERIES.iter().chain(&queries);
        all.map(|query| ask("query", &paths(&four), &[query])).collect::<Vec<_>>()
    };
    let before = answers();
    for archive in &four {
        let store = Store::read_only(&archive.path).unwrap();
        prepared::write(store.state(), store.path()).unwrap();
    }
    for ((query, before), after) in QUERIES.iter().chain(&queries).zip(before).zip(answers()) {
        assert!(!before.is_empty(), "{query} finds something");
        assert_eq!(after, before, "{query}");
    }
}

#[test]
fn a_sheet_for_review_has_the_sites_of_all_archives_in_one_order() {
    let sites = sites();
    let [one, four] = [1, 4].map(|count| archives(&sites, count));
    let sheet = |archives: &[&Path], query: &str| {
        let arguments = ["--format", "csv", "--query", query];
        start(
            command("review", &[])
                .arg("export")
                .args(archives.iter().flat_map(|path| [Path::new("--archive"), path]))
                .args(arguments),
        )
        .wait()
    };
    // Importance differs by archive; all other columns are equal.
    let query = "site captures > 0 order by html desc, site limit 6";
    let first = |finished: Finished| {
        finished
            .text()
            .lines()
            .map(|line| line.split([',', ';']).next().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let expected = first(sheet(&paths(&one), query).succeeded());
    assert_eq!(expected.len(), 1 + 6);
    assert_eq!(first(sheet(&paths(&four), query).succeeded()), expected);
    let nowhere = one[0].folder().join("nowhere");
    let partly = sheet(&[&four[0].path, &nowhere], query);
    assert!(partly.code == Some(4) && partly.errors.contains("nowhere is missing from this answer"));
    assert!(partly.text().lines().count() > 1);
}

#[test]
fn a_budget_is_planned_for_all_archives_together() {
    let two = archives(&sites(), 2);
    let arguments = ["--budget", "40", "--days", "90", "--clock", "2026-06-01T00:00:00Z"];
    let both = paths(&two);
    let plan = |archives: &[&Path]| ask("plan", archives, &arguments);
    let fresh = |plan: &[Value]| plan[0]["freshness_unweighted"].as_f64().unwrap();
    let pages = |archive: &Path| {
        ask("query", &[archive], &["count pages captures > 0"])[0]["count"].as_f64().unwrap()
    };
    let (all, alone) = (plan(&both), both.iter().map(|one| plan(&[*one])).collect::<Vec<_>>());
    // Without a budget, each page stays as it is in its archive.
    assert_eq!(all[0]["budget"], 0);
    let counts = [pages(both[0]), pages(both[1])];
    let expected = (0..2).map(|at| fresh(&alone[at]) * counts[at]).sum::<f64>() / (counts[0] + counts[1]);
    assert!((fresh(&all) - expected).abs() < 1e-9, "{} {expected}", fresh(&all));
    // With a budget, as many pages are fetched from both together as from one alone, which is a smaller share of them.
    let asked = |plan: &[Value]| plan.iter().find(|row| row["asked"] == true).unwrap().clone();
    assert_eq!(asked(&all)["fetches"], asked(&alone[0])["fetches"]);
    let freshness = |plan: &[Value]| asked(plan)["freshness"].as_f64().unwrap();
    assert!(alone.iter().all(|one| freshness(one) > freshness(&all)), "{all:?} {alone:?}");

    // Whether a page links to one that is gone is only known to all archives together.
    let one = archives(&sites(), 1);
    let query = "page links to (page status = 404)";
    let pages = |archives: &[&Path]| {
        let arguments = ["--budget", "100000", "--days", "1", "--clock", "2026-06-01T00:00:00Z", query];
        asked(&ask("plan", archives, &arguments))["fetches"].as_u64().unwrap()
    };
    let alone: u64 = both.iter().map(|one| pages(&[*one])).sum();
    assert!(alone < pages(&both), "{alone} {}", pages(&both));
    assert_eq!(pages(&both), pages(&paths(&one)));

    let nowhere = two[0].folder().join("nowhere");
    let partly = start(command("plan", &[both[0], &nowhere]).args(arguments)).wait();
    assert!(partly.code == Some(4) && partly.errors.contains("nowhere is missing from this answer"));
    let again = archives(&sites()[..1], 1);
    start(command("plan", &[both[0], again[0].path.as_path()]).args(arguments))
        .wait()
        .refused(1, &["have both captured pages of s0.test"]);
}

#[test]
fn what_is_exported_of_several_archives_is_what_one_archive_has() {
    let sites = sites();
    let (one, four) = (archives(&sites, 1), archives(&sites, 4));
    let folder = one[0].folder();
    let export = |archives: &[&Path], format: &str, name: &str, more: &[&str]| {
        let file = folder.join(name);
        let mut command = command("export", archives);
        command.args([format, "--json", "--output", file.to_str().unwrap()]).args(more);
        let summary = start(&mut command).wait().succeeded().json().remove(0);
        (std::fs::read(file).unwrap(), summary)
    };
    let (one, four) = (paths(&one), paths(&four));
    let both = |format: &str, name: &str, more: &[&str]| {
        let (expected, summary) = export(&one, format, &format!("one.{name}"), more);
        let (found, of_all) = export(&four, format, &format!("four.{name}"), more);
        assert_eq!(of_all["rows"], summary["rows"], "{format} {more:?}");
        assert!(summary["rows"].as_u64() > Some(20), "{format} {more:?}: {summary}");
        (expected, found)
    };
    let lines =
        |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect::<Vec<_>>();
    let of_404 = ["--where", "page links to (page status = 404) and captures > 0"];
    for more in [&[][..], &of_404] {
        let (expected, found) = both("links", "tsv", more);
        let (mut expected, mut found) = (lines(expected), lines(found));
        assert_eq!(found[0], "source\ttarget\tkind");
        expected.sort_unstable();
        found.sort_unstable();
        assert!(found == expected, "other links");
        let (expected, found) = both("cdxj", "cdxj", more);
        let (expected, found) = (lines(expected), lines(found));
        assert!(found.is_sorted());
        let key = |line: &String| line.split(" {").next().unwrap().to_owned();
        assert!(found.iter().map(key).eq(expected.iter().map(key)), "other captures");
        for line in &found {
            let record: Value = serde_json::from_str(&line[line.find('{').unwrap()..]).unwrap();
            let name = record["filename"].as_str().unwrap();
            let is_there =
                |archive: &Path, end: &str| archive.join("segments").join(format!("{name}{end}")).exists();
            let has = |archive: &&&Path| is_there(archive, "") || is_there(archive, ".open");
            assert_eq!(four.iter().filter(has).count(), 1, "{line}");
        }
        both("parquet", "parquet", more);
    }
    // The records of all archives make one archive again.
    let (_, records) = both("warc", "warc.gz", &[]);
    let again = Archive::new();
    import(&again, &[("all.warc.gz", records)]);
    let urls =
        |archives: &[&Path]| ask("query", archives, &["page captures > 0 select url, captures order by url"]);
    assert_eq!(urls(&[&again.path]), urls(&one));

    let refused = |format: &str, archives: &[&Path], code: i32, what: &str| {
        let file = folder.join("refused");
        start(command("export", archives).args([format, "--output", file.to_str().unwrap()]))
            .wait()
            .refused(code, &[what]);
    };
    let overlapping = archives(&sites[..1], 1);
    refused("links", &[four[0], &overlapping[0].path], 1, "have both captured pages of s0.test");
    let empty = ["--where", "page url = \"http://nowhere.test/\"", "--output", "-"];
    start(command("export", &four).arg("links").args(empty))
        .wait()
        .refused(1, &["nothing that was captured fits"]);
    let nowhere = folder.join("nowhere");
    let finished = start(command("export", &[four[0], &nowhere]).args(["links", "--output", "-"])).wait();
    assert!(finished.code == Some(4) && finished.errors.contains("nowhere is missing from this answer"));
}

#[test]
fn what_several_archives_cannot_answer_as_one_is_refused_and_what_is_missing_is_named() {
    let sites = sites();
    let two = archives(&sites, 2);
    let again = archives(&sites[..1], 1);
    let ask =
        |archives: &[&Path], query: &str| start(command("query", archives).args(["--json", query])).wait();
    let both = [two[0].path.as_path(), two[1].path.as_path()];
    let overlapping = [both[0], again[0].path.as_path()];
    ask(&overlapping, "count pages")
        .refused(1, &["have both captured pages of s0.test", "query each by itself"]);
    start(command("search", &overlapping).arg("archive")).wait().refused(1, &["captured pages of s0.test"]);
    for own in [
        "rating",
        "verdict",
        "tags",
        "collections",
        "rated by",
        "change rate",
        "freshness",
        "next visit",
        "parts right",
    ] {
        let query = format!("page select url, {own}");
        ask(&both, &query).refused(2, &["differs between archives: query a single archive for it"]);
        ask(&both[..1], &query).succeeded();
    }

    let nowhere = two[0].folder().join("nowhere");
    for (name, asked) in [("query", "count pages captures > 0"), ("search", "archive")] {
        let finished = start(command(name, &[both[0], &nowhere]).args(["--json", asked])).wait();
        assert_eq!(finished.code, Some(4), "{finished:?}");
        assert!(finished.errors.contains("nowhere is missing from this answer"), "{}", finished.errors);
        assert!(!finished.json().is_empty());
    }
    ask(&[&nowhere, &nowhere], "count pages").refused(1, &["none of these archives can be read"]);
    ask(&[&nowhere], "count pages").refused(1, &["nowhere"]);
}

#[test]
fn what_to_review_next_of_several_archives_is_one_list() {
    let sites = sites();
    let (one, four) = (archives(&sites, 1), archives(&sites, 4));
    let next = |archives: &[&Path], more: &[&str]| {
        let mut words = command("review", &[]);
        words.arg("next");
        for archive in archives {
            words.arg("--archive").arg(archive);
        }
        start(words.args(more)).wait()
    };
    let rows =
        |archives: &[&Path], more: &[&str]| next(archives, &[&["--json"], more].concat()).succeeded().json();
    let (one, of_four) = (paths(&one), paths(&four));
    let known = |rows: &[Value]| {
        let row = |row: &Value| (row["site"].as_str().unwrap().to_owned(), row["pages"].clone());
        rows.iter().map(row).collect::<std::collections::BTreeMap<_, _>>()
    };
    let of_all = rows(&of_four, &[]);
    assert_eq!(known(&of_all), known(&rows(&one, &[])), "each site once, with its pages");
    assert!(of_all.len() > SITES as usize, "sites that are only linked to, too");
    let gain = |row: &Value| row["gain"].as_f64().unwrap();
    assert!(of_all.is_sorted_by(|left, right| gain(left) >= gain(right)));
    assert_eq!(rows(&of_four, &["--limit", "3"]), of_all[..3]);
    let table = next(&of_four, &["--limit", "3"]).succeeded();
    assert!(table.errors.contains(&format!("These 3 of {} sites hold ", of_all.len())), "{}", table.errors);

    // A decision in an archive counts for its sites.
    let decided = ["s1.test", "--rating", "3", "--tag", "maps", "--by", "anna"];
    four[1].run("review set", &decided).succeeded();
    let rest = rows(&of_four, &["--query", "site captures > 0"]);
    assert_eq!(rest.len() as u64, SITES - 1);
    assert!(rest.iter().all(|row| row["site"] != "s1.test"), "{rest:?}");
    let tagged = ["s1.test", "--verdict", "investigate", "--by", "anna"];
    four[1].run("review set", &tagged).succeeded();
    let asked = rows(&of_four, &["--query", "site tags contains \"maps\""]);
    assert_eq!(asked.iter().map(|row| &row["site"]).collect::<Vec<_>>(), ["s1.test"]);
    next(&of_four, &["--query", "site limit 2"]).refused(2, &["each archive selects its rows independently"]);
    rows(&of_four[..1], &["--query", "site limit 2"]);

    let nowhere = four[0].folder().join("nowhere");
    let missing = next(&[of_four[0], &nowhere], &[]);
    assert!(missing.code == Some(4) && missing.errors.contains("nowhere is missing"), "{missing:?}");
    next(&[of_four[0], one[0]], &[]).refused(1, &["have both captured pages of s0.test"]);
}
