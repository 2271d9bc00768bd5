//! Erasures ordered for all nodes: each archive erases its captures of the pages, and does not fetch these again.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use archive_ask::query::{self, Plan, Question};
use archive_base::access::Access;
use archive_base::erased::{Erased, FORGOTTEN, REASON_BYTES_MAX, digest_of, forgotten_name};
use archive_books::cluster::{Partition, Publications};
use archive_books::ledger::{capture_flags, fetched_url, name_as_robots_txt};
use archive_storage::segment;
use archive_storage::{Owner, State, StateError, Store, UrlId};
use archive_vault::erase::{self, ErasePlan, EraseRequest};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::ShareError;
use super::orders::{
    self, ORDER_BYTES_MAX, OrderDone, OrderList, OrderOutcome, is_canonical, is_for, of_url,
};

/// Maximum bytes of URLs in an order that results from a query, which leaves room for its other fields.
const PART_BYTES_MAX: usize = ORDER_BYTES_MAX as usize - (64 << 10);

/// Pages to erase, or to allow again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Erasure {
    /// When it was ordered.
    #[serde(with = "archive_base::instant")]
    pub time: DateTime<Utc>,
    /// Canonical URLs, or `urn:sha256:…` of them.
    pub urls: Vec<String>,
    /// A query instead of URLs, evaluated as of `time`. Each archive orders the erase of its matching pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// Number of the order with the query that these pages match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<u64>,
    /// How they are erased; `None` if they may be fetched again.
    pub erase: Option<EraseRequest>,
}

impl Erasure {
    /// Creates an order for pages. If their URLs are to be forgotten, they are named only by their digests, because
    /// orders stay in the store.
    #[must_use]
    pub fn new(time: DateTime<Utc>, mut urls: Vec<String>, erase: Option<EraseRequest>) -> Self {
        if erase.as_ref().is_some_and(|order| order.forget_url) {
            urls.iter_mut().for_each(|url| *url = forgotten_name(url));
        }
        Self { time, urls, query: None, of: None, erase }
    }

    /// Creates an order for pages that match a query.
    #[must_use]
    pub fn by_query(time: DateTime<Utc>, query: String, erase: EraseRequest) -> Self {
        Self { time, urls: Vec::new(), query: Some(query), of: None, erase: Some(erase) }
    }

    /// Checks that archives can answer the query, as far as this is possible without an archive.
    pub(super) fn check_query(&self) -> Result<(), query::Error> {
        self.query.as_ref().map_or(Ok(()), |query| plan(query, self.time).map(drop))
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let reason = self.erase.as_ref().map(|order| order.reason.as_str());
        if let Some(reason) = reason
            && (reason.is_empty() || reason.len() > REASON_BYTES_MAX || reason.contains(char::is_control))
        {
            return Err(format!("its reason does not have 1 to {REASON_BYTES_MAX} bytes of text"));
        }
        if self.query.is_some() {
            let forgets = self.erase.as_ref().is_none_or(|order| order.forget_url);
            if forgets || !self.urls.is_empty() {
                return Err("an erasure by query names no URLs and forgets none, because the query stays in the store: to forget URLs, list them instead"
                    .to_owned());
            }
            return Ok(());
        }
        let is_digest = |text: &str| {
            text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let is_name = |url: &str| url.strip_prefix(FORGOTTEN).map_or_else(|| is_canonical(url), is_digest);
        match self.urls.iter().find(|url| !is_name(url)) {
            Some(wrong) => Err(format!(
                "'{}' is not a URL as archives write it",
                wrong.chars().take(200).collect::<String>()
            )),
            None if self.urls.is_empty() => Err("it names no page".to_owned()),
            None => Ok(()),
        }
    }
}

/// Plans a query that each archive answers by itself.
fn plan(query: &str, time: DateTime<Utc>) -> Result<Plan, query::Error> {
    let plan = Plan::of_several(query, time)?;
    if let Some(what) = plan.other_than_pages() {
        return Err(query::Error::NotPages { what });
    }
    plan.expect_of_each()?;
    Ok(plan)
}

/// Orders the erase of an archive's pages that match a query. These orders name the pages, so that an archive restored
/// from an older copy, or another partition that also has them, knows which they are. Pages that were already named are
/// skipped, because their erasure may have been lifted since.
pub(super) fn select(
    published: &mut Publications,
    archive: &Path,
    partition: &Partition,
    (number, erasure): (u64, &Erasure),
    query: &str,
) -> Result<OrderDone, ShareError> {
    segment::check_repaired(archive)?;
    // A running crawl could add more pages.
    let owner = Owner::of(archive)?;
    let store = Store::read_only(archive)?;
    let plan = plan(query, erasure.time)?;
    let mut urls = BTreeSet::new();
    for page in Question::part(&store, Access::unlimited(), plan, 0)?.pages()? {
        let url = fetched_url(&store.state().url(page)?).to_owned();
        let is_captured = store.state().visit(page)?.is_some_and(|visit| visit.last_capture.is_some());
        if is_canonical(&url) && (is_captured || of_url(partition, &url) == partition.number) {
            urls.insert(url);
        }
    }
    drop((store, owner));
    let named = urls.len() as u64;
    for later in number + 1..=published.newest_order(OrderList::Erasures.name())? {
        if let Some(orders::Order::Erase(known)) = orders::read(published, OrderList::Erasures, later)?
            && known.of == Some(number)
        {
            for url in &known.urls {
                urls.remove(url);
            }
        }
    }
    let mut urls = urls.into_iter().peekable();
    while urls.peek().is_some() {
        let mut bytes = 0;
        let mut fits = |url: &String| {
            // In JSON, a backslash takes two bytes.
            bytes += 2 * url.len() + 3;
            bytes <= PART_BYTES_MAX
        };
        let part = std::iter::from_fn(|| urls.next_if(|url| fits(url))).collect();
        let part = Erasure { urls: part, query: None, of: Some(number), ..erasure.clone() };
        orders::Order::Erase(part).publish(published)?;
    }
    Ok(OrderDone { outcome: OrderOutcome { named, ..OrderOutcome::default() }, ..OrderDone::default() })
}

/// Erases the pages of an order from an archive, and keeps them from coming back.
pub(super) fn carry_out(
    archive: &Path,
    partition: &Partition,
    erasure: &Erasure,
    options: &erase::EraseOptions,
) -> Result<OrderDone, ShareError> {
    segment::check_repaired(archive)?;
    erase::resume(archive, options, &mut |_, _| {})?;
    // No page is captured until the plan is made.
    let owner = Owner::of(archive)?;
    let store = Store::read_only(archive)?;
    let known = known(store.state(), &erasure.urls)?;
    // A page of another partition may have been imported here.
    let is_own = |url: &str| {
        url.starts_with(FORGOTTEN) || is_for(partition, of_url(partition, url)) || known.contains_key(url)
    };
    let mut erased = Erased::of_archive(archive, store.state())?;
    for url in erasure.urls.iter().filter(|url| is_own(url)) {
        match &erasure.erase {
            Some(order) if erased.of(url).is_none() => {
                erased.add(url, order.forget_url, erasure.time, (&order.reason, &order.by));
            }
            Some(_) => {}
            None => drop(erased.lift(url)),
        }
    }
    erased.write(archive)?;
    let Some(order) = &erasure.erase else { return Ok(OrderDone::default()) };
    let pages: BTreeSet<UrlId> = known.into_values().collect();
    let plan = ErasePlan::of(&store, pages.clone(), order.clone())?;
    drop((store, owner));
    let mut done = OrderDone::default();
    if !plan.is_empty() {
        done.copies = erase::run(archive, options, &plan, &mut |_, _| {})?.copies;
    }
    let store = Store::read_only(archive)?;
    for page in pages {
        let is_gone = store
            .state()
            .history(page)?
            .any(|found| found.is_ok_and(|(_, capture)| capture_flags::is_erased(&capture)));
        done.outcome.taken += u64::from(is_gone);
    }
    Ok(done)
}

/// Returns the captured pages of an archive with the given names.
fn known(state: &State, names: &[String]) -> Result<HashMap<String, UrlId>, StateError> {
    let mut found = HashMap::new();
    let mut add = |name: &str, page: Option<UrlId>| -> Result<(), StateError> {
        if let Some(page) = page
            && state.visit(page)?.is_some_and(|visit| visit.last_capture.is_some())
        {
            found.insert(name.to_owned(), page);
        }
        Ok(())
    };
    let mut digests = HashSet::new();
    for name in names {
        add(name, state.find(name)?)?;
        match name.strip_prefix(FORGOTTEN) {
            Some(digest) => drop(digests.insert(digest)),
            // It may have been fetched only because the robots.txt of another host redirects to it.
            None => add(&name_as_robots_txt(name), state.find(&name_as_robots_txt(name))?)?,
        }
    }
    if !digests.is_empty() {
        let mut urls = state.url_cursor();
        for page in (0..state.url_count()).map(UrlId) {
            let digest = digest_of(urls.get(page)?);
            if digests.contains(digest.as_str()) {
                add(&format!("{FORGOTTEN}{digest}"), Some(page))?;
            }
        }
    }
    Ok(found)
}
