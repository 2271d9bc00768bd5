use url::Url;

use super::pieces::{XmlPiece, XmlPieces};
use crate::parse::{
    DocumentKind, FetchedDocument, LinkKind, ParseLimits, ParseProblem, ParsedDocument, parse,
};

fn read(xml: &str) -> ParsedDocument {
    let url = Url::parse("http://a.example/b/c.xml?q").unwrap();
    let source = FetchedDocument {
        url: &url,
        status: 200,
        content_type: Some("application/xml"),
        headers: &[],
        body: xml.as_bytes(),
    };
    parse(&source, &ParseLimits::default())
}

/// Links as `kind url`, with the host of the document left out.
fn links(parsed: &ParsedDocument) -> Vec<String> {
    let short = |url: &str| url.strip_prefix("http://a.example").unwrap_or(url).to_owned();
    parsed.links.iter().map(|link| format!("{:?} {}", link.kind, short(&link.url))).collect()
}

const XLINK: &str = "xmlns:x='http://www.w3.org/1999/xlink'";

#[test]
fn every_reference_of_xml() {
    for (xml, expected) in [
        (format!("<a {XLINK} x:href='d'/>"), &["XLink /b/d"][..]),
        (format!("<a {XLINK} x:type='simple' x:show='embed' x:href='d'/>"), &["XLinkEmbed /b/d"]),
        (
            format!("<a {XLINK} x:type='extended'><l x:type='locator' x:href='d'/><r x:type='resource' x:href='e'/></a>"),
            &["XLink /b/d"],
        ),
        ("<?xml-stylesheet type='text/xsl' href='d.xsl?a=1&amp;b=2'?><a/>".into(), &["XmlStylesheet /b/d.xsl?a=1&b=2"]),
        ("<a xmlns:i='http://www.w3.org/2001/XInclude'><i:include href='d'/></a>".into(), &["XInclude /b/d"]),
        (
            "<a xml:base='/e/' href='1'><b xml:base='f/' href='2'/><c href='3'/></a>".into(),
            &["Reference /e/1", "Reference /e/f/2", "Reference /e/3"],
        ),
        (
            "<!DOCTYPE a SYSTEM 'a.dtd' [<!ENTITY d SYSTEM 'd.xml'><!ENTITY g SYSTEM 'g.png' NDATA png>]><a>&d;</a>".into(),
            &["Dtd /b/a.dtd", "ExternalEntity /b/d.xml", "Embed /b/g.png"],
        ),
        (
            "<a xmlns:s='http://www.w3.org/2001/XMLSchema-instance' s:schemaLocation='http://n.example d.xsd'/>".into(),
            &["Schema /b/d.xsd"],
        ),
        ("<s:schema xmlns:s='http://www.w3.org/2001/XMLSchema'><s:import schemaLocation='d'/></s:schema>".into(), &["Schema /b/d"]),
        (
            "<t:stylesheet xmlns:t='http://www.w3.org/1999/XSL/Transform'><t:include href='d'/><a href='{@e}'/></t:stylesheet>".into(),
            &["XmlStylesheet /b/d", "Reference /b/%7B@e%7D"],
        ),
        ("<svg xmlns='http://www.w3.org/2000/svg'><image href='d'/><a href='e'/><use href='#f'/></svg>".into(), &["Image /b/d", "Anchor /b/e"]),
        ("<d xmlns:h='http://www.w3.org/1999/xhtml'><h:a href='e'/><h:img src='f'/></d>".into(), &["Anchor /b/e", "Image /b/f"]),
        ("<para><ulink url='d'>e</ulink><graphic fileref='f'/></para>".into(), &["Anchor /b/d", "Image /b/f"]),
        ("<TEI><ref target='d'/><ptr target='#e'/></TEI>".into(), &["Anchor /b/d"]),
        ("<opml><outline xmlUrl='d' htmlUrl='e'/></opml>".into(), &["Anchor /b/d", "Anchor /b/e"]),
        ("<dc><identifier>http://d.example/e</identifier><identifier>oai:1</identifier></dc>".into(), &["Reference http://d.example/e"]),
    ] {
        let parsed = read(&xml);
        assert_eq!(links(&parsed), expected, "{xml}");
        assert_eq!((parsed.kind, &parsed.problems[..]), (DocumentKind::Xml, &[][..]), "{xml}");
    }
}

#[test]
fn nothing_outside_is_read() {
    let xml = "<!DOCTYPE a [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><a>x&e;y</a>";
    let parsed = read(xml);
    assert_eq!((parsed.text.as_str(), links(&parsed)), ("xy", vec![]));
}

#[test]
fn title_text_and_language() {
    let parsed =
        read("<book xml:lang='DE-at'><info><title>Eins\n zwei</title></info><p>Drei <b>vier</b>.</p></book>");
    assert_eq!(parsed.title, "Eins zwei");
    assert_eq!(parsed.text, "Eins zwei\nDrei vier.");
    assert_eq!(parsed.language.as_deref(), Some("de-at"));
}

#[test]
fn rss_in_its_versions() {
    let two = read(
        "<rss version='2.0' xmlns:atom='http://www.w3.org/2005/Atom'><channel><title>News</title><link>http://a.example/</link>
         <atom:link rel='self' href='self'/><atom:link rel='next' href='?page=2'/><description>All &lt;b&gt;news&lt;/b&gt;</description>
         <item><title>One</title><link> /1 </link><pubDate>Sat, 21 Nov 2026 00:00:00 GMT</pubDate><enclosure url='/1.mp3'/>
           <description>&lt;p&gt;First &amp;amp; last</description></item>
         <item><guid>http://a.example/2</guid></item><item><guid isPermaLink='false'>3</guid></item></channel></rss>",
    );
    assert_eq!(
        links(&two),
        [
            "Related /",
            "Alternate /b/self",
            "FeedPage /b/c.xml?page=2",
            "FeedEntry /1",
            "Enclosure /1.mp3",
            "FeedEntry /2"
        ]
    );
    assert_eq!((two.kind, two.title.as_str()), (DocumentKind::Feed, "News"));
    assert_eq!(two.text, "All news\nOne\nFirst & last");
    assert_eq!(two.entries.len(), 1);
    assert_eq!(two.links[two.entries[0].link as usize].url, "http://a.example/1");
    assert_eq!(two.entries[0].modified, 1_795_219_200);

    let one = read(
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://purl.org/rss/1.0/'>
         <channel rdf:about='http://a.example/'><title>x</title><link>/</link></channel>
         <item rdf:about='/1'><title>One</title></item><item rdf:about='/2'><link>/3</link></item></rdf:RDF>",
    );
    assert_eq!(links(&one), ["Related /", "FeedEntry /1", "FeedEntry /3"]);
}

#[test]
fn atom_with_bases() {
    let parsed = read(
        "<feed xmlns='http://www.w3.org/2005/Atom' xml:base='/d/'><title type='html'>x</title><link rel='self' href='s'/>
         <link href='/'/><link rel='next' href='2'/><entry xml:base='e/'><link href='1'/><link rel='enclosure' href='1.mp3'/>
         <updated>2026-11-21T00:00:00Z</updated><content type='xhtml'><div>Text</div></content></entry>
         <entry><content src='4'/></entry></feed>",
    );
    assert_eq!(
        links(&parsed),
        [
            "Alternate /d/s",
            "Related /",
            "FeedPage /d/2",
            "FeedEntry /d/e/1",
            "Enclosure /d/e/1.mp3",
            "FeedEntry /d/4"
        ]
    );
    assert_eq!(parsed.text, "Text");
    assert_eq!(parsed.entries.len(), 1);
}

#[test]
fn sitemaps_and_indexes() {
    let sitemap = read(
        "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' xmlns:i='http://www.google.com/schemas/sitemap-image/1.1'>
         <url><loc>http://a.example/1?x&amp;y</loc><lastmod>2026-11-21</lastmod><i:image><i:loc>/1.png</i:loc></i:image></url>
         <url><loc>http://a.example/2</loc></url></urlset>",
    );
    assert_eq!(sitemap.kind, DocumentKind::Sitemap);
    assert_eq!(links(&sitemap), ["SitemapEntry /1?x&y", "Enclosure /1.png", "SitemapEntry /2"]);
    assert_eq!(sitemap.entries.len(), 1);
    let index =
        read("<sitemapindex><sitemap><loc>/s.xml</loc><lastmod>2026</lastmod></sitemap></sitemapindex>");
    assert_eq!(links(&index), ["Sitemap /s.xml"]);
}

#[test]
fn a_list_of_records_continues() {
    let parsed = read(
        "<OAI-PMH xmlns='http://www.openarchives.org/OAI/2.0/'><responseDate>x</responseDate><ListRecords><record>
         <header><identifier>oai:1</identifier><datestamp>2026-11-21</datestamp></header>
         <metadata><dc><identifier>http://r.example/1</identifier></dc></metadata></record>
         <resumptionToken>a&amp;b/1</resumptionToken></ListRecords></OAI-PMH>",
    );
    assert_eq!(parsed.kind, DocumentKind::OaiPmh);
    let expected =
        ["Reference http://r.example/1", "FeedPage /b/c.xml?verb=ListRecords&resumptionToken=a%26b%2F1"];
    assert_eq!(links(&parsed), expected);
    assert_eq!(parsed.entries.len(), 1);
    let last = read("<OAI-PMH><ListRecords><resumptionToken/></ListRecords></OAI-PMH>");
    assert!(last.links.is_empty());
}

#[test]
fn broken_documents_are_read_as_far_as_they_go() {
    for (xml, expected) in [
        ("<a href='?x=1&y=2'>&nbsp;</a>", &["Reference /b/c.xml?x=1&y=2"][..]),
        ("<a><b href='1'/><c href='2'></b></a>", &["Reference /b/1", "Reference /b/2"]),
        ("<a><b href='1'/><c href='2'/>", &["Reference /b/1", "Reference /b/2"]),
        ("<a><b href='1'/><c href='2", &["Reference /b/1"]),
        ("<a>\n<b href='1'/>\n é <c d e='1'/><f href='2'/></a>", &["Reference /b/1"]),
        (
            "<urlset><url><loc>http://a.example/1</loc></url><url><loc>/2<url>",
            &["SitemapEntry /1", "SitemapEntry /2"],
        ),
    ] {
        let parsed = read(xml);
        assert_eq!(links(&parsed), expected, "{xml}");
        assert!(matches!(parsed.problems[..], [ParseProblem::Xml(_)]), "{xml} {:?}", parsed.problems);
    }
}

#[test]
fn xhtml_is_html_whatever_its_type() {
    let parsed = read(
        "<html xmlns='http://www.w3.org/1999/xhtml'><head><title>x</title></head><body><a href='d'/></body></html>",
    );
    assert_eq!((parsed.kind, parsed.title.as_str()), (DocumentKind::Html, "x"));
    assert_eq!(parsed.links[0].kind, LinkKind::Anchor);
}

#[test]
fn bombs_are_refused_before_they_go_off() {
    let mut bomb = "<!DOCTYPE a [<!ENTITY e0 'lol'>".to_owned();
    for level in 1..12 {
        bomb += &format!("<!ENTITY e{level} '{}'>", format!("&e{};", level - 1).repeat(10));
    }
    bomb += "]><a>&e11;</a>";
    assert_eq!(read(&bomb).problems, [ParseProblem::XmlLimit("large entities")]);
    assert_eq!(read(&"<a>".repeat(100_000)).problems, [ParseProblem::XmlLimit("deep")]);
}

#[test]
fn what_is_beyond_the_limits_is_read_tag_by_tag() {
    let deep = "<d>".repeat(300);
    for (xml, kind, expected, text) in [
        (
            format!(
                "<rss><title>T</title><link><![CDATA[http://a.example/1]]></link><a href='2'>x &amp; y</a>{deep}"
            ),
            DocumentKind::Feed,
            &["FeedEntry /1", "Reference /b/2"][..],
            "T\nhttp://a.example/1\nx & y",
        ),
        (
            format!("<s:urlset><s:url><s:loc> http://a.example/1 </s:loc></s:url>{deep}"),
            DocumentKind::Sitemap,
            &["SitemapEntry /1"],
            "",
        ),
        (
            format!(
                "<OAI-PMH><identifier>http://a.example/1</identifier><p l:href='x' xlink:href='2'/>{deep}"
            ),
            DocumentKind::OaiPmh,
            &["Reference /1", "XLink /b/2"],
            "http://a.example/1",
        ),
    ] {
        let parsed = read(&xml);
        assert_eq!((parsed.kind, parsed.text.as_str()), (kind, text), "{xml}");
        assert_eq!(links(&parsed), expected, "{xml}");
        assert_eq!(parsed.problems, [ParseProblem::XmlLimit("deep")]);
    }
}

const PIECES: [&str; 34] = [
    "a",
    " ",
    "<",
    ">",
    "/",
    "'",
    "\"",
    "=",
    "!",
    "-",
    "]]>",
    "?>",
    "-->",
    "<a>",
    "</a>",
    "<b/>",
    "<a b='c'>",
    "<a b=\"'\" c='>'>",
    "<a b='\"'/>",
    "<a\nb = 'c'>",
    "<a xmlns='n'>",
    "<p:a xmlns:p='n'/>",
    "<a '>",
    "<a b='<'>",
    "<a b='c>",
    "<!--",
    "<!-- <a> '-->",
    "<![CDATA[",
    "<![CDATA[<a '>]]>",
    "<?p",
    "<?p <a '?>",
    "<!DOCTYPE a [<!ELEMENT a '>]>",
    "&amp;",
    "&e;",
];

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(20_000))]

    /// The limits count the same attributes as the parser.
    #[test]
    fn pieces_are_what_the_parser_sees(
        pieces in proptest::collection::vec(proptest::sample::select(PIECES.as_slice()), 0..12)
    ) {
        let inside = pieces.concat();
        for text in [format!("<a>{inside}</a>"), inside] {
            let Ok(tree) = roxmltree::Document::parse(&text) else { continue };
            let elements = tree.descendants().filter(roxmltree::Node::is_element);
            let of_parser: Vec<_> = elements.map(|node| node.attributes().len()).collect();
            let of_pieces: Vec<_> = XmlPieces::of(&text)
                .filter_map(|piece| match piece {
                    XmlPiece::Start(tag) => {
                        Some(tag.attributes().filter(|(name, _)| !name.starts_with("xmlns")).count())
                    }
                    _ => None,
                })
                .collect();
            proptest::prop_assert_eq!(of_pieces, of_parser, "{}", text);
        }
    }
}
