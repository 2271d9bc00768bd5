//! Every way out of a replayed page that a browser has, tried in every form in which the replay shows a document, with
//! listeners that count what arrives: connections, datagrams, and the names that the browser looks up.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::imports::import;
use crate::replay_browser::{answered, live};
use crate::support::browser::Browser;
use crate::support::served::Served;
use crate::support::warc::answer;
use crate::support::{Archive, installed, judges};

const DAY: &str = "2014-01-03T03:03:21Z";
const STAMP: &str = "20140103030321";

/// How long a page with all ways, and another document, may take until what it begins arrives.
const SETTLING: [Duration; 2] = [Duration::from_millis(2500), Duration::from_millis(800)];

/// Seconds that another replay may take until it listens.
const STARTING_MAX: usize = 60;

/// How often the live page is visited until its ways are seen: on a busy machine a browser leaves it before it looks up a name.
const LIVE_VISITS_MAX: usize = 5;

/// Number of browsers that visit replayed pages beside each other: they wait most of the time.
const BROWSERS: usize = 4;

/// Ways by markup. `WAY` is the form in which the document is shown; each host is a way of its own. Those of `look.test` are
/// looked up only, and not given to the listeners.
const MARKUP: &str = r#"<link rel=preconnect href=http://preconnect-WAY.leak.test/a/b><link rel=dns-prefetch href=//dns-WAY.look.test/a>
<link rel=prefetch href=http://prefetch-WAY.leak.test/a><link rel=prerender href=http://prerender-WAY.leak.test/a>
<link rel=preload as=image href=http://preload-WAY.leak.test/a><link rel=modulepreload href=http://modulepreload-WAY.leak.test/a>
<link rel=stylesheet href=http://sheet-WAY.leak.test/a><link rel=icon href=http://icon-WAY.leak.test/a><link rel=manifest href=http://manifest-WAY.leak.test/a>
<script type=speculationrules>{"prefetch":[{"urls":["http://speculation-WAY.leak.test/a"],"eagerness":"immediate"}],"prerender":[{"urls":["http://speculated-WAY.leak.test/a"],"eagerness":"immediate"}]}</script>
<style>body{background:url(http://background-WAY.leak.test/a)}@import "http://import-WAY.leak.test/a";</style>
<img src=http://img-WAY.leak.test/a srcset="http://set-WAY.leak.test/a 2x"><video src=http://video-WAY.leak.test/a></video>
<iframe src=http://frame-WAY.leak.test/a></iframe><object data=http://object-WAY.leak.test/a></object><embed src=http://embed-WAY.leak.test/a>
<iframe srcdoc="<link rel=preconnect href=http://inside-WAY.leak.test/a/b><script>parent.rtc(window)</script>"></iframe>
<script src=http://script-WAY.leak.test/a></script><svg><image href=http://svg-WAY.leak.test/a /></svg>
<script type=importmap>{"imports": {"mapped": "http://mapped-WAY.leak.test/a"}}</script>
<script type=module>import "http://static-WAY.leak.test/a";</script><script type=module>import "mapped";</script>
<script type=module src=/module.js></script>"#;

/// Ways by scripts.
const SCRIPTS: &str = r##"
const look = (way) => `http://${way}-WAY.look.test/a`;
const host = (way) => `${way}-WAY.leak.test/a/b`, http = (way) => `http://${host(way)}`;
const attempt = (way) => { try { const begun = way(); if (begun && begun.catch) begun.catch(() => {}); } catch {} };
var rtc = (view) => attempt(() => {
  for (const kind of [view.RTCPeerConnection, view.webkitRTCPeerConnection].filter(Boolean)) {
    const servers = [{ urls: "stun:127.0.0.1:UDP" }, { urls: `turn:turn-WAY.leak.test:TCP?transport=tcp`, username: "a", credential: "b" }];
    const connection = new kind({ iceServers: servers });
    connection.createDataChannel("x");
    connection.createOffer().then((offer) => connection.setLocalDescription(offer));
  }
});
const transport = (view, way) => attempt(() => new view.WebTransport(`https://127.0.0.1:UDP/${way}`));
const add = (kind, given, into = document) => { const made = Object.assign(into.createElement(kind), given); (into.body || into.documentElement).append(made); return made; };
const ways = [
  () => rtc(window), () => transport(window, "page"),
  () => fetch(http("fetch")), () => fetch(http("keepalive"), { keepalive: true, mode: "no-cors" }), () => fetchLater(http("later"), { activateAfter: 0 }),
  () => fetch(new Request(http("request"))), () => navigator.sendBeacon(http("beacon"), "x"), () => new EventSource(http("events")),
  () => { const it = new XMLHttpRequest(); it.open("POST", http("xhr")); it.send("x"); },
  () => new WebSocket(`ws://${host("ws")}`), () => new WebSocket(`wss://${host("wss")}`), () => new WebSocketStream(`ws://${host("stream")}`),
  () => new PaymentRequest([{ supportedMethods: `https://${host("pay")}` }], { total: { label: "x", amount: { currency: "EUR", value: "1" } } }).canMakePayment(),
  () => navigator.credentials.get({ identity: { providers: [{ configURL: `https://${host("fedcm")}`, clientId: "a" }] } }),
  () => { new Image().src = http("image"); }, () => { new Image().srcset = `${http("imageset")} 2x`; }, () => new Audio(http("audio")),
  () => import(http("dynamic")), () => eval(`import("${http("evaluated")}")`), () => import(`//${host("relative")}`), () => add("script", { type: "module", textContent: `import "${http("imported")}"` }),
  () => { add("script", { type: "importmap", textContent: `{"imports": {"latemap": "${http("latemap")}"}}` }); return import("latemap"); },
  () => add("video", { poster: http("poster") }), () => add("div", { textContent: "x" }).style.backgroundImage = `url(${http("property")})`,
  () => add("div", { textContent: "x" }).style.cssText = `background: url("${http("text")}")`, () => add("div", { style: `background: url(${http("styled")})` }),
  () => add("div", { textContent: "x" }).attributeStyleMap.set("background-image", `url(${http("typed")})`),
  () => add("style", { textContent: `body { list-style-image: url(${http("stylesheet")}) } @import "${http("imports")}";` }), () => document.styleSheets[0].insertRule(`html { background: url(${http("rule")}) }`),
  () => { const sheet = new CSSStyleSheet(); sheet.replaceSync(`html { border-image: url(${http("adopted")}) }`); document.adoptedStyleSheets = [sheet]; },
  () => { const shadow = add("div").attachShadow({ mode: "closed" }); shadow.innerHTML = `<p>x</p><img src=${http("shadow")}>`; shadow.firstChild.style.background = `url(${http("shadowed")})`; },
  () => { const svg = (kind) => document.createElementNS("http://www.w3.org/2000/svg", kind), image = svg("image"); add("div").append(svg("svg")); document.querySelector("svg").append(image); image.href.baseVal = http("vector"); },
  () => { const node = document.createAttribute("src"); add("img").setAttributeNode(node); node.value = http("node"); },
  () => { const link = document.createElement("link"); for (const [name, value] of [["rel", "dns-prefetch"], ["href", look("attribute")]]) { const node = document.createAttribute(name); node.value = value; link.attributes.setNamedItem(node); } document.body.append(link); },
  () => document.write(`<script type=" speculationrules">{"prefetch":[{"urls":["${http("writtenguess")}"],"eagerness":"immediate"}]}</${"script"}>`),
  () => document.body.insertAdjacentHTML("beforeend", `<!--><link title=a"b rel=dns-prefetch href=${look("comment")}><script><link rel=dns-prefetch href=${look("raw")}>`),
  () => new FontFace("x", `url(${http("font")})`).load(),
  () => add("script", { src: http("late") }), () => add("link", { rel: "preconnect", href: http("hint") }), () => add("link", { rel: "dns-prefetch", href: look("name") }),
  () => add("script", { type: "speculationrules", textContent: `{"prefetch":[{"urls":["${http("guess")}"],"eagerness":"immediate"}]}` }),
  () => document.body.insertAdjacentHTML("beforeend", `<link rel=dns-prefetch href=${look("markup")}><link rel='&#112;reconnect' href=${http("entity")}>`),
  () => { add("div").innerHTML = `<link rel=preconnect href=${http("inner")}><img src=${http("innerimg")}>`; },
  () => { add("div").innerHTML = `<iframe src=${http("innerframe")}></iframe><object data=${http("innerobject")}></object><embed src=${http("innerembed")}>`; },
  () => { document.write(`<iframe src=${http("writtenframe")}></iframe>`); },
  () => { const form = add("form", {}); form.innerHTML = `<button formaction=${http("button")}>`; form.target = "y"; form.querySelector("button").click(); },
  () => { const parsed = new DOMParser().parseFromString(`<link rel=dns-prefetch href=${look("parsed")}>`, "text/html"); document.body.append(parsed.querySelector("link")); },
  () => { const link = document.createElement("link"); link.rel = "dns-prefetch"; link.setAttributeNS(null, "href", look("space")); document.body.append(link); },
  () => { document.write("<li"); document.write("nk rel=dns-pre"); document.write(`fetch href=${look("written")}>`); },
  () => { add("iframe", {}); rtc(window[window.length - 1]); transport(window[window.length - 1], "empty"); },
  () => { const inner = add("iframe", {}).contentDocument; inner.body.innerHTML = `<link rel=preconnect href=${http("empty")}><link rel=dns-prefetch href=${look("emptyname")}><img src=${http("emptyimg")}>`; },
  () => { const view = add("iframe", {}).contentWindow; view.fetch(http("emptyfetch")).catch(() => {}); view.open(http("emptyopen")); add("a", { href: http("emptylink"), target: "_blank" }, view.document).click(); },
  () => { const outer = add("iframe", {}).contentDocument; rtc(add("iframe", {}, outer).contentWindow); },
  () => { document.body.insertAdjacentHTML("beforeend", "<iframe></iframe>"); rtc(window[window.length - 1]); },
  () => add("iframe", { srcdoc: `<script>parent.rtc(window)</${"script"}><link rel=preconnect href=${http("srcdoc")}>` }),
  () => add("iframe", { src: `data:text/html,<link rel=preconnect href=${http("data")}>` }),
  () => add("iframe", { src: URL.createObjectURL(new Blob([`<link rel=preconnect href=${http("blob")}><script>parent.rtc(window)</${"script"}>`], { type: "text/html" })) }),
  () => add("iframe", { src: http("frameset") }), () => add("object", { data: http("objects") }), () => add("embed", { src: http("embeds") }),
  () => add("iframe", { src: "/web/STAMPid_/http://a.org/image.svg" }).addEventListener("load", (event) => rtc(event.target.contentWindow)),
  () => { const form = add("form", { action: http("form"), method: "post", target: "x" }); form.submit(); },
  () => open(http("open")), () => open(http("opener"), "_blank", "noopener"), () => { const view = open("about:blank"); view.document.body.innerHTML = `<link rel=preconnect href=${http("popup")}>`; rtc(view); },
  () => add("a", { href: http("click"), target: "_blank" }).click(), () => add("a", { href: http("download"), download: "x" }).click(), () => add("a", { href: "#x", ping: http("ping") }).click(),
  () => new Worker("/worker.js"), () => new Worker("/module.js", { type: "module" }), () => new Worker(URL.createObjectURL(new Blob([`import "${http("modules")}"; import("${http("moduled")}");`], { type: "text/javascript" })), { type: "module" }), () => new SharedWorker("/worker.js"), () => new Worker(`data:text/javascript,${encodeURIComponent(worker("dataworker"))}`),
  () => new Worker(URL.createObjectURL(new Blob([worker("blobworker")]))), () => new Worker(URL.createObjectURL(new Blob([worker("module")], { type: "text/javascript" })), { type: "module" }),
  () => new SharedWorker(URL.createObjectURL(new Blob([worker("shared")]))), () => navigator.serviceWorker.register("/worker.js"),
  () => navigator.serviceWorker.ready.then((it) => it.backgroundFetch.fetch("x", [http("background")])), () => navigator.serviceWorker.ready.then((it) => it.pushManager.subscribe()),
];
const worker = (name) => `try { new WebTransport("https://127.0.0.1:UDP/${name}"); } catch {} try { fetch("${http(name)}").catch(() => {}); } catch {}
  try { new WebSocket("ws://${host(`ws-${name}`)}"); } catch {} try { importScripts("${http(`import-${name}`)}"); } catch {}`;
const go = () => { ways.forEach(attempt); document.title = "tried"; setTimeout(() => { location.href = http("away"); }, 500); };
go();
"##;

const WORKER: &str = r#"try { new WebTransport("https://127.0.0.1:UDP/worker"); } catch {}
fetch("http://worker-WAY.leak.test/a").catch(() => {}); try { importScripts("http://importworker-WAY.leak.test/a"); } catch {}"#;

const REFRESH: &str = r#"<meta http-equiv=refresh content="0;url=http://meta-WAY.leak.test/a"><script>
document.head.append(Object.assign(document.createElement("meta"), { httpEquiv: "refresh", content: "0;url=http://late-WAY.leak.test/a" }));</script>"#;

/// A page that opens a link and runs a script, in PDF.
const PDF: &str = "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R/OpenAction<</S/URI/URI(http://uri-pdf.leak.test/a)/Next<</S/JavaScript/JS\
                   (app.launchURL\\('http://launch-pdf.leak.test/a', true\\); this.submitForm\\('http://submit-pdf.leak.test/a'\\);)>>>>>>endobj\n\
                   2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]>>endobj\n\
                   trailer<</Root 1 0 R/Size 4>>\n%%EOF\n";

/// Counts what arrives at a port of either kind.
struct Listeners {
    tcp: SocketAddr,
    udp: SocketAddr,
    connections: Arc<AtomicUsize>,
    datagrams: Arc<AtomicUsize>,
}

impl Listeners {
    fn start() -> Self {
        let (tcp, udp) = (TcpListener::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let [connections, datagrams] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
        let listeners = Self {
            tcp: tcp.local_addr().unwrap(),
            udp: udp.local_addr().unwrap(),
            connections: Arc::clone(&connections),
            datagrams: Arc::clone(&datagrams),
        };
        thread::spawn(move || {
            for mut stream in tcp.incoming().flatten() {
                connections.fetch_add(1, Ordering::SeqCst);
                // It is closed once something came.
                thread::spawn(move || stream.read(&mut [0; 1024]));
            }
        });
        thread::spawn(move || {
            while udp.recv(&mut [0; 2048]).is_ok() {
                datagrams.fetch_add(1, Ordering::SeqCst);
            }
        });
        listeners
    }

    fn counts(&self) -> [usize; 2] {
        [&self.connections, &self.datagrams].map(|count| count.load(Ordering::SeqCst))
    }

    /// The text of a document, shown in this way.
    fn fill(&self, text: &str, way: &str) -> String {
        let ports = [self.tcp, self.udp].map(|address| address.port().to_string());
        text.replace("WAY", way)
            .replace("STAMP", STAMP)
            .replace(":TCP", &format!(":{}", ports[0]))
            .replace(":UDP", &format!(":{}", ports[1]))
    }

    /// Options of a browser for which all names of the live web lead here.
    fn options(&self, log: &str) -> Vec<String> {
        let (tcp, name) = (self.tcp, "*.leak.test");
        vec![
            format!("--host-resolver-rules=MAP {name}:80 {tcp},MAP {name}:443 {tcp},MAP {name} 127.0.0.1"),
            format!("--log-net-log={log}"),
            "--disable-popup-blocking".to_owned(),
            "--disable-background-networking".to_owned(),
        ]
    }
}

/// Hosts of the live web in a log of the browser's network: quoted names and URLs.
fn reached(log: &str) -> BTreeSet<String> {
    let log = fs::read_to_string(log).unwrap();
    assert!(log.contains("\"URL_REQUEST_START_JOB\""), "the log is empty");
    let hosts = log.split('"').filter_map(|text| {
        // Other texts name URLs within addresses of the archive.
        let after =
            text.find("://").map_or(0, |at| if text[..at].contains('/') { text.len() } else { at + 3 });
        text[after..].split(['/', ':', '?', ' ', '\\']).next()
    });
    hosts
        .filter(|host| (host.ends_with(".leak.test") || host.ends_with(".look.test")) && !host.contains('*'))
        .map(str::to_owned)
        .collect()
}

/// Documents that try all ways: path, media type, body.
fn documents(listeners: &Listeners) -> Vec<(&'static str, &'static str, String)> {
    let page = |way: &str, before: &str| {
        format!(
            "{before}<title>not yet</title><body>{}<script>{}</script>",
            listeners.fill(MARKUP, way),
            listeners.fill(SCRIPTS, way)
        )
    };
    let cdata = |way: &str| format!("<![CDATA[{}]]>", listeners.fill(SCRIPTS, way));
    let svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"rtc(window)\"><script>{}</script>\
         <image href=\"http://image-svg.leak.test/a\"/><use href=\"http://use-svg.leak.test/a#b\"/><script href=\"http://script-svg.leak.test/a\"/></svg>",
        cdata("svg")
    );
    let xhtml = format!(
        "<html xmlns=\"http://www.w3.org/1999/xhtml\"><head><title>x</title><script>{}</script></head><body><script>{}</script></body></html>",
        cdata("xhtml"),
        listeners.fill("document.body.innerHTML = '&lt;link rel=\"&amp;#100;ns-prefetch\" href=\"//name-WAY.look.test/a\"/>&lt;svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1 1\">&lt;image href=\"http://inner-WAY.leak.test/a\"/>&lt;/svg>'", "xhtmlbody")
    );
    let prefixed = format!(
        "<h:html xmlns:h=\"http://www.w3.org/1999/xhtml\"><h:head><h:link rel=\"preconnect\" href=\"http://link-prefixed.leak.test/a\"/>\
         <h:script>{}</h:script></h:head><h:body/></h:html>",
        cdata("prefixed")
    );
    let entity = format!(
        "<!DOCTYPE html [<!ENTITY all \"&#60;script&#62;{}&#60;/script&#62;\">]>\
         <html xmlns=\"http://www.w3.org/1999/xhtml\">&all;<head/></html>",
        "rtc = 0; new RTCPeerConnection({iceServers: [{urls: 'stun:127.0.0.1:UDP'}]}).createDataChannel('x');"
    );
    let feed = format!(
        "<!DOCTYPE rss SYSTEM \"http://dtd-feed.leak.test/a\"><rss version=\"2.0\" xmlns:h=\"http://www.w3.org/1999/xhtml\"><channel><title>x</title><h:script>{}</h:script>\
         <h:link rel=\"preconnect\" href=\"http://link-feed.leak.test/a\"/></channel></rss>",
        cdata("feed")
    );
    let sheet = format!(
        "<xsl:stylesheet version=\"1.0\" xmlns:xsl=\"http://www.w3.org/1999/XSL/Transform\"><xsl:template match=\"/\"><html><head>\
         <link rel=\"preconnect\" href=\"http://link-xslt.leak.test/a\"/></head><body><xsl:copy-of select=\"document('http://document-xslt.leak.test/a')\"/><script>{}</script></body></html></xsl:template></xsl:stylesheet>",
        cdata("xslt")
    );
    let styled =
        "<?xml version=\"1.0\"?><?xml-stylesheet type=\"text/xsl\" href=\"/sheet.xsl\"?><a/>".to_owned();
    let html = "text/html";
    vec![
        ("/page", html, page("page", "<!doctype html>")),
        ("/refresh", html, listeners.fill(REFRESH, "refresh")),
        ("/plain.html", html, page("comment", "<!--><script>rtc0 = 1</script>--><html>")),
        ("/two-types", "text/html, image/svg+xml", page("types", "")),
        ("/untyped", "", page("untyped", "")),
        ("/text", "text/plain", page("text", "")),
        ("/image.svg", "image/svg+xml", svg),
        ("/page.xhtml", "application/xhtml+xml", xhtml),
        ("/prefixed.xhtml", "application/xhtml+xml", prefixed),
        ("/entity.xhtml", "application/xhtml+xml", listeners.fill(&entity, "entity")),
        ("/feed", "application/rss+xml", feed.clone()),
        ("/feed.xml", "text/xml", feed),
        ("/styled.xml", "text/xml", styled),
        ("/sheet.xsl", "text/xsl", sheet),
        ("/file.pdf", "application/pdf", PDF.to_owned()),
        ("/worker.js", "text/javascript", listeners.fill(WORKER, "file")),
        (
            "/module.js",
            "text/javascript",
            listeners.fill(r#"import "http://static-WAY.leak.test/a";"#, "file"),
        ),
    ]
}

/// Opens pages one after the other, each until what it began has arrived; returns the names that the browser has reached.
fn visit(listeners: &Listeners, log: &str, addresses: &[String]) -> BTreeSet<String> {
    {
        let browser = Browser::start_with(true, &listeners.options(log)).unwrap();
        for address in addresses {
            browser.go(address);
            thread::sleep(SETTLING[usize::from(!address.ends_with("/page"))]);
            println!("{address}: {:?}", listeners.counts());
            // A page that was left for another one is not the next one's opener.
            browser.devtools("Page.navigate", &json!({ "url": "about:blank" }));
        }
    }
    reached(log)
}

#[test]
fn no_way_leads_out_of_a_replayed_page() {
    if installed("chromium").is_none() || installed("chromedriver").is_none() {
        return;
    }
    let (open, closed) = (Listeners::start(), Listeners::start());
    let folder = Archive::new();
    let place = folder.folder().to_str().unwrap();

    import(&folder, &[("all.warc", records(&closed))]);
    let served = Served::of(&folder);
    let addresses = addresses(&closed, &format!("http://{}/web/", served.replay));
    // Each browser loads the first page without a worker, and what follows with one.
    let visited = &|number: usize| {
        let own = addresses[..1].iter().chain(addresses.iter().skip(number).step_by(BROWSERS));
        visit(&closed, &format!("{place}/net-{number}.json"), &own.cloned().collect::<Vec<_>>())
    };
    let names: BTreeSet<String> = thread::scope(|scope| {
        let browsers: [_; BROWSERS] = std::array::from_fn(|number| scope.spawn(move || visited(number)));
        ways_are_ways(&open, place);
        browsers.into_iter().flat_map(|browser| browser.join().unwrap()).collect()
    });
    assert_eq!((names, closed.counts()), (BTreeSet::new(), [0, 0]));
}

/// Fails unless the same page on the live web takes the ways.
fn ways_are_ways(open: &Listeners, place: &str) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let page = format!("http://{}/page", listener.local_addr().unwrap());
    live(listener, documents(open));
    let (mut names, mut missing) =
        (BTreeSet::new(), vec!["preconnect", "dns", "img", "fetch", "beacon", "hint", "name", "frame"]);
    for _ in 0..LIVE_VISITS_MAX {
        names.extend(visit(open, &format!("{place}/live.json"), std::slice::from_ref(&page)));
        missing.retain(|way| {
            !["leak", "look"].iter().any(|kind| names.contains(&format!("{way}-page.{kind}.test")))
        });
        if missing.is_empty() {
            break;
        }
    }
    let [connections, datagrams] = open.counts();
    println!("live: {} names, {connections} connections, {datagrams} datagrams: {names:?}", names.len());
    assert!(missing.is_empty() && connections > 10 && datagrams > 0, "{missing:?} are no ways any more");
}

/// The documents as a WARC file.
fn records(listeners: &Listeners) -> Vec<u8> {
    let records = documents(listeners).into_iter().enumerate().map(|(number, (path, media_type, body))| {
        let block = answered("200 OK", media_type, &body).replace("Content-Type: \r\n", "");
        answer(&format!("urn:uuid:{number}"), &format!("http://a.org{path}"), DAY, &[], &block)
    });
    records.collect::<Vec<_>>().concat()
}

/// Where a replay shows the documents, in all its forms.
fn addresses(listeners: &Listeners, start: &str) -> Vec<String> {
    let address = |modifier: &str, path: &str| format!("{start}{STAMP}{modifier}/http://a.org{path}");
    let modifiers = ["", "id_", "mp_", "if_", "fr_", "oe_", "js_", "cs_", "im_"];
    let mut addresses: Vec<_> = modifiers.iter().map(|modifier| address(modifier, "/page")).collect();
    for (path, ..) in &documents(listeners)[1..] {
        addresses.extend(["", "id_"].map(|modifier| address(modifier, path)));
    }
    addresses
}

#[test]
#[ignore = "measures; prints the ways out of pywb's replay, as it is, and takes two minutes"]
fn ways_out_of_another_replay_are_counted() {
    let Some(judges) = judges::find() else { return };
    let (listeners, folder) = (Listeners::start(), Archive::new());
    let file = folder.file("all.warc", records(&listeners));
    for arguments in [vec!["init", "all"], vec!["add", "all", file.to_str().unwrap()]] {
        let mut command = judges.program("wb-manager");
        judges::succeed(command.current_dir(folder.folder()).args(arguments), "");
    }
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = judges.program("wayback");
    command.current_dir(folder.folder()).args(["--bind", "127.0.0.1", "--port", &port.to_string()]);
    let mut pywb = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    for _ in 0..STARTING_MAX {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            break;
        }
        thread::sleep(Duration::from_secs(1));
    }
    let addresses = addresses(&listeners, &format!("http://127.0.0.1:{port}/all/"));
    let names = visit(&listeners, &format!("{}/net.json", folder.folder().display()), &addresses);
    let [connections, datagrams] = listeners.counts();
    pywb.kill().and_then(|()| pywb.wait()).unwrap();
    println!("pywb: {} names, {connections} connections, {datagrams} datagrams: {names:?}", names.len());
}
