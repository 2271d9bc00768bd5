//! Copies of texts and quotations from them are found, among pages about the same things and templates of sites.

use std::collections::{BTreeMap, BTreeSet};

use crate::imports::import;
use crate::support::warc::answer;
use crate::support::{Archive, Dice};

/// Articles of a wire, each of [`WORDS`] words.
const ARTICLES: u64 = 24;
const WORDS: usize = 300;
/// Other pages that say nothing of theirs.
const OTHERS: u64 = 300;
/// What is written in copies, and how much of an article it is: words in a hundred that are others, or words quoted.
const EDITS: [u64; 5] = [0, 5, 10, 20, 30];
const QUOTED: [usize; 4] = [100, 60, 40, 25];

/// A word of a vocabulary of 3000; low numbers are frequent, as in texts.
fn word(dice: &mut Dice) -> String {
    let most = 1 + dice.below(3000);
    let number = 1 + dice.below(most);
    let number = 1 + dice.below(number);
    format!("wo{}", radix(number))
}

fn radix(mut number: u64) -> String {
    let mut text = String::new();
    while number > 0 {
        text.push(char::from(b'a' + (number % 26) as u8));
        number /= 26;
    }
    text
}

fn words(dice: &mut Dice, count: usize) -> Vec<String> {
    (0..count).map(|_| word(dice)).collect()
}

fn edited(dice: &mut Dice, article: &[String], percent: u64) -> Vec<String> {
    article.iter().map(|own| if dice.below(100) < percent { word(dice) } else { own.clone() }).collect()
}

/// A page of a site, with the site's template around its text.
fn page(site: &str, number: u64, text: &[String]) -> Vec<u8> {
    let url = format!("http://{site}.test/{number}");
    let id = format!("urn:test:{site}-{number}");
    let menu =
        format!("news of {site} contact imprint about this site of {site} and its makers all rights kept");
    let body = format!("<title>{site} {number}</title><p>{menu}<p>{}<p>{menu}", text.join(" "));
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
    answer(&id, &url, "2026-01-10T10:00:00Z", &[], &format!("{head}{body}"))
}

#[test]
fn copies_and_quotations_are_found() {
    let mut dice = Dice::of(9);
    let articles: Vec<Vec<String>> = (0..ARTICLES).map(|_| words(&mut dice, WORDS)).collect();
    let mut file: Vec<u8> = Vec::new();
    // By kind of copy: the article and where the copy stands.
    let mut copies: BTreeMap<String, Vec<(usize, String)>> = BTreeMap::new();
    for (number, article) in articles.iter().enumerate() {
        let at = number as u64;
        file.extend(page("wire", at, article));
        for percent in EDITS {
            let site = format!("copy{percent}");
            file.extend(page(&site, at, &edited(&mut dice, article, percent)));
            copies
                .entry(format!("{percent} % others"))
                .or_default()
                .push((number, format!("http://{site}.test/{at}")));
        }
        for length in QUOTED {
            let (site, from) = (format!("quote{length}"), dice.below((WORDS - length) as u64) as usize);
            let quoted = &article[from..from + length];
            let text = [words(&mut dice, 200), quoted.to_vec(), words(&mut dice, 200)].concat();
            file.extend(page(&site, at, &text));
            copies
                .entry(format!("{length} words"))
                .or_default()
                .push((number, format!("http://{site}.test/{at}")));
        }
    }
    for number in 0..OTHERS {
        let text = words(&mut dice, WORDS);
        file.extend(page(&format!("other{}", number % 10), number, &text));
    }
    let archive = Archive::new();
    import(&archive, &[("web.warc", file)]);

    let planted: BTreeSet<(usize, String)> = copies.values().flatten().cloned().collect();
    let mut found: BTreeSet<(usize, String)> = BTreeSet::new();
    for number in 0..articles.len() {
        let rows = archive.json("query", &[format!("page near \"http://wire.test/{number}\" select url")]);
        found.extend(rows.iter().map(|row| (number, row["url"].as_str().unwrap().to_owned())));
    }
    let recall = |kind: &str| {
        let all = &copies[kind];
        all.iter().filter(|copy| found.contains(copy)).count() as f64 / all.len() as f64
    };
    let table: Vec<(&String, f64)> = copies.keys().map(|kind| (kind, recall(kind))).collect();
    let right = found.intersection(&planted).count();
    println!("recall {table:?}; {right} of {} found are copies", found.len());
    for (kind, least) in [
        ("0 % others", 1.0),
        ("5 % others", 1.0),
        ("10 % others", 1.0),
        ("20 % others", 1.0),
        ("30 % others", 0.75),
        ("100 words", 1.0),
        ("60 words", 1.0),
        ("40 words", 0.7),
    ] {
        assert!(recall(kind) >= least, "{kind}: {table:?}");
    }
    assert!(right as f64 >= 0.98 * found.len() as f64, "{right} of {}", found.len());

    let shares = archive.json("query", &["page near \"wire.test/0\" order by shared(\"http://wire.test/0\") select url, shared(\"wire.test/0\") as share"]);
    let share = |site: &str| {
        let row = shares.iter().find(|row| row["url"] == format!("http://{site}.test/0")).unwrap();
        row["share"].as_f64().unwrap()
    };
    // The words of the template are no part of the copy.
    assert!(share("copy0") > 0.85 && share("copy0") < 1.0, "{shares:?}");
    // Of the template, rows of five words are the same on all sites.
    assert!((share("quote100") - 100.0 / 332.0).abs() < 0.1, "{shares:?}");
    assert!(share("copy10") > share("copy20") && share("copy20") > share("quote60"), "{shares:?}");
    // A query inside, and the copy's own view of the wire.
    let both = archive
        .json("query", &["count pages near (page url in (\"http://wire.test/0\", \"http://wire.test/1\"))"]);
    assert!(both[0]["count"].as_u64().unwrap() >= 16, "{both:?}");
    let wire =
        archive.json("query", &["page near \"http://copy5.test/3\" and site = \"wire.test\" select url"]);
    assert_eq!(wire.len(), 1);
    assert_eq!(wire[0]["url"], "http://wire.test/3");
}

#[test]
fn what_cannot_be_compared_is_said() {
    let archive = Archive::new();
    let file = page("only", 1, &words(&mut Dice::of(1), 50));
    import(&archive, &[("web.warc", file)]);
    for (query, said) in [
        ("page near \"no url\"", "is not a URL"),
        ("site near \"http://only.test/1\"", "works for pages and captures only"),
        ("site shared(\"http://only.test/1\") > 0.5", "only pages, captures and versions have texts"),
        ("page shared(3) > 0.5", "put the URL of the other page in quotes"),
    ] {
        archive.run("query", &[query]).refused(2, &[said]);
    }
    // Neither is an error: an unknown page, and a page without copies.
    assert!(archive.json("query", &["page near \"http://unknown.test/\""]).is_empty());
    assert!(archive.json("query", &["page near \"http://only.test/1\""]).is_empty());
    assert_eq!(archive.json("query", &["page shared(\"http://unknown.test/\") is empty"]).len(), 1);
    assert_eq!(archive.json("query", &["version shared(\"http://only.test/1\") = 1"]).len(), 1);
}
