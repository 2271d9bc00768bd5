//! The command line: one file per subcommand. Options become jobs (`archive::jobs`) or questions, and answers tables and
//! JSON.
//!
//! Results go to standard output, progress and messages to standard error. Exit codes: 0 success, 1 failure, 2 wrong
//! usage (including a query or seeds file that cannot be read), 3 the archive is in use, 4 stopped early.

/// Prints a message on standard error, formatted as by `println!`.
macro_rules! note {
    ($($text:tt)*) => { $crate::cli::output::note(format_args!($($text)*)) };
}

/// Prints one line of text on standard output, formatted as by `println!`.
macro_rules! say {
    ($($text:tt)*) => { $crate::cli::output::line(&format!($($text)*)) };
}

/// Ends a function with a mistake in the command line.
macro_rules! refuse {
    ($($text:tt)*) => { return Err($crate::cli::usage(format!($($text)*))) };
}

/// Ends a function with any other failure.
macro_rules! fail {
    ($($text:tt)*) => { return Err($crate::cli::Failure::failed(format!($($text)*))) };
}

/// A result for programs: a JSON object with these members in this order.
macro_rules! object {
    ($($(#[$attribute:meta])* $name:ident $(: $value:expr)?),* $(,)?) => {{
        #[expect(non_camel_case_types, reason = "each member has a type parameter of its name")]
        mod object {
            #[derive(serde::Serialize)]
            pub(super) struct Object<$($name),*> {
                $($(#[$attribute])* pub(super) $name: $name),*
            }
        }
        object::Object { $($name $(: $value)?),* }
    }};
}

mod access;
mod account;
mod cash;
mod cluster;
mod copy;
mod crawl;
mod demo;
mod diff;
mod download;
mod erase;
mod export;
mod fetching;
mod freshness;
mod get;
mod history;
mod import;
mod input;
mod interrupt;
mod lab;
mod logging;
mod login;
mod messages;
mod node;
mod options;
mod output;
mod patch;
mod plan;
mod progress;
mod publish;
mod query;
mod rank;
mod rebuild;
mod refresh;
mod repack;
mod repair;
mod review;
mod said;
mod search;
mod serve;
mod stats;
mod topic;
mod validate;
mod verify;
mod watch;
mod why;
mod xpath;

use std::error::Error;
use std::ffi::OsString;
use std::num::ParseIntError;
use std::path::Path;
use std::process::ExitCode;

use archive_base::access::{Access, FILE as ACCESS_FILE};
use archive_base::erased::FORGOTTEN;
use archive_base::error::{During, ErrorKind, Failure};
use archive_base::remote;
use archive_books::ledger::{Credits, name_as_robots_txt};
use archive_storage::address::{canonical, surt};
use archive_storage::{Store, UrlId};
use archive_web::parse::{serve_documents, start_readers_with};
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use url::Url;

const EXIT_USAGE: u8 = 2;
const EXIT_IN_USE: u8 = 3;
const EXIT_STOPPED: u8 = 4;

/// A web archiving crawler that ranks, stores and refreshes the pages it finds.
#[derive(Parser)]
#[command(name = "archive", version, max_term_width = 100)]
#[command(after_help = "The archive's folder is --archive DIR, or $ARCHIVE_DIR, or ./web.archive.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 the archive is in use, 4 stopped before the end.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Crawl(Box<crawl::Args>),
    #[command(subcommand)]
    Cluster(cluster::Command),
    Node(node::Args),
    Refresh(Box<refresh::Args>),
    Query(query::Args),
    Search(search::Args),
    Said(said::Args),
    Serve(serve::Args),
    History(history::Args),
    Why(why::Args),
    Get(get::Args),
    Diff(diff::Args),
    Patch(patch::Args),
    Watch(Box<watch::Args>),
    Publish(publish::Args),
    #[command(alias = "currency")]
    Freshness(freshness::Args),
    Plan(plan::Args),
    #[command(subcommand)]
    Topic(topic::Command),
    Import(import::Args),
    Export(export::Args),
    Copy(copy::Args),
    Rebuild(rebuild::Args),
    Repair(repair::Args),
    Repack(repack::Args),
    Access(access::Args),
    #[command(subcommand)]
    Account(account::Command),
    #[command(subcommand)]
    Login(login::Command),
    Erase(erase::Args),
    Stats(stats::Args),
    Verify(verify::Args),
    Validate(validate::Args),
    #[command(name = "xpath")]
    XPath(xpath::Args),
    #[command(subcommand)]
    Review(review::Command),
    Rank(rank::Args),
    Demo(demo::Args),
    Lab(lab::Args),
    /// Print shell completions
    Completions {
        /// Name of the shell
        shell: Shell,
    },
}

/// The command with which this program starts itself to read documents, which people have no use for.
const READ_DOCUMENTS: &str = "read-documents";

/// Advice when a disk is full.
const DISK_FULL: &str = "; free some space and run the same command again; nothing that was stored is lost";

/// How the system says that a process has no more descriptors (EMFILE), also where only the text of an error is left.
const DESCRIPTORS_OUT: &str = "(os error 24)";

/// Advice then.
const MORE_DESCRIPTORS: &str = "; this process may open too few files and connections: allow more (`ulimit -n 4096`), and run the same command again";

/// What a command returns; every error that it can meet has a kind.
type Result<T, E = Failure> = std::result::Result<T, E>;

/// A mistake in the command line.
fn usage(problem: impl Into<String>) -> Failure {
    Failure::usage(problem)
}

/// Parses the command line, runs the command, and converts its outcome to an exit code.
pub(crate) fn main() -> ExitCode {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    if arguments.get(1).is_some_and(|command| command == READ_DOCUMENTS) {
        // It starts nothing else before it gives up its rights.
        serve_documents();
        return ExitCode::SUCCESS;
    }
    // This program, even if another version has taken its place.
    start_readers_with(Path::new("/proc/self/exe"), &[READ_DOCUMENTS]);
    if arguments.get(1).is_some_and(|command| command == "search") {
        let command = Cli::command();
        let own = command.find_subcommand("search").into_iter().flat_map(clap::Command::get_arguments);
        let all = own.chain(command.get_arguments()).filter_map(clap::Arg::get_long_and_visible_aliases);
        let options: Vec<String> = all.flatten().chain(["help"]).map(str::to_owned).collect();
        arguments = search::with_minus_signs(arguments.into_iter(), &options).collect();
    }
    let cli = Cli::try_parse_from(arguments).unwrap_or_else(|error| refuse(&error));
    progress::working();
    let outcome = run(cli.command);
    progress::end();
    match outcome {
        Ok(code) => code,
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let text = format!("{error:#}");
            let advice = match () {
                () if remote::is_full(&error) => DISK_FULL,
                () if text.contains(DESCRIPTORS_OUT) => MORE_DESCRIPTORS,
                () => "",
            };
            note!("{text}{advice}");
            exit_code(&error)
        }
    }
}

/// Prints the requested help or the error in a command line, and exits.
fn refuse(error: &clap::Error) -> ! {
    let Some(cause) = error.source().filter(|cause| cause.is::<ParseIntError>()) else { error.exit() };
    let text = error.render().to_string().replace(&cause.to_string(), "write a whole number");
    note!("{}", text.lines().next().unwrap_or_default().trim_start_matches("error: "));
    std::process::exit(EXIT_USAGE.into())
}

fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Crawl(args) => crawl::run(&args),
        Command::Cluster(command) => cluster::run(&command),
        Command::Node(args) => node::run(&args),
        Command::Refresh(args) => refresh::run(&args),
        Command::Query(args) => query::run(&args),
        Command::Search(args) => search::run(&args),
        Command::Said(args) => said::run(&args),
        Command::Serve(args) => ended(serve::run(&args)),
        Command::History(args) => ended(history::run(&args)),
        Command::Why(args) => ended(why::run(&args)),
        Command::Get(args) => ended(get::run(&args)),
        Command::Diff(args) => ended(diff::run(&args)),
        Command::Patch(args) => ended(patch::run(&args)),
        Command::Watch(args) => watch::run(&args),
        Command::Publish(args) => ended(publish::run(&args)),
        Command::Freshness(args) => ended(freshness::run(&args)),
        Command::Plan(args) => plan::run(&args),
        Command::Topic(command) => ended(topic::run(&command)),
        Command::Import(args) => import::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Copy(args) => copy::run(&args),
        Command::Rebuild(args) => rebuild::run(&args),
        Command::Repair(args) => repair::run(&args),
        Command::Repack(args) => repack::run(&args),
        Command::Access(args) => ended(access::run(&args)),
        Command::Account(command) => ended(account::run(&command)),
        Command::Login(command) => ended(login::run(&command)),
        Command::Erase(args) => ended(erase::run(&args)),
        Command::Stats(args) => ended(stats::run(&args)),
        Command::Verify(args) => verify::run(&args),
        Command::Validate(args) => validate::run(&args),
        Command::XPath(args) => xpath::run(&args),
        Command::Review(command) => review::run(&command),
        Command::Rank(args) => rank::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Lab(args) => lab::run(&args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "archive", &mut script);
            ended(output::write(&script))
        }
    }
}

/// The exit code of a command that can only succeed or fail.
fn ended(outcome: Result<()>) -> Result<ExitCode> {
    outcome.map(|()| ExitCode::SUCCESS)
}

/// The exit code of a command's error.
fn exit_code(error: &Failure) -> ExitCode {
    match error.kind() {
        ErrorKind::Usage => ExitCode::from(EXIT_USAGE),
        ErrorKind::Busy => ExitCode::from(EXIT_IN_USE),
        ErrorKind::Stopped => ExitCode::from(EXIT_STOPPED),
        ErrorKind::Failed => ExitCode::FAILURE,
    }
}

/// As [`find_url`], or the page by another spelling of its URL, such as with `www.`; fails if the access rules hide all
/// captures of the URL.
fn find_shown(store: &Store, access: &Access, text: &str) -> Result<UrlId> {
    let state = store.state();
    let id = match find_url(store, text) {
        Ok(id) => id,
        Err(error) => {
            let url = url_of(text)?;
            // Of several, the one that has another scheme or `www.` alone is most probably meant.
            let bare = |url: &str| {
                let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
                rest.strip_prefix("www.").unwrap_or(rest).to_owned()
            };
            let alike = state.alike(&url)?.into_iter().filter(|(_, known)| surt(known) == surt(&url));
            let (id, known) = alike.min_by_key(|(_, known)| bare(known) != bare(&url)).ok_or(error)?;
            note!("{text} was captured as {known}");
            id
        }
    };
    if let Some(newest) = state.history(id)?.next().transpose()?
        && access.history(state, id)?.next().is_none()
    {
        let rule = access.hiding(&state.url(id)?, newest.1.time).map_or_else(
            || "the capture that has its content is hidden".to_owned(),
            |rule| format!("rule {} hides it", rule + 1),
        );
        fail!(
            "{text} is not shown: {rule} ({}); --as-archivist shows it",
            store.path().join(ACCESS_FILE).display()
        );
    }
    Ok(id)
}

/// The canonical form of a URL given by the user; a forgotten URL is given by its digest.
fn url_of(text: &str) -> Result<String> {
    if text.starts_with(FORGOTTEN) {
        return Ok(text.to_owned());
    }
    if text.is_empty() {
        refuse!("no URL is given; write it like https://example.org/");
    }
    let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let url = Url::parse(&with_scheme).map_err(|error| {
        usage(format!("'{text}' is not a URL ({error}); write it like https://example.org/"))
    })?;
    Ok(canonical(&url))
}

/// Finds the id of a URL given by the user.
fn find_url(store: &Store, text: &str) -> Result<UrlId> {
    // A page whose URL was forgotten is identified by its digest.
    if text.starts_with(FORGOTTEN)
        && let Some(found) = store.state().find(text)?
    {
        return Ok(found);
    }
    let url = url_of(text)?;
    let found = match store.state().find(&url)? {
        Some(found) => Some(found),
        // It may have been fetched only because the robots.txt of another host redirects to it.
        None => match store.state().find(&name_as_robots_txt(&url))? {
            Some(found) => Some(found),
            None => Credits::known_as(store.state(), &url)?,
        },
    };
    found.within(format_args!("{text} is not in {}", store.path().display()))
}
