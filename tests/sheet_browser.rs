//! The exported review page in a real browser: keys pressed there come back as decisions.

use std::fs;

use crate::decisions::{crawled, sites};
use crate::replay_browser::look;
use crate::support::installed;

/// Presses keys, and leaves the download in the document.
const PRESSING: &str = r#"<script>
const press = (keys, on = document.body) => keys.forEach(key =>
  on.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true })));
const first = document.querySelector("tbody tr");
press(["4", "2", "u", "3"]);
press(["1", "k"], first.querySelector("textarea"));
press(["ArrowUp", "d", "ArrowUp", "ArrowUp", "n", "u", "o"]);
press(["1"], document.getElementById("filter"));
const shown = document.createElement("pre"); document.body.append(shown);
URL.createObjectURL = blob => { blob.text().then(text => shown.textContent = `CSV:${text}:END`); return "about:blank"; };
HTMLAnchorElement.prototype.click = () => {};
document.getElementById("download").click();
</script></body>"#;

#[test]
fn keys_rate_decide_move_and_undo() {
    let Some(browser) = installed("chromium") else { return };
    let (_served, archive) = crawled(3);
    let sheet = archive.folder().join("review.html");
    let path = sheet.display().to_string();
    archive.run("review export", &["--format", "html", "--output", &path]).succeeded();
    let text = fs::read_to_string(&sheet).unwrap();
    fs::write(&sheet, text.replace("</body>", PRESSING)).unwrap();
    let (document, _) = look(&browser, archive.folder(), &format!("file://{path}"));
    let (_, csv) =
        document.split_once("<pre>CSV:").unwrap_or_else(|| panic!("nothing was downloaded: {document}"));
    let ratings = archive.folder().join("ratings.csv");
    fs::write(&ratings, csv.split_once(":END").unwrap().0).unwrap();

    archive.run("review import", &[&ratings.display().to_string(), "--by", "anna"]).succeeded();
    let mut found = Vec::new();
    for site in sites(&archive) {
        let rows =
            archive.json("query", &[&format!("site site = \"{site}\" select rating, verdict, importance")]);
        found.push((
            rows[0]["importance"].as_f64().unwrap(),
            rows[0]["rating"].clone(),
            rows[0]["verdict"].clone(),
        ));
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    let said: Vec<String> = found.iter().map(|(_, rating, verdict)| format!("{rating} {verdict}")).collect();
    // 2 was undone, so 3 went to the second row; the arrows went back to it and to the first, where `never` was undone.
    assert_eq!(said, ["4 \"often\"", "3 \"drop\"", "null null"]);
}
