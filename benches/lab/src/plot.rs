//! Line charts as SVG, and their data as CSV.
//!
//! Plain SVG without scripts or embedded fonts. Lines differ in colour and in marker, so that they stay distinct in
//! greyscale as well.

use std::fmt::Write;

/// Size of a chart in pixels.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 420.0;
/// Space around the plot: left, top, right (for the legend), bottom.
const MARGIN: [f64; 4] = [70.0, 40.0, 170.0, 52.0];
/// Colours that colour-blind readers can distinguish (Okabe and Ito).
const COLOURS: [&str; 8] =
    ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D1F"];
/// Largest number of markers on a line.
const MARKERS_MAX: usize = 12;

/// Spacing of numbers on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Linear spacing.
    Linear,
    /// Logarithmic spacing; only positive numbers are drawn.
    Logarithmic,
}

/// An axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Its quantity and unit.
    pub label: String,
    /// Its scale.
    pub scale: Scale,
}

impl Axis {
    /// Creates an axis with linear spacing.
    #[must_use]
    pub fn linear(label: &str) -> Self {
        Self { label: label.to_owned(), scale: Scale::Linear }
    }

    /// Creates an axis with logarithmic spacing.
    #[must_use]
    pub fn logarithmic(label: &str) -> Self {
        Self { label: label.to_owned(), scale: Scale::Logarithmic }
    }
}

/// A line of the chart.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Points from left to right.
    pub points: Vec<(f64, f64)>,
}

/// A line chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// File name without extension.
    pub name: String,
    /// Heading.
    pub title: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// The lines.
    pub series: Vec<Series>,
}

impl Chart {
    /// Returns the data as CSV, one line per point: series, x, y.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut text = String::from("series,x,y\n");
        for series in &self.series {
            let name = series.name.replace('"', "\"\"");
            for (x, y) in &series.points {
                let _ = writeln!(text, "\"{name}\",{x},{y}");
            }
        }
        text
    }

    /// Returns the chart as an SVG document.
    #[must_use]
    pub fn svg(&self) -> String {
        let x = Span::of(self.x.scale, self.points().map(|point| point.0));
        let y = Span::of(self.y.scale, self.points().map(|point| point.1));
        let plot = Plot { x, y };
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
             height=\"{HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\" role=\"img\">\n<title>{}</title>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
            escape(&self.title)
        );
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"22\" font-size=\"15\" font-weight=\"bold\">{}</text>",
            MARGIN[0],
            escape(&self.title)
        );
        self.axes(&plot, &mut svg);
        for (number, series) in self.series.iter().enumerate() {
            plot.line(number, series, &mut svg);
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        self.series.iter().flat_map(|series| series.points.iter().copied())
    }

    fn axes(&self, plot: &Plot, svg: &mut String) {
        let (left, right) = (MARGIN[0], WIDTH - MARGIN[2]);
        let (top, bottom) = (MARGIN[1], HEIGHT - MARGIN[3]);
        for tick in plot.x.ticks() {
            let at = plot.x(tick);
            let _ = writeln!(
                svg,
                "<path d=\"M{at:.1} {top}V{bottom}\" stroke=\"#ddd\"/><text x=\"{at:.1}\" y=\"{}\" \
                 text-anchor=\"middle\">{}</text>",
                bottom + 17.0,
                number(tick)
            );
        }
        for tick in plot.y.ticks() {
            let at = plot.y(tick);
            let _ = writeln!(
                svg,
                "<path d=\"M{left} {at:.1}H{right}\" stroke=\"#ddd\"/><text x=\"{}\" y=\"{:.1}\" \
                 text-anchor=\"end\">{}</text>",
                left - 7.0,
                at + 4.0,
                number(tick)
            );
        }
        let _ = writeln!(
            svg,
            "<path d=\"M{left} {top}V{bottom}H{right}\" fill=\"none\" stroke=\"#000\"/>\n\
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n\
             <text transform=\"translate(17 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            (left + right) / 2.0,
            HEIGHT - 12.0,
            escape(&self.x.label),
            (top + bottom) / 2.0,
            escape(&self.y.label)
        );
    }
}

/// Mapping of numbers to positions in the picture.
struct Plot {
    x: Span,
    y: Span,
}

impl Plot {
    fn x(&self, value: f64) -> f64 {
        MARGIN[0] + self.x.place(value) * (WIDTH - MARGIN[0] - MARGIN[2])
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - MARGIN[3] - self.y.place(value) * (HEIGHT - MARGIN[1] - MARGIN[3])
    }

    fn line(&self, number: usize, series: &Series, svg: &mut String) {
        let colour = COLOURS[number % COLOURS.len()];
        let shown: Vec<(f64, f64)> = series
            .points
            .iter()
            .filter(|(x, y)| self.x.shows(*x) && self.y.shows(*y))
            .map(|&(x, y)| (self.x(x), self.y(y)))
            .collect();
        let path: Vec<String> = shown.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\"/>",
            path.join(" ")
        );
        let step = shown.len().div_ceil(MARKERS_MAX).max(1);
        for &(x, y) in shown.iter().step_by(step) {
            marker(number, x, y, colour, svg);
        }
        let (x, y) = (WIDTH - MARGIN[2] + 16.0, MARGIN[1] + 8.0 + 19.0 * number as f64);
        let _ = writeln!(svg, "<path d=\"M{} {y}h20\" stroke=\"{colour}\" stroke-width=\"1.8\"/>", x - 6.0);
        marker(number, x + 4.0, y, colour, svg);
        let _ = writeln!(svg, "<text x=\"{}\" y=\"{}\">{}</text>", x + 20.0, y + 4.0, escape(&series.name));
    }
}

fn marker(number: usize, x: f64, y: f64, colour: &str, svg: &mut String) {
    // When the colours repeat, the markers change.
    let _ = match (number + number / COLOURS.len()) % 4 {
        0 => writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>"),
        1 => writeln!(
            svg,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"6\" height=\"6\" fill=\"{colour}\"/>",
            x - 3.0,
            y - 3.0
        ),
        2 => writeln!(svg, "<path d=\"M{x:.1} {:.1}l3.6 6.4h-7.2z\" fill=\"{colour}\"/>", y - 4.0),
        _ => writeln!(svg, "<path d=\"M{x:.1} {:.1}l4 4-4 4-4-4z\" fill=\"{colour}\"/>", y - 4.0),
    };
}

/// Range of numbers of an axis.
#[derive(Clone, Copy)]
struct Span {
    scale: Scale,
    from: f64,
    to: f64,
}

impl Span {
    fn of(scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        let usable = |value: &f64| value.is_finite() && (scale == Scale::Linear || *value > 0.0);
        let (mut from, mut to) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(usable) {
            from = from.min(value);
            to = to.max(value);
        }
        match scale {
            _ if from > to => Self { scale, from: 1.0, to: 10.0 },
            // A linear axis begins at 0 unless the data are far from it.
            Scale::Linear if from > 0.0 && from < 0.5 * to => Self { scale, from: 0.0, to },
            _ if from == to => Self { scale, from: from * 0.5, to: to * 1.5 + f64::MIN_POSITIVE },
            _ => Self { scale, from, to },
        }
    }

    fn shows(&self, value: f64) -> bool {
        (self.from..=self.to).contains(&value)
    }

    fn place(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => (value - self.from) / (self.to - self.from),
            Scale::Logarithmic => (value.ln() - self.from.ln()) / (self.to.ln() - self.from.ln()),
        }
    }

    fn ticks(&self) -> Vec<f64> {
        match self.scale {
            Scale::Linear => {
                let rough = (self.to - self.from) / 6.0;
                let power = 10f64.powf(rough.log10().floor());
                let step = [1.0, 2.0, 5.0, 10.0]
                    .into_iter()
                    .map(|factor| factor * power)
                    .find(|&step| step >= rough);
                let step = step.unwrap_or(rough);
                let first = (self.from / step).ceil() as i64;
                (first..first + 20).map(|tick| tick as f64 * step).filter(|&tick| self.shows(tick)).collect()
            }
            Scale::Logarithmic => {
                let decades = self.to.log10() - self.from.log10();
                let within: &[f64] = if decades < 3.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
                let first = self.from.log10().floor() as i32;
                // At most about eight ticks, and none beyond the range of f64.
                let step = ((decades / 8.0) as usize).max(1);
                (first..first + 700)
                    .step_by(step)
                    .flat_map(|decade| within.iter().map(move |factor| factor * 10f64.powi(decade)))
                    .filter(|&tick| self.shows(tick))
                    .collect()
            }
        }
    }
}

/// Formats a number as briefly as it can be read.
fn number(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-3..1e5).contains(&size) {
        format!("{value:.0e}")
    } else {
        let text = format!("{value:.4}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(scale: Scale, points: Vec<(f64, f64)>) -> Chart {
        Chart {
            name: "test".into(),
            title: "a < b & \"c\"".into(),
            x: Axis { label: "x".into(), scale },
            y: Axis { label: "y".into(), scale },
            series: vec![Series { name: "say \"hi\"".into(), points }],
        }
    }

    #[test]
    fn charts_are_well_formed_whatever_the_data() {
        let wild =
            vec![(0.0, 0.0), (1.0, f64::NAN), (2.0, -3.0), (f64::INFINITY, 1.0), (4.0, 1e300), (5.0, 1e-300)];
        for points in [vec![], vec![(1.0, 1.0)], vec![(0.0, 0.0), (0.0, 0.0)], wild] {
            for scale in [Scale::Linear, Scale::Logarithmic] {
                let svg = chart(scale, points.clone()).svg();
                let document = roxmltree::Document::parse(&svg).unwrap();
                let bad = |node: roxmltree::Node| node.attributes().any(|a| a.value().contains("NaN"));
                assert!(!document.descendants().any(bad), "{svg}");
            }
        }
    }

    #[test]
    fn numbers_lie_where_they_belong() {
        let svg = chart(Scale::Linear, vec![(0.0, 0.0), (10.0, 5.0)]).svg();
        assert!(svg.contains("<polyline points=\"70.0,368.0 550.0,40.0\""), "{svg}");
        assert!(svg.contains(">10</text>") && svg.contains(">5</text>"));
        assert!(Span::of(Scale::Logarithmic, [1.0, 1000.0].into_iter()).ticks().contains(&100.0));
    }

    #[test]
    fn data_are_kept_as_csv() {
        let text = chart(Scale::Linear, vec![(0.5, 2.0)]).csv();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let row = reader.records().next().unwrap().unwrap();
        assert_eq!(row.iter().collect::<Vec<_>>(), ["say \"hi\"", "0.5", "2"]);
    }
}
