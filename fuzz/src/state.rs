//! A small state on a simulated disk, whose files the targets replace, and a reader of everything in a state.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use archive_storage::address::url_hash;
use archive_storage::backend::{Faults, SimulatedDisk, replace_file};
use archive_storage::{
    Capture, CaptureKind, LinkTarget, Location, SegmentId, State, StateError, StateMode, StateOptions, UrlId,
    Watermark,
};
use redb::{ReadableTable, StorageBackend, Table, TableDefinition, WriteTransaction};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Folder of the archive.
const FOLDER: &str = "/a";

/// Number of URLs in the state: enough for full blocks of every log.
const URLS: u32 = 150;

/// Names of the tables, by the table numbers in their seals.
const TABLES: [&str; 5] = ["pages", "visits", "captures", "hosts", "sites"];

/// Block size of a table in bytes.
const BLOCK_BYTES: usize = 4096;

/// Capacity of the disk in bytes, so that no file grows without limit.
const CAPACITY: u64 = 64 << 20;

/// Identity that the files of the state are sealed with.
static IDENTITY: LazyLock<u64> =
    LazyLock::new(|| open(&DISK.copy(), StateMode::Read).expect("a healthy disk").identity());

/// A disk with the files of a state.
pub static DISK: LazyLock<SimulatedDisk> = LazyLock::new(|| {
    let disk = SimulatedDisk::new(1);
    let mut state = open(&disk, StateMode::Own).expect("an empty disk takes a state");
    fill(&mut state).expect("a healthy disk");
    state.checkpoint(Watermark::default()).expect("a healthy disk");
    disk.set_faults(Faults { capacity: Some(CAPACITY), ..Faults::default() });
    disk
});

/// Returns the files of the state, ordered by name.
#[must_use]
pub fn files() -> Vec<PathBuf> {
    DISK.files().into_keys().filter(|path| path.starts_with(Path::new(FOLDER).join("state"))).collect()
}

fn open(disk: &SimulatedDisk, mode: StateMode) -> Result<State, StateError> {
    let options = StateOptions { cache_bytes: Some(1 << 20), ..StateOptions::default() };
    State::open_with(Arc::new(disk.clone()), Path::new(FOLDER), mode, options)
}

fn fill(state: &mut State) -> Result<(), StateError> {
    let (site, _) = state.intern_site("a.test")?;
    let (host, _) = state.intern_host("www.a.test", site)?;
    let mime = state.intern_mime("text/html")?;
    let targets: Vec<_> = (0..URLS).map(|url| LinkTarget { target: UrlId(url), kind: 1 }).collect();
    for number in 0..URLS {
        let url = format!("http://www.a.test/{number}");
        let (id, _) = state.intern(&url, url_hash(&url))?;
        state.update_page(id, |page| (page.host, page.flags.0) = (host, 7))?;
    }
    for number in 0..2 * URLS {
        let url = UrlId(number % URLS);
        let capture = Capture {
            url,
            // Some captures are added late.
            time: i64::from(number % 7 * 1000 + number),
            location: Location { segment: SegmentId(1), offset: u64::from(number) * 100, length: 100 },
            digest: [number as u8; 16],
            status: 200,
            mime,
            kind: CaptureKind::Response,
            length: 100,
            flags: 0,
            original: None,
        };
        state.append_capture(&capture, None)?;
        let title = state.append_title(&format!("{number} {}", "title ".repeat(20)))?;
        state.update_visit(url, |visit| visit.title = Some(title))?;
        state.append_links(url, targets.split_at(60 + (number % 7) as usize).1)?;
    }
    state.set_setting("scope", Some(b"[]"))
}

/// Changes a file of the state and keeps its checksums valid: a table from a byte on, or all blocks of a log. Other
/// files get `content` as their whole content.
///
/// # Panics
/// If the disk fails.
pub fn change(disk: &SimulatedDisk, path: &Path, at: usize, content: &[u8]) {
    let put = |path: &Path, bytes: &[u8]| replace_file(disk, path, bytes).expect("a healthy disk");
    let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let mut files = disk.files();
    let mut bytes = files.remove(path).unwrap_or_default();
    if let Some(table) = TABLES.iter().position(|table| *table == name) {
        bytes.iter_mut().skip(at).zip(content).for_each(|(byte, new)| *byte = *new);
        for (number, block) in (0_u64..).zip(bytes.chunks_exact_mut(BLOCK_BYTES)) {
            let (payload, sum) = block.split_at_mut(BLOCK_BYTES - 8);
            let seed = *IDENTITY ^ ((table as u64) << 32) ^ number;
            sum.copy_from_slice(&xxh3_64_with_seed(payload, seed).to_le_bytes());
        }
        put(path, &bytes);
    } else if path.extension().is_some_and(|extension| extension == "zst") {
        let ends = path.with_extension("ends");
        let blocks = files.remove(&ends).unwrap_or_default().len() / 8;
        let frame = zstd::bulk::compress(content, 1).expect("memory");
        let frame_ends = (1..=blocks).flat_map(|block| ((block * frame.len()) as u64).to_le_bytes());
        put(&ends, &frame_ends.collect::<Vec<_>>());
        put(path, &frame.repeat(blocks));
    } else {
        put(path, content);
    }
}

/// Opens a state, reads everything from it, and writes to it as its owner. Any content must be answered or refused.
pub fn use_state(disk: &SimulatedDisk, mode: StateMode) {
    let Ok(mut state) = open(disk, mode) else { return };
    let _ = state.check(&mut |_| ());
    for number in 0..state.url_count().min(2 * URLS) {
        let _ = ask_of(&state, UrlId(number));
    }
    let _ = state.all_links().read_next(&mut archive_storage::LinkList::default());
    let _ = state.newest_links(|_, _| Ok::<_, archive_storage::StateError>(()));
    let _ = state.hosts().try_for_each(|host| host.map(drop));
    let _ = state.sites().try_for_each(|site| site.map(drop));
    let _ = archive_books::stored_graph::PageGraph::read(&state);
    let _ = archive_books::stored_graph::site_graph(&state);
    if mode == StateMode::Own {
        let _ = write(&mut state);
    }
}

fn ask_of(state: &State, url: UrlId) -> Result<(), StateError> {
    let name = state.url(url)?;
    let _ = state.find(&name)?;
    for capture in state.history(url)? {
        let _ = state.mime(capture?.1.mime);
    }
    let _ = state.nearest(url, 1500)?;
    if let Some(title) = state.visit(url)?.and_then(|visit| visit.title) {
        let _ = state.title(title);
    }
    let host = state.page(url)?.host;
    let _ = state.host_name(host).and_then(|_| state.site(state.host(host)?.site));
    state.links(url).map(drop)
}

fn write(state: &mut State) -> Result<(), StateError> {
    let url = "http://www.a.test/new";
    let (id, _) = state.intern(url, url_hash(url))?;
    state.append_title("new")?;
    state.append_links(UrlId(0), &[LinkTarget { target: id, kind: 1 }])?;
    state.checkpoint(Watermark::default()).map(drop)
}

/// Returns the disk with a catalogue that contains `rows`, encoded as table, length of the name, length of the value,
/// name, value. A name of one byte selects one of the existing rows. `None` if the rows make no catalogue.
#[must_use]
pub fn change_rows(mut rows: &[u8]) -> Option<SimulatedDisk> {
    let disk = DISK.copy();
    let path = Path::new(FOLDER).join("state/catalogue.redb");
    let file = Bytes(Arc::new(Mutex::new(disk.files().remove(&path)?)));
    let database = redb::Builder::new().create_with_backend(file.clone()).ok()?;
    let transaction = database.begin_write().ok()?;
    while let Some(([table, name, value], rest)) = rows.split_first_chunk() {
        let (name, rest) = rest.split_at_checked(usize::from(*name))?;
        let (value, rest) = rest.split_at_checked(usize::from(*value))?;
        put_row(&transaction, *table, name, value)?;
        rows = rest;
    }
    transaction.commit().ok()?;
    drop(database);
    let bytes = file.bytes().clone();
    replace_file(&disk, &path, &bytes).ok()?;
    Some(disk)
}

fn put_row(transaction: &WriteTransaction, table: u8, name: &[u8], value: &[u8]) -> Option<()> {
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
    match table % 5 {
        0 => {
            let mut numbers = transaction.open_table(TableDefinition::<&str, u64>::new("numbers")).ok()?;
            let name = known_or_new(&numbers, name)?;
            numbers.insert(name.as_str(), number(value)).ok()?;
        }
        1 => {
            let mut mimes = transaction.open_table(TableDefinition::<u16, &str>::new("mimes")).ok()?;
            mimes.insert(number(name) as u16, String::from_utf8_lossy(value).as_ref()).ok()?;
        }
        2 => {
            let mut segments = transaction.open_table(TableDefinition::<u32, &[u8]>::new("segments")).ok()?;
            segments.insert(number(name) as u32, value).ok()?;
        }
        table => {
            let name_of_table = if table == 3 { "blocks" } else { "settings" };
            let rows = TableDefinition::<&str, &[u8]>::new(name_of_table);
            let mut rows = transaction.open_table(rows).ok()?;
            let name = known_or_new(&rows, name)?;
            rows.insert(name.as_str(), value).ok()?;
        }
    }
    Some(())
}

fn known_or_new<V: redb::Value + 'static>(table: &Table<'_, &str, V>, name: &[u8]) -> Option<String> {
    if let &[place] = name {
        let known: Vec<String> =
            table.iter().ok()?.flatten().map(|(name, _)| name.value().to_owned()).collect();
        return known.get(usize::from(place) % known.len().max(1)).cloned();
    }
    Some(String::from_utf8_lossy(name).into_owned())
}

/// A redb file in memory; a clone gives access to its bytes.
#[derive(Clone, Debug)]
struct Bytes(Arc<Mutex<Vec<u8>>>);

impl Bytes {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StorageBackend for Bytes {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let (bytes, start) = (self.bytes(), offset as usize);
        out.copy_from_slice(bytes.get(start..start + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.bytes().resize(length as usize, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let (mut bytes, start) = (self.bytes(), offset as usize);
        bytes.get_mut(start..start + data.len()).ok_or(io::ErrorKind::UnexpectedEof)?.copy_from_slice(data);
        Ok(())
    }
}
