//! Human-readable durations.

use std::time::Duration;

/// Parses a duration such as `10m`, `1h30m`, `250ms` or `2.5s`; a bare number means seconds.
///
/// # Errors
/// When the text is not a duration; the message says what is expected.
pub fn read_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is not a span of time; write it like 30s, 10m, 1h30m, 2d or 250ms");
    let mut seconds = 0.0;
    let mut rest = text;
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(number_end);
        let unit_end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let factor = match unit.trim() {
            "ms" => 0.001,
            "s" => 1.0,
            "" if tail.is_empty() => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            "w" => 604_800.0,
            _ => return Err(wrong()),
        };
        seconds += number.parse::<f64>().map_err(|_| wrong())? * factor;
        rest = tail;
    }
    if text.is_empty() { Err(wrong()) } else { Duration::try_from_secs_f64(seconds).map_err(|_| wrong()) }
}

#[cfg(test)]
mod tests {
    use super::read_duration;
    use std::time::Duration;

    #[test]
    fn spans_of_time_are_read() {
        assert_eq!(read_duration("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(read_duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(read_duration("2.5"), Ok(Duration::from_millis(2500)));
        for bad in ["", "x", "5y", "1..2s", "-3s"] {
            assert!(read_duration(bad).is_err(), "{bad}");
        }
    }
}
