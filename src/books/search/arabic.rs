//! Words in the Arabic script without what is written before them, and with one letter for letters that writers exchange
//! (light10: see `words`). Persian and Urdu keyboards have letters of their own for two of these.

use std::borrow::Cow;

/// What is left out before a word: the article with what is joined to it, and "and". Longer ones come first.
const BEFORE: [&str; 7] = ["وال", "بال", "كال", "فال", "ال", "لل", "و"];

/// What may be joined to the beginning of a form of a word, or nothing. Too many words begin with these letters to leave them
/// out everywhere.
pub(super) const JOINED: [&str; 5] = ["", "ب", "ل", "ك", "ف"];

/// Minimum letters of a word after "and", with which many words begin, and after an article.
const LETTERS_MIN: [usize; 2] = [3, 2];

/// What the name of God would become without its article: another word, and one of the most frequent.
const NO_WORD: &str = "له";

/// Returns the letter that stands for this one in the index.
pub(super) fn one_letter(letter: char) -> char {
    match letter {
        'أ' | 'إ' | 'آ' | 'ٱ' => 'ا',
        'ى' | 'ی' => 'ي',
        'ة' => 'ه',
        'ک' => 'ك',
        other => other,
    }
}

/// Whether this is a letter of the script, in any of its forms.
pub(super) fn is_letter(character: char) -> bool {
    let is_of_script = matches!(
        character,
        '\u{620}'..='\u{6ff}' | '\u{750}'..='\u{77f}' | '\u{8a0}'..='\u{8ff}' | '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}'
    );
    is_of_script && character.is_alphabetic()
}

/// Removes what is written before a word, as often as there is something, so that what is left stays as it is.
pub(super) fn strip(word: &mut String) {
    // Every word comes here, and most are ASCII.
    let is_ascii = |word: &str| word.as_bytes().first().is_none_or(u8::is_ascii);
    let starts = |word: &str| !is_ascii(word) && word.starts_with(['و', 'ب', 'ك', 'ف', 'ا', 'ل']);
    while starts(word) {
        let is_word = |before: &&&str| {
            let least = LETTERS_MIN[usize::from(before.len() > 'و'.len_utf8())];
            let rest = word.strip_prefix(**before);
            rest.is_some_and(|rest| rest != NO_WORD && rest.chars().count() >= least)
        };
        let Some(before) = BEFORE.iter().find(is_word) else { break };
        word.drain(..before.len());
    }
}

/// Removes the alef that the stemmer leaves of a plural in -at, if the stem has enough letters without it.
pub(super) fn without_alef(stem: Cow<'_, str>) -> Cow<'_, str> {
    match stem.strip_suffix('ا').filter(|rest| rest.chars().count() >= LETTERS_MIN[0]) {
        Some(rest) => Cow::Owned(rest.to_owned()),
        None => stem,
    }
}
