//! Opens an archive for writing, and reports what had to be repaired.

use std::path::Path;

use anyhow::Context;
use archive_ask::watch;
use archive_base::files::{FileError, refuse_link_in};
use archive_base::program;
use archive_books::recorder;
use archive_books::topics;
use archive_crawl::publish;
use archive_storage::Store;
use archive_storage::segment::{self, Codec, Guard, SegmentOptions};
use archive_vault::erase::{self, Traces};
use archive_web::fetch;

use super::output;

/// Options of new segments.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct SegmentArgs {
    /// Codec of new segments [default: that of the newest segment, or zstd]
    #[arg(long, value_name = "CODEC")]
    codec: Option<CodecName>,
    /// Protection of dictionaries in new segments against damage [default: that of the newest segment with one, or
    /// parity]
    #[arg(long, value_name = "GUARD")]
    dictionary_guard: Option<GuardName>,
}

impl SegmentArgs {
    pub(crate) fn codec(self) -> Option<Codec> {
        self.codec.map(|name| match name {
            CodecName::Zstd => Codec::Zstd,
            CodecName::Gzip => Codec::Gzip,
        })
    }

    fn guard(self) -> Option<Guard> {
        self.dictionary_guard.map(|name| match name {
            GuardName::Parity => Guard::Parity,
            GuardName::Copy => Guard::Copy,
        })
    }
}

/// Codec of new segments.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum CodecName {
    /// .warc.zst: smaller, faster
    Zstd,
    /// .warc.gz: read by every WARC tool
    Gzip,
}

/// Protection of the dictionaries of new segments.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum GuardName {
    /// An eighth of the dictionary's size; repairs a damaged stretch of up to an eighth
    Parity,
    /// A second copy at the segment's end; repairs any damage to one of the two copies
    Copy,
}

/// The options for writing segments: the fields of every `warcinfo` record, and the requested format of new segments.
pub(crate) fn options(asked: SegmentArgs, fetch: Option<&fetch::Settings>) -> SegmentOptions {
    let mut info = vec![("software".to_owned(), program::PRODUCT.to_owned())];
    let mut options =
        SegmentOptions { codec: asked.codec(), guard: asked.guard(), ..SegmentOptions::default() };
    // A command that fetches nothing has no crawl settings to record, and can wait for dictionaries to be built.
    options.builds_beside = fetch.is_some();
    if let Some(fetch) = fetch {
        info.push(("robots".to_owned(), "obey (RFC 9309)".to_owned()));
        info.push(("http-header-user-agent".to_owned(), fetch.user_agent.clone()));
        options.clock = fetch.clock;
        options.trained_level = archive_crawl::TRAINED_LEVEL;
    }
    SegmentOptions { info, ..options }
}

/// Opens the archive in `path`, creates it if it does not exist, and reports what was recovered after a crash.
pub(crate) fn own(path: &Path, asked: SegmentArgs, fetch: Option<&fetch::Settings>) -> anyhow::Result<Store> {
    segment::check_repaired(path)?;
    finish_erase(path)?;
    let opened = recorder::open(path, options(asked, fetch))?;
    for missing in opened.store.missing() {
        output::note(format_args!("{}; put it back, or give it up with `archive repair`", missing.missing()));
    }
    if opened.store.begun_in_vain() > 0 {
        let segments = output::count(opened.store.begun_in_vain() as u64, "new segment");
        output::note(format_args!(
            "a repack or an erase was interrupted; {segments} of it removed, nothing is lost"
        ));
    }
    if opened.replayed > 0 || opened.cut_bytes > 0 {
        let recovered = output::count(opened.replayed, "capture") + " recovered";
        let cut = output::count(opened.cut_bytes, "byte") + " of unfinished captures removed";
        let parts = [(opened.replayed, recovered), (opened.cut_bytes, cut)];
        let parts: Vec<String> =
            parts.into_iter().filter(|(count, _)| *count > 0).map(|(_, text)| text).collect();
        output::note(format_args!("the last run was interrupted; {}", parts.join(", ")));
    }
    for (segment, broken) in &opened.broken {
        output::note(format_args!("segment {segment}, offset {}: {}", broken.offset, broken.what));
    }
    Ok(opened.store)
}

/// What forgets the pages of an erase, besides the files that an erase knows itself.
const TRACES: [Traces; 3] = [
    Traces {
        written_by_people: Some(watch::FOLDER),
        forget: |archive, urls, done| {
            done.reports = watch::forget_pages(archive, urls)?;
            Ok(())
        },
    },
    Traces {
        written_by_people: Some(topics::FOLDER),
        forget: |archive, urls, done| {
            done.topics = topics::forget(archive, urls)?;
            Ok(())
        },
    },
    Traces {
        written_by_people: None,
        forget: |archive, urls, _| {
            publish::forget(archive, urls).map_err(FileError::at(&archive.join(publish::FOLDER)))?;
            Ok(())
        },
    },
];

/// How erases are carried out.
pub(crate) fn erase_options() -> erase::Options {
    erase::Options { segments: options(SegmentArgs::default(), None), traces: &TRACES }
}

/// Finishes an interrupted erase before anything else is written.
pub(crate) fn finish_erase(path: &Path) -> anyhow::Result<()> {
    if let Some(intent) = erase::interrupted(path)? {
        let captures = output::count(intent.count() as u64, "capture");
        output::note(format_args!("the erase of {captures} was interrupted; finishing it first"));
        erase::resume(path, &erase_options(), &mut |_, _| {})?;
    }
    Ok(())
}

/// Rejects an output that is a link in the archive's folder: in an archive of unknown origin it may lead anywhere.
pub(crate) fn check_output(archive: &Path, output: &Path) -> anyhow::Result<()> {
    refuse_link_in(archive, output).with_context(|| output.display().to_string())
}

/// Fails if there is no archive, before one is created by mistake.
pub(crate) fn check_exists(path: &Path) -> anyhow::Result<()> {
    if path.join("segments").is_dir() {
        return Ok(());
    }
    anyhow::bail!("there is no archive in {}; begin one with `archive crawl --seeds FILE`", path.display())
}
