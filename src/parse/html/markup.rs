//! Tags and their attributes in a piece of markup.
//!
//! This reads what lies between two texts, as the tokenizer of `lol_html` has found them: tags, comments, declarations,
//! and nothing else. So the states that depend on the element (scripts, style sheets, titles) don't come up here, and what
//! is left of the HTML standard's tokenizer (sections 13.2.5.6 to 13.2.5.41) is small. It borrows everything.

/// One attribute as written: entities are not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attribute<'a> {
    pub(crate) name: &'a str,
    pub(crate) value: &'a str,
}

impl Attribute<'_> {
    /// Whether the name is this one, given in lower case.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

/// A start or end tag.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Tag<'a, 'm> {
    /// The name as written.
    pub(crate) name: &'a str,
    pub(crate) is_end: bool,
    /// Whether it ends in `/>`, which closes elements of SVG and MathML only.
    pub(crate) is_self_closing: bool,
    pub(crate) attributes: &'m [Attribute<'a>],
}

/// Reads tags out of pieces of markup, using its memory for one piece after the other.
#[derive(Debug)]
pub(crate) struct Markup<'a> {
    text: &'a str,
    at: usize,
    attributes: Vec<Attribute<'a>>,
}

impl<'a> Markup<'a> {
    pub(crate) fn new() -> Self {
        Self { text: "", at: 0, attributes: Vec::new() }
    }

    /// Begins with another piece.
    pub(crate) fn start(&mut self, text: &'a str) {
        self.text = text;
        self.at = 0;
    }

    /// The next tag; none at the end, or when the last tag is cut.
    pub(crate) fn next_tag(&mut self) -> Option<Tag<'a, '_>> {
        let bytes = self.text.as_bytes();
        loop {
            self.at += memchr::memchr(b'<', bytes.get(self.at..)?)?;
            match bytes.get(self.at + 1)? {
                b'!' => self.skip_declaration()?,
                b'?' => self.skip_past(b'>')?,
                b'/' if bytes.get(self.at + 2).is_some_and(u8::is_ascii_alphabetic) => break,
                b'/' => self.skip_past(b'>')?,
                letter if letter.is_ascii_alphabetic() => break,
                _ => self.at += 1,
            }
        }
        self.tag()
    }

    fn skip_past(&mut self, byte: u8) -> Option<()> {
        self.at += memchr::memchr(byte, &self.text.as_bytes()[self.at..])? + 1;
        Some(())
    }

    /// A comment, a document type, or the beginning of a CDATA section when nothing follows it.
    fn skip_declaration(&mut self) -> Option<()> {
        const CDATA: &str = "<![CDATA[";
        let rest = &self.text[self.at..];
        if rest == CDATA {
            return None;
        }
        let Some(inside) = rest.strip_prefix("<!--") else { return self.skip_past(b'>') };
        let length = comment_length(inside.as_bytes())?;
        self.at += 4 + length;
        Some(())
    }

    fn tag(&mut self) -> Option<Tag<'a, '_>> {
        self.attributes.clear();
        let text = self.text;
        let bytes = text.as_bytes();
        let is_end = bytes.get(self.at + 1) == Some(&b'/');
        let name_start = self.at + 1 + usize::from(is_end);
        let mut at = name_start;
        while !ends_name(*bytes.get(at)?) {
            at += 1;
        }
        let name = &text[name_start..at];
        let mut is_self_closing = false;
        loop {
            match bytes.get(at)? {
                b'>' => break,
                b'/' => {
                    is_self_closing = bytes.get(at + 1) == Some(&b'>');
                    at += 1;
                }
                byte if is_space(*byte) => at += 1,
                _ => at = self.attribute(at)?,
            }
        }
        self.at = at + 1;
        Some(Tag { name, is_end, is_self_closing, attributes: &self.attributes })
    }

    /// Reads the attribute that begins at `start`, and gives where it ends.
    fn attribute(&mut self, start: usize) -> Option<usize> {
        let text = self.text;
        let bytes = text.as_bytes();
        let mut at = start + 1;
        while bytes.get(at).is_some_and(|&byte| byte != b'=' && !ends_name(byte)) {
            at += 1;
        }
        let name = &text[start..boundary(text, at)];
        let mut after = at;
        while is_space(*bytes.get(after)?) {
            after += 1;
        }
        if bytes[after] != b'=' {
            self.attributes.push(Attribute { name, value: "" });
            return Some(at);
        }
        after += 1;
        while is_space(*bytes.get(after)?) {
            after += 1;
        }
        let (value_start, value_end, next) = match bytes[after] {
            quote @ (b'"' | b'\'') => {
                let length = memchr::memchr(quote, &bytes[after + 1..])?;
                (after + 1, after + 1 + length, after + 2 + length)
            }
            b'>' => (after, after, after),
            _ => {
                let mut end = after;
                while bytes.get(end).is_some_and(|&byte| byte != b'>' && !is_space(byte)) {
                    end += 1;
                }
                (after, end, end)
            }
        };
        self.attributes.push(Attribute { name, value: &text[value_start..value_end] });
        Some(next)
    }
}

/// Names end at ASCII bytes, so they end at a boundary of characters; a name of one character that isn't ASCII needs to
/// be moved there.
fn boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t' | b'\r' | 0x0C)
}

fn ends_name(byte: u8) -> bool {
    is_space(byte) || matches!(byte, b'/' | b'>')
}

/// The length of a comment from behind `<!--` to behind its end: `-->`, `--!>`, or at once `>` or `->`.
fn comment_length(inside: &[u8]) -> Option<usize> {
    if inside.starts_with(b">") {
        return Some(1);
    }
    if inside.starts_with(b"->") {
        return Some(2);
    }
    memchr::memmem::find_iter(inside, b"--").find_map(|at| match inside.get(at + 2..) {
        Some([b'>', ..]) => Some(at + 3),
        Some([b'!', b'>', ..]) => Some(at + 4),
        // `--->`: the end begins one byte further on, and the search for `--` would step over it.
        Some([b'-', b'>', ..]) => Some(at + 4),
        Some([b'-', b'!', b'>', ..]) => Some(at + 5),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tags as `name attribute=value|…`, end tags with a slash before.
    fn tags(text: &str) -> Vec<String> {
        let mut markup = Markup::new();
        markup.start(text);
        let mut all = Vec::new();
        while let Some(tag) = markup.next_tag() {
            let attributes: Vec<_> =
                tag.attributes.iter().map(|found| format!("{}={}", found.name, found.value)).collect();
            let slash = if tag.is_end { "/" } else { "" };
            let end = if tag.is_self_closing { "/" } else { "" };
            all.push(format!("{slash}{}[{}]{end}", tag.name, attributes.join("|")));
        }
        all
    }

    #[test]
    fn attributes_in_all_their_forms() {
        for (text, expected) in [
            ("<a href=x>", "a[href=x]"),
            ("<A HREF = 'x y' b>", "A[HREF=x y|b=]"),
            ("<a\nhref=\"x>y\"c='d'>", "a[href=x>y|c=d]"),
            ("<a href=x/>", "a[href=x/]"),
            ("<a href='x'/>", "a[href=x]/"),
            ("<a / b>", "a[b=]"),
            ("<a href=>", "a[href=]"),
            ("<a =b=c>", "a[=b=c]"),
            ("<a é=ü>", "a[é=ü]"),
            ("<aé b>", "aé[b=]"),
            ("<a b\"=c>", "a[b\"=c]"),
            ("</a b=c>", "/a[b=c]"),
        ] {
            assert_eq!(tags(text), [expected], "{text}");
        }
    }

    #[test]
    fn comments_and_declarations_are_skipped() {
        for text in [
            "<!-- <b> --><a>",
            "<!--><a>",
            "<!---><a>",
            "<!----><a>",
            "<!-----><a>",
            "<!-- --!><a>",
            "<!-- -- > <b> ---><a>",
            "<!doctype html><a>",
            "<?php <b ?><a>",
            "</ <b><a>",
            "<!x <b><a>",
            "<![CDATA[ <b><a>",
            "<><a>",
        ] {
            assert_eq!(tags(text), ["a[]"], "{text}");
        }
    }

    #[test]
    fn what_is_cut_is_no_tag() {
        for text in ["<", "<a", "<a ", "<a b", "<a b=", "<a b='c>", "</a", "<!-- <a>", "<![CDATA[", "</"] {
            assert!(tags(text).is_empty(), "{text}");
        }
    }
}
