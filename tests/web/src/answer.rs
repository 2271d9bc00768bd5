//! Turns requests into the bytes of answers.

use chrono::DateTime;

use super::Web;
use super::dates::put_http_date;
use super::faults::Fault;
use super::html::Document;
use super::layout::{Form, Host, decimal, put_section};
use super::links::{Outline, Target, Way, put_redirect};
use super::pages::{Existence, Version};
use super::random::Subject;
use super::text::{Append, vocabulary_of};
use super::{attacks, feeds, media, traps};

/// The parts of a request that the answer depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'a> {
    pub(super) is_head: bool,
    /// Whether the method is neither GET nor HEAD.
    pub(super) is_other_method: bool,
    /// Requested host, without port.
    pub(super) host: &'a [u8],
    /// The path and query.
    pub(super) path: &'a [u8],
    pub(super) if_none_match: Option<&'a [u8]>,
    pub(super) if_modified_since: Option<&'a [u8]>,
    pub(super) accepts_gzip: bool,
    /// Whether the client speaks HTTP/1.1, so that it understands chunks.
    pub(super) is_http11: bool,
    /// Whether the connection stays open after the answer.
    pub(super) keeps_alive: bool,
    /// Number of the request, unique on this server.
    pub(super) number: u64,
}

/// Result of a request.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The answer has been appended.
    Ready,
    /// The server must violate the protocol in this way.
    Fault(Fault),
}

/// Builds answers; its buffers are reused.
#[derive(Debug)]
pub(super) struct Answerer {
    /// Status of the answer being built.
    pub(super) status: u16,
    /// Its header lines, except those that every answer has.
    pub(super) head: Vec<u8>,
    pub(super) body: Vec<u8>,
    is_chunked: bool,
    outline: Outline,
    scratch: Vec<u8>,
}

/// Chunk size of pages sent in chunks.
const CHUNK_BYTES: usize = 4096;
/// Value of `Retry-After` on busy hosts, in seconds.
const RETRY_AFTER_SECONDS: u64 = 60;

impl Answerer {
    pub(super) const fn new() -> Self {
        Self {
            status: 200,
            head: Vec::new(),
            body: Vec::new(),
            is_chunked: false,
            outline: Outline::new(),
            scratch: Vec::new(),
        }
    }

    /// Appends the answer to `request` at `now` to `out`.
    pub(super) fn answer(
        &mut self,
        web: &Web,
        request: &Request<'_>,
        now: i64,
        out: &mut Vec<u8>,
    ) -> Outcome {
        self.status = 200;
        self.head.clear();
        self.body.clear();
        self.is_chunked = false;
        if request.is_other_method {
            self.fail(405, "Only GET and HEAD are served");
            self.head.put("Allow: GET, HEAD\r\n");
        } else if let Some(outcome) = web.config.town.answer(self, request, now) {
            if let Outcome::Fault(_) = outcome {
                return outcome;
            }
        } else if let Some(host) = web.layout.host_named(request.host) {
            self.answer_host(web, &host, request, now);
        } else if let Some(fault) = Fault::of(request.host, request.path) {
            return Outcome::Fault(fault);
        } else if !traps::answer(self, request)
            && !attacks::answer(self, request)
            && !self.answer_clock(web, request)
        {
            self.fail(421, "No such host");
        }
        self.finish(request, now, out);
        Outcome::Ready
    }

    /// Turns the answer into a short text with this status.
    pub(super) fn fail(&mut self, status: u16, reason: &str) {
        self.status = status;
        self.body.clear();
        self.head.put("Content-Type: text/html; charset=utf-8\r\n");
        self.body.put("<!DOCTYPE html>\n<title>");
        self.body.put(reason);
        self.body.put("</title>\n<h1>");
        self.body.put(reason);
        self.body.put("</h1>\n");
    }

    fn answer_host(&mut self, web: &Web, host: &Host, request: &Request<'_>, now: i64) {
        if self.is_busy(web, host, now) {
            return;
        }
        if let Some(local) = web.layout.page_at(host, request.path, &mut self.scratch) {
            match web.existence(host, local, now) {
                Existence::Here => self.answer_page(web, host, local, request, now),
                Existence::NotYet => self.fail(404, "Not found"),
                // Half of the hosts remember that the page existed.
                Existence::Vanished if host.key.of(Subject::Death).below(2) == 0 => self.fail(410, "Gone"),
                Existence::Vanished => self.fail(404, "Not found"),
            }
        } else if request.path == b"/robots.txt" {
            self.answer_robots(web, host);
        } else if let Some(step) = request.path.strip_prefix(b"/go/") {
            self.answer_redirect(web, host, step);
        } else if let Some(file) = media::file(request.path) {
            self.put_type(file.content_type);
            self.head.put("Cache-Control: max-age=86400\r\n");
            self.body.extend_from_slice(file.body);
        } else if web.config.feeds && feeds::answer(self, web, host, request.path, now) {
        } else if request.path.starts_with(b"/gone/") {
            self.fail(410, "Gone");
        } else {
            self.fail(404, "Not found");
        }
    }

    /// Adds the content type of the body to the head.
    pub(super) fn put_type(&mut self, content_type: &str) {
        self.head.put("Content-Type: ");
        self.head.put(content_type);
        self.head.put("\r\n");
    }

    fn is_busy(&mut self, web: &Web, host: &Host, now: i64) -> bool {
        if web.config.busy_share == 0.0 {
            return false;
        }
        let minute = now.div_euclid(60_000_000).cast_unsigned();
        let key = host.key.of(Subject::Busy).at(minute);
        if !key.chance(web.config.busy_share) {
            return false;
        }
        self.fail(if key.at(1).below(2) == 0 { 503 } else { 429 }, "Try again later");
        self.head.put("Retry-After: ");
        if key.at(2).below(2) == 0 {
            self.head.put_number(RETRY_AFTER_SECONDS);
        } else {
            put_http_date(now.div_euclid(1_000_000) + RETRY_AFTER_SECONDS.cast_signed(), &mut self.head);
        }
        self.head.put("\r\n");
        true
    }

    fn answer_page(&mut self, web: &Web, host: &Host, local: u32, request: &Request<'_>, now: i64) {
        let version = web.version_of(host, local, now);
        let form = web.layout.form(host, local);
        if web.has_validators(host, local) {
            self.put_validators(host, local, version);
            if is_unchanged(request, &self.scratch, version) {
                self.status = 304;
                return;
            }
        }
        let face = web.face_of(host, local);
        web.outline(host, face.local, face.source, version.number, now, &mut self.outline);
        let encoding = self.encoding(web, host);
        let document = Document {
            web,
            host,
            face,
            version,
            noise: web.is_noisy(host, local).then_some(request.number),
            encoding: encoding.unwrap_or("utf-8"),
        };
        let media_type = match form {
            Form::Html => "text/html",
            Form::Xml if host.key.of(Subject::Transfer).below(2) == 0 => "text/xml",
            Form::Xml => "application/xml",
        };
        self.head.put("Content-Type: ");
        self.head.put(media_type);
        // A third of the legacy hosts leave it to the document to declare its encoding.
        if encoding.is_none() || host.key.of(Subject::Encoding).at(1).below(3) > 0 {
            self.head.put("; charset=");
            self.head.put(document.encoding);
        }
        self.head.put("\r\n");
        match form {
            Form::Html => document.put_html(&self.outline, &mut self.body),
            Form::Xml => document.put_xml(&self.outline, &mut self.body),
        }
        if let Some(encoding) = encoding {
            self.recode(encoding);
        }
        self.is_chunked =
            request.is_http11 && host.page_key(local).of(Subject::Transfer).chance(web.config.chunked_share);
        if request.accepts_gzip && host.key.of(Subject::Transfer).at(1).chance(web.config.gzip_share) {
            self.compress();
        }
    }

    /// Adds the validators to the head and leaves the entity tag in `scratch`.
    fn put_validators(&mut self, host: &Host, local: u32, version: Version) {
        self.scratch.clear();
        // A few servers send weak validators, which only promise equivalent content (RFC 9110, 8.8.1).
        if host.key.of(Subject::Validators).below(8) == 0 {
            self.scratch.put("W/");
        }
        self.scratch.push(b'"');
        self.scratch.put_hex(host.page_key(local).at(version.number).bits());
        self.scratch.push(b'"');
        self.head.put("ETag: ");
        self.head.extend_from_slice(&self.scratch);
        self.head.put("\r\nLast-Modified: ");
        put_http_date(version.since.div_euclid(1_000_000), &mut self.head);
        self.head.put("\r\n");
    }

    fn encoding(&self, web: &Web, host: &Host) -> Option<&'static str> {
        host.key
            .of(Subject::Encoding)
            .chance(web.config.legacy_encoding_share)
            .then(|| vocabulary_of(host.key).language.legacy_encoding)
    }

    fn recode(&mut self, label: &str) {
        let Some(encoding) = encoding_rs::Encoding::for_label(label.as_bytes()) else { return };
        let recoded = encoding.encode(&String::from_utf8_lossy(&self.body)).0.into_owned();
        self.body = recoded;
    }

    fn compress(&mut self) {
        use std::io::Write as _;
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        // Writing to memory does not fail; if it did, the body would stay uncompressed.
        if let Ok(compressed) = encoder.write_all(&self.body).and_then(|()| encoder.finish()) {
            self.body = compressed;
            self.head.put("Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n");
        }
    }

    fn answer_robots(&mut self, web: &Web, host: &Host) {
        let forbidden = web.forbidden_section(host);
        let key = host.key.of(Subject::Robots);
        let has_delay = web.has_crawl_delay(host);
        // Half of the hosts that have nothing to say have no robots.txt.
        if forbidden.is_none() && !has_delay && !web.config.feeds && key.at(3).below(2) == 0 {
            return self.fail(404, "Not found");
        }
        self.put_type("text/plain");
        self.body.put("# robots.txt of a test web\nUser-agent: *\n");
        match forbidden {
            Some(section) => {
                self.body.put("Disallow: /");
                put_section(host, section, &mut self.body);
                self.body.put("\n");
            }
            None => self.body.put("Disallow:\n"),
        }
        if has_delay {
            self.body.put("Crawl-delay: ");
            self.body.put_number(u64::from(web.config.crawl_delay_seconds));
            self.body.put("\n");
        }
        if web.config.feeds {
            self.body.put("\nSitemap: http://");
            host.put_name(&mut self.body);
            self.body.put("/sitemap.xml\n");
        }
    }

    /// Answers `hops-status/page`: redirects to the next hop, or to the page.
    fn answer_redirect(&mut self, web: &Web, host: &Host, step: &[u8]) {
        let Some((hops, status, local)) = parse_step(step).filter(|step| step.2 < host.pages) else {
            return self.fail(404, "Not found");
        };
        self.scratch.clear();
        // Some servers send an absolute address, some only the path (RFC 9110, 10.2.2).
        if host.key.of(Subject::Transfer).at(2).below(2) == 0 {
            self.scratch.put("http://");
            host.put_name(&mut self.scratch);
        }
        if hops > 1 {
            put_redirect(status, hops - 1, local, &mut self.scratch);
        } else {
            Target { host: *host, local, way: Way::Direct }.put_address(web, Some(host), &mut self.scratch);
        }
        if status == 200 {
            self.put_type("text/html; charset=utf-8");
            self.body
                .put("<!DOCTYPE html>\n<title>Moved</title>\n<meta http-equiv=\"refresh\" content=\"0; url=");
            self.body.extend_from_slice(&self.scratch);
            self.body.put("\">\n");
        } else {
            self.fail(status as u16, "Moved");
            self.head.put("Location: ");
            self.head.extend_from_slice(&self.scratch);
            self.head.put("\r\n");
        }
    }

    /// Answers for `clock.test`: `/` shows the time; `/advance?days=2` or `?seconds=90` moves a simulated clock.
    fn answer_clock(&mut self, web: &Web, request: &Request<'_>) -> bool {
        if !request.host.eq_ignore_ascii_case(b"clock.test") {
            return false;
        }
        let clock = web.clock();
        let step = request.path.strip_prefix(b"/advance?").and_then(|query| {
            let (digits, unit) = match query.strip_prefix(b"days=") {
                Some(digits) => (digits, 86_400),
                None => (query.strip_prefix(b"seconds=")?, 1),
            };
            chrono::TimeDelta::try_seconds(decimal(digits)?.checked_mul(unit)?.try_into().ok()?)
        });
        match step {
            _ if request.path == b"/" => {}
            None => self.fail(404, "Not found"),
            Some(step) if !clock.advance(step) => {
                self.fail(409, "The clock is the real one and cannot be moved");
            }
            Some(_) => {}
        }
        if self.status == 200 {
            self.put_type("text/plain");
            self.body.put(&clock.now().to_rfc3339());
            self.body.put("\n");
        }
        true
    }

    fn finish(&self, request: &Request<'_>, now: i64, out: &mut Vec<u8>) {
        out.put("HTTP/1.1 ");
        out.put_number(u64::from(self.status));
        out.push(b' ');
        out.put(reason(self.status));
        out.put("\r\nServer: testweb\r\nDate: ");
        put_http_date(now.div_euclid(1_000_000), out);
        out.put("\r\n");
        out.extend_from_slice(&self.head);
        if !request.keeps_alive {
            out.put("Connection: close\r\n");
        } else if !request.is_http11 {
            out.put("Connection: keep-alive\r\n");
        }
        if self.status == 304 || self.status == 204 {
            out.put("\r\n");
        } else if self.is_chunked {
            out.put("Transfer-Encoding: chunked\r\n\r\n");
            if !request.is_head {
                put_chunks(&self.body, out);
            }
        } else {
            out.put("Content-Length: ");
            out.put_number(self.body.len() as u64);
            out.put("\r\n\r\n");
            if !request.is_head {
                out.extend_from_slice(&self.body);
            }
        }
    }
}

/// Reads a web without a socket, for benchmarks and for tests of page content.
#[derive(Debug)]
pub struct Reader {
    answerer: Answerer,
    answer: Vec<u8>,
    reads: u64,
}

impl Default for Reader {
    fn default() -> Self {
        Self { answerer: Answerer::new(), answer: Vec::new(), reads: 0 }
    }
}

impl Reader {
    /// Returns the complete HTTP answer to a GET of `url` at the time of the web's clock; `None` if `url` does not
    /// begin with `http://` or is one of [`faults`](super::faults).
    pub fn get(&mut self, web: &Web, url: &str) -> Option<&[u8]> {
        let rest = url.strip_prefix("http://")?;
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        self.reads += 1;
        let request = Request {
            is_head: false,
            is_other_method: false,
            host: host.as_bytes(),
            path: if path.is_empty() { b"/" } else { path.as_bytes() },
            if_none_match: None,
            if_modified_since: None,
            accepts_gzip: false,
            is_http11: true,
            keeps_alive: true,
            number: self.reads,
        };
        self.answer.clear();
        match self.answerer.answer(web, &request, web.clock().micros(), &mut self.answer) {
            Outcome::Ready => Some(&self.answer),
            Outcome::Fault(_) => None,
        }
    }

    /// Returns the body of the answer to a GET of `url`, without content or transfer codings.
    pub fn body(&mut self, web: &Web, url: &str) -> Option<&[u8]> {
        self.get(web, url)?;
        Some(&self.answerer.body)
    }
}

fn put_chunks(body: &[u8], out: &mut Vec<u8>) {
    for chunk in body.chunks(CHUNK_BYTES) {
        out.put(&format!("{:x}\r\n", chunk.len()));
        out.extend_from_slice(chunk);
        out.put("\r\n");
    }
    out.put("0\r\n\r\n");
}

/// Whether the client's copy is current. `If-None-Match` takes precedence if both conditions are given (RFC 9110,
/// 13.2.2).
fn is_unchanged(request: &Request<'_>, tag: &[u8], version: Version) -> bool {
    // GET uses weak comparison (RFC 9110, 8.8.3.2).
    if let Some(tags) = request.if_none_match {
        let own = tag.strip_prefix(b"W/").unwrap_or(tag);
        return tags
            .split(|byte| *byte == b',')
            .map(<[u8]>::trim_ascii)
            .any(|other| other == b"*" || other.strip_prefix(b"W/").unwrap_or(other) == own);
    }
    request
        .if_modified_since
        .and_then(|date| DateTime::parse_from_rfc2822(std::str::from_utf8(date).ok()?).ok())
        .is_some_and(|date| version.since.div_euclid(1_000_000) <= date.timestamp())
}

/// Parses `hops-status/page`.
fn parse_step(step: &[u8]) -> Option<(u64, u64, u32)> {
    let dash = step.iter().position(|byte| *byte == b'-')?;
    let slash = step.iter().position(|byte| *byte == b'/').filter(|slash| *slash > dash)?;
    let hops = decimal(&step[..dash]).filter(|hops| (1..=99).contains(hops))?;
    let status =
        decimal(&step[dash + 1..slash]).filter(|status| matches!(status, 200 | 301..=303 | 307 | 308))?;
    Some((hops, status, u32::try_from(decimal(&step[slash + 1..])?).ok()?))
}

/// Returns the usual reason phrase of a status.
pub(super) const fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        410 => "Gone",
        421 => "Misdirected Request",
        429 => "Too Many Requests",
        451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Unassigned",
    }
}
