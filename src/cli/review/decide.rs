//! `archive review set`, `undo`, `log` and `import`: making and listing decisions.

use std::path::PathBuf;

use anyhow::bail;
use archive::decisions::{Decision, Decisions, Said, Subject, Verdict, What};
use archive::review::Rating;
use archive::texts::Language;
use chrono::{DateTime, Local, SubsecRound, Utc};
use comfy_table::CellAlignment;
use serde::Serialize;

use super::super::options::ArchiveArgs;
use super::super::{UsageError, open, output};

/// Conflicts that are named.
const CONFLICTS_NAMED_MAX: usize = 20;

/// Who decides.
#[derive(clap::Args)]
struct By {
    /// Who decides
    #[arg(long, value_name = "NAME", env = "USER")]
    by: String,
}

/// Rate a site, host, folder or page, decide what happens to it, tag it, put it into collections.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive review set example.org --rating 4 --reason 'the national archive of maps'
  archive review set host:forum.example.org --verdict drop --reason 'moved'
  archive review set https://example.org/calendar/ --verdict never
  archive review set example.org --tag maps --tag=-music --collection geography --by anna

keep: no budget and no guard against traps leaves it out. drop: nothing more is fetched, what is archived stays. often: refreshed
more often. never: does not belong in the archive, leaves the scope. investigate: somebody has to look again.
A rating also weighs when refreshes choose, and in budgets of pages: each step above 2.5 doubles the weight. The narrowest subject counts: page, folder, host, site.
Commands that fetch take --no-decisions; `archive why URL` shows what a decision does.")]
pub(crate) struct SetArgs {
    /// A site (example.org), host:NAME, a folder (a URL that ends with /), or a page
    #[arg(value_name = "SUBJECT")]
    subject: Subject,
    /// 4 essential, 3 valuable, 2 marginal, 1 out of scope
    #[arg(long, value_name = "1-4")]
    rating: Option<u8>,
    /// What happens to it
    #[arg(long, value_name = "WORD", value_parser = verdict)]
    verdict: Option<Verdict>,
    /// Why
    #[arg(long, default_value = "", value_name = "TEXT")]
    reason: String,
    /// A further remark
    #[arg(long, default_value = "", value_name = "TEXT")]
    note: String,
    /// Add a tag; --tag=-NAME takes it away
    #[arg(long, value_name = "NAME")]
    tag: Vec<String>,
    /// Put it into a collection; --collection=-NAME takes it out
    #[arg(long, value_name = "NAME")]
    collection: Vec<String>,
    #[command(flatten)]
    by: By,
    #[command(flatten)]
    archive: ArchiveArgs,
}

/// Undo a decision.
#[derive(clap::Args)]
pub(crate) struct UndoArgs {
    /// Its number, as `archive review log` shows it
    number: u64,
    #[command(flatten)]
    by: By,
    #[command(flatten)]
    archive: ArchiveArgs,
}

/// List decisions, oldest first.
#[derive(clap::Args)]
pub(crate) struct LogArgs {
    /// Only those on this site, host:NAME, folder or page
    #[arg(value_name = "SUBJECT")]
    subject: Option<Subject>,
    #[command(flatten)]
    archive: ArchiveArgs,
    /// One JSON object a decision
    #[arg(long)]
    json: bool,
}

/// Import ratings, comments and verdicts from a sheet that was filled in.
///
/// If somebody decided on a site after the sheet was exported, that is a conflict: it is shown, and the site is left as it is
/// unless --overwrite is given. If the sheet does not say when it was exported, every row that would replace a verdict, or a
/// rating by the same person, is a conflict.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive review import ratings.csv --by anna
  archive review import ratings.csv --by anna --overwrite")]
pub(crate) struct ImportArgs {
    /// CSV with the columns site and rating, as a spreadsheet or the exported page wrote it
    file: PathBuf,
    /// Import conflicting rows, too
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    by: By,
    #[command(flatten)]
    archive: ArchiveArgs,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

fn verdict(text: &str) -> Result<Verdict, String> {
    let names =
        || format!("'{text}' is not a verdict: expected {}", Verdict::EACH.map(Verdict::name).join(", "));
    Verdict::EACH.into_iter().find(|verdict| verdict.name() == text).ok_or_else(names)
}

fn decision(by: &By, what: What) -> Decision {
    Decision { time: Utc::now().trunc_subsecs(0), by: by.by.trim().to_owned(), what }
}

pub(crate) fn set(args: &SetArgs) -> anyhow::Result<()> {
    open::check_exists(&args.archive.path)?;
    let said = Said {
        rating: args.rating,
        verdict: args.verdict,
        reason: args.reason.clone(),
        note: args.note.clone(),
        tags: args.tag.clone(),
        collections: args.collection.clone(),
        ..Said::of(args.subject.clone())
    };
    add(&args.archive, vec![decision(&args.by, What::Said(Box::new(said)))])
}

pub(crate) fn undo(args: &UndoArgs) -> anyhow::Result<()> {
    open::check_exists(&args.archive.path)?;
    add(&args.archive, vec![decision(&args.by, What::Undoes(args.number))])
}

fn add(archive: &ArchiveArgs, new: Vec<Decision>) -> anyhow::Result<()> {
    let subject = new.first().and_then(|decision| match &decision.what {
        What::Said(said) => Some(said.on.clone()),
        What::Undoes(_) => None,
    });
    let mut decisions = Decisions::default();
    let number = decisions.add(&archive.path, new)?;
    let standing =
        subject.and_then(|subject| Some((decisions.on(&subject)?.sentence(Language::English)?, subject)));
    match standing {
        Some((sentence, subject)) => {
            output::note(format_args!("decision {number}: {subject} is now {sentence}"));
        }
        None => output::note(format_args!("decision {number} is kept")),
    }
    Ok(())
}

#[derive(Serialize)]
struct Line<'a> {
    number: u64,
    undone: bool,
    #[serde(flatten)]
    decision: &'a Decision,
}

pub(crate) fn log(args: &LogArgs) -> anyhow::Result<()> {
    open::check_exists(&args.archive.path)?;
    let decisions = Decisions::read(&args.archive.path)?;
    let mut table = output::table(&["number", "time", "by", "subject", "decision"]);
    output::align(&mut table, &[0], CellAlignment::Right);
    for (place, decision) in decisions.log().iter().enumerate() {
        let number = place as u64 + 1;
        let is_asked = |said: &Said| args.subject.as_ref().is_none_or(|subject| *subject == said.on);
        let (subject, text) = match &decision.what {
            What::Said(said) if is_asked(said) => (said.on.to_string(), said.in_words(Language::English)),
            What::Undoes(other) if args.subject.is_none() => (String::new(), format!("undoes {other}")),
            _ => continue,
        };
        let undone = decisions.is_undone(number);
        if args.json {
            output::json_line(&Line { number, undone, decision })?;
            continue;
        }
        let text = if undone { format!("{text} (undone)") } else { text };
        let time = decision.time.with_timezone(&Local).format("%Y-%m-%d %H:%M").to_string();
        table.add_row([number.to_string(), time, decision.by.clone(), subject, text]);
    }
    if args.json { Ok(()) } else { output::print(&table) }
}

#[derive(Serialize)]
struct Imported {
    imported: usize,
    conflicts: Vec<String>,
}

pub(crate) fn import(args: &ImportArgs) -> anyhow::Result<()> {
    open::check_exists(&args.archive.path)?;
    let ratings = super::ratings(&args.file)?;
    let known = Decisions::read(&args.archive.path)?;
    let (mut new, mut conflicts) = (Vec::new(), Vec::new());
    for rating in ratings {
        let line = rating.line;
        let subject: Subject = rating
            .site
            .parse()
            .map_err(|problem| UsageError(format!("{}, line {}: {problem}", args.file.display(), line)))?;
        let exported = rating.exported;
        let said = said(subject.clone(), rating);
        let collides = exported.is_some() || replaces(&known, args.by.by.trim(), &said);
        let new_one = decision(&args.by, What::Said(Box::new(said)));
        match since(&known, &subject, exported).filter(|_| collides) {
            // The same sheet once more.
            Some(other) if other.by == new_one.by && other.what == new_one.what => {}
            Some(other) if !args.overwrite => conflicts.push((line, subject, other)),
            _ => new.push(new_one),
        }
    }
    for (line, subject, Decision { by, time, what }) in conflicts.iter().take(CONFLICTS_NAMED_MAX) {
        let what = match what {
            What::Said(said) => said.in_words(Language::English),
            What::Undoes(number) => format!("undoes {number}"),
        };
        let time = time.with_timezone(&Local).format("%Y-%m-%d %H:%M");
        output::note(format_args!("line {line}: {subject} is left alone: {by} decided on {time}: {what}"));
    }
    let imported = new.len();
    if imported > 0 {
        Decisions::default().add(&args.archive.path, new)?;
    }
    if args.json {
        let conflicts: Vec<String> = conflicts.iter().map(|(_, subject, _)| subject.to_string()).collect();
        output::json_line(&Imported { imported, conflicts: conflicts.clone() })?;
    } else {
        output::note(format_args!("{} taken in", output::count(imported as u64, "decision")));
    }
    if !conflicts.is_empty() {
        bail!(
            "{} in conflict with what was decided since the export: see `archive review log`, then --overwrite",
            output::count(conflicts.len() as u64, "site")
        );
    }
    Ok(())
}

/// The newest decision on a subject that the sheet does not contain.
fn since(known: &Decisions, subject: &Subject, exported: Option<DateTime<Utc>>) -> Option<Decision> {
    let decision = known.at(known.newest(subject))?;
    exported.is_none_or(|exported| decision.time >= exported).then(|| decision.clone())
}

/// Whether something that was decided would no longer count: a rating by the same person, or a verdict.
fn replaces(known: &Decisions, by: &str, said: &Said) -> bool {
    known.on(&said.on).is_some_and(|standing| {
        said.rating.is_some() && standing.ratings.contains_key(by)
            || said.verdict.is_some() && standing.verdict.is_some()
    })
}

fn said(subject: Subject, rating: Rating) -> Said {
    Said {
        rating: rating.score.map(archive::review::Score::number),
        verdict: rating.verdict,
        note: rating.comment,
        ..Said::of(subject)
    }
}
