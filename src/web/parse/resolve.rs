//! Resolves references to canonical absolute URLs.
//!
//! Most references of a page are paths or URLs that need no changes. These take a fast path that only inspects their
//! bytes; the others are parsed, joined and canonicalised. Invariant: whenever the fast path gives a result, it equals
//! that of the slow path (a property test compares the two).

use std::borrow::Cow;

use archive_storage::address::canonical;
use encoding_rs::{Encoding, UTF_8};
use url::Url;

/// Turns the references of one document into canonical URLs.
#[derive(Clone, Debug)]
pub struct Resolver {
    base: Url,
    /// Encoding of the document, which also applies to queries (WHATWG URL, "percent-encode after encoding").
    encoding: &'static Encoding,
    /// The base's URL, if it is `http` or `https` and canonical; its prefixes `https://host:port` and
    /// `https://host:port/directory/` serve the fast path.
    base_text: Option<String>,
    scheme_end: usize,
    origin_end: usize,
    directory_end: usize,
}

impl Resolver {
    /// Creates a resolver against a base URL, for a document in this encoding.
    pub fn new(base: Url, encoding: &'static Encoding) -> Self {
        let mut resolver = Self {
            base_text: None,
            encoding: encoding.output_encoding(),
            scheme_end: base.scheme().len(),
            origin_end: 0,
            directory_end: 0,
            base,
        };
        resolver.prepare();
        resolver
    }

    /// Returns the same resolver for a document in another encoding.
    pub fn in_encoding(self, encoding: &'static Encoding) -> Self {
        Self { encoding: encoding.output_encoding(), ..self }
    }

    /// Returns the same resolver against another base, unless this is invalid.
    pub fn rebased(&self, reference: &str) -> Option<Self> {
        Some(Self::new(absolute(&self.base, self.encoding, reference)?, self.encoding))
    }

    /// Appends the URL that a reference names, with its fragment and not canonicalised; returns whether there is one.
    pub fn resolve_whole(&self, reference: &str, output: &mut String) -> bool {
        let (bare, fragment) = match memchr::memchr(b'#', reference.as_bytes()) {
            Some(at) => reference.split_at(at),
            None => (reference, ""),
        };
        // What the rules of the canonical form leave unchanged, so does the parser; the fast path can thus be used
        // here.
        if !bare.is_empty()
            && fragment.bytes().skip(1).all(|byte| is(byte, PATH | QUERY))
            && self.resolve_fast(bare, output)
        {
            output.push_str(fragment);
            return true;
        }
        let url = absolute(&self.base, self.encoding, reference);
        output.push_str(url.as_ref().map_or("", Url::as_str));
        url.is_some()
    }

    /// Base that references are resolved against.
    pub(crate) fn base(&self) -> &Url {
        &self.base
    }

    /// Computes the prefixes that the fast path puts before a path.
    fn prepare(&mut self) {
        let text = canonical(&self.base);
        let unchanged = text == self.base[..url::Position::AfterQuery];
        if !matches!(self.base.scheme(), "http" | "https") || !unchanged {
            return;
        }
        let path_start = self.base[..url::Position::BeforePath].len();
        self.origin_end = path_start;
        let path = self.base.path();
        let path_is_plain = bytes_are(path, PATH) && path.starts_with('/');
        self.directory_end =
            if path_is_plain { path_start + path.rfind('/').map_or(0, |slash| slash + 1) } else { 0 };
        self.base_text = Some(text);
    }

    /// Writes the canonical URL of a reference to `output`; returns whether there is one.
    ///
    /// There is none for an empty reference or a mere fragment (the document itself), for schemes other than `http` and
    /// `https`, and for references that are not URLs.
    pub(crate) fn resolve(&self, reference: &str, output: &mut String) -> bool {
        let reference = trimmed(reference);
        let without_fragment = match memchr::memchr(b'#', reference.as_bytes()) {
            Some(at) => &reference[..at],
            None => reference,
        };
        output.clear();
        if without_fragment.is_empty() {
            return false;
        }
        self.resolve_fast(without_fragment, output) || self.resolve_slowly(reference, output)
    }

    /// The slow path, which handles any reference.
    pub(crate) fn resolve_slowly(&self, reference: &str, output: &mut String) -> bool {
        output.clear();
        let Some(url) = absolute(&self.base, self.encoding, reference) else { return false };
        output.push_str(&canonical(&url));
        true
    }

    /// The fast path. Returns false for anything that it cannot handle with certainty.
    pub(crate) fn resolve_fast(&self, reference: &str, output: &mut String) -> bool {
        let bytes = reference.as_bytes();
        match bytes {
            [b'/', b'/', ..] => {
                let Some(base) = &self.base_text else { return false };
                is_plain_authority_and_path(&reference[2..])
                    && put(output, [&base[..self.scheme_end], ":", reference], needs_slash(&reference[2..]))
            }
            [b'/', ..] => {
                let Some(base) = &self.base_text else { return false };
                is_plain_path_and_query(reference)
                    && put(output, [&base[..self.origin_end], "", reference], false)
            }
            [b'h', b't', b't', b'p', ..] if has_plain_scheme(reference) => {
                let after = reference.find("//").map_or("", |at| &reference[at + 2..]);
                is_plain_authority_and_path(after) && put(output, ["", "", reference], needs_slash(after))
            }
            _ => self.resolve_relative(reference, output),
        }
    }

    /// Resolves a path next to or below the document: `b.html`, `../c/`.
    fn resolve_relative(&self, mut reference: &str, output: &mut String) -> bool {
        let (Some(base), true) = (&self.base_text, self.directory_end > 0) else { return false };
        let mut directory = &base[..self.directory_end];
        while let Some(rest) = reference.strip_prefix("../") {
            let above = directory[..directory.len() - 1].rfind('/').map_or(0, |slash| slash + 1);
            directory = &directory[..above.max(self.origin_end + 1)];
            reference = rest;
        }
        let first_segment = reference.split(['/', '?']).next().unwrap_or_default();
        if first_segment.is_empty() || first_segment.starts_with('.') || first_segment.contains(':') {
            return false;
        }
        is_plain_path_and_query(reference) && put(output, [directory, "", reference], false)
    }
}

/// Returns the URL that a reference names, with its fragment; none unless it is `http` or `https`. `encoding` must be
/// an output encoding.
fn absolute(base: &Url, encoding: &'static Encoding, reference: &str) -> Option<Url> {
    let encode = encoder(encoding);
    let mut options = Url::options().base_url(Some(base));
    if encoding != UTF_8 {
        options = options.encoding_override(Some(&encode));
    }
    let url = options.parse(&with_two_slashes(reference)).ok()?;
    (matches!(url.scheme(), "http" | "https") && url.host_str().is_some_and(|host| !host.is_empty()))
        .then_some(url)
}

/// Reduces `///host` to `//host` (WHATWG URL, "special authority ignore slashes state"), which the crate `url` does not
/// do.
fn with_two_slashes(reference: &str) -> Cow<'_, str> {
    let is_slash = |c: char| c == '/' || c == '\\';
    let trimmed = reference.trim_start_matches(|c: char| c <= ' ');
    let rest = trimmed.trim_start_matches(is_slash);
    if trimmed.len() - rest.len() > 2 { Cow::Owned(format!("//{rest}")) } else { Cow::Borrowed(reference) }
}

fn encoder(encoding: &'static Encoding) -> impl for<'a> Fn(&'a str) -> Cow<'a, [u8]> {
    move |text| encoding.encode(text).0
}

/// Strips leading and trailing spaces and control characters (WHATWG URL, basic parser, step 1).
fn trimmed(reference: &str) -> &str {
    let bytes = reference.as_bytes();
    if bytes.first().is_none_or(|&byte| byte > b' ') && bytes.last().is_none_or(|&byte| byte > b' ') {
        return reference;
    }
    reference.trim_matches(|c: char| c <= ' ')
}

/// Appends the pieces, and a slash for an empty path. Always returns true, to end a chain of conditions.
fn put(output: &mut String, pieces: [&str; 3], slash: bool) -> bool {
    for piece in pieces {
        output.push_str(piece);
    }
    if slash {
        output.push('/');
    }
    true
}

fn has_plain_scheme(reference: &str) -> bool {
    reference.starts_with("http://") || reference.starts_with("https://")
}

fn needs_slash(after_scheme: &str) -> bool {
    !after_scheme.contains('/')
}

/// Whether a text is a lower-case host name that the URL parser leaves unchanged, without a port, and a plain path.
fn is_plain_authority_and_path(text: &str) -> bool {
    let end = memchr::memchr2(b'/', b'?', text.as_bytes()).unwrap_or(text.len());
    let (host, path) = text.split_at(end);
    is_plain_host(host) && !path.starts_with('?') && (path.is_empty() || is_plain_path_and_query(path))
}

/// Whether a host has only lower-case letters, digits, dots and single hyphens, with a last label that begins with a
/// letter, so that it is not an IP address.
fn is_plain_host(host: &str) -> bool {
    let bytes = host.as_bytes();
    let characters = bytes.iter().all(|&byte| is(byte, HOST));
    let last_label = &bytes[memchr::memrchr(b'.', bytes).map_or(0, |dot| dot + 1)..];
    characters
        && last_label.first().is_some_and(u8::is_ascii_lowercase)
        && bytes[0] != b'.'
        && bytes[0] != b'-'
        && !bytes.windows(2).any(|pair| matches!(pair, b".." | b"--" | b"-." | b".-"))
        && last_label.last() != Some(&b'-')
}

/// Whether a path, perhaps with a query, has only characters that neither the parser nor a canonicalisation rule
/// changes.
fn is_plain_path_and_query(text: &str) -> bool {
    let (path, query) = match memchr::memchr(b'?', text.as_bytes()) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    bytes_are(path, PATH)
        && !has_dot_segment(path)
        && query.is_none_or(|query| !query.is_empty() && bytes_are(query, QUERY))
}

fn has_dot_segment(path: &str) -> bool {
    memchr::memmem::find(path.as_bytes(), b"/.").is_some() || path.starts_with('.')
}

const PATH: u8 = 1;
const QUERY: u8 = 2;
const HOST: u8 = 4;

/// Flags the bytes that are plain in each part. `%`, `;` and brackets are absent where rules may apply to them.
const PLAIN: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 128 {
        let character = byte as u8;
        let unreserved = character.is_ascii_alphanumeric() || matches!(character, b'-' | b'.' | b'_' | b'~');
        if unreserved
            || matches!(character, b'!' | b'$' | b'&' | b'*' | b'+' | b',' | b'=' | b':' | b'@' | b'/')
        {
            table[byte] |= PATH | QUERY;
        }
        if matches!(character, b'?' | b';') {
            table[byte] |= QUERY;
        }
        if character.is_ascii_lowercase() || character.is_ascii_digit() || matches!(character, b'-' | b'.') {
            table[byte] |= HOST;
        }
        byte += 1;
    }
    table
};

fn is(byte: u8, class: u8) -> bool {
    PLAIN[usize::from(byte)] & class != 0
}

fn bytes_are(text: &str, class: u8) -> bool {
    text.bytes().all(|byte| is(byte, class))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BASES: [&str; 8] = [
        "http://a.example/",
        "http://a.example/b/c.html",
        "https://a.example:8443/b/c/d/?q=1",
        "http://a.example/b%20c/d",
        "http://a.example./b/c",
        "http://me@a.example/b/c",
        "http://[::1]/b/c",
        "http://a.example/b/?utm_source=1",
    ];

    fn resolver(base: &str) -> Resolver {
        Resolver::new(Url::parse(base).unwrap(), UTF_8)
    }

    fn resolved(base: &str, reference: &str) -> Option<String> {
        let mut output = String::new();
        resolver(base).resolve(reference, &mut output).then_some(output)
    }

    #[test]
    fn references_of_all_kinds() {
        let base = "http://a.example/b/c.html";
        for (reference, expected) in [
            ("/x", "http://a.example/x"),
            ("x.html?y=1#z", "http://a.example/b/x.html?y=1"),
            ("../x", "http://a.example/x"),
            ("../../../x", "http://a.example/x"),
            ("./x", "http://a.example/b/x"),
            ("?x", "http://a.example/b/c.html?x"),
            ("//B.example", "http://b.example/"),
            (" https://b.example\n", "https://b.example/"),
            ("https://b.example?x", "https://b.example/?x"),
            ("HTTP://B.example/%7Ex", "http://b.example/~x"),
            ("x y", "http://a.example/b/x%20y"),
            ("x?utm_source=y", "http://a.example/b/x?utm_source=y"),
            ("x?", "http://a.example/b/x"),
            ("\\\\b.example\\x", "http://b.example/x"),
            ("///b.example/x", "http://b.example/x"),
        ] {
            assert_eq!(resolved(base, reference).as_deref(), Some(expected), "{reference}");
        }
        for reference in
            ["", "#x", "  ", "mailto:a@b.example", "javascript:void(0)", "data:,x", "http://", "ftp://b/"]
        {
            assert_eq!(resolved(base, reference), None, "{reference}");
        }
    }

    #[test]
    fn a_query_takes_the_encoding_of_its_document() {
        let base = Url::parse("http://a.example/").unwrap();
        let resolver = Resolver::new(base, encoding_rs::WINDOWS_1251);
        let mut output = String::new();
        assert!(resolver.resolve("/я?я", &mut output));
        assert_eq!(output, "http://a.example/%D1%8F?%FF");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn the_fast_way_agrees_with_the_slow_one(
            base in prop::sample::select(BASES.as_slice()),
            reference in "(\\.\\./|\\./|/|//|https?://)?[a-zA-Z0-9.:@%;-]{0,12}([/?&=#.][a-z0-9._~%!$&'()*+,;=:@^|\\[\\] -]{0,8}){0,4}",
        ) {
            let resolver = resolver(base);
            let mut fast = String::new();
            let cut = reference.split('#').next().unwrap_or_default().trim_matches(|c: char| c <= ' ');
            if !cut.is_empty() && resolver.resolve_fast(cut, &mut fast) {
                let mut slow = String::new();
                prop_assert!(resolver.resolve_slowly(cut, &mut slow), "{cut} has no slow answer");
                prop_assert_eq!(fast, slow);
            }
            let mut whole = String::new();
            let is_any = resolver.resolve_whole(&reference, &mut whole);
            let parsed = absolute(resolver.base(), UTF_8, &reference);
            prop_assert_eq!(is_any.then_some(whole.as_str()), parsed.as_ref().map(Url::as_str));
        }
    }
}
