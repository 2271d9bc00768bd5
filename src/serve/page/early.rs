//! Charts of how a crawl came to know importance: how early it found the pages that have it, and how its estimates
//! converged.

use std::sync::Arc;

use archive_base::runs::{RunReport, RunStage};
use archive_books::order_plot::OrderPlot;
use maud::{Markup, html};

use super::picture::Picture;
use super::{ArchiveRequest, PageProblem, Speech};

/// Returns the order in which an archive found importance, or in which a run that is over did.
pub(super) fn order(
    asked: &ArchiveRequest<'_>,
    run: Option<&RunReport>,
) -> Result<Arc<OrderPlot>, PageProblem> {
    let seconds = |time: chrono::DateTime<chrono::Utc>| u32::try_from(time.timestamp()).unwrap_or(0);
    let within = run.map(|run| (seconds(run.began), seconds(run.reported)));
    let make = || OrderPlot::of(asked.opened.store, within.map(|(began, ended)| began..=ended).as_ref());
    Ok(asked.opened.cache.orders.of(asked.opened, within, |plot| size_of_val(&*plot.points), make)?)
}

/// Whether the order of a run can be shown: the numbers of one under way change all the time.
pub(super) fn has_order(run: &RunReport, stage: RunStage) -> bool {
    stage != RunStage::UnderWay && run.progress.pages > 1
}

/// Shows the order, with the best and a random one; nothing for fewer than two pages.
pub(super) fn order_section(t: Speech, plot: &OrderPlot) -> Markup {
    if plot.pages < 2 {
        return Markup::default();
    }
    let percent = |share: f64| t.percent(share, 1);
    let of = |share: fn(&archive_books::order_plot::OrderPoint) -> f64| -> Vec<(f64, f64)> {
        plot.points.iter().map(|at| (at.pages as f64, share(at))).collect()
    };
    let random = [(0.0, 0.0), (plot.pages as f64, 1.0)];
    let half =
        plot.points.get(plot.points.len() / 2).map_or([0.0; 2], |at| [at.importance, at.best_importance]);
    let title = t.fill(
        "The first half of the pages had {} of the importance; in the best order {}",
        &[&percent(half[0]), &percent(half[1])],
    );
    let [from, to] = [0, plot.pages].map(|pages| t.counted(pages, "{} page", "{} pages"));
    let picture =
        Picture { title: &title, most: t.fill("{} of the importance", &[&t.percent(1.0, 0)]), from, to };
    html! { section {
        h2 { (t.say("Order of the pages")) }
        (picture.lines(&of(|at| at.importance), &[&of(|at| at.best_importance), &random], 1.0))
        p .small {
            (t.say("Share of their present importance that pages had together when so many were fetched: full line. Dashes: the most important pages first, as nobody can know beforehand. Dots: a random order.")) " "
            (t.fill("Averaged over the crawl: {}; in the best order {}, in a random one {}.", &[&percent(plot.mean_importance), &percent(plot.best_mean_importance), &percent(0.5)])) " "
            @if plot.each_page_of > 1 { (t.fill("Of the pages, one in {} was looked at, and stands for the others.", &[&plot.each_page_of])) }
        }
    } }
}

/// A chart of 1/G after so many pages, by which estimates of importance are off at most in the order of magnitude.
pub(super) fn clock_picture(t: Speech, clocks: &[(u64, f64)]) -> Markup {
    let points: Vec<(f64, f64)> =
        clocks.iter().map(|(pages, clock)| (*pages as f64, clock.recip().min(1.0))).collect();
    let ends =
        [clocks.first(), clocks.last()].map(|at| t.counted(at.map_or(0, |at| at.0), "{} page", "{} pages"));
    let last = points.last().map_or(1.0, |at| at.1);
    let title = t.fill("1/G was {} after {}", &[&t.decimal(last, 3), &ends[1]]);
    let [from, to] = ends;
    html! {
        (Picture { title: &title, most: t.fill("1/G of {}", &[&t.decimal(1.0, 0)]), from, to }.line(&points, 1.0))
        p .small {
            (t.say("G counts how often all importance was handed on along links; on a web that stays as it is, its estimates are off by some 1/G. A run ends with rounds over all links, where 1/G falls.")) " "
            (t.fill("At the end it was {}.", &[&t.decimal(last, 3)]))
        }
    }
}
