//! Replayed pages in a real browser: scripts get what they request from the archive, and nothing goes to the live web.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::thread;

use serde_json::json;

use crate::imports::import;
use crate::replay::exchanged;
use crate::support::browser::Browser;
use crate::support::program::start;
use crate::support::served::Served;
use crate::support::warc::{answer, response};
use crate::support::{Archive, installed};

const DAY: &str = "2014-01-03T03:03:21Z";
const STAMP: &str = "20140103030321";

/// A page whose script requests archived and missing resources in every possible way.
const ASKING: &str = r#"<!doctype html><body><ul id=list></ul><img src=picture>
<iframe sandbox="allow-scripts" srcdoc="<img src=http://live.example/srcdoc.png>"></iframe>
<script>
const say = text => { const item = document.createElement("li"); item.textContent = text; list.append(item); };
const report = name => answer => answer.text().then(text => say(`${name}: ${answer.status} ${text}`), error => say(`${name}: ${error}`));
const failed = name => error => say(`${name}: failed`);
for (const url of ["/data", "data", "//b.org/data", "http://b.org/data", "https://live.example/none"]) {
  fetch(url).then(report(url), failed(url));
}
const late = document.createElement("script"); late.src = "http://b.org/late"; document.body.append(late);
const frame = document.createElement("iframe"); frame.src = "http://b.org/frame"; document.body.append(frame);
frame.onload = () => say("frame: " + frame.contentDocument.body.textContent);
addEventListener("message", event => say(event.data));
navigator.serviceWorker.register("/web/2014js_/http://b.org/late").then(() => say("worker: taken"), () => say("worker: refused"));
ServiceWorkerContainer.prototype.register.call(navigator.serviceWorker, "/web/2014js_/http://b.org/late")
  .then(() => say("worker itself: taken"), () => say("worker itself: refused"));
const blob = (text, type) => URL.createObjectURL(new Blob([text], {type}));
const made = document.createElement("iframe");
made.src = blob("<img src=http://live.example/blob.png><script>parent.postMessage('frame of a blob', '*')</scr" + "ipt>", "text/html");
document.body.append(made);
const second = document.createElement("iframe"); second.setAttribute("src", blob("<img src=http://live.example/other.png>", "application/xhtml+xml"));
document.body.append(second);
open(blob("<img src=http://live.example/window.png>", "text/html"));
const empty = document.createElement("iframe"); document.body.append(empty);
empty.contentDocument.body.innerHTML = "<img src=http://live.example/empty.png>";
empty.contentWindow.fetch("http://live.example/empty").catch(failed("empty frame"));
const waiting = document.createElement("iframe"); document.body.append(waiting);
const markup = "<script src=http://live.example/written></scr" + "ipt><script src=http://b.org/late></scr" + "ipt>";
waiting.contentDocument.write(markup); waiting.contentDocument.close();
const shown = open("about:blank"); if (shown) shown.document.write("<img src=http://live.example/opened.png>");
new Worker(blob("fetch('http://b.org/data').then(a => a.text()).then(postMessage)")).onmessage = event => say("worker of a blob: " + event.data);
fetch("/data?_=" + Date.now()).then(report("number"), failed("number"));
for (const url of ["ws://live.example/", "wss://live.example/"]) try { new WebSocket(url); } catch {}
new EventSource("http://live.example/events");
navigator.sendBeacon("http://live.example/beacon", "x");
const hint = document.createElement("link"); hint.rel = "preconnect"; hint.href = "https://live.example/"; document.head.append(hint);
const film = document.createElement("video"); film.src = "http://live.example/film"; document.body.append(film);
const form = document.createElement("form"); form.action = "http://live.example/form"; form.method = "post"; document.body.append(form);
form.target = "other"; form.submit();
const link = document.createElement("a"); link.href = "http://live.example/link"; link.target = "_blank"; link.click();
open("http://live.example/open");
document.domain = document.domain;
say(`address: ${document.URL} ${document.documentURI} ${document.domain}`);
history.pushState({}, "", "/deep/er");
say("pushed to: " + document.URL);
fetch("../data").then(report("pushed"), failed("pushed"));
history.replaceState({}, "", "http://a.org/");
addEventListener("load", () => setTimeout(() =>
  say(document.querySelector("archive-banner").shadowRoot.querySelector("p").textContent), 50));
setTimeout(() => { location.href = "http://live.example/away"; }, 100);
</script>"#;

/// Returns the final document of a page in a browser, and the hosts that the browser tried to reach.
pub(crate) fn look(browser: &Path, folder: &Path, url: &str) -> (String, BTreeSet<String>) {
    let log = folder.join("net.json");
    let mut command = Command::new(browser);
    command
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking"])
        .args(["--disable-component-update", "--virtual-time-budget=20000", "--timeout=20000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("--log-net-log={}", log.display()))
        .arg(url);
    let document = start(&mut command).wait().succeeded().text();
    let log = std::fs::read_to_string(log).unwrap();
    let hosts = log.split("\"url\":\"").skip(1).chain(log.split("\"host\":\"").skip(1)).filter_map(|rest| {
        let url = rest.split('"').next()?;
        let after = url.split_once("://").map_or(url, |(_, after)| after);
        Some(after.split(['/', ':']).next()?.to_owned())
    });
    (document, hosts.collect())
}

#[test]
fn scripts_get_what_they_ask_for_and_nothing_leaves() {
    let Some(browser) = installed("chromium") else { return };
    let archive = Archive::new();
    let page = |id: &str, url: &str, body: &str| response(&format!("urn:uuid:{id}"), url, DAY, body);
    let records = [
        page("1", "http://a.org/", ASKING),
        page("2", "http://a.org/data", "of a"),
        page("3", "http://b.org/data", "of b"),
        page("4", "http://b.org/late", "say('late: ran')"),
        response("urn:uuid:7", "http://a.org/picture", "2014-01-13T03:03:21Z", "no picture"),
        page("5", "http://b.org/frame", "<script>document.write('of b')</script>"),
    ];
    import(&archive, &[("all.warc", records.concat())]);
    let served = Served::of(&archive);
    let staying =
        ASKING.lines().filter(|line| !line.starts_with("setTimeout")).collect::<Vec<_>>().join("\n");
    let other = Archive::new();
    let records = [vec![page("6", "http://a.org/", &staying)], records[1..].to_vec()].concat();
    import(&other, &[("all.warc", records.concat())]);
    let other_served = Served::of(&other);

    let (document, asked) =
        look(&browser, other.folder(), &format!("http://{}/web/{STAMP}/http://a.org/", other_served.replay));
    for line in [
        "/data: 200 of a",
        "data: 200 of a",
        "//b.org/data: 200 of b",
        "http://b.org/data: 200 of b",
        "https://live.example/none: 404 ",
        "late: ran",
        "frame: of b",
        "frame of a blob",
        "empty frame: failed",
        "worker of a blob: of b",
        "number: 200 of a",
        "pushed: 200 of a",
        "address: http://a.org/ http://a.org/ a.org",
        "pushed to: http://a.org/deep/er",
        "worker: refused",
        "worker itself: refused",
        "Archived 2014-01-03 03:03:21 UTC · 1 capture · parts of it up to 10 days apart",
    ] {
        assert!(document.contains(&format!("<li>{line}")), "{line}\nis not in\n{document}");
    }
    assert!(document.contains("<archive-banner>"), "{document}");
    let (left, gone) =
        look(&browser, archive.folder(), &format!("http://{}/web/{STAMP}/http://a.org/", served.replay));
    assert!(left.contains("Not in the archive"), "{left}");
    assert!(asked.contains("localhost") && gone.contains("localhost"), "the log has no line");
    for host in asked.iter().chain(&gone) {
        let is_meant = host.ends_with(".example") || host.ends_with(".org");
        assert!(!is_meant, "the browser wanted to reach {host}");
    }
}

/// Stores what each page reports, for the last page to show.
const SAY: &str =
    "function say(...words) { sessionStorage.said = (sessionStorage.said || '') + words.join(' ') + '\\n' }";

/// A page whose script reads its address in every possible way.
const ROUTING: &str = r##"<!doctype html><title>t</title><script src=/say.js></script>
<button id=go onclick="say('handler', location.pathname, event.type); location = '/clicked?x=1#y'">go</button>
<a id=inside href="/x?y#z">x</a><a id=outside href="http://other.example/x">x</a><a id=written href="javascript:say('url', location.search)">x</a>
<form><input name=location value=named></form>
<iframe id=frame src=/framed></iframe>
<iframe srcdoc="<script>parent.say('srcdoc', location.href, parent.location.pathname)</script><script src=/outer.js></script>"></iframe>
<script>
var l = location, unchanged = "location", pattern = /location/.source;
say("parts", l.href, l.protocol, l.host, l.hostname, l.port, l.pathname, l.search, l.hash, l.origin, l, origin, unchanged, pattern);
say("same", window.location === document.location, location === self.location, l === window.location, location instanceof Location);
say("kinds", Object.prototype.toString.call(location), typeof location.assign, location.valueOf() === location, `${location}` === location.href);
say("router", [{path: /^\/routed$/, view: "the view"}].find(({path}) => path.test(location.pathname))?.view);
const {location: taken, history: past} = window; say("taken", taken.pathname, past === history);
(function (window, undefined) { say("alias", window.location.search, window.document.location.hostname); })(window);
(({location}) => say("passed", location.x))({location: {x: "own"}});
(function () { var location = {pathname: "local"}; const kept = {location}; say("local", location.pathname, kept.location.pathname, Object.keys(kept)); })();
class Place { location = "field"; get there() { return this.location; } }
class Other extends Place { get location() { return "getter"; } set location(value) {} }
const p = new Place, o = {location: 1}; p.location += "!"; o.location += 1; delete o.location;
say("members", p.there, p.location, Object.keys(p), o.location, "location" in o, new Other().there);
const handled = new Proxy({}, {get: (_, key) => `asked ${String(key)}`, set: (_, key) => (say("set", String(key)), true)}), q = handled;
say("proxy", q.location); q.location = 1;
say("named", document.forms[0].location.value, typeof location, Object.keys({...o}), JSON.stringify({location: 1}));
const a = inside; say("links", a.href, a.host === location.host, a.pathname, a.hash, outside.host, `${a}`, a.origin === location.origin);
for (const key in {}) say("enumerated", key);
const keys = []; with ({location: "of an object"}) keys.push(location); say("with", keys);
new Worker("/worker.js").onmessage = ({data, origin}) => say("worker", data, origin === "");
const blank = document.createElement("iframe"); document.body.append(blank);
blank.contentDocument.write("<script>parent.say('written', typeof location)</scr" + "ipt>"); blank.contentDocument.close();
say("blank", blank.contentWindow.location.href === location.href, blank.contentDocument.location === blank.contentWindow.location);
addEventListener("message", ({data, origin, source}) => say("message", data, origin === location.origin, source === window || source === frame.contentWindow));
window.postMessage("to itself", location.origin);
</script>
<script src=/outer.js></script><script type=module src=/module.js></script>
<script type=module>import { location as named } from "/names.js"; say("in page", named.pathname, location.pathname);</script>
<script type=text/x-template>location.href</script>
<script>
addEventListener("hashchange", ({newURL, oldURL}) => say("hash changed", newURL, oldURL));
addEventListener("load", () => {
  say("frame", frame.contentWindow.location.pathname, frame.contentDocument.location.href);
  written.click();
  history.pushState({}, "", "/deep/er?q=1"); say("pushed", location.pathname, location.search, document.URL);
  location.hash = "part"; say("hash", location.hash, location.href); location.hash = "part";
  const late = ["worker ", "hash changed ", "message from", "message to"];
  const leave = () => late.every(it => sessionStorage.said.includes(it)) ? go.click() : setTimeout(leave, 20);
  setTimeout(leave, 400);
});
</script>"##;

/// Serves documents on a free port until the process ends.
pub(crate) fn live(listener: TcpListener, documents: Vec<(&'static str, &'static str, String)>) {
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let asked = lines.next().unwrap_or_default();
            let path = asked.split([' ', '?']).nth(1).unwrap_or_default().to_owned();
            let _ = lines.find(String::is_empty);
            let found = documents.iter().find(|(known, ..)| known.split('?').next() == Some(&path));
            let (media_type, body) =
                found.map_or(("text/plain", ""), |(_, media_type, body)| (*media_type, body));
            let status = if found.is_some() { "200 OK" } else { "404 Not Found" };
            // The browser may have disconnected.
            let _ = write!(stream, "{}", answered(status, media_type, body));
        }
    });
}

pub(crate) fn answered(status: &str, media_type: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

#[test]
fn scripts_see_the_address_of_their_page() {
    let Some(browser) = Browser::start(true) else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = format!("http://{}", listener.local_addr().unwrap());
    let page = |text: &str| {
        format!("<!doctype html><pre id=out></pre><script>{SAY}</script><script>{text}</script>")
    };
    const HTML: &str = "text/html; charset=utf-8";
    const SCRIPT: &str = "text/javascript";
    let documents = vec![
        ("/routed?a=b", HTML, ROUTING.to_owned()),
        ("/say.js", SCRIPT, SAY.to_owned()),
        ("/framed", HTML, "<script>parent.postMessage(`from ${location.pathname}`, location.origin)</script>".to_owned()),
        ("/outer.js", SCRIPT, "(parent || self).say('outer', location.pathname, document.location.protocol)".to_owned()),
        ("/module.js", SCRIPT, "import { location as there, word } from './names.js'; import * as all from './names.js'; say('module', location.pathname, there.pathname, word, all.location.pathname);".to_owned()),
        ("/names.js", SCRIPT, "export const location = {pathname: 'exported'}; export const word = `${location.pathname}!`".to_owned()),
        ("/worker.js", SCRIPT, "importScripts('/lib.js'); postMessage(lib(location))".to_owned()),
        ("/lib.js", SCRIPT, "function lib(location) { return typeof location.href + typeof self.location }".to_owned()),
        ("/clicked?x=1", HTML, page("say('clicked', location.href); window.location.assign('next')")),
        ("/next", HTML, page("say('next', location.href); document.location = '/last?z'")),
        ("/last?z", HTML, page("say('last', location.pathname + location.search); out.textContent = sessionStorage.said")),
    ];
    let archive = Archive::new();
    let records = documents.iter().enumerate().map(|(number, (path, media_type, body))| {
        answer(
            &format!("urn:uuid:{number}"),
            &format!("{host}{path}"),
            DAY,
            &[],
            &answered("200 OK", media_type, body),
        )
    });
    import(&archive, &[("all.warc", records.collect::<Vec<_>>().concat())]);
    live(listener, documents);
    let served = Served::of(&archive);
    let said = |address: &str| {
        browser.go(address);
        browser.wait_for("last /last");
        let shown = browser.run("return document.getElementById('out').textContent", &json!([]));
        let mut lines: Vec<_> = shown.as_str().unwrap().lines().map(str::to_owned).collect();
        // Frames, modules and workers run in any order.
        lines.sort();
        lines
    };
    let live = said(&format!("{host}/routed?a=b"));
    assert!(live.contains(&"router the view".to_owned()) && live.len() > 30, "{live:#?}");
    let replayed = said(&format!("http://{}/web/{STAMP}/{host}/routed?a=b", served.replay));
    assert_eq!(replayed, live);
}

/// The smallest page that browsers show as a PDF.
const PDF: &str = "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n\
                   3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]>>endobj\ntrailer<</Root 1 0 R/Size 4>>\n%%EOF\n";

#[test]
fn pages_show_their_pdfs_and_get_answers_to_what_they_send() {
    let Some(browser) = Browser::start(true) else { return };
    let archive = Archive::new();
    let page = |id: &str, url: &str, body: &str| response(&format!("urn:uuid:{id}"), url, DAY, body);
    let asking = r#"<form method=post action=/f><input name=x value="1 2"></form><script>
        const sent = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ b: 1, a: [2] }) };
        fetch("http://api.org/q?r", sent).then(answer => answer.text()).then(text => document.body.append(`given: ${text}`));
        </script>"#;
    let html = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
    let json = "POST /q?r HTTP/1.1\r\nContent-Type: application/json\r\n\r\n{\"a\":[2],\"b\":1}";
    let form = "POST /f HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\nx=1+2";
    let pdf = format!("HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\n\r\n{PDF}");
    let records = [
        answer("urn:uuid:1", "http://a.org/x.pdf", DAY, &[], &pdf),
        page("2", "http://a.org/embed", "<embed src=x.pdf type=application/pdf width=400 height=300>"),
        page(
            "3",
            "http://a.org/object",
            "<object data=x.pdf type=application/pdf width=400 height=300></object>",
        ),
        page("4", "http://a.org/iframe", "<iframe src=x.pdf width=400 height=300></iframe>"),
        page("5", "http://a.org/nested", "<iframe src=embed width=500 height=400></iframe>"),
        page("6", "http://a.org/asking", asking),
        exchanged(7, "http://api.org/q?r", DAY, json, &format!("{html}of the request")),
        exchanged(8, "http://a.org/f", DAY, form, &format!("{html}of the form")),
        page("9", "http://a.org/style", "<p>x</p><style>@import url(s.css)"),
        answer(
            "urn:uuid:10",
            "http://a.org/s.css",
            DAY,
            &[],
            "HTTP/1.1 200 OK\r\nContent-Type: text/css\r\n\r\np { color: red }",
        ),
    ];
    import(&archive, &[("all.warc", records.concat())]);
    let served = Served::of(&archive);
    let address = |url: &str| format!("http://{}/web/{STAMP}/http://a.org/{url}", served.replay);
    for url in ["embed", "object", "iframe", "nested"] {
        browser.go(&address(url));
        browser.wait_until(&format!("{url} shows no PDF"), || {
            let targets = browser.devtools("Target.getTargets", &json!({ "filter": [{}] }));
            targets["targetInfos"].as_array().unwrap().iter().any(|target| {
                target["url"].as_str().is_some_and(|url| url.starts_with("chrome-extension://"))
            })
        });
        browser.go("about:blank");
    }
    browser.go(&address("asking"));
    browser.wait_for("given: of the request");
    browser.run("document.forms[0].submit()", &json!([]));
    browser.wait_for("of the form");
    browser.go(&address("style"));
    browser.wait_for("archive-banner");
    let seen = "return [getComputedStyle(document.querySelector('p')).color, document.querySelector('archive-banner').offsetParent !== null || \
                document.querySelector('archive-banner').shadowRoot.querySelector('p').offsetHeight > 0]";
    assert_eq!(browser.run(seen, &json!([])), json!(["rgb(255, 0, 0)", true]));
}

/// What the scripts of [`NAMING`] name on another host of the live web: pictures, scripts, style sheets, by their ways.
const NAMED: [(&str, &str); 4] = [
    (
        "image/svg+xml",
        "property set attribute space node late poster input cssText setProperty styled typed assigned rule adopted shadow shadowed \
         text appended sheet markup markupset markupstyle inside written fragment outer vector base cloned parsed empty framed embedded font",
    ),
    (
        "text/javascript",
        "script static nested again computed evaluated relative added mapped latemap unmapped worker module file",
    ),
    ("text/css", "import link"),
    ("audio/wav", "audio"),
];

/// One channel, 8000 samples a second, of a byte each.
const SOUND: &str = "\x01\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0";

/// A page whose scripts name the live web in every way that shows something.
const NAMING: &str = r#"<!doctype html><script>
const failed = [], said = new Set(), http = way => `http://b.org/${way}`, url = way => `url(${http(way)})`, fail = way => `onerror="failed.push('${way}')"`;
const add = (kind, given = {}) => { const made = Object.assign(document.createElement(kind), given); document.body.append(made); return made; };
const div = () => add("div", { textContent: "x" }), svg = kind => document.createElementNS("http://www.w3.org/2000/svg", kind);
const blob = text => URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
const loaded = () => {
  const views = [window, ...Array.from({ length: length }, (_, number) => window[number])];
  const parts = views.flatMap(view => view.performance.getEntriesByType("resource")).filter(({ name, responseStatus }) => name.includes("/web/") && /^20[06]$/.test(responseStatus));
  return [...said, ...parts.map(({ name }) => name.split("/http://b.org/")[1])];
};
</script><body>
<script type=importmap>{"imports": {"bare": "http:\/\/b.org\/mapped", "./nested.js": "http://b.org/nested"}}</script>
<script type=module src=/module.js></script><iframe src=/framed></iframe>
<script type=module>import "http://b.org/static"; import "bare"; import(`http://b.org/${"again"}`);</script>
<iframe srcdoc="<body><script>const x = new Image(); x.src = 'http://b.org/embedded'; document.body.append(x)</script>"></iframe>
<script>
const picture = add("img", { src: http("property"), onerror: () => failed.push("property") });
add("img").srcset = `${http("set")} 1x, ${http("other")} 3x`;
add("img").setAttribute("src", http("attribute")); add("img").setAttributeNS(null, "src", http("space"));
const node = document.createAttribute("src"); node.value = http("node"); add("img").setAttributeNode(node);
add("link", { rel: "stylesheet", href: http("link") }); add("video", { poster: http("poster") }); new Audio(http("audio")).load(); add("input", { type: "image", src: http("input") });
div().style.cssText = `background: ${url("cssText")}`; div().style.setProperty("background", url("setProperty")); div().setAttribute("style", `background: ${url("styled")}`);
div().attributeStyleMap.set("background-image", url("typed")); div().style.backgroundImage = url("assigned");
add("style").sheet.insertRule(`body { background: ${url("rule")} }`);
const made = new CSSStyleSheet(); made.replaceSync(`html { list-style: ${url("adopted")} } li { background: ${url("adopted")} }`); document.adoptedStyleSheets = [made]; add("li");
const shadow = div().attachShadow({ mode: "closed" }); shadow.innerHTML = `<p>x</p><img src=${http("shadow")}>`; shadow.firstChild.style.background = url("shadowed");
add("style", { textContent: `@import "${http("import")}"; p { background: ${url("text")} }` }); add("p");
const styles = add("style"); styles.append(`i { background: ${url("sheet")} }`); styles.appendChild(document.createTextNode(`b { background: ${url("appended")} }`)); add("b", { textContent: "x" }); add("i", { textContent: "x" });
div().innerHTML = `<img alt='a"b' src = '${http("markup")}' ${fail("markup")}><img srcset="${http("markupset")} 1x"><style>u { background: ${url("markupstyle")} }</style><u style="list-style: none">x</u><svg viewBox="0 0 9 9"><image href=${http("inside")} /></svg>`;
document.write(`<im`); document.write(`g src=${http("written")} ${fail("written")}>`);
add("div").append(document.createRange().createContextualFragment(`<img src=${http("fragment")} ${fail("fragment")}>`)); div().outerHTML = `<img src=${http("outer")} ${fail("outer")}>`;
const drawn = svg("svg"), [vector, base] = [svg("image"), svg("image")]; drawn.append(vector, base); document.body.append(drawn);
vector.setAttributeNS("http://www.w3.org/1999/xlink", "xlink:href", http("vector")); base.href.baseVal = http("base");
const template = document.createElement("template"); template.innerHTML = `<img src=${http("cloned")} ${fail("cloned")}>`; document.body.append(template.content.cloneNode(true));
document.body.append(new DOMParser().parseFromString(`<img src=${http("parsed")} ${fail("parsed")}>`, "text/html").body.firstChild);
add("iframe").contentDocument.body.innerHTML = `<img src=${http("empty")}>`; add("iframe", { srcdoc: `<img src=${http("framed")}>` });
new FontFace("x", url("font")).load().catch(() => {});
add("script", { src: http("script") }); import(["http://b.org", "computed"].join("/")); eval(`import("${http("evaluated")}")`); import("//b.org/relative");
add("script", { type: "module", textContent: `import "${http("added")}"` });
add("script", { type: "importmap", textContent: `{"imports": {"latebare": "${http("latemap")}"}}` }); import("latebare");
const report = ({ data }) => said.add(data);
new Worker(blob(`importScripts("${http("worker")}"); postMessage(named)`)).onmessage = report;
new Worker(blob(`import "${http("module")}"; postMessage(named)`), { type: "module" }).onmessage = report;
new Worker("http://a.org/worker.js").onmessage = report;
if (picture.src !== http("property")) failed.push("read");
setTimeout(() => add("img", { src: http("late"), onerror: () => failed.push("late") }));
</script><p id=written>written</p>"#;

#[test]
fn what_scripts_name_is_shown_from_the_archive() {
    let archive = Archive::new();
    let record = |number: usize, url: &str, media_type: &str, body: &str| {
        answer(&format!("urn:uuid:{number}"), url, DAY, &[], &answered("200 OK", media_type, body))
    };
    let ways: Vec<_> =
        NAMED.iter().flat_map(|(kind, ways)| ways.split_whitespace().map(move |way| (*kind, way))).collect();
    let mut records = vec![
        record(1, "http://a.org/", "text/html", NAMING),
        record(2, "http://a.org/module.js", "text/javascript", r#"import "./nested.js";"#),
        record(4, "http://a.org/worker.js", "text/javascript", "postMessage('file')"),
        record(3, "http://a.org/framed", "text/html", r#"<script>import("http://b.org/unmapped")</script>"#),
    ];
    records.extend(ways.iter().enumerate().map(|(number, (media_type, way))| {
        let body = match *media_type {
            "text/javascript" => format!("self.named = '{way}'"),
            "text/css" => String::new(),
            "audio/wav" => {
                format!("RIFF\x2c\0\0\0WAVEfmt \x10\0\0\0{SOUND}data\x08\0\0\0{}", "\x7f".repeat(8))
            }
            _ => "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"9\" height=\"9\"/>".to_owned(),
        };
        record(number + 5, &format!("http://b.org/{way}"), media_type, &body)
    }));
    import(&archive, &[("all.warc", records.concat())]);
    let served = Served::of(&archive);
    for is_under_worker in [true, false] {
        let Some(browser) = Browser::start(true) else { return };
        browser.devtools("Network.enable", &json!({}));
        browser.devtools("Network.setBypassServiceWorker", &json!({ "bypass": !is_under_worker }));
        browser.go(&format!("http://{}/web/{STAMP}/http://a.org/", served.replay));
        browser.wait_for("<p id=\"written\">");
        let ways: Vec<_> = ways.iter().map(|(_, way)| *way).collect();
        browser.wait_until("what scripts name is not shown", || {
            let missing = "return arguments[0].filter(way => !loaded().includes(way))";
            let missing = browser.run(missing, &json!([ways]));
            println!("{is_under_worker}: {missing}");
            missing == json!([])
        });
        let state = "return [failed, Boolean(navigator.serviceWorker && navigator.serviceWorker.controller)]";
        assert_eq!(browser.run(state, &json!([])), json!([[], is_under_worker]));
    }
}
