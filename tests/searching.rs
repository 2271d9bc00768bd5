//! `archive search`, as people type: results, their order, and the message if there are none.

use archive_books::prepared;
use archive_storage::Store;
use serde_json::Value;

use crate::imports::import;
use crate::support::pages::PageServer;
use crate::support::program::{Finished, start};
use crate::support::warc::{answer, record, response};
use crate::support::{Archive, TestWeb};

/// Returns an archive of a small site: a page on opening hours at two addresses, one that links to them, one in French,
/// and a document without text.
fn library() -> Archive {
    let page = |title: &str, body: &str| {
        ("text/html", format!("<html lang=en><title>{title}</title>{body}</html>").into_bytes())
    };
    let hours = page("Library", "<h1>Opening hours</h1><p>The reading room is open on weekdays.");
    let start_page = page(
        "Start",
        "<p>Welcome to the library. <a href=/hours>Hours</a> <a href=/hours.html>Hours</a> \
         <a href=/plan.bin>Floor plan</a> <a href=/fr>français</a>",
    );
    let french = (
        "text/html",
        "<html lang=fr><title>Horaires</title><p>La salle de lecture est ouverte. \u{1b}[31m"
            .to_owned()
            .into_bytes(),
    );
    let pages = [
        ("/", start_page),
        ("/hours", hours.clone()),
        ("/hours.html", hours),
        ("/fr", french),
        ("/plan.bin", ("application/octet-stream", vec![0, 1, 2])),
    ];
    let server = PageServer::start(pages.into_iter().map(|(path, page)| (path.to_owned(), page)).collect());
    let archive = Archive::new();
    let seeds = ["http://h.test/ scope=host".to_owned()];
    start(&mut archive.crawl(&seeds, &server.options())).wait().succeeded();
    archive
}

fn search(archive: &Archive, arguments: &[&str]) -> Finished {
    start(archive.command("search").args(arguments)).wait()
}

fn found(archive: &Archive, arguments: &[&str]) -> Vec<Value> {
    search(archive, &[arguments, &["--json"]].concat()).succeeded().json()
}

fn urls(archive: &Archive, arguments: &[&str]) -> Vec<String> {
    found(archive, arguments).iter().map(|hit| hit["url"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_is_typed_is_found() {
    let archive = library();
    // Another form of a word, in the page's language; quoted words have none.
    assert_eq!(urls(&archive, &["weekday"]), urls(&archive, &["weekdays"]));
    assert_eq!(found(&archive, &["weekday"])[0]["all_words"], true);
    assert!(urls(&archive, &["\"weekday\""]).is_empty());
    let hits = found(&archive, &["opening", "hours"]);
    let first = &hits[0];
    // Equal pages are one result.
    let mut both = vec![first["url"].as_str().unwrap(), first["also"][0].as_str().unwrap()];
    both.sort_unstable();
    assert_eq!(both, ["http://h.test/hours", "http://h.test/hours.html"]);
    assert!(first["snippet"].as_str().unwrap().contains("Opening hours"), "{first}");
    assert_eq!((first["title"].as_str(), first["all_words"].as_bool()), (Some("Library"), Some(true)));
    for (typed, expected) in [
        (&["\"reading room\""][..], &["http://h.test/hours"][..]),
        (&["\"room reading\""], &[]),
        (&["welcome"], &["http://h.test/"]),
        (&["library", "-welcome", "site:h.test"], &["http://h.test/hours"]),
        (&["library", "site:other.test"], &[]),
        (&["lecture", "language:fr"], &["http://h.test/fr"]),
        (&["library", "language:fr"], &[]),
        (&["library", "before:2000"], &[]),
        (&["library", "type:pdf"], &[]),
        // Text that only a link has, for a document without text.
        (&["floor", "plan"], &["http://h.test/plan.bin"]),
        (&["welcome", "reading", "--all"], &[]),
    ] {
        let mut found = urls(&archive, typed);
        found.truncate(expected.len().max(1));
        let expected: Vec<&str> = expected.to_vec();
        let is_expected =
            found == expected || expected == ["http://h.test/hours"] && found == ["http://h.test/hours.html"];
        assert!(is_expected, "{typed:?}: {found:?}");
    }
    let partly = search(&archive, &["welcome", "reading"]).succeeded();
    assert!(partly.errors.contains("no page has all these words"), "{}", partly.errors);
    let facets = found_facets(&archive);
    assert_eq!(facets["language"][0][0], "en");
}

/// Small archives have no columns; others have none for the last checkpoint while a crawl writes.
#[test]
fn counts_are_the_same_without_columns() {
    let archive = library();
    let searches = [&[][..], &["language:fr"], &["-language:fr"], &["site:h.test"], &["type:pdf"]];
    let counted =
        || searches.map(|more| facets_of(&archive, &[&["library", "lecture", "plan"], more].concat()));
    let without = counted();
    assert!(!archive.path.join(prepared::FILE).exists());
    let store = Store::read_only(&archive.path).unwrap();
    prepared::write(store.state(), store.path()).unwrap();
    assert_eq!(counted(), without);
    assert_eq!(without[0]["site"], serde_json::json!([["h.test", 5]]));
    assert_ne!(without[0], without[1]);
}

fn found_facets(archive: &Archive) -> Value {
    facets_of(archive, &["library", "lecture"])
}

fn facets_of(archive: &Archive, typed: &[&str]) -> Value {
    let lines = found(archive, &[typed, &["--facets"]].concat());
    lines
        .into_iter()
        .filter(|line| line["facet"].is_string())
        .map(|line| (line["facet"].as_str().unwrap().to_owned(), line["counts"].clone()))
        .collect()
}

#[test]
fn what_is_not_found_is_explained() {
    let archive = library();
    let nothing = search(&archive, &["opeming"]).succeeded();
    assert!(
        nothing.errors.contains("no page says \"opeming\"; did you mean \"opening\"?"),
        "{}",
        nothing.errors
    );
    assert!(nothing.errors.contains("nothing was found"), "{}", nothing.errors);
    search(&archive, &["room", "type:page"]).refused(2, &["column 6", "there is no type `page`", "html"]);
    search(&archive, &["\"room"]).refused(2, &["column 1", "is not closed"]);
    search(&archive, &["room", "--limit", "0"]).refused(2, &["1 to 1000"]);
    let terminal = search(&archive, &["lecture"]).succeeded().text();
    assert!(!terminal.contains('\u{1b}'), "{terminal}");

    let served = TestWeb::start(crate::crawl::lively(7, 1, 10));
    let without = Archive::new();
    let mut options = served.at_once();
    options.push("--no-full-text".to_owned());
    start(&mut without.crawl(&served.web.seeds(served.web.sites()), &options)).wait().succeeded();
    search(&without, &["room"]).refused(1, &["no full-text index"]);
}

/// Returns records of a page by year, each captured on the first of March.
fn of_years(url: &str, years: &[(u32, &str)]) -> Vec<u8> {
    let captured = years.iter().map(|(year, said)| {
        let (id, date) = (format!("urn:{url}:{year}"), format!("{year}-03-01T12:00:00Z"));
        match *said {
            "gone" => answer(&id, url, &date, &[], "HTTP/1.1 404 Not Found\r\n\r\nopening hours"),
            "busy" => answer(&id, url, &date, &[], "HTTP/1.1 503 Busy\r\n\r\n"),
            said => response(&id, url, &date, &format!("<html><title>Library</title><p>{said}")),
        }
    });
    captured.flatten().collect()
}

/// Tools that store documents without a response write `resource` records.
#[test]
fn documents_without_an_answer_are_found() {
    let of = |url: &str, content_type: &str, block: &str| {
        let (id, uri) = (format!("WARC-Record-ID: <urn:of:{url}>"), format!("WARC-Target-URI: {url}"));
        let content_type = format!("Content-Type: {content_type}");
        let fields = ["WARC-Type: resource", &id, &uri, "WARC-Date: 2014-03-01T00:00:00Z", &content_type];
        record(&fields, block)
    };
    let page = of("http://h.test/a", "text/html", "<title>Atlas</title><p>Maps of the northern coast.");
    let list = of("http://h.test/b", "text/xml", "<list><item>lighthouse</item></list>");
    let archive = Archive::new();
    import(&archive, &[("a.warc", [page, list].concat())]);
    assert_eq!(urls(&archive, &["northern", "coast"]), ["http://h.test/a"]);
    assert_eq!(urls(&archive, &["lighthouse", "type:xml"]), ["http://h.test/b"]);
    for (question, url) in [
        ("page root = list select url", "http://h.test/b"),
        ("page //item contains \"lighthouse\" select url", "http://h.test/b"),
        ("capture kind = resource and root = list select url", "http://h.test/b"),
        ("page text contains \"northern\" and title = Atlas select url", "http://h.test/a"),
    ] {
        let rows = archive.json("query", &[question]);
        assert_eq!(
            rows.iter().map(|row| row["url"].as_str().unwrap()).collect::<Vec<_>>(),
            [url],
            "{question}"
        );
    }
}

#[test]
fn since_when_a_page_says_something() {
    let (hours, closed) = ("Opening hours: nine to five.", "Closed until further notice.");
    let first = of_years(
        "http://h.test/",
        &[
            (2001, "Welcome."),
            (2002, hours),
            (2003, "busy"),
            (2004, hours),
            (2005, "The OPENING, hours! changed."),
            (2006, closed),
            (2007, "gone"),
            (2008, hours),
        ],
    );
    let second = of_years("http://h.test/b", &[(2004, hours), (2009, "The hours of opening.")]);
    let archive = Archive::new();
    import(&archive, &[("a.warc", [first, second].concat())]);
    let said = |arguments: &[&str]| start(archive.command("said").args(arguments)).wait();
    // Returns the years of each period in which a page contained the text.
    let times = |arguments: &[&str]| -> Vec<(String, [u32; 4])> {
        let rows = said(&[arguments, &["--json"]].concat()).succeeded().json();
        let year = |time: &Value| time.as_str().map_or(0, |time| time[..4].parse().unwrap());
        let row = |row: &Value| {
            let years = ["not_yet", "since", "last", "gone"].map(|name| year(&row[name]));
            (row["url"].as_str().unwrap().to_owned(), years)
        };
        rows.iter().map(row).collect()
    };
    let a = |years| ("http://h.test/".to_owned(), years);
    let b = |years| ("http://h.test/b".to_owned(), years);
    // A server error says nothing; a page that is gone no longer contains anything.
    let spans = [a([2001, 2002, 2005, 2006]), a([2007, 2008, 2008, 0])];
    assert_eq!(times(&["opening hours", "http://h.test/"]), spans);
    assert_eq!(times(&["further not*", "http://h.test/"]), [a([2005, 2006, 2006, 2007])]);
    assert_eq!(times(&["library", "http://h.test/b"]), [b([0, 2004, 2009, 0])], "titles are read, too");
    assert_eq!(times(&["hours opening", "http://h.test/", "http://h.test/b"]), []);
    let all = "host = h.test order by url";
    assert_eq!(times(&["opening hours", all]), [&spans[..], &[b([0, 2004, 2004, 2009])]].concat());
    let at = |time: &str| times(&["opening hours", all, "--at", time]);
    assert_eq!(at("2004-06-01T00:00:00Z"), [spans[0].clone(), b([0, 2004, 2004, 2009])]);
    assert_eq!(at("2006-06-01T00:00:00Z"), [b([0, 2004, 2004, 2009])]);

    // Each version is read once: the hours of 2002, 2004 and 2008 are the same version.
    let table = said(&["opening hours", all]).succeeded();
    assert!(table.text().contains("2008-03-01") && table.errors.contains("of 2 pages"), "{}", table.errors);
    let nothing = said(&["closing hours", all]).succeeded();
    assert!(nothing.errors.contains("nothing was found"), "{}", nothing.errors);
    // Without time nothing is read, and that is reported.
    said(&["opening hours", all, "--for", "0s"]).refused(4, &["2 pages not read", "--for"]);
    said(&["…", all]).refused(2, &["no word in '…'"]);
    said(&["hours", "site ="]).refused(2, &["in the query"]);
    // Hidden versions are not read.
    std::fs::write(archive.path.join("access.toml"), "[[rule]]\nprefix = \"\"\nto = 2004-12-31\n").unwrap();
    assert_eq!(times(&["opening hours", "http://h.test/"]), [a([0, 2005, 2005, 2006]), spans[1].clone()]);
    assert_eq!(times(&["opening hours", "http://h.test/", "--as-archivist"]), spans);
}

#[test]
fn words_that_begin_with_a_dash_are_words() {
    let archive = Archive::new();
    let page = |number: u32, text: &str| {
        let url = format!("http://a.test/{number}");
        response(&format!("urn:test:{number}"), &url, "2026-01-03T10:00:00Z", &format!("<p>{text}"))
    };
    let pages = [
        page(1, "make --listfuncs prints the functions"),
        page(2, "gzip -d unpacks, gzip -k keeps"),
        page(3, "music in the library"),
        page(4, "maps in the library"),
    ];
    import(&archive, &[("a.warc", pages.concat())]);
    let url = |number: u32| format!("http://a.test/{number}");
    assert_eq!(urls(&archive, &["--listfuncs"]), [url(1)]);
    assert_eq!(urls(&archive, &["make", "--listfuncs"]), [url(1)]);
    let said = search(&archive, &["make", "--listfuncs"]).succeeded().errors;
    assert!(said.contains("--listfuncs is no option of `archive search`, and is searched for"), "{said}");
    // Without it nothing would be left.
    assert_eq!(urls(&archive, &["gzip", "-d"]), [url(2)]);
    assert_eq!(urls(&archive, &["gzip", "-d", "-k"]), [url(2)]);
    assert!(search(&archive, &["gzip", "-d"]).succeeded().errors.contains("so they are searched for, too"));
    // Something is left, and options are options.
    assert_eq!(urls(&archive, &["library", "-music"]), [url(4)]);
    assert_eq!(urls(&archive, &["library", "--limit=1", "--all"]).len(), 1);
    search(&archive, &["library", "--limit", "0"]).refused(2, &["--limit is a number"]);
    let served = crate::support::served::Served::of(&archive);
    let page = crate::support::served::ask(&served.application, "GET", "/search?q=gzip+-d", &[]);
    let page = String::from_utf8_lossy(&page.body).into_owned();
    assert!(
        page.contains("Nothing was found without the words after a dash") && page.contains("gzip"),
        "{page}"
    );
}

/// Words as they stand in sentences: with particles, in compounds, with articles, endings, signs above letters and in
/// other spellings. Each search finds its pages, best first.
#[test]
fn words_of_korean_and_arabic_are_found_in_sentences() {
    let pages = [
        ("ko1", "한국어를 가르치는 도서관에서 자료를 보관한다."),
        ("ko2", "국립중앙도서관은 웹아카이브를 만들었다. 책을 빌릴 수 있다."),
        ("ko3", "서울의 동서관계를 연구하는 비행기 박물관"),
        ("ar1", "المكتبة الوطنية للمملكة تحفظ صفحات الويب"),
        ("ar2", "زرتُ مَكْتَبَةً صغيرة وبالمكتبات الأخرى كُتُبٌ"),
        ("ar3", "حديقة الحيوان في المدينة"),
        ("fa", "کتابخانهٔ ملی در تهران"),
        ("he", "הספרייה הלאומית שָׁלוֹם"),
    ];
    let file: Vec<u8> = pages
        .iter()
        .flat_map(|(page, text)| {
            let language = page.trim_end_matches(char::is_numeric);
            let body = format!("<html lang={language}><title>{page}</title><p>{text}");
            response(
                &format!("urn:x:{page}"),
                &format!("http://l.test/{page}"),
                "2024-01-01T00:00:00Z",
                &body,
            )
        })
        .collect();
    let archive = Archive::new();
    import(&archive, &[("l.warc", file)]);
    for (typed, expected) in [
        // Half of the pairs of syllables are there by accident.
        (&["도서관"][..], &["ko1", "ko2", "ko3"][..]),
        (&["도서관", "--all"], &["ko1", "ko2"]),
        (&["보관"], &["ko1"]),
        (&["아카이브"], &["ko2"]),
        (&["책"], &["ko2"]),
        (&["\"도서관에서 자료\""], &["ko1"]),
        (&["자료 도서관", "--all"], &["ko1"]),
        (&["비행기"], &["ko3"]),
        (&["مكتبة"], &["ar1", "ar2"]),
        (&["المكتبة"], &["ar1", "ar2"]),
        (&["مكتبات"], &["ar2", "ar1"]),
        (&["\"مكتبة وطنية\""], &["ar1"]),
        (&["صفحة"], &["ar1"]),
        (&["حيوان"], &["ar3"]),
        (&["كتابخانه ملي"], &["fa"]),
        (&["שלום"], &["he"]),
    ] {
        let expected: Vec<_> = expected.iter().map(|page| format!("http://l.test/{page}")).collect();
        assert_eq!(urls(&archive, typed), expected, "{typed:?}");
    }
    let contains = |text: &str| {
        let query = format!("page text contains \"{text}\"");
        start(archive.command("query").args([&query, "--json"])).wait().succeeded().json().len()
    };
    let counts = ["도서관", "도서관 자료", "مكتبة", "المكتبة الوطنية", "كتاب"].map(contains);
    assert_eq!(counts, [2, 0, 2, 1, 0]);
}
