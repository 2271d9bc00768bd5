//! `archive xpath`: its results, the version they are from, and its messages if there are none.

use serde_json::Value;

use crate::support::Archive;
use crate::support::pages::PageServer;
use crate::support::program::start;

const CATALOGUE: &str = "<!DOCTYPE c [<!ATTLIST book isbn ID #IMPLIED><!ENTITY eco 'Umberto Eco'>]>
<c xmlns:n='urn:n'>
<book isbn='b1'><author>&eco;</author><title>Il nome
 della rosa</title></book>
<book isbn='b2' n:kept='yes'><title>Baudolino</title></book></c>";

const FEED: &str =
    "<feed xmlns='http://www.w3.org/2005/Atom'><title>News</title><entry><title>One</title></entry></feed>";

fn archive() -> Archive {
    let deep = format!("{}{}", "<a>".repeat(300), "</a>".repeat(300));
    let bomb = "<!DOCTYPE a [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;'>\
        <!ENTITY c '&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;'><!ENTITY d '&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;'>\
        <!ENTITY e '&d;&d;&d;&d;&d;&d;&d;&d;&d;&d;'><!ENTITY f '&e;&e;&e;&e;&e;&e;&e;&e;&e;&e;'>\
        <!ENTITY g '&f;&f;&f;&f;&f;&f;&f;&f;&f;&f;'>]><a>&g;</a>";
    let long = format!("<a>{}</a>", "<b/>".repeat(20_000));
    let pages = [
        (
            "/",
            "text/html",
            "<html><a href=c.xml>1</a><a href=f.atom>2</a><a href=broken.xml>3</a><a href=deep.xml>4</a>\
            <a href=bomb.xml>5</a><a href=long.xml>6</a>"
                .to_owned(),
        ),
        ("/c.xml", "text/xml", CATALOGUE.to_owned()),
        ("/f.atom", "application/atom+xml", FEED.to_owned()),
        ("/broken.xml", "text/xml", "<a>\n<b></a>".to_owned()),
        ("/deep.xml", "text/xml", deep),
        ("/bomb.xml", "text/xml", bomb.to_owned()),
        ("/long.xml", "text/xml", long),
    ];
    let pages = pages.into_iter().map(|(path, kind, body)| (path.to_owned(), (kind, body.into_bytes())));
    let server = PageServer::start(pages.collect());
    let archive = Archive::new();
    start(&mut archive.crawl(&["http://h.test/ scope=host".to_owned()], &server.options()))
        .wait()
        .succeeded();
    archive
}

#[test]
fn nodes_and_values_are_found_in_xml_documents() {
    let archive = archive();
    let found = |expression: &str, what: &str| archive.json("xpath", &[expression, what]);
    let field = |rows: &[Value], name: &str| {
        rows.iter().map(|row| row[name].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    let catalogue = "http://h.test/c.xml";
    let titles = found("//book[author = 'Umberto Eco']/title", catalogue);
    assert_eq!(field(&titles, "text"), ["Il nome\n della rosa"]);
    assert_eq!(field(&titles, "xml"), ["<title>Il nome\n della rosa</title>"]);
    assert_eq!((&titles[0]["kind"], &titles[0]["name"]), (&"element".into(), &"title".into()));
    assert_eq!((&titles[0]["line"], &titles[0]["url"]), (&3.into(), &catalogue.into()));
    assert!(titles[0]["time"].as_str().unwrap().ends_with('Z'), "{titles:?}");
    let attributes = found("id('b2')/@*", catalogue);
    assert_eq!(field(&attributes, "name"), ["isbn", "n:kept"]);
    assert_eq!(field(&found("//@n:kept/..//text()", catalogue), "text"), ["Baudolino"]);
    let count = found("count(//book) * 2", catalogue);
    assert_eq!(
        (&count[0]["kind"], &count[0]["text"], &count[0]["line"]),
        (&"number".into(), &"4".into(), &Value::Null)
    );
    assert_eq!(field(&found("//atom:entry/atom:title", "http://h.test/f.atom"), "text"), ["One"]);
    assert!(found("//title", "http://h.test/f.atom").is_empty(), "they are in a namespace");
    assert_eq!(field(&found("//*[local-name() = 'title']", "type = xml order by url"), "url").len(), 4);

    let table = archive.run("xpath", &["//title | //@isbn", catalogue]).succeeded();
    assert!(table.text().contains("Il nome della rosa") && table.text().contains("isbn"), "{}", table.text());
    assert!(table.errors.contains("4 results in 1 XML document"), "{}", table.errors);
}

#[test]
fn what_cannot_be_asked_is_said() {
    let archive = archive();
    let catalogue = "http://h.test/c.xml";
    for (expression, words) in [
        ("//book[", "unexpected end of input"),
        ("//book[no-such(.)]", "unknown function"),
        ("//book[$x]", "unbound variable"),
        ("count(1)", "expected a node-set"),
    ] {
        archive.run("xpath", &[expression, catalogue]).refused(2, &["the XPath expression is wrong", words]);
    }
    archive.run("xpath", &[&"(".repeat(4097), catalogue]).refused(2, &["longer than 4096 bytes"]);
    archive.run("xpath", &["//x:a", catalogue]).refused(0, &["the prefix x is neither declared"]);
    archive.run("xpath", &["/*", "http://h.test/"]).refused(0, &["is not an XML document"]);
    for (page, why) in [("broken", "XML: "), ("deep", "too deep"), ("bomb", "entit")] {
        let page = format!("http://h.test/{page}.xml");
        archive.run("xpath", &["count(//*)", &page]).refused(0, &["1 document left out", why]);
    }
    // Quadratic: each of 20 000 elements scans all elements before it.
    let stopped = archive.run("xpath", &["count(//b[preceding-sibling::c])", "http://h.test/long.xml"]);
    stopped.refused(4, &["the expression takes too many steps"]);
    let cut = archive
        .run("xpath", &["//b", "http://h.test/long.xml", "--json"])
        .refused(4, &["10,000 nodes not listed"]);
    assert_eq!(cut.text().lines().count(), 10_000);
    let late = archive.run("xpath", &["//b", "type = xml", "--for", "0s"]);
    late.refused(4, &["not read: the time is up"]);
}
