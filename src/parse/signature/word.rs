//! Words that change by themselves: dates, times, counters, tokens.
//!
//! Nearly every word is none of them, so each check must be fast.

/// Words of this length with letters and digits mixed are tokens, in bytes.
const TOKEN_BYTES_MIN: usize = 16;

/// What a word is, as far as change is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Word,
    /// Something with digits in it.
    Number,
    /// A date or time in itself: `2026-11-21`, `21.11.26`, `12:30`.
    Date,
    /// A month or day of the week.
    Month,
    /// A unit of time, or a word that stands for a time.
    Unit,
    /// What no person has written.
    Token,
}

/// The longest name below, in bytes.
const NAME_BYTES_MAX: usize = 9;

/// Months and days, and units of time, in lower case.
const MONTHS: [&str; 38] = [
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
    "mon",
    "tue",
    "wed",
    "thu",
    "fri",
    "sat",
    "sun",
    "january",
    "february",
    "march",
    "april",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
    "sept",
];
const UNITS: [&str; 23] = [
    "second",
    "seconds",
    "sec",
    "minute",
    "minutes",
    "min",
    "mins",
    "hour",
    "hours",
    "day",
    "days",
    "week",
    "weeks",
    "month",
    "months",
    "year",
    "years",
    "ago",
    "today",
    "yesterday",
    "am",
    "pm",
    "utc",
];

/// For each first letter and length of the names above, their last letters, as bits: nearly no other word passes.
const LAST_LETTERS: [[u32; NAME_BYTES_MAX + 1]; 26] = {
    const fn add(
        mut table: [[u32; NAME_BYTES_MAX + 1]; 26],
        names: &[&str],
    ) -> [[u32; NAME_BYTES_MAX + 1]; 26] {
        let mut index = 0;
        while index < names.len() {
            let name = names[index].as_bytes();
            table[(name[0] - b'a') as usize][name.len()] |= 1 << (name[name.len() - 1] - b'a');
            index += 1;
        }
        table
    }
    add(add([[0; NAME_BYTES_MAX + 1]; 26], &MONTHS), &UNITS)
};

/// The place of a letter in the alphabet, in any case.
fn letter(byte: u8) -> Option<usize> {
    let place = (byte | 0x20).wrapping_sub(b'a');
    (place < 26).then_some(usize::from(place))
}

impl Class {
    pub(super) fn of(word: &[u8], has_digit: bool) -> Self {
        if !has_digit {
            return Self::of_name(word);
        }
        let bare = without_punctuation(word);
        if is_date(bare) {
            return Self::Date;
        }
        let digits = bare.iter().filter(|byte| byte.is_ascii_digit()).count();
        let is_of_token =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'=' | b'+' | b'/');
        let is_token = bare.len() >= TOKEN_BYTES_MIN
            && bare.iter().all(is_of_token)
            && digits >= 2
            && digits * 10 < bare.len() * 9;
        if is_token { Self::Token } else { Self::Number }
    }

    #[inline]
    fn of_name(word: &[u8]) -> Self {
        let is_bare = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphabetic);
        let bare =
            if is_bare(word.first()) && is_bare(word.last()) { word } else { without_punctuation(word) };
        let (Some(&first), Some(&last)) = (bare.first(), bare.last()) else { return Self::Word };
        let (Some(first), Some(last)) = (letter(first), letter(last)) else { return Self::Word };
        if bare.len() > NAME_BYTES_MAX || LAST_LETTERS[first][bare.len()] >> last & 1 == 0 {
            return Self::Word;
        }
        Self::of_likely_name(bare)
    }

    #[inline(never)]
    fn of_likely_name(word: &[u8]) -> Self {
        let among = |names: &[&str]| names.iter().any(|listed| word.eq_ignore_ascii_case(listed.as_bytes()));
        // A month is written with a capital: "may" and "march" are verbs.
        if word[0].is_ascii_uppercase() && among(&MONTHS) {
            return Self::Month;
        }
        if among(&UNITS) { Self::Unit } else { Self::Word }
    }
}

fn without_punctuation(mut word: &[u8]) -> &[u8] {
    while let Some((_, rest)) = word.split_first().filter(|(first, _)| first.is_ascii_punctuation()) {
        word = rest;
    }
    while let Some((_, rest)) = word.split_last().filter(|(last, _)| last.is_ascii_punctuation()) {
        word = rest;
    }
    word
}

/// A date in numbers or a time of day: `2026-11-21`, `11/21/26`, `21.11.2026`, `12:30`, each perhaps with a time or zone
/// after. `2.5.8` is a version and `1.5` a number.
fn is_date(word: &[u8]) -> bool {
    let Some((first, after)) = number(word) else { return false };
    let Some((&separator, rest)) = after.split_first() else { return false };
    let Some((second, after)) = number(rest) else { return false };
    if separator == b':' {
        return first.value < 25 && second.digits == 2 && is_end_of_time(after);
    }
    let Some(third) = after.strip_prefix(&[separator]).and_then(number) else { return false };
    let (third, after) = third;
    let is_year_first = first.digits == 4 && second.value <= 12 && third.value <= 31;
    let is_year_last = matches!(third.digits, 2 | 4) && first.value <= 31 && second.value <= 31;
    let separates = match separator {
        b'-' | b'/' => is_year_first || is_year_last,
        b'.' => is_year_first || is_year_last && second.value <= 12,
        _ => false,
    };
    separates && (after.is_empty() || after[0] == b'T' || after[0] == b't')
}

/// Seconds, a zone, `am` or `pm`.
fn is_end_of_time(rest: &[u8]) -> bool {
    let rest = rest.strip_suffix(b"am").or_else(|| rest.strip_suffix(b"pm")).unwrap_or(rest);
    rest.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.' | b'+' | b'-' | b'Z' | b'h'))
}

#[derive(Clone, Copy)]
struct Digits {
    value: u32,
    digits: usize,
}

/// A number of at most four digits, and what follows it.
fn number(text: &[u8]) -> Option<(Digits, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 || digits > 4 {
        return None;
    }
    let value = text[..digits].iter().fold(0, |value, digit| value * 10 + u32::from(digit - b'0'));
    Some((Digits { value, digits }, &text[digits..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes() {
        for (word, class) in [
            ("2026-11-21", Class::Date),
            ("21.11.26,", Class::Date),
            ("12:30", Class::Date),
            ("12:30pm", Class::Date),
            ("(11/21/2026)", Class::Date),
            ("1.5", Class::Number),
            ("2.5.8", Class::Number),
            ("4.11.20", Class::Date),
            ("1-2", Class::Number),
            ("1,234", Class::Number),
            ("3rd", Class::Number),
            ("Nov.", Class::Month),
            ("Sunday", Class::Month),
            ("march", Class::Word),
            ("hours", Class::Unit),
            ("d41d8cd98f00b204e9800998ecf8427e", Class::Token),
            ("12345678901234567890", Class::Number),
            ("word", Class::Word),
        ] {
            let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
            assert_eq!(Class::of(word.as_bytes(), has_digit), class, "{word}");
        }
    }
}
