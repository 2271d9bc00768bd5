//! Rewriting of playlists of streamed films: relative URLs in them lead to the archive by themselves.

use std::sync::LazyLock;

use archive_web::parse::LinkKind;
use archive_web::parse::playlist::entries;
use regex::Regex;

use super::{LinkRewriter, Splice};

/// Rewrites the addresses of an HLS playlist; `None` if there are none.
pub(in super::super) fn rewrite(playlist: &str, links: &LinkRewriter) -> Option<String> {
    let mut splice = Splice::new(playlist);
    entries(playlist, |written, _| {
        if let Some(address) = links.of_kind(written, LinkKind::Media) {
            splice.replace(written, &address);
        }
    });
    splice.finish()
}

/// An absolute URL, or a template of URLs, of a DASH manifest.
static OF_MANIFEST: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let attributes = r#"\b(?:media|initialization|sourceURL|index)\s*=\s*["']"#;
    let elements = r"<(?:\w+:)?(?:BaseURL|Location)\b[^<>]*>\s*";
    Regex::new(&format!(r#"(?:{attributes}|{elements})(https?://[^"'<>\s]+)"#)).ok()
});

/// Whether an XML document is a DASH manifest, by its beginning.
pub(super) fn is_manifest(xml: &str) -> bool {
    let head = &xml[..xml.floor_char_boundary(HEAD_BYTES)];
    head.contains("MPD") && head.contains("urn:mpeg:dash:")
}

/// Bytes in which a manifest names itself.
const HEAD_BYTES: usize = 4096;

/// Rewrites the absolute addresses of a DASH manifest.
pub(super) fn rewrite_manifest<'a>(xml: &'a str, links: &LinkRewriter, splice: &mut Splice<'a>) {
    let Some(pattern) = &*OF_MANIFEST else { return };
    for found in pattern.captures_iter(xml) {
        let Some(written) = found.get(1).map(|url| &xml[url.range()]) else { continue };
        if let Some(address) = links.of_kind(&htmlize::unescape_attribute(written), LinkKind::Media) {
            splice.replace(written, &htmlize::escape_attribute(&*address));
        }
    }
}
