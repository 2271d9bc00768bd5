//! The thread that talks to the object store for a node, so that the crawl never waits for it.
//!
//! A node holds its partition as long as no newer epoch of it is there. It looks before it writes, and what it saw holds for
//! [`LEASE`] by the monotonic clock; whoever takes a partition over waits for [`TAKEOVER`] before it writes, unless the node
//! before it has ended, or had the archive of which it holds the lock itself.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;
use chrono::{SecondsFormat, Utc};
use crossbeam::channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};

use super::member::place;
use super::shared::{Epoch, Shared};
use super::status::{Activity, Progress, Status, is_quiet};
use super::turns::{ADDRESSES_MAX, Clock, EVERY_ADDRESS, Look, Others};
use super::{Batch, ClusterError, Marks, Member, Partition, Route};

/// How long a look at the newest epoch holds.
const LEASE: Duration = Duration::from_secs(10);

/// How long a node waits for the lease of the one before it, with room for what is on its way.
const TAKEOVER: Duration = Duration::from_secs(15);

/// Between two looks at what others have sent: while there is something to do, and while there is not.
const POLL_RUNNING: Duration = Duration::from_secs(2);
const POLL_IDLE: Duration = Duration::from_millis(250);

/// Batches that are read ahead of what the archive has made durable, from each partition.
const AHEAD_MAX: u64 = 4;

/// While addresses are asked, the store's clock is looked at so often.
const CLOCK_EVERY: Duration = Duration::from_secs(30);

/// How long the end of a run waits for a store that does not answer.
const END_PATIENCE: Duration = Duration::from_secs(30);

/// What a checkpoint has made durable.
#[derive(Debug)]
pub struct Commit {
    /// Batches that are not known to be in the store, in order; those that were handed over before are left out.
    pub outbox: Vec<(u16, u64, Bytes)>,
    /// What the node does.
    pub activity: Activity,
    /// Units of cash in the books.
    pub total: u64,
    /// What was sent and received.
    pub marks: Marks,
    /// How far it is.
    pub progress: Progress,
}

/// What the crawl has to know.
#[derive(Debug)]
pub enum Event {
    /// This node may write from now on.
    Begun,
    /// A batch is in the store.
    Sent(u16, u64),
    /// The next batch from a partition, and its bytes.
    Received(Box<Batch>, usize),
    /// Partitions whose archive was made anew so often, if any was.
    Rebuilt(BTreeMap<u16, u32>),
    /// Nothing is left here, and these partitions have something to do or were never begun.
    WaitsFor(Vec<u16>),
    /// With this node's marks as they are, nothing waits anywhere.
    Quiet(Marks),
    /// These addresses of this node are in the store since then.
    Told(Vec<u64>, Instant),
    /// What the others ask, and the time.
    Looked(Look),
    /// The store does not answer; nothing if it does again.
    Trouble(Option<String>),
    /// The node can go on no longer.
    Failed(ClusterError),
}

/// What a crawl says.
enum Said {
    Commit(Box<Commit>),
    Addresses(Vec<u64>),
}

/// A node at work.
#[derive(Debug)]
pub struct Node {
    commits: Sender<Said>,
    events: Receiver<Event>,
    thread: Option<JoinHandle<()>>,
    /// The epoch that it has.
    pub epoch: u64,
    /// Whether it has to wait for the node before it; [`Event::Begun`] says when that is over.
    pub waits: bool,
}

impl Node {
    /// Takes the partition over for the archive in a folder, which this process owns.
    ///
    /// # Errors
    /// When the archive is older than what the partition has exchanged, or the store fails.
    pub fn start(member: &Member, archive: &Path, marks: &Marks) -> Result<Self, ClusterError> {
        let shared = Shared::new(Arc::clone(&member.store))?;
        let partition = member.partition.clone();
        check_fresh(&shared, &partition, marks)?;
        let before = shared.newest_epoch(partition.number)?;
        let mine = Epoch { node: member.node.clone(), place: place(archive), time: now() };
        let waits = before > 0 && !has_ended(&shared, partition.number, before, &mine)?;
        let epoch = before + 1;
        shared.take_epoch(partition.number, epoch, &mine)?;
        let held = Instant::now();
        let ((commits, queue), (sender, events)) = (unbounded(), bounded(64));
        let worker = Worker {
            shared,
            partition,
            node: member.node.clone(),
            epoch,
            held,
            events: sender,
            outbox: BTreeMap::new(),
            status: None,
            is_told: true,
            handed: marks.received.iter().map(|(from, mark)| (*from, mark.number)).collect(),
            marks: marks.clone(),
            addresses: Vec::new(),
            untold: Vec::new(),
            others: Others::default(),
            clock: None,
            before: None,
            waits_for: Vec::new(),
            in_trouble: false,
        };
        let begins = if waits { held + TAKEOVER } else { held };
        let thread =
            thread::Builder::new().name("cluster".to_owned()).spawn(move || worker.work(&queue, begins))?;
        Ok(Self { commits, events, thread: Some(thread), epoch, waits })
    }

    /// Says what a checkpoint has made durable.
    ///
    /// # Errors
    /// When the thread has ended; what it said last says why.
    pub fn commit(&self, commit: Commit) -> Result<(), ClusterError> {
        self.commits.send(Said::Commit(Box::new(commit))).map_err(|_| ClusterError::ThreadEnded)
    }

    /// Tells the others of addresses that are to be asked; [`Event::Told`] says when they can see it.
    pub fn tell_addresses(&self, addresses: Vec<u64>) {
        // A thread that has failed has said so.
        drop(self.commits.send(Said::Addresses(addresses)));
    }

    /// What has happened since it was asked last.
    #[must_use]
    pub fn event(&self) -> Option<Event> {
        self.events.try_recv().ok()
    }

    /// Sends what is left, and ends; gives what has happened in the meantime.
    #[must_use]
    pub fn finish(mut self) -> Vec<Event> {
        let Some(thread) = self.thread.take() else { return Vec::new() };
        let Self { commits, events, .. } = self;
        drop(commits);
        let last = events.iter().collect();
        // A thread that has failed has said so.
        drop(thread.join());
        last
    }
}

/// Refuses an archive that does not know of all that its partition has exchanged.
fn check_fresh(shared: &Shared, partition: &Partition, marks: &Marks) -> Result<(), ClusterError> {
    let behind = |what: String| ClusterError::Behind { partition: partition.number, what };
    if let Some(status) = shared.status(partition.number)?
        && !status.marks.is_within(marks)
    {
        return Err(behind(format!("by the status of epoch {}", status.epoch)));
    }
    for to in (1..=partition.count).filter(|to| *to != partition.number) {
        let last = shared.last_batch(partition.number, to)?;
        if last > marks.sent_to(to) {
            return Err(behind(format!("number {last} to partition {to}")));
        }
    }
    Ok(())
}

/// Whether the node that had the partition before has ended for sure.
fn has_ended(shared: &Shared, partition: u16, before: u64, mine: &Epoch) -> Result<bool, ClusterError> {
    let is_here = shared
        .epoch(partition, before)?
        .is_some_and(|epoch| !mine.place.is_empty() && epoch.place == mine.place);
    let status = shared.status(partition)?;
    let has_said = status.is_some_and(|status| {
        status.epoch == before && matches!(status.activity, Activity::Complete | Activity::Ended(_))
    });
    Ok(is_here || has_said)
}

fn now() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// What is the same in two looks at all partitions when nothing has happened in between.
type Seen = Vec<(u64, Marks)>;

struct Worker {
    shared: Shared,
    partition: Partition,
    node: String,
    epoch: u64,
    /// Since when this node is sure to hold its partition.
    held: Instant,
    events: Sender<Event>,
    outbox: BTreeMap<(u16, u64), Bytes>,
    /// What is told of this node.
    status: Option<Status>,
    /// Whether it was told as it is.
    is_told: bool,
    /// The last batch from each partition that was handed to the crawl.
    handed: BTreeMap<u16, u64>,
    /// What is durable.
    marks: Marks,
    /// What this node asks, and what of it is not known to be in the store.
    addresses: Vec<u64>,
    untold: Vec<u64>,
    others: Others,
    clock: Option<Clock>,
    /// The last look, if it was quiet.
    before: Option<Seen>,
    waits_for: Vec<u16>,
    in_trouble: bool,
}

impl Worker {
    fn work(mut self, commits: &Receiver<Said>, begins: Instant) {
        loop {
            match commits.recv_deadline(begins) {
                Ok(said) => self.take(said),
                Err(RecvTimeoutError::Disconnected) if Instant::now() < begins => return,
                // A run that is over already has something to say, too.
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        // What the node before may still have written is known now.
        let fresh = check_fresh(&self.shared, &self.partition, &self.marks);
        if let Err(error) = fresh.and_then(|()| self.hold(Duration::ZERO)) {
            return self.say(Event::Failed(error));
        }
        self.say(Event::Begun);
        loop {
            if !self.go_round() {
                return;
            }
            let is_idle = self.status.as_ref().is_some_and(|status| status.activity.is_quiet());
            match commits.recv_timeout(if is_idle { POLL_IDLE } else { POLL_RUNNING }) {
                Ok(said) => self.take(said),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.end(),
            }
            while let Ok(said) = commits.try_recv() {
                self.take(said);
            }
        }
    }

    /// Sends, tells and looks once; whether the node can go on.
    fn go_round(&mut self) -> bool {
        let outcome = self.write().and_then(|()| self.look());
        match outcome {
            Ok(()) => {
                if std::mem::take(&mut self.in_trouble) {
                    self.say(Event::Trouble(None));
                }
                true
            }
            Err(error) if error.is_passing() => {
                self.in_trouble = true;
                self.say(Event::Trouble(Some(error.to_string())));
                true
            }
            Err(error) => {
                self.say(Event::Failed(error));
                false
            }
        }
    }

    /// The run is over: what is left is sent, if the store lets it.
    fn end(&mut self) {
        let begun = Instant::now();
        loop {
            match self.write() {
                Ok(()) => return,
                Err(error) if error.is_passing() && begun.elapsed() < END_PATIENCE => {
                    tracing::debug!(%error, "the object store of the cluster");
                    thread::sleep(POLL_RUNNING);
                }
                Err(error) => return self.say(Event::Failed(error)),
            }
        }
    }

    fn say(&self, event: Event) {
        // A crawl that has gone needs to know nothing.
        drop(self.events.send(event));
    }

    fn take(&mut self, said: Said) {
        let commit = match said {
            Said::Commit(commit) => commit,
            Said::Addresses(more) => {
                let room = ADDRESSES_MAX.saturating_sub(self.addresses.len());
                self.addresses.extend(more.iter().take(room));
                if more.len() > room && self.addresses.last() != Some(&EVERY_ADDRESS) {
                    self.addresses.push(EVERY_ADDRESS);
                }
                return self.untold.extend(more);
            }
        };
        let Commit { outbox, activity, total, marks, progress } = *commit;
        self.outbox.extend(outbox.into_iter().map(|(to, number, bytes)| ((to, number), bytes)));
        self.marks = marks.clone();
        self.is_told = false;
        self.status = Some(Status {
            partition: self.partition.number,
            epoch: self.epoch,
            node: self.node.clone(),
            time: now(),
            activity,
            total,
            marks,
            progress,
        });
    }

    /// Makes sure that nobody else has the partition; what was seen within `age` still holds.
    fn hold(&mut self, age: Duration) -> Result<(), ClusterError> {
        if self.held.elapsed() < age {
            return Ok(());
        }
        let looked = Instant::now();
        let newest = self.shared.newest_epoch(self.partition.number)?;
        if newest != self.epoch {
            let node = self
                .shared
                .epoch(self.partition.number, newest)?
                .map_or_else(String::new, |epoch| epoch.node);
            let partition = self.partition.number;
            return Err(ClusterError::Superseded { partition, epoch: self.epoch, newest, node });
        }
        self.held = looked;
        Ok(())
    }

    /// Tells the status, then sends batches, so that nobody has received what was not told to be sent; then removes what
    /// was received and told to be.
    fn write(&mut self) -> Result<(), ClusterError> {
        let needs_clock =
            !self.addresses.is_empty() && self.clock.is_none_or(|clock| clock.age() >= CLOCK_EVERY);
        if (!self.is_told || needs_clock)
            && let Some(status) = self.status.clone()
        {
            self.hold(LEASE / 2)?;
            self.clock = self.shared.tell(&status)?.or(self.clock);
            self.is_told = true;
        }
        if !self.untold.is_empty() {
            self.hold(LEASE / 2)?;
            self.shared.tell_addresses((self.partition.number, self.epoch), &self.addresses)?;
            let told = std::mem::take(&mut self.untold);
            self.say(Event::Told(told, Instant::now()));
        }
        while let Some((&(to, number), bytes)) = self.outbox.first_key_value() {
            let bytes = bytes.clone();
            self.hold(LEASE / 2)?;
            self.shared.create(&self.route(self.partition.number, to, number).name(), bytes)?;
            self.outbox.pop_first();
            self.say(Event::Sent(to, number));
        }
        Ok(())
    }

    fn route(&self, from: u16, to: u16, number: u64) -> Route {
        Route { cluster: self.partition.cluster.clone(), from, to, number }
    }

    /// Looks at what others have sent and told.
    fn look(&mut self) -> Result<(), ClusterError> {
        let own = self.partition.number;
        for (from, stored) in self.shared.incoming(own)? {
            if from == own || !(1..=self.partition.count).contains(&from) {
                continue;
            }
            let durable = self.marks.received_from(from);
            for (&old, _) in stored.range(..=durable) {
                self.hold(LEASE / 2)?;
                self.shared.delete(&self.route(from, own, old).name())?;
            }
            loop {
                let next = self.handed.get(&from).copied().unwrap_or(0) + 1;
                if next > durable + AHEAD_MAX {
                    break;
                }
                let route = self.route(from, own, next);
                let Some((batch, bytes)) = self.shared.next_batch(&route, &stored, &self.partition)? else {
                    break;
                };
                self.handed.insert(from, next);
                self.say(Event::Received(Box::new(batch), bytes));
            }
        }
        let all = self.shared.statuses(self.partition.count)?;
        if !self.addresses.is_empty() {
            self.look_at_addresses(&all)?;
        }
        self.look_at_rebuilds(&all);
        self.look_for_quiet(&all);
        Ok(())
    }

    fn look_at_addresses(&mut self, all: &[Option<Status>]) -> Result<(), ClusterError> {
        let at = Instant::now();
        let mut told = self.shared.told_addresses()?;
        told.retain(|(partition, _), _| *partition != self.partition.number);
        let has_ended = |partition: u16, epoch: u64| {
            let one = all.iter().flatten().find(|one| (one.partition, one.epoch) == (partition, epoch));
            one.is_some_and(|one| matches!(one.activity, Activity::Complete | Activity::Ended(_)))
        };
        let shared = &self.shared;
        let others = self
            .others
            .look(&told, at, has_ended, |(partition, epoch)| shared.addresses(partition, epoch))?;
        self.say(Event::Looked(Look { others, at, clock: self.clock }));
        Ok(())
    }

    fn look_at_rebuilds(&self, all: &[Option<Status>]) {
        let news = all.iter().flatten().map(|status| (status.partition, status.marks.rebuilds));
        let news: BTreeMap<u16, u32> = news
            .filter(|(partition, rebuilds)| {
                *rebuilds > self.marks.told.get(partition).copied().unwrap_or(0)
                    && *partition != self.partition.number
            })
            .collect();
        if !news.is_empty() {
            self.say(Event::Rebuilt(news));
        }
    }

    /// Looks twice: what was on its way during one look is seen by the next.
    fn look_for_quiet(&mut self, all: &[Option<Status>]) {
        if !is_quiet(all) {
            self.before = None;
            let busy = |(place, status): (usize, &Option<Status>)| {
                let is_busy = status.as_ref().is_none_or(|status| !status.activity.is_quiet());
                is_busy.then_some(place as u16 + 1)
            };
            let busy: Vec<u16> = all.iter().enumerate().filter_map(busy).collect();
            if busy != self.waits_for && !busy.contains(&self.partition.number) && !busy.is_empty() {
                self.say(Event::WaitsFor(busy.clone()));
            }
            self.waits_for = busy;
            return;
        }
        let seen: Seen = all.iter().flatten().map(|status| (status.epoch, status.marks.clone())).collect();
        if self.before.as_ref() == Some(&seen) && self.is_told {
            self.say(Event::Quiet(self.marks.clone()));
        }
        self.before = Some(seen);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Asked;
    use super::*;

    #[test]
    fn a_run_that_is_over_at_once_has_told_so() {
        let store = tempfile::tempdir().unwrap();
        let url = format!("file://{}", store.path().display());
        for number in 1..=30 {
            let asked = Asked { url: url.clone(), number, count: 30, mode: None, node: None };
            let member = Member::find(&asked).unwrap();
            let node = Node::start(&member, store.path(), &Marks::default()).unwrap();
            let activity = Activity::Ended("limit".to_owned());
            let (marks, progress) = (Marks::default(), Progress::default());
            node.commit(Commit { outbox: Vec::new(), activity, total: 0, marks, progress }).unwrap();
            assert!(!node.finish().iter().any(|event| matches!(event, Event::Failed(_))));
            assert!(Shared::new(member.store).unwrap().status(number).unwrap().is_some(), "{number}");
        }
    }
}
