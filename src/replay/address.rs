//! URLs of replayed captures: `/web/<timestamp>[modifier]/<url>`, as is customary in web archiving.

use archive_storage::address::canonical;
use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, TimeDelta, Timelike, Utc};
use url::Url;

/// Number of digits of a complete timestamp: `YYYYMMDDhhmmss`.
pub(super) const STAMP_DIGITS: usize = 14;

/// How a captured URL is requested. The modifier follows the timestamp and determines how the response is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Modifier {
    /// A page in a top-level window, with the banner.
    Page,
    /// `id_`: the unmodified bytes.
    Identity,
    /// `mp_`: a request by a script, or a page without the banner.
    Main,
    /// `js_`
    Script,
    /// `cs_`
    Style,
    /// `im_`
    Image,
    /// `if_`
    InlineFrame,
    /// `fr_`
    Frame,
    /// `oe_`: objects, audio and video.
    Object,
}

impl Modifier {
    const ALL: [(Self, &'static str); 9] = [
        (Self::Page, ""),
        (Self::Identity, "id_"),
        (Self::Main, "mp_"),
        (Self::Script, "js_"),
        (Self::Style, "cs_"),
        (Self::Image, "im_"),
        (Self::InlineFrame, "if_"),
        (Self::Frame, "fr_"),
        (Self::Object, "oe_"),
    ];

    pub(super) fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(modifier, _)| *modifier == self).map_or("", |(_, text)| text)
    }

    /// Whether the response is a document for a reader, whose address should then be the exact one.
    pub(super) fn is_document(self) -> bool {
        matches!(self, Self::Page | Self::InlineFrame | Self::Frame)
    }
}

/// Which capture is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// The newest.
    Newest,
    /// All captures: `*`.
    All,
    /// The nearest to a time given to the second.
    Second(i64),
    /// The nearest to a time, in microseconds since 1970.
    Near(i64),
}

/// What an address requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReplayTarget {
    pub when: When,
    pub modifier: Modifier,
    /// The canonical URL, or the text itself if it is not a URL.
    pub url: String,
    /// Whether the URL ends with the question mark of an empty query, as that of a sent form without fields does. It is
    /// no part of the canonical URL, but scripts see it.
    pub has_empty_query: bool,
}

impl ReplayTarget {
    /// Parses the part after `/web/`.
    pub(super) fn parse(rest: &str) -> Self {
        let (first, after) = rest.split_once('/').unwrap_or((rest, ""));
        match time_and_modifier(first).filter(|_| !after.is_empty()) {
            Some((when, modifier)) => Self::of(when, modifier, after),
            None => Self::of(When::Newest, Modifier::Page, rest),
        }
    }

    fn of(when: When, modifier: Modifier, url: &str) -> Self {
        let has_empty_query = url.find('?').is_some_and(|at| at + 1 == url.len());
        Self { when, modifier, url: requested_url(url), has_empty_query }
    }
}

fn time_and_modifier(text: &str) -> Option<(When, Modifier)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (stamp, rest) = text.split_at(digits);
    if let Some(rest) = text.strip_prefix('*') {
        return named(rest).map(|modifier| (When::All, modifier));
    }
    let modifier = named(rest).filter(|_| !text.is_empty())?;
    match digits {
        0 => Some((When::Newest, modifier)),
        1..=STAMP_DIGITS => {
            let time = time_of(stamp).timestamp_micros();
            let is_whole = digits == STAMP_DIGITS;
            Some((if is_whole { When::Second(time) } else { When::Near(time) }, modifier))
        }
        _ => None,
    }
}

fn named(text: &str) -> Option<Modifier> {
    Modifier::ALL.iter().find(|(_, name)| *name == text).map(|(modifier, _)| *modifier)
}

/// The canonical form of a URL from an address. A URL without a scheme gets `http`, and the second slash of the scheme
/// is restored if something on the way dropped it.
pub(super) fn requested_url(text: &str) -> String {
    let repaired = ["http:/", "https:/"].iter().find_map(|scheme| {
        let start = text.get(..scheme.len()).filter(|start| start.eq_ignore_ascii_case(scheme))?;
        let rest = &text[start.len()..];
        (!rest.starts_with('/')).then(|| format!("{scheme}/{rest}"))
    });
    let text = repaired.as_deref().unwrap_or(text);
    let parsed = match Url::parse(text) {
        // `example.org:8080/` parses as a URL whose scheme is a host name.
        Ok(url) if url.has_host() || !url.scheme().contains('.') && url.scheme() != "localhost" => Ok(url),
        _ => Url::parse(&format!("http://{text}")),
    };
    parsed.map_or_else(|_| text.to_owned(), |url| canonical(&url))
}

/// The last second that a timestamp of any length may mean. An invalid date becomes the nearest valid one, as in other
/// tools: day 31 of a short month becomes its last day.
pub(super) fn time_of(stamp: &str) -> DateTime<Utc> {
    let filling = "29991231235959";
    let stamp = stamp.get(..stamp.len().min(STAMP_DIGITS)).unwrap_or_default();
    let whole = format!("{stamp}{}", &filling[stamp.len()..]);
    let number = |range: std::ops::Range<usize>| whole.get(range).and_then(|text| text.parse::<u32>().ok());
    let part = |range, min, max| number(range).unwrap_or(min).clamp(min, max);
    let year = number(0..4).unwrap_or(1970).max(1).cast_signed();
    let month = part(4..6, 1, 12);
    let day = part(6..8, 1, 31);
    let date = (0..4).find_map(|less| NaiveDate::from_ymd_opt(year, month, day.saturating_sub(less).max(1)));
    let date = date.unwrap_or_default();
    let time = date.and_hms_opt(part(8..10, 0, 23), part(10..12, 0, 59), part(12..14, 0, 59));
    time.unwrap_or_else(|| NaiveDateTime::from(date)).and_utc()
}

/// Converts microseconds since 1970 to a time.
pub(super) fn moment(micros: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(micros).unwrap_or_default()
}

/// Formats microseconds since 1970 as a timestamp.
pub(super) fn stamp(micros: i64) -> String {
    let (date, time) = (moment(micros).date_naive(), moment(micros).time());
    if !(0..=9999).contains(&date.year()) {
        return moment(micros).format("%Y%m%d%H%M%S").to_string();
    }
    let date = date.year() * 10_000 + (date.month() * 100 + date.day()) as i32;
    format!("{date:08}{:06}", time.hour() * 10_000 + time.minute() * 100 + time.second())
}

/// Formats microseconds since 1970 as an HTTP date.
pub(super) fn http_date(micros: i64) -> String {
    moment(micros).format("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

/// Half a second, in microseconds: any time within a second is no farther than this from its middle.
pub(super) fn half_a_second() -> i64 {
    TimeDelta::milliseconds(500).num_microseconds().unwrap_or_default()
}

/// Escapes all characters that must not occur in a URI.
pub(super) fn uri(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_graphic() && !matches!(byte, b'<' | b'>' | b'"' | b'\\' | b'`') {
            safe.push(char::from(byte));
        } else {
            safe.push_str(&format!("%{byte:02X}"));
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_all_forms() {
        let second = |stamp| time_of(stamp).timestamp_micros();
        for (rest, when, modifier, url) in [
            (
                "20200102030405/http://a.org/b?c=d",
                When::Second(second("20200102030405")),
                "",
                "http://a.org/b?c=d",
            ),
            (
                "20200102030405id_/https://a.org",
                When::Second(second("20200102030405")),
                "id_",
                "https://a.org/",
            ),
            ("2020im_/http:/a.org/", When::Near(second("20201231235959")), "im_", "http://a.org/"),
            ("*/a.org", When::All, "", "http://a.org/"),
            ("mp_/a.org:8080/x", When::Newest, "mp_", "http://a.org:8080/x"),
            ("http://a.org/", When::Newest, "", "http://a.org/"),
            ("a.org/2020/", When::Newest, "", "http://a.org/2020/"),
            ("2020xx_/a", When::Newest, "", "http://2020xx_/a"),
            ("localhost:80/a", When::Newest, "", "http://localhost/a"),
        ] {
            let target = ReplayTarget::parse(rest);
            assert_eq!(
                (target.when, target.modifier.as_str(), target.url.as_str()),
                (when, modifier, url),
                "{rest}"
            );
        }
    }

    #[test]
    fn times_of_all_years_are_stamped() {
        for (micros, text) in [
            (0, "19700101000000"),
            (-1, "19691231235959"),
            (951_868_799_999_999, "20000229235959"),
            (-62_135_596_800_000_000, "00010101000000"),
            (253_402_300_799_000_000, "99991231235959"),
            (253_402_300_800_000_000, "+100000101000000"),
        ] {
            assert_eq!(stamp(micros), text);
            assert_eq!(moment(micros).format("%Y%m%d%H%M%S").to_string(), text);
        }
    }

    #[test]
    fn timestamps_are_filled_up() {
        for (text, time) in [
            ("2020", "20201231235959"),
            ("202002", "20200229235959"),
            ("20200230", "20200229235959"),
            ("20201301", "20201201235959"),
            ("2020010299", "20200102235959"),
            ("1", "19991231235959"),
            ("00000000000000", "00010101000000"),
        ] {
            assert_eq!(time_of(text).format("%Y%m%d%H%M%S").to_string(), time, "{text}");
        }
    }

    #[test]
    fn nothing_leaves_a_uri() {
        assert_eq!(uri("a>b\r\nc\"é"), "a%3Eb%0D%0Ac%22%C3%A9");
    }
}
