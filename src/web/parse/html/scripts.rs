//! Finds literal URLs to which a script navigates, as in scripts of static pages: `location = "x"`,
//! `location.href = "x"`, `location.replace("x")`, `window.open("x")`. Scripts are not run, and concatenated strings do
//! not count as literals.

/// Calls `found` with every such literal.
pub(super) fn targets<'a>(script: &'a str, mut found: impl FnMut(&'a str)) {
    for at in memchr::memmem::find_iter(script.as_bytes(), b"location") {
        let after = &script[at + "location".len()..];
        let operator = [".href", ".assign", ".replace"].iter().find_map(|part| after.strip_prefix(part));
        let operator = operator.unwrap_or(after).trim_start();
        if let Some(value) = operator.strip_prefix(['=', '(']) {
            literal(value).map(&mut found);
        }
    }
    for at in memchr::memmem::find_iter(script.as_bytes(), b"window.open(") {
        literal(&script[at + "window.open(".len()..]).map(&mut found);
    }
}

/// Returns the string at the start of a text, if nothing is appended to it.
fn literal(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let quote = text.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    let end = text[1..].find([quote, '\n', '\\', '<'])? + 1;
    let after = text[end..].strip_prefix(quote)?.trim_start();
    (!after.starts_with(['+', '.'])).then(|| &text[1..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_nothing_else() {
        for (script, expected) in [
            ("location = 'a'; x", Some("a")),
            ("window.location.href=\"/a\"", Some("/a")),
            ("document.location.replace( 'a' )", Some("a")),
            ("top.location.assign('a')", Some("a")),
            ("window.open('a', '_blank')", Some("a")),
            ("location.href = 'a' + b", None),
            ("location.hash = 'a'", None),
            ("if (location == 'a') {}", None),
            ("location = a", None),
            ("location = 'a", None),
            ("location", None),
        ] {
            let mut all = Vec::new();
            targets(script, |target| all.push(target));
            assert_eq!(all, Vec::from_iter(expected), "{script}");
        }
    }
}
