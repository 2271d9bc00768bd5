//! Mementos as responses: head and body of a capture, rewritten for the client.

use std::borrow::Cow;

use archive_storage::warc::{HttpHead, media_type};
use archive_storage::{CaptureKind, StoreError};
use bytes::Bytes;
use encoding_rs::{UTF_8, WINDOWS_1252};
use url::Url;

use super::address::{Modifier, http_date, stamp};
use super::mementos::{Memento, Mementos};
use super::rewrite::html::{self, Additions, HEAD};
use super::rewrite::{Links, css, script, xml};
use super::{Asked, Error, Response, fields, policy};
use crate::parse::charset;
use crate::parse::html::Syntax;
use crate::parse::{CodingProblem, DocumentKind, charset_parameter, decode_content};

/// Maximum size of a document that is rewritten, in bytes; a longer one is sent unchanged.
pub(super) const REWRITTEN_BYTES_MAX: usize = 16 << 20;

/// Maximum size of a decoded body in bytes; a longer one is sent with its content coding.
const DECODED_BYTES_MAX: usize = 64 << 20;

/// The response of a capture, as recorded.
struct Recorded {
    head: HttpHead,
    status: u16,
    body: Bytes,
}

/// How to rewrite a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    AsItIs,
    /// HTML, XHTML, SVG.
    Markup {
        is_xml: bool,
        is_page: bool,
    },
    Style,
    Script,
    Xml,
}

impl Asked<'_> {
    /// The response for a memento.
    pub(super) fn show(&self, found: &Mementos, place: usize, modifier: Modifier) -> Result<Response, Error> {
        let memento = &found.list[place];
        let Some(recorded) = self.recorded(memento)? else {
            return Ok(self.problem(404, "The capture that has this one's content is not in the archive."));
        };
        let links = Links::new(Url::parse(found.url(memento)).ok(), stamp(memento.capture.time), modifier)
            .shown_at(self.request.path);
        let mut response = Response::new(recorded.status);
        let own_links = fields::add(&mut response, &recorded.head, &links);
        self.describe(&mut response, found, place, own_links);
        if modifier == Modifier::Identity {
            for name in ["Content-Type", "Content-Encoding"] {
                if let Some(value) = recorded.head.get(name) {
                    response.set(name, &fields::clean(value));
                }
            }
            response.body = recorded.body;
        } else {
            self.write(&mut response, &recorded, links, modifier, &|| self.banner(found, memento));
        }
        if matches!(response.status, 204 | 205) {
            response.body = Bytes::new();
        }
        Ok(ranged(response, self.request.range))
    }

    /// Reads head and payload. A revisit has the payload of its original. If the same payload was received again, the
    /// revisit has a head of its own; if the server only confirmed it, the head is the original's.
    fn recorded(&self, memento: &Memento) -> Result<Option<Recorded>, StoreError> {
        let Some(original) = self.store.original(&memento.capture)? else { return Ok(None) };
        let record = self.store.record(original.location)?;
        let mut head = record.http_head();
        if memento.capture.kind == CaptureKind::Identical {
            let own = self.store.record(memento.capture.location)?.http_head();
            if own.status().is_some() {
                head = own;
            }
        }
        let status = head.status().filter(|status| (200..600).contains(status)).unwrap_or(200);
        // A partial response is all that was captured, so it is served as a complete one.
        let status = if matches!(status, 206 | 304) { 200 } else { status };
        Ok(Some(Recorded { head, status, body: record.payload() }))
    }

    /// Sets the body and the media type for a browser.
    fn write(
        &self,
        response: &mut Response,
        recorded: &Recorded,
        links: Links,
        modifier: Modifier,
        banner: &dyn Fn() -> String,
    ) {
        let stated = fields::clean(recorded.head.get("Content-Type").unwrap_or_default());
        let Some(body) = plain(recorded) else {
            response.set("Content-Type", &stated);
            response.set("Content-Encoding", &fields::clean(&codings(&recorded.head)));
            response.body = recorded.body.clone();
            return;
        };
        let media = media_type(&stated).unwrap_or_default();
        let written = self.way(&media, &body, modifier);
        let is_short = body.len() <= REWRITTEN_BYTES_MAX;
        let (new, media_type) = match written {
            Written::Markup { is_xml, is_page } if is_short => {
                // Nothing may follow the root of an XML document.
                let has_banner = is_page && modifier == Modifier::Page && !is_xml;
                let banner = if has_banner { banner() } else { String::new() };
                let has_names = is_page || !is_xml;
                let links = if has_names { links } else { links.with_plain_scripts() };
                let additions = Additions { head: if is_page { HEAD } else { "" }, end: &banner };
                markup(&body, &stated, &media, is_xml, links, additions)
            }
            Written::Style if is_short => (style(&body, &stated, links), stated.clone()),
            Written::Script if is_short => (script::rewrite(&body), stated.clone()),
            Written::Xml if is_short => (xml_document(&body, &stated, links), stated.clone()),
            _ => (None, stated.clone()),
        };
        if !media_type.is_empty() {
            response.set("Content-Type", &media_type);
        }
        let is_page = matches!(written, Written::Markup { is_page: true, .. });
        if is_page {
            response.set(
                "X-Archive-Worker-Policy",
                &policy::under_worker(self.request.application, self.request.base),
            );
        }
        response.body = match (new, body) {
            (Some(new), _) => new.into(),
            (None, Cow::Borrowed(_)) => recorded.body.clone(),
            (None, Cow::Owned(body)) => body.into(),
        };
    }

    /// Decides how to rewrite a body: by how it was requested, then by its type.
    fn way(&self, media: &str, body: &[u8], modifier: Modifier) -> Written {
        // The worker requests pages with the destination `empty`, and what scripts request as `mp_`.
        let is_page = self.request.destination.is_none_or(|destination| match destination {
            "document" | "iframe" | "frame" | "object" | "embed" => true,
            destination => destination == "empty" && modifier.is_document(),
        });
        match modifier {
            Modifier::Identity => return Written::AsItIs,
            // Workers do not have `static/replay.js`. Modules import data and style sheets as well.
            Modifier::Script => {
                let is_for_page = matches!(self.request.destination, None | Some("script" | "empty"));
                return if is_for_page { Written::Script } else { Written::AsItIs };
            }
            Modifier::Style if !media.contains("xml") => return Written::Style,
            _ => {}
        }
        // A body declared as plain text is shown as text.
        let kind = if media == "text/plain" { DocumentKind::Text } else { DocumentKind::of(media, body) };
        let is_xml = media.ends_with("+xml") || media.ends_with("/xml");
        match kind {
            DocumentKind::Html => Written::Markup { is_xml, is_page },
            DocumentKind::Xml if media == "image/svg+xml" => Written::Markup { is_xml, is_page: false },
            DocumentKind::Xml => Written::Xml,
            DocumentKind::Css => Written::Style,
            _ => Written::AsItIs,
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
        if response.status == 200 {
            response.set("Accept-Ranges", "bytes");
        }
    }
}

fn codings(head: &HttpHead) -> String {
    let is_coding = |name: &str| name.eq_ignore_ascii_case("Content-Encoding");
    let values = head.fields.iter().filter(|(name, _)| is_coding(name)).map(|(_, value)| value.as_str());
    values.collect::<Vec<_>>().join(", ")
}

/// The body without content codings; `None` if it must be sent with them.
fn plain(recorded: &Recorded) -> Option<Cow<'_, [u8]>> {
    let decoded = decode_content(&recorded.body, &codings(&recorded.head), DECODED_BYTES_MAX);
    let is_left = matches!(decoded.problem, Some(CodingProblem::TooLarge { .. } | CodingProblem::TooMany));
    (!is_left).then_some(decoded.body)
}

/// Rewrites a document; also returns its media type with the declared encoding, because additions to the head may push
/// the declaration beyond where browsers look for it. If none is declared, the browser guesses, as it did for the
/// original.
fn markup(
    body: &[u8],
    stated: &str,
    media: &str,
    is_xml: bool,
    links: Links,
    additions: Additions<'_>,
) -> (Option<Vec<u8>>, String) {
    let charset = charset::detect(body, charset_parameter(stated), is_xml);
    let (stated, media) = if media.is_empty() { ("text/html", "text/html") } else { (stated, media) };
    let typed = |name: &str| format!("{media}; charset={}", name.to_ascii_lowercase());
    let syntax = if is_xml { Syntax::Xml } else { Syntax::Html };
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
fn style(body: &[u8], stated: &str, links: Links) -> Option<Vec<u8>> {
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

fn xml_document(body: &[u8], stated: &str, links: Links) -> Option<Vec<u8>> {
    let charset = charset::detect(body, charset_parameter(stated), true);
    let (text, had_errors) = charset::decode(body, &charset);
    if had_errors || charset.encoding.output_encoding() != charset.encoding {
        return None;
    }
    let new = xml::rewrite(&text, &links.in_encoding(charset.encoding))?;
    let (new, ..) = charset.encoding.encode(&new);
    Some([&body[..charset.mark_bytes], &new].concat())
}

/// Applies a range request (RFC 9110, section 14) with a single range; several ranges get the complete response.
fn ranged(mut response: Response, range: Option<&str>) -> Response {
    let Some(range) = range.filter(|_| response.status == 200) else { return response };
    let Some((first, last)) = range.trim().strip_prefix("bytes=").and_then(|range| range.split_once('-'))
    else {
        return response;
    };
    let length = response.body.len() as u64;
    let (first, last) = match (first.trim().parse::<u64>(), last.trim().parse::<u64>()) {
        (Ok(first), Ok(last)) if first <= last => (first, last.min(length.saturating_sub(1))),
        (Ok(first), Err(_)) if last.trim().is_empty() => (first, length.saturating_sub(1)),
        (Err(_), Ok(count)) if first.trim().is_empty() => {
            (if count == 0 { length } else { length.saturating_sub(count) }, length.saturating_sub(1))
        }
        _ => return response,
    };
    if first >= length {
        response.status = 416;
        response.set("Content-Range", &format!("bytes */{length}"));
        response.body = Bytes::new();
        return response;
    }
    response.status = 206;
    response.set("Content-Range", &format!("bytes {first}-{last}/{length}"));
    // Both are within the body.
    response.body = response.body.slice(first as usize..=last as usize);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_all_forms() {
        let whole = || Response::text(200, "text/plain", &b"0123456789"[..]);
        for (range, status, body) in [
            ("bytes=0-3", 206, "0123"),
            ("bytes=4-", 206, "456789"),
            ("bytes=-2", 206, "89"),
            ("bytes=8-99", 206, "89"),
            ("bytes=-99", 206, "0123456789"),
            ("bytes=10-", 416, ""),
            ("bytes=-0", 416, ""),
            ("bytes=3-1", 200, "0123456789"),
            ("bytes=0-1,4-5", 200, "0123456789"),
            ("lines=0-1", 200, "0123456789"),
            ("bytes=99999999999999999999-", 200, "0123456789"),
        ] {
            let part = ranged(whole(), Some(range));
            assert_eq!((part.status, &part.body[..]), (status, body.as_bytes()), "{range}");
        }
        assert_eq!(ranged(whole(), Some("bytes=2-4")).get("Content-Range"), Some("bytes 2-4/10"));
        assert_eq!(ranged(whole(), Some("bytes=10-")).get("Content-Range"), Some("bytes */10"));
        assert_eq!(ranged(Response::text(200, "x", ""), Some("bytes=0-")).status, 416);
    }
}
