//! Opens an archive for writing: repairs are checked and erases finished before anything else is written.

use std::path::Path;

use archive_ask::watch;
use archive_base::files::FileError;
use archive_base::program;
use archive_base::texts::count;
use archive_books::cluster::{Partition, Publications};
use archive_books::recorder::{self, Opened};
use archive_books::{topics, trends};
use archive_crawl::publish;
use archive_peers::share::orders::are_waiting;
use archive_storage::Store;
use archive_storage::segment::{self, SegmentOptions};
use archive_vault::erase::{self, Traces};
use archive_web::fetch;

use super::{Failure, Hear, JobEvent, orders};

/// How an archive is opened for writing.
#[derive(Clone, Debug, Default)]
pub struct Opening<'a> {
    /// How new segments are written.
    pub segments: SegmentOptions,
    /// How pages are to be fetched, if any are: recorded in each segment.
    pub fetch: Option<&'a fetch::FetchSettings>,
    /// URL of the object store of the archive's cluster, whose orders are carried out first.
    pub cluster: Option<&'a str>,
    /// The archive's partition of the cluster, if it may not have one yet.
    pub partition: Option<&'a Partition>,
}

/// Opens the archive in a folder for writing, and creates it if there is none. What had to be recovered is told.
///
/// # Errors
/// If another program owns the archive, a repair is not finished, or the disk fails.
pub fn open(path: &Path, opening: &Opening<'_>, hear: &mut Hear<'_>) -> Result<Store, Failure> {
    let mut store = own(path, opening, hear)?;
    let Some(cluster) = opening.cluster else { return Ok(store) };
    let mut published = Publications::look(cluster)?;
    if !are_waiting(&published, path)? {
        return Ok(store);
    }
    // Readers do not see a new archive before its first checkpoint.
    store.checkpoint_waiting()?;
    drop(store);
    orders::carry_out_all(&mut published, path, opening.partition, hear)?;
    own(path, opening, hear)
}

fn own(path: &Path, opening: &Opening<'_>, hear: &mut Hear<'_>) -> Result<Store, Failure> {
    segment::check_repaired(path)?;
    finish_erase(path, hear)?;
    let opened = recorder::open(path, segment_options(opening.segments.clone(), opening.fetch))?;
    recovered(&opened).into_iter().for_each(|notice| hear(JobEvent::Notice(notice)));
    Ok(opened.store)
}

/// What opening recovered after a crash, and what is missing; a sentence each.
fn recovered(opened: &Opened) -> Vec<String> {
    let mut notices = Vec::new();
    for missing in opened.store.missing() {
        notices.push(format!("{}; put it back, or give it up with `archive repair`", missing.missing()));
    }
    if opened.store.begun_in_vain() > 0 {
        let segments = count(opened.store.begun_in_vain() as u64, "new segment");
        notices
            .push(format!("a repack or an erase was interrupted; {segments} of it removed, nothing is lost"));
    }
    let recovered = count(opened.replayed, "capture") + " recovered";
    let cut = count(opened.cut_bytes, "byte") + " of unfinished captures removed";
    let parts = [(opened.replayed, recovered), (opened.cut_bytes, cut)];
    let parts: Vec<String> =
        parts.into_iter().filter(|(count, _)| *count > 0).map(|(_, text)| text).collect();
    if !parts.is_empty() {
        notices.push(format!("the last run was interrupted; {}", parts.join(", ")));
    }
    for (segment, broken) in &opened.broken {
        notices.push(format!("segment {segment}, offset {}: {}", broken.offset, broken.what));
    }
    notices
}

/// Completes the options for new segments by the fields of every `warcinfo` record. Something that fetches nothing has
/// no settings to record, and can wait for dictionaries to be built.
#[must_use]
pub fn segment_options(asked: SegmentOptions, fetch: Option<&fetch::FetchSettings>) -> SegmentOptions {
    let mut options = SegmentOptions { builds_beside: fetch.is_some(), ..asked };
    options.info = vec![("software".to_owned(), program::PRODUCT.to_owned())];
    if let Some(fetch) = fetch {
        options.info.push(("robots".to_owned(), "obey (RFC 9309)".to_owned()));
        options.info.push(("http-header-user-agent".to_owned(), fetch.user_agent.clone()));
        options.clock = fetch.clock;
        options.trained_level = archive_crawl::TRAINED_LEVEL;
    }
    options
}

/// What forgets the pages of an erase, besides the files that an erase knows itself.
const TRACES: [Traces; 4] = [
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
    Traces { written_by_people: None, forget: |archive, urls, _| Ok(trends::forget(archive, urls)?) },
    Traces {
        written_by_people: None,
        forget: |archive, urls, _| {
            publish::forget(archive, urls).map_err(FileError::at(&archive.join(publish::FOLDER)))?;
            Ok(())
        },
    },
];

/// How erases are carried out.
pub(super) fn erase_options() -> erase::EraseOptions {
    erase::EraseOptions { segments: segment_options(SegmentOptions::default(), None), traces: &TRACES }
}

/// Finishes an interrupted erase before anything else is written; returns whether there was one.
///
/// # Errors
/// If it cannot be finished.
pub fn finish_erase(path: &Path, hear: &mut Hear<'_>) -> Result<bool, Failure> {
    let Some(intent) = erase::interrupted(path)? else { return Ok(false) };
    let captures = count(intent.count() as u64, "capture");
    hear(JobEvent::Notice(format!("the erase of {captures} was interrupted; finishing it first")));
    erase::resume(path, &erase_options(), &mut |_, _| {})?;
    Ok(true)
}

/// Checks that there is an archive in a folder, before one is created by mistake.
///
/// # Errors
/// If there is none.
pub fn check_exists(path: &Path) -> Result<(), Failure> {
    if path.join(segment::FOLDER).is_dir() {
        return Ok(());
    }
    let folder = path.display();
    Err(Failure::failed(format!(
        "there is no archive in {folder}; begin one with `archive crawl --seeds FILE`"
    )))
}
