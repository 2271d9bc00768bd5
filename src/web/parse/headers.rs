//! Reads the fields of an HTTP head that concern the document: type, language, links and directives.

use std::borrow::Cow;

use super::html::kind_of_relation;
use super::outlinks::Outlinks;
use super::{LinkKind, RobotsDirectives, charset, refresh};

/// Facts from an HTTP head.
#[derive(Debug, Default)]
pub(crate) struct HeadFacts {
    /// Media type in lower case, without parameters.
    pub(crate) media_type: String,
    /// `charset` parameter of the media type.
    pub(crate) charset: Option<String>,
    pub(crate) language: Option<String>,
    pub(crate) robots: RobotsDirectives,
    pub(crate) canonical: Option<String>,
}

/// Reads the fields of a head; adds its links to `outlinks`.
pub(crate) fn read(
    fields: &[(&str, &[u8])],
    content_type: Option<&str>,
    status: u16,
    robot: &str,
    outlinks: &mut Outlinks,
) -> HeadFacts {
    let mut facts = HeadFacts::default();
    if let Some(content_type) = content_type {
        facts.set_content_type(content_type);
    }
    for (name, value) in fields {
        let value = text_of(value);
        match name.len() {
            4 if name.eq_ignore_ascii_case("link") => facts.links(&value, outlinks),
            7 if name.eq_ignore_ascii_case("refresh") => {
                if let Some(target) = refresh::target(&value) {
                    outlinks.add(target, LinkKind::Refresh, false);
                }
            }
            8 if name.eq_ignore_ascii_case("location") && (300..400).contains(&status) => {
                outlinks.add(&value, LinkKind::Redirect, false);
            }
            12 if name.eq_ignore_ascii_case("x-robots-tag") => {
                facts.robots = facts.robots | RobotsDirectives::parse_header(&value, robot);
            }
            12 if content_type.is_none() && name.eq_ignore_ascii_case("content-type") => {
                facts.set_content_type(&value);
            }
            9 if name.eq_ignore_ascii_case("sourcemap") => {
                outlinks.add(&value, LinkKind::Speculative, false);
            }
            16 if name.eq_ignore_ascii_case("content-location") => {
                outlinks.add(&value, LinkKind::Alternate, false);
            }
            16 if name.eq_ignore_ascii_case("content-language") => {
                let first = value.split(',').next().map(|tag| tag.trim().to_owned());
                facts.language = first.filter(|tag| !tag.is_empty());
            }
            _ => {}
        }
    }
    facts
}

/// Field values are usually UTF-8, and Latin-1 by tradition.
fn text_of(value: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(value) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => encoding_rs::WINDOWS_1252.decode_without_bom_handling(value).0,
    }
}

/// Returns a media type in lower case, without parameters; empty if there is none. Servers state types that no standard
/// allows, so nothing is checked.
pub(crate) fn media_type(content_type: Option<&str>) -> String {
    let stated = content_type.and_then(|value| value.split([';', ',']).next()).unwrap_or_default();
    stated.trim().to_ascii_lowercase()
}

impl HeadFacts {
    fn set_content_type(&mut self, content_type: &str) {
        self.media_type = media_type(Some(content_type));
        self.charset = charset::charset_parameter(content_type).map(str::to_owned);
    }

    /// Reads a `Link` field (RFC 8288, section 3): `<x>; rel="next", <y>; rel=canonical`.
    fn links(&mut self, value: &str, outlinks: &mut Outlinks) {
        let mut rest = value;
        while let Some((target, parameters, next)) = split_link(rest) {
            rest = next;
            // A link with an `anchor` is about another resource than this document and is ignored.
            let rel = parameter(parameters, "rel").filter(|_| parameter(parameters, "anchor").is_none());
            let kind = rel.and_then(|rel| kind_of_relation(rel, parameter(parameters, "type")));
            let Some(kind) = kind else { continue };
            if kind == LinkKind::Canonical && self.canonical.is_none() {
                self.canonical = outlinks.resolve(target);
            }
            outlinks.add(target, kind, false);
        }
    }
}

/// Reads `Content-Range`: `bytes 0-99/200` or `bytes 0-99/*` as the first and the last byte, and the length if it is known.
pub fn content_range(value: &str) -> Option<(u64, u64, Option<u64>)> {
    let (range, length) = value.trim().strip_prefix("bytes")?.trim_start().split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    let length = length.trim().parse().ok();
    let is_sound = first <= last && last < u64::MAX && length.is_none_or(|length| last < length);
    is_sound.then_some((first, last, length))
}

/// Splits off the next link: its target, its parameters, and the rest.
pub fn split_link(text: &str) -> Option<(&str, &str, &str)> {
    let start = text.find('<')? + 1;
    let end = start + text[start..].find('>')?;
    let after = &text[end + 1..];
    let mut in_quotes = false;
    let stop = after.bytes().position(|byte| {
        in_quotes ^= byte == b'"';
        byte == b',' && !in_quotes
    });
    let (parameters, next) = match stop {
        Some(at) => (&after[..at], &after[at + 1..]),
        None => (after, ""),
    };
    Some((&text[start..end], parameters, next))
}

/// Returns the value of a parameter, without quotes.
pub fn parameter<'a>(parameters: &'a str, name: &str) -> Option<&'a str> {
    parameters.split(';').find_map(|parameter| {
        let (found, value) = parameter.split_once('=')?;
        found.trim().eq_ignore_ascii_case(name).then(|| value.trim().trim_matches('"'))
    })
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;
    use crate::parse::{Link, ParseLimits};

    fn read_all(status: u16, fields: &[(&str, &[u8])]) -> (HeadFacts, Vec<Link>) {
        let base = Url::parse("http://a.example/b/c").unwrap();
        let mut outlinks = Outlinks::new(&base, encoding_rs::UTF_8, &ParseLimits::default());
        let facts = read(fields, None, status, "archive", &mut outlinks);
        (facts, outlinks.finish(&mut Vec::new()))
    }

    #[test]
    fn links_of_a_head() {
        let (facts, links) = read_all(
            200,
            &[
                (
                    "LINK",
                    b"<x?a,b>; rel=\"next\"; title=\"a, b\", </y>; REL=canonical,<z>;rel=preload;as=style",
                ),
                ("Link", b"<w>; rel=stylesheet; anchor=\"/other\", <http://v.example>; rel=dns-prefetch"),
                ("Refresh", b"5; url=/u"),
                ("Location", b"/ignored"),
            ],
        );
        let found: Vec<_> = links.iter().map(|link| (link.kind, link.url.as_str())).collect();
        assert_eq!(
            found,
            [
                (LinkKind::Related, "http://a.example/b/x?a,b"),
                (LinkKind::Canonical, "http://a.example/y"),
                (LinkKind::Preload, "http://a.example/b/z"),
                (LinkKind::Refresh, "http://a.example/u"),
            ]
        );
        assert_eq!(facts.canonical.as_deref(), Some("http://a.example/y"));
    }

    #[test]
    fn a_redirect_leads_on() {
        let (_, links) = read_all(301, &[("location", "/é".as_bytes())]);
        assert_eq!((links[0].kind, links[0].url.as_str()), (LinkKind::Redirect, "http://a.example/%C3%A9"));
        let (_, links) = read_all(302, &[("location", b"/\xE9")]);
        assert_eq!(links[0].url, "http://a.example/%C3%A9");
    }

    #[test]
    fn type_language_and_directives() {
        let (facts, _) = read_all(
            200,
            &[
                ("content-type", b"Text/HTML; Charset=\"UTF-8\""),
                ("content-language", b"de-AT, en"),
                ("x-robots-tag", b"noarchive"),
                ("x-robots-tag", b"otherbot: noindex"),
            ],
        );
        assert_eq!((facts.media_type.as_str(), facts.charset.as_deref()), ("text/html", Some("UTF-8")));
        assert_eq!(facts.language.as_deref(), Some("de-AT"));
        assert_eq!(facts.robots, RobotsDirectives { noarchive: true, ..RobotsDirectives::default() });
    }

    #[test]
    fn broken_links_end_quietly() {
        for value in [&b"<x"[..], b"x>; rel=next", b"<>; rel=next", b"<x>; rel", b"\"<x>", b"<x>; rel=\"next"]
        {
            read_all(200, &[("link", value)]);
        }
    }
}
