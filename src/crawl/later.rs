//! Servers that say "later", and failures that may pass: when a page is asked for again, and how long its host is left
//! alone until then.
//!
//! 429, 503 and a connection that is not made speak for the whole host: it is left alone, twice as long each time, or
//! for as long as it asks. Other errors and broken connections may be the page's own fault: the page waits, and its
//! host only after several of them in a row. A host that was left alone gets one request at a time until it answers.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::time::{Duration, Instant};

use archive_books::ledger::says_later;
use archive_storage::warc::HttpHead;
use archive_storage::{HostId, UrlId, segment::Truncated};
use archive_web::fetch::FetchError;
use archive_web::parse::http_date;
use chrono::{DateTime, TimeDelta, Utc};

/// The first pause; each further one is twice as long, up to the maximum.
const PAUSE_MIN: Duration = Duration::from_secs(2);
const PAUSE_MAX: Duration = Duration::from_secs(60 * 60);

/// A longer pause that a server asks for is cut to this.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Maximum number of attempts in a run at a page whose failure does not speak for its host.
const ATTEMPTS_MAX: u8 = 5;

/// A host is left alone after this many such failures in a row.
const IN_A_ROW: u32 = 3;

/// Maximum number of pages that wait within a run; further ones wait for the next run.
const PAGES_MAX: usize = 100_000;

/// Number of answers kept until their page is asked for again, and the length up to which they are; others are recorded
/// at once.
const ANSWERS_MAX: usize = 1024;
pub(super) const ANSWER_BYTES_MAX: u64 = 64 << 10;

/// Maximum number of hosts whose request for a pause is remembered for the next run; the longest pauses are.
const PROMISES_MAX: usize = 10_000;

/// A failure that may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Trouble {
    /// Whether it speaks for all pages of the host.
    is_of_host: bool,
    /// The pause that the server asks for.
    asked: Option<Duration>,
}

impl Trouble {
    /// Returns the trouble that an answer tells of.
    pub(super) fn of_answer(
        status: u16,
        truncated: Option<Truncated>,
        head: &HttpHead,
        time: DateTime<Utc>,
    ) -> Option<Self> {
        let is_cut = truncated == Some(Truncated::Disconnect);
        let asked = || retry_after(head, time);
        (is_cut || says_later(status))
            .then(|| Self { is_of_host: matches!(status, 429 | 503), asked: asked() })
    }

    /// Returns it as it counts for a robots.txt, without which nothing may be fetched from the host. If rules are known,
    /// they hold on, and a few attempts suffice.
    pub(super) const fn of_robots(self, is_known: bool) -> Self {
        Self { is_of_host: !is_known, ..self }
    }

    pub(super) fn of_error(error: &FetchError) -> Option<Self> {
        error.is_passing().then(|| Self { is_of_host: error.is_of_connection(), asked: None })
    }
}

/// Returns the pause of `Retry-After`, in seconds or as a date (RFC 9110 section 10.2.3), by the server's own clock if it
/// shows one.
fn retry_after(head: &HttpHead, asked: DateTime<Utc>) -> Option<Duration> {
    let value = head.get("Retry-After")?.trim();
    let pause = match value.parse::<f64>() {
        Ok(seconds) if seconds >= RETRY_AFTER_MAX.as_secs_f64() => RETRY_AFTER_MAX,
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok()?,
        Err(_) => {
            let now = head.get("Date").and_then(http_date).unwrap_or(asked);
            (http_date(value)? - now).to_std().unwrap_or_default()
        }
    };
    Some(pause.min(RETRY_AFTER_MAX))
}

/// A host that is left alone, or was and has not answered since.
#[derive(Debug, Clone, Copy)]
struct ResendHost {
    in_a_row: u32,
    pauses: u32,
    until: Option<Instant>,
    /// Whether the server asked for the current pause.
    is_asked: bool,
}

/// A page that is asked for again.
#[derive(Debug)]
struct PostponedPage<A> {
    host: HostId,
    attempts: u8,
    /// When it is asked for again; `None` while that is under way.
    due: Option<Instant>,
    /// Its last answer, unless an answer of this run is recorded.
    answer: Option<A>,
}

/// What becomes of a failure.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FailureVerdict<A> {
    /// The page is asked for again in this run.
    Again,
    /// The page is asked for again in this run; meanwhile this answer is to be recorded.
    AgainRecording(A),
    /// The page is left to the next run; the answer is to be recorded, unless another one of this run is.
    Enough(Option<A>),
}

/// All that waits; `A` is an answer.
#[derive(Debug)]
pub(super) struct Later<A> {
    hosts: HashMap<HostId, ResendHost>,
    pages: HashMap<UrlId, PostponedPage<A>>,
    turns: BinaryHeap<Reverse<(Instant, UrlId)>>,
    answers: usize,
}

impl<A> Default for Later<A> {
    fn default() -> Self {
        Self { hosts: HashMap::new(), pages: HashMap::new(), turns: BinaryHeap::new(), answers: 0 }
    }
}

impl<A> Later<A> {
    /// Notes how a request to a host ended; returns how long the host is to be left alone from now on, if it is.
    pub(super) fn note(&mut self, host: HostId, trouble: Option<Trouble>, now: Instant) -> Option<Duration> {
        let left = |entry: &ResendHost| entry.until.map(|until| until.saturating_duration_since(now));
        let left = self.hosts.get(&host).and_then(left).filter(|left| !left.is_zero());
        let Some(trouble) = trouble else {
            // During a pause, what arrives was asked for before it.
            if left.is_none() {
                self.hosts.remove(&host);
            }
            return left;
        };
        let new = ResendHost { in_a_row: 0, pauses: 0, until: None, is_asked: false };
        let entry = self.hosts.entry(host).or_insert(new);
        entry.in_a_row += 1;
        if !trouble.is_of_host && trouble.asked.is_none() && entry.in_a_row < IN_A_ROW {
            return left;
        }
        let grown = PAUSE_MIN.saturating_mul(1 << entry.pauses.min(16)).min(PAUSE_MAX);
        let pause = match left {
            Some(left) => left.max(trouble.asked.unwrap_or_default()),
            None => grown.max(trouble.asked.unwrap_or_default()),
        };
        entry.pauses += u32::from(left.is_none());
        entry.is_asked =
            trouble.asked.is_some_and(|asked| asked >= pause) || (entry.is_asked && left.is_some());
        entry.until = Some(now + pause);
        Some(pause)
    }

    /// Decides what becomes of a page that failed; `must_record` if its answer cannot be kept in memory.
    pub(super) fn postpone(
        &mut self,
        (id, host): (UrlId, HostId),
        trouble: Trouble,
        (answer, must_record): (A, bool),
        now: Instant,
    ) -> FailureVerdict<A> {
        let (attempts, is_recorded) = match self.forget(id) {
            Some((attempts, is_recorded)) => (attempts.saturating_add(1), is_recorded),
            None => (1, false),
        };
        let is_over = !trouble.is_of_host && attempts >= ATTEMPTS_MAX;
        if is_over || self.pages.len() >= PAGES_MAX {
            return FailureVerdict::Enough((!is_recorded).then_some(answer));
        }
        let own = PAUSE_MIN.saturating_mul(1 << (attempts - 1).min(16)).min(PAUSE_MAX);
        let of_host = self.hosts.get(&host).and_then(|host| host.until);
        let due = of_host.map_or(now + own, |until| until.max(now + own));
        let record = !is_recorded && (must_record || self.answers >= ANSWERS_MAX);
        let (kept, recorded) = if is_recorded {
            (None, None)
        } else if record {
            (None, Some(answer))
        } else {
            (Some(answer), None)
        };
        self.answers += usize::from(kept.is_some());
        self.turns.push(Reverse((due, id)));
        self.pages.insert(id, PostponedPage { host, attempts, due: Some(due), answer: kept });
        recorded.map_or(FailureVerdict::Again, FailureVerdict::AgainRecording)
    }

    /// Drops a page, which was answered; returns its attempts, and whether an answer of this run is recorded.
    pub(super) fn forget(&mut self, id: UrlId) -> Option<(u8, bool)> {
        let page = self.pages.remove(&id)?;
        self.answers -= usize::from(page.answer.is_some());
        Some((page.attempts, page.answer.is_none()))
    }

    /// Returns a page whose turn has come, and its last answer if that is not recorded.
    pub(super) fn due(&mut self, now: Instant) -> Option<(UrlId, HostId, Option<&A>)> {
        while let Some(&Reverse((time, id))) = self.turns.peek()
            && time <= now
        {
            self.turns.pop();
            if self.pages.get(&id).is_some_and(|page| page.due == Some(time)) {
                let page = self.pages.get_mut(&id)?;
                page.due = None;
                return Some((id, page.host, page.answer.as_ref()));
            }
        }
        None
    }

    /// When the next page is asked for again.
    pub(super) fn next_due(&mut self) -> Option<Instant> {
        while let Some(&Reverse((time, id))) = self.turns.peek() {
            if self.pages.get(&id).is_some_and(|page| page.due == Some(time)) {
                return Some(time);
            }
            self.turns.pop();
        }
        None
    }

    /// Takes the answers that are not recorded, of those pages for which `is_meant`.
    pub(super) fn take_answers(&mut self, is_meant: impl Fn(&A) -> bool) -> Vec<A> {
        let pages = self.pages.values_mut();
        let taken: Vec<A> = pages.filter_map(|page| page.answer.take_if(|answer| is_meant(answer))).collect();
        self.answers -= taken.len();
        taken
    }

    /// Number of pages whose turn has come and that were not answered since.
    pub(super) fn queued_again(&self) -> u64 {
        self.pages.values().filter(|page| page.due.is_none()).count() as u64
    }

    /// Whether no page waits.
    pub(super) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Hosts that asked to be left alone, and until when, in seconds since 1970.
    pub(super) fn promises(&self, now: (Instant, DateTime<Utc>)) -> BTreeMap<u32, i64> {
        let asked = self.hosts.iter().filter(|(_, entry)| entry.is_asked);
        let seconds = |until: Instant| {
            let left = until.checked_duration_since(now.0)?;
            Some(now.1.checked_add_signed(TimeDelta::from_std(left).ok()?)?.timestamp())
        };
        let mut until: Vec<_> =
            asked.filter_map(|(host, entry)| Some((host.0, seconds(entry.until?)?))).collect();
        until.sort_by_key(|(_, until)| Reverse(*until));
        until.truncate(PROMISES_MAX);
        until.into_iter().collect()
    }

    /// Takes over what earlier runs were asked for; returns the hosts with the time for which they are left alone.
    pub(super) fn resume(
        &mut self,
        promises: &BTreeMap<u32, i64>,
        now: (Instant, DateTime<Utc>),
    ) -> Vec<(HostId, Instant)> {
        let resumed = promises.iter().filter_map(|(&host, &until)| {
            let left = Duration::from_secs(u64::try_from(until - now.1.timestamp()).ok()?);
            (!left.is_zero()).then(|| (HostId(host), now.0 + left.min(RETRY_AFTER_MAX)))
        });
        let resumed: Vec<_> = resumed.collect();
        for &(host, until) in &resumed {
            self.hosts
                .insert(host, ResendHost { in_a_row: 0, pauses: 0, until: Some(until), is_asked: true });
        }
        resumed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUSY: Trouble = Trouble { is_of_host: true, asked: None };
    const BROKEN: Trouble = Trouble { is_of_host: false, asked: None };
    const HOST: HostId = HostId(1);

    fn seconds(number: u64) -> Duration {
        Duration::from_secs(number)
    }

    #[test]
    fn pauses_of_a_host_grow_until_it_answers() {
        let (mut later, mut now) = (Later::<()>::default(), Instant::now());
        for expected in [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600] {
            assert_eq!(later.note(HOST, Some(BUSY), now), Some(seconds(expected)));
            // What was asked for before the pause changes nothing.
            assert_eq!(later.note(HOST, Some(BUSY), now), Some(seconds(expected)));
            assert_eq!(later.note(HOST, None, now + seconds(1)), Some(seconds(expected - 1)));
            now += seconds(expected);
        }
        assert_eq!(later.note(HOST, None, now), None);
        assert_eq!(later.note(HOST, Some(BUSY), now), Some(seconds(2)));
        let asked = Trouble { asked: Some(seconds(90)), ..BROKEN };
        assert_eq!(
            later.note(HOST, Some(asked), now),
            Some(seconds(90)),
            "a longer pause that is asked for holds"
        );
        assert_eq!(later.note(HostId(2), Some(BUSY), now), Some(seconds(2)));
    }

    #[test]
    fn broken_pages_do_not_hold_up_their_host() {
        let (mut later, now) = (Later::<()>::default(), Instant::now());
        for _ in 0..5 {
            assert_eq!(later.note(HOST, Some(BROKEN), now), None);
            assert_eq!(later.note(HOST, Some(BROKEN), now), None);
            assert_eq!(later.note(HOST, None, now), None);
        }
        let pauses = [None, None, Some(seconds(2))].map(|_| later.note(HOST, Some(BROKEN), now));
        assert_eq!(pauses, [None, None, Some(seconds(2))]);
    }

    #[test]
    fn a_broken_page_is_asked_for_a_few_times_and_a_busy_one_without_end() {
        let (mut later, mut now) = (Later::default(), Instant::now());
        for attempt in 1..ATTEMPTS_MAX {
            assert_eq!(
                later.postpone((UrlId(1), HOST), BROKEN, (attempt, false), now),
                FailureVerdict::Again
            );
            assert_eq!(later.due(now), None);
            now = later.next_due().unwrap();
            assert_eq!(later.due(now), Some((UrlId(1), HOST, Some(&attempt))));
            assert_eq!(later.due(now), None);
            assert_eq!(later.next_due(), None);
        }
        let last = later.postpone((UrlId(1), HOST), BROKEN, (9, false), now);
        assert_eq!((last, later.is_empty()), (FailureVerdict::Enough(Some(9)), true));
        for attempt in 0..100 {
            later.note(HOST, Some(BUSY), now);
            assert_eq!(later.postpone((UrlId(2), HOST), BUSY, (attempt, false), now), FailureVerdict::Again);
            now = later.next_due().unwrap();
            assert!(later.due(now).is_some());
        }
    }

    #[test]
    fn an_answer_is_recorded_once_in_a_run() {
        let (mut later, now) = (Later::default(), Instant::now());
        let mut postpone = |answer, must| later.postpone((UrlId(1), HOST), BROKEN, (answer, must), now);
        assert_eq!(postpone(1, true), FailureVerdict::AgainRecording(1));
        assert_eq!(postpone(2, true), FailureVerdict::Again);
        assert!(later.take_answers(|_| true).is_empty());
        later.postpone((UrlId(2), HOST), BROKEN, (3, false), now);
        assert_eq!((later.take_answers(|_| false), later.take_answers(|_| true)), (vec![], vec![3]));
        assert_eq!((later.forget(UrlId(2)), later.forget(UrlId(2))), (Some((1, true)), None));
    }

    #[test]
    fn answers_and_pages_that_wait_are_bounded() {
        let (mut later, now) = (Later::default(), Instant::now());
        for id in 0..PAGES_MAX as u32 {
            let verdict = later.postpone((UrlId(id), HOST), BROKEN, (id, false), now);
            let is_kept = (id as usize) < ANSWERS_MAX;
            assert_eq!(
                verdict,
                if is_kept { FailureVerdict::Again } else { FailureVerdict::AgainRecording(id) }
            );
        }
        let id = PAGES_MAX as u32;
        assert_eq!(
            later.postpone((UrlId(id), HOST), BROKEN, (id, false), now),
            FailureVerdict::Enough(Some(id))
        );
    }

    #[test]
    fn only_what_a_server_asked_for_holds_for_the_next_run() {
        let (mut later, now, time) = (Later::<()>::default(), Instant::now(), Utc::now());
        later.note(HOST, Some(Trouble { asked: Some(seconds(600)), ..BUSY }), now);
        later.note(HostId(2), Some(BUSY), now);
        let promises = later.promises((now, time));
        assert_eq!(promises, BTreeMap::from([(1, time.timestamp() + 600)]));
        let (mut next, after) = (Later::<()>::default(), time + TimeDelta::seconds(100));
        let resumed = next.resume(&promises, (now, after));
        assert_eq!(resumed.len(), 1);
        let left = resumed[0].1 - now;
        assert!(left > seconds(498) && left <= seconds(500), "{left:?}");
        assert!(next.resume(&promises, (now, time + TimeDelta::seconds(601))).is_empty());
    }

    #[test]
    fn pauses_are_read_as_seconds_and_as_dates() {
        let time: DateTime<Utc> = "2026-01-01T00:00:00Z".parse().unwrap();
        let head = |fields: &str| HttpHead::parse(format!("HTTP/1.1 503 -\r\n{fields}\r\n").as_bytes());
        let pause = |fields: &str| retry_after(&head(fields), time);
        assert_eq!(pause("Retry-After: 120\r\n"), Some(seconds(120)));
        assert_eq!(pause("Retry-After:  1.5 \r\n"), Some(Duration::from_millis(1500)));
        assert_eq!(pause("Retry-After: Thu, 01 Jan 2026 00:01:00 GMT\r\n"), Some(seconds(60)));
        let late = "Date: Thu, 01 Jan 2026 01:00:00 GMT\r\nRetry-After: Thu, 01 Jan 2026 01:00:09 GMT\r\n";
        assert_eq!(pause(late), Some(seconds(9)), "by the server's clock");
        assert_eq!(pause("Retry-After: Wed, 31 Dec 2025 00:00:00 GMT\r\n"), Some(seconds(0)));
        for long in ["99999999999999999999", "1e300", "Thu, 01 Jan 2099 00:00:00 GMT"] {
            assert_eq!(pause(&format!("Retry-After: {long}\r\n")), Some(RETRY_AFTER_MAX), "{long}");
        }
        for bad in ["", "-5", "NaN", "soon"] {
            assert_eq!(pause(&format!("Retry-After: {bad}\r\n")), None, "{bad}");
        }
    }
}
