//! `archive copy`: copies archives to an object store and restores them.

use std::process::ExitCode;
use std::time::Duration;

use archive::jobs;
use archive_base::control::Control;
use archive_base::error::ErrorKind;
use archive_vault::copy::{self, CopyCheck, CopyError, CopyFinding, Remote, Removed};
use indicatif::{HumanBytes, HumanCount, HumanDuration};

use super::options::{ArchiveArgs, duration};
use super::output::{self, Listing};
use super::{Failure, Result, interrupt, progress};

/// Copy an archive to an object store, or restore an archive from a copy.
///
/// A copy is the archive as of its last checkpoint; it can be made during a crawl. Only data that is new since the last
/// copy is sent, and an interrupted copy is continued. A copy counts once it is complete; later copies have higher
/// numbers. Objects are named by their digests, which are checked on every read.
#[derive(clap::Args)]
#[command(after_help = "URLs are s3://BUCKET/PREFIX, on any S3-compatible service, or file:///FOLDER.

S3 uses the usual environment variables: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN,
AWS_REGION, AWS_ENDPOINT_URL for a service other than Amazon's, AWS_PROFILE for a profile of ~/.aws/credentials; AWS_ALLOW_HTTP=true to allow connections without TLS, SSL_CERT_FILE for your own certificate authority, AWS_READ_TIMEOUT=5m for a slow line.

Examples:
  archive copy --to s3://backup/web            # for cron
  archive copy --to s3://backup/web --keep 30
  archive copy --to s3://backup/web --every 30s --keep 2   # during a crawl, until interrupted
  archive copy --list --to s3://backup/web
  archive copy --verify --to s3://backup/web   # reads every byte of all copies
  archive copy --from s3://backup/web --archive restored.archive

After `archive erase`, older copies still contain the erased data: `archive copy --to … --keep 1`
makes a new copy and removes them.")]
#[command(group = clap::ArgGroup::new("place").required(true).args(["to", "from"]))]
pub(crate) struct Args {
    /// URL at which copies are kept
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    /// URL of copies from which to restore the archive, into a new or empty folder
    #[arg(long, value_name = "URL", conflicts_with_all = ["keep", "adopt", "verify", "list"])]
    from: Option<String>,
    /// Number of newest copies to keep; older ones are removed, with the objects that only they need
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with_all = ["verify", "list"])]
    keep: Option<u64>,
    /// Interval at which to copy, until interrupted by a signal; a failed copy is reported and retried the next time
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with_all = ["from", "verify", "list"])]
    every: Option<Duration>,
    /// Continue copies there that this archive does not know
    #[arg(long, conflicts_with_all = ["verify", "list"])]
    adopt: bool,
    /// Copy nothing: read and check all objects of the copies there
    #[arg(long)]
    verify: bool,
    /// Copy nothing: list the copies there
    #[arg(long, conflicts_with = "verify")]
    list: bool,
    /// Number of the copy to restore or verify [default: restore the newest; verify all]
    #[arg(long, value_name = "N", conflicts_with_all = ["keep", "adopt", "list"])]
    number: Option<u64>,
    #[command(flatten)]
    archive: ArchiveArgs,
    /// One JSON object; with --list one per copy, with --verify one per finding and one at the end
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let control = interrupt::install()?;
    match (&args.to, &args.from) {
        (_, Some(from)) => restore(args, &Remote::open(from)?, &control),
        (Some(to), _) if args.list => list(args, &Remote::open(to)?),
        (Some(to), _) if args.verify => verify(args, &Remote::open(to)?, &control),
        (to, _) => copies(args, to.as_deref().unwrap_or_default(), &control),
    }
}

/// Runs `work` with a progress bar for bytes.
fn shown<T>(work: impl FnOnce(copy::CopyProgress<'_>) -> T) -> T {
    let bar = progress::bar(0, "{bar:30} {bytes}/{total_bytes} {eta}");
    let outcome = work(&|done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    progress::end();
    outcome
}

/// Makes one copy, or one after the other.
fn copies(args: &Args, url: &str, control: &Control) -> Result<ExitCode> {
    jobs::check_exists(&args.archive.path)?;
    let remote = Remote::open(url)?;
    // Problems with the first copy usually affect all of them, so they end the command.
    let outcome = send(args, &remote, control)?;
    let Some(every) = args.every else { return Ok(outcome) };
    loop {
        if !interrupt::wait(control, every) {
            return Err(CopyError::Stopped.into());
        }
        match send(args, &remote, control) {
            Err(error) if error.kind() != ErrorKind::Stopped => {
                progress::end();
                note!("{error:#}; trying again in {}", HumanDuration(every));
            }
            made => drop(made?),
        }
    }
}

fn send(args: &Args, remote: &Remote, control: &Control) -> Result<ExitCode> {
    let path = &args.archive.path;
    let copied = shown(|progress| copy::send(path, remote, args.adopt, control, progress, &|| Ok(())))?;
    let number = copied.number;
    if !args.json && (copied.is_new || args.every.is_none()) {
        let what = if copied.is_new { "is" } else { "is still" };
        say!(
            "copy {number} {what} the archive as it is: {} in {} ({}), {} sent ({})",
            output::count(copied.captures, "capture"),
            output::count(copied.files, "file"),
            HumanBytes(copied.bytes),
            HumanCount(copied.sent),
            HumanBytes(copied.sent_bytes),
        )?;
    }
    let removed = args.keep.map_or(Ok(Removed::default()), |keep| copy::prune(remote, number, keep));
    let removed = removed.map_err(|error| {
        Failure::from(error)
            .within(format_args!("copy {number} is made, but older ones could not be removed"))
    })?;
    if args.json {
        output::json_line(&object! { #[serde(flatten)] copied, #[serde(flatten)] removed })?;
    } else if removed != Removed::default() {
        say!(
            "{} removed, and {} ({}) that only older copies had",
            match removed.copies {
                1 => "1 older copy".to_owned(),
                copies => format!("{} older copies", HumanCount(copies)),
            },
            output::count(removed.objects, "object"),
            HumanBytes(removed.bytes)
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

fn list(args: &Args, remote: &Remote) -> Result<ExitCode> {
    let headings = ["copy", "made", "captures", "files", "size", "new in it"];
    let mut listing = Listing::new(args.json, &headings, &[]);
    for number in remote.numbers()? {
        let copy = match remote.manifest(number) {
            Ok(copy) => copy,
            // Another command has removed it in the meantime.
            Err(CopyError::NoCopy { .. }) => continue,
            Err(error) => return Err(error.into()),
        };
        let new = copy.files.iter().filter(|file| file.copy == number);
        let row = object! {
            number,
            time: &copy.time,
            captures: copy.captures,
            files: copy.files.len(),
            bytes: copy.bytes(),
            new_bytes: new.map(|file| file.bytes).sum::<u64>(),
        };
        listing.add(row, |row| {
            [
                number.to_string(),
                row.time.to_owned(),
                HumanCount(row.captures).to_string(),
                HumanCount(row.files as u64).to_string(),
                HumanBytes(row.bytes).to_string(),
                HumanBytes(row.new_bytes).to_string(),
            ]
        })?;
    }
    listing.end()?;
    Ok(ExitCode::SUCCESS)
}

fn verify(args: &Args, remote: &Remote, control: &Control) -> Result<ExitCode> {
    let checked = shown(|progress| copy::check(remote, args.number, control, progress))?;
    for finding in &checked.findings {
        output::summary(args.json, finding, || {
            let CopyFinding { object, path, what } = finding;
            let of = path.as_ref().map_or_else(String::new, |path| format!(" ({path})"));
            format!("{object}{of}: {what}")
        })?;
    }
    let findings = checked.findings.len();
    let CopyCheck { copies, objects, bytes, .. } = checked;
    output::summary(args.json, &object! { copies, objects, bytes, findings }, || {
        let copies = match copies {
            1 => "1 copy".to_owned(),
            copies => format!("{} copies", HumanCount(copies)),
        };
        let result = output::wrong(findings as u64, "everything is as it was copied");
        format!("{copies}, {} ({}): {result}", output::count(objects, "object"), HumanBytes(bytes))
    })?;
    Ok(if findings == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn restore(args: &Args, remote: &Remote, control: &Control) -> Result<ExitCode> {
    let path = &args.archive.path;
    let restored = shown(|progress| copy::restore(remote, path, args.number, control, progress))?;
    output::summary(args.json, &restored, || {
        format!(
            "{} is the archive of copy {}, made on {}: {} in {} ({})",
            path.display(),
            restored.number,
            restored.time,
            output::count(restored.captures, "capture"),
            output::count(restored.files, "file"),
            HumanBytes(restored.bytes),
        )
    })?;
    Ok(ExitCode::SUCCESS)
}
