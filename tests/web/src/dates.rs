//! Dates in the formats of headers and documents, appended without allocation because a page has several.

use super::text::Append;

const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAY_SECONDS: i64 = 86_400;

/// A day of the Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Day {
    pub(super) year: i64,
    /// 1 to 12.
    pub(super) month: u32,
    /// 1 to 31.
    pub(super) day: u32,
}

impl Day {
    /// Returns the day `days` after 1 January 1970 (Howard Hinnant, chrono-compatible low-level date algorithms,
    /// `civil_from_days`).
    pub(super) const fn from_days(days: i64) -> Self {
        let days = days + 719_468;
        let era = days.div_euclid(146_097);
        let of_era = days.rem_euclid(146_097);
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted = (5 * of_year + 2) / 153;
        let day = of_year - (153 * shifted + 2) / 5 + 1;
        let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
        let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
        Self { year, month: month as u32, day: day as u32 }
    }
}

fn put_two(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'0' + (number / 10 % 10) as u8, b'0' + (number % 10) as u8]);
}

fn put_year(year: i64, out: &mut Vec<u8>) {
    let year = year.clamp(0, 9999).cast_unsigned();
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
    let day = Day::from_days(seconds.div_euclid(DAY_SECONDS));
    put_year(day.year, out);
    out.push(b'-');
    put_two(u64::from(day.month), out);
    out.push(b'-');
    put_two(u64::from(day.day), out);
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
    let days = seconds.div_euclid(DAY_SECONDS);
    let day = Day::from_days(days);
    out.put(WEEKDAYS[days.rem_euclid(7) as usize]);
    out.put(", ");
    put_two(u64::from(day.day), out);
    out.push(b' ');
    out.put(MONTHS[(day.month as usize + 11) % 12]);
    out.push(b' ');
    put_year(day.year, out);
    out.push(b' ');
    put_clock(seconds, out);
    out.put(" GMT");
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

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
