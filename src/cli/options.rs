//! Options that several commands share.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use archive_ask::query::{self, MEMORY_MIN, Question, UnreadRows};
use archive_base::access::Access;
pub(crate) use archive_base::duration::read_duration as duration;
use archive_base::files::refuse_link_in;
use archive_base::memory::parse_bytes;
use archive_books::cluster::Partition;
use archive_books::ledger::Credits;
use archive_books::recorder::Memory;
use archive_books::veil;
use archive_peers::nodes::{ANSWERS_BYTES_MAX, Credentials, Http, LeafArchive, Node, Root};
use archive_storage::segment::{Codec, Guard, SegmentOptions};
use archive_storage::{Clock, Store, UrlId};
use archive_vault::erase;
use chrono::{DateTime, Utc};
use clap::builder::{PathBufValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};

use super::{During, EXIT_STOPPED, Failure, Result, find_shown, output, usage};

/// Parses a path of a folder that exists or may be created.
pub(crate) fn folder() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| {
        let is_folder = !path.exists() || path.is_dir();
        is_folder.then_some(path).ok_or("this is a file, but an archive is a folder")
    })
}

/// Location of an archive.
#[derive(clap::Args)]
pub(crate) struct ArchiveArgs {
    /// Folder of the archive
    #[arg(long = "archive", env = "ARCHIVE_DIR", default_value = "./web.archive", value_name = "DIR", value_parser = folder())]
    pub(crate) path: PathBuf,
}

/// Locations of the archives that are queried as one.
#[derive(clap::Args)]
pub(crate) struct ArchivesArgs {
    /// Folder of the archive; may be repeated for archives of different sites (such as the partitions of a cluster),
    /// which are then treated as one
    #[arg(long = "archive", env = "ARCHIVE_DIR", default_value = "./web.archive", value_name = "DIR", value_parser = folder())]
    paths: Vec<PathBuf>,
}

/// Access to archives of other machines, which are given by URLs such as http://node:8070/ in place of folders.
#[derive(clap::Args)]
pub(crate) struct NodesArgs {
    /// File with names and passwords for nodes (--archive http://node:8070/): URL, name and password on each line; only
    /// its owner may have access to it
    #[arg(long, value_name = "FILE", env = "ARCHIVE_CREDENTIALS")]
    credentials: Option<PathBuf>,
    /// Longest wait for the answer of a node; a slower node counts as missing
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "2m")]
    wait: Duration,
}

/// Archives that are asked as one, some of which may be on other machines.
#[derive(clap::Args)]
pub(crate) struct AskArgs {
    #[command(flatten)]
    archives: ArchivesArgs,
    #[command(flatten)]
    pub(crate) reader: ReaderArgs,
    #[command(flatten)]
    pub(crate) nodes: NodesArgs,
}

/// Time limit of an answer.
#[derive(clap::Args)]
pub(crate) struct TimeArgs {
    /// Time limit (10s, 2m); rows printed before it stay
    #[arg(long, value_name = "TIME", value_parser = duration)]
    time_limit: Option<Duration>,
}

impl TimeArgs {
    /// The limits, starting now.
    pub(crate) fn limits(&self) -> query::Limits {
        let limits = query::Limits::USUAL;
        self.time_limit.map_or(limits, |time| limits.within(time))
    }
}

/// Time limit of a search that reads versions.
#[derive(clap::Args)]
pub(crate) struct SearchTime {
    /// Time limit of the search
    #[arg(long = "for", default_value = "1m", value_name = "TIME", value_parser = duration)]
    time_max: Duration,
}

impl SearchTime {
    /// When it ends, beginning now.
    pub(crate) fn deadline(&self) -> Result<Instant> {
        Instant::now().checked_add(self.time_max).ok_or_else(|| usage("--for is too long"))
    }
}

/// The opened archives that answer a query.
pub(crate) struct Answering {
    stores: Vec<(Store, Access)>,
    /// Nodes, each with the number of folders that precede it.
    nodes: Vec<(usize, String)>,
    is_whole: bool,
}

impl ArchivesArgs {
    /// The folders; fails if there is a node, for commands that cannot query nodes.
    pub(crate) fn folders(&self) -> Result<&[PathBuf]> {
        match self.paths.iter().filter_map(|path| path.to_str()).find(|name| Node::is_meant(name)) {
            Some(node) => Err(not_asked(node)),
            None => Ok(&self.paths),
        }
    }
}

impl AskArgs {
    /// The folders.
    pub(crate) fn paths(&self) -> &[PathBuf] {
        &self.archives.paths
    }

    /// Whether some of the archives are on other machines.
    pub(crate) fn has_nodes(&self) -> bool {
        self.paths().iter().any(|path| path.to_str().is_some_and(Node::is_meant))
    }

    /// Opens the archives, some of which may be on other machines. If there are several, those that cannot be opened
    /// are reported, and so are missing partitions of their clusters.
    pub(crate) fn open(&self) -> Result<Answering> {
        let open = |path: &PathBuf| {
            let (mut store, access) = (Store::read_only(path)?, self.reader.access(path)?);
            veil::lay(&mut store, &access)?;
            Ok::<_, Failure>((store, access))
        };
        let node = |path: &PathBuf| path.to_str().filter(|name| Node::is_meant(name)).map(str::to_owned);
        let mut answering = Answering { stores: Vec::new(), nodes: Vec::new(), is_whole: true };
        if let [only] = self.paths()
            && node(only).is_none()
        {
            answering.stores.push(open(only)?);
            return Ok(answering);
        }
        let mut partitions = Vec::new();
        for path in self.paths() {
            if let Some(node) = node(path) {
                answering.nodes.push((answering.stores.len(), node));
                continue;
            }
            match open(path) {
                Ok((store, access)) => {
                    partitions.extend(Credits::partition_of(store.state())?);
                    answering.stores.push((store, access));
                }
                Err(error) => {
                    answering.is_whole = false;
                    note!("{} is missing from this answer: {error:#}", path.display());
                }
            }
        }
        if answering.nodes.is_empty() {
            if answering.stores.is_empty() {
                fail!("none of these archives can be read");
            }
            answering.is_whole &= are_all(partitions.iter());
        } else if self.reader.as_archivist {
            refuse!("--as-archivist works only for local folders; nodes decide themselves what they show");
        }
        Ok(answering)
    }
}

fn not_asked(node: &str) -> Failure {
    usage(format!(
        "only `archive query`, `search`, `rank`, `export`, `plan`, `review next` and `review export` work with nodes such as {node}; name local folders here"
    ))
}

/// Whether all partitions of the clusters are present to which these belong; reports the missing ones.
fn are_all<'a>(partitions: impl Iterator<Item = &'a Partition>) -> bool {
    let others = Partition::others(partitions);
    for (count, missing) in &others {
        note!("of {count} partitions these are missing from this answer: {missing}");
    }
    others.is_empty()
}

impl Answering {
    /// All archives for a combined query, if some of them are on other machines.
    pub(crate) fn asked(&self, args: &NodesArgs, limits: query::Limits) -> Result<Option<Root<'_>>> {
        if self.nodes.is_empty() {
            return Ok(None);
        }
        let credentials = args.credentials.as_deref().map(Credentials::read).transpose()?.unwrap_or_default();
        let mut folders =
            self.stores.iter().map(|(store, access)| Ok(LeafArchive::Folder(store, access.clone())));
        let (mut sources, mut before) = (Vec::new(), 0);
        for (place, node) in &self.nodes {
            sources.extend(folders.by_ref().take(place - before));
            before = *place;
            sources.push(Ok(LeafArchive::Node(Node::new(node, &credentials)?)));
        }
        sources.extend(folders);
        let http = Arc::new(Http::new(args.wait, ANSWERS_BYTES_MAX)?);
        Ok(Some(Root::new(sources, http)?.within(limits)))
    }

    /// The exit code for an answer that includes other machines; reports missing ones.
    pub(crate) fn exit_code_of(&self, asked: &Root<'_>) -> ExitCode {
        let known = asked.roster();
        for missing in known.missing() {
            note!("{} is missing from this answer: {}", missing.name, missing.why);
        }
        let are_all = are_all(known.partitions()) && known.missing().is_empty();
        if are_all { self.exit_code() } else { ExitCode::from(EXIT_STOPPED) }
    }

    pub(crate) fn archives(&self) -> Vec<(&Store, Access)> {
        self.stores.iter().map(|(store, access)| (store, access.clone())).collect()
    }

    /// The pages that match a question asked of all archives as one, by archive.
    pub(crate) fn found(&self, question: &Question<'_>) -> Result<Vec<HashSet<UrlId>>, query::Error> {
        question.pages_by_archive(self.stores.len())
    }

    pub(crate) fn of(&self, archive: usize) -> &(Store, Access) {
        &self.stores[archive]
    }

    /// The exit code for an answer; reports rows that are not in it because their records cannot be read.
    pub(crate) fn exit_code_without(&self, unread: Option<&UnreadRows>) -> ExitCode {
        let Some(UnreadRows { rows, first }) = unread else { return self.exit_code() };
        note!("{} could not be read: {first}; see `archive verify`", output::count(*rows, "row"));
        ExitCode::from(EXIT_STOPPED)
    }

    /// The exit code for an answer.
    pub(crate) fn exit_code(&self) -> ExitCode {
        if self.is_whole { ExitCode::SUCCESS } else { ExitCode::from(EXIT_STOPPED) }
    }
}

/// Pages on which a command works.
#[derive(clap::Args)]
pub(crate) struct PagesArgs {
    /// URLs, or a query for pages
    #[arg(required = true, num_args = 1.., value_name = "QUERY|URL")]
    what: Vec<String>,
    #[command(flatten)]
    archive: ReadArgs,
}

/// The selected pages, and their archive.
pub(crate) struct Meant {
    pub(crate) store: Store,
    pub(crate) access: Access,
    pub(crate) pages: Vec<UrlId>,
    /// Whether the pages were given by URL.
    pub(crate) are_named: bool,
}

impl PagesArgs {
    /// Opens the archive and finds the pages.
    pub(crate) fn open(&self) -> Result<Meant> {
        let (store, access) = self.archive.open()?;
        let is_url = |text: &String| text.starts_with("http://") || text.starts_with("https://");
        let are_named = self.what.iter().all(is_url);
        let pages = if are_named {
            let ids = self.what.iter().map(|url| find_shown(&store, &access, url));
            ids.collect::<Result<_>>()?
        } else {
            Question::new(&store, access.clone(), &self.what.join(" "), Utc::now())?.pages()?
        };
        Ok(Meant { store, access, pages, are_named })
    }
}

/// Rights of the reader.
#[derive(clap::Args)]
pub(crate) struct ReaderArgs {
    /// Also show what the archive's access rules hide (see `archive access --help`)
    #[arg(long)]
    as_archivist: bool,
}

impl ReaderArgs {
    /// The captures of the archive in `path` that the reader may see.
    pub(crate) fn access(&self, path: &Path) -> Result<Access> {
        if let Some(intent) = erase::interrupted(path)? {
            let captures = output::count(intent.count() as u64, "capture");
            note!("an erase of {captures} is not finished; `archive erase --resume` finishes it");
        }
        if self.as_archivist { Ok(Access::unlimited()) } else { Ok(Access::read(path)?) }
    }
}

/// An archive to be read, and the rights of the reader.
#[derive(clap::Args)]
pub(crate) struct ReadArgs {
    #[command(flatten)]
    archive: ArchiveArgs,
    #[command(flatten)]
    reader: ReaderArgs,
}

impl ReadArgs {
    pub(crate) fn path(&self) -> &Path {
        &self.archive.path
    }

    /// Opens the archive for reading, with the captures that the reader may see.
    pub(crate) fn open(&self) -> Result<(Store, Access)> {
        Ok((Store::read_only(self.path())?, self.reader.access(self.path())?))
    }
}

/// Versions in the full-text index.
#[derive(clap::Args)]
pub(crate) struct VersionsArgs {
    /// Also index older versions of pages from now on, to search as of a time (`archive search --as-of`); =false
    /// indexes only the newest
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) index_versions: Option<bool>,
}

/// Folders for reports.
#[derive(clap::Args)]
pub(crate) struct OutputsArgs {
    /// Folder below which watches may write their files (`archive watch --output`); may be repeated. Reports whose file
    /// is not below such a folder are printed instead
    #[arg(long, value_name = "DIR")]
    pub(crate) outputs: Vec<PathBuf>,
}

/// Clock of a run.
#[derive(clap::Args)]
pub(crate) struct ClockArgs {
    /// Start time of the run, with a zone (2026-01-31T10:00:00Z); for simulations
    #[arg(long, value_name = "TIME", hide = true)]
    clock: Option<DateTime<Utc>>,
}

impl ClockArgs {
    /// The clock, set if requested.
    pub(crate) fn clock(&self) -> Clock {
        self.clock.map_or_else(Clock::default, Clock::set_to)
    }
}

/// Parses the amount of memory for a query.
pub(crate) fn query_memory(text: &str) -> Result<usize, String> {
    let bytes = parse_bytes(text)?;
    if bytes < MEMORY_MIN {
        Err(format!("it has to be at least {}MB", MEMORY_MIN / 1_000_000))
    } else {
        Ok(bytes)
    }
}

/// Parses an amount of memory (200MB, 4GiB).
pub(crate) fn memory(text: &str) -> Result<Memory, String> {
    let bytes = parse_bytes(text)?;
    if bytes < Memory::BYTES_MIN {
        return Err(format!("it has to be at least {}MiB", Memory::BYTES_MIN >> 20));
    }
    Ok(Memory::new(bytes))
}

/// Options of new segments.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct SegmentArgs {
    /// Codec of new segments [default: that of the newest segment, or zstd]
    #[arg(long, value_name = "CODEC", value_parser = named(CODECS))]
    codec: Option<Codec>,
    /// Protection of dictionaries in new segments against damage [default: that of the newest segment with one, or
    /// parity]
    #[arg(long, value_name = "GUARD", value_parser = named(GUARDS))]
    dictionary_guard: Option<Guard>,
}

const CODECS: [(&str, &str, Codec); 2] = [
    ("zstd", ".warc.zst: smaller, faster", Codec::Zstd),
    ("gzip", ".warc.gz: read by every WARC tool", Codec::Gzip),
];

const GUARDS: [(&str, &str, Guard); 2] = [
    (
        "parity",
        "An eighth of the dictionary's size; repairs a damaged stretch of up to an eighth",
        Guard::Parity,
    ),
    ("copy", "A second copy at the segment's end; repairs any damage to one of the two copies", Guard::Copy),
];

impl SegmentArgs {
    pub(crate) fn options(self) -> SegmentOptions {
        SegmentOptions { codec: self.codec, guard: self.dictionary_guard, ..SegmentOptions::default() }
    }
}

/// Parses one of these names, each with its meaning and its value.
pub(crate) fn named<T: Copy + Send + Sync + 'static, const N: usize>(
    names: [(&'static str, &'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    let values = names.map(|(name, meaning, _)| PossibleValue::new(name).help(meaning));
    PossibleValuesParser::new(values).map(move |given| {
        // The parser has refused all other names.
        names.iter().find(|(name, ..)| *name == given).map_or(names[0].2, |(.., value)| *value)
    })
}

/// Rejects an output that is a link in the archive's folder: in an archive of unknown origin it may lead anywhere.
pub(crate) fn check_output(archive: &Path, output: &Path) -> Result<()> {
    refuse_link_in(archive, output).within(output.display())
}
