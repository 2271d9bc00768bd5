//! Boxes that help whoever types, with scripts and without: words of queries.

use serde_json::{Value, json};

use crate::imports::import;
use crate::people::{JUDGE, versions};
use crate::support::browser::Browser;
use crate::support::served::Served;
use crate::support::{Archive, judges};

const TAB: char = '\u{e004}';
const ENTER: char = '\u{e007}';
const ESCAPE: char = '\u{e00c}';
const UP: char = '\u{e013}';
const DOWN: char = '\u{e015}';

/// What is offered, what the box is, what is chosen and what was typed.
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
    browser.press("page first s");
    has(json!(["first seen"]), combobox(), Value::Null, "page first s");
    browser.press(&format!("{DOWN}"));
    has(json!(["first seen"]), combobox(), json!("first seen"), "page first s");
    browser.run(&axe, &json!([]));
    assert_eq!(browser.run_later(JUDGE, &json!([])), json!([]));
    browser.press(&format!("{ENTER}"));
    has(json!([]), Value::Null, Value::Null, "page first seen");
    // Values of a field; another row has other fields.
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
    // Nothing is chosen by itself, and nothing offered in texts.
    browser.press(&format!("page ty{ESCAPE}"));
    has(json!([]), Value::Null, Value::Null, "page ty");
    browser.press("pe = h");
    has(json!(["html"]), combobox(), Value::Null, "page type = h");
    browser.press(&format!("tml and{ENTER}title contains \"ti"));
    has(json!([]), Value::Null, Value::Null, "page type = html and\ntitle contains \"ti");
    browser.go(&page);
    browser.click("#query");
    browser.press(&format!("page type = h{DOWN}{ENTER}{TAB}{ENTER}"));
    browser.wait_for("http://versions.test/</a>");
    // Without scripts it is a box.
    let Some(browser) = Browser::start(false) else { return };
    browser.go(&page);
    browser.click("#query");
    browser.press(&format!("page type = html{TAB}{ENTER}"));
    browser.wait_for("http://versions.test/</a>");
}
