//! What a reader of the town could have seen: the truth that answers are compared with.

use archive_testweb::{Says, Town};
use chrono::{DateTime, TimeDelta, Utc};

/// An answer that was there to be seen.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) time: DateTime<Utc>,
    pub(super) says: Says,
}

/// The town, as looked at on some days.
pub(super) struct Truth {
    pub(super) town: Town,
    /// The days so far.
    pub(super) days: Vec<DateTime<Utc>>,
}

impl Truth {
    /// Returns the addresses of pages and parts.
    pub(super) fn urls(&self) -> impl Iterator<Item = String> {
        self.town.urls().into_iter().filter(|url| !url.ends_with("/robots.txt"))
    }

    /// Returns what an address answered on each day on which it was known, allowed, and answered at all.
    pub(super) fn seen(&self, url: &str) -> Vec<Seen> {
        let known = |time: &DateTime<Utc>| self.town.since(url).is_some_and(|since| since <= *time);
        let days = self.days.iter().filter(|time| known(time) && !self.is_refused(url, **time));
        let seen = days.filter_map(|time| {
            let noon = *time + TimeDelta::hours(3);
            let (time, says) = match self.town.says(url, *time)? {
                Says::Later { .. } => (noon, self.town.says(url, noon)?),
                says => (*time, says),
            };
            (says != Says::Reset).then_some(Seen { time, says })
        });
        seen.collect()
    }

    /// Whether the host's robots.txt refuses an address to crawlers.
    pub(super) fn is_refused(&self, url: &str, time: DateTime<Utc>) -> bool {
        let (host, path) = parts(url);
        match self.town.says(&format!("http://{host}/robots.txt"), time) {
            Some(Says::File { body, .. }) => {
                let rules = String::from_utf8(body).unwrap();
                rules
                    .lines()
                    .filter_map(|line| line.strip_prefix("Disallow: "))
                    .any(|it| path.starts_with(it))
            }
            _ => false,
        }
    }

    /// Returns what was seen last by the end of a day.
    pub(super) fn by(&self, url: &str, day: DateTime<Utc>) -> Option<Seen> {
        self.seen(url).into_iter().rfind(|seen| seen.time <= end_of(day))
    }

    /// Returns what was seen nearest to the end of a day.
    pub(super) fn nearest(&self, url: &str, day: DateTime<Utc>) -> Option<Seen> {
        self.seen(url).into_iter().min_by_key(|seen| (seen.time - end_of(day)).abs())
    }

    /// Returns what a reader sees of an address as of a day, behind redirects.
    pub(super) fn shown(&self, url: &str, day: DateTime<Utc>) -> Option<Seen> {
        const REDIRECTS_MAX: usize = 5;
        let mut url = url::Url::parse(url).unwrap();
        for _ in 0..REDIRECTS_MAX {
            let seen = self.nearest(url.as_str(), day)?;
            let Says::Moved { to, .. } = &seen.says else { return Some(seen) };
            url = url.join(to).unwrap();
        }
        panic!("{url} redirects in circles")
    }
}

impl Seen {
    /// Whether it is what stood at the address, and no error.
    pub(super) fn is_content(&self) -> bool {
        self.status() < 400
    }

    /// Returns the status.
    pub(super) fn status(&self) -> u16 {
        match self.says {
            Says::File { .. } => 200,
            Says::Moved { status, .. } | Says::Status(status) | Says::Later { status, .. } => status,
            Says::Reset => 0,
        }
    }

    /// Returns the text of a page.
    pub(super) fn page(&self) -> Option<&str> {
        match &self.says {
            Says::File { media_type, body } if media_type.starts_with("text/html") => {
                std::str::from_utf8(body).ok()
            }
            _ => None,
        }
    }

    /// Returns the title of a page; it is empty if the page has none.
    pub(super) fn title(&self) -> Option<&str> {
        self.page().map(|page| between(page, "<title>", "<").unwrap_or_default())
    }

    /// Returns the words of a page that end in a year, such as `museum2018`.
    pub(super) fn marks(&self) -> Vec<String> {
        let text = between(self.page().unwrap_or_default(), "<h1>", "<").unwrap_or_default();
        text.split(' ')
            .filter(|word| word.len() > 4 && word.ends_with(char::is_numeric))
            .map(str::to_owned)
            .collect()
    }
}

/// Returns the text between two others.
pub(super) fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    Some(text.split_once(before)?.1.split_once(after)?.0)
}

/// Returns a day as in `2018-06-01`.
pub(super) fn date(time: DateTime<Utc>) -> String {
    time.format("%Y-%m-%d").to_string()
}

/// Returns the last second of a day.
pub(super) fn end_of(day: DateTime<Utc>) -> DateTime<Utc> {
    day.date_naive().and_hms_opt(23, 59, 59).unwrap().and_utc()
}

/// Splits a URL into its host and its path with query.
fn parts(url: &str) -> (&str, &str) {
    let rest = url.strip_prefix("http://").unwrap();
    rest.split_at(rest.find('/').unwrap())
}
