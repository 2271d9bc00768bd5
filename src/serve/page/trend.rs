//! The importance of a site or a page over time.

use archive_base::files::FileError;
use archive_books::trends::{Series, Trends};
use chrono::{DateTime, Utc};
use maud::{Markup, html};
use serde::Serialize;

use super::super::opener::RoleView;
use super::picture::Picture;
use super::{Speech, utc};

/// An importance, and the time from which on it was this.
#[derive(Debug, Serialize)]
pub(super) struct ImportanceAt {
    #[serde(serialize_with = "utc")]
    time: Option<DateTime<Utc>>,
    importance: f64,
}

/// What was noted of a site or page, oldest first.
pub(super) fn noted(
    opened: &RoleView<'_>,
    of: impl FnOnce(&Trends) -> Option<&Series>,
) -> Result<Vec<ImportanceAt>, FileError> {
    let trends = opened.cache.trends(opened.store.path())?;
    let each = of(&trends).into_iter().flat_map(Series::each);
    Ok(each.map(|(time, importance)| ImportanceAt { time: Some(time), importance }).collect())
}

/// A chart of it up to now, if it has ever changed.
pub(super) fn section(t: Speech, noted: &[ImportanceAt]) -> Markup {
    let steps = noted.iter().filter_map(|at| Some((at.time?, at.importance))).collect::<Vec<_>>();
    let (Some((first, earliest)), Some((_, latest)), true) = (steps.first(), steps.last(), steps.len() > 1)
    else {
        return html! {};
    };
    let seconds = |time: DateTime<Utc>| time.timestamp() as f64;
    let now = Utc::now();
    let ends = steps.iter().skip(1).map(|(time, _)| *time).chain([now]);
    let points: Vec<(f64, f64)> = steps
        .iter()
        .zip(ends)
        .flat_map(|((from, importance), to)| [(seconds(*from), *importance), (seconds(to), *importance)])
        .collect();
    let most = steps.iter().map(|(_, importance)| *importance).fold(0.0, f64::max);
    let number = |importance: f64| t.decimal(importance, 2);
    let (from, to) = (t.minute(*first), t.minute(now));
    let title =
        t.fill("importance {} to {} from {} to {}", &[&number(*earliest), &number(*latest), &from, &to]);
    let most_said = t.fill("importance {}", &[&number(most)]);
    html! { section {
        h2 { (t.say("Importance over time")) }
        (Picture { title: &title, most: most_said, from, to }.line(&points, most))
    } }
}
