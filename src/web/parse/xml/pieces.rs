//! Splits an XML document into texts, tags and everything else, in one pass that does not require well-formedness.
//!
//! Concatenated, the pieces are the document. No tag contains a `<` (XML 1.0, productions 10 and 40), so a mistake in a
//! tag, such as an unclosed quote, does not extend to the next one. In a well-formed document the pieces are those that
//! a parser sees; in any other, this holds up to the first mistake, where a parser stops.

/// A part of a document, as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum XmlPiece<'a> {
    /// Text outside tags.
    Text(&'a str),
    /// A CDATA section.
    Cdata(&'a str),
    /// A comment, processing instruction or declaration.
    Opaque(&'a str),
    /// A start tag or an empty-element tag.
    Start(XmlTag<'a>),
    /// An end tag.
    End(&'a str),
}

/// A start tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct XmlTag<'a> {
    /// From `<` to `>`, which is missing in a broken tag.
    pub(super) written: &'a str,
}

impl<'a> XmlTag<'a> {
    /// Returns the name with its prefix.
    pub(super) fn name(self) -> &'a str {
        let inside = self.inside();
        &inside[..inside.find(is_space).unwrap_or(inside.len())]
    }

    /// Whether it is an empty-element tag.
    pub(super) fn is_empty(self) -> bool {
        self.written.ends_with("/>")
    }

    /// Returns names and values of the well-formed attributes.
    pub(super) fn attributes(self) -> Attributes<'a> {
        Attributes::of(&self.inside()[self.name().len()..])
    }

    fn inside(self) -> &'a str {
        let inside = &self.written[1..];
        let inside = inside.strip_suffix('>').unwrap_or(inside);
        inside.strip_suffix('/').unwrap_or(inside)
    }
}

pub(super) fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

/// The attributes of a tag, or the pseudo-attributes of a processing instruction.
#[derive(Debug)]
pub(super) struct Attributes<'a> {
    rest: &'a str,
}

impl<'a> Attributes<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self { rest: text }
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, after) = self.rest.split_once('=')?;
        let value = after.trim_start();
        let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
        let (value, rest) = value[1..].split_once(quote)?;
        self.rest = rest;
        Some((name.trim(), value))
    }
}

/// The pieces of a document.
#[derive(Debug)]
pub(super) struct XmlPieces<'a> {
    rest: &'a str,
}

impl<'a> XmlPieces<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self { rest: text }
    }
}

impl<'a> Iterator for XmlPieces<'a> {
    type Item = XmlPiece<'a>;

    fn next(&mut self) -> Option<XmlPiece<'a>> {
        let rest = self.rest;
        let (length, make): (usize, fn(&'a str) -> XmlPiece<'a>) = if rest.is_empty() {
            return None;
        } else if !rest.starts_with('<') {
            (memchr::memchr(b'<', rest.as_bytes()).unwrap_or(rest.len()), XmlPiece::Text)
        } else if let Some(comment) = rest.strip_prefix("<!--") {
            (4 + length_to(comment, "-->"), XmlPiece::Opaque)
        } else if rest.starts_with("<![CDATA[") {
            (length_to(rest, "]]>"), XmlPiece::Cdata)
        } else if rest.starts_with("<?") {
            (length_to(rest, "?>"), XmlPiece::Opaque)
        } else {
            let end = memchr::memchr(b'<', &rest.as_bytes()[1..]).map_or(rest.len(), |at| at + 1);
            match rest.as_bytes().get(1) {
                Some(b'/') => (length_to(&rest[..end], ">"), XmlPiece::End),
                Some(b'!') => (length_to(&rest[..end], ">"), XmlPiece::Opaque),
                _ => (tag_length(&rest[..end]), |written| XmlPiece::Start(XmlTag { written })),
            }
        };
        let (piece, rest) = rest.split_at(length);
        self.rest = rest;
        Some(make(piece))
    }
}

/// Returns the length up to the end of a mark, or of the whole text if there is none.
fn length_to(text: &str, mark: &str) -> usize {
    memchr::memmem::find(text.as_bytes(), mark.as_bytes()).map_or(text.len(), |at| at + mark.len())
}

/// Returns the length up to the first `>` outside quotes, or of the whole text if there is none.
fn tag_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(found) = memchr::memchr3(b'>', b'"', b'\'', &bytes[at..]) {
        at += found;
        if bytes[at] == b'>' {
            return at + 1;
        }
        let Some(length) = memchr::memchr(bytes[at], &bytes[at + 1..]) else { break };
        at += length + 2;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(piece: XmlPiece<'_>) -> &str {
        match piece {
            XmlPiece::Text(text) | XmlPiece::Cdata(text) | XmlPiece::Opaque(text) | XmlPiece::End(text) => {
                text
            }
            XmlPiece::Start(tag) => tag.written,
        }
    }

    #[test]
    fn tags_and_texts() {
        let text = "<?x <y>?><a b='>' c=\"'\">t<!-- <d> --><![CDATA[<e>]]><f/></a>";
        let pieces: Vec<_> = XmlPieces::of(text).collect();
        assert_eq!(pieces.iter().map(|piece| written(*piece)).collect::<String>(), text);
        let names: Vec<_> = pieces
            .iter()
            .filter_map(|piece| match piece {
                XmlPiece::Start(tag) => Some((tag.name(), tag.is_empty(), tag.attributes().count())),
                _ => None,
            })
            .collect();
        assert_eq!(names, [("a", false, 2), ("f", true, 0)]);
        assert_eq!(pieces[2], XmlPiece::Text("t"));
        assert_eq!(pieces.last(), Some(&XmlPiece::End("</a>")));
    }

    #[test]
    fn a_broken_tag_ends_before_the_next() {
        for text in
            ["<a '>x<b>", "<a b=\"c><d>", "<a b='c", "<a<b>", "< <b>", "</a<b>", "<!x '<b>", "<", "</"]
        {
            let pieces: Vec<_> = XmlPieces::of(text).map(written).collect();
            assert_eq!(pieces.concat(), text);
            assert!(text.matches('<').count() <= pieces.len(), "{text} {pieces:?}");
        }
    }

    #[test]
    fn attributes_are_found() {
        let attributes = |written| XmlTag { written }.attributes().collect::<Vec<_>>();
        assert_eq!(
            attributes("<t a='=' xmlns=\"b\" xmlns:c\n= 'd'/>"),
            [("a", "="), ("xmlns", "b"), ("xmlns:c", "d")]
        );
        assert_eq!(attributes("<t>"), []);
        assert_eq!(attributes("<t a=b c='d'>"), []);
        let href = |instruction| Attributes::of(instruction).find(|(name, _)| *name == "href");
        assert_eq!(href("type='text/xsl' href = \"a.xsl\""), Some(("href", "a.xsl")));
        assert_eq!(href("type='text/xsl'"), None);
        assert_eq!(href("href='a"), None);
    }
}
