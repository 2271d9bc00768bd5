//! `archive erase`: erases captures permanently.

use std::collections::BTreeSet;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use archive::jobs;
use archive_ask::query::Question;
use archive_base::access::Access;
use archive_base::decisions::check_name;
use archive_base::erased::{Erased, FORGOTTEN, REASON_BYTES_MAX};
use archive_base::files;
use archive_peers::share::{self, Erasure};
use archive_storage::{Store, UrlId};
use archive_vault::erase::{Done, ErasePlan, EraseRequest};
use chrono::{SubsecRound, Utc};
use indicatif::{HumanBytes, HumanCount};

use super::cluster::orders::{self, OrderArgs};
use super::messages::Hearing;
use super::options::ArchiveArgs;
use super::output::Listing;
use super::{During, Result, find_url, output, url_of, usage};

/// Maximum size of a list of URLs.
const LIST_BYTES_MAX: u64 = 256 << 20;

/// Maximum number of exports listed as text; --json lists all.
const EXPORTS_SHOWN: usize = 20;

/// Erase all captures of the selected pages permanently.
///
/// Their records are removed from the segments and from everything derived from them: dictionaries, guards, indexes,
/// histories, titles, links, full text, reports of watches, quarantined files. Topics learned from them are removed. A
/// tombstone remains for each capture; it records when the capture was made, and when and why it was erased. The URLs
/// are not fetched or imported again until --lift allows it. Revisits of other pages that depend on the content are
/// erased, too, unless --keep-copies gives them the content. Other pages keep their links to an erased page, and keep
/// the same content if they have it themselves; --dry-run counts these pages. Copies outside the archive remain: the
/// exports known to the archive are listed. With --forget-url, files and settings that people wrote and that still name
/// a page are listed, too; the names of hosts remain. An interrupted erase is finished by the next command that writes to the
/// archive.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive erase 'url = \"https://www.example.org/private/\"' --reason 'asked by the author' --dry-run
  archive erase 'site = \"example.org\"' --reason 'court order 12/34' --yes
  archive erase --urls list.txt --reason 'asked by the author' --forget-url
  archive erase --lift https://www.example.org/private/
  archive erase --list
  archive erase --urls list.txt --reason 'court order 12/34' --cluster s3://crawl/cluster     # in all partitions that have them
  archive erase 'site = \"example.org\"' --reason 'court order 12/34' --cluster s3://crawl/cluster

A query for sites selects all their pages. A list of URLs has one URL per line; # starts a comment.")]
#[command(group = clap::ArgGroup::new("what").required(true).args(["query", "urls", "lift", "list", "resume"]))]
pub(crate) struct Args {
    /// Query that selects the pages, as for `archive query`
    #[arg(value_name = "QUERY")]
    query: Option<String>,
    /// File with one URL per line
    #[arg(long, value_name = "FILE")]
    urls: Option<PathBuf>,
    /// Reason, recorded in the tombstones and shown by `archive history` and `archive why`
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["lift", "list", "resume"])]
    reason: Option<String>,
    /// Name of the person who erases, recorded with the reason
    #[arg(long, value_name = "NAME", env = "USER", default_value_t = nobody())]
    by: String,
    /// Only report what would be erased
    #[arg(long, conflicts_with_all = ["lift", "list", "resume"])]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    /// Keep revisits of other pages that depend on the content; the first revisit of each page gets it
    #[arg(long, conflicts_with_all = ["lift", "list", "resume"])]
    keep_copies: bool,
    /// Keep only digests of the URLs
    ///
    /// The names of hosts remain. Pages that link to the URLs or were found on them still name them, in their content
    /// and in the metadata of their captures; --dry-run counts these pages.
    #[arg(long, conflicts_with_all = ["lift", "list", "resume"])]
    forget_url: bool,
    /// URL that may be fetched and imported again; a forgotten URL is given as its urn:sha256:…
    #[arg(long, value_name = "URL")]
    lift: Vec<String>,
    /// List the URLs that must not be fetched or imported again
    #[arg(long)]
    list: bool,
    /// Finish an interrupted erase
    #[arg(long)]
    resume: bool,
    #[command(flatten)]
    archive: ArchiveArgs,
    #[command(flatten)]
    order: OrderArgs,
    /// One JSON object; with --list one per URL
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if let Some(cluster) = &args.order.cluster {
        return publish(args, cluster);
    }
    let path = &args.archive.path;
    jobs::check_exists(path)?;
    if args.list {
        return list(args);
    }
    if args.resume {
        let mut hearing = Hearing::new(args.json);
        if !jobs::finish_erase(path, &mut |event| hearing.hear(event))? {
            note!("no erase was interrupted");
        }
        return Ok(());
    }
    if !args.lift.is_empty() {
        return lift(args);
    }
    let order = order(args)?;
    let mut hearing = Hearing::new(args.json);
    let select = |store: &Store| pages(args, store);
    let plan = jobs::plan_erase(path, order, select, &mut |event| hearing.hear(event))?;
    if args.dry_run {
        return report(args, &plan, None);
    }
    if plan.is_empty() {
        fail!("no captures of these pages are left; nothing was changed");
    }
    let captures = output::count((plan.captures.len() + plan.copies.len()) as u64, "capture");
    confirm(args, &format!("Erase {captures} of {}", output::count(plan.pages.len() as u64, "page")))?;
    let done = jobs::erase(path, &plan, &mut |event| hearing.hear(event))?;
    hearing.end()?;
    report(args, &plan, Some(&done))
}

/// What is recorded of the erase.
fn order(args: &Args) -> Result<EraseRequest> {
    let (keep_copies, forget_url) = (args.keep_copies, args.forget_url);
    Ok(EraseRequest { reason: reason(args)?, by: by(args)?, keep_copies, forget_url })
}

/// The reason, which is optional only for a dry run.
fn reason(args: &Args) -> Result<String> {
    let reason = args.reason.as_deref().unwrap_or_default().trim();
    let problem = if reason.is_empty() && !args.dry_run {
        "say why with --reason TEXT, which the tombstones record".to_owned()
    } else if reason.len() > REASON_BYTES_MAX {
        format!("the reason is longer than {REASON_BYTES_MAX} bytes")
    } else if reason.contains(char::is_control) {
        "the reason has control characters".to_owned()
    } else {
        return Ok(reason.to_owned());
    };
    Err(usage(problem))
}

/// The person, who has to be named.
fn by(args: &Args) -> Result<String> {
    check_name(&args.by).map_err(|error| usage(format!("--by: {error}")))?;
    if args.by.contains(char::is_control) {
        refuse!("the name after --by has control characters");
    }
    Ok(args.by.trim().to_owned())
}

/// The name of a person whom the system names only by a number.
fn nobody() -> String {
    format!("user {}", rustix::process::getuid().as_raw())
}

/// The selected pages.
fn pages(args: &Args, store: &Store) -> Result<BTreeSet<UrlId>> {
    match (&args.query, &args.urls) {
        (Some(query), _) => {
            let question = Question::new(store, Access::unlimited(), query, Utc::now())?;
            Ok(question.pages()?.into_iter().collect())
        }
        (None, Some(file)) => listed(file, |url| find_url(store, url)),
        (None, None) => Ok(BTreeSet::new()),
    }
}

/// Parses the lines of a list; a line that cannot be parsed invalidates the whole list.
fn listed<T: Ord>(file: &Path, named: impl Fn(&str) -> Result<T>) -> Result<BTreeSet<T>> {
    let shown = file.display();
    let bytes = files::read(file, LIST_BYTES_MAX).within(format_args!("cannot read {shown}"))?;
    let text = String::from_utf8(bytes).map_err(|_| usage(format!("{shown} is not UTF-8")))?;
    let mut pages = BTreeSet::new();
    for (number, line) in text.lines().enumerate() {
        let url = line.split(" #").next().unwrap_or_default().trim();
        if url.is_empty() || url.starts_with('#') {
            continue;
        }
        let found = named(url);
        pages.insert(found.map_err(|error| usage(format!("{shown}, line {}: {error}", number + 1)))?);
    }
    Ok(pages)
}

/// Orders an erasure, or the lifting of one, in all partitions.
fn publish(args: &Args, cluster: &str) -> Result<()> {
    let time = Utc::now().trunc_subsecs(0);
    let erasure = match (&args.query, &args.urls) {
        (Some(query), _) if !args.dry_run => Erasure::by_query(time, query.clone(), order(args)?),
        (None, Some(file)) if !args.dry_run => {
            Erasure::new(time, listed(file, url_of)?.into_iter().collect(), Some(order(args)?))
        }
        (None, None) if !args.lift.is_empty() => {
            let urls = args.lift.iter().map(|url| url_of(url)).collect::<Result<_, _>>()?;
            Erasure::new(time, urls, None)
        }
        _ => {
            let text = if args.dry_run {
                "--dry-run does not work with --cluster, which reads no archive; `archive query` with several --archive lists the pages of a query"
            } else {
                "with --cluster, give QUERY, --urls FILE or --lift URL"
            };
            return Err(usage(text));
        }
    };
    if erasure.erase.is_some() {
        let what = match &args.query {
            Some(_) => "all pages that match".to_owned(),
            None => output::count(erasure.urls.len() as u64, "page"),
        };
        confirm(args, &format!("Erase {what} in all partitions"))?;
    }
    orders::publish(cluster, &share::orders::Order::Erase(erasure), args.json)
}

/// Asks for confirmation, unless --yes was given.
fn confirm(args: &Args, what: &str) -> Result<()> {
    if args.yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() {
        refuse!("add --yes to erase without being asked");
    }
    let mut out = io::stderr().lock();
    write!(out, "{what} for good? [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    if matches!(answer.trim(), "y" | "Y" | "yes") { Ok(()) } else { fail!("nothing was changed") }
}

fn report(args: &Args, plan: &ErasePlan, done: Option<&Done>) -> Result<()> {
    let nothing = Done {
        pages: plan.pages.len() as u64,
        captures: (plan.captures.len() + plan.copies.len()) as u64,
        kept: plan.kept.len() as u64,
        segments: plan.segments.len() as u64,
        ..Done::default()
    };
    let is_trial = done.is_none();
    let done = done.unwrap_or(&nothing);
    if args.json {
        return output::json_line(&object! {
            dry_run: is_trial,
            pages: done.pages,
            captures: done.captures,
            copies: plan.copies.len(),
            kept: done.kept,
            elsewhere: plan.elsewhere,
            naming: plan.naming,
            segments: done.segments,
            bytes_before: done.bytes_before,
            bytes_after: done.bytes_after,
            reports: done.reports,
            topics: &done.topics,
            removed_files: done.removed_files,
            left: &done.left,
            exports: &done.exports,
            copied_to: done.copies.iter().map(|place| place.url.as_str()).collect::<Vec<_>>(),
        });
    }
    let would = if is_trial { " would be" } else { "" };
    say!(
        "{} of {}{would} erased, {} of them of other pages with the same content; {} kept",
        output::count(done.captures, "capture"),
        output::count(done.pages, "page"),
        HumanCount(plan.copies.len() as u64),
        output::count(done.kept, "revisit"),
    )?;
    if is_trial {
        say!(
            "{} would be rewritten, and those whose dictionaries hold the content",
            output::count(done.segments, "segment")
        )?;
    } else {
        let (before, after) = (HumanBytes(done.bytes_before), HumanBytes(done.bytes_after));
        say!("{} rewritten: {before} before, {after} now", output::count(done.segments, "segment"))?;
    }
    if plan.elsewhere > 0 {
        note!(
            "the same content remains in {} of other pages; erase these pages too to remove it",
            output::count(plan.elsewhere, "capture")
        );
    }
    if plan.naming > 0 {
        note!(
            "references to the erased pages remain in {} (links, or the page of discovery)",
            output::count(plan.naming, "page")
        );
    }
    for topic in &done.topics {
        note!("the topic {topic} is removed, because it was learned from erased pages");
    }
    for place in &done.left {
        note!("{place} still names a page whose URL is forgotten; people wrote that, so it stays");
    }
    for place in &done.copies {
        note!("{}", jobs::copies_hold(&place.url));
    }
    for export in done.exports.iter().take(EXPORTS_SHOWN) {
        let query = export.query.as_ref().map_or(String::new(), |query| format!(" of '{query}'"));
        note!("exported before: {}{query} to {} on {}", export.format, export.output, export.time);
    }
    if done.exports.len() > EXPORTS_SHOWN {
        let more = output::count((done.exports.len() - EXPORTS_SHOWN) as u64, "more export");
        note!("{more}; --json lists all");
    }
    Ok(())
}

fn lift(args: &Args) -> Result<()> {
    jobs::lift(&args.archive.path, &args.lift)?;
    note!("{} may be fetched and imported again", output::count(args.lift.len() as u64, "URL"));
    Ok(())
}

fn list(args: &Args) -> Result<()> {
    let erased = Erased::read(&args.archive.path)?;
    let mut listing = Listing::new(args.json, &["erased", "by", "URL", "why"], &[]);
    for entry in erased.entries() {
        listing.add(entry, |_| {
            let url = entry.url.clone().unwrap_or_else(|| format!("{FORGOTTEN}{}", entry.sha256));
            let by = if entry.by.is_empty() { "-" } else { &entry.by };
            [entry.time.clone(), by.to_owned(), url, entry.reason.clone()]
        })?;
    }
    listing.end()
}
