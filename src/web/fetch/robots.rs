//! Parses and matches robots.txt (RFC 9309), without any I/O.
//!
//! A file is parsed for one robot, and only the rules that apply to it are kept. Any bytes are valid input. Parsing
//! takes time linear in the file, matching linear in the rules and the path, even for patterns full of `*`. Where the
//! RFC is silent, the behaviour follows Google's parser, against which most files were tested: misspelt names, a
//! missing colon, and `Allow` of an index page that also allows its directory.

use std::borrow::Cow;
use std::time::Duration;

use url::Url;

/// Maximum bytes of a file that are parsed: the minimum that RFC 9309, section 2.5, requires.
pub const ROBOTS_BYTES_MAX: usize = 500 * 1024;

/// Maximum number of sitemaps taken from one file.
const SITEMAPS_MAX: usize = 1_000;

/// A longer delay is cut to this. A day between two pages means "stay away", for which there are rules.
const DELAY_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The rules of one host for one robot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Robots {
    rules: Vec<RobotsRule>,
    crawl_delay: Option<Duration>,
    sitemaps: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct RobotsRule {
    allows: bool,
    /// Line number, from 1.
    line: u32,
    pattern: Pattern,
}

/// Whether a URL may be fetched, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RobotsVerdict<'r> {
    /// Whether it may be fetched.
    pub allowed: bool,
    /// Line number, from 1, and pattern as written of the rule that decides, if one does.
    pub rule: Option<(u32, &'r str)>,
}

impl Robots {
    /// Parses a file for the robot with this product token, such as `archive`, which is compared case-insensitively.
    #[must_use]
    pub fn parse(body: &[u8], robot: &str) -> Self {
        let text = decode(&body[..body.len().min(ROBOTS_BYTES_MAX)]);
        let mut reader = RobotsParser { robot, ..RobotsParser::default() };
        // A carriage return alone ends a line too (RFC 9309, section 2.2: EOL).
        for (index, line) in
            text.split('\n').flat_map(|line| line.trim_end_matches('\r').split('\r')).enumerate()
        {
            reader.line(line, u32::try_from(index + 1).unwrap_or(u32::MAX));
        }
        reader.finish()
    }

    /// Whether a URL of this host may be fetched.
    #[must_use]
    pub fn check(&self, url: &Url) -> RobotsVerdict<'_> {
        self.check_path(&url[url::Position::BeforePath..url::Position::AfterQuery])
    }

    /// Whether a path, with its query, may be fetched.
    #[must_use]
    pub fn check_path(&self, path: &str) -> RobotsVerdict<'_> {
        if path == "/robots.txt" {
            // It may always be fetched.
            return RobotsVerdict { allowed: true, rule: None };
        }
        let path = normal_path(if path.is_empty() { "/" } else { path });
        // The longest matching pattern wins; between equals, one that allows (section 2.2.2).
        let matching = self.rules.iter().filter(|rule| rule.matches(&path));
        match matching.max_by_key(|rule| (rule.pattern.length(), rule.allows)) {
            Some(rule) => {
                RobotsVerdict { allowed: rule.allows, rule: Some((rule.line, &*rule.pattern.written)) }
            }
            None => RobotsVerdict { allowed: true, rule: None },
        }
    }

    /// Minimum time that the host wants between two requests of this robot (`Crawl-delay`, or from `Request-rate`).
    #[must_use]
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.crawl_delay
    }

    /// Sitemaps named in the file, as written: to be resolved against the file's URL.
    #[must_use]
    pub fn sitemaps(&self) -> &[String] {
        &self.sitemaps
    }

    /// Drops the sitemaps, which are not rules.
    #[must_use]
    pub fn without_sitemaps(self) -> Self {
        Self { sitemaps: Vec::new(), ..self }
    }

    /// Approximate bytes of memory.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        /// Overhead of the allocator per text.
        const ALLOCATION_BYTES: usize = 16;
        let of_rule = |rule: &RobotsRule| {
            let normal = rule.pattern.normal.as_ref().map_or(0, |normal| normal.len() + ALLOCATION_BYTES);
            size_of::<RobotsRule>() + rule.pattern.written.len() + ALLOCATION_BYTES + normal
        };
        let sitemaps = self.sitemaps.iter().map(|url| size_of::<String>() + url.len() + ALLOCATION_BYTES);
        size_of::<Self>() + self.rules.iter().map(of_rule).sum::<usize>() + sitemaps.sum::<usize>()
    }

    /// Number of rules that apply to the robot.
    #[must_use]
    pub fn rule_count(&self) -> usize {
        self.rules.len()
    }
}

impl RobotsRule {
    fn matches(&self, path: &str) -> bool {
        self.pattern.matches(path) || (self.allows && self.pattern.matches_directory(path))
    }
}

/// A path pattern: `*` matches anything, `$` the end (RFC 9309, section 2.2.3).
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern {
    written: Box<str>,
    /// Normal form without the `$`, if it differs from what was written.
    normal: Option<Box<str>>,
    is_anchored: bool,
}

impl Pattern {
    fn new(written: &str) -> Self {
        let (body, is_anchored) = match written.strip_suffix('$') {
            Some(body) => (body, true),
            None => (written, false),
        };
        let normal = normalise(body, |byte| byte == b'$');
        let normal = (normal != written).then(|| normal.into());
        Self { written: written.into(), normal, is_anchored }
    }

    fn text(&self) -> &str {
        self.normal.as_deref().unwrap_or(&self.written)
    }

    /// Length in octets; the longest matching rule is the most specific.
    fn length(&self) -> usize {
        self.text().len() + usize::from(self.is_anchored)
    }

    /// Whether the pattern matches a path in normal form. Each literal between two `*` is searched for once, from the
    /// end of the previous one: the earliest match leaves most to the literals that follow, so no backtracking is
    /// needed.
    fn matches(&self, path: &str) -> bool {
        matches_literals(self.text(), path, self.is_anchored)
    }

    /// Whether the pattern names the index page of a directory and the path is that directory.
    fn matches_directory(&self, path: &str) -> bool {
        let text = self.text();
        let Some(slash) = text.rfind('/') else { return false };
        text[slash..].starts_with("/index.htm") && matches_literals(&text[..=slash], path, true)
    }
}

fn matches_literals(pattern: &str, path: &str, is_anchored: bool) -> bool {
    let mut literals = pattern.split('*');
    let first = literals.next().unwrap_or_default();
    let Some(mut rest) = path.strip_prefix(first) else { return false };
    let Some(mut literal) = literals.next() else { return !is_anchored || rest.is_empty() };
    for next in literals {
        let Some(at) = memchr::memmem::find(rest.as_bytes(), literal.as_bytes()) else { return false };
        rest = &rest[at + literal.len()..];
        literal = next;
    }
    if is_anchored {
        rest.ends_with(literal)
    } else {
        memchr::memmem::find(rest.as_bytes(), literal.as_bytes()).is_some()
    }
}

/// Normalises a path for comparison with patterns; `*` and `$` in it are escaped.
fn normal_path(path: &str) -> Cow<'_, str> {
    normalise(path, |byte| matches!(byte, b'*' | b'$'))
}

/// Writes escapes in upper case, decodes those of unreserved characters, and escapes non-ASCII bytes and those selected
/// by `is_escaped` (RFC 9309, section 2.2.2).
fn normalise(text: &str, is_escaped: impl Fn(u8) -> bool) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    if !bytes.iter().any(|&byte| byte == b'%' || !byte.is_ascii() || is_escaped(byte)) {
        return Cow::Borrowed(text);
    }
    let hex = |at: usize| bytes.get(at).and_then(|&byte| char::from(byte).to_digit(16));
    let mut normal = String::with_capacity(text.len() + 16);
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        at += 1;
        if byte == b'%'
            && let (Some(high), Some(low)) = (hex(at), hex(at + 1))
        {
            let decoded = u8::try_from(high * 16 + low).unwrap_or_default();
            at += 2;
            if decoded.is_ascii_alphanumeric() || matches!(decoded, b'-' | b'.' | b'_' | b'~') {
                normal.push(char::from(decoded));
            } else {
                push_escape(&mut normal, decoded);
            }
        } else if !byte.is_ascii() || is_escaped(byte) {
            push_escape(&mut normal, byte);
        } else {
            normal.push(char::from(byte));
        }
    }
    Cow::Owned(normal)
}

fn push_escape(text: &mut String, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    text.push('%');
    text.push(char::from(DIGITS[usize::from(byte >> 4)]));
    text.push(char::from(DIGITS[usize::from(byte & 15)]));
}

/// The file should be UTF-8 (section 2.3); some files are UTF-16, which their byte order mark shows.
fn decode(body: &[u8]) -> Cow<'_, str> {
    match encoding_rs::Encoding::for_bom(body) {
        Some((encoding, mark_bytes)) => encoding.decode_without_bom_handling(&body[mark_bytes..]).0,
        None => String::from_utf8_lossy(body),
    }
}

/// Parses a file line by line.
#[derive(Default)]
struct RobotsParser<'n> {
    robot: &'n str,
    own: RobotsGroup,
    any: RobotsGroup,
    /// Whether a group names the robot, even if the group has no rules.
    is_named: bool,
    in_own: bool,
    in_any: bool,
    /// Whether the previous lines named robots: another name then joins them.
    is_naming: bool,
    sitemaps: Vec<String>,
}

/// The rules of all groups for one name, merged.
#[derive(Default)]
struct RobotsGroup {
    rules: Vec<RobotsRule>,
    delay: Option<Duration>,
}

impl RobotsParser<'_> {
    fn line(&mut self, line: &str, number: u32) {
        let line = line.split('#').next().unwrap_or_default().trim();
        let Some((name, value)) = split_record(line) else { return };
        match RobotsField::of(name) {
            RobotsField::UserAgent => self.user_agent(value),
            RobotsField::Allow => self.rule(true, value, number),
            RobotsField::Disallow => self.rule(false, value, number),
            RobotsField::CrawlDelay => self.delay(parse_delay(value)),
            RobotsField::RequestRate => self.delay(parse_rate(value)),
            RobotsField::Sitemap => {
                if !value.is_empty() && self.sitemaps.len() < SITEMAPS_MAX {
                    self.sitemaps.push(value.to_owned());
                }
            }
            RobotsField::Other => {}
        }
    }

    fn user_agent(&mut self, value: &str) {
        if !self.is_naming {
            self.in_own = false;
            self.in_any = false;
            self.is_naming = true;
        }
        let is_token = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let token = &value[..value.find(|c| !is_token(c)).unwrap_or(value.len())];
        if token.is_empty() && value.starts_with('*') {
            self.in_any = true;
        } else if !token.is_empty() && token.eq_ignore_ascii_case(self.robot) {
            self.in_own = true;
            self.is_named = true;
        }
    }

    fn rule(&mut self, allows: bool, value: &str, line: u32) {
        self.is_naming = false;
        if value.is_empty() {
            return;
        }
        for (applies, group) in [(self.in_own, &mut self.own), (self.in_any, &mut self.any)] {
            if applies {
                group.rules.push(RobotsRule { allows, line, pattern: Pattern::new(value) });
            }
        }
    }

    /// Sets the delay of the robots named last. This is not a rule, so more names may follow (section 2.2.4).
    fn delay(&mut self, delay: Option<Duration>) {
        for (applies, group) in [(self.in_own, &mut self.own), (self.in_any, &mut self.any)] {
            if applies {
                group.delay = group.delay.max(delay);
            }
        }
    }

    fn finish(self) -> Robots {
        let mut group = if self.is_named { self.own } else { self.any };
        group.rules.shrink_to_fit();
        Robots { rules: group.rules, crawl_delay: group.delay, sitemaps: self.sitemaps }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RobotsField {
    UserAgent,
    Allow,
    Disallow,
    CrawlDelay,
    RequestRate,
    Sitemap,
    Other,
}

impl RobotsField {
    fn of(name: &str) -> Self {
        const NAMES: [(&str, RobotsField); 15] = [
            ("user-agent", RobotsField::UserAgent),
            ("useragent", RobotsField::UserAgent),
            ("user agent", RobotsField::UserAgent),
            ("allow", RobotsField::Allow),
            ("disallow", RobotsField::Disallow),
            ("dissallow", RobotsField::Disallow),
            ("dissalow", RobotsField::Disallow),
            ("disalow", RobotsField::Disallow),
            ("diasllow", RobotsField::Disallow),
            ("disallaw", RobotsField::Disallow),
            ("crawl-delay", RobotsField::CrawlDelay),
            ("crawldelay", RobotsField::CrawlDelay),
            ("request-rate", RobotsField::RequestRate),
            ("sitemap", RobotsField::Sitemap),
            ("site-map", RobotsField::Sitemap),
        ];
        let found = NAMES.iter().find(|(listed, _)| name.eq_ignore_ascii_case(listed));
        found.map_or(Self::Other, |&(_, field)| field)
    }
}

/// Splits a line into name and value. Without a colon, a line of two words is split at the space.
fn split_record(line: &str) -> Option<(&str, &str)> {
    if let Some((name, value)) = line.split_once(':') {
        return Some((name.trim(), value.trim()));
    }
    let (name, value) = line.split_once(|c: char| c.is_ascii_whitespace())?;
    let value = value.trim();
    (!value.contains(|c: char| c.is_ascii_whitespace())).then_some((name, value))
}

fn parse_delay(value: &str) -> Option<Duration> {
    let seconds: f64 = value.split_whitespace().next()?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok().map(|delay| delay.min(DELAY_MAX))
}

/// `1/5` is one request in five seconds, `30/1m` thirty in a minute. A time of day after it is ignored.
fn parse_rate(value: &str) -> Option<Duration> {
    let (requests, time) = value.split_whitespace().next()?.split_once('/')?;
    let requests: f64 = requests.parse().ok()?;
    let digits = time.bytes().take_while(u8::is_ascii_digit).count();
    let number: f64 = time[..digits].parse().ok()?;
    let unit = match &time[digits..] {
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number * unit / requests).ok().map(|delay| delay.min(DELAY_MAX))
}

#[cfg(test)]
mod tests;
