//! The windows of recorded histories of the published results, so that these can be reproduced.

use std::path::Path;

use chrono::NaiveDate;

use super::history::{History, HistoryError};
use super::world::{Window, World};

/// A history and the largest number of its pages to use.
struct Part {
    history: &'static str,
    pages_max: usize,
}

/// A named window over one or several histories.
pub struct Setting {
    /// Name in tables of results.
    pub name: &'static str,
    start: (i32, u32, u32),
    end: (i32, u32, u32),
    tick: f64,
    parts: &'static [Part],
}

const fn part(history: &'static str, pages_max: usize) -> Part {
    Part { history, pages_max }
}

const fn one(
    name: &'static str,
    start: (i32, u32, u32),
    end: (i32, u32, u32),
    tick: f64,
    parts: &'static [Part],
) -> Setting {
    Setting { name, start, end, tick, parts }
}

const PHP: &str = "php-doc-en-xml";
const OTA: &str = "ota-contrib-live";
const CURL: &str = "curl-www";
const PEPS: &str = "python-peps";
const WCAG: &str = "w3c-wcag-html";
const RSS: &str = "rss-feeds-xml";
const JQUERY: &str = "jquery-api-xml";

/// All settings: ten of single histories, two of which are not in the means of the tables, and two of many sites at
/// once.
pub const SETTINGS: [Setting; 12] = [
    one("php", (2008, 1, 1), (2014, 1, 1), 0.25, &[part(PHP, 4000)]),
    one("php20", (2020, 7, 1), (2026, 7, 1), 0.25, &[part(PHP, 4000)]),
    one("ota", (2021, 1, 1), (2026, 8, 1), 0.25, &[part(OTA, 4000)]),
    one("curl", (2014, 1, 1), (2026, 8, 1), 0.5, &[part(CURL, 4000)]),
    one("jquery", (2012, 6, 1), (2018, 1, 1), 0.25, &[part(JQUERY, 4000)]),
    one("peps", (2013, 1, 1), (2026, 8, 1), 0.5, &[part(PEPS, 4000)]),
    one("wcag", (2017, 1, 1), (2026, 8, 1), 0.5, &[part(WCAG, 4000)]),
    one("rss", (2025, 1, 20), (2026, 8, 20), 1.0 / 24.0, &[part("rss-feeds-semantic-xml", 4000)]),
    one(
        "mix",
        (2025, 1, 20),
        (2026, 8, 10),
        0.125,
        &[
            part(PHP, 2000),
            part(OTA, 900),
            part(CURL, 900),
            part(PEPS, 800),
            part(WCAG, 1000),
            part(RSS, 50),
            part(JQUERY, 400),
        ],
    ),
    one(
        "mix3",
        (2021, 7, 1),
        (2025, 1, 1),
        0.25,
        &[
            part(PHP, 2000),
            part(OTA, 900),
            part(CURL, 900),
            part(PEPS, 800),
            part(WCAG, 1000),
            part(JQUERY, 400),
        ],
    ),
    one("otapga", (2022, 5, 1), (2026, 8, 1), 0.25, &[part("ota-pga-live", 4000)]),
    one("rssraw", (2025, 1, 20), (2026, 8, 20), 1.0 / 24.0, &[part(RSS, 4000)]),
];

impl Setting {
    /// Builds the world of this setting from the histories in `folder`.
    ///
    /// # Errors
    /// A history is missing or damaged.
    pub fn world(&self, folder: &Path) -> Result<World, HistoryError> {
        let mut histories = Vec::new();
        for part in self.parts {
            let path = folder.join(format!("{}.tsv.gz", part.history));
            histories.push((History::read(&path, None)?, part.pages_max));
        }
        let histories: Vec<(&History, usize)> =
            histories.iter().map(|(history, pages_max)| (history, *pages_max)).collect();
        World::new(
            &histories,
            Window { start: midnight(self.start), end: midnight(self.end), tick: self.tick },
        )
    }
}

/// Returns the setting with this name.
pub fn find(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

fn midnight((year, month, day): (i32, u32, u32)) -> i64 {
    let date = NaiveDate::from_ymd_opt(year, month, day).unwrap_or_default();
    date.and_time(chrono::NaiveTime::MIN).and_utc().timestamp()
}
