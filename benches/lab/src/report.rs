//! The report of an experiment: one self-contained HTML page, each chart as SVG, and all data as CSV.

use std::io;
use std::path::Path;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::plot::Chart;

/// A table of text.
#[derive(Clone, Debug)]
pub struct Table {
    /// File name without extension.
    pub name: String,
    /// Heading.
    pub title: String,
    /// Column names.
    pub columns: Vec<String>,
    /// Rows of formatted cells.
    pub rows: Vec<Vec<String>>,
}

/// A part of a report.
#[derive(Clone, Debug)]
pub enum Part {
    /// A paragraph.
    Text(String),
    /// A line chart.
    Chart(Chart),
    /// A table.
    Table(Table),
}

/// A human-readable report of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// File name without extension.
    pub name: String,
    /// Heading.
    pub title: String,
    /// Parts from top to bottom.
    pub parts: Vec<Part>,
}

impl Report {
    /// Creates an empty report.
    #[must_use]
    pub fn new(name: &str, title: &str) -> Self {
        Self { name: name.to_owned(), title: title.to_owned(), parts: Vec::new() }
    }

    /// Writes `NAME.html` with everything, and the files `CHART.svg`, `CHART.csv` and `TABLE.csv` to the same folder.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        std::fs::create_dir_all(folder)?;
        for part in &self.parts {
            match part {
                Part::Text(_) => {}
                Part::Chart(chart) => {
                    std::fs::write(folder.join(format!("{}.svg", chart.name)), chart.svg())?;
                    std::fs::write(folder.join(format!("{}.csv", chart.name)), chart.csv())?;
                }
                Part::Table(table) => {
                    let mut writer = csv::Writer::from_path(folder.join(format!("{}.csv", table.name)))?;
                    writer.write_record(&table.columns)?;
                    for row in &table.rows {
                        writer.write_record(row)?;
                    }
                    writer.flush()?;
                }
            }
        }
        std::fs::write(folder.join(format!("{}.html", self.name)), self.html().into_string())
    }

    fn html(&self) -> Markup {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (self.title) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    h1 { (self.title) }
                    @for part in &self.parts {
                        @match part {
                            Part::Text(text) => p { (text) },
                            Part::Chart(chart) => figure { (PreEscaped(chart.svg())) },
                            Part::Table(table) => (table_html(table)),
                        }
                    }
                }
            }
        }
    }
}

const STYLE: &str = "body{font:16px/1.5 sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem;color:#111}\
figure{margin:1.5rem 0}svg{max-width:100%;height:auto}table{border-collapse:collapse;margin:1.5rem 0}\
caption{text-align:left;font-weight:bold;padding:.3rem 0}\
th,td{padding:.2rem .7rem;text-align:right;border-bottom:1px solid #ddd}\
th:first-child,td:first-child{text-align:left}";

fn table_html(table: &Table) -> Markup {
    html! {
        table {
            caption { (table.title) }
            thead { tr { @for column in &table.columns { th scope="col" { (column) } } } }
            tbody { @for row in &table.rows { tr { @for cell in row { td { (cell) } } } } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::plot::{Axis, Series};
    use super::*;

    #[test]
    fn a_report_is_one_page_with_its_data_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut report = Report::new("trial", "A trial <1>");
        let series = vec![Series { name: "one".into(), points: vec![(1.0, 2.0), (2.0, 3.0)] }];
        report.parts = vec![
            Part::Text("Nothing.".into()),
            Part::Chart(Chart {
                name: "line".into(),
                title: "Line".into(),
                x: Axis::linear("x"),
                y: Axis::linear("y"),
                series,
            }),
            Part::Table(Table {
                name: "numbers".into(),
                title: "Numbers".into(),
                columns: vec!["a".into(), "b".into()],
                rows: vec![vec!["1".into(), "2, or 3".into()]],
            }),
        ];
        report.write(folder.path()).unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        let page = read("trial.html");
        assert!(page.contains("A trial &lt;1&gt;") && page.contains("<polyline"));
        // The XML namespace is the only address: nothing is loaded from elsewhere.
        assert_eq!(page.matches("http").count(), 1);
        assert!(read("line.svg").starts_with("<svg"));
        assert_eq!(read("numbers.csv"), "a,b\n1,\"2, or 3\"\n");
    }
}
