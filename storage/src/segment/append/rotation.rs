//! Rotation: when a segment is closed, and which dictionary the next one gets.

use std::sync::Arc;
use std::thread;

use super::super::codec::Codec;
use super::super::dictionary::Dictionary;
use super::super::encode::Generation;
use super::super::error::{IoContext, SegmentError};
use super::super::host_group::HOST_GROUPS_MAX;
use super::super::versions::DictionaryPlan;
use super::super::writer::{Building, GroupWriter};
use super::Segments;

/// The next dictionary is built ahead once less than one part in this many of a segment's limits is left.
const NEARLY_FULL: u64 = 16;

/// Why a segment was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RotationReason {
    /// It has reached its maximum size.
    Full,
    /// It has reached its maximum age.
    Old,
    /// A dictionary of the current versions saves more than it costs.
    DictionaryPays,
}

impl Segments {
    /// Closes segments that are full or old, or that have lost more for lack of a newer dictionary than it costs. The
    /// next segments then get dictionaries built from the newest versions of their hosts' pages. Returns why the last
    /// of them was closed.
    ///
    /// Call it between appends.
    ///
    /// # Errors
    /// As [`Segments::rotate`].
    pub fn rotate_due(&mut self) -> Result<Option<RotationReason>, SegmentError> {
        let mut last = None;
        for place in 0..self.writers.len() {
            let Some(reason) = self.due(place) else {
                self.prepare(place)?;
                continue;
            };
            if self.codec != Codec::Zstd {
                self.finish(place)?;
                last = Some(reason);
                continue;
            }
            if self.keeps_dictionary(place) {
                self.finish(place)?;
                if let Some(writer) = self.writers.get_mut(place) {
                    writer.versions.go_on();
                }
                last = Some(reason);
                continue;
            }
            let Some(writer) = self.writers.get_mut(place) else { continue };
            let building = match writer.building.take() {
                Some(building) => building,
                None => self.build(place)?,
            };
            let may_wait = self.options.builds_beside && reason == RotationReason::DictionaryPays;
            if may_wait && !building.is_finished() {
                self.writers.get_mut(place).map(|writer| writer.building.insert(building));
                continue;
            }
            let failed = || SegmentError::Dictionary("the thread that builds it has died".into());
            let dictionaries = building.join().map_err(|_| failed())??;
            self.renew(place, dictionaries)?;
            last = Some(reason);
        }
        Ok(last)
    }

    /// Whether a writer's next segment gets the same dictionary: a trained one that compresses as well as when it was
    /// new.
    fn keeps_dictionary(&self, place: usize) -> bool {
        self.writers.get(place).is_some_and(|writer| {
            let dictionary = writer.generation.dictionary.as_ref();
            dictionary.is_some_and(|dictionary| dictionary.is_trained()) && !writer.versions.dictionary_pays()
        })
    }

    /// Starts building the next dictionary of a writer whose segment will be full soon, so that closing need not wait
    /// for it.
    fn prepare(&mut self, place: usize) -> Result<(), SegmentError> {
        if self.codec != Codec::Zstd || !self.options.builds_beside {
            return Ok(());
        }
        let Some(writer) = self.writers.get(place).filter(|writer| writer.building.is_none()) else {
            return Ok(());
        };
        let Some(info) = writer.active.as_ref().map(|active| &active.info) else { return Ok(()) };
        let nearly = |limit: u64| limit - limit / NEARLY_FULL;
        let is_near = info.bytes >= nearly(self.options.bytes_max)
            || info.captures >= nearly(self.options.captures_max);
        if is_near && !self.keeps_dictionary(place) {
            let building = self.build(place)?;
            self.writers.get_mut(place).map(|writer| writer.building.insert(building));
        }
        Ok(())
    }

    /// Returns why a writer's segment should be closed, if it should.
    fn due(&self, place: usize) -> Option<RotationReason> {
        let writer = self.writers.get(place)?;
        let active = writer.active.as_ref().filter(|active| active.info.captures > 0)?;
        if active.info.bytes >= self.options.bytes_max || active.info.captures >= self.options.captures_max {
            return Some(RotationReason::Full);
        }
        let age = (self.options.clock.now() - active.opened).to_std().unwrap_or_default();
        if active.dictionary.is_none() && age >= self.options.age_max {
            return Some(RotationReason::Old);
        }
        (self.codec == Codec::Zstd && writer.versions.dictionary_pays())
            .then_some(RotationReason::DictionaryPays)
    }

    /// Starts building the next dictionary of a host group, or those of its halves if it has outgrown one dictionary.
    fn build(&self, place: usize) -> Result<Building, SegmentError> {
        let Some(writer) = self.writers.get(place) else { return Err(SegmentError::Missing(self.next_id())) };
        let halves = writer.hosts.split();
        let splits = self.writers.len() < HOST_GROUPS_MAX && writer.versions.is_worth_splitting(halves);
        let groups = if splits { halves.to_vec() } else { vec![writer.hosts] };
        let plans: Vec<_> = groups.iter().map(|hosts| writer.versions.plan(*hosts, self.reader())).collect();
        thread::Builder::new()
            .name("dictionary".into())
            .spawn(move || plans.iter().map(DictionaryPlan::build).collect())
            .context("build a dictionary for", &self.folder)
    }

    /// Closes a writer's segment and sets the dictionary of the next one. Two dictionaries split the group.
    fn renew(&mut self, place: usize, dictionaries: Vec<Option<Dictionary>>) -> Result<(), SegmentError> {
        self.finish(place)?;
        let mut dictionaries = dictionaries.into_iter();
        let (first, second) = (dictionaries.next().flatten(), dictionaries.next());
        let generations = [first, second.clone().flatten()].map(|dictionary| self.generation(dictionary));
        let [generation, other] = generations;
        let Some(writer) = self.writers.get_mut(place) else { return Ok(()) };
        writer.building = None;
        if second.is_some() {
            let [hosts, other_hosts] = writer.hosts.split();
            let mut versions = writer.versions.split_off(other_hosts);
            versions.rotate(other.dictionary.as_deref());
            writer.hosts = hosts;
            self.writers.push(GroupWriter {
                hosts: other_hosts,
                active: None,
                versions,
                generation: other,
                building: None,
            });
        }
        if let Some(writer) = self.writers.get_mut(place) {
            writer.versions.rotate(generation.dictionary.as_deref());
            writer.generation = generation;
        }
        self.route();
        Ok(())
    }

    fn generation(&self, dictionary: Option<Dictionary>) -> Arc<Generation> {
        let level = match &dictionary {
            Some(dictionary) if dictionary.is_trained() => self.options.trained_level,
            Some(_) => self.options.dictionary_level,
            None => self.options.plain_level(self.codec),
        };
        self.encoder.generation(level, dictionary.map(Arc::new))
    }

    /// Closes all segments; the next ones get this dictionary. gzip has no dictionaries and ignores it.
    ///
    /// # Errors
    /// When the disk refuses. Everything appended is then as safe as before, and the segments can be closed later. An
    /// exception is a failed rename to the final name, which ends writing like a failed sync.
    pub fn rotate(&mut self, dictionary: Option<Dictionary>) -> Result<(), SegmentError> {
        let dictionary = dictionary.filter(|_| self.codec == Codec::Zstd);
        for place in 0..self.writers.len() {
            self.finish(place)?;
            let generation = self.generation(dictionary.clone());
            if let Some(writer) = self.writers.get_mut(place) {
                writer.versions.rotate(dictionary.as_ref());
                (writer.generation, writer.building) = (generation, None);
            }
        }
        self.route();
        Ok(())
    }
}
