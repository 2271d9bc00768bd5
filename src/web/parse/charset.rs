//! Decodes bytes to text: which encoding a document has.
//!
//! The order is that of the HTML standard ("determining the character encoding"), which XML follows in effect: byte
//! order mark, then the transport's label, then a declaration in the first bytes, then a guess.

use std::borrow::Cow;

use encoding_rs::{Encoding, REPLACEMENT, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

use super::html::{Attribute, Markup};

/// Bytes at the beginning in which a declaration may stand (HTML standard, "prescan a byte stream").
pub(crate) const PRESCAN_BYTES: usize = 1024;

/// Bytes of an undeclared document that the guess examines. The guess runs at about 40 MB/s.
pub(crate) const GUESS_BYTES: usize = 32 * 1024;

/// The encoding of a document, and the length of its byte order mark.
pub struct Charset<'a> {
    /// The encoding.
    pub encoding: &'static Encoding,
    /// Bytes of the byte order mark.
    pub mark_bytes: usize,
    /// Whether no declaration was found.
    pub is_guess: bool,
    /// The text, if finding the encoding has shown that the body is valid UTF-8.
    text: Option<&'a str>,
}

/// Finds the encoding. `label` is the `charset` of `Content-Type`.
pub fn detect<'a>(body: &'a [u8], label: Option<&str>, is_xml: bool) -> Charset<'a> {
    if let Some((encoding, mark_bytes)) = Encoding::for_bom(body) {
        return Charset { encoding, mark_bytes, is_guess: false, text: None };
    }
    let found = |encoding| Charset { encoding, mark_bytes: 0, is_guess: false, text: None };
    if let Some(encoding) = label.and_then(for_label) {
        return found(encoding);
    }
    let head = &body[..body.len().min(PRESCAN_BYTES)];
    if let Some(encoding) = utf_16_by_pattern(head) {
        return found(encoding);
    }
    if let Some(encoding) = xml_declaration(head).and_then(for_label) {
        return found(ascii_compatible(encoding));
    }
    if is_xml {
        return found(UTF_8);
    }
    match meta_charset(head).as_deref().and_then(for_label) {
        Some(encoding) => found(declared_by_meta(encoding)),
        None => guess(body),
    }
}

/// Returns the encoding that is declared: by `label`, the `charset` of `Content-Type`, or by the document in its first
/// bytes.
pub(crate) fn declared(body: &[u8], label: Option<&str>, is_xml: bool) -> Option<&'static Encoding> {
    let head = &body[..body.len().min(PRESCAN_BYTES)];
    let of_xml = || xml_declaration(head).and_then(for_label);
    let of_meta = || meta_charset(head).as_deref().and_then(for_label).filter(|_| !is_xml);
    label.and_then(for_label).or_else(of_xml).or_else(of_meta)
}

/// Returns the encoding that bytes are in, whatever is declared: by their mark, by being valid, or by a guess. Bytes that
/// are all ASCII are in the declared encoding, if it has ASCII.
pub(crate) fn of_bytes(body: &[u8], declared: Option<&'static Encoding>) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(body) {
        return encoding;
    }
    if let Some(encoding) = utf_16_by_pattern(&body[..body.len().min(PRESCAN_BYTES)]) {
        return encoding;
    }
    if body.is_ascii() {
        return declared.map_or(UTF_8, ascii_compatible);
    }
    guess(body).encoding
}

/// Returns the text of a body, and whether some bytes were invalid in the encoding.
pub fn decode<'a>(body: &'a [u8], charset: &Charset<'a>) -> (Cow<'a, str>, bool) {
    if let Some(text) = charset.text {
        return (Cow::Borrowed(text), false);
    }
    charset.encoding.decode_without_bom_handling(&body[charset.mark_bytes..])
}

fn for_label(label: &str) -> Option<&'static Encoding> {
    Encoding::for_label(label.trim().trim_matches(['"', '\'']).as_bytes())
        .filter(|&found| found != REPLACEMENT)
}

/// A declaration that can be read byte by byte cannot be in UTF-16.
fn ascii_compatible(encoding: &'static Encoding) -> &'static Encoding {
    if encoding == UTF_16BE || encoding == UTF_16LE { UTF_8 } else { encoding }
}

fn declared_by_meta(encoding: &'static Encoding) -> &'static Encoding {
    if encoding == X_USER_DEFINED { WINDOWS_1252 } else { ascii_compatible(encoding) }
}

/// Recognises `<?x` in UTF-16 (XML 1.0, appendix F; HTML standard, prescan, step 2), and `<h` and `<!`.
fn utf_16_by_pattern(head: &[u8]) -> Option<&'static Encoding> {
    match head {
        [b'<', 0, b'?' | b'!' | b'h' | b'H', 0, ..] => Some(UTF_16LE),
        [0, b'<', 0, b'?' | b'!' | b'h' | b'H', ..] => Some(UTF_16BE),
        _ => None,
    }
}

/// Returns the `encoding` of `<?xml … ?>`.
fn xml_declaration(head: &[u8]) -> Option<&str> {
    let declaration = head.trim_ascii_start().strip_prefix(b"<?xml")?;
    let end = memchr::memchr(b'>', declaration)?;
    let declaration = &declaration[..end];
    let at = memchr::memmem::find(declaration, b"encoding")?;
    let value = declaration[at + 8..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let (&quote, value) = value.split_first().filter(|(quote, _)| matches!(quote, b'"' | b'\''))?;
    let end = memchr::memchr(quote, value)?;
    std::str::from_utf8(&value[..end]).ok()
}

/// Returns the encoding that a `meta` element in the first bytes declares: `charset`, or `content` with
/// `http-equiv=content-type`. Comments are skipped.
fn meta_charset(head: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(head);
    let mut markup = Markup::of(&head);
    while let Some(tag) = markup.next_tag() {
        if !tag.is_end && tag.name.eq_ignore_ascii_case("meta") {
            let declared = charset_of_meta(tag.attributes);
            if declared.is_some() {
                return declared.map(str::to_owned);
            }
        }
    }
    None
}

fn charset_of_meta<'a>(attributes: &[Attribute<'a>]) -> Option<&'a str> {
    let value = |name| attributes.iter().find(|found| found.is(name)).map(|found| found.value);
    if let Some(charset) = value("charset") {
        return Some(charset);
    }
    let is_content_type = value("http-equiv").is_some_and(|name| name.eq_ignore_ascii_case("content-type"));
    charset_parameter(value("content").filter(|_| is_content_type)?)
}

/// Returns the value of `charset=` in a `Content-Type`.
pub fn charset_parameter(content_type: &str) -> Option<&str> {
    let mut rest = content_type;
    loop {
        let at = rest.bytes().enumerate().position(|(at, _)| {
            rest.as_bytes().get(at..at + 7).is_some_and(|name| name.eq_ignore_ascii_case(b"charset"))
        })?;
        rest = rest[at + 7..].trim_start();
        if let Some(value) = rest.strip_prefix('=') {
            let value = value.trim_start();
            let quoted = value.strip_prefix(['"', '\'']);
            let value = quoted.unwrap_or(value);
            let end = value.find(['"', '\'', ';', ' ', '\t', ',']).unwrap_or(value.len());
            return Some(&value[..end]).filter(|value| !value.is_empty());
        }
    }
}

/// Guesses the encoding of a document that declares none: UTF-8 if the body is valid UTF-8, else from the bytes around
/// the first non-ASCII byte.
fn guess(body: &[u8]) -> Charset<'_> {
    /// Bytes of context for the detector before the first non-ASCII byte.
    const CONTEXT_BYTES: usize = 1024;
    let found = |encoding, text| Charset { encoding, mark_bytes: 0, is_guess: true, text };
    match std::str::from_utf8(body) {
        Ok(text) => return found(UTF_8, Some(text)),
        // A truncated document may end inside a character.
        Err(error) if error.error_len().is_none() => return found(UTF_8, None),
        Err(_) => {}
    }
    let first = Encoding::ascii_valid_up_to(body);
    let start = first.saturating_sub(CONTEXT_BYTES);
    let sample = &body[start..body.len().min(start + GUESS_BYTES)];
    let mut detector = chardetng::EncodingDetector::new(chardetng::Iso2022JpDetection::Deny);
    detector.feed(sample, start + sample.len() == body.len());
    found(detector.guess(None, chardetng::Utf8Detection::Allow), None)
}

#[cfg(test)]
mod tests {
    use encoding_rs::{EUC_JP, SHIFT_JIS, WINDOWS_1251};

    use super::*;

    fn of(body: &[u8], label: Option<&str>) -> &'static Encoding {
        detect(body, label, false).encoding
    }

    #[test]
    fn the_first_to_name_it_wins() {
        let meta = b"<meta charset=shift_jis>";
        assert_eq!(of(b"\xEF\xBB\xBF<meta charset=shift_jis>", Some("euc-jp")), (UTF_8));
        assert_eq!(of(b"\xFF\xFE<\0", None), UTF_16LE);
        assert_eq!(of(meta, Some("euc-jp")), EUC_JP);
        assert_eq!(of(meta, Some("no such")), SHIFT_JIS);
        assert_eq!(of(b"<?xml version='1.0' encoding='windows-1251'?>", None), (WINDOWS_1251));
        assert_eq!(of(b"<html>", None), UTF_8);
        assert_eq!(of(b"<\0?\0x\0m\0l\0", None), UTF_16LE);
    }

    #[test]
    fn meta_in_all_its_forms() {
        for meta in [
            "<META CHARSET = 'Shift_JIS' >",
            "<meta http-equiv=Content-Type content='text/html; charset=shift_jis'>",
            "<!-- <meta charset=utf-8> --><meta content=\"text/html;charset='shift_jis'\" http-equiv=\"content-type\"/>",
            "<!--><meta charset=shift_jis>",
            "<metal charset=utf-8><meta name=a><meta charset=sjis>",
            "<meta content='charset charset = shift_jis' http-equiv=content-type>",
        ] {
            assert_eq!(of(meta.as_bytes(), None), SHIFT_JIS, "{meta}");
        }
        assert_eq!(of(b"<meta charset=utf-16le>", None), UTF_8);
        assert_eq!(of(b"<meta charset=x-user-defined>", None), WINDOWS_1252);
        let late = [vec![b' '; PRESCAN_BYTES], b"<meta charset=shift_jis>".to_vec()].concat();
        assert_eq!(of(&late, None), UTF_8);
    }

    #[test]
    fn undeclared_text_is_guessed() {
        let russian = "Съешь же ещё этих мягких французских булок, да выпей чаю. ".repeat(20);
        let (bytes, ..) = WINDOWS_1251.encode(&russian);
        assert_eq!(of(&bytes, None), WINDOWS_1251);
        assert_eq!(of(russian.as_bytes(), None), UTF_8);
        let japanese = "日本語の文章をここに書きます。".repeat(20);
        let (bytes, ..) = SHIFT_JIS.encode(&japanese);
        assert_eq!(of(&bytes, None), SHIFT_JIS);
    }
}
