//! Simulated clusters, with a simulated clock and a store in memory, in which everything goes wrong that can: nodes are
//! killed, paused beyond their lease, cut off in one direction or both, duplicated, and started with old copies; the
//! store refuses, loses or delays requests and answers. The nodes run the real code of the cluster; web, books and disk
//! are small models.
//!
//! Everything is drawn from a seed. `ARCHIVE_TEST_SEED=N` repeats one seed and prints what happens; `ARCHIVE_SEEDS=N`
//! tries N seeds.

mod crawler;
mod store;
mod world;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use archive_base::remote::Time as _;

use self::crawler::{Board, Books, Copies, Crawler, Disk, Ended, Web};
use self::store::{Link, Objects, Troubles};
use self::world::{Tasks, World};
use super::audit::audit_in;
use super::store::{Cluster, ClusterStore};
use super::{ClusterError, Division, Mode, Partition};

/// Number of seeds to try, unless `ARCHIVE_SEEDS` is set: usually, and if `ARCHIVE_TEST_WHOLE` is.
const SEEDS: [u64; 2] = [120, 250];

/// Simulated time at which a run fails if it is not over.
const END_MAX: Duration = Duration::from_secs(7200);

/// A running node, or one that has ended.
struct Machine {
    task: u64,
    number: u16,
    disk: Rc<RefCell<Disk>>,
    troubles: Arc<Mutex<Troubles>>,
    ended: Rc<RefCell<Option<Ended>>>,
}

struct Scenario {
    world: Arc<World>,
    tasks: Tasks,
    objects: Arc<Mutex<Objects>>,
    web: Rc<Web>,
    partition: Partition,
    board: Rc<RefCell<Board>>,
    address_delay: Duration,
    per_mille: u64,
    /// All nodes that were started and not yet discarded.
    machines: Vec<Machine>,
    /// All archives by partition, in the order of their creation.
    disks: BTreeMap<u16, Vec<Rc<RefCell<Disk>>>>,
    /// Partitions whose newest archive has everything.
    complete: BTreeSet<u16>,
    places: u64,
    audits: Rc<RefCell<u64>>,
    /// Number of nodes that ended on request, and of lost archives.
    drains: u64,
    losses: u64,
}

/// Result of a run, for comparison with another run.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    ended: Duration,
    steps: u64,
    requests: u64,
    fetched: u64,
    batches: u64,
    audits: u64,
    drains: u64,
    losses: u64,
}

impl Scenario {
    fn new(seed: u64, is_verbose: bool) -> Self {
        let world = World::new(seed);
        let count = 2 + world.below(3) as u16;
        // Half of the clusters divide sites by country.
        let by = if seed.is_multiple_of(2) { Division::Country(BTreeMap::new()) } else { Division::Site };
        let partition = Partition { cluster: "c".to_owned(), number: 1, count, mode: Mode::Exchange, by };
        let web = Rc::new(Web::new(&world, &partition));
        let copies = (world.below(2) == 0).then(Copies::new);
        let address_delay = [0, 0, 200, 2_000][world.below(4) as usize];
        Self {
            tasks: Tasks::new(Arc::clone(&world)),
            objects: Arc::default(),
            board: Rc::new(RefCell::new(Board { is_verbose, copies, ..Board::default() })),
            address_delay: Duration::from_millis(address_delay),
            per_mille: [0, 20, 100][world.below(3) as usize],
            machines: Vec::new(),
            disks: BTreeMap::new(),
            complete: BTreeSet::new(),
            places: 0,
            audits: Rc::default(),
            drains: 0,
            losses: 0,
            web,
            partition,
            world,
        }
    }

    fn say(&self, text: impl FnOnce() -> String) {
        self.board.borrow().say(&self.world, text);
    }

    fn shared(&self, troubles: &Arc<Mutex<Troubles>>) -> ClusterStore {
        let (world, objects) = (Arc::clone(&self.world), Arc::clone(&self.objects));
        let link = Link { world, objects, troubles: Arc::clone(troubles) };
        ClusterStore::new(Arc::new(link), Arc::clone(&self.world) as _)
    }

    fn new_disk(&mut self, number: u16, durable: Books) -> Rc<RefCell<Disk>> {
        self.places += 1;
        let place = format!("place {}", self.places);
        let disk = Rc::new(RefCell::new(Disk { place, durable, before: Vec::new() }));
        self.disks.entry(number).or_default().push(Rc::clone(&disk));
        disk
    }

    /// Starts a node with an archive, after killing nodes that have it open.
    fn begin(&mut self, number: u16, disk: Rc<RefCell<Disk>>) {
        let doubled: Vec<u64> = self
            .machines
            .iter()
            .filter(|machine| Rc::ptr_eq(&machine.disk, &disk))
            .map(|machine| machine.task)
            .collect();
        doubled.into_iter().for_each(|task| self.kill(task));
        self.say(|| format!("begins partition {number} in {}", disk.borrow().place));
        self.complete.remove(&number);
        let troubles = Arc::new(Mutex::new(Troubles { per_mille: self.per_mille, ..Troubles::default() }));
        let ended = Rc::new(RefCell::new(None));
        let crawler = Crawler {
            world: Arc::clone(&self.world),
            shared: self.shared(&troubles),
            web: Rc::clone(&self.web),
            partition: Partition { number, ..self.partition.clone() },
            disk: Rc::clone(&disk),
            board: Rc::clone(&self.board),
            address_delay: self.address_delay,
            ended: Rc::clone(&ended),
        };
        let task = self.tasks.begin(crawler.run());
        self.machines.push(Machine { task, number, disk, troubles, ended });
    }

    fn kill(&mut self, task: u64) {
        self.tasks.kill(task);
        let killed = self.machines.iter().find(|machine| machine.task == task).map(|machine| machine.number);
        killed.map(|number| self.complete.remove(&number));
        self.machines.retain(|machine| machine.task != task);
    }

    /// Returns the archive to continue.
    fn newest(&self, number: u16) -> Rc<RefCell<Disk>> {
        let newest = self.board.borrow().newest.get(&number).cloned();
        newest.unwrap_or_else(|| Rc::clone(&self.disks[&number][0]))
    }

    /// Starts the cluster, and a task that audits its cash all the time.
    fn begin_all(&mut self) {
        let clean: Arc<Mutex<Troubles>> = Arc::default();
        let (shared, partitions, by) = (self.shared(&clean), self.partition.count, self.partition.by.clone());
        let (audits, world) = (Rc::clone(&self.audits), Arc::clone(&self.world));
        self.tasks.begin(async move {
            let (cluster, mode) = ("c".to_owned(), Mode::Exchange);
            let cluster = Cluster { cluster, partitions, mode, by, lease_seconds: None };
            shared.join(&cluster).await.unwrap();
            loop {
                world.sleep(world.span(1_000, 6_000)).await;
                match audit_in(&shared).await {
                    Ok(Some(audit)) => assert_ne!(audit.is_exact, Some(false), "{audit:#?}"),
                    // The store is down.
                    Err(error) if error.is_passing() => {}
                    other => panic!("{other:?}"),
                }
                *audits.borrow_mut() += 1;
            }
        });
        self.tasks.run_until(Duration::from_secs(1));
        for number in 1..=partitions {
            let books = Books::new(&Partition { number, ..self.partition.clone() }, &self.web);
            let disk = self.new_disk(number, books);
            self.begin(number, disk);
        }
    }

    /// Makes something go wrong.
    fn disturb(&mut self) {
        let world = Arc::clone(&self.world);
        let number = 1 + world.below(u64::from(self.partition.count)) as u16;
        let until = world.elapsed() + world.span(500, 40_000);
        let alive: Vec<usize> =
            (0..self.machines.len()).filter(|at| self.machines[*at].number == number).collect();
        let Some(&at) = alive.get(world.below(alive.len() as u64) as usize) else {
            let newest = self.newest(number);
            return self.begin(number, newest);
        };
        let (task, disk) = (self.machines[at].task, Rc::clone(&self.machines[at].disk));
        let troubles = Arc::clone(&self.machines[at].troubles);
        let what = world.below(12);
        self.say(|| format!("partition {number} in {}: trouble {what} until {until:?}", disk.borrow().place));
        match what {
            0 | 1 => {
                self.kill(task);
                self.tasks.run_until(world.elapsed() + world.span(0, 8_000));
                self.begin(number, disk);
            }
            2 => {
                self.kill(task);
                self.double(number, &disk, 0);
            }
            3 => self.tasks.stop(task, until),
            4 => troubles.lock().unwrap().requests_lost_until = until,
            5 => troubles.lock().unwrap().answers_lost_until = until,
            6 => self.objects.lock().unwrap().down_until = until,
            7 => {
                self.tasks.stop(task, until);
                self.double(number, &disk, 0);
            }
            8 => {
                troubles.lock().unwrap().requests_lost_until = until;
                self.double(number, &disk, 0);
            }
            9 => self.double(number, &disk, 1 + world.below(3) as usize),
            10 => self.lose(number, task, &disk),
            _ => {
                let shared = self.shared(&Arc::default());
                self.tasks.begin(async move {
                    // The store may be down.
                    if let Ok((epoch, _)) = shared.newest_epoch(number).await {
                        drop(shared.ask_to_end(number, epoch, None).await);
                    }
                });
            }
        }
    }

    /// Starts another node with a copy of an archive that is `age` checkpoints old.
    fn double(&mut self, number: u16, disk: &Rc<RefCell<Disk>>, age: usize) {
        let books = {
            let disk = disk.borrow();
            let old = disk.before.len().checked_sub(age).and_then(|at| disk.before.get(at));
            old.filter(|_| age > 0).unwrap_or(&disk.durable).clone()
        };
        let copy = self.new_disk(number, books);
        self.begin(number, copy);
    }

    /// Kills a node and loses its archive; starts another node with the last copy, if there is one.
    fn lose(&mut self, number: u16, task: u64, disk: &Rc<RefCell<Disk>>) {
        let copy = self.board.borrow().copies.as_ref().and_then(|copies| copies.get(&number).cloned());
        let Some((_, books)) = copy else { return };
        self.kill(task);
        self.losses += 1;
        let restored = self.new_disk(number, books);
        let mut board = self.board.borrow_mut();
        let disks = self.disks.entry(number).or_default();
        disks.retain(|known| !Rc::ptr_eq(known, disk));
        if board.newest.get(&number).is_some_and(|newest| Rc::ptr_eq(newest, disk)) {
            board.newest.insert(number, Rc::clone(&restored));
        }
        drop(board);
        self.begin(number, restored);
    }

    /// Discards nodes that have ended, and checks that they had a reason.
    fn look_after(&mut self) {
        let ended: Vec<usize> =
            (0..self.machines.len()).filter(|at| !self.tasks.is_alive(self.machines[*at].task)).collect();
        for at in ended.into_iter().rev() {
            let machine = self.machines.remove(at);
            match machine.ended.take() {
                Some(Ended::Complete) => {
                    if Rc::ptr_eq(&machine.disk, &self.newest(machine.number)) {
                        self.complete.insert(machine.number);
                    }
                }
                Some(Ended::Drained) => self.drains += 1,
                Some(Ended::Failed(
                    ClusterError::Superseded { .. }
                    | ClusterError::Behind { .. }
                    | ClusterError::Beginning(_),
                )) => {}
                Some(Ended::Failed(error)) if error.is_passing() => {}
                other => panic!("partition {} ended for no good reason: {other:?}", machine.number),
            }
        }
    }

    /// Stops all trouble, and restarts nodes until all is done.
    fn calm(&mut self) -> bool {
        for machine in &self.machines {
            *machine.troubles.lock().unwrap() = Troubles::default();
            self.tasks.stop(machine.task, Duration::ZERO);
        }
        self.objects.lock().unwrap().down_until = Duration::ZERO;
        self.per_mille = 0;
        let mut trial = 0;
        while self.world.elapsed() < END_MAX {
            self.tasks.run_until(self.world.elapsed() + Duration::from_secs(5));
            self.look_after();
            let is_done = self.is_done();
            if is_done && self.machines.is_empty() && self.complete.len() == usize::from(self.partition.count)
            {
                return true;
            }
            for number in 1..=self.partition.count {
                let is_over = is_done && self.complete.contains(&number);
                if !is_over && self.machines.iter().all(|machine| machine.number != number) {
                    // One of the archives is always the one to continue.
                    let (disks, newest) = (&self.disks[&number], self.newest(number));
                    let disk =
                        if trial % 3 == 2 { Rc::clone(&disks[trial / 3 % disks.len()]) } else { newest };
                    self.begin(number, disk);
                }
            }
            trial += 1;
        }
        false
    }

    /// Whether nothing is in flight.
    fn is_done(&self) -> bool {
        let marks: Vec<_> = (1..=self.partition.count)
            .map(|number| self.newest(number).borrow().durable.marks.clone())
            .collect();
        let has_come = |from: u16, to: u16| {
            marks[usize::from(from) - 1].sent_to(to) == marks[usize::from(to) - 1].received_from(from)
        };
        (1..=self.partition.count).all(|from| (1..=self.partition.count).all(|to| has_come(from, to)))
    }

    /// Checks what must be true at the end.
    fn check(&mut self) -> Outcome {
        let (mut cash, mut fetched, mut batches) = (0, BTreeMap::new(), 0);
        let count = self.partition.count;
        for number in 1..=count {
            let disk = self.newest(number);
            let books = &disk.borrow().durable;
            cash += u128::from(books.total());
            for page in &books.fetched {
                assert_eq!(self.web.owners[*page], number);
                assert_eq!(fetched.insert(*page, number), None, "{} twice", self.web.urls[*page]);
            }
            for (&to, sent) in &books.marks.sent {
                let other = self.newest(to);
                let received = other.borrow().durable.marks.received.get(&number).copied();
                assert_eq!(received, Some(*sent), "from {number} to {to}");
                batches += sent.number;
            }
        }
        assert_eq!(cash, u128::from(self.partition.initial_cash().units()) * u128::from(count), "cash");
        assert_eq!(fetched.keys().copied().collect::<BTreeSet<_>>(), self.web.reachable());
        for (address, arrivals) in &mut self.board.borrow_mut().arrivals {
            are_apart(address, arrivals, self.address_delay);
        }
        let clean: Arc<Mutex<Troubles>> = Arc::default();
        let (shared, last) = (self.shared(&clean), Rc::new(RefCell::new(None)));
        let found = Rc::clone(&last);
        self.tasks.begin(async move { *found.borrow_mut() = audit_in(&shared).await.unwrap() });
        self.tasks.run_until(self.world.elapsed() + Duration::from_secs(10));
        let audit = last.take().expect("an audit");
        assert_eq!(
            (audit.is_exact, audit.found, audit.in_flight.len()),
            (Some(true), audit.expected, 0),
            "{audit:#?}"
        );
        Outcome {
            ended: self.world.elapsed(),
            steps: self.tasks.steps,
            requests: self.objects.lock().unwrap().requests,
            fetched: fetched.len() as u64,
            batches,
            audits: *self.audits.borrow(),
            drains: self.drains,
            losses: self.losses,
        }
    }
}

/// Fails if two nodes have asked an address within its delay.
fn are_apart(address: &IpAddr, arrivals: &mut [(Duration, u16, u64)], delay: Duration) {
    arrivals.sort_unstable();
    for pair in arrivals.windows(2) {
        let ((before, ..), (after, ..)) = (pair[0], pair[1]);
        let is_same = (pair[0].1, pair[0].2) == (pair[1].1, pair[1].2);
        assert!(is_same || after - before >= delay, "{address} is asked too early: {pair:?}");
    }
}

fn run(seed: u64, is_verbose: bool) -> Outcome {
    let mut scenario = Scenario::new(seed, is_verbose);
    scenario.begin_all();
    let world = Arc::clone(&scenario.world);
    let calm_at = world.span(5_000, 120_000);
    while world.elapsed() < calm_at {
        let next = world.elapsed() + world.span(500, 15_000);
        scenario.tasks.run_until(next);
        scenario.look_after();
        scenario.disturb();
    }
    scenario.say(|| "calm".to_owned());
    assert!(scenario.calm(), "it does not end");
    scenario.check()
}

#[test]
fn a_cluster_loses_nothing_and_doubles_nothing_whatever_goes_wrong() {
    if let Ok(seed) = env::var("ARCHIVE_TEST_SEED") {
        println!("{:?}", run(seed.parse().unwrap(), true));
        return;
    }
    let usual = SEEDS[usize::from(env::var_os("ARCHIVE_TEST_WHOLE").is_some())];
    let seeds = env::var("ARCHIVE_SEEDS").map_or(usual, |seeds| seeds.parse().unwrap());
    let (begun, threads) =
        (Instant::now(), thread::available_parallelism().map_or(1, |count| count.get() as u64));
    let part = |first: u64| {
        let seeds = (first..=seeds).step_by(threads as usize);
        let mut total = Outcome::default();
        let failed: Vec<u64> = seeds
            .filter(|seed| match catch_unwind(AssertUnwindSafe(|| run(*seed, false))) {
                Ok(outcome) => {
                    total.ended += outcome.ended;
                    total.requests += outcome.requests;
                    total.fetched += outcome.fetched;
                    total.batches += outcome.batches;
                    total.audits += outcome.audits;
                    total.drains += outcome.drains;
                    total.losses += outcome.losses;
                    false
                }
                Err(_) => true,
            })
            .collect();
        (failed, total)
    };
    let mut failed = Vec::new();
    thread::scope(|scope| {
        let parts: Vec<_> = (1..=threads).map(|first| scope.spawn(move || part(first))).collect();
        for part in parts {
            let (seeds, total) = part.join().unwrap();
            println!("{total:?}");
            failed.extend(seeds);
        }
    });
    println!("{seeds} seeds in {:?}", begun.elapsed());
    assert!(
        failed.is_empty(),
        "{} of {seeds} seeds fail; ARCHIVE_TEST_SEED=N prints one: {failed:?}",
        failed.len()
    );
}

/// Maximum time from the start of a node until it works: in its predecessor's folder or after one that has left, and in
/// another place after a kill, where it waits for the lease to end.
const START_MAX: Duration = Duration::from_secs(5);
const TAKEOVER_MAX: Duration = Duration::from_secs(20);

#[test]
fn a_partition_is_continued_soon_after_its_node_was_killed_or_has_left() {
    for seed in 1..=20 {
        for (is_moved, has_left) in [(false, false), (true, false), (true, true)] {
            let mut scenario = Scenario::new(seed, false);
            scenario.per_mille = 0;
            scenario.begin_all();
            let world = Arc::clone(&scenario.world);
            scenario.tasks.run_until(world.elapsed() + Duration::from_secs(2));
            let old = scenario.machines.iter().find(|machine| machine.number == 1).unwrap();
            let (task, disk) = (old.task, Rc::clone(&old.disk));
            if has_left {
                let shared = scenario.shared(&Arc::default());
                scenario.tasks.begin(async move { shared.ask_to_end(1, 1, None).await.unwrap() });
                while scenario.tasks.is_alive(task) {
                    scenario.tasks.run_until(world.elapsed() + Duration::from_millis(100));
                    assert!(world.elapsed() < END_MAX, "{seed}: it does not leave");
                }
            }
            scenario.kill(task);
            scenario.board.borrow_mut().newest.remove(&1);
            let begun = world.elapsed();
            if is_moved {
                scenario.double(1, &disk, 0);
            } else {
                scenario.begin(1, disk);
            }
            while !scenario.board.borrow().newest.contains_key(&1) {
                scenario.tasks.run_until(world.elapsed() + Duration::from_millis(100));
                assert!(world.elapsed() - begun < TAKEOVER_MAX, "{seed}: moved {is_moved}, left {has_left}");
            }
            let waited = world.elapsed() - begun;
            assert_eq!(waited > START_MAX, is_moved && !has_left, "{seed}: {waited:?}");
        }
    }
}

#[test]
fn a_seed_repeats_everything() {
    for seed in 1..=5 {
        assert_eq!(run(seed, false), run(seed, false), "{seed}");
    }
}
