//! Pages in languages other than English: each text has its translation and vice versa, and links keep the language.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

use crate::crawl::lively;
use crate::imports::import;
use crate::people::{addresses, versions};
use crate::support::program::start;
use crate::support::served::{Answer, Served, ask};
use crate::support::{Archive, TestWeb};

/// Words that are the same in all languages.
const NAMES: [&str; 6] = ["archive", "JSON", "CSV", "WARC", "TimeMap", "daily"];

fn french() -> BTreeMap<String, String> {
    let table = concat!(env!("CARGO_MANIFEST_DIR"), "/src/base/texts/fr.toml");
    toml::from_str(&fs::read_to_string(table).unwrap()).unwrap()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            sources(&entry, found);
        } else if entry.extension().is_some_and(|ending| ending == "rs") {
            found.push(entry);
        }
    }
}

#[test]
fn every_text_in_the_code_is_translated_and_no_translation_is_left_over() {
    let (table, mut files) = (french(), Vec::new());
    sources(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")), &mut files);
    let said = Regex::new(r#"\.(?:say|fill|markup)\(\s*"((?:[^"\\]|\\.)*)""#).unwrap();
    let counted = Regex::new(r#"\.(?:counted|plural)\([^"]*"([^"]*)",\s*"([^"]*)""#).unwrap();
    let (mut code, mut asked) = (String::new(), BTreeSet::new());
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        let text = text.split("#[cfg(test)]").next().unwrap();
        let all = |pattern: &Regex| -> BTreeSet<String> {
            let found = pattern.captures_iter(text);
            found
                .flat_map(|found| {
                    found.iter().skip(1).flatten().map(|text| text.as_str().to_owned()).collect::<Vec<_>>()
                })
                .collect()
        };
        asked.extend(all(&said));
        asked.extend(all(&counted));
        code += text;
    }
    assert!(asked.len() > 200, "the code is not read right: {asked:?}");
    let missing: Vec<&String> = asked.iter().filter(|text| !table.contains_key(*text)).collect();
    assert!(missing.is_empty(), "fr.toml has none of {missing:#?}");
    let unused: Vec<&String> = table.keys().filter(|text| !code.contains(&format!("\"{text}\""))).collect();
    assert!(unused.is_empty(), "nothing says {unused:#?}");
}

/// Returns an archive whose own content is Greek, with a run that skipped URLs.
fn greek() -> (TestWeb, Archive) {
    let web = TestWeb::start(lively(316, 4, 200));
    let archive = Archive::new();
    let options = [web.at_once(), ["--limit", "40", "--pages-per-host", "5"].map(String::from).to_vec()];
    start(&mut archive.crawl(&web.web.seeds(4), &options.concat())).wait().succeeded();
    import(&archive, &[("versions.warc", versions())]);
    for (by, rating, verdict) in [("Άννα", "4", "keep"), ("Βάσω", "1", "investigate")] {
        let said = ["versions.test", "--rating", rating, "--verdict", verdict, "--tag", "@Άννα", "--by", by];
        archive.run("review set", &said).succeeded();
    }
    (web, archive)
}

fn get(address: &str, path: &str, language: &str) -> Answer {
    ask(address, "GET", path, &[&format!("Accept-Language: {language}")])
}

fn body(answer: &Answer) -> &str {
    std::str::from_utf8(&answer.body).unwrap()
}

/// Returns the texts of a page, except those marked as English and those that are not natural language.
fn texts(page: &str) -> BTreeSet<String> {
    let mut page = page.to_owned();
    for tag in ["script", "style", "code", "time", "kbd", "textarea"] {
        page =
            Regex::new(&format!("(?s)<{tag}[^>]*>.*?</{tag}>")).unwrap().replace_all(&page, " ").into_owned();
    }
    for tag in ["p", "pre", "span", "a"] {
        let english = format!("(?s)<{tag}[^>]* (?:lang=\"(?:en|fr)\"|translate=\"no\")[^>]*>.*?</{tag}>");
        let english = Regex::new(&english).unwrap();
        page = english.replace_all(&page, " ").into_owned();
    }
    let attributes =
        Regex::new(r#" (?:title|aria-label|placeholder|data-silent|data-apart)="([^"]*)""#).unwrap();
    let nodes = Regex::new("<[^>]*>").unwrap();
    let attributes: Vec<String> = attributes.captures_iter(&page).map(|found| found[1].to_owned()).collect();
    let nodes: Vec<String> = nodes.split(&page).map(str::to_owned).collect();
    let is_language = |text: &String| {
        let is_name = !text.contains(' ') && text.contains(['.', '/', '@', '=']);
        let is_span =
            text.split(|c: char| !c.is_alphabetic()).all(|word| matches!(word, "" | "s" | "min" | "h"));
        text.chars().any(|c| c.is_ascii_alphabetic())
            && !is_name
            && !is_span
            && !NAMES.contains(&text.as_str())
    };
    [attributes, nodes]
        .concat()
        .iter()
        .map(|text| text.trim_end_matches("– archive").trim().to_owned())
        .filter(is_language)
        .collect()
}

/// Returns texts that are the same on the French page as on the English one, although their translation differs.
fn untranslated(english: &Answer, french: &Answer, table: &BTreeMap<String, String>) -> Vec<String> {
    let alike = |text: &String| {
        let words = text.replace(|c: char| c.is_ascii_digit(), "");
        table
            .iter()
            .any(|(english, french)| english == french && english.replace("{}", "").trim() == words.trim())
    };
    // Answers to queries are data.
    let rows = Regex::new("(?s)<th[^>]*><code>.*?</tbody>").unwrap();
    let both = [english, french].map(|answer| texts(&rows.replace_all(body(answer), " ")));
    both[0].intersection(&both[1]).filter(|text| !alike(text)).cloned().collect()
}

#[test]
fn all_pages_speak_french() {
    let (_web, archive) = greek();
    let (table, mut left) = (french(), Vec::new());
    let served = Served::with(&archive, &["--review", "--by", "Άννα"]);
    let application = addresses(&archive).into_iter().map(|path| (&served.application, path));
    let replay = [
        "/",
        "/nothing",
        "/web/2026/http://none.test/",
        "/web/2026/http://versions.test/none",
        "/timemap/x/y",
        "/warc/99999",
    ];
    let replay = replay.map(|path| (&served.replay, path.to_owned()));
    for (address, path) in application.chain(replay) {
        let (english, french) = (get(address, &path, "en"), get(address, &path, "fr-FR, en;q=0.5"));
        assert_eq!(english.status, french.status, "{path}: {}", body(&french));
        assert!(
            body(&english).contains("<html lang=\"en\">") && body(&french).contains("<html lang=\"fr\">"),
            "{path}"
        );
        left.extend(
            untranslated(&english, &french, &table).into_iter().map(|text| format!("{path}: {text}")),
        );
        assert!(
            french.fields.iter().any(|(name, value)| name == "vary" && value.contains("Accept-Language")),
            "{path}"
        );
    }
    assert_eq!(left, Vec::<String>::new());
    // Refusals that precede pages, and data, which is not translated.
    let refused = ask(&served.application, "PUT", "/", &["Accept-Language: fr"]);
    assert!(body(&refused).contains("Seules les méthodes GET et HEAD"), "{}", body(&refused));
    for path in [
        "/?lang=fr",
        "/site?name=versions.test&lang=fr",
        "/review?lang=fr&show=mine",
        "/page?url=none.test&lang=fr",
    ] {
        let data = |language: &str| {
            let fields = [format!("Accept-Language: {language}"), "Accept: application/json".to_owned()];
            ask(&served.application, "GET", path, &fields.each_ref().map(String::as_str)).body
        };
        assert_eq!(data("fr"), data("en"), "{path}");
    }
}

#[test]
fn a_language_that_was_chosen_is_kept() {
    let (_web, archive) = greek();
    let served = Served::with(&archive, &["--review", "--by", "Άννα"]);
    let forms = Regex::new("<form[^>]*>(.{60})").unwrap();
    let links = Regex::new(r#" href="(/[^"]*)""#).unwrap();
    let mut seen = 0;
    for path in addresses(&archive) {
        let chosen = format!("{path}{}lang=fr", if path.contains('?') { '&' } else { '?' });
        let page = get(&served.application, &chosen, "en");
        assert!(body(&page).contains("<html lang=\"fr\">"), "{chosen}");
        for link in links.captures_iter(body(&page)).map(|found| found[1].to_owned()) {
            let is_other = link.contains("lang=en");
            assert!(link == "/style.css" || is_other || link.contains("lang=fr"), "{chosen}: {link}");
            seen += 1;
        }
        for form in forms.captures_iter(body(&page)) {
            assert!(
                form[1].starts_with("<input type=\"hidden\" name=\"lang\" value=\"fr\">"),
                "{chosen}: {}",
                &form[0]
            );
        }
        // If nobody chose a language, no address contains it.
        let plain = get(&served.application, &path, "fr");
        let kept = links.captures_iter(body(&plain)).filter(|found| found[1].contains("lang=fr")).count();
        assert_eq!(kept, 0, "{path}");
    }
    assert!(seen > 200, "{seen}");
    for wrong in ["/?lang=xx", "/?lang=", "/?lang=%3Cscript%3E"] {
        assert!(body(&get(&served.application, wrong, "fr")).contains("<html lang=\"fr\">"), "{wrong}");
    }
    // A decision returns to the page it was sent from, and its JSON answer is in the language of that page.
    let own = format!("Origin: http://{}", served.application);
    let send = |accept: &str, body: &str| {
        let length = format!("Content-Length: {}", body.len());
        ask(&served.application, "POST", "/review/decide", &[&length, &own, accept, "", body])
    };
    let sent = "site=versions.test&verdict=keep&seen=99&back=site&lang=fr";
    assert!(send("Accept: text/html", sent).get("location").unwrap().contains("lang=fr"));
    assert!(body(&send("Accept: application/json", sent)).contains("conserver"));
    assert!(body(&send("Accept: application/json", &sent.replace("lang=fr", ""))).contains("keep"));
}

#[test]
fn archived_pages_have_a_banner_in_the_language_of_their_reader() {
    let (_web, archive) = greek();
    let served = Served::of(&archive);
    let path = "/web/20260103030321/http://versions.test/";
    let (english, french) = (get(&served.replay, path, "en"), get(&served.replay, path, "fr"));
    assert!(body(&english).contains("Archived 2026-01-03 03:03:21 UTC"), "{}", body(&english));
    assert!(body(&french).contains("Page archiv&#233;e le 03/01/2026 03:03:21 UTC"), "{}", body(&french));
    for answer in [english, french] {
        assert!(body(&answer).contains("Δύο εκδόσεις"));
    }
}
