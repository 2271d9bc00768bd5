use url::Url;

use super::*;
use crate::parse::{Link, ParseLimits};

fn read_all(html: &str) -> (HtmlFacts, Vec<Link>) {
    let base = Url::parse("http://a.example/b/c.html").unwrap();
    let limits = ParseLimits::default();
    let mut outlinks = Outlinks::new(&base, encoding_rs::UTF_8, &limits);
    let mut problems = Vec::new();
    let facts = read(html, encoding_rs::UTF_8, MarkupSyntax::Html, "archive", &mut outlinks);
    let links = outlinks.finish(&mut problems);
    assert!(problems.is_empty(), "{problems:?}");
    (facts, links)
}

/// Links as `kind url`, with the host of the document left out.
fn links(html: &str) -> Vec<String> {
    let (_, links) = read_all(html);
    let short = |url: &str| url.strip_prefix("http://a.example").unwrap_or(url).to_owned();
    links.iter().map(|link| format!("{:?} {}", link.kind, short(&link.url))).collect()
}

#[test]
fn every_element_that_links() {
    for (html, expected) in [
        ("<a href='x'>", &["Anchor /b/x"][..]),
        ("<a HREF=\"x?a&amp;b\">", &["Anchor /b/x?a&b"]),
        ("<map><area href=/x></map>", &["Area /x"]),
        ("<link rel=stylesheet href=x>", &["Stylesheet /b/x"]),
        ("<link rel='shortcut icon' href=x>", &["Icon /b/x"]),
        ("<link rel='alternate stylesheet' href=x>", &["Stylesheet /b/x"]),
        ("<link rel=alternate type=application/rss+xml href=x>", &["Alternate /b/x"]),
        ("<link rel=canonical href=x>", &["Canonical /b/x"]),
        ("<link rel=next href=x>", &["Related /b/x"]),
        ("<link rel=preload href=x>", &["Preload /b/x"]),
        ("<link rel=manifest href=x>", &["WebManifest /b/x"]),
        ("<link rel=pingback href=x>", &["Speculative /b/x"]),
        ("<link rel=dns-prefetch href=//x.example>", &[]),
        ("<link href=x>", &[]),
        ("<iframe src=x></iframe>", &["InlineFrame /b/x"]),
        ("<frameset><frame src=x></frameset>", &["Frame /b/x"]),
        ("<img src=x srcset='y 1x, z 2x'>", &["Image /b/x", "ImageSource /b/y", "ImageSource /b/z"]),
        ("<img data-src=x longdesc=y>", &["LazyImage /b/x", "Related /b/y"]),
        ("<picture><source srcset='x, y 2x'></picture>", &["ImageSource /b/x", "ImageSource /b/y"]),
        (
            "<video src=x poster=y><source src=z><track src=w></video>",
            &["Media /b/x", "Media /b/y", "Media /b/z", "Media /b/w"],
        ),
        ("<audio src=x></audio>", &["Media /b/x"]),
        ("<embed src=x><object data=y></object>", &["Embed /b/x", "Embed /b/y"]),
        ("<input type=IMAGE src=x><input type=text src=y>", &["Image /b/x"]),
        (
            "<body background=x><table background=y><td background=z>",
            &["Image /b/x", "Image /b/y", "Image /b/z"],
        ),
        ("<script src=x></script>", &["Script /b/x"]),
        ("<meta http-equiv=refresh content='0; url=x'>", &["Refresh /b/x"]),
        ("<style>@import 'x'; a { b: url(y) }</style>", &["StyleImport /b/x", "StyleResource /b/y"]),
        ("<p style='a: url(&quot;x&quot;)'>", &["StyleResource /b/x"]),
        (
            "<svg><image xlink:href=x /><use href=y#z /><a xlink:href=w>",
            &["Image /b/x", "Image /b/y", "Anchor /b/w"],
        ),
        ("<noscript><img src=x></noscript>", &["Image /b/x"]),
        ("<noframes><a href=x></noframes>", &["Anchor /b/x"]),
        ("<template><a href=x></template>", &["Anchor /b/x"]),
    ] {
        assert_eq!(links(html), expected, "{html}");
    }
}

#[test]
fn what_looks_like_a_link_and_is_none() {
    for html in [
        "<!-- <a href=x> -->",
        "<script>document.write('<a href=x>')</script>",
        "<script><!-- <script> </script> <a href=x> --></script>",
        "<style><a href=x></style>",
        "<title><a href=x></title>",
        "<textarea><a href=x></textarea>",
        "<xmp><a href=x></xmp>",
        "<iframe><a href=x></iframe>",
        "<plaintext><a href=x>",
        "<p title='<a href=x>'>",
        "<a name=x>",
        "<a href='#x'>",
        "<a href='javascript:x()'>",
        "<a href=x",
        "<svg><![CDATA[<a href=x>]]></svg>",
    ] {
        assert!(links(html).is_empty(), "{html}");
    }
}

#[test]
fn a_base_counts_for_the_whole_head_and_once() {
    let html = "<head><link rel=icon href=i><base href='/d/'><base href='/e/'><style>a{b:url(s)}</style>
        <body><base href=/f/><a href=x>";
    assert_eq!(links(html), ["Icon /d/i", "StyleResource /d/s", "Anchor /d/x"]);
    assert_eq!(links("<base href='http://o.example/'><a href=x>"), ["Anchor http://o.example/x"]);
    assert_eq!(links("<base href='data:x'><a href=x>"), ["Anchor /b/x"]);
    assert_eq!(links("<base target=x><base href=/d/><a href=x>"), ["Anchor /d/x"]);
}

#[test]
fn nofollow_and_robots() {
    let (facts, links) = read_all(
        "<meta name=ROBOTS content=noindex><meta name=archive content=noarchive>
        <meta name=other content=nofollow><a rel='external NoFollow' href=x><a href=y>",
    );
    assert_eq!(facts.robots, RobotsDirectives { noindex: true, nofollow: false, noarchive: true });
    assert_eq!(links.iter().map(|link| link.nofollow).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn text_is_what_a_reader_sees() {
    for (html, expected) in [
        ("<p>one<p>two", "one\ntwo"),
        ("<b>o</b>ne t<i>wo</i>", "one two"),
        ("a<br>b<div>c</div>d", "a\nb\nc\nd"),
        ("<td>a</td><td>b</td>", "a\nb"),
        ("a<img src=x>b", "a b"),
        ("caf&eacute; &amp;&nbsp;co &lt;x&gt;", "caf\u{e9} & co <x>"),
        (
            "<title>x</title>a<script>b</script><style>c</style><textarea>d</textarea><noscript>e</noscript>",
            "a",
        ),
        ("a<svg><title>b</title><text>c</text></svg>d", "a d"),
        ("a<template>b</template>c", "a\nc"),
        ("a < b", "a < b"),
        ("<pre>a\n  b</pre>", "a b"),
        ("", ""),
    ] {
        assert_eq!(read_all(html).0.text, expected, "{html}");
    }
}

#[test]
fn titles() {
    let title = |html: &str| read_all(html).0.title;
    assert_eq!(title("<title> One\n&amp; two </title><title>three</title>"), "One & two");
    assert_eq!(title("<svg><title>x</title></svg><title>y</title>"), "y");
    assert_eq!(title("<meta property=og:title content='x &amp; y'>"), "x & y");
    assert_eq!(title(&format!("<title>{}</title>", "é".repeat(TITLE_BYTES_MAX))).len(), TITLE_BYTES_MAX);
}

#[test]
fn language_and_canonical() {
    let (facts, _) = read_all("<html lang=' de-AT '><link rel=canonical href='/x?utm_source=y'>");
    assert_eq!(facts.language.as_deref(), Some("de-AT"));
    assert_eq!(facts.canonical.as_deref(), Some("http://a.example/x?utm_source=y"));
}

#[test]
fn surroundings_are_marked() {
    let (facts, _) =
        read_all("<nav>menu</nav><p>one<div class='top ad-box'><div>buy</div></div><p>two<footer>c</footer>");
    let marked: Vec<_> =
        facts.marks.surroundings.iter().map(|range| facts.text[range.clone()].trim()).collect();
    assert_eq!(facts.text, "menu\none\nbuy\ntwo\nc");
    assert_eq!(marked, ["menu", "buy", "c"]);
    let (facts, _) =
        read_all("<header>site</header><main><header>page</header><button>copy</button></main><header>x");
    let marked: Vec<_> =
        facts.marks.surroundings.iter().map(|range| facts.text[range.clone()].trim()).collect();
    assert_eq!(marked, ["site", "copy"]);
}

/// Returns all text of a document as found by our tokenizer, raw texts in brackets.
fn texts(html: &str) -> String {
    let mut found = String::new();
    let (mut markup, mut namespaces) = (Markup::of(html), Namespaces::default());
    while let Some(token) = markup.next_token() {
        let (element, may_be_raw) = match token {
            HtmlToken::Text(text) => {
                found += text;
                continue;
            }
            HtmlToken::PlainText("") | HtmlToken::Conditional(_) => continue,
            HtmlToken::PlainText(text) => {
                found += &format!("[{text}]");
                continue;
            }
            HtmlToken::Tag(tag) => {
                let element = HtmlElement::of(tag.name);
                let may_be_raw = !tag.is_end && !namespaces.is_foreign();
                namespaces.meet(element, &tag);
                (element, may_be_raw)
            }
        };
        markup.allow_cdata(namespaces.is_foreign());
        let raw = if may_be_raw { markup.raw_text_of(element) } else { None }.unwrap_or_default();
        if !raw.is_empty() {
            found += &format!("[{raw}]");
        }
    }
    found
}

/// The same by `lol_html`.
fn texts_by_judge(html: &str) -> String {
    use lol_html::html_content::TextType;
    use lol_html::{HtmlRewriter, Settings, doc_text};

    let (mut found, mut raw, mut end) = (String::new(), String::new(), 0);
    {
        let handler = doc_text!(|chunk| {
            let range = chunk.source_location().bytes();
            let is_new = range.start != end && !raw.is_empty();
            if is_new || chunk.text_type() == TextType::Data && !raw.is_empty() {
                found += &format!("[{}]", std::mem::take(&mut raw));
            }
            end = range.end;
            let text = &html[range];
            if chunk.text_type() == TextType::Data { &mut found } else { &mut raw }.push_str(text);
            Ok(())
        });
        let settings = Settings::new().with_strict(false).append_document_content_handler(handler);
        let mut rewriter = HtmlRewriter::new(settings, |_: &[u8]| {});
        rewriter.write(html.as_bytes()).unwrap();
        rewriter.end().unwrap();
    }
    if !raw.is_empty() {
        found += &format!("[{raw}]");
    }
    found
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(20_000))]

    #[test]
    fn texts_are_those_that_another_tokenizer_finds(
        pieces in proptest::collection::vec(proptest::sample::select(PIECES.as_slice()), 0..14)
    ) {
        let html = pieces.concat();
        proptest::prop_assert_eq!(texts(&html), texts_by_judge(&html), "{}", html);
        for syntax in [MarkupSyntax::Html, MarkupSyntax::Xml] {
            let mut outlinks = Outlinks::without_links();
            let facts = read(&html, encoding_rs::UTF_8, syntax, "", &mut outlinks);
            proptest::prop_assert_eq!(text(&html, syntax), facts.text, "{}", html);
        }
    }
}

const PIECES: [&str; 66] = [
    "a",
    "b ",
    "<",
    "< ",
    ">",
    "-",
    "--",
    "!",
    "/",
    "\"",
    "'",
    "=",
    "&amp;",
    "é",
    "<a b='c>'>",
    "<p>",
    "</p>",
    "<A B=\"c\" d=e/>",
    "<br/>",
    "</",
    "</>",
    "</3>",
    "<!-- c -->",
    "<!-->",
    "<!--->",
    "<!--",
    "-->",
    "--!>",
    "<!doctype html>",
    "<?x?>",
    "<![CDATA[",
    "]]>",
    "<script>",
    "</script>",
    "</SCRIPT >",
    "<script",
    "</script",
    "<style>",
    "</style>",
    "<title>",
    "</title>",
    "<textarea>",
    "</textarea>",
    "<xmp>",
    "</xmp/>",
    "<iframe>",
    "</iframe>",
    "<noscript>",
    "</noscript>",
    "<noembed>",
    "</noembed>",
    "<noframes>",
    "</noframes>",
    "<svg>",
    "</svg>",
    "<desc>",
    "</desc>",
    "<foreignObject>",
    "</foreignObject>",
    "<math>",
    "</math>",
    "<mi>",
    "</mi>",
    "<font color=x>",
    "<annotation-xml encoding=text/html>",
    "</annotation-xml>",
];

#[test]
fn what_names_parts_and_links_is_marked() {
    let html =
        "<title>t</title><h1><div>One  <b>two</b></div></h1><p>text<dl><dt id=x>Term<dd>What it is</dl>\
                <table><caption>Numbers</caption></table><h2></h2><p><a href=/a>Read <i>more</i></a> or \
                <a href=/b><img src=i></a><a href=/c>this<p><a href=/a>again</a><template><h3>no</h3>\
                <a href=/d>no</a></template><h3>"
            .to_owned()
            + &"long ".repeat(100)
            + "</h3>";
    let (facts, links) = read_all(&html);
    let of = |range: &std::ops::Range<usize>| facts.text[range.clone()].to_owned();
    let headings: Vec<String> = facts.marks.headings.iter().map(of).collect();
    assert_eq!(headings, ["One two", "Term", "Numbers"]);
    let said =
        facts.marks.link_texts.iter().map(|said| (links[said.link as usize].url.clone(), of(&said.range)));
    let expected = [("/a", "Read more"), ("/c", "this"), ("/a", "again")];
    let expected = expected.map(|(path, text)| (format!("http://a.example{path}"), text.to_owned()));
    assert_eq!(said.collect::<Vec<_>>(), expected);
}
