//! Extracts the URLs of style sheets: `url(…)`, `@import "…"`, and the strings of `src("…")`, `image("…")`,
//! `image-set("…")` and Internet Explorer's `AlphaImageLoader(src="…")`.
//!
//! Makes one pass over the bytes, looking only at comments, strings, at-keywords and functions (CSS Syntax Level 3,
//! sections 4.3.1 to 4.3.6). Everything else is skipped, so broken style sheets yield whatever can be found in them.

use std::borrow::Cow;

use super::LinkKind;

/// Calls `found` with every URL of a style sheet or style attribute, unescaped.
pub(crate) fn urls(css: &str, mut found: impl FnMut(&str, LinkKind)) {
    references(css, |written, kind| found(&unescape(written), kind));
}

/// Calls `found` with every URL as written, as a slice of `css`.
pub fn references<'a>(css: &'a str, mut found: impl FnMut(&'a str, LinkKind)) {
    let mut scanner = Scanner { css, at: 0, context: StringContext::Plain, brackets: 0 };
    scanner.run(&mut found);
}

/// Meaning of a string in the current context.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StringContext {
    /// No meaning.
    Plain,
    /// The URL of an import.
    Import,
    /// The URL of a namespace, which is not a link.
    Namespace,
    /// An image in a function such as `image-set()` that began at this bracket depth.
    ImageSet(u32),
}

struct Scanner<'a> {
    css: &'a str,
    at: usize,
    context: StringContext,
    brackets: u32,
}

impl<'a> Scanner<'a> {
    fn run(&mut self, found: &mut impl FnMut(&'a str, LinkKind)) {
        let bytes = self.css.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            match byte {
                b'/' if bytes.get(self.at + 1) == Some(&b'*') => self.skip_comment(),
                b'"' | b'\'' => {
                    let text = self.string(byte);
                    match self.context {
                        StringContext::Import => {
                            found(text, LinkKind::StyleImport);
                            self.context = StringContext::Plain;
                        }
                        // A string in deeper brackets is the type of an image.
                        StringContext::ImageSet(depth) if depth == self.brackets => {
                            found(text, LinkKind::StyleResource);
                        }
                        StringContext::ImageSet(_) | StringContext::Plain | StringContext::Namespace => {}
                    }
                }
                b'@' => self.at_keyword(),
                b'(' => self.open(found),
                b')' => self.close(),
                b';' | b'{' | b'}' => {
                    self.context = StringContext::Plain;
                    self.brackets = 0;
                    self.at += 1;
                }
                b'\\' => self.at += 2,
                _ => {
                    let rest = &bytes[self.at + 1..];
                    self.at +=
                        1 + rest.iter().take_while(|&&byte| !MEANS_SOMETHING[usize::from(byte)]).count();
                }
            }
        }
    }

    fn skip_comment(&mut self) {
        let rest = &self.css.as_bytes()[self.at + 2..];
        self.at = memchr::memmem::find(rest, b"*/").map_or(self.css.len(), |end| self.at + 2 + end + 2);
    }

    /// Returns the contents of the string that begins here. A line break ends an unclosed string.
    fn string(&mut self, quote: u8) -> &'a str {
        let css = self.css;
        let bytes = css.as_bytes();
        let start = self.at + 1;
        let mut end = start;
        while let Some(&byte) = bytes.get(end) {
            match byte {
                b'\\' => end += 2,
                b'\n' => break,
                _ if byte == quote => break,
                _ => end += 1,
            }
        }
        let end = end.min(bytes.len());
        self.at = end + 1;
        css.get(start..end).unwrap_or_default()
    }

    fn at_keyword(&mut self) {
        let rest = &self.css.as_bytes()[self.at + 1..];
        let is = |keyword: &str| {
            rest.get(..keyword.len()).is_some_and(|start| start.eq_ignore_ascii_case(keyword.as_bytes()))
        };
        if is("import") {
            self.context = StringContext::Import;
        } else if is("namespace") {
            self.context = StringContext::Namespace;
        }
        self.at += 1;
    }

    /// Handles an opening bracket: of `url(`, of `image-set(`, or of anything else.
    fn open(&mut self, found: &mut impl FnMut(&'a str, LinkKind)) {
        let before = &self.css.as_bytes()[..self.at];
        let ends_with = |name: &[u8]| {
            before.len() >= name.len() && before[before.len() - name.len()..].eq_ignore_ascii_case(name)
        };
        self.at += 1;
        if ends_with(b"url") {
            self.url(found);
            return;
        }
        self.brackets += 1;
        let names_images = ends_with(b"image-set")
            || ends_with(b"src")
            || ends_with(b"image")
            || ends_with(b"alphaimageloader");
        if names_images && self.context == StringContext::Plain {
            self.context = StringContext::ImageSet(self.brackets);
        }
    }

    fn close(&mut self) {
        if self.context == StringContext::ImageSet(self.brackets) {
            self.context = StringContext::Plain;
        }
        self.brackets = self.brackets.saturating_sub(1);
        self.at += 1;
    }

    /// Reads the inside of `url(`, quoted or not.
    fn url(&mut self, found: &mut impl FnMut(&'a str, LinkKind)) {
        let bytes = self.css.as_bytes();
        while bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        let context = self.context;
        let text = match bytes.get(self.at) {
            Some(&quote @ (b'"' | b'\'')) => self.string(quote),
            _ => self.bare_url(),
        };
        match context {
            StringContext::Namespace => {}
            StringContext::Import => found(text, LinkKind::StyleImport),
            StringContext::Plain | StringContext::ImageSet(_) => found(text, LinkKind::StyleResource),
        }
        if context == StringContext::Import {
            self.context = StringContext::Plain;
        }
        let rest = self.css.as_bytes().get(self.at..).unwrap_or_default();
        self.at = memchr::memchr3(b')', b';', b'}', rest)
            .map_or(self.css.len(), |end| self.at + end + usize::from(rest[end] == b')'));
    }

    fn bare_url(&mut self) -> &'a str {
        let css = self.css;
        let bytes = css.as_bytes();
        let start = self.at;
        let mut end = start;
        while let Some(&byte) = bytes.get(end) {
            match byte {
                b'\\' => end += escape_length(&bytes[end..]),
                b')' | b'"' | b'\'' | b'(' | b' ' | b'\t' | b'\n' | b'\r' | 0x0C => break,
                _ => end += 1,
            }
        }
        self.at = end.min(bytes.len());
        css.get(start..self.at).unwrap_or_default()
    }
}

/// Bytes at which a token of interest may begin.
const MEANS_SOMETHING: [bool; 256] = {
    let mut table = [false; 256];
    let bytes = b"/\"'@();{}\\";
    let mut index = 0;
    while index < bytes.len() {
        table[bytes[index] as usize] = true;
        index += 1;
    }
    table
};

/// Maximum number of digits of a numeric escape.
const HEX_DIGITS_MAX: usize = 6;

/// Returns the length of the escape at the start of a text, including the space that ends a number.
fn escape_length(text: &[u8]) -> usize {
    let digits = text[1..].iter().take(HEX_DIGITS_MAX).take_while(|byte| byte.is_ascii_hexdigit()).count();
    if digits == 0 {
        2
    } else {
        1 + digits + usize::from(text.get(1 + digits).is_some_and(u8::is_ascii_whitespace))
    }
}

/// Resolves escapes: `\` followed by one to six hexadecimal digits and an optional space, or by the character itself.
pub fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        plain.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let digits = rest.bytes().take(HEX_DIGITS_MAX).take_while(u8::is_ascii_hexdigit).count();
        if digits > 0 {
            let code = u32::from_str_radix(&rest[..digits], 16).unwrap_or(0);
            plain.push(char::from_u32(code).filter(|&c| c != '\0').unwrap_or(char::REPLACEMENT_CHARACTER));
            rest = &rest[digits..];
            rest = rest.strip_prefix([' ', '\t', '\n']).unwrap_or(rest);
        } else if let Some(character) = rest.chars().next() {
            if character != '\n' {
                plain.push(character);
            }
            rest = &rest[character.len_utf8()..];
        }
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(css: &str) -> Vec<(String, bool)> {
        let mut all = Vec::new();
        urls(css, |url, kind| all.push((url.to_owned(), kind == LinkKind::StyleImport)));
        all
    }

    #[test]
    fn urls_in_all_their_forms() {
        for (css, expected, import) in [
            ("a { background: url(x.png) }", "x.png", false),
            ("a { background: URL( 'x y.png' ) no-repeat }", "x y.png", false),
            ("a { background: url(\"x.png\"", "x.png", false),
            ("a { background: url(x\\28 1\\29.png) }", "x(1).png", false),
            ("@import 'x.css' screen;", "x.css", true),
            ("@IMPORT url(x.css);", "x.css", true),
            ("@import url(\"x.css\") layer(a) supports(display: grid);", "x.css", true),
            ("background-image: -webkit-image-set('x.png' 1x)", "x.png", false),
            ("a { background: src('x.png') }", "x.png", false),
            ("a { background: image('x.png', red) }", "x.png", false),
            ("a{filter:progid:DXImageTransform.Microsoft.AlphaImageLoader(src='x.png')}", "x.png", false),
            ("@font-face { src: local('y'), url(x.woff2) format('woff2') }", "x.woff2", false),
        ] {
            assert_eq!(all(css), [(expected.to_owned(), import)], "{css}");
        }
    }

    #[test]
    fn what_is_no_url() {
        for css in [
            "/* url(x) @import 'y'; */",
            "a::before { content: 'url(x)' }",
            "@namespace svg url(http://www.w3.org/2000/svg);",
            "@namespace 'http://www.w3.org/2000/svg';",
            "@charset 'utf-8';",
            "/* open",
            "a { content: '\\",
        ] {
            assert_eq!(all(css), [], "{css}");
        }
    }

    #[test]
    fn several_in_a_row() {
        let css = "@import 'a'; b{c:url(d),url('e')} @media x{f{g:image-set(url(h) 1x, 'i' type('image/png') 2x)}} j{k:'l'}";
        let urls: Vec<_> = all(css).into_iter().map(|(url, _)| url).collect();
        assert_eq!(urls, ["a", "d", "e", "h", "i"]);
    }
}
