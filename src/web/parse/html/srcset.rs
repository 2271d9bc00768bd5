//! Image candidates in the `srcset` attribute.

/// Calls `found` with the URL of every candidate (HTML standard, section 4.8.4.2.2, "parse a srcset attribute").
pub fn candidates<'a>(srcset: &'a str, mut found: impl FnMut(&'a str)) {
    let mut rest = srcset;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
        if rest.is_empty() {
            return;
        }
        let end = rest.find(|c: char| c.is_ascii_whitespace()).unwrap_or(rest.len());
        let (url, after) = rest.split_at(end);
        let bare = url.trim_end_matches(',');
        found(bare);
        // A URL that ends in a comma has no descriptors.
        rest = if bare.len() < url.len() { after } else { skip_descriptors(after) };
    }
}

/// Skips past the comma that ends the descriptors; commas in parentheses do not count.
fn skip_descriptors(text: &str) -> &str {
    let mut in_brackets = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => in_brackets = true,
            b')' => in_brackets = false,
            b',' if !in_brackets => return &text[at + 1..],
            _ => {}
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_of_all_forms() {
        for (srcset, expected) in [
            ("a.png", &["a.png"][..]),
            ("a.png 1x, b.png 2x", &["a.png", "b.png"]),
            ("a.png,b.png", &["a.png,b.png"]),
            ("a.png, b.png", &["a.png", "b.png"]),
            (" , a.png 100w , b,c.png 2x,", &["a.png", "b,c.png"]),
            ("data:image/png;base64,xx 1x, b 2x", &["data:image/png;base64,xx", "b"]),
            ("a (x, y) 1x, b", &["a", "b"]),
            ("", &[]),
            (",,", &[]),
        ] {
            let mut all = Vec::new();
            candidates(srcset, |url| all.push(url));
            assert_eq!(all, expected, "{srcset}");
        }
    }
}
