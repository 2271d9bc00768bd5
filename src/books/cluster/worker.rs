//! Talks to the object store for a node, so that the crawl never waits for the store. Runs on a thread of its own or,
//! in tests, as one of many tasks with a simulated clock.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::time::{Duration, Instant};

use archive_base::remote::within;
use bytes::Bytes;
use tokio::sync::mpsc::{Sender, UnboundedReceiver};

use super::node::{Lease, NodeCommit, NodeEvent, ToNode, check_fresh, check_newest, time_of_day};
use super::status::{NodeActivity, NodeStatus, is_quiet, left};
use super::store::{ClusterStore, StatusCache};
use super::turns::{ADDRESSES_MAX, Clock, EVERY_ADDRESS, Look, OtherAddresses};
use super::{ClusterError, Marks, Route};

/// The shortest interval between two looks at what others have sent. With work it is [`super::Spans::poll`]. Without work
/// it is the time since something last arrived divided by [`POLL_PART`], between this and that.
const POLL_IDLE: Duration = Duration::from_millis(250);
const POLL_PART: u32 = 8;

/// Number of batches from each partition that are read ahead of what the archive has made durable.
const AHEAD_MAX: u64 = 4;

/// How long the end of a run waits for a store that does not answer.
const END_PATIENCE: Duration = Duration::from_secs(30);

/// What stays the same between two looks at all partitions if nothing has happened in between.
type QuietLook = Vec<(u64, Marks)>;

pub(super) struct StoreWorker {
    shared: ClusterStore,
    own: Lease,
    queue: UnboundedReceiver<ToNode>,
    events: Sender<NodeEvent>,
    outbox: BTreeMap<(u16, u64), Bytes>,
    /// The status of this node.
    status: Option<NodeStatus>,
    /// Whether the published status has what others wait for, and whether it is current.
    is_published: bool,
    is_current: bool,
    /// How often the node has tried to publish a status, and the number under which the newest is in the store.
    trials: u64,
    published: u64,
    published_at: Instant,
    /// Marks of the published status, or those of the archive at takeover. Received batches are removed when they are
    /// counted here, so that an older copy of the archive is refused.
    reported: Marks,
    /// When the next look is due, and since when nothing has arrived.
    next_look: Instant,
    still_since: Instant,
    /// The last batch from each partition that was passed to the crawl.
    handed: BTreeMap<u16, u64>,
    /// What the archive has made durable.
    marks: Marks,
    /// The addresses that this node asks, and those that are not known to be in the store.
    addresses: Vec<u64>,
    unannounced: Vec<u64>,
    announced_addresses: u64,
    others: OtherAddresses,
    known_statuses: StatusCache,
    clock: Option<Clock>,
    /// The last look, if it was quiet.
    before: Option<QuietLook>,
    waits_for: Vec<u16>,
    /// The partitions that had ended and were sent something since, while no others have work, and since when.
    left: Option<(Vec<u16>, Instant)>,
    hungry: BTreeSet<u16>,
    /// Whether this node is asked to end, and whether the crawl knows.
    is_asked: bool,
    has_passed_on: bool,
    in_trouble: bool,
}

impl StoreWorker {
    pub(super) fn new(
        shared: ClusterStore,
        own: Lease,
        marks: Marks,
        queue: UnboundedReceiver<ToNode>,
        events: Sender<NodeEvent>,
    ) -> Self {
        let held = own.held;
        Self {
            shared,
            own,
            queue,
            events,
            outbox: BTreeMap::new(),
            status: None,
            is_published: true,
            is_current: true,
            trials: 0,
            published: 0,
            published_at: held,
            reported: marks.clone(),
            next_look: held,
            still_since: held,
            handed: marks.received.iter().map(|(from, mark)| (*from, mark.number)).collect(),
            marks,
            addresses: Vec::new(),
            unannounced: Vec::new(),
            announced_addresses: 0,
            others: OtherAddresses::default(),
            known_statuses: StatusCache::new(),
            clock: None,
            before: None,
            waits_for: Vec::new(),
            left: None,
            hungry: BTreeSet::new(),
            is_asked: false,
            has_passed_on: false,
            in_trouble: false,
        }
    }

    /// Works until the crawl is gone, or the node cannot continue.
    pub(super) async fn work(mut self) {
        if self.shared.time.now() < self.own.begins
            && let Err(error) = self.inherit_addresses().await
        {
            // The addresses will be announced when they are asked.
            tracing::debug!(%error, "the addresses of the previous node");
        }
        loop {
            let left = self.own.begins.saturating_duration_since(self.shared.time.now());
            match within(&*self.shared.time, left, self.queue.recv()).await {
                Some(Some(said)) => self.take(said),
                Some(None) if self.shared.time.now() < self.own.begins => return,
                // A run that is already over also has something to publish.
                Some(None) | None => break,
            }
        }
        // Everything that the previous node may have written is visible now.
        if let Err(error) = self.begin().await {
            return self.say(NodeEvent::Failed(error)).await;
        }
        self.say(NodeEvent::Begun).await;
        loop {
            if !self.go_round().await {
                return;
            }
            let pause = self.next_look.saturating_duration_since(self.shared.time.now());
            match within(&*self.shared.time, pause, self.queue.recv()).await {
                Some(Some(said)) => self.take(said),
                Some(None) => return self.end().await,
                None => {}
            }
            while let Ok(said) = self.queue.try_recv() {
                self.take(said);
            }
        }
    }

    async fn begin(&mut self) -> Result<(), ClusterError> {
        // Not the marks of a new checkpoint, whose batches may have numbers that the previous node has used.
        check_fresh(&self.shared, &self.own.partition, &self.reported, self.own.known).await?;
        self.check().await
    }

    /// Announces the addresses of the previous node as this node's own, so that others have seen them before its lease
    /// ends.
    async fn inherit_addresses(&mut self) -> Result<(), ClusterError> {
        let (partition, epoch) = (self.own.partition.number, self.own.epoch);
        let announced = self.shared.announced_addresses().await?;
        let Some((&before, &count)) = announced.range((partition, 0)..(partition, epoch)).next_back() else {
            return Ok(());
        };
        self.addresses = self.shared.addresses(before, count).await?;
        self.hold().await?;
        self.shared.announce_addresses((partition, epoch), &self.addresses).await?;
        self.announced_addresses = self.addresses.len() as u64;
        self.say(NodeEvent::Announced(self.addresses.clone(), self.shared.time.now())).await;
        Ok(())
    }

    /// Publishes, sends and, if due, looks. Returns whether the node can continue.
    async fn go_round(&mut self) -> bool {
        let mut outcome = self.write().await;
        if outcome.is_err() || self.shared.time.now() >= self.next_look {
            if outcome.is_ok() {
                outcome = self.look().await;
            }
            let now = self.shared.time.now();
            let is_idle = self.status.as_ref().is_some_and(|status| status.activity.is_quiet());
            let still = now.saturating_duration_since(self.still_since) / POLL_PART;
            let poll = self.shared.spans.poll();
            self.next_look = now + if is_idle { still.clamp(POLL_IDLE, poll) } else { poll };
        }
        match outcome {
            Ok(()) => {
                if mem::take(&mut self.in_trouble) {
                    self.say(NodeEvent::Trouble(None)).await;
                }
                if self.is_asked && !mem::replace(&mut self.has_passed_on, true) {
                    self.say(NodeEvent::Drain).await;
                }
                true
            }
            Err(error) if error.is_passing() => {
                self.in_trouble = true;
                self.say(NodeEvent::Trouble(Some(error.to_string()))).await;
                true
            }
            Err(error) => {
                self.say(NodeEvent::Failed(error)).await;
                false
            }
        }
    }

    /// Sends the remaining data at the end of a run, if the store allows.
    async fn end(&mut self) {
        let begun = self.shared.time.now();
        self.is_published &= self.is_current;
        loop {
            match self.write().await {
                Ok(()) => return,
                Err(error) if error.is_passing() && self.shared.time.now() < begun + END_PATIENCE => {
                    tracing::debug!(%error, "the object store of the cluster");
                    self.shared.time.sleep(self.shared.spans.poll()).await;
                }
                Err(error) => return self.say(NodeEvent::Failed(error)).await,
            }
        }
    }

    async fn say(&self, event: NodeEvent) {
        // If the crawl is gone, nobody needs the event.
        drop(self.events.send(event).await);
    }

    fn take(&mut self, said: ToNode) {
        let commit = match said {
            ToNode::Commit(commit) => commit,
            ToNode::Addresses(more) => {
                let room = ADDRESSES_MAX.saturating_sub(self.addresses.len());
                self.addresses.extend(more.iter().take(room));
                if more.len() > room && self.addresses.last() != Some(&EVERY_ADDRESS) {
                    self.addresses.push(EVERY_ADDRESS);
                }
                return self.unannounced.extend(more);
            }
        };
        let NodeCommit { outbox, activity, total, marks, progress } = *commit;
        self.outbox.extend(outbox.into_iter().map(|(to, number, bytes)| ((to, number), bytes)));
        let is_news = !self.outbox.is_empty()
            || self.status.as_ref().is_none_or(|before| {
                before.activity != activity || activity.is_quiet() && before.marks != marks
            });
        self.is_published &= !is_news;
        self.is_current = false;
        if is_news && activity.is_quiet() {
            self.still_since = self.shared.time.now();
            self.next_look = self.still_since;
        }
        self.marks = marks.clone();
        self.status = Some(NodeStatus {
            partition: self.own.partition.number,
            epoch: self.own.epoch,
            node: self.own.node.clone(),
            time: time_of_day(&*self.shared.time),
            activity,
            total,
            marks,
            progress,
        });
    }

    /// Checks that no other node has the partition, unless it was checked within half a lease.
    async fn hold(&mut self) -> Result<(), ClusterError> {
        if self.shared.time.now() < self.own.held + self.shared.spans.lease() / 2 {
            return Ok(());
        }
        self.check().await
    }

    /// Checks that no other node has the partition.
    async fn check(&mut self) -> Result<(), ClusterError> {
        let looked = self.shared.time.now();
        self.is_asked |= check_newest(&self.shared, self.own.partition.number, self.own.epoch).await?;
        self.own.held = looked;
        Ok(())
    }

    /// Publishes the status, then addresses, then sends batches, so that no batch is received before a published status
    /// counts it as sent.
    async fn write(&mut self) -> Result<(), ClusterError> {
        let (now, own) = (self.shared.time.now(), (self.own.partition.number, self.own.epoch));
        let pulse = self.shared.spans.pulse();
        let needs_clock =
            !self.addresses.is_empty() && self.clock.is_none_or(|clock| clock.age(now) >= pulse);
        if (!self.is_published || needs_clock || now >= self.published_at + pulse)
            && let Some(status) = self.status.clone()
        {
            self.hold().await?;
            self.trials += 1;
            self.clock = self.shared.publish(&status, self.trials).await?.or(self.clock);
            (self.is_published, self.is_current, self.published_at) = (true, true, now);
            self.reported = status.marks;
            // A node that lists the folder during this write may see only the previous status.
            let before = mem::replace(&mut self.published, self.trials);
            self.shared.forget_statuses(own, before).await?;
        }
        if !self.unannounced.is_empty() {
            self.hold().await?;
            self.shared.announce_addresses(own, &self.addresses).await?;
            let announced = mem::take(&mut self.unannounced);
            self.say(NodeEvent::Announced(announced, self.shared.time.now())).await;
            let before = mem::replace(&mut self.announced_addresses, self.addresses.len() as u64);
            self.shared.forget_addresses(own, before).await?;
        }
        while let Some((&(to, number), bytes)) = self.outbox.first_key_value() {
            let bytes = bytes.clone();
            self.hold().await?;
            self.shared.create(&self.route(self.own.partition.number, to, number).name(), bytes).await?;
            self.outbox.pop_first();
            self.say(NodeEvent::Sent(to, number)).await;
        }
        Ok(())
    }

    fn route(&self, from: u16, to: u16, number: u64) -> Route {
        Route { cluster: self.own.partition.cluster.clone(), from, to, number }
    }

    /// Looks at what others have sent and published.
    async fn look(&mut self) -> Result<(), ClusterError> {
        let own = self.own.partition.number;
        // Thus a node notices soon that it has lost its partition or is asked to leave it, even while it has nothing to
        // write.
        self.hold().await?;
        for (from, stored) in self.shared.incoming(own).await? {
            if from == own || !(1..=self.own.partition.count).contains(&from) {
                continue;
            }
            let durable = self.marks.received_from(from);
            for (&old, _) in stored.range(..=self.reported.received_from(from)) {
                self.hold().await?;
                self.shared.delete(&self.route(from, own, old).name()).await?;
            }
            loop {
                let next = self.handed.get(&from).copied().unwrap_or(0) + 1;
                if next > durable + AHEAD_MAX {
                    break;
                }
                let route = self.route(from, own, next);
                let next_batch = match self.shared.next_batch(&route, &stored, &self.own.partition).await {
                    Err(error @ ClusterError::Batch(_)) => {
                        // Another node may have the partition now, and has removed the batches that it received.
                        self.check().await?;
                        return Err(error);
                    }
                    next_batch => next_batch?,
                };
                let Some((batch, bytes)) = next_batch else {
                    break;
                };
                self.handed.insert(from, next);
                self.still_since = self.shared.time.now();
                self.say(NodeEvent::Received(Box::new(batch), bytes)).await;
            }
        }
        let all = self.shared.statuses(self.own.partition.count, &mut self.known_statuses).await?;
        if !self.addresses.is_empty() {
            self.look_at_addresses(&all).await?;
        }
        self.look_at_rebuilds(&all).await;
        self.look_for_hungry(&all).await;
        self.look_for_quiet(&all).await
    }

    async fn look_at_addresses(&mut self, all: &[Option<NodeStatus>]) -> Result<(), ClusterError> {
        let at = self.shared.time.now();
        let mut announced = self.shared.announced_addresses().await?;
        announced.retain(|(partition, _), _| *partition != self.own.partition.number);
        let has_ended = |partition: u16, epoch: u64| {
            let one = all.iter().flatten().find(|one| (one.partition, one.epoch) == (partition, epoch));
            one.is_some_and(|one| one.activity.is_over())
        };
        let mut read = BTreeMap::new();
        for node in self.others.unread(&announced) {
            read.insert(node, self.shared.addresses(node, announced[&node]).await?);
        }
        let others = self.others.look(&announced, read, at, self.shared.spans, has_ended);
        self.hold().await?;
        self.say(NodeEvent::Looked(Look { others, at, held: self.own.held, clock: self.clock })).await;
        Ok(())
    }

    async fn look_at_rebuilds(&self, all: &[Option<NodeStatus>]) {
        let news = all.iter().flatten().map(|status| (status.partition, status.marks.rebuilds));
        let news: BTreeMap<u16, u32> = news
            .filter(|(partition, rebuilds)| {
                *rebuilds > self.marks.told.get(partition).copied().unwrap_or(0)
                    && *partition != self.own.partition.number
            })
            .collect();
        if !news.is_empty() {
            self.say(NodeEvent::Rebuilt(news)).await;
        }
    }

    async fn look_for_hungry(&mut self, all: &[Option<NodeStatus>]) {
        let idle = all.iter().flatten().filter(|status| status.activity == NodeActivity::Idle);
        let hungry: BTreeSet<u16> = idle.map(|status| status.partition).collect();
        if hungry != self.hungry {
            self.hungry.clone_from(&hungry);
            self.say(NodeEvent::Hungry(hungry)).await;
        }
    }

    /// Requires two equal looks, since what is in flight during one is seen by the next.
    async fn look_for_quiet(&mut self, all: &[Option<NodeStatus>]) -> Result<(), ClusterError> {
        let is_left = self.look_for_left(all).await?;
        if !is_left && !is_quiet(all, &[]) {
            self.before = None;
            let busy = |(place, status): (usize, &Option<NodeStatus>)| {
                let is_busy = status.as_ref().is_none_or(|status| !status.activity.is_quiet());
                is_busy.then_some(place as u16 + 1)
            };
            let busy: Vec<u16> = all.iter().enumerate().filter_map(busy).collect();
            if busy != self.waits_for && !busy.contains(&self.own.partition.number) && !busy.is_empty() {
                self.say(NodeEvent::WaitsFor(busy.clone())).await;
            }
            self.waits_for = busy;
            return Ok(());
        }
        let seen: QuietLook =
            all.iter().flatten().map(|status| (status.epoch, status.marks.clone())).collect();
        if self.before.as_ref() == Some(&seen) && self.is_published {
            self.say(NodeEvent::Quiet(self.marks.clone())).await;
        }
        self.before = Some(seen);
        Ok(())
    }

    /// Whether only partitions that had ended as complete have work, and no node has begun them again for some time.
    async fn look_for_left(&mut self, all: &[Option<NodeStatus>]) -> Result<bool, ClusterError> {
        let mut now_left = left(all);
        if !now_left.is_empty() {
            // A node that has just begun has not published anything.
            let epochs = self.shared.newest_epochs().await?;
            let is_begun =
                |one: &NodeStatus| epochs.get(&one.partition).is_some_and(|(epoch, _)| *epoch > one.epoch);
            now_left
                .retain(|number| !all.iter().flatten().any(|one| one.partition == *number && is_begun(one)));
        }
        if now_left.is_empty() || !is_quiet(all, &now_left) {
            self.left = None;
            return Ok(false);
        }
        let (now, patience) = (self.shared.time.now(), self.shared.spans.left_patience());
        if self.left.as_ref().is_none_or(|(known, _)| *known != now_left) {
            self.left = Some((now_left.clone(), now));
            self.say(NodeEvent::Left(now_left, patience)).await;
        }
        Ok(self.left.as_ref().is_some_and(|(_, since)| now >= *since + patience))
    }
}
