//! How a segment's file begins and ends.

use std::path::Path;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use sha2::Digest as _;

use super::super::encode::{Encoder, Generation};
use super::super::error::{IoContext, SegmentError};
use super::super::ledger::SegmentInfo;
use super::super::name::SegmentName;
use super::super::order::FIELD_CAPTURES_BEFORE;
use super::super::recover;
use super::super::writer::Active;
use super::Segments;
use crate::backend::{DiskFile, OpenMode};
use crate::digest::Digest;
use crate::warc::HeadWriter;

impl Segments {
    /// Creates a segment; leaves no trace of it on failure.
    pub(super) fn create(&mut self, place: usize) -> Result<Active, SegmentError> {
        // The existence of a segment implies that everything before it is durable.
        self.sync()?;
        let generation = self.writers.get(place).map(|writer| writer.generation.clone());
        let generation = generation.ok_or(SegmentError::Missing(self.next_id()))?;
        let opened = self.options.clock.now();
        let id = self.next_id();
        let name = SegmentName::new(&self.options.prefix, &self.options.host, id, self.codec, opened);
        let path = self.folder.join(name.open());
        let file = self.disk.open(&path, OpenMode::Create).context("create", &path)?;
        let outcome = self.start(name, &path, file, opened, &generation);
        if outcome.is_err() {
            // If this fails too, the file has no groups, and the next opening removes it.
            let _ = self.disk.remove(&path);
        }
        outcome
    }

    fn start(
        &self,
        name: SegmentName,
        path: &Path,
        file: Arc<dyn DiskFile>,
        opened: DateTime<Utc>,
        generation: &Generation,
    ) -> Result<Active, SegmentError> {
        file.set_len(0).context("write", path)?;
        let dictionary = generation.dictionary.clone();
        let mut active = Active::new(name, path, file, opened, dictionary.clone(), self.captures);
        if let Some(dictionary) = dictionary {
            active.write(&dictionary.first_frame())?;
        }
        let (head, fields) = warcinfo(&self.encoder, &active.info, opened, &self.options.info);
        active.write(&self.encoder.single(generation, &head, fields.as_bytes())?)?;
        active.info.records += 1;
        self.durability.sync(active.file.as_ref(), &active.path)?;
        self.disk.sync_dir(&self.folder).context("sync", &self.folder)?;
        Ok(active)
    }

    /// Closes a writer's segment, if it has one.
    pub(super) fn finish(&mut self, place: usize) -> Result<(), SegmentError> {
        self.durability.check()?;
        let Some(active) = self.writers.get_mut(place).and_then(|writer| writer.active.as_mut()) else {
            return Ok(());
        };
        active.repair(&self.durability)?;
        // A closed segment must not hold captures that follow some that may still be lost elsewhere.
        self.sync()?;
        let Some(active) = self.writers.get_mut(place).and_then(|writer| writer.active.as_mut()) else {
            return Ok(());
        };
        // If closing fails below, more groups may follow, so the tail is written but not counted.
        let tail = active
            .dictionary
            .as_deref()
            .map(|dictionary| dictionary.last_frames(self.guard))
            .transpose()?
            .unwrap_or_default();
        let mut info = active.info.clone();
        let mut hasher = active.hasher.clone();
        // An earlier attempt may have left a longer tail.
        active.file.set_len(info.bytes).context("cut", &active.path)?;
        active.file.write_at(&tail, info.bytes).context("write", &active.path)?;
        hasher.update(&tail);
        info.bytes += tail.len() as u64;
        info.is_open = false;
        info.guard = info.dictionary.map(|_| self.guard);
        info.sha256 = Some(Digest::from_sha256(hasher.finalize().into()));
        self.durability.sync(active.file.as_ref(), &active.path)?;
        let others = self.closed.iter().chain(&self.missing);
        recover::describe_closed(self.disk.as_ref(), &self.folder, &mut info, &active.index, others)?;
        if let Err(error) = recover::rename_closed(self.disk.as_ref(), &self.folder, &active.name) {
            self.durability.poison();
            return Err(error);
        }
        self.reader.forget(info.id);
        self.closed.insert(info.id, info);
        if let Some(writer) = self.writers.get_mut(place) {
            writer.active = None;
        }
        Ok(())
    }
}

/// Returns head and content of the record that describes a segment.
pub(in super::super) fn warcinfo(
    encoder: &Encoder,
    segment: &SegmentInfo,
    opened: DateTime<Utc>,
    info: &[(String, String)],
) -> (String, String) {
    let mut fields = String::new();
    let mut line = |name: &str, value: &str| {
        fields.extend([name, ": ", &value.replace(['\r', '\n'], " "), "\r\n"]);
    };
    for (name, value) in info {
        line(name, value);
    }
    line("format", "WARC File Format 1.1");
    line("conformsTo", "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/");
    line(FIELD_CAPTURES_BEFORE, &segment.captures_before.to_string());
    if let Some(digest) = segment.dictionary {
        line("dictionary", &digest.to_string());
    }
    let mut head = HeadWriter::new("warcinfo", &encoder.ids().next(), opened);
    head.field("WARC-Filename", &segment.name);
    head.field("Content-Type", "application/warc-fields");
    head.field("WARC-Block-Digest", Digest::of(encoder.algorithm(), fields.as_bytes()));
    (head.finish(fields.len() as u64), fields)
}
