//! How far the people who rate agree, and what rates like them.

use maud::{Markup, html};

use super::super::{Asked, Problem, Reply, address};
use super::{Reviewer, reviewing, site_address};
use crate::review::score::{Agreement, MEASURES, MeasureScore, RaterScore, Scores};

/// Halves that measures are judged on, and the start of the random numbers that divide them: as `archive review score` does.
const HALVES: usize = 200;
const RNG: u64 = 1;

/// Sites that people rate differently and that are named.
const DISAGREEMENTS: usize = 50;

/// The scores.
pub(in super::super) fn scores(asked: &Asked<'_>) -> Result<Reply, Problem> {
    let reviewer = Reviewer::of(asked, asked.parameter("by"))?;
    if reviewer.review.is_blind {
        return Err(Problem::Refused(
            "Scores tell how others rated, and rating is blind here: `archive review score`.".to_owned(),
        ));
    }
    let opened = asked.opened;
    let measures = MEASURES.map(str::to_owned);
    let data = Scores::of(&opened.store, &opened.access, &reviewer.decisions, &measures, HALVES, RNG)?;
    Ok(reviewing(
        asked,
        asked.reply("Scores", &data, || {
            html! {
                h1 { "Scores" }
                p { a href=(address("/review", &[("by", reviewer.name)])) { "All sites that wait" } }
                @if data.raters.is_empty() { p { "Nobody has rated a site yet." } } @else {
                    (raters(&data.raters)) (agreement(&data.agreement)) (measured(&data.measures))
                    section {
                        h2 { "Rated differently" }
                        @if data.disagreements.is_empty() { p { "There is none." } }
                        ul { @for apart in data.disagreements.iter().take(DISAGREEMENTS) {
                            li {
                                a href=(site_address(&apart.site, reviewer.name)) { (apart.site) } ": "
                                @for (place, (who, rating)) in apart.ratings.iter().enumerate() {
                                    @if place > 0 { ", " } (who) " " (rating)
                                }
                            }
                        } }
                    }
                }
            }
        }),
    ))
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

fn between(interval: Option<(f64, f64)>) -> String {
    interval.map_or("–".to_owned(), |(low, high)| format!("{} – {}", percent(low), percent(high)))
}

fn raters(raters: &[RaterScore]) -> Markup {
    html! { section {
        h2 { "Raters" }
        p .small { "Of the sites that others rated, too, the share that somebody rated like the mean of the others." }
        div .wide { table {
            thead { tr {
                th scope="col" { "Rater" } th .number scope="col" { "Sites" } th .number scope="col" { "By others, too" }
                th .number scope="col" { "Like the others" } th .number scope="col" { "95 %" } th .number scope="col" { "Points higher" }
            } }
            tbody { @for rater in raters { tr {
                th scope="row" { (rater.rater) } td .number { (rater.rated) } td .number { (rater.judged) }
                td .number { (rater.like_others.map_or("–".to_owned(), percent)) } td .number { (between(rater.interval)) }
                td .number { (rater.higher.map_or("–".to_owned(), |points| format!("{points:+.2}"))) }
            } } }
        } }
    } }
}

fn agreement(agreement: &Agreement) -> Markup {
    let Agreement { alpha_ordinal: Some(ordinal), alpha_interval: Some(interval), confusion } = agreement
    else {
        return html! { p { "Nobody could differ: no two people have rated the same sites, or all ratings are alike." } };
    };
    html! { section {
        h2 { "Agreement" }
        p { "Krippendorff’s alpha is " (format!("{ordinal:.2}")) " by order and " (format!("{interval:.2}")) " by distance; 1 is full agreement." }
        div .wide { table {
            thead { tr {
                th scope="col" { "Rated" }
                @for rating in 1..=confusion.len() { th .number scope="col" { (rating) " by another" } }
            } }
            tbody { @for (place, row) in confusion.iter().enumerate() {
                tr { th scope="row" { (place + 1) } @for count in row { td .number { (count) } } }
            } }
        } }
    } }
}

fn measured(measures: &[MeasureScore]) -> Markup {
    html! { section {
        h2 { "Numbers that rate" }
        p .small { "Each becomes ratings by three thresholds, fitted on one half of the rated sites and judged on the other, " (HALVES) " times." }
        div .wide { table {
            thead { tr {
                th scope="col" { "Number" } th .number scope="col" { "Sites" } th .number scope="col" { "Like the mean rating" }
                th .number scope="col" { "95 % of halves" } th .number scope="col" { "Commonest rating" }
            } }
            tbody { @for score in measures { tr {
                th scope="row" { code { (score.measure) } } td .number { (score.sites) } td .number { (percent(score.like_reference)) }
                td .number { (between(Some(score.interval))) } td .number { (percent(score.commonest)) }
            } } }
        } }
    } }
}
