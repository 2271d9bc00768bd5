//! Sort-friendly URI Reordering Transform: the key of CDXJ files.
//!
//! The rules are those of the Internet Archive's `IAURLCanonicalizer` after `GoogleURLCanonicalizer`, as implemented by
//! the Python package `surt` 0.3, because that is what pywb and cdxj-indexer write and look up. They drop user, port
//! 80/443 and `www.`, convert everything to lower case, decode escapes until none are left and escape once, merge
//! slashes, sort the query, and drop session ids.

use std::net::Ipv4Addr;

/// Returns the SURT of a URL: `org,example)/a?a=1&b=2` for `http://www.Example.org:80/A/?b=2&a=1`.
///
/// Accepts any text, like the tools: a text without a scheme is taken as `http`. A URL without a host keeps its scheme
/// (`mailto:a@b.example`). The result is ASCII.
#[must_use]
pub fn surt(url: &str) -> String {
    if url.is_empty() {
        return "-".to_owned();
    }
    if url.starts_with("filedesc") || url.starts_with("warcinfo") {
        return String::from_utf8_lossy(&escape_once(url.as_bytes())).into_owned();
    }
    let cleaned: Vec<u8> = url.trim().bytes().filter(|byte| !matches!(byte, b'\n' | b'\r' | b'\t')).collect();
    let split = Split::of(&cleaned);
    let host = canonical_host(&split.host);
    let is_dns = split.scheme.eq_ignore_ascii_case(b"dns");
    let host = if is_dns { &host[..] } else { without_www(&host) };

    let mut key = Vec::with_capacity(cleaned.len() + 8);
    if host.is_empty() {
        key.extend_from_slice(&split.scheme);
        key.push(b':');
    } else {
        append_reversed(host, &mut key);
        if let Some(port) = split.port_to_show() {
            key.extend_from_slice(format!(":{port}").as_bytes());
        }
        key.push(b')');
    }
    let path = canonical_path(&split.path, !host.is_empty());
    let query = canonical_query(&split.query);
    key.extend_from_slice(&path);
    if !query.is_empty() {
        key.extend_from_slice(if path.is_empty() { b"/?" } else { b"?" });
        key.extend_from_slice(&query);
    }
    String::from_utf8_lossy(&key).into_owned()
}

/// A URL split into the parts of RFC 2396, appendix B.
struct Split {
    scheme: Vec<u8>,
    host: Vec<u8>,
    port: Option<u32>,
    path: Vec<u8>,
    query: Vec<u8>,
}

impl Split {
    fn of(url: &[u8]) -> Self {
        let with_scheme;
        let url = if has_scheme(url) {
            url
        } else {
            with_scheme = [b"http://", url].concat();
            &with_scheme
        };
        let (scheme, rest) = split_at_byte(last_scheme(url), b':');
        let rest = rest.split(|&byte| byte == b'#').next().unwrap_or_default();
        let (rest, query) = split_at_byte(rest, b'?');
        let (authority, path) = match rest.strip_prefix(b"//") {
            Some(after) => {
                let end = after.iter().position(|&byte| byte == b'/').unwrap_or(after.len());
                after.split_at(end)
            }
            None => (&rest[..0], rest),
        };
        let (host, port) = split_authority(authority);
        let mut split = Self {
            scheme: scheme.to_vec(),
            host: host.to_ascii_lowercase(),
            port,
            path: path.to_vec(),
            query: query.to_vec(),
        };
        if split.scheme.starts_with(b"http") && split.host.is_empty() && !split.path.is_empty() {
            split.take_host_from_path();
        }
        split
    }

    /// Takes the host from the path, for URLs such as `http:////a.example/b`.
    fn take_host_from_path(&mut self) {
        let start = self.path.iter().position(|&byte| byte != b'/').unwrap_or(self.path.len());
        let (host, path) = split_at_byte(&self.path[start..], b'/');
        let path = [b"/", path].concat();
        self.host = host.to_vec();
        self.path = path;
    }

    fn port_to_show(&self) -> Option<u32> {
        let own = match self.scheme.to_ascii_lowercase().as_slice() {
            b"http" => 80,
            b"https" => 443,
            _ => 0,
        };
        // Port 0 counts as none, as in the Python package.
        self.port.filter(|&port| port != own && port != 0)
    }
}

/// Keeps only the last of several schemes, for URLs such as `http://https://order.example`.
fn last_scheme(mut url: &[u8]) -> &[u8] {
    let after_scheme = |url: &'_ [u8]| {
        let scheme = [&b"http://"[..], b"https://"].into_iter().find(|scheme| url.starts_with(scheme));
        scheme.map_or(0, <[u8]>::len)
    };
    loop {
        let inner = &url[after_scheme(url)..];
        if after_scheme(inner) == 0 || inner.len() == url.len() {
            return url;
        }
        url = inner;
    }
}

/// Whether a text begins with something like a scheme, as `example.org:` does.
fn has_scheme(url: &[u8]) -> bool {
    let (scheme, rest) = split_at_byte(url, b':');
    scheme.len() + rest.len() < url.len()
        && scheme.first().is_some_and(u8::is_ascii_alphabetic)
        && scheme.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}

fn split_at_byte(text: &[u8], separator: u8) -> (&[u8], &[u8]) {
    match text.iter().position(|&byte| byte == separator) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &[]),
    }
}

fn split_authority(authority: &[u8]) -> (&[u8], Option<u32>) {
    let host = match authority.iter().rposition(|&byte| byte == b'@') {
        Some(at) => &authority[at + 1..],
        None => authority,
    };
    if let Some(rest) = host.strip_prefix(b"[") {
        let end = rest.iter().position(|&byte| byte == b']').unwrap_or(rest.len());
        let after = rest.get(end + 1..).unwrap_or_default();
        return (&rest[..end], after.strip_prefix(b":").and_then(port_of));
    }
    let (name, port) = split_at_byte(host, b':');
    (name, port_of(port))
}

fn port_of(digits: &[u8]) -> Option<u32> {
    std::str::from_utf8(digits).ok()?.parse().ok().filter(|&port| port <= 65_535)
}

fn canonical_host(host: &[u8]) -> Vec<u8> {
    let mut host = unescape_repeatedly(host);
    if !host.is_ascii() {
        let text = String::from_utf8_lossy(&host).replace('\u{FFFD}', "");
        let labels: Vec<String> = text.split('.').map(label_in_ascii).collect();
        host = labels.join(".").into_bytes();
    }
    let text: Vec<u8> = replace_double_dots(&host);
    let trimmed = trim_dots(&text);
    match address_of(trimmed) {
        Some(address) => address.to_string().into_bytes(),
        None => escape_once(&trimmed.to_ascii_lowercase()),
    }
}

/// Converts a label by itself, because its neighbours may be invalid.
fn label_in_ascii(label: &str) -> String {
    match url::Host::parse(label) {
        Ok(url::Host::Domain(ascii)) if !label.is_ascii() => ascii,
        _ => label.to_owned(),
    }
}

fn replace_double_dots(host: &[u8]) -> Vec<u8> {
    let mut single = Vec::with_capacity(host.len());
    let mut bytes = host.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        single.push(byte);
        if byte == b'.' && bytes.peek() == Some(&b'.') {
            bytes.next();
        }
    }
    single
}

fn trim_dots(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|&byte| byte != b'.').unwrap_or(text.len());
    let end = text.iter().rposition(|&byte| byte != b'.').map_or(start, |last| last + 1);
    &text[start..end]
}

/// Parses the forms of an address that the C function `inet_aton` accepts, in decimal or octal: one to four numbers,
/// the last of which fills the remaining bytes. A single number is truncated to its lower 32 bits.
fn address_of(host: &[u8]) -> Option<Ipv4Addr> {
    let text = std::str::from_utf8(host).ok()?;
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    if !text.contains('.') {
        let number =
            text.bytes().fold(0_u32, |sum, digit| sum.wrapping_mul(10).wrapping_add(u32::from(digit - b'0')));
        return Some(Ipv4Addr::from(number));
    }
    let parts: Vec<&str> = text.split('.').collect();
    if parts.len() > 4 {
        return None;
    }
    let number = |part: &str| match part.strip_prefix('0') {
        Some(octal) if !octal.is_empty() => u32::from_str_radix(octal, 8).ok(),
        _ => part.parse::<u32>().ok(),
    };
    let (last, leading) = parts.split_last()?;
    let mut address = 0_u32;
    for part in leading {
        let byte = number(part).filter(|&byte| byte <= 255)?;
        address = (address << 8) | byte;
    }
    let bits_left = 8 * (4 - u32::try_from(leading.len()).ok()?);
    let tail = number(last).filter(|&tail| u64::from(tail) < 1_u64 << bits_left)?;
    Some(Ipv4Addr::from(address.checked_shl(bits_left).unwrap_or(0) | tail))
}

/// Drops `www`, digits and a dot from the beginning.
fn without_www(host: &[u8]) -> &[u8] {
    let Some(rest) = host.strip_prefix(b"www") else { return host };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match rest[digits..].strip_prefix(b".") {
        Some(name) => name,
        None => host,
    }
}

fn append_reversed(host: &[u8], key: &mut Vec<u8>) {
    for (index, label) in host.rsplit(|&byte| byte == b'.').enumerate() {
        if index > 0 {
            key.push(b',');
        }
        key.extend_from_slice(label);
    }
}

fn canonical_path(path: &[u8], has_host: bool) -> Vec<u8> {
    let unescaped = unescape_repeatedly(path);
    let path = if has_host { merge_segments(&unescaped) } else { unescaped };
    let mut path = without_path_session(escape_once(&path).to_ascii_lowercase());
    if path.len() > 1 && path.last() == Some(&b'/') {
        path.pop();
    }
    path
}

/// Resolves dot segments and merges slashes. Above the root, every second `..` stays, as in the Python package.
fn merge_segments(path: &[u8]) -> Vec<u8> {
    let mut kept: Vec<&[u8]> = Vec::new();
    for segment in path.split(|&byte| byte == b'/').skip(1) {
        match segment {
            b"." => {}
            b".." if !kept.is_empty() => {
                kept.pop();
            }
            _ => kept.push(segment),
        }
    }
    let mut merged = vec![b'/'];
    if let Some((last, leading)) = kept.split_last() {
        for segment in leading.iter().filter(|segment| !segment.is_empty()) {
            merged.extend_from_slice(segment);
            merged.push(b'/');
        }
        merged.extend_from_slice(last);
    }
    merged
}

/// Drops an ASP.NET session from the path: `/(S(24 characters))/` or `/(24 characters)/` before a name with `.aspx`.
fn without_path_session(path: Vec<u8>) -> Vec<u8> {
    if memchr::memmem::find(&path, b".aspx").is_none() {
        return path;
    }
    let ends: Vec<usize> = (0..path.len()).filter(|&at| path[at] == b'/').collect();
    for pair in ends.windows(2).rev() {
        let (start, end) = (pair[0] + 1, pair[1]);
        let rest = &path[end + 1..];
        let before_query = rest.split(|&byte| byte == b'?').next().unwrap_or_default();
        let has_page = before_query.windows(5).skip(1).any(|window| window == b".aspx");
        if has_page && is_session_segment(&path[start..end]) {
            return [&path[..start], rest].concat();
        }
    }
    path
}

fn is_session_segment(segment: &[u8]) -> bool {
    const SESSION_CHARACTERS: usize = 24;
    let Some(mut inside) = segment.strip_prefix(b"(").and_then(|rest| rest.strip_suffix(b")")) else {
        return false;
    };
    if inside.len() == SESSION_CHARACTERS && inside.iter().all(u8::is_ascii_alphanumeric) {
        return true;
    }
    let one = SESSION_CHARACTERS + 3;
    if inside.is_empty() || !inside.len().is_multiple_of(one) {
        return false;
    }
    while let Some((first, rest)) = inside.split_at_checked(one) {
        let letters =
            first[0].is_ascii_alphabetic() && first[2..one - 1].iter().all(u8::is_ascii_alphanumeric);
        if !letters || first[1] != b'(' || first[one - 1] != b')' {
            return false;
        }
        inside = rest;
        if inside.is_empty() {
            break;
        }
    }
    true
}

fn canonical_query(query: &[u8]) -> Vec<u8> {
    let query = without_query_session(escape_once(&unescape_repeatedly(query))).to_ascii_lowercase();
    if query.len() <= 1 {
        return query;
    }
    let mut pairs: Vec<(&[u8], Option<&[u8]>)> = query
        .split(|&byte| byte == b'&')
        .map(|pair| match pair.iter().position(|&byte| byte == b'=') {
            Some(at) => (&pair[..at], Some(&pair[at + 1..])),
            None => (pair, None),
        })
        .collect();
    pairs.sort();
    let mut sorted = Vec::with_capacity(query.len());
    for (index, (name, value)) in pairs.iter().enumerate() {
        if index > 0 {
            sorted.push(b'&');
        }
        sorted.extend_from_slice(name);
        if let Some(value) = value {
            sorted.push(b'=');
            sorted.extend_from_slice(value);
        }
    }
    sorted
}

/// Names of session parameters in the Python package, the number of letters that follow each, and the length of its
/// value.
const QUERY_SESSIONS: [(&[u8], usize, usize); 4] =
    [(b"jsessionid", 0, 32), (b"phpsessid", 0, 32), (b"sid", 0, 32), (b"aspsessionid", 8, 24)];

/// Drops the last session parameter of each kind. As in the Python package, a name also matches at the end of a longer
/// one (`mysid=…`), whose beginning then stays.
fn without_query_session(mut query: Vec<u8>) -> Vec<u8> {
    for (name, letters, length) in QUERY_SESSIONS {
        let whole = name.len() + letters + 1 + length;
        let found = (0..query.len().saturating_sub(whole - 1)).rev().find(|&at| {
            let candidate = &query[at..at + whole];
            let (head, value) = candidate.split_at(whole - length);
            let tail = query.get(at + whole);
            head[..name.len()].eq_ignore_ascii_case(name)
                && head[name.len()..head.len() - 1].iter().all(u8::is_ascii_alphabetic)
                && head[head.len() - 1] == b'='
                && value
                    .iter()
                    .all(|b| if letters > 0 { b.is_ascii_alphabetic() } else { b.is_ascii_alphanumeric() })
                && tail.is_none_or(|&byte| byte == b'&')
        });
        if let Some(at) = found {
            query = cut(&query, at, at + whole);
        }
    }
    let lower = query.to_ascii_lowercase();
    if let Some(at) = memchr::memmem::rfind(&lower, b"cfid=") {
        let (value, rest) = split_at_byte(&lower[at + 5..], b'&');
        let token = rest.strip_prefix(b"cftoken=").map(|after| split_at_byte(after, b'&').0.len());
        if let Some(token) = token.filter(|&token| token > 0 && !value.is_empty()) {
            let end = at + 5 + value.len() + 1 + 8 + token;
            query = cut(&query, at, end);
        }
    }
    query
}

/// Removes a range and the `&` after it.
fn cut(query: &[u8], start: usize, end: usize) -> Vec<u8> {
    let rest = query.get(end + 1..).unwrap_or_default();
    [&query[..start], rest].concat()
}

/// Decodes escapes until none are left: decoded bytes may form new ones.
fn unescape_repeatedly(text: &[u8]) -> Vec<u8> {
    let mut current = text.to_vec();
    while let Some(decoded) = unescape(&current) {
        current = decoded;
    }
    current
}

/// Decodes each escape once; `None` if there is none.
fn unescape(text: &[u8]) -> Option<Vec<u8>> {
    memchr::memchr(b'%', text)?;
    let hex = |at: usize| text.get(at).and_then(|&byte| char::from(byte).to_digit(16));
    let mut decoded = Vec::with_capacity(text.len());
    let mut changed = false;
    let mut at = 0;
    while at < text.len() {
        match (text[at], hex(at + 1), hex(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                decoded.push(u8::try_from(high * 16 + low).unwrap_or_default());
                changed = true;
                at += 3;
            }
            (byte, ..) => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    changed.then_some(decoded)
}

/// Escapes everything but visible ASCII, as well as `#` and `%`.
fn escape_once(text: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut escaped = Vec::with_capacity(text.len());
    for &byte in text {
        if byte.is_ascii_graphic() && byte != b'#' && byte != b'%' {
            escaped.push(byte);
        } else {
            escaped.extend([b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
    }
    escaped
}
