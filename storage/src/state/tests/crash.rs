//! Power failures at every operation, failing reads, writes and syncs, full disks: after each of them the state equals
//! a checkpoint, either the last acknowledged one or the one in progress, and work continues.
//!
//! Every run is determined by its seed. A failing run prints how to repeat it alone; `ARCHIVE_CRASH_RUNS=10` makes ten
//! times as many runs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use fastrand::Rng;

use super::model::{StateAction, StateModel, open};
use crate::StateError;
use crate::backend::{Disk, Faults, OpenMode, SimulatedDisk};
use crate::state::{Checkpointed, State, StateMode};

const SEED: &str = "ARCHIVE_CRASH_SEED";
const RUNS: &str = "ARCHIVE_CRASH_RUNS";
const FOLDER: &str = "/archive";

fn step_of(random: &mut Rng) -> StateAction {
    match random.u64(..100) {
        0..40 => StateAction::Intern(random.u64(..2000) as u16),
        40..65 => StateAction::Cash(random.u16(..), random.u64(..u64::MAX).cast_signed()),
        65..88 => StateAction::Capture {
            url: random.u16(..),
            time: random.u64(..100).cast_signed(),
            digest: 1 + random.u64(..19) as u8,
            full: random.u64(..2) == 0,
        },
        88..97 => StateAction::Links(random.u16(..), (0..random.u64(..30)).map(|_| random.u16(..)).collect()),
        _ => StateAction::Checkpoint,
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

/// A state on a disk, the models of all checkpoints that may be on it, and the model of the state in memory.
struct CrashRun {
    disk: SimulatedDisk,
    state: Option<State>,
    model: StateModel,
    /// Checkpoints that were started, by the `captures` of their watermarks.
    begun: BTreeMap<u64, StateModel>,
    /// The `captures` in the watermarks of the last acknowledged checkpoint.
    acknowledged: u64,
}

impl CrashRun {
    fn new(disk: SimulatedDisk) -> Self {
        let begun = BTreeMap::from([(0, StateModel::default())]);
        Self { disk, state: None, model: StateModel::default(), begun, acknowledged: 0 }
    }

    fn disk(&self) -> Arc<dyn Disk> {
        Arc::new(self.disk.clone())
    }

    /// Opens the state unless it is open; it must equal a checkpoint that was started, no older than the last
    /// acknowledged one.
    fn reopen(&mut self) -> Result<(), StateError> {
        if self.state.is_none() {
            let state = open(&self.disk(), Path::new(FOLDER), StateMode::Own)?;
            let found = state.watermarks().captures;
            assert!(found >= self.acknowledged, "checkpoint {found} instead of {}", self.acknowledged);
            self.model = self.begun.get(&found).expect("a checkpoint that was begun").clone();
            self.begun = BTreeMap::from([(found, self.model.clone())]);
            self.acknowledged = found;
            self.state = Some(state);
        }
        Ok(())
    }

    fn step(&mut self, step: &StateAction) -> Result<(), StateError> {
        self.reopen()?;
        let Some(state) = self.state.as_mut() else { return Ok(()) };
        if matches!(step, StateAction::Checkpoint) {
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

    /// Continues after power is restored.
    fn crash(&mut self) {
        self.state = None;
        self.disk = self.disk.crash();
    }

    /// Checks that the state in memory is right, and that the disk holds a checkpoint: for a reader, for an owner, and
    /// once more.
    fn check(&mut self) {
        if let Some(state) = self.state.take() {
            self.model.assert_is(&state);
        }
        if let Ok(reader) = open(&self.disk(), Path::new(FOLDER), StateMode::Read) {
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
    // The same work each time, so that every operation of its checkpoints fails once: of the first one and one that
    // follows another, and of a third one if `ARCHIVE_TEST_WHOLE` is set.
    let steps = if std::env::var_os("ARCHIVE_TEST_WHOLE").is_some() { 120 } else { 80 };
    let work = |run: &mut CrashRun, steps: u64| -> Result<(), StateError> {
        let mut random = Rng::with_seed(steps);
        for step in 0..steps {
            let step = if step % 40 == 39 { StateAction::Checkpoint } else { step_of(&mut random) };
            run.step(&step)?;
        }
        Ok(())
    };
    let mut whole = CrashRun::new(SimulatedDisk::new(0));
    work(&mut whole, steps).unwrap();
    let operations = whole.disk.operations();
    assert!(operations > 100, "{operations} operations");
    for_seeds("the_power_may_fail_at_every_operation", 0..operations, |seed| {
        let operation = seed % operations;
        let mut run = CrashRun::new(SimulatedDisk::new(seed));
        run.disk.fail_power_at(operation);
        assert!(work(&mut run, steps).is_err());
        run.crash();
        run.check();
        work(&mut run, 50).unwrap();
        run.check();
    });
}

#[test]
fn power_fails_again_and_again() {
    for_seeds("power_fails_again_and_again", 0..100, |seed| {
        let mut random = Rng::with_seed(seed);
        let mut run = CrashRun::new(SimulatedDisk::new(seed));
        for _ in 0..4 {
            run.disk.fail_power_at(run.disk.operations() + random.u64(..120));
            for _ in 0..random.u64(..400) {
                if run.step(&step_of(&mut random)).is_err() {
                    break;
                }
            }
            run.crash();
            if random.u64(..3) == 0 {
                // Fails once more during recovery.
                run.disk.fail_power_at(run.disk.operations() + random.u64(..12));
                run.reopen().ok();
                run.crash();
            }
        }
        run.check();
    });
}

#[test]
fn failing_operations_lose_nothing() {
    for_seeds("failing_operations_lose_nothing", 0..100, |seed| {
        let mut random = Rng::with_seed(seed);
        let mut run = CrashRun::new(SimulatedDisk::new(seed));
        run.reopen().unwrap();
        let one_in = |random: &mut Rng| if random.u64(..2) == 0 { 0 } else { 20 + random.u64(..200) as u32 };
        run.disk.set_faults(Faults {
            capacity: None,
            failing_write_one_in: one_in(&mut random),
            failing_sync_one_in: one_in(&mut random),
            failing_read_one_in: one_in(&mut random),
            short_reads: random.u64(..2) == 0,
        });
        for _ in 0..400 {
            if run.step(&step_of(&mut random)).is_err() {
                // Memory is in doubt after some failures, so the state is reopened after all.
                run.state = None;
                if random.u64(..3) == 0 {
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
    for_seeds("a_full_disk_defers_the_checkpoint_and_nothing_else", 0..40, |seed| {
        let mut random = Rng::with_seed(seed);
        let mut run = CrashRun::new(SimulatedDisk::new(seed));
        for _ in 0..200 {
            run.step(&step_of(&mut random)).unwrap();
        }
        run.step(&StateAction::Checkpoint).unwrap();
        let used: u64 = run.disk.files().values().map(|bytes| bytes.len() as u64).sum();
        run.disk.set_faults(Faults { capacity: Some(used + random.u64(..60_000)), ..Faults::default() });
        let mut refused = 0;
        while refused < 3 {
            let step = step_of(&mut random);
            match run.step(&step) {
                Ok(()) => {}
                Err(error) if error.is_disk_full() && matches!(step, StateAction::Checkpoint) => refused += 1,
                Err(error) => panic!("{step:?}: {error}"),
            }
        }
        run.model.assert_is(run.state.as_ref().unwrap());
        run.disk.set_faults(Faults::default());
        run.step(&StateAction::Checkpoint).unwrap();
        run.crash();
        run.check();
    });
}

#[test]
fn one_copy_may_be_restored_three_times() {
    let mut run = CrashRun::new(SimulatedDisk::new(5));
    let mut random = Rng::with_seed(5);
    for _ in 0..300 {
        run.step(&step_of(&mut random)).unwrap();
    }
    run.step(&StateAction::Checkpoint).unwrap();
    run.state = None;
    let copy = run.disk.copy();
    for restored in 0..3 {
        let mut again = CrashRun::new(copy.copy());
        again.begun.clone_from(&run.begun);
        again.check();
        let mut random = Rng::with_seed(restored);
        for _ in 0..200 {
            again.step(&step_of(&mut random)).unwrap();
        }
        again.check();
    }
}

#[test]
fn a_flipped_bit_is_found() {
    let mut run = CrashRun::new(SimulatedDisk::new(9));
    let mut random = Rng::with_seed(9);
    for _ in 0..800 {
        run.step(&step_of(&mut random)).unwrap();
    }
    run.step(&StateAction::Checkpoint).unwrap();
    run.state = None;
    for file in ["pages.table", "visits.table", "captures.table", "urls.zst"] {
        let path = Path::new(FOLDER).join("state").join(file);
        let length = run.disk.files()[&path].len() as u64;
        for _ in 0..20 {
            let disk = run.disk.copy();
            let offset = random.u64(..length) as usize;
            assert!(disk.flip(&path, offset, 1 << random.u64(..8)));
            let disk: Arc<dyn Disk> = Arc::new(disk);
            let scanned = open(&disk, Path::new(FOLDER), StateMode::Read).and_then(|state| {
                state.pages(crate::UrlId(0)).try_for_each(|page| page.map(drop))?;
                state.visits(0).try_for_each(|visit| visit.map(drop))?;
                state.captures().try_for_each(|capture| capture.map(drop))?;
                state.scan_urls(0..u32::MAX, |_, _| Ok(()))
            });
            assert!(matches!(scanned, Err(StateError::Corrupted { .. })), "{file} at {offset}: {scanned:?}");
        }
    }
}

/// Reads everything that can be read.
fn read_all(disk: &Arc<dyn Disk>, mode: StateMode) -> Result<(), String> {
    let state = open(disk, Path::new(FOLDER), mode).map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    let checked = state.check(&mut |damage| found.push(damage.to_string()));
    checked.map_err(|error| error.to_string())?;
    if found.is_empty() { Ok(()) } else { Err(found.join("; ")) }
}

#[test]
fn damaged_files_are_reported_and_never_trusted() {
    let mut run = CrashRun::new(SimulatedDisk::new(11));
    let mut random = Rng::with_seed(11);
    for _ in 0..800 {
        run.step(&step_of(&mut random)).unwrap();
    }
    run.step(&StateAction::Checkpoint).unwrap();
    run.state = None;
    let files: Vec<_> = run
        .disk
        .files()
        .into_iter()
        .filter(|(path, bytes)| !bytes.is_empty() && path.starts_with(Path::new(FOLDER).join("state")))
        .collect();
    let (disk, model) = (run.disk.clone(), &run.model);
    for_seeds("damaged_files_are_reported_and_never_trusted", 0..400, |seed| {
        let mut random = Rng::with_seed(seed);
        let (path, bytes) = &files[random.u64(..files.len() as u64) as usize];
        let disk = disk.copy();
        let offset = random.u64(..bytes.len() as u64);
        let file = disk.open(path, OpenMode::Write).unwrap();
        match random.u64(..3) {
            0 => file.set_len(offset).unwrap(),
            1 => file
                .write_at(&vec![random.u64(..256) as u8; 1 + random.u64(..5000) as usize], offset)
                .unwrap(),
            _ => assert!(disk.flip(path, offset as usize, 1 << random.u64(..8))),
        }
        drop(file);
        let disk: Arc<dyn Disk> = Arc::new(disk);
        for mode in [StateMode::Read, StateMode::Own] {
            // Damage to unused bytes goes unnoticed, and then nothing has changed.
            if read_all(&disk, mode).is_ok() {
                model.assert_is(&open(&disk, Path::new(FOLDER), mode).unwrap());
            }
        }
    });
}
