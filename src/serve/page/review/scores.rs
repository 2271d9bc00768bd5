//! How far raters agree, and which measures agree with them.

use archive_ask::review::score::{Agreement, MEASURES, MeasureScore, RaterScore, ReviewScores};
use maud::{Markup, html};

use super::super::{ArchiveRequest, PageProblem, Reply, Speech};
use super::{Reviewer, reviewing, site_address};

/// Number of random halves that measures are evaluated on, and the random seed: as in `archive review score`.
const HALVES: usize = 200;
const RNG: u64 = 1;

/// Maximum number of sites with differing ratings that are listed.
const DISAGREEMENTS: usize = 50;

/// The page of scores.
pub(in super::super) fn scores(asked: &ArchiveRequest<'_>) -> Result<Reply, PageProblem> {
    let t = asked.speech;
    let reviewer = Reviewer::of(asked, asked.parameter("by"))?;
    if reviewer.review.is_blind {
        let what = "Scores show how others rated, and rating is blind here: `archive review score`.";
        return Err(PageProblem::Refused(t.say(what).to_owned()));
    }
    let opened = asked.opened;
    let measures = MEASURES.map(str::to_owned);
    let data = ReviewScores::of(opened.store, &opened.access, &reviewer.decisions, &measures, HALVES, RNG)?;
    Ok(reviewing(
        asked,
        asked.reply(t.say("Scores"), &data, || {
            html! {
                h1 { (t.say("Scores")) }
                p { a href=(t.address("/review", &[("by", reviewer.name)])) { (t.say("All sites waiting for review")) } }
                @if data.raters.is_empty() { p { (t.say("Nobody has rated a site yet.")) } } @else {
                    (raters(t, &data.raters)) (agreement(t, &data.agreement)) (measured(t, &data.measures))
                    section {
                        h2 { (t.say("Rated differently")) }
                        @if data.disagreements.is_empty() { p { (t.say("There is none.")) } }
                        ul { @for apart in data.disagreements.iter().take(DISAGREEMENTS) {
                            li {
                                a href=(site_address(t, &apart.site, reviewer.name)) { (apart.site) } ": "
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

fn between(t: Speech, interval: Option<(f64, f64)>) -> String {
    interval.map_or("–".to_owned(), |(low, high)| format!("{} – {}", t.percent(low, 0), t.percent(high, 0)))
}

fn raters(t: Speech, raters: &[RaterScore]) -> Markup {
    html! { section {
        h2 { (t.say("Raters")) }
        p .small { (t.say("Of the sites that others rated, too, the share that somebody rated like the mean of the others.")) }
        div .wide role="region" aria-label=(t.say("Raters")) tabindex="0" { table {
            thead { tr {
                th scope="col" { (t.say("Rater")) } th .number scope="col" { (t.say("Sites")) } th .number scope="col" { (t.say("By others, too")) }
                th .number scope="col" { (t.say("Like the others")) } th .number scope="col" { (t.say("95 %")) } th .number scope="col" { (t.say("Points higher")) }
            } }
            tbody { @for rater in raters { tr {
                th scope="row" { (rater.rater) } td .number { (rater.rated) } td .number { (rater.judged) }
                td .number { (rater.like_others.map_or("–".to_owned(), |share| t.percent(share, 0))) } td .number { (between(t, rater.interval)) }
                td .number { (rater.higher.map_or("–".to_owned(), |points| t.signed(points, 2))) }
            } } }
        } }
    } }
}

fn agreement(t: Speech, agreement: &Agreement) -> Markup {
    let Agreement { alpha_ordinal: Some(ordinal), alpha_interval: Some(interval), confusion } = agreement
    else {
        return html! { p { (t.say("Nobody could differ: no two people have rated the same sites, or all ratings are alike.")) } };
    };
    html! { section {
        h2 { (t.say("Agreement")) }
        p { (t.fill("Krippendorff’s alpha is {} by order and {} by distance; 1 is full agreement.", &[&t.decimal(*ordinal, 2), &t.decimal(*interval, 2)])) }
        div .wide role="region" aria-label=(t.say("Agreement")) tabindex="0" { table {
            thead { tr {
                th scope="col" { (t.say("Rated")) }
                @for rating in 1..=confusion.len() { th .number scope="col" { (t.fill("{} by another", &[&rating])) } }
            } }
            tbody { @for (place, row) in confusion.iter().enumerate() {
                tr { th scope="row" { (place + 1) } @for count in row { td .number { (count) } } }
            } }
        } }
    } }
}

fn measured(t: Speech, measures: &[MeasureScore]) -> Markup {
    html! { section {
        h2 { (t.say("Measures compared with ratings")) }
        p .small { (t.fill("Each becomes ratings by three thresholds, fitted on one half of the rated sites and judged on the other, {} times.", &[&HALVES])) }
        div .wide role="region" aria-label=(t.say("Measures compared with ratings")) tabindex="0" { table {
            thead { tr {
                th scope="col" { (t.say("Number")) } th .number scope="col" { (t.say("Sites")) } th .number scope="col" { (t.say("Like the mean rating")) }
                th .number scope="col" { (t.say("95 % of halves")) } th .number scope="col" { (t.say("Commonest rating")) }
            } }
            tbody { @for score in measures { tr {
                th scope="row" { code { (score.measure) } } td .number { (score.sites) } td .number { (t.percent(score.like_reference, 0)) }
                td .number { (between(t, Some(score.interval))) } td .number { (t.percent(score.commonest, 0)) }
            } } }
        } }
    } }
}
