//! The language of a text that doesn't say which it is.

use whatlang::Lang;

/// How much of the text the guess looks at, in bytes. The comparison with seventy languages costs some 50 µs, a sixth of
/// what a page costs in all; most pages that don't say their language are English, which is seen in 1 µs.
const SAMPLE_BYTES: usize = 600;

/// Less text than this tells nothing, in bytes.
const SAMPLE_BYTES_MIN: usize = 64;

/// The language of a text, as a tag of two letters where there is one; none when the guess isn't sure.
///
/// The sample is from the middle: a page begins and ends with names and menus.
pub(crate) fn guess(text: &str) -> Option<String> {
    if text.len() < SAMPLE_BYTES_MIN {
        return None;
    }
    let start = text.floor_char_boundary(text.len().saturating_sub(SAMPLE_BYTES) / 2);
    let end = text.floor_char_boundary((start + SAMPLE_BYTES).min(text.len()));
    let sample = &text[start..end];
    if is_english(sample) {
        return Some("en".to_owned());
    }
    let found = whatlang::detect(sample)?;
    found.is_reliable().then(|| tag_of(found.lang()).to_owned())
}

/// Whether a text is English beyond doubt: no letters but ASCII, and at least one word in six is one of the commonest
/// English ones that no other language has in such numbers, `the` among them.
fn is_english(sample: &str) -> bool {
    const COMMON: [&str; 18] = [
        "the", "of", "and", "to", "is", "that", "this", "with", "from", "are", "be", "by", "it", "which",
        "will", "for", "if", "not",
    ];
    if !sample.is_ascii() {
        return false;
    }
    let (mut words, mut common, mut articles) = (0, 0, 0);
    for word in sample.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty()) {
        words += 1;
        if (2..=5).contains(&word.len()) && COMMON.iter().any(|one| word.eq_ignore_ascii_case(one)) {
            common += 1;
            articles += u32::from(word.eq_ignore_ascii_case("the"));
        }
    }
    articles >= 2 && common * 6 >= words
}

/// ISO 639-1 codes, which is what `lang` attributes hold; languages without one keep their ISO 639-3 code.
fn tag_of(language: Lang) -> &'static str {
    let code = language.code();
    TAGS.iter().find(|(long, _)| *long == code).map_or(code, |(_, short)| short)
}

#[rustfmt::skip]
const TAGS: [(&str, &str); 70] = [
    ("afr", "af"), ("aka", "ak"), ("amh", "am"), ("ara", "ar"), ("aze", "az"), ("bel", "be"), ("ben", "bn"), ("bul", "bg"),
    ("cat", "ca"), ("cym", "cy"), ("ces", "cs"), ("cmn", "zh"), ("dan", "da"), ("deu", "de"), ("ell", "el"), ("eng", "en"), ("epo", "eo"),
    ("est", "et"), ("fin", "fi"), ("fra", "fr"), ("guj", "gu"), ("heb", "he"), ("hin", "hi"), ("hrv", "hr"), ("hun", "hu"),
    ("hye", "hy"), ("ind", "id"), ("ita", "it"), ("jav", "jv"), ("jpn", "ja"), ("kan", "kn"), ("kat", "ka"), ("khm", "km"),
    ("kor", "ko"), ("lat", "la"), ("lav", "lv"), ("lit", "lt"), ("mal", "ml"), ("mar", "mr"), ("mkd", "mk"), ("mya", "my"),
    ("nep", "ne"), ("nld", "nl"), ("nob", "nb"), ("ori", "or"), ("pan", "pa"), ("pes", "fa"), ("pol", "pl"), ("por", "pt"),
    ("ron", "ro"), ("rus", "ru"), ("sin", "si"), ("slk", "sk"), ("slv", "sl"), ("sna", "sn"), ("spa", "es"), ("srp", "sr"),
    ("swe", "sv"), ("tam", "ta"), ("tel", "te"), ("tgl", "tl"), ("tha", "th"), ("tuk", "tk"), ("tur", "tr"), ("ukr", "uk"),
    ("urd", "ur"), ("uzb", "uz"), ("vie", "vi"), ("yid", "yi"), ("zul", "zu"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_tells_its_language() {
        let german = "Die Bibliothek sammelt, erschließt und bewahrt alles, was im Land erschienen ist. Wer ein Buch sucht, \
                      fragt am besten die Leute, die dort arbeiten, denn sie kennen sich mit den Beständen aus. "
            .repeat(20);
        assert_eq!(guess(&german).as_deref(), Some("de"));
        let russian =
            "Библиотека собирает и хранит всё, что было издано в стране за последние годы. Читатель может \
                       попросить любую книгу, и через некоторое время её принесут из хранилища в зал. "
                .repeat(5);
        assert_eq!(guess(&russian).as_deref(), Some("ru"));
        assert_eq!(guess("ok"), None);
    }

    #[test]
    fn english_is_told_from_its_neighbours() {
        let english = "The library collects and keeps what is published in the country. Whoever looks for a book is \
                       best served by the people who work there, for they know what is in the stacks.";
        assert!(is_english(english));
        for other in [
            "De bibliotheek verzamelt en bewaart alles wat in het land verschijnt. Wie een boek zoekt, vraagt het aan de \
             mensen die er werken, want zij weten wat er is en of het te leen is.",
            "Biblioteket samler og bevarer alt som er utgitt i landet for alle, og den som leter etter en bok, er best \
             tjent med dem som arbeider der, for de vet hva som er i magasinet.",
            "int main(int argc, char **argv) { for (int i = 0; i < argc; i++) { if (argv[i]) { print(argv[i]); } } }",
            "The The The Rolling Stones Beatles Kinks Who Yardbirds Animals Hollies Zombies Troggs Them Pretty Things Small \
             Faces Move Creation Action",
        ] {
            assert!(!is_english(other), "{other}");
        }
    }

    #[test]
    fn every_language_of_the_guess_has_its_tag() {
        for language in Lang::all() {
            assert!(tag_of(*language).len() <= 3);
        }
        assert_eq!(tag_of(Lang::Cmn), "zh");
    }
}
