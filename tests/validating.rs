//! Errors in XML documents: what `archive validate` finds, with xmllint (libxml2) as the judge.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use archive_books::prepared::ANSWERS_FILE;
use archive_web::parse::{ParseLimits, validate};
use chrono::{SecondsFormat, TimeDelta, Utc};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use tempfile::TempDir;

use crate::prepared::prepare_in_blocks;
use crate::support::answers::{Answers, html, nothing, plain, whole};
use crate::support::pages::PageServer;
use crate::support::program::start;
use crate::support::{Archive, files_with, skip};

/// Returns the errors of a self-contained document.
fn mistakes(xml: &str) -> Vec<String> {
    let checked =
        validate(xml.as_bytes(), Some("text/xml"), &ParseLimits::default(), &mut |_, _| None).unwrap();
    let each = |it: &archive_web::parse::XmlMistake| format!("{}:{} {}", it.line, it.column, it.what);
    checked.mistakes.iter().map(each).collect()
}

/// Returns the documents in which xmllint finds errors; `None` if it is not installed.
fn judged(documents: &[String]) -> Option<BTreeSet<usize>> {
    let folder = TempDir::new().unwrap();
    for (number, document) in documents.iter().enumerate() {
        fs::write(folder.path().join(format!("{number}.xml")), document).unwrap();
    }
    let names = (0..documents.len()).map(|number| format!("{number}.xml"));
    let run =
        Command::new("xmllint").args(["--valid", "--noout"]).args(names).current_dir(folder.path()).output();
    let Ok(run) = run else {
        skip("there is no xmllint, the judge of XML documents; tests/run installs libxml2-utils");
        return None;
    };
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    let number = |line: &str| {
        let (number, what) = line.split_once(".xml:")?;
        number.parse().ok().filter(|_| !what.contains("warning"))
    };
    Some(said.lines().filter_map(number).collect())
}

fn agrees_with_the_judge(documents: &[String]) {
    let Some(wrong) = judged(documents) else { return };
    for (number, document) in documents.iter().enumerate() {
        let mistakes = mistakes(document);
        // xmllint takes some models for unambiguous whose Glushkov automaton is ambiguous, such as ((d,d*)*).
        if wrong.contains(&number) || !mistakes.iter().any(|what| what.contains("ambiguous")) {
            assert_eq!(!mistakes.is_empty(), wrong.contains(&number), "{document}\n{mistakes:?}");
        }
    }
}

/// A DTD, valid documents, and invalid documents.
const CASES: [(&str, &[&str], &[&str]); 24] = [
    (
        "<!ELEMENT a EMPTY>",
        &["<a/>", "<a></a>"],
        &["<a>x</a>", "<a> </a>", "<a><a/></a>", "<a><!-- x --></a>", "<b/>"],
    ),
    ("<!ELEMENT a ANY><!ELEMENT b EMPTY>", &["<a>x<b/><a/></a>"], &["<a><c/></a>"]),
    ("<!ELEMENT a (#PCDATA)>", &["<a>x</a>", "<a/>", "<a><![CDATA[<]]></a>"], &["<a>x<a/></a>"]),
    (
        "<!ELEMENT a (#PCDATA|b|c)*><!ELEMENT b EMPTY><!ELEMENT c EMPTY>",
        &["<a>x<c/>y<b/></a>"],
        &["<a>x<a/></a>", "<a><d/></a>"],
    ),
    (
        "<!ELEMENT a (b,c)><!ELEMENT b EMPTY><!ELEMENT c EMPTY>",
        &["<a> <b/>\n<!-- x --><c/> </a>"],
        &[
            "<a/>",
            "<a><b/></a>",
            "<a><c/><b/></a>",
            "<a><b/>x<c/></a>",
            "<a><b/><c/><c/></a>",
            "<a><![CDATA[ ]]><b/><c/></a>",
        ],
    ),
    (
        "<!ELEMENT a (b|c)+><!ELEMENT b EMPTY><!ELEMENT c EMPTY>",
        &["<a><c/><b/><b/></a>"],
        &["<a/>", "<a> </a>", "<a>x</a>"],
    ),
    (
        "<!ELEMENT a (b?,(c|(b,c)+)*,d)><!ELEMENT b EMPTY><!ELEMENT c EMPTY><!ELEMENT d EMPTY>",
        &[],
        &["<a><d/></a>"],
    ),
    (
        "<!ELEMENT a ((b,c?)+|d)*><!ELEMENT b EMPTY><!ELEMENT c EMPTY><!ELEMENT d EMPTY>",
        &["<a/>", "<a><b/><c/><b/><d/></a>"],
        &["<a><c/></a>", "<a><b/><c/><c/></a>"],
    ),
    (
        "<!ELEMENT a ((b,c)|(b,d))><!ELEMENT b EMPTY><!ELEMENT c EMPTY><!ELEMENT d EMPTY>",
        &[],
        &["<a><b/><c/></a>"],
    ),
    (
        "<!ELEMENT a EMPTY><!ATTLIST a x CDATA #REQUIRED>",
        &["<a x='1 &lt; 2'/>", "<a x=''/>"],
        &["<a/>", "<a y='1' x='1'/>"],
    ),
    (
        "<!ELEMENT a EMPTY><!ATTLIST a x CDATA #FIXED 'y z' w CDATA #IMPLIED>",
        &["<a/>", "<a x='y z' w='1'/>"],
        &["<a x='y'/>"],
    ),
    (
        "<!ELEMENT a EMPTY><!ATTLIST a x (one|two) 'one'>",
        &["<a/>", "<a x='two'/>", "<a x=' two '/>"],
        &["<a x='three'/>", "<a x=''/>"],
    ),
    ("<!ELEMENT a EMPTY><!ATTLIST a x (one|two) 'three'>", &[], &["<a/>"]),
    (
        "<!ELEMENT a EMPTY><!ATTLIST a x NMTOKEN #IMPLIED y NMTOKENS #IMPLIED>",
        &["<a x='1-a' y=' 1  2 '/>"],
        &["<a x='1 2'/>", "<a x='!'/>", "<a y=''/>"],
    ),
    (
        "<!ELEMENT a (b*)><!ELEMENT b EMPTY><!ATTLIST b i ID #IMPLIED r IDREF #IMPLIED s IDREFS #IMPLIED>",
        &["<a><b i='x'/><b i='y' r='x' s='y x'/></a>", "<a><b r='x'/><b i='x'/></a>"],
        &[
            "<a><b i='x'/><b i='x'/></a>",
            "<a><b i='1'/></a>",
            "<a><b r='x'/></a>",
            "<a><b i='x' s='x y'/></a>",
        ],
    ),
    ("<!ELEMENT a EMPTY><!ATTLIST a i ID #REQUIRED j ID #IMPLIED>", &[], &["<a i='x'/>"]),
    ("<!ELEMENT a EMPTY><!ATTLIST a i ID 'x'>", &[], &["<a/>"]),
    (
        "<!ELEMENT a EMPTY><!ATTLIST a x CDATA #IMPLIED><!ATTLIST a x NMTOKEN #REQUIRED y CDATA #IMPLIED>",
        &["<a y='1'/>"],
        &["<a z='1'/>"],
    ),
    (
        "<!NOTATION png SYSTEM 'png'><!ENTITY e SYSTEM 'e.png' NDATA png><!ELEMENT a EMPTY><!ATTLIST a x ENTITY #IMPLIED>",
        &["<a x='e'/>"],
        &["<a x='f'/>"],
    ),
    (
        "<!ENTITY e '<b/>'><!ENTITY v 'two'><!ELEMENT a (b)><!ELEMENT b EMPTY><!ATTLIST a x (one|two) #IMPLIED>",
        &["<a x='&v;'>&e;</a>"],
        &["<a>&e;&e;</a>"],
    ),
    (
        "<!ENTITY % b '&#60;!ELEMENT b EMPTY>'>%b;<!ELEMENT a (b)>",
        &["<a><b/></a>"],
        &["<a/>", "<a><b>x</b></a>"],
    ),
    ("<!ELEMENT n:a EMPTY><!ATTLIST n:a xmlns:n CDATA #FIXED 'u' n:x CDATA #IMPLIED>", &[], &["<a/>"]),
    ("<!ELEMENT a (#PCDATA|b|b)*><!ELEMENT b EMPTY>", &[], &["<a/>"]),
    ("<!ELEMENT a EMPTY><!ELEMENT a ANY>", &[], &["<a/>"]),
];

#[test]
fn a_judge_finds_the_same_documents_wrong() {
    let mut documents = Vec::new();
    for (subset, good, bad) in CASES {
        for (bodies, are_good) in [(good, true), (bad, false)] {
            for body in bodies {
                let document = format!("<?xml version='1.0'?>\n<!DOCTYPE a [{subset}]>\n{body}\n");
                let mistakes = mistakes(&document);
                assert_eq!(mistakes.is_empty(), are_good, "{document}\n{mistakes:?}");
                documents.push(document);
            }
        }
    }
    for broken in [
        "<a>",
        "<a></b>",
        "<a x=1/>",
        "<a x='1' x='2'/>",
        "<a>&e;</a>",
        "<a/>x",
        "<a>&#0;</a>",
        "<!DOCTYPE a [<!ELEMENT>]><a/>",
    ] {
        assert!(!mistakes(broken).is_empty(), "{broken}");
        documents.push(broken.to_owned());
    }
    agrees_with_the_judge(&documents);
}

/// Generates a content model of a few names.
fn model() -> impl Strategy<Value = String> {
    let often = || prop::sample::select(vec!["", "", "?", "*", "+"]);
    let name = (prop::sample::select(vec!["b", "c", "d"]), often())
        .prop_map(|(name, often)| format!("{name}{often}"));
    let group = move |parts: BoxedStrategy<String>| {
        (prop::collection::vec(parts, 1..4), prop::sample::select(vec![",", "|"]), often())
            .prop_map(|(parts, sign, often)| format!("({}){often}", parts.join(sign)))
    };
    group(name.boxed().prop_recursive(2, 8, 3, move |inner| group(inner.boxed())).boxed())
}

#[test]
fn a_judge_follows_models_alike() {
    let mut runner = TestRunner::deterministic();
    let children = prop::collection::vec(prop::sample::select(vec!["<b/>", "<c/>", "<d/>"]), 0..5);
    let drawn = (model(), prop::collection::vec(children, 4));
    let mut documents = Vec::new();
    for _ in 0..250 {
        let (model, each) = drawn.new_tree(&mut runner).unwrap().current();
        documents.extend(each.into_iter().map(|children| {
            let declared = "<!ELEMENT b EMPTY><!ELEMENT c EMPTY><!ELEMENT d EMPTY>";
            format!("<!DOCTYPE a [<!ELEMENT a {model}>{declared}]><a>{}</a>", children.concat())
        }));
    }
    agrees_with_the_judge(&documents);
}

#[test]
fn places_and_reasons_are_reported() {
    let document = "<!DOCTYPE a [\n<!ELEMENT a (b,c?)>\n<!ELEMENT b EMPTY>\n]>\n<a>\n  <b x='ü'/><é/>\n</a>";
    assert_eq!(
        mistakes(document),
        [
            "6:3 the attribute x of b is not declared",
            "6:13 the element é is not declared",
            "6:13 é is not allowed here in a, nothing or c may follow",
        ]
    );
    assert_eq!(mistakes("<a>\n <b>\n</a>").len(), 1);
    assert!(mistakes("<a>\n <b>\n</a>")[0].starts_with("3:"));
    // Without a DTD there is no validity.
    assert!(mistakes("<!DOCTYPE html><html/>").is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Any DTD gets an answer of limited size.
    #[test]
    fn any_definition_is_answered(parts in prop::collection::vec(prop::sample::select(vec![
        "<!ELEMENT a ", "<!ATTLIST a ", "<!ENTITY ", "<!ENTITY % p ", "%p;", "(", ")", "|", ",", "*", "#PCDATA", "b", "'",
        "\"", ">", " ", "<![", "INCLUDE[", "]]>", "<!--", "-->", "ID", "#FIXED", "(x|y)", "EMPTY", "&e;", "%", ";", "<?", "?>",
    ]), 0..40), outside in any::<bool>()) {
        let subset = parts.concat();
        let document = match outside {
            true => "<!DOCTYPE a SYSTEM 's'><a x='1'><b/></a>".to_owned(),
            false => format!("<!DOCTYPE a [{subset}]><a x='1'><b/>&e;</a>"),
        };
        let mut fetch = |_: Option<&str>, system: &str| Some((system.to_owned(), subset.clone()));
        let checked = validate(document.as_bytes(), Some("text/xml"), &ParseLimits::default(), &mut fetch).unwrap();
        prop_assert!(checked.mistakes.len() <= 300);
    }
}

#[test]
fn an_external_definition_is_taken_from_the_archive() {
    let dtd = "<!ENTITY % more SYSTEM 'more.mod'>%more;<!ENTITY % with 'INCLUDE'>\
         <![%with;[<!ELEMENT catalogue (%book;)*>]]><![IGNORE[<!ELEMENT catalogue EMPTY>]]>\
         <!ENTITY house 'Bompiani'>";
    let more = "<?xml version='1.0' encoding='UTF-8'?><!ENTITY % book 'book'><!ELEMENT book (#PCDATA)>";
    let catalogue = |inner: &str| {
        format!("<!DOCTYPE catalogue SYSTEM 'dtd/catalogue.dtd'>\n<catalogue>{inner}</catalogue>")
            .into_bytes()
    };
    let far = b"<!DOCTYPE a SYSTEM 'http://h.test/none.dtd'><a/>".to_vec();
    let links =
        b"<html><a href=good.xml>1</a><a href=bad.xml>2</a><a href=broken.xml>3</a><a href=far.xml>4</a>\
        <a href=dtd/catalogue.dtd>5</a><a href=dtd/more.mod>6</a><a href=plain.xml>7</a><a href=late.xml>8</a>"
            .to_vec();
    let pages = [
        ("/", "text/html", links),
        ("/good.xml", "text/xml", catalogue("<book>&house;</book>")),
        ("/bad.xml", "text/xml", catalogue("\n<magazine/>")),
        ("/broken.xml", "text/xml", b"<a>\n<b></a>".to_vec()),
        ("/far.xml", "text/xml", far),
        ("/plain.xml", "text/xml", b"<a>\n<b/></a>".to_vec()),
        ("/late.xml", "text/xml", b"\n<?xml version='1.0'?><a/>".to_vec()),
        ("/dtd/catalogue.dtd", "application/xml-dtd", dtd.into()),
        ("/dtd/more.mod", "application/xml-dtd", more.into()),
    ];
    let pages = pages.into_iter().map(|(path, kind, body)| (path.to_owned(), (kind, body)));
    let server = PageServer::start(pages.collect());
    let archive = Archive::new();
    let seeds = ["http://h.test/ scope=host".to_owned()];
    start(&mut archive.crawl(&seeds, &server.options())).wait().succeeded();
    let validated = |arguments: &[&str]| start(archive.command("validate").args(arguments)).wait();

    validated(&["http://h.test/good.xml"]).succeeded();
    let bad = validated(&["http://h.test/bad.xml", "http://h.test/broken.xml", "--json"]);
    assert_eq!(bad.code, Some(1), "{}", bad.errors);
    let rows = bad.json();
    let reported: Vec<_> = rows
        .iter()
        .map(|row| (row["url"].as_str().unwrap(), row["line"].as_u64(), row["kind"].as_str().unwrap()))
        .collect();
    let (bad, broken) = ("http://h.test/bad.xml", "http://h.test/broken.xml");
    let validity = (bad, Some(3), "validity");
    assert_eq!(reported, [validity, validity, (broken, Some(2), "well-formedness")]);
    let far = validated(&["http://h.test/far.xml"]).succeeded();
    assert!(far.errors.contains("well-formedness only"), "{}", far.errors);
    let by_query = validated(&["type = xml and well-formed = no"]);
    assert_eq!(by_query.code, Some(1), "{}", by_query.errors);
    let table = by_query.text();
    assert!(table.contains("broken.xml") && !table.contains("bad.xml"), "{table}");
    agrees_with_the_field(&archive);
    let none = validated(&["http://h.test/"]).succeeded();
    assert!(none.errors.contains("is not an XML document"), "{}", none.errors);
}

/// Fails unless `valid` in queries agrees with `archive validate` for each XML document.
fn agrees_with_the_field(archive: &Archive) {
    let asked = |rows: &str, more: &str| {
        let query =
            format!("{rows} status = 200 and url ends with \".xml\" {more} select url, valid order by url");
        let answer = start(archive.command("query").args([&query, "--json"])).wait().succeeded().json();
        let text = |row: &serde_json::Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
        answer.iter().map(|row| (text(row, "url"), text(row, "valid"))).collect::<Vec<_>>()
    };
    let pages = asked("page", "");
    for (url, valid) in &pages {
        let run = start(archive.command("validate").arg(url)).wait();
        let expected = match (run.code, run.errors.contains(", 1 checked")) {
            (Some(0), true) => "yes",
            (Some(0), false) => "unknown",
            _ => "no",
        };
        assert_eq!(valid, expected, "{url}: {}", run.errors);
    }
    let found = ["yes", "no", "unknown"].map(|name| {
        let found = asked("page", &format!("and valid = {name}"));
        let expected: Vec<_> = pages.iter().filter(|(_, valid)| valid == name).cloned().collect();
        assert_eq!(found, expected, "a condition reads many documents side by side");
        found.len()
    });
    assert_eq!(found, [1, 3, 2], "{pages:?}");
    assert_eq!(asked("version", ""), pages, "of versions documents are read, not the index");
    assert_eq!(asked("page", "and well-formed = yes and valid = no").len(), 1);
    let refused = start(archive.command("query").arg("valid = maybe")).wait();
    assert!(refused.code == Some(2) && refused.errors.contains("unknown"), "{}", refused.errors);
}

/// Returns documents whose DTD changes in the second round, one whose DTD is missing at first, and one that is not
/// modified (304).
fn defined(path: &str, round: usize) -> Vec<u8> {
    let dtd =
        |inner: &str| whole(200, "Content-Type: application/xml-dtd\r\nETag: \"a\"\r\n", inner.as_bytes());
    let xml = |dtd: &str, inner: &str| {
        let text = format!("<!DOCTYPE a SYSTEM '{dtd}'><a>{inner}</a>");
        whole(200, "Content-Type: text/xml\r\n", text.as_bytes())
    };
    match path {
        "/robots.txt" => plain("User-agent: *\nAllow: /\n"),
        "/" => {
            let names = (0..9).map(|number| format!("{number}.xml"));
            let names = names.chain(["changed.dtd", "same.dtd"].map(str::to_owned));
            html(&names.map(|name| format!("<a href={name}>{name}</a> ")).collect::<String>())
        }
        "/changed.dtd" => dtd(["<!ELEMENT a (b)><!ELEMENT b EMPTY>", "<!ELEMENT a EMPTY>"][round.min(1)]),
        "/late.dtd" => dtd("<!ELEMENT a EMPTY>"),
        "/same.dtd" if round > 0 => b"HTTP/1.1 304 -\r\nETag: \"a\"\r\n\r\n".to_vec(),
        "/same.dtd" => dtd("<!ELEMENT a (#PCDATA)>"),
        path => match path[1..].strip_suffix(".xml").and_then(|number| number.parse::<usize>().ok()) {
            Some(number) => {
                let inner = match number % 2 {
                    0 => "",
                    _ if number > 5 => "text",
                    _ => "<b/>",
                };
                xml(["changed.dtd", "http://late.test/late.dtd", "same.dtd"][number / 3], inner)
            }
            None => whole(404, "", b""),
        },
    }
}

/// Returns which documents are valid according to the check at the archive's closing, and how many had to be checked
/// for it; fails unless a check of all documents gives the same, with and without columns.
fn found_when_closed(archive: &Archive) -> (Vec<(String, String)>, u64) {
    let valid = || {
        let asked = [
            "page status = 200 and url ends with xml select url, valid order by url",
            "page valid = yes select url order by url",
            "page valid is empty select url order by url",
            "page valid = no or root = b select url, valid order by url",
            "capture url ends with xml select url, time, valid order by url, time",
        ];
        asked.map(|query| archive.json("query", &[query]))
    };
    let file = archive.path.join(ANSWERS_FILE);
    let noted = fs::read(&file).unwrap();
    fs::remove_file(&file).unwrap();
    let expected = valid();
    fs::write(&file, noted).unwrap();
    assert_eq!(valid(), expected);
    if !archive.path.join("access.toml").exists() {
        prepare_in_blocks(archive, 7);
        assert_eq!(valid(), expected);
    }
    let seen = archive.json("query", &["page valid = yes", "--explain"]).remove(0);
    let text = |row: &serde_json::Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let pages = expected[0].iter().map(|row| (text(row, "url"), text(row, "valid")));
    (pages.collect(), seen["documents_parsed"].as_u64().unwrap())
}

#[test]
fn documents_are_checked_once_for_each_definition() {
    let round = Arc::new(AtomicUsize::new(0));
    let now = Arc::clone(&round);
    let served = Answers::start(move |host, path| match now.load(Ordering::Relaxed) {
        0 if host == "late.test" => nothing(),
        round => defined(path, round),
    });
    let archive = Archive::new();
    let valid = |pages: &[(String, String)]| pages.iter().map(|(_, valid)| valid.clone()).collect::<Vec<_>>();
    let options: Vec<String> =
        ["--delay", "0"].map(str::to_owned).into_iter().chain(served.connection()).collect();
    start(&mut archive.crawl(&["http://h.test/ scope=host".to_owned()], &options)).wait().succeeded();
    let (pages, checked) = found_when_closed(&archive);
    let [yes, no, unknown] = ["yes", "no", "unknown"];
    assert_eq!(valid(&pages), [no, yes, no, unknown, unknown, unknown, yes, yes, yes]);
    assert_eq!(checked, 0, "all were checked when the archive was closed");

    // Documents keep their validity by the DTD of their time; queries use the newest capture of each.
    round.store(1, Ordering::Relaxed);
    let mut refresh = archive.command("refresh");
    let clock = (Utc::now() + TimeDelta::days(40)).to_rfc3339_opts(SecondsFormat::Secs, true);
    refresh.args(["--budget", "100", "--clock", &clock, "--delay", "0"]).args(served.connection());
    start(&mut refresh).wait().succeeded();
    let other = Archive::new();
    let late = ["http://late.test/late.dtd".to_owned()];
    start(&mut other.crawl(&late, &options)).wait().succeeded();
    let files = files_with(&other.path.join("segments"), &[".warc.zst"]);
    start(archive.command("import").args(files)).wait().succeeded();
    let (pages, checked) = found_when_closed(&archive);
    assert_eq!(valid(&pages), [yes, no, yes, no, yes, no, yes, yes, yes]);
    assert_eq!(checked, 0);

    // A hidden DTD counts as missing, and results that used it are discarded.
    let rules = "[[rule]]\nprefix = \"test,late\"\n[[rule]]\nprefix = \"test,h)/changed.dtd\"\n";
    fs::write(archive.path.join("access.toml"), rules).unwrap();
    let (pages, checked) = found_when_closed(&archive);
    assert_eq!(valid(&pages), [unknown, unknown, unknown, unknown, unknown, unknown, yes, yes, yes]);
    assert_eq!(checked, 6);
    fs::remove_file(archive.path.join("access.toml")).unwrap();
    assert_eq!(found_when_closed(&archive).1, 0);
    start(&mut archive.command("rebuild")).wait().succeeded();
    assert_eq!(found_when_closed(&archive).1, 0);
}
