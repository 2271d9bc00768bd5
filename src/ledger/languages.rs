//! Languages of pages as numbers of one byte: the archive's own list, in the order in which they were met.
//!
//! A page has the primary subtag of its newest version's language (`de` of `de-AT`). The list only grows.

use archive_storage::{State, StateError};

/// The setting that holds the list, a language a line.
const SETTING: &str = "languages";

/// Languages an archive knows, at most: pages in others have none.
const LANGUAGES_MAX: usize = u8::MAX as usize;

/// Bytes of a primary language subtag (BCP 47, section 2.1).
const SUBTAG_BYTES: std::ops::RangeInclusive<usize> = 2..=8;

/// The number of a language, given out now if it has none; 0 for what is no language tag.
///
/// # Errors
/// When the state cannot be written.
pub(super) fn number(state: &mut State, tag: &str) -> Result<u8, StateError> {
    let subtag = tag.split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase();
    if !SUBTAG_BYTES.contains(&subtag.len()) || !subtag.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Ok(0);
    }
    let list = String::from_utf8_lossy(state.setting(SETTING).unwrap_or_default()).into_owned();
    if let Some(place) = list.lines().position(|known| known == subtag) {
        return Ok(u8::try_from(place + 1).unwrap_or(0));
    }
    let count = list.lines().count();
    if count >= LANGUAGES_MAX {
        return Ok(0);
    }
    state.set_setting(SETTING, Some(format!("{list}{subtag}\n").as_bytes()))?;
    Ok(u8::try_from(count + 1).unwrap_or(0))
}

/// The language of a number; nothing for 0.
#[must_use]
pub fn language(state: &State, number: u8) -> Option<String> {
    let list = std::str::from_utf8(state.setting(SETTING)?).ok()?;
    list.lines().nth(usize::from(number).checked_sub(1)?).map(str::to_owned)
}
