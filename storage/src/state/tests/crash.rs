//! Power failures at every operation, failing reads, writes and syncs, full disks: after each of them the state is a
//! checkpoint, the last acknowledged one or the one that was being made, and the work goes on.
//!
//! Every run follows from a number. A failing one says how to run it alone; `ARCHIVE_CRASH_RUNS=10` makes ten times as
//! many.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::model::{Model, Step, open};
use crate::StateError;
use crate::backend::{Disk, Faults, OpenMode, SimulatedDisk};
use crate::state::{Checkpointed, Mode, State};

const SEED: &str = "ARCHIVE_CRASH_SEED";
const RUNS: &str = "ARCHIVE_CRASH_RUNS";
const FOLDER: &str = "/archive";

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % bound
    }

    fn number(&mut self) -> u16 {
        self.below(1 << 16) as u16
    }

    fn step(&mut self) -> Step {
        match self.below(100) {
            0..40 => Step::Intern(self.below(2000) as u16),
            40..65 => Step::Cash(self.number(), self.below(u64::MAX).cast_signed()),
            65..88 => Step::Capture {
                url: self.number(),
                time: self.below(100).cast_signed(),
                digest: 1 + self.below(19) as u8,
                full: self.below(2) == 0,
            },
            88..97 => Step::Links(self.number(), (0..self.below(30)).map(|_| self.number()).collect()),
            _ => Step::Checkpoint,
        }
    }
}

/// Runs a test for many seeds, or for the one in the environment.
fn for_seeds(test: &str, seeds: std::ops::Range<u64>, run: impl Fn(u64) + std::panic::RefUnwindSafe) {
    let number = |name: &str| std::env::var(name).ok().map(|number| number.parse::<u64>().unwrap());
    let seeds = seeds.start..seeds.end * number(RUNS).unwrap_or(1);
    for seed in number(SEED).map_or(seeds, |seed| seed..seed + 1) {
        if std::panic::catch_unwind(|| run(seed)).is_err() {
            panic!(
                "seed {seed} failed; to run it alone: {SEED}={seed} cargo test -p archive-storage --lib {test}"
            );
        }
    }
}

/// A state on a disk, the models of all checkpoints that may be on it, and the model of what is in memory.
struct Run {
    disk: SimulatedDisk,
    state: Option<State>,
    model: Model,
    /// Checkpoints begun, by their watermarks' captures.
    begun: BTreeMap<u64, Model>,
    /// The watermarks' captures of the last acknowledged one.
    acknowledged: u64,
}

impl Run {
    fn new(disk: SimulatedDisk) -> Self {
        let begun = BTreeMap::from([(0, Model::default())]);
        Self { disk, state: None, model: Model::default(), begun, acknowledged: 0 }
    }

    fn disk(&self) -> Arc<dyn Disk> {
        Arc::new(self.disk.clone())
    }

    /// Opens the state if it is not open; it must be one of the checkpoints begun, and not older than acknowledged.
    fn reopen(&mut self) -> Result<(), StateError> {
        if self.state.is_none() {
            let state = open(&self.disk(), Path::new(FOLDER), Mode::Own)?;
            let found = state.watermarks().captures;
            assert!(found >= self.acknowledged, "checkpoint {found} instead of {}", self.acknowledged);
            self.model = self.begun.get(&found).expect("a checkpoint that was begun").clone();
            self.begun = BTreeMap::from([(found, self.model.clone())]);
            self.acknowledged = found;
            self.state = Some(state);
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), StateError> {
        self.reopen()?;
        let Some(state) = self.state.as_mut() else { return Ok(()) };
        if matches!(step, Step::Checkpoint) {
            let steps = self.model.steps + 1;
            self.model.steps = steps;
            self.begun.insert(steps, self.model.clone());
            assert_eq!(state.checkpoint(super::watermarks(steps))?, Checkpointed::Done);
            self.acknowledged = steps;
        } else {
            self.model.apply(state, step)?;
        }
        Ok(())
    }

    /// Goes on after the power came back.
    fn crash(&mut self) {
        self.state = None;
        self.disk = self.disk.crash();
    }

    /// What is in memory is right; what is on the disk is a checkpoint, for a reader, for an owner, and once more.
    fn check(&mut self) {
        if let Some(state) = self.state.take() {
            self.model.assert_is(&state);
        }
        if let Ok(reader) = open(&self.disk(), Path::new(FOLDER), Mode::Read) {
            self.begun[&reader.watermarks().captures].assert_is(&reader);
        }
        self.reopen().unwrap();
        let before = self.disk.files();
        for _ in 0..2 {
            self.model.assert_is(self.state.as_ref().unwrap());
            self.state = None;
            self.reopen().unwrap();
        }
        for (path, bytes) in self.disk.files() {
            assert!(before[&path] == bytes, "opening again changed {}", path.display());
        }
    }
}

#[test]
fn the_power_may_fail_at_every_operation() {
    // The same work each time, so that every operation of three checkpoints has its turn.
    let work = |run: &mut Run, steps: u64| -> Result<(), StateError> {
        let mut random = Random(steps);
        for step in 0..steps {
            let step = if step % 40 == 39 { Step::Checkpoint } else { random.step() };
            run.step(&step)?;
        }
        Ok(())
    };
    let mut whole = Run::new(SimulatedDisk::new(0));
    work(&mut whole, 120).unwrap();
    let operations = whole.disk.operations();
    assert!(operations > 100, "{operations} operations");
    for_seeds("the_power_may_fail_at_every_operation", 0..operations, |seed| {
        let operation = seed % operations;
        let mut run = Run::new(SimulatedDisk::new(seed));
        run.disk.fail_power_at(operation);
        assert!(work(&mut run, 120).is_err());
        run.crash();
        run.check();
        work(&mut run, 50).unwrap();
        run.check();
    });
}

#[test]
fn power_fails_again_and_again() {
    for_seeds("power_fails_again_and_again", 0..300, |seed| {
        let mut random = Random(seed);
        let mut run = Run::new(SimulatedDisk::new(seed));
        for _ in 0..4 {
            run.disk.fail_power_at(run.disk.operations() + random.below(120));
            for _ in 0..random.below(400) {
                if run.step(&random.step()).is_err() {
                    break;
                }
            }
            run.crash();
            if random.below(3) == 0 {
                // Once more while it recovers.
                run.disk.fail_power_at(run.disk.operations() + random.below(12));
                run.reopen().ok();
                run.crash();
            }
        }
        run.check();
    });
}

#[test]
fn failing_operations_lose_nothing() {
    for_seeds("failing_operations_lose_nothing", 0..300, |seed| {
        let mut random = Random(seed);
        let mut run = Run::new(SimulatedDisk::new(seed));
        run.reopen().unwrap();
        let one_in =
            |random: &mut Random| if random.below(2) == 0 { 0 } else { 20 + random.below(200) as u32 };
        run.disk.set_faults(Faults {
            capacity: None,
            failing_write_one_in: one_in(&mut random),
            failing_sync_one_in: one_in(&mut random),
            failing_read_one_in: one_in(&mut random),
            short_reads: random.below(2) == 0,
        });
        for _ in 0..400 {
            if run.step(&random.step()).is_err() {
                // Memory is in doubt after some failures, so it is given up after all.
                run.state = None;
                if random.below(3) == 0 {
                    run.crash();
                }
            }
        }
        run.disk.set_faults(Faults { short_reads: true, ..Faults::default() });
        run.state = None;
        run.check();
    });
}

#[test]
fn a_full_disk_defers_the_checkpoint_and_nothing_else() {
    for_seeds("a_full_disk_defers_the_checkpoint_and_nothing_else", 0..100, |seed| {
        let mut random = Random(seed);
        let mut run = Run::new(SimulatedDisk::new(seed));
        for _ in 0..200 {
            run.step(&random.step()).unwrap();
        }
        run.step(&Step::Checkpoint).unwrap();
        let used: u64 = run.disk.files().values().map(|bytes| bytes.len() as u64).sum();
        run.disk.set_faults(Faults { capacity: Some(used + random.below(60_000)), ..Faults::default() });
        let mut refused = 0;
        while refused < 3 {
            let step = random.step();
            match run.step(&step) {
                Ok(()) => {}
                Err(error) if error.is_disk_full() && matches!(step, Step::Checkpoint) => refused += 1,
                Err(error) => panic!("{step:?}: {error}"),
            }
        }
        run.model.assert_is(run.state.as_ref().unwrap());
        run.disk.set_faults(Faults::default());
        run.step(&Step::Checkpoint).unwrap();
        run.crash();
        run.check();
    });
}

#[test]
fn one_copy_may_be_restored_three_times() {
    let mut run = Run::new(SimulatedDisk::new(5));
    let mut random = Random(5);
    for _ in 0..300 {
        run.step(&random.step()).unwrap();
    }
    run.step(&Step::Checkpoint).unwrap();
    run.state = None;
    let copy = run.disk.copy();
    for restored in 0..3 {
        let mut again = Run::new(copy.copy());
        again.begun.clone_from(&run.begun);
        again.check();
        let mut random = Random(restored);
        for _ in 0..200 {
            again.step(&random.step()).unwrap();
        }
        again.check();
    }
}

#[test]
fn a_flipped_bit_is_found() {
    let mut run = Run::new(SimulatedDisk::new(9));
    let mut random = Random(9);
    for _ in 0..800 {
        run.step(&random.step()).unwrap();
    }
    run.step(&Step::Checkpoint).unwrap();
    run.state = None;
    for file in ["pages.table", "visits.table", "captures.table", "urls.zst"] {
        let path = Path::new(FOLDER).join("state").join(file);
        let length = run.disk.files()[&path].len() as u64;
        for _ in 0..20 {
            let disk = run.disk.copy();
            let offset = random.below(length) as usize;
            assert!(disk.flip(&path, offset, 1 << random.below(8)));
            let disk: Arc<dyn Disk> = Arc::new(disk);
            let scanned = open(&disk, Path::new(FOLDER), Mode::Read).and_then(|state| {
                state.pages(crate::UrlId(0)).try_for_each(|page| page.map(drop))?;
                state.visits().try_for_each(|visit| visit.map(drop))?;
                state.captures().try_for_each(|capture| capture.map(drop))?;
                state.scan_urls(0..u32::MAX, |_, _| Ok(()))
            });
            assert!(matches!(scanned, Err(StateError::Corrupted { .. })), "{file} at {offset}: {scanned:?}");
        }
    }
}

/// Reads everything that can be read.
fn read_all(disk: &Arc<dyn Disk>, mode: Mode) -> Result<(), String> {
    let state = open(disk, Path::new(FOLDER), mode).map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    let checked = state.check(&mut |damage| found.push(damage.to_string()));
    checked.map_err(|error| error.to_string())?;
    if found.is_empty() { Ok(()) } else { Err(found.join("; ")) }
}

#[test]
fn damaged_files_are_reported_and_never_trusted() {
    let mut run = Run::new(SimulatedDisk::new(11));
    let mut random = Random(11);
    for _ in 0..800 {
        run.step(&random.step()).unwrap();
    }
    run.step(&Step::Checkpoint).unwrap();
    run.state = None;
    let files: Vec<_> = run
        .disk
        .files()
        .into_iter()
        .filter(|(path, bytes)| !bytes.is_empty() && path.starts_with(Path::new(FOLDER).join("state")))
        .collect();
    let (disk, model) = (run.disk.clone(), &run.model);
    for_seeds("damaged_files_are_reported_and_never_trusted", 0..400, |seed| {
        let mut random = Random(seed);
        let (path, bytes) = &files[random.below(files.len() as u64) as usize];
        let disk = disk.copy();
        let offset = random.below(bytes.len() as u64);
        let file = disk.open(path, OpenMode::Write).unwrap();
        match random.below(3) {
            0 => file.set_len(offset).unwrap(),
            1 => file
                .write_at(&vec![random.below(256) as u8; 1 + random.below(5000) as usize], offset)
                .unwrap(),
            _ => assert!(disk.flip(path, offset as usize, 1 << random.below(8))),
        }
        drop(file);
        let disk: Arc<dyn Disk> = Arc::new(disk);
        for mode in [Mode::Read, Mode::Own] {
            // Damage in bytes that mean nothing goes unnoticed, and then everything is as it was.
            if read_all(&disk, mode).is_ok() {
                model.assert_is(&open(&disk, Path::new(FOLDER), mode).unwrap());
            }
        }
    });
}
