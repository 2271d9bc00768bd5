//! Letters as they are drawn, and as they are written.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::compose;

/// Returns the letters that a letter stands for that is only drawn otherwise: a ligature, or the form of an Arabic letter in a word.
pub(super) fn as_written(letter: char) -> impl Iterator<Item = char> {
    let is_form =
        matches!(letter, '\u{FB00}'..='\u{FB06}' | '\u{FB50}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFC}');
    let (plain, form) = if is_form { (None, Some(letter)) } else { (Some(letter), None) };
    plain.into_iter().chain(form.into_iter().nfkc())
}

/// Returns a letter with the accent that is drawn over it.
pub(super) fn accented(accent: char, letter: char) -> Option<char> {
    let combining = match accent {
        '`' | '\u{2CB}' => '\u{300}',
        '\u{B4}' | '\u{2CA}' => '\u{301}',
        '^' | '\u{2C6}' => '\u{302}',
        '~' | '\u{2DC}' => '\u{303}',
        '\u{AF}' | '\u{2C9}' => '\u{304}',
        '\u{2D8}' => '\u{306}',
        '\u{2D9}' => '\u{307}',
        '\u{A8}' => '\u{308}',
        '\u{2DA}' | '\u{B0}' => '\u{30A}',
        '\u{2DD}' => '\u{30B}',
        '\u{2C7}' => '\u{30C}',
        '\u{B8}' => '\u{327}',
        '\u{2DB}' => '\u{328}',
        _ => return None,
    };
    // An i under an accent has no dot of its own.
    let letter = if letter == '\u{131}' { 'i' } else { letter };
    compose(letter, combining)
}

/// Returns a line drawn from left to right in the order in which it is read, if it has letters that run to the left: numbers and words
/// of other scripts in it keep theirs.
pub(super) fn logical_order(line: &str) -> Option<String> {
    if line.is_ascii() || !line.chars().any(runs_left) {
        return None;
    }
    let (mut read, mut kept) = (String::with_capacity(line.len()), Vec::new());
    for letter in line.trim_end_matches('\n').chars().rev() {
        if letter.is_alphanumeric() && !runs_left(letter)
            || !kept.is_empty() && matches!(letter, '.' | ',' | '-' | '/')
        {
            kept.push(letter);
        } else {
            read.extend(kept.drain(..).rev());
            read.push(letter);
        }
    }
    read.extend(kept.drain(..).rev());
    Some(read)
}

/// Whether a letter is Hebrew, Arabic or of another script that runs to the left.
fn runs_left(letter: char) -> bool {
    matches!(letter, '\u{590}'..='\u{8FF}' | '\u{FB1D}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFC}')
        && !letter.is_numeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_as_they_are_written() {
        assert_eq!("e\u{FB03}\u{FEB3}".chars().flat_map(as_written).collect::<String>(), "effi\u{633}");
        assert_eq!(
            [accented('\u{A8}', 'a'), accented('\u{2C7}', 'c'), accented('\u{B4}', '\u{131}')],
            [Some('ä'), Some('č'), Some('í')]
        );
        assert_eq!([accented('\u{A8}', 'q'), accented('a', 'a')], [None, None]);
    }

    #[test]
    fn lines_that_run_to_the_left_are_turned() {
        assert_eq!(logical_order("plain"), None);
        assert_eq!(logical_order("été"), None);
        assert_eq!(logical_order("םולש 12.5 ab").as_deref(), Some("ab 12.5 שלום"));
    }
}
