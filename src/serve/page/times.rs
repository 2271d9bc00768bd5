//! Times as of which an archive can be searched: the months that have captures, or years if there are too many months.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use archive_ask::find::CaptureTimes;
use chrono::{DateTime, Local, TimeDelta, Utc};
use maud::{Markup, html};
use serde::Serialize;

use super::PageRequest;

/// Maximum number of months shown individually; beyond that, years are shown.
const MONTHS_MAX: usize = 60;

/// A month or year.
#[derive(Serialize)]
pub(super) struct CalendarStep {
    /// The value of `as-of` for its end.
    as_of: String,
    /// Number of captures in it.
    captures: u64,
    #[serde(skip)]
    name: String,
}

/// The steps with captures, in order, for one archive or several.
pub(super) fn steps(times: &[CaptureTimes]) -> Vec<CalendarStep> {
    let of = |name_of: fn(DateTime<Utc>) -> String, end: &str| {
        let mut captures: BTreeMap<String, f64> = BTreeMap::new();
        for (time, each) in times.iter().flat_map(CaptureTimes::each) {
            *captures.entry(name_of(time)).or_default() += each;
        }
        let step = |(name, captures): (String, f64)| CalendarStep {
            as_of: format!("{name}{end}"),
            captures: captures.round() as u64,
            name,
        };
        captures.into_iter().map(step).collect::<Vec<CalendarStep>>()
    };
    let months = of(month, "");
    if months.len() > MONTHS_MAX { of(year, "-12") } else { months }
}

fn month(time: DateTime<Utc>) -> String {
    time.with_timezone(&Local).format("%Y-%m").to_string()
}

fn year(time: DateTime<Utc>) -> String {
    time.with_timezone(&Local).format("%Y").to_string()
}

/// A time input with suggestions, a slider if scripts run, and links to the steps before and after `before`, the end of
/// the period shown; `None` means now.
pub(super) fn choice(
    asked: &PageRequest<'_>,
    steps: &[CalendarStep],
    before: Option<DateTime<Utc>>,
    address: &dyn Fn(&str) -> String,
) -> Markup {
    let t = asked.speech;
    let shown = before.map(|before| month(before - TimeDelta::microseconds(1)));
    // Names of years are prefixes of the names of their months.
    let to_shown = |step: &CalendarStep| {
        shown.as_ref().map(|shown| step.name.as_str().cmp(shown.get(..step.name.len()).unwrap_or(shown)))
    };
    let is_before = |step: &&CalendarStep| to_shown(step).is_none_or(Ordering::is_lt);
    let is_after = |step: &&CalendarStep| to_shown(step).is_some_and(Ordering::is_gt);
    let (earlier, later) = (steps.iter().rfind(is_before), steps.iter().find(is_after));
    let at = steps.iter().take_while(|step| !is_after(step)).count();
    let at = if before.is_none() { steps.len() } else { at.saturating_sub(1) };
    html! {
        label { (t.say("What pages said on")) " " input #as-of name="as-of" value=(asked.parameter("as-of")) list="times" placeholder="2026-01-31"; }
        datalist #times {
            @for step in steps {
                option value=(step.as_of) label=(t.counted(step.captures, "{} capture", "{} captures")) data-name=(step.name) {}
            }
        }
        " " button { (t.say("Search")) }
        div .slider {
            label for="slider" { (t.say("Until the end of")) }
            input #slider type="range" min="0" max=(steps.len()) value=(at) data-newest=(t.say("newest"));
            output for="slider" {}
        }
        nav aria-label=(t.say("Steps in time")) {
            @if let Some(step) = earlier { a rel="prev" href=(address(&step.as_of)) { "← " (step.name) } }
            @if let Some(step) = later { a rel="next" href=(address(&step.as_of)) { (step.name) " →" } }
            @if before.is_some() { a href=(address("")) { (t.say("newest")) } }
        }
        script src="/search.js" defer {}
    }
}
