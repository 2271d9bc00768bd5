//! A report as plain text, for mail or a terminal.

use std::fmt::Write as _;

use archive_base::texts::Language;
use archive_books::change::lines;
use chrono::Local;

use super::report::{ElementNews, PageNews, WatchReport};

/// Maximum number of lines shown of one page's difference; `archive diff` shows all.
const LINES_PER_PAGE_MAX: usize = 40;

/// Formats a report.
pub(super) fn of(report: &WatchReport) -> String {
    let local = |time: chrono::DateTime<chrono::Utc>| time.with_timezone(&Local).format("%Y-%m-%d %H:%M");
    let mut out = format!(
        "{}: {} of {} pages changed from {} to {}\n{}\n",
        report.watch,
        report.news.len(),
        report.pages,
        local(report.since),
        local(report.until),
        report.query,
    );
    if report.not_fetched > 0 {
        let _ = writeln!(
            out,
            "{} pages could not be fetched in time and may have changed too",
            report.not_fetched
        );
    }
    if report.news.is_empty() {
        out.push_str("nothing changed\n");
    }
    for page in &report.news {
        put_page(page, &mut out);
    }
    out
}

fn put_page(page: &PageNews, out: &mut String) {
    let title = page.title.as_deref().map(|title| format!("  {title}")).unwrap_or_default();
    let _ = writeln!(out, "\n{}  {}{title}", page.news.name(), page.url);
    for (value, is_new) in page.values.iter().flat_map(ElementNews::each) {
        let _ = writeln!(out, "    {} {value}", if is_new { '+' } else { '-' });
    }
    let Some(difference) = &page.difference else { return };
    let lines = lines(difference, false, Language::English);
    for line in lines.iter().filter(|line| !line.is_empty()).take(LINES_PER_PAGE_MAX) {
        let text: String = line.iter().map(|(_, text)| text.as_str()).collect();
        let _ = writeln!(out, "    {text}");
    }
    if lines.len() > LINES_PER_PAGE_MAX {
        let _ =
            writeln!(out, "    … {} more lines: archive diff {}", lines.len() - LINES_PER_PAGE_MAX, page.url);
    }
}
