//! `archive xpath`: evaluates an XPath expression on XML documents.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

use archive_base::access::Access;
use archive_books::change::{version_near, xpath, xpath_mistake};
use archive_storage::{Store, UrlId};
use archive_web::parse::{Selected, XPathError, XPathResult};
use chrono::{DateTime, Utc};
use serde::Serialize;

use super::get::read_time;
use super::options::{Meant, PagesArgs, SearchTime};
use super::output::{self, Listing};
use super::{EXIT_STOPPED, Failure, Result, progress, usage};

/// Maximum number of characters of a text in the table.
const TEXT_SHOWN: usize = 200;

/// Find nodes of XML documents, or compute values, with an XPath expression.
#[derive(clap::Args)]
#[command(
    after_help = "XPath 1.0 on well-formed XML documents, including XHTML but not HTML. A name without a prefix is
in no namespace, as in XPath: in an Atom feed, write atom:title. Prefixes are those that the
document declares, and well-known ones (docs/query.md). id() finds xml:id, and attributes that the
document itself declares as ID.

An expression may visit at most 20 million nodes of a document, for at most 30 seconds. At most
10 000 nodes per document are listed. If nodes were not listed or pages not read, that is reported
and the exit code is 4.

Examples:
  archive xpath '//atom:entry/atom:title' https://www.example.org/feed.atom
  archive xpath 'count(//book[@lang = \"it\"])' 'root = catalogue'
  archive xpath '//price[. > 10]/..' https://www.example.org/catalogue.xml --at 2026-01-31 --json"
)]
pub(crate) struct Args {
    /// XPath expression
    expression: String,
    #[command(flatten)]
    pages: PagesArgs,
    /// Read the versions nearest to this time (2026-01-31, 2026-01-31T10:00, 20260131100000, or with a zone)
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    #[command(flatten)]
    time: SearchTime,
    /// One JSON object per node or value
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct NodeRow<'a> {
    url: &'a str,
    time: String,
    /// The line of a node; `None` for a value.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    kind: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    text: &'a str,
    /// The source of an element.
    #[serde(skip_serializing_if = "Option::is_none")]
    xml: Option<&'a str>,
}

/// Totals over all documents.
#[derive(Default)]
struct XPathSum {
    documents: u64,
    found: u64,
    /// Nodes beyond the limit, which are not listed.
    left: u64,
    /// Pages that were not read.
    unread: u64,
    /// Reasons why documents gave no result, with the number of documents.
    failed: BTreeMap<String, u64>,
    is_stopped: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let at = args.at.as_deref().map(read_time).transpose()?;
    let deadline = args.time.deadline()?;
    if let Some(mistake) = xpath_mistake(&args.expression) {
        return Err(wrong(&mistake));
    }
    let Meant { store, access, pages, are_named } = args.pages.open()?;
    let mut listing = Listing::new(args.json, &["url", "line", "node", "text"], &[1]);
    let mut sum = XPathSum { unread: pages.len() as u64, ..XPathSum::default() };
    let bar = progress::counting(sum.unread, "pages");
    for id in pages {
        if Instant::now() > deadline {
            break;
        }
        let is_xml = ask(&store, &access, id, (at, &args.expression), &mut sum, &mut |row| {
            listing.add(row, |row| {
                let text = row.text.split_whitespace().collect::<Vec<_>>().join(" ");
                let shown: String = text.chars().take(TEXT_SHOWN).collect();
                let cut = if shown.len() < text.len() { "…" } else { "" };
                let line = row.line.map_or(String::new(), |line| line.to_string());
                let name = if row.name.is_empty() { row.kind } else { row.name };
                [row.url.to_owned(), line, name.to_owned(), shown + cut]
            })
        })?;
        if are_named && !is_xml {
            note!("{} is not an XML document", store.state().url(id)?);
        }
        sum.unread -= 1;
        bar.inc(1);
    }
    progress::end();
    if sum.found > 0 {
        listing.end()?;
    }
    Ok(sum.note())
}

/// Evaluates the expression on one page's document and reports all results; returns whether it is an XML document.
fn ask(
    store: &Store,
    access: &Access,
    id: UrlId,
    (at, expression): (Option<DateTime<Utc>>, &str),
    sum: &mut XPathSum,
    report: &mut dyn FnMut(NodeRow<'_>) -> Result<()>,
) -> Result<bool> {
    let at = at.unwrap_or(DateTime::<Utc>::MAX_UTC).timestamp_micros();
    let Some((_, capture)) = version_near(store, access, id, at)? else { return Ok(false) };
    let url = store.state().url(id)?;
    let selected = match xpath(store, access, &capture, expression) {
        Ok(Some(selected)) => selected,
        Ok(None) => return Ok(false),
        Err(error) => {
            sum.is_stopped = true;
            *sum.failed.entry(format!("{error}; see `archive verify`")).or_default() += 1;
            return Ok(true);
        }
    };
    sum.documents += 1;
    let Selected { found, left } = match selected {
        Ok(selected) => selected,
        Err(XPathError::Mistake(mistake)) => return Err(wrong(&mistake)),
        Err(error) => {
            sum.is_stopped |= matches!(error, XPathError::TooMuch(_));
            *sum.failed.entry(error.to_string()).or_default() += 1;
            return Ok(true);
        }
    };
    sum.found += found.len() as u64;
    sum.left += left as u64;
    let time = output::utc_micros(DateTime::from_timestamp_micros(capture.time).unwrap_or_default());
    for XPathResult { kind, name, line, text, xml } in &found {
        let line = Some(*line).filter(|line| *line > 0);
        report(NodeRow { url: &url, time: time.clone(), line, kind, name, text, xml: xml.as_deref() })?;
    }
    Ok(true)
}

fn wrong(mistake: &str) -> Failure {
    usage(format!("the XPath expression is wrong: {mistake}"))
}

impl XPathSum {
    /// Reports what was found and what was not read, and returns the exit code.
    fn note(&self) -> ExitCode {
        for (why, documents) in &self.failed {
            note!("{} left out: {why}", output::count(*documents, "document"));
        }
        if self.left > 0 {
            note!("{} not listed: too many", output::count(self.left, "node"));
        }
        if self.unread > 0 {
            let unread = output::count(self.unread, "page");
            note!("{unread} not read: the time is up (--for)");
        }
        note!("{} in {}", output::count(self.found, "result"), output::count(self.documents, "XML document"));
        let is_whole = self.left == 0 && self.unread == 0 && !self.is_stopped;
        if is_whole { ExitCode::SUCCESS } else { ExitCode::from(EXIT_STOPPED) }
    }
}
