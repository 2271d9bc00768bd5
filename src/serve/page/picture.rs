//! Small charts, as SVG within a page: no scripts, and the colours of the page's style.

use maud::{Markup, html};

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 140.0;

/// Labels of a chart: a description for those who do not see it, and labels for its edges.
pub(super) struct Picture<'a> {
    pub(super) title: &'a str,
    /// Top of the scale.
    pub(super) most: String,
    /// Labels below, left and right.
    pub(super) from: String,
    pub(super) to: String,
}

impl Picture<'_> {
    /// A line chart of points sorted by x, on a scale that begins at 0; `most` is the top of the scale.
    pub(super) fn line(&self, points: &[(f64, f64)], most: f64) -> Markup {
        self.lines(points, &[], most)
    }

    /// The same with other lines to compare it with, over the same x: the first is dashed, the second dotted.
    pub(super) fn lines(&self, points: &[(f64, f64)], others: &[&[(f64, f64)]], most: f64) -> Markup {
        let (first, last) = (points.first().map_or(0.0, |at| at.0), points.last().map_or(0.0, |at| at.0));
        let span = if last > first { last - first } else { 1.0 };
        let place =
            |(x, y): &(f64, f64)| format!("{:.1},{:.1}", (x - first) / span * WIDTH, height(*y, most));
        let path = |points: &[(f64, f64)]| points.iter().map(place).collect::<Vec<_>>().join(" ");
        let area = format!("0,{HEIGHT} {} {WIDTH},{HEIGHT}", path(points));
        self.frame(&html! {
            polygon .area points=(area) {}
            @for other in others { polyline .other points=(path(other)) {} }
            polyline .line points=(path(points)) {}
        })
    }

    /// A bar chart; each bar has a label.
    pub(super) fn bars(&self, bars: &[(f64, String)]) -> Markup {
        let most = bars.iter().map(|(value, _)| *value).fold(0.0, f64::max);
        let width = WIDTH / bars.len().max(1) as f64;
        self.frame(&html! {
            @for (place, (value, words)) in bars.iter().enumerate() {
                @let top = height(*value, most);
                rect .bar x=(format!("{:.1}", place as f64 * width + 1.0)) y=(format!("{top:.1}"))
                    width=(format!("{:.1}", (width - 2.0).max(1.0))) height=(format!("{:.1}", HEIGHT - top)) {
                    title { (words) }
                }
            }
        })
    }

    /// Labels are outside of the drawing, because that is stretched to the width of the page.
    fn frame(&self, content: &Markup) -> Markup {
        html! {
            figure .picture {
                div .small { (self.most) }
                svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" role="img" aria-label=(self.title) { (content) }
                div .small { span { (self.from) } span { (self.to) } }
            }
        }
    }
}

/// Distance of a value from the top.
fn height(value: f64, most: f64) -> f64 {
    let share = if most > 0.0 { (value / most).clamp(0.0, 1.0) } else { 0.0 };
    HEIGHT * (1.0 - share)
}
