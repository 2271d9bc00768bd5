//! Patterns: `*` matches any characters, `?` matches one, `\*` and `\?` match themselves.

use memchr::memmem;
use regex::{Regex, RegexBuilder};

/// Any characters, as a regular expression.
const ANY: &str = ".*";

/// A pattern compiled to a regular expression.
#[derive(Clone, Debug)]
pub(crate) struct Glob {
    expression: Regex,
    beginning: String,
    /// A literal that may occur anywhere, if the pattern is nothing else: a substring search is faster.
    anywhere: Option<Box<memmem::Finder<'static>>>,
}

impl Glob {
    /// Compiles a pattern; `folds_case` ignores case.
    ///
    /// # Errors
    /// When the regular expression would take more than `bytes_max`.
    pub(crate) fn new(pattern: &str, folds_case: bool, bytes_max: usize) -> Result<Self, regex::Error> {
        let (mut expression, mut beginning, mut is_beginning) = (String::new(), String::new(), true);
        let mut characters = pattern.chars().peekable();
        while let Some(character) = characters.next() {
            is_beginning &= !matches!(character, '*' | '?');
            match character {
                // Several stars in a row are the same as one.
                '*' if expression.ends_with(ANY) => {}
                '*' => expression.push_str(ANY),
                '?' => expression.push('.'),
                other => {
                    let escaped = characters.next_if(|next| other == '\\' && "*?\\".contains(*next));
                    let literal = escaped.unwrap_or(other);
                    expression.push_str(&regex::escape(literal.encode_utf8(&mut [0; 4])));
                    beginning.extend(is_beginning.then_some(literal));
                }
            }
        }
        // A leading or trailing `.*` is left out with its anchor, so that the regex engine can search for literals.
        let rest = expression.strip_prefix(ANY);
        let (first, rest) = rest.map_or((r"\A", expression.as_str()), |rest| ("", rest));
        let (rest, last) = rest.strip_suffix(ANY).map_or((rest, r"\z"), |rest| (rest, ""));
        let is_literal = |character: char| !"*?\\".contains(character);
        let inner = pattern.strip_prefix('*').and_then(|rest| rest.strip_suffix('*'));
        let anywhere = inner.filter(|inner| !folds_case && inner.chars().all(is_literal));
        let anywhere = anywhere.map(|inner| Box::new(memmem::Finder::new(inner).into_owned()));
        let expression = RegexBuilder::new(&format!("{first}{rest}{last}"))
            .dot_matches_new_line(true)
            .case_insensitive(folds_case)
            .size_limit(bytes_max)
            .build()?;
        if folds_case {
            beginning = beginning.to_lowercase();
        }
        Ok(Self { expression, beginning, anywhere })
    }

    /// Whether the whole of `text` matches.
    pub(crate) fn matches(&self, text: &str) -> bool {
        match &self.anywhere {
            Some(literal) => literal.find(text.as_bytes()).is_some(),
            None => self.expression.is_match(text),
        }
    }

    /// The regular expression, in which `.` is any character.
    pub(crate) fn expression(&self) -> &str {
        self.expression.as_str()
    }

    /// The literal prefix of every matching text, in the case of the pattern.
    pub(crate) fn beginning(&self) -> &str {
        &self.beginning
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Glob;

    fn glob(pattern: &str, folds_case: bool) -> Glob {
        Glob::new(pattern, folds_case, 1 << 20).unwrap()
    }

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
            ("a?c", "a\nc", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-b-b-c-", false),
            ("*.pdf", "x.pdf.pdf", true),
            ("*.pdf", "x.pdf\n", false),
            ("what\\?*", "what?x", true),
            ("what\\?*", "whatever", false),
            ("ä?ü", "äöü", true),
            ("A*", "abc", false),
            ("*b*", "abc", true),
            ("*B*", "abc", false),
            ("*\\**", "a*b", true),
            ("*\\**", "a\\b", false),
        ] {
            assert_eq!(glob(pattern, false).matches(text), fits, "{pattern} {text}");
        }
        assert!(glob("ABC*", true).matches("abcÄ"));
        assert_eq!(glob("AB\\?C?d*", true).beginning(), "ab?c");
        assert_eq!(glob("*ab", true).beginning(), "");
        assert!(glob("*ä", true).matches("abcÄ"));
        assert!(glob("*bC*", true).matches("aBcd"));
    }

    #[test]
    fn long_stars_end() {
        let pattern = "a*".repeat(200) + "b";
        assert!(!glob(&pattern, false).matches(&"a".repeat(10_000)));
        assert!(Glob::new(&"?".repeat(100_000), false, 1 << 20).is_err());
    }

    proptest! {
        #[test]
        fn agrees_with_a_regular_expression(pattern in "[ab*?]{0,8}", text in "[ab]{0,10}") {
            let expression = format!("^{}$", pattern.replace('*', ".*").replace('?', "."));
            let expected = regex::Regex::new(&expression).unwrap().is_match(&text);
            prop_assert_eq!(glob(&pattern, false).matches(&text), expected);
        }
    }
}
