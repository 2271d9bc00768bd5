//! From the bytes of a response to what is stored and credited: the work of the threads between the network and the
//! ledger.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use archive_books::ledger::{CrawlerFacts, FavouredTexts, FetchOutcome, NearDuplicates, Session};
use archive_books::recorder::{LinkTextMemory, Text};
use archive_books::topics::{Sight, Topic};
use archive_choose::stored_robots;
use archive_storage::address::{canonical, is_url_in_bounds};
use archive_storage::segment::{CaptureBody, CaptureGroup, Encoded, Encoder, SegmentError, Truncated};
use archive_storage::warc::HttpHead;
use archive_storage::{Capture, CaptureId, CaptureKind, Digest, HostId, UrlId, Validators};
use archive_web::fetch::robots::Robots;
use archive_web::fetch::{
    CertificateFault, ChargedBytes, Exchange, FetchError, HttpMessage, JobResult, Place,
};
use archive_web::parse::{Link, LinkKind, ParseLimits, ParsedDocument, http_date};
use archive_web::reading::{CallerReader, RawPage, Work};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use url::Url;

use super::later::Trouble;
use super::payload::ResponseParts;
use super::seen::SeenPayloads;
use super::timings::{Stage, Stopwatch};

/// Reason recorded for a page with `noarchive`, which is not stored.
const NOT_TO_BE_ARCHIVED: &str = "the page asks not to be archived (noarchive)";

/// Maximum number of sitemaps followed from one robots.txt.
const SITEMAPS_MAX: usize = 1000;

/// Rules that take more memory are not passed on with their capture but read again from the archive.
const RULES_BYTES_MAX: usize = 64 << 10;

/// Smaller payloads are stored again rather than as revisits: a revisit record would be as long.
pub(super) const DEDUPLICATED_BYTES_MIN: u64 = 512;

/// The usual location of a site's sitemap.
const USUAL_SITEMAP: &str = "/sitemap.xml";

/// Tag of a job: what the ledger knew when it created the job.
#[derive(Debug)]
pub(super) enum JobTag {
    Resolve(HostId),
    Fetch(Box<FetchTag>),
}

/// Tag of a fetch.
#[derive(Debug, Clone)]
pub(super) struct FetchTag {
    pub(super) host: HostId,
    pub(super) id: UrlId,
    pub(super) url: Url,
    pub(super) robots: bool,
    /// By whose decision it is fetched although robots.txt forbids it.
    pub(super) robots_ignored: Option<String>,
    /// Whether it counts for limits and budgets: it is a page, not a requisite.
    pub(super) page: bool,
    /// Whether an answer of this run to the same request is recorded.
    pub(super) is_recorded: bool,
    /// Whether it was asked before in this run, and the answer set a cookie and led back.
    pub(super) is_behind_wall: bool,
    pub(super) via: Option<String>,
    pub(super) hops: String,
    pub(super) importance: Option<f64>,
    pub(super) previous: Option<Previous>,
    /// Frequent contents of its host, if it is a page.
    pub(super) near_duplicates: Option<NearDuplicates>,
}

/// The stored version that a fetch may confirm.
#[derive(Debug, Clone)]
pub(super) struct Previous {
    /// Start of the digest of its content: the payload without its codings.
    pub(super) content: [u8; 16],
    /// `WARC-Payload-Digest` of the record with the payload.
    pub(super) record_digest: Digest,
    /// The capture with the payload.
    pub(super) original: (CaptureId, Capture),
    pub(super) original_url: String,
    pub(super) original_time: DateTime<Utc>,
    /// Its media type without parameters; empty if unknown.
    pub(super) media_type: String,
}

/// Result of a job, for the ledger.
pub(super) enum ProcessedJob {
    Resolved(HostId, Result<Place, FetchError>),
    Fetched(Box<FetchTag>, Result<Box<Processed>, FetchError>),
    /// A capture could not be encoded as records, through a failure of the store.
    Broken(SegmentError),
}

/// A response ready to be stored and credited.
pub(super) struct Processed {
    pub(super) outcome: FetchOutcome,
    pub(super) records: Encoded,
    pub(super) received_bytes: u64,
    /// Whether the body is longer than allowed and was not received.
    pub(super) is_unloaded: bool,
    pub(super) elapsed: Duration,
    /// The failure that it tells of, if that may pass.
    pub(super) trouble: Option<Trouble>,
    /// Where it redirects to, if it changes the cookies that are sent there.
    pub(super) opens: Option<Url>,
    /// The address that answered, if it is not the one that was to be asked.
    pub(super) moved: Option<IpAddr>,
    pub(super) robots: Option<Robots>,
    /// Text for the index.
    pub(super) text: Option<Text>,
    /// For a page with text in a focused crawl: its features, and the probability that it is on topic.
    pub(super) sight: Option<(Sight, f64)>,
    /// Reservation of memory for its body, released when it is stored.
    pub(super) _held: ChargedBytes,
}

/// How a processing thread reads responses.
#[derive(Debug, Clone)]
pub(super) struct ResponseReading {
    /// Name of the robot, in lower case.
    pub(super) robot: String,
    /// Maximum number of bytes of a body that are parsed.
    pub(super) body_bytes_max: usize,
    /// Whether text is kept for the index.
    pub(super) full_text: bool,
    /// Whether `nofollow` of pages is obeyed.
    pub(super) obey_nofollow: bool,
    /// Whether `noarchive` of pages is obeyed.
    pub(super) obey_noarchive: bool,
    /// Folder of bodies that are too long for memory.
    pub(super) spools: PathBuf,
    /// Number of pages of a host with the same content after which links are not followed; 0 for no limit.
    pub(super) same_content: u32,
    /// Recent payloads.
    pub(super) seen: Arc<SeenPayloads>,
    /// Link texts seen so far.
    pub(super) said: LinkTextMemory,
    /// Link texts that get a bonus.
    pub(super) favoured: FavouredTexts,
    /// Topic of a focused crawl.
    pub(super) topic: Option<Topic>,
}

/// The work of a processing thread, and its tools.
#[derive(Clone)]
pub(super) struct Processing {
    pub(super) encoder: Encoder,
    pub(super) reading: ResponseReading,
    pub(super) watch: Stopwatch,
}

/// A response to be processed.
#[derive(Clone)]
pub(super) struct Fetched {
    tag: Box<FetchTag>,
    exchange: Box<Exchange>,
}

/// What was read from a response.
pub(super) struct ReadResponse {
    head: Arc<HttpHead>,
    head_bytes: Bytes,
    received_digest: Digest,
    /// Digest of the content: of the body without its codings.
    digest: Digest,
    length: u64,
    facts: CrawlerFacts,
    robots: Option<Robots>,
    text: Option<Text>,
    sight: Option<(Sight, f64)>,
}

impl Work for Processing {
    type Item = (JobTag, JobResult);
    type Job = Fetched;
    type Read = Result<ReadResponse, SegmentError>;
    type Done = ProcessedJob;

    fn take(item: (JobTag, JobResult)) -> Option<Result<Fetched, ProcessedJob>> {
        match item {
            (JobTag::Fetch(tag), JobResult::Fetched(Ok(exchange))) => Some(Ok(Fetched { tag, exchange })),
            (JobTag::Fetch(tag), JobResult::Fetched(Err(error))) => {
                Some(Err(ProcessedJob::Fetched(tag, Err(error))))
            }
            (JobTag::Resolve(host), JobResult::Resolved(address)) => {
                Some(Err(ProcessedJob::Resolved(host, address)))
            }
            // The fetcher answers a resolution with an address, and a fetch with a response.
            (JobTag::Resolve(_), JobResult::Fetched(_)) | (JobTag::Fetch(_), JobResult::Resolved(_)) => None,
        }
    }

    fn read(&mut self, job: &Fetched, reader: &CallerReader) -> Result<ReadResponse, SegmentError> {
        self.watch.start();
        let Self { reading, watch, .. } = self;
        let Fetched { tag, exchange } = job;
        let payload = ResponseParts::of(&exchange.http, reading.body_bytes_max.saturating_add(1));
        let payload = payload.map_err(|source| SegmentError::Io {
            action: "read from",
            path: reading.spools.clone(),
            source,
        })?;
        watch.lap(Stage::Digest);
        let taken = reading.take(tag, exchange, payload, reader);
        watch.lap(Stage::Parse);
        Ok(taken)
    }

    fn finish(
        &mut self,
        Fetched { tag, exchange }: Fetched,
        taken: Result<ReadResponse, SegmentError>,
    ) -> ProcessedJob {
        match taken.and_then(|taken| self.pack(&tag, *exchange, taken)) {
            Ok(processed) => ProcessedJob::Fetched(tag, Ok(Box::new(processed))),
            Err(error) => ProcessedJob::Broken(error),
        }
    }
}

impl ResponseReading {
    fn take(
        &self,
        tag: &FetchTag,
        exchange: &Exchange,
        payload: ResponseParts,
        reader: &CallerReader,
    ) -> ReadResponse {
        let ResponseParts { head_bytes, head, received_digest, digest, beginning, length } = payload;
        let head = Arc::new(head);
        let is_whole = beginning.len() as u64 == length;
        let plain = reader.decoded(digest.prefix(), &head, &beginning).filter(|_| is_whole);
        let content_digest = plain.as_ref().map(|plain| Digest::sha256(plain));
        let mut facts = CrawlerFacts {
            via: tag.via.clone(),
            hops: tag.hops.clone(),
            fetch_ms: u64::try_from(exchange.elapsed.as_millis()).unwrap_or(u64::MAX),
            importance: tag.importance,
            robots: tag.robots,
            robots_ignored: tag.robots_ignored.clone(),
            tls: exchange.tls.as_ref().map(|tls| (tls.cipher_suite.clone(), tls.chain)),
            proxy: exchange.proxy.as_deref().map(str::to_owned),
            session: session(tag, exchange),
            entity_digest: (digest != received_digest).then_some(digest),
            content_digest,
            last_modified: head.get("Last-Modified").and_then(http_date).map(|date| date.timestamp()),
            ..CrawlerFacts::default()
        };
        let mut robots = None;
        let mut text = None;
        let mut sight = None;
        if tag.robots {
            if (200..300).contains(&exchange.status) {
                let rules = stored_robots::parse(&head, &beginning, &self.robot);
                facts.links = sitemap_links(tag, rules.sitemaps());
                robots =
                    Some(rules.without_sitemaps()).filter(|rules| rules.memory_bytes() <= RULES_BYTES_MAX);
            } else if (400..500).contains(&exchange.status) {
                facts.links = sitemap_links(tag, &[]);
            }
        } else if !is_not_modified(tag, exchange) {
            let cut = exchange.truncated.map(|reason| match reason {
                _ if exchange.is_unloaded => {
                    "the body is longer than allowed and was not received".to_owned()
                }
                Truncated::Disconnect => CrawlerFacts::CUT_OFF.to_owned(),
                reason => format!("the body is cut ({})", reason.as_str()),
            });
            facts.problems.extend(cut);
            let resumed = exchange.resumed.iter();
            facts.problems.extend(resumed.map(|bytes| {
                format!("the connection was lost after {bytes} bytes of the body; the rest was asked for and follows")
            }));
            let accepted = exchange.tls.iter().find_map(|tls| tls.accepted.as_ref());
            facts.problems.extend(accepted.map(|CertificateFault { fault, sha256, .. }| {
                format!("the server's certificate was taken all the same: {fault}; its SHA-256 is {sha256}")
            }));
            let page = RawPage {
                url: tag.url.clone(),
                status: exchange.status,
                head: Arc::clone(&head),
                is_decoded: plain.is_some(),
                payload: plain.unwrap_or(beginning),
                key: digest.prefix(),
            };
            let said = tag.previous.is_none().then_some(&self.said);
            let parsed = reader.page(&page);
            sight = self.sight(tag, exchange.status, &parsed);
            text = self.page(parsed, exchange.status, said, &mut facts);
        }
        let digest = content_digest.unwrap_or(digest);
        ReadResponse { head, head_bytes, received_digest, digest, length, facts, robots, text, sight }
    }

    /// Returns what a focused crawl sees of a page.
    fn sight(&self, tag: &FetchTag, status: u16, parsed: &ParsedDocument) -> Option<(Sight, f64)> {
        let topic = self.topic.as_ref().filter(|_| status == 200)?;
        let sight = Sight::of(tag.url.as_str(), parsed)?;
        let chance = topic.probability(&sight.text(tag.url.as_str()));
        Some((sight, chance))
    }

    /// Copies the facts of a page; returns the text to index.
    fn page(
        &self,
        mut parsed: ParsedDocument,
        status: u16,
        said: Option<&LinkTextMemory>,
        facts: &mut CrawlerFacts,
    ) -> Option<Text> {
        let is_searched = self.full_text && status == 200;
        facts.favoured = self.favoured.find(&parsed);
        let text = is_searched.then(|| Text::take(&mut parsed, said)).flatten();
        if self.obey_nofollow && parsed.robots.nofollow {
            parsed.links.iter_mut().for_each(|link| link.nofollow = true);
        }
        let is_kept = !(self.obey_noarchive && parsed.robots.noarchive);
        if !is_kept {
            facts.error = Some(NOT_TO_BE_ARCHIVED.to_owned());
        }
        facts.take_parsed(parsed);
        text.filter(|_| is_kept)
    }
}

/// What the server knew of its visitor.
fn session(tag: &FetchTag, exchange: &Exchange) -> Option<Session> {
    match exchange {
        Exchange { has_login: true, .. } => Some(Session::Login),
        Exchange { sends_cookies: true, .. } if tag.is_behind_wall => Some(Session::Wall),
        Exchange { sends_cookies: true, .. } => Some(Session::Cookies),
        _ => None,
    }
}

/// Whether a response confirms the stored version.
fn is_not_modified(tag: &FetchTag, exchange: &Exchange) -> bool {
    exchange.status == 304 && tag.previous.is_some()
}

impl Processing {
    /// Decides the kind of capture, and encodes its records.
    fn pack(
        &mut self,
        tag: &FetchTag,
        exchange: Exchange,
        taken: ReadResponse,
    ) -> Result<Processed, SegmentError> {
        let ReadResponse {
            head,
            head_bytes,
            received_digest,
            digest,
            length,
            mut facts,
            robots,
            text,
            sight,
        } = taken;
        let media_type = head.media_type().unwrap_or_default();
        let same = tag.previous.as_ref().filter(|previous| previous.content == digest.prefix() && length > 0);
        let shown = (exchange.status, media_type.as_str(), &facts);
        let revisit = same.and_then(|previous| previous.revisit(head_bytes.clone(), received_digest, shown));
        let kind = match &tag.previous {
            _ if facts.error.is_some() => CaptureKind::Failed,
            Some(_) if is_not_modified(tag, &exchange) => CaptureKind::NotModified,
            _ if revisit.is_some() => CaptureKind::Identical,
            _ => CaptureKind::Response,
        };
        if let (CaptureKind::Response, 200, Some(host)) = (kind, exchange.status, &tag.near_duplicates) {
            mark_near_duplicates(&mut facts, host, self.reading.same_content);
        }
        // A revisit repeats what its original's record says.
        let is_revisit = matches!(kind, CaptureKind::NotModified | CaptureKind::Identical);
        let revisited = tag.previous.as_ref().filter(|_| is_revisit);
        let payload_digest = revisited.map_or(received_digest, |previous| previous.record_digest);
        let outcome = FetchOutcome {
            url: tag.url.to_string(),
            time: exchange.started,
            kind,
            status: exchange.status,
            media_type,
            payload_bytes: match (kind, revisited) {
                (CaptureKind::Identical, Some(previous)) => previous.original.1.length.into(),
                _ => length,
            },
            digest: revisited.map_or(digest.prefix(), |previous| previous.content),
            original: revisited.map(|previous| previous.original),
            validators: Some(Validators::of(payload_digest, Some(&head))),
            facts,
        };
        let (received_bytes, is_unloaded) = (exchange.http.len(), exchange.is_unloaded);
        let moved = exchange.address.filter(|_| exchange.is_other_address);
        let trouble = Trouble::of_answer(outcome.status, exchange.truncated, &head, outcome.time);
        let (elapsed, opens) = (exchange.elapsed, exchange.opens.clone());
        // Memory of what is not stored is released now; the rest stays reserved until it is stored.
        let (group, held) = group(tag, exchange, &outcome, head_bytes, revisit);
        self.watch.lap(Stage::Metadata);
        let mut records = Encoded::later(group);
        let is_whole = matches!(records.group().body, CaptureBody::Response { truncated: None, .. });
        let may_be_copy = is_whole && !tag.robots && outcome.payload_bytes >= DEDUPLICATED_BYTES_MIN;
        // A repeated payload becomes a revisit, once the owner of the state has found its original.
        if !may_be_copy || !self.reading.seen.note(&outcome.digest) {
            self.encoder.pack(&mut records)?;
        }
        self.watch.lap(Stage::Records);
        Ok(Processed {
            received_bytes,
            is_unloaded,
            elapsed,
            trouble,
            opens,
            moved,
            robots,
            text,
            sight,
            outcome,
            records,
            _held: held,
        })
    }
}

/// Marks a page that is like too many others of its host, so that its links are not followed; returns whether it is.
pub(super) fn mark_near_duplicates(facts: &mut CrawlerFacts, host: &NearDuplicates, most: u32) -> bool {
    let count = facts.similarity.map_or(0, |similarity| host.count(similarity));
    if most == 0 || count < most {
        return false;
    }
    facts.copies = Some(count);
    facts.problems.push(format!("like {count} other pages of its host: its links are not followed"));
    true
}

fn group(
    tag: &FetchTag,
    exchange: Exchange,
    outcome: &FetchOutcome,
    head: Bytes,
    revisit: Option<CaptureBody>,
) -> (CaptureGroup, ChargedBytes) {
    let body = match (outcome.kind, &tag.previous, revisit) {
        (CaptureKind::NotModified, Some(Previous { original_url, original_time, .. }), _) => {
            let (original_url, original_time) = (original_url.clone(), *original_time);
            CaptureBody::NotModified { head, original_url, original_time }
        }
        (CaptureKind::Identical, _, Some(revisit)) => revisit,
        (CaptureKind::Failed, ..) => CaptureBody::Failed,
        _ => match exchange.http {
            HttpMessage::Whole(http) => CaptureBody::Response { http, truncated: exchange.truncated },
            HttpMessage::Spooled { head, body } => {
                CaptureBody::Spooled { head, body, truncated: exchange.truncated }
            }
        },
    };
    let group = CaptureGroup {
        url: outcome.url.clone(),
        time: outcome.time,
        address: exchange.address,
        request: Some(exchange.request),
        body,
        payload_digest: outcome.validators.as_ref().map(|validators| validators.digest),
        protocols: exchange.protocols,
        metadata: outcome.facts.to_fields(),
    };
    (group, exchange.held)
}

/// Builds the records of a failed fetch.
pub(super) fn failed_group(
    tag: &FetchTag,
    error: &FetchError,
    time: DateTime<Utc>,
) -> (FetchOutcome, CaptureGroup) {
    let facts = CrawlerFacts {
        via: tag.via.clone(),
        hops: tag.hops.clone(),
        importance: tag.importance,
        robots: tag.robots,
        robots_ignored: tag.robots_ignored.clone(),
        error: Some(error.to_string()),
        ..CrawlerFacts::default()
    };
    let outcome = FetchOutcome {
        url: tag.url.to_string(),
        time,
        kind: CaptureKind::Failed,
        status: 0,
        media_type: String::new(),
        payload_bytes: 0,
        digest: [0; 16],
        original: None,
        validators: None,
        facts,
    };
    let group = CaptureGroup {
        url: outcome.url.clone(),
        time: outcome.time,
        address: None,
        request: None,
        body: CaptureBody::Failed,
        payload_digest: None,
        protocols: Vec::new(),
        metadata: outcome.facts.to_fields(),
    };
    (outcome, group)
}

/// Returns links to the sitemaps that a robots.txt names, or to the usual one if it names none.
fn sitemap_links(tag: &FetchTag, named: &[String]) -> Vec<Link> {
    let canonical = |text: &str| tag.url.join(text).ok().map(|url| canonical(&url));
    let usual = (named.is_empty() && tag.url.path() == "/robots.txt").then_some(USUAL_SITEMAP);
    let urls = named.iter().map(String::as_str).chain(usual).filter_map(canonical);
    let bytes_max = ParseLimits::default().url_bytes_max;
    let urls = urls.filter(|url| is_url_in_bounds(url, bytes_max)).take(SITEMAPS_MAX);
    urls.map(|url| Link::new(url, LinkKind::Sitemap)).collect()
}
