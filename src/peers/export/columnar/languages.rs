//! Languages as Common Crawl names them, by the three-letter codes of ISO 639-3.

use archive_web::parse::language::CODES;

/// Returns the ISO 639-3 code of a language tag (BCP 47), if it has one.
pub(super) fn code(tag: &str) -> Option<String> {
    let subtag = tag.split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase();
    if !subtag.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return None;
    }
    match subtag.len() {
        2 => CODES.split(' ').find_map(|codes| codes.strip_prefix(&subtag)).map(str::to_owned),
        3 => Some(subtag),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::code;

    #[test]
    fn tags_have_three_letters() {
        for (tag, expected) in [
            ("en", Some("eng")),
            ("de-AT", Some("deu")),
            ("zh_Hant", Some("zho")),
            ("AA", Some("aar")),
            ("zu", Some("zul")),
            ("gsw", Some("gsw")),
            ("qq", None),
            ("", None),
            ("x-klingon", None),
            ("ë1", None),
        ] {
            assert_eq!(code(tag).as_deref(), expected, "{tag}");
        }
    }
}
