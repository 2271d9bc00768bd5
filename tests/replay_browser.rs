//! Replayed pages in a real browser: scripts get what they ask for from the archive, and nothing goes to the live web.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::imports::import;
use crate::support::program::start;
use crate::support::served::Served;
use crate::support::warc::response;
use crate::support::{Archive, installed};

const DAY: &str = "2014-01-03T03:03:21Z";
const STAMP: &str = "20140103030321";

/// A page whose script asks in every way that there is, for what is archived and for what is not.
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

/// The document that a browser has of a page in the end, and the hosts that it wanted to reach.
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
    assert!(asked.contains("127.0.0.1") && gone.contains("127.0.0.1"), "the log has no line");
    for host in asked.iter().chain(&gone) {
        let is_meant = host.ends_with(".example") || host.ends_with(".org");
        assert!(!is_meant, "the browser wanted to reach {host}");
    }
}
