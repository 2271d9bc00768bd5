//! The tags of an XML document, in one cheap pass before it is parsed.
//!
//! Parsing builds a tree whose cost a hostile document can drive up with few bytes. This pass sees the same tags as the
//! parser does (XML 1.0: `<` stands in no attribute value, and comments, CDATA sections and instructions end at their
//! first end mark), so what it counts is what parsing would cost. It is no check of well-formedness.

/// A tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A start tag, with everything behind its name as written.
    Start { name: &'a str, attributes: &'a str, is_empty: bool },
    /// An end tag.
    End,
}

/// Goes over the tags of a document. What comes before the root element is given by the caller's start.
#[derive(Debug)]
pub(super) struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Tokens<'a> {
    /// Begins at a byte behind the document type.
    pub(super) fn new(text: &'a str, start: usize) -> Self {
        Self { text, at: start }
    }

    fn skip_past(&mut self, mark: &str) -> Option<()> {
        let rest = self.text.as_bytes().get(self.at..)?;
        self.at += memchr::memmem::find(rest, mark.as_bytes())? + mark.len();
        Some(())
    }

    /// The end of a tag that begins at `start`: the next `>` outside of quotes.
    fn tag_end(&self, start: usize) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let mut at = start;
        loop {
            at += memchr::memchr3(b'>', b'"', b'\'', bytes.get(at..)?)?;
            if bytes[at] == b'>' {
                return Some(at);
            }
            at += memchr::memchr(bytes[at], &bytes[at + 1..])? + 2;
        }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let bytes = self.text.as_bytes();
        loop {
            self.at += memchr::memchr(b'<', bytes.get(self.at..)?)?;
            let rest = &bytes[self.at..];
            if rest.starts_with(b"<!--") {
                self.at += 4;
                self.skip_past("-->")?;
            } else if rest.starts_with(b"<![CDATA[") {
                self.skip_past("]]>")?;
            } else if rest.starts_with(b"<?") {
                self.skip_past("?>")?;
            } else if rest.starts_with(b"</") {
                self.skip_past(">")?;
                return Some(Token::End);
            } else {
                break;
            }
        }
        let start = self.at + 1;
        let end = self.tag_end(start)?;
        self.at = end + 1;
        let inside = &self.text[start..end];
        let (inside, is_empty) = match inside.strip_suffix('/') {
            Some(inside) => (inside, true),
            None => (inside, false),
        };
        let name_end = inside.find(|c: char| c.is_ascii_whitespace()).unwrap_or(inside.len());
        let (name, attributes) = inside.split_at(name_end);
        Some(Token::Start { name, attributes, is_empty })
    }
}

/// The number of attributes in what follows a name, and how many of them declare a namespace.
pub(super) fn count_attributes(attributes: &str) -> (u64, u64) {
    let bytes = attributes.as_bytes();
    let mut count = 0;
    let mut namespaces = 0;
    let mut at = 0;
    while let Some(equals) = memchr::memchr(b'=', &bytes[at..]) {
        let name = attributes[at..at + equals].trim();
        count += 1;
        namespaces += u64::from(name == "xmlns" || name.starts_with("xmlns:"));
        let value = at + equals + 1;
        let quote =
            bytes[value..].iter().position(|byte| !byte.is_ascii_whitespace()).map(|skip| value + skip);
        let Some(quote) = quote.filter(|&quote| matches!(bytes[quote], b'"' | b'\'')) else { break };
        let Some(length) = memchr::memchr(bytes[quote], &bytes[quote + 1..]) else { break };
        at = quote + length + 2;
    }
    (count, namespaces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_and_nothing_else() {
        let text = "<?x <y>?><a b='>' c=\"'\"><!-- <d> --><![CDATA[<e>]]><f/></a>";
        let names: Vec<_> = Tokens::new(text, 0)
            .map(|token| match token {
                Token::Start { name, is_empty, .. } => format!("{name}{is_empty}"),
                Token::End => "/".to_owned(),
            })
            .collect();
        assert_eq!(names, ["afalse", "ftrue", "/"]);
    }

    #[test]
    fn attributes_are_counted() {
        assert_eq!(count_attributes(" a='=' xmlns=\"b\" xmlns:c = 'd'"), (3, 2));
        assert_eq!(count_attributes(""), (0, 0));
        assert_eq!(count_attributes(" a=b c=d"), (1, 0));
    }
}
