//! The parts of a URL: words, folders, and the pattern that it shares with similar URLs.

use std::hash::Hasher as _;

use xxhash_rust::xxh3::Xxh3Default;

/// Maximum number of folders of a URL that count, including the host.
pub(super) const FOLDERS_MAX: usize = 6;

/// Splits a URL into the host and the path with everything after it.
fn parts(url: &str) -> (&str, &str) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split_once('/').unwrap_or((rest, ""))
}

/// Returns the last non-empty part of the path.
pub(super) fn last_segment(url: &str) -> &str {
    parts(url).1.rsplit('/').find(|segment| !segment.is_empty()).unwrap_or("")
}

/// Calls `add` with runs of letters (in lower case), runs of digits (by length), and features of the path: depth,
/// extension, personal folder.
pub(super) fn url_words(url: &str, mut add: impl FnMut(&str)) {
    let path = parts(url).1;
    let mut word = String::new();
    for segment in path.split('/') {
        if segment.starts_with('~') {
            add("~");
        }
        let mut rest = segment;
        while let Some(first) = rest.chars().next() {
            let is_letter = first.is_alphabetic();
            let is_digit = first.is_ascii_digit();
            let of_kind = |c: char| {
                if is_letter {
                    c.is_alphabetic()
                } else {
                    is_digit == c.is_ascii_digit() && !c.is_alphabetic()
                }
            };
            let end = rest.find(|c| !of_kind(c)).unwrap_or(rest.len());
            word.clear();
            if is_letter {
                word.extend(rest[..end].chars().flat_map(char::to_lowercase));
            } else if is_digit {
                word.extend(std::iter::repeat_n('#', end.min(9)));
            }
            if !word.is_empty() {
                add(&word);
            }
            rest = &rest[end..];
        }
    }
    let segments = path.split('/').filter(|segment| !segment.is_empty()).count();
    add(&format!("depth {}", segments.min(5)));
    let last = path.rsplit('/').next().unwrap_or("");
    let ending = last.rsplit_once('.').map_or("", |(_, ending)| ending);
    add(&format!("ends {}", if path.is_empty() || last.is_empty() { "/" } else { ending }));
    if path.starts_with('~') {
        add(&format!("~ and {}{}", segments - 1, if last.is_empty() { "/" } else { "" }));
    }
    let shape: String = last_segment(url)
        .chars()
        .map(|c| if c.is_ascii_digit() { '#' } else { c.to_ascii_lowercase() })
        .take(20)
        .collect();
    add(&format!("last {shape}"));
}

/// Returns hashes of the host and of the folders of a URL, the outermost first.
pub(super) fn folders(url: &str) -> Vec<u64> {
    let (host, path) = parts(url);
    let mut hash = Xxh3Default::new();
    hash.write(host.as_bytes());
    let mut folders = vec![hash.finish()];
    let mut rest = path;
    while let Some((folder, inner)) = rest.split_once('/')
        && folders.len() < FOLDERS_MAX
    {
        hash.write(b"/");
        hash.write(folder.as_bytes());
        folders.push(hash.finish());
        rest = inner;
    }
    folders
}

/// Returns a hash shared by URLs that differ in names only: a personal folder, a number, or a file name (but not its
/// extension).
pub(super) fn pattern(url: &str) -> u64 {
    let (host, path) = parts(url);
    let mut hash = Xxh3Default::new();
    hash.write(host.as_bytes());
    let mut segments = path.split('/').peekable();
    while let Some(segment) = segments.next() {
        hash.write(b"/");
        if segment.starts_with('~') {
            hash.write(b"~");
        } else if segments.peek().is_some() || segment.is_empty() {
            segment.bytes().for_each(|byte| hash.write_u8(if byte.is_ascii_digit() { b'#' } else { byte }));
        } else {
            hash.write(b"*.");
            hash.write(segment.rsplit_once('.').map_or("", |(_, ending)| ending).as_bytes());
        }
    }
    hash.finish()
}

/// Returns the stem of a name: all its letters but the last, at least four, in lower case.
pub(super) fn stem(name: &str) -> String {
    let kept = name.chars().count().saturating_sub(1).max(4);
    name.chars().flat_map(char::to_lowercase).take(kept).collect()
}

/// Whether a word of `text` begins with `stem`; never for an empty stem.
pub(super) fn names(text: &str, stem: &str) -> bool {
    let begins = |word: &str| {
        let mut letters = word.chars().flat_map(char::to_lowercase);
        stem.chars().all(|letter| letters.next() == Some(letter))
    };
    !stem.is_empty() && text.split(|c: char| !c.is_alphanumeric()).any(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_fall_into_words_folders_and_patterns() {
        let mut words = Vec::new();
        url_words("http://a.edu/~Jane/CS414/notes-2.html", |word| words.push(word.to_owned()));
        for word in [
            "~",
            "jane",
            "cs",
            "###",
            "notes",
            "#",
            "html",
            "depth 3",
            "ends html",
            "~ and 2",
            "last notes-#.html",
        ] {
            assert!(words.iter().any(|known| known == word), "{word} is not among {words:?}");
        }
        let [a, b] = ["http://a.edu/~jane/cv.html", "http://a.edu/~john/x.html"].map(pattern);
        assert_eq!(a, b);
        assert_ne!(a, pattern("http://a.edu/people/x.html"));
        assert_eq!(folders("http://a.edu/x/y/z.html").len(), 3);
        assert_eq!(folders("http://a.edu/x/y/z.html")[1], folders("http://a.edu/x/")[1]);
        assert_eq!(folders(&format!("http://a.edu/{}", "x/".repeat(50))).len(), FOLDERS_MAX);
        assert_eq!(last_segment("http://a.edu/x/"), "x");
    }

    #[test]
    fn names_are_met_in_all_forms() {
        let stem = stem("Faculty");
        assert_eq!(stem, "facult");
        assert!(names("All FACULTIES of", &stem) && names("faculty-list.html", &stem));
        assert!(!names("fact", &stem) && !names("anything", ""));
    }
}
