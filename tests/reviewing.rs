//! How much of an archive's damage a reviewer finds with `archive review next`, compared with other orders.

use std::collections::{BTreeMap, HashMap};
use std::env;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use archive_testweb::{Clock, Config, SiteIndex};
use chrono::TimeDelta;

use crate::support::answers::{self, Answers};
use crate::support::program::start;
use crate::support::{Archive, Dice, TestWeb};

/// What goes wrong with a site, and the reason that must point to it.
const TROUBLES: [(Trouble, &str); 9] = [
    (Trouble::SoftErrors, "soft-errors"),
    (Trouble::Stubs, "shrunk"),
    (Trouble::Down, "failing"),
    (Trouble::Gone, "gone"),
    (Trouble::Login, "wall"),
    (Trouble::Moved, "moved"),
    (Trouble::Closed, "closed"),
    (Trouble::Parked, "parked"),
    (Trouble::Bare, "incomplete"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Trouble {
    SoftErrors,
    Stubs,
    Down,
    Gone,
    Login,
    Moved,
    Closed,
    Parked,
    Bare,
}

impl Trouble {
    /// Returns the answer of a site in this trouble; `None` if it is the usual one.
    fn answer(self, path: &str) -> Option<Vec<u8>> {
        let is_requisite = ["/static/", "/img/", "/favicon"].iter().any(|folder| path.starts_with(folder));
        let error = |status, words: &str| Some(answers::whole(status, "", words.as_bytes()));
        if path == "/robots.txt" && self != Self::Closed {
            return None;
        }
        match self {
            Self::Closed if path == "/robots.txt" => Some(answers::plain("User-agent: *\nDisallow: /\n")),
            Self::Bare if is_requisite => error(404, "no such file"),
            Self::Closed | Self::Bare => None,
            Self::Down => error(503, "in trouble"),
            Self::Gone => error(404, "no such page"),
            Self::Login if path == "/login" => {
                Some(answers::html("<title>Sign in</title><p>Who are you?</p>"))
            }
            Self::Login => Some(answers::redirect("/login")),
            _ if is_requisite => None,
            Self::Moved => Some(answers::redirect(&format!("http://elsewhere.test{path}"))),
            Self::SoftErrors => {
                Some(answers::html("<title>Oops</title><h1>Sorry</h1><p>There is nothing here any more.</p>"))
            }
            Self::Stubs => {
                Some(answers::html(&format!("<title>{path}</title><p>Of {path} this is left.</p>")))
            }
            Self::Parked => {
                Some(answers::html("<title>This domain is for sale</title><p>Buy this domain today.</p>"))
            }
        }
    }
}

/// Returns the test web's answer.
fn relay(web: SocketAddr, host: &str, path: &str) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(web)?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(answer)
}

fn site_of(host: &str) -> &str {
    let dots: Vec<usize> = host.match_indices('.').map(|(place, _)| place).collect();
    dots.len().checked_sub(2).and_then(|place| dots.get(place)).map_or(host, |dot| &host[dot + 1..])
}

/// Sites of an archive with the values used by the orders.
struct Sites(Vec<(String, f64, String)>);

impl Sites {
    fn of(archive: &Archive) -> Self {
        let rows =
            archive.json("query", &["site captures > 0 select site, importance_sum, last_seen limit 100000"]);
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let row = |row: &serde_json::Value| {
            (text(&row["site"]), row["importance_sum"].as_f64().unwrap(), text(&row["last_seen"]))
        };
        Self(rows.iter().map(row).collect())
    }

    fn names(
        &self,
        compare: impl Fn(&(String, f64, String), &(String, f64, String)) -> std::cmp::Ordering,
    ) -> Vec<String> {
        let mut sites: Vec<_> = self.0.iter().collect();
        sites.sort_by(|a, b| compare(a, b));
        sites.into_iter().map(|site| site.0.clone()).collect()
    }
}

/// Returns the number of rows read until four fifths of the damage are found, and how many of them were useless.
fn effort(order: &[String], damage: &HashMap<String, f64>) -> (usize, usize) {
    let wanted = 0.8 * damage.values().sum::<f64>();
    let (mut found, mut wrong) = (0.0, 0);
    for (row, site) in order.iter().enumerate() {
        match damage.get(site) {
            Some(weight) => found += weight,
            None => wrong += 1,
        }
        if found >= wanted {
            return (row + 1, wrong);
        }
    }
    (usize::MAX, wrong)
}

#[test]
fn what_went_wrong_is_found_in_few_rows() {
    let pages: u64 = env::var("ARCHIVE_REVIEW_PAGES").map_or(1000, |pages| pages.parse().expect("a number"));
    let count = (pages / 10).max(90) as u32;
    let clock = Clock::adjustable();
    let config = Config {
        sites: count,
        death_share: 0.05,
        near_duplicate_share: 0.03,
        clock: clock.clone(),
        start: clock.now(),
        ..Config::sized(23, count, pages)
    };
    let served = TestWeb::start(config);
    let web = served.server.address();
    let seed = env::var("ARCHIVE_TEST_SEED").map_or(5, |seed| seed.parse().expect("a number"));
    let mut dice = Dice::of(seed);
    let mut free: Vec<String> = (0..count).map(|site| served.web.site_name(SiteIndex(site))).collect();
    let mut troubles = BTreeMap::new();
    for (trouble, _) in TROUBLES {
        for _ in 0..(count / 90).max(1) {
            troubles.insert(free.swap_remove(dice.below(free.len() as u64) as usize), trouble);
        }
    }
    let has_begun = Arc::new(AtomicBool::new(false));
    let server = {
        let (troubles, has_begun) = (troubles.clone(), Arc::clone(&has_begun));
        Answers::start(move |host, path| {
            let host = host.split(':').next().unwrap_or_default();
            let here = |trouble: &&Trouble| **trouble == Trouble::Bare || has_begun.load(Ordering::Relaxed);
            let trouble = troubles.get(site_of(host)).filter(here);
            let moved =
                (host == "elsewhere.test").then(|| answers::html("<title>Elsewhere</title><p>Here now.</p>"));
            let own = moved.or_else(|| trouble.and_then(|trouble| trouble.answer(path)));
            own.unwrap_or_else(|| relay(web, host, path).unwrap_or_default())
        })
    };
    let archive = Archive::new();
    start(&mut archive.crawl(&served.web.seeds(count), &server.at_once())).wait().succeeded();
    let before = Sites::of(&archive);
    // Four fifths were reviewed and found good; what was missing from the beginning is still to be reviewed.
    let is_reviewed = |site: &&String| {
        troubles.get(*site).map_or_else(|| dice.below(5) > 0, |trouble| *trouble != Trouble::Bare)
    };
    let reviewed: Vec<&String> = before.0.iter().map(|(site, ..)| site).filter(is_reviewed).collect();
    let sheet: String = reviewed.iter().map(|site| format!("{site},3\n")).collect();
    let sheet = archive.file("ratings.csv", format!("site,rating\n{sheet}"));
    let waits = |archive: &Archive| {
        let rows = archive.json("review next", &["--limit", "100000"]);
        rows.into_iter().filter(|row| row["pages"] != 0).count()
    };
    assert_eq!(waits(&archive), before.0.len());
    archive.run("review import", &[&*sheet.display().to_string(), "--by", "anna"]).succeeded();
    assert_eq!(waits(&archive), before.0.len() - reviewed.len(), "what was decided on drops out");
    let importance: HashMap<&String, f64> = before.0.iter().map(|(site, all, _)| (site, *all)).collect();
    let damage: HashMap<String, f64> =
        troubles.keys().map(|site| (site.clone(), importance.get(site).copied().unwrap_or(0.0))).collect();

    has_begun.store(true, Ordering::Relaxed);
    assert!(clock.advance(TimeDelta::days(30)));
    let budget = (20 * pages).to_string();
    let words = ["--budget", &budget, "--shortest", "0s"].map(str::to_owned);
    archive
        .run("refresh", &[&words[..], &server.at_once(), &crate::change::clock(&served)].concat())
        .succeeded();

    let rows = archive.json("review next", &["--limit", "100000"]);
    let first = rows[0]["site"].as_str().unwrap();
    let only = archive.json("review next", &["--query", &format!("site site = \"{first}\"")]);
    assert_eq!(only, rows[..1], "among the sites of a query");
    let table = archive.run("review next", &["--limit", "3"]).succeeded();
    assert!(table.text().contains(first) && table.errors.contains("These 3 of "), "{}", table.errors);
    let ours: Vec<String> = rows.iter().map(|row| row["site"].as_str().unwrap().to_owned()).collect();
    for (site, trouble) in &troubles {
        let (_, reason) = TROUBLES.into_iter().find(|(known, _)| known == trouble).unwrap();
        let row = rows.iter().find(|row| row["site"] == site.as_str()).unwrap_or(&serde_json::Value::Null);
        let is_listed =
            row["reasons"].as_array().is_some_and(|all| all.iter().any(|why| why["reason"] == reason));
        assert!(is_listed, "{site} {trouble:?}: {row:?}");
        let advice = match trouble {
            Trouble::Parked => "reject",
            // A site that says "later" is asked for few of its pages, so that most are not known to fail.
            Trouble::Gone | Trouble::Moved => "delist",
            _ => "investigate",
        };
        assert_eq!(row["advice"], advice, "{site} {trouble:?}: {row:?}");
    }
    // Sites that were added because others lead to them are not reviewed.
    let mut after = Sites::of(&archive);
    after.0.retain(|(site, ..)| importance.contains_key(site));
    assert_eq!(after.0.len(), before.0.len());
    let mut shuffled = after.names(|a, b| a.0.cmp(&b.0));
    let mut random = Vec::new();
    for _ in 0..99 {
        (1..shuffled.len()).for_each(|place| shuffled.swap(place, dice.below(place as u64 + 1) as usize));
        random.push(effort(&shuffled, &damage));
    }
    random.sort_unstable();
    let others = [
        ("by URL", effort(&after.names(|a, b| a.0.cmp(&b.0)), &damage)),
        ("at random (median of 99)", random[49]),
        ("by importance", effort(&after.names(|a, b| b.1.total_cmp(&a.1)), &damage)),
        ("by importance when reviewed", effort(&before.names(|a, b| b.1.total_cmp(&a.1)), &damage)),
        ("newest first", effort(&after.names(|a, b| b.2.cmp(&a.2)), &damage)),
    ];
    let found = effort(&ours, &damage);
    println!(
        "{count} sites, {} of them in trouble; rows to four fifths of the damage, and false alarms among them:",
        damage.len()
    );
    let of = |site: &String| damage.get(site).copied().unwrap_or(0.0);
    let knowing = effort(&after.names(|a, b| of(&b.0).total_cmp(&of(&a.0))), &damage);
    for (name, (rows, wrong)) in others.iter().chain(&[("review next", found), ("who knows all", knowing)]) {
        println!("{name:30} {rows:5} {wrong:5}");
    }
    let best = others.iter().map(|(_, (rows, _))| *rows).min().unwrap();
    // With few damaged sites, another order may be lucky.
    assert!(found.0 * if damage.len() > 50 { 4 } else { 2 } <= best, "{found:?} rows against {best}");
}

#[test]
fn unreviewed_sites_are_described() {
    let server = Answers::start(|host, path| match (host.split(':').next().unwrap_or_default(), path) {
        (_, "/robots.txt") | (_, "/sitemap.xml") => answers::nothing(),
        ("good.test", _) => answers::html(
            "<title>Good</title><a href='/more'>more</a><a href='http://dead.test/'>dead</a><a href='http://other.test/'>other</a>",
        ),
        ("dead.test", _) => answers::whole(503, "", b"no"),
        ("club.test", _) => answers::html("<title>Sign in</title><p>Members only."),
        _ => answers::html("<title>Parked domain</title><p>Buy it."),
    });
    let archive = Archive::new();
    let seeds = ["good", "dead", "club", "parked"].map(|name| format!("http://{name}.test/ scope=host"));
    start(&mut archive.crawl(&seeds, &server.at_once())).wait();
    let next = |more: &[&str]| {
        let rows = archive.json("review next", more);
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        rows.iter()
            .map(|row| (text(&row["site"]), (text(&row["reasons"][0]["reason"]), text(&row["advice"]))))
            .collect()
    };
    let row = |site: &str, reason: &str, advice: &str| {
        (format!("{site}.test"), (reason.to_owned(), advice.to_owned()))
    };
    let all: BTreeMap<_, _> = next(&[]);
    let expected = [
        row("good", "unrated", "archive"),
        row("dead", "empty", "investigate"),
        row("club", "wall", "investigate"),
        row("parked", "parked", "reject"),
        row("other", "candidate", "investigate"),
    ];
    assert_eq!(all, expected.into());
    // Only archivists see hidden sites.
    std::fs::write(archive.path.join("access.toml"), "[[rule]]\nprefix = \"test,good\"\n").unwrap();
    assert!(!next(&[]).contains_key("good.test"));
    assert_eq!(next(&["--as-archivist"]), all);
}
