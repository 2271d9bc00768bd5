//! Charts of the archive: its growth, the distribution of importance, how early it was found and how its estimates
//! converged, and the freshness that budgets achieve.

use archive_ask::find::CaptureTimes;
use archive_base::runs::{CopiesState, RunHistory};
use archive_books::order_plot::OrderPlot;
use archive_books::trends::Convergence;
use archive_choose::RefreshRules;
use archive_choose::freshness::{self, DaysClass, PageModel};
use archive_choose::plan::{Forecast, ForecastSample, RunRanking, RunSeries};
use chrono::{DateTime, TimeDelta, Utc};
use maud::{Markup, html};
use rayon::prelude::*;
use serde::Serialize;

use super::early;
use super::picture::Picture;
use super::{ArchiveRequest, PageProblem, Reply, Speech, utc};

/// Maximum number of pages examined for importance and freshness; if there are more, every n-th is.
const PAGES_MAX: usize = 2000;

/// Number of bars of importance: from below 1/64 to above 64, each twice the one before.
const BARS: i32 = 14;

/// Maximum number of runs whose ends are shown, and of the newest ones whose clocks are.
const CURVE_MAX: usize = 200;

/// Maximum number of moments of these clocks.
const CLOCKS_MAX: usize = 240;

/// Forecast period in days, with one run a day.
const DAYS: f64 = 30.0;

/// Budgets of a run, as shares of all pages.
const BUDGETS: [f64; 9] = [0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0];

#[derive(Serialize)]
struct Pictures<'a> {
    growth: Vec<Growth>,
    curve: Vec<CurvePoint>,
    intervals: Vec<Interval>,
    importance: Vec<Bar>,
    order: &'a OrderPlot,
    /// How far estimates of importance were from the present ones, by the captures there were by then.
    convergence: Vec<Converged>,
    /// The pages that the newest runs had fetched, and the clock G of importance.
    clocks: Vec<(u64, f64)>,
    /// Number of pages that each examined page stands for.
    each_page_of: usize,
    freshness: Vec<Forecast>,
    /// Policy of the forecast; `None` if it cannot be forecast.
    policy: Option<String>,
}

#[derive(Serialize)]
struct Growth {
    #[serde(serialize_with = "utc")]
    time: Option<DateTime<Utc>>,
    captures: u64,
}

/// The copies at the end of a run.
#[derive(Serialize)]
struct CurvePoint {
    #[serde(serialize_with = "utc")]
    time: Option<DateTime<Utc>>,
    #[serde(flatten)]
    copies: CopiesState,
}

/// Pages whose changes are this far apart on average.
#[derive(Serialize)]
struct Interval {
    days: DaysClass,
    pages: u64,
}

/// The error of the estimates of importance, when there were so many captures.
#[derive(Serialize)]
struct Converged {
    captures: u64,
    #[serde(flatten)]
    at: Convergence,
}

#[derive(Serialize)]
struct Bar {
    /// Lower bound (inclusive); `None` for the first bar.
    from: Option<f64>,
    /// Upper bound (exclusive); `None` for the last bar.
    below: Option<f64>,
    pages: u64,
}

pub(super) fn page(asked: &ArchiveRequest<'_>) -> Result<Reply, PageProblem> {
    let store = asked.opened.store;
    let rules = RefreshRules::kept(store.state())?;
    // A sample of pages with copies, and the number of pages that each stands for.
    let each_page_of = (store.state().visit_count() as usize).div_ceil(PAGES_MAX).max(1);
    let pages = freshness::sampled_copies(store, each_page_of, Utc::now())?;
    let rule = rules.policy.rule();
    let forecast = |by| {
        let sample = ForecastSample::of(&pages);
        let ranking = RunRanking { by, shortest: rules.shortest_days(), floor: rules.floor };
        let runs = |part: f64| RunSeries {
            budget: (part * pages.len() as f64).round(),
            every: 1.0,
            days: DAYS,
            grace: 0.0,
        };
        let scaled = |forecast: Forecast| Forecast {
            budget: forecast.budget * each_page_of as u64,
            fetches: forecast.fetches * each_page_of as u64,
            ..forecast
        };
        BUDGETS.par_iter().map(|part| scaled(sample.forecast(&ranking, &runs(*part)))).collect()
    };
    let (growth, order) = (growth(asked)?, early::order(asked, None)?);
    let data = Pictures {
        order: &order,
        convergence: convergence(asked, &growth)?,
        clocks: clocks(asked)?,
        growth,
        curve: curve(asked)?,
        intervals: intervals(&pages, each_page_of as u64),
        importance: bars(&pages, each_page_of as u64),
        each_page_of,
        freshness: rule.filter(|_| !pages.is_empty()).map(forecast).unwrap_or_default(),
        policy: rule.map(|_| rules.policy.to_string()),
    };
    let t = asked.speech;
    Ok(asked.reply(t.say("Pictures"), &data, || shown(t, &data)))
}

/// Number of captures over time.
fn growth(asked: &ArchiveRequest<'_>) -> Result<Vec<Growth>, PageProblem> {
    let times = CaptureTimes::of(asked.opened.store.state())?;
    let grown = times.each().scan(0.0, |sum, (time, each)| {
        *sum += each;
        Some(Growth { time: Some(time), captures: sum.round() as u64 })
    });
    Ok(grown.collect())
}

/// The copies at the ends of runs. A veil hides that some pages exist, so it hides sums that count them.
fn curve(asked: &ArchiveRequest<'_>) -> Result<Vec<CurvePoint>, PageProblem> {
    let store = asked.opened.store;
    if store.state().veil().is_some() {
        return Ok(Vec::new());
    }
    let curve = RunHistory::of(store.path())?.curve(CURVE_MAX).into_iter();
    Ok(curve.map(|(time, copies)| CurvePoint { time: Some(time), copies }).collect())
}

/// How the estimates of importance came close to the present ones; empty behind a veil, as the curve.
fn convergence(asked: &ArchiveRequest<'_>, growth: &[Growth]) -> Result<Vec<Converged>, PageProblem> {
    let store = asked.opened.store;
    if store.state().veil().is_some() {
        return Ok(Vec::new());
    }
    let captured = |at: &Convergence| {
        let by_then = growth.partition_point(|point| point.time < Some(at.time + TimeDelta::hours(1)));
        growth[..by_then].last().map_or(0, |point| point.captures)
    };
    let noted = asked.opened.cache.trends(store.path())?.convergence().into_iter();
    Ok(noted.map(|at| Converged { captures: captured(&at), at }).collect())
}

/// The clocks of the newest runs; empty behind a veil, as the curve.
fn clocks(asked: &ArchiveRequest<'_>) -> Result<Vec<(u64, f64)>, PageProblem> {
    let store = asked.opened.store;
    if store.state().veil().is_some() {
        return Ok(Vec::new());
    }
    Ok(RunHistory::of(store.path())?.clocks(CURVE_MAX, CLOCKS_MAX))
}

/// Histogram of pages by the mean time between their changes.
fn intervals(pages: &[PageModel], each: u64) -> Vec<Interval> {
    let of_class = |days: DaysClass| {
        let is_in = |page: &&PageModel| days.contains(page.copy.belief.per_day.recip());
        Interval { days, pages: each * pages.iter().filter(is_in).count() as u64 }
    };
    DaysClass::all().map(of_class).collect()
}

/// Histogram of pages by importance.
fn bars(pages: &[PageModel], each: u64) -> Vec<Bar> {
    let edge = |bar: i32| f64::from(bar - BARS / 2).exp2();
    (0..BARS)
        .map(|bar| {
            let (from, below) = ((bar > 0).then(|| edge(bar)), (bar + 1 < BARS).then(|| edge(bar + 1)));
            let is_in = |page: &&PageModel| {
                from.is_none_or(|from| page.importance >= from)
                    && below.is_none_or(|below| page.importance < below)
            };
            Bar { from, below, pages: each * pages.iter().filter(is_in).count() as u64 }
        })
        .collect()
}

fn shown(t: Speech, data: &Pictures<'_>) -> Markup {
    html! {
        h1 { (t.say("Pictures")) }
        @if data.each_page_of > 1 {
            p { (t.fill("Of the pages, one in {} was looked at, and stands for the others.", &[&data.each_page_of])) }
        }
        section { h2 { (t.say("Growth")) } (growth_picture(t, &data.growth)) }
        @if data.curve.len() > 1 {
            section {
                h2 { (t.say("Copies over time")) }
                (pages_picture(t, &data.curve))
                (fresh_picture(t, &data.curve))
                p .small { (t.say("As runs left them: pages that were there, and how many of their copies were probably the same as the page, weighted by importance.")) }
            }
        }
        section {
            h2 { (t.say("Time between changes")) }
            (intervals_picture(t, &data.intervals))
            p .small { (t.say("Pages with a copy by the mean time between two changes, as far as fetches tell.")) }
        }
        section {
            h2 { (t.say("Importance")) }
            (importance_picture(t, &data.importance))
            p .small { (t.say("Pages with a copy by their importance; a page has 1 on average, and each bar is of twice the importance of the one before.")) }
        }
        (early::order_section(t, data.order))
        @let has_changed = data.convergence.iter().any(|at| at.at.error > 0.0);
        @if has_changed || data.clocks.len() > 1 {
            section {
                h2 { (t.say("Convergence of importance")) }
                @if has_changed { (convergence_picture(t, &data.convergence)) }
                @if data.clocks.len() > 1 { (early::clock_picture(t, &data.clocks)) }
            }
        }
        section {
            h2 { (t.say("Freshness against budget")) }
            @match &data.policy {
                Some(policy) => {
                    (freshness_picture(t, &data.freshness))
                    p .small { (t.markup("What daily refreshes by the policy {} would keep fresh over {} days, weighted by importance ({}).", &[
                        html! { code { (policy) } }, html! { (DAYS) }, html! { code { "archive plan" } },
                    ])) }
                }
                None => p { (t.say("There is no forecast for the policy of this archive.")) },
            }
        }
    }
}

fn growth_picture(t: Speech, growth: &[Growth]) -> Markup {
    let (Some(first), Some(last)) = (growth.first(), growth.last()) else {
        return html! { p { (t.say("Nothing was captured yet.")) } };
    };
    let day = |time: Option<DateTime<Utc>>| time.map(|time| t.minute(time)).unwrap_or_default();
    let seconds = |time: Option<DateTime<Utc>>| time.map_or(0.0, |time| time.timestamp_micros() as f64 / 1e6);
    let points: Vec<(f64, f64)> = growth.iter().map(|at| (seconds(at.time), at.captures as f64)).collect();
    let most = t.counted(last.captures, "{} capture", "{} captures");
    let title = t.fill("{} from {} to {}", &[&most, &day(first.time), &day(last.time)]);
    Picture { title: &title, most, from: day(first.time), to: day(last.time) }
        .line(&points, last.captures as f64)
}

fn pages_picture(t: Speech, curve: &[CurvePoint]) -> Markup {
    let most = curve.iter().map(|at| at.copies.pages).max().unwrap_or(0);
    let gone = curve.last().map_or(0, |at| at.copies.gone);
    let pages = t.counted(most, "{} page", "{} pages");
    let title = t.fill("{} at most; in the end {} were gone", &[&pages, &t.count(gone)]);
    over_time(t, curve, &title, pages, most as f64, |copies| copies.pages as f64)
}

fn fresh_picture(t: Speech, curve: &[CurvePoint]) -> Markup {
    let [first, last] = [curve.first(), curve.last()].map(|at| at.map_or(0.0, |at| at.copies.freshness));
    let title = t.fill("{} fresh at first, {} in the end", &[&t.percent(first, 1), &t.percent(last, 1)]);
    let most = t.fill("{} fresh", &[&t.percent(1.0, 0)]);
    over_time(t, curve, &title, most, 1.0, |copies| copies.freshness)
}

fn over_time(
    t: Speech,
    curve: &[CurvePoint],
    title: &str,
    words: String,
    most: f64,
    value: impl Fn(&CopiesState) -> f64,
) -> Markup {
    let day =
        |at: Option<&CurvePoint>| at.and_then(|at| at.time).map(|time| t.minute(time)).unwrap_or_default();
    let seconds = |time: Option<DateTime<Utc>>| time.map_or(0.0, |time| time.timestamp_micros() as f64 / 1e6);
    let points: Vec<(f64, f64)> = curve.iter().map(|at| (seconds(at.time), value(&at.copies))).collect();
    Picture { title, most: words, from: day(curve.first()), to: day(curve.last()) }.line(&points, most)
}

fn intervals_picture(t: Speech, intervals: &[Interval]) -> Markup {
    // The shortest bound is an hour.
    let span = |days: f64| match days as u64 {
        0 => "1 h".to_owned(),
        days => t.counted(days, "{} day", "{} days"),
    };
    let words = |days: DaysClass| match days.below {
        Some(below) if days.from <= 0.0 => t.fill("below {}", &[&span(below)]),
        Some(below) => t.fill("{} to {}", &[&span(days.from), &span(below)]),
        None => t.fill("{} and more", &[&span(days.from)]),
    };
    histogram(t, intervals.iter().map(|interval| (words(interval.days), interval.pages)).collect())
}

/// A bar chart of pages; each bar with its words.
fn histogram(t: Speech, bars: Vec<(String, u64)>) -> Markup {
    let pages = |pages| t.counted(pages, "{} page", "{} pages");
    let most = bars.iter().map(|(_, pages)| *pages).max().unwrap_or(0);
    let ends = [bars.first(), bars.last()].map(|bar| bar.map_or(String::new(), |(words, _)| words.clone()));
    let bars: Vec<(f64, String)> =
        bars.into_iter().map(|(words, count)| (count as f64, format!("{words}: {}", pages(count)))).collect();
    let title = bars.iter().map(|(_, words)| words.as_str()).collect::<Vec<_>>().join("; ");
    let [from, to] = ends;
    Picture { title: &title, most: pages(most), from, to }.bars(&bars)
}

fn importance_picture(t: Speech, importance: &[Bar]) -> Markup {
    let number = |edge: f64| if edge < 1.0 { format!("1/{:.0}", 1.0 / edge) } else { format!("{edge:.0}") };
    let words = |bar: &Bar| match (bar.from, bar.below) {
        (Some(from), Some(below)) => t.fill("importance {} to {}", &[&number(from), &number(below)]),
        (None, Some(below)) => t.fill("importance below {}", &[&number(below)]),
        (Some(from), None) => t.fill("importance {} and more", &[&number(from)]),
        (None, None) => String::new(),
    };
    histogram(t, importance.iter().map(|bar| (words(bar), bar.pages)).collect())
}

fn convergence_picture(t: Speech, convergence: &[Converged]) -> Markup {
    let points: Vec<(f64, f64)> = convergence.iter().map(|at| (at.captures as f64, at.at.error)).collect();
    let largest = points.iter().map(|at| at.1).fold(0.0, f64::max);
    let [from, to] = [convergence.first(), convergence.last()]
        .map(|at| t.counted(at.map_or(0, |at| at.captures), "{} capture", "{} captures"));
    let title = t.fill("{} of the importance in other places at most", &[&t.percent(largest, 1)]);
    let most = t.fill("{} in other places", &[&t.percent(largest, 1)]);
    html! {
        (Picture { title: &title, most, from, to }.line(&points, largest))
        p .small { (t.say("Part of the importance of the important pages known by then that was thought to be in other places than now, as runs noted it.")) }
    }
}

fn freshness_picture(t: Speech, forecasts: &[Forecast]) -> Markup {
    let (Some(first), Some(last)) = (forecasts.first(), forecasts.last()) else {
        return html! { p { (t.say("No page has a copy yet.")) } };
    };
    let percent = |share: f64| t.percent(share, 1);
    let to = t.counted(last.budget, "{} fetch a day", "{} fetches a day");
    let (none, all) = (percent(first.freshness), percent(last.freshness));
    let title = t.fill("{} fresh with no refreshes, {} with {}", &[&none, &all, &to]);
    let (most, from) = (t.fill("{} fresh", &[&t.percent(1.0, 0)]), t.say("no refreshes").to_owned());
    html! {
        (Picture { title: &title, most, from, to }.line(&points(forecasts), 1.0))
        div .wide role="region" aria-label=(t.say("Freshness against budget")) tabindex="0" { table .numbers {
            thead { tr {
                th .number scope="col" { (t.say("Fetches a day")) } th .number scope="col" { (t.say("Fresh")) }
                th .number scope="col" { (t.say("Days out of date")) }
            } }
            tbody { @for at in forecasts { tr {
                td .number { (t.count(at.budget)) } td .number { (percent(at.freshness)) } td .number { (t.decimal(at.age_days, 2)) }
            } } }
        } }
    }
}

fn points(forecasts: &[Forecast]) -> Vec<(f64, f64)> {
    forecasts.iter().map(|at| (at.budget as f64, at.freshness)).collect()
}
