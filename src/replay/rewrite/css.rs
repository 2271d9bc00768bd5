//! Style sheets.

use super::{Links, Splice};
use crate::parse::css::{references, unescape};

/// A style sheet, or declarations, with other addresses; nothing when there are none in it.
pub(in super::super) fn rewrite(css: &str, links: &Links) -> Option<String> {
    let mut splice = Splice::new(css);
    references(css, |written, kind| {
        if let Some(address) = links.of_kind(&unescape(written), kind) {
            splice.replace(written, &escape(&address));
        }
    });
    splice.finish()
}

/// A URL as it may stand in a string of either quotes, or in `url()` without any.
fn escape(address: &str) -> String {
    let mut escaped = String::with_capacity(address.len());
    for character in address.chars() {
        if matches!(character, '"' | '\'' | '(' | ')' | '\\') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}
