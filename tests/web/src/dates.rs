//! Dates in the formats of headers and documents, appended without allocation because a page has several.

use chrono::{DateTime, Datelike, Utc};

use super::text::Append;

const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAY_SECONDS: i64 = 86_400;

/// Returns the time this many seconds after the beginning of 1970.
pub(super) fn time_of(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(seconds, 0).unwrap_or_default()
}

fn put_two(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'0' + (number / 10 % 10) as u8, b'0' + (number % 10) as u8]);
}

fn put_year(year: i32, out: &mut Vec<u8>) {
    let year = u64::from(year.clamp(0, 9999).cast_unsigned());
    put_two(year / 100, out);
    put_two(year, out);
}

fn put_clock(seconds: i64, out: &mut Vec<u8>) {
    let of_day = seconds.rem_euclid(DAY_SECONDS).cast_unsigned();
    put_two(of_day / 3600, out);
    out.push(b':');
    put_two(of_day / 60 % 60, out);
    out.push(b':');
    put_two(of_day % 60, out);
}

/// Appends `2025-01-31`.
pub(super) fn put_day(seconds: i64, out: &mut Vec<u8>) {
    let time = time_of(seconds);
    put_year(time.year(), out);
    out.push(b'-');
    put_two(u64::from(time.month()), out);
    out.push(b'-');
    put_two(u64::from(time.day()), out);
}

/// Appends `2025-01-31T12:30:00Z` (RFC 3339).
pub(super) fn put_instant(seconds: i64, out: &mut Vec<u8>) {
    put_day(seconds, out);
    out.push(b'T');
    put_clock(seconds, out);
    out.push(b'Z');
}

/// Appends `Fri, 31 Jan 2025 12:30:00 GMT` (RFC 9110, 5.6.7: IMF-fixdate).
pub(super) fn put_http_date(seconds: i64, out: &mut Vec<u8>) {
    let time = time_of(seconds);
    out.put(WEEKDAYS[seconds.div_euclid(DAY_SECONDS).rem_euclid(7) as usize]);
    out.put(", ");
    put_two(u64::from(time.day()), out);
    out.push(b' ');
    out.put(MONTHS[time.month0() as usize]);
    out.push(b' ');
    put_year(time.year(), out);
    out.push(b' ');
    put_clock(seconds, out);
    out.put(" GMT");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_agree_with_chrono() {
        for step in -3000..20_000 {
            let seconds = step * 123_457;
            let time = DateTime::from_timestamp(seconds, 0).unwrap();
            let mut out = Vec::new();
            put_http_date(seconds, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), time.format("%a, %d %b %Y %H:%M:%S GMT").to_string());
            out.clear();
            put_instant(seconds, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), time.format("%Y-%m-%dT%H:%M:%SZ").to_string());
        }
    }
}
