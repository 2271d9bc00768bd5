//! The thread that owns the store: stores and credits prepared captures in order.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use archive_base::control::Control;
use archive_base::erased::Erased;
use archive_books::ledger::{Candidate, FetchOutcome, fetched_url};
use archive_books::originals;
use archive_books::recorder::{Recorder, RecorderError, RecorderSettings};
use archive_storage::address::without_request;
use archive_storage::segment::{self, CaptureBody, Encoder, ReplayedCapture, SegmentError};
use archive_storage::warc::RecordType;
use archive_storage::{Capture, CaptureId, Digest, Store};
use archive_web::parse::ParseLimits;
use archive_web::reading::{self, Crew, Work};
use chrono::{DateTime, SecondsFormat};
use crossbeam::channel::{Receiver, RecvTimeoutError, bounded};

use super::gather::CaptureRecords;
use super::known::{ImportMatch, ImportedCaptures};
use super::left_out::LeftOut;
use super::listed::{compare, divided};
use super::prepare::{ImportRefusal, PreparedCapture, RecordReading, RejectionReason, prepare};
use super::read::{ImportReader, QueuedItem, ReadItem};
use super::room::RoomLease;
use super::sources::{SourceOptions, with_folders};
use super::{HearImport, ImportEvent, ImportForm, ImportNote, ImportOptions, ImportStatus, NoteKind};

/// Interval between two progress reports.
const REPORT_EVERY: Duration = Duration::from_millis(200);

/// Captures waiting to be prepared, per preparing thread; what they will take is not known before.
const WAITING_PER_THREAD: usize = 1;

/// Prepared captures waiting to be stored, per preparing thread.
const READY_PER_THREAD: usize = 16;

/// The output of the preparing threads.
enum PreparedItem {
    Capture(Box<PreparedCapture>),
    Refused(Arc<str>, ImportRefusal),
    Other(ReadItem),
    /// A capture could not be encoded; the store is at fault.
    Failed(SegmentError),
}

/// Imports files into an archive. Returns `true` if all were read to their end, `false` if `stop` came first.
///
/// When it returns, everything counted by the status is durable.
///
/// # Errors
/// If the store, the index or a thread fails. What was imported before is kept, and another import adds the rest.
pub fn run(
    store: &mut Store,
    options: &ImportOptions,
    stop: &Control,
    hear: &mut HearImport<'_>,
) -> Result<(bool, ImportStatus), RecorderError> {
    let memory = options.memory;
    let (files, lists) = match options.form {
        ImportForm::Records => divided(with_folders(&options.files)),
        _ => (options.files.clone(), Vec::new()),
    };
    let threads = options.threads.clamp(1, memory.documents());
    let (item_sender, items) = bounded(threads * WAITING_PER_THREAD);
    let (ready_sender, ready) = bounded(threads * READY_PER_THREAD);
    let bytes = Arc::new(AtomicU64::new(0));
    let ImportOptions { checkpoint_every, full_text, .. } = *options;
    let erased = Erased::of_archive(store.path(), store.state())?;
    let recorder = Recorder::open(store, RecorderSettings { memory, checkpoint_every, full_text })?;
    let body_bytes_max = memory.document().min(ParseLimits::default().body_bytes_max);
    thread::scope(|scope| {
        let spools = recorder.store().path().join(segment::FOLDER);
        let ImportOptions { form, keep_cut, accept_wrong_signatures, .. } = *options;
        let sources = SourceOptions { files: &files, form, accept_wrong_signatures };
        let reader = ImportReader { sources, keep_cut, bytes: Arc::clone(&bytes), stop, memory, spools };
        let thread = thread::Builder::new().name("read".to_owned());
        thread.spawn_scoped(scope, move || reader.run(&item_sender)).map_err(RecorderError::Thread)?;
        let encoder = recorder.store().encoder()?;
        let reading = RecordReading { body_bytes_max, full_text, algorithm: encoder.algorithm() };
        let limits = ParseLimits { body_bytes_max, ..ParseLimits::default() };
        let preparing = Preparing { encoder, reading };
        let path = recorder.store().path();
        let _crew = Crew::start(preparing, threads, path, limits, &items, &ready_sender)
            .map_err(RecorderError::Thread)?;
        drop(ready_sender);
        drop(items);
        let mut import = RunningImport {
            recorder,
            known: ImportedCaptures::new(memory.state() / 4),
            erased,
            candidates: Vec::new(),
            status: ImportStatus::default(),
            left_out: LeftOut::default(),
            unused_links: 0,
        };
        // `drive` drops the receiver when it ends, so no thread waits for it.
        import.drive(ready, &bytes, hear)?;
        import.finish(hear)?;
        compare(import.recorder.store(), &lists, &mut import.status, stop, hear)?;
        Ok((!stop.is_stopped(), import.status))
    })
}

/// The job of a preparing thread, and its tools.
#[derive(Clone)]
struct Preparing {
    encoder: Encoder,
    reading: RecordReading,
}

/// A capture that is waiting to be prepared.
#[derive(Clone)]
struct WaitingCapture {
    number: u64,
    file: Arc<str>,
    group: Box<CaptureRecords>,
    /// Taken when it is finished.
    place: Arc<Mutex<Option<RoomLease>>>,
}

impl Work for Preparing {
    type Item = QueuedItem<ReadItem>;
    type Job = WaitingCapture;
    type Read = Result<PreparedCapture, ImportRefusal>;
    type Done = QueuedItem<PreparedItem>;

    fn take(
        QueuedItem { number, what, place }: QueuedItem<ReadItem>,
    ) -> Option<Result<WaitingCapture, QueuedItem<PreparedItem>>> {
        Some(match what {
            ReadItem::Group(file, group) => {
                Ok(WaitingCapture { number, file, group, place: Arc::new(Mutex::new(place)) })
            }
            other => Err(QueuedItem { number, what: PreparedItem::Other(other), place }),
        })
    }

    fn read(
        &mut self,
        job: &WaitingCapture,
        reader: &reading::CallerReader,
    ) -> Result<PreparedCapture, ImportRefusal> {
        prepare(&job.file, &job.group, &self.reading, reader)
    }

    fn finish(
        &mut self,
        job: WaitingCapture,
        prepared: Result<PreparedCapture, ImportRefusal>,
    ) -> QueuedItem<PreparedItem> {
        let mut place = job.place.lock().unwrap_or_else(PoisonError::into_inner).take();
        let what = match prepared.map(|prepared| self.pack(prepared)) {
            Ok(Ok(prepared)) => {
                if let Some(place) = &mut place {
                    place.grow(prepared.grown_bytes());
                }
                PreparedItem::Capture(Box::new(prepared))
            }
            Ok(Err(error)) => PreparedItem::Failed(error),
            Err(refused) => PreparedItem::Refused(job.file, refused),
        };
        QueuedItem { number: job.number, what, place }
    }
}

impl Preparing {
    /// Compresses the records of a capture, except those of a revisit, whose original must be found first.
    fn pack(&self, mut prepared: PreparedCapture) -> Result<PreparedCapture, SegmentError> {
        if prepared.revisit.is_none() {
            self.encoder.pack(&mut prepared.records)?;
        }
        Ok(prepared)
    }
}

/// A running import.
struct RunningImport<'a> {
    recorder: Recorder<'a>,
    known: ImportedCaptures,
    /// URLs that must not come back.
    erased: Erased,
    candidates: Vec<Candidate>,
    status: ImportStatus,
    /// Records left out from the current file.
    left_out: LeftOut,
    /// Links that are not kept of the current file.
    unused_links: u64,
}

impl RunningImport<'_> {
    #[expect(
        clippy::needless_pass_by_value,
        reason = "dropping it ends the threads that send, also after an error"
    )]
    fn drive(
        &mut self,
        ready: Receiver<QueuedItem<PreparedItem>>,
        bytes: &AtomicU64,
        hear: &mut HearImport<'_>,
    ) -> Result<(), RecorderError> {
        // Threads finish in any order; captures are stored in the order of the files.
        let (mut waiting, mut next) = (BTreeMap::new(), 0);
        let mut reported = Instant::now();
        loop {
            match ready.recv_timeout(REPORT_EVERY) {
                Ok(queued) => drop(waiting.insert(queued.number, queued)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            while let Some(QueuedItem { what, place, .. }) = waiting.remove(&next) {
                next += 1;
                self.take(what, hear)?;
                drop(place);
            }
            if self.recorder.checkpoint_is_due() {
                self.recorder.checkpoint()?;
            }
            if reported.elapsed() >= REPORT_EVERY {
                reported = Instant::now();
                self.status.bytes = bytes.load(Ordering::Relaxed);
                hear(ImportEvent::Status(&self.status));
            }
            self.status.bytes = bytes.load(Ordering::Relaxed);
        }
    }

    fn take(&mut self, done: PreparedItem, hear: &mut HearImport<'_>) -> Result<(), RecorderError> {
        match done {
            PreparedItem::Capture(prepared) => self.capture(*prepared, hear)?,
            PreparedItem::Refused(file, ImportRefusal { offset, records, why }) => {
                self.status.records += records;
                match why {
                    RejectionReason::Broken(what) => {
                        self.status.broken += 1;
                        let (file, offset) = (file.to_string(), Some(offset));
                        hear(ImportEvent::Note(&ImportNote { file, offset, kind: NoteKind::Broken, what }));
                    }
                    RejectionReason::NoCapture(record_type) => self.leave_out(&record_type, records),
                }
            }
            PreparedItem::Other(ReadItem::Note(note)) => {
                self.status.broken += u64::from(note.kind == NoteKind::Broken);
                self.status.refused_files += u64::from(note.kind == NoteKind::File);
                hear(ImportEvent::Note(&note));
            }
            PreparedItem::Other(ReadItem::LeftOut(record_type)) => {
                self.status.records += 1;
                self.leave_out(&record_type, 1);
            }
            PreparedItem::Other(ReadItem::FileEnd { name, is_whole }) => {
                self.status.files += u64::from(is_whole);
                let links = std::mem::take(&mut self.unused_links);
                let links = (links > 0).then(|| {
                    format!(
                        "links that its crawler states were left out, as the pages do not have them: {links}"
                    )
                });
                for what in std::mem::take(&mut self.left_out).words().into_iter().chain(links) {
                    let (file, kind) = (name.to_string(), NoteKind::LeftOut);
                    hear(ImportEvent::Note(&ImportNote { file, offset: None, kind, what }));
                }
            }
            // Groups have become captures or refusals.
            PreparedItem::Other(ReadItem::Group(..)) => {}
            PreparedItem::Failed(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn leave_out(&mut self, record_type: &RecordType, records: u64) {
        self.left_out.add(record_type, records);
        self.status.left_out.add(record_type, records);
    }

    fn capture(
        &mut self,
        mut prepared: PreparedCapture,
        hear: &mut HearImport<'_>,
    ) -> Result<(), RecorderError> {
        self.status.records += prepared.count;
        for record_type in std::mem::take(&mut prepared.left_out) {
            self.leave_out(&record_type, 1);
        }
        if self.erased.of(&prepared.outcome.url).is_some() {
            self.status.erased += 1;
            return Ok(());
        }
        if prepared.is_conversion && self.known.has_source(self.recorder.store(), &prepared)? {
            self.leave_out(&RecordType::Conversion, 1);
            return Ok(());
        }
        match self.known.look(self.recorder.store(), &prepared)? {
            ImportMatch::Before => {
                self.status.duplicates += 1;
                return Ok(());
            }
            ImportMatch::Namesake => prepared.rename(),
            ImportMatch::Never => {}
        }
        self.unused_links += prepared.unused_links;
        self.status.unused_links += prepared.unused_links;
        for (kind, what) in std::mem::take(&mut prepared.notes) {
            self.status.wrong_digests += u64::from(kind == NoteKind::Digest);
            self.status.renamed += u64::from(kind == NoteKind::RecordId);
            let (file, offset) = (prepared.file.to_string(), Some(prepared.offset));
            hear(ImportEvent::Note(&ImportNote { file, offset, kind, what }));
        }
        let mut is_open = false;
        if let Some(revisit) = prepared.revisit.take() {
            let known = |digest: &Digest| self.known.payload(digest);
            match originals::find(self.recorder.store(), &revisit.reference, &known)? {
                Some(original) => self.refer(&mut prepared, &revisit.stated, original)?,
                None => is_open = true,
            }
            self.status.revisits += 1;
        }
        let PreparedCapture { records, outcome, .. } = &mut prepared;
        let id = self.recorder.record(records, outcome, &mut self.candidates)?;
        self.candidates.clear();
        self.known.add(self.recorder.store(), &prepared, id)?;
        self.status.captures += 1;
        if is_open {
            self.status.open_revisits += 1;
        }
        match prepared.text {
            Some(text) => self.recorder.index(id, &prepared.outcome.url, text),
            None => Ok(()),
        }
    }

    /// Adds a reference to the original to a revisit's record, unless the record has one.
    fn refer(
        &self,
        prepared: &mut PreparedCapture,
        stated: &ReplayedCapture,
        (id, original): (CaptureId, Capture),
    ) -> Result<(), RecorderError> {
        let facts = std::mem::take(&mut prepared.outcome.facts);
        prepared.outcome = FetchOutcome::with_facts(stated, facts, Some((id, original)));
        if stated.original.is_some() {
            return Ok(());
        }
        let CaptureBody::Imported(record) = &mut prepared.records.change().body else { return Ok(()) };
        let name = self.recorder.state().url(original.url)?;
        let Some(time) = DateTime::from_timestamp_micros(original.time) else { return Ok(()) };
        record.fields.retain(|(name, _)| !name.to_ascii_lowercase().starts_with("warc-refers-to-"));
        let date = time.to_rfc3339_opts(SecondsFormat::AutoSi, true);
        record
            .fields
            .push(("WARC-Refers-To-Target-URI".to_owned(), without_request(fetched_url(&name)).to_owned()));
        record.fields.push(("WARC-Refers-To-Date".to_owned(), date));
        Ok(())
    }

    fn finish(&mut self, hear: &mut HearImport<'_>) -> Result<(), RecorderError> {
        if self.status.open_revisits > 0 || originals::open_count(self.recorder.state()) > 0 {
            let open =
                originals::resolve_open(self.recorder.store_mut(), &|digest| self.known.payload(digest))?;
            self.status.open_revisits = open.len() as u64;
            for capture in open {
                let note = self.open_note(&capture)?;
                hear(ImportEvent::Note(&note));
            }
        }
        if self.status.captures > 0 {
            self.recorder.settle()?;
        }
        self.recorder.conclude()?;
        self.recorder.close_index()?;
        hear(ImportEvent::Status(&self.status));
        Ok(())
    }

    fn open_note(&self, capture: &Capture) -> Result<ImportNote, RecorderError> {
        let url = self.recorder.state().url(capture.url)?;
        let time = DateTime::from_timestamp_micros(capture.time).unwrap_or_default();
        let time = time.to_rfc3339_opts(SecondsFormat::AutoSi, true);
        let what = format!(
            "the revisit of {url} at {time} refers to a capture that the archive does not have; import the file that has it"
        );
        let file = self.recorder.store().path().display().to_string();
        Ok(ImportNote { file, offset: None, kind: NoteKind::Revisit, what })
    }
}
