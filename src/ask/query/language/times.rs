//! Converts dates and times of queries to instants.

use std::ops::Range;

use archive_grammar::{Ago, Moment, Precision, Unit};
use chrono::{
    DateTime, Datelike, Days, FixedOffset, Local, Months, NaiveDate, NaiveDateTime, TimeDelta, TimeZone, Utc,
};

/// The zone of dates and times without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    /// The computer's zone, which tables use to show times.
    Local,
    /// UTC.
    Utc,
}

/// The period that a date or time names: a whole month, day, minute or second.
pub(crate) fn moment(moment: Moment, zone: Zone) -> Range<DateTime<Utc>> {
    let start = moment.start;
    let end = match moment.precision {
        Precision::Month => start.checked_add_months(Months::new(1)),
        Precision::Day => start.checked_add_days(Days::new(1)),
        Precision::Minute => start.checked_add_signed(TimeDelta::minutes(1)),
        Precision::Second => start.checked_add_signed(TimeDelta::seconds(1)),
    };
    instant(start, zone, moment.zone)..instant(end.unwrap_or(start), zone, moment.zone)
}

/// The period of a year, if the number is a year in the age of the web.
pub(crate) fn year(number: f64, zone: Zone) -> Option<Range<DateTime<Utc>>> {
    if number.fract() != 0.0 || !(1990.0..=2200.0).contains(&number) {
        return None;
    }
    let first = |year: i32| NaiveDate::from_ymd_opt(year, 1, 1).map(NaiveDateTime::from);
    let year = number as i32;
    Some(instant(first(year)?, zone, None)..instant(first(year + 1)?, zone, None))
}

/// The periods of `today`, `yesterday` and `now`.
pub(crate) fn word(word: &str, now: DateTime<Utc>, zone: Zone) -> Option<Range<DateTime<Utc>>> {
    let today = match zone {
        Zone::Local => now.with_timezone(&Local).date_naive(),
        Zone::Utc => now.date_naive(),
    };
    let day = match word.to_lowercase().as_str() {
        "now" => return Some(now..now + TimeDelta::microseconds(1)),
        "today" => today,
        "yesterday" => today.pred_opt()?,
        _ => return None,
    };
    Some(instant(day.into(), zone, None)..instant(day.succ_opt()?.into(), zone, None))
}

/// The instant this long before `now`; the earliest instant if that is out of range.
pub(crate) fn ago(ago: Ago, now: DateTime<Utc>) -> DateTime<Utc> {
    let amount = i64::from(ago.amount);
    let before = |delta: Option<TimeDelta>| delta.and_then(|delta| now.checked_sub_signed(delta));
    let earlier = match ago.unit {
        Unit::Second => before(TimeDelta::try_seconds(amount)),
        Unit::Minute => before(TimeDelta::try_minutes(amount)),
        Unit::Hour => before(TimeDelta::try_hours(amount)),
        Unit::Day => before(TimeDelta::try_days(amount)),
        Unit::Week => before(TimeDelta::try_weeks(amount)),
        Unit::Month => now.checked_sub_months(Months::new(ago.amount)),
        Unit::Year => {
            ago.amount.checked_mul(12).and_then(|months| now.checked_sub_months(Months::new(months)))
        }
    };
    earlier.filter(|time| time.year() > 0).unwrap_or(DateTime::<Utc>::MIN_UTC)
}

/// The first instant after a named time: the end of a day, or just after an instant.
pub(crate) fn end(time: &Range<DateTime<Utc>>) -> DateTime<Utc> {
    if time.end > time.start { time.end } else { time.start + TimeDelta::microseconds(1) }
}

/// A duration in seconds; months and years have their average length.
pub(crate) fn seconds(span: Ago) -> f64 {
    const DAY: f64 = 86_400.0;
    let unit = match span.unit {
        Unit::Second => 1.0,
        Unit::Minute => 60.0,
        Unit::Hour => 3600.0,
        Unit::Day => DAY,
        Unit::Week => 7.0 * DAY,
        Unit::Month => 365.2425 / 12.0 * DAY,
        Unit::Year => 365.2425 * DAY,
    };
    f64::from(span.amount) * unit
}

fn instant(naive: NaiveDateTime, zone: Zone, written: Option<FixedOffset>) -> DateTime<Utc> {
    match (written, zone) {
        (Some(written), _) => local(naive, &written),
        (None, Zone::Local) => local(naive, &Local),
        (None, Zone::Utc) => naive.and_utc(),
    }
}

/// The instant at which clocks in `zone` show `naive`: the first if they show it twice, one hour later if they never
/// do.
fn local<Z: TimeZone>(naive: NaiveDateTime, zone: &Z) -> DateTime<Utc> {
    let at = |naive: NaiveDateTime| zone.from_local_datetime(&naive).earliest();
    at(naive)
        .or_else(|| at(naive.checked_add_signed(TimeDelta::hours(1))?))
        .map_or_else(|| naive.and_utc(), |time| time.with_timezone(&Utc))
}

/// Maximum number of periods in a series.
pub(crate) const PERIODS_MAX: usize = 20_000;

/// A period of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Period {
    Day,
    Week,
    Month,
    Year,
}

impl Period {
    /// The periods with the functions that name them.
    pub(crate) const EACH: [(&'static str, Self); 4] =
        [("by_day", Self::Day), ("by_week", Self::Week), ("by_month", Self::Month), ("by_year", Self::Year)];

    /// The name of the period that a day is in: `2026-01-31`, `2026-W05` (ISO 8601), `2026-01` or `2026`.
    pub(crate) fn of(self, day: NaiveDate) -> String {
        let format = match self {
            Self::Day => "%Y-%m-%d",
            Self::Week => "%G-W%V",
            Self::Month => "%Y-%m",
            Self::Year => "%Y",
        };
        day.format(format).to_string()
    }

    /// The first day of the period of this name.
    fn start(self, name: &str) -> Option<NaiveDate> {
        let (rest, format) = match self {
            Self::Day => ("", "%Y-%m-%d"),
            Self::Week => ("-1", "%G-W%V-%u"),
            Self::Month => ("-01", "%Y-%m-%d"),
            Self::Year => ("-01-01", "%Y-%m-%d"),
        };
        NaiveDate::parse_from_str(&format!("{name}{rest}"), format).ok()
    }

    /// The names of all periods from one to another one; `None` if there are more than [`PERIODS_MAX`].
    pub(crate) fn each(self, first: &str, last: &str) -> Option<Vec<String>> {
        let (first, last) = (self.start(first)?, self.start(last)?);
        let mut names: Vec<String> = Vec::new();
        for day in first.iter_days().take_while(|day| *day <= last) {
            let name = self.of(day);
            if names.last() != Some(&name) {
                names.push(name);
            }
            if names.len() > PERIODS_MAX {
                return None;
            }
        }
        Some(names)
    }
}

/// A point in time.
pub(crate) type Instant = DateTime<Utc>;
