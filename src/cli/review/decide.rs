//! `archive review set`, `undo`, `log` and `import`: make and list decisions.

use std::path::PathBuf;

use archive::jobs::{self, CONFLICTS_NAMED_MAX};
use archive_ask::review::Rating;
use archive_base::decisions::{
    ComparedImport, Decision, DecisionContent, DecisionImport, DecisionVerdict, Decisions, ImportRow,
    RobotsDecision, Statement, Subject,
};
use archive_base::texts::Language;
use archive_peers::share::orders::{Order, Resolution};
use archive_storage::Store;
use chrono::{DateTime, SubsecRound, Utc};

use super::super::cluster::orders::{self, OrderArgs};
use super::super::fetching::ROBOTS;
use super::super::options::{ArchiveArgs, named};
use super::super::output::{self, Listing};
use crate::cli::{Result, usage};

/// The person who decides, and for which archive or cluster.
#[derive(clap::Args)]
struct By {
    /// Name of the person who decides
    #[arg(long, value_name = "NAME", env = "USER")]
    by: String,
    #[command(flatten)]
    archive: ArchiveArgs,
    #[command(flatten)]
    order: OrderArgs,
}

impl By {
    /// An import of these rows by this person, now.
    fn import(&self, overwrite: bool, rows: Vec<ImportRow>) -> DecisionImport {
        DecisionImport { time: now(), by: self.by.trim().to_owned(), overwrite, rows }
    }
}

fn now() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(0)
}

/// Rate a site, host, folder or page, set its verdict, tag it, or add it to collections.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive review set example.org --rating 4 --reason 'the national archive of maps'
  archive review set host:forum.example.org --verdict drop --reason 'moved'
  archive review set https://example.org/calendar/ --verdict never
  archive review set host:news.example.org --robots parts --reason 'legal deposit'
  archive review set example.org --tag maps --tag=-music --collection geography --by anna

Verdicts:
  keep         exempt from budgets and trap guards
  drop         not fetched any more; archived captures stay
  often        refreshed more often
  never        does not belong in the archive; removed from the scope
  investigate  needs another look

A rating also affects the choice of pages to refresh and page budgets: each step above 2.5 doubles the weight. The narrowest subject counts: page, folder, host, site.
Commands that fetch accept --no-decisions; `archive why URL` shows the effect of a decision.")]
pub(crate) struct SetArgs {
    /// Site (example.org), host:NAME, folder (a URL that ends with /), or page
    #[arg(value_name = "SUBJECT")]
    subject: Subject,
    /// Rating: 4 essential, 3 valuable, 2 marginal, 1 out of scope
    #[arg(long, value_name = "1-4")]
    rating: Option<u8>,
    /// Verdict: keep, drop, often, never or investigate
    #[arg(long, value_name = "WORD", value_parser = verdict)]
    verdict: Option<DecisionVerdict>,
    /// Which of what its robots.txt forbids is fetched all the same
    #[arg(long, value_name = "WHICH", value_parser = named(ROBOTS))]
    robots: Option<RobotsDecision>,
    /// Reason
    #[arg(long, default_value = "", value_name = "TEXT")]
    reason: String,
    /// Further remark
    #[arg(long, default_value = "", value_name = "TEXT")]
    note: String,
    /// Tag to add; --tag=-NAME removes it
    #[arg(long, value_name = "NAME")]
    tag: Vec<String>,
    /// Collection to add it to; --collection=-NAME removes it from there
    #[arg(long, value_name = "NAME")]
    collection: Vec<String>,
    #[command(flatten)]
    by: By,
}

/// Undo a decision.
#[derive(clap::Args)]
pub(crate) struct UndoArgs {
    /// Number of the decision, as `archive review log` shows it; with --cluster the number of an order, all of its
    /// decisions are then undone
    number: u64,
    #[command(flatten)]
    by: By,
}

/// List decisions, oldest first.
#[derive(clap::Args)]
pub(crate) struct LogArgs {
    /// Site, host:NAME, folder or page whose decisions are listed
    #[arg(value_name = "SUBJECT")]
    subject: Option<Subject>,
    #[command(flatten)]
    archive: ArchiveArgs,
    /// One JSON object per decision
    #[arg(long)]
    json: bool,
}

/// Import ratings, comments and verdicts from a sheet that was filled in.
///
/// If somebody decided on a site after the sheet was exported, that is a conflict: it is shown, and the site is left
/// unchanged unless --overwrite is given. If the sheet has no time of export, every row that would replace a verdict,
/// or a rating by the same person, is a conflict.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive review import ratings.csv --by anna
  archive review import ratings.csv --by anna --overwrite
  archive review import ratings.csv --by anna --cluster s3://crawl/cluster     # in all partitions that have the sites")]
pub(crate) struct ImportArgs {
    /// CSV file with the columns site and rating, as written by a spreadsheet or the exported page
    file: PathBuf,
    /// Also import conflicting rows
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    by: By,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

fn verdict(text: &str) -> Result<DecisionVerdict, String> {
    let names = || {
        format!(
            "'{text}' is not a verdict: expected {}",
            DecisionVerdict::EACH.map(DecisionVerdict::name).join(", ")
        )
    };
    DecisionVerdict::EACH.into_iter().find(|verdict| verdict.name() == text).ok_or_else(names)
}

pub(crate) fn set(args: &SetArgs) -> Result<()> {
    let said = Statement {
        rating: args.rating,
        verdict: args.verdict,
        robots: args.robots,
        reason: args.reason.clone(),
        note: args.note.clone(),
        tags: args.tag.clone(),
        collections: args.collection.clone(),
        ..Statement::of(args.subject.clone())
    };
    if let Some(cluster) = &args.by.order.cluster {
        let import = args.by.import(true, vec![ImportRow::new(said, None)]);
        return orders::publish(cluster, &Order::Decide(Resolution::Import(import)), false);
    }
    jobs::check_exists(&args.by.archive.path)?;
    if let Subject::Site(site) = &args.subject {
        let store = Store::read_only(&args.by.archive.path)?;
        let state = store.state();
        let meant = state.find_host(site)?.map_or_else(String::new, |_| format!("; the host is host:{site}"));
        if state.find_site(site)?.is_none() {
            note!("the archive does not know the site {site}{meant}");
        }
    }
    add(&args.by, DecisionContent::Said(Box::new(said)))
}

pub(crate) fn undo(args: &UndoArgs) -> Result<()> {
    if let Some(cluster) = &args.by.order.cluster {
        let (order, time, by) = (args.number, now(), args.by.by.trim().to_owned());
        return orders::publish(cluster, &Order::Decide(Resolution::Undo { order, time, by }), false);
    }
    jobs::check_exists(&args.by.archive.path)?;
    add(&args.by, DecisionContent::Undoes(args.number))
}

fn add(by: &By, what: DecisionContent) -> Result<()> {
    let subject = match &what {
        DecisionContent::Said(said) => Some(said.on.clone()),
        DecisionContent::Undoes(_) => None,
    };
    let mut decisions = Decisions::default();
    let decision = Decision { time: now(), by: by.by.trim().to_owned(), what };
    let number = decisions.add(&by.archive.path, vec![decision])?;
    let standing =
        subject.and_then(|subject| Some((decisions.on(&subject)?.sentence(Language::English)?, subject)));
    match standing {
        Some((sentence, subject)) => {
            note!("decision {number}: {subject} is now {sentence}");
        }
        None => note!("decision {number} is kept"),
    }
    Ok(())
}

pub(crate) fn log(args: &LogArgs) -> Result<()> {
    jobs::check_exists(&args.archive.path)?;
    let decisions = Decisions::read(&args.archive.path)?;
    let headings = ["number", "time", "by", "subject", "decision"];
    let mut listing = Listing::new(args.json, &headings, &[0]);
    for (place, decision) in decisions.log().iter().enumerate() {
        let number = place as u64 + 1;
        let is_asked = |said: &Statement| args.subject.as_ref().is_none_or(|subject| *subject == said.on);
        let (subject, text) = match &decision.what {
            DecisionContent::Said(said) if is_asked(said) => {
                (said.on.to_string(), said.in_words(Language::English))
            }
            DecisionContent::Undoes(other) if args.subject.is_none() => {
                (String::new(), format!("undoes {other}"))
            }
            _ => continue,
        };
        let undone = decisions.is_undone(number);
        listing.add(object! { number, undone, #[serde(flatten)] decision }, |line| {
            let text = if undone { format!("{text} (undone)") } else { text };
            let Decision { time, by, .. } = line.decision;
            [number.to_string(), output::minute(*time), by.clone(), subject, text]
        })?;
    }
    listing.end()
}

/// The decisions in a sheet, and their lines in the file.
fn sheet(args: &ImportArgs) -> Result<(DecisionImport, Vec<u64>)> {
    let (mut rows, mut lines) = (Vec::new(), Vec::new());
    for rating in super::ratings(&args.file)? {
        let line = rating.line;
        let subject: Subject = rating
            .site
            .parse()
            .map_err(|problem| usage(format!("{}, line {line}: {problem}", args.file.display())))?;
        let exported = rating.exported;
        rows.push(ImportRow::new(said(subject, rating), exported));
        lines.push(line);
    }
    Ok((args.by.import(args.overwrite, rows), lines))
}

pub(crate) fn import(args: &ImportArgs) -> Result<()> {
    let (sheet, lines) = sheet(args)?;
    if let Some(cluster) = &args.by.order.cluster {
        return orders::publish(cluster, &Order::Decide(Resolution::Import(sheet)), args.json);
    }
    jobs::check_exists(&args.by.archive.path)?;
    let ComparedImport { new, conflicts, .. } = sheet.compare(&Decisions::read(&args.by.archive.path)?);
    let conflicts: Vec<_> =
        conflicts.into_iter().map(|(row, other)| (lines[row], &sheet.rows[row].said.on, other)).collect();
    for (line, subject, Decision { by, time, what }) in conflicts.iter().take(CONFLICTS_NAMED_MAX) {
        let what = match what {
            DecisionContent::Said(said) => said.in_words(Language::English),
            DecisionContent::Undoes(number) => format!("undoes {number}"),
        };
        note!("line {line}: {subject} is left alone: {by} decided on {}: {what}", output::minute(*time));
    }
    let imported = new.len();
    if imported > 0 {
        Decisions::default().add(&args.by.archive.path, new)?;
    }
    if args.json {
        let conflicts: Vec<String> = conflicts.iter().map(|(_, subject, _)| subject.to_string()).collect();
        output::json_line(&object! { imported, conflicts: conflicts.clone() })?;
    } else {
        note!("{} taken in", output::count(imported as u64, "decision"));
    }
    if !conflicts.is_empty() {
        fail!(
            "{} in conflict with what was decided since the export: see `archive review log`, then --overwrite",
            output::count(conflicts.len() as u64, "site")
        );
    }
    Ok(())
}

fn said(subject: Subject, rating: Rating) -> Statement {
    Statement {
        rating: rating.score.map(archive_ask::review::Score::number),
        verdict: rating.verdict,
        note: rating.comment,
        ..Statement::of(subject)
    }
}
