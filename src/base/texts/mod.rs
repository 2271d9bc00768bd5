//! Texts of the user interface, in the languages of its readers.
//!
//! A text is written in English where it is used, and this English is its key; `fr.toml` has its French translation. A
//! text is a heading or a whole sentence, with `{}` where a value is inserted, so that each language can order its
//! words freely. Numbers, dates and plurals follow the language. Everything else stays untranslated: URLs and titles,
//! the names of the query language and of policies, and error messages of the system.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt::Display;
use std::sync::LazyLock;
use std::time::Duration;

use chrono::{DateTime, Local, Utc};
use maud::{Markup, html};

/// Separator between groups of digits, and before signs, in French.
const NARROW_SPACE: &str = "\u{202f}";

/// English texts and their French translations. Non-breaking spaces are inserted here, so that the table can be typed
/// on any keyboard.
static FRENCH: LazyLock<HashMap<String, String>> = LazyLock::new(|| {
    let table: HashMap<String, String> = toml::from_str(include_str!("fr.toml")).unwrap_or_default();
    let spaced = |french: String| {
        let signs = [(" :", "\u{a0}:"), (" ;", "\u{202f};"), (" ?", "\u{202f}?"), (" %", "\u{202f}%")];
        let french = signs.into_iter().fold(french, |text, (plain, spaced)| text.replace(plain, spaced));
        french.replace("« ", "«\u{a0}").replace(" »", "\u{a0}»")
    };
    table.into_iter().map(|(english, french)| (english, spaced(french))).collect()
});

/// A language of the user interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// The language of the texts in the code.
    #[default]
    English,
    /// The language of `fr.toml`.
    French,
}

impl Language {
    /// All languages.
    pub const EACH: [Self; 2] = [Self::English, Self::French];

    /// Its language tag, as in `<html lang>`.
    #[must_use]
    pub fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::French => "fr",
        }
    }

    /// Its name in the language itself.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::English => "English",
            Self::French => "Français",
        }
    }

    /// The language of a tag, whatever its region: `fr`, `fr-CA`.
    #[must_use]
    pub fn of_tag(tag: &str) -> Option<Self> {
        let primary = tag.split('-').next().unwrap_or_default().trim();
        Self::EACH.into_iter().find(|language| primary.eq_ignore_ascii_case(language.tag()))
    }

    /// The language that an `Accept-Language` field prefers (RFC 9110, section 12.5.4); English if it names none of
    /// ours.
    #[must_use]
    pub fn preferred(field: &str) -> Self {
        let ranges = field.split(',').filter_map(|range| {
            let (tag, weight) = range.split_once(";q=").unwrap_or((range, "1"));
            let weight: f64 = weight.trim().parse().ok()?;
            Some((Self::of_tag(tag)?, weight)).filter(|_| weight > 0.0)
        });
        // The first of equal weights wins.
        let better = |best: (Self, f64), next: (Self, f64)| match next.1.total_cmp(&best.1) {
            Ordering::Greater => next,
            _ => best,
        };
        ranges.reduce(better).map_or(Self::default(), |(language, _)| language)
    }

    /// Translates a text.
    #[must_use]
    pub fn say(self, english: &'static str) -> &'static str {
        match self {
            Self::English => english,
            Self::French => {
                let french = FRENCH.get(english);
                debug_assert!(french.is_some(), "fr.toml has no “{english}”");
                french.map_or(english, String::as_str)
            }
        }
    }

    /// Translates a text and replaces each `{}` with a value.
    #[must_use]
    pub fn fill(self, english: &'static str, values: &[&dyn Display]) -> String {
        put(self.say(english), values)
    }

    /// Translates a text and replaces each `{}` with markup.
    #[must_use]
    pub fn markup(self, english: &'static str, values: &[Markup]) -> Markup {
        let mut values = values.iter();
        html! {
            @for (place, text) in self.say(english).split("{}").enumerate() {
                @if place > 0 { @if let Some(value) = values.next() { (value) } }
                (text)
            }
        }
    }

    /// Translates the text for the singular or the plural, depending on the number.
    #[must_use]
    pub fn plural(self, number: u64, one: &'static str, many: &'static str) -> &'static str {
        let is_one = match self {
            Self::English => number == 1,
            Self::French => number < 2,
        };
        self.say(if is_one { one } else { many })
    }

    /// As [`Language::plural`], with the number inserted.
    #[must_use]
    pub fn counted(self, number: u64, one: &'static str, many: &'static str) -> String {
        put(self.plural(number, one, many), &[&self.count(number)])
    }

    /// Formats a number with grouped digits.
    #[must_use]
    pub fn count(self, number: u64) -> String {
        let english = indicatif::HumanCount(number).to_string();
        match self {
            Self::English => english,
            Self::French => english.replace(',', NARROW_SPACE),
        }
    }

    /// Formats a number with this many decimals.
    #[must_use]
    pub fn decimal(self, number: f64, decimals: usize) -> String {
        let plain = format!("{number:.decimals$}");
        // A value that rounds to zero has no minus sign.
        let is_nothing = plain.chars().all(|c| matches!(c, '-' | '0' | '.'));
        let english = plain.replace('-', if is_nothing { "" } else { "−" });
        match self {
            Self::English => english,
            Self::French => english.replace('.', ","),
        }
    }

    /// As [`Language::decimal`], always with a sign.
    #[must_use]
    pub fn signed(self, number: f64, decimals: usize) -> String {
        let sign = if number.is_sign_negative() { "−" } else { "+" };
        format!("{sign}{}", self.decimal(number.abs(), decimals))
    }

    /// Formats a share, from 0 to 1, as a percentage with this many decimals.
    #[must_use]
    pub fn percent(self, share: f64, decimals: usize) -> String {
        let space = if self == Self::French { NARROW_SPACE } else { " " };
        format!("{}{space}%", self.decimal(100.0 * share, decimals))
    }

    /// Formats a size in bytes.
    #[must_use]
    pub fn bytes(self, bytes: u64) -> String {
        let english = indicatif::HumanBytes(bytes).to_string();
        match self {
            Self::English => english,
            Self::French => english.replace("iB", "io").replace('B', "o").replace('.', ","),
        }
    }

    /// Formats a time in the machine's time zone, to the minute.
    #[must_use]
    pub fn minute(self, time: DateTime<Utc>) -> String {
        let format = match self {
            Self::English => "%Y-%m-%d %H:%M",
            Self::French => "%d/%m/%Y %H:%M",
        };
        time.with_timezone(&Local).format(format).to_string()
    }

    /// Formats a duration.
    #[must_use]
    pub fn span(self, seconds: f64) -> String {
        if seconds < 60.0 {
            return format!("{seconds:.0} s");
        }
        // A duration out of range counts as zero.
        let time = Duration::try_from_secs_f64(seconds).unwrap_or_default().as_secs();
        let (days, hours, minutes, seconds) = (time / 86_400, time / 3600 % 24, time / 60 % 60, time % 60);
        match (days, hours) {
            (0, 0) => format!("{minutes} min {seconds} s"),
            (0, _) => format!("{hours} h {minutes} min"),
            _ => self.fill("{} d {} h", &[&days, &hours]),
        }
    }
}

/// Formats a count with its English noun: `1 page`, `1,234 pages`.
#[must_use]
pub fn count(number: u64, one: &str) -> String {
    format!("{} {one}{}", Language::English.count(number), if number == 1 { "" } else { "s" })
}

/// Replaces each `{}` of a text with a value.
#[must_use]
pub fn put(text: &str, values: &[&dyn Display]) -> String {
    let mut values = values.iter();
    let mut parts = text.split("{}");
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        if let Some(value) = values.next() {
            whole += &value.to_string();
        }
        whole += part;
    }
    whole
}

#[cfg(test)]
mod tests {
    use maud::html;

    use super::{FRENCH, Language};

    #[test]
    fn a_reader_gets_the_language_that_is_liked_best() {
        for (field, tag) in [
            ("fr", "fr"),
            ("fr-CA,fr;q=0.9,en;q=0.8", "fr"),
            ("de, en;q=0.5, fr;q=0.7", "fr"),
            ("en-GB,fr", "en"),
            ("fr;q=0, en;q=0.1", "en"),
            ("fr;q=x", "en"),
            ("de", "en"),
            ("", "en"),
            ("*", "en"),
            ("FR", "fr"),
            ("français", "en"),
        ] {
            assert_eq!(Language::preferred(field).tag(), tag, "{field}");
        }
    }

    #[test]
    fn numbers_and_plurals_are_those_of_the_language() {
        let (english, french) = (Language::English, Language::French);
        assert_eq!(
            (english.count(1_234_567), french.count(1_234_567)),
            ("1,234,567".into(), "1\u{202f}234\u{202f}567".into())
        );
        assert_eq!(
            (english.percent(0.125, 1), french.percent(0.125, 1)),
            ("12.5 %".into(), "12,5\u{202f}%".into())
        );
        assert_eq!((english.bytes(1536), french.bytes(1536)), ("1.50 KiB".into(), "1,50 Kio".into()));
        assert_eq!(french.bytes(12), "12 o");
        assert_eq!((english.decimal(-0.47, 2), french.decimal(-1.0, 1)), ("−0.47".into(), "−1,0".into()));
        assert_eq!((english.decimal(-0.004, 2), french.signed(-0.5, 1)), ("0.00".into(), "−0,5".into()));
        let pages = |language: Language, number| language.counted(number, "{} page", "{} pages");
        assert_eq!([0, 1, 2].map(|number| pages(english, number)), ["0 pages", "1 page", "2 pages"]);
        assert_eq!([0, 1, 2].map(|number| pages(french, number)), ["0 page", "1 page", "2 pages"]);
        assert_eq!(french.span(200_000.0), "2 j 7 h");
    }

    #[test]
    fn what_is_put_in_stays_text_unless_it_is_markup() {
        let shown = Language::English.markup("From {} to {}", &[html! { b { "<" } }, html! { ">" }]);
        assert_eq!(shown.into_string(), "From <b>&lt;</b> to &gt;");
    }

    #[test]
    fn every_translation_has_the_places_of_its_text() {
        assert!(FRENCH.len() > 100, "the table cannot be read");
        for (english, french) in &*FRENCH {
            let places = |text: &str| text.matches("{}").count();
            assert_eq!(places(english), places(french), "{english}");
            assert!(!french.is_empty(), "{english}");
        }
    }
}
