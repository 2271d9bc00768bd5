//! The crawls of one machine: partitions of a cluster that have no node are crawled here, each in a process of its own.
//!
//! A crawl is a child process in a folder of its own, so that one that fails takes no other with it; all of them get
//! their requests from one set of slots. Which partitions are vacant, and which archive may continue one, follows from
//! the epochs in the cluster's store.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};
use std::{fs, thread};

use archive_base::control::Control;
use archive_base::error::Failure;
use archive_base::files::FileError;
use archive_books::cluster::{ClusterError, Member, SlotsOfMachine, Vacancies, Vacancy};
use archive_books::ledger::{CreditError, Credits};
use archive_storage::{Store, StoreError};
use archive_vault::copy::{self, CopyError, Remote};

/// Time for which a partition is left alone after its crawl failed, and after it ended successfully, so that other
/// machines can take it first.
const REST: Duration = Duration::from_secs(5);
const REST_AT_EASE: Duration = Duration::from_secs(60);

/// Why a partition cannot be crawled here.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SupervisorError {
    /// The crawl cannot be started or checked.
    #[error("cannot start or check a crawl: {0}")]
    Process(#[source] io::Error),
    /// The crawl was given wrong options.
    #[error("the crawl of partition {0} rejects the options after --; see its message above")]
    Options(u16),
    /// Anything else.
    #[error(transparent)]
    Other(#[from] Failure),
}

archive_base::passes_on! { SupervisorError: ClusterError, StoreError, CreditError, CopyError, FileError }

/// What a machine crawls, and how.
pub struct CrawlsOfMachine<'a> {
    /// The cluster, and the name of this node.
    pub member: &'a Member,
    /// Folder of the archives; partition 3 is in `3.archive`.
    pub archives: &'a Path,
    /// Maximum number of partitions that this machine takes; those whose archive it has continue anyway.
    pub partitions_max: usize,
    /// URL under which each archive has its copies.
    pub copies: Option<&'a str>,
    /// Concurrent requests of all partitions together.
    pub requests_max: usize,
    /// The program that crawls a vacant partition in a folder, with copies to a URL.
    pub command: &'a dyn Fn(&Vacancy, &Path, Option<&str>) -> Command,
    /// Its exit code when it was stopped, and when its options are wrong.
    pub exit_codes: [u8; 2],
}

/// Receives sentences about what happens, for people.
type Say<'a> = dyn FnMut(&str) + 'a;

/// Delay before the check that follows the start of a crawl, and the longest time until a stop is noticed.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Crawls partitions until no machine has anything left to do, or until a stop, which leaves them to other machines.
/// Returns whether it was stopped.
///
/// # Errors
/// If the cluster cannot be used, the system gives no processes, or the crawls reject their options.
pub fn run(
    machine: &CrawlsOfMachine<'_>,
    control: &Control,
    say: &mut Say<'_>,
) -> Result<bool, SupervisorError> {
    let (vacancies, slots) = (Vacancies::of(machine.member), SlotsOfMachine::new(machine.requests_max));
    let (crawls, resting) = (BTreeMap::new(), BTreeMap::new());
    // As often as the nodes themselves look.
    let look_every = machine.member.spans().poll();
    let mut supervisor = Supervisor { machine, vacancies, slots, crawls, resting };
    let mut is_leaving = false;
    loop {
        supervisor.check_crawls(say)?;
        let mut pause = look_every;
        if control.is_stopped() {
            if supervisor.crawls.is_empty() {
                return Ok(true);
            }
            is_leaving = is_leaving || supervisor.leave(say);
        } else {
            match supervisor.step(control, say) {
                Ok(Step::Over) => return Ok(false),
                Ok(Step::Begun) => pause = LOOK_AGAIN,
                Ok(Step::Nothing) => {}
                Err(error) if error.is_passing() => {
                    say(&format!("{error}; looking again in {} s", look_every.as_secs_f32()));
                }
                Err(error) => return Err(error.into()),
            }
        }
        let looked = Instant::now();
        while looked.elapsed() < pause && (is_leaving || !control.is_stopped()) {
            thread::sleep(LOOK_AGAIN);
        }
    }
}

enum Step {
    /// No machine has anything left to do.
    Over,
    /// The crawl of a partition was started.
    Begun,
    Nothing,
}

struct Supervisor<'a> {
    machine: &'a CrawlsOfMachine<'a>,
    vacancies: Vacancies,
    slots: SlotsOfMachine,
    crawls: BTreeMap<u16, Child>,
    /// Partitions to be left alone until some time.
    resting: BTreeMap<u16, Instant>,
}

impl Supervisor<'_> {
    /// Handles crawls that have ended.
    fn check_crawls(&mut self, say: &mut Say<'_>) -> Result<(), SupervisorError> {
        let mut ended = Vec::new();
        for (number, crawl) in &mut self.crawls {
            ended.extend(crawl.try_wait().map_err(SupervisorError::Process)?.map(|status| (*number, status)));
        }
        let [stopped, wrong] = self.machine.exit_codes.map(|code| Some(i32::from(code)));
        for (number, status) in ended {
            self.crawls.remove(&number);
            let is_done = status.success() || status.code() == stopped;
            self.resting.insert(number, Instant::now() + if is_done { REST_AT_EASE } else { REST });
            say(&format!("the crawl of partition {number} has ended: {status}"));
            if status.code() == wrong {
                return Err(SupervisorError::Options(number));
            }
        }
        Ok(())
    }

    /// Starts the crawl of a partition, if one is vacant.
    fn step(&mut self, control: &Control, say: &mut Say<'_>) -> Result<Step, ClusterError> {
        let now = Instant::now();
        let view = self.vacancies.look(now)?;
        if view.is_over && self.crawls.is_empty() {
            return Ok(Step::Over);
        }
        let mut vacant: Vec<Vacancy> = view.vacant;
        if self.crawls.len() >= self.machine.partitions_max {
            // An archive on this machine may not be available to any other, and all partitions would wait for it.
            vacant.retain(|one| one.epoch > 0 && self.folder(one.number).exists());
        }
        vacant.retain(|one| one.heir.as_ref().is_none_or(|heir| *heir == self.machine.member.node));
        // Machines that start together should try different partitions first.
        fastrand::shuffle(&mut vacant);
        vacant.sort_by_key(|one| one.heir.is_none());
        for vacancy in vacant {
            let number = vacancy.number;
            let is_resting =
                vacancy.heir.is_none() && self.resting.get(&number).is_some_and(|until| now < *until);
            if is_resting || self.crawls.contains_key(&number) {
                continue;
            }
            match self.take(&vacancy, control, say) {
                Ok(true) => return Ok(Step::Begun),
                Ok(false) => {}
                Err(error) => {
                    self.resting.insert(number, Instant::now() + REST);
                    say(&format!("partition {number}: {error}"));
                }
            }
        }
        Ok(Step::Nothing)
    }

    /// Asks all crawls to leave their partitions; returns whether all could be asked.
    fn leave(&self, say: &mut Say<'_>) -> bool {
        self.crawls.keys().all(|number| match self.vacancies.ask_to_end(*number) {
            Ok(()) => true,
            Err(error) => {
                say(&format!("partition {number} cannot be left: {error}"));
                false
            }
        })
    }

    /// Starts the crawl of a partition if it can continue here; returns whether it was started.
    fn take(
        &mut self,
        vacancy: &Vacancy,
        control: &Control,
        say: &mut Say<'_>,
    ) -> Result<bool, SupervisorError> {
        let folder = self.folder(vacancy.number);
        let copies =
            self.machine.copies.map(|url| format!("{}/{}", url.trim_end_matches('/'), vacancy.number));
        if !make_ready(vacancy, &folder, copies.as_deref(), control, say)? {
            return Ok(false);
        }
        let slots = self.slots.join().map_err(SupervisorError::Process)?;
        let mut command = (self.machine.command)(vacancy, &folder, copies.as_deref());
        // Ctrl-C must reach only this process, which lets the crawls hand over their partitions.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let crawl = command.stdin(slots).spawn().map_err(SupervisorError::Process)?;
        self.crawls.insert(vacancy.number, crawl);
        Ok(true)
    }

    fn folder(&self, number: u16) -> PathBuf {
        self.machine.archives.join(format!("{number}.archive"))
    }
}

/// Ensures that the archive to be continued is in its folder; returns whether it is.
fn make_ready(
    vacancy: &Vacancy,
    folder: &Path,
    copies: Option<&str>,
    control: &Control,
    say: &mut Say<'_>,
) -> Result<bool, SupervisorError> {
    let known = match Store::read_only(folder) {
        Ok(store) => Some(Credits::epoch(store.state())?),
        // A crawl that lost its partition to another machine while starting leaves a folder without an archive.
        Err(error) if error.is_missing() => folder.exists().then_some(0),
        Err(error) => return Err(error.into()),
    };
    match known {
        // The partition was this machine's, and no node has taken it since; the lock of its folder shows whether it is
        // still in use.
        Some(known) if known == vacancy.epoch => return Ok(true),
        _ if !vacancy.is_sure => return Ok(false),
        Some(known) if known >= vacancy.published => return Ok(true),
        None if vacancy.published == 0 => return Ok(true),
        _ => {}
    }
    let Some(copies) = copies else { return Ok(false) };
    if let Some(known) = known {
        let old = folder.with_extension(format!("of-epoch-{known}"));
        fs::rename(folder, &old).map_err(FileError::at(folder))?;
        let (number, old) = (vacancy.number, old.display());
        say(&format!("partition {number} was continued elsewhere; the old archive is now {old}"));
    }
    copy::restore(&Remote::open(copies)?, folder, None, control, &|_, _| {})?;
    Ok(true)
}
