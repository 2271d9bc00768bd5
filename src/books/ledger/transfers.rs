//! An archive that holds one partition of the web: which pages belong to others, what is sent to them, and what they
//! send.
//!
//! A page of another partition is known and has an account, like a page out of scope, and is never fetched. Cash paid
//! into its account waits there for the next checkpoint, which makes a batch of it ([`crate::cluster`]): the batch, its
//! number and the emptied account are committed together.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use archive_math::importance::{Base, Cash};
use archive_storage::address::{site_of, url_hash};
use archive_storage::{HostId, Page, State, StateError, UrlId};

use super::aliases::account_of;
use super::authority::host_name;
use super::credit::Credits;
use super::error::{CreditError, PartitionError};
use super::links::Mention;
use super::page_flags as flags;
use super::settings::{read_setting, write_setting};
use super::waiting_list::Candidate;
use crate::cluster::{Batch, Marks, Mode, Named, Partition, Route};

/// Settings of an archive with a partition: the partition, the marks of batches sent and received, the epoch of its
/// node, and, by destination and number, the batches yet to be sent. Captures hold none of this.
pub(super) const PARTITION: &str = "cluster.partition";
const MARKS: &str = "cluster.marks";
const EPOCH: &str = "cluster.epoch";
const OUTBOX: &str = "cluster.outbox.";

/// Setting with the ids of pages to be reported later. A rebuild, which changes ids, reports everything again.
const HELD: &str = "exchange.held";

/// Batches of fewer pages are held back, but no longer than `HELD_MAX`: one batch is a sixth smaller than two of half
/// its pages, and half the work.
const BATCH_PAGES_MIN: usize = 32;
const HELD_MAX: Duration = Duration::from_secs(60);

/// Common prefix of the names of these settings.
pub const CLUSTER_SETTINGS: &str = "cluster.";

/// Transfers between this partition and the others.
#[derive(Debug)]
pub(super) struct Transfers {
    pub(super) partition: Partition,
    marks: Marks,
    /// Partition of every host, by id.
    owners: Vec<u16>,
    /// Pages to be reported, by the partition that they belong to.
    leaving: BTreeMap<u16, BTreeSet<UrlId>>,
    /// Pages fully reported since this process began, one bit for each URL: only their cash is reported from then on.
    told: Vec<u64>,
    /// If set, the next checkpoint holds small batches back, except for these partitions, which are idle.
    holds_back: Option<BTreeSet<u16>>,
    /// The last time that nothing was held back.
    all_said: Instant,
    /// Whether pages of other partitions are queued for fetching.
    is_crossing: bool,
}

impl Transfers {
    pub(super) fn open(state: &State) -> Result<Option<Self>, CreditError> {
        let Some(partition) = read_setting::<Partition>(state, PARTITION)? else { return Ok(None) };
        let mut owners = Vec::with_capacity(state.host_count() as usize);
        for host in state.hosts() {
            owners.push(partition.of_site(site_of(host_name(&host?.1))));
        }
        let marks = read_setting(state, MARKS)?.unwrap_or_default();
        let (leaving, told, holds_back, is_crossing) = (BTreeMap::new(), Vec::new(), None, false);
        let all_said = Instant::now();
        let mut transfers =
            Self { partition, marks, owners, leaving, told, holds_back, all_said, is_crossing };
        for id in read_setting::<Vec<u32>>(state, HELD)?.unwrap_or_default().into_iter().map(UrlId) {
            transfers.note(id, &state.page(id)?);
        }
        Ok(Some(transfers))
    }

    /// Returns the total cash of an archive with these marks.
    pub(super) fn total(&self) -> Result<Cash, CreditError> {
        self.marks.total(self.partition.initial_cash()).ok_or(CreditError::Setting(MARKS))
    }

    pub(super) fn save(&self, state: &mut State) -> Result<(), CreditError> {
        let held: Vec<u32> = self.leaving.values().flatten().map(|id| id.0).collect();
        if held.is_empty() {
            state.set_setting(HELD, None)?;
        } else {
            write_setting(state, HELD, &held)?;
        }
        write_setting(state, MARKS, &self.marks)
    }

    /// Notes a host, which may be new.
    pub(super) fn note_host(&mut self, host: HostId, authority: &str) {
        if host.index() >= self.owners.len() {
            self.owners.resize(host.index() + 1, self.partition.of_site(site_of(host_name(authority))));
        }
    }

    fn owner(&self, host: HostId) -> u16 {
        self.owners.get(host.index()).copied().unwrap_or(self.partition.number)
    }

    pub(super) fn is_foreign(&self, host: HostId) -> bool {
        self.owner(host) != self.partition.number
    }

    /// Notes that a page is to be reported in full; see [`Transfers::note`].
    pub(super) fn note_changed(&mut self, id: UrlId, page: &Page) {
        if let Some(word) = self.told.get_mut(id.index() / 64) {
            *word &= !(1 << (id.index() % 64));
        }
        self.note(id, page);
    }

    /// Marks a page as fully reported; returns whether it was before.
    fn tell(&mut self, id: UrlId) -> bool {
        let (place, bit) = (id.index() / 64, 1 << (id.index() % 64));
        if place >= self.told.len() {
            self.told.resize(place + 1, 0);
        }
        let before = self.told[place];
        self.told[place] = before | bit;
        before & bit != 0
    }

    /// Notes that a page is to be reported, if it belongs to another partition and [`may_leave`] holds.
    pub(super) fn note(&mut self, id: UrlId, page: &Page) {
        if self.partition.mode == Mode::Exchange && self.is_foreign(page.host) && may_leave(page) {
            self.leaving.entry(self.owner(page.host)).or_default().insert(id);
        }
    }

    /// Takes out the pages that are to be reported now.
    fn take_due(&mut self) -> BTreeMap<u16, BTreeSet<UrlId>> {
        match self.holds_back.take() {
            Some(hungry) if self.all_said.elapsed() < HELD_MAX => {
                let is_due = |to: &u16, pages: &mut BTreeSet<UrlId>| {
                    pages.len() >= BATCH_PAGES_MIN || hungry.contains(to)
                };
                self.leaving.extract_if(.., is_due).collect()
            }
            _ => {
                self.all_said = Instant::now();
                std::mem::take(&mut self.leaving)
            }
        }
    }
}

/// Whether a page of another partition would be fetched if it were in this one.
fn may_leave(page: &Page) -> bool {
    page.flags.has_any(flags::IN_SCOPE | flags::REQUISITE)
        && !page.flags.has_any(flags::READ | flags::ROBOTS)
        && flags::refusal_code(page.flags) == 0
}

impl Credits {
    /// Makes an empty archive a partition, or checks that it is this one.
    ///
    /// # Errors
    /// When it is another partition or none, and when the store fails.
    pub fn join_cluster(state: &mut State, wanted: Option<&Partition>) -> Result<(), CreditError> {
        let now: Option<Partition> = read_setting(state, PARTITION)?;
        match (now, wanted) {
            (Some(now), Some(wanted)) if now != *wanted => Err(PartitionError::Other {
                now: now.to_string(),
                cluster: now.cluster,
                wanted: wanted.to_string(),
                wanted_cluster: wanted.cluster.clone(),
            }
            .into()),
            (Some(now), None) => Err(PartitionError::Alone(now.to_string()).into()),
            (None, Some(_)) if state.url_count() > 0 => Err(PartitionError::NotEmpty.into()),
            (None, Some(wanted)) => write_setting(state, PARTITION, wanted),
            (Some(_), Some(_)) | (None, None) => Ok(()),
        }
    }

    /// Returns the partition of the archive with this state.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn partition_of(state: &State) -> Result<Option<Partition>, CreditError> {
        read_setting(state, PARTITION)
    }

    /// Counts a rebuild of the state: other partitions then report again what they reported before.
    ///
    /// # Errors
    /// When the store fails.
    pub fn note_rebuild(state: &mut State) -> Result<(), CreditError> {
        let Some(mut marks) = read_setting::<Marks>(state, MARKS)? else { return Ok(()) };
        marks.rebuilds += 1;
        write_setting(state, MARKS, &marks)
    }

    /// Returns the archive's partition.
    #[must_use]
    pub fn partition(&self) -> Option<&Partition> {
        self.transfers.as_ref().map(|transfers| &transfers.partition)
    }

    /// Returns the marks of what was sent and received so far.
    #[must_use]
    pub fn marks(&self) -> Marks {
        self.transfers.as_ref().map_or_else(Marks::default, |transfers| transfers.marks.clone())
    }

    /// Returns the partition of a host, if it is not the archive's own.
    #[must_use]
    pub fn foreign_owner(&self, host: HostId) -> Option<u16> {
        let transfers = self.transfers.as_ref()?;
        transfers.is_foreign(host).then(|| transfers.owner(host))
    }

    /// Whether a URL belongs to another partition.
    #[must_use]
    pub fn is_abroad(&self, url: &str) -> bool {
        let site = || site_of(host_name(super::authority(url)));
        self.partition().is_some_and(|partition| partition.of_site(site()) != partition.number)
    }

    /// Whether any page waits to be reported to other partitions.
    #[must_use]
    pub fn has_leaving(&self) -> bool {
        self.transfers.as_ref().is_some_and(|transfers| !transfers.leaving.is_empty())
    }

    /// Whether any page waits to be reported to one of these partitions.
    #[must_use]
    pub fn leaves_for(&self, partitions: &BTreeSet<u16>) -> bool {
        let leaving = self.transfers.as_ref().map(|transfers| &transfers.leaving);
        leaving.is_some_and(|leaving| partitions.iter().any(|to| leaving.contains_key(to)))
    }

    /// Sets whether pages of other partitions are queued for fetching, too.
    pub fn set_crossing(&mut self, is_crossing: bool) {
        if let Some(transfers) = &mut self.transfers {
            transfers.is_crossing = is_crossing;
        }
    }

    /// Whether a page is left to another partition.
    pub(super) fn is_left_to_others(&self, page: &Page) -> bool {
        self.transfers
            .as_ref()
            .is_some_and(|transfers| !transfers.is_crossing && transfers.is_foreign(page.host))
    }

    /// Returns the epoch of the node that last wrote to the archive; 0 if none did.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn epoch(state: &State) -> Result<u64, CreditError> {
        Ok(read_setting(state, EPOCH)?.unwrap_or(0))
    }

    /// Sets the epoch under which batches are made from now on.
    ///
    /// # Errors
    /// When the store fails.
    pub fn set_epoch(state: &mut State, epoch: u64) -> Result<(), CreditError> {
        write_setting(state, EPOCH, &epoch)
    }

    /// Lets the next checkpoint hold small batches back, except those for `hungry` partitions.
    pub fn hold_back(&mut self, hungry: &BTreeSet<u16>) {
        if let Some(transfers) = &mut self.transfers {
            transfers.holds_back = Some(hungry.clone());
        }
    }

    /// Makes batches of what waits for other partitions, and puts them into the outbox.
    ///
    /// # Errors
    /// When the store fails.
    pub fn seal(&mut self, state: &mut State) -> Result<(), CreditError> {
        let Some(transfers) = &mut self.transfers else { return Ok(()) };
        let due = transfers.take_due();
        if due.is_empty() {
            return Ok(());
        }
        let epoch = Self::epoch(state)?;
        for (to, ids) in due {
            let (mut batch, mut url_bytes) = (transfers.begin(to, epoch), 0);
            for id in ids {
                let mut page = state.page(id)?;
                if !may_leave(&page) {
                    continue;
                }
                let mut cash = 0;
                if page.flags.has_any(flags::ACCOUNT) {
                    let base;
                    (base, cash) = self.pages.send(Base::from_stored(page.cash));
                    page.cash = base.to_stored();
                    state.set_page(id, &page)?;
                }
                let (is_page, is_told) = (page.flags.has_any(flags::ACCOUNT), transfers.tell(id));
                if is_told && is_page && cash == 0 {
                    continue;
                }
                let url = state.url(id)?;
                url_bytes += url.len();
                if is_told && is_page {
                    batch.again.push((url, cash));
                } else {
                    let via = page.via.map(|via| state.url(via)).transpose()?;
                    url_bytes += via.as_ref().map_or(0, String::len);
                    let (depth, hop) = (page.depth, char::from(page.hop));
                    let part = flags::requisite_depth(page.flags) as u8;
                    batch.pages.push(Named { url, cash, depth, hop, via, is_page, part });
                }
                if batch.is_full(url_bytes) {
                    transfers.post(state, &batch)?;
                    (batch, url_bytes) = (transfers.begin(to, epoch), 0);
                }
            }
            if batch.named() > 0 {
                transfers.post(state, &batch)?;
            }
        }
        Ok(())
    }

    /// Returns the batches not known to have been sent, in order: destination, number, bytes.
    pub fn outbox(state: &State) -> impl Iterator<Item = (u16, u64, &[u8])> {
        state.settings(OUTBOX).filter_map(|(name, bytes)| {
            let (to, number) = name.strip_prefix(OUTBOX)?.split_once('.')?;
            Some((to.parse().ok()?, number.parse().ok()?, bytes))
        })
    }

    /// Removes a batch that was sent from the outbox.
    ///
    /// # Errors
    /// When the store fails.
    pub fn forget_sent(state: &mut State, to: u16, number: u64) -> Result<(), CreditError> {
        Ok(state.set_setting(&outbox_name(to, number), None)?)
    }

    /// Receives the next batch from another partition, which took `bytes` bytes; appends URLs that became worth
    /// fetching to `candidates`. Returns false, and changes nothing, if the batch is not the next one.
    ///
    /// # Errors
    /// When the store fails, or all partitions together would have more cash than exists.
    pub fn receive(
        &mut self,
        state: &mut State,
        batch: &Batch,
        bytes: usize,
        candidates: &mut Vec<Candidate>,
    ) -> Result<bool, CreditError> {
        let from = batch.route.from;
        let Some(transfers) = &mut self.transfers else { return Ok(false) };
        if transfers.marks.received_from(from) + 1 != batch.route.number {
            return Ok(false);
        }
        if !self.pages.may_receive(batch.cash()) {
            return Err(CreditError::TooMuchCash { from, number: batch.route.number });
        }
        transfers.marks.received.entry(from).or_default().count(batch, bytes);
        for named in &batch.pages {
            let id = self.intern(state, &named.url, url_hash(&named.url))?;
            let via = match &named.via {
                Some(via) => Some(self.intern(state, via, url_hash(via))?),
                None => None,
            };
            let mention = Mention {
                url: &named.url,
                via,
                depth: named.depth,
                hop: named.hop as u8,
                is_page: named.is_page,
                part: u16::from(named.part),
                unfollowed: None,
            };
            self.note_mention(state, id, &mention)?;
            self.take_in(state, id, named.cash)?;
            candidates.extend(self.candidate(id, &state.page(id)?));
        }
        for (url, cash) in &batch.again {
            // After a rebuild, the page may be unknown: its cash then belongs to nobody, and it will be named again.
            let id = self.intern(state, url, url_hash(url))?;
            self.take_in(state, id, *cash)?;
            candidates.extend(self.candidate(id, &state.page(id)?));
        }
        Ok(true)
    }

    /// Pays cash from elsewhere to the page whose account a URL uses.
    fn take_in(&mut self, state: &mut State, id: UrlId, units: u64) -> Result<(), StateError> {
        let Some(id) = account_of(state, id)? else {
            self.pages.receive_for_nobody(units);
            return Ok(());
        };
        let mut page = state.page(id)?;
        let is_read = page.flags.has_any(flags::READ);
        page.cash = self.pages.receive(Base::from_stored(page.cash), is_read, units).to_stored();
        // The account may be of a page of another partition, to which a redirect leads. The cash then stays until a
        // link of this partition pays the page, too: two redirects to each other would otherwise send it back and forth
        // forever.
        state.set_page(id, &page)
    }

    /// Reports again everything ever reported to the partitions that were rebuilt; `rebuilt` counts the rebuilds of
    /// each.
    ///
    /// # Errors
    /// When the store fails.
    pub fn name_again(&mut self, state: &State, rebuilt: &BTreeMap<u16, u32>) -> Result<(), CreditError> {
        let Some(transfers) = &mut self.transfers else { return Ok(()) };
        let news = |to: &u16, times: &u32| transfers.marks.told.get(to).copied().unwrap_or(0) < *times;
        let news: BTreeMap<u16, u32> =
            rebuilt.iter().filter(|(to, times)| news(to, times)).map(|(to, times)| (*to, *times)).collect();
        if news.is_empty() {
            return Ok(());
        }
        for entry in state.pages(UrlId(0)) {
            let (id, page) = entry?;
            if news.contains_key(&transfers.owner(page.host)) {
                transfers.note_changed(id, &page);
            }
        }
        transfers.marks.told.extend(news);
        Ok(())
    }
}

impl Transfers {
    fn begin(&self, to: u16, epoch: u64) -> Batch {
        let Partition { cluster, number: from, .. } = &self.partition;
        let route = Route { cluster: cluster.clone(), from: *from, to, number: self.marks.sent_to(to) + 1 };
        Batch { route, epoch, pages: Vec::new(), again: Vec::new() }
    }

    /// Puts a batch into the outbox.
    fn post(&mut self, state: &mut State, batch: &Batch) -> Result<(), CreditError> {
        let bytes = batch.write().map_err(CreditError::Batch)?;
        let to = batch.route.to;
        self.marks.sent.entry(to).or_default().count(batch, bytes.len());
        Ok(state.set_setting(&outbox_name(to, batch.route.number), Some(&bytes))?)
    }
}

fn outbox_name(to: u16, number: u64) -> String {
    format!("{OUTBOX}{to:05}.{number:020}")
}
