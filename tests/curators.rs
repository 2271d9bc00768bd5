//! The questions of `docs/questions.md`, asked of a small web that was looked at four times. What it answers was worked out by
//! hand from the pages below, and stands in `curators/answers.txt`.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::Ordering;

use archive_ask::query::{Question, fields};
use archive_base::access::Access;
use archive_storage::Store;
use chrono::Utc;

use crate::questions::{Answer, Pages, StagedWeb, answer, html};
use crate::support::Archive;
use crate::support::program::start;
use crate::support::served::{Served, ask};

const TIMES: [&str; 4] =
    ["2024-01-15T12:00:00Z", "2024-01-18T12:00:00Z", "2024-02-15T12:00:00Z", "2024-05-15T12:00:00Z"];
const QUESTIONS: &str = include_str!("../docs/questions.md");
const ANSWERS: &str = include_str!("curators/answers.txt");
const MUSEUM: &str = "www.museum.example";
const UNIVERSITY: &str = "www.uni.test";

const ENGLISH: &str = "The museum has collected things from all over the town for a hundred years, and it shows them to \
                       everybody who comes by. There are spoons, clocks, maps and bells, and nobody knows what \
                       some of them were made for. ";
const GERMAN: &str = "Das Museum sammelt seit hundert Jahren Dinge aus der ganzen Stadt und zeigt sie allen, die \
                      vorbeikommen. Es gibt Löffel, Uhren, Karten und Glocken, und von manchen weiß niemand, wozu \
                      sie gemacht wurden. ";

fn file(content_type: &str, body: impl Into<Vec<u8>>) -> Answer {
    answer("200 OK", &format!("Content-Type: {content_type}\r\nServer: nginx\r\n"), body)
}

/// The first bytes of a PNG file, which say how wide and high it is.
fn png(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    bytes.extend(width.to_be_bytes());
    bytes.extend(height.to_be_bytes());
    bytes.extend(b"\x08\x02\0\0\0");
    bytes
}

/// The web at the time with this number.
fn pages(time: usize) -> Pages {
    let museum = |title: &str, body: &str| html("nginx", "en", title, body);
    let start = museum(
        "The museum",
        "<meta name=description content='Things from all over the town'><meta name=keywords content='things, town'>\
         <meta name=author content='Ada Muster'><link rel=license href=https://creativecommons.org/licenses/by/4.0/>\
         <p>Welcome. <a href=/visit>Visit</a> <a href=/visit-us>Visit us</a> <a href=/gallery>Gallery</a> \
         <a href=/story>Story</a> <a href=/notice>Notice</a> <a href=/old>Old</a> <a href=/gone>Gone</a> \
         <a href=/missing>Missing</a> <a href=/private/x>Private</a> <a href=/paper.pdf>Paper</a> \
         <a href=/photo.jpg>Photo</a> <a href=/feed.xml>Feed</a> <a href=/books.xml>Books</a> <a href=/fr>fr</a> \
         <a href=/deutsch>de</a> <a href=http://www.uni.test/>University</a>",
    );
    let visit = format!("<p>Open on weekdays. Write to desk@museum.example or come by. {ENGLISH}");
    let visit = museum(if time < 2 { "Visit" } else { "" }, &visit);
    let picture = |number: usize| format!("<img src=/logo.png alt='Picture {number}'>");
    let pictures: String = if time < 2 { (1..12).map(picture).collect() } else { String::new() };
    let notice = match time {
        0 | 1 => "The museum is closed until further notice.",
        2 => "The museum is open again.",
        _ => "The museum is closed until further notice, once more.",
    };
    let story = if time < 3 { ENGLISH.repeat(3) } else { "Told.".to_owned() };
    let gone = match time {
        0 | 1 => museum("Soon gone", "<p>This page will not stay for long."),
        _ => answer("404 Not Found", "Content-Type: text/plain\r\n", "gone"),
    };
    // The server names another charset than the one of the bytes, and the page another language.
    let mut french = html("nginx", "fr", "Café", &format!("<p>The café of the museum. {ENGLISH}"));
    french.head = "Server: nginx\r\nContent-Type: text/html; charset=iso-8859-1\r\n".to_owned();
    let books = "<?xml version='1.0'?><books><book><author>Eco</author><title>The Name of the Rose</title></book>\
                 <book><author>Calvino</author><title>Invisible Cities</title></book></books>";
    let mut books = file("application/xml", books);
    books.head.push_str("ETag: \"books\"\r\n");
    let feed = "<?xml version='1.0'?><rss version='2.0'><channel><title>News</title><link>http://www.museum.example/</link>\
                <description>News of the museum</description><language>en-gb</language></channel></rss>";
    let university = html(
        "Apache",
        "en",
        "University",
        &format!(
            "<p>Lists: <a href='/list?id=42'>one</a> <a href='/list?id=7'>two</a> <a href=/papers.zip>papers</a> \
             <a rel=nofollow href=http://www.museum.example/>Museum</a> \
             <a href=http://www.museum.example/visit>visit</a>. {}",
            ENGLISH.replace("museum", "university")
        ),
    );
    let list = |what: &str| {
        let mut list = html("Apache", "en", what, &format!("<p>A list of {what}."));
        list.body = String::from_utf8(list.body).unwrap().replace("<html lang=en>", "<html>").into_bytes();
        list
    };
    let robots = file("text/plain", "User-agent: *\nDisallow: /private/\n");
    HashMap::from([
        ((MUSEUM, "/robots.txt"), robots),
        ((MUSEUM, "/"), start),
        ((MUSEUM, "/visit"), visit.clone()),
        ((MUSEUM, "/visit-us"), visit),
        ((MUSEUM, "/gallery"), museum("Gallery", &format!("<p>Pictures: {pictures}<img src=/logo.png>"))),
        ((MUSEUM, "/story"), museum("Story", &format!("<p>{story}"))),
        ((MUSEUM, "/notice"), museum("Notice", &format!("<p>{notice}"))),
        ((MUSEUM, "/old"), answer("301 Moved Permanently", "Location: /visit\r\n", "")),
        ((MUSEUM, "/gone"), gone),
        ((MUSEUM, "/logo.png"), file("image/png", png(32, 16))),
        ((MUSEUM, "/photo.jpg"), file("image/jpeg", png(640, 480))),
        (
            (MUSEUM, "/paper.pdf"),
            file("application/pdf", [b"%PDF-1.4\n".to_vec(), vec![b'x'; 2991]].concat()),
        ),
        ((MUSEUM, "/feed.xml"), file("application/rss+xml", feed)),
        ((MUSEUM, "/books.xml"), books),
        ((MUSEUM, "/fr"), french),
        ((MUSEUM, "/deutsch"), html("nginx", "de", "Deutsch", &format!("<p>{}", GERMAN.repeat(2)))),
        ((UNIVERSITY, "/"), university),
        ((UNIVERSITY, "/list?id=42"), list("spoons")),
        ((UNIVERSITY, "/list?id=7"), list("clocks")),
        (
            (UNIVERSITY, "/papers.zip"),
            answer(
                "200 OK",
                "Server: Apache\r\nContent-Type: application/octet-stream\r\n",
                b"PK\x03\x04 papers",
            ),
        ),
    ])
}

/// Returns an archive that has looked at the web at each time, and the archive that it was after so many times.
fn archives(times: usize) -> (Archive, Archive) {
    let web = StagedWeb::start((0..TIMES.len()).map(pages).collect());
    let archive = Archive::new();
    let connect = format!("::{}", web.address);
    // One seed never answers, and is not waited for.
    let options = ["--delay", "0", "--patience", "2s", "--connect-to", connect.as_str()];
    let seeds =
        ["http://www.museum.example/ scope=site", "http://www.uni.test/ scope=host", "http://gone.test/"];
    let mut crawl = archive.crawl(&seeds.map(str::to_owned), &options);
    start(crawl.args(["--clock", TIMES[0], "--index-versions"])).wait().refused(4, &["gone.test"]);
    let mut then = None;
    for (stage, time) in TIMES.iter().enumerate().skip(1) {
        if stage == times {
            then = Some(archive.copy());
        }
        web.stage.store(stage, Ordering::Relaxed);
        let mut refresh = archive.command("refresh");
        start(refresh.args(options).args(["--budget", "1000", "--clock", time])).wait().succeeded();
    }
    let then = then.unwrap();
    for archive in [&archive, &then] {
        let decided =
            ["museum.example", "--rating", "4", "--verdict", "keep", "--tag", "maps", "--by", "anna"];
        archive.run("review set", &decided).succeeded();
    }
    (archive, then)
}

/// The questions of a text, each with its query.
fn questions() -> Vec<(&'static str, &'static str)> {
    let lines: Vec<&str> = QUESTIONS.lines().collect();
    let pairs = lines.windows(2).filter_map(|pair| Some((pair[0].strip_prefix("- ")?, pair[1].trim())));
    pairs.map(|(question, query)| (question, query.trim_matches('`'))).collect()
}

/// The expected rows of each question.
fn answers() -> HashMap<&'static str, Vec<&'static str>> {
    let mut answers: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut question = "";
    for line in ANSWERS.lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix("- ") {
            Some(next) => {
                question = next;
                assert!(answers.insert(question, Vec::new()).is_none(), "{question} stands there twice");
            }
            None => answers.get_mut(question).unwrap().push(line.trim_start_matches("  ")),
        }
    }
    answers
}

#[test]
fn documented_questions_have_right_answers() {
    let ((archive, _), questions, mut answers) = (archives(1), questions(), answers());
    assert!(questions.len() >= 80, "{}", questions.len());
    let mut wrong = Vec::new();
    for (question, query) in questions {
        let finished = archive.run("query", &["--csv", query]);
        let answer = finished.text();
        let rows: Vec<&str> = answer.lines().skip(1).collect();
        let expected = answers.remove(question).unwrap_or_default();
        if finished.code != Some(0) || rows != expected {
            let rows = rows.join("\n  ");
            wrong.push(format!("- {question}\n  {rows}\n{}\nexpected {expected:?}", finished.errors));
        }
    }
    assert!(answers.is_empty(), "these are no questions: {:?}", answers.keys());
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// A ready question of the query page becomes the query that is shown, with its answer.
#[test]
fn ready_questions_are_asked_on_the_query_page() {
    let (archive, _) = archives(1);
    let served = Served::of(&archive);
    let get = |path: &str| {
        let answer = ask(&served.application, "GET", path, &["Accept-Language: en"]);
        (answer.status, String::from_utf8(answer.body).unwrap())
    };
    let (status, form) = get("/query");
    assert!(status == 200 && form.contains("Which links are broken?"), "{form}");
    let questions = form.matches("<option").count();
    assert!(questions >= 30, "{questions}");
    for place in 0..questions {
        let (status, page) =
            get(&format!("/query?ready={place}&site=museum.example&words=further+notice&date=2024-02-01"));
        assert!(status == 200 && page.contains("museum.example"), "{place}: {page}");
    }
    let (_, gone) = get("/query?ready=1&site=&date=2024-02-01");
    assert!(gone.contains("page died since 2024-02-01 order by") && gone.contains("Soon gone"), "{gone}");
    let (status, page) = get("/query?ready=1&site=&date=");
    assert!(status == 400 && page.contains("This question needs a date."), "{page}");
}

/// The rows of an answer, or what is wrong with the query.
fn asked(store: &Store, text: &str) -> Result<BTreeSet<String>, String> {
    let access = Access::read(store.path()).unwrap();
    let question = Question::new(store, access, text, Utc::now()).map_err(|error| error.to_string())?;
    let answer = question.answer().map_err(|error| error.to_string())?;
    Ok(answer.rows.iter().map(|row| format!("{row:?}")).collect())
}

/// Each field is either as of the time that is asked for, as in the archive that there was then, or refused in a sentence that
/// says how to get today's value.
#[test]
fn every_field_is_as_of_a_time_or_refused() {
    let archives = archives(2);
    let (archive, then) =
        (Store::read_only(&archives.0.path).unwrap(), Store::read_only(&archives.1.path).unwrap());
    let fields = |wanted: &str| {
        let (_, fields) = fields().find(|(rows, _)| *rows == wanted).unwrap();
        fields.into_iter().map(|field| field.name).collect::<Vec<_>>()
    };
    let reached =
        |via: &str, rows: &str| fields(rows).into_iter().map(|name| format!("{via}.{name}")).collect();
    let functions =
        ["first_said(\"further notice\")", "header(\"server\")", "//book/title", "label(host, 2)"];
    let (mut refused, mut wrong) = (Vec::new(), Vec::new());
    for (rows, names) in [
        ("page attempts > 0", fields("pages")),
        ("page attempts > 0", reached("site", "sites")),
        ("page attempts > 0", reached("host", "hosts")),
        ("page attempts > 0", functions.map(str::to_owned).to_vec()),
        ("capture", fields("captures")),
        ("capture", reached("page", "pages")),
        ("site pages > 0", fields("sites")),
    ] {
        assert!(names.len() > 3, "{names:?}");
        // A score needs a search of words, and where a record lies changes when segments are written anew.
        for name in names.into_iter().filter(|name| !name.ends_with("score") && !name.ends_with("stored")) {
            let key = if rows.starts_with("site") { "site" } else { "url" };
            let text = |name: &str, as_of: &str| format!("{rows} select {key}, {name} as x {as_of}");
            let as_of = "as of 2024-01-31";
            match asked(&archive, &text(&name, as_of)) {
                Ok(got) => {
                    let expected = asked(&then, &text(&name, "")).unwrap();
                    let differing: Vec<_> = got.symmetric_difference(&expected).collect();
                    if !differing.is_empty() {
                        wrong.push(format!("{rows} {name}: {differing:#?}"));
                    }
                }
                Err(refusal) => {
                    assert!(refusal.contains("is not known as of another time"), "{name}: {refusal}");
                    let today = format!("{}_today", name.replace([' ', '-'], "_"));
                    assert!(refusal.contains(&today), "{name}: {refusal}");
                    asked(&archive, &text(&today, as_of)).unwrap();
                    refused.push(name);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for name in
        ["importance", "depth", "via", "rating", "refusal", "site.importance", "host.failures", "page.parts"]
    {
        assert!(refused.iter().any(|refused| refused == name), "{name} is not refused: {refused:?}");
    }
    for rows in ["host", "link", "page links to \"http://www.uni.test/\"", "page topic(x) > 0.5"] {
        assert!(asked(&archive, &format!("{rows} as of 2024-01-31")).is_err(), "{rows}");
    }
}
