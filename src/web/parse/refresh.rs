//! Parses `Refresh`, in an HTTP head or in a `meta` element.

/// Returns the URL of a refresh (HTML standard, section 4.2.5.3, "shared declarative refresh steps"); none if it only
/// reloads the document.
pub fn target(content: &str) -> Option<&str> {
    let rest = content.trim_start();
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 && !rest.starts_with('.') {
        return None;
    }
    let rest = rest[digits..].trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let separator = rest.chars().next()?;
    if !matches!(separator, ';' | ',') && !separator.is_ascii_whitespace() {
        return None;
    }
    let rest = rest.trim_start().trim_start_matches([';', ',']).trim_start();
    let url = without_prefix(rest).unwrap_or(rest);
    let url = match url.chars().next()? {
        quote @ ('"' | '\'') => {
            let inside = &url[1..];
            &inside[..inside.find(quote).unwrap_or(inside.len())]
        }
        _ => url,
    };
    Some(url.trim()).filter(|url| !url.is_empty())
}

/// Removes `url =`.
fn without_prefix(text: &str) -> Option<&str> {
    let after = text.get(..3).filter(|name| name.eq_ignore_ascii_case("url")).map(|_| &text[3..])?;
    Some(after.trim_start().strip_prefix('=')?.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_of_all_forms() {
        for (content, expected) in [
            ("0; url=x", Some("x")),
            ("5;URL = 'x y'", Some("x y")),
            ("5, \"x\" z", Some("x")),
            ("5 x", Some("x")),
            ("1.5;url=x", Some("x")),
            ("0;url", Some("url")),
            ("0;urls.html", Some("urls.html")),
            ("5", None),
            ("5;", None),
            ("5;url=", None),
            ("x; url=y", None),
            ("", None),
        ] {
            assert_eq!(target(content), expected, "{content}");
        }
    }
}
