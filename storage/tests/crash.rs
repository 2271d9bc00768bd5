//! A whole store on a disk that fails: whatever happens, every acknowledged capture is there once, none is invented,
//! histories are in order, revisits resolve, cash adds up, and opening again changes nothing.
//!
//! One seed is one story of appends, copies found by digest, syncs, checkpoints, rotations, rewritings and rebuilds, cut short
//! several times by the power failing with a random operation; the disk then keeps what it likes of the unsynced writes.
//! `ARCHIVE_CRASH_SEEDS` says how many seeds are tried, `ARCHIVE_CRASH_SEED` runs one again.

mod support;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use archive_storage::address::url_hash;
use archive_storage::backend::{Disk, Faults, SimulatedDisk};
use archive_storage::segment::{
    CaptureBody, CaptureGroup, Codec, KeepAll, ReplayedCapture, RewriteOptions, SegmentOptions,
};
use archive_storage::{
    Capture, CaptureId, CaptureKind, Checkpointed, Clock, Digest, Location, MimeId, State, Store, StoreError,
    UrlId,
};
use bytes::Bytes;
use chrono::{DateTime, TimeDelta};

use fastrand::Rng;
use support::now;

/// Seeds of one run, usually and if `ARCHIVE_TEST_WHOLE` is set; each has more than [`POWER_FAILURES_MIN`] power failures
/// on average.
const SEEDS: [u64; 2] = [60, 110];
const POWER_FAILURES_MIN: u64 = 6;
/// Lives of a process in one story.
const LIVES: u64 = 5;
const ARCHIVE: &str = "/archive";
/// All the cash there is.
const CASH_TOTAL: i64 = 1 << 40;
/// What a page is given when it is discovered.
const CASH_ENDOWED: i64 = 1 << 20;
/// Counters of the cash of the virtual page, and of all cash.
const VIRTUAL_CASH: &str = "virtual-cash";
const TOTAL: &str = "total";

/// A capture that was handed to the store.
struct Given {
    url: String,
    time: i64,
    kind: CaptureKind,
    payload: Bytes,
    /// Unless the append failed: then its bytes may have reached the disk all the same.
    is_stored: bool,
}

/// What the books say of a capture, crawled or replayed.
struct Booked<'a> {
    url: &'a str,
    time: i64,
    kind: CaptureKind,
    digest: [u8; 16],
    length: u32,
    location: Location,
    original: Option<(String, i64)>,
}

/// The one function by which captures change the state: page by page, cash moves on to the next page.
fn book(state: &mut State, booked: &Booked<'_>) -> Result<(), StoreError> {
    let mut virtual_cash = state.counter(VIRTUAL_CASH);
    if state.counter(TOTAL) == 0 {
        virtual_cash = CASH_TOTAL.cast_unsigned();
        state.set_counter(TOTAL, virtual_cash)?;
    }
    let (id, is_new) = state.intern(booked.url, url_hash(booked.url))?;
    if is_new {
        virtual_cash = virtual_cash.wrapping_sub(CASH_ENDOWED.cast_unsigned());
        state.update_page(id, |page| page.cash = CASH_ENDOWED)?;
    }
    state.set_counter(VIRTUAL_CASH, virtual_cash)?;
    let next = UrlId((id.0 + 1) % state.url_count());
    let given = state.update_page(id, |page| {
        let given = page.cash / 3;
        page.cash -= given;
        given
    })?;
    state.update_page(next, |page| page.cash += given)?;
    let original = match &booked.original {
        Some((url, time)) => {
            let id = state.find(url)?.expect("the original was booked before");
            state.nearest(id, *time)?.filter(|(_, capture)| capture.time == *time).map(|(id, _)| id)
        }
        None => None,
    };
    let capture = Capture {
        url: id,
        time: booked.time,
        location: booked.location,
        digest: booked.digest,
        status: if booked.kind == CaptureKind::Failed { 0 } else { 200 },
        mime: MimeId(0),
        kind: booked.kind,
        length: booked.length,
        flags: 0,
        original,
    };
    state.append_capture(&capture, None)?;
    Ok(())
}

fn book_replayed(state: &mut State, capture: &ReplayedCapture) -> Result<(), StoreError> {
    let kind = capture.kind;
    let booked = Booked {
        url: &capture.url,
        time: capture.time.timestamp_micros(),
        kind,
        digest: capture.payload_digest.map_or([0; 16], |digest| digest.prefix()),
        length: capture.metadata_field("length").and_then(|text| text.parse().ok()).unwrap_or_default(),
        location: capture.main,
        original: capture.original.as_ref().map(|(url, time)| (url.clone(), time.timestamp_micros())),
    };
    book(state, &booked)
}

/// What a run remembers across crashes, as its reader outside would.
struct Story {
    random: Rng,
    disk: SimulatedDisk,
    options: SegmentOptions,
    /// In the order of appending.
    given: Vec<Given>,
    /// How many of them are acknowledged, unless they failed.
    acknowledged: usize,
    count: u64,
    power_failures: u64,
    /// Rewritings that were carried out.
    rewritings: u64,
    /// A capture was stored that the state does not know: no checkpoint may be made any more, so the process ends.
    is_unbooked: bool,
}

impl Story {
    fn new(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let codec = if random.u64(..6) == 0 { Codec::Gzip } else { Codec::Zstd };
        let disk = SimulatedDisk::new(random.u64(..));
        disk.create_dir_all(Path::new(ARCHIVE)).expect("an empty disk takes a folder");
        let options = SegmentOptions {
            codec: Some(codec),
            level: Some(1),
            host_groups: 1 << random.u64(..4),
            builds_beside: false,
            captures_max: 3 + random.u64(..40),
            bytes_max: 2_000 + random.u64(..60_000),
            clock: Clock::of(now),
            ..SegmentOptions::default()
        };
        Self {
            random,
            disk,
            options,
            given: Vec::new(),
            acknowledged: 0,
            count: 0,
            power_failures: 0,
            rewritings: 0,
            is_unbooked: false,
        }
    }

    fn crash(&mut self) {
        self.disk = self.disk.crash();
        self.power_failures += 1;
    }

    fn options(&mut self) -> SegmentOptions {
        SegmentOptions { seed: Some(self.random.u64(..)), ..self.options.clone() }
    }

    /// Opens the archive and brings its state up to its segments.
    fn try_open(&mut self, disk: &SimulatedDisk) -> Result<(Store, u64), StoreError> {
        let options = self.options();
        let mut store = Store::own_on(Arc::new(disk.clone()), Path::new(ARCHIVE), options)?;
        for recovered in store.recovered() {
            assert_eq!(recovered.damage, [], "the power damages nothing that was synced");
        }
        let mut replayed = 0;
        let broken = store.replay(|state, capture| {
            replayed += 1;
            book_replayed(state, &capture)
        })?;
        assert!(broken.is_empty(), "what is left can be read: {broken:?}");
        if replayed > 0 {
            assert_eq!(store.checkpoint()?, Checkpointed::Done);
        }
        Ok((store, replayed))
    }

    /// Opens the archive; the power may fail while it does, again and again. A rebuild is an opening without a state.
    fn open(&mut self) -> Store {
        let mut rebuilds = self.random.u64(..4) == 0;
        loop {
            let fails_at = (self.random.u64(..3) == 0).then(|| {
                let most = if rebuilds { 120 } else { 40 };
                self.disk.operations() + self.random.u64(..most)
            });
            self.disk.fail_power_at(fails_at.unwrap_or(u64::MAX));
            let disk = self.disk.clone();
            let mut outcome = Ok(());
            if rebuilds {
                outcome =
                    State::discard(Arc::new(disk.clone()), Path::new(ARCHIVE)).map_err(StoreError::from);
            }
            match outcome.and_then(|()| self.try_open(&disk)) {
                Ok((store, _)) => {
                    self.disk.fail_power_at(u64::MAX);
                    return store;
                }
                Err(error) => {
                    assert!(fails_at.is_some(), "{error}");
                    self.crash();
                    rebuilds = rebuilds && self.random.u64(..2) == 0;
                }
            }
        }
    }

    /// A page's text, of which a few words change from version to version.
    fn version(&mut self, page: u64) -> Bytes {
        let (mut text, length) = (Rng::with_seed(page), 20 + page * page * 13);
        let changed = self.random.u64(..length);
        let mut words = Vec::new();
        for place in 0..length {
            let word = if place == changed { self.random.u64(..) } else { text.u64(..) };
            words.extend_from_slice(format!("{:x} ", word % 0xf_ffff).as_bytes());
        }
        words.into()
    }

    fn group(&mut self, store: &Store) -> (Given, CaptureGroup, Option<(String, i64)>) {
        self.count += 1;
        let number = self.count;
        let page = self.random.u64(..14);
        let (url, payload) = (format!("http://host{}.org/{page}", page % 5), self.version(page));
        // Not always in the order of time.
        let time = now() + TimeDelta::seconds(number as i64 * 10 - self.random.u64(..25) as i64);
        let time = time + TimeDelta::microseconds(number as i64);
        let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
        let whole = |payload: &Bytes| CaptureBody::Response {
            http: [head, &payload[..]].concat().into(),
            truncated: None,
        };
        let copied = (self.random.u64(..4) == 0 && !self.given.is_empty())
            .then(|| self.random.u64(..self.given.len() as u64) as usize)
            .map(|place| self.given[place].payload.clone())
            .filter(|payload| !payload.is_empty());
        let (mut kind, mut payload) = match self.random.u64(..8) {
            0 => (CaptureKind::Failed, Bytes::new()),
            _ => (CaptureKind::Response, payload),
        };
        let (mut body, mut original) = (whole(&payload), None);
        if kind == CaptureKind::Failed {
            body = CaptureBody::Failed;
        } else if let Some(copied) = copied {
            // The same payload as some capture's, of any page: found by its digest, or stored once more.
            payload = copied;
            body = whole(&payload);
            let state = store.state();
            let found = state.by_digest(&Digest::sha256(&payload).prefix()).ok().flatten();
            let found = found.and_then(|id: CaptureId| state.capture(id).ok());
            if let Some((capture, original_url)) =
                found.and_then(|capture| Some((capture, state.url(capture.url).ok()?)))
            {
                let original_time = DateTime::from_timestamp_micros(capture.time).expect("times are ours");
                original = Some((original_url.clone(), capture.time));
                kind = CaptureKind::Identical;
                body = CaptureBody::Identical { head: Bytes::from_static(head), original_url, original_time };
            }
        }
        let group = CaptureGroup {
            url: url.clone(),
            time,
            address: None,
            request: (!number.is_multiple_of(3))
                .then(|| Bytes::from_static(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")),
            payload_digest: (kind != CaptureKind::Failed).then(|| Digest::sha256(&payload)),
            body,
            protocols: Vec::new(),
            metadata: vec![("length".into(), payload.len().to_string())],
        };
        let given = Given { url, time: time.timestamp_micros(), kind, payload, is_stored: false };
        (given, group, original)
    }

    fn append(&mut self, store: &mut Store) -> Result<(), StoreError> {
        let (mut given, group, original) = self.group(store);
        let encoded = store.encoder()?.encode(group)?;
        let mut outcome = store.append(&encoded);
        if outcome.is_err() && self.random.u64(..2) == 0 {
            outcome = store.append(&encoded);
        }
        given.is_stored = outcome.is_ok();
        self.given.push(given);
        let location = outcome?;
        let given = self.given.last().expect("it was pushed");
        let digest = match given.kind {
            CaptureKind::Failed => [0; 16],
            _ => Digest::sha256(&given.payload).prefix(),
        };
        let booked = Booked {
            url: &given.url,
            time: given.time,
            kind: given.kind,
            digest,
            length: given.payload.len() as u32,
            location,
            original,
        };
        book(store.state_mut(), &booked).inspect_err(|_| self.is_unbooked = true)
    }

    /// One random step.
    fn step(&mut self, store: &mut Store) -> Result<(), StoreError> {
        match self.random.u64(..20) {
            0..14 => self.append(store)?,
            14..17 => {
                store.sync()?;
                self.acknowledged = self.given.len();
            }
            17 => self.rewrite(store)?,
            18 => {
                // The records are durable whatever becomes of the state.
                let before = store.acknowledged();
                let outcome = store.checkpoint();
                if store.acknowledged() > before || outcome.is_ok() {
                    self.acknowledged = self.given.len();
                }
                outcome?;
            }
            _ => self.read_some(store),
        }
        Ok(())
    }

    /// Rewrites some of the closed segments.
    fn rewrite(&mut self, store: &mut Store) -> Result<(), StoreError> {
        let closed = store.closed_segments();
        let chosen: Vec<_> = closed.iter().filter(|_| self.random.u64(..3) > 0).map(|info| info.id).collect();
        if chosen.is_empty() {
            return Ok(());
        }
        let verbatim = self.random.u64(..2) == 0;
        let options = RewriteOptions { level: Some(1), verbatim, ..RewriteOptions::default() };
        let rewriter = store.rewriter(&chosen)?;
        for _ in 0..self.random.u64(..3) {
            self.append(store)?;
        }
        let rewritten = rewriter.carry_out(&options, &mut KeepAll)?;
        if self.random.u64(..8) == 0 {
            // Given up.
            return Ok(());
        }
        if self.random.u64(..2) == 0 {
            // Some checkpoint to come puts it in place.
            store.exchange_next(&rewritten).inspect_err(|_| self.is_unbooked = true)?;
            self.rewritings += 1;
            return Ok(());
        }
        let before = store.acknowledged();
        let outcome = store.put_in_place(&rewritten);
        if store.acknowledged() > before || outcome.is_ok() {
            self.acknowledged = self.given.len();
        }
        // What the state says now is not what is on disk.
        outcome.inspect_err(|_| self.is_unbooked = true)?;
        self.rewritings += 1;
        Ok(())
    }

    fn read_some(&mut self, store: &Store) {
        let count = store.state().totals().captures;
        if count == 0 {
            return;
        }
        let id = CaptureId(self.random.u64(..count) as u32);
        let Ok(capture) = store.state().capture(id) else { return };
        // The disk may refuse to read, but what it reads is right.
        if let Ok(Some(payload)) = store.payload(&capture) {
            assert_eq!(Digest::sha256(&payload).prefix(), capture.digest);
        }
    }

    /// Compares what is there after a crash with what was given, and forgets what was lost rightly.
    fn check(&mut self, store: &Store) {
        let state = store.state();
        let captures: Vec<Capture> =
            state.captures().map(|capture| capture.expect("a healthy disk").1).collect();
        let mut found = captures.iter().peekable();
        let mut missing = None;
        let mut present = Vec::new();
        for (place, given) in std::mem::take(&mut self.given).into_iter().enumerate() {
            let is_this = |capture: &&Capture| {
                capture.time == given.time && state.url(capture.url).is_ok_and(|url| url == given.url)
            };
            let Some(capture) = found.next_if(is_this) else {
                let was_acknowledged = place < self.acknowledged && given.is_stored;
                assert!(!was_acknowledged, "{} {} was acknowledged and is not there", given.url, given.time);
                missing = missing.or(given.is_stored.then_some(place));
                continue;
            };
            assert_eq!(missing, None, "capture {place} is there, one before it is not");
            assert_eq!(capture.kind, given.kind);
            if given.kind != CaptureKind::Failed {
                let payload = store.payload(capture).expect("it can be read");
                assert!(payload == Some(given.payload.clone()), "{} has another payload", given.url);
            }
            present.push(Given { is_stored: true, ..given });
        }
        assert!(found.next().is_none(), "a capture is there that was not given, or not in this order");
        self.given = present;
        self.acknowledged = self.given.len();
        self.check_histories(state);
        let cash: i64 = state.pages(UrlId(0)).map(|page| page.expect("a healthy disk").1.cash).sum();
        let [virtual_cash, total] = [VIRTUAL_CASH, TOTAL].map(|name| state.counter(name).cast_signed());
        assert_eq!(cash + virtual_cash, total, "cash was made or lost");
        assert!(total == CASH_TOTAL || self.given.is_empty());
        state.check(&mut |inconsistency| panic!("{inconsistency}")).expect("a healthy disk");
    }

    fn check_histories(&self, state: &State) {
        let mut histories: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
        for given in &self.given {
            histories.entry(&given.url).or_default().push(given.time);
        }
        assert_eq!(state.url_count() as usize, histories.len());
        for (url, mut times) in histories {
            times.sort_unstable_by_key(|time| std::cmp::Reverse(*time));
            let id = state.find(url).expect("a healthy disk").expect("it was captured");
            let found = state.history(id).expect("a healthy disk");
            let found: Vec<i64> = found.map(|capture| capture.expect("a healthy disk").1.time).collect();
            assert_eq!(found, times, "the history of {url}");
        }
    }

    fn segments(disk: &SimulatedDisk) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = disk.files();
        files.retain(|path, _| path.starts_with("/archive/segments"));
        files
    }

    /// Opening again, and opening a copy three times, finds the same and changes nothing.
    fn check_stability(&mut self, totals: archive_storage::Totals) {
        let files = Self::segments(&self.disk);
        let disk = self.disk.clone();
        let mut disks = vec![disk.clone(), disk];
        disks.extend((0..3).map(|_| self.disk.copy()));
        for disk in disks {
            let (store, replayed) = self.try_open(&disk).expect("open again");
            assert_eq!((replayed, store.recovered().len()), (0, 0), "there was something left to do");
            assert_eq!(store.state().totals(), totals);
            drop(store);
            assert!(Self::segments(&disk) == files, "opening again changed a segment");
        }
    }

    /// One life of the process, from opening to its end.
    fn live(&mut self) {
        let store = self.open();
        self.check(&store);
        let totals = store.state().totals();
        drop(store);
        if self.random.u64(..4) == 0 {
            self.check_stability(totals);
        }
        let disk = self.disk.clone();
        let (mut store, _) = self.try_open(&disk).expect("open again");
        let fails_at = self.disk.operations() + 1 + self.random.u64(..300);
        let faults = match self.random.u64(..7) {
            0 => Faults { failing_write_one_in: 12, short_reads: true, ..Faults::default() },
            1 => Faults { failing_sync_one_in: 20, ..Faults::default() },
            2 => Faults { capacity: Some(self.random.u64(..400_000)), ..Faults::default() },
            3 => Faults { short_reads: true, failing_read_one_in: 30, ..Faults::default() },
            _ => Faults::default(),
        };
        self.disk.set_faults(faults);
        self.disk.fail_power_at(fails_at);
        for _ in 0..200 {
            if self.disk.operations() >= fails_at {
                break;
            }
            // A crawl waits for room and ends at any other failure; some continue a little nevertheless.
            if let Err(error) = self.step(&mut store)
                && (self.is_unbooked || (!error.is_disk_full() && self.random.u64(..2) == 0))
            {
                break;
            }
        }
        drop(store);
        self.is_unbooked = false;
        self.disk.set_faults(Faults::default());
        if self.disk.operations() >= fails_at || self.random.u64(..2) == 0 {
            self.crash();
        } else {
            // The process died, the machine did not: its disk still shows what it may never have kept.
            self.disk.fail_power_at(u64::MAX);
        }
    }
}

/// Runs a story; returns how often the power failed.
fn run(seed: u64) -> u64 {
    let mut story = Story::new(seed);
    for _ in 0..LIVES {
        story.live();
    }
    let store = story.open();
    story.check(&store);
    let totals = store.state().totals();
    store.close().expect("close");
    story.check_stability(totals);
    story.power_failures
}

#[test]
fn acknowledged_captures_survive_every_crash() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    if let Some(seed) = number("ARCHIVE_CRASH_SEED") {
        run(seed);
        return;
    }
    let usual = SEEDS[usize::from(std::env::var_os("ARCHIVE_TEST_WHOLE").is_some())];
    let seeds = number("ARCHIVE_CRASH_SEEDS").unwrap_or(usual);
    let (next, power_failures) = (AtomicU64::new(0), AtomicU64::new(0));
    let run_all = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds {
                return;
            }
            let outcome = catch_unwind(AssertUnwindSafe(|| run(seed)));
            let again = "cargo test -p archive-storage --test crash";
            let count = outcome
                .unwrap_or_else(|_| panic!("seed {seed} fails; again: ARCHIVE_CRASH_SEED={seed} {again}"));
            power_failures.fetch_add(count, Ordering::Relaxed);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(run_all))));
    let power_failures = power_failures.into_inner();
    println!("{power_failures} power failures in {seeds} stories");
    assert!(seeds < usual || power_failures >= seeds * POWER_FAILURES_MIN, "{power_failures}");
}
