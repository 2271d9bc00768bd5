//! Every kind of link, each in its own document that contains a single link, to `x`.

use LinkKind::*;
use archive_web::parse::{FetchedDocument, LinkKind, parse};
use url::Url;

/// URL of a document, and of its link target.
const DOCUMENT: &str = "http://a.example/b/c";
const TARGET: &str = "http://a.example/b/x";

/// Media type, document, and the role of the link.
type Case = (&'static str, &'static str, LinkKind);

const HTML: &str = "text/html";
const XML: &str = "application/xml";
const CSS: &str = "text/css";

fn links(media_type: &str, headers: &[(&str, &[u8])], body: &str, status: u16) -> Vec<(String, LinkKind)> {
    let url = Url::parse(DOCUMENT).unwrap();
    let source =
        FetchedDocument { url: &url, status, content_type: Some(media_type), headers, body: body.as_bytes() };
    let parsed = parse(&source, &archive_web::parse::ParseLimits::default());
    parsed.links.into_iter().map(|link| (link.url, link.kind)).collect()
}

fn check(cases: &[Case]) {
    for (media_type, document, kind) in cases {
        assert_eq!(links(media_type, &[], document, 200), [(TARGET.to_owned(), *kind)], "{document}");
    }
}

#[test]
fn html_links_to_documents() {
    check(&[
        (HTML, "<a href=x>", Anchor),
        (HTML, "<map><area href=x></map>", Area),
        (HTML, "<link rel=canonical href=x>", Canonical),
        (HTML, "<link rel=alternate hreflang=de href=x>", Alternate),
        (HTML, "<link rel=next href=x>", Related),
        (HTML, "<link rel=license href=x>", Related),
        (HTML, "<link rel=amphtml href=x>", Related),
        (HTML, "<link rel=top href=x>", Related),
        (HTML, "<link rel=feed href=x>", Related),
        (HTML, "<link rel=sitemap href=x>", Sitemap),
        (HTML, "<link itemprop=url href=x>", Related),
        (HTML, "<iframe src=x></iframe>", InlineFrame),
        (HTML, "<iframe srcdoc=\"<a href='x'>\"></iframe>", Anchor),
        (HTML, "<iframe srcdoc='&lt;iframe srcdoc=\"&amp;lt;a href=x&amp;gt;\"&gt;'></iframe>", Anchor),
        (HTML, "<iframe data-src=x></iframe>", InlineFrame),
        (HTML, "<frameset><frame src=x></frameset>", Frame),
        (HTML, "<frameset><frame longdesc=x></frameset>", Related),
        (HTML, "<layer src=x></layer>", Frame),
        (HTML, "<img longdesc=x>", Related),
        (HTML, "<img usemap='x#map'>", Related),
        (HTML, "<blockquote cite=x></blockquote>", Related),
        (HTML, "<q cite=x></q>", Related),
        (HTML, "<ins cite=x></ins>", Related),
        (HTML, "<del cite=x></del>", Related),
        (HTML, "<head profile=x>", Related),
        (HTML, "<form action=x>", Form),
        (HTML, "<form method=GET action=x>", Form),
        (HTML, "<meta http-equiv=refresh content='0; url=x'>", Refresh),
        (HTML, "<meta property=og:url content='/b/x'>", Related),
        (HTML, "<meta name=citation_pdf_url content='/b/x'>", Related),
        (HTML, "<meta name=twitter:player content='/b/x'>", Related),
        (HTML, "<tr data-href='/b/x'>", Related),
        (HTML, "<noscript><a href=x></noscript>", Anchor),
        (HTML, "<noframes><a href=x></noframes>", Anchor),
        (HTML, "<template><a href=x></template>", Anchor),
        (HTML, "<!--[if IE]><a href=x><![endif]-->", Anchor),
        (HTML, "<svg><a href=x></a></svg>", Anchor),
        (HTML, "<svg><a xlink:href=x></a></svg>", Anchor),
        (HTML, "<math><mrow href=x></mrow></math>", Anchor),
        (HTML, "<script>location.href = 'x';</script>", ScriptTarget),
        (HTML, "<script>window.open('x')</script>", ScriptTarget),
        (HTML, "<script type=application/ld+json>{\"url\": \"x\"}</script>", Related),
    ]);
}

#[test]
fn html_links_to_its_parts() {
    check(&[
        (HTML, "<link rel=stylesheet href=x>", Stylesheet),
        (HTML, "<link rel='alternate stylesheet' href=x>", Stylesheet),
        (HTML, "<link rel=icon href=x>", Icon),
        (HTML, "<link rel='shortcut icon' href=x>", Icon),
        (HTML, "<link rel=apple-touch-icon href=x>", Icon),
        (HTML, "<link rel=image_src href=x>", Icon),
        (HTML, "<link rel=preload href=x>", Preload),
        (HTML, "<link rel=preload imagesrcset='x 2x'>", ImageSource),
        (HTML, "<link rel=modulepreload href=x>", Preload),
        (HTML, "<link rel=prefetch href=x>", Preload),
        (HTML, "<link rel=prerender href=x>", Preload),
        (HTML, "<link rel=import href=x>", Preload),
        (HTML, "<link rel=manifest href=x>", WebManifest),
        (HTML, "<html manifest=x>", WebManifest),
        (HTML, "<link itemprop=image href=x>", Image),
        (HTML, "<script src=x></script>", Script),
        (HTML, "<img src=x>", Image),
        (HTML, "<img srcset='x 2x'>", ImageSource),
        (HTML, "<img lowsrc=x>", Image),
        (HTML, "<img dynsrc=x>", Media),
        (HTML, "<img data-src='./x'>", LazyImage),
        (HTML, "<img data-srcset='x 2x'>", LazyImage),
        (HTML, "<img data-original='/b/x'>", LazyImage),
        (HTML, "<img data-lazy-src='/b/x'>", LazyImage),
        (HTML, "<div data-background='/b/x'></div>", LazyImage),
        (HTML, "<div data-bg='/b/x'></div>", LazyImage),
        (HTML, "<amp-img src=x></amp-img>", Image),
        (HTML, "<picture><source srcset=x></picture>", ImageSource),
        (HTML, "<input type=image src=x>", Image),
        (HTML, "<video src=x></video>", Media),
        (HTML, "<video poster=x></video>", Media),
        (HTML, "<video><source src=x></video>", Media),
        (HTML, "<video><track src=x></video>", Media),
        (HTML, "<audio src=x></audio>", Media),
        (HTML, "<bgsound src=x>", Media),
        (HTML, "<embed src=x>", Embed),
        (HTML, "<object data=x></object>", Embed),
        (HTML, "<object classid=x></object>", Embed),
        (HTML, "<object archive=x></object>", Embed),
        (HTML, "<object codebase='/b/' data=x></object>", Embed),
        (HTML, "<object><param name=movie value='./x'></object>", Embed),
        (HTML, "<object><param name=y valuetype=ref value=x></object>", Embed),
        (HTML, "<applet code=x></applet>", Embed),
        (HTML, "<applet codebase='/b/' archive=x></applet>", Embed),
        (HTML, "<xml src=x></xml>", Embed),
        (HTML, "<body background=x>", Image),
        (HTML, "<table background=x>", Image),
        (HTML, "<table><td background=x>", Image),
        (HTML, "<p style='a: url(x)'>", StyleResource),
        (HTML, "<style>@import 'x';</style>", StyleImport),
        (HTML, "<style>a { b: url(x) }</style>", StyleResource),
        (HTML, "<noscript><img src=x></noscript>", Image),
        (HTML, "<!--[if lt IE 9]><script src=x></script><![endif]-->", Script),
        (HTML, "<meta property=og:image content='/b/x'>", Image),
        (HTML, "<meta property=og:video content='/b/x'>", Media),
        (HTML, "<meta name=twitter:image content='/b/x'>", Image),
        (HTML, "<meta name=msapplication-TileImage content='/b/x'>", Image),
        (HTML, "<meta itemprop=image content='/b/x'>", Image),
        (HTML, "<svg><image href=x /></svg>", Image),
        (HTML, "<svg><image xlink:href=x /></svg>", Image),
        (HTML, "<svg><use href='x#y'/></svg>", Image),
        (HTML, "<svg><feImage href=x /></svg>", Image),
        (HTML, "<svg><linearGradient xlink:href='x#y'/></svg>", Image),
        (HTML, "<svg><script href=x></script></svg>", Script),
        (HTML, "<svg><script xlink:href=x></script></svg>", Script),
        (HTML, "<math altimg=x></math>", Image),
        (HTML, "<math><mglyph src=x></math>", Image),
        (HTML, "<script type='application/ld+json'>{\"image\": [\"x\"]}</script>", Image),
    ]);
}

#[test]
fn what_needs_its_base_or_more_than_one_attribute() {
    let all = |document: &str| links(HTML, &[], document, 200);
    let codebase = all("<applet codebase=d/ code=x archive='y,z'></applet>");
    let urls: Vec<_> = codebase.iter().map(|(url, _)| url.as_str()).collect();
    assert_eq!(urls, ["http://a.example/b/d/x", "http://a.example/b/d/y", "http://a.example/b/d/z"]);
    assert_eq!(all("<base href='/e/'><iframe srcdoc='<img src=x>'>")[0].0, "http://a.example/e/x");
    for none in [
        "<form method=post action=x>",
        "<input src=x>",
        "<param name=y value=x>",
        "<param name=movie value=true>",
        "<img data-lazy='{{ ./x }}'>",
        "<img data-image=3.5>",
        "<meta name=image content='a picture'>",
        "<object classid='clsid:1'>",
        "<link rel=dns-prefetch href=x>",
        "<link href=x>",
        "<script>var x = 'x'</script>",
        "<script type='application/ld+json'>{\"name\": \"x\"}</script>",
        "<!-- [if IE]><a href=x><![endif]-->",
    ] {
        assert_eq!(all(none), [], "{none}");
    }
}

#[test]
fn style_sheets_and_data() {
    check(&[
        (CSS, "@import 'x';", StyleImport),
        (CSS, "@import url(x) screen;", StyleImport),
        (CSS, "a { b: url('x') }", StyleResource),
        (CSS, "@font-face { src: url(x) format('woff2') }", StyleResource),
        (CSS, "a { b: image-set('x' type('image/png') 2x) }", StyleResource),
        (CSS, "a { b: src('x') }", StyleResource),
        (CSS, "a { behavior: url(x) }", StyleResource),
        (CSS, "a{filter:progid:DXImageTransform.Microsoft.AlphaImageLoader(src='x')}", StyleResource),
        ("application/manifest+json", "{\"icons\": [{\"src\": \"x\"}]}", Icon),
        ("application/json", "{\"start_url\": \"x\"}", Related),
        ("application/feed+json", "{\"items\": [{\"url\": \"x\"}]}", Related),
    ]);
    assert_eq!(links("application/json", &[], "{\"url\": \"x\"}", 200), []);
}

#[test]
fn heads_of_messages() {
    for (status, name, value, kind) in [
        (200, "Link", &b"<x>; rel=next"[..], Related),
        (200, "Link", b"<x>; rel=preload; as=style", Preload),
        (200, "Link", b"<x>; rel=\"canonical\"", Canonical),
        (200, "Refresh", b"0; url=x", Refresh),
        (301, "Location", b"x", Redirect),
        (200, "Content-Location", b"x", Alternate),
        (200, "SourceMap", b"x", Speculative),
    ] {
        let found = links(HTML, &[(name, value)], "", status);
        assert_eq!(found, [(TARGET.to_owned(), kind)], "{name}");
    }
}

const SVG: &str = "image/svg+xml";
const XHTML: &str = "application/xhtml+xml";

#[test]
fn xml_of_all_kinds() {
    check(&[
        (XML, "<?xml-stylesheet href='x'?><a/>", XmlStylesheet),
        (XHTML, "<?xml version='1.0'?><?xml-stylesheet href='x'?><html/>", XmlStylesheet),
        (XHTML, "<html><script src='http://a.example/b/x'/><p>y</p></html>", Script),
        (XML, "<!DOCTYPE a SYSTEM 'x'><a/>", Dtd),
        (XML, "<a xmlns:i='http://www.w3.org/2001/XInclude'><i:include href='x'/></a>", XInclude),
        (XML, "<a xmlns:l='http://www.w3.org/1999/xlink' l:href='x'/>", XLink),
        (XML, "<opml><outline xmlUrl='x'/></opml>", Anchor),
        (XML, "<opml><outline htmlUrl='x'/></opml>", Anchor),
        (XML, "<ncx><content src='x'/></ncx>", Embed),
        (XML, "<a><location>http://a.example/b/x</location></a>", Reference),
        (XML, "<d xmlns:h='http://www.w3.org/1999/xhtml'><h:img srcset='x 2x'/></d>", ImageSource),
        (SVG, "<svg xmlns='http://www.w3.org/2000/svg'><image href='x'/></svg>", Image),
        (SVG, "<svg xmlns='http://www.w3.org/2000/svg'><a href='x'/></svg>", Anchor),
        (SVG, "<svg xmlns='http://www.w3.org/2000/svg'><script href='x'/></svg>", Script),
        (
            SVG,
            "<svg xmlns='http://www.w3.org/2000/svg' xmlns:l='http://www.w3.org/1999/xlink'><script l:href='x'/></svg>",
            Script,
        ),
        (SVG, "<svg xmlns='http://www.w3.org/2000/svg'><style>@import 'x';</style></svg>", StyleImport),
        (SVG, "<svg xmlns='http://www.w3.org/2000/svg'><g style='a: url(x)'/></svg>", StyleResource),
        (XML, "<urlset><url><loc>http://a.example/b/x</loc></url></urlset>", SitemapEntry),
        (XML, "<urlset><url><link href='x'/></url></urlset>", SitemapEntry),
        (XML, "<urlset><url><image><loc>x</loc></image></url></urlset>", Enclosure),
        (XML, "<urlset><url><video><player_loc>x</player_loc></video></url></urlset>", Enclosure),
        (XML, "<sitemapindex><sitemap><loc>x</loc></sitemap></sitemapindex>", Sitemap),
    ]);
}

/// An item of RSS and an entry of Atom that contain nothing else.
#[test]
fn feeds() {
    let wrap = |item: &str, is_atom: bool| {
        let names = "xmlns:itunes='http://www.itunes.com/dtds/podcast-1.0.dtd' xmlns:media='http://search.yahoo.com/mrss/'";
        match is_atom {
            true => format!("<feed xmlns='http://www.w3.org/2005/Atom' {names}><entry>{item}</entry></feed>"),
            false => format!("<rss {names}><channel><item>{item}</item></channel></rss>"),
        }
    };
    for (is_atom, item, kind) in [
        (false, "<link>x</link>", FeedEntry),
        (false, "<guid>http://a.example/b/x</guid>", FeedEntry),
        (false, "<enclosure url='x'/>", Enclosure),
        (false, "<media:content url='x'/>", Enclosure),
        (false, "<media:group><media:content url='x'/></media:group>", Enclosure),
        (false, "<media:thumbnail url='x'/>", Image),
        (false, "<media:player url='x'/>", Related),
        (false, "<itunes:image href='x'/>", Image),
        (false, "<comments>x</comments>", Related),
        (false, "<source url='x'>y</source>", Related),
        (false, "<description>&lt;a href='x'></description>", Anchor),
        (false, "<description><![CDATA[<img src='x'>]]></description>", Image),
        (true, "<link href='x'/>", FeedEntry),
        (true, "<link rel='enclosure' href='x'/>", Enclosure),
        (true, "<link rel='related' href='x'/>", Related),
        (true, "<content src='x' type='text/html'/>", FeedEntry),
        (true, "<content type='html'>&lt;a href='x'></content>", Anchor),
        (
            true,
            "<content type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'><img srcset='x 2x'/></div></content>",
            ImageSource,
        ),
        (true, "<content mode='base64'>PGEgaHJlZj0ieCI+</content>", Anchor),
        (true, "<author><uri>x</uri></author>", Related),
        (true, "<source><id>y</id><title>z</title><link href='x'/></source>", Related),
        (true, "<link href='x'/><source><title>Planet z</title><id>urn:1</id></source>", FeedEntry),
    ] {
        let document = wrap(item, is_atom);
        assert_eq!(links(XML, &[], &document, 200), [(TARGET.to_owned(), kind)], "{item}");
    }
    let channel = "<rss xmlns:itunes='http://www.itunes.com/dtds/podcast-1.0.dtd'><channel><itunes:image href='x'/></channel></rss>";
    assert_eq!(links(XML, &[], channel, 200), [(TARGET.to_owned(), Icon)]);
}

/// Hidden content is not text, and encoded content is decoded.
#[test]
fn text_is_what_a_reader_sees() {
    let read = |media_type: &str, body: &str| {
        let parsed = super::read(DOCUMENT, media_type, body.as_bytes());
        (parsed.title, parsed.text)
    };
    let text = |body: &str| read(XML, body).1;
    let script = "<h:script xmlns:h='http://www.w3.org/1999/xhtml'>var a;</h:script>";
    assert_eq!(text(&format!("<d>{script}b</d>")), "b");
    assert_eq!(
        text(
            "<h:html xmlns:h='http://www.w3.org/1999/xhtml'><h:script>var a;</h:script><h:p>b</h:p></h:html>"
        ),
        "b"
    );
    assert_eq!(
        text(
            "<svg xmlns='http://www.w3.org/2000/svg'><style>a{}</style><script>x</script><text>b</text></svg>"
        ),
        "b"
    );
    assert_eq!(read(XHTML, "<html><head><title/><script src='x'/></head><body>b</body></html>").1, "b");
    let entry = |content: &str| text(&format!("<feed><entry>{content}</entry></feed>"));
    assert_eq!(entry("<content mode='base64'>PGI+YjwvYj4=</content>"), "b");
    assert_eq!(entry("<content type='application/pdf'>JVBERi0xLjcKJf8=</content>"), "");
    assert_eq!(
        entry(
            "<content type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'><script>x</script>b</div></content>"
        ),
        "b"
    );
    for (feed, title) in [
        ("<rss><channel><title>A &lt;b&gt;b&lt;/b&gt; &amp;amp; c</title></channel></rss>", "A b & c"),
        ("<rss><channel><title><![CDATA[A <i>b</i>]]></title></channel></rss>", "A b"),
        ("<feed><title type='html'>A &lt;b>b&lt;/b></title></feed>", "A b"),
        ("<feed><title type='text'>1 &lt;a> 2</title></feed>", "1 <a> 2"),
    ] {
        assert_eq!(read(XML, feed).0, title, "{feed}");
    }
}
