//! Languages of pages as one-byte numbers: indexes into the archive's own list, in order of first use.
//!
//! A page has the primary subtag of its newest version's language (`de` of `de-AT`). The list only grows, except that an erase
//! leaves a blank line where nobody else has the language.

use std::collections::HashSet;

use archive_storage::{State, StateError, UrlId};

/// Setting with the list, one language per line.
const SETTING: &str = "languages";

/// Maximum number of languages in an archive: pages in further ones have none.
const LANGUAGES_MAX: usize = u8::MAX as usize;

/// Languages with a two-letter code (ISO 639-1). There is always room for them.
const TWO_LETTERS: &str = "aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv \
    dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv \
    ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no \
    nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti \
    tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu";

/// Maximum number of languages with a three-letter code; the other numbers are reserved for two-letter codes.
const THREE_LETTERS_MAX: usize = 70;

/// Returns the number of a language, assigning one if needed; 0 for an invalid tag, or if there is no room.
///
/// # Errors
/// When the state cannot be written.
pub(super) fn number(state: &mut State, tag: &str) -> Result<u8, StateError> {
    let subtag = subtag(tag);
    let is_two = TWO_LETTERS.split_whitespace().any(|known| known == subtag);
    let is_three = subtag.len() == 3 && subtag.bytes().all(|byte| byte.is_ascii_lowercase());
    if !is_two && !is_three {
        return Ok(0);
    }
    let list = String::from_utf8_lossy(state.setting(SETTING).unwrap_or_default()).into_owned();
    let known = language_number(state, tag);
    if known > 0 {
        return Ok(known);
    }
    let count = list.lines().count();
    let others = list.lines().filter(|known| known.len() == 3).count();
    if count >= LANGUAGES_MAX || (is_three && others >= THREE_LETTERS_MAX) {
        return Ok(0);
    }
    state.set_setting(SETTING, Some(format!("{list}{subtag}\n").as_bytes()))?;
    Ok(u8::try_from(count + 1).unwrap_or(0))
}

/// Forgets the languages that no pages but these have. Their numbers are not given again.
///
/// # Errors
/// When the state cannot be read or written.
pub fn forget_languages(state: &mut State, pages: &HashSet<UrlId>) -> Result<(), StateError> {
    let Some(list) = state.setting(SETTING).map(|list| String::from_utf8_lossy(list).into_owned()) else {
        return Ok(());
    };
    let mut used = [false; LANGUAGES_MAX + 1];
    for found in state.pages_with_visits() {
        let (id, _, visit) = found?;
        if let Some(visit) = visit.filter(|_| !pages.contains(&id)) {
            used[usize::from(visit.language)] = true;
        }
    }
    let left = list.lines().zip(&used[1..]).map(|(known, used)| if *used { known } else { "" });
    let left: String = left.flat_map(|known| [known, "\n"]).collect();
    state.set_setting(SETTING, Some(left.as_bytes()))
}

fn subtag(tag: &str) -> String {
    let subtag = tag.split(['-', '_']).next().unwrap_or_default();
    subtag.get(..subtag.len().min(4)).unwrap_or_default().to_ascii_lowercase()
}

/// Returns the number of a language; 0 for one that has none.
pub(crate) fn language_number(state: &State, tag: &str) -> u8 {
    let list = std::str::from_utf8(state.setting(SETTING).unwrap_or_default()).unwrap_or_default();
    // Languages that were forgotten are empty.
    let subtag = Some(subtag(tag)).filter(|subtag| !subtag.is_empty());
    let place = subtag.and_then(|subtag| list.lines().position(|known| known == subtag));
    place.and_then(|place| u8::try_from(place + 1).ok()).unwrap_or(0)
}

/// Returns the language with this number; `None` for 0.
#[must_use]
pub fn language(state: &State, number: u8) -> Option<String> {
    let list = std::str::from_utf8(state.setting(SETTING)?).ok()?;
    list.lines().nth(usize::from(number).checked_sub(1)?).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use archive_storage::StateMode;
    use archive_storage::backend::RealDisk;

    use super::*;

    #[test]
    fn nobody_can_use_up_the_numbers_of_languages() {
        let folder = tempfile::tempdir().unwrap();
        let mut state = State::open(Arc::new(RealDisk), folder.path(), StateMode::Own).unwrap();
        let mut numbers = Vec::new();
        for first in b'a'..=b'z' {
            for last in b'a'..=b'z' {
                let tag = String::from_utf8(vec![b'x', first, last]).unwrap();
                numbers.push(number(&mut state, &tag).unwrap());
            }
        }
        assert_eq!(numbers.iter().filter(|&&number| number > 0).count(), THREE_LETTERS_MAX);
        for tag in ["qq", "x", "", "english", &"e".repeat(60_000), "e\u{e9}"] {
            assert_eq!(number(&mut state, tag).unwrap(), 0, "{tag}");
        }
        for tag in TWO_LETTERS.split_whitespace() {
            let number = number(&mut state, &format!("{tag}-AT")).unwrap();
            assert_eq!(language(&state, number).as_deref(), Some(tag));
        }
    }
}
