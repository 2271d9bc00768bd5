//! `archive node`: crawls the partitions of a cluster that have no node.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use archive_base::control::Control;
use archive_books::cluster::{Asked, Member, Mode, PARTITIONS_MAX, SlotsOfMachine, Vacancies, Vacancy};
use archive_books::ledger::Credits;
use archive_crawl::WORKERS_MAX;
use archive_storage::Store;
use archive_vault::copy::{self, Remote};

use super::{EXIT_STOPPED, EXIT_USAGE, interrupt, output};

/// Crawl the partitions of a cluster that have no node, each in its own process and folder, as `archive crawl` does.
///
/// Run the same command on all machines. Each takes one partition at a time, so that machines started together share
/// them. If the node of a partition is gone (killed, drained, or silent for two minutes), the machine that has its
/// archive continues the partition, or, with --copies, any machine. When stopped, the command drains its partitions,
/// and others continue them at once. It ends when nothing waits in any partition.
#[derive(clap::Args)]
#[command(after_help = "Example, on each machine:
  archive node --cluster s3://crawl/cluster --partitions 64 --archives /srv/archives --partitions-max 16 \\
    --copies s3://crawl/copies -- --seeds /srv/list.txt --scope any --user-agent 'mybot/1.0 (+https://example.org/bot)'")]
pub(crate) struct Args {
    /// URL of the object store that the nodes share
    #[arg(long, value_name = "URL")]
    cluster: String,
    /// Number of partitions of the cluster; set by the first node
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=i64::from(PARTITIONS_MAX)))]
    partitions: u16,
    /// Treatment of links to other partitions: exchange, firewall or crossover; set by the node that starts the cluster
    /// [default: exchange]
    #[arg(long, value_name = "MODE")]
    cluster_mode: Option<Mode>,
    /// Name of this node [default: the machine's name]
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// Folder of the archives; partition 3 is in 3.archive
    #[arg(long, value_name = "DIR")]
    archives: PathBuf,
    /// Maximum number of partitions that this machine takes; those whose archive it has continue anyway
    #[arg(long, value_name = "N", default_value_t = PARTITIONS_MAX)]
    partitions_max: u16,
    /// URL to which each archive is copied after each checkpoint (crawl --copy-to), and from which partitions of other
    /// machines are taken over
    #[arg(long, value_name = "URL")]
    copies: Option<String>,
    /// Concurrent requests of all partitions of this machine together; each is for the most important page of all
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..=WORKERS_MAX as i64))]
    workers: u16,
    /// Options of the crawls, after --
    #[arg(last = true, required = true, value_name = "CRAWL OPTIONS")]
    crawl: Vec<String>,
}

/// Interval at which the cluster and the crawls are checked, and the delay before the check that follows the start of a
/// crawl.
const LOOK_EVERY: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Time for which a partition is left alone after its crawl failed, and after it ended successfully, so that other
/// machines can take it first.
const REST: Duration = Duration::from_secs(5);
const REST_AT_EASE: Duration = Duration::from_secs(60);

struct Machine<'a> {
    args: &'a Args,
    name: String,
    vacancies: Vacancies,
    slots: SlotsOfMachine,
    crawls: BTreeMap<u16, Child>,
    /// Partitions to be left alone until some time.
    resting: BTreeMap<u16, Instant>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let control = interrupt::install()?;
    fs::create_dir_all(&args.archives).with_context(|| args.archives.display().to_string())?;
    let asked = Asked {
        url: args.cluster.clone(),
        number: 1,
        count: args.partitions,
        mode: args.cluster_mode,
        node: args.node.clone(),
        after: None,
    };
    let member = Member::find(&asked)?;
    let vacancies = Vacancies::of(&member);
    let slots = SlotsOfMachine::new(usize::from(args.workers));
    let (crawls, resting) = (BTreeMap::new(), BTreeMap::new());
    let mut machine = Machine { args, name: member.node, vacancies, slots, crawls, resting };
    let mut is_leaving = false;
    loop {
        let mut pause = LOOK_EVERY;
        machine.check_crawls()?;
        if control.is_stopped() {
            if machine.crawls.is_empty() {
                return Ok(ExitCode::from(EXIT_STOPPED));
            }
            if !is_leaving {
                is_leaving = machine.leave();
            }
        } else {
            match machine.step(&control)? {
                Step::Over => return Ok(ExitCode::SUCCESS),
                Step::Begun => pause = LOOK_AGAIN,
                Step::Nothing => {}
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

impl Machine<'_> {
    /// Handles crawls that have ended.
    fn check_crawls(&mut self) -> anyhow::Result<()> {
        for number in self.crawls.keys().copied().collect::<Vec<_>>() {
            let Some(crawl) = self.crawls.get_mut(&number) else { continue };
            let Some(status) = crawl.try_wait().context("cannot check a crawl")? else { continue };
            self.crawls.remove(&number);
            let is_done = status.success() || status.code() == Some(i32::from(EXIT_STOPPED));
            let rest = if is_done { REST_AT_EASE } else { REST };
            self.resting.insert(number, Instant::now() + rest);
            output::note(format_args!("the crawl of partition {number} has ended: {status}"));
            if status.code() == Some(i32::from(EXIT_USAGE)) {
                anyhow::bail!(
                    "the crawl of partition {number} rejects the options after --; see its message above"
                );
            }
        }
        Ok(())
    }

    /// Starts the crawl of a partition, if one is vacant.
    fn step(&mut self, control: &Control) -> anyhow::Result<Step> {
        let now = Instant::now();
        let view = match self.vacancies.look(now) {
            Err(error) if error.is_passing() => {
                output::note(format_args!("{error}; looking again in {} s", LOOK_EVERY.as_secs()));
                return Ok(Step::Nothing);
            }
            view => view?,
        };
        if view.is_over && self.crawls.is_empty() {
            return Ok(Step::Over);
        }
        let mut vacant: Vec<Vacancy> = view.vacant;
        if self.crawls.len() >= usize::from(self.args.partitions_max) {
            // An archive on this machine may not be available to any other, and all partitions would wait for it.
            vacant.retain(|one| one.epoch > 0 && self.folder(one.number).exists());
        }
        vacant.retain(|one| one.heir.as_ref().is_none_or(|heir| *heir == self.name));
        // Machines that start together should try different partitions first.
        fastrand::shuffle(&mut vacant);
        vacant.sort_by_key(|one| one.heir.is_none());
        for vacancy in vacant {
            let is_resting =
                vacancy.heir.is_none() && self.resting.get(&vacancy.number).is_some_and(|until| now < *until);
            if !is_resting && !self.crawls.contains_key(&vacancy.number) && self.take(&vacancy, control) {
                return Ok(Step::Begun);
            }
        }
        Ok(Step::Nothing)
    }

    /// Starts the crawl of a partition if it can continue here; returns whether it was started.
    fn take(&mut self, vacancy: &Vacancy, control: &Control) -> bool {
        match self.make_ready(vacancy, control).and_then(|is_ready| {
            if is_ready {
                let slots = self.slots.join().context("cannot begin a crawl")?;
                let mut command = self.command(vacancy);
                let crawl = command.stdin(slots).spawn().context("cannot begin a crawl")?;
                self.crawls.insert(vacancy.number, crawl);
            }
            Ok(is_ready)
        }) {
            Ok(is_begun) => is_begun,
            Err(error) => {
                self.resting.insert(vacancy.number, Instant::now() + REST);
                output::note(format_args!("partition {}: {error:#}", vacancy.number));
                false
            }
        }
    }

    fn folder(&self, number: u16) -> PathBuf {
        self.args.archives.join(format!("{number}.archive"))
    }

    fn place(&self, number: u16) -> Option<String> {
        self.args.copies.as_ref().map(|url| format!("{}/{number}", url.trim_end_matches('/')))
    }

    /// Ensures that the archive to be continued is here; returns whether it is.
    fn make_ready(&self, vacancy: &Vacancy, control: &Control) -> anyhow::Result<bool> {
        let folder = self.folder(vacancy.number);
        let known = match Store::read_only(&folder) {
            Ok(store) => Some(Credits::epoch(store.state())?),
            // A crawl that lost its partition to another machine while starting leaves a folder without an archive.
            Err(error) if error.is_missing() => folder.exists().then_some(0),
            Err(error) => return Err(error.into()),
        };
        match known {
            // The partition was this machine's, and no node has taken it since; the lock of its folder shows whether it
            // is still in use.
            Some(known) if known == vacancy.epoch => return Ok(true),
            _ if !vacancy.is_sure => return Ok(false),
            Some(known) if known >= vacancy.published => return Ok(true),
            None if vacancy.published == 0 => return Ok(true),
            _ => {}
        }
        let Some(place) = self.place(vacancy.number) else { return Ok(false) };
        if let Some(known) = known {
            let old = folder.with_extension(format!("of-epoch-{known}"));
            fs::rename(&folder, &old).with_context(|| folder.display().to_string())?;
            let number = vacancy.number;
            output::note(format_args!(
                "partition {number} was continued elsewhere; the old archive is now {}",
                old.display()
            ));
        }
        copy::restore(&Remote::open(&place)?, &folder, None, control, &|_, _| {})?;
        Ok(true)
    }

    fn command(&self, vacancy: &Vacancy) -> Command {
        let number = vacancy.number;
        let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("archive"));
        let mut command = Command::new(program);
        command.arg("crawl").args(&self.args.crawl).arg("--archive").arg(self.folder(number));
        command.args(["--cluster", &self.args.cluster, "--partition"]);
        command.arg(format!("{number}/{}", self.args.partitions)).arg("--slots");
        command.args(["--after-epoch", &vacancy.epoch.to_string()]);
        if let Some(place) = self.place(number) {
            command.args(["--copy-to", &place]);
        }
        if let Some(node) = &self.args.node {
            command.args(["--node", node]);
        }
        // Ctrl-C must reach only this process, which lets the crawls hand over their partitions.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command
    }

    /// Asks all crawls to leave their partitions; returns whether all could be asked.
    fn leave(&self) -> bool {
        self.crawls.keys().all(|number| match self.vacancies.ask_to_end(*number) {
            Ok(()) => true,
            Err(error) => {
                output::note(format_args!("partition {number} cannot be left: {error}"));
                false
            }
        })
    }
}
