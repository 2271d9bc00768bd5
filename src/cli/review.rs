//! `archive review`: sites for librarians to rate, their decisions, and suggestions based on them.

mod decide;
mod next;
mod score;
mod suggest;

use std::fs;
use std::io::{self, BufWriter, IntoInnerError, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use archive::jobs;
use archive_ask::query::{Limits, Question};
use archive_ask::review::{RATINGS_BYTES_MAX, Rating, Score, Sheet, read_ratings};
use archive_base::access::Access;
use archive_base::files::{Output, is_standard_output};
use archive_storage::Store;
use chrono::Utc;
use serde::Serialize;

use super::options::{ArchiveArgs, AskArgs};
use super::{During, Result, options, output, usage};

/// The default selection for an export: every site with a captured page.
const SELECTION_USUAL: &str = "site pages > 0";

/// Default number of sites exported: what one person can look through.
const SITES_USUAL: usize = 500;

/// Maximum number of unknown sites listed.
const UNKNOWN_NAMED_MAX: usize = 20;

/// Manage librarians' decisions on sites: export a sheet, import the decisions, suggest sites that they would choose.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Export(ExportArgs),
    Check(CheckArgs),
    Import(decide::ImportArgs),
    Set(decide::SetArgs),
    Undo(decide::UndoArgs),
    Learn(suggest::LearnArgs),
    Log(decide::LogArgs),
    Next(next::Args),
    Suggest(suggest::Args),
    Score(score::Args),
}

/// Write a sheet of sites by importance, with sample pages and a field for a rating from 1 to 4.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive review export --output review.html
  archive review export --format csv --query 'site importance > 1' --output review.csv
  archive review export --archive A1 --archive A2 --output review.html     # partitions of a cluster on one sheet
  archive review export --archive A1 --archive http://node2:8070/ --output review.html

The HTML file is self-contained: open it in a browser, rate the sites, and download the ratings as
CSV.")]
pub(crate) struct ExportArgs {
    /// Format [default: from the name of the output, or HTML]
    #[arg(long)]
    format: Option<SheetFormat>,
    /// File to write; - or none for standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Query that selects the sites, as for `archive query`
    #[arg(long, default_value = SELECTION_USUAL)]
    query: String,
    /// Maximum number of sites, unless the query has its own limit
    #[arg(long, default_value_t = SITES_USUAL, value_name = "N")]
    limit: usize,
    #[command(flatten)]
    ask: AskArgs,
}

/// Check a file of ratings line by line, and summarise it.
#[derive(clap::Args)]
pub(crate) struct CheckArgs {
    /// CSV file with the columns site and rating, as written by a spreadsheet or the exported page
    file: PathBuf,
    #[command(flatten)]
    archive: ArchiveArgs,
    /// One JSON object per rating
    #[arg(long)]
    json: bool,
}

/// Format of a sheet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum SheetFormat {
    /// A page for rating in a browser
    Html,
    /// CSV for spreadsheet programs
    Csv,
}

pub(crate) fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Export(args) => return export(args),
        Command::Check(args) => check(args)?,
        Command::Import(args) => decide::import(args)?,
        Command::Set(args) => decide::set(args)?,
        Command::Undo(args) => decide::undo(args)?,
        Command::Log(args) => decide::log(args)?,
        Command::Learn(args) => suggest::learn(args)?,
        Command::Next(args) => return next::run(args),
        Command::Suggest(args) => suggest::run(args)?,
        Command::Score(args) => score::run(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the default sheet of an archive as a page.
pub(crate) fn write_html(archive: &Path, file: &Path) -> Result<()> {
    let store = Store::read_only(archive)?;
    let sheet = sheet(vec![(&store, Access::read(archive)?)], SELECTION_USUAL, SITES_USUAL)?;
    write_file(&[archive.to_owned()], file, &sheet, SheetFormat::Html)
}

fn export(args: &ExportArgs) -> Result<ExitCode> {
    let answering = args.ask.open()?;
    let (sheet, code) = match answering.asked(&args.ask.nodes, Limits::USUAL)? {
        Some(mut asked) => {
            let sheet = asked.sheet(&args.query, Utc::now(), args.limit, called)?;
            (sheet, answering.exit_code_of(&asked))
        }
        None => (sheet(answering.archives(), &args.query, args.limit)?, answering.exit_code()),
    };
    let file = args.output.as_deref().unwrap_or(Path::new("-"));
    let is_csv = file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
    let format = args.format.unwrap_or(if is_csv { SheetFormat::Csv } else { SheetFormat::Html });
    if is_standard_output(file) {
        let mut bytes = Vec::new();
        write(&mut bytes, &sheet, format)?;
        output::text(&String::from_utf8_lossy(&bytes))?;
    } else {
        write_file(args.ask.paths(), file, &sheet, format)?;
        note!("{} in {}", output::count(sheet.entries.len() as u64, "site"), file.display());
    }
    Ok(code)
}

/// The name of an archive's folder.
fn called(store: &Store) -> String {
    let path = store.path().canonicalize().unwrap_or_else(|_| store.path().to_owned());
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The sites of one or several archives, as if they were one.
fn sheet(archives: Vec<(&Store, Access)>, selection: &str, limit: usize) -> Result<Sheet> {
    let names: Vec<String> = archives.iter().map(|(store, _)| called(store)).collect();
    let mut question = Question::of(archives, selection, Utc::now())?;
    if !question.plan.asks_for_sites() {
        refuse!("--query has to ask for sites: 'site importance > 1'");
    }
    question.plan.limit_if_unlimited(limit);
    let selection = selection.to_owned();
    Ok(Sheet::collect(&question.plan, &question.rows, names.join(", "), selection, Utc::now())?)
}

fn write_file(archives: &[PathBuf], file: &Path, sheet: &Sheet, format: SheetFormat) -> Result<()> {
    archives.iter().try_for_each(|archive| options::check_output(archive, file))?;
    let save = || {
        let mut out = BufWriter::new(Output::open(file)?);
        write(&mut out, sheet, format)?;
        out.into_inner().map_err(IntoInnerError::into_error)?.commit()
    };
    save().map(drop).within(format_args!("cannot write {}", file.display()))
}

fn write(out: &mut impl Write, sheet: &Sheet, format: SheetFormat) -> io::Result<()> {
    match format {
        SheetFormat::Html => out.write_all(sheet.html().as_bytes()),
        SheetFormat::Csv => sheet.write_csv(out),
    }
}

#[derive(Serialize)]
struct RatedSite<'a> {
    site: &'a str,
    rating: Option<u8>,
    comment: &'a str,
    importance: Option<f64>,
    line: u64,
}

fn check(args: &CheckArgs) -> Result<()> {
    jobs::check_exists(&args.archive.path)?;
    let file = args.file.display();
    let ratings = ratings(&args.file)?;
    let rated = with_importance(&args.archive.path, &ratings)?;
    for rating in rated.iter().filter(|rating| rating.importance.is_none()).take(UNKNOWN_NAMED_MAX) {
        note!("{file}, line {}: the archive does not know the site {}", rating.line, rating.site);
    }
    if args.json {
        return rated.iter().try_for_each(output::json_line);
    }
    summary(&rated)
}

/// Reads the ratings in a file; fails if it contains a mistake.
fn ratings(path: &Path) -> Result<Vec<Rating>> {
    let file = path.display();
    let size = fs::metadata(path).within(format_args!("cannot read {file}"))?.len();
    if size > RATINGS_BYTES_MAX as u64 {
        fail!("{file} is larger than {RATINGS_BYTES_MAX} bytes");
    }
    let bytes = fs::read(path).within(format_args!("cannot read {file}"))?;
    let mistakes = |mistakes| usage(format!("{file} has mistakes, so nothing in it was used\n{mistakes}"));
    read_ratings(&bytes).map_err(mistakes)
}

fn with_importance<'a>(archive: &Path, ratings: &'a [Rating]) -> Result<Vec<RatedSite<'a>>> {
    let store = Store::read_only(archive)?;
    let state = store.state();
    let credits = archive_books::ledger::Credits::open(state)?;
    let rated = |rating: &'a Rating| {
        let site = state.find_site(&rating.site)?.map(|id| state.site(id)).transpose()?;
        Ok(RatedSite {
            site: &rating.site,
            rating: rating.score.map(Score::number),
            comment: &rating.comment,
            importance: site.map(|site| credits.site_importance(&site)),
            line: rating.line,
        })
    };
    ratings.iter().map(rated).collect()
}

/// The number of sites per rating, and their mean importance.
fn summary(rated: &[RatedSite<'_>]) -> Result<()> {
    let mut table = output::table(&["rating", "meaning", "sites", "mean importance"], &[0, 2, 3]);
    for score in Score::EACH {
        let sites: Vec<_> = rated.iter().filter(|rating| rating.rating == Some(score.number())).collect();
        let known: Vec<f64> = sites.iter().filter_map(|rating| rating.importance).collect();
        let mean = match known.len() {
            0 => "-".to_owned(),
            count => format!("{:.2}", known.iter().sum::<f64>() / count as f64),
        };
        table.add_row([
            score.number().to_string(),
            score.meaning().to_owned(),
            sites.len().to_string(),
            mean,
        ]);
    }
    output::print(&table)
}
