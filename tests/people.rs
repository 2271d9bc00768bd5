//! The pages as people use them: with sufficient contrast, on small screens, by keyboard only, without scripts.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread;

use base64::Engine as _;
use serde_json::{Value, json};

use crate::imports::import;
use crate::runs::slow;
use crate::support::browser::Browser;
use crate::support::judges;
use crate::support::prepared::prepared;
use crate::support::program::start;
use crate::support::served::Served;
use crate::support::warc::answer;
use crate::support::{Archive, TestWeb, in_full};

const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";

const WIDTHS: [u32; 3] = [360, 800, 1400];
const THEMES: [&str; 2] = ["light", "dark"];

/// The fonts that most systems have, one of them as its own. `tests/run` installs them.
const FONTS: [&str; 3] = ["DejaVu Sans", "Liberation Sans", "Noto Sans"];

/// A page is judged in so many ways: at the smallest width in each theme, with the other theme at the largest, and in each
/// font.
const TURNS: usize = THEMES.len() * FONTS.len();

/// Shows the page in a font, or in its own; returns whether it is installed.
const IN_FONT: &str = r#"
const inFont = font => {
  const pen = document.createElement("canvas").getContext("2d");
  const width = family => { pen.font = `40px ${family}`; return pen.measureText("mmmWWWiiilll").width; };
  const sheet = new CSSStyleSheet();
  if (font) sheet.replaceSync(`body, input, textarea, button, select { font-family: "${font}", sans-serif !important; }`);
  document.adoptedStyleSheets = [sheet];
  return !font || width(`"${font}", monospace`) !== width("monospace");
};
"#;

/// Runs all rules of axe-core on a page, including that for the size of click targets; returns serious violations.
pub(crate) const JUDGE: &str = r#"
const [done] = arguments;
axe.run(document, { iframes: false, resultTypes: ["violations"], rules: { "target-size": { enabled: true } } })
  .then(({ violations }) => done(violations.filter(({ impact }) => ["serious", "critical"].includes(impact))
    .flatMap(({ id, nodes }) => nodes.slice(0, 3).map(({ html, any }) => `${id}: ${html} ${any.map(({ message }) => message)}`))),
  error => done([String(error)]));
"#;

/// Returns the elements that are wider than the page and do not scroll by themselves, in its own font and in others.
const TOO_WIDE: &str = r#"
return ["", ...arguments[0]].flatMap(font => {
  inFont(font);
  const { clientWidth, scrollWidth } = document.documentElement;
  if (scrollWidth <= clientWidth) return [];
  return [...document.querySelectorAll("body *")].filter(it =>
    it.getBoundingClientRect().right > clientWidth + 1 && !it.closest(".wide, .skip, pre, svg"))
    .map(it => `too wide ${font}: ${it.outerHTML.slice(0, 200)}`);
});
"#;

/// Returns the name of the focused element, and what is wrong with how its focus is shown.
const FOCUS: &str = r#"
const it = document.activeElement, style = getComputedStyle(it), box = it.getBoundingClientRect();
const hasRing = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
const isSeen = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth && box.width > 1;
const name = it.innerText || it.getAttribute("aria-label") || it.value || it.name || it.id || "";
return [name.trim(), it === document.body ? "nothing has the focus" : !hasRing ? "no ring" : !isSeen ? "out of sight" : ""];
"#;

const FEED: &str = "<rss version=\"2.0\"><channel><title>Νέα</title><item><title>Πρώτο</title><link>http://versions.test/</link>\
                    <pubDate>2026-01-03</pubDate><description>Κείμενο.</description></item></channel></rss>";
const SITEMAP: &str = "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"><url><loc>http://versions.test/</loc>\
                       <lastmod>2026-01-02</lastmod><changefreq>daily</changefreq><priority>0.8</priority></url></urlset>";
const BOOKS: &str = "<books><book id=\"1\"><title>Βιβλίο</title></book></books>";

/// Returns an archive with content for every page of the application: a crawl and a refresh, versions, decisions of two
/// people.
fn archive() -> Archive {
    prepared("people", made)
}

fn made() -> Archive {
    let archive = Archive::new();
    start(archive.command("demo").args(["--pages", "300", "--hosts", "12"])).wait().succeeded();
    import(&archive, &[("versions.warc", versions())]);
    for (place, site) in sites(&archive).iter().enumerate() {
        for (by, rating) in [("anna", 1 + place % 4), ("ben", 4 - place % 2)] {
            archive.run("review set", &[site, "--rating", &rating.to_string(), "--by", by]).succeeded();
        }
        let more = ["--verdict", "keep", "--tag", "@anna", "--reason", "Λόγος", "--by", "carl"];
        archive.run("review set", &[&[site.as_str()], &more[..]].concat()).succeeded();
    }
    archive
}

/// Returns pages in Greek: two versions of one, a feed, a sitemap, another XML document.
pub(crate) fn versions() -> Vec<u8> {
    let page = |words: &str| format!("<title>Δύο εκδόσεις</title><p>{words}.</p><a href=/next>Επόμενο</a>");
    let files = [
        ("http://versions.test/", "text/html", page("ένα δύο τρία")),
        ("http://versions.test/", "text/html", page("ένα τέσσερα τρία")),
        ("http://versions.test/feed", "application/rss+xml", FEED.to_owned()),
        ("http://versions.test/sitemap.xml", "application/xml", SITEMAP.to_owned()),
        ("http://versions.test/books", "application/xml", BOOKS.to_owned()),
    ];
    let records = files.iter().enumerate().map(|(place, (url, kind, body))| {
        let block = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}; charset=utf-8\r\n\r\n{body}");
        answer(&format!("urn:test:{place}"), url, &format!("2026-0{}-03T03:03:21Z", place + 1), &[], &block)
    });
    records.collect::<Vec<_>>().concat()
}

/// Returns some sites of the demo.
fn sites(archive: &Archive) -> Vec<String> {
    let rows = archive.json("query", &["site pages > 3 order by importance, site limit 8 select site"]);
    rows.iter()
        .map(|row| row["site"].as_str().unwrap().to_owned())
        .filter(|site| site != "versions.test")
        .collect()
}

fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// Returns the addresses of all pages, each with all that it can show, including error pages.
pub(crate) fn addresses(archive: &Archive) -> Vec<String> {
    let query = |text: &str| format!("/query?q={}", encoded(text));
    let waiting = archive.json("query", &["page captures = 0 and type = html limit 1 select url"]);
    let waiting = waiting.first().and_then(|row| row["url"].as_str()).unwrap_or("http://versions.test/next");
    let linking = archive.json("query", &["count links group by source order by count desc limit 1"]);
    let linking = linking.first().and_then(|row| row["source"].as_str()).unwrap_or("http://versions.test/");
    let about = |path: &str, url: &str| format!("{path}?url={}", encoded(url));
    let mut addresses: Vec<String> = [
        "/",
        "/search",
        "/search?q=%22",
        "/query",
        "/pictures",
        "/runs",
        "/runs/1",
        "/settings",
        "/watches",
        "/runs/2",
        "/review?by=anna",
        "/review?show=assigned&by=anna",
        "/review?show=second&by=dora",
        "/review?show=mine&by=anna",
        "/review/site?name=versions.test",
        "/review/scores",
        "/site?name=versions.test",
        "/nothing",
        "/site?name=none.test",
        "/page?url=none.test",
        "/compare?url=http://versions.test/&from=x",
    ]
    .map(str::to_owned)
    .to_vec();
    addresses
        .extend(["τέσσερα", "τέσσερο", "ωωωω τέσσερα"].map(|words| format!("/search?q={}", encoded(words))));
    addresses.extend([
        query("page captures > 0 limit 20 select url, status, type, importance, last_seen"),
        query("count pages group by type"),
        query("page tpye = xml"),
        about("/page", "http://versions.test/"),
        about("/page", "http://versions.test/feed"),
        about("/page", waiting),
        about("/page", linking),
        about("/compare", "http://versions.test/"),
        about("/read", "http://versions.test/feed"),
        about("/read", "http://versions.test/sitemap.xml"),
        about("/read", "http://versions.test/books"),
    ]);
    addresses
}

/// Returns the elements that do not fit on a page, at all widths and in all fonts, and the violations that axe-core finds in
/// some turns, or in whole runs in all. Unless in whole runs, it does not judge the middle width, which has the styles of
/// the largest.
pub(crate) fn judged(browser: &Browser, axe: &str, url: &str, turns: Range<usize>) -> Vec<String> {
    browser.go(url);
    browser.run(axe, &json!([]));
    let mut found = Vec::new();
    let mut note = |how: &str, what: Value| {
        found.extend(what.as_array().unwrap().iter().map(|line| format!("{how} {url}: {line}")));
    };
    for width in WIDTHS {
        browser.show(width, THEMES[0]);
        note(&width.to_string(), browser.run(&format!("{IN_FONT}{TOO_WIDE}"), &json!([FONTS])));
    }
    for turn in in_full(turns, 0..TURNS) {
        let font = FONTS[turn % FONTS.len()];
        if browser.run(&format!("{IN_FONT} return inFont(arguments[0])"), &json!([font])) != true {
            crate::support::skip(&format!("the font {font} is not installed"));
            continue;
        }
        for (place, width) in WIDTHS.into_iter().enumerate().step_by(in_full(2, 1)) {
            let theme = THEMES[(turn + place / 2) % THEMES.len()];
            browser.show(width, theme);
            photograph(browser, &format!("{width} {theme} {font} {url}"));
            note(&format!("{width} {theme} {font}"), browser.run_later(JUDGE, &json!([])));
        }
    }
    found
}

/// Judges pages with a browser and a second one, each page in the turn after that of the page before.
fn judged_by_two(browser: &Browser, axe: &str, urls: Vec<String>) -> Vec<String> {
    let todo = Mutex::new(urls.into_iter().enumerate());
    let judge = |browser: &Browser| {
        let mut found = Vec::new();
        while let Some((number, url)) = { todo.lock().unwrap().next() } {
            let turn = number % TURNS;
            found.extend(judged(browser, axe, &url, turn..turn + 1));
        }
        found
    };
    thread::scope(|scope| {
        let second = scope.spawn(|| judge(&Browser::start(true).unwrap()));
        [judge(browser), second.join().unwrap()].concat()
    })
}

/// Saves a screenshot of a page to the folder `$ARCHIVE_TEST_PICTURES`, for people to look at.
fn photograph(browser: &Browser, name: &str) {
    let Some(folder) = std::env::var_os("ARCHIVE_TEST_PICTURES").map(PathBuf::from) else { return };
    // Scrollbars would cover parts of a page when the screenshot shows all of it.
    browser.devtools("Emulation.setScrollbarsHidden", &json!({ "hidden": true }));
    let picture = browser.devtools("Page.captureScreenshot", &json!({ "captureBeyondViewport": true }));
    let bytes = base64::prelude::BASE64_STANDARD.decode(picture["data"].as_str().unwrap()).unwrap();
    let name: String = name.chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).take(120).collect();
    fs::write(folder.join(format!("{name}.png")), bytes).unwrap();
}

#[test]
fn every_page_can_be_used_by_everybody() {
    let (Some(axe), Some(browser)) = (judges::axe(), Browser::start(true)) else { return };
    let archive = archive();
    let served = Served::with(&archive, &["--review", "--by", "anna"]);
    let mut paths = addresses(&archive);
    paths.push("/search?q=library".to_owned());
    for site in sites(&archive).iter().take(2) {
        paths.extend([format!("/site?name={site}"), format!("/review/site?name={site}&by=anna")]);
    }
    let web = TestWeb::start(crate::crawl::lively(315, 4, 300));
    let crawled = Archive::new();
    let crawl = slow(&web, &crawled);
    let running = Served::of(&crawled);
    let shown = ["/", "/web/2026/http://none.test/", "/nothing"];
    let mut urls = vec![format!("http://{}/runs/current", running.application)];
    urls.extend(paths.iter().map(|path| format!("http://{}{path}", served.application)));
    urls.extend(shown.map(|path| format!("http://{}{path}", served.replay)));
    let found = judged_by_two(&browser, &axe, urls);
    crawl.kill();
    assert!(found.is_empty(), "{}", found.join("\n"));
    // The check itself finds violations.
    let url = format!("http://{}/", served.application);
    browser.go(&url);
    browser.run(
        "document.querySelector('main').innerHTML += '<img src=a><div>x</div>'; \
         document.querySelector('main').lastChild.style.width = '3000px'",
        &json!([]),
    );
    browser.run(&axe, &json!([]));
    browser.show(WIDTHS[0], THEMES[0]);
    assert!(browser.run_later(JUDGE, &json!([])).to_string().contains("image-alt"));
    let too_wide = browser.run(&format!("{IN_FONT}{TOO_WIDE}"), &json!([[]]));
    assert!(too_wide.to_string().contains("3000px"));
}

/// Returns the name of the focused element, which must be visible.
fn focused(browser: &Browser) -> String {
    let state = browser.run(FOCUS, &json!([]));
    assert_eq!(state[1], "", "{state}: {}", browser.source());
    state[0].as_str().unwrap().to_owned()
}

/// Presses Tab until the element with this name has the focus.
fn tab_to(browser: &Browser, name: &str) {
    let stops = std::iter::repeat_with(|| {
        browser.press(TAB);
        focused(browser)
    });
    let passed: Vec<String> = stops.take(200).take_while(|stop| !stop.contains(name)).collect();
    assert!(passed.len() < 200, "Tab does not lead to {name}, but past {passed:?}");
}

/// Skips to the content, past what precedes it on every page.
fn skip(browser: &Browser) {
    browser.press(TAB);
    assert_eq!(focused(browser), "Skip to content");
    browser.press(ENTER);
}

#[test]
fn keys_alone_lead_everywhere_with_scripts_and_without() {
    let archive = archive();
    let served = Served::with(&archive, &["--review", "--by", "anna"]);
    let home = format!("http://{}", served.application);
    let site = archive.json("query", &["site limit 1 select site"])[0]["site"].as_str().unwrap().to_owned();
    thread::scope(|scope| {
        // Nobody may decide on what another one has decided on meanwhile.
        for (has_scripts, by, on) in [(true, "dora", "versions.test"), (false, "emil", &site)] {
            let (home, site) = (&home, &site);
            scope.spawn(move || {
                let Some(browser) = Browser::start(has_scripts) else { return };
                keys_lead(&browser, home, site);
                browser.go(&format!("{home}/review/site?name={on}&by={by}"));
                skip(&browser);
                tab_to(&browser, "never");
                browser.press(ENTER);
                browser.wait_for(&format!("never ({by})"));
            });
        }
    });
}

/// Goes by keys alone from the start page to results, sites and pages.
fn keys_lead(browser: &Browser, home: &str, site: &str) {
    browser.go(home);
    let stops: Vec<String> = (0..9)
        .map(|_| {
            browser.press(TAB);
            focused(browser)
        })
        .collect();
    assert_eq!(
        stops,
        ["Skip to content", "archive", "Query", "Runs", "Pictures", "Settings", "Review", "q", "Search"]
    );
    // From a search to a result, its page, and the differences between its versions.
    browser.go(&format!("{home}/search"));
    tab_to(browser, "q");
    browser.press(&format!("τέσσερα{ENTER}"));
    browser.wait_for("<mark>");
    skip(browser);
    browser.press(TAB);
    assert_eq!(focused(browser), "Δύο εκδόσεις");
    browser.press(ENTER);
    browser.wait_for("Captures by month");
    skip(browser);
    tab_to(browser, "Compare the two that are chosen");
    browser.press(ENTER);
    browser.wait_for("<ins>");
    // From the list of sites to a site and to one of its pages.
    browser.go(home);
    skip(browser);
    tab_to(browser, site);
    browser.press(ENTER);
    browser.wait_for("Most important pages");
    skip(browser);
    browser.press(&format!("{TAB}{TAB}{ENTER}"));
    browser.wait_for("Captures by month");
}

#[test]
fn keys_that_decide_can_be_switched_off() {
    let Some(browser) = Browser::start(true) else { return };
    let archive = archive();
    let served = Served::with(&archive, &["--review", "--by", "dora"]);
    let page = format!("http://{}/review/site?name=versions.test", served.application);
    browser.go(&page);
    browser.click("#keys");
    browser.go(&page);
    browser.wait_for("aria-current=\"true\"");
    browser.press("1k");
    browser.click("#keys");
    browser.press("2");
    browser.wait_for("dora 2");
    let decided = archive.json("review log", &[""; 0]);
    let own: Vec<&Value> = decided.iter().filter(|line| line["by"] == "dora").collect();
    assert_eq!(own.len(), 1, "{own:?}");
}
