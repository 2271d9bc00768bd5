//! The sheet as a self-contained HTML file that needs no network: it sorts sites, takes ratings, keeps them in the
//! browser, and exports them as CSV. Without scripts it is still a table to read and print.
//!
//! Everything from the web is escaped by maud; only `http:` and `https:` URLs become links.

use archive_base::decisions::DecisionVerdict;
use chrono::{DateTime, Utc};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::ratings::Score;
use super::sheet::{SamplePage, Sheet, SiteEntry};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

impl Sheet {
    /// Renders the page.
    #[must_use]
    pub fn html(&self) -> String {
        let title = format!("Sites to review: {}", self.archive);
        let importance_max = self.entries.iter().map(|entry| entry.site.importance).fold(0.0, f64::max);
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    meta name="referrer" content="no-referrer";
                    meta http-equiv="Content-Security-Policy"
                        content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";
                    title { (title) }
                    style { (PreEscaped(STYLE)) }
                }
                body data-sheet=(format!("{} {}", self.archive, self.made.to_rfc3339()))
                    data-made=(self.made.format("%Y-%m-%dT%H:%M:%SZ")) {
                    (self.head())
                    main {
                        table #sites {
                            caption .unseen { "Sites with what the archive knows of them, and your rating" }
                            (columns())
                            tbody {
                                @for (index, entry) in self.entries.iter().enumerate() {
                                    (row(index + 1, entry, importance_max))
                                }
                            }
                        }
                        @if self.entries.is_empty() { p .nothing { "No site was found." } }
                        p #none .nothing hidden { "No site fits. Change the filter to see more." }
                    }
                    footer {
                        p { "Selected by " code { (self.selection) } ", made " (moment(Some(self.made))) " (UTC)." }
                        p {
                            "Importance is relative to the average site: 10 means ten times as important. It is an "
                            "estimate from the links between sites, made while crawling."
                        }
                    }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
        };
        page.into_string()
    }

    fn head(&self) -> Markup {
        let shown = self.entries.len() as u64;
        html! {
            header {
                p .kicker { "Review" }
                h1 { (self.archive) }
                p .lead {
                    (count(shown))
                    @if shown < self.matched { " of " (count(self.matched)) }
                    " sites by importance. Say of each how much it belongs in the collection:"
                }
                ul .scale {
                    @for score in Score::EACH { li { b { (score.number()) } " " (score.meaning()) } }
                }
            }
            div .bar {
                div .tools {
                    label .find {
                        span .unseen { "Filter by site, page or comment" }
                        input #filter type="search" placeholder="Filter sites" autocomplete="off";
                    }
                    label .toggle { input #open type="checkbox"; " Only unrated" }
                    output #progress { "0 of " (count(shown)) " rated" }
                    button #download type="button" { "Download ratings as CSV" }
                }
                div .track { div #done {} }
            }
            p .keys {
                "Keys: " kbd { "1" } "–" kbd { "4" } " rate; " kbd { "k" } " keep, " kbd { "d" } " drop, " kbd { "o" }
                " often, " kbd { "n" } " never, " kbd { "i" } " investigate; " kbd { "↑" } kbd { "↓" } " move; "
                kbd { "u" } " undo."
            }
            noscript {
                p .nothing { "Scripts are off: print this page to rate on paper, or use the CSV export." }
            }
        }
    }
}

fn columns() -> Markup {
    let columns = [
        ("rank", "#", "number"),
        ("site", "Site", ""),
        ("importance", "Importance", "number"),
        ("pages", "Pages", "number"),
        ("captures", "Captures", "number"),
        ("types", "Types", ""),
        ("seen", "First, last seen", ""),
        ("rating", "Rating", ""),
    ];
    html! {
        thead {
            tr {
                @for (name, label, class) in columns {
                    th scope="col" class=(format!("{name} {class}")) aria-sort=[(name == "rank").then_some("ascending")] {
                        button type="button" data-sort=(name) { (label) span .arrow aria-hidden="true" {} }
                    }
                }
                th scope="col" .verdict { "Verdict" }
                th scope="col" .comment { "Comment" }
            }
        }
    }
}

fn row(rank: usize, entry: &SiteEntry, importance_max: f64) -> Markup {
    let site = &entry.site;
    let share = if importance_max > 0.0 { site.importance / importance_max * 100.0 } else { 0.0 };
    html! {
        tr data-site=(site.name) {
            td .rank .number data-value=(rank) { (rank) }
            th scope="row" .site data-value=(site.name) {
                span .name { (site.name) }
                (samples(&entry.samples))
            }
            td .importance .number data-label="Importance" data-value=(site.importance) {
                span .figure { (measure(site.importance)) }
                span .share aria-hidden="true" { span style=(format!("width:{share:.1}%")) {} }
            }
            td .pages .number data-label="Pages" data-value=(site.pages) { (count(site.pages)) }
            td .captures .number data-label="Captures" data-value=(site.captures) { (count(site.captures)) }
            td .types data-label="Types" data-value=(site.html) { (types(entry)) }
            td .seen data-label="Seen" data-value=(site.last_seen.map_or(0, |time| time.timestamp())) {
                (moment(site.first_seen)) span .to { " to " } (moment(site.last_seen))
            }
            td .rating data-value="" { (rating(rank, &site.name)) }
            td .verdict { (verdict(rank, &site.name)) }
            td .comment {
                textarea rows="1" name=(format!("comment-{rank}")) placeholder="Comment"
                    aria-label=(format!("Comment on {}", site.name)) {}
            }
        }
    }
}

fn samples(samples: &[SamplePage]) -> Markup {
    html! {
        @match samples {
            [] => span .missing { "no page to show" },
            [only] => div .samples { (sample(only)) },
            several => details .samples {
                summary { (several.len()) " sample pages" }
                ol { @for page in several { li { (sample(page)) } } }
            }
        }
    }
}

fn sample(page: &SamplePage) -> Markup {
    let title = page.title.as_deref().unwrap_or(&page.url);
    let is_web = page.url.starts_with("http://") || page.url.starts_with("https://");
    html! {
        @if is_web {
            a href=(page.url) title=(page.url) target="_blank" rel="noopener noreferrer nofollow" { (title) }
        } @else {
            span title=(page.url) { (title) }
        }
    }
}

fn types(entry: &SiteEntry) -> Markup {
    let site = &entry.site;
    let parts = [("html", "HTML", site.html), ("xml", "XML", site.xml), ("other", "other", site.other())];
    let total = site.pages.max(1) as f64;
    html! {
        span .stack aria-hidden="true" {
            @for (class, _, pages) in parts {
                @if pages > 0 {
                    span class=(class) style=(format!("width:{:.1}%", pages as f64 / total * 100.0)) {}
                }
            }
        }
        span .legend {
            @for (class, label, pages) in parts {
                @if pages > 0 { span { i class=(class) aria-hidden="true" {} (count(pages)) " " (label) } }
            }
        }
    }
}

fn rating(rank: usize, site: &str) -> Markup {
    html! {
        fieldset {
            legend .unseen { "Rating of " (site) }
            @for score in Score::EACH.iter().rev() {
                @let number = score.number();
                label title=(score.meaning()) {
                    input type="radio" name=(format!("rating-{rank}")) value=(number);
                    span { (number) span .unseen { " " (score.meaning()) } }
                }
            }
            button .clear type="button" title="Take the rating back" aria-label=(format!("Take the rating of {site} back")) {
                "×"
            }
        }
    }
}

fn verdict(rank: usize, site: &str) -> Markup {
    html! {
        select name=(format!("verdict-{rank}")) aria-label=(format!("Verdict on {site}")) {
            option value="" { "–" }
            @for verdict in DecisionVerdict::EACH { option { (verdict.name()) } }
        }
    }
}

fn moment(time: Option<DateTime<Utc>>) -> Markup {
    html! {
        @match time {
            Some(time) => {
                time datetime=(time.format("%Y-%m-%dT%H:%M:%SZ")) title=(time.format("%Y-%m-%d %H:%M:%S UTC")) {
                    (time.format("%Y-%m-%d"))
                }
            }
            None => span .missing { "never" },
        }
    }
}

/// Formats a count with narrow spaces between groups of thousands.
fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats a measure whose mean is 1 with about three digits.
fn measure(number: f64) -> String {
    match number {
        _ if number >= 100.0 => count(number.round() as u64),
        _ if number >= 10.0 => format!("{number:.1}"),
        _ => format!("{number:.2}"),
    }
}
