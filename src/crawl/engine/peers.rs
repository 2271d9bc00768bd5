//! A run and the other nodes of its cluster: it receives their batches, reports every checkpoint to them, and ends
//! together with them.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use archive_books::cluster::{
    Batch, ClusterError, ClusterNode, ExchangeState, Mode, NextStep, NodeActivity, NodeCommit, NodeEvent,
    NodeProgress, Turns,
};
use archive_books::ledger::Credits;

use archive_base::runs::Exchanged;

use super::super::options::EndReason;
use super::copies::CrawlCopies;
use super::{CrawlError, EngineRun};

/// Maximum bytes that wait to be sent: beyond it, the crawl pauses until the object store accepts some.
const OUTBOX_BYTES_MAX: usize = 64 << 20;

/// Interval between announcements of new addresses to the others.
const ANNOUNCE_EVERY: Duration = Duration::from_secs(1);

/// An idle partition gets what waits for it after the interval at which it looks. The time doubles while it stays idle,
/// because then it got nothing new.
const FEED_AFTER_MAX: Duration = Duration::from_secs(30);

/// The checkpoints made for idle partitions take at most one part in this many of the time.
const FEED_PART: u32 = 20;

/// What this node knows about the others.
pub(super) struct Peers {
    node: ClusterNode,
    has_begun: bool,
    exchange: ExchangeState,
    trouble: Option<String>,
    /// When addresses were last announced.
    announced_at: Option<Instant>,
    /// Interval at which the nodes look at what others have sent.
    poll: Duration,
    /// Idle partitions; `told` is the time of the last report to others, and `feed_after` the minimum interval to the
    /// next.
    hungry: BTreeSet<u16>,
    told: Option<Instant>,
    feed_after: Duration,
    /// When a checkpoint last reported that this partition is idle.
    rested: Option<Instant>,
    /// Whether another node is to take over the partition.
    is_drained: bool,
    /// Links and bytes sent before this run.
    sent_before: (u64, u64),
}

impl Peers {
    /// Returns the epoch of this node.
    pub(super) fn epoch(&self) -> u64 {
        self.node.epoch
    }
}

impl EngineRun<'_> {
    /// Takes over the run's partition, if it has one.
    pub(super) fn join_peers(&mut self) -> Result<(), CrawlError> {
        let Some(member) = &self.options.cluster else { return Ok(()) };
        if member.partition.count > 1 {
            let (spans, partition) = (member.spans(), &member.partition);
            if self.options.politeness.address_delay > spans.address_delay_max() {
                return Err(CrawlError::Cluster(ClusterError::AddressDelay(spans.address_delay_max())));
            }
            self.frontier.turns = Some(Turns::new(partition.number, partition.count, spans));
        }
        let marks = self.recorder.credits().marks();
        let known = Credits::epoch(self.recorder.state())?;
        let node = ClusterNode::start(member, self.recorder.store().path(), &marks, known)
            .map_err(CrawlError::Cluster)?;
        Credits::set_epoch(self.recorder.state_mut(), node.epoch)?;
        let partition = &member.partition;
        self.notice(format!("partition {partition}, epoch {}, mode {}", node.epoch, partition.mode));
        self.peers = Some(Peers {
            has_begun: !node.waits,
            node,
            exchange: ExchangeState::default(),
            trouble: None,
            announced_at: None,
            poll: member.spans().poll(),
            hungry: BTreeSet::new(),
            told: None,
            feed_after: member.spans().poll(),
            rested: None,
            is_drained: false,
            sent_before: marks.sent_in_all(),
        });
        self.status.exchanged = Some(Exchanged::default());
        Ok(())
    }

    /// Counts what this run has sent to other partitions.
    pub(super) fn count_exchanged(&mut self) {
        let Self { peers: Some(peers), status, recorder, .. } = self else { return };
        let (links, bytes) = recorder.credits().marks().sent_in_all();
        let (links_before, bytes_before) = peers.sent_before;
        if let Some(exchanged) = &mut status.exchanged {
            exchanged.links = links.saturating_sub(links_before);
            exchanged.bytes = bytes.saturating_sub(bytes_before);
        }
    }

    /// Counts a page, if it belongs to another partition.
    pub(super) fn count_abroad(&mut self, url: &str) {
        if let Some(exchanged) = &mut self.status.exchanged {
            exchanged.abroad += u64::from(self.recorder.credits().is_abroad(url));
        }
    }

    /// Whether links are exchanged with other partitions.
    pub(super) fn exchanges(&self) -> bool {
        self.recorder.credits().partition().is_some_and(|own| own.mode == Mode::Exchange)
    }

    /// Handles events from the other nodes.
    pub(super) fn hear_peers(&mut self, now: Instant) -> Result<(), CrawlError> {
        while let Some(event) = self.peers.as_mut().and_then(|peers| peers.node.event()) {
            self.hear(event, now)?;
        }
        if let (Some(peers), Some(turns)) = (&mut self.peers, &mut self.frontier.turns)
            && peers.announced_at.is_none_or(|at| now >= at + ANNOUNCE_EVERY)
        {
            let unannounced = turns.take_unannounced();
            if !unannounced.is_empty() {
                peers.announced_at = Some(now);
                peers.node.announce_addresses(unannounced);
            }
        }
        Ok(())
    }

    fn hear(&mut self, event: NodeEvent, now: Instant) -> Result<(), CrawlError> {
        let Some(peers) = &mut self.peers else { return Ok(()) };
        match event {
            NodeEvent::Begun => peers.has_begun = true,
            NodeEvent::Trouble(trouble) => peers.trouble = trouble,
            NodeEvent::Hungry(hungry) => {
                peers.feed_after = peers.poll;
                peers.hungry = hungry;
            }
            NodeEvent::Drain => {
                peers.is_drained = true;
                self.notice(
                    "asked to leave the partition to another node (archive cluster drain)".to_owned(),
                );
            }
            NodeEvent::Announced(addresses, at) => {
                if let Some(turns) = &mut self.frontier.turns {
                    turns.announced(&addresses, at);
                }
            }
            NodeEvent::Looked(look) => {
                if let Some(turns) = &mut self.frontier.turns {
                    turns.see(look);
                }
            }
            NodeEvent::Quiet(marks) => peers.exchange.set_quiet(marks),
            NodeEvent::Failed(error) => return Err(CrawlError::Cluster(error)),
            NodeEvent::Sent(to, number) => Credits::forget_sent(self.recorder.state_mut(), to, number)?,
            NodeEvent::Received(batch, bytes) => self.take_in(&batch, bytes, now)?,
            NodeEvent::Rebuilt(rebuilt) => {
                let (credits, state) = self.recorder.books();
                credits.name_again(state, &rebuilt)?;
            }
            NodeEvent::WaitsFor(partitions) => {
                let list = listed(&partitions);
                self.notice(format!("nothing waits here; waiting for what other partitions send: {list}"));
            }
            NodeEvent::Left(partitions, patience) => self.notice(format!(
                "nothing waits here; partitions that have ended have something to do again: {}; begin them, or this crawl ends in {} s",
                listed(&partitions),
                patience.as_secs()
            )),
        }
        Ok(())
    }

    fn take_in(&mut self, batch: &Batch, bytes: usize, now: Instant) -> Result<(), CrawlError> {
        let mut candidates = std::mem::take(&mut self.candidates);
        let (credits, state) = self.recorder.books();
        let is_taken = credits.receive(state, batch, bytes, &mut candidates)?;
        if let Some(peers) = &mut self.peers {
            peers.exchange.add_received(is_taken);
        }
        for candidate in candidates.drain(..) {
            // In a refresh, new pages are left to the next crawl.
            if self.discovering {
                self.enqueue(candidate, now)?;
            }
        }
        self.candidates = candidates;
        Ok(())
    }

    /// Returns why the crawl has to wait for the object store.
    pub(super) fn peers_pause(&self) -> Option<String> {
        let peers = self.peers.as_ref()?;
        if !peers.has_begun {
            return Some(
                "another node had this partition; waiting until it surely writes no more".to_owned(),
            );
        }
        if let Some((bytes, trouble)) = self.copies.as_ref().map(CrawlCopies::waiting)
            && bytes > OUTBOX_BYTES_MAX
        {
            let trouble = trouble.unwrap_or("a copy is under way");
            return Some(format!(
                "too much waits for a copy of the archive before it can be sent: {trouble}"
            ));
        }
        let trouble = peers.trouble.as_ref()?;
        let waiting: usize = Credits::outbox(self.recorder.state()).map(|(_, _, bytes)| bytes.len()).sum();
        (waiting > OUTBOX_BYTES_MAX).then(|| {
            format!(
                "the object store of the cluster accepts nothing, and too much waits to be sent: {trouble}"
            )
        })
    }

    /// Lets the next checkpoint hold back small batches, except for idle partitions.
    pub(super) fn hold_back(&mut self) {
        if let Some(peers) = &self.peers {
            self.recorder.books().0.hold_back(&peers.hungry);
        }
    }

    /// Makes a checkpoint if idle partitions wait for what it would send.
    pub(super) fn feed_peers(&mut self, now: Instant) -> Result<(), CrawlError> {
        let Some(peers) = &self.peers else { return Ok(()) };
        if peers.told.is_some_and(|told| now < told + peers.feed_after)
            || !self.recorder.credits().leaves_for(&peers.hungry)
        {
            return Ok(());
        }
        let begun = Instant::now();
        self.hold_back();
        self.checkpoint()?;
        if let Some(peers) = &mut self.peers {
            let rest = begun.elapsed() * FEED_PART;
            peers.feed_after = (peers.feed_after * 2).min(FEED_AFTER_MAX).max(rest);
        }
        Ok(())
    }

    /// Whether another node is to take over the partition.
    pub(super) fn is_drained(&self) -> bool {
        self.peers.as_ref().is_some_and(|peers| peers.is_drained)
    }

    /// Reports to the others what a checkpoint has made durable, or holds the report until a copy covers it.
    pub(super) fn report_to_peers(&mut self) -> Result<(), CrawlError> {
        self.count_gathered();
        let Self { peers, recorder, frontier, status, .. } = self;
        let Some(peers) = peers.as_mut() else { return Ok(()) };
        peers.told = Some(Instant::now());
        let progress = NodeProgress {
            waiting: frontier.queued(),
            waiting_cash: frontier.waiting_cash(),
            pages: status.pages,
            abroad: status.exchanged.map_or(0, |exchanged| exchanged.abroad),
            read: status.read,
            known: if self.discovering { recorder.credits().pages().pages() } else { 0 },
            gathered_ppm: (status.gathered * 1e6).round() as u32,
            captures: recorder.state().totals().captures,
        };
        let credits = recorder.credits();
        let (outbox, total) = (Credits::outbox(recorder.state()), credits.pages().total().units());
        let commit = peers.exchange.commit(outbox, total, credits.marks(), progress);
        match &mut self.copies {
            Some(copies) => {
                copies.hold(commit);
                Ok(())
            }
            None => self.pass_on(commit),
        }
    }

    /// Passes a checkpoint to the node, which reports it to the others.
    pub(super) fn pass_on(&mut self, commit: NodeCommit) -> Result<(), CrawlError> {
        let Some(peers) = &self.peers else { return Ok(()) };
        match peers.node.commit(commit) {
            // If the node has ended, its events give the reason.
            Err(ClusterError::ThreadEnded) => {
                self.hear_peers(Instant::now())?;
                Err(CrawlError::Cluster(ClusterError::ThreadEnded))
            }
            handed => handed.map_err(CrawlError::Cluster),
        }
    }

    /// Notes that this partition is not idle.
    pub(super) fn set_busy(&mut self) {
        if let Some(peers) = &mut self.peers {
            peers.exchange.set_busy();
        }
    }

    /// Whether the run is over, now that this partition is idle: a crawl ends only if all are idle and nothing is in
    /// transit.
    pub(super) fn nothing_waits_anywhere(&mut self) -> Result<bool, CrawlError> {
        let Some(peers) = self.peers.as_mut().filter(|_| self.discovering) else { return Ok(true) };
        match self.recorder.credits().partition().map(|own| own.mode) {
            Some(Mode::Exchange) => {}
            Some(Mode::Crossover) => return self.cross_over(),
            Some(Mode::Firewall) | None => return Ok(true),
        }
        // A partition that receives single pages is idle again and again.
        if peers.rested.is_some_and(|rested| rested.elapsed() < peers.poll / 2) {
            return Ok(false);
        }
        let credits = self.recorder.credits();
        match peers.exchange.rest(&credits.marks(), credits.has_leaving()) {
            NextStep::Report => {
                peers.rested = Some(Instant::now());
                self.checkpoint().map(|_| false)
            }
            NextStep::Wait => Ok(false),
            NextStep::Over => Ok(true),
        }
    }

    /// Queues the pages of other partitions found so far; returns whether there were none.
    fn cross_over(&mut self) -> Result<bool, CrawlError> {
        let before = self.frontier.queued();
        let (credits, _) = self.recorder.books();
        credits.set_crossing(true);
        self.enqueue_waiting()?;
        let (credits, _) = self.recorder.books();
        credits.set_crossing(false);
        Ok(self.frontier.queued() == before)
    }

    /// Reports the end of the run to the others, once everything is durable.
    pub(super) fn report_end_to_peers(&mut self, end: EndReason) -> Result<(), CrawlError> {
        let Some(peers) = &mut self.peers else { return Ok(()) };
        peers.exchange.set_end(match end {
            EndReason::Drained => NodeActivity::Drained,
            _ if self.options.is_continued => NodeActivity::Running,
            // A refresh does not change whether another node is to continue the crawl.
            _ if !self.discovering && peers.node.is_unfinished => {
                NodeActivity::Ended(EndReason::Stopped.name().to_owned())
            }
            _ if !self.discovering => NodeActivity::Ended("refresh".to_owned()),
            EndReason::Complete | EndReason::Waiting => NodeActivity::Complete,
            _ => NodeActivity::Ended(end.name().to_owned()),
        });
        self.report_to_peers()
    }

    /// Sends what is left to send, and leaves the cluster.
    pub(super) fn leave_peers(&mut self) -> Result<(), CrawlError> {
        let Some(peers) = self.peers.take() else { return Ok(()) };
        let mut is_sent = false;
        for event in peers.node.finish() {
            match event {
                NodeEvent::Sent(to, number) => {
                    Credits::forget_sent(self.recorder.state_mut(), to, number)?;
                    is_sent = true;
                }
                NodeEvent::Failed(error) if error.is_passing() => {
                    self.warn(format!("{error}; the next run sends what is left to send"));
                }
                NodeEvent::Failed(error) => return Err(CrawlError::Cluster(error)),
                _ => {}
            }
        }
        if is_sent {
            self.recorder.conclude()?;
        }
        Ok(())
    }
}

fn listed(partitions: &[u16]) -> String {
    partitions.iter().map(u16::to_string).collect::<Vec<_>>().join(", ")
}
