//! Parses dates in HTTP fields, feeds, sitemaps and lists.

use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};

/// Maximum bytes of a date.
const DATE_BYTES_MAX: usize = 64;

/// Parses a date in one of the three forms of HTTP (RFC 9110, section 5.6.7), or in that of RFC 822. The day of the
/// week is ignored; two-digit years are those from 1969 to 2068.
#[must_use]
pub fn http_date(text: &str) -> Option<DateTime<Utc>> {
    let text = text.trim();
    if !text.is_ascii() || text.len() > DATE_BYTES_MAX {
        return None;
    }
    let (_, after_day) = text.split_once(' ')?;
    let parsed = |text, format| NaiveDateTime::parse_from_str(text, format).ok().map(|time| time.and_utc());
    rfc_822(text)
        .or_else(|| parsed(after_day, "%d-%b-%y %H:%M:%S GMT"))
        .or_else(|| parsed(after_day, "%b %e %H:%M:%S %Y"))
}

/// Parses a date in a form of the W3C note on date and time formats (a profile of ISO 8601: `2026`, `2026-11`,
/// `2026-11-21`, with or without a time and a zone) or of RFC 822 (`Sat, 21 Nov 2026 05:17:00 GMT`). Returns seconds
/// since 1970.
///
/// Without a zone UTC is assumed, without a month or day the first. Returns none for anything else.
#[must_use]
pub fn parse_date(text: &str) -> Option<i64> {
    let text = text.trim();
    if !text.is_ascii() || text.len() > DATE_BYTES_MAX {
        return None;
    }
    w3c(text).or_else(|| rfc_822(text).map(|time| time.timestamp()))
}

fn w3c(text: &str) -> Option<i64> {
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Some(time.timestamp());
    }
    let midnight = |date: NaiveDate| date.and_hms_opt(0, 0, 0).map(|time| time.and_utc().timestamp());
    let date = |text: &str| NaiveDate::parse_from_str(text, "%Y-%m-%d").ok();
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    match text.len() {
        4 if all_digits(text) => return midnight(NaiveDate::from_ymd_opt(text.parse().ok()?, 1, 1)?),
        7 => return midnight(date(&format!("{text}-01"))?),
        8 if all_digits(text) => return midnight(NaiveDate::parse_from_str(text, "%Y%m%d").ok()?),
        10 => return midnight(date(text)?),
        _ => {}
    }
    for format in ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M"] {
        let bare = text.strip_suffix('Z').unwrap_or(text);
        if let Ok(time) = NaiveDateTime::parse_from_str(bare, format) {
            return Some(time.and_utc().timestamp());
        }
    }
    ["%Y-%m-%dT%H:%M%:z", "%Y-%m-%dT%H:%M:%S%.f%#z", "%Y-%m-%d %H:%M:%S %#z"]
        .iter()
        .find_map(|format| DateTime::parse_from_str(text, format).ok())
        .map(|time| time.timestamp())
}

/// Parses RFC 822 dates as feeds write them: the day of the week may be missing or wrong, so it is ignored.
fn rfc_822(text: &str) -> Option<DateTime<Utc>> {
    let bare = match text.split_once(',') {
        Some((day, rest)) if day.len() <= 9 => rest.trim(),
        _ => text,
    };
    let parsed =
        DateTime::parse_from_rfc2822(bare).or_else(|_| DateTime::parse_from_rfc2822(&format!("{bare} GMT")));
    parsed.ok().map(|time| time.to_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_of_http_are_read() {
        let time = DateTime::from_timestamp(784_111_777, 0);
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Sun Nov 06 08:49:37 1994",
            "Mon, 06 Nov 1994 08:49:37 GMT",
            " 6 Nov 1994 09:49:37 +0100",
        ] {
            assert_eq!(http_date(text), time, "{text}");
        }
        for text in [
            "",
            "0",
            "1994-11-06T08:49:37Z",
            "Sun, 06 Nov 1994",
            "Sun Nov 31 08:49:37 1994",
            "é Nov 6 08:49:37 1994",
        ] {
            assert_eq!(http_date(text), None, "{text}");
        }
    }

    #[test]
    fn forms_of_dates() {
        let day = 1_795_219_200; // 2026-11-21T00:00:00Z
        for (text, expected) in [
            ("2026-11-21", Some(day)),
            (" 2026-11-21T01:00:00Z\n", Some(day + 3600)),
            ("2026-11-21T01:00:00.25+01:00", Some(day)),
            ("2026-11-21T01:00+01:00", Some(day)),
            ("2026-11-21T01:00:00+0100", Some(day)),
            ("2026-11-21T01:00Z", Some(day + 3600)),
            ("2026-11-21 01:00:00", Some(day + 3600)),
            ("20261121", Some(day)),
            ("2026-11", Some(day - 20 * 86_400)),
            ("1970", Some(0)),
            ("Sat, 21 Nov 2026 00:00:00 GMT", Some(day)),
            ("Mon, 21 Nov 2026 00:00:00 +0000", Some(day)),
            ("21 Nov 2026 01:00 +0100", Some(day)),
            ("21 Nov 26 00:00:00 UT", Some(day)),
            ("21 Nov 26 00:00:00", Some(day)),
            ("yesterday", None),
            ("2026-13-01", None),
            ("", None),
            ("é026", None),
        ] {
            assert_eq!(parse_date(text), expected, "{text}");
        }
    }
}
