//! Text boxes with suggestions, with and without scripts: words of queries, times of searches.

use serde_json::{Value, json};

use crate::imports::import;
use crate::people::{JUDGE, judged, versions};
use crate::support::browser::Browser;
use crate::support::program::start;
use crate::support::served::{Served, ask};
use crate::support::warc::response;
use crate::support::{Archive, judges};

const TAB: char = '\u{e004}';
const ENTER: char = '\u{e007}';
const ESCAPE: char = '\u{e00c}';
const LEFT: char = '\u{e012}';
const UP: char = '\u{e013}';
const DOWN: char = '\u{e015}';

/// Returns the suggestions, the role of the box, the selected suggestion and the typed text.
const OFFERED: &str = r#"
const box = document.getElementById("query"), list = document.getElementById("words");
const names = [...list.querySelectorAll("li code")].map(name => name.textContent);
const chosen = document.getElementById(box.getAttribute("aria-activedescendant"));
const isTrue = chosen?.getAttribute("aria-selected") === "true" && list.checkVisibility();
return [list.checkVisibility() ? names : [], box.getAttribute("role"), isTrue ? chosen.querySelector("code").textContent : null, box.value];
"#;

#[test]
fn words_of_queries_are_completed() {
    let (Some(axe), Some(browser)) = (judges::axe(), Browser::start(true)) else { return };
    let archive = Archive::new();
    import(&archive, &[("versions.warc", versions())]);
    let served = Served::of(&archive);
    let page = format!("http://{}/query", served.application);
    let has = |names: Value, role: Value, chosen: Value, typed: &str| {
        assert_eq!(browser.run(OFFERED, &json!([])), json!([names, role, chosen, typed]));
    };
    let combobox = || json!("combobox");
    browser.go(&page);
    browser.click("#query");
    has(json!([]), Value::Null, Value::Null, "");
    browser.press("page first se");
    has(json!(["first seen"]), combobox(), Value::Null, "page first se");
    browser.press(&format!("{DOWN}"));
    has(json!(["first seen"]), combobox(), json!("first seen"), "page first se");
    browser.run(&axe, &json!([]));
    assert_eq!(browser.run_later(JUDGE, &json!([])), json!([]));
    browser.press(&format!("{ENTER}"));
    has(json!([]), Value::Null, Value::Null, "page first seen");
    // Values of a field; another kind of row has other fields.
    browser.press(" > 2026-01-01 and seed = ");
    has(json!(["yes", "no"]), combobox(), Value::Null, "page first seen > 2026-01-01 and seed = ");
    browser.press(&format!("{UP}{UP}{ENTER}"));
    has(json!([]), Value::Null, Value::Null, "page first seen > 2026-01-01 and seed = yes");
    browser.go(&page);
    browser.click("#query");
    browser.press("link target.ti");
    has(json!(["title"]), combobox(), Value::Null, "link target.ti");
    browser.click("#words li");
    has(json!([]), Value::Null, Value::Null, "link target.title");
    browser.go(&page);
    browser.click("#query");
    // Nothing is selected automatically, and there are no suggestions inside strings.
    browser.press(&format!("page ty{ESCAPE}"));
    has(json!([]), Value::Null, Value::Null, "page ty");
    browser.press("pe = h");
    has(json!(["html"]), combobox(), Value::Null, "page type = h");
    browser.press(&format!("tml and{ENTER}title contains \"ti"));
    has(json!([]), Value::Null, Value::Null, "page type = html and\ntitle contains \"ti");
    browser.go(&page);
    browser.click("#query");
    // Keywords of one word and of several; none twice, and none after a dot.
    browser.press(&format!("page status = 404 ord{DOWN}{ENTER}"));
    has(json!([]), Value::Null, Value::Null, "page status = 404 order by");
    browser.press(" importance lim");
    has(json!(["limit"]), combobox(), Value::Null, "page status = 404 order by importance lim");
    browser.press("it 5 same c");
    has(
        json!(["same content as"]),
        combobox(),
        Value::Null,
        "page status = 404 order by importance limit 5 same c",
    );
    browser.go(&page);
    browser.click("#query");
    browser.press("page see");
    has(json!(["seed"]), combobox(), Value::Null, "page see");
    browser.press("d and link target.cont");
    let both = json!(["content_type", "content_status"]);
    has(both, combobox(), Value::Null, "page seed and link target.cont");
    browser.go(&page);
    browser.click("#query");
    browser.press(&format!("page type = h{DOWN}{ENTER}{TAB}{ENTER}"));
    browser.wait_for("http://versions.test/</a>");
    // Without scripts it is a plain text box.
    let Some(browser) = Browser::start(false) else { return };
    browser.go(&page);
    browser.click("#query");
    browser.press(&format!("page type = html{TAB}{ENTER}"));
    browser.wait_for("http://versions.test/</a>");
}

#[test]
fn times_of_searches_are_links_and_a_slider() {
    let archive = Archive::new();
    let said = [(2001, "Welcome."), (2003, "Nine to quarterpast."), (2005, "Moved.")];
    let records = said.map(|(year, said)| {
        let (id, date) = (format!("urn:test:{year}"), format!("{year}-03-15T12:00:00Z"));
        response(&id, "http://h.test/", &date, &format!("<title>Library</title><p>{said}"))
    });
    let file = archive.file("a.warc", records.concat());
    start(archive.command("import").arg("--index-versions").arg(file)).wait().succeeded();
    let served = Served::of(&archive);
    let get = |path: &str, fields: &[&str]| {
        let answer = ask(&served.application, "GET", path, fields);
        assert_eq!(answer.status, 200);
        String::from_utf8(answer.body).unwrap()
    };
    let data: Value = serde_json::from_str(&get("/search?q=library", &["Accept: application/json"])).unwrap();
    let months = ["2001-03", "2003-03", "2005-03"];
    assert_eq!(data["times"], json!(months.map(|month| json!({ "as_of": month, "captures": 1 }))));
    for (time, earlier, later, at) in [
        ("", Some("2005-03"), None, 3),
        ("2005-03", Some("2003-03"), None, 2),
        ("2003-03", Some("2001-03"), Some("2005-03"), 1),
        ("2003-04-02", Some("2003-03"), Some("2005-03"), 1),
        ("2002-06-15T10:00:00Z", Some("2001-03"), Some("2003-03"), 0),
        ("1999-12", None, Some("2001-03"), 0),
    ] {
        let html = get(&format!("/search?q=library&as-of={time}"), &[]);
        let link = |rel: &str| {
            let rest = html.split_once(&format!("<a rel=\"{rel}\" href=\""))?.1;
            Some(rest.split_once("as-of=")?.1.split_once('"')?.0.to_owned())
        };
        assert_eq!((link("prev").as_deref(), link("next").as_deref()), (earlier, later), "{time}");
        assert!(html.contains(&format!("max=\"3\" value=\"{at}\"")), "{time}: {html}");
    }
    let (Some(axe), Some(browser)) = (judges::axe(), Browser::start(true)) else { return };
    let page = format!("http://{}/search?q=quarterpast", served.application);
    assert_eq!(judged(&browser, &axe, &page, 0..3), [""; 0]);
    let slider = || {
        let script = "const slider = document.getElementById('slider'); slider.focus(); \
                    return [slider.getAttribute('aria-valuetext'), document.getElementById('as-of').value];";
        browser.run(script, &json!([]))
    };
    assert_eq!(slider(), json!(["newest", ""]));
    browser.press(&format!("{LEFT}{LEFT}"));
    assert_eq!(slider(), json!(["2003-03 (1 capture)", "2003-03"]));
    browser.click("form.times button");
    browser.wait_for("<mark>quarterpast</mark>");
    assert_eq!(slider(), json!(["2003-03 (1 capture)", "2003-03"]));
    // Without scripts there are links.
    let Some(browser) = Browser::start(false) else { return };
    browser.go(&format!("{page}&as-of=2001-03"));
    assert!(!browser.source().contains("<mark>"));
    browser.click("a[rel=next]");
    browser.wait_for("<mark>quarterpast</mark>");
}
