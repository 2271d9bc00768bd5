//! Hubs named by pages (W3C WebSub): found in what a run has fetched, and asked to notify the server of changes.
//!
//! Runs do both, because the server fetches nothing. A hub is the page's choice and may be anybody's server, so
//! requests go through the fetcher with its guards; there are few of them, one at a time. robots.txt governs pages and
//! is not checked for a hub: the publisher of a page invites subscribers to use it.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use archive_base::control::Control;
use archive_storage::address::canonical;
use archive_storage::warc::HttpHead;
use archive_storage::{Clock, Store, UrlId};
use archive_web::fetch::{
    BodyMemory, Endpoint, FetchRequest, FetchSettings, FetchTask, Fetcher, Job, JobResult, Logins, Place,
};
use archive_web::parse::headers::{parameter, split_link};
use archive_web::parse::html::{HtmlElement, Markup, value};
use archive_web::parse::{ParseLimits, charset, decode_content};
use chrono::{DateTime, Utc};
use crossbeam::channel::{Receiver, bounded};
use url::{Url, form_urlencoded};

use super::PublishError;
use super::subscriptions::{FOLDER, LEASE_SECONDS, SUBSCRIPTIONS_MAX, Subscription, subscriptions};

/// Path of the subscription callbacks.
pub const CALLBACK: &str = "/websub/";

/// Maximum number of hubs that a run asks, and its time limit for that.
pub const ASKED_MAX: usize = 50;
const TIME_MAX: Duration = Duration::from_secs(60);

/// Time limit for a request to a hub, and maximum size of the answer in bytes.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(20);
const ANSWER_BYTES_MAX: u64 = 16 << 10;

/// Number of bytes of a document that are searched: hubs are named at its beginning.
const LOOKED_AT_BYTES: usize = 64 << 10;

/// Outcome of the requests to hubs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HubOutcome {
    /// Number of hubs that accepted the request and will verify it.
    pub taken: u64,
    /// Hubs that refused or failed, and why.
    pub failed: Vec<(String, String)>,
    /// Number of hubs that were due, and wait for the next run.
    pub waiting: u64,
}

/// Looks for hubs in those of the `pages` that were fetched since `since`. Removes subscriptions to pages that are not
/// in `pages` or no longer name this hub; these end with their lease.
///
/// # Errors
/// When the store cannot be read, or the folder of subscriptions cannot be accessed.
pub fn look(store: &Store, pages: &BTreeSet<UrlId>, since: DateTime<Utc>) -> Result<(), PublishError> {
    let failed = |source| PublishError::Queue { path: store.path().join(FOLDER), source };
    let mut known = HashMap::new();
    for subscription in subscriptions(store.path()).map_err(failed)? {
        match store.state().find(&subscription.page)?.filter(|page| pages.contains(page)) {
            Some(page) => drop(known.insert(page, subscription)),
            None => subscription.remove(store.path()).map_err(failed)?,
        }
    }
    for page in pages {
        let visit = store.state().visit(*page)?;
        if visit.is_none_or(|visit| i64::from(visit.last_attempt) < since.timestamp()) {
            continue;
        }
        let url = store.state().url(*page)?;
        let found = named_by(store, *page, &url)?;
        let old = known.get(page).map(|old| (old.hub.clone(), old.topic.clone()));
        if found == old {
            continue;
        }
        if let Some(old) = known.remove(page) {
            old.remove(store.path()).map_err(failed)?;
        }
        if let Some((hub, topic)) = found.filter(|_| known.len() < SUBSCRIPTIONS_MAX) {
            let new = Subscription::new(hub, topic, url).map_err(failed)?;
            new.save(store.path()).map_err(failed)?;
            known.insert(*page, new);
        }
    }
    Ok(())
}

/// The hub and the topic named by the newest version of a page.
fn named_by(store: &Store, page: UrlId, url: &str) -> Result<Option<(String, String)>, PublishError> {
    let Some((_, capture)) = store.state().newest_version(page)? else { return Ok(None) };
    let Some(original) = store.original(&capture)? else { return Ok(None) };
    // An unreadable capture names nothing.
    let (Ok(record), Ok(base)) = (store.record(original.location), Url::parse(url)) else { return Ok(None) };
    let head = record.http_head();
    let payload = record.payload();
    let body = decode_content(&payload, &head.list("Content-Encoding"), LOOKED_AT_BYTES).body;
    Ok(named(&base, &head, body.get(..LOOKED_AT_BYTES).unwrap_or(&body)))
}

/// The first hub and the topic, from the header fields or else from the document; `None` unless both are found.
fn named(base: &Url, head: &HttpHead, body: &[u8]) -> Option<(String, String)> {
    let mut links = HubLinks { base, hub: None, topic: None };
    for (_, field) in head.fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("link")) {
        let mut rest = field.as_str();
        while let Some((target, parameters, next)) = split_link(rest) {
            links.add(parameter(parameters, "rel").unwrap_or_default(), target);
            rest = next;
        }
    }
    if links.hub.is_none() || links.topic.is_none() {
        let charset = charset::detect(body, None, false);
        links.read(&charset::decode(body, &charset).0);
    }
    links.hub.zip(links.topic)
}

struct HubLinks<'a> {
    base: &'a Url,
    hub: Option<String>,
    topic: Option<String>,
}

impl HubLinks<'_> {
    fn add(&mut self, rel: &str, target: &str) {
        let url = self.base.join(target.trim()).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let Some(url) = url.filter(|url| url.as_str().len() <= ParseLimits::default().url_bytes_max) else {
            return;
        };
        for word in rel.split_ascii_whitespace() {
            if word.eq_ignore_ascii_case("hub") {
                self.hub.get_or_insert_with(|| canonical(&url));
            } else if word.eq_ignore_ascii_case("self") {
                self.topic.get_or_insert_with(|| url.to_string());
            }
        }
    }

    /// Reads the `link` elements of a feed before its items, or those in the head of an HTML page.
    fn read(&mut self, text: &str) {
        let mut markup = Markup::of(text);
        while let Some(tag) = markup.next_tag() {
            let name = tag.name.rsplit(':').next().unwrap_or_default().to_ascii_lowercase();
            match name.as_str() {
                "body" | "item" | "entry" => return,
                "link" if !tag.is_end => {
                    let attribute =
                        |name| htmlize::unescape_attribute(value(tag.attributes, name).unwrap_or_default());
                    let (rel, href) = (attribute("rel"), attribute("href"));
                    if !href.is_empty() {
                        self.add(&rel, &href);
                    }
                }
                // Tags within a script or a title are not elements.
                _ if !tag.is_end && !tag.is_self_closing => {
                    markup.raw_text_of(HtmlElement::of(&name));
                }
                _ => {}
            }
        }
    }
}

/// Asks the hubs that are due, longest waiting first, with a pause between requests.
///
/// # Errors
/// When the folder of subscriptions cannot be accessed, or the system cannot start a thread.
pub fn ask(
    archive: &Path,
    origin: &str,
    settings: &FetchSettings,
    pause: Duration,
    stop: &Control,
) -> Result<HubOutcome, PublishError> {
    let begun = Instant::now();
    let mut asking = Asking::begin(archive, origin, settings)?;
    while !asking.is_over() && !stop.is_stopped() && begun.elapsed() < TIME_MAX {
        if asking.next(|_| true)? && !asking.is_over() {
            thread::sleep(pause);
        }
    }
    Ok(asking.end())
}

/// Whether any hub is due.
///
/// # Errors
/// When the folder of subscriptions cannot be read.
pub fn are_due(archive: &Path, now: DateTime<Utc>) -> Result<bool, PublishError> {
    Ok(!due(archive, now)?.is_empty())
}

fn due(archive: &Path, now: DateTime<Utc>) -> Result<VecDeque<Subscription>, PublishError> {
    let all = subscriptions(archive).and_then(|all| {
        let mut due = VecDeque::new();
        for subscription in all {
            if due.len() < ASKED_MAX && subscription.is_due(archive, now)? {
                due.push_back(subscription);
            }
        }
        Ok(due)
    });
    all.map_err(|source| PublishError::Queue { path: archive.join(FOLDER), source })
}

/// Requests to the hubs that are due, one at a time, at the caller's pace.
pub struct Asking<'a> {
    archive: &'a Path,
    origin: &'a str,
    clock: Clock,
    /// `None` if no hub is due.
    hubs: Option<Hubs>,
    /// The subscriptions in order, longest waiting first, each with the endpoint of its hub once it is resolved.
    waiting: VecDeque<(Subscription, Option<Endpoint>)>,
    asked: HubOutcome,
}

impl<'a> Asking<'a> {
    /// Collects the subscriptions that are due.
    ///
    /// # Errors
    /// When the folder of subscriptions cannot be read, or the system cannot start a thread.
    pub fn begin(archive: &'a Path, origin: &'a str, settings: &FetchSettings) -> Result<Self, PublishError> {
        let due = due(archive, settings.clock.now())?;
        let hubs = (!due.is_empty()).then(|| Hubs::start(settings, archive)).transpose();
        let hubs = hubs.map_err(|source| PublishError::Queue { path: archive.join(FOLDER), source })?;
        let waiting = due.into_iter().map(|one| (one, None)).collect();
        Ok(Self { archive, origin, clock: settings.clock, hubs, waiting, asked: HubOutcome::default() })
    }

    /// Whether no hub is left to ask.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Asks the first hub whose address may be contacted now, or resolves the address of one. Returns whether a hub is
    /// finished.
    ///
    /// # Errors
    /// When the folder of subscriptions cannot be written.
    pub fn next(&mut self, mut may_ask: impl FnMut(IpAddr) -> bool) -> Result<bool, PublishError> {
        let mut is_next = |endpoint: &Option<Endpoint>| match endpoint.as_ref().map(|it| it.place) {
            Some(Place::Address(address)) => may_ask(address),
            Some(Place::BehindProxy) | None => true,
        };
        let place = self.waiting.iter().position(|(_, endpoint)| is_next(endpoint));
        let (Some(hubs), Some(place)) = (&self.hubs, place) else { return Ok(false) };
        let Some((subscription, endpoint)) = self.waiting.remove(place) else { return Ok(false) };
        let endpoint = match endpoint {
            Some(endpoint) => Ok(endpoint),
            None => match hubs.look_up(&subscription) {
                Ok(endpoint) => {
                    self.waiting.insert(place, (subscription, Some(endpoint)));
                    return Ok(false);
                }
                failed => failed,
            },
        };
        // The subscription must be on disk before the hub verifies it.
        let subscription = Subscription { asked: self.clock.now(), ..subscription };
        let saved = subscription.save(self.archive);
        saved.map_err(|source| PublishError::Queue { path: self.archive.join(FOLDER), source })?;
        match endpoint.and_then(|endpoint| hubs.post(endpoint, &subscription, self.origin)) {
            Ok(()) => self.asked.taken += 1,
            Err(why) => self.asked.failed.push((subscription.hub, why)),
        }
        Ok(true)
    }

    /// The outcome.
    #[must_use]
    pub fn end(self) -> HubOutcome {
        HubOutcome { waiting: self.waiting.len() as u64, ..self.asked }
    }
}

/// A fetcher for one request at a time.
struct Hubs {
    fetcher: Fetcher<()>,
    answers: Receiver<((), JobResult)>,
}

impl Hubs {
    fn start(settings: &FetchSettings, folder: &Path) -> io::Result<Self> {
        let mut settings = settings.clone();
        settings.limits.total = settings.limits.total.min(ANSWER_TIME_MAX);
        settings.limits.connect = settings.limits.connect.min(ANSWER_TIME_MAX);
        let (sender, answers) = bounded(1);
        // For proxies.
        settings.logins = Logins::read(folder).map_err(io::Error::other)?;
        let memory = BodyMemory::new(0, folder.to_owned());
        Ok(Self { fetcher: Fetcher::start(settings, memory, sender)?, answers })
    }

    fn answer(&self, task: FetchTask) -> Result<JobResult, String> {
        self.fetcher.submit(Job { task, tag: () }).map_err(|error| error.to_string())?;
        self.answers.recv().map(|(_, answer)| answer).map_err(|error| error.to_string())
    }

    /// Resolves the address of a hub.
    fn look_up(&self, subscription: &Subscription) -> Result<Endpoint, String> {
        let url = Url::parse(&subscription.hub).map_err(|error| error.to_string())?;
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return Err("it has no host".to_owned());
        };
        let resolved = self.answer(FetchTask::Resolve { host: host.to_owned(), port })?;
        let JobResult::Resolved(place) = resolved else { return Err("it was not looked up".to_owned()) };
        let place = place.map_err(|error| error.to_string())?;
        Ok(Endpoint { secure: url.scheme() == "https", host: host.into(), port, place })
    }

    /// Sends a subscription request; fails with the reason if the hub does not accept it.
    fn post(&self, endpoint: Endpoint, subscription: &Subscription, origin: &str) -> Result<(), String> {
        let url = Url::parse(&subscription.hub).map_err(|error| error.to_string())?;
        let form = form_urlencoded::Serializer::new(String::new())
            .append_pair("hub.mode", "subscribe")
            .append_pair("hub.topic", &subscription.topic)
            .append_pair("hub.callback", &format!("{origin}{CALLBACK}{}", subscription.id))
            .append_pair("hub.secret", &subscription.secret)
            .append_pair("hub.lease_seconds", &LEASE_SECONDS.to_string())
            .finish();
        let body_bytes_max = Some(ANSWER_BYTES_MAX);
        let request = FetchRequest { form: Some(form.into()), body_bytes_max, ..FetchRequest::new(url) };
        match self.answer(FetchTask::Fetch { endpoint, request: Box::new(request) })? {
            JobResult::Fetched(Ok(exchange)) if (200..300).contains(&exchange.status) => Ok(()),
            JobResult::Fetched(Ok(exchange)) => Err(format!("it answered with status {}", exchange.status)),
            JobResult::Fetched(Err(error)) => Err(error.to_string()),
            JobResult::Resolved(_) => Err("it was not asked".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(fields: &str, body: &str) -> Option<(String, String)> {
        let base = Url::parse("http://a.test/x/feed").unwrap();
        named(
            &base,
            &HttpHead::parse(format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n").as_bytes()),
            body.as_bytes(),
        )
    }

    #[test]
    fn hubs_are_named_in_fields_feeds_and_pages() {
        let both = Some(("http://hub.test/".to_owned(), "http://a.test/x/feed?a=1&b".to_owned()));
        let field = "Link: <http://hub.test>; rel=\"hub\", <feed?a=1&b>; rel=self";
        assert_eq!(found(field, ""), both);
        assert_eq!(found("Link: <http://hub.test>; rel=hub\r\nLink: <feed?a=1&b>; rel=\"x SELF\"", ""), both);
        let links = "<link rel='hub' href='http://hub.test'/><link rel='self' href='feed?a=1&amp;b'/>";
        let atom = format!("<?xml version='1.0'?><feed><title>x</title>{links}<entry/></feed>");
        assert_eq!(found("", &atom), both);
        let rss = format!(
            "<rss><channel><link>http://b.test/</link>{}<item/></channel></rss>",
            links.replace("<link", "<atom:link")
        );
        assert_eq!(found("", &rss), both);
        assert_eq!(found("", &format!("<!doctype html><title>x</title>{links}<body>")), both);
        // Header fields take precedence over the document, and the first hub counts.
        assert_eq!(found(field, &atom.replace("hub.test", "other.test")), both);
        assert_eq!(found("", &atom.replace("<title>", "<link rel=hub href=http://hub.test><title>")), both);
    }

    #[test]
    fn what_readers_wrote_names_no_hub() {
        let links = "<link rel=hub href=http://hub.test><link rel=self href=feed>";
        for body in [
            format!("<html><body><p>{links}"),
            format!("<title>{links}</title><body>"),
            format!("<script>'{links}'</script><body>"),
            format!("<!-- {links} --><body>"),
            format!("<feed><entry>{links}</entry></feed>"),
            links.replace("hub.test", "hub.test/".to_owned().repeat(300).as_str()),
            links.replace("http://hub", "file://hub"),
            "<link rel=hub href=http://hub.test>".to_owned(),
        ] {
            assert_eq!(found("", &body), None, "{body}");
        }
    }
}
