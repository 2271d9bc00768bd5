//! Tokenizes markup into texts, tags with their attributes, and raw texts.
//!
//! Implements the tokenizer of the HTML standard (section 13.2.5) as far as reading links and words needs it: comments,
//! declarations and processing instructions yield no token, nor does a truncated tag at the end. The tokenizer does not
//! know which elements hold raw text: the caller asks for it after the start tag of such an element. All tokens are
//! borrowed, and every boundary is found by a byte search.

use super::element::HtmlElement;

/// An attribute as written, with entities not decoded. If it has no value, `value` is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// Its name as written.
    pub name: &'a str,
    /// Its value, without quotes.
    pub value: &'a str,
}

impl Attribute<'_> {
    /// Whether the name is this one, given in lower case.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

/// A start or end tag.
#[derive(Debug, PartialEq, Eq)]
pub struct HtmlTag<'a, 'm> {
    /// The complete tag, from `<` to `>`.
    pub whole: &'a str,
    /// The name as written.
    pub name: &'a str,
    /// Whether it is an end tag.
    pub is_end: bool,
    /// Whether the tag ends in `/>`, which closes only elements of SVG and MathML.
    pub is_self_closing: bool,
    /// In the order written; of several with a name, the first counts.
    pub attributes: &'m [Attribute<'a>],
}

/// A token of a document.
#[derive(Debug, PartialEq, Eq)]
pub enum HtmlToken<'a, 'm> {
    /// Text with entities.
    Text(&'a str),
    /// Text without entities.
    PlainText(&'a str),
    /// Contents of a conditional comment: markup for Internet Explorer up to version 9.
    Conditional(&'a str),
    /// A start or end tag.
    Tag(HtmlTag<'a, 'm>),
}

/// Reads the tokens of a piece of markup.
#[derive(Debug)]
pub struct Markup<'a> {
    text: &'a str,
    at: usize,
    has_cdata: bool,
    attributes: Vec<Attribute<'a>>,
}

impl<'a> Markup<'a> {
    /// Starts at the beginning of a document.
    pub fn of(text: &'a str) -> Self {
        Self { text, at: 0, has_cdata: false, attributes: Vec::new() }
    }

    /// Sets whether CDATA sections are text from here on, as they are in SVG and MathML; elsewhere they are comments.
    pub fn allow_cdata(&mut self, is_allowed: bool) {
        self.has_cdata = is_allowed;
    }

    /// Returns the next tag; none at the end, or if the last tag is truncated.
    pub fn next_tag(&mut self) -> Option<HtmlTag<'a, '_>> {
        self.skip_text()?;
        while !self.is_at_tag() {
            self.skip_declaration()?;
            self.skip_text()?;
        }
        self.tag()
    }

    /// Returns the next text or tag; none at the end, or if the last tag is truncated.
    ///
    /// It is called for each text and tag, and takes a quarter more instructions where it is not put in line.
    #[inline(always)]
    pub fn next_token(&mut self) -> Option<HtmlToken<'a, '_>> {
        loop {
            let start = self.at;
            let has_markup = self.skip_text().is_some();
            if self.at > start {
                return Some(HtmlToken::Text(&self.text[start..self.at]));
            }
            if !has_markup {
                return None;
            }
            if self.is_at_tag() {
                return self.tag().map(HtmlToken::Tag);
            }
            if self.has_cdata && self.rest().starts_with(CDATA) {
                return Some(HtmlToken::PlainText(self.cdata_section()));
            }
            let declaration = self.at;
            self.skip_declaration()?;
            if let Some(inside) = condition(&self.text[declaration..self.at]) {
                return Some(HtmlToken::Conditional(inside));
            }
        }
    }

    /// What has not been read: after the last token, the start of a comment, declaration or tag that does not end.
    pub fn unread(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Returns the raw text after the start tag of an element that holds raw text; none for other elements.
    pub fn raw_text_of(&mut self, element: HtmlElement) -> Option<&'a str> {
        Some(match element {
            HtmlElement::Script => self.script(),
            HtmlElement::PlainText => self.plain_text(self.at),
            HtmlElement::Style => self.raw_text("style"),
            HtmlElement::Title => self.raw_text("title"),
            HtmlElement::NoScript => self.raw_text("noscript"),
            HtmlElement::NoFrames => self.raw_text("noframes"),
            HtmlElement::Preformatted => self.raw_text("xmp"),
            HtmlElement::TextArea => self.raw_text("textarea"),
            HtmlElement::InlineFrame => self.raw_text("iframe"),
            HtmlElement::NoEmbed => self.raw_text("noembed"),
            _ => return None,
        })
    }

    /// Returns the raw text up to the end tag of an element, whose name is given in lower case, or up to the end of the
    /// document if there is no end tag. (HTML standard, sections 13.2.5.9 to 13.2.5.14.)
    pub(crate) fn raw_text(&mut self, name: &str) -> &'a str {
        let start = self.at;
        while let Some(found) = memchr::memchr(b'<', &self.text.as_bytes()[self.at..]) {
            self.at += found;
            if is_end_tag(&self.text.as_bytes()[self.at..], name) {
                return &self.text[start..self.at];
            }
            self.at += 1;
        }
        self.plain_text(start)
    }

    /// Returns the text of a script, in which `<!-- <script>` hides one end tag. (Sections 13.2.5.15 to 13.2.5.31.)
    pub(crate) fn script(&mut self) -> &'a str {
        #[derive(PartialEq)]
        enum Escape {
            None,
            Comment,
            ScriptInComment,
        }
        const NAME: &str = "script";
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut escape = Escape::None;
        while let Some(found) = memchr::memchr2(b'<', b'-', &bytes[self.at..]) {
            self.at += found;
            let rest = &bytes[self.at..];
            let is_end = is_end_tag(rest, NAME);
            if is_end && escape != Escape::ScriptInComment {
                return &self.text[start..self.at];
            }
            if is_end || rest.starts_with(b"-->") {
                escape = if is_end { Escape::Comment } else { Escape::None };
            } else if escape == Escape::None && rest.starts_with(b"<!--") {
                escape = Escape::Comment;
                // The dashes may belong to the end: `<!-->`.
                self.at += 1;
            } else if escape == Escape::Comment && is_tag(rest, NAME) {
                escape = Escape::ScriptInComment;
            }
            self.at += 1;
        }
        self.plain_text(start)
    }

    fn plain_text(&mut self, start: usize) -> &'a str {
        self.at = self.text.len();
        &self.text[start..]
    }

    #[inline]
    fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    /// Moves to the `<` of a tag, comment or declaration; or moves to the end and returns none.
    #[inline]
    fn skip_text(&mut self) -> Option<()> {
        while let Some(found) = memchr::memchr(b'<', self.rest()) {
            self.at += found;
            match self.rest().get(1) {
                Some(b'!' | b'?') => return Some(()),
                // `</` at the very end is text.
                Some(b'/') if self.rest().len() > 2 => return Some(()),
                Some(letter) if letter.is_ascii_alphabetic() => return Some(()),
                _ => self.at += 1,
            }
        }
        self.at = self.text.len();
        None
    }

    #[inline]
    fn is_at_tag(&self) -> bool {
        let rest = self.rest();
        let name = 1 + usize::from(rest.get(1) == Some(&b'/'));
        rest.get(name).is_some_and(u8::is_ascii_alphabetic)
    }

    /// Returns the contents of a CDATA section, which may extend to the end of the document.
    fn cdata_section(&mut self) -> &'a str {
        let start = self.at + CDATA.len();
        let inside = &self.text[start..];
        let length = memchr::memmem::find(inside.as_bytes(), b"]]>");
        self.at = length.map_or(self.text.len(), |length| start + length + 3);
        length.map_or(inside, |length| &inside[..length])
    }

    fn skip_past(&mut self, byte: u8) -> Option<()> {
        self.at += memchr::memchr(byte, &self.text.as_bytes()[self.at..])? + 1;
        Some(())
    }

    /// Skips a comment, a document type or another declaration.
    fn skip_declaration(&mut self) -> Option<()> {
        let Some(inside) = self.rest().strip_prefix(b"<!--") else { return self.skip_past(b'>') };
        let length = comment_length(inside)?;
        self.at += 4 + length;
        Some(())
    }

    #[inline(always)]
    fn tag(&mut self) -> Option<HtmlTag<'a, '_>> {
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
        let whole = &text[self.at..=at];
        self.at = at + 1;
        Some(HtmlTag { whole, name, is_end, is_self_closing, attributes: &self.attributes })
    }

    /// Reads the attribute that begins at `start`; returns its end.
    fn attribute(&mut self, start: usize) -> Option<usize> {
        let text = self.text;
        let bytes = text.as_bytes();
        let mut at = start + 1;
        while bytes.get(at).is_some_and(|&byte| byte != b'=' && !ends_name(byte)) {
            at += 1;
        }
        // Names end before an ASCII byte and thus at a boundary, except names of a single non-ASCII character.
        let name_end = text.ceil_char_boundary(at);
        let name = &text[start..name_end];
        let mut after = at;
        while is_space(*bytes.get(after)?) {
            after += 1;
        }
        if bytes[after] != b'=' {
            self.attributes.push(Attribute { name, value: &text[name_end..name_end] });
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

/// Start of a CDATA section.
const CDATA: &[u8] = b"<![CDATA[";

/// Returns the markup in a conditional comment: `<!--[if IE]> … <![endif]-->`.
fn condition(comment: &str) -> Option<&str> {
    let inside = comment.strip_prefix("<!--[if")?;
    let start = inside.find("]>")? + 2;
    let end = inside.rfind("<![endif]")?;
    inside.get(start..end)
}

/// Whether a text begins with an end tag of this name, given in lower case.
fn is_end_tag(text: &[u8], name: &str) -> bool {
    text.get(1) == Some(&b'/') && is_tag(&text[1..], name)
}

/// Whether this tag name, given in lower case, follows the first byte.
fn is_tag(text: &[u8], name: &str) -> bool {
    text.get(1..=name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()))
        && text.get(name.len() + 1).is_some_and(|&byte| ends_name(byte))
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t' | b'\r' | 0x0C)
}

fn ends_name(byte: u8) -> bool {
    is_space(byte) || matches!(byte, b'/' | b'>')
}

/// Returns the length of a comment after `<!--`, including its end: `-->`, `--!>`, or immediately `>` or `->`.
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
        // `--->`: the end begins one byte later, where the search for `--` would skip it.
        Some([b'-', b'>', ..]) => Some(at + 4),
        Some([b'-', b'!', b'>', ..]) => Some(at + 5),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns tags as `name[attribute=value|…]`, end tags with a slash in front.
    fn tags(text: &str) -> Vec<String> {
        let mut markup = Markup::of(text);
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
            "</><a>",
            "<><a>",
        ] {
            assert_eq!(tags(text), ["a[]"], "{text}");
        }
    }

    #[test]
    fn a_truncated_tag_is_not_a_tag() {
        for text in ["<", "<a", "<a ", "<a b", "<a b=", "<a b='c>", "</a", "<!-- <a>", "<![CDATA[", "</"] {
            assert!(tags(text).is_empty(), "{text}");
        }
    }

    /// Returns texts in quotes and tags by name; CDATA sections are allowed.
    fn tokens(text: &str) -> String {
        let mut markup = Markup::of(text);
        markup.allow_cdata(true);
        let mut all = String::new();
        while let Some(token) = markup.next_token() {
            match token {
                HtmlToken::Text(text) => all += &format!("'{text}'"),
                HtmlToken::PlainText(text) => all += &format!("[{text}]"),
                HtmlToken::Conditional(text) => all += &format!("({text})"),
                HtmlToken::Tag(tag) => all += tag.name,
            }
        }
        all
    }

    #[test]
    fn texts_lie_between_tags() {
        for (text, expected) in [
            ("a<b>c", "'a'b'c'"),
            ("1 < 2 <3<b>", "'1 < 2 <3'b"),
            ("a<!-- b -->c</>d<?e?>f", "'a''c''d''f'"),
            ("a<![CDATA[<b>&amp;]]>c<![CDATA[d", "'a'[<b>&amp;]'c'[d]"),
            ("a<", "'a<'"),
            ("a</", "'a</'"),
            ("a<b", "'a'"),
            ("a<!-- b", "'a'"),
            ("a<!--[if IE]><b><![endif]-->c<!--[if !IE]>--><d>", "'a'(<b>)'c'd"),
            ("", ""),
        ] {
            assert_eq!(tokens(text), expected, "{text}");
        }
    }

    #[test]
    fn raw_texts_end_at_their_end_tags() {
        let raw = |text| {
            let mut markup = Markup::of(text);
            let raw = markup.raw_text("style");
            (raw, markup.rest().len())
        };
        assert_eq!(raw("a<b></styles></STYLE>c"), ("a<b></styles>", 9));
        assert_eq!(raw("a</style"), ("a</style", 0));
        assert_eq!(raw("</style/>"), ("", 9));
        for (text, expected) in [
            ("a</script>b", "a"),
            ("<!-- </script> -->", "<!-- "),
            ("<!-- <script> </script> </script>", "<!-- <script> </script> "),
            ("<!-- <script> --> </script> b</script>", "<!-- <script> --> "),
            ("<!--><script> </script>", "<!--><script> "),
            ("<!---><script> </script>", "<!---><script> "),
            ("<!-- <scripts> </script>", "<!-- <scripts> "),
            ("a<b", "a<b"),
        ] {
            let mut markup = Markup::of(text);
            assert_eq!(markup.script(), expected, "{text}");
        }
    }
}
