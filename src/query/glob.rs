//! Patterns: `*` stands for any characters, `?` for one, `\*` and `\?` for themselves.

/// A pattern ready to match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Glob {
    parts: Vec<Part>,
    fold_case: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Any,
    One,
    Is(char),
}

impl Glob {
    /// Reads a pattern; with `fold_case`, large and small letters are alike.
    pub(crate) fn new(pattern: &str, fold_case: bool) -> Self {
        let mut parts = Vec::new();
        let mut characters = pattern.chars().peekable();
        while let Some(character) = characters.next() {
            match character {
                '*' if parts.last() == Some(&Part::Any) => {}
                '*' => parts.push(Part::Any),
                '?' => parts.push(Part::One),
                '\\' if characters.peek().is_some_and(|next| "*?\\".contains(*next)) => {
                    parts.extend(characters.next().map(Part::Is));
                }
                other if fold_case => parts.extend(other.to_lowercase().map(Part::Is)),
                other => parts.push(Part::Is(other)),
            }
        }
        Self { parts, fold_case }
    }

    /// Whether the whole of `text` matches.
    pub(crate) fn matches(&self, text: &str) -> bool {
        match (text.is_ascii(), self.fold_case) {
            (true, true) => self.fits(text.bytes().map(|byte| char::from(byte.to_ascii_lowercase()))),
            (true, false) => self.fits(text.bytes().map(char::from)),
            (false, true) => self.fits(text.chars().flat_map(char::to_lowercase)),
            (false, false) => self.fits(text.chars()),
        }
    }

    /// What every text that matches begins with, in small letters if these and large ones are alike.
    pub(crate) fn beginning(&self) -> String {
        let characters = self.parts.iter().map_while(|part| match part {
            Part::Is(character) => Some(*character),
            Part::Any | Part::One => None,
        });
        characters.collect()
    }

    /// Two pointers with one way back, to the last star: at most pattern times text steps.
    fn fits(&self, mut text: impl Iterator<Item = char> + Clone) -> bool {
        let mut part = 0;
        let mut retry = None;
        loop {
            let here = text.clone();
            match (self.parts.get(part), text.next()) {
                (None, None) => return true,
                (Some(Part::Any), _) => {
                    part += 1;
                    retry = Some((part, here.clone()));
                    text = here;
                }
                (Some(Part::One), Some(_)) => part += 1,
                (Some(Part::Is(wanted)), Some(found)) if *wanted == found => part += 1,
                (_, rest) => match &mut retry {
                    // The star takes one character more; when the text has ended there is none to take.
                    Some((after, from)) if rest.is_some() => {
                        from.next();
                        part = *after;
                        text = from.clone();
                    }
                    _ => return false,
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Glob;

    #[test]
    fn fits_whole_texts() {
        for (pattern, text, fits) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("**", "abc", true),
            ("*/archive/*", "http://example.org/archive/1", true),
            ("*/archive/*", "http://example.org/archived/1", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-b-b-c-", false),
            ("*.pdf", "x.pdf.pdf", true),
            ("what\\?*", "what?x", true),
            ("what\\?*", "whatever", false),
            ("ä?ü", "äöü", true),
            ("A*", "abc", false),
        ] {
            assert_eq!(Glob::new(pattern, false).matches(text), fits, "{pattern} {text}");
        }
        assert!(Glob::new("ABC*", true).matches("abcÄ"));
        assert_eq!(Glob::new("AB\\?C?d*", true).beginning(), "ab?c");
        assert!(Glob::new("*ä", true).matches("abcÄ"));
    }

    #[test]
    fn long_stars_end() {
        let pattern = "a*".repeat(200) + "b";
        assert!(!Glob::new(&pattern, false).matches(&"a".repeat(10_000)));
    }

    proptest! {
        #[test]
        fn agrees_with_a_regular_expression(pattern in "[ab*?]{0,8}", text in "[ab]{0,10}") {
            let expression = format!("^{}$", pattern.replace('*', ".*").replace('?', "."));
            let expected = regex::Regex::new(&expression).unwrap().is_match(&text);
            prop_assert_eq!(Glob::new(&pattern, false).matches(&text), expected);
        }
    }
}
