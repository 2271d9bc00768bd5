//! External entities of XML documents are taken from the archive, as they stood when the document was captured.

use serde_json::Value;

use crate::imports::import;
use crate::support::Archive;
use crate::support::judges;
use crate::support::program::start;
use crate::support::warc::answer;

const BOOK: &str = "http://a.example/book.xml";

/// A response with an XML document.
fn xml(path: &str, day: u32, body: &str) -> Vec<u8> {
    let date = format!("2020-01-{day:02}T00:00:00Z");
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\n\r\n{body}");
    answer(&format!("urn:{path}:{day}"), &format!("http://a.example/{path}"), &date, &[], &head)
}

/// A book whose chapters and whose definition are files of their own.
fn book(day: u32) -> Vec<u8> {
    let text = "<!DOCTYPE book SYSTEM 'book.dtd' [\n<!ENTITY c1 SYSTEM 'c/1.xml'>\n<!ENTITY c2 SYSTEM 'c/2.xml'>\n]>\n\
        <book><title>&pub;</title>&c1;&c2;</book>";
    xml("book.xml", day, text)
}

const DTD: &str = "<!ELEMENT book (title,chapter,chapter)><!ELEMENT title (#PCDATA)><!ELEMENT chapter (#PCDATA)>\
    <!ENTITY pub 'Heron Press'>";

fn chapter(number: u32, day: u32, text: &str) -> Vec<u8> {
    xml(
        &format!("c/{number}.xml"),
        day,
        &format!("<?xml version='1.0' encoding='utf-8'?><chapter>{text}</chapter>"),
    )
}

fn imported(archive: &Archive, name: &str, records: &[Vec<u8>]) {
    let (findings, _) = import(archive, &[(name, records.concat())]);
    assert_eq!(findings, Vec::<Value>::new());
}

fn counts(archive: &Archive, query: &str) -> usize {
    archive.json("query", &[query]).len()
}

#[test]
fn a_document_has_its_external_entities() {
    let archive = Archive::new();
    imported(&archive, "book.warc", &[book(1), chapter(1, 1, "estuary"), xml("book.dtd", 1, DTD)]);
    // The second chapter is not there yet.
    let why = archive.json("why", &[BOOK]).remove(0);
    assert_eq!(why["missing_entities"], serde_json::json!(["c/2.xml"]));
    let told = start(archive.command("why").arg(BOOK)).wait().succeeded();
    assert!(told.text().contains("not in the archive: c/2.xml"), "{}", told.text());
    assert_eq!(counts(&archive, "page url = \"http://a.example/book.xml\" and valid = unknown"), 1);

    imported(&archive, "second.warc", &[chapter(2, 2, "marsh &#38; <![CDATA[<reed>]]>")]);
    for rebuild in [false, true] {
        if rebuild {
            archive.run("rebuild", &[""; 0]).succeeded();
        }
        let why = archive.json("why", &[BOOK]).remove(0);
        assert_eq!(why["missing_entities"], serde_json::json!([]));
        for query in [
            "page url = \"http://a.example/book.xml\" and valid = yes",
            "page //book/chapter contains \"estuary\"",
            "page //book/chapter contains \"reed\"",
            "page //book/title = \"Heron Press\"",
            "page url = \"http://a.example/book.xml\" and text contains \"marsh\"",
        ] {
            assert_eq!(counts(&archive, query), 1, "{query}, rebuilt: {rebuild}");
        }
        let found = archive.json("xpath", &["//chapter", BOOK]);
        assert_eq!(found.iter().filter(|row| row["kind"] == "element").count(), 2, "{found:?}");
        let found = archive.json("search", &["marsh"]);
        let books = found.iter().filter(|row| row["url"] == BOOK).collect::<Vec<_>>();
        assert!(
            books.len() == 1 && books[0].to_string().contains("estuary"),
            "a snippet has them: {found:?}"
        );
    }
    let Some(judges) = judges::find() else { return };
    let table = archive.folder().join("text.parquet");
    let options = ["parquet", "--text", "--output", table.to_str().unwrap()];
    archive.run("export", &options).succeeded();
    let script = "import duckdb, sys; print(duckdb.sql(f\"select text from '{sys.argv[1]}' where url like '%book.xml'\"))";
    let mut command = judges.program("python");
    let text = judges::succeed(command.args(["-c", script]).arg(&table), "");
    assert!(text.contains("estuary") && text.contains("marsh"), "{text}");
}

/// Each version has the entities nearest to it in time, and the comparison shows what changed in them.
#[test]
fn a_version_has_the_entities_of_its_time() {
    let archive = Archive::new();
    let second = book(20);
    let second = String::from_utf8(second).unwrap().replace("</book>", "<!-- 2 --></book>").into_bytes();
    let length = |record: &[u8]| {
        let text = String::from_utf8(record.to_vec()).unwrap();
        let block = text.split_once("\r\n\r\n").unwrap().1.strip_suffix("\r\n\r\n").unwrap().len();
        let old = text.split("Content-Length: ").nth(1).unwrap().split("\r\n").next().unwrap().to_owned();
        text.replacen(&format!("Content-Length: {old}"), &format!("Content-Length: {block}"), 1).into_bytes()
    };
    let records = [
        book(1),
        chapter(1, 1, "old words"),
        chapter(2, 2, "same"),
        length(&second),
        chapter(1, 19, "new words"),
        xml("book.dtd", 3, DTD),
    ];
    imported(&archive, "book.warc", &records);
    let text = |at: &str| {
        let rows = archive.json("xpath", &["string(//chapter[1])", BOOK, "--at", at]);
        rows[0].to_string()
    };
    assert!(text("2020-01-01T00:00:00Z").contains("old words"));
    assert!(text("2020-01-20T00:00:00Z").contains("new words"));
    let difference = archive.json("diff", &[BOOK]).remove(0);
    assert!(difference.to_string().contains("new"), "{difference}");
}

/// Bombs, circles and files of the machine stay out.
#[test]
fn entities_stay_within_their_budget_and_the_archive() {
    let archive = Archive::new();
    let laughs = |level: u32| format!("&l{}.a;", level - 1).repeat(10);
    let declared: String = (1..8).map(|n| format!("<!ENTITY l{n}.a SYSTEM 'l{n}'>")).collect();
    let mut records = vec![
        xml("bomb.xml", 1, &format!("<!DOCTYPE a [<!ENTITY l0.a 'hahahahaha'>{declared}]><a>&l7.a;</a>")),
        xml("circle.xml", 1, "<!DOCTYPE a [<!ENTITY e SYSTEM 'e'>]><a>&e;</a>"),
        xml("e", 1, "&e;"),
        xml(
            "file.xml",
            1,
            "<!DOCTYPE a [<!ENTITY e SYSTEM 'file:///etc/passwd'><!ENTITY f SYSTEM '/etc/passwd'>]><a>&e;&f;</a>",
        ),
    ];
    records.extend((1..8).map(|level| xml(&format!("l{level}"), 1, &laughs(level))));
    imported(&archive, "bombs.warc", &records);
    for path in ["bomb.xml", "circle.xml", "file.xml"] {
        let url = format!("http://a.example/{path}");
        let finished = start(archive.command("validate").arg(&url)).wait();
        assert!(!finished.text().contains("root:") && matches!(finished.code, Some(0 | 1)), "{path}");
    }
    let why = archive.json("why", &["http://a.example/file.xml"]).remove(0);
    assert_eq!(why["missing_entities"], serde_json::json!(["file:///etc/passwd", "/etc/passwd"]));
}

/// Topics are learned from documents with their entities, and documents are judged with them.
#[test]
fn topics_see_what_external_entities_say() {
    const EACH: usize = 8;
    let archive = Archive::new();
    let records = (0..2 * EACH).flat_map(|number| {
        let text =
            format!("<!DOCTYPE d [<!ENTITY c SYSTEM '/c/{number}.xml'>]><d><title>Papers</title>&c;</d>");
        let words = [["bread", "yeast", "oven", "dough"], ["river", "reed", "heron", "marsh"]][number % 2];
        let words = (0..20).map(|word| words[(number + word) % 4]).collect::<Vec<_>>().join(" ");
        [xml(&format!("d/{number}.xml"), 1, &text), chapter(u32::try_from(number).unwrap(), 1, &words)]
    });
    imported(&archive, "papers.warc", &records.collect::<Vec<_>>());
    let [baking, others] =
        ["[02468]", "[13579]"].map(|digits| format!("page url matches \"/d/[0-9]*{digits}\\.xml\""));
    archive.run("topic learn", &["baking", "--where", &baking, "--against", &others]).succeeded();
    let rows = archive.json("query", &["page url ~ \"*/d/*.xml\" select url, topic(baking) as p"]);
    assert_eq!(rows.len(), 2 * EACH);
    for row in rows {
        let number: usize = row["url"]
            .as_str()
            .unwrap()
            .trim_end_matches(".xml")
            .rsplit('/')
            .next()
            .unwrap()
            .parse()
            .unwrap();
        assert_eq!(row["p"].as_f64().unwrap() > 0.5, number.is_multiple_of(2), "{row}");
    }
}
