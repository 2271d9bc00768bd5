//! Records a capture in the history of its page: what was found when, and whether it had changed.

use archive_math::refresh::rate::{ChangeObservations, Observation};
use archive_storage::{
    Capture, CaptureId, CaptureKind, HostId, Location, MimeId, State, StateError, UrlId, Visit,
};

use super::aliases::newest;
use super::announce::settle_announcement;
use super::capture_flags;
use super::credit::Credits;
use super::error::CreditError;
use super::facts::CrawlerFacts;
use super::languages;
use super::late::{self, attempted, recount, tells_of_changes};
use super::near_duplicates::NearDuplicates;
use super::outcome::FetchOutcome;
use super::page_flags as flags;
use super::refusal::Refusal;
use super::waiting_list::refuse_in;

const SECONDS_PER_DAY: f64 = 86_400.0;
pub(super) const MICROSECONDS_PER_DAY: f64 = SECONDS_PER_DAY * 1e6;

impl Credits {
    /// Appends the capture and updates its page's visit.
    pub(super) fn record(
        &mut self,
        state: &mut State,
        id: UrlId,
        outcome: &FetchOutcome,
        location: Location,
        is_late: bool,
    ) -> Result<CaptureId, CreditError> {
        let before = state.visit(id)?;
        if is_late {
            let capture = append(state, id, outcome, location, 0)?;
            self.note_late(state, id, capture, outcome.facts.signature)?;
            if let Some(mut visit) = before.filter(|visit| is_newest_content(visit, outcome)) {
                visit.content_status = outcome.document_status();
                visit.last_seen = u32::try_from(outcome.time.timestamp()).unwrap_or(0);
                describe(state, &mut visit, &outcome.facts)?;
                state.set_visit(id, &visit)?;
            }
            let page = state.page(id)?;
            if !page.flags.has_any(flags::ROBOTS) {
                // Its content is counted when the page is recomputed.
                count(state, page.host, outcome, (false, false))?;
            }
            return Ok(capture);
        }
        let mut visit = before.unwrap_or_default();
        let seconds = u32::try_from(outcome.time.timestamp()).unwrap_or(0);
        let is_page = outcome.is_page();
        let mut change_flags = 0;
        if is_page {
            // Failed fetches say nothing about the content.
            let last = newest(state.history(id)?, late::is_page)?.map(|(_, capture)| capture);
            let change = Change::of(outcome, &visit, last.as_ref());
            if let Some(last) = last.filter(|_| tells_of_changes(&visit, seconds)) {
                observe(&mut visit, outcome, change.content, last.time);
            }
            visit.signature = change.signature;
            visit.versions += u32::from(change.bytes);
            if change.content {
                visit.last_changed = seconds;
            }
            change_flags = change.flags();
        }
        if outcome.kind != CaptureKind::Failed {
            settle_announcement(&mut visit, !is_page || change_flags & capture_flags::CONTENT_CHANGED != 0);
        }
        let (is_answer, is_content) = (outcome.kind != CaptureKind::Failed, outcome.is_content());
        attempted(&mut visit, seconds, is_answer, is_content.then(|| outcome.document_status()));
        if is_answer && (outcome.kind != CaptureKind::NotModified || outcome.original.is_some()) {
            visit.status = outcome.document_status();
        }
        if outcome.describes_document() && is_content {
            describe(state, &mut visit, &outcome.facts)?;
        }
        state.set_visit(id, &visit)?;
        let mut page = state.page(id)?;
        page.flags.set(flags::FETCHED, true);
        refuse_in(&mut page, None);
        if outcome.kind != CaptureKind::Failed {
            page.flags.set(flags::PUBLISHED, false);
        }
        state.set_page(id, &page)?;
        if !page.flags.has_any(flags::ROBOTS) {
            let is_new_page = visit.captures == 0 && page.flags.has_any(flags::ACCOUNT);
            count(state, page.host, outcome, (is_new_page, is_content))?;
        }
        append(state, id, outcome, location, change_flags)
    }
}

impl Credits {
    /// Records a tombstone: that there was a capture, but nothing of its content. An erased page is not fetched again
    /// automatically.
    pub(super) fn record_tombstone(
        state: &mut State,
        id: UrlId,
        outcome: &FetchOutcome,
        location: Location,
    ) -> Result<CaptureId, CreditError> {
        let seconds = u32::try_from(outcome.time.timestamp()).unwrap_or(0);
        let capture = append(state, id, outcome, location, capture_flags::ERASED)?;
        state.update_visit(id, |visit| {
            visit.last_attempt = visit.last_attempt.max(seconds);
            if visit.contents == 0 {
                visit.first_seen = if visit.captures == 1 { seconds } else { visit.first_seen.min(seconds) };
            }
        })?;
        if outcome.facts.erased.as_ref().is_some_and(|erased| !erased.is_copy) {
            Self::put_away(state, id)?;
        }
        let page = state.page(id)?;
        if !page.flags.has_any(flags::ROBOTS) {
            let site = state.update_host(page.host, |host| {
                host.captures += 1;
                host.site
            })?;
            state.update_site(site, |site| site.captures += 1)?;
        }
        Ok(capture)
    }

    /// Marks a page as erased: it counts as never fetched, and must not be fetched.
    ///
    /// # Errors
    /// When the store fails.
    pub fn put_away(state: &mut State, id: UrlId) -> Result<(), StateError> {
        let mut page = state.page(id)?;
        page.flags.set(flags::FETCHED | flags::PUBLISHED, false);
        refuse_in(&mut page, Some(Refusal::Erased));
        state.set_page(id, &page)?;
        let Some(mut visit) = state.visit(id)? else { return Ok(()) };
        recount(state, id, visit.contents, 0)?;
        visit.contents = 0;
        state.set_visit(id, &visit)
    }
}

/// Appends a capture to its page's history.
fn append(
    state: &mut State,
    id: UrlId,
    outcome: &FetchOutcome,
    location: Location,
    change_flags: u8,
) -> Result<CaptureId, CreditError> {
    let CrawlerFacts { entity_digest, content_digest, .. } = &outcome.facts;
    let digest_flag = match (outcome.kind, entity_digest, content_digest) {
        (CaptureKind::Response, _, Some(_)) => capture_flags::CODED,
        (CaptureKind::Response, None, None) => capture_flags::DIGEST_OF_RECORD,
        _ => 0,
    };
    let mut mime = state.intern_mime(&outcome.media_type)?;
    if let Some((_, original)) = outcome.original.filter(|_| mime == MimeId::default()) {
        mime = original.mime;
    }
    let capture = Capture {
        url: id,
        time: outcome.time.timestamp_micros(),
        location,
        digest: outcome.digest,
        status: if outcome.kind == CaptureKind::NotModified {
            outcome.status
        } else {
            outcome.document_status()
        },
        mime,
        kind: outcome.kind,
        length: u32::try_from(outcome.payload_bytes).unwrap_or(u32::MAX),
        flags: change_flags
            | digest_flag
            | if outcome.facts.is_cut_off() { capture_flags::CUT_OFF } else { 0 },
        original: outcome.original.map(|(original, _)| original),
    };
    Ok(state.append_capture(&capture, outcome.validators.as_ref())?)
}

/// Whether a late capture is the newest that shows what stood at its URL.
pub(super) fn is_newest_content(visit: &Visit, outcome: &FetchOutcome) -> bool {
    let seconds = outcome.time.timestamp();
    outcome.is_content() && outcome.describes_document() && seconds > i64::from(visit.last_seen)
}

/// Sets the kind, title and language of a document. The title of a redirect is the server's, not the page's.
pub(super) fn describe(state: &mut State, visit: &mut Visit, facts: &CrawlerFacts) -> Result<(), StateError> {
    // What was not read, as a revisit without its original, says nothing of the document.
    let Some(kind) = facts.document else { return Ok(()) };
    visit.kind = kind.code();
    let title = facts.title.as_ref().filter(|_| !(300..400).contains(&visit.content_status));
    let known = visit.title.map(|position| state.title(position)).transpose()?;
    if known.as_ref() != title {
        visit.title = title.map(|title| state.append_title(title)).transpose()?;
    }
    visit.language = languages::number(state, facts.language.as_deref().unwrap_or_default())?;
    Ok(())
}

/// What differs between a page and its previous version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Change {
    /// Whether the content changed, by the signature of the main text or XML tree; without signatures, the bytes
    /// decide.
    content: bool,
    /// Whether the bytes changed.
    bytes: bool,
    /// Signature of the current content; 0 if unknown.
    signature: u64,
}

impl Change {
    fn of(outcome: &FetchOutcome, before: &Visit, last: Option<&Capture>) -> Self {
        let bytes = last.is_none_or(|last| last.digest != outcome.digest);
        if outcome.kind == CaptureKind::NotModified {
            return Self { content: false, bytes: last.is_none(), signature: before.signature };
        }
        // A signature of 0 would mean "none". Equal bytes have equal signatures, parsed or not.
        let unparsed = if bytes { 0 } else { before.signature };
        let signature = outcome.facts.signature.map_or(unparsed, |signature| signature.max(1));
        let comparable = before.signature != 0 && signature != 0;
        let content = match last {
            None => true,
            Some(_) if comparable => before.signature != signature,
            Some(_) => bytes,
        };
        Self { content, bytes, signature }
    }

    const fn flags(self) -> u8 {
        (if self.content { capture_flags::CONTENT_CHANGED } else { 0 })
            | (if self.bytes { capture_flags::BYTES_CHANGED } else { 0 })
    }
}

/// Adds a fetch to the observations of the page's changes; `before` is the time of its previous version, in
/// microseconds.
fn observe(visit: &mut Visit, outcome: &FetchOutcome, changed: bool, before: i64) {
    let interval = (outcome.time.timestamp_micros() - before) as f64 / MICROSECONDS_PER_DAY;
    let last_modified =
        outcome.facts.last_modified.map(|date| (outcome.time.timestamp() - date) as f64 / SECONDS_PER_DAY);
    let mut observations = ChangeObservations::from_bytes(&visit.extension);
    observations.observe(&Observation { interval, changed, last_modified });
    let dated = outcome.facts.last_modified.and_then(|date| u32::try_from(date).ok());
    if let Some(date) =
        dated.filter(|_| changed && last_modified.is_some_and(|age| (0.0..=interval).contains(&age)))
    {
        observations.set_last_change(date);
    }
    visit.extension = observations.to_bytes();
}

/// Adds a capture to the counts of its host and site; captures of robots.txt are not counted.
fn count(
    state: &mut State,
    host: HostId,
    outcome: &FetchOutcome,
    (is_new_page, is_content): (bool, bool),
) -> Result<(), CreditError> {
    let site = state.update_host(host, |host| {
        host.captures += 1;
        host.contents += u32::from(is_content);
        host.fetched += u32::from(is_new_page);
        host.failures += u32::from(outcome.kind == CaptureKind::Failed);
        host.bytes += outcome.payload_bytes;
        if let Some(similarity) = outcome.facts.similarity.filter(|_| is_new_page && outcome.status == 200) {
            let mut near_duplicates = NearDuplicates::from_bytes(&host.extension);
            near_duplicates.note(similarity);
            host.extension = near_duplicates.to_bytes();
        }
        host.site
    })?;
    state.update_site(site, |site| {
        site.captures += 1;
        site.fetched += u32::from(is_new_page);
        site.bytes += outcome.payload_bytes;
    })?;
    Ok(())
}
