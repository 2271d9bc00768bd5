//! robots.txt: what a site asks robots to leave alone (RFC 9309), read and matched without any I/O.
//!
//! A file is read for one robot, and only the rules that count for it are kept. Any bytes give an answer; reading takes time
//! linear in the file, matching linear in the rules and the path, also for patterns full of `*`. Where the RFC is silent,
//! the behaviour is that of Google's parser, which most files were tried against: misspelt names, a missing colon, `Allow` of
//! an index page that allows its directory.

use std::borrow::Cow;
use std::time::Duration;

use url::Url;

/// How much of a file is read, in bytes: the least that RFC 9309, section 2.5, demands.
pub const ROBOTS_BYTES_MAX: usize = 500 * 1024;

/// Sitemaps that one file may name.
const SITEMAPS_MAX: usize = 1_000;

/// A delay longer than this is taken for this; a day between two pages means "stay away", which has its own rule.
const DELAY_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The rules of one host for one robot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Robots {
    whole: Whole,
    rules: Vec<Rule>,
    crawl_delay: Option<Duration>,
    sitemaps: Vec<String>,
}

/// What counts for a whole host, when its file can't be had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Whole {
    /// The rules say.
    #[default]
    Ruled,
    /// There is no file: everything is allowed.
    Absent(u16),
    /// The server doesn't answer: nothing is allowed.
    Unreachable(u16),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    allows: bool,
    /// The number of its line, from 1.
    line: u32,
    pattern: Pattern,
}

/// Whether a URL may be fetched, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict<'r> {
    /// Whether it may be.
    pub allowed: bool,
    /// The reason.
    pub ground: Ground<'r>,
}

/// Why a URL may or may not be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ground<'r> {
    /// A rule of the file.
    Rule {
        /// The number of its line, from 1.
        line: u32,
        /// Its pattern as written.
        pattern: &'r str,
    },
    /// No rule matches.
    NoRule,
    /// robots.txt itself may always be fetched.
    RobotsFile,
    /// The host has no robots.txt; the status of its answer.
    Absent(u16),
    /// The host's robots.txt couldn't be had; the status of its answer, or 0 when there was none.
    Unreachable(u16),
}

impl Robots {
    /// The rules that follow from an answer to a request for robots.txt (RFC 9309, section 2.3.1), for the robot with this
    /// product token. Status 0 means that there was no answer.
    ///
    /// Success gives the file's rules, a client error allows everything, a server error or no answer nothing; so does 429,
    /// which asks for less rather than saying that there is no file. Redirects are the caller's to follow (at least five);
    /// one that is left counts as absence.
    #[must_use]
    pub fn from_answer(status: u16, body: &[u8], robot: &str) -> Self {
        match status {
            200..=299 => Self::parse(body, robot),
            429 => Self { whole: Whole::Unreachable(status), ..Self::default() },
            300..=499 => Self { whole: Whole::Absent(status), ..Self::default() },
            _ => Self { whole: Whole::Unreachable(status), ..Self::default() },
        }
    }

    /// Reads a file for the robot with this product token, as `archive`: compared without regard to case.
    #[must_use]
    pub fn parse(body: &[u8], robot: &str) -> Self {
        let text = decode(&body[..body.len().min(ROBOTS_BYTES_MAX)]);
        let mut reader = Reader::new(robot);
        // A return alone ends a line too (RFC 9309, section 2.2: EOL).
        for (index, line) in
            text.split('\n').flat_map(|line| line.trim_end_matches('\r').split('\r')).enumerate()
        {
            reader.line(line, u32::try_from(index + 1).unwrap_or(u32::MAX));
        }
        reader.finish()
    }

    /// Whether a URL of this host may be fetched.
    #[must_use]
    pub fn check(&self, url: &Url) -> Verdict<'_> {
        self.check_path(&url[url::Position::BeforePath..url::Position::AfterQuery])
    }

    /// Whether a path, with its query, may be fetched.
    #[must_use]
    pub fn check_path(&self, path: &str) -> Verdict<'_> {
        let verdict = |allowed, ground| Verdict { allowed, ground };
        if path == "/robots.txt" {
            return verdict(true, Ground::RobotsFile);
        }
        match self.whole {
            Whole::Absent(status) => return verdict(true, Ground::Absent(status)),
            Whole::Unreachable(status) => return verdict(false, Ground::Unreachable(status)),
            Whole::Ruled => {}
        }
        let path = normal_path(if path.is_empty() { "/" } else { path });
        // The longest pattern decides, and among equals one that allows (section 2.2.2).
        let matching = self.rules.iter().filter(|rule| rule.matches(&path));
        match matching.max_by_key(|rule| (rule.pattern.length(), rule.allows)) {
            Some(rule) => {
                verdict(rule.allows, Ground::Rule { line: rule.line, pattern: &rule.pattern.written })
            }
            None => verdict(true, Ground::NoRule),
        }
    }

    /// The time that the host wants between two requests of this robot (`Crawl-delay`, or by `Request-rate`).
    #[must_use]
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.crawl_delay
    }

    /// The sitemaps that the file names, as written: to be resolved against its URL.
    #[must_use]
    pub fn sitemaps(&self) -> &[String] {
        &self.sitemaps
    }

    /// Forgets the sitemaps, which are not rules.
    #[must_use]
    pub fn without_sitemaps(self) -> Self {
        Self { sitemaps: Vec::new(), ..self }
    }

    /// Bytes of memory, about.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        /// What an allocator adds to a text.
        const ALLOCATION_BYTES: usize = 16;
        let of_rule = |rule: &Rule| {
            let normal = rule.pattern.normal.as_ref().map_or(0, |normal| normal.len() + ALLOCATION_BYTES);
            size_of::<Rule>() + rule.pattern.written.len() + ALLOCATION_BYTES + normal
        };
        let sitemaps = self.sitemaps.iter().map(|url| size_of::<String>() + url.len() + ALLOCATION_BYTES);
        size_of::<Self>() + self.rules.iter().map(of_rule).sum::<usize>() + sitemaps.sum::<usize>()
    }

    /// The number of rules that count for the robot.
    #[must_use]
    pub fn rule_count(&self) -> usize {
        self.rules.len()
    }
}

impl Rule {
    fn matches(&self, path: &str) -> bool {
        self.pattern.matches(path) || (self.allows && self.pattern.matches_directory(path))
    }
}

/// A path with `*` for anything and `$` for the end (RFC 9309, section 2.2.3).
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern {
    written: Box<str>,
    /// The normal form, when it isn't what was written. Without the `$`.
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

    /// Octets, by which the most specific rule is found.
    fn length(&self) -> usize {
        self.text().len() + usize::from(self.is_anchored)
    }

    /// Whether the pattern matches a path in normal form. Each literal between two `*` is searched for once, from where the
    /// one before ended: the earliest place leaves most to those that follow, so there is nothing to try again.
    fn matches(&self, path: &str) -> bool {
        matches_literals(self.text(), path, self.is_anchored)
    }

    /// Whether this names the index page of a directory, and the path is that directory.
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

/// A path as patterns are compared with: what stands for anything or the end in a pattern is escaped in a path.
fn normal_path(path: &str) -> Cow<'_, str> {
    normalise(path, |byte| matches!(byte, b'*' | b'$'))
}

/// Escapes in upper case, none for unreserved characters, all for what isn't ASCII or is to be escaped (RFC 9309,
/// section 2.2.2).
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

/// The file is to be UTF-8 (section 2.3); some are UTF-16, and say so by their mark.
fn decode(body: &[u8]) -> Cow<'_, str> {
    match encoding_rs::Encoding::for_bom(body) {
        Some((encoding, mark_bytes)) => encoding.decode_without_bom_handling(&body[mark_bytes..]).0,
        None => String::from_utf8_lossy(body),
    }
}

/// Reads a file line by line.
struct Reader<'n> {
    robot: &'n str,
    own: Group,
    any: Group,
    /// Whether a group names the robot, even if it has no rules.
    is_named: bool,
    in_own: bool,
    in_any: bool,
    /// Whether the lines before named robots: then one more name joins them.
    is_naming: bool,
    sitemaps: Vec<String>,
}

/// The rules of all groups for one name, put together.
#[derive(Default)]
struct Group {
    rules: Vec<Rule>,
    delay: Option<Duration>,
}

impl<'n> Reader<'n> {
    fn new(robot: &'n str) -> Self {
        Self {
            robot,
            own: Group::default(),
            any: Group::default(),
            is_named: false,
            in_own: false,
            in_any: false,
            is_naming: false,
            sitemaps: Vec::new(),
        }
    }

    fn line(&mut self, line: &str, number: u32) {
        let line = line.split('#').next().unwrap_or_default().trim();
        let Some((name, value)) = split_record(line) else { return };
        match Field::of(name) {
            Field::UserAgent => self.user_agent(value),
            Field::Allow => self.rule(true, value, number),
            Field::Disallow => self.rule(false, value, number),
            Field::CrawlDelay => self.delay(parse_delay(value)),
            Field::RequestRate => self.delay(parse_rate(value)),
            Field::Sitemap => {
                if !value.is_empty() && self.sitemaps.len() < SITEMAPS_MAX {
                    self.sitemaps.push(value.to_owned());
                }
            }
            Field::Other => {}
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
                group.rules.push(Rule { allows, line, pattern: Pattern::new(value) });
            }
        }
    }

    /// Sets the delay of the robots named so far. This is not a rule, so more names may follow (section 2.2.4).
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
        Robots { whole: Whole::Ruled, rules: group.rules, crawl_delay: group.delay, sitemaps: self.sitemaps }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    UserAgent,
    Allow,
    Disallow,
    CrawlDelay,
    RequestRate,
    Sitemap,
    Other,
}

impl Field {
    fn of(name: &str) -> Self {
        const NAMES: [(&str, Field); 15] = [
            ("user-agent", Field::UserAgent),
            ("useragent", Field::UserAgent),
            ("user agent", Field::UserAgent),
            ("allow", Field::Allow),
            ("disallow", Field::Disallow),
            ("dissallow", Field::Disallow),
            ("dissalow", Field::Disallow),
            ("disalow", Field::Disallow),
            ("diasllow", Field::Disallow),
            ("disallaw", Field::Disallow),
            ("crawl-delay", Field::CrawlDelay),
            ("crawldelay", Field::CrawlDelay),
            ("request-rate", Field::RequestRate),
            ("sitemap", Field::Sitemap),
            ("site-map", Field::Sitemap),
        ];
        let found = NAMES.iter().find(|(listed, _)| name.eq_ignore_ascii_case(listed));
        found.map_or(Self::Other, |&(_, field)| field)
    }
}

/// The name and value of a line. Without a colon, two words are taken for them.
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

/// `1/5` is a request in five seconds, `30/1m` thirty in a minute. A time of day after it is ignored.
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
