//! Rewriting of style sheets.

use archive_web::parse::css::{references, unescape};

use super::{LinkRewriter, Splice};

/// Rewrites the addresses in a style sheet or in declarations; `None` if there are none.
pub(in super::super) fn rewrite(css: &str, links: &LinkRewriter) -> Option<String> {
    let mut splice = Splice::new(css);
    references(css, |written, kind| {
        if let Some(address) = links.of_kind(&unescape(written), kind) {
            splice.replace(written, &escape(&address));
        }
    });
    splice.finish()
}

/// Escapes a URL for a string with either kind of quotes, or for an unquoted `url()`.
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
