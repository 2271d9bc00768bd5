//! Erased content disappears from the archive's folder completely, and everything else stays unchanged.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use archive_storage::segment::{self, SegmentReader};
use archive_storage::{CaptureKind, Digest, Store};
use archive_testweb::Config;
use serde_json::Value;

use crate::copies;
use crate::support::prepared::prepared;
use crate::support::program::start;
use crate::support::warc::{member, record, response};
use crate::support::{Archive, Dice, TestWeb, judges, kills, ledger_balances};

/// Number of kills of an erase, unless `ARCHIVE_KILLS` overrides it.
const KILLS: u64 = 4;

/// Number of pages besides the erased one, and of captures of each.
const PAGES: usize = 120;
const ROUNDS: usize = 4;

const SECRET: &str = "http://secret.example/dossier-of-zanzibar";
const MIRROR: &str = "http://mirror.example/copy";
/// Words that only the secret page has, in its text and in its title.
const WORD: &str = "quokkamanifest";
const TITLE: &str = "Wombatledger";

/// Returns the secret page of a round.
fn secret(round: usize) -> String {
    let lines: String =
        (0..200).map(|line| format!("<p>{WORD} number {line} of round {round}</p>\n")).collect();
    let (template, notice) = (template(), notice());
    format!("<html><head><title>{TITLE} {round}</title></head><body>{template}{notice}{lines}</body></html>")
}

/// Returns text that the secret page shares with pages of another site, but with none of its own site.
fn notice() -> String {
    (0..60).map(|line| format!("<p>clause {line} of the licence</p>\n")).collect()
}

/// Returns text that all pages share.
fn template() -> String {
    (0..60).map(|item| format!("<a href=\"http://site.example/{item}\">menu entry {item}</a>\n")).collect()
}

fn date(round: usize) -> String {
    format!("2020-0{}-01T00:00:00Z", round + 1)
}

/// Returns the file of a round: every page with some new content, the secret page, and in the second round revisits of
/// another page that depend on the secret one.
fn file(archive: &Archive, round: usize) -> PathBuf {
    let mut bytes = Vec::new();
    for number in 0..PAGES {
        let url = format!("http://site.example/{number}");
        let text: String = (0..40).map(|line| format!("<p>page {number} line {line}</p>")).collect();
        let body = format!(
            "<html><head><title>page {number}</title></head><body>{}{text}<p>round {round}</p></body></html>",
            template()
        );
        bytes.extend(member(&response(&format!("urn:page:{number}:{round}"), &url, &date(round), &body)));
        if number == PAGES / 2 {
            bytes.extend(member(&response(
                &format!("urn:secret:{round}"),
                SECRET,
                &date(round),
                &secret(round),
            )));
        }
    }
    if round == 1 {
        bytes.extend(member(&revisit(1, "identical-payload-digest", "2020-02-02T00:00:00Z")));
        bytes.extend(member(&revisit(2, "identical-payload-digest", "2020-02-03T00:00:00Z")));
        bytes.extend(member(&revisit(3, "server-not-modified", "2020-02-04T00:00:00Z")));
    }
    archive.file(&format!("round-{round}.warc.gz"), bytes)
}

/// Returns a revisit of the mirror that refers to the secret page's content of the second round.
fn revisit(number: usize, profile: &str, date: &str) -> Vec<u8> {
    let stated = [
        format!("WARC-Profile: http://netpreserve.org/warc/1.1/revisit/{profile}"),
        format!("WARC-Record-ID: <urn:mirror:{number}>"),
        format!("WARC-Target-URI: {MIRROR}"),
        format!("WARC-Date: {date}"),
        format!("WARC-Payload-Digest: {}", Digest::sha1(secret(1).as_bytes())),
        format!("WARC-Refers-To-Target-URI: {SECRET}"),
        "WARC-Refers-To-Date: 2020-02-01T00:00:00Z".to_owned(),
    ];
    let mut fields = vec!["WARC-Type: revisit", "Content-Type: application/http; msgtype=response"];
    fields.extend(stated.iter().map(String::as_str));
    let status = if profile.starts_with("server") { "304 Not Modified" } else { "200 OK" };
    record(&fields, format!("HTTP/1.1 {status}\r\nContent-Type: text/html\r\n\r\n"))
}

/// Imports as a crawl would store, with dictionaries of earlier versions.
fn import(archive: &Archive, codec: &str, file: &Path) {
    start(archive.command("import").args(["--no-repack", "--codec", codec]).arg(file)).wait().succeeded();
}

/// Returns an archive of all rounds, with at least one segment each.
fn imported(codec: &str) -> Archive {
    prepared(&format!("rounds-{codec}"), || {
        let archive = Archive::new();
        for round in 0..ROUNDS {
            import(&archive, codec, &file(&archive, round));
        }
        archive
    })
}

/// Returns all files of a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

/// Returns everything in the folder of an archive, by place: raw bytes, records and dictionaries of segments, frames of
/// logs, terms of the full-text index.
fn streams(archive: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for path in files(archive) {
        let name = path.strip_prefix(archive).unwrap().display().to_string();
        let bytes = fs::read(&path).unwrap();
        if name.ends_with(".zst") && name.starts_with("state") && !bytes.is_empty() {
            found.push((format!("{name}, unpacked"), zstd::stream::decode_all(&bytes[..]).unwrap()));
        }
        found.push((name, bytes));
    }
    let reader = SegmentReader::new(std::sync::Arc::new(archive_storage::backend::RealDisk), archive);
    for (id, file) in segment::files(archive).unwrap() {
        if let Some(dictionary) = reader.dictionary_bytes(id).unwrap() {
            found.push((format!("dictionary of {file}"), dictionary));
        }
        for record in segment::records(archive, id, &file, 0).unwrap() {
            let record = record.unwrap();
            let head: Vec<u8> = format!("{:?}", record.header).into_bytes();
            found.push((format!("head in {file}"), head));
            found.push((format!("content in {file}"), record.content.to_vec()));
        }
    }
    found.push(("words of the index".to_owned(), words(&archive.join("state/fulltext"))));
    found
}

/// Returns the terms of a full-text index, including those that only deleted documents have.
fn words(folder: &Path) -> Vec<u8> {
    if !folder.is_dir() {
        return Vec::new();
    }
    let index = tantivy::Index::open_in_dir(folder).unwrap();
    let mut words = Vec::new();
    for segment in index.reader().unwrap().searcher().segment_readers() {
        for (field, entry) in index.schema().fields() {
            if matches!(entry.field_type(), tantivy::schema::FieldType::Str(_)) {
                let inverted = segment.inverted_index(field).unwrap();
                let mut terms = inverted.terms().stream().unwrap();
                while terms.advance() {
                    words.extend_from_slice(terms.key());
                    words.push(b'\n');
                }
            }
        }
    }
    words
}

/// Returns the places where a text occurs, ignoring ASCII case.
fn places(archive: &Path, needle: &str) -> Vec<String> {
    let needle = needle.to_ascii_lowercase();
    let holds = |bytes: &[u8]| memchr::memmem::find(&bytes.to_ascii_lowercase(), needle.as_bytes()).is_some();
    streams(archive).into_iter().filter(|(_, bytes)| holds(bytes)).map(|(place, _)| place).collect()
}

/// Time, kind, digest, status and length of a capture.
type Listed = (i64, CaptureKind, [u8; 16], u16, u32);

/// Returns every capture except those of some URLs, as the archive lists it.
fn others(archive: &Path, without: &[&str]) -> BTreeMap<String, Vec<Listed>> {
    let store = Store::read_only(archive).unwrap();
    let mut found: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for capture in store.state().captures() {
        let (_, capture) = capture.unwrap();
        let url = store.state().url(capture.url).unwrap();
        if !without.contains(&url.as_str()) {
            let listed = (capture.time, capture.kind, capture.digest, capture.status, capture.length);
            found.entry(url).or_default().push(listed);
            if capture.kind.has_payload() {
                assert!(store.payload(&capture).unwrap().is_some());
            }
        }
    }
    found
}

fn erase(archive: &Archive, more: &[&str]) -> Value {
    let query = format!("url = \"{SECRET}\"");
    let arguments = [&[query.as_str(), "--reason", "asked by the author", "--yes"], more].concat();
    archive.json("erase", &arguments).remove(0)
}

#[test]
fn copies_hold_what_is_erased_until_they_are_made_again() {
    let archive = imported("zstd");
    let (folder, url) = copies::place(&archive);
    copies::copied(&archive, &url, &[]);
    // Data that a killed copy left in the archive's folder is erased, too.
    let held = archive.path.join("snapshot/files");
    fs::create_dir_all(&held).unwrap();
    fs::write(held.join("7"), WORD).unwrap();
    let query = format!("url = \"{SECRET}\"");
    let done = archive.run("erase", &[&query, "--reason", "asked by the author", "--yes"]).succeeded();
    assert!(done.errors.contains(&format!("`archive copy --to {url} --keep 1`")), "{}", done.errors);
    assert_eq!(places(&archive.path, WORD), Vec::<String>::new());
    assert!(!places(&copies::restored(&url, &[]).path, WORD).is_empty(), "the copy made before");

    copies::copied(&archive, &url, &["--keep", "1"]);
    let (findings, named) = copies::verified(&archive, &url);
    assert_eq!(findings, Vec::<Value>::new());
    assert_eq!(
        files(&folder.join("objects")).len() as u64,
        named,
        "nothing is there but what the new copy names"
    );
    let twin = copies::restored(&url, &[]);
    for needle in [WORD, TITLE] {
        assert_eq!(places(&twin.path, needle), Vec::<String>::new());
    }
    assert_eq!(others(&twin.path, &[SECRET, MIRROR]), others(&archive.path, &[SECRET, MIRROR]));
    // While an erase is unfinished, nothing is copied.
    fs::write(archive.path.join("erase.json"), "{}").unwrap();
    start(&mut copies::copy(&archive, &url, &[])).wait().refused(1, &["`archive erase --resume`"]);
}

#[test]
fn what_is_erased_is_nowhere_in_the_folder_of_zstd() {
    what_is_erased_is_nowhere("zstd");
}

#[test]
fn what_is_erased_is_nowhere_in_the_folder_of_gzip() {
    what_is_erased_is_nowhere("gzip");
}

fn what_is_erased_is_nowhere(codec: &str) {
    let archive = imported(codec);
    for needle in [WORD, TITLE] {
        let before = places(&archive.path, needle);
        assert!(before.iter().any(|place| place.starts_with("content")), "{before:?}");
        assert!(before.iter().any(|place| place == "words of the index"), "{before:?}");
        if codec == "zstd" && needle == WORD {
            assert!(before.iter().any(|place| place.starts_with("dictionary")), "{before:?}");
        }
    }
    let before = others(&archive.path, &[SECRET, MIRROR]);
    let out = archive.folder().join("all.warc.gz");
    start(archive.command("export").arg("warc").arg("--output").arg(&out)).wait().succeeded();
    let query = format!("url = \"{SECRET}\"");
    let counted = archive.json("erase", &[query.as_str(), "--dry-run"]).remove(0);
    assert_eq!(
        (&counted["dry_run"], &counted["captures"]),
        (&true.into(), &(ROUNDS + 3).into()),
        "{counted}"
    );
    assert!(!places(&archive.path, WORD).is_empty(), "a trial changes nothing");

    let done = erase(&archive, &[]);
    assert_eq!((&done["captures"], &done["copies"]), (&(ROUNDS + 3).into(), &3.into()), "{done}");
    assert_eq!(done["exports"][0]["format"], "warc", "{done}");
    assert_eq!(places(&archive.path, WORD), [""; 0]);
    assert_eq!(places(&archive.path, TITLE), [""; 0]);
    assert_eq!(others(&archive.path, &[SECRET, MIRROR]), before);
    assert_eq!(archive.verify(), (ROUNDS * (PAGES + 1) + 3) as u64);
    ledger_balances(&archive.path);
    tombstones_are_shown(&archive);
    if let Some(judges) = judges::find() {
        let read = judges.check(&archive.segments());
        assert_eq!(read.captures(), (ROUNDS * PAGES) as u64);
        assert!(!read.targets.contains_key(SECRET) && !read.targets.contains_key(MIRROR));
    }
    start(&mut archive.command("rebuild")).wait().succeeded();
    assert_eq!(others(&archive.path, &[SECRET, MIRROR]), before);
    assert_eq!(places(&archive.path, WORD), [""; 0]);
    archive.verify();
    tombstones_are_shown(&archive);
}

#[test]
fn segments_that_share_what_is_not_its_own_stay_as_they_are() {
    let archive = Archive::new();
    for round in 0..2 {
        let mut bytes = Vec::new();
        for number in 0..PAGES {
            let (id, url) = (format!("urn:other:{number}:{round}"), format!("http://other.example/{number}"));
            let body = format!("<html><body>{}<p>other {number} {round}</p></body></html>", notice());
            bytes.extend(member(&response(&id, &url, &date(round), &body)));
        }
        import(&archive, "zstd", &archive.file("others.warc.gz", bytes));
    }
    let held = places(&archive.path, "of the licence");
    assert!(held.iter().any(|place| place.starts_with("dictionary")), "{held:?}");
    let untouched = files(&archive.segments()).into_iter();
    let untouched: Vec<_> =
        untouched.filter(|path| path.extension().is_some_and(|end| end == "zst")).collect();
    for round in 0..ROUNDS {
        import(&archive, "zstd", &file(&archive, round));
    }
    erase(&archive, &[]);
    assert!(untouched.iter().all(|path| path.exists()));
    assert_eq!(places(&archive.path, WORD), [""; 0]);
    archive.verify();
}

/// Fails unless the archive shows tombstones of an erased page.
fn tombstones_are_shown(archive: &Archive) {
    let history = archive.json("history", &[SECRET]);
    assert_eq!(history.len(), ROUNDS);
    for row in &history {
        assert!(row["erased"].as_str().unwrap().ends_with("asked by the author"), "{row}");
        assert_eq!((&row["bytes"], &row["status"]), (&0.into(), &0.into()), "{row}");
    }
    let why = archive.json("why", &[SECRET]).remove(0);
    assert_eq!(why["refusal"], "erased", "{why}");
    assert_eq!(why["next_visit"], serde_json::Value::Null, "{why}");
    assert!(why["verdict"].as_str().unwrap().starts_with("was erased on 20"), "{why}");
    archive.run("get", &[SECRET]).refused(1, &["was erased on"]);
    assert!(archive.json("query", &[&format!("page text contains \"{WORD}\"")]).is_empty());
    assert!(archive.json("query", &["captures > 0 and host = \"secret.example\""]).is_empty());
}

#[test]
fn a_url_that_is_forgotten_is_nowhere_either() {
    let archive = imported("zstd");
    assert!(!places(&archive.path, SECRET).is_empty());
    erase(&archive, &["--forget-url"]);
    for needle in [SECRET, WORD, TITLE, "dossier-of-zanzibar"] {
        assert_eq!(places(&archive.path, needle), [""; 0], "{needle}");
    }
    archive.verify();
    let listed = archive.json("erase", &["--list"]).remove(0);
    let name = format!("urn:sha256:{}", listed["sha256"].as_str().unwrap());
    assert_eq!(archive.json("history", &[&name]).len(), ROUNDS);
    start(&mut archive.command("rebuild")).wait().succeeded();
    assert_eq!(places(&archive.path, SECRET), [""; 0]);
    assert_eq!(archive.json("history", &[&name]).len(), ROUNDS);
    // Erased content that returns is recognised by its digest.
    let again = start(archive.command("import").arg("--json").arg(file(&archive, 0))).wait().succeeded();
    assert_eq!(again.json().pop().unwrap()["erased"], 1);
    archive.run("erase", &["--lift", &name]).succeeded();
    assert!(archive.json("erase", &["--list"]).is_empty());
}

#[test]
fn copies_that_are_kept_have_the_content_themselves_in_zstd() {
    copies_that_are_kept("zstd");
}

#[test]
fn copies_that_are_kept_have_the_content_themselves_in_gzip() {
    copies_that_are_kept("gzip");
}

fn copies_that_are_kept(codec: &str) {
    let archive = imported(codec);
    let before = archive.run("get", &[MIRROR]).succeeded().output;
    let done = erase(&archive, &["--keep-copies"]);
    assert_eq!((&done["kept"], &done["captures"]), (&3.into(), &ROUNDS.into()), "{done}");
    assert_eq!(archive.run("get", &[MIRROR]).succeeded().output, before);
    archive.run("get", &[SECRET]).refused(1, &["was erased on"]);
    let kinds = |archive: &Archive| -> Vec<Value> {
        archive.json("history", &[MIRROR]).iter().map(|row| row["kind"].clone()).collect()
    };
    let kept = kinds(&archive);
    assert_eq!(kept.len(), 3);
    assert_eq!(kept[2], "response", "{kept:?}");
    archive.verify();
    if let Some(judges) = judges::find() {
        assert_eq!(judges.check(&archive.segments()).targets[MIRROR], 3);
    }
    start(&mut archive.command("rebuild")).wait().succeeded();
    assert_eq!(kinds(&archive), kept);
    assert_eq!(archive.run("get", &[MIRROR]).succeeded().output, before);
    let other = format!("round {}", 2);
    assert!(places(&archive.path, &format!("of {other}</p>")).is_empty(), "another version went");
}

#[test]
fn what_was_erased_does_not_come_back_until_that_is_lifted() {
    let served = TestWeb::start(Config::plain(93, 1, 15));
    let archive = Archive::new();
    let home = served.web.seeds(1).remove(0);
    let seeds = [format!("{home} scope=host")];
    start(&mut archive.crawl(&seeds, &served.at_once())).wait().succeeded();
    let pages = archive.json("query", &["page type = html and captures > 0 select url"]);
    let page =
        pages.iter().filter_map(|page| page["url"].as_str()).find(|url| *url != home).unwrap().to_owned();
    let list = archive.file("list.txt", format!("# what goes\n\n{page}\n"));
    let list = list.to_str().unwrap();
    archive.run("erase", &["--urls", list, "--reason", "a test", "--yes"]).succeeded();
    let captures = || archive.json("history", &[&page]).len();
    assert_eq!(captures(), 1);
    let again = [format!("{home} scope=host"), page.clone()];
    start(&mut archive.crawl(&again, &served.at_once())).wait().succeeded();
    start(archive.command("refresh").args(served.at_once()).args(["--budget", "100"])).wait().succeeded();
    assert_eq!(captures(), 1, "neither a crawl nor a refresh fetches it");
    assert_eq!(archive.json("why", &[&page])[0]["refusal"], "erased");
    archive.run("erase", &["--lift", &page]).succeeded();
    start(&mut archive.crawl(&again, &served.at_once())).wait().succeeded();
    assert_eq!(captures(), 2, "after it is lifted");
    assert_eq!(archive.json("why", &[&page])[0]["last_fetch"]["status"], 200);
    archive.verify();
    ledger_balances(&archive.path);
}

/// A web of two sites; the first one's only page is a seed, in a language and with a link to a media type that nothing
/// else has.
fn serve_secrets() -> std::net::SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = vec![0; 4096];
            let count = stream.read(&mut head).unwrap_or_default();
            let head = String::from_utf8_lossy(&head[..count]).into_owned();
            let is_secret = head.to_lowercase().contains("host: s.test");
            let (status, kind, body) = match head.split(' ').nth(1).unwrap_or_default() {
                "/robots.txt" => ("404 Not Found", "text/plain", ""),
                "/mkmime" => ("200 OK", "application/x-mkmime", "x"),
                _ if is_secret => {
                    ("200 OK", "text/html", "<html lang=mkl><title>x</title><a href=/mkmime>m</a>")
                }
                _ => ("200 OK", "text/html", "<html lang=en><title>x</title>x"),
            };
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
            );
            let _ = stream.write_all((head + body).as_bytes());
        }
    });
    address
}

/// Crawls the web of secrets and erases the site of the seed.
fn erased_seed(scope: &str, more: &[&str]) -> (Archive, Value) {
    let archive = Archive::new();
    let seeds = [format!("http://s.test/mkseed{scope}"), "http://t.test/".to_owned()];
    let connection = format!("::{}", serve_secrets());
    let options = ["--delay", "0", "--disk-min", "0", "--connect-to", &connection];
    start(&mut archive.crawl(&seeds, &options)).wait().succeeded();
    fs::write(archive.path.join("access.toml"), "[[rule]]\nprefix = \"test,s)/mkseed\"\n").unwrap();
    let whole = [&["host = \"s.test\"", "--forget-url", "--reason", "r", "--yes"], more].concat();
    let done = archive.json("erase", &whole).remove(0);
    (archive, done)
}

#[test]
fn nothing_of_a_forgotten_seed_is_left_and_what_people_wrote_is_named() {
    for scope in ["", " scope=site", " scope=regex:^http://s\\.test/mkseed"] {
        let (archive, done) = erased_seed(scope, &[]);
        assert_eq!(done["left"], serde_json::json!(["access.toml"]));
        fs::remove_file(archive.path.join("access.toml")).unwrap();
        for needle in ["mkseed", "mkmime", "mkl\n"] {
            assert_eq!(places(&archive.path, needle), [""; 0], "{needle}, {scope}");
        }
        fs::write(archive.path.join("access.toml"), "").unwrap();
        archive.verify();
        start(&mut archive.command("rebuild")).wait().succeeded();
        archive.verify();
        for needle in ["mkseed", "mkmime"] {
            assert_eq!(places(&archive.path, needle), [""; 0], "{needle}, {scope}, rebuilt");
        }
    }
}

#[test]
fn a_report_forgets_a_page_and_a_watch_that_names_it_is_named() {
    let archive = Archive::new();
    let connection = format!("::{}", serve_secrets());
    let options = ["--delay", "0", "--disk-min", "0", "--connect-to", &connection];
    let crawl = |seed: &str| {
        start(&mut archive.crawl(&[seed.to_owned()], &options)).wait().succeeded();
    };
    crawl("http://t.test/");
    archive.run("watch", &["page", "--name", "all"]).succeeded();
    archive.run("watch", &["page url = \"http://s.test/mkseed\"", "--name", "one"]).succeeded();
    crawl("http://s.test/mkseed");
    archive.run("watch report", &[&["all", "--now"], &options[..]].concat()).succeeded();
    let reported = |place: &String| place.starts_with("watches/all");
    assert!(places(&archive.path, "mkseed").iter().any(reported));

    let whole = ["host = \"s.test\"", "--forget-url", "--reason", "r", "--yes"];
    let done = archive.json("erase", &whole).remove(0);
    assert_eq!((&done["reports"], &done["left"]), (&1.into(), &serde_json::json!(["watches/one.json"])));
    assert_eq!(places(&archive.path, "mkseed"), ["watches/one.json"]);
    archive.verify();
}

#[test]
fn a_lost_list_of_what_was_erased_is_missed_and_made_again() {
    let body = "<title>BACK</title>";
    let back = response("urn:back", "http://s.test/mkseed", "2031-01-01T00:00:00Z", body);
    let (archive, _) = erased_seed("", &[]);
    let list = archive.path.join("erased.jsonl");
    let whole = fs::read(&list).unwrap();
    let file = archive.file("back.warc.gz", member(&back));
    let lines = whole.split_inclusive(|byte| *byte == b'\n').collect::<Vec<_>>();
    let damages: [(&str, Option<Vec<u8>>); 5] = [
        ("missing", None),
        ("empty", Some(Vec::new())),
        ("without its checksum", Some(lines[..lines.len() - 1].concat())),
        ("without a line", Some(lines[1..].concat())),
        ("with a wrong bit", Some([&whole[..30], &[whole[30] ^ 1], &whole[31..]].concat())),
    ];
    for (what, damaged) in damages {
        match damaged {
            None => fs::remove_file(&list).unwrap(),
            Some(bytes) => fs::write(&list, bytes).unwrap(),
        }
        let said = archive.run::<&str>("verify", &[]);
        assert_eq!(said.code, Some(1), "{what}: {}", said.text());
        assert!(said.text().contains("erased.jsonl"), "{what}: {}", said.text());
        archive.run("import", &[&file]).refused(1, &["erased.jsonl"]);
        archive.run("erase", &["--lift", "http://s.test/mkseed"]).refused(1, &["erased.jsonl"]);
        let repaired = archive.run::<&str>("repair", &[]).succeeded();
        assert!(repaired.text().contains("erased.jsonl"), "{what}: {}", repaired.text());
        archive.verify();
        let again = start(archive.command("import").arg("--json").arg(&file)).wait().succeeded();
        assert_eq!(again.json().pop().unwrap()["erased"], 1, "{what}");
        let listed = archive.json("erase", &["--list"]);
        assert!(
            listed.iter().any(|entry| entry["reason"] == "r" && entry.get("url").is_none()),
            "{listed:?}"
        );
    }
    // A segment that a repair imports again needs the list, too.
    fs::remove_file(&list).unwrap();
    fs::remove_dir_all(archive.path.join("state")).unwrap();
    let repaired = archive.run::<&str>("repair", &[]);
    assert!(repaired.text().contains("LOST: state: the crawl's scope"), "{}", repaired.text());
    archive.verify();
    assert!(list.exists());
}

#[test]
fn files_that_only_people_can_bring_back_are_missed() {
    let (archive, _) = erased_seed("", &[]);
    let out = archive.folder().join("out.warc.gz");
    archive.run("export", &["warc", "--output", out.to_str().unwrap()]).succeeded();
    archive.run("watch", &["page", "--name", "all", "--every", "1h"]).succeeded();
    archive.run("import", &["/dev/null"]);
    archive.verify();
    let says = |words: &[&str]| {
        let said = archive.run::<&str>("verify", &[]);
        assert_eq!(said.code, Some(1), "{}", said.text());
        words.iter().for_each(|word| assert!(said.text().contains(word), "{word}: {}", said.text()));
    };
    for name in ["access.toml", "exports.jsonl"] {
        let (place, aside) = (archive.path.join(name), archive.folder().join(name));
        fs::rename(&place, &aside).unwrap();
        says(&[name, "put back a copy of it"]);
        let repaired = archive.run::<&str>("repair", &[]);
        assert_eq!(repaired.code, Some(1));
        assert!(repaired.text().contains(&format!("LOST: {name}")), "{}", repaired.text());
        fs::rename(&aside, &place).unwrap();
        archive.verify();
    }
    fs::write(archive.path.join("exports.jsonl"), "").unwrap();
    archive.verify();
    archive.run("export", &["warc", "--output", out.to_str().unwrap()]).succeeded();
    // Rules are for people: they may change them and take them all back, but not by mistake.
    let rules = archive.path.join("access.toml");
    fs::write(&rules, "[[rule]]\nprefx = \"\"\n").unwrap();
    says(&["access.toml, line 2"]);
    fs::write(&rules, "# none\n").unwrap();
    archive.verify();
    for (name, from, to) in [
        ("exports.jsonl", "warc", "wacz"),
        ("watches/all.json", "3600", "3700"),
        ("watches/all.json", "xxh3", "xxh2"),
    ] {
        let path = archive.path.join(name);
        let good = fs::read_to_string(&path).unwrap();
        assert!(good.contains(from), "{good}");
        fs::write(&path, good.replacen(from, to, 1)).unwrap();
        says(&[name]);
        fs::write(&path, good).unwrap();
        archive.verify();
    }
    // Whoever writes a watch by hand leaves the checksum out.
    let watch = archive.path.join("watches/all.json");
    let mut fields: Value = serde_json::from_slice(&fs::read(&watch).unwrap()).unwrap();
    fields.as_object_mut().unwrap().remove("xxh3").unwrap();
    fields["every_seconds"] = 7200.into();
    fs::write(&watch, fields.to_string()).unwrap();
    archive.verify();
}

#[test]
fn mistakes_change_nothing() {
    let archive = imported("zstd");
    // A program that tries to own an archive writes its name into the lock file.
    let state = || {
        streams(&archive.path)
            .into_iter()
            .filter(|(place, _)| place != "archive.lock")
            .map(|(place, bytes)| (place, Digest::sha256(&bytes).to_string()))
    };
    let before: BTreeSet<(String, String)> = state().collect();
    let query = format!("url = \"{SECRET}\"");
    archive.run("erase", &[query.as_str(), "--yes"]).refused(2, &["--reason"]);
    archive.run("erase", &[query.as_str(), "--reason", "  ", "--yes"]).refused(2, &["--reason"]);
    let long = "x".repeat(1001);
    archive.run("erase", &[query.as_str(), "--reason", &long, "--yes"]).refused(2, &["longer than 1000"]);
    archive.run("erase", &[query.as_str(), "--reason", "a\u{1b}b", "--yes"]).refused(2, &["control"]);
    archive.run("erase", &[query.as_str(), "--reason", "why"]).refused(2, &["--yes"]);
    archive
        .run("erase", &["url = \"http://none.example/\"", "--reason", "why", "--yes"])
        .refused(1, &["no page matches"]);
    archive.run("erase", &["url = ", "--reason", "why", "--yes"]).refused(2, &["in the query"]);
    for (text, words) in [
        (format!("{SECRET}\nhttp://none.example/\n"), ["line 2", "is not in"]),
        (format!("{SECRET}\n\nhttp://[\n"), ["line 3", "is not a URL"]),
    ] {
        let list = archive.file("list.txt", text);
        archive
            .run("erase", &["--urls", list.to_str().unwrap(), "--reason", "why", "--yes"])
            .refused(2, &words);
    }
    archive.run("erase", &["--lift", SECRET]).refused(2, &["is not on the list"]);
    archive
        .run("erase", &["--urls", "/nowhere/list.txt", "--reason", "why", "--yes"])
        .refused(1, &["list.txt"]);
    let now: BTreeSet<(String, String)> = state().collect();
    let differ: Vec<_> = now.symmetric_difference(&before).collect();
    assert!(differ.is_empty(), "{differ:?}");
}

#[test]
fn an_erase_killed_again_and_again_is_finished_by_the_next_command_that_writes() {
    let mut dice = Dice::new("kill erase");
    let sound = imported("zstd");
    let without = [SECRET, MIRROR];
    let before = others(&sound.path, &without);
    let calm = sound.copy();
    let query = format!("url = \"{SECRET}\"");
    let arguments = [query.as_str(), "--reason", "asked by the author", "--yes"];
    let elapsed = start(calm.command("erase").args(arguments)).wait().succeeded().elapsed;
    let (mut reported, mut begun) = (0, 0);
    for number in 1..=kills(KILLS) {
        let archive = sound.copy();
        let keep = number % 3 == 0;
        let mut command = archive.command("erase");
        command.args(arguments).args(keep.then_some("--keep-copies"));
        let running = start(&mut command);
        thread::sleep(Duration::from_micros(dice.below(elapsed.as_micros() as u64)));
        running.kill();
        let is_begun = archive.path.join("erase.json").exists();
        begun += u64::from(is_begun);
        let read = archive.run("query", &["page captures > 0 limit 1"]).succeeded();
        reported += u64::from(read.errors.contains("is not finished"));
        assert_eq!(read.errors.contains("is not finished"), is_begun, "{}", read.errors);
        if is_begun && number % 2 == 0 {
            // Kill it while it resumes, too.
            let running = start(archive.command("erase").arg("--resume"));
            thread::sleep(Duration::from_micros(dice.below(elapsed.as_micros() as u64)));
            running.kill();
        }
        match number % 4 {
            0 => archive.run("erase", &["--resume"]),
            1 => start(archive.command("import").arg(file(&archive, 0))).wait(),
            2 => start(&mut archive.command("rebuild")).wait(),
            _ => start(&mut archive.command("repair")).wait(),
        }
        .succeeded();
        assert!(!archive.path.join("erase.json").exists(), "kill {number}");
        if !is_begun {
            let more: &[&str] = if keep { &["--keep-copies"] } else { &[] };
            // It may have been killed after its end.
            if !places(&archive.path, TITLE).is_empty() && archive.json("erase", &["--list"]).is_empty() {
                erase(&archive, more);
            }
        }
        if keep {
            assert_eq!(archive.json("history", &[MIRROR]).len(), 3, "kill {number}");
            archive.run("get", &[MIRROR]).succeeded();
        } else {
            assert_eq!(places(&archive.path, WORD), [""; 0], "kill {number}");
            assert_eq!(places(&archive.path, TITLE), [""; 0], "kill {number}");
        }
        assert_eq!(others(&archive.path, &without), before, "kill {number}");
        assert_eq!(archive.verify(), (ROUNDS * (PAGES + 1) + 3) as u64, "kill {number}");
        ledger_balances(&archive.path);
        println!("kill {number}: {}", if is_begun { "begun" } else { "before it or after it" });
    }
    println!("{begun} of {} were interrupted, {reported} reported", kills(KILLS));
}
