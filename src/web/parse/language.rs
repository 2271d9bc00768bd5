//! Guesses the language of a text that does not declare one.

use whatlang::Lang;

/// Bytes of a sample. Comparing it with seventy languages takes about 100 µs, as long as all other reading of a page.
/// Most pages without a declared language are English, which is recognised in 1 µs.
const SAMPLE_BYTES: usize = 600;

/// Where samples for English are taken, in eighths of the text: half of a manual's page is code, which is in no
/// language.
const PLACES: [usize; 3] = [4, 1, 7];

/// Minimum bytes of a text; less is not enough for a guess.
const SAMPLE_BYTES_MIN: usize = 64;

/// Guesses the language of a text, as a two-letter tag if there is one; returns none if the guess is uncertain.
///
/// The sample is taken from the middle: a page begins and ends with names and menus.
pub(crate) fn guess(text: &str) -> Option<String> {
    if text.len() < SAMPLE_BYTES_MIN {
        return None;
    }
    let sample = sample(text, 4);
    if let Some(english) = English::of(text) {
        if english.is_beyond_doubt() {
            return Some("en".to_owned());
        }
        if is_code(sample) {
            return english.is_likely().then(|| "en".to_owned());
        }
    }
    let found = whatlang::detect(sample)?;
    found.is_reliable().then(|| tag_of(found.lang()).to_owned())
}

/// Returns a sample of a text that starts at `eighths` eighths of the range of possible starts.
fn sample(text: &str, eighths: usize) -> &str {
    let start = text.floor_char_boundary(text.len().saturating_sub(SAMPLE_BYTES) / 8 * eighths);
    let end = text.floor_char_boundary((start + SAMPLE_BYTES).min(text.len()));
    &text[start..end]
}

/// Whether a text without non-ASCII letters is a program or a table of numbers: more than one in eight of its
/// characters is a digit or punctuation mark. In sentences it is one in twenty.
fn is_code(sample: &str) -> bool {
    let (mut all, mut marks) = (0, 0);
    for symbol in sample.chars().filter(|symbol| !symbol.is_whitespace()) {
        all += 1;
        marks += u32::from(!symbol.is_alphabetic());
    }
    marks * 8 > all
}

/// Evidence that samples of a text are English. Half of the samples may be code; a quotation in one of them is not
/// enough.
#[derive(Default)]
struct English {
    words: u32,
    /// Number of words that are among the most common English words.
    common: u32,
    /// Bit set of the common words found.
    found: u32,
}

impl English {
    /// The most common English words, the article first.
    const COMMON: [&str; 24] = [
        "the", "of", "and", "to", "is", "that", "this", "with", "from", "are", "be", "by", "it", "which",
        "will", "for", "if", "not", "or", "an", "when", "has", "can", "other",
    ];

    /// Counts the words of a text; returns none if it has non-ASCII letters.
    fn of(text: &str) -> Option<Self> {
        let mut english = Self::default();
        let places = if text.len() > SAMPLE_BYTES * PLACES.len() { &PLACES[..] } else { &PLACES[..1] };
        for sample in places.iter().map(|&place| sample(text, place)) {
            // Quotation marks and dashes are not letters.
            let is_foreign = |symbol: char| !symbol.is_ascii() && symbol.is_alphabetic();
            if !sample.is_ascii() && sample.contains(is_foreign) {
                return None;
            }
            sample
                .split(|c: char| !c.is_ascii_alphabetic())
                .filter(|word| !word.is_empty())
                .for_each(|word| english.count(word));
        }
        Some(english)
    }

    /// For each first letter, the bit set of the common words that begin with it.
    const BY_LETTER: [u32; 26] = {
        let mut table = [0; 26];
        let mut place = 0;
        while place < Self::COMMON.len() {
            table[(Self::COMMON[place].as_bytes()[0] - b'a') as usize] |= 1 << place;
            place += 1;
        }
        table
    };

    fn count(&mut self, word: &str) {
        self.words += 1;
        let letter = word.as_bytes().first().map_or(0, |first| usize::from((first | 0x20) - b'a'));
        let mut left = Self::BY_LETTER[letter];
        while left != 0 {
            let place = left.trailing_zeros();
            left &= left - 1;
            if word.eq_ignore_ascii_case(Self::COMMON[place as usize]) {
                self.common += 1;
                self.found |= 1 << place;
                return;
            }
        }
    }

    /// Whether at least one word in twelve is among the most common, with five different ones and the article among
    /// them; no other language reaches this. A manual, with its names of functions and types, has fewer common words
    /// than prose.
    fn is_beyond_doubt(&self) -> bool {
        self.has_article() && self.found.count_ones() >= 5 && self.common * 12 >= self.words
    }

    /// Whether the few words of a program are English.
    fn is_likely(&self) -> bool {
        self.has_article() && self.found.count_ones() >= 2
    }

    fn has_article(&self) -> bool {
        self.found & 1 != 0
    }
}

/// Returns the ISO 639-1 code, as used in `lang` attributes; a language without one keeps its ISO 639-3 code.
fn tag_of(language: Lang) -> &'static str {
    match language {
        // The guess tells these from other forms of Chinese and Persian.
        Lang::Cmn => "zh",
        Lang::Pes => "fa",
        _ => {
            let code = language.code();
            CODES.split(' ').find_map(|codes| codes.strip_suffix(code)).unwrap_or(code)
        }
    }
}

/// The languages with a two-letter code (ISO 639-1), each followed by its three-letter code (ISO 639-3).
pub const CODES: &str = "\
    aaaar ababk aeave afafr akaka amamh anarg arara asasm avava ayaym azaze babak bebel bgbul bibis bmbam \
    bnben bobod brbre bsbos cacat ceche chcha cocos crcre csces cuchu cvchv cycym dadan dedeu dvdiv dzdzo \
    eeewe elell eneng eoepo esspa etest eueus fafas ffful fifin fjfij fofao frfra fyfry gagle gdgla glglg \
    gngrn guguj gvglv hahau heheb hihin hohmo hrhrv hthat huhun hyhye hzher iaina idind ieile igibo iiiii \
    ikipk ioido isisl itita iuiku jajpn jvjav kakat kgkon kikik kjkua kkkaz klkal kmkhm knkan kokor krkau \
    kskas kukur kvkom kwcor kykir lalat lbltz lglug lilim lnlin lolao ltlit lulub lvlav mgmlg mhmah mimri \
    mkmkd mlmal mnmon mrmar msmsa mtmlt mymya nanau nbnob ndnde nenep ngndo nlnld nnnno nonor nrnbl nvnav \
    nynya ococi ojoji omorm orori ososs papan pipli plpol pspus ptpor quque rmroh rnrun roron rurus rwkin \
    sasan scsrd sdsnd sesme sgsag shhbs sisin skslk slslv smsmo snsna sosom sqsqi srsrp ssssw stsot susun \
    svswe swswa tatam tetel tgtgk ththa titir tktuk tltgl tntsn toton trtur tstso tttat twtwi tytah uguig \
    ukukr ururd uzuzb veven vivie vovol wawln wowol xhxho yiyid yoyor zazha zhzho zuzul";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_shows_its_language() {
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
    fn english_is_distinguished_from_its_neighbours() {
        let english = "The library collects and keeps what is published in the country. Whoever looks for a book is \
                       best served by the people who work there, for they know what is in the stacks.";
        let is_english = |text: &str| English::of(text).is_some_and(|found| found.is_beyond_doubt());
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
