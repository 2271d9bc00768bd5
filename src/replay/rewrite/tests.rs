use archive_web::parse::html::{HtmlElement, MarkupSyntax, role};
use encoding_rs::{EUC_JP, Encoding, UTF_8, WINDOWS_1251};
use proptest::prelude::*;
use url::Url;

use super::html::{self, Additions};
use super::{LinkRewriter, WRITTEN_BYTES_MAX, css, playlist, xml};
use crate::address::Modifier;

fn links() -> LinkRewriter {
    LinkRewriter::new(Url::parse("http://a.org/b/c.html").ok(), "20200101000000".to_owned(), Modifier::Page)
}

fn rewritten(html: &str) -> String {
    in_encoding(html.as_bytes(), UTF_8)
}

fn in_encoding(html: &[u8], encoding: &'static Encoding) -> String {
    let new = html::rewrite(html, encoding, MarkupSyntax::Html, links(), Additions::default());
    encoding.decode_without_bom_handling(&new.unwrap_or(html.to_vec())).0.into_owned()
}

fn added(html: &str, syntax: MarkupSyntax, additions: Additions<'_>) -> String {
    let new = html::rewrite(html.as_bytes(), UTF_8, syntax, links(), additions);
    String::from_utf8(new.unwrap_or(html.into())).unwrap()
}

/// `M|URL` in an expectation is the address of the URL with this modifier.
fn expected(text: &str) -> String {
    let mut all = String::new();
    for (number, piece) in text.split('|').enumerate() {
        if number > 0 {
            let start = all.len() - if all.ends_with('_') { 3 } else { 0 };
            let modifier = all.split_off(start);
            all.push_str(&format!("/web/20200101000000{modifier}/"));
        }
        all.push_str(piece);
    }
    all
}

#[test]
fn every_construct_of_html() {
    for (html, new) in [
        ("<a href=d.html#x>", "<a href=\"|http://a.org/b/d.html#x\">"),
        ("<a href='?a=1&amp;b=2'>", "<a href=\"|http://a.org/b/c.html?a=1&amp;b=2\">"),
        ("<a href=/x href=http://b.org/>", "<a href=\"|http://a.org/x\" href=http://b.org/>"),
        ("<a href='#x' href=http://b.org/>", "<a href='#x' href=http://b.org/>"),
        ("<p integrity=a integrity=b>", "<p>"),
        ("<p integrity='a'class=b ping>", "<p class=b>"),
        ("<p a\"integrity=x>", "<p a\"integrity=x>"),
        ("<p b\" integrity>", "<p b\">"),
        ("<a href=>x<a href= /x >", "<a href=>x<a href= \"|http://a.org/x\" >"),
        ("<a href='#x'>", "<a href='#x'>"),
        ("<a href=''>", "<a href=''>"),
        ("<a href='mailto:a@b.org'>", "<a href='mailto:a@b.org'>"),
        ("<a href='javascript:f()'>", "<a href='javascript:f()'>"),
        ("<A HREF=//b.org PING=http://c.org>", "<A HREF=\"|http://b.org/\">"),
        ("<area href=/x>", "<area href=\"|http://a.org/x\">"),
        ("<img src=../i.png alt='src=x'>", "<img src=\"im_|http://a.org/i.png\" alt='src=x'>"),
        ("<img src=data:image/png;base64,x>", "<img src=data:image/png;base64,x>"),
        (
            "<img srcset='a.png 1x, https://b.org/b.png 2x'>",
            "<img srcset=\"im_|http://a.org/b/a.png 1x, im_|https://b.org/b.png 2x\">",
        ),
        ("<img data-src=/l.png loading=lazy>", "<img data-src=\"im_|http://a.org/l.png\" loading=lazy>"),
        ("<img data-src=l.png>", "<img data-src=l.png>"),
        (
            "<script src=s.js integrity=sha256-x></script>",
            "<script src=\"js_|http://a.org/b/s.js\"></script>",
        ),
        ("<link rel=stylesheet href=s.css>", "<link rel=stylesheet href=\"cs_|http://a.org/b/s.css\">"),
        (
            "<link rel=preload as=style href=s.css>",
            "<link rel=preload as=style href=\"cs_|http://a.org/b/s.css\">",
        ),
        ("<link rel=icon href=i.ico>", "<link rel=icon href=\"im_|http://a.org/b/i.ico\">"),
        ("<link rel=preconnect href=http://b.org>", "<link rel=preconnect>"),
        ("<link rel=canonical href=/c>", "<link rel=canonical href=\"|http://a.org/c\">"),
        ("<iframe src=f.html></iframe>", "<iframe src=\"if_|http://a.org/b/f.html\"></iframe>"),
        (
            "<iframe srcdoc='&lt;img src=x>'></iframe>",
            "<iframe srcdoc=\"&lt;img src=&quot;im_|http://a.org/b/x&quot;>\"></iframe>",
        ),
        ("<iframe sandbox srcdoc=x></iframe>", "<iframe sandbox=\" allow-same-origin\" srcdoc=x></iframe>"),
        ("<frame src=f.html>", "<frame src=\"fr_|http://a.org/b/f.html\">"),
        (
            "<object data=o.swf codebase=/p/></object>",
            "<object data=\"oe_|http://a.org/p/o.swf\" codebase=\"oe_|http://a.org/p/\"></object>",
        ),
        ("<embed src=o.swf>", "<embed src=\"oe_|http://a.org/b/o.swf\">"),
        (
            "<video src=v.mp4 poster=p.png></video>",
            "<video src=\"oe_|http://a.org/b/v.mp4\" poster=\"oe_|http://a.org/b/p.png\"></video>",
        ),
        ("<source src=v.mp4>", "<source src=\"oe_|http://a.org/b/v.mp4\">"),
        ("<form action=/q method=post>", "<form action=\"|http://a.org/q\" method=post>"),
        ("<button formaction=/q>", "<button formaction=\"|http://a.org/q\">"),
        ("<input type=image src=i.png>", "<input type=image src=\"im_|http://a.org/b/i.png\">"),
        ("<body background=b.png>", "<body background=\"im_|http://a.org/b/b.png\">"),
        (
            "<p style='background:url(&quot;x.png&quot;)'>",
            "<p style=\"background:url(&quot;im_|http://a.org/b/x.png&quot;)\">",
        ),
        (
            "<style>@import 'x.css';a{b:url(y)}</style>",
            "<style>@import 'cs_|http://a.org/b/x.css';a{b:url(im_|http://a.org/b/y)}</style>",
        ),
        ("<style>a>b{}</style>", "<style>a>b{}</style>"),
        (
            "<meta http-equiv=refresh content='5; url=x'>",
            "<meta http-equiv=refresh content=\"5; url=|http://a.org/b/x\">",
        ),
        ("<meta http-equiv=Content-Security-Policy content=x><p>", "<p>"),
        ("<meta name=referrer content=no-referrer><p>", "<p>"),
        (
            "<meta property=og:image content=/i.png>",
            "<meta property=og:image content=\"im_|http://a.org/i.png\">",
        ),
        ("<base href=/z/><a href=d>", "<base href=\"|http://a.org/z/\"><a href=\"|http://a.org/z/d\">"),
        (
            "<base target=_top><base href=/z/><base href=/y/><a href=d>",
            "<base target=_top><base href=\"|http://a.org/z/\"><base href=\"|http://a.org/z/y/\"><a href=\"|http://a.org/z/d\">",
        ),
        (
            "<svg><image xlink:href=i.png /><use href='#a'/><a xlink:href=d></a></svg>",
            "<svg><image xlink:href=\"im_|http://a.org/b/i.png\" /><use href='#a'/><a xlink:href=\"|http://a.org/b/d\"></a></svg>",
        ),
        (
            "<svg><style>a{b:url(x)}</style><style/><p style=\"c:url('y')\"><style>d{e:url(z)}",
            "<svg><style>a{b:url(im_|http://a.org/b/x)}</style><style/><p style=\"c:url('im_|http://a.org/b/y')\"><style>d{e:url(im_|http://a.org/b/z)}",
        ),
        ("<script>var x = '<a href=y>'</script>", "<script>var x = '<a href=y>'</script>"),
        ("<!-- <a href=y> -->", "<!-- <a href=y> -->"),
        (
            "<noscript><img src=i.png></noscript>",
            "<noscript><img src=\"im_|http://a.org/b/i.png\"></noscript>",
        ),
    ] {
        let new = expected(new)
            .replace("/web/20200101000000/http://a.org/z/y/", "/web/20200101000000/http://a.org/y/");
        assert_eq!(rewritten(html), new, "{html}");
    }
}

/// Rewrites a page for the address at which it is shown.
fn rewritten_at(place: &str, base: &str, html: &str) -> String {
    let links =
        LinkRewriter::new(Url::parse(base).ok(), "20200101000000".to_owned(), Modifier::Page).shown_at(place);
    let new = html::rewrite(html.as_bytes(), UTF_8, MarkupSyntax::Html, links, Additions::default());
    new.map_or_else(|| html.to_owned(), |new| String::from_utf8(new).unwrap())
}

#[test]
fn links_that_lead_there_by_themselves_stay() {
    let (base, place) = ("http://a.org/b/c.html", "/web/20200101000000/http://a.org/b/c.html");
    let query = format!("{place}?utm_source=x/y");
    for html in [
        "<a href=d.html#x>",
        "<a href=' d.html '>",
        "<AREA HREF='?a=1&amp;b=2#c'>",
        "<a href=../>",
        "<a href=../e/?f=../g:h>",
        "<svg><a xlink:href=d></a></svg>",
        "<iframe srcdoc='&lt;a href=d>'></iframe>",
        "<noscript><a href=d></noscript>",
    ] {
        assert_eq!(rewritten_at(place, base, html), html);
        assert_eq!(rewritten_at(&query, base, html), html);
        // Equivalent spelling of the address, and a different timestamp.
        for place in ["/web/20200101000000/a.org/b/c.html", "/web/2020/http://a.org/b/c.html"] {
            assert_ne!(rewritten_at(place, base, html), html);
        }
        assert_ne!(rewritten_at(&place.replace("00/", "00if_/"), base, html), html);
    }
    for (html, new) in [
        ("<a href=../../d>", "<a href=\"|http://a.org/d\">"),
        ("<a href=/d>", "<a href=\"|http://a.org/d\">"),
        ("<a href=//a.org/d>", "<a href=\"|http://a.org/d\">"),
        ("<a href=http:d>", "<a href=\"|http://a.org/b/d\">"),
        ("<a href=http://a.org/b/d>", "<a href=\"|http://a.org/b/d\">"),
        ("<a href=./d>", "<a href=\"|http://a.org/b/d\">"),
        ("<a href=d/../e>", "<a href=\"|http://a.org/b/e\">"),
        ("<a href='d e'>", "<a href=\"|http://a.org/b/d%20e\">"),
        ("<form action=d>", "<form action=\"|http://a.org/b/d\">"),
        ("<img src=d>", "<img src=\"im_|http://a.org/b/d\">"),
        ("<base href=/z/><a href=d>", "<base href=\"|http://a.org/z/\"><a href=d>"),
        ("<base href=//e.org><a href=d>", "<base href=\"|http://e.org/\"><a href=d>"),
        ("<base href=//e.org/?f#g><a href=?h>", "<base href=\"|http://e.org/?f#g\"><a href=?h>"),
        ("<base href=data:x><a href=d>", "<base href=data:x><a href=\"|http://a.org/b/d\">"),
        ("<base href='#x'><a href=d>", "<base href='#x'><a href=\"|http://a.org/b/d\">"),
    ] {
        assert_eq!(rewritten_at(place, base, html), expected(new), "{html}");
    }
}

#[test]
fn documents_inside_documents_end() {
    let inside = |html: &str| format!("<iframe srcdoc=\"{}\"></iframe>", htmlize::escape_attribute(html));
    let nested = |depth| (0..depth).fold("<img src=/x>".to_owned(), |html, _| inside(&html));
    assert!(rewritten(&nested(3)).contains("im_/http://a.org/x"));
    let too_deep = rewritten(&nested(4));
    assert!(!too_deep.contains("/x") && too_deep.contains("srcdoc"), "{too_deep}");
}

#[test]
fn scripts_in_documents() {
    for (html, new) in [
        ("<script>location.x</script>", "<script>@.x</script>"),
        ("<SCRIPT type=Module>f(location)</SCRIPT>", "<SCRIPT type=Module>f(@)</SCRIPT>"),
        (
            "<script type='text/javascript; x'>location</script>",
            "<script type='text/javascript; x'>@</script>",
        ),
        (
            "<script language=JavaScript1.2><!--\nlocation\n//--></script>",
            "<script language=JavaScript1.2><!--\n@\n//--></script>",
        ),
        ("<b onclick=\"location='/x'\">", "<b onclick=\"@='/x'\">"),
        ("<b ONLOAD=location.x&amp;&amp;'&quot;location'>", "<b ONLOAD=\"@.x&amp;&amp;'&quot;location'\">"),
        ("<a href='JavaScript:location=1'>", "<a href=\"JavaScript:@=1\">"),
        ("<noscript><script>location</script></noscript>", "<noscript><script>@</script></noscript>"),
    ] {
        assert_eq!(rewritten(html), new.replace('@', "_archive_location"), "{html}");
    }
    for html in [
        "<script type=application/json>{\"location\": location}</script>",
        "<script type=importmap>location</script>",
        "<script type=text/x-template>location</script>",
        "<script type=text/babel>location</script>",
        "<script>(location</script>",
        "<b onclick=\"f('location')\" class=location on=x>location",
        "<a href='javascript:location=%27x%27'>",
        "<textarea><script>location</script></textarea><svg><script>location</script></svg>",
    ] {
        assert_eq!(rewritten(html), html);
    }
    // An embedded document without our script requests scripts as they were captured.
    let inside = rewritten("<iframe srcdoc='<script src=/s.js></script>'></iframe>");
    assert!(inside.contains("/web/20200101000000mp_/http://a.org/s.js"), "{inside}");
    let (page, ..) =
        WINDOWS_1251.encode("<p title=Съешь onclick=\"location='я'\"><script>location = 'Съешь'</script>");
    let new = "<p title=Съешь onclick=\"_archive_location='я'\"><script>_archive_location = 'Съешь'</script>";
    assert_eq!(in_encoding(&page, WINDOWS_1251), new);
}

#[test]
fn scripts_in_xml() {
    let page = "<html><head/><script>//<![CDATA[\nif (a && location) b\n//]]></script><script>location</script><script>a &amp;&amp; location</script></html>";
    let new = page.replacen("&& location", "&& _archive_location", 1).replacen(
        ">location",
        ">_archive_location",
        1,
    );
    assert_eq!(
        added(page, MarkupSyntax::Xml, Additions { head: "<H/>", end: "", ..Additions::default() }),
        new.replace("<head/>", "<head/><H/>")
    );
    // An image gets nothing of ours.
    assert_eq!(added(page, MarkupSyntax::Xml, Additions::default()), page);
}

#[test]
fn style_sheets() {
    for (sheet, new) in [
        ("a{b:url( 'x y.png' )}", "a{b:url( 'im_|http://a.org/b/x%20y.png' )}"),
        ("@import url(x.css) print;", "@import url(cs_|http://a.org/b/x.css) print;"),
        ("a{b:url(x\\28 1\\29.png)}", "a{b:url(im_|http://a.org/b/x\\(1\\).png)}"),
        (
            "@font-face{src:url(f.woff2),url(\"f.woff\")}",
            "@font-face{src:url(im_|http://a.org/b/f.woff2),url(\"im_|http://a.org/b/f.woff\")}",
        ),
    ] {
        assert_eq!(css::rewrite(sheet, &links()), Some(expected(new)), "{sheet}");
    }
    for sheet in ["a{b:url(#x)}", "a{b:url(data:x)}", "@namespace url(http://x.org/);", "/* url(x) */"] {
        assert_eq!(css::rewrite(sheet, &links()), None, "{sheet}");
    }
}

#[test]
fn style_sheets_of_xml() {
    let document =
        "<?xml version=\"1.0\"?><?xml-stylesheet type='text/xsl' href='s.xsl?a=1&amp;b=2'?><a href='x'/>";
    let new = xml::rewrite(document, &links()).unwrap();
    assert_eq!(new, document.replace("s.xsl?", "/web/20200101000000cs_/http://a.org/b/s.xsl?"));
    assert_eq!(xml::rewrite("<?xml-stylesheet type='text/xsl'?><?xml-stylesheet href=", &links()), None);
}

#[test]
fn the_encoding_stays() {
    for (encoding, text) in [(WINDOWS_1251, "Съешь"), (EUC_JP, "日本語"), (UTF_8, "Съешь 日本語")]
    {
        let (bytes, ..) = encoding.encode(text);
        let page = [b"<a href=/x title='", &*bytes, b"'>", &*bytes, b"<style>a{b:'", &*bytes, b"'}</style>"]
            .concat();
        let new = in_encoding(&page, encoding);
        let address = "/web/20200101000000/http://a.org/x";
        assert_eq!(new, format!("<a href=\"{address}\" title='{text}'>{text}<style>a{{b:'{text}'}}</style>"));
    }
    // Bytes that are invalid in the encoding are preserved.
    let page = b"<a href=/x title='\xff\xfe'>\xff".as_slice();
    let new = html::rewrite(page, UTF_8, MarkupSyntax::Html, links(), Additions::default()).unwrap();
    assert!(new.ends_with(b" title='\xff\xfe'>\xff") && new.starts_with(b"<a href=\"/web/"));
    // Queries are encoded in the encoding of the document.
    let (bytes, ..) = WINDOWS_1251.encode("<a href='?q=я'>");
    assert!(in_encoding(&bytes, WINDOWS_1251).contains("?q=%FF"));
}

#[test]
fn what_is_added_stands_first_and_last() {
    let additions = Additions { head: "<H>", end: "<E>", ..Additions::default() };
    let add = |html: &str| added(html, MarkupSyntax::Html, additions);
    assert_eq!(add("<!doctype html><html><head><title>"), "<!doctype html><html><head><H><E><title>");
    assert_eq!(add("<!doctype html><p>x</p>"), "<!doctype html><H><p>x</p><E>");
    assert_eq!(add("text"), "text<E>");
    assert_eq!(add("<meta name=referrer content=x>"), "<H><E>");
    assert_eq!(add("<script>'<p>'"), "<H><E><script>'<p>'");
}

#[test]
fn a_script_leads_only_where_nothing_runs_before_it() {
    let is_led = |html: &str, syntax| {
        let is_led = std::cell::Cell::new(false);
        let additions = Additions { head: "<H/>", is_led: Some(&is_led), ..Additions::default() };
        assert_eq!(added(html, syntax, additions).contains("<H/>"), is_led.get(), "{html}");
        is_led.get()
    };
    for html in ["<p>", "<html><p>", "<!--><script>", "</x \"><script>", "<!doctype \"><p>", "<plaintext>"] {
        assert!(is_led(html, MarkupSyntax::Html), "{html}");
    }
    for html in ["", "text", "<html>", "<html", "<!-- <p> -->"] {
        assert!(!is_led(html, MarkupSyntax::Html), "{html}");
    }
    for xml in
        ["<html><p/></html>", "<?xml version='1.0'?><!DOCTYPE html PUBLIC \"a\" \"b\"><html><head/></html>"]
    {
        assert!(is_led(xml, MarkupSyntax::Xml), "{xml}");
    }
    for xml in [
        "<h:html><p/></h:html>",
        "<svg><script/></svg>",
        "<html/>",
        "<HTML><p/></HTML>",
        "<!DOCTYPE html [<!ENTITY x '<script/>'>]><html>&x;<p/></html>",
        "<!DOCTYPE html SYSTEM \"<html><p>\"><html><script/></html>",
        "<?xml-stylesheet href='x.xsl' type='text/xsl'?><html><p/></html>",
        "<?xml-stylesheet href='x.css' type='text/css' title='type'?><html><p/></html>",
    ] {
        assert!(!is_led(xml, MarkupSyntax::Xml), "{xml}");
    }
    let speculating = "<script type=' SpeculationRules'>{}</script>";
    assert_eq!(rewritten(speculating), "<script type=\"archived/speculationrules\">{}</script>");
}

#[test]
fn xml_ends_elements_with_their_start_tags() {
    let page = "<html><script src='s.js'/><style/><a href='d'/><style><![CDATA[a{b:url(x)}]]></style></html>";
    let new = page
        .replace("'s.js'", "\"/web/20200101000000js_/http://a.org/b/s.js\"")
        .replace("'d'", "\"/web/20200101000000/http://a.org/b/d\"")
        .replace("(x)", "(/web/20200101000000im_/http://a.org/b/x)");
    assert_eq!(added(page, MarkupSyntax::Xml, Additions::default()), new);
}

#[test]
fn a_document_that_would_be_too_long_stays() {
    let base = Url::parse(&format!("http://a.org/{}/", "x".repeat(16 << 10))).ok();
    let links = LinkRewriter::new(base, "20200101000000".to_owned(), Modifier::Page);
    let each = "<a href=y>";
    let one = html::rewrite(each.as_bytes(), UTF_8, MarkupSyntax::Html, links.clone(), Additions::default());
    let most = WRITTEN_BYTES_MAX / one.unwrap().len();
    for (count, is_rewritten) in [(most, true), (most + 1, false)] {
        let page = each.repeat(count);
        let new =
            html::rewrite(page.as_bytes(), UTF_8, MarkupSyntax::Html, links.clone(), Additions::default());
        assert_eq!(new.is_some(), is_rewritten, "{count}");
    }
}

/// Elements and attributes of HTML and SVG that load resources or link.
const ATTRIBUTES: [(&str, &str); 35] = [
    ("a", "href"),
    ("area", "href"),
    ("img", "src"),
    ("img", "srcset"),
    ("img", "lowsrc"),
    ("img", "longdesc"),
    ("img", "data-src"),
    ("img", "data-original"),
    ("img", "data-srcset"),
    ("script", "src"),
    ("link", "href"),
    ("iframe", "src"),
    ("frame", "src"),
    ("frame", "longdesc"),
    ("embed", "src"),
    ("object", "data"),
    ("object", "codebase"),
    ("video", "src"),
    ("video", "poster"),
    ("audio", "src"),
    ("source", "src"),
    ("source", "srcset"),
    ("track", "src"),
    ("form", "action"),
    ("button", "formaction"),
    ("input", "src"),
    ("body", "background"),
    ("table", "background"),
    ("blockquote", "cite"),
    ("q", "cite"),
    ("ins", "cite"),
    ("base", "href"),
    ("image", "xlink:href"),
    ("image", "href"),
    ("use", "xlink:href"),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_url_of_the_web_is_left(
        place in prop::sample::select(ATTRIBUTES.as_slice()),
        scheme in prop::sample::select(["http://", "https://", "//", "HTTP://", " http://", "http:\\\\", "/", "&#47;"].as_slice()),
        // Without h: what is counted below is only in a scheme.
        host in "[a-gi-z]{1,8}\\.(org|com)",
        path in "/[a-gi-zA-Z0-9._~!$&()*+;=:@%/-]{0,20}",
        quote in prop::sample::select(["\"", "'"].as_slice()),
        around in "[a-gi-z ]{0,5}",
    ) {
        let (element, attribute) = place;
        let page = format!("{around}<{element} class=x {attribute}={quote}{scheme}{host}{path}{quote} id=y>{around}");
        let new = rewritten(&page);
        let value = new.split(&format!("{attribute}=\"")).nth(1).and_then(|rest| rest.split('"').next());
        let value = value.unwrap_or_else(|| panic!("{page} -> {new}"));
        prop_assert!(value.trim_start().starts_with("/web/20200101000000"), "{} -> {}", page, new);
        prop_assert_eq!(new.matches("http").count(), 1, "{} -> {}", page, new);
    }

    #[test]
    fn a_browser_goes_where_it_would_have_been_sent(
        at in prop::sample::select(["http://a.org/", "http://a.org/b/c.html", "https://a.org:8443/b//c/?q=1/2", "http://[::1]/b,c"].as_slice()),
        shown_at in prop::sample::select(["/web/20200101000000/{}", "/web/20200101000000/{}#x", "/web/2020/{}", "/web/20200101000000/a.org/b/c.html", "/", "", "?"].as_slice()),
        base in prop::option::of("(http://e\\.org|//e\\.org|data:|#)?[/.?#a]{0,6}"),
        reference in "(\\.\\./|\\./|/|//|\\\\|https?:|https?://)?[a-z.:@%\\t ;-]{0,6}([/?&=#.\\\\][a-z0-9._~%!$'()*+,;=:@^|\\[\\] -]{0,4}){0,4}",
    ) {
        let place = shown_at.replace("{}", at);
        let base = base.map_or_else(String::new, |base| format!("<base href=\"{base}\">"));
        let page = format!("{base}<a href=\"{}\">", htmlize::escape_attribute(&reference));
        let hrefs = |page: &str| -> Vec<String> {
            let values = page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
            values.map(|value| htmlize::unescape_attribute(value).into_owned()).collect()
        };
        let new = hrefs(&rewritten_at(&place, at, &page));
        let links = LinkRewriter::new(Url::parse(at).ok(), "20200101000000".to_owned(), Modifier::Page);
        let all = html::rewrite(page.as_bytes(), UTF_8, MarkupSyntax::Html, links, Additions::default());
        if let Some(all) = all {
            let all = hrefs(std::str::from_utf8(&all).unwrap());
            // As browsers resolve it: a base that is not an HTTP URL does not count.
            let origin = Url::parse("http://127.0.0.1:8071").unwrap();
            let mut document = origin.join(&place).unwrap();
            if new.len() > 1 {
                document = document.join(&new[0]).ok().filter(|base| base.scheme() == "http").unwrap_or(document);
            }
            let (written, left) = (all.last().unwrap(), new.last().unwrap());
            prop_assert!(written == left || *left == reference, "{} -> {}", reference, left);
            if written != &reference {
                prop_assert_eq!(document.join(left).ok(), origin.join(written).ok(), "{}", page);
            }
        }
    }

    #[test]
    fn attributes_of_the_one_table_are_all_rewritten(
        element in prop::sample::select(["img", "script", "video", "body", "iframe", "use", "html", "embed", "td"].as_slice()),
        attribute in prop::sample::select(["src", "href", "xlink:href", "data-src", "poster", "background", "cite", "manifest"].as_slice()),
    ) {
        let new = rewritten(&format!("<{element} {attribute}=http://b.org/x>"));
        prop_assert_eq!(new.contains("/web/"), role(HtmlElement::of(element), attribute).is_some(), "{}", new);
    }

    #[test]
    fn nothing_panics(bytes: Vec<u8>, text in "[<>a-z\"'=/ !-]{0,60}") {
        for encoding in [UTF_8, EUC_JP] {
            html::rewrite(&bytes, encoding, MarkupSyntax::Html, links(), Additions::default());
            html::rewrite(text.as_bytes(), encoding, MarkupSyntax::Xml, links(), Additions::default());
            let script = format!("<script>{text}location</script><b onclick='{text};location'>");
            html::rewrite(script.as_bytes(), encoding, MarkupSyntax::Html, links(), Additions::default());
        }
        let text = String::from_utf8_lossy(&bytes).into_owned() + &text;
        css::rewrite(&text, &links());
        xml::rewrite(&text, &links());
    }
}

#[test]
fn what_is_added_at_the_end_is_in_nothing_unfinished() {
    let additions = Additions { head: "<H>", end: "<E>", ..Additions::default() };
    for (before, unfinished) in [
        ("<p>x</p>", "<style>@import url(s.css)"),
        ("<p>x</p>", "<script>f()"),
        ("<head>", "<title>x<a href=y>"),
        ("<p>", "<textarea>x"),
        ("<p>", "<xmp>x"),
        ("<p>", "<plaintext>x"),
        ("<p>", "<iframe src=#>x"),
        ("<p>", "<noscript><p>"),
        ("<p>", "<!-- x"),
        ("<p>", "<!doctype"),
        ("<style>a{}</style>", "<a href='x"),
        ("<style>a{}</style>", ""),
        ("<style>a{}</style>x</html>", ""),
    ] {
        let new = added(&format!("{before}{unfinished}"), MarkupSyntax::Html, additions).replace("<H>", "");
        assert_eq!(new.replace(&expected("cs_|http://a.org/b/"), ""), format!("{before}<E>{unfinished}"));
    }
}

#[test]
fn films_come_from_the_archive() {
    let list =
        "#EXTM3U\n#EXT-X-MAP:URI=\"/i.mp4\"\r\n#EXTINF:4,\n1.ts?a=b\n#EXTINF:4,\nhttps://cdn.org/2.ts\n";
    let written = list
        .replace("/i.mp4", "oe_|http://a.org/i.mp4")
        .replace("1.ts", "oe_|http://a.org/b/1.ts")
        .replace("https:", "oe_|https:");
    assert_eq!(playlist::rewrite(list, &links()), Some(expected(&written)));
    let manifest = "<MPD xmlns='urn:mpeg:dash:schema:mpd:2011'><BaseURL>https://c.org/x?a=1&amp;b</BaseURL>\
        <SegmentTemplate media='http://c.org/$Number%05d$.m4s' initialization='i.mp4'/><BaseURL>dash/</BaseURL></MPD>";
    let written = manifest.replace("https://c", "oe_|https://c").replace("media='http:", "media='oe_|http:");
    assert_eq!(xml::rewrite(manifest, &links()), Some(expected(&written)));
    assert_eq!(xml::rewrite("<x xmlns='urn:x'><BaseURL>https://c.org/</BaseURL></x>", &links()), None);
}
