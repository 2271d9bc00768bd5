//! Searches as of a time find what an archive with only the versions of that time finds.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use archive_ask::find::{ParsedSearch, Results, SearchOptions, find_in};
use archive_ask::query::{Question, end_of};
use archive_base::access::Access;
use archive_storage::Store;
use serde_json::Value;

use crate::support::program::start;
use crate::support::served::{Served, ask};
use crate::support::warc::{answer, response};
use crate::support::{Archive, Dice, kills};

/// Number of kills of an import, unless `ARCHIVE_KILLS` overrides it.
const KILLS: u64 = 8;

const PAGES: u64 = 12;
const YEARS: u32 = 8;
const WORDS: [&str; 8] = ["open", "access", "library", "hours", "closed", "until", "further", "notice"];
const SEARCHES: [&str; 7] = [
    "open",
    "hours closed",
    "\"open access\"",
    "library -hours",
    "notice after:2003",
    "p3",
    "further type:html",
];

/// A page at a time and its text; `None` if it was gone.
#[derive(Clone)]
struct Shown {
    page: u64,
    year: u32,
    said: Option<String>,
}

impl Shown {
    fn record(&self) -> Vec<u8> {
        let (url, date) = (format!("http://h.test/p{}", self.page), format!("{}-03-01T12:00:00Z", self.year));
        let id = format!("urn:{}:{}", self.page, self.year);
        match &self.said {
            Some(said) => response(&id, &url, &date, said),
            None => answer(&id, &url, &date, &[], "HTTP/1.1 404 Not Found\r\n\r\nopen library"),
        }
    }
}

/// Returns histories of pages that change, return to an earlier text, are equal, or are gone for a while; in random
/// order.
fn histories(dice: &mut Dice) -> Vec<Shown> {
    let mut shown = Vec::new();
    for page in 0..PAGES {
        let mut texts: Vec<String> = Vec::new();
        for year in 2001..=2000 + YEARS {
            if dice.below(4) == 0 {
                continue;
            }
            let said = match dice.below(8) {
                0 => None,
                // An earlier text, which may be the current one.
                1..=3 if !texts.is_empty() => Some(texts[dice.below(texts.len() as u64) as usize].clone()),
                _ => {
                    let words: Vec<_> =
                        (0..3).map(|_| WORDS[dice.below(WORDS.len() as u64) as usize]).collect();
                    Some(format!("<html><title>{}</title><p>{} {}", words[0], words[1], words[2]))
                }
            };
            texts.extend(said.clone());
            shown.push(Shown { page, year, said });
        }
    }
    for place in (1..shown.len()).rev() {
        shown.swap(place, dice.below(place as u64 + 1) as usize);
    }
    shown
}

fn file(archive: &Archive, name: &str, shown: &[Shown]) -> PathBuf {
    archive.file(name, shown.iter().flat_map(Shown::record).collect::<Vec<u8>>())
}

fn searched(archive: &Archive, typed: &str, as_of: Option<&str>) -> Results {
    let store = Store::read_only(&archive.path).unwrap();
    let before = as_of.map(|time| end_of(time).unwrap());
    let options = SearchOptions { limit: 1000, before, facets: true, ..SearchOptions::default() };
    let access = Access::read(&archive.path).unwrap();
    find_in(vec![(&store, access)], &ParsedSearch::parse(typed).unwrap(), options).unwrap()
}

fn urls(results: Results) -> BTreeSet<String> {
    results.hits.into_iter().flat_map(|hit| hit.also.into_iter().chain([hit.url])).collect()
}

fn selected(archive: &Archive, query: &str) -> BTreeSet<String> {
    let store = Store::read_only(&archive.path).unwrap();
    let access = Access::read(&archive.path).unwrap();
    let pages = Question::pages_of(&store, access, query).unwrap();
    pages.into_iter().map(|page| store.state().url(page).unwrap()).collect()
}

/// Compares searches as of each time with those of archives that have only the versions of that time.
fn stands(archive: &Archive, shown: &[Shown]) {
    let mut found = 0;
    for year in 2001..=2000 + YEARS {
        let of_page = |page| {
            let of_page = shown.iter().filter(move |it| it.page == page && it.year <= year);
            of_page.max_by_key(|it| it.year).cloned()
        };
        let then: Vec<Shown> = (0..PAGES).filter_map(of_page).collect();
        let naive = Archive::new();
        if then.is_empty() {
            continue;
        }
        let file = file(&naive, "then.warc", &then);
        start(naive.command("import").arg("--no-repack").arg(file)).wait().succeeded();
        let as_of = format!("{year}-06-01T00:00:00Z");
        for typed in SEARCHES {
            let expected = urls(searched(&naive, typed, None));
            let results = searched(archive, typed, Some(&as_of));
            let counted: u64 = results.facets.first().map_or(0, |(_, counts)| counts[0].1);
            assert_eq!(results.behind, 0);
            assert_eq!(urls(results), expected, "{typed} as of {as_of}");
            assert_eq!(counted, expected.len() as u64, "{typed} as of {as_of}");
            found += expected.len();
        }
        for condition in ["text contains closed", "text contains \"open acc*\"", "not text contains hours"] {
            let query = format!("page status = 200 and {condition}");
            let expected = selected(&naive, &query);
            assert_eq!(selected(archive, &format!("{query} as of {as_of}")), expected, "{query} {as_of}");
        }
    }
    assert!(found > 50, "{found} pages were found in all");
}

#[test]
fn a_search_as_of_a_time_finds_what_stood_then() {
    let mut dice = Dice::new("versions");
    let shown = histories(&mut dice);
    let (first, second) = shown.split_at(shown.len() / 2);
    let (archive, newest_only) = (Archive::new(), Archive::new());
    for (number, part) in [first, second].into_iter().enumerate() {
        let file = file(&archive, &format!("{number}.warc"), part);
        start(newest_only.command("import").arg(&file)).wait().succeeded();
        let mut import = archive.command("import");
        if number == 0 {
            import.arg("--index-versions");
        }
        start(import.arg(&file)).wait().succeeded();
    }
    stands(&archive, &shown);
    archive.verify();
    // A search of the present is the same without older versions.
    for typed in SEARCHES {
        assert_eq!(searched(&archive, typed, None), searched(&newest_only, typed, None), "{typed}");
    }
    newest_only.run("search", &["open", "--as-of", "2003"]).refused(1, &["--index-versions"]);
    newest_only.run("query", &["text contains open as of 2003"]).refused(1, &["--index-versions"]);
    archive.run("search", &["open", "--as-of", "2003 limit 3"]).refused(2, &["is not a time"]);

    // A rebuilt index is the same; the option is remembered, and can be revoked.
    start(&mut archive.command("repack")).wait().succeeded();
    start(&mut archive.command("rebuild")).wait().succeeded();
    stands(&archive, &shown);
    archive.run("rebuild", &["--index-versions=false"]).succeeded();
    archive.run("search", &["open", "--as-of", "2003"]).refused(1, &["--index-versions"]);
    archive.run("rebuild", &["--index-versions"]).succeeded();
    std::fs::remove_file(archive.path.join("state/versions/meta.json")).unwrap();
    start(&mut archive.command("repair")).wait().succeeded();
    stands(&archive, &shown);
}

#[test]
fn kills_leave_nothing_out() {
    let kills = kills(KILLS);
    let mut dice = Dice::new("kill-versions");
    let shown = histories(&mut dice);
    let files = |archive: &Archive| -> Vec<PathBuf> {
        let parts = shown.chunks(shown.len() / 3 + 1).enumerate();
        parts.map(|(number, part)| file(archive, &format!("{number}.warc"), part)).collect()
    };
    let mut archive = Archive::new();
    let mut time = Duration::ZERO;
    let mut in_time = 0;
    for _ in 0..=kills {
        for file in files(&archive) {
            let mut import = archive.command("import");
            let mut running = start(import.args(["--no-repack", "--index-versions"]).arg(file));
            let micros = u64::try_from(time.as_micros()).unwrap();
            if micros > 0 {
                std::thread::sleep(Duration::from_micros(dice.below(micros)));
                if !running.has_ended() {
                    running.kill();
                    in_time += 1;
                    continue;
                }
            }
            let elapsed = running.wait().succeeded().elapsed;
            time = if time.is_zero() { elapsed } else { (time + elapsed) / 2 };
        }
    }
    // The last run has nothing new to import, or everything.
    let all = file(&archive, "all.warc", &shown);
    start(archive.command("import").args(["--no-repack"]).arg(all)).wait().succeeded();
    assert!(in_time > kills / 3, "{in_time} kills came in time");
    archive.verify();
    // The next run indexes everything that is missing, and one later page.
    let more = Shown { page: PAGES, year: 2001 + YEARS, said: Some("<p>more".to_owned()) };
    let file = file(&archive, "more.warc", std::slice::from_ref(&more));
    start(archive.command("import").arg(file)).wait().succeeded();
    stands(&archive, &shown);
    archive = archive.copy();
    archive.verify();
}

/// Returns the versions of a page from years and its text from each year on.
fn page(number: u64, years: &[(u32, &str)]) -> Vec<Shown> {
    let shown = |(year, said): &(u32, &str)| Shown {
        page: number,
        year: *year,
        said: (!said.is_empty()).then(|| format!("<html><title>Library</title><p>{said}")),
    };
    years.iter().map(shown).collect()
}

#[test]
fn results_show_their_time_and_erased_or_hidden_pages_are_not_found() {
    let plan = "See the <a href=/p2>floor plan</a>.";
    let shown = [
        page(1, &[(2001, "Welcome."), (2003, "Nine to quarterpast."), (2005, "Moved."), (2007, "")]),
        page(2, &[(2001, "Ground."), (2004, "First.")]),
        page(3, &[(2002, plan), (2005, "Gone."), (2006, plan), (2007, "Gone.")]),
    ]
    .concat();
    let archive = Archive::new();
    let file = file(&archive, "a.warc", &shown);
    start(archive.command("import").arg("--index-versions").arg(file)).wait().succeeded();
    let search = |words: &[&str], time: &str| -> Vec<Value> {
        archive.json("search", &[words, &["--as-of", time]].concat())
    };
    let spans = |words: &[&str], time: &str| -> Vec<[String; 3]> {
        let year = |time: &Value| time.as_str().unwrap_or_default().chars().take(4).collect::<String>();
        let of =
            |hit: &Value| [hit["url"].as_str().unwrap().to_owned(), year(&hit["time"]), year(&hit["until"])];
        search(words, time).iter().map(of).collect()
    };
    let one = |page: u64, since: &str, until: &str| {
        vec![[format!("http://h.test/p{page}"), since.to_owned(), until.to_owned()]]
    };
    assert_eq!(spans(&["quarterpast"], "2004-01-01"), one(1, "2003", "2005"));
    assert_eq!(spans(&["quarterpast"], "2003-02-01"), one(1, "", "")[..0]);
    assert_eq!(spans(&["quarterpast"], "2006-01-01"), one(1, "", "")[..0]);
    assert_eq!(spans(&["moved"], "2006-01-01"), one(1, "2005", "2007"));
    assert_eq!(spans(&["moved"], "2008-01-01"), one(1, "", "")[..0], "it is gone");
    assert_eq!(spans(&["first"], "2008-01-01"), one(2, "2004", ""));
    let hit = &search(&["quarterpast"], "2004-01-01")[0];
    assert!(hit["snippet"].as_str().unwrap().contains("Nine to quarterpast"), "{hit}");
    let served = Served::of(&archive);
    let page = |path: &str| ask(&served.application, "GET", path, &["Accept: application/json"]);
    let data: Value = serde_json::from_slice(&page("/search?q=quarterpast&as-of=2004-01-01").body).unwrap();
    assert_eq!(data["results"][0]["url"], "http://h.test/p1");
    assert!(data["results"][0]["until"].as_str().unwrap().starts_with("2005-03-01"), "{data}");
    let data: Value = serde_json::from_slice(&page("/search?q=quarterpast").body).unwrap();
    assert_eq!(data["results"].as_array().unwrap().len(), 0, "{data}");
    assert_eq!(page("/search?q=quarterpast&as-of=soon").status, 400);
    let html = ask(&served.application, "GET", "/search?q=library&as-of=2004-01-01", &[]);
    assert!(String::from_utf8_lossy(&html.body).contains("value=\"2004-01-01\""));
    drop(served);
    // Link texts, while the link existed.
    let floor =
        |time| spans(&["\"floor plan\" floor"], time).into_iter().map(|[url, ..]| url).collect::<Vec<_>>();
    assert_eq!(floor("2003-01-01"), ["http://h.test/p3"]);
    let found = |time| spans(&["floor"], time).len();
    assert_eq!(
        [found("2001-06-01"), found("2003-01-01"), found("2005-06-01"), found("2006-06-01")],
        [0, 2, 0, 2]
    );
    let today = start(archive.command("search").args(["floor", "--json"])).wait().succeeded().json();
    assert!(today.is_empty(), "{today:?}");
    // A query nested in another one is evaluated as of the same time.
    let same = "same content as (page text contains ground) as of 2002-01-01";
    assert_eq!(selected(&archive, same), BTreeSet::from(["http://h.test/p2".to_owned()]));

    // A hidden version does not count; the previous version does, as far as it may be shown.
    let rules = "[[rule]]\nprefix = \"test,h)/p1\"\nfrom = 2003-01-01\nto = 2003-12-31\n";
    std::fs::write(archive.path.join("access.toml"), rules).unwrap();
    assert_eq!(spans(&["quarterpast"], "2004-01-01"), one(1, "", "")[..0]);
    assert_eq!(spans(&["welcome"], "2004-01-01"), one(1, "2001", "2005"));
    std::fs::remove_file(archive.path.join("access.toml")).unwrap();

    assert!(words_of(&archive).contains("quarterpast"));
    archive.run("erase", &["url = \"http://h.test/p1\"", "--reason", "a test", "--yes"]).succeeded();
    assert!(!words_of(&archive).contains("quarterpast"));
    assert_eq!(spans(&["quarterpast"], "2004-01-01"), one(1, "", "")[..0]);
    assert_eq!(spans(&["ground"], "2004-01-01"), one(2, "2001", "2004"));
    archive.verify();
}

/// Returns the terms of the index of older versions, including those that only deleted versions have.
fn words_of(archive: &Archive) -> BTreeSet<String> {
    let index = tantivy::Index::open_in_dir(archive.path.join("state/versions")).unwrap();
    let body = index.schema().get_field("body").unwrap();
    let mut words = BTreeSet::new();
    for segment in index.reader().unwrap().searcher().segment_readers() {
        let index = segment.inverted_index(body).unwrap();
        let mut terms = index.terms().stream().unwrap();
        while terms.advance() {
            words.insert(String::from_utf8_lossy(terms.key()).into_owned());
        }
    }
    words
}
