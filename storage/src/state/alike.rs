//! Captured URLs that are spelled alike: found by the key that they share, in `keys.find` and among those captured since.

use std::path::PathBuf;
use std::thread;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{FOLDER, State};
use crate::address::lookup_key;
use crate::checkpoint::Result;
use crate::ids::UrlId;
use crate::urls::{ALIKE_MAX, Finder, NameCursor};

/// Finds captured URLs by their keys.
#[derive(Debug)]
pub(super) struct KeyIndex {
    finder: Option<Finder>,
    /// Hashes of the keys of URLs captured since the file was written, in order, with the ids.
    later: Vec<(u64, u32)>,
    /// Number of captured URLs in both.
    captured: u32,
}

impl State {
    /// The captured URLs whose [`lookup_key`] is that of `url`, as they are spelled; 64 at most.
    ///
    /// The first call of a reader hashes the keys of all URLs captured since the archive was last closed.
    ///
    /// # Errors
    /// I/O errors.
    pub fn alike(&self, url: &str) -> Result<Vec<(UrlId, String)>> {
        let key = lookup_key(url);
        let hash = xxh3_64_with_seed(key.as_bytes(), self.identity());
        let index = self.key_index()?;
        let mut ids = index.finder.as_ref().map_or(Ok(Vec::new()), |finder| finder.under(hash))?;
        let first = index.later.partition_point(|(found, _)| *found < hash);
        let later = index.later[first..].iter().take_while(|(found, _)| *found == hash);
        ids.extend(later.map(|(_, id)| *id));
        ids.sort_unstable();
        ids.dedup();
        let mut names = NameCursor::new(&self.urls);
        let mut alike = Vec::new();
        for id in ids.into_iter().take(ALIKE_MAX) {
            if let Some(name) = names.get(id)?
                && lookup_key(name) == key
                && !self.veiled(UrlId(id)).is_some_and(|(_, visit)| visit.is_none())
            {
                alike.push((UrlId(id), name.to_owned()));
            }
        }
        Ok(alike)
    }

    fn key_index(&self) -> Result<&KeyIndex> {
        match self.keys.get() {
            Some(index) => Ok(index),
            None => {
                let finder = Finder::open(self.disk.as_ref(), &self.keys_path(), self.identity())?;
                let index = self.extended(KeyIndex { captured: 0, later: Vec::new(), finder })?;
                Ok(self.keys.get_or_init(|| index))
            }
        }
    }

    /// Takes over the index of a reader of an earlier checkpoint, if it has one, and adds what was captured since.
    pub(super) fn adopt_keys(&mut self, earlier: &mut Self) -> Result<()> {
        if let Some(mut index) = earlier.keys.take() {
            let newest = Finder::open(self.disk.as_ref(), &self.keys_path(), self.identity())?;
            let names = |finder: &Option<Finder>| finder.as_ref().map_or(0, |finder| finder.names);
            if names(&newest) > names(&index.finder) {
                index = KeyIndex { captured: 0, later: Vec::new(), finder: newest };
            }
            self.keys = self.extended(index)?.into();
        }
        Ok(())
    }

    fn extended(&self, mut index: KeyIndex) -> Result<KeyIndex> {
        let from = index.captured.max(index.finder.as_ref().map_or(0, |finder| finder.names));
        index.later.extend(self.keys_from(from)?);
        index.later.sort_unstable();
        index.captured = self.visits.len();
        Ok(index)
    }

    /// Hashes of the keys of all captured URLs from a number on, with their ids, computed on all processors.
    fn keys_from(&self, captured: u32) -> Result<Vec<(u64, u32)>> {
        let ids = self.visits.scan(captured).map(|visit| visit.map(|(_, record)| record.url.0));
        let mut ids = ids.collect::<Result<Vec<u32>>>()?;
        ids.sort_unstable();
        let hashes = |ids: &[u32]| {
            let mut names = NameCursor::new(&self.urls);
            let hash = |id: &u32| {
                let key = lookup_key(names.get(*id)?.unwrap_or_default());
                Ok((xxh3_64_with_seed(key.as_bytes(), self.identity()), *id))
            };
            ids.iter().map(hash).collect::<Result<Vec<_>>>()
        };
        let threads = thread::available_parallelism().map_or(1, usize::from);
        if threads == 1 || ids.len() < PARALLEL_MIN {
            return hashes(&ids);
        }
        let parts = thread::scope(|scope| {
            let parts = ids.chunks(ids.len().div_ceil(threads));
            let workers: Vec<_> = parts.map(|part| scope.spawn(|| hashes(part))).collect();
            let join = |worker: thread::ScopedJoinHandle<'_, _>| {
                worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            workers.into_iter().map(join).collect::<Result<Vec<_>>>()
        });
        Ok(parts?.concat())
    }

    /// Rewrites `keys.find` if it has too few of the captured URLs or belongs to another state.
    pub(super) fn prepare_keys(&self) -> Result<()> {
        let (path, captured) = (self.keys_path(), self.visits.len());
        match Finder::open(self.disk.as_ref(), &path, self.identity()) {
            Ok(None) if captured < PARALLEL_MIN as u32 => Ok(()),
            Ok(Some(finder)) if finder.has_nearly(captured) => Ok(()),
            _ => self.replace_finder(&path, |new| {
                let keys = self.keys_from(0)?;
                let each = |take: &mut dyn FnMut(u64, u32)| {
                    keys.iter().for_each(|(hash, id)| take(*hash, *id));
                    Ok(())
                };
                Finder::write_entries(self.disk.as_ref(), new, self.identity(), captured, ALIKE_MAX, &each)
            }),
        }
    }

    pub(super) fn keys_path(&self) -> PathBuf {
        self.folder.join(FOLDER).join("keys.find")
    }
}

/// Number of captured URLs from which on several processors hash them, and a file is worth writing.
const PARALLEL_MIN: usize = 1 << 9;
