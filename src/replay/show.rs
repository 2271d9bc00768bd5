//! Mementos as responses: head and body of a capture, rewritten for the client.

use std::borrow::Cow;
use std::cell::Cell;

use archive_storage::CaptureKind;
use archive_storage::address::{callback_of, without_request};
use archive_storage::warc::{HEAD_BYTES_MAX, HttpHead, media_type};
use archive_web::parse::charset;
use archive_web::parse::html::MarkupSyntax;
use archive_web::parse::{CodingProblem, DocumentKind, charset_parameter, decode_content};
use bytes::Bytes;
use encoding_rs::{UTF_8, WINDOWS_1252};
use url::Url;

use super::address::{Modifier, http_date, stamp};
use super::long::Long;
use super::mementos::{Memento, Mementos};
use super::policy::ResponseKind;
use super::ranges::{PartialBody, RangeAsked, ranged};
use super::rewrite::html::{self, Additions, HEAD, XML_HEAD};
use super::rewrite::{LinkRewriter, css, playlist, script, xml};
use super::{NAVIGATED, POLICY, ReplayError, ReplayRequest, Request, Response, fields, policy};

/// Maximum size of a document that is rewritten, in bytes; a longer one is sent unchanged.
pub(super) const REWRITTEN_BYTES_MAX: usize = 16 << 20;

/// Maximum size of a record that is read into memory, in bytes: a document that may be rewritten, with its head. A longer
/// one is sent while it is read.
pub(super) const WHOLE_BYTES_MAX: u64 = REWRITTEN_BYTES_MAX as u64 + HEAD_BYTES_MAX as u64;

/// The response of a capture, as recorded.
pub(super) struct RecordedResponse {
    pub(super) head: HttpHead,
    pub(super) status: u16,
    /// The body, or the beginning of a long one.
    pub(super) body: Bytes,
    pub(super) long: Option<Long>,
    /// Whether its body is incomplete.
    pub(super) is_cut: bool,
}

/// How to rewrite a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rewriting {
    AsItIs,
    /// HTML, XHTML, SVG.
    Markup {
        is_xml: bool,
        is_page: bool,
    },
    Style,
    Script,
    Xml,
    Playlist,
}

impl ReplayRequest<'_> {
    /// The response for a memento.
    pub(super) fn show(
        &self,
        found: &Mementos,
        place: usize,
        modifier: Modifier,
    ) -> Result<Response, ReplayError> {
        let memento = &found.list[place];
        let Some(mut recorded) = self.recorded(memento)? else {
            return Ok(self.problem(404, "The capture that has this one's content is not in the archive."));
        };
        let mut part =
            if recorded.status == 206 { PartialBody::of_head(&recorded.head) } else { PartialBody::Whole };
        let range = self.request.range.and_then(RangeAsked::parse);
        let is_as_received = modifier == Modifier::Identity && range.is_none();
        if (recorded.is_cut || !part.answers(range))
            && !is_as_received
            && let Some(joined) = self.joined(found, place, range)?
        {
            (recorded, part) = joined;
        }
        let page = Url::parse(without_request(found.url(memento))).ok();
        let links =
            LinkRewriter::new(page, stamp(memento.capture.time), modifier).shown_at(self.request.path);
        let mut response = Response::new(recorded.status);
        let own_links = fields::add(&mut response, &recorded.head, &links);
        self.describe(&mut response, found, place, own_links);
        if modifier == Modifier::Identity || part != PartialBody::Whole {
            for name in ["Content-Type", "Content-Encoding"] {
                if let Some(value) = recorded.head.get(name) {
                    response.set(name, &fields::clean(value));
                }
            }
            response.body = std::mem::take(&mut recorded.body);
        } else {
            response.status = if response.status == 206 { 200 } else { response.status };
            self.write(&mut response, &recorded, links, modifier, &|| self.banner(found, memento));
            if recorded.long.is_none() {
                response.body = called(response.body, found.requested(), found.url(memento));
            }
        }
        response.long = recorded.long;
        if part != PartialBody::Whole {
            return self.part(response, part, range, modifier);
        }
        if matches!(response.status, 204 | 205) {
            (response.body, response.long) = (Bytes::new(), None);
        }
        ranged(response, range)
    }

    /// Reads head and payload. A revisit has the payload of its original. If the same payload was received again, the
    /// revisit has a head of its own; if the server only confirmed it, the head is the original's.
    fn recorded(&self, memento: &Memento) -> Result<Option<RecordedResponse>, ReplayError> {
        let Some(original) = self.store.original(&memento.capture)? else { return Ok(None) };
        let reader = self.store.reader();
        let record = reader.pieces(original.location)?;
        let is_cut = record.header().get("WARC-Truncated").is_some();
        let (mut head, body, long) = if record.remaining() > WHOLE_BYTES_MAX {
            let mut payload = record.payload()?;
            let (head, beginning) = (payload.head().clone(), payload.peek()?.clone());
            (head, beginning, Some(Long::of_payload(payload)))
        } else {
            let record = record.beginning(usize::MAX)?;
            (record.http_head(), record.payload(), None)
        };
        if memento.capture.kind == CaptureKind::Identical {
            let own = self.store.http_head(memento.capture.location)?;
            if own.status().is_some() {
                head = own;
            }
        }
        let status = head.status().filter(|status| (200..600).contains(status)).unwrap_or(200);
        let status = if status == 304 { 200 } else { status };
        let mut recorded = RecordedResponse { head, status, body, long, is_cut };
        if let Some(long) = recorded.long.as_mut().filter(|long| long.length().is_none())
            && (self.request.range.is_some() || recorded.status == 206)
        {
            long.count(reader.pieces(original.location)?.payload()?)?;
        }
        Ok(Some(recorded))
    }

    /// Sets the body and the media type for a browser.
    fn write(
        &self,
        response: &mut Response,
        recorded: &RecordedResponse,
        links: LinkRewriter,
        modifier: Modifier,
        banner: &dyn Fn() -> String,
    ) {
        let stated = fields::clean(recorded.head.get("Content-Type").unwrap_or_default());
        let Some(body) = plain(recorded) else {
            response.set("Content-Type", &stated);
            response.set("Content-Encoding", &fields::clean(&recorded.head.list("Content-Encoding")));
            response.body = recorded.body.clone();
            return;
        };
        let media = media_type(&stated).unwrap_or_default();
        let written = self.rewriting(&media, &body, modifier);
        let is_short = recorded.long.is_none() && body.len() <= REWRITTEN_BYTES_MAX;
        let is_led = Cell::new(false);
        let (new, media_type) = match written {
            Rewriting::Markup { is_xml, is_page } if is_short => {
                // Nothing may follow the root of an XML document.
                let has_banner = is_page && modifier == Modifier::Page && !is_xml;
                let banner = if has_banner { banner() } else { String::new() };
                let has_names = is_page || !is_xml;
                let links = if has_names { links } else { links.with_plain_scripts() };
                let head = if is_xml { XML_HEAD } else { HEAD };
                let head = if is_page { head } else { "" };
                let additions = Additions { head, end: &banner, is_led: Some(&is_led) };
                markup(&body, &stated, &media, is_xml, links, additions)
            }
            Rewriting::Style if is_short => (style(&body, &stated, links), stated.clone()),
            Rewriting::Script if is_short => (script::rewrite(&body), stated.clone()),
            Rewriting::Playlist if is_short => (film(&body, &links), stated.clone()),
            Rewriting::Xml if is_short => (xml_document(&body, &stated, links), stated.clone()),
            _ => (None, stated.clone()),
        };
        if !media_type.is_empty() {
            response.set("Content-Type", &media_type);
        }
        let is_page = matches!(essence(&media_type).as_str(), "text/html" | "application/xhtml+xml");
        if is_page && is_led.get() && new.is_some() {
            self.permit(response);
        }
        response.body = match (new, body) {
            (Some(new), _) => new.into(),
            (None, Cow::Borrowed(_)) => recorded.body.clone(),
            (None, Cow::Owned(body)) => body.into(),
        };
    }

    /// Lets the scripts of a page run, which begins with the replay's own.
    fn permit(&self, response: &mut Response) {
        let Request { application, .. } = *self.request;
        response.set(POLICY, &policy::of_answer(application, ResponseKind::Scripted, !self.is_among_pages()));
    }

    /// Decides how to rewrite a body: by how it was requested, then by its type.
    fn rewriting(&self, media: &str, body: &[u8], modifier: Modifier) -> Rewriting {
        // The worker requests pages with the destination `empty`, and what scripts request as `mp_`.
        let is_page = self.request.destination.is_none_or(|destination| match destination {
            "document" | "iframe" | "frame" | "object" | "embed" | NAVIGATED => true,
            destination => destination == "empty" && modifier.is_document(),
        });
        match modifier {
            Modifier::Identity => return Rewriting::AsItIs,
            // Workers do not have `static/replay.js`. Modules import data and style sheets as well.
            Modifier::Script => {
                let is_for_page = matches!(self.request.destination, None | Some("script" | "empty"));
                return if is_for_page { Rewriting::Script } else { Rewriting::AsItIs };
            }
            Modifier::Style if !media.contains("xml") => return Rewriting::Style,
            _ => {}
        }
        // A body declared as plain text is shown as text.
        let kind = if media == "text/plain" { DocumentKind::Text } else { DocumentKind::of(media, body) };
        let is_xml = media.ends_with("+xml") || media.ends_with("/xml");
        match kind {
            DocumentKind::Html => Rewriting::Markup { is_xml, is_page },
            DocumentKind::Xml if media == "image/svg+xml" => Rewriting::Markup { is_xml, is_page: false },
            DocumentKind::Xml => Rewriting::Xml,
            DocumentKind::Css => Rewriting::Style,
            DocumentKind::Playlist => Rewriting::Playlist,
            _ => Rewriting::AsItIs,
        }
    }

    /// Adds `Memento-Datetime`, `Link` and the number of the capture.
    fn describe(&self, response: &mut Response, found: &Mementos, place: usize, own_links: Vec<String>) {
        let memento = &found.list[place];
        response.set("Memento-Datetime", &http_date(memento.capture.time));
        let mut links = self.memento_links(found, Some(place));
        links.extend(own_links);
        response.set("Link", &links.join(", "));
        response.set("X-Archive-Capture", &memento.id.to_string());
        if matches!(response.status, 200 | 206) {
            response.set("Accept-Ranges", "bytes");
        }
    }
}

/// A media type without parameters; none of several, of which browsers take another than we do.
fn essence(media_type: &str) -> String {
    let first = media_type.split(';').next().filter(|_| !media_type.contains(','));
    first.unwrap_or_default().trim().to_ascii_lowercase()
}

/// What an answer is to a browser, if nothing was put in front of its scripts.
pub(super) fn kind_of(media_type: &str, body: &[u8]) -> ResponseKind {
    let media = essence(media_type);
    let subtype = media.strip_prefix("text/").or_else(|| media.strip_prefix("application/"));
    match subtype.map(|subtype| subtype.strip_prefix("x-").unwrap_or(subtype)).unwrap_or_default() {
        "javascript" | "ecmascript" | "jscript" | "livescript" => ResponseKind::Scripted,
        "xml" => ResponseKind::Transformed,
        subtype if subtype.starts_with("javascript1.") && !subtype.contains('+') => ResponseKind::Scripted,
        subtype if subtype.ends_with("+xml") => ResponseKind::Transformed,
        _ if is_pdf(&media, body) => ResponseKind::Pdf,
        _ => ResponseKind::Plain,
    }
}

/// Whether browsers show a body as a PDF; those without a type are recognised by their first bytes.
fn is_pdf(media_type: &str, body: &[u8]) -> bool {
    match media_type {
        "" => body.starts_with(b"%PDF-"),
        stated => matches!(stated, "application/pdf" | "text/pdf"),
    }
}

/// The body without content codings, or the beginning of a long one that has none; `None` if it must be sent with them.
fn plain(recorded: &RecordedResponse) -> Option<Cow<'_, [u8]>> {
    let codings = recorded.head.list("Content-Encoding");
    let decoded = decode_content(&recorded.body, &codings, REWRITTEN_BYTES_MAX);
    let is_left = matches!(decoded.problem, Some(CodingProblem::TooLarge { .. } | CodingProblem::TooMany));
    let is_coded = recorded.long.is_some() && matches!(decoded.body, Cow::Owned(_));
    (!is_left && !is_coded).then_some(decoded.body)
}

/// Rewrites a document; also returns its media type with the declared encoding, because additions to the head may push
/// the declaration beyond where browsers look for it. If none is declared, the browser guesses, as it did for the
/// original.
fn markup(
    body: &[u8],
    stated: &str,
    media: &str,
    is_xml: bool,
    links: LinkRewriter,
    additions: Additions<'_>,
) -> (Option<Vec<u8>>, String) {
    let charset = charset::detect(body, charset_parameter(stated), is_xml);
    let (stated, media) = if media.is_empty() { ("text/html", "text/html") } else { (stated, media) };
    let typed = |name: &str| format!("{media}; charset={}", name.to_ascii_lowercase());
    let syntax = if is_xml { MarkupSyntax::Xml } else { MarkupSyntax::Html };
    if charset.encoding.is_ascii_compatible() {
        let new = html::rewrite(body, charset.encoding, syntax, links, additions);
        let name = charset.encoding.name();
        return (new, if charset.is_guess { stated.to_owned() } else { typed(name) });
    }
    let (text, _) = charset::decode(body, &charset);
    match html::rewrite(text.as_bytes(), UTF_8, syntax, links.in_encoding(charset.encoding), additions) {
        Some(new) => (Some(new), typed(UTF_8.name())),
        None => (None, stated.to_owned()),
    }
}

/// Rewrites a style sheet in its own encoding. If it has bytes that are invalid in that encoding, it is decoded as a
/// single-byte encoding to preserve them.
fn style(body: &[u8], stated: &str, links: LinkRewriter) -> Option<Vec<u8>> {
    let charset = charset::detect(body, charset_parameter(stated), false);
    let encoding = charset.encoding;
    let (text, had_errors) = charset::decode(body, &charset);
    if had_errors || encoding.output_encoding() != encoding {
        let (text, _) = WINDOWS_1252.decode_without_bom_handling(body);
        return css::rewrite(&text, &links).map(|new| WINDOWS_1252.encode(&new).0.into_owned());
    }
    let new = css::rewrite(&text, &links.in_encoding(encoding))?;
    let (new, ..) = encoding.encode(&new);
    Some([&body[..charset.mark_bytes], &new].concat())
}

/// Rewrites a playlist, which is UTF-8 (RFC 8216, section 4).
fn film(body: &[u8], links: &LinkRewriter) -> Option<Vec<u8>> {
    playlist::rewrite(std::str::from_utf8(body).ok()?, links).map(String::into_bytes)
}

fn xml_document(body: &[u8], stated: &str, links: LinkRewriter) -> Option<Vec<u8>> {
    let charset = charset::detect(body, charset_parameter(stated), true);
    let (text, had_errors) = charset::decode(body, &charset);
    if had_errors || charset.encoding.output_encoding() != charset.encoding {
        return None;
    }
    let new = xml::rewrite(&text, &links.in_encoding(charset.encoding))?;
    let (new, ..) = charset.encoding.encode(&new);
    Some([&body[..charset.mark_bytes], &new].concat())
}

/// Gives the answer of a script to the function that the request names, if the captured request named another one.
fn called(body: Bytes, requested: &str, captured: &str) -> Bytes {
    /// Maximum length of what comes before the answer's first bracket, in bytes.
    const START_BYTES_MAX: usize = 1024;
    let (Some(new), Some(old)) = (callback_of(requested), callback_of(captured)) else { return body };
    let start = body.iter().take(START_BYTES_MAX).position(|byte| *byte == b'(');
    let start = start.and_then(|end| std::str::from_utf8(&body[..end]).ok());
    match start.filter(|start| new != old && start.trim_end().ends_with(old)) {
        Some(start) => [renamed(start, old, new).as_bytes(), &body[start.len()..]].concat().into(),
        None => body,
    }
}

/// Replaces a name wherever it stands: some servers ask first whether there is such a function, `typeof f === 'function'`.
fn renamed(script: &str, old: &str, new: &str) -> String {
    let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '.');
    let (mut written, mut from) = (String::new(), 0);
    for (at, _) in script.match_indices(old) {
        let end = at + old.len();
        if !script[..at].ends_with(is_of_name) && !script[end..].starts_with(is_of_name) && at >= from {
            written.extend([&script[from..at], new]);
            from = end;
        }
    }
    written + &script[from..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_given_to_the_function_that_is_named() {
        let url = |callback: &str| format!("http://a.org/?callback={callback}");
        for (body, new) in [
            ("f1({})", "g.h({})"),
            (" /**/ f1 ({f1: 1})", " /**/ g.h ({f1: 1})"),
            ("f1.f1(f1({}))", "f1.f1(f1({}))"),
            ("/**/ typeof f1 === 'function' && f1({})", "/**/ typeof g.h === 'function' && g.h({})"),
            ("other({})", "other({})"),
            ("{}", "{}"),
        ] {
            assert_eq!(called(body.into(), &url("g.h"), &url("f1")), new, "{body}");
        }
        assert_eq!(called("f1()".into(), "http://a.org/", &url("f1")), "f1()");
        let asking = |name: &str| format!("typeof {name} === 'function' && {name}()");
        assert_eq!(called(asking("f").into(), &url("g"), &url("f")), asking("g"));
    }
}
