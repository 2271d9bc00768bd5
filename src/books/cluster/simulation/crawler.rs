//! A small web, and a crawler of one partition of it, with books, a disk that keeps what was committed, and politeness.
//! All messages to and from the cluster pass through the real code of the cluster.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use archive_base::remote::Time as _;
use archive_math::importance::Cash;
use bytes::Bytes;
use futures_util::future::join;

use super::super::node::{ClusterNode, check_newest};
use super::super::store::{ClusterStore, Epoch};
use super::super::{
    Batch, ClusterError, ExchangeState, Marks, Named, NextStep, NodeActivity, NodeCommit, NodeEvent,
    NodeProgress, Partition, Route, Turns,
};
use super::world::World;

/// Number of pages in a batch: few, so that there are many batches.
const BATCH_PAGES: usize = 3;

/// Index of a page in the web.
pub(super) type PageId = usize;

/// The web.
#[derive(Default)]
pub(super) struct Web {
    pub(super) urls: Vec<String>,
    pub(super) owners: Vec<u16>,
    addresses: Vec<IpAddr>,
    links: Vec<Vec<PageId>>,
    ids: BTreeMap<String, PageId>,
    pub(super) seeds: Vec<PageId>,
}

impl Web {
    pub(super) fn new(world: &World, partition: &Partition) -> Self {
        let (sites, addresses) = (4 + world.below(6), 1 + world.below(4));
        let mut web = Self::default();
        for site in 0..sites {
            let name = format!("s{site}.{}", ["de", "fr", "test"][site as usize % 3]);
            for page in 0..1 + world.below(6) {
                web.urls.push(format!("http://{name}/{page}"));
                web.owners.push(partition.of_site(&name));
                web.addresses.push(IpAddr::V4(Ipv4Addr::new(10, 0, 0, (site % addresses) as u8)));
            }
        }
        let count = web.urls.len() as u64;
        web.ids = web.urls.iter().cloned().zip(0..).collect();
        web.links =
            (0..count).map(|_| (0..world.below(6)).map(|_| world.below(count) as usize).collect()).collect();
        web.seeds = (0..1 + world.below(2)).map(|_| world.below(count) as usize).collect();
        web
    }

    /// Returns all pages that the seeds lead to.
    pub(super) fn reachable(&self) -> BTreeSet<PageId> {
        let (mut found, mut open) = (BTreeSet::new(), self.seeds.clone());
        while let Some(page) = open.pop() {
            if found.insert(page) {
                open.extend(&self.links[page]);
            }
        }
        found
    }
}

/// The content of an archive.
#[derive(Clone)]
pub(super) struct Books {
    partition: Partition,
    pub(super) marks: Marks,
    /// Epoch of the last node that wrote.
    epoch: u64,
    outbox: BTreeMap<(u16, u64), Bytes>,
    reserve: u64,
    cash: BTreeMap<PageId, u64>,
    waiting: BTreeSet<PageId>,
    pub(super) fetched: BTreeSet<PageId>,
    leaving: BTreeMap<PageId, u64>,
    /// Pages of other partitions that were named.
    told: BTreeSet<PageId>,
}

impl Books {
    pub(super) fn new(partition: &Partition, web: &Web) -> Self {
        let own = web.seeds.iter().filter(|page| web.owners[**page] == partition.number);
        Self {
            partition: partition.clone(),
            marks: Marks::default(),
            epoch: 0,
            outbox: BTreeMap::new(),
            reserve: partition.initial_cash().units(),
            cash: BTreeMap::new(),
            waiting: own.copied().collect(),
            fetched: BTreeSet::new(),
            leaving: BTreeMap::new(),
            told: BTreeSet::new(),
        }
    }

    pub(super) fn total(&self) -> u64 {
        self.reserve + self.cash.values().sum::<u64>() + self.leaving.values().sum::<u64>()
    }

    fn fetch(&mut self, web: &Web, page: PageId) {
        assert!(
            self.waiting.remove(&page) && self.fetched.insert(page),
            "{} is fetched twice",
            web.urls[page]
        );
        assert_eq!(web.owners[page], self.partition.number, "{} is another partition's", web.urls[page]);
        let taken = self.reserve / 3;
        self.reserve -= taken;
        let amount = self.cash.remove(&page).unwrap_or(0) + taken;
        let links = &web.links[page];
        let share = amount.checked_div(links.len() as u64).unwrap_or(0);
        self.reserve += amount - share * links.len() as u64;
        for &target in links {
            let is_own = web.owners[target] == self.partition.number;
            let accounts = if is_own { &mut self.cash } else { &mut self.leaving };
            *accounts.entry(target).or_insert(0) += share;
            if is_own {
                self.find(target);
            }
        }
    }

    fn find(&mut self, page: PageId) {
        if !self.fetched.contains(&page) {
            self.waiting.insert(page);
        }
    }

    fn receive(&mut self, web: &Web, batch: &Batch, bytes: usize) {
        let from = batch.route.from;
        assert_eq!(
            self.marks.received_from(from) + 1,
            batch.route.number,
            "batches from {from} come out of order"
        );
        self.marks.received.entry(from).or_default().count(batch, bytes);
        for named in &batch.pages {
            let page = web.ids[&named.url];
            *self.cash.entry(page).or_insert(0) += named.cash;
            self.find(page);
        }
        for (url, cash) in &batch.again {
            let page = web.ids[url];
            assert!(self.waiting.contains(&page) || self.fetched.contains(&page), "{url} was never named");
            *self.cash.entry(page).or_insert(0) += cash;
        }
    }

    /// Makes batches of what is for other partitions, except for `holds_back`.
    fn seal(&mut self, web: &Web, holds_back: Option<u16>) {
        let mut parts: BTreeMap<u16, Vec<(Option<Named>, String, u64)>> = BTreeMap::new();
        let is_due = |page: &PageId, _: &mut u64| holds_back != Some(web.owners[*page]);
        for (page, cash) in self.leaving.extract_if(.., is_due) {
            let url = web.urls[page].clone();
            let named =
                || Named { url: url.clone(), cash, depth: 1, hop: 'L', via: None, is_page: true, part: 0 };
            let named = self.told.insert(page).then(named);
            parts.entry(web.owners[page]).or_default().push((named, url, cash));
        }
        for (to, parts) in parts {
            for part in parts.chunks(BATCH_PAGES) {
                let (cluster, number) = (self.partition.cluster.clone(), self.marks.sent_to(to) + 1);
                let route = Route { cluster, from: self.partition.number, to, number };
                let pages = part.iter().filter_map(|(named, ..)| named.clone()).collect();
                let again = part.iter().filter(|(named, ..)| named.is_none());
                let again = again.map(|(_, url, cash)| (url.clone(), *cash)).collect();
                let batch = Batch { route, epoch: self.epoch, pages, again };
                let bytes = batch.write_quickly().unwrap();
                self.marks.sent.entry(to).or_default().count(&batch, bytes.len());
                self.outbox.insert((to, number), bytes.into());
            }
        }
        let expected = self.marks.total(self.partition.initial_cash()).map(Cash::units);
        assert_eq!(Some(self.total()), expected, "the books of partition {}", self.partition);
    }
}

/// A folder with an archive.
pub(super) struct Disk {
    pub(super) place: String,
    pub(super) durable: Books,
    /// Earlier durable states, for old copies.
    pub(super) before: Vec<Books>,
}

/// The newest copy of a partition's archive, and the number of its copies.
pub(super) type Copies = BTreeMap<u16, (u64, Books)>;

/// What an outside observer sees.
#[derive(Default)]
pub(super) struct Board {
    /// The archive whose node began last, by partition.
    pub(super) newest: BTreeMap<u16, Rc<RefCell<Disk>>>,
    /// Copies of archives, if any are made.
    pub(super) copies: Option<Copies>,
    /// Requests by address: time of arrival, and node.
    pub(super) arrivals: BTreeMap<IpAddr, Vec<(Duration, u16, u64)>>,
    pub(super) is_verbose: bool,
}

impl Board {
    pub(super) fn say(&self, world: &World, text: impl FnOnce() -> String) {
        if self.is_verbose {
            println!("{:10.3} {}", world.elapsed().as_secs_f64(), text());
        }
    }
}

/// How a run ended.
#[derive(Debug)]
pub(super) enum Ended {
    Complete,
    Drained,
    Failed(ClusterError),
}

/// A run to be started.
pub(super) struct Crawler {
    pub(super) world: Arc<World>,
    pub(super) shared: ClusterStore,
    pub(super) web: Rc<Web>,
    pub(super) partition: Partition,
    pub(super) disk: Rc<RefCell<Disk>>,
    pub(super) board: Rc<RefCell<Board>>,
    pub(super) address_delay: Duration,
    pub(super) ended: Rc<RefCell<Option<Ended>>>,
}

impl Crawler {
    pub(super) async fn run(self) {
        let mut books = self.disk.borrow().durable.clone();
        let mine =
            Epoch { node: "node".to_owned(), place: self.disk.borrow().place.clone(), time: String::new() };
        let known = (&books.marks, books.epoch, None);
        let taken = ClusterNode::take_over(self.shared.clone(), self.partition.clone(), mine, known).await;
        let ended = match taken {
            Ok((node, worker)) => {
                books.epoch = node.epoch;
                let run = Run {
                    exchange: ExchangeState::default(),
                    turns: Turns::new(self.partition.number, self.partition.count, self.shared.spans),
                    has_begun: !node.waits,
                    announced_at: None,
                    is_asked: false,
                    held: Vec::new(),
                    copying: None,
                    next: BTreeMap::new(),
                    node,
                    books,
                    crawler: &self,
                };
                join(worker.work(), run.run()).await.1
            }
            Err(error) => Ended::Failed(error),
        };
        self.say(|| format!("ends: {ended:?}"));
        *self.ended.borrow_mut() = Some(ended);
    }

    fn say(&self, text: impl FnOnce() -> String) {
        let place = || self.disk.borrow().place.clone();
        self.board
            .borrow()
            .say(&self.world, || format!("partition {} in {}: {}", self.partition, place(), text()));
    }
}

/// A copy in progress.
struct Copying {
    ends: Instant,
    books: Books,
    /// Number of copies when it began.
    before: u64,
    covers: Vec<NodeCommit>,
}

struct Run<'a> {
    crawler: &'a Crawler,
    node: ClusterNode,
    books: Books,
    exchange: ExchangeState,
    turns: Turns,
    has_begun: bool,
    announced_at: Option<Instant>,
    /// Whether the node is asked to end.
    is_asked: bool,
    /// Commits that are reported when a copy contains them.
    held: Vec<NodeCommit>,
    copying: Option<Copying>,
    /// When this node itself may ask an address again.
    next: BTreeMap<IpAddr, Instant>,
}

impl Run<'_> {
    async fn run(mut self) -> Ended {
        let world = &self.crawler.world;
        let mut checkpoint_at = world.now() + world.span(500, 8_000);
        loop {
            if let Some(error) = self.hear() {
                return Ended::Failed(error);
            }
            if self.is_asked {
                return self.leave(NodeActivity::Drained, Ended::Drained).await;
            }
            let mut is_resting = false;
            if self.has_begun {
                self.note_begin();
                if self.books.waiting.is_empty() {
                    match self.exchange.rest(&self.books.marks, !self.books.leaving.is_empty()) {
                        NextStep::Report => self.checkpoint(None).await,
                        NextStep::Wait => is_resting = true,
                        NextStep::Over => return self.leave(NodeActivity::Complete, Ended::Complete).await,
                    }
                } else {
                    self.exchange.set_busy();
                    self.fetch();
                }
            }
            if let Some(error) = self.look_at_copies().await {
                return Ended::Failed(error);
            }
            if world.now() >= checkpoint_at {
                self.checkpoint(Some(world.below(6) as u16)).await;
                checkpoint_at = world.now() + world.span(500, 8_000);
            }
            world.sleep(if is_resting { world.span(200, 400) } else { world.span(20, 300) }).await;
        }
    }

    /// Handles the events. An error ends the run.
    fn hear(&mut self) -> Option<ClusterError> {
        while let Some(event) = self.node.event() {
            match event {
                NodeEvent::Failed(error) => return Some(error),
                event => self.take(event),
            }
        }
        let now = self.crawler.world.now();
        if self.announced_at.is_none_or(|at| now >= at + Duration::from_secs(1)) {
            let unannounced = self.turns.take_unannounced();
            if !unannounced.is_empty() {
                self.announced_at = Some(now);
                self.node.announce_addresses(unannounced);
            }
        }
        None
    }

    fn take(&mut self, event: NodeEvent) {
        match event {
            NodeEvent::Begun => self.has_begun = true,
            NodeEvent::Sent(to, number) => drop(self.books.outbox.remove(&(to, number))),
            NodeEvent::Received(batch, bytes) => {
                self.books.receive(&self.crawler.web, &batch, bytes);
                self.exchange.add_received(true);
            }
            NodeEvent::Quiet(marks) => self.exchange.set_quiet(marks),
            NodeEvent::Announced(addresses, at) => self.turns.announced(&addresses, at),
            NodeEvent::Looked(look) => self.turns.see(look),
            NodeEvent::Drain => self.is_asked = true,
            NodeEvent::Failed(_)
            | NodeEvent::Rebuilt(_)
            | NodeEvent::WaitsFor(_)
            | NodeEvent::Left(..)
            | NodeEvent::Hungry(_)
            | NodeEvent::Trouble(_) => {}
        }
    }

    /// Records that this node's archive is now the one to continue.
    fn note_begin(&self) {
        let (crawler, number) = (self.crawler, self.crawler.partition.number);
        let mut board = crawler.board.borrow_mut();
        let is_newest = board.newest.get(&number).is_some_and(|newest| Rc::ptr_eq(newest, &crawler.disk));
        if !is_newest {
            board.newest.insert(number, Rc::clone(&crawler.disk));
            drop(board);
            crawler.say(|| format!("begins, epoch {}", self.node.epoch));
        }
    }

    /// Fetches a waiting page, if one may be fetched now.
    fn fetch(&mut self) {
        let (world, web) = (&self.crawler.world, &self.crawler.web);
        let (now, delay) = (world.now(), self.crawler.address_delay);
        for page in self.books.waiting.clone() {
            let address = web.addresses[page];
            let is_early = self.next.get(&address).is_some_and(|next| now < *next);
            if is_early || !delay.is_zero() && self.turns.wait(address, delay, now).is_some() {
                continue;
            }
            self.next.insert(address, now + delay);
            let arrival = world.elapsed() + world.span(0, 990);
            let by = (arrival, self.crawler.partition.number, self.node.epoch);
            self.crawler.board.borrow_mut().arrivals.entry(address).or_default().push(by);
            return self.books.fetch(web, page);
        }
    }

    /// Makes everything durable, then reports it; the node may be killed in between. Batches for one partition may be
    /// held back.
    async fn checkpoint(&mut self, holds_back: Option<u16>) {
        let (crawler, world) = (self.crawler, &self.crawler.world);
        self.books.seal(&crawler.web, holds_back);
        {
            let mut disk = crawler.disk.borrow_mut();
            let before = std::mem::replace(&mut disk.durable, self.books.clone());
            disk.before.push(before);
        }
        world.sleep(world.span(0, 50)).await;
        let outbox = self.books.outbox.iter().map(|(&(to, number), bytes)| (to, number, &bytes[..]));
        let (total, marks) = (self.books.total(), self.books.marks.clone());
        let commit = self.exchange.commit(outbox, total, marks, NodeProgress::default());
        match crawler.board.borrow().copies {
            Some(_) => self.held.push(commit),
            // If the worker has ended, its events say why.
            None => drop(self.node.commit(commit)),
        }
    }

    /// Completes a copy that is due, or begins one. An error ends the run.
    async fn look_at_copies(&mut self) -> Option<ClusterError> {
        let (crawler, world, number) = (self.crawler, &self.crawler.world, self.crawler.partition.number);
        match self.copying.take() {
            Some(copying) if world.now() < copying.ends => self.copying = Some(copying),
            Some(Copying { books, before, covers, .. }) => {
                let mut board = crawler.board.borrow_mut();
                let copies = board.copies.get_or_insert_default();
                if copies.get(&number).map_or(0, |(count, _)| *count) == before {
                    copies.insert(number, (before + 1, books));
                    covers.into_iter().for_each(|commit| drop(self.node.commit(commit)));
                } else {
                    self.held.splice(..0, covers);
                }
            }
            None if self.held.is_empty() => {}
            None => {
                let before = crawler
                    .board
                    .borrow()
                    .copies
                    .as_ref()
                    .and_then(|copies| copies.get(&number).map(|(count, _)| *count));
                match check_newest(&crawler.shared, number, self.node.epoch).await {
                    Err(error) if error.is_passing() => {}
                    Err(error) => return Some(error),
                    Ok(_) => {
                        let (ends, books) =
                            (world.now() + world.span(10, 5_000), crawler.disk.borrow().durable.clone());
                        let covers = std::mem::take(&mut self.held);
                        self.copying = Some(Copying { ends, books, before: before.unwrap_or(0), covers });
                    }
                }
            }
        }
        None
    }

    async fn leave(mut self, activity: NodeActivity, ended: Ended) -> Ended {
        self.exchange.set_end(activity);
        self.checkpoint(None).await;
        while !self.held.is_empty() || self.copying.is_some() {
            if let Some(error) = self.look_at_copies().await {
                return Ended::Failed(error);
            }
            self.crawler.world.sleep(Duration::from_millis(50)).await;
            while let Some(event) = self.node.event() {
                match event {
                    NodeEvent::Failed(error) => return Ended::Failed(error),
                    // What arrives now will arrive again in the next run.
                    NodeEvent::Received(..) => {}
                    event => self.take(event),
                }
            }
        }
        let mut events = self.node.leave();
        while let Some(event) = events.recv().await {
            if let NodeEvent::Failed(error) = event {
                return Ended::Failed(error);
            }
        }
        ended
    }
}
