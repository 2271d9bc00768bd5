//! Keys by which captures are looked up when there is none of the very URL: the SURT, without what pages put into the URLs
//! of their requests to keep caches away, or to name the function that takes the answer.
//!
//! Such a parameter has a telling name and a value of a telling form. Add a name to the tables for another one.

use super::request;
use super::surt::surt;

/// Names that mean nothing but "not from a cache", with any number as the value.
const AGAINST_CACHES: [&str; 20] = [
    "_",
    "_dc",
    "_nc",
    "_r",
    "_rand",
    "_rnd",
    "_t",
    "_ts",
    "bust",
    "cachebust",
    "cachebuster",
    "cb",
    "ck",
    "no-cache",
    "no_cache",
    "nocache",
    "rand",
    "random",
    "rnd",
    "uncache",
];

/// Names with other uses, whose values must look like a time, in seconds or finer, or a random number.
const TIMES: [&str; 10] = ["", "cache", "d", "now", "r", "t", "time", "timestamp", "tm", "x"];

/// Names of versions, whose values are numbers with dots or hyphens.
const VERSIONS: [&str; 6] = ["build", "rev", "v", "ver", "version", "vsn"];

/// Names of parameters that say where the reader came from, and the start of others.
const CAMPAIGNS: [&str; 8] = ["_ga", "_gl", "fbclid", "gclid", "mc_cid", "mc_eid", "msclkid", "yclid"];
const CAMPAIGN: &str = "utm_";

/// Names of the function that takes a script's answer (JSONP).
const CALLBACKS: [&str; 8] =
    ["_callback", "callback", "cb", "jscallback", "jsoncallback", "jsonp", "jsonp_callback", "jsonpcallback"];

/// Number of digits of a time in seconds.
const TIME_DIGITS: usize = 10;

/// Endings of the names of files whose content no query chooses, as a rule.
const FILES: [&str; 30] = [
    "avif", "bmp", "css", "eot", "gif", "ico", "jpeg", "jpg", "js", "m3u8", "m4a", "m4v", "map", "mjs",
    "mp3", "mp4", "mpd", "ogg", "ogv", "otf", "png", "svg", "swf", "ttf", "vtt", "wav", "webm", "webp",
    "woff", "woff2",
];

/// Returns the key of all URLs that may be looked up in place of a URL: those with its [`loose_key`] and, if it is a
/// file by its name, those with another query.
#[must_use]
pub fn lookup_key(url: &str) -> String {
    let key = surt(url);
    let (path, query) = split(&key);
    let is_file = path.rsplit_once('.').is_some_and(|(_, ending)| FILES.contains(&ending));
    if is_file && request::method_of(url).is_none() {
        return path.to_owned();
    }
    query.map_or_else(|| path.to_owned(), |query| without_what_varies(path, query))
}

/// Returns the SURT of a URL without the parameters that differ from request to request.
#[must_use]
pub fn loose_key(url: &str) -> String {
    let key = surt(url);
    let (path, query) = split(&key);
    query.map_or_else(|| path.to_owned(), |query| without_what_varies(path, query))
}

/// Returns the name of the function that takes the answer to a request, as its URL has it.
#[must_use]
pub fn callback_of(url: &str) -> Option<&str> {
    let pairs = split(url).1?.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let mut named = pairs.filter(|(name, value)| is_callback(&name.to_ascii_lowercase(), value));
    named.next().map(|(_, value)| value)
}

fn split(url: &str) -> (&str, Option<&str>) {
    url.split_once('?').map_or((url, None), |(path, query)| (path, Some(query)))
}

fn without_what_varies(path: &str, query: &str) -> String {
    let kept: Vec<&str> = query.split('&').filter(|pair| !varies(pair)).collect();
    if kept.is_empty() { path.to_owned() } else { format!("{path}?{}", kept.join("&")) }
}

/// Whether a parameter of a SURT differs from request to request.
fn varies(pair: &str) -> bool {
    let (name, value) = match pair.split_once('=') {
        Some(parts) => parts,
        None if is_number(pair) => ("", pair),
        None => (pair, ""),
    };
    // pywb's rule: a name with one of these words, and a time in milliseconds.
    let is_named_so = ["bust", "ts"].iter().any(|word| name.contains(word));
    let is_long = value.len() >= TIME_DIGITS && value.bytes().all(|byte| byte.is_ascii_digit());
    let is_time = is_long || is_number(value) && value.starts_with("0.");
    AGAINST_CACHES.contains(&name) && (value.is_empty() || is_number(value))
        || (TIMES.contains(&name) || is_named_so) && is_time
        || VERSIONS.contains(&name) && is_number(value)
        || CAMPAIGNS.contains(&name)
        || name.starts_with(CAMPAIGN)
        || is_callback(name, value)
}

fn is_number(value: &str) -> bool {
    value.starts_with(|first: char| first.is_ascii_digit())
        && value.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-'))
}

/// Whether a parameter names a function: by its own name, or by a value that a library makes up.
fn is_callback(name: &str, value: &str) -> bool {
    let is_name = value.starts_with(|first: char| first.is_ascii_alphabetic() || matches!(first, '_' | '$'))
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_$.[]".contains(&byte));
    let is_made_up = |start: &str| {
        let rest = value.get(..start.len()).filter(|found| found.eq_ignore_ascii_case(start));
        rest.is_some() && value.bytes().rev().take_while(u8::is_ascii_digit).count() >= TIME_DIGITS
    };
    is_name && (CALLBACKS.contains(&name) || is_made_up("jquery") || is_made_up("jsonp"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_varies_is_no_part_of_the_key() {
        for (one, other) in [
            ("a.json?_=1577836800001", "a.json"),
            ("a.json?id=7&_=1577836800001", "a.json?_=5&id=7"),
            ("a?callback=jQuery3410_1577836800000&_=1577836800001", "a?callback=f&_=1"),
            ("a?x=jQuery3410_1577836800000", "a?x=jQuery99_1700000000000"),
            ("a?jsoncallback=a.b[3]", "a"),
            ("a?v=1577836800", "a?v=1.2.3"),
            ("a?utm_source=b", "a?utm_medium=c"),
            ("a?fbclid=IwAR", "a"),
            ("a?1700000000000", "a"),
            ("a?rand=0.123456&b", "a?rand=0.9&b"),
            ("a?myts=1577836800001", "a?myts=1700000000000"),
            ("a?cachebuster=1577836800001", "a"),
            ("a/?uncache=77", "a/"),
            ("a.css?theme=1", "a.css?theme=2"),
            ("A/B.png?w=100", "a/b.png"),
            ("?_=1577836800001", ""),
        ] {
            let key = |rest: &str| lookup_key(&format!("http://a.org/{rest}"));
            assert_eq!(key(one), key(other), "{one} {other}");
        }
    }

    #[test]
    fn what_chooses_a_content_is_part_of_the_key() {
        for (one, other) in [
            ("a?id=1577836800001", "a?id=1577836800002"),
            ("a?t=12", "a?t=13"),
            ("a?d=2020-01-01", "a?d=2020-01-02"),
            ("a?12", "a?13"),
            ("a?v=dQw4w9WgXcQ", "a?v=abc"),
            ("a?callback=12", "a?callback=13"),
            ("a.php?theme=1", "a.php?theme=2"),
            ("a.js?__wb_method=POST&b=1", "a.js?__wb_method=POST&b=2"),
            ("a.js?__wb_method=POST&b=1", "a.js"),
            ("a?nocache=yes", "a"),
        ] {
            let key = |rest: &str| lookup_key(&format!("http://a.org/{rest}"));
            assert_ne!(key(one), key(other), "{one} {other}");
        }
        assert_eq!(loose_key("http://a.org/a.css?b=1&_=2"), "org,a)/a.css?b=1");
        assert_eq!(callback_of("http://a.org/a?b=c&callback=f.g&_=1"), Some("f.g"));
        assert_eq!(callback_of("http://a.org/a?callback=f(1)"), None);
    }
}
